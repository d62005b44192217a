"""Findings about recordings: what something looks like, and what to set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from robot_dynid.errors import UsageError

#: kinds of findings, each with the property in question
KINDS: Mapping[str, str] = {
    'time_unit': 'the unit of the stamps',
    'clock': 'stamps of one publisher and one clock',
    'position_unit': 'the unit of positions, or the side of the gear they are measured on',
    'velocity': 'velocity as the derivative of position: unit, sign, order of joints',
    'position_sign': 'the direction of a joint',
    'position_offset': 'the zero of a joint',
    'joint_order': 'which column belongs to which joint',
    'effort_scale': 'the unit of efforts',
    'effort_sign': 'the sign of efforts',
    'gravity': 'whether efforts include gravity, as their kind and the mounting of the base state',
    'description': 'whether the description matches the arm',
    'counterbalance': 'springs missing from the description',
    'duplicate': 'recordings that are counted once',
}
#: end of the sentence of an accepted finding
ACCEPTED = ' (accepted)'


class Severity(Enum):
    """Consequence of a finding: the recording is refused, a warning is given, it is accepted."""

    REFUSE = 'refuse'
    WARN = 'warn'
    ACCEPT = 'accept'


@dataclass(frozen=True)
class Finding:
    """A contradiction of a recording with the robot, or with itself.

    ``kind`` is one of KINDS, ``joints`` those concerned (empty: all, or none in particular);
    ``looks_like`` gives the evidence in numbers, ``remedy`` what to set.
    """

    kind: str
    recording: str
    joints: tuple[str, ...]
    severity: Severity
    looks_like: str
    remedy: str

    @property
    def of_joints(self) -> str:
        """The joints concerned, as ' of joint_1, joint_2'; '' for none in particular."""
        return f' of {", ".join(self.joints)}' if self.joints else ''

    @property
    def sentence(self) -> str:
        """Return the finding in one sentence."""
        end = ACCEPTED if self.severity is Severity.ACCEPT else ''
        return (f'{self.recording}: {self.kind}{self.of_joints}: {self.looks_like}; '
                f'{self.remedy}{end}')


def check_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the accepted kinds of findings; raises UsageError for an unknown one."""
    given = tuple(kinds)
    unknown = [kind for kind in given if kind not in KINDS]
    if unknown:
        raise UsageError(f'accept: there is no finding {unknown[0]!r}; choose one of '
                         f'{", ".join(KINDS)}')
    return given


def accept_findings(findings: Sequence[Finding], kinds: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings, those of ``kinds`` with severity ACCEPT."""
    return tuple(replace(f, severity=Severity.ACCEPT) if f.kind in kinds else f for f in findings)


def read_sentences(sentences: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings among sentences, as warnings, except accepted ones.

    The remedy begins after the first semicolon; everything before it is the evidence.
    """
    parsed = (_SENTENCE.fullmatch(one) for one in sentences if not one.endswith(ACCEPTED))
    return tuple(Finding(
        one['kind'], one['recording'], tuple(one['joints'].split(', ')) if one['joints'] else (),
        Severity.WARN, one['looks_like'], one['remedy']) for one in parsed if one is not None)


_SENTENCE = re.compile(
    rf"(?P<recording>.*?): (?P<kind>{'|'.join(KINDS)})(?: of (?P<joints>[^:]+))?: "
    r'(?P<looks_like>.*?); (?P<remedy>.*)', re.DOTALL)
