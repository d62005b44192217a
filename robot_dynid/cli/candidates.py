"""Candidates that shells complete commands by: verbs, options, files by kind, robots."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from robot_dynid.cli.verbs import VERBS
from robot_dynid.errors import MissingDependency
from robot_dynid.io.recording_names import STORAGES, TABLES

PROGRAM = 'robot-dynid'
YAML, RECORDINGS = ('.yaml', '.yml'), (*TABLES, *STORAGES)
#: endings of the files an argument may be, by what its help calls it
FILES = {
    **dict.fromkeys(('DATA', 'LOADED', 'U', 'STATES.csv', 'RUN'), RECORDINGS),
    **dict.fromkeys(('M.yaml', 'R.yaml', 'T.yaml', 'YAML', 'OUT.yaml', 'ROBOT.yaml', 'FILE'),
                    YAML),
    'M.yaml M.yaml ... [DATA ...]': (*YAML, *RECORDINGS), 'BAG': STORAGES,
    'R.html': ('.html',), 'OUT.csv': ('.csv',), 'OUT.xml': ('.xml',), 'OUT.sdf': ('.sdf',),
    **dict.fromkeys(('IN.urdf', 'OUT.urdf'), ('.urdf',)), 'URDF': ('.urdf', '.xacro'),
    **dict.fromkeys(('X.info', 'Y.info'), ('.info',)),
    **dict.fromkeys(('DIR', 'FOLDER'), ()),
}
ROBOT_FILES = (*YAML, '.urdf', '.xacro')


#: names of which one is meant, by verb and argument: themselves, or the registry that has them
NAMES: dict[tuple[str, str], tuple[str, ...] | str] = {
    ('identify', 'method'): 'robot_dynid.estimation:ESTIMATORS',
    ('base', 'method'): ('numeric', 'analytic', 'composite'),
    ('design', 'type'): 'robot_dynid.excitation.families:FAMILIES',
    ('design', 'objective'): ('condition', 'blocks', 'log-det', 'precision'),
    ('design', 'procedure'): ('distal-to-proximal', 'body-by-body', 'adaptive'),
}


def names(verb: str, argument: str) -> tuple[str, ...]:
    """Return the names of which an argument is one; none where it may be anything."""
    others: Mapping[str, tuple[str, ...] | str] = getattr(VERBS[verb], 'NAMES', {})
    found = NAMES.get((verb, argument), others.get(argument, ()))
    if isinstance(found, tuple):
        return found
    module, _, registry = found.partition(':')
    return tuple(getattr(import_module(module), registry))


def candidates(verb: str, argument: argparse.Action, prefix: str) -> list[str]:
    """Return the values that an argument of a verb may have and that begin with ``prefix``."""
    metavar = str(argument.metavar or '')
    if known := names(verb, argument.dest):
        found = [name for name in known if name.startswith(prefix)]
    elif argument.dest == 'robot':
        from robot_dynid.robot.locate import known_robots

        found = [name for name in known_robots() if name.startswith(prefix)]
        found += files(prefix, ROBOT_FILES)
    else:
        found = files(prefix, FILES[metavar]) if metavar in FILES else []
    if (verb, argument.dest) == ('export', 'model'):
        found += files(prefix, ROBOT_FILES)
    return list(dict.fromkeys(found))


def files(prefix: str, endings: Sequence[str]) -> list[str]:
    """Return the folders, and the files with one of ``endings``, that begin with ``prefix``."""
    folder, _, begin = prefix.rpartition('/')
    place = Path(f'{folder}/' if folder or prefix.startswith('/') else '.').expanduser()
    try:
        found = sorted(place.iterdir())
    except OSError:
        return []
    return [f'{prefix[:len(prefix) - len(begin)]}{path.name}{"/" if path.is_dir() else ""}'
            for path in found
            if path.name.startswith(begin) and (begin or not path.name.startswith('.'))
            and (path.is_dir() or path.name.endswith(tuple(endings)))]


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks by the variables of argcomplete, and end the process."""
    for verb, sub in verbs_of(parser).items():
        for argument in sub._actions:
            argument.completer = _completer(verb, argument)  # type: ignore[attr-defined]
    _argcomplete().autocomplete(parser, always_complete_options='long')


def shell_code(shell: str) -> str:
    """Return the code with which bash or fish completes the program."""
    library = _argcomplete()
    if not hasattr(library, 'shellcode'):  # of a system older than this is declared
        raise MissingDependency("completion needs argcomplete 1.12 or newer: pip install "
                                "'argcomplete>=1.12'")
    return str(library.shellcode([PROGRAM], shell=shell)).rstrip() + '\n'


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs."""
    [verbs] = [action for action in parser._actions
               if isinstance(action, argparse._SubParsersAction)]
    return dict(verbs.choices)


def _completer(verb: str, argument: argparse.Action) -> Callable[..., list[str]]:
    return lambda prefix='', **_: (
        [name for name in map(str, argument.choices) if name.startswith(prefix)]
        if argument.choices else candidates(verb, argument, prefix))


def _argcomplete() -> Any:
    try:
        import argcomplete
    except ImportError:
        raise MissingDependency('completion needs argcomplete: apt install python3-argcomplete '
                                'or pip install argcomplete') from None
    return argcomplete
