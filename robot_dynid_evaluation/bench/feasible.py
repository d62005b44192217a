"""Feasible identification: compressed, beside CVXPY on triangle and samples; many joints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import MissingDependency
from robot_dynid.estimation.feasible.bounds import Bounds
from robot_dynid.estimation.feasible.conic import matrix_of
from robot_dynid.estimation.feasible.program import LEAST_EIGENVALUE
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible, Task
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import Recorded, recorded
from robot_dynid_evaluation.bench.timing import in_turns

JOINTS, MANY, SAMPLES = 9, 50, 3000
WEIGHT, ROUNDS = 1e-2, 3
FEW_CHAIN, LONG_CHAIN, LONG_SAMPLES = 3, 60, 1500
MOST_MILLISECONDS, MOST_SECONDS, SAME = 50.0, 2.0, 1e-6
MOST = Target(1.0, faster=False)
#: growth of the time per joint that counts as none: the first joints of an arm show less
CONSTANT = Target(2.0, faster=False)


def measure(progress: Progress) -> list[Row]:
    """Return the rows: nine joints beside CVXPY, fifty joints, link by link from 3 to 60."""
    from threadpoolctl import threadpool_limits


    with threadpool_limits(limits=1):
        return [*_beside_cvxpy(recorded(JOINTS, SAMPLES), progress),
                _many_joints(recorded(MANY, LONG_SAMPLES), progress),
                _per_joint(progress)]


def task_of(data: Recorded) -> Task:
    """Return the problem with the noise known, so that no time goes into its estimation."""
    return replace(Task.of(data.experiment(), 'entropic', Bounds()),
                   joint_weights=1.0 / data.noise)


def _beside_cvxpy(data: Recorded, progress: Progress) -> list[Row]:
    task = task_of(data)
    tall, right = data.stacked()
    triangle = np.asarray(np.linalg.qr(np.column_stack([tall, right]), mode='r'))

    def solved(equations: tuple[FloatArray, FloatArray]) -> Any:
        return problem(task, equations, len(right))()

    def fitter() -> Callable[[float], Any]:
        return Feasible().fitter(task, task.experiment.information)

    factor, whole, ready = (triangle[:, :-1], triangle[:, -1]), (tall, right), fitter()
    known = problem(task, factor, len(right))
    progress('CVXPY on all samples', 0.1)
    distance = abs(objective(task, data, ready(WEIGHT).v)
                   / objective(task, data, solved(whole)) - 1.0)
    found = in_turns({
        'ours': lambda: fitter()(WEIGHT), 'ours again': lambda: ready(WEIGHT),
        'triangle': partial(solved, factor), 'triangle again': known,
        'samples': partial(solved, whole)}, progress, ROUNDS)
    what = f'{JOINTS} joints, {len(data.truth)} parameters, all links at once'
    ours, again = 1e3 * found['ours'], 1e3 * found['ours again']
    return [
        row(f'{what} / CVXPY on the same triangle, compressed', 'ms', ours,
            1e3 * found['triangle'], Target(1.0)),
        row('the same, stated before and solved again', 'ms', again,
            1e3 * found['triangle again'], None),
        row(f'{what} / CVXPY on {SAMPLES} samples, not compressed', 'ms', ours,
            1e3 * found['samples'], Target(50.0)),
        row('relative distance of both optima (peer: the limit)', '', distance, SAME, MOST),
        row(f'{what} (peer: the limit)', 'ms', ours, MOST_MILLISECONDS, MOST),
    ]


def objective(task: Task, data: Recorded, v: Any) -> float:
    """Return the objective over all samples."""
    tall, right = data.stacked()
    residual = tall @ task.base(v) - right
    return float(residual @ residual) / len(right) + task.share(WEIGHT) * task.prior_value(v)


def problem(
    task: Task, equations: tuple[FloatArray, FloatArray], count: int
) -> Callable[[], Any]:
    """Return the problem in CVXPY, solved by Clarabel when called.

    ``equations`` are the regressor (m, b) and efforts (m,) of ``count`` samples, or a triangle
    with the same sum of squares.
    """
    try:
        import cvxpy as cp
    except ImportError:
        raise MissingDependency('the peer of this benchmark is CVXPY: pip install cvxpy') from None

    tall, right = equations
    w = task.feasible.whitening
    v = cp.Variable(len(w.centre))
    bases = matrix_of(np.eye(10)).reshape(10, 16).T
    bodies = [cp.reshape(bases @ v[10 * i:10 * i + 10], (4, 4), order='C')
              for i in range(len(w.links))]
    others = v[w.bodies.stop:]
    prior = sum(cp.trace(body) - cp.log_det(body) - 4.0 for body in bodies)
    prior += 0.5 * cp.sum_squares(cp.multiply(np.sqrt(w.weights[w.bodies.stop:]), others))
    residual = cp.sum_squares((tall @ task.matrix) @ v - right) / count
    stated = cp.Problem(cp.Minimize(residual + task.share(WEIGHT) * prior),
                        [body >> LEAST_EIGENVALUE * np.eye(4) for body in bodies]
                        + [v[np.flatnonzero(w.nonnegative)] >= 0.0])

    def solved() -> Any:
        stated.solve(solver=cp.CLARABEL)
        return np.asarray(v.value)

    return solved


def _many_joints(data: Recorded, progress: Progress) -> Row:
    progress(f'{MANY} joints', 0.5)
    task = task_of(data)
    fit = Feasible().fitter(task, task.experiment.information)
    seconds = in_turns({'compressed': lambda: fit(WEIGHT)}, progress, 3)['compressed']
    return row(f'{MANY} joints, {len(data.truth)} parameters, all links at once (peer: the '
               'limit)', 's', seconds, MOST_SECONDS, MOST)


def _per_joint(progress: Progress) -> Row:
    """Return the time per joint, link by link, of a long arm beside a short one."""
    progress('link by link', 0.8)
    fits = {str(joints): _link_by_link(joints) for joints in (LONG_CHAIN, FEW_CHAIN)}
    found = in_turns(fits, progress)
    long, short = found[str(LONG_CHAIN)] / LONG_CHAIN, found[str(FEW_CHAIN)] / FEW_CHAIN
    return row(f'link by link, per joint: {LONG_CHAIN} joints / {FEW_CHAIN} joints', 'ms',
               1e3 * long, 1e3 * short, CONSTANT)


def _link_by_link(joints: int) -> Callable[[], Any]:
    task = task_of(recorded(joints, LONG_SAMPLES))
    fit = SequentialFeasible(sweeps=0).fitter(task, task.experiment.information)
    return lambda: fit(WEIGHT)
