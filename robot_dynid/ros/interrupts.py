"""SIGINT comes twice: `ros2 launch` passes on the Ctrl-C which the terminal sent already."""

from __future__ import annotations

import signal
from types import FrameType


def interrupt_once() -> None:
    """Let the first SIGINT raise KeyboardInterrupt and the later ones not disturb the farewell.

    Call it before `rclpy.init`, whose own handler then wakes the executor as well.
    """
    signal.signal(signal.SIGINT, _raise_once)


def _raise_once(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
