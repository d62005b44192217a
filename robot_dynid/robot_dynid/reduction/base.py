"""The result of a reduction: the pivot columns, and how the other parameters enter them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import RobotError
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: most joints of a robot to reduce; the time grows with their cube
MAX_REDUCED_JOINTS = 64


def check_size(robot: RobotModel) -> None:
    """Raise RobotError for a robot with more than MAX_REDUCED_JOINTS joints."""
    if robot.n > MAX_REDUCED_JOINTS:
        raise RobotError(f'{robot.name} has {robot.n} joints, more than {MAX_REDUCED_JOINTS}: '
                         'list those that move under "joints" in a robot YAML, which locks the '
                         'others')


@dataclass(frozen=True, eq=False)
class Reduction:
    """Base parameters: ``base = matrix @ standard``.

    ``standard`` (p,) names; ``pivots`` (b,) indices of the leftmost independent columns;
    ``matrix`` (b, p), identity on the pivots, no coefficient above 100 in lengths of the robot;
    ``gap`` the ratio of the smallest independent to the largest dependent singular value, far
    above one if the rank is certain, infinite if it was counted instead of measured; ``warnings``
    about the rank.
    """

    standard: tuple[str, ...]
    pivots: NDArray[np.int64]
    matrix: FloatArray
    gap: float
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters: those of the pivots."""
        return tuple(self.standard[i] for i in self.pivots)

    @property
    def labels(self) -> tuple[str, ...]:
        """Each base parameter as a combination, such as ``Izz1 + 0.1296*m2``; for display."""
        return tuple(combination_label(row, self.standard, int(k))
                     for row, k in zip(self.matrix, self.pivots, strict=True))

    def base(self, standard: ArrayLike) -> FloatArray:
        """Return the base parameters (b,) of standard parameters (p,)."""
        product: FloatArray = self.matrix @ np.asarray(standard, dtype=np.float64)
        return product

    def standard_values(self, base: ArrayLike) -> FloatArray:
        """Return standard parameters (p,) with the same torque; dependent ones are zero."""
        values = np.zeros(len(self.standard))
        values[self.pivots] = np.asarray(base, dtype=np.float64)
        return values


#: coefficients below this share of the largest are rounding: lengths of 0.1 mm, squared, in m
ROUNDING = 1e-8


def combination_label(row: FloatArray, names: tuple[str, ...], first: int) -> str:
    """Return the linear combination ``row`` (p,) of ``names`` as text, starting with number
    ``first``, without coefficients below ROUNDING.
    """
    shown = np.abs(row) >= ROUNDING * np.abs(row).max()
    terms = [('-' if row[first] < 0.0 else '') + _term(row, names, first)]
    terms += [f'{"-" if row[i] < 0.0 else "+"} {_term(row, names, i)}'
              for i in np.flatnonzero(shown).tolist() if i != first and row[i]]
    return ' '.join(terms)


def _term(row: FloatArray, names: tuple[str, ...], i: int) -> str:
    size = f'{float(f"{abs(row[i]):.9g}"):.6g}'  # rounding must not change the sixth digit
    return names[i] if size == '1' else f'{size}*{names[i]}'
