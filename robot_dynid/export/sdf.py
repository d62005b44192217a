"""SDFormat 1.9 of an arm, for Gazebo: links, joints with damping and friction, limits, frames.

Source: SDFormat specification 1.9, http://sdformat.org/spec
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.urdf import unusual_gravity
from robot_dynid.export.written import Form, Written
from robot_dynid.files import atomic_write
from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.made_urdf import INERTIA
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.urdf_text import number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: in the head of every file; no other file is replaced by one
MARK = b'<!-- SDF of a robot_dynid model'
FORM = Form('SDF', damping=True, dry=True)


@dataclass(frozen=True, eq=False)
class Sdf:
    """The ``text`` of a file, and the arm as it is ``written`` there."""

    text: str
    written: Written

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what the file cannot hold."""
        return (*self.written.warnings(), *unusual_gravity(self.written.arm, 'SDF'))

    def facts(self) -> dict[str, Any]:
        """Return friction as written, missing effort, and the error of Drake's accelerations."""
        try:
            from robot_dynid.export.drake import check_sdf
        except MissingDependency as error:
            return self.written.facts() | {'error': None, 'tool': f'not checked: {error}'}
        return self.written.facts() | check_sdf(self.written, self.text)

    def save(self, path: str | Path) -> None:
        """Write the text in place of an earlier one.

        Raises UsageError for a path where something else is, DynIdError when the file cannot be
        written.
        """
        atomic_write(path, self.text, MARK)


def exported_sdf(arm: IdentifiedArm) -> Sdf:
    """Return the file of ``arm``, fixed to the world by its base link."""
    written, robot = Written(arm, FORM), arm.robot
    root = Element('sdf', version='1.9')
    model = SubElement(root, 'model', name=robot.name)
    SubElement(model, 'link', name=robot.base_link)
    fixed = SubElement(model, 'joint', name=f'{robot.base_link}_fixed', type='fixed')
    _add_text(fixed, {'parent': 'world', 'child': robot.base_link})
    for j, parent in enumerate(robot.parents):
        above = robot.base_link if parent < 0 else robot.bodies[parent]
        _add_joint(model, written, j, above)
        _add_link(model, robot.bodies[j], robot.joints[j], arm.mechanism.links[j])
    for link in robot.links:
        if link.name not in robot.bodies:
            frame = SubElement(model, 'frame', name=link.name,
                               attached_to=robot.bodies[link.body])
            _add_text(frame, {'pose': _pose(link.placement[:3, :3], link.placement[:3, 3])})
    indent(root)
    return Sdf(f'{MARK.decode()} {VERSION} -->\n{tostring(root, encoding="unicode")}\n', written)


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
    known |= {key: float(values[j]) for key, values in (
        ('effort', limits.effort), ('velocity', limits.velocity)) if np.isfinite(values[j])}
    _add_text(SubElement(axis, 'limit'), {key: repr(value) for key, value in known.items()})
    _add_text(SubElement(axis, 'dynamics'), {
        'damping': repr(float(written.friction.damping[j])),
        'friction': repr(float(written.friction.dry[j]))})
