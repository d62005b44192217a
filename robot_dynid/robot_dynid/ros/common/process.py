"""Life of a node's process: shutdown on SIGINT and SIGTERM.

rclpy's own handlers shut its context down from a separate thread at any time, which may crash a
thread that waits for messages or destroys a publisher. `ros2 launch` passes on the Ctrl-C that the
terminal has sent already, so signals come twice; the second one has no effect. It kills a node
after 5 s, so computing threads (a design, the loading of kernels) are not waited for.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_dynid.errors import Cancelled, DynIdError, RefusedJointWarning, UsageError
from robot_dynid.ros.common.real_time import shorten_collections
from robot_dynid.setting_up.middleware import unfinished_ports

#: longest wait of the executor [s] before it checks whether to end
EXECUTOR_LOOK = 0.1
#: longest time a thread holds the interpreter [s]: half a cycle of a controller
SWITCH_INTERVAL = 5e-4
PACKAGE = 'robot_dynid'
ADVICE = ('Correct what follows --ros-args: a level is debug, info, warn, error or fatal; a '
          'parameter file has a node or /**, below it ros__parameters, below that parameters')
_stop = threading.Event()


def run(name: str, make: Callable[[], Any], spin_until: Callable[[Any, threading.Event], None],
        args: list[str] | None = None) -> NoReturn:
    """Make a node, let ``spin_until`` spin it until SIGINT or SIGTERM, and end the process.

    Its method ``close`` ends what it has opened.

    Exit codes: 0 after a signal, 1 for an unusable model or robot and for internal errors, 2 for
    wrong parameters. Other threads are abandoned once the node is closed.
    """
    stop, code = init(args), 0
    warnings.simplefilter('ignore', RefusedJointWarning)  # answers state it in other words
    node: Any = None
    try:
        node = make()
        shorten_collections()
        spin_until(node, stop)
    except Cancelled:  # asked to stop while it started
        pass
    except DynIdError as error:
        get_logger(name).fatal(str(error))
        code = 2 if isinstance(error, UsageError) else 1
    except Exception:
        traceback.print_exc()
        code = 1
    try:
        if node is not None:
            node.close()
            for action in [waitable for waitable in node.waitables
                           if isinstance(waitable, (ActionClient, ActionServer))]:
                action.destroy()
            node.destroy_node()
        rclpy.try_shutdown()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def refuse_if_asked() -> None:
    """Raise Cancelled if the node is to end; for waits during the start of the node."""
    if _stop.is_set():
        raise Cancelled('asked to stop')


def init(args: list[str] | None = None) -> threading.Event:
    """Initialise rclpy; return the event that SIGINT and SIGTERM set.

    Raises SystemExit (2) for arguments that ROS cannot read, after a line that names them.
    """
    _stop.clear()

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # also while Python takes its leave
        _stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    for path in unfinished_ports():  # reported first: a node that waits for one reports nothing
        get_logger(PACKAGE).warning(
            f'{path} is left over from a killed process and can block the start of nodes. In that '
            f'case remove it (rm {path}), end the node with kill -9 and start it again')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # RCLError: its text ends with locations in the sources of rcl
        get_logger(PACKAGE).fatal(f'{str(error).partition(", at /")[0]}. {ADVICE}')
        raise SystemExit(2) from None
    return _stop


def spin(node: Node, stop: threading.Event) -> None:
    """Spin until ``stop``; an error in a callback is logged and does not end the node."""
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while rclpy.ok() and not stop.is_set():
        try:
            executor.spin_once(timeout_sec=EXECUTOR_LOOK)
        except ExternalShutdownException:
            return
        except Exception as error:
            node.get_logger().error(f'unexpected {type(error).__name__}: {error}')
