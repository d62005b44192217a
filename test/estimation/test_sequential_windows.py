"""estimation/feasible/sequential.py: the problems of single links, their equations and order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from feasible_recordings import recorded

from robot_dynid.estimation.feasible.bounds import Bounds, LinkBounds
from robot_dynid.estimation.feasible.conic import Outcome, Solution
from robot_dynid.estimation.feasible.program import Answer, Program
from robot_dynid.estimation.feasible.sequential import Chain, SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Task
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

MASSES = ((1.0, 5.0), (0.5, 7.0), (0.2, 11.0))


@pytest.fixture(scope='module')
def task() -> Task:
    """Return the problem of a noisy recording of the planar arm, its masses bounded."""
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, np.random.default_rng(1), noise=0.1, count=300)
    bounds = Bounds(tuple((name, LinkBounds(mass=mass)) for name, mass in zip(
        robot.bodies, MASSES, strict=True)), total_mass=(2.0, 20.0))
    return Task.of(data.experiment, 'euclidean', bounds)


def test_windows_are_a_link_and_those_it_carries() -> None:
    """Of a tree: link 1 carries 2 and 3, link 3 carries 4, link 4 carries 5."""
    owners = np.repeat(np.arange(5), 2)
    tree: Any = SimpleNamespace(
        experiment=SimpleNamespace(model=SimpleNamespace(robot=SimpleNamespace(
            parents=np.array([-1, 0, 0, 2, 3])))),
        feasible=SimpleNamespace(whitening=SimpleNamespace(owners=owners)), prior='entropic')
    for generations, expected in (
            (1, [(4,), (3,), (2,), (1,), (0,)]), (2, [(4,), (3, 4), (2, 3), (1,), (0, 1, 2)]),
            (3, [(4,), (3, 4), (2, 3, 4), (1,), (0, 1, 2, 3)])):
        windows = Chain(tree, generations).windows
        assert [joints for joints, _ in windows] == expected
        for joints, program in windows:
            assert program.chosen.tolist() == [i for i in range(10) if owners[i] in joints]
            assert (program.prior, program.feasible) == ('entropic', tree.feasible)


def test_equations_of_a_window_are_those_of_its_joints(task: Task) -> None:
    """Weighted as in the objective of all joints: mean squares over all joints and samples."""
    chain, experiment = Chain(task, 2), task.experiment
    (samples,) = experiment.recordings
    assert samples.effort is not None
    v = task.feasible.whitening.centre + np.random.default_rng(0).normal(
        size=len(task.feasible.whitening.centre))
    left = samples.effort - experiment.model.effort(samples, task.matrix @ v)
    squares = np.sum((left * task.joint_weights)**2, axis=0) / left.size
    for window in chain.windows:
        joints, program = window
        fixed = v.copy()
        fixed[program.chosen] = 0.0
        design, target = chain.equations(experiment.information, window, fixed)
        assert len(design) <= len(program.chosen) + 1
        assert np.sum((design @ v[program.chosen] - target)**2) == pytest.approx(
            squares[list(joints)].sum(), rel=1e-8)


class Solver:
    """Solutions by the number of the window, and what each was asked."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes, self.asked = list(outcomes), list[Any]()

    def __call__(self, program: Program, equations: Any, fixed: FloatArray, reserve: FloatArray
                 ) -> Solution:
        number = len(self.asked)
        self.asked.append((program, fixed, reserve))
        values = program.feasible.whitening.centre[program.chosen] + 0.01 * (1 + number)
        return Solution(values, self.outcomes[number], 1.0, 1.0 + (3e-6, 9e-6, 5e-6)[number])


def test_links_are_solved_inwards_with_a_reserve_for_those_before(task: Task) -> None:
    chain, solver = Chain(task, 2), Solver(*3 * [Outcome.SOLVED])
    found = chain.inwards(task.experiment.information, solver, 0.7)
    assert (found.weight, found.trouble) == (0.7, '')
    assert found.gap == pytest.approx(9e-6)
    centre, owners = task.feasible.whitening.centre, task.feasible.whitening.owners
    # the last window that contains a link decides it
    assert found.v == pytest.approx(centre + np.array([0.03, 0.03, 0.02])[owners])
    (_, first, _), (_, second, _), (_, third, _) = solver.asked
    assert not first.any() and not second.any()
    assert third == pytest.approx(np.where(owners == 2, centre + 0.02, 0.0))
    lower, upper = (list(task.feasible.limits.labels).index(f'{side} total mass')
                    for side in ('minimum', 'maximum'))
    for (_, _, reserve), most, least in zip(
            solver.asked, (12.0, 5.0, 0.0), (1.5, 1.0, 0.0), strict=True):
        assert reserve[upper] * task.feasible.lengths[upper] == pytest.approx(-least)
        assert reserve[lower] * task.feasible.lengths[lower] == pytest.approx(most)


def test_doubtful_solutions_are_told_and_unusable_ones_end_it(task: Task) -> None:
    chain, information = Chain(task, 2), task.experiment.information
    near = chain.inwards(information, Solver(
        Outcome.SOLVED, Outcome.INACCURATE, Outcome.SOLVED), 0.0)
    assert near.trouble == ''  # of a small gap
    solver = Solver(Outcome.SOLVED, Outcome.INFEASIBLE, Outcome.SOLVED)
    stopped = chain.inwards(information, solver, 0.0)
    assert len(solver.asked) == 2
    assert stopped.trouble.startswith('no point satisfies all constraints')


def test_polishing_ends_where_all_joints_agree(task: Task) -> None:
    """At the minimum of the whole objective, with a gap relative to it."""
    chain = Chain(task, 2)
    normal = task.compressed(task.experiment.information)
    design = normal[0] @ task.matrix
    best = task.whole.minimise(design, normal[1], task.share(1.0))

    def objective(v: FloatArray) -> float:
        return float(np.sum((design @ v - normal[1])**2)) + task.share(1.0) * task.prior_value(v)

    start = Answer(task.feasible.whitening.centre, 1.0, 0.0)
    values = [objective(chain.polished(normal, start, sweeps).v) for sweeps in (0, 1, 2, 30)]
    assert values[0] == pytest.approx(objective(start.v))
    assert values[0] > values[1] > values[2] >= values[3]
    assert values[3] == pytest.approx(objective(best.values), rel=1e-4)
    found = chain.polished(normal, start, 30)
    assert (found.weight, found.trouble) == (1.0, '') and 0.0 <= found.gap < 1e-6
    other = chain.polished(normal, replace(start, weight=0.1), 30)
    assert objective(other.v) > values[3] + 1e-6


@pytest.mark.parametrize('sweeps', [0, 2])
def test_exact_data_gives_least_squares_with_and_without_polishing(sweeps: int) -> None:
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, np.random.default_rng(2), count=300)
    found = SequentialFeasible(sweeps=sweeps).fit(data.experiment)
    true = data.model.reduction.base(data.truth)
    assert found.values == pytest.approx(true, rel=1e-4, abs=1e-4)
    assert found.prior_weight == 0.0 and found.method == 'sequential-feasible'
    assert (SequentialFeasible().sweeps, SequentialFeasible().generations) == (2, 2)
