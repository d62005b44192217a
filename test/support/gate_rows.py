"""Faults of recordings and descriptions on arms of the strange plant, each a row of one table.

A row makes a case of a take: what a user would give to the package. Each fault is applied to the
recording, and alike to the motion and effort in truth, for the judgement whether it can be told.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast
from xml.etree import ElementTree as ET

import numpy as np
import pinocchio as pin
from spoiled_recordings import DEGREES, offset, swapped, time_in, times, together
from strange_plant import (
    ARMS,
    ROOT,
    TRAINING,
    Arm,
    ArmFile,
    Motion,
    Plant,
    available,
    inverse_dynamics,
    judging,
    load_arm,
    urdf_of,
)

from robot_dynid import load_robot
from robot_dynid.errors import DynIdError
from robot_dynid.plausibility.finding import Severity
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog

T = TypeVar('T')
Spoil = Callable[[RobotModel, RawLog], tuple[RobotModel, RawLog]]
#: what arms may carry [kg], as their makers say
LIFTS = {'ur3': 3.0, 'ur5': 5.0, 'ur10': 10.0, 'ur10e': 12.5, 'jaco': 2.1, 'iiwa': 14.0,
         'gen3': 4.0, 'panda': 3.0, 'franka': 3.0, 'tx40': 1.7, 'talos': 6.0, 'tiago': 3.0,
         'xarm6': 5.0, 'xarm7': 3.5, 'z1': 2.0, 'baxter': 2.2, 'puma': 2.5}
#: radius [m] of a payload, the way [m] of its centre from the flange outwards
TOOL, TOOL_LENGTH = 0.06, 0.08
#: joints that turn without end in the arm that stands for a Gen3, and their stated limits [rad]
ENDLESS, TURN = (1, 3, 5, 7), 6.283185
#: ratios of gears, and what currents are multiplied by [N m/A], are drawn between these
RATIOS, GAINS = (50.0, 161.0), (5.0, 15.0)
LATE_VELOCITY, LATE_EFFORT = 0.03, 0.05
#: gas spring at joint 2: distance [m] of its anchors from the axis, rise of its force over its
#: way, share of the weight that it takes
ANCHORS, RISE, SUPPORT = (0.35, 0.12), 0.3, 0.6
#: seed of the motion that is held out, and when it begins [s]
HELD_OUT, LATER = 905, 200.0
G = 9.81
HALF = np.sqrt(0.5)
#: gravity in the frame of the base, in units of its size
GRAVITIES = {
    'wall x': (1.0, 0.0, 0.0), 'wall y': (0.0, -1.0, 0.0), 'ceiling': (0.0, 0.0, 1.0),
    'tilted 30 degrees': (0.5, 0.0, -np.cos(np.pi / 6)),
    'tilted 45 degrees': (-0.5, 0.5, -HALF)}


@dataclass(frozen=True, eq=False)
class Sample:
    """A recording, and the same (without noise, lag and steps of the sensors) in truth."""

    log: RawLog
    truth: RawLog


@dataclass(frozen=True, eq=False)
class Case:
    """What a user gives: a robot and a recording, and what is wrong with them.

    ``joints`` are those that a finding should name, empty: all of them or none in particular;
    ``stated`` is the description that the user has, for Pinocchio; ``right`` are the robot and
    the recording without the fault, where a remedy may lead there. ``error`` is what the
    description was refused with.
    """

    robot: RobotModel
    sample: Sample
    stated: Any
    joints: tuple[str, ...] = ()
    note: str = ''
    right: tuple[RobotModel, RawLog] | None = None
    error: str = ''


@cache
def gate_arm(name: str) -> Arm:
    """Return an arm; the wrist of the TX40 is coupled, joints of a Gen3 turn without end."""
    if name == 'tx40':
        return replace(load_arm(name), robot=load_robot(name))
    if name != 'gen3':
        return load_arm(name)
    tree = ET.parse(ROOT / 'robot_dynid' / 'urdf' / 'seven_axis.urdf')
    joints = [joint for joint in tree.iter('joint') if joint.get('type') == 'revolute']
    for number in ENDLESS:
        joints[number - 1].set('type', 'continuous')
        limit = joints[number - 1].find('limit')
        assert limit is not None
        for side in ('lower', 'upper'):
            del limit.attrib[side]
    path = Path(tempfile.mkdtemp()) / 'gen3.urdf'
    tree.write(path)
    ARMS['gen3'] = ArmFile(str(path))
    arm = load_arm('gen3')
    lower, upper = arm.robot.limits.lower.copy(), arm.robot.limits.upper.copy()
    for number in ENDLESS:
        lower[number - 1], upper[number - 1] = -TURN, TURN
    return replace(arm, robot=replace(arm.robot, limits=replace(
        arm.robot.limits, lower=lower, upper=upper)))


class GatePlant(Plant):
    """A plant whose links may be exact, with coupled motors, payload, counterbalance, mounting."""

    def __init__(self, arm: Arm, seed: int, exact: bool) -> None:
        super().__init__(arm, seed)
        if exact:
            for i in range(1, self.model.njoints):
                self.model.inertias[i] = arm.nominal.inertias[i]
        self.spring = False

    def effort(
        self, time: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
    ) -> FloatArray:
        """Return the effort (T, n) [N m] of a motion that starts at ``time[0]`` [s] of the day."""
        coupling = self.arm.robot.drive.coupling
        if coupling is None:
            effort = super().effort(time, q, v, a)
        else:
            motor = tuple(one @ coupling.T for one in (q, v, a))
            friction = super().effort(time, *motor) - inverse_dynamics(self.model, *motor)
            effort = inverse_dynamics(self.model, q, v, a) + friction @ coupling
        if self.spring:
            effort[:, 1] -= self._support(q[:, 1])
        return effort

    def carry(self, mass: float) -> None:
        """Fix a payload [kg] to the flange."""
        robot, last = self.arm.robot, self.model.njoints - 1
        out = robot.axes[robot.longest_chain[-1]]
        centre = robot.tip + TOOL_LENGTH * out + np.array([0.02, 0.01, 0.0])
        inertia = 0.4 * mass * TOOL**2 * np.eye(3)
        self.model.inertias[last] += pin.Inertia(mass, centre, inertia)

    def _support(self, q: FloatArray) -> FloatArray:
        """Return the torque (T,) [N m] of a gas spring between links 1 and 2."""
        draw = np.random.default_rng(4)
        poses = self.arm.middle + draw.uniform(-1.0, 1.0, (300, self.arm.n)) * self.arm.half
        weight = self.weight(poses)[:, 1]
        waves = np.column_stack([np.sin(poses[:, 1]), np.cos(poses[:, 1]), np.ones(len(poses))])
        (sine, cosine, _), *_ = np.linalg.lstsq(waves, weight, rcond=None)
        angle, (far, near) = q + np.arctan2(cosine, sine), ANCHORS
        length = np.sqrt(far**2 + near**2 + 2.0 * far * near * np.cos(angle))
        force = 1.0 + RISE * (1.0 - length / (far + near))
        return np.asarray(SUPPORT * np.hypot(sine, cosine) * force * far * np.sin(angle) / length)


@dataclass(frozen=True)
class Take:
    """An arm that makes a motion, or, ``held_out``, another; the truth behind all its rows."""

    name: str
    motion: str
    exact: bool
    seed: int
    held_out: bool = False

    @cached_property
    def arm(self) -> Arm:
        """The arm as it is described."""
        return gate_arm(self.name)

    @property
    def version(self) -> str:
        """Whether the links are as described."""
        return 'exact' if self.exact else 'off'

    def plant(self) -> GatePlant:
        """Return the arm as it is."""
        return GatePlant(self.arm, self.seed, self.exact)

    def draw(self, row: str) -> np.random.Generator:
        """Return what a row is drawn with, the same for both motions of ``held_out``."""
        text = f'{self.name} {self.motion} {self.exact} {row}'
        return np.random.default_rng([self.seed, zlib.crc32(text.encode())])

    def turning(self) -> list[int]:
        """Return the joints that turn without end."""
        reach = self.arm.robot.limits.upper - self.arm.robot.limits.lower
        types = [joint.nq == 2 for joint in self.arm.nominal.joints[1:]]
        return [j for j in range(self.arm.n) if types[j] and not reach[j] < 2.0 * np.pi]

    def sample(self, change: str = '', value: Any = None) -> Sample:
        """Return the recording of the plant, changed in its physics: once made, it is cached."""
        return _sample(self, change, value)

    def _motion(self, change: str, joints: list[int]) -> Motion:
        arm = self.arm
        if change == 'about pi':
            middle = arm.middle.copy()
            middle[joints] += np.pi
            arm = replace(arm, middle=middle)
        if self.held_out:
            motion = judging(arm, self.seed)[0]
        else:
            motion = TRAINING[self.motion](arm, np.random.default_rng((self.seed, 11)))
        return drifting(motion, joints[0]) if change == 'one wrap' else motion

    def record(self, change: str, value: Any) -> Sample:
        """Make the recording."""
        plant = self.plant()
        if change == 'gravity':
            plant.model.gravity.linear = G * np.array(value)
        if change == 'tool':
            plant.carry(value)
        plant.spring = change == 'spring'
        motion = self._motion(change, [value] if change == 'one wrap' else self.turning())
        recorded = plant.record(motion, HELD_OUT if self.held_out else self.seed,
                                LATER if self.held_out else 0.0)
        log, effort = recorded.log, recorded.effort
        assert log.effort is not None
        q, v, _ = motion.states(log.time)
        if change == 'without gravity':
            weight = plant.weight(recorded.states[0])
            log, effort = replace(log, effort=log.effort - weight), effort - weight
        return Sample(log, replace(log, position=q, velocity=v, effort=effort))


@lru_cache(maxsize=8)
def _sample(take: Take, change: str, value: Any) -> Sample:
    return cached(repr((take, change, value)), lambda: take.record(change, value))


def drifting(motion: Motion, joint: int) -> Motion:
    """Return a motion in which a joint goes once, slowly, through pi."""
    def states(time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        q, v, a = (one.copy() for one in motion.states(time))
        s, rate = np.clip(time / motion.duration, 0.0, 1.0), 1.0 / motion.duration
        q[:, joint] = np.pi - 0.7 + 1.2 * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        v[:, joint] = 1.2 * rate * 30.0 * s**2 * (1.0 - s)**2
        a[:, joint] = 1.2 * rate**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
        return q, v, a

    return Motion(motion.duration, states)


def cached(text: str, make: Callable[[], T]) -> T:
    """Return what was made once of what the text says."""
    path = cache_folder() / f'{hashlib.sha256(text.encode()).hexdigest()[:20]}.pickle'
    if path.is_file():
        return cast(T, pickle.loads(path.read_bytes()))
    value = make()
    partial = path.with_suffix(f'.{os.getpid()}')
    partial.write_bytes(pickle.dumps(value))
    partial.replace(path)
    return value


@cache
def cache_folder() -> Path:
    """Return where recordings and judgements are, for these sources."""
    digest, folder = hashlib.sha256(), Path(__file__).parent
    for path in sorted([*folder.glob('strange_*.py'), Path(__file__), folder / 'gate_oracle.py']):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f'gate_table_{os.getuid()}_{digest.hexdigest()[:12]}'
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


Make = Callable[[Take, np.random.Generator], Iterator[Case]]


# -------------------------------------------------------------------------------- descriptions


def rewritten(take: Take, what: str, **factors: float) -> Path:
    """Return the URDF of an arm with its lengths, masses and moments multiplied by factors."""
    source = urdf_of(take.name)
    assert source
    tree = ET.parse(source)
    for element in tree.iter('origin'):
        if 'xyz' in element.attrib:
            place = np.array(element.attrib['xyz'].split(), dtype=float)
            element.set('xyz', ' '.join(map(repr, (factors.get('length', 1.0) * place).tolist())))
    for tag, names, factor in (('mass', ('value',), factors.get('mass', 1.0)), (
            'inertia', ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), factors.get('inertia', 1.0))):
        for element in tree.iter(tag):
            for name in names:
                if name in element.attrib:
                    element.set(name, repr(factor * float(element.attrib[name])))
    for link in tree.iter('link'):
        for inertial in link.findall('inertial') if 'none' in factors else ():
            link.remove(inertial)
    path = cache_folder() / f'{take.name} {what}.urdf'
    tree.write(path)
    return path


def described(take: Take, path: Path) -> RobotModel:
    """Return the robot of the take as another URDF describes it; raises DynIdError."""
    joints = ', '.join(take.arm.robot.joints)
    file = path.with_suffix('.yaml')
    file.write_text(f'urdf: {path}\njoints: [{joints}]\neffort_kind: torque\n', 'utf-8')
    robot = load_robot(file)
    return replace(robot, drive=take.arm.robot.drive, limits=take.arm.robot.limits)


def other_description(what: str, geometry: bool, **factors: float) -> Make:
    """Return what describes the robot by a URDF whose numbers are multiplied by factors."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        path, sample = rewritten(take, what, **factors), take.sample()
        try:
            robot = described(take, path)
        except DynIdError as error:
            yield Case(take.arm.robot, sample, take.arm.nominal, error=str(error))
        else:
            stated = _stated(take, path) if geometry else take.arm.nominal
            yield Case(robot, sample, stated, right=(take.arm.robot, sample.log))
    return make


