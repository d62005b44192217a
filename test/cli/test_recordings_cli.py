"""cli/recordings.py: who works on recordings, where their information is kept, and results."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.cli import recordings
from robot_dynid.cli.main import parser
from robot_dynid.cli.recordings import by_recording, kept, recorded
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.identification.by_recording import Recorded
from robot_dynid.io.information_file import InformationFolder
from robot_dynid.workers import ThisProcess


class Seen:
    """A terminal that keeps notes and cautions."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.cautions: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def caution(self, text: str) -> None:
        self.cautions.append(text)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[..., None]]:
        yield lambda *_: None


def words(workers: int = 1, scheduler: str | None = None, information: str | None = None
          ) -> Namespace:
    return Namespace(workers=workers, scheduler=scheduler, information=information)


@pytest.mark.parametrize(('arguments', 'paths', 'one_by_one'), [
    (words(), ['a.csv'], False), (words(2), ['a.csv'], True),
    (words(scheduler='tcp://h:1'), ['a.csv'], True), (words(information='F'), ['a.csv'], True),
    (words(), ['a.csv', 's3://bucket/b.csv'], True)])
def test_recordings_are_worked_on_one_by_one_where_others_may_or_a_store_is_kept(
    arguments: Namespace, paths: list[str], one_by_one: bool
) -> None:
    assert by_recording(arguments, paths) is one_by_one


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Keep with what workers were begun."""
    asked: list[Any] = []

    @contextmanager
    def workers(given: Any) -> Iterator[str]:
        asked.append(given)
        yield f'workers {given}'

    for name in ('Processes', 'Cluster'):
        monkeypatch.setattr(f'robot_dynid.workers.{name}', workers)
    return asked


def test_workers_are_processes_a_cluster_or_this_process(begun: list[Any]) -> None:
    for arguments, given in ((words(1024), 1024), (words(2), 2),
                             (words(scheduler='tcp://h:1'), 'tcp://h:1')):
        with recorded(arguments, Seen()) as found:  # type: ignore[arg-type]
            assert found.workers == f'workers {given}' and found.keeper is None
    assert begun == [1024, 2, 'tcp://h:1']
    with recorded(words(), Seen()) as found:  # type: ignore[arg-type]
        assert isinstance(found.workers, ThisProcess)
    given = parser(('identify',)).parse_args(
        ['identify', 'x.csv', '--robot', 'planar_3r', '--out', 'M.yaml'])
    assert given.workers == 1
    for wrong, message in ((words(1025), '--workers 1025: give a number from 1 to 1024'),
                           (words(0), '--workers 0: give a number'),
                           (words(2, 'tcp://h:1'), 'give one of them')):
        with pytest.raises(UsageError, match=message), \
                recorded(wrong, Seen()):  # type: ignore[arg-type]
            pass
    with recorded(words(1, 'tcp://h:1'), Seen()):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(('taken', 'redone'), [(0, 0), (3, 0), (0, 2)])
def test_what_a_store_gave_and_what_was_unusable_is_said(
    taken: int, redone: int, tmp_path: Path
) -> None:
    terminal, folder = Seen(), str(tmp_path / 'kept')
    with recorded(words(information=folder), terminal) as found:  # type: ignore[arg-type]
        assert isinstance(found.keeper, InformationFolder) and Path(folder).is_dir()
        found.taken, found.redone, found.wrong = taken, redone, 'x.info: cut'
    assert terminal.notes == (
        [f'3 recordings were already reduced in {folder}'] if taken else [])
    unusable = f'2 information files in {folder} were unusable and were created again, such as ' \
        'x.info: cut'
    assert terminal.cautions == ([unusable] if redone else [])


def test_a_store_is_that_of_the_command_or_is_gone_after_it(tmp_path: Path) -> None:
    own = InformationFolder(str(tmp_path))
    with kept(Recorded(ThisProcess(), own)) as store:
        assert store is own
    with kept(Recorded(ThisProcess())) as store:
        assert isinstance(store, InformationFolder) and store is not own
    (tmp_path / 'file').write_text('')
    with pytest.raises(DynIdError, match=f'--information {tmp_path}/file: not a folder'), \
            recorded(words(information=str(tmp_path / 'file')), Seen()):  # type: ignore[arg-type]
        pass


def run(verb: Any, *given: str) -> tuple[dict[str, Any], Seen]:
    terminal = Seen()
    return verb(parser(given).parse_args(given), terminal), terminal


def test_information_is_saved_and_has_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(
        choice=SimpleNamespace(structure=SimpleNamespace(described=['a: dahl']),
                               preprocessing=SimpleNamespace(cutoff=7.5)),
        record=SimpleNamespace(recordings=('a.csv',)), notes=('late',),
        information=SimpleNamespace(samples=321, names=('m', 'n')))
    asked: list[Any] = []
    monkeypatch.setattr(recordings, 'reduced', lambda *given: (asked.append(given), made)[1])
    monkeypatch.setattr('robot_dynid.io.information_file.save_information',
                        lambda one, path: Path(path).write_bytes(bytes(2_500_000)))
    out = str(tmp_path / 'x.info')
    for name in ('a.csv', 'a_validation.csv'):
        (tmp_path / name).write_text('')
    found, terminal = run(recordings.run_information, 'information', str(tmp_path / 'a.csv'),
                          str(tmp_path / 'a_validation.csv'), '--robot', 'planar_3r', '--out', out)
    assert 0.0 <= found.pop('seconds') < 60.0
    assert found == {'robot': 'planar_3r', 'out': out, 'recordings': ('a.csv',), 'samples': 321,
                     'base': 2, 'megabytes': 2.5, 'cutoff': 7.5, 'friction_laws': ['a: dahl'],
                     'warnings': ('late',)}
    assert terminal.notes == [f'held out for validation: {tmp_path}/a_validation.csv']
    assert asked[0][1] == [str(tmp_path / 'a.csv')] and asked[0][2][1] is None
    with pytest.raises(UsageError, match=r'ends with \.info'):
        run(recordings.run_information, 'information', 'a.csv', '--robot', 'planar_3r', '--out',
            'x.yaml')


def test_a_repair_counts_messages_of_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    repair = SimpleNamespace(messages={'/a': 5, '/b': 7}, lost_bytes=3, findings=['cut'],
                             written=['x'], kept=['y'])
    monkeypatch.setattr('robot_dynid.io.repair.repair_bag', lambda path, progress: repair)
    found, _ = run(recordings.run_repair, 'repair', 'bag')
    assert 0.0 <= found.pop('seconds') < 60.0
    assert found == {'path': 'bag', 'messages': 12, 'topics': {'/a': 5, '/b': 7}, 'lost_bytes': 3,
                     'lost': ['cut'], 'written': ['x'], 'kept': ['y']}


def test_topics_have_a_rate_where_there_are_several_messages(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def topic(rate: float) -> Any:
        return SimpleNamespace(name='/a', kind='T', messages=4, rate=rate, joints=['joint_1'],
                               fields={'f': 2}, texts={}, problem='')

    survey = 'robot_dynid.io.messages.survey'
    monkeypatch.setattr(f'{survey}.survey', lambda path: [topic(12.5), topic(float('nan'))])
    monkeypatch.setattr(f'{survey}.uses', lambda one, joints: (f'for {len(joints)}',))
    found, _ = run(recordings.run_topics, 'topics', 'bag', '--robot', 'planar_3r')
    assert [one['rate'] for one in found['topics']] == [12.5, None]
    assert found['joints'] == ['joint_1', 'joint_2', 'joint_3']
    assert found['topics'][0] == {
        'name': '/a', 'type': 'T', 'messages': 4, 'rate': 12.5, 'joints': ['joint_1'],
        'fields': {'f': 2}, 'texts': {}, 'uses': ['for 3'], 'problem': ''}
    found, _ = run(recordings.run_topics, 'topics', 'bag')
    assert (found['robot'], found['joints'], found['topics'][0]['uses']) == (None, [], ['for 0'])
