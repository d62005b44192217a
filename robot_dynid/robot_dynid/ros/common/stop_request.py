"""Request of an operator to stop a motion: Enter, Ctrl-C, a closed terminal.

Python runs no signal handler while a program waits in the middleware. So a thread waits for keys
and signal numbers, which arrive through a pipe at once, and wakes the program. Handlers of signals
wake nothing: they may run while the program itself holds a lock that waking takes.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: what Ctrl-C, Ctrl-\ and Ctrl-Z send, other programs, and a terminal that is closed
SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP)
CLOSED = b'\0'  # no signal has this number
PIECE = 1024  # bytes read at once


class StopRequest:
    """Request for a stop, ``asked`` or not; it calls ``wake`` when the stop is requested."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.asked = False
        self._wake, self._interrupts = wake, False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Record a signal; within `interrupting` raise KeyboardInterrupt."""
        self.asked = True
        if self._interrupts:
            raise KeyboardInterrupt

    def ask(self) -> None:
        """Request the stop."""
        self.asked = True
        self._wake()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal interrupt the block."""
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False

    def watch(self, signals: int, terminal: int | None) -> None:
        """Request a stop at every signal number, every line and the end of the terminal."""
        sources = [signals] if terminal is None else [signals, terminal]
        while True:
            ready = select.select(sources, [], [])[0]
            if signals in ready:
                numbers = os.read(signals, PIECE)
                if CLOSED in numbers:
                    return
                if set(numbers) & set(SIGNALS):
                    self.ask()
            if terminal in ready:
                assert terminal is not None
                if not _read(terminal):
                    sources.remove(terminal)
                self.ask()


@contextmanager
def stop_request(wake: Callable[[], object] = lambda: None, keys: bool = False
                 ) -> Iterator[StopRequest]:
    """Yield the request of the operator; with ``keys``, Enter at the terminal counts as one.

    Signals that the program ignores, as under nohup, stay ignored.
    """
    request = StopRequest(wake)
    handlers = {number: signal.signal(number, request.hear) for number in SIGNALS
                if signal.getsignal(number) is not signal.SIG_IGN}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    wakeup = signal.set_wakeup_fd(writer)
    thread = threading.Thread(
        target=request.watch, args=(reader, keyboard() if keys else None), daemon=True)
    thread.start()
    try:
        yield request
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.write(writer, CLOSED)
        thread.join()
        os.close(reader)
        os.close(writer)


def keyboard() -> int | None:
    """Return the descriptor of the terminal whose keys are for this program, or None.

    Reading the terminal from the background would suspend the program.
    """
    try:
        terminal = sys.stdin.fileno()
        if os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp():
            termios.tcflush(terminal, termios.TCIFLUSH)  # input typed before is discarded
            return terminal
    except (OSError, ValueError, AttributeError, termios.error):  # closed, or replaced
        pass
    return None


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, PIECE)
    except OSError:  # it was closed
        return b''
