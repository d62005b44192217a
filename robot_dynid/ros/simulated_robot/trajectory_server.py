"""The two faces of joint_trajectory_controller: its topic and its action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.action import CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.ros.common.controller_messages import (
    command_from_message,
    feedback_message,
    goal_from_message,
    result_message,
)
from robot_dynid.ros.common.deferred_action import DeferredActionServer
from robot_dynid.simulation.simulator import Simulator
from robot_dynid.simulation.trajectory_controller import Finished, Status

MONITOR_RATE = 20.0  # Hz, action_monitor_rate of the original: feedback and results
RESULT_TIMEOUT = 10  # s
TOPIC_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class TrajectoryServer:
    """Topic and action of one trajectory controller, in front of a simulator.

    ``epoch`` returns the node's clock in ns at simulated time zero.
    """

    def __init__(self, node: Node, simulator: Simulator, name: str,
                 epoch: Callable[[], int]) -> None:
        self._node = node
        self._simulator = simulator
        self._epoch = epoch
        self._handles: dict[int, Any] = {}
        node.create_subscription(
            JointTrajectory, f'{name}/joint_trajectory', self._follow, TOPIC_QOS
        )
        self._server = DeferredActionServer(
            node, FollowJointTrajectory, f'{name}/follow_joint_trajectory',
            execute_callback=lambda handle: None, goal_callback=self._decide,
            handle_accepted_callback=self._accept, cancel_callback=self._cancel,
            result_timeout=RESULT_TIMEOUT,
        )
        node.create_timer(1.0 / MONITOR_RATE, self._monitor)

    def _follow(self, message: JointTrajectory) -> None:
        reason = self._simulator.follow(command_from_message(message, self._epoch()))
        if reason:
            self._node.get_logger().error(f'ignored trajectory: {reason}')

    def _decide(self, request: FollowJointTrajectory.Goal) -> GoalResponse:
        reason = self._simulator.rejection(command_from_message(request.trajectory, self._epoch()))
        if reason:
            self._node.get_logger().error(f'rejected goal: {reason}')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _accept(self, handle: Any) -> None:
        handle.execute()
        number = self._simulator.start(goal_from_message(handle.request, self._epoch()))
        self._handles[number] = handle
        self._deliver()

    def _cancel(self, handle: Any) -> CancelResponse:
        running = self._handles.get(self._simulator.goal() or 0)
        if running is None or running.goal_id != handle.goal_id or not self._simulator.cancel():
            return CancelResponse.REJECT
        return CancelResponse.ACCEPT

    def _monitor(self) -> None:
        self._deliver()
        for text in self._simulator.take_messages():
            self._node.get_logger().error(text)
        handle = self._handles.get(self._simulator.goal() or 0)
        if handle is not None:
            update, measured = self._simulator.view()
            elapsed = round(self._simulator.time * 1e9)
            stamp = Time(nanoseconds=self._epoch() + elapsed).to_msg()
            handle.publish_feedback(
                feedback_message(self._simulator.robot.joints, stamp, update, measured)
            )

    def _deliver(self) -> None:
        for finished in self._simulator.take_finished():
            handle = self._handles.pop(finished.number, None)
            if handle is not None:
                self._server.finish(handle, lambda goal, end=finished: _conclude(goal, end))


def _conclude(handle: Any, finished: Finished) -> FollowJointTrajectory.Result:
    """Bring a goal into the state it ended in and return its result."""
    if finished.status is Status.SUCCEEDED:
        handle.succeed()
    elif finished.status is Status.CANCELED:
        handle.canceled()
    else:
        handle.abort()
    return result_message(finished)
