"""monitoring/motor_states.py: motors at joint states, from motor states at stamps of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import ARM, true_model, with_effects

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import MotorEncoder
from robot_dynid.monitoring.monitor_input import MonitorInputStream, monitor_input
from robot_dynid.monitoring.motor_states import MotorStates
from robot_dynid.signals.turns import TURN
from robot_dynid.types import FloatArray, RawLog

FACTOR, OFFSET = 100.0, 0.02
BEND, RATE = np.array([1e-3, -2e-3]), np.array([0.01, 0.02])


def calibrated(model: IdentifiedModel) -> IdentifiedModel:
    """Return the model with motor encoders on the motor side, which have an offset."""
    return replace(model, record=replace(model.record, motor_encoders=tuple(
        MotorEncoder(joint, FACTOR, OFFSET) for joint in ARM.joints)))


MODEL = calibrated(true_model())


def motion(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity of both joints, the first on a cubic."""
    return np.array([t[0]**3, 1.0 - t[1]]), np.array([3.0 * t[0]**2, -1.0])


@pytest.mark.parametrize('turns', [0.0, 1.0, -3.0])
@pytest.mark.parametrize('delays', [(), (0.0, 0.0), (2e-3, 2e-3), (0.0, 2e-3), (-1e-3, 1e-3)])
def test_the_deflection_between_joint_states_is_that_of_the_motion(
    turns: float, delays: tuple[float, ...]
) -> None:
    """The motion is a cubic, the gear bends at a rate; link encoders show the past.

    Motor encoders count from other turns.
    """
    own = replace(MODEL, preprocessing=replace(MODEL.preprocessing, encoder_delays=delays))
    states, late = MotorStates(own), np.array(delays or (0.0, 0.0))
    for k in range(20):
        t = 0.01 * k - late
        q, qd = motion(t)
        found = states.at(0.01 * k, q, qd)
        if k > 2:
            np.testing.assert_allclose(found, [q + BEND + RATE * t, qd + RATE],
                                       rtol=0.0, atol=1e-12)
            assert states.age == pytest.approx(0.003)
        at = np.full(2, 0.01 * k + 0.007)
        q, qd = motion(at)
        states.take(float(at[0]), FACTOR * (q + BEND + RATE * at + OFFSET + TURN * turns),
                    FACTOR * (qd + RATE))


def test_kinematic_error_is_not_extrapolated() -> None:
    """The output of a gear with it, which turns steadily, is; motors follow from that."""
    own = calibrated(with_effects((6e-4, 9e-4))[0])
    states, gears = MotorStates(own), own.gears
    for k in range(12):
        q, qd = np.array([0.3, -0.2]) * 0.01 * k, np.array([0.3, -0.2])
        found = states.at(0.01 * k, q, qd)
        if k > 1:
            np.testing.assert_allclose(found, gears.motor(np.stack(
                [q + BEND + RATE * 0.01 * k, qd + RATE])), rtol=0.0, atol=1e-9)
        at = 0.01 * k + 0.006
        motors = gears.motor(np.stack([np.array([0.3, -0.2]) * at + BEND + RATE * at, qd + RATE]))
        states.take(at, FACTOR * (motors[0] + OFFSET), FACTOR * motors[1])


def test_motor_speeds_are_differences_over_the_seam() -> None:
    states, rest = MotorStates(MODEL), np.zeros(2)
    for k in range(4):
        states.at(0.01 * k, rest, rest)
        angle = np.pi + 0.05 - 0.03 * k  # at the second it is beyond the seam
        states.take(0.01 * k + 0.005, FACTOR * np.mod(np.full(2, angle) + np.pi, TURN), None)
        if k > 1:
            np.testing.assert_allclose(states.at(0.01 * k + 0.006, rest, rest)[1], -3.0)


