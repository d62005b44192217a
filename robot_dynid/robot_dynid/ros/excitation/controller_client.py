"""Client of a joint_trajectory_controller: goals, cancel requests, hold, signs of life."""

from __future__ import annotations

import array
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatusArray
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from rclpy.action import ActionClient
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_action_status_default, qos_profile_sensor_data
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.execution.clocks import StampClock
from robot_dynid.execution.guards import Tolerances
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import UNDER_WAY, Commands, Phase
from robot_dynid.execution.supervisor import Execution
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.messages import message_of, seconds
from robot_dynid.types import FloatArray

Deliver = Callable[[Commands], None]


def duration_message(seconds: float) -> Duration:
    """Return a duration rounded to nanoseconds."""
    whole, nanoseconds = divmod(round(seconds * 1e9), 10**9)
    return Duration(sec=int(whole), nanosec=int(nanoseconds))


def trajectory_message(points: SampledTrajectory) -> JointTrajectory:
    """Return the points with position, velocity and acceleration; stamp 0: start at once."""
    message = JointTrajectory(joint_names=list(points.joints))
    for t, q, qd, qdd in zip(points.time, points.position, points.velocity, points.acceleration):
        message.points.append(JointTrajectoryPoint(
            positions=array.array('d', q), velocities=array.array('d', qd),
            accelerations=array.array('d', qdd), time_from_start=duration_message(float(t))))
    return message


def goal_message(points: SampledTrajectory, tolerances: Tolerances) -> FollowJointTrajectory.Goal:
    """Return a goal with every tolerance set: the controller's defaults check nothing."""
    goal = FollowJointTrajectory.Goal(trajectory=trajectory_message(points))
    for field, allowed in ((goal.path_tolerance, tolerances.path),
                           (goal.goal_tolerance, tolerances.goal)):
        field.extend(JointTolerance(name=joint, position=float(value))
                     for joint, value in zip(points.joints, allowed))
    goal.goal_time_tolerance = duration_message(tolerances.goal_time)
    return goal


