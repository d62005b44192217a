"""identification/residual_fit.py: what is held out, taken and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.identification import residual_fit as module
from robot_dynid.identification.residual_fit import (
    LOOP_ROUNDS,
    RESIDUAL_SAMPLES,
    CrossFit,
    JointFit,
    Round,
    Training,
    alternate,
    cross_fit,
    fit_models,
    fit_residual,
    predict_residual,
)
from robot_dynid.identified.record import DeflectionRecord, JointDeflection
from robot_dynid.types import FloatArray, Samples

JOINTS = tuple('abcd')
NONE: Any = None
AT_ONCE = JointFit(NONE, NONE)


def in_turn(*_: Any) -> FloatArray:
    """Stand for friction and links fitted in turn."""
    raise AssertionError


@dataclass(frozen=True)
class Reduced:
    """Stands for an experiment."""

    recordings: Any
    information: Any
    model: Any
    reversal_weights: Any = 'weights'


def reduced(count: int, recordings: Any = ()) -> Any:
    return Reduced(recordings, SimpleNamespace(samples=count, by_motion=SimpleNamespace(
        rows=np.arange(count % 1000))), SimpleNamespace(robot=SimpleNamespace(
            n=2, drive=SimpleNamespace(gear_ratios=None, coupling=None), joints=('a', 'b'))))


def samples_of(number: int, motors: bool = True) -> Samples:
    """Return three rows of two joints, each with its number."""
    row = number + np.array([[0.0, 0.25], [0.5, 0.75], [0.125, 0.625]])
    return Samples(('a', 'b'), np.arange(3.0), row, row, row, 10.0 + row, 20.0 + row,
                   motor_position=30.0 + 2.0 * row if motors else None,
                   motor_velocity=40.0 + 3.0 * row if motors else None)


@pytest.mark.parametrize(('count', 'stride', 'used'), [
    (200_000, 1, [0, 1, 2, 3, 4]), (200_001, 2, [0, 2, 4]), (400_000, 2, [0, 2, 4]),
    (400_001, 3, [0, 3])])
def test_training_uses_every_so_many_part_of_long_recordings(
    monkeypatch: pytest.MonkeyPatch, count: int, stride: int, used: list[int]
) -> None:
    assert RESIDUAL_SAMPLES == 200_000
    recordings = [samples_of(number) for number in range(5)]
    monkeypatch.setattr(module, 'Experiment', SimpleNamespace(
        of=lambda model, parts, weights: reduced(123, (parts, weights))))
    data = Training.of(reduced(count, recordings), needed=True)
    assert data is not None and data.stride == stride
    taken = [recordings[number] for number in used]
    assert data.experiment.recordings == (taken if stride == 1 else (taken, 'weights'))
    assert len(data.cell) == (count % 1000 if stride == 1 else 123)
    np.testing.assert_array_equal(data.effort, np.concatenate([one.effort for one in taken]))
    np.testing.assert_array_equal(data.measured, np.concatenate([one.measured for one in taken]))
    row = np.concatenate([one.position for one in taken])
    np.testing.assert_allclose(data.features, np.stack([30.0 + row, 40.0 + 2.0 * row], axis=2))
    assert data.joints == [0, 1]


def test_training_needs_motor_states_if_friction_and_links_are_fitted_at_once() -> None:
    mixed = [samples_of(0), samples_of(1, motors=False)]
    assert Training.of(reduced(6, mixed), needed=True) is None
    data = Training.of(reduced(6, mixed), needed=False)
    assert data is not None and data.features.shape == (6, 2, 2) and data.joints == []
    assert np.isfinite(data.features[:3]).all() and np.isnan(data.features[3:]).all()
    assert Training.of(reduced(0), needed=False) is None


#: efforts of six rows of two joints, in three cells
EFFORT = np.array([[1.0, 2.0], [3.0, 5.0], [8.0, 13.0], [0.5, 0.25], [4.0, 7.0], [9.0, 6.0]])
DATA: Any = SimpleNamespace(
    experiment=SimpleNamespace(information='information', model='model'), effort=EFFORT,
    cell=np.array([0, 0, 1, 1, 2, 2]), physics=lambda values: np.full((6, 2), values.sum()))


@pytest.mark.parametrize(('fall', 'physics', 'rounds'), [
    (0.8, in_turn, 8), (0.8, AT_ONCE, 1), (1.1, in_turn, 2), (1.0, in_turn, 2)])
def test_errors_are_held_out_fold_by_fold_until_they_rise(
    monkeypatch: pytest.MonkeyPatch, fall: float, physics: Any, rounds: int
) -> None:
    """What the models leave of the effort becomes a share of it in every iteration."""
    asked: list[Any] = []

    def alternate(data: Any, kinds: Any, physics: Any, cells: Any) -> Iterator[Round]:
        asked.append((kinds, physics, cells))
        left, number = 1.0, len(asked)
        while True:
            left *= fall
            physical = 0.25 * number * EFFORT
            yield Round(np.array([0.5, number, 100.0]), physical, (),
                        (1.0 - left) * EFFORT - physical, ())

    monkeypatch.setattr(module, 'alternate', alternate)
    monkeypatch.setattr(module, 'folds', lambda information: [
        SimpleNamespace(fitted=[1, 2], test=[0]), SimpleNamespace(fitted=[0], test=[1, 2])])
    monkeypatch.setattr(module, 'friction_parameters', lambda model: np.array([True, True, False]))
    kinds = {1: 'gear'}
    found = cross_fit(DATA, kinds, physics)
    assert asked == [(kinds, physics, [1, 2]), (kinds, physics, [0])]
    assert LOOP_ROUNDS == 8 and found.after.shape == (rounds, 2, 2) and found.samples == 6
    parts = [EFFORT[:2], EFFORT[2:]]
    for k in range(rounds):
        for fold, part in enumerate(parts):
            np.testing.assert_allclose(found.friction[k, fold], np.sum(
                (part - 1.5 - fold)**2, axis=0))
            np.testing.assert_allclose(found.physics[k, fold], np.sum(
                ((0.75 - 0.25 * fold) * part)**2, axis=0))
            np.testing.assert_allclose(found.after[k, fold], np.sum(
                (fall**(k + 1) * part)**2, axis=0))


#: squared errors of five folds of four joints, without a residual model
PLAIN = np.array([4.0, 9.0, 16.0, 25.0]) * np.array([1.0, 1.2, 0.9, 1.1, 1.3])[:, None]


def crossed(*shares: list[float]) -> CrossFit:
    """Return errors by iteration as shares of PLAIN; those of friction are larger."""
    after = np.array([PLAIN * one for one in shares])
    friction = np.array([(3.0 + k) * PLAIN for k in range(len(shares))])
    return CrossFit(friction, np.array([PLAIN] * len(shares)), after, 100)


def rms(share: float = 1.0) -> FloatArray:
    return np.sqrt(share * PLAIN.sum(axis=0) / 100.0)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that fits with prescribed errors by kind, and tells what it fitted."""
    def make(kind: str, errors: dict[str, CrossFit], physics: Any = AT_ONCE,
             joints: tuple[int, ...] = (0, 1, 3), stride: int = 1,
             notes: tuple[str, ...] = ('', '', '', '')) -> Any:
        asked: list[Any] = []

        def held_out(data: Any, kinds: Any, own: Any) -> CrossFit:
            asked.append(kinds)
            return errors[next(iter(kinds.values()), 'none')]

        def alternate(data: Any, kinds: Any, own: Any, cells: Any, watch: Any
                      ) -> Iterator[Round]:
            asked.append((kinds, list(cells)))
            for number in range(9):
                yield Round(np.array([number]), NONE, tuple(
                    kinds.get(j) for j in range(4)), NONE, notes)

        data = SimpleNamespace(joints=list(joints), cell=np.array([0, 2, 1, 2]), stride=stride)
        monkeypatch.setattr(module, 'Training', SimpleNamespace(
            of=lambda experiment, needed: data if needed is (physics is AT_ONCE) else None))
        monkeypatch.setattr(module, 'cross_fit', held_out)
        monkeypatch.setattr(module, 'alternate', alternate)
        experiment: Any = SimpleNamespace(model=SimpleNamespace(robot=SimpleNamespace(
            n=4, joints=JOINTS)))
        return fit_residual(experiment, kind, physics), asked

    return make


