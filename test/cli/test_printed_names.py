"""cli/terminal.py: names come from files of others: none reaches the terminal as an escape
sequence."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.completion import verbs_of
from robot_dynid.cli.main import VERBS, main, parser
from robot_dynid.cli.terminal import Terminal, printable_streams
from robot_dynid.document import Report
from robot_dynid.errors import printable
from robot_dynid.io.csv import write_csv
from robot_dynid.report.html import render
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.yaml_text import yaml_text

Capture = pytest.CaptureFixture[str]
#: a title for the window, a cleared screen, a line written over, colours by one byte, text that
#: runs from right to left, a byte that is no text
HOSTILE = '\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egnp\x7f\udcff'
#: what files of text may hold of it
IN_TEXT = HOSTILE.removesuffix('\udcff')
SHOWN = r'\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202egnp\x7f'
#: colours and styles of the command itself
STYLE = re.compile(r'\x1b\[[0-9;]*m')


def harmless(text: str) -> bool:
    """Return whether a terminal obeys nothing of a text but ends of lines."""
    return all(c.isprintable() or c in '\n\t' for c in text)


@pytest.mark.parametrize('json_words', [[], ['--json']], ids=['text', 'json'])
@pytest.mark.parametrize('verb', VERBS)
def test_arguments_are_printed_by_every_verb_as_they_are_written(
    verb: str, json_words: list[str], capsys: Capture
) -> None:
    required = [word for action in verbs_of(parser([verb]))[verb]._actions if action.required
                for word in (*action.option_strings[:1], f'no-file{HOSTILE}')]
    assert main([verb, *required, f'--{HOSTILE}', *json_words]) == 2
    captured = capsys.readouterr()
    assert harmless(captured.out) and harmless(captured.err)
    assert SHOWN.partition(r'\r')[0] in captured.err
    if required:
        assert main([verb, *required, *json_words]) in (1, 2)
        captured = capsys.readouterr()
        assert harmless(captured.out) and harmless(captured.err)
        assert all(json.loads(line) for line in captured.out.splitlines() if json_words)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Robot, recordings and model of two joints with such names, in files of such names."""
    made = tmp_path_factory.mktemp('names')
    limits = {'position': [-2.0, 2.0], 'velocity': 2.0, 'acceleration': 8.0, 'effort': 60.0}
    names = [f'{joint}{IN_TEXT}' for joint in 'ab']
    (made / 'robot.yaml').write_text(yaml_text({
        'effort_kind': 'torque', 'gravity': [0.0, 0.0, -9.81],
        'screws': [{'name': name, 'axis': [0, 1, 0], 'origin': [0.3 * k, 0, 0.4]}
                   for k, name in enumerate(names)],
        'limits': dict.fromkeys(names, limits)}))
    robot = load_robot(made / 'robot.yaml')
    for seed, name in enumerate(('train', 'test')):
        log = recording(robot, seed)
        assert log.velocity is not None and log.effort is not None
        write_csv(made / f'{name}{HOSTILE}.csv', replace(log, effort=log.effort + 5.0 * np.tanh(
            log.velocity / 0.02) + 3.0 * log.velocity))
    (made / 'states.csv').write_bytes((made / f'test{HOSTILE}.csv').read_bytes())
    (made / 'keys.yaml').write_text(yaml_text({f'key{IN_TEXT}': 1}))
    (made / 'header.csv').write_text(f'time,position.{IN_TEXT}\n0,0\n'.replace('\r', ''))
    recipe = '{friction: coulomb, cutoff: 5.0, effort_lag: 0.0, ripple: none, adaptation: none}'
    (made / 'recipe.yaml').write_text(recipe)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        assert main(['identify', f'train{HOSTILE}.csv', '--robot', 'robot.yaml', '--recipe',
                     'recipe.yaml', '--out', f'm{HOSTILE}.yaml', '--accept-partial']) == 0
    return made


MODEL, TRAIN, TEST = (f'{name}{HOSTILE}' for name in ('m', 'train', 'test'))
ROBOT = ('--robot', 'robot.yaml')


