"""validation/validate.py: efforts are scored as they were measured: at their own stamps, with all
of their noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from motions import lively, torque_model, truth_of
from tolerances import CUT_RECORDING, WHITE_NOISE

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import effort_lag
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.averaging import repeatability
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate

#: deviation [N m] of the white noise of every effort
NOISE = 0.8
STEP, SECONDS = 0.01, 60.0
PERIOD = 10.0


@pytest.fixture(scope='module')
def model() -> TorqueModel:
    return torque_model('planar_3r')


def stamps(kind: str, rng: np.random.Generator, count: int) -> FloatArray:
    """Return ``count`` stamps [s] 10 ms apart, exactly or as real drivers have them."""
    if kind == 'regular':
        return STEP * np.arange(count)
    return np.cumsum(rng.choice([0.010, 0.012], count, p=[0.7, 0.3]))


def periodic(time: FloatArray, joints: int, seed: int) -> tuple[FloatArray, ...]:
    """Return position, velocity, acceleration (N, n) of a motion that repeats after PERIOD."""
    rng = np.random.default_rng(seed)
    motion = np.zeros((3, len(time), joints))
    for harmonic in range(1, 9):
        rate = 2.0 * np.pi * harmonic / PERIOD
        angle = rate * time[:, None] + rng.uniform(0.0, 6.0, joints)
        size = rng.uniform(0.1, 0.4, joints)
        motion += size * np.stack([np.sin(angle), rate * np.cos(angle), -rate**2 * np.sin(angle)])
    return tuple(motion)


def recording(kind: str, seed: int, lag: float = 0.0, noise: float = NOISE) -> RawLog:
    """Return what a planar arm reports whose effort has white noise and is ``lag`` [s] late."""
    truth = nominal_model('planar_3r', rotors=0.0)
    rng = np.random.default_rng(seed)
    time = stamps(kind, rng, round(SECONDS / STEP))
    q, qd, _ = periodic(time, 3, 0)
    effort = truth.inverse(*periodic(time - lag, 3, 0))
    return RawLog(f'{kind} {seed}', truth.joints, time, q, qd,
                  effort + noise * rng.normal(size=effort.shape))


@pytest.mark.parametrize('rate', [None, 140.0])
@pytest.mark.parametrize('lag', [0.0, 0.004, -0.0037])
@pytest.mark.parametrize('kind', ['regular', 'jittered'])
def test_measured_efforts_stay_as_they_were_measured(
    kind: str, lag: float, rate: float | None
) -> None:
    robot, log = load_robot('planar_3r'), recording(kind, 1)
    samples = prepare(robot, repair(robot, log, rate), Preprocessing(8.0, rate, lag))
    assert samples.measured is not None and log.effort is not None
    rows = np.searchsorted(log.time, samples.moved.time + lag - 1e-9)
    assert np.array_equal(samples.measured, log.effort[rows])
    assert samples.moved.time + lag == pytest.approx(log.time[rows], abs=1e-12)
    assert np.abs(samples.moved.time - samples.time).max() < 0.0121 / 2.0


@pytest.mark.parametrize('lag', [None, 0.0, 0.005])
@pytest.mark.parametrize('kind', ['regular', 'jittered'])
def test_no_score_is_below_the_noise(kind: str, lag: float | None) -> None:
    recipe = Recipe(cutoff=8.0, ramp_width=0.05, effort_lag=lag, friction='coulomb',
                    ripple='none')
    robot = nominal_model('planar_3r', rotors=0.0).robot
    result = identify(robot, [recording(kind, 1)], recipe=recipe)
    found = validate(result.model, [recording(kind, 2)])
    for scores in (found, result.training):
        errors = np.array([s.rmse for s in scores.model['all'].values()]) / NOISE
        assert errors.min() > 1.0 - WHITE_NOISE
        assert errors.max() < (1.1 if lag is None else 1.5)  # friction switches above the cut-off
    assert np.sqrt(result.held_out.raw).min() / NOISE > 1.0 - WHITE_NOISE
    assert found.repeatability is not None and found.noise is not None
    assert found.noise / NOISE == pytest.approx(np.ones(3), abs=2.0 * WHITE_NOISE)
    assert np.all(found.repeatability < 0.2 * NOISE)


def test_a_lag_is_taken_because_it_predicts_better_not_because_it_smooths() -> None:
    robot = nominal_model('planar_3r', rotors=0.0).robot
    recipe = Recipe(cutoff=8.0, ramp_width=0.05, friction='coulomb')
    noise = 0.25 * NOISE
    late = identify(robot, [recording('jittered', 1, 0.006, noise)], recipe=recipe)
    assert late.choice.lag is not None
    assert late.model.preprocessing.effort_lag == pytest.approx(0.006, abs=0.0005)
    other = recording('jittered', 2, 0.006, noise)
    taken = validate(late.model, [other])
    left = validate(replace(late.model, preprocessing=replace(
        late.model.preprocessing, effort_lag=0.0)), [other])
    for joint, score in taken.model['all'].items():
        assert score.rmse / noise > 1.0 - WHITE_NOISE
        assert left.model['all'][joint].rmse > 1.05 * score.rmse
    wrong = validate(replace(late.model, preprocessing=replace(
        late.model.preprocessing, effort_lag=-0.005)), [other])
    assert all(s.rmse > 1.05 * taken.model['all'][j].rmse
               for j, s in wrong.model['all'].items())


def test_the_lag_found_is_that_of_the_effort_not_of_its_stamps(model: TorqueModel) -> None:
    robot = model.robot
    for true in (0.0, 0.006, -0.003):
        log = recording('jittered', 3, true, 0.1 * NOISE)
        found = effort_lag(model, [prepare(robot, repair(robot, log), Preprocessing(8.0))])
        assert found.seconds == pytest.approx(true, abs=0.0004)


def test_efforts_that_were_not_measured_are_no_samples() -> None:
    robot, log = load_robot('planar_3r'), recording('regular', 1)
    assert log.effort is not None
    effort = log.effort.copy()
    effort[1000:1500, 1] = np.nan      # five seconds of one joint
    effort[2000:2003] = np.nan
    samples = prepare(robot, repair(robot, replace(log, effort=effort)), Preprocessing(8.0))
    assert samples.measured is not None
    known = set(map(tuple, log.effort[np.isfinite(effort).all(axis=1)]))
    assert all(tuple(row) in known for row in samples.measured)
    # what the filter makes of the hole is left out beside it
    assert not np.any((samples.time > 10.0 - 2.0 / 8.0) & (samples.time < 15.0 + 2.0 / 8.0))
    assert len(samples.starts) == 2


def test_efforts_with_stamps_of_their_own_are_compared_there() -> None:
    truth = nominal_model('planar_3r', rotors=0.0)
    log = recording('regular', 1, noise=0.0)
    time = stamps('jittered', np.random.default_rng(7), 4500) + 0.0031
    effort = truth.inverse(*periodic(time, 3, 0))
    onto = np.stack([np.interp(log.time, time, column) for column in effort.T], axis=1)
    log = replace(log, effort=onto)
    spoiled = effort.copy()
    spoiled[2000, 1] = 1e187
    # a torque sensor that the robot does not name changes nothing
    log = replace(log, effort_messages=(time, spoiled), joint_torque=onto)
    samples = prepare(truth.robot, repair(truth.robot, log), Preprocessing(8.0))
    assert samples.measured is not None and samples.effort is not None
    rows = np.searchsorted(time, samples.moved.time - 1e-9)
    assert np.array_equal(samples.measured, effort[rows])
    assert np.abs(samples.effort - truth.predicted(samples)).max() < 0.04 * np.std(effort)


def cuts() -> Iterator[tuple[str, slice]]:
    """Yield where a recording of 60 s is cut, at speed."""
    yield 'begins in motion', slice(1234, None)
    yield 'ends in motion', slice(None, 4321)
    yield 'both', slice(2017, 3511)


@pytest.mark.parametrize('cutoff', [4.0, 8.0, 20.0])
@pytest.mark.parametrize(('name', 'rows'), list(cuts()))
def test_a_cut_recording_agrees_with_the_uncut_one(
    model: TorqueModel, name: str, rows: slice, cutoff: float
) -> None:
    whole = lively(model, 6000)
    log = RawLog('whole', model.robot.joints, whole.time, whole.position, whole.velocity,
                 whole.effort)
    cut = replace(log, time=log.time[rows], position=log.position[rows],
                  velocity=whole.velocity[rows], effort=whole.effort[rows])
    efforts, measured = [], []
    for part in (log, cut):
        samples = prepare(model.robot, repair(model.robot, part), Preprocessing(
            cutoff, decimate=False))
        predicted = model.effort(samples, truth_of(model))
        efforts.append(dict(zip(samples.time.round(6), predicted)))
        measured.append(dict(zip(samples.time.round(6), samples.effort)))
    for found in (efforts, measured):
        shared = sorted(set(found[0]) & set(found[1]))
        assert len(shared) > 0.8 * len(cut.time)
        apart = np.array([found[0][t] - found[1][t] for t in shared])
        size = np.std([found[0][t] for t in shared], axis=0)
        assert np.abs(apart).max(axis=0) / size == pytest.approx(np.zeros(3), abs=CUT_RECORDING)


def test_a_gap_in_motion_is_two_cuts(model: TorqueModel) -> None:
    whole = lively(model, 6000)
    keep = np.ones(6000, dtype=bool)
    keep[2500:2520] = False
    log = RawLog('gap', model.robot.joints, whole.time[keep], whole.position[keep],
                 whole.velocity[keep], whole.effort[keep])
    samples = prepare(model.robot, repair(model.robot, log), Preprocessing(8.0))
    assert samples.effort is not None and len(samples.starts) == 2
    error = np.abs(samples.effort - model.effort(samples, truth_of(model)))
    assert (error.max(axis=0) / np.std(samples.effort, axis=0)).max() < CUT_RECORDING


def test_folds_are_scored_at_the_stamps(model: TorqueModel) -> None:
    log = recording('jittered', 4)
    samples = prepare(model.robot, repair(model.robot, log), Preprocessing(8.0))
    raw = held_out(Experiment.of(model, [samples]).information).raw
    assert np.sqrt(raw).min() / NOISE > 1.0 - WHITE_NOISE and np.sqrt(raw).max() / NOISE < 1.1


def test_repeatability_is_the_noise_when_one_motion_has_other_stamps(model: TorqueModel) -> None:
    samples = prepare(model.robot, repair(model.robot, recording('jittered', 5)),
                      Preprocessing(8.0))
    found = repeatability(samples)
    assert found is not None
    robot, noise = found
    assert noise / NOISE == pytest.approx(np.ones(3), abs=2.0 * WHITE_NOISE)
    assert np.all(robot < 0.2 * NOISE)
