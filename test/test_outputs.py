"""files.py: every writer against links, devices, foreign files, full disks, kill -9 and other
writers."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')

from exported import ARM
from identified_models import nominal_model
from monitored import motion
from recordings import write_recording

from robot_dynid.cli.evaluation import write_rows
from robot_dynid.cli.main import main
from robot_dynid.document import Report
from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.export.urdf import Export
from robot_dynid.files import atomic_write, atomic_writer, open_lock, open_log
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.csv import write_csv
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.report.html import write_report
from robot_dynid.ros.identifier.identification import write_below
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits

Writer = Callable[[Path], object]
MODEL = nominal_model('planar_3r')
LOG = motion(MODEL.robot, 50)
TRAJECTORY = random_fourier(motion_limits(MODEL.robot), FourierOptions(5.0, 3),
                            np.random.default_rng(0))
#: every function of the package that writes a file for users, by the ending of its files
WRITERS: dict[str, Writer] = {
    'model.yaml': MODEL.save,
    'of_the_node.yaml': lambda path: write_below(str(path.parent), path.name, MODEL.save),
    'trajectory.yaml': lambda path: save_trajectory(TRAJECTORY, path),
    'recording.csv': lambda path: write_csv(path, LOG),
    'recording.csv.gz': lambda path: write_csv(path, LOG),
    'results.csv': lambda path: write_rows(str(path), MODEL.joints, {'effort': LOG.position}),
    'export.urdf': Export(ARM, (), ()).save,
    'report.html': lambda path: write_report(Report('title', 'subtitle', ()), path),
}
#: writers of one kind of file; tables are compressed by the ending of their name
SAME = [*permutations(('model.yaml', 'of_the_node.yaml')),
        *permutations(('recording.csv', 'recording.csv.gz'))]
FOREIGN = 'the only copy of something else\n'
every = pytest.mark.parametrize('name', WRITERS)


def in_child(task: Callable[[], object]) -> str:
    """Return the error of a task in a process of its own, or how that was killed."""
    forked = get_context('fork')
    hear, tell = forked.Pipe(duplex=False)

    def run() -> None:
        try:
            task()
            tell.send('')
        except BaseException as error:
            tell.send(f'{type(error).__name__}: {error}')

    child = forked.Process(target=run)
    child.start()
    tell.close()
    child.join()
    return str(hear.recv()) if child.exitcode == 0 else f'killed by {-(child.exitcode or 0)}'


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


@every
def test_a_second_run_replaces_the_file_of_the_first(name: str, tmp_path: Path) -> None:
    write, path = WRITERS[name], tmp_path / name
    path.touch()  # as a user does who reserves a name
    write(path)
    content = path.read_bytes()
    path.chmod(0o666)  # more than new files get
    write(path)
    assert len(path.read_bytes()) == len(content) > 100
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert names(tmp_path) == [name]


@every
def test_only_files_of_the_same_kind_are_replaced(name: str, tmp_path: Path) -> None:
    """A typo costs nobody a recipe, a recording or the robot's own URDF."""
    for other, write in {**WRITERS, 'foreign': lambda p: p.write_text(FOREIGN)}.items():
        path = tmp_path / other
        write(path)
        if (name, other) not in SAME and name != other:
            content = path.read_bytes()
            with pytest.raises(UsageError, match=r'is not overwritten.*or remove the file first'):
                WRITERS[name](path)
            assert path.read_bytes() == content


@every
def test_links_devices_pipes_and_folders_stay(name: str, tmp_path: Path) -> None:
    write, own = WRITERS[name], tmp_path / name
    write(own)
    content = own.read_bytes()
    (tmp_path / 'link').symlink_to(own)
    (tmp_path / 'dangling').symlink_to(tmp_path / 'absent')
    (tmp_path / 'folder').mkdir()
    os.mkfifo(tmp_path / 'pipe')
    there = names(tmp_path)
    for path, words in (
            (tmp_path / 'link', 'a symbolic link'), (tmp_path / 'dangling', 'a symbolic link'),
            (tmp_path / 'pipe', 'a pipe'), (tmp_path / 'folder', 'a folder'),
            (Path('/dev/null'), 'a device'), (tmp_path / ('n' * 256), 'File name too long')):
        with pytest.raises(UsageError, match=words):
            write(path)
    assert stat.S_ISCHR(os.stat('/dev/null').st_mode)
    assert (names(tmp_path), own.read_bytes()) == (there, content)


def unprivileged(folder: Path, task: Callable[[], object]) -> str:
    """Return the error of a task in ``folder`` without the rights of root."""
    def run() -> None:
        os.chdir(folder)
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        task()

    return in_child(run)


