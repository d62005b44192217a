"""URDF as text: XML elements, edits in place, and generated URDFs.

XML is read without entities and document types, with limited depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.etree.ElementTree import Element as XmlElement
from xml.etree.ElementTree import SubElement, TreeBuilder, indent, tostring
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from robot_dynid.errors import RobotError, clipped
from robot_dynid.robot.inertia import com_from_parameters, rpy_from_rotation
from robot_dynid.robot.model import PRISMATIC, SHAPES, LinkShape, RobotModel
from robot_dynid.types import FloatArray

#: encoding in the first line of an XML file
_DECLARED = re.compile(r'\s*<\?xml\b[^>]*?\bencoding\s*=\s*["\']([^"\']*)["\']')
#: encodings by the first bytes of a file: byte order marks, and UTF-16 without one
_BEGINS = {b'\xef\xbb\xbf': 'utf-8-sig', b'\xff\xfe': 'utf-16', b'\xfe\xff': 'utf-16',
           b'<\0': 'utf-16-le', b'\0<': 'utf-16-be'}
_START_TAG = re.compile(rb'<[^\s/>]+(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')
_ATTRIBUTE = re.compile(rb'([^\s=<>/"\']+)\s*=\s*("[^"]*"|\'[^\']*\')')
STEP = b'  '
#: limit of nested elements; a URDF has five levels
DEPTH = 64
#: limit of elements
ELEMENTS = 300_000
#: entries of the inertia by their attribute
INERTIA = {'ixx': (0, 0), 'ixy': (0, 1), 'ixz': (0, 2), 'iyy': (1, 1), 'iyz': (1, 2),
           'izz': (2, 2)}


class XmlError(Exception):
    """The text is not XML, or uses features that are not read."""


class _Builder(TreeBuilder):
    """Build elements from parser events."""

    def __init__(self, parser: Any) -> None:
        super().__init__()
        self._depth, self._count = 0, 0
        parser.StartElementHandler = self.begin
        parser.EndElementHandler = self.finish
        parser.CharacterDataHandler = self.data
        parser.StartDoctypeDeclHandler = self.refuse

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element; raises XmlError beyond the limits of number and depth."""
        self._depth += 1
        self._count += 1
        if self._depth > DEPTH:
            raise XmlError(f'elements nested more than {DEPTH} deep')
        if self._count > ELEMENTS:
            raise XmlError(f'more than {ELEMENTS} elements')
        self.start(tag, attributes)

    def finish(self, tag: str) -> None:
        """Close an element."""
        self._depth -= 1
        self.end(tag)

    def refuse(self, *_: object) -> NoReturn:
        """Refuse a document type, which could declare entities."""
        raise XmlError('document types (<!DOCTYPE>) are not read; remove it and expand entities')


def xml_root(text: str) -> XmlElement:
    """Return the root element of a text; prefixes stay in the tags. Raises XmlError."""
    parser = expat.ParserCreate('utf-8')
    builder = _Builder(parser)
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise XmlError(str(error)) from None
    except UnicodeError:
        raise XmlError('has invalid characters') from None
    return builder.close()


def decoded(content: bytes, source: str) -> str:
    """Decode an XML file by its byte order mark, its declared encoding, or UTF-8.

    The result declares UTF-8, without leading blank lines. Raises RobotError if it is not in that
    encoding.
    """
    mark = next((name for start, name in _BEGINS.items() if content.startswith(start)), '')
    match = _DECLARED.match(content.decode('latin-1')) if not mark else None
    declared = match[1] if match else ''
    encoding = mark or declared or 'utf-8'
    try:
        if declared.lower().replace('_', '-').startswith(('utf-16', 'utf-32', 'ucs')):
            raise LookupError  # reported below
        text = content.decode('gb18030' if encoding.lower() in ('gb2312', 'gbk') else encoding)
    except (LookupError, UnicodeError) as error:
        if '\0' in content.decode('latin-1') or not content.lstrip().startswith(b'<'):
            raise RobotError(f'{source}: not a text file; give a URDF file') from None
        where = f' (byte {error.start})' if isinstance(error, UnicodeDecodeError) else ''
        what = f'the {clipped(declared)} that its first line declares' if declared else encoding
        raise RobotError(f'{source}: not a text in {what}{where}; convert it from its encoding, '
                         'such as gbk or cp1252: iconv -f ENCODING -t UTF-8 FILE > robot.urdf, '
                         'and declare encoding="UTF-8"') from None
    text = text.lstrip() if text.lstrip().startswith('<?xml') else text
    declaration = _DECLARED.match(text)
    if declaration is None or declaration[1].lower() == 'utf-8':
        return text
    return f'{text[:declaration.start(1)]}UTF-8{text[declaration.end(1):]}'


