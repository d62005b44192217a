"""estimation/feasible/simultaneous.py: repairs, the choice of the prior's weight, and warnings,
with errors that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from feasible_recordings import recorded

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible import simultaneous
from robot_dynid.estimation.feasible.bounds import Bounds
from robot_dynid.estimation.feasible.conic import Outcome, Solution, matrix_of
from robot_dynid.estimation.feasible.program import Answer
from robot_dynid.estimation.feasible.simultaneous import (
    Feasible,
    Task,
    check_answer,
    cross_validated,
    excited,
    limit_prior,
)
from robot_dynid.estimation.least_squares import LeastSquares, joint_weights, weighted_factor
from robot_dynid.estimation.uncertainty.held_out import Fold
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

WEIGHTS = (0.1, 0.01, 1e-3, 1e-4, 1e-5)


def needs(share: float) -> Any:
    """Return a feasible set that holds points moved by this share of the way to its centre."""
    return SimpleNamespace(whitening=SimpleNamespace(centre=np.array([2.0, 0.0])),
                           holds=lambda v: v[0] - 1.0 >= 0.99 * share,
                           clipped=lambda v: np.maximum(v, 0.0))


@pytest.mark.parametrize(('share', 'moved', 'trouble'), [
    (0.0, 0.0, ''), (1e-9, 1e-9, ''), (1e-7, 1e-7, ''), (1e-6, 1e-6, ''),
    (1e-4, 1e-4, 'the constraints are violated'), (1.0, 1.0, 'the constraints are violated'),
    (2.0, 1.0, 'the constraints are violated')])
def test_rounding_is_repaired_on_the_way_to_the_nominal_robot(
    share: float, moved: float, trouble: str
) -> None:
    found = check_answer(needs(share), np.array([1.0, -0.5]), [], 1e-3, 2e-6)
    assert found.v == pytest.approx([1.0 + moved, 0.0], rel=1e-12)
    assert (found.weight, found.gap, found.trouble) == (1e-3, 2e-6, trouble)


@pytest.mark.parametrize(('outcome', 'gap', 'trouble'), [
    (Outcome.INACCURATE, 0.9e-4, ''),
    (Outcome.INACCURATE, 1.1e-4, 'solved to a reduced accuracy'),
    (Outcome.STALLED, 0.0, 'stopped before a solution')])
def test_doubtful_solutions_count_if_their_gap_is_small(
    outcome: Outcome, gap: float, trouble: str
) -> None:
    doubtful = [Solution(np.zeros(1), outcome, 1.0, 1.0)] * 2
    assert check_answer(needs(0.0), np.ones(2), doubtful, 1.0, gap).trouble == trouble
    both = check_answer(needs(2.0), np.ones(2), doubtful[:1], 1.0, 1.0).trouble
    assert both == f'{outcome.value}; the constraints are violated'


class Energies:
    """Information of two folds, whose held-out energies are those of the weights tried."""

    def __init__(self, table: Mapping[float, tuple[float, ...]]) -> None:
        self.table, self.structure = table, np.ones((2, 1))
        self.distinct = self.total = self

    def subset(self, batches: list[int]) -> Energies:
        return self

    def residual_energy(self, weight: float, effort: int, batch: Energies) -> FloatArray:
        return 0.5 * np.array(self.table[weight])**2


def chosen(
    monkeypatch: pytest.MonkeyPatch, errors: list[tuple[float, float]], folds: int = 2
) -> float:
    """Return the weight chosen by the errors of two joints with every weight; NaN: no solution."""
    monkeypatch.setattr(simultaneous, 'folds', lambda _: folds * [Fold([0], [1])])
    information = Energies(dict(zip(WEIGHTS, errors, strict=True)))
    task: Any = SimpleNamespace(experiment=SimpleNamespace(information=information),
                                base=lambda v: v)

    def fit(weight: float) -> Answer:
        stuck = np.isnan(information.table[weight][0])
        return Answer(weight, weight, 0.0, 'stuck' if stuck else '')  # type: ignore[arg-type]

    return cross_validated(task, lambda *_: fit)


NO = (np.nan, np.nan)


@pytest.mark.parametrize(('weight', 'errors'), [
    (0.01, [(2.0, 3.04), (2.018, 3.0), (2.0, 3.0), (2.0, 3.0), (2.0, 3.0)]),
    (1e-3, [(2.0, 3.04), (2.022, 3.0), (2.0, 3.0), (2.0, 3.0), (2.0, 3.0)]),
    (1e-3, [NO, NO, (2.0, 3.0), (2.0, 3.0), (2.0, 3.0)]),
    (1e-4, [(1.0, 9.0), (1.1, 7.0), (1.3, 4.2), (1.4, 4.0), (2.0, 3.0)]),  # the worst joint
    (0.01, 5 * [NO])])
def test_the_largest_weight_is_taken_that_predicts_every_joint_within_a_hundredth(
    monkeypatch: pytest.MonkeyPatch, weight: float, errors: list[tuple[float, float]]
) -> None:
    assert chosen(monkeypatch, errors) == weight


def test_without_held_out_motion_the_weight_is_a_hundredth(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen(monkeypatch, 5 * [(1.0, 1.0)], 0) == 0.01


@pytest.mark.parametrize(('rises', 'weight'), [
    # of two joints with each weight; the constraints alone raise the second by a tenth
    ([(0.0, 0.9), (0.0, 0.16), (0.0, 0.15), (0.0, 0.1), (-0.1, 0.1)], 1e-3),
    ([(0.9, 0.0), (0.049, 0.154), (0.0, 0.0), (0.0, 0.0), (-0.1, 0.1)], 0.01),
    ([(0.9, 0.0), (0.051, 0.0), (0.06, 0.0), (0.04, 0.0), (-0.1, 0.1)], 1e-4),
    ([(0.0, 0.0), (0.9, 0.0), (0.9, 0.0), (0.9, 0.0), (-0.1, 0.1)], 1e-5)])
def test_the_prior_hardly_raises_residuals_beyond_the_constraints(
    monkeypatch: pytest.MonkeyPatch, rises: list[tuple[float, float]], weight: float
) -> None:
    """By a twentieth at most, from the weight given, here a hundredth, downwards."""
    table = dict(zip(WEIGHTS, rises, strict=True))
    task: Any = SimpleNamespace(feasible=None, base=lambda v: v, rise=lambda v: np.array(table[v]))
    active: list[Any] = []

    def constraints(feasible: Any, v: float, inertia: float) -> tuple[str, ...]:
        active.append((v, inertia))
        return ('one',)

    monkeypatch.setattr(simultaneous, 'active_constraints', constraints)
    found = limit_prior(task, lambda w: Answer(w, w, 0.0), 0.01)  # type: ignore[arg-type]
    assert (found.weight, found.binding) == (weight, ('one',))
    assert active == [(1e-5, 0.01)]  # of the least weight; links with a hundredth of the nominal


def test_solutions_of_equations_without_all_directions() -> None:
    """Directions below 1e-9 or so of the largest are open."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    design = left[:, :4] * [3.0, 0.2, 1e-3, 1e-14] @ right[:, :4].T
    target = rng.normal(size=5)
    matrix, values = excited(design, target)
    assert matrix.shape == (3, 5)
    assert matrix @ matrix.T == pytest.approx(np.eye(3), abs=1e-12)
    v = matrix.T @ values
    assert v == pytest.approx(np.linalg.lstsq(design, target, rcond=1e-9)[0], rel=1e-8)


