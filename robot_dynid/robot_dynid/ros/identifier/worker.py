"""The process that runs identifications, and the node's side of it; neither needs rclpy.

A computation in the interpreter of the subscription would delay every message.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from robot_dynid.errors import Cancelled
from robot_dynid.ros.identifier.identification import Code, Job, Outcome, run

NICENESS = 5  # lower priority than nodes and the robot
CANCEL_PATIENCE = 2.0  # s for a cancelled job to stop by itself
COMMAND = f'from {__name__} import main; main()'


class WorkerProcess:
    """The identifier's side: submit a job, and poll for news.

    One job at a time. A worker that dies or does not stop on request is replaced.
    """

    def __init__(self) -> None:
        self._busy = False
        self._deadline = float('inf')
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, '-c', COMMAND, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], start_new_session=True)  # Ctrl-C is for the node
        self._connection = Connection(ours.detach())

    @property
    def pid(self) -> int:
        """The process that runs, or waits for, a job."""
        return self._process.pid

    def submit(self, job: Job) -> None:
        """Start a job; poll ``news`` until its outcome is among them."""
        self._busy, self._deadline = True, float('inf')
        try:
            self._connection.send(job)
        except OSError:  # it died while idle
            self._replace()
            self._connection.send(job)

    def cancel(self) -> None:
        """Request the job under way to stop; its outcome follows within ``CANCEL_PATIENCE``."""
        self._deadline = min(self._deadline, time.monotonic() + CANCEL_PATIENCE)
        try:
            self._connection.send(None)
        except OSError:
            return  # ``news`` reports that it died

    def news(self) -> tuple[tuple[str, float] | None, Outcome | None]:
        """Return the latest (stage, fraction), if it is new, and the outcome, if there is one."""
        latest = None
        try:
            while self._connection.poll():
                received = self._connection.recv()
                if isinstance(received, Outcome):
                    self._busy = False
                    return latest, received
                latest = received
        except (EOFError, OSError):
            code = self._replace()
            return latest, Outcome(Code.ABORTED, f'the identification died (exit code {code}; '
                                   '-9 often means out of memory); recorded data is kept')
        if self._busy and time.monotonic() > self._deadline:
            self._replace()
            return latest, Outcome(Code.CANCELLED, 'cancelled; the served model is unchanged')
        return latest, None

    def close(self) -> None:
        """End the process, which may still be importing: `ros2 launch` does not wait for long."""
        self._process.kill()
        self._end()

    def _replace(self) -> int:
        self._busy = False
        code = self._end()
        self._start()
        return code

    def _end(self) -> int:
        self._connection.close()
        if self._busy:
            self._process.kill()
        try:
            return self._process.wait(CANCEL_PATIENCE)
        except subprocess.TimeoutExpired:  # still importing, or deep in a computation
            self._process.kill()
            return self._process.wait()


def serve(connection: Connection) -> None:
    """Run jobs received through ``connection`` until it is closed.

    In: a Job, or None to cancel the one under way. Out: (stage, fraction) pairs, then the Outcome.
    """
    def progress(stage: str, fraction: float) -> None:
        connection.send((stage, fraction))
        if connection.poll() and connection.recv() is None:
            raise Cancelled('asked to stop')

    while True:
        job: Any = connection.recv()
        if job is not None:  # a cancel request received after the end of its job
            connection.send(run(job, progress))


def main() -> None:
    """Serve on the socket whose number is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the node, and that ends this
    os.nice(NICENESS)
    try:
        serve(Connection(int(sys.argv[1])))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the node is gone
