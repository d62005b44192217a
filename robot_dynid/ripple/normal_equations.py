"""Least squares of waves over one residual, fold by fold: errors of the rows left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.ripple.model import COLUMNS, SHARES
from robot_dynid.ripple.scan import JointResidual
from robot_dynid.ripple.wave_columns import WaveColumns, pieces
from robot_dynid.types import FloatArray

#: ridge of the coefficients, as a share of the rows; shares of amplitudes may be alike
RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Columns (N, k) and their products with each other and the residual of ``data``, by fold.

    ``grams`` (f, k, k), ``sides`` (f, k).
    """

    data: JointResidual
    columns: WaveColumns
    grams: FloatArray
    sides: FloatArray

    @classmethod
    def of(cls, data: JointResidual, columns: WaveColumns) -> NormalEquations:
        """Return those of ``columns`` (N, k)."""
        folds = 1 + max(fold for fold, _ in data.stretches)
        none = WaveColumns(columns.shares, columns.waves[:0])
        return cls(data, none, np.empty((folds, 0, 0)), np.empty((folds, 0))).joined(columns)

    def joined(self, more: WaveColumns) -> NormalEquations:
        """Return them with ``more`` columns (N, m) behind: products of the others are known."""
        known, count, folds = self.columns.count, self.columns.count + more.count, len(self.grams)
        grams, sides = np.zeros((folds, count, count)), np.zeros((folds, count))
        grams[:, :known, :known], sides[:, :known] = self.grams, self.sides
        for fold, stretch in self.data.stretches:
            for rows in pieces(stretch):
                new = more.rows(rows)
                grams[fold, :known, known:] += self.columns.rows(rows) @ new.T
                grams[fold, known:, known:] += new @ new.T
                sides[fold, known:] += new @ self.data.residual[rows]
        grams[:, known:, :known] = grams[:, :known, known:].transpose(0, 2, 1)
        return NormalEquations(self.data, self.columns.beside(more), grams, sides)

    def solved(self) -> FloatArray:
        """Return the coefficients (k,) of all rows."""
        return np.asarray(np.linalg.solve(
            ridged(self.grams.sum(axis=0)), self.sides.sum(axis=0)))

    def left(self) -> FloatArray:
        """Return the errors (N,) [N m] of the coefficients of all rows."""
        return np.asarray(self.data.residual - self.columns.times(self.solved()[:, None])[:, 0])

    def held_out(self) -> FloatArray:
        """Return the errors (N,) [N m] of every fold by coefficients of the others."""
        errors, others = self.data.residual.copy(), of_others(self.grams, self.sides)
        for fold, stretch in self.data.stretches:
            errors[stretch] -= self.columns.times(others[fold][:, None], stretch)[:, 0]
        return errors


def squares_alone(
    data: JointResidual, residual: FloatArray, waves: WaveColumns
) -> FloatArray:
    """Return the sums (w,) of the squares of `held_out` of each of the ``waves`` by itself.

    For the ``residual`` (N,) [N m] in the rows of ``data``. Products of columns are those of two
    shares times those of sine and cosine, so neither columns nor errors are made.
    """
    count, folds = len(waves.waves), 1 + max(fold for fold, _ in data.stretches)
    products = np.zeros((folds, count, SHARES, SHARES, 3))
    by_share = np.zeros((folds, count, SHARES, 2))
    for fold, stretch in data.stretches:
        for rows in pieces(stretch):
            shares, both = waves.shares[:, rows], waves.waves[:, :, rows]
            sine, cosine = both[:, 0], both[:, 1]
            squares = np.stack([sine * sine, sine * cosine, cosine * cosine], axis=1)
            pairs = (shares[:, None] * shares).reshape(SHARES * SHARES, -1)
            products[fold] += (pairs @ squares.swapaxes(1, 2)).reshape(products.shape[1:])
            by_share[fold] += (shares * residual[rows]) @ both.swapaxes(1, 2)
    # sine with sine, with cosine, and cosine with cosine, of two shares
    grams = products[..., [[0, 1], [1, 2]]].swapaxes(3, 4).reshape(folds, count, COLUMNS, COLUMNS)
    sides = by_share.reshape(folds, count, COLUMNS)
    others = of_others(grams, sides)
    explained = 2.0 * np.einsum('fwk,fwk->w', others, sides)
    explained -= np.einsum('fwk,fwkl,fwl->w', others, grams, others)
    return np.asarray(residual @ residual - explained)


def of_others(grams: FloatArray, sides: FloatArray) -> FloatArray:
    """Return the coefficients (f, ..., k) of all folds but each.

    Of ``grams`` (f, ..., k, k) and ``sides`` (f, ..., k).
    """
    left = sides.sum(axis=0) - sides
    return np.asarray(np.linalg.solve(ridged(grams.sum(axis=0) - grams), left[..., None])[..., 0])


def ridged(grams: FloatArray) -> FloatArray:
    """Return Gram matrices (..., k, k) with the ridge of the coefficients."""
    one = np.eye(grams.shape[-1])
    return np.asarray(grams * (1.0 + RIDGE * one) + 1e-12 * one)
