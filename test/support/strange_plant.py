"""A plant apart from every law and simulator of the package, its arms, and motions for it.

The arms are public URDFs (example-robot-data and pybullet are looked for in every folder that
Python imports from), those of the repository, and a SCARA written here. Pinocchio moves the links,
which differ from their description. Friction is of no class of the package: two memories (bristles
of different length), a Stribeck curve with an exponent that is neither 1 nor 2, a power of the
speed, directions, position, load and warm-up. Gears ripple and cables pull. Sensors have steps,
noise, lag, late filtered velocities and lost samples. A motion is a function of time [s], (T,),
that returns position, velocity and acceleration (T, n); there are those to train on, and two
others to judge on.

What identification makes of it: `python test/support/strange_scores.py --help`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from robot_descriptions import PLACES
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

from robot_dynid import load_robot
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, RawLog

ROOT = Path(__file__).resolve().parents[2]
SCARA = """<robot name="scara"><link name="base"/>{bodies}</robot>"""
#: joint, type, axis, origin [m], limits (lower, upper, velocity), mass [kg], centre [m]
SCARA_LINKS = (
    ('shoulder', 'revolute', '0 0 1', '0 0 0.4', (-2.2, 2.2, 3.0), 7.0, '0.16 0.01 0.03'),
    ('elbow', 'revolute', '0 0 1', '0.35 0 0', (-2.4, 2.4, 4.0), 4.5, '0.14 -0.01 0.05'),
    ('lift', 'prismatic', '0 0 -1', '0.3 0 0', (0.0, 0.25, 0.6), 1.6, '0.01 0 0.08'),
    ('spindle', 'revolute', '0 0 -1', '0 0 0.1', (-3.0, 3.0, 6.0), 0.6, '0.02 0.01 0.04'),
)
#: largest speed and acceleration of motions: of joints that turn [rad/s, rad/s^2] and slide [m/s,
#: m/s^2]
TURNS, SLIDES = (2.0, 6.0), (0.3, 1.0)
#: largest way from the middle [rad], where the limits allow more
REACH = 1.1


@dataclass(frozen=True)
class ArmFile:
    """A URDF and the joints of the arm in it; no ``joints``: all of them."""

    path: str
    joints: tuple[str, ...] = ()


def _numbered(pattern: str, *numbers: int) -> tuple[str, ...]:
    return tuple(pattern.format(number) for number in numbers)


ARMS = {
    'ur5': ArmFile('ur_description/urdf/ur5_robot.urdf'),
    'ur10': ArmFile('ur_description/urdf/ur10_robot.urdf'),
    'panda': ArmFile('panda_description/urdf/panda.urdf',
                     _numbered('panda_joint{}', *range(1, 8))),
    'jaco': ArmFile('kinova_description/robots/kinova.urdf'),
    'xarm7': ArmFile('xarm_description/urdf/xarm7.urdf'),
    'tiago': ArmFile('tiago_description/robots/tiago_no_hand.urdf', (
        'torso_lift_joint', *_numbered('arm_{}_joint', *range(1, 8)))),
    'talos': ArmFile('talos_data/robots/talos_left_arm.urdf',
                     _numbered('arm_left_{}_joint', *range(2, 8))),
    'z1': ArmFile('z1_description/urdf/z1.urdf', _numbered('joint{}', *range(1, 7))),
    'so101': ArmFile('so_arm_description/urdf/so101.urdf', (
        'shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll')),
    'baxter': ArmFile('baxter_description/urdf/baxter.urdf', tuple(
        f'left_{name}' for name in ('s0', 's1', 'e0', 'e1', 'w0', 'w1', 'w2'))),
    'pendulum': ArmFile('double_pendulum_description/urdf/double_pendulum_continuous.urdf'),
    'iiwa': ArmFile('kuka_iiwa/model.urdf'),
    'xarm6': ArmFile('xarm/xarm6_robot.urdf'),
    'franka': ArmFile('franka_panda/panda.urdf', _numbered('panda_joint{}', *range(1, 8))),
    'scara': ArmFile(''),
    'planar': ArmFile('urdf/planar_3r.urdf'),
    'ur10e': ArmFile('urdf/ur10e.urdf'),
    'puma': ArmFile('urdf/puma560.urdf'),
    'tx40': ArmFile('urdf/tx40.urdf'),
    'stanford': ArmFile('urdf/stanford_arm.urdf'),
}


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm as its description says it is, for robot_dynid and for Pinocchio.

    Motions stay within ``middle`` +- ``half`` (n,), ``speed`` and ``acceleration`` (n,).
    """

    name: str
    robot: RobotModel
    nominal: Any
    middle: FloatArray
    half: FloatArray
    speed: FloatArray
    acceleration: FloatArray

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.middle)

    @property
    def slides(self) -> FloatArray:
        """Whether joints (n,) slide, as 0 or 1."""
        return np.array([kind == PRISMATIC for kind in self.robot.types], dtype=float)


