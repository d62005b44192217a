"""Files: only regular ones are read, up to a size; every output appears whole or not at all.

Compressed ones are unpacked piece by piece, up to a multiple of their size.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import BufferedWriter
from pathlib import Path
from typing import Any, BinaryIO

from robot_dynid.errors import DynIdError, UsageError, clipped

#: largest text (robot, recipe, model, options) that is read [bytes]
TEXT_BYTES = 32_000_000
#: where the mark of this software is looked for in a file that would be replaced [bytes]
MARK_BYTES = 4096
#: bytes read at once for a digest
DIGEST_BYTES = 1 << 20
#: compressed content may be so many times as large as the file that holds it, beyond FLOOR [bytes]
RATIO, FLOOR = 100, 1 << 26
#: modules that open compressed data, by mcap's names
OPENERS = {'gz': 'gzip', 'bz2': 'bz2', 'lz4': 'lz4.frame', 'zstd': 'zstandard'}
#: how files are opened: for reading without waiting, a folder, a new one
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(path: str | Path, missing: type[DynIdError] = UsageError) -> BinaryIO:
    """Open a regular file for reading; devices, pipes and folders are refused without waiting.

    Raises ``missing`` where there is no such file or it cannot be opened.
    """
    try:
        handle = os.open(path, READ)
    except (OSError, ValueError) as error:
        raise missing(f'{clipped(str(path))}: cannot be read ({_reason(error)})') from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise missing(f'{path}: is {_kind(mode)}, expected a file')
    return os.fdopen(handle, 'rb')


def read_text(
    path: str | Path, damaged: type[DynIdError] = UsageError,
    missing: type[DynIdError] = UsageError, limit: int = TEXT_BYTES,
) -> str:
    """Return the text of a regular file in UTF-8; arguments and errors as of `read_bytes`."""
    try:
        return read_bytes(path, damaged, missing, limit).decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise damaged(f'{path}: not a text file (byte {error.start} is not UTF-8)') from None


def read_bytes(
    path: str | Path, damaged: type[DynIdError] = UsageError,
    missing: type[DynIdError] = UsageError, limit: int = TEXT_BYTES,
) -> bytes:
    """Return the content of a regular file.

    Raises ``missing`` as `open_regular`, ``damaged`` for more than ``limit`` bytes.
    """
    with open_regular(path, missing) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise missing(f'{path}: cannot be read ({_reason(error)})') from None
    if len(content) > limit:
        raise damaged(f'{path}: has more than {limit} bytes: check that it is the right file')
    return content


class Damaged(Exception):
    """Data that cannot be what was written; the words say why."""


class TooLarge(Damaged):
    """Compressed data that unpacks to more than is allowed."""


def budget(size: int, floor: int = FLOOR) -> int:
    """Return the most bytes that a file of ``size`` bytes may unpack to."""
    return floor + RATIO * size


def unpacked(packed: BinaryIO, compression: str, limit: int) -> Iterator[bytes]:
    """Yield the content of ``packed`` in pieces of at most DIGEST_BYTES.

    ``compression`` is zstd, lz4, gz, bz2, or empty for none. Raises Damaged when it does
    not unpack, TooLarge where it has more than ``limit`` bytes.
    """
    done = 0
    try:
        opened: Any = packed
        if compression:
            opened = import_module(OPENERS[compression]).open(packed)
        while piece := opened.read(DIGEST_BYTES):
            done += len(piece)
            if done > limit:
                break
            yield piece
    except KeyError:
        raise Damaged(f'unknown compression {clipped(compression)!r}') from None
    except Exception as error:  # the libraries have a family of errors each
        raise Damaged(f'it does not decompress ({clipped(str(error))})') from None
    if done > limit:
        raise TooLarge(f'it unpacks to more than {limit} bytes')


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of the bytes of a file, or of a folder with the names of its files.

    Raises UsageError where one cannot be read.
    """
    place, digest = Path(path), hashlib.sha256()
    try:
        parts = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    except OSError as error:
        raise UsageError(f'{path}: cannot be read ({_reason(error)})') from None
    for part in parts:
        if len(parts) > 1:
            digest.update(f'{part.name}\0'.encode('utf-8', 'surrogateescape'))
        with open_regular(part) as file:
            while block := file.read(DIGEST_BYTES):
                digest.update(block)
    return digest.hexdigest()


