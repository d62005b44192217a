"""Checks before every fit: refuse recordings that contradict the robot or themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.plausibility.causes import FITTED_ROWS, causes
from robot_dynid.plausibility.content import candidates, digests, merge_digests, shared_share
from robot_dynid.plausibility.excerpt import (
    EXCERPT_WINDOWS,
    Excerpt,
    excerpt,
    join_excerpts,
    sample_excerpts,
    thin_excerpt,
)
from robot_dynid.plausibility.finding import Finding, Severity, accept_findings, check_kinds
from robot_dynid.plausibility.stamps import stamp_findings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import check_usable
from robot_dynid.types import DAMAGE, RawLog

#: share of common samples from which recordings overlap; from the second on one is a copy
PART, COPY = 0.03, 0.9


@dataclass(frozen=True, eq=False)
class Examination:
    """Findings about one recording, and the data to compare it with others.

    ``rows`` is a thinned excerpt, ``samples`` are digests (k,) of its content, ``accepted`` the
    kinds of findings that are accepted.
    """

    source: str
    findings: tuple[Finding, ...]
    rows: Excerpt
    samples: NDArray[np.uint64]
    accepted: tuple[str, ...] = ()

@dataclass(frozen=True, eq=False)
class Chosen(Sequence[RawLog]):
    """A selection from a sequence of recordings, read on access."""

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
    """Return the examination of one recording, with bounded work and memory."""
    return _examined(robot.rigid, log.source, (log,))


def examine_recording(robot: RobotModel, source: str, parts: Sequence[RawLog]) -> Examination:
    """Return the examination of a recording that is read in one or several parts.

    EXCERPT_WINDOWS of the parts are examined, together because a joint may move in one of them
    only; all are sampled. ``parts`` may overlap: a sample counts once. Raises DataError as
    `repair` does.
    """
    check_usable(robot, parts[0])
    return _examined(robot.rigid, source, parts)


def _examined(robot: RobotModel, source: str, parts: Sequence[RawLog]) -> Examination:
    chosen = np.linspace(0, len(parts) - 1, min(len(parts), EXCERPT_WINDOWS)).astype(int).tolist()
    findings, excerpts, samples = list[Finding](), list[Excerpt](), []
    accepted: tuple[str, ...] = ()

    def few(log: RawLog, factor: float = 1.0) -> Excerpt:
        return thin_excerpt(excerpt(robot, replace(log, time=factor * log.time)), FITTED_ROWS)

    def together(rows: Iterable[Excerpt]) -> Excerpt:
        return thin_excerpt(join_excerpts(list(rows)), FITTED_ROWS)

    for i, log in enumerate(parts):
        accepted = log.accepted
        samples.append(digests(log))
        if i in chosen:
            findings = findings or stamp_findings(log)
            excerpts.append(few(log))
    rows = together(excerpts)
    if not _refused(findings):
        findings += causes(robot, source, rows, lambda factor: together(
            few(parts[i], factor) for i in chosen))
    return Examination(source, tuple(findings), rows, merge_digests(samples), accepted)


def plausible_recordings(
    robot: RobotModel, logs: Sequence[RawLog], accept: Iterable[str] = (),
    examinations: Iterable[Examination] | None = None,
) -> tuple[Sequence[RawLog], tuple[str, ...]]:
    """Return the recordings without copies, and warnings, including damage of their files.

    ``accept`` holds kinds of findings (finding.KINDS) to turn into warnings, in addition to those
    accepted for single recordings; ``examinations`` are those of the recordings, if already made.
    Raises DataError with every finding that is not accepted and its remedy, UsageError for an
    unknown kind.
    """
    kinds = list(check_kinds(accept))
    damage = list[str]()

    def examine_all() -> Iterator[Examination]:
        recordings: Iterable[tuple[Any, Any]] = zip(
            logs.recordings, logs.by_recording, strict=True) if isinstance(logs, Parts) else (
                (log, None) for log in logs)
        first = 0
        for recording, stretches in recordings:
            parts = (recording,) if stretches is None else Chosen(
                logs, tuple(range(first, first + len(stretches))))
            first += len(parts)
            damage.extend(f'{recording.source}: {text}' for text in recording.findings
                          if text.startswith(DAMAGE))
            yield examine_recording(robot, recording.source, parts)

    if examinations is None:
        examinations = examine_all()
    elif isinstance(logs, Parts):
        damage += [f'{one.source}: {text}' for one in logs.recordings for text in one.findings
                   if text.startswith(DAMAGE)]
    examined = list(examinations)
    for one in examined:
        kinds += check_kinds(one.accepted)
    findings, copies = verdict(robot, examined)
    findings = accept_findings(findings, kinds)
    refused = [f for f in findings if f.severity is Severity.REFUSE]
    if refused:
        named = ', '.join(dict.fromkeys(f.kind for f in refused))
        raise DataError(
            f'{"; ".join(f.sentence for f in refused)}. If this is intended, accept it with '
            f'--accept or the key accept of the recipe: {named}', tuple(refused))
    warnings = (*damage, *(f.sentence for f in findings))
    if not copies:
        return logs, warnings
    if isinstance(logs, Parts):
        return logs.select([i not in copies for i in range(len(examined))]), warnings
    return Chosen(logs, tuple(i for i in range(len(logs)) if i not in copies)), warnings


def verdict(
    robot: RobotModel, examined: Sequence[Examination]
) -> tuple[tuple[Finding, ...], frozenset[int]]:
    """Return findings about each recording and all together, and the indices of copies."""
    duplicates, copies = _duplicates(examined)
    findings = [*(f for one in examined for f in one.findings), *duplicates]
    different = [one for i, one in enumerate(examined) if i not in copies]
    if not _refused(findings) and len(different) > 1:
        rows = sample_excerpts([one.rows for one in different], FITTED_ROWS)
        kinds = {f.kind for f in findings}
        findings += [f for f in causes(
            robot.rigid, 'all recordings together', rows) if f.kind not in kinds]
    return tuple(findings), copies


def _refused(findings: Iterable[Finding]) -> bool:
    return any(f.severity is Severity.REFUSE for f in findings)


def _duplicates(examined: Sequence[Examination]) -> tuple[list[Finding], frozenset[int]]:
    """Return findings about samples that several recordings share, and the indices of copies."""
    findings, copies = list[Finding](), set[int]()
    pairs = candidates(len(examined), lambda i: examined[i].samples)
    for b, a in sorted((b, a) for a, b in pairs):
        first, second = examined[a], examined[b]
        if a not in copies and b not in copies:
            share = shared_share(first.samples, second.samples)
            if share > COPY:
                copies.add(b)
                findings.append(Finding(
                    'duplicate', second.source, (), Severity.WARN,
                    f'{share:.0%} of its samples are also in {first.source}: it looks like a '
                    'copy', 'it is omitted, so that no sample counts twice'))
            elif max(share, back := shared_share(second.samples, first.samples)) > PART:
                findings.append(Finding(
                    'duplicate', second.source, (), Severity.REFUSE,
                    f'{share:.0%} of its samples are also in {first.source}, and {back:.0%} the '
                    'other way round: one looks like a part of the other', 'omit one of them, or '
                    'cut what they share'))
    return findings, frozenset(copies)