def _stated(take: Take, path: Path) -> Any:
    model = pin.buildModelFromUrdf(str(path))
    locked = [i for i in range(1, model.njoints)
              if model.names[i] not in take.arm.robot.joints]
    return pin.buildReducedModel(model, locked, pin.neutral(model))


def file_of(name: str) -> Make:
    """Return what gives the URDF of another robot of the same maker."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        source = urdf_of(take.name)
        if source is None or not re.fullmatch(r'ur\d+_robot\.urdf', source.name):
            return
        path = source.with_name(f'{name}_robot.urdf')
        if path != source and path.is_file():
            copy = cache_folder() / f'{take.name} as {name}.urdf'
            copy.write_bytes(path.read_bytes())
            sample = take.sample()
            yield Case(described(take, copy), sample, _stated(take, copy),
                       right=(take.arm.robot, sample.log))
    return make


# -------------------------------------------------------------------------------- recordings


def case_of(take: Take, fault: Spoil, joints: tuple[int, ...] = (), note: str = '') -> Case:
    """Return the case of a fault of the recording."""
    sample, robot = take.sample(), take.arm.robot
    faulty, log = fault(robot, sample.log)
    return Case(faulty, Sample(log, fault(robot, sample.truth)[1]), take.arm.nominal,
                tuple(robot.joints[j] for j in joints), note, (robot, sample.log))


def always(fault: Spoil) -> Make:
    """Return what makes a case of a fault that has nothing to be drawn."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        yield case_of(take, fault)
    return make


