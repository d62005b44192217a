"""estimation/friction_selection/candidate_columns.py, law_scores.py: factors of all columns, and
scores from them, against the equations themselves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from motions import five_sines

from robot_dynid.effects import JointFriction, RigidLinks, axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.candidate_columns import (
    Dictionary,
    Factor,
    Factors,
)
from robot_dynid.estimation.friction_selection.law_scores import LawScores, noise_of, solution
from robot_dynid.estimation.friction_selection.selection_data import FrictionData
from robot_dynid.estimation.information import triangle
from robot_dynid.friction import Coulomb, law_from
from robot_dynid.reduction.numeric import states_at
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.types import FloatArray, Samples

COULOMB, DAHL = law_from('coulomb'), law_from('dahl')
LAWS = COULOMB, COULOMB
#: columns: 0 to 2 of links, 3 to 6 fv, fc, f0 and Dahl's fc of axis 1, 7 to 9 of axis 2, efforts
LINKS, FIRST, ALL = 3, np.array([3, 7, 10]), 12
ACTIVE = np.array([0, 2, 3, 4, 5, 6, 10, 11]), np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
#: samples of three folds, and between them
SIZES = (40, 30, 50, 20)
NOISE = np.array([0.5, 3.0])


@pytest.fixture(scope='module')
def rows() -> list[list[FloatArray]]:
    """Return the equations (N, 12) of two joints by part; axis 1 acts on both, axis 2 on one."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=10)
    parts = []
    for size in SIZES:
        joints = []
        for active, noise in zip(ACTIVE, NOISE, strict=True):
            own = np.zeros((size, ALL))
            own[:, active] = rng.normal(size=(size, len(active))) * (1.0 + active % 4)
            own[:, 10] = own[:, :10] @ true + noise * rng.normal(size=size)
            own[:, 11] = own[:, 10] + 0.3 * noise * rng.normal(size=size)
            joints.append(own)
        parts.append(joints)
    return parts


@pytest.fixture(scope='module')
def factors(rows: list[list[FloatArray]]) -> Factors:
    """Return the factors of these equations."""
    friction = SimpleNamespace(
        laws=(Dictionary((COULOMB, DAHL)), Dictionary((COULOMB,))),
        axes=SimpleNamespace(effort=np.array([[1.0, 0.5], [0.0, 1.0]])))
    reach = np.array([[2.0, 3.0, 0.5, 0.2, 0.0, 0.0, 0.0], [1.0, 4.0, 0.1, 0.7, 1.5, 2.5, 3.5]])
    return Factors(friction, tuple(tuple(  # type: ignore[arg-type]
        triangle(own[:, active]) for own, active in zip(part, ACTIVE, strict=True))
        for part in rows), ACTIVE, LINKS, FIRST, np.array(SIZES), reach)


def stacked(rows: list[list[FloatArray]], joints: list[int]) -> FloatArray:
    """Return the equations of some joints over some parts, divided by their noise."""
    return np.concatenate([part[j] / NOISE[j] for part in rows for j in joints])


@pytest.mark.parametrize(('axis', 'own', 'rest', 'joints'), [
    (0, [3, 4, 5, 6], [0, 1, 2, 7, 8, 9], [0, 1]), (1, [7, 8, 9], [0, 1, 2, 3, 4, 5], [1])])
