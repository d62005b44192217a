"""Slow changes as sections: what was found of them, and predictions with and without."""

from __future__ import annotations

from robot_dynid.document import DASH, Row, Section, Table, number, percent
from robot_dynid.identification.validate import Validation
from robot_dynid.identified.model import IdentifiedModel

TEXT = (
    'Friction falls as a joint is warmed by the power it dissipates, and is another in the '
    'morning. Warm-up: friction follows that power, without any measured effort. Adaptive: '
    'coefficients of friction and ripple follow what was left over before each sample. Either is '
    'used where it takes more off recordings left out than chance does. ')


def slow_changes(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about slow changes, none where they were not looked for."""
    looked = model.record.slow_changes
    if not looked:
        return ()
    by_joint = dict(zip(model.joints, model.adaptations)) if model.adaptations else {}
    rows, laws = [], []
    for one in looked:
        known = by_joint.get(one.joint)
        warming, slow = (known.warming, known.slow) if known else (None, None)
        rows.append(Row((
            one.joint, percent(one.warming), number(one.warming_deviations, 2),
            'yes' if warming else 'no', percent(one.slow), number(one.slow_deviations, 2),
            'yes' if slow else 'no', number(slow.viscous if slow else None),
            number(slow.dry if slow else None), number(slow.seconds if slow else None))))
        for i, seconds in enumerate(warming.seconds.tolist() if warming else ()):
            assert warming is not None
            laws.append(Row((
                one.joint, f'{seconds:.3g} ± {1.96 * float(warming.seconds_std[i]):.2g}',
                number(warming.power, 3),
                *(f'{100.0 * value:.1f} ± {196.0 * std:.1f}' for value, std in zip(
                    warming.fall[:, i].tolist(), warming.fall_std[:, i].tolist())))))
    warm = [one.joint for one in looked if (k := by_joint.get(one.joint)) and k.warming]
    text = TEXT + (f'Friction that warms up shows at {", ".join(warm)}.' if warm else
                   'The recordings show no friction that warms up.')
    columns = ('joint', 'warm-up gain [%]', 'in deviations', 'used', 'adaptive gain [%]',
               'in deviations', 'used', 'viscous share', 'dry share', 'over [s]')
    tables = [Table(columns, tuple(rows), 'Squared error taken off data left out')]
    if laws:
        titles = ('joint', 'time constant [s]', 'at [W]', 'viscous friction falls by [%]',
                  'dry friction falls by [%]')
        tables.append(Table(titles, tuple(laws), 'Friction that warms up, with 95 % intervals'))
    return (Section('Slow changes', text=text, tables=tuple(tables)),)


def predictions_beside(validation: Validation) -> tuple[Section, ...]:
    """Return one section with static, warm-up and adaptive scores, none for a model without."""
    if not validation.adaptive:
        return ()
    kinds = [scores['all'] for scores in (
        validation.model, validation.warm_up, validation.adaptive)]
    rows = tuple(
        Row((joint, *(number(one[joint].rmse) for one in kinds),
             *(percent(one[joint].relative_error) for one in kinds),
             percent(1.0 - kinds[2][joint].rmse / kinds[0][joint].rmse)
             if kinds[0][joint].rmse > 0.0 else DASH)) for joint in kinds[0])
    columns = ('joint', 'static RMSE', 'warm-up', 'adaptive', 'static error [%]', 'warm-up [%]',
               'adaptive [%]', 'RMSE less by [%]')
    return (Section('Static, warm-up and adaptive prediction', text=TEXT,
                    tables=(Table(columns, rows),)),)
