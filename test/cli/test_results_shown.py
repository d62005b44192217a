"""cli/base.py, contact.py, design.py, validate.py: what is printed of results made by hand."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest

from robot_dynid.cli import base, contact, design, validate
from robot_dynid.cli.terminal import Terminal


def shown(module: Any, result: dict[str, Any], verbose: bool = False) -> list[str]:
    """Return the words of every line that a verb prints."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv('COLUMNS', '400')
        module.show(result, Terminal(verbose=verbose))
    return [' '.join(line.split()) for line in out.getvalue().splitlines()]


BASE = {
    'robot': 'arm', 'joints': ['a', 'b'], 'standard': 20, 'base': 7, 'gap': float('inf'),
    'constants': [], 'kept': ['m2', 'mx2'], 'labels': ['m2 + m3', 'mx2 - 0.5 m3'],
    'categories': {'m1': {'category': 'unidentifiable'}, 'm2': {
        'category': 'in combinations', 'in': ['m2', 'mx2'], 'advice': 'wrist sensor'}},
    'further': [{'words': 'wrist sensor', 'tells_apart': ['m2', 'm3'], 'shows_combined': []}],
    'warnings': ['no limits']}


def test_base_parameters_are_shown_with_their_combinations() -> None:
    lines = ['arm: 2 joints, 20 standard parameters, 7 base parameters',
             'rank counted from the axes', 'base parameter combination', 'm2 m2 + m3',
             'mx2 mx2 - 0.5 m3']
    assert shown(base, BASE) == [
        *lines, 'which parameters the motion can identify, and with which sensors: --verbose',
        '! no limits']
    categories = ['parameter category in sensor configuration', 'm1 unidentifiable',
                  'm2 in combinations m2, mx2 wrist sensor']
    assert shown(base, BASE, verbose=True) == [
        *lines, *categories, 'sensor configuration identifiable alone in combinations',
        'wrist sensor m2, m3 none', '! no limits']
    other = [{'words': 'base sensor', 'tells_apart': [], 'shows_combined': ['m1', 'm4']}]
    assert shown(base, {**BASE, 'further': other}, verbose=True)[-2] == 'base sensor none m1, m4'
    assert shown(base, {**BASE, 'further': []}, verbose=True) == [
        *lines, *categories, '! no limits']
    assert shown(base, {**BASE, 'gap': 2.7e9})[1] == \
        'the singular values drop at the rank by a factor of 3e+09'
    constants = [{'name': 'm^2', 'body': 'b', 'nominal': 4.5, 'combination': 'm2 + m3'}]
    assert shown(base, {**BASE, 'constants': constants})[2:5] == [
        'inertia constants of composite bodies: a link with all that it carries',
        'constant body from nominal combination', 'm^2 b 4.5 m2 + m3']


@pytest.mark.parametrize('ok', [True, False])
def test_joints_that_were_not_watched_to_the_end_are_told(ok: bool) -> None:
    """Those that were blind at the beginning only are no reason for exit code 1."""
    def blind(joint: str, reason: str, begins: bool) -> dict[str, Any]:
        return {'joint': joint, 'reason': reason, 'begins': begins}

    recordings = {'a.csv': {'blind': [blind('j1', 'warming', True),
                                      blind('j2', 'no data', False)]},
                  'b.csv': {'blind': [blind('j3', 'no data', False)]}}
    text = shown(contact, {'recordings': recordings, 'ok': ok, 'chapters': [], 'report': 'r.html'})
    assert text == ([] if ok else [
        'exit code 1: j2 and j3 were blind for a while, so contacts there may be missed '
        '(--accept-partial accepts refused joints): no data']) + ['report r.html']


def test_joints_above_their_limit_of_error_are_told_with_both_figures() -> None:
    result: dict[str, Any] = {
        'chapters': [], 'findings': {}, 'report': None, 'max_nrmse': {'a': 0.1, 'b': 0.25},
        'joints': {'a': {'nrmse': 0.05}, 'b': {'nrmse': 0.31234}}}
    assert shown(validate, {**result, 'above_max_nrmse': ['b']}) == [
        'exit code 1, RMSE / std is above --max-nrmse: b 0.312 (limit 0.25)']
    assert shown(validate, {**result, 'above_max_nrmse': []}) == []


def test_designs_are_shown_with_their_files_or_why_none_is_needed() -> None:
    made = {'out': 't.yaml', 'report': None, 'chapters': [], 'warnings': ['slow'], 'validation': {
        'out': 'v.yaml', 'report': 'v.html', 'warnings': ['slow', 'short']}}
    assert shown(design, made) == ['! validation motion: short',
                                   'fit motion t.yaml, validation motion v.yaml, report v.html']
    assert shown(design, {**made, 'validation': None}) == ['fit motion t.yaml']
    over = {'out': None, 'session': {'accuracy': 0.1}, 'largest_deviation': 0.05,
            'least_known': 'm2'}
    assert shown(design, over) == [
        'the accuracy 10.0 % is met: m2, deviation 5.0 %; no further recording is needed']
