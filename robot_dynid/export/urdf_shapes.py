"""The shapes of the links of a URDF, as elements of MuJoCo's XML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from robot_dynid.collision.shapes import links_at_rest
from robot_dynid.export.mjcf_elements import FixedLink, Shapes, placed
from robot_dynid.numbers import SIZE
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.package_file import located
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import Reader, parse_urdf, robot_from_urdf
from robot_dynid.robot.urdf_text import number_text

#: attributes of what is seen, and of what is touched
SEEN = {'contype': '0', 'conaffinity': '0', 'group': '2'}
TOUCHED = {'group': '3'}
#: kinds of meshes that MuJoCo reads
READ = ('.stl', '.obj', '.msh')


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
                shape = self._shape(next(iter(element.find('geometry') or ()), None), where)
                if shape is None:
                    continue
                placement = self._reader.origin(element, where)
                yield Element('geom', {**kind, **shape, **self._colour(element), **placed(
                    placement[:3, :3], placement[:3, 3])})

    def _colour(self, element: Element) -> dict[str, str]:
        material = element.find('material')
        if material is None:
            return {}
        colour = material.find('color')
        colour = self._colours.get(material.get('name')) if colour is None else colour
        return {} if colour is None else {'rgba': colour.get('rgba', '0.5 0.5 0.5 1')}

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
        self.warnings.append(f'{where}: MuJoCo knows no <{geometry.tag}>; it is left out')
        return None

    def _mesh(self, name: str, scale: str, where: str) -> dict[str, str] | None:
        path = located(name, self._folder)
        if path is None or path.suffix.lower() not in READ:
            why = 'is missing' if path is None else f'is none of {", ".join(READ)}'
            self.warnings.append(f'{where}: mesh {name} {why}; it is left out')
            return None
        key = str(path.resolve()), scale
        if key not in self.meshes:
            self.meshes[key] = Element('mesh', name=f'{path.stem}_{len(self.meshes)}',
                                       file=key[0], scale=scale)
        return {'type': 'mesh', 'mesh': self.meshes[key].get('name', '')}
