"""ros/common/messages.py: statuses on /diagnostics say whose they are, where many robots share the
topic; texts of messages."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip('rclpy')

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nodes import Spinner, destroy

from robot_dynid.ros.common.messages import Diagnostics, sendable


def test_statuses_are_named_after_node_and_robot(node: Any) -> None:
    found: list[DiagnosticArray] = []
    node.create_subscription(DiagnosticArray, '/diagnostics', found.append, 10)
    sender = rclpy.create_node('watching', namespace='cell1', context=node.context)
    diagnostics, spinner = Diagnostics(sender, 'tx40'), Spinner(node)
    spinner.wait(lambda: sender.count_subscribers('/diagnostics'))
    diagnostics.publish(*(DiagnosticStatus(name=name) for name in ('arm', 'contact')))
    spinner.wait(lambda: found)
    destroy(sender)
    assert [(status.name, status.hardware_id) for status in found[0].status] == [
        ('/cell1/watching: arm', 'tx40'), ('/cell1/watching: contact', 'tx40')]
    assert found[0].header.stamp.sec > 0


def test_a_text_of_a_message_is_one_line_of_utf_8() -> None:
    assert sendable('a\nb\x1b[2J \udcff ü\0') == r'a\nb\x1b[2J \udcff ü\x00'
    assert len(sendable('x' * 10**6)) < 10**4
