"""Rigid links with ten standard parameters each, and bodies attached to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.regressor_columns import RegressorColumns
from robot_dynid.effects.effect import Effect, ParameterWords
from robot_dynid.errors import UsageError
from robot_dynid.robot.inertia import PARAMETERS, move_parameters
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class RigidLinks(Effect):
    """Torque of the links' inertia and gravity."""

    robot: RobotModel

    @property
    def names(self) -> tuple[str, ...]:
        """``m1, mx1, ..., Izz1, m2, ...``: links counted from one, in the order of the joints."""
        return tuple(f'{p}{i + 1}' for i in range(self.robot.tree.n)
                     for p in PARAMETERS)

    @property
    def words(self) -> Iterator[ParameterWords]:
        """The ten parameters of every link."""
        for i, name in enumerate(self.names):
            link = self.robot.tree.bodies[i // len(PARAMETERS)]
            symbol = PARAMETERS[i % len(PARAMETERS)]
            if symbol == 'm':
                words, unit = 'mass', 'kg'
            elif symbol.startswith('m'):
                words, unit = f'mass times {symbol[1:]} of its centre of mass', 'kg m'
            else:
                first, second = symbol[1], symbol[2]
                words = (f'moment of inertia about the {first} axis' if first == second else
                         f'entry {first}{second} of the inertia matrix')
                words, unit = f'{words}, at the origin of its frame', 'kg m^2'
            yield ParameterWords(name, link, words, unit)

    def acting(self, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
        """Return ``mechanism`` with these links."""
        links = np.array([values[name] for name in self.names]).reshape(-1, len(PARAMETERS))
        return replace(mechanism, links=links)

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) standard parameters."""
        return RegressorColumns.of_links(self.robot, chosen)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion, by reverse mode.

        ``weights`` (n, k, N).
        """
        motion = (samples.position, samples.velocity, samples.acceleration)
        return rigid_body.regressor_pullback(self.robot, motion, weights, chosen)


@dataclass(frozen=True, eq=False)
class AttachedBody:
    """A rigid body on ``link``; ``placement`` (4, 4) is its frame in the link of ``joint``."""

    robot: RobotModel
    link: str
    joint: int
    placement: FloatArray

    @classmethod
    def on(cls, robot: RobotModel, link: str = '') -> AttachedBody:
        """Attach a body to a link by name, by default to the last link of a chain.

        Raises UsageError if no joint moves the link, or a tree has several last links.
        """
        placed = {name: (j, np.eye(4)) for j, name in enumerate(robot.bodies)}
        placed.update({frame.name: (frame.body, frame.placement) for frame in robot.links})
        if not link:
            last = [robot.bodies[j] for j in range(robot.n) if j not in robot.parents]
            if len(last) > 1:
                raise UsageError(f'{robot.name} has several last links ({", ".join(last)}): name '
                                 'the one that carries the payload')
            link = last[0]
        if link not in placed:
            raise UsageError(f'no joint of {robot.name} moves a link {link!r}, so it carries no '
                             f'payload: choose one of {", ".join(placed)}')
        joint, placement = placed[link]
        return cls(robot, link, joint, placement)

    @property
    def carriers(self) -> NDArray[np.bool_]:
        """Joints (n,) that carry the body."""
        return np.asarray(self.robot.carried[:, self.joint])

    @cached_property
    def _link_from_frame(self) -> FloatArray:
        moved = [move_parameters(unit, self.placement) for unit in np.eye(len(PARAMETERS))]
        return np.array(moved).T

    def columns(self, samples: Samples) -> FloatArray:
        """Return the regressor (n, 10, N) of the standard parameters in the link's frame.

        Gravity is included whatever the driver compensates, because it does not know the body.
        """
        motion = (samples.position, samples.velocity, samples.acceleration)
        chosen = 10 * self.joint + np.arange(len(PARAMETERS))
        columns = rigid_body.regressor(self.robot, motion, chosen)
        return np.asarray(np.einsum('nks,kp->nps', columns, self._link_from_frame))
