"""Windows of recordings: the rows asked for, from every format, and refusals that say why."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from bags import states, write_topics
from recordings import recording

from robot_dynid.errors import DataError, UsageError
from robot_dynid.files import file_digest
from robot_dynid.identification.identify import add_recording_digests, identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.io.csv import write_csv
from robot_dynid.io.log import RecordingFile, load_log
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.signals.windows import Window, apply_windows, cut_window, file_of, split_window
from robot_dynid.types import CHANNELS
from robot_dynid.validation.slow_changes import gap_between

ROBOT = load_robot('planar_3r')


@pytest.fixture(scope='module')
def log():
    """A recording whose stamps count from 100 s."""
    found = recording(ROBOT, 1, 8.0)
    return replace(found, time=found.time + 100.0)


def rows_of(log, start, stop):
    since = log.time - log.time[0]
    return np.flatnonzero((since >= start) & (since < stop))


@pytest.mark.parametrize(('text', 'file', 'window'), [
    ('a/run.csv.gz[12.0:40.5]', 'a/run.csv.gz', Window(12.0, 40.5)),
    ('bag[:3]', 'bag', Window(None, 3.0)),
    ('bag[1e1:]', 'bag', Window(10.0)),
    ('run[1].csv', 'run[1].csv', None),
    ('run[7]', 'run[7]', None),
    ('run', 'run', None),
])
def test_a_window_stands_behind_a_name(text, file, window):
    assert split_window(text) == (file, window)
    assert file_of(text) == file
    if window is not None:
        assert split_window(f'{file}{window}') == (file, window)


@pytest.mark.parametrize(('text', 'message'), [
    ('run.csv[:]', 'excludes nothing'),
    ('run.csv[4:4]', 'does not stop after its start'),
    ('run.csv[4:2]', 'does not stop after its start'),
    ('run.csv[:0]', 'does not stop after its start'),
    ('run.csv[-3:]', r'seconds since the recording began must be within|-3'),
    ('run.csv[nan:]', 'finite number'),
    ('run.csv[a:3]', "'a' is not a number of seconds; a window is"),
    ('run.csv[0:1e99]', '1e'), ('run.csv[1.1e7:]', '1e'),
])
def test_windows_that_cannot_be_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        split_window(text)
    assert Window(0.0, 1e7).stop == 1e7


@pytest.mark.parametrize('suffix', ['.csv', '.csv.gz'])
def test_csv_gives_the_rows_from_start_to_before_stop(tmp_path, log, suffix):
    path = tmp_path / f'run{suffix}'
    write_csv(path, log)
    rows = rows_of(log, 2.0, 3.5)
    assert len(rows) == 300
    file, _ = RecordingFile(str(path), ROBOT).within(2.0, 3.5).opened()
    for found in (load_log(f'{path}[2:3.5]', ROBOT), file.read()):
        assert found.source == f'{path}[2:3.5]'
        assert found.began == 100.0
        for name in ('time', *CHANNELS):
            if getattr(log, name) is not None:
                np.testing.assert_array_equal(getattr(found, name), getattr(log, name)[rows])


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bag_gives_the_rows_from_start_to_before_stop(tmp_path, storage):
    messages, values = states()  # 2 ms apart
    efforts, _ = states(offset=1_000_000)
    path = write_topics(tmp_path / 'run', {'/joint_states': messages, '/effort': efforts}, storage)
    found = load_log(f'{path}[0.1:0.2]', SimpleNamespace(joints=('a', 'b')))
    np.testing.assert_allclose(found.time, 0.1 + 0.002 * np.arange(50))
    np.testing.assert_array_equal(found.position, values[50:100])
    stamps, _ = found.effort_messages
    assert len(stamps) == 49
    assert stamps.min() > 0.1 and stamps.max() < 0.2


def test_load_log_of_a_window_keeps_no_rows_far_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr('robot_dynid.signals.windows.WINDOW_MARGIN', 0.1)
    messages, values = states(count=1500)  # 2 ms apart
    efforts, _ = states(count=1500, offset=1_000_000)
    bag = write_topics(tmp_path / 'run', {'/joint_states': messages, '/effort': efforts})
    whole = load_log(bag, SimpleNamespace(joints=('a', 'b')))
    write_csv(tmp_path / 'run.csv', whole)
    monkeypatch.setattr('robot_dynid.io.findings.MEMORY_NUMBERS', 5000)
    for path in (bag, tmp_path / 'run.csv'):
        with pytest.raises(DataError, match=r'run.*: has more than 0.005 million.*windows'):
            load_log(path, SimpleNamespace(joints=('a', 'b')))
        for start, stop in ((500, 1000), (0, 500), (1000, 1500)):
            window = f'[{0.002 * start:g}:{0.002 * stop:g}]'
            found = load_log(f'{path}{window}', SimpleNamespace(joints=('a', 'b')))
            assert found.began == 0.0
            np.testing.assert_allclose(found.time, 0.002 * np.arange(start, stop),
                                       rtol=0.0, atol=1e-12)
            np.testing.assert_array_equal(found.position, values[start:stop])
            np.testing.assert_array_equal(found.effort, whole.effort[start:stop])
            assert [f for f in found.findings if f.startswith('time')] == []
        with pytest.raises(DataError, match=r'no row .* it is 2\.998 s long'):
            load_log(f'{path}[5:]', SimpleNamespace(joints=('a', 'b')))


def test_prepare_counts_elapsed_from_the_beginning_before_a_window(log):
    samples = prepare(ROBOT, repair(ROBOT, cut_window(log, Window(3.0))), Preprocessing(10.0))
    np.testing.assert_allclose(samples.elapsed, samples.time - 100.0, rtol=0.0, atol=1e-9)
    assert samples.elapsed[0] > 3.0


def test_windows_and_parts_of_one_recording_have_one_clock(log):
    windows = [repair(ROBOT, one) for one in (
        cut_window(log, Window(stop=3.0)), cut_window(log, Window(5.0)),
        cut_window(replace(log, source='other'), Window(5.0)))]
    logs = Parts((log, replace(log, source='other')), part_rows=800, longest=1000)
    parts = [repair(ROBOT, one) for one in logs]
    assert len(parts) == 4
    for first, second, third in (windows, parts[:3]):
        assert gap_between(first, 103.0, second, 105.0) == 2.0
        assert gap_between(second, 105.0, first, 103.0) is None
        assert gap_between(second, 103.0, third, 105.0) is None
    whole = repair(ROBOT, log)
    assert gap_between(whole, 103.0, whole, 105.0) is None


@pytest.mark.parametrize(('window', 'message'), [
    (Window(8.0), r'no row .* is in this window, .* it is 7\.995 s long'),
    (Window(100.0, 104.0), 'seconds since it began'),
])
def test_windows_without_rows_are_refused(log, window, message):
    with pytest.raises(DataError, match=message):
        cut_window(log, window)


def test_clock_that_was_set_back_makes_windows_ambiguous(log):
    time = log.time.copy()
    time[800:] -= 4.0
    with pytest.raises(DataError, match=r'goes back by 3\.995 s 3\.995 s after its beginning'):
        cut_window(replace(log, time=time), Window(1.0))
    with pytest.raises(DataError, match='no stamps'):
        cut_window(replace(log, time=np.full_like(time, np.nan)), Window(1.0))
    for back in (0.95, 1.05):  # less than a second is jitter
        time = log.time.copy()
        time[800:] -= back + 0.005
        if back < 1.0:
            assert len(cut_window(replace(log, time=time), Window(0.0, 3.0)).time) == 600
            continue
        with pytest.raises(DataError, match=r'goes back by 1\.05 s'):
            cut_window(replace(log, time=time), Window(1.0))


def test_rows_without_a_stamp_stay_inside(log):
    time = log.time.copy()
    time[[0, 300]] = np.nan
    found = cut_window(replace(log, time=time), Window(1.0, 2.0))
    assert found.began == time[1]
    assert len(found.time) == 200 and np.isnan(found.time).sum() == 1


def test_recipe_names_windows_by_file(log):
    logs = Parts((replace(log, source='a/run.csv'), replace(log, source='b/other.csv')))
    windows = recipe_from_dict({'windows': {
        'run.csv': [[0, 1], [2, None]], 'b/other.csv': [1.5, 4]}}).windows
    found = apply_windows(logs, windows)
    assert found.sources == ('a/run.csv[0:1]', 'a/run.csv[2:]', 'b/other.csv[1.5:4]')
    assert [len(one.time) for one in found] == [200, 1200, 500]
    assert apply_windows(logs, {}) is logs
    for name, message in (('none.csv', 'no recording is called'), ('.csv', 'no recording')):
        with pytest.raises(UsageError, match=message):
            apply_windows(logs, {name: (Window(1.0),)})
    twice = Parts((replace(log, source='a/run.csv'), replace(log, source='b/run.csv')))
    with pytest.raises(UsageError, match='several recordings are called'):
        apply_windows(twice, {'run.csv': (Window(1.0),)})


@pytest.mark.parametrize(('given', 'message'), [
    ('1:2', 'a mapping of files to windows'), ({'a': 760.5}, r'must be \[start, stop\]'),
    ({'a': [1, 2, 3]}, r'must be \[start, stop\]'), ({'a': [2, 1]}, 'does not stop'),
    ({'a': [None, None]}, 'excludes nothing'), ({'a': ['x', 1]}, 'finite number'),
])
def test_recipe_refuses_what_is_no_window(given, message):
    with pytest.raises(UsageError, match=message):
        recipe_from_dict({'windows': given})


def test_only_the_window_is_identified_and_recorded(tmp_path, log):
    spoiled = log.effort.copy()
    spoiled[1000:] += 50.0  # something is hit after 5 s
    path = tmp_path / 'run.csv'
    write_csv(path, replace(log, effort=spoiled))
    quick = {'cutoff': 10, 'ramp_width': 0.01, 'effort_lag': 0, 'ripple': 'none'}
    by_name = identify(ROBOT, [load_log(f'{path}[:5]', ROBOT)], recipe=recipe_from_dict(quick))
    by_recipe = identify(ROBOT, [load_log(path, ROBOT)], recipe=recipe_from_dict(
        {**quick, 'windows': {'run.csv': [None, 5]}}))
    clean = identify(ROBOT, [cut_window(log, Window(stop=5.0))], recipe=recipe_from_dict(quick))
    for found in (by_name, by_recipe):
        np.testing.assert_allclose(found.model.values, clean.model.values, rtol=1e-6, atol=1e-9)
        assert found.model.record.recordings == (f'{path}[:5]',)
        record = add_recording_digests(found, {str(path): file_digest(path)}).model.record
        assert record.recording_digests == (file_digest(path),)


def test_rows_within_five_seconds_of_a_window_are_near():
    since = np.array([4.9, 5.0, 10.0, 24.9, 25.0, np.nan])
    assert Window(10.0, 20.0).near(since).tolist() == [False, True, True, True, False, True]
    assert Window(None, 20.0).near(since).tolist() == [True] * 4 + [False, True]
    assert Window(10.0).near(since).tolist() == [False] + [True] * 5
