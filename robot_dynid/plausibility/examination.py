"""Examinations of single recordings before any fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.finding import Finding


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
