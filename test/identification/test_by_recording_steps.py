"""identification/by_recording.py: sums of information, what counts twice, and their progress."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.identification.by_recording import (
    AVERAGING,
    MERGED_ROWS,
    Recorded,
    RecordedInformation,
    Reduced,
    ReductionChoices,
    Survey,
    check_alike,
    check_parts,
    contents,
    merge_information,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Unusable
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import RawLog

MODULE: Any = importlib.import_module('robot_dynid.identification.by_recording')
ROBOT = load_robot('planar_3r')
CHOICE = Choice(Preprocessing(7.0), Structure.uniform(ROBOT, True, 'coulomb', {}))
WEIGHTS = np.array([0.5, 0.75, 1.0])


class Information:
    """Stands for information: the numbers of what it is the sum of."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = numbers

    @property
    def batches(self) -> Any:
        """A batch of two factors of each."""
        return [SimpleNamespace(recording=k, factors=(np.array([one]), np.array([2.0])))
                for k, one in enumerate(self.numbers)]

    def subset(self, batches: Any) -> Any:
        return ('subset', batches)


def log_of(source: str, rows: int = 1, **more: Any) -> RawLog:
    return RawLog(source, ROBOT.joints, np.arange(float(rows)), np.zeros((rows, 3)), **more)


def part_of(name: str, number: float, digest: str = '', rows: int = 1, **more: Any
            ) -> RecordedInformation:
    """Return the information of a recording."""
    extent: Any = name.upper()
    motion: Any = f'motion {name}'
    information: Any = Information(number)
    record = FitRecord(
        recordings=(name,), accepted=('gravity', f'kind {name}'), recording_digests=(digest,),
        averaging=(f'mean {name}',), friction_curves=(f'curve {name}',))  # type: ignore
    return replace(RecordedInformation(
        ROBOT, CHOICE, information, WEIGHTS, extent, record, (f'note {name}',),
        (log_of(name, rows),), (motion,)), **more)


@pytest.fixture(autouse=True)
def _sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, 'add_recording', lambda total, one: Information(
        *(total.numbers if total else ()), *one.numbers))
    monkeypatch.setattr(MODULE, 'Extent', SimpleNamespace(merged='+'.join))


def test_information_adds_up_in_order() -> None:
    found: Any = merge_information(part_of(name, k) for k, name in enumerate('abc'))
    assert found.information.numbers == (0, 1, 2) and found.extent == 'A+B+C'
    record = found.record
    assert record.recordings == ('a', 'b', 'c')
    assert record.accepted == ('gravity', 'kind a', 'kind b', 'kind c')
    assert record.recording_digests == ('', '', '')
    assert record.averaging == ('mean a', 'mean b', 'mean c')
    assert record.friction_curves == ('curve a', 'curve b', 'curve c')
    assert found.notes == ('note a', 'note b', 'note c')
    assert found.motions == ('motion a', 'motion b', 'motion c')
    assert [log.source for log in found.excerpt] == ['a', 'b', 'c']
    pair: Any = part_of('x', 7.0).merge(part_of('y', 8.0))
    assert pair.information.numbers == (7.0, 8.0) and pair.like.choice is CHOICE
    assert pair.like.reversal_weights is WEIGHTS
    with pytest.raises(UsageError, match=r'^no information to identify from$'):
        merge_information([])


@pytest.mark.parametrize(('rows', 'sources'), [
    (100_000, 'ai'), (100_001, 'a'), (66_666, 'aei'), (66_667, 'ai')])
def test_excerpts_of_sums_are_bounded_and_evenly_spread(rows: int, sources: str) -> None:
    """Whenever they are too many, every second one is dropped, also of those to come."""
    assert MERGED_ROWS == 200_000
    names = 'abcdefghi' if rows != 100_001 else 'abcd'
    found = merge_information([part_of(name, k, rows=rows) for k, name in enumerate(names)])
    assert ''.join(log.source for log in found.excerpt) == sources


