"""Pinocchio's RNEA and ABA in loops of C++."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: file of the loops, see `pinocchio_cpp`
SOURCE = 'pinocchio_rnea.cpp'


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
