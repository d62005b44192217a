"""A node and a joint_trajectory_controller in simulated time, with messages that take time."""

from collections import deque

import numpy as np
from execution_bench import JOINTS, RULES

from robot_dynid.execution.guards import Alarms, JointStates
from robot_dynid.execution.segment import Cancel, Hold, Phase, Send
from robot_dynid.execution.supervisor import Execution
from robot_dynid.simulation.trajectory_controller import Goal, TrajectoryController
from robot_dynid.simulation.waypoints import Command, Waypoint

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
