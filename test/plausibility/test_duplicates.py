"""plausibility/content.py: no sample counts twice, whatever its recording is called and whenever
it was taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError
from robot_dynid.files import file_digest
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import read_csv, write_csv
from robot_dynid.plausibility.content import digests, shared_share
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.finding import Severity
from robot_dynid.plausibility.gate import Examination, plausible_recordings, verdict
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog, take
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
RECIPE = Recipe(cutoff=10.0, friction='coulomb', ramp_width=0.01, effort_lag=0.0, ripple='none')


@pytest.fixture(scope='module')
def log() -> RawLog:
    return recording(ROBOT, 1)


def later(log: RawLog, seconds: float = 1234.5) -> RawLog:
    """Return the samples under another name, at another time."""
    return replace(log, source='another name', time=log.time + seconds)


def test_ten_copies_are_one_recording(log: RawLog) -> None:
    copies = [replace(log, source=f'copy {i}') for i in range(9)]
    found = identify(ROBOT, [log, *copies], recipe=RECIPE)
    once = identify(ROBOT, [log], recipe=RECIPE)
    assert np.array_equal(found.estimate.std, once.estimate.std)
    assert found.experiment.information.samples == once.experiment.information.samples
    told = [w for w in found.warnings if 'copy' in w and 'duplicate' in w]
    assert len(told) == 9 and all('seed 1' in w and 'is omitted' in w for w in told)
    assert found.model.record.recordings == ('seed 1',)
    both = validate(found.model, [log, later(log)])
    assert len(both.traces) == 1 and 'another name' in both.warnings[0]


def test_digests_are_those_of_the_recordings_that_were_used(log: RawLog, tmp_path: Path) -> None:
    files = [f'{tmp_path}/{name}' for name in ('a.csv', 'copy.csv', './b.csv')]
    for file, one in zip(files, (log, later(log), recording(ROBOT, 2)), strict=True):
        write_csv(file, one)
    recipe = tmp_path / 'recipe.yaml'
    recipe.write_text('{cutoff: 10, friction: coulomb, ramp_width: 0.01, effort_lag: 0, '
                      'ripple: none}')
    out = str(tmp_path / 'm.yaml')
    assert main(['identify', *files, '--robot', 'planar_3r', '--recipe', str(recipe),
                 '--out', out]) == 0
    record = IdentifiedModel.load(out).record
    assert record.recordings == (files[0], str(tmp_path / 'b.csv'))
    assert record.recording_digests == (file_digest(files[0]), file_digest(files[2]))


def test_a_copy_is_known_in_another_format(log: RawLog, tmp_path: Path) -> None:
    rounded = replace(log, position=np.round(log.position, 6), effort=np.round(log.effort, 5),
                      velocity=None)
    write_csv(tmp_path / 'b.csv', rounded)
    kept, warnings = plausible_recordings(ROBOT, [log, read_csv(tmp_path / 'b.csv', ROBOT.joints)])
    assert len(kept) == 1 and 'b.csv: duplicate' in warnings[0]


@pytest.mark.parametrize('rows', [slice(0, 400), slice(2000, 3000), slice(3500, 4000)])
def test_a_part_of_another_recording_is_refused(log: RawLog, rows: slice) -> None:
    other = recording(ROBOT, 2)
    spliced = replace(other, **{name: np.concatenate([getattr(part, name) for part in (
        take(other, slice(0, 3000)), later(take(log, rows)))]) for name in (
            'time', 'position', 'velocity', 'effort')})
    with pytest.raises(DataError, match=r'duplicate.*of its samples are also in seed 1'):
        plausible_recordings(ROBOT, [log, spliced])
    both, warnings = plausible_recordings(ROBOT, [log, spliced], ['duplicate'])
    assert len(both) == 2 and 'duplicate' in warnings[0]


def test_a_part_alone_is_a_copy(log: RawLog) -> None:
    kept, _ = plausible_recordings(ROBOT, [log, later(take(log, slice(1000, 2000)))])
    assert [one.source for one in kept] == ['seed 1']


def test_the_whole_stays_where_its_part_came_first(log: RawLog) -> None:
    with pytest.raises(DataError, match='part of the other'):
        plausible_recordings(ROBOT, [take(log, slice(0, 2000)), later(log)])


def test_rest_and_other_motions_share_nothing(log: RawLog) -> None:
    rest = np.zeros((2000, 3))
    still = RawLog('rest', ROBOT.joints, 0.005 * np.arange(2000), rest, rest, rest + 1.0)
    assert shared_share(digests(still), digests(later(still))) == 0.0
    assert shared_share(digests(log), digests(recording(ROBOT, 2))) == 0.0


def test_digests_are_bounded_and_do_not_depend_on_chunks(log: RawLog) -> None:
    long = replace(log, **{name: np.concatenate([getattr(log, name)] * 40) + (
        1e-3 * np.arange(40 * len(log.time)).reshape([-1] + [1] * (getattr(log, name).ndim - 1)))
        for name in ('time', 'position', 'velocity', 'effort')})
    found = digests(long)
    assert len(found) == 2048 and shared_share(found, digests(take(long, slice(65_000,
                                                                               140_000)))) > 0.99


NOTHING = Excerpt(*[np.empty((0, 3))] * 6, np.empty(0), np.nan)


def with_samples(source: str, first: int, count: int = 1000) -> Examination:
    """Return the examination of a recording that holds these samples."""
    return Examination(source, (), NOTHING, np.arange(first, first + count, dtype=np.uint64))


@pytest.mark.parametrize(('first', 'count', 'severity', 'words'), [
    (975, 1000, None, ''), (965, 1000, Severity.REFUSE, '4% of its samples are also in a, and 4%'),
    (110, 1000, Severity.REFUSE, '89% of its samples are also in a, and 89% the other way round'),
    (90, 1000, Severity.WARN, '91% of its samples are also in a: it looks like a copy'),
    (500, 4000, Severity.REFUSE, '12% of its samples are also in a, and 50% the other way round'),
    (500, 400, Severity.WARN, '100% of its samples are also in a: it looks like a copy'),
    (960, 2000, Severity.REFUSE, '2% of its samples are also in a, and 4% the other way round')])
def test_samples_that_recordings_share_are_a_copy_or_a_part(
    first: int, count: int, severity: Severity | None, words: str
) -> None:
    """More than nine tenths, or three hundredths, of either."""
    found, copies = verdict(ROBOT, [with_samples('a', 0), with_samples('b', first, count),
                                    with_samples('c', 10_000)])
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    assert copies == (frozenset({1}) if severity is Severity.WARN else frozenset())
    for one in found:
        assert (one.kind, one.recording, one.joints) == ('duplicate', 'b', ())
        assert one.looks_like.startswith(words)
        assert one.remedy.startswith('it is omitted' if copies else 'omit one of them, or cut')


def test_copies_of_copies_are_left_out_once() -> None:
    found, copies = verdict(ROBOT, [with_samples(name, 0) for name in 'abc'])
    assert copies == {1, 2} and [one.recording for one in found] == ['b', 'c']
    assert all('also in a' in one.looks_like for one in found)
