"""ros/recording/session.py: time of a simulation that is not that of the system: /clock and
use_sim_time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from nodes import Spinner, destroy, made
from rclpy.parameter import Parameter

from robot_dynid.errors import UsageError
from robot_dynid.io.cdr import JOINT_STATE
from robot_dynid.io.log import load_log
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.recording.session import Recording
from robot_dynid.ros.simulated_robot.node import SimulatedRobot
from robot_dynid.types import RawLog

pytestmark = [pytest.mark.ros, pytest.mark.usefixtures('ros_domain')]

ROBOT, RATE, FACTOR = 'planar_3r', 250.0, 2.0
SECONDS = 2.0  # of simulated time


def user(name: str, **words: Any) -> Any:
    """Return a node that follows /clock."""
    given = [Parameter('use_sim_time', value=True)]
    return rclpy.create_node(name, parameter_overrides=given, **words)


def test_a_simulation_twice_as_fast_is_recorded_in_its_own_time(tmp_path: Path) -> None:
    """Header stamps give the rate of the states, dates of the recording keep up with them."""
    with made(SimulatedRobot, robot=ROBOT, state_rate=RATE, real_time_factor=FACTOR) as robot:
        node = user('recording')
        recording, spinner = Recording(node, tmp_path, 'arm', (), 1000), Spinner(robot, node)
        with pytest.raises(UsageError, match='nothing has come on /clock yet'):
            recording.start()
        spinner.wait(recording.now)
        path = recording.start()
        spinner.wait(lambda: recording.count('joint_states') > 10)
        first = recording.now()
        spinner.wait(lambda: recording.now() > first + SECONDS * 1e9)
        assert recording.stop()[0]
        file = recording.recorder.storage_file
        recording.close()
        destroy(node)
    log = load_log(path, load_robot(ROBOT))
    assert isinstance(log, RawLog)
    assert np.median(np.diff(log.time)) == pytest.approx(1.0 / RATE, rel=1e-6)
    assert not [found for found in log.findings if 'stamp' in found]
    dates = np.concatenate([batch.received for _, batch in mcap_batches(
        file, (JOINT_STATE,), Contents())]) * 1e-9
    assert np.ptp(dates) > 0.75 * np.ptp(log.time), 'half of it by the time of the system'
