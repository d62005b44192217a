"""The verb topics, the option --topic and the keys topics select what is read of bags."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bags import ARRAY, DEFINITIONS, LBR, joint_states, made, stamps, store_of, write
from identified_models import random_model

from robot_dynid import load_log, load_robot
from robot_dynid.cli.main import main
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identified.trained import Trained
from robot_dynid.robot.model import TopicFields
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.robot.topics import topics_from_options, with_topics

NAMES = ('turn', 'shoulder', 'elbow')
TIME = stamps(30)
VALUES = np.random.default_rng(1).normal(size=(30, 3))
ARM = {'effort_kind': 'torque', 'screws': [
    {'name': name, 'axis': [0, 1, 0], 'origin': [0, 0, 0.1 * k]} for k, name in enumerate(NAMES)]}
FIELDS = ('position', ('measured_joint_position',)), ('effort', ('measured_torque',))


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    file = tmp_path / 'arm.yaml'
    file.write_text(yaml.safe_dump(ARM))
    return file


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    store = store_of(DEFINITIONS, joints=3)
    return write(tmp_path / 'bag', {
        '/joint_states': joint_states(store, TIME, NAMES, VALUES),
        '/left/joint_states': joint_states(store, TIME[::2], [f'l/{n}' for n in NAMES],
                                           VALUES[::2] + 1.0, None, VALUES[::2]),
        '/lbr/state': (LBR, [(t, made(
            store, LBR, measured_joint_position=VALUES[k] + 2.0, measured_torque=VALUES[k]))
            for k, t in enumerate(TIME)]),
        '/tau': (ARRAY, [(t, made(store, ARRAY, data=VALUES[k] + 3.0))
                         for k, t in enumerate(TIME)]),
        '/chatter': ('std_msgs/msg/String', [(TIME[0], made(store, 'std_msgs/msg/String'))])},
        store)


def topics_of(capsys: pytest.CaptureFixture[str], *words: Any) -> dict[str, Any]:
    assert main(['topics', *map(str, words), '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    return {one['name']: one for one in found['topics']}


def test_topics_are_listed_with_what_can_be_read(
    bag: Path, arm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = topics_of(capsys, bag, '--robot', arm)
    assert list(found) == sorted(found)
    states = found['/joint_states']
    assert states['messages'] == 30
    assert states['rate'] == pytest.approx(500.0)
    assert states['joints'] == list(NAMES)
    assert states['fields'] == {'position': 3, 'velocity': 0, 'effort': 0}
    assert states['uses'] == ['position of 3 joints, no velocity and no effort: '
                              '--topic /joint_states']
    assert found['/left/joint_states']['uses'] == [
        'position, effort of 3 joints, no velocity (joints are named l/{joint} there): '
        '--topic /left/joint_states']
    assert found['/left/joint_states']['rate'] == pytest.approx(250.0)
    assert found['/lbr/state']['uses'] == [
        "position, effort by --topic '{topic: /lbr/state, position: measured_joint_position, "
        "effort: measured_torque, stamp: [time_stamp_sec, time_stamp_nano_sec]}'"]
    assert found['/tau']['uses'] == ['effort by --topic effort=/tau']
    assert found['/chatter']['uses'] == []
    assert found['/chatter']['rate'] is None


def test_topics_of_another_robot_say_so(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = topics_of(capsys, bag, '--robot', 'planar_3r')
    assert "of 3 joints, no velocity (none of the robot's): " in (
        found['/left/joint_states']['uses'][0])


def test_without_a_robot_topics_are_those_that_name_joints(
    bag: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = topics_of(capsys, bag)
    assert found['/left/joint_states']['uses'] == [
        'position, effort of 3 joints, no velocity: --topic /left/joint_states']
    assert found['/lbr/state']['uses'] == found['/tau']['uses'] == []


def test_the_table_names_every_topic_and_use(
    bag: Path, arm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ['topics', str(bag), '--robot', str(arm)]
    always = ('/joint_states', 'lbr_fri_idl/msg/LBRState', 'effort by --topic effort=/tau')
    fields = ('measured_torque (3)', 'l/turn')
    assert main(words) == 0
    brief = capsys.readouterr().out
    assert all(text in brief for text in always) and not any(text in brief for text in fields)
    assert main([*words, '--verbose']) == 0
    whole = capsys.readouterr().out
    assert all(text in whole for text in (*always, *fields))
    assert main(['topics', str(bag.parent / 'nothing')]) == 1


@pytest.mark.parametrize(('option', 'position', 'effort'), [
    ('/left/joint_states', VALUES[::2] + 1.0, VALUES[::2]),
    ('joint_states=/left/joint_states', VALUES[::2] + 1.0, VALUES[::2]),
    ('effort=/tau', VALUES, VALUES + 3.0),
    ('{topic: /lbr/state, position: measured_joint_position, effort: measured_torque}',
     VALUES + 2.0, VALUES),
])
def test_options_key_of_robot_and_key_of_recipe_say_the_same(
    bag: Path, arm: Path, tmp_path: Path, option: str, position: Any, effort: Any
) -> None:
    topics = topics_from_options([option])
    plain = {role: {'topic': one.topic, **{key: list(field.paths) for key, field in one.fields}}
             for role, one in topics.items()}
    file = tmp_path / 'named.yaml'
    file.write_text(yaml.safe_dump({**ARM, 'topics': plain}))
    assert recipe_from_dict({'topics': plain}).topics == topics
    for robot in (with_topics(load_robot(arm), topics), load_robot(file)):
        for read in (robot, robot_from_plain(
                json.loads(json.dumps(robot_to_plain(robot))), 'model')):
            log = load_log(bag, read)
            np.testing.assert_array_equal(log.position, position)
            np.testing.assert_array_equal(log.effort, effort)


def test_an_option_comes_before_the_recipe_and_that_before_the_robot() -> None:
    robot = with_topics(load_robot('planar_3r'), topics_from_options(['/a', 'effort=/b']))
    robot = with_topics(robot, recipe_from_dict({'topics': {'joint_states': '/c'}}).topics)
    assert dict(robot.topics) == {'joint_states': TopicFields('/c'), 'effort': TopicFields('/b')}
    assert with_topics(robot, Recipe().topics) is robot


@pytest.mark.parametrize(('given', 'told'), [
    (['/a', 'joint_states=/b'], 'joint_states is given twice'),
    (['torque=/a'], "unknown key 'torque'; use joint_states, motor_states, effort"),
    (['{topic: /a, position: [1]}'], 'position must be the path of a field'),
    (['effort={topic: /a, position: q}'], "unknown key 'position'; use topic, effort, names"),
    (['{topic: 7}'], 'must be a topic such as'), (['{topic: /a'], '--topic'), ([''], 'topic'),
    (['wrench={topic: /a, names: x}'], "unknown key 'names'"),
])
def test_wrong_options_are_refused_by_name(given: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        topics_from_options(given)


def test_a_wrong_key_of_a_robot_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / 'wrong.yaml'
    file.write_text(yaml.safe_dump({**ARM, 'topics': ['/joint_states']}))
    with pytest.raises(RobotError, match=r'wrong.yaml: topics must be a mapping'):
        load_robot(file)


def test_the_topic_of_a_wrench_needs_a_link(tmp_path: Path) -> None:
    wrench = topics_from_options(['wrench=/ft/filtered'])
    with pytest.raises(UsageError, match=r'names 0 links.*wrenches: \{/ft/filtered: tool0\}'):
        with_topics(load_robot('planar_3r'), wrench)
    file = tmp_path / 'pushed.yaml'
    file.write_text(yaml.safe_dump({**ARM, 'wrenches': {'/ft/wrench': 'elbow_link'}}))
    robot = load_robot(file)
    (link,) = [link for _, link in robot.wrenches]
    assert with_topics(robot, wrench).wrenches == (('/ft/filtered', link),)


def commands() -> dict[str, str]:
    """Return a complete command of every verb that reads recordings."""
    return {
        'identify': 'BAG --robot ROBOT --out OUT', 'validate': 'MODEL BAG',
        'compare': 'MODEL MODEL BAG',
        'payload': 'BAG --robot ROBOT', 'contact': 'MODEL BAG',
        'information': 'BAG --robot ROBOT --out OUT.info',
        'design': 'ROBOT --type sine-sequence --adaptive --data BAG --out OUT',
        'resonance': 'BAG --robot ROBOT --joint turn', 'fleet': 'ARMS --robot ROBOT',
        'calibrate': 'MODEL BAG --out OUT'}


@pytest.mark.parametrize(('option', 'code', 'words'), [
    ('--topic /nowhere', 1, 'messages on topic /nowhere; topics are: /chatter'),
    ('--columns nowhere', 2, "'nowhere' is not a preset; choose one of")],
    ids=['topic', 'columns'])
@pytest.mark.parametrize('verb', commands())
def test_every_verb_that_reads_recordings_takes_the_option(
    verb: str, option: str, code: int, words: str, bag: Path, arm: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With another topic the reader says that it is not there, of columns that they cannot be."""
    model = random_model(load_robot(arm))
    ranges = {name: np.tile([-1.0, 1.0], (3, 1)) for name in ('position', 'velocity')}
    replace(model, trained=Trained(ranges), correlation_factor=np.eye(len(model.values))).save(
        tmp_path / 'm.yaml')
    arms = tmp_path / 'arms' / 'SN1'
    arms.mkdir(parents=True)
    bag.rename(arms / 'run_2026-01-31_12-00-00')
    places = {'BAG': arms / 'run_2026-01-31_12-00-00', 'ROBOT': arm, 'MODEL': tmp_path / 'm.yaml',
              'OUT': tmp_path / 'o.yaml', 'OUT.info': tmp_path / 'o.info', 'ARMS': arms.parent}
    command = [str(places.get(word, word)) for word in commands()[verb].split()]
    assert main([verb, *command, *option.split(), '--json']) == code
    assert words in capsys.readouterr().out
