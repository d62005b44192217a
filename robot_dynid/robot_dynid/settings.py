"""Settings that users give: fields of frozen dataclasses that say what they take.

One declaration serves every way a setting is given: a recipe, options of a design or a method,
the command line, and parameters of a node (`robot_dynid.ros.common.params`). They are plain
dataclasses: of attrs, cattrs and pydantic the ROS distributions ship versions that differ in just
what would be used here (ranges, messages with the path of a key; pydantic 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from robot_dynid.errors import UsageError
from robot_dynid.numbers import NumberRange, is_number, shown

#: key of the metadata of a field that holds its Setting
SETTING = 'setting'
#: turns a plain value into that of the field; raises UsageError, which begins with the key given
Reader = Callable[[Any, str], Any]
WORDS: dict[type, str] = {bool: 'true or false', int: 'a whole number', float: 'a number',
                          str: 'a name'}


@dataclass(frozen=True)
class Setting:
    """One setting and the values it takes.

    These are numbers of a ``range``, ``choices``, what ``reader`` accepts, or values of type
    ``kind``, which is that of the elements where the ``default`` is a tuple.
    ``help`` is its description; one that is ``live`` may be set while a node runs.
    """

    default: Any
    help: str
    range: NumberRange | None
    choices: tuple[Any, ...]
    reader: Reader | None
    kind: type
    live: bool

    @property
    def allowed(self) -> str:
        """The range or the choices as text; '' without either."""
        if self.choices:
            return f'one of {", ".join(map(str, self.choices))}'
        return '' if self.range is None else str(self.range)

    def read(self, value: Any, where: str) -> Any:
        """Return a plain value as that of the setting; raises UsageError beginning with where."""
        if type(value) is type(self.default) and value == self.default:
            return value  # an infinite default stands for no limit, outside the range
        if self.reader is not None:
            return self.reader(value, where)
        if not isinstance(self.default, tuple):
            return self._read_one(value, where)
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, '__iter__'):
            raise UsageError(f'{where} must be a list, is {shown(value)}')
        return tuple(self._read_one(one, where) for one in value)

    def check(self, value: Any, where: str) -> None:
        """Raise UsageError for a value of the field that is outside of range or choices."""
        if self.allowed and not (type(value) is type(self.default) and value == self.default):
            for one in value if isinstance(value, tuple) else (value,):
                self._read_one(one, where)

    def _read_one(self, value: Any, where: str) -> Any:
        if self.range is not None:
            word = isinstance(value, str) and value in self.range.words
            absent = value is None and self.default is None
            return value if word or absent else self.range.read(value, where)
        if self.choices:
            if value not in self.choices:
                raise UsageError(f'{where} {shown(value)}: choose {self.allowed}')
            return value
        if self.kind is float and is_number(value):
            return float(value)
        if type(value) is not self.kind:
            raise UsageError(f'{where} must be {WORDS[self.kind]}, is {shown(value)}')
        return value


def setting(
    default: Any, allowed: NumberRange | tuple[Any, ...] | Reader | None = None, text: str = '',
    *, kind: type | None = None, live: bool = False,
) -> Any:
    """Return the field of a dataclass that users may set; ``text`` is its help.

    ``allowed`` is a range, choices, or a reader; None: values of type ``kind``, by default that of
    ``default``. A ``default`` that is a class is called for every object.
    """
    factory = isinstance(default, type)
    value = default() if factory else default
    metadata = {SETTING: Setting(
        value, text, allowed if isinstance(allowed, NumberRange) else None,
        allowed if isinstance(allowed, tuple) else (), allowed if callable(allowed) else None,
        kind or (float if isinstance(value, tuple) else type(value)), live)}
    return (field(default_factory=default, metadata=metadata) if factory else
            field(default=default, metadata=metadata))


def settings_of(owner: type) -> dict[str, Setting]:
    """Return the settings of a dataclass by key."""
    return {f.name: f.metadata[SETTING] for f in fields(owner) if SETTING in f.metadata}


def read_settings(owner: type, content: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the values of the known keys in ``content``. Raises UsageError naming the key."""
    settings = settings_of(owner)
    return {key: settings[key].read(value, f'{source}: {key}') for key, value in content.items()}


def require_allowed(settings: Any, named: str) -> None:
    """Raise UsageError where a setting of a dataclass is outside its range or choices.

    ``named`` is how the message calls a setting, such as ``option '{}'``.
    """
    for name, one in settings_of(type(settings)).items():
        one.check(getattr(settings, name), named.format(name))