def check_target(path: str | Path, mark: bytes | None = None, inside: Path | None = None) -> Path:
    """Return ``path`` as a target that `atomic_write` accepts, now; nothing is changed.

    A file that is replaced must have ``mark`` in its first MARK_BYTES, or be empty: others are not
    of this software. A mark that begins with a line feed is found at the start of the file, too.
    None: every file may be replaced. With ``inside``, the target must lie below it.

    Raises UsageError saying what is there instead and what to do.
    """
    with _folder_of(path, inside) as folder:
        _check(path, folder, mark)
    return Path(path)


def atomic_write(
    path: str | Path, content: str | bytes, mark: bytes | None = None, inside: Path | None = None
) -> str:
    """Write a file as `atomic_writer` does, and return the SHA-256 of its bytes."""
    data = content.encode() if isinstance(content, str) else content
    with atomic_writer(path, mark, inside) as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


@contextmanager
def atomic_writer(
    path: str | Path, mark: bytes | None = None, inside: Path | None = None,
    keep: str | None = None,
) -> Iterator[BufferedWriter]:
    """Open a new file that takes the name ``path`` once it is whole and on the disk.

    It grows under a random name in the same folder, made exclusively; a reader sees the file
    before or the one after, also with several writers, and an error leaves the one before. What
    a killed writer leaves is named ``.robot_dynid_*.tmp`` and may be removed. Owner and access
    rights are those of the file before; its other hard links keep the old content. With ``keep``
    that file stays, under this name in the same folder. Other arguments as of `check_target`.

    Raises UsageError as `check_target`, DynIdError when it cannot be written.
    """
    with _folder_of(path, inside) as folder:
        status = _check(path, folder, mark)
        rights = 0o666 if status is None else stat.S_IMODE(status.st_mode) & 0o666
        temporary = f'.robot_dynid_{secrets.token_hex(8)}.tmp'
        try:
            handle = os.open(temporary, NEW, rights, dir_fd=folder)
            try:
                with os.fdopen(handle, 'wb') as file:
                    if status is not None:
                        _take_over(handle, status)
                    yield file
                    file.flush()
                    os.fsync(handle)
                _check(path, folder, mark)  # what has come there meanwhile
                name = Path(path).name
                if keep is not None:
                    _keep(name, keep, folder)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
        except OSError as error:
            raise DynIdError(f'{path}: cannot be written ({_reason(error)})') from None
        with suppress(OSError):  # some file systems cannot; the name is on the disk soon anyway
            os.fsync(folder)


@contextmanager
def open_log(path: str | Path) -> Iterator[BinaryIO]:
    """Open a new file for output that is kept as it comes; one of an earlier run is removed.

    Raises UsageError as `check_target`, DynIdError when it cannot be made.
    """
    with _folder_of(path) as folder:
        _check(path, folder, None)
        name = Path(path).name
        try:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            handle = os.open(name, NEW, 0o666, dir_fd=folder)
        except OSError as error:
            raise DynIdError(f'{path}: cannot be written ({_reason(error)})') from None
    with os.fdopen(handle, 'wb') as file:
        yield file


