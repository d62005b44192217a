"""Kernels: plain functions that agree with their compiled selves, all of them warmed up."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from nominal import nominal_model, states

from robot_dynid import warm_up
from robot_dynid.kernels.compilation import Kernel, compilation_heard
from robot_dynid.kernels.newton_euler import FLAGS, LANES
from robot_dynid.types import frozen

FOLDER = Path('robot_dynid') / 'kernels'
#: decorators of kernels that are called from outside; sums of `triangle` are taken in any order
ENTRIES = ['compiled'], ['summing']

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
called, folder = set(), str(Path('robot_dynid', 'kernels'))
def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == 'call' and folder in name:  # of millions of events: warming up imports a lot
        path = Path(name)
        if path.parts[-3:-1] == ('robot_dynid', 'kernels') and path.stem != 'compilation':
            called.add(f'{path.stem}.{frame.f_code.co_name}')
sys.setprofile(note)
warm_up()
sys.setprofile(None)
print(json.dumps(sorted(called)))
"""


SIGNATURES = """
import json
from robot_dynid import warm_up
from robot_dynid.kernels.compilation import compilation_heard, ready_signatures
with compilation_heard(lambda name: print('compiled', name)):
    warm_up.warm_up()
print(json.dumps([[len(kernel.signatures) for kernel in warm_up.KERNELS],
                  [min(needed, ready_signatures(kernel))
                   for kernel, needed in warm_up.KERNELS.items()]]))
"""

COMPILATION = """
import json
import numpy as np
from robot_dynid import load_robot, warm_up
from robot_dynid.dynamics.rigid_body import link_poses
from robot_dynid.kernels import kinematics
from robot_dynid.kernels.compilation import compilation_heard, storage_folder
missing, heard = warm_up.uncompiled(), []
with compilation_heard(heard.append):
    link_poses(load_robot('planar_3r'), np.zeros((3, 3)))
print(json.dumps([missing, heard, warm_up.uncompiled(), storage_folder(kinematics.link_poses)]))
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


def modules(root: Path) -> list[Path]:
    """Return the modules with kernels: all but the one about their compilation."""
    return [path for path in sorted((root / FOLDER).glob('*.py'))
            if path.stem not in ('__init__', 'compilation')]


def kernels(root: Path) -> dict[str, list[str]]:
    """Return the decorators of every function of the folder."""
    return {f'{path.stem}.{node.name}': [ast.unparse(one) for one in node.decorator_list]
            for path in modules(root) if path.stem != 'references'  # works on their types
            for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_kernel_is_warmed_up(root: Path, called: set[str]) -> None:
    """One that is not would be compiled in the middle of a service call."""
    entries = {name for name, decorators in kernels(root).items() if decorators in ENTRIES}
    assert len(entries) > 10, 'the kernels are found by their decorator'
    assert not entries - called


def test_every_module_of_kernels_is_warmed_up(root: Path, called: set[str]) -> None:
    assert {path.stem for path in modules(root)} == {name.partition('.')[0] for name in called}


def test_every_kernel_is_counted_with_the_signatures_that_the_warm_up_compiles(root: Path) -> None:
    """Or a node would be ready too early, or compile at every start."""
    warm_up.warm_up()
    entries = {name for name, decorators in kernels(root).items() if decorators in ENTRIES}
    assert {f'{kernel.__module__.rpartition(".")[2]}.{kernel.__name__}'
            for kernel in warm_up.KERNELS} == entries
    assert warm_up.uncompiled() == ()
    found = subprocess.run(
        [sys.executable, '-c', SIGNATURES], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(found.stdout) == [list(warm_up.KERNELS.values())] * 2


def test_what_is_not_stored_is_known_without_compiling_it(tmp_path: Path) -> None:
    """As on another machine, or after an installation; the news of a compilation is one line."""
    found = subprocess.run(
        [sys.executable, '-c', COMPILATION], capture_output=True, text=True, timeout=120,
        env={**os.environ, 'NUMBA_CACHE_DIR': str(tmp_path)}, check=True)
    missing, heard, left, stored = json.loads(found.stdout)
    assert len(missing) == len(warm_up.KERNELS)
    assert heard == ['link_poses'], 'what is inlined into it is not told of'
    assert set(missing) - set(left) == {'link_poses'}
    assert Path(stored).is_relative_to(tmp_path)


@pytest.mark.parametrize('form', [
    np.ascontiguousarray, frozen, np.asfortranarray, np.float32,
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2]],
    ids=['writable', 'read-only', 'by columns', 'single', 'strided'])
def test_calls_with_any_arrays_compile_nothing(form: Any) -> None:
    """What is compiled anew is heard."""
    model, heard = nominal_model('planar_3r'), list[str]()
    q, qd, qdd = (form(a) for a in states(model, 4))
    with compilation_heard(heard.append):
        model.inverse(q, qd, qdd)
        model.forward(q, qd, qdd)
        model.mass_matrix(q)
        model.friction(q, qd, qdd)
        model.axis_friction.torque(qd)
        model.rollout(q, qd, form(np.zeros((4, 2, 3))), 1e-3)
    assert heard == []


def test_flags_of_the_compiler_have_one_owner(root: Path) -> None:
    wrong = {name: found for name, found in kernels(root).items()
             if found not in (*ENTRIES, ['inlined'])}
    assert set(wrong) == {'newton_euler.at_width'}, 'it makes kernels, and is none itself'


@pytest.mark.skipif(numba.__version__.startswith('0.55.'),
                    reason='LLVM 11 of numba 0.55 leaves such loops scalar')
def test_short_loops_over_lanes_become_vector_instructions() -> None:
    def add(total: np.ndarray, rows: np.ndarray) -> None:
        for row in range(len(rows)):
            for k in range(LANES):
                total[row, k] += rows[row, k]

    kernel: Any = Kernel(add, FLAGS, stored=False)
    kernel(*np.ones((2, 6, LANES)))
    assert 'addpd' in kernel.inspect_asm(kernel.signatures[0])
