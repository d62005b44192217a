"""A robot and a controller in simulated time, for tests of supervised execution."""

import numpy as np

from robot_dynid.execution.alarms import Alarms
from robot_dynid.execution.commands import Cancel, Hold, Phase, Send
from robot_dynid.execution.guards import GuardSettings, JointStates, Tolerances
from robot_dynid.execution.sampled import sampled
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.supervisor import Execution
from robot_dynid.execution.watchdog import Rules
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.moves import quintic_move

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


def plan():
    fourier = random_fourier(LIMITS.scaled(0.9), FourierOptions(3.0, 3), np.random.default_rng(0))
    start = fourier.sample(0.0).position[0]
    move = quintic_move(JOINTS, (np.zeros(2), start), LIMITS.scaled(0.5))
    return (Segment('move_to_start', sampled(move, 100.0, LEAD_IN), LIMITS),
            Segment('excitation', sampled(fourier, 100.0, LEAD_IN), LIMITS))


class Bench:
    """A robot and a controller in simulated time; tests break one thing at a time."""

    def __init__(self, rules=RULES, segments=None):
        self.states = JointStates(JOINTS)
        self.alarms = Alarms(JOINTS, rules.settings)
        self.execution = Execution(segments or plan(), rules, self.states, self.alarms)
        self.answers = rules.answers
        self.now, self.position, self.velocity = 10.0, np.zeros(2), np.zeros(2)
        self.effort, self.offset = np.full(2, 5.0), np.zeros(2)
        self.goal = self.goal_start = None
        self.log = []
        self.states_on = self.controller_on = self.server_ready = True
        self.lag, self.reports = 0.0, False

    def carry_out(self, commands):
        for command in commands:
            self.log.append((self.now, command))
            if not self.controller_on:
                continue
            if isinstance(command, Send):
                self.goal = command.segment.points
                self.goal_start = self.now - command.segment.elapsed
                self.joined_from = self.position
                self.carry_out(self.execution.on_accepted(self.now))
            elif isinstance(command, Hold):
                self.goal, self.velocity, self.position = None, np.zeros(2), command.position
            elif isinstance(command, Cancel):
                self.goal, self.velocity = None, np.zeros(2)
                self.carry_out(self.execution.on_cancel_answer(self.now, True))

    def step(self):
        self.now += PERIOD
        if self.goal is not None and self.controller_on:
            elapsed = self.now - self.goal_start - self.lag
            share = min(max(elapsed / self.goal.time[0], 0.0), 1.0)
            position = self.goal.desired(elapsed)
            if share < 1.0:  # on its way to the first point
                position = self.joined_from + share * (self.goal.position[0] - self.joined_from)
            self.velocity, self.position = (position - self.position) / PERIOD, position
            self.execution.on_feedback(self.now)
            if self.reports:
                since = self.now - self.goal_start
                self.execution.on_controller_state(
                    self.now, since, self.goal.sample(since).position[0])
        if self.states_on:
            self.states.update(self.now, JOINTS, self.now,
                               (self.position + self.offset, self.velocity, self.effort))
            self.carry_out(self.execution.on_state(self.now))
        if self.goal is not None and self.now - self.goal_start > self.goal.duration + 0.05:
            self.goal, self.velocity = None, np.zeros(2)
            if self.controller_on and self.answers:
                self.carry_out(self.execution.on_result(self.now, 4, 0, ''))
        self.carry_out(self.execution.tick(self.now, self.server_ready))

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
