"""Registries: values by name, from this package and from others by their entry points.

A package adds a verb, an estimator or a part of a node by an entry point of the registry's group.
What it names is imported when it is first used. Packages that are not installed add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from robot_dynid.errors import MissingDependency

Value = TypeVar('Value')


class Registry(MutableMapping[str, Value]):
    """Values by name: ``values``, and the entry points of a ``group`` of installed packages.

    ``values`` may be entry points too, which are loaded when they are first asked for. Loading
    raises MissingDependency where a module cannot be imported.
    """

    def __init__(self, group: str, values: Mapping[str, Value | EntryPoint]) -> None:
        self._values: dict[str, Any] = dict(values)
        self._absent: dict[str, str] = {}
        for entry in _installed().select(group=group):
            package = entry.module.partition('.')[0]
            if _importable(package):
                self._values[entry.name] = entry
            else:
                self._absent[entry.name] = package

    def __getitem__(self, name: str) -> Value:
        value = self._values[name]
        if isinstance(value, EntryPoint):
            value = self._values[name] = _loaded(value)
        return cast(Value, value)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def require(self, name: str) -> None:
        """Raise MissingDependency for a name whose package is not installed here."""
        if name in self._absent:
            raise MissingDependency(f'{name} needs the package {self._absent[name]}, which is '
                                    f'not installed here: see docs/install.md')


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        if entry.module.startswith('robot_dynid.'):
            raise
        raise MissingDependency(f'{entry.name} of {entry.module} cannot be loaded: {error}; '
                                'repair or uninstall that package') from error


@cache
def _installed() -> Any:
    """Return the entry points of all installed packages."""
    return entry_points()


def _importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
