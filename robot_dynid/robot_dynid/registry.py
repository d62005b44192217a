"""Registries: values by name, from this package and from others by their entry points.

A package adds a verb, an estimator or a part of a node by an entry point of the registry's group.
What it names is imported when it is first used. Packages that are not installed add nothing, and
none replaces a value of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from robot_dynid.errors import MissingDependency

Value = TypeVar('Value')


@dataclass(frozen=True)
class Place:
    """The module of a value, and its name there; the module itself without one."""

    module: str
    name: str = ''

    def load(self) -> Any:
        """Import the value; raises ImportError or AttributeError."""
        module = import_module(self.module)
        return getattr(module, self.name) if self.name else module


class Registry(MutableMapping[str, Value]):
    """Values by name: ``values``, and the entry points of a ``group`` of installed packages.

    ``values`` may be places too, which are loaded when they are first asked for. Loading raises
    MissingDependency where a module cannot be imported.
    """

    def __init__(self, group: str, values: Mapping[str, Value | Place]) -> None:
        self._group: str | None = group
        self._values: dict[str, Any] = dict(values)
        self._absent: dict[str, str] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            self._add_packages()
        value = self._values[name]
        if isinstance(value, Place):
            value = self._values[name] = _loaded(name, value)
        return cast(Value, value)

    def __contains__(self, name: object) -> bool:
        if name not in self._values:
            self._add_packages()
        return name in self._values

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._add_packages()
        return iter(self._values)

    def __len__(self) -> int:
        self._add_packages()
        return len(self._values)

    def require(self, name: str) -> None:
        """Raise MissingDependency for a name whose package is not installed here."""
        if name not in self and name in self._absent:
            raise MissingDependency(f'{name} needs the package {self._absent[name]}, which is '
                                    f'not installed here: see docs/install.md')

    def _add_packages(self) -> None:
        """Add the entry points of installed packages, once; finding them takes long."""
        group, self._group = self._group, None
        for entry in () if group is None else _installed().select(group=group):
            package = entry.module.partition('.')[0]
            if _importable(package):
                self._values.setdefault(entry.name, Place(entry.module, entry.attr))
            else:
                self._absent[entry.name] = package


def _loaded(name: str, place: Place) -> Any:
    try:
        return place.load()
    except (ImportError, AttributeError) as error:
        if place.module.startswith('robot_dynid.'):
            raise
        raise MissingDependency(f'{name} of {place.module} cannot be loaded: {error}; '
                                'repair or uninstall that package') from error


@cache
def _installed() -> Any:
    """Return the entry points of all installed packages."""
    from importlib.metadata import entry_points  # takes as long as the verb `stop` can spare

    return entry_points()


def _importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
