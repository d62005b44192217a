"""robot/implausible.py: states in other units than the limits of a robot are named, with what they
may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.robot.implausible import beyond_limits
from robot_dynid.robot.model import PRISMATIC, REVOLUTE
from robot_dynid.robot.robot_file import load_robot

PLANAR = load_robot('planar_3r')
LIMITS = replace(PLANAR.limits, lower=np.array([-2.1, 0.0, np.nan]),
                 upper=np.array([2.1, 0.4, np.nan]), velocity=np.array([2.0, 0.5, np.nan]))
#: a joint with limits, one that slides, one that turns for ever
ROBOT = replace(PLANAR, limits=LIMITS,
                types=np.array([REVOLUTE, PRISMATIC, REVOLUTE], dtype=np.int8))
REST = np.zeros((2, 3))


def at(joint: int, value: float) -> np.ndarray:
    """Return two states, in the second of which one joint has this value."""
    state = REST.copy()
    state[1, joint] = value
    return state


@pytest.mark.parametrize(('joint', 'value', 'said'), [
    (0, 30.0, 'position of joint_1 is 30 rad in state 1, its limit is -2.1 to 2.1 rad: if these '
     'are degrees, give 0.5236 rad'),
    (0, -200.0, 'position of joint_1 is -200 rad in state 1, its limit is -2.1 to 2.1 rad: give '
     'rad within the limits'),
    (1, 300.0, 'position of joint_2 is 300 m in state 1, its limit is 0 to 0.4 m: if these are '
     'mm, give 0.3 m'),
    (1, 500.0, 'position of joint_2 is 500 m in state 1, its limit is 0 to 0.4 m: if these are '
     'mm, give 0.5 m'),
    (1, -100.0, 'position of joint_2 is -100 m in state 1, its limit is 0 to 0.4 m: if these are '
     'mm, give -0.1 m'),
    (0, 2.201, 'position of joint_1'), (0, -2.201, 'position of'),
    (0, 2.199, ''), (0, -2.199, ''), (2, 1e4, ''), (0, np.nan, ''),
    (0, np.inf, '')])
def test_positions_beyond_the_limits_are_named(joint: int, value: float, said: str) -> None:
    found = beyond_limits(ROBOT, at(joint, value), REST)
    assert len(found) == bool(said) and ''.join(found).startswith(said)


@pytest.mark.parametrize(('joint', 'value', 'said'), [
    (0, -90.0, 'velocity of joint_1 is -90 rad/s in state 1, its limit is 2 rad/s: if these are '
     'degrees/s, give -1.571 rad/s'),
    (1, 100.0, 'velocity of joint_2 is 100 m/s in state 1, its limit is 0.5 m/s: if these are '
     'mm/s, give 0.1 m/s'),
    (0, 20.2, 'velocity of joint_1 is 20.2 rad/s in state 1, its limit is 2 rad/s: if these are '
     'degrees/s, give 0.3526 rad/s'), (0, 19.8, ''), (2, 1e4, '')])
def test_velocities_beyond_the_limits_are_named(joint: int, value: float, said: str) -> None:
    found = beyond_limits(ROBOT, REST, at(joint, value))
    assert len(found) == bool(said) and ''.join(found) == said


def test_beyond_limits_names_all_quantities_and_joints() -> None:
    states = np.array([[40.0, 50.0, 60.0], [-50.0, 60.0, 70.0]])
    position, velocity = beyond_limits(ROBOT, states, states)
    assert position.startswith('position of joint_1 is -50 rad in state 1, its limit is -2.1 to '
                               '2.1 rad (beyond theirs too: joint_2): ')
    assert velocity.startswith('velocity of joint_1 is -50 rad/s in state 1')


def test_a_limit_of_zero_is_none() -> None:
    """Some descriptions write it for unknown ones."""
    still = replace(ROBOT, limits=replace(LIMITS, velocity=np.zeros(3)))
    assert beyond_limits(still, REST, REST + 1.0) == ()
