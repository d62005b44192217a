"""Contact scores: alarms counted and expected, pushes, levers of the tip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import model_of, motion

from robot_dynid.dynamics.rigid_body import chain_points, tip_positions
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.noise_levels import learn_noise_levels
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Part, RawLog
from robot_dynid.validation.contact_scores import (
    ContactScore,
    contact_score,
    on_other_motion,
    scored_contact,
)


def score_of(peaks: FloatArray, seconds: float, alarms: float = 0.0) -> ContactScore:
    """Return a score of one joint."""
    return ContactScore(np.array([seconds]), np.array([alarms]), peaks[:, None],
                        np.ones((1, 2)), np.ones(1), np.ones((1, 1)), np.zeros(1), np.ones(1))


@pytest.fixture(scope='module')
def arm():
    """Return a model with its levels, and the recording these are from."""
    model = model_of(load_robot('seven_axis'))
    # its efforts are noise, whatever the motion
    log = replace(motion(model.robot), accepted=('position_unit',))
    levels = learn_noise_levels(model, [monitor_input(model, log)])
    return replace(model, noise_levels=levels), log


def test_alarms_to_expect_are_those_of_a_normal_process() -> None:
    """Of an hour of peaks the first minutes let expect those of the whole."""
    sigma = 1.0 / 3.6
    rayleigh = sigma * np.sqrt(2.0 * np.random.default_rng(0).exponential(size=5 * 3600))
    truth = 5 * 3600 * np.exp(-0.5 / sigma**2)
    for rows in (2000, len(rayleigh)):
        found = score_of(rayleigh[:rows], rows / 5.0).rate(0)
        assert 0.3 * truth < found < 3.0 * truth
    assert score_of(0.3 * rayleigh, 3600.0).rate(0) < 1e-6 * truth


def test_alarms_that_were_counted_count() -> None:
    quiet = np.full(100, 0.1)
    assert score_of(quiet, 20.0, 2.0).rate(0) == pytest.approx(360.0)
    assert score_of(quiet, 20.0).rate(0) == pytest.approx(0.0, abs=1e-9)
    assert score_of(quiet[:0], 0.0).rate(0) == np.inf
    assert score_of(quiet[:1], 20.0).rate(0) == 0.0


def test_scores_of_recordings_add_up() -> None:
    one, other = score_of(np.full(10, 0.1), 20.0), score_of(np.full(30, 0.9), 40.0, 3.0)
    found = ContactScore.merged([one, replace(other, effort=np.array([5.0]))])
    assert found is not None
    assert (found.seconds[0], found.alarms[0], found.effort[0]) == (60.0, 3.0, 5.0)
    assert len(found.peaks) == 40
    assert ContactScore.merged([]) is None


@pytest.mark.parametrize('share', [0.3, 1.3])
def test_alarms_are_those_of_the_monitor_and_pushes_are_seen_by_it(arm, share: float) -> None:
    """A push of 130 % of what is detected in 95 % of the motion is reported."""
    model, log = arm
    calm = contact_score(model, monitor_input(model, log))
    assert not calm.alarms.any() and (calm.seconds > 0.8 * np.ptp(log.time)).all()
    pushed = log.effort - share * calm.push * np.eye(7)[2]
    (events,) = contact_events(model, [replace(log, effort=pushed)])
    found = contact_score(model, monitor_input(model, replace(log, effort=pushed)))
    assert found.alarms.sum() == len(events.contacts)
    time = sum(c.stop - c.start for c in events.contacts if c.joint == log.joints[2])
    assert bool(time > 0.7 * np.ptp(log.time)) is (share > 1.0)


def test_the_error_of_other_motion_widens_levels_and_grows_what_is_expected(arm) -> None:
    model, log = arm
    motions = [monitor_input(model, log)]
    same, before = on_other_motion(model, motions, np.zeros(7))
    other, after = on_other_motion(model, motions, np.full(7, 3.0))
    assert before is not None and after is not None
    np.testing.assert_array_equal(same.noise_levels.moving, model.noise_levels.moving)
    assert (other.noise_levels.moving >= 3.0 * 3.29).all()
    np.testing.assert_allclose(after.excess, 2.0 * (
        other.noise_levels.moving - model.noise_levels.moving))
    np.testing.assert_allclose(after.push, before.push + after.excess)
    np.testing.assert_allclose(after.peaks, before.peaks, rtol=1e-9)
    none = replace(model, noise_levels=None)
    assert on_other_motion(none, motions, np.zeros(7)) == (none, None)
    assert not list(scored_contact(none, log))


def test_only_the_rows_of_a_part_count(arm) -> None:
    model, log = arm
    half = 0.5 * (log.time[0] + log.time[-1])
    parts = [next(iter(scored_contact(model, replace(log, part=place)))) for place in (
        Part(-np.inf, half, 0.0), Part(half, np.inf, 0.0))]
    (whole,) = scored_contact(model, log)
    found = ContactScore.merged(parts)
    assert found is not None
    np.testing.assert_allclose(found.seconds, whole.seconds)
    assert len(found.needed) == pytest.approx(len(whole.needed), abs=2)


def test_levers_are_the_distances_of_the_tip_from_the_axes() -> None:
    robot = load_robot('planar_3r')
    model = replace(model_of(robot), noise_levels=NoiseLevels(*np.ones((3, 3))))
    log = motion(robot)
    straight = replace(log, position=np.zeros_like(log.position))
    found = contact_score(model, monitor_input(model, straight)).lever
    axis = np.linalg.svd(np.diff(tip_positions(robot, log.position), axis=0))[2][2]
    _, *origins, tip = chain_points(robot, np.zeros((1, 3)))[0]
    distances = [np.linalg.norm(np.cross(axis, tip - origin)) for origin in origins]
    assert found == pytest.approx(distances, rel=1e-5, abs=1e-6)
    assert found.max() > 0.3


@pytest.mark.parametrize('pauses', [0, 1, 6])
def test_stops_are_counted_joint_by_joint(arm, pauses) -> None:
    """Of a motion to and fro with pauses; a reversal is no stop."""
    model, _ = arm
    time = np.arange(0.0, 20.0, 2e-3)
    speed = np.sin(2.0 * np.pi * time)
    for k in range(pauses):
        speed[(time > 3.0 * k + 1.0) & (time < 3.0 * k + 2.0)] = 0.0
    velocity = np.repeat(speed[:, None], model.robot.n, axis=1)
    velocity[:, 1] = 0.5 + 0.1 * np.sin(time)  # never rests
    position = np.cumsum(velocity, axis=0) * 2e-3
    log = RawLog('stops', model.robot.joints, time, position, velocity, np.zeros_like(position))
    found = contact_score(model, monitor_input(model, log))
    assert found.stops[0] == pauses and found.stops[1] == 0
    assert ContactScore.merged([found, found]).stops[0] == 2 * pauses
