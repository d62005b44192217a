"""Marker of the path of the tip for RViz."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point
from rclpy.time import Time
from visualization_msgs.msg import Marker

from robot_dynid.dynamics.kinematics import tip_positions
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.robot.model import RobotModel

MOST = 5000  # points of a line
WIDTH = 0.005  # m


def path_marker(
    robot: RobotModel, points: SampledTrajectory | None, stamp: Time, number: int = 0
) -> Marker:
    """Return the way of the tip as line strip ``number`` in the frame of the base link.

    Without ``points`` it takes that line away.
    """
    if points is None:
        return Marker(ns='excitation', id=number, action=Marker.DELETE)
    every = max(1, -(-len(points.time) // MOST))
    tips = tip_positions(robot, np.asarray(points.position[::every]))
    marker = Marker(ns='excitation', id=number, type=Marker.LINE_STRIP, action=Marker.ADD)
    marker.header.frame_id, marker.header.stamp = robot.base_link, stamp.to_msg()
    marker.pose.orientation.w, marker.scale.x = 1.0, WIDTH
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = 0.1, 0.6, 1.0, 1.0
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in tips.tolist()]
    return marker
