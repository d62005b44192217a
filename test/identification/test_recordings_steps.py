"""identification/recordings.py: excerpts, parts that cannot be used, and what stays in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.identification import recordings
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import (
    CACHED_ROWS,
    Prepared,
    Recordings,
    Unusable,
    accepted_kinds,
    part_of,
)
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Averaging, Preprocessing
from robot_dynid.types import Part, RawLog

ROBOT: Any = 'robot'
PLACE = Part(0.0, 9.0, 0.0, 'long')
MEAN = Averaging('x', 2.0, 0.0, 4, (0.0,), (0.0,))


def log_of(source: str, place: Part | None = None, rows: int = 3) -> RawLog:
    return RawLog(source, ('a',), np.arange(float(rows)), np.zeros((rows, 1)), part=place)


def test_findings_are_accepted_for_all_or_for_single_recordings() -> None:
    recipe = Recipe(accept=('gravity', 'velocity'))
    one = RawLog('x', ('a',), np.zeros(1), np.zeros((1, 1)), accepted=('velocity', 'time_unit'))
    stored: Any = SimpleNamespace(accepted=('clock',))
    logs = Parts((one, stored), accepted=('effort_sign', 'gravity'))
    assert accepted_kinds(recipe, logs) == ('gravity', 'velocity', 'effort_sign', 'time_unit')
    assert accepted_kinds(recipe, [one]) == ('gravity', 'velocity')


@pytest.mark.parametrize(('place', 'kind', 'words'), [
    (None, DataError, 'at rest'),
    (PLACE, Unusable, 'at rest (this part of the recording is omitted)')])
def test_errors_of_parts_are_told_from_those_of_recordings(place, kind, words) -> None:
    with pytest.raises(DataError) as refused, part_of(place):
        raise DataError('at rest')
    assert type(refused.value) is kind and str(refused.value) == words
    with part_of(place):
        pass


@pytest.fixture
def repairs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is repaired, averaged and checked; ``bad`` recordings are refused."""
    asked: list[Any] = []

    def done(kind: str) -> Any:
        def work(robot: Any, log: Any, *more: Any) -> Any:
            asked.append((kind, log.source, *more))
            if 'bad' in log.source:
                raise DataError(f'{log.source}: at rest')
            return SimpleNamespace(source=log.source, notes=('note',), parts=[
                SimpleNamespace(time=log.time), SimpleNamespace(time=log.time[:1])])
        return work

    monkeypatch.setattr(recordings, 'repair', done('repair'))
    monkeypatch.setattr(recordings, 'average', done('average'))
    monkeypatch.setattr(recordings, 'require_channels', lambda robot, part, notes: asked.append(
        ('channels', len(part.time), notes)))
    return asked


def test_recordings_are_repaired_or_averaged_when_they_are_asked_for(repairs) -> None:
    logs = [log_of('a'), log_of('part', PLACE), log_of('c')]
    plain = Recordings(ROBOT, logs, Recipe(rate=50.0))
    assert len(plain) == 3 and repairs == []
    assert plain[1].source == 'part'
    assert repairs == [('repair', 'part', 50.0), ('channels', 3, ('note',)),
                       ('channels', 1, ('note',))]
    repairs.clear()
    assert [one.source for one in plain[::2]] == ['a', 'c']
    assert repairs == [('repair', 'a', 50.0), ('repair', 'c', 50.0)]
    repairs.clear()
    mean = Recordings(ROBOT, logs, Recipe(rate=50.0, period=2.0))
    assert mean[1].source == 'part'
    assert repairs == [('average', 'part', Recipe(period=2.0).periodic, 50.0)]


@pytest.mark.parametrize(('rows', 'sources'), [
    (28, 'abcdefg'), (27, 'aceg'), (14, 'aceg'), (13, 'adg'), (10, 'adg'), (9, 'ae'), (1, 'a')])
def test_excerpts_are_evenly_spaced_recordings(repairs, rows: int, sources: str) -> None:
    """Of a lazy sequence the first one, of four rows, gives the length of all."""
    logs = tuple(log_of(name) for name in 'abcdefg')
    lazy = Recordings(ROBOT, logs, Recipe())
    assert ''.join(one.source for one in lazy.excerpt(rows)) == sources
    counted = Recordings(ROBOT, Parts(tuple(log_of(name, rows=4) for name in 'abcdefg')), Recipe())
    assert ''.join(one.source for one in counted.excerpt(rows)) == sources


def test_excerpts_of_long_recordings_leave_unusable_stretches_out(repairs, monkeypatch) -> None:
    monkeypatch.setattr(Parts, 'cut', True)
    parts: list[RawLog] = [log_of('bad', PLACE), log_of('b', PLACE), log_of('bad too', PLACE)]
    monkeypatch.setattr(Parts, 'excerpt', lambda self, rows: {60_000: parts, 5: parts[2:]}[rows])
    long = Recordings(ROBOT, Parts((log_of('long'),)), Recipe())
    assert [one.source for one in long.excerpt()] == ['b']
    with pytest.raises(Unusable, match=r'^bad too: at rest \(this part of'):
        long.excerpt(5)


