"""Diagnoses of an installation or a live system: finding, location, remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robot_dynid.execution.checklist import Item, Level
from robot_dynid.plausibility.finding import Finding, Severity

OK, WARN, ERROR = Level.OK, Level.WARN, Level.ERROR
#: printed levels
LEVELS = {OK: 'ok', WARN: 'warning', ERROR: 'error'}


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of one thing.

    ``name`` of the thing, ``where`` it is (a library, a variable, a topic), ``what`` is the
    finding, ``remedy`` empty if none is needed; ``values`` measured, by name.
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
    """Convert an item of the pre-motion checklist to a diagnosis."""
    what, remedy = item.parts
    return Diagnosis(item.name, item.level, where, what, remedy, item.values)


def of_finding(finding: Finding, where: str) -> Diagnosis:
    """Convert a finding of the plausibility checks to a diagnosis."""
    level = ERROR if finding.severity is Severity.REFUSE else WARN
    joints = f' of {", ".join(finding.joints)}' if finding.joints else ''
    return Diagnosis(finding.kind, level, f'{where}{joints}', finding.looks_like, finding.remedy)


def verdict(diagnoses: Sequence[Diagnosis]) -> str:
    """Summarise the number of errors and warnings, and the first of them, in one sentence."""
    counts = {level: sum(one.level is level for one in diagnoses) for level in (ERROR, WARN)}
    if not any(counts.values()):
        return f'{len(diagnoses)} checks, all ok'
    worst = next(one for level in (ERROR, WARN) for one in diagnoses if one.level is level)
    counted = ', '.join(f'{count} {LEVELS[level]}{"s" * (count != 1)}'
                        for level, count in counts.items() if count)
    return f'{len(diagnoses)} checks: {counted}; first: {worst.name}: {worst.what}'
