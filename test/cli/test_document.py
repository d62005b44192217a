"""The terminal renders the document of a report: what leads at once, all of it with --verbose."""

from __future__ import annotations

import re

import pytest

from robot_dynid.cli.terminal import MOST_LINES, Terminal
from robot_dynid.document import (
    Action,
    Card,
    Cell,
    Chapter,
    Conclusion,
    Fact,
    Figure,
    Row,
    Section,
    Sheet,
    Table,
)

COMMAND = f'robot-dynid design {"a" * 300}.yaml'
DOCUMENT = (
    Chapter('Trust', (
        Section('Verdict', text='how it is judged', status=Conclusion('good', 'Good', 'for all.'),
                tables=(Table(('joint', 'use', 'empty'), [
                    ('elbow', Cell('good', 'good', '3 % of 5 %'), None),
                    Row(('wrist', 'poor', ''), 'poor')]),
                    Table(('joint', 'why'), [('elbow', 'measured')], 'Why', folded=True))),
        Section('Next', actions=(Action('Record more', COMMAND), Action('Look at the cable'))),
        Section('The fit', cards=(Card('error', '1.7', '%'), Card('samples', '12'))),
        Section('6 warnings', warnings=('a stamp is missing', *'bcdef'), folded=True))),
    Chapter('See it', (Section('Curves', figures=(Figure({'data': [], 'layout': {}}),)),)),
    Chapter('Links', (Section('Links', detail=True, sheets=(Sheet('forearm', (
        Fact('mass', '2.1', 'kg', 'measured'),), '9 measured'),)),)),
)


def printed(verbose: bool, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a terminal prints of the document."""
    Terminal(verbose=verbose).document(DOCUMENT)
    return capsys.readouterr().out


def test_terminal_prints_lead_items_and_counts_the_rest(
    capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(False, capsys).splitlines()
    assert [line.rstrip() for line in lines] == [
        'Good for all.', 'joint  use', 'elbow  good', 'wrist  poor', 'error 1.7 %; samples 12',
        'next 1: Record more', f'    {COMMAND}', 'next 2: Look at the cable',
        '! a stamp is missing', '! b (and 4 more: --verbose)']


@pytest.mark.parametrize('width', [None, 100, 80])
def test_terminal_document_has_at_most_fifteen_lines(
    width: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 'a long sentence of a dozen words that a terminal has to break somewhere, ' * 3
    if width is not None:
        monkeypatch.setenv('COLUMNS', str(width))
        monkeypatch.setattr('sys.stdout.isatty', lambda: True)
    Terminal().document([Chapter('Trust', (
        Section('Verdict', status=Conclusion('good', 'Good', 'for all.'), tables=(
            Table(('joint', 'use'), [(f'joint_{k}', 'good') for k in range(20)]),
            Table(('more',), [('7',)] * 40, detail=True))),
        Section('Next', actions=(Action(many, 'robot-dynid'),) * 5),
        Section('Warnings', warnings=[f'{k} {many}' for k in range(9)]),
        Section('Details', cards=(Card('a', '1'),), detail=True)))], ['last'], after=1)
    lines = re.sub(r'\x1b\[[\d;]*m', '', capsys.readouterr().out).splitlines()
    assert len(lines) <= MOST_LINES - 1
    assert 'and 14 more: --verbose' in lines
    assert '10 warnings: --verbose' in lines[-1] or 'more: --verbose)' in lines[-1]


def test_terminal_prints_the_whole_document_when_verbose(
    capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(True, capsys)
    for words in ('how it is judged', '3 % of 5 %', 'Why', 'measured', '! a stamp is missing',
                  'See it', 'Curves'):
        assert words in text
    assert 'empty' not in text, 'a column without a value says nothing'


def test_values_are_written_by_their_kind() -> None:
    row = Row(('a', 1.23456, 12345678, True, None, float('nan'), float('inf')))
    assert row.cells == ('a', '1.235', '12345678', 'yes', '–', '–', '∞')
