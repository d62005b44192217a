"""Tests that may be skipped; any other skip fails the run.

Tests whose oracle is absent are skipped in the environments of `make versions`, which call pytest
with the prefix PREFIX. `make test` runs all tests, in an environment where every oracle is
installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

#: what the reason of a skip may begin with, and why that may be
ALLOWED = {
    'measured data: no folder': 'the recordings of real robots do not come with the package',
    'committed files: not a git repository': 'an unpacked archive has none',
    "could not import 'launch_ros": 'it comes with a ROS of the system only',
    'optional oracle is not installed': '`make versions` alone says so',
    'rclcpp is not installed': 'it comes with a ROS of the system only',
    'Drake is not installed': 'an optional simulator of 150 MB',
    'cyipopt is not installed': 'a peer of the benchmarks, built from source',
    'figaroh is not installed': 'a peer of the benchmarks, built from source',
    'example-robot-data is not installed': 'public descriptions of robots, 130 MB',
    'pyarrow is not installed': 'Parquet files need it, 50 MB',
    'JAX is not installed': 'what models are exported to, 400 MB',
    'no chromium: ': 'reports are opened where a browser is: 270 MB, and 460 packages it needs',
    'messages have no numbers: a ROS before Kilted': 'losses are told as unknown there',
    'no zsh: ': 'completion is typed into the shells that are there',
    'no fish: ': 'completion is typed into the shells that are there',
    'no compiler: ': 'generated code is compiled where a compiler is',
    'no other description of this arm': 'packages of vendors, example-robot-data, pybullet',
    'the last link has no mass': 'one of the random robots',
    'on a topic nothing is rejected': 'one of the pairs of face and fault that cannot be',
}


def allowed(reason: str) -> bool:
    """Return whether a test may be skipped for ``reason``."""
    text = reason.removeprefix('Skipped: ')
    return any(re.match(re.escape(start), text) for start in ALLOWED)


class Skips:
    """Notes the skips that are not allowed, and fails the run at its end for them."""

    def __init__(self) -> None:
        self.beyond: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        """Note a whole file."""
        self._note(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test."""
        self._note(report)

    def _note(self, report: Any) -> None:
        if not report.skipped or hasattr(report, 'wasxfail'):
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not allowed(reason):
            self.beyond.append(f'{report.nodeid}: {reason}')

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn success, or no test at all, into failure."""
        empty = pytest.ExitCode.NO_TESTS_COLLECTED
        if self.beyond and session.exitstatus in (pytest.ExitCode.OK, empty):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which, and what to do."""
        if self.beyond:
            terminalreporter.section('skips that are not allowed', red=True)
            for line in self.beyond:
                terminalreporter.line(line)
            terminalreporter.line('install what is missing, or put the reason into '
                                  'test/support/allowed_skips.py')


PREFIX = 'robot_dynid'
#: what tests compare with, and optional libraries
OPTIONAL = ['pinocchio', 'cvxpy', 'statsmodels', 'sympy', 'mcap', 'mujoco', 'plotly', 'coal',
            'rclpy', 'visualization_msgs', 'casadi', 'distributed']


class SkipWhereAbsent(MetaPathFinder):
    """Skips the test, or the file, that imports one of OPTIONAL which no other finder has."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raise the exception of a skip for what is absent."""
        if name.partition('.')[0] in OPTIONAL:
            raise pytest.skip.Exception(
                f'optional oracle is not installed: {name}', allow_module_level=True)


def pytest_configure(config: pytest.Config) -> None:
    """Let absent oracles skip their tests; watch where reports are gathered.

    That is not in a worker of pytest-xdist.
    """
    if not hasattr(config, 'workerinput'):
        config.pluginmanager.register(Skips(), 'skips')
    if config.getoption('junitprefix', None) == PREFIX:
        finder = SkipWhereAbsent()
        sys.meta_path.append(finder)
        config.add_cleanup(lambda: sys.meta_path.remove(finder))
