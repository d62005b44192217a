"""Forward kinematics of many configurations."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    INPUT,
    LANES,
    POS,
    ROT,
    ROWS,
    _pose,
    _sine_cosine,
    compiled,
)


@compiled
def link_poses(parents, geometry, q, rotations, origins):
    """Fill ``rotations`` (N, n, 3, 3) and ``origins`` (N, n, 3) at positions ``q`` (N, n)."""
    n = parents.shape[0]
    work, local = np.zeros((n + 1, ROWS, LANES)), np.empty((12, LANES))
    for i in range(3):
        work[0, ROT + 4 * i] = 1.0
    for first in range(0, q.shape[0], LANES):
        used = min(LANES, q.shape[0] - first)
        for j in range(n):
            own = work[j + 1]
            for k in range(used):
                own[INPUT, k] = q[first + k, j]
            _sine_cosine(own)
            _pose(work[parents[j] + 1], own, geometry[j], local)
            for k in range(used):
                for i in range(3):
                    origins[first + k, j, i] = own[POS + i, k]
                    for h in range(3):
                        rotations[first + k, j, i, h] = own[ROT + 3 * i + h, k]
