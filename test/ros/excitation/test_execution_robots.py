"""ros/simulated_robot/node.py: excitations of robots unlike the others: motors that report their
current, joints that slide.

The whole way but DDS, in simulated time: design, plan, messages, supervision, simulated robot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.execution.guards import Code, GuardSettings, JointStates, Outcome
from robot_dynid.execution.segment import Cancel, Commands, Phase, Send
from robot_dynid.execution.supervisor import Execution
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.controller_client import goal_message
from robot_dynid.ros.excitation.plan import designed
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.ros.simulated_robot.node import SimulatedRobotParameters, build_simulator
from robot_dynid.ros.simulated_robot.trajectory_server import goal_from_message
from robot_dynid.simulation.arm import CONTROL_PERIOD
from robot_dynid.simulation.truth import load_truth
from robot_dynid.simulation.waypoints import Command, Waypoint

CYCLES = 2  # of the controller [ms] between joint states
START = {'ur10e': (0.0, -1.2, 0.9, 0.3, 0.4, 0.0), 'stanford_arm': (0.0,) * 6}
# Revolute joints that stay within 0.1 rad of where they are can never be 0.15 rad off.
NARROW: dict[str, Any] = {f'joint_{j}': {'position': [-0.05, 0.05]} for j in (1, 2, 4, 5, 6)}
MOTION = {'duration': 2.0, 'harmonics': 2, 'starts': 1, 'iterations': 1, 'scale': 0.5}


class Drill:
    """An excitation of a simulated robot, a joint state at a time; ``shown`` are the readings.

    A controller that does not tell its state gets motions whole.
    """

    def __init__(self, name: str, tells: bool = True, **options: Any) -> None:
        self.tells = tells
        self.robot = robot = load_robot(name)
        settings = ExcitationSettings(
            robot=name, approach_scale=0.6, first_pass_scale=1.0, warm_up=0,
            return_to_start=False,
            lookahead=1.0 if tells else 0.0)
        self.arm = build_simulator(SimulatedRobotParameters(
            robot=name, effort_noise=0.0, velocity_noise=0.0, start_position=START[name]), robot)
        self.states, self.shown = JointStates(robot.joints), list[np.ndarray[Any, Any]]()
        self.receive()
        plan = designed(robot, ('fourier', MOTION | options), settings, lambda *_: None)
        rules, goals = plan.goals(GuardSettings(), self.states)
        self.execution = Execution(tuple(goals), rules, self.states)
        self.perform(self.execution.start(self.arm.time))

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        assert self.execution.outcome is not None
        return self.execution.outcome

    def receive(self) -> None:
        """Let the robot move on and take in what its sensors show."""
        reading = self.arm.advance(CYCLES)
        values = reading.position, reading.velocity, reading.effort
        self.shown.append(np.array(values))
        self.states.update(self.arm.time, self.robot.joints, 1.0 + self.arm.time, values)

    def perform(self, commands: Commands) -> None:
        """Do as the node does, and answer as the controller does."""
        now, execution = self.arm.time, self.execution
        for command in commands:
            if isinstance(command, Send):
                tolerances = execution.rules.tolerances
                goal = goal_from_message(goal_message(command.segment.points, tolerances), 0)
                if command.begun is not None:
                    goal = replace(goal, command=replace(goal.command, stamp=command.begun))
                assert self.arm.rejection(goal.command) is None
                self.number = self.arm.start(goal)
                self.perform(execution.on_accepted(now))
            elif isinstance(command, Cancel):
                self.perform(execution.on_cancel_answer(now, self.arm.cancel()))

    def run(self, seconds: float = 30.0) -> Drill:
        """Go on for so long, or until it is done."""
        end, execution = self.arm.time + seconds, self.execution
        while execution.phase is not Phase.DONE and self.arm.time < end:
            self.receive()
            execution.on_feedback(self.arm.time)
            update, _ = self.arm.view()
            if self.tells:
                execution.on_controller_state(
                    self.arm.time, update.elapsed, update.reference[0],
                    self.arm.time - CONTROL_PERIOD, 1.0)
                self.perform(execution.react(self.arm.time))
            self.perform(execution.on_state(self.arm.time))
            for ended in self.arm.take_finished():
                if ended.number == self.number:
                    self.perform(execution.on_result(
                        self.arm.time, ended.status, ended.code, ended.text))
            self.perform(execution.tick(self.arm.time))
        return self

    def until_excited(self) -> Drill:
        """Go on until the excitation itself has run for a while."""
        while self.execution.segment.name != 'excitation':
            assert self.run(0.1).execution.phase is not Phase.DONE, self.outcome
        return self.run(0.8)


@pytest.mark.parametrize('name', START)
def test_the_whole_excitation_runs(name: str) -> None:
    drill = Drill(name).run()
    assert drill.outcome == Outcome(Code.SUCCESS, 'done')
    position, limits = np.array(drill.shown)[:, 0], drill.robot.limits
    assert np.ptp(position, axis=0).min() > 0.01, 'every joint moves'
    assert np.all((position > limits.lower) & (position < limits.upper))
    goal = drill.execution.segment.points.position[-1]
    assert np.all(np.abs(position[-1] - goal) < drill.execution.rules.tolerances.goal)


def test_a_current_driven_robot_is_watched_by_its_currents() -> None:
    """Limits are torques, what is reported are amperes: the gains lie between them."""
    drill = Drill('ur10e').until_excited()
    robot, gains = drill.robot, drill.robot.drive.gains
    assert robot.drive.kind == 'current' and gains is not None
    position, _, effort = drill.shown[0]
    holding = gravity_effort(robot, position[None])[0] / gains
    friction = load_truth(robot).coulomb / gains
    assert np.abs(holding).max() > 5.0
    assert np.all(np.abs(effort - holding) < friction + 0.05), 'amperes, but for dry friction'
    limit = robot.limits.effort[0] / gains[0]
    drill.arm.fault = 'effort_spike'
    assert drill.run().outcome.code is Code.EFFORT_LIMIT
    assert (f"effort of joint 'shoulder_pan_joint' is {limit:.4g}, more than the allowed "
            f'{0.9 * limit:.4g} (limit {limit:.4g})') in drill.outcome.text


@pytest.mark.always
@pytest.mark.parametrize(('until', 'words'), [
    (3.0, r"joint 'joint_3' is at \S+, (0\.03\d*) off its trajectory \(limit 0\.03\);"),
    (0.4, r"but joint 'joint_3' is (0\.\d+) away from the end \(limit 0\.01\): check"),
])
def test_a_prismatic_joint_has_tolerances_of_its_own(until: float, words: str) -> None:
    """Another program stops the arm: told 3 cm later, or when it says that it has ended well."""
    drill = Drill('stanford_arm', tells=False, limits=NARROW).until_excited()
    watchdog, points = drill.execution.watchdog, drill.execution.segment.points
    motion = points.sample(watchdog.elapsed(drill.arm.time) + 0.4)
    still = tuple(motion.position[0]), (0.0,) * 6, (0.0,) * 6
    drill.arm.follow(Command(
        drill.robot.joints, tuple(Waypoint(t, *still) for t in sorted({0.4, until}))))
    drill.run(3.0)
    assert drill.outcome.code is Code.TRACKING_ERROR, drill.outcome
    said = re.search(words, drill.outcome.text)
    assert said is not None, drill.outcome.text
    assert float(said[1]) > 0.03
