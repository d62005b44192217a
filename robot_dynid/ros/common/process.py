"""Life of a node's process: shutdown on SIGINT and SIGTERM, real-time scheduling.

rclpy's own handlers shut its context down from a thread of their own, at any time: who waits for
messages or destroys a publisher just then may crash. `ros2 launch` passes on the Ctrl-C that the
terminal has sent already, so signals come twice; asking again changes nothing. It ends a node by
force after 5 s: threads that compute (a design, the loading of kernels) are not waited for.

Real-time scheduling is asked for as the controller manager does. Threads of one interpreter wait
for each other, so all get it but those that compute for long.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.setting_up.middleware import unfinished_ports

#: how long the executor waits [s] before it looks whether it shall end
EXECUTOR_LOOK = 0.1
#: s a thread may keep the interpreter from the others: half a cycle of a controller
SWITCH_INTERVAL = 5e-4
PACKAGE = 'robot_dynid'
ADVICE = ('Correct what follows --ros-args: a level is debug, info, warn, error or fatal; a '
          'parameter file has a node or /**, below it ros__parameters, below that parameters')
CONTROLLER = 50  # priority of the controller manager's control loop
WATCHING = 40
_stop = threading.Event()


def run(name: str, make: Callable[[], Any], spin_until: Callable[[Any, threading.Event], None],
        args: list[str] | None = None) -> NoReturn:
    """Make a node, let ``spin_until`` spin it until SIGINT or SIGTERM, and end the process.

    Its method ``close`` ends what it has opened.

    Exit codes: 0 after a signal, 1 for a model or robot that is unusable and for errors of the
    program itself, 2 for wrong parameters. Other threads end where they are, once the node is
    closed.
    """
    stop, code = init(args), 0
    node: Any = None
    try:
        node = make()
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
    """Raise Cancelled when the node is to end; for what waits while the node starts."""
    if _stop.is_set():
        raise Cancelled('asked to stop')


def init(args: list[str] | None = None) -> threading.Event:
    """Initialise rclpy; return the event that SIGINT and SIGTERM set.

    Raises SystemExit (2) for arguments that ROS cannot read, after a line that says which.
    """
    _stop.clear()

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # also while Python takes its leave
        _stop.set()

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


def ask_real_time(priority: int, but: tuple[str, ...] = ()) -> str:
    """Ask for real-time scheduling of this process, except its threads named like ``but``.

    Returns why there is none, and what to do; empty when it is granted.
    """
    left = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(but)}
    refused = _schedule('SCHED_FIFO', priority, left)
    return refused and (
        f'no real-time scheduling ({refused}): on a busy machine it may be held up, and then stop '
        'the robot without need; allow it with rtprio in /etc/security/limits.conf, as for the '
        'controller manager')


def give_up_real_time() -> None:
    """Schedule this process like any other again."""
    _schedule('SCHED_OTHER', 0, set())


def exempt_thread() -> None:
    """Schedule this thread like that of any other process."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _schedule(policy: str, priority: int, left: set[int | None]) -> str:
    try:
        for thread in map(int, os.listdir('/proc/self/task')):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                if thread not in left:
                    os.sched_setscheduler(
                        thread, getattr(os, policy), os.sched_param(priority))
    except (OSError, AttributeError) as error:  # not permitted, or another system
        return str(error)
    return ''
