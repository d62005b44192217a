"""cli/base.py: waits: a bar with the remaining time on a terminal, one line elsewhere, nothing
when quiet."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from robot_dynid.cli import base
from robot_dynid.cli import terminal as terminal_module
from robot_dynid.cli.main import VERBS, main
from robot_dynid.cli.terminal import Terminal

Capture = pytest.CaptureFixture[str]


class FakeTerminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def seen(text: str) -> None:
    """Wait until a terminal on standard error shows ``text``; at once where it is none."""
    end, stream = time.monotonic() + 20.0, getattr(sys.stderr, 'raw', sys.stderr)
    while isinstance(stream, FakeTerminal) and text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()
        time.sleep(0.01)


def waits(*stages: tuple[str, float]) -> Any:
    """Return what runs as a verb, goes through stages, and ends once the last one is shown."""
    def run(arguments: Any, terminal: Terminal) -> dict[str, Any]:
        with terminal.progress('working') as progress:
            for stage, fraction in stages:
                progress(stage, fraction)
                seen(stage)
        return {}

    return run


def run_base(monkeypatch: pytest.MonkeyPatch, run: Any, *words: str) -> None:
    """Run the verb base with ``run`` in place of what it does."""
    monkeypatch.setattr(base, 'run', run)
    monkeypatch.setattr(base, 'show', lambda result, terminal: terminal.line('the result'))
    assert main(['base', 'planar_3r', *words]) == 0


def test_a_terminal_shows_stage_and_remaining_time(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv('TERM', 'xterm')
    stream = FakeTerminal()
    monkeypatch.setattr(sys, 'stderr', stream)
    run_base(monkeypatch, waits(('reading', 0.2), ('fitting', 0.6)))
    shown = stream.getvalue()
    assert 'working: reading' in shown and 'working: fitting' in shown
    assert re.search(r'0:00:\d\d', shown)  # elapsed and remaining time
    assert '\x1b[2K' in shown  # and it is gone at the end
    assert capsys.readouterr().out == 'the result\n'


def test_elsewhere_a_long_wait_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(terminal_module, 'DELAY', 0.0)
    run_base(monkeypatch, waits(('reading', 0.2), ('fitting', 0.6)), '--json')
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {}
    assert printed.err.count('\n') == 1 and printed.err.startswith('working: done in ')
    monkeypatch.setattr(terminal_module, 'DELAY', 3600.0)
    run_base(monkeypatch, waits(('reading', 0.2)))
    assert capsys.readouterr().err == ''


def test_an_error_stays_the_only_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(terminal_module, 'DELAY', 0.0)
    assert main(['base', 'planar_3r', '--method', 'qr']) == 2
    assert capsys.readouterr().err.count('\n') == 1


def complete() -> dict[str, str]:
    """Return the verbs, and words with which their arguments are complete."""
    return {
        'base': 'planar_3r', 'design': 'planar_3r --out T',
        'identify': 'x.csv --robot tx40 --out M',
        'validate': 'M x.csv', 'compare': 'M', 'forward': 'M x.csv', 'inverse': 'M x.csv',
        'export': 'M', 'payload': 'x.csv', 'contact': 'M x.csv',
        'resonance': 'x.csv --robot tx40 --joint j', 'repair': 'x', 'check': '', 'demo': '',
        'bench': '', 'reproduce': '', 'completion': 'zsh',
        'information': 'x.csv --robot tx40 --out X.info', 'session': '', 'doctor': '',
        'init': 'x.urdf', 'excite': 'T', 'stop': '', 'fleet': 'x --robot tx40',
        'calibrate': 'M x --out N', 'topics': 'x',
    }


@pytest.mark.parametrize('verb', VERBS)
def test_quiet_leaves_the_result(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Neither notes nor progress; what was found, and cautions about it."""
    def run(arguments: Any, terminal: Terminal) -> dict[str, Any]:
        terminal.note('chatter')
        terminal.caution('not identified: j')
        return dict(waits(('reading', 0.2))(arguments, terminal))

    module = VERBS[verb]
    monkeypatch.setattr(terminal_module, 'DELAY', 0.0)
    monkeypatch.setattr(module, 'run', run)
    monkeypatch.setattr(module, 'show', lambda result, terminal: terminal.line('the result'))
    for words, said in ((['--quiet'], False), ([], True), (['--verbose'], True)):
        assert main([verb, *complete()[verb].split(), *words]) == 0
        printed = capsys.readouterr()
        assert printed.out == 'the result\n'
        assert ('chatter' in printed.err) == ('done in' in printed.err) == said
        assert 'not identified: j' in printed.err


@pytest.mark.parametrize(('stream', 'variables', 'coloured'), [
    (FakeTerminal(), {}, True), (FakeTerminal(), {'NO_COLOR': '1'}, False),
    (FakeTerminal(), {'TERM': 'dumb'}, False), (io.StringIO(), {}, False)],
    ids=['terminal', 'NO_COLOR', 'dumb', 'pipe'])
def test_colours_are_for_terminals_and_not_with_no_color(
    stream: io.StringIO, variables: dict[str, str], coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {'TERM': 'xterm', **variables}.items():
        monkeypatch.setenv(name, value)
    for name in {'NO_COLOR', 'FORCE_COLOR', 'COLORTERM'} - set(variables):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, 'stdout', stream)
    Terminal().line('refused', style='red')
    assert ('\x1b[31m' in stream.getvalue()) == coloured
    assert 'refused' in stream.getvalue()


@pytest.mark.parametrize(('variables', 'opened'), [
    ({'DISPLAY': ':0'}, True), ({'WAYLAND_DISPLAY': 'w'}, True), ({}, False),
    ({'DISPLAY': ':0', 'SSH_CONNECTION': '1 2 3 4'}, False)])
def test_reports_are_opened_on_desktops_only(
    variables: dict[str, str], opened: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture,
    tmp_path: Path,
) -> None:
    asked: list[str] = []
    for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'SSH_CONNECTION'):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr('webbrowser.open', lambda address: asked.append(address) or True)
    report = str(tmp_path / 'a report.html')
    terminal = Terminal()
    terminal.open_page(report)  # nobody looks: it is no terminal
    assert asked == [] and 'a%20report.html in a browser' in capsys.readouterr().err
    monkeypatch.setattr(sys, 'stdout', FakeTerminal())
    terminal.open_page(report)
    assert bool(asked) == opened and all(one.endswith('/a%20report.html') for one in asked)
    assert ('opening' in capsys.readouterr().err) == opened
    Terminal(quiet=True).open_page(report)
    assert len(asked) == opened and capsys.readouterr().err == ''
