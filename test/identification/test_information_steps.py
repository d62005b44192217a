"""identification/recorded_information.py: what is reduced, merged and fitted, and its excerpt."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recorded_information import (
    EXCERPT_ROWS,
    excerpt,
    identify_information,
    information,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.parts import Parts
from robot_dynid.types import RawLog

MODULE: Any = importlib.import_module('robot_dynid.identification.recorded_information')
ROBOT = load_robot('planar_3r')


def log_of(source: str, rows: int = 4) -> RawLog:
    return RawLog(source, ROBOT.joints, np.arange(float(rows)), np.zeros((rows, 3)))


@pytest.mark.parametrize(('rows', 'sources'), [
    (2857, 'abcdefg'), (2858, 'aceg'), (5714, 'aceg'), (5715, 'adg'), (20_000, 'a'),
    (19_999, 'a')])
def test_excerpts_are_evenly_spaced_recordings_of_twenty_thousand_rows(
    monkeypatch, rows: int, sources: str
) -> None:
    assert EXCERPT_ROWS == 20_000
    logs = [log_of(name, rows) for name in 'abcdefg']
    for given in (logs, Parts(tuple(logs))):
        assert ''.join(log.source for log in excerpt(given)) == sources
    monkeypatch.setattr(Parts, 'cut', True)
    monkeypatch.setattr(Parts, 'excerpt', lambda self, count: {20_000: logs[2:3]}[count])
    assert [log.source for log in excerpt(Parts(tuple(logs)))] == ['c']


@pytest.mark.parametrize('like', [None, 'like'])
def test_information_is_gathered_with_the_choices_it_is_like(monkeypatch, like) -> None:
    asked: list[Any] = []
    gathered = SimpleNamespace(
        robot='robot', choice='choice', extent='extent', record='record', findings=('found',),
        notes=('noted',), logs=[log_of('a')], release=lambda: asked.append('release'),
        experiment=SimpleNamespace(information='information', reversal_weights='weights'))

    def gather(robot: Any, logs: Any, request: Any, progress: Any, watch: Any) -> Any:
        asked.append((request.estimator.name, request.recipe, request.like, request.recorded))
        assert (robot, logs, watch.clock) == (ROBOT, ['log'], None)
        return gathered

    monkeypatch.setattr(MODULE, 'gather', gather)
    monkeypatch.setattr(MODULE, 'check_method', lambda *given: asked.append(given[1]))
    monkeypatch.setattr(MODULE, 'check_alike', lambda one, other: asked.append((one, other)))
    logs: Any = ['log']
    workers: Any = 'workers'
    recipe = Recipe(cutoff=7.0, estimator={'name': 'ols'})
    other: Any = None if like is None else SimpleNamespace(like='choices')
    found: Any = information(ROBOT, logs, recipe, other, recorded=workers)
    assert asked[:3] == [recipe, ('ols', recipe, 'choices' if like else None, 'workers'),
                         'release']
    assert asked[3:] == ([(other, found)] if like else [])
    assert (found.robot, found.choice, found.information, found.reversal_weights) == (
        'robot', 'choice', 'information', 'weights')
    assert (found.extent, found.record, found.notes) == ('extent', 'record', ('found', 'noted'))
    assert [log.source for log in found.excerpt] == ['a'] and found.motions == ()


def test_models_are_fitted_to_merged_information(monkeypatch) -> None:
    asked: list[Any] = []
    choice = SimpleNamespace(structure=SimpleNamespace(
        torque_model=lambda robot: f'model {robot}'))
    whole = SimpleNamespace(
        robot='arm', choice=choice, information='information', reversal_weights='weights',
        extent='extent', record='record', notes=('noted',), excerpt=('a', 'b'))
    estimator = SimpleNamespace(for_robot=lambda robot: f'method for {robot}')

    def fit(gathered: Any, *given: Any) -> Any:
        asked.append((gathered, *given[:2], given[3].clock))
        return 'result'

    for name, fake in {
            'merge_information': lambda parts: whole, 'check_method': lambda *given: None,
            'Experiment': SimpleNamespace(about=lambda *given: given),
            'Recordings': lambda robot, logs, recipe: [f'{robot} {log}' for log in logs],
            'fit_gathered': fit}.items():
        monkeypatch.setattr(MODULE, name, fake)
    recipe: Any = SimpleNamespace(estimator_for=lambda method: {'ols': estimator}[method])
    parts: Any = ['part']
    assert identify_information(parts, 'ols', recipe) == 'result'
    ((gathered, method, used, clock),) = asked
    assert (method, used, clock) == ('method for arm', recipe, None)
    assert gathered.experiment == ('model arm', 'information', 'weights')
    assert (gathered.robot, gathered.choice, gathered.extent, gathered.record) == (
        'arm', choice, 'extent', 'record')
    assert (gathered.notes, gathered.findings, gathered.logs) == (('noted',), (), ('a', 'b'))
    assert gathered.excerpt == ['arm a', 'arm b'] and gathered.sweeps is None
    whole.excerpt = ()
    with pytest.raises(UsageError, match=r'^the information holds no rows of its recordings to'):
        identify_information(parts, 'ols', recipe)
