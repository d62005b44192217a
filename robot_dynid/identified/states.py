"""States that users hand over: checked, and as float arrays of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.identified.caution import warn
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


def checked_states(
    model: IdentifiedModel, arrays: Mapping[str, ArrayLike]
) -> tuple[list[FloatArray], bool]:
    """Return the named arrays as (K, n) and whether they were single states (n,).

    Warns when ``model`` has refused joints. Raises UsageError on wrong shapes or numbers that are
    not finite, by the arrays' names.
    """
    warn(model)
    rows = [np.ascontiguousarray(a, dtype=np.float64) for a in arrays.values()]
    single, n = rows[0].ndim == 1, len(model.joints)
    if single:
        rows = [row[None] if row.ndim == 1 else row for row in rows]
    shape = rows[0].shape
    for name, row in zip(arrays, rows):
        if row.shape != shape or row.ndim != 2 or shape[1] != n:
            raise UsageError(f'{name} has shape {np.shape(arrays[name])}; expected ({n},) or '
                             f'(K, {n}), the same for all arguments')
        if not np.isfinite(row).all():
            k, j = np.argwhere(~np.isfinite(row))[0]
            raise UsageError(f'{name} of joint {model.joints[j]} in state {k} is {row[k, j]}')
    return rows, single
