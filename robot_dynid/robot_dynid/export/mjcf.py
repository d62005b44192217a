"""MJCF of an arm: links with shapes, joints with friction, rotors, gears and motors.

The rotor and friction of a motor that turns with several joints are those of a tendon. The motor
of an elastic gear is a separate rotor in the world, behind a spring and a damper. Source: MuJoCo
documentation, XML reference. Position servos are driven by commands of position, motors by torque.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from robot_dynid.collision.shapes import links_at_rest
from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.errors import DynIdError, MissingDependency, RobotError, clipped
from robot_dynid.export.identified_arm import IdentifiedArm
from robot_dynid.export.text_file import TextFile, elements, read_by
from robot_dynid.export.written import (
    FRICTION_IMPEDANCE,
    Form,
    Written,
    gear_name,
    rotor_name,
)
from robot_dynid.numbers import SIZE, NumberRange
from robot_dynid.robot.inertia import com_from_parameters
from robot_dynid.robot.locate import located
from robot_dynid.robot.model import POSITION_ERROR, REVOLUTE, RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import Reader, parse_urdf, require_unique, robot_from_urdf
from robot_dynid.robot.urdf_text import FreeNames, number_text
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

if TYPE_CHECKING:
    from robot_dynid.export.mujoco import MjModel

#: header of every file
MARK = b'<!-- MJCF of a robot_dynid model'
FORM = Form('MJCF', rotors=True, coupled=True, damping=True, dry=True, offset=True, gears=True)
#: default simulation step [s], smaller for stiff gears
WRITTEN_TIMESTEP = 5e-4
#: largest phase [rad] per step of the fastest gear vibration
GEAR_ANGLE_PER_STEP = 0.25
#: mass [kg] of a rotor body in the world, carried by no joint
ROTOR_MASS = 1e-3
#: attributes of visual and of collision geometry
SEEN = {'contype': '0', 'conaffinity': '0', 'group': '2'}
TOUCHED = {'group': '3'}
#: a part of a colour
COLOUR = NumberRange(0.0, 1.0)
#: mesh types of MuJoCo
READ = ('.stl', '.obj', '.msh')


@dataclass(frozen=True, eq=False)
class FixedLink:
    """A link on the body ``body`` (-1: the base), at ``placement`` (4, 4), with its ``geoms``."""

    name: str
    body: int
    placement: FloatArray
    geoms: tuple[Element, ...] = ()


@dataclass(frozen=True, eq=False)
class Shapes:
    """All ``links`` with their shapes, the ``assets`` they need, and ``warnings`` on missing ones.
    """

    links: tuple[FixedLink, ...]
    assets: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """True if a link has a shape."""
        return any(link.geoms for link in self.links)

    @classmethod
    def none(cls, robot: RobotModel) -> Shapes:
        """Return the links of ``robot`` without shapes."""
        return cls(tuple(FixedLink(link.name, link.body, link.placement) for link in robot.links))


def placed(rotation: FloatArray, translation: FloatArray) -> dict[str, str]:
    """Return position and axes in MuJoCo's notation; empty if they are those of the parent.

    ``rotation`` (3, 3), ``translation`` (3,) m.
    """
    attributes = {}
    if np.any(translation != 0.0):
        attributes['pos'] = number_text(translation)
    if not np.array_equal(rotation, np.eye(3)):
        attributes['xyaxes'] = number_text([*rotation[:, 0], *rotation[:, 1]])
    return attributes


def urdf_shapes(robot: RobotModel, urdf_text: str, source: str) -> Shapes:
    """Return the links of a URDF of the same ``robot``; its meshes are located from ``source``.

    Raises RobotError if the text cannot be read.
    """
    root = parse_urdf(urdf_text, source)
    read = robot_from_urdf(
        urdf_text, Selection(base_link=robot.base_link, joints=robot.joints), source)
    places = {link.name: (link.body, link.placement) for link in read.links}
    places |= {name: (-1, placement) for name, placement in links_at_rest(root, read).items()}
    drawn = _Drawing(root, Reader(source))
    links = tuple(
        FixedLink(name, *places[name], tuple(drawn.geoms(element)))
        for element in root.findall('link') if (name := element.get('name', '')) in places)
    return Shapes(links, tuple(drawn.meshes.values()), tuple(drawn.warnings))


class _Drawing:
    """Geoms of links, and the ``meshes`` they use, by file and scale."""

    def __init__(self, root: Element, reader: Reader) -> None:
        self._reader, self._folder = reader, Path(reader.source).parent
        self._colours = {e.get('name'): colour for e in root.findall('material')
                         if (colour := e.find('color')) is not None}
        self.meshes: dict[tuple[str, str], Element] = {}
        self.warnings: list[str] = []

    def geoms(self, link: Element) -> Iterator[Element]:
        """Yield the geoms of a <link>."""
        for tag, kind in (('visual', SEEN), ('collision', TOUCHED)):
            for element in link.findall(tag):
                where = f'link {link.get("name")!r} {tag}'
                try:
                    shape = self._shape(next(iter(element.find('geometry') or ()), None), where)
                    placement = self._reader.origin(element, where)
                    colour = self._colour(element, where)
                except DynIdError as error:  # dynamics do not depend on it
                    self.warnings.append(f'{error}; it is left out')
                    continue
                if shape is not None:
                    yield Element('geom', {**kind, **shape, **colour, **placed(
                        placement[:3, :3], placement[:3, 3])})

    def _colour(self, element: Element, where: str) -> dict[str, str]:
        material = element.find('material')
        if material is None:
            return {}
        colour = material.find('color')
        colour = self._colours.get(material.get('name')) if colour is None else colour
        try:
            return {} if colour is None else {'rgba': number_text(self._reader.numbers(
                colour.get('rgba', '0.5 0.5 0.5 1'), f'{where} rgba', 4, COLOUR))}
        except RobotError as error:
            self.warnings.append(f'{error}; it is grey')
            return {}

    def _shape(self, geometry: Element | None, where: str) -> dict[str, str] | None:
        def numbers(key: str, count: int = 1) -> list[float]:
            assert geometry is not None
            read = self._reader.numbers(geometry.get(key), f'{where} {key}', count, SIZE)
            return [float(number) for number in read]

        if geometry is None:
            return None
        if geometry.tag == 'box':
            return {'type': 'box', 'size': number_text(0.5 * x for x in numbers('size', 3))}
        if geometry.tag == 'sphere':
            return {'type': 'sphere', 'size': number_text(numbers('radius'))}
        if geometry.tag in ('cylinder', 'capsule'):
            return {'type': geometry.tag, 'size': number_text(
                [*numbers('radius'), 0.5 * numbers('length')[0]])}
        if geometry.tag == 'mesh':
            return self._mesh(geometry.get('filename', ''), geometry.get('scale', '1 1 1'), where)
        raise RobotError(f'{where}: MuJoCo does not support <{geometry.tag}>')

    def _mesh(self, name: str, scale: str, where: str) -> dict[str, str]:
        path = located(name, self._folder)
        if path is None or path.suffix.lower() not in READ:
            why = 'is missing' if path is None else f'is none of {", ".join(READ)}'
            raise RobotError(f'{where}: mesh {clipped(name)} {why}')
        key = str(path.resolve()), scale
        if key not in self.meshes:
            mesh = Element('mesh', name=f'{path.stem}_{len(self.meshes)}', file=key[0],
                           scale=scale, inertia='shell')  # thin meshes have no volume
            with suppress(MissingDependency):
                from robot_dynid.export.mujoco import require_mesh

                require_mesh(mesh, f'mesh {clipped(name)} of {where}')
            self.meshes[key] = mesh
        return {'type': 'mesh', 'mesh': self.meshes[key].get('name', '')}


@dataclass(frozen=True, eq=False)
class Mjcf(TextFile):
    """MJCF file of an arm."""

    written: Written = field(kw_only=True)
    mark = MARK

    def model(self) -> MjModel:
        """Return MuJoCo's model.

        Raises MissingDependency if MuJoCo is not installed, ModelError if it refuses the text.
        """
        from robot_dynid.export.mujoco import mujoco

        with read_by('MuJoCo', FORM.name):
            return mujoco.MjModel.from_xml_string(self.text)

    def parse(self) -> None:
        """Read the text as XML with unique names; raises DynIdError."""
        bodies = elements(self.text, FORM.name).iter('body')
        require_unique(['world', *(e.attrib['name'] for e in bodies)], 'body', FORM.name)

    def load(self) -> dict[str, Any]:
        """Return the error of MuJoCo's accelerations; raises as `model`."""
        from robot_dynid.export.mujoco import check

        return check(self.written, self.model())


