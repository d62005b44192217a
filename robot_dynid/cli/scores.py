"""Scores of a prediction, joint by joint, as JSON and as a table; model beside control row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.terminal import percent

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
    from robot_dynid.validation.validate import JointScore, Scores, Validation

PARTS = ('motion', 'rest', 'near reversals')
#: keys of the scores with friction that warms up, and with all slow changes
WARM_UP, ADAPTIVE = 'warm_up', 'adaptive'
#: what rollouts are predicted by: the model, nominal inertials with fitted friction, no model
PREDICTORS = ('model', 'control', 'constant_velocity')
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


def show_rollout(score: Mapping[str, Any], terminal: Terminal) -> None:
    """Print how far simulated motions run from the measured ones."""
    if not score:
        return
    stopped = f', {score["stopped"]} of which stopped' if score['stopped'] else ''
    terminal.table(
        f'error of {score["count"]} rollouts of {score["seconds"]:g} s from measured states'
        f'{stopped}',
        ('joint', 'position [mrad, mm]', 'velocity [mrad/s, mm/s]'),
        [(joint, 1e3 * errors['position'], 1e3 * errors['velocity'])
         for joint, errors in score['joints'].items()])


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


def show_forward(scores: Mapping[str, Any], terminal: Terminal) -> None:
    """Print accelerations beside their floor, and rollouts beside what knows less."""
    if not scores:
        return
    terminal.table('accelerations by forward dynamics, under the measured effort', (
        'joint', 'RMSE [rad/s², m/s²]', 'floor', 'error %', 'control %', 'motion %', 'rest %',
        'near reversals %', 'R²'), [
        (joint, one['rmse'], one['floor'], percent(one['relative_error']),
         *(_share(one, part) for part in ('control', *PARTS)), f'{one["r2"]:.3f}')
        for joint, one in scores['accelerations'].items()])
    terminal.line('against the filtered measured acceleration; floor: what the noise of the '
                  'recordings makes of it, with any model', style='dim')
    for horizon in scores['rollouts']:
        stopped = ', '.join(f'{count} of {name}' for name, count in horizon['stopped'].items()
                            if count)
        terminal.table(
            f'error of {horizon["count"]} rollouts of {horizon["seconds"]:g} s from measured '
            f'states{f", stopped: {stopped}" if stopped else ""}',
            ('joint', 'position [mrad, mm]', 'control', 'constant velocity',
             'velocity [mrad/s, mm/s]', 'control', 'constant velocity'),
            [(joint, *(1e3 * errors[name][what] if name in errors else None
                       for what in ('position', 'velocity') for name in PREDICTORS))
             for joint, errors in horizon['joints'].items()])


def show_scores(title: str, joints: Mapping[str, Any], terminal: Terminal) -> None:
    """Print one row per joint: RMSE in effort units, then relative errors in per cent.

    Columns are those in which a joint has a number.
    """
    columns = ('joint', 'RMSE', 'robot itself', 'noise', 'RMSE/std %', 'error %', 'control %',
               'motion %', 'rest %', 'reversals %', 'R²')
    rows = [_row(name, score) for name, score in joints.items()]
    shown = [i for i in range(len(columns)) if any(row[i] not in (None, '-') for row in rows)]
    terminal.table(title, [columns[i] for i in shown], [[row[i] for i in shown] for row in rows])
    control = 'control: the same for nominal inertials with fitted friction; ' if any(
        'control' in score for score in joints.values()) else ''
    terminal.line(f'error: ||e|| / ||measured||; {control}reversals: near those of the joint; '
                  'robot itself, noise: RMS deviations where the motion repeats', style='dim')


def show_slow_changes(joints: Mapping[str, Any], terminal: Terminal) -> None:
    """Print RMSE with fixed parameters, with friction that warms up, and with all slow changes."""
    if not any(ADAPTIVE in score for score in joints.values()):
        return
    terminal.table('slow changes: RMSE of the same model', (
        'joint', 'static', 'warm-up', 'adaptive', 'static error %', 'warm-up %', 'adaptive %'), [
        (joint, *(one['rmse'] for one in (score, score[WARM_UP], score[ADAPTIVE])),
         *(percent(one['relative_error']) for one in (score, score[WARM_UP], score[ADAPTIVE])))
        for joint, score in joints.items()])
    terminal.line('warm-up: friction follows the power it dissipated; adaptive: coefficients '
                  'follow the effort measured before each sample, too', style='dim')


def _row(name: str, score: Mapping[str, Any]) -> tuple[Any, ...]:
    return (name, score['rmse'], score['repeatability'], score['noise'],
            percent(score['nrmse']), percent(score['relative_error']),
            *(_share(score, part) for part in ('control', *PARTS)),
            f'{score["r2"]:.3f}')


def _share(score: Mapping[str, Any], part: str) -> str:
    """Return the relative error of a part of the samples, a dash where there are none."""
    return percent(score[part]['relative_error']) if part in score else '-'
