"""Tables of the pages, made from the code: `python docs/tables.py` writes them into the pages.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``. Those that a reader
of the repository needs are in the pages; longer ones are added when the pages are built (see
ros_reference.py).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import driver_tables
from ros_reference import cell

from robot_dynid.cli.main import VERBS, parser
from robot_dynid.estimation import owned_settings
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.suitability import CRITERIA, FALSE_ALARMS, WITHOUT_FRICTION
from robot_dynid.plain import to_plain
from robot_dynid.settings import Setting, settings_of
from robot_dynid_evaluation import reproduce
from robot_dynid_evaluation.papers import EXPERIMENTS

DOCS = Path(__file__).parent
#: a run of every published experiment, `robot-dynid reproduce NAME --json > docs/papers/NAME.json`
RUNS = DOCS / 'papers'
#: a table in a page, with its name
TABLE = re.compile(r'(?<=<!-- table: )(\w+)( -->\n).*?(?=<!-- end of table -->)', re.S)
#: column heads of settings, before those of a table of its own
SETTINGS = ('key', 'values', 'default', 'meaning')


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ['---'] * len(head), *rows]
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)


def criteria() -> str:
    """Return the thresholds of the verdict and the reasons for them."""
    every = [*CRITERIA.items(), ('gravity compensation without dry friction', WITHOUT_FRICTION),
             ('contact detection: false alarms', FALSE_ALARMS)]
    return table(('use', 'number', 'threshold', 'reason'), (
        (use, one.measure, f'{100.0 * one.threshold:g} % {one.unit}'
         if one.unit.startswith('of ') else f'{one.unit}: {one.threshold:g}', one.reason)
        for use, one in every))


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every verb."""
    (verbs,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    return {name: verbs.choices[name] for name in VERBS if name in verbs.choices}


def setting_row(key: str, one: Setting) -> tuple[str, ...]:
    """Return the cells of a setting: key, values, default, meaning."""
    kinds = {bool: 'true or false', int: 'whole number', float: 'number'}
    values = ', '.join(f'`{choice}`' for choice in one.choices) or one.allowed or (
        '' if one.reader else kinds.get(one.kind, ''))
    default = to_plain(one.default)
    shown = '' if default is None or default == [] else '`{}`' if not default or \
        not isinstance(default, (str, int, float)) else f'`{default}`'
    return f'`{key}`', values, shown, cell(one.help)


def recipe() -> str:
    """Return the keys of a recipe."""
    return table(SETTINGS, (setting_row(key, one) for key, one in settings_of(Recipe).items()))


def methods() -> str:
    """Return the settings of single methods; each is an option of `identify`, too."""
    return table((*SETTINGS, 'methods'), (
        (*setting_row(key, one), ', '.join(f'`{owner}`' for owner in owners))
        for key, (one, owners) in owned_settings().items()))


def commands() -> str:
    """Return a section of every verb with its arguments and options."""
    lines: list[str] = []
    for verb, one in verb_parsers().items():
        rows = ((f'`{one._get_formatter()._format_action_invocation(action)}`',
                 cell((action.help or '') % {'default': action.default}))
                for action in one._actions if action.dest != 'help')
        lines += [f'## {verb}', '', f'{cell(one.description or "")}', '',
                  table(('argument', 'meaning'), rows), '']
    return '\n'.join(lines)


def runs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every published experiment with its last run."""
    for name in EXPERIMENTS:
        if (RUNS / f'{name}.json').is_file():
            yield name, json.loads((RUNS / f'{name}.json').read_text('utf-8'))


def claims() -> str:
    """Return what becomes of every claim of the papers."""
    return table(('paper', 'claim', 'paper says', 'ours', 'how', 'verdict'), (
        (EXPERIMENTS[name].paper, cell(row['claim']), _figure(row['paper']), _figure(row['ours']),
         cell(f'{row["quantity"]} ({row["kind"]})'), reproduce.verdict(row))
        for name, run in runs() for row in run['rows'] if row['claim']))


def real_robot() -> str:
    """Return the figures of the run on a real robot with two encoders."""
    (rows,) = [run['rows'] for name, run in runs() if name == 'double-encoder-robot']
    return table(('figure', 'value', 'verdict'), (
        (cell(row['quantity']), _figure(row['ours']), reproduce.verdict(row)) for row in rows))


def _figure(value: Any) -> str:
    text = f'{value:.4g}' if isinstance(value, float) else str(value)
    return '' if value is None else cell(text)


def verdicts() -> str:
    """Return how many rows of every experiment agree, and the time it takes."""
    return table(('experiment', 'paper', 'compared', 'recovered', 'shown', 'remarks',
                  'minutes of processor time'), (
        (f'`{name}`', EXPERIMENTS[name].paper,
         *(_counts(run['counts'][kind]) for kind in reproduce.WORDS), str(run['shown']),
         str(len(run['remarks'])), f'{run["processor_seconds"] / 60.0:.2g}')
        for name, run in runs()))


def _counts(count: Mapping[str, int]) -> str:
    known = f' ({count["known"]} known)' if count['known'] else ''
    return f'{count["agree"]} agree, {count["differ"]} differ{known}'


TABLES = {'claims': claims, 'verdicts': verdicts, 'real_robot': real_robot,
          'criteria': criteria, 'recipe': recipe,
          'methods': methods, 'drivers': driver_tables.overview, 'efforts': driver_tables.efforts}


def filled(text: str) -> str:
    """Return the text of a page with its tables as the code has them."""
    return TABLE.sub(lambda found: f'{found[1]}{found[2]}{TABLES[found[1]]()}\n', text)


def main() -> None:
    """Write the tables into the pages."""
    for page in sorted(DOCS.rglob('*.md')):
        text = page.read_text('utf-8')
        if filled(text) != text:
            page.write_text(filled(text), 'utf-8')


if __name__ == '__main__':
    main()
