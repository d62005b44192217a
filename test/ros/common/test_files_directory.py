"""Files that requests name lie below one folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from robot_dynid.errors import UsageError
from robot_dynid.ros.common.files_directory import file_inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / 'files'
    (inside / 'deeper').mkdir(parents=True)
    for path in (inside / 'a.yaml', inside / 'deeper' / 'b.yaml', tmp_path / 'secret.yaml'):
        path.write_text('x')
    (inside / 'link.yaml').symlink_to(inside / 'a.yaml')
    (inside / 'out.yaml').symlink_to(tmp_path / 'secret.yaml')
    (inside / 'up').symlink_to(tmp_path)
    (inside / 'loop').symlink_to(inside / 'loop')
    os.mkfifo(inside / 'pipe')
    return inside


def test_files_inside_are_found_however_they_are_named(folder: Path, tmp_path: Path) -> None:
    assert file_inside(folder, 'a.yaml') == folder / 'a.yaml'
    assert file_inside(folder, 'link.yaml') == folder / 'a.yaml'
    assert file_inside(folder, 'deeper/../deeper/b.yaml') == folder / 'deeper' / 'b.yaml'
    assert file_inside(folder, str(folder / 'a.yaml')) == folder / 'a.yaml'
    (tmp_path / 'alias').symlink_to(folder)
    assert file_inside(tmp_path / 'alias', 'a.yaml') == folder / 'a.yaml'


@pytest.mark.parametrize('name', [
    '../secret.yaml', 'out.yaml', 'up/secret.yaml', '/etc/hostname', 'deeper/../../secret.yaml'])
def test_nothing_outside_is_reached(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"'{name}' lies outside .*files_directory; give a path"):
        file_inside(folder, name)


@pytest.mark.parametrize('name', ['none.yaml', 'deeper', '', 'pipe', 'loop', 'a' * 5000, 'a\0b'])
def test_what_is_no_file_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r'no file|not a path'):
        file_inside(folder, name)
