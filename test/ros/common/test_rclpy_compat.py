"""The parts of rclpy that are used beyond its documented interface are where they were."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy')

from rclpy.action import ActionServer
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import Executor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription


@pytest.mark.parametrize(('owner', 'names'), [
    (rclpy_implementation, ('WaitSet', 'InvalidHandle')),
    (rclpy_implementation.WaitSet, ('clear_entities', 'add_subscription', 'wait')),
    (rclpy_implementation.Subscription, ('take_message', '__enter__', '__exit__')),
    (Subscription, ('handle', 'topic_name')), (MutuallyExclusiveCallbackGroup, ('can_execute',)),
    (Executor, ('wait_for_ready_callbacks',)), (ActionServer, ('notify_execute',))])
def test_the_installed_rclpy_has_all_that_is_used(owner: object, names: tuple[str, ...]) -> None:
    assert [name for name in names if not hasattr(owner, name)] == []


def test_a_node_keeps_the_parameters_it_is_started_with() -> None:
    assert '_parameter_overrides' in Node.__init__.__code__.co_names
