"""Standard parameters that a real robot can have, link by link from the last one inwards.

The effort of a joint shows only the links it carries: with those known, its own equations are one
small conic problem in the ten parameters of its link and what acts on its axis, whatever the
number of joints. What they leave open is near the nominal robot, and stays so. A polishing sweep
then goes through the pairs of neighbouring links again, on the objective of all joints, so that a
link can still pass on to the one before it what only the sum of both shows.
Source: a sequential optimization approach to identify non-minimal dynamic parameters of robot
manipulators (block upper triangular regressor; there each problem has all samples and no prior).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.estimation.conic import Outcome
from robot_dynid.estimation.feasible import (
    WEIGHTS,
    Feasible,
    Fitter,
    Task,
    checked,
    excited,
    least_squares,
)
from robot_dynid.estimation.least_squares import joint_weights
from robot_dynid.estimation.program import Answer, FeasibleSet, Program
from robot_dynid.information import EXTRA, FILTERED, Batch, Information, triangle
from robot_dynid.types import FloatArray

#: a polishing sweep that lowers the objective by less than this share of it is the last one
SETTLED = 1e-7
#: weight of the prior from which the points that predict as least squares are near
NEAR = 1e-3


def own_parameters(feasible: FeasibleSet, joints: Sequence[int]) -> NDArray[np.int64]:
    """Return the parameters that the equations of ``joints`` find: links first, then others."""
    return np.flatnonzero(np.isin(feasible.whitening.owners, joints))


@dataclass(frozen=True, eq=False)
class Chain:
    """The small problems of a robot: one per joint, and one per pair of neighbouring links."""

    task: Task

    @cached_property
    def programs(self) -> list[Program]:
        """One problem per joint."""
        task = self.task
        return [Program(task.feasible, task.prior, own_parameters(task.feasible, [j]))
                for j in range(task.experiment.model.robot.n)]

    @cached_property
    def pairs(self) -> list[Program]:
        """One problem per link with the link before it, the last pair first."""
        task, parents = self.task, self.task.experiment.model.robot.parents
        return [Program(task.feasible, task.prior, own_parameters(
            task.feasible, [j, int(parents[j])] if parents[j] >= 0 else [j]))
            for j in reversed(range(len(parents)))]

    def equations(
        self, information: Information, joint: int, known: FloatArray, batch: Batch | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return design (r, k) and target (r,) of the joint's own parameters [N m].

        ``known`` v (p,) holds what is known already, and zero elsewhere.
        """
        factor = (batch or information.total).factors[joint]
        matrix = self.task.matrix[information.structure[joint]]
        own = self.programs[joint].chosen
        columns = factor[:, :-EXTRA]
        target = factor[:, FILTERED - EXTRA] - columns @ (matrix @ known)
        both = triangle(np.asfortranarray(np.column_stack([columns @ matrix[:, own], target])))
        return both[:, :-1], both[:, -1]

    def reserve(self, left: Sequence[int]) -> FloatArray:
        """Return what the links ``left``, yet unknown, can add to every limit at most."""
        most = self.task.feasible.limits.most[:, list(left)]
        added = np.zeros(len(most)) if not left else most.sum(axis=1)
        return np.asarray(added / self.task.feasible.lengths)


