"""SDFormat 1.9 of an arm for Gazebo, and its Drake plant.

The joint of an elastic gear is a chain of two about one axis in a plant: the motor's, called after
the joint with ``_rotor``, then the twist of the gear with ``_gear``, whose spring and damper carry
the link. The position of the link is their sum. Source: SDFormat specification 1.9,
http://sdformat.org/spec
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.text_file import TextFile, elements, read_by
from robot_dynid.export.urdf import unusual_gravity
from robot_dynid.export.written import Form, Motion, Written, gear_name, rotor_name
from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf import require_unique
from robot_dynid.robot.urdf_text import INERTIA, FreeNames, number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

if TYPE_CHECKING:
    from pydrake.multibody.plant import MultibodyPlant

#: header of every file
MARK = b'<!-- SDF of a robot_dynid model'
FORM = Form('SDF', damping=True, dry=True)
#: Drake's plants
PLANT = Form('a Drake plant', rotors=True, damping=True, gears=True)


@dataclass(frozen=True, eq=False)
class Sdf(TextFile):
    """SDF file of an arm."""

    written: Written = field(kw_only=True)
    mark = MARK

    def parse(self) -> None:
        """Read the text as XML with unique names; raises DynIdError."""
        model = elements(self.text, FORM.name)[0]
        require_unique(['world', *(e.attrib['name'] for e in model)], 'name', FORM.name)

    def load(self) -> dict[str, Any]:
        """Return the error of Drake's accelerations; raises ModelError if Drake refuses the text.

        Raises MissingDependency without Drake.
        """
        return check_sdf(self.written, self.text)


def exported_sdf(arm: IdentifiedArm) -> Sdf:
    """Return the SDF of ``arm``, fixed to the world by its base link."""
    warnings = [*Written(arm, FORM).warnings(), *unusual_gravity(arm, FORM.name)]
    written, root, names = sdf_of(arm, FORM)
    text = tostring(root, encoding='unicode')
    return Sdf(f'{MARK.decode()} {VERSION} -->\n{text}\n', written=written,
               warnings=(*warnings, *names.warnings(FORM.name)))


def sdf_of(arm: IdentifiedArm, form: Form) -> tuple[Written, Element, FreeNames]:
    """Return ``arm`` with names valid in SDFormat, as a ``form`` of SDF holds it.

    Returns the arm, the root element, and the set of names.
    """
    arm, names = _renamed(arm)
    written, robot = Written(arm, form), arm.robot
    gears = written.mechanism.gears
    root = Element('sdf', version='1.9')
    model = SubElement(root, 'model', name=robot.name)
    SubElement(model, 'link', name=robot.base_link)
    fixed = SubElement(model, 'joint', name=names.take(f'{robot.base_link}_fixed', 'joint'),
                       type='fixed')
    _add_text(fixed, {'parent': 'world', 'child': robot.base_link})
    for j, parent in enumerate(robot.parents):
        above, joint = robot.base_link if parent < 0 else robot.bodies[parent], robot.joints[j]
        if gears is None or j not in gears.joints:
            _add_joint(model, written, j, joint, (above, robot.bodies[j]))
        else:
            rotor, joint = names.take(f'{rotor_name(joint)}_link'), gear_name(joint)
            _add_joint(model, written, j, rotor_name(robot.joints[j]), (above, rotor))
            _add_link(model, rotor, rotor_name(robot.joints[j]), np.zeros(10))
            _add_gear(model, written, j, joint, (rotor, robot.bodies[j]))
        _add_link(model, robot.bodies[j], joint, arm.mechanism.bodies[j])
    for link in robot.links:
        if link.name not in robot.bodies:
            frame = SubElement(model, 'frame', name=link.name,
                               attached_to=robot.bodies[link.body])
            _add_text(frame, {'pose': _pose(link.placement[:3, :3], link.placement[:3, 3])})
    indent(root)
    return written, root, names


def _renamed(arm: IdentifiedArm) -> tuple[IdentifiedArm, FreeNames]:
    """Return ``arm`` with names valid in SDFormat, and the set of names.

    Joints, links and frames share one set of names: joints come first, because controllers refer
    to them. ``world`` and ``__NAME__`` are reserved, ``::`` separates names.
    """
    robot = arm.robot
    links = dict.fromkeys((robot.base_link, *robot.bodies, *(link.name for link in robot.links)))
    wanted = (*robot.joints, *links)
    reserved = {'world', *(name for name in (robot.name, *wanted) if re.match('__.*__$', name))}
    names = FreeNames(reserved, wanted, '::')
    joints = tuple(names.take(name, 'joint') for name in robot.joints)
    free = {name: names.take(name) for name in links}
    renamed = replace(
        robot, name=FreeNames(reserved, (), '::').take(robot.name, 'robot'), joints=joints,
        base_link=free[robot.base_link], bodies=tuple(free[name] for name in robot.bodies),
        links=tuple(replace(link, name=free[link.name]) for link in robot.links))
    return replace(arm, mechanism=replace(arm.mechanism, robot=renamed)), names


def _add_text(parent: Element, texts: Mapping[str, str]) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = text


def _pose(rotation: FloatArray, translation: FloatArray) -> str:
    return number_text([*translation, *rpy_from_rotation(rotation)])


def _add_link(model: Element, name: str, joint: str, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters) if parameters.any() \
        else (0.0, np.zeros(3), np.zeros((3, 3)))
    link = SubElement(model, 'link', name=name)
    SubElement(link, 'pose', relative_to=joint).text = number_text(np.zeros(6))
    inertial = SubElement(link, 'inertial')
    _add_text(inertial, {'pose': number_text([*com, 0.0, 0.0, 0.0]), 'mass': repr(mass)})
    _add_text(SubElement(inertial, 'inertia'),
              {key: repr(float(inertia[place])) for key, place in INERTIA.items()})


def _add_joint(
    model: Element, written: Written, j: int, name: str, links: tuple[str, str]
) -> None:
    """Add a joint between ``links``; that of a motor has no position limits."""
    robot, limits = written.arm.robot, written.arm.robot.limits
    ends = [float(limits.lower[j]), float(limits.upper[j])]
    bounds = {}
    if np.isfinite(ends).all() and name == robot.joints[j]:
        bounds = {'lower': ends[0], 'upper': ends[1]}
    kind = 'prismatic' if robot.types[j] == PRISMATIC else 'revolute' if bounds else 'continuous'
    bounds |= {key: float(values[j]) for key, values in (  # zero in a URDF means none
        ('effort', limits.effort), ('velocity', limits.velocity)) if 0.0 < values[j] < np.inf}
    friction = written.friction
    _add_axis(model, {'name': name, 'type': kind}, links, {
        'pose': _pose(robot.rotations[j], robot.translations[j]), 'xyz': number_text(robot.axes[j])
    }, (bounds, {'damping': friction.damping[j], 'friction': friction.dry[j]}))


def _add_gear(
    model: Element, written: Written, j: int, name: str, links: tuple[str, str]
) -> None:
    """Add the twist of a gear between the rotor of its motor and its link."""
    gears, robot = written.mechanism.gears, written.arm.robot
    assert gears is not None
    i = gears.joints.index(j)
    kind = 'prismatic' if robot.types[j] == PRISMATIC else 'revolute'
    _add_axis(model, {'name': name, 'type': kind}, links, {
        'pose': number_text(np.zeros(6)), 'xyz': number_text(robot.axes[j])}, ({}, {
            'damping': gears.damping[i], 'spring_stiffness': gears.stiffness[i],
            'spring_reference': gears.offset[i] / gears.stiffness[i]}))


def _add_axis(
    model: Element, attributes: Mapping[str, str], links: tuple[str, str],
    texts: Mapping[str, str], numbers: tuple[Mapping[str, float], Mapping[str, float]],
) -> None:
    """Add a joint with ``texts`` of pose and axis, and the ``numbers`` of limits and dynamics."""
    joint = SubElement(model, 'joint', dict(attributes))
    SubElement(joint, 'pose', relative_to=links[0]).text = texts['pose']
    _add_text(joint, {'parent': links[0], 'child': links[1]})
    axis = SubElement(joint, 'axis')
    _add_text(axis, {'xyz': texts['xyz']})
    for tag, values in zip(('limit', 'dynamics'), numbers, strict=True):
        _add_text(SubElement(axis, tag), {key: repr(float(x)) for key, x in values.items()})


@dataclass(frozen=True, eq=False)
class DrakePlant:
    """Drake's ``plant`` of an arm as ``written`` there, not finalised, so it can be extended.

    ``renamed`` are sentences about names that SDF does not allow.
    """

    plant: MultibodyPlant
    written: Written
    renamed: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about effects that the plant omits."""
        return *self.written.warnings(), *self.renamed

    def error(self) -> float | None:
        """Return the largest error of its accelerations relative to ours, joint by joint.

        Finalises the plant, and removes the limits of its motors.
        """
        motion = Motion.of(self.written)
        return motion.error(_accelerations(self.plant, self.written, motion, motion.effort))


