"""Diagnoses of an installation or of a live system: what, where, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robot_dynid.execution.checklist import Item, Level
from robot_dynid.plausibility.finding import Finding, Severity

OK, WARN, ERROR = Level.OK, Level.WARN, Level.ERROR
#: levels as they are printed
LEVELS = {OK: 'ok', WARN: 'warning', ERROR: 'error'}


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of one thing.

    ``name`` of the thing, ``where`` it is (a library, a variable, a topic), ``what`` was found,
    ``remedy`` what to do, empty where nothing is to be done; ``values`` measured, by name.
    """

    name: str
    level: Level
    where: str
    what: str
    remedy: str = ''
    values: tuple[tuple[str, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the diagnosis in types of JSON."""
        return {'name': self.name, 'level': LEVELS[self.level], 'where': self.where,
                'what': self.what, 'remedy': self.remedy, 'values': dict(self.values)}


def of_item(item: Item, where: str) -> Diagnosis:
    """Return an item of the checklist before a motion as a diagnosis."""
    what, remedy = item.parts
    return Diagnosis(item.name, item.level, where, what, remedy, item.values)


def of_finding(finding: Finding, where: str) -> Diagnosis:
    """Return a finding of the gate before every fit as a diagnosis."""
    level = ERROR if finding.severity is Severity.REFUSE else WARN
    joints = f' of {", ".join(finding.joints)}' if finding.joints else ''
    return Diagnosis(finding.kind, level, f'{where}{joints}', finding.looks_like, finding.remedy)


def verdict(found: Sequence[Diagnosis]) -> str:
    """Return in one sentence how many errors and warnings there are, and the first of them."""
    counts = {level: sum(one.level is level for one in found) for level in (ERROR, WARN)}
    if not any(counts.values()):
        return f'{len(found)} checks, all ok'
    worst = next(one for level in (ERROR, WARN) for one in found if one.level is level)
    told = ', '.join(f'{count} {LEVELS[level]}{"s" * (count != 1)}'
                     for level, count in counts.items() if count)
    return f'{len(found)} checks: {told}; first: {worst.name}: {worst.what}'