@dataclass(frozen=True)
class SequentialFeasible(Feasible):
    """Link by link, then at most ``sweeps`` of polishing.

    With polishing the links are first found with a strong prior: what is wrong in a link far out
    is amplified by those before it, which a sweep takes back.
    """

    sweeps: int = 5
    name = 'sequential-feasible'

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sweeps < 0:
            raise UsageError(f'sweeps must be zero or more, are {self.sweeps}')

    def unconstrained(self, task: Task, information: Information) -> Answer | None:
        """Return links whose own equations are solved by least squares, if they are bodies.

        Where a link far out has taken what another one needs, and there is polishing, return the
        point that predicts as least squares of all joints does next to a polished one.
        """
        answer = self._one_by_one(task, information)
        if answer is not None or not self.sweeps:
            return answer
        near = self.fitter(task, information)(NEAR, None)
        matrix, right = least_squares(task, information)
        v = near.v + matrix.T @ (right - matrix @ near.v)
        if near.trouble or not task.feasible.holds(v):
            return None
        return replace(near, v=task.feasible.clipped(v), weight=0.0)

    def _one_by_one(self, task: Task, information: Information) -> Answer | None:
        chain, weights = Chain(task), joint_weights(information)
        v, steps, gap = np.zeros(len(task.feasible.whitening.centre)), 0, 0.0
        for joint in reversed(range(len(weights))):
            program = chain.programs[joint]
            found = program.nearest(excited(*chain.equations(information, joint, v)), v,
                                    chain.reserve(range(joint)))
            if not found.usable:
                return None
            v[program.chosen] = found.values
            steps, gap = steps + found.steps, max(gap, found.gap)
        return Answer(task.feasible.clipped(v), 0.0, gap, steps) if task.feasible.holds(v) \
            else None

    def fitter(self, task: Task, information: Information) -> Fitter:
        """Return what goes through the links for a weight of the prior."""
        chain = Chain(task)
        total = information.total
        normal = task.compressed(information) if self.sweeps else None

        def fit(weight: float, near: Answer | None) -> Answer:
            if normal is None:
                return inwards(chain, information, total, weight)
            start = near or inwards(chain, information, total, max(weight, WEIGHTS[0]))
            return polished(chain, normal, replace(start, weight=weight), self.sweeps)

        return fit


def inwards(chain: Chain, information: Information, total: Batch, weight: float) -> Answer:
    """Solve one problem per joint, the last joint first."""
    task = chain.task
    n, share = len(task.joint_weights), task.share(weight)
    v = np.zeros(len(task.feasible.whitening.centre))
    troubles, steps, gap, objective = [], 0, 0.0, 0.0
    for joint in reversed(range(n)):
        scale = task.joint_weights[joint] / np.sqrt(total.samples * n)
        design, target = chain.equations(information, joint, v, total)
        program = chain.programs[joint]
        found = program.minimise(scale * design, scale * target, share, v,
                                 chain.reserve(range(joint)))
        if found.outcome is not Outcome.SOLVED:
            troubles.append(found)
        v[program.chosen] = found.values
        steps, gap = steps + found.steps, gap + share * abs(found.primal - found.dual)
        objective += scale**2 * float(np.sum((design @ found.values - target) ** 2))
    return checked(task.feasible, (v, troubles), weight, (gap / max(objective, 1e-300), steps))


def polished(
    chain: Chain, normal: tuple[FloatArray, FloatArray, float], answer: Answer, sweeps: int
) -> Answer:
    """Minimise the objective of all joints over pairs of neighbouring links, in turn."""
    task, (base, target, rest) = chain.task, normal
    design, share, v = base @ task.matrix, task.share(answer.weight), answer.v.copy()
    residual, steps, troubles, gap = target - design @ v, answer.steps, [], 0.0
    objective = np.inf
    for _ in range(sweeps):
        gap = 0.0
        for program in chain.pairs:
            own = program.chosen
            block, old = design[:, own], v[own].copy()
            others = v.copy()
            others[own] = 0.0
            found = program.minimise(block, residual + block @ old, share, others)
            if found.outcome is not Outcome.SOLVED:
                troubles.append(found)
                continue
            v[own] = found.values
            residual = residual - block @ (found.values - old)
            steps, gap = steps + found.steps, max(gap, share * abs(found.primal - found.dual))
        before, objective = objective, \
            float(residual @ residual) + rest + share * task.prior_value(v)
        if before - objective < SETTLED * objective:
            break
    return checked(task.feasible, (v, troubles), answer.weight,
                   (gap / max(objective, 1e-300), steps))
