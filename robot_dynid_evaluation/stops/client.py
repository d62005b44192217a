"""Client of the excitation node, and of the controller behind its back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import rclpy
from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.errors import DynIdError
from robot_dynid_interfaces.action import Excite

PATIENCE = 60.0  # s until something that must come has come
ANSWER = 5.0  # s for an answer, before it is asked again: a killed server stays in the graph
MATCHED = 0.4  # s from the sight of a node to that of all its services
AWAY, LASTS = 0.4, 2.0  # rad (m) and s of what another program commands
#: a topic of each node by which it is seen
SIGNS = {'excitation': 'excitation/sent', 'simulated_robot': 'joint_states'}


class Replaced(DynIdError):
    """A command was replaced by a renewed goal in the same cycle, so that nobody followed it."""


class Ended(DynIdError):
    """A motion ended, or did not begin, before anything was done to it."""


class Client:
    """A client in ``namespace`` of the node and of ``controller``."""

    def __init__(self, namespace: str = '', controller: str = 'joint_trajectory_controller'
                 ) -> None:
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node('events', context=self.context, namespace=namespace,
                                      start_parameter_services=False, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.segment, self.done = '', 0.0
        self._excite = ActionClient(self.node, Excite, 'excitation/excite')
        self._cancel = self.node.create_client(
            CancelGoal, 'excitation/excite/_action/cancel_goal')
        self._triggers = {name: self.node.create_client(Trigger, f'excitation/{name}')
                          for name in ('pause', 'resume')}
        self._parameters = self.node.create_client(
            SetParameters, 'simulated_robot/set_parameters')
        self._topic = self.node.create_publisher(
            JointTrajectory, f'{controller}/joint_trajectory', QoSProfile(depth=1))
        self._follow = ActionClient(
            self.node, FollowJointTrajectory, f'{controller}/follow_joint_trajectory')
        self._seen: set[bytes] = set()

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        for action in (self._excite, self._follow):
            action.destroy()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def wait(self, condition: Callable[[], Any], seconds: float = PATIENCE, what: str = ''
             ) -> None:
        """Spin until the condition holds; raises DynIdError after ``seconds``."""
        give_up = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > give_up:
                raise DynIdError(f'waited {seconds:g} s for {what or "nothing"}')
            self._executor.spin_once(timeout_sec=0.01)

    def spin(self, seconds: float) -> None:
        """Spin for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=min(left, 0.05))

    def meet(self, name: str, alive: Callable[[], None]) -> None:
        """Wait until a node that was started since the last call is there with all it has.

        ``alive`` raises where the process of the node has ended.
        """
        def new() -> set[bytes]:
            alive()
            there = self.node.get_publishers_info_by_topic(
                self.node.resolve_topic_name(SIGNS[name]))
            return {bytes(info.endpoint_gid) for info in there} - self._seen

        self.wait(new, what=f'node {name}')
        self._seen |= new()
        self.wait(self._excite.server_is_ready if name == 'excitation' else
                  self._parameters.service_is_ready, what=f'node {name}')
        self.spin(MATCHED)

    def send(self, trajectory: str) -> Any:
        """Send a goal with a trajectory file and return its handle."""
        self.segment, self.done = '', 0.0
        handle = self._answer(lambda: self._excite.send_goal_async(
            Excite.Goal(trajectory=trajectory), self._on_feedback))
        if not handle.accepted:
            raise DynIdError('the excitation node did not accept a goal')
        return handle

    def moving(self, result: Any, time_: float, duration: float) -> None:
        """Wait until the excitation of ``duration`` s is ``time_`` s old.

        Raises Ended when its goal ends before.
        """
        def there() -> bool:
            if result.done():
                raise Ended(result.result().result.message)
            return self.segment == 'excitation' and self.done * duration >= time_

        self.wait(there, what='the motion')

    def cancel(self, handle: Any) -> None:
        """Ask for the end of a goal of this client."""
        handle.cancel_goal_async()

    def cancel_all(self) -> None:
        """Ask for the end of whatever goal there is."""
        self._answer(lambda: self._cancel.call_async(CancelGoal.Request()))

    def trigger(self, name: str) -> Any:
        """Call ~/pause or ~/resume; the future answer."""
        return self._triggers[name].call_async(Trigger.Request())

    def fault(self, name: str) -> None:
        """Set the fault of the simulated robot."""
        self._answer(lambda: self.fault_soon(name))

    def fault_soon(self, name: str) -> Any:
        """Ask the simulated robot for a fault; the future answer."""
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=name)
        return self._parameters.call_async(
            SetParameters.Request(parameters=[Parameter(name='fault', value=value)]))

    def command_topic(self, joints: tuple[str, ...], position: list[float]) -> None:
        """Command another motion by the controller's topic, as a second program might."""
        self._topic.publish(_elsewhere(joints, position))

    def command_goal(self, joints: tuple[str, ...], position: list[float]) -> None:
        """Command another motion by the controller's action."""
        self._follow.send_goal_async(
            FollowJointTrajectory.Goal(trajectory=_elsewhere(joints, position)))

    def _on_feedback(self, message: Any) -> None:
        self.segment, self.done = message.feedback.segment, float(message.feedback.fraction)

    def _answer(self, ask: Callable[[], Any]) -> Any:
        """Return the answer to a request, which is made again where none comes."""
        for _ in range(round(PATIENCE / ANSWER)):
            future = ask()
            with suppress(DynIdError):
                self.wait(future.done, ANSWER)
                return future.result()
        raise DynIdError(f'no answer within {PATIENCE:g} s')


def _elsewhere(joints: tuple[str, ...], position: list[float]) -> JointTrajectory:
    point = JointTrajectoryPoint(positions=[q + AWAY for q in position],
                                 velocities=[0.0] * len(position))
    point.time_from_start.sec = int(LASTS)
    return JointTrajectory(joint_names=list(joints), points=[point])