@every
def test_write_protection_is_respected(name: str, tmp_path: Path) -> None:
    write = WRITERS[name]
    folder, file = tmp_path / 'folder', tmp_path / 'folder' / name
    folder.mkdir()
    write(file)
    content = file.read_bytes()
    file.chmod(0o444)
    with pytest.raises(UsageError, match='no permission to write there'):
        write(file)  # root too: somebody has protected it
    file.chmod(0o666)
    folder.chmod(0o555)
    said = unprivileged(folder, lambda: write(Path(name)))
    folder.chmod(0o755)
    assert said in (f'UsageError: {name}: no permission to write there',
                    f'DynIdError: {name}: cannot be written (Permission denied)')
    assert (names(folder), file.read_bytes()) == ([name], content)


def limit_files(size: int) -> None:
    """Let files grow to ``size`` bytes only."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@every
def test_a_full_disk_leaves_the_file_before(name: str, tmp_path: Path) -> None:
    write, path = WRITERS[name], tmp_path / name
    write(path)
    content = path.read_bytes()

    def fill() -> None:
        limit_files(50)
        write(path)

    said = in_child(fill)
    assert said.startswith('DynIdError: '), said
    assert f'{name}: cannot be written (' in said
    assert (names(tmp_path), path.read_bytes()) == ([name], content)


@every
def test_a_killed_writer_leaves_the_file_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, path = WRITERS[name], tmp_path / name
    write(path)
    content = path.read_bytes()

    def kill() -> None:
        monkeypatch.setattr(os, 'fsync', lambda handle: os.kill(os.getpid(), signal.SIGKILL))
        write(path)

    assert in_child(kill) == f'killed by {int(signal.SIGKILL)}'
    left, kept = names(tmp_path)
    assert left.startswith('.robot_dynid_') and left.endswith('.tmp')
    assert (kept, path.read_bytes()) == (name, content)
    write(path)
    assert names(tmp_path) == [left, name]


@pytest.mark.parametrize(('words', 'said'), [
    ('identify run.csv --robot planar_3r --out run.csv', 'run.csv: exists and is not overwritten'),
    ('identify run.csv --robot planar_3r --recipe m.yaml --out m.yaml', 'm.yaml: is also read by'),
    ('identify run.csv --robot planar_3r --out new --report ./new', 'new: is also written by'),
    ('identify run.csv --robot planar_3r --out new --report m.yaml', 'lack "<meta name="gener'),
    ('identify run.csv --robot arm.urdf --method feasible --out new --urdf arm.urdf',
     'arm.urdf: is also read by'),
    ('forward m.yaml run.csv --out run.csv', 'run.csv: is also read by'),
    ('inverse m.yaml run.csv --out run2.csv', 'lack "effort.joint_1'),
    ('export m.yaml --urdf arm.urdf --out ./arm.urdf', 'arm.urdf: is also read by'),
    ('design planar_3r --out run.csv', 'lack "robot_dynid_trajectory:"'),
    ('contact m.yaml run.csv --report m.yaml', 'm.yaml: exists and is not overwritten'),
    ('validate m.yaml run.csv --report arm.urdf', 'arm.urdf: exists and is not overwritten'),
])
def test_commands_refuse_to_replace_their_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('robot_dynid.io.log.load_log', None)  # it is refused before the work
    write_csv('run.csv', LOG)
    write_csv('run2.csv', LOG)
    MODEL.save('m.yaml')
    Export(ARM, (), ()).save('arm.urdf')
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_identify_names_the_model_written_before_the_report_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_recording(tmp_path, 'run', MODEL.robot, 1)
    words = 'identify run.csv --robot planar_3r --out m.yaml --report r.html'

    def identify() -> None:
        limit_files(1_000_000)  # enough for the model
        raise SystemExit(main(words.split()))

    assert in_child(identify) == 'SystemExit: 1'
    said = capfd.readouterr().err
    assert 'r.html: cannot be written (' in said
    assert said.endswith('(m.yaml is written)\n')
    assert IdentifiedModel.load('m.yaml').joints == MODEL.joints
    assert names(tmp_path) == ['m.yaml', 'run.csv']


def test_two_savers_never_damage_a_model(tmp_path: Path) -> None:
    path, done = tmp_path / 'm.yaml', threading.Event()
    models = [replace(MODEL, status=status) for status in ('one', 'of another length')]
    models[0].save(path)

    def save(model: IdentifiedModel) -> None:
        while not done.is_set():
            model.save(path)

    savers = [threading.Thread(target=save, args=(model,)) for model in models]
    for saver in savers:
        saver.start()
    try:
        seen = {IdentifiedModel.load(path).status for _ in range(25)}
    finally:
        done.set()
        for saver in savers:
            saver.join()
    assert seen <= {'one', 'of another length'}
    assert names(tmp_path) == ['m.yaml']


def test_outputs_of_requests_stay_below_their_root(tmp_path: Path) -> None:
    root = tmp_path / 'root'
    root.mkdir()
    (root / 'out').symlink_to(tmp_path)
    for name in ('../m.yaml', 'out/m.yaml', 'out/new/m.yaml', '/m.yaml'):
        with pytest.raises(UsageError, match=r'may not write it; .* \(parameter files_directory'):
            write_below(str(root), str(root / name), MODEL.save)
    assert names(tmp_path) == ['root']
    assert write_below(str(root), str(root / 'a/b/m.yaml'), MODEL.save).is_file()


def test_atomic_writer_keeps_a_file_that_appears_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / 'm.yaml'
    with pytest.raises(UsageError, match='is not overwritten'), atomic_writer(
            path, mark=b'ours') as file:
        file.write(b'ours')
        path.write_text(FOREIGN)
    assert (path.read_text(), names(tmp_path)) == (FOREIGN, ['m.yaml'])


def test_a_temporary_name_that_is_taken_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, 'token_hex', lambda count: 'guessed')
    (tmp_path / '.robot_dynid_guessed.tmp').write_text(FOREIGN)
    with pytest.raises(DynIdError, match='File exists'):
        atomic_write(tmp_path / 'm.yaml', 'text')
    assert (tmp_path / '.robot_dynid_guessed.tmp').exists()


def test_a_folder_swapped_for_a_link_is_no_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that was checked receives the file, whatever has its name by then."""
    root, before, outside = tmp_path / 'root', tmp_path / 'root' / 'here', tmp_path / 'outside'
    before.mkdir(parents=True)
    outside.mkdir()

    def swap(handle: int) -> None:
        if before.is_symlink():
            return
        before.rename(root / 'moved')
        before.symlink_to(outside)

    monkeypatch.setattr(os, 'fsync', swap)
    atomic_write(before / 'm.yaml', 'text', inside=root)
    assert (names(outside), names(root / 'moved')) == ([], ['m.yaml'])


