"""Information of recordings: what identify makes of it, alone, added up, and from files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording
from tolerances import SAME_FORMULA

from robot_dynid.cli import identify as identify_command
from robot_dynid.cli import recordings
from robot_dynid.cli.main import main
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.information import Batch, Information
from robot_dynid.identification import by_recording, recorded_information
from robot_dynid.identification.by_recording import RecordedInformation
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recorded_information import identify_information, information
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord, digest_of
from robot_dynid.io import information_file
from robot_dynid.io.csv import write_csv
from robot_dynid.io.information_file import load_information, save_information
from robot_dynid.robot.robot_file import load_robot

ROBOT = load_robot('planar_3r')
RECIPE = Recipe(cutoff=12.0, friction='coulomb', ramp_width=0.02, effort_lag=0.0)
LOGS = [recording(ROBOT, seed, 8.0) for seed in range(4)]


def made_up(samples: int = 1, notes: tuple[str, ...] = ()) -> RecordedInformation:
    """Return information of ``samples`` of a.csv about one parameter."""
    model, nothing = nominal_model('planar_3r'), None
    own = Information(('a',), np.ones((1, 1), dtype=bool), (
        Batch((np.full((4, 4), float(samples)),), samples),))
    return RecordedInformation(
        ROBOT, Choice(model.preprocessing, model.structure), own, None, nothing,
        FitRecord(recordings=('a.csv',)), notes, ())


@pytest.fixture(scope='module')
def early() -> RecordedInformation:
    """Return the information of the first two recordings."""
    return information(ROBOT, LOGS[:2], RECIPE)


@pytest.fixture(scope='module')
def late(early: RecordedInformation) -> RecordedInformation:
    """Return that of the others, reduced like the first."""
    return information(ROBOT, LOGS[2:], RECIPE, early)


def test_identify_information_equals_identify_of_the_recordings(
    early: RecordedInformation
) -> None:
    ours, plain = identify_information([early], recipe=RECIPE), identify(
        ROBOT, LOGS[:2], recipe=RECIPE)
    np.testing.assert_array_equal(ours.estimate.values, plain.estimate.values)
    np.testing.assert_array_equal(ours.estimate.std, plain.estimate.std)
    np.testing.assert_array_equal(ours.model.control, plain.model.control)
    assert digest_of(ours.model.record) == digest_of(plain.model.record)
    assert ours.warnings == plain.warnings
    assert ours.model.noise_levels is not None
    assert ours.training.model == plain.training.model


def test_the_command_says_what_an_information_file_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_up(samples=7, notes=('a note',))
    asked = []

    def reduce(arguments: Any, paths: Any, target: Any, recipe: Recipe, progress: Any) -> Any:
        asked.append((paths, target[0].name, target[1], recipe.cutoff))
        return made

    monkeypatch.setattr(recordings, 'reduced', reduce)
    monkeypatch.setattr(information_file, 'save_information', lambda one, path: Path(
        path).write_bytes(bytes(2500)))
    out, recipe = tmp_path / 'Y.info', tmp_path / 'r.yaml'
    recipe.write_text('cutoff: 12')
    started = perf_counter()
    assert main(['information', 'a.csv', 'b_validation.csv', '--robot', 'planar_3r', '--recipe',
                 str(recipe), '--out', str(out), '--json']) == 0
    passed = perf_counter() - started
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert 0.0 <= found.pop('seconds') < passed
    laws = found.pop('friction_laws')
    assert laws == list(made.choice.structure.described)
    assert found == {'robot': 'planar_3r', 'out': str(out), 'recordings': ['a.csv'], 'samples': 7,
                     'base': 1, 'megabytes': 0.0025, 'cutoff': 10.0, 'warnings': ['a note']}
    assert asked == [(['a.csv'], 'planar_3r', None, 12.0)]
    assert 'held out for validation: b_validation.csv' in ' '.join(printed.err.split())
    assert main(['information', 'a.csv', '--robot', 'planar_3r', '--out', 'Y.yaml']) == 2
    assert 'ends with .info' in capsys.readouterr().err


def test_the_command_adds_recordings_to_information_of_the_same_robot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {'a.info': made_up(samples=7), 'b.info': replace(made_up(), robot=load_robot('tx40'))}
    asked: list[Any] = []

    def reduce(arguments: Any, paths: Any, target: Any, recipe: Any, progress: Any) -> Any:
        asked.append((paths, target[0].name, target[1].information.samples))
        return made_up(samples=11)

    def add(parts: Iterable[RecordedInformation]) -> RecordedInformation:
        return made_up(samples=sum(one.information.samples for one in parts))

    def stop(parts: Any, method: Any, recipe: Any, progress: Any) -> Any:
        asked.append(([one.information.samples for one in parts], method))
        raise DataError('far enough')

    monkeypatch.setattr(information_file, 'load_information', kept.__getitem__)
    monkeypatch.setattr(by_recording, 'merge_information', add)
    monkeypatch.setattr(identify_command, 'reduced', reduce)
    monkeypatch.setattr(recorded_information, 'identify_information', stop)
    words = ['identify', '--out', str(tmp_path / 'm.yaml'), '--method', 'ols']
    for more, taken, parts in (((), [], 7), (('c.csv',), [(['c.csv'], 'planar_3r', 7)], 18)):
        for robot in ((), ('--robot', 'planar_3r')):
            asked.clear()
            assert main([*words, *robot, '--', 'a.info', *more]) == 1
            assert asked == [*taken, ([parts], 'ols')]
            assert 'far enough' in capsys.readouterr().err
    assert main([*words, '--robot', 'planar_3r', '--', 'a.info', 'b.info']) == 2
    assert 'the information of a.csv belongs to tx40, not to planar_3r' in ' '.join(
        capsys.readouterr().err.split())


def test_identify_information_of_two_parts_equals_the_whole(
    early: RecordedInformation, late: RecordedInformation
) -> None:
    whole = information(ROBOT, LOGS, RECIPE, early)
    ours = identify_information([early, late], recipe=RECIPE)
    plain = identify_information([whole], recipe=RECIPE)
    np.testing.assert_allclose(ours.estimate.values, plain.estimate.values, rtol=SAME_FORMULA)
    np.testing.assert_allclose(ours.estimate.std, plain.estimate.std, rtol=SAME_FORMULA)
    assert ours.model.record.recordings == plain.model.record.recordings
    assert ours.model.record.friction_spread is not None
    alone = identify_information([early], recipe=RECIPE)
    assert np.mean(ours.estimate.std) < np.mean(alone.estimate.std)
    ranges = [one.model.trained.quantities['position'] for one in (ours, plain)]
    np.testing.assert_array_equal(*ranges)


def test_rows_of_the_sum_do_not_grow(
    early: RecordedInformation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(number: int) -> RecordedInformation:
        """Return the same of other recordings: those of one may not count twice."""
        scaled = tuple(replace(one, factors=tuple(
            (1.0 + 1e-9 * number) * factor for factor in one.factors))
            for one in early.information.batches)
        return replace(early, information=replace(early.information, batches=scaled))

    monkeypatch.setattr(by_recording, 'MERGED_ROWS', 5 * len(LOGS[0].time))
    kept = [len(by_recording.merge_information(map(another, range(count))).excerpt)
            for count in (1, 2, 3, 20, 40)]
    assert kept == [2, 4, 3, 5, 5]


@pytest.mark.parametrize('name', ESTIMATORS)
def test_methods_that_need_samples_are_refused_and_no_others(
    name: str, early: RecordedInformation
) -> None:
    if ESTIMATORS[name].fits_information:
        found = identify_information([early], name, RECIPE)
        assert found.estimate.method == name
        expected = identify(ROBOT, LOGS[:2], name, RECIPE)
        np.testing.assert_array_equal(found.estimate.values, expected.estimate.values)
    else:
        with pytest.raises(UsageError, match='choose one of ols, wls'):
            identify_information([early], name, RECIPE)


def test_information_of_other_filters_robots_or_twice_is_refused(
    early: RecordedInformation, late: RecordedInformation
) -> None:
    with pytest.raises(UsageError, match='no information'):
        identify_information([])
    other = information(ROBOT, LOGS[2:], replace(RECIPE, ramp_width=0.03))
    with pytest.raises(UsageError, match=r'other filters or friction laws.*--like'):
        identify_information([early, other])
    weighed = replace(late, reversal_weights=np.full(3, 0.5))
    with pytest.raises(UsageError, match='other filters or friction laws'):
        early.merge(weighed)
    heavier = replace(late, robot=replace(ROBOT, nominal=1.1 * ROBOT.nominal))
    with pytest.raises(UsageError, match='another robot'):
        early.merge(heavier)
    digests = [replace(one, record=replace(one.record, recording_digests=digest))
               for one, digest in ((early, ('a', 'b')), (late, ('c', 'a')))]
    with pytest.raises(UsageError, match='counts twice'):
        digests[0].merge(digests[1])
    again = information(ROBOT, [LOGS[3], LOGS[1]], RECIPE, early)
    named = replace(again, record=replace(again.record, recordings=('x.csv', 'y.csv.gz')))
    with pytest.raises(UsageError, match=r'y\.csv\.gz: a recording counts twice.*seed 1'):
        early.merge(named)


def test_an_information_file_holds_a_recording(early: RecordedInformation, tmp_path: Path) -> None:
    path = tmp_path / 'early.info'
    save_information(early, path)
    again = load_information(path)
    ours, plain = (identify_information([one], recipe=RECIPE) for one in (again, early))
    np.testing.assert_array_equal(ours.estimate.values, plain.estimate.values)
    np.testing.assert_array_equal(ours.estimate.std, plain.estimate.std)
    assert digest_of(ours.model.record) == digest_of(plain.model.record)
    assert ours.training.model == plain.training.model
    noise = np.array([0.1, 0.2, 0.3])
    save_information(replace(early, information=replace(early.information, noise=noise)), path)
    np.testing.assert_array_equal(load_information(path).information.noise, noise)
    assert again.merge(information(ROBOT, LOGS[2:], RECIPE, again)).information.samples > \
        early.information.samples


def test_a_file_of_another_version_is_told(
    early: RecordedInformation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'early.info'
    save_information(early, path)
    assert load_information(path).notes == early.notes
    monkeypatch.setattr(information_file, 'SOFTWARE', 'robot_dynid 9.9')
    found = load_information(path)
    assert 'this is robot_dynid 9.9' in found.notes[-1]
    assert found.notes[-1] in identify_information([found], recipe=RECIPE).warnings


def test_damaged_information_files_are_noticed(early: RecordedInformation, tmp_path: Path) -> None:
    path = tmp_path / 'early.info'
    save_information(early, path)
    content, rng = path.read_bytes(), np.random.default_rng(3)
    expected = early.information.total.factors
    for place in rng.integers(0, len(content), 40):
        spoiled = bytearray(content)
        spoiled[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:  # a few bytes of an archive say nothing, such as dates
            found = load_information(path).information.total.factors
        except ModelError:
            continue
        np.testing.assert_array_equal(found[0], expected[0])
    path.write_bytes(content)
    with np.load(path) as archive:  # what is whole, but has another number in it
        arrays = dict(archive)
    arrays['factors_0'] = 1.01 * arrays['factors_0']
    with path.open('wb') as file:
        np.savez_compressed(file, **arrays)
    with pytest.raises(ModelError, match='its digest does not match its content'):
        load_information(path)
    other = ('Izz9', *early.information.names[1:])
    save_information(replace(early, information=replace(early.information, names=other)), path)
    with pytest.raises(ModelError, match='parameters do not match its robot'):
        load_information(path)
    for spoiled in (content[:len(content) // 2], b'', b'PK', content[:200]):
        path.write_bytes(spoiled)
        with pytest.raises(ModelError, match=r'early\.info'):
            load_information(path)
    with pytest.raises(UsageError, match='cannot be read'):
        load_information(tmp_path / 'missing.info')


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = [tmp_path / f'{i}.csv' for i in range(3)]
    for path, log in zip(data, LOGS, strict=False):
        write_csv(path, log)
    recipe = tmp_path / 'recipe.yaml'
    recipe.write_text('{cutoff: 12, friction: coulomb, ramp_width: 0.02, effort_lag: 0}')
    first, second, model = (str(tmp_path / name) for name in ('a.info', 'b.info', 'm.yaml'))

    def run(*words: object) -> int:
        return main([*map(str, words), '--json'])

    assert run('information', data[0], '--robot', 'planar_3r', '--recipe', recipe,
               '--out', first) == 0
    assert json.loads(capsys.readouterr().out)['samples'] > 0
    assert run('information', data[1], '--robot', 'planar_3r', '--like', first,
               '--out', second) == 0
    capsys.readouterr()
    assert run('identify', first, second, data[2], '--out', model, '--report',
               tmp_path / 'r.html') == 0
    found = json.loads(capsys.readouterr().out)
    record = IdentifiedModel.load(model).record
    assert [Path(name).name for name in record.recordings] == ['0.csv', '1.csv', '2.csv']
    assert all(record.recording_digests)
    assert found['samples'] == IdentifiedModel.load(model).record.samples
    for words, code, said in (
            (('identify', first, first), 2, 'counts twice'),
            (('identify', data[0]), 2, '--robot is missing'),
            (('identify', first, '--robot', 'tx40'), 2, 'belongs to planar_3r, not to tx40'),
            (('identify', first, '--method', 'gls'), 2, 'needs the samples')):
        assert run(*words, '--out', tmp_path / 'no.yaml') == code
        assert said in json.loads(capsys.readouterr().out)['error']
    assert run('information', data[0], '--robot', 'planar_3r', '--out', tmp_path / 'x') == 2
