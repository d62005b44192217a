"""Files that requests name: below one folder, whatever the name or its links, or none at all.

Every service and goal that reads or writes a file uses this check. A name is relative to the
folder and not expanded ('~' is an ordinary character). No part may begin with a dot, so neither
'..' nor settings of programs can be reached. Absent, unreadable and forbidden files get the same
answer.
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
    """The name is not that of a file or folder that requests may read."""


@dataclass(frozen=True)
class FileParameters:
    """Parameters of a node whose requests name files."""

    files_directory: str = setting(
        '.', text='folder of the files that requests read or write, relative to the working '
        'directory of the node')
    file_requests: bool = setting(True, text='whether requests may read or write files')


@dataclass(frozen=True)
class RequestedFiles:
    """The files that requests may name: below ``directory``, and only if ``allowed``.

    ``log`` receives one sentence about every refusal, with the name requested.
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
        """The folder, with links resolved.

        Raises UsageError if it is not a path, and for the whole file system unless that is stated.
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

        Raises NoSuchFile, with the same message for absent, unreadable and forbidden paths.
        """
        return self._path(name, NoSuchFile, lambda path: os.access(path, os.R_OK))

    def file(self, name: str) -> Path:
        """Return the resolved path of a readable regular file; raises NoSuchFile as `source`."""
        return self._path(name, NoSuchFile,
                          lambda path: os.access(path, os.R_OK) and path.is_file())

    def recording(self, name: str) -> str:
        """Return the resolved path of a recording, and the window at the end of its name.

        Raises UsageError if it must not be read, or for an invalid window.
        """
        file, window = split_window(name)
        path = str(self.source(file))
        if split_window(path)[1] is not None:  # the target of a link would read as a window
            raise UsageError(f'{shown(name)}: the name of a recording must not end like a window; '
                             'rename it')
        return f'{path}{window or ""}'

    def target(self, name: str) -> Path:
        """Return the absolute path of a file to write, in a folder without links.

        Raises UsageError for a name that is empty or leads outside, also through a link.
        """
        return self._path(name, UsageError, lambda path: True)

    def _path(self, name: str, refused: type[UsageError], usable: Callable[[Path], bool]) -> Path:
        """Return the path of ``name`` unless it leads outside through a link; log refusals."""
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
