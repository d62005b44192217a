"""robot/urdf.py: descriptions of many links take time in proportion; bombs are refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from robot_dynid.effects import Effect, RigidLinks
from robot_dynid.errors import RobotError
from robot_dynid.reduction.analytic import reduce_analytic
from robot_dynid.reduction.base import MAX_REDUCED_JOINTS, Reduction
from robot_dynid.reduction.numeric import reduce_numeric
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.robot.urdf import robot_from_urdf

#: s of the processor; linear work takes 0.3 s, quadratic work took 30 s
PATIENCE = 5.0
LINK = ('<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link><joint name="j{i}" type="{kind}"><parent '
        'link="l{parent}"/><child link="l{i}"/><axis xyz="0 1 0"/></joint>')
SHAPES = {
    'chain': lambda i: (i - 1, 'revolute'),
    'fixed links': lambda i: (i - 1, 'revolute' if i == 1 else 'fixed'),
    'tree': lambda i: ((i - 1) // 2, 'revolute'),
}


def urdf(shape: str, count: int) -> str:
    """Return a URDF of so many links beside its base."""
    links = (SHAPES[shape](i) for i in range(1, count + 1))
    return '<robot name="r"><link name="l0"/>' + ''.join(
        LINK.format(i=i, parent=parent, kind=kind)
        for i, (parent, kind) in enumerate(links, start=1)) + '</robot>'


@pytest.mark.parametrize('shape', SHAPES)
def test_3000_links_take_no_time(shape: str) -> None:
    text = urdf(shape, 3000)
    start = time.process_time()
    robot = robot_from_urdf(text)
    assert time.process_time() - start < PATIENCE
    assert len(robot.links) == 3000
    assert robot.nominal[:, 0].sum() == 3000.0


def test_3000_screws_take_no_time() -> None:
    start = time.process_time()
    robot = robot_from_screws('r', [
        Screw(f'j{i}', [0, 1, 0], [0.01 * i, 0, 0]) for i in range(3000)])
    assert time.process_time() - start < PATIENCE
    assert robot.n == 3000


def test_too_many_movable_joints_are_refused() -> None:
    with pytest.raises(RobotError, match=r'4001 movable joints .* at most 4000'):
        robot_from_urdf(urdf('tree', 4001))


@pytest.mark.parametrize('reduce', [reduce_numeric, reduce_analytic])
def test_parameters_of_too_many_joints_are_not_reduced(
    reduce: Callable[[RobotModel, Sequence[Effect]], Reduction]
) -> None:
    robot = robot_from_urdf(urdf('chain', MAX_REDUCED_JOINTS + 1))
    start = time.process_time()
    with pytest.raises(RobotError, match='has 65 joints, more than 64'):
        reduce(robot, (RigidLinks(robot),))
    assert time.process_time() - start < PATIENCE


def test_a_loop_far_from_the_base_is_named() -> None:
    text = urdf('chain', 100).replace('<parent link="l90"/>', '<parent link="l95"/>')
    with pytest.raises(RobotError, match=r'links l9\d, .* form a loop'):
        robot_from_urdf(text)


BOMB = ''.join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha" * 50}">' for i in range(9))


@pytest.mark.parametrize(('text', 'words'), [
    (f'<!DOCTYPE robot [{BOMB}]><robot name="r">&e8;</robot>', 'document types .* are not read'),
    ('<!DOCTYPE robot SYSTEM "file:///dev/zero"><robot name="r"/>', 'document types'),
    ('<robot>' * 1_000_000, 'nested more than'),
    ('<robot>' + '<a/>' * 300_000, 'more than 300000 elements'),
    ('<robot name="\ud800"/>', 'has invalid characters'),
    ('<robot name="r"><link name="a"/><link name="a"/></robot>', 'link defined more than once: a'),
])
def test_bombs_are_refused(text: str, words: str) -> None:
    start = time.process_time()
    with pytest.raises(RobotError, match=words):
        robot_from_urdf(text)
    assert time.process_time() - start < PATIENCE


@pytest.mark.parametrize(('old', 'new', 'words'), [
    ('mass value="1"', 'mass value="1e308"', "link 'l1' mass attribute value must be at most"),
    ('ixx="1"', 'ixx="1e308"', 'attribute ixx must be at most 1e\\+10, is 1e\\+308'),
    ('<axis xyz="0 1 0"/>', '<origin xyz="1e308 0 0"/>', "joint 'j1' origin xyz must be at most"),
    ('<axis xyz="0 1 0"/>', '<origin rpy="0 0 -1e308"/>', 'origin rpy must be at least -10000'),
    ('<axis xyz="0 1 0"/>', '<axis xyz="0 1e200 0"/>', 'axis must be at most'),
])
def test_numbers_no_robot_has_are_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        robot_from_urdf(urdf('chain', 1).replace(old, new))
