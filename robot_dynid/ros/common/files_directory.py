"""Files that requests name: below one folder, whatever the name or its links say, or none at all.

Every service and goal that reads or writes a file asks here. A name is relative to the folder;
where that is '/', to the folder the node was started in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rclpy.node import Node

from robot_dynid.errors import UsageError, clipped
from robot_dynid.numbers import shown
from robot_dynid.ros.common.params import parameter
from robot_dynid.signals.windows import named


@dataclass(frozen=True)
class FileParameters:
    """Parameters of a node whose requests name files."""

    files_directory: str = parameter(
        '.', 'folder below which the files lie that requests read or write')
    file_requests: bool = parameter(True, 'whether requests may read or write files')


@dataclass(frozen=True)
class RequestedFiles:
    """The files that requests may name: below ``directory``, if they are ``allowed`` at all.

    ``log`` takes one sentence about every refusal, with the name that was requested.
    """

    log: Callable[[str], object]
    directory: str = '/'
    allowed: bool = True

    @classmethod
    def of(cls, node: Node, parameters: FileParameters) -> RequestedFiles:
        """Return the files that the parameters of ``node`` allow; its log tells refusals."""
        return cls(node.get_logger().warning, parameters.files_directory, parameters.file_requests)

    def source(self, name: str) -> Path:
        """Return the resolved path of what a request reads; raises UsageError if it must not."""
        return self._asked(source_inside, name)

    def recording(self, name: str) -> str:
        """Return the resolved path of a recording, with the window that stands behind its name.

        Raises UsageError if it must not be read, or for a window that cannot be.
        """
        file, window = named(name)
        path = str(self.source(file))
        if named(path)[1] is not None:  # where a link leads, which would be read as a window
            raise UsageError(f'{shown(name)}: the name of a recording must not end like a window; '
                             'rename it')
        return f'{path}{window or ""}'

    def file(self, name: str) -> Path:
        """Return the resolved path of the regular file that a request reads; raises UsageError."""
        return self._asked(file_inside, name)

    def target(self, name: str) -> Path:
        """Return the absolute path a request writes to; raises UsageError if it must not."""
        return self._asked(target_inside, name)

    def _asked(self, find: Callable[[str, str], Path], name: str) -> Path:
        try:
            if not self.allowed:
                raise UsageError(f'{shown(name)}: requests must not name files here, the '
                                 'parameter file_requests is false')
            return find(self.directory, name)
        except UsageError as error:
            text = ''.join(c if c.isprintable() else repr(c)[1:-1] for c in str(error))
            self.log(f'file of a request refused: {text}')
            raise


def resolved_folder(directory: str | Path) -> Path:
    """Return the folder without links; raises UsageError where it is no path."""
    return _placed(directory, '')[0]


def source_inside(directory: str | Path, name: str) -> Path:
    """Return the resolved path of the file or folder ``name``.

    Raises UsageError when it lies outside of ``directory``, also by '..' or a link.
    """
    root, path = _placed(directory, name)
    try:
        path = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise _no_path(name, error) from None
    return _inside(root, path, path, name)


def file_inside(directory: str | Path, name: str) -> Path:
    """Return the resolved path of the regular file ``name``.

    Raises UsageError when it lies outside of ``directory``, also by '..' or a link, or cannot be
    read as a file.
    """
    path = source_inside(directory, name)
    try:
        regular = path.is_file()
    except (OSError, ValueError) as error:
        raise _no_path(name, error) from None
    if not regular:
        raise UsageError(f"no file '{clipped(name)}' in {resolved_folder(directory)}, the "
                         'parameter files_directory')
    return path


def target_inside(directory: str | Path, name: str) -> Path:
    """Return the absolute path of a file to be written, whose folder lies below ``directory``.

    Raises UsageError for a name that is empty or outside, also by '..' or a link.
    """
    if not name:
        raise UsageError('path is empty: say where to write the file')
    root, path = _placed(directory, name)
    try:
        folder = path.parent.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise _no_path(name, error) from None
    return _inside(root, folder, path, name)


def _placed(directory: str | Path, name: str) -> tuple[Path, Path]:
    """Return the resolved folder, and the absolute path of ``name`` with its links."""
    try:
        root = Path(directory).expanduser().resolve()
        base = Path.cwd() if root == Path(root.anchor) else root
        return root, base / Path(name).expanduser()
    except (OSError, RuntimeError, ValueError) as error:
        raise _no_path(name, error) from None


def _inside(root: Path, place: Path, path: Path, name: str) -> Path:
    if not place.is_relative_to(root):
        raise UsageError(f"'{clipped(name)}' lies outside {root}, the parameter files_directory; "
                         'give a path relative to it')
    return path


def _no_path(name: str, error: Exception) -> UsageError:
    return UsageError(f'{shown(name)}: not a path: {clipped(str(error))}')
