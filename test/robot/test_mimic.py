"""robot/linkage.py: joints that mimic others: locked in tools and where they carry nothing,
coupled in the arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from robot_descriptions import AXIS, FINGER, LIMIT, joint, link, robot

from robot_dynid.errors import RobotError
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.setting_up.description import read_arm

PLAIN = robot_from_urdf(robot())


def follows(leader: str, multiplier: float = 1.0, offset: float = 0.0) -> str:
    return (f'{AXIS}{LIMIT}<mimic joint="{leader}" multiplier="{multiplier}" '
            f'offset="{offset}"/>')


def hand(first: str, second: str, offset: float = 0.0) -> tuple[str, ...]:
    """Return two jaws that slide along y, the second by the first."""
    return (joint(first, 'camera', 'left', 'prismatic'), link('left', FINGER),
            joint(second, 'camera', 'right', 'prismatic', follows(first, -1.0, offset)),
            link('right', FINGER))


@pytest.mark.parametrize('names', [('finger_joint1', 'finger_joint2'), ('jaw_l', 'jaw_r')])
def test_a_tool_is_locked_where_its_leader_is_at_zero(names: tuple[str, str]) -> None:
    found = robot_from_urdf(robot(*hand(*names, offset=0.04)))
    assert found.joints == PLAIN.joints
    assert found.warnings == (f'{names[0]}, {names[1]}: joints of a tool, locked with '
                              f'{names[0]} at zero',)
    left, right = (next(one for one in found.links if one.name == name)
                   for name in ('left', 'right'))
    np.testing.assert_allclose(right.placement[:3, 3] - left.placement[:3, 3], [0, 0.04, 0],
                               rtol=0.0, atol=1e-15)
    tip = robot_from_urdf(robot(*hand(*names, offset=0.04)), Selection(tip_link='camera'))
    np.testing.assert_array_equal(tip.nominal, found.nominal)
    assert tip.warnings == (f'{names[1]} mimics {names[0]!r}: locked at zero',)


def test_joints_of_a_gripper_that_mimic_each_other_in_a_chain_are_locked() -> None:
    """As those of Robotiq's 2F-85."""
    parts = (joint('finger_joint', 'camera', 'knuckle'), link('knuckle', FINGER),
             joint('inner_finger_joint', 'knuckle', 'pad', inside=follows(
                 'finger_joint', -1.0, 0.2)), link('pad', FINGER),
             joint('other_finger_joint', 'camera', 'other', inside=follows(
                 'inner_finger_joint', 2.0, 0.1)), link('other', FINGER))
    found = robot_from_urdf(robot(*parts))
    assert found.joints == PLAIN.joints
    turned = {one.name: np.arctan2(-one.placement[2, 0], one.placement[0, 0])
              for one in found.links}
    assert turned['pad'] == pytest.approx(0.2) and turned['other'] == pytest.approx(0.5)


def test_a_tool_that_the_user_lists_is_coupled() -> None:
    found = robot_from_urdf(robot(*hand('jaw_l', 'jaw_r')), Selection(
        joints=(*PLAIN.joints, 'jaw_l')))
    assert found.joints == (*PLAIN.joints, 'jaw_l') and found.linkage is not None


def test_init_leaves_out_a_tool_that_others_mimic(tmp_path: Path) -> None:
    """As xArm's gripper, whose leader has no name of a tool."""
    parts = (joint('drive_joint', 'camera', 'crank'), link('crank', FINGER),
             joint('tip_finger_joint', 'crank', 'pad', inside=follows('drive_joint', -1.0)),
             link('pad', FINGER))
    (tmp_path / 'arm.urdf').write_text(robot(*parts))
    arm = read_arm(tmp_path / 'arm.urdf')
    assert arm.joints == PLAIN.joints and arm.tip == 'fore'
    assert arm.between('base', 'pad') == PLAIN.joints


def test_a_joint_of_the_arm_is_no_tool_whatever_follows_it() -> None:
    parts = (joint('finger_rod', 'column', 'rod', inside=follows('shoulder')), link('rod'))
    found = robot_from_urdf(robot(*parts))
    assert found.joints == PLAIN.joints and found.linkage is not None


def test_a_link_that_keeps_its_direction_is_moved_all_the_same() -> None:
    """As those of parallel links: the turns of both joints cancel."""
    text = robot().replace(f'"fore"/>{AXIS}{LIMIT}', f'"fore"/>{follows("shoulder", -1.0)}')
    found = robot_from_urdf(text)
    assert found.joints == ('turn', 'shoulder') and found.moved.tolist() == [
        [True, True, True], [False, True, True]]


def test_a_side_branch_without_mass_moves_nothing() -> None:
    """As the rods and balancers of ABB's IRB 6640 and Fanuc's M-900iA."""
    parts = joint('rod_joint', 'column', 'rod', inside=follows('shoulder', -0.25)), link('rod', '')
    found = robot_from_urdf(robot(*parts))
    assert found.warnings == ("rod_joint mimics 'shoulder': locked at zero",)
    assert found.linkage is None
    np.testing.assert_array_equal(found.nominal, PLAIN.nominal)
    heavy = robot_from_urdf(robot(parts[0], link('rod')), Selection(tip_link='camera'))
    assert heavy.joints == PLAIN.joints and heavy.linkage is not None
    assert heavy.warnings == ('rod_joint moves with shoulder: -0.25 times its position',)


@pytest.mark.parametrize(('leader', 'joints'), [
    ('turn', ('turn', 'elbow')), ('elbow', ('turn', 'elbow'))])
def test_a_joint_of_the_arm_moves_with_its_leader(leader: str, joints: tuple[str, ...]) -> None:
    """As the wrist of ABB's IRB 5400."""
    text = robot().replace(f'"upper"/>{AXIS}{LIMIT}', f'"upper"/>{follows(leader, 2.0, 0.5)}')
    found = robot_from_urdf(text)
    assert found.joints == joints and found.tree.joints == PLAIN.joints
    assert found.warnings == (f'shoulder moves with {leader}: 2 times its position plus 0.5',)
    own = joints.index(leader)
    assert found.limits.lower[own] == -1.25 and found.limits.upper[own] == 0.75
    assert found.limits.velocity[own] == 1.5
    assert robot_from_urdf(text, Selection(joints=joints)).linkage is not None
    with pytest.raises(RobotError, match='remove them from "joints"'):
        robot_from_urdf(text, Selection(joints=('turn', 'shoulder')))


@pytest.mark.parametrize('leader', ['nobody', 'elbow'])
def test_a_leader_that_is_none_is_named(leader: str) -> None:
    text = robot().replace(f'"fore"/>{AXIS}{LIMIT}', f'"fore"/>{follows(leader)}')
    with pytest.raises(RobotError, match=f"joint 'elbow' mimics '{leader}', which is not an "
                       'independent joint'):
        robot_from_urdf(text)
