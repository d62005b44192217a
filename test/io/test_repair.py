"""Repaired bags: opened by other readers, with every message that can be read, originals kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bags import (
    MAGIC,
    STORE,
    Style,
    announced,
    chunk_of,
    mcap_file,
    mcap_message,
    mcap_record,
    mcap_text,
    states,
    storage_file,
    write_topics,
)
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.io import repair
from robot_dynid.io.bag import read_bag
from robot_dynid.io.bag_writer import LOSSES, BagWriter
from robot_dynid.io.cdr import JOINT_STATE
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.io.repair import repair_bag
from robot_dynid.yaml_text import load_yaml

MESSAGES, _ = states(count=120)
Rows = list[tuple[str, int, bytes]]


@pytest.fixture(autouse=True)
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, 'PAUSE', 0.0)


def killed(folder: Path, piece: int = 30) -> Path:
    """Return the bag of a recorder of ours that was killed after its last piece."""
    bag = BagWriter(folder)
    topic = bag.add_topic('/joint_states', JOINT_STATE)
    bag.add_topic('/silent', JOINT_STATE)
    for k, (received, data) in enumerate(MESSAGES):
        bag.write(topic, received, data)
        if k % piece == piece - 1:
            bag.commit()
    return folder


def ours(file: Path) -> Rows:
    """Return what our reader finds in an mcap file, whatever state it is in."""
    return [(topic, received, bytes(batch.buffer[start:start + size]))
            for topic, batch in mcap_batches(file, (JOINT_STATE,), Contents())
            for received, start, size in zip(
                batch.received.tolist(), batch.starts, batch.sizes, strict=True)]


def opened_by_all(folder: Path) -> Rows:
    """Return the messages as rosbags gives them; the mcap package must find the same."""
    with Reader(folder) as reader:
        found = [(topic.topic, received, bytes(data))
                 for topic, received, data in reader.messages()]
        info = load_yaml((folder / 'metadata.yaml').read_text(), '', DataError)[
            'rosbag2_bagfile_information']
        assert info['message_count'] == reader.message_count == len(found)
        times = [received for _, received, _ in found]
        assert info['starting_time']['nanoseconds_since_epoch'] == min(times)
        assert info['duration']['nanoseconds'] == max(times) - min(times)
        assert {topic.topic: topic.msgcount for topic in reader.connections} == {
            one['topic_metadata']['name']: one['message_count']
            for one in info['topics_with_message_count']}
    for name in info['relative_file_paths']:
        if name.endswith('.mcap'):
            strictly_read(folder / name)
    return found


def strictly_read(file: Path) -> None:
    """Read an mcap file with every checksum verified, by its index and record by record."""
    make_reader = pytest.importorskip('mcap.reader').make_reader
    stream_reader = pytest.importorskip('mcap.stream_reader').StreamReader
    with file.open('rb') as stream:
        reader = make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        by_index = [(channel.topic, one.log_time, one.data)
                    for _, channel, one in reader.iter_messages()]
        assert summary.statistics.message_count == len(by_index)
        for index in summary.chunk_indexes:
            assert min(index.message_index_offsets.values()) == (
                index.chunk_start_offset + index.chunk_length)
    with file.open('rb') as stream:
        kinds = [type(one).__name__ for one in stream_reader(stream, validate_crcs=True).records]
    assert kinds[-1] == 'Footer'
    assert sorted(by_index) == sorted(ours(file))


@pytest.mark.parametrize('share', [1.0, 0.999, 0.83, 0.5, 0.3])
def test_killed_recorder(tmp_path: Path, share: float) -> None:
    folder = killed(tmp_path / 'run')
    file = storage_file(folder)
    os.truncate(file, round(share * file.stat().st_size))
    before, expected = file.read_bytes(), ours(file)
    with pytest.raises(Exception, match='metadata'):
        Reader(folder).open()
    assert any(f'robot-dynid repair {folder}' in found for found in read_bag(folder).findings)
    found = repair_bag(folder)
    assert opened_by_all(folder) == expected
    assert found.messages == {'/joint_states': len(expected), '/silent': 0}
    assert (found.lost_bytes > 0) == bool(found.findings) == (share in (0.83, 0.3))
    assert found.lost_bytes < max(len(data) for _, data in MESSAGES) + 200
    assert Path(found.kept[0]).read_bytes() == before
    assert found.written == (str(file), str(folder / 'metadata.yaml'))
    log = read_bag(folder)
    assert [one for one in log.findings if 'lost' not in one] == []
    assert repair_bag(folder).written == (), 'nothing is left to do'


@pytest.mark.parametrize('style', [
    Style(), Style('lz4', 20), Style('zstd', 20), Style(chunk=0),
    Style(checksums=False, index=False)])
def test_files_of_other_recorders(tmp_path: Path, style: Style) -> None:
    whole = mcap_file(MESSAGES, style)
    folder = tmp_path / 'run'
    for share in (0.35, 0.6, 0.97):
        folder.mkdir()
        file = folder / 'run_0.mcap'
        file.write_bytes(whole[:round(share * len(whole))])
        expected = ours(file)
        assert expected
        repair_bag(folder)
        assert sorted(opened_by_all(folder)) == sorted(expected)
        shutil.rmtree(folder)


def test_repair_bag_leaves_out_and_reports_damaged_chunks(tmp_path: Path) -> None:
    whole = bytearray(mcap_file(MESSAGES, Style(chunk=30)))
    whole[whole.index(MESSAGES[40][1])] ^= 1  # the checksum of the second chunk is wrong now
    stranger = mcap_record(5, b'\7\0' + mcap_message(1, b'data')[11:])
    attachment = mcap_record(9, bytes(16) + mcap_text('name') + mcap_text('kind') + bytes(12))
    note = mcap_record(12, mcap_text('rosbag2') + bytes(4))
    folder = tmp_path / 'run'
    folder.mkdir()
    end = whole.index(mcap_record(15, whole[-4:])[:9])
    (folder / 'run_0.mcap').write_bytes(whole[:end] + stranger + attachment + note)
    found = repair_bag(folder)
    assert opened_by_all(folder) == [
        ('/joint_states', *one) for k, one in enumerate(MESSAGES) if not 30 <= k < 60]
    assert len(found.findings) == 2 and 'a chunk is damaged' in found.findings[0]
    assert found.lost_bytes > sum(len(data) for _, data in MESSAGES[30:60])
    assert any(LOSSES not in one and 'lost' in one for one in read_bag(folder).findings)
    make_reader = pytest.importorskip('mcap.reader').make_reader
    with (folder / 'run_0.mcap').open('rb') as stream:
        reader = make_reader(stream)
        assert [one.name for one in reader.iter_attachments()] == ['name']
        assert [one.name for one in reader.iter_metadata()] == ['rosbag2']


def test_many_losses_are_counted_and_a_few_of_them_described(tmp_path: Path) -> None:
    whole = bytearray(mcap_file(MESSAGES, Style(chunk=1)))
    for _, data in MESSAGES[1:]:
        whole[whole.index(data) + len(data) - 1] ^= 1
    (tmp_path / 'run.mcap').write_bytes(whole[:-20])
    found = repair_bag(tmp_path / 'run.mcap')
    assert found.messages == {'/joint_states': 1}
    assert len(found.findings) == 40 < len(MESSAGES)
    assert found.lost_bytes > sum(len(data) for _, data in MESSAGES[1:])


def test_quality_of_service_and_kinds_of_files_stay(tmp_path: Path) -> None:
    never = QosTime(0, 0)
    qos = [Qos(QosHistory.KEEP_LAST, 5, QosReliability.RELIABLE, QosDurability.VOLATILE, never,
               never, QosLiveliness.AUTOMATIC, never, False)]
    for version, words in ((8, 'history: 1'), (9, 'history: keep_last')):
        folder = tmp_path / str(version)
        with Writer(folder, version=version, storage_plugin=StoragePlugin.MCAP) as writer:
            topic = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE,
                                          offered_qos_profiles=qos)
            for one in MESSAGES:
                writer.write(topic, *one)
        file = storage_file(folder)
        file.write_bytes(file.read_bytes()[:-60])
        (folder / 'metadata.yaml').unlink()
        repair_bag(folder)
        opened_by_all(folder)
        with Reader(folder) as reader:
            assert [one.ext.offered_qos_profiles for one in reader.connections] == [qos]
        info = load_yaml((folder / 'metadata.yaml').read_text(), '', DataError)[
            'rosbag2_bagfile_information']
        assert info['version'] == version
        assert words.partition(' ')[2] in str(info['topics_with_message_count'])


def test_splits_come_in_their_order_and_a_single_file_needs_no_metadata(tmp_path: Path) -> None:
    folder = tmp_path / 'run'
    folder.mkdir()
    for number in (2, 10):
        part = MESSAGES[:50] if number == 2 else MESSAGES[50:]
        (folder / f'run_{number}.mcap').write_bytes(mcap_file(part)[:-9])
    shutil.copy(folder / 'run_2.mcap', tmp_path / 'alone.mcap')
    repair_bag(folder)
    assert [one[1:] for one in opened_by_all(folder)] == MESSAGES
    info = load_yaml((folder / 'metadata.yaml').read_text(), '', DataError)
    assert info['rosbag2_bagfile_information']['relative_file_paths'] == [
        'run_2.mcap', 'run_10.mcap']
    found = repair_bag(tmp_path / 'alone.mcap')
    assert found.written == (str(tmp_path / 'alone.mcap'),)
    strictly_read(tmp_path / 'alone.mcap')


@pytest.fixture
def base(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """Return a bag of sqlite3 that a killed recorder leaves, and the connection to it."""
    made = write_topics(tmp_path / 'whole', {'/joint_states': MESSAGES[:60]}, 'sqlite3')
    folder = tmp_path / 'run'
    folder.mkdir()
    shutil.copy(storage_file(made), folder / 'run_0.db3')
    connection = sqlite3.connect(folder / 'run_0.db3', isolation_level=None)
    yield folder, connection
    connection.close()


def added(connection: sqlite3.Connection) -> None:
    for received, data in MESSAGES[60:]:
        connection.execute('INSERT INTO messages (topic_id, timestamp, data) VALUES (1, ?, ?)',
                           (received, data))


@pytest.mark.parametrize('mode', ['wal', 'journal', 'none'])
def test_sqlite_with_what_a_killed_recorder_leaves(
    base: tuple[Path, sqlite3.Connection], tmp_path: Path, mode: str
) -> None:
    folder, connection = base
    if mode == 'wal':
        connection.execute('PRAGMA journal_mode=WAL')
        added(connection)
    elif mode == 'journal':  # of a transaction that was never ended: it did not happen
        connection.execute('PRAGMA cache_size=2')
        connection.execute('BEGIN')
        added(connection)
    left = shutil.copytree(folder, tmp_path / 'left')
    expected = MESSAGES if mode == 'wal' else MESSAGES[:60]
    assert any(found for found in read_bag(left).findings if 'robot-dynid repair' in found)
    found = repair_bag(left)
    assert [one[1:] for one in opened_by_all(left)] == expected
    assert found.lost_bytes == 0
    assert sorted(Path(one).name for one in found.kept) == sorted(
        f'{path.name}.unrepaired' for path in folder.iterdir()
        if mode != 'none' and not path.name.endswith('-shm'))
    with sqlite3.connect(left / 'run_0.db3') as made:
        assert made.execute('PRAGMA journal_mode').fetchone() == ('delete',)


@pytest.mark.parametrize('name', ['topics', 'messages', 'metadata'])
def test_sqlite_without_a_table_that_a_bag_needs_is_refused(
    base: tuple[Path, sqlite3.Connection], name: str
) -> None:
    """A view of another one is no table; a bag may do without that of metadata."""
    folder, connection = base
    connection.execute(f'ALTER TABLE {name} RENAME TO other')
    connection.execute(f'CREATE VIEW {name} AS SELECT * FROM other')
    connection.close()
    if name == 'metadata':
        repair_bag(folder)
        assert len(read_bag(folder).time) == 60
        return
    with pytest.raises(DataError, match=rf'run_0\.db3: {name} is a view made by a query, not a'):
        repair_bag(folder)


def test_sqlite_that_is_cut_off_keeps_its_rows(tmp_path: Path) -> None:
    messages, _ = states(count=3000)
    folder = write_topics(tmp_path / 'run', {'/joint_states': messages}, 'sqlite3')
    file = storage_file(folder)
    os.truncate(file, round(0.7 * file.stat().st_size) + 77)
    expected = len(read_bag(file).time)
    assert 0 < expected < len(messages)
    found = repair_bag(folder)
    assert [one[1:] for one in opened_by_all(folder)] == messages[:expected]
    assert found.findings and found.lost_bytes > 0


@pytest.mark.parametrize('moment', ['before', 'meanwhile'])
def test_a_growing_file_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder = killed(tmp_path / 'run')
    file = storage_file(folder)
    looked: list[float] = []

    copy = repair.copy_mcap

    def grow(*given: Any) -> Any:
        looked.append(1.0)
        with file.open('ab') as growing:
            growing.write(b'more')
        return copy(*given) if moment == 'meanwhile' else None

    if moment == 'before':
        monkeypatch.setattr(repair.time, 'sleep', grow)
        monkeypatch.setattr(repair, 'copy_mcap', lambda *_: pytest.fail('it was begun'))
    else:
        monkeypatch.setattr(repair, 'copy_mcap', grow)
    with pytest.raises(DataError, match='is growing: stop the recording first'):
        repair_bag(folder)
    assert looked
    assert list(folder.iterdir()) == [file]


@pytest.mark.parametrize(('age', 'slept'), [(1.8, [1.0]), (2.2, []), (-1.8, [1.0]), (-2.2, [])])
def test_a_file_that_changed_within_two_seconds_is_looked_at_again_after_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, slept: list[float]
) -> None:
    file = storage_file(write_topics(tmp_path / 'run', {'/joint_states': MESSAGES}))
    now = file.stat().st_mtime
    os.utime(file, (now, now - age))
    found: list[float] = []
    monkeypatch.undo()
    monkeypatch.setattr(repair.time, 'sleep', found.append)
    monkeypatch.setattr(repair.time, 'time', lambda: now)
    assert repair_bag(file).lost_bytes == 0
    assert found == slept


def test_a_full_disk_leaves_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = killed(tmp_path / 'run')
    before = storage_file(folder).read_bytes()

    copy = repair.copy_mcap

    def full(*given: Any) -> Any:
        if given[2] is None:
            return copy(*given)
        given[2].write(b'begun')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(repair, 'copy_mcap', full)
    with pytest.raises(DynIdError, match=r'cannot be written .*No space left'):
        repair_bag(folder)
    assert [path.read_bytes() for path in folder.iterdir()] == [before]


def test_an_earlier_original_is_not_replaced(tmp_path: Path) -> None:
    folder = killed(tmp_path / 'run')
    file = storage_file(folder)
    file.with_name(f'{file.name}.unrepaired').write_text('mine')
    with pytest.raises(UsageError, match='exists from an earlier repair'):
        repair_bag(folder)
    assert file.with_name(f'{file.name}.unrepaired').read_text() == 'mine'


@pytest.mark.parametrize(('name', 'content', 'words'), [
    ('nowhere', None, 'no such file or folder'),
    ('notes.txt', b'text', 'not a bag; expected a folder with'),
    ('empty.mcap', b'', 'is empty or not an mcap file'),
    ('text.mcap', b'no magic', 'is empty or not an mcap file'),
    ('text.db3', b'no database', 'not a readable rosbag2 sqlite3 file'),
    ('packed.mcap.zstd', b'', 'is compressed as a whole; unpack'),
])
def test_repair_exits_with_one_for_files_that_are_no_bags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None,
    words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(['repair', str(tmp_path / name)]) == 1
    assert words in ' '.join(capsys.readouterr().err.split())


def test_command_prints_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = killed(tmp_path / 'run')
    assert main(['repair', str(folder), '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['path'] == str(folder)
    assert (found['messages'], found['lost_bytes'], found['lost']) == (120, 0, [])
    assert found['topics'] == {'/joint_states': 120, '/silent': 0}
    assert [Path(path).name for path in (*found['written'], *found['kept'])] == [
        'run.mcap', 'metadata.yaml', 'run.mcap.unrepaired']
    assert found['seconds'] > 0.0
    assert main(['repair', str(folder)]) == 0
    assert 'nothing had to be repaired' in capsys.readouterr().out


def test_metadata_that_names_other_numbers_is_written_anew(tmp_path: Path) -> None:
    folder = write_topics(tmp_path / 'run', {'/joint_states': MESSAGES})
    file, before = folder / 'metadata.yaml', storage_file(folder).read_bytes()
    assert repair_bag(folder).written == ()
    text_before = file.read_text()
    for damage in (text_before.replace('120', '119'), text_before[:200], '[]'):
        file.write_text(damage)
        found = repair_bag(folder)
        assert [Path(one).name for one in found.written] == ['metadata.yaml']
        assert Path(found.kept[0]).read_text() == damage
        assert len(opened_by_all(folder)) == 120
        assert storage_file(folder).read_bytes() == before
        Path(found.kept[0]).unlink()


def test_a_chunk_inside_a_chunk_is_no_message(tmp_path: Path) -> None:
    inner = chunk_of(mcap_message(1, b'x'), (1, 1))
    file = tmp_path / 'x.mcap'
    head = MAGIC + mcap_record(1, mcap_text('ros2') + mcap_text('t'))
    file.write_bytes(head + chunk_of(inner, (1, 1)))
    assert repair_bag(file).messages == {}


def test_messages_without_a_possible_stamp_are_counted_as_lost(tmp_path: Path) -> None:
    late = mcap_message(1 << 63, b'late')
    file = tmp_path / 'x.mcap'
    file.write_bytes(MAGIC + mcap_record(1, mcap_text('ros2') + mcap_text('t')) + chunk_of(
        announced() + mcap_message(1, b'x') + late, (1, 1 << 63)))
    found = repair_bag(file)
    assert found.messages == {'/joint_states': 1} and found.lost_bytes == len(late)
    assert 'received beyond the end of time' in found.findings[0]
