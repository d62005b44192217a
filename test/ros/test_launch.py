"""launch/: every launch file describes nodes; loading them needs launch_ros, which comes with ROS
2."""

from __future__ import annotations

import ast
import importlib
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from robot_dynid.execution.guards import GuardSettings
from robot_dynid.ros.excitation.node import ANSWERING, CLOSING
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.ros.identifier.node import IdentifierParameters
from robot_dynid.ros.simulated_robot.node import SimulatedRobotParameters

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'
BRINGUP = PACKAGE / 'launch' / 'bringup.launch.py'
FILES = sorted(path for path in (PACKAGE / 'launch').glob('*.launch.py') if path != BRINGUP)
READY, ENDING = 120.0, 60.0  # s until six nodes are ready on a busy machine, and until they end

SHARED = PACKAGE / 'robot_dynid' / 'ros' / 'launching.py'
STRUCTS = {'simulated_robot': (SimulatedRobotParameters,), 'identifier': (IdentifierParameters,),
           'excitation': (ExcitationSettings, GuardSettings)}
Described = Callable[..., list[dict[str, Any]]]


def started(path: Path) -> tuple[str, ...]:
    """Return the nodes a launch file describes, without running it."""
    calls = [node for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == 'description']
    return tuple(ast.literal_eval(name) for name in calls[0].args)


def constant(name: str) -> Any:
    """Return a constant of what the launch files share; importing it needs launch_ros."""
    (found,) = [node for node in ast.parse(SHARED.read_text()).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name]
    return ast.literal_eval(found.value)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Described:
    """Return a function from launch files and their arguments to the words of every Node."""
    pytest.importorskip('launch_ros.actions')
    launch = importlib.import_module('launch')
    shared = importlib.import_module('robot_dynid.ros.launching')
    nodes: list[dict[str, Any]] = []

    def node(**words: Any) -> Any:
        nodes.append(words)
        return launch.actions.LogInfo(msg=words['executable'])

    def describe(*paths: Path, **arguments: str) -> list[dict[str, Any]]:
        nodes.clear()
        context = launch.LaunchContext()
        context.launch_configurations.update(arguments)
        for path in paths:  # in one scope, as a file that includes them
            context.extend_locals({'current_launch_file_path': str(path)})
            for entity in runpy.run_path(str(path))['generate_launch_description']().entities:
                entity.visit(context)
        return nodes

    for module in (shared, importlib.import_module('robot_dynid.ros.bringup')):
        monkeypatch.setattr(module, 'Node', node)
    return describe


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_file_describes_nodes(path: Path, described: Described) -> None:
    nodes = described(path, robot='ur10e', namespace='cell1', use_sim_time='true',
                      log_level='debug', recording_directory='bags')
    assert tuple(words['name'] for words in nodes) == started(path)
    for words in nodes:
        assert (words['package'], words['namespace']) == ('robot_dynid', 'cell1')
        assert words['ros_arguments'] == ['--log-level', 'debug']
        given = set(words['parameters'][-1])
        assert {'robot', 'use_sim_time'} - given == (
            {'use_sim_time'} if words['name'] == 'simulated_robot' else set())
        assert ('recording_directory' in given) == (words['name'] != 'simulated_robot')


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_nodes_have_time_to_stop_the_robot_and_to_close_bags(
    path: Path, described: Described
) -> None:
    guards = GuardSettings()
    needed = guards.stop_time + 2.0 * guards.stop_timeout + CLOSING + ANSWERING
    for words in described(path):
        assert min(float(words['sigterm_timeout']), float(words['sigkill_timeout'])) > 2.0 * needed


@pytest.mark.parametrize('name', ['simulate', 'excite', 'identify'])
def test_arguments_not_given_leave_the_parameter_file_its_say(
    name: str, described: Described
) -> None:
    (words,) = described(PACKAGE / 'launch' / f'{name}.launch.py')
    assert words['parameters'][-1] == {}


def test_arguments_name_topics_and_ask_for_respawning(described: Described) -> None:
    (words,) = described(PACKAGE / 'launch' / 'excite.launch.py', emergency_stop='/cell/stop',
                         motor_states='motors', respawn='true')
    assert words['remappings'] == [('motor_states', 'motors'), ('emergency_stop', '/cell/stop')]
    assert (words['respawn'], words['respawn_delay']) == (True, 2.0)
    (words,) = described(PACKAGE / 'launch' / 'identify.launch.py', effort='drives/torque')
    assert words['remappings'] == [('effort', 'drives/torque')]
    assert words['parameters'][-1]['optional_topics'].value == ['effort']
    assert words['respawn'] is False


