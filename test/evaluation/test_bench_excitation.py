"""robot_dynid_evaluation/bench/excitation.py: the benchmarks of excitations: one problem for all
contenders, precision as predicted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from tolerances import DIFFERENCE, PREDICTED

from robot_dynid.excitation.search.optimise import search
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import violations
from robot_dynid_evaluation.bench import Target, excitation, figaroh_peer, fourier_peer, precision

STEP = 1e-6  # of central differences


@pytest.fixture(scope='module')
def setting() -> excitation.Setting:
    return excitation.prepared('planar_3r')


def test_random_contenders_keep_the_limits_and_are_scored_alike(
    setting: excitation.Setting
) -> None:
    few, many = (excitation.best_of_random(setting, draws) for draws in (2, 8))
    assert many.condition <= few.condition
    assert many.log_det >= few.log_det
    problem = excitation.fourier_problem(setting)
    start = search(problem, 1, np.random.default_rng(0), lambda *_: True).coefficients
    trajectory = problem.basis.trajectory(start)
    assert violations(trajectory.peaks(), setting.limits) == ()
    assert (trajectory.duration, problem.basis.size) == (20.0, 9)


def test_the_peer_gets_exact_derivatives(setting: excitation.Setting) -> None:
    """Objective and all constraints, limits and efforts, against central differences."""
    problem = excitation.fourier_problem(setting)
    x = search(problem, 1, np.random.default_rng(0), lambda *_: True).coefficients
    peer = fourier_peer.Search(problem)
    assert peer.objective(x.ravel()) == problem.value(x)[0]
    way = np.random.default_rng(1).standard_normal(x.size)
    there, back = x.ravel() + STEP * way, x.ravel() - STEP * way
    slope = (peer.objective(there) - peer.objective(back)) / (2.0 * STEP)
    assert peer.gradient(x.ravel()) @ way == pytest.approx(slope, rel=DIFFERENCE)
    rates = (peer.constraints(there) - peer.constraints(back)) / (2.0 * STEP)
    entries = peer.jacobian(x.ravel()), peer.jacobianstructure()
    jacobian = csr_array(entries, shape=(len(rates), x.size))
    np.testing.assert_allclose(jacobian @ way, rates,
                               rtol=0.0, atol=DIFFERENCE * np.abs(rates).max())
    low, high = peer.bounds()
    kept = peer.constraints(x.ravel())
    assert np.all((low <= kept) & (kept <= high))


def test_rows_compare_both_figures(setting: excitation.Setting) -> None:
    ours = excitation.Entry('ours', 2.0, 50.0, 3.0)
    worse = excitation.Entry('peer', 4.0, 40.0, 60.0)
    condition, deviations, seconds = excitation.compared(setting, ours, worse, Target(10.0))
    assert (condition['ratio'], seconds['ratio']) == (2.0, 20.0)
    count = len(setting.criteria.model.reduction.pivots)
    assert deviations['ratio'] == pytest.approx(np.exp(10.0 / (2.0 * count)))
    assert (deviations['ours'], deviations['peer']) == (50.0, 40.0)
    assert all(r['kept'] for r in (condition, deviations, seconds))
    swapped = excitation.compared(setting, worse, ours, Target(10.0))
    assert not any(r['kept'] for r in swapped)
    nothing = excitation.Entry('peer', np.inf, -np.inf, 60.0)
    assert all(r['kept'] for r in excitation.compared(setting, ours, nothing, Target(10.0)))
    assert excitation.compared(setting, ours, worse, None)[2]['kept'] is None
    assert excitation.absent('peer: not installed', ours)['kept'] is None


@pytest.mark.skipif(not fourier_peer.available(), reason='cyipopt is not installed')
def test_ipopt_improves_its_start(setting: excitation.Setting) -> None:
    problem = excitation.fourier_problem(setting)
    start = search(problem, 1, np.random.default_rng(0), lambda *_: True).coefficients
    found = fourier_peer.optimise(problem, [start], 5.0)
    assert problem.value(found)[0] <= problem.value(start)[0]
    assert violations(problem.basis.trajectory(found).peaks(), setting.limits) == ()


@pytest.mark.skipif(not figaroh_peer.available(), reason='figaroh is not installed')
def test_figaroh_keeps_our_limits(setting: excitation.Setting) -> None:
    task = figaroh_peer.Task(setting.limits, 20.0, 10, 10.0)
    motion = figaroh_peer.optimise(setting.robot, task).sample(np.linspace(0.0, 20.0, 500))
    room = 1.0 + 1e-6
    for name in ('velocity', 'acceleration'):
        assert np.all(np.abs(getattr(motion, name)) <= room * getattr(setting.limits, name))
    assert np.all(motion.velocity[[0, -1]] == pytest.approx(0.0, abs=1e-9))


@pytest.mark.parametrize('seeds', [4, pytest.param(10, marks=pytest.mark.soak)])
def test_deviations_fall_as_predicted(seeds: int) -> None:
    """Short form of the benchmark: three joints, periods of 8 s."""
    pytest.importorskip('mujoco')
    robot = load_robot('planar_3r')
    case = precision.simulated(robot, precision.random(robot, 8.0))
    outcomes = [precision.repeated(case, periods, seeds) for periods in (1, 4)]
    for outcome in outcomes:
        spread = precision.mean(outcome.achieved) / precision.mean(outcome.predicted)
        assert spread == pytest.approx(1.0, abs=PREDICTED)
        assert outcome.ratio(outcome.error) == pytest.approx(1.0, abs=PREDICTED)
    once, four = (precision.mean(outcome.achieved) for outcome in outcomes)
    assert four / once == pytest.approx(0.5, abs=0.5 * PREDICTED)
    rows = precision.rows('x', outcomes[1], precision.mean(outcomes[0].predicted))
    assert [row['kept'] for row in rows] == [True, True]
    assert rows[0]['peer'] == pytest.approx(0.5)
