"""The gate before every fit: recordings that contradict the robot or themselves are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.plausibility.causes import ROWS, causes
from robot_dynid.plausibility.content import candidates, digests, merged, shared
from robot_dynid.plausibility.examination import Examination
from robot_dynid.plausibility.excerpt import WINDOWS, excerpt, joined, spread, thinned
from robot_dynid.plausibility.finding import Finding, Severity, accepted, checked_kinds
from robot_dynid.plausibility.stamps import stamp_findings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import check_usable
from robot_dynid.types import DAMAGE, RawLog

#: recordings share samples from the first share on; from the second on one is a copy
PART, COPY = 0.03, 0.9
#: so many recordings are tried with other motions, and how all are named
TOGETHER = 'all recordings together'


@dataclass(frozen=True, eq=False)
class Chosen(Sequence[RawLog]):
    """Some of a sequence of recordings, which are read when they are asked for."""

    logs: Sequence[RawLog]
    indices: tuple[int, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the recordings."""
        names = getattr(self.logs, 'sources', None)
        return tuple(str(names[i]) if names else self.logs[i].source for i in self.indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Chosen(self.logs, self.indices[index])
        return self.logs[self.indices[index]]


def examine(robot: RobotModel, log: RawLog) -> Examination:
    """Examine one recording; bounded work and memory whatever its length."""
    robot = robot.rigid
    rows = thinned(excerpt(robot, log), ROWS)
    found = stamp_findings(log)
    if not _refused(found):
        found += causes(robot, log.source, rows, lambda factor: thinned(excerpt(
            robot, replace(log, time=factor * log.time)), ROWS))
    return Examination(log.source, tuple(found), rows, digests(log), log.accepted)


def examine_recording(
    robot: RobotModel, source: str, parts: Sequence[RawLog]
) -> Examination:
    """Examine a recording that is read in one part or several; raises DataError as `repair`."""
    if len(parts) > 1:
        return examine_parts(robot, source, parts)
    log = parts[0]
    check_usable(robot, log)
    return examine(robot, log)


def examine_parts(robot: RobotModel, source: str, parts: Sequence[RawLog]) -> Examination:
    """Examine a long recording that is read part by part: WINDOWS of them, all for their samples.

    ``parts`` may overlap: a sample counts once.
    """
    chosen = set(np.linspace(0, len(parts) - 1, min(len(parts), WINDOWS)).astype(int).tolist())
    found, rows, samples = dict[tuple[str, tuple[str, ...]], Finding](), [], []
    kinds: tuple[str, ...] = ()
    for i, log in enumerate(parts):
        kinds = log.accepted
        if i in chosen:
            check_usable(robot, log)
            one = examine(robot, log)
            found = {(f.kind, f.joints): f for f in one.findings} | found
            rows.append(one.rows)
            samples.append(one.samples)
        else:
            samples.append(digests(log))
    return Examination(source, tuple(found.values()), thinned(joined(rows), ROWS),
                       merged(samples), kinds)


def plausible_recordings(
    robot: RobotModel, logs: Sequence[RawLog], accept: Iterable[str] = (),
    examinations: Iterable[Examination] | None = None,
) -> tuple[Sequence[RawLog], tuple[str, ...]]:
    """Return the recordings without copies, and warnings, among them damage of their files.

    ``accept`` holds kinds of findings (finding.KINDS) that are warnings then, beside those that
    are accepted of single recordings; ``examinations`` are those of the recordings where they
    have been examined. Raises DataError with every finding that is not accepted,
    and its remedy; UsageError for an unknown kind.
    """
    kinds = list(checked_kinds(accept))
    damage = list[str]()

    def examined_now() -> Iterator[Examination]:
        for source, told, parts in _recordings(logs):
            damage.extend(f'{source}: {text}' for text in told if text.startswith(DAMAGE))
            yield examine_recording(robot, source, parts)

    if examinations is None:
        examinations = examined_now()
    elif isinstance(logs, Parts):
        damage += [f'{one.source}: {text}' for one in logs.recordings for text in one.findings
                   if text.startswith(DAMAGE)]
    examined = list(examinations)
    for one in examined:
        kinds += checked_kinds(one.accepted)
    findings, copies = verdict(robot, examined)
    findings = accepted(findings, kinds)
    refused = [f for f in findings if f.severity is Severity.REFUSE]
    if refused:
        named = ', '.join(dict.fromkeys(f.kind for f in refused))
        raise DataError(
            f'{"; ".join(f.sentence for f in refused)}. If it is meant to be so, accept it with '
            f'--accept or the key accept of the recipe: {named}', tuple(refused))
    warnings = (*damage, *(f.sentence for f in findings))
    if not copies:
        return logs, warnings
    if isinstance(logs, Parts):
        return logs.chosen([i not in copies for i in range(len(examined))]), warnings
    return Chosen(logs, tuple(i for i in range(len(logs)) if i not in copies)), warnings


def _recordings(
    logs: Sequence[RawLog]
) -> Iterator[tuple[str, tuple[str, ...], Sequence[RawLog]]]:
    """Yield source, findings and parts of every recording, one part for one that is not cut."""
    if not isinstance(logs, Parts):
        yield from ((log.source, log.findings, (log,)) for log in logs)
        return
    first = 0
    for recording, stretches in zip(logs.recordings, logs.by_recording, strict=True):
        parts = Chosen(logs, tuple(range(first, first + len(stretches))))
        yield recording.source, recording.findings, parts
        first += len(stretches)


def verdict(
    robot: RobotModel, examined: Sequence[Examination]
) -> tuple[tuple[Finding, ...], frozenset[int]]:
    """Return the findings of all recordings, and which of them are copies of others."""
    findings = [f for one in examined for f in one.findings]
    twice, copies = _duplicates(examined)
    findings += twice
    if not _refused(findings):
        different = [one for i, one in enumerate(examined) if i not in copies]
        findings += _together(robot.rigid, different, {f.kind for f in findings})
    return tuple(findings), copies


def _together(
    robot: RobotModel, examined: Sequence[Examination], known: set[str]
) -> list[Finding]:
    """Return findings of all recordings together, and of those that are explained worst."""
    if len(examined) < 2:
        return []
    rows = spread([len(one) for one in examined], (one.rows for one in examined), ROWS)
    return [f for f in causes(robot, TOGETHER, rows) if f.kind not in known]


def _refused(findings: Iterable[Finding]) -> bool:
    return any(f.severity is Severity.REFUSE for f in findings)


def _duplicates(examined: Sequence[Examination]) -> tuple[list[Finding], frozenset[int]]:
    """Return findings about samples that several recordings hold, and which are copies."""
    found: list[Finding] = []
    copies: set[int] = set()
    pairs = candidates(len(examined), lambda i: examined[i].samples)
    for b, a in sorted((b, a) for a, b in pairs):
        first, second = examined[a], examined[b]
        if a not in copies and b not in copies:
            share = shared(first.samples, second.samples)
            if share > COPY:
                copies.add(b)
                found.append(Finding(
                    'duplicate', second.source, (), Severity.WARN,
                    f'{share:.0%} of its samples are in {first.source}, too: it looks like a '
                    'copy', 'it is left out, so that no sample counts twice'))
            elif max(share, back := shared(second.samples, first.samples)) > PART:
                found.append(Finding(
                    'duplicate', second.source, (), Severity.REFUSE,
                    f'{share:.0%} of its samples are in {first.source}, too, and {back:.0%} of '
                    'those in it: one looks like a part of the other', 'leave one of them out, or '
                    'cut what they share'))
    return found, frozenset(copies)
