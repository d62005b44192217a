"""ros/: two robots side by side in one DDS domain, each in a namespace: neither knows of the
other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import PARAMETERS
from rosbags.rosbag2 import Reader
from std_srvs.srv import Trigger

from robot_dynid.execution.guards import Code
from robot_dynid.io.bag import read_bag
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_evaluation.stops.account import motion
from robot_dynid_evaluation.stops.cell import RECORDINGS, Cell, usual_nodes
from robot_dynid_evaluation.stops.client import Client

pytestmark = [pytest.mark.ros, pytest.mark.slow]

ROBOT = 'planar_3r'
SIDES = {'left': -0.3, 'right': 0.3}  # rad: the middle of the joints' motion
#: of the motion that is stopped, however late, and of the one that goes on
PERIODS = {'left': 40, 'right': 2}
RATE = 100.0  # Hz: seven processes share two cores, and those of other tests
STOOD = 1e-2  # rad: sag of an arm that is held


@dataclass(frozen=True)
class Side:
    """One robot, its nodes in their namespace, and a client of them."""

    name: str
    cell: Cell
    client: Client

    def record(self, do: str) -> None:
        service = self.client.node.create_client(Trigger, f'identifier/{do}_recording')
        self.client.wait(service.service_is_ready, what='the identifier')
        answer = service.call_async(Trigger.Request())
        self.client.wait(answer.done, what='the identifier')
        assert answer.result().success, answer.result().message

    def bags(self) -> tuple[Path, Path]:
        """Return the bags of the excitation node and of the identifier."""
        (excited,), (recorded,) = (list((self.cell.folder / folder).iterdir())
                                   for folder in (RECORDINGS, 'identifier'))
        return excited, recorded


@pytest.fixture
def sides(ros_domain: int, tmp_path: Path) -> Iterator[list[Side]]:
    with ExitStack() as stack:
        found = []
        for name, middle in SIDES.items():
            folder = tmp_path / name
            folder.mkdir()
            plan = motion(load_robot(ROBOT), PERIODS[name])
            save_trajectory(replace(plan, offset=plan.offset + middle), folder / 'motion.yaml')
            nodes: dict[str, Any] = {
                **usual_nodes(folder, ROBOT, {**PARAMETERS, 'emergency_stop_required': False}),
                'identifier': {'robot': ROBOT, 'recording_directory': folder / 'identifier'}}
            nodes['simulated_robot'] |= {'start_position': [middle] * 3, 'state_rate': RATE}
            cell = Cell(folder, nodes, f'/{name}')
            stack.callback(cell.close)
            for node in nodes:
                cell.start(node)
            client = Client(f'/{name}')
            stack.callback(client.close)
            found.append(Side(name, cell, client))
        for side in found:
            for node in ('simulated_robot', 'excitation'):
                side.client.meet(node, side.cell.require_alive)
        yield found
        for side in found:
            side.cell.require_alive()


def test_cancel_stops_one_robot_while_the_other_goes_on(sides: list[Side]) -> None:
    left, right = sides
    for side in sides:
        side.record('start')
    handles = [side.client.send('motion.yaml') for side in sides]
    ends = [handle.get_result_async() for handle in handles]
    lasts = {name: motion(load_robot(ROBOT), count).duration for name, count in PERIODS.items()}
    left.client.moving(ends[0], 0.5, lasts['left'])
    left.client.cancel(handles[0])
    for side, end in zip(sides, ends):
        side.client.wait(end.done, what=f'the end of the {side.name} motion')
        side.record('stop')
    results = [end.result().result for end in ends]
    assert [r.code for r in results] == [Code.CANCELLED, Code.SUCCESS], [
        r.message for r in results]
    for side, result in zip(sides, results):
        for bag in side.bags():
            with Reader(bag) as reader:
                topics = {c.topic for c in reader.connections if c.msgcount}
            assert topics and all(topic.startswith(f'/{side.name}/') for topic in topics)
            log = read_bag(bag, load_robot(ROBOT).joints)
            seen = log.position[np.isfinite(log.position).all(axis=1)]
            np.testing.assert_allclose(seen[0], SIDES[side.name], atol=STOOD)
            assert np.abs(seen - SIDES[side.name]).max() < 0.5
        assert str(side.bags()[0]) == result.recording
    going, stopped = (read_bag(side.bags()[0], load_robot(ROBOT).joints) for side in (right, left))
    assert np.ptp(going.time) > lasts['right']
    assert np.ptp(stopped.time) < lasts['left']
