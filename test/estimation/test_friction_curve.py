"""estimation/friction_sweeps.py: laws through points of friction: every law, the choice, bands,
against statsmodels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import brentq
from single_joint_recordings import SPEEDS, coulomb, law_torque, stribeck

from robot_dynid.errors import UsageError
from robot_dynid.estimation.friction_sweeps import (
    FrictionCurve,
    SpeedPoint,
    distinguishable_laws,
    fit_law,
    friction_curve,
    held_out_errors,
    odd_columns,
    speeds_needed,
)
from robot_dynid.friction import LAWS, law_from
from robot_dynid.types import FloatArray

LADDER = np.geomspace(0.01, 2.0, 12)


def points(torque: FloatArray, speeds: FloatArray = LADDER, std: float = 0.02) -> list[SpeedPoint]:
    return [SpeedPoint(float(v), float(t), std, 1000, 1, 0.0) for v, t in zip(speeds, torque)]


@pytest.mark.parametrize('name', LAWS)
def test_every_law_comes_through_points_of_its_own(name: str) -> None:
    torque = law_torque(name)
    odd = 0.5 * (torque(LADDER) - torque(-LADDER))
    curve, notes = friction_curve('a', points(odd), name)
    assert notes == ()
    assert curve.name == name
    assert curve.fit is not None
    np.testing.assert_allclose(curve.fit.torque(LADDER), odd, rtol=0.0, atol=2e-3)


@pytest.mark.parametrize('count', [15, pytest.param(30, marks=pytest.mark.soak)])
@pytest.mark.parametrize(('true', 'name'), [(coulomb, 'coulomb'), (stribeck, 'stribeck')])
def test_the_law_that_is_true_is_chosen_and_its_band_holds(true, name, count) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    chosen, inside = [], []
    between = np.geomspace(LADDER[0], LADDER[-1], 40)
    for _ in range(count):
        curve, _ = friction_curve('a', points(true(LADDER) + 0.02 * rng.standard_normal(12)))
        chosen.append(curve.name == name)
        fit = fit_law(law_from(name), curve.points)
        inside.append(np.abs(fit.torque(between) - true(between)) <= fit.half_width(between))
    share = float(np.mean(inside))
    text = f'{name}: chosen {100 * np.mean(chosen):.0f} %, inside the band {100 * share:.1f} %'
    print(f'\n{text}')  # noqa: T201
    assert np.mean(chosen) >= 0.75
    # 30 curves; the points of one curve are right or wrong together: +- 2 % by chance.
    assert 0.91 <= share <= 0.995


SLIDING = LADDER[6:]  # beyond the ramp


def noisy(noise: float, least: float = 0.01, seed: int = 0) -> list[SpeedPoint]:
    """Return points of dry friction, each with its deviation and degrees of freedom."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.01, 0.1, len(SLIDING))
    std[1] = least
    torque = coulomb(SLIDING) + noise * std * rng.standard_normal(len(SLIDING))
    return [SpeedPoint(float(v), float(t), float(s), 7 + k, 1, 0.0)
            for k, (v, t, s) in enumerate(zip(SLIDING, torque, std))]


def weighted(some: list[SpeedPoint]):  # type: ignore[no-untyped-def]
    """Return statsmodels' fit of a line; no deviation is below 0.1 % of the median friction."""
    speed, torque, std = np.array([(p.speed, p.friction, p.std) for p in some]).T
    std = np.maximum(std, 1e-3 * np.median(torque))
    return sm.WLS(torque, np.column_stack([speed, np.ones_like(speed)]), std**-2).fit()


@pytest.mark.parametrize(('noise', 'least'), [(0.2, 0.01), (1.0, 0.0), (5.0, 0.01)])
def test_the_fit_is_that_of_weighted_least_squares(noise: float, least: float) -> None:
    some = noisy(noise, least)
    fit, oracle = fit_law(law_from('coulomb'), some), weighted(some)
    np.testing.assert_allclose(fit.values[:2], oracle.params, rtol=1e-8)
    unscaled = oracle.normalized_cov_params * max(1.0, oracle.scale)
    np.testing.assert_allclose(fit.covariance[:2, :2], unscaled, rtol=1e-6)
    line = np.column_stack([SLIDING, np.ones_like(SLIDING)])
    assert fit.degrees == 7
    np.testing.assert_allclose(fit.half_width(SLIDING), stats.t.ppf(0.975, 7) * np.sqrt(
        np.einsum('ij,jk,ik->i', line, unscaled, line)), rtol=1e-6)


