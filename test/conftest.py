"""Fixtures which every test may use."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Workers of the suite, and the processes that tests start, share the cores: threads of theirs
# would spin. Libraries read these when they are loaded.
assert 'numpy' not in sys.modules, 'NumPy was loaded before its threads could be limited'
os.environ |= {'OPENBLAS_NUM_THREADS': '1', 'OMP_NUM_THREADS': '1'}

from robot_dynid.cli import terminal  # noqa: E402
from robot_dynid.effects import CHOSEN, LEARNT  # noqa: E402
from robot_dynid.estimation import ESTIMATORS  # noqa: E402
from robot_dynid.estimation.irls import NORMS  # noqa: E402
from robot_dynid.friction import ADDITIONS, LAWS  # noqa: E402
from robot_dynid_evaluation.ros_domain import claim_domain  # noqa: E402

#: the tests that may be skipped, the folder of the pages, the examples tests try
pytest_plugins = ('allowed_skips', 'arm_recordings', 'busy_machine', 'tiers')
ROOT = Path(__file__).resolve().parents[1]
# What commands say must not depend on how busy the machine is.
terminal.DELAY = 3600.0


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among modules and tests, which stay: that takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


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
def settled() -> None:
    """Let what is loaded by now stay: whoever collects the nodes of a test need not look there."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope='module', autouse=True)
def registries_stay() -> Iterator[None]:
    """Hold that a module leaves laws and methods in their order, which is that of columns."""
    registries = LAWS, ADDITIONS, CHOSEN, LEARNT, NORMS, ESTIMATORS
    before = [list(one.items()) for one in registries]
    yield
    assert [list(one.items()) for one in registries] == before


@contextmanager
def claimed() -> Iterator[int]:
    """Claim a DDS domain on this machine for what runs in the block."""
    pytest.importorskip('rclpy')
    domain, lock = claim_domain()
    with lock, pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_DOMAIN_ID', str(domain))
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        yield domain


@pytest.fixture
def ros_domain(settled: None) -> Iterator[int]:
    """Give the test, and the processes it starts, a DDS domain of its own on this machine."""
    with claimed() as domain:
        yield domain


@pytest.fixture(scope='module')
def module_domain(settled: None) -> Iterator[int]:
    """Give all tests of a module, and the processes they start, a DDS domain of their own."""
    with claimed() as domain:
        yield domain


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark every test that claims a DDS domain.

    Such a test needs ROS, whatever its file says; all of them are below test/ros, where alone
    `make test` looks for them.
    """
    for item in items:
        if {'ros_domain', 'module_domain'} & set(item.fixturenames):
            item.add_marker(pytest.mark.ros)
        if item.get_closest_marker('ros') and not item.path.is_relative_to(ROOT / 'test' / 'ros'):
            raise pytest.UsageError(f'{item.nodeid}: tests that need ROS are below test/ros')


@pytest.fixture
def node(ros_domain: int) -> Iterator[Any]:
    """Return a bare node of rclpy in a context of its own."""
    import rclpy
    from nodes import destroy

    context = rclpy.Context()
    rclpy.init(context=context)
    made = rclpy.create_node('listening', context=context)
    yield made
    destroy(made)
    rclpy.shutdown(context=context)
