"""A robot and a controller in simulated time, for tests of supervised execution."""

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
                since = self.now - self.goal_start
                reference = self.commanded(since, self.goal.sample(since).position[0])
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
