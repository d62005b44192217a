"""`robot-dynid doctor` and `init`: installation, description of a robot, running robot.

`init` checks its answers against a recording as `doctor` checks a running robot.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.verbs import Command
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.setting_up.description import Arm, Question
    from robot_dynid.setting_up.diagnosis import Diagnosis

HELP = 'check the installation and, with --robot, the topics of a running robot'
EXAMPLES = (
    'robot-dynid doctor',
    'robot-dynid doctor --robot ur10e --seconds 10',
)
TOPIC, CONTROLLER, SECONDS_WATCHED = 'joint_states', 'joint_trajectory_controller', 3.0
#: styles of the levels of diagnoses
STYLES = {'ok': 'green', 'warning': 'yellow', 'error': 'red'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('--robot', metavar='ROBOT',
                        help='name, URDF file or robot YAML of a robot whose driver runs')
    parser.add_argument('--topic', default=TOPIC, metavar='NAME',
                        help=f'topic of the joint states (default {TOPIC})')
    parser.add_argument('--controller', default=CONTROLLER, metavar='NAME',
                        help=f'controller that moves the robot (default {CONTROLLER})')
    parser.add_argument('--seconds', type=float, default=SECONDS_WATCHED, metavar='S',
                        help=f'time to watch the topics [s] (default {SECONDS_WATCHED:g})')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Look at everything, in the order in which faults hide others."""
    from robot_dynid.numbers import NumberRange
    from robot_dynid.setting_up.diagnosis import ERROR, verdict

    NumberRange(0.5, 600.0, 's').read(arguments.seconds, "option 'seconds'")
    robot = None
    if arguments.robot is not None:
        from robot_dynid.robot.robot_file import load_robot

        robot = load_robot(arguments.robot)
    items = environment(needs_ros=robot is not None)
    if robot is not None and not any(one.level is ERROR and one.name in FIRST for one in items):
        items += live(robot, arguments)
    return {'ok': not any(one.level is ERROR for one in items), 'message': verdict(items),
            'diagnoses': [one.plain() for one in items]}


#: what must be right before a running robot can be looked at
FIRST = ('ros', 'dds', 'middleware', 'domain', 'discovery', 'profile', 'shared memory',
         'multicast', 'numpy', 'scipy', 'kernels')


def environment(needs_ros: bool) -> list[Diagnosis]:
    """Return the diagnoses of this installation."""
    from robot_dynid.setting_up import environment as own
    from robot_dynid.setting_up.diagnosis import OK
    from robot_dynid.setting_up.middleware import dds_diagnoses, surroundings

    ros = own.ros_diagnosis(os.environ, needs_ros)
    diagnoses = [*own.libraries(), own.kernels(), own.disk_diagnosis(Path('recordings')), ros]
    if ros.level is not OK:
        return diagnoses
    from robot_dynid.ros.doctor.talk import talk

    heard = talk()
    return [*diagnoses, *dds_diagnoses(os.environ, heard, surroundings())]


def live(robot: Any, arguments: argparse.Namespace) -> list[Diagnosis]:
    """Return the diagnoses of the running system of a robot."""
    from robot_dynid.ros.doctor.live_system import Watched, observed
    from robot_dynid.setting_up.live import live_diagnoses

    watched = Watched(arguments.topic, arguments.controller, arguments.seconds)
    return live_diagnoses(robot, observed(robot, watched))


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a summary, and what is to be done."""
    terminal.line(result['message'])
    show_diagnoses(result['diagnoses'], terminal)


def show_diagnoses(diagnoses: Sequence[Mapping[str, str]], terminal: Terminal) -> None:
    """Print diagnoses, a line each, and under it what to do; what is in order if verbose."""
    for one in diagnoses:
        if terminal.verbose or one['level'] != 'ok' or one['remedy']:
            terminal.line(f'{one["level"]:8} {one["name"]} ({one["where"]}): {one["what"]}',
                          STYLES[one['level']])
            if one['remedy']:
                terminal.line(f'{"":8} -> {one["remedy"]}')
    terminal.passed(sum(one['level'] == 'ok' for one in diagnoses if not one['remedy']))


def _add_init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('urdf', metavar='URDF', help='URDF or xacro file of the arm')
    parser.add_argument('--out', metavar='ROBOT.yaml',
                        help='robot YAML to write (default: named after the URDF); '
                             'ROBOT.recipe.yaml is written, too')
    parser.add_argument('--answers', metavar='FILE', help='answers as a YAML file')
    parser.add_argument('--questions', action='store_true',
                        help='print the questions as a file for --answers, and write nothing')
    parser.add_argument('--recording', '--data', dest='data', metavar='RUN', action='append',
                        default=[],
                        help='recording to check the answers against (repeatable); columns that '
                             'fit no preset are proposed in the robot YAML')


def run_init(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Ask or list, write, and check."""
    from robot_dynid.setting_up.description import questions, read_arm

    answers = {} if arguments.answers is None else _read(arguments.answers)
    arm = read_arm(arguments.urdf, str(answers.get('base_link', '')))
    if arguments.questions:
        return {'ok': True, 'questions': [one.plain() for one in questions(arm, answers)]}
    if arguments.answers is None and sys.stdin.isatty():
        answers = _asked(arm, terminal)
    return _written(arm, answers, arguments)


