"""identification/gathered.py: the order of the steps, what each is given, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.identification import gathered
from robot_dynid.identification.by_recording import AVERAGING, ReductionChoices
from robot_dynid.identification.gathered import (
    Gathered,
    Request,
    check_method,
    choose_elastic_joints,
    gather,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import RawLog

ROBOT = load_robot('planar_3r')
ELASTIC = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 2), torque_sensors=(0, 2)))
LOGS = [RawLog(name, ROBOT.joints, np.arange(3.0), np.zeros((3, 3)), None, np.zeros((3, 3)))
        for name in ('a.csv', 'b.csv')]
CHOICE = Choice(Preprocessing(7.0), Structure.uniform(ROBOT, True, 'coulomb', {}))
FIXED = Recipe(friction='coulomb')


@dataclass(frozen=True)
class Reduced:
    """Stands for an experiment: the weights it was reduced with."""

    weights: Any
    as_recorded: Any = None


def estimator_of(**changes: Any) -> Any:
    return SimpleNamespace(**{
        'name': 'own', 'estimates_motion': False, 'single_joint_motions': False,
        'seeks_elastic_joints': False, 'fits_information': True, **changes})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Gathered, list[Any], list[Any]]]:
    """Return a function that gathers, and tells the steps in order and the progress."""
    calls: list[Any] = []
    told: list[Any] = []

    def plausible(robot: Any, logs: Any, accept: Any, examinations: Any) -> Any:
        calls.append(('plausible', accept, examinations))
        return (Parts(logs.recordings[1:]) if examinations else logs), ('finding',)

    def choose(robot: Any, part: Any, recipe: Any, progress: Any, sweeps: Any, kind: Any) -> Any:
        calls.append(('choose', part, sweeps, kind.__name__))
        progress('choose', 0.0)
        progress('choose', 1.0)
        return CHOICE

    def with_cutoff(name: str, cutoff: float) -> Any:
        def step(*given: Any) -> Any:
            calls.append(name)
            choice = next(one for one in given if isinstance(one, Choice))
            return replace(choice, preprocessing=Preprocessing(cutoff, effort_lag=1e-3))
        return step

    def prepared(robot: Any, recordings: Any, settings: Any, progress: Any, alone: bool) -> Any:
        calls.append(('prepared', settings.cutoff, alone))
        progress('prepare', 1.0)
        return SimpleNamespace(notes_and_record=lambda recipe: (['note'], FitRecord(samples=5)),
                               extents={1: 'first', 0: 'second'}, as_recorded='rows', cache={1: 2},
                               robot=robot)

    fakes = {
        'plausible_recordings': plausible, 'choose': choose, 'Prepared': prepared,
        'identify_sweeps': lambda robot, logs, *_: (logs, SimpleNamespace(structure='swept')),
        'Recordings': lambda robot, logs, recipe: SimpleNamespace(
            robot=robot, excerpt=lambda: ['excerpt']),
        'choose_gear_effects': with_cutoff('gears', 8.0),
        'choose_laws_by_estimator': with_cutoff('laws', 9.0),
        'reversal_weights': lambda model, part, settings: ('weights', part, settings.cutoff),
        'Experiment': SimpleNamespace(of=lambda model, rows, weights: Reduced(weights),
                                      about=lambda model, rows, weights: (rows, weights)),
        'Extent': SimpleNamespace(merged=lambda extents: extents),
        'prepare': lambda robot, one, settings: (one, settings.cutoff, settings.decimate),
        'omitted_effects': lambda robot, structure, samples, name: [f'{samples} {name}']}
    for name, fake in fakes.items():
        monkeypatch.setattr(gathered, name, fake)
    monkeypatch.setattr(Parts, 'uncut', lambda self, why: (calls.append(('uncut', why)), self)[1])

    def gather_with(robot: Any = ROBOT, recipe: Recipe = FIXED, logs: Any = None, like: Any = None,
                    recorded: Any = None, **estimator: Any) -> Any:
        calls.clear()
        told.clear()
        found = gather(robot, LOGS if logs is None else logs, Request(
            estimator_of(**estimator), recipe, like, recorded), lambda *one: told.append(one),
            Stopwatch())
        return found, list(calls), list(told)

    return gather_with


FOUND = ('plausible', (), None)
CHOSEN = ('choose', ['excerpt'], 'swept', 'Excerpt')
LIKE = ReductionChoices(CHOICE, np.array([0.5, 0.6, 0.7]))
OMITTED = "[('excerpt', {}, False)] own"
READ = ('reading and repairing the recordings', 0.0)


@pytest.mark.parametrize(('given', 'steps', 'weighted', 'notes', 'shares'), [
    ({}, [FOUND, CHOSEN, ('prepared', 7.0, False)], 7.0, (), [0.0, 1.0, 1.0]),
    ({'recipe': Recipe()}, [FOUND, CHOSEN, ('prepared', 7.0, False)], 7.0, (), [0.0, 1.0, 1.0]),
    ({'estimates_motion': True}, [FOUND, CHOSEN, ('prepared', 7.0, False)], 7.0, (),
     [0.0, 1.0, 1.0]),
    ({'estimates_motion': True, 'recipe': Recipe()},
     [FOUND, CHOSEN, ('prepared', 7.0, False), 'laws', ('prepared', 9.0, False)], 9.0, (),
     [0.0, 0.5, 0.5, 1.0]),
    ({'estimates_motion': True, 'recipe': Recipe(), 'like': LIKE},
     [FOUND, ('prepared', 7.0, False)], None, (), [1.0]),
    ({'robot': ELASTIC}, [FOUND, CHOSEN, 'gears', ('prepared', 8.0, False)], 8.0, (),
     [0.0, 1.0, 1.0]),
    ({'robot': ELASTIC, 'like': LIKE}, [FOUND, ('prepared', 7.0, False)], None, (), [1.0]),
    ({'robot': ELASTIC, 'estimates_motion': True},
     [FOUND, CHOSEN, ('prepared', 7.0, False)], 7.0, (OMITTED.format(7.0),), [0.0, 1.0, 1.0]),
    ({'single_joint_motions': True},
     [FOUND, (*CHOSEN[:3], 'SingleJointExcerpt'), ('prepared', 7.0, True)], None, (),
     [0.0, 1.0, 1.0]),
    ({'recipe': replace(FIXED, period=2.0, accept=('gravity',))},
     [('uncut', AVERAGING), ('plausible', ('gravity',), None), ('uncut', AVERAGING), CHOSEN,
      ('prepared', 7.0, False)], 7.0, (), [0.0, 1.0, 1.0])])
def test_gathering_takes_its_steps_in_order(run, given, steps, weighted, notes, shares) -> None:
    found, calls, told = run(**given)
    assert calls == steps
    assert told[0] == READ and [share for _, share in told[1:]] == shares
    assert isinstance(found.experiment, Reduced) and found.experiment.as_recorded == 'rows'
    if 'like' in given:
        assert found.experiment.weights is LIKE.reversal_weights
    else:
        assert found.experiment.weights == (
            None if weighted is None else ('weights', ['excerpt'], weighted))
    assert found.choice.preprocessing.cutoff == steps[-1][1]
    assert found.notes == ('note', *notes) and found.findings == ('finding',)
    assert found.extent == ('first', 'second') and found.excerpt == ['excerpt']
    assert (found.record.samples, found.record.recordings, found.record.accepted) == (
        5, ('a.csv', 'b.csv'), given.get('recipe', FIXED).accept)
    assert found.sweeps.structure == 'swept' and list(found.logs) == LOGS
    found.release()


def survey_of(log: RawLog) -> Any:
    return SimpleNamespace(recording=log, examination=f'examined {log.source}')


def recorded_by(reduced: list[Any]) -> Any:
    """Return a process that surveys recordings and reduces them, and notes what it is given."""
    def reduce(robot: Any, surveys: Any, like: Any, progress: Any) -> Any:
        reduced.extend([surveys, *like])
        return SimpleNamespace(information='information', extent='extent', record='record',
                               notes=('reduced',))

    return SimpleNamespace(opened=Parts(tuple(LOGS)), reduce=reduce,
                           survey=lambda robot, logs, recipe, progress: [*map(survey_of, LOGS)])


@pytest.mark.parametrize(('given', 'extra', 'cutoff'), [
    ({}, [], 7.0), ({'robot': ELASTIC}, ['gears'], 8.0),
    ({'recipe': Recipe(friction='coulomb', period=2.0)}, [('uncut', AVERAGING)], 7.0)])
def test_information_is_of_the_recordings_that_are_plausible(run, given, extra, cutoff) -> None:
    reduced: list[Any] = []
    found, calls, told = run(recorded=recorded_by(reduced), **given)
    first = ('plausible', (), ['examined a.csv', 'examined b.csv'])
    assert calls == ([first, *extra, CHOSEN] if 'recipe' in given else [first, CHOSEN, *extra])
    assert told[1:] == [('choose', 0.2), ('choose', 0.5)]
    surveys, like, recipe = reduced
    assert [one.recording for one in surveys] == LOGS[1:]
    assert like.choice is found.choice and recipe is given.get('recipe', FIXED)
    assert like.reversal_weights == ('weights', ['excerpt'], cutoff)
    assert found.experiment == ('information', like.reversal_weights)
    assert (found.extent, found.record, found.notes) == ('extent', 'record', ('reduced',))
    assert found.findings == ('finding',) and list(found.logs) == LOGS[1:]


class Lazy(Sequence[RawLog]):
    """Recordings that are read one by one."""

    def __init__(self, count: int = 2) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        return LOGS[index]


def test_recordings_that_cannot_be_gathered_are_refused(run) -> None:
    with pytest.raises(UsageError, match=r'^workers need recordings that are opened together'):
        run(logs=Lazy(), recorded=recorded_by([]))
    assert run(logs=Lazy())[0].record.recordings == ('a.csv', 'b.csv')
    for none in ([], Lazy(0), Parts(())):
        with pytest.raises(UsageError, match=r'^no recording to identify from$'):
            run(logs=none)
    with pytest.raises(UsageError, match=r'^planar_3r: the kind of its effort is not stated: put '
                       r'effort_kind: torque, current, gravity_compensated_torque or'):
        run(robot=replace(ROBOT, drive=replace(ROBOT.drive, kind='')))
    with pytest.raises(UsageError, match='method own needs the samples'):
        run(recorded=recorded_by([]), fits_information=False)


def test_methods_are_refused_that_need_samples() -> None:
    able = ', '.join(name for name, one in ESTIMATORS.items() if one.fits_information)
    three: Any = SimpleNamespace(loops='three')
    with pytest.raises(UsageError) as refused:
        check_method(estimator_of(fits_information=False))
    assert str(refused.value) == (
        f'method own needs the samples of the recordings, which information does not hold: choose '
        f'one of {able}, or give the recordings to identify, without workers')
    with pytest.raises(UsageError, match=r'^loops: three identifies friction and links from'):
        check_method(estimator_of(), three)
    check_method(estimator_of(), Recipe())
    check_method(estimator_of())


def elastic(robot: Any = ELASTIC, joints: Any = None, loops: str = 'joint', **estimator: Any
            ) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the elastic joints that are chosen, and the torque sensors that are left."""
    recipe: Any = SimpleNamespace(elastic_joints=joints, loops=loops)
    drive = choose_elastic_joints(robot, LOGS, estimator_of(**estimator), recipe).drive
    return drive.elastic, drive.torque_sensors


