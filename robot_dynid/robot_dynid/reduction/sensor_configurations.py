"""Base parameters with additional sensors.

Force and torque sensors are modelled as six locked joints at the sensor, three prismatic and three
revolute; their efforts are the measurement.
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

#: base parameters of a robot's blocks with a sensor configuration, at states; None where it does
#: not apply
Reduced = Callable[[RobotModel, Sequence[Effect], Samples], 'Reduction | None']
#: columns (m, 10 n, N) of the standard parameters of the links in what a sensor measures
LinkColumns = Callable[[RobotModel, Samples], FloatArray]
#: joints of a free body
FREE_JOINTS = 6


@dataclass(frozen=True)
class SensorConfiguration:
    """A sensor configuration in ``words``, and the base parameters with it."""

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
    """Return the base parameters if every gear is elastic, with stiffness and damping unknown.

    None without rotors, or if no rigid joint has a gear of its own.
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
    """Return the columns in the joint efforts while the base accelerates and turns."""
    free, joints, moved = _on_moving_base(robot, states)
    return _links_at(free, joints, moved)[joints]


def _everything(robot: RobotModel, states: Samples) -> FloatArray:
    """Return the columns in the wrenches of all joints while the base moves."""
    free, joints, moved = _on_moving_base(robot, states)
    links = [10 * k + i for k in joints for i in range(10)]
    return np.concatenate([_wrench(free, moved, joint)[:, links] for joint in joints])


def _measured(links: LinkColumns, efforts: bool = False) -> Reduced:
    """Return a function that adds the rows ``links`` and reduces again.

    Only links appear in these rows; with ``efforts``, all effects do as in the joint efforts.
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


#: configurations by key, cheapest first
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
    """Return ``robot``, rigid, with six massless joints before ``joint``, and the indices of its
    joints.

    The six joints are at the frame of ``joint``, before the base for -1.
    """
    at, n = max(joint, 0), robot.n
    robot_joints = [j if j < at else j + FREE_JOINTS for j in range(n)]
    new = list(range(at, at + FREE_JOINTS))
    parents = np.full(n + FREE_JOINTS, at - 1)
    rotations = np.tile(np.eye(3), (n + FREE_JOINTS, 1, 1))
    translations = np.zeros((n + FREE_JOINTS, 3))
    rotations[robot_joints], translations[robot_joints] = robot.rotations, robot.translations
    axes = np.zeros((n + FREE_JOINTS, 3))
    axes[robot_joints], axes[new] = robot.axes, np.tile(np.eye(3), (2, 1))
    parents[robot_joints] = [
        robot_joints[p] if p >= 0 else (new[-1] if joint < 0 else -1) for p in robot.parents]
    parents[new] = [-1, *new[:-1]]
    if joint >= 0:
        parents[new[0]] = parents[robot_joints[joint]]
        rotations[new[0]], translations[new[0]] = robot.rotations[joint], robot.translations[joint]
        rotations[robot_joints[joint]], translations[robot_joints[joint]] = np.eye(3), np.zeros(3)
        parents[robot_joints[joint]] = new[-1]
    types = np.full(n + FREE_JOINTS, PRISMATIC, dtype=np.int8)
    types[new[3:]], types[robot_joints] = REVOLUTE, robot.types
    nominal = np.zeros((n + FREE_JOINTS, 10))
    nominal[robot_joints] = robot.nominal
    names = tuple(robot.joints[robot_joints.index(k)] if k in robot_joints else f'free {k}'
                  for k in range(n + FREE_JOINTS))
    return RobotModel(
        robot.name, names, types, parents, rotations, translations, axes, names, nominal,
        Limits.unknown(n + FREE_JOINTS), robot.gravity), robot_joints


def _wrench(robot: RobotModel, states: Samples, joint: int) -> FloatArray:
    """Return the columns (6, 10 n, N) of the wrench on what ``joint`` carries; -1: on all links.
"""
    free, joints = freed(robot, joint)
    still = np.zeros((len(states), free.n))
    rest = Samples(free.joints, states.time, still, still, still, starts=states.starts)
    columns = _links_at(free, joints, _placed(joints, states, rest))
    return np.delete(columns, joints, axis=0)


def _on_moving_base(
    robot: RobotModel, states: Samples
) -> tuple[RobotModel, list[int], Samples]:
    """Return the robot on a free base, the indices of its joints, and its states there."""
    free, joints = freed(robot, -1)
    anywhere = random_states(free, len(states), np.random.default_rng(0))
    return free, joints, _placed(joints, states, anywhere)


def _links_at(free: RobotModel, joints: Sequence[int], states: Samples) -> FloatArray:
    """Return the columns (n + 6, 10 n, N) of the robot's links at states of the freed robot."""
    columns = similar_columns(free, (RigidLinks(free),), paced(free, states))
    return np.asarray(columns[:, [10 * k + i for k in joints for i in range(10)]])


def _placed(joints: Sequence[int], states: Samples, others: Samples) -> Samples:
    """Return states of the freed robot: its own joints as in ``states``, the six as in ``others``.
"""
    signals = {}
    for name in ('position', 'velocity', 'acceleration'):
        signals[name] = getattr(others, name).copy()
        signals[name][:, joints] = getattr(states, name)
    return replace(others, **signals)
