"""identification/identify.py: the model of a fit, its record, held-out errors and warnings."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.estimation import Estimate, Status
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.identification.identify import IdentificationResult, fit_gathered
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identified.record import CutoffScore, FitRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Preprocessing

MODULE: Any = importlib.import_module('robot_dynid.identification.identify')
ROBOT = load_robot('planar_3r')
CHOICE = Choice(Preprocessing(7.0), Structure.uniform(ROBOT, True, 'coulomb', {}),
                ((3.0, -1.5), (7.0, -2.0)), passbands=(7.0, 7.0, 9.0))
RAW, FILTERED, FITTED = np.array([4.0, 9.0, 16.0]), np.array([1.0, 4.0, 9.0]), \
    np.array([3.0, 8.0, 12.0])
BASE = HeldOut(RAW, FILTERED, np.full(3, 0.9), np.full(3, 0.1), np.zeros(3, dtype=bool),
               np.ones((2, 3)), np.array([5, 5]), 60.0, FITTED)
ESTIMATE = Estimate(('p', 'q', 'r'), np.array([1.0, 2.0, 3.0]), np.diag([4.0, 16.0, 25.0]),
                    np.ones(3), 1.0, 2.0, 3, 11, 'wls', warnings=('estimated',))


@dataclass(frozen=True)
class Model:
    """Stands for a model."""

    robot: Any
    structure: Any
    reduction: Any
    values: Any
    std: Any
    control: Any
    correlation_factor: Any
    preprocessing: Any
    method: str
    status: str
    record: FitRecord
    feasible: Any
    trained: Any
    warnings: tuple[str, ...] = ()
    not_identified: tuple[str, ...] = ()
    noise_levels: Any = None
    learnt: dict[str, Any] = field(default_factory=dict)

    def with_learnt(self, key: str, parts: Any) -> Model:
        return replace(self, learnt={**self.learnt, key: parts})


def scores_of(*errors: float) -> dict[str, Any]:
    return {'all': {joint: SimpleNamespace(rmse=one) for joint, one in zip(
        ROBOT.joints, errors, strict=True)}}


def trace_of(number: float, split: bool = True, near: bool = True) -> Any:
    wide = number + np.arange(4.0) * np.ones((2, 1))
    return SimpleNamespace(time=number, measured=3.0 * wide, predicted=wide,
                           split=SimpleNamespace(inertia=5.0 * wide) if split else None,
                           near=wide > 2.0 if near else None)


@dataclass
class Pipeline:
    """What takes the place of the steps of a fit; ``calls`` notes them in order."""

    refused: dict[int, str] = field(default_factory=dict)
    estimate: Estimate = ESTIMATE
    held: HeldOut = BASE
    shares: Any = None
    motions: Any = ('motion',)
    calls: list[Any] = field(default_factory=list)

    def note(self, name: str, result: Any) -> Any:
        def step(*given: Any, **more: Any) -> Any:
            self.calls.append(name)
            return result(*given, **more) if callable(result) else result
        return step

    def law(self, traces: Any) -> Any:
        """Return what the error law is learnt from."""
        return [(time, error.tolist(), inertia.tolist(), near.tolist())
                for time, error, inertia, near in traces]

    def learn(self, name: str) -> Any:
        return self.note(name, lambda fit, gathered, estimator, recipe: replace(
            fit, notes=(*fit.notes, name)))

    @property
    def fakes(self) -> dict[str, Any]:
        """The steps by name."""
        training = SimpleNamespace(
            model=scores_of(1.5, 3.0, 5.0), control=scores_of(2.0, 2.0, 2.0), remarks=('remark',),
            traces=(trace_of(1.0), trace_of(2.0, split=False), trace_of(3.0, near=False)))
        solution = SimpleNamespace(values='solved')
        return {
            'choose_feasible': self.note('feasible', lambda estimator, estimate, *_: (
                estimator, replace(estimate, warnings=(*estimate.warnings, 'feasible')))),
            'bound_friction': self.note('bound', lambda estimate, experiment: estimate),
            'held_out_in': self.note('held out', self.held),
            'fit_deflection': self.note('deflection', SimpleNamespace(
                record='residual', models=('model',), warnings=('deflected',))),
            'use_sequential_values': self.note('sequential', lambda estimate, result: estimate),
            'allow_for_other_hysteresis': self.note('hysteresis', lambda one, *_: one),
            'allow_for_low_pass': self.note('low-pass', lambda one, *_: one),
            'joint_efforts': self.note('joints alone', 'alone'),
            'explained_share': lambda counted, values: f'share of {counted}',
            'consistency': lambda counted: SimpleNamespace(
                of=counted, warnings=lambda names: (f'consistent {counted}',)),
            'refusals': self.refusals, 'control_parameters': lambda model, counted: counted,
            'refusal_sentences': lambda refused: [f'{k}: {v}' for k, v in refused.items()],
            'IdentifiedModel': Model, 'correlation_factor': lambda covariance, std: 'factor',
            'robot_to_plain': lambda robot: 'plain', 'digest_of': lambda one: f'digest {one}'[:12],
            'Trained': lambda quantities: quantities, 'without_inertials': lambda robot: ('bare',),
            'parameter_variance': lambda model: np.array([0.1, 0.2, 0.3]),
            'LEARNING': {'first': self.learn('one'), 'second': self.learn('two')},
            'sensor_warnings': lambda *_: ['sensor'], 'impossible': lambda model: ['impossible'],
            'recorded_motions': lambda model, logs: self.motions,
            'learn_noise_levels': lambda model, motions: 'levels',
            'score': self.note('score', lambda model, part, in_full: replace_in(
                training, in_full)),
            'on_other_motion': lambda model, motions, unseen: (
                model, ('contact', unseen.tolist())),
            'replace': replace_in, 'learn_error_law': self.law,
            'joint_weights': lambda information: 'weights',
            'solve': lambda information, weights: solution,
            'textbook_covariance': lambda *_: np.diag([4.0, 1.0, 0.0]),
            'recordings_of': lambda information: ['a', 'b'],
            'friction_scales': lambda model, values: {'solved': 'scales'}[values],
            'batch_scores': lambda *_: 'scores',
            'between_recordings': lambda scores, whole, scales: SimpleNamespace(
                spread={'dry': 0.25})}

    def refusals(self, held: Any, consistent: Any, served: Any) -> dict[int, str]:
        self.shares = (held.share.tolist(), held.margin.tolist(), consistent.of, served)
        return self.refused


def replace_in(one: Any, in_full: bool | None = None, **changes: Any) -> Any:
    """Return a dataclass, or a namespace, with changes."""
    if in_full is not None:
        assert in_full
        return one
    return SimpleNamespace(**{**vars(one), **changes}) if isinstance(
        one, SimpleNamespace) else replace(one, **changes)


def run(monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline, choice: Choice = CHOICE,
        sweeps: Any = None, weights: Any = None, **options: Any
        ) -> tuple[IdentificationResult, list[Any]]:
    """Return the result, and the progress."""
    for name, fake in pipeline.fakes.items():
        monkeypatch.setattr(MODULE, name, fake)
    estimator: Any = SimpleNamespace(**{
        'single_joint_motions': False, 'fit': lambda experiment: pipeline.estimate,
        'open_parameters': '', **options})
    robot: Any = SimpleNamespace(
        n=3, joints=ROBOT.joints, row_joints=np.array([0, 1, 2]), row_names=ROBOT.row_names,
        linkage=options.get('linkage'), warnings=('robot',), drive=SimpleNamespace(
            kind=options.get('kind', 'torque')))
    experiment: Any = SimpleNamespace(
        model=SimpleNamespace(reduction=SimpleNamespace(warnings=('reduced',))),
        information=SimpleNamespace(samples=5.0), reversal_weights=weights)
    told: list[Any] = []
    shape = SimpleNamespace(gears=choice.structure.gears, within=lambda extent: ('in', extent))
    picked: Any = replace(choice, structure=shape)  # type: ignore[arg-type]
    gathered: Any = SimpleNamespace(
        robot=robot, experiment=experiment, choice=picked, excerpt='part', sweeps=sweeps,
        extent=SimpleNamespace(quantities='ranges'), record=FitRecord(recordings=('a', 'b')),
        notes=('noted',), findings=('found',), logs='logs',
        release=pipeline.note('release', None))
    return fit_gathered(gathered, estimator, Recipe(), lambda *one: told.append(one),
                        Stopwatch()), told


def test_fits_are_learnt_from_scored_and_recorded_in_order(monkeypatch) -> None:
    steps = Pipeline()
    found, told = run(monkeypatch, steps, weights=np.array([0.5, 0.75, 1.0]))
    assert steps.calls == ['bound', 'feasible', 'held out', 'deflection', 'release', 'one', 'two',
                           'score']
    assert told == [('fitting', 0.9), ('first', 0.91), ('second', pytest.approx(0.93)),
                    ('scoring', 0.95)]
    model: Any = found.model
    consistent = f'consistent {found.experiment.information}'
    assert found.warnings == (
        'remark', 'found', 'robot', 'bare', 'reduced', 'noted', 'estimated', 'feasible',
        consistent, 'sensor', 'deflected', 'one', 'two', 'impossible')
    assert model.warnings == found.warnings and model.not_identified == ()
    assert (model.noise_levels, model.method, model.status) == (
        'levels', 'wls', Status.OK.value)
    assert model.learnt == {'residual': ('model',)} and model.trained == 'ranges'
    record = model.record
    assert (record.recordings, record.samples, record.degrees_of_freedom) == (('a', 'b'), 5, 11.0)
    assert record.weights_near_reversals == (0.5, 0.75, 1.0)
    assert record.std_over_textbook == 2.5  # of 2 / 2 and 4 / 1; the third has no deviation
    assert record.friction_spread == {'dry': 0.25} and record.passbands == (7.0, 7.0, 9.0)
    assert record.cutoffs_tried == (CutoffScore(3.0, -1.5), CutoffScore(7.0, -2.0))
    assert record.left_over == (1.0, 2.0, 3.0) and record.residual == 'residual'
    wide = np.array([1.0, 2.0, 3.0])
    assert record.error_law == [(1.0, [(2.0 * wide).tolist()] * 2, [(5.0 * wide).tolist()] * 2,
                                 [[False, False, True]] * 2)]
    np.testing.assert_allclose(found.held_out.spread, [0.1, 0.2, 0.3])
    more = np.array([0.0, 1.0, 13.0])  # of squared errors 2.25, 9 and 25
    np.testing.assert_allclose(found.held_out.raw, RAW + more)
    np.testing.assert_allclose(found.held_out.fitted, FITTED + more)
    excess = np.sqrt(RAW - FITTED).tolist()
    training: Any = found.training
    assert training.contact == ('contact', pytest.approx(excess))
    assert steps.shares[2:] == (found.experiment.information,
                                f'share of {found.experiment.information}')


def test_baselines_count_reversals_too(monkeypatch) -> None:
    steps = Pipeline(held=replace(BASE, baseline=replace(BASE, fitted=np.array([1.0, 4.0, 5.0]))))
    found, _ = run(monkeypatch, steps)
    base = found.held_out.baseline
    assert base is not None
    np.testing.assert_allclose(base.fitted, [4.0, 4.0, 5.0])
    np.testing.assert_allclose(base.raw, [7.0, 9.0, 16.0])
    assert found.model.record.weights_near_reversals == ()


def test_refused_joints_are_marked_in_the_order_of_the_robot(monkeypatch) -> None:
    found, _ = run(monkeypatch, Pipeline({2: 'noise', 0: 'wrong'}))
    model: Any = found.model
    assert model.not_identified == ('joint_1', 'joint_3')
    assert model.record.refused == {'joint_1': 'wrong', 'joint_3': 'noise'}
    assert found.estimate.status is Status.NOT_IDENTIFIED
    assert found.warnings[:3] == ('remark', 'joint_1: wrong', 'joint_3: noise')
    assert model.status == 'joint_1: wrong; joint_3: noise'
    both = replace(ESTIMATE, status=Status.NOT_EXCITED, not_excited=('q',), remedy='move more')
    found, _ = run(monkeypatch, Pipeline({2: 'noise'}, both))
    assert found.estimate.status is Status.NOT_EXCITED
    assert found.model.status == 'joint_3: noise; move more'
    for remedy, words in (('', Status.NOT_EXCITED.value), ('move more', 'move more')):
        found, _ = run(monkeypatch, Pipeline(estimate=replace(both, remedy=remedy)))
        assert found.model.status == words
    shares = Pipeline(estimate=replace(ESTIMATE, shares=np.array([0.5, 0.6, 0.7])))
    found, _ = run(monkeypatch, shares)
    assert shares.shares[:2] == ([0.5, 0.6, 0.7], [0.0] * 3) and shares.shares[3] is None
    training: Any = found.training
    assert training.contact == ('contact', [0.0] * 3)


@pytest.mark.parametrize(('changes', 'steps'), [
    ({'single_joint_motions': True}, ['bound', 'feasible', 'held out', 'deflection',
                                      'joints alone']),
    ({'sweeps': 'sweeps'}, ['held out', 'deflection', 'sequential', 'bound']),
    ({'gears': True}, ['bound', 'feasible', 'held out', 'deflection', 'hysteresis', 'low-pass'])])
def test_other_fits_take_other_steps(monkeypatch, changes, steps) -> None:
    pipeline, given = Pipeline(), dict(changes)
    choice = CHOICE
    if given.pop('gears', False):
        shape: Any = SimpleNamespace(gears=('gear',))
        choice = replace(CHOICE, structure=shape)
    found, _ = run(monkeypatch, pipeline, choice, **given)
    assert pipeline.calls == [*steps, 'release', 'one', 'two', 'score']
    if given.get('single_joint_motions'):
        assert found.model.control == 'alone' and 'consistent alone' in found.warnings


def test_models_have_noise_levels_where_single_joints_move(monkeypatch) -> None:
    assert run(monkeypatch, Pipeline(motions=()))[0].model.noise_levels is None
    assert run(monkeypatch, Pipeline(), linkage='linkage')[0].model.noise_levels is None


LATE = Lag(0.0021, 1e-4)


@pytest.mark.parametrize(('estimate', 'choice', 'options', 'advice'), [
    (replace(ESTIMATE, not_excited=('q', 'r'), remedy='move more'), CHOICE, {},
     ['not excited by the motion: q, r; move more']),
    (replace(ESTIMATE, not_excited=('q',)), CHOICE, {'open_parameters': 'they are nominal'},
     [f'not excited by the motion: q; they are nominal; {Status.NOT_EXCITED.value}']),
    (ESTIMATE, replace(CHOICE, friction=(
        AxisChoice('1', 'coulomb', 'too slow'), AxisChoice('2', 'dahl'),
        AxisChoice('3', 'stribeck', 'one way'))), {}, [
        'axis 1: too slow; Coulomb friction is used there: move it both ways over most of its '
        'range', 'axis 3: one way; stribeck friction is used there: move it both ways over most '
        'of its range']),
    (ESTIMATE, replace(CHOICE, lag=LATE), {}, [
        f'effort is {LATE.words} than the motion; correcting it does not help']),
    (ESTIMATE, replace(CHOICE, lag=LATE, preprocessing=Preprocessing(7.0, effort_lag=2e-3)), {}, [
        f'effort is {LATE.words} than the motion; corrected']),
    (ESTIMATE, replace(CHOICE, lag=LATE), {'kind': 'position_error'}, [
        f'the servos act {LATE.words} than their commands; correcting it does not help']),
    (ESTIMATE, replace(CHOICE, lag=Lag(1e-4, 1e-3)), {}, [])])
def test_advice_is_on_parameters_axes_and_lags(monkeypatch, estimate, choice, options, advice
                                               ) -> None:
    found, _ = run(monkeypatch, Pipeline(estimate=estimate), choice, **options)
    after = found.warnings.index('feasible') + 1
    assert list(found.warnings[after:found.warnings.index('sensor') - 1]) == advice
