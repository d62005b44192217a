"""identification/recipe.py: values of every form, and what is said of others."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.errors import UsageError
from robot_dynid.identification.recipe import Recipe, recipe_from_dict, recipe_from_text
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.averaging import Periodic

ROBOT = load_robot('planar_3r')
BEHIND = replace(ROBOT, drive=replace(ROBOT.drive, sensor='link'))


@pytest.mark.parametrize(('content', 'words'), [
    ({'elastic_joints': 'joint_1'}, "elastic_joints must be a list of joint names, is 'joint_1'"),
    ({'elastic_joints': ['joint_1', 2]}, 'elastic_joints must be a list of joint names, is'),
    ({'encoder_delays': [0.1]}, 'encoder_delays must be a mapping of joints to seconds such as '
     '{joint_1: 0.003}, is [0.1]'),
    ({'encoder_delays': {1: 0.1}}, 'encoder_delays must be a mapping of joints to seconds such'),
    ({'encoder_delays': {'a': 'late'}}, 'encoder_delays: a'),
    ({'friction': 3}, 'friction must be the name of a law, or a mapping of joints to laws such as '
     '{joint_1: dahl, joint_7: none, others: auto}, is 3'),
    ({'friction': {'a': 3}}, 'friction must be the name of a law, or a mapping of joints to laws'),
    ({'friction': {3: 'dahl'}}, 'friction must be the name of a law, or a mapping of joints to'),
    ({'windows': [1.0]}, 'windows must be a mapping of files to windows such as {run.csv.gz: '
     '[12.0, 40.5]}, is [1.0]'),
    ({'windows': {3: [1.0, 2.0]}}, 'windows must be a mapping of files to windows such as'),
    ({'accept': 3}, 'accept must be a list of kinds of findings, is 3'),
    ({'accept': ['gravity', 3]}, 'accept must be a list of kinds of findings, is'),
    ({'estimator': 3}, 'estimator must be the name of a method, or a mapping such as {name: irls, '
     'robust: tukey}, is 3'),
    ({'estimator': {'name': 3}}, 'estimator: name must be that of a method, is 3'),
    ({'z': 1, 'a': 2}, 'recipe: unknown key a, z; choose from '),
    ({'estimator': {'name': 'irls', 'robust': 'tukey'}, 'robust': 'huber'},
     'recipe: robust is both in estimator and top level: omit one'),
    ({'friction': 'dahl', 'ramp_width': 0.1},
     'recipe: ramp_width belongs to the law coulomb, not to dahl: omit one of them')])
def test_values_that_a_key_cannot_have_are_refused(content: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        recipe_from_dict(content)
    assert words in str(refused.value)


def test_values_are_read_in_every_form() -> None:
    assert recipe_from_dict({'elastic_joints': ['b', 'a']}).elastic_joints == ('b', 'a')
    assert recipe_from_dict({'elastic_joints': None}).elastic_joints is None
    delays = recipe_from_dict({'encoder_delays': {'a': 0.003, 'b': -0.001}}).encoder_delays
    assert delays == {'a': 0.003, 'b': -0.001}
    assert recipe_from_dict({'encoder_delays': None}).encoder_delays is None
    assert recipe_from_dict({'accept': 'gravity'}).accept == ('gravity',)
    assert recipe_from_dict({'accept': ['gravity', 'velocity']}).accept == ('gravity', 'velocity')
    windows = recipe_from_dict({'windows': {'a': [1.0, 2.5], 'b': [[3.0, 4.0], [5.0, 6.5]]}})
    assert [(name, [(one.start, one.stop) for one in several])
            for name, several in windows.windows.items()] == [
        ('a', [(1.0, 2.5)]), ('b', [(3.0, 4.0), (5.0, 6.5)])]
    assert recipe_from_dict({'estimator': 'ols'}).estimator == {'name': 'ols'}
    assert recipe_from_dict({'estimator': None}).estimator == {}
    assert recipe_from_dict({'robust': 'tukey', 'estimator': 'irls'}).estimator == {
        'name': 'irls', 'robust': 'tukey'}
    assert recipe_from_dict({'friction': 'coulomb', 'ramp_width': 0.1}).ramp_width == 0.1
    assert recipe_from_dict({'friction': 'auto', 'ramp_width': 0.1}).ramp_width == 0.1
    assert recipe_from_dict({'columns': None}).columns is None
    assert recipe_from_text('') == Recipe() and recipe_from_text('cutoff: 7').cutoff == 7.0
    with pytest.raises(UsageError, match=r'^r: must be a mapping of keys to values$'):
        recipe_from_text('- 1', 'r')


def test_periods_are_averaged_if_they_are_given() -> None:
    assert Recipe().periodic is None
    assert Recipe(period=2.5, warm_up=3).periodic == Periodic(2.5, 3)
    assert Recipe(period='auto').periodic == Periodic(None, Periodic.warm_up)


def test_laws_are_requested_for_every_axis() -> None:
    def laws(friction: Any, robot: Any = ROBOT, **more: Any) -> list[str]:
        return [request.law for request in Recipe(friction=friction, **more).law_requests(robot)]

    assert laws('dahl') == ['dahl'] * 3
    assert laws({'joint_2': 'dahl', 'others': 'stribeck'}) == ['stribeck', 'dahl', 'stribeck']
    assert laws({'joint_2': 'dahl'}) == ['', 'dahl', '']
    with pytest.raises(UsageError) as refused:
        laws({'joint_9': 'dahl', 'x': 'none'})
    assert str(refused.value) == (
        'recipe: friction: planar_3r has no joint joint_9, x; choose one of joint_1, joint_2, '
        'joint_3, others')


@pytest.mark.parametrize(('robot', 'simplest'), [(ROBOT, 'coulomb'), (BEHIND, 'none')])
def test_simple_laws_take_the_place_of_those_the_data_would_choose(robot, simplest) -> None:
    """Also with a ramp width; a law that is named stays."""
    recipe = Recipe(friction={'joint_1': 'auto without dahl', 'joint_2': 'stribeck'})
    assert recipe.with_simple_laws(robot).friction == {
        'others': simplest, 'joint_1': simplest, 'joint_2': 'stribeck'}
    wide = [request.law for request in Recipe(ramp_width=0.1).law_requests(robot)]
    assert wide == ['coulomb'] * 3  # whatever is simplest
    assert {one.simplest for one in Recipe().law_requests(robot)} == {simplest}
    assert Recipe().rotors_of(robot) is (robot is ROBOT)
    assert Recipe(rotor_inertia=False).rotors_of(robot) is False
    if robot is ROBOT:
        assert Recipe(rotor_inertia=True).rotors_of(robot) is True
        return
    with pytest.raises(UsageError, match=r'^recipe: rotor_inertia is true, but the efforts of '):
        Recipe(rotor_inertia=True).check_robot(robot)


def test_delays_are_in_the_order_of_the_joints() -> None:
    assert Recipe(encoder_delays={'joint_3': 0.003, 'joint_1': 0.001}).encoder_delays_of(ROBOT) \
        == (0.001, 0.0, 0.003)
    for none in (None, {}):
        assert Recipe(encoder_delays=none).encoder_delays_of(ROBOT) == ()
    with pytest.raises(UsageError, match='joint_9'):
        Recipe(encoder_delays={'joint_9': 0.1}).encoder_delays_of(ROBOT)


def test_methods_are_named_once() -> None:
    named = Recipe(estimator={'name': 'irls', 'robust': 'tukey'})
    assert named.estimator_for(None).name == named.estimator_for('irls').name == 'irls'
    assert [Recipe().estimator_for(one).name for one in (None, 'ols')] == ['wls', 'ols']
    with pytest.raises(UsageError, match=r'^recipe: the estimator is irls, but method ols'):
        named.estimator_for('ols')
    more = Recipe(estimator={'name': 'irls'}).with_estimator_settings({'robust': 'tukey'})
    assert more.estimator == {'name': 'irls', 'robust': 'tukey'}
    with pytest.raises(UsageError, match=r'^robust is in the recipe and given as an option: omit'):
        more.with_estimator_settings({'robust': 'huber'})


def test_columns_and_topics_of_the_recipe_replace_those_of_the_robot() -> None:
    columns: Any = SimpleNamespace(name='columns')
    own: Any = replace(ROBOT, columns=columns)
    assert Recipe().of_recordings(own).columns is columns
    other = recipe_from_dict({'topics': {'joint_states': '/left/joint_states'}})
    found = other.of_recordings(own)
    assert found.columns is columns and found.topics != ROBOT.topics
