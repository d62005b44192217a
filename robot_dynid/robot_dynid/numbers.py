"""Numbers that users give: each has a range, stated beside its key, that nothing real leaves.

Ranges are generous: they keep out what is another unit by many orders, what overflows, and what
would take the computer for days. What is unusual but possible is none of their business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.errors import DynIdError, UsageError, clipped
from robot_dynid.types import FloatArray, frozen

#: key of the metadata of a dataclass field that holds its NumberRange in files; users do not give
#: it, as they do what is declared by `robot_dynid.settings`
BOUNDS = 'bounds'


@dataclass(frozen=True)
class NumberRange:
    """Numbers from ``low`` to ``high``, both included, of a ``unit``; ``whole`` ones only.

    ``note`` says why, where it is not plain; ``words`` may stand for a number.
    """

    low: float
    high: float
    unit: str = ''
    whole: bool = False
    note: str = ''
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f'{self.low:g} to {self.high:g}{self.unit and " " + self.unit}'

    def read(self, value: Any, where: str, error: type[DynIdError] = UsageError) -> float:
        """Return ``value``, an int or float of the range; raises ``error`` beginning with where.

        A truth value is no number, nor is a text of digits.
        """
        if not is_number(value) or not _finite(value):
            raise error(f'{where} must be a finite number, is {shown(value)} '
                        f'(range {self})')
        if self.whole and value != int(value):
            raise error(f'{where} must be a whole number, is {shown(value)}')
        if not self.low <= value <= self.high:
            raise error(self._refusal(where, value))
        return int(value) if self.whole else float(value)

    def read_whole(self, value: Any, where: str, error: type[DynIdError] = UsageError) -> int:
        """Return ``value`` as `read` does, as an int."""
        return int(self.read(value, where, error))

    def array(
        self, value: Any, shape: tuple[int, ...], where: str, error: type[DynIdError] = UsageError
    ) -> FloatArray:
        """Return lists of numbers, each of the range, as an array of ``shape``, such as (n, 3).

        Raises ``error`` beginning with where.
        """
        if not shape:
            return frozen(self.read(value, where, error))
        numbers = number_array(value)
        if numbers is None or numbers.shape != shape or not np.all(np.isfinite(numbers)):
            lists = ''.join(f'{count} lists of ' for count in shape[:-1])
            raise error(f'{where} must be {lists or "a list of "}{shape[-1]} finite numbers, is '
                        f'{shown(value)}')
        outside = numbers[(numbers < self.low) | (numbers > self.high)]
        if outside.size:
            raise error(self._refusal(where, float(outside[0])))
        return frozen(numbers)

    def _refusal(self, where: str, value: Any) -> str:
        if value > self.high:
            needed = f'at most {self.high:g}'
        elif self.low > 0.0 and value <= 0.0 and not self.whole:
            needed = 'positive'
        else:
            needed = f'at least {self.low:g}'
        return (f'{where} must be {needed}, is {shown(value)}{self.note and ": " + self.note} '
                f'(range {self})')


def is_number(value: Any) -> bool:
    """Return whether a value is an int or float, no truth value."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Return a value as a message shows it, however long it is."""
    try:
        short = f'{value:g}' if type(value) is float else ''
        return clipped(short if short and float(short) == value else repr(value))
    except (ValueError, RecursionError):
        return f'a very long {type(value).__name__}'


def _finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def number_array(value: Any) -> FloatArray | None:
    """Return nested lists of numbers as an array (n, m, ...), None for anything else."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind in 'iuf' else None
    if not isinstance(value, (list, tuple)) or not all(map(is_number, _leaves(value))):
        return None
    try:
        return np.array(value, dtype=np.float64)
    except (ValueError, OverflowError):
        return None


def _leaves(value: Any) -> Iterator[Any]:
    for one in value:
        if isinstance(one, (list, tuple)):
            yield from _leaves(one)
        else:
            yield one


# Ranges of physical quantities; for prismatic joints read m for rad and N for N m.
LENGTH = NumberRange(-1e4, 1e4, 'm')
SIZE = NumberRange(1e-6, 1e4, 'm')
MASS = NumberRange(1e-9, 1e7, 'kg')
MOMENT_OF_INERTIA = NumberRange(-1e10, 1e10, 'kg m^2')
ANGLE = NumberRange(-1e4, 1e4, 'rad')
DIRECTION = NumberRange(-1e6, 1e6)
GRAVITY = NumberRange(-1e3, 1e3, 'm/s^2')
#: exporters write 1e16 for a joint that turns without end
POSITION_LIMIT = NumberRange(-1e17, 1e17, 'rad or m')
POSITION = NumberRange(-1e6, 1e6, 'rad or m')
SPEED = NumberRange(1e-9, 1e5, 'rad/s or m/s')
SECONDS = NumberRange(1e-3, 1e5, 's')
FREQUENCY = NumberRange(1e-6, 1e5, 'Hz')
#: of velocity, acceleration, jerk and effort; more than any joint has, as exporters write it
LARGEST = NumberRange(1e-9, 1e17)
AMOUNT = NumberRange(0.0, 1e12)
TRAVEL = NumberRange(1e-9, 1e3, 'rad or m')
TEMPERATURE = NumberRange(-273.15, 1e4, 'deg C')