def axis_inertia(written: Written) -> FloatArray:
    """Return the inertia (a,) kg m^2 of the rotor of each axis of friction."""
    mechanism = written.mechanism
    axes, n = mechanism.friction.axes, mechanism.robot.n
    pairs = np.einsum('ai,aj->aij', axes, axes).reshape(len(axes), n * n)
    inertia = np.linalg.lstsq(pairs.T, mechanism.rotors.inertia.ravel(), rcond=None)[0]
    return np.where(inertia > 1e-12 * np.abs(inertia).max(), inertia, 0.0)


def exported_mjcf(arm: IdentifiedArm, shapes: Shapes | None = None) -> Mjcf:
    """Return the MJCF of ``arm``, with or without ``shapes``."""
    written, drawn = Written(arm, FORM), shapes or Shapes.none(arm.robot)
    document = _Document(written, drawn)
    return Mjcf(document.text(), written=written, warnings=(
        *written.warnings(), *drawn.warnings, *document.names.warnings(FORM.name)))


def time_step(written: Written) -> float:
    """Return a step [s] in which the fastest vibration of the gears is small."""
    gears, robot = written.mechanism.gears, written.arm.robot
    if gears is None:
        return WRITTEN_TIMESTEP
    q, _, _ = written.arm.states(64)
    matrix = mass_matrix(robot, q, written.arm.mechanism.links)
    soft = np.linalg.inv(matrix)[:, gears.joints, gears.joints].max(axis=0)
    fastest = float(np.sqrt(gears.stiffness * (1.0 / gears.inertia + soft)).max())
    return min(WRITTEN_TIMESTEP, float(f'{GEAR_ANGLE_PER_STEP / fastest:.1g}'))


