"""URDF of a robot that no URDF describes: its joints, links, limits, inertials and shapes."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.model import PRISMATIC, SHAPES, LinkShape, RobotModel
from robot_dynid.robot.urdf_text import FreeNames, number_text
from robot_dynid.types import FloatArray

#: entries of the inertia by their attribute
INERTIA = {'ixx': (0, 0), 'ixy': (0, 1), 'ixz': (0, 2), 'iyy': (1, 1), 'iyz': (1, 2),
           'izz': (2, 2)}


def made_urdf(robot: RobotModel, links: FloatArray) -> str:
    """Return a URDF of ``robot`` whose bodies have the standard parameters ``links`` (n, 10).

    Frames are those of the robot, for screws z along the axis of the joint. One link per body has
    all that is fixed to it; links fixed to a body are frames without inertial, a body without
    mass has none either. Limits of velocity and effort that are not known are zero, since a URDF
    must state them. Gravity and drives are not in it.
    """
    root = Element('robot', name=robot.name)
    SubElement(root, 'link', name=robot.base_link)
    for j, parent in enumerate(robot.parents):
        above = robot.base_link if parent < 0 else robot.bodies[parent]
        link = SubElement(root, 'link', name=robot.bodies[j])
        if links[j][0] > 0.0:
            _add_inertial(link, links[j])
        for shape in robot.shapes:
            if shape.link == robot.bodies[j]:
                _add_shape(link, shape)
        joint = _joint(root, (robot.joints[j], _kind(robot, j)), (above, robot.bodies[j]),
                       robot.rotations[j], robot.translations[j])
        SubElement(joint, 'axis', xyz=number_text(robot.axes[j]))
        SubElement(joint, 'limit', _limits(robot, j))
    joints = FreeNames(robot.joints, ())
    for fixed in robot.links:
        if fixed.name not in robot.bodies:
            SubElement(root, 'link', name=fixed.name)
            _joint(root, (joints.take(f'{fixed.name}_fixed', 'joint'), 'fixed'),
                   (robot.bodies[fixed.body], fixed.name),
                   fixed.placement[:3, :3], fixed.placement[:3, 3])
    indent(root)
    return f'{tostring(root, encoding="unicode")}\n'


def _add_inertial(link: Element, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters)
    inertial = SubElement(link, 'inertial')
    SubElement(inertial, 'origin', xyz=number_text(com), rpy='0 0 0')
    SubElement(inertial, 'mass', value=repr(mass))
    SubElement(inertial, 'inertia', {
        key: repr(float(inertia[place])) for key, place in INERTIA.items()})


def _add_shape(link: Element, shape: LinkShape) -> None:
    """Add what is seen and what is touched."""
    for tag in ('visual', 'collision'):
        element = SubElement(link, tag)
        SubElement(element, 'origin', xyz=number_text(shape.xyz), rpy=number_text(shape.rpy))
        sizes = iter(shape.sizes)
        SubElement(SubElement(element, 'geometry'), shape.kind, {
            key: number_text([next(sizes) for _ in range(count)])
            for key, count in SHAPES[shape.kind].items()})


def _joint(
    root: Element, named: tuple[str, str], ends: tuple[str, str], rotation: FloatArray,
    translation: FloatArray,
) -> Element:
    """Return a new joint, of this name and type, between the links ``ends``."""
    joint = SubElement(root, 'joint', name=named[0], type=named[1])
    SubElement(joint, 'parent', link=ends[0])
    SubElement(joint, 'child', link=ends[1])
    SubElement(joint, 'origin', xyz=number_text(translation),
               rpy=number_text(rpy_from_rotation(rotation)))
    return joint


def _limits(robot: RobotModel, joint: int) -> dict[str, str]:
    limits = robot.limits
    ends = {key: repr(float(values[joint]))
            for key, values in (('lower', limits.lower), ('upper', limits.upper))
            if np.isfinite(values[joint])}
    return ends | {key: repr(float(np.nan_to_num(values[joint]))) for key, values in (
        ('velocity', limits.velocity), ('effort', limits.effort))}


def _kind(robot: RobotModel, joint: int) -> str:
    if robot.types[joint] == PRISMATIC:
        return 'prismatic'
    limited = np.isfinite([robot.limits.lower[joint], robot.limits.upper[joint]]).all()
    return 'revolute' if limited else 'continuous'
