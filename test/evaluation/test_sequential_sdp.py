"""The published experiment with non-minimal parameters: both estimators are feasible, and fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid_evaluation.papers import Row, reproduce
from robot_dynid_evaluation.papers import sequential_sdp as paper
from robot_dynid_evaluation.papers.sequential_sdp import NINE, PUMA, recorded, true_robot


def test_sequential_sdp_paper_is_reproduced_by_both_estimators(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, 'times', lambda joints, count: {
        'sequential': 0.01 * joints, 'simultaneous': 1.3e-3 * joints**2})
    rows = {entry.quantity: entry for entry in reproduce('sequential-sdp', lambda *_: None)
            if isinstance(entry, Row)}
    differs = {q for q, row in rows.items() if row.ok is False}
    what = '9 joints, sequential with one link per problem'
    assert differs == {'9 joints: processor time, simultaneous over sequential', f'{what}: solved',
                       f'{what}, masses and centres bounded: error of the efforts'}
    assert all(rows[q].known for q in differs)
    for name in ('sequential', 'polished', 'simultaneous'):
        assert rows[f'9 joints without noise, {name}: error of the efforts'].ok
    assert rows[f'{what}: solved'].note.startswith('the conic solver: no point satisfies')
    assert not any(row.kind == 'shown' for row in rows.values())
    judged = {q for q, row in rows.items() if q.startswith('PUMA 560: ') and row.ok}
    assert judged == {f'PUMA 560: {name}' for name in (
        'my2', 'Ixy2', 'Iyz2', 'mx3', 'my3', 'Ixy3', 'Ixz3', 'Iyz3', 'Izz3', 'fv1', 'fc1', 'fv2',
        'fc2', 'fv3', 'fc3')}


@pytest.mark.parametrize(('exponents', 'factor', 'wrong', 'new'), [
    ((1.0, 1.9), 0.18, 1, 0), ((1.4, 2.3), 0.18, 2, 0), ((1.8, 2.7), 0.18, 2, 1),
    ((1.0, 0.9), 0.7, 4, 4), ((1.0, 0.9), 1.6, 2, 1), ((1.0, 1.9), 0.5, 1, 1)])
def test_times_are_judged_by_ratio_and_growth(
    exponents: tuple[float, float], factor: float, wrong: int, new: int
) -> None:
    """Growth of the sequence, growth of the other, ratio of nine joints: each can fail."""
    first, second = exponents
    taken = [(n, {'sequential': n**first, 'simultaneous': factor * n**second})
             for n in (9, 27, 60)]
    rows = list(paper.time_rows(taken))
    assert len(rows) == 5
    assert sum(row.ok is False for row in rows) == wrong
    assert sum(row.ok is False and not row.known for row in rows) == new


def test_solutions_of_an_arm_are_timed() -> None:
    taken = paper.times(4, 100)
    assert set(taken) == {'sequential', 'simultaneous'}
    assert all(0.0 < seconds < 60.0 for seconds in taken.values())


def test_parameters_that_are_off_fail() -> None:
    """1.5 % more of every parameter is still feasible, and predicts below the noise."""
    data = recorded(PUMA, np.random.default_rng(0))
    found = paper.fits(data)
    rows = paper.example('PUMA 560', data, found)
    assert all(row.ok is not False for row in rows)
    off = {name: replace(one, values=1.015 * one.values, standard=1.015 * one.standard)
           for name, one in found.items()}
    wrong = [row.quantity for row in paper.example('PUMA 560', data, off) if row.ok is False]
    for name in paper.ESTIMATORS:
        assert f'PUMA 560, {name}: error of the efforts' in wrong
        assert f'PUMA 560, {name}: worst base parameter, share of the effort' in wrong
    assert {f'PUMA 560: fv{i}' for i in (1, 2, 3)} <= set(wrong)


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
