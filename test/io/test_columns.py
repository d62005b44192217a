"""Tables as loggers and people write them: the log is the one that was written."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from written_tables import (
    ARM,
    CHANNELS,
    CURRENT,
    EPOCH,
    JOINTS,
    LOG,
    OURS,
    RTDE,
    SHORT,
    as_text,
    bagpy,
    columns_of,
    ros2_echo,
    rostopic_echo,
    table,
)

from robot_dynid import load_log
from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.tables import arrays as arrays_module
from robot_dynid.io.tables.rows import Rows
from robot_dynid.robot.columns import column_mapping, presets, read_mapping
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.types import FloatArray, RawLog


@dataclass(frozen=True)
class Variant:
    """A file, the robot, and a word of the sentence that says what was taken for what."""

    text: str | bytes
    told: str
    robot: RobotModel = ARM
    name: str = 'log.csv'
    epoch: bool = False
    without: str = ''


def both(true: str) -> str:
    """Return a log of a UR with efforts of both kinds, of which ``true`` is the true one."""
    columns, values = columns_of(RTDE)
    others = [f'actual_current_as_torque_{k}' for k in range(3)]
    torque, current = (values[:, 6:], 0 * values[:, 6:])[::1 if true == 'as_torque' else -1]
    return as_text(['timestamp', *columns, *others], np.column_stack(
        [LOG.time, values[:, :6], current, torque]))


#: variants that are read row by row
SLOW = ('comments between rows', 'comments and separators at the ends')


READ = {
    'rtde spaces': Variant(table('timestamp', RTDE, separator=' '),
                           'preset ur_rtde (separated by spaces)', CURRENT),
    'rtde commas': Variant(table('timestamp', RTDE), 'actual_current_2 [A]', CURRENT),
    'rtde torque': Variant(table('timestamp', {
        **RTDE, 'effort': 'actual_current_as_torque_{i}'}), 'as_torque_2 [N m]'),
    'libfranka': Variant(table('duration', {
        'position': ' state.q[{i}]', 'velocity': 'state.dq[{i}]', 'effort': 'state.tau_J[{i}]'},
        1e-3), 'time is duration [ms]'),
    'libfranka newer': Variant(table('time', {
        'position': 'state.q[{i}]', 'velocity': 'state.dq[{i}]', 'effort': 'state.tau_J[{i}]',
        }, 1e-3), 'preset libfranka: time is time [ms]'),
    'libfranka first': Variant(table('duration', {
        'position': 'q[{i}]', 'velocity': ' dq[{i}]', 'effort': 'tau_J[{i}]'}, 1e-3),
        'preset libfranka_first'),
    'plotjuggler': Variant(table('__time', {
        name: f'/joint_states/{{joint}}/{name}' for name in CHANNELS}), 'preset plotjuggler'),
    'ros2 topic echo': Variant(ros2_echo(), 'preset ros2_topic_echo', epoch=True),
    'ros2 topic echo without velocity': Variant(
        ros2_echo(False), 'preset ros2_topic_echo', epoch=True, without='velocity'),
    'rostopic echo': Variant(rostopic_echo(), 'joints by the names in the file', epoch=True),
    'bagpy': Variant(bagpy(), 'preset bagpy', epoch=True),
    'savetxt': Variant(table('time', OURS, mark='# '), ''),
    'row of units': Variant(table('Time', SHORT, 1e-3, units=[
        'ms', *['rad'] * 3, *['rad/s'] * 3, *['Nm'] * 3]), 'time is Time [ms]'),
    'units in the header': Variant(table('t[s]', {
        'position': 'position.{joint} [rad]', 'velocity': 'velocity.{joint} [rad/s]',
        'effort': 'effort.{joint} [Nm]'}), 'time is t[s]'),
    'q0': Variant(table('time', SHORT), 'q0 .. q2'),
    'q_1': Variant(table('t', {'position': 'q_{i}', 'velocity': 'qd_{i}', 'effort': 'tau_{i}'},
                         start=1), 'q_1 .. q_3'),
    'q[0]': Variant(table('t', {
        'position': 'q[{i}]', 'velocity': 'dq[{i}]', 'effort': 'tau[{i}]'}), 'preset indexed'),
    'time in ns': Variant(table('timestamp_ns', SHORT, 1e-9), 'timestamp_ns [ns]'),
    'by joint': Variant(table('t', {'position': '{joint}_pos', 'velocity': '{joint}_vel',
                                    'effort': '{joint}_torque'}), 'preset named'),
    'semicolons': Variant(table('time', OURS, separator=';', decimal=','),
                          'separated by semicolons, decimal commas'),
    'tabs': Variant(table('time', OURS, separator='\t'), 'separated by tabs', name='log.tsv'),
    'spaces and decimal commas': Variant(table('time', SHORT, separator=' ', decimal=','),
                                         'separated by spaces, decimal commas'),
    'several spaces': Variant(table('  time', SHORT, separator='   '), 'by spaces', name='l.txt'),
    'quotes': Variant(table('"time"', {name: f'"{name}.{{joint}}"' for name in CHANNELS}), ''),
    'quoted decimal commas': Variant(
        '\n'.join(','.join(f'"{cell}"' for cell in line.split(';')) for line in table(
            'time', OURS, separator=';', decimal=',').splitlines()), 'decimal commas'),
    'mark': Variant(b'\xef\xbb\xbf' + table('time', OURS).encode(), ''),
    'utf-16': Variant(table('time', OURS).replace('\n', '\r\n').encode('utf-16'), ''),
    'old mac': Variant(table('time', OURS).replace('\n', '\r'), ''),
    'separators at the ends': Variant(table('time', OURS).replace('\n', ',\n'), ''),
    'separators at the ends of rows': Variant(
        table('time', OURS).replace('\n', ',\n').replace(',\n', '\n', 1), ''),
    'title and comments': Variant(f'Recorded by Someone\n\n# arm 3\n{table("time", OURS)}', ''),
    'comments between rows': Variant(
        table('time', OURS).replace('\n', '\n\n# pause\n', 5).replace('# pause\n', '', 1), ''),
    'words beside': Variant('mode,' + table('time', OURS).replace('\n', '\nauto,').removesuffix(
        'auto,'), 'mode'),
    'comments and separators at the ends': Variant(table('time', OURS).replace(
        '\n', ',\n').replace(',\n', '\n', 1).replace(',\n', ',\n# pause\n', 3), ''),
    'both kinds of effort, torque': Variant(both('as_torque'), 'as_torque_2 [N m]'),
    'both kinds of effort, current': Variant(both('current'), 'current_2 [A]', CURRENT),
    'joints with a prefix': Variant(table('time', {
        name: f'{name}.arm_{{joint}}' for name in CHANNELS}), 'joints are named arm_{joint}'),
    'joints with a prefix in the rows': Variant(
        ros2_echo().replace('turn', 'l_turn').replace('shoulder', 'l_shoulder').replace(
            'elbow', 'l_elbow'), 'joints are named l_{joint}', epoch=True),
    'rows of another topic': Variant(table('__time', {
        name: f'/joint_states/{{joint}}/{name}' for name in CHANNELS}).replace(
        '\n', ',/other\n', 1).replace('\n', ',\n').replace('other,\n', 'other\n').replace(
        ',\n', ',\n0.001,,,,,,,,,,5\n'), 'preset plotjuggler'),
    'units in the header of a preset': Variant(table('t [ms]', SHORT, 1e-3), 't [ms] [ms]'),
    'gz': Variant(gzip.compress(table('time', SHORT, separator=';').encode()), 'by semicolons',
                  name='log.txt.gz'),
}


def written(folder: Path, variant: Variant) -> Path:
    """Write the file of a variant."""
    path = folder / variant.name
    content = variant.text
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def require_true(log: RawLog, epoch: bool = False, without: str = '') -> None:
    """Fail unless a log is the true one."""
    assert log.joints == JOINTS
    time = log.time - EPOCH if epoch else log.time
    np.testing.assert_allclose(time, LOG.time, rtol=0.0, atol=3e-7 if epoch else 1e-12)
    for name, values in CHANNELS.items():
        if name == without:
            assert getattr(log, name) is None
        else:
            np.testing.assert_allclose(getattr(log, name), values, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize('case', READ)
def test_tables_as_people_have_them(tmp_path: Path, case: str) -> None:
    variant = READ[case]
    log = load_log(written(tmp_path, variant), variant.robot)
    require_true(log, variant.epoch, variant.without)
    assert variant.told in ' '.join(log.findings)
    assert variant.told or not log.findings


NAMES = {'position': 'ang_{joint}', 'velocity': 'w {joint}', 'effort': 'load/{joint}'}
@pytest.mark.parametrize('case', [case for case in READ if case not in SLOW])
def test_the_usual_ways_of_writing_are_parsed_in_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """60 000 rows take half a second, however they are separated."""
    monkeypatch.setattr(Rows, 'row_by_row', None)
    load_log(written(tmp_path, READ[case]), READ[case].robot)


STATED = {
    'patterns': ({'time': 'clock', 'position': 'ang_{joint}', 'velocity': 'w {joint}',
                  'effort': {'column': 'load/{joint}', 'unit': 'N m'}}, table('clock', NAMES)),
    'one column each': ({'time': 'clock', 'position': [f'ang_{j}' for j in JOINTS],
                         'effort': '8-10', 'velocity': [5, 6, 7]}, table('clock', NAMES)),
    'numbers': ({'header': False, 'time': 1, 'position': '2-4', 'velocity': '5-7',
                 'effort': '8-10'}, table('', NAMES).split('\n', 1)[1]),
    'rate': ({'header': False, 'rate': 250, 'position': '2-4', 'velocity': '5-7',
              'effort': '8-10'}, table('', NAMES).split('\n', 1)[1]),
    'units by the file': ({'time': 'c', 'position': 'p{i}', 'velocity': 'v{i}', 'effort': 'e{i}'},
                          table('c [ms]', {'position': 'p{i}', 'velocity': 'v{i} [rad/s]',
                                           'effort': 'e{i} [Nm]'}, 1e-3)),
    'any text': ({'time': 'c', 'position': '{*}.ang_{joint}', 'velocity': '{*}.w {joint}',
                  'effort': '{*}.load/{joint}'},
                 table('c', {name: f'left.{pattern}' for name, pattern in NAMES.items()})),
    'bars': ({'time': 'c', 'position': 'ang_{joint}', 'velocity': 'w {joint}',
              'effort': 'load/{joint}', 'separator': 'bar'}, table('c', NAMES, separator='|')),
    'unknown row of units': ({'time': 'c', 'position': 'ang_{joint}', 'velocity': 'w {joint}',
                              'effort': 'load/{joint}', 'skip': 1},
                             table('c', NAMES, units=['double'] * 10)),
}


@pytest.mark.parametrize('case', STATED)
def test_mappings_that_are_stated(tmp_path: Path, case: str) -> None:
    mapping, text = STATED[case]
    (tmp_path / 'log.csv').write_text(text)
    require_true(load_log(tmp_path / 'log.csv', ARM, columns=mapping))
    require_true(load_log(tmp_path / 'log.csv', replace(ARM, columns=column_mapping(mapping))))


def test_units_factors_and_offsets(tmp_path: Path) -> None:
    """Value = unit (factor x number + offset), for all joints or each."""
    columns, values = columns_of(SHORT)
    values[:, :3] = np.rad2deg(values[:, :3]) * [1, -1, 1] - [0, 0, 90]
    values[:, 3:6] = np.rad2deg(values[:, 3:6]) / 6.0
    values[:, 6:] *= -1000.0
    (tmp_path / 'log.csv').write_text(as_text(['t', *columns], np.column_stack(
        [LOG.time * 1e6, values])))
    log = load_log(tmp_path / 'log.csv', CURRENT, columns={
        'time': {'column': 't', 'unit': 'us'},
        'position': {'column': 'q{i}', 'unit': 'deg', 'factor': {'shoulder': -1.0},
                     'offset': [0.0, 0.0, 90.0]},
        'velocity': {'column': 'dq{i}', 'unit': 'rpm'},
        'effort': {'column': 'tau{i}', 'unit': 'mA', 'factor': -1.0}})
    np.testing.assert_allclose(log.time, LOG.time, rtol=0.0, atol=1e-9)
    for name, true in CHANNELS.items():
        np.testing.assert_allclose(getattr(log, name), true, rtol=1e-9, atol=1e-9)
    assert 'effort is tau0 .. tau2 [mA] with their sign changed' in log.findings[0]


def test_dates_are_times(tmp_path: Path) -> None:
    columns, values = columns_of(SHORT)
    stamps = (np.datetime64('2026-03-01T12:00:00.000') + (LOG.time * 1000).round().astype(
        'timedelta64[ms]'))
    for zone, shift in (('', 0), ('Z', 0), ('+01:00', -3600)):
        rows = as_text([], values).splitlines()[1:]
        (tmp_path / 'log.csv').write_text('\n'.join([
            ','.join(['time', *columns]),
            *(f'{stamp}{zone},{row}' for stamp, row in zip(stamps, rows, strict=True))]))
        log = load_log(tmp_path / 'log.csv', ARM)
        np.testing.assert_allclose(log.time - 1772366400 - shift, LOG.time, rtol=0.0, atol=3e-7)


def test_several_files_by_row_and_by_time(tmp_path: Path) -> None:
    def save(name: str, values: FloatArray) -> None:
        np.savetxt(tmp_path / name, values, fmt='%.12g')

    save('positions.txt', LOG.position.reshape(-1, 1))
    save('velocities.txt', LOG.velocity)
    save('torques.txt', np.column_stack([LOG.time, LOG.effort])[5:])
    save('time.txt', LOG.time)
    log = load_log(tmp_path / 'positions.txt', ARM, columns={
        'header': False, 'reshape': 3, 'position': '1-3', 'files': {
            'velocities.txt': {'header': False, 'velocity': '1-3'},
            'time.txt': {'header': False, 'time': 1},
            'torques.txt': {'header': False, 'time': 1, 'effort': '2-4'}}})
    assert np.isnan(log.effort[:5]).all()
    require_true(replace(log, effort=np.vstack([LOG.effort[:5], log.effort[5:]])))
    assert 'row by row with velocities.txt' in log.findings[0]
    assert 'by time with torques.txt' in log.findings[0]
    save('velocities.txt', LOG.velocity[1:])
    with pytest.raises(DataError, match='has 39 rows and the recording 40'):
        load_log(tmp_path / 'positions.txt', ARM, columns={
            'header': False, 'reshape': 3, 'rate': 250, 'position': '1-3',
            'files': {'velocities.txt': {'header': False, 'velocity': '1-3'}}})


def arrays() -> dict[str, FloatArray]:
    """Return the log as people keep arrays: one of them the other way round."""
    return {'t': LOG.time, 'q': LOG.position, 'dq': LOG.velocity.T.copy(), 'tau': LOG.effort}


def write_json(path: Path) -> None:
    path.write_text(json.dumps({'meta': {'robot': 'arm'}, 'entries': [
        {'t': t, 'q': q, 'dq': dq, 'tau': tau} for t, q, dq, tau in zip(
            *(x.tolist() for x in (LOG.time, *CHANNELS.values())), strict=True)]}))


ARRAYS: dict[str, Callable[[Path], None]] = {
    'run.npz': lambda path: np.savez(path, **arrays()),  # type: ignore[arg-type]
    'run.mat': lambda path: savemat(path, {'log': arrays(), 'note': 'x'}),
    'flat.mat': lambda path: savemat(path, arrays()),
    'run.json': write_json,
    'columns.json': lambda path: path.write_text(json.dumps(
        {key: value.tolist() for key, value in arrays().items()})) and None,
}


@pytest.mark.parametrize('name', ARRAYS)
def test_files_of_arrays(tmp_path: Path, name: str) -> None:
    ARRAYS[name](tmp_path / name)
    require_true(load_log(tmp_path / name, ARM))


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip('pyarrow', reason='pyarrow is not installed')
    parquet = pytest.importorskip('pyarrow.parquet')
    parquet.write_table(pyarrow.table({
        't': LOG.time, **{key: value.tolist() for key, value in (
            ('q', LOG.position), ('dq', LOG.velocity), ('tau', LOG.effort))}}),
        tmp_path / 'run.parquet')
    require_true(load_log(tmp_path / 'run.parquet', ARM))


def test_parquet_columns_are_lists_or_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what this software asks of pyarrow; the memory for all cells is asked for before."""
    columns = {'t': LOG.time, 'q': LOG.position.tolist(), 'dq': LOG.velocity.tolist(),
               'tau': LOG.effort.tolist()}
    kinds = {'t': 'double', 'q': 'list<element: double>', 'dq': 'fixed_size_list<double>[3]',
             'tau': 'large_list<double>'}
    content = SimpleNamespace(
        num_rows=len(LOG.time), num_columns=4, column_names=list(columns),
        schema=SimpleNamespace(field=lambda name: SimpleNamespace(type=kinds[name])),
        column=lambda name: SimpleNamespace(**{
            'to_numpy' if name == 't' else 'to_pylist': lambda: columns[name]}))
    library = ModuleType('pyarrow.parquet')
    vars(library)['read_table'] = lambda file: content
    package = ModuleType('pyarrow')
    vars(package)['parquet'] = library
    monkeypatch.setitem(sys.modules, 'pyarrow', package)
    monkeypatch.setitem(sys.modules, 'pyarrow.parquet', library)
    asked: list[int] = []
    monkeypatch.setattr(arrays_module, 'require_memory', asked.append)
    (tmp_path / 'run.parquet').write_bytes(b'PAR1')
    require_true(load_log(tmp_path / 'run.parquet', ARM))
    assert asked[0] == 4 * len(LOG.time)


