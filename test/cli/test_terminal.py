"""cli/terminal.py: what is printed of results, line by line, without a terminal."""

from __future__ import annotations

import importlib.util
import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from robot_dynid.cli.terminal import MORE, MOST_WARNINGS, Terminal, make_console
from robot_dynid.document import Cell, Chapter, Row, Section, Table


def printed(what: str, *words: Any, verbose: bool = False, quiet: bool = False) -> str:
    """Return what a method of a terminal prints on standard output, then on standard error."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        getattr(Terminal(quiet, verbose), what)(*words)
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize(('files', 'more', 'line'), [
    ([('model', 'm.yaml'), ('report', None), ('log', 'l.csv')], '', 'model m.yaml, log l.csv\n'),
    ([('model', 'm.yaml')], '3 joints', 'model m.yaml (3 joints)\n'),
    ([('model', None)], '3 joints', '3 joints\n'), ([('model', None)], '', '')])
def test_files_that_were_written_are_a_line(files: Any, more: str, line: str) -> None:
    assert printed('written', files, more) == line


@pytest.mark.parametrize(('count', 'verbose', 'line'), [
    (0, False, ''), (1, False, '1 check passed: --verbose\n'),
    (2, False, '2 checks passed: --verbose\n'), (2, True, '')])
def test_checks_that_passed_are_counted_where_they_are_not_shown(
    count: int, verbose: bool, line: str
) -> None:
    assert printed('passed', count, verbose=verbose) == line


def test_a_quiet_terminal_prints_results_and_cautions() -> None:
    assert [printed(what, 'text', quiet=True) for what in ('line', 'note', 'caution')] == [
        'text\n', '', 'text\n']
    assert printed('note', 'text') == 'text\n'


def test_facts_and_tables_are_aligned() -> None:
    """Names that have no value and columns without one are left out, numbers on the right."""
    facts = printed('facts', [('mass', 2.5), ('inertia', None), ('frame', 'tool0')])
    assert [line.rstrip() for line in facts.splitlines()] == ['mass   2.5', 'frame  tool0']
    rows = [('a', 1.5, '', 'x'), ('bcd', 10.25, None, Cell('y', 'good', 'noted'))]
    text = printed('table', 'Title', ('name', 'value', 'empty', 'word'), rows)
    assert [line.rstrip() for line in text.splitlines()] == [
        'Title', 'name  value  word', 'a       1.5  x', 'bcd   10.25  y']
    assert printed('table', 'Title', ('name',), []) == ''
    assert 'noted' in printed('table', '', ('name', 'value', 'empty', 'word'), rows, verbose=True)


def test_names_in_a_table_are_no_markup() -> None:
    """What rich would take for colours and smileys is printed as it is."""
    assert printed('facts', [('[red]', ':smile:')]).split() == ['[red]', ':smile:']
    assert printed('line', '[bold] :smile:') == '[bold] :smile:\n'


@pytest.mark.parametrize(('columns', 'terminal', 'width'), [
    (None, False, 160), ('50', False, 50), ('70', True, 70)])
def test_lines_are_as_wide_as_the_terminal_or_as_told(
    columns: str | None, terminal: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('COLUMNS', raising=False)
    if columns:
        monkeypatch.setenv('COLUMNS', columns)
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    assert make_console(stream).width == width


@pytest.mark.parametrize('count', [1, MOST_WARNINGS, MOST_WARNINGS + 1, MOST_WARNINGS + 3])
def test_the_first_warnings_are_printed_and_the_others_counted(count: int) -> None:
    texts = [f'cause {k}' for k in range(count)]
    every = [f'! {text}\n' for text in texts]
    assert printed('warnings', [*texts, texts[0]], verbose=True) == ''.join(every), 'each once'
    some = every[:MOST_WARNINGS]
    if count > MOST_WARNINGS:
        some[-1] = f'! {texts[MOST_WARNINGS - 1]} (and {count - MOST_WARNINGS} more: {MORE})\n'
    assert printed('warnings', texts) == ''.join(some)
    # a line each: none, and two
    one = f'! {count} warning{"s" if count > 1 else ""}: {MORE}\n'
    assert printed('warnings', texts, 0) == one
    assert printed('warnings', texts, 2).splitlines() == [
        line.rstrip() for line in (every if count < 3 else [
            every[0], f'! cause 1 (and {count - 2} more: {MORE})'])]


class FakeTerminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Return a stream of 70 columns, in colours."""
    stream = FakeTerminal()
    for name, value in {'TERM': 'xterm', 'COLUMNS': '70'}.items():
        monkeypatch.setenv(name, value)
    for name in ('NO_COLOR', 'FORCE_COLOR', 'COLORTERM'):
        monkeypatch.delenv(name, raising=False)
    return stream


def test_a_terminal_breaks_results_and_no_commands(screen: FakeTerminal) -> None:
    words, terminal = 'word ' * 23 + 'end', Terminal()
    with redirect_stdout(screen), redirect_stderr(screen):
        terminal.line(words)
        assert screen.getvalue().count('\n') == 2
        assert (terminal.height(words), terminal.height('a' * 70), terminal.height('a' * 69, 2)
                ) == (2, 1, 2)
        terminal.command(words)
        terminal.note(words)
        assert screen.getvalue().count('\n') == 4
        assert f'    {words}' in screen.getvalue()
        terminal.caution(words)
        assert screen.getvalue().count('\n') == 6


