"""report/joints.py: the arm is drawn where forward kinematics has it, and shares of its effort."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.dynamics.rigid_body import chain_points, link_poses
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.report.joints import VIEW, arm, causes, overview
from robot_dynid.types import FloatArray
from robot_dynid.validation.effort_parts import EffortParts
from robot_dynid.validation.validate import Trace, Validation

PLANAR = nominal_model('planar_3r')


def drawn_arm(model: IdentifiedModel) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    spec = arm(model)
    return {curve['name']: np.column_stack([unpacked(curve[key]) for key in 'xy'])
            for curve in spec['data']}, spec['layout']


def test_every_joint_has_a_frame_of_its_own_in_the_figure() -> None:
    drawn, _ = drawn_arm(PLANAR)
    expected = link_poses(PLANAR.robot, np.full((1, 3), 0.3)).origins[0] @ VIEW.T
    np.testing.assert_allclose(drawn['frames of the joints'], expected, rtol=0.0, atol=1e-6)
    assert np.linalg.norm(np.diff(expected, axis=0), axis=1).min() > 0.1, 'they are apart'


def test_the_arm_is_seen_from_thirty_degrees_beside_x_and_twenty_five_above_the_floor() -> None:
    around, up = np.radians(30.0), np.radians(25.0)
    towards = [np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)]
    np.testing.assert_allclose(VIEW @ towards, 0.0, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(VIEW @ VIEW.T, np.eye(2), rtol=0.0, atol=1e-12)
    assert VIEW[0, 1] > 0.0 and VIEW[0, 2] == 0.0 and VIEW[1, 2] > 0.0  # y to the right, z up


def test_links_axes_and_tip_are_where_the_motion_has_its_middle() -> None:
    ranges = np.array([[-1.0, 0.0], [0.2, 1.0], [0.0, 1.4]])
    model = replace(PLANAR, trained=Trained({'position': ranges}))
    drawn, layout = drawn_arm(model)
    q = np.array([[-0.5, 0.6, 0.7]])
    chain, poses = chain_points(model.robot, q)[0], link_poses(model.robot, q)
    pieces = [[a, b] for a, b in zip(np.vstack([np.zeros(3), poses.origins[0]])[:-1],
                                     poses.origins[0])]
    links = np.vstack([*[[*piece, np.full(3, np.nan)] for piece in pieces], chain[-2:]])
    np.testing.assert_allclose(drawn['links'], links @ VIEW.T, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(drawn['tip'], chain[-1:] @ VIEW.T, rtol=0.0, atol=1e-6)
    half = 0.09 * np.ptp(chain, axis=0).max() * poses.rotations[0] @ model.robot.tree.axes[0]
    for j, place in enumerate(poses.origins[0]):
        ends = np.array([place - half[j], place + half[j]]) @ VIEW.T
        np.testing.assert_allclose(drawn['axes of the joints'][3 * j:3 * j + 2], ends,
                                   rtol=0.0, atol=1e-6)
    shown = np.vstack([links, chain[:-1]]) @ VIEW.T
    low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
    size = (high - low).max()
    assert layout['xaxis']['range'] == pytest.approx([low[0] - 0.15 * size,
                                                      high[0] + 0.75 * size])
    notes = {one['text']: one for one in layout['annotations']}
    order = np.argsort(drawn['frames of the joints'][:, 1])
    heights = [notes[model.joints[j]]['ay'] for j in order]  # arrows do not cross
    assert heights == pytest.approx(np.linspace(low[1], high[1], 3))
    for j, joint in enumerate(model.joints):
        assert notes[joint]['ax'] == pytest.approx(high[0] + 0.15 * size)
        assert [notes[joint][key] for key in 'xy'] == pytest.approx(
            drawn['frames of the joints'][j])
        assert notes[joint]['showarrow'] and notes[joint]['arrowhead'] == 0  # a plain line
    assert not any(curve['showlegend'] for curve in arm(model)['data'])
    assert not layout['xaxis']['visible'] and not layout['yaxis']['visible']


def test_causes_are_shares_of_the_effort_and_those_without_any_are_left_out() -> None:
    signs = np.where(np.arange(8) % 2, 1.0, -1.0)[:, None]
    none = np.zeros((8, 3))
    split = EffortParts(signs * [3.0, 1.0, 0.0], none, signs * [1.0, -2.0, 0.0], none)
    effort = split.gravity + split.friction  # 4, -1 and none
    parts = Trace('x', np.arange(8.0), effort, effort, effort, np.ones(8), None, split=split)
    at_rest = replace(parts, predicted=none, split=EffortParts(none, none, none, none))
    spec = causes(Validation({}, {}, (parts, at_rest), ()), PLANAR)
    assert {bar['name']: unpacked(bar['y']).tolist() for bar in spec['data']} == {
        'gravity': [75.0, 100.0, 0.0], 'friction': [25.0, 200.0, 0.0]}
    assert spec['data'][0]['marker'] != spec['data'][1]['marker']
    for split_of, titles in ((split, 2), (None, 1)):
        validation = Validation({}, {}, (parts, replace(parts, split=split_of)), ())
        (section,) = overview(validation, PLANAR)
        assert len(section.figures) == titles and section.beside