def test_information_must_belong_together() -> None:
    first = part_of('a', 1.0)
    check_alike(first, part_of('b', 2.0))
    check_alike(replace(first, reversal_weights=None), part_of('b', 2.0, reversal_weights=None))
    robot = replace(ROBOT, name='other')
    wrong = 'the information of b was created with other filters or friction laws: create it ' \
        'again with --like and the other information'
    for changes, words in (
            ({'robot': robot}, 'the information of b belongs to another robot (other, not '
             'planar_3r, or one with other parameters)'),
            ({'choice': replace(CHOICE, preprocessing=Preprocessing(8.0))}, wrong),
            ({'choice': replace(CHOICE, structure=Structure.uniform(
                ROBOT, False, 'coulomb', {}))}, wrong),
            ({'reversal_weights': None}, wrong), ({'reversal_weights': 1.1 * WEIGHTS}, wrong)):
        part = part_of('b', 2.0, **changes)
        for refuse in (lambda part=part: check_alike(first, part),
                       lambda part=part: [*check_parts([first, part])]):
            with pytest.raises(UsageError) as refused:
                refuse()
            assert str(refused.value) == words


def test_recordings_count_once_by_their_files_and_equations() -> None:
    parts = [part_of('a', 1.0, 'A'), part_of('b', 2.0, 'B'), part_of('c', 3.0), part_of('d', 4.0)]
    assert list(check_parts(parts)) == parts
    with pytest.raises(UsageError) as refused:
        list(check_parts([*parts, part_of('e', 5.0, 'B')]))
    assert str(refused.value) == ('e counts twice: it is also in the information of b: omit one '
                                  'of them')
    with pytest.raises(UsageError) as refused:
        list(check_parts([*parts, part_of('e', 3.0, 'E')]))
    assert str(refused.value) == (
        'e: a recording counts twice: under another name or in another file it is also in the '
        'information of c: omit one of them')
    one: Any = Information(1.0, 2.0, 1.0)
    first, second, third = contents(one)
    assert first == third != second and len(first) == 64


def recorded_by(results: Any) -> tuple[Recorded, list[Any]]:
    """Return workers with prescribed results, and what they are asked."""
    asked: list[Any] = []

    def work(task: Any, items: Any) -> Iterator[Any]:
        asked.append((task, list(items)))
        yield from results

    workers: Any = SimpleNamespace(results=work)
    return Recorded(workers), asked


def survey_of(log: RawLog, digest: str = '') -> Survey:
    examination: Any = f'examined {log.source}'
    return Survey(log, examination, digest)


@pytest.mark.parametrize('period', [None, 2.0])
def test_surveys_open_recordings_and_tell_how_many(period: float | None) -> None:
    logs = [log_of('a'), log_of('b')]
    surveys = [survey_of(log_of(f'opened {log.source}')) for log in logs]
    found, asked = recorded_by(surveys)
    told: list[Any] = []
    given = Parts(tuple(logs), accepted=('gravity',))
    assert found.survey(ROBOT, given, Recipe(period=period), lambda *one: told.append(one)
                        ) == surveys
    ((task, items),) = asked
    assert items == logs and task.whole is (period is not None) and task.robot is ROBOT
    assert task.cut.recordings == () and task.cut.accepted == ('gravity',)
    assert [log.source for log in found.opened.recordings] == ['opened a', 'opened b']
    assert found.opened.accepted == ('gravity',)
    assert told == [('reading and examining: 1 of 2 recordings', 0.1),
                    ('reading and examining: 2 of 2 recordings', 0.2)]


LIKE = ReductionChoices(CHOICE, WEIGHTS)


