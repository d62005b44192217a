"""Scores of a prediction, joint by joint, as JSON and as a table; model beside control row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.terminal import percent

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identification.validate import JointScore, Validation

PARTS = ('motion', 'rest', 'near reversals')
FIELDS = ('rmse', 'nrmse', 'relative_error', 'r2', 'quartiles', 'outliers', 'samples')


def score_fields(score: JointScore) -> dict[str, Any]:
    """Return the numbers of one score."""
    return {name: getattr(score, name) for name in FIELDS}


def joint_scores(validation: Validation) -> dict[str, Any]:
    """Return joint -> score over all samples, with motion, rest and the control row inside."""
    joints: dict[str, Any] = {}
    own = validation.repeatability
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        entry = score_fields(score)
        entry['repeatability'] = None if own is None else float(own[i])
        for part in PARTS:
            if joint in validation.model.get(part, {}):
                entry[part] = score_fields(validation.model[part][joint])
        if validation.control:
            entry['control'] = score_fields(validation.control['all'][joint])
        joints[joint] = entry
    return joints


def show_scores(title: str, joints: Mapping[str, Any], terminal: Terminal) -> None:
    """Print one row per joint: RMSE in effort units, then relative errors in per cent."""
    columns = ('joint', 'RMSE', 'robot itself', 'RMSE/std %', 'error %', 'control %',
               'motion %', 'rest %', 'near reversals %', 'R²', 'outliers %')
    terminal.table(title, columns, [_row(name, score) for name, score in joints.items()])
    terminal.line('error: ||e|| / ||measured||; control: the same for nominal inertials with '
                  'fitted friction; robot itself: RMS deviation where the motion repeats',
                  style='dim')


def _row(name: str, score: Mapping[str, Any]) -> tuple[Any, ...]:
    def share(part: str) -> str:
        return percent(score[part]['relative_error']) if part in score else '-'

    return (name, score['rmse'], score['repeatability'], percent(score['nrmse']),
            percent(score['relative_error']), share('control'), share('motion'), share('rest'),
            share('near reversals'), f'{score["r2"]:.3f}', percent(score['outliers']))
