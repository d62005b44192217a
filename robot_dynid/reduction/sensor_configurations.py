"""Sensor configurations beside that of the robot, and the minimal set with each of them.

Sensors of force and torque are joints that do not move: six of them, three that slide and three
that turn, stand where the sensor sits, and their efforts are what it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.dynamics.rotors import SpinningRotors
from robot_dynid.effects.effect import Effect, axes_of
from robot_dynid.effects.gears import Springs
from robot_dynid.effects.joint_friction import JointFriction
from robot_dynid.effects.links import RigidLinks
from robot_dynid.effects.rotors import RotorInertia
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.numeric import (
    paced,
    random_states,
    reduce_columns,
    reduce_numeric,
    similar_columns,
)
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Limits, RobotModel
from robot_dynid.types import FloatArray, Samples

#: the minimal set of a robot's blocks with a sensor configuration, at states; None where it does
#: not apply
Reduced = Callable[[RobotModel, Sequence[Effect], Samples], 'Reduction | None']
#: joints of a body that is free
FREE = 6


@dataclass(frozen=True)
class SensorConfiguration:
    """A sensor configuration in ``words``, and the minimal set with it."""

    words: str
    reduced: Reduced


def _another_mounting(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    if not robot.gravity.any():
        return None
    found = _own(robot, blocks, states)
    for down in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        tilted = robot.with_gravity(np.linalg.norm(robot.gravity) * np.array(down))
        turned = [replace(b, robot=tilted) if isinstance(b, RigidLinks) else b for b in blocks]
        found = np.concatenate([found, _own(tilted, turned, states)])
    return reduce_columns(robot, blocks, found)


def _joint_torque(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    rigid = robot.rigid
    links = similar_columns(rigid, (RigidLinks(rigid),), paced(rigid, _links_of(robot, states)))
    return _with_links(robot, blocks, states, links)


def _motor_encoders(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    """Let every gear give that can: its motor turns apart, stiffness and damping are to be found.

    None where no rotor is asked for, or no rigid joint has a gear of its own.
    """
    elastic = tuple(j for j in range(robot.n) if _alone(robot, j))
    rotors = any(isinstance(block, RotorInertia) for block in blocks)
    if not rotors or elastic == robot.drive.elastic:
        return None
    soft = replace(robot, drive=replace(robot.drive, elastic=elastic))
    found: list[Effect] = [_softened(soft, block) for block in blocks
                          if not isinstance(block, Springs)]
    return reduce_numeric(soft, (*found, Springs(soft)))


def _softened(robot: RobotModel, block: Effect) -> Effect:
    if isinstance(block, RigidLinks):
        return RigidLinks(robot)
    if isinstance(block, RotorInertia):
        spins = None if block.spinning is None else SpinningRotors(robot)
        return RotorInertia(axes_of(robot), spins)
    if isinstance(block, JointFriction):
        return replace(block, axes=axes_of(robot))
    return block


def _alone(robot: RobotModel, joint: int) -> bool:
    """Return whether the motor of ``joint`` turns with it alone."""
    coupling = robot.drive.coupling
    if coupling is None:
        return True
    shared = coupling - np.diag(np.diag(coupling)) != 0.0
    return not (shared[joint].any() or shared[:, joint].any())


def _base_wrench(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    return _with_links(robot, blocks, states, _wrench(robot, states, -1))


def _joint_wrenches(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    seen = [_wrench(robot, states, joint) for joint in range(robot.n)]
    return _with_links(robot, blocks, states, np.concatenate(seen))


def _moving_base(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    """Let the base accelerate and turn; efforts are those of the joints, as ever."""
    free, own = freed(robot, -1)
    moved = _placed(free, own, _links_of(robot, states), _any(free, len(states)))
    links = _links_at(free, own, moved)[own]
    return _with_links(robot, blocks, states, links, efforts=True)


def _everything(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    """Let the base move, with the force and torque in every joint measured."""
    free, own = freed(robot, -1)
    moved = _placed(free, own, _links_of(robot, states), _any(free, len(states)))
    links = [10 * k + i for k in own for i in range(10)]
    seen = [_wrench(free, moved, joint)[:, links] for joint in own]
    return _with_links(robot, blocks, states, np.concatenate(seen))


#: by key: what is tried, the cheapest first
SENSOR_CONFIGURATIONS = {
    'mounting': SensorConfiguration(
        'the base mounted so that gravity comes from other sides', _another_mounting
    ),
    'motor encoders': SensorConfiguration(
        'motor encoders, where the gears give (elastic joints)', _motor_encoders
    ),
    'joint torque': SensorConfiguration('joint torque sensors behind the gears', _joint_torque),
    'base wrench': SensorConfiguration(
        'a six-axis force-torque sensor under the base', _base_wrench
    ),
    'joint wrenches': SensorConfiguration(
        'six-axis force-torque sensors in all joints', _joint_wrenches
    ),
    'moving base': SensorConfiguration('a base that moves and turns in a known way', _moving_base),
    'all of them': SensorConfiguration(
        'a base that moves in a known way and six-axis sensors in all joints', _everything
    ),
}


def freed(robot: RobotModel, joint: int) -> tuple[RobotModel, list[int]]:
    """Return ``robot``, rigid, with six joints before ``joint``, and where its own joints are.

    Before the base for -1. The six are without mass, at the frame of the joint.
    """
    at, n = max(joint, 0), robot.n
    own = [j if j < at else j + FREE for j in range(n)]
    new = list(range(at, at + FREE))
    parents = np.full(n + FREE, at - 1)
    rotations, translations = np.tile(np.eye(3), (n + FREE, 1, 1)), np.zeros((n + FREE, 3))
    rotations[own], translations[own] = robot.rotations, robot.translations
    axes = np.zeros((n + FREE, 3))
    axes[own], axes[new] = robot.axes, np.tile(np.eye(3), (2, 1))
    parents[own] = [own[p] if p >= 0 else (new[-1] if joint < 0 else -1) for p in robot.parents]
    parents[new] = [-1, *new[:-1]]
    if joint >= 0:
        parents[new[0]] = parents[own[joint]]
        rotations[new[0]], translations[new[0]] = robot.rotations[joint], robot.translations[joint]
        rotations[own[joint]], translations[own[joint]] = np.eye(3), np.zeros(3)
        parents[own[joint]] = new[-1]
    types = np.full(n + FREE, PRISMATIC, dtype=np.int8)
    types[new[3:]], types[own] = REVOLUTE, robot.types
    nominal = np.zeros((n + FREE, 10))
    nominal[own] = robot.nominal
    names = tuple(robot.joints[own.index(k)] if k in own else f'free {k}' for k in range(n + FREE))
    return RobotModel(
        robot.name, names, types, parents, rotations, translations, axes, names, nominal,
        Limits.unknown(n + FREE), robot.gravity), own


def _wrench(robot: RobotModel, states: Samples, joint: int) -> FloatArray:
    """Return force and torque (6, 10 n, N) of what hangs on ``joint``, of everything for -1."""
    free, own = freed(robot, joint)
    still = np.zeros((len(states), free.n))
    rest = Samples(free.joints, states.time, still, still, still, starts=states.starts)
    columns = _links_at(free, own, _placed(free, own, _links_of(robot, states), rest))
    return columns[[k for k in range(free.n) if k not in own]]


def _any(robot: RobotModel, count: int) -> Samples:
    return random_states(robot, count, np.random.default_rng(0))


def _links_at(free: RobotModel, own: Sequence[int], states: Samples) -> FloatArray:
    """Return the columns (n + 6, 10 n, N) of the robot's links at states of the freed one."""
    columns = similar_columns(free, (RigidLinks(free),), paced(free, states))
    return np.asarray(columns[:, [10 * k + i for k in own for i in range(10)]])


