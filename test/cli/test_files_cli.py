"""cli/files.py: outputs that may not be written, reports that are asked for, options as text."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from robot_dynid.cli.files import (
    check_outputs,
    is_robot,
    recording_digests,
    report_mark,
    reported,
    with_text,
    written_before,
)
from robot_dynid.document import Chapter, Report, Section
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.report.html import MARK


def test_no_output_is_an_input_or_another_output(tmp_path: Path) -> None:
    data, out, report = (str(tmp_path / name) for name in ('a.csv', 'm.yaml', 'r.html'))
    Path(data).write_text('')
    check_outputs((out, b'mark'), (None, None), inputs=(data, None), reports=[report, None])
    for outputs, inputs, reports, message in (
            ([(data, None)], [data], [], f'{data}: is also read by this command'),
            ([(data, None)], [f'{data}[2:5]'], [], 'is also read by this command'),
            ([(out, None), (out, None)], [], [], f'{out}: is also written by this command'),
            ([(out, None)], [], [out], 'give the output another name'),
            ([], [data], [data], 'is also read')):
        with pytest.raises(UsageError) as raised:
            check_outputs(*outputs, inputs=inputs, reports=reports)
        assert message in str(raised.value)
    Path(out).write_text('of others')
    with pytest.raises(UsageError):
        check_outputs((out, b'mark'))
    check_outputs((out, None))
    assert report_mark(None) is None and report_mark('r.html') == MARK


@pytest.mark.parametrize(('report', 'as_json', 'verbose', 'brief', 'given'), [
    (False, False, False, True, 'brief'), (False, False, False, False, 'none'),
    (False, False, True, True, 'whole'), (False, False, True, False, 'whole'),
    (True, False, False, True, 'brief'), (True, False, False, False, 'whole'),
    (True, False, True, True, 'whole'), (False, True, False, True, 'plain'),
    (True, True, True, False, 'plain')])
def test_chapters_are_brief_unless_more_is_asked_for(
    report: bool, as_json: bool, verbose: bool, brief: bool, given: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(title: str) -> Report:
        return Report('', '', (Chapter(title, (Section('s', text='t'),)),))

    saved: list[tuple[str, str]] = []
    monkeypatch.setattr('robot_dynid.report.html.write_report', lambda one, path: saved.append(
        (one.chapters[0].title, path)))
    found: Any = reported(
        Namespace(report='r.html' if report else None, json=as_json, verbose=verbose),
        lambda: made('whole'), (lambda: made('brief')) if brief else None)
    assert saved == ([('whole', 'r.html')] if report else [])
    if given == 'plain':
        assert found == [{'title': 'whole', 'sections': [{'title': 's', 'text': 't'}]}]
    else:
        assert [chapter.title for chapter in found] == ([] if given == 'none' else [given])


def test_errors_name_the_files_that_were_written_before_them() -> None:
    with pytest.raises(DynIdError, match=r'^no room \(m.yaml, r.html is written\)$'), \
            written_before('m.yaml', None, 'r.html'):
        raise DynIdError('no room')


def test_options_come_from_flags_or_from_a_text_and_not_from_both(tmp_path: Path) -> None:
    assert with_text({'seed': 1}, None) == {'seed': 1}
    assert with_text({'seed': 1}, '{poses: 30}') == {'poses': 30, 'seed': 1}
    for suffix in ('.yaml', '.yml'):
        path = tmp_path / f'options{suffix}'
        path.write_text('dwell: 2.5\n')
        assert with_text({}, str(path)) == {'dwell': 2.5}
        path.write_text('[1]')
        with pytest.raises(UsageError, match=f'{path}: options must be a mapping such as'):
            with_text({}, str(path))
    with pytest.raises(UsageError, match="option 'seed' is given as --seed and in --options"):
        with_text({'seed': 1}, '{poses: 3, seed: 2}')


@pytest.mark.parametrize(('name', 'text', 'robot'), [
    ('ur10e', None, True), ('nobody', None, False), ('a.urdf', None, True),
    ('a.xacro', None, True), ('r.yaml', 'effort_kind: torque\nurdf: a.urdf\n', True),
    ('s.yml', 'screws : []\n', True), ('m.yaml', 'format: x\nnested:\n  urdf: a\n', False),
    ('absent.yaml', None, False)])
def test_a_robot_is_told_from_a_model_by_name_or_keys(
    name: str, text: str | None, robot: bool, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
        name = str(tmp_path / name)
    assert is_robot(name) is robot


def test_a_recording_and_its_windows_have_one_digest(tmp_path: Path) -> None:
    path = tmp_path / 'a.csv'
    path.write_bytes(b'abc')
    digest = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    assert recording_digests([str(path), f'{path}[0:2]', f'{path}[2:5]']) == {str(path): digest}
