"""Intervals of friction hold what differs between recordings; the spread is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, reduce
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tolerances import AGREEING, BETWEEN, COVERAGE, COVERAGE_OF_SCALES, NO_SPREAD, SAME_FORMULA

from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    batch_scores,
    joint_weights,
    solve,
)
from robot_dynid.estimation.uncertainty.between_recordings import (
    BatchScores,
    FrictionScales,
    between_recordings,
    friction_scales,
    recordings,
)
from robot_dynid.friction import law_from
from robot_dynid.friction.law import DRY, OFFSET, VISCOUS
from robot_dynid.identified.structure import Structure
from robot_dynid.io.log import load_log
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import Samples
from robot_dynid_evaluation.bench.arms import ur10e_model

SECONDS, RATE = 24.0, 20.0
#: noise of every sample [N m]; deviation of friction from one recording to the next
NOISE = 2.0
SPREAD = {'viscous': 0.12, 'dry': 0.04, 'offset': 0.02}
NONE = dict.fromkeys(SPREAD, 0.0)
VALUES = {'fv': 8.0, 'fc': 6.0, 'f0': 0.3, 'Ia': 1.0}


@cache
def model() -> TorqueModel:
    """Return six joints, all with Coulomb friction."""
    robot = load_robot('ur10e')
    return Structure.uniform(robot, True, 'coulomb', {'width': 0.02}).torque_model(robot)


@cache
def truth() -> np.ndarray:
    """Return the true base parameters (b,)."""
    own = model()
    others = [VALUES[name.rstrip('123456')] if not name.startswith('f0') else VALUES['f0']
              for name in own.reduction.standard[10 * own.robot.n:]]
    return own.reduction.base([*own.robot.nominal.ravel(), *others])


@cache
def recorded(number: int, began: float | None = None) -> Experiment:
    """Return a recording of a motion of its own, without noise."""
    own = model()
    time = np.arange(0.0, SECONDS, 1.0 / RATE)
    trajectory = random_fourier(motion_limits(own.robot).scaled(0.7), FourierOptions(SECONDS, 8),
                                np.random.default_rng(number))
    motion = trajectory.sample(time)
    samples = Samples(own.robot.joints, time, motion.position, motion.velocity,
                      motion.acceleration, began=began)
    effort = own.effort(samples, truth())
    return Experiment.of(own, [replace(samples, effort=effort, measured=effort)])


def drawn(rng: np.random.Generator, number: int, spread: dict[str, float]) -> Information:
    """Return so many recordings with noise, friction of each differing by ``spread``."""
    scales, found = friction_scales(model(), truth()), []
    assert scales is not None
    size = np.array([spread[kind] for kind in scales.kinds])
    for i in range(number):
        off = scales.directions @ (size * rng.normal(size=len(size)))
        known = recorded(i).information
        batches = []
        for batch in known.batches:
            factors = []
            for factor, active in zip(batch.factors, known.structure, strict=True):
                noisy = factor.copy()
                noisy[:, FILTERED - EXTRA] += noisy[:, :-EXTRA] @ off[active] \
                    + NOISE * rng.normal(size=len(noisy))
                factors.append(noisy)
            batches.append(replace(batch, factors=tuple(factors)))
        found.append(replace(known, batches=tuple(batches)))
    return reduce(lambda a, b: a.merge(b), found)


def fitted(information: Information) -> tuple[np.ndarray, dict[str, float]]:
    """Return which intervals hold the truth (b,), and the spread that is found."""
    ones = np.ones(model().robot.n) / NOISE
    solution = solve(information, ones)
    scales = friction_scales(model(), solution.values)
    assert scales is not None
    covariance, freedom = batch_covariance(information, ones, solution, scales)
    half = interval_factor(freedom) * np.sqrt(np.diag(covariance))
    scores = batch_scores(information, ones, solution)
    spread = between_recordings(scores, recordings(information), scales).spread
    return np.abs(solution.values - truth()) < half, dict(spread)


def trials(number: int, spread: dict[str, float], count: int = 30):
    """Return the shares of intervals of links and of friction that hold, and the spreads found."""
    rng = np.random.default_rng(number)
    found = [fitted(drawn(rng, number, spread)) for _ in range(count)]
    held = np.mean([held for held, _ in found], axis=0)
    friction = np.array([name[0] == 'f' for name in model().reduction.names])
    return held[~friction].mean(), held[friction].mean(), {
        kind: float(np.sqrt(np.mean([s[kind]**2 for _, s in found]))) for kind in spread}


@pytest.mark.parametrize('number', [2, 4])
def test_intervals_hold_and_the_spread_is_found(number: int) -> None:
    links, friction, found = trials(number, SPREAD)
    assert COVERAGE_OF_SCALES[number] < friction < COVERAGE[1]
    assert COVERAGE[0] < links < COVERAGE[1]
    assert found == pytest.approx(SPREAD, rel=BETWEEN)


def test_recordings_of_equal_friction_have_no_spread() -> None:
    _, friction, found = trials(3, NONE, 15)
    assert COVERAGE[0] < friction < COVERAGE[1]
    assert max(found.values()) < NO_SPREAD


def test_spread_and_variance_of_one_parameter_in_closed_form() -> None:
    rng = np.random.default_rng(0)
    count, batches, value = 5, 16, 3.0
    off = value * rng.normal(0.0, 0.1, count)  # friction of the recordings, less its mean
    off -= off.mean()
    share = 1.0 / (count * batches)
    curvature = np.full((count * batches, 1, 1), share)
    scores = BatchScores(np.array([[2.0]]), curvature, np.repeat(off, batches)[:, None] / 2.0
                         * share)
    groups = np.arange(count * batches).reshape(count, batches).tolist()
    found = between_recordings(scores, groups, FrictionScales(np.array([[value]]), ('dry',)))
    variance = np.var(off, ddof=1)
    assert found.spread == pytest.approx({'dry': np.sqrt(variance) / value}, rel=SAME_FORMULA)
    assert found.covariance == pytest.approx(variance / count, rel=SAME_FORMULA)
    assert found.within.score == pytest.approx(0.0, abs=SAME_FORMULA)


def test_between_recordings_subtracts_the_scatter_of_stretches() -> None:
    rng = np.random.default_rng(0)
    size = np.repeat([0.09, 0.03, 0.005], 8)  # information of the batches, eight per recording
    score = size * rng.normal(np.repeat([1.0, -1.0, 0.5], 8), 0.3)
    groups = np.arange(24).reshape(3, 8).tolist()
    scores = BatchScores(np.array([[1.0]]), size[:, None, None], score[:, None])
    found, variance = [], []
    for own in groups:
        found.append(score[own].sum() / size[own].sum())
        left = [np.delete(score[own], i).sum() / np.delete(size[own], i).sum() for i in range(8)]
        variance.append(7.0 / 8.0 * np.sum((left - np.mean(left)) ** 2))
    share = np.array([0.09, 0.03, 0.005]) / 0.125
    scatter = np.sum(share * (found - share @ found) ** 2)
    square = (scatter - np.sum(share * (1.0 - share) * variance)) / np.sum(share * (1.0 - share))
    between = between_recordings(scores, groups, FrictionScales(np.array([[1.0]]), ('dry',)))
    assert between.spread == pytest.approx({'dry': np.sqrt(square)}, rel=SAME_FORMULA)
    assert between.covariance == pytest.approx(
        square * np.sum((8.0 * size[::8]) ** 2), rel=SAME_FORMULA)
    off = (found - share @ found) * square / (square + variance)
    assert between.within.score[:, 0] == pytest.approx(
        score - size * np.repeat(off, 8), rel=SAME_FORMULA)


def test_a_recording_that_tells_nothing_of_an_axis_does_not_count() -> None:
    curvature = np.full((48, 1, 1), 1.0 / 32)
    curvature[32:] = 0.0
    score = np.repeat([0.1, -0.1, 0.0], 16)[:, None] / 32
    groups = np.arange(48).reshape(3, 16).tolist()
    scales = FrictionScales(np.array([[1.0]]), ('dry',))
    found = between_recordings(BatchScores(np.array([[1.0]]), curvature, score), groups, scales)
    assert found.spread == pytest.approx({'dry': np.sqrt(0.02)}, rel=SAME_FORMULA)
    assert found.covariance == pytest.approx(0.01, rel=SAME_FORMULA)


@pytest.mark.filterwarnings('error')
def test_rounding_of_a_scale_that_is_not_shown_does_not_count() -> None:
    """Products of large and small directions leave rounding of either sign where nothing is."""
    curvature = np.full((48, 1, 1), 1.0 / 32)
    curvature[32:] = -1e-17
    score = np.repeat([0.1, -0.1, 0.0], 16)[:, None] / 32
    groups = np.arange(48).reshape(3, 16).tolist()
    scales = FrictionScales(np.array([[1.0]]), ('dry',))
    found = between_recordings(BatchScores(np.array([[1.0]]), curvature, score), groups, scales)
    assert found.spread == pytest.approx({'dry': np.sqrt(0.02)}, rel=SAME_FORMULA)


def test_scales_are_those_of_the_laws() -> None:
    law = law_from('maxwell+load+levelling', {'lengths': [1e-4, 1e-3]})
    assert dict(zip(law.parameters, law.kinds, strict=True)) == {
        'fv': VISCOUS, 'fca': DRY, 'fcb': DRY, 'f0': OFFSET, 'fw': DRY, 'fl': DRY}
    assert law_from('asymmetric').kinds == (VISCOUS, VISCOUS, DRY, DRY)
    names, scales = model().reduction.names, friction_scales(model(), truth())
    assert scales is not None and scales.kinds.count(OFFSET) == model().robot.n
    for direction, kind in zip(scales.directions.T, scales.kinds, strict=True):
        (place,) = np.flatnonzero(direction)
        name = names[place]
        assert kind == {'fv': VISCOUS, 'fc': DRY, 'f0': OFFSET}[name[:2]]
        assert direction[place] == truth()[names.index(f'fc{name[-1]}') if kind == OFFSET
                                           else place]


def test_parts_of_a_recording_are_one_recording() -> None:
    own, known = model(), recorded(0)
    (samples,) = known.recordings
    halves = [samples.part(slice(None, len(samples) // 2)),
              samples.part(slice(len(samples) // 2, None))]
    for began, count in ((None, 2), (0.0, 1)):
        parts = [replace(half, began=began) for half in halves]
        assert len(recordings(Experiment.of(own, parts).information)) == count
        again = Experiment.of(own, [*parts, *parts])  # the same stamps, from the beginning
        assert len(recordings(again.information)) == 2 * count


@pytest.mark.parametrize('method', ['wls', 'gls', 'irls'])
def test_estimators_hold_the_spread(method: str) -> None:
    rng = np.random.default_rng(1)
    own, found = model(), []
    scales = friction_scales(own, truth())
    assert scales is not None
    size = np.array([SPREAD[kind] for kind in scales.kinds])
    off = scales.directions @ (size * rng.choice([-1.0, 1.0], len(size)))
    for i, side in enumerate((1.0, -1.0)):
        (samples,) = recorded(i).recordings
        noise = 0.5 * rng.normal(size=(len(samples), own.robot.n))
        effort = own.effort(samples, truth() + side * off) + noise
        found.append(replace(samples, effort=effort, measured=effort))
    both = Experiment.of(own, found)
    estimate = ESTIMATORS[method].fit(both)
    places = [i for i, name in enumerate(estimate.names) if name.startswith('fv')]
    share = estimate.std[places] / truth()[places]
    # two recordings, off by the spread to either side, whose noise hardly counts
    assert np.sqrt(np.mean(share**2)) == pytest.approx(SPREAD['viscous'], rel=BETWEEN)


def test_disjoint_recordings_of_a_real_robot_agree(ur10e_data: Path) -> None:
    model = ur10e_model('auto')
    own, settings = model.torque_model, model.preprocessing
    parts = [Experiment.of(own, [prepare(own.robot, repair(own.robot, load_log(
        file, own.robot)), settings)]).information
        for folder in ('train', 'test') for file in sorted((ur10e_data / folder).iterdir())]

    def estimate(chosen: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        information = reduce(lambda a, b: a.merge(b), [parts[i] for i in chosen])
        weights = joint_weights(information)
        solution = solve(information, weights)
        covariance, freedom = batch_covariance(
            information, weights, solution, friction_scales(own, solution.values))
        return solution.values, interval_factor(freedom) * np.sqrt(np.diag(covariance))

    agree = []
    for three in list(combinations(range(7), 3))[::3]:
        one, other = estimate(three), estimate(tuple(i for i in range(7) if i not in three))
        agree.append(np.abs(one[0] - other[0]) < np.hypot(one[1], other[1]))
    friction = np.array([name[0] == 'f' for name in own.reduction.names])
    shares = np.mean(agree, axis=0)
    assert AGREEING[0] < shares[friction].mean() < AGREEING[1]
    assert AGREEING[0] < shares[~friction].mean()
