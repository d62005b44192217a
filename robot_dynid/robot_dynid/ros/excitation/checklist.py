"""Facts for the checklist of the excitation node: its topics, its clock and the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy
from sensor_msgs.msg import JointState

from robot_dynid.collision.roadmap import check_pose
from robot_dynid.collision.scene import build_scene
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import DynIdError
from robot_dynid.execution.checklist import (
    Facts,
    Item,
    Requirements,
    StateMessage,
    all_items,
    quick_items,
)
from robot_dynid.execution.guards import GuardSettings, JointStates, Outcome
from robot_dynid.files import disk_space
from robot_dynid.robot.implausible import described
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.messages import UnreadableMessage, message_of, seconds
from robot_dynid.ros.excitation.bag_session import BYTES_PER_SECOND
from robot_dynid.ros.excitation.controller_client import ControllerClient
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.ros.excitation.waiting import not_real_time
from robot_dynid.ros.recording.recorder import Message
from robot_dynid.ros.recording.session import TOPICS, BagSession
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.types import FloatArray, frozen

#: efforts as torques of joints, with gravity in them
COMPARABLE = ('torque', 'current')
ENOUGH_MESSAGES = 2  # messages of a topic that suffice to judge its content


class Tap:
    """Joint states and controller states as recordings receive them, from now until `end`."""

    def __init__(self, session: BagSession, controller: str) -> None:
        self._session = session
        self._topics = TOPICS[0], f'{controller}/controller_state'
        self.taken: tuple[list[Message], list[Message]] = ([], [])
        self.begun = self.ended = time.time_ns()
        self._clock = session.clock
        self._first = self._clock.now().nanoseconds
        self.clock_rate = 1.0
        self._listeners = tuple(
            lambda data, now, waited, taken=taken: taken.append((now - waited, data))
            for taken in self.taken)
        for topic, listener in zip(self._topics, self._listeners):
            session.listen(topic, listener)

    def enough(self, controller_publishes: bool) -> bool:
        """Return whether every topic with a publisher has delivered a few messages."""
        states, controller_states = (len(taken) >= ENOUGH_MESSAGES for taken in self.taken)
        return states and (controller_states or not controller_publishes)

    def end(self) -> None:
        """Stop listening."""
        self.ended = time.time_ns()
        self.clock_rate = (self._clock.now().nanoseconds - self._first) / (self.ended - self.begun)
        for topic, listener in zip(self._topics, self._listeners):
            self._session.ignore(topic, listener)


@dataclass(frozen=True, eq=False)
class Checklist:
    """Checklist of a node for its robot and its controller."""

    node: Node
    robot: RobotModel
    settings: ExcitationSettings
    guards: GuardSettings
    controller: ControllerClient

    @property
    def controller_publishes(self) -> bool:
        """Whether the state of the controller has a publisher."""
        return self._count(f'{self.settings.controller}/controller_state') > 0

    def items(self, tap: Tap, states_seen: bool, alarm: Outcome | None, stop_heard: bool,
              thorough: bool) -> tuple[Item, ...]:
        """Return the items after a tap has ended: all, which takes longer, or the quick ones.

        ``states_seen``: whether joint states arrive, reliably or not; ``alarm`` and ``stop_heard``
        are those of `Alarms`.
        """
        facts = replace(self._facts(tap), states_seen=states_seen, alarm=alarm,
                        stop_heard=stop_heard)
        limits, reason = limits_of_states(self.robot)
        wanted = Requirements(
            self.robot.joints, self.guards, limits, reason,
            collision_check_required=self.settings.require_collision_check,
            in_pieces=self.settings.lookahead > 0.0,
            longest=self.settings.longest, bytes_per_second=BYTES_PER_SECOND)
        if not thorough:
            return quick_items(facts, wanted)
        if facts.sim_time:
            facts = replace(facts, clock_fault=not_real_time(tap.clock_rate))
        scene = build_scene(self.robot)
        wanted = replace(wanted, blind=scene.blind, unchecked=scene.unchecked)
        position = position_of(facts, self.robot.joints)
        if position is not None:
            facts = replace(facts, gravity=gravity_effort(self.robot, position))
            try:
                check_pose(scene, position, 'this')
            except DynIdError as error:
                facts = replace(facts, too_near=str(error))
        return all_items(facts, wanted)

    def _count(self, topic: str) -> int:
        return int(self.node.count_publishers(self.node.resolve_topic_name(topic)))

    def _facts(self, tap: Tap) -> Facts:
        clock, now = self.node.get_clock().now().nanoseconds, time.time_ns()
        offset = clock - now
        folder = Path(self.settings.recording_directory).expanduser().absolute()
        unwritable, free = disk_space(folder)
        return Facts(
            seconds=1e-9 * (tap.ended - tap.begun), now=1e-9 * (tap.ended + offset),
            states=read_messages(joint_state, tap.taken[0], offset),
            best_effort=self._best_effort(), controller=self.controller.name,
            controller_ready=self.controller.ready(),
            controller_states=read_messages(controller_state, tap.taken[1], offset),
            controller_publishers=self._count(f'{self.settings.controller}/controller_state'),
            commanders=self._commanders(), stop_publishers=self._count('emergency_stop'),
            sim_time=bool(self.node.get_parameter('use_sim_time').value),
            clock_publishers=self._count('/clock'), folder=str(folder), unwritable=unwritable,
            free=free)

    def _best_effort(self) -> tuple[str, ...]:
        """Return the names of nodes that publish joint states as best effort."""
        topic = self.node.resolve_topic_name(TOPICS[0])
        return tuple(other.node_name for other in self.node.get_publishers_info_by_topic(topic)
                     if other.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT)

    def _commanders(self) -> tuple[str, ...]:
        """Return the names of other nodes that publish on the controller's topic."""
        topic = self.node.resolve_topic_name(f'{self.settings.controller}/joint_trajectory')
        this_node = self.node.get_namespace(), self.node.get_name()
        nodes = ((other.node_namespace, other.node_name)
                 for other in self.node.get_publishers_info_by_topic(topic))
        return tuple(dict.fromkeys(f'{space.rstrip("/")}/{name}' for space, name in nodes
                                   if (space, name) != this_node))