def test_scores_eliminate_links_and_other_axes_as_fits_to_the_equations_do(
    rows: list[list[FloatArray]], factors: Factors, axis: int, own: list[int], rest: list[int],
    joints: list[int]
) -> None:
    found = LawScores.of(factors, axis, LAWS, NOISE)
    whole = stacked(rows, [0, 1])
    for k in range(4):
        fitted = whole if k == 3 else stacked(
            [part for i, part in enumerate(rows[:3]) if i != k], [0, 1])
        sides = fitted[:, [*own, 10]]
        coefficients = np.linalg.lstsq(fitted[:, rest], sides, rcond=None)[0]
        left = sides - fitted[:, rest] @ coefficients
        assert found.train[k].T @ found.train[k] == pytest.approx(left.T @ left, rel=1e-8)
        if k < 3:
            test = stacked(rows[k:k + 1], joints)
            left = test[:, [*own, 11]] - test[:, rest] @ coefficients
            assert found.test[k].T @ found.test[k] == pytest.approx(left.T @ left, rel=1e-8)
    assert found.samples.tolist() == [40, 30, 50]
    assert found.norms == pytest.approx(np.linalg.norm(stacked(rows, joints)[:, own], axis=0))
    raw = [np.sqrt(np.mean(np.concatenate([part[j][:, 11] for part in rows])**2)) for j in (0, 1)]
    expected = [2.0 / raw[0], 4.0 / raw[1], 0.5 / raw[0], 0.7 / raw[1], *np.array(
        [1.5, 2.5, 3.5]) / raw[1]]
    assert found.reach == pytest.approx([expected[i - 3] for i in own])
    assert found.dictionary is factors.friction.laws[axis]


def test_the_noise_is_what_the_laws_leave_of_each_joint(
    rows: list[list[FloatArray]], factors: Factors
) -> None:
    columns, values = solution(factors, (DAHL, COULOMB), NOISE)
    assert columns.tolist() == [0, 1, 2, 3, 6, 5, 7, 8, 9]
    whole = stacked(rows, [0, 1])
    assert values == pytest.approx(
        np.linalg.lstsq(whole[:, columns], whole[:, 10], rcond=None)[0], rel=1e-8)
    left = [np.concatenate([part[j][:, 10] - part[j][:, columns] @ values for part in rows])
            for j in (0, 1)]
    assert noise_of(factors, (DAHL, COULOMB), NOISE) == pytest.approx(
        [np.sqrt(np.mean(one**2)) for one in left], rel=1e-8)


def test_noise_is_never_below_rounding(factors: Factors) -> None:
    """An effort that is none has a billionth of the noise of the others."""
    quiet = [tuple(np.zeros_like(one) if j == 0 else one for j, one in enumerate(part))
             for part in factors.parts]
    noise = noise_of(Factors(factors.friction, tuple(quiet), ACTIVE, LINKS, FIRST,
                             factors.samples, factors.reach), LAWS, NOISE)
    assert noise[0] == pytest.approx(1e-9 * noise[1], rel=1e-6) and noise[1] > 1.0


def test_factors_of_few_columns_give_any_of_all(
    rows: list[list[FloatArray]], factors: Factors
) -> None:
    whole = np.concatenate([part[0] for part in rows])
    factor = factors.whole[0]
    assert isinstance(factor, Factor)
    chosen = np.array([3, 1, 2, 8])
    found = factor.equations(chosen)
    tall = whole[:, [*chosen, 10]]
    assert found.shape == (3, 5)
    assert found.T @ found == pytest.approx(tall.T @ tall, rel=1e-9, abs=1e-9)
    columns, raw = factor.columns([2, 1]), factor.columns([-1, -2])
    assert not columns[:, 1].any()
    assert np.column_stack([columns, raw]).T @ raw == pytest.approx(
        whole[:, [2, 1, 11, 10]].T @ whole[:, [11, 10]], rel=1e-9, abs=1e-9)


def test_links_are_those_of_a_fit_with_the_noise_of_each_joint(factors: Factors) -> None:
    """The noise is refined three times, from one on."""
    noise = np.ones(2)
    for _ in range(3):
        noise = noise_of(factors, LAWS, noise)
    expected = solution(factors, LAWS, noise)[1][:3]
    standard = np.zeros(25)
    standard[[4, 13, 19]] = expected
    values: list[FloatArray] = []

    def standard_values(base: FloatArray) -> FloatArray:
        values.append(base)
        return standard

    model = SimpleNamespace(reduction=SimpleNamespace(standard_values=standard_values),
                            robot=SimpleNamespace(tree=SimpleNamespace(n=2)))
    data = FrictionData(model, None, [])  # type: ignore[arg-type]
    assert data.links(factors, LAWS).tolist() == standard[:20].reshape(2, 10).tolist()
    assert values[0].tolist() == expected.tolist()
    assert data.load(None) is None


