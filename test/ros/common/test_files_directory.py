"""Files that requests name lie below one folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from robot_dynid.errors import UsageError
from robot_dynid.ros.common.files_directory import FileParameters, RequestedFiles


def source_inside(folder: Path, name: str) -> Path:
    return RequestedFiles(str, str(folder)).source(name)


def file_inside(folder: Path, name: str) -> Path:
    return RequestedFiles(str, str(folder)).file(name)


def target_inside(folder: Path, name: str) -> Path:
    return RequestedFiles(str, str(folder)).target(name)


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
    (inside / '.hidden').mkdir()
    (inside / '.hidden' / 'c.yaml').write_text('x')
    return inside


def test_files_inside_are_found_however_they_are_named(folder: Path, tmp_path: Path) -> None:
    assert file_inside(folder, 'a.yaml') == file_inside(folder, './a.yaml') == folder / 'a.yaml'
    assert file_inside(folder, 'link.yaml') == folder / 'a.yaml'
    assert file_inside(folder, 'deeper//b.yaml') == folder / 'deeper' / 'b.yaml'
    assert file_inside(folder, str(folder / 'a.yaml')) == folder / 'a.yaml'
    (tmp_path / 'alias').symlink_to(folder)
    assert file_inside(tmp_path / 'alias', 'a.yaml') == folder / 'a.yaml'
    assert file_inside(tmp_path / 'alias', str(tmp_path / 'alias' / 'a.yaml')) == folder / 'a.yaml'
    assert file_inside(folder / '.hidden', str(folder / '.hidden' / 'c.yaml')).is_file()


OUTSIDE = ('../secret.yaml', 'out.yaml', 'up/secret.yaml', 'up/none.yaml', '/etc/hostname',
           '/etc/none', 'deeper/../a.yaml', '~/.bash_profile', '.hidden/c.yaml', '.none',
           'deeper/.none', 'loop/x', 'a\0b')


@pytest.mark.parametrize('name', OUTSIDE)
@pytest.mark.parametrize('place', [source_inside, file_inside, target_inside])
def test_requests_cannot_reach_or_probe_files_outside_the_folder(
    folder: Path, name: str, place: Callable[[Path, str], Path]
) -> None:
    """Nor is anything told about it: the answer is that to a name of nothing."""
    with pytest.raises(UsageError) as refused:
        place(folder, name)
    with pytest.raises(UsageError) as absent:
        place(folder, '../nothing' if place is target_inside else 'nothing')
    assert str(refused.value).partition(': ')[2] == str(absent.value).partition(': ')[2]


@pytest.mark.parametrize('name', ['none.yaml', 'deeper', '', 'pipe', 'loop', 'a' * 5000])
def test_file_inside_answers_special_files_as_absent_ones(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=': requests may not read it; give a name'):
        file_inside(folder, name)


def test_unreadable_files_are_answered_as_absent_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    for place in (source_inside, file_inside):
        with pytest.raises(UsageError, match=': requests may not read it; give a name'):
            place(folder, 'a.yaml')


def test_a_tilde_is_a_name_like_any_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    assert target_inside(folder, '~/new.yaml') == folder / '~' / 'new.yaml'


@pytest.mark.parametrize('ask', ['source', 'file', 'target'])
def test_refusals_are_logged_with_what_was_requested(folder: Path, ask: str) -> None:
    log: list[str] = []
    inside, off = RequestedFiles(log.append, str(folder)), RequestedFiles(
        log.append, str(folder), False)
    assert getattr(inside, ask)('a.yaml') == folder / 'a.yaml' and not log
    long = '../' + 'x' * 5000
    for files, name, words in ((inside, '../secret.yaml', 'requests may not'),
                               (inside, long, 'requests may not'), (inside, '../a\nb', r'a\nb'),
                               (inside, '../\x1b[2J\u202e', r'\x1b[2J\u202e'),
                               (off, 'a.yaml', 'file_requests is false')):
        with pytest.raises(UsageError):
            getattr(files, ask)(name)
        told = log.pop()
        assert told.startswith('file of a request refused: ') and words in told
        assert name[:4] in told or not name.isprintable()
        assert told.isprintable() and len(told) < 1000 and not log


def test_names_are_relative_to_the_folder_by_default_the_working_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    below, default = RequestedFiles(print, str(folder)), RequestedFiles(
        print, FileParameters().files_directory)
    for files in (below, default):
        assert files.target('deeper/new.yaml') == folder / 'deeper' / 'new.yaml'
        assert files.source('a.yaml') == folder / 'a.yaml'
        for name in ('up/new.yaml', '../new.yaml', '/new.yaml', ''):
            with pytest.raises(UsageError):
                files.target(name)
    everywhere = RequestedFiles(print, '/')
    assert everywhere.target(f'{tmp_path}/new.yaml') == tmp_path / 'new.yaml'
    with pytest.raises(UsageError):
        everywhere.target(f'{tmp_path}/.bash_profile')


def test_a_node_that_runs_in_the_root_folder_gives_nothing_away_unless_told_to(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir('/')
    with pytest.raises(UsageError, match='working directory of the node is /, the whole file sys'):
        RequestedFiles(print).source('etc/hostname')


def test_recordings_may_have_windows_and_stay_inside(folder: Path) -> None:
    files = RequestedFiles(print, str(folder))
    assert files.recording('a.yaml') == f'{folder}/a.yaml'
    assert files.recording('link.yaml[1:2.5]') == f'{folder}/a.yaml[1:2.5]'
    (folder / 'run[1:2]').write_text('x')
    (folder / 'odd').symlink_to(folder / 'run[1:2]')
    for name, message in (
            ('out.yaml[1:2]', 'requests may not read it'),
            ('../secret.yaml[1:]', 'requests may not read it'),
            ('a.yaml[2:1]', 'does not stop'), ('odd', 'rename it')):
        with pytest.raises(UsageError, match=message):
            files.recording(name)