@pytest.mark.parametrize('words', [
    ('base', 'robot.yaml'),
    ('design', 'robot.yaml', '--type', 'static-poses', '--out', f'T{HOSTILE}.yaml'),
    ('identify', f'{TRAIN}.csv', *ROBOT, '--recipe', 'recipe.yaml', '--out', f'n{HOSTILE}.yaml',
     '--report', f'r{HOSTILE}.html'),
    ('identify', f'{TRAIN}.csv', *ROBOT, '--recipe', 'keys.yaml', '--out', 'o.yaml'),
    ('identify', 'header.csv', *ROBOT, '--out', 'o.yaml'),
    ('validate', f'{MODEL}.yaml', f'{TEST}.csv'), ('validate', 'keys.yaml', f'{TEST}.csv'),
    ('compare', f'{MODEL}.yaml', f'{MODEL}.yaml', f'{TEST}.csv'),
    ('forward', f'{MODEL}.yaml', f'{TEST}.csv'), ('inverse', f'{MODEL}.yaml', 'states.csv'),
    ('export', f'{MODEL}.yaml', '--out', f'e{HOSTILE}.urdf'),
    ('payload', f'{TEST}.csv', '--unloaded', f'{TRAIN}.csv', *ROBOT),
    ('contact', f'{MODEL}.yaml', f'{TEST}.csv'),
    ('resonance', f'{TEST}.csv', *ROBOT, '--joint', f'a{IN_TEXT}'),
    ('information', f'{TEST}.csv', *ROBOT, '--out', f'i{HOSTILE}.info'),
    ('calibrate', f'{MODEL}.yaml', f'{TEST}.csv', '--out', 'o.yaml'),
    ('fleet', f'{TEST}.csv', *ROBOT), ('repair', f'{TEST}.csv'), ('init', 'keys.yaml'),
], ids=lambda words: words[0])
@pytest.mark.parametrize('json_words', [[], ['--json']], ids=['text', 'json'])
def test_names_in_files_are_printed_as_they_are_written(
    words: tuple[str, ...], json_words: list[str], folder: Path, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert main([*words, *json_words]) in (0, 1, 2)
    captured = capsys.readouterr()
    assert harmless(captured.out) and harmless(captured.err)
    assert 'this is a fault of robot_dynid' not in captured.err
    if json_words:
        assert isinstance(json.loads(captured.out), dict)


class FakeTerminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


WAYS: dict[str, Callable[[Terminal], object]] = {
    'line': lambda terminal: terminal.line(HOSTILE, style='bold'),
    'command': lambda terminal: terminal.command(HOSTILE),
    'note': lambda terminal: terminal.note(HOSTILE),
    'caution': lambda terminal: terminal.caution(HOSTILE),
    'facts': lambda terminal: terminal.facts([(HOSTILE, HOSTILE)]),
    'title': lambda terminal: terminal.table(HOSTILE, ['a'], [[1.0]]),
    'column': lambda terminal: terminal.table('', [HOSTILE], [[1.0]]),
    'cell': lambda terminal: terminal.table('', ['a', 'b'], [[HOSTILE, HOSTILE]]),
    'warnings': lambda terminal: terminal.warnings([HOSTILE]),
    'print': lambda terminal: print(HOSTILE),  # noqa: T201
    'lines': lambda terminal: sys.stdout.writelines([HOSTILE]),
    'error': lambda terminal: print(HOSTILE, file=sys.stderr),  # noqa: T201
}


@pytest.mark.parametrize('way', WAYS)
def test_every_way_to_print_keeps_a_terminal_from_obeying_names(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', '300')
    streams = {name: FakeTerminal() for name in ('stdout', 'stderr')}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    with printable_streams():
        WAYS[way](Terminal())
    text = ''.join(STYLE.sub('', stream.getvalue()) for stream in streams.values())
    assert harmless(text) and SHOWN in text.replace('\n', '')


@pytest.mark.parametrize('closed', ['>&-', '2>&-', '>&- 2>&-'])
def test_streams_that_the_caller_has_closed_end_no_command(closed: str) -> None:
    run = 'from robot_dynid.cli.main import main; raise SystemExit(main())'
    ended = subprocess.run(
        ['sh', '-c', f'exec "$@" {closed}', 'sh', sys.executable, '-c', run, 'base', 'planar_3r'],
        capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, '')
    assert ('30 standard parameters' in ended.stdout) is (closed == '2>&-')


def test_ends_of_lines_and_signs_of_all_languages_stay() -> None:
    text = 'a\tb\nN·m ± σ 関節 مفصل\n'
    assert printable(text) == text
    assert printable('a\r\n') == 'a\\r\n'


def test_a_report_shows_hostile_names_as_text() -> None:
    page = render(Report(f'<b>{HOSTILE}', HOSTILE))
    assert harmless(page) and SHOWN in page and f'<b>{SHOWN}' not in page
    assert page.encode()
