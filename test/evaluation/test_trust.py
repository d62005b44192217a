"""The page of trust: made of records that were measured, none of which lacks a figure."""

from __future__ import annotations

import copy
import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.errors import DataError
from robot_dynid_evaluation.trust import ROOT, VARIABLE, keep

trust: Any = SimpleNamespace(**runpy.run_path(str(ROOT / 'docs' / 'trust_page.py')))

RECORDS = trust.records()


def test_the_page_is_that_of_its_records() -> None:
    assert trust.PAGE.read_text() == trust.page(RECORDS), 'make trust'


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
