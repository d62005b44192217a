"""An arm as Drake's plant.

Where a gear gives, the joint is a chain of two about one axis: the motor's, called after the joint
with ``_rotor``, and behind it the twist of the gear with ``_gear``, whose spring and damper carry
the link. The position of the link is their sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from robot_dynid.errors import MissingDependency, ModelError
from robot_dynid.export.check import Motion
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.mjcf_elements import rotor_name
from robot_dynid.export.text_file import read_by
from robot_dynid.export.written import Form, Written
from robot_dynid.robot.inertia import com_from_parameters
from robot_dynid.robot.model import REVOLUTE
from robot_dynid.types import FloatArray

try:
    from pydrake import math as drake_math
    from pydrake.multibody import tree as drake
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
except ImportError as error:
    raise MissingDependency('a Drake plant needs Drake: pip install drake') from error

__all__ = ['FORM', 'DrakePlant', 'MultibodyPlant', 'check_sdf', 'drake_plant']

FORM = Form('a Drake plant', rotors=True, damping=True, gears=True)


def gear_name(joint: str) -> str:
    """Return the name of the twist of the gear of an elastic ``joint``."""
    return f'{joint}_gear'


@dataclass(frozen=True, eq=False)
class DrakePlant:
    """Drake's ``plant`` of an arm as it is ``written`` there, not finalised: more may be added."""

    plant: MultibodyPlant
    written: Written

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what the plant cannot hold."""
        return tuple(self.written.warnings())

    def error(self) -> float:
        """Return the largest error of its accelerations relative to ours, joint by joint.

        The plant is finalised, and loses the limits of its motors.
        """
        motion = Motion.of(self.written)
        return motion.error(_accelerations(self.plant, self.written, motion, motion.effort))


def check_sdf(written: Written, text: str) -> dict[str, Any]:
    """Return the error of the accelerations of Drake that has read an SDF, and its version.

    Drake leaves out the dry friction of the file, which is taken off the effort. Raises ModelError
    where it refuses the text.
    """
    plant, motion = MultibodyPlant(0.0), Motion.of(written)
    plant.mutable_gravity_field().set_gravity_vector(np.array(written.arm.robot.gravity))
    with read_by('Drake', 'SDF'):
        Parser(plant).AddModelsFromString(text, 'sdf')
    net = motion.effort - written.friction.dry * np.sign(motion.v)
    return {'error': motion.error(_accelerations(plant, written, motion, net)),
            'tool': f'Drake {version("drake")}'}


def _accelerations(
    plant: MultibodyPlant, written: Written, motion: Motion, efforts: FloatArray
) -> FloatArray:
    """Return Drake's accelerations (K, N) in the states of ``motion`` under ``efforts`` (K, n)."""
    plant.Finalize()
    plant.RemoveAllJointActuatorEffortLimits()
    context = plant.CreateDefaultContext()
    robot, gears = written.arm.robot, written.mechanism.gears
    own = list(gears.joints) if gears is not None else []
    names = [rotor_name(j) if i in own else j for i, j in enumerate(robot.joints)]
    names += [gear_name(robot.joints[j]) for j in own]
    rows = [plant.GetJointByName(name).velocity_start() for name in names]
    drives = [plant.GetJointActuatorByName(name).input_start() for name in robot.joints]
    found, count = np.empty_like(motion.x), robot.n
    for k, (x, v, effort) in enumerate(zip(motion.x, motion.v, efforts, strict=True)):
        plant.SetPositions(context, _placed(_chained(x, own, count), rows))
        plant.SetVelocities(context, _placed(_chained(v, own, count), rows))
        plant.get_actuation_input_port().FixValue(context, _placed(effort, drives))
        rates = plant.EvalTimeDerivatives(context).CopyToVector()[plant.num_positions():]
        chained = rates[rows]
        found[k] = chained
        found[k, own] = chained[own] + chained[count:]
        found[k, count:] = chained[own]
    return found


def _chained(values: FloatArray, own: list[int], count: int) -> FloatArray:
    """Return those of motors and gears (N,) from ``values`` (N,) of links, then of motors."""
    found = values.copy()
    found[own], found[count:] = values[count:], values[own] - values[count:]
    return found


