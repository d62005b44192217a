"""Files that requests name: below one folder, whatever the name or its links say, or none at all.

Every service and goal that reads or writes a file asks here. A name is relative to the folder and
taken as it is: '~' stands for no home. No part of it may begin with a dot, so that neither '..'
nor the settings of programs are reached. What is not there, what cannot be read and what must not
be read are answered by the same words.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rclpy.node import Node

from robot_dynid.errors import UsageError
from robot_dynid.numbers import shown
from robot_dynid.settings import setting
from robot_dynid.signals.windows import split_window


class NoSuchFile(UsageError):
    """A name is not that of a file, or folder, which requests may read."""


@dataclass(frozen=True)
class FileParameters:
    """Parameters of a node whose requests name files."""

    files_directory: str = setting(
        '.', text='folder of the files that requests read or write, relative to the working '
        'directory of the node')
    file_requests: bool = setting(True, text='whether requests may read or write files')


@dataclass(frozen=True)
class RequestedFiles:
    """The files that requests may name: below ``directory``, if they are ``allowed`` at all.

    ``log`` takes one sentence about every refusal, with the name that was requested.
    """

    log: Callable[[str], object]
    directory: str = '.'
    allowed: bool = True

    @classmethod
    def of(cls, node: Node, parameters: FileParameters) -> RequestedFiles:
        """Return the files that the parameters of ``node`` allow; refusals go to its log."""
        return cls(node.get_logger().warning, parameters.files_directory, parameters.file_requests)

    @property
    def root(self) -> Path:
        """The folder without links.

        Raises UsageError where it is no path, and for the whole file system unless that is stated.
        """
        stated = Path(self.directory)
        try:
            root = stated.expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f'parameter files_directory: {shown(self.directory)}: not a path: '
                             f'{error}') from None
        if root == Path(root.anchor) and not stated.is_absolute():
            raise UsageError(f'the working directory of the node is {root}, the whole file '
                             'system: set the parameter files_directory to a folder')
        return root

    def source(self, name: str) -> Path:
        """Return the resolved path of a readable file or folder.

        Raises NoSuchFile, in the same words whether it is absent, unreadable or outside.
        """
        return self._path(name, NoSuchFile, lambda path: os.access(path, os.R_OK))

    def file(self, name: str) -> Path:
        """Return the resolved path of a readable regular file; raises NoSuchFile as `source`."""
        return self._path(name, NoSuchFile,
                          lambda path: os.access(path, os.R_OK) and path.is_file())

    def recording(self, name: str) -> str:
        """Return the resolved path of a recording, with the window that stands behind its name.

        Raises UsageError if it must not be read, or for a window that cannot be.
        """
        file, window = split_window(name)
        path = str(self.source(file))
        if split_window(path)[1] is not None:  # the target of a link would read as a window
            raise UsageError(f'{shown(name)}: the name of a recording must not end like a window; '
                             'rename it')
        return f'{path}{window or ""}'

    def target(self, name: str) -> Path:
        """Return the absolute path of a file to be written, in a folder without links.

        Raises UsageError for a name that is empty or outside, also by a link.
        """
        return self._path(name, UsageError, lambda path: True)

    def _path(self, name: str, refused: type[UsageError], usable: Callable[[Path], bool]) -> Path:
        """Return the path of ``name`` if no link leads outside, and log the refusal of others."""
        use = 'read' if refused is NoSuchFile else 'write'
        try:
            if not self.allowed:
                raise UsageError(f'{shown(name)}: this node accepts no files in requests '
                                 '(parameter file_requests is false)')
            if not name and use == 'write':
                raise UsageError('path is empty: give the file to write')
            root, alias = self.root, Path(self.directory).expanduser().absolute()
            with suppress(OSError, RuntimeError, ValueError):  # no path at all, or one outside
                path = root / name
                parts = path.relative_to(alias if path.is_relative_to(alias) else root).parts
                resolved = path.resolve()
                resolved.relative_to(root)
                place = resolved if use == 'read' else path.parent.resolve() / path.name
                if usable(place) and not any(part.startswith('.') for part in parts):
                    return place
            raise refused(
                f'{shown(name)}: requests may not {use} it; give a name relative to {root} '
                '(parameter files_directory), without parts that begin with a dot or links that '
                'lead outside')
        except UsageError as error:
            self.log(f'file of a request refused: {error}')
            raise
