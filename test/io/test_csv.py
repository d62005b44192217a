"""CSV recordings and states: round trips, damaged files, and what is said about odd data."""

import gzip
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot_dynid.cli.evaluation import write_rows
from robot_dynid.errors import DataError
from robot_dynid.io.csv import read_csv, read_states, write_csv
from robot_dynid.io.log import RecordingFile
from robot_dynid.signals.windows import Window
from robot_dynid.types import CHANNELS, RawLog

HEADER = 'time,position.a,position.b,effort.a,effort.b\n'


def text_file(folder, text, name='log.csv'):
    path = folder / name
    path.write_text(text)
    return path


def rows(count=50, seed=1):
    """Return regular rows of time, two positions, two efforts."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.arange(count) * 0.01, rng.normal(size=(count, 4))])


def log_file(folder, table, header=HEADER):
    text = header + '\n'.join(','.join(repr(float(v)) for v in row) for row in table)
    return text_file(folder, text)


@settings(max_examples=40)
@given(st.data())
def test_round_trip_keeps_every_bit(tmp_path_factory, data):
    joints = tuple(data.draw(st.lists(st.sampled_from('abcde'), min_size=1, unique=True)))
    count = data.draw(st.integers(1, 5))
    values = st.floats(allow_nan=True, allow_infinity=True)

    def draw(shape):
        return data.draw(arrays(np.float64, shape, elements=values))

    optional = {c: draw((count, len(joints))) for c in CHANNELS[1:] if data.draw(st.booleans())}
    log = RawLog('x', joints, draw(count), draw((count, len(joints))), **optional)
    suffix = data.draw(st.sampled_from(['.csv', '.csv.gz']))
    path = tmp_path_factory.mktemp('csv') / f'log{suffix}'
    write_csv(path, log)
    if log.external_torque is not None and not np.isfinite(log.external_torque).any():
        with pytest.raises(DataError, match='the wrench has no value'):
            read_csv(path)
        return
    back = read_csv(path)
    assert back.joints == joints
    np.testing.assert_array_equal(back.time, log.time)
    for name in CHANNELS:
        expected = getattr(log, name)
        if expected is None:
            assert getattr(back, name) is None
        else:
            np.testing.assert_array_equal(getattr(back, name), expected)


def test_columns_in_any_order_follow_the_joints_asked_for(tmp_path):
    path = text_file(tmp_path, 'effort.b,position.b,time,position.a\r\n4,2,0,1\r\n8,6,1,5\r\n')
    log = read_csv(path, ('a', 'b'))
    np.testing.assert_array_equal(log.position, [[1, 2], [5, 6]])
    np.testing.assert_array_equal(log.effort, [[np.nan, 4], [np.nan, 8]])
    assert 'effort: no column for a' in log.findings
    assert read_csv(path).joints == ('b', 'a')


def test_clean_file_has_no_findings(tmp_path):
    assert read_csv(log_file(tmp_path, rows())).findings == ()


def spoil(change):
    table = rows()
    change(table)
    return table


ODD = {
    'nan': (lambda t: t.__setitem__((7, 1), np.nan), 'position: NaN values: a 1; first at'),
    'inf': (lambda t: t.__setitem__((7, 4), np.inf), 'effort: infinite values: b 1'),
    'nan stamp': (lambda t: t.__setitem__((7, 0), np.nan), '1 stamps are not finite'),
    'back': (lambda t: t.__setitem__((7, 0), 0.02), 'time: goes back 1 times, most by 0.04 s'),
    'twice': (lambda t: t.__setitem__((7, 0), 0.06), 'time: 1 duplicate stamps, first at t'),
    'gap': (lambda t: t[20:, 0].__iadd__(0.5), 'time: 1 gaps longer than 2.5 periods of 0.01 s'),
    'zero effort': (lambda t: t[:, 3:].fill(0), 'effort: exactly zero for every joint'),
    'one zero effort': (lambda t: t[:, 3].fill(0), 'effort: exactly zero throughout for a'),
    'still': (lambda t: t[:, 2].fill(0.3), 'position: never changes for b'),
}


@pytest.mark.parametrize('case', ODD)
def test_odd_data_is_said_and_kept(tmp_path, case):
    change, sentence = ODD[case]
    table = spoil(change)
    log = read_csv(log_file(tmp_path, table))
    assert any(sentence in finding for finding in log.findings), log.findings
    np.testing.assert_array_equal(log.time, table[:, 0])
    np.testing.assert_array_equal(log.position, table[:, 1:3])
    np.testing.assert_array_equal(log.effort, table[:, 3:])


def test_mixed_rates_are_said(tmp_path):
    table = rows(400)
    table[:, 0] = np.cumsum(np.where(np.arange(400) < 200, 0.002, 0.01))
    findings = read_csv(log_file(tmp_path, table)).findings
    assert 'time: mixed rates, from 100 to 500 Hz' in findings


def test_missing_effort_is_said(tmp_path):
    path = log_file(tmp_path, rows()[:, :3], 'time,position.a,position.b\n')
    log = read_csv(path)
    assert log.effort is None
    assert any(f.startswith('effort: not recorded') for f in log.findings)


BAD = {
    'no time': ('position.a\n1\n', 'no column time'),
    'no joint': ('time,position.a\n0,1\n', 'no position column for b; the file has'),
    'word': (HEADER + '0,1,2,3,4\n1,1,oops,3,4\n', "line 3, column 3: 'oops' is not a number"),
    'ragged': (HEADER + '0,1,2,3,4\n1,1,3,4\n2,1,2,3,4\n', 'line 3 has 4 cells, expected 5'),
    'swapped commas': (HEADER + '0,1,2,3\n1,1,1,2,3,4\n', 'line 2 has 4 cells, expected 5'),
    'cut off': (HEADER + '0,1,2,3,4\n1,1,2', 'line 3 has 3 cells, expected 5; the file looks cut'),
    'empty': ('', 'the file is empty'),
    'header only': (HEADER, 'no rows'),
    'twice': ('time,position.a,position.a\n0,1,2\n', 'column position.a appears more than once'),
}


@pytest.mark.parametrize('case', BAD)
def test_bad_file_is_refused_by_name(tmp_path, case):
    text, message = BAD[case]
    path = text_file(tmp_path, text)
    with pytest.raises(DataError, match=r'log\.csv') as error:
        read_csv(path, ('a', 'b'))
    assert message in str(error.value)


def test_empty_cell_is_nan(tmp_path):
    log = read_csv(text_file(tmp_path, HEADER + '0,1,2,,4\n1,1,2,3,4\n'))
    assert np.isnan(log.effort[0, 0])
    assert np.isfinite(log.effort).sum() == 3


@pytest.mark.parametrize('keep', [5, 100, -9])
def test_cut_off_gzip_is_refused(tmp_path, keep):
    write_csv(path := tmp_path / 'log.csv.gz', read_csv(log_file(tmp_path, rows())))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match='broken or cut off'):
        read_csv(path)


def test_text_called_gz_and_missing_file_are_refused(tmp_path):
    with pytest.raises(DataError, match='broken or cut off'):
        read_csv(text_file(tmp_path, HEADER, 'log.csv.gz'))
    with pytest.raises(DataError, match='no such file'):
        read_csv(tmp_path / 'absent.csv')
    with pytest.raises(DataError, match='must be text'):
        (tmp_path / 'b.csv').write_bytes(b'\xff\xfe\x81\n1\n')
        read_csv(tmp_path / 'b.csv')


def test_pieces_join_without_a_seam(tmp_path, monkeypatch):
    monkeypatch.setattr('robot_dynid.files.DIGEST_BYTES', 97)
    table = rows(300)
    np.testing.assert_array_equal(read_csv(log_file(tmp_path, table)).effort, table[:, 3:])
    lines = [HEADER.strip(), *(','.join(map(str, row)) for row in table)]
    lines[251] = lines[251].replace(',', ',x', 1)
    with pytest.raises(DataError, match='line 252, column 2'):
        read_csv(text_file(tmp_path, '\n'.join(lines)))


def test_states_are_read_from_csv_files(tmp_path):
    header = 'velocity.b,position.a,position.b,velocity.a,acceleration.a,acceleration.b,label\n'
    path = text_file(tmp_path, header + '1,2,3,4,5,6,0\n')
    q, qd, qdd = read_states(path, ('a', 'b'), ('position', 'velocity', 'acceleration'))
    np.testing.assert_array_equal([q[0], qd[0], qdd[0]], [[2, 3], [4, 1], [5, 6]])
    with pytest.raises(DataError, match='no effort column for a, b'):
        read_states(path, ('a', 'b'), ('position', 'effort'))
    path = text_file(tmp_path, 'position.a\n1\nnan\n')
    with pytest.raises(DataError, match=r'state 2: position\.a is nan'):
        read_states(path, ('a',), ('position',))


def test_real_logs_read_fast(tx40_data):
    start = time.process_time()
    log = read_csv(tx40_data / 'exciting.csv.gz')
    assert time.process_time() - start < 2.0  # of the processor: 0.15 s
    assert log.position.shape == (45000, 6)
    with gzip.open(log.source, 'rt') as file:
        oracle = np.loadtxt(file, delimiter=',', skiprows=1)
    np.testing.assert_array_equal(np.column_stack([log.time, log.position, log.effort]), oracle)


def test_a_file_that_changes_while_it_is_in_use_is_told(tmp_path):
    """It is opened by one, and read by another process from the same path."""
    path = tmp_path / 'log.csv'
    write_csv(path, RawLog('log', ('a',), np.arange(5.0), np.ones((5, 1))))
    opened, digest = RecordingFile(str(path), SimpleNamespace(joints=('a',))).opened()
    assert opened.digest == digest and opened.rows == 5
    assert opened.read() is opened.read()
    with pytest.raises(DataError, match=r'log\.csv: changed while it was in use; start again'):
        replace(opened, digest='of another content').read()


@pytest.mark.parametrize('name', ['a,b', 'a"b', '"', '""', '",,"', 'a\rb', ' a', "it's", 'a;b',
                                  'a [deg]', 'a, b (rad)'])
def test_names_of_joints_are_read_back(tmp_path, name):
    values = np.arange(20.0).reshape(10, 2)
    log = RawLog('x', (name, 'other'), 0.1 * np.arange(10), values, effort=2.0 * values)
    for _ in range(2):  # its own file is replaced
        write_csv(tmp_path / 'log.csv', log)
        write_rows(str(tmp_path / 'rows.csv'), log.joints, {'position': values})
    back = read_csv(tmp_path / 'log.csv', log.joints)
    np.testing.assert_array_equal(back.effort, log.effort)
    (rows,) = read_states(tmp_path / 'rows.csv', log.joints, ('position',))
    np.testing.assert_array_equal(rows, values)


@pytest.mark.parametrize('name', ['a\nb', 'a ', 'a\0', '\ufffd'])
def test_names_that_no_header_holds_are_refused(tmp_path, name):
    log = RawLog('x', (name,), np.arange(2.0), np.zeros((2, 1)))
    with pytest.raises(DataError, match='cannot be the name of a column'):
        write_csv(tmp_path / 'log.csv', log)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(('start', 'epoch'), [(1.7e9, 0.0), (0.0, None)])
def test_read_csv_reads_what_is_in_and_around_a_window(tmp_path, start, epoch):
    table = rows(41)
    table[:, 0] = start + np.arange(41.0)
    log = read_csv(log_file(tmp_path, table), window=Window(10.0, 20.0))
    np.testing.assert_array_equal(log.time, table[5:25, 0])
    np.testing.assert_array_equal(log.effort, table[5:25, 3:])
    assert (log.began, log.epoch) == (start, epoch)
    table[:, 0] = start + 0.01 * np.arange(41)
    with pytest.raises(DataError, match=r'it is 0\.4 s long'):
        read_csv(log_file(tmp_path, table), window=Window(100.0, 101.0))
    table[0, 0] = np.nan
    assert read_csv(log_file(tmp_path, table), window=Window(0.1, 0.2)).began == table[1, 0]
