"""The page of trust: made of records that were measured, none of which lacks a figure."""

from __future__ import annotations

import copy
import json
import runpy
import subprocess
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.errors import DataError
from robot_dynid_evaluation.trust import FRESH, ROOT, SOURCES, VARIABLE, digest, keep, outdated

trust: Any = SimpleNamespace(**runpy.run_path(str(ROOT / 'docs' / 'trust_page.py')))

RECORDS = trust.records()


def test_the_page_is_that_of_its_records() -> None:
    assert trust.PAGE.read_text() == trust.page(RECORDS), 'make trust'


@pytest.mark.always
@pytest.mark.parametrize('record', RECORDS, ids=lambda one: f'{one["kind"]} {one["part"]}'.strip())
def test_records_are_no_older_than_the_code_they_speak_of(record: dict[str, Any]) -> None:
    """By the date of the commit: what passes today passes when it is checked out again."""
    done = subprocess.run(['git', '-C', str(ROOT), 'log', '-1', '--format=%cs'],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip('committed files: not a git repository')
    changed = outdated(record, date.fromisoformat(done.stdout.strip()))
    assert not changed, (
        f'docs/trust: {record["kind"]} {record["part"]} was measured on {record["date"]}, more '
        f'than {FRESH} days ago, and these changed since: {", ".join(changed)}. Measure again: '
        f'{VARIABLE}=docs/trust {trust.KINDS[record["kind"]].command}, then make trust')


def test_outdated_names_what_changed_once_a_record_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(SOURCES) == set(trust.KINDS)
    assert all((ROOT / source).exists() for sources in SOURCES.values() for source in sources)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep('resumed', {'kills': 2, 'recordings': 3, 'difference': 0.0}, 12.0)
    (record,) = trust.records(tmp_path)
    measured = date.fromisoformat(record['date'])
    fresh, old = (measured + timedelta(days=FRESH + more) for more in (0, 1))
    assert outdated(record, old) == [], 'nothing changed'
    first, *others = SOURCES['resumed']
    record['sources'][first] = 'another'
    assert outdated(record, old) == [first]
    del record['sources']
    assert outdated(record, old) == [first, *others]
    assert outdated(record, fresh) == []


def test_digest_is_that_of_names_and_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('robot_dynid_evaluation.trust.ROOT', tmp_path)
    seen = set()
    for name, text in (('a.py', '1'), ('a.py', '2'), ('b.py', '2'), ('b.pyc', '3')):
        (tmp_path / 'code').mkdir(exist_ok=True)
        (tmp_path / 'code' / name).write_text(text)
        seen.add(digest('code'))
    assert len(seen) == 3, 'what is made of the code does not count'


@pytest.mark.parametrize('kind', trust.KINDS)
def test_every_kind_was_measured_and_needs_all_its_figures(kind: str) -> None:
    record = next(one for one in RECORDS if one['kind'] == kind)
    trust.check(record, 'as it is')
    for name in trust.HEAD:
        with pytest.raises(DataError, match=f'it: lacks {name}'):
            trust.check({key: value for key, value in record.items() if key != name}, 'it')
    for name in trust.KINDS[kind].figures:
        for wrong in ({}, {name: None}, {name: float('nan')}):
            figures = {key: value for key, value in record['figures'].items() if key != name}
            with pytest.raises(DataError, match=f'it: lacks {name}; measure'):
                trust.check({**record, 'figures': {**figures, **wrong}}, 'it')
    for name in trust.KINDS[kind].columns_of_rows:
        own = copy.deepcopy(record)
        del own['figures']['rows'][-1][name]
        last = len(own['figures']['rows'])
        with pytest.raises(DataError, match=f'lacks {name} of row {last}'):
            trust.check(own, 'it')


def test_records_are_kept_where_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {'kills': 2, 'recordings': 3, 'difference': 0.0, 'more': 1}
    monkeypatch.delenv(VARIABLE, raising=False)
    keep('resumed', found, 12.0)
    monkeypatch.setenv(VARIABLE, str(tmp_path / 'kept'))
    keep('resumed', found, 12.0, 'one of two')
    assert [one.name for one in (tmp_path / 'kept').iterdir()] == ['resumed-one-of-two.json']
    (record,) = trust.records(tmp_path / 'kept')
    assert '| one of two | 2 | 3 | byte for byte |' in trust.page([record])
    assert 'Not measured yet' in trust.page([])
    keep('resumed', {'kills': 2, 'recordings': 3}, 12.0, 'other')
    with pytest.raises(DataError, match=r'resumed-other\.json: lacks difference'):
        trust.records(tmp_path / 'kept')
    (tmp_path / 'kept' / 'resumed-other.json').unlink()
    (tmp_path / 'kept' / 'x.json').write_text(json.dumps({**record, 'kind': 'other'}))
    with pytest.raises(DataError, match=r"x.json: there is no kind of record 'other'"):
        trust.records(tmp_path / 'kept')


def test_a_row_with_nothing_to_measure_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A motion that goes on, as it shall, has no seconds to rest; how it went is still told."""
    row = {'what': 'client killed', 'load': 0, 'runs': 1, 'ours': float('nan'),
           'peer': float('nan'), 'kept': True}
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep('stops', {'rows': [row]}, 2.0)
    assert '| client killed | 0 | 1 | - | - | yes |' in trust.page(trust.records(tmp_path))
    keep('stops', {'rows': [row, {**row, 'what': 'paused'}, {**row, 'load': 8, 'ours': 0.25,
                                                             'kept': False}]}, 2.0)
    assert '| client killed | 0; 8 | 1; 1 | -; 0.25 | - | **no** |\n| paused | 0 ' in trust.page(
        trust.records(tmp_path))
    keep('stops', {'rows': [{**row, 'runs': float('nan')}]}, 2.0)
    with pytest.raises(DataError, match='lacks runs of row 1'):
        trust.records(tmp_path)


def test_lines_are_straight() -> None:
    offset, slope, off = trust.line([1.0, 2.0, 4.0], [5.0, 7.0, 11.0])
    assert (offset, slope, off) == (pytest.approx(3.0), pytest.approx(2.0), pytest.approx(0.0))
    assert trust.line([1.0, 2.0, 3.0], [1.0, 2.0, 6.0])[2] > 0.3