def test_other_names_of_a_file_keep_the_old_content(tmp_path: Path) -> None:
    MODEL.save(tmp_path / 'm.yaml')
    os.link(tmp_path / 'm.yaml', tmp_path / 'kept.yaml')
    replace(MODEL, status='new').save(tmp_path / 'm.yaml')
    assert IdentifiedModel.load(tmp_path / 'kept.yaml').status == MODEL.status


def test_bags_get_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / 'dangling').symlink_to(tmp_path / 'absent')
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'file').write_text(FOREIGN)
    for name in ('dangling', 'folder', 'file'):
        with pytest.raises(UsageError, match='exists already; bags are not overwritten'):
            BagWriter(tmp_path / name)
    with pytest.raises(DataError, match='cannot be created'):
        BagWriter(tmp_path / 'file' / 'bag')
    assert (names(tmp_path / 'folder'), (tmp_path / 'file').read_text()) == ([], FOREIGN)


def test_logs_are_new_files(tmp_path: Path) -> None:
    victim = tmp_path / 'victim'
    victim.write_text(FOREIGN)
    os.link(victim, tmp_path / 'node.log')
    with open_log(tmp_path / 'node.log') as log:
        log.write(b'line')
    (tmp_path / 'link').symlink_to(victim)
    with pytest.raises(UsageError, match='a symbolic link'), open_log(tmp_path / 'link'):
        pass
    assert (victim.read_text(), (tmp_path / 'node.log').read_bytes()) == (FOREIGN, b'line')


def test_locks_in_known_places_are_ours(tmp_path: Path) -> None:
    folder, victim = tmp_path / 'locks', tmp_path / 'victim'
    victim.write_text(FOREIGN)
    open_lock(folder, '1').close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    (folder / '2').symlink_to(victim)
    os.mkfifo(folder / '3')
    (tmp_path / 'elsewhere').symlink_to(folder)
    for place, name, words in ((folder, '2', 'symbolic links'), (folder, '3', 'is a pipe'),
                               (tmp_path / 'elsewhere', '1', 'cannot be opened'),
                               (victim, '1', 'cannot be opened')):
        with pytest.raises(DynIdError, match=words):
            open_lock(place, name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700, 'taken back from the others'
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
        with pytest.raises(DynIdError, match='belongs to another user'):
            open_lock(folder, '1')
    assert victim.read_text() == FOREIGN
