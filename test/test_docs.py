"""Documentation: files and Python names that it mentions are there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from robot_dynid.cli.verbs import VERBS
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.excitation.families import FAMILIES
from robot_dynid.friction import ADDITIONS, LAWS
from robot_dynid.plausibility.finding import KINDS

ROOT = Path(__file__).resolve().parents[1]
#: a block of code
BLOCK = re.compile(r'^ *```.*?^ *```$', re.M | re.S)
#: lines of a page of the path, which is read in one go
LONGEST = 250
#: the registries of which a page has a table, with a row of every entry
TABLES = {'friction': (*LAWS, *ADDITIONS), 'estimators': tuple(ESTIMATORS),
          'excitation': tuple(FAMILIES), 'identification': tuple(KINDS)}
#: what a path in the text may be relative to
PACKAGE = ROOT / 'robot_dynid'
BASES = (ROOT, PACKAGE, PACKAGE / 'robot_dynid', PACKAGE / 'robot_dynid_extras',
         ROOT / 'robot_dynid_evaluation')
#: architecture.md shows files to be added, and is followed by a test of its own
PAGES = [ROOT / 'README.md',
         *sorted(p for p in (ROOT / 'docs').rglob('*.md') if p.stem != 'architecture')]


def missing(text: str) -> list[str]:
    """Return the Python files and imported names in ``text`` that do not exist."""
    paths = re.findall(r'`((?:\w+/)+\w+\.py)', text)
    found = [path for path in paths if not any((base / path).is_file() for base in BASES)]
    for code in re.findall(r'^```python\n(.*?)^```$', text, re.M | re.S):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('robot_dynid'):
                try:
                    module = importlib.import_module(str(node.module))
                except ModuleNotFoundError:
                    found.append(str(node.module))
                    continue
                found += [name.name for name in node.names if not hasattr(module, name.name)]
    return found


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_files_and_names_that_a_page_mentions_exist(page: Path) -> None:
    assert not missing(page.read_text(encoding='utf-8'))


@pytest.mark.parametrize(('text', 'name'), [
    ('see `signals/nowhere.py`', 'signals/nowhere.py'),
    ('```python\nfrom robot_dynid import nothing\n```\n', 'nothing'),
    ('```python\nfrom robot_dynid.nowhere import nothing\n```\n', 'robot_dynid.nowhere')])
def test_missing_reports_files_and_names_that_do_not_exist(text: str, name: str) -> None:
    assert missing(text) == [name]


@pytest.mark.parametrize('page', [*PAGES[1:], ROOT / 'docs' / 'architecture.md'],
                         ids=lambda page: page.stem)
def test_a_page_begins_with_one_sentence_about_it(page: Path) -> None:
    title, first, *_ = page.read_text(encoding='utf-8').split('\n\n', 2)
    assert title.startswith('# ')
    assert re.fullmatch(r'[A-Z][^*]+\.', first, re.S), first[:80]
    assert not re.search(r'[.!?]\s', first), first[:80]


def test_the_index_lists_every_page_in_an_order_of_reading() -> None:
    index = (ROOT / 'docs' / 'index.md').read_text(encoding='utf-8')
    listed = re.findall(r'^([\w/]+)$', index, re.M)
    there = {path.stem for path in (ROOT / 'docs').glob('*.md')} | {'api'}
    assert len(set(listed)) == len(listed)
    assert set(listed) == there - {'index'}
    for place, name in enumerate(listed[:6], start=1):
        text = (ROOT / 'docs' / f'{name}.md').read_text(encoding='utf-8')
        assert text.startswith(f'# {place}. ')
        assert len(text.splitlines()) <= LONGEST, f'{name}.md is too long to read in one go'


def test_tables_and_picture_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / 'docs'))
    tables, picture = (importlib.import_module(name) for name in ('tables', 'picture'))
    texts = {str(path.relative_to(ROOT / 'docs')): path.read_text('utf-8')
             for path in (ROOT / 'docs').rglob('*.md')}
    assert {name for text in texts.values() for name, _ in tables.TABLE.findall(text)} == \
        set(tables.TABLES)
    old = [name for name, text in texts.items() if tables.filled(text) != text]
    assert not old, f'{", ".join(old)}: run python docs/tables.py'
    errors = picture.errors(texts[picture.PAGE.name])
    assert len(errors) == 6
    assert picture.PICTURE.read_text('utf-8') == picture.drawn(errors), 'run docs/picture.py'


def test_every_verb_has_a_section_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / 'docs'))
    text = importlib.import_module('tables').commands()
    assert [f'## {verb}' for verb in VERBS] == re.findall('^## .*', text, re.M)
    assert '| `--recipe R.yaml` |' in text and '| `--dry-run` |' in text


def test_the_functions_on_the_way_from_a_verb_to_the_mathematics_are_there() -> None:
    text = (ROOT / 'docs' / 'architecture.md').read_text(encoding='utf-8')
    way = text.split('## From a verb to the mathematics')[1].split('\n## ')[0]
    names = re.findall(r'^\| `([\w.]+)`', way, re.M)
    assert len(names) > 10
    for name in names:
        assert resolved(name), name
    assert not resolved('identification.identify.chosen')


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: labels, and headings as GitHub names them."""
    text = page.read_text('utf-8')
    headings = (re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', line) for line in
                re.findall(r'^#+ (.*)$', re.sub(BLOCK, '', text), re.M))
    return {re.sub(r'[^\w\- ]', '', one.strip().lower()).replace(' ', '-') for one in headings} | {
        *re.findall(r'^\((.*?)\)=$', text, re.M)}


def dead_links(page: Path) -> list[str]:
    """Return the links of a page to files and anchors that do not exist.

    Anchors of text that is added when the pages are built are not checked.
    """
    dead = []
    text = re.sub(r'`[^`]*`', '', re.sub(BLOCK, '', page.read_text('utf-8')))
    for link in re.findall(r'\]\((?!\w+:)([^)\s]+)\)', text):
        name, _, anchor = link.partition('#')
        target = (page.parent / name).resolve() if name else page
        filled = target.is_file() and target.suffix == '.md' and \
            '<!-- generated: ' in target.read_text('utf-8')
        if not target.exists() or (anchor and not filled and anchor not in anchors(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize('page', [*PAGES, ROOT / 'docs' / 'architecture.md'],
                         ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    assert not dead_links(page)


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / 'other.md').write_text('# A `heading`, here\n')
    page = tmp_path / 'page.md'
    page.write_text('# Page\n[a](other.md#a-heading-here) [b](other.md#b) [c](no.md) [d](#page)\n')
    assert dead_links(page) == ['other.md#b', 'no.md']


@pytest.mark.parametrize(('page', 'name'), [
    (page, name) for page, names in TABLES.items() for name in names])
def test_a_table_has_a_row_of_every_entry(page: str, name: str) -> None:
    text = (ROOT / 'docs' / f'{page}.md').read_text(encoding='utf-8')
    assert re.search(rf'^\|[^|]*`{re.escape(name)}`', text, re.M), f'docs/{page}.md: {name}'


def resolved(name: str) -> bool:
    """Return whether a dotted name below robot_dynid is a module or an attribute."""
    parts, found = name.split('.'), importlib.import_module('robot_dynid')
    for place, part in enumerate(parts, start=1):
        try:
            found = importlib.import_module('.'.join(('robot_dynid', *parts[:place])))
        except ModuleNotFoundError:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
    return True
