"""Match joint names in messages with joints of the robot: equal, prefixed, or by order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot_dynid.errors import DataError, clipped
from robot_dynid.robot.topics import JOINT


class SeveralNamings(DataError):
    """Joint names match those of the robot in several ``ways``."""

    def __init__(self, ways: Sequence[str]) -> None:
        super().__init__(f'names of joints match in {len(ways)} ways, '
                         f'{clipped(", ".join(ways), 300)}')
        self.ways = ways


@dataclass(frozen=True)
class Naming:
    """Joint of the robot by name in the messages; ``note`` is empty if the names are equal."""

    joints: dict[str, str]
    note: str = ''


def naming_of(
    names: Sequence[str], joints: Sequence[str], pattern: str = '', in_order: bool = False
) -> Naming | None:
    """Map the ``names`` in messages to joints of the robot; None if they do not match.

    With ``in_order`` the messages have no names but numbers in the order of the robot's joints.
    ``pattern`` prescribes the names, such as left_{joint}. A subset of the joints suffices if
    names are equal. Raises SeveralNamings if several prefixes match.
    """
    if in_order:
        return _in_order(names, joints)
    if JOINT in pattern:
        matches = {pattern.replace(JOINT, joint): joint for joint in joints}
        matches = {name: joint for name, joint in matches.items() if name in names}
        return Naming(matches, f'joints are named {pattern}') if matches else None
    if set(names) & set(joints):
        return Naming({name: name for name in names})
    options = _options(names, joints)
    if len(options) > 1:
        raise SeveralNamings(sorted(options))
    for shown, matched in options.items():
        return Naming(matched, f'joints are named {shown} there')
    return None


def _in_order(names: Sequence[str], joints: Sequence[str]) -> Naming | None:
    if len(names) != len(joints):
        return None
    return Naming(dict(zip(names, joints, strict=True)),
                  f'its numbers are taken in the order of the joints {", ".join(joints)}')


def _options(names: Sequence[str], joints: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the joints by name, for each prefix or suffix, of messages or robot, that matches.

    A single joint matches only at a separator that is neither letter nor digit.
    """
    matches: dict[str, dict[str, str]] = {}
    there, first = set(names), joints[0]
    for name in names:
        matched: dict[str, str] = {}
        if name.endswith(first) or name.startswith(first):
            head, tail = name[:len(name) - len(first)], name[len(first):]
            shown = f'{head}{JOINT}' if name.endswith(first) else f'{JOINT}{tail}'
            edge = head[-1:] if name.endswith(first) else tail[:1]
            matched = {shown.replace(JOINT, joint): joint for joint in joints}
        elif first.endswith(name) or first.startswith(name):
            head, tail = first[:len(first) - len(name)], first[len(name):]
            at_end = first.endswith(name)
            edge = head[-1:] if at_end else tail[:1]
            shown = f'without {head if at_end else tail}'
            shorter = [(joint.removeprefix(head) if at_end else joint.removesuffix(tail), joint)
                       for joint in joints]
            matched = {short: joint for short, joint in shorter if short != joint}
        else:
            continue
        if len(matched) == len(joints) and there >= matched.keys() and (
                len(joints) > 1 or not edge.isalnum()):
            matches[shown] = matched
    return matches

