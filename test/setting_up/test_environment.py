"""Doctor on an installation: missing and wrong libraries, kernels, disk, DDS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import import_module, util
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live_systems import system

from robot_dynid.cli import doctor
from robot_dynid.cli.main import main
from robot_dynid.kernels import BUILT
from robot_dynid.setting_up import environment
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis, verdict
from robot_dynid.setting_up.environment import (
    PURPOSES,
    Requirement,
    disk_diagnosis,
    kernels,
    library_diagnosis,
    package_requirements,
    requirements,
    ros_diagnosis,
)
from robot_dynid.setting_up.middleware import Surroundings, Talk, dds_diagnoses, surroundings


def test_requirements_are_read_with_range_and_extra() -> None:
    found = requirements(['numpy<3,>=1.21', 'mujoco<5,>=3.1; extra == "simulation"',
                          "ros-rclpy[fastrtps]<10,>=7.1; extra == 'ros'"])
    assert found == (Requirement('numpy', ('<3', '>=1.21'), ''),
                     Requirement('mujoco', ('<5', '>=3.1'), 'simulation'),
                     Requirement('ros-rclpy', ('<10', '>=7.1'), 'ros'))
    assert {'numpy', 'scipy', 'clarabel', 'coal', 'mujoco', 'plotly'} <= {
        one.name for one in package_requirements()}
    assert {one.name for one in package_requirements() if not one.extra} <= PURPOSES.keys()


@pytest.mark.parametrize(('installed', 'allowed'), [
    ('1.21', True), ('1.21.0', True), ('1.20.9', False), ('2.9.9', True), ('3.0', False),
    ('3', False), ('2.0rc1', True), ('', True)])
def test_versions_are_compared_by_their_numbers(installed: str, allowed: bool) -> None:
    assert Requirement('x', ('>=1.21', '<3'), '').allows(installed) is allowed


def test_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = next(one for one in package_requirements() if one.name == 'clarabel')
    assert library_diagnosis(wanted).level is OK
    monkeypatch.setitem(sys.modules, 'clarabel', None)
    found = library_diagnosis(wanted)
    assert found.level is ERROR and 'solver' in found.where
    assert found.what.startswith('clarabel ') and found.remedy.startswith("pip install 'clarabel")
    optional = library_diagnosis(Requirement('no-such-library', (), 'report'))
    assert optional.level is WARN and optional.what == 'no-such-library is not installed'


def test_a_version_out_of_range_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, 'version', lambda name: '0.5')
    found = library_diagnosis(Requirement('clarabel', ('>=0.6', '<1'), ''))
    assert found.level is WARN and 'clarabel 0.5 is outside' in found.what
    assert found.remedy == "pip install 'clarabel>=0.6,<1'"


def test_the_build_of_the_kernels_that_runs_is_named() -> None:
    assert kernels() == Diagnosis('kernels', OK, BUILT, 'compiled')


def test_kernels_that_are_not_built_are_an_error() -> None:
    done = without_kernels('from robot_dynid.setting_up.environment import kernels\n'
                           'import json\nprint(json.dumps(kernels().plain()))')
    found = json.loads(done.stdout)
    assert (found['name'], found['level']) == ('kernels', 'error')
    assert found['what'] == 'the numerical kernels of robot_dynid are not built'
    assert found['remedy'].startswith('install the package with pip or colcon')


def test_without_kernels_a_verb_says_what_builds_them() -> None:
    done = without_kernels("from robot_dynid.cli.main import main\nmain(['base', 'ur10e'])")
    assert done.stdout == '' and done.stderr.count('\n') == 1
    assert done.stderr.startswith('robot-dynid: the numerical kernels of robot_dynid are not '
                                  'built: install the package with pip or colcon')


def without_kernels(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that does not find the compiled kernels."""
    hidden = "import sys\nsys.modules['robot_dynid.kernels._portable'] = None\n"
    return subprocess.run([sys.executable, '-c', hidden + program], capture_output=True,
                          text=True, timeout=60, check=True)


def test_the_disk_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_diagnosis(tmp_path / 'recordings').level is OK
    monkeypatch.setattr(environment, 'disk_space', lambda folder: ('', 5e6))
    found = disk_diagnosis(tmp_path)
    assert found.level is WARN and 'only 5 MB are free' in found.what
    monkeypatch.setattr(environment, 'disk_space', lambda folder: ('may not be written', 0.0))
    assert disk_diagnosis(tmp_path).level is ERROR


def test_without_ros_only_a_running_robot_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    there = util.find_spec
    monkeypatch.setattr(environment, 'find_spec',
                        lambda name: None if name == 'rclpy' else there(name))
    assert ros_diagnosis({}, needed=False).level is WARN
    found = ros_diagnosis({}, needed=True)
    assert found.level is ERROR and 'setup.bash' in found.remedy
    monkeypatch.setattr(environment, 'find_spec',
                        lambda name: None if name == 'control_msgs' else object())
    found = ros_diagnosis({'ROS_DISTRO': 'jazzy'}, needed=True)
    assert found.remedy == 'apt install ros-jazzy-control-msgs'