@pytest.fixture(scope='module')
def task() -> Task:
    """Return the problem of a noisy recording of the planar arm, with the entropic prior."""
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, np.random.default_rng(1), noise=0.1, count=300)
    return Task.of(data.experiment, 'entropic', Bounds())


def test_the_objective_is_mean_squared_weighted_residual_and_mean_prior(task: Task) -> None:
    information = task.experiment.information
    design, target, rest = task.compressed(information)
    tall = weighted_factor(information, task.joint_weights)
    for scale in (0.9, 1.2):
        base = scale * LeastSquares().fit(task.experiment).values
        mean = np.sum((tall[:, :-1] @ base - tall[:, -1])**2) / (3 * information.samples)
        assert np.sum((design @ base - target)**2) + rest == pytest.approx(mean, rel=1e-9)
    assert task.joint_weights == pytest.approx(joint_weights(information))
    assert task.share(0.6) == pytest.approx(0.2)
    w = task.feasible.whitening
    v = w.centre + np.where(np.arange(len(w.centre)) < 30, 0.02, 0.3) * np.random.default_rng(
        2).normal(size=len(w.centre))
    values = np.linalg.eigvalsh(matrix_of(v[:30].reshape(-1, 10)))
    expected = np.sum(values - np.log(values) - 1.0) + 0.5 * 0.01 * np.sum(v[30:]**2)
    assert task.prior_value(v) == pytest.approx(expected, rel=1e-9)
    plain = Task(task.experiment, task.feasible, 'euclidean', task.joint_weights)
    assert plain.prior_value(v) == pytest.approx(
        0.5 * np.sum((v[:30] - w.centre[:30])**2) + 0.005 * np.sum(v[30:]**2), rel=1e-9)