def urdf_of(name: str) -> Path | None:
    """Return the URDF file of an arm, None where its package is not installed."""
    if name == 'scara':
        return _scara()
    file = ARMS[name].path
    folders = [ROOT / 'robot_dynid', *(Path(folder) / place for folder in dict.fromkeys(sys.path)
                       for place in PLACES)]
    return next((folder / file for folder in folders if (folder / file).is_file()), None)


def available() -> tuple[str, ...]:
    """Return the names of all arms whose description is installed."""
    return tuple(name for name in ARMS if urdf_of(name))


@cache
def load_arm(name: str) -> Arm:
    """Return an arm whose joints alone move, all others locked at zero.

    Raises AssertionError where robot_dynid and Pinocchio read two robots from one file.
    """
    path = urdf_of(name)
    assert path, f'the description of {name} is not installed'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f'{name}.yaml'
        joints = f'joints: [{", ".join(ARMS[name].joints)}]\n' if ARMS[name].joints else ''
        file.write_text(f'urdf: {path}\n{joints}effort_kind: torque\n', 'utf-8')
        robot = load_robot(file)
    model = pin.buildModelFromUrdf(str(path))
    locked = [i for i in range(1, model.njoints) if model.names[i] not in robot.joints]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    assert tuple(model.names)[1:] == robot.joints, f'{name}: joints in another order'
    slides = np.array([kind == PRISMATIC for kind in robot.types])
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -np.pi)
    upper = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, np.pi)
    caps = np.where(slides[:, None], SLIDES, TURNS)
    limit = np.where(robot.limits.velocity > 0.0, robot.limits.velocity, np.inf)
    speed = np.fmin(caps[:, 0], 0.6 * limit)
    return Arm(name, robot, model, (lower + upper) / 2.0,
               np.minimum(0.42 * (upper - lower), REACH), speed,
               caps[:, 1] * speed / caps[:, 0])