FELL = 'the held-out error does not fall'
MISSING = 'no usable motor states'
WARNING = 'joint {}: no residual model of the deflection: {}'


def test_each_joint_takes_the_kind_that_lowers_its_error_most(fits) -> None:
    """Kind by kind; the errors of friction and links are those of the first one."""
    errors = {'gear': crossed([0.5, 0.985, 1.0, 0.9]),
              'gmr': crossed([0.6, 0.99, 1.0, 0.9], [0.55, 0.95, 0.9, 0.7])}
    found, asked = fits('auto', errors)
    chosen = {0: 'gear', 3: 'gmr', 1: 'gmr'}
    assert asked == [{0: 'gear', 1: 'gear', 3: 'gear'}, {0: 'gmr', 1: 'gmr', 3: 'gmr'},
                     (chosen, [0, 1, 2])]
    assert found.models == ('gear', 'gmr', None, 'gmr')
    assert found.values.tolist() == [1]  # of the second iteration, the best one of the last kind
    assert found.warnings == (WARNING.format('c', MISSING),)
    rows = tuple(JointDeflection(
        joint, not note, note, pytest.approx(rms(3.0)[j]), pytest.approx(rms()[j]),
        pytest.approx(rms(share)[j]), kind) for j, (joint, note, share, kind) in enumerate(zip(
            JOINTS, ('', '', MISSING, ''), (0.5, 0.95, 1.0, 0.7), ('gear', 'gmr', '', 'gmr'),
            strict=True)))
    assert found.record == DeflectionRecord('auto', 2, rows, tuple(
        pytest.approx(tuple((rms() * np.sqrt(shares)).tolist())) for shares in (
            [0.6, 0.99, 1.0, 0.9], [0.55, 0.95, 0.9, 0.7])))


