"""ros/excitation/runner.py: a goal moves twice: to fit a model, and to judge it by; a stop, checks
and a bag for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')

from excitation_stage import CANCELED, ROBOT, SUCCEEDED, Client, Stage

from robot_dynid.execution.guards import Code
from robot_dynid.io.bag import read_bag
from robot_dynid.io.recording_names import by_purpose, recordings_in
from robot_dynid.robot.robot_file import load_robot

pytestmark = pytest.mark.ros

MOTION = '{duration: 3, harmonics: 2, scale: 0.5, starts: 1, iterations: 5}'


@pytest.fixture(scope='module')
def stage(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp('bags'), validation=True)
    yield made
    made.close()


@pytest.fixture
def client(stage: Stage) -> Client:
    for path in recordings_in(stage.folder):
        Path(path).rename(stage.folder.parent / Path(path).name)
    return stage.reset().with_robot()


def passed(client: Client) -> list[str]:
    """Return the segments that the feedback named, one after the other."""
    names = [name for _, name, *_ in client.segments]
    return [name for name, before in zip(names, [None, *names]) if name != before]


def test_excite_shows_executes_and_records_both_motions_apart(
    stage: Stage, client: Client
) -> None:
    shown = client.excite(MOTION, dry_run=True)
    assert shown.success and '; validation: 4.5 s of excitation, ' in shown.message
    status, result = client.result(client.send('', trajectory=shown.plan))
    assert (status, result.code) == (SUCCEEDED, Code.SUCCESS), result.message
    fit, judge = recordings_in(stage.folder)
    assert (result.recording, judge) == (fit, f'{fit}_validation')
    assert f'recorded in {fit}; validation: executed; ' in result.message
    assert result.message.endswith(f'recorded in {judge}')
    assert by_purpose([judge, fit]) == ([fit], [judge])
    assert result.total_duration == pytest.approx(shown.total_duration, rel=0.3)
    assert result.total_duration > result.duration + 4.5 and result.duration == 3.0
    names = passed(client)
    assert names.count('excitation') == 2 and names.count('move_to_start') == 2
    remaining = [left for left in client.remaining if left]
    assert remaining[0] == pytest.approx(result.total_duration, rel=0.2)
    robot = load_robot(ROBOT)
    first, second = (read_bag(Path(path), robot.joints) for path in (fit, judge))
    assert second.epoch > first.epoch + first.time[-1]
    for log in (first, second):  # from rest to rest
        assert np.abs(np.diff(log.position[[0, 1, -2, -1]], axis=0)[[0, 2]]).max() < 1e-3
        assert np.ptp(log.position, axis=0).max() > 0.2


def test_a_stop_in_the_second_motion_leaves_the_first_recording_whole(
    stage: Stage, client: Client
) -> None:
    handle = client.send(MOTION)
    client.wait(lambda: passed(client).count('excitation') == 2)
    client.answer(handle.cancel_goal_async())
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED)
    assert result.message.startswith('executed; ') and 'cancelled by the client' in result.message
    fit, judge = recordings_in(stage.folder)
    assert result.recording == fit and by_purpose([fit, judge]) == ([fit], [judge])


def test_after_a_stop_in_the_first_motion_nothing_else_moves(
    stage: Stage, client: Client
) -> None:
    handle = client.send(MOTION)
    client.wait(lambda: passed(client).count('excitation') == 1)
    client.answer(handle.cancel_goal_async())
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED)
    assert 'validation' not in result.message
    assert recordings_in(stage.folder) == [result.recording]


def test_emergency_stop_between_the_motions_prevents_the_second(
    stage: Stage, client: Client
) -> None:
    """The emergency stop, pressed while the robot rests between the motions."""
    handle = client.send(MOTION)
    client.wait(lambda: passed(client)[-2:] == ['excitation', 'check'])
    client.press(True)
    _, result = client.result(handle)
    client.press(False)
    assert result.code == Code.EMERGENCY_STOP and '; validation: ' in result.message
    assert result.recording == recordings_in(stage.folder)[0]
