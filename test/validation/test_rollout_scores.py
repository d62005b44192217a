"""Rollouts along recordings, as `validate` scores them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.validate import rollout_score
from robot_dynid.dynamics.rigid_body import tip_positions
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.validation.rollout_scores import (
    INSTANTS,
    MOST_ROLLOUTS,
    ROLLOUT_SECONDS,
    OpenLoopErrors,
    OpenLoopMotions,
    Stretches,
)
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
RECIPE = {'cutoff': 12.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0,
          'ripple': 'none'}
POSE = np.array([0.2, 0.9, -0.4])


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


def stretches(step: float, length: int) -> Stretches:
    """Return two stretches of an arm at rest in POSE."""
    still = np.zeros((2, length + 1, 3))
    return Stretches(ROBOT, np.array([0.0, 1.0]), still + POSE, still, still[:, 1:], step)


def test_distances_are_those_of_joints_and_tip() -> None:
    """A joint that is off by an angle moves the tip along its circle: 2 r sin(angle / 2)."""
    own, angle = stretches(0.05, 20), 0.3
    off = np.tile(POSE, (2, 20, 1))
    off[0, :, 0] += angle
    off[1, 10:] = np.nan  # stops after half a second
    found = own.distances(off)
    radius = float(np.linalg.norm(tip_positions(ROBOT, POSE[None])[0, 1:]))
    assert found.shape == (2, len(INSTANTS), 4)
    ran, beyond = found[:, :10], found[:, 10:]
    assert np.isnan(beyond).all()  # the stretches are one second long
    assert ran[0, :, :3] == pytest.approx(np.tile([angle, 0.0, 0.0], (10, 1)))
    assert ran[0, :, 3] == pytest.approx(2.0 * radius * np.sin(0.5 * angle))
    assert not ran[1, :5].any() and np.isnan(ran[1, 5:]).all()
    whole = OpenLoopErrors.of([OpenLoopMotions.of(own, {'model': (off, off)}, 0.0)])
    assert whole is not None and (whole.count, whole.stopped) == (2, 0)
    assert whole.errors['model'][:5, 0] == pytest.approx(angle / np.sqrt(2.0))
    assert whole.errors['model'][5:10, 0] == pytest.approx(angle)


def test_open_loop_motions_of_a_good_model_stay_by_the_recording(model: IdentifiedModel) -> None:
    found = validate(replace(model, control=1.3 * model.values), [recording(ROBOT, 1, 10.0)])
    errors = found.open_loop
    assert errors is not None and errors.stopped == 0 and found.not_simulated == ''
    ours, nominal = errors.errors['model'], errors.errors['control']
    assert ours[0, :3].max() < 1e-3 and ours[4, 3] < 0.01  # after 0.1 s, 0.5 s
    assert np.all(np.diff(nominal[[0, 4, 9]], axis=0) > 0.0)
    assert np.all(3.0 * ours[4:] < nominal[4:])
    drawn = found.traces[0].open_loop
    assert drawn is not None
    assert np.all(np.diff(drawn.time.ravel()) >= -1e-9)  # no two overlap
    assert drawn.measured[:, 0] == pytest.approx(drawn.positions['model'][:, 0])


def test_validate_states_why_a_model_cannot_be_simulated(model: IdentifiedModel) -> None:
    refused = replace(model, not_identified=('joint_2',))
    with pytest.warns(UserWarning, match='joint_2'):
        found = validate(refused, [recording(ROBOT, 1, 5.0)])
    assert found.open_loop is None
    assert found.not_simulated == \
        'a simulation moves all joints at once, and the model refuses joint_2'
