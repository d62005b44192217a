"""robot/locate.py: robots whose URDF is in the description package of the vendor; config/robots
has the rest."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml
from robot_descriptions import own_robots

from robot_dynid.errors import MissingDependency, RobotError
from robot_dynid.robot import locate
from robot_dynid.robot.locate import SCHEME, in_package
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text

ROBOTS = sorted(set(locate.known_robots()) - set(own_robots()))
KEYS = {'position', 'velocity', 'acceleration', 'effort'}
JOINT = ('<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>'
         '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="1" velocity="1"/></joint>'
         '<link name="{2}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
         'ixz="0" iyz="0"/></inertial></link>')
#: URDF files of example-robot-data and pybullet, as installed by pip; what is not a figure of the
#: vendor in them; and the prefix of its joints
PUBLIC = {
    'panda': (('example-robot-data/robots/panda_description/urdf/panda.urdf', (), 'panda_'),),
    'ur5e': (('example-robot-data/robots/ur_description/urdf/ur5_robot.urdf', ('velocity',), ''),),
    'xarm7': (('example-robot-data/robots/xarm_description/urdf/xarm7.urdf', (), ''),),
    'xarm6': (('pybullet_data/xarm/xarm6_robot.urdf', (), ''),),
    'iiwa14': (('pybullet_data/kuka_iiwa/model.urdf', ('velocity', 'effort'), 'lbr_iiwa_'),),
}


def described(name: str) -> dict[str, Any]:
    """Return the content of the YAML file of a robot."""
    file = locate.find(f'config/robots/{name}.yaml')
    assert file is not None
    content = yaml.safe_load(file.read_text('utf-8'))
    assert isinstance(content, dict)
    return content


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a package with a stand-in for the URDF of a robot.

    Its joints have the names that the limits in the YAML do, and its last link that of an argument
    that is given to xacro.
    """
    def install(name: str) -> str:
        content = described(name)
        package, _, path = content['urdf']['file'].removeprefix(SCHEME).partition('/')
        arguments = content['urdf'].get('arguments') or {'any': ''}
        file = tmp_path / 'share' / package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        joints = list(content['limits'])
        links = [content['base_link'], *(f'link_{joint}' for joint in joints[:-1]),
                 content['tip_link']]
        last, plain = list(arguments)[-1], not path.endswith('.xacro')
        told = 'said_' if plain else f'said_$(arg {last})'
        file.write_text(
            ('<robot name="a">' if plain else
             '<robot name="a" xmlns:xacro="http://www.ros.org/wiki/xacro">')
            + ''.join(f'<xacro:arg name="{key}" default="?"/>' for key in arguments
                      if not plain)
            + f'<link name="world"/><link name="{links[0]}"/><link name="{told}"/>'
            + '<joint name="w" type="fixed"><parent link="world"/><child '
            + f'link="{links[0]}"/></joint>'
            + '<joint name="s" type="fixed"><parent link="world"/><child '
            + f'link="{told}"/></joint>'
            + ''.join(JOINT.format(joint, above, link)
                      for joint, above, link in zip(joints, links, links[1:], strict=False))
            + '</robot>')
        monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
        value = arguments[last]
        return f'said_{str(value).lower() if isinstance(value, bool) else value}'

    return install


def test_the_usual_arms_are_there() -> None:
    assert {'ur3e', 'ur5e', 'ur16e', 'ur20', 'fr3', 'panda', 'iiwa7', 'iiwa14', 'gen3', 'xarm6',
            'xarm7'} <= set(ROBOTS)


@pytest.mark.parametrize('name', ROBOTS)
def test_the_file_holds_with_a_urdf_of_these_joints(name: str, installed: Any) -> None:
    said, content = installed(name), described(name)
    robot = load_robot(name)
    assert robot.joints == tuple(content['limits'])
    assert robot.drive.kind == content['effort_kind'] == 'torque'
    assert robot.drive.sensor == content['sensor']
    assert robot.surroundings.floor == 0.0
    for values in vars(robot.limits).values():
        assert np.isfinite(values).all()
    assert (robot.limits.lower < robot.limits.upper).all()
    np.testing.assert_array_equal(
        robot.limits.acceleration, [one['acceleration'] for one in content['limits'].values()])
    if content['urdf'].get('arguments'):
        assert f'"{said}"' in source_text(robot)  # the same arguments when it is read again


