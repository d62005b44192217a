"""Files: only regular ones are read; every output is whole, in its place, or not there."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from robot_dynid.errors import DataError, DynIdError, ModelError, UsageError
from robot_dynid.files import (
    FLOOR,
    RATIO,
    Damaged,
    TooLarge,
    atomic_write,
    atomic_writer,
    budget,
    check_target,
    disk_space,
    file_digest,
    open_lock,
    open_log,
    open_regular,
    read_text,
    unpacked,
)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'none').symlink_to(tmp_path / 'absent')
    for path, words in (('/dev/zero', 'a device'), (tmp_path / 'pipe', 'a pipe'),
                        (tmp_path, 'a folder'), (tmp_path / 'none', 'No such file'),
                        (tmp_path / 'absent', 'No such file'), ('a\0b', 'null byte')):
        with pytest.raises(DataError, match=words):
            open_regular(path, DataError)


def test_texts_are_bounded_and_utf8(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    file.write_bytes(b'x' * 100)
    assert read_text(file, limit=100) == 'x' * 100
    with pytest.raises(ModelError, match='more than 99 bytes'):
        read_text(file, ModelError, limit=99)
    for size in (32_000_000, 32_000_001):  # the most that is read where no limit is given
        os.truncate(file, size)
        if size == 32_000_000:
            assert len(read_text(file)) == size
            continue
        with pytest.raises(UsageError, match='more than 32000000 bytes: check that it is the'):
            read_text(file)
    file.write_bytes(b'ab\xff')
    with pytest.raises(ModelError, match='byte 2 is not UTF-8'):
        read_text(file, ModelError)


def test_an_error_leaves_the_file_before(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    atomic_write(file, 'before')
    with pytest.raises(DynIdError, match='No space left'), atomic_writer(file) as out:
        out.write(b'half')
        raise OSError(errno.ENOSPC, 'No space left on device')
    assert file.read_text() == 'before'
    assert [p.name for p in tmp_path.iterdir()] == ['a.txt']


def test_a_new_file_takes_the_rights_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    digest = atomic_write(file, 'one')
    assert digest == hashlib.sha256(b'one').hexdigest()
    file.chmod(0o640)
    atomic_write(file, 'two')
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ('two', 0o640)


def test_links_pipes_devices_folders_and_foreign_files_stay(tmp_path: Path) -> None:
    victim = tmp_path / 'victim'
    victim.write_text('mine')
    (tmp_path / 'link').symlink_to(victim)
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'folder').mkdir()
    for name, words in (('link', 'a symbolic link'), ('pipe', 'a pipe'), ('folder', 'a folder'),
                        ('no/a', 'there is no folder'), ('victim', 'is not overwritten')):
        with pytest.raises(UsageError, match=words):
            atomic_write(tmp_path / name, 'x', mark=b'robot_dynid')
    with pytest.raises(UsageError, match='a device'):
        atomic_write('/dev/null', 'x')
    assert stat.S_ISCHR(os.stat('/dev/null').st_mode)
    assert victim.read_text() == 'mine'
    assert sorted(p.name for p in tmp_path.iterdir()) == ['folder', 'link', 'pipe', 'victim']


def test_targets_stay_below_a_folder(tmp_path: Path) -> None:
    inside = tmp_path / 'inside'
    inside.mkdir()
    (inside / 'out').symlink_to(tmp_path)
    assert check_target(inside / 'a', inside=inside) == inside / 'a'
    for name in ('../a', 'out/a', '/a'):
        with pytest.raises(UsageError, match='lies outside'):
            check_target(inside / name, inside=inside)


def test_a_planted_temporary_name_is_no_way_in(tmp_path: Path) -> None:
    victim = tmp_path / 'victim'
    victim.write_text('mine')
    (tmp_path / '.m.yaml.tmp').symlink_to(victim)
    atomic_write(tmp_path / 'm.yaml', 'new')
    assert victim.read_text() == 'mine'


def test_readers_see_whole_files_beside_two_writers(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    contents = {letter * 20_000 for letter in 'ab'}
    atomic_write(file, 'a' * 20_000)
    done = threading.Event()

    def write(letter: str) -> None:
        while not done.is_set():
            atomic_write(file, letter * 20_000)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in 'ab']
    for writer in writers:
        writer.start()
    seen = {file.read_text() for _ in range(300)}
    done.set()
    for writer in writers:
        writer.join()
    assert seen <= contents
    assert [p.name for p in tmp_path.iterdir()] == ['a.txt']


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_rights_of_a_group_are_not_given_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / 'a.txt'
    atomic_write(file, 'one')
    file.chmod(0o664)
    monkeypatch.setattr(os, 'fchown', refuse)
    atomic_write(file, 'two')
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ('two', 0o604)


def test_files_that_may_not_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder without permission, and those of others where only owners may replace them."""
    file = tmp_path / 'a.txt'
    atomic_write(file, 'one')
    tmp_path.chmod(0o1777)
    owner = file.stat().st_uid
    for user, allowed in ((owner + 1, False), (owner, True), (0, True)):
        with monkeypatch.context() as patch:
            patch.setattr(os, 'geteuid', lambda user=user: user)
            if allowed:
                assert check_target(file) == file
                continue
            with pytest.raises(UsageError, match='no permission to write there'):
                check_target(file)
            assert check_target(tmp_path / 'new') == tmp_path / 'new'
    file.chmod(0o444)
    with pytest.raises(UsageError, match='no permission to write there'):
        check_target(file)
    monkeypatch.setattr(os, 'access', lambda *_, **__: False)
    with pytest.raises(UsageError, match='no permission to write there'):
        check_target(tmp_path / 'new')


