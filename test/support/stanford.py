"""The Stanford arm."""

from __future__ import annotations

import numpy as np
from chains import chain

from robot_dynid.robot.inertia import (
    parameters_from_com,
)
from robot_dynid.robot.model import PRISMATIC, REVOLUTE

# Figure 2 of Lin 1991: type, theta', beta [deg], b, d' [m], mass [kg], centre of mass [m],
# principal moments about it [kg m^2].
FIGURE_2 = (
    (REVOLUTE, 0, 0, 0.0, 0.0, 9.29, (0.0, 0.1105, 0.0175), (0.276, 0.255, 0.71)),
    (REVOLUTE, 90, 90, 0.0, 0.1529, 5.01, (0.0, 0.0, -0.1054), (0.108, 0.018, 0.1)),
    (PRISMATIC, 0, 90, 0.0, 0.6447, 4.25, (0.0, 0.0, -0.6447), (2.51, 2.51, 0.006)),
    (REVOLUTE, 0, 0, 0.0, 0.0, 1.08, (0.0092, 0.0054, 0.0), (0.002, 0.001, 0.001)),
    (REVOLUTE, -90, 90, 0.0, 0.0, 0.63, (0.0, -0.0566, 0.0), (0.003, 0.003, 0.0004)),
    (REVOLUTE, 0, 90, 0.0, 0.0, 0.51, (0.0, 0.0, 0.1554), (0.013, 0.013, 0.0003)),
)


def placement(theta, beta, b, d):
    """Return the rotation of eq. 4 and the translation of eq. 3 (frame i in frame i-1)."""
    ct, st, cb, sb = np.cos(theta), np.sin(theta), np.cos(beta), np.sin(beta)
    rotation = [[ct, -st, 0.0], [cb * st, cb * ct, -sb], [sb * st, sb * ct, cb]]
    return np.array(rotation), np.array([b, -d * sb, d * cb])


def stanford_arm():
    """Return the arm of figure 2: frames with z along the joints, origins as in the source."""
    placed = [placement(*np.deg2rad(row[1:3]), *row[3:5]) for row in FIGURE_2]
    nominal = [parameters_from_com(row[5], row[6], np.diag(row[7])) for row in FIGURE_2]
    return chain([row[0] for row in FIGURE_2], [r for r, _ in placed], [p for _, p in placed],
                 np.tile([0.0, 0.0, 1.0], (6, 1)), nominal)
