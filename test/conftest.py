"""Fixtures which every test may use."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Workers of the suite, and the processes that tests start, share the cores: threads of theirs
# would spin. Libraries read these when they are loaded.
assert 'numpy' not in sys.modules, 'NumPy was loaded before its threads could be limited'
os.environ |= {'OPENBLAS_NUM_THREADS': '1', 'OMP_NUM_THREADS': '1'}

from robot_dynid.cli.domain import claim_domain  # noqa: E402
from robot_dynid.model.warm_up import warm_up  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


# A job started in the background of a script ignores SIGINT, and so would every process of the
# tests that are ended by it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope='session')
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """Return the folder of measured data; skip where it is not at hand."""
    folder = Path(os.environ.get('ROBOT_DYNID_DATA', ROOT.parent / 'shared' / 'data'))
    if not folder.is_dir():
        pytest.skip(f'measured data: no folder {folder}; set ROBOT_DYNID_DATA')
    return folder


@pytest.fixture(scope='session')
def ur10e_data(shared_data: Path) -> Path:
    """Return the folder of the UR10e recordings (train, test, static, ...)."""
    return shared_data / 'ur10e'


@pytest.fixture(scope='session')
def tx40_data(shared_data: Path) -> Path:
    """Return the folder of the TX40 recordings."""
    return shared_data / 'tx40'


@pytest.fixture(scope='session')
def compiled() -> None:
    """Compile what is not up to date: a node that has to takes minutes before it answers."""
    warm_up()


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch, compiled: None) -> Iterator[int]:
    """Give the test, and the processes it starts, a DDS domain of its own on this machine."""
    pytest.importorskip('rclpy')
    domain, lock = claim_domain()
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    yield domain
    lock.close()


@pytest.fixture
def node(ros_domain: int) -> Iterator[Any]:
    """Return a bare node of rclpy in a context of its own."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context)
    made = rclpy.create_node('listening', context=context)
    yield made
    made.destroy_node()
    rclpy.shutdown(context=context)
