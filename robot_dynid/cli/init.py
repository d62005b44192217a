"""`robot-dynid init`: from a URDF to a robot YAML and a recipe, by what only the user knows."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.doctor import show_diagnoses
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.setting_up.description import Arm, Question

HELP = 'write a robot YAML and a recipe from a URDF, asking for what a URDF cannot say'
EXAMPLES = (
    'robot-dynid init my_arm.urdf',
    'robot-dynid init my_arm.urdf --answers answers.yaml --data run.csv --out my_arm.yaml',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = ('Examples: `robot-dynid init my_arm.urdf` asks; `robot-dynid init '
                     'my_arm.urdf --questions` prints a file of answers to fill in, `--answers '
                     'FILE` takes it; `--data run.csv` checks the answers against a first '
                     'recording.')
    parser.add_argument('urdf', metavar='URDF', help='URDF or xacro file of the arm')
    parser.add_argument('--out', metavar='ROBOT.yaml',
                        help='robot YAML to write (default: named as the URDF, in this folder); '
                             'beside it comes ROBOT.recipe.yaml')
    parser.add_argument('--answers', metavar='FILE', help='YAML file with answers by key')
    parser.add_argument('--questions', action='store_true',
                        help='print the questions as a file of answers, and write nothing')
    parser.add_argument('--data', metavar='RUN', action='append', default=[],
                        help='first recording that the answers are checked against (may be given '
                             'several times)')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Ask or list, write, and check."""
    from robot_dynid.setting_up.description import questions, read_arm

    arm = read_arm(arguments.urdf)
    answers = {} if arguments.answers is None else _read(arguments.answers)
    if arguments.questions:
        return {'ok': True, 'questions': [one.plain() for one in questions(arm, answers)]}
    if arguments.answers is None and sys.stdin.isatty():
        answers = asked(arm, terminal)
    return written(arm, answers, arguments)


def _read(path: str) -> dict[str, Any]:
    from robot_dynid.files import read_text
    from robot_dynid.yaml_text import load_yaml

    found = load_yaml(read_text(path), path, UsageError) or {}
    if not isinstance(found, dict):
        raise UsageError(f'{path}: expected a mapping of questions to answers')
    return {key: value for key, value in found.items() if value is not None}


def asked(arm: Arm, terminal: Terminal) -> dict[str, Any]:
    """Return the answers of the user to all questions, an empty one being what is suggested."""
    from robot_dynid.setting_up.description import completed, questions

    answers: dict[str, Any] = {}
    while True:
        waiting = [one for one in questions(arm, answers) if one.key not in answers]
        if not waiting:
            return completed(arm, answers)
        answers[waiting[0].key] = _answer(waiting[0], terminal)


def _answer(question: Question, terminal: Terminal) -> Any:
    """Return the answer to one question; asks again where it is none."""
    from robot_dynid.yaml_text import load_yaml

    terminal.note(f'\n{question.text}', None)
    terminal.note(f'  ({question.why})')
    if question.choices:
        terminal.note(f'  one of: {", ".join(question.choices)}')
    known = '' if question.suggestion is None else f' [{question.suggestion}]'
    while True:
        terminal.note(f'{question.key}{known}: ', None)
        text = sys.stdin.readline()
        if not text:
            raise UsageError('the answers ended; give the others in a file (--answers)')
        try:
            value = load_yaml(text, question.key, UsageError)
        except UsageError as error:
            terminal.note(str(error), 'yellow')
            continue
        value = question.suggestion if value is None else value
        if value is None or (question.choices and value not in question.choices):
            terminal.note('this must be answered' if value is None else
                          f'{value} is none of {", ".join(question.choices)}', 'yellow')
            continue
        return value


def written(arm: Arm, answers: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Write robot YAML and recipe, and check them against recordings."""
    from robot_dynid.files import atomic_write, check_target
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid.setting_up.description import (
        MARK,
        completed,
        mesh_diagnoses,
        recipe_yaml,
        robot_yaml,
    )
    from robot_dynid.setting_up.diagnosis import ERROR
    from robot_dynid.setting_up.first_recording import gains_of_size, recording_diagnoses

    whole = completed(arm, answers)
    out = Path(arguments.out or f'{arm.path.name.split(".")[0]}.yaml')
    if out.suffix not in ('.yaml', '.yml'):
        raise UsageError(f'--out {out}: a robot YAML ends with .yaml')
    recipe = out.with_name(f'{out.stem}.recipe.yaml')
    for path in (out, recipe):
        check_target(path, MARK.encode())
    urdf = os.path.relpath(arm.path.absolute(), out.absolute().parent)
    atomic_write(out, robot_yaml(arm, whole, urdf).encode(), MARK.encode())
    atomic_write(recipe, recipe_yaml(whole).encode(), MARK.encode())
    robot = load_robot(out)
    if arguments.data and whole.get('drive_gains') == 'unknown':
        gains = gains_of_size(robot, arguments.data)
        if gains is not None:
            atomic_write(out, robot_yaml(arm, whole, urdf, gains).encode(), MARK.encode())
            robot = load_robot(out)
    found = [*mesh_diagnoses(arm), *recording_diagnoses(robot, arguments.data)]
    return {'ok': not any(one.level is ERROR for one in found), 'robot': str(out),
            'recipe': str(recipe), 'joints': list(robot.joints), 'answers': whole,
            'warnings': list(robot.warnings), 'diagnoses': [one.plain() for one in found],
            'next': _next(out, recipe, whole)}


def _next(out: Path, recipe: Path, answers: dict[str, Any]) -> list[str]:
    """Return the commands that come next."""
    return [f'robot-dynid base {out}',
            f'robot-dynid doctor --robot {out} --topic {answers["topic"]} '
            f'--controller {answers["controller"]}',
            f'robot-dynid design {out} --scale 0.5 --out first.trajectory.yaml',
            f'ros2 launch robot_dynid excite.launch.py robot:={out} '
            f'controller:={answers["controller"]} joint_states:={answers["topic"]}',
            f'robot-dynid identify BAG --robot {out} --recipe {recipe} --out model.yaml']


def show(result: dict[str, Any], terminal: Terminal) -> None:
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