@pytest.mark.parametrize('name', ROBOTS)
def test_every_limit_is_stated_with_its_source(name: str) -> None:
    content, file = described(name), locate.find(f'config/robots/{name}.yaml')
    assert file is not None
    assert all(set(one) == KEYS for one in content['limits'].values())
    assert content['urdf']['source'].startswith('https://github.com/')
    comments = ' '.join(re.findall(r'^# (.*)$', file.read_text('utf-8'), re.MULTILINE))
    for key in ('position', 'velocity', 'effort', 'acceleration'):
        assert re.search(rf'\b{key}(,|:)', comments), f'{name}: no source of {key}'


@pytest.mark.parametrize('name', ROBOTS)
def test_a_package_that_is_not_installed_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    content = described(name)
    package = content['urdf']['file'].removeprefix(SCHEME).split('/')[0]
    with pytest.raises(MissingDependency) as error:
        load_robot(name)
    for words in (f'{name}.yaml', f'the ROS package {package} is missing',
                  f'apt install ros-$ROS_DISTRO-{package.replace("_", "-")}',
                  content['urdf']['source'], 'source ROS'):
        assert words in str(error.value)


@pytest.mark.parametrize(('urdf', 'message'), [
    ('{file: 3}', 'urdf must be a file, or'),
    ('{file: a.urdf, name: b}', 'urdf must be a file, or'),
    ('{file: a.urdf, arguments: [b]}', 'urdf must be a file, or'),
    ('{file: "package://only"}', 'package://only must be package://PACKAGE/FILE'),
    ('{file: a.urdf, arguments: {b: 1}}', 'not a xacro file .*; remove the arguments b'),
])
def test_load_robot_refuses_malformed_urdf_entries(
    urdf: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / 'a.urdf').write_text('<robot name="a"><link name="b"/></robot>')
    (tmp_path / 'robot.yaml').write_text(f'urdf: {urdf}')
    with pytest.raises(RobotError, match=message):
        load_robot(tmp_path / 'robot.yaml')


def limits_in(text: str) -> dict[str, dict[str, list[float]]]:
    """Return position, velocity and effort limits by joint, as a URDF states them."""
    found: dict[str, dict[str, list[float]]] = {}
    for joint in ET.fromstring(text).iter('joint'):
        limit = joint.find('limit')
        if joint.get('type') in ('revolute', 'continuous') and limit is not None:
            values = {key: float(value) for key, value in limit.attrib.items()}
            position = [values['lower'], values['upper']] if 'lower' in values else []
            found[str(joint.get('name'))] = {
                **({'position': position} if position else {}), 'velocity': [values['velocity']],
                'effort': [values['effort']]}
    return found


def public_file(path: str) -> Path | None:
    """Return a file of example-robot-data or pybullet where that is installed."""
    spec = find_spec('pybullet_data' if path.startswith('pybullet') else 'cmeel')
    places = [Path(place).parent for place in (spec and spec.submodule_search_locations) or ()]
    shares = [place / 'cmeel.prefix' / 'share' for place in places]
    return next((one / path for one in (*places, *shares) if (one / path).is_file()), None)


@pytest.mark.parametrize(('name', 'path', 'other', 'prefix'), [
    (name, *one) for name, files in PUBLIC.items() for one in files])
def test_joints_and_limits_are_those_of_other_descriptions(
    name: str, path: str, other: tuple[str, ...], prefix: str
) -> None:
    file = public_file(path)
    if file is None:
        pytest.skip('no other description of this arm is installed')
    theirs, ours = limits_in(file.read_text('utf-8')), described(name)['limits']
    assert len(theirs) == len(ours)
    for (joint, limits), (own, stated) in zip(theirs.items(), ours.items(), strict=True):
        assert joint.removeprefix(prefix)[-1] == own[-1]  # numbers, or names of joints
        for key in {'position', 'velocity', 'effort'} - set(other):
            assert limits[key] == pytest.approx(np.atleast_1d(stated[key]), abs=2e-3), (own, key)


@pytest.mark.parametrize('name', ROBOTS)
def test_joints_and_limits_are_those_of_the_vendor(name: str) -> None:
    """Where the description package is installed; its limits of position, velocity and effort."""
    content = described(name)
    package, _, path = content['urdf']['file'].removeprefix(SCHEME).partition('/')
    if in_package(package, path) is None:
        pytest.skip('no other description of this arm is installed')
    theirs = limits_in(source_text(load_robot(name)))
    assert list(theirs) == list(content['limits'])
    for joint, limits in theirs.items():
        for key, values in limits.items():
            if not (name.startswith('iiwa') and key == 'effort'):  # 200 throughout, see the YAML
                assert values == pytest.approx(
                    np.atleast_1d(content['limits'][joint][key]), abs=1e-5), (joint, key)
