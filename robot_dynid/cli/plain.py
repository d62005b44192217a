"""Results as JSON: plain types, and null where there is no finite number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

#: a control character that is ASCII, so that `json` leaves it as it is
DELETE = '\x7f'


def plain(value: Any) -> Any:
    """Return ``value`` in types JSON has; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, 'tolist'):  # arrays and scalars of NumPy
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):  # names of files may be no text
        return value.encode('utf-8', 'backslashreplace').decode()
    if value is None or isinstance(value, (bool, int)):
        return value
    return str(value)


def as_json(value: Any) -> str:
    """Return one line of JSON; everything in it any parser can read, nothing a terminal obeys."""
    text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False)
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else escaped(c) for c in text)


def escaped(character: str) -> str:
    """Return a character as JSON writes it in ASCII."""
    return json.dumps(character)[1:-1] if character > DELETE else f'\\u{ord(character):04x}'
