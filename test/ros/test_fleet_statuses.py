"""robot_dynid_extras/fleet/statuses.py: conditions of arms on /diagnostics: as they are, once, and
whether anybody listens."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip('rclpy')

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nodes import Spinner

from robot_dynid_extras.fleet.report import ArmStatus
from robot_dynid_extras.fleet.statuses import PATIENCE, publish

ARMS = (ArmStatus('SN0', True, 'joint_2: dry friction +20 ± 4 %', {'sessions': '8'}),
        ArmStatus('SN1', False, 'as expected', {}))


def test_publish_sends_the_status_of_all_arms_to_subscribers(node: Any) -> None:
    found: list[DiagnosticArray] = []
    node.create_subscription(DiagnosticArray, '/diagnostics', found.append, 10)
    assert publish(ARMS, 4.0 * PATIENCE)
    Spinner(node).wait(lambda: found)
    [changed, other] = found[0].status
    assert (changed.name, changed.hardware_id) == ('/fleet: SN0', 'SN0')
    assert (changed.level, changed.message) == (DiagnosticStatus.WARN, ARMS[0].message)
    assert [(one.key, one.value) for one in changed.values] == [('sessions', '8')]
    assert (other.level, other.message) == (DiagnosticStatus.OK, 'as expected')


@pytest.mark.usefixtures('ros_domain')
def test_where_nobody_listens_that_is_said() -> None:
    assert not publish(ARMS, 0.1)
