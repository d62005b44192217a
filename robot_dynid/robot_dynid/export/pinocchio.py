"""Pinocchio model of an arm, with the same joint order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.text_file import read_by
from robot_dynid.export.written import Form, Motion, Written
from robot_dynid.robot.model import REVOLUTE, RobotModel
from robot_dynid.types import FloatArray

try:
    import pinocchio
    from pinocchio import Model
except ImportError as error:
    raise MissingDependency('a Pinocchio model needs Pinocchio: pip install pin') from error

__all__ = ['FORM', 'Model', 'PinocchioModel', 'pinocchio_model', 'read_urdf']

FORM = Form('a Pinocchio model', rotors=True, damping=True, dry=True)


@dataclass(frozen=True, eq=False)
class PinocchioModel:
    """Pinocchio's ``model`` of an arm as ``written`` there.

    Positions and velocities are those of the joints in order. Its algorithms use the ``armature``,
    but leave ``damping`` and dry friction to the caller: effort = rnea + damping v + friction
    sign(v).
    """

    model: Model
    written: Written

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about effects that the model omits."""
        return tuple(self.written.warnings())

    def error(self) -> float | None:
        """Return the largest error of its accelerations relative to ours, joint by joint."""
        motion, data = Motion.of(self.written), self.model.createData()
        accelerations, written = np.empty_like(motion.x), self.written.friction
        net = motion.effort - written.damping * motion.v - written.dry * np.sign(motion.v)
        for k in range(len(accelerations)):
            accelerations[k] = pinocchio.aba(self.model, data, motion.x[k], motion.v[k], net[k])
        return motion.error(accelerations)


def read_urdf(text: str) -> str:
    """Return the version of Pinocchio that reads a URDF; raises ModelError if it refuses it."""
    with read_by('Pinocchio', 'URDF'):
        pinocchio.buildModelFromXML(text)
    return f'Pinocchio {pinocchio.__version__}'


def pinocchio_model(arm: IdentifiedArm) -> PinocchioModel:
    """Return Pinocchio's model of ``arm``, with rigid gears.

    Not that of the written URDF, whose branches Pinocchio sorts alphabetically.
    """
    written = Written(arm, FORM)
    robot, model, ids = arm.robot, Model(), [0]
    model.name = robot.name
    for j, parent in enumerate(robot.parents):
        place = pinocchio.SE3(np.array(robot.rotations[j]), np.array(robot.translations[j]))
        ids.append(model.addJoint(ids[parent + 1], _joint(robot, j), place, robot.joints[j]))
        model.addJointFrame(ids[-1])
        model.appendBodyToJoint(ids[-1], pinocchio.Inertia.FromDynamicParameters(
            np.array(arm.mechanism.bodies[j])), pinocchio.SE3.Identity())
        model.addBodyFrame(robot.bodies[j], ids[-1], pinocchio.SE3.Identity(), 0)
    for link in robot.links:
        if link.name not in robot.bodies:
            model.addBodyFrame(link.name, ids[link.body + 1],
                               pinocchio.SE3(np.array(link.placement)), 0)
    model.gravity.linear = np.array(robot.gravity)
    for name, values in _numbers(written).items():
        attribute = name if hasattr(model, name) else BEFORE.get(name, '')
        if attribute and hasattr(model, attribute):
            setattr(model, attribute, np.array(values))
    return PinocchioModel(model, written)


def _joint(robot: RobotModel, joint: int) -> pinocchio.JointModel:
    axis, turns = np.array(robot.axes[joint]), robot.types[joint] == REVOLUTE
    for name, unit in zip('XYZ', np.eye(3), strict=True):
        if np.array_equal(axis, unit):
            return getattr(pinocchio, f'JointModel{"R" if turns else "P"}{name}')()
    kind = pinocchio.JointModelRevoluteUnaligned if turns else \
        pinocchio.JointModelPrismaticUnaligned
    return kind(axis)


#: attribute names before version 4
BEFORE = {'upperVelocityLimit': 'velocityLimit', 'upperEffortLimit': 'effortLimit',
          'upperDryFrictionLimit': 'friction'}


def _numbers(written: Written) -> dict[str, FloatArray]:
    """Return limits, rotors and friction (n,) by the attributes of Pinocchio's model."""
    limits, drive = written.arm.robot.limits, written.arm.robot.drive
    upper, velocity, effort = (np.where(np.isfinite(values), values, np.inf) for values in (
        limits.upper, limits.velocity, limits.effort))
    lower = np.where(np.isfinite(limits.lower), limits.lower, -np.inf)
    inertia, ratios = np.diag(written.mechanism.rotors.inertia), drive.gear_ratios
    numbers = {
        'lowerPositionLimit': lower, 'upperPositionLimit': upper,
        'lowerVelocityLimit': -velocity, 'upperVelocityLimit': velocity,
        'lowerEffortLimit': -effort, 'upperEffortLimit': effort, 'armature': inertia,
        'damping': written.friction.damping, 'upperDryFrictionLimit': written.friction.dry,
        'lowerDryFrictionLimit': -written.friction.dry}
    if ratios is not None and np.all(ratios != 0.0):
        numbers |= {'rotorGearRatio': ratios, 'rotorInertia': inertia / ratios**2}
    return numbers