#: environment, what a node said, what the computer has, the diagnosis and what it says
DEAF: dict[str, tuple[dict[str, str], Talk, Surroundings, str, str]] = {
    'discovery off': ({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF'}, Talk(False), Surroundings(),
                      'discovery', 'no node finds another'),
    'discovery server': ({'ROS_DISCOVERY_SERVER': '10.0.0.1:11811'}, Talk(False), Surroundings(),
                         'discovery', 'which does not answer'),
    'domain': ({'ROS_DOMAIN_ID': 'lab'}, Talk(False), Surroundings(), 'domain', "is 'lab'"),
    'middleware': ({'RMW_IMPLEMENTATION': 'rmw_x'}, Talk(False, error='no rmw_x here'),
                   Surroundings(), 'middleware', 'rmw_x is not installed'),
    'profile': ({'FASTRTPS_DEFAULT_PROFILES_FILE': '/p.xml'}, Talk(False), Surroundings(),
                'profile', 'come from /p.xml'),
    'shared memory': ({}, Talk(False), Surroundings(shared_memory='/dev/shm has 0 MB left'),
                      'shared memory', '0 MB left'),
    'multicast': ({}, Talk(False), Surroundings(multicast='a datagram does not arrive'),
                  'multicast', 'does not arrive'),
    'unknown': ({}, Talk(False), Surroundings(), 'dds', 'do not hear each other'),
}


@pytest.mark.parametrize('reason', DEAF)
def test_the_reason_why_dds_does_not_talk_is_named(reason: str) -> None:
    variables, talk, around, name, words = DEAF[reason]
    found = dds_diagnoses(variables, talk, around)
    assert [one.name for one in found] == [name] and words in found[0].what
    assert found[0].level is ERROR and found[0].remedy and found[0].where
    heard = dds_diagnoses(variables, Talk(True, 0.1), around)
    assert [one.level for one in heard] == [OK]


def test_shared_memory_and_multicast_are_tried(tmp_path: Path) -> None:
    here = surroundings()
    assert not here.shared_memory + here.multicast, 'of this machine, on which nodes of tests talk'
    missing = surroundings(tmp_path / 'none').shared_memory
    assert missing == f'{tmp_path / "none"} is missing or may not be written'


def test_ports_whose_makers_were_killed_are_named_even_where_dds_talks(tmp_path: Path) -> None:
    for name, size, age in (('fastdds_port17915', 0, 60.0), ('fastdds_port17916', 0, 0.0),
                            ('fastdds_port17917', 1, 60.0), ('fastdds_port17917_el', 0, 60.0)):
        (tmp_path / name).write_bytes(size * b'0')
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert surroundings(tmp_path).unfinished == (tmp_path / 'fastdds_port17915',)
    around = Surroundings(unfinished=(tmp_path / 'fastdds_port17915',))
    told = dds_diagnoses({}, Talk(True, 0.1), around)
    assert [one.level for one in told] == [OK, ERROR]
    assert told[1].remedy == f'rm {tmp_path / "fastdds_port17915"}'
    assert told[1] in dds_diagnoses({}, Talk(False), around)


def test_the_command_prints_and_exits_by_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, 'find_spec', lambda name: None)  # no ROS
    assert main(['doctor']) == 0
    text = ' '.join(capsys.readouterr().out.split())
    assert 'warning ros (rclpy): ROS 2 not found' in text and '-> source /opt/ros' in text
    asked: list[Any] = []
    monkeypatch.setattr(doctor, 'live', lambda *given: asked.append(given) or [])
    assert main(['doctor', '--robot', 'ur10e', '--json']) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found['ok'] and not asked, 'what needs ROS is not tried without it'
    worst = [one for one in found['diagnoses'] if one['level'] == 'error']
    assert [one['name'] for one in worst] == ['ros'] and set(worst[0]) == {
        'name', 'level', 'where', 'what', 'remedy', 'values'}
    for seconds, code in (('0.4', 2), ('0.5', 0), ('600', 0), ('601', 2)):
        assert main(['doctor', '--seconds', seconds]) == code


