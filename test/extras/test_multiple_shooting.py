"""robot_dynid_extras/trajectory/multiple_shooting.py, simulation.py, trajectory_fit.py: how steps,
lengths and weights are chosen, by costs and growths that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from motions import lively, torque_model, truth_of

from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Batch, Information
from robot_dynid.estimation.least_squares import batch_covariance, joint_weights, solve
from robot_dynid.kernels.rollout import STAGES
from robot_dynid.types import FloatArray
from robot_dynid_extras.trajectory import multiple_shooting, simulation, trajectory_fit
from robot_dynid_extras.trajectory.arm import ArmModel
from robot_dynid_extras.trajectory.intervals import Intervals, intervals_of
from robot_dynid_extras.trajectory.multiple_shooting import (
    Condensed,
    EquationError,
    MultipleShooting,
    Shot,
)
from robot_dynid_extras.trajectory.simulation import (
    Simulated,
    interpolation,
    interval_length,
    simulate,
)
from robot_dynid_extras.trajectory.trajectory_fit import (
    LEAST_GAIN,
    Comparison,
    Fitted,
    TrajectoryDetails,
    interval_rollouts,
)

MODEL = torque_model('planar_3r')
ARM, TRUTH = ArmModel(MODEL), truth_of(MODEL)
EXPERIMENT = Experiment.of(MODEL, [lively(MODEL, 200, noise=0.02), lively(MODEL, 140, noise=0.1)])
INTERVALS = tuple(intervals_of(ARM, EXPERIMENT, 0.15, 50))
NOTHING: Any = None


def fit_along(
    cost: Any, target: float, monkeypatch: pytest.MonkeyPatch, allowed: float = 9.0,
    beside: Any = lambda value: 0.0,
) -> tuple[float, int, list[float]]:
    """Return where a fit of one number ends, its rounds, and the initial states it tried last.

    ``cost`` is that by number; steps go by ``target``; numbers up to ``allowed`` are.
    """
    starts: list[float] = []

    def at(self: MultipleShooting, values: FloatArray, own: Sequence[FloatArray]) -> Shot:
        starts.append(float(own[0][0, 0]))
        return Shot(values, tuple(own), np.exp(np.array([cost(values[0]) - 0.5,
                                                         cost(values[0]) + 0.5])))

    def condensed(self: MultipleShooting, shot: Shot) -> Condensed:
        return Condensed(NOTHING, (), (np.array([[3.0]]),), (np.array([[[2.0]]]),))

    monkeypatch.setattr(MultipleShooting, 'at', at)
    monkeypatch.setattr(MultipleShooting, 'condensed', condensed)
    shooting = MultipleShooting(ARM, (), free=True)
    first = shooting.at(np.zeros(1), (np.array([[10.0]]),))
    rules = SimpleNamespace(target=lambda information, values: values + target,
                            allowed=lambda values: values[0] <= allowed)
    other = SimpleNamespace(cost=lambda values: beside(values[0]),
                            joined=lambda information, values: information)
    shot, _, rounds = shooting.fit(first, shooting.condensed(first), rules, other)
    return float(shot.values[0]), rounds, starts


def test_a_fit_goes_on_while_the_cost_falls_by_three_in_ten_thousand(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve rounds at most; what is beside the simulation counts as it does."""
    for fall, rounds in ((3.1e-4, 12), (2.9e-4, 1)):
        assert fit_along(lambda x, fall=fall: -fall * x, 1.0, monkeypatch, 99.0)[:2] == (
            rounds, rounds)
        assert fit_along(lambda x: 1e-4 * x, 1.0, monkeypatch, 99.0, lambda x, fall=fall: -(
            fall + 1e-4) * (x + 5.0))[:2] == (rounds, rounds)
    assert fit_along(lambda x: -x, 1.0, monkeypatch, 99.0, lambda x: 1.1 * (x - 5.0))[:2] == (
        0.0, 0)


@pytest.mark.parametrize(('lowest', 'reached'), [
    (1.1, 1.0), (0.26, 0.5), (0.24, 0.25), (1.9 / 128, 2 / 128), (0.52 / 128, 1 / 128),
    (0.49 / 128, 0.0)])
