"""Markers of external torque for RViz: an arrow along the axis of every joint."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from visualization_msgs.msg import Marker, MarkerArray

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

LENGTH = 1.0  # m of an arrow for a torque as large as the effort limit of the joint
WITHOUT_LIMIT = 100.0  # N m (N) in place of a limit
SHAFT, HEAD = 0.02, 0.04  # m
FREE, TOUCHED = (0.2, 0.8, 0.3), (0.9, 0.1, 0.1)


def contact_markers(
    robot: RobotModel, external: FloatArray, contact: Collection[str], stamp: int
) -> MarkerArray:
    """Return an arrow per joint, in the frame of the link it moves, red where it is in contact.

    ``external`` (n,) is external torque [N m, N], NaN where it is not known: no arrow there;
    ``contact`` names the joints in contact, ``stamp`` is in ns.
    """
    limits = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, WITHOUT_LIMIT)
    found = MarkerArray()
    time = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
    for j, (joint, link) in enumerate(zip(robot.joints, robot.bodies, strict=True)):
        marker = Marker(ns='external_torque', id=j, type=Marker.ARROW, action=Marker.ADD)
        marker.header.frame_id, marker.header.stamp = link, time
        if np.isnan(external[j]):
            marker.action = Marker.DELETE
        else:
            x, y, z = (LENGTH * external[j] / limits[j] * robot.axes[j]).tolist()
            marker.pose.orientation.w = 1.0
            marker.points = [Point(), Point(x=x, y=y, z=z)]
            marker.scale.x, marker.scale.y = SHAFT, HEAD
            marker.color.r, marker.color.g, marker.color.b = TOUCHED if joint in contact else FREE
            marker.color.a = 1.0
        found.markers.append(marker)
    return found