def test_disk_space_is_that_of_the_next_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason, free = disk_space(tmp_path / 'no' / 'such')
    assert reason == '' and free == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    (tmp_path / 'file').write_text('')
    assert disk_space(tmp_path / 'file' / 'a') == (f'{tmp_path / "file"} is not a folder', 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, 'access', lambda *_: False)
        assert disk_space(tmp_path / 'no') == (f'{tmp_path} is not writable', 0.0)
    monkeypatch.setattr(shutil, 'disk_usage', refuse)
    assert disk_space(tmp_path) == ('Operation not permitted', 0.0)


def test_the_digest_of_a_folder_has_the_names_of_its_files_in_order(tmp_path: Path) -> None:
    (tmp_path / 'inner').mkdir()
    large = bytes(range(256)) * 5000  # longer than what is read at once
    for name, data in (('b', large), ('a', b'x')):
        (tmp_path / name).write_bytes(data)
    assert file_digest(tmp_path / 'b') == hashlib.sha256(large).hexdigest()
    assert file_digest(tmp_path) == hashlib.sha256(b'a\0x' + b'b\0' + large).hexdigest()
    (tmp_path / 'a').unlink()
    assert file_digest(tmp_path) == hashlib.sha256(large).hexdigest(), 'one file has no name'


def test_compressed_content_is_bounded_by_the_size_of_its_file() -> None:
    assert (FLOOR, RATIO) == (64 * 2**20, 100), 'stated in docs/recordings.md'
    assert budget(7) == FLOOR + 700 and budget(7, floor=5) == 705
    content = bytes(3 * 2**20) + b'end'
    packed = gzip.compress(content)
    whole = unpacked(io.BytesIO(packed), 'gz', len(content))
    pieces = list(whole)
    assert b''.join(pieces) == content and max(map(len, pieces)) == 2**20
    short = unpacked(io.BytesIO(packed), 'gz', len(content) - 1)
    assert [len(next(short)) for _ in range(3)] == [2**20] * 3
    with pytest.raises(TooLarge, match=f'more than {len(content) - 1} bytes'):
        next(short)
    assert b''.join(unpacked(io.BytesIO(b'plain'), '', 5)) == b'plain'
    with pytest.raises(Damaged, match="unknown compression 'rar'"):
        next(unpacked(io.BytesIO(b''), 'rar', 9))
    with pytest.raises(Damaged, match='it does not decompress'):
        list(unpacked(io.BytesIO(packed[:-9]), 'gz', len(content)))


def test_new_files_have_the_rights_that_the_user_allows(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        atomic_write(tmp_path / 'a', 'x')
        with open_log(tmp_path / 'log'):
            pass
        open_lock(tmp_path / 'own', 'lock').close()
    finally:
        os.umask(before)
    rights = {name: stat.S_IMODE((tmp_path / name).stat().st_mode)
              for name in ('a', 'log', 'own', 'own/lock')}
    assert rights == {'a': 0o666, 'log': 0o666, 'own': 0o700, 'own/lock': 0o600}


def test_a_log_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for words in (b'first', b'second'):
        with open_log(tmp_path / 'log') as file:
            file.write(words)
    assert (tmp_path / 'log').read_bytes() == b'second'


@pytest.mark.parametrize(('before', 'replaced'), [
    (b'# own\n', True), (b'x\n# own\n', True), (b'# other\n', False), (b'', True),
    (b'x' * 4089 + b'\n# own\n', True), (b'x' * 4091 + b'\n# own\n', False)])
def test_the_mark_stands_in_the_first_4096_bytes(
    tmp_path: Path, before: bytes, replaced: bool
) -> None:
    file = tmp_path / 'a'
    file.write_bytes(before)
    if replaced:
        check_target(file, b'\n# own\n')
    else:
        with pytest.raises(UsageError, match='its first lines lack "# own", the mark'):
            check_target(file, b'\n# own\n')
    assert file.read_bytes() == before
