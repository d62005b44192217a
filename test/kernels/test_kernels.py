"""Kernels: plain functions that agree with their compiled selves, all of them warmed up."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from robot_dynid.kernels.newton_euler import FAST, LANES

FOLDER = Path('robot_dynid') / 'kernels'

WITHOUT_COMPILER = """
import json, sys
from pathlib import Path
import numpy as np
import slow_dynamics
from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.warm_up import warm_up
robot = load_robot('planar_3r')
rng = np.random.default_rng(0)
q, v, a = rng.normal(size=(3, 2, 3))
expected = np.array([slow_dynamics.inverse_dynamics(robot, *s) for s in zip(q, v, a)])
effort = rigid_body.inverse_dynamics(robot, q, v, a)
assert np.allclose(effort, expected, atol=1e-10)
forward, pivots = rigid_body.forward_dynamics(robot, (q, v, effort))
assert np.allclose(forward, a, atol=1e-9) and (pivots > 0).all()
columns = rigid_body.regressor(robot, (q, v, a))
assert np.allclose(np.einsum('ick,c->ki', columns, robot.nominal.ravel()), effort, atol=1e-10)
assert np.allclose(rigid_body.mass_matrix(robot, q)[0], slow_dynamics.mass_matrix(robot, q[0]))
called = set()
def note(frame, event, argument):
    path = Path(frame.f_code.co_filename)
    if event == 'call' and path.parts[-3:-1] == ('robot_dynid', 'kernels'):
        called.add(f'{path.stem}.{frame.f_code.co_name}')
sys.setprofile(note)
warm_up()
sys.setprofile(None)
print(json.dumps(sorted(called)))
"""


@pytest.fixture(scope='module')
def called(root: Path) -> set[str]:
    """Return the kernels which the warm-up calls, in a process without the compiler."""
    path = os.pathsep.join([str(root), str(root / 'test' / 'support')])
    environment = {**os.environ, 'NUMBA_DISABLE_JIT': '1', 'PYTHONPATH': path}
    done = subprocess.run([sys.executable, '-c', WITHOUT_COMPILER], env=environment,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def kernels(root: Path) -> dict[str, list[str]]:
    """Return the decorators of every function of the folder."""
    return {f'{path.stem}.{node.name}': [ast.unparse(one) for one in node.decorator_list]
            for path in sorted((root / FOLDER).glob('*.py'))
            for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_kernel_is_warmed_up(root: Path, called: set[str]) -> None:
    """One that is not would be compiled in the middle of a service call."""
    entries = {name for name, decorators in kernels(root).items() if decorators == ['compiled']}
    assert len(entries) > 10, 'the kernels are found by their decorator'
    assert not entries - called


def test_every_module_of_kernels_is_warmed_up(root: Path, called: set[str]) -> None:
    modules = {path.stem for path in (root / FOLDER).glob('*.py')} - {'__init__'}
    assert modules == {name.partition('.')[0] for name in called}


def test_flags_of_the_compiler_have_one_owner(root: Path) -> None:
    wrong = {name: found for name, found in kernels(root).items()
             if found not in (['compiled'], ['inlined'])}
    assert set(wrong) == {'newton_euler.at_width'}, 'it makes kernels, and is none itself'


def test_short_loops_over_lanes_become_vector_instructions() -> None:
    def add(total: np.ndarray, rows: np.ndarray) -> None:
        for row in range(len(rows)):
            for k in range(LANES):
                total[row, k] += rows[row, k]

    kernel: Any = njit(fastmath=FAST, error_model='numpy')(add)
    kernel(*np.ones((2, 6, LANES)))
    assert 'addpd' in kernel.inspect_asm(kernel.signatures[0])
