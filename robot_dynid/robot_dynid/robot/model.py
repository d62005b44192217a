"""Robot model: kinematic tree with nominal inertials, limits and drives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.columns import ColumnMapping
from robot_dynid.robot.inertia import skew
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.types import FloatArray, Portable, frozen

if TYPE_CHECKING:
    from robot_dynid.robot.linkage import Linkage

REVOLUTE, PRISMATIC = 0, 1
POSITION_ERROR = 'position_error'
EFFORT_KINDS = ('torque', 'current', 'gravity_compensated_torque', POSITION_ERROR)
#: kinds of effort that drive gains convert to torque, by their units
GAIN_UNITS = {'current': 'N m/A', POSITION_ERROR: 'N m/rad'}
#: where the effort is measured: at the motors, or by torque sensors behind the gears
MOTOR, LINK = 'motor', 'link'
#: default relative standard deviation of drive gains: those of one arm, calibrated by a weighed
#: payload, differed this much from the values of its controller
GAINS_STD = 0.02
STANDARD_GRAVITY = (0.0, 0.0, -9.81)
#: sizes of collision shapes by kind: URDF attributes with their number of values
SHAPES = {'box': {'size': 3}, 'cylinder': {'radius': 1, 'length': 1}, 'sphere': {'radius': 1}}


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits per joint, each (n,), NaN where unknown: rad or m, their rates, and N m or N."""

    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray

    @classmethod
    def unknown(cls, n: int) -> Limits:
        """Return undefined limits."""
        return cls(*(frozen(np.full(n, np.nan)) for _ in range(5)))


