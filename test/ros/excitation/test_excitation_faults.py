"""ros/excitation/runner.py: whatever goes wrong in mid-motion: who is told, how soon, why, and
what is left on the disk.

Over real DDS, each node a process of its own. `pytest -s` prints the times that were measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.cli.main import main
from robot_dynid.io.bag import read_bag

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import ABORTED, CANCELED, PARAMETERS, ROBOT, SUCCEEDED, Client, Stage
from rosbags.rosbag2 import Reader
from std_srvs.srv import Trigger

from robot_dynid.execution.guards import Code
from robot_dynid.robot.robot_file import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.slow]  # the longest file of its part

FACES = ('action', 'topic')
WIDE = '{duration: 8, harmonics: 8, scale: 0.8, starts: 1, iterations: 10}'
ALARMS = {'temperature_limit': 80.0, 'temperature_timeout': 600.0,
          'emergency_stop_required': True, 'emergency_stop_timeout': 10.0}
MEASURED: list[tuple[str, str, float, float]] = []


@pytest.fixture(scope='module', params=FACES)
def shared(request: pytest.FixtureRequest, module_domain: int,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp('bags'), face=request.param, **ALARMS)
    yield stage
    stage.close()
    assert 'Traceback' not in stage.node.output, stage.node.output
    assert 'unexpected' not in stage.node.output, stage.node.output


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """Return the stage as a test expects it, whatever became of the test before."""
    return shared.reset()


@pytest.fixture(scope='module', autouse=True)
def table() -> Iterator[None]:
    yield
    lines = ['', 'face    cause                    from cause to controller   guard to command']
    lines += [f'{face:7} {cause:24} {1e3 * whole:20.1f} ms {1e3 * part:18.1f} ms'
              for face, cause, whole, part in MEASURED]
    sys.stdout.write('\n'.join(lines) + '\n')


def ready(stage: Stage) -> Client:
    """Return the client of a robot at rest about which nobody worries."""
    client = stage.with_robot()
    client.press(False)
    client.warm(40.0)
    client.later(0.2)
    return client


def measured(stage: Stage, cause: str, since: float) -> None:
    """Write down how long a stop took, the node's part of it less than the motion would.

    Guard and command are stamps of the node. What lies before and after is up to the machine;
    `robot-dynid bench stops` holds each against what is promised.
    """
    guarded, commanded, told = stage.client.stopped_after(since)
    MEASURED.append((stage.changes['face'], cause, told - since, commanded - guarded))
    assert commanded - guarded < PARAMETERS['lookahead']


def readable(path: str) -> dict[str, int]:
    """Return the number of messages by topic of a bag whose joint states can be read."""
    log = read_bag(path, load_robot(ROBOT).joints)
    assert np.ptp(log.time) > 0.2 and np.all(np.isfinite(log.position))
    with Reader(path) as reader:
        return {c.topic: c.msgcount for c in reader.connections}


def silence(path: str) -> float:
    """Return how long [s] there had been no joint state when the node commanded its stop.

    Both by the clock of the node, which wrote the bag.
    """
    with Reader(path) as reader:
        last = {c.topic: at for c, at, _ in reader.messages()}
    return 1e-9 * (last['/excitation/sent'] - last['/joint_states'])


def hot(client: Client) -> None:
    client.warm(95.0)


def emergency(client: Client) -> None:
    client.press(True)


def fault(name: str) -> Any:
    return lambda client: client.fault(name)


HARD = 'motion cancelled, the robot holds'
GENTLE = 'stopped along the path, the robot holds'
#: how a stop that is not seen ends by face: a silent controller ends its piece, or answers
UNSEEN = {'action': 'decelerated within the limits, confirmed but not seen: check that it stands',
          'topic': 'the controller is silent, so nothing was sent: check that it stands'}
CAUSES = {
    'effort': (fault('effort_spike'), Code.EFFORT_LIMIT, "effort of joint 'joint_1' is", HARD),
    'no states': (fault('stop_states'), Code.STALE_STATES, 'no state of joint',
                  UNSEEN),
    'another program': (Client.hijack, Code.TAKEN_OVER, 'another program has taken it over', ''),
    'emergency stop': (emergency, Code.EMERGENCY_STOP, 'the emergency stop is pressed', GENTLE),
    'temperature': (hot, Code.TEMPERATURE, 'is at 95.0 degrees C (limit 80)', GENTLE),
}


@pytest.mark.parametrize('cause', [
    pytest.param(cause, marks=pytest.mark.soak if cause == 'temperature' else ())
    for cause in CAUSES])  # a stop as gentle as that of the emergency stop
def test_the_robot_is_told_at_once_and_the_user_why(stage: Stage, cause: str) -> None:
    act, code, words, end = CAUSES[cause]
    client = ready(stage)
    handle = client.moving()
    since = time.time()
    act(client)
    status, result = client.result(handle)
    assert (status, result.code) == (ABORTED, code), result.message
    end = end[stage.changes['face']] if isinstance(end, dict) else end
    assert words in result.message and end in result.message
    assert 'excitation at ' in result.message
    commanded = end != UNSEEN['topic']  # a controller that is silent, too, ends its piece
    if commanded:
        measured(stage, cause, since)
    client.fault('none')
    client.comes_to_rest()
    assert result.message.endswith(f'recorded in {result.recording}')
    counts = readable(result.recording)
    assert counts['/joint_trajectory_controller/controller_state'] > 20
    assert counts['/excitation/sent'] >= 2 + commanded, 'the move, the excitation, and the stop'


def test_excite_sends_nothing_when_an_alarm_precedes_the_start(stage: Stage) -> None:
    client = ready(stage)
    client.press(True)
    result = client.excite()
    assert result.code == Code.EMERGENCY_STOP and 'nothing was sent' in result.message
    client.press(False)
    client.warm(81.0)
    result = client.excite()
    assert result.code == Code.TEMPERATURE and 'nothing was sent' in result.message
    client.warm(40.0)
    client.stayed()


def test_pause_and_resume(stage: Stage) -> None:
    client = ready(stage)
    handle = client.moving()
    since = time.time()
    assert 'slowing down' in client.trigger('pause')
    client.wait(lambda: client.segments[-1][1] == 'pause')
    measured(stage, 'pause', since)
    client.comes_to_rest()
    assert 'continuing excitation' in client.resume()
    client.wait(lambda: client.speed > 0.2)
    again = client.answer(client.triggers['resume'].call_async(Trigger.Request()))
    assert (again.success, again.message) == (False, 'not paused')
    client.trigger('pause')
    client.comes_to_rest()
    assert client.answer(handle.cancel_goal_async()).goals_canceling
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED), result.message
    assert 'cancelled by the client; ' in result.message, 'seen at rest by the node, or not yet'
    assert 'the robot holds' in result.message
    readable(result.recording)


def test_a_rejected_stop_becomes_a_hard_one_and_a_rejected_piece_runs_out(stage: Stage) -> None:
    """A renewed piece may be rejected before the stop is: the one before it ends at rest."""
    if stage.changes['face'] == 'topic':
        pytest.skip('on a topic nothing is rejected')
    client = ready(stage)
    handle = client.moving()
    client.fault('reject')
    client.triggers['pause'].call_async(Trigger.Request())
    status, result = client.result(handle)
    assert (status, result.code) == (ABORTED, Code.REJECTED), result.message
    assert 'rejected the trajectory' in result.message
    ends = [result.message.count(f'{how}, the robot holds')
            for how in ('motion cancelled', 'stopped along the path')]
    assert sorted(ends) == [0, 1], result.message


def cancelled(stage: Stage, after: float) -> None:
    """Cancel an excitation ``after`` s and see the robot brake."""
    client = ready(stage)
    handle = client.send()
    client.spin(after)
    since = time.time()
    assert client.answer(handle.cancel_goal_async()).goals_canceling
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED), result.message
    if 'cancelled before anything was sent' in result.message:
        return
    client.later(0.2)
    if any(at >= since for at in client.guarded):
        measured(stage, f'cancel at {after:.2f} s', since)
    else:  # the piece under way ended by itself
        assert 'stopped along the path' in result.message, result.message
    client.comes_to_rest()
    readable(result.recording)


def test_cancel_at_random_times(stage: Stage) -> None:
    cancelled(stage, float(np.random.default_rng(0).uniform(0.5, 3.0)))


@pytest.mark.soak
def test_cancel_at_many_random_times(stage: Stage) -> None:
    for after in np.random.default_rng(1).uniform(0.0, 12.0, 40):
        cancelled(stage, float(after))


def test_controller_killed_in_mid_motion_and_replaced(stage: Stage) -> None:
    client = ready(stage)
    handle = client.moving()
    since = time.time()
    stage.kill_robot()
    status, result = client.result(handle)
    lost = {'action': Code.CONTROLLER_LOST, 'topic': Code.STALE_STATES}[stage.changes['face']]
    assert (status, result.code) == (ABORTED, lost), result.message
    assert 'check that' in result.message
    if stage.changes['face'] == 'action':  # by its topic a silent controller is sent nothing
        assert silence(result.recording) > 0.0
        client.wait(lambda: client.holds)
        measured(stage, 'controller killed', since)
    readable(result.recording)
    client = ready(stage)
    assert client.excite().code == Code.SUCCESS


@pytest.mark.parametrize('shared', [
    pytest.param('action', marks=pytest.mark.soak), 'topic'], indirect=True, scope='module')
def test_a_recording_identifies_the_robot_and_holds_the_reference(
    stage: Stage, tmp_path: Path
) -> None:
    client = ready(stage)
    status, result = client.result(client.send(WIDE))
    assert (status, result.code) == (SUCCEEDED, Code.SUCCESS), result.message
    counts = readable(result.recording)
    assert counts['/excitation/sent'] > 10, 'all pieces of the move and of the excitation'
    log = read_bag(result.recording, load_robot(ROBOT).joints)
    assert log.reference_position is not None
    lag = log.reference_position - log.position
    assert np.isfinite(lag).all(axis=1).mean() > 0.95 and 0.0 < np.nanmax(np.abs(lag)) < 0.05
    assert main(['identify', result.recording, '--robot', ROBOT, '--out',
                 str(tmp_path / 'model.yaml')]) == 0


def test_the_robot_stops_without_the_node_and_the_recording_outlives_it(stage: Stage) -> None:
    """Killed, the node cannot stop it nor close the bag; all but the last moments is there."""
    client = ready(stage)
    client.moving()
    begun = client.clock
    client.later(2.0)
    stage.kill_node()
    recorded = client.clock - begun
    client.wait(lambda: client.rested > 0.3)
    unattended = client.moved_at - begun - recorded
    MEASURED.append((stage.changes['face'], 'node killed: at rest', unattended, 0.0))
    assert unattended < PARAMETERS['lookahead'] + 0.1
    bag = max(stage.folder.iterdir(), key=lambda path: path.stat().st_mtime)
    log = read_bag(bag, load_robot(ROBOT).joints)
    assert log.time[-1] > recorded - 1.0
    assert any('not closed' in finding or 'cut off' in finding for finding in log.findings)
