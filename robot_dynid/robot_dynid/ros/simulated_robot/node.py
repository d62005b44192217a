"""Node ``simulated_robot``: a MuJoCo arm behind the interfaces of ros2_control's controllers."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import rclpy
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from robot_dynid.errors import UsageError
from robot_dynid.numbers import POSITION, NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common import process, real_time
from robot_dynid.ros.common.params import follow_changes, load_parameters
from robot_dynid.ros.simulated_robot.trajectory_server import (
    TrajectoryServer,
    controller_state_message,
    fill,
)
from robot_dynid.settings import setting
from robot_dynid.simulation.arm import CONTROL_PERIOD, Setpoint
from robot_dynid.simulation.simulator import FAULTS, Simulator, start_position
from robot_dynid.simulation.trajectory_controller import Constraints
from robot_dynid.simulation.truth import Noise, Truth, load_truth

CONTROLLER_STATE_RATE = 100.0  # Hz: the original publishes in every cycle, of 10 ms by default
CLOCK_PERIOD = 0.01  # s between messages on /clock
#: s that simulated time stands still where setpoints are late; then the drives hold the last one
SETPOINT_PATIENCE, SETPOINT_LOOK = 0.2, 0.001
LARGEST_DELAY = 1.0  # s behind the clock before simulated time is allowed to slip
STATES_QOS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SETPOINTS_QOS = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
FROM_ROBOT = -1.0
RATE = NumberRange(1.0, 1000.0, 'Hz')
FACTOR = NumberRange(1e-3, 1e3)
SEED = NumberRange(0, 2**63 - 1, whole=True)
NOISE = NumberRange(-1.0, 10.0)
TOLERANCE = NumberRange(0.0, 1e3)
LIVE = ('fault', 'speed_scaling')  # parameters that are attributes of the simulator
SCALING = NumberRange(0.0, 2.0)


@dataclass(frozen=True)
class SimulatedRobotParameters:
    """Parameters of the node; see config/simulated_robot.yaml."""

    robot: str = setting('seven_axis', text='robot name, robot YAML or URDF file')
    simulation: str = setting(
        '', text='file with friction, gears, noise; name in config/simulation')
    controller_name: str = setting('joint_trajectory_controller', text='prefix of its topics')
    setpoints: str = setting(
        '', text='topic controller_state of a joint_trajectory_controller whose reference the '
        'drives follow, in place of the controller of this node; empty: none')
    state_rate: float = setting(500.0, RATE, 'joint states per second')
    joint_order: str = setting(
        'alphabetical', ('alphabetical', 'robot'), 'order of the names in joint_states')
    real_time_factor: float = setting(1.0, FACTOR, 'simulated seconds per second')
    start_position: tuple[float, ...] = setting(
        (), POSITION, 'start [rad, m]; empty: zero, or the middle of a range without zero')
    seed: int = setting(0, SEED, 'seed of the sensor noise')
    position_step: float = setting(FROM_ROBOT, NOISE, 'resolution [rad, m]; negative: robot YAML')
    position_noise: float = setting(FROM_ROBOT, NOISE, 'std [rad, m]; negative: robot YAML')
    velocity_noise: float = setting(FROM_ROBOT, NOISE, 'std [rad/s, m/s]; negative: robot YAML')
    effort_noise: float = setting(FROM_ROBOT, NOISE, 'std / effort limit; negative: robot YAML')
    path_tolerance: float = setting(
        0.0, TOLERANCE, "controller's default in rad or m; 0: unchecked")
    goal_tolerance: float = setting(
        0.0, TOLERANCE, "controller's default in rad or m; 0: unchecked")
    goal_time: float = setting(0.0, TOLERANCE, "controller's default in s; 0: wait forever")
    stopped_velocity_tolerance: float = setting(0.0, TOLERANCE, 'rad/s at the goal; 0: unchecked')
    speed_scaling: float = setting(
        1.0, SCALING, 'time of a trajectory per real time, as a speed slider sets '
        'it; 0: pause', live=True)
    fault: str = setting('none', FAULTS, 'fault to simulate', live=True)


def noise_of(parameters: SimulatedRobotParameters, truth: Truth) -> Noise:
    """Return the robot's noise, replaced by the parameters that are not negative."""
    given = {
        'position_step': parameters.position_step, 'position': parameters.position_noise,
        'velocity': parameters.velocity_noise, 'effort': parameters.effort_noise,
    }
    return replace(truth.noise, **{key: value for key, value in given.items() if value >= 0.0})


