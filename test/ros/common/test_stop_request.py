"""Requests of an operator to stop: keys, the end of a terminal, signals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from robot_dynid.ros.common import stop_request as module
from robot_dynid.ros.common.stop_request import SIGNALS, keyboard, stop_request

PATIENCE = 60.0  # s
#: a program that waits outside of Python's reach, and says what woke it
PROGRAM = """
import fcntl, os, signal, termios, threading
signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a shell in the background ignores it
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal of this program
from robot_dynid.ros.common.stop_request import stop_request
woken = threading.Event()
with stop_request(woken.set, keys=True) as stop:
    print('ready', flush=True)
    print(woken.wait(60) and stop.asked, flush=True)
"""


def asked_by(act: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether ``act``, on both ends of a terminal, asks for a stop."""
    master, slave = pty.openpty()
    monkeypatch.setattr(module, 'keyboard', lambda: slave)
    woken = threading.Event()
    with stop_request(woken.set, keys=True) as stop:
        assert not stop.asked
        act(master, slave)
        return woken.wait(PATIENCE) and stop.asked


def test_the_enter_key_asks_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_by(lambda master, _: os.write(master, b'\n') and None, monkeypatch)


def test_the_end_of_a_terminal_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_by(lambda master, _: os.close(master), monkeypatch)


@pytest.mark.parametrize('number', SIGNALS)
def test_a_signal_asks_and_is_handled_as_before_afterwards(number: int) -> None:
    woken = threading.Event()
    before = signal.signal(number, signal.SIG_DFL)  # a shell in the background may ignore it
    try:
        with stop_request(woken.set) as stop:
            os.kill(os.getpid(), number)
            assert woken.wait(PATIENCE) and stop.asked
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_signal_wakes_from_another_thread() -> None:
    """The interrupted program may hold the very lock that waking takes."""
    woken, threads = threading.Event(), []

    def wake() -> None:
        threads.append(threading.current_thread())
        woken.set()

    with stop_request(wake) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked
        assert woken.wait(PATIENCE)
    assert threading.main_thread() not in threads


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_request() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.asked
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_interrupts_where_it_is_to() -> None:
    with stop_request() as stop, pytest.raises(KeyboardInterrupt), stop.interrupting():
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError('not interrupted')


@pytest.mark.parametrize('key', [b'\n', b'\x03', b'\x1a', b'\x1c', b'\x04', None])
def test_keys_of_a_terminal_ask(key: bytes | None) -> None:
    """Enter, Ctrl-C, Ctrl-Z, Ctrl-\\, Ctrl-D, and the end of the terminal."""
    master, slave = pty.openpty()
    program: Any = subprocess.Popen(
        [sys.executable, '-c', PROGRAM], stdin=slave, stdout=subprocess.PIPE, text=True)
    os.close(slave)
    try:
        assert program.stdout.readline() == 'ready\n'
        if key is None:
            os.close(master)
        else:
            os.write(master, key)
        assert program.stdout.readline() == 'True\n'
    finally:
        program.kill()
        program.communicate()


def test_keyboard_is_none_without_a_terminal() -> None:
    program = 'from robot_dynid.ros.common.stop_request import keyboard; print(keyboard())'
    done = subprocess.run([sys.executable, '-c', program], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True)
    assert done.stdout == 'None\n'
    assert keyboard() is None  # pytest has replaced standard input
