"""Wrenches that the surroundings exert on links: the torque they put on the joints.

A wrench is a force f [N] and a torque t [N m] about the origin of a link's frame, both in the axes
of that frame unless others are named. It does the work ``w . V`` on the link, so it acts on the
joints as ``J^T w``, and the drives have to give

    torque = regressor @ parameters - J^T w.

Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, eq. 14; Lynch, Park, Modern Robotics, 2017,
section 8.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.kinematics import link_poses
from robot_dynid.errors import UsageError
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray

#: between a link and the link whose axes its wrench is given in: ``<link>@<axes>``
IN_AXES = '@'


class ExternalWrench:
    """Wrenches on ``link`` of ``robot``, any of its description that moves, fixed frames too.

    ``axes`` is the link whose axes force and torque are given in, the base link among them; by
    default those of ``link``. The torque is about the origin of ``link`` in any case.
    Raises UsageError, naming those there are, for a link that no joint moves or that is unknown.
    """

    def __init__(self, robot: RobotModel, link: str, axes: str = '') -> None:
        self._robot = robot
        self._body, self._place = _place(robot, link)
        self._frame = None if axes == robot.base_link else _place(robot, axes or link)

    @classmethod
    def at(cls, robot: RobotModel, place: str) -> ExternalWrench:
        """Return wrenches at a ``place``, ``<link>`` or ``<link>@<axes>``; raises UsageError."""
        link, _, axes = place.partition(IN_AXES)
        return cls(robot, link, axes)

    def __call__(self, q: FloatArray, wrench: FloatArray) -> FloatArray:
        """Return J^T w (K, n) [N m, N] at ``q`` (K, n) of wrenches (K, 6): WRENCH_COMPONENTS."""
        poses, robot = link_poses(self._robot, q), self._robot
        turn = np.eye(3)[None] if self._frame is None else (
            poses.rotations[:, self._frame[0]] @ self._frame[1][:3, :3])
        force, torque = ((turn @ part[:, :, None])[:, :, 0]
                         for part in (wrench[:, :3], wrench[:, 3:]))
        own = poses.rotations[:, self._body]
        point = poses.origins[:, self._body] + own @ self._place[:3, 3]
        found = np.zeros((len(q), robot.n))
        for j in np.flatnonzero(robot.carried[:, self._body]):
            axis = poses.rotations[:, j] @ robot.axes[j]
            moment = force if robot.types[j] == PRISMATIC else (
                torque + np.cross(point - poses.origins[:, j], force))
            found[:, j] = np.einsum('ka,ka->k', axis, moment)
        return found


@one_blas_thread()
def external_torque(
    robot: RobotModel, link: str, q: ArrayLike, wrench: ArrayLike, axes: str = ''
) -> FloatArray:
    """Return the torque (K, n) or (n,) [N m, N] of a wrench on ``link`` on the joints, J^T w.

    ``q`` (K, n) or (n,) rad (m); ``wrench`` (K, 6) or (6,): force [N] and torque [N m] that the
    surroundings exert on the link, about the origin of its frame, in its axes or in those of the
    link ``axes``. Raises UsageError for an unknown link, wrong shapes or numbers that are not
    finite. Source: see the module.
    """
    states, wrenches = (np.array(a, dtype=np.float64, ndmin=2) for a in (q, wrench))
    if states.shape[1] != robot.n or wrenches.shape != (len(states), len(WRENCH_COMPONENTS)):
        raise UsageError(f'expected positions (K, {robot.n}) and wrenches (K, 6), got '
                         f'{states.shape} and {wrenches.shape}')
    if not (np.isfinite(states).all() and np.isfinite(wrenches).all()):
        raise UsageError('positions and wrenches must be finite')
    found = ExternalWrench(robot, link, axes)(states, wrenches)
    return found[0] if np.ndim(q) == 1 else found


def _place(robot: RobotModel, link: str) -> tuple[int, FloatArray]:
    """Return the index of the joint that moves ``link``, and its frame (4, 4) behind it."""
    for one in robot.links:
        if one.name == link:
            return one.body, one.placement
    moved = ', '.join(one.name for one in robot.links)
    why = 'does not move' if link == robot.base_link else 'is no link that moves'
    raise UsageError(f'{link!r} {why}; {robot.name} has {moved}')
