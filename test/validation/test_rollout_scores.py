"""Rollouts along recordings, as `validate` scores them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid.cli.validate import rollout_score
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.validation.rollout_scores import MOST_ROLLOUTS, ROLLOUT_SECONDS
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
RECIPE = {'cutoff': 12.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0,
          'ripple': 'none'}


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return identify(ROBOT, [recording(ROBOT, 0, 10.0)], recipe=recipe_from_dict(RECIPE)).model


def test_a_good_model_stays_by_the_recording(model: IdentifiedModel) -> None:
    unseen = [recording(ROBOT, 1, 10.0), recording(ROBOT, 2, 30.0)]
    found = validate(model, unseen).rollout
    assert found is not None and found.seconds == ROLLOUT_SECONDS and found.stopped == 0
    assert 15 + MOST_ROLLOUTS // 2 < found.count <= 20 + MOST_ROLLOUTS
    assert found.position.max() < 0.01 and found.velocity.max() < 0.05
    spoiled = replace(model, values=model.values * np.where(
        [name.startswith('m') for name in model.names], 1.2, 1.0))
    worse = validate(spoiled, unseen).rollout
    assert worse is not None and np.all(worse.position > 2.0 * found.position)
    told = rollout_score(validate(model, unseen))
    assert told['joints']['joint_1'] == {'position': found.position[0],
                                         'velocity': found.velocity[0]}


def test_rollouts_that_stop_are_counted(model: IdentifiedModel) -> None:
    indefinite = replace(model, values=model.values * np.where(
        [name.startswith(('I', 'm')) for name in model.names], -1.0, 1.0))
    found = validate(indefinite, [recording(ROBOT, 1, 5.0)])
    assert found.rollout is not None and found.rollout.stopped == found.rollout.count > 0
    assert rollout_score(found)['joints'] == {}
