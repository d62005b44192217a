"""The identifier under load: 14 joints at 1 kHz, four clients, an identification.

``pytest -m soak test/ros/test_load.py -s`` for ten minutes, with its figures printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import Client
from monitored import model_of
from random_robots import random_inertial, random_joint
from ros_process import running

from robot_dynid.io.bag import read_bag
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

SUPPORT = Path(__file__).parents[1] / 'support'
JOINTS = 14
RATE = 200.0  # of the recording that is identified again and again
CLIENTS = ('forward', 'inverse', 'rollout', 'model')
LONGEST = 0.02  # s; of a hundred forward dynamics of one state, one may take longer
GROWTH = 5e6  # bytes per minute that a node may grow by; measured 3e4 over five minutes


def dual_arm() -> str:
    """Return the URDF of two arms with seven joints each on one base."""
    rng = np.random.default_rng(14)
    links = ''.join(f'<link name="l{i}">{random_inertial(rng)}</link>' for i in range(JOINTS))
    joints = ''.join(
        random_joint(rng, i, 'base' if i % 7 == 0 else f'l{i - 1}', 'revolute')
        for i in range(JOINTS))
    return f'<robot name="dual_arm"><link name="base"/>{links}{joints}</robot>'


class Load:
    """The files of the arm, and what its clients and the operating system say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.robot_file, self.csv = folder / 'dual_arm.yaml', folder / 'motion.csv'
        self.model_file = folder / 'model.yaml'
        (folder / 'dual_arm.urdf').write_text(dual_arm())
        self.robot_file.write_text('urdf: dual_arm.urdf\neffort_kind: torque\n')
        robot = load_robot(str(self.robot_file))
        assert robot.n == JOINTS
        self.joints, model = robot.joints, model_of(robot)
        model.save(self.model_file)
        rng, time_ = np.random.default_rng(1), np.arange(round(20.0 * RATE)) / RATE
        rates = rng.uniform(1.0, 5.0, (4, JOINTS))
        angles = time_[:, None, None] * rates + rng.uniform(0.0, 6.0, rates.shape)
        q, qd, qdd = (f.sum(axis=1) for f in (
            0.4 * np.sin(angles), 0.4 * rates * np.cos(angles), -0.4 * rates**2 * np.sin(angles)))
        effort = model.inverse(q, qd, qdd)
        write_csv(self.csv, RawLog(
            'motion', robot.joints, time_, q, qd, effort + 0.1 * rng.normal(size=effort.shape)))

    @contextmanager
    def clients(self) -> Iterator[dict[str, Any]]:
        """Let the clients ask while the block runs; their figures are there at its end."""
        figures: dict[str, Any] = {}
        asking = {kind: subprocess.Popen(
            [sys.executable, str(SUPPORT / 'load_client.py'), kind, str(JOINTS),
             str(self.model_file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for kind in CLIENTS}
        try:
            for client in asking.values():
                assert client.stdout is not None
                assert client.stdout.readline() == 'ready\n'
            yield figures
            for kind, client in asking.items():
                figures[kind] = json.loads(client.communicate()[0])
        finally:
            for client in asking.values():
                client.kill()
                client.wait()


def memory_of(pid: int) -> int:
    """Return the memory of a process that is no file's [bytes]."""
    status = Path(f'/proc/{pid}/status').read_text()
    return int(status.split('RssAnon:')[1].split()[0]) * 1024


def told(figures: dict[str, Any]) -> str:
    """Return the figures of the clients as a table."""
    lines = ['client     calls refused    p50 [ms]    p95 [ms]    p99 [ms]    max [ms]']
    for kind, found in figures.items():
        spread = ''.join(f'{1e3 * found[p]:12.2f}' for p in ('50', '95', '99', '100'))
        lines.append(f'{kind:8}{found["calls"]:8}{found["refused"]:8}{spread}')
    return '\n'.join(lines)


@pytest.mark.ros
@pytest.mark.parametrize('seconds', [
    pytest.param(3, id='short'), pytest.param(600, id='long', marks=pytest.mark.soak)])
def test_fourteen_joints_four_clients_and_an_identification(
    ros_domain: int, tmp_path: Path, seconds: int
) -> None:
    """Nothing is lost, one-state dynamics stay quick beside rollouts, memory does not grow."""
    load, count = Load(tmp_path), 1000 * seconds
    parameters = {'robot': load.robot_file, 'recording_directory': tmp_path / 'bags',
                  'model': load.model_file}
    memory: list[tuple[float, int]] = []
    with running('identifier', parameters) as node:
        user = Client()
        with load.clients() as figures:
            folder = user.call('start_recording').message.removeprefix('recording to ')
            publisher = subprocess.Popen(
                [sys.executable, str(SUPPORT / 'state_publisher.py'), str(count), str(JOINTS)],
                stdout=subprocess.DEVNULL)
            identified, result, before = 0, None, os.getloadavg()
            while publisher.poll() is None:
                if result is None or result.done():
                    if result is not None:
                        assert result.result().result.success, result.result().result.message
                        identified += 1
                    result = user.send(files=[str(load.csv)]).get_result_async()
                user.spin(0.2)
                memory.append((time.monotonic(), memory_of(node.process.pid)))
        stopped = user.call('stop_recording')
        user.close()
    recorded = read_bag(folder, tuple(f'joint_{i + 1}' for i in range(JOINTS)))
    when, size = np.array(memory[len(memory) // 2:]).T  # every thread has had large requests
    slope = 60.0 * np.polyfit(when - when[0], size, 1)[0]
    print(f'\n{count} messages published, {len(recorded.time)} recorded; '  # noqa: T201
          f'{identified} identifications; load of the machine {before[0]:.2f} before, '
          f'{os.getloadavg()[0]:.2f} at the end\nmemory [MB] '
          f'{" ".join(f"{s / 1e6:.0f}" for _, s in memory[::max(1, len(memory) // 20)])}, in the '
          f'second half {slope / 1e6:+.2f} MB/min\n{told(figures)}')
    assert stopped.success, stopped.message
    np.testing.assert_array_equal(recorded.position[:, 0], np.arange(count))
    assert f'recorded {count} messages' in stopped.message
    assert figures['forward']['99'] < figures['rollout']['50'], 'they do not wait for rollouts'
    if seconds > 60:
        assert figures['forward']['99'] < LONGEST
        assert slope < GROWTH