class _Document:
    """The elements of one file."""

    def __init__(self, written: Written, shapes: Shapes) -> None:
        self._written, self._shapes = written, shapes
        self._mechanism, self._robot = written.mechanism, written.arm.robot
        self._step = time_step(written)
        self._inertia = axis_inertia(written)
        robot = self._robot
        self.names = FreeNames(
            ('world',), (*robot.bodies, *(link.name for link in shapes.links), robot.base_link))
        self.root = Element('mujoco', model=self._robot.name)
        SubElement(self.root, 'compiler', angle='radian', autolimits='true',
                   inertiafromgeom='false')
        SubElement(self.root, 'option', timestep=repr(self._step), integrator='implicitfast',
                   gravity=number_text(self._robot.gravity), tolerance='1e-10')
        assets, self._world = SubElement(self.root, 'asset'), SubElement(self.root, 'worldbody')
        assets.extend(shapes.assets)
        self._contact, self._tendons, self._actuators = (
            SubElement(self.root, tag) for tag in ('contact', 'tendon', 'actuator'))
        self._add_links()
        self._add_gears()
        self._add_axes()
        self._add_motors()

    def text(self) -> str:
        """Return the file."""
        for part in list(self.root):
            if not len(part) and not part.attrib:
                self.root.remove(part)
        indent(self.root)
        return f'{MARK.decode()} {VERSION} -->\n{tostring(self.root, encoding="unicode")}\n'

    def _add_links(self) -> None:
        robot = self._robot
        base = self._world
        if robot.base_link != 'world':
            base = SubElement(base, 'body', name=self.names.take(robot.base_link))
        bodies: list[Element] = []
        for j, (name, parent) in enumerate(zip(robot.bodies, robot.parents, strict=True)):
            above = base if parent < 0 else bodies[parent]
            body = SubElement(above, 'body', {
                'name': self.names.take(name),
                **placed(robot.rotations[j], robot.translations[j])})
            bodies.append(body)
            _add_inertial(body, self._mechanism.bodies[j])
            SubElement(body, 'joint', {
                'name': robot.joints[j], 'axis': number_text(robot.axes[j]),
                'type': 'hinge' if robot.types[j] == REVOLUTE else 'slide', **_range(robot, j)})
            if parent < 0 and self._shapes.any:  # MuJoCo merges a fixed base with the world
                SubElement(self._contact, 'exclude', body1=base.get('name', 'world'),
                           body2=body.get('name', ''))
        made = {robot.base_link: base, **dict(zip(robot.bodies, bodies, strict=True))}
        for link in self._shapes.links:
            self._add_link(made.get(link.name), base if link.body < 0 else bodies[link.body], link)

    def _add_link(self, body: Element | None, parent: Element, link: FixedLink) -> None:
        """Add the shapes of a link; a link fixed to ``parent`` gets a separate body."""
        if body is None:
            body = SubElement(parent, 'body', {'name': self.names.take(link.name), **placed(
                link.placement[:3, :3], link.placement[:3, 3])})
        body.extend(link.geoms)

    def _add_gears(self) -> None:
        gears = self._mechanism.gears
        for i, j in enumerate(gears.joints if gears is not None else ()):
            assert gears is not None
            name, hinge = self._robot.joints[j], self._robot.types[j] == REVOLUTE
            inertia = float(gears.inertia[i])
            body = SubElement(self._world, 'body', name=self.names.take(rotor_name(name)),
                              gravcomp='1')
            SubElement(body, 'inertial', pos='0 0 0', mass=repr(ROTOR_MASS if hinge else inertia),
                       diaginertia=number_text([inertia] * 3))
            SubElement(body, 'joint', name=rotor_name(name), axis='0 0 1',
                       type='hinge' if hinge else 'slide')
            rest = float(gears.offset[i] / gears.stiffness[i])
            forward = 1.0 if rest <= 0.0 else -1.0  # MuJoCo allows no negative length
            tendon = SubElement(
                self._tendons, 'fixed', name=gear_name(name), springlength=repr(abs(rest)),
                stiffness=repr(float(gears.stiffness[i])), damping=repr(float(gears.damping[i])))
            SubElement(tendon, 'joint', joint=rotor_name(name), coef=repr(forward))
            SubElement(tendon, 'joint', joint=name, coef=repr(-forward))

    def _add_axes(self) -> None:
        """Give joints and tendons the rotors and friction of their motors."""
        friction, axes = self._written.friction, self._mechanism.friction.axes
        joints = {e.get('name'): e for e in self.root.iter('joint') if e.get('type')}
        elastic = self._mechanism.gears.joints if self._mechanism.gears is not None else ()
        coupled = self._robot.drive.coupled
        for i, row in enumerate(axes):
            if i < self._robot.n:
                owner = joints[_motor_joint(self._robot.joints[i], i in elastic)]
            else:
                name = self._robot.joints[coupled[i - self._robot.n]]
                owner = SubElement(self._tendons, 'fixed', name=f'{name}_motor')
                for j in np.flatnonzero(row):
                    SubElement(owner, 'joint', joint=self._robot.joints[j], coef=repr(
                        float(row[j])))
            inertia = 0.0 if i in elastic else self._inertia[i]
            for key, value in (('armature', inertia), ('damping', friction.damping[i]),
                               ('frictionloss', friction.dry[i])):
                if value > 0.0:
                    owner.set(key, repr(float(value)))
            if friction.dry[i] > 0.0:
                owner.set('solreffriction', number_text([-1.0, -1.0 / self._step]))
                owner.set('solimpfriction', number_text(
                    [FRICTION_IMPEDANCE, FRICTION_IMPEDANCE, 1e-3, 0.5, 2.0]))

    def _add_motors(self) -> None:
        gears = self._mechanism.gears
        elastic = gears.joints if gears is not None else ()
        offsets = self._mechanism.friction.axes.T @ self._written.friction.offset
        for j, name in enumerate(self._robot.joints):
            offset = float(offsets[j])
            more: dict[str, str] = {}
            if offset != 0.0:
                more = {'biastype': 'affine', 'biasprm': number_text([-offset, 0.0, 0.0])}
            if self._robot.drive.kind == POSITION_ERROR:
                SubElement(self._actuators, 'general', {
                    'name': name, 'joint': name, **self._servo(j, offset)})
                continue
            limit = float(self._robot.limits.effort[j])
            if np.isfinite(limit) and limit > 0.0:
                more['ctrlrange'] = number_text([-limit, limit])
            SubElement(self._actuators, 'general', {
                'name': name, 'joint': _motor_joint(name, j in elastic), **more})


    def _servo(self, joint: int, offset: float) -> dict[str, str]:
        """Return the attributes of the position servo of a joint with a constant friction torque.
        """
        drive, gain = self._robot.drive, float(self._robot.torque_factors[joint])
        assert drive.error_limit is not None
        late = 0.0 if drive.derivative_time is None else float(drive.derivative_time[joint])
        limit = abs(gain) * float(drive.error_limit[joint])
        attributes = {'gainprm': repr(gain), 'biastype': 'affine',
                      'biasprm': number_text([-offset, -gain, -gain * late]),
                      'forcerange': number_text([-limit - offset, limit - offset])}
        steps = round(self._written.arm.delay / self._step)
        if steps > 0:
            attributes |= {'delay': repr(steps * self._step), 'nsample': str(steps)}
        return attributes


def _motor_joint(joint: str, elastic: bool) -> str:
    return rotor_name(joint) if elastic else joint


def _range(robot: RobotModel, joint: int) -> dict[str, str]:
    ends = float(robot.limits.lower[joint]), float(robot.limits.upper[joint])
    return {'range': number_text(ends)} if np.isfinite(ends).all() and ends[0] < ends[1] else {}


def _add_inertial(body: Element, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters)
    six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    SubElement(body, 'inertial', pos=number_text(com), mass=repr(mass),
               fullinertia=number_text(six))