def _read(path: str) -> dict[str, Any]:
    from robot_dynid.files import read_text
    from robot_dynid.yaml_text import load_yaml

    answers = load_yaml(read_text(path), path, UsageError) or {}
    if not isinstance(answers, dict):
        raise UsageError(f'{path}: expected a mapping of questions to answers')
    return {key: value for key, value in answers.items() if value is not None}


def _asked(arm: Arm, terminal: Terminal) -> dict[str, Any]:
    """Return the answers of the user to all questions, an empty one being what is suggested."""
    from robot_dynid.setting_up.description import completed, questions

    answers: dict[str, Any] = {}
    while True:
        waiting = [one for one in questions(arm, answers) if one.key not in answers]
        if not waiting:
            return completed(arm, answers)
        answers[waiting[0].key] = ask(waiting[0], terminal)


def ask(question: Question, terminal: Terminal) -> Any:
    """Return the answer to one question; asks again where it is none.

    Raises UsageError where the input ends before.
    """
    from robot_dynid.yaml_text import load_yaml

    terminal.note(f'\n{question.text}', None)
    terminal.note(f'  ({question.why})')
    if question.choices:
        terminal.note(f'  one of: {", ".join(question.choices)}')
    default = '' if question.suggestion is None else f' [{question.suggestion}]'
    while True:
        terminal.note(f'{question.key}{default}: ', None)
        text = sys.stdin.readline()
        if not text:
            raise UsageError('input ended before all questions were answered: give the rest in a '
                             'file (--answers)')
        try:
            value = load_yaml(text, question.key, UsageError)
        except UsageError as error:
            terminal.note(str(error), 'yellow')
            continue
        value = question.suggestion if value is None else value
        if value is None or (question.choices and value not in question.choices):
            terminal.note('this must be answered' if value is None else
                          f"{value}: choose one of {', '.join(question.choices)}", 'yellow')
            continue
        return value


