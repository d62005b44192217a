"""identification/learnt.py: rows and thresholds of the search for ripple and slow changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from motions import torque_model

from robot_dynid.effects.ripple import ABOVE_FAST
from robot_dynid.effects.ripple_search import CREEP_SHARE
from robot_dynid.effects.slow_changes import FrictionResidual
from robot_dynid.errors import DataError
from robot_dynid.identification import learnt
from robot_dynid.identification.gathered import Fit
from robot_dynid.identification.learnt import (
    Rows,
    RowWeights,
    apply_changes,
    learn_ripple,
    refit_with_links,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import FitRecord
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples

JOINTS = ('a', 'b')
#: rows of a piece of 0.2 s
PIECE = 20


def samples_of(count: int, seed: int, raw: bool = True) -> Samples:
    """Return random motion at 100 Hz, of which every tenth row repeats the stamp before it."""
    time = 0.01 * np.arange(count)
    q, qd, qdd, measured, exact = np.random.default_rng(seed).normal(size=(5, count, 2))
    stamps = time.copy()
    stamps[9::10] = stamps[8::10]
    return Samples(JOINTS, time, q, qd, qdd, measured, measured, stamps=stamps,
                   raw_position=exact if raw else None)


def model_of(**changes: Any) -> Any:
    """Return a model that predicts a tenth of the position."""
    return SimpleNamespace(**{
        'robot': 'robot', 'preprocessing': Preprocessing(10.0), 'joints': JOINTS,
        'predicted': lambda samples: 0.1 * samples.position, **changes})


@pytest.fixture(autouse=True)
def _prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(robot: Any, recording: Any, settings: Any) -> Samples:
        assert (robot, settings) == ('robot', Preprocessing(10.0, decimate=False))
        if isinstance(recording.samples, DataError):
            raise recording.samples
        return recording.samples

    monkeypatch.setattr(learnt, 'prepare', prepare)


def recording(samples: Any, rows: int = 100) -> Any:
    """Return a recording in two parts, of so many rows in all."""
    return SimpleNamespace(samples=samples, parts=[
        SimpleNamespace(time=range(rows // 4)), SimpleNamespace(time=range(rows - rows // 4))])


@pytest.mark.parametrize(('count', 'every'), [(30_000, 1), (30_001, 2), (60_000, 2), (60_001, 3)])
def test_rows_are_those_of_evenly_spaced_pieces_with_a_measurement(count: int, every: int) -> None:
    """Of recordings that can be used, and have positions as measured."""
    used = [samples_of(130, 1), samples_of(90, 2)]
    found = Rows.of(model_of(), [
        recording(used[0], count - 50), recording(DataError('at rest'), 10),
        recording(samples_of(70, 3, raw=False), 20), recording(used[1], 20)])
    assert found is not None
    masks = [np.array([k % 10 != 9 and (k // PIECE) % every == 0 for k in range(len(one))])
             for one in used]
    for name, values in (('position', [one.raw_position for one in used]),
                         ('velocity', [one.at_stamps(one.velocity) for one in used]),
                         ('effort', [0.1 * one.position for one in used]),
                         ('residual', [one.measured - 0.1 * one.position for one in used])):
        np.testing.assert_array_equal(getattr(found, name), np.concatenate([
            one[mask] for one, mask in zip(values, masks, strict=True)]))
    assert found.step == pytest.approx(0.01)
    numbers = [k // PIECE + 100 * r for r, mask in enumerate(masks) for k in np.flatnonzero(mask)]
    starts = np.diff(numbers, prepend=-1) != 0
    np.testing.assert_array_equal(found.pieces, np.cumsum(starts))
    assert len(found.folds) == len(numbers) and len(set(found.folds.tolist())) > 1
    assert Rows.of(model_of(), [recording(DataError('at rest'))]) is None
    assert Rows.of(model_of(), [recording(samples_of(70, 3, raw=False))]) is None


def rows_of(count: int, top: float) -> Rows:
    """Return rows whose second joint moves at most at ``top`` [rad/s], one way."""
    rng = np.random.default_rng(4)
    position, velocity, effort, residual = rng.uniform(0.0, 1.0, (4, count, 2))
    velocity[:, 1] *= -0.5 * top
    velocity[3, 1] = -top
    return Rows(position, velocity, effort, residual, np.arange(count), np.arange(count) // 7,
                0.004)


def test_rows_of_a_joint_are_searched_that_moves_in_a_thousand_of_them() -> None:
    rows = rows_of(1000, 0.012)
    found = rows.of_joint(1)
    assert found is not None
    for name in ('position', 'velocity', 'effort', 'residual'):
        np.testing.assert_array_equal(getattr(found, name), getattr(rows, name)[:, 1])
    np.testing.assert_array_equal(found.folds, rows.folds)
    np.testing.assert_array_equal(found.blocks, rows.pieces)
    assert (found.slow, found.fast, found.step) == pytest.approx(
        (CREEP_SHARE * 0.012, 0.012 / ABOVE_FAST, 0.004))
    assert rows_of(999, 0.012).of_joint(1) is None
    assert rows_of(1000, 0.0099).of_joint(1) is None
    assert rows_of(1000, 0.0101).of_joint(1) is not None


@dataclass(frozen=True)
class Model:
    """Stands for a model."""

    record: FitRecord
    robot: Any
    joints: tuple[str, ...] = JOINTS
    learnt: Any = None
    torque_model: Any = None

    def with_learnt(self, key: str, parts: Any) -> Model:
        return replace(self, learnt=(key, tuple(parts)))


@pytest.mark.parametrize('ratios', [None, np.array([50.0, 80.0])])
def test_ripple_is_sought_with_the_gear_ratio_of_each_joint(monkeypatch, ratios) -> None:
    """Not at refused joints, nor at those that rest."""
    asked: list[Any] = []

    def fit_ripple(data: Any, ratio: Any) -> Any:
        asked.append((data, ratio))
        return SimpleNamespace(ripple=f'ripple of {data}', waves=('w',), rms_without=4.0,
                               rms_with=3.0, compliance=2.0, compliance_std=1.0, aliased=('x',))

    rows = SimpleNamespace(of_joint=lambda j: f'rows {j}' if j != 2 else None)
    monkeypatch.setattr(learnt, 'Rows', SimpleNamespace(of=lambda model, recordings: rows))
    monkeypatch.setattr(learnt, 'fit_ripple', fit_ripple)
    joints = ('a', 'b', 'c')
    given = None if ratios is None else np.append(ratios, 90.0)
    model: Any = Model(FitRecord(refused={'a': 'noise'}), SimpleNamespace(drive=SimpleNamespace(
        gear_ratios=given)), joints, torque_model=SimpleNamespace(gears=()))
    gathered: Any = SimpleNamespace(excerpt=[])
    estimator: Any = SimpleNamespace(single_joint_motions=False)
    none: Any = None
    fit = learn_ripple(Fit(model, none, ('note',)), gathered, estimator, Recipe())
    found: Any = fit.model
    assert asked == [('rows 1', None if ratios is None else 80.0)]
    assert found.learnt == ('ripple', (None, 'ripple of rows 1', None))
    (one,) = found.record.ripple
    assert (one.joint, one.before, one.after, one.waves, one.compliance, one.compliance_std,
            one.aliased) == ('b', 4.0, 3.0, ('w',), 2.0, 1.0, ('x',))
    assert fit.notes == ('note',)
    monkeypatch.setattr(learnt, 'Rows', SimpleNamespace(of=lambda model, recordings: None))
    plain = Fit(model, none)
    assert learn_ripple(plain, gathered, estimator, Recipe()) is plain


@dataclass(frozen=True)
class Estimate:
    """Stands for an estimate of which one parameter is not excited."""

    values: FloatArray
    covariance: FloatArray
    names: tuple[str, ...] = ('p', 'q', 'r')
    not_excited: tuple[str, ...] = ('q',)

    @property
    def std(self) -> FloatArray:
        return np.where([name in self.not_excited for name in self.names], np.inf,
                        np.sqrt(np.diag(self.covariance)))


@dataclass(frozen=True)
class Values:
    """Stands for a model with its parameters."""

    values: Any = None
    std: Any = None
    correlation_factor: Any = None


def test_corrections_of_several_joints_add_up_except_for_what_is_not_excited() -> None:
    rng = np.random.default_rng(5)
    first, second, own = (one @ one.T for one in rng.normal(size=(3, 3, 5)))
    fits: Any = [SimpleNamespace(change=np.array([0.5, 8.0, -2.0]), covariance=first),
                 SimpleNamespace(change=np.array([0.25, 4.0, 1.0]), covariance=second)]
    estimate: Any = Estimate(np.array([1.0, 2.0, 3.0]), own)
    none: Any = Values()
    model, found = apply_changes(none, estimate, fits)
    np.testing.assert_allclose(found.values, [1.75, 2.0, 2.0])
    total = own + first + second
    total[1], total[:, 1] = own[1], own[:, 1]
    np.testing.assert_allclose(found.covariance, total)
    np.testing.assert_array_equal(model.values, found.values)
    np.testing.assert_allclose(model.std, [np.sqrt(total[0, 0]), np.inf, np.sqrt(total[2, 2])])
    factor = model.correlation_factor
    both = [0, 2]
    np.testing.assert_allclose((factor.T @ factor)[np.ix_(both, both)], total[np.ix_(
        both, both)] / np.outer(model.std[both], model.std[both]), rtol=1e-6)


def test_warming_is_refitted_with_the_rows_of_all_joints(monkeypatch) -> None:
    """Products over the density of the noise, and with the weights of the estimate."""
    model = torque_model('planar_3r')
    names = len(model.reduction.names)
    rng = np.random.default_rng(3)
    recordings, residuals = [], [list[Any]() for _ in range(3)]
    for count in (7, 5):
        time = 0.01 * np.arange(count)
        stamps = time.copy()
        stamps[2] = stamps[1]
        recordings.append(Samples(model.robot.joints, time, *rng.normal(size=(3, count, 3)),
                                  stamps=stamps))
        fresh = np.arange(count) != 2
        for one in residuals:
            one.append(FrictionResidual(stamps[fresh], *rng.normal(size=(4, count - 1)),
                                        np.zeros((count - 1, 0))))
    warming: Any = SimpleNamespace(
        seconds=(1.0, 2.0), warmth=lambda one, state: one.dry + state.sum(),
        torque=lambda one, warmth: 0.5 * warmth)
    densities = iter([2.0, 4.0, 1e-5])
    asked: list[Any] = []
    monkeypatch.setattr(learnt, 'prepare', lambda robot, one, settings: one)
    monkeypatch.setattr(learnt, 'noise_density', lambda rests: next(densities))
    monkeypatch.setattr(learnt, 'refit_warming', lambda *given: asked.append(given))
    far = rng.uniform(0.5, 1.0, (7, 3))
    monkeypatch.setattr(learnt, 'row_weights', lambda robot, samples, weights: (
        far[:len(samples)] if weights == 'reversals' and len(samples) == 7 else None))
    fake: Any = SimpleNamespace(values=np.zeros(names), torque_model=model, robot=model.robot,
                                preprocessing=None)
    used: Any = recordings
    joints = np.array([1.0, 2.0, 3.0])
    reversals: Any = 'reversals'
    found = refit_with_links(fake, (used, residuals), [None, warming, None], RowWeights(
        joints, reversals))
    assert found == [None, None, None]
    ((own, given, constant),) = asked
    assert own is residuals[1] and given is warming
    others, normal = np.zeros((names + 1, names + 1)), np.zeros((names, names))
    for r, one in enumerate(recordings):
        fresh = one.fresh
        columns = model.columns(one)[:, :, fresh]
        squares = ((far if r == 0 else np.ones((5, 3)))[fresh] * joints)**2
        np.testing.assert_allclose(constant.columns[r], columns[1].T)
        np.testing.assert_allclose(constant.weights[r], squares[:, 1])
        for i, density in ((0, 2.0), (1, 4.0), (2, 4e-4)):
            normal += (columns[i] * squares[:, i]) @ columns[i].T
            if i != 1:
                tall = np.vstack([columns[i], residuals[i][r].left])
                others += 0.01 / density * tall @ tall.T
    np.testing.assert_allclose(constant.others, others, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(constant.normal, normal, rtol=1e-9, atol=1e-9)
