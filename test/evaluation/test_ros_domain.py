"""Claims of a ROS domain of this machine."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import pytest

from robot_dynid.errors import DynIdError
from robot_dynid_evaluation import ros_domain
from robot_dynid_evaluation.ros_domain import claim_domain


def test_a_domain_is_given_once_and_without_the_ports_of_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that nobody holds, finished or not, is gone; one that is held stays."""
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    monkeypatch.setattr(ros_domain, 'SHARED_MEMORY', tmp_path)
    monkeypatch.setattr(ros_domain, 'DOMAINS', range(42, 43))
    dead = ('fastdds_port17915', 'sem.fastdds_port17915_mutex',
            'fastdds_port17917', 'fastdds_port17917_el', 'fastdds_port17917_sl')
    living = ('fastdds_port17900', 'fastdds_port17900_sl', 'sem.fastdds_port17900_mutex',
              'fastdds_port17899', 'fastdds_port18150')  # the last two of other domains
    for name in (*dead, *living):
        (tmp_path / name).touch()
    with (tmp_path / 'fastdds_port17900_sl').open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        domain, lock = claim_domain()
        with lock:
            assert domain == 42
            assert {path.name for path in tmp_path.glob('*fastdds*')} == set(living)
            with pytest.raises(DynIdError, match='every ROS domain is taken'):
                claim_domain()
