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
#: the columns (m, 10 n, N) of the standard parameters of the links in what a sensor measures
LinkColumns = Callable[[RobotModel, Samples], FloatArray]
#: joints of a body that is free
FREE_JOINTS = 6


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
    columns = [similar_columns(robot, blocks, paced(robot, states))]
    for down in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        tilted = robot.with_gravity(np.linalg.norm(robot.gravity) * np.array(down))
        turned = [replace(b, robot=tilted) if isinstance(b, RigidLinks) else b for b in blocks]
        columns.append(similar_columns(tilted, turned, paced(tilted, states)))
    return reduce_columns(robot, blocks, np.concatenate(columns))


def _motor_encoders(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> Reduction | None:
    """Let every gear give that can: its motor turns apart, stiffness and damping are to be found.

    None where no rotor is asked for, or no rigid joint has a gear of its own.
    """
    drive = robot.drive
    shared = np.zeros((robot.n, robot.n), dtype=bool) if drive.coupling is None else \
        drive.coupling - np.diag(np.diag(drive.coupling)) != 0.0
    elastic = tuple(np.flatnonzero(~(shared.any(axis=0) | shared.any(axis=1))).tolist())
    rotors = any(isinstance(block, RotorInertia) for block in blocks)
    if not rotors or elastic == drive.elastic:
        return None
    soft = replace(robot, drive=replace(drive, elastic=elastic))

    def softened(block: Effect) -> Effect:
        if isinstance(block, RigidLinks):
            return RigidLinks(soft)
        if isinstance(block, RotorInertia):
            return RotorInertia(axes_of(soft), block.spinning and SpinningRotors(soft))
        return replace(block, axes=axes_of(soft)) if isinstance(block, JointFriction) else block

    return reduce_numeric(soft, (*(softened(block) for block in blocks
                                   if not isinstance(block, Springs)), Springs(soft)))


def _joint_torque(robot: RobotModel, states: Samples) -> FloatArray:
    rigid = robot.rigid
    return similar_columns(rigid, (RigidLinks(rigid),), paced(rigid, states))


def _base_wrench(robot: RobotModel, states: Samples) -> FloatArray:
    return _wrench(robot, states, -1)


def _joint_wrenches(robot: RobotModel, states: Samples) -> FloatArray:
    return np.concatenate([_wrench(robot, states, joint) for joint in range(robot.n)])


def _moving_base(robot: RobotModel, states: Samples) -> FloatArray:
    """Let the base accelerate and turn; efforts are those of the joints, as ever."""
    free, joints, moved = _on_moving_base(robot, states)
    return _links_at(free, joints, moved)[joints]


def _everything(robot: RobotModel, states: Samples) -> FloatArray:
    """Let the base move, with the force and torque in every joint measured."""
    free, joints, moved = _on_moving_base(robot, states)
    links = [10 * k + i for k in joints for i in range(10)]
    return np.concatenate([_wrench(free, moved, joint)[:, links] for joint in joints])


def _measured(links: LinkColumns, efforts: bool = False) -> Reduced:
    """Return the minimal set with further rows, in which the columns of ``links`` appear.

    Nothing else does, or, for ``efforts`` of the joints, all that does so in theirs.
    """

    def reduced(robot: RobotModel, blocks: Sequence[Effect], states: Samples) -> Reduction:
        n, joints = robot.n, similar_columns(robot, blocks, paced(robot, states))
        rows = links(robot, replace(
            states, position=states.position[:, :n], velocity=states.velocity[:, :n],
            acceleration=states.acceleration[:, :n]))
        more = np.zeros((len(rows), *joints.shape[1:]))
        if efforts:
            more[:] = joints[:len(rows)]
        first = 0
        for block in blocks:
            last = first + len(block.names)
            if isinstance(block, RigidLinks):
                more[:, first:last] = rows
            first = last
        return reduce_columns(robot, blocks, np.concatenate([joints, more]))

    return reduced


#: by key: what is tried, the cheapest first
SENSOR_CONFIGURATIONS = {
    'mounting': SensorConfiguration(
        'the base mounted so that gravity comes from other sides', _another_mounting),
    'motor encoders': SensorConfiguration(
        'motor encoders, where the gears give (elastic joints)', _motor_encoders),
    'joint torque': SensorConfiguration(
        'joint torque sensors behind the gears', _measured(_joint_torque)),
    'base wrench': SensorConfiguration(
        'a six-axis force-torque sensor under the base', _measured(_base_wrench)),
    'joint wrenches': SensorConfiguration(
        'six-axis force-torque sensors in all joints', _measured(_joint_wrenches)),
    'moving base': SensorConfiguration(
        'a base that moves and turns in a known way', _measured(_moving_base, efforts=True)),
    'all of them': SensorConfiguration(
        'a base that moves in a known way and six-axis sensors in all joints',
        _measured(_everything)),
}


def freed(robot: RobotModel, joint: int) -> tuple[RobotModel, list[int]]:
    """Return ``robot``, rigid, with six joints before ``joint``, and where its own joints are.

    Before the base for -1. The six are without mass, at the frame of the joint.
    """
    at, n = max(joint, 0), robot.n
    own = [j if j < at else j + FREE_JOINTS for j in range(n)]
    new = list(range(at, at + FREE_JOINTS))
    parents = np.full(n + FREE_JOINTS, at - 1)
    rotations = np.tile(np.eye(3), (n + FREE_JOINTS, 1, 1))
    translations = np.zeros((n + FREE_JOINTS, 3))
    rotations[own], translations[own] = robot.rotations, robot.translations
    axes = np.zeros((n + FREE_JOINTS, 3))
    axes[own], axes[new] = robot.axes, np.tile(np.eye(3), (2, 1))
    parents[own] = [own[p] if p >= 0 else (new[-1] if joint < 0 else -1) for p in robot.parents]
    parents[new] = [-1, *new[:-1]]
    if joint >= 0:
        parents[new[0]] = parents[own[joint]]
        rotations[new[0]], translations[new[0]] = robot.rotations[joint], robot.translations[joint]
        rotations[own[joint]], translations[own[joint]] = np.eye(3), np.zeros(3)
        parents[own[joint]] = new[-1]
    types = np.full(n + FREE_JOINTS, PRISMATIC, dtype=np.int8)
    types[new[3:]], types[own] = REVOLUTE, robot.types
    nominal = np.zeros((n + FREE_JOINTS, 10))
    nominal[own] = robot.nominal
    names = tuple(robot.joints[own.index(k)] if k in own else f'free {k}'
                  for k in range(n + FREE_JOINTS))
    return RobotModel(
        robot.name, names, types, parents, rotations, translations, axes, names, nominal,
        Limits.unknown(n + FREE_JOINTS), robot.gravity), own


def _wrench(robot: RobotModel, states: Samples, joint: int) -> FloatArray:
    """Return force and torque (6, 10 n, N) of what hangs on ``joint``, of everything for -1."""
    free, joints = freed(robot, joint)
    still = np.zeros((len(states), free.n))
    rest = Samples(free.joints, states.time, still, still, still, starts=states.starts)
    columns = _links_at(free, joints, _placed(joints, states, rest))
    return np.delete(columns, joints, axis=0)


def _on_moving_base(
    robot: RobotModel, states: Samples
) -> tuple[RobotModel, list[int], Samples]:
    """Return the robot on a free base, where its joints are, and its states there."""
    free, joints = freed(robot, -1)
    anywhere = random_states(free, len(states), np.random.default_rng(0))
    return free, joints, _placed(joints, states, anywhere)


def _links_at(free: RobotModel, joints: Sequence[int], states: Samples) -> FloatArray:
    """Return the columns (n + 6, 10 n, N) of the robot's links at states of the freed one."""
    columns = similar_columns(free, (RigidLinks(free),), paced(free, states))
    return np.asarray(columns[:, [10 * k + i for k in joints for i in range(10)]])


def _placed(joints: Sequence[int], states: Samples, others: Samples) -> Samples:
    """Return states of the freed robot: its own joints as in ``states``, the six as others."""
    signals = {}
    for name in ('position', 'velocity', 'acceleration'):
        signals[name] = getattr(others, name).copy()
        signals[name][:, joints] = getattr(states, name)
    return replace(others, **signals)
