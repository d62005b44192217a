"""What a method tells beyond its parameters, as sentences and as a section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report.parts import Row, Section, Table
from robot_dynid.report.texts import number, percent


def method_sentence(details: Mapping[str, Any], joints: Sequence[str]) -> str:
    """Return one sentence about how a fit went; nothing for methods that have none."""
    if 'correlation' in details:
        return _correlated(details, joints)
    if 'robust' in details:
        shares = ', '.join(f'{joint} {percent(share)} %'
                           for joint, share in details['down_weighted'].items())
        return (f'{details["robust"].capitalize()} weights, at rest after {details["rounds"]} '
                f'rounds; samples that count less than half: {shares}')
    if 'durbin_wu_hausman' in details:
        return _instruments(details)
    return ''


def _correlated(details: Mapping[str, Any], joints: Sequence[str]) -> str:
    correlation = np.array(details['correlation'])
    others = np.abs(correlation - np.eye(len(correlation)))
    i, j = divmod(int(np.argmax(others)), len(others))
    size = float(np.sqrt(np.sum(others**2) / max(len(others) * (len(others) - 1), 1)))
    pair = f'; most, {correlation[i, j]:+.2f}, between {joints[i]} and {joints[j]}' \
        if others[i, j] > 0.0 else ''
    return (f'covariance of the residuals of all joints, at rest after {details["rounds"]} '
            f'rounds; correlations: {size:.2f} root mean square{pair}')


def _instruments(details: Mapping[str, Any]) -> str:
    test = details['durbin_wu_hausman']
    degrees = ', '.join(str(d) for d in test['degrees_of_freedom'])
    told = 'is biased' if test['least_squares_biased'] else 'is not found to be biased'
    return (f'instruments from {details["instruments"]}; least correlation with the regressor '
            f'{number(details["smallest_correlation"])}, first-stage F '
            f'{number(details["first_stage_f"])}; Durbin-Wu-Hausman F({degrees}) = '
            f'{number(test["f"])}, p = {test["p_value"]:.2g}: least squares {told}')


def method(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about how the fit went, none where there is nothing to tell."""
    details = model.provenance.get('estimator', {})
    sentence = method_sentence(details, model.robot.row_names)
    if not sentence:
        return ()
    tables = (*_table_of_correlations(details, model.robot.row_names), *_table_of_bias(details))
    text = f'{sentence[0].upper()}{sentence[1:]}.'
    return (Section(f'Method {model.method}', text=text, tables=tables),)


def _table_of_correlations(
    details: Mapping[str, Any], joints: Sequence[str]
) -> tuple[Table, ...]:
    if 'correlation' not in details:
        return ()
    rows = tuple(Row((joint, *(f'{value:+.2f}' for value in row)))
                 for joint, row in zip(joints, details['correlation'], strict=True))
    return (Table(('residual of', *joints), rows, 'Correlation of the residuals'),)


def _table_of_bias(details: Mapping[str, Any]) -> tuple[Table, ...]:
    if 'bias_of_least_squares' not in details:
        return ()
    rows = []
    for entry in details['bias_of_least_squares']:
        deviations = entry['bias'] / entry['std'] if entry['std'] > 0.0 else 0.0
        rows.append(Row((entry['name'], number(entry['bias']), number(entry['std'], 2),
                         f'{deviations:+.1f}'), 'fair' if abs(deviations) > 3.0 else ''))
    return (Table(('parameter', 'least squares − instruments', 'std', 'in deviations'),
                  tuple(rows), 'What least squares is off'),)
