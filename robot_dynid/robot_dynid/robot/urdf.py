"""Build a RobotModel from a URDF; fixed and locked joints are lumped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.errors import MissingDependency, RobotError, clipped, reported
from robot_dynid.files import read_bytes
from robot_dynid.numbers import (
    ANGLE,
    DIRECTION,
    LENGTH,
    MASS,
    MOMENT_OF_INERTIA,
    NumberRange,
    shown,
)
from robot_dynid.robot.description import (
    MOVABLE,
    Description,
    Finding,
    JointDescription,
    LinkDescription,
    Mimic,
)
from robot_dynid.robot.inertia import (
    homogeneous,
    parameters_from_com,
    rotation_from_rpy,
    symmetric,
)
from robot_dynid.robot.locate import XACRO_SUFFIX, YAML_SUFFIXES, name_of
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.tree import Selection, build_robot
from robot_dynid.robot.urdf_text import XmlError, decoded, generate_urdf, xml_root
from robot_dynid.types import FloatArray

MASSLESS = ('it has inertia but no mass and counts as a frame without inertial; write its mass, '
            'or remove <inertial>')
NUMBER = NumberRange(-1e300, 1e300)
LINK_MASS = replace(MASS, note='remove <inertial> if the link has no mass')
#: limits above this [rad or m, their rate, N m or N] count as undefined
LIMITS = {'lower': 1e4, 'upper': 1e4, 'velocity': 1e4, 'effort': 1e9}
XACRO = ('is a xacro file; expand it first: xacro FILE > robot.urdf (arguments as NAME:=VALUE), '
         'or name it .urdf.xacro')
#: substitutions of xacro
MACROS = ('${', '$(')
#: tags of xacro that add no element
DEFINITIONS = ('xacro:property', 'xacro:arg', 'xacro:macro')
#: root elements of other file types, with remedies
OTHERS = {
    'mujoco': 'it is MJCF, a MuJoCo model; give the original URDF, or convert it (pip '
              'install mjcf-urdf-simple-converter)',
    'sdf': 'it is SDF, a Gazebo model; give the original URDF',
    'launch': 'it is a launch file; give the URDF that it names',
    'html': 'it is a web page; download the file itself (on GitHub: Raw)',
}


@dataclass(frozen=True)
class Reader:
    """Parse numbers of one file, with their location in every error."""

    source: str

    def fail(self, where: str, what: str) -> RobotError:
        """Return the error about a location."""
        return RobotError(f'{self.source}: {where}: {what}')

    def numbers(
        self, text: str | None, where: str, count: int, allowed: NumberRange
    ) -> FloatArray:
        """Return ``count`` numbers (count,) of an attribute; None if it is missing."""
        if text is None:
            raise self.fail(where, f'is missing; expected {count} finite number(s)')
        self.expanded(text, where)
        try:
            values = [float(word) for word in text.split(maxsplit=count)]
        except ValueError:
            values = []
        if len(values) != count or not all(map(isfinite, values)):
            hint = '; separate numbers by spaces' if ',' in text else ''
            raise self.fail(where, f'expected {count} finite number(s), found {shown(text)}{hint}')
        for value in values:
            if not allowed.low <= value <= allowed.high:
                allowed.read(value, f'{self.source}: {where}', RobotError)
        return np.array(values)

    def attribute(self, element: Element, key: str, where: str, allowed: NumberRange) -> float:
        """Return a numeric attribute."""
        return float(self.numbers(element.get(key), f'{where} attribute {key}', 1, allowed)[0])

    def expanded(self, text: str, where: str) -> str:
        """Return a text without xacro substitutions; raises RobotError if it has any."""
        if any(macro in text for macro in MACROS):
            raise self.fail(where, f'is {shown(text)}: this {XACRO}')
        return text

    def name(self, element: Element) -> str:
        """Return the name of an element."""
        name = element.get('name')
        if not name:
            raise self.fail(f'<{element.tag}>', 'has no name; add the attribute name')
        return self.expanded(name, f'name of a <{element.tag}>')

    def finding(self, kind: str, error: Exception) -> Finding:
        """Return the finding of a ``kind`` with the text of an error."""
        return Finding(kind, str(error).removeprefix(f'{self.source}: '))

    def refuse_macros(self, element: Element, where: str) -> None:
        """Raise RobotError if an element contains unexpanded xacro."""
        for child in element:
            if child.tag.startswith('xacro:'):
                raise self.fail(where, f'holds <{clipped(child.tag)}>, which is not expanded: '
                                       f'this {XACRO}')

    def origin(self, element: Element, where: str) -> FloatArray:
        """Return the placement (4, 4) of an element in its parent."""
        origin = element.find('origin')
        if origin is None:
            return np.eye(4)
        xyz = self.numbers(origin.get('xyz', '0 0 0'), f'{where} origin xyz', 3, LENGTH)
        rpy = self.numbers(origin.get('rpy', '0 0 0'), f'{where} origin rpy', 3, ANGLE)
        return homogeneous(rotation_from_rpy(rpy), xyz)

    def link(self, element: Element) -> LinkDescription:
        """Return a link; unreadable parts become findings."""
        link = LinkDescription(self.name(element), np.zeros(10), False)
        try:
            self.refuse_macros(element, f'link {link.name!r}')
            inertial = element.find('inertial')
            return link if inertial is None else self.inertial(link, inertial)
        except RobotError as error:
            return replace(link, findings=(self.finding('inertial', error),))

    def inertial(self, link: LinkDescription, element: Element) -> LinkDescription:
        """Return ``link`` with the values of <inertial>; raises RobotError if it cannot be read.
        """
        where = f'link {link.name!r}'
        self.refuse_macros(element, where)
        mass_element, inertia_element = element.find('mass'), element.find('inertia')
        if mass_element is None or inertia_element is None:
            raise self.fail(where, '<inertial> needs <mass> and <inertia>')
        mass = self.attribute(mass_element, 'value', f'{where} mass', NUMBER)
        six = [self.attribute(inertia_element, k, f'{where} inertia', MOMENT_OF_INERTIA)
               for k in ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')]
        if 0.0 <= mass < MASS.low:  # frames, or fixed bodies in models of Bullet
            return replace(link, findings=(
                Finding('massless', f'{where}: {MASSLESS}'),) if any(six) else ())
        LINK_MASS.read(mass, f'{self.source}: {where} mass attribute value', RobotError)
        placement = self.origin(element, f'{where} inertial')
        rotation, com = placement[:3, :3], placement[:3, 3]
        inertia = rotation @ symmetric(six) @ rotation.T
        return replace(link, parameters=parameters_from_com(mass, com, inertia), has_inertial=True)

    def joint(self, element: Element) -> JointDescription:
        """Return a joint; what cannot be read of it is a finding."""
        name, kind = self.name(element), element.get('type', '')
        where = f'joint {name!r}'
        parent, child = element.find('parent'), element.find('child')
        ends = [e.get('link', '') if e is not None else '' for e in (parent, child)]
        if not all(ends):
            raise self.fail(where, 'needs <parent link="..."/> and <child link="..."/>')
        findings: list[Finding] = []

        def read(finding: str, reader: Any, default: Any) -> Any:
            try:
                return reader(element, where)
            except RobotError as error:
                findings.append(self.finding(finding, error))
                return default

        read('placement', self.refuse_macros, None)
        placement = read('placement', self.origin, np.eye(4))
        axis, limits, mimic = np.zeros(3), np.full(4, nan), None
        if kind in MOVABLE:
            axis = read('axis', self.axis, axis)
            mimic = read('placement', self.mimic, None)
            limits = self.limits(element, kind, where, findings)
        return JointDescription(name, kind, self.expanded(ends[0], where),
                                self.expanded(ends[1], where), placement, axis, limits, mimic,
                                tuple(findings))

    def axis(self, element: Element, where: str) -> FloatArray:
        """Return the unit vector (3,) along the axis of a joint."""
        given = element.find('axis')
        axis = self.numbers('1 0 0' if given is None else given.get('xyz'), f'{where} axis', 3,
                            DIRECTION)
        length = float(np.linalg.norm(axis))
        if length < 1e-9:
            raise self.fail(where, 'its axis has zero length; give a direction such as "0 0 1"')
        return np.asarray(axis / length)

    def mimic(self, element: Element, where: str) -> Mimic | None:
        """Return the joint that a joint mimics, and how; None where it moves by itself."""
        given = element.find('mimic')
        if given is None:
            return None
        multiplier, offset = (float(self.numbers(
            given.get(key, default), f'{where} mimic {key}', 1, ANGLE)[0])
            for key, default in (('multiplier', '1'), ('offset', '0')))
        return Mimic(given.get('joint', ''), multiplier, offset)

    def limits(
        self, element: Element, kind: str, where: str, findings: list[Finding]
    ) -> FloatArray:
        """Return lower, upper, velocity, effort (4,), NaN where the file states none.

        What cannot be one is a finding.
        """
        values, none = np.full(4, nan), []
        limit = element.find('limit')
        for i, (key, largest) in enumerate(LIMITS.items()):
            text = None if limit is None else limit.get(key)
            if text is None or (kind == 'continuous' and i < 2):
                continue
            try:
                values[i] = float(self.expanded(text, f'{where} limit {key}'))
            except ValueError:
                pass
            except RobotError as error:
                findings.append(self.finding('axis', error))
            if not abs(values[i]) <= largest or (i > 1 and values[i] < 0.0):
                none.append(f'{key} {shown(text)}')
                values[i] = nan
        if none:
            findings.append(Finding('limit', f'{where}: limit {", ".join(none)}: taken as none'))
        if values[0] > values[1]:
            findings.append(Finding('limit', f'{where}: lower limit {values[0]:g} is above '
                                    f'upper limit {values[1]:g}: both are '
                                    'taken as none; swap or correct them'))
            values[:2] = nan
        return values


def parse_urdf(text: str, source: str) -> Element:
    """Return the root of a URDF text; raises RobotError if it is something else."""
    preamble = (text[:max(text.find('<?xml'), 0)] or text.partition('<')[0]).strip('\ufeff \r\n\t')
    if preamble and '<' in text:
        line = preamble.splitlines()[0]
        raise RobotError(f'{source}: {shown(line)} precedes the XML (<?xml or <robot>); remove it')
    try:
        root = xml_root(text)
    except XmlError as error:
        hint = XACRO if 'xacro:' in text else 'repair or export the file again'
        hint = OTHERS['html'] if '<html' in text.lower() else hint
        raise RobotError(f'{source}: not well-formed XML ({error}); {hint}') from None
    if root.tag != 'robot':
        raise RobotError(f'{source}: root element is <{clipped(root.tag)}>, expected <robot>; '
                         f'{OTHERS.get(root.tag, "give a URDF file")}')
    for child in root:
        if child.tag.startswith('xacro:') and child.tag not in DEFINITIONS:
            raise RobotError(f'{source}: holds <{clipped(child.tag)}>: it {XACRO}')
    return root


def described(text: str, source: str) -> Description:
    """Return the links and joints of a URDF text; raises RobotError if it is not a URDF."""
    root = parse_urdf(text, source)
    reader = Reader(source)
    links = [reader.link(e) for e in root.findall('link')]
    joints = [reader.joint(e) for e in root.findall('joint')]
    require_unique([x.name for x in links], 'link', source)
    require_unique([x.name for x in joints], 'joint', source)
    macros = dict.fromkeys(  # those within links and joints are findings
        f'<{one.tag}>' for above in root.iter() if above.tag not in ('link', 'joint', 'inertial')
        for one in above if one.tag.startswith('xacro:'))
    notes = (f'tags that xacro did not expand are ignored: {clipped(", ".join(macros))}; expand '
             'the file where they matter',) if macros else ()
    return Description(root.get('name') or name_of(source),
                       {link.name: link for link in links}, joints, source, notes)


def require_unique(names: Sequence[str], what: str, source: str) -> None:
    """Raise RobotError if one of ``names`` occurs twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise RobotError(f'{source}: {what} defined more than once: {", ".join(twice)}; '
                         'names must be unique')


