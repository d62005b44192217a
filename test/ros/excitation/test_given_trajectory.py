"""ros/excitation/plan.py: designed files and dry runs are executed as they are, over DDS, by a
simulated robot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import ROBOT, SHORT, Stage

from robot_dynid.cli.main import main
from robot_dynid.execution.guards import Code
from robot_dynid.execution.sampled import SampledTrajectory, sampled
from robot_dynid.io.trajectory_file import load_trajectory
from robot_dynid.ros.excitation.controller_client import duration_message

pytestmark = pytest.mark.ros

RATE, LEAD_IN, PERIOD = 50.0, 0.2, 1.5137  # points per second, s, s: no whole number of points
FAST = 3.0


@pytest.fixture(scope='module')
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the files that goals name; beside it lies one they must not."""
    outside = tmp_path_factory.mktemp('given')
    folder = outside / 'files'
    folder.mkdir()
    good = folder / 'good.yaml'
    assert main(['design', ROBOT, '--duration', str(2 * PERIOD), '--periods', '2', '--harmonics',
                 '2', '--scale', '0.4', '--starts', '1', '--iterations', '5', '--seed', '4',
                 '--out', str(good)]) == 0
    content = yaml.safe_load(good.read_text())
    fast = content | {'base_frequency': FAST * content['base_frequency']}
    other = content | {'joints': ['joint_1', 'joint_2', 'joint_7']}
    for name, text in (('fast', yaml.safe_dump(fast)), ('other', yaml.safe_dump(other)),
                       ('notes', 'no trajectory'), ('empty', '')):
        (folder / f'{name}.yaml').write_text(text)
    (outside / 'secret.yaml').write_text(good.read_text())
    (folder / 'link.yaml').symlink_to(outside / 'secret.yaml')
    odd = folder / os.fsdecode(b'odd \xff')  # no text
    odd.write_text('no trajectory')
    (folder / 'odd.yaml').symlink_to(odd)
    return folder


@pytest.fixture(scope='module')
def shared(module_domain: int, files: Path, tmp_path_factory: pytest.TempPathFactory
           ) -> Iterator[Stage]:
    """The face is the controller's topic: what comes over it is the very command."""
    stage = Stage(tmp_path_factory.mktemp('bags'), face='topic', warm_up=1,
                  files_directory=files)
    yield stage
    stage.close()
    assert 'Traceback' not in stage.node.output, stage.node.output
    assert 'unexpected' not in stage.node.output, stage.node.output


@pytest.fixture
def stage(shared: Stage) -> Stage:
    return shared.reset()


def columns(message: Any) -> tuple[np.ndarray, ...]:
    """Return time, position, velocity, acceleration of a message, bit for bit as sent."""
    points = message.points
    return (np.array([[p.time_from_start.sec, p.time_from_start.nanosec] for p in points]),
            np.array([p.positions for p in points]), np.array([p.velocities for p in points]),
            np.array([p.accelerations for p in points]))


def own(points: SampledTrajectory, delay: float) -> tuple[np.ndarray, ...]:
    """Return the same of points that are sent ``delay`` s later."""
    stamps = [duration_message(float(t)) for t in points.time + delay]
    return (np.array([[stamp.sec, stamp.nanosec] for stamp in stamps]), points.position,
            points.velocity, points.acceleration)


