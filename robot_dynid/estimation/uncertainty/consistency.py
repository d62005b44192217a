"""Consistency test: does the measured effort lie in the column space of the regressor?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.types import FloatArray

#: an effort outside by more than this share of its size raises the rank; rounding leaves 1e-14
RANK_TOLERANCE = 1e-8
#: share of a joint's effort outside the model from which a user should know
NOTABLE = 0.3


@dataclass(frozen=True, eq=False)
class Consistency:
    """``outside`` (n,): share of the effort of each joint that no parameters explain.

    ``raised`` says whether rank [H tau] exceeds rank H: always with noise, never without.
    """

    outside: FloatArray
    raised: bool

    def warnings(self, joints: tuple[str, ...]) -> list[str]:
        """Return a sentence per joint with a notable share."""
        return [f'joint {joint}: {share:.0%} of its effort (root mean square) lies outside what '
                'any parameters explain, so rank [H tau] exceeds rank H: noise, or an effect the '
                'model lacks'
                for joint, share in zip(joints, self.outside, strict=True)
                if self.raised and share > NOTABLE]


def consistency(information: Information) -> Consistency:
    """Return the share of the filtered effort outside the space of each joint's own equations.

    Source: Wang et al., Sensors 2025, 25, 5749, section 3.2 (rank of the augmented matrix).
    """
    outside = np.zeros(len(information.structure))
    for row, factor in enumerate(information.total.factors):
        k = factor.shape[1] - EXTRA
        columns, effort = factor[:, :k], factor[:, k + FILTERED]
        norms = np.linalg.norm(columns, axis=0)
        unit = columns[:, norms > 0.0] / norms[norms > 0.0]
        left, sizes, _ = np.linalg.svd(unit, full_matrices=False)
        left = left[:, sizes > RANK_TOLERANCE * sizes.max(initial=0.0)]
        rest = effort - left @ (left.T @ effort)
        size = float(np.linalg.norm(effort))
        outside[row] = float(np.linalg.norm(rest)) / size if size > 0.0 else 0.0
    return Consistency(outside, bool(outside.max(initial=0.0) > RANK_TOLERANCE))
