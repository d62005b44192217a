"""A robot, a node and controllers in simulated time, for tests of supervised execution."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from robot_dynid.execution.guards import (
    IMMEDIATE,
    STOP_OF,
    Alarms,
    GuardSettings,
    JointStates,
    Tolerances,
)
from robot_dynid.execution.sampled import sampled
from robot_dynid.execution.segment import Cancel, Hold, Phase, Segment, Send
from robot_dynid.execution.supervisor import Execution
from robot_dynid.execution.watchdog import Rules
from robot_dynid.simulation.trajectory_controller import Goal, TrajectoryController
from robot_dynid.simulation.waypoints import Command, Waypoint
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits, quintic_move

JOINTS = ('shoulder', 'elbow')
PERIOD = 0.01
LEAD_IN = 0.2


def box(**changes):
    values = {'lower': -2.0, 'upper': 2.0, 'velocity': 2.0, 'acceleration': 8.0,
              'jerk': np.nan, 'effort': 100.0, **changes}
    return MotionLimits(JOINTS, **{k: np.broadcast_to(v, (2,)).astype(float)
                                   for k, v in values.items()})


LIMITS = box()
RULES = Rules(LIMITS, GuardSettings(),
              Tolerances(*(np.full(2, v) for v in (0.02, 0.1, 0.3, 0.05))))
#: every stop at once
HARD = replace(RULES, settings=replace(
    RULES.settings, **dict.fromkeys(STOP_OF.values(), IMMEDIATE)))


def plan():
    fourier = random_fourier(LIMITS.scaled(0.9), FourierOptions(3.0, 3), np.random.default_rng(0))
    start = fourier.sample(0.0).position[0]
    move = quintic_move(JOINTS, (np.zeros(2), start), LIMITS.scaled(0.5))
    return (Segment('move_to_start', sampled(move, 100.0, LEAD_IN), LIMITS),
            Segment('excitation', sampled(fourier, 100.0, LEAD_IN), LIMITS))


def excitation(seed, scale=0.95, rate=50.0, limits=LIMITS):
    """Return a segment of a random motion that uses a part of the limits."""
    motion = random_fourier(
        limits.scaled(scale), FourierOptions(4.0, 4), np.random.default_rng(seed))
    return Segment('excitation', sampled(motion, rate, 0.2), limits)


class Bench:
    """A robot and a controller in simulated time; tests break one thing at a time.

    Like the real one the controller follows a goal from its stamp where it continues another, from
    its acceptance otherwise. ``trace`` are times and positions that it commands, by quintics; the
    robot's are linear between the points.
    """

    def __init__(self, rules=RULES, segments=None):
        self.states = JointStates(JOINTS)
        self.alarms = Alarms(JOINTS, rules.settings)
        self.execution = Execution(segments or plan(), rules, self.states, self.alarms)
        self.answers = rules.answers
        self.now, self.position, self.velocity = 10.0, np.zeros(2), np.zeros(2)
        self.effort, self.offset = np.full(2, 5.0), np.zeros(2)
        self.goal = self.goal_start = self.begun = None
        self.log, self.trace, self.on_its_way = [], [], []
        self.states_on = self.controller_on = self.server_ready = self.reports = True
        self.node_on, self.ended, self.hijacked = True, False, None
        self.lag = self.answer_time = self.clock_lag = 0.0
        self.held_since = self.now

    def carry_out(self, commands):
        for command in commands:
            self.log.append((self.now, command))
            if not self.controller_on:
                continue
            if isinstance(command, Send):
                self.on_its_way.append((self.now + self.answer_time, command.segment))
                if self.answer_time == 0.0:
                    self.take()
            elif isinstance(command, Hold):
                self.goal, self.velocity, self.position = None, np.zeros(2), command.position
                self.held_since, self.hijacked = self.now, None
            elif isinstance(command, Cancel):
                self.goal, self.velocity = None, np.zeros(2)
                self.carry_out(self.execution.on_cancel_answer(self.now, True))

    def take(self):
        """Accept what has arrived at the controller."""
        while self.controller_on and self.on_its_way and self.on_its_way[0][0] <= self.now + 1e-9:
            _, segment = self.on_its_way.pop(0)
            self.goal = segment.points
            self.goal_start = self.begun if segment.elapsed > 0.0 else self.now
            self.joined_from = self.position
            if self.node_on and not self.on_its_way:
                self.carry_out(self.execution.on_accepted(self.now))

    def commanded(self, elapsed, position):
        """Return ``position`` or, on the way to the first point, one between."""
        share = min(max(elapsed / self.goal.time[0], 0.0), 1.0)
        first = self.goal.position[0]
        return position if share == 1.0 else self.joined_from + share * (first - self.joined_from)

    def step(self):
        self.now += PERIOD
        self.take()
        if self.goal is not None and self.controller_on:
            since = self.now - self.goal_start
            self.trace.append((self.now, self.commanded(
                since, self.goal.sample(since).position[0])))
            position = self.commanded(since - self.lag, np.array([
                np.interp(since - self.lag, self.goal.time, column)
                for column in self.goal.position.T]))
            self.velocity, self.position = (position - self.position) / PERIOD, position
        if self.node_on:
            self.report()
        if self.goal is not None and self.now - self.goal_start > self.goal.duration + 0.05:
            self.goal, self.velocity, self.held_since = None, np.zeros(2), self.now
            self.ended = self.controller_on and self.answers and not self.on_its_way
        if self.node_on and self.ended:
            self.ended = False
            self.carry_out(self.execution.on_result(self.now, 4, 0, ''))
        if self.node_on:
            self.carry_out(self.execution.tick(self.now, self.server_ready))

    def report(self):
        """Tell the node what robot and controller are at."""
        if self.controller_on and self.goal is not None:
            self.execution.on_feedback(self.now)
        if self.controller_on and self.reports:
            since, reference = self.now - self.held_since, self.position
            if self.goal is not None:
                since, reference = self.now - self.goal_start, self.trace[-1][1]
            if self.hijacked is not None:
                since, reference = self.hijacked(self.now)
            if self.execution.on_controller_state(
                    self.now, since, reference, self.now - self.clock_lag, 1.0):
                self.begun = self.goal_start
            self.carry_out(self.execution.react(self.now))
        if self.states_on:
            self.states.update(self.now, JOINTS, self.now,
                               (self.position + self.offset, self.velocity, self.effort))
            self.carry_out(self.execution.on_state(self.now))

    def start(self):
        self.step()
        self.carry_out(self.execution.start(self.now))
        return self

    def run(self, seconds=60.0):
        end = self.now + seconds
        while self.now < end and self.execution.phase is not Phase.DONE:
            self.step()
        return self

    @property
    def outcome(self):
        return self.execution.outcome

    def do(self, commands):
        """Carry out what an event outside of `step` gave, and return self."""
        self.carry_out(commands)
        return self

    @property
    def doing(self):
        return self.execution.doing(self.now)[0]

    def first(self, kind):
        return next((at, command) for at, command in self.log if isinstance(command, kind))

    def last(self, kind):
        """Return when the last command of a kind came, and the command."""
        return [(at, command) for at, command in self.log if isinstance(command, kind)][-1]


CYCLE = 0.004  # s of the controller
TICK = 0.01  # s of the node
CLOCK = 1.7e3  # s by which the controller's clock is ahead


class Cell:
    """A node and a joint_trajectory_controller that scales the speed, as long as messages take.

    ``scaling`` is a function of the time; ``told``: what controller_state says of it; ``tells``:
    whether that has the time in the motion; ``steps``: whether the controller interpolates
    nothing; ``silent`` (begin, end) s of the joint states; ``shows``: what states show of a
    position. The robot follows its controller a cycle later. ``reference`` are times, positions
    and velocities (n,) that the controller commands.
    """

    def __init__(self, scaling, segment, rules=RULES, seed=0, told=lambda factor: factor):
        self.scaling, self.told, self.rules = scaling, told, rules
        self.random = np.random.default_rng(seed)
        self.controller = TrajectoryController(JOINTS)
        self.position, self.velocity = segment.points.position[0].copy(), np.zeros(2)
        self.controller.activate(self.position)
        self.states = JointStates(JOINTS, np.ones(2, dtype=np.bool_))
        self.execution = Execution((segment,), rules, self.states, Alarms(JOINTS, rules.settings))
        self.now, self.log, self.reference = 10.0, [], []
        self.to_controller, self.to_node = deque(), deque()
        self.tells, self.steps, self.silent = True, False, (np.inf, np.inf)
        self.shows = lambda position: position

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
        self.number = self.controller.start(Goal(Command(JOINTS, points, stamp)), self.now + CLOCK,
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
            if ended.number == self.number and ended.status == 4:
                self.post(self.to_node, lambda: self.carry_out(
                    self.execution.on_result(self.now, 4, 0, '')))
        controller.finished = []
        if k % 12 == 0 and controller.goal is not None:
            self.post(self.to_node, lambda: self.execution.on_feedback(self.now))
        measured = self.shows(self.position).copy(), self.velocity.copy()
        self.post(self.to_node, lambda: self.carry_out(
            self.execution.bridge(self.now, at, *measured)))
        if k % 2 == 0 and not self.silent[0] <= at < self.silent[1]:
            self.post(self.to_node, lambda: self.joint_state(at, *measured))

    def state(self, at, elapsed, position, told):
        self.execution.on_controller_state(self.now, elapsed, position, at, told)
        self.carry_out(self.execution.react(self.now))

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
