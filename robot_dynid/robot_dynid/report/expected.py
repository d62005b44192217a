"""Report of the errors that a model expects on a planned motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_dynid.document import Chapter, Report, Section, Table, number, percent
from robot_dynid.identified.expected_error import ExpectedError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import trust
from robot_dynid.robot.units import effort_unit

EXPECTED = (
    'From the errors of the training recordings, which grow with acceleration and in slow motion, '
    'the uncertainty of the parameters and the change of friction from day to day. In 95 % of '
    'motions the RMSE is in the interval.')


def expected_report(
    model: IdentifiedModel, expected: Sequence[ExpectedError], measured: Mapping[str, float],
    warnings: Sequence[str],
) -> Report:
    """Return the errors to expect, beside the RMSE ``measured`` on recordings, if any."""
    rows = [(one.joint, number(one.rmse, 3),
             f'{number(one.low, 3)} to {number(one.high, 3)}',
             percent(one.rmse / one.effort) if one.effort > 0.0 else None,
             *([number(measured[one.joint], 3)] if measured else []))
            for one in expected]
    columns = ('joint', f'RMSE to expect [{effort_unit(model.robot)}]', '95 % interval',
               'error [%]', *(['measured RMSE'] if measured else []))
    section = Section('Error to expect on the plan', text=EXPECTED, tables=(Table(columns, rows),))
    return Report(f'{model.robot.name}: error to expect', model.method, (
        Chapter('Planned motion', (section, *trust.warnings(warnings))),))