def test_tables_of_this_package_need_no_mapping(tmp_path: Path) -> None:
    """A robot whose logs need a mapping reads what this package writes all the same."""
    (tmp_path / 'log.csv').write_text(table('time', OURS))
    log = load_log(tmp_path / 'log.csv', ARM, columns={'time': 'clock', 'position': 'q{i}'})
    require_true(log)
    assert log.findings[0].startswith('columns by the names of this package, not by the mapping')


def test_a_model_carries_the_columns_of_its_robot() -> None:
    mapping = {'time': 'c', 'position': {'column': 'q{i}', 'unit': 'deg'}}
    robot = replace(ARM, columns=column_mapping(mapping))
    back = robot_from_plain(robot_to_plain(robot), 'model')
    assert back.columns is not None and back.columns.plain == mapping
    assert robot_from_plain(robot_to_plain(replace(
        ARM, columns=column_mapping('ur_rtde'))), 'model').columns.name == 'ur_rtde'


def test_every_preset_says_where_it_is_from() -> None:
    assert all(one.about and one.source for one in presets().values())


@settings(max_examples=25)
@given(st.data())
def test_load_log_gives_the_same_log_for_any_table_format(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Columns in any order, any separator, decimals, units and marks give the true log."""
    separator = data.draw(st.sampled_from([',', ';', '\t', ' ']))
    decimal = '.' if separator == ',' else data.draw(st.sampled_from('.,'))
    angle, clock = (data.draw(st.sampled_from(pair)) for pair in (
        (('rad', 1.0), ('deg', 180.0 / np.pi)), (('s', 1.0), ('ms', 1e3), ('ns', 1e9))))
    names, values = columns_of(SHORT, data.draw(st.sampled_from([0, 1])))
    values = values * np.where(np.arange(9) < 3, angle[1], 1.0)
    order = data.draw(st.permutations(range(10)))
    whole = np.column_stack([LOG.time * clock[1], values])[:, order]
    text = as_text([['t', *names][k] for k in order], whole, separator, decimal,
                   data.draw(st.sampled_from(['', '# ', '%'])))
    encoding = data.draw(st.sampled_from(['utf-8', 'utf-8-sig', 'utf-16']))
    path = tmp_path_factory.mktemp('table') / 'log.csv'
    path.write_bytes(text.replace('\n', data.draw(st.sampled_from(['\n', '\r\n']))).encode(
        encoding))
    log = load_log(path, ARM, columns={
        'time': {'column': 't', 'unit': clock[0]},
        'position': {'column': 'q{i}', 'unit': angle[0]}, 'velocity': 'dq{i}',
        'effort': {'column': 'tau{i}', 'unit': 'N m'}})
    np.testing.assert_allclose(log.time, LOG.time, rtol=1e-10)
    for name, true in CHANNELS.items():
        np.testing.assert_allclose(getattr(log, name), true, rtol=1e-9, atol=1e-12)


@settings(max_examples=25)
@given(st.permutations(range(3)), st.permutations(range(19)))
def test_names_in_the_file_order_the_joints(
    tmp_path_factory: pytest.TempPathFactory, joints: list[int], columns: list[int]
) -> None:
    """The names that `rostopic echo -p` writes say which column is whose, in any order."""
    head, *rows = rostopic_echo().splitlines()
    width = len(head.split(','))
    order = [*(k for k in columns if k < width), *(k for k in range(width) if k not in columns)]
    path = tmp_path_factory.mktemp('table') / 'log.csv'
    path.write_text('\n'.join(','.join(line.split(',')[k] for k in order)
                              for line in (head, *rows)))
    robot = SimpleNamespace(joints=tuple(JOINTS[k] for k in joints))
    log = load_log(path, robot)
    np.testing.assert_allclose(log.position, LOG.position[:, joints], rtol=1e-11)
    np.testing.assert_allclose(log.effort, LOG.effort[:, joints], rtol=1e-11)


def test_a_mapping_is_the_name_of_a_preset_a_line_or_a_file(tmp_path: Path) -> None:
    """A file may hold it under the key columns, as a robot YAML does."""
    assert read_mapping('ur_rtde').name == 'ur_rtde'
    line = '{time: t, position: q*}'
    bare, whole, other = (tmp_path / f'{name}.yaml' for name in ('bare', 'whole', 'other'))
    bare.write_text(line)
    whole.write_text(f'urdf: a.urdf\ncolumns: {line}\n')
    other.write_text('- a\n')
    for text in (str(bare), str(whole), line):
        channels = read_mapping(text).channels
        assert {name: [one.column for one in found] for name, found in channels.items()} == {
            'time': [('t',)], 'position': [('q*',)]}
    with pytest.raises(UsageError, match=r'other.yaml must be the name of a preset'):
        read_mapping(str(other))
