"""Fixtures which every test may use."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOMAINS = range(1, 102)  # 0 is where people work; above 101 the ports of Linux may clash
_turn = itertools.count()


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


def claim_domain() -> tuple[int, IO[str]]:
    """Lock a DDS domain nobody on this machine tests in; closing the file gives it back."""
    folder = Path(tempfile.gettempdir()) / f'robot_dynid_domains_{os.getuid()}'
    folder.mkdir(exist_ok=True)
    first = os.getpid() * 7 + next(_turn)  # not the domain that was given back just now
    for step in range(len(DOMAINS)):
        domain = DOMAINS[(first + step) % len(DOMAINS)]
        lock = (folder / str(domain)).open('w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            return domain, lock
    raise RuntimeError(f'all {len(DOMAINS)} DDS domains are taken by running tests')


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Give the test, and the processes it starts, a DDS domain of its own on this machine."""
    pytest.importorskip('rclpy')
    domain, lock = claim_domain()
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    yield domain
    lock.close()