def each_joint(fault: Callable[[int], Spoil]) -> Make:
    """Return what makes a case of a fault of each joint in turn."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        for joint in range(take.arm.n):
            yield case_of(take, fault(joint), (joint,))
    return make


def a_pair(fault: Callable[[int, int], Spoil], last: int | None) -> Make:
    """Return what makes a case of a fault of two joints, drawn among the ``last`` ones."""
    def make(take: Take, draw: np.random.Generator) -> Iterator[Case]:
        first = max(0, take.arm.n - last) if last else 0
        one, two = sorted((first + draw.permutation(take.arm.n - first)[:2]).tolist())
        yield case_of(take, fault(one, two), (one, two))
    return make


def factors(
    channels: tuple[str, ...], drawn: Callable[[np.random.Generator, int], FloatArray]
) -> Make:
    """Return what multiplies channels by a factor per joint."""
    def make(take: Take, draw: np.random.Generator) -> Iterator[Case]:
        factor = drawn(draw, take.arm.n)

        def fault(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
            return robot, replace(log, **{name: getattr(log, name) * factor for name in channels})
        yield case_of(take, fault, (), ' '.join(f'{one:.3g}' for one in factor))
    return make


def without_velocity(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
    """Leave out the velocity."""
    return robot, replace(log, velocity=None)


def late(channel: str, seconds: float) -> Spoil:
    """Return what makes a channel late."""
    def spoil(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        values = getattr(log, channel)
        return robot, replace(log, **{channel: np.column_stack([
            np.interp(log.time - seconds, log.time, one) for one in values.T])})
    return spoil


def stated_without_gravity(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
    """State that the driver removes gravity."""
    return replace(robot, drive=replace(robot.drive, kind='gravity_compensated_torque')), log


def mounted(name: str) -> Make:
    """Return what mounts an arm otherwise than its description says."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        sample = take.sample('gravity', GRAVITIES[name])
        right = take.arm.robot.with_gravity(G * np.array(GRAVITIES[name]))
        yield Case(take.arm.robot, sample, take.arm.nominal, right=(right, sample.log))
    return make


