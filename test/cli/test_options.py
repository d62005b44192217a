"""cli/: every option of every verb has a test that shows its effect; keys of recipes: test_recipe.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from robot_dynid.cli.main import VERBS, parser

TESTS = Path(__file__).parents[1]

#: verb, options, and the test that gives them
OPTIONS = [
    ('base', '--method --rotor-inertia --friction --json',
     'test_cli.py::test_base_counts_and_names_parameters'),
    ('design', '--duration --harmonics --seed --starts --iterations --time-limit --scale --out '
     '--json',
     'test_cli.py::test_design_writes_a_trajectory_within_limits'),
    ('design', '--type --options', 'test_design_cli.py::test_every_type_is_designed_and_written'),
    ('design', '--periods', 'test_design_cli.py::test_periods_repeat_the_motion'),
    ('design', '--objective',
     'test_design_cli.py::test_design_objectives_are_best_in_the_measure_of_their_name'),
    ('design', '--accuracy',
     'test_design_cli.py::test_an_accuracy_out_of_reach_is_refused_with_the_time_it_takes'),
    ('design', '--model', 'test_design_cli.py::test_efforts_are_those_of_the_identified_model'),
    ('design', '--rate', 'test_design_cli.py::test_a_rate_that_leaves_the_limits_is_refused'),
    ('design', '--procedure',
     'test_design_cli.py::test_the_procedure_decides_the_stages_of_a_sine_sequence'),
    ('design', '--configurations',
     'test_design_cli.py::test_sweeps_go_through_as_many_configurations_as_asked_for'),
    ('design', '--adaptive --swings --data',
     'test_design_cli.py::test_an_adaptive_sequence_goes_on_from_what_was_measured'),
    ('design', '--longest',
     'test_design_cli.py::test_an_accuracy_that_no_swing_gives_in_time_is_refused'),
    ('design', '--report', 'test_design_cli.py::test_the_report_shows_the_plan'),
    ('identify', '--robot --method --out --report --json',
     'test_cli.py::test_identify_finds_the_truth'),
    ('identify', '--recipe', 'test_cli.py::test_identify_obeys_the_recipe'),
    ('identify', '--urdf', 'test_export_cli.py::test_identify_exports'),
    ('identify', '--accept-partial',
     'test_refusal.py::test_the_command_line_exits_with_one'),
    ('identify', '--robust --instrument-cutoff --procedure --prior --prior-weight --bounds '
     '--sweeps --generations --start', 'test_cli.py::test_settings_of_methods_are_options'),
    *((verb, '--quiet --verbose', 'test_progress.py::test_quiet_leaves_the_result')
      for verb in VERBS),
    ('completion', '--json', 'test_completion.py::test_code_for_each_shell'),
    *((verb, '--accept', 'test_verdict.py::test_the_command_line_refuses_and_accepts')
      for verb in ('identify', 'information', 'validate', 'compare', 'contact', 'payload',
                   'calibrate')),
    *((verb, '--accept-partial', 'test_verdict.py::test_exit_codes_of_refused_joints')
      for verb in ('forward', 'inverse', 'validate', 'contact')),
    ('export', '--accept-partial',
     'test_export_cli.py::test_a_refused_joint_is_written_only_where_it_is_accepted'),
    ('doctor', '--robot --json', 'test_environment.py::'
     'test_the_command_prints_and_exits_by_what_is_wrong'),
    ('doctor', '--seconds', 'test_doctor.py::test_a_robot_in_order_is_and_its_faults_are_not'),
    ('doctor', '--topic --controller',
     'test_environment.py::test_the_command_watches_what_it_is_told_to'),
    ('init', '--answers --out --data --json',
     'test_init.py::test_a_first_recording_says_what_to_change'),
    ('init', '--questions --answers --out --json',
     'test_init.py::test_questions_are_listed_as_a_file_of_answers'),
    ('compare', '--report --json',
     'test_comparison.py::test_the_command_compares_models_on_recordings'),
    ('validate', '--report --forward --json', 'test_cli.py::test_validate_scores_every_joint'),
    ('validate', '--plan', 'test_cli.py::test_validate_states_the_error_to_expect_on_a_plan'),
    ('validate', '--max-nrmse',
     'test_cli.py::test_validate_exits_with_one_above_the_largest_error_allowed'),
    ('validate', '--robot', 'test_cli.py::test_model_of_another_robot_is_refused'),
    ('forward', '--json', 'test_cli.py::test_forward_and_inverse_are_inverses'),
    ('forward', '--out', 'test_cli.py::test_forward_and_inverse_are_inverses'),
    ('forward', '--robot', 'test_cli.py::test_model_of_another_robot_is_refused'),
    ('inverse', '--out --json', 'test_cli.py::test_forward_and_inverse_are_inverses'),
    ('inverse', '--ripple',
     'test_torque_ripple.py::test_inverse_adds_torque_ripple_at_measured_positions_when_asked'),
    ('inverse', '--dt',
     'test_gear_effects_in_use.py::test_the_command_gives_the_motion_of_the_motors'),
    ('inverse', '--robot', 'test_cli.py::test_model_of_another_robot_is_refused'),
    ('export', '--urdf --out --json', 'test_export_cli.py::test_export_writes_the_urdf'),
    ('export', '--mjcf', 'test_export_cli.py::test_export_writes_mujocos_file'),
    ('export', '--samples', 'test_export_cli.py::test_export_writes_samples'),
    ('export', '--c', 'test_export_cli.py::test_export_writes_c_of_any_model'),
    ('export', '--sdf --inverse-dynamics-solver',
     'test_export_cli.py::test_export_writes_sdf_and_solver_parameters'),
    ('payload', '--unloaded --robot --json', 'test_payload_use.py::test_command_line'),
    ('payload', '--model --link',
     'test_payload_use.py::test_command_line_with_a_model_and_a_link'),
    ('payload', '--known-mass --known-com --equal-gains',
     'test_drive_gains.py::test_payload_command_calibrates_drive_gains'),
    ('payload', '--wrench --out',
     'test_wrist_sensor.py::test_payload_command_identifies_a_wrist_sensor'),
    ('export', '--wrist-sensor', 'test_wrist_code.py::test_the_function_agrees_with_python'),
    ('contact', '--gain --margin --report --json',
     'test_cli.py::test_thresholds_of_contacts_follow_margin_and_gain'),
    ('contact', '--gain --margin',
     'test_contact_options.py::test_gain_and_margin_reach_the_observer'),
    ('contact', '--robot', 'test_cli.py::test_model_of_another_robot_is_refused'),
    ('resonance', '--robot --joint --band --json',
     'test_resonance.py::test_the_command_prints_what_was_found_and_what_spoils_it'),
    *((verb, '--information', 'test_by_recording.py::test_from_the_command_line')
      for verb in ('identify', 'information')),
    *((verb, '--workers --scheduler', 'test_by_recording.py::test_wrong_words_are_named')
      for verb in ('identify', 'information')),
    ('information', '--robot --recipe --like --out --json',
     'test_recorded_information.py::test_from_the_command_line'),
    ('fleet', '--robot --recipe --rate --workers --scheduler --information --report --out '
              '--diagnostics --json', 'test_fleet.py::test_the_command_finds_a_changed_arm'),
    *((verb, '--columns --topic',
       'test_topics.py::test_every_verb_that_reads_recordings_takes_the_option')
      for verb in ('identify', 'validate', 'compare', 'payload', 'contact', 'information',
                   'design', 'resonance', 'fleet', 'calibrate')),
    ('calibrate', '--robot --out --json',
     'test_calibration.py::test_the_command_writes_the_model_and_prints_the_changes'),
    ('topics', '--robot --json', 'test_topics.py::test_topics_are_listed_with_what_can_be_read'),
    ('repair', '--json', 'test_repair.py::test_command_prints_what_was_done'),
    ('check', '--node --timeout --json', 'test_check.py::test_a_robot_in_order_is_ready'),
    *((verb, '--node --namespace', 'test_excite_cli.py::test_a_node_is_named_with_its_namespace')
      for verb in ('check', 'excite', 'stop', 'session')),
    ('excite', '--robot --dry-run --timeout --json',
     'test_excite_command.py::test_a_plan_is_shown_and_then_executed_as_it_was_shown'),
    ('excite', '--type --options --scale',
     'test_excite_cli.py::test_a_goal_names_a_plan_or_asks_for_a_design'),
    ('stop', '--json', 'test_excite_command.py::test_stop_ends_what_another_client_began'),
    ('stop', '--timeout', 'test_excite_command.py::test_a_node_that_is_not_there_is_named'),
    ('session', '--yes --accuracy --swings --longest --options --data --node --timeout --json',
     'test_session.py::test_a_session_ends_with_parameters_as_accurate_as_asked_for'),
    ('demo', '--robot --excitation --out --json',
     'test_demo_command.py::test_demo_one_joint_at_a_time'),
    ('demo', '--seed', 'test_demo.py::test_seed_and_robot_reach_the_nodes'),
    ('bench', '--list --json', 'test_cli.py::test_benches_are_listed'),
    ('bench', '--events --repeat --load --face',
     'test_stops_bench.py::test_wrong_options_are_named'),
    ('bench', '--sizes --out',
     'test_many_bench.py::test_the_many_benchmark_runs_its_sizes_and_writes_its_page'),
    ('bench', '--data --robot --again',
     'test_residual_bench.py::test_bench_refuses_missing_data_and_unknown_options_by_name'),
    ('reproduce', '--strict',
     'test_reproduce.py::test_known_differences_fail_only_when_strict'),
    ('reproduce', '--list', 'test_reproduce.py::test_names_are_listed'),
    ('reproduce', '--json', 'test_reproduce.py::test_stanford_arm'),
]


@cache
def definitions(name: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file of tests."""
    tree = ast.parse(next(TESTS.rglob(name)).read_text('utf-8'))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def used(test: str) -> Iterator[ast.FunctionDef]:
    """Yield a test, and the functions and fixtures of its file that it uses."""
    file, _, name = test.partition('::')
    known = definitions(file)
    assert name in known and name.startswith('test_'), f'there is no test {test}'
    found, new = set(), {name}
    while new:
        found |= new
        new = {word for function in new for node in ast.walk(known[function])
               for word in ([node.id] if isinstance(node, ast.Name) else
                            [node.arg] if isinstance(node, ast.arg) else [])
               if word in known} - found
    yield from (known[function] for function in found)


def words(test: str) -> set[str]:
    """Return the words of the texts in a test and in what it uses; it must assert something."""
    nodes = [node for function in used(test) for node in ast.walk(function)]
    assert any(isinstance(node, ast.Assert) for node in nodes), f'{test} asserts nothing'
    texts = [node.value for node in nodes
             if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {word for text in texts for word in text.replace('=', ' ').split()}


def test_no_option_is_without_a_test() -> None:
    [verbs] = [action for action in parser()._actions
               if isinstance(action, argparse._SubParsersAction)]
    there = {(verb, action.option_strings[-1]) for verb, sub in verbs.choices.items()
             for action in sub._actions if action.option_strings} - {
                 (verb, '--help') for verb in VERBS}  # test_every_verb_explains_itself
    tested = {(verb, option) for verb, options, _ in OPTIONS for option in options.split()}
    assert there - tested == set(), 'options without a test'
    assert tested - there == set(), 'no such options'


@pytest.mark.parametrize(('verb', 'options', 'test'), OPTIONS)
def test_the_test_of_an_option_gives_it(verb: str, options: str, test: str) -> None:
    assert {verb, *options.split()} - words(test) == set()
