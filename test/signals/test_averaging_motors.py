"""signals/averaging.py: mean periods keep the motors' encoders, on the joint side, as far as they
can be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import EXACT_PERIOD

from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.averaging import Periodic, average
from robot_dynid.signals.periodic import motion
from robot_dynid.types import FloatArray, RawLog

RATIO = np.array([-62.61, 107.36, -53.69, 76.01, 71.91, 76.73])
DT, PERIOD, PERIODS = 0.004, 5.0, 6
STIFFNESS = 2e4
HARMONICS = 4
#: white noise [rad] of the encoders of link and motor
NOISE = 2e-5, 5e-6
SETTINGS = Periodic(PERIOD)


@pytest.fixture(scope='module')
def robot() -> RobotModel:
    return load_robot('puma560')


def truth(time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions of the links (N, 6) and efforts that bend the gears; both periodic."""
    phase = 2.0 * np.pi * time[:, None] / PERIOD
    joint = np.arange(6)
    link = 0.5 * np.sin(phase + joint) + 0.1 * np.sin(2.0 * phase + 2.0 * joint)
    return link, 30.0 * np.cos(phase + 0.3 * joint) + 9.0 * np.sin(HARMONICS * phase)


def recording(noise: float = 1.0, offset: float = 0.0) -> RawLog:
    """Return all periods, with motors on their own side and an offset between the encoders."""
    time = np.arange(0.0, PERIODS * PERIOD + 0.5 * DT, DT)
    link, effort = truth(time)
    rng = np.random.default_rng(4)
    scatter = noise * rng.standard_normal((2, *link.shape))
    motor = link + effort / STIFFNESS + offset + NOISE[1] * scatter[1]
    return RawLog('run', tuple(f'joint_{j}' for j in range(1, 7)), time,
                  link + NOISE[0] * scatter[0], effort=effort, motor_position=motor * RATIO)


def deflection(robot: RobotModel, log: RawLog
               ) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return the deflection (M, 6) of the mean period, the true one, and the notes."""
    mean = average(robot, replace(log, joints=robot.joints), SETTINGS)
    (part,) = mean.parts
    assert part.motor_position is not None and mean.averaging is not None
    exact = truth(mean.averaging.start + part.time)[1] / STIFFNESS
    return part.motor_position - part.position, exact, mean.notes


def test_without_noise_the_deflection_is_that_of_the_gears(robot: RobotModel) -> None:
    found, exact, _ = deflection(robot, recording(noise=0.0))
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=EXACT_PERIOD)


def test_average_deflection_is_as_precise_as_the_mean_of_both_encoders(robot: RobotModel) -> None:
    found, exact, notes = deflection(robot, recording(offset=0.2))
    off = found - exact
    off -= off.mean(axis=0)  # the offset is estimated, see test_encoders
    deviation = np.hypot(*NOISE) / np.sqrt(PERIODS - SETTINGS.warm_up)
    assert np.all(off.std(axis=0) < 1.05 * deviation)
    assert sum('offset of' in note for note in notes) == 6


def test_no_noise_of_the_motor_is_differentiated(robot: RobotModel) -> None:
    """Above the last harmonic that stands out of the noise of both encoders nothing is left."""
    log = replace(recording(), joints=robot.joints)
    mean = average(robot, log, SETTINGS)
    (part,) = mean.parts
    assert part.motor_position is not None and mean.averaging is not None
    spectrum = np.abs(np.fft.rfft(part.motor_position, axis=0))
    assert np.all(spectrum[2] > 1.0) and np.all(spectrum[HARMONICS + 1:] < 1e-9)
    _, _, acceleration = motion(part.motor_position, 20.0, DT, np.zeros(6))
    link, effort = truth(mean.averaging.start + part.time)
    _, _, exact = motion(link + effort / STIFFNESS, 20.0, DT, np.zeros(6))
    assert np.abs(acceleration - exact).max() < 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize(('period', 'refused'), [(0.5, False), (1.5, True), (4.5, True)])
def test_a_slip_between_periods_takes_the_encoder_out(
    robot: RobotModel, period: float, refused: bool
) -> None:
    """Not in the first one, which is dropped."""
    log = recording()
    assert log.motor_position is not None
    slipped = log.motor_position + np.where(
        (log.time > period * PERIOD)[:, None] & (np.arange(6) == 2), 0.01 * RATIO, 0.0)
    found, _, notes = deflection(robot, replace(log, motor_position=slipped))
    assert np.isnan(found).all(axis=0).tolist() == [j == 2 and refused for j in range(6)]
    assert np.isfinite(np.delete(found, 2, axis=1)).all()
    assert any('slipped' in note for note in notes) is refused


def test_a_pause_is_left_to_the_other_periods(robot: RobotModel) -> None:
    log = recording(noise=0.0)
    assert log.motor_position is not None
    motor = log.motor_position.copy()
    motor[(log.time > 2.2 * PERIOD) & (log.time < 2.4 * PERIOD), 1] = np.nan
    found, exact, _ = deflection(robot, replace(log, motor_position=motor))
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-6)


def test_motors_that_were_not_recorded_stay_out(robot: RobotModel) -> None:
    log = replace(recording(), joints=robot.joints, motor_position=None)
    assert average(robot, log, SETTINGS).parts[0].motor_position is None
