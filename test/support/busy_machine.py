"""Tests of processes are run again where the machine held processes up meanwhile: measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

#: a process that wants to run, and waited for longer than this, was held up [s]
HELD_UP = 0.05
#: it asks every 10 ms for the processor, as a node of 100 Hz does, for as long as its parent lives
WATCH = f"""
import os, time
parent = os.getppid()
while os.getppid() == parent:
    before = time.monotonic()
    time.sleep(0.01)
    waited = time.monotonic() - before - 0.01
    if waited > {HELD_UP}:
        print(time.monotonic(), waited, flush=True)
"""


class BusyMachine:
    """Watches how long processes wait for a processor, while tests of processes run."""

    def __init__(self) -> None:
        self.since = 0.0
        self.watch: subprocess.Popen[bytes] | None = None
        self.found = os.fdopen(os.memfd_create('waits'), 'w+')

    def waited(self) -> float:
        """Return the longest wait for a processor during this test [s]."""
        file = self.found.fileno()  # whose position is that of the watch, too
        text = os.pread(file, os.fstat(file).st_size, 0).decode()
        times = [[float(word) for word in line.split()] for line in text.split('\n')[:-1]]
        return max((waited for end, waited in times if end > self.since), default=0.0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin to watch."""
        if item.get_closest_marker('ros') is None:
            return
        if self.watch is None:
            self.watch = subprocess.Popen([sys.executable, '-S', '-c', WATCH], stdout=self.found)
        self.since = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Any:
        """State beside a failure how long processes waited."""
        report = yield
        if report.failed and item.get_closest_marker('ros') is not None:
            report.user_properties.append(('waited', self.waited()))
        return report

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Let tests of processes run once more, if processes were held up."""
        for item in items:
            if item.get_closest_marker('ros') is not None:
                item.add_marker(pytest.mark.flaky(reruns=1, condition=self.waited))

    def pytest_unconfigure(self) -> None:
        """End the watch."""
        if self.watch is not None:
            self.watch.kill()
            self.watch.wait()
        self.found.close()


class Reruns:
    """Says which tests were run again, and why."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that is run again."""
        if report.outcome == 'rerun':
            waited = dict(report.user_properties).get('waited', 0.0)
            self.lines.append(f'{report.nodeid}: processes waited for up to {waited:.2f} s')

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List them."""
        if self.lines:
            terminalreporter.section('run again on a busy machine')
            for line in self.lines:
                terminalreporter.line(line)


def pytest_configure(config: Any) -> None:
    """Watch where tests run; list where they are reported."""
    config.pluginmanager.register(BusyMachine())
    if not hasattr(config, 'workerinput'):
        config.pluginmanager.register(Reruns())