def test_steps_that_do_not_lower_the_cost_are_halved_seven_times(
    lowest: float, reached: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost is least at ``lowest``; initial states go the same share."""
    value, rounds, starts = fit_along(
        lambda x: abs(x - lowest) if x <= 1.0 else 9.0, 1.0, monkeypatch)
    assert rounds >= (reached > 0.0)
    first = [10.0 + 0.5**k * (3.0 - 2.0 * 1.0) for k in range(8)]
    tried = 1 if reached == 1.0 else 8 if reached == 0.0 else round(-np.log2(reached)) + 1
    assert starts[1:1 + tried] == first[:tried]
    assert value >= reached


def test_steps_to_what_is_not_allowed_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    value, _, starts = fit_along(lambda x: -x if x <= 0.3 else np.nan, 1.0, monkeypatch, 0.6)
    assert starts[1:3] == [10.5, 10.25] and value == pytest.approx(0.3, abs=0.01)


def test_the_cost_is_the_mean_logarithm_of_deviations_and_states_move_with_a_step() -> None:
    assert Shot(TRUTH, (), np.array([0.1, 0.4, 3.0])).cost == pytest.approx(np.log(0.12) / 3.0)
    rng = np.random.default_rng(0)
    starts = tuple(rng.normal(size=(k, 4)) for k in (2, 3))
    own = tuple(rng.normal(size=(k, 4)) for k in (2, 3))
    response = tuple(rng.normal(size=(k, 4, 5)) for k in (2, 3))
    step = rng.normal(size=5)
    for found, s, o, r in zip(Condensed(NOTHING, (), own, response).moved(starts, step, 0.3),
                              starts, own, response, strict=True):
        np.testing.assert_allclose(found, s + 0.3 * (o - np.einsum('kcb,b->kc', r, step)))


def test_deviations_are_of_all_states_of_all_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 1e-9 of the size of a channel, or 1e-12 of the largest."""
    shooting = MultipleShooting(ARM, INTERVALS, free=False)
    assert shooting.count == sum(len(one.position) for one in INTERVALS) and len(INTERVALS) == 2
    values = 1.02 * TRUTH
    shot = shooting.begin(values)
    arm, off = ARM.with_values(values), []
    for one, start in zip(INTERVALS, shot.starts, strict=True):
        np.testing.assert_array_equal(start, one.states[:, 0])
        off.append((simulate(arm, one, start).states - one.states).reshape(-1, 6))
    np.testing.assert_allclose(shot.deviation, np.sqrt(np.mean(np.vstack(off)**2, axis=0)))
    still = tuple(replace(one, velocity=one.velocity * np.array([1.0, 1e-5, 1.0]))
                  for one in INTERVALS)
    monkeypatch.setattr(multiple_shooting, 'simulate', lambda arm, part, own: Simulated(
        part.states))
    least = MultipleShooting(ARM, still, free=False).begin(values).deviation
    size = np.sqrt(np.mean([np.mean(one.states**2, axis=(0, 1)) for one in still], axis=0))
    assert size[4] < 1e-3 * size.max()
    np.testing.assert_allclose(least, 1e-9 * np.maximum(size, 1e-3 * size.max()))


@pytest.mark.parametrize('lanes', [64, 4])
def test_intervals_that_follow_each_other_share_a_batch_where_there_are_many(
    lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tuple(one.part(slice(0, count)) for one, count in zip(INTERVALS, (5, 3), strict=True))
    shooting = MultipleShooting(ARM, parts, free=True)
    shot = shooting.begin(1.01 * TRUTH)
    alone = shooting.condensed(shot)
    assert alone.members == (*((0, slice(k, k + 1)) for k in range(5)),
                             *((1, slice(k, k + 1)) for k in range(3)))
    monkeypatch.setattr(multiple_shooting, 'MAX_BATCHES', 3)
    monkeypatch.setattr(multiple_shooting, 'LANES', lanes)
    found = shooting.condensed(shot)
    assert found.members == ((0, slice(0, 3)), (0, slice(3, 5)), (1, slice(0, 3)))
    assert [one.recording for one in found.information.batches] == [0, 0, 1]
    count = parts[0].states[0].size
    assert [one.samples for one in found.information.batches] == [3 * count, 2 * count, 3 * count]
    for a, b in zip((*found.own, *found.response), (*alone.own, *alone.response), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    squares = [sum(one.factors[0].T @ one.factors[0] for one in every.information.batches)
               for every in (found, alone)]
    np.testing.assert_allclose(*squares, rtol=1e-6, atol=1e-6 * np.abs(squares[0]).max())
    fixed = MultipleShooting(ARM, parts, free=False).condensed(shot)
    assert not np.any(fixed.own[0]) and not np.any(fixed.response[1])
    assert np.all(np.diag(sum(one.factors[0].T @ one.factors[0] for one in
                              fixed.information.batches))[:-3] >= np.diag(squares[1])[:-3])


def equations(*samples: int) -> Information:
    """Return information of two joints about three parameters, in batches of so many samples."""
    rng = np.random.default_rng(1)
    structure = np.array([[True, True, False], [True, True, True]])
    batches = tuple(Batch(tuple(rng.normal(size=(own.sum() + 3, own.sum() + 3)) for own in
                                structure), count) for count in samples)
    return Information(('a', 'b', 'c'), structure, batches)


def test_equations_beside_belong_to_the_nearest_intervals() -> None:
    """By the middles in samples: 20, 70, 140 and 220 beside 25, 115 and 205."""
    cut = INTERVALS[0].part(slice(0, 3))
    first = replace(cut, first=np.array([10, 100, 190]), span=30)
    information = equations(40, 60, 80, 80)
    condensed = Condensed(NOTHING, ((0, slice(0, 1)), (0, slice(1, 2)), (0, slice(2, 3))), (), ())
    found = EquationError.of(information, MultipleShooting(ARM, (first,), free=False), condensed)
    assert found.owner.tolist() == [0, 0, 1, 2]  # 70 is as near to both: the first
    assert (found.count, found.weight, len(found.equations)) == (2 * 260, 0.0, 4)
    assert found.outside([1]) == [0, 1, 3] and found.outside([0, 2]) == [2]
    wide = Condensed(NOTHING, ((0, slice(0, 2)), (0, slice(2, 3))), (), ())  # 70 and 205
    assert EquationError.of(information, MultipleShooting(ARM, (first,), free=False),
                            wide).owner.tolist() == [0, 0, 1, 1]
    values, weights = np.array([0.3, -0.7, 1.9]), joint_weights(information)
    total = 0.0
    for batch in information.batches:
        for weight, factor, own in zip(weights, batch.factors, information.structure, strict=True):
            rest = factor[:, :own.sum()] @ values[own] - factor[:, own.sum() + FILTERED]
            total += weight**2 * np.sum(rest**2)
    assert found.cost(values) == 0.0
    assert replace(found, weight=4.0).cost(values) == pytest.approx(2.0 * total / 520.0)


def test_equations_join_those_of_the_simulation_in_the_same_units() -> None:
    """Each batch has its own; a mean square counts ``weight`` times that of the simulation."""
    rng = np.random.default_rng(2)
    rows = tuple(rng.normal(size=(count, 4)) for count in (5, 3, 6))
    beside = EquationError(rows, np.array([0, 2, 0]), 50, 0.7)
    batches = tuple(Batch((np.triu(rng.normal(size=(6, 6))),), count) for count in (20, 30, 40))
    own = Information(('a', 'b', 'c'), np.ones((1, 3), dtype=bool), batches)
    values = np.array([0.3, -0.7, 1.9])
    found = beside.joined(own, values)
    assert found.batches[1] is batches[1] and replace(beside, weight=0.0).joined(
        own, values) is own
    for k, parts in ((0, (rows[0], rows[2])), (2, (rows[1],))):
        square = batches[k].factors[0].T @ batches[k].factors[0]
        for part in parts:
            wide = np.zeros((len(part), 3 + EXTRA))
            wide[:, :3] = part[:, :3]
            wide[:, 3 + FILTERED] = wide[:, 3 + RAW] = part[:, 3] - part[:, :3] @ values
            square = square + 0.7 * 90.0 / 50.0 * wide.T @ wide
        np.testing.assert_allclose(found.batches[k].factors[0].T @ found.batches[k].factors[0],
                                   square, rtol=1e-6, atol=1e-9)
        assert found.batches[k].samples == batches[k].samples


def test_interpolation_is_that_of_cubics() -> None:
    rng = np.random.default_rng(3)
    for place in (0.0, 0.2, 0.71, 1.0):
        cubic = np.polynomial.Polynomial(rng.normal(size=4))
        assert interpolation(place) @ cubic(np.arange(-1.0, 3.0)) == pytest.approx(cubic(place))


@pytest.mark.parametrize(('step', 'parts'), [
    (0.005, 1), (0.0051, 2), (0.01, 2), (0.0101, 3), (0.002, 1)])
def test_steps_of_the_simulation_are_of_five_milliseconds_at_most(
    step: float, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[float] = []
    solve = simulation.solve_stage

    def counted(friction: Any, load: Any, motion: Any, length: float, out: Any) -> None:
        lengths.append(length)
        solve(friction, load, motion, length, out)

    monkeypatch.setattr(simulation, 'solve_stage', counted)
    one = replace(INTERVALS[0].part(slice(0, 2)), step=step)
    simulate(ARM.with_values(TRUTH), one, one.states[:, 0])
    assert len(lengths) == STAGES * parts * one.steps
    implicit = np.diag(simulation.IMPLICIT)[:STAGES]
    np.testing.assert_allclose(lengths[:STAGES], step / parts * implicit)


def growing(
    rates: FloatArray, lengths: Sequence[float], monkeypatch: pytest.MonkeyPatch, across: float
) -> tuple[float, float]:
    """Return the length of intervals in which deviations grow at ``rates`` (K,) [1/s].

    Velocities make positions ``across`` times the time beside. Recordings have ``lengths``.
    """
    step, asked = 0.01, list[tuple[float, int]]()

    def cut(arm: object, experiment: object, seconds: float, most: int) -> list[Any]:
        asked.append((seconds, most))
        count = round(seconds / step)
        return [SimpleNamespace(step=step, steps=count, states=np.zeros((len(rates), count, 6)))
                ] if seconds in lengths else []

    def run(arm: object, intervals: Any, start: FloatArray, gradient: bool) -> Simulated:
        time = step * np.arange(intervals.steps + 1)
        found = np.zeros((len(rates), len(time), 6, 8))
        size = np.exp(rates[:, None] * time)
        for k in range(6):
            found[:, :, k, 2 + k] = size
        for k in range(3):
            found[:, :, k, 5 + k] = across * time
            found[:, 1:, 3 + k, 2 + k] = 0.5 / time[1:]
        found[-1, -3:] = np.nan
        return Simulated(start, found)

    monkeypatch.setattr(simulation, 'intervals_of', cut)
    monkeypatch.setattr(simulation, 'simulate', run)
    found = interval_length(ARM, NOTHING, TRUTH)
    assert asked == [(one, 32) for one in (1.0, 0.5, 0.2)][:len(asked)]
    return found


@pytest.mark.parametrize('across', [0.0, 0.5])
def test_intervals_are_as_long_as_deviations_grow_fourfold_in_nine_of_ten(
    across: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In sixteen steps from 0.2 s to the length there is, of which the last may not be finite."""
    def size(rate: float, time: float) -> float:
        grown = np.exp(rate * time)
        return float(np.linalg.norm([[grown, across], [0.5, grown]], 2))

    rates = np.append(np.linspace(0.1, 2.0, 18), [9.0, 9.2, 9.5])
    for longest, lengths in ((1.0, (1.0, 0.5)), (0.5, (0.5, 0.2))):
        for factor in (0.5, 1.0, 1.3):
            own = factor * rates
            grid = [t for t in np.linspace(0.2, longest, 17)
                    if t == 0.2 or size(own[18], round(t, 2)) <= 4.0]
            seconds, growth = growing(own, lengths, monkeypatch, across)
            assert seconds <= longest
            at = np.searchsorted(0.01 * np.arange(round(longest / 0.01) + 1), seconds - 1e-9)
            assert growth == pytest.approx(size(own[18], 0.01 * at))
            assert growth <= 4.0 or seconds == 0.2
            assert seconds == pytest.approx(grid[-1], abs=0.5 * (longest - 0.2) / 16 + 0.02)
    assert growing(0.1 * rates, (0.2,), monkeypatch, across)[0] == pytest.approx(0.2)
    assert growing(0.05 * rates, (0.5,), monkeypatch, across) == pytest.approx(
        (0.5, size(0.45, 0.5)))  # up to the end
    assert growing(rates, (), monkeypatch, across) == (0.2, 1.0)


@pytest.mark.parametrize(('gains', 'weight', 'free', 'rounds'), [
    ([0.009], 1.0, False, 1), ([0.011, 0.02, 0.0], 1.0, False, 2),
    ([0.2, 0.211, 0.22, 0.2], 0.1, False, 3), ([0.2, 0.211, 0.222, 0.231], 0.0, False, 3),
    ([0.2, 0.209, 0.211, 0.5], 1.0, True, 3), ([0.2, 0.25, 0.3, 0.311, 0.4], 0.0, True, 4)])
def test_the_weight_of_equations_falls_as_long_as_rollouts_get_better(
    gains: list[float], weight: float, free: bool, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a hundredth each time; free initial states are tried at the end, and settled."""
    left, settled, fits = list(gains), list[float](), list[Fitted]()

    def settle(self: Fitted, rules: object) -> Fitted:
        settled.append(self.beside.weight)
        fits.append(self)
        return replace(self, rounds=self.rounds + 1)

    monkeypatch.setattr(Fitted, 'settled', settle)
    monkeypatch.setattr(Fitted, 'errors', lambda self, group, values: np.full((2, 6), 0.5))
    monkeypatch.setattr(Fitted, 'rollouts', lambda self, rules: [np.full(
        (2, 6), 0.5 * np.exp(-2.0 * left.pop(0)))] * len(self.groups))
    monkeypatch.setattr(trajectory_fit, 'interval_length', lambda *_: (0.15, 2.5))
    found = ESTIMATORS['trajectory'].fit(EXPERIMENT)
    details = found.details
    assert isinstance(details, TrajectoryDetails)
    assert settled[0] == 1.0 and len(settled) == rounds
    assert (details.weight, details.free, details.start) == (weight, free, 'wls')
    assert (details.seconds, details.growth) == (0.15, 2.5)
    assert details.intervals == sum(len(one) for one in INTERVALS)
    best = {(1.0, False): 0, (0.1, False): 1, (0.0, False): 2, (1.0, True): 3, (0.0, True): 4}[
        weight, free]
    assert details.gain == pytest.approx(gains[best])
    assert details.kept is (details.gain > LEAST_GAIN) and details.margin == pytest.approx(0.0)
    np.testing.assert_allclose(details.error_of_start, np.sqrt(0.5))
    np.testing.assert_allclose(details.error_of_fit, np.sqrt(0.5) * np.exp(-gains[best]))
    if details.kept and best < 3:
        information = fits[best].information
        spread = batch_covariance(information, np.ones(1), solve(information, np.ones(1)))
        np.testing.assert_allclose(found.covariance, spread[0])
        assert found.degrees_of_freedom == spread[1] and not found.warnings


def test_rollouts_of_a_fit_are_those_of_stretches_left_out() -> None:
    """With the parameters of all others, from the measured states; in order of recordings."""
    shooting = MultipleShooting(ARM, INTERVALS, free=False)
    shot = shooting.begin(1.01 * TRUTH)
    condensed = shooting.condensed(shot)
    beside = EquationError.of(EXPERIMENT.information, shooting, condensed)
    fit = Fitted(shooting, shot, condensed, beside).weighted(0.5)
    assert fit.beside.weight == 0.5 and fit.rounds == 0
    first = len(INTERVALS[0])
    values = 0.98 * TRUTH
    mechanism = ARM.with_values(values).mechanism
    for rows, parts in (
            (range(first - 2, first + 1), ((0, first - 2, first), (1, 0, 1))),
            (range(1, 3), ((0, 1, 3),))):
        np.testing.assert_allclose(fit.errors(list(rows), values), np.concatenate([
            interval_rollouts(INTERVALS[i].part(slice(a, b)), mechanism) for i, a, b in parts]))
    asked: list[Any] = []

    def target(information: Information, begin: FloatArray) -> FloatArray:
        assert begin is shot.values
        asked.append(information)
        return (1.0 + 0.01 * len(asked)) * TRUTH

    found = fit.rollouts(SimpleNamespace(target=target))  # type: ignore[arg-type]
    count = len(condensed.members)
    assert fit.groups == [part.tolist() for part in np.array_split(np.arange(count), min(
        8, count))]
    whole = fit.information
    for k, (information, group, errors) in enumerate(zip(asked, fit.groups, found, strict=True)):
        assert information.samples == whole.samples - sum(
            whole.batches[i].samples for i in group)
        np.testing.assert_allclose(errors, fit.errors(group, (1.01 + 0.01 * k) * TRUTH))
    freed = fit.freed()
    assert freed.shooting.free and np.any(freed.condensed.own[0])


def test_rounds_of_a_fit_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    shot, condensed = Shot(TRUTH, (), TRUTH), Condensed(NOTHING, (), (), ())
    monkeypatch.setattr(MultipleShooting, 'fit', lambda self, *_: (shot, condensed, 3))
    found = Fitted(MultipleShooting(ARM, (), free=False), NOTHING, NOTHING, NOTHING, 4).settled(
        NOTHING)
    assert (found.rounds, found.shot, found.condensed) == (7, shot, condensed)


@pytest.mark.parametrize(('gain', 'better'), [(0.0104, True), (0.0096, False)])
def test_a_fit_has_to_be_better_by_a_hundredth(gain: float, better: bool) -> None:
    assert Comparison(TRUTH, TRUTH, gain, 0.001).better is better
    assert Comparison(TRUTH, TRUTH, 10.0 * gain, 0.1).better is better


def test_columns_of_intervals_are_those_of_friction_at_their_rows() -> None:
    """Of a recording whose first stretch is too short, and one of a single sample."""
    samples = replace(lively(MODEL, 700, step=0.001), starts=(0, 70))
    one = replace(lively(MODEL, 1), starts=(0,))
    [found] = intervals_of(ARM, Experiment.of(MODEL, [one, samples]), 0.1, 100)
    rows = 70 + 100 * np.arange(len(found))[:, None] + 5 * np.arange(23)
    assert found.recording == 1 and found.first.tolist() == (rows[:, 1] + 1).tolist()
    columns = MODEL.columns(samples)[:, ~ARM.moving]
    np.testing.assert_allclose(found.columns, columns.transpose(2, 0, 1)[rows])
    np.testing.assert_array_equal(found.velocity, samples.velocity[rows])
    few = intervals_of(ARM, Experiment.of(MODEL, [samples]), 0.001, 5000)[0]
    assert (few.steps, few.step) == (1, pytest.approx(0.005))


def test_parts_of_intervals_keep_their_rows() -> None:
    whole = INTERVALS[0]
    assert [rows for rows, _ in whole.parts(2)][:2] == [slice(0, 2), slice(2, 4)]
    assert sum(len(part) for _, part in whole.parts(2)) == len(whole)
    one: Intervals = whole.part(slice(1, 3))
    for name in ('first', 'position', 'velocity', 'effort', 'pressed', 'columns'):
        np.testing.assert_array_equal(getattr(one, name), getattr(whole, name)[1:3])
