"""Frozen dataclasses as plain types, for files and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import clipped
from robot_dynid.numbers import BOUNDS, is_number, number_array, shown
from robot_dynid.types import frozen

T = TypeVar('T')
#: origin of the hints of arrays: np.ndarray, or since NumPy 2.5 an alias of it
ARRAY = get_origin(NDArray[np.float64])
#: finite numbers are at most as large, so that their squares are finite, too
LARGEST_NUMBER = 1e100


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


def from_plain(kind: type[T], content: Any, where: str = '') -> T:
    """Return the dataclass ``kind`` that `to_plain` wrote as ``content``.

    A field that is missing takes its default. Raises ValueError that begins with the key, below
    ``where``, which is missing, unknown, of another type or, where its field has a range, outside
    of it; DynIdError as ``kind`` does.
    """
    hints = _hints(kind)  # type: ignore[arg-type]
    if not isinstance(content, Mapping):
        raise _wrong(where or kind.__name__, 'a mapping', content)
    unknown = sorted(map(str, set(content) - set(hints)))
    if unknown:
        raise ValueError(f'{where or kind.__name__} has no {clipped(", ".join(unknown))}')
    missing = [f.name for f in fields(kind)  # type: ignore[arg-type]
               if f.default is f.default_factory is MISSING and f.name not in content]
    if missing:
        raise ValueError(f'{where or kind.__name__} lacks {", ".join(missing)}')
    values = {name: _read(hints[name], value, _below(where, name))
              for name, value in content.items()}
    try:
        made = kind(**values)
    except ValueError as error:
        raise ValueError(f'{where}: {error}' if where else str(error)) from None
    for f in fields(kind):  # type: ignore[arg-type]
        value = getattr(made, f.name)
        if BOUNDS in f.metadata and not (type(value) is type(f.default) and value == f.default):
            for one in value if isinstance(value, tuple) else (value,):
                f.metadata[BOUNDS].read(one, _below(where, f.name))
    return made


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _below(where: str, key: str) -> str:
    return f'{where}.{key}' if where else key


def _wrong(where: str, expected: str, value: Any) -> ValueError:
    return ValueError(f'{where} must be {expected}, is {shown(value)}')


#: how messages call the types of fields
WORDS = {bool: 'true or false', int: 'a whole number', float: f'a number up to {LARGEST_NUMBER:g}',
         str: 'text'}


def _read(hint: Any, value: Any, where: str) -> Any:
    """Return a plain ``value`` as the type of a field; raises ValueError beginning with where."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        kinds = [kind for kind in inner if kind is not type(None)]
        absent = value is None and len(kinds) < len(inner)
        return None if absent else _read(kinds[0], value, where)
    if origin is ARRAY:
        numbers = number_array(value)
        size = None if numbers is None else np.abs(numbers)
        if size is None or np.any((size > LARGEST_NUMBER) & (size < np.inf)):
            raise _wrong(where, f'lists of numbers up to {LARGEST_NUMBER:g}', value)
        return frozen(numbers)
    if origin is tuple:
        return _read_tuple(inner, value, where)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(where, 'a mapping', value)
        return {str(key): _read(inner[1], item, _below(where, clipped(str(key))))
                for key, item in value.items()}
    if is_dataclass(hint):
        return from_plain(hint, value, where)  # type: ignore[arg-type]
    return value if hint is Any else _read_scalar(hint, value, where)


def _read_scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is float and is_number(value) and not LARGEST_NUMBER < abs(value) < np.inf:
        return float(value)
    if hint is float or not isinstance(value, hint) \
            or (hint is not bool and isinstance(value, bool)):
        raise _wrong(where, WORDS[hint], value)
    return value


def _read_tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong(where, 'a list', value)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise _wrong(where, f'a list of {len(kinds)}', value)
    return tuple(_read(kind, item, f'{where}[{i}]')
                 for i, (kind, item) in enumerate(zip(kinds, value, strict=True)))
