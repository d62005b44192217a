"""Compilation of the kernels beside a node that starts: it answers meanwhile, and says how far.

The first start after an installation compiles for minutes. That is done in a process of its own,
which shares neither interpreter nor signals with the node, and by one process for all nodes that
start together; each of them sees by the files how far it is. Where no files can be written, every
node compiles in its own memory.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from robot_dynid import warm_up
from robot_dynid.errors import DynIdError, UnstoredKernelsWarning
from robot_dynid.kernels.compilation import storage_problem

COMMAND = (sys.executable, '-m', 'robot_dynid.warm_up', warm_up.MISSING)
KERNELS = 'kernels'  # name of the thread that loads them
COMPILATION_LOOK = 0.5  # s between looks at what is compiled
NEWS_PERIOD = 5.0  # s between lines of the log, where there is news
LONGEST_SILENCE = 30.0  # s between lines of the log


class NotReady(DynIdError):
    """The node cannot do that yet; the message says how far it is."""


class KernelCompilation:
    """Compiles what has to be, as ``command`` does, beside ``node``.

    ``uncompiled`` names the kernels left to do; ``load`` brings them into this process, then
    ``loaded`` is set.
    """

    def __init__(self, node: Node, command: Sequence[str] = COMMAND,
                 uncompiled: Callable[[], Sequence[str]] = warm_up.uncompiled,
                 load: Callable[[], None] = warm_up.warm_up) -> None:
        self._node, self._command, self._load = node, command, load
        warnings.simplefilter('ignore', UnstoredKernelsWarning)  # it is logged
        self._uncompiled, self.total = uncompiled, len(uncompiled())
        self.done, self.ready, self._logged_count = 0, not self.total, 0
        self._then: Callable[[], None] = lambda: None
        self._process: subprocess.Popen[bytes] | None = None
        self.loaded, self._problem = threading.Event(), ''
        self._begun = self._logged = time.monotonic()
        self._closed = False

    def start(self, then: Callable[[], None]) -> None:
        """Begin; call ``then`` in the thread of the node once everything is compiled.

        Where nothing has to be, that is before this method returns.
        """
        self._then = then
        if self.ready:
            threading.Thread(target=self._work, name=KERNELS).start()
            then()
            return
        log, problem = self._node.get_logger(), storage_problem()
        if problem is not None:
            log.warning(problem)
        else:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, start_new_session=True)
        once = 'once after an installation; ' if problem is None else 'in memory; '
        log.info(f'compiling {self.total} numerical kernels, {once}this takes some minutes')
        self._timer: Any = self._node.create_timer(
            COMPILATION_LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        threading.Thread(target=self._work, name=KERNELS, daemon=True).start()

    @property
    def fraction(self) -> float:
        """Part of the kernels that is compiled, 0 to 1."""
        return 1.0 if self.ready else self.done / self.total

    def require(self) -> None:
        """Raise NotReady as long as kernels are compiled."""
        if not self.ready:
            raise NotReady(f'not ready yet: {self._progress()}; call again then')

    def close(self) -> None:
        """End the process."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _progress(self) -> str:
        return (f'compiling numerical kernels, {self.done} of {self.total} '
                f'({time.monotonic() - self._begun:.0f} s)')

    def _work(self) -> None:
        """Wait for the process, if there is one; load what it compiled, or compile it here."""
        code = 0 if self._process is None else self._process.wait()
        if self._closed:
            return
        left = () if self._process is None else self._uncompiled()
        if left:
            self._problem = (
                f'{len(left)} kernels were not stored by the process that compiled them (exit '
                f'code {code}); they are compiled in this one, and again at every start: make the '
                'installed package writable, or set NUMBA_CACHE_DIR to a folder that is')
        try:
            self._load()
        except Exception as error:  # they are compiled when they are called
            self._node.get_logger().error(f'unexpected {type(error).__name__}: {error}')
        finally:
            self.loaded.set()

    def _look(self) -> None:
        now, problem = time.monotonic(), self._problem
        self.done = self.total - min(self.total, len(self._uncompiled()))
        if problem:
            self._problem = ''
            self._node.get_logger().warning(problem)
        if self.loaded.is_set():
            self._timer.cancel()
            self.done, self.ready = self.total, True
            self._node.get_logger().info(
                f'compiled {self.total} numerical kernels ({now - self._begun:.0f} s)')
            self._then()
        elif now - self._logged >= (
                NEWS_PERIOD if self.done != self._logged_count else LONGEST_SILENCE):
            self._logged, self._logged_count = now, self.done
            self._node.get_logger().info(self._progress())