def test_estimates_state_objective_rise_and_gap_of_their_weight(task: Task) -> None:
    experiment = task.experiment
    found = Feasible(prior_weight=0.3).fit(experiment)
    v = task.feasible.whitening.inverse @ found.standard
    tall = weighted_factor(experiment.information, task.joint_weights)
    mean, least = (np.sum((tall[:, :-1] @ base - tall[:, -1])**2) / (
        3 * experiment.information.samples)
        for base in (found.values, LeastSquares().fit(experiment).values))
    assert found.objective == pytest.approx(mean + 0.1 * task.prior_value(v), rel=1e-8)
    assert found.certificate.rise_of_residual == pytest.approx(np.sqrt(mean / least) - 1.0)
    assert found.prior_weight == 0.3 and 0.0 <= found.certificate.gap < 1e-6
    assert found.method == 'feasible'


def test_joints_whose_residual_rises_are_named_with_the_weight(task: Task) -> None:
    found = Feasible(prior_weight=1e4).fit(task.experiment)
    rise = task.rise(found.values)
    shown = ', '.join(f'joint_{i + 1} {100.0 * share:.0f}' for i, share in enumerate(rise)
                      if share > 0.05)
    assert shown
    assert (f'residuals are above those of least squares by [%]: {shown}: the prior of weight '
            '10000 causes it; set a smaller prior_weight') in found.warnings


def test_offsets_that_are_open_become_zero(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their prior weighs a million times that of a link."""
    monkeypatch.setattr(simultaneous, 'open_offsets', lambda _: ('f02',))
    w = Task.of(task.experiment, 'entropic', Bounds()).feasible.whitening
    weights = dict(zip(w.names, w.weights.tolist(), strict=True))
    assert (weights['f01'], weights['f02'], weights['fc2'], weights['m2']) == (
        0.01, 1e6, 0.01, 1.0)


def test_noise_is_at_least_a_thousandth_of_the_effort() -> None:
    robot = load_robot('planar_3r')
    data = recorded(robot, robot.nominal, np.random.default_rng(1), count=300)
    exact = Task.of(data.experiment, 'entropic', Bounds())
    size = np.sqrt(np.mean(data.samples.effort**2, axis=0))
    assert exact.joint_weights == pytest.approx(1000.0 / size, rel=1e-9)


def test_a_weight_of_zero_is_a_millionth_where_least_squares_are_infeasible(task: Task) -> None:
    lossy = LeastSquares().fit(task.experiment).values.copy()
    lossy[task.experiment.model.reduction.names.index('fv2')] = -3.0
    model, (samples,) = task.experiment.model, task.experiment.recordings
    effort = model.effort(samples, lossy)
    driven = Experiment.of(model, [replace(samples, effort=effort, measured=effort)])
    assert Feasible(prior_weight=0.0).fit(driven).prior_weight == 1e-6
