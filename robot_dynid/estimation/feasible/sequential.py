"""Standard parameters that a real robot can have, link by link from the last one inwards.

The effort of a joint shows only the links it carries: with those known, its own equations are one
small conic problem, whatever the number of joints. Three of the ten parameters of a link (mass,
first moment along the axis, trace of the inertia) are not in the equations of its own joint; they
are in those before, together with the parameters of the link before it. Where they are settled too
soon, that link may have to be what no body is, and errors grow from link to link without end. So
every problem holds the next links a second time, with their own equations, and only what is two
joints behind is known. A polishing sweep then goes through the same pairs on the objective of all
joints.
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
    checked,
    excited,
    least_squares,
)
from robot_dynid.estimation.information import FILTERED, Information
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: a polishing sweep that lowers the objective by less than this share of it is the last one
SWEEP_SETTLED = 1e-7
#: weight of the prior from which the points that predict as least squares are near
PRIOR_WEIGHT = 1e-3


#: a small problem: the links of some joints, the first of them new, from their equations
Window = tuple[tuple[int, ...], Program]
#: design (m, k) and target (m,)
Equations = tuple[FloatArray, FloatArray]
#: solves a small problem by its equations, the values (p,) known so far, and the reserve (l,) of
#: the limits
WindowSolver = Callable[[Program, Equations, FloatArray, FloatArray], Solution]


@dataclass(frozen=True, eq=False)
class Chain:
    """The small problems of a robot, the last joint first; ``generations`` of links in each."""

    task: Task
    generations: int

    @cached_property
    def windows(self) -> list[Window]:
        """One problem per joint: its link, and those it carries up to ``generations`` deep."""
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
        self, information: Information, window: Window, known: FloatArray
    ) -> Equations:
        """Return the equations of a window, weighted as in the whole objective.

        ``known`` v (p,) holds what is known already, and zero at what the window looks for.
        """
        task, total, rows = self.task, information.total, []
        owners, (joints, program) = task.experiment.model.robot.row_joints, window
        for row in (i for joint in joints for i, j in enumerate(owners) if j == joint):
            columns, extra = total.split(row)
            matrix = task.matrix[information.structure[row]]
            target = extra[:, FILTERED] - columns @ (matrix @ known)
            rows.append(task.joint_weights[row] * np.column_stack([
                columns @ matrix[:, program.chosen], target]))
        tall = np.vstack(rows) / np.sqrt(total.samples * len(task.joint_weights))
        tall = np.asarray(np.linalg.qr(tall, mode='r'), dtype=np.float64)
        return tall[:, :-1], tall[:, -1]

    def inwards(self, information: Information, solve: WindowSolver, weight: float) -> Answer:
        """Solve one problem per joint, the last joint first; stop where one has no solution."""
        feasible = self.task.feasible
        v, doubtful, gap = np.zeros(len(feasible.whitening.centre)), [], 0.0
        for window in self.windows:
            joints, program = window
            known = v.copy()
            known[program.chosen] = 0.0
            # the most that links yet unknown can add to every limit
            reserve = feasible.limits.most[:, :joints[0]].sum(axis=1) / feasible.lengths
            solution = solve(program, self.equations(information, window, known), known, reserve)
            gap = max(gap, solution.gap)
            if solution.outcome is not Outcome.SOLVED:
                doubtful.append(solution)
            if not solution.usable:
                break
            v[program.chosen] = solution.values
        return checked(feasible, v, doubtful, weight, gap)

    def polished(
        self, normal: tuple[FloatArray, FloatArray, float], answer: Answer, sweeps: int
    ) -> Answer:
        """Minimise the objective of all joints over the links of every window, in turn.

        ``normal`` is base regressor (m, b), target (m,) and the residual energy that remains.
        """
        task, (base, target, rest) = self.task, normal
        design, share, v = base @ task.matrix, task.share(answer.weight), answer.v.copy()
        residual, doubtful = target - design @ v, []
        objective, gap = np.inf, 0.0
        for _ in range(sweeps):
            gap = 0.0
            for _, program in self.windows:
                own = program.chosen
                block, old, others = design[:, own], v[own].copy(), v.copy()
                others[own] = 0.0
                solution = program.minimise(block, residual + block @ old, share, others)
                if solution.outcome is not Outcome.SOLVED:
                    doubtful.append(solution)
                    continue
                v[own] = solution.values
                residual = residual - block @ (solution.values - old)
                gap = max(gap, share * abs(solution.primal - solution.dual))
            before, objective = objective, \
                float(residual @ residual) + rest + share * task.prior_value(v)
            if before - objective < SWEEP_SETTLED * objective:
                break
        return checked(task.feasible, v, doubtful, answer.weight, gap / max(objective, 1e-300))


SWEEPS = NumberRange(0, 100, whole=True)
GENERATIONS = NumberRange(1, 100, whole=True)


@dataclass(frozen=True)
class SequentialFeasible(Feasible):
    """Link by link, then at most ``sweeps`` of polishing.

    Every problem holds ``generations`` of links: 1 is the procedure of the source.
    """

    sweeps: int = setting(2, SWEEPS, 'largest number of sweeps over all links that improve '
                          'the result')
    generations: int = setting(2, GENERATIONS, 'links in every problem: 1 for one '
                               'link as published, 2 to add the next link')
    name = 'sequential-feasible'
    summary = 'parameters of bodies that can exist, link by link from the last one'

    def unconstrained(self, task: Task, information: Information) -> Answer | None:
        """Return links whose equations are solved by least squares, if they are bodies.

        With polishing: by least squares of all joints at once, next to what was found so.
        """
        answer = Chain(task, self.generations).inwards(
            information, lambda program, equations, known, reserve: program.nearest(
                excited(*equations), known, reserve), 0.0)
        if not self.sweeps:
            return None if answer.trouble else answer
        near = self.fitter(task, information)(PRIOR_WEIGHT) if answer.trouble else answer
        matrix, right = least_squares(task, information)
        v = near.v + matrix.T @ (right - matrix @ near.v)
        if near.trouble or not task.feasible.holds(v):
            return None
        return replace(near, v=task.feasible.clipped(v), weight=0.0)

    def fitter(self, task: Task, information: Information) -> Fitter:
        """Return the sequential fit of the links as a function of the prior's weight."""
        chain = Chain(task, self.generations)
        normal = task.compressed(information) if self.sweeps else None

        def fit(weight: float) -> Answer:
            answer = chain.inwards(
                information, lambda program, equations, known, reserve: program.minimise(
                    *equations, task.share(weight), known, reserve), weight)
            return answer if normal is None or answer.trouble else chain.polished(
                normal, answer, self.sweeps)

        return fit