def _placed(values: FloatArray, rows: list[int]) -> FloatArray:
    found = np.empty(len(rows))
    found[rows] = values
    return found


def drake_plant(arm: IdentifiedArm, step: float = 0.0) -> DrakePlant:
    """Return Drake's plant of ``arm``, simulated continuously or in steps of ``step`` s."""
    written = Written(arm, FORM)
    builder = _Builder(written, MultibodyPlant(step))
    builder.build()
    return DrakePlant(builder.plant, written)


@dataclass(eq=False)
class _Builder:
    written: Written
    plant: MultibodyPlant
    bodies: list[Any] = field(default_factory=list)

    def build(self) -> None:
        robot, plant = self.written.arm.robot, self.plant
        plant.mutable_gravity_field().set_gravity_vector(np.array(robot.gravity))
        base = plant.AddRigidBody(robot.base_link, drake.SpatialInertia.Zero())
        plant.WeldFrames(plant.world_frame(), base.body_frame())
        for j, parent in enumerate(robot.parents):
            above = base if parent < 0 else self.bodies[parent]
            place = drake_math.RigidTransform(
                drake_math.RotationMatrix(robot.rotations[j]), np.array(robot.translations[j]))
            frame = plant.AddFrame(drake.FixedOffsetFrame(
                f'{robot.joints[j]}_frame', above.body_frame(), place))
            body = plant.AddRigidBody(
                robot.bodies[j], _inertia(self.written.mechanism.bodies[j]))
            self.bodies.append(body)
            self._add_joint(j, frame, body)
        for link in robot.links:
            if link.name not in robot.bodies:
                plant.AddFrame(drake.FixedOffsetFrame(
                    link.name, self.bodies[link.body].body_frame(),
                    drake_math.RigidTransform(link.placement)))

    def _add_joint(self, j: int, frame: Any, body: Any) -> None:
        robot, gears, plant = self.written.arm.robot, self.written.mechanism.gears, self.plant
        name, damping = robot.joints[j], float(self.written.friction.damping[j])
        inertia = float(self.written.mechanism.rotors.inertia[j, j])
        if gears is None or j not in gears.joints:
            joint = self._joint(j, name, frame, body.body_frame(), damping)
            joint.set_position_limits(*_limits(robot.limits.lower[j], robot.limits.upper[j]))
        else:
            i = gears.joints.index(j)
            inertia, stiffness = float(gears.inertia[i]), float(gears.stiffness[i])
            rotor = plant.AddRigidBody(rotor_name(name), drake.SpatialInertia.Zero())
            joint = self._joint(j, rotor_name(name), frame, rotor.body_frame(), damping)
            twist = self._joint(j, gear_name(name), rotor.body_frame(), body.body_frame(),
                                float(gears.damping[i]))
            spring = drake.RevoluteSpring if robot.types[j] == REVOLUTE else \
                drake.PrismaticSpring
            plant.AddForceElement(spring(twist, float(gears.offset[i]) / stiffness, stiffness))
        effort = float(robot.limits.effort[j])
        motor = plant.AddJointActuator(name, joint, effort if effort > 0.0 else np.inf)
        motor.set_default_rotor_inertia(inertia)
        motor.set_default_gear_ratio(1.0)

    def _joint(self, j: int, name: str, above: Any, below: Any, damping: float) -> Any:
        robot = self.written.arm.robot
        if damping < 0.0:
            raise ModelError(f'joint {name}: damping {damping:.3g} is below zero, which Drake '
                             'refuses; identify again with --method feasible')
        kind = drake.RevoluteJoint if robot.types[j] == REVOLUTE else drake.PrismaticJoint
        return self.plant.AddJoint(kind(name, above, below, np.array(robot.axes[j]),
                                        damping=damping))


def _inertia(parameters: FloatArray) -> Any:
    mass, com, inertia = com_from_parameters(parameters)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    return drake.SpatialInertia.MakeFromCentralInertia(
        mass, com, drake.RotationalInertia(xx, yy, zz, xy, xz, yz))


def _limits(lower: float, upper: float) -> tuple[list[float], list[float]]:
    """Return position limits, wide open where there are none."""
    known = np.isfinite(lower) and np.isfinite(upper)
    return ([float(lower)], [float(upper)]) if known else ([-np.inf], [np.inf])
