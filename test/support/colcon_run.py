"""Tests that `colcon test` runs: those that fit a plain ROS installation, in some minutes.

colcon calls pytest itself and gives the report the name of the package, by which it is known here.
`make test` runs all of them, in an environment where every oracle is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

PACKAGE = 'robot_dynid'
#: tests of a run by colcon, unless -m is given
QUICK = 'not soak and not slow and not ros'
#: folders whose tests need no recordings, fits or benchmarks: what an installation may break
FOLDERS = ('dynamics', 'execution', 'friction', 'io', 'kernels', 'robot', 'ros', 'trajectories')
#: what tests compare with, and libraries that rosdep does not know; ROS, which `make versions`,
#: run as by colcon, has not
OPTIONAL = ['pinocchio', 'cvxpy', 'statsmodels', 'sympy', 'mcap', 'mujoco', 'plotly', 'coal',
            'rclpy', 'visualization_msgs', 'casadi', 'distributed']


class SkipWhereAbsent(MetaPathFinder):
    """Skips the test, or the file, that imports one of OPTIONAL which no other finder has."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raise the exception of a skip for what is absent."""
        if name.partition('.')[0] in OPTIONAL:
            raise pytest.skip.Exception(
                f'optional oracle is not installed: {name}', allow_module_level=True)


class QuickFiles:
    """Leaves out other folders than FOLDERS, and files with slow tests.

    What all the tests of such a file share is slow, too.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[Any]) -> None:
        """Deselect the tests of such files."""
        slow = {item.path for item in items if item.get_closest_marker('slow')}
        taken = [item for item in items if item.path not in slow
                 and set(FOLDERS) & set(item.path.relative_to(config.rootpath).parts)]
        left_out = set(items) - set(taken)
        items[:] = taken
        config.hook.pytest_deselected(items=list(left_out))


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tests, and let absent oracles skip theirs."""
    if config.getoption('junitprefix', None) != PACKAGE:
        return
    if not config.option.markexpr:
        config.option.markexpr = QUICK
        config.pluginmanager.register(QuickFiles(), 'quick files')
    finder = SkipWhereAbsent()
    sys.meta_path.append(finder)
    config.add_cleanup(lambda: sys.meta_path.remove(finder))
