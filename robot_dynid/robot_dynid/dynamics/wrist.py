"""Force-torque sensors at the wrist: the wrench of the tool in them, and its compensation.

The wrench through a frame is the effort of six joints at rest in that frame, three that slide and
three that turn, so dynamics and regressor of a robot with these joints are those of the sensor. It
reports

    reading = sign R (external - Y p) + bias,

with the rotation R from the axes of the link to those of the sensor, the regressor Y (6, 10) of
the tool in the frame of the link, its parameters p, and what the surroundings exert on the tool.
Sources: Atkeson, An, Hollerbach 1986; Kubus, Kroeger, Wahl 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import ModelError, UsageError, reported
from robot_dynid.files import atomic_write, read_text
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.inertia import PARAMETERS, pseudo_inertia
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Drive, Limits, Link, RobotModel
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, contiguous, frozen
from robot_dynid.yaml_text import load_yaml, yaml_text

#: components of a wrench
SIX = len(WRENCH_COMPONENTS)
HEADER, VERSION = 'robot_dynid_wrist_sensor', 1
#: header of sensor files; other files are not overwritten
MARK = f'\n{HEADER}:'.encode()
#: rounding of a rotation matrix and of the least eigenvalue of a body in a file
ROUNDING = 1e-6


def with_sensor(robot: RobotModel, link: str, tool: FloatArray | None = None) -> RobotModel:
    """Return the tree of ``robot`` with six more joints at the frame of ``link``, at rest at zero.

    Their efforts are the wrench on what the last one carries, in the order of WRENCH_COMPONENTS:
    a ``tool`` (10,). Raises UsageError for an unknown link, or one that does not move.
    """
    tree = robot.tree
    body, placement = rigid_body.placed(robot, link)
    turn, shift, axes = np.tile(np.eye(3), (SIX, 1, 1)), np.zeros((SIX, 3)), np.eye(3)
    turn[0], shift[0] = placement[:3, :3], placement[:3, 3]
    carried = np.zeros((SIX, len(PARAMETERS)))
    carried[-1] = 0.0 if tool is None else tool
    names = tuple(f'{link} {component}' for component in WRENCH_COMPONENTS)
    return replace(
        tree, joints=(*tree.joints, *names), bodies=(*tree.bodies, *names),
        types=np.append(tree.types, np.repeat([PRISMATIC, REVOLUTE], 3)).astype(np.int8),
        parents=np.append(tree.parents, [body, *range(tree.n, tree.n + SIX - 1)]),
        rotations=frozen(np.concatenate([tree.rotations, turn])),
        translations=frozen(np.concatenate([tree.translations, shift])),
        axes=frozen(np.concatenate([tree.axes, axes, axes])),
        nominal=frozen(np.concatenate([tree.nominal, carried])),
        limits=Limits.unknown(tree.n + SIX), drive=Drive('torque'),
        links=(*tree.links, Link(names[-1], tree.n + SIX - 1, np.eye(4), np.zeros(10), False)))


def with_rest(values: FloatArray) -> FloatArray:
    """Return ``values`` (N, m) of the joints of the tree and zeros for those of the sensor."""
    return np.pad(values, ((0, 0), (0, SIX)))


@dataclass(frozen=True, eq=False)
class WristSensor:
    """A sensor with a tool behind it, see the module for its equation.

    ``digest`` is the hash of the robot of this name; ``link`` the frame of ``parameters`` (10,);
    ``bias`` (6,) [N, N m] in the axes of the sensor; ``rotation`` (3, 3) is R; ``sign`` is one if
    it reports what is exerted on the tool, minus one for the reaction. Raises UsageError for
    numbers that are none of a sensor.
    """

    robot: str
    digest: str
    link: str
    parameters: FloatArray
    bias: FloatArray
    rotation: FloatArray
    sign: int

    def __post_init__(self) -> None:
        for name, shape in (('parameters', (10,)), ('bias', (SIX,)), ('rotation', (3, 3))):
            values = getattr(self, name)
            if values.shape != shape or not np.isfinite(values).all():
                raise UsageError(f'{name} must be {" x ".join(map(str, shape))} finite numbers')
        if self.sign not in (1, -1):
            raise UsageError('sign must be 1 or -1')
        if np.linalg.det(self.rotation) < 0.0 or not np.allclose(
                self.rotation.T @ self.rotation, np.eye(3), atol=ROUNDING):
            raise UsageError('rotation is not a rotation matrix')
        if np.linalg.eigvalsh(pseudo_inertia(self.parameters))[0] < -ROUNDING:
            raise UsageError('parameters are not those of a body')

    @property
    def turn(self) -> FloatArray:
        """Matrix (6, 6) from wrenches in the axes of the link to readings without bias."""
        return np.asarray(self.sign * np.kron(np.eye(2), self.rotation))

    def without_mounting(self, reading: FloatArray) -> FloatArray:
        """Return readings (N, 6) without bias and sign, in the axes of the link."""
        return np.asarray((reading - self.bias) @ self.turn)

    def with_change(self, wrench: FloatArray) -> WristSensor:
        """Return the sensor whose bias contains a ``wrench`` (6,) in the axes of the link, too."""
        return replace(self, bias=self.bias + self.turn @ wrench)

    @reported
    def save(self, path: str | Path) -> None:
        """Write the file that `load` reads.

        Raises UsageError if the path holds another file, DynIdError if it cannot be written.
        """
        atomic_write(path, yaml_text({HEADER: VERSION, **to_plain(self)}), MARK)

    @classmethod
    @reported
    def load(cls, path: str | Path) -> WristSensor:
        """Read the file of a sensor; raises UsageError naming the file and what is wrong in it."""
        content = load_yaml(read_text(path), str(path), UsageError)
        if not isinstance(content, Mapping) or content.get(HEADER) != VERSION:
            raise UsageError(f'{path}: not the file of a wrist sensor ({HEADER}: {VERSION}): '
                             'write one with robot-dynid payload --wrench TOPIC --out FILE')
        try:
            return from_plain(cls, {key: content[key] for key in content if key != HEADER})
        except (ValueError, UsageError) as error:
            raise UsageError(f'{path}: {error}: identify the sensor again') from None


@dataclass(frozen=True, eq=False)
class WristCompensation:
    """Compensation of a ``sensor``: takes the bias and the wrench of the tool off its readings.

    Raises ModelError for another robot than the sensor was identified on.
    """

    robot: RobotModel
    sensor: WristSensor

    def __post_init__(self) -> None:
        if self.sensor.digest != self.robot.hash():
            raise ModelError(f'the wrist sensor was identified on {self.sensor.robot}, whose '
                             f'geometry is not that of {self.robot.name}: identify it with this '
                             'robot')

    @cached_property
    def extended(self) -> RobotModel:
        """The robot with the joints of the sensor, which carry the tool."""
        return with_sensor(self.robot, self.sensor.link, self.sensor.parameters)

    def __call__(self, reading: FloatArray, q: ArrayLike, qd: ArrayLike | None = None,
                 qdd: ArrayLike | None = None) -> FloatArray:
        """Return the wrench (N, 6) on the tool for readings (N, 6) in a motion (N, n).

        Force [N] and torque [N m] about the origin of the link, in its axes. Without ``qd`` and
        ``qdd`` the weight of the tool is compensated, with them its inertia, too.
        """
        still = np.zeros(np.shape(q))
        motion = self.robot.motion(*(contiguous(still if one is None else one)
                                     for one in (q, qd, qdd)))
        tool = rigid_body.inverse_dynamics(self.extended, *map(with_rest, motion))[:, -SIX:]
        return np.asarray(self.sensor.without_mounting(reading) + tool)
