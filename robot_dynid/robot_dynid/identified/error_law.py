"""The dependence of the squared error of the predicted effort on the motion.

The mean squared error of a joint grows with its acceleration, and while it is slow, because
friction then depends on the past. On motion of the recordings it is

    rest + share mean(inertial effort^2) + slow (share of the time near a reversal, or held).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.uncertainty.between_recordings import stretches
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.types import FloatArray

#: length [s] and least samples of the blocks whose squared errors are averaged
BLOCK_SECONDS, LEAST_SAMPLES = 1.0, 10
#: rounds of weights; a squared error below this share of the median counts as that
ROUNDS, LEAST_ERROR = 8, 0.1
#: share of a block in which a joint is swift, for its errors to count as those in swift motion
LEAST_SWIFT = 0.2


@dataclass(frozen=True)
class ErrorLaw:
    """Mean squared error by motion, see the module: ``rest``, ``slow`` [(N m)^2], ``share`` (n,).

    ``scatter`` is the deviation of the logarithm of the RMSE between stretches of the recordings,
    ``freedom`` its degrees of freedom.
    """

    rest: tuple[float, ...]
    share: tuple[float, ...]
    slow: tuple[float, ...]
    scatter: float = field(metadata={BOUNDS: NumberRange(0.0, 100.0)})
    freedom: float = field(metadata={BOUNDS: NumberRange(1.0, 1e6)})


def learn_error_law(
    recordings: Iterable[tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]]
) -> ErrorLaw | None:
    """Return the law of recordings: time (N,), errors, inertial efforts, and near (N, n) each.

    ``near`` is true where a joint is near a reversal, or held. None for recordings of less than
    two blocks.
    """
    blocks = [[part[rows].mean(axis=0) for part in parts]
              for time, *parts in ((time, error**2, near * error**2, inertia**2, near)
                                   for time, error, inertia, near in recordings)
              for rows in _blocks(time)]
    if len(blocks) < 2:
        return None
    groups = stretches(len(blocks))
    squares, slow_squares, causes, near = np.stack(blocks, axis=1)
    laws = np.array([_law(*columns) for columns in zip(
        causes.T, squares.T, slow_squares.T, near.T, strict=True)])
    expected = laws[:, 0] + laws[:, 1] * causes + laws[:, 2] * near
    scatter = np.array([0.5 * np.log(squares[group].mean(axis=0) / expected[group].mean(axis=0))
                        for group in groups])
    rest, share, slow = laws.T.tolist()
    return ErrorLaw(tuple(rest), tuple(share), tuple(slow),
                    float(np.sqrt(scatter.var(axis=0, ddof=1).mean())), len(groups) - 1.0)


def _blocks(time: FloatArray) -> list[NDArray[np.int64]]:
    """Return the rows of every block of a recording."""
    number = np.floor((time - time[:1]) / BLOCK_SECONDS)
    rows = np.split(np.arange(len(time), dtype=np.int64), np.flatnonzero(np.diff(number)) + 1)
    return [block for block in rows if len(block) >= LEAST_SAMPLES]


def _law(
    causes: FloatArray, squares: FloatArray, slow_squares: FloatArray, near: FloatArray
) -> tuple[float, float, float]:
    """Return rest, share, slow of squared errors (B,), whose deviation is in proportion to them.

    ``slow_squares`` (B,) is the part of them while the joint is slow, ``near`` (B,) the share of
    that time. Rest and share are those of the other time, if there is any.
    """
    from scipy.optimize import nnls

    swift = near < 1.0 - LEAST_SWIFT
    if not swift.any():
        return float(squares.mean()), 0.0, 0.0
    away = (squares - slow_squares)[swift] / (1.0 - near[swift])
    columns = np.stack([np.ones_like(causes), causes], axis=1)
    tiny = np.finfo(float).tiny ** 0.25
    expected = np.maximum(away, LEAST_ERROR * np.median(away)) + tiny
    for _ in range(ROUNDS):
        (rest, share), _ = nnls(columns[swift] / expected[:, None], away / expected)
        expected = columns[swift] @ (rest, share) + tiny
    slow = slow_squares.sum() - near @ (columns @ (rest, share))
    return float(rest), float(share), float(max(slow, 0.0) / max(near.sum(), 1.0))
