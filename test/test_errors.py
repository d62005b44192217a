"""Nothing outside the family of DynIdError leaves the package: in Python, commands and worker."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robot_dynid
from robot_dynid.cli import base
from robot_dynid.cli.main import TRACEBACK, main
from robot_dynid.errors import (
    MESSAGE,
    DynIdError,
    MissingDependency,
    UnexpectedError,
    UsageError,
    clipped,
    printable,
    reported,
)
from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.identification import Code, Job, run
from robot_dynid.signals.parts import Parts
from robot_dynid.types import RawLog

FAULTS = [RecursionError('too deep'), MemoryError(), np.linalg.LinAlgError('singular'),
          OverflowError('large'), UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'bad'), KeyError('a'),
          AttributeError('b'), ZeroDivisionError('c'), AssertionError('d'), TypeError('e')]
#: functions that read or work on what users give
PUBLIC = ('design', 'contact_events', 'identify', 'identify_payload', 'load_log', 'load_robot',
          'load_trajectory', 'parse_request', 'read_recipe', 'save_trajectory', 'validate')


def failing(error: Exception) -> Callable[..., Any]:
    """Return a function that raises an error."""
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize('error', FAULTS, ids=lambda error: type(error).__name__)
def test_functions_raise_the_family_alone(error: Exception) -> None:
    with pytest.raises(UnexpectedError) as raised:
        reported(failing(error))()
    assert raised.value.__cause__ is error
    said = str(raised.value)
    assert ('memory' in said) if isinstance(error, MemoryError) else (
        f'unexpected {type(error).__name__}' in said and 'report it with the command' in said)


def test_the_family_and_interrupts_pass() -> None:
    with pytest.raises(UsageError, match=r'^mine$'):
        reported(failing(UsageError('mine')))()
    with pytest.raises(KeyboardInterrupt):
        reported(failing(KeyboardInterrupt()))()  # type: ignore[arg-type]
    assert reported(len)([1, 2]) == 2


@pytest.mark.parametrize(('count', 'length', 'ends'), [
    (80, (), None), (81, (), 37), (21, (21,), None), (22, (21,), 8), (22, (20,), 7)])
def test_long_texts_lose_their_middle(
    count: int, length: tuple[int, ...], ends: int | None
) -> None:
    text = ''.join(chr(40 + k) for k in range(count))
    assert clipped(text, *length) == (
        text if ends is None else f'{text[:ends]} ... {text[-ends:]}')


def test_what_a_terminal_might_obey_or_hide_is_written_out() -> None:
    assert printable('a\x1b[0m\tb\u202e\nc\r') == 'a\\x1b[0m\tb\\u202e\nc\\r'


def test_messages_have_at_most_four_thousand_characters() -> None:
    assert str(DynIdError(4000 * 'x')) == 4000 * 'x'
    assert str(DynIdError(4001 * 'x')) == f'{1997 * "x"} ... {1997 * "x"}'


def test_messages_are_one_line() -> None:
    said = 'a  b.yaml: not valid:\n  character\x85 at 3\r\n'
    assert str(UsageError(said)) == 'a  b.yaml: not valid: character at 3'


@pytest.mark.parametrize('name', PUBLIC)
def test_public_functions_are_reported(name: str) -> None:
    function = getattr(robot_dynid, name)
    with pytest.raises(DynIdError):
        function(*[object()] * 3)  # nothing any of them can use


def test_models_are_reported(tmp_path: Path) -> None:
    for call in (lambda: IdentifiedModel.load(tmp_path, object()),  # type: ignore[arg-type]
                 lambda: IdentifiedModel.from_yaml(3),
                 lambda: IdentifiedModel.to_urdf(object(), '')):  # type: ignore[arg-type]
        with pytest.raises(DynIdError):
            call()


@pytest.mark.parametrize('error', FAULTS, ids=lambda error: type(error).__name__)
def test_commands_say_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(base, 'run', failing(error))
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert main(['base', 'planar_3r']) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and 'Traceback' not in said
    assert main(['base', 'planar_3r', '--json']) == 1
    assert json.loads(capsys.readouterr().out)['kind'] == 'UnexpectedError'
    monkeypatch.setenv(TRACEBACK, '1')
    assert main(['base', 'planar_3r']) == 1
    assert 'Traceback' in capsys.readouterr().err


def test_commands_show_faults_of_the_library_in_full_where_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(base, 'run', reported(failing(KeyError('deep inside'))))
    monkeypatch.setenv(TRACEBACK, '1')
    assert main(['base', 'planar_3r']) == 1
    assert "KeyError: 'deep inside'" in capsys.readouterr().err


def test_names_that_are_no_text_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (['base', '\udcff.urdf'],
                  ['base', '\udcff.urdf', '--json'], ['base', 'a\0b.yaml']):
        assert main(words) == 2
        capsys.readouterr().out.encode()


@pytest.mark.parametrize(('words', 'told'), [
    (['--rate', '1e9'], "option 'rate' must be at most"), (['--rate', 'nan'], "option 'rate'"),
    (['--rate', '1e400'], "option 'rate' must be a finite"),
    (['--options', '{harmonics: 1000000}'], "option 'harmonics' must be at most 100"),
    (['--harmonics', '1000000'], "option 'harmonics' must be at most 100"),
    (['--rate', '1e4', '--duration', '1e4'], 'more than 1000000 points'),
    (['--seed', '9' * 100], "option 'seed' must be at most"), (['--seed', '9' * 5000], 'seed'),
    (['--time-limit', 'nan'], "option 'time_limit'"), (['--accuracy=-inf'], "'accuracy'"),
    (['--options', '[' * 60_000], 'nested more than'),
    (['--options', '{segments: [' + '{type: fourier},' * 200 + ']}', '--type', 'composite'],
     'lists 200, more than 100'),
])
def test_numbers_on_the_command_line_have_ranges(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / 'T.yaml')
    assert main(['design', 'planar_3r', '--out', out, *words]) == 2
    said = capsys.readouterr().err
    assert told in said and len(said) < MESSAGE + 100


def test_the_worker_reports_faults() -> None:
    for error in FAULTS:
        job = Job(robot_dynid.load_robot('planar_3r'), ('nowhere.csv',))
        outcome = run(job, failing(error))
        assert outcome.code is Code.ABORTED
        assert 'memory' in outcome.message or 'unexpected' in outcome.message


@pytest.mark.parametrize(('call', 'told'), [
    (lambda robot: identify(robot, [], friction='coulomb'), [
        "unexpected keyword argument 'friction'", 'robot, logs, method, recipe',
        "recipe=Recipe(friction='coulomb')"]),
    (lambda robot: identify('planar_3r', ['run.csv']), [
        'a RobotModel', 'load_robot', "'planar_3r'"]),
    (lambda robot: identify(robot, ['run.csv']), ['a list of RawLog', 'load_log', "'run.csv'"]),
    (lambda robot: identify(robot, [], recipe={'friction': 'dahl'}), ['a Recipe', 'dahl']),
    (lambda robot: load_log('run.csv', 'planar_3r'), ['a RobotModel', "'planar_3r'"])])
def test_a_wrong_argument_is_named_with_what_is_right(call: Any, told: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        call(load_robot('planar_3r'))
    assert all(words in str(caught.value) for words in told), caught.value


def test_a_fault_with_right_arguments_stays_one() -> None:
    def broken(robot: RobotModel, logs: Sequence[RawLog]) -> None:
        raise AttributeError('deep inside')

    robot = load_robot('planar_3r')
    log = RawLog('run.csv', robot.joints, np.arange(2.0), np.zeros((2, 3)))
    with pytest.raises(UnexpectedError, match='deep inside'):
        reported(broken)(robot, Parts((log,)))


@pytest.mark.parametrize(('module', 'told'), [
    ('mcap.writer', 'the Python library mcap is not installed: pip install mcap'),
    ('sklearn', 'the Python library sklearn is not installed: pip install scikit-learn')])
def test_a_missing_library_is_named_with_its_distribution(module: str, told: str) -> None:
    error = UnexpectedError.of(ModuleNotFoundError(f'No module named {module!r}', name=module))
    assert isinstance(error, MissingDependency) and str(error) == told


def test_a_missing_module_of_the_package_is_a_fault() -> None:
    error = UnexpectedError.of(ModuleNotFoundError('x', name='robot_dynid.nowhere'))
    assert isinstance(error, UnexpectedError) and 'fault of robot_dynid' in str(error)


def test_a_bag_is_not_begun_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'mcap.writer', None)
    with pytest.raises(MissingDependency, match='pip install mcap'):
        BagWriter(tmp_path / 'bag')
    assert not (tmp_path / 'bag').exists()
