"""Between control_msgs, trajectory_msgs and the emulated trajectory controller."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.simulation.trajectory_controller import Finished, Goal, Tolerance, Update
from robot_dynid.simulation.waypoints import Command, Waypoint
from robot_dynid.types import FloatArray

if TYPE_CHECKING:  # it loads MuJoCo, of which an excitation and a doctor know nothing
    from robot_dynid.simulation.simulator import Reading

NANOSECONDS = 1_000_000_000


def doubles(values: Any) -> array[float]:
    """Return a float64 array of numbers, the form message fields take fastest."""
    return array('d', values.tobytes())


def seconds(duration: Any) -> float:
    """Return a Duration or Time message in s."""
    return float(duration.sec) + 1e-9 * float(duration.nanosec)


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
    return Goal(
        command_from_message(message.trajectory, epoch),
        _tolerances(message.path_tolerance), _tolerances(message.goal_tolerance),
        seconds(message.goal_time_tolerance),
    )


def _tolerances(messages: Iterable[JointTolerance]) -> dict[str, Tolerance]:
    return {m.name: (m.position, m.velocity, m.acceleration) for m in messages}


def result_message(finished: Finished) -> FollowJointTrajectory.Result:
    """Return the result of an ended goal."""
    return FollowJointTrajectory.Result(
        error_code=int(finished.code), error_string=finished.text
    )


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


def fill_joint_state(message: JointState, reading: Reading, order: Any, stamp: int) -> None:
    """Write a reading into ``message``, joints in ``order``, stamped ``stamp`` ns."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
    message.position = doubles(reading.position[order])
    message.velocity = doubles(reading.velocity[order])
    message.effort = doubles(reading.effort[order])


def fill_motor_state(message: JointState, reading: Reading, order: Any, stamp: int) -> None:
    """Write the motors' part of a reading into ``message``, as ``fill_joint_state`` does."""
    assert reading.motor_position is not None and reading.motor_velocity is not None
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, NANOSECONDS)
    message.position = doubles(reading.motor_position[order])
    message.velocity = doubles(reading.motor_velocity[order])


def _point(values: FloatArray) -> JointTrajectoryPoint:
    """Return a point from position, velocity and, where given, acceleration: (2 or 3, n)."""
    point = JointTrajectoryPoint(positions=doubles(values[0]), velocities=doubles(values[1]))
    if len(values) > 2:
        point.accelerations = doubles(values[2])
    return point
