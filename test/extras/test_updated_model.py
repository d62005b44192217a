"""The served model brought up to date: better on recent motion, and still a robot."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from everyday_arm import EverydayArm, known_model
from identified_models import feasible_model, random_links
from tolerances import LEAST_SQUARES

from robot_dynid.errors import DataError, ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import frozen
from robot_dynid_extras.health import updated_model as module
from robot_dynid_extras.health.recursive_identification import RecursiveIdentification
from robot_dynid_extras.health.updated_model import UPDATED, updated_model


def followed(model: IdentifiedModel, arm: EverydayArm, stretches: int = 60
             ) -> RecursiveIdentification:
    found = RecursiveIdentification(model, 120.0)
    for _ in range(stretches):
        found.take(arm.stretch())
    return found


@pytest.fixture(scope='module')
def changed() -> RecursiveIdentification:
    model = known_model()
    return followed(model, EverydayArm(model, 1.1 * model.values))


def test_updated_model_has_the_estimated_parameters_and_covariance(
    changed: RecursiveIdentification
) -> None:
    made = updated_model(changed)
    assert np.allclose(made.values, changed.values, rtol=LEAST_SQUARES)
    covariance = made.covariance_factor.T @ made.covariance_factor
    assert np.allclose(covariance, changed.root.T @ changed.root, rtol=1e-6, atol=1e-12)
    assert np.allclose(np.diag(covariance), made.std**2, rtol=LEAST_SQUARES)
    truth = 1.1 * changed.model.values
    served = changed.model.values
    assert np.linalg.norm(made.values - truth) < 0.5 * np.linalg.norm(served - truth)


def test_updated_model_can_be_saved_loaded_and_updated_again(
    changed: RecursiveIdentification
) -> None:
    made = updated_model(changed)
    again = IdentifiedModel.from_yaml(made.to_yaml())
    assert again.warnings[-1].startswith(UPDATED)
    arm = EverydayArm(again, 1.2 * changed.model.values)
    twice = updated_model(followed(again, arm, 30))
    assert sum(text.startswith(UPDATED) for text in twice.warnings) == 1


def test_before_any_motion_there_is_nothing_to_serve() -> None:
    with pytest.raises(DataError, match='no everyday motion was of use'):
        updated_model(RecursiveIdentification(known_model(), 120.0))


@pytest.mark.parametrize(('ratios', 'words'), [
    ((1.0, 0.5, 0.5), None), ((1.04, 0.5, 0.5), None), ((0.1, 0.1, 1.06), 'joint_3 (2.12 instead '
     'of 2 N m); it stays'), ((1.06, 0.5, 1.2), 'joint_1 (2.12 instead of 2 N m), joint_3 (2.4 '),
    ((1.0, 1.0, 1.0), 'no better than by the served model'), ((1.04, 1.0, 0.98), 'no better'),
    ((0.0, 0.9, 0.9), None)])
def test_a_joint_may_be_predicted_worse_by_a_twentieth_where_all_are_better(
    ratios: tuple[float, ...], words: str | None, changed: RecursiveIdentification
) -> None:
    """On the whole by the mean of the logarithms; each error is 2 N m by the served model."""
    found, recent = copy(changed), changed.recent
    assert recent is not None
    samples = np.array([10.0, 20.0, 40.0])
    found.recent = replace(recent, samples=samples, errors=np.array(
        [4.0 * samples, 4.0 * samples * np.square(ratios)]))
    if words is None:
        assert np.array_equal(updated_model(found).values, updated_model(changed).values)
        return
    with pytest.raises(DataError) as caught:
        updated_model(found)
    assert words in str(caught.value)


def test_updated_model_is_refused_when_it_predicts_worse(
    changed: RecursiveIdentification, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent = changed.recent
    assert recent is not None
    monkeypatch.setattr(changed, 'recent', replace(recent, errors=recent.errors[::-1]))
    with pytest.raises(DataError, match='no better than by the served model'):
        updated_model(changed)
    errors = np.array([[1.0, 1.0, 1.0], [1.2, 0.1, 0.1]]) * recent.samples
    monkeypatch.setattr(changed, 'recent', replace(recent, errors=errors))
    with pytest.raises(DataError, match=r'worse than by the served model: joint_1 \(1\.1 instead'):
        updated_model(changed)


def test_updated_model_is_refused_when_no_robot_has_its_parameters(
    changed: RecursiveIdentification, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter((['a mass matrix of no robot'], []))
    monkeypatch.setattr(module, 'impossible', lambda model: next(found))
    with pytest.raises(ModelError, match="no robot's: a mass matrix"):
        updated_model(changed)


def test_feasible_parameters_stay_feasible() -> None:
    pytest.importorskip('clarabel')
    rng = np.random.default_rng(3)
    model = feasible_model(load_robot('planar_3r'), random_links(rng, 3), rng)
    deviations = 0.05 * np.maximum(np.abs(model.values), 0.1)
    model = replace(model, std=frozen(deviations),
                    correlation_factor=frozen(np.eye(len(deviations))))
    found = followed(model, EverydayArm(model, 1.2 * model.values))
    made = updated_model(found)
    links = made.feasible_links
    assert links is not None
    assert np.allclose(made.values, model.reduction.base(made.feasible), rtol=LEAST_SQUARES)
    for link in links:
        assert np.linalg.eigvalsh(pseudo_inertia(link))[0] > -1e-9
    truth = 1.2 * model.values
    assert np.linalg.norm(made.values - truth) < 0.6 * np.linalg.norm(model.values - truth)
