"""Node `excitation`: designs an excitation, moves to its start, executes it under supervision.

It only translates: designs come from `robot_dynid.excitation`, decisions from its `Execution`.
Everything runs in one thread but the design, which has its own.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.excitation.execution import (
    Cancel,
    Commands,
    Execution,
    Finish,
    Hold,
    Phase,
    Send,
)
from robot_dynid.excitation.guards import Code, GuardSettings, JointStates, Outcome
from robot_dynid.model.robot_file import load_robot
from robot_dynid.model.warm_up import warm_up
from robot_dynid.ros.controller_client import ControllerClient, goal_message
from robot_dynid.ros.excitation_design import Prepared, prepare
from robot_dynid.ros.excitation_report import diagnosis, feedback_message, result_message
from robot_dynid.ros.excitation_settings import ExcitationSettings
from robot_dynid.ros.params import load_parameters
from robot_dynid.ros.waiting import Waits
from robot_dynid_interfaces.action import Excite

TICK = 0.01
FEEDBACK_PERIOD = 0.05
FAREWELL = 0.3  # s for the last answers to leave before the node goes


class ExcitationNode(Node):
    """Serves ~/excite; see the module."""

    def __init__(self) -> None:
        super().__init__('excitation')
        self.settings = load_parameters(self, ExcitationSettings)
        self.guard_settings = load_parameters(self, GuardSettings)
        self.robot = load_robot(self.settings.robot)
        self.states = JointStates(self.robot.joints)
        self.execution: Execution | None = None
        self.last: Outcome | None = None
        self._goals: dict[str, Any] = {}
        self._handle: Any = None
        self._design: tuple[str, float] = ('design', 0.0)
        self._stop = threading.Event()
        self._leaving = False
        self._waits = Waits()
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._next_feedback = 0.0
        self._connect()
        self._pool.submit(warm_up)  # compiled kernels before the first goal, not during it

    @property
    def busy(self) -> bool:
        """Whether a goal is being worked on."""
        return self._handle is not None

    def _connect(self) -> None:
        group = ReentrantCallbackGroup()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        # Only the newest state matters here, and best effort hears every kind of publisher.
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._trajectory = self.create_publisher(JointTrajectory, '~/trajectory', latched)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.controller = ControllerClient(self, self.settings.controller, self._perform, group)
        self.create_subscription(
            JointState, 'joint_states', self._on_joint_states, newest, callback_group=group)
        self._tick_timer = self.create_timer(TICK, self._tick, group, clock=steady)
        self._tick_timer.cancel()
        self.create_timer(1.0, self._diagnose, group, clock=steady)
        self._server = ActionServer(
            self, Excite, '~/excite', self._on_excite, callback_group=group,
            cancel_callback=self._on_cancel)

    def shut_down(self) -> None:
        """Stop whatever moves; the caller goes on spinning until the node is not busy."""
        self._stop.set()
        self._leaving = True
        if self.execution is not None:
            self._perform(self.execution.cancel(
                time.monotonic(), Outcome(Code.CANCELLED, 'the node is shut down')))

    def fail(self, error: Exception) -> None:
        """Stop the motion after an error of the program itself."""
        self.get_logger().error(f'unexpected {type(error).__name__}: {error}')
        if self.execution is not None:
            self._perform(self.execution.cancel(time.monotonic(), Outcome(
                Code.ABORTED, f'unexpected {type(error).__name__}: {error}')))

    def _on_cancel(self, handle: Any) -> CancelResponse:
        if handle is not self._handle:
            return CancelResponse.REJECT
        self._stop.set()
        if self.execution is not None:
            self._perform(self.execution.cancel(
                time.monotonic(), Outcome(Code.CANCELLED, 'cancelled by the client')))
        return CancelResponse.ACCEPT

    async def _on_excite(self, handle: Any) -> Excite.Result:
        if self._leaving:
            return self._reply(handle, Outcome(Code.CANCELLED, 'the node is shut down'), None)
        if self.busy:
            return self._reply(handle, Outcome(
                Code.BUSY, 'another goal is being executed; wait for it or cancel it'), None)
        self._handle, self.execution, self._goals = handle, None, {}
        self._design, prepared = ('design', 0.0), None
        self._stop.clear()
        self._tick_timer.reset()
        try:
            prepared = await self._prepared(handle.request)
            outcome = await self._executed(prepared, handle.request.dry_run)
        except Cancelled:
            outcome = Outcome(Code.CANCELLED, 'cancelled before anything was sent')
        except DynIdError as error:
            outcome = Outcome(Code.INVALID, f'{error}; nothing was sent')
        except Exception as error:
            self.fail(error)
            outcome = Outcome(Code.ABORTED, f'unexpected {type(error).__name__}: {error}')
        finally:
            await self._ended()
            self._handle, self.execution = None, None
            self._tick_timer.cancel()
        self.last = outcome
        return self._reply(handle, outcome, prepared)

    async def _prepared(self, request: Excite.Goal) -> Prepared:
        """Design in the background, publish the trajectory."""
        try:
            options = yaml.safe_load(request.options)
        except yaml.YAMLError as error:
            raise UsageError(f'options are not YAML: {error}') from error
        worker = self._pool.submit(
            prepare, self.robot, (request.type, options), self.settings, self._progress)
        await self._waits.until(worker.done)
        prepared = worker.result()
        for warning in prepared.design.warnings:
            self.get_logger().warning(warning)
        self._trajectory.publish(prepared.message)
        return prepared

    async def _executed(self, prepared: Prepared, dry_run: bool) -> Outcome:
        """Check who is there, plan from where the robot stands, and go."""
        if dry_run:
            return Outcome(Code.SUCCESS, f'dry run, nothing was sent; {prepared.summary}')
        settings, guards = self.settings, self.guard_settings
        if not await self._waits.until(self.controller.ready, settings.controller_wait):
            self._refuse_if_stopped()
            return Outcome(Code.CONTROLLER_LOST, f'no action server {self.controller.name} after '
                           f'{settings.controller_wait:g} s; is the controller loaded and active, '
                           'and its name the parameter controller?')
        await self._waits.until(self._states_are_fresh, 10.0 * guards.state_timeout)
        self._refuse_if_stopped()
        rules, plan = prepared.plan(settings, guards, self.states)
        self._goals = {s.name: goal_message(s.points, rules.tolerances) for s in plan}
        await self._waits.until(lambda: False, 2.0 * TICK)  # take in what arrived while planning
        self._refuse_if_stopped()
        self.execution = Execution(plan, rules, self.states)
        self._perform(self.execution.start(time.monotonic()))
        outcome = await self._ended()
        if outcome.code is Code.SUCCESS:
            return Outcome(Code.SUCCESS, f'executed; {prepared.summary}')
        return outcome

    async def _ended(self) -> Outcome:
        """Wait for the end of the execution, if there is one."""
        execution = self.execution
        if execution is None:
            return Outcome(Code.SUCCESS, 'nothing was executed')
        await self._waits.until(lambda: execution.phase is Phase.DONE)
        assert execution.outcome is not None
        return execution.outcome

    def _reply(self, handle: Any, outcome: Outcome, prepared: Prepared | None) -> Excite.Result:
        text = f'{outcome.code.name}: {outcome.text}'
        if outcome.code is Code.SUCCESS:
            self.get_logger().info(text)
            handle.succeed()
            return result_message(outcome, self.robot.joints, prepared)
        self.get_logger().warning(text)  # rclpy wants one severity per place of call
        if outcome.code is Code.CANCELLED and handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return result_message(outcome, self.robot.joints, prepared)

    def _perform(self, commands: Commands) -> None:
        for command in commands:
            if isinstance(command, Send):
                assert self.execution is not None
                self.controller.send(self.execution, self._goals[command.segment.name])
            elif isinstance(command, Cancel):
                self.controller.cancel()
            elif isinstance(command, Hold):
                self.controller.hold(self.robot.joints, command.position, command.duration)
            elif isinstance(command, Finish):
                self.last = command.outcome

    def _on_joint_states(self, message: JointState) -> None:
        now, stamp = time.monotonic(), message.header.stamp
        values = (message.position, message.velocity, message.effort)
        news = self.states.update(now, message.name, stamp.sec + 1e-9 * stamp.nanosec, values)
        if news and self.execution is not None:
            self._perform(self.execution.on_state(now))

    def _tick(self) -> None:
        now, execution = time.monotonic(), self.execution
        if execution is not None and execution.phase is not Phase.DONE:
            self._perform(execution.tick(now, self.controller.ready()))
        self._waits.check(release=self._stop.is_set() and execution is None)
        if self._handle is not None and now >= self._next_feedback:
            self._next_feedback = now + FEEDBACK_PERIOD
            self._handle.publish_feedback(
                feedback_message(now, self.execution, self._design, self.states))

    def _states_are_fresh(self) -> bool:
        return self.states.oldest(time.monotonic())[1] <= self.guard_settings.state_timeout

    def _refuse_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Cancelled('asked to stop')

    def _progress(self, stage: str, fraction: float) -> None:
        self._design = (stage, fraction)
        self._refuse_if_stopped()

    def _diagnose(self) -> None:
        message = DiagnosticArray(status=[diagnosis(
            self.get_name(), self.execution, self.states, self.last, self.controller.ready())])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)


def spin(node: ExcitationNode, stop: threading.Event) -> None:
    """Spin until asked to stop; then stop the motion first and answer the client."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    deadline = float('inf')
    while rclpy.ok() and time.monotonic() < deadline:
        if stop.is_set() and deadline == float('inf'):
            node.shut_down()
            deadline = time.monotonic() + 2.0 * node.guard_settings.stop_timeout + FAREWELL
        if stop.is_set() and not node.busy:
            deadline = min(deadline, time.monotonic() + FAREWELL)
        try:
            executor.spin_once(timeout_sec=0.1)
        except ExternalShutdownException:
            return
        except Exception as error:  # a callback's error must not leave the robot unattended
            node.fail(error)


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code: 0 after SIGINT or SIGTERM, 2 for wrong parameters."""
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        node = ExcitationNode()
    except DynIdError as error:
        get_logger('excitation').fatal(str(error))
        rclpy.try_shutdown()
        return 2
    try:
        spin(node, stop)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
