"""Client of the checklist action of an excitation node, for programs that run no node."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from robot_dynid.errors import DynIdError
from robot_dynid_interfaces.action import Check

LEVELS = ('OK', 'WARN', 'ERROR')


def checklist(node: str, timeout: float) -> dict[str, Any]:
    """Return the checklist of an excitation ``node``: ok, message and items.

    Raises DynIdError when it does not answer within ``timeout`` s.
    """
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        own = rclpy.create_node('checklist', context=context, enable_rosout=False,
                                start_parameter_services=False)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(own)
        client = ActionClient(own, Check, f'{node}/check')
        try:
            return _asked(client, executor, node, timeout)
        finally:
            executor.shutdown()
            client.destroy()
            own.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def _asked(client: Any, executor: Any, node: str, timeout: float) -> dict[str, Any]:
    end = time.monotonic() + timeout

    def wait(condition: Callable[[], bool], what: str) -> None:
        while not condition():
            if time.monotonic() > end:
                raise DynIdError(f'{what} within {timeout:g} s; does the excitation node run, in '
                                 'this ROS_DOMAIN_ID, and is its name the one of --node?')
            executor.spin_once(timeout_sec=0.05)

    wait(client.server_is_ready, f'no action {node}/check')
    sent = client.send_goal_async(Check.Goal())
    wait(sent.done, 'no answer')
    result = sent.result().get_result_async()
    wait(result.done, 'no result')
    found = result.result().result
    return {'ok': bool(found.success), 'message': found.message, 'items': [{
        'name': item.name, 'level': LEVELS[item.level[0]], 'message': item.message,
        'values': {pair.key: pair.value for pair in item.values}} for item in found.items]}
