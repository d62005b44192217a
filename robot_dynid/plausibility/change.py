"""Changes of a recording, or of the description of its robot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: what is reported joint by joint
CHANNELS = ('position', 'velocity', 'effort')


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a recording, and of the robot that it is of.

    Factors and offsets (n,) of positions, and of measured velocities and efforts; ``order`` (n,)
    of columns, by channel; ``time`` is the factor of stamps. Of the robot: ``gravity`` (3,)
    [m/s^2], the ``kind`` of efforts, the factors ``length`` of all distances and ``mass``.
    ``sprung`` are joints with a spring.
    """

    position: FloatArray | None = None
    offset: FloatArray | None = None
    velocity: FloatArray | None = None
    effort: FloatArray | None = None
    order: tuple[tuple[str, NDArray[np.int64]], ...] = ()
    time: float = 1.0
    gravity: FloatArray | None = None
    kind: str = ''
    length: float = 1.0
    mass: float = 1.0
    sprung: tuple[int, ...] = ()

    @property
    def of_efforts(self) -> bool:
        """Whether the efforts alone change."""
        return self.position is None and self.offset is None and self.velocity is None and (
            self.time == 1.0 and self.length == 1.0 and self.gravity is None and not self.kind
            and not self.sprung and all(channel == 'effort' for channel, _ in self.order))

    @property
    def of_velocities(self) -> bool:
        """Whether the measured velocities alone change."""
        return replace(self, velocity=None, order=()).of_efforts and self.effort is None and all(
            channel == 'velocity' for channel, _ in self.order)

    def robot(self, robot: RobotModel) -> RobotModel:
        """Return the robot as it would be."""
        if self.gravity is not None:
            robot = robot.with_gravity(self.gravity)
        if self.kind:
            robot = replace(robot, drive=replace(robot.drive, kind=self.kind))
        if self.length != 1.0:
            powers = self.length ** np.array([0.0] + 3 * [1.0] + 6 * [2.0])
            robot = replace(robot.with_nominal(robot.nominal * powers * self.mass),
                            translations=robot.translations * self.length)
        return robot

    def rows(self, rows: Excerpt) -> Excerpt:
        """Return the excerpt as it would be."""
        tables = {name: getattr(rows, name) for name in (
            'position', 'velocity', 'acceleration', 'torque', 'travel', 'integrated')}
        of = {'position': ('position', 'velocity', 'acceleration', 'travel'),
              'velocity': ('integrated',), 'effort': ('torque',)}
        for channel, order in self.order:
            for name in of[channel]:
                tables[name] = tables[name][:, order]
        for channel in CHANNELS:
            factor = getattr(self, channel)
            if factor is not None:
                for name in of[channel]:
                    tables[name] = tables[name] * factor
        if self.offset is not None:
            tables['position'] = tables['position'] + self.offset
        if self.time != 1.0:
            tables['velocity'] = tables['velocity'] / self.time
            tables['acceleration'] = tables['acceleration'] / self.time**2
            tables['integrated'] = tables['integrated'] * self.time
        return Excerpt(**tables, seconds=rows.seconds * self.time, step=rows.step * self.time)
