"""Speed scaling by the controller: the motion follows it, and no setpoint is above the plan."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, RULES, excitation

from robot_dynid.execution.alarms import Alarms
from robot_dynid.execution.commands import Cancel, Hold, Phase, Send
from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.supervisor import Execution
from robot_dynid.simulation.trajectory_controller import Goal, TrajectoryController
from robot_dynid.simulation.waypoints import Command, Waypoint

CYCLE = 0.004  # s of the controller
TICK = 0.01  # s of the node
CLOCK = 1.7e3  # s by which the controller's clock is ahead


class Scaled:
    """A node and a joint_trajectory_controller that scales the speed, as long as messages take.

    ``scaling`` is a function of the time; ``told``: what controller_state says of it; ``tells``:
    whether that has the time in the motion; ``steps``: whether the controller interpolates
    nothing. The robot follows its controller a cycle later. ``reference`` are times, positions and
    velocities (n,) that the controller commands.
    """

    def __init__(self, scaling, segment, rules=RULES, seed=0, told=lambda factor: factor):
        self.scaling, self.told, self.rules = scaling, told, rules
        self.random = np.random.default_rng(seed)
        self.controller = TrajectoryController(JOINTS)
        self.position, self.velocity = segment.points.position[0].copy(), np.zeros(2)
        self.controller.activate(self.position)
        self.states = JointStates(JOINTS)
        self.execution = Execution((segment,), rules, self.states, Alarms(JOINTS, rules.settings))
        self.now, self.log, self.reference = 10.0, [], []
        self.to_controller, self.to_node = deque(), deque()
        self.tells, self.steps = True, False

    def post(self, box, act, least=0.0005, most=0.008):
        """Deliver ``act`` some milliseconds from now, in order."""
        at = self.now + self.random.uniform(least, most)
        box.append((max(at, box[-1][0]) if box else at, act))

    def deliver(self, box):
        while box and box[0][0] <= self.now:
            box.popleft()[1]()

    def carry_out(self, commands):
        for command in commands:
            self.log.append((self.now, command))
            if isinstance(command, Send):
                goal, begun = self.goal(command.segment.points), command.begun
                stamp = 0.0 if begun is None else begun + CLOCK
                self.post(self.to_controller, lambda g=goal, s=stamp: self.take(g, s))
            elif isinstance(command, Cancel):
                self.post(self.to_controller, self.cancel)
            elif isinstance(command, Hold):
                rest = Command(JOINTS, (Waypoint(command.duration, command.position, np.zeros(2),
                                                 np.zeros(2)),))
                self.post(self.to_controller, lambda c=rest: self.controller.follow(
                    c, self.now + CLOCK, (self.position, self.velocity)))

    @staticmethod
    def goal(points):
        return tuple(Waypoint(*row) for row in zip(
            points.time, points.position, points.velocity, points.acceleration, strict=True))

    def take(self, points, stamp):
        self.points = [point.time for point in points], [point.position for point in points]
        assert self.controller.rejection(Command(JOINTS, points, stamp), self.now + CLOCK) is None
        self.controller.start(Goal(Command(JOINTS, points, stamp)), self.now + CLOCK,
                              (self.position, self.velocity))
        self.post(self.to_node, lambda: self.carry_out(self.execution.on_accepted(self.now)))

    def cancel(self):
        self.controller.cancel(self.position)
        self.post(self.to_node, lambda: self.carry_out(
            self.execution.on_cancel_answer(self.now, True)))

    def cycle(self, k):
        self.deliver(self.to_controller)
        controller, at = self.controller, self.now
        factor = controller.scaling = self.scaling(self.now)
        update = controller.update(at + CLOCK, self.position, self.velocity)
        position, velocity = update.reference[:2]
        if self.steps and controller.goal is not None:
            times, points = self.points
            ahead = min(int(np.searchsorted(times, update.elapsed, side='right')), len(times) - 1)
            position = points[ahead] if update.elapsed > times[0] else position
        elapsed = update.elapsed if self.tells else 0.0
        self.reference.append((at, position, velocity))
        told = self.told(factor)
        self.post(self.to_node, lambda: self.state(at, elapsed, position, told))
        self.position, self.velocity = position.copy(), velocity.copy()
        for ended in controller.finished:
            if ended.number == controller._numbers and ended.status == 4:
                self.post(self.to_node, lambda: self.carry_out(
                    self.execution.on_result(self.now, 4, 0, '')))
        controller.finished = []
        if k % 12 == 0 and controller.goal is not None:
            self.post(self.to_node, lambda: self.execution.on_feedback(self.now))
        if k % 2 == 0:
            measured = self.position.copy(), self.velocity.copy()
            self.post(self.to_node, lambda: self.joint_state(at, *measured))

    def state(self, at, elapsed, position, told):
        self.execution.on_controller_state(self.now, elapsed, position, at, told)
        self.carry_out(self.execution.taken_over(self.now))

    def joint_state(self, at, position, velocity):
        self.states.update(self.now, JOINTS, at, (position, velocity, np.full(2, 5.0)))
        self.carry_out(self.execution.on_state(self.now))

    def run(self, seconds=60.0):
        end, begun, k, ticked = self.now + seconds, self.now, 0, self.now
        while self.now < end and self.execution.phase is not Phase.DONE:
            self.now = begun + CYCLE * k
            self.cycle(k)
            for _ in range(4):
                self.now += CYCLE / 4.0
                self.deliver(self.to_node)
                if self.now - ticked > TICK:
                    ticked = self.now
                    self.carry_out(self.execution.tick(self.now))
            k += 1
        return self

    def start(self):
        self.run(0.05)
        self.carry_out(self.execution.start(self.now))
        return self

    def do(self, act):
        """Carry out what the execution does now, and return self."""
        self.carry_out(act(self.now))
        return self

    @property
    def outcome(self):
        return self.execution.outcome

    @property
    def speed(self):
        """Speeds (T, n) of the reference from cycle to cycle, rad/s."""
        time, position, _ = zip(*self.reference, strict=True)
        return np.diff(position, axis=0) / np.diff(time)[:, None]


def fast(robot, segment):
    """Return the largest speed of the reference as a part of the planned one."""
    planned = np.abs(segment.points.sample(np.arange(
        0.0, segment.points.duration, 1e-3)).velocity).max(axis=0)
    return float(np.max(np.abs(robot.speed) / planned))


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('factor', [1.0, 0.9, 0.5, 0.2])
def test_the_motion_follows_the_scaling_without_a_step(factor, seed):
    segment = excitation(seed)
    robot = Scaled(lambda _: factor, segment, seed=seed).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert fast(robot, segment) <= factor * 1.001
    assert robot.now - 10.0 > segment.points.duration / factor


@pytest.mark.parametrize('seed', range(6))
def test_a_speed_slider_moved_in_mid_motion_makes_no_step(seed):
    segment = excitation(seed)
    steps = ((0.9, 0.9), (1.7, 0.5), (2.6, 0.0), (3.4, 1.0), (4.3, 0.3), (6.0, 1.0))

    def slider(now):
        factor = 1.0
        for at, then in steps:
            factor = then if now - 10.0 > at + 0.013 * seed else factor
        return factor

    robot = Scaled(slider, segment, seed=seed).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert fast(robot, segment) <= 1.001
    assert np.all(np.abs(robot.position - segment.points.position[-1]) < 1e-6)


def constant(factor):
    return lambda _: factor


@pytest.mark.parametrize('told', [constant(None), constant(0.0)])
def test_a_controller_that_scales_without_a_word_is_followed_by_its_progress(told):
    segment = excitation(1)
    robot = Scaled(lambda now: 0.6 if now > 11.0 else 1.0, segment, told=told).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert robot.execution.watchdog.path_time.scaling == pytest.approx(0.6, abs=0.02)
    assert fast(robot, segment) <= 1.2  # until it shows


@pytest.mark.parametrize('factor', [1.0, 0.5, 0.25])
@pytest.mark.parametrize('code', [Code.CANCELLED, Code.EMERGENCY_STOP])
def test_a_stop_of_a_scaled_motion_is_along_its_path_within_the_limits(factor, code):
    segment = excitation(2)
    robot = Scaled(constant(factor), segment).start().run(0.2 / factor + 1.3)
    asked = robot.now
    robot.do(lambda now: robot.execution.cancel(now, Outcome(code, 'asked'))).run()
    assert robot.outcome.code is code and 'stopped along the path' in robot.outcome.text
    assert robot.now - asked < 1.0 + 0.5 / factor
    assert fast(robot, segment) <= factor * 1.001
    path = segment.points.sample(np.linspace(0.0, segment.points.duration, 40_000)).position
    assert np.min(np.abs(path - robot.position).max(axis=1)) < 1e-3


@pytest.mark.parametrize('factor', [0.1, 0.0])
def test_a_robot_that_crawls_or_is_paused_at_its_pendant_is_stopped_at_once(factor):
    segment = excitation(2)
    robot = Scaled(lambda now: factor if now > 11.5 else 1.0, segment).start().run(2.0)
    asked = robot.now
    robot.do(lambda now: robot.execution.cancel(now, Outcome(Code.CANCELLED, 'asked'))).run()
    assert robot.outcome.code is Code.CANCELLED and robot.now - asked < 0.2, robot.outcome


def test_pause_and_resume_at_half_speed():
    segment = excitation(3)
    robot = Scaled(constant(0.5), segment).start().run(2.0)
    robot.do(robot.execution.pause).run(2.0)
    assert robot.execution.phase is Phase.PAUSED
    stood = robot.position.copy()
    robot.run(0.5)
    assert np.array_equal(stood, robot.position)
    robot.do(robot.execution.resume).run()
    assert robot.outcome.code is Code.SUCCESS and fast(robot, segment) <= 0.5005


def test_a_motion_paused_for_long_at_the_pendant_goes_on_to_its_end():
    segment = excitation(4)
    robot = Scaled(lambda now: 0.0 if 11.3 < now < 60.0 else 1.0, segment).start().run(100.0)
    assert robot.outcome.code is Code.SUCCESS and robot.now > 60.0
    assert fast(robot, segment) <= 1.001


def test_a_controller_that_goes_faster_than_planned_is_stopped():
    robot = Scaled(lambda now: 1.2 if now > 11.0 else 1.0, excitation(5)).start().run()
    assert robot.outcome.code is Code.SPEED_SCALING
    assert 'speed scaling is 1.2: the motion is faster than planned' in robot.outcome.text
    assert 'decelerated within the limits' in robot.outcome.text and robot.now < 12.0


def test_too_slow_a_motion_comes_to_rest_on_its_path():
    segment = excitation(5)
    robot = Scaled(lambda now: 0.03 if now > 11.0 else 1.0, segment).start().run(200.0)
    assert robot.outcome.code is Code.SPEED_SCALING
    assert 'speed scaling is 0.03, at which the motion cannot be continued' in robot.outcome.text


def test_the_time_a_scaled_motion_loses_is_no_silence_and_no_missing_result():
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    robot = Scaled(constant(0.3), excitation(0), whole).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert sum(isinstance(c, Send) for _, c in robot.log) == 1


@pytest.mark.parametrize('told', [constant(None), lambda factor: factor])
def test_a_scaling_that_cannot_be_followed_stops_the_motion_and_is_named(told):
    """The controller does not tell its time, and the motion was sent whole."""
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    robot = Scaled(lambda now: 0.5 if now > 11.0 else 1.0, excitation(0), whole, told=told)
    robot.tells = False
    robot.start().run()
    assert robot.outcome.code is Code.SPEED_SCALING, robot.outcome
    scaling = 'below 1' if told(0.5) is None else '0.5'
    assert f'speed scaling is {scaling}, and the controller does not' in robot.outcome.text
    assert 'the robot holds' in robot.outcome.text and robot.now < 11.8
    assert fast(robot, robot.execution.plan[0]) < 1.001


def test_a_controller_that_does_not_interpolate_is_told_from_one_that_was_taken_over():
    robot = Scaled(constant(1.0), excitation(0))
    robot.steps = True
    robot.start().run()
    assert robot.outcome.code is Code.REJECTED, robot.outcome
    assert 'interpolation_method to splines' in robot.outcome.text
    assert robot.now < 10.6
