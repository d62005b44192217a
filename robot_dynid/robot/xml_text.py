"""XML text to elements: without entities and document types, and only so deep."""

from __future__ import annotations

from typing import Any, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

#: elements inside each other; those of a URDF are five
DEPTH = 64
#: elements of a text
ELEMENTS = 300_000


class XmlError(Exception):
    """The text is no XML, or none that is read here."""


class _Builder(TreeBuilder):
    """Makes elements of the parser's events, without what is between them."""

    def __init__(self, parser: Any) -> None:
        super().__init__()
        self._depth, self._count = 0, 0
        parser.StartElementHandler = self.begin
        parser.EndElementHandler = self.finish
        parser.StartDoctypeDeclHandler = self.refuse

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element. Raises XmlError where there are too many, or too deep."""
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
        """Refuse a document type, in which entities would be declared."""
        raise XmlError('document types (<!DOCTYPE>) are not read; remove it and write entities '
                       'out')


def xml_root(text: str) -> Element:
    """Return the root element of a text; prefixes stay in the tags. Raises XmlError."""
    parser = expat.ParserCreate('utf-8')
    builder = _Builder(parser)
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise XmlError(str(error)) from None
    except UnicodeError:
        raise XmlError('holds characters that no text has') from None
    return builder.close()
