"""Terminal output of verbs: results on standard output, everything else on standard error.

Names come from files of others. What is printed goes through `PrintableStream` or the console
behind it, so that none of them reaches the terminal as an escape sequence.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from robot_dynid.document import DASH, Action, Cell, Chapter, Section, Table
from robot_dynid.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Progress = Callable[[str, float], None]
PIPED_WIDTH = 160  # columns of tables that are not read on a terminal
#: s from which a wait that is not on a terminal is worth a line
DELAY = 10.0
#: lines of a result that is not verbose; rows of a table, warnings and next actions in it
MOST_LINES, MOST_ROWS, MOST_WARNINGS = 15, 6, 2
#: before commands
INDENT = '    '
#: what shows the rest
MORE = '--verbose'
#: characters up to which a cell stays on one line
SHORT_CELL = 28
#: styles of conclusions and marks
STYLES = {'good': 'green', 'fair': 'yellow', 'poor': 'red', '': None}


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
    """Make standard output and standard error such streams while the block runs.

    Where the caller has closed one, what is written to it goes nowhere.
    """
    with open(os.devnull, 'w', encoding='utf-8') as nowhere:
        streams: Any = [PrintableStream(one or nowhere) for one in (sys.stdout, sys.stderr)]
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


def named(findings: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the findings about recordings, with their names, as warnings."""
    return [f'{source}: {text}' for source, texts in findings.items() for text in texts]


