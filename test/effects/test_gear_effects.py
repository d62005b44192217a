"""Kinematic error and hysteresis of gears against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from tolerances import SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.effects import GearEffects, Hysteresis, KinematicError, Springs
from robot_dynid.effects.gears import LoadedHysteresis
from robot_dynid.types import FloatArray, Samples

ERROR, RATE, UNBENT = (3e-5, -2e-5), 200.0, 4e-4


def bent(deflection: FloatArray, sensors: tuple[int, ...] = ()):
    """Return an arm whose second joint is elastic, and a motion in which its gear is bent."""
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(1,), torque_sensors=sensors,
                                         gear_ratios=np.full(3, 0.5 * RATE)))
    time = 1e-3 * np.arange(len(deflection))
    link = 0.3 * np.sin(time)
    motor = link + deflection
    position = np.stack([link, link, link, motor], axis=1)
    return robot, Samples(robot.joints, time, position, np.gradient(position, time, axis=0),
                          np.zeros_like(position))


def columns(block, robot, samples):
    out = np.zeros((robot.rows, len(block.names), len(samples)))
    block.fill(samples, block.history(samples), np.arange(len(block.names)), out)
    return out


@pytest.mark.parametrize('sensors', [(), (1,)])
def test_waves_are_those_of_the_power_balance(sensors: tuple[int, ...]) -> None:
    """``T = K e + D e'`` with the gear, ``de/dtheta K d`` beside it with the motor."""
    phase = np.linspace(0.0, 20.0, 4001)
    robot, samples = bent(1e-3 * np.sin(phase), sensors)
    gears = Springs(robot).gears
    block = KinematicError(robot, gears, (GearEffects(ERROR, (), UNBENT),))
    stiffness, damping = 5e3, 10.0
    a, b = ERROR
    torque = columns(block, robot, samples).transpose(0, 2, 1) @ np.array(
        [stiffness * a, stiffness * b, damping * a, damping * b])
    theta, speed = samples.position[:, 3], samples.velocity[:, 3]
    error = a * np.sin(RATE * theta) + b * np.cos(RATE * theta)
    slope = RATE * (a * np.cos(RATE * theta) - b * np.sin(RATE * theta))
    passes = stiffness * error + damping * slope * speed
    beside = slope * stiffness * (theta - samples.position[:, 1] - UNBENT)
    both = passes + beside
    expected = [0.0, beside, 0.0, both] if not sensors else [0.0, 0.0, 0.0, beside, passes]
    for row, one in zip(torque, expected, strict=True):
        assert row == pytest.approx(np.broadcast_to(one, row.shape), rel=SAME_FORMULA, abs=1e-12)


def test_the_area_of_a_loop_is_that_of_a_spring_that_slips() -> None:
    """A turn over deflections of +-r takes ``4 h (r - length)``; none where it never slips."""
    reach, lengths = 5e-4, (1e-4, 3e-4, 1e-3)
    robot, samples = bent(reach * np.sin(np.linspace(0.0, 6.0 * np.pi, 6001)))
    block = Hysteresis(robot, Springs(robot).gears, (GearEffects(None, lengths),))
    operators = columns(block, robot, samples)
    assert block.names == block.nonnegative == ('ha2', 'hb2', 'hc2')
    assert not operators[:3].any()
    deflection, last = samples.position[:, 3] - samples.position[:, 1], slice(4000, 6001)
    for operator, length in zip(operators[3], lengths, strict=True):
        area = trapezoid(operator[last], deflection[last])
        assert area == pytest.approx(4.0 * max(reach - length, 0.0), rel=1e-3, abs=1e-9)


def test_operators_move_by_the_kinematic_error_as_well() -> None:
    robot, samples = bent(np.zeros(2001))
    gears = Springs(robot).gears
    moved = Hysteresis(robot, gears, (GearEffects(ERROR, (1e-3,)),)).history(samples)[0]
    phase = RATE * samples.position[:, 3]
    error = ERROR[0] * np.sin(phase) + ERROR[1] * np.cos(phase)
    assert moved == pytest.approx((error - error[0]) / 1e-3, abs=1e-12)
    assert not Hysteresis(robot, gears, (GearEffects(None, (1e-3,)),)).history(samples).any()


def test_states_of_dahl_grow_exponentially_and_other_kinds_are_refused() -> None:
    robot, samples = bent(np.linspace(0.0, 3e-3, 3001))
    effects = GearEffects(None, (1e-3,), states='dahl')
    state = Hysteresis(robot, Springs(robot).gears, (effects,)).history(samples)[0]
    reach = samples.position[:, 3] - samples.position[:, 1]
    assert state == pytest.approx(1.0 - np.exp(-reach / 1e-3), abs=1e-12)
    with pytest.raises(ValueError, match='use maxwell or dahl'):
        GearEffects(None, (1e-3,), states='preisach')


def test_states_under_load_are_wider_by_the_deflection() -> None:
    """By its size, and by itself: on one side more than on the other."""
    bend = UNBENT + 1e-3 * np.sin(np.linspace(0.0, 20.0, 2001))
    robot, samples = bent(bend)
    effects = GearEffects(None, (5e-5, 5e-4), UNBENT)
    gears = Springs(robot).gears
    plain = np.concatenate([columns(Hysteresis(robot, gears, (replace(effects, states=kind),)),
                                    robot, samples) for kind in ('maxwell', 'dahl')], axis=1)
    block = LoadedHysteresis(robot, gears, (effects,))
    found = columns(block, robot, samples)
    assert block.names == tuple(f'{width}{kind}{length}2' for width in 'bcd' for kind in 'md'
                                for length in 'ab')
    np.testing.assert_array_equal(found[:, :4], plain)
    load = (samples.position[:, 3] - samples.position[:, 1] - UNBENT) / 2.5e-4
    np.testing.assert_allclose(found[:, 4:8], np.abs(load) * plain, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[:, 8:], load * plain, rtol=1e-12, atol=1e-15)


def test_effects_are_told_in_the_units_of_joints_that_turn_and_that_slide() -> None:
    robot = load_robot('stanford_arm')
    robot = replace(robot, drive=replace(robot.drive, elastic=(1, 2)))
    gears = Springs(robot).gears
    effects = (GearEffects(ERROR, (1e-4, 2e-4)), GearEffects(ERROR, (3e-5,)))
    waves, states = ([(one.name, one.part, one.words, one.unit) for one in kind(
        robot, gears, effects).words] for kind in (KinematicError, Hysteresis))
    turns, slides = robot.joints[1:3]
    error = 'of the kinematic error times'
    assert waves == [
        ('Ks2', turns, f'sine {error} stiffness', 'N m'),
        ('Kc2', turns, f'cosine {error} stiffness', 'N m'),
        ('Ds2', turns, f'sine {error} damping', 'N m s'),
        ('Dc2', turns, f'cosine {error} damping', 'N m s'),
        ('Ks3', slides, f'sine {error} stiffness', 'N'),
        ('Kc3', slides, f'cosine {error} stiffness', 'N'),
        ('Ds3', slides, f'sine {error} damping', 'N s'),
        ('Dc3', slides, f'cosine {error} damping', 'N s')]
    loop = 'hysteresis of the gear that turns over'
    assert states == [('ha2', turns, f'{loop} 0.0001 of deflection', 'N m'),
                      ('hb2', turns, f'{loop} 0.0002 of deflection', 'N m'),
                      ('ha3', slides, f'{loop} 3e-05 of deflection', 'N')]
