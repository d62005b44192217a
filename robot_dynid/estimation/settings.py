"""Settings that users give: fields of a frozen dataclass, each with its reader and its help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dynid.errors import UsageError

#: key of the metadata of a field that holds its Setting
SETTING = 'setting'

#: turns a plain value into that of the field; raises UsageError, which begins with the key given
Reader = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Setting:
    """Reader of a setting of files and the command line, and its help text."""

    read: Reader
    help: str


def setting(default: Any, read: Reader, text: str) -> Any:
    """Return the field of a dataclass that users may set."""
    return field(default=default, metadata={SETTING: Setting(read, text)})


def settings_of(owner: type) -> dict[str, Setting]:
    """Return the settings of a dataclass by key."""
    return {f.name: f.metadata[SETTING] for f in fields(owner) if SETTING in f.metadata}


def read_settings(owner: type, content: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the values of the known keys in ``content``. Raises UsageError naming the key."""
    known = settings_of(owner)
    return {key: known[key].read(value, f'{source}: {key}') for key, value in content.items()}


def read_plain(value: Any, key: str) -> Any:
    """Return a value as it is, for a dataclass that checks it itself."""
    return value


def read_number(value: Any, key: str) -> float | None:
    """Return a number, or None for none."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f'{key} must be a number, is {value!r}') from None


def read_whole_number(value: Any, key: str) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f'{key} must be a whole number, is {value!r}')
    return value


def read_flag(value: Any, key: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise UsageError(f'{key} must be true or false')
    return value
