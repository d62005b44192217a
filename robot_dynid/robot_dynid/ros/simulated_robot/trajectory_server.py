"""The two interfaces of joint_trajectory_controller: its topic and its action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.action import CancelResponse, GoalResponse
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.ros.common.messages import NANOSECONDS, doubles, seconds
from robot_dynid.ros.common.services import DeferredActionServer, conclude
from robot_dynid.simulation.simulator import Simulator
from robot_dynid.simulation.trajectory_controller import Finished, Goal, Status, Update
from robot_dynid.simulation.waypoints import Command, Waypoint
from robot_dynid.types import FloatArray

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
    """Bring a goal into its final state and return its result."""
    conclude(handle, finished.status is Status.SUCCEEDED, finished.status is Status.CANCELED)
    return FollowJointTrajectory.Result(
        error_code=int(finished.code), error_string=finished.text)


def command_from_message(message: JointTrajectory, epoch: int) -> Command:
    """Return the trajectory with its stamp in s since ``epoch`` (ns of the node's clock)."""
    stamp = message.header.stamp.sec * NANOSECONDS + message.header.stamp.nanosec
    points = tuple(
        Waypoint(seconds(p.time_from_start), p.positions, p.velocities, p.accelerations, p.effort)
        for p in message.points
    )
    return Command(tuple(message.joint_names), points, (stamp - epoch) * 1e-9 if stamp else 0.0)


def goal_from_message(message: FollowJointTrajectory.Goal, epoch: int) -> Goal:
    """Return the goal of an action request, stamps in s since ``epoch`` ns."""
    path, goal = ({one.name: (one.position, one.velocity, one.acceleration) for one in tolerances}
                  for tolerances in (message.path_tolerance, message.goal_tolerance))
    return Goal(command_from_message(message.trajectory, epoch), path, goal,
                seconds(message.goal_time_tolerance))


def feedback_message(
    joints: Sequence[str], stamp: Any, update: Update, measured: FloatArray
) -> FollowJointTrajectory.Feedback:
    """Return the feedback; ``measured`` (2, n) is position and velocity."""
    message = FollowJointTrajectory.Feedback()
    message.header.stamp = stamp
    message.joint_names = list(joints)
    message.desired = _point(update.reference)
    message.actual = _point(measured)
    message.error = _point(update.reference[:2] - measured)
    message.index = update.index
    return message


def controller_state_message(
    joints: Sequence[str], stamp: Any, update: Update, measured: FloatArray, speed_scaling: float
) -> JointTrajectoryControllerState:
    """Return the controller's state; ``measured`` (2, n) is position and velocity."""
    message = JointTrajectoryControllerState()
    message.header.stamp = stamp
    message.joint_names = list(joints)
    message.reference = _point(update.reference)
    message.reference.time_from_start = Duration(seconds=update.elapsed).to_msg()
    message.feedback = _point(measured)
    message.error = _point(update.reference[:2] - measured)
    message.output = _point(update.output)
    message.speed_scaling_factor = speed_scaling
    return message


def fill(message: JointState, stamp: int, values: Mapping[str, FloatArray]) -> JointState:
    """Write a stamp [ns] and values (n,) of joints into a message; return it."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
    for name, one in values.items():
        setattr(message, name, doubles(one))
    return message


def _point(values: FloatArray) -> JointTrajectoryPoint:
    """Return a point from position, velocity and, where given, acceleration: (2 or 3, n)."""
    point = JointTrajectoryPoint(positions=doubles(values[0]), velocities=doubles(values[1]))
    if len(values) > 2:
        point.accelerations = doubles(values[2])
    return point
