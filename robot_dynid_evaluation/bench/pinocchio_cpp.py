"""Peers in C++, compiled on the spot against the headers of the installed Pinocchio."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench.timing import import_pinocchio

NAME = 'Pinocchio in a loop of C++'
SOURCES = Path(__file__).parent / 'sources'
COMPILERS = ('c++', 'g++', 'clang++')
#: places of Eigen that no package brings, and where one does, below its prefix
EIGEN = (Path('/usr/include/eigen3'), Path('/usr/local/include/eigen3'))
#: as Pinocchio's own CMake files define them: its list of joint types is longer than 20
DEFINITIONS = ('BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS', 'BOOST_MPL_LIMIT_LIST_SIZE=30',
               'BOOST_MPL_LIMIT_VECTOR_SIZE=30', 'BOOST_FUSION_INVOKE_MAX_ARITY=12')
#: its algorithms are those of its library, not compiled once more
FLAGS = ('-std=c++17', '-O3', '-DNDEBUG', '-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION',
         *(f'-D{name}' for name in DEFINITIONS), '-shared', '-fPIC')
LIBRARIES = ('pinocchio_default', 'pinocchio_parsers')
#: seconds that compiling may take; measured 25 to 30
PATIENCE = 600.0


@contextmanager
def compiled(source: str) -> Iterator[ctypes.CDLL]:
    """Compile a file of SOURCES into a temporary folder, and load it.

    Raises MissingDependency where there is no compiler, no header or no library.
    """
    command = _command(SOURCES / source)
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        path = Path(folder) / 'loop.so'
        try:
            done = subprocess.run([*command, '-o', str(path)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise MissingDependency(f'{NAME}: not compiled within {PATIENCE:g} s') from None
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if 'error' in line), '')
            raise MissingDependency(f'{NAME}: {command[0]} does not compile it: {first}')
        yield ctypes.CDLL(str(path))


def _command(source: Path) -> list[str]:
    """Return the compiler and all its arguments but the output; raises MissingDependency."""
    pinocchio = Path(import_pinocchio().__file__).resolve()
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise MissingDependency(f'{NAME}: no C++ compiler, none of {", ".join(COMPILERS)}')
    prefix = next((folder for folder in pinocchio.parents
                   if (folder / 'include' / 'pinocchio').is_dir()), None)
    if prefix is None:
        raise MissingDependency(f'{NAME}: the installed package has no headers')
    eigen = next((folder for folder in (prefix / 'include' / 'eigen3', *EIGEN)
                  if (folder / 'Eigen').is_dir()), None)
    if eigen is None:
        raise MissingDependency(f'{NAME}: no headers of Eigen: pip install cmeel-eigen')
    library = prefix / 'lib'
    return [compiler, *FLAGS, f'-I{prefix / "include"}', f'-I{eigen}', str(source),
            f'-L{library}', *(f'-l{name}' for name in LIBRARIES), f'-Wl,-rpath,{library}']


#: file of the loop of regressors
REGRESSOR_SOURCE = 'pinocchio_regressor.cpp'


class Loop:
    """The loop for a robot; motions are q, qd, qdd (N, n), in order and float."""

    def __init__(self, library: ctypes.CDLL, robot: RobotModel) -> None:
        self._library, self._n = library, robot.n
        library.regressor_robot.restype = ctypes.c_void_p
        tables = (np.asarray(robot.parents, dtype=np.int64),
                  np.asarray(robot.types, dtype=np.int64), robot.axes, robot.rotations,
                  robot.translations, np.asarray(robot.gravity))
        known = [np.ascontiguousarray(t, t.dtype if t.dtype == np.int64 else np.float64)
                 for t in tables]
        self._robot = ctypes.c_void_p(
            library.regressor_robot(ctypes.c_int64(robot.n), *map(_pointer, known)))

    def close(self) -> None:
        """Free the robot."""
        self._library.regressor_free(self._robot)

    def calls(self, motion: tuple[FloatArray, FloatArray, FloatArray]) -> None:
        """Compute the regressor of every sample; nothing is kept."""
        self._library.regressor_calls(self._robot, *self._arguments(motion))

    def stacked(
        self, motion: tuple[FloatArray, FloatArray, FloatArray], out: FloatArray
    ) -> None:
        """Fill ``out`` (N n, 14 n): links, rotors, viscous and Coulomb friction, offsets."""
        assert out.shape == (len(motion[0]) * self._n, 14 * self._n) and out.flags.c_contiguous
        self._library.regressor_stacked(self._robot, *self._arguments(motion), _pointer(out))

    @staticmethod
    def _arguments(motion: tuple[FloatArray, FloatArray, FloatArray]) -> tuple[Any, ...]:
        assert all(signal.flags.c_contiguous for signal in motion)
        return ctypes.c_int64(len(motion[0])), *map(_pointer, motion)


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


#: file of the loops of RNEA and ABA
RNEA_SOURCE = 'pinocchio_rnea.cpp'


class Loops:
    """The loops for a robot without continuous joints; states are (K, n), in its order."""

    def __init__(self, library: ctypes.CDLL, robot: RobotModel) -> None:
        gravity = np.array(robot.gravity, dtype=np.float64)
        self._library = library
        library.robot_of.restype = ctypes.c_void_p
        self._robot = ctypes.c_void_p(library.robot_of(
            robot.source.encode(), ctypes.c_void_p(gravity.ctypes.data)))
        assert library.coordinates(self._robot) == robot.n

    def close(self) -> None:
        """Free the robot."""
        self._library.free_robot(self._robot)

    def called(self, name: str, states: tuple[FloatArray, ...], repeats: int) -> FloatArray:
        """Return the results (K, n) of ``rnea`` or ``aba``, called ``repeats`` times each."""
        out = np.empty_like(states[0])
        arrays = [np.ascontiguousarray(array) for array in states]
        pointers: list[Any] = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)]
        getattr(self._library, name)(self._robot, repeats, len(out), *pointers)
        return out
