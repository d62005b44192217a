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
from robot_dynid.export.written import Form, Written
from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.made_urdf import INERTIA
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf import require_unique
from robot_dynid.robot.urdf_text import FreeNames, number_text
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
    arm, names = _renamed(arm)
    written, robot = Written(arm, FORM), arm.robot
    root = Element('sdf', version='1.9')
    model = SubElement(root, 'model', name=robot.name)
    SubElement(model, 'link', name=robot.base_link)
    fixed = SubElement(model, 'joint', name=names.take(f'{robot.base_link}_fixed', 'joint'),
                       type='fixed')
    _add_text(fixed, {'parent': 'world', 'child': robot.base_link})
    for j, parent in enumerate(robot.parents):
        above = robot.base_link if parent < 0 else robot.bodies[parent]
        _add_joint(model, written, j, above)
        _add_link(model, robot.bodies[j], robot.joints[j], arm.mechanism.bodies[j])
    for link in robot.links:
        if link.name not in robot.bodies:
            frame = SubElement(model, 'frame', name=link.name,
                               attached_to=robot.bodies[link.body])
            _add_text(frame, {'pose': _pose(link.placement[:3, :3], link.placement[:3, 3])})
    indent(root)
    return Sdf(f'{MARK.decode()} {VERSION} -->\n{tostring(root, encoding="unicode")}\n',
               written=written, warnings=(*warnings, *names.warnings(FORM.name)))


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
    found = {name: names.take(name) for name in links}
    renamed = replace(
        robot, name=FreeNames(reserved, (), '::').take(robot.name, 'robot'), joints=joints,
        base_link=found[robot.base_link], bodies=tuple(found[name] for name in robot.bodies),
        links=tuple(replace(link, name=found[link.name]) for link in robot.links))
    return replace(arm, mechanism=replace(arm.mechanism, robot=renamed)), names


def _add_text(parent: Element, texts: Mapping[str, str]) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = text


def _pose(rotation: FloatArray, translation: FloatArray) -> str:
    return number_text([*translation, *rpy_from_rotation(rotation)])


def _add_link(model: Element, name: str, joint: str, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters)
    link = SubElement(model, 'link', name=name)
    SubElement(link, 'pose', relative_to=joint).text = number_text(np.zeros(6))
    inertial = SubElement(link, 'inertial')
    _add_text(inertial, {'pose': number_text([*com, 0.0, 0.0, 0.0]), 'mass': repr(mass)})
    _add_text(SubElement(inertial, 'inertia'),
              {key: repr(float(inertia[place])) for key, place in INERTIA.items()})


def _add_joint(model: Element, written: Written, j: int, above: str) -> None:
    robot, limits = written.arm.robot, written.arm.robot.limits
    ends = [float(limits.lower[j]), float(limits.upper[j])]
    slides, limited = robot.types[j] == PRISMATIC, np.isfinite(ends).all()
    kind = 'prismatic' if slides else 'revolute' if limited else 'continuous'
    joint = SubElement(model, 'joint', name=robot.joints[j], type=kind)
    SubElement(joint, 'pose', relative_to=above).text = _pose(
        robot.rotations[j], robot.translations[j])
    _add_text(joint, {'parent': above, 'child': robot.bodies[j]})
    axis = SubElement(joint, 'axis')
    _add_text(axis, {'xyz': number_text(robot.axes[j])})
    known = {'lower': ends[0], 'upper': ends[1]} if limited else {}
    known |= {key: float(values[j]) for key, values in (  # a URDF has zero where none is known
        ('effort', limits.effort), ('velocity', limits.velocity)) if 0.0 < values[j] < np.inf}
    _add_text(SubElement(axis, 'limit'), {key: repr(value) for key, value in known.items()})
    _add_text(SubElement(axis, 'dynamics'), {
        'damping': repr(float(written.friction.damping[j])),
        'friction': repr(float(written.friction.dry[j]))})
