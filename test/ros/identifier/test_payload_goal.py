"""ros/identifier/identify_action.py: a payload by the action of the identifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import Client
from nodes import running
from payload_recordings import pair, random_payload
from tolerances import PAYLOAD_MASS

from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot

LOAD = 2.805  # kg


def test_a_payload_by_the_action(tmp_path: Path, ros_domain: int) -> None:
    robot = load_robot('ur10e')
    paths = []
    for name, log in zip(('loaded', 'unloaded'), pair(
            robot, random_payload(np.random.default_rng(1), LOAD), noise=0.01)):
        paths.append(str(tmp_path / f'{name}.csv'))
        write_csv(paths[-1], log)
    with running('identifier', {'robot': 'ur10e', 'recording_directory': tmp_path,
                                'files_directory': tmp_path}):
        user = Client()
        refusal = user.identify(files=paths[:1], payload=True)
        assert not refusal.success and 'unloaded_files' in refusal.message
        refusal = user.identify(files=paths[:1], unloaded_files=paths[1:])
        assert not refusal.success and 'payload' in refusal.message
        result = user.identify(files=paths[:1], payload=True, unloaded_files=paths[1:])
        user.close()
    assert result.success, result.message
    (found,) = result.payload
    assert found.determined, result.message
    assert found.frame == 'wrist_3_link' and result.model_file == ''
    assert found.mass == pytest.approx(LOAD, rel=PAYLOAD_MASS) and found.mass_std > 0.0
    inertia = np.reshape(found.inertia, (3, 3))
    assert np.all(np.linalg.eigvalsh(inertia) > 0.0)
