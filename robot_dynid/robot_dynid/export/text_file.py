"""Text files for other tools, read back before they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from robot_dynid.errors import MissingDependency, ModelError
from robot_dynid.export.written import Written
from robot_dynid.files import atomic_write
from robot_dynid.robot.urdf_text import XmlError, xml_root


@dataclass(frozen=True, eq=False)
class TextFile:
    """The ``text`` of a file for other tools, and the arm as ``written`` there.

    ``warnings`` list what it cannot hold. ``mark`` is in the header of every file; files without
    it are not overwritten.
    """

    text: str
    warnings: tuple[str, ...] = ()
    written: Written | None = field(default=None, kw_only=True)
    mark: ClassVar[bytes]

    @property
    def content(self) -> str:
        """Text as saved."""
        return self.text

    def parse(self) -> None:
        """Parse the content as any tool must; raises DynIdError if that fails."""
        raise NotImplementedError

    def load(self) -> dict[str, Any]:
        """Return the ``tool`` that reads the content, and its ``error`` if computed.

        Raises MissingDependency if it is not installed, ModelError if it refuses the content.
        """
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Return friction as written, missing effort, and the result of `load`.

        Raises DynIdError if the content cannot be read back.
        """
        return (self.written.facts() if self.written is not None else {}) | self._loaded

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        self.parse()
        try:
            return self.load()
        except MissingDependency as error:
            return {'error': None, 'tool': f'read by robot_dynid only: {error}'}

    def save(self, path: str | Path) -> None:
        """Read the content back and write it.

        Raises DynIdError if it cannot be read back or written, UsageError if the path holds
        another file.
        """
        self.facts()
        atomic_write(path, self.content, self.mark)


@contextmanager
def read_by(tool: str, form: str) -> Iterator[None]:
    """Convert errors of a ``tool`` that reads a ``form`` of file into a ModelError."""
    try:
        yield
    except (ValueError, RuntimeError, XmlError) as error:
        reason = ' '.join(str(error).split()).rstrip('.')
        raise ModelError(f'{tool} refuses the {form}: {reason}; correct the description of the '
                         'robot') from None


def elements(text: str, form: str) -> Element:
    """Return the root element of a ``form`` of XML; raises ModelError."""
    with read_by('the parser of XML', form):
        return xml_root(text)