@pytest.mark.parametrize(('goal', 'code', 'words'), [
    ({'trajectory': 'none.yaml'}, Code.UNKNOWN_TRAJECTORY,
     "trajectory: 'none.yaml': requests may not read it; give a name"),
    ({'trajectory': '../secret.yaml'}, Code.UNKNOWN_TRAJECTORY,
     "trajectory: '../secret.yaml': requests may not read it"),
    ({'trajectory': 'link.yaml'}, Code.UNKNOWN_TRAJECTORY,
     "'link.yaml': requests may not read"),
    ({'trajectory': '/etc/hostname'}, Code.UNKNOWN_TRAJECTORY, '(parameter files_directory)'),
    ({'trajectory': 'notes.yaml'}, Code.UNKNOWN_TRAJECTORY, 'not a trajectory file'),
    ({'trajectory': 'odd.yaml'}, Code.UNKNOWN_TRAJECTORY, r'odd \udcff: not a trajectory file'),
    ({'trajectory': 'empty.yaml'}, Code.UNKNOWN_TRAJECTORY, 'not a trajectory file'),
    ({'trajectory': 'dry-run-0123456789abcdef'}, Code.UNKNOWN_TRAJECTORY,
     'request a new dry run and give the identifier in its result'),
    ({'trajectory': 'other.yaml'}, Code.JOINTS_DIFFER,
     'moves joint_1, joint_2, joint_7; the robot has joint_1, joint_2, joint_3'),
    ({'trajectory': 'fast.yaml'}, Code.LIMIT_BROKEN, "acceleration of joint 'joint_"),
    ({'options': '{environment: ../secret.yaml}'}, Code.INVALID,
     "'../secret.yaml': requests may not read"),
    ({'trajectory': 'good.yaml', 'type': 'fourier'}, Code.INVALID, 'omit one of them'),
    ({'trajectory': 'good.yaml', 'options': SHORT}, Code.INVALID, 'omit one of them'),
])
def test_excite_refuses_goals_that_do_not_fit_by_name(
    stage: Stage, goal: dict[str, str], code: Code, words: str
) -> None:
    """Relative to files_directory, and against joints and limits of the node's own robot."""
    client = stage.client
    client.wait(client.action.server_is_ready)
    for dry_run in (True, False):
        result = client.excite(**{'options': ''} | goal, dry_run=dry_run)
        assert (result.code, result.plan) == (code, ''), result.message
        assert words in result.message and result.message.endswith('; nothing was sent')
        assert not client.holds and not client.sent


def test_the_points_of_a_designed_file_are_commanded_bit_for_bit(
    stage: Stage, files: Path
) -> None:
    client = stage.with_robot()
    result = client.excite(options='', trajectory='good.yaml')
    assert result.code == Code.SUCCESS, result.message
    assert result.plan == '' and result.duration == 2 * PERIOD
    assert len(result.warnings) == 2
    assert result.warnings[0].startswith('floor NOT checked: none is given; add ')
    assert result.warnings[1].startswith('no emergency stop is received or required: publish ')
    points = sampled(load_trajectory(files / 'good.yaml'), RATE, LEAD_IN)
    for shown, wanted in zip(columns(client.trajectories[-1]), own(points, 0.0), strict=True):
        np.testing.assert_array_equal(shown, wanted)
    commanded = columns(client.commanded())
    for sent, wanted in zip(commanded, own(points, PERIOD), strict=True):
        np.testing.assert_array_equal(sent[-len(wanted):], wanted)
    assert len(commanded[0]) == len(points.time) + int(np.ceil(PERIOD * RATE)), 'warm-up ahead'


def test_a_dry_run_is_executed_as_it_was_shown(stage: Stage) -> None:
    client = stage.with_robot()
    seen = client.excite(SHORT, dry_run=True)
    assert seen.code == Code.SUCCESS and not client.holds, seen.message
    client.wait(lambda: client.trajectories)
    shown = columns(client.trajectories[-1])
    again = client.excite(SHORT, dry_run=True)
    assert again.plan == seen.plan, 'the same plan has the same name'
    other = client.excite(SHORT.replace('{', '{seed: 9, '), dry_run=True)
    assert other.code == Code.SUCCESS and other.plan != seen.plan
    result = client.excite(options='', trajectory=seen.plan)
    assert result.code == Code.SUCCESS, result.message
    assert list(result.warnings) == list(seen.warnings)
    # where the robot stands is read anew, with the noise of its encoders
    assert result.total_duration == pytest.approx(seen.total_duration, abs=1e-3)
    assert seen.total_duration > seen.duration + 2.0 * LEAD_IN
    whole = f'{seen.duration:g} s of excitation, {seen.total_duration:.1f} s in all: move to start'
    assert whole in seen.message and whole in result.message
    remaining = np.array(client.remaining)
    assert 0.5 * seen.total_duration < remaining.max() <= seen.total_duration
    assert np.median(np.diff(remaining[remaining > 0.0])) < 0.0, 'it counts down'
    _, *commanded = columns(client.commanded())
    for sent, wanted in zip(commanded, shown[1:], strict=True):
        np.testing.assert_array_equal(sent[-len(wanted):], wanted)


def test_a_node_that_was_started_anew_does_not_know_the_dry_runs_before(stage: Stage) -> None:
    client = stage.with_robot()
    seen = client.excite(SHORT, dry_run=True)
    stage.start_node()
    client.diagnostics.clear()
    client.wait(client.controller_seen)
    client.wait_for_rest()
    result = client.excite(options='', trajectory=seen.plan)
    assert result.code == Code.UNKNOWN_TRAJECTORY
    assert 'request a new dry run' in result.message
    client.stayed()
