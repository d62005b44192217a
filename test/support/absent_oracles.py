"""Skips tests whose oracle is absent, in the environments of `make versions`.

Those call pytest with the prefix PREFIX. `make test` runs all tests, in an environment where every
oracle is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

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
    """Let absent oracles skip their tests."""
    if config.getoption('junitprefix', None) != PREFIX:
        return
    finder = SkipWhereAbsent()
    sys.meta_path.append(finder)
    config.add_cleanup(lambda: sys.meta_path.remove(finder))
