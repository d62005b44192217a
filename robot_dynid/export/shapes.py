"""The links of a robot with the shapes of a URDF, as elements of MuJoCo's XML."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from robot_dynid.collision.shapes import links_at_rest
from robot_dynid.errors import DynIdError, MissingDependency, RobotError, clipped
from robot_dynid.numbers import SIZE, NumberRange
from robot_dynid.robot.locate import located
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import Reader, parse_urdf, robot_from_urdf
from robot_dynid.robot.urdf_text import number_text
from robot_dynid.types import FloatArray

#: attributes of what is seen, and of what is touched
SEEN = {'contype': '0', 'conaffinity': '0', 'group': '2'}
TOUCHED = {'group': '3'}
#: a part of a colour
COLOUR = NumberRange(0.0, 1.0)
#: kinds of meshes that MuJoCo reads
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
    """All ``links`` with their shapes, the ``assets`` these need, and what is missing."""

    links: tuple[FixedLink, ...]
    assets: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether a link has a shape."""
        return any(link.geoms for link in self.links)

    @classmethod
    def none(cls, robot: RobotModel) -> Shapes:
        """Return the links of ``robot`` without shapes."""
        return cls(tuple(FixedLink(link.name, link.body, link.placement) for link in robot.links))


def placed(rotation: FloatArray, translation: FloatArray) -> dict[str, str]:
    """Return position and axes as MuJoCo has them; none where they are those of the parent.

    ``rotation`` (3, 3), ``translation`` (3,) m.
    """
    found = {}
    if np.any(translation != 0.0):
        found['pos'] = number_text(translation)
    if not np.array_equal(rotation, np.eye(3)):
        found['xyaxes'] = number_text([*rotation[:, 0], *rotation[:, 1]])
    return found


def urdf_shapes(robot: RobotModel, urdf_text: str, source: str) -> Shapes:
    """Return the links of a URDF of the same ``robot``; its meshes are found from ``source``.

    Raises RobotError where the text cannot be read.
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
    """The geoms of links, and the ``meshes`` they use, by file and scale."""

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
                except DynIdError as error:  # a robot moves the same without it
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
            self.warnings.append(f'{error}; it has the usual grey')
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
        raise RobotError(f'{where}: MuJoCo knows no <{geometry.tag}>')

    def _mesh(self, name: str, scale: str, where: str) -> dict[str, str]:
        path = located(name, self._folder)
        if path is None or path.suffix.lower() not in READ:
            why = 'is missing' if path is None else f'is none of {", ".join(READ)}'
            raise RobotError(f'{where}: mesh {clipped(name)} {why}')
        key = str(path.resolve()), scale
        if key not in self.meshes:
            mesh = Element('mesh', name=f'{path.stem}_{len(self.meshes)}', file=key[0],
                           scale=scale, inertia='shell')  # the volume of thin ones is none
            with suppress(MissingDependency):
                from robot_dynid.export.mujoco import require_mesh

                require_mesh(mesh, f'mesh {clipped(name)} of {where}')
            self.meshes[key] = mesh
        return {'type': 'mesh', 'mesh': self.meshes[key].get('name', '')}