def test_errors_at_speeds_left_out_are_in_deviations_with_a_share_of_the_friction() -> None:
    some = noisy(1.0)
    expected = []
    for k, p in enumerate(some):
        slope, offset = weighted(some[:k] + some[k + 1:]).params
        expected.append((slope * p.speed + offset - p.friction)
                        / np.hypot(p.std, 0.01 * p.friction))
    np.testing.assert_allclose(held_out_errors(law_from('coulomb'), some),
                               np.square(expected), rtol=1e-6)
    curve, _ = friction_curve('a', some, 'coulomb')
    assert curve.errors == pytest.approx({'coulomb': np.sqrt(np.mean(np.square(expected)))})


@pytest.mark.parametrize(('share', 'seed', 'simple'), [
    (0.0, 4, True), (0.05, 5, True),  # within, though stribeck errs less
    (0.038, 2, True), (0.0382, 2, False), (0.06, 4, False)])
def test_the_simplest_law_within_one_standard_error_of_the_least_is_chosen(
    share: float, seed: int, simple: bool
) -> None:
    rng = np.random.default_rng(seed)
    torque = (1.0 - share) * coulomb(LADDER) + share * stribeck(LADDER)
    some = points(torque + 0.01 * rng.standard_normal(12), std=0.01)
    laws = distinguishable_laws(some)
    squares = {name: held_out_errors(law, some) for name, law in laws.items()}
    best = min(squares, key=lambda name: squares[name].mean())
    margin = stats.sem(squares[best])
    assert (squares['coulomb'].mean() <= squares[best].mean() + margin) == simple
    curve, _ = friction_curve('a', some)
    assert curve.name == ('coulomb' if simple else best)
    assert curve.errors == pytest.approx({n: np.sqrt(s.mean()) for n, s in squares.items()})


def test_the_covariance_includes_the_logarithms_of_searched_shapes() -> None:
    some = points(stribeck(LADDER))
    fit = fit_law(law_from('stribeck'), some)
    assert fit.shapes

    def torque(theta: FloatArray) -> FloatArray:
        shapes = dict(zip(fit.shapes, np.exp(theta[len(fit.values):]).tolist()))
        return odd_columns(replace(fit.law, **shapes), LADDER) @ theta[:len(fit.values)]

    centre = np.concatenate([fit.values, np.log([getattr(fit.law, n) for n in fit.shapes])])
    jacobian = np.column_stack([(torque(centre + h) - torque(centre - h)) / 2e-5
                                for h in 1e-5 * np.eye(len(centre))])
    hessian = jacobian.T @ jacobian / 0.02**2
    np.testing.assert_allclose(hessian @ fit.covariance @ hessian, hessian, rtol=0.0,
                               atol=1e-3 * np.abs(hessian).max())


def test_every_speed_left_out_has_the_best_shape_of_the_others() -> None:
    rng = np.random.default_rng(1)
    some = points(stribeck(LADDER) + 0.05 * rng.standard_normal(12), std=0.05)
    law, friction = law_from('coulomb'), np.array([p.friction for p in some])
    (shape,) = law.shapes
    grid = [law, *(replace(law, **{shape.name: value}) for value in np.geomspace(
        shape.low, shape.high, 2 * shape.count))]
    tables, expected = [odd_columns(one, LADDER) for one in grid], []
    for k in range(12):
        rest = np.delete(np.arange(12), k)
        fits = [np.linalg.lstsq(table[rest], friction[rest], rcond=None) for table in tables]
        missed = [np.sum((t[rest] @ f[0] - friction[rest])**2)
                  for t, f in zip(tables, fits, strict=True)]
        best = int(np.argmin(missed))
        expected.append((tables[best][k] @ fits[best][0] - friction[k])
                        / np.hypot(0.05, 0.01 * friction[k]))
    np.testing.assert_allclose(held_out_errors(law, some), np.square(expected), rtol=1e-5)


def test_laws_that_slide_alike_are_tried_once() -> None:
    found = distinguishable_laws(points(coulomb(LADDER)))
    assert next(iter(found)) == 'coulomb' and {'two-speed', 'stribeck'} < set(found)
    assert not {'asymmetric', 'dahl', 'maxwell'} & set(found)


@pytest.mark.parametrize('name', LAWS)
def test_columns_are_those_that_turn_with_the_speed(name: str) -> None:
    law = law_from(name)
    columns = odd_columns(law, LADDER)
    np.testing.assert_allclose(columns, -odd_columns(law, -LADDER), rtol=0.0, atol=1e-15)
    offsets = [i for i, p in enumerate(law.parameters) if p == 'f0']
    assert not columns[:, offsets].any()


