"""SDFormat 1.9 of an arm, for Gazebo: links, joints with damping and friction, limits, frames.

Source: SDFormat specification 1.9, http://sdformat.org/spec
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.text_file import TextFile, elements
from robot_dynid.export.urdf import unusual_gravity
from robot_dynid.export.written import Form, Written, gear_name, rotor_name
from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf import require_unique
from robot_dynid.robot.urdf_text import INERTIA, FreeNames, number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: in the head of every file
MARK = b'<!-- SDF of a robot_dynid model'
FORM = Form('SDF', damping=True, dry=True)


@dataclass(frozen=True, eq=False)
class Sdf(TextFile):
    """The ``text`` of a file, the arm as it is ``written`` there, and ``warnings`` to know."""

    written: Written = field(kw_only=True)
    warnings: tuple[str, ...] = ()
    mark = MARK

    def parse(self) -> None:
        """Read the text as XML whose elements have names of their own; raises DynIdError."""
        model = elements(self.text, FORM.name)[0]
        require_unique(['world', *(e.attrib['name'] for e in model)], 'name', FORM.name)

    def load(self) -> dict[str, Any]:
        """Return the error of Drake's accelerations. Raises ModelError where it refuses the text.

        Raises MissingDependency without Drake.
        """
        from robot_dynid.export.drake import check_sdf

        return check_sdf(self.written, self.text)


def exported_sdf(arm: IdentifiedArm) -> Sdf:
    """Return the file of ``arm``, fixed to the world by its base link."""
    warnings = [*Written(arm, FORM).warnings(), *unusual_gravity(arm, FORM.name)]
    written, root, names = sdf_of(arm, FORM)
    text = tostring(root, encoding='unicode')
    return Sdf(f'{MARK.decode()} {VERSION} -->\n{text}\n', written=written,
               warnings=(*warnings, *names.warnings(FORM.name)))


def sdf_of(arm: IdentifiedArm, form: Form) -> tuple[Written, Element, FreeNames]:
    """Return ``arm`` with names that SDFormat allows, as a ``form`` of SDF holds it.

    The three are the arm, the root element, and the set of names.
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
    """Return ``arm`` with names that SDFormat allows, and the set of these.

    Joints, links and frames share one set of names: joints come first, since controllers know
    them by name. ``world`` and ``__NAME__`` are reserved, ``::`` separates names.
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
    """Add a joint between ``links``, of which the motor's has no limits of position."""
    robot, limits = written.arm.robot, written.arm.robot.limits
    ends = [float(limits.lower[j]), float(limits.upper[j])]
    bounds = {}
    if np.isfinite(ends).all() and name == robot.joints[j]:
        bounds = {'lower': ends[0], 'upper': ends[1]}
    kind = 'prismatic' if robot.types[j] == PRISMATIC else 'revolute' if bounds else 'continuous'
    bounds |= {key: float(values[j]) for key, values in (  # a URDF has zero where none is bounds
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