def check_sdf(written: Written, text: str) -> dict[str, Any]:
    """Return the error of the accelerations of Drake from an SDF, and its version.

    Drake ignores the dry friction of the file, which is subtracted from the effort. Raises
    ModelError if it refuses the text.
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

    It is that of an SDF, with actuators called after the joints. Raises ModelError if Drake
    refuses the text.
    """
    written, root, names = sdf_of(arm, PLANT)
    robot, gears = written.arm.robot, written.mechanism.gears
    for bounds in root.iter('limit'):  # Drake adds actuators for nonzero effort limits
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
    return DrakePlant(plant, written, tuple(names.warnings(PLANT.name)))


def _motor_joint(written: Written, joint: int) -> str:
    gears, name = written.mechanism.gears, written.arm.robot.joints[joint]
    return rotor_name(name) if gears is not None and joint in gears.joints else name


def _read(written: Written, text: str, step: float) -> MultibodyPlant:
    """Return the plant of an SDF in the gravity of an arm; raises MissingDependency."""
    try:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant
    except ImportError as error:
        raise MissingDependency('a Drake plant needs Drake: pip install drake') from error
    plant = MultibodyPlant(step)
    plant.mutable_gravity_field().set_gravity_vector(np.array(written.arm.robot.gravity))
    with read_by('Drake', 'SDF'):
        Parser(plant).AddModelsFromString(text, 'sdf')
    return plant
