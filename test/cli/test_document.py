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
    Terminal(verbose=True).document(DOCUMENT, ['last', 'last'])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        '', 'Trust', '', 'Verdict', 'Good for all.', 'how it is judged', 'joint  use',
        'elbow  good', '       3 % of 5 %', 'wrist  poor', 'Why', 'joint  why', 'elbow  measured',
        '', 'Next', 'next 1: Record more', f'    {COMMAND}', 'next 2: Look at the cable',
        '', 'The fit', 'error 1.7 %; samples 12', '', '6 warnings', '! a stamp is missing',
        *(f'! {name}' for name in 'bcdef'), '', 'See it', '', 'Curves', '', 'Links', '', 'Links',
        'forearm: 9 measured', '      value  unit  origin', 'mass    2.1  kg    measured',
        '! last']
    for chapters, shown in ((DOCUMENT[1:2], ['Curves']), (
            2 * DOCUMENT[1:2], ['See it', 'Curves', 'See it', 'Curves'])):
        Terminal(verbose=True).document(chapters)
        assert capsys.readouterr().out.split() == ' '.join(shown).split()


@pytest.mark.parametrize(('rows', 'actions', 'warnings', 'after', 'lines'), [
    (7, 5, 0, 0, ['next 1: do 0', 'next 2: do 1', 'next 3: do 2', 'next 4: do 3']),
    (8, 5, 2, 0, ['next 1: do 0', 'next 2: do 1', 'next 3: do 2', '! 2 warnings: --verbose']),
    (8, 5, 2, 1, ['next 1: do 0', 'next 2: do 1', '! 2 warnings: --verbose']),
    (8, 1, 3, 0, ['next 1: do 0', '! w0', '! w1 (and 1 more: --verbose)']),
    (8, 1, 3, 2, ['next 1: do 0', '! w0 (and 2 more: --verbose)']),
    (7, 1, 1, 3, ['next 1: do 0', '! 1 warning: --verbose']),
    (7, 0, 2, 2, ['! w0', '! w1']),
    (7, 0, 2, 3, ['! w0 (and 1 more: --verbose)'])])
def test_lines_of_a_document_are_shared_out(
    rows: int, actions: int, warnings: int, after: int, lines: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Conclusion, table of at most nine lines, cards: eleven of fifteen."""
    table = Table(('joint', 'use'), [(f'j{k}', 'good') for k in range(rows)], 'Uses')
    sections = (
        Section('Verdict', status=Conclusion('good', 'Good', 'now.'),
                tables=(table, Table(('none',), [])), cards=(Card('a', '1'),)),
        Section('Next', actions=tuple(Action(f'do {k}') for k in range(actions))),
        Section('Folded', cards=(Card('b', '2'),), folded=True),
        Section('Detail', cards=(Card('c', '3'),), detail=True))
    Terminal().document([Chapter('Trust', sections)], [f'w{k}' for k in range(warnings)],
                        **({'after': after} if after else {}))
    shown = 7 if rows == 7 else 6
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        'Good now.', 'Uses', 'joint  use', *(f'j{k}     good' for k in range(shown)),
        *(['and 2 more: --verbose'] if rows == 8 else []), 'a 1', *lines]


@pytest.mark.parametrize(('first', 'second', 'shown'), [
    (1, 28, 2), (1, 29, 1), (60, 28, 1)])
def test_lines_are_counted_as_a_terminal_breaks_them(
    first: int, second: int, shown: int, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 15, with 11 after: 4 for both actions, each of a sentence and a command."""
    monkeypatch.setenv('COLUMNS', '36')
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('NO_COLOR', '1')
    monkeypatch.setattr('sys.stdout.isatty', lambda: True)
    actions = (Action('a' * first, 'run'), Action('b' * second, 'walk'))
    Terminal().document([Chapter('Trust', (Section('Next', actions=actions),))], (), 11)
    printed = capsys.readouterr().out
    assert '    run' in printed and ('    walk' in printed) is (shown == 2)


def test_values_are_written_by_their_kind() -> None:
    row = Row(('a', 1.23456, 12345678, True, None, float('nan'), float('inf')))
    assert row.cells == ('a', '1.235', '12345678', 'yes', '–', '–', '∞')
