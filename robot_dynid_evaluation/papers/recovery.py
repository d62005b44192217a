"""Parameters of our own simulations, found again: errors beside deviations and efforts.

An estimate is recovered where its error is within DEVIATIONS of its stated deviation, and that
deviation is small: what one deviation changes is below SHARE of the effort of the joint that shows
it most. The second keeps a deviation that is stated too large from excusing any error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers import RECOVERED, Row

#: deviations within which a single figure is, in all but one of 15 000 cases
DEVIATIONS = 4.0
#: share of a joint's effort that one deviation may change
SHARE = 0.02


def effort_shares(information: Information, directions: ArrayLike) -> FloatArray:
    """Return the shares (k,) of the effort that changes of base parameters make.

    ``directions`` (k, b) are the changes. A share is the root mean square of the effort that a
    change adds, over that of the filtered effort, in the joint where it is largest.
    """
    changes = np.asarray(directions, dtype=np.float64)
    size = information.size(FILTERED)
    shares = np.zeros((len(information.structure), len(changes)))
    for row in np.flatnonzero(size > 0.0):
        columns = information.expanded(int(row))[:, :-EXTRA]
        energy = np.sum((columns @ changes.T) ** 2, axis=0) / information.samples
        shares[row] = np.sqrt(energy) / size[row]
    return np.asarray(shares.max(axis=0))


def recovered(
    quantity: str, true: float | str, ours: float | str, found: tuple[float, float, float],
    note: str = '', limit: float = SHARE,
) -> Row:
    """Return a row about a parameter of our own simulation, ``true`` and ``ours``.

    ``found`` holds its error, its deviation, and the share of the effort that a unit of it makes;
    one deviation makes at most ``limit``.
    """
    error, deviation, effect = map(float, found)
    share = deviation * effect  # of the deviation that is told: neither can be stated alone
    ok = bool(abs(error) <= DEVIATIONS * deviation and share <= limit)
    told = f'error {error:+.1e}, deviation {deviation:.1e}, {100.0 * share:.2g} % of the effort'
    return Row(quantity, true, ours, RECOVERED, ok, f'{told}; {note}' if note else told)