@pytest.fixture(scope='module')
def reduced() -> tuple[Factors, list[Samples], JointFriction, FloatArray]:
    """Return factors of two recordings of an arm of which motors 5 and 6 share a joint."""
    robot = load_robot('tx40')
    axes, rng = axes_of(robot), np.random.default_rng(0)
    laws = tuple(Dictionary((Coulomb(0.1 + 0.01 * i), DAHL)) for i in range(len(axes.labels)))
    friction = JointFriction(axes, laws)
    model = TorqueModel.of(robot, (RigidLinks(robot),))
    recordings = []
    for count in (1300, 250):  # longer than a chunk, and shorter
        time = 0.01 * np.arange(count)
        motion = five_sines(rng, time, robot.n)
        effort, measured = rng.normal(size=(2, count, robot.n))
        recordings.append(Samples(robot.joints, time, *motion, effort, measured))
    columns = np.concatenate([np.concatenate([
        model.columns(samples), axes.effort.T.repeat(4, axis=1)[:, :, None]
        * friction.history(samples), samples.effort.T[:, None], samples.measured.T[:, None]],
        axis=1) for samples in recordings], axis=2)
    return Factors.of(model, friction, recordings), recordings, friction, columns


def test_factors_are_those_of_the_columns_of_each_fold(reduced) -> None:  # type: ignore[no-untyped-def]
    found, recordings, friction, columns = reduced
    motion = DistinctMotion()
    cells = [motion.add(samples) for samples in recordings]
    fold = folds(motion.seconds, motion.guard)
    part = np.concatenate([fold[of] for of in cells])
    count = int(part.max()) + 1
    assert len(found.parts) == count + 1 > 3 and np.any(part < 0)
    assert found.samples.tolist() == [np.count_nonzero(part == k) for k in (*range(count), -1)]
    assert found.links == columns.shape[1] - 2 - 4 * len(friction.laws)
    assert found.first.tolist() == [found.links + 4 * i for i in range(len(friction.laws) + 1)]
    for j in range(len(columns)):
        shown = np.any(columns[j] != 0.0, axis=1)
        assert set(np.flatnonzero(shown)) <= set(found.active[j].tolist())
        acting = np.flatnonzero(friction.axes.effort[:, j])
        assert found.active[j][found.active[j] >= found.links].tolist() == [
            *(found.links + 4 * a + i for a in acting for i in range(4)),
            columns.shape[1] - 2, columns.shape[1] - 1]
        for k in (*range(count), -1):
            rows = columns[j][found.active[j]][:, part == k]
            gram = found.parts[k][j].T @ found.parts[k][j]
            scale = np.sqrt(np.outer(np.diag(rows @ rows.T), np.diag(rows @ rows.T)))
            np.testing.assert_allclose(gram, rows @ rows.T, rtol=0.0, atol=1e-9 * scale.max())


def test_the_reach_of_a_column_is_its_effort_at_one_radian_per_second(reduced) -> None:  # type: ignore[no-untyped-def]
    found, _, friction, _ = reduced
    alone = np.sqrt(np.mean(friction.history(states_at(load_robot('tx40'), 1.0))**2, axis=1))
    effort = friction.axes.effort
    assert found.reach == pytest.approx(np.abs(effort).T.repeat(4, axis=1) * alone)


def test_motion_without_parts_to_leave_out_is_named() -> None:
    robot = load_robot('planar_3r')
    still = np.zeros((20, 3))
    samples = Samples(robot.joints, 0.01 * np.arange(20), still, still, still, still, still)
    with pytest.raises(DataError, match=r's of motion are too short to choose a friction law by a '
                                        r'held-out part: record a longer motion, or name a law in '
                                        r'the recipe$'):
        Factors.of(TorqueModel.of(robot, (RigidLinks(robot),)), JointFriction(
            axes_of(robot), (Dictionary((COULOMB,)),) * 3), [samples])
