"""Client of a joint_trajectory_controller: goals, cancel requests, hold, signs of life."""

from __future__ import annotations

import array
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from rclpy.action import ActionClient
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.excitation.execution import Commands, Execution
from robot_dynid.excitation.guards import Tolerances
from robot_dynid.excitation.sampled import SampledTrajectory
from robot_dynid.types import FloatArray

Deliver = Callable[[Commands], None]


def duration_message(seconds: float) -> Duration:
    """Return a duration rounded to nanoseconds."""
    whole, nanoseconds = divmod(round(seconds * 1e9), 10**9)
    return Duration(sec=int(whole), nanosec=int(nanoseconds))


def trajectory_message(points: SampledTrajectory) -> JointTrajectory:
    """Return the points with position, velocity and acceleration; stamp 0 means at once."""
    message = JointTrajectory(joint_names=list(points.joints))
    for t, q, qd, qdd in zip(points.time, points.position, points.velocity, points.acceleration):
        message.points.append(JointTrajectoryPoint(
            positions=array.array('d', q), velocities=array.array('d', qd),
            accelerations=array.array('d', qdd), time_from_start=duration_message(float(t))))
    return message


def goal_message(points: SampledTrajectory, tolerances: Tolerances) -> FollowJointTrajectory.Goal:
    """Return a goal in which every tolerance is set: the controller's defaults check nothing."""
    goal = FollowJointTrajectory.Goal(trajectory=trajectory_message(points))
    for own, allowed in ((goal.path_tolerance, tolerances.path),
                         (goal.goal_tolerance, tolerances.goal)):
        own.extend(JointTolerance(name=joint, position=float(value))
                   for joint, value in zip(points.joints, allowed))
    goal.goal_time_tolerance = duration_message(tolerances.goal_time)
    return goal


class ControllerClient:
    """Talks to one controller; reports its answers to an Execution and delivers the commands.

    Cancel requests go out by goal id through the action's own service, so a goal can be cancelled
    before its acceptance is known.
    """

    def __init__(
        self, node: Node, controller: str, deliver: Deliver, group: CallbackGroup
    ) -> None:
        action = f'{controller}/follow_joint_trajectory'
        self.name = action
        self._action = ActionClient(node, FollowJointTrajectory, action, callback_group=group)
        self._cancel = node.create_client(
            CancelGoal, f'{action}/_action/cancel_goal', callback_group=group)
        self._hold = node.create_publisher(
            JointTrajectory, f'{controller}/joint_trajectory', QoSProfile(depth=1))
        self._state = node.create_subscription(
            JointTrajectoryControllerState, f'{controller}/controller_state', self._on_state,
            qos_profile_sensor_data, callback_group=group)
        self._deliver = deliver
        self._goal_id = CancelGoal.Request().goal_info.goal_id
        self._execution: Execution | None = None

    def ready(self) -> bool:
        """Return whether the controller's action server is there."""
        return bool(self._action.server_is_ready())

    def send(self, execution: Execution, goal: FollowJointTrajectory.Goal) -> None:
        """Send a goal; its answers go to ``execution``."""
        goal_id = CancelGoal.Request().goal_info.goal_id
        goal_id.uuid = list(uuid.uuid4().bytes)
        self._goal_id, self._execution = goal_id, execution
        future = self._action.send_goal_async(
            goal, partial(self._on_feedback, goal_id), goal_uuid=goal_id)
        future.add_done_callback(partial(self._on_answer, execution, goal_id))

    def cancel(self, goal_id: Any = None) -> None:
        """Cancel a goal, by default the one sent last."""
        request = CancelGoal.Request()
        request.goal_info.goal_id = goal_id or self._goal_id
        future = self._cancel.call_async(request)
        future.add_done_callback(partial(self._on_cancel_answer, request.goal_info.goal_id))

    def hold(self, joints: tuple[str, ...], position: FloatArray, duration: float) -> None:
        """Send one point at rest on the controller's topic."""
        still = array.array('d', [0.0] * len(joints))
        point = JointTrajectoryPoint(
            positions=array.array('d', position), velocities=still, accelerations=still,
            time_from_start=duration_message(duration))
        self._hold.publish(JointTrajectory(joint_names=list(joints), points=[point]))

    def _on_state(self, _: JointTrajectoryControllerState) -> None:
        if self._execution is not None:
            self._execution.on_controller_state(time.monotonic())

    def _on_feedback(self, goal_id: Any, _: Any) -> None:
        if goal_id is self._goal_id and self._execution is not None:
            self._execution.on_feedback(time.monotonic())

    def _on_answer(self, execution: Execution, goal_id: Any, future: Any) -> None:
        handle = future.result()
        if goal_id is not self._goal_id:
            if handle is not None and handle.accepted:
                self.cancel(goal_id)  # a goal given up long ago must not start now
            return
        if handle is None or not handle.accepted:
            self._deliver(execution.on_rejected(time.monotonic()))
            return
        handle.get_result_async().add_done_callback(
            partial(self._on_result, execution, goal_id))
        self._deliver(execution.on_accepted(time.monotonic()))

    def _on_result(self, execution: Execution, goal_id: Any, future: Any) -> None:
        answer = future.result()
        if goal_id is self._goal_id and answer is not None:
            self._deliver(execution.on_result(
                time.monotonic(), answer.status, answer.result.error_code,
                answer.result.error_string))

    def _on_cancel_answer(self, goal_id: Any, future: Any) -> None:
        answer = future.result()
        if goal_id is not self._goal_id or answer is None or self._execution is None:
            return
        stopping = bool(answer.goals_canceling) or (
            answer.return_code == CancelGoal.Response.ERROR_GOAL_TERMINATED)
        self._deliver(self._execution.on_cancel_answer(time.monotonic(), stopping))
