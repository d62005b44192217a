"""Patterns of column names, matched with the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from robot_dynid.robot.columns import ANY, INDEX, JOINT, PLACE, WRITTEN


class Unfit(Exception):
    """A mapping does not match a table; ``example`` is one to be corrected, if any."""

    def __init__(self, words: str, example: Mapping[str, Any] | None = None) -> None:
        super().__init__(words)
        self.example = example or {}


class WrongNumber(Unfit):
    """All columns exist, but for another number of joints."""


class Ambiguous(Unfit):
    """Several columns match a mapping."""


def written_unit(unit: str) -> str:
    return WRITTEN.get(unit, unit)


def matching(
    pattern: str, names: Sequence[str], joints: Sequence[str] | None, any_case: bool
) -> dict[tuple[str, ...], dict[str, int]]:
    """Return columns that match a pattern by number or joint, grouped by other variations."""
    expression, count = '', 0
    for k, part in enumerate(PLACE.split(pattern)):
        if k % 2 == 0:
            expression += re.escape(part)
        elif part == INDEX:
            expression += r'(?P<i>\d+)'
        elif part == JOINT:
            options = '.+?' if joints is None else '|'.join(
                map(re.escape, sorted(joints, key=len, reverse=True)))
            expression += f'(?P<joint>{options or "(?!)"})'
        else:
            options = '.*' if part == ANY else '|'.join(map(re.escape, part.split('|')))
            expression += f'(?P<part{count}>{options})'
            count += 1
    compiled = re.compile(expression, re.IGNORECASE if any_case else 0)
    groups: dict[tuple[str, ...], dict[str, int]] = {}
    for index, name in enumerate(names):
        match = compiled.fullmatch(name)
        if match is not None:
            parts = match.groupdict()
            key = str(int(parts.pop('i'))) if 'i' in parts else parts.pop('joint', '') or ''
            key = next((one for one in joints or () if one.lower() == key.lower()), key)
            groups.setdefault(tuple(map(str, parts.values())), {})[key] = index
    return groups
