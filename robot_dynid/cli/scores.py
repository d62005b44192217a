"""Scores of a prediction, joint by joint, as JSON; model beside control row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
    from robot_dynid.validation.validate import JointScore, Scores, Validation

PARTS = ('motion', 'rest', 'near reversals')
#: keys of the scores with friction that warms up, and with all slow changes
WARM_UP, ADAPTIVE = 'warm_up', 'adaptive'
FIELDS = ('rmse', 'nrmse', 'relative_error', 'r2', 'quartiles', 'outliers', 'samples')


def score_fields(score: JointScore) -> dict[str, Any]:
    """Return the numbers of one score."""
    return {name: getattr(score, name) for name in FIELDS}


def joint_scores(validation: Validation) -> dict[str, Any]:
    """Return joint -> score over all samples, with motion, rest and the control row inside.

    So are, where the model has slow changes, the scores with these.
    """
    joints: dict[str, Any] = {}
    own, noise = validation.repeatability, validation.noise
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        entry = score_fields(score)
        entry['repeatability'] = None if own is None else float(own[i])
        entry['noise'] = None if noise is None else float(noise[i])
        for part in PARTS:
            if joint in validation.model.get(part, {}):
                entry[part] = score_fields(validation.model[part][joint])
        if joint in validation.control.get('all', {}):
            entry['control'] = score_fields(validation.control['all'][joint])
        for key, scores in ((WARM_UP, validation.warm_up), (ADAPTIVE, validation.adaptive)):
            if scores:
                entry[key] = score_fields(scores['all'][joint])
        joints[joint] = entry
    return joints


def rollout_score(validation: Validation) -> dict[str, Any]:
    """Return length and number of simulated motions, and the errors of every joint."""
    found = validation.rollout
    if found is None:
        return {}
    errors = zip(validation.model['all'], found.position.tolist(), found.velocity.tolist(),
                 strict=True)
    return {'seconds': found.seconds, 'count': found.count, 'stopped': found.stopped, 'joints': {
        joint: {'position': position, 'velocity': velocity}
        for joint, position, velocity in errors} if found.stopped < found.count else {}}


def forward_scores(model: IdentifiedModel, found: ForwardValidation) -> dict[str, Any]:
    """Return the scores of accelerations by joint, and of rollouts by horizon."""
    return {'accelerations': _accelerations(found),
            'rollouts': [_horizon(model.joints, horizon) for horizon in found.horizons]}


def _accelerations(found: ForwardValidation) -> dict[str, Any]:
    """Return joint -> score, with the floor, motion, rest and the control row inside."""
    def of(scores: Scores, part: str, joint: str) -> dict[str, Any]:
        return {part: score_fields(scores[part][joint])} if joint in scores.get(part, {}) else {}

    return {joint: {
        **score_fields(score), 'floor': floor,
        **{key: value for part in PARTS for key, value in of(found.model, part, joint).items()},
        **({'control': score_fields(found.control['all'][joint])} if found.control else {}),
    } for (joint, score), floor in zip(found.model['all'].items(), found.floor.tolist(),
                                       strict=True)}


def _horizon(joints: Sequence[str], horizon: Horizon) -> dict[str, Any]:
    """Return the errors of a horizon by joint: of the model, and what stands beside it."""
    scores = horizon.scores
    errors = {name: list(zip(one.position.tolist(), one.velocity.tolist(), strict=True))
              for name, one in scores.items() if one.stopped < one.count}
    return {'seconds': horizon.seconds, 'count': max(one.count for one in scores.values()),
            'stopped': {name: one.stopped for name, one in scores.items()},
            'joints': {joint: {name: {'position': own[j][0], 'velocity': own[j][1]}
                               for name, own in errors.items()}
                       for j, joint in enumerate(joints)}}
