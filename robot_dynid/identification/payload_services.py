"""A payload in the shape that the services of robot drivers take."""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_dynid.estimation.payload import PayloadEstimate
from robot_dynid.robot.inertia import com_from_parameters


def set_payload(estimate: PayloadEstimate) -> dict[str, Any] | None:
    """Return the request of ur_msgs/srv/SetPayload: kg, m, kg m^2 about the centre of mass.

    The frame is that of the estimate and must be the flange (tool0). None when mass or centre of
    mass are not determined; moments that are not determined are those of the smallest body.
    """
    if not _usable(estimate):
        return None
    mass, com, inertia = com_from_parameters(estimate.parameters)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    return {'mass': mass, 'center_of_gravity': dict(zip('xyz', com.tolist(), strict=True)),
            'ixx': xx, 'iyy': yy, 'izz': zz, 'ixy': xy, 'ixz': xz, 'iyz': yz}


def set_load(estimate: PayloadEstimate) -> dict[str, Any] | None:
    """Return the request of franka_msgs/srv/SetLoad, inertia column by column.

    ROS 1 calls ``center_of_mass`` ``F_x_center_load``. Frame and None as in `set_payload`.
    """
    if not _usable(estimate):
        return None
    mass, com, inertia = com_from_parameters(estimate.parameters)
    return {'mass': mass, 'center_of_mass': com.tolist(),
            'load_inertia': inertia.ravel(order='F').tolist()}


def _usable(estimate: PayloadEstimate) -> bool:
    return bool(np.isfinite(estimate.mass_std) and np.isfinite(estimate.centre_of_mass_std).all())
