"""signals/plausible.py: the largest values that a robot can have, and what is dropped beyond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.plausible import drop_implausible, possible
from robot_dynid.types import CHANNELS, FloatArray, RawLog

PLANAR = load_robot('planar_3r')
ROBOT = replace(
    PLANAR, drive=Drive('current', np.array([2.0, -4.0, 0.5]),
                        gear_ratios=np.array([-50.0, 0.5, 1.0])),
    limits=replace(PLANAR.limits, lower=np.array([-9.0, -1.0, np.nan]),
                   upper=np.array([8.0, 7.0, np.nan]), velocity=np.array([4.0, 20.0, np.nan]),
                   effort=np.array([300.0, 600.0, np.nan])))
#: what is possible within 3 s: of an endless joint by its speed, in amperes by the gains
REACH, SPEED = np.array([9.0, 7.0, 30.0]), np.array([10.0, 20.0, 10.0])
TORQUE, GEARS = np.array([300.0, 600.0, 100.0]), np.array([50.0, 1.0, 1.0])
LARGEST = {'position': REACH, 'velocity': SPEED, 'effort': np.array([150.0, 150.0, 100.0]),
           'motor_position': REACH * GEARS, 'motor_velocity': SPEED * GEARS,
           'temperature': np.full(3, 100.0), 'reference_position': REACH, 'joint_torque': TORQUE,
           'external_torque': TORQUE}


def test_what_a_robot_can_do_follows_from_its_limits() -> None:
    found = possible(ROBOT, 3.0)
    assert set(found) == set(LARGEST) == set(CHANNELS)
    for name, values in LARGEST.items():
        np.testing.assert_allclose(found[name], values, err_msg=name)
    bare = replace(ROBOT, drive=Drive())
    np.testing.assert_allclose(possible(bare, 3.0)['motor_position'], 1e3 * REACH)
    assert possible(ROBOT, 0.1)['position'].tolist() == [9.0, 7.0, 2.0 * np.pi]


def log_of(name: str, values: FloatArray) -> RawLog:
    """Return 31 rows of 3 s at rest, with a channel."""
    time = np.linspace(0.0, 3.0, 31)
    return RawLog('run', ROBOT.joints, time, **{'position': np.zeros((31, 3)), name: values})


@pytest.mark.parametrize('name', CHANNELS)
@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_values_beyond_a_hundred_times_of_that_are_dropped(name: str, sign: float) -> None:
    bound = 100.0 * LARGEST[name]
    values = np.ones((31, 3))
    values[5], values[7, 1] = sign * 0.99 * bound, sign * 1.01 * bound[1]
    values[9, 1] = np.nan
    found, notes = drop_implausible(ROBOT, log_of(name, values))
    expected = values.copy()
    expected[7, 1] = np.nan
    np.testing.assert_array_equal(getattr(found, name), expected)
    assert notes == [f'run: {name}.joint_2: 1 values that no robot can have (first '
                     f'{sign * 1.01 * bound[1]:.3g} at t = 0.7 s; beyond {bound[1]:.3g}) dropped']
    sound = log_of(name, np.where(np.isnan(expected), 1.0, expected))
    assert drop_implausible(ROBOT, sound) == (sound, [])


def test_a_column_in_another_unit_is_judged_by_its_median() -> None:
    """A billion at most, so that a column of damage is none."""
    values = np.outer(np.ones(31), [1e6, 1.0, 1e12])
    values[3, 0], values[4, 0], values[6, 0] = 0.9e8, 1.1e8, np.inf
    found, notes = drop_implausible(ROBOT, log_of('effort', values))
    assert found.effort is not None
    assert np.flatnonzero(np.isnan(found.effort[:, 0])).tolist() == [4, 6]
    assert np.isnan(found.effort[:, 2]).all() and len(notes) == 2
    assert 'joint_1: 2 values' in notes[0] and '(first 1.1e+08 at t = 0.4 s; beyond' in notes[0]
    assert 'joint_3: 31 values' in notes[1] and 'beyond 1e+11' in notes[1]


def test_efforts_with_stamps_of_their_own_are_dropped_without_a_second_note() -> None:
    time, values = np.linspace(0.1, 2.9, 20), np.ones((20, 3))
    values[4, 0] = 1.6e4
    log = replace(log_of('effort', np.ones((31, 3))), effort_messages=(time, values))
    found, notes = drop_implausible(ROBOT, log)
    assert found.effort_messages is not None and not notes
    assert np.argwhere(np.isnan(found.effort_messages[1])).tolist() == [[4, 0]]
    assert drop_implausible(ROBOT, RawLog('run', ROBOT.joints, np.zeros(0), np.zeros((0, 3))))[
        1] == []