def _written(arm: Arm, answers: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Check the answers against description and recordings, and write robot YAML and recipe."""
    from robot_dynid.files import atomic_write, check_target
    from robot_dynid.robot.robot_file import robot_from_yaml
    from robot_dynid.setting_up.description import (
        MARK,
        completed,
        mesh_diagnoses,
        recipe_yaml,
        robot_yaml,
    )
    from robot_dynid.setting_up.diagnosis import ERROR
    from robot_dynid.setting_up.drivers import driver_named, effort_diagnoses
    from robot_dynid.setting_up.live import gains_of_size, recording_diagnoses

    whole = completed(arm, answers)
    out = Path(arguments.out or f'{arm.path.name.split(".")[0]}.yaml')
    if out.suffix not in ('.yaml', '.yml'):
        raise UsageError(f'--out {out}: a robot YAML ends with .yaml')
    recipe = out.with_name(f'{out.stem}.recipe.yaml')
    for path in (out, recipe):
        check_target(path, MARK.encode())
    urdf = os.path.relpath(arm.path.absolute(), out.absolute().parent)
    text = robot_yaml(arm, whole, urdf)
    columns = _columns(robot_from_yaml(out, text), arguments.data)
    text += columns
    robot = robot_from_yaml(out, text)
    if arguments.data and whole.get('drive_gains') == 'unknown':
        gains = gains_of_size(robot, arguments.data)
        if gains is not None:
            text = robot_yaml(arm, whole, urdf, gains) + columns
            robot = robot_from_yaml(out, text)
    diagnoses = [*mesh_diagnoses(arm),
                 *effort_diagnoses(driver_named(whole['driver']), whole['effort_kind']),
                 *recording_diagnoses(robot, arguments.data)]
    atomic_write(out, text.encode(), MARK.encode())
    atomic_write(recipe, recipe_yaml(whole).encode(), MARK.encode())
    return {'ok': not any(one.level is ERROR for one in diagnoses), 'robot': str(out),
            'recipe': str(recipe), 'joints': list(robot.joints), 'answers': whole,
            'warnings': list(robot.warnings), 'diagnoses': [one.plain() for one in diagnoses],
            'next': _next(out, recipe, whole, arguments.data)}


def _columns(robot: RobotModel, paths: Iterable[str]) -> str:
    """Return the key columns of a robot YAML, proposed for tables that no preset fits."""
    from robot_dynid.errors import DynIdError
    from robot_dynid.io.log import load_log
    from robot_dynid.io.tables.columns import NoPreset
    from robot_dynid.yaml_text import one_line

    for path in paths:
        try:
            load_log(path, robot)
        except NoPreset as error:
            return (f'# columns of tables, proposed from {Path(path).name}: correct any '
                    'errors; units other than s, rad and N m or A: {column: NAME, unit: deg}; '
                    f'docs/recordings.md\ncolumns: {one_line(error.proposal)}\n')
        except DynIdError:  # the check says so
            continue
    return ''


def _next(out: Path, recipe: Path, answers: dict[str, Any], data: Sequence[str]) -> list[str]:
    """Return the commands that come next: recordings that are there are identified first."""
    identify = (f'robot-dynid identify {shlex.join(data) or "BAG"} --robot {out} '
                f'--recipe {recipe} --out model.yaml')
    return [f'robot-dynid base {out}', *((identify,) if data else ()),
            f'robot-dynid doctor --robot {out} --topic {answers["topic"]} '
            f'--controller {answers["controller"]}',
            f'robot-dynid design {out} --scale 0.5 --out first.trajectory.yaml',
            f'ros2 launch robot_dynid excite.launch.py robot:={out} '
            f'controller:={answers["controller"]} joint_states:={answers["topic"]}',
            *(() if data else (identify,))]


def show_init(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the questions as a file of answers, or what was written and what comes next."""
    if 'questions' in result:
        _show_questions(result['questions'])
        return
    terminal.facts((('robot', result['robot']), ('recipe', result['recipe']),
                    ('joints', ', '.join(result['joints']))))
    show_diagnoses(result['diagnoses'], terminal)
    terminal.warnings(result['warnings'])
    terminal.line('next:')
    for command in result['next']:
        sys.stdout.write(f'  {command}\n')  # whole, so that it can be copied


def _show_questions(questions: list[dict[str, Any]]) -> None:
    """Print YAML that `--answers` takes, without line breaks inside of comments."""
    from robot_dynid.yaml_text import yaml_text

    for one in questions:
        choices = f' One of: {", ".join(one["choices"])}.' if one['choices'] else ''
        value = '' if one['suggestion'] is None else yaml_text(one['suggestion']).splitlines()[0]
        required = '    # MUST be answered' if one['required'] else ''
        sys.stdout.write(f'# {one["text"].rstrip("?.")}.{choices}\n#   {one["why"]}\n'
                         f'{one["key"]}: {value}{required}\n')


INIT = Command(
    'write a robot YAML and a recipe for a URDF, from a few answers', (
        'robot-dynid init my_arm.urdf', 'robot-dynid init my_arm.urdf --questions > answers.yaml',
        'robot-dynid init my_arm.urdf --answers answers.yaml --data run.csv --out my_arm.yaml'),
    _add_init_arguments, run_init, show_init)
