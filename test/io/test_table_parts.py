"""io/tables: proposal.py, patterns.py, plan.py, table.py, arrays.py and form.py, each by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.io.tables.arrays import read_array_table
from robot_dynid.io.tables.form import Asked, Form, is_comment, is_number, is_text, separated
from robot_dynid.io.tables.patterns import matching
from robot_dynid.io.tables.plan import Plan, Taken
from robot_dynid.io.tables.proposal import proposal
from robot_dynid.io.tables.table import Layout, arrays_of
from robot_dynid.robot.columns import column_mapping

JOINTS = ('base', 'elbow')


def layout(*columns: str, source: str = 'run.csv') -> Layout:
    return Layout(source, columns, ('',) * len(columns), (None,) * len(columns))


def numbered(width: int, source: str) -> Layout:
    names = tuple(str(k + 1) for k in range(width))
    return Layout(source, names, ('',) * width, (None,) * width, numbered=True)


@pytest.mark.parametrize(('columns', 'proposed'), [
    ('t[ms] q1 q2 qd1 qd2 tau1 tau2', {'time': {'column': 't[ms]', 'unit': 'ms'},
                                       'position': 'q{i}', 'velocity': 'qd{i}',
                                       'effort': 'tau{i}'}),
    ('timestamp base_pos elbow_pos base_load elbow_load', {
        'time': 'timestamp', 'position': '{joint}_pos', 'effort': '{joint}_load'}),
    ('q0_deg q1_deg', {'rate': 100, 'position': {'column': 'q{i}_deg', 'unit': 'deg'},
                       'effort': ['EFFORT OF base', 'EFFORT OF elbow']}),
    ('clock x1 x2', {'time': 'clock', 'position': 'x{i}',
                     'effort': ['EFFORT OF base', 'EFFORT OF elbow']}),
    ('x1 x2 y1 y2', {'rate': 100, 'position': ['POSITION OF base', 'POSITION OF elbow'],
                     'effort': ['EFFORT OF base', 'EFFORT OF elbow']}),
    ('q1 q3 q2 tau2 tau3', {'rate': 100, 'position': ['POSITION OF base', 'POSITION OF elbow'],
                            'effort': ['EFFORT OF base', 'EFFORT OF elbow']})])
def test_a_mapping_is_proposed_from_the_names(columns: str, proposed: Mapping[str, Any]) -> None:
    """Three columns, or numbers that do not count on, are no column for each of two joints."""
    assert proposal(layout(*columns.split()), JOINTS) == proposed


@pytest.mark.parametrize(('width', 'proposed'), [
    (4, {'header': False, 'rate': 100, 'position': '1-2', 'effort': '3-4'}),
    (5, {'header': False, 'time': 1, 'position': '2-3', 'effort': '4-5'}),
    (6, {'header': False, 'rate': 100, 'position': '1-2', 'velocity': '3-4', 'effort': '5-6'}),
    (7, {'header': False, 'time': 1, 'position': '2-3', 'velocity': '4-5', 'effort': '6-7'})])
def test_columns_without_names_are_taken_in_the_usual_order(
    width: int, proposed: Mapping[str, Any]
) -> None:
    assert proposal(numbered(width, 'run.csv'), JOINTS) == proposed


@pytest.mark.parametrize(('width', 'given', 'others', 'proposed'), [
    (2, 'q.txt', ('tau.txt', 'time.txt'), {
        'header': False, 'position': '1-2', 'files': {
            'time.txt': {'header': False, 'time': 1},
            'tau.txt': {'header': False, 'effort': '1-2'}}}),
    (1, 'velocity.txt', ('pos.txt',), {
        'header': False, 'reshape': 2, 'rate': 100, 'velocity': '1-2', 'files': {
            'pos.txt': {'header': False, 'reshape': 2, 'position': '1-2'},
            'torques.txt': {'header': False, 'reshape': 2, 'effort': '1-2'}}}),
    (2, 'torque.txt', ('speed_a.txt', 'speed_b.txt', 'clock.csv'), {
        'header': False, 'rate': 100, 'effort': '1-2', 'files': {}})])
def test_files_beside_a_bare_one_are_proposed(
    tmp_path: Path, width: int, given: str, others: tuple[str, ...], proposed: Mapping[str, Any]
) -> None:
    """The only one of its ending with such a name."""
    for name in (given, *others):
        (tmp_path / name).write_text('1 2\n')
    assert proposal(numbered(width, str(tmp_path / given)), JOINTS) == proposed


def test_a_table_of_one_joint_counts_its_columns() -> None:
    one = ('base',)
    assert proposal(numbered(3, 'run.csv'), one) == {
        'header': False, 'time': 1, 'position': 2, 'effort': 3}
    assert proposal(numbered(2, 'run.csv'), one) == {
        'header': False, 'rate': 100, 'position': 1, 'effort': 2}


NAMES = ('q1', 'q02', 'Base_pos', 'ELBOW_pos', 'elbow_vel', 'm1_x', 'm2_y')


@pytest.mark.parametrize(('pattern', 'any_case', 'found'), [
    ('q{i}', False, {(): {'1': 0, '2': 1}}),
    ('{joint}_pos', True, {(): {'base': 2, 'elbow': 3}}), ('{joint}_pos', False, {}),
    ('{joint}_{*}', False, {('vel',): {'elbow': 4}}),
    ('m{i}_{x|y}', False, {('x',): {'1': 5}, ('y',): {'2': 6}}), ('q.', False, {})])
def test_columns_are_grouped_by_what_varies(
    pattern: str, any_case: bool, found: Mapping[tuple[str, ...], Mapping[str, int]]
) -> None:
    assert matching(pattern, NAMES, JOINTS, any_case) == found


def test_names_of_unknown_joints_are_as_short_as_can_be() -> None:
    assert matching('{joint}_{*}', ('a_b_c',), None, False) == {('b_c',): {'a': 0}}


def plan(*taken: Taken, **mapping: Any) -> Plan:
    given = column_mapping({'position': '1-2', 'rate': 4.0, **mapping})
    return Plan(given, taken, {}, '')


def test_rows_are_sums_of_columns_with_the_time_of_their_count() -> None:
    made = plan(Taken('position.base', (1, 0), (10.0, -1.0), 0.5), Taken('effort.base', (2,)))
    assert made.columns == ('time', 'position.base', 'effort.base')
    pieces = [np.array([[1.0, 2.0, 3.0], [4.0, 5.0, np.nan]]), np.array([[7.0, 8.0, 9.0]])]
    first, second = made.rows('run.csv', iter(pieces))
    np.testing.assert_allclose(first, [[0.0, 19.5, 3.0], [0.25, 46.5, np.nan]], rtol=1e-12)
    np.testing.assert_allclose(second, [[0.5, 73.5, 9.0]], rtol=1e-12)


def test_rows_without_a_number_are_left_out_of_a_single_file() -> None:
    made = plan(Taken('position.base', (0,)))
    (rows,) = made.rows('run.csv', iter([np.array([[1.0], [np.nan], [3.0]])]))
    assert rows.tolist() == [[0.0, 1.0], [0.5, 3.0]]
    beside = plan(Taken('position.base', (0,)), files={'t.txt': {'effort': 1}})
    (rows,) = beside.rows('run.csv', iter([np.array([[1.0], [np.nan]])]))
    assert len(rows) == 2


def test_numbers_one_after_the_other_fill_rows() -> None:
    made = plan(Taken('position.a', (0,)), Taken('position.b', (1,)), reshape=2)
    (rows,) = made.rows('run.csv', iter([np.arange(6.0)[:, None]]))
    assert rows[:, 1:].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    with pytest.raises(DataError, match=r'run.csv: 5 numbers do not fill rows of 2 \(reshape\)'):
        list(made.rows('run.csv', iter([np.arange(5.0)[:, None]])))


@pytest.mark.parametrize(('step', 'factor', 'unit'), [
    (5e-5, 1.0, ''), (1.0, 1.0, ''), (0.05, 1e-3, ''), (1000.0, 1e-3, ''),
    (4.9e-5, 1.0, 's'), (1.01, 1.0, 'ms'), (1000.0, 1.0, 'ms'), (1001.0, 1.0, 'us'),
    (1.0e6, 1.0, 'us'), (1.1e6, 1.0, 'ns'), (0.5, 1e-6, 's'), (2e9, 1.0, 's')])
def test_steps_of_time_in_a_preset_are_from_50_microseconds_to_a_second(
    step: float, factor: float, unit: str
) -> None:
    preset = replace(column_mapping({'time': 't', 'position': '1-2'}), name='logger')
    made = Plan(preset, (Taken('time', (0,), (factor,)), Taken('position.base', (1,))), {}, '',
                written={'time': 't', 'position': 'q{i}'})
    rows = np.array([[0.0, 1.0], [step, 2.0], [step, 2.0], [np.nan, 2.0], [2.0 * step, 3.0]])
    if not unit:
        assert len(next(made.rows('run.csv', iter([rows])))) == 5
        return
    with pytest.raises(DataError) as caught:
        next(made.rows('run.csv', iter([rows])))
    assert str(caught.value) == (
        f'run.csv: time advances by {step:.6g} per row, which would be {step * factor:.6g} s; '
        f'state its unit: --columns "{{time: {{column: t, unit: {unit}}}, '
        'position: \'q{i}\'}"')


def test_arrays_of_structures_have_the_names_of_their_places() -> None:
    found = dict(arrays_of({
        'a': {'b': [1.0, 2.0], 'text': ['x', 'y']}, 'c': np.ones((1, 3)), 'd': np.ones((2, 1, 4)),
        'e': np.array([(1, 2.0)], dtype=[('u', int), ('v', float)]), 'f': 3.0, 'g': [],
        'h': np.array(['1970-01-01T00:00:01.5'], dtype='datetime64[ms]')}))
    assert {name: value.shape for name, value in found.items()} == {
        'a.b': (2,), 'c': (3,), 'd': (2, 4), 'e.u': (1,), 'e.v': (1,), 'h': (1,)}
    assert found['h'][0] == 1.5


@pytest.mark.parametrize(('depth', 'there'), [(8, True), (9, False)])
def test_structures_are_read_eight_deep(depth: int, there: bool) -> None:
    content: Any = [1.0, 2.0]
    for _ in range(depth):
        content = {'x': content}
    assert bool(dict(arrays_of(content))) is there


def read(path: Path, content: Any) -> tuple[Layout, np.ndarray]:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    found, rows = read_array_table(str(path))
    (values,) = rows({})
    return found, values


@pytest.mark.parametrize('content', [
    {'t': [0, 1, 2], 'q': [[1, 2], [3, 4], [5, 6]]}, {'run': {'t': [0, 1, 2], 'q': [[1, 2], [3, 4],
                                                                                   [5, 6]]}},
    {'t': [0, 1, 2], 'q': [[1, 3, 5], [2, 4, 6]], 'mass': [7, 8]},
    [{'t': k, 'q': [2 * k + 1, 2 * k + 2]} for k in range(3)],
    '\n'.join(json.dumps({'t': k, 'q': [2 * k + 1, 2 * k + 2]}) for k in range(3))])
def test_json_is_read_by_columns_and_by_records(tmp_path: Path, content: Any) -> None:
    found, values = read(tmp_path / 'run.json', content)
    assert (found.columns, found.numbered) == (('t', 'q[0]', 'q[1]'), False)
    assert values.tolist() == [[0.0, 1.0, 2.0], [1.0, 3.0, 4.0], [2.0, 5.0, 6.0]]


def test_json_of_names_and_rows_and_of_nested_records_is_read(tmp_path: Path) -> None:
    found, values = read(tmp_path / 'a.json', {'columns': ['t', 'x'], 'data': [[0, 5], [1, 6]]})
    assert (found.columns, values.tolist()) == (('t', 'x'), [[0.0, 5.0], [1.0, 6.0]])
    found, values = read(tmp_path / 'b.json', [{'t': 0, 'arm': {'q': 5}}, {'t': 1}])
    assert found.columns == ('t', 'arm.q')
    np.testing.assert_array_equal(values, [[0.0, 5.0], [1.0, np.nan]])


@pytest.mark.parametrize(('content', 'words'), [
    ({'q': [[1, 2, 3]] * 3}, r'q is \(3, 3\): rows and columns cannot be told apart'),
    ({'text': ['a']}, 'has no arrays of numbers'),
    ({'t': [1.0]}, r'not a table of numbers over time; it has t \(1,\)'),
    ('{"t": [1', 'cannot be read as .json')])
def test_arrays_that_are_no_table_are_told(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read(tmp_path / 'run.json', content)


def test_an_array_without_names_is_numbered(tmp_path: Path) -> None:
    np.save(tmp_path / 'run.npy', np.arange(8.0).reshape(4, 2))
    found, rows = read_array_table(str(tmp_path / 'run.npy'))
    assert (found.columns, found.numbered) == (('1', '2'), True)
    (values,) = rows({})
    assert values[3].tolist() == [6.0, 7.0]


@pytest.mark.parametrize(('lines', 'separator', 'decimal', 'words'), [
    ('t,q\n1,2.5\n3,4', ',', '.', ''), ('t;q\n1;2,5\n3;4', ';', ',',
                                        'separated by semicolons, decimal commas'),
    ('t\tq\n1\t2.5\n3\t4', '\t', '.', 'separated by tabs'),
    ('t q\n1,5 2,5\n3 4,5', ' ', ',', 'separated by spaces, decimal commas'),
    ('t,q\n"1,5","2,5"\n"3,5","4"', ',', ',', 'decimal commas'),
    ('t|q\n1|2.5\n3|4', '|', '.', 'separated by bars'), ('t\n1.5\n2', '', '.', '')])
def test_separator_and_decimals_are_detected(
    lines: str, separator: str, decimal: str, words: str
) -> None:
    form = separated('run.csv', lines.split('\n'), Asked())
    assert (form.separator, form.decimal, str(form)) == (separator, decimal, words)


@pytest.mark.parametrize(('lines', 'words'), [
    ('t;q\n1;2.500,5', "'2.500,5' has a thousands separator"),
    ('t;q\n1,5;2.5', 'some numbers have a decimal point, others a decimal comma')])
def test_numbers_of_two_kinds_are_refused(lines: str, words: str) -> None:
    with pytest.raises(DataError, match=f'run.csv: {words}'):
        separated('run.csv', lines.split('\n'), Asked())


def test_a_stated_form_is_not_detected() -> None:
    form = separated('run.csv', ['a;b', '1,5;2,5'], Asked(separator=';', decimal='.'))
    assert (form.separator, form.decimal) == (';', '.')


@pytest.mark.parametrize(('form', 'line', 'cells'), [
    (Form(), ' a , "b,c" ,"say ""x""",\n', ['a', 'b,c', 'say "x"', '']),
    (Form(' '), '  a "b c"   d', ['a', 'b c', 'd']), (Form(''), ' "a, b" ', ['a, b']),
    (Form(';'), 'a;"b;c"', ['a', 'b;c'])])
