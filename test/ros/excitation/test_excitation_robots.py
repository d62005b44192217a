"""ros/excitation/node.py: excitations of a current-driven robot and of one with a prismatic joint,
over real DDS.

What the guards make of them is tested in simulated time; here it is that the nodes agree on what
the numbers mean, and that a bag says the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from nodes import Spinner, running
from rclpy.action import ActionClient

from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.execution.guards import Code
from robot_dynid.io.bag import read_bag
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import RawLog
from robot_dynid_interfaces.action import Excite

pytestmark = pytest.mark.ros

START = {'ur10e': [0.0, -1.2, 0.9, 0.3, 0.4, 0.0], 'stanford_arm': [0.0] * 6}
MOTION = '{duration: 2, harmonics: 2, starts: 1, iterations: 1, scale: 0.5}'
# Nothing goes wrong here, and the machine may have other things to do.
PARAMETERS = {
    'state_timeout': 5.0, 'controller_timeout': 5.0, 'feedback_timeout': 5.0,
    'acceptance_timeout': 10.0, 'result_timeout': 10.0, 'tracking_window': 3.0,
    'approach_scale': 0.6, 'first_pass_scale': 1.0, 'warm_up': 0, 'return_to_start': False,
    'validation': False,
}
ARM = {'state_rate': 100.0, 'effort_noise': 0.0}


def excited(user: Any, name: str, folder: Path) -> Excite.Result:
    """Return how the excitation of a simulated robot ended that a node asked for."""
    with running('simulated_robot', {'robot': name, 'start_position': START[name], **ARM}), \
            running('excitation', {'robot': name, 'recording_directory': folder, **PARAMETERS}):
        client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(user)
        spinner.wait(client.server_is_ready)
        handle = spinner.accepted(client, Excite.Goal(options=MOTION))
        return spinner.answer(handle.get_result_async()).result


def standing_effort(robot: RobotModel, log: RawLog) -> None:
    """Hold the efforts before anything was sent against gravity, in the unit of the robot."""
    assert log.effort is not None
    gains = np.ones(robot.n) if robot.drive.gains is None else robot.drive.gains
    holding = gravity_effort(robot, log.position[:1])[0] / gains
    friction = load_truth(robot).coulomb / gains
    assert np.abs(holding).max() > 5.0
    assert np.all(np.abs(log.effort[0] - holding) < friction + 0.05)


@pytest.mark.parametrize('name', START)
def test_an_excitation_of_a_robot_unlike_the_others(
    name: str, node: Any, tmp_path: Path
) -> None:
    robot = load_robot(name)
    result = excited(node, name, tmp_path)
    assert result.code == Code.SUCCESS, result.message
    log = read_bag(result.recording, robot.joints)
    standing_effort(robot, log)
    assert np.ptp(log.position, axis=0).min() > 0.01, 'every joint moved, in rad or m'
    assert log.reference_position is not None
    away = np.nanmax(np.abs(log.reference_position - log.position), axis=0)
    assert np.all(away < [0.03 if kind == PRISMATIC else 0.15 for kind in robot.types])
