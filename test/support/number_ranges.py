"""The ranges of numbers of settings, for tests that try what lies beyond them."""

from __future__ import annotations

from dataclasses import fields

from robot_dynid.numbers import RANGE, NumberRange


def ranges_of(owner: type) -> dict[str, NumberRange]:
    """Return the ranges of a dataclass by the names of its fields."""
    return {f.name: f.metadata[RANGE] for f in fields(owner) if RANGE in f.metadata}
