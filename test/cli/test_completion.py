"""Completion of commands, by a real shell; and the examples of help texts."""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robot_dynid.cli import completion
from robot_dynid.cli.main import EXAMPLES, VERBS, main, parser
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.excitation.families import FAMILIES
from robot_dynid.robot.locate import known_robots

pytest.importorskip('argcomplete', reason='optional oracle is not installed: argcomplete')
Capture = pytest.CaptureFixture[str]
MAIN = 'import sys; from robot_dynid.cli.main import main; sys.exit(main())'
#: a shell that shows nothing for so long is dead [s]
PATIENCE = 300.0
#: asks the function for bash, as readline does, and prints what it answers
ASK = """
source completion.bash
PATH=$PWD:$PATH
COMP_LINE={line}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; COMP_WORDS=({line}); COMP_CWORD={at}
_python_argcomplete robot-dynid; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file of each kind, in which the test runs."""
    for name in ('run.csv', 'run.csv.gz', 'bag.mcap', 'old.db3', 'm.yaml', 'arm.urdf', 'r.html',
                 'arm.xacro', 'notes.txt', '.hidden.csv'):
        (tmp_path / name).write_text('')
    (tmp_path / 'bags').mkdir()
    (tmp_path / 'bags' / 'one.mcap').write_text('')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def action(verb: str, dest: str) -> argparse.Action:
    """Return an argument of a verb."""
    sub = completion.verbs_of(parser([verb]))[verb]
    return next(one for one in sub._actions if one.dest == dest)


@pytest.mark.parametrize(('verb', 'dest', 'prefix', 'expected'), [
    ('identify', 'data', '', ['.hidden.csv', 'bag.mcap', 'bags/', 'old.db3', 'run.csv',
                              'run.csv.gz']),
    ('identify', 'data', 'bags/', ['bags/one.mcap']), ('identify', 'data', 'nowhere/', []),
    ('identify', 'recipe', '', ['bags/', 'm.yaml']), ('identify', 'data', '.h', ['.hidden.csv']),
    ('identify', 'report', 'r', ['r.html']),
    ('identify', 'method', 'seq', ['sequential-feasible']),
    ('identify', 'method', '', list(ESTIMATORS)), ('design', 'type', '', list(FAMILIES)),
    ('design', 'robot', 'ur10', ['ur10e']), ('base', 'robot', 'ar', ['arm.urdf', 'arm.xacro']),
    ('base', 'robot', '', [*known_robots(), 'arm.urdf', 'arm.xacro', 'bags/', 'm.yaml']),
    ('validate', 'model', '', ['bags/', 'm.yaml']), ('export', 'urdf', 'a', ['arm.urdf']),
    ('export', 'model', '', ['bags/', 'm.yaml', 'arm.urdf', 'arm.xacro']),
    ('repair', 'bag', '', ['bag.mcap', 'bags/', 'old.db3']),
    ('compare', 'files', 'm', ['m.yaml']), ('payload', 'unloaded', 'run.csv.', ['run.csv.gz']),
    ('bench', 'names', 'sto', ['stops']), ('reproduce', 'name', 'stan', ['stanford-arm']),
    ('payload', 'link', '', []), ('demo', 'excitation', 's', ['sine-sequence']),
])
def test_candidates_are_files_of_the_kind_or_names(
    verb: str, dest: str, prefix: str, expected: list[str], place: Path
) -> None:
    found = completion.completer(verb, action(verb, dest))
    shown = [one for one in (found(prefix=prefix) if found else ()) if one.startswith(prefix)]
    assert sorted(shown) == sorted(expected)


