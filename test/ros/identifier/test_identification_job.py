"""ros/identifier/identification.py: what the worker process does before and around an
identification, in the process of the test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')

from bags import START, raw, storage_file, write_topics
from monitored import motion
from recordings import recording as synthetic

from robot_dynid.errors import Cancelled
from robot_dynid.io.bag import Topics
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.identification import (
    READING,
    Code,
    Job,
    Outcome,
    Recorded,
    read_recording,
    read_recordings,
    run,
)
from robot_dynid.types import DAMAGE, RawLog
from robot_dynid.validation.verdict import THIN

ROBOT = load_robot('planar_3r')


def silent(stage: str, fraction: float) -> None:
    """Take no notice."""


def test_a_recording_is_read_from_the_topics_it_was_made_of(tmp_path: Path) -> None:
    """They may have any names, and others of the same type may be in the file."""
    values = np.random.default_rng(2).normal(size=(60, 3))
    names, other = ROBOT.joints, ROBOT.joints[::-1]
    topics: dict[str, list[tuple[int, bytes]]] = {'/arm/states': [], '/arm/tau': [], '/effort': []}
    for k, row in enumerate(values):
        stamp = START + k * 10**7
        topics['/arm/states'].append((stamp, raw(names, stamp, row, 2 * row, 3 * row)))
        topics['/arm/tau'].append((stamp, raw(other, stamp, [], [], 5 * row[::-1])))
        topics['/effort'].append((stamp, raw(names, stamp, [], [], 7 * row)))
    file = storage_file(write_topics(tmp_path / 'bag', topics))
    recorded = Recorded(file, Topics('/arm/states', effort='/arm/tau'))
    log = read_recording(recorded, ROBOT)
    assert isinstance(log, RawLog)
    np.testing.assert_array_equal(log.position, values)
    np.testing.assert_array_equal(log.velocity, 2 * values)
    np.testing.assert_array_equal(log.effort, 5 * values)


def test_damage_of_a_growing_file_is_told_but_not_that_it_has_no_end(tmp_path: Path) -> None:
    stamps = START + 10**7 * np.arange(60)
    with BagWriter(tmp_path / 'bag') as bag:
        topic = bag.add_topic('/joint_states', JOINT_STATE)
        for k, stamp in enumerate(stamps.tolist()):
            bag.write(topic, stamp, raw(ROBOT.joints, stamp, [k] * 3, [k] * 3, [k] * 3))
            if k % 20 == 19:
                bag.commit()
        file = bag.storage_file
        whole = file.read_bytes()
    file.write_bytes(whole)
    assert not read_recording(Recorded(file, Topics()), ROBOT).findings
    damaged = bytearray(whole)
    damaged[whole.index(raw(ROBOT.joints, int(stamps[30]), [30] * 3, [30] * 3, [30] * 3))] ^= 1
    file.write_bytes(damaged)
    log = read_recording(Recorded(file, Topics()), ROBOT)
    assert isinstance(log, RawLog)
    assert len(log.time) == 40
    assert [f for f in log.findings if f.startswith(DAMAGE)] and 'not closed' not in str(log)


def test_recordings_come_in_order_those_without_payload_last(tmp_path: Path) -> None:
    logs = [motion(ROBOT, 50, seed) for seed in range(3)]
    files = tuple(str(tmp_path / f'{k}.csv') for k in range(3))
    for file, log in zip(files, logs, strict=True):
        write_csv(Path(file), log)
    heard: list[tuple[str, float]] = []
    read = read_recordings(Job(ROBOT, (logs[2], files[0]), unloaded=(files[1],)),
                 lambda *news: heard.append(news))
    for found, log in zip(read, (logs[2], logs[0], logs[1]), strict=True):
        np.testing.assert_array_equal(found.effort, log.effort)
    assert heard == [('read', pytest.approx(READING * k / 3)) for k in range(3)]


@pytest.mark.parametrize(('job', 'code', 'words'), [
    (Job(ROBOT, ('nowhere.csv',)), Code.NO_DATA, 'nowhere.csv: no such file'),
    (Job(ROBOT, ('nowhere.csv',), recipe='cutof: 3'), Code.INVALID, 'unknown key cutof'),
    (Job(ROBOT, ('nowhere.csv',), recipe='[1]'), Code.INVALID, 'must be a mapping'),
    (Job(ROBOT, ('nowhere.csv',), out='/dev/null', root='/'), Code.INVALID, 'is a device'),
    (Job(ROBOT, ('nowhere.csv',), out='a', report='./a'), Code.INVALID, 'names it twice'),
    (Job(ROBOT, ('a.csv',), report='a.csv'), Code.INVALID, 'names it twice'),
    (Job(ROBOT, ('a.csv',), out='/dev/null/x/m.yaml', root='/'), Code.INVALID,
     'there is no folder'),
    (Job(ROBOT, ('a.csv',), out='../m.yaml', root='/proc'), Code.INVALID,
     'requests may not write it; give a name relative to /proc'),
    (Job(ROBOT, (motion(ROBOT, 50),), 'guess'), Code.INVALID, "method 'guess'"),
    (Job(ROBOT, (motion(ROBOT, 50),), payload=True, arm='{'), Code.NOT_IDENTIFIABLE, ''),
])
def test_whatever_goes_wrong_has_its_code(job: Job, code: Code, words: str) -> None:
    found = run(job, silent)
    assert found.code is code, found
    assert words in found.message
    assert found.model is None


def test_a_cancelled_job_says_so_and_a_fault_of_the_program_is_told() -> None:
    def stop(stage: str, fraction: float) -> None:
        raise Cancelled('asked to stop')

    def fail(stage: str, fraction: float) -> None:
        raise ZeroDivisionError('in the program')

    job = Job(ROBOT, (motion(ROBOT, 50),))
    assert run(job, stop) == Outcome(
        Code.CANCELLED, 'cancelled; the served model is unchanged')
    assert run(job, fail) == Outcome(
        Code.ABORTED, 'unexpected ZeroDivisionError: in the program; this is a fault of '
                      'robot_dynid: report it with the command and its input')


def test_the_verdict_is_that_of_the_result_in_sentences() -> None:
    log = synthetic(ROBOT, 1, 8.0)
    recipe = '{cutoff: 8.0, ramp_width: 0.01, effort_lag: 0.0, ripple: none, adaptation: none}'
    found = run(Job(ROBOT, (log,), recipe=recipe, out='m.yaml', root='/proc'), silent)
    model = found.model
    assert found.code is Code.NOT_SAVED and model is not None
    whole, *others = found.verdict
    assert whole.startswith('No use is shown to be good in all joints. ')
    assert ' Feed-forward: not shown. ' in whole and f' {THIN} ' in whole
    assert any('next: ' in sentence and 'm.yaml' in sentence for sentence in others)


def test_the_verdict_on_refused_recordings_says_what_to_set() -> None:
    log = synthetic(ROBOT, 1, 8.0)
    wrong = replace(log, position=np.degrees(log.position), velocity=None)
    found = run(Job(ROBOT, (wrong,)), silent)
    assert (found.code, found.model) == (Code.NOT_IDENTIFIABLE, None)
    whole, action = found.verdict
    assert whole.startswith('No model') and 'look like degrees' in whole
    assert action.startswith('next: ') and 'to rad' in action
