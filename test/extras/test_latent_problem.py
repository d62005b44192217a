"""robot_dynid_extras/latent/motion.py: guess, steps, errors, likelihood, by hand and densely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from motions import torque_model, truth_of

from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray
from robot_dynid_extras.latent.motion import (
    Channel,
    Condensed,
    LatentProblem,
    LatentState,
    Searched,
    Stretch,
)
from robot_dynid_extras.latent.motion_spline import MotionSpline

MODEL = torque_model('planar_3r')
MODEL_NAMES = MODEL.reduction.names
RATE = 500.0


def stretch(seed: int, seconds: float, joints: int = 3, rows: int = 3, **more: Any) -> Stretch:
    """Return a stretch in which joints turn, the second one back in its middle; noisy."""
    rng = np.random.default_rng(seed)
    time = 2.0 + np.arange(round(seconds * RATE) + 1) / RATE
    rate, size = np.linspace(3.0, 5.0, joints), np.linspace(0.5, 0.9, joints)
    phase = np.where(np.arange(joints) == 1, 0.5 * np.pi - rate * (time[0] + 0.5 * seconds),
                     -rate * time[0])
    angle = rate * time[:, None] + phase
    channels = tuple(Channel(order, values + deviation * rng.standard_normal(values.shape),
                             deviation * np.linspace(1.0, 1.5, joints))
                     for order, values, deviation in (
                         (0, size * np.sin(angle), 1e-3), (1, size * rate * np.cos(angle), 1e-2)))
    stamps = time[:-1] + 0.4 / RATE
    return Stretch(time, channels, stamps, rng.normal(0.0, 3.0, (len(stamps), rows)), **more)


def problem(*stretches: Stretch, **more: Any) -> LatentProblem:
    """Return the problem of all base parameters of the planar arm."""
    return LatentProblem(MODEL, stretches, np.ones(len(MODEL_NAMES), dtype=bool), **more)





def handmade(normal: FloatArray, right: FloatArray, own: FloatArray | None = None,
             response: FloatArray | None = None) -> Condensed:
    """Return equations of a step; the motion takes up nothing."""
    return Condensed(normal, right, np.zeros(0) if own is None else own,
                     np.zeros((0, len(right))) if response is None else response,
                     np.zeros(3), np.ones(3))


@pytest.mark.parametrize(('rate', 'stamped', 'intervals', 'around'), [
    (1000.0, 700.0, 50, 4 * 3 + 1), (500.0, 700.0, 25, 4 * 6 + 1), (2000.0, 600.0, 50, 4 * 3 + 1)])
def test_knots_are_four_samples_and_four_milliseconds_apart_or_more(
    rate: float, stamped: float, intervals: int, around: int
) -> None:
    time = 1.0 + np.arange(0.2 * rate + 1) / rate
    stamps = 1.0 + np.arange(0.2 * stamped) / stamped + 1e-5
    one = Stretch(time, (), stamps, np.zeros((len(stamps), 3)))
    seen, told = one.splines
    assert (seen.intervals, told.intervals, one.around) == (intervals, intervals, around)
    coefficients = np.random.default_rng(0).normal(size=(intervals + 5, 2))
    assert [len(spline.motion(coefficients)[0]) for spline in (seen, told)] == [
        len(time), len(stamps)]


def test_a_state_of_some_stretches_has_theirs() -> None:
    parts = tuple(np.full((2, 3), float(i)) for i in range(4))
    state = LatentState(parts, np.arange(2.0), np.arange(3.0), np.ones(3), 0.3, parts[::-1])
    found = state.of([2, 0])
    assert [float(one[0, 0]) for one in (*found.coefficients, *found.counted)] == [2, 0, 1, 3]
    assert replace(state, counted=()).of([1]).counted == () and found.speed == 0.3


def shaped(low: float = 0.05, high: float = 0.8) -> tuple[Searched, ...]:
    """Return two settings that are sought."""
    return (Searched((0, 2), ('speed',), low, high), Searched((1,), ('speed',), low, high))


def test_the_step_solves_the_sum_of_equations_with_shapes_held_loosely() -> None:
    """Shapes have a deviation of one beside; without anything sought there is no step."""
    rng = np.random.default_rng(1)
    roots, rights = rng.normal(size=(2, 5, 5)), rng.normal(size=(2, 5))
    normals = roots @ roots.transpose(0, 2, 1)
    parts = [handmade(a, b) for a, b in zip(normals, rights, strict=True)]
    total = normals.sum(axis=0) + np.diag([0.0, 0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(problem(searched=shaped()).step(parts),
                               np.linalg.solve(total, rights.sum(axis=0)))
    np.testing.assert_allclose(problem().step(parts), np.linalg.solve(
        normals.sum(axis=0), rights.sum(axis=0)))
    assert problem().step([handmade(np.zeros((0, 0)), np.zeros(0))]).shape == (0,)
    scaled = np.array([1e-6, 1e-6, 0.5, 1e6, 1e6])  # what units are does not matter
    weak = [handmade(np.outer(scaled, scaled) * a, scaled * b)
            for a, b in zip(normals, rights, strict=True)]
    np.testing.assert_allclose(problem().step(weak) * scaled, problem().step(parts), rtol=1e-6)


def test_a_step_changes_chosen_parameters_shapes_within_bounds_and_motions() -> None:
    rng = np.random.default_rng(2)
    chosen = np.zeros(len(MODEL_NAMES), dtype=bool)
    chosen[[3, 7]] = True
    one = LatentProblem(MODEL, (), chosen, shaped())
    responses = [rng.normal(size=(6, 4)), rng.normal(size=(9, 4))]
    owns = [rng.normal(size=6), rng.normal(size=9)]
    parts = [handmade(np.eye(4), np.zeros(4), own, response)
             for own, response in zip(owns, responses, strict=True)]
    coefficients = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
    state = LatentState(coefficients, rng.normal(size=len(chosen)), np.array([0.2, 0.7]),
                        np.ones(3), 0.1)
    for change, shapes in (([0.4, -0.3, 0.1, -0.2], [0.2 * np.exp(0.1), 0.7 * np.exp(-0.2)]),
                           ([0.4, -0.3, -0.5, 0.5], [0.2 * np.exp(-0.3), 0.8]),
                           ([0.4, -0.3, 0.31, -0.29], [0.2 * np.exp(0.3), 0.7 * np.exp(-0.29)])):
        found = one.stepped(state, parts, np.array(change))
        np.testing.assert_allclose(found.shapes, shapes)
        values = state.values.copy()
        values[[3, 7]] += [0.4, -0.3]
        np.testing.assert_array_equal(found.values, values)
        made = np.array([0.4, -0.3, *np.log(np.array(shapes) / [0.2, 0.7])])
        for c, before, own, response in zip(found.coefficients, coefficients, owns, responses,
                                            strict=True):
            np.testing.assert_allclose(c, before + (own - response @ made).reshape(c.shape))
    near = replace(state, shapes=np.array([0.06, 0.7]))
    found = one.stepped(near, parts, np.array([0.0, 0.0, -0.25, 0.25]))
    np.testing.assert_allclose(found.shapes, [0.05, 0.8])


def exact_state(one: LatentProblem, **more: Any) -> LatentState:
    """Return a state along the measured positions, with the true parameters nearly."""
    own = {'coefficients': tuple(part.splines[0].fitted(part.channels[0].values)
                                 for part in one.stretches),
           'values': 1.1 * truth_of(MODEL) if one.model is MODEL else np.zeros(len(one.chosen)),
           'shapes': np.zeros(0), 'errors': np.array([0.5, 0.8, 0.3]), 'speed': 0.3}
    return LatentState(**(own | more))


def test_the_likelihood_is_by_cauchys_distribution_and_the_noise_of_channels() -> None:
    """By the formula, of two of three stretches; and with motions that are followed first."""
    one = problem(stretch(0, 0.2), stretch(1, 0.24), stretch(2, 0.3), slowest=np.zeros(3))
    state = exact_state(one)
    off, counted, seen, samples = np.zeros(3), np.zeros(3), 0.0, 0
    part, here = replace(one, stretches=one.stretches[::2]), state.of([0, 2])
    for along, c in zip(part.along(here, part.motions_of(here)), here.coefficients, strict=True):
        columns, own = along.columns, along.stretch
        misfit = own.effort - np.einsum('b,nbm->mn', state.values, columns)
        np.testing.assert_allclose(along.misfit(state.values), misfit)
        assert 0 < along.counts[:, 1].sum() < len(misfit)  # about its reversal
        off += (along.counts * np.log1p((misfit / (2.385 * state.errors))**2)).sum(axis=0)
        counted += along.counts.sum(axis=0)
        seen += sum(np.sum(((k.values - at) / k.deviation)**2) for k, at in zip(
            own.channels, own.splines[0].motion(c), strict=False))
        samples += len(own.time)
    expected = np.sum(np.log(state.errors) + 0.5 * 2.385**2 * off / counted) + 0.5 * seen / samples
    assert one.misfit(state, [0, 2], 0) == pytest.approx(expected)
    followed = part.with_best_motion(part.with_best_motion(here))
    assert one.misfit(state, [0, 2], 2) == pytest.approx(part.misfit(followed, [0, 1], 0))
    assert one.misfit(state, [0, 2], 2) < one.misfit(state, [0, 2], 0)


def test_axes_that_are_slow_do_not_count_nor_those_that_did_not_before() -> None:
    one = problem(stretch(0, 0.2))
    state = exact_state(one, speed=0.5)
    motions = one.motions_of(state)
    [plain], [own], [before] = (list(of.along(now, motions)) for of, now in (
        (one, state), (replace(one, slowest=np.array([0.2, 0.65, 0.2])), state),
        (one, replace(state, counted=(np.arange(300.0).reshape(-1, 3) % 2,)))))
    turning, half = np.abs(np.diff(motions[0][0], axis=0)) * RATE, one.stretches[0].around // 2
    for found, least in ((plain, 0.5), (own, 0.65)):
        slow = np.flatnonzero(turning[:, 1] < least)
        rows = np.flatnonzero(found.counts[:, 1] == 0.0)
        assert rows[0] == pytest.approx(max(slow[0] - half, 0), abs=1)
        assert rows[-1] == pytest.approx(min(slow[-1] + half, 99), abs=2)
    np.testing.assert_array_equal(before.counts, plain.counts * (
        np.arange(300.0).reshape(-1, 3) % 2))


def coarse_motion(one: Stretch, spacing: float) -> list[FloatArray]:
    """Return the smooth motion at the stamps, by dense least squares over both channels."""
    spline, joints = MotionSpline(one.time, spacing), one.channels[0].values.shape[1]
    count = spline.intervals + 5
    columns = [spline.motion(np.eye(count))[k] for k in range(2)]
    found = np.empty((count, joints))
    for j in range(joints):
        rows = np.vstack([m / k.deviation[j] for m, k in zip(columns, one.channels, strict=True)])
        right = np.concatenate([k.values[:, j] / k.deviation[j] for k in one.channels])
        found[:, j] = np.linalg.lstsq(rows, right)[0]
    return spline.at(one.stamps).motion(found)


def spread(one: LatentProblem, state: LatentState, motions: Sequence[list[FloatArray]]
           ) -> FloatArray:
    """Return the errors of the equations that count, by their median."""
    sizes = [np.where(along.counts > 0.0, np.abs(along.misfit(state.values)), np.nan)
             for along in one.along(state, motions)]
    return np.asarray(np.nanmedian(np.concatenate(sizes), axis=0) / 0.67449)


def test_the_guess_is_least_squares_along_a_motion_of_coarse_knots() -> None:
    """Three rounds, each by the errors of that before; 30 ms between knots."""
    one = problem(stretch(3, 0.3), stretch(4, 0.24))
    motions = [coarse_motion(part, 0.03) for part in one.stretches]
    state = exact_state(one, values=np.zeros(len(MODEL_NAMES)), errors=np.ones(3), speed=0.1)
    for _ in range(3):
        rows, right = [], []
        for along in one.along(state, motions):
            weights = (along.counts / state.errors).T
            rows.append((along.columns * weights[:, None]).transpose(0, 2, 1).reshape(
                -1, len(MODEL_NAMES)))
            right.append((along.stretch.effort.T * weights).ravel())
        values = np.linalg.lstsq(np.vstack(rows), np.concatenate(right))[0]
        state = replace(state, values=values)
        state = replace(state, errors=spread(one, state, motions))
    found = one.guess()
    np.testing.assert_allclose(found.errors, state.errors, rtol=1e-3)
    np.testing.assert_allclose(
        next(one.along(found, motions)).misfit(found.values),
        next(one.along(state, motions)).misfit(state.values),
        rtol=0.0, atol=1e-5)
    assert found.speed == 0.1 and found.shapes.shape == (0,) and found.counted == ()
    given = one.guess(values=truth_of(MODEL))
    np.testing.assert_array_equal(given.values, truth_of(MODEL))
    np.testing.assert_allclose(given.errors, spread(one, given, motions), rtol=1e-4)
    for c, part, motion in zip(given.coefficients, one.stretches, motions, strict=True):
        np.testing.assert_allclose(part.splines[1].motion(c)[0], motion[0], rtol=0.0, atol=1e-6)
    slow = replace(one.stretches[1], time=one.stretches[1].time[::5], channels=tuple(
        replace(k, values=k.values[::5]) for k in one.stretches[1].channels))
    found = problem(slow).guess(values=truth_of(MODEL))  # at 100 Hz four samples are 40 ms
    np.testing.assert_allclose(slow.splines[1].motion(found.coefficients[0])[0],
                               coarse_motion(slow, 0.04)[0], rtol=0.0, atol=1e-6)


def test_errors_of_links_behind_gears_are_a_fifth_to_all_of_their_motors() -> None:
    robot = load_robot('elastic_2r')
    model = Structure.uniform(robot, True, 'coulomb', {'width': 0.02}).torque_model(robot)
    part = stretch(5, 0.2, joints=4, rows=4)
    part.effort[:, :2] = part.effort[:, 2:]
    one = LatentProblem(model, (part,), np.ones(len(model.reduction.names), dtype=bool))
    shares = []
    for name, value in (('K1', 5.0), ('Izz1', 50.0), ('Izz1', 1e-6)):
        values = np.zeros(len(one.chosen))
        values[model.reduction.names.index(name)] = value
        state = LatentState((), values, np.zeros(0), np.ones(4), 0.1)
        free = spread(one, state, [coarse_motion(part, 0.03)])
        errors = one.guess(values=values).errors
        np.testing.assert_allclose(errors[2:], free[2:], rtol=1e-4)
        assert errors[0] == pytest.approx(np.clip(free[0], 0.2 * free[2], free[2]), rel=1e-4)
        shares.append(errors[0] / errors[2])
        if name == 'K1':  # nothing holds the other link
            assert errors[1] == pytest.approx(0.2 * errors[3], rel=1e-4)
    assert 0.3 < shares[0] < 0.999 and shares[1:] == pytest.approx([1.0, 0.2])


@pytest.mark.parametrize(('moved', 'share'), [(0.019, 0.7), (0.021, 0.95)])
def test_errors_fall_slowly_as_long_as_shapes_move(moved: float, share: float) -> None:
    """To seven tenths in a round, to 95 % where the logarithm of a shape moves by 2 %."""
    structure = Structure.uniform(load_robot('planar_3r'), True, 'stribeck', {'width': 0.05})
    model = structure.torque_model(load_robot('planar_3r'))
    count = len(model.reduction.names)
    one = LatentProblem(model, (stretch(0, 0.2),), np.zeros(count, dtype=bool), shaped())
    state = exact_state(one, values=np.zeros(count), shapes=np.array([0.2, 0.3]),
                        errors=np.array([400.0, 500.0, 600.0]))
    zero = np.zeros(state.coefficients[0].size)
    parts = [handmade(np.zeros((2, 2)), np.array([moved, 0.5 * moved]), zero,
                      np.zeros((len(zero), 2)))]
    found = one.better(state, parts, 0.05)
    np.testing.assert_allclose(found.errors, share * state.errors)
    np.testing.assert_allclose(found.shapes, [0.2 * np.exp(moved), 0.3 * np.exp(0.5 * moved)])
    assert found.speed == 0.05


def test_errors_take_in_what_the_motion_takes_up() -> None:
    """A share of the variance, nine tenths at most; not below a thousandth of the effort."""
    one = problem(stretch(0, 0.2)).with_known_parameters
    state = exact_state(one, errors=np.full(3, 1e-6))
    zero = np.zeros(state.coefficients[0].size)
    absorbed, counted = np.array([30.0, 99.0, 0.0]), np.array([80.0, 100.0, 0.0])
    part = Condensed(np.zeros((0, 0)), np.zeros(0), zero, np.zeros((len(zero), 0)), absorbed,
                     counted)
    found = one.better(state, [part], 0.3)
    plain = spread(one, found, one.motions_of(found))
    np.testing.assert_allclose(found.errors, plain / np.sqrt([1.0 - 30.0 / 80.0, 0.1, 1.0]),
                               rtol=1e-4)
    own = one.stretches[0]
    exact = next(one.along(found, one.motions_of(found)))
    effort = np.einsum('b,nbm->mn', state.values, exact.columns)
    still = replace(one, stretches=(replace(own, effort=effort),))
    low = still.better(replace(found, errors=state.errors), [replace(
        part, absorbed=0.0 * absorbed)], 0.3).errors
    np.testing.assert_allclose(low, 1e-3 * effort.std(axis=0), rtol=1e-6)


def scripted(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, LatentState], LatentState],
             normal: FloatArray) -> list[float]:
    """Let rounds of a fit do ``change``; return the speeds that they are asked for."""
    speeds: list[float] = []

    def better(self: LatentProblem, state: LatentState, condensed: object, speed: float
               ) -> LatentState:
        speeds.append(speed)
        return change(len(speeds), replace(state, speed=speed))

    def along(self: LatentProblem, state: LatentState, motions: object) -> Iterator[Any]:
        return iter(())

    monkeypatch.setattr(LatentProblem, 'better', better)
    monkeypatch.setattr(LatentProblem, 'along', along)
    monkeypatch.setattr(LatentProblem, 'condensed', lambda self, state: (
        handmade(normal, np.zeros(len(normal))),) * 2)
    return speeds


@pytest.mark.parametrize(('what', 'settled', 'moving'), [
    ('values', 0.0384, 0.0390), ('errors', 1.00295, 1.00305), ('shapes', 1.00295, 1.00305)])
def test_a_fit_ends_where_errors_shapes_and_parameters_stay(
    what: str, settled: float, moving: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To 0.3 %, parameters to the root of it in deviations; after all speeds, or 30 rounds."""
    chosen = np.arange(len(MODEL_NAMES)) == 4
    part = stretch(0, 0.2)
    one = LatentProblem(MODEL, (part,), chosen, shaped()[:1])
    state = exact_state(one, values=np.zeros(len(chosen)), shapes=np.array([0.2]))
    stages: list[tuple[str, float]] = []
    for size, rounds in ((settled, 7), (moving, 30)):
        def change(number: int, now: LatentState, size: float = size) -> LatentState:
            if what == 'values':
                return replace(now, values=now.values + size * chosen)
            return replace(now, **{what: getattr(now, what) * size})

        with monkeypatch.context() as patch:
            speeds = scripted(patch, change, np.diag([1.0, 1e6]))
            stages.clear()
            found = one.fit(state, lambda *stage: stages.append(stage))
        assert found.rounds == len(speeds) == rounds
        np.testing.assert_array_equal(
            found.motion[0], part.splines[0].motion(state.coefficients[0]))
        assert speeds == [0.1, 0.05, 0.03, 0.02, 0.014, *[0.01] * (rounds - 5)]
        assert stages == [('estimating motion and parameters at once', k / 30.0)
                          for k in range(rounds)]


