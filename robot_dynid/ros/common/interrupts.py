"""Shutdown of nodes on SIGINT and SIGTERM: a node closes its resources before rclpy ends.

rclpy's own handlers shut its context down from a thread of their own, at any time: who waits for
messages or destroys a publisher just then may crash. `ros2 launch` passes on the Ctrl-C that the
terminal has sent already, so signals come twice; asking again changes nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_dynid.setting_up.middleware import unfinished_ports

#: how long the executor waits [s] before it looks whether it shall end
LOOK = 0.1
PACKAGE = 'robot_dynid'
ADVICE = ('Correct what follows --ros-args: a level is debug, info, warn, error or fatal; a '
          'parameter file has a node or /**, below it ros__parameters, below that parameters')


def init(args: list[str] | None = None) -> threading.Event:
    """Initialise rclpy; return the event that SIGINT and SIGTERM set.

    Raises SystemExit (2) for arguments that ROS cannot read, after a line that says which.
    """
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # also while Python takes its leave
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    for path in unfinished_ports():  # told before, since who waits for one tells nothing
        get_logger(PACKAGE).warning(
            f'{path} was left unfinished by a process that was killed: a node that wants it does '
            f'not come up. In that case remove it (rm {path}), end the node with kill -9 and '
            'start it again')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # RCLError: its text ends with places in the sources of rcl
        get_logger(PACKAGE).fatal(f'{str(error).partition(", at /")[0]}. {ADVICE}')
        raise SystemExit(2) from None
    return stop


def spin(node: Node, stop: threading.Event, failed: Callable[[Exception], None]) -> None:
    """Spin until ``stop``; an error in a callback goes to ``failed`` and does not end it."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while rclpy.ok() and not stop.is_set():
        try:
            executor.spin_once(timeout_sec=LOOK)
        except ExternalShutdownException:
            return
        except Exception as error:
            failed(error)
