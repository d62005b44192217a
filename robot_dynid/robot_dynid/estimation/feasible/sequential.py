"""Feasible standard parameters, link by link from the last one inwards.

The effort of a joint depends only on the links it carries: with those known, its equations are one
small conic problem, whatever the number of joints. Three of the ten parameters of a link (mass,
first moment along the axis, trace of the inertia) are not in the equations of its joint but in
those before, together with the parameters of the link before it. Fixing them too early may make
that link inconsistent, and errors grow from link to link. So every problem includes the next links
a second time, with their equations, and only links two joints further out are fixed. A polishing
sweep then passes the same windows on the objective of all joints.

Source: a sequential optimization approach to identify non-minimal dynamic parameters of robot
manipulators (block upper triangular regressor; one link per problem, all samples, no prior).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.estimation.feasible.conic import Outcome, Solution
from robot_dynid.estimation.feasible.program import Answer, Program
from robot_dynid.estimation.feasible.simultaneous import (
    Feasible,
    Fitter,
    Task,
    check_answer,
    excited,
    least_squares,
)
from robot_dynid.estimation.information import FILTERED, Information
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: polishing stops after a sweep that lowers the objective by less than this share
SWEEP_SETTLED = 1e-7
#: weight of the prior for a start near the points that predict as least squares
PRIOR_WEIGHT = 1e-3


#: a small problem: the links of some joints, the first of them new, from their equations
Window = tuple[tuple[int, ...], Program]
#: design (m, k) and target (m,)
Equations = tuple[FloatArray, FloatArray]
#: solves a small problem from its equations, the fixed values (p,), and the reserve (l,) of the
#: limits
WindowSolver = Callable[[Program, Equations, FloatArray, FloatArray], Solution]


@dataclass(frozen=True, eq=False)
class Chain:
    """The small problems of a robot, last joint first; `generations` of links in each."""

    task: Task
    generations: int

    @cached_property
    def windows(self) -> list[Window]:
        """One problem per joint: its link, and those it carries, `generations` deep."""
        task = self.task
        parents, owners = task.experiment.model.robot.parents, task.feasible.whitening.owners
        windows = []
        for joint in reversed(range(len(parents))):
            youngest, inside = [joint], [joint]
            for _ in range(self.generations - 1):
                youngest = [j for j, parent in enumerate(parents) if parent in youngest]
                inside += youngest
            chosen = np.flatnonzero(np.isin(owners, inside))
            windows.append((tuple(inside), Program(task.feasible, task.prior, chosen)))
        return windows

    def equations(
        self, information: Information, window: Window, fixed: FloatArray
    ) -> Equations:
        """Return the equations of a window, weighted as in the whole objective.

        `known` v (p,) contains the fixed values, and zero for the unknowns of the window.
        """
        task, total, rows = self.task, information.total, []
        owners, (joints, program) = task.experiment.model.robot.row_joints, window
        for row in (i for joint in joints for i, j in enumerate(owners) if j == joint):
            columns, extra = total.split(row)
            matrix = task.matrix[information.structure[row]]
            target = extra[:, FILTERED] - columns @ (matrix @ fixed)
            rows.append(task.joint_weights[row] * np.column_stack([
                columns @ matrix[:, program.chosen], target]))
        tall = np.vstack(rows) / np.sqrt(total.samples * len(task.joint_weights))
        tall = np.asarray(np.linalg.qr(tall, mode='r'), dtype=np.float64)
        return tall[:, :-1], tall[:, -1]

    def inwards(self, information: Information, solve: WindowSolver, weight: float) -> Answer:
        """Solve one problem per joint, last joint first; stop if one has no solution."""
        feasible = self.task.feasible
        v, doubtful, gap = np.zeros(len(feasible.whitening.centre)), [], 0.0
        for window in self.windows:
            joints, program = window
            fixed = v.copy()
            fixed[program.chosen] = 0.0
            # largest contribution of unknown links to every limit
            reserve = feasible.limits.largest[:, :joints[0]].sum(axis=1) / feasible.lengths
            solution = solve(program, self.equations(information, window, fixed), fixed, reserve)
            gap = max(gap, solution.gap)
            if solution.outcome is not Outcome.SOLVED:
                doubtful.append(solution)
            if not solution.usable:
                break
            v[program.chosen] = solution.values
        return check_answer(feasible, v, doubtful, weight, gap)

    def polished(
        self, normal: tuple[FloatArray, FloatArray, float], answer: Answer, sweeps: int
    ) -> Answer:
        """Minimise the objective of all joints over the links of every window, in turn.

        `normal` is base regressor (m, b), target (m,) and the residual energy that remains.
        """
        task, (base, target, rest) = self.task, normal
        design, share, v = base @ task.matrix, task.share(answer.weight), answer.v.copy()
        residual, doubtful = target - design @ v, []
        objective, gap = np.inf, 0.0
        for _ in range(sweeps):
            gap = 0.0
            for _, program in self.windows:
                columns = program.chosen
                block, old, others = design[:, columns], v[columns].copy(), v.copy()
                others[columns] = 0.0
                solution = program.minimise(block, residual + block @ old, share, others)
                if solution.outcome is not Outcome.SOLVED:
                    doubtful.append(solution)
                    continue
                v[columns] = solution.values
                residual = residual - block @ (solution.values - old)
                gap = max(gap, share * abs(solution.primal - solution.dual))
            previous, objective = objective, \
                float(residual @ residual) + rest + share * task.prior_value(v)
            if previous - objective < SWEEP_SETTLED * objective:
                break
        return check_answer(task.feasible, v, doubtful, answer.weight, gap
                            / max(objective, 1e-300))


SWEEPS = NumberRange(0, 100, whole=True)
GENERATIONS = NumberRange(1, 100, whole=True)


@dataclass(frozen=True)
class SequentialFeasible(Feasible):
    """Link by link, then at most `sweeps` of polishing.

    Every problem includes `generations` of links: 1 is the procedure of the source.
    """

    sweeps: int = setting(2, SWEEPS, 'maximum number of sweeps over all links that improve '
                          'the result')
    generations: int = setting(2, GENERATIONS, 'links in every problem: 1 for one '
                               'link as published, 2 to add the next link')
    name = 'sequential-feasible'
    summary = 'parameters of physically possible bodies, link by link from the last one'

    def unconstrained(self, task: Task, information: Information) -> Answer | None:
        """Return the links whose equations are solved by least squares, or None if inconsistent.

        With polishing: least squares of all joints at once, near that point.
        """
        answer = Chain(task, self.generations).inwards(
            information, lambda program, equations, fixed, reserve: program.nearest(
                excited(*equations), fixed, reserve), 0.0)
        if not self.sweeps:
            return None if answer.trouble else answer
        near = self.fitter(task, information)(PRIOR_WEIGHT) if answer.trouble else answer
        matrix, right = least_squares(task, information)
        v = near.v + matrix.T @ (right - matrix @ near.v)
        if near.trouble or not task.feasible.holds(v):
            return None
        return replace(near, v=task.feasible.clipped(v), weight=0.0)

    def fitter(self, task: Task, information: Information) -> Fitter:
        """Return the sequential fit of the links as a function of the prior weight."""
        chain = Chain(task, self.generations)
        normal = task.compressed(information) if self.sweeps else None

        def fit(weight: float) -> Answer:
            answer = chain.inwards(
                information, lambda program, equations, fixed, reserve: program.minimise(
                    *equations, task.share(weight), fixed, reserve), weight)
            return answer if normal is None or answer.trouble else chain.polished(
                normal, answer, self.sweeps)

        return fit