class Rows:
    """Stands for samples, of a number, that reference others."""

    def __init__(self, count: int, whole: int | None = None) -> None:
        self.count = count
        self.whole = None if whole is None else Rows(whole)

    def __len__(self) -> int:
        return self.count


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that prepares rows by recording; the string of an error refuses one."""
    def make(rows: list[Any], alone: bool = False, averaging: Any = None,
             places: Any = None) -> tuple[Prepared, list[Any], list[Any]]:
        asked: list[Any] = []
        told: list[Any] = []

        def prepare(robot: Any, one: Any, settings: Any) -> Any:
            asked.append(one.number)
            if isinstance(rows[one.number], str):
                raise DataError(rows[one.number])
            return rows[one.number]

        monkeypatch.setattr(recordings, 'prepare', prepare)
        monkeypatch.setattr(recordings, 'single_joint_motions_of',
                            lambda robot, one, settings: [f'motion {one.number}'])
        monkeypatch.setattr(recordings, 'held_notes', lambda robot, one, motions: (
            f'holds: {motions[0]}',))
        monkeypatch.setattr(recordings, 'Extent', SimpleNamespace(
            of=lambda robot, samples: f'extent {len(samples)}'))
        monkeypatch.setattr(recordings, 'friction_curves', lambda robot, motions, recipe: (
            [SimpleNamespace(summary=f'curve of {one}') for one in motions], ['curves']))
        monkeypatch.setattr(recordings, 'unfiltered', lambda robot, one, lag: (one.number, lag))
        parts: Any = [SimpleNamespace(
            number=k, averaging=(averaging or {}).get(k), place=(places or {}).get(k),
            notes=('same note', f'note {k}')) for k in range(len(rows))]
        return Prepared(ROBOT, parts, Preprocessing(10.0, effort_lag=3e-3),
                        lambda *one: told.append(one), alone), asked, told

    return make


def test_recordings_are_prepared_once_if_they_fit_into_memory(prepared) -> None:
    """A million rows, with those of the recordings they are parts of."""
    assert CACHED_ROWS == 1_000_000
    rows = [Rows(300_000, 200_000), Rows(600_000), Rows(100_000, 400_000), Rows(1)]
    found, asked, told = prepared(rows)
    assert list(found) == rows and asked == [0, 1, 2, 3]
    assert set(found.cache) == {0, 2}
    assert told == [('reducing the recordings', pytest.approx(0.8 + 0.025 * k)) for k in range(4)]
    told.clear()
    assert list(found) == rows and asked[4:] == [1, 3]
    assert told == [('going through the recordings again', 0.9)] * 4


def test_what_is_noted_of_recordings_is_in_order_and_once(prepared) -> None:
    rows = [Rows(3), 'at rest', Rows(4)]
    mean = {2: MEAN, 0: Averaging('y', 3.0, 0.0, 5, (0.0,), (0.0,))}
    found, asked, told = prepared(rows, averaging=mean, places={1: PLACE})
    assert list(found) == [rows[0], rows[2]] and asked == [0, 1, 2]
    notes = ('same note', 'note 0', 'holds: motion 0',
             'at rest (this part of the recording is omitted)', 'note 2', 'holds: motion 2')
    assert found.all_notes == notes
    assert found.all_motions == ('motion 0', 'motion 1', 'motion 2')
    assert found.extents == {0: 'extent 3', 2: 'extent 4'}
    words, record = found.notes_and_record(Recipe())
    assert words == [*notes, 'curves'] and record.averaging == (mean[0], mean[2])
    assert record.friction_curves == ('curve of motion 0', 'curve of motion 1',
                                      'curve of motion 2')
    told.clear()
    raw = found.as_recorded
    assert list(raw.read()) == [(0, 3e-3), (2, 3e-3)]
    assert told == [('going through the recordings again', 0.9)] * 2
    raw.progress('work', 0.5)
    assert told[-1] == ('work', pytest.approx(0.91))
    assert list(found) == [rows[0], rows[2]] and asked == [0, 1, 2]
    alone, _, _ = prepared(rows[:1], alone=True)
    assert list(alone) == rows[:1] and alone.all_notes == ('same note', 'note 0')


def test_recordings_that_cannot_be_used_are_refused(prepared) -> None:
    found, _, _ = prepared(['at rest', 'too short'], places={0: PLACE, 1: PLACE})
    with pytest.raises(Unusable, match=r'^at rest \(this part'):
        list(found)
    whole, _, _ = prepared([Rows(3), 'at rest'])
    with pytest.raises(DataError, match=r'^at rest$'):
        list(whole)