def test_elastic_joints_are_those_of_the_recipe_or_the_robot(monkeypatch) -> None:
    assert elastic() == ((0, 2), (0, 2))
    assert elastic(joints=('joint_3', 'joint_2', 'joint_3')) == ((1, 2), (2,))
    assert elastic(joints=()) == ((), ())
    assert elastic(ROBOT, single_joint_motions=True) == ((), ())
    assert elastic(ROBOT, loops='three') == ((), ())
    motors = np.zeros((4, 3))
    motors[2, 0], motors[:, 1] = np.nan, 0.1
    repaired = SimpleNamespace(parts=[SimpleNamespace(motor_position=motors)], notes=())
    monkeypatch.setattr(gathered, 'repair', lambda robot, log: {'a.csv': repaired}[log.source])
    assert elastic(ROBOT, seeks_elastic_joints=True) == ((1, 2), ())
    assert elastic(seeks_elastic_joints=True) == ((0, 2), (0, 2))
    reasons = ('a.csv: gap', 'a.csv: motor states of joint_1: there are none',
               'a.csv: motor states of joint_2: swapped')
    for parts, notes, reason in (
            ([SimpleNamespace(motor_position=np.full((4, 3), np.nan))], reasons, reasons[1]),
            ([SimpleNamespace(motor_position=None)], reasons[:1],
             'a.csv: there are no motor states'), ([], (), 'a.csv: there are no motor states')):
        repaired = SimpleNamespace(parts=parts, notes=notes)
        with pytest.raises(DataError) as refused:
            elastic(ROBOT, seeks_elastic_joints=True)
        assert str(refused.value) == (
            f'{reason}; the method elastic needs the positions of motors and links: record the '
            'topic motor_states (columns motor_position.<joint>)')


def test_elastic_joints_are_refused_with_what_cannot_have_them() -> None:
    compensated = replace(ELASTIC, drive=replace(ELASTIC.drive, kind='gravity_compensated_torque'))
    assert elastic(compensated.with_gravity(np.zeros(3))) == ((0, 2), (0, 2))
    assert elastic(compensated, joints=()) == ((), ())
    for given, words in (
            ({'joints': (), 'seeks_elastic_joints': True},
             'method own with no elastic joints: name some in elastic_joints'),
            ({'single_joint_motions': True}, 'method own is for rigid joints: choose another, or '
             'give the recipe elastic_joints: []'),
            ({'loops': 'three'}, 'loops: three learns from the deflection what elastic joints '
             'model: omit one of them (elastic_joints: [])'),
            ({'robot': compensated}, 'elastic joints: gravity deflects gears, but effort_kind '
             'gravity_compensated_torque excludes it from the effort: record the whole effort, or '
             'give the recipe elastic_joints: []')):
        with pytest.raises(UsageError) as refused:
            elastic(**given)
        assert str(refused.value) == words
