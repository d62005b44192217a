"""effects/gears.py: springs, kinematic error and hysteresis of gears against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from tolerances import SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import GearEffects, Hysteresis, KinematicError, Springs
from robot_dynid.effects.gears import LoadedHysteresis, effect_blocks
from robot_dynid.robot.model import RobotModel
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


#: values of all parameters of the gears of `two_gears`, no two alike
VALUES = {'Ia1': 0.4, 'K1': 5e3, 'D1': -2.0, 's1': 0.7, 'Ia3': 0.9, 'K3': 8e3, 'D3': 6.0,
          's3': -0.3, 'Ks1': 2.0, 'Kc1': -3.0, 'Ks3': 4.0, 'Kc3': 1.6, 'Ds3': 9.0, 'Dc3': 9.0,
          'Ds1': 9.0, 'Dc1': 9.0, 'ha1': 0.5, 'hb1': 0.6, 'ha3': 0.8}
#: their effects
EFFECTS = (GearEffects(ERROR, (1e-4, 2e-4)), GearEffects((1e-5, 2e-5), (3e-4,), states='dahl'))


def two_gears() -> RobotModel:
    """Return an arm whose first and third joint are elastic, the third with a torque sensor."""
    robot = load_robot('planar_3r')
    return replace(robot, drive=replace(robot.drive, elastic=(0, 2), torque_sensors=(2,),
                                        gear_ratios=np.array([50.0, 60.0, 80.0])))


def any_motion(robot: RobotModel) -> Samples:
    time = 1e-3 * np.arange(12.0)
    return Samples(robot.joints, time, *np.random.default_rng(1).normal(size=(3, 12, 5)))


def test_springs_have_deflection_rate_and_ones_in_the_equation_of_their_torque() -> None:
    robot = two_gears()
    block, samples = Springs(robot), any_motion(robot)
    assert block.names == ('K1', 'D1', 's1', 'K3', 'D3', 's3')
    assert block.nonnegative == ('K1', 'D1', 'K3', 'D3')
    q, qd, expected = samples.position, samples.velocity, np.zeros((6, 6, 12))
    expected[3, :3] = q[:, 3] - q[:, 0], qd[:, 3] - qd[:, 0], np.ones(12)
    expected[5, 3:] = q[:, 4] - q[:, 2], qd[:, 4] - qd[:, 2], np.ones(12)
    np.testing.assert_allclose(columns(block, robot, samples), expected, rtol=1e-12)


def test_acting_springs_are_gears_without_negative_damping() -> None:
    robot = two_gears()
    gears = Springs(robot).acting(Mechanism.without_effects(robot), VALUES).gears
    assert gears is not None
    assert gears.joints == (0, 2)
    for found, expected in ((gears.inertia, [0.4, 0.9]), (gears.stiffness, [5e3, 8e3]),
                            (gears.damping, [0.0, 6.0]), (gears.offset, [0.7, -0.3])):
        np.testing.assert_array_equal(found, expected)
    bare = Springs(robot).acting(Mechanism.without_effects(robot), {'D3': 0.5}).gears
    assert bare is not None and bare.damping.tolist() == [0.0, 0.5] and not bare.offset.any()


def test_acting_effects_are_the_waves_and_states_of_their_gears() -> None:
    robot = two_gears()
    bare = Springs(robot).acting(Mechanism.without_effects(robot), VALUES)
    waves, states = effect_blocks(robot, EFFECTS)
    gears = states.acting(waves.acting(bare, VALUES), VALUES).gears
    assert gears is not None
    np.testing.assert_allclose(gears.waves, [[100.0, 2.0 / 5e3, -3.0 / 5e3],
                                             [160.0, 4.0 / 8e3, 1.6 / 8e3]])
    stop, dahl = gears.states[0, 1], gears.states[2, 1]
    assert stop != dahl
    np.testing.assert_allclose(gears.states, [
        [0, stop, 1e-4, 0.5], [0, stop, 2e-4, 0.6], [1, dahl, 3e-4, 0.8]])
    second = (GearEffects(), EFFECTS[1])
    one = KinematicError(robot, Springs(robot).gears, second).acting(bare, VALUES).gears
    assert one is not None
    np.testing.assert_allclose(one.waves, [[0.0] * 3, [160.0, 4.0 / 8e3, 1.6 / 8e3]])


def test_effect_blocks_leaves_out_those_without_parameters() -> None:
    robot = two_gears()
    waves, states = GearEffects(ERROR), GearEffects(None, (1e-4,))
    for effects, kinds in (((GearEffects(), waves), [KinematicError]),
                           ((GearEffects(), states), [Hysteresis]),
                           ((GearEffects(), GearEffects()), []),
                           ((waves, states), [KinematicError, Hysteresis])):
        assert [type(block) for block in effect_blocks(robot, effects)] == kinds
    names = [block.names for block in effect_blocks(robot, (waves, states))]
    assert names == [('Ks1', 'Kc1', 'Ds1', 'Dc1'), ('ha3',)]


def test_columns_of_two_gears_are_those_of_each() -> None:
    robot = two_gears()
    samples, gears = any_motion(robot), Springs(robot).gears
    for kind in (KinematicError, Hysteresis):
        both = columns(kind(robot, gears, EFFECTS), robot, samples)
        apart = [columns(kind(robot, gears[i:i + 1], EFFECTS[i:i + 1]), robot, samples)
                 for i in (0, 1)]
        np.testing.assert_allclose(both, np.concatenate(apart, axis=1), rtol=1e-12)
        assert both[3].any() and both[5].any()
        generic = kind(robot, gears, EFFECTS).generic(samples)
        assert generic.shape == kind(robot, gears, EFFECTS).history(samples).shape
    block = KinematicError(robot, gears, EFFECTS)
    chosen, whole = np.array([1, 4, 7]), columns(block, robot, samples)
    out = np.zeros((6, 3, 12))
    block.fill(samples, block.history(samples), chosen, out)
    np.testing.assert_array_equal(out, whole[:, chosen])


@pytest.mark.parametrize('kind', [KinematicError, Hysteresis])
def test_effects_of_a_gear_too_few_are_refused(kind: type) -> None:
    robot = two_gears()
    bare = Springs(robot).acting(Mechanism.without_effects(robot), VALUES)
    few, samples = kind(robot, Springs(robot).gears, EFFECTS[:1]), any_motion(robot)
    for use in (lambda: few.names, lambda: list(few.words), lambda: few.acting(bare, VALUES),
                lambda: few.history(samples), lambda: few.kernel_columns(np.arange(1))):
        with pytest.raises(ValueError, match='shorter'):
            use()


def test_generic_operators_fill_the_range_independently() -> None:
    robot = two_gears()
    samples = replace(any_motion(robot), time=np.arange(400.0), position=np.zeros((400, 5)),
                      velocity=np.zeros((400, 5)), acceleration=np.zeros((400, 5)))
    gears = Springs(robot).gears
    found = [kind(robot, gears, EFFECTS).generic(samples) for kind in (
        Hysteresis, LoadedHysteresis)]
    noise = np.concatenate(found)
    assert [len(one) for one in found] == [3, 18] and np.abs(noise).max() < 1.0
    np.testing.assert_allclose(noise @ noise.T / 400.0, np.eye(21) / 3.0, rtol=0.0, atol=0.09)


@pytest.mark.parametrize('ratios', [None, np.array([50.0, np.nan, np.nan])])
def test_gears_of_unknown_ratio_have_no_waves(ratios: FloatArray | None) -> None:
    robot = two_gears()
    robot = replace(robot, drive=replace(robot.drive, gear_ratios=ratios))
    samples, gears = any_motion(robot), Springs(robot).gears
    torque = KinematicError(robot, gears[1:], EFFECTS[1:]).history(samples)
    np.testing.assert_array_equal(torque[[0, 2, 3, 4, 5]], 0.0)
    np.testing.assert_array_equal(torque[1], 1.0)
