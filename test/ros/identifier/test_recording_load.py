"""Recording at 1 kHz while an identification runs and services answer: nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import ROBOT, Client, Data
from ros_process import running

from robot_dynid.io.bag import read_bag

PUBLISHER = Path(__file__).parents[2] / 'support' / 'state_publisher.py'


def recorded(client: Client, sent: int) -> int:
    """Return how many messages are recorded in the end: all, or when none came for some time."""
    counts = [-1, int(client.diagnosis()['recorded messages'])]
    while counts[-1] < sent and counts[-1] != counts[-2]:
        client.spin(3.0)
        counts.append(int(client.diagnosis()['recorded messages']))
    return counts[-1]


@pytest.mark.ros
@pytest.mark.parametrize('seconds', [
    pytest.param(8, id='short'), pytest.param(60, id='long', marks=pytest.mark.soak)])
def test_nothing_delivered_is_lost(
    ros_domain: int, tmp_path: Path, seconds: int, record_property: Any
) -> None:
    data = Data(tmp_path)
    parameters = {'robot': ROBOT, 'recording_directory': tmp_path / 'recordings',
                  'model': data.model_file}
    q, qd, effort, _ = data.states(200)
    with running('identifier', parameters):
        client = Client()
        folder = client.call('start_recording').message.removeprefix('recording to ')
        count = 1000 * seconds
        publisher = subprocess.Popen(
            [sys.executable, str(PUBLISHER), str(count)], stdout=subprocess.PIPE, text=True)
        waits: list[float] = []
        identified: list[float] = []
        files = [str(data.csv)] * (2 * seconds)
        sent = time.monotonic()
        result = client.send(files=files).get_result_async()
        while publisher.poll() is None:
            begin = time.monotonic()
            assert client.call('forward_dynamics', position=q, velocity=qd, effort=effort).success
            waits.append(time.monotonic() - begin)
            client.spin(0.1)
            if result.done():
                assert result.result().result.success, result.result().result.message
                identified.append(time.monotonic() - sent)
                sent = time.monotonic()
                result = client.send(files=files).get_result_async()
        busy = min(identified, default=time.monotonic() - sent)
        assert client.feedback or identified, 'nothing was identified meanwhile'
        found = recorded(client, count)
        assert client.call('stop_recording').success
        client.close()
    assert publisher.stdout is not None
    record_property('publishing took [s]', publisher.stdout.read().strip())
    record_property('identifications', len(identified))
    record_property('longest service call [s]', round(max(waits), 3))
    log = read_bag(folder, tuple(f'joint_{i}' for i in range(1, 8)))
    missing = np.setdiff1d(np.arange(count), log.position[:, 0])
    assert not len(missing), f'{len(missing)} were lost, from {missing[0]:.0f} on'
    np.testing.assert_array_equal(log.position[:, 0], np.arange(count))
    assert found == count
    # a call that waited for an identification would take as long as one
    assert max(waits) < busy
