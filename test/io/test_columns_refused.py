"""io/tables/: tables and mappings that cannot be read: each is refused with its cause and the
remedy."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from written_tables import (
    ARM,
    CHANNELS,
    CURRENT,
    JOINTS,
    LOG,
    ROWS,
    RTDE,
    SHORT,
    as_text,
    ros2_echo,
    table,
)

from robot_dynid import load_log
from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.tables.matlab import read_matlab
from robot_dynid.robot.columns import column_mapping


def wide(count: int) -> str:
    """Return a table of an arm with more or fewer joints than the robot."""
    names = [f'{name}{k}' for name in ('q', 'dq', 'tau') for k in range(count)]
    return as_text(['t', *names], np.column_stack(
        [LOG.time, np.zeros((ROWS, 3 * count))]))


COMMAS = table('time', SHORT, separator=';').replace('.', ',').replace(';', ',')
REFUSED = {
    'a current for a torque': (table('timestamp', RTDE), ARM, [
        'actual_current_0 [A], a current, and the robot has effort_kind: torque',
        'effort_kind: current and drive_gains: {turn: GAIN, shoulder: GAIN, elbow: GAIN}',
        '--columns "{time: timestamp,']),
    'a torque for a current': (table('t', SHORT), CURRENT, [
        'tau0 [N m], a torque, and the robot has effort_kind: current', 'effort_kind: torque']),
    'a current in the header': (table('t[s]', {
        'position': 'position.{joint}', 'effort': 'effort.{joint} [A]'}), ARM, ['a current']),
    'more joints': (wide(4), ARM, ['preset indexed matches except',
                                   '4 columns, the robot has the 3 joints turn, shoulder, elbow',
                                   'position: [q0, q1, q2]']),
    'fewer joints': (wide(2), ARM, ['q0 .. q1 are 2 columns']),
    'other names': (ros2_echo().replace('elbow', 'wrist'), ARM, [
        'the file has the joints wrist, turn, shoulder, not elbow']),
    'decimal commas between commas': (COMMAS, ARM, ['decimal commas between commas']),
    'points and commas': (table('time', SHORT, separator=';').replace('0.', '0,'), ARM, [
        'some numbers have a decimal point, others a decimal comma']),
    'marks of thousands': ('t;q0;q1;q2;tau0;tau1;tau2\n0;1.000,5;2;3;4;5;6\n', ARM, [
        "'1.000,5' has a thousands separator"]),
    'no header': (as_text([], LOG.position, separator=' ').lstrip(), ARM, [
        'no header with names, 3 columns, separated by spaces', "position: '1-3'", 'rate: ']),
    'unknown names': (table('clock', {'position': 'foo_{i}', 'effort': 'bar_{i}'}), ARM, [
        'match no preset', 'foo_0, foo_1', '--columns', 'columns in the robot YAML',
        'time: clock', 'unit: deg']),
    'units of time': (table('time', SHORT, 1e-3), ARM, ['time advances by 4 per row', 'unit: ms']),
    'another order by and by': (ros2_echo().replace(
        'elbow,turn,shoulder', 'turn,elbow,shoulder').replace(
        'turn,elbow,shoulder', 'elbow,turn,shoulder', 1), ARM, [
        'the names of the joints must be the same in all rows']),
    'a comma far below': ('t;q0;q1;q2;tau0;tau1;tau2\n' + ''.join(
        f'{k / 100:g};1.5;2;3;4;5;6\n' for k in range(700)).replace('6.5;1.5', '6.5;1,5'), ARM, [
        "line 652, column 2: '1,5' is not a number"]),
    'joints from 2': (table('t', SHORT, start=2), ARM, ['q2 .. q4 are 3 columns']),
    'degrees of a joint that slides': (table('t', {
        'position': 'q{i} [deg]', 'effort': 'tau{i}'}), replace(ARM, types=np.array(
            [0, 1, 0], dtype=np.int8)), ['is in deg, and joint shoulder slides']),
    'a name less': (table('t', SHORT).replace(',tau2', ''), ARM, [
        'line 2 has 10 cells, expected 9']),
    'two clocks': ('time,' + table('t', SHORT).replace('\n', '\n7,').removesuffix('7,'), ARM, [
        'several columns fit it: time, t', 'with --columns, such as "{time: time']),
    'words': ('hello\n', ARM, ['no rows of numbers']),
    'two arms': (table('__time', {name: f'/left/{{joint}}/{name}' for name in CHANNELS}).replace(
        '\n', ',' + ','.join(f'/right/{j}/position' for j in JOINTS) + '\n', 1).replace(
        '\n', ',0,0,0\n').replace('position,0,0,0\n', 'position\n'), ARM, [
        'several groups of columns fit', "position: '/left/{joint}/position'"]),
}


@pytest.mark.parametrize('case', REFUSED)
def test_load_log_refuses_unreadable_tables_with_the_remedy(tmp_path: Path, case: str) -> None:
    text, robot, words = REFUSED[case]
    (tmp_path / 'log.csv').write_text(text)
    with pytest.raises(DataError) as error:
        load_log(tmp_path / 'log.csv', robot)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert str(error.value).startswith(str(tmp_path / 'log.csv'))


def test_a_unit_that_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'log.csv').write_text(table('t', {'position': 'q{i} [rad]', 'effort': 'tau{i}'}))
    with pytest.raises(DataError, match='is in rad by the file, in deg by the mapping'):
        load_log(tmp_path / 'log.csv', ARM, columns={
            'time': 't', 'position': {'column': 'q{i}', 'unit': 'deg'}, 'effort': 'tau{i}'})


WRONG = {
    'no position': ({'time': 't'}, 'position is missing'),
    'no time': ({'position': 'q{i}'}, 'give time: the column of time, or rate'),
    'unknown key': ({'time': 't', 'position': 'q{i}', 'efforts': 'x'}, 'unknown key efforts'),
    'unit of another kind': ({'time': 't', 'position': {'column': 'q{i}', 'unit': 'Nm'}},
                             "'Nm' is not a unit of position"),
    'preset': ('plotjugler', 'is not a preset; choose one of robot_dynid, ur_rtde'),
    'number': ({'time': 0, 'position': '1-3'}, 'time: column'),
    'list': ([1], 'must be the name of a preset'),
    'decimal': ({'time': 't', 'position': 'q{i}', 'decimal': ';'}, 'decimal'),
    'files': ({'time': 't', 'position': 'q{i}', 'files': ['x']}, 'files must be a mapping'),
}


@pytest.mark.parametrize('case', WRONG)
def test_wrong_mappings_are_named(case: str) -> None:
    value, words = WRONG[case]
    with pytest.raises(UsageError, match='columns') as error:
        column_mapping(value)
    assert words in str(error.value)


@pytest.mark.parametrize(('mapping', 'begin'), [
    ({'time': 'clock', 'position': ['p_turn', 'p_x', 'p_elbow']}, 'columns: there is no column'),
    ('ur_rtde', 'preset ur_rtde: there is no column timestamp')])
def test_a_mapping_of_other_columns_is_named_with_those_of_the_file(
    tmp_path: Path, mapping: object, begin: str
) -> None:
    path = tmp_path / 'log.csv'
    path.write_text(table('clock', {'position': 'p_{joint}', 'effort': 'tau_{joint}'}))
    with pytest.raises(DataError) as caught:
        load_log(path, ARM, columns=mapping)
    assert str(caught.value).startswith(f'{path}: {begin}')
    assert str(caught.value).endswith('; the file has the columns clock, p_turn, p_shoulder, '
                                      'p_elbow, tau_turn, tau_shoulder, tau_elbow')


HDF5 = b'MATLAB 7.3 MAT-file'.ljust(116) + bytes(8) + b'\x00\x02IM' + bytes(512)
ARRAYS = {
    'cut.npz': (b'PK\x03\x04' + bytes(90), 'is damaged, truncated, or holds objects'),
    'new.mat': (HDF5, "version 7.3 (HDF5), which is not read; in MATLAB: save('run.mat'"),
    'other.mat': (b'hello' * 40, 'not a MATLAB file, or damaged'),
    'cut.json': (b'{"a": [1, 2', 'cannot be read as .json'),
    'words.json': (b'{"name": "arm"}', 'has no arrays of numbers'),
    'one.json': (b'{"entries": [{"timestamp": 0.0, "position": 0.1}]}',
                 'not a table of numbers over time; it has timestamp (1,), position (1,)'),
    'one_by_one.json': (b'{"q": [[1, 2], [3, 4]], "t": [0, 1]}', 'cannot be told apart'),
}


@pytest.mark.parametrize('name', ARRAYS)
def test_files_of_arrays_that_cannot_be_read_are_named(tmp_path: Path, name: str) -> None:
    content, words = ARRAYS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name) as error:
        load_log(tmp_path / name, ARM)
    assert words in str(error.value)


def test_arrays_that_unpack_to_gigabytes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('robot_dynid.io.tables.arrays.budget', lambda size: 100 * size)
    np.savez_compressed(tmp_path / 'run.npz', q=np.zeros((200_000, 3)))
    with pytest.raises(DataError, match='it unpacks to more than'):
        load_log(tmp_path / 'run.npz', ARM)


def test_a_file_that_takes_the_library_down_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SciPy is killed by some damaged files, in a process of its own."""
    killed = subprocess.CompletedProcess([], -11, b'')
    monkeypatch.setattr(subprocess, 'run', lambda *words, **options: killed)
    with pytest.raises(DataError, match='not a MATLAB file, or damaged'):
        read_matlab(str(tmp_path / 'run.mat'))


@pytest.mark.parametrize(('name', 'words'), [
    ('run.xlsx', 'save it as CSV'), ('run.h5', 'numpy.savez'), ('run.ulg', 'ulog2csv'),
    ('run.pickle', 'can run arbitrary code'),
    ('run.abc', 'unknown kind of recording; give a table (.csv')])
def test_unknown_kinds_of_recordings_are_refused_with_a_remedy(name: str, words: str) -> None:
    with pytest.raises(UsageError, match='unknown kind of recording') as error:
        load_log(name, ARM)
    assert words in str(error.value)
