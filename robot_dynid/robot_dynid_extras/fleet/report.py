"""The report of a fleet: which arms changed or are off, and how arms differ in general."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    Chapter,
    Conclusion,
    Figure,
    Report,
    Row,
    Section,
    Table,
    counted,
    number,
)
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.figures import Spec, axis
from robot_dynid_extras.fleet.changes import OUTLIER, TREND
from robot_dynid_extras.fleet.characteristics import Characteristic
from robot_dynid_extras.fleet.fleet import Arm, Finding, Fleet, Session

#: figures of a page: more arms that changed are in the table alone
MOST_FIGURES = 24
#: other arms drawn behind the one that is meant
MOST_OTHERS = 30
TEXT = (
    'Each parameter of an arm is compared with its earlier sessions and with the other arms. On '
    'average at most {rate} of the arms listed, and of the parameters listed for them, are false '
    'alarms. The intervals account for this selection.')
WATCHED = 'Largest changes that are not significant'
#: of how many sessions, half of them before it, a step as large would be named
NEEDED = 'sessions to tell'
SPREADS = (
    'Standard deviations between arms, and between days of one arm beyond the uncertainty of its '
    'sessions; friction and gears in percent of the fleet mean. Between days, all joints share '
    'the value of one kind of friction.')
COLUMNS = ('arm', 'part', 'what', 'pattern', 'by', 'since', 'chance', 'perhaps')


def fleet_report(fleet: Fleet, left_out: Mapping[str, str]) -> Report:
    """Return the report on a ``fleet``; ``left_out`` recordings with the reason, by source."""
    robot = fleet.characteristics.model.robot.name
    arms = counted(len(fleet.arms), 'arm')
    sessions = counted(sum(len(arm.sessions) for arm in fleet.arms), 'session')
    return Report(f'{robot}: fleet', f'{arms}, {sessions}', (
        *findings_report(fleet, left_out).chapters,
        Chapter('How arms differ', (_spreads(fleet),)),
        Chapter('What it is based on', (_sessions(fleet),))))


def findings_report(fleet: Fleet, left_out: Mapping[str, str]) -> Report:
    """Return the findings alone, see `fleet_report`."""
    return Report('', '', (Chapter('What changed', (_findings(fleet, left_out),)),))


def finding_facts(fleet: Fleet, one: Finding) -> dict[str, Any]:
    """Return a finding, and what each session of its arm says, with intervals of 95 %.

    Those are by what the session knows and what days differ by.
    """
    own = one.characteristic
    k, [arm] = fleet.characteristics.all.index(own), [
        arm for arm in fleet.arms if arm.name == one.arm]
    by_session = [{
        'day': day(session.time), 'value': float(session.reading.values[k]),
        'half_interval': _half_interval(fleet, session, k)}
        for session in arm.sessions if session.reading.known[k]]
    return {'arm': one.arm, 'part': own.part, 'characteristic': own.name, 'kind': own.kind,
            'words': own.words, 'unit': own.unit or '1', 'pattern': one.pattern,
            'size': one.size, 'half_interval': one.half_interval,
            'since': None if one.since is None else day(one.since),
            'probability': one.probability, 'cause': one.cause, 'by_session': by_session}


def _half_interval(fleet: Fleet, session: Session, k: int) -> float:
    """Return half of the 95 % interval of characteristic ``k`` in a session."""
    return interval_factor(np.inf) * float(np.hypot(
        fleet.usual[k].spread, np.sqrt(session.reading.covariance[k, k])))


def arm_facts(fleet: Fleet, arm: Arm) -> dict[str, Any]:
    """Return the pooled characteristics of an arm with 95 % intervals, and those by itself."""
    factor = interval_factor(np.inf)
    half = factor * np.sqrt(np.diag(arm.covariance))
    return {own.name: {'value': arm.values[i], 'half_interval': half[i], 'alone': arm.alone[i],
                       'alone_half_interval': factor * arm.deviations[i]}
            for i, own in enumerate(fleet.characteristics.all[:fleet.characteristics.own])}


def spread_facts(fleet: Fleet) -> dict[str, Any]:
    """Return the scatter between arms and from day to day, by characteristic."""
    return {own.name: {'between_arms': None if levels is None else levels.spread,
                       'day_to_day': usual.spread, 'unit': own.unit or '1'}
            for own, usual, levels in zip(fleet.characteristics.all, fleet.usual, fleet.spread)}


def status_facts(one: ArmStatus) -> dict[str, Any]:
    """Return the condition of an arm as `diagnostic_msgs/DiagnosticStatus` has it."""
    return {'level': 'warn' if one.changed else 'ok', 'name': one.arm, 'hardware_id': one.arm,
            'message': one.message, 'values': dict(one.values)}


@dataclass(frozen=True)
class ArmStatus:
    """Condition of an arm as diagnostics have it: whether it ``changed``, in words, details."""

    arm: str
    changed: bool
    message: str
    values: Mapping[str, str]


def arm_statuses(fleet: Fleet) -> tuple[ArmStatus, ...]:
    """Return the conditions of all arms of a ``fleet``, with what was found about each."""
    return tuple(_status(fleet, arm) for arm in fleet.arms)


def _status(fleet: Fleet, arm: Arm) -> ArmStatus:
    own = [one for one in fleet.findings if one.arm == arm.name]
    told = {f'{one.characteristic.part}: {one.characteristic.words}': one for one in own}
    message = '; '.join(f'{what} {size(one)}' for what, one in told.items())
    return ArmStatus(arm.name, bool(own), message or 'as expected', {
        **{what: f'{one.pattern}{"" if one.since is None else f" since {day(one.since)}"}, '
                 f'{size(one)}, by chance {number(one.probability, 2)}, perhaps {one.cause}'
           for what, one in told.items()},
        'sessions': str(len(arm.sessions)), 'last session': day(arm.sessions[-1].time),
        'false alarms among the arms listed': f'{100.0 * fleet.rate:g} % at most'})


def said(one: Finding) -> tuple[str, ...]:
    """Return a finding as cells of a table, see COLUMNS."""
    own = one.characteristic
    return (one.arm, own.part, own.words, one.pattern, size(one),
            '' if one.since is None else day(one.since), number(one.probability, 2), one.cause)


def size(one: Finding) -> str:
    """Return size and interval of a finding with unit."""
    if one.characteristic.relative:
        return f'{100.0 * one.size:+.3g} ± {100.0 * one.half_interval:.2g} %'
    return f'{one.size:+.3g} ± {one.half_interval:.2g} {one.characteristic.unit}'


def day(time: float) -> str:
    """Return the date of a time [s since 1970], UTC."""
    return datetime.fromtimestamp(time, timezone.utc).strftime('%Y-%m-%d')


def _findings(fleet: Fleet, left_out: Mapping[str, str]) -> Section:
    arms = list(dict.fromkeys(one.arm for one in fleet.findings))
    among = f'{len(arms)} of {counted(len(fleet.arms), "arm")}:'
    status = Conclusion('fair', among, f'{", ".join(arms)}.') if arms \
        else Conclusion('good', 'Nothing changed', 'beyond what is usual in this fleet.')
    rows = tuple(Row(said(one), 'poor') for one in fleet.findings)
    drawn = tuple(Figure(along(fleet, one), f'{one.arm}: {one.characteristic.words} of '
                         f'{one.characteristic.part}', f'{one.pattern}, {size(one)}')
                  for one in (*fleet.findings, *fleet.watched)[:MOST_FIGURES])
    tables = [Table(COLUMNS, rows, words=True)] if rows else []
    if fleet.watched:
        tables.append(Table((*COLUMNS, NEEDED), tuple(Row((
            *said(one), str(one.sessions or '')))
            for one in fleet.watched), WATCHED, words=True))
    return Section('Findings', text=TEXT.format(rate=f'{100.0 * fleet.rate:g} %'), status=status,
                   tables=tuple(tables), figures=drawn,
                   warnings=tuple(f'left out: {reason}' for reason in left_out.values()))


def along(fleet: Fleet, one: Finding) -> Spec:
    """Return the characteristic of a finding over time: its arm before others, since when."""
    k = fleet.characteristics.all.index(one.characteristic)
    scale = 100.0 if one.characteristic.relative else 1.0
    curves = []
    others = [arm for arm in fleet.arms if arm.name != one.arm][:MOST_OTHERS]
    own = next(arm for arm in fleet.arms if arm.name == one.arm)
    for i, arm in enumerate([*others, own]):
        told = [s for s in arm.sessions if s.reading.known[k]]
        time = [1e3 * s.time for s in told]
        values = [scale * float(s.reading.values[k]) for s in told]
        if arm is not own:
            name = 'other arms'
            curves.append(figures.line(time, values, name, f'{figures.SOFT}/30', 1.0, {
                'legendgroup': name, 'showlegend': i == 0, 'hoverinfo': 'skip'}))
            continue
        error = [scale * _half_interval(fleet, s, k) for s in told]
        curves.append(figures.points(time, values, arm.name, figures.MODEL, {
            'error_y': {'type': 'data', 'array': error, 'visible': True, 'thickness': 1}}))
    marks = [] if one.pattern in (OUTLIER, TREND) or one.since is None else [
        {'type': 'line', 'x0': 1e3 * one.since, 'x1': 1e3 * one.since, 'y0': 0, 'y1': 1,
         'yref': 'paper', 'line': {'color': figures.POOR, 'width': 1.5, 'dash': 'dash'}}]
    return figures.figure(curves, axis('', {'type': 'date'}), axis(_axis(one.characteristic)),
                          {'height': 280, 'shapes': marks})


def _axis(one: Characteristic) -> str:
    return 'difference from the fleet mean [%]' if one.relative else f'{one.name} [{one.unit}]'


def _spreads(fleet: Fleet) -> Section:
    rows = []
    for own, usual, levels in zip(fleet.characteristics.all, fleet.usual, fleet.spread,
                                  strict=True):
        scale, unit = (100.0, '%') if own.relative else (1.0, own.unit)
        between = levels.spread if levels and np.isfinite(levels.spread) else None
        daily = usual.spread if np.isfinite(usual.spread) else None
        rows.append(Row((f'{own.part}: {own.words}', *(
            number(None if value is None else scale * value, 3) for value in (between, daily)),
            unit)))
    return Section('Spread', text=SPREADS, tables=(
        Table(('parameter', 'between arms', 'between days', 'unit'), tuple(rows)),))


def _sessions(fleet: Fleet) -> Section:
    rows = tuple(Row((arm.name, str(len(arm.sessions)),
                      str(sum(len(one.sources) for one in arm.sessions)),
                      day(arm.sessions[0].time), day(arm.sessions[-1].time)))
                 for arm in fleet.arms)
    return Section('Arms', tables=(
        Table(('arm', 'sessions', 'recordings', 'from', 'to'), rows, folded=len(rows) > 20,
              title='Arms'),))