@dataclass(frozen=True, eq=False)
class Drive:
    """Relation between recorded effort and joint torque.

    ``kind`` is one of EFFORT_KINDS, empty if not stated; ``gains`` (n,) in GAIN_UNITS on the joint
    side, required for these kinds, with ``gains_std`` (n,) relative. For position servos
    ``error_limit`` (n,) [rad, m] is the error at which their output reaches its limit, and
    ``derivative_time`` (n,) [s] their gain of velocity over that of position, None for zero;
    ``gear_ratios`` (n,) or None; ``coupling`` (n, n) or None maps joint to motor motion (motor
    motion = C q, joint effort = C^T motor effort). ``elastic`` are the joints with elastic gears,
    in order, ``torque_sensors`` those of them with a torque sensor behind the gear.
    ``rotor_axes`` (n, 3) are the axes of spinning rotors in the frame of the link before each
    joint, zero if not given; for a motor that turns with several joints in the frame of the link
    before the first of them. ``sensor`` MOTOR: the effort is that of the motors and includes
    rotors and friction; LINK: torque sensors behind the gears measure it without both.
    """

    kind: str = ''
    gains: FloatArray | None = None
    gear_ratios: FloatArray | None = None
    coupling: FloatArray | None = None
    elastic: tuple[int, ...] = ()
    torque_sensors: tuple[int, ...] = ()
    rotor_axes: FloatArray | None = None
    gains_std: FloatArray | None = None
    sensor: str = MOTOR
    error_limit: FloatArray | None = None
    derivative_time: FloatArray | None = None

    @property
    def shows_motors(self) -> bool:
        """True if the effort includes rotors and the friction of motors and gears."""
        return self.sensor == MOTOR

    @property
    def gain_uncertainty(self) -> FloatArray | float:
        """Relative standard deviation (n,) of the conversion from recorded effort to torque.

        GAINS_STD by default where gains convert it, zero for torques.
        """
        if self.gains_std is not None:
            return self.gains_std
        return GAINS_STD if self.kind in GAIN_UNITS else 0.0

    def __post_init__(self) -> None:
        if self.kind and self.kind not in EFFORT_KINDS:
            raise UsageError(f'effort kind {self.kind!r}: choose one of {", ".join(EFFORT_KINDS)}')
        if self.kind in GAIN_UNITS and self.gains is None:
            raise RobotError(
                f'effort kind {self.kind} needs drive_gains [{GAIN_UNITS[self.kind]}, joint side] '
                'for every joint in the robot YAML'
            )
        self._check_servos()
        if not set(self.torque_sensors) <= set(self.elastic):
            raise RobotError('joint_torque_sensors must be on elastic joints; record the torque '
                             'of a rigid joint as effort')
        self._check_coupling()
        self._check_sensor()
        if self.rotor_axes is not None and self.gear_ratios is None:
            raise RobotError('rotor_axes need gear_ratios, which give the speed of the rotors')
        if self.rotor_axes is not None and self.gear_ratios is not None and np.any(
                self.rotor_axes.any(axis=1) & (self.gear_ratios == 0.0)):
            raise RobotError('rotor_axes: a gear ratio is zero; give turns of the rotor per turn '
                             'of the joint')

    @property
    def coupled(self) -> tuple[int, ...]:
        """Motors that turn with several joints."""
        rows = () if self.coupling is None else self.coupling
        return tuple(i for i, row in enumerate(rows) if np.count_nonzero(row) > 1)

    def _check_servos(self) -> None:
        servos = self.kind == POSITION_ERROR
        if servos and self.error_limit is None:
            raise RobotError(
                f'effort kind {POSITION_ERROR} needs error_limit [rad]: the position error at '
                'which the output of a servo reaches its limit (forcerange / kp in MuJoCo)')
        if servos and (self.coupling is not None or self.elastic):
            raise RobotError(f'effort kind {POSITION_ERROR} is not supported with coupling or '
                             'elastic_joints: remove them')

    def _check_sensor(self) -> None:
        if self.sensor not in (MOTOR, LINK):
            raise UsageError(f'sensor {self.sensor!r}: choose {MOTOR} (effort of the motors) or '
                             f'{LINK} (torque sensors behind the gears)')
        if self.shows_motors:
            return
        wrong = {
            f'effort_kind: {self.kind} is that of motors': self.kind in GAIN_UNITS,
            'coupling turns joint effort into that of motors': self.coupling is not None,
            'elastic_joints need the effort of motors (plus joint_torque_sensors)':
                bool(self.elastic)}
        for what, there in wrong.items():
            if there:
                raise RobotError(f'sensor: {LINK} is for efforts of torque sensors behind the '
                                 f'gears, but {what}; remove one of them')

    def _check_coupling(self) -> None:
        if self.coupling is None:
            return
        shared = self.coupling - np.diag(np.diag(self.coupling)) != 0.0
        if any(shared[j].any() or shared[:, j].any() for j in self.elastic):
            raise RobotError('elastic_joints: motors that turn with several joints are not '
                             'supported; remove such joints')


@dataclass(frozen=True, eq=False)
class Link:
    """A link of the description that is rigidly part of a moving body.

    ``body`` is the index of the joint that moves it; ``placement`` (4, 4) its frame in that
    joint's link frame; ``parameters`` (10,) in its own frame; ``has_inertial``: the description
    states them.
    """

    name: str
    body: int
    placement: FloatArray
    parameters: FloatArray
    has_inertial: bool


@dataclass(frozen=True)
class LinkShape:
    """A collision shape of a ``link`` that is described by screws.

    ``kind`` box, cylinder or sphere, with the ``sizes`` [m] that SHAPES names, about its centre;
    z is the axis of a cylinder. ``xyz`` [m] and ``rpy`` [rad] place it in the frame of the link.
    """

    link: str
    kind: str
    sizes: tuple[float, ...]
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]


@dataclass(frozen=True)
class FieldPaths:
    """Fields of a message by path, concatenated, and one factor to SI, or one for each."""

    paths: tuple[str, ...]
    factors: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class TopicFields:
    """A topic of a recording, with the fields of its messages by channel, see robot.topics."""

    topic: str
    fields: tuple[tuple[str, FieldPaths], ...] = ()