@pytest.mark.parametrize(('physics', 'last'), [(AT_ONCE, 0), (in_turn, 1)])
def test_models_that_do_not_help_are_not_taken(fits, physics, last) -> None:
    """Links fitted in turn with friction take their iterations all the same."""
    errors = {'gmr': crossed([1.1, 1.0, 1.0, 1.0], [0.99, 0.99, 0.99, 0.99])}
    found, asked = fits('gmr', errors, physics, stride=3, notes=('few rows', '', '', ''))
    assert asked[-1] == ({}, [0, 1, 2]) and found.values.tolist() == [last]
    assert found.warnings == (
        WARNING.format('a', 'few rows'), WARNING.format('b', FELL), WARNING.format('c', MISSING),
        WARNING.format('d', FELL), *(['long recordings: residual models use one of 3 parts']
                                     if last else []))
    assert [(row.used, row.note, row.kind) for row in found.record.joints] == [
        (False, 'few rows', ''), (False, FELL, ''), (False, MISSING, ''), (False, FELL, '')]


def test_without_a_requested_model_there_is_nothing_to_say(fits) -> None:
    errors = {'none': crossed([1.0] * 4, [0.9] * 4)}
    for kind, physics, last in (('none', AT_ONCE, 0), ('none', in_turn, 1)):
        found, asked = fits(kind, errors, physics)
        assert asked[0] == {} and found.values.tolist() == [last] and found.warnings == ()
        assert {row.note for row in found.record.joints} == {'not requested, or no motor states'}
        assert (found.record.kind, found.record.rounds) == (kind, 2)
    stopped, _ = fits('gear', {'gear': crossed([0.5] * 4)}, stride=2)
    assert stopped.warnings[-1] == 'long recordings: residual models use one of 2 parts'


