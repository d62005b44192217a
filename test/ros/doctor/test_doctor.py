"""Doctor over DDS: a driver that does one thing wrong, and an environment that cuts nodes off."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from nodes import NodeProcess
from rclpy.action import ActionServer
from rclpy.context import Context
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.cli.main import main
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.doctor.live_system import ACTION, Watched, observed
from robot_dynid.setting_up import middleware
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis
from robot_dynid.setting_up.live import live_diagnoses
from robot_dynid_evaluation.ros_domain import own_domain

pytestmark = pytest.mark.ros

DRIVER = Path(__file__).parents[2] / 'support' / 'faulty_driver.py'
ROBOT, CONTROLLER = 'ur10e', 'joint_trajectory_controller'
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
#: what the driver does, the diagnosis that names it, its level, and words of it
FAULTS = {
    'degrees': ('position_unit', ERROR, 'look like degrees'),
    'milliampere': ('effort_scale', ERROR, 'efforts look like mA'),
    'prefix': ('joint names', ERROR, "the prefix 'left_'"),
    'no_effort': ('effort', ERROR, 'carry no effort'),
    'late': ('stamps', WARN, 'behind the clock of this computer'),
    'sim_time': ('clock', ERROR, 'nobody publishes /clock'),
    'best_effort': ('quality of service', WARN, 'as best effort'),
    'wall': ('gravity', WARN, 'mounted on a wall'),
    'copy': ('other joint states', WARN, '/franka/joint_states has the same joints'),
    'zeros': ('effort', ERROR, 'all efforts are exactly 0'),
}


def seen(robot: str = ROBOT, **watched: Any) -> dict[str, Diagnosis]:
    """Return what is not in order about the running system, by name."""
    model = load_robot(robot)
    found = live_diagnoses(model, observed(model, Watched(duration=1.5, **watched)))
    return {one.name: one for one in found if one.level is not OK}


def asked(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit code of the command, and what is not in order, by name."""
    code = main(['doctor', '--robot', ROBOT, '--seconds', '1.5', '--json'])
    found = json.loads(capsys.readouterr().out)
    return code, {one['name']: one for one in found['diagnoses'] if one['level'] != 'ok'}


def until(look: Callable[[], Any], there: Callable[[Any], bool]) -> Any:
    """Look until it is there, or for long: a busy machine shows other things, too, for a while."""
    end = time.monotonic() + PATIENCE
    while not there(found := look()) and time.monotonic() < end:
        pass
    return found


@pytest.fixture(autouse=True)
def no_unfinished_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out those of this machine, whose other processes may have been killed."""
    monkeypatch.setattr(middleware, 'unfinished_ports', lambda folder: [])


@pytest.fixture(scope='module')
def driver(module_domain: int) -> Iterator[subprocess.Popen[str]]:
    """Run a driver whose fault is the line that is written to it."""
    process = subprocess.Popen([sys.executable, str(DRIVER), ROBOT], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30.0) == 0


def make(driver: subprocess.Popen[str], fault: str) -> None:
    """Have the driver make a fault, or none."""
    assert driver.stdin is not None and driver.stdout is not None
    driver.stdin.write(f'{fault}\n')
    driver.stdin.flush()
    assert driver.stdout.readline().strip() == fault


#: faults that are seen by the middleware; the core tells the others as well without it
OF_ROS = ('prefix', 'sim_time', 'best_effort', 'wall', 'copy')


@pytest.mark.parametrize('fault', [
    pytest.param(fault, marks=() if fault in OF_ROS else pytest.mark.soak) for fault in FAULTS])
def test_a_fault_of_the_driver_is_named(fault: str, driver: subprocess.Popen[str]) -> None:
    make(driver, fault)
    name, level, words = FAULTS[fault]
    off = until(seen, lambda off: {name, 'controller'} <= set(off) and words in off[name].what)
    assert name in off, off
    assert off[name].level is level and words in off[name].what, off
    assert off[name].remedy and off[name].where
    if fault == 'copy':
        rates = [float(word) for word in re.findall(r'(\d+) (?:messages )?per', off[name].what)]
        assert 4.0 < rates[1] / rates[0] < 6.0 and rates[1] < 1.1 * 125.0, 'as it publishes'
    assert off['controller'].level is ERROR, 'the driver has none, which is said, too'


def test_a_robot_in_order_is_and_its_faults_are_not(
    ros_domain: int, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [NodeProcess(name, {'robot': ROBOT}) for name in ('simulated_robot', 'excitation')]
    context = Context()
    try:
        code, off = until(lambda: asked(capsys), lambda found: found == (0, {}))
        assert (code, off) == (0, {}), off
        other = seen(controller='another')['controller']
        assert 'give --controller joint_trajectory_controller' in other.remedy
        context.init(domain_id=ros_domain)
        stranger = Node('stranger', context=context)
        stranger.create_publisher(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', 1)
        off = until(seen, lambda off: 'command topic' in off)
        assert off['command topic'].what.startswith('/stranger can command')
    finally:
        context.try_shutdown()
        for node in nodes:
            node.stop()


def test_a_controller_that_is_loaded_but_not_active_is_named(
    driver: subprocess.Popen[str], ros_domain: int
) -> None:
    """Its action has a server from its configuration on, and its state a publisher."""
    context = Context()
    context.init(domain_id=ros_domain)
    try:
        loaded = Node('controller_manager', context=context)
        server = ActionServer(loaded, FollowJointTrajectory, f'{CONTROLLER}/{ACTION}', print)
        loaded.create_publisher(
            JointTrajectoryControllerState, f'{CONTROLLER}/controller_state', 1)
        off = until(seen, lambda off: 'it is not active' in off['controller'].what)
        assert 'ros2 control switch_controllers --activate' in off['controller'].remedy
        server.destroy()
    finally:
        context.try_shutdown()


def test_joint_states_elsewhere_are_named_and_those_of_another_domain_are_not(
    driver: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(driver, 'none')
    elsewhere = until(lambda: seen(topic='elsewhere')['joint states'],
                      lambda one: 'give --topic /joint_states' in one.remedy)
    assert 'nobody publishes /elsewhere' in elsewhere.what
    assert 'give --topic /joint_states' in elsewhere.remedy
    monkeypatch.delenv('ROS_DOMAIN_ID')
    with own_domain() as other:
        cut = seen()['joint states']
    assert f'nobody publishes /joint_states in ROS_DOMAIN_ID {other}' in cut.what


@pytest.mark.parametrize(('variable', 'value', 'name'), [
    pytest.param('ROS_AUTOMATIC_DISCOVERY_RANGE', 'OFF', 'discovery', marks=pytest.mark.soak),
    ('RMW_IMPLEMENTATION', 'rmw_of_nobody_cpp', 'middleware'),
    ('ROS_DOMAIN_ID', 'laboratory', 'domain')])
def test_doctor_names_the_variable_that_isolates_nodes(
    variable: str, value: str, name: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    code, off = asked(capsys)
    assert code == 1 and set(off) == {name} and off[name]['where'] == variable
