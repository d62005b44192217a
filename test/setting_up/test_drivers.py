"""Facts about drivers: complete, each with its source, and stated nowhere else."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from doc_blocks import check_launch

from robot_dynid.errors import UsageError
from robot_dynid.robot.model import EFFORT_KINDS, LINK, MOTOR
from robot_dynid.setting_up.description import questions, read_arm
from robot_dynid.setting_up.drivers import (
    ASPECTS,
    FACTS,
    OTHER,
    Driver,
    Fact,
    driver_named,
    drivers,
    effort_diagnoses,
    shown_by,
    suggested,
)

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'
TABLES: Any = SimpleNamespace(**runpy.run_path(str(ROOT / 'docs' / 'driver_tables.py')))
EVERY = pytest.mark.parametrize('driver', drivers(), ids=lambda one: one.name)
SEEN_BY = {
    'franka_ros2': ('fr3', 'fr3_joint{}', ''),
    'ur_robot_driver': ('ur20', 'a{}', 'ur_description'),
    'lbr_fri_ros2_stack': ('iiwa7', 'lbr_A{}', ''), 'ros2_kortex': ('gen3', 'joint_{}', ''),
    'kuka_rsi_driver': ('kr16', 'joint_{}', 'kuka_rsi_driver/KukaRSIHardwareInterface'),
    'kuka_sunrise_fri_driver': ('lbr_iiwa14', 'joint_{}', 'kuka_lbr_iiwa_support'),
    'xarm_ros2': ('arm', 'joint{}', 'xarm_description'), 'motoros2': ('motoman_gp7', 'j{}', ''),
    'fanuc_driver': ('crx10ia', 'J{}', ''), 'doosan-robot2': ('m1013', 'joint_{}', ''),
    'abb_ros2': ('irb1200', 'joint_{}', 'abb_hardware_interface/ABBSystemHardware'),
    'staubli_val3_driver': ('staubli_tx2_60', 'joint_{}', ''),
    'staubli_driver_ros2': ('tx2_60l', 'joint_{}', 'staubli_robot_driver/HardwareInterface'),
    'dynamixel_hardware': ('arm', 'j{}', 'dynamixel_hardware/DynamixelHardware'),
    'dynamixel_hardware_interface': ('omy', 'j{}', 'dynamixel_hardware_interface/Dynamixel'),
    'joint_state_topic_hardware_interface': ('a', 'j{}', 'topic_based_ros2_control/TopicBased'),
    'mujoco_ros2_control': ('panda', 'panda_joint{}', 'mujoco_ros2_control/MujocoSystemInterface'),
    'gz_ros2_control': ('ur5', 'j{}', 'gz_ros2_control/GazeboSimSystem')}
#: what only the data file and the page that is made from it may say
ELSEWHERE = re.compile(r'use_currents_as_efforts|pull/1551|pull/1918|PolyScope|getMeasuredTorque|'
                       r'update_rate|11\.976|fr3_arm_controller|publisher_qos', re.I)


def urdf_of(name: str, joint: str, more: str) -> ET.Element:
    """Return a URDF of six joints with a mesh, or a plugin."""
    joints = ''.join(f'<joint name="{joint.format(i + 1)}" type="revolute"/>' for i in range(6))
    seen = f'<ros2_control><plugin>{more}</plugin></ros2_control>' if '/' in more else \
        f'<mesh filename="package://{more}/a.stl"/>'
    return ET.fromstring(f'<robot name="{name}">{joints}{seen}</robot>')


@pytest.mark.parametrize('name', SEEN_BY)
def test_a_driver_is_suggested_by_what_the_urdf_shows(name: str) -> None:
    found, because = suggested(urdf_of(*SEEN_BY[name]))
    assert found.name == name and because


def test_a_driver_is_suggested_by_the_names_of_six_joints_and_not_of_fewer() -> None:
    urdf = urdf_of('cell', 'fr3_joint{}', '')
    found, because = suggested(urdf)
    assert found.name == 'franka_ros2' and because == ('joints such as fr3_joint1',)
    joints = urdf.findall('joint')
    joints[0].set('type', 'fixed')  # the arm has five that move
    assert suggested(urdf)[0].name == OTHER
    joints[0].set('type', 'continuous')
    assert suggested(urdf)[0].name == 'franka_ros2'
    joints[5].set('name', 'gripper')
    assert suggested(urdf)[0].name == OTHER


def test_suggested_driver_is_other_when_nothing_identifies_one() -> None:
    found, because = suggested(urdf_of('arm', 'joint_{}', ''))
    assert found.name == OTHER and not because


def test_every_driver_has_every_aspect_or_says_that_it_is_not_stated() -> None:
    for content in yaml.safe_load(FACTS.read_text()):
        assert content.keys() - {'ask'} == {
            'name', 'arms', 'repositories', 'recognised', *ASPECTS}, content['name']
        for aspect in ASPECTS:
            stated = content[aspect]
            assert stated == 'not stated' or (aspect == 'rates' and stated == 'as topics') or (
                isinstance(stated, list) and stated), (content['name'], aspect)
    with pytest.raises(UsageError, match="driver 'nobody' is not known; choose one of ur_"):
        driver_named('nobody')


@EVERY
def test_every_fact_has_its_source_with_a_commit(driver: Driver) -> None:
    assert driver.facts['topics'] and (driver.facts['efforts'] or driver.name == OTHER)
    used = set()
    for aspect, facts in driver.facts.items():
        for one in facts:
            version, _, _ = one.source.partition(':')
            used.add(version)
            assert re.fullmatch(r'https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/'
                                r'[\w./-]+(#L\d+)?', driver.link(one)), one
            assert one.fact and (one.when or len(facts) == 1 or aspect not in (
                'efforts', 'controllers')), 'one of several holds under a condition'
            assert bool(one.started) == (aspect == 'controllers')
            assert one.started in ('', 'active', 'inactive', 'no')
            assert one.shows in ('measured', 'copy', 'desired', 'external', 'position')
            assert bool(one.topic) == bool(one.parameters) <= (aspect == 'stops')
            if aspect == 'efforts':
                assert one.kind in (*EFFORT_KINDS, '') and one.sensor in (MOTOR, LINK, '')
            else:
                assert not one.kind and not one.sensor and not one.parameter
    assert used <= set(driver.repositories)
    assert set(driver.recognised) <= {'robot', 'joints', 'packages', 'plugins'}


def test_launch_facts_of_drivers_are_commands() -> None:
    for driver in drivers():
        for one in driver.facts['launch']:
            assert re.match(r'(ros2|roslaunch|docker) \w', one.fact), one.fact


def test_different_meanings_of_effort_ask_what_decides() -> None:
    for driver in drivers():
        kinds = {(one.kind, one.sensor) for one in driver.facts['efforts'] if one.kind}
        assert (len(kinds) < 2 and ('torque', '') not in kinds) or driver.ask, driver.name


@pytest.mark.parametrize(('topic', 'shows'), [
    ('/franka/joint_states', 'measured'), ('/ns/franka/joint_states', 'measured'),
    ('/joint_states', ''), ('/left/joint_states', ''), ('/anything', ''),
    ('/franka_robot_state_broadcaster/desired_joint_states', 'desired'),
    ('/iiwa/external_torque_broadcaster/joint_states', 'external')])
def test_shown_by_takes_the_longest_name_of_a_topic(topic: str, shows: str) -> None:
    assert shown_by(topic) == shows


def asked(folder: Path, parameter: str, **answers: Any) -> dict[str, Any]:
    """Return the questions about a UR with a parameter of its hardware, by key."""
    text = (PACKAGE / 'urdf' / 'ur10e.urdf').read_text()
    path = folder / 'arm.urdf'
    path.write_text(text.replace('</robot>', '<ros2_control name="ur10e" type="system"><hardware>'
                                 f'<plugin>ur_robot_driver/URPositionHardwareInterface</plugin>'
                                 f'{parameter}</hardware></ros2_control></robot>'))
    return {one.key: one for one in questions(read_arm(path), answers)}


def test_init_asks_for_the_release_and_takes_what_the_urdf_says(tmp_path: Path) -> None:
    bare = asked(tmp_path, '')
    assert bare['driver'].suggestion == 'ur_robot_driver'
    kind = bare['effort_kind']
    assert 'is use_currents_as_efforts true?' in kind.text and kind.suggestion is None
    assert kind.required and kind.why.count('https://github.com/') == 4
    for word, suggestion in (('true', 'current'), ('True', 'current'), ('false', None)):
        stated = asked(tmp_path, f'<param name="use_currents_as_efforts">{word}</param>')
        assert stated['effort_kind'].suggestion == suggestion and stated['effort_kind'].required
    assert ('by <ros2_control> of the URDF' in stated['effort_kind'].why) is False


def test_a_kind_of_effort_that_a_driver_does_not_publish_is_named() -> None:
    for name, kind, named in (('abb_ros2', 'torque', True), ('kuka_rsi_driver', 'torque', False),
                              ('franka_ros2', 'current', True), (OTHER, 'torque', False)):
        found = effort_diagnoses(driver_named(name), kind)
        assert bool(found) == named, name
        assert all(f'effort_kind is {kind}, but it publishes: ' in one.what for one in found)


def test_init_proposes_topic_and_controller_of_the_driver(tmp_path: Path) -> None:
    franka = asked(tmp_path, '', driver='franka_ros2')
    assert franka['topic'].suggestion == 'franka/joint_states'
    assert 'joint_states: 30 Hz, copy' in franka['topic'].why
    assert franka['controller'].suggestion == 'fr3_arm_controller'
    ur = asked(tmp_path, '')['controller']
    assert ur.suggestion == 'scaled_joint_trajectory_controller' and 'lyrical' in ur.why
    own = asked(tmp_path, '', driver='motoros2')['controller']
    assert own.suggestion == 'joint_trajectory_controller' and 'serves the action' in own.why
    for driver in drivers():
        found = asked(tmp_path, '', driver=driver.name)
        assert re.fullmatch(r'[\w/]+', found['topic'].suggestion), driver.name
        assert re.fullmatch(r'\w+', found['controller'].suggestion), driver.name
    for name, needed in (('ros2_kortex', True), ('doosan-robot2', True), ('franka_ros2', False),
                         ('kuka_iiqka_eac_driver', True), (OTHER, False)):
        sensor = asked(tmp_path, '', driver=name, effort_kind='torque')['sensor']
        assert (sensor.required, sensor.suggestion is None) == (needed, needed), name
    kortex = asked(tmp_path, '', driver='ros2_kortex')['sensor']
    assert 'torque sensors behind its gears' in kortex.why


def test_the_page_has_every_fact_and_source() -> None:
    page = TABLES.overview() + TABLES.details()
    for driver in drivers():
        for fact in driver.facts['efforts']:
            assert all(one in TABLES.efforts() for one in (fact.kind or '', fact.sensor or ''))
        name = driver.name.replace('_', '\\_')
        assert TABLES.efforts().count(f'\n| {name} |') == len(driver.facts['efforts'])
        assert f'### {driver.name}\n' in page
        assert all(driver.link(one) in page for facts in driver.facts.values() for one in facts)
    assert page.count('not stated') > 10 and 'None' not in page


def test_the_page_has_the_commands_of_the_nodes_beside_each_driver() -> None:
    commands = {driver.name: TABLES.launches(driver) for driver in drivers()}
    for text in (text for texts in commands.values() for text in texts):
        program, verb, *words = text.split()
        assert program == 'ros2'
        if verb == 'launch':
            check_launch([word for word in words if word != 'robot:=ARM.yaml'])
    assert commands['ur_robot_driver'][1].endswith(
        ' controller:=scaled_joint_trajectory_controller '
        'emergency_stop:=/io_and_status_controller/safety_mode parameters:=STOP.yaml')
    assert all(text.endswith(' joint_states:=/franka/joint_states')
               for text in commands['franka_ros2'])
    assert commands['kuka_rsi_driver'][0] == (
        'ros2 control switch_controllers --activate joint_trajectory_controller')
    assert [len(commands[name]) for name in ('motoros2', 'staubli_val3_driver', 'other')] == [
        1, 0, 0]
    page = TABLES.details()
    assert all(text in page for texts in commands.values() for text in texts)


def test_the_excitation_node_has_the_parameters_that_read_the_stops_of_a_driver() -> None:
    files = [TABLES.stop_file(one.parameters) for driver in drivers()
             for one in driver.facts['stops'] if one.topic]
    assert len(files) == 3 and all(file.rstrip() in TABLES.details() for file in files)
    taken = yaml.safe_load((PACKAGE / 'config' / 'excitation.yaml').read_text())['/**']
    for content in map(yaml.safe_load, files):
        given = content['/**']['ros__parameters']
        assert all(type(value) is type(taken['ros__parameters'][name])
                   for name, value in given.items())
        assert given['emergency_stop_required'], 'a wrong topic must not go unnoticed'


def test_the_page_is_filled_from_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / 'docs'))
    reference = runpy.run_path(str(ROOT / 'docs' / 'ros_reference.py'))
    text = (ROOT / 'docs' / 'drivers.md').read_text()
    filled = reference['PLACE'].sub(lambda match: reference['generated'](match[1]), text)
    assert 'generated:' not in filled and TABLES.overview() in text
    assert TABLES.details() in filled


def test_no_other_file_states_what_the_data_file_does() -> None:
    pages = {*(ROOT / 'docs').glob('*.md')} - {ROOT / 'docs' / 'drivers.md'}  # made of the data
    files = [ROOT / 'README.md', *pages,
             *(PACKAGE / 'config' / 'robots').glob('*.yaml')]
    found = [f'{path.name}: {match[0]}' for path in files
             for match in ELSEWHERE.finditer(path.read_text('utf-8'))
             if (path.name, match[0]) != ('ur10e.yaml', '11.976')]
    assert not found, found


@pytest.mark.parametrize(('given', 'words'), [
    ({'rate': 125.0, 'shows': 'desired', 'started': 'no', 'when': 'if asked'},
     '125 Hz, desired, not started, if asked'),
    ({'started': 'by the launch file'}, 'by the launch file'), ({}, ''), ({'rate': 0.0}, '')])
def test_conditions_of_a_fact_are_listed(given: dict[str, Any], words: str) -> None:
    assert Fact('a', 'b', **given).conditions == words


def test_joints_are_evidence_from_six_on() -> None:
    driver = Driver('x', 'y', {'v1': 'owner/name@abc'}, {
        'joints': '^arm_', 'robot': '^bot$', 'plugins': ['x/Hardware'], 'packages': ['x_meshes']},
        {'controllers': (Fact('two words', 'v1:a'), Fact('own', 'v1:b'))})
    assert driver.controller == 'own'
    assert driver.link(Fact('a', 'v1:src/a.py#L3')) == (
        'https://github.com/owner/name/blob/abc/src/a.py#L3')
    for count, evidence in ((5, []), (6, ['joints such as arm_0'])):
        joints = ''.join(f'<joint name="arm_{k}" type="revolute"/>' for k in range(count))
        fixed = '<joint name="arm_tool" type="fixed"/>'
        assert driver.evidence(ET.fromstring(f'<robot name="other">{joints}{fixed}</robot>')) == \
            evidence
    named = ET.fromstring('<robot name="bot"><ros2_control><hardware><plugin>x/Hardware</plugin>'
                       '</hardware></ros2_control><mesh filename="package://x_meshes/a.stl"/>'
                       '</robot>')
    assert driver.evidence(named) == ['plugin x/Hardware', 'meshes of x_meshes',
                                      'robot named bot']
