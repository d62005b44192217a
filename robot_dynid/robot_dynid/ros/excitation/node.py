"""Node `excitation`: designs or takes an excitation, moves to its start, executes it supervised.

It only translates: designs come from `robot_dynid.excitation`, decisions from its `Execution`.
Joint states, controller state and alarms are received by a separate thread, the listener, which
also watches timeouts; services, actions and answers of the controller by the executor. Both work
under the listener's lock, so an execution has one caller at a time. Designs and their checks have
a separate thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import rclpy
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState, Temperature
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker

from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.excitation.design import SessionOver
from robot_dynid.execution.checklist import verdict
from robot_dynid.execution.guards import Alarms, Code, GuardSettings, Outcome
from robot_dynid.numbers import shown
from robot_dynid.ros.common import process, real_time
from robot_dynid.ros.common.described_robot import RobotFiles
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.messages import Diagnostics, message_of, seconds, sendable
from robot_dynid.ros.common.params import follow_changes, load_parameters
from robot_dynid.ros.common.rclpy_compat import spin_once
from robot_dynid.ros.common.services import answered, conclude
from robot_dynid.ros.excitation.messages import (
    diagnosis,
    feedback_message,
    path_marker,
    status_of,
)
from robot_dynid.ros.excitation.plan import ExcitationPlan, refusal
from robot_dynid.ros.excitation.runner import COMPUTING, Runner
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.threads import limit_threads
from robot_dynid_interfaces.action import Check, Excite

TICK = 0.01  # longest time between two looks of the listener during a motion, s
IDLE = 0.05  # s between looks without a goal
WAITS = 0.02  # s between checks of what is waited for
FEEDBACK_PERIOD = 0.05  # s
BUSY = 'another goal is being executed, or checked; wait for it or cancel it'
LEAVING = 'the node is shut down'
CLOSING = 2.0  # s to close the recording
ANSWERING = 0.3  # s for the last answers to be sent before the node ends
PUBLISHER_LOOK = 0.1  # s between checks for publishers of the emergency stop during a goal
#: best effort receives from every publisher
STATES_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
#: receives from every publisher, without a warning about incompatible quality
ANY = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
#: receives earlier messages from publishers that keep them; others would be warned
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class AlarmTopics:
    """Keeps ``alarms`` up to date; calls ``on_alarm`` at every stop and temperature.

    Messages come through ``listener``, so both happen under its lock.
    """

    def __init__(self, node: Node, alarms: Alarms, on_alarm: Callable[[], None],
                 listener: Listener, settings: ExcitationSettings) -> None:
        self._node, self._alarms, self._on_alarm = node, alarms, on_alarm
        self._listener, self._latched = listener, False
        self._topic = node.resolve_topic_name('emergency_stop')
        self._kind, self._state = stop_state(settings)
        self._released = settings.emergency_stop_released
        listener.subscribe(self._kind, 'emergency_stop', self._on_stop, ANY)
        listener.subscribe(Temperature, 'temperature', self._on_temperature, ANY)

    def check_publishers(self) -> None:
        """Note whether the emergency stop has a publisher; receive a message it has latched."""
        offered = [info.qos_profile
                   for info in self._node.get_publishers_info_by_topic(self._topic)]
        self._alarms.present = bool(offered)
        if not self._latched and any(keeps(qos) for qos in offered):
            self._latched = True
            self._listener.subscribe(self._kind, 'emergency_stop', self._on_stop, LATCHED)

    def _on_stop(self, data: bytes, info: Mapping[str, Any]) -> None:
        pressed = self._state(message_of(data, self._kind)) not in self._released
        self._alarms.note_emergency_stop(self._listener.arrival(info), pressed)
        if pressed:
            self._on_alarm()

    def _on_temperature(self, data: bytes, info: Mapping[str, Any]) -> None:
        message = message_of(data, Temperature)
        self._alarms.note_temperature(
            self._listener.arrival(info), message.header.frame_id, message.temperature)
        self._on_alarm()


def stop_state(settings: ExcitationSettings) -> tuple[Any, Callable[[Any], Any]]:
    """Return the message type of the emergency stop, and the function that gets its state.

    Raises UsageError if the type is not installed, or its field is not a whole number or Bool.
    """
    name, field = settings.emergency_stop_type, settings.emergency_stop_field
    package, _, kind = name.replace('/msg/', '/').partition('/')
    try:
        message = getattr(import_module(f'{package}.msg'), kind)
    except (ImportError, AttributeError, TypeError):
        raise UsageError(f'parameter emergency_stop_type: {shown(name)} is not installed; source '
                         'the workspace of your driver, or correct the name') from None
    state = attrgetter(field)
    try:
        valid = isinstance(state(message()), int)
    except AttributeError:
        valid = False
    if not valid:
        raise UsageError(
            f'parameter emergency_stop_field: {name} has no whole number or bool {shown(field)}; '
            f'see `ros2 interface show {name}`')
    return message, state


def keeps(qos: QoSProfile) -> bool:
    """Return whether a publisher sends late subscribers its earlier messages."""
    return bool(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
                and qos.reliability == ReliabilityPolicy.RELIABLE)


class ExcitationNode(Node):
    """Serves ~/excite, ~/pause and ~/resume; see the module."""

    def __init__(self) -> None:
        super().__init__('excitation')
        settings, self.guard_settings = load_parameters(self, ExcitationSettings, GuardSettings)
        self.last: Outcome | None = None
        self._handle: Any = None
        self._checking = False
        self._next_feedback = self._next_publishers = 0.0
        self._newest: tuple[bytes, float] | None = None
        self._group = ReentrantCallbackGroup()
        self.listener = Listener(self, IDLE, TICK, self._looked)
        self.runner = Runner(self, RobotFiles(self, settings), settings, self.guard_settings,
                             self._group, self.listener)
        self._connect()
        follow_changes(self, ExcitationSettings, self._take_changes)
        self.get_logger().info(self._ready())

    def _ready(self) -> str:
        robot, settings = self.runner.robot, self.runner.settings
        return (f'ready: robot {robot.name} ({", ".join(robot.joints)}), states on '
                f'{self.resolve_topic_name("joint_states")}, {self.runner.controller.name}; waits '
                f'for goals on {self.resolve_service_name("~/excite")}, records below '
                f'{Path(settings.recording_directory).expanduser().absolute()}')

    @property
    def busy(self) -> bool:
        """Whether a goal is being executed or checked."""
        return self._handle is not None or self._checking

    def _connect(self) -> None:
        group, steady = self._group, Clock(clock_type=ClockType.STEADY_TIME)
        one, both = (QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL)
                     for depth in (1, 2))
        self._trajectory = self.create_publisher(JointTrajectory, '~/trajectory', one)
        self._path = self.create_publisher(Marker, '~/path', both)
        self._diagnostics = Diagnostics(self, self.runner.robot.name)
        self.listener.subscribe(JointState, 'joint_states', self._on_joint_states, STATES_QOS)
        self._alarms = AlarmTopics(
            self, self.runner.alarms, self._on_alarm, self.listener, self.runner.settings)
        self._tick_timer = self.create_timer(WAITS, self._tick, group, clock=steady)
        self._tick_timer.cancel()
        self.create_timer(1.0, self._diagnose, group, clock=steady)
        for name, act in (('pause', self.runner.pause), ('resume', self.runner.resume)):
            self.create_service(
                Trigger, f'~/{name}', answered(lambda *_, act=act: act(), self.get_logger()),
                callback_group=group)
        self._server = ActionServer(
            self, Excite, '~/excite', self._on_excite, callback_group=group,
            cancel_callback=self._on_cancel)
        self._checks = ActionServer(
            self, Check, '~/check', self._on_check, callback_group=group)
        self.listener.start()

    def shut_down(self) -> None:
        """Stop whatever moves; the caller goes on spinning until the node is not busy."""
        self.runner.stop.set()
        self.runner.leaving = True
        self.runner.cancel(Outcome(Code.CANCELLED, LEAVING))

    def close(self) -> None:
        """Stop listening, and end the recording."""
        self.listener.close()
        self.runner.close()

    def fail(self, error: Exception) -> None:
        """Stop the motion after an error of the program itself."""
        self.get_logger().error(f'unexpected {type(error).__name__}: {error}')
        self.runner.cancel(Outcome(Code.ABORTED, f'unexpected {type(error).__name__}: {error}'))

    def _on_cancel(self, handle: Any) -> CancelResponse:
        if handle is not self._handle:
            return CancelResponse.REJECT
        self.runner.stop.set()
        self.runner.cancel(Outcome(Code.CANCELLED, 'cancelled by the client'))
        return CancelResponse.ACCEPT

    async def _on_excite(self, handle: Any) -> Excite.Result:
        if self.runner.leaving:
            return self._reply(handle, Outcome(Code.CANCELLED, LEAVING), None)
        if self.busy:
            return self._reply(handle, Outcome(Code.BUSY, BUSY), None)
        self._handle, identifier = handle, ''
        plan: ExcitationPlan | None = None
        over: DynIdError | None = None
        self.runner.begin()
        self._hurry()
        try:
            plan = await self.runner.planned(handle.request)
            self._show(plan)
            if handle.request.dry_run:
                outcome = await self.runner.shown(plan)
                identifier = self.runner.dry_runs.keep(plan)
            else:
                outcome = await self.runner.executed(plan)
        except Cancelled:
            outcome = Outcome(Code.CANCELLED, 'cancelled before anything was sent')
        except DynIdError as error:
            over = error
            outcome = Outcome(refusal(error), f'{error}; nothing was sent')
        except Exception as error:
            self.fail(error)
            outcome = Outcome(Code.ABORTED, f'unexpected {type(error).__name__}: {error}')
        finally:
            await self.runner.ended()
            self._handle, self.runner.execution = None, None
            self._idle()
        self.last = outcome
        return self._reply(handle, outcome, plan or over, identifier)

    async def _on_check(self, handle: Any) -> Check.Result:
        refused = LEAVING if self.runner.leaving else BUSY if self.busy else ''
        if refused:
            handle.abort()
            return Check.Result(success=False, message=refused)
        self._checking = True
        self.runner.stop.clear()  # of a goal that was cancelled: it ends the listening at once
        self._hurry()
        try:
            items = await self.runner.checked()
            success, text = verdict(items)
            statuses = [status_of(item) for item in items]
        except DynIdError as error:
            success, text, statuses = False, str(error), []
        except Exception as error:
            self.fail(error)
            success, text, statuses = False, f'unexpected {type(error).__name__}: {error}', []
        finally:
            self._checking = False
            self._idle()
        for status in statuses:
            handle.publish_feedback(Check.Feedback(item=status))
        handle.succeed()
        return Check.Result(success=success, message=sendable(text), items=statuses)

    def _hurry(self) -> None:
        """Check messages as they arrive, and the conditions waited for."""
        self._tick_timer.reset()
        self.listener.period = 0.0

    def _idle(self) -> None:
        self._tick_timer.cancel()
        self.listener.period = IDLE

    def _show(self, plan: ExcitationPlan) -> None:
        """Publish a plan: the points of all motions, the fit motion last, and the tip paths."""
        for warning in (*plan.warnings, *self.runner.warnings):
            self.get_logger().warning(sendable(warning))
        ways = [motion.segments[-1].points for motion in plan.motions]
        for motion in reversed(plan.motions):
            self._trajectory.publish(motion.message)
        for number, points in enumerate((*ways, None)[:2]):
            self._path.publish(path_marker(plan.robot, points, self.get_clock().now(), number))

    def _reply(self, handle: Any, outcome: Outcome, plan: ExcitationPlan | DynIdError | None,
               identifier: str = '') -> Excite.Result:
        message = sendable(outcome.text)
        text = f'{outcome.code.name}: {message}'
        result = Excite.Result(
            success=outcome.code is Code.SUCCESS, code=int(outcome.code), message=message,
            joint_names=list(self.runner.robot.joints))
        if isinstance(plan, SessionOver):
            result.largest_deviation = plan.deviation
            result.out_of_reach = list(plan.unreachable)
        if isinstance(plan, ExcitationPlan):
            session = plan.design.session
            if session is not None:
                result.largest_deviation = session.swings[-1].largest_deviation
                result.out_of_reach = list(session.unreachable)
            result.duration, result.plan = plan.duration, identifier
            result.total_duration = self.runner.total_duration
            result.warnings = [*map(sendable, (*plan.warnings, *self.runner.warnings))]
            result.recording = self.runner.recording
        if result.success:
            self.get_logger().info(text)
        else:  # rclpy wants one severity per place of call
            self.get_logger().warning(text)
        conclude(handle, result.success,
                 outcome.code is Code.CANCELLED and handle.is_cancel_requested)
        return result

    def _on_joint_states(self, data: bytes, info: Mapping[str, Any]) -> None:
        self._newest = data, self.listener.arrival(info)

    def _take_state(self) -> None:
        """Use the newest joint states; earlier ones are obsolete."""
        if self._newest is None:
            return
        (data, arrival), self._newest = self._newest, None
        message, runner = message_of(data, JointState), self.runner
        values = (message.position, message.velocity, message.effort)
        updated = runner.states.update(
            arrival, message.name, seconds(message.header.stamp), values)
        if updated and runner.execution is not None:
            runner.perform(runner.execution.on_state(time.monotonic()))

    def _looked(self) -> None:
        """Check timeouts, after all messages received were taken."""
        self._take_state()
        self.runner.watch(time.monotonic())

    def _on_alarm(self) -> None:
        if self.runner.execution is not None:
            self.runner.perform(self.runner.execution.on_alarm(time.monotonic()))

    def _tick(self) -> None:
        now = time.monotonic()
        if now >= self._next_publishers:
            self._next_publishers = now + PUBLISHER_LOOK
            self._alarms.check_publishers()
        runner = self.runner
        runner.waits.check(release=runner.stop.is_set() and runner.execution is None)
        if self._handle is not None and now >= self._next_feedback:
            self._next_feedback = now + FEEDBACK_PERIOD
            self._handle.publish_feedback(
                feedback_message(now, runner.execution, runner.design, runner.later))

    def _take_changes(self, changed: dict[str, Any]) -> None:
        """Apply changed parameters, for the next goal."""
        self.runner.settings = replace(self.runner.settings, **changed)

    def _diagnose(self) -> None:
        runner = self.runner
        self._alarms.check_publishers()
        self._diagnostics.publish(diagnosis(
            runner.execution, runner.states, self.last, runner.controller.ready(),
            runner.take_statistics()))


def spin(node: ExcitationNode, stop: threading.Event) -> None:
    """Spin until asked to stop; then stop the motion first and answer the client."""
    refused = real_time.ask_real_time(real_time.WATCHING, (COMPUTING,))
    if refused:
        node.get_logger().info(refused)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    deadline = float('inf')
    while rclpy.ok() and time.monotonic() < deadline:
        if stop.is_set() and deadline == float('inf'):
            node.shut_down()
            guards = node.guard_settings
            deadline = (time.monotonic() + guards.stop_time + 2.0 * guards.stop_timeout
                        + CLOSING + ANSWERING)
        if stop.is_set() and not node.busy:
            deadline = min(deadline, time.monotonic() + ANSWERING)
        try:
            spin_once(executor, node.listener.turn, 0.1)
        except ExternalShutdownException:
            return
        except Exception as error:  # a callback's error must not leave the robot unattended
            node.fail(error)


def main(args: list[str] | None = None) -> NoReturn:
    """Run the node; see `process.run`."""
    limit_threads(1)  # the other cores are for the robot and the rest of the node
    process.run('excitation', ExcitationNode, spin, args)


if __name__ == '__main__':
    main()