def number_text(values: Iterable[float]) -> str:
    """Return numbers as an attribute, without loss."""
    return ' '.join(repr(float(value) + 0.0) for value in values)


class FreeNames:
    """Unique names of elements, other than ``reserved`` ones.

    Replacement names avoid the ``wanted`` ones. A ``separator`` in names becomes an underscore.
    """

    def __init__(
        self, reserved: Iterable[str], wanted: Iterable[str], separator: str = ''
    ) -> None:
        self._taken, self._wanted = set(reserved), set(wanted)
        self._separator = separator
        self._changed: list[tuple[str, str, str]] = []

    def take(self, name: str, kind: str = 'link') -> str:
        """Return ``name`` if it is free, else one that ends in ``kind``."""
        free = name.replace(self._separator, '_') if self._separator else name
        while free in self._taken or (free != name and free in self._wanted):
            free += f'_{kind}'
        self._taken.add(free)
        if free != name:
            self._changed.append((kind, name, free))
        return free

    def warnings(self, form: str) -> Iterator[str]:
        """Yield a sentence about each element renamed in a file of type ``form``."""
        for kind, name, free in self._changed:
            yield (f'{kind} {name!r} is renamed to {free!r} in {form}: its name is reserved or '
                   'taken')


@dataclass(eq=False)
class Element:
    """An element and its position: ``start``, ``head`` after its start tag, ``tail``, ``end``.

    Positions are bytes of the UTF-8 text; ``tail`` is the begin of the end tag, ``end`` the
    position after it. In a self-closing element the last three are equal.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    head: int
    tail: int = 0
    end: int = 0
    children: list[Element] = field(default_factory=list)

    def find(self, tag: str) -> Element | None:
        """Return the first child with this tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def named(self, tag: str) -> dict[str, Element]:
        """Return the children with this tag by their attribute name."""
        return {c.attributes['name']: c for c in self.children
                if c.tag == tag and 'name' in c.attributes}