def _placed(
    free: RobotModel, own: Sequence[int], states: Samples, others: Samples
) -> Samples:
    """Return states of the freed robot: its own joints as in ``states``, the six as others."""
    found = {}
    for name in ('position', 'velocity', 'acceleration'):
        found[name] = getattr(others, name).copy()
        found[name][:, own] = getattr(states, name)
    return replace(others, **found)


def _links_of(robot: RobotModel, states: Samples) -> Samples:
    n = robot.n
    return replace(states, position=states.position[:, :n], velocity=states.velocity[:, :n],
                   acceleration=states.acceleration[:, :n])


def _own(robot: RobotModel, blocks: Sequence[Effect], states: Samples) -> FloatArray:
    return similar_columns(robot, blocks, paced(robot, states))


def _with_links(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples, links: FloatArray,
    efforts: bool = False,
) -> Reduction:
    """Return the reduction with further rows, in which ``links`` (rows, 10 n, N) appear.

    Nothing else does, or, for ``efforts`` of the joints, all that does so in theirs.
    """
    own = _own(robot, blocks, states)
    more = np.zeros((len(links), *own.shape[1:]))
    if efforts:
        more[:] = own[:len(links)]
    first = 0
    for block in blocks:
        last = first + len(block.names)
        if isinstance(block, RigidLinks):
            more[:, first:last] = links
        first = last
    return reduce_columns(robot, blocks, np.concatenate([own, more]))
