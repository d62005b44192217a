"""kernels/kernels.cpp: kernels: what they take and refuse, their builds, and threads that run
beside them."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model, states

from robot_dynid import kernels
from robot_dynid.dynamics import rigid_body
from robot_dynid.kernels.low_pass import zero_phase
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.types import frozen

#: builds of the kernels; the newer needs AVX2
BUILDS = sorted(path.name.partition('.')[0] for path in Path(kernels.BUILT).parent.glob('_*.so'))

MEMORY = """
import numpy as np
from robot_dynid.kernels.low_pass import zero_phase
def resident():
    return int(next(line for line in open('/proc/self/status') if 'VmRSS' in line).split()[1])
columns = np.ones((1, 2_000_000))
out = np.ones_like(columns)
before = resident()
zero_phase(np.ones((4, 6)) / 8.0, 1, columns, out)
print(before, resident())
"""


@pytest.mark.parametrize('form', [
    np.ascontiguousarray, frozen, np.asfortranarray, np.float32,
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2]],
    ids=['writable', 'read-only', 'by columns', 'single', 'strided'])
def test_arrays_of_any_layout_give_the_same(form: Any) -> None:
    model = nominal_model('planar_3r')
    plain = states(model, 2 * LANES + 3)
    rounded = [np.asarray(form(a), np.float64) for a in plain]  # of single precision
    for call in (model.inverse, model.forward):
        np.testing.assert_array_equal(call(*(form(a) for a in plain)), call(*rounded))
    np.testing.assert_array_equal(model.mass_matrix(form(plain[0])), model.mass_matrix(rounded[0]))


@pytest.mark.parametrize(('arguments', 'cause'), [
    ((), '4 arguments'), ((1.0, 1, 2.0, 3.0), 'array'),
    ((np.ones((2, 6)), 1.5, np.ones((1, 9)), np.ones((1, 9))), 'whole number'),
    ((np.ones((2, 6)), 1, np.ones((1, 9), np.float32), np.ones((1, 9))), 'float64 is expected'),
    ((np.ones((2, 6)), 1, np.ones((1, 9), np.int64), np.ones((1, 9))), 'float64 is expected'),
    ((np.ones((2, 6)), 1, np.ones((9, 2)).T, np.ones((2, 9))), 'C-contiguous'),
    ((np.ones((2, 6)), 1, np.ones(9), np.ones((1, 9))), 'of 2 dimensions')])
def test_unfit_arguments_are_refused_with_the_cause(arguments: Any, cause: str) -> None:
    with pytest.raises(TypeError, match=cause):
        zero_phase(*arguments)


def test_kernel_builds_agree_to_the_last_bit() -> None:
    """No operation is contracted or put in another order: any machine gives the same numbers."""
    rng, found = np.random.default_rng(0), []
    robot = nominal_model('planar_3r').robot
    tree = robot.geometry, np.array(robot.parents), robot.gravity
    inputs = tuple(rng.normal(size=(70, 3)) for _ in range(3))
    for name in BUILDS:
        if name == '_newer' and not kernels._portable.has_newer():
            pytest.skip('the newer build needs AVX2')
        out = np.empty((70, 3))
        built = import_module(f'robot_dynid.kernels.{name}')
        built.newton_euler.inverse_dynamics(*tree, robot.nominal, inputs, out)
        found.append(out)
    np.testing.assert_array_equal(found[0], found[-1])
    np.testing.assert_array_equal(found[0], rigid_body.inverse_dynamics(robot, *inputs))


def test_other_threads_run_while_a_kernel_works() -> None:
    columns, steps = np.ones((8, 2_000_000)), 0
    out, done = np.empty_like(columns), threading.Event()

    def work() -> None:
        zero_phase(np.ones((4, 6)) / 8.0, 1, columns, out)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        steps += 1
    thread.join()
    assert steps > 3


def test_kernels_that_are_not_built_say_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / 'robot_dynid' / 'kernels'
    folder.mkdir(parents=True)
    source = Path(kernels.__file__).read_text()
    (folder / '__init__.py').write_text(source)
    (tmp_path / 'robot_dynid' / '__init__.py').touch()
    done = subprocess.run([sys.executable, '-c', 'import robot_dynid.kernels'], cwd=tmp_path,
                          env={'PYTHONPATH': str(tmp_path), 'PATH': ''}, capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert 'kernels of robot_dynid are not built: install the package' in last


def test_memory_of_a_large_call_is_given_back() -> None:
    done = subprocess.run([sys.executable, '-c', MEMORY], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    before, after = (int(number) for number in done.stdout.split())
    assert after < before + 20_000, 'kB; the call takes 130 MB beside its arrays'