def open_lock(folder: Path, name: str) -> BinaryIO:
    """Open the empty file ``name`` to be locked, in a folder of this user only.

    Its path may be known to others, as in /tmp: both are made where they are missing, and links,
    and what belongs to others, are refused. Raises DynIdError saying so.
    """
    path = folder / name
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        opened = os.open(folder, FOLDER | os.O_NOFOLLOW)
        try:
            _require_own(folder, os.fstat(opened))
            os.fchmod(opened, 0o700)
            handle = os.open(name, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
                             | os.O_CLOEXEC, 0o600, dir_fd=opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be opened ({_reason(error)}); remove {folder}') from None
    file = os.fdopen(handle, 'rb')
    try:
        status = os.fstat(handle)
        _require_own(path, status)
        if not stat.S_ISREG(status.st_mode):
            raise DynIdError(f'{path}: is {_kind(status.st_mode)}; remove it')
    except DynIdError:
        file.close()
        raise
    return file


def _require_own(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise DynIdError(f'{path}: belongs to another user (id {status.st_uid}); remove it, or '
                         'set TMPDIR to a folder of your own')


@contextmanager
def _folder_of(path: str | Path, inside: Path | None = None) -> Iterator[int]:
    """Open the folder of a target: it stays the same one, whatever is renamed meanwhile."""
    target = Path(path)
    if target.name in ('', '.', '..') or str(path).endswith(os.sep):
        raise UsageError(f'{path}: is a folder, give the name of a file')
    try:
        folder = os.open(target.parent, FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f'{path}: there is no folder {target.absolute().parent}; create it first'
                         ) from None
    except (OSError, ValueError) as error:
        raise _no_path(path, error) from None
    try:
        if inside is not None:
            opened = Path(os.readlink(f'/proc/self/fd/{folder}'))  # of the folder that is open
            if not opened.is_relative_to(inside.resolve()):
                raise UsageError(f'{path}: lies outside {inside.resolve()}; give a path below it')
        yield folder
    finally:
        os.close(folder)


def _check(path: str | Path, folder: int, mark: bytes | None) -> os.stat_result | None:
    """Return the status of the file that is replaced, None without one. Raises UsageError."""
    name = Path(path).name
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        there = None
    except (OSError, ValueError) as error:
        raise _no_path(path, error) from None
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise UsageError(f'{path}: is {_kind(there.st_mode)}; give the name of a file')
    if not _permitted(name, folder, there):
        raise UsageError(f'{path}: no permission to write there')
    if there is not None and mark is not None:
        _require_mark(path, folder, mark)
    return there


def _permitted(name: str, folder: int, there: os.stat_result | None) -> bool:
    """Return whether a file may be replaced, or made where there is none."""
    if not os.access('.', os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
        return False
    if there is None:
        return True
    holder = os.fstat(folder)
    if holder.st_mode & stat.S_ISVTX and \
            os.geteuid() not in (0, there.st_uid, holder.st_uid):
        return False  # as in /tmp: only the owner may
    return bool(there.st_mode & 0o222) and \
        os.access(name, os.W_OK, dir_fd=folder, effective_ids=True)


def _require_mark(path: str | Path, folder: int, mark: bytes) -> None:
    try:
        handle = os.open(Path(path).name, READ | os.O_NOFOLLOW, dir_fd=folder)
        with os.fdopen(handle, 'rb') as file:
            head = file.read(MARK_BYTES)
    except OSError as error:
        raise UsageError(f'{path}: exists and cannot be read ({_reason(error)}); give another '
                         'name, or remove it first') from None
    if head and mark not in b'\n' + head:
        words = clipped(mark.decode(errors='replace').strip())
        raise UsageError(
            f'{path}: exists and is not overwritten, because its first lines lack "{words}", the '
            'mark of such files (earlier versions may lack it); give another name, or remove the '
            'file first')


def set_aside(path: Path, other: str) -> None:
    """Give a file the name ``other`` in its folder. Raises DynIdError when that cannot be."""
    try:
        with _folder_of(path) as folder:
            os.rename(path.name, other, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be renamed ({_reason(error)})') from None


def _keep(name: str, other: str, folder: int) -> None:
    """Give a file another name, beside its own where the file system allows it."""
    try:
        os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # no hard links there: the file stays, but under that name only
        os.rename(name, other, src_dir_fd=folder, dst_dir_fd=folder)


def _take_over(handle: int, before: os.stat_result) -> None:
    """Give a new file owner and rights of the one before; never rights to another group."""
    rights = stat.S_IMODE(before.st_mode) & 0o777
    for owner in (before.st_uid, -1):
        try:
            os.fchown(handle, owner, before.st_gid)
            break
        except OSError:
            continue
    else:
        rights &= 0o707
    os.fchmod(handle, rights)


def _no_path(path: str | Path, error: Exception) -> UsageError:
    return UsageError(f'{clipped(str(path))}: not a path of a file ({_reason(error)})')


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, 'a symbolic link'), (stat.S_ISDIR, 'a folder'),
             (stat.S_ISFIFO, 'a pipe'), (stat.S_ISSOCK, 'a socket'))
    return next((words for test, words in kinds if test(mode)), 'a device')


def _reason(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)


def check_folder(path: str | Path) -> None:
    """Raise UsageError where a folder, which may be missing, cannot take files."""
    if why := disk_space(Path(path))[0]:
        raise UsageError(f'{path}: {why}; give another folder')


def make_folder(path: str | Path) -> None:
    """Make a folder where it is missing. Raises as `check_folder`, DynIdError when it cannot."""
    check_folder(path)
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be created ({_reason(error)})') from None


def disk_space(folder: Path) -> tuple[str, float]:
    """Return the reason why nothing can be written below a folder, or '', and the bytes left."""
    at = folder
    try:
        while not at.exists() and at != at.parent:
            at = at.parent
        if not at.is_dir():
            return f'{at} is not a folder', 0.0
        if not os.access(at, os.W_OK | os.X_OK):
            return f'{at} is not writable', 0.0
        return '', float(shutil.disk_usage(at).free)
    except OSError as error:
        return str(error.strerror or error), 0.0
