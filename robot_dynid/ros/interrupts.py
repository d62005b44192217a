"""SIGINT comes twice: `ros2 launch` passes on the Ctrl-C which the terminal sent already."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation

RCLError = rclpy_implementation.RCLError


def interrupt_once() -> None:
    """Let the first SIGINT raise KeyboardInterrupt and the later ones not disturb the farewell.

    Call it before `rclpy.init`, whose own handler then wakes the executor as well.
    """
    signal.signal(signal.SIGINT, _raise_once)


def _raise_once(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Run a block until an interrupt ends it, wherever it is.

    While a node starts, rclpy may notice first: its context is shut down, and it refuses to go on.
    """
    try:
        yield
    except (KeyboardInterrupt, ExternalShutdownException):
        return
    except RCLError:
        if rclpy.ok():
            raise