@reported
def robot_from_urdf(
    text: str, selection: Selection | None = None, source: str = 'URDF'
) -> RobotModel:
    """Build the robot described by a URDF text.

    ``selection`` selects base link, tip link or joints; other joints are locked at zero and their
    links lumped. Unreadable data that the dynamics do not need is a warning. Raises RobotError
    (broken file, loop, floating joint, negative mass), naming the element and the remedy.
    """
    return build_robot(described(text, source), selection or Selection())


def read_urdf_text(path: str | Path) -> str:
    """Return the text of a URDF file in any encoding, with its line ends.

    Raises UsageError if there is no such file, RobotError if it is not a text.
    """
    return decoded(read_bytes(path, RobotError), str(path))


def read_urdf(
    path: str | Path, selection: Selection | None = None,
    arguments: Mapping[str, str] | None = None,
) -> RobotModel:
    """Read a URDF file, or a xacro file with ``arguments``; see robot_from_urdf.

    Raises UsageError if there is no such file, and as `expanded` for xacro.
    """
    given = dict(arguments or {})
    robot = robot_from_urdf(urdf_text(path, given), selection, str(path))
    return replace(robot, xacro_arguments=tuple(given.items())) if given else robot


def urdf_text(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """Return the text of a URDF file, or of a xacro file once expanded; see `read_urdf`."""
    if Path(path).suffix == XACRO_SUFFIX:
        return expanded(path, arguments or {})
    if arguments:
        raise RobotError(f'{path}: not a xacro file ({XACRO_SUFFIX}); remove the arguments '
                         f"{', '.join(arguments)}")
    return read_urdf_text(path)


def expanded(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """Expand a xacro file to URDF text; missing ``arguments`` have their defaults.

    xacro evaluates expressions of the file, so it must be named by the user, never by a request.
    Raises UsageError if there is no such file, MissingDependency without xacro, RobotError if
    xacro cannot expand it.
    """
    read_bytes(path, RobotError)
    try:
        import xacro
    except ImportError:
        raise MissingDependency(
            f'{path}: is a xacro file, and the package xacro is not installed: apt install '
            'ros-$ROS_DISTRO-xacro or pip install xacro; or expand it elsewhere: xacro FILE > '
            'robot.urdf') from None
    try:
        return str(xacro.process_file(str(path), mappings=dict(arguments or {})).toxml())
    except Exception as error:  # any error of its expressions
        raise RobotError(f'{path}: xacro cannot expand it: {error}') from error


def has_urdf(robot: RobotModel) -> bool:
    """Return True if ``robot`` was read from a URDF file, not from screws or a model file."""
    return bool(robot.source) and Path(robot.source).suffix not in YAML_SUFFIXES


def source_text(robot: RobotModel) -> str:
    """Return the text of the URDF file that ``robot`` was read from.

    For other robots it is generated, see `generate_urdf`. Raises UsageError for a missing file.
    """
    if not has_urdf(robot):
        return generate_urdf(robot, robot.nominal)
    return urdf_text(robot.source, dict(robot.xacro_arguments))