def gravity_effort(robot: RobotModel, position: FloatArray) -> FloatArray | None:
    """Return the effort (n,) that the nominal model predicts at rest at ``position`` (n,).

    In the unit of the joint states; NaN for joints whose links the description lacks; None if it
    lacks all links or no such effort is measured.
    """
    robot, comparable = robot.rigid, described(robot)
    if robot.drive.kind not in COMPARABLE or not comparable.any():
        return None
    still = np.zeros((1, robot.n))
    torque = inverse_dynamics(robot, position[None, :], still, still)
    return np.where(comparable, robot.motor_torque(torque)[0] / robot.torque_factors, np.nan)


def limits_of_states(robot: RobotModel) -> tuple[MotionLimits | None, str]:
    """Return the limits, those of the effort in the unit of the joint states.

    None if the robot has none, with the reason.
    """
    try:
        limits = motion_limits(robot)
    except DynIdError as error:
        return None, str(error)
    return replace(limits, effort=frozen(limits.effort / np.abs(robot.torque_factors))), ''


def read_messages(read: Callable[[bytes, float], StateMessage], taken: Iterable[Message],
                  offset: int = 0) -> tuple[StateMessage, ...]:
    """Return the readable messages; the clock of the node is ``offset`` ns ahead."""
    messages = []
    for at, data in taken:
        with suppress(UnreadableMessage):
            messages.append(read(data, 1e-9 * (at + offset)))
    return tuple(messages)


def joint_state(data: bytes, arrival: float) -> StateMessage:
    """Return a serialized joint state; raises UnreadableMessage."""
    message: Any = message_of(data, JointState)
    return StateMessage(arrival, seconds(message.header.stamp), tuple(message.name),
                        message.position, message.velocity, message.effort)


def controller_state(data: bytes, arrival: float) -> StateMessage:
    """Return a serialized state of a controller; raises UnreadableMessage."""
    message: Any = message_of(data, JointTrajectoryControllerState)
    return StateMessage(arrival, seconds(message.header.stamp), tuple(message.joint_names),
                        message.feedback.positions, message.feedback.velocities,
                        speed_scaling=getattr(message, 'speed_scaling_factor', 1.0))


def position_of(facts: Facts, joints: tuple[str, ...]) -> FloatArray | None:
    """Return the position (n,) rad (m), or None if one is unknown."""
    states = JointStates(joints)
    for message in facts.states[-10:]:
        states.update(message.arrival, message.names, 0.0, (message.position, (), ()))
    return None if states.missing('position') else states.position
