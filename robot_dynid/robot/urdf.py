"""URDF to RobotModel: own link frames kept, fixed and locked joints lumped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.errors import MissingDependency, RobotError, clipped, reported
from robot_dynid.files import read_text
from robot_dynid.numbers import (
    ANGLE,
    DIRECTION,
    LENGTH,
    MASS,
    MOMENT_OF_INERTIA,
    POSITION_LIMIT,
    NumberRange,
    shown,
)
from robot_dynid.robot.inertia import (
    homogeneous,
    parameters_from_com,
    rotation_from_rpy,
    symmetric,
)
from robot_dynid.robot.locate import XACRO_SUFFIX, YAML_SUFFIXES
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.tree import (
    MOVABLE,
    JointDescription,
    LinkDescription,
    Selection,
    build_robot,
)
from robot_dynid.robot.urdf_text import XmlError, made_urdf, xml_root
from robot_dynid.types import FloatArray

MASSLESS = ('it has inertia but no mass, which no body has: it is taken as a frame without '
            'inertial; write its mass, or remove <inertial>')
LINK_MASS = replace(MASS, note='remove <inertial> if the link has no mass')
XACRO = 'is a xacro file; expand it first: xacro FILE > robot.urdf'


@dataclass(frozen=True)
class Reader:
    """Reads numbers out of one file and names the place in every error."""

    source: str

    def fail(self, where: str, what: str) -> RobotError:
        """Return the error to raise about a place."""
        return RobotError(f'{self.source}: {where}: {what}')

    def numbers(
        self, text: str | None, where: str, count: int, allowed: NumberRange
    ) -> FloatArray:
        """Return ``count`` numbers (count,) of an attribute; None: it is missing."""
        if text is None:
            raise self.fail(where, f'is missing; expected {count} finite number(s)')
        if '${' in text:
            raise self.fail(where, f'is {shown(text)}: this {XACRO}')
        try:
            values = [float(word) for word in text.split(maxsplit=count)]
        except ValueError:
            values = []
        if len(values) != count or not all(map(isfinite, values)):
            raise self.fail(where, f'expected {count} finite number(s), found {shown(text)}')
        for value in values:
            if not allowed.low <= value <= allowed.high:
                allowed.read(value, f'{self.source}: {where}', RobotError)
        return np.array(values)

    def attribute(self, element: Element, key: str, where: str, allowed: NumberRange) -> float:
        """Return an attribute that is one number."""
        return float(self.numbers(element.get(key), f'{where} attribute {key}', 1, allowed)[0])

    def name(self, element: Element) -> str:
        """Return the name of an element."""
        name = element.get('name')
        if not name:
            raise self.fail(f'<{element.tag}>', 'has no name; add the attribute name')
        return name

    def origin(self, element: Element, where: str) -> FloatArray:
        """Return the placement (4, 4) of an element in its parent."""
        origin = element.find('origin')
        if origin is None:
            return np.eye(4)
        xyz = self.numbers(origin.get('xyz', '0 0 0'), f'{where} origin xyz', 3, LENGTH)
        rpy = self.numbers(origin.get('rpy', '0 0 0'), f'{where} origin rpy', 3, ANGLE)
        return homogeneous(rotation_from_rpy(rpy), xyz)

    def link(self, element: Element) -> LinkDescription:
        """Return a link."""
        name = self.name(element)
        where = f'link {name!r}'
        inertial = element.find('inertial')
        if inertial is None:
            return LinkDescription(name, np.zeros(10), False)
        mass_element, inertia_element = inertial.find('mass'), inertial.find('inertia')
        if mass_element is None or inertia_element is None:
            raise self.fail(where, '<inertial> needs <mass> and <inertia>')
        keys = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
        nothing = _zero(mass_element, 'value')
        if nothing and all(_zero(inertia_element, k) for k in keys):
            return LinkDescription(name, np.zeros(10), False)  # a frame, written as many do
        mass = 0.0 if nothing else self.attribute(
            mass_element, 'value', f'{where} mass', LINK_MASS)
        six = [self.attribute(inertia_element, k, f'{where} inertia', MOMENT_OF_INERTIA)
               for k in keys]
        if nothing:  # as Bullet's models write bodies that do not move
            return LinkDescription(name, np.zeros(10), False, MASSLESS)
        placement = self.origin(inertial, f'{where} inertial')
        rotation, com = placement[:3, :3], placement[:3, 3]
        inertia = rotation @ symmetric(six) @ rotation.T
        return LinkDescription(name, parameters_from_com(mass, com, inertia), True)

    def joint(self, element: Element) -> JointDescription:
        """Return a joint."""
        name = self.name(element)
        where = f'joint {name!r}'
        kind = element.get('type', '')
        parent, child = element.find('parent'), element.find('child')
        ends = [e.get('link', '') if e is not None else '' for e in (parent, child)]
        if not all(ends):
            raise self.fail(where, 'needs <parent link="..."/> and <child link="..."/>')
        axis_element = element.find('axis')
        text = '1 0 0' if axis_element is None else axis_element.get('xyz')
        axis = self.numbers(text, f'{where} axis', 3, DIRECTION)
        length = float(np.linalg.norm(axis))
        if kind in MOVABLE and length < 1e-9:
            raise self.fail(where, 'its axis has zero length; give a direction such as "0 0 1"')
        return JointDescription(
            name=name, kind=kind, parent=ends[0], child=ends[1],
            placement=self.origin(element, where),
            axis=axis / length if length else axis,
            limits=self.limits(element, kind, where),
            mimic=element.find('mimic') is not None,
        )

    def limits(self, element: Element, kind: str, where: str) -> FloatArray:
        """Return lower, upper, velocity, effort (4,), NaN where the file states none."""
        found = np.full(4, np.nan)
        limit = element.find('limit')
        if limit is None or kind not in MOVABLE:
            return found
        for i, key in enumerate(('lower', 'upper', 'velocity', 'effort')):
            if limit.get(key) is not None and not (kind == 'continuous' and i < 2):
                found[i] = self.attribute(limit, key, f'{where} limit', POSITION_LIMIT)
        if found[0] > found[1]:
            raise self.fail(where, f'lower limit {found[0]:g} is above upper limit {found[1]:g}; '
                                   'swap or correct them')
        return found


def _zero(element: Element, key: str) -> bool:
    """Return whether an attribute is written as zero."""
    return re.fullmatch(r'[-+]?0+(?:\.0*)?(?:[eE][-+]?\d+)?', (element.get(key) or '').strip()
                        ) is not None


def parse_urdf(text: str, source: str) -> Element:
    """Return the root of a URDF text. Raises RobotError when it is something else."""
    try:
        root = xml_root(text)
    except XmlError as error:
        hint = XACRO if 'xacro:' in text else 'repair or export the file again'
        raise RobotError(f'{source}: not well-formed XML ({error}); {hint}') from None
    if any('xacro' in e.tag for e in root.iter()):
        raise RobotError(f'{source}: {XACRO}')
    if root.tag != 'robot':
        raise RobotError(f'{source}: root element is <{clipped(root.tag)}>, expected '
                         '<robot>; give a URDF file')
    return root


def require_unique(names: Sequence[str], what: str, source: str) -> None:
    """Raise RobotError where one of ``names`` is there twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise RobotError(f'{source}: {what} defined more than once: {", ".join(twice)}; '
                         'names must be unique')