def test_recordings_are_reduced_by_file_and_summed_up(monkeypatch) -> None:
    """Windows of a file together; the notes of unusable ones remain."""
    monkeypatch.setattr(MODULE, 'friction_curves', lambda robot, motions, recipe: (
        [SimpleNamespace(summary=f'summary of {one}') for one in motions], ['more']))
    error = DataError('at rest')
    results = [Reduced(part_of('a', 1.0), ('first',), taken=True),
               Reduced(None, ('second',), error, wrong='old'),
               Reduced(part_of('c', 3.0), ('third',), taken=True, wrong='damaged')]
    found, asked = recorded_by(results)
    found.opened = Parts((log_of('all'),), accepted=('gravity',))
    surveys = [survey_of(log_of(name), digest) for name, digest in (
        ('a.csv[0:1]', 'A'), ('a.csv[2:3]', 'X'), ('b.csv', 'B'), ('c.csv', 'C'))]
    told: list[Any] = []
    whole: Any = found.reduce(ROBOT, surveys, (LIKE, Recipe()), lambda *one: told.append(one))
    ((task, groups),) = asked
    assert [(one.source, one.digest) for one in groups] == [
        ('a.csv[0:1], a.csv[2:3]', 'A'), ('b.csv', 'B'), ('c.csv', 'C')]
    assert (task.like, task.keeper) == (LIKE, None) and task.cut.accepted == ('gravity',)
    assert whole.information.numbers == (1.0, 3.0) and whole.motions == ()
    assert whole.notes == ('first', 'second', 'third', 'more')
    assert whole.record.friction_curves == ('summary of motion a', 'summary of motion c')
    assert (found.taken, found.redone, found.wrong) == (2, 2, 'old')
    assert told == [(f'reducing: {k} of 3 recordings', pytest.approx(0.5 + 0.4 * k / 3.0))
                    for k in (1, 2, 3)]
    none, _ = recorded_by([replace(results[1], error=DataError(name)) for name in 'xyz'])
    with pytest.raises(DataError, match=r'^x$'):
        none.reduce(ROBOT, surveys, (LIKE, Recipe()), lambda *_: None)
    twice, _ = recorded_by(results)
    twice.taken, twice.redone, twice.wrong = 5, 6, 'before'
    logs = Parts((log_of('a'), log_of('b'), log_of('c')))
    told.clear()
    assert list(twice.each(ROBOT, logs, (LIKE, Recipe(period=2.0)), lambda *one: told.append(one))
                ) == results
    assert (twice.taken, twice.redone, twice.wrong) == (2, 2, 'old')
    assert told[0] == ('reducing: 1 of 3 recordings', pytest.approx(1.0 / 3.0))


def test_information_is_stored_under_what_it_depends_on() -> None:
    def key(robot: Any = ROBOT, choice: Choice = CHOICE, weights: Any = WEIGHTS,
            recipe: Recipe | None = None) -> str:
        found, asked = recorded_by([])
        list(found.each(robot, Parts(()), (ReductionChoices(choice, weights), recipe or Recipe()),
                        lambda *_: None))
        return str(asked[0][0].reduce.key)

    keys = [key(), key(replace(ROBOT, name='other')), key(weights=None),
            key(weights=1.1 * WEIGHTS), key(choice=replace(
                CHOICE, preprocessing=Preprocessing(8.0))), key(recipe=Recipe(rate=50.0)),
            key(recipe=Recipe(period=2.0))]
    assert len(set(keys)) == len(keys) and key(recipe=Recipe(cutoff=3.0)) == keys[0]


class Keeper:
    """A store of one recording, of file B, and of what was stored."""

    def __init__(self) -> None:
        self.saved: list[Any] = []

    def load(self, source: str, digest: str, key: str) -> Any:
        if digest == 'B':
            return part_of('stored', 5.0), ''
        return None, f'{source} damaged' if digest == 'C' else ''

    def save(self, made: RecordedInformation, source: str, digest: str) -> None:
        self.saved.append((made.record.recordings, source, digest))