@pytest.mark.parametrize(('pause', 'known'), [(0.029, True), (0.031, False)])
def test_motor_speeds_are_differences_over_thirty_milliseconds_at_most(
    pause: float, known: bool
) -> None:
    states, rest = MotorStates(MODEL), np.zeros(2)
    for time, angle in ((0.01, 0.3), (0.01 + pause, 0.3 + 0.5 * pause)):
        states.at(time - 0.001, rest, rest)
        states.take(time, FACTOR * np.array([angle, -angle]), None)
    found = states.at(0.011 + pause, rest, rest)
    np.testing.assert_allclose(found[1], [0.5, -0.5] if known else [np.nan] * 2)


@pytest.mark.parametrize(('age', 'known'), [(0.0299, True), (0.0301, False)])
def test_motor_states_are_used_for_thirty_milliseconds(age: float, known: bool) -> None:
    """Only those with an earlier stamp than the joint state."""
    states, rest = MotorStates(MODEL), np.zeros(2)
    states.at(0.0, rest, rest)
    states.take(0.5, np.full(2, FACTOR * (OFFSET + 1e-3)), rest)
    states.take(0.5 + age, np.full(2, FACTOR * (OFFSET + 2e-3)), rest)
    found = states.at(0.5 + age, rest, rest)
    np.testing.assert_allclose(found[0], [1e-3 if known else np.nan] * 2)
    assert states.age == pytest.approx(age)


@pytest.mark.parametrize(('back', 'accepted'), [(0.029, False), (0.031, True)])
def test_motor_states_that_go_back_by_thirty_milliseconds_restart(
    back: float, accepted: bool
) -> None:
    states, rest = MotorStates(MODEL), np.zeros(2)
    states.at(0.9, rest, rest)
    states.take(1.0, np.full(2, FACTOR * OFFSET), rest)
    states.take(1.0 - back, np.full(2, FACTOR * (OFFSET + 3e-3)), rest)
    assert states.unusable == 1
    found = states.at(1.001, rest, rest)
    if accepted:  # what waited is of another clock, and this state is too old
        assert np.isnan(found).all() and states.age == pytest.approx(0.032)
    else:
        np.testing.assert_allclose(found[0], 0.0, rtol=0.0, atol=1e-12)


def test_motor_states_without_a_new_time_are_counted_and_not_used() -> None:
    states, still = MotorStates(MODEL), np.zeros(2)
    for time, unusable in ((np.nan, 1), (1.0, 1), (1.0, 2), (0.5, 3), (np.inf, 4), (1.5, 4)):
        states.take(time, still, still)
        assert states.unusable == unusable


@pytest.mark.parametrize('lag', [0.0, 0.0037, -0.0037])
@pytest.mark.parametrize('speeds', [True, False])
def test_single_states_are_the_rows_of_a_recording_with_motors(lag: float, speeds: bool) -> None:
    own = replace(MODEL, preprocessing=replace(MODEL.preprocessing, effort_lag=lag))
    time = 0.01 * np.arange(12) + 0.001 * (np.arange(12) % 3)
    q, qd = np.transpose([motion(np.full(2, t)) for t in time], (1, 0, 2))
    motors = FACTOR * (q + BEND + OFFSET + RATE * time[:, None]), FACTOR * (qd + RATE)
    log = RawLog('run', ARM.joints, time, q, qd, 10.0 * q, motors[0],
                 motors[1] if speeds else None)
    rows, stream, found = monitor_input(own, log), MonitorInputStream(own), []
    assert rows.motors is not None and stream.motors is not None
    for k, now in enumerate(time.tolist()):
        state = stream(now, q[k], qd[k], 10.0 * q[k])
        assert state is not None
        found.append(state[0])
        stream.motors.take(now, motors[0][k], motors[1][k] if speeds else None)
    np.testing.assert_allclose(found, np.concatenate([
        np.stack([rows.position, rows.velocity, rows.effort], axis=1), rows.motors], axis=1),
        rtol=1e-12, atol=1e-12)
    assert np.isfinite(rows.motors[3:]).all()
