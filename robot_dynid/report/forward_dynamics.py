"""Forward dynamics as a section: accelerations and rollouts on recordings."""

from __future__ import annotations

from robot_dynid.document import DASH, Row, Section, Table, number, percent
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.validation.forward_scores import (
    CONSTANT_VELOCITY,
    CONTROL,
    MODEL,
    ForwardValidation,
    Horizon,
)
from robot_dynid.validation.validate import NEAR

TEXT = (
    'Accelerations that the model gives under the measured effort, against the filtered measured '
    'ones; and motions simulated under the measured effort from measured states. Floor: what the '
    'noise of the recordings makes of the RMSE, with any model. Control: nominal inertials with '
    'fitted friction. Constant velocity: joints that go on as they begin. Friction slides '
    'steadily in all of these: at rest it holds a joint by less or more than the model can know.')


def forward_dynamics(model: IdentifiedModel, found: ForwardValidation) -> Section:
    """Return the section of a validation of forward dynamics."""
    rows = []
    for (joint, score), floor in zip(found.model['all'].items(), found.floor.tolist(),
                                     strict=True):
        control = found.control['all'][joint].relative_error if found.control else None
        parts = [found.model.get(part, {}).get(joint) for part in ('motion', 'rest', NEAR)]
        rows.append(Row((
            joint, number(score.rmse), number(floor), percent(score.relative_error),
            percent(control), *(percent(p.relative_error if p else None) for p in parts),
            f'{score.r2:.3f}')))
    columns = ('joint', 'RMSE [rad/s², m/s²]', 'floor', 'error [%]', 'control [%]',
               'in motion [%]', 'at rest [%]', 'near reversals [%]', 'R²')
    tables = (Table(columns, tuple(rows), 'Accelerations'),
              *(_rollouts(model, horizon) for horizon in found.horizons))
    return Section('Forward dynamics', text=TEXT, tables=tables)


def _rollouts(model: IdentifiedModel, horizon: Horizon) -> Table:
    """Return the errors of rollouts of one length."""
    scores = [horizon.scores.get(name) for name in (MODEL, CONTROL, CONSTANT_VELOCITY)]
    rows = tuple(
        Row((joint, *(DASH if one is None else number(1e3 * float(getattr(one, what)[j]))
                      for what in ('position', 'velocity') for one in scores)))
        for j, joint in enumerate(model.joints))
    counts = ', '.join(f'{one.stopped} of {one.count} stopped' for one in scores[:1] if one)
    columns = ('joint', 'position [mrad, mm]', 'control', 'constant velocity',
               'velocity [mrad/s, mm/s]', 'control', 'constant velocity')
    return Table(columns, rows, f'Rollouts of {horizon.seconds:g} s, RMS over all their samples '
                                f'({counts})')