class Prepared:
    """Stands for prepared recordings, of which ``bad`` ones are unusable."""

    all_notes, all_motions = ('prepared',), ('moves',)

    def __init__(self, robot: Any, recordings: Any, settings: Any, progress: Any) -> None:
        assert settings == CHOICE.preprocessing and robot.n == 3
        self.logs = recordings.logs
        self.averaged = {1: 'mean 1', 0: 'mean 0'}
        self.extents = {log.source: log.source.upper() for log in self.logs.recordings}


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is examined or read in one piece, by workers in this process."""
    asked: list[Any] = []

    def each(model: Any, prepared: Any, weights: Any) -> Iterator[Information]:
        assert weights is WEIGHTS
        for log in prepared.logs.recordings:
            if 'bad' in log.source:
                raise Unusable(f'{log.source} at rest')
            yield Information(float(ord(log.source[0])))

    monkeypatch.setattr(MODULE, 'examine_recording', lambda robot, source, logs: asked.append(
        (source, logs.accepted)) or f'examined {source}')
    monkeypatch.setattr(MODULE, 'Prepared', Prepared)
    monkeypatch.setattr(MODULE, 'friction_curves', lambda robot, motions, recipe: ([], []))
    monkeypatch.setattr(MODULE, 'by_recording', each)
    monkeypatch.setattr(MODULE, 'plausible_recordings', lambda robot, logs, accept, given: (
        logs, tuple(map(str, given))))
    monkeypatch.setattr(Parts, 'uncut', lambda self, why: (asked.append(why), self)[1])
    return asked


def in_process(keeper: Any = None) -> Recorded:
    workers: Any = SimpleNamespace(results=map)
    return Recorded(workers, keeper)


@pytest.mark.parametrize('period', [None, 2.0])
def test_recordings_are_opened_and_examined(work, period: float | None) -> None:
    stored: Any = SimpleNamespace(opened=lambda: (log_of('opened'), 'D'))
    logs = Parts((log_of('a'), stored), accepted=('gravity',))
    found = in_process().survey(ROBOT, logs, Recipe(period=period), lambda *_: None)
    assert [(one.recording.source, one.examination, one.digest) for one in found] == [
        ('a', 'examined a', ''), ('opened', 'examined opened', 'D')]
    uncut = [] if period is None else [AVERAGING]
    assert work == [*uncut, ('a', ('gravity',)), *uncut, ('opened', ('gravity',))]


@pytest.mark.parametrize('period', [None, 2.0])
def test_stored_information_is_used_and_other_is_stored(work, period: float | None) -> None:
    keeper = Keeper()
    found = in_process(keeper)
    surveys = [survey_of(log_of(name), digest) for name, digest in (
        ('a[0:1]', 'A'), ('a[2:3]', 'X'), ('b', 'B'), ('c', 'C'), ('d', ''), ('bad', 'E'))]
    whole: Any = found.reduce(ROBOT, surveys, (LIKE, Recipe(period=period, accept=('clock',))),
                              lambda *_: None)
    assert whole.information.numbers == (97.0, 97.0, 5.0, 99.0, 100.0)
    assert whole.extent == 'A[0:1]+A[2:3]+STORED+C+D'
    record = whole.record
    assert record.recordings == ('a[0:1]', 'a[2:3]', 'b', 'c', 'd')
    assert record.recording_digests == ('A', 'A', '', 'C', '')
    assert record.accepted == ('clock', 'gravity', 'kind stored')
    assert record.averaging[:2] == ('mean 1', 'mean 0')
    assert keeper.saved == [(('a[0:1]', 'a[2:3]'), 'a[0:1], a[2:3]', 'A'), (('c',), 'c', 'C')]
    assert whole.notes[:3] == ('prepared', 'note stored', 'prepared')
    assert (found.taken, found.redone, found.wrong) == (1, 1, 'c damaged')
    assert work == ([] if period is None else [AVERAGING] * 4)


def test_recordings_are_reduced_alone_with_what_refuses_them(work) -> None:
    late = replace(log_of('late'), epoch=100.0, time=np.array([7.0]))
    logs = Parts((log_of('a'), log_of('bad'), late))
    first, second, third = in_process().each(ROBOT, logs, (LIKE, Recipe()), lambda *_: None)
    assert first.notes == ('examined a', 'prepared') and first.began is None
    assert first.information is not None and first.information.motions == ('moves',)
    assert second.information is None and str(second.error) == 'bad at rest'
    assert third.began == 107.0 and not third.taken