def test_bringup_puts_the_simulated_arm_behind_real_controllers(
    described: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('robot_dynid.ros.bringup.installed', lambda name: True)
    robot_state, manager, spawner, arm, excitation, identifier = described(
        BRINGUP, robot='planar_3r', namespace='cell')
    assert [words['executable'] for words in (robot_state, manager, spawner)] == [
        'robot_state_publisher', 'ros2_control_node', 'spawner']
    assert '<ros2_control name="planar_3r_mock"' in (
        robot_state['parameters'][0]['robot_description'].value)
    content = yaml.safe_load(Path(manager['parameters'][0]).read_text())
    trajectories = content['/cell/joint_trajectory_controller']['ros__parameters']
    assert trajectories['joints'] == ['joint_1', 'joint_2', 'joint_3']
    assert arm['parameters'][-1]['setpoints'].value == (
        'joint_trajectory_controller/controller_state')
    for words in (arm, excitation, identifier):
        assert (words['remappings'], words['namespace']) == ([], 'cell')


def test_bringup_names_what_is_not_installed(
    described: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {'controller_manager', 'mujoco_ros2_control'}
    monkeypatch.setattr('robot_dynid.ros.bringup.installed', lambda name: name not in missing)
    with pytest.raises(RuntimeError, match=r'apt install ros-.ROS_DISTRO-controller-manager '
                       r'ros-.ROS_DISTRO-mujoco-ros2-control$'):
        described(BRINGUP, hardware='mujoco')


@pytest.mark.parametrize(('arguments', 'words'), [
    ({'parameters': 'nowhere.yaml'}, "argument parameters: no file 'nowhere.yaml'"),
    ({'log_level': 'loud'}, '"log_level" provided value "loud" is not valid'),
    ({'rviz': 'yes'}, '"rviz" provided value "yes" is not valid'),
    ({'real_time_factor': 'fast'}, "argument real_time_factor: 'fast' is no number"),
])
def test_wrong_arguments_are_named(
    arguments: dict[str, str], words: str, described: Described
) -> None:
    with pytest.raises(RuntimeError, match=words):
        described(PACKAGE / 'launch' / 'simulate.launch.py', **arguments)


def test_mistyped_arguments_are_named_and_those_of_other_files_are_not(
    described: Described
) -> None:
    launching = importlib.import_module('robot_dynid.ros.launching')
    context = importlib.import_module('launch').LaunchContext()
    context.launch_configurations.update(
        robto='ur10e', robot='ur10e', world='empty.sdf', robot_ip='10.0.0.2', ros_namespace='/a')
    (warning,) = launching.mistyped(context, ('robot', 'namespace', 'rviz'))
    assert warning.msg[0].text == (
        "no argument 'robto' (did you mean robot?): it changes nothing; -s lists the arguments")
    for path in FILES:
        described(path, robot='ur10e', world='empty.sdf')


@pytest.mark.parametrize(('name', 'argument', 'hint'), [
    ('simulate', 'use_sim_time', ''), ('simulate', 'contrller', ' (did you mean controller?)'),
    ('excite', 'model', ''), ('identify', 'controller', ''), ('simulate', 'effort', '')])
def test_a_file_that_is_launched_itself_refuses_what_would_change_nothing(
    name: str, argument: str, hint: str, described: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PACKAGE / 'launch' / f'{name}.launch.py'
    given = {argument: 'x', 'launch-prefix': 'nice', 'robot_ip': '10.0.0.2'}
    words = f"{path.name} has no argument '{argument}'{hint}; it has robot, "
    for asked in (['robot_dynid', path.name], [str(path)]):
        monkeypatch.setattr('sys.argv', ['ros2', 'launch', *asked])
        with pytest.raises(RuntimeError) as raised:
            described(path, **given)
        assert str(raised.value).startswith(words)
        assert described(path, robot_ip='10.0.0.2'), 'of a driver, not of these nodes'
    for asked in (['cell.launch.py'], ['my_cell', path.name]):
        monkeypatch.setattr('sys.argv', ['ros2', 'launch', *asked])
        assert described(path, **given)


def test_files_included_in_one_share_no_defaults(described: Described) -> None:
    for order in (FILES, FILES[::-1]):
        for words in described(*order, ros_namespace='cell', robot_ip='10.0.0.2'):
            assert Path(words['parameters'][0]).name == f'{words["name"]}.yaml'
    excite, demo = (PACKAGE / 'launch' / f'{name}.launch.py' for name in ('excite', 'demo'))
    first, *_, last = described(excite, demo, excite)
    assert first['parameters'][1] == last['parameters'][1] == {}, 'no robot of the demo'
    first, *rest = described(excite, demo, joint_states='left/joint_states')
    assert all(words['remappings'] == [('joint_states', 'left/joint_states')]
               for words in (first, *rest))


def test_launch_files_included_in_one_start_their_nodes(
    module_domain: int, tmp_path: Path
) -> None:
    """The real launch, with its shared scope, and arguments of whoever includes them."""
    pytest.importorskip('launch_ros.actions')
    log, file = tmp_path / 'launch.log', tmp_path / 'cell.launch.py'
    file.write_text(f"""
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

def generate_launch_description():
    return LaunchDescription([
        DeclareLaunchArgument('robot', default_value='planar_3r'),
        DeclareLaunchArgument('robot_ip', default_value='10.0.0.2'),
        *(IncludeLaunchDescription(PythonLaunchDescriptionSource(path))
          for path in {list(map(str, FILES))})])
""")
    run = ('import runpy, sys; from launch import LaunchService; '
           'service = LaunchService(noninteractive=True); '
           'describe = runpy.run_path(sys.argv[1])["generate_launch_description"]; '
           'service.include_launch_description(describe()); sys.exit(service.run())')
    with log.open('w') as output:
        launch = subprocess.Popen([sys.executable, '-c', run, str(file)], stdout=output,
                                  stderr=subprocess.STDOUT, cwd=tmp_path)
        try:
            end = time.monotonic() + READY
            while log.read_text().count('ready: ') < 6 and time.monotonic() < end \
                    and 'has died' not in log.read_text():
                time.sleep(0.1)
            text = log.read_text()
            assert text.count('ready: robot planar_3r') == 4, text
            assert text.count('ready: simulates planar_3r') == 2, text
        finally:
            launch.send_signal(signal.SIGINT)
            assert launch.wait(ENDING) == 0, log.read_text()
    text = log.read_text()
    assert text.count('has finished cleanly') == 6 and 'SIGTERM' not in text, text


@pytest.mark.parametrize('name', ['simulate', 'demo'])
def test_the_simulated_robot_has_the_controller_that_is_asked_for(
    name: str, described: Described
) -> None:
    words = described(PACKAGE / 'launch' / f'{name}.launch.py', controller='x')
    assert [set(node['parameters'][-1]) - {'robot'} for node in words] == [
        {'controller_name'}, {'controller'}, set()][:len(words)]


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_file_names_what_is_there(path: Path) -> None:
    """Without launch_ros: executables are installed, parameter files exist, nodes keep names."""
    for name in started(path):
        assert f"'{name} = robot_dynid.ros.{name}.node:main'" in (PACKAGE / 'setup.py').read_text()
        assert (PACKAGE / 'config' / f'{name}.yaml').is_file()


@pytest.mark.parametrize('name', STRUCTS)
def test_arguments_are_parameters_of_their_nodes(name: str) -> None:
    known = {field.name for struct in STRUCTS[name] for field in fields(struct)}
    taken = constant('OF_NODE')[name]
    renamed = constant('NAMES')
    assert taken and {renamed.get((name, argument), argument) for argument in taken} <= known


def test_demo_starts_the_nodes_of_the_command() -> None:
    names = ('simulated_robot', 'excitation', 'identifier')
    assert started(PACKAGE / 'launch' / 'demo.launch.py') == names
    story = (ROOT / 'robot_dynid_evaluation' / 'demo' / 'story.py').read_text()
    for name in names:
        assert f"'{name}'" in story


def test_rviz_shows_what_is_published() -> None:
    content = yaml.safe_load((PACKAGE / 'config' / 'robot_dynid.rviz').read_text())
    topics = [display[key]['Value'] for display in content['Visualization Manager']['Displays']
              for key in ('Topic', 'Description Topic') if key in display]
    assert topics == [
        'robot_description', 'excitation/path', 'identifier/contact_markers']
