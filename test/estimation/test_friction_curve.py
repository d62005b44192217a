"""estimation/friction_sweeps.py: laws through points of friction: every law, the choice, bands,
against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from single_joint_recordings import SPEEDS, coulomb, law_torque, stribeck

from robot_dynid.errors import UsageError
from robot_dynid.estimation.friction_sweeps import (
    FrictionCurve,
    SpeedPoint,
    distinguishable_laws,
    fit_law,
    friction_curve,
    odd_columns,
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


def test_the_fit_is_that_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(0)
    std = rng.uniform(0.01, 0.1, len(LADDER[6:]))
    speeds = LADDER[6:]
    torque = coulomb(speeds) + std * rng.standard_normal(len(speeds))
    known = [SpeedPoint(float(v), float(t), float(s), 1000, 1, 0.0)
             for v, t, s in zip(speeds, torque, std)]
    fit = fit_law(law_from('coulomb'), known)
    oracle = sm.WLS(torque, np.column_stack([speeds, np.ones_like(speeds)]), std**-2).fit()
    np.testing.assert_allclose(fit.values[:2], oracle.params, rtol=1e-8)
    unscaled = oracle.normalized_cov_params * max(1.0, oracle.scale)
    np.testing.assert_allclose(fit.covariance[:2, :2], unscaled, rtol=1e-6)


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
    speeds = sliding[np.linspace(0, len(sliding) - 1, needed).astype(int)]
    assert friction_curve('elbow', points(true(speeds), speeds), law)[0].fit is not None


def test_the_summary_of_a_curve_holds_points_law_and_band() -> None:
    curve, _ = friction_curve('a', points(coulomb(np.array(SPEEDS)), np.array(SPEEDS)))
    assert isinstance(curve, FrictionCurve)
    kept = curve.summary
    assert kept.law == 'coulomb' and kept.curve is not None
    assert {p.name: p.value for p in kept.parameters} == pytest.approx({'fv': 2.0, 'fc': 3.0})
    for low, value, high in zip(kept.curve.lower, kept.curve.friction, kept.curve.upper,
                                strict=True):
        assert low < value < high
    assert all(p.lower < p.friction < p.upper for p in kept.points)
