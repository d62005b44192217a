"""identification/wrist.py: thresholds, widths and words of a tool behind a sensor."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.payload import PayloadEstimate, PayloadStatus
from robot_dynid.identification import wrist
from robot_dynid.identification.payload import Equations, Match
from robot_dynid.identification.wrist import WristResult, identify_wrist_sensor
from robot_dynid.robot.inertia import parameters_from_com, rotation_about
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog, Samples

ROBOT = load_robot('planar_3r')
LINK = ROBOT.tree.links[-1].name
G = 9.80665
LOGS = [RawLog(name, ROBOT.joints, np.arange(3.0), np.full((3, 3), 0.1 * (k + 1)),
               wrench=np.zeros((3, 6)), wrench_frame=LINK) for k, name in enumerate(
                   ('a.csv', 'b.csv'))]
#: mounting of the sensor, its bias [N], and the centre of mass of the tool [m]
TURN, BIAS, CENTRE = rotation_about([0.6, 0.0, 0.8], 0.5), np.array([3.0, -5.0, 8.0]), \
    np.array([0.05, -0.12, 0.3])
#: deviations of the parameters that are not those of the tool
STD = np.arange(1.0, 23.0) / 100.0
INERTIA = np.diag([0.04, 0.05, 0.06]) + 0.001
TOOL = PayloadEstimate(
    parameters_from_com(2.0, CENTRE, INERTIA), np.full(10, 0.05), 2.0, 0.02, 0.0, CENTRE,
    np.array([0.001, 0.002, 0.003]), INERTIA,
    np.full((3, 3), 0.004), np.array([7.0, 8.0, 9.0, 10.0]), np.full(6, 0.1), PayloadStatus.OK, (),
    (), 0.1, False)
#: Student's factor of seven degrees of freedom
STUDENT = 2.364624


def corners(size: tuple[float, float, float]) -> FloatArray:
    """Return up in a sensor that turns to eight corners of a box, each often."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return np.tile(signs * size, (25, 1))


#: gravity moves along all axes
ALL = corners((np.sqrt(0.5), np.sqrt(0.3), np.sqrt(0.2)))


