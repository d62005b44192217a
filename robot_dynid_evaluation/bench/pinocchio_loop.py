"""Pinocchio's regressor in a loop of C++."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: file of the loop, see `pinocchio_cpp`
SOURCE = 'pinocchio_regressor.cpp'


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
