"""The verdicts of the experiment with elastic joints, on errors that are made up."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from robot_dynid_evaluation.papers import elastic_joints as paper
from robot_dynid_evaluation.papers.elastic_joints_arm import ElasticArm, Logged, Motion

#: nothing of them is looked at
ARM, MOTION = cast(ElasticArm, None), cast(Motion, None)


@pytest.mark.parametrize(('stiffness', 'static', 'least', 'oks', 'excused'), [
    (0.005, 0.05, 0.0, (True, True), (False, False)),
    (0.005, 0.19, 0.0, (False, True), (True, False)),
    (0.005, 0.3, 0.0, (False, True), (False, False)),
    (0.015, 0.19, 0.0, (False, False), (False, False)),
    (0.02, 0.2, 0.0, (False, False), (False, False)),
    (0.02, 0.2, 0.02, (False, False), (False, True)),
    (0.02, 0.2, 0.06, (False, False), (True, True)),
    (0.021, 0.19, 0.06, (False, False), (True, False)),
    (0.021, 0.3, 0.9, (False, False), (False, False)),
])
def test_latent_shall_halve_the_errors_of_elastic(
    stiffness: float, static: float, least: float, oks: tuple[bool, bool],
    excused: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Static friction alone excuses it, as far as that does not get worse, and noise itself."""
    errors = {'elastic': {'K1': 0.02, 'fc1': 0.2}, 'latent': {'K1': stiffness, 'fc1': static}}
    monkeypatch.setattr(paper, 'logged', lambda arm, motion, ratio, method: Logged(
        errors[method], np.zeros(1), 'a law'))
    monkeypatch.setattr(paper, 'step_from_truth', lambda *_: {'K1': least, 'fc1': least})
    rows = paper.logged_noise_rows(ARM, MOTION, 50.0)
    assert [row.ok for row in rows] == [None, *oks]
    assert tuple(row.known for row in rows[1:]) == excused
    assert (paper.REFUSED in rows[1].note) is (errors['latent'] == errors['elastic'])


@pytest.mark.parametrize(('ratio', 'own', 'excused'), [
    (40.0, 0.0822, (True, False)), (40.0, 0.0423, (False, True)), (40.0, 0.06, (False, False)),
    (50.0, 0.0672, (True, False)), (50.0, 0.08, (False, False)), (60.0, 0.0672, (False, False))])
def test_rows_known_to_differ_do_so_by_their_figure_only(
    ratio: float, own: float, excused: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, 'logged', lambda *_: Logged({'K1': own}, np.zeros(1), 'a law'))
    monkeypatch.setattr(paper, 'step_from_truth', lambda *_: {'K1': 0.0})
    rows = paper.logged_noise_rows(ARM, MOTION, ratio)
    assert tuple(row.known for row in rows[1:]) == excused


@pytest.mark.parametrize(('worst', 'least', 'ok', 'excused'), [
    (0.0094, 0.02, True, False), (0.0096, 0.009, False, False), (0.0096, 0.0096, False, True),
    (0.0201, 0.0301, False, False)])
def test_every_draw_shall_have_the_error_wanted(
    worst: float, least: float, ok: bool, excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logged(arm: ElasticArm, motion: Motion, ratio: float, method: str, seed: int) -> Logged:
        bad = (seed, ratio) == (2, 50.0)
        error = (0.02 if method == 'elastic' else worst) if bad else 0.001
        return Logged({'K1': error}, np.zeros(1), 'a law')

    monkeypatch.setattr(paper, 'logged', logged)
    monkeypatch.setattr(paper, 'step_from_truth', lambda *_: {'K1': least})
    rows = paper.wanted_draw_rows(ARM, MOTION)
    assert [(row.ok, row.known) for row in rows] == [(True, False), (ok, excused), (True, False)]


def test_errors_without_static_friction_leave_it_out() -> None:
    errors = {'K1': 0.1, 'fc1': 0.9, 'fv1': 0.3}
    assert paper.mean(errors) == pytest.approx(1.3 / 3.0)
    assert paper.mean(errors, static=False) == pytest.approx(0.2)
    assert not paper.reached('x', 0.123, 0.0248, paper.WANTED_PUMA, '').ok
    assert paper.reached('x', 0.123, 0.0246, paper.WANTED_PUMA, '').ok