def equations(up: FloatArray, sign: int = -1, centre: FloatArray = CENTRE, name: str = 'a.csv',
              notes: tuple[str, ...] = ()) -> Equations:
    """Return the readings of a mounted tool of 2 kg, of which only gravity turns."""
    gravity = G * up
    columns = np.zeros((6, 13, len(up)))
    columns[:3, 3] = -gravity.T
    force = -sign * 2.0 * gravity @ TURN.T + BIAS
    effort = np.hstack([force, np.cross(centre, force) + np.array([0.2, 0.4, -0.3])])
    time = 0.1 * np.arange(len(up))
    motion = np.zeros((len(up), 1))
    return Equations(Samples(('x',), time, motion, motion, motion), columns, effort, effort,
                     Match(name), notes)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that identifies from given readings, sizes of fits and estimates."""
    def make(readings: Any = None, tool: PayloadEstimate = TOOL, values: Any = None,
             outliers: float = 0.0, known: float | None = None, robot: Any = ROBOT,
             best: int = -1) -> tuple[WristResult, list[Any], list[Any]]:
        given = iter([equations(ALL), equations(ALL[:100], name='b.csv')]
                     if readings is None else readings)
        starts: list[Any] = []
        told: list[Any] = []

        def refined(start: Any, readings: Any) -> Any:
            starts.append(start)
            return start, SimpleNamespace(samples=77), outliers, 0.0 if start.sign == best else 1.0

        solution = SimpleNamespace(values=np.zeros(22) if values is None else values)
        monkeypatch.setattr(wrist, 'sensor_equations', lambda *_: next(given))
        monkeypatch.setattr(wrist, 'refine_mounting', refined)
        monkeypatch.setattr(wrist, 'fit_payload', lambda information, reach: tool)
        monkeypatch.setattr(wrist, 'joint_weights', lambda information: 'weights')
        monkeypatch.setattr(wrist, 'solve', lambda information, weights: solution)
        monkeypatch.setattr(wrist, 'batch_covariance', lambda *_: (np.diag(STD**2), None))
        found = identify_wrist_sensor(robot, LOGS, known_mass=known,
                                      progress=lambda *one: told.append(one))
        return found, starts, told

    return make


@pytest.mark.parametrize('sign', [1, -1])
def test_mountings_are_sought_from_the_rotation_of_forces_against_gravity(run, sign) -> None:
    """Of either sign, if gravity moves in all directions; the better fit is taken."""
    readings = [equations(ALL, sign), equations(ALL[:100], sign)]
    found, starts, told = run(readings, best=sign)
    assert [one.sign for one in starts] == [1, -1]
    true, other = starts[::sign]
    np.testing.assert_allclose(true.rotation, TURN, atol=1e-9, rtol=0.0)
    assert np.abs(other.rotation - TURN).max() > 0.1
    assert found.sensor.sign == sign and found.link == LINK and found.samples == 77
    np.testing.assert_array_equal(found.sensor.rotation, true.rotation)
    np.testing.assert_array_equal(found.sensor.parameters, TOOL.parameters)
    assert (found.sensor.robot, found.sensor.digest) == ('planar_3r', ROBOT.hash())
    assert told == [('prepared a.csv', 0.4), ('prepared b.csv', 0.8), ('fitting', 0.8)]
    assert not found.sensor.bias.any() and found.warnings == ()


@pytest.mark.parametrize(('share', 'count'), [(0.101, 2), (0.099, 1)])
def test_of_two_directions_the_mounting_nearer_to_the_axes_is_taken(run, share, count) -> None:
    flat = [equations(corners((0.9, 0.5, 0.9 * share)), sign) for sign in (-1, -1)]
    _, starts, _ = run(flat)
    assert len(starts) == count
    if count == 1:
        assert starts[0].sign == -1
        np.testing.assert_allclose(starts[0].rotation, TURN, atol=1e-9, rtol=0.0)


@pytest.mark.parametrize(('change', 'enough'), [(0.0202, True), (0.0198, False)])
def test_gravity_must_turn_in_two_directions(run, change, enough) -> None:
    readings = [equations(corners((0.9, change, 0.0))) for _ in range(2)]
    if enough:
        assert len(run(readings)[1]) == 1
        return
    with pytest.raises(DataError) as refused:
        run(readings)
    assert str(refused.value) == (
        'gravity hardly turns in the sensor, or about one axis only, so weight, bias and mounting '
        'cannot be separated: turn the sensor to poses in all directions: robot-dynid design '
        'planar_3r --type static-poses --out static_poses.yaml')


@pytest.mark.parametrize(('reach', 'possible'), [(0.99, True), (1.01, False)])
def test_the_centre_of_mass_is_within_a_metre(run, reach, possible) -> None:
    centre = reach * np.array([0.6, -0.48, 0.64])
    readings = [equations(ALL, centre=centre), equations(ALL[:100], centre=centre)]
    if possible:
        run(readings)
        return
    with pytest.raises(DataError) as refused:
        run(readings)
    assert str(refused.value) == (
        f'the centre of mass would be 1 m from {LINK}: the wrench must be in N and N m (torque in '
        'N mm makes it 1000 times, force in kgf 9.81 times as far)')


def test_widths_are_those_of_intervals_in_the_axes_of_bias_and_link(run) -> None:
    found, _, _ = run(outliers=0.01)
    widths = STUDENT * STD
    np.testing.assert_allclose(found.rotation_width, widths[:3], rtol=1e-6)
    force, torque = (np.abs(TURN) @ widths[part] for part in (slice(3, 6), slice(6, 9)))
    np.testing.assert_allclose(found.bias_width, np.concatenate([force, torque]), rtol=1e-6)
    assert found.outliers == 0.01 and found.warnings == ()


HOSE = 'a hose or cable pulls at the tool with {} N horizontally; what it pulls vertically ' \
    'counts as weight: detach it, or lead it along the arm'


@pytest.mark.parametrize(('pulls', 'pull', 'told'), [
    ((0.15, -0.2), 0.0, False), ((0.25, -0.15), 0.0, False),
    ((0.21, -0.3), np.sqrt(0.1341 - 0.0884), True), ((0.2, -0.3), np.sqrt(0.13 - 0.0884), True),
    ((0.2, -0.28), np.sqrt(0.1184 - 0.0884), False)])
def test_a_pull_beyond_two_deviations_counts_as_weight(run, pulls, pull, told) -> None:
    """It is told from a hundredth of the weight, 0.196 N; deviations are 0.1 and 0.11 N."""
    values = np.zeros(22)
    values[9:11] = pulls
    found, _, _ = run(values=values)
    assert found.warnings == ((HOSE.format(f'{pull:.2g}'),) if told else ())
    mass = pull / np.linalg.norm(ROBOT.gravity) / np.sqrt(2.0)
    tool, lever = found.estimate, CENTRE @ CENTRE * np.eye(3) - np.outer(CENTRE, CENTRE)
    assert tool.mass_std == pytest.approx(np.hypot(0.02, mass))
    np.testing.assert_allclose(tool.centre_of_mass_std, np.hypot(
        TOOL.centre_of_mass_std, mass / 2.0 * np.abs(CENTRE)))
    np.testing.assert_allclose(tool.inertia_std, np.hypot(0.004, mass * np.abs(lever)))
    np.testing.assert_allclose(tool.parameters_std, [np.hypot(0.05, mass), *[0.05] * 9])


def test_moments_within_their_interval_are_not_shown(run) -> None:
    """Of those about x, y and z, only the last is larger than its half-width."""
    std = np.full((3, 3), 0.004)
    std[0, 0], std[1, 1], std[2, 2] = 0.042 / STUDENT, 0.0505 / STUDENT, 0.0605 / STUDENT
    for moment, hidden in ((0.042, 'Ixx'), (0.0422, None)):
        inertia = np.diag([moment, 0.0512, 0.0615]) + 0.0
        found, _, _ = run(tool=replace(TOOL, inertia=inertia, inertia_std=std,
                                       not_excited=('mx', 'Ixx') if hidden else ()))
        tool = found.estimate
        motion = 'a motion that shows the inertia: robot-dynid design planar_3r --type fourier ' \
            '--out fourier.yaml'
        if hidden is None:
            assert tool.not_excited == () and tool.status is PayloadStatus.OK
            assert found.warnings == ()
            continue
        assert tool.not_excited == ('mx', 'Ixx') and tool.status is PayloadStatus.NOT_EXCITED
        gone = np.array([[True] * 3, [True, False, False], [True, False, False]])
        np.testing.assert_array_equal(np.isnan(tool.inertia), gone)
        np.testing.assert_array_equal(np.isinf(tool.inertia_std), gone)
        assert found.warnings == (motion,)


def box(third: float, turn: float = 0.0) -> list[Equations]:
    """Return readings in which up travels by ``third`` along one axis, turned about x."""
    up = corners((np.sqrt(0.6), np.sqrt(0.4 - 0.25 * third**2), 0.5 * third))
    return [equations(up @ rotation_about([1.0, 0.0, 0.0], turn).T)] * 2


@pytest.mark.parametrize(('readings', 'missing'), [
    (box(0.51), ''), (box(0.49), 'the z axis up and down (it was 76° to 104° from up)'),
    (box(0.3), 'the z axis up and down (it was 81° to 99° from up)'),
    (box(0.49, np.arccos(0.951)), 'the z axis up and down (it was 76° to 104° from up)'),
    (box(0.49, np.arccos(0.949)),
     'the direction (0.00, -0.32, 0.95) up and down (it was 76° to 104° from up)'),
    (box(0.49, -np.arccos(0.7)),
     'the direction (0.00, 0.71, 0.70) up and down (it was 76° to 104° from up)')])
def test_poses_are_missing_along_which_gravity_travels_less_than_half(
    run, readings, missing
) -> None:
    found, _, _ = run(readings)
    assert [text.replace('(-0.00', '(0.00') for text in found.warnings] == ([
        f'missing poses: {missing}: robot-dynid design planar_3r --type static-poses --out '
        'static_poses.yaml'] if missing else [])


@pytest.mark.parametrize(('known', 'unit', 'newtons'), [
    (2.0 * 9.80665 * 1.09, 'kgf', '9.80665'), (2.0 * 9.80665 * 0.91, 'kgf', '9.80665'),
    (2.0 * 4.44822 * 1.09, 'lbf', '4.44822'), (2180.0, 'kN', '1000'), (0.00182, 'mN', '0.001')])
def test_a_weighed_tool_tells_the_unit_of_forces(run, known, unit, newtons) -> None:
    with pytest.raises(DataError) as refused:
        run(known=known)
    assert str(refused.value) == (
        f'the tool would have 2 kg, and was weighed at {known:.4g} kg: forces look like {unit}; '
        f'convert them to N (times {newtons}), and torques to N m')


@pytest.mark.parametrize(('known', 'wrong'), [
    (2.0 + STUDENT * 0.0199, None), (2.0 + STUDENT * 0.0201, '-2.3'),
    (2.0 - STUDENT * 0.0201, '2.4'), (2.0 * 9.80665 * 1.11, '-90.8'),
    (2.0 * 9.80665 * 0.89, '-88.5')])
def test_a_weighed_tool_tells_the_scale_beyond_the_interval(run, known, wrong) -> None:
    found, _, _ = run(known=known)
    assert found.warnings == (() if wrong is None else (
        f'the tool was weighed at {known:.4g} kg: the scale of the sensor is wrong by {wrong} %',))


@pytest.mark.parametrize(('outliers', 'told'), [(0.019, False), (0.021, True)])
def test_contradicting_samples_are_told_from_two_per_cent(run, outliers, told) -> None:
    readings = [equations(ALL, notes=('gap',)), equations(ALL[:100], notes=('spike',))]
    found, _, _ = run(readings, outliers=outliers)
    assert found.warnings == ('gap', 'spike', *([
        '2.1 % of the samples contradict the rest and have less than half weight: did the tool '
        'touch something?'] if told else []))


def test_readings_of_no_link_are_refused(run) -> None:
    links = ', '.join(link.name for link in ROBOT.tree.links)
    for frames, named in ((('ft', 'ft'), 'ft'), ((LINK, 'ft'), f'{LINK}, ft'),
                          (('', ''), 'not stated')):
        logs = [replace(log, wrench_frame=frame) for log, frame in zip(LOGS, frames, strict=True)]
        with pytest.raises(DataError) as refused:
            identify_wrist_sensor(ROBOT, logs)
        assert str(refused.value) == (
            f'the frame of the wrenches, {named}, is no link that moves: name the link at whose '
            f'origin the sensor measures with --link: {links}')
    with pytest.raises(UsageError, match=r'^no recording of the sensor$'):
        identify_wrist_sensor(ROBOT, [])
