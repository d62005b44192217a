"""Exported bodies of several links: fixed children, locked joints, parts of robots."""

from __future__ import annotations

import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from exported import (
    ARM,
    BALL,
    arm_model,
    assert_same_dynamics,
    mujoco_effort,
    rigid,
    states,
)
from feasible_models import feasible_model
from tolerances import READ_BY_OTHERS

from robot_dynid.identified.export import exported_urdf, is_physical
from robot_dynid.robot.inertia import move_parameters
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf


def with_tool(mass: float, ixx: float = 0.02, kind: str = 'fixed') -> str:
    """Return the arm with a tool, which has an inertial, on its flange."""
    tool = ('<link name="tool"><inertial><origin xyz="0 0 0.1" rpy="0 0 1"/>'
            f'<mass value="{mass}"/><inertia ixx="{ixx}" ixy="0" ixz="0" iyy="0.02" iyz="0" '
            f'izz="0.02"/></inertial></link><joint name="grip" type="{kind}">'
            '<parent link="flange"/><child link="tool"/>'
            '<origin xyz="0.1 0 0"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" '
            'velocity="1"/></joint></robot>')
    return ARM.replace('</robot>', tool)


def tool_of(text: str) -> str:
    found = re.search(r'<link name="tool">.*?</link>', text)
    assert found is not None
    return found.group()


def test_fixed_children_keep_their_own_inertials() -> None:
    text = with_tool(1.0)
    export = exported_urdf(arm_model(), text)
    assert tool_of(export.text) == tool_of(text)
    assert export.changed_links == ('upper', 'lower')
    read = {link.name: link for link in robot_from_urdf(export.text).links}
    assert read['lower'].parameters[0] == pytest.approx(5.0, rel=1e-12)
    assert not [w for w in export.warnings if 'multiplied' in w]
    assert_same_dynamics(export, arm_model())


def test_fixed_children_too_heavy_are_scaled() -> None:
    text = with_tool(20.0)
    export = exported_urdf(arm_model(), text)
    assert export.changed_links == ('upper', 'lower', 'tool')
    warning, = (w for w in export.warnings if 'multiplied' in w)
    assert warning.startswith("link 'lower': the inertials of tool, which move with it, leave no")
    links = {link.name: link for link in robot_from_urdf(export.text).links}
    nominal = {link.name: link for link in robot_from_urdf(text).links}
    scale = float(warning.split()[-1])
    assert links['tool'].parameters == pytest.approx(scale * nominal['tool'].parameters, rel=1e-2)
    assert 0.0 < scale < 0.3
    assert is_physical(links['lower'].parameters)
    assert_same_dynamics(export, arm_model())


def test_impossible_fixed_children_become_possible() -> None:
    text = with_tool(1.0, ixx=0.5)
    with pytest.raises(ValueError, match=r'A \+ B >= C'):
        mujoco.MjModel.from_xml_string(text)
    export = exported_urdf(arm_model(), text)
    assert [w for w in export.warnings if w.startswith("link 'tool': no body has its inertia")]
    assert_same_dynamics(export, arm_model())
    flat = with_tool(1.0, ixx=0.04)
    assert tool_of(exported_urdf(arm_model(), flat).text) == tool_of(flat)


@pytest.mark.parametrize('mass', [1.0, 20.0])
def test_locked_joints_stay_joints(mass: float) -> None:
    text = with_tool(mass, kind='revolute')
    robot = robot_from_urdf(text, Selection(joints=('shoulder', 'elbow')))
    model = replace(arm_model(), robot=robot)
    export = exported_urdf(model, text)
    whole = robot_from_urdf(export.text)
    assert whole.joints == ('shoulder', 'elbow', 'grip')
    motion = [np.pad(m, ((0, 0), (0, 1))) for m in states(robot, 10)]
    theirs = mujoco_effort(export.text, whole, *motion)[:, :2]
    ours = rigid(model).inverse(*(m[:, :2] for m in motion))
    assert np.abs(theirs - ours).max() <= READ_BY_OTHERS * np.abs(ours).max()
    assert 'dynamics' not in export.text[export.text.index('name="grip"'):]


def test_part_of_a_robot() -> None:
    text = with_tool(1.0)
    robot = robot_from_urdf(text, Selection(base_link='upper'))
    model = feasible_model(robot, np.array([2.0 * BALL]))
    export = exported_urdf(model, text)
    assert export.changed_links == ('lower',)
    read = robot_from_urdf(export.text)
    assert read.nominal[1] == pytest.approx(2.0 * BALL, rel=1e-12)
    assert np.array_equal(read.nominal[0], robot_from_urdf(text).nominal[0])
    assert 'friction = "0.7"' in export.text


def test_bodies_keep_their_place() -> None:
    """A body that hangs on a rotated fixed joint is the same seen from the moving link."""
    text = with_tool(1.0)
    read = robot_from_urdf(exported_urdf(arm_model(), text).text)
    moved = sum(move_parameters(link.parameters, link.placement)
                for link in read.links if link.body == 1)
    assert moved == pytest.approx(2.0 * BALL, rel=1e-12, abs=1e-15)
