"""Terminal output of verbs: results on standard output, everything else on standard error.

Names come from files of others. What is printed goes through `PrintableStream` or the console
behind it, so that none of them reaches the terminal as an escape sequence.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from robot_dynid.cli.wait import Wait
from robot_dynid.errors import printable
from robot_dynid.kernels.compilation import storage_problem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Progress = Callable[[str, float], None]
ONCE = ('compiling the numerical kernels that this needs, once after an installation, which takes '
        'some minutes; `python -m robot_dynid.warm_up` compiles all at once')
PIPED_WIDTH = 160  # columns of tables that are not read on a terminal


class PrintableStream:
    """A text stream that writes control characters of texts in backslash form.

    ``raw`` is the stream behind it, to which a console writes its own escape sequences.
    """

    def __init__(self, stream: TextIO) -> None:
        self.raw: TextIO = getattr(stream, 'raw', stream)

    def write(self, text: str) -> int:
        """Write a text."""
        return self.raw.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        self.write(''.join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make standard output and standard error such streams while the block runs."""
    streams: Any = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        yield


def make_console(stream: TextIO) -> Console:
    """Return a console on ``stream`` that writes texts, titles and cells as that does."""
    from rich.console import Console

    width = None if stream.isatty() or 'COLUMNS' in os.environ else PIPED_WIDTH
    console = Console(file=getattr(stream, 'raw', stream), width=width, highlight=False,
                      markup=False, emoji=False)
    render = console.render_str

    def _render_str(text: str, **options: Any) -> Text:
        return render(printable(text), **options)

    console.render_str = _render_str  # type: ignore[method-assign]
    return console


class Terminal:
    """Prints tables and lines for people; rich is imported only when something is printed.

    Of ``quiet`` ones the result stays, with what is to be known before it is used.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._consoles: dict[int, Console] = {}
        self._told, self._quiet = False, quiet
        self._wait: Wait | None = None

    def _console(self, stream: TextIO) -> Console:
        if id(stream) not in self._consoles:
            self._consoles[id(stream)] = make_console(stream)
        return self._consoles[id(stream)]

    def line(self, text: str = '', style: str | None = None) -> None:
        """Print a line of the result."""
        self._console(sys.stdout).print(text, style=style)

    def command(self, text: str) -> None:
        """Print a command to paste: on one line, however wide the terminal is."""
        self._console(sys.stdout).print(f'    {text}', style='dim', soft_wrap=True)

    def note(self, text: str, style: str | None = 'dim') -> None:
        """Say something that is not part of the result, and that quiet terminals leave out."""
        if not self._quiet:
            self._console(sys.stderr).print(text, style=style, soft_wrap=True)

    def caution(self, text: str) -> None:
        """Say on standard error what is to be known before the result is used."""
        self._console(sys.stderr).print(text, style='yellow')

    def compiling(self, kernel: str) -> None:
        """Say that a kernel is compiled; the first time for how long, or why none is stored."""
        problem = storage_problem()
        if not self._told:
            self._told = True
            self._console(sys.stderr).print(problem or ONCE, style='yellow', soft_wrap=True)
        if problem is None and self._wait is not None and self._wait.shows:
            self._wait.stage = f'compiling {kernel}, this once'
        else:
            self.note(f'compiling numerical kernel {kernel}{" in memory" if problem else ""} ...')

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """Print names and values, one pair per line."""
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_column(style='dim', no_wrap=True)
        table.add_column(overflow='fold')
        for name, value in facts:
            table.add_row(name, number(value))
        self._console(sys.stdout).print(table)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table, nothing without rows; numbers are aligned to the right."""
        from rich import box
        from rich.table import Table

        table = Table(title=title, title_justify='left', title_style='bold', box=box.SIMPLE_HEAD,
                      header_style='bold', pad_edge=False)
        cells = [[number(cell) for cell in row] for row in rows]
        if not cells:
            return
        for index, column in enumerate(columns):
            text = any(not _is_number(row[index]) for row in cells)
            table.add_column(column, justify='left' if text else 'right', overflow='fold',
                             no_wrap=index == 0)
        for row in cells:
            table.add_row(*row)
        self._console(sys.stdout).print(table)

    def warnings(self, texts: Iterable[str]) -> None:
        """Print warnings, one paragraph each."""
        for text in texts:
            self.line(f'! {text}', style='yellow')

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress]:
        """Show on standard error how far the work is, and give the function that is told so.

        Within such a block another one is the next work of the same wait.
        """
        if self._wait is not None:
            self._wait.begin(title)
            yield self._wait.move
            return
        with Wait(title, lambda: self._console(sys.stderr), self.note, self._quiet) as wait:
            self._wait = wait
            try:
                yield wait.move
            finally:
                self._wait = None

    def open_page(self, path: str) -> None:
        """Open a report in the browser of a desktop; elsewhere say where it is."""
        address = Path(path).absolute().as_uri()
        if not self._quiet and sys.stdout.isatty() and _desktop():
            import webbrowser

            if webbrowser.open(address):
                self.note(f'{address} is opened in the browser')
                return
        self.note(f'open {address} in a browser')


def _desktop() -> bool:
    """Return whether a window that is opened here is seen by who runs the command."""
    if 'SSH_CONNECTION' in os.environ:
        return False
    return sys.platform in ('darwin', 'win32') or any(
        os.environ.get(name) for name in ('DISPLAY', 'WAYLAND_DISPLAY'))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == '-'
    return True


def number(value: Any, digits: int = 4) -> str:
    """Return a number with few digits; text stays, a missing or undefined number is a dash."""
    if value is None:
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if not isinstance(value, float):
        return str(value)
    return '-' if value != value else f'{value:.{digits}g}'


def percent(value: float | None) -> str:
    """Return a share as per cent with one decimal."""
    return '-' if value is None or value != value else f'{100.0 * value:.1f}'
