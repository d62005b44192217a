"""Stretches of time and recordings, as groups of batches."""

from __future__ import annotations

import numpy as np

from robot_dynid.estimation.information import Batch, Information, merged_batch

#: stretches the data is cut into; their number less one is the degrees of freedom
STRETCHES = 8


def stretches(count: int, groups: int = STRETCHES) -> list[list[int]]:
    """Cut ``count`` batches into ``groups`` contiguous groups, or as many as there are."""
    return [list(map(int, part)) for part in np.array_split(np.arange(count), min(groups, count))]


def long_batches(information: Information) -> list[Batch]:
    """Return the information in a few long batches."""
    batches = information.batches
    return [merged_batch([batches[i] for i in part]) for part in stretches(len(batches))]


def recordings(information: Information) -> list[list[int]]:
    """Return the batches of every recording."""
    found: dict[int, list[int]] = {}
    for i, batch in enumerate(information.batches):
        found.setdefault(batch.recording, []).append(i)
    return list(found.values())
