"""`robot-dynid completion`: what a shell needs to complete verbs, options, files and robots."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'print what bash, zsh or fish needs to complete commands'
EXAMPLES = (
    'robot-dynid completion bash >> ~/.bashrc',
    'robot-dynid completion zsh >> ~/.zshrc',
    'robot-dynid completion fish > ~/.config/fish/completions/robot-dynid.fish',
)
SHELLS = 'bash', 'zsh', 'fish'
#: zsh completes nothing before these, which plugins may have done; argcomplete before 3 speaks
#: bash only
ZSH = ('(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n'
       '(( $+functions[complete] )) || { autoload -Uz bashcompinit && bashcompinit; }\n')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('shell', metavar='SHELL', choices=SHELLS, help=', '.join(SHELLS))


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Return the lines that the shell reads when it starts."""
    from robot_dynid.cli.candidates import shell_code

    code = shell_code('fish' if arguments.shell == 'fish' else 'bash')
    return {'shell': arguments.shell, 'code': f'{ZSH if arguments.shell == "zsh" else ""}{code}'}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the lines."""
    sys.stdout.write(result['code'])
