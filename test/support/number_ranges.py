"""The ranges of numbers of settings, for tests that try what lies beyond them."""

from __future__ import annotations

from robot_dynid.numbers import NumberRange
from robot_dynid.settings import settings_of


def ranges_of(owner: type) -> dict[str, NumberRange]:
    """Return the ranges of a dataclass by the names of its fields."""
    return {name: one.range for name, one in settings_of(owner).items() if one.range is not None}