class UrdfText:
    """A well-formed XML text with pending edits.

    Raises RobotError, which names ``source``, if `xml_root` refuses the text.
    """

    def __init__(self, text: str, source: str = 'URDF') -> None:
        self._data = text.encode()
        self._changes: list[tuple[int, int, bytes]] = []
        self._open: list[Element] = []
        self._parser = expat.ParserCreate('utf-8')
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        try:
            xml_root(text)
        except XmlError as error:
            raise RobotError(f'{source}: not well-formed XML ({error})') from None
        self._parser.Parse(self._data, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex
        match = _START_TAG.match(self._data, start)
        assert match is not None  # entities are refused
        element = Element(tag, attributes, start, match.end())
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, tag: str) -> None:
        element = self._open.pop()
        if self._self_closing(element):
            element.tail = element.end = element.head
        else:
            element.tail = self._parser.CurrentByteIndex
            element.end = self._data.index(b'>', element.tail) + 1

    def _self_closing(self, element: Element) -> bool:
        return self._data[element.head - 2:element.head] == b'/>'

    def _before(self, element: Element) -> bytes:
        """Return the line break and indentation before an element."""
        text = self._data[:element.start]
        rest = text.rstrip(b' \t')
        if rest.endswith(b'\n'):
            rest = rest[:-1].removesuffix(b'\r')
        return text[len(rest):]

    def set_numbers(self, element: Element, values: Mapping[str, Sequence[float]]) -> None:
        """Replace numeric attributes in place; missing ones are appended.

        Attributes with the same values stay unchanged.
        """
        places = {m.group(1).decode(): m.span(2)
                  for m in _ATTRIBUTE.finditer(self._data, element.start, element.head)}
        new = b''
        for name, numbers in values.items():
            text = number_text(numbers).encode()
            if name not in places:
                new += b' %s="%s"' % (name.encode(), text)
            elif not _same(element.attributes[name], numbers):
                start, stop = places[name]
                self._change(start + 1, stop - 1, text)
        close = element.head - (2 if self._self_closing(element) else 1)
        while self._data[close - 1:close].isspace():
            close -= 1
        self._change(close, close, new)

    def add_attribute(self, element: Element, name: str, text: str) -> None:
        """Add a missing attribute to an element."""
        place = element.start + len(f'<{element.tag}'.encode())
        self._change(place, place, f' {name}={quoteattr(text)}'.encode())

    def insert(self, parent: Element, lines: Sequence[str]) -> None:
        """Insert the ``lines`` of one element before the children of ``parent``.

        A tab at the beginning of a line stands for one level of indentation.
        """
        outer = self._before(parent)
        inner = self._before(parent.children[0]) if parent.children else \
            outer + STEP if b'\n' in outer else b''
        self._put(parent, inner, outer, lines, parent.head)

    def append(self, parent: Element, line: str) -> None:
        """Append one element after the children of ``parent``, which must have some."""
        first, last = parent.children[0], parent.children[-1]
        self._put(parent, self._before(first), b'', [line], last.end)

    def _put(
        self, parent: Element, inner: bytes, outer: bytes, lines: Sequence[str], place: int
    ) -> None:
        step = b''
        if b'\n' in inner:
            step = inner[len(outer):] if inner.startswith(outer) else STEP
        markup = b''.join(
            inner + step * (len(line) - len(line.lstrip('\t'))) + line.lstrip('\t').encode()
            for line in lines)
        if self._self_closing(parent):
            close = f'</{parent.tag}>'.encode()
            self._change(parent.head - 2, parent.head, b'>' + markup + outer + close)
        elif parent.head == parent.tail:
            self._change(place, place, markup + outer)
        else:
            self._change(place, place, markup)

    def _change(self, start: int, stop: int, new: bytes) -> None:
        self._changes.append((start, stop, new))

    def changed(self) -> str:
        """Return the text with all edits applied."""
        pieces, place = [], 0
        for start, stop, new in sorted(self._changes, key=lambda change: change[:2]):
            pieces += [self._data[place:start], new]
            place = stop
        return b''.join([*pieces, self._data[place:]]).decode()


def _same(text: str, numbers: Sequence[float]) -> bool:
    try:
        return [float(word) for word in text.split()] == [float(value) for value in numbers]
    except ValueError:
        return False


def generate_urdf(robot: RobotModel, links: FloatArray) -> str:
    """Generate a URDF of ``robot`` whose bodies have the standard parameters ``links`` (n, 10).

    Frames are those of the robot, for screws z along the joint axis. One link per body includes
    all links fixed to it; these become frames without inertial, as do bodies without mass. Unknown
    limits of velocity and effort are zero, because a URDF must state them. Gravity and drives are
    not included.
    """
    root = XmlElement('robot', name=robot.name)
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


def _add_inertial(link: XmlElement, parameters: FloatArray) -> None:
    mass, com, inertia = com_from_parameters(parameters)
    inertial = SubElement(link, 'inertial')
    SubElement(inertial, 'origin', xyz=number_text(com), rpy='0 0 0')
    SubElement(inertial, 'mass', value=repr(mass))
    SubElement(inertial, 'inertia', {
        key: repr(float(inertia[place])) for key, place in INERTIA.items()})


def _add_shape(link: XmlElement, shape: LinkShape) -> None:
    """Add visual and collision geometry."""
    for tag in ('visual', 'collision'):
        element = SubElement(link, tag)
        SubElement(element, 'origin', xyz=number_text(shape.xyz), rpy=number_text(shape.rpy))
        sizes = iter(shape.sizes)
        SubElement(SubElement(element, 'geometry'), shape.kind, {
            key: number_text([next(sizes) for _ in range(count)])
            for key, count in SHAPES[shape.kind].items()})


def _joint(
    root: XmlElement, named: tuple[str, str], ends: tuple[str, str], rotation: FloatArray,
    translation: FloatArray,
) -> XmlElement:
    """Add a joint, of this name and type, between the links ``ends``."""
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
