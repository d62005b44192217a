"""The Stanford arm of Lin 1991, its motions and the order of the estimation, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.reduction.composite_inertia import composite_map
from robot_dynid.robot import locate
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, frozen

ROBOT = 'config/reproduce/stanford_arm_1991.yaml'
#: configuration (62) [rad, m]; every motion starts at the displacement of its joint in it
BASE = frozen([0.7, 0.7, 0.0, 0.7, 0.7, 0.7])
#: the response of the moving joint to a step: its size [rad], 1 / time constant [1/s] (eq. 64)
SIZE, SIGMA = np.pi / 6.0, 10.0
#: rows of `composite_map`
MAP_ROWS = ('m', 'kx', 'ky', 'kz', 'U11', 'U12', 'U22', 'U13', 'U23', 'U33')


@dataclass(frozen=True)
class Step:
    """Body ``body`` is estimated while joint ``moving`` turns, both counted from one.

    In each motion joint ``changed`` is locked at one of ``angles`` [rad], all others as in BASE.
    """

    body: int
    moving: int
    changed: int
    angles: tuple[float, ...]

    @property
    def configurations(self) -> list[FloatArray]:
        """Positions (n,) of all joints at the start of each motion."""
        found = []
        for angle in self.angles:
            q = np.array(BASE)
            q[self.changed - 1] = angle
            found.append(q)
        return found


#: Algorithm 2 for this arm: r = 1, s = 2; axis 2 is perpendicular to axis 1, so (U_2)_33 needs a
#: motion of joint 2; m^_3 is found with k_3
STEPS = (
    Step(6, 1, 6, (0.7, -0.6, -0.7)),
    Step(5, 1, 5, (0.7, -0.6, -0.7)),
    Step(4, 1, 4, (0.7, -0.6, -0.7)),
    Step(3, 1, 2, (0.7, -0.7)),
    Step(2, 1, 2, (0.7, -0.6, -0.7)),
    Step(2, 2, 2, (0.7,)),
    Step(1, 1, 1, (0.7,)),
)


def load_arm() -> RobotModel:
    """Return the arm of figure 2; raises UsageError when its file is not installed."""
    path = locate.find(ROBOT)
    if path is None:
        raise UsageError(f'{ROBOT} is not installed; install the package with its config folder')
    return load_robot(path)


def step_response(time: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return travel, rate and acceleration of the moving joint at ``time`` [s] (eqs. 64 to 66).

    Before time zero it rests.
    """
    t = np.maximum(np.asarray(time, dtype=np.float64), 0.0)
    decay = SIZE * np.exp(-SIGMA * t)
    started = np.asarray(time, dtype=np.float64) >= 0.0
    return (SIZE - (1.0 + SIGMA * t) * decay, SIGMA**2 * t * decay,
            np.where(started, (1.0 - SIGMA * t) * SIGMA**2 * decay, 0.0))


def constant_rows(robot: RobotModel) -> dict[tuple[int, str], FloatArray]:
    """Return, by body (counted from one) and name, the combination (10 n,) it is.

    Names are those of `composite_bodies`; products with standard parameters are the constants.
    """
    found: dict[tuple[int, str], FloatArray] = {}
    for body, rows in enumerate(composite_map(robot), start=1):
        named = dict(zip(MAP_ROWS, rows, strict=True))
        named['U11 - U22'] = named['U11'] - named['U22']
        found |= {(body, name): row for name, row in named.items()}
    return found
