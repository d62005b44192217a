"""Recordings one by one, by whatever works on them: the same model, kept and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording
from single_joint_recordings import swept

from robot_dynid.cli.main import main
from robot_dynid.errors import Cancelled, DataError, DynIdError, UsageError
from robot_dynid.identification import by_recording
from robot_dynid.identification.by_recording import Recorded, RecordedInformation
from robot_dynid.identification.identify import (
    IdentificationResult,
    add_recording_digests,
    identify,
    identify_with,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recorded_information import information
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import digest_of
from robot_dynid.io import log as log_module
from robot_dynid.io.csv import write_csv
from robot_dynid.io.information_file import InformationFolder
from robot_dynid.io.log import RecordingFile, load_log
from robot_dynid.io.recording_names import listed as listed_recordings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.windows import Window
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import Progress, RawLog
from robot_dynid.workers import Cluster, Processes, ThisProcess
from robot_dynid_evaluation import trust
from robot_dynid_evaluation.bench.arms import effort
from robot_dynid_extras.fleet.recordings import fleet_recordings

ROBOT = load_robot('planar_3r')
RECIPE = Recipe(cutoff=12.0, friction='coulomb', ramp_width=0.02, effort_lag=0.0)
MAIN = 'import sys; from robot_dynid.cli.main import main; sys.exit(main())'
RECIPE_TEXT = '{cutoff: 12, friction: coulomb, ramp_width: 0.02, effort_lag: 0}'
LOGS = [recording(ROBOT, seed, 5.0) for seed in range(4)]


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recordings, in folders and not."""
    found = tmp_path_factory.mktemp('data')
    for i, log in enumerate(LOGS):
        place = found / ('z' if i > 2 else '')
        place.mkdir(exist_ok=True)
        write_csv(place / f'run_{i}.csv', log)
    (found / 'notes.txt').write_text('no recording')
    return found


@pytest.fixture(scope='module')
def paths(folder: Path) -> list[str]:
    """Return the recordings."""
    return [str(path) for path in sorted(folder.rglob('run_*.csv'))]


@pytest.fixture(scope='module')
def plain(paths: list[str]) -> IdentificationResult:
    """Return the model of one process, which reads everything at once."""
    return identify(ROBOT, [load_log(path, ROBOT) for path in paths], recipe=RECIPE)


def files(paths: Sequence[str]) -> Sequence[RawLog]:
    """Return recordings that are not read yet."""
    return Parts(tuple(RecordingFile(path, ROBOT) for path in paths))  # type: ignore[misc]


def require_same(found: IdentificationResult, expected: IdentificationResult) -> None:
    """Require the same model bit for bit, but for digests of files."""
    bare = add_recording_digests(found, {})
    assert bare.model.to_yaml() == add_recording_digests(expected, {}).model.to_yaml()
    assert found.warnings == expected.warnings
    assert found.training.model == expected.training.model


def reduced(
    logs: Sequence[RawLog], recorded: Recorded | None = None, recipe: Recipe = RECIPE,
    progress: Progress | None = None,
) -> RecordedInformation:
    """Return the information of recordings."""
    return information(ROBOT, logs, recipe, None, progress, recorded)


