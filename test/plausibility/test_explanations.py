"""plausibility/explanations.py: every mistake is in the table, and its change undoes it."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.explanations import (
    Change,
    Explanation,
    explanations,
    gravity_direction,
    mounting,
    zero,
)
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.score import Explained
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Drive, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

DEGREES = 180.0 / np.pi
RATIOS, GAINS = np.array([50.0, -80.0, 100.0]), np.array([2.0, -3.0, 4.0])
PLANAR = load_robot('planar_3r')
#: two axes that turn and one that slides
ROBOT = replace(PLANAR, types=np.array([REVOLUTE, PRISMATIC, REVOLUTE], dtype=np.int8),
                drive=Drive('torque', gains=GAINS, gear_ratios=RATIOS))
CURRENT = replace(ROBOT, drive=Drive('current', gains=GAINS))
TURNS, SLIDES = ROBOT.types == REVOLUTE, ROBOT.types == PRISMATIC
ALL = (0, 1, 2)


def excerpt_of(robot: RobotModel) -> Excerpt:
    """Return 160 rows of sines in all joints, and 20 blocks of their travel."""
    phase = np.outer(np.arange(160) / 16.0, [0.7, 1.1, 1.9]) + np.arange(3.0)
    rate = np.array([0.7, 1.1, 1.9])
    q, qd, qdd = np.sin(phase), rate * np.cos(phase), -rate**2 * np.sin(phase)
    travel = np.outer(np.cos(np.arange(20.0)), [0.1, 0.2, 0.3])
    return Excerpt(q, qd, qdd, inverse_dynamics(robot, q, qd, qdd), travel, travel.copy(),
                   np.full(20, 0.2), 4e-3)


ROWS = excerpt_of(ROBOT)


def with_factor(joint: int, factor: float) -> FloatArray:
    """Return ones, but for a joint."""
    values = np.ones(3)
    values[joint] = factor
    return values


def moved(factor: Any, velocity: Any = 1.0, rows: Excerpt = ROWS) -> Excerpt:
    """Return rows with other positions, and measured velocities."""
    return replace(rows, position=rows.position * factor, velocity=rows.velocity * factor,
                   acceleration=rows.acceleration * factor, travel=rows.travel * factor,
                   integrated=rows.integrated * velocity)


def measured(factor: Any) -> Excerpt:
    """Return rows with other measured velocities."""
    return moved(1.0, factor)


def efforts(factor: Any) -> Excerpt:
    """Return rows with other efforts."""
    return replace(ROWS, torque=ROWS.torque * factor)


def stamped(unit: float, rows: Excerpt = ROWS) -> Excerpt:
    """Return rows whose stamps are in a unit [s]."""
    return replace(rows, velocity=rows.velocity * unit, acceleration=rows.acceleration * unit**2,
                   integrated=rows.integrated / unit, seconds=rows.seconds / unit,
                   step=rows.step / unit)


def swapped(*tables: str) -> Excerpt:
    """Return rows with the first and last joint swapped in these tables."""
    return replace(ROWS, **{name: getattr(ROWS, name)[:, [2, 1, 0]] for name in tables})


MOTION = ('position', 'velocity', 'acceleration', 'travel')
REVERSED, DEG = with_factor(2, -1.0), np.where(TURNS, DEGREES, 1.0)
#: looks, joints, the spoiled rows, kind, words of the remedy, numbers fitted
UNDONE: list[tuple[str, tuple[int, ...], Excerpt, str, str, int]] = [
    *((f'stamps look like {name}', (), stamped(unit), 'time_unit',
       f'multiply time by {unit:g}, so that it is in seconds{table}', 0) for name, unit, table in (
        ('ms', 1e-3, ' (of a table: unit: ms in columns)'),
        ('us', 1e-6, ' (of a table: unit: us in columns)'),
        ('ns', 1e-9, ' (of a table: unit: ns in columns)'), ('minutes', 60.0, ''))),
    ('stamps look like us, and positions like degrees', (), stamped(1e-6, moved(DEG, DEG)),
     'time_unit', 'multiply time by 1e-06, so that it is in seconds (of a table: unit: us in '
     'columns), and convert positions to rad, velocities to rad/s', 0),
    *((f'velocities look like {name}', ALL, measured(factor), 'velocity', 'convert positions', 0)
      for name, factor in (('deg/s', DEGREES), ('rpm', 60.0 / (2.0 * np.pi)),
                           ('turns per second', 1.0 / (2.0 * np.pi)),
                           ('rad/s while positions are degrees', 1.0 / DEGREES),
                           ('mm/s or mrad/s', 1000.0))),
    ('velocities look like those of the motors', ALL, measured(np.abs(RATIOS)), 'velocity',
     'divide velocities by the gear ratios', 0),
    ('velocities look negated', ALL, measured(-1.0), 'velocity', 'change the sign of the', 0),
    ('velocities look negated', (2,), measured(REVERSED), 'velocity', 'change the sign of the', 0),
    ('velocities look 3 times too large', (1,), measured(with_factor(1, 3.0)), 'velocity',
     'divide its velocities by 3, or leave velocities out', 0),
    ('velocities look 4 times too small', (0,), measured(with_factor(0, 0.25)), 'velocity',
     'multiply its velocities by 4, or leave velocities out', 0),
    ('positions look like degrees', (0, 2), moved(DEG), 'position_unit',
     'convert positions to rad (of a table: unit: deg in columns); if they are those of', 0),
    ('positions and velocities look like degrees', (0, 2), moved(DEG, DEG), 'position_unit',
     'positions and velocities to rad and rad/s (of a table: unit: deg and deg/s in columns)', 0),
    ('positions look like mm', (1,), moved(np.where(SLIDES, 1e3, 1.0), np.where(SLIDES, 1e3, 1.0)),
     'position_unit', 'convert positions to m', 0),
    ('positions look like those of the motors, -80, 50, 100 times too large', ALL, moved(RATIOS),
     'position_unit', 'divide positions by the gear ratios', 3),
    ('positions and velocities look like those of the motors, -80, 50, 100 times too large', ALL,
     moved(RATIOS, RATIOS), 'position_unit', 'divide positions and velocities by the gear', 3),
    ('positions look 2 times too large', (1,), moved(with_factor(1, 2.0)), 'position_unit',
     'divide its positions by 2', 0),
    ('positions and velocities look 2 times too small', (1,), moved(*[with_factor(1, 0.5)] * 2),
     'position_unit', 'multiply its positions and velocities by 2', 0),
    ('positions look negated', (2,), moved(REVERSED), 'position_sign',
     'change the sign of its positions', 0),
    ('positions and velocities look negated', (2,), moved(REVERSED, REVERSED), 'position_sign',
     'change the sign of its positions and velocities', 0),
    ('the axis looks reversed', (2,), replace(moved(REVERSED, REVERSED),
                                              torque=ROWS.torque * REVERSED), 'position_sign',
     'change the sign of its positions, velocities and efforts', 0),
    *((f'the zero looks {angle:+d} degrees off', (2,), replace(
        ROWS, position=ROWS.position + with_factor(2, 1.0 + angle / DEGREES) - 1.0),
       'position_offset', f'subtract {angle / DEGREES:+.4g} rad from its positions',
       int(angle not in (90, -90, 180)))
      for angle in (5, -5, 30, -30, 60, -60, 90, -90, 120, -120, 150, -150, 180)),
    ('velocities look swapped', (0, 2), swapped('integrated'), 'velocity',
     'put velocity columns of these joints', 0),
    ('efforts look swapped', (0, 2), swapped('torque'), 'joint_order',
     'put effort columns of these joints', 0),
    ('the joints look swapped', (0, 2), swapped(*MOTION, 'integrated', 'torque'), 'joint_order',
     'put all columns of these joints', 0),
    ('efforts look negated', ALL, efforts(-1.0), 'effort_sign', 'change the sign of the', 0),
    ('efforts look negated', (2,), efforts(REVERSED), 'effort_sign', 'change the sign of the', 0),
    ('efforts look like mN m', ALL, efforts(1e3), 'effort_scale',
     'divide efforts by 1000, so that they are N m (N)', 0),
    ('efforts look like kN m', ALL, efforts(1e-3), 'effort_scale',
     'multiply efforts by 1000, so that they are N m (N)', 0),
    ('efforts look 10 times too large', ALL, efforts(10.0), 'effort_scale', 'efforts by 10,', 0),
    ('efforts look 100 times too large', ALL, efforts(100.0), 'effort_scale', 'efforts by 100', 0),
    ('efforts look like torque on the motor side of the gear, by the gear ratios of the robot',
     ALL, efforts(1.0 / np.abs(RATIOS)), 'effort_scale', 'multiply efforts by the gear ratios', 0),
    ('efforts look like currents in A, by the drive gains of the robot', ALL,
     efforts(1.0 / np.abs(GAINS)), 'effort_scale', 'state effort_kind: current', 0),
    ('efforts look like currents in mA, by the drive gains of the robot', ALL,
     efforts(1e3 / np.abs(GAINS)), 'effort_scale', 'divide efforts by 1000, and state effort', 0),
    *((f'efforts look {looks}', (1,), efforts(with_factor(1, factor)), 'effort_scale',
       f'{remedy}, or correct its gain or gear ratio', free) for looks, factor, remedy, free in (
        ('1000 times too large, as if they were mN m', 1e3, 'divide its efforts by 1000', 0),
        ('1000 times too small, as if they were kN m', 1e-3, 'multiply its efforts by 1000', 0),
        ('2 times too large', 2.0, 'divide its efforts by 2', 1),
        ('2 times too small', 0.5, 'multiply its efforts by 2', 1),
        ('10 times too large', 10.0, 'divide its efforts by 10', 0),
        ('10 times too small', 0.1, 'multiply its efforts by 10', 0),
        ('100 times too large', 100.0, 'divide its efforts by 100', 0),
        ('100 times too small', 0.01, 'multiply its efforts by 100', 0))),
]


def table(rows: Excerpt, robot: RobotModel = ROBOT) -> list[Explanation]:
    """Return the explanations of rows."""
    return list(explanations(Explained(robot, rows)))


def assert_equal(found: Excerpt, expected: Excerpt) -> None:
    """Compare all tables of two excerpts."""
    for one in fields(Excerpt):
        a, b = getattr(found, one.name), getattr(expected, one.name)
        np.testing.assert_allclose(a, b, rtol=SAME_FORMULA, atol=1e-12, err_msg=one.name)


@pytest.mark.parametrize(('looks', 'joints', 'spoiled', 'kind', 'remedy', 'free'), UNDONE,
                         ids=[f'{row[0]} {row[1]}' for row in UNDONE])
def test_a_mistake_is_undone_by_its_explanation(
    looks: str, joints: tuple[int, ...], spoiled: Excerpt, kind: str, remedy: str, free: int
) -> None:
    (one,) = [one for one in table(spoiled) if (one.looks, one.joints) == (looks, joints)]
    assert (one.kind, one.severity, one.free) == (kind, Severity.REFUSE, free)
    assert remedy in one.remedy
    assert_equal(one.change.rows(spoiled), ROWS)


@pytest.mark.parametrize(('share', 'severity'), [
    (1.04, None), (1.06, Severity.WARN), (1.0 / 1.06, Severity.WARN), (1.12, Severity.REFUSE),
    (0.88, Severity.REFUSE), (9.0, Severity.REFUSE), (11.0, None), (0.09, None)])
def test_a_clock_is_wrong_if_all_velocities_are_off_alike(
    share: float, severity: Severity | None
) -> None:
    """Stamps that run slower by a factor make positions change faster than velocities say."""
    spoiled = stamped(1.0 / share)
    found = [one for one in table(spoiled) if one.kind == 'clock']
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    for one in found:
        assert one.looks.startswith(f'velocity is {share:.3g} times the change of position in all')
        assert f'divide time by {share:.3g}' in one.remedy and one.free == 1
        assert_equal(one.change.rows(spoiled), ROWS)
    for off in (0.04, 0.06):
        apart = measured(1.3 * np.array([1.0, 1.0 + off, 1.0]))
        assert any(one.kind == 'clock' for one in table(apart)) == (off < 0.05)


def test_without_velocities_clocks_are_tried_and_velocities_are_no_cause() -> None:
    bare = table(measured(np.nan))
    assert [(one.change.time, one.remedy, one.free) for one in bare if one.kind == 'clock'] == [
        (0.5, '', 1), (0.8, '', 1), (1.25, '', 1), (2.0, '', 1)]
    assert {one.looks for one in bare if one.kind == 'velocity'} == {'velocities look swapped'}


def test_velocities_unrelated_to_the_motion_are_left_out() -> None:
    """Factors within five per cent are no finding; nor is a sign, which is one of its own."""
    found = [one for one in table(measured(np.array([1.04, 1.06, -2.0]))) if one.kind == 'velocity'
             and len(one.joints) == 1 and one.looks != 'velocities look negated']
    assert [(one.joints, one.looks) for one in found] == [
        ((0,), 'velocities are unrelated to the motion'),
        ((1,), 'velocities look 1.06 times too large'),
        *(((j,), 'velocities are unrelated to the motion') for j in (1, 2))]
    assert found[1].remedy == 'divide its velocities by 1.06, or leave velocities out'
    assert np.isnan(found[0].change.rows(ROWS).integrated).tolist() == [[True, False, False]] * 20


@pytest.mark.parametrize(('velocity', 'sizes'), [
    (np.nan, (30.0, 50.0, 80.0, 100.0, 130.0, 160.0)), (np.array([0.02, -0.0125, 0.01]), None)])
def test_gear_ratios_that_are_not_stated_are_tried_or_follow_from_velocities(
    velocity: Any, sizes: tuple[float, ...] | None
) -> None:
    bare = replace(ROBOT, drive=Drive('torque'))
    spoiled = moved(RATIOS, np.nan) if sizes else moved(RATIOS)
    factors = [1.0 / one.change.position for one in table(spoiled, bare)
               if one.change.position is not None and one.change.velocity is None
               and 'positions look like those of the motors' in one.looks]
    expected = [np.full(3, size) for size in sizes] if sizes else [RATIOS]
    np.testing.assert_allclose(factors, expected, rtol=1e-9)
    for ratio in (9.9, 10.1):
        slow = replace(ROBOT, drive=Drive('torque', gear_ratios=np.array([ratio, 50.0, 50.0])))
        assert any('of the motors,' in one.looks for one in table(ROWS, slow)) is (ratio > 10.0)


@pytest.mark.parametrize(('robot', 'unit'), [(ROBOT, 'N m (N)'), (CURRENT, 'A')])
def test_efforts_are_in_the_unit_of_the_drives(robot: RobotModel, unit: str) -> None:
    looks = [one for one in table(ROWS, robot) if one.kind == 'effort_scale']
    assert any(one.remedy.endswith(f'so that they are {unit}') for one in looks)
    assert any('look like currents' in one.looks for one in looks) == (unit != 'A')
    assert [one.change.effort.tolist() for one in looks if one.joints == (1,) and not one.remedy
            if one.change.effort is not None] == [[1.0, 1.0 / 1.3, 1.0], [1.0, 1.3, 1.0]]


@pytest.mark.parametrize(('size', 'words'), [
    (0.25, ''), (4.5, ''), (0.15, 'currents [A], or torque on the motor side of the gear'),
    (6.0, 'currents in mA, or another unit')])
def test_efforts_of_another_size_than_the_links_are_currents(size: float, words: str) -> None:
    (one,) = [one for one in table(efforts(size)) if one.kind == 'effort_scale' and (
        not one.joints or 'times those of the nominal links' in one.looks)]
    assert one.change.effort is not None
    # of a slide that takes little but the friction and rotor of sines the size is uncertain
    np.testing.assert_allclose(one.change.effort * size, 1.0, rtol=0.0,
                               atol=0.2 if words else 1e-6)
    np.testing.assert_allclose(one.change.effort[[0, 2]] * size, 1.0, rtol=1e-6)
    assert (one.joints, one.free) == ((ALL, 3) if words else ((), 1))
    assert f'they look like {words}' in one.looks if words else one.looks == one.remedy == ''
    assert ('divide efforts by 1000' in one.remedy) == (size > 5.0)


def test_descriptions_and_springs_are_tried_where_joints_move() -> None:
    found = table(ROWS)
    arms = [one for one in found if one.kind == 'description']
    lengths = (0.4, 0.5, 0.6, 0.7, 0.8, 1.25, 1.4, 1.7, 2.0, 2.5)
    assert [(one.change.length, one.change.mass, one.free) for one in arms] == [
        (size, size**power, 2) for size in lengths for power in (1, 2)]
    assert arms[0].looks == 'the arm looks 0.4 times as long as its description'
    springs = [one for one in found if one.kind == 'counterbalance']
    assert [(one.joints, one.change.sprung, one.severity, one.free) for one in springs] == [
        ((j,), (j,), Severity.WARN, 1) for j in (0, 2)]
    two_move = {one.kind for one in table(replace(ROWS, position=ROWS.position * [0.0, 1.0, 1.0]))}
    assert {'description', 'counterbalance', 'position_offset'} <= two_move
    one_moves = replace(ROWS, position=ROWS.position * [0.0, 0.0, 1.0])
    kinds = {one.kind for one in table(one_moves)}
    assert not kinds & {'description', 'counterbalance', 'position_offset', 'joint_order'}
    assert {'gravity', 'position_sign', 'effort_sign', 'velocity'} <= kinds


def test_an_arm_of_another_size_has_lengths_and_inertias_to_match() -> None:
    """Mass, first and second moments grow by the powers of length, times that of mass."""
    arm = Change(length=2.0, mass=3.0).robot(ROBOT)
    np.testing.assert_allclose(arm.nominal[:, 0], 3.0 * ROBOT.nominal[:, 0])
    np.testing.assert_allclose(arm.nominal[:, 1:4], 6.0 * ROBOT.nominal[:, 1:4])
    np.testing.assert_allclose(arm.nominal[:, 4:], 12.0 * ROBOT.nominal[:, 4:])
    np.testing.assert_allclose(arm.translations, 2.0 * ROBOT.translations)
    assert Change().robot(ROBOT) is ROBOT


def test_gravity_is_stated_along_axes_or_found() -> None:
    """Not along where it is; of compensated efforts only that they are not."""
    found = [one for one in table(ROWS) if one.kind == 'gravity']
    assert [one.looks for one in found[:6]] == [
        'efforts look gravity-compensated', *(f'the base looks {words}' for words in (
            'mounted on a wall, its x axis down', 'mounted on a wall, its y axis down',
            'hung from a ceiling', 'mounted on a wall, its x axis up',
            'mounted on a wall, its y axis up'))]
    assert found[0].change.kind == 'gravity_compensated_torque'
    for one, direction in zip(found[1:6], (*np.eye(3), *-np.eye(3)[:2]), strict=True):
        np.testing.assert_allclose(one.change.gravity, 9.81 * direction)
        assert (one.severity, one.free) == (Severity.REFUSE, 0)
    rest = replace(ROWS, position=0.0 * ROWS.position)
    assert {one.severity for one in table(rest) if 'base' in one.looks} == {Severity.WARN}
    floating = replace(ROBOT, drive=Drive('gravity_compensated_torque'))
    (one,) = [one for one in table(ROWS, floating) if one.kind == 'gravity']
    assert one.change.kind == 'torque' and 'effort_kind: torque' in one.remedy
    servos = replace(ROBOT, drive=Drive('position_error', GAINS, error_limit=np.ones(3)))
    assert not [one for one in table(ROWS, servos) if one.change.kind]


@pytest.mark.parametrize(('direction', 'shown', 'words'), [
    ((0.0, 0.0, -1.0), '[0, 0, -9.81]', 'mounted upright'),
    ((0.0, 0.0, 2.0), '[0, 0, 9.81]', 'hung from a ceiling'),
    ((3.0, 0.0, 0.0), '[9.81, 0, 0]', 'mounted on a wall, its x axis down'),
    ((-3.0, 0.0, 0.0), '[-9.81, 0, 0]', 'mounted on a wall, its x axis up'),
    ((0.0, 3.0, 0.0), '[0, 9.81, 0]', 'mounted on a wall, its y axis down'),
    ((0.0, -3.0, 0.0), '[0, -9.81, 0]', 'mounted on a wall, its y axis up'),
    ((0.0, np.sin(0.2), -np.cos(0.2)), '[0, 0, -9.81]', 'mounted upright'),
    ((0.0, np.sin(0.22), -np.cos(0.22)), '[0, 2.14, -9.57]', 'mounted at an angle'),
    ((0.0, 3.0 * np.sin(0.22), -3.0 * np.cos(0.22)), '[0, 2.14, -9.57]', 'mounted at an angle'),
])
def test_directions_within_twelve_degrees_of_an_axis_have_its_name(
    direction: tuple[float, ...], shown: str, words: str
) -> None:
    assert mounting(np.array(direction)) == (shown, words)


def test_changes_of_motion_share_equations_only_if_equal() -> None:
    """Factors of efforts and of measured velocities are no motion."""
    changes = [Change(), Change(position=np.ones(3)), Change(offset=np.ones(3)), Change(time=2.0),
               Change(gravity=np.ones(3)), Change(kind='torque'), Change(length=2.0),
               Change(mass=2.0), Change(sprung=(1,)),
               Change(swapped=(0, 1), channels=('position',)),
               zero(3, 0, 30.0).change, zero(3, 1, 30.0).change]
    assert len({one.motion for one in changes}) == len(changes)
    assert {Change().motion} == {one.motion for one in (
        Change(effort=np.ones(3)), Change(velocity=np.ones(3)),
        Change(swapped=(0, 1), channels=('effort',)))}


@pytest.mark.parametrize(('angle', 'offered'), [(11.5, False), (12.5, True)])
def test_gravity_is_not_tried_within_twelve_degrees_of_the_stated_one(
    angle: float, offered: bool
) -> None:
    """Whatever its size."""
    for size in (5.0, 9.81, 20.0):
        tilted = ROBOT.with_gravity(size * np.array([
            np.sin(np.radians(angle)), 0.0, -np.cos(np.radians(angle))]))
        looks = [one.looks for one in table(excerpt_of(tilted), tilted) if one.kind == 'gravity']
        assert ('the base looks mounted upright' in looks) == offered
        assert 'the base looks hung from a ceiling' in looks


def test_gravity_is_found_beside_any_friction() -> None:
    """Friction of a joint is whatever its basis spans, as large as the weight."""
    robot, rng = load_robot('ur10e'), np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 80, robot.n))
    gravity = 9.81 * np.array([2.0, -3.0, 6.0]) / 7.0
    torque = inverse_dynamics(robot.with_gravity(gravity), q, qd, qdd)
    basis = [np.linalg.qr(rng.normal(size=(80, 3)))[0] for _ in robot.joints]
    for j, own in enumerate(basis):
        torque[:, j] += own @ rng.normal(0.0, 100.0, 3)
    stated: Any = SimpleNamespace(
        stated=robot, friction=lambda: SimpleNamespace(basis=basis), rows=SimpleNamespace(
            position=q, velocity=qd, acceleration=qdd, torque=torque))
    np.testing.assert_allclose(gravity_direction(stated), gravity, rtol=1e-9)
