"""ros/excitation/checklist.py: the checklist over DDS: the command asks a node, which looks at a
simulated robot."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from excitation_stage import PARAMETERS, ROBOT
from nodes import NodeProcess, Spinner, destroy
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient

from robot_dynid.cli.main import main
from robot_dynid.execution.guards import Code
from robot_dynid_interfaces.action import Check, Excite

pytestmark = pytest.mark.ros

QUICK = '{duration: 1.5, harmonics: 2, starts: 1, iterations: 1, scale: 0.4}'
FIRST = 300.0  # s: kernels are loaded before the node looks around
READY = 'ready: 16 items, no warnings'
#: faults of the simulated robot, the item that shows them, and the outcome of a motion
FAULTS = {
    'inactive': ('controller', Code.CONTROLLER_LOST, 'it is not active'),
    'no_effort': ('effort', Code.INVALID, 'joint states carry no effort of joints'),
}


@pytest.fixture(scope='module')
def bags(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run robot and node, whose recordings go into the folder returned."""
    folder = tmp_path_factory.mktemp('bags')
    nodes = [NodeProcess('simulated_robot', {'robot': ROBOT}),
             NodeProcess('excitation', {**PARAMETERS, 'recording_directory': folder})]
    yield folder
    for node in nodes:
        node.stop()
        assert 'Traceback' not in node.output, node.output


@pytest.fixture(scope='module')
def user(bags: Path) -> Iterator[Any]:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('user', context=context)
    yield node
    destroy(node)
    rclpy.shutdown(context=context)


def test_a_robot_in_order_is_ready(bags: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ['check', '--node', '/excitation', '--timeout', str(FIRST), '--json']
    end, found = time.monotonic() + FIRST, {}
    while time.monotonic() < end:  # what has just come up is busy with that, a machine with more
        code, found = main(asked), json.loads(capsys.readouterr().out)
        assert code == (0 if found['ok'] else 1)
        if found['message'] == READY:
            break
    assert found['ok'] and found['message'] == READY, found
    assert {item['level'] for item in found['items']} == {'OK'}
    assert all(set(item) == {'name', 'level', 'message', 'values'} for item in found['items'])
    rate = next(item for item in found['items'] if item['name'] == 'joint state rate')
    assert float(rate['values']['rate [Hz]']) > 100.0
    assert not list(bags.iterdir())


@pytest.mark.parametrize('fault', FAULTS)
def test_a_fault_is_found_and_refuses_the_first_motion(
    fault: str, bags: Path, user: Any
) -> None:
    name, code, words = FAULTS[fault]
    spinner, parameters = Spinner(user), AsyncParameterClient(user, 'simulated_robot')
    client = ActionClient(user, Excite, 'excitation/excite')
    spinner.wait(lambda: parameters.services_are_ready() and client.server_is_ready())
    spinner.answer(parameters.set_parameters([Parameter('fault', value=fault)]))
    told, items = list[str](), set[str]()
    asked = ActionClient(user, Check, 'excitation/check')
    spinner.wait(asked.server_is_ready)
    off: dict[str, Any] = {}
    end = time.monotonic() + FIRST
    while set(off) != {name} and time.monotonic() < end:  # the fault has yet to be seen
        checked = spinner.accepted(
            asked, Check.Goal(),
            feedback_callback=lambda message: told.append(message.feedback.item.name))
        found = spinner.answer(checked.get_result_async()).result
        items.update(item.name for item in found.items)  # of those before it, too
        off = {item.name: item for item in found.items if item.level != DiagnosticStatus.OK}
    handle = spinner.accepted(client, Excite.Goal(options=QUICK))
    result = spinner.answer(handle.get_result_async()).result
    spinner.answer(parameters.set_parameters([Parameter('fault', value='none')]))
    client.destroy()
    asked.destroy()
    assert set(off) == {name} and off[name].level == DiagnosticStatus.ERROR, off
    assert not found.success and words in off[name].message
    assert found.message == f'{name}: {off[name].message}'
    assert told and set(told) <= items
    assert result.code == code and words in result.message, result.message
    assert result.message.endswith('; nothing was sent') and not list(bags.iterdir())


def test_the_command_says_that_nobody_answers(
    ros_domain: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['check', '--node', 'nobody', '--timeout', '0.3']) == 1
    error = capsys.readouterr().err
    assert 'no action /nobody/check within 0.3 s: check that the node runs' in error
    assert main(['check', '--timeout', 'nan']) == 2