def test_the_command_watches_what_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes of it over DDS: test/ros/doctor."""
    pytest.importorskip('rclpy')
    live_system = import_module('robot_dynid.ros.doctor.live_system')
    seen: list[Any] = []

    def observed(robot: Any, watched: Any) -> Any:
        seen.append((robot.name, watched))
        return system(robot)

    monkeypatch.setattr(live_system, 'observed', observed)
    monkeypatch.setattr(doctor, 'environment', lambda needs_ros: [])
    assert main(['doctor', '--robot', 'ur10e', '--topic', '/left/joint_states', '--controller',
                 'scaled', '--seconds', '7']) == 0
    assert seen == [('ur10e', live_system.Watched('/left/joint_states', 'scaled', 7.0))]


@pytest.mark.parametrize(('installed', 'told'), [
    ('7.1.2', 'from wheels (rclpy 7.1.2)'), ('', 'sourced (jazzy)')])
def test_ros_comes_from_wheels_or_is_sourced(
    monkeypatch: pytest.MonkeyPatch, installed: str, told: str
) -> None:
    def version(name: str) -> str:
        assert name == 'ros-rclpy'
        if not installed:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr('robot_dynid.setting_up.environment.version', version)
    monkeypatch.setattr('robot_dynid.setting_up.environment.find_spec', lambda name: name)
    found = ros_diagnosis({'ROS_DISTRO': 'jazzy'}, needed=True)
    assert (found.level, found.what, found.remedy) == (OK, told, '')


@pytest.mark.parametrize(('free', 'level', 'what'), [
    (1.9e9, WARN, 'only 1900 MB are free; an hour of 14 joints at 1 kHz takes about 2000 MB'),
    (2.1e9, OK, '2100 MB free for recordings')])
def test_an_hour_of_recordings_fits_the_disk(
    free: float, level: Any, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, 'disk_space', lambda folder: ('', free))
    found = disk_diagnosis(tmp_path)
    assert (found.level, found.what) == (level, what)
    assert found.values == (('free [MB]', f'{free / 1e6:.0f}'),)


@pytest.mark.parametrize(('blocks', 'words'), [(4500, '{} has 9 MB left'), (5500, '')])
def test_a_participant_needs_ten_megabytes_of_shared_memory(
    blocks: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('robot_dynid.setting_up.middleware.os.statvfs', lambda folder:
                        SimpleNamespace(f_bavail=blocks, f_frsize=2000, f_bfree=10**9))
    assert surroundings(tmp_path).shared_memory == words.format(tmp_path)


def test_a_port_without_size_is_left_over_after_ten_seconds(tmp_path: Path) -> None:
    for port, age in ((7, 8.0), (6, 12.0), (5, 13.0)):
        path = tmp_path / f'fastdds_port{port}'
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    assert surroundings(tmp_path).unfinished == (
        tmp_path / 'fastdds_port5', tmp_path / 'fastdds_port6')


@pytest.mark.parametrize(('domain', 'wrong'), [('0', False), ('101', False), ('102', True),
                                               ('-1', True), ('7.0', True)])
def test_domains_are_numbers_from_0_to_101(domain: str, wrong: bool) -> None:
    (found,) = dds_diagnoses({'ROS_DOMAIN_ID': domain}, Talk(False), Surroundings())
    assert (found.name == 'domain') is wrong
    if wrong:
        assert found.what == f'is {domain!r}, not a number from 0 to 101'


def test_processes_that_hear_each_other_are_reported_with_domain_and_middleware() -> None:
    variables = {'ROS_DOMAIN_ID': '3', 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
                 'RMW_IMPLEMENTATION': 'rmw_y'}
    for talk, given, where in ((Talk(True, 0.123, middleware='rmw_x'), variables, 'rmw_x'),
                               (Talk(True, 0.123), variables, 'rmw_y'),
                               (Talk(True, 0.123), {}, 'default middleware')):
        (found,) = dds_diagnoses(given, talk, Surroundings())
        place = 'ROS_DOMAIN_ID 3, discovery range LOCALHOST' if given else \
            'ROS_DOMAIN_ID 0, discovery range SUBNET'
        assert (found.level, found.where) == (OK, where)
        assert found.what == f'two processes hear each other after 0.1 s ({place})'


@pytest.mark.parametrize(('bounds', 'installed', 'allowed'), [
    (('!=2.1',), '2.1.0', False), (('!=2.1',), '2.1.1', True), (('==2',), '2.0.0', True),
    (('<=2.5',), '2.5', True), (('<=2.5',), '2.5.1', False), (('>2.5',), '2.5.0', False),
    (('>2.5',), '2.10', True), (('>=1',), 'unknown', True), (('~=9',), '1.0', True)])
def test_bounds_of_versions_have_every_comparison(
    bounds: tuple[str, ...], installed: str, allowed: bool
) -> None:
    assert Requirement('any', bounds, '').allows(installed) is allowed


@pytest.mark.parametrize(('levels', 'words'), [
    ((OK, OK), '2 checks, all ok'), ((WARN, OK), '2 checks: 1 warning; first: n0: w0'),
    ((WARN, WARN, ERROR), '3 checks: 1 error, 2 warnings; first: n2: w2'),
    ((OK, ERROR, ERROR), '3 checks: 2 errors; first: n1: w1')])
def test_a_verdict_counts_errors_and_warnings(levels: tuple[Any, ...], words: str) -> None:
    assert verdict([Diagnosis(f'n{k}', level, 'here', f'w{k}') for k, level in enumerate(levels)]
                   ) == words