@pytest.mark.parametrize(('short', 'exact'), [(0.3, True), (0.12, True), (1e-5, False)])
def test_a_fit_without_a_group_lengthens_steps_that_are_too_short(
    short: float, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that is a share of the way twice tells that share; eightfold at most."""
    chosen = np.arange(len(MODEL_NAMES)) == 4
    one = LatentProblem(MODEL, (stretch(0, 0.2),) * 3, chosen)
    state = LatentState(tuple(np.full((2, 3), float(i)) for i in range(3)),
                        np.zeros(len(chosen)), np.zeros(0), np.ones(3), 0.1, ())
    seen: list[int] = []

    def condensed(self: LatentProblem, here: LatentState) -> tuple[Condensed, ...]:
        seen.append(len(self.stretches))
        assert [float(c[0, 0]) for c in here.coefficients] == [0.0, 2.0]
        normal = np.array([[3.0]])
        return (handmade(normal, normal @ (short * (5.0 - here.values[chosen])), np.zeros(6),
                         np.zeros((6, 1))),) * 2

    monkeypatch.setattr(LatentProblem, 'condensed', condensed)
    found = one.without(state, [1])
    assert seen == 6 * [2] and found.coefficients is state.coefficients
    left, before = 5.0, None
    for _ in range(6):
        step = short * left
        change = step
        if before is not None:
            share = max(step / (step - before[1]), -8.0)
            change = step - share * (before[0] + step - before[1])
        before, left = (change, step), left - change
        if left == 0.0:
            break
    assert found.values[4] == pytest.approx(5.0 if exact else 5.0 - left, abs=1e-9)
    assert exact or 0.5 < left < 4.5
    assert not found.values[~chosen].any()


def test_a_motion_that_is_free_takes_up_all_of_few_equations() -> None:
    part = stretch(0, 0.2)
    few = replace(part, stamps=part.stamps[::20], effort=part.effort[::20], channels=tuple(
        replace(k, deviation=1e3 * k.deviation) for k in part.channels))
    one = problem(few).with_known_parameters
    [found] = one.condensed(exact_state(one, speed=0.1))
    assert found.counted.min() > 0.0
    np.testing.assert_allclose(found.absorbed, found.counted, rtol=0.01)


def test_the_first_stretch_begins_whatever_was_before_it() -> None:
    parts = stretch(0, 0.2), stretch(1, 0.24, goes_on=True)
    one, alone = problem(*parts), problem(replace(parts[1], goes_on=False))
    state = exact_state(one)
    assert one.misfit(state, [1], 0) == alone.misfit(state.of([1]), [0], 0)


def test_equations_change_with_the_logarithms_of_shapes() -> None:
    """The last columns, against differences of the equations themselves."""
    structure = Structure.uniform(load_robot('planar_3r'), True, 'stribeck', {'width': 0.05})
    model = structure.torque_model(load_robot('planar_3r'))
    rng = np.random.default_rng(0)
    values = rng.uniform(0.5, 2.0, len(model.reduction.names))
    one = LatentProblem(model, (stretch(0, 0.2), stretch(1, 0.1, goes_on=True), stretch(
        2, 0.1, recording=1)), np.ones(len(values), dtype=bool), shaped(high=8.0))
    state = exact_state(one, values=values, shapes=np.array([2.0, 1.5]))
    motions = one.motions_of(state)

    def misfits(first: float, second: float) -> list[FloatArray]:
        there = replace(state, shapes=state.shapes * np.exp([first, second]))
        return [along.misfit(values) for along in one.along(there, motions)]

    for k in range(2):
        step = np.array([1e-3, 0.0]) if k == 0 else np.array([0.0, 1e-3])
        for along, there, back in zip(one.along(state, motions), misfits(*step), misfits(*-step),
                                      strict=True):
            change = (back - there) / 2e-3
            assert np.abs(change).max() > 0.1
            np.testing.assert_allclose(along.columns[:, len(values) + k].T, change, rtol=1e-3,
                                       atol=1e-3 * np.abs(change).max())


def test_equations_of_a_step_are_those_of_dense_elimination() -> None:
    """Of parameters and motion at once; what the motion takes up is known by random signs."""
    one = problem(stretch(0, 0.2))
    state = exact_state(one)
    [found], [along] = one.condensed(state), list(one.along(state, one.motions_of(state)))
    seen, told = along.stretch.splines
    count = seen.intervals + 4
    misfit = along.misfit(state.values)
    weights = along.counts / state.errors / np.sqrt(1.0 + (misfit / 2.385 / state.errors)**2)
    position, velocity, acceleration = along.motion
    slopes = along.equations.slopes((position, velocity, acceleration), state.values)
    basis = told.motion(np.eye(count))
    by_motion = sum(np.einsum('nr,nrm,nc->nrcm', weights, slope, own)
                    for slope, own in zip(slopes, basis, strict=True)).reshape(-1, 3 * count)
    by_values = (along.columns * weights.T[:, None]).transpose(2, 0, 1).reshape(
        -1, len(MODEL_NAMES))
    off = (misfit * weights).ravel()
    whole, right = by_motion.T @ by_motion, by_motion.T @ off
    at = seen.motion(state.coefficients[0])
    for k in along.stretch.channels:
        basis_seen = seen.motion(np.eye(count))[k.order]
        local = np.einsum('nc,md->ncmd', basis_seen, np.diag(1.0 / k.deviation)).transpose(
            0, 2, 1, 3).reshape(-1, 3 * count)
        whole = whole + local.T @ local
        right = right + local.T @ ((k.values - at[k.order]) / k.deviation).ravel()
    cross, inverse = by_motion.T @ by_values, np.linalg.inv(whole)
    scale = np.sqrt(np.diag(by_values.T @ by_values))
    np.testing.assert_allclose(
        found.normal / np.outer(scale, scale),
        (by_values.T @ by_values - cross.T @ inverse @ cross) / np.outer(scale, scale),
        rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.right, by_values.T @ off - cross.T @ inverse @ right,
                               rtol=1e-5, atol=1e-8 * np.abs(by_values.T @ off).max())
    np.testing.assert_allclose(found.own, inverse @ right, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.response, inverse @ cross, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(found.counted, along.counts.sum(axis=0))
    rows = by_motion.reshape(-1, 3, 3 * count)
    np.testing.assert_allclose(found.absorbed, [np.trace(
        rows[:, j] @ inverse @ rows[:, j].T) for j in range(3)], rtol=0.3)
