"""The result of a reduction: which standard parameters are kept and how the others enter them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import RobotError
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: joints of a robot whose parameters are reduced; time grows with the cube of them
MOST_REDUCED_JOINTS = 64


def check_size(robot: RobotModel) -> None:
    """Raise RobotError for a robot of more joints than MOST_REDUCED_JOINTS."""
    if robot.n > MOST_REDUCED_JOINTS:
        raise RobotError(f'{robot.name} has {robot.n} joints; the parameters of at most '
                         f'{MOST_REDUCED_JOINTS} are reduced: list those that move under "joints" '
                         'in a robot YAML, the others are locked')


@dataclass(frozen=True, eq=False)
class Reduction:
    """``base = matrix @ standard``.

    ``standard`` (p,) names; ``kept`` (b,) indices of the kept, leftmost independent columns;
    ``matrix`` (b, p), identity on the kept columns, none of its coefficients above 100 in lengths
    of the robot; ``gap`` the ratio between the smallest independent and the largest dependent
    column, far above one when the rank is certain, and infinite when it was counted instead of
    measured; ``warnings`` what is doubtful about it.
    """

    standard: tuple[str, ...]
    kept: NDArray[np.int64]
    matrix: FloatArray
    gap: float
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters: those of the kept columns."""
        return tuple(self.standard[i] for i in self.kept)

    @property
    def labels(self) -> tuple[str, ...]:
        """Each base parameter as a combination, such as ``Izz1 + 0.1296*m2``; for display."""
        return tuple(combination_label(row, self.standard, int(k))
                     for row, k in zip(self.matrix, self.kept, strict=True))

    def base(self, standard: ArrayLike) -> FloatArray:
        """Return the base parameters (b,) of standard parameters (p,)."""
        product: FloatArray = self.matrix @ np.asarray(standard, dtype=np.float64)
        return product

    def standard_values(self, base: ArrayLike) -> FloatArray:
        """Return standard parameters (p,) of the same torque: the dependent ones are zero."""
        values = np.zeros(len(self.standard))
        values[self.kept] = np.asarray(base, dtype=np.float64)
        return values


def combination_label(row: FloatArray, names: tuple[str, ...], own: int) -> str:
    """Return the linear combination ``row`` (p,) of ``names`` as text, its own one first."""
    terms = [('-' if row[own] < 0.0 else '') + _term(row, names, own)]
    terms += [f'{"-" if row[i] < 0.0 else "+"} {_term(row, names, i)}'
              for i in np.flatnonzero(row).tolist() if i != own]
    return ' '.join(terms)


def _term(row: FloatArray, names: tuple[str, ...], i: int) -> str:
    size = f'{float(f"{abs(row[i]):.9g}"):.6g}'  # rounding must not decide the sixth digit
    return names[i] if size == '1' else f'{size}*{names[i]}'