def test_cells_keep_separators_in_quotes(form: Form, line: str, cells: list[str]) -> None:
    assert form.cells(line) == cells


@pytest.mark.parametrize(('form', 'text', 'commas'), [
    (Form(';', ','), b'1,5;2\r\n3;4', b'1.5,2\n3,4'), (Form(';'), b'1.5;2', b'1.5,2'),
    (Form(' '), b' 1\t 2  \n 3   4', b'1,2\n3,4'), (Form('', ','), b'1,5\n2', b'1.5\n2'),
    (Form(trailing=True), b'1,2,\n3,4,', b'1,2\n3,4'), (Form(), b'1,2,\n', b'1,2,\n')])
def test_whole_lines_become_commas_and_points(form: Form, text: bytes, commas: bytes) -> None:
    assert form.with_commas(text) == commas


@pytest.mark.parametrize(('cell', 'number', 'text'), [
    ('1', True, False), ('-1,5e3', True, False), ('.5', True, False), ('NaN', True, False),
    ('-Infinity', True, False), ('', False, False), ('N/A', False, False), ('-', False, False),
    ('1.2.3', False, True), ('q1', False, True)])
def test_cells_are_numbers_texts_or_missing(cell: str, number: bool, text: bool) -> None:
    assert (is_number(cell), is_text(cell)) == (number, text)
    assert not is_comment(cell) and is_comment(f'  # {cell}') and is_comment(f'//{cell}')
