"""Every key of a recipe changes what it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from recordings import recording

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import DEFAULT, ESTIMATORS, owned_settings
from robot_dynid.estimation.feasible.sequential import SequentialFeasible
from robot_dynid.estimation.feasible.simultaneous import Feasible
from robot_dynid.estimation.irls import RobustLeastSquares
from robot_dynid.estimation.staged.least_squares import StagedLeastSquares
from robot_dynid.identification.gathered import choose_elastic_joints
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identification.recordings import Recordings
from robot_dynid.io.log import load_log
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

ROBOT = load_robot('planar_3r')
QUICK = {'cutoff': 10, 'ramp_width': 0.01, 'effort_lag': 0, 'ripple': 'none'}


def _estimator(method: str, settings: dict[str, Any]) -> Any:
    """Return the estimator of a method, by the settings as they stand beside other keys."""
    return recipe_from_dict(settings).estimator_for(method)


def identified(content: dict[str, Any], method: str = 'wls') -> IdentificationResult:
    """Return what a recipe makes of a short recording; what it leaves open is prescribed."""
    recipe = recipe_from_dict({**QUICK, **content})
    return identify(ROBOT, [recording(ROBOT, 1, 8.0)], method, recipe)


def repeated(content: dict[str, Any]) -> Any:
    """Return three periods of 4 s, repaired as a recipe says."""
    time = np.arange(0.0, 12.0, 0.01)
    position = np.sin(0.5 * np.pi * np.outer(time, [1.0, 2.0, 3.0]))
    log = RawLog('run', ROBOT.joints, time, position, effort=np.cos(position))
    return Recordings(ROBOT, [log], recipe_from_dict(content))[0]


def cutoff() -> None:
    assert identified({'cutoff': 7.5}).model.preprocessing.cutoff == 7.5


def accept() -> None:
    log = recording(ROBOT, 1, 8.0)
    log = replace(log, effort=-log.effort)
    with pytest.raises(DataError, match='effort_sign'):
        identify(ROBOT, [log], recipe=recipe_from_dict(QUICK))
    found = identify(ROBOT, [log], recipe=recipe_from_dict({**QUICK, 'accept': ['effort_sign']}))
    assert any('effort_sign' in warning for warning in found.warnings)


def ramp_width() -> None:
    laws = identified({'ramp_width': 0.03}).model.structure.laws
    assert [law.settings() for law in laws] == [{'width': 0.03}] * 3


def effort_lag() -> None:
    found = [identified({'effort_lag': lag}).model for lag in (0.0, 0.02)]
    assert [model.preprocessing.effort_lag for model in found] == [0.0, 0.02]
    assert np.abs(found[1].values - found[0].values).max() > 0.01


def encoder_delays() -> None:
    recipe = recipe_from_dict({'encoder_delays': {'joint_2': 0.003}})
    assert recipe.encoder_delays_of(ROBOT) == (0.0, 0.003, 0.0)
    assert identified({'encoder_delays': {}}).model.preprocessing.encoder_delays == ()
    with pytest.raises(UsageError, match='has no joint'):
        recipe_from_dict({'encoder_delays': {'joint_9': 0.003}}).encoder_delays_of(ROBOT)
    for wrong in ([0.003], {'joint_1': 1.0}, {'joint_1': 'late'}):
        with pytest.raises(UsageError, match='encoder_delays'):
            recipe_from_dict({'encoder_delays': wrong})


def rate() -> None:
    assert repeated({'rate': 250}).step == pytest.approx(0.004)


def rotor_inertia() -> None:
    kept = [sum(name.startswith('Ia') for name in identified({'rotor_inertia': on}).model.names)
            for on in (True, False)]
    assert kept[0] > kept[1] == 0


def friction() -> None:
    assert identified({'friction': 'stribeck', 'ramp_width': None}).model.structure.friction[
        0] == 'stribeck'


def windows() -> None:
    log = recording(ROBOT, 1, 8.0)
    found = identify(ROBOT, [log], recipe=recipe_from_dict(
        {**QUICK, 'windows': {log.source: [1, 7.5]}})).model.record
    assert found.recordings == (f'{log.source}[1:7.5]',)
    assert found.samples < identified({}).model.record.samples


def columns() -> None:
    content = {'time': 't', 'position': 'angle {i}', 'effort': 'torque {i}'}
    robot = recipe_from_dict({'columns': content}).of_recordings(ROBOT)
    with TemporaryDirectory() as folder:
        path = Path(folder) / 'own.csv'
        names = ['t', *(f'{name} {i}' for name in ('angle', 'torque') for i in range(3))]
        table = np.arange(70.0).reshape(10, 7) * 0.01
        np.savetxt(path, table, delimiter=',', header=','.join(names), comments='')
        with pytest.raises(DataError, match='match no preset'):
            load_log(path, ROBOT)
        log = load_log(path, robot)
    np.testing.assert_allclose(log.position, table[:, 1:4])
    np.testing.assert_allclose(log.effort, table[:, 4:])


def topics() -> None:
    robot = recipe_from_dict({'topics': {'effort': '/torques'}}).of_recordings(ROBOT)
    assert dict(robot.topics)['effort'].topic == '/torques' and not ROBOT.topics


def procedure() -> None:
    name = 'body-by-body'
    assert _estimator('staged', {'procedure': name}) == StagedLeastSquares(name)


def prior() -> None:
    assert _estimator('feasible', {'prior': 'euclidean'}) == Feasible('euclidean')


def prior_weight() -> None:
    assert _estimator('feasible', {'prior_weight': 0.5}) == Feasible(prior_weight=0.5)


def bounds() -> None:
    for method in ('feasible', 'sequential-feasible'):
        found = _estimator(method, {'bounds': {'total_mass': [1, 2]}})
        assert found.bounds.total_mass == (1.0, 2.0)


def sweeps() -> None:
    found = _estimator('sequential-feasible', {'sweeps': 7})
    assert found == SequentialFeasible(sweeps=7)


def generations() -> None:
    assert _estimator('sequential-feasible', {'generations': 1}) == SequentialFeasible(
        generations=1)


def period() -> None:
    assert repeated({}).averaging is None
    for given in (4, 'auto'):
        assert repeated({'period': given}).averaging.period == pytest.approx(4.0, abs=0.01)


def warm_up() -> None:
    assert [repeated({'period': 4, 'warm_up': count}).averaging.periods for count in (0, 1)] == [
        3, 2]


def robust() -> None:
    assert _estimator('irls', {'robust': 'tukey'}).robust == 'tukey'


def instrument_cutoff() -> None:
    assert _estimator('iv', {'instrument_cutoff': 3.0}).instrument_cutoff == 3.0


def start() -> None:
    assert _estimator('trajectory', {'start': 'feasible'}).start == 'feasible'


def residual() -> None:
    told = identified({'residual': 'rbf'}).warnings
    assert any('residual rbf needs motor states' in text for text in told)


def ripple() -> None:
    records = [identified({'ripple': asked}).model.record.ripple for asked in ('auto', 'none')]
    assert [len(record) for record in records] == [3, 0]


def adaptation() -> None:
    found = identified({'adaptation': 'none'}).model
    assert 'adaptation' not in found.learnt and found.record.slow_changes == ()
    assert len(identified({'adaptation': 'auto'}).model.record.slow_changes) == found.robot.n
    with pytest.raises(UsageError, match=r'adaptation .often.: choose one of auto, none'):
        identified({'adaptation': 'often'})


def loops() -> None:
    with pytest.raises(UsageError, match='loops: three'):
        identified({'loops': 'three'}, 'ols')


def estimator() -> None:
    recipe = recipe_from_dict({'estimator': {'name': 'irls', 'robust': 'tukey'}})
    assert recipe.estimator_for(None) == RobustLeastSquares('tukey')
    assert recipe_from_dict({'estimator': 'ols'}).estimator_for(None) == ESTIMATORS['ols']
    assert Recipe().estimator_for(None) == ESTIMATORS[DEFAULT]


def elastic_joints() -> None:
    found = [choose_elastic_joints(ROBOT, [], ESTIMATORS['wls'],
                                 recipe_from_dict({'elastic_joints': joints}))
             for joints in ([], ['joint_3', 'joint_1'])]
    assert [robot.drive.elastic for robot in found] == [(), (0, 2)]


CASES: dict[str, Callable[[], None]] = {case.__name__: case for case in (
    accept, cutoff, ramp_width, effort_lag, encoder_delays, rate, rotor_inertia, friction,
    procedure, prior, prior_weight, bounds, sweeps, period, warm_up, robust, instrument_cutoff,
    residual, loops, ripple, adaptation, elastic_joints, estimator, start, windows, generations,
    columns, topics)}


@pytest.mark.parametrize('key', [*(f.name for f in fields(Recipe)), *owned_settings()])
def test_every_key_has_its_effect(key: str) -> None:
    assert key in CASES, f'no test shows what the key {key} does'
    CASES[key]()


@pytest.mark.parametrize('method', ESTIMATORS)
def test_methods_are_as_they_are_where_the_recipe_is_silent(method: str) -> None:
    assert Recipe().estimator_for(method) == ESTIMATORS[method]


@pytest.mark.parametrize(('content', 'method', 'message'), [
    ({'robust': 'tukey'}, 'wls', 'robust is a setting of the method irls, not of wls: choose '
                                 '--method irls, or omit robust'),
    ({'robust': 'tukey'}, None, 'robust is a setting of the method irls, not of wls'),
    ({'prior': 'euclidean'}, 'iv', 'setting of the method feasible and sequential-feasible, not'),
    ({'estimator': {'name': 'irls'}}, 'iv', 'the estimator is irls, but method iv is asked for'),
    ({}, 'guess', "method 'guess': choose one of ols, wls"),
])
def test_settings_of_another_method_are_refused_by_name(
        content: dict[str, Any], method: str | None, message: str) -> None:
    recipe = recipe_from_dict(content)
    with pytest.raises(UsageError, match=message):
        recipe.estimator_for(method)


@pytest.mark.parametrize(('content', 'message'), [
    ({'estimator': {'name': 'irls', 'sweeps': 2}}, 'sweeps is a setting of the method sequential'),
    ({'estimator': {'name': 'irls', 'bend': 2}}, 'unknown setting bend of the method irls'),
    ({'estimator': {'bend': 2}}, 'unknown setting bend of a method'),
    ({'estimator': {'name': 'best'}}, "method 'best': choose one of"),
    ({True: 1, 'speed': 2, 3: 4}, 'unknown key 3, True, speed'),
    ({'estimator': 3}, 'estimator must be the name of a method, or a mapping'),
    ({'estimator': {'robust': 'tukey'}, 'robust': 'huber'}, 'robust is both in estimator and'),
    ({'sweeps': 2.5}, 'sweeps must be a whole number'),
    ({'rotor_inertia': 1}, 'rotor_inertia must be true or false'),
])
def test_estimators_that_cannot_be_are_refused_when_read(
        content: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        recipe_from_dict(content)


def test_friction_is_chosen_unless_all_laws_are_the_simplest() -> None:
    robot = load_robot('planar_3r')
    for laws, chosen in (('coulomb', False), ('stribeck', True), ('auto', True),
                         ({'joint_2': 'auto', 'others': 'coulomb'}, True)):
        assert Recipe(friction=laws).chooses_friction(robot) is chosen
