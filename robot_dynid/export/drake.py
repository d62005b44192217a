"""An arm as Drake's plant.

Where a gear gives, the joint is a chain of two about one axis: the motor's, called after the joint
with ``_rotor``, and behind it the twist of the gear with ``_gear``, whose spring and damper carry
the link. The position of the link is their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from xml.etree.ElementTree import SubElement, tostring

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.sdf import sdf_of
from robot_dynid.export.text_file import read_by
from robot_dynid.export.written import Form, Motion, Written, gear_name, rotor_name
from robot_dynid.types import FloatArray

try:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
except ImportError as error:
    raise MissingDependency('a Drake plant needs Drake: pip install drake') from error

__all__ = ['FORM', 'DrakePlant', 'MultibodyPlant', 'check_sdf', 'drake_plant']

FORM = Form('a Drake plant', rotors=True, damping=True, gears=True)


@dataclass(frozen=True, eq=False)
class DrakePlant:
    """Drake's ``plant`` of an arm as it is ``written`` there, not finalised: more may be added.

    ``renamed`` are sentences about names that SDF does not allow.
    """

    plant: MultibodyPlant
    written: Written
    renamed: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what the plant cannot hold."""
        return *self.written.warnings(), *self.renamed

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
    plant, motion = _read(written, text, 0.0), Motion.of(written)
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
    elastic = list(gears.joints) if gears is not None else []
    names = [_motor_joint(written, j) for j in range(robot.n)]
    names += [gear_name(robot.joints[j]) for j in elastic]
    rows = [plant.GetJointByName(name).velocity_start() for name in names]
    drives = [plant.GetJointActuatorByName(name).input_start() for name in robot.joints]
    accelerations, count = np.empty_like(motion.x), robot.n
    for k, (x, v, effort) in enumerate(zip(motion.x, motion.v, efforts, strict=True)):
        plant.SetPositions(context, _placed(_chained(x, elastic, count), rows))
        plant.SetVelocities(context, _placed(_chained(v, elastic, count), rows))
        plant.get_actuation_input_port().FixValue(context, _placed(effort, drives))
        rates = plant.EvalTimeDerivatives(context).CopyToVector()[plant.num_positions():]
        chained = rates[rows]
        accelerations[k] = chained
        accelerations[k, elastic] = chained[elastic] + chained[count:]
        accelerations[k, count:] = chained[elastic]
    return accelerations


def _chained(values: FloatArray, elastic: list[int], count: int) -> FloatArray:
    """Return those of motors and gears (N,) from ``values`` (N,) of links, then of motors."""
    chained = values.copy()
    chained[elastic], chained[count:] = values[count:], values[elastic] - values[count:]
    return chained


def _placed(values: FloatArray, rows: list[int]) -> FloatArray:
    placed = np.empty(len(rows))
    placed[rows] = values
    return placed


def drake_plant(arm: IdentifiedArm, step: float = 0.0) -> DrakePlant:
    """Return Drake's plant of ``arm``, simulated continuously or in steps of ``step`` s.

    It is that of an SDF, and of actuators called after the joints. Raises ModelError where Drake
    refuses the text.
    """
    written, root, names = sdf_of(arm, FORM)
    robot, gears = written.arm.robot, written.mechanism.gears
    for bounds in root.iter('limit'):  # Drake makes an actuator where an effort is possible
        effort = bounds.find('effort')
        (SubElement(bounds, 'effort') if effort is None else effort).text = '0'
    plant = _read(written, tostring(root, encoding='unicode'), step)
    for j, name in enumerate(robot.joints):
        joint = _motor_joint(written, j)
        inertia = float(written.mechanism.rotors.inertia[j, j]) if joint == name or gears is None \
            else float(gears.inertia[gears.joints.index(j)])
        limit = float(robot.limits.effort[j])
        motor = plant.AddJointActuator(
            name, plant.GetJointByName(joint), limit if limit > 0.0 else np.inf)
        motor.set_default_rotor_inertia(inertia)
        motor.set_default_gear_ratio(1.0)
    return DrakePlant(plant, written, tuple(names.warnings(FORM.name)))


def _motor_joint(written: Written, joint: int) -> str:
    gears, name = written.mechanism.gears, written.arm.robot.joints[joint]
    return rotor_name(name) if gears is not None and joint in gears.joints else name


def _read(written: Written, text: str, step: float) -> MultibodyPlant:
    """Return the plant of an SDF in the gravity of an arm."""
    plant = MultibodyPlant(step)
    plant.mutable_gravity_field().set_gravity_vector(np.array(written.arm.robot.gravity))
    with read_by('Drake', 'SDF'):
        Parser(plant).AddModelsFromString(text, 'sdf')
    return plant