@reported
def robot_from_urdf(
    text: str, selection: Selection | None = None, source: str = 'URDF'
) -> RobotModel:
    """Build the robot a URDF text describes.

    ``selection`` chooses base link, tip link or joints; joints that are not chosen are locked at
    zero and their links lumped. Raises RobotError (broken file, loop, mimic or floating joint,
    mass negative), naming the element and the remedy.
    """
    root = parse_urdf(text, source)
    reader = Reader(source)
    links = [reader.link(e) for e in root.findall('link')]
    joints = [reader.joint(e) for e in root.findall('joint')]
    require_unique([x.name for x in links], 'link', source)
    require_unique([x.name for x in joints], 'joint', source)
    return build_robot(
        root.get('name') or Path(source).stem, links, joints, selection or Selection(), source
    )


def read_urdf_text(path: str | Path) -> str:
    """Return the text of a URDF file, line ends as they are.

    Raises UsageError when there is no such file, RobotError when it is not a text.
    """
    return read_text(path, RobotError)


def read_urdf(
    path: str | Path, selection: Selection | None = None,
    arguments: Mapping[str, str] | None = None,
) -> RobotModel:
    """Read a URDF file, or a xacro file with ``arguments``; see robot_from_urdf.

    Raises UsageError when there is no such file, as `expanded` for xacro.
    """
    given = dict(arguments or {})
    robot = robot_from_urdf(urdf_text(path, given), selection, str(path))
    return replace(robot, xacro_arguments=tuple(given.items())) if given else robot


def urdf_text(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """Return the text of a URDF file, or of a xacro file once expanded; see `read_urdf`."""
    if Path(path).suffix == XACRO_SUFFIX:
        return expanded(path, arguments or {})
    if arguments:
        raise RobotError(f'{path}: is no xacro file ({XACRO_SUFFIX}), so it takes no arguments '
                         f'({", ".join(arguments)})')
    return read_urdf_text(path)


def expanded(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """Return the URDF text of a xacro file; ``arguments`` that are not given have their defaults.

    xacro evaluates expressions of the file, so only files that users name themselves come here,
    never those of requests. Raises UsageError when there is no such file, MissingDependency
    without xacro, RobotError when xacro cannot expand it.
    """
    read_text(path, RobotError)
    try:
        import xacro
    except ImportError:
        raise MissingDependency(
            f'{path}: is a xacro file, and the package xacro is not installed: apt install '
            'ros-$ROS_DISTRO-xacro or pip install xacro; or expand it elsewhere: xacro FILE > '
            'robot.urdf') from None
    try:
        return str(xacro.process_file(str(path), mappings=dict(arguments or {})).toxml())
    except Exception as error:  # whatever its expressions raise
        raise RobotError(f'{path}: xacro cannot expand it: {error}') from error


def has_urdf(robot: RobotModel) -> bool:
    """Return whether ``robot`` was read from a URDF file, not from screws or a model file."""
    return bool(robot.source) and Path(robot.source).suffix not in YAML_SUFFIXES


def source_text(robot: RobotModel) -> str:
    """Return the text of the URDF file that ``robot`` was read from.

    For a robot that was not read from one it is made of the description, see `made_urdf`. Raises
    UsageError when the file is gone.
    """
    if not has_urdf(robot):
        return made_urdf(robot, robot.nominal)
    return urdf_text(robot.source, dict(robot.xacro_arguments))
