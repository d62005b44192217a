"""Facts about a running system, observed for a few seconds: topics, controller, nodes, clocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient, get_action_names_and_types
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from robot_dynid.collision.scene import build_scene
from robot_dynid.errors import DynIdError
from robot_dynid.execution.checklist import OTHER_CLOCK, Facts, Requirements
from robot_dynid.execution.guards import GuardSettings
from robot_dynid.io.bag import Topics, log_from_topics
from robot_dynid.io.joint_states import Topic
from robot_dynid.io.mcap import Contents
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.messages import message_of, seconds
from robot_dynid.ros.excitation.checklist import (
    controller_state,
    gravity_effort,
    joint_state,
    limits_of_states,
    position_of,
    read_messages,
)
from robot_dynid.ros.recording.recorder import Message, batch_of
from robot_dynid.setting_up.live import Live, Stream
from robot_dynid.types import RawLog

#: s after which nobody is waited for any longer: where nobody is seen to publish, and where
#: somebody is
DISCOVERY_PATIENCE, LONG = 4.0, 10.0
#: name by which the middleware calls a node whose name it does not have yet
UNKNOWN = '_NODE_NAME_UNKNOWN_'
#: s for nodes to answer a request for a parameter
ANSWER = 1.0
ANYONE = QoSProfile(depth=4000, reliability=ReliabilityPolicy.BEST_EFFORT)
JOINT_STATE = 'sensor_msgs/msg/JointState'
ACTION = 'follow_joint_trajectory'


@dataclass(frozen=True)
class Watched:
    """Names of the joint-state topic and of the controller, watched for ``duration`` s."""

    topic: str = 'joint_states'
    controller: str = 'joint_trajectory_controller'
    duration: float = 3.0


class Watch:
    """A node that takes joint states, controller states and /clock as they arrive."""

    def __init__(self, node: Node, executor: SingleThreadedExecutor, watched: Watched) -> None:
        self.watched, self.node, self._executor = watched, node, executor
        self.states: list[Message] = []
        self.controller_states: list[Message] = []
        self.clock: list[Message] = []
        self.elsewhere: dict[str, list[Message]] = {}
        self._listener = Listener(self.node)
        for kind, topic, taken in (
                (JointState, watched.topic, self.states),
                (JointTrajectoryControllerState, f'{watched.controller}/controller_state',
                 self.controller_states), (Clock, '/clock', self.clock)):
            self._listener.subscribe(kind, topic, partial(self._take, taken), ANYONE)
        self._action = ActionClient(
            self.node, FollowJointTrajectory, f'{watched.controller}/{ACTION}')
        self._listener.start()

    @staticmethod
    def _take(taken: list[Message], data: bytes, info: Mapping[str, Any]) -> None:
        taken.append((int(info['received_timestamp']), data))

    def watch(self) -> tuple[float, float]:
        """Take messages for the duration from the first one on; return begin and end [s]."""
        begun = time.monotonic()
        self.until(lambda: bool(self.states) or (
            time.monotonic() > begun + DISCOVERY_PATIENCE
            and not self.publishers(self.watched.topic)), LONG)
        for topic in self.others():
            self._listener.subscribe(JointState, topic, partial(
                self._take, self.elsewhere.setdefault(topic, [])), ANYONE)
        if not self.states:
            self.until(lambda: all(self.elsewhere.values()), ANSWER)
            return time.time() - (time.monotonic() - begun), time.time()
        self.until(lambda: self.controller_ready and not any(
            UNKNOWN in name for name, _ in self.publishers(self.watched.topic)),
            DISCOVERY_PATIENCE / 4.0)
        for taken in (self.states, self.controller_states, *self.elsewhere.values()):
            taken.clear()
        since = time.time()
        self.until(lambda: False, self.watched.duration)
        self._listener.close()  # later messages are outside of that time
        return since, time.time()

    def until(self, condition: Callable[[], bool], longest: float) -> None:
        """Spin until a condition holds, at most ``longest`` s."""
        end = time.monotonic() + longest
        while not condition() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.02)

    @property
    def controller_ready(self) -> bool:
        """Whether the action or the topic of the controller has a server."""
        topic = self.node.resolve_topic_name(f'{self.watched.controller}/joint_trajectory')
        return bool(self._action.server_is_ready()) or self.node.count_subscribers(topic) > 0

    def publishers(self, topic: str) -> list[tuple[str, bool]]:
        """Return the publishers of a topic, and whether each is reliable."""
        return [(f'{one.node_namespace.rstrip("/")}/{one.node_name}',
                 one.qos_profile.reliability != ReliabilityPolicy.BEST_EFFORT)
                for one in self.node.get_publishers_info_by_topic(
                    self.node.resolve_topic_name(topic))]

    def commanders(self) -> tuple[str, ...]:
        """Return the nodes that publish on the controller's topic, except excitation nodes."""
        senders = self.publishers(f'{self.watched.controller}/joint_trajectory')
        return tuple(dict.fromkeys(name for name, _ in senders if not self.node.count_publishers(
            f'{name}/excite/_action/status')))

    def controllers(self) -> tuple[str, ...]:
        """Return the names of the trajectory controllers that have an action."""
        return tuple(sorted(
            name.removesuffix(f'/{ACTION}').removeprefix('/')
            for name, kinds in get_action_names_and_types(self.node)
            if 'control_msgs/action/FollowJointTrajectory' in kinds
            and self.node.count_publishers(f'{name}/_action/status')))

    def others(self) -> tuple[str, ...]:
        """Return the other topics on which joint states are published."""
        resolved = self.node.resolve_topic_name(self.watched.topic)
        return tuple(sorted(
            name for name, kinds in self.node.get_topic_names_and_types()
            if JOINT_STATE in kinds and name != resolved and self.node.count_publishers(name)))

    def streams(self, span: float) -> tuple[Stream, ...]:
        """Return the other topics, from their messages of ``span`` s."""
        others = []
        for topic, taken in self.elsewhere.items():
            states = read_messages(joint_state, taken)
            others.append(Stream(
                topic, len(states) / span,
                tuple(dict.fromkeys(name for one in states for name in one.names)),
                any(np.any(np.nan_to_num(one.effort)) for one in states),
                all(reliable for _, reliable in self.publishers(topic))))
        return tuple(others)

    def following_clock(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the nodes whose parameter use_sim_time is true."""
        asked = []
        for name in dict.fromkeys(names):
            client = self.node.create_client(GetParameters, f'{name}/get_parameters')
            asked.append((name, client))
        self.until(lambda: all(client.service_is_ready() for _, client in asked), ANSWER)
        request = GetParameters.Request(names=['use_sim_time'])
        sent = [(name, client.call_async(request)) for name, client in asked
                if client.service_is_ready()]
        self.until(lambda: all(future.done() for _, future in sent), ANSWER)
        return tuple(name for name, future in sent if future.done() and future.result()
                     and any(value.bool_value for value in future.result().values))

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        self._action.destroy()


def observed(robot: RobotModel, watched: Watched) -> Live:
    """Watch the running system for a few seconds and return the facts."""
    with helper_node('doctor') as (node, executor):
        watch = Watch(node, executor, watched)
        try:
            return _live(robot, watch)
        finally:
            watch.close()


def _live(robot: RobotModel, watch: Watch) -> Live:
    begun, ended = watch.watch()
    publishers = watch.publishers(watch.watched.topic)
    names = tuple(name for name, _ in publishers)
    clocks = watch.node.count_publishers('/clock')
    topic = str(watch.node.resolve_topic_name(watch.watched.topic))
    limits, reason = limits_of_states(robot)
    scene = build_scene(robot)
    wanted = Requirements(robot.joints, GuardSettings(), limits, reason, scene.blind,
                          scene.unchecked, in_pieces=False)
    live = Live(
        topic, watch.watched.controller, _facts(robot, watch, (begun, ended)), wanted,
        names, tuple(name for name, reliable in publishers if not reliable),
        watch.streams(ended - begun), watch.controllers(),
        () if clocks else watch.following_clock(names), environment=os.environ)
    if not watch.states:
        return live
    try:
        return replace(live, log=recorded(robot, topic, watch.states))
    except DynIdError as error:
        return replace(live, unreadable=str(error))


def _facts(robot: RobotModel, watch: Watch, span: tuple[float, float]) -> Facts:
    begun, ended = span
    name = watch.watched.controller
    facts = Facts(
        seconds=ended - begun, now=ended, states=read_messages(joint_state, watch.states),
        states_seen=False, controller=f'action server {name}/{ACTION}',
        controller_ready=watch.controller_ready,
        controller_states=read_messages(controller_state, watch.controller_states),
        controller_publishers=watch.node.count_publishers(
            watch.node.resolve_topic_name(f'{name}/controller_state')),
        commanders=watch.commanders(),
        clock_publishers=watch.node.count_publishers('/clock'))
    position = position_of(facts, robot.joints)
    facts = facts if position is None else replace(facts, gravity=gravity_effort(robot, position))
    return _by_their_clock(facts, watch.clock)


def _by_their_clock(facts: Facts, clock: list[Message]) -> Facts:
    """Return the facts by /clock if that stamps the joint states."""
    if not clock or not facts.states:
        return facts
    message: Any = message_of(clock[-1][1], Clock)
    now, last = seconds(message.clock), facts.states[-1]
    if abs(last.arrival - last.stamp) < OTHER_CLOCK or abs(now - last.stamp) > OTHER_CLOCK:
        return facts
    return replace(facts, sim_time=True, now=max(now, last.stamp))


def recorded(robot: RobotModel, topic: str, taken: list[Message]) -> RawLog:
    """Return the messages as a reader of their bag would. Raises DataError."""
    states = Topic(topic)
    states.add(batch_of(taken))
    return log_from_topics(
        topic, {topic: states}, robot.joints, Topics(joint_states=topic), Contents())
