"""A disk without room, for whatever is written below one folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from robot_dynid.io import bag_writer


@contextmanager
def full_disk(folder: Path, room: int = 0) -> Iterator[None]:
    """Let recordings below ``folder`` grow by ``room`` bytes in all; the last write is cut."""
    left, pwrite = [room], os.pwrite

    def limited(descriptor: int, data: bytes, offset: int) -> int:
        if not Path(f'/proc/self/fd/{descriptor}').resolve().is_relative_to(folder.resolve()):
            return pwrite(descriptor, data, offset)
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = pwrite(descriptor, data[:left[0]], offset)
        left[0] -= done
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_writer.os, 'pwrite', limited)
        yield
