"""The stage on which the excitation node acts: the node, the simulated robot and a user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from action_msgs.msg import GoalStatusArray
from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticArray
from nodes import NodeProcess, destroy
from rcl_interfaces.msg import Log, Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import (
    DurabilityPolicy,
    QoSProfile,
    qos_profile_action_status_default,
    qos_profile_sensor_data,
)
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.robot.robot_file import load_robot
from robot_dynid_interfaces.action import Excite

ROBOT = 'planar_3r'
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
SHORT = '{duration: 1.5, harmonics: 2, scale: 0.4, starts: 1, iterations: 10}'
LONG = '{duration: 12, harmonics: 6, scale: 0.6, starts: 1, iterations: 10}'
BRAKES = 3.0  # s, less than what is left of LONG
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
SAG = 0.2  # rad/s: where a goal begins, the reference steps by 1 mrad to where the robot hangs


def seconds(stamp: Any) -> float:
    """Return a stamp [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


class Client:
    """What a user does with the node, and what there is to be seen."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('user', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.segments: list[tuple[float, str]] = []
        self.remaining: list[float] = []
        self.holds: list[JointTrajectory] = []
        self.trajectories: list[JointTrajectory] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.sent: list[JointTrajectory] = []
        self.goals: list[Any] = []
        self.state = JointState()
        self.moved_at = self.speed = self.asked = 0.0
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        topics = ((JointState, 'joint_states', self._on_state, qos_profile_sensor_data),
                  (JointTrajectory, 'joint_trajectory_controller/joint_trajectory',
                   self._on_trajectory, 10),
                  (JointTrajectory, 'excitation/trajectory', self.trajectories.append, latched),
                  (JointTrajectory, 'excitation/sent', self.sent.append, 10),
                  (DiagnosticArray, '/diagnostics', self.diagnostics.append, 10))
        for topic in topics:
            self.node.create_subscription(*topic)
        self.stops: list[float] = []
        self.guarded: list[float] = []
        self._known: set[tuple[bytes, int]] = set()
        self.node.create_subscription(
            GoalStatusArray, 'joint_trajectory_controller/follow_joint_trajectory/_action/status',
            self._on_status, qos_profile_action_status_default)
        self.references: list[tuple[float, Any, Any]] = []
        self.node.create_subscription(
            JointTrajectoryControllerState, 'joint_trajectory_controller/controller_state',
            self._on_reference, 1000)
        self.node.create_subscription(Log, '/rosout', self._on_log, 100)
        self.emergency = self.node.create_publisher(Bool, 'emergency_stop', latched)
        self.pressed: bool | None = None
        self.temperature: float | None = None
        self.intruder: JointTrajectory | None = None
        self.node.create_timer(0.1, self._beat)
        self.other = self.node.create_publisher(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', 1)
        self.thermometer = self.node.create_publisher(Temperature, 'temperature', 10)
        self.triggers = {name: self.node.create_client(Trigger, f'excitation/{name}')
                         for name in ('pause', 'resume')}
        self.action = ActionClient(self.node, Excite, 'excitation/excite')
        self.parameters = self.node.create_client(
            SetParameters, 'simulated_robot/set_parameters')

    def _on_trajectory(self, message: JointTrajectory) -> None:
        """Note what comes over the controller's topic."""
        self.holds.append(message)
        self.stops.append(time.time())

    def _on_status(self, message: GoalStatusArray) -> None:
        """Note what the controller says about its goals: accepted, cancelled, ended."""
        for goal in message.status_list:
            status = bytes(goal.goal_info.goal_id.uuid), goal.status
            if status not in self._known:
                self._known.add(status)
                self.stops.append(time.time())

    def _on_reference(self, message: JointTrajectoryControllerState) -> None:
        reference = message.reference
        self.references.append((seconds(message.header.stamp), np.array(reference.positions),
                                np.array(reference.velocities)))

    def steps(self) -> list[str]:
        """Return where the reference was faster since the last goal than it should be.

        That is what the controller says of its speed, or SAG. A step of the position shows in it.
        Where states between are missing, as from a robot that was held up for long, it is the
        fastest speed that was sent.
        """
        stamps, positions, velocities = map(np.array, zip(*self.references))
        sent = [point.velocities for message in self.sent for point in message.points]
        planned = np.max(np.abs(sent), axis=0, initial=0.0) if sent else 0.0
        passed = np.diff(stamps)
        new = passed > 0.0
        speed = np.abs(np.diff(positions, axis=0)[new]) / passed[new, None]
        said = np.maximum(np.abs(velocities[:-1]), np.abs(velocities[1:]))[new]
        missing = passed[new] > 2.5 * np.median(passed[new])
        allowed = 1.02 * (np.where(missing[:, None], planned, said) + SAG)
        since, before = stamps[:-1][new] - stamps[0], positions[:-1][new]
        return [f'joint {j}, {since[i]:.3f} s after the first state: {speed[i, j]:.3f} instead of '
                f'{allowed[i, j]:.3f} rad/s for {passed[new][i]:.4f} s, from {before[i]}'
                for i, j in np.argwhere(speed > allowed)]

    def _on_log(self, message: Log) -> None:
        if message.name == 'excitation' and message.msg.startswith(('stopping', 'slowing')):
            self.guarded.append(seconds(message.stamp))

    def _beat(self) -> None:
        if self.pressed is not None:
            self.emergency.publish(Bool(data=self.pressed))
        if self.temperature is not None:
            self._publish_temperature()
        if self.intruder is not None:
            self.other.publish(self.intruder)

    def say_nothing(self) -> None:
        """Publish nothing any more, until asked to."""
        self.pressed = self.temperature = self.intruder = None

    def press(self, pressed: bool) -> None:
        """Say from now on, ten times a second, whether the emergency stop is pressed."""
        self.pressed = pressed
        self._beat()

    def trigger(self, name: str) -> str:
        """Call ~/pause or ~/resume and return its message; it must succeed."""
        answer = self.answer(self.triggers[name].call_async(Trigger.Request()))
        assert answer.success, answer.message
        return str(answer.message)

    def resume(self) -> str:
        """Call ~/resume until the robot stands, as far as the node knows; return its message."""
        while True:
            answer = self.answer(self.triggers['resume'].call_async(Trigger.Request()))
            if answer.success:
                return str(answer.message)
            assert 'still coming to rest' in answer.message, answer.message
            self.later(0.2)

    def warm(self, temperature: float) -> None:
        """Say from now on, ten times a second, how warm every joint is."""
        self.temperature = temperature
        self._beat()

    def _publish_temperature(self) -> None:
        """Publish the temperature of every joint, the last one first."""
        for joint in reversed(load_robot(ROBOT).joints):
            message = Temperature(temperature=self.temperature)
            message.header.frame_id = joint
            self.thermometer.publish(message)

    def stopped_after(self, cause: float) -> tuple[float, float, float]:
        """Return when, after ``cause``, the node decided, commanded, and was answered.

        Decision and command by the clock of the node; answered is the report of its
        goals, or what came over its topic, by the clock of this process.
        """
        def first(times: Callable[[], Iterable[float]], since: float) -> float:
            self.wait(lambda: any(at >= since for at in times()))
            return next(at for at in times() if at >= since)

        guarded = first(lambda: self.guarded, cause)
        commanded = first(lambda: (seconds(m.header.stamp) for m in self.sent), guarded)
        return guarded, commanded, first(lambda: self.stops, guarded)

    def hijack(self) -> None:
        """Command another motion over the topic until the goal ends, as a second program might.

        Again and again: the node may renew its own in the same cycle, which replaces it.
        """
        point = JointTrajectoryPoint(positions=[p + 0.5 for p in self.state.position])
        point.velocities, point.time_from_start.sec = [0.0] * len(point.positions), 2
        self.intruder = JointTrajectory(joint_names=self.state.name, points=[point])
        self._beat()

    def commanded(self) -> JointTrajectory:
        """Return the last motion that came over the controller's topic, its pieces put together.

        A piece replaces what came before it from its first point on.
        """
        start = max(i for i, m in enumerate(self.holds) if seconds(m.header.stamp) == 0.0)
        whole = JointTrajectory(joint_names=self.holds[start].joint_names)
        for message in self.holds[start:]:
            begin = seconds(message.points[0].time_from_start)
            kept = [p for p in whole.points if seconds(p.time_from_start) < begin - 1e-9]
            whole.points = [*kept, *message.points]
        return whole

    def _on_state(self, message: JointState) -> None:
        self.state, self.speed = message, float(np.abs(message.velocity).max(initial=0.0))
        if self.speed > 0.05:
            self.moved_at = self.clock

    @property
    def clock(self) -> float:
        """The robot's time [s]: the stamp of its latest state."""
        return seconds(self.state.header.stamp)

    @property
    def rested(self) -> float:
        """For how long [s] the robot has been at rest, by its own clock."""
        return self.clock - self.moved_at

    def stayed(self) -> None:
        """Fail unless the robot has not moved since the goal was sent, nor does shortly after."""
        end = self.clock + 0.3
        self.wait(lambda: self.clock > end)
        assert self.moved_at <= self.asked, 'the robot moved'

    def comes_to_rest(self) -> None:
        """Wait until the robot rests; fail when it went on for long, by its own clock.

        A robot that had no processor for a while makes up for it in a burst, before it listens.
        """
        begin = self.clock
        self.wait(lambda: self.rested > 0.3)
        assert self.moved_at - begin < BRAKES, 'the robot still moves'

    def later(self, time: float) -> None:
        """Wait until the robot's clock is ``time`` s later than in its next state."""
        before = self.state
        self.wait(lambda: self.state is not before)
        end = self.clock + time
        self.wait(lambda: self.clock >= end)

    def _on_feedback(self, message: Any) -> None:
        self.segments.append((time.monotonic(), message.feedback.segment))
        self.remaining.append(message.feedback.remaining)

    def wait(self, condition: Any, patience: float = PATIENCE) -> None:
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self.executor.spin_once(timeout_sec=0.02)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def answer(self, future: Any) -> Any:
        self.wait(future.done)
        return future.result()

    def fault(self, name: str) -> None:
        self.set_robot('fault', ParameterValue(
            type=ParameterType.PARAMETER_STRING, string_value=name))

    def scale(self, factor: float) -> None:
        """Move the speed slider of the robot."""
        self.set_robot('speed_scaling', ParameterValue(
            type=ParameterType.PARAMETER_DOUBLE, double_value=factor))

    def set_robot(self, name: str, value: ParameterValue) -> None:
        """Set a parameter of the simulated robot."""
        request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
        for _ in range(int(PATIENCE)):  # a request may go to a killed server, still in the graph
            future = self.parameters.call_async(request)
            end = time.monotonic() + 1.0
            while not future.done() and time.monotonic() < end:
                self.executor.spin_once(timeout_sec=0.02)
            if future.done():
                assert future.result().results[0].successful
                return
        raise AssertionError('the simulated robot takes no parameter')

    def send(self, options: str = LONG, **goal: Any) -> Any:
        for seen in (self.segments, self.remaining, self.holds, self.stops, self.guarded,
                     self.sent, self.references):
            seen.clear()
        self.asked = self.clock
        handle = self.answer(self.action.send_goal_async(
            Excite.Goal(options=options, **goal), self._on_feedback))
        assert handle.accepted
        self.goals.append(handle)
        return handle

    def result(self, handle: Any) -> tuple[int, Excite.Result]:
        answer = self.answer(handle.get_result_async())
        self.intruder = None
        self.goals = [goal for goal in self.goals if goal is not handle]
        assert answer.result.success == (answer.result.code == 0)
        gentle = answer.result.success or 'along the path' in answer.result.message
        steps = self.steps() if gentle and self.references else []
        assert not steps, f'the reference stepped: {steps}'
        return answer.status, answer.result

    def excite(self, options: str = SHORT, **goal: Any) -> Excite.Result:
        return self.result(self.send(options, **goal))[1]

    def moving(self) -> Any:
        """Start a long excitation and return its handle while the robot moves."""
        handle = self.send(LONG)
        self.wait(lambda: self.segments and self.segments[-1][1] == 'excitation')
        self.later(0.5)
        ended = handle.get_result_async()
        self.wait(lambda: ended.done() or self.speed > 0.2)
        assert not ended.done(), ended.result().result.message
        return handle

    def end_goals(self) -> None:
        """Cancel the goals with results not taken, and wait for their ends."""
        for handle in self.goals[:]:
            self.answer(handle.cancel_goal_async())
            self.result(handle)

    def controller_seen(self) -> bool:
        """Whether the node says that it sees the controller."""
        values = self.diagnostics[-1].status[0].values if self.diagnostics else []
        return any(v.key == 'controller' and v.value == 'present' for v in values)

    def wait_for_rest(self) -> None:
        """Wait until the robot is seen, at rest."""
        self.wait(lambda: self.rested > 0.3 and self.state.name)
        self.wait(self.action.server_is_ready)


# Wide against a loaded machine; the guards themselves are tested to the cycle without ROS.
PARAMETERS = {'robot': ROBOT, 'approach_scale': 0.6, 'controller_wait': 1.5,
              'state_timeout': 1.0, 'controller_timeout': 1.5, 'feedback_timeout': 3.0,
              'acceptance_timeout': 10.0, 'result_timeout': 5.0, 'stop_timeout': 5.0,
              'cancel_timeout': 1.0,  # a stop not answered by then is followed by a harder one
              'tracking_window': 1.0, 'first_pass_scale': 1.0, 'warm_up': 0,
              'return_to_start': False, 'validation': False, 'lookahead': 2.0}
# At the 500 Hz of the default, with which test_stops judges the stops, four tenths of a core more
# go into each motion.
SIMULATION = {'robot': ROBOT, 'effort_noise': 0.0, 'state_rate': 100.0}


class Stage:
    """Robot, node and client of the module; the robot can be lost and replaced.

    Bags go below ``folder``; ``changes`` are parameters of the excitation node.
    """

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.client = Client()
        self.folder, self.changes = folder, changes
        self.start_node()
        self.robot: NodeProcess | None = None

    def start_node(self, **changes: Any) -> None:
        """Start the excitation node anew, with these parameters changed, too."""
        if hasattr(self, 'node'):
            self.kill_node()
        self.changed = changes
        self.node = NodeProcess('excitation', {
            **PARAMETERS, 'recording_directory': self.folder, **self.changes, **changes})

    def reset(self, **changes: Any) -> Stage:
        """End what the test before left behind, passed or failed; where that fails, begin anew.

        ``changes`` are parameters of the node which this test wants.
        """
        try:
            assert self.node.process.poll() is None and self.changed == changes
            self.client.end_goals()
        except AssertionError:
            self.client.goals.clear()
            if self.robot is not None:
                self.kill_robot()
            self.start_node(**changes)
            self.client.spin(0.1)
            self.client.diagnostics.clear()
        return self

    def with_robot(self) -> Client:
        if self.robot is None or self.robot.process.poll() is not None:
            self.robot = NodeProcess('simulated_robot', SIMULATION)
            self.client.wait(self.client.parameters.service_is_ready)
            self.client.state = JointState()
            self.client.diagnostics.clear()
        # a killed node stays in the graph for long, and takes goals that nobody answers
        self.client.wait(self.client.controller_seen)
        self.client.fault('none')
        self.client.wait_for_rest()
        return self.client

    def kill_node(self) -> None:
        """Kill the excitation node, to which nobody publishes then.

        The shared memory that a killed process leaves can hold up who does, for ever: Fast DDS,
        issues 1144 and 6484.
        """
        self.client.say_nothing()
        self.node.process.kill()
        self.node.process.wait()

    def kill_robot(self) -> None:
        assert self.robot is not None
        self.robot.process.kill()
        self.robot.process.wait()

    def close(self) -> None:
        for process in (self.node, self.robot):
            if process is not None:
                process.stop()
        destroy(self.client.node)
        rclpy.shutdown(context=self.client.context)
