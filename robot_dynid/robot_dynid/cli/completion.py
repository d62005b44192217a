"""`robot-dynid completion`: what a shell needs to complete verbs, options, files and robots."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.verbs import VERBS
from robot_dynid.errors import MissingDependency

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'print the completion script of a shell'
EXAMPLES = (
    'robot-dynid completion bash >> ~/.bashrc',
    'robot-dynid completion zsh >> ~/.zshrc',
    'robot-dynid completion fish > ~/.config/fish/completions/robot-dynid.fish',
)
PROGRAM = 'robot-dynid'
SHELLS = 'bash', 'zsh', 'fish'
#: zsh completes nothing before these, which plugins may have done; argcomplete before 3 speaks
#: bash only
ZSH = ('(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n'
       '(( $+functions[complete] )) || { autoload -Uz bashcompinit && bashcompinit; }\n')
YAML = ('.yaml', '.yml')
ROBOT_FILES = (*YAML, '.urdf', '.xacro')
FOLDERS = 'DIR', 'FOLDER'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('shell', metavar='SHELL', choices=SHELLS,
                        help=f'one of {", ".join(SHELLS)}')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Return the lines that the shell reads when it starts."""
    library = argcomplete_library()
    if not hasattr(library, 'shellcode'):  # of a system older than this is declared
        raise MissingDependency("completion needs argcomplete 1.12 or newer: pip install "
                                "'argcomplete>=1.12'")
    code = str(library.shellcode([PROGRAM], shell='fish' if arguments.shell == 'fish' else 'bash'))
    return {'shell': arguments.shell,
            'code': f'{ZSH if arguments.shell == "zsh" else ""}{code.rstrip()}\n'}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the lines."""
    sys.stdout.write(result['code'])


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks by the variables of argcomplete, and end the process."""
    library = argcomplete_library()
    for verb, sub in verbs_of(parser).items():
        for argument in sub._actions:
            if argument.choices is None:
                argument.completer = completer(verb, argument)  # type: ignore[attr-defined]
    library.autocomplete(parser, always_complete_options='long',
                         default_completer=library.completers.SuppressCompleter())


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs."""
    [verbs] = [action for action in parser._actions
               if isinstance(action, argparse._SubParsersAction)]
    return dict(verbs.choices)


def completer(verb: str, argument: argparse.Action) -> Callable[..., Any] | None:
    """Return the completer of argcomplete for an argument of a verb: names, robots or files."""
    completers = argcomplete_library().completers
    names = names_of(verb, argument.dest)
    if names:
        chosen: Callable[..., Any] = completers.ChoicesCompleter(names)
        return chosen
    if argument.dest == 'robot' or (verb, argument.dest) == ('export', 'model'):
        from robot_dynid.robot.locate import known_robots

        robots = completers.ChoicesCompleter(known_robots() if argument.dest == 'robot' else ())
        files = completers.FilesCompleter([one[1:] for one in ROBOT_FILES])
        return lambda prefix, **more: [*(one for one in robots(prefix=prefix, **more) if
                                         one.startswith(prefix)), *files(prefix, **more)]
    metavar = str(argument.metavar or '')
    endings = file_endings(metavar)
    chosen = completers.FilesCompleter([one[1:] for one in endings])
    return chosen if endings else completers.DirectoriesCompleter() if metavar in FOLDERS else None


def names_of(verb: str, argument: str) -> tuple[str, ...]:
    """Return the names of which an argument is one; none where it may be anything."""
    names: Mapping[str, tuple[str, ...] | str] = getattr(VERBS[verb], 'NAMES', {})
    found = names.get(argument, ())
    if isinstance(found, tuple):
        return found
    module, _, registry = found.partition(':')
    return tuple(getattr(import_module(module), registry))


def file_endings(metavar: str) -> tuple[str, ...]:
    """Return the endings of the files that the help calls ``metavar``."""
    from robot_dynid.io.recording_names import BAGS, TABLES

    recordings = dict.fromkeys(('DATA', 'LOADED', 'U', 'RUN', 'STATES.csv'), (*TABLES, *BAGS))
    by_word = {**recordings, 'YAML': YAML, 'FILE': YAML, 'BAG': BAGS,
               'URDF': ('.urdf', '.xacro')}
    endings: dict[str, None] = {}
    for word in metavar.replace('|', ' ').strip('[]').split():
        ending = re.fullmatch(r'\w+(\.\w+)', word)
        accepted = () if ending is None else YAML if ending[1] in YAML else (ending[1],)
        endings |= dict.fromkeys(by_word.get(word.strip('[].'), accepted))
    return tuple(endings)


def argcomplete_library() -> Any:
    """Return argcomplete; raises MissingDependency without it."""
    try:
        import argcomplete
        import argcomplete.completers
    except ImportError:
        raise MissingDependency('completion needs argcomplete: apt install python3-argcomplete '
                                'or pip install argcomplete') from None
    return argcomplete
