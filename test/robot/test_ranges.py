"""robot/robot_file.py, columns.py, serialization.py, urdf.py: the last number that is read, and
the first that is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid import load_robot
from robot_dynid.errors import DynIdError, RobotError
from robot_dynid.robot.columns import Columns, column_mapping
from robot_dynid.robot.model import Drive, LinkShape, RobotModel
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.robot.surroundings import Surroundings, surroundings_from_plain
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.robot.urdf_text import xml_root

YAML = ('screws: [{name: a, axis: [0, 0, 1], origin: [0, 0, 0]},'
        ' {name: b, axis: [0, 1, 0], origin: [0, 0, 1]}]\n')
CURRENT = 'effort_kind: current\ndrive_gains: {{a: 1, b: 1}}\n'
SERVO = 'effort_kind: position_error\ndrive_gains: {{a: 1, b: 1}}\n'


@pytest.mark.parametrize(('text', 'inside', 'outside', 'words'), [
    ('effort_kind: current\ndrive_gains: {{a: {}, b: 1}}', '1.0e6', '1.1e6', 'at most 1e+06'),
    ('effort_kind: current\ndrive_gains: {{a: 1, b: {}}}', '-1.0e6', '-1.1e6', 'at least -1e+06'),
    ('gear_ratios: {{a: {}, b: 1}}', '1.0e6', '1.1e6', 'gear_ratios: a must be at most 1e+06'),
    ('gear_ratios: {{a: 1, b: {}}}', '-1.0e6', '-1.1e6', 'gear_ratios: b must be at least -1e+06'),
    ('coupling: {{a: {{a: 1.0e6}}, b: {{b: {}}}}}', '0.00101', '0.00099', 'matrix is singular'),
    (CURRENT + 'drive_gains_std: {}', '0', '-0.0001', 'must be at least 0'),
    (CURRENT + 'drive_gains_std: {}', '0.999', '0.9991', 'from 0 to 1; 0.02 stands for 2 %'),
    (SERVO + 'error_limit: {}', '1.0e-6', '0.99e-6', 'at least 1e-06'),
    (SERVO + 'error_limit: {}', '1000', '1001', 'at most 1000'),
    (SERVO + 'error_limit: 1\nderivative_time: {}', '0', '-1.0e-6', 'at least 0'),
    (SERVO + 'error_limit: 1\nderivative_time: {}', '1000', '1001', 'at most 1000'),
    ('gear_ratios: {{a: 9, b: 9}}\nrotor_axes: {{b: [0, {}, 0]}}', '1.1e-9', '0.9e-9',
     'rotor_axes: b: the axis has zero length'),
    ('limits: {{a: {{position: [-1, {}]}}}}', '-0.99', '-1', 'position: -1 is not below -1'),
    ('scene: {{clearance: {}}}', '0', '-0.001', 'at least 0'),
    ('scene: {{clearance: {}}}', '1000', '1001', 'name bodies that may touch in ignore_pairs'),
])
def test_numbers_of_a_robot_file_reach_to_their_bounds(
    tmp_path: Path, text: str, inside: str, outside: str, words: str
) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_text(YAML + text.format(inside))
    assert load_robot(path).n == 2
    path.write_text(YAML + text.format(outside))
    with pytest.raises(RobotError) as caught:
        load_robot(path)
    assert words in str(caught.value)


def test_rotor_axes_and_coupling_are_zero_and_one_unless_given(tmp_path: Path) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_text(YAML + 'gear_ratios: {a: 9, b: 9}\nrotor_axes: {b: [0, 3, -4]}\n'
                    'coupling: {a: {a: -1}, b: {a: 0.5, b: 2}}')
    drive = load_robot(path).drive
    np.testing.assert_allclose(drive.rotor_axes, [[0.0, 0.0, 0.0], [0.0, 0.6, -0.8]])
    np.testing.assert_array_equal(drive.coupling, [[-1.0, 0.0], [0.5, 2.0]])


def test_robot_keeps_a_centimetre_clear_of_boxes_that_may_be_turned() -> None:
    assert Surroundings().clearance == 0.01
    box: dict[str, Any] = {'centre': [1.0, 2.0, 3.0], 'size': [4.0, 5.0, 6.0]}
    for more, angles in (({}, (0.0, 0.0, 0.0)), ({'rotation': [0.1, 0.2, 0.3]}, (0.1, 0.2, 0.3))):
        (found,) = surroundings_from_plain({'keep_out': [box | more]}, 'scene').keep_out
        assert (found.centre, found.size, found.rotation) == (
            (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), angles)
    with pytest.raises(DynIdError, match='must be a mapping with centre'):
        surroundings_from_plain({'keep_out': [box | {'colour': 1}]}, 'scene')


@pytest.mark.parametrize(('key', 'inside', 'outside', 'words'), [
    ('factor', 1e9, 1.01e9, 'at most 1e+09'), ('factor', -1e9, -1.01e9, 'at least -1e+09'),
    ('offset', 1e9, 1.01e9, 'at most 1e+09'), ('offset', -1e9, -1.01e9, 'at least -1e+09'),
    ('column', 1, 0, 'at least 1'), ('column', 5000, 5001, 'at most 5000'),
    ('column', '1-5000', '1-5001', 'at most 5000'), ('column', '1-2', '0-2', 'at least 1'),
    ('column', '3-3', '3-2', 'numbers such as 2-7'),
    ('rate', 0.01, 0.0099, 'at least 0.01'), ('rate', 1e6, 1.01e6, 'at most 1e+06'),
    ('reshape', 1, 0, 'at least 1'), ('reshape', 5000, 5001, 'at most 5000'),
    ('skip', 0, -1, 'at least 0'), ('skip', 1000, 1001, 'at most 1000')])
def test_numbers_of_a_column_mapping_reach_to_their_bounds(
    key: str, inside: Any, outside: Any, words: str
) -> None:
    def given(value: Any) -> dict[str, Any]:
        if key in ('rate', 'reshape', 'skip'):
            return {'time': 't', 'position': 'q{i}', key: value}
        return {'time': 't', 'position': {'column': 'q{i}'} | {key: value}}

    column_mapping(given(inside))
    with pytest.raises(DynIdError) as caught:
        column_mapping(given(outside))
    assert words in str(caught.value)


def test_a_column_mapping_is_in_si_with_a_header_unless_stated() -> None:
    found = column_mapping({'time': 't', 'position': '2-4', 'names': 'joint'})
    assert found.channels['position'] == (Columns((2, 3, 4), ('',), 1.0, 0.0),)
    assert found.names == Columns(('joint',), ('',), 1.0, 0.0)
    assert (found.header, found.skip, found.reshape, found.rate) == (True, 0, 0, None)


def pair() -> RobotModel:
    """Return a turning and a sliding joint with drives and a shape."""
    rng = np.random.default_rng(2)
    robot = robot_from_screws('pair', [
        Screw('a', [0, 1, 2], [0.1, 0, 0.3], parameters=np.arange(1.0, 11.0),
              limits=np.array([-1.0, 2.0, 3.0, 4.0])),
        Screw('b', [1, 0, 2], [0.5, 0, 0.3], 'prismatic', parameters=np.arange(2.0, 12.0))])
    return replace(
        robot, gravity=rng.normal(size=3), source='file', warnings=(), shapes=(LinkShape(
            'b_link', 'cylinder', (0.1, 0.4), (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)),),
        drive=Drive('current', rng.normal(size=2), rng.normal(size=2), rng.normal(size=(2, 2)),
                    gains_std=np.array([0.1, 0.2]), rotor_axes=rng.normal(size=(2, 3))))


def test_robot_is_the_same_after_a_file() -> None:
    robot = pair()
    again = robot_from_plain(robot_to_plain(robot), 'file')
    for given, found in ((robot, again), (robot.limits, again.limits), (robot.drive, again.drive),
                         *zip(robot.links, again.links)):
        for key, value in vars(given).items():
            if key not in ('drive', 'limits', 'links', 'surroundings', 'warnings'):
                np.testing.assert_array_equal(getattr(found, key), value, key)


def edited(change: Callable[[dict[str, Any]], None]) -> RobotModel:
    content = copy.deepcopy(robot_to_plain(pair()))
    change(content)
    return robot_from_plain(content, 'file')


@pytest.mark.parametrize(('part', 'key', 'inside', 'outside', 'words'), [
    ('joints', 'nominal', [1e12] * 10, [1.1e12] * 10, 'nominal of a joint must be at most 1e+12'),
    ('joints', 'nominal', [-1e12] * 10, [-1.1e12] * 10, 'must be at least -1e+12'),
    ('joints', 'nominal', [1e-9] + [0.0] * 9, [0.9e-9] + [0.0] * 9,
     'a mass is 9e-10 kg: it must be zero or at least 1e-09'),
    ('joints', 'nominal', [0.0] * 10, [0.0] * 9, 'nominal of a joint must be a list of 10'),
    ('links', 'parameters', [0.0] * 10, [-0.9e-9] * 10, 'a mass is -9e-10 kg'),
    ('links', 'parameters', [1.0] * 10, [1.0] * 11, 'parameters of a link must be a list of 10'),
    ('links', 'placement', [1.0] * 16, [1.0] * 15, 'placement of a link must be a list of 16'),
    ('links', 'body', 1, 2, 'body of a link must be at most 1'),
    ('links', 'body', -1, -2, 'body of a link must be at least -1'),
    ('drive', 'elastic', [], [2], 'elastic must be at most 1'),
    ('drive', 'gains', [1.0, 2.0], [1.0], 'gains must be a list of 2'),
    ('drive', 'gains_std', [0.1, 0.1], [0.1] * 3, 'gains_std must be a list of 2'),
    ('drive', 'gear_ratios', [1.0, 2.0], [1.0], 'gear_ratios must be a list of 2'),
    ('drive', 'coupling', np.eye(2).tolist(), np.eye(3).tolist(), 'coupling must be 2 lists of 2'),
    ('drive', 'rotor_axes', np.ones((2, 3)).tolist(), np.ones((2, 2)).tolist(),
     'rotor_axes must be 2 lists of 3'),
    ('shapes', 'sizes', [1.0, 2.0], [1.0], 'sizes of a shape must be a list of 2'),
    ('shapes', 'xyz', [1.0, 2.0, 1e12], [1.0, 2.0, 1.1e12], 'xyz of a shape must be at most'),
    ('limits', 'upper', -1.0, -1.1, 'limits of joint a: no position or speed is within them'),
    ('limits', 'velocity', 0.0, -0.1, 'limits of joint a: no position or speed is within them'),
    ('limits', 'effort', 1e17, 1.1e17, 'positions are at most 1e+06, rates and efforts 1e+17'),
    ('limits', 'upper', 1e6, 1.1e6, 'positions are at most 1e+06, rates and efforts 1e+17'),
    ('limits', 'lower', -1e6, -1.1e6, 'positions are at most 1e+06, rates and efforts 1e+17'),
    ('limits', 'upper', np.inf, np.float64(1e7), 'positions are at most 1e+06')])
def test_numbers_of_a_saved_robot_reach_to_their_bounds(
    part: str, key: str, inside: Any, outside: Any, words: str
) -> None:
    def given(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(content: dict[str, Any]) -> None:
            place = content['joints'][0]['limits'] if part == 'limits' else content[part]
            (place[0] if isinstance(place, list) else place)[key] = value
        return change

    assert edited(given(inside)).n == 2
    with pytest.raises(RobotError) as caught:
        edited(given(outside))
    assert words in str(caught.value)


@pytest.mark.parametrize(('joint', 'key', 'value', 'words'), [
    (0, 'type', 2, 'type of a joint must be at most 1'),
    (0, 'type', -1, 'type of a joint must be at least 0'), (1, 'type', 0, 'was changed after'),
    (0, 'parent', -2, 'parent of a joint must be at least -1'),
    (0, 'parent', 0, 'a joint must come after its parent'),
    (1, 'parent', 1, 'a joint must come after its parent'),
    (1, 'parent', 2, 'parent of a joint must be at most 1'), (1, 'parent', -1, 'was changed'),
    (1, 'rotation', [1.0] * 8, 'rotation of a joint must be a list of 9'),
    (1, 'translation', [1.0] * 4, 'translation of a joint must be a list of 3'),
    (1, 'axis', [1.0] * 2, 'axis of a joint must be a list of 3')])
def test_a_saved_robot_with_other_geometry_is_refused(
    joint: int, key: str, value: Any, words: str
) -> None:
    with pytest.raises(RobotError) as caught:
        edited(lambda content: content['joints'][joint].update({key: value}))
    assert words in str(caught.value)


URDF = ('<robot name="r"><link name="base"/><link name="arm"><inertial>{origin}<mass '
        'value="{mass}"/><inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="0.03"/>'
        '</inertial></link><joint name="j" type="revolute"><parent link="base"/><child '
        'link="arm"/><axis xyz="0 0 {axis}"/><limit lower="-{range}" upper="{range}" '
        'velocity="{rate}" effort="{effort}"/></joint></robot>')
USUAL = {'origin': '', 'mass': 2, 'axis': 1, 'range': 1, 'rate': 2, 'effort': 3}


@pytest.mark.parametrize(('given', 'limits', 'told'), [
    ({'range': 1e4, 'rate': 1e4, 'effort': 1e9}, [-1e4, 1e4, 1e4, 1e9], ''),
    ({'range': 10001}, [np.nan, np.nan, 2.0, 3.0],
     "joint 'j': limit lower '-10001', upper '10001': taken as none"),
    ({'rate': 10001}, [-1.0, 1.0, np.nan, 3.0], "joint 'j': limit velocity '10001': taken as "
     'none'),
    ({'effort': 1.01e9, 'rate': 0}, [-1.0, 1.0, 0.0, np.nan],
     "joint 'j': limit effort '1010000000.0': taken as none"),
    ({'effort': -0.1, 'range': 0}, [0.0, 0.0, 2.0, np.nan],
     "joint 'j': limit effort '-0.1': taken as none"),
])
def test_limits_of_a_urdf_that_no_joint_has_are_none(
    given: dict[str, float], limits: list[float], told: str
) -> None:
    robot = robot_from_urdf(URDF.format(**USUAL | given))
    found = robot.limits
    np.testing.assert_array_equal(
        [found.lower[0], found.upper[0], found.velocity[0], found.effort[0]], limits)
    assert robot.warnings == ((told,) if told else ())


def test_position_limits_of_a_urdf_that_cross_are_none() -> None:
    robot = robot_from_urdf(URDF.format(**USUAL).replace('lower="-1"', 'lower="1.5"'))
    assert np.isnan([robot.limits.lower[0], robot.limits.upper[0]]).all()
    assert (robot.limits.velocity[0], robot.limits.effort[0]) == (2.0, 3.0)
    assert robot.warnings == (
        "joint 'j': lower limit 1.5 is above upper limit 1: both are taken as none; swap or "
        'correct them',)


def test_masses_and_axes_of_a_urdf_reach_down_to_a_billionth() -> None:
    light = robot_from_urdf(URDF.format(**USUAL | {'mass': 1e-9, 'axis': 1.1e-9}))
    assert light.links[0].has_inertial and light.nominal[0, 0] == 1e-9
    assert light.axes.tolist() == [[0.0, 0.0, 1.0]]
    lighter = robot_from_urdf(URDF.format(**USUAL | {'mass': 0.9e-9}))
    assert not lighter.links[0].has_inertial and not lighter.nominal.any()
    assert any('it has inertia but no mass' in one for one in lighter.warnings)
    with pytest.raises(RobotError, match='its axis has zero length'):
        robot_from_urdf(URDF.format(**USUAL | {'axis': 0.9e-9}))


def test_elements_of_xml_are_nested_up_to_64_deep() -> None:
    xml_root('<a>' * 64 + '</a>' * 64)
    with pytest.raises(Exception, match='elements nested more than 64 deep'):
        xml_root('<a>' * 65 + '</a>' * 65)
