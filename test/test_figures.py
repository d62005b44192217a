"""Figures of the UR10e on the pages are those that the commands beside them print.

The rows are made of what is printed, as they stand on the page: a row that differs is to be copied
there from the failure, and what became worse is to be told in the changelog.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from robot_dynid.cli.main import main

pytestmark = pytest.mark.soak

ROOT = Path(__file__).resolve().parents[1]
#: recipes by name, as the pages state them
RECIPES = {'default': '', 'no ripple': 'ripple: none\n',
           'coulomb': 'friction: coulomb\nripple: none\n'}
Validated = Callable[..., dict[str, Any]]


def printed(*words: str) -> dict[str, Any]:
    """Return what a command prints with --json."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert main([*words, '--json']) == 0, words
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def files(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob('*.csv.gz')))


@pytest.fixture(scope='module')
def validated(ur10e_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Validated:
    """Return what `validate` prints of a model from a folder by a recipe, identified once."""
    made = tmp_path_factory.mktemp('models')

    @cache
    def validate(recipe: str, *options: str, folder: str = 'train') -> dict[str, Any]:
        model = str(made / f'{recipe}{"".join(options)}{folder}.yaml')
        text = made / 'recipe.yaml'
        text.write_text(RECIPES[recipe], encoding='utf-8')
        given = ('--recipe', str(text)) if RECIPES[recipe] else ()
        data = files(ur10e_data / folder)
        printed('identify', *data, '--robot', 'ur10e', *given, *options, '--accept-partial',
                '--out', model)
        forward = ('--forward',) if (recipe, folder) == ('default', 'train') else ()
        return printed('validate', model, *files(ur10e_data / 'test'), *forward,
                       '--accept-partial')
    return validate


def joints(result: dict[str, Any], *keys: str) -> list[float]:
    """Return a score of each joint, relative ones in per cent."""
    found = []
    for one in result['joints'].values():
        value: Any = one
        for key in keys:
            value = value[key]
        found.append(100.0 * value if keys[-1] == 'relative_error' else value)
    return found


def row(head: str, values: Iterable[float], form: str) -> str:
    """Return a line of a table as it stands on a page."""
    return ' | '.join((f'| {head}', *(format(value, form) for value in values))) + ' |'


def assert_there(page: str, lines: Sequence[str]) -> None:
    """Fail with those of ``lines`` that a page does not have."""
    text = (ROOT / page).read_text(encoding='utf-8')
    lacking = [line for line in lines if line not in text]
    assert not lacking, '\n'.join((f'{page} lacks', *lacking))


def errors(result: dict[str, Any], *part: str) -> list[float]:
    return joints(result, *part, 'relative_error')


def test_figures_of_the_comparison(validated: Validated) -> None:
    result = validated('default')
    parts = [errors(result, *part) for part in ((), ('control',), ('motion',),
                                                ('near reversals',))]
    lines = [' | '.join((f'| {name}', f'{rmse:.4g}', *(f'{one[j]:.1f}' for one in parts),
                         f'{r2:.3f} |'))
             for j, (name, rmse, r2) in enumerate(zip(
                 result['joints'], joints(result, 'rmse'), joints(result, 'r2'), strict=True))]
    lines += [', '.join(f'{value:.1f}' for value in errors(validated(recipe))) + ' %'
              for recipe in ('no ripple', 'coulomb')]
    assert_there('docs/comparison.md', lines)


def test_figures_of_friction_and_slow_changes(validated: Validated) -> None:
    result, plain, coulomb = (validated(name) for name in RECIPES)
    columns = [errors(coulomb), errors(plain), errors(coulomb, 'near reversals'),
               errors(plain, 'near reversals')]
    assert_there('docs/friction.md', [
        row(str(j + 1), values, '.1f') for j, values in enumerate(zip(*columns, strict=True))])
    assert_there('docs/slow_changes.md', [
        row('`ripple: none`, static', errors(plain), '.1f'),
        row('static', errors(result), '.1f'), row('warm-up', errors(result, 'warm_up'), '.1f'),
        row('adaptive', errors(result, 'adaptive'), '.1f')])


def test_figures_of_forward_dynamics(validated: Validated) -> None:
    forward = validated('default')['forward']
    scores = {'joints': forward['accelerations']}
    (middle,) = (one for one in forward['rollouts'] if one['seconds'] == 0.5)

    def off(whose: str) -> list[float]:
        return [1e3 * value for value in joints(middle, whose, 'position')]

    assert_there('docs/identification.md', [
        row('acceleration, RMSE [rad/s²]', joints(scores, 'rmse'), '.2f'),
        row('floor [rad/s²]', joints(scores, 'floor'), '.2f'),
        row('relative error in motion [%]', errors(scores, 'motion'), '.0f'),
        row('position after up to 0.5 s, RMS [mrad]', off('model'), '.1f'),
        row('baseline [mrad]', off('control'), '.1f'),
        row('at constant velocity [mrad]', off('constant_velocity'), '.0f')])


def test_figures_of_staged_models(validated: Validated) -> None:
    def line(head: str, result: dict[str, Any], *part: str) -> str:
        return row(head, errors(result, *part), '.1f')

    staged = ('default', '--method', 'staged')
    one = validated(*staged, folder='single_joint')
    other = validated(*staged, '--procedure', 'body-by-body', folder='single_joint')
    assert_there('docs/staged.md', [
        line('four Fourier runs | wls | chosen', validated('no ripple')),
        line('six single-joint runs | wls | Coulomb',
             validated('coulomb', folder='single_joint')),
        line('six single-joint runs | staged, distal-to-proximal | chosen', one),
        line('six single-joint runs | staged, body-by-body | chosen', other),
        line('six single-joint runs | nominal inertials, fitted friction | chosen', one,
             'control')])


def test_figures_of_estimators(validated: Validated) -> None:
    named = {'`wls`': ('wls',), '`ols`': ('ols',), '`gls`': ('gls',), '`iv`': ('iv',),
             '`irls`, Huber': ('irls', '--robust', 'huber'),
             '`irls`, Tukey': ('irls', '--robust', 'tukey')}
    lines = [row(head, errors(validated('coulomb', '--method', *words)), '.2f')
             for head, words in named.items()]
    for name in ('wls', 'trajectory'):
        rollout = validated('coulomb', '--method', name)['rollout']
        lines.append(row(f'`{name}`, position',
                         [1e3 * value for value in joints(rollout, 'position')], '.1f'))
    assert_there('docs/estimators.md', lines)


def test_figures_effect_by_effect(ur10e_data: Path) -> None:
    again = (ur10e_data / 'train' / '20_02_19_14harm50sec.csv.gz',
             ur10e_data / 'payload_2.805kg' / '20_02_19_14harm50secLoad.csv.gz')
    rows = printed('bench', 'residual', '--data', str(ur10e_data), '--again',
                   ','.join(map(str, again)))['rows']
    slow = [found for found in rows if found['error'].startswith('RMSE below')]
    assert_there('docs/identification.md', [
        row(f'{model} below 8 Hz [N m]', [found[model] for found in slow], '#.3g')
        for model in ('auto', 'adaptive', 'robot itself')])


def test_figures_of_two_months(ur10e_data: Path, tmp_path: Path) -> None:
    months = {'january': files(ur10e_data / 'test')[:1], 'february': files(ur10e_data / 'train')}
    for name, data in months.items():
        printed('identify', *data, '--robot', 'ur10e', '--out', str(tmp_path / f'{name}.yaml'))
    result = printed('compare', *(str(tmp_path / f'{name}.yaml') for name in months))
    (changes,) = result['changes'].values()
    named = [change for change in changes if change['changed']]
    assert len(changes) == 18 and not named
    assert_there('docs/fleet.md', ['it names nothing among its 18 tests'])