def test_arguments_with_choices_complete_them_and_others_as_their_verb_says(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, answered = parser(['identify']), []

    class Library:
        completers = argparse.Namespace(SuppressCompleter=lambda: 'nothing')

        @staticmethod
        def autocomplete(given: object, **options: object) -> None:
            answered.append((given, options))

    monkeypatch.setattr(completion, 'argcomplete_library', Library)
    monkeypatch.setattr(completion, 'completer', lambda verb, one: (verb, one.dest))
    completion.complete(whole)
    assert answered == [(whole, {'always_complete_options': 'long',
                                 'default_completer': 'nothing'})]
    arguments = {one.dest: getattr(one, 'completer', None)
                 for one in completion.verbs_of(whole)['identify']._actions}
    assert arguments.pop('accept') is None
    assert arguments == {dest: ('identify', dest) for dest in arguments} and 'data' in arguments


def test_every_argument_with_a_file_has_its_kind() -> None:
    """What its help calls a file must be known by that name."""
    verbs = completion.verbs_of(parser())
    named = {str(one.metavar) for sub in verbs.values() for one in sub._actions
             if one.metavar and '.' in str(one.metavar)}
    assert all(map(completion.file_endings, named)), 'no endings of these files are known'


def test_code_for_each_shell(capsys: Capture) -> None:
    for shell, words in (('bash', 'complete '), ('zsh', 'compinit'), ('fish', 'complete ')):
        assert main(['completion', shell]) == 0
        code = capsys.readouterr().out
        assert words in code and 'robot-dynid' in code
        assert main(['completion', shell, '--json']) == 0
        assert json.loads(capsys.readouterr().out) == {'shell': shell, 'code': code}
    assert main(['completion', 'tcsh']) == 2


def test_an_argcomplete_without_code_for_shells_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delattr('argcomplete.shellcode')
    assert main(['completion', 'bash']) == 1
    assert 'argcomplete 1.12 or newer' in capsys.readouterr().err


@pytest.mark.parametrize(('line', 'expected', 'unexpected'), [
    ('robot-dynid ', {'identify', 'demo', 'completion'}, {'run.csv'}),
    ('robot-dynid base planar_3r --', {'--friction', '--quiet'}, {'--report'}),
    ('robot-dynid base ur1', {'ur10e', 'ur16e'}, {'tx40'}),
])
def test_bash_completes(
    line: str, expected: set[str], unexpected: set[str], place: Path, capsys: Capture
) -> None:
    program(place, 'bash', capsys)
    script = ASK.format(line=shlex.quote(line), at=len(line.split(' ')) - 1)
    done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, check=True)
    found = {word.strip() for word in done.stdout.splitlines()}
    assert expected <= found, done.stderr
    assert not unexpected & found


def typed(shell: list[str], place: Path, lines: list[str], expected: str) -> str:
    """Type lines into an interactive shell until it shows what is expected; return what it shows.

    The shell reads the terminal of this machine: what it answers is looked at, not how fast.
    """
    pid, terminal = pty.fork()
    if pid == 0:  # the shell
        os.execvpe(shell[0], shell, {
            **os.environ, 'HOME': str(place), 'TERM': 'dumb',
            'PATH': f'{place}:{os.environ["PATH"]}'})
    shown, until = '', time.monotonic() + PATIENCE
    try:
        os.write(terminal, '\n'.join(lines).encode())
        while expected not in shown and time.monotonic() < until:
            if select.select([terminal], [], [], 1.0)[0]:
                shown += os.read(terminal, 1 << 16).decode(errors='replace')
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return shown


def program(place: Path, shell: str, capsys: Capture) -> Path:
    """Write the program, and the code with which a shell completes it."""
    assert main(['completion', shell]) == 0
    (place / f'completion.{shell}').write_text(capsys.readouterr().out)
    command = place / 'robot-dynid'
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{MAIN}' \"$@\"\n")
    command.chmod(0o755)
    return place


@pytest.mark.skipif(shutil.which('zsh') is None, reason='no zsh: apt-get install zsh')
def test_zsh_completes(place: Path, capsys: Capture) -> None:
    program(place, 'zsh', capsys)
    shown = typed(['zsh', '-f', '-i'], place, [
        'source ./completion.zsh', 'robot-dynid base ur1\t\t'], 'ur16e')
    assert 'ur16e' in shown


@pytest.mark.skipif(shutil.which('fish') is None, reason='no fish: apt-get install fish')
def test_fish_completes(place: Path, capsys: Capture) -> None:
    program(place, 'fish', capsys)
    done = subprocess.run(
        ['fish', '--no-config', '-c',
         'source completion.fish; complete -C "robot-dynid base ur1"'],
        capture_output=True, text=True, check=True,
        env={**os.environ, 'HOME': str(place), 'PATH': f'{place}:{os.environ["PATH"]}'})
    assert done.stdout.split() == ['ur10e', 'ur16e']


def examples() -> list[str]:
    """Return the examples of all help texts."""
    own = (VERBS[name].EXAMPLES for name in VERBS)
    return [*EXAMPLES, *(one for found in own for one in found)]


@pytest.mark.parametrize('name', VERBS)
def test_every_help_text_has_examples(name: str, capsys: Capture) -> None:
    found = VERBS[name].EXAMPLES
    assert found and all(shlex.split(one)[:2] == ['robot-dynid', name] for one in found)
    with pytest.raises(SystemExit):
        main([name, '--help'])
    shown = capsys.readouterr().out
    assert all(one in shown for one in found)


def test_every_example_is_a_command() -> None:
    """Each is parsed; robots, methods and other names in it exist."""
    for example in examples():
        words = shlex.split(example.partition('>')[0])[1:]
        if '--help' in words:
            continue
        given = parser(words).parse_args(words)
        sub = completion.verbs_of(parser(words))[given.verb]
        for one in sub._actions:
            value = getattr(given, one.dest, None)
            for text in value if isinstance(value, list) else [value]:
                names = completion.names_of(given.verb, one.dest)
                assert not names or not isinstance(text, str) or text in names, example
                if isinstance(text, str) and one.dest == 'robot':
                    assert text in [*known_robots(), 'my_arm.yaml'], example
