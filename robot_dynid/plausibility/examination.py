"""Examinations of single recordings before any fit, and their storage for comparisons."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.finding import Finding
from robot_dynid.scratch import Kept, Scratch

#: examinations that stay whole in memory: 0.1 MB each for seven joints
IN_MEMORY = 32


@dataclass(frozen=True, eq=False)
class Examination:
    """Findings about one recording, and its excerpt and digests for the comparison with others.

    ``rows`` a thinned excerpt; ``samples`` (k,) digests of its content; ``accepted`` kinds of
    findings that are known to be meant so. Its length is the number of ``rows``.
    """

    source: str
    findings: tuple[Finding, ...]
    rows: Excerpt
    samples: NDArray[np.uint64]
    accepted: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class StoredExamination:
    """An Examination whose excerpt and digests are in scratch space, read when asked for."""

    source: str
    findings: tuple[Finding, ...]
    accepted: tuple[str, ...]
    scratch: Scratch
    tables: tuple[Kept, ...]
    digests: Kept

    def __len__(self) -> int:
        return self.tables[0].shape[0]

    @property
    def rows(self) -> Excerpt:
        """The thinned excerpt."""
        found: dict[str, Any] = {f.name: self.scratch.get(table) for f, table in zip(
            fields(Excerpt), self.tables, strict=True)}
        return replace(Excerpt(**found), step=float(found['step'][0]))

    @property
    def samples(self) -> NDArray[np.uint64]:
        """The digests (k,)."""
        return self.scratch.get(self.digests)


Examined = Examination | StoredExamination


class Shelf:
    """Keeps examinations: the first IN_MEMORY as they are, others in scratch space."""

    def __init__(self) -> None:
        self._scratch, self._count = Scratch(), 0

    def put(self, one: Examined) -> Examined:
        """Return an examination as it is kept; raises NoRoom when the disk is full."""
        self._count += 1
        if self._count <= IN_MEMORY or isinstance(one, StoredExamination):
            return one
        tables = tuple(self._scratch.put(np.atleast_1d(getattr(one.rows, f.name)))
                       for f in fields(Excerpt))
        return StoredExamination(one.source, one.findings, one.accepted,
                                 self._scratch, tables, self._scratch.put(one.samples))
