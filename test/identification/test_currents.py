"""robot/model.py: currents become torque by the drive gains wherever effort is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.types import RawLog

GAINS = np.array([10.0, -2.0, 0.5])
MODEL = nominal_model('planar_3r')
ROBOT = replace(MODEL.robot, drive=replace(MODEL.robot.drive, kind='current', gains=GAINS))
AMPS = np.random.default_rng(0).normal(size=(6, 3))


def test_motors_feel_the_gain_and_share_by_the_coupling() -> None:
    np.testing.assert_allclose(ROBOT.motor_torque(AMPS * ROBOT.torque_factors), GAINS * AMPS)
    coupling = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -0.5, 2.0]])
    coupled = replace(ROBOT, drive=replace(ROBOT.drive, coupling=coupling))
    torque = coupled.motor_torque(AMPS * coupled.torque_factors)
    np.testing.assert_allclose(torque @ coupling, GAINS * AMPS)


@pytest.mark.parametrize(('robot', 'factors'), [(ROBOT, GAINS), (MODEL.robot, np.ones(3))])
def test_the_monitor_works_in_torque(robot, factors) -> None:  # type: ignore[no-untyped-def]
    model = replace(MODEL, robot=robot, preprocessing=replace(MODEL.preprocessing, effort_lag=0.0))
    np.testing.assert_array_equal(model.robot.torque_factors, factors)
    still = np.zeros((6, 3))
    log = RawLog('run', robot.joints, 0.01 * np.arange(6), still, still, AMPS)
    np.testing.assert_allclose(monitor_input(model, log).effort, factors * AMPS)