def require_alike(found: RecordedInformation, expected: RecordedInformation) -> None:
    """Require the same information bit for bit, but for digests of files."""
    record = replace(found.record, recording_digests=())
    assert digest_of(record) == digest_of(expected.record)
    assert found.notes == expected.notes
    assert digest_of((found.choice, found.extent)) == digest_of((expected.choice, expected.extent))
    np.testing.assert_array_equal(found.reversal_weights, expected.reversal_weights)
    own, others = found.information.batches, expected.information.batches
    assert [(b.samples, b.recording) for b in own] == [(b.samples, b.recording) for b in others]
    for ours, theirs in zip(own, others, strict=True):
        for a, b in zip(ours.factors, theirs.factors, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.fixture(scope='module')
def whole(paths: list[str]) -> RecordedInformation:
    """Return the information of all recordings, reduced in one process."""
    return reduced([load_log(path, ROBOT) for path in paths])


@pytest.mark.parametrize('numbers', [
    pytest.param(log_module.CACHE_NUMBERS, id='in memory', marks=pytest.mark.always),
    pytest.param(0, id='read again')])
def test_recorded_one_by_one_gives_the_same_model_as_identify(
    numbers: int, paths: list[str], plain: IdentificationResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, 'CACHE_NUMBERS', numbers)
    found = identify_with(Recorded(ThisProcess()), ROBOT, files(paths), recipe=RECIPE)
    require_same(found, plain)
    assert all(len(digest) == 64 for digest in found.model.record.recording_digests)


def test_two_processes_give_the_same_model(paths: list[str], plain: IdentificationResult) -> None:
    told: list[str] = []
    with Processes(2) as workers:
        found = identify_with(Recorded(workers), ROBOT, files(paths), recipe=RECIPE,
                              progress=lambda stage, share: told.append(stage))
        missing = [*paths[:2], f'{paths[2]}.csv', paths[3]]
        with pytest.raises(DataError) as raised:
            identify_with(Recorded(workers), ROBOT, files(missing), recipe=RECIPE)
    require_same(found, plain)
    assert [stage for stage in told if 'of 4 recordings' in stage] == [
        *(f'reading and examining: {i} of 4 recordings' for i in (1, 2, 3, 4)),
        *(f'reducing: {i} of 4 recordings' for i in (1, 2, 3, 4))]
    with pytest.raises(DataError) as expected:
        load_log(missing[2], ROBOT)
    assert str(raised.value) == str(expected.value)


def test_windows_copies_and_long_ones_are_as_in_one_process(paths: list[str]) -> None:
    named = replace(RECIPE, windows={Path(paths[1]).name: (Window(0.5, 4.0),)})
    cases = (
        ([*paths[:2], paths[0], f'{paths[2]}[1:4]'], RECIPE, {}),  # one of them a copy
        ([paths[0], f'{paths[2]}[0:2]', f'{paths[2]}[2:5]'], RECIPE, {}),
        (paths[:2], named, {}),
        (paths, RECIPE, {'part_rows': 400, 'longest': 500}))
    for names, recipe, cut in cases:
        logs = Parts(tuple(load_log(path, ROBOT) for path in names), **cut)
        own = replace(files(names), **cut)  # type: ignore[type-var]
        require_alike(reduced(own, Recorded(ThisProcess()), recipe), reduced(logs, None, recipe))


def test_averages_are_as_in_one_process(tmp_path: Path) -> None:
    names = []
    for seed in (5, 6):
        once, rng = recording(ROBOT, seed, 4.0), np.random.default_rng(seed)
        count = 4 * len(once.time)
        effort = np.tile(once.effort, (4, 1))  # type: ignore[arg-type]
        log = RawLog('repeated', ROBOT.joints, np.arange(count) * once.time[1], np.tile(
            once.position, (4, 1)), effort=effort + 0.01 * rng.standard_normal((count, 3)))
        names.append(str(tmp_path / f'{seed}.csv'))
        write_csv(names[-1], log)
    recipe = replace(RECIPE, period=4.0)
    found = reduced(files(names), Recorded(ThisProcess()), recipe)
    require_alike(found, reduced([load_log(name, ROBOT) for name in names], None, recipe))
    assert len(found.record.averaging) == 2


def test_sweeps_keep_their_friction_curves(tmp_path: Path) -> None:
    time_, position, _ = swept(speeds=(0.2, 0.4, 0.8))
    q = np.zeros((len(time_), 3))
    q[:, 0] = position[:, 0]
    qd = np.gradient(q, time_, axis=0)
    motion = Motion(q, qd, np.gradient(qd, time_, axis=0), np.zeros_like(q))
    rng = np.random.default_rng(2)
    torque = effort(ROBOT, load_truth(ROBOT), motion)
    names = [str(tmp_path / name) for name in ('sweeps.csv', 'again.csv')]
    for name in names:
        write_csv(name, RawLog('', ROBOT.joints, time_, q, effort=torque
                               + 0.01 * rng.standard_normal(torque.shape)))
    expected = reduced([load_log(name, ROBOT) for name in names])
    assert expected.record.friction_curves
    keeper = InformationFolder(str(tmp_path))
    for taken in (0, 2):
        recorded = Recorded(ThisProcess(), keeper)
        require_alike(reduced(files(names), recorded), expected)
        assert recorded.taken == taken


@pytest.mark.parametrize('recipe', [
    replace(RECIPE, estimator={'name': 'irls'}), replace(RECIPE, loops='three')],
    ids=['irls', 'loops'])
def test_recorded_refuses_methods_that_read_samples_again(
    recipe: Recipe, paths: list[str]
) -> None:
    method = 'feasible' if recipe.loops == 'three' else None
    with pytest.raises(UsageError, match='without workers'):
        identify_with(Recorded(ThisProcess()), ROBOT, files(paths), method, recipe)


def test_an_identification_that_was_stopped_goes_on(
    paths: list[str], whole: RecordedInformation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = InformationFolder(str(tmp_path))

    def stop(stage: str, share: float) -> None:
        if stage == 'reducing: 2 of 4 recordings':
            raise Cancelled('enough')

    with pytest.raises(Cancelled):
        reduced(files(paths), Recorded(ThisProcess(), keeper), RECIPE, stop)
    assert len(list(tmp_path.glob('run_*.info'))) == 2
    for expected in (2, 4):
        recorded = Recorded(ThisProcess(), keeper)
        require_alike(reduced(files(paths), recorded), whole)
        assert (recorded.taken, recorded.redone) == (expected, 0)
    broken, stale = sorted(tmp_path.glob('run_*.info'))[:2]
    content = broken.read_bytes()
    broken.write_bytes(content[:len(content) // 2])
    stale.write_bytes(sorted(tmp_path.glob('run_*.info'))[2].read_bytes())
    recorded = Recorded(ThisProcess(), keeper)
    require_alike(reduced(files(paths), recorded), whole)
    assert (recorded.taken, recorded.redone) == (2, 2) and broken.name in recorded.wrong
    other = replace(RECIPE, cutoff=10.0)
    recorded = Recorded(ThisProcess(), keeper)
    reduced(files(paths), recorded, other)
    assert (recorded.taken, recorded.redone) == (0, 4) and 'other choices' in recorded.wrong
    heavier = replace(ROBOT, nominal=1.1 * ROBOT.nominal)
    monkeypatch.setattr(by_recording, 'VERSION', '0.0.1')
    for robot, own in ((ROBOT, other), (heavier, other), (heavier, replace(other, rate=150.0))):
        recorded = Recorded(ThisProcess(), keeper)
        information(robot, files(paths), own, None, None, recorded)
        assert (recorded.taken, recorded.redone) == (0, 4) and 'another version' in recorded.wrong


def test_a_recording_that_changed_is_reduced_anew(paths: list[str], tmp_path: Path) -> None:
    keeper, copy = InformationFolder(str(tmp_path)), tmp_path / 'run_0.csv'
    for content in (Path(paths[0]).read_bytes(), Path(paths[1]).read_bytes()):
        copy.write_bytes(content)
        recorded = Recorded(ThisProcess(), keeper)
        found = reduced(files([str(copy)]), recorded)
        assert recorded.taken == 0
        require_alike(found, reduced([load_log(copy, ROBOT)]))


def test_two_writers_of_one_information_never_miss_it(
    whole: RecordedInformation, tmp_path: Path
) -> None:
    keeper = InformationFolder(str(tmp_path))
    digest, key = 'a' * 64, 'the choices'
    made = replace(whole, record=replace(
        whole.record, recipe_digest=key, recording_digests=(digest,)))
    keeper.save(made, 'run.csv', digest)
    with ThreadPoolExecutor(2) as others:
        saved = [others.submit(keeper.save, made, 'run.csv', digest) for _ in range(20)]
        while not all(one.done() for one in saved):
            found, wrong = keeper.load('run.csv', digest, key)
            assert found is not None, wrong
        assert all(one.exception() is None for one in saved)
    [file] = tmp_path.iterdir()
    file.write_bytes(b'something else')
    keeper.save(made, 'run.csv', digest)
    assert keeper.load('run.csv', digest, key)[0] is not None


Capture = pytest.CaptureFixture[str]


def command(capsys: Capture, *words: object, code: int = 0) -> tuple[dict[str, object], str]:
    """Run the command line; return its JSON and what it says beside."""
    assert main([*map(str, words), '--json']) == code
    printed = capsys.readouterr()
    found: dict[str, object] = json.loads(printed.out)
    return found, printed.err


def recorded_files(model: Path) -> list[Path]:
    """Return the files that a model names as those of its fit."""
    return [Path(name).resolve() for name in IdentifiedModel.load(model).record.recordings]


def test_from_the_command_line(folder: Path, paths: list[str], tmp_path: Path,
                               capsys: Capture) -> None:
    recipe, listed = tmp_path / 'recipe.yaml', tmp_path / 'list.txt'
    recipe.write_text(RECIPE_TEXT)
    listed.write_text('\n'.join(['# all of them', *(
        os.path.relpath(path, tmp_path) for path in paths[:3]), '', paths[3], '']))
    words = ['identify', '--robot', 'planar_3r', '--recipe', recipe, '--out', tmp_path / 'm.yaml']
    command(capsys, *words, *paths)
    model = (tmp_path / 'm.yaml').read_text()
    recordings = recorded_files(tmp_path / 'm.yaml')
    kept = tmp_path / 'kept'
    for data, options, said in (
            ([folder], ['--information', kept], ''),
            ([folder / '**' / 'run_*.csv'], ['--information', kept],
             '4 recordings were already reduced')):
        _, told = command(capsys, *words, *data, *options)
        assert said in told
        own = (tmp_path / 'm.yaml').read_text()
        assert own.partition('recordings:')[0] == model.partition('recordings:')[0]
        assert len(list(kept.glob('*.info'))) == 4
    command(capsys, *words, f'@{listed}')
    assert recorded_files(tmp_path / 'm.yaml') == recordings
    damaged = next(kept.glob('*.info'))
    damaged.write_bytes(b'')
    _, told = command(capsys, 'information', folder, *words[1:5], '--information', kept, '--out',
                      tmp_path / 'whole.info')
    assert '1 information files' in told and 'were created again' in told
    assert damaged.name in ''.join(told.split()), 'lines may end within it'
    found, _ = command(capsys, *words, *kept.glob('*.info'), code=2)
    assert 'no rows of its recordings' in str(found['error'])


def test_wrong_words_are_named(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    empty, listed = tmp_path / 'empty', tmp_path / 'list.txt'
    empty.mkdir()
    listed.write_text('# nothing\n')
    (tmp_path / 'lists.txt').write_text('@list.txt\n')
    words = ['identify', '--robot', 'planar_3r', '--out', tmp_path / 'm.yaml']
    for data, said in (
            ([empty], 'no recording in this folder'), ([f'{folder}/no_*.csv'], 'no_*.csv'),
            ([f'@{listed}'], 'write one recording per line'), ([f'@{tmp_path}/no.txt'], 'no.txt'),
            ([f'@{tmp_path}/lists.txt'], 'not other lists'),
            ([folder, '--workers', '0'], '--workers 0'),
            ([folder, '--workers', '2', '--scheduler', 'tcp://h:1'], 'give one of them'),
            ([folder, '--workers', '2', '--method', 'irls'], 'needs the samples')):
        found, _ = command(capsys, *words, *data, code=2)
        assert said in str(found['error'])
    found, _ = command(capsys, *words, folder, '--information', listed, code=1)
    assert 'not a folder, and none can be created there' in str(found['error'])
    found, _ = command(capsys, 'information', folder, '--robot', 'planar_3r', '--workers', '0',
                       '--out', tmp_path / 'x.info', code=2)
    assert '--workers 0' in str(found['error'])


def test_bags_in_folders_are_known(tmp_path: Path) -> None:
    for name in ('a/metadata.yaml', 'a/a_0.mcap', 'b/b_0.mcap', 'b/b_1.mcap', 'c/x.mcap',
                 'c/y.mcap', 'c/deeper/z.db3', 'd.csv.gz', '.hidden.csv', 'e.txt'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [os.path.relpath(path, tmp_path) for path in listed_recordings([str(tmp_path)])]
    assert found == ['a', 'b', 'c/deeper', 'c/x.mcap', 'c/y.mcap', 'd.csv.gz']
    assert listed_recordings([f'{tmp_path}/b', 'x.csv[1:2]']) == [f'{tmp_path}/b', 'x.csv[1:2]']


def test_recordings_come_from_object_stores(paths: list[str], whole: RecordedInformation) -> None:
    fsspec = pytest.importorskip('fsspec')
    store = fsspec.filesystem('memory')
    for path in paths:
        store.pipe_file(f'/fleet/{Path(path).name}', Path(path).read_bytes())
    remote = listed_recordings(['memory://fleet/*.csv'])
    assert len(remote) == 4 and all(name.startswith('memory://') for name in remote)
    found = reduced(files(remote), Recorded(ThisProcess()))
    assert found.record.recordings == tuple(remote)
    record = replace(found.record, recordings=whole.record.recordings)
    require_alike(replace(found, record=record), whole)
    for name, said in (('memory://fleet/no.csv', 'no such object'),
                       ('nosuch://fleet/a.csv', 'nosuch')):
        with pytest.raises(DynIdError, match=said):
            reduced(files([name]), Recorded(ThisProcess()))


def test_folders_of_object_stores() -> None:
    fsspec = pytest.importorskip('fsspec')
    store = fsspec.filesystem('memory')
    for name in ('SN1/b.csv', 'SN1/deeper/a.csv.gz', 'SN2/bag/metadata.yaml', 'SN2/bag/bag_0.mcap',
                 'SN2/bag/bag_1.mcap', 'SN2/c.mcap', 'SN2/notes.txt'):
        store.pipe_file(f'/arms/{name}', b'')
    store.pipe_file('/nothing/notes.txt', b'')
    first, second = (['memory:///arms/SN1/b.csv', 'memory:///arms/SN1/deeper/a.csv.gz'],
                     ['memory:///arms/SN2/bag', 'memory:///arms/SN2/c.mcap'])
    assert listed_recordings(['memory:///arms']) == [*first, *second]
    assert listed_recordings(['memory:///arms/SN?', 'memory:///arms/SN2/bag']) == [
        *first, *second, 'memory:///arms/SN2/bag']
    assert listed_recordings(['memory://no/such.csv[1:2]']) == ['memory://no/such.csv[1:2]']
    found = [(one.arm, one.source) for one in fleet_recordings(['memory:///arms/*'])]
    assert found == [('SN1', first[0]), ('deeper', first[1]), *(('SN2', one) for one in second)]
    with pytest.raises(UsageError, match='no recording in this folder'):
        listed_recordings(['memory://nothing'])


def difference(found: Path, expected: Path) -> float:
    """Return the largest relative difference of two models, 0 where they are byte for byte one.

    Of parameters and deviations; infinite where only other things than the command differ.
    """
    ours, theirs = (replace(model, record=replace(model.record, command=()))
                    for model in map(IdentifiedModel.load, (found, expected)))
    if ours.to_yaml() == theirs.to_yaml():
        return 0.0
    off = max(float(np.max(np.abs(a - b) / np.maximum(np.abs(b), np.finfo(float).tiny)))
              for a, b in ((ours.values, theirs.values), (ours.std, theirs.std)))
    return off or np.inf


@pytest.mark.soak
def test_an_identification_that_was_killed_goes_on(
    folder: Path, tmp_path: Path, plain: IdentificationResult
) -> None:
    """SIGKILL at five times, while two processes work on many recordings."""
    many, recipe, began = tmp_path / 'many', tmp_path / 'recipe.yaml', time.monotonic()
    kills, count = (1, 5, 9, 14, 20), 24
    many.mkdir()
    for seed in range(count):
        write_csv(many / f'{seed:02}.csv', recording(ROBOT, seed, 5.0))
    recipe.write_text(RECIPE_TEXT)
    words = [sys.executable, '-c', MAIN, 'identify', str(many), '--robot',
             'planar_3r', '--recipe', str(recipe)]
    own = [*words, '--workers', '2', '--information', str(tmp_path / 'kept'), '--out',
           str(tmp_path / 'own.yaml')]
    for least in kills:
        process = subprocess.Popen(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(list((tmp_path / 'kept').glob('*.info'))) < least and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / 'own.yaml').exists()
    done = subprocess.run(own, capture_output=True, text=True, check=True)
    assert 'were already reduced in' in done.stderr and 'created again' not in done.stderr
    alone = [*words, '--out', str(tmp_path / 'plain.yaml')]
    subprocess.run(alone, capture_output=True, check=True)
    off = difference(tmp_path / 'own.yaml', tmp_path / 'plain.yaml')
    assert off == 0.0
    trust.keep('resumed', {'kills': len(kills), 'recordings': count, 'difference': off},
               time.monotonic() - began, 'the whole of it, two workers')


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and workers of Dask; give its address and the processes of the workers."""
    from distributed import Client

    file = folder / 'scheduler.json'
    quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    with ExitStack() as stack:
        def begin(*words: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([sys.executable, '-m', 'dask', *words, '--scheduler-file',
                                        str(file), '--no-dashboard'], cwd=folder,
                                       **quiet)  # type: ignore[call-overload]
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        begin('scheduler', '--host', '127.0.0.1', '--port', '0')
        until = time.monotonic() + 60.0
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        own = [begin('worker', '--nthreads', '1', '--no-nanny') for _ in range(workers)]
        address = json.loads(file.read_text())['address']
        with Client(address, timeout=60, set_as_default=False) as client:  # a busy machine is slow
            client.wait_for_workers(workers, timeout=60)
        yield address, own


def test_a_cluster_gives_the_same_model(
    folder: Path, paths: list[str], plain: IdentificationResult, tmp_path: Path, capsys: Capture
) -> None:
    """A scheduler and two workers, of which one is killed on the way."""
    pytest.importorskip('distributed')
    recipe, lone, began = tmp_path / 'recipe.yaml', tmp_path / 'lone.yaml', time.monotonic()
    recipe.write_text(RECIPE_TEXT)
    words = ['identify', folder, '--robot', 'planar_3r', '--recipe', recipe]
    command(capsys, *words, '--out', lone)
    with cluster(tmp_path) as (address, workers):
        command(capsys, *words, '--scheduler', address, '--out', tmp_path / 'm.yaml')
        off = difference(tmp_path / 'm.yaml', lone)

        def kill(stage: str, share: float) -> None:
            if stage.startswith('reducing: 1 of'):
                workers[0].kill()

        with Cluster(address) as own:
            found = identify_with(
                Recorded(own), ROBOT, files(paths), None, RECIPE, kill)
        require_same(found, plain)
        assert workers[0].wait() == -signal.SIGKILL
    assert off == 0.0
    trust.keep('resumed', {'kills': 1, 'recordings': len(paths), 'difference': off},
               time.monotonic() - began, 'one of two workers of a cluster')
