"""docs/recipe.md: its tables are the keys of the code, with types, defaults, methods, options."""

from __future__ import annotations

import argparse
import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from robot_dynid.cli.main import VERBS, parser
from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, owned_settings
from robot_dynid.estimation.feasible.bounds import Bounds
from robot_dynid.identification.recipe import Recipe, recipe_from_text
from robot_dynid.settings import settings_of

PAGE = (Path(__file__).resolve().parents[1] / 'docs' / 'recipe.md').read_text(encoding='utf-8')
COMMON, OWNED = (
    {row[0].strip('`'): row for line in PAGE.partition(title)[2].partition('\n## ')[0].splitlines()
     if line.startswith('| `') for row in [[cell.strip() for cell in line[1:-1].split(' |')]]}
    for title in ('## Of every method', '## Of some methods'))
#: annotations as the page says them
TYPES = {
    'float | None': 'number', 'float': 'number', 'float | str | None': 'number or word',
    'int': 'whole number', 'bool': 'true or false', 'bool | None': 'true or false',
    'str': 'word', 'str | Mapping[str, str]': 'word or mapping',
    'Mapping[str, Any]': 'word or mapping', 'tuple[str, ...]': 'list',
    'tuple[str, ...] | None': 'list', 'Mapping[str, tuple[Window, ...]]': 'mapping',
    'Mapping[str, TopicFields]': 'mapping', 'ColumnMapping | None': 'word or mapping',
    'Bounds': 'mapping',
}
OPTIONS = {verb: {option for action in actions for option in action.option_strings}
           for sub in parser()._actions if isinstance(sub, argparse._SubParsersAction)
           for verb, actions in ((name, one._actions) for name, one in sub.choices.items())}


def default_of(field: Field[Any]) -> Any:
    """Return the default of a setting in plain types."""
    value = field.default if field.default is not MISSING else field.default_factory()  # type: ignore[misc]
    return {} if value == Bounds() else list(value) if isinstance(value, tuple) else value


def stated_default(cell: str) -> Any:
    """Return the default that a cell states."""
    return None if cell.startswith('none:') else yaml.safe_load(cell.strip('`'))


def names(cell: str) -> set[str]:
    """Return the names in a cell."""
    return set(re.findall(r'`([\w-]+)`', cell))


def check_options(key: str, cell: str) -> None:
    """Check the verbs that have an option for a key; other verbs may use its name otherwise."""
    there = {verb for verb, options in OPTIONS.items() if f'--{key.replace("_", "-")}' in options}
    stated = names(cell)
    assert stated <= there
    assert ('identify' in stated) == ('identify' in there)
    if stated:
        assert stated == there


def test_the_tables_list_every_key_and_no_other() -> None:
    assert set(COMMON) == set(settings_of(Recipe))
    assert set(OWNED) == set(owned_settings())
    assert set(OPTIONS) == set(VERBS)


@pytest.mark.parametrize('key', COMMON)
def test_keys_of_every_method(key: str) -> None:
    _, kind, default, meaning, options = COMMON[key]
    field = {f.name: f for f in fields(Recipe)}[key]
    assert kind == TYPES[str(field.type)]
    assert stated_default(default) == default_of(field)
    check_options(key, options)
    for unit in re.findall(r'\[.*?\]', settings_of(Recipe)[key].help):
        assert unit in meaning


@pytest.mark.parametrize('key', OWNED)
def test_keys_of_some_methods(key: str) -> None:
    _, kind, default, meaning, methods, options = OWNED[key]
    setting, owners = owned_settings()[key]
    assert names(methods) == set(owners)
    for owner in owners:
        field = {f.name: f for f in fields(ESTIMATORS[owner])}[key]  # type: ignore[arg-type]
        assert kind == TYPES[str(field.type)]
        assert stated_default(default) == default_of(field)
    check_options(key, options)
    for unit in re.findall(r'\[.*?\]', setting.help):
        assert unit in meaning


@pytest.mark.parametrize('key', [key for key, row in {**COMMON, **OWNED}.items()
                                 if row[1] == 'word'])
def test_words_of_a_key_are_those_it_takes(key: str) -> None:
    with pytest.raises(UsageError, match='choose one of') as found:
        recipe_from_text(f'{key}: nonsense')
    choices = str(found.value).partition('choose one of ')[2]
    assert names({**COMMON, **OWNED}[key][3]) == set(choices.split(', '))


def test_the_example_is_a_recipe() -> None:
    (example,) = re.findall(r'```yaml\n(.*?)```', PAGE, re.S)
    assert recipe_from_text(example).cutoff == 12.0
