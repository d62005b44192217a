"""identification/fit.py: what is fitted in turn, when a fit is replaced, and what is warned of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from motions import lively, torque_model, truth_of

from robot_dynid.effects import JointFriction, RotorInertia
from robot_dynid.effects.counterbalance import Spring
from robot_dynid.errors import DataError, MissingDependency, UsageError
from robot_dynid.estimation import ESTIMATORS, Feasible
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification import fit
from robot_dynid.identification.fit import (
    check_sequence,
    choose_feasible,
    control_parameters,
    fit_deflection,
    held_out_in,
    identify_sweeps,
    sensor_warnings,
    use_sequential_values,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Unusable
from robot_dynid.identification.residual_fit import JointFit, ResidualFitted
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identified.record import DeflectionRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog

ROBOT = load_robot('planar_3r')
NONE: Any = None


def names_of(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def test_baseline_has_nominal_links_and_fits_the_rest() -> None:
    model = torque_model('planar_3r')
    truth = truth_of(model)
    clean = lively(model, 600)
    assert clean.effort is not None
    found = control_parameters(model, Experiment.of(model, [clean]).information)
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-9)
    # of other links the rest takes up what it can
    heavier = model.reduction.base([value * (1.5 if name.startswith('m') else 1.0) for name, value
                                    in zip(model.reduction.standard,
                                           model.reduction.standard_values(truth), strict=True)])
    effort = model.effort(clean, heavier)
    other = control_parameters(model, Experiment.of(model, [replace(
        clean, effort=effort, measured=effort)]).information)
    links = [name[0] in 'mI' and not name.startswith('Ia') for name in model.reduction.names]
    changed = ~np.isclose(other, truth, rtol=1e-3)
    assert changed.any() and not changed[[one and name.startswith('m') for one, name in zip(
        links, model.reduction.names, strict=True)]].any()


def test_loops_in_turn_need_a_method_for_them() -> None:
    three: Any = names_of(loops='three')
    able = ' or '.join(name for name, one in ESTIMATORS.items() if one.sequential)
    with pytest.raises(UsageError) as refused:
        check_sequence(three, ESTIMATORS['ols'] if not ESTIMATORS['ols'].sequential
                       else ESTIMATORS['gls'])
    assert str(refused.value).startswith(f'loops: three solves the links by {able}, not by ')
    check_sequence(three, next(one for one in ESTIMATORS.values() if one.sequential))
    check_sequence(Recipe(), ESTIMATORS['gls'])


LOGS = [RawLog(name, ROBOT.joints, np.arange(3.0), np.zeros((3, 3))) for name in 'abcd']


def test_sweeps_give_friction_and_the_other_recordings_the_links(monkeypatch) -> None:
    """A recording of which a part is unusable counts by the rest."""
    asked: list[Any] = []

    def sweeps(robot: Any, log: Any, recipe: Any) -> Any:
        if log.source == 'c':
            raise Unusable('at rest')
        return [f'{log.source}1', f'{log.source}2'], 4.0 if log.source in 'ad' else 9.0

    def step(robot: Any, motions: Any, recipe: Any) -> Any:
        asked.append(motions)
        return 'friction'

    monkeypatch.setattr(fit, 'sweep_motions', sweeps)
    monkeypatch.setattr(fit, 'has_sweeps', lambda single, seconds: seconds == 4.0)
    monkeypatch.setattr(fit, 'friction_step', step)
    watch = Stopwatch(iter([1.0, 3.5, 4.0, 4.5]).__next__)
    three: Any = names_of(loops='three')
    for logs in (LOGS, Parts(tuple(LOGS))):
        rest, found = identify_sweeps(ROBOT, logs, three, watch)
        assert [log.source for log in rest] == ['b', 'c'] and found == 'friction'
    assert asked == [['a1', 'a2', 'd1', 'd2']] * 2
    assert watch.seconds == {'friction': 3.0}
    assert identify_sweeps(ROBOT, LOGS, Recipe(), watch) == (LOGS, None)
    with pytest.raises(DataError, match=r'^loops: three needs sweeps and a recording in which all '
                       r'joints move together, .* add it; if one recording has both, name two'):
        identify_sweeps(ROBOT, LOGS[:1], three, watch)


@pytest.mark.parametrize('first', [None, 'sweeps'])
def test_held_out_errors_are_those_of_the_fit_and_of_the_baseline(monkeypatch, first) -> None:
    @dataclass(frozen=True)
    class Held:
        """Stands for held-out errors, by the values of some cells."""

        values: Any
        baseline: Any = None

    def in_turn(model: Any, steps: Any, watch: Any, estimator: Any) -> Any:
        assert (model, steps, estimator) == ('model', 'sweeps', method)
        return lambda whole, left, chosen, values: (whole, left, chosen, values)

    monkeypatch.setattr(fit, 'held_out', lambda information, fit: Held(fit([2, 5])))
    monkeypatch.setattr(fit, 'SequentialFit', names_of(of=in_turn))
    monkeypatch.setattr(fit, 'control_parameters', lambda model, part: (model, part))
    method: Any = names_of(fit_to_batches=lambda experiment, estimate: (
        lambda chosen: (estimate, chosen)))
    experiment: Any = names_of(model='model', by_motion='cells', information=names_of(
        distinct=names_of(subset=lambda chosen: f'cells {chosen}')))
    found: Any = held_out_in(experiment, method, NONE, first)
    assert found.values == ((None, [2, 5]) if first is None else ('cells', 'cells', [2, 5], None))
    assert found.baseline.values == ('model', 'cells [2, 5]')


NEEDED = 'residual gmr needs motor states in every recording (topic motor_states, columns ' \
    'motor_position.<joint>), and another method than staged or latent; the model has no residual'


@pytest.mark.parametrize(('residual', 'changes', 'kind', 'words'), [
    ('auto', {}, 'auto', ()), ('none', {}, None, ()), ('gmr', {}, 'gmr', (NEEDED,)),
    ('gmr', {'gears': ('gear',)}, None, (NEEDED,)), ('auto', {'gears': ('gear',)}, None, ()),
    ('gmr', {'single': True}, None, (NEEDED,)), ('gmr', {'motion': True}, None, (NEEDED,)),
    ('gmr', {'found': ResidualFitted(warnings=('few',))}, 'gmr', ('few',)),
    ('gmr', {'found': ResidualFitted((NONE, 'm'))}, 'gmr', ()),  # type: ignore[arg-type]
    ('none', {'first': 'sweeps'}, 'none', ()), ('auto', {'first': 'sweeps'}, 'auto', ())])
def test_residual_models_are_fitted_where_the_recipe_and_the_method_allow(
    monkeypatch, residual, changes, kind, words
) -> None:
    asked: list[Any] = []
    first = changes.get('first')

    def residuals(experiment: Any, kind: Any, physics: Any, watch: Any) -> Any:
        assert physics == 'in turn' if first else isinstance(physics, JointFit)
        asked.append(kind)
        watch.seconds['links'] = 2.5
        return changes.get('found', ResidualFitted(values=np.ones(2)) if first else None)

    monkeypatch.setattr(fit, 'fit_residual', residuals)
    monkeypatch.setattr(fit, 'SequentialFit', names_of(of=lambda *given: 'in turn'))
    estimator: Any = names_of(single_joint_motions=changes.get('single', False),
                              estimates_motion=changes.get('motion', False))
    experiment: Any = names_of(model=names_of(gears=changes.get('gears', ())))
    found = fit_deflection(experiment, (estimator, NONE), Recipe(residual=residual), first,
                           Stopwatch(None, {'friction': 1.5}))
    assert asked == ([] if kind is None else [kind]) and found.warnings == words
    if first is None:
        assert found.values is None and found.record is None
        return
    assert found.record == DeflectionRecord(loops='three', seconds={
        'friction': 1.5, 'links': 2.5, 'residual': 0.0})
    assert found.values is not None
    assert use_sequential_values(Estimate(np.zeros(2)), found).values is found.values  # type: ignore
    own: Any = Estimate(np.zeros(2))
    assert use_sequential_values(own, ResidualFitted()) is own


@dataclass(frozen=True)
class Estimate:
    """Stands for an estimate."""

    values: FloatArray
    std: Any = None
    warnings: tuple[str, ...] = ('own',)
    not_excited: tuple[str, ...] = ()
    method: str = 'wls'


#: residuals [N m] of both fits, 10, 30 and 20 % apart
FREE, FEASIBLE = np.array([1.0, 2.0, 4.0]), np.array([1.1, 2.6, 4.8])
NOTE = '{}: the model has physically consistent parameters (method feasible), whose residuals ' \
    'are 20.0 % larger in the median of the joints, 30.0 % at most (joint_2)'


@pytest.mark.parametrize(('changes', 'words'), [
    ({}, None), ({'method': 'gls', 'where': 'at rest'}, None),
    ({'where': 'at 3 of 1000 poses'},
     'the mass matrix of wls is not positive definite at 3 of 1000 poses'),
    ({'where': 'there', 'method': 'elastic'},
     'the mass matrix of elastic is not positive definite there'),
    ({'worse': {'joint_1': (3.0, 2.5), 'joint_3': (1.2345, 1.1)}},
     'held-out errors of wls exceed those of nominal links with fitted friction [N m]: joint_1 '
     '3, not 2.5, joint_3 1.23, not 1.1'),
    ({'springs': (0, 2)}, 'joint_1, joint_3: the efforts hardly separate the {what} from gravity; '
     'the nominal links do'),
    ({'springs': ()}, None),
    ({'offsets': ('f03', 'f01', 'f02')},
     'f01, f03: the motion does not separate an offset of the effort from gravity, and the values '
     'are without one')])
def test_fits_that_are_no_body_are_replaced_near_the_nominal_links(
    monkeypatch, changes, words
) -> None:
    key, kind = next((key, kind) for key, kind in fit.CHOSEN.items() if kind.like_weight)
    structure = Structure.uniform(ROBOT, True, 'coulomb', {})
    if 'springs' in changes:
        structure = replace(structure, chosen={key: tuple(
            Spring(joint, 0.4, 0.6) for joint in changes['springs'])})
    monkeypatch.setattr(fit, 'IdentifiedModel', lambda *given: given[3])
    monkeypatch.setattr(fit, 'indefinite_at', lambda model: changes.get('where', ''))
    monkeypatch.setattr(fit, 'worse_than_nominal', lambda experiment: changes.get('worse', {}))
    monkeypatch.setattr(fit, 'open_offsets', lambda experiment: changes.get('offsets', ()))
    monkeypatch.setattr(fit, 'residual_noise', lambda information, values: values)
    better = Estimate(FEASIBLE, warnings=('solver',), method='feasible')
    monkeypatch.setattr(fit, 'Feasible', lambda: names_of(fit=lambda experiment: better))
    experiment: Any = names_of(information=None, model=names_of(robot=ROBOT, reduction=None))
    estimator = ESTIMATORS[changes.get('method', 'wls')]
    own: Any = Estimate(FREE, not_excited=('f03', 'Ia1', 'f01'))
    choice = Choice(Preprocessing(10.0), structure)
    method, found = choose_feasible(estimator, own, experiment, choice)
    if words is None:
        assert (method, found) == (estimator, own)
        return
    assert method is not estimator and found.values is FEASIBLE
    assert found.warnings == (NOTE.format(words.format(what=kind.what)), 'solver')

    def missing() -> Any:
        raise MissingDependency('no solver')

    monkeypatch.setattr(fit, 'Feasible', lambda: names_of(fit=lambda experiment: missing()))
    method, found = choose_feasible(estimator, own, experiment, choice)
    assert method is estimator and found == replace(own, warnings=('own', 'no solver'))
    assert Feasible().name == 'feasible'


class Motors(RotorInertia):
    """Rotors of three joints."""

    names = ('Ia1', 'Ia2')

    def __init__(self) -> None:
        """Need no robot."""


class Friction(JointFriction):
    """Friction with an offset."""

    names = ('fv1', 'f01', 'fc1')

    def __init__(self) -> None:
        """Need no robot."""


@pytest.mark.parametrize(('without', 'words'), [
    ((1.0 / 0.975**2, 1.0, 1.0), []),
    ((1.0 / 0.985**2, 1.0 / 0.99**2, 1.0), [
        'the effort of no joint shows rotors or friction (they lower held-out errors by at most '
        '1.5 %), as if from torque sensors behind the gears: in that case put sensor: link into '
        'the robot YAML'])])
def test_efforts_of_motors_show_rotors_or_friction(monkeypatch, without, words) -> None:
    """Offsets are no sign of motors."""
    monkeypatch.setattr(fit, 'held_out', lambda information: names_of(
        raw=np.array(without) if information == [0, 4] else None))
    blocks = (names_of(names=('m1',)), Motors(), Friction())
    information = names_of(names=('m1', 'Ia1', 'Ia2', 'fv1', 'f01', 'fc1'), about=lambda one: one)
    experiment: Any = names_of(information=information,
                               model=names_of(robot=ROBOT, blocks=blocks))
    held: Any = names_of(raw=np.ones(3))
    assert sensor_warnings(experiment, held, [], NONE) == words
    information.names = ('m1', 'f01')
    assert sensor_warnings(experiment, held, [], NONE) == []
    elastic = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0,)))
    experiment.model.robot = elastic
    assert sensor_warnings(experiment, held, [], NONE) == []


@pytest.mark.parametrize(('lower', 'words'), [
    ((0.03, 0.01, 0.019), []),
    ((0.03, 0.01, 0.041), [
        'the effort shows rotors (they lower held-out errors by [%]: joint_1 3, joint_3 4), as if '
        'from motors, not from torque sensors behind the gears: in that case put sensor: motor '
        'into the robot YAML'])])
def test_efforts_behind_gears_show_no_rotors(monkeypatch, lower, words) -> None:
    robot = replace(ROBOT, drive=replace(ROBOT.drive, sensor='link'))
    monkeypatch.setattr(fit, 'prepare', lambda robot, one, settings: (one, settings.cutoff))
    monkeypatch.setattr(fit, 'Experiment', names_of(of=lambda model, samples: names_of(
        information=('Ia1' in model.reduction.standard, samples))))
    monkeypatch.setattr(fit, 'held_out', lambda information: names_of(raw={
        True: (1.0 - np.array(lower))**2, False: np.ones(3)}[information[0]]))
    choice = Choice(Preprocessing(10.0), Structure.uniform(robot, False, 'coulomb', {}))
    experiment: Any = names_of(model=names_of(robot=robot))
    assert sensor_warnings(experiment, NONE, [NONE], choice) == words