def test_lines_that_are_not_read_on_a_terminal_are_never_broken() -> None:
    words = 'word ' * 60
    assert printed('line', words) == f'{words}\n'
    assert Terminal().height(words) == 1


def test_marks_of_rows_and_cells_are_colours(screen: FakeTerminal) -> None:
    terminal = Terminal()
    with redirect_stdout(screen):
        terminal.table('', ('name', 'use'), [
            ('a', Cell('fine', 'good')), ('b', Cell('so-so', 'fair')), Row(('c', 'bad'), 'poor')])
        terminal.written([('model', 'm.yaml')], ok=False)
        terminal.written([('report', 'r.html')])
    text = screen.getvalue()
    for shown in ('\x1b[32mfine', '\x1b[33mso-so', '\x1b[31mbad', '\x1b[31mmodel m.yaml'):
        assert shown in text
    assert '\nreport r.html\n' in text and '\x1b[32ma' not in text


@pytest.mark.parametrize(('length', 'whole'), [(28, True), (29, False)])
def test_names_and_short_cells_stay_on_one_line(
    length: int, whole: bool, screen: FakeTerminal
) -> None:
    name, cell = f'{"n" * 20} {"m" * 9}', f'{"c" * 15} {"d" * (length - 16)}'
    with redirect_stdout(screen):
        Terminal().table('', (), [(name, 'ab ' * 30, cell), ('x', 'y', 'z')])
    text = screen.getvalue()
    assert (cell in text) is whole
    assert name in text


def test_columns_of_shares_and_of_absent_numbers_are_numbers() -> None:
    rows = [('a', '> 1000', '-1.5', 'x'), ('b', '–', '', '7'), ('c', '2', '30', '')]
    text = printed('table', '', ('name', 'share', 'value', 'word'), rows)
    assert [line.rstrip() for line in text.splitlines()] == [
        'name   share  value  word', 'a     > 1000   -1.5  x', 'b          –         7',
        'c          2     30']
    assert [line.rstrip() for line in printed('facts', [('a', 1.0), ('b', 20.0)]).splitlines()] \
        == ['a  1', 'b  20'], 'facts are aligned to the left'


@pytest.mark.parametrize(('count', 'more'), [(7, ''), (8, 'and 2 more: --verbose')])
def test_a_table_of_a_document_has_six_rows_or_one_more(count: int, more: str) -> None:
    table = Table(('name',), [(f'r{k}',) for k in range(count)])
    text = printed('document', [Chapter('', (Section('', tables=(table,)),))])
    shown = [line.rstrip() for line in text.splitlines()]
    assert shown == ['name', *(f'r{k}' for k in range(7 if count == 7 else 6)),
                     *filter(None, [more])]


@pytest.mark.parametrize(('seconds', 'note'), [
    (9.9, ''), (10.0, 'work: done in 0:00:10\n'), (75.6, 'work: done in 0:01:16\n')])
def test_a_wait_of_ten_seconds_is_told_where_no_bar_was(
    seconds: float, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec(Terminal.__module__)
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)  # with the delay that users wait
    spec.loader.exec_module(fresh)
    ticks = iter((100.0, 100.0 + seconds))
    monkeypatch.setattr('time.monotonic', lambda: next(ticks))
    with redirect_stderr(io.StringIO()) as err, fresh.Terminal().progress('work') as move:
        move('a stage', 0.5)
    monkeypatch.undo()
    assert err.getvalue() == note


def test_stages_are_lines_once_each_where_no_bar_is_and_lines_are_asked_for() -> None:
    with redirect_stderr(io.StringIO()) as err:
        terminal = Terminal()
        with terminal.progress('outer', lines=True) as move:
            for stage in ('a', 'a', '', 'b'):
                move(stage, 0.1)
            with terminal.progress('inner') as inner:
                inner('c', 0.2)
            with terminal.progress('inner', lines=True) as inner:
                inner('d', 0.3)
        with Terminal(quiet=True).progress('quiet', lines=True) as move:
            move('e', 0.4)
    assert err.getvalue() == 'outer: a\nouter: b\ninner: d\n'


def test_a_bar_is_filled_by_its_fraction(
    screen: FakeTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('robot_dynid.cli.terminal.DELAY', 0.0)
    monkeypatch.setenv('NO_COLOR', '1')  # where the rest of the bar is not drawn
    monkeypatch.setenv('COLUMNS', '90')
    with redirect_stdout(screen), redirect_stderr(screen), \
            (terminal := Terminal()).progress('[b]work') as move:
        for fraction, cells in ((0.25, 6), (0.75, 18), (1.0, 24)):
            start = len(screen.getvalue())
            move(f'stage {fraction}', fraction)
            _, words, bar = screen.getvalue()[start:].rpartition(f'[b]work: stage {fraction}')
            assert words and bar.partition('\n')[0].count('━') == cells
        assert sys.stdout is sys.stderr is screen
        start = len(screen.getvalue())
        with terminal.progress('next'):
            assert 'next' in (begun := screen.getvalue()[start:]) and '━' not in begun
    assert screen.getvalue().endswith('\x1b[2K') and 'done in' not in screen.getvalue()
