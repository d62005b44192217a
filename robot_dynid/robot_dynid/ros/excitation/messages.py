"""Messages of the excitation node: result, feedback, diagnostics, the path of the tip for RViz."""

from __future__ import annotations

import array
import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point
from rclpy.time import Time
from visualization_msgs.msg import Marker

from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.execution.checklist import Item
from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.supervisor import Execution
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.messages import sendable
from robot_dynid.ros.recording.channel import TopicStatistics
from robot_dynid_interfaces.action import Excite

PATH_POINTS = 5000  # points of a line
PATH_WIDTH = 0.005  # m
#: suffix of the keys with the used share of the limits of guards
USED = ' [part of its limit]'


def feedback_message(
    now: float, execution: Execution | None, design: tuple[str, float], later: float = 0.0
) -> Excite.Feedback:
    """Return the feedback at ``now`` s of the steady clock; ``later`` s of motion follow."""
    if execution is None:
        return Excite.Feedback(segment=design[0], fraction=design[1])
    segment, fraction = execution.doing(now)
    return Excite.Feedback(
        segment=segment, fraction=fraction, remaining=execution.remaining(now) + later,
        tracking_error=array.array('d', execution.tracking_error(now)))


def status_of(item: Item) -> DiagnosticStatus:
    """Return the message of an item of the checklist."""
    return DiagnosticStatus(
        name=item.name, level=bytes([item.level]), message=sendable(item.message),
        values=[KeyValue(key=key, value=value) for key, value in item.values])


def diagnosis(
    execution: Execution | None, states: JointStates, last: Outcome | None,
    controller_ready: bool, topics: tuple[TopicStatistics, ...],
) -> DiagnosticStatus:
    """Return the status of the node for /diagnostics.

    It has the lost messages of ``topics`` and the largest used share of the limit of every guard
    since the last one.
    """
    joint, age = states.oldest(time.monotonic())
    status = DiagnosticStatus(name='execution', level=DiagnosticStatus.OK, message='ready')
    if execution is not None:
        doing = execution.doing(time.monotonic())[0]
        status.message = f'{doing}: {execution.phase.value}'
    elif last is not None and last.code is not Code.SUCCESS:
        status.level, status.message = DiagnosticStatus.WARN, f'{last.code.name}: {last.text}'
    if not controller_ready:
        status.level, status.message = DiagnosticStatus.WARN, 'the controller is absent'
    elif age > 1.0:
        status.level = DiagnosticStatus.WARN
        status.message = f"no recent state of joint '{joint}'"
    status.values = [
        KeyValue(key='controller', value='present' if controller_ready else 'absent'),
        KeyValue(key='age of joint states [s]', value=f'{age:.3f}'),
        KeyValue(key='last outcome', value=last.code.name if last is not None else 'none'),
        *(KeyValue(key=f'{topic.topic} lost messages', value=str(topic.lost)) for topic in topics),
        *(KeyValue(key=f'{guard}{USED}', value=f'{part:.3f}') for guard, part in
          (execution.use.take() if execution is not None else {}).items()),
    ]
    return status


def path_marker(
    robot: RobotModel, points: SampledTrajectory | None, stamp: Time, number: int = 0
) -> Marker:
    """Return the path of the tip as line strip ``number`` in the frame of the base link.

    Without ``points``, remove that line.
    """
    if points is None:
        return Marker(ns='excitation', id=number, action=Marker.DELETE)
    every = max(1, -(-len(points.time) // PATH_POINTS))
    tips = tip_positions(robot, np.asarray(points.position[::every]))
    marker = Marker(ns='excitation', id=number, type=Marker.LINE_STRIP, action=Marker.ADD)
    marker.header.frame_id, marker.header.stamp = robot.base_link, stamp.to_msg()
    marker.pose.orientation.w, marker.scale.x = 1.0, PATH_WIDTH
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = 0.1, 0.6, 1.0, 1.0
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in tips.tolist()]
    return marker
