"""ros/: every parameter of every node is seen to take effect by a test, which is named here.

What the nodes declare is asked of the nodes themselves; the tests named must exist and speak of
the parameter. A parameter without a test, or a line without a parameter, fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
import yaml
from nodes import destroy, made

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import STOP_OF
from robot_dynid.ros.excitation.node import ExcitationNode
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.ros.simulated_robot.node import SimulatedRobot

TEST_FOLDER = Path(__file__).parents[1]
PLAN, GUARDS, ALARMS = 'test_excitation_settings.py', 'test_guard_settings.py', 'test_alarms.py'
MONITOR, IDENTIFIER = 'test_monitoring.py', 'test_identifier_handlers.py'
SIMULATED = 'test_simulated_parameters.py'
DESCRIBED = ('test_described_robot.py::'
             'test_the_parameter_robot_description_comes_before_the_topic')


def each(test: str, *parameters: str) -> dict[str, str]:
    """Return that one test is about all these parameters."""
    return dict.fromkeys(parameters, test)


TESTS: dict[str, dict[str, str]] = {
    'identifier': {
        **each(DESCRIBED, 'robot_description'),
        **each(f'{IDENTIFIER}::test_parameters_of_the_node',
               'robot', 'model', 'recipe', 'recording_directory', 'optional_topics', 'queue_depth',
               'monitor'),
        **each(f'{IDENTIFIER}::test_files_are_written_below_a_folder', 'files_directory'),
        **each(f'{IDENTIFIER}::test_file_requests_false_leaves_the_recorded_buffer',
               'file_requests'),
        **each(f'{MONITOR}::test_external_torque_rises_with_the_time_constant_of_the_gain',
               'observer_gain'),
        **each(f'{MONITOR}::test_every_parameter_reaches_its_setting',
               'contact_margin', 'contact_thresholds', 'contact_release', 'contact_duration'),
        **each('test_wrist.py::test_the_wrench_of_the_surroundings_is_published', 'wrist_sensor'),
        **each('test_health_node.py::'
               'test_a_change_is_told_and_served_when_it_is_asked_for', 'health'),
        **each('test_health_node.py::test_memory_and_false_alarms_reach_the_levels',
               'health_memory', 'health_false_alarms'),
    },
    'excitation': {
        **each('test_pieces.py::'
               'test_whenever_the_node_dies_the_robot_comes_to_rest_on_its_path', 'lookahead'),
        **each('test_excitation_node.py::test_wrong_parameters_end_the_node', 'robot'),
        **each(DESCRIBED, 'robot_description'),
        **each('test_excitation_handlers.py::'
               'test_controller_and_face_decide_the_topics_of_the_node', 'controller', 'face'),
        **each('test_excitation_handlers.py::'
               'test_a_goal_without_controller_ends_after_controller_wait', 'controller_wait'),
        **each('test_plan.py::test_the_parameter_decides_where_the_goal_does_not', 'validation'),
        **each('test_excitation_handlers.py::'
               'test_where_nothing_can_be_written_nothing_is_moved', 'recording_directory'),
        **each('test_given_trajectory.py::test_excite_refuses_goals_that_do_not_fit_by_name',
               'files_directory'),
        **each('test_plan.py::test_without_file_requests_dry_runs_remain', 'file_requests'),
        **each(f'{PLAN}::test_trajectory_rate_and_lead_in', 'trajectory_rate', 'lead_in'),
        **each(f'{PLAN}::'
               'test_speed_scale_counts_once_for_velocities_and_squared_for_accelerations',
               'speed_scale'),
        **each(f'{PLAN}::test_approach_scale_and_return_to_start',
               'approach_scale', 'return_to_start'),
        **each(f'{PLAN}::test_first_pass_scale_and_warm_up', 'first_pass_scale', 'warm_up'),
        **each(f'{PLAN}::test_plans_longer_than_the_parameter_longest_are_refused', 'longest'),
        **each('test_plan.py::test_a_required_collision_check_that_cannot_be_made_is_refused',
               'require_collision_check'),
        **each(f'{PLAN}::test_tolerances_are_those_of_the_type_of_the_joint',
               *(f'{kind}_tolerance{suffix}' for kind in ('start', 'tracking', 'path', 'goal')
                 for suffix in ('', '_prismatic')), 'goal_time'),
        **each(f'{PLAN}::test_guards_reach_the_rules', 'stop_time', 'join_time'),
        **{name: f'{GUARDS}::test_{name}' for name in (
            'state_timeout', 'controller_timeout', 'feedback_timeout', 'acceptance_timeout',
            'result_timeout', 'tracking_window', 'rest_velocity')},
        **each(f'{GUARDS}::test_cancel_timeout_and_stop_timeout',
               'cancel_timeout', 'stop_timeout'),
        **each('test_stops_by_cause.py::test_every_cause_stops_as_is_set', *STOP_OF.values()),
        **each(f'{GUARDS}::test_effort_fraction_and_effort_samples',
               'effort_fraction', 'effort_samples'),
        **each(f'{ALARMS}::test_the_emergency_stop_before_and_during_the_motion',
               'emergency_stop_required'),
        **each(f'{ALARMS}::test_the_publisher_of_a_required_emergency_stop_dies_in_mid_motion',
               'emergency_stop_timeout'),
        **each('test_alarm_topics.py::test_alarm_topics_read_the_states_of_a_driver',
               'emergency_stop_type', 'emergency_stop_field', 'emergency_stop_released'),
        **each(f'{ALARMS}::test_a_hot_joint_is_given_time_to_brake', 'temperature_limit'),
        **each(f'{ALARMS}::test_a_thermometer_that_falls_silent', 'temperature_timeout'),
    },
    'simulated_robot': {
        **each('test_simulated_robot.py::'
               'test_bad_parameters_end_the_node_with_a_message', 'robot'),
        **each('test_motor_states.py::test_motor_states_stand_beside_joint_states', 'simulation'),
        **each(f'{SIMULATED}::'
               'test_controller_name_joint_order_state_rate_and_real_time_factor',
               'controller_name', 'joint_order', 'state_rate', 'real_time_factor',
               'start_position'),
        **each(f'{SIMULATED}::test_setpoints_of_a_topic_take_the_place_of_the_controller',
               'setpoints'),
        **each(f'{SIMULATED}::test_the_seed_decides_the_noise_of_the_simulated_robot', 'seed'),
        **each(f'{SIMULATED}::test_position_step', 'position_step'),
        **each(f'{SIMULATED}::test_sensors_are_as_good_as_asked',
               'position_noise', 'velocity_noise', 'effort_noise'),
        **each(f'{SIMULATED}::test_path_tolerance', 'path_tolerance'),
        **each(f'{SIMULATED}::test_goal_tolerance_and_goal_time', 'goal_tolerance', 'goal_time'),
        **each(f'{SIMULATED}::test_stopped_velocity_tolerance', 'stopped_velocity_tolerance'),
        **each('test_excitation_node.py::'
               'test_a_trajectory_the_controller_rejects_ends_the_goal', 'fault'),
        **each('test_scaled_motion.py::'
               'test_the_motion_follows_the_slider_and_a_pause_at_the_pendant', 'speed_scaling'),
    },
}
NODES: dict[str, Callable[[], Any]] = {
    'identifier': Identifier, 'excitation': ExcitationNode, 'simulated_robot': SimulatedRobot}
LINES = [(node, name, test) for node, tests in TESTS.items() for name, test in tests.items()]


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize('name', NODES)
def test_every_node_says_in_one_line_when_it_is_ready(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with made(NODES[name], robot='planar_3r'):
        lines = [line for line in capfd.readouterr().err.splitlines() if 'ready: ' in line]
    (line,) = lines
    assert f'[{name}]: ready: ' in line
    for words in ('planar_3r (joint_1, joint_2, joint_3)', '/joint_states', 'waits for '):
        assert words in line


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize('name', NODES)
def test_every_parameter_a_node_declares_has_its_test(name: str) -> None:
    with made(NODES[name], robot='planar_3r') as node:
        bare = rclpy.create_node('bare')
        declared = set(node.get_parameters_by_prefix('')) - set(bare.get_parameters_by_prefix(''))
        destroy(bare)
    untested, unknown = declared - set(TESTS[name]), set(TESTS[name]) - declared
    assert not untested, f'{name}: no test sees an effect of {", ".join(sorted(untested))}'
    assert not unknown, f'{name} does not declare {", ".join(sorted(unknown))}'


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize('name', NODES)
def test_every_node_refuses_what_it_does_not_have(name: str) -> None:
    with pytest.raises(UsageError, match=rf"/{name} has no parameter 'robto' .*known: robot\)"), \
            made(NODES[name], robot='planar_3r', robto='ur10e'):
        pass


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize('name', NODES)
def test_every_node_refuses_a_parameter_file_of_another(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / 'dumped.yaml'
    file.write_text(f'/cell/{name}: {{ros__parameters: {{robot: planar_3r}}}}')
    monkeypatch.setattr('sys.argv', ['node', '--ros-args', '--params-file', str(file)])
    with pytest.raises(UsageError, match=rf"does not apply '/cell/{name}' to the node /{name};"), \
            made(NODES[name], robot='planar_3r'):
        pass


@pytest.mark.parametrize('name', NODES)
def test_parameter_files_hold_for_any_name_and_namespace(name: str) -> None:
    content = yaml.safe_load((
        TEST_FOLDER.parent / 'robot_dynid' / 'config' / f'{name}.yaml').read_text('utf-8'))
    assert list(content) == ['/**'] and list(content['/**']) == ['ros__parameters']
    assert set(content['/**']['ros__parameters']) <= set(TESTS[name])


@pytest.mark.parametrize(('node', 'parameter', 'test'), LINES)
def test_the_test_of_a_parameter_is_there_and_speaks_of_it(
    node: str, parameter: str, test: str
) -> None:
    file, _, function = test.partition('::')
    text = next(TEST_FOLDER.rglob(file)).read_text(encoding='utf-8')
    found = [entry for entry in ast.parse(text).body
             if isinstance(entry, ast.FunctionDef) and entry.name == function]
    assert len(found) == 1, f'{test}: no such test'
    begin = min([found[0].lineno, *(d.lineno for d in found[0].decorator_list)])
    source = '\n'.join(text.splitlines()[begin - 1:found[0].end_lineno])
    assert re.search(rf'\b{parameter}\b', source), f'{test} does not speak of {parameter}'
