"""Frozen dataclasses as plain types, for files and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import frozen

T = TypeVar('T')
#: origin of the hints of arrays: np.ndarray, or since NumPy 2.5 an alias of it
ARRAY = get_origin(NDArray[np.float64])


def to_plain(value: Any) -> Any:
    """Return dataclasses and mappings as dicts, tuples and arrays as lists, numbers as they are.

    Raises TypeError for anything else.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f'{type(value).__name__} is no plain type')


def from_plain(kind: type[T], content: Any) -> T:
    """Return the dataclass ``kind`` that `to_plain` wrote as ``content``.

    A field that is missing takes its default. Raises ValueError, TypeError where the content is
    not that of ``kind``.
    """
    hints = _hints(kind)  # type: ignore[arg-type]
    if not isinstance(content, Mapping):
        raise ValueError(f'{kind.__name__} must be a mapping, is {content!r}')
    unknown = sorted(map(str, set(content) - set(hints)))
    if unknown:
        raise ValueError(f'{kind.__name__} has no {", ".join(unknown)}')
    return kind(**{name: _read(hints[name], value) for name, value in content.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    known = get_type_hints(kind)
    return {f.name: known[f.name] for f in fields(kind)}


def _read(hint: Any, value: Any) -> Any:
    """Return a plain ``value`` as the type of a field."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        own = [kind for kind in inner if kind is not type(None)]
        return None if value is None and len(own) < len(inner) else _read(own[0], value)
    if origin is ARRAY:
        return frozen(value)
    if origin is tuple:
        if isinstance(value, (str, bytes)):
            raise ValueError(f'{value!r} is no list')
        kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(one, item) for one, item in zip(kinds, value, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {str(key): _read(inner[1], item) for key, item in value.items()}
    if hint is Any:
        return value
    if is_dataclass(hint):
        return from_plain(hint, value)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise ValueError(f'{value!r} is not {hint.__name__}')
    return value
