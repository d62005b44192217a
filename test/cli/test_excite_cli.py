"""cli/excite.py: the verbs of a running excitation node, as far as they need none."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from robot_dynid.cli import excite
from robot_dynid.cli.main import main
from robot_dynid.cli.terminal import Terminal
from robot_dynid.cli.verbs import VERBS
from robot_dynid.errors import UsageError


@pytest.mark.parametrize('verb', ['excite', 'stop', 'check', 'session'])
@pytest.mark.parametrize(('words', 'name'), [
    ((), '/excitation'),
    (('--namespace', 'cell_1'), '/cell_1/excitation'),
    (('--namespace', '/hall/cell_1/'), '/hall/cell_1/excitation'),
    (('--node', 'left/excitation'), '/left/excitation'),
    (('--node', '/left/excitation', '--namespace', 'cell_1'), '/left/excitation'),
])
def test_a_node_is_named_with_its_namespace(
    verb: str, words: tuple[str, ...], name: str
) -> None:
    parser = argparse.ArgumentParser()
    VERBS[verb].add_arguments(parser)
    assert excite.node_name(parser.parse_args(words)) == name


@pytest.mark.parametrize('verb', ['excite', 'stop', 'check'])
@pytest.mark.parametrize(('words', 'said'), [
    (('--node', 'a b'), '--node a b: not a ROS name'),
    (('--namespace', '1st'), '--namespace 1st: not a ROS name'),
    (('--timeout', 'nan'), "option 'timeout'"),
])
def test_wrong_names_are_named(
    verb: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(('ok', 'style'), [(True, 'green'), (False, 'red')])
def test_show_stop_colours_a_failure(
    ok: bool, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[str, str | None]] = []
    monkeypatch.setattr(Terminal, 'line', lambda self, text, style: lines.append((text, style)))
    excite.show_stop({'message': 'said', 'ok': ok, 'recording': ''}, Terminal())
    assert lines == [('said', style)]
    excite.show({'code': 'C', 'message': 'said', 'ok': ok, 'warnings': (), 'recording': '',
                 'total_duration': 0.0, 'plan': ''}, Terminal())
    assert lines[1:] == [('C: said', 'green' if ok else 'yellow')]


def test_the_recording_of_a_stopped_motion_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    excite.show_stop({'message': 'said', 'ok': True, 'recording': '/b/run'}, Terminal())
    assert capsys.readouterr().out.split() == ['said', 'recording', '/b/run']


def test_a_node_is_waited_for_twenty_seconds() -> None:
    parser = argparse.ArgumentParser()
    excite.add_node(parser)
    assert parser.parse_args([]).timeout == 20.0
    assert '(default 20)' in ' '.join(parser.format_help().split())


def request(*words: str, verb: str = 'excite') -> dict[str, str]:
    parser = argparse.ArgumentParser()
    VERBS[verb].add_arguments(parser)
    return excite.goal_fields(parser.parse_args(words))


def test_a_goal_names_a_plan_or_asks_for_a_design(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('T.yaml').touch()
    assert request('T.yaml') == {'trajectory': str(tmp_path / 'T.yaml')}
    assert request('dry-run-5a0e') == {'trajectory': 'dry-run-5a0e'}  # the node has it
    assert request() == {'type': '', 'options': ''}
    made = request('--type', 'static-poses', '--options', '{poses: 12}', '--scale', '0.5')
    assert made['type'] == 'static-poses'
    assert 'poses: 12' in made['options'] and 'scale: 0.5' in made['options']
    for words in (('--scale', '0.5'), ('--type', 'fourier'), ('--options', '{seed: 1}')):
        with pytest.raises(UsageError, match='a plan is executed unchanged: omit'):
            request('T.yaml', *words)
    with pytest.raises(UsageError, match='pozes'):
        request('--options', '{pozes: 1}')


def test_the_line_tells_segment_error_and_the_guards_nearest_to_their_limits() -> None:
    from robot_dynid.ros.excitation.remote import Seen

    guards = (('effort of a', 0.61), ('tracking error of b', 0.4), ('effort of c', 0.1))
    line = excite.line_of(Seen('excitation', 0.43, 7.0, 0.0123, guards))
    assert line == ('excitation 43%, error 0.0123, limits: effort of a 61%, '
                    'tracking error of b 40%, 7 s left')
    assert excite.line_of(Seen('design: start 1', 0.5, 0.0, 0.0)) == 'design: start 1'


@pytest.mark.parametrize('terminal', [False, True])
def test_excite_sends_the_goal_and_shows_where_the_robot_is(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody looks, a line per segment is left; Enter stops from a terminal alone."""
    from robot_dynid.ros.excitation import remote
    from robot_dynid.ros.excitation.remote import Seen

    asked: list[object] = []
    result = {'ok': True, 'code': 'SUCCESS', 'message': 'done', 'warnings': [], 'recording': '',
              'total_duration': 0.0, 'plan': ''}

    def run(name: str, goal: Any, line: Any, timeout: float, robot: str) -> dict[str, Any]:
        asked.extend((name, goal.type, goal.options, goal.dry_run, timeout, robot))
        for segment, share in (('move', 0.0), ('move', 0.5), ('excitation', 0.1), ('move', 0.9)):
            line(Seen(segment, share, 0.0, 0.0))
        return result

    notes: list[str] = []
    monkeypatch.setattr(Terminal, 'note', lambda self, text, style=None: notes.append(text))
    monkeypatch.setattr(remote, 'excite', run)
    monkeypatch.setattr(sys.stdin, 'isatty', lambda: terminal)
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: terminal)
    words = ['excite', '--type', 'fourier', '--namespace', 'cell', '--timeout', '7', '--dry-run']
    assert main([*words, '--robot', 'planar_3r', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {**result, 'node': '/cell/excitation', 'robot': 'planar_3r'}
    assert asked == ['/cell/excitation', 'fourier', '', True, 7.0, 'planar_3r']
    key = 'Enter' if terminal else 'Ctrl-C'
    assert notes == [f'/cell/excitation: {key} stops the robot', *(
        () if terminal else ('move', 'excitation', 'move'))]
    assert main(words) == 0
    assert asked[6:] == ['/cell/excitation', 'fourier', '', True, 7.0, '']


@pytest.mark.parametrize('verbose', [False, True])
def test_check_lists_what_is_not_in_order(
    verbose: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [{'level': level, 'name': f'name {k}', 'message': 'said'}
             for k, level in enumerate(('OK', 'WARN', 'OK', 'ERROR', 'OK'))]
    excite.show_check({'message': 'not ready', 'items': items}, Terminal(verbose=verbose))
    lines = [' '.join(line.split()) for line in capsys.readouterr().out.splitlines()]
    wrong = ['WARN name 1: said', 'ERROR name 3: said']
    assert lines == (['not ready', *wrong, '3 checks passed: --verbose'] if not verbose else [
        'not ready', 'OK name 0: said', wrong[0], 'OK name 2: said', wrong[1], 'OK name 4: said'])


def test_excite_show_prints_the_next_command_after_a_dry_run(
    capsys: pytest.CaptureFixture[str]
) -> None:
    result = {'ok': True, 'code': 'SUCCESS', 'message': 'dry run, nothing was sent',
              'warnings': ['no floor'], 'recording': '', 'total_duration': 12.0,
              'plan': 'dry-run-5a0e', 'node': '/cell_1/excitation'}
    excite.show(result, Terminal())
    said = capsys.readouterr().out
    assert 'SUCCESS: dry run' in said and '! no floor' in said and '12.0' in said
    assert 'robot-dynid excite dry-run-5a0e --node /cell_1/excitation' in said
    excite.show({**result, 'plan': '', 'recording': 'recordings/arm'}, Terminal())
    said = capsys.readouterr().out
    assert 'next' not in said and 'recordings/arm' in said
