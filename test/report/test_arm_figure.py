"""report/joints.py: the figure of the arm: the frame of each joint is drawn where forward
kinematics has it."""

from __future__ import annotations

import numpy as np
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.dynamics.rigid_body import link_poses
from robot_dynid.report.joints import VIEW, arm


def test_every_joint_has_a_frame_of_its_own_in_the_figure() -> None:
    model = nominal_model('planar_3r')
    (frames,) = [trace for trace in arm(model)['data'] if trace['name'] == 'frames of the joints']
    ranges = model.trained.quantities.get('position')
    q = np.full((1, 3), 0.3) if ranges is None else ranges.mean(axis=1)[None]
    expected = link_poses(model.robot, q).origins[0] @ VIEW.T
    drawn = np.column_stack([unpacked(frames[key]) for key in 'xy'])
    np.testing.assert_allclose(drawn, expected, rtol=0.0, atol=1e-6)
    assert np.linalg.norm(np.diff(expected, axis=0), axis=1).min() > 0.1, 'they are apart'
