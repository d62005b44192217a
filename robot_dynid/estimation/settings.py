"""Settings that users give: fields of a frozen dataclass, each with its reader and its help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.numbers import RANGE, NumberRange, shown

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


def number_setting(default: Any, allowed: NumberRange, text: str) -> Any:
    """Return the field of a dataclass that users may set to a number of a range.

    None is read where it is the default, and a word of the range.
    """
    def read(value: Any, key: str) -> Any:
        if (value is None and default is None) or (
                isinstance(value, str) and value in allowed.words):
            return value
        return allowed.read(value, key)

    return field(default=default, metadata={SETTING: Setting(read, text), RANGE: allowed})


def settings_of(owner: type) -> dict[str, Setting]:
    """Return the settings of a dataclass by key."""
    return {f.name: f.metadata[SETTING] for f in fields(owner) if SETTING in f.metadata}


def read_settings(owner: type, content: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the values of the known keys in ``content``. Raises UsageError naming the key."""
    known = settings_of(owner)
    return {key: known[key].read(value, f'{source}: {key}') for key, value in content.items()}


def read_word(value: Any, key: str) -> str:
    """Return a name, for a dataclass that knows which there are."""
    if not isinstance(value, str):
        raise UsageError(f'{key} must be a name, is {shown(value)}')
    return value


def read_flag(value: Any, key: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise UsageError(f'{key} must be true or false')
    return value