def test_friction_and_links_at_once_are_fitted_as_the_method_does(monkeypatch) -> None:
    """By weighted least squares where it fits no parts of its own."""
    monkeypatch.setattr(module, 'joint_weights', lambda information: f'weights of {information}')
    monkeypatch.setattr(module, 'solve', lambda *given: SimpleNamespace(values=given))
    whole: Any = SimpleNamespace(information=SimpleNamespace(subset=lambda chosen: f'{chosen}'))
    for fit, values in ((None, ('[2, 5]', 'weights of [2, 5]')),
                        (lambda batches: ('own', batches), ('own', [2, 5]))):
        estimator: Any = SimpleNamespace(fit_to_batches=lambda *given, fit=fit: fit)
        assert JointFit(estimator, NONE)(whole, NONE, [2, 5], None) == values


class Models:
    """Fits of residual models: what they are given, a model that doubles its last feature."""

    def __init__(self, gear: bool) -> None:
        self.gear, self.given = gear, list[Any]()

    def fit(self, features: FloatArray, residual: FloatArray) -> Any:
        self.given.append((features, residual))
        if self.gear:
            raise DataError('too little motion')
        return SimpleNamespace(mean=lambda rows: 2.0 * rows[:, -1])


def test_residual_models_are_fitted_to_what_physics_leaves(monkeypatch) -> None:
    """Of the chosen rows, without the load for those that are no gears; rows are predicted all."""
    gear, other = Models(True), Models(False)
    monkeypatch.setattr(module, 'RESIDUALS', {'gear': gear, 'rbf': other})
    rng = np.random.default_rng(1)
    features, effort, physics = rng.normal(size=(5, 4, 3)), *rng.normal(size=(2, 5, 4))
    data: Any = SimpleNamespace(features=features, effort=effort, experiment=SimpleNamespace(
        model=SimpleNamespace(robot=SimpleNamespace(joints=JOINTS))))
    chosen = np.array([True, False, True, True, False])
    models, notes = fit_models(data, {1: 'gear', 3: 'rbf'}, physics, chosen)
    assert notes == ('', 'b: too little motion', '', '')
    assert [one is None for one in models] == [True, True, True, False]
    for own, j, columns in ((gear, 1, 3), (other, 3, 2)):
        ((rows, residual),) = own.given
        np.testing.assert_array_equal(rows, features[chosen, j, :columns])
        np.testing.assert_array_equal(residual, (effort - physics)[chosen, j])
    found = predict_residual(data, models)
    np.testing.assert_array_equal(found[:, 3], 2.0 * features[:, 3, 1])
    assert not found[:, :3].any()


def test_physics_and_residual_models_are_fitted_in_turn(monkeypatch) -> None:
    """Physics to what the models of the round before leave, in some cells."""
    asked: list[Any] = []

    class Data(SimpleNamespace):
        """Recordings whose load depends on the physics."""

        def loaded(self, values: Any) -> Any:
            return f'loaded {values}'

        def physics(self, values: Any) -> Any:
            return f'physics {values}'

        def without(self, added: Any) -> Any:
            return SimpleNamespace(by_motion=f'left by {added}')

    def own(whole: Any, left: Any, cells: Any, previous: Any) -> Any:
        asked.append((whole, left, cells, previous))
        return len(asked)

    data: Any = Data(cell=np.array([0, 1, 2, 1]), experiment=SimpleNamespace(by_motion='whole'))
    monkeypatch.setattr(module, 'fit_models', lambda data, kinds, physics, chosen: (
        (f'{data} {physics} {chosen.tolist()}' if kinds else None,), ('note',)))
    monkeypatch.setattr(module, 'predict_residual', lambda data, models: f'added {data}')
    chosen = [True, False, True, False]
    rounds = alternate(data, {0: 'gear'}, own, [0, 2])
    for number in (1, 2):
        one: Any = next(rounds)
        assert (one.values, one.physics, one.added, one.notes) == (
            number, f'physics {number}', f'added loaded {number}', ('note',))
        assert one.models == (f'loaded {number} physics {number} {chosen}',)
    assert asked == [('whole', 'whole', [0, 2], None),
                     ('whole', 'left by added loaded 1', [0, 2], 1)]
    asked.clear()
    plain = alternate(data, {}, own, [0, 2])
    first: Any = next(plain)
    assert first.added == f'added {data}' and first.models == (None,)
    next(plain)
    assert asked == [('whole', 'whole', [0, 2], None), ('whole', 'whole', [0, 2], 1)]
