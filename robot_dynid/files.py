"""Files: only regular ones are read, up to a size; every output appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import BinaryIO

from robot_dynid.errors import DynIdError, UsageError, clipped

#: largest text (robot, recipe, model, options) that is read [bytes]
TEXT_BYTES = 32_000_000
#: where the mark of this software is looked for in a file that would be replaced [bytes]
HEAD = 4096


def open_regular(path: str | Path, missing: type[DynIdError] = UsageError) -> BinaryIO:
    """Open a regular file for reading; devices, pipes and folders are refused without waiting.

    Raises ``missing`` where there is no such file or it cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
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
    """Return the text of a regular file.

    Raises ``missing`` as `open_regular`, ``damaged`` for more than ``limit`` bytes and for what is
    no UTF-8.
    """
    with open_regular(path, missing) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise missing(f'{path}: cannot be read ({_reason(error)})') from None
    if len(content) > limit:
        raise damaged(f'{path}: has more than {limit} bytes; is it the right file?')
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise damaged(f'{path}: is no text (byte {error.start} is no UTF-8)') from None


def check_target(path: str | Path, mark: bytes | None = None, inside: Path | None = None) -> Path:
    """Return ``path`` as a target that `atomic_write` accepts, now; nothing is changed.

    A file that is replaced must have ``mark`` in its first HEAD bytes, or be empty: others are not
    of this software. None: every file may be. With ``inside``, the target must lie below it.

    Raises UsageError saying what is there instead and what to do.
    """
    target = Path(path)
    try:
        folder = target.parent.resolve()
        if inside is not None and not folder.is_relative_to(inside.resolve()):
            raise UsageError(f'{path}: lies outside {inside.resolve()}; give a path below it')
        if target.name in ('', '.', '..'):
            raise UsageError(f'{path}: is a folder, give the name of a file')
        if not folder.is_dir():
            raise UsageError(f'{path}: there is no folder {folder}; make it first')
        there = _mode(target)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f'{clipped(str(path))}: is no path for a file ({_reason(error)})'
                         ) from None
    if there is not None and not stat.S_ISREG(there):
        raise UsageError(f'{path}: is {_kind(there)}; give the name of a file')
    if not os.access(target if there is not None else folder, os.W_OK) or \
            not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f'{path}: no permission to write there')
    if there is not None and mark is not None:
        with open_regular(target) as file:
            head = file.read(HEAD)
        if head and mark not in head:
            raise UsageError(f'{path}: exists and was not written as such a file; give another '
                             'name or remove it first')
    return target


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
    path: str | Path, mark: bytes | None = None, inside: Path | None = None
) -> Iterator[BufferedWriter]:
    """Open a new file that takes the name ``path`` once it is whole and on the disk.

    It grows under a random name beside the target, made exclusively; a reader sees the file before
    or the one after, also with several writers, and an error leaves the one before. Access rights
    are those of the file before. Arguments as of `check_target`.

    Raises UsageError as `check_target`, DynIdError when it cannot be written.
    """
    target = check_target(path, mark, inside)
    temporary = f'.{target.name[:100]}.{secrets.token_hex(8)}.tmp'
    try:
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be written ({_reason(error)})') from None
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                         | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, 'wb') as file:
                yield file
                file.flush()
                before = _mode(target.name, folder)
                if before is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(before))
                os.fsync(file.fileno())
            if before is not None and not stat.S_ISREG(before):
                raise UsageError(f'{path}: has become {_kind(before)} meanwhile; nothing written')
            os.replace(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        with suppress(OSError):  # some file systems cannot; the name is on the disk soon anyway
            os.fsync(folder)
    except OSError as error:
        raise DynIdError(f'{path}: cannot be written ({_reason(error)})') from None
    finally:
        os.close(folder)


def _mode(path: str | Path, folder: int | None = None) -> int | None:
    """Return the mode of what is at a path itself, not behind a link; None: nothing."""
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, 'a symbolic link'), (stat.S_ISDIR, 'a folder'),
             (stat.S_ISFIFO, 'a pipe'), (stat.S_ISSOCK, 'a socket'))
    return next((words for test, words in kinds if test(mode)), 'a device')


def _reason(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)
