"""Limits of motion in closed form: narrowed, slowed down, used, broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import (
    HEADROOM,
    MotionLimits,
    fractions_used,
    largest_gain,
    motion_limits,
    narrow_limits,
    quintic_move,
    violations,
)
from robot_dynid.trajectories.trajectory import Peaks
from robot_dynid.types import FloatArray


def row(*values: float) -> FloatArray:
    return np.array(values)


LIMITS = MotionLimits(('a', 'b'), row(-1.0, 2.0), row(3.0, 4.0), row(2.0, 5.0), row(10.0, 20.0),
                      row(100.0, np.nan), row(40.0, 50.0))
#: a is nearest to its lower limit and to its velocity, b to its upper limit
PEAKS = Peaks(row(-0.5, 2.9), row(1.5, 3.8), row(1.6, 1.0), row(5.0, 4.0), row(25.0, 8.0))


def test_slower_by_s_is_less_acceleration_by_its_square_and_less_jerk_by_its_cube() -> None:
    found = LIMITS.scaled(0.5, 0.2)
    assert found.lower.tolist() == [0.0, 2.5] and found.upper.tolist() == [2.0, 3.5]
    np.testing.assert_allclose(found.velocity, 0.5 * 0.2 * LIMITS.velocity)
    np.testing.assert_allclose(found.acceleration, 0.5 * 0.04 * LIMITS.acceleration)
    np.testing.assert_allclose(found.jerk, 0.5 * 0.008 * LIMITS.jerk)
    assert found.effort is LIMITS.effort
    for wrong in ((0.0, 1.0), (1.1, 1.0), (1.0, 0.0), (1.0, 1.1)):
        with pytest.raises(UsageError, match='must be above 0 and at most 1'):
            LIMITS.scaled(*wrong)


def test_positions_are_used_up_towards_the_nearer_limit() -> None:
    used = fractions_used(PEAKS, LIMITS)
    assert used['a'] == pytest.approx(
        {'position': 0.75, 'velocity': 0.8, 'acceleration': 0.5, 'jerk': 0.25})
    assert used['b'] == pytest.approx({'position': 0.8, 'velocity': 0.2, 'acceleration': 0.2})


def test_the_largest_gain_reaches_the_first_limit() -> None:
    # a: its velocity, 2 / 1.6; b: half its range over half its travel, 1 / 0.45
    assert largest_gain(PEAKS, LIMITS) == pytest.approx(
        (1.0 - HEADROOM) * row(2.0 / 1.6, 1.0 / 0.45))


@pytest.mark.parametrize(('name', 'value', 'limit'), [
    ('lower', -1.25, '-1'), ('upper', 3.25, '3'), ('velocity', 2.5, '2'),
    ('acceleration', 10.5, '10'), ('jerk', 100.5, '100')])
def test_every_limit_that_is_broken_is_named(name: str, value: float, limit: str) -> None:
    assert violations(PEAKS, LIMITS) == ()
    assert violations(Peaks(LIMITS.lower, LIMITS.upper, LIMITS.velocity, LIMITS.acceleration,
                            LIMITS.jerk), LIMITS) == (), 'at its limits it exceeds none'
    peaks = getattr(PEAKS, name).copy()
    peaks[0] = value
    kind = 'position' if name in ('lower', 'upper') else name
    assert violations(replace(PEAKS, **{name: peaks}), LIMITS) == (
        f"{kind} of joint 'a' reaches {value:g}, its limit is {limit}",)


@pytest.mark.parametrize(('name', 'wider', 'narrower'), [
    ('position', [-1.5, 3.0], [-0.5, 2.5]), ('position', [-1.0, 3.5], [-0.5, 2.5]),
    ('velocity', 2.5, 1.5), ('velocity', 2.1, 2.0),
    ('position', [-1.1, 3.0], [-1.0, 3.0]), ('acceleration', 10.5, 0.5), ('effort', 41.0, 39.0)])
def test_limits_are_narrowed_and_never_widened(
    name: str, wider: object, narrower: object
) -> None:
    with pytest.raises(UsageError, match='wider than the'):
        narrow_limits(LIMITS, {'a': {name: wider}})
    found = narrow_limits(LIMITS, {'a': {name: narrower}})
    kept = [found.lower[0], found.upper[0]] if name == 'position' else getattr(found, name)[0]
    assert kept == narrower


def test_a_zero_in_the_description_stands_for_unknown() -> None:
    robot = load_robot('planar_3r')

    def described(**first: float) -> RobotModel:
        given = {name: getattr(robot.limits, name).copy() for name in first}
        for name, value in first.items():
            given[name][0] = value
        return replace(robot, limits=replace(robot.limits, **given))

    found = motion_limits(described(effort=0.0)).effort
    np.testing.assert_array_equal(found, [np.nan, *robot.limits.effort[1:]])
    with pytest.raises(RobotError, match="joint 'joint_1': velocity"):
        motion_limits(described(velocity=0.0))
    with pytest.raises(RobotError, match="effort limit of joint 'joint_1' is -1"):
        motion_limits(described(effort=-1.0))


@pytest.mark.parametrize(('step', 'limits', 'seconds'), [
    # 15 / 8 of the mean speed; the root of 10 / sqrt(3); the cube root of 60; at least 0.5 s
    ((1.0, -4.0), LIMITS, 1.001 * 15.0 / 8.0 * 4.0 / 5.0),
    ((-0.6, 0.0), replace(LIMITS, velocity=row(90.0, 90.0), jerk=row(np.nan, np.nan)),
     1.001 * np.sqrt(10.0 / np.sqrt(3.0) * 0.6 / 10.0)),
    ((0.6, 0.0), replace(LIMITS, velocity=row(90.0, 90.0), jerk=row(12.0, np.nan)),
     1.001 * (60.0 * 0.6 / 12.0) ** (1.0 / 3.0)),
    ((0.001, 0.001), LIMITS, 0.5)])
def test_a_move_takes_as_long_as_its_first_limit_asks(
    step: tuple[float, float], limits: MotionLimits, seconds: float
) -> None:
    start = row(0.7, -0.3)
    found = quintic_move(('a', 'b'), (start, start + step), limits)
    assert found.duration == pytest.approx(seconds, rel=1e-9)
    assert violations(found.peaks(), replace(limits, lower=row(-9.0, -9.0),
                                             upper=row(9.0, 9.0))) == ()
    assert quintic_move(('a', 'b'), (start, start + step), limits, 7.0).duration == 7.0
    with pytest.raises(UsageError, match="start or goal of joint 'b' is not finite"):
        quintic_move(('a', 'b'), (start, row(1.0, np.inf)), limits)


@pytest.mark.parametrize(('overrides', 'words'), [
    ([1.0], "option 'limits' must map joint names to limits"),
    ({'c': {}}, "option 'limits' names joint 'c'; the robot has a, b"),
    ({'a': 2.0}, "limits of joint 'a' must be a mapping such as velocity: 1.0"),
    ({'b': {'speed': 1.0}}, "unknown limit 'speed' of joint 'b'; choose one of position, veloc"),
    ({'b': {'velocity': 5.5}}, "limit velocity of joint 'b' is 5.5, wider than the 5 of the "
     'robot: give a narrower one'),
    ({'a': {'position': [-1.0, 3.5]}}, 'is [-1.0, 3.5], wider than the -1 to 3 of the robot'),
    ({'a': {'position': [2.0, 1.0]}}, "joint 'a' has no range to move in: lower limit 2, upper "
     'limit 1'),
    ({'a': {'position': [2.0, 2.0]}}, "joint 'a' has no range to move in: lower limit 2, upper")])
def test_wrong_limits_are_named_with_what_there_is(overrides: object, words: str) -> None:
    with pytest.raises((UsageError, RobotError)) as raised:
        narrow_limits(LIMITS, overrides)  # type: ignore[arg-type]
    assert words in str(raised.value)


def test_unknown_limits_are_listed_by_joint() -> None:
    unknown = replace(LIMITS, lower=row(np.nan, 2.0), upper=row(np.nan, 4.0),
                      velocity=row(np.nan, np.nan))
    with pytest.raises(RobotError) as raised:
        unknown.require('lower', 'upper', 'velocity')
    assert str(raised.value).startswith(
        "limits are missing for joints 'a': position, 'a': velocity and 'b': velocity; give them")
    assert LIMITS.centre.tolist() == [1.0, 3.0] and LIMITS.half_range.tolist() == [2.0, 1.0]
    still = fractions_used(PEAKS, replace(LIMITS, lower=row(3.0, 2.0)))
    assert 'position' not in still['a'] and still['b']['position'] == pytest.approx(0.8)