@dataclass(frozen=True, eq=False)
class RobotModel(Portable):
    """A fixed-base tree of n joints, parents before children.

    ``types`` (n,) REVOLUTE or PRISMATIC; ``parents`` (n,) index of the parent joint, -1 for the
    base; ``rotations`` (n, 3, 3) and ``translations`` (n, 3) m place each joint frame in its
    parent's link frame; ``axes`` (n, 3) unit vectors in the joint frame; ``bodies`` the link moved
    by each joint; ``nominal`` (n, 10) standard parameters in that link's frame, including fixed
    children; ``gravity`` (3,) m/s^2 in the base frame. ``wrenches`` are the topics of measured
    external wrenches with their links; ``topics`` unusual topics of its recordings by role;
    ``shapes`` those of links described by screws; ``xacro_arguments`` expand a xacro file at
    ``source``; ``columns`` assigns the columns of tables, None: by preset. With a ``linkage``
    joints are coupled: link data is then that of ``tree``. ``wrench_sensor`` is the topic, or the
    name in columns, of the force-torque sensor whose readings are read.
    """

    name: str
    joints: tuple[str, ...]
    types: NDArray[np.int8]
    parents: NDArray[np.int64]
    rotations: FloatArray
    translations: FloatArray
    axes: FloatArray
    bodies: tuple[str, ...]
    nominal: FloatArray
    limits: Limits
    gravity: FloatArray = field(default_factory=lambda: frozen(STANDARD_GRAVITY))
    drive: Drive = field(default_factory=Drive)
    base_link: str = 'base_link'
    links: tuple[Link, ...] = ()
    source: str = ''
    warnings: tuple[str, ...] = ()
    wrenches: tuple[tuple[str, str], ...] = ()
    topics: tuple[tuple[str, TopicFields], ...] = ()
    shapes: tuple[LinkShape, ...] = ()
    surroundings: Surroundings = field(default_factory=Surroundings)
    xacro_arguments: tuple[tuple[str, str], ...] = ()
    columns: ColumnMapping | None = None
    linkage: Linkage | None = None
    wrench_sensor: str = ''

    @cached_property
    def tree(self) -> RobotModel:
        """Robot of all joints that move its links, in the same gravity."""
        return self if self.linkage is None else replace(
            self.linkage.tree, gravity=self.gravity, name=self.name)

    def motion(self, q: FloatArray, *rates: FloatArray) -> tuple[FloatArray, ...]:
        """Return position and ``rates`` (N, m) of the joints of the tree from those (N, n)."""
        return (q, *rates) if self.linkage is None else self.linkage.motion(q, *rates)

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Matrix (n, m): entry (i, j) is True if joint i moves link j of the tree."""
        if self.linkage is None:
            return self.carried
        return np.asarray(np.abs(self.linkage.matrix).T @ self.tree.carried > 0.0)

    def projected(self, efforts: FloatArray) -> FloatArray:
        """Return efforts (..., n) of the joints from those (..., m) of the joints of the tree."""
        return efforts if self.linkage is None else np.asarray(efforts @ self.linkage.matrix)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def coordinates(self) -> int:
        """Number of positions: joints, then motors of elastic joints."""
        return self.n + len(self.drive.elastic)

    @property
    def row_joints(self) -> tuple[int, ...]:
        """Joint of each equation.

        One equation per joint, the balance of its total effort; then one per elastic joint, that
        of its motor; then one per torque sensor, that of the gear.
        """
        return (*range(self.n), *self.drive.elastic, *self.drive.torque_sensors)

    @property
    def rows(self) -> int:
        """Number of equations."""
        return len(self.row_joints)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the equations: the joints, ``motor of ...``, ``gear of ...``."""
        return (*self.joints, *(f'motor of {self.joints[j]}' for j in self.drive.elastic),
                *(f'gear of {self.joints[j]}' for j in self.drive.torque_sensors))

    @property
    def torque_factors(self) -> FloatArray:
        """Factors (n,) from recorded effort to joint torque: gains in GAIN_UNITS, or 1."""
        gains = self.drive.gains if self.drive.kind in GAIN_UNITS else None
        return np.ones(self.n) if gains is None else np.asarray(gains, dtype=np.float64)

    def motor_torque(self, effort: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] of motors, on the joint side, from that of joints (N, n).

        With coupled motors, joint effort = C^T motor effort.
        """
        if self.drive.coupling is None:
            return effort
        return np.asarray(np.linalg.solve(np.asarray(self.drive.coupling).T, effort.T).T)

    @cached_property
    def rigid(self) -> RobotModel:
        """Robot with rigid gears."""
        if not self.drive.elastic:
            return self
        return replace(self, drive=replace(self.drive, elastic=(), torque_sensors=()))

    def index(self, joint: str) -> int:
        """Return the index of ``joint``; raises UsageError with the joint names."""
        try:
            return self.joints.index(joint)
        except ValueError:
            joints = ', '.join(self.joints)
            raise UsageError(f'{self.name} has no joint {joint!r}; it has {joints}') from None

    def with_gravity(self, gravity: ArrayLike) -> RobotModel:
        """Return the robot in another gravity field (3,) m/s^2, base frame."""
        return replace(self, gravity=frozen(gravity))

    def with_nominal(self, parameters: ArrayLike) -> RobotModel:
        """Return the robot with other standard parameters (n, 10)."""
        return self.with_tree(replace(
            self.tree, nominal=frozen(np.reshape(parameters, (self.tree.n, 10)))))

    def with_tree(self, tree: RobotModel) -> RobotModel:
        """Return the robot with another tree of the same joints."""
        return tree if self.linkage is None else replace(
            self, linkage=replace(self.linkage, tree=tree))

    def hash(self) -> str:
        """Return a digest of the geometry and gravity, which determine the base parameters."""
        if self.linkage is not None:
            table = np.column_stack([self.linkage.matrix, self.linkage.offset])
            return hashlib.sha256(self.tree.hash().encode() + (
                np.round(table, 9) + 0.0).tobytes()).hexdigest()[:16]
        digest = hashlib.sha256('|'.join(self.joints).encode())
        for array in (self.types, self.parents, self.rotations, self.translations, self.axes,
                      self.gravity):
            digest.update((np.round(np.asarray(array, dtype=np.float64), 9) + 0.0).tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def carried(self) -> NDArray[np.bool_]:
        """Matrix (n, n): entry (i, j) is True if joint i carries link j."""
        carried = np.eye(self.n, dtype=bool)
        for j, parent in enumerate(self.parents):
            if parent >= 0:
                carried[:, j] |= carried[:, parent]
        return carried

    @cached_property
    def longest_chain(self) -> tuple[int, ...]:
        """Joints from the base to the end of the longest chain, in order."""
        last = int(np.argmax(self.carried.sum(axis=0)))
        return tuple(np.flatnonzero(self.carried[:, last]).tolist())

    @cached_property
    def tip(self) -> FloatArray:
        """Tip (3,) m in the frame of the last link of the longest chain.

        The origin of the farthest link fixed to it, such as a tool frame.
        """
        last = self.longest_chain[-1]
        places = [link.placement[:3, 3] for link in self.links if link.body == last]
        return frozen(max(places, key=lambda place: float(place @ place), default=np.zeros(3)))

    @cached_property
    def geometry(self) -> FloatArray:
        """Constants of the kernels (n, 39): A + B cos q + C sin q = R(q), P + D q = p(q), axes."""
        table = np.zeros((self.n, 39))
        for j, axis in enumerate(self.axes):
            rotation = self.rotations[j]
            table[j, 27:30] = self.translations[j]
            if self.types[j] == PRISMATIC:
                table[j, 0:9] = rotation.ravel()
                table[j, 30:33] = rotation @ axis
                table[j, 36:39] = axis
                continue
            along = np.outer(axis, axis)
            table[j, 0:9] = (rotation @ along).ravel()
            table[j, 9:18] = (rotation @ (np.eye(3) - along)).ravel()
            table[j, 18:27] = (rotation @ skew(axis)).ravel()
            table[j, 33:36] = axis
        return frozen(table)
