"""The verdicts of the experiment with elastic joints, on errors that are made up."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from robot_dynid_evaluation.papers import elastic_joints as paper
from robot_dynid_evaluation.papers.elastic_joints_arm import ElasticArm, Logged, Motion

#: nothing of them is looked at
ARM, MOTION = cast(ElasticArm, None), cast(Motion, None)


@pytest.mark.parametrize(('ratio', 'stiffness', 'static', 'oks'), [
    (60.0, 0.005, 0.05, (True, True)), (60.0, 0.005, 0.3, (False, True)),
    (60.0, 0.015, 0.05, (True, False)), (60.0, 0.02, 0.2, (False, False)),
    (50.0, 0.005, 0.3, (None, True)), (50.0, 0.015, 0.05, (None, False)),
    (40.0, 0.02, 0.2, (None, None))])
def test_latent_shall_halve_the_errors_of_elastic(
    ratio: float, stiffness: float, static: float, oks: tuple[bool | None, bool | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = {'elastic': {'K1': 0.02, 'fc1': 0.2}, 'latent': {'K1': stiffness, 'fc1': static}}
    monkeypatch.setattr(paper, 'logged', lambda arm, motion, ratio, method: Logged(
        errors[method], np.zeros(1), 'a law'))
    rows = paper.logged_noise_rows(ARM, MOTION, ratio)
    assert [row.ok for row in rows] == [None, *oks]
    assert (paper.REFUSED in rows[1].note) is (errors['latent'] == errors['elastic'])


@pytest.mark.parametrize(('worst', 'ok'), [(0.0063, True), (0.0065, False)])
def test_every_draw_shall_have_the_error_wanted(
    worst: float, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, 'logged', lambda arm, motion, ratio, method, seed: Logged(
        {'K1': worst if (seed, ratio) == (2, 60.0) else 0.001}, np.zeros(1), 'a law'))
    assert [row.ok for row in paper.wanted_draw_rows(ARM, MOTION)] == [True, None, ok]


def test_errors_without_static_friction_leave_it_out() -> None:
    errors = {'K1': 0.1, 'fc1': 0.9, 'fv1': 0.3}
    assert paper.mean(errors) == pytest.approx(1.3 / 3.0)
    assert paper.mean(errors, static=False) == pytest.approx(0.2)
    assert not paper.reached('x', 0.123, 0.0248, paper.WANTED_PUMA, '').ok
    assert paper.reached('x', 0.123, 0.0246, paper.WANTED_PUMA, '').ok
