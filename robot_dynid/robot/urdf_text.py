"""Changes at places in a URDF text; every other character of it stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from robot_dynid.errors import RobotError
from robot_dynid.robot.xml_text import XmlError, xml_root

_START_TAG = re.compile(rb'<[^\s/>]+(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')
_ATTRIBUTE = re.compile(rb'([^\s=<>/"\']+)\s*=\s*("[^"]*"|\'[^\']*\')')
STEP = b'  '


def number_text(values: Iterable[float]) -> str:
    """Return numbers as an attribute, without loss."""
    return ' '.join(repr(float(value) + 0.0) for value in values)


class FreeNames:
    """Names of elements, none of which is ``reserved`` or there twice.

    What is renamed gets no name that is among the ``wanted``. Names with a ``separator`` get an
    underscore instead.
    """

    def __init__(
        self, reserved: Iterable[str], wanted: Iterable[str], separator: str = ''
    ) -> None:
        self._taken, self._wanted = set(reserved), set(wanted)
        self._separator = separator
        self._changed: list[tuple[str, str, str]] = []

    def take(self, name: str, kind: str = 'link') -> str:
        """Return ``name`` where it is free, else one that ends in ``kind``."""
        free = name.replace(self._separator, '_') if self._separator else name
        while free in self._taken or (free != name and free in self._wanted):
            free += f'_{kind}'
        self._taken.add(free)
        if free != name:
            self._changed.append((kind, name, free))
        return free

    def warnings(self, form: str) -> Iterator[str]:
        """Yield a sentence about each element that has another name in a ``form`` of file."""
        for kind, name, free in self._changed:
            yield (f'{kind} {name!r} is called {free!r} in {form}, where its name is reserved or '
                   'taken')


@dataclass(eq=False)
class Element:
    """An element and its place: ``start``, ``head`` after its start tag, ``tail``, ``end``.

    Places are bytes of the UTF-8 text; ``tail`` is where the end tag begins, ``end`` behind it.
    In a self-closing element the three last ones are the same.
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
    """A well-formed XML text with changes to be made to it.

    Raises RobotError, which names ``source``, when `xml_root` refuses the text.
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
        found = _START_TAG.match(self._data, start)
        assert found is not None  # there are no entities that could hide elements
        element = Element(tag, attributes, start, found.end())
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
        """Return the line break and indentation in front of an element, as far as there are."""
        text = self._data[:element.start]
        rest = text.rstrip(b' \t')
        if rest.endswith(b'\n'):
            rest = rest[:-1].removesuffix(b'\r')
        return text[len(rest):]

    def set_numbers(self, element: Element, values: Mapping[str, Sequence[float]]) -> None:
        """Give attributes new numbers where they stand; those it lacks come last.

        What has the same numbers already stays as it is written.
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
        """Give an element an attribute that it lacks."""
        place = element.start + len(f'<{element.tag}'.encode())
        self._change(place, place, f' {name}={quoteattr(text)}'.encode())

    def insert(self, parent: Element, lines: Sequence[str]) -> None:
        """Put the ``lines`` of one element in front of the children of ``parent``.

        A tab at the begin of a line stands for one step of indentation.
        """
        outer = self._before(parent)
        inner = self._before(parent.children[0]) if parent.children else \
            outer + STEP if b'\n' in outer else b''
        self._put(parent, inner, outer, lines, parent.head)

    def append(self, parent: Element, line: str) -> None:
        """Put one element behind the children of ``parent``, of which there must be some."""
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
        """Return the text with all changes made."""
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