def build_simulator(parameters: SimulatedRobotParameters, robot: RobotModel) -> Simulator:
    """Return the simulator of the parameters; raises DynIdError if they are unusable."""
    if not 0.0 < parameters.state_rate * CONTROL_PERIOD <= 1.0:
        raise UsageError(f'parameter state_rate: {parameters.state_rate:g}; give 1 to 1000 Hz')
    if not parameters.real_time_factor > 0.0:
        raise UsageError('parameter real_time_factor: must be above zero')
    source = parameters.robot if parameters.robot.endswith(('.yaml', '.yml')) else None
    truth = load_truth(robot, parameters.simulation or source)
    truth = replace(truth, noise=noise_of(parameters, truth))
    constraints = Constraints(parameters.path_tolerance, parameters.goal_tolerance,
                              parameters.stopped_velocity_tolerance, parameters.goal_time)
    simulator = Simulator(robot, truth, constraints, parameters.seed)
    simulator.place(np.array(parameters.start_position) if parameters.start_position
                    else start_position(robot))
    return simulator


class SimulatedRobot(Node):
    """Steps the physics in a separate thread, which also publishes the states and /clock.

    Simulated time begins at the system time.
    """

    def __init__(self) -> None:
        super().__init__('simulated_robot')
        self.parameters, = load_parameters(self, SimulatedRobotParameters)
        robot = load_robot(self.parameters.robot)
        self._simulator = build_simulator(self.parameters, robot)
        for name in LIVE:
            setattr(self._simulator, name, getattr(self.parameters, name))
        names = list(robot.joints)
        if self.parameters.joint_order == 'alphabetical':
            names.sort()
        self._order = np.array([robot.index(name) for name in names])
        self._message = JointState(name=names)
        name = self.parameters.controller_name
        self._states = self.create_publisher(JointState, 'joint_states', STATES_QOS)
        self._motor_message = JointState(name=names)
        self._motor_states = self.create_publisher(JointState, 'motor_states', STATES_QOS) \
            if self._simulator.has_motor_states else None
        self._controller_states = None if self.parameters.setpoints else self.create_publisher(
            JointTrajectoryControllerState, f'{name}/controller_state', 10
        )
        self._true_message = JointState(name=list(robot.joints))
        self._true_states = self.create_publisher(JointState, '~/true_states', STATES_QOS)
        self._clock_publisher = self.create_publisher(Clock, '/clock', 1)
        self._clock_due = 0.0
        self._epoch = 0  # set below, as late as possible
        if self.parameters.setpoints:
            self._subscription = self.create_subscription(
                JointTrajectoryControllerState, self.parameters.setpoints, self._follow,
                SETPOINTS_QOS)
        else:
            self._server = TrajectoryServer(self, self._simulator, name, lambda: self._epoch)
        follow_changes(self, SimulatedRobotParameters, self._take_changes)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name='physics', daemon=True)
        self._epoch = time.time_ns()
        self._thread.start()
        self.get_logger().info(
            f'ready: simulates {robot.name} ({", ".join(robot.joints)}), publishes '
            f'{self.resolve_topic_name("joint_states")} at {self.parameters.state_rate:g} Hz; '
            + (f'the drives follow {self._subscription.topic_name}' if self.parameters.setpoints
               else f'controller {name} waits for trajectories'))

    def close(self) -> None:
        """Stop the physics thread."""
        self._stopped.set()
        self._thread.join(timeout=2.0)

    def _follow(self, message: JointTrajectoryControllerState) -> None:
        """Take the reference of a controller.

        One without finite numbers of each joint is none.

        Its stamp is that of its cycle. Its output is the reference of a cycle later, and joint
        states of mock components mirror that, by a stamp that jitters beside it.
        """
        row = {name: i for i, name in enumerate(message.joint_names)}
        joints, reference = self._simulator.robot.joints, message.reference
        given = reference.positions, reference.velocities, reference.accelerations
        if not all(name in row and row[name] < min(map(len, given)) for name in joints):
            return
        motion = np.array([[one[row[name]] for name in joints] for one in given])
        if np.all(np.isfinite(motion)):
            time_ns = Time.from_msg(message.header.stamp).nanoseconds - self._epoch
            self._simulator.command(1e-9 * time_ns, Setpoint(*motion))

    def _take_changes(self, changed: dict[str, Any]) -> None:
        for name in changed.keys() & set(LIVE):
            setattr(self._simulator, name, changed[name])

    def _run(self) -> None:
        cycles = max(1, round(1.0 / (self.parameters.state_rate * CONTROL_PERIOD)))
        period = cycles * CONTROL_PERIOD / self.parameters.real_time_factor
        every = max(1, round(1.0 / (CONTROLLER_STATE_RATE * cycles * CONTROL_PERIOD)))
        due, count, late = time.monotonic(), 0, 0.0
        while not self._stopped.is_set() and rclpy.ok():
            if self._simulator.ahead(cycles) and time.monotonic() < due + SETPOINT_PATIENCE:
                time.sleep(SETPOINT_LOOK)
                continue
            self._publish(cycles, count % every == 0)
            count += 1
            due += period
            before, late = late, time.monotonic() - due
            if late < 0.0:
                time.sleep(-late)
            elif late > LARGEST_DELAY:
                if late - before < LARGEST_DELAY:  # too slow, not stopped by a signal for a while
                    real_time.give_up_real_time()  # it would take all processor time
                self._slip(late)
                due += late

    def _publish(self, cycles: int, with_controller: bool) -> None:
        reading = self._simulator.advance(cycles)
        stamp = self._epoch + round(reading.time * 1e9)
        try:
            self._publish_clock(stamp)
            if self._true_states.get_subscription_count():
                self._publish_truth()
            if self._simulator.fault == 'stop_states':
                return
            order = self._order
            self._states.publish(fill(self._message, stamp, {
                'position': reading.position[order], 'velocity': reading.velocity[order],
                'effort': reading.effort[order]}))
            if self._motor_states is not None:
                assert reading.motor_position is not None and reading.motor_velocity is not None
                self._motor_states.publish(fill(self._motor_message, stamp, {
                    'position': reading.motor_position[order],
                    'velocity': reading.motor_velocity[order]}))
            if with_controller and self._controller_states and self._simulator.active:
                update, measured = self._simulator.view()
                # of its cycle: continued motions rely on stamp and elapsed time
                updated = self._epoch + round(1e9 * (self._simulator.time - CONTROL_PERIOD))
                self._controller_states.publish(controller_state_message(
                    self._simulator.robot.joints, Time(nanoseconds=updated).to_msg(), update,
                    measured, self._simulator.speed_scaling,
                ))
        except Exception:
            # The context may go at any time on SIGINT; publishing into it is no fault then.
            if rclpy.ok():
                raise
            self._stopped.set()

    def _publish_clock(self, stamp: int) -> None:
        """Publish the simulated time [ns], ahead of its states, but not at every one of them.

        Executors of rclpy need long for a message.
        """
        now = time.monotonic()
        if now >= self._clock_due and self._clock_publisher.get_subscription_count():
            self._clock_due = now + CLOCK_PERIOD
            self._clock_publisher.publish(Clock(clock=Time(nanoseconds=stamp).to_msg()))

    def _publish_truth(self) -> None:
        """Publish the true motion, without sensor noise, to judge stops by."""
        _, (position, velocity) = self._simulator.view()
        self._true_states.publish(fill(
            self._true_message, self._epoch + round(self._simulator.time * 1e9),
            {'position': position, 'velocity': velocity}))

    def _slip(self, seconds: float) -> None:
        """Stop catching up with the clock, after simulated time stood still for so long."""
        self._epoch += round(seconds * 1e9)
        self.get_logger().warning(f'simulation was {seconds:.2f} s late; stamps jump by as much')


def spin(node: SimulatedRobot, stop: threading.Event) -> None:
    """Request real-time scheduling if the simulation keeps pace with the clock, and spin."""
    if node.parameters.real_time_factor <= 1.0:
        refused = real_time.ask_real_time(real_time.CONTROLLER)
        if refused:
            node.get_logger().info(refused)
    process.spin(node, stop)


def main() -> NoReturn:
    """Run the node; see `process.run`."""
    sys.setswitchinterval(process.SWITCH_INTERVAL)
    process.run('simulated_robot', SimulatedRobot, spin)


if __name__ == '__main__':
    main()