def test_too_few_speeds_are_named() -> None:
    few = points(coulomb(LADDER[-2:]), LADDER[-2:])
    curve, notes = friction_curve('elbow', few)
    assert curve.fit is None
    assert 'elbow sweeps at 2 speed(s), too few' in notes[0]
    assert curve.summary.parameters == () and curve.summary.curve is None
    four = points(stribeck(LADDER[::3]), LADDER[::3])
    curve, notes = friction_curve('elbow', four, 'stribeck')
    assert curve.fit is None
    assert 'elbow sweeps at 4 speeds, too few for the law stribeck; sweep at ' in notes[0]
    with pytest.raises(UsageError, match='choose one of'):
        friction_curve('elbow', four, 'grease')


@pytest.mark.parametrize(('law', 'needed'), [('coulomb', 3), ('stribeck', 6)])
def test_friction_curve_messages_ask_for_the_speeds_a_law_needs(law: str, needed: int) -> None:
    """Those that the law needs in all, whatever shows at the few there are; these are enough."""
    true = {'coulomb': coulomb, 'stribeck': stribeck}[law]
    sliding = LADDER[4:] if law == 'coulomb' else LADDER  # beyond the ramp
    for count in range(1, needed):
        speeds = sliding[:count]
        curve, notes = friction_curve('elbow', points(true(speeds), speeds), law)
        if curve.fit is None:
            assert notes[0].endswith(f'sweep at {needed} or more'), notes
    for count in (needed - 1, needed):
        speeds = sliding[np.linspace(0, len(sliding) - 1, count).astype(int)]
        curve, _ = friction_curve('elbow', points(true(speeds), speeds), law)
        assert (curve.fit is not None) is (count == needed)


def test_friction_curve_asks_for_one_speed_more_than_a_fit_at_slow_ones_chooses() -> None:
    slow = np.array([1e-3, 2e-3, 4e-3])  # in the ramp: fv, fc, width
    _, notes = friction_curve('a', points(coulomb(slow), slow), 'coulomb')
    assert notes == ('a sweeps at 3 speeds, too few for the law coulomb; sweep at 4 or more',)


@pytest.mark.parametrize(('shape', 'least', 'most'), [
    ('width', 2e-3, 0.02), ('speed', 20.0, 1e4)])
@pytest.mark.parametrize(('factor', 'inside'), [(0.95, False), (1.05, True)])
def test_speeds_needed_count_a_shape_that_changes_a_column_by_a_thousandth(
    shape: str, least: float, most: float, factor: float, inside: bool
) -> None:
    """At 0.02 to 10 rad/s, between 90 % and 110 % of the width of a ramp, or Stribeck speed."""
    law = law_from('stribeck', {'width': 1e-4, 'speed': 1.0})
    speeds = np.geomspace(0.02, 10.0, 60)

    def excess(value: float) -> float:
        low, high = (odd_columns(replace(law, **{shape: f * value}), speeds) for f in (0.9, 1.1))
        return float(np.max(np.abs(low - high) - 1e-6 - 1e-3 * np.abs(high)))

    limit = brentq(excess, least, most, rtol=1e-6)
    needed = speeds_needed(replace(law, **{shape: limit * (
        factor if shape == 'width' else 1.0 / factor)}))
    other = int(shape == 'width')  # the Stribeck speed of one counts, the width does not
    assert needed == 3 + other + inside + 1


def test_the_summary_of_a_curve_holds_points_law_and_band() -> None:
    curve, _ = friction_curve('a', points(coulomb(np.array(SPEEDS)), np.array(SPEEDS)))
    assert isinstance(curve, FrictionCurve)
    kept = curve.summary
    assert kept.law == 'coulomb' and kept.curve is not None
    assert {p.name: p.value for p in kept.parameters} == pytest.approx({'fv': 2.0, 'fc': 3.0})
    assert [p.std for p in kept.parameters] == pytest.approx(
        np.sqrt(np.diag(curve.fit.covariance))[:2].tolist())  # type: ignore[union-attr]
    assert kept.curve.speed == pytest.approx(np.geomspace(SPEEDS[0], SPEEDS[-1], 60))
    for low, value, high in zip(kept.curve.lower, kept.curve.friction, kept.curve.upper,
                                strict=True):
        assert low < value < high
    assert all(p.lower < p.friction < p.upper for p in kept.points)
