"""robot_dynid_evaluation/bench/feasible.py: the benchmark of feasible identification compares the
same problem with itself."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import SAME_OPTIMUM, SOLVER

from robot_dynid.estimation.feasible.bounds import Bounds, limits_of
from robot_dynid.estimation.feasible.prior import nominal_bodies
from robot_dynid.estimation.feasible.simultaneous import Feasible
from robot_dynid_evaluation.bench import feasible
from robot_dynid_evaluation.bench.arms import recorded, serial_arm


def test_peer_solves_the_same_problem() -> None:
    pytest.importorskip('cvxpy')
    data = recorded(2, 200)
    task = feasible.task_of(data)
    ours = Feasible().fitter(task, task.experiment.information)(feasible.WEIGHT).v
    tall, right = data.stacked()
    theirs = feasible.problem(task, (tall, right), len(right))()
    best = feasible.objective(task, data, theirs)
    assert feasible.objective(task, data, ours) == pytest.approx(best, rel=SAME_OPTIMUM)
    # the objective does tell points apart
    assert feasible.objective(task, data, 1.01 * theirs) > best * (1.0 + 100.0 * SOLVER)


def test_arms_of_the_benchmark_have_real_links() -> None:
    robot = serial_arm(5)
    _, warnings = nominal_bodies(robot, limits_of(Bounds(), robot, 50))
    assert warnings == []
    assert np.all(np.diff(robot.nominal[:, 0]) < 0.0)


def test_nine_joints_have_the_parameters_of_the_paper() -> None:
    assert len(recorded(9, 200).truth) == 108
