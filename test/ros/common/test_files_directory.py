"""Files that requests name lie below one folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from robot_dynid.errors import UsageError
from robot_dynid.ros.common.files_directory import RequestedFiles, file_inside


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


@pytest.mark.parametrize('ask', ['source', 'file', 'target'])
def test_refusals_are_logged_with_what_was_requested(folder: Path, ask: str) -> None:
    log: list[str] = []
    inside, off = RequestedFiles(log.append, str(folder)), RequestedFiles(
        log.append, str(folder), False)
    assert getattr(inside, ask)('a.yaml') == folder / 'a.yaml' and not log
    long = '../' + 'x' * 5000
    for files, name, words in ((inside, '../secret.yaml', 'lies outside'),
                               (inside, long, 'lies'), (inside, '../a\nb', r'a\nb'),
                               (off, 'a.yaml', 'file_requests is false')):
        with pytest.raises(UsageError):
            getattr(files, ask)(name)
        told = log.pop()
        assert told.startswith('file of a request refused: ') and words in told
        assert name[:4] in told and told.isprintable() and len(told) < 1000 and not log


def test_names_are_relative_to_the_folder_or_to_where_the_node_was_started(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    below, anywhere = RequestedFiles(print, str(folder)), RequestedFiles(print)
    assert below.target('deeper/new.yaml') == folder / 'deeper' / 'new.yaml'
    assert anywhere.target('new.yaml') == tmp_path / 'new.yaml'
    assert anywhere.source('files/a.yaml') == folder / 'a.yaml'
    for name in ('up/new.yaml', '../new.yaml', '/new.yaml', ''):
        with pytest.raises(UsageError):
            below.target(name)


def test_recordings_may_have_windows_and_stay_inside(folder: Path) -> None:
    files = RequestedFiles(print, str(folder))
    assert files.recording('a.yaml') == f'{folder}/a.yaml'
    assert files.recording('link.yaml[1:2.5]') == f'{folder}/a.yaml[1:2.5]'
    (folder / 'odd').symlink_to(folder / 'run[1:2]')
    for name, message in (
            ('out.yaml[1:2]', 'lies outside'), ('../secret.yaml[1:]', 'lies outside'),
            ('a.yaml[2:1]', 'does not stop'), ('odd', 'rename it')):
        with pytest.raises(UsageError, match=message):
            files.recording(name)
