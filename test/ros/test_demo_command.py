"""robot_dynid_evaluation/demo/: the demo as its user runs it, with real nodes; and that nothing of
it stays when it is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy')

HANGS = 900.0  # s: it takes 40 to 100, by how busy the machine is; more is a hang
MAIN = 'import sys; from robot_dynid.cli.main import main; sys.exit(main())'


@pytest.mark.ros
@pytest.mark.slow
def test_demo_for_real(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, '-c', MAIN, 'demo', '--json', '--out', str(tmp_path)],
        capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = json.loads(done.stdout)
    assert found['ok']
    assert found['parameters_error'] < 0.02
    assert found['forward_dynamics_error'] < 0.02
    assert Path(found['report']).stat().st_size > 1_000_000
    assert Path(found['model']).is_file()
    assert Path(found['recording']).exists()
    for name in ('simulated_robot', 'identifier', 'excitation'):
        assert 'Traceback' not in (tmp_path / 'logs' / f'{name}.log').read_text()


@pytest.mark.ros
@pytest.mark.soak
def test_demo_one_joint_at_a_time(tmp_path: Path) -> None:
    """The stanford_arm takes four minutes: by hand, its figures stand in docs/staged.md."""
    done = subprocess.run(
        [sys.executable, '-c', MAIN, 'demo', '--json', '--robot', 'planar_3r', '--excitation',
         'sine-sequence', '--out', str(tmp_path)],
        capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = json.loads(done.stdout)
    assert found['ok'] and found['forward_dynamics_error'] < 0.05
    assert found['parameters_error'] < 0.02
    assert found['warnings'] == []


@pytest.mark.ros
@pytest.mark.soak
def test_demo_with_elastic_joints(tmp_path: Path) -> None:
    """Both encoders are recorded; gears are found, and the service answers for motors, too."""
    done = subprocess.run(
        [sys.executable, '-c', MAIN, 'demo', '--json', '--robot', 'elastic_2r', '--out',
         str(tmp_path)],
        capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = json.loads(done.stdout)
    assert found['ok']
    assert found['stiffness_error'] < 0.005
    assert found['parameters_error'] < 0.02
    assert found['forward_dynamics_error'] < 0.005
    assert found['motor_dynamics_error'] < 0.02
    names = [p['name'] for p in found['parameters']]
    assert {'K1', 'D1', 'Ia1', 'K2', 'D2', 'Ia2'} <= set(names)
    assert Path(found['report']).stat().st_size > 1_000_000


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    demo = subprocess.Popen(
        [sys.executable, '-c', MAIN, 'demo', '--out', str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children: list[int] = []
    give_up = time.monotonic() + HANGS
    try:
        while len(children) < 3:
            assert time.monotonic() < give_up
            assert demo.poll() is None
            tasks = Path(f'/proc/{demo.pid}/task').glob('*/children')
            children = [int(pid) for task in tasks for pid in task.read_text().split()]
            time.sleep(0.2)
        demo.send_signal(how)
        out, err = demo.communicate(timeout=HANGS)
    finally:
        demo.kill()
        left = [pid for pid in children if Path(f'/proc/{pid}').exists()]
        for pid in left:  # or they would run on beside all later tests
            os.kill(pid, signal.SIGKILL)
    assert demo.returncode == 130
    assert out == ''
    assert err.splitlines()[-1] == 'robot-dynid: interrupted'
    assert 'Traceback' not in err
    assert not left
