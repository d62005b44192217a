"""Numbers and names as the report writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_dynid.document import DASH, number


def setting(value: Any) -> str:
    """Return one setting of the model file in one line."""
    if isinstance(value, dict):
        return ', '.join(f'{key} {setting(item)}' for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ', '.join(setting(item) for item in value)
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    return DASH if value is None else str(value)


def name(key: str) -> str:
    """Return the key of a setting as words."""
    return key.replace('_', ' ')
