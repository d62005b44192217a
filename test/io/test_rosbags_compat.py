"""The parts of rosbags that are used beyond its documented interface are where they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rosbags.rosbag2 import StoragePlugin, Writer

from robot_dynid.io.rosbags_compat import closed


@pytest.mark.parametrize(('plugin', 'names'), [
    ('MCAP', ('path', 'bio', 'chunk', 'close_chunk')), ('SQLITE3', ('path', 'conn'))])
def test_the_installed_rosbags_has_all_that_is_used(
    tmp_path: Path, plugin: str, names: tuple[str, ...]
) -> None:
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin[plugin]) as writer:
        storage: Any = writer.storage
        assert [name for name in names if not hasattr(storage, name)] == []
        assert plugin != 'MCAP' or hasattr(storage.chunk, 'msgs')
    writer = Writer(tmp_path / 'text', version=9, storage_plugin=StoragePlugin[plugin])
    writer.open()
    assert 'rosbag2_bagfile_information' in closed(writer)
