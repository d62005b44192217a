"""io/tables/text.py, rows.py, table.py: encodings, lines, dates and names, however a text comes in
pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.io.tables.form import Asked
from robot_dynid.io.tables.rows import CONSTANT, DATE, IGNORED, LINE_BYTES, lines_from
from robot_dynid.io.tables.table import arrays_of
from robot_dynid.io.tables.text import HEAD, read_text_table
from robot_dynid.types import FloatArray


def read(
    *pieces: bytes, texts: dict[int, str] | None = None
) -> tuple[tuple[str, ...], FloatArray]:
    """Return names and values of a text that comes in pieces; ``texts`` are columns of text."""
    layout, rows = read_text_table('log.csv', pieces, Asked())
    return layout.columns, np.concatenate(list(rows(texts or {})))


def test_a_character_may_lie_in_two_pieces() -> None:
    """The format is detected from the first ones, which end anywhere."""
    raw = ('t,state,q\n' + ''.join(f'{k},läuft…,{2 * k}\n' for k in range(20000))).encode()
    at = raw.index('ä'.encode(), HEAD)
    for cut in (at, at + 1, at + 2, raw.index('…'.encode(), HEAD) + 2):
        names, values = read(raw[:cut], raw[cut:], texts={1: IGNORED})
        assert names == ('t', 'state', 'q')
        assert np.array_equal(values[:, 2], 2.0 * np.arange(20000))


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'cp1252', 'utf-16'])
@pytest.mark.parametrize('name', ['q1 °', 'Gelenkwinkel für q', 'é', 'a'])
def test_names_are_read_in_the_encodings_of_loggers(encoding: str, name: str) -> None:
    names, values = read(f't,{name}\n0,1.5\n1,2.5\n'.encode(encoding))
    assert names == ('t', name) and values.tolist() == [[0.0, 1.5], [1.0, 2.5]]


@pytest.mark.parametrize('end', ['\n', '\r\n', '\r'])
def test_lines_end_as_on_any_system(end: str) -> None:
    names, values = read(end.join(('t,q', '0,1.5', '1,2.5', '')).encode())
    assert names == ('t', 'q') and values.tolist() == [[0.0, 1.5], [1.0, 2.5]]


def test_bytes_that_are_no_text_are_refused_by_line() -> None:
    with pytest.raises(DataError, match=r'log\.csv: line 3 is not text'):
        read(b't,q\n0,1\n1,\0\n2,3\n')


TWO = [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(('text', 'asked', 'names', 'units', 'form', 'rows'), [
    ('t,q\n0,1\n2,3\n', {}, 't q', '', '', TWO), ('t,q\n0,1\n2,3', {}, 't q', '', '', TWO),
    ('t,q\ns,deg\n0,1\n2,3\n', {}, 't q', 's deg', '', TWO),
    ('t,q\n[ms],\n0,1\n2,3\n', {}, 't q', 'ms ', '', TWO),
    ('who,when\nt,q\n0,1\n2,3\n', {}, 't q', '', 'names taken from line 2', TWO),
    ('# run 5\n# t,q\n0,1\n2,3\n', {}, 't q', '', '', TWO),
    ('my log\n\nt,q\n0,1\n2,3\n', {}, 't q', '', '', TWO),
    ('0,1\n2,3\n', {'header': False}, '1 2', '', '', TWO),
    ('5,1\n2,3\n', {}, '1 2', '', '', [[5.0, 1.0], [2.0, 3.0]]),
    ('0,1\n0,1\n2,3\n', {}, '1 2', '', '', TWO), ('0,2\n2,3\n', {}, '1 2', '', '', [
        [0.0, 2.0], [2.0, 3.0]]),
    ('t,q\n0,1,\n2,3,\n', {}, 't q', '', '', TWO),
    ('t,q\nrow,row\n0,1\n2,3\n', {'skip': 1}, 't q', '', '', TWO),
    ('t,q\n9,9\n8,8\n0,1\n2,3\n', {'skip': 2}, 't q', '', '', TWO),
    ('t;q\n0;1\n2;3\n', {}, 't q', '', 'separated by semicolons', TWO),
    ('q\n4\n5\n', {}, 'q', '', '', [[4.0], [5.0]])])
def test_names_and_units_stand_above_the_numbers(
    text: str, asked: dict[str, Any], names: str, units: str, form: str, rows: list[list[float]]
) -> None:
    layout, read_rows = read_text_table('log.csv', [text.encode()], Asked(**asked))
    assert layout.columns == tuple(names.split(' '))
    assert layout.units == (tuple(units.split(' ')) if units else ('',) * len(layout.columns))
    assert (layout.form, layout.numbered) == (form, names.startswith('1'))
    assert layout.text == (None,) * len(layout.columns)
    assert np.concatenate(list(read_rows({}))).tolist() == rows


@pytest.mark.parametrize(('text', 'words'), [
    ('t,q\n0,1,2\n', 'log.csv: line 2 has 3 cells, expected 2, and no decimal point'),
    ('t,q\n0.5,1,2\n', 'log.csv: line 2 has 3 cells, expected 2'),
    ('t,q,r\n0,1\n', 'log.csv: line 2 has 2 cells, expected 3'),
    ('t,q\n', 'log.csv: has no rows of numbers below its header'),
    ('t\n', 'log.csv: has no rows of numbers; it must be text with a number in every cell'),
    ('t:\n---\n', 'log.csv: is what `ros2 topic echo` prints'),
    ('t,q,q\n0,1,2\n', 'log.csv: line 1: column q appears more than once'),
    ('\nt,q,q\n0,1,2\n', 'log.csv: line 2: column q appears more than once'),
    ('a,b,c\nx,q,q\n0,1,2\n', 'log.csv: line 2 has neither names of columns nor units'),
    (','.join(f'c{k}' for k in range(5001)), 'log.csv: line 1: has more than 5000 columns'),
    ('t,q\n0,1\n' + '1' * (2**20 + 1), 'log.csv: line 3 has more than 1048576 bytes'),
    ('#\n' * 499 + 't,q\n0,1\n2,3\n', 'log.csv: has no rows of numbers below its header')])
def test_texts_that_are_no_table_are_refused_by_line(text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        read(text.encode())
    assert str(caught.value).startswith(words)


def test_a_table_has_5000_columns_and_its_rows_begin_within_500_lines() -> None:
    head, row = ','.join(f'c{k}' for k in range(5000)), ','.join(['1'] * 5000)
    assert read(f'{head}\n{row}\n'.encode())[1].shape == (1, 5000)
    assert read(b'#\n' * 498 + b't,q\n0,1\n2,3\n')[1].tolist() == TWO


@pytest.mark.parametrize(('text', 'rows'), [
    ('0,1,2\n5,6,7\n8,9,10\n', [[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]]),
    ('0,1,3\n5,6,7\n', [[0.0, 1.0, 3.0], [5.0, 6.0, 7.0]]),
    ('5,6,7\n0,1,2\n', [[5.0, 6.0, 7.0], [0.0, 1.0, 2.0]])])
def test_a_first_line_that_counts_from_zero_is_no_row(text: str, rows: list[list[float]]) -> None:
    """As pandas heads columns without names; they are known by their numbers from one."""
    names, values = read(text.encode())
    assert names == ('1', '2', '3') and values.tolist() == rows
    assert read(b'0\n1\n')[1].tolist() == [[0.0], [1.0]]


def test_lines_keep_their_numbers_in_pieces() -> None:
    """From any line on; one without end is named."""
    pieces = [b'one\ntw', b'o\nthree\n', b'', b'four\nfive']
    assert list(lines_from('f', pieces, 1)) == [
        (1, b'one\n'), (2, b'two\nthree\n'), (4, b'four\n'), (5, b'five')]
    assert list(lines_from('f', pieces, 3)) == [(3, b'three\n'), (4, b'four\n'), (5, b'five')]
    long = b'x' * LINE_BYTES
    assert [line for line, _ in lines_from('f', [b'1\n2\n' + long], 1)] == [1, 3]
    with pytest.raises(DataError, match=r'f: line 4 has more than 1048576 bytes'):
        list(lines_from('f', [b'1\n2\n', b'3\n' + long + b'x'], 1))


#: an empty cell, and a comment between rows, have rows read one by one
SLOWLY = ('t,name,q\n2026-03-01T12:00:00.5,arm,1\n# comment\n2026-03-01T12:00:01.5,{name},\n'
          '2026-03-01T12:00:02,arm,3.5\n')


def test_rows_that_are_read_one_by_one_have_dates_and_names() -> None:
    _, values = read(SLOWLY.format(name='arm').encode(), texts={0: DATE, 1: CONSTANT})
    np.testing.assert_allclose(values[:, 0] - 1772366400.0, [0.5, 1.5, 2.0], rtol=0.0, atol=1e-6)
    np.testing.assert_array_equal(values[:, 1:], [[np.nan, 1.0], [np.nan, np.nan], [np.nan, 3.5]])
    with pytest.raises(DataError, match=r"log\.csv: line 4: column 2 is 'hand', and 'arm' in the"):
        read(SLOWLY.format(name='hand').encode(), texts={0: DATE, 1: CONSTANT})
    _, values = read(SLOWLY.format(name='hand').encode(), texts={0: DATE, 1: IGNORED})
    assert np.isnan(values[:, 1]).all()
    with pytest.raises(DataError, match=r"line 2, column 1: '2026-03-01T12:00:00.5' is not a"):
        read(SLOWLY.format(name='arm').encode(), texts={1: CONSTANT})


def test_arrays_in_files_are_columns_or_tables() -> None:
    """By the path of their names, eight levels deep at most; one row or column is a column."""
    deep: object = np.ones(2)
    for level in range(7):
        deep = {f'l{level}': deep}
    content = {'row': np.ones((1, 4)), 'column': np.ones((4, 1)), 'table': np.ones((4, 2)),
               'cube': np.ones((4, 1, 2)), 'all': np.ones((2, 2, 2)), 'none': np.zeros((0, 3)),
               'number': 3.0, 'text': 'words', 3: [1, 2], 'deep': deep, 'deeper': {'x': deep}}
    found = {name: array.shape for name, array in arrays_of(content)}
    path = '.'.join(['deep', *(f'l{level}' for level in reversed(range(7)))])
    assert found.pop(path) == (2,)
    assert found.pop('number', (1,)) == (1,)
    assert found == {'row': (4,), 'column': (4,), 'table': (4, 2), 'cube': (4, 2), '3': (2,)}


def test_dates_in_files_of_arrays_are_seconds_since_1970() -> None:
    found = dict(arrays_of({'log': {
        't': np.array(['1970-01-01T00:00:01.500', '1970-01-02'], dtype='datetime64[ms]'),
        'q': np.ones((2, 3)), 'name': 'arm'}}))
    assert list(found) == ['log.t', 'log.q']
    assert found['log.t'].tolist() == [1.5, 86400.0]
