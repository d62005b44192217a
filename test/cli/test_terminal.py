"""cli/terminal.py: what is printed of results, line by line, without a terminal."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from robot_dynid.cli.terminal import MORE, MOST_WARNINGS, Terminal, make_console
from robot_dynid.document import Cell


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
