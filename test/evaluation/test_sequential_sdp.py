"""The published experiment with non-minimal parameters: both estimators are feasible, and fast."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import RECOVERED

from robot_dynid_evaluation.papers import reproduce
from robot_dynid_evaluation.papers.sequential_sdp_arms import NINE, PUMA, recorded, true_robot


@pytest.mark.slow
def test_both_estimators_are_feasible_and_fast() -> None:
    rows = {row.quantity: row for row in reproduce('sequential-sdp', lambda *_: None)}
    assert [q for q, row in rows.items() if row.ok is False] == []
    judged = [q for q, row in rows.items() if row.ok]
    assert len(judged) == 14
    assert rows['9 joints, sequential: time'].paper == '20 min'
    assert rows['9 joints, simultaneous: time'].paper == '> 4 days'
    for name in ('sequential', 'polished', 'simultaneous'):
        error = rows[f'9 joints without noise, {name}: error of the efforts'].ours
        assert isinstance(error, float)
        assert error < RECOVERED
    one = rows['9 joints, sequential with one link per problem: error of the efforts']
    assert isinstance(one.ours, float)
    assert one.ours > 1.0  # what the second link in every problem is for


@pytest.mark.parametrize(('path', 'joints'), [(PUMA, 3), (NINE, 9)])
def test_arms_have_twelve_parameters_per_joint(path: str, joints: int) -> None:
    data = recorded(path, np.random.default_rng(0))
    assert len(data.truth) == 12 * joints
    robot, friction = true_robot(path)
    assert np.array_equal(data.truth[:10 * joints], robot.nominal.ravel())
    assert friction.min() > 0.0
    # the prior is another robot
    assert np.abs(data.model.robot.nominal[:, 0] / robot.nominal[:, 0] - 1.0).max() > 0.02
    if path == PUMA:
        assert robot.nominal[2, 0] == 4.8  # link 3 without the wrist