def configuration(model: Any, q: FloatArray) -> FloatArray:
    """Return joint positions (n,) as Pinocchio wants them: unbounded joints as (cos, sin)."""
    if model.nq == model.nv:
        return q
    parts = []
    for joint, value in zip(model.joints[1:], q, strict=True):
        parts += [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
    return np.array(parts)


def inverse_dynamics(model: Any, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the effort (T, n) [N m] of states (T, n), by Pinocchio."""
    data = model.createData()
    return np.array([pin.rnea(model, data, configuration(model, one), two, three)
                     for one, two, three in zip(q, v, a, strict=True)])


def regressor(model: Any, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the columns (T, n, 10 n) of the standard parameters of links, by Pinocchio."""
    data = model.createData()
    return np.array([
        pin.computeJointTorqueRegressor(model, data, configuration(model, one), two, three).copy()
        for one, two, three in zip(q, v, a, strict=True)])


@cache
def _scara() -> Path:
    parent, bodies = 'base', ''
    for joint, kind, axis, origin, (lower, upper, speed), mass, centre in SCARA_LINKS:
        bodies += (
            f'<link name="{joint}_link"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
            f'<inertia ixx="{0.004 * mass}" iyy="{0.012 * mass}" izz="{0.011 * mass}" ixy="0" '
            f'ixz="0" iyz="0"/></inertial></link><joint name="{joint}" type="{kind}">'
            f'<parent link="{parent}"/><child link="{joint}_link"/><origin xyz="{origin}"/>'
            f'<axis xyz="{axis}"/><limit lower="{lower}" upper="{upper}" velocity="{speed}" '
            'effort="200"/></joint>')
        parent = f'{joint}_link'
    file = Path(tempfile.mkdtemp()) / 'scara.urdf'
    file.write_text(SCARA.format(bodies=bodies), 'utf-8')
    return file


States = tuple[FloatArray, FloatArray, FloatArray]
#: pause [s] before and after every motion
REST = 0.5
#: candidates of which a design takes the one that excites the links most
CANDIDATES = 12


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of ``duration`` [s], rest at both ends included."""

    duration: float
    states: Callable[[FloatArray], States]


def fourier(
    arm: Arm, generator: np.random.Generator, period: float, periods: int, harmonics: int,
    share: float = 0.8,
) -> Motion:
    """Return a Fourier series from rest to rest, up to a ``share`` of speed and way."""
    k, w = np.arange(1.0, harmonics + 1.0), 2.0 * np.pi / period

    def series(time: FloatArray, a: FloatArray, b: FloatArray) -> States:
        s, c = np.sin(np.outer(time, k * w)), np.cos(np.outer(time, k * w))
        return s @ a + c @ b, (c * k * w) @ a - (s * k * w) @ b, \
            -(s * (k * w)**2) @ a - (c * (k * w)**2) @ b

    a, b = (generator.normal(size=(harmonics, arm.n)) / k[:, None] for _ in range(2))
    a -= np.outer(k, k @ a) / (k @ k)
    b -= np.outer(k**2, k**2 @ b) / (k**2 @ k**2)
    grid = np.linspace(0.0, period, 400)
    q, v, acceleration = series(grid, a, b)
    middle = (q.max(axis=0) + q.min(axis=0)) / 2.0
    scale = share * np.min([
        arm.half / np.abs(q - middle).max(axis=0), arm.speed / np.abs(v).max(axis=0),
        arm.acceleration / np.abs(acceleration).max(axis=0)], axis=0)

    def states(time: FloatArray) -> States:
        inside = np.clip(time - REST, 0.0, period * periods)
        q, v, acceleration = series(inside, a * scale, b * scale)
        moves = (inside == time - REST)[:, None]
        return arm.middle + q - middle * scale, v * moves, acceleration * moves

    return Motion(period * periods + 2.0 * REST, states)


def moves(arm: Arm, goals: Sequence[FloatArray], pauses: Sequence[float], share: float) -> Motion:
    """Return moves (quintic) from goal to goal (n,), with a pause [s] at each of them."""
    segments, begin = [], REST
    for start, goal, pause in zip(goals, goals[1:], pauses, strict=False):
        way = np.abs(goal - start)
        seconds = max(0.3, np.max(1.875 * way / (share * arm.speed)),
                      np.max(np.sqrt(5.774 * way / (share * arm.acceleration))))
        segments.append((begin, seconds, start, goal - start))
        begin += seconds + pause

    def states(time: FloatArray) -> States:
        q = np.tile(goals[0], (len(time), 1))
        v, acceleration = np.zeros_like(q), np.zeros_like(q)
        for first, seconds, start, step in segments:
            s = np.clip((time - first) / seconds, 0.0, 1.0)[:, None]
            on = time >= first
            q[on] = (start + step * (s**3 * (10.0 - 15.0 * s + 6.0 * s**2)))[on]
            v += step / seconds * 30.0 * s**2 * (1.0 - s)**2
            acceleration += step / seconds**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
        return q, v, acceleration

    return Motion(begin + REST, states)


def pick(arm: Arm, generator: np.random.Generator, places: int, loops: int) -> Motion:
    """Return a program that goes through places, down to each and up again, and loops."""
    program, pauses = [], []
    for _ in range(places):
        place = arm.middle + 0.9 * generator.uniform(-1.0, 1.0, arm.n) * arm.half
        above = place + 0.12 * generator.uniform(-1.0, 1.0, arm.n) * arm.half
        program += [above, place, above]
        pauses += [0.0, generator.uniform(0.3, 0.8), 0.0]
    return moves(arm, [*program * loops, program[0]], pauses * loops, 0.85)


def jog(arm: Arm, generator: np.random.Generator) -> Motion:
    """Return one joint at a time, to and fro, fast and slowly."""
    goals, speeds = [arm.middle], []
    for joint in range(arm.n):
        for size in (0.8, 0.35):
            for side in (1.0, -1.0, 0.0):
                goal = arm.middle.copy()
                goal[joint] += side * size * arm.half[joint] * generator.uniform(0.8, 1.0)
                goals.append(goal)
                speeds.append(generator.uniform(0.3, 0.6))
    return moves(arm, goals, speeds, 0.6)


def wander(arm: Arm, generator: np.random.Generator, duration: float) -> Motion:
    """Return a smooth motion through random poses at random times."""
    knots = [REST]
    while knots[-1] < duration - 2.5:
        knots.append(knots[-1] + generator.uniform(0.6, 1.6))
    poses = arm.middle + generator.uniform(-1.0, 1.0, (len(knots), arm.n)) * arm.half
    spline = CubicSpline(knots, poses, bc_type='clamped')
    grid = np.linspace(knots[0], knots[-1], 2000)
    scale = np.min([np.ones(arm.n), 0.85 * arm.speed / np.abs(spline(grid, 1)).max(axis=0),
                    0.85 * arm.acceleration / np.abs(spline(grid, 2)).max(axis=0),
                    arm.half / np.abs(spline(grid) - arm.middle).max(axis=0)], axis=0)

    def states(time: FloatArray) -> States:
        inside = np.clip(time, knots[0], knots[-1])
        on = (inside == time)[:, None]
        return arm.middle + scale * (spline(inside) - arm.middle), \
            scale * spline(inside, 1) * on, scale * spline(inside, 2) * on

    return Motion(knots[-1] + REST, states)


#: motions to train on
TRAINING: dict[str, Callable[[Arm, np.random.Generator], Motion]] = {
    'repeated': lambda arm, generator: fourier(arm, generator, 8.0, 3, 4),
    'long': lambda arm, generator: fourier(arm, generator, 40.0, 1, 14),
    'pick': lambda arm, generator: pick(arm, generator, 4, 3),
    'jog': jog,
    'slow': lambda arm, generator: fourier(arm, generator, 40.0, 1, 3, 0.25),
    'random': lambda arm, generator: wander(arm, generator, 30.0),
}


def judging(arm: Arm, seed: int) -> tuple[Motion, Motion]:
    """Return two motions that no model is trained on: one is varied, one a program."""
    generator = np.random.default_rng((seed, 77))
    return wander(arm, generator, 20.0), pick(arm, generator, 6, 1)


#: the friction of a plant is stepped at least so often [1/s]
STEPS = 500.0
RATES = (50.0, 100.0, 125.0, 250.0, 500.0, 1000.0)
ORDERS = (1.0, 12.0, 36.0, 50.0, 80.0, 101.0, 160.0, 202.0)


def offset(generator: np.random.Generator, shape: Any = None) -> FloatArray:
    """Return factors that differ from one by 15 to 40 %."""
    size = generator.uniform(0.15, 0.4, shape)
    return np.asarray(1.0 + size * generator.choice((-1.0, 1.0), shape))


def other_body(body: Any, generator: np.random.Generator) -> Any:
    """Return another body that can exist: mass, lever and second moments are off."""
    if body.mass <= 0.0:
        return body
    rotation = body.inertia
    second = 0.5 * np.trace(rotation) * np.eye(3) - rotation
    values, axes = np.linalg.eigh(second)
    floor = 1e-3 * max(values.max(), 1e-9)
    values = np.maximum(values, floor) * offset(generator, 3)
    second = axes @ np.diag(values) @ axes.T
    return pin.Inertia(body.mass * float(offset(generator)), body.lever * offset(generator, 3),
                       np.trace(second) * np.eye(3) - second)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording, and its measured effort (T, n) [N m] but for noise and steps of the sensor.

    ``states`` are the position, velocity and acceleration (T, n) in truth.
    """

    log: RawLog
    effort: FloatArray
    states: tuple[FloatArray, FloatArray, FloatArray]


class Plant:
    """An arm as it is; all of it is drawn from the ``seed``."""

    def __init__(self, arm: Arm, seed: int) -> None:
        draw = np.random.default_rng((seed, sum(map(ord, arm.name))))
        n = arm.n
        self.arm, self.model = arm, arm.nominal.copy()
        for i in range(1, self.model.njoints):
            self.model.inertias[i] = other_body(arm.nominal.inertias[i], draw)
        self.scale = self._scale(draw)
        self.rotors = draw.uniform(0.02, 0.1, n) * self.scale / arm.acceleration
        self.bits = int(draw.integers(14, 21))
        self.rate = float(draw.choice(RATES))
        #: joints with hardly more than Coulomb and viscous friction are easy to overfit
        much = draw.choice((0.1, 0.5, 1.0), n)
        self.dry = draw.uniform(0.03, 0.1, n) * self.scale
        self.stribeck = much * self.dry * draw.uniform(0.1, 0.6, n)
        self.stribeck_speed = arm.speed * draw.uniform(0.01, 0.06, n)
        self.exponent = draw.choice((0.6, 0.75, 1.35, 1.6), n)
        self.viscous = draw.uniform(0.02, 0.08, n) * self.scale
        self.power = 1.0 - much * draw.uniform(0.1, 0.35, n)
        self.asymmetry = much * draw.uniform(-0.15, 0.15, n)
        self.load = much * draw.uniform(0.0, 0.25, n)
        self.place = much * draw.uniform(0.03, 0.15, n), draw.uniform(0.0, 6.0, n)
        self.lengths = (draw.uniform(1e-4, 6e-4, n) * self.unit,
                        draw.uniform(3e-3, 2e-2, n) * self.unit)
        self.second = much * draw.uniform(0.2, 0.45, n)
        self.warming = much * draw.uniform(0.0, 0.1, n), draw.uniform(60.0, 400.0, n)
        self.offset = draw.normal(size=n) * 0.01 * self.scale
        self.cable = much * draw.uniform(0.0, 0.02, n) * self.scale, draw.uniform(0.0, 6.0, n)
        self.orders = np.where(draw.uniform(size=n) < 0.5, draw.choice(ORDERS, n), 0.0) / self.unit
        self.ripple = draw.uniform(0.006, 0.02, n) * self.scale, draw.uniform(0.0, 6.0, n)
        self.noise = draw.uniform(0.002, 0.008, n) * self.scale
        self.lag = float(draw.uniform(0.0, 0.006))
        self.late = float(draw.uniform(0.002, 0.012)), float(draw.uniform(12.0, 40.0))

    @cached_property
    def unit(self) -> FloatArray:
        """Length [m] of a joint that slides that counts as 1 rad (n,)."""
        return np.where(self.arm.slides > 0.0, 0.1, 1.0)

    def _scale(self, draw: np.random.Generator) -> FloatArray:
        """Return the effort (n,) of links that joints have to do now and then."""
        arm = self.arm
        q, v, a = (draw.uniform(-1.0, 1.0, (300, arm.n)) for _ in range(3))
        effort = np.abs(inverse_dynamics(self.model, arm.middle + q * arm.half, v * arm.speed,
                                         a * arm.acceleration))
        size = np.percentile(effort, 97, axis=0)
        return np.maximum(size, 0.02 * size.max())

    def standard(self) -> dict[str, float]:
        """Return the standard parameters of links, rotors and offsets, as the package has them."""
        values = {}
        for j in range(self.arm.n):
            body = self.model.inertias[j + 1].toDynamicParameters()
            names = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
            values |= {f'{name}{j + 1}': float(value)
                       for name, value in zip(names, body, strict=True)}
            values |= {f'Ia{j + 1}': self.rotors[j], f'f0{j + 1}': self.offset[j]}
        return values

    def weight(self, q: FloatArray) -> FloatArray:
        """Return the effort (K, n) [N m] of the weight alone."""
        rest = np.zeros_like(q)
        return inverse_dynamics(self.model, q, rest, rest)

    def gravity(self, q: FloatArray) -> FloatArray:
        """Return the effort (K, n) [N m] at rest but for friction: weight, cables, offset.

        Ripple of one wave per turn is part of it: over half a turn nothing tells it from these.
        """
        slow = self.orders * self.unit <= 1.0
        return self.weight(q) + self._cables(q) + np.where(slow, self._ripple(q), 0.0)

    def _ripple(self, q: FloatArray) -> FloatArray:
        size, phase = self.ripple
        return np.where(self.orders > 0.0, size * np.sin(self.orders * q + phase), 0.0)

    def _cables(self, q: FloatArray) -> FloatArray:
        size, phase = self.cable
        return self.offset + size * np.tanh(1.5 * np.sin(0.7 * q / self.unit + phase))

    def effort(
        self, time: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
    ) -> FloatArray:
        """Return the effort (T, n) [N m] of a motion that starts at ``time[0]`` [s] of the day."""
        links = inverse_dynamics(self.model, q, v, a) + self._cables(q) + self.rotors * a
        ripple = self._ripple(q)
        speed = np.abs(v)
        curve = self.dry + self.stribeck * np.exp(-(speed / self.stribeck_speed)**self.exponent)
        share, where = self.place
        curve *= 1.0 + share * np.sin(q / self.unit + where)
        curve *= 1.0 + self.load * (np.sqrt(1.0 + 4.0 * (links / self.scale)**2) - 1.0)
        warming, seconds = self.warming
        warm = 1.0 + warming * np.exp(-time[:, None] / seconds)
        viscous = self.viscous * np.sign(v) * (speed / self.arm.speed)**self.power
        first, second = (bristles(q, length) for length in self.lengths)
        state = (1.0 - self.second) * first + self.second * second
        return links + ripple + warm * (curve * state + viscous) * (1.0 + self.asymmetry * first)

    def record(self, motion: Motion, seed: int, start: float = 0.0) -> Recorded:
        """Return the recording of a motion that begins ``start`` [s] after the robot woke up."""
        draw = np.random.default_rng((seed, 5))
        finer = int(np.ceil(STEPS / self.rate))
        step = 1.0 / (self.rate * finer)
        fine = np.arange(0.0, motion.duration, step)
        q, v, a = motion.states(fine)
        effort = self.effort(fine + start, q, v, a)
        own = np.arange(0, len(fine), finer)
        time = fine[own]
        angle = np.where(self.arm.slides > 0.0, 0.3, 2.0 * np.pi) / 2.0**self.bits
        position = np.round(q[own] / angle) * angle
        lagged = np.column_stack([np.interp(time - self.lag, fine, one) for one in effort.T])
        measured = lagged + draw.normal(size=lagged.shape) * self.noise
        steps = self.scale / 2000.0
        measured = np.round(measured / steps) * steps
        rows = self._received(len(time), draw)
        late = time + draw.uniform(-0.02, 0.02, len(time)) / self.rate
        log = RawLog(f'{self.arm.name}_{seed}', self.arm.robot.joints, late[rows],
                     position[rows], self._velocity(position)[rows], measured[rows])
        return Recorded(log, lagged[rows], (q[own][rows], v[own][rows], a[own][rows]))

    def _velocity(self, position: FloatArray) -> FloatArray:
        """Return what drivers take for the velocity (T, n): differences, low-passed, late."""
        delay, cutoff = self.late
        rough = np.diff(position, axis=0, prepend=position[:1]) * self.rate
        pole = np.exp(-2.0 * np.pi * cutoff / self.rate)
        smooth = lfilter([1.0 - pole], [1.0, -pole], rough, axis=0)
        stamps = np.arange(len(smooth)) / self.rate
        return np.column_stack([np.interp(stamps - delay, stamps, one) for one in smooth.T])

    def _received(self, count: int, draw: np.random.Generator) -> FloatArray:
        """Return the rows of samples that are not lost: single ones are, and a burst."""
        lost = draw.uniform(size=count) < 0.003
        burst = int(draw.integers(count // 4, 3 * count // 4))
        lost[burst:burst + max(1, int(0.05 * self.rate))] = True
        return np.flatnonzero(~lost)


def bristles(q: FloatArray, length: FloatArray) -> FloatArray:
    """Return the deflection (T, n), -1 to 1, of bristles that slip after ``length`` (n,) of way.

    Dahl's model, exact for steps that do not turn round.
    """
    way = np.diff(q, axis=0)
    decay, side = np.exp(-np.abs(way) / length), np.sign(way)
    state = np.zeros_like(q)
    for k in range(len(way)):
        state[k + 1] = side[k] + (state[k] - side[k]) * decay[k]
    return state
