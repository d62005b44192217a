"""Scores of a prediction, joint by joint, as JSON; model beside control row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
    from robot_dynid.validation.validate import Scores, Validation

PARTS = ('motion', 'rest', 'near reversals')
#: keys of the scores with friction that warms up, and with all slow changes
WARM_UP, ADAPTIVE = 'warm_up', 'adaptive'


def joint_scores(validation: Validation) -> dict[str, Any]:
    """Return joint -> score over all samples, with motion, rest and the control row inside.

    So are, where the model has slow changes, the scores with these.
    """
    own, noise = validation.repeatability, validation.noise
    slow = {key: scores for key, scores in (
        (WARM_UP, validation.warm_up), (ADAPTIVE, validation.adaptive)) if scores}
    return {joint: {
        **vars(score), 'repeatability': None if own is None else float(own[i]),
        'noise': None if noise is None else float(noise[i]),
        **_parts(validation.model, validation.control, joint),
        **{key: vars(scores['all'][joint]) for key, scores in slow.items()},
    } for i, (joint, score) in enumerate(validation.model['all'].items())}


def _parts(model: Scores, control: Scores, joint: str) -> dict[str, Any]:
    """Return the scores of a joint by part of the samples, and that of the control row."""
    found = {part: vars(model[part][joint]) for part in PARTS if joint in model.get(part, {})}
    if joint in control.get('all', {}):
        found['control'] = vars(control['all'][joint])
    return found


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
    accelerations = {
        joint: {**vars(score), 'floor': floor, **_parts(found.model, found.control, joint)}
        for (joint, score), floor in zip(found.model['all'].items(), found.floor.tolist(),
                                         strict=True)}
    return {'accelerations': accelerations,
            'rollouts': [_horizon(model.joints, horizon) for horizon in found.horizons]}


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
