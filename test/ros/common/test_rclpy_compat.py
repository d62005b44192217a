"""The parts of rclpy that are used beyond its documented interface are where they were."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy')

from rclpy.action import ActionServer
from rclpy.subscription import Subscription

from robot_dynid.ros.common.rclpy_compat import missing_parts


def test_the_installed_rclpy_has_all_that_is_used() -> None:
    assert missing_parts() == []


def test_what_a_version_moves_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ActionServer, 'notify_execute')
    monkeypatch.delattr(Subscription, 'topic_name')
    handle, action = missing_parts()
    assert handle.startswith('rclpy ') and handle.endswith(' has no Subscription.topic_name')
    assert action.endswith(' has no ActionServer.notify_execute')
