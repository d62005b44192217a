"""The verdict on a model, printed: a table of joints and uses, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal


def show_verdict(verdict: Mapping[str, Any], terminal: Terminal) -> None:
    """Print what the model is good for, why not, and the next actions."""
    joints = verdict['joints']
    if joints:
        terminal.table('good for', ('joint', *(use['use'] for use in joints[0]['uses'])), (
            (joint['joint'], *(use['word'] for use in joint['uses'])) for joint in joints))
    terminal.line(verdict['words'])
    for words in dict.fromkeys(
            f'{joint["joint"]}: {_against(use)}' for joint in joints for use in joint['uses']
            if use['ok'] is False):
        terminal.line(words, style='yellow')
    for place, action in enumerate(verdict['actions'], start=1):
        terminal.line(f'next {place}: {action["words"]}')
        if action['command']:
            terminal.command(action['command'])


def _against(use: Mapping[str, Any]) -> str:
    """Return the reason against a use; that against all uses is the same, and said once."""
    words = str(use['words'])
    return words if use['value'] is None else f'not good for {use["use"]}: {words}'
