"""The parts of rosbags that are used beyond its documented interface are where they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from rosbags.rosbag2 import storage_mcap

from robot_dynid.io.rosbags_compat import missing_parts


def test_the_installed_rosbags_has_all_that_is_used(tmp_path: Path) -> None:
    assert missing_parts(tmp_path) == []


def test_what_a_version_moves_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(storage_mcap.McapWriter, 'close_chunk')
    (missing,) = missing_parts(tmp_path)
    assert missing.startswith('rosbags 0.')
    assert missing.endswith('has no MCAP storage.close_chunk')
