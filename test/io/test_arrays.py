"""Recordings mapped from NumPy files, part by part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.io.arrays import map_arrays

JOINTS = ('a', 'b')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with 25 samples at 10 Hz."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / 'time.npy', np.arange(25) / 10.0)
    for name in ('position', 'effort'):
        np.save(tmp_path / f'{name}.npy', rng.standard_normal((25, 2)))
    return tmp_path


def test_parts_are_the_whole(folder: Path) -> None:
    logs = map_arrays(folder, JOINTS, seconds=0.8)
    assert len(logs) == 3
    assert logs.sources == (str(folder),)
    for name in ('time', 'position', 'effort'):
        whole = np.concatenate([
            getattr(log, name)[log.part.own(log.time)] for log in logs if log.part is not None])
        np.testing.assert_array_equal(whole, np.load(folder / f'{name}.npy'))
    assert logs[0].velocity is None
    assert logs[-1].joints == JOINTS
    assert [log.source for log in logs[1:]] == [
        f'{folder}, 0.8 to 1.6 s', f'{folder}, 1.6 to 2.4 s'
    ]
    with pytest.raises(IndexError):
        logs[3]


@pytest.mark.parametrize(('name', 'content', 'words'), [
    ('position', None, 'no such file'), ('effort', np.zeros((25, 3)), r'\(25, 3\)'),
    ('time', np.zeros(25), 'do not increase'), ('time', np.zeros((25, 1)), r'\(T,\)'),
    ('effort', np.zeros((25, 2), np.float32), 'float32'), ('time', b'no array', 'time.npy'),
    ('time', b'', 'time.npy'),
    ('time', b'\x93NUMPY\x01\x00\xd0\x07' + 2000 * b' ', 'a header of 2000 bytes'),
    ('time', b'\x93NUMPY\x02\x00\x00\x00\x01\x00', 'a header of 65536 bytes'),
])
def test_unusable_files_are_named(
    folder: Path, name: str, content: np.ndarray | bytes | None, words: str
) -> None:
    path = folder / f'{name}.npy'
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    with pytest.raises(DataError, match=words):
        map_arrays(folder, JOINTS)