class Terminal:
    """Prints results for people; rich is imported only when something is printed.

    A ``quiet`` one prints the result and cautions alone; one that is not ``verbose`` prints of a
    document what leads it, in MOST_LINES.
    """

    def __init__(self, quiet: bool = False, verbose: bool = False) -> None:
        self.verbose = verbose
        self._consoles: dict[int, Console] = {}
        self._quiet = quiet
        self._wait: _Wait | None = None

    def _console(self, stream: TextIO) -> Console:
        if id(stream) not in self._consoles:
            self._consoles[id(stream)] = make_console(stream)
        return self._consoles[id(stream)]

    def passed(self, count: int) -> None:
        """Print how many checks passed, where they are not shown one by one."""
        if count and not self.verbose:
            self.line(f'{count} check{"" if count == 1 else "s"} passed: --verbose', 'dim')

    def line(self, text: str = '', style: str | None = None) -> None:
        """Print a line of the result, which only a terminal breaks."""
        self._console(sys.stdout).print(text, style=style, soft_wrap=not sys.stdout.isatty())

    def height(self, text: str, indent: int = 0) -> int:
        """Return the number of lines that a line of the result takes."""
        console = self._console(sys.stdout)
        return 1 if not sys.stdout.isatty() else len(console.render_lines(
            ' ' * indent + text, console.options, pad=False))

    def command(self, text: str) -> None:
        """Print a command to paste: on one line, however wide the terminal is."""
        self._console(sys.stdout).print(f'{INDENT}{text}', style='dim', soft_wrap=True)

    def note(self, text: str, style: str | None = 'dim') -> None:
        """Print on standard error what is not part of the result, unless quiet."""
        if not self._quiet:
            self._console(sys.stderr).print(text, style=style, soft_wrap=True)

    def caution(self, text: str) -> None:
        """Print on standard error what to know before the result is used."""
        self._console(sys.stderr).print(text, style='yellow')

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """Print names and values, one pair per line; those without a value are left out."""
        self._table(Table((), [pair for pair in facts if pair[1] is not None]))

    def written(
        self, files: Iterable[tuple[str, str | None]], more: str = '', ok: bool = True
    ) -> None:
        """Print in a line which files were written, by what they are, and ``more`` about it."""
        names = ', '.join(f'{what} {path}' for what, path in files if path)
        if names or more:
            self.line(f'{names}{" (" if names and more else ""}{more}'
                      f'{")" if names and more else ""}', None if ok else 'red')

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table, nothing without rows; numbers are aligned to the right."""
        self._table(Table(columns, rows, title))

    def _table(self, content: Table, most: int | None = None) -> int:
        """Print a table, of more than ``most`` rows the first ones, and return the lines."""
        from rich.table import Table as Grid

        console = self._console(sys.stdout)
        grid = Grid(box=None, header_style='bold', pad_edge=False, padding=(0, 2, 0, 0),
                    show_header=bool(content.columns))
        if most is not None and len(content.rows) <= most + 1:
            most = None
        rows = [[one if isinstance(one, Cell) else Cell(one) for one in row.cells]
                for row in content.rows[:most]]
        columns = [[row[k] for row in rows] for k in range(len(rows[0]))] if rows else []
        shown = [k for k, cells in enumerate(columns) if any(
            one.text not in ('', DASH) for one in cells)]
        if not shown:
            return 0
        if content.title:
            self.line(content.title, 'bold')
        for k in shown:
            numeric = bool(content.columns) and all(_is_number(one.text) for one in columns[k])
            grid.add_column(content.columns[k] if content.columns else '', overflow='fold',
                            justify='right' if numeric else 'left', no_wrap=k == 0 or max(
                                len(one.text + one.note) for one in columns[k]) <= SHORT_CELL)
        for row, cells in zip(content.rows, rows, strict=False):
            grid.add_row(*(console.render_str(
                f'{cells[k].text}\n{cells[k].note}' if cells[k].note and self.verbose else
                cells[k].text, style=STYLES[cells[k].mark] or '') for k in shown),
                style=STYLES[row.mark])
        console.print(grid)
        more = len(content.rows) - len(rows)
        if more:
            self.line(f'and {more} more: {MORE}', 'dim')
        return bool(content.title) + bool(more) + len(
            console.render_lines(grid, console.options, pad=False))

    def document(
        self, chapters: Iterable[Chapter], warnings: Iterable[str] = (), after: int = 0
    ) -> None:
        """Print the sections of a document, and further warnings; figures are for pages.

        Unless verbose: what is no detail of them, in MOST_LINES but the lines that come ``after``.
        """
        chapters = list(chapters)
        if self.verbose:
            for chapter in chapters:
                if len(chapters) > 1:
                    self.line(f'\n{chapter.title}', 'bold')
                for section in chapter.sections:
                    self._section(section)
            self.warnings(warnings)
            return
        shown = [section for chapter in chapters for section in chapter.sections
                 if not section.detail and not section.folded]
        lines = MOST_LINES - after - sum(map(self._lead, shown))
        texts = [text for chapter in chapters for section in chapter.sections
                 for text in section.warnings]
        texts = list(dict.fromkeys((*texts, *warnings)))
        lines -= self._actions([one for section in shown for one in section.actions],
                               lines - bool(texts))
        self.warnings(texts, lines)

    def _lead(self, section: Section) -> int:
        """Print conclusion, tables and cards of a section that leads; return the lines."""
        tables = [table for table in section.tables if not table.folded and not table.detail]
        lines = self._conclusion(section)
        lines += sum(self._table(one, MOST_ROWS) for one in tables)
        return lines + self._cards(section)

    def _conclusion(self, section: Section) -> int:
        if section.status is None:
            return 0
        text = f'{section.status.word} {section.status.advice}'.strip()
        self.line(text, STYLES[section.status.kind])
        return self.height(text)

    def _cards(self, section: Section) -> int:
        text = '; '.join(f'{card.name} {card.value} {card.unit}'.strip() for card in section.cards)
        if text:
            self.line(text)
        return self.height(text) if text else 0

    def _actions(self, actions: Sequence[Action], lines: float = math.inf) -> int:
        """Print actions, the first one anyway, the others as ``lines`` allow; return the lines."""
        taken = 0
        for place, action in enumerate(actions, start=1):
            text = action.words if action.words.endswith(':') else f'next {place}: {action.words}'
            taken += self.height(text) + (
                self.height(action.command, len(INDENT)) if action.command else 0)
            if place > 1 and taken > lines:
                return taken
            self.line(text)
            if action.command:
                self.command(action.command)
        return taken

    def _section(self, section: Section) -> None:
        self.line(f'\n{section.title}', 'bold')
        self._conclusion(section)
        self._cards(section)
        self._actions(section.actions)
        if section.text:
            self.line(section.text, 'dim')
        sheets = (Table(('', 'value', 'unit', 'origin', ''), (
            (fact.name, fact.value, fact.unit, fact.origin, fact.note) for fact in sheet.facts),
            f'{sheet.title}: {sheet.text}'.removesuffix(': ')) for sheet in section.sheets)
        for table in (*section.tables, *sheets):
            self._table(table)
        self.warnings(section.warnings)

    def warnings(self, texts: Iterable[str], lines: float = math.inf) -> None:
        """Print warnings, a paragraph each; unless verbose the first ones, as ``lines`` allow."""
        texts = list(dict.fromkeys(texts))
        shown = len(texts) if self.verbose else 0
        while not self.verbose and shown < min(len(texts), MOST_WARNINGS):
            lines -= self.height(f'! {texts[shown]} (and {len(texts)} more: {MORE})')
            if lines < 0:
                break
            shown += 1
        more = len(texts) - shown
        for place, text in enumerate(texts[:shown], start=1):
            last = f' (and {more} more: {MORE})' if more and place == shown else ''
            self.line(f'! {text}{last}', style='yellow')
        if more and not shown:
            self.line(f'! {more} warning{"" if more == 1 else "s"}: {MORE}', style='yellow')

    @contextmanager
    def progress(self, title: str, lines: bool = False) -> Iterator[Progress]:
        """Show on standard error how far the work is, and give the function that takes news of it.

        Within such a block another one is the next work of the same wait. Where there is no
        terminal, ``lines`` prints each stage once.
        """
        if self._wait is not None:
            self._wait.title = title
            self._wait.lines = lines
            self._wait.move('', 0.0)
            yield self._wait.move
            return
        shows = not self._quiet and sys.stderr.isatty()
        self._wait = wait = _Wait(
            (title, lines), lambda: self._console(sys.stderr), shows, self.note)
        started = time.monotonic()
        try:
            yield wait.move
        finally:
            self._wait = None
            wait.end()
        passed = time.monotonic() - started
        if passed >= DELAY and not shows:
            self.note(f'{wait.title}: done in {timedelta(seconds=round(passed))}')

    def open_page(self, path: str) -> None:
        """Open a report in the browser of a desktop; elsewhere print where it is."""
        address = Path(path).absolute().as_uri()
        if not self._quiet and sys.stdout.isatty() and _desktop():
            import webbrowser

            if webbrowser.open(address):
                self.note(f'opening {address} in the browser')
                return
        self.note(f'open {address} in a browser')


class _Wait:
    """The bar of rich on standard error of a terminal; it appears with the first news.

    Elsewhere ``write`` prints each stage once if ``lines`` is true.
    """

    def __init__(
        self, work: tuple[str, bool], console: Callable[[], Console], shows: bool,
        write: Callable[[str], None],
    ) -> None:
        (self.title, self.lines), self.shows = work, shows
        self._console, self._write = console, write
        self._bar: Any = None
        self._stage = ''

    def move(self, stage: str, fraction: float | None = None) -> None:
        """Show the ``stage`` that is next, and the ``fraction`` of the work that is done."""
        words = printable(f'{self.title}: {stage}' if stage else self.title)
        if self.lines and not self.shows and stage not in ('', self._stage):
            self._write(words)
        self._stage = stage
        if not self.shows:
            return
        if self._bar is None:
            from rich import progress

            self._bar = progress.Progress(
                progress.TextColumn('{task.description}', markup=False),
                progress.BarColumn(24), progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(), console=self._console(), transient=True,
                redirect_stdout=False, redirect_stderr=False)
            self._task = self._bar.add_task(words, total=1.0)
            self._bar.start()
        self._bar.update(self._task, description=words, completed=fraction, refresh=True)

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def _desktop() -> bool:
    """Return True if a window that is opened here is seen by the user of the command."""
    if 'SSH_CONNECTION' in os.environ:
        return False
    return sys.platform in ('darwin', 'win32') or any(
        os.environ.get(name) for name in ('DISPLAY', 'WAYLAND_DISPLAY'))


def _is_number(text: str) -> bool:
    try:
        float(text.lstrip('<> '))
    except ValueError:
        return text in ('', DASH)
    return True
