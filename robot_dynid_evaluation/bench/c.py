"""Generated C code, one state at a time, beside Pinocchio's C++ and this package in Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import DynIdError, MissingDependency
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.threads import threads_at_most
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench import Row, Target, row
from robot_dynid_evaluation.bench.arms import model_with, true_model, ur10e_model
from robot_dynid_evaluation.bench.forward import one_by_one
from robot_dynid_evaluation.bench.pinocchio_cpp import RNEA_SOURCE, Loops, compiled
from robot_dynid_evaluation.bench.timing import in_turns, random_states

if TYPE_CHECKING:
    from robot_dynid.export.c_code import CCode

#: states of a round, and how often C and C++ work them off
STATES, REPEATS = 1000, 100
FLAGS = ('-O2', '-std=c99', '-shared', '-fPIC')
#: many states at once use vector instructions, which one state cannot
FASTER, ALONE, TOGETHER = Target(1.0), Target(10.0), Target(0.5)
#: how far the peers may be apart, relative to the largest
ALIKE = 1e-10
Motion = tuple['FloatArray', 'FloatArray', 'FloatArray']
Called = Callable[[str, Motion, int], 'FloatArray']
FUNCTIONS = ('inverse_dynamics', 'inverse_dynamics_with_friction', 'forward_dynamics',
             'forward_dynamics_with_friction')
LOOP = """
void repeat_{function}(int repeats, int count, const double *a, const double *b, const double *c,
                       double *out)
{{
    for (int r = 0; r < repeats; ++r) {{
        for (int k = 0; k < {joints} * count; k += {joints}) {{
            {name}_{function}(a + k, b + k, c + k, out + k);
        }}
    }}
}}
"""


def measure(progress: Progress) -> Iterator[Row]:
    """Yield the rows of a UR10e with the friction of its choice, and of the seven-axis arm."""
    with threads_at_most(1), compiled(RNEA_SOURCE) as library:
        for model in (ur10e_model('auto'), true_model()):
            yield from rows(model, library, progress)


def rows(model: IdentifiedModel, library: ctypes.CDLL, progress: Progress) -> Iterator[Row]:
    """Yield the rows of one model; Pinocchio's is that of its nominal links."""
    robot = model.robot
    motion = random_states(robot, STATES)
    under = (*motion[:2], model.inverse(*motion))
    bare = model_with(robot, Structure.uniform(robot, False, 'coulomb', {}), {})  # links alone
    peer = Loops(library, robot)
    with written_out(model.to_c()) as own, written_out(bare.to_c()) as links:
        _require_same(links('inverse_dynamics', motion, 1), peer.called('rnea', motion, 1))
        _require_same(links('forward_dynamics', under, 1), peer.called('aba', under, 1))
        found = in_turns({
            'RNEA': partial(peer.called, 'rnea', motion, REPEATS),
            'links': partial(links, 'inverse_dynamics', motion, REPEATS),
            'inverse': partial(own, 'inverse_dynamics_with_friction', motion, REPEATS),
            'ABA': partial(peer.called, 'aba', under, REPEATS),
            'links forward': partial(links, 'forward_dynamics', under, REPEATS),
            'forward': partial(own, 'forward_dynamics_with_friction', under, REPEATS),
            'Python inverse': partial(model.inverse, *motion),
            'Python inverse, one': partial(one_by_one, model.inverse, motion),
            'Python forward': partial(model.forward, *under),
            'Python forward, one': partial(one_by_one, model.forward, under),
        }, progress)
    peer.close()
    each = {name: 1e9 * seconds / STATES / (1 if name.startswith('Python') else REPEATS)
            for name, seconds in found.items()}
    for what, ours, other, target in (
            ("inverse, links / Pinocchio's RNEA in C++", 'links', 'RNEA', FASTER),
            ("inverse, friction and rotors / Pinocchio's RNEA", 'inverse', 'RNEA', FASTER),
            ("forward, links / Pinocchio's ABA in C++", 'links forward', 'ABA', FASTER),
            ("forward, friction and rotors / Pinocchio's ABA", 'forward', 'ABA', FASTER),
            (f'inverse / Python, {STATES} states', 'inverse', 'Python inverse', TOGETHER),
            ('inverse / Python, one state', 'inverse', 'Python inverse, one', ALONE),
            (f'forward / Python, {STATES} states', 'forward', 'Python forward',
             TOGETHER),
            ('forward / Python, one state', 'forward', 'Python forward, one', ALONE)):
        yield row(f'{robot.name}: {what}', 'ns per state', each[ours], each[other], target)


def _require_same(ours: FloatArray, theirs: FloatArray) -> None:
    """Raise DynIdError unless results (K, n) agree."""
    if not np.abs(ours - theirs).max() <= ALIKE * np.abs(theirs).max():
        raise DynIdError('the C code and Pinocchio do not compute the same')


@contextmanager
def written_out(code: CCode) -> Iterator[Called]:
    """Compile C code in a temporary folder.

    What is yielded returns the results (K, n) of a function of FUNCTIONS, by its name, for states
    (three arrays (K, n)), each of which it works off so many times as is said. Raises
    MissingDependency where there is no compiler.
    """
    compiler = shutil.which('cc') or shutil.which('gcc')
    if compiler is None:
        raise MissingDependency('generated C: no C compiler, neither cc nor gcc')
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        place = Path(folder)
        _, source = code.save(place)
        path = place / 'loops.so'
        loops = f'#include "{code.name}.h"\n' + ''.join(
            LOOP.format(name=code.name, function=name, joints=f'{code.name.upper()}_JOINTS')
            for name in FUNCTIONS)
        subprocess.run([compiler, *FLAGS, '-I', folder, str(source), '-x', 'c', '-', '-o',
                        str(path), '-lm'], input=loops, text=True, check=True)
        library = ctypes.CDLL(str(path))

        def called(name: str, states: Motion, repeats: int) -> FloatArray:
            out = np.empty_like(states[0])
            arrays = [*(np.ascontiguousarray(array) for array in states), out]
            getattr(library, f'repeat_{name}')(
                repeats, len(out), *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
            return out

        yield called