def carrying(share: float) -> Make:
    """Return what adds a payload of a share of what an arm may carry."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        if take.name in LIFTS:
            mass = share * LIFTS[take.name]
            yield Case(take.arm.robot, take.sample('tool', mass), take.arm.nominal,
                       note=f'{mass:.2g} kg')
    return make


def gravity_removed(take: Take, _: np.random.Generator) -> Iterator[Case]:
    """Give efforts without gravity as torque."""
    sample, robot = take.sample('without gravity'), take.arm.robot
    right = stated_without_gravity(robot, sample.log)
    yield Case(robot, sample, take.arm.nominal, right=right)


def changed(change: str, joint: int | None = None) -> Make:
    """Return what changes the physics."""
    def make(take: Take, _: np.random.Generator) -> Iterator[Case]:
        joints = () if joint is None else (take.arm.robot.joints[joint],)
        yield Case(take.arm.robot, take.sample(change), take.arm.nominal, joints)
    return make


def wrapped(change: str, lowest: float) -> Make:
    """Return what reports joints that turn without end within a turn from ``lowest`` [rad]."""
    def make(take: Take, draw: np.random.Generator) -> Iterator[Case]:
        turning = take.turning()
        if not turning:
            return
        one = turning[int(draw.integers(len(turning)))] if change == 'one wrap' else None
        sample = take.sample(change, one)
        position = sample.log.position.copy()
        for j in turning if one is None else [one]:
            position[:, j] = (position[:, j] - lowest) % (2.0 * np.pi) + lowest
        jumps = (np.abs(np.diff(position, axis=0)) > np.pi).sum(axis=0)
        if jumps.any():
            yield Case(
                take.arm.robot, replace(sample, log=replace(sample.log, position=position)),
                take.arm.nominal, tuple(take.arm.robot.joints[j] for j in np.flatnonzero(jumps)),
                f'{jumps.sum()} jumps', (take.arm.robot, sample.log))
    return make


# -------------------------------------------------------------------------------- rows


@dataclass(frozen=True)
class Row:
    """A fault: what makes cases of it, its cause, and what is expected.

    ``by`` says what it can be told by: 'torque' or 'motion' where these tell, 'always'.
    ``severities`` are those that fit; ``taken_up``: identification takes it up, so nothing need be
    said.
    """

    make: Make = field(repr=False)
    cause: str
    by: str = 'torque'
    severities: tuple[Severity, ...] = (Severity.REFUSE,)
    taken_up: bool = False


WARN, EITHER = (Severity.WARN,), (Severity.REFUSE, Severity.WARN)
BOTH = ('position', 'velocity')


def _rows() -> dict[str, Row]:
    rows = {'healthy': Row(changed(''), 'nothing')}
    for name in GRAVITIES:
        rows[f'mounted: {name}'] = Row(mounted(name), 'mounting')
    rows['position x 2, velocity too'] = Row(each_joint(lambda j: together(
        *(times(channel, 2.0, j) for channel in BOTH))), 'position')
    rows['position x 2 only'] = Row(each_joint(lambda j: times('position', 2.0, j)), 'position',
                                    'motion')
    for angle in (5.0, 30.0, 90.0, 180.0):
        rows[f'offset {angle:g} degrees'] = Row(
            each_joint(lambda j, angle=angle: offset(j, angle / DEGREES)), 'offset',
            severities=EITHER if angle == 5.0 else (Severity.REFUSE,))
    rows['wrist joints swapped'] = Row(a_pair(
        lambda one, two: swapped(one, two, *BOTH, 'effort'), 3), 'order')
    rows['efforts swapped'] = Row(a_pair(
        lambda one, two: swapped(one, two, 'effort'), None), 'effort_order')
    rows |= {f'URDF of a {name.upper()}': Row(file_of(name), 'description')
             for name in ('ur3', 'ur5', 'ur10')}
    rows |= {f'URDF x {size:g}': Row(other_description(
        f'x {size:g}', True, length=size, mass=size, inertia=size**3), 'description',
        severities=EITHER) for size in (0.6, 1.6)}
    rows['sign of a position, velocity too'] = Row(each_joint(lambda j: together(
        *(times(channel, -1.0, j) for channel in BOTH))), 'position_sign')
    rows['sign of a position only'] = Row(
        each_joint(lambda j: times('position', -1.0, j)), 'position_sign', 'motion')
    rows['sign of an effort'] = Row(each_joint(lambda j: times('effort', -1.0, j)), 'effort_sign')
    rows['sign of all efforts'] = Row(always(times('effort', -1.0)), 'effort_sign')
    for factor, name in ((2.0, 'x 2'), (0.5, 'x 0.5'), (0.01, '/ 100'), (1e3, 'x 1000')):
        rows[f'an effort {name}'] = Row(each_joint(
            lambda j, factor=factor: times('effort', factor, j)), 'effort')
    rows['all efforts x 2'] = Row(always(times('effort', 2.0)), 'effort', severities=EITHER,
                                  taken_up=True)
    rows['all efforts x 10'] = Row(always(times('effort', 10.0)), 'effort', severities=EITHER)
    rows['all efforts x 1000'] = Row(always(times('effort', 1e3)), 'effort')
    rows['currents'] = Row(factors(('effort',), lambda draw, n: 1.0 / draw.uniform(*GAINS, n)),
                           'effort', severities=EITHER)
    rows['degrees'] = Row(always(together(*(times(one, DEGREES) for one in BOTH))), 'position',
                          'always')
    rows['motor side'] = Row(factors(BOTH, lambda draw, n: draw.integers(*RATIOS, n).astype(
        float)), 'position', 'always')
    for factor in (0.5, 0.8, 0.93, 1.07, 1.3, 2.0):
        severities = WARN if abs(factor - 1.0) < 0.1 else (Severity.REFUSE,)
        rows[f'clock x {factor:g}'] = Row(always(time_in(1.0 / factor)), 'clock', 'motion',
                                          severities)
        rows[f'clock x {factor:g}, no velocity'] = Row(always(together(
            time_in(1.0 / factor), without_velocity)), 'clock', 'torque', EITHER)
    rows['time in ms'] = Row(always(time_in(1e-3)), 'clock', 'always')
    rows['gravity removed'] = Row(gravity_removed, 'gravity')
    rows['gravity not removed'] = Row(always(stated_without_gravity), 'gravity')
    for share in (0.1, 0.25, 0.5):
        rows[f'tool of {share:g} of the load'] = Row(carrying(share), 'tool', 'torque', WARN, True)
    rows['counterbalance'] = Row(changed('spring', 1), 'spring', 'torque', WARN)
    rows['wrapped at pi'] = Row(wrapped('about pi', -np.pi), 'wrap', 'always', EITHER)
    rows['wrapped at 360'] = Row(wrapped('', 0.0), 'wrap', 'always', EITHER)
    rows['one wrap'] = Row(wrapped('one wrap', -np.pi), 'wrap', 'always', EITHER)
    rows['late velocities'] = Row(always(late('velocity', LATE_VELOCITY)), 'late_velocity',
                                  'motion', WARN)
    rows['late efforts'] = Row(always(late('effort', LATE_EFFORT)), 'late_effort', 'torque', WARN,
                               True)
    rows['inertias in g mm^2'] = Row(other_description('g mm2', False, inertia=1e9),
                                     'description', 'always', EITHER)
    rows['masses in g'] = Row(other_description('g', False, mass=1e3), 'description', 'always',
                              EITHER)
    rows['no inertials'] = Row(other_description('none', False, none=1.0), 'description',
                               'always', WARN, True)
    return rows


ROWS = _rows()


def arm_names() -> tuple[str, ...]:
    """Return the names of all arms whose description is installed."""
    return *available(), 'gen3'
