"""cli/main.py: parsers of some verbs, errors that end a command, and values as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid import __version__
from robot_dynid.cli import base
from robot_dynid.cli.completion import verbs_of
from robot_dynid.cli.main import as_json, main, parser, plain
from robot_dynid.cli.verbs import VERBS
from robot_dynid.errors import DataError, ModelError, RobotError, UsageError

Capture = pytest.CaptureFixture[str]


def options(verb: str, *words: str) -> set[str]:
    return {option for action in verbs_of(parser(words or None))[verb]._actions
            for option in action.option_strings}


def test_arguments_are_declared_of_the_verbs_that_are_asked_for() -> None:
    assert list(verbs_of(parser(['base', 'x']))) == ['base']
    assert '--method' in options('base', 'base', 'x')
    every = verbs_of(parser(['nonsense']))
    assert {'base', 'validate', 'export'} <= set(every)
    common = {'-h', '--help', '--json', '--quiet', '--verbose'}
    assert options('base', 'nonsense') == common
    assert options('validate', '--help', 'validate') > common
    assert '--forward' in options('validate') and '--method' in options('base')
    given = parser(['base']).parse_args(['base', 'r', '--json', '--quiet', '--verbose'])
    assert (given.json, given.quiet, given.verbose, given.version) == (True, True, True, False)
    given = parser(['base']).parse_args(['base', 'r'])
    assert (given.json, given.quiet, given.verbose) == (False, False, False)


def test_help_ends_with_examples_below_what_a_verb_adds() -> None:
    [excite] = verbs_of(parser(['excite'])).values()
    assert str(excite.epilog).startswith('Start the node')
    assert str(excite.epilog).endswith(
        '\n\nexamples:\n  ' + '\n  '.join(VERBS['excite'].EXAMPLES))
    [own] = verbs_of(parser(['base'])).values()
    assert str(own.epilog).startswith('examples:\n  robot-dynid base ur10e')


def test_the_version_is_printed_and_needs_no_verb(capsys: Capture) -> None:
    assert main(['--version']) == 0
    assert capsys.readouterr().out == f'robot-dynid {__version__}\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, 'argv', ['robot-dynid', '--version'])
        assert main() == 0
    assert main(['base']) == 2
    assert 'see robot-dynid base --help' in capsys.readouterr().err


def run_with(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, error: BaseException | None, *words: str,
    **result: Any,
) -> tuple[int, str, str]:
    """Return exit code, output and errors of a verb that raises, or returns a result."""
    def run(*_: object) -> dict[str, Any]:
        if error is not None:
            raise error
        return result

    monkeypatch.setattr(base, 'run', run)
    monkeypatch.setattr(base, 'show', lambda result, terminal: terminal.line(
        f'{terminal.verbose} {result}'))
    capsys.readouterr()
    code = main(['base', 'planar_3r', *words])
    return (code, *capsys.readouterr())


@pytest.mark.parametrize(('error', 'code', 'text'), [
    (UsageError('two\n  lines'), 2, 'two lines'), (ModelError('no'), 1, 'no'),
    (RobotError(''), 1, 'RobotError'),
    (PermissionError(13, 'not allowed', 'a.csv'), 1, 'a.csv: not allowed'),
    (OSError('no file named'), 1, 'no file named'), (ImportError('kernels'), 1, 'kernels'),
    (ModuleNotFoundError("No module named 'yaml'", name='yaml.nodes'), 1,
     'the Python library yaml is not installed: pip install PyYAML'),
    (ZeroDivisionError('by zero'), 1, 'unexpected ZeroDivisionError: by zero; this is a fault of '
     'robot_dynid: report it with the command and its input'),
    (KeyboardInterrupt(), 130, 'interrupted')])
def test_errors_end_a_command_with_a_code_and_a_line(
    error: BaseException, code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv('ROBOT_DYNID_TRACEBACK', raising=False)
    assert run_with(monkeypatch, capsys, error) == (code, '', f'robot-dynid: {text}\n')
    if code == 130:
        return
    ended, out, err = run_with(monkeypatch, capsys, error, '--json')
    assert (ended, err) == (code, f'robot-dynid: {text}\n')
    found = json.loads(out)
    assert found['error'] == text and set(found) == {'error', 'kind'}


@pytest.mark.parametrize('asked', [True, False])
def test_tracebacks_are_those_of_causes_where_they_are_asked_for(
    asked: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv('ROBOT_DYNID_TRACEBACK', '1' if asked else '')
    caused = ModelError('outer')
    caused.__cause__ = KeyError('inner')
    for error, told in ((caused, "KeyError: 'inner'"),
                        (ZeroDivisionError('by zero'), 'ZeroDivisionError: by zero')):
        _, _, err = run_with(monkeypatch, capsys, error)
        lines = err.splitlines()
        assert (told in lines) is asked and (len(lines) > 1) is asked
    _, _, err = run_with(monkeypatch, capsys, ModelError('alone'))
    assert err == 'robot-dynid: alone\n'


def test_refused_recordings_have_a_verdict_and_other_data_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr('robot_dynid.validation.verdict.refused_recordings',
                        lambda findings: SimpleNamespace(plain=lambda: list(findings)))
    _, out, _ = run_with(monkeypatch, capsys, DataError('bad', ('degrees',)), '--json')
    assert json.loads(out) == {'error': 'bad', 'kind': 'DataError', 'verdict': ['degrees']}
    _, out, _ = run_with(monkeypatch, capsys, DataError('bad'), '--json')
    assert json.loads(out) == {'error': 'bad', 'kind': 'DataError'}


def test_a_result_is_printed_and_its_ok_decides_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert run_with(monkeypatch, capsys, None, value=1) == (0, "False {'value': 1}\n", '')
    assert run_with(monkeypatch, capsys, None, '--verbose', ok=True)[:2] == (
        0, "True {'ok': True}\n")
    assert run_with(monkeypatch, capsys, None, ok=False)[0] == 1
    assert run_with(monkeypatch, capsys, None, '--json', ok=False)[:2] == (1, '{"ok": false}\n')


def test_a_closed_pipe_ends_a_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    moved: list[tuple[int, int]] = []

    def run(*_: object) -> dict[str, Any]:
        raise BrokenPipeError

    monkeypatch.setattr(base, 'run', run)
    with open(tmp_path / 'out', 'w', encoding='utf-8') as out:
        monkeypatch.setattr(sys, 'stdout', out)
        monkeypatch.setattr(os, 'dup2', lambda old, new: moved.append((old, new)))
        assert main(['base', 'planar_3r']) == 1
        assert [new for _, new in moved] == [out.fileno()]
    os.close(moved[0][0])
    assert capsys.readouterr().err == ''


def test_values_are_of_types_that_json_has() -> None:
    value = {1: (np.float64(0.5), np.int64(3)), 'set': frozenset({'a'}), 'path': Path('x'),
             'array': np.array([[1.0, np.nan], [np.inf, -2.5]]), 'yes': True, 'no': None,
             'whole': 7, 'byte': '\udcff', 'bool': np.bool_(False)}
    assert plain(value) == {
        '1': [0.5, 3], 'set': ['a'], 'path': 'x', 'array': [[1.0, None], [None, -2.5]],
        'yes': True, 'no': None, 'whole': 7, 'byte': '\\udcff', 'bool': False}
    assert plain(float('-inf')) is None and plain(-2.5) == -2.5


@pytest.mark.parametrize(('text', 'shown'), [
    ('N·m ä', '"N·m ä"'), ('\x1b[2J', r'"\u001b[2J"'), ('a\x7fb', r'"a\u007fb"'),
    ('\x80', r'"\u0080"'), ('\u202eä', r'"\u202eä"'), ('\U000e0001', r'"\udb40\udc01"')])
def test_json_holds_nothing_that_a_terminal_obeys(text: str, shown: str) -> None:
    assert as_json(text) == shown
    assert json.loads(shown) == text
