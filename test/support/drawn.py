"""What figures of reports hold."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np


def unpacked(values: Mapping[str, str]) -> np.ndarray:
    """Return the numbers that a figure holds packed."""
    return np.frombuffer(base64.b64decode(values['packed']), dtype='<f4')
