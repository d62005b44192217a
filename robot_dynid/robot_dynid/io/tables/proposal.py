"""Propose a column mapping for a table without matching preset, to be corrected and pasted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot_dynid.io.tables.table import Layout
from robot_dynid.robot.columns import QUANTITIES, TIME, UNITS, unit_of

#: words in names of columns and files that indicate a channel, by precedence
WORDS = {
    'velocity': r'vel|speed|qd(?![a-z])|dq|dot|omega',
    'effort': r'tau|torq|trq|eff|curr|moment|load|force',
    'position': r'pos|ang|theta|joint|axis|enc|q',
}
CLOCK = re.compile(r'time|stamp|clock|clk|^sec|elapsed|duration'
                   r'|^t[\W_]*(s|sec|ms|us|ns)?\W*$', re.IGNORECASE)
#: placeholder of the sample rate [Hz]
EXAMPLE_RATE = 100
#: what a name says of its unit: in brackets, or after its last underscore
UNIT = re.compile(r'[\[(](?P<bracket>[^\])]+)[\])]|_(?P<last>[^\W_]+)$')
_NUMBERED = re.compile(r'(?P<before>.*?)(?P<i>\d+)(?P<after>\D*)')


def proposal(layout: Layout, joints: Sequence[str]) -> dict[str, Any]:
    """Propose a mapping for a table; what its names do not show is a placeholder."""
    n = max(len(joints), 1)
    if layout.numbered:
        return _by_number(len(layout.columns), n, Path(layout.source))
    clocks = [name for name in layout.columns if CLOCK.search(name)]
    mapping: dict[str, Any] = {'rate': EXAMPLE_RATE} if not clocks else {
        TIME: _with_unit(clocks[0], TIME)}
    channels: dict[str, Any] = {}
    fitting = [pattern for pattern, count in (
        *_by_joint(layout.columns, joints).items(), *_families(layout.columns).items())
        if count == n]
    for pattern in fitting:
        channel = _channel(pattern, channels)
        if channel:
            channels[channel] = pattern
    left = [pattern for pattern in fitting if pattern not in channels.values()]
    if len(left) == 1 and 'position' not in channels:
        channels['position'] = left[0]
    for channel in ('position', 'effort'):
        if channel not in channels:
            channels[channel] = [f'{channel.upper()} OF {joint}' for joint in joints]
    return {**mapping, **{key: _with_unit(channels[key], key)
                          for key in ('position', 'velocity', 'effort') if key in channels}}


def _with_unit(column: Any, channel: str) -> Any:
    """Return a column, with its unit where its name states one that must be converted."""
    said = UNIT.search(column) if isinstance(column, str) else None
    unit = unit_of(said['bracket'] or said['last']) if said else ''
    if not unit or UNITS[unit][0] not in QUANTITIES[channel] or UNITS[unit][1] == 1.0:
        return column
    return {'column': column, 'unit': unit}


def _channel(pattern: str, taken: dict[str, Any]) -> str:
    return next((channel for channel, words in WORDS.items() if channel not in taken
                 and re.search(words, re.sub(r'\{\w+\}', '', pattern), re.IGNORECASE)), '')


def _by_joint(columns: Sequence[str], joints: Sequence[str]) -> dict[str, int]:
    """Return patterns of columns that differ by a joint name, with their counts."""
    patterns: dict[str, set[str]] = {}
    for name in columns:
        for joint in sorted(joints, key=len, reverse=True):
            if joint in name:
                patterns.setdefault(name.replace(joint, '{joint}', 1), set()).add(joint)
                break
    return {pattern: len(there) for pattern, there in patterns.items()}


def _families(columns: Sequence[str]) -> dict[str, int]:
    """Return patterns of columns that differ by one number, with their counts."""
    patterns: dict[str, set[int]] = {}
    for name in columns:
        match = _NUMBERED.fullmatch(name)
        if match is not None:
            patterns.setdefault(f'{match["before"]}{{i}}{match["after"]}', set()).add(
                int(match['i']))
    return {pattern: len(numbers) for pattern, numbers in patterns.items()
            if sorted(numbers) in (list(range(len(numbers))),
                                   list(range(1, len(numbers) + 1)))}


def _by_number(width: int, n: int, path: Path) -> dict[str, Any]:
    """Propose a mapping of unnamed columns, by their number and the neighbouring files."""
    start = {'header': False}
    if width in (1, n):
        given = next((channel for channel, words in WORDS.items()
                             if re.search(words, path.stem, re.IGNORECASE)), 'position')
        form = {'reshape': n} if width < n else {}
        files = {TIME: _neighbour(path, CLOCK.pattern), **{
            channel: _neighbour(path, words) for channel, words in WORDS.items()
            if channel != given}}
        others = {name: {**start, **(form if channel != TIME else {}),
                         channel: 1 if channel == TIME else _span(1, n)}
                  for channel, name in files.items() if name}
        if not files.get('effort') and given != 'effort':
            others['torques.txt'] = {**start, **form, 'effort': _span(1, n)}
        return {**start, **form, **({} if files[TIME] else {'rate': EXAMPLE_RATE}),
                given: _span(1, n), 'files': others}
    clock = width % n == 1 or (n == 1 and width > 2)
    first = 2 if clock else 1
    channels = ('position', 'velocity', 'effort') if width >= 3 * n + clock else (
        'position', 'effort')
    return {**start, **({TIME: 1} if clock else {'rate': EXAMPLE_RATE}),
            **{channel: _span(first + k * n, first + (k + 1) * n - 1)
               for k, channel in enumerate(channels)}}


def _neighbour(path: Path, words: str) -> str:
    """Return the only file of the same type in the folder whose name has one of the words."""
    names = [one.name for one in path.parent.glob(f'*{path.suffix}')
             if one.name != path.name and re.search(words, one.stem, re.IGNORECASE)]
    return names[0] if len(names) == 1 else ''


def _span(first: int, last: int) -> int | str:
    return first if first == last else f'{first}-{last}'
