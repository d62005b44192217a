"""robot_dynid_extras/session/verb.py: what a session asks for, who agrees, and what is told."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from robot_dynid.cli.main import main
from robot_dynid.cli.terminal import Terminal
from robot_dynid_extras.session import verb

RESULT: dict[str, Any] = {
    'ok': True, 'ended': 'met', 'message': 'the accuracy is met', 'largest_deviation': 0.08,
    'out_of_reach': [], 'recordings': ['rec/1', 'rec/2'], 'swings': [
        {'shown': '', 'duration': 12.5, 'expected': 0.3, 'code': 'DONE'},
        {'shown': '', 'duration': 20.0, 'expected': 0.09, 'code': 'ABORTED'}]}


@dataclass
class Asked:
    """A session as it is asked for."""

    options: dict[str, Any]
    longest: float
    recordings: tuple[str, ...]


def run_command(
    monkeypatch: pytest.MonkeyPatch, *options: str, answers: str | None = None, **result: Any
) -> tuple[int, list[Any]]:
    """Run a session of a node that is not there; return the code, and what was asked for."""
    client, asked = ModuleType('client'), list[Any]()

    def run_session(node: str, session: Asked, operator: Any, timeout: float) -> dict[str, Any]:
        asked.extend((node, session, timeout, operator.agrees(SHOWN)))
        return {**RESULT, **result}

    vars(client).update(Session=Asked, run_session=run_session, Operator=lambda agrees, progress:
                        SimpleNamespace(agrees=agrees, progress=progress))
    monkeypatch.setitem(sys.modules, 'robot_dynid_extras.session.client', client)
    terminal = io.StringIO(answers)
    monkeypatch.setattr(terminal, 'isatty', lambda: answers is not None)
    monkeypatch.setattr(sys, 'stdin', terminal)
    return main(['session', *options]), asked


SHOWN = SimpleNamespace(message='swing of joint_2', warnings=['it is near the table'],
                        total_duration=12.6)


def test_a_session_is_asked_for_as_its_options_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, asked = run_command(
        monkeypatch, '--accuracy', '0.2', '--longest', '90', '--swings', '3', '--data', 'a', 'b',
        '--options', '{seed: 4}', '--node', 'exciter', '--namespace', 'arm',
        '--timeout', '7', '--yes', '--json')
    assert code == 0
    assert asked == ['/arm/exciter', Asked(
        {'accuracy': 0.2, 'swings': 3, 'seed': 4}, 90.0, ('a', 'b')), 7.0, True]
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told['accuracy'] == 0.2 and told['node'] == '/arm/exciter'
    assert told['largest_deviation'] == 0.08 and 'near the table' in printed.err
    _, asked = run_command(monkeypatch, '--yes')
    assert asked[1] == Asked({'accuracy': 0.1, 'swings': 1}, 3600.0, ())


@pytest.mark.parametrize('name', ['procedure', 'longest', 'data'])
def test_what_a_session_sets_itself_is_no_option(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(monkeypatch, '--yes', '--options', f'{{{name}: 1}}') == (2, [])
    assert f"option '{name}' is not one of --options" in capsys.readouterr().err


@pytest.mark.parametrize(('answers', 'agreed'), [
    ('y\n', True), (' YES \n', True), ('n\n', False), ('\n', False), ('yeah\n', False),
    ('', False)])
def test_a_motion_needs_a_yes(
    answers: str, agreed: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The end of the input, too, is none."""
    code, asked = run_command(monkeypatch, answers=answers)
    assert code == 0 and asked[-1] is agreed
    told = capsys.readouterr().err
    assert 'swing of joint_2' in told and '! it is near the table' in told
    assert 'the robot moves for 13 s' in ' '.join(told.split())


def test_without_a_terminal_somebody_has_to_agree_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(monkeypatch) == (2, [])
    assert 'agree to all of them with --yes' in ' '.join(capsys.readouterr().err.split())
    code, asked = run_command(monkeypatch, '--yes')
    assert code == 0 and asked[-1] is True
    assert 'the robot moves for' not in capsys.readouterr().err


def test_a_session_is_told_swing_by_swing(capsys: pytest.CaptureFixture[str]) -> None:
    result = {**RESULT, 'accuracy': 0.1, 'node': '/exciter', 'out_of_reach': ['Izz3', 'fv2']}
    verb.show(result, Terminal())
    told = capsys.readouterr()
    lines = [' '.join(line.split()) for line in (told.out + told.err).splitlines()]
    assert any(line.startswith('1 12.5 30.0 DONE') for line in lines)
    assert any(line.startswith('2 20 9.0 ABORTED') for line in lines)
    words = ' '.join(lines)
    assert 'met: the accuracy is met' in words and '8.0 % known, 10.0 % asked for' in words
    assert 'Izz3, fv2' in words and 'rec/1 rec/2' in words
    assert 'next: record a motion of all joints' in words
    assert 'robot-dynid excite --node /exciter --options "{purpose: validation}"' in words
    verb.show({**result, 'swings': [], 'out_of_reach': []}, Terminal())
    told = capsys.readouterr()
    words = told.out + told.err
    assert 'next: record' not in words and 'excite --node' not in words
