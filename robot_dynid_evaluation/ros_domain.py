"""Free ROS domains of this machine, claimed by lock files."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from robot_dynid.errors import DynIdError
from robot_dynid.files import open_lock
from robot_dynid.setting_up.middleware import PORT_FILE, SHARED_MEMORY

DOMAINS = range(1, 102)  # 0 is where people work; above 101 the ports of Linux may clash
PORT, PORTS = 7400, 250  # the first of domain 0, those of a domain (DDSI-RTPS 2.5, 9.6.2.3)
_turn = itertools.count()


@contextmanager
def own_domain() -> Iterator[int]:
    """Set ROS_DOMAIN_ID to a free domain while the block runs, unless it is set already.

    Discovery stays on this machine. Raises DynIdError when every domain is taken.
    """
    before = {name: os.environ.get(name)
              for name in ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE')}
    lock: BinaryIO | None = None
    if before['ROS_DOMAIN_ID'] is None:
        domain, lock = claim_domain()
        os.environ['ROS_DOMAIN_ID'] = str(domain)
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    try:
        yield int(os.environ['ROS_DOMAIN_ID'])
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if lock is not None:
            lock.close()


def claim_domain() -> tuple[int, BinaryIO]:
    """Lock the file of a domain nobody else on this machine holds; closing it gives it back.

    Raises DynIdError when every domain is taken, or others may write in the folder of the locks.
    """
    folder = Path(tempfile.gettempdir()) / f'robot_dynid_domains_{os.geteuid()}'
    first = os.getpid() * 7 + next(_turn)  # not the domain that was given back just now
    for step in range(len(DOMAINS)):
        domain = DOMAINS[(first + step) % len(DOMAINS)]
        lock = open_lock(folder, str(domain))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            _forget_the_dead(domain)
            return domain, lock
    raise DynIdError('every ROS domain is taken; set ROS_DOMAIN_ID to the one to use')


def _forget_the_dead(domain: int) -> None:
    """Remove the ports of the domain in shared memory that no process holds."""
    for number in range(PORT + PORTS * domain, PORT + PORTS * (domain + 1)):
        port = SHARED_MEMORY / f'{PORT_FILE}{number}'
        locks = [port.with_name(f'{port.name}_{kind}') for kind in ('el', 'sl')]
        with suppress(OSError):  # of another user
            if port.exists() and not any(map(_held, locks)):
                for path in (port, port.with_name(f'sem.{port.name}_mutex'), *locks):
                    path.unlink(missing_ok=True)


def _held(path: Path) -> bool:
    """Return whether a process has locked a file."""
    if not path.exists():
        return False
    with path.open('rb') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def require_ros() -> None:
    """Raise MissingDependency unless ROS 2 and the package's interfaces are installed."""
    import_module('robot_dynid.ros')
