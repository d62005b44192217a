"""A node for a program that is not itself a node; quick to import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions


@contextmanager
def helper_node(name: str) -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    """Yield a node and its executor for a program that is not itself a node."""
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node(name, context=context, enable_rosout=False,
                                 start_parameter_services=False)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            yield node, executor
        finally:
            executor.shutdown()
            node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