class ControllerClient:
    """Sends the commands of an Execution to one controller and reports its answers.

    ``face`` is 'action' or 'topic'; the topic has no answers, so a trajectory published there
    counts as accepted. Cancel requests go out by goal id through the action's own service, so a
    goal can be cancelled before its acceptance is known; every goal whose end is unknown is
    cancelled. The action's status lists the goals of all clients: one that was accepted after ours
    is another program's, even if a goal of ours has replaced it at once.

    ``tells_its_state``: a message of its controller_state was received.
    """

    def __init__(self, node: Node, where: tuple[str, str], deliver: Deliver, group: CallbackGroup,
                 listener: Listener) -> None:
        controller, face = where
        action = f'{controller}/follow_joint_trajectory'
        self._by_action = face == 'action'
        self.name = (f'action server {action}' if self._by_action else
                     f'subscriber of {controller}/joint_trajectory')
        self._action = ActionClient(node, FollowJointTrajectory, action, callback_group=group)
        self._cancel = node.create_client(
            CancelGoal, f'{action}/_action/cancel_goal', callback_group=group)
        self._topic = node.create_publisher(
            JointTrajectory, f'{controller}/joint_trajectory', QoSProfile(depth=10))
        listener.subscribe(JointTrajectoryControllerState, f'{controller}/controller_state',
                           self._on_state, qos_profile_sensor_data)
        if self._by_action:
            listener.subscribe(GoalStatusArray, f'{action}/_action/status', self._on_status,
                               qos_profile_action_status_default)
        self._deliver, self._listener, self._clock = deliver, listener, StampClock()
        self._goal_id = CancelGoal.Request().goal_info.goal_id
        self._open: list[Any] = []
        self._goals: set[bytes] = set()  # goals of this execution
        self._execution: Execution | None = None
        self._ahead = 0  # ns by which the controller's clock is ahead of the steady one
        self.tells_its_state = False

    def ready(self) -> bool:
        """Return whether the controller can take a trajectory."""
        if self._by_action:
            return bool(self._action.server_is_ready())
        return int(self._topic.get_subscription_count()) > 0

    def send(self, execution: Execution, goal: FollowJointTrajectory.Goal, begun: float | None
             ) -> None:
        """Send a goal; its answers go to ``execution``.

        ``begun`` [s, steady clock] is the start of a goal that continues the motion under way: the
        controller receives it by its own clock, and continues without a step.
        """
        if begun is not None:
            goal.trajectory.header.stamp = Time(
                nanoseconds=round(1e9 * begun) + self._ahead).to_msg()
        if execution is not self._execution:
            self._open.clear()  # a killed controller does not report the end of its goals
            self._goals = set()
        self._execution = execution
        if not self._by_action:
            self._topic.publish(goal.trajectory)
            self._deliver(execution.on_accepted(time.monotonic()))
            return
        goal_id = CancelGoal.Request().goal_info.goal_id
        goal_id.uuid = list(uuid.uuid4().bytes)
        self._goal_id = goal_id
        self._open.append(goal_id)
        self._goals.add(bytes(goal_id.uuid))
        future = self._action.send_goal_async(
            goal, partial(self._on_feedback, goal_id), goal_uuid=goal_id)
        future.add_done_callback(partial(self._on_answer, execution, goal_id))

    def cancel(self) -> None:
        """Cancel every goal that may be under way, in any case the last one sent."""
        if self._by_action:
            for goal_id in (*(g for g in self._open if g is not self._goal_id), self._goal_id):
                self._cancel_one(goal_id)

    def hold(self, joints: tuple[str, ...], position: FloatArray, duration: float
             ) -> JointTrajectory:
        """Publish a rest at ``position`` (n,) rad (m) to the controller; return the message."""
        still = array.array('d', [0.0] * len(joints))
        point = JointTrajectoryPoint(
            positions=array.array('d', position), velocities=still, accelerations=still,
            time_from_start=duration_message(duration))
        message = JointTrajectory(joint_names=list(joints), points=[point])
        self._topic.publish(message)
        return message

    def _cancel_one(self, goal_id: Any) -> None:
        request = CancelGoal.Request()
        request.goal_info.goal_id = goal_id
        future = self._cancel.call_async(request)
        future.add_done_callback(partial(self._on_cancel_answer, goal_id))

    def _ended(self, goal_id: Any) -> None:
        self._open = [other for other in self._open if other is not goal_id]

    def _on_state(self, data: bytes, info: Mapping[str, Any]) -> None:
        self.tells_its_state = True
        execution = self._execution
        if execution is None or execution.phase is Phase.DONE:
            return
        message = message_of(data, JointTrajectoryControllerState)
        joints, names = execution.rules.limits.joints, message.joint_names
        position, measured_position, measured_velocity = (
            _ordered(joints, names, values) for values in (
                message.reference.positions, message.feedback.positions,
                message.feedback.velocities))
        arrival, stamp = self._listener.arrival(info), message.header.stamp
        measured = self._clock.time(arrival, seconds(stamp))
        elapsed = seconds(message.reference.time_from_start)
        if execution.on_controller_state(arrival, elapsed, position, measured, getattr(
                message, 'speed_scaling_factor', None)):  # not before Jazzy
            reported = execution.watchdog.path_time.reported_at
            self._ahead = Time.from_msg(stamp).nanoseconds - round(1e9 * reported)
        self._deliver(execution.bridge(arrival, measured, measured_position, measured_velocity))
        self._deliver(execution.react(time.monotonic()))

    def _on_status(self, data: bytes, info: Mapping[str, Any]) -> None:
        execution = self._execution
        if execution is None or execution.phase is Phase.DONE:
            return
        goals = [status.goal_info for status in message_of(data, GoalStatusArray).status_list]
        accepted = {bytes(goal.goal_id.uuid): Time.from_msg(goal.stamp).nanoseconds
                    for goal in goals}
        first = min((accepted[goal] for goal in self._goals & accepted.keys()), default=np.inf)
        if any(when > first for goal, when in accepted.items() if goal not in self._goals):
            execution.on_goal_of_another(time.monotonic())

    def _on_feedback(self, goal_id: Any, _: Any) -> None:
        if any(goal_id is open_goal for open_goal in self._open) and self._execution is not None:
            self._execution.on_feedback(time.monotonic())

    def _on_answer(self, execution: Execution, goal_id: Any, future: Any) -> None:
        handle = future.result()
        accepted = handle is not None and handle.accepted
        if not accepted:
            self._ended(goal_id)
        if accepted:
            handle.get_result_async().add_done_callback(
                partial(self._on_result, execution, goal_id))
        if goal_id is not self._goal_id:
            superseded = execution is self._execution and execution.phase in UNDER_WAY
            if accepted and not superseded:
                self._cancel_one(goal_id)  # a goal given up long ago must not start now
        elif accepted:
            self._deliver(execution.on_accepted(time.monotonic()))
        else:
            self._goal_id = self._open[-1] if self._open else goal_id  # what was under way goes on
            self._deliver(execution.on_rejected(time.monotonic()))

    def _on_result(self, execution: Execution, goal_id: Any, future: Any) -> None:
        answer = future.result()
        self._ended(goal_id)
        if goal_id is self._goal_id and answer is not None:
            self._deliver(execution.on_result(
                time.monotonic(), answer.status, answer.result.error_code,
                answer.result.error_string))

    def _on_cancel_answer(self, goal_id: Any, future: Any) -> None:
        answer = future.result()
        if goal_id is not self._goal_id or answer is None or self._execution is None:
            return
        stopping = bool(answer.goals_canceling) or not self._open or (
            answer.return_code == CancelGoal.Response.ERROR_GOAL_TERMINATED)
        self._deliver(self._execution.on_cancel_answer(time.monotonic(), stopping))


def _ordered(joints: Sequence[str], names: Sequence[str], values: Sequence[float]) -> FloatArray:
    """Return the values (n,) of ``names`` in the order of ``joints``, NaN where there is none."""
    by_name = dict(zip(names, values))
    return np.array([by_name.get(joint, np.nan) for joint in joints])
