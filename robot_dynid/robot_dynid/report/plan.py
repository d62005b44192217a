"""The report of a designed excitation: motion, limits, tip path, clearance, search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.collision.clearance import RESOLUTION, Clearance
from robot_dynid.collision.scene import Scene
from robot_dynid.document import (
    Card,
    Chapter,
    Conclusion,
    Figure,
    Report,
    Row,
    Section,
    Table,
    number,
    percent,
    tabled,
)
from robot_dynid.dynamics.rigid_body import chain_points, tip_positions
from robot_dynid.excitation.design import Design, DesignCriteria
from robot_dynid.report import plan_figures as draw
from robot_dynid.report.texts import name
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.units import effort_unit, length, rate
from robot_dynid.trajectories.composite import elements
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

PLAN_POINTS = 1200  # drawn per curve
CHAINS = 9  # instants at which the arm is drawn
TIP_RATE, TIP_POINTS = 50.0, 4000  # points of the way of the tip: per second, at most
NEAREST = 6  # pairs whose distance is drawn
FULL_SHARE = 0.999  # part of a limit from which it is marked
#: above this a condition number is rounding: columns are dependent
SINGULAR = 1e12


@dataclass(frozen=True, eq=False)
class Plan:
    """A design with the robot it is for, its criteria and the scene it was checked in."""

    kind: str
    robot: RobotModel
    found: Design
    criteria: DesignCriteria
    scene: Scene | None = None

    @property
    def time(self) -> FloatArray:
        """Instants (T,) s of the curves."""
        return np.linspace(0.0, self.found.trajectory.duration, PLAN_POINTS)

    @property
    def motion(self) -> Motion:
        """Motion at those instants."""
        return self.found.trajectory.sample(self.time)


def plan_report(plan: Plan) -> Report:
    """Return the report of a planned excitation."""
    chapters = (
        Chapter('Can it run?', (_summary(plan), *_clearance(plan), _limits(plan))),
        Chapter('See it', (_path(plan), _motion(plan))),
        Chapter('How it was found', (
            *_stages(plan), *_session(plan), _search(plan),
            Section('Elements', tables=element_tables(elements(plan.found.trajectory)),
                    folded=True, detail=True))))
    return Report(f'{plan.robot.name}: planned excitation',
                  f'{plan.kind}, {number(plan.found.trajectory.duration)} s', chapters)


def _summary(plan: Plan) -> Section:
    result, clearance = plan.found, plan.found.clearance
    cards, more = [Card('duration', number(result.trajectory.duration), 's')], []
    if result.score is not None:
        cards.append(Card('condition number', number(result.score.condition_number, 3)))
        more = [('log det', number(result.score.log_det)), *(
            (f'condition number, {part} alone', number(value if value < SINGULAR else np.inf, 3))
            for part, value in result.score.parts.items())]
        if result.score.largest_deviation is not None:
            cards.append(Card(f'largest relative std, {result.score.least_known}',
                              percent(result.score.largest_deviation), '%'))
    if clearance is not None and np.isfinite(clearance.smallest):
        cards.append(Card(f'smallest distance, {" to ".join(clearance.pair)}',
                          number(1e3 * clearance.smallest, 3), f'mm, to {1e3 * RESOLUTION:g} mm'))
    unchecked = () if clearance is None else clearance.unchecked
    fullest = max((share for used in result.used.values() for share in used.values()), default=0.0)
    cards.append(Card('most used limit', percent(fullest), '%'))
    return Section('Summary', status=_verdict(clearance), cards=tuple(cards),
                   tables=(Table((), more, 'Further scores', detail=True),) if more else (),
                   warnings=tuple(text for text in result.warnings if text not in unchecked))


def _verdict(clearance: Clearance | None) -> Conclusion:
    sentence = 'All limits are kept, also between the points.'
    if clearance is None:
        return Conclusion('fair', 'Collisions were not checked:',
                          f'look at the path of the tip before it runs. {sentence}')
    if clearance.unchecked:
        return Conclusion('fair', 'Not everything was checked:',
                          f'{"; ".join(clearance.unchecked)}. {sentence}')
    return Conclusion('good', 'Proven to be free of collisions.', sentence)


def _limits(plan: Plan) -> Section:
    limits, used = plan.found.limits, plan.found.used
    names = list(dict.fromkeys(key for shares in used.values() for key in shares))
    rows = [Row((
        joint, *(percent(used[joint].get(key)) for key in names),
        f'{number(limits.lower[i])} to {number(limits.upper[i])}',
        *(float(getattr(limits, key)[i]) for key in ('velocity', 'acceleration', 'effort'))),
        'fair' if max(used[joint].values(), default=0.0) >= FULL_SHARE else '')
        for i, joint in enumerate(limits.joints)]
    at = ' or '.join(dict.fromkeys(length(plan.robot, j) for j in range(plan.robot.n)))
    columns = ('joint', *(f'{name(key)} used [%]' for key in names), f'position [{at}]',
               f'velocity [{rate(at)}]', f'acceleration [{rate(at, "²")}]',
               f'effort [{effort_unit(plan.robot)}]')
    return Section('Limits', tables=(Table(columns, rows),), detail=True, text=(
        'The share of every limit that the motion uses, then the limits.'))


def _motion(plan: Plan) -> Section:
    motion, inverse = plan.motion, plan.criteria.inverse
    effort = None if inverse is None else inverse(motion.position, motion.velocity,
                                                  motion.acceleration)
    limits = plan.found.limits
    return Section('Motion of each joint', folded=True, beside=True, figures=tuple(
        Figure(draw.motion(plan.time, (motion, effort), limits, j), joint, link='time')
        for j, joint in enumerate(limits.joints)),
        text='The curves stay within the dashed limits. Efforts are those of the nominal (or '
             'given) model without friction. Drag over a part of one figure to zoom all.')


def _path(plan: Plan) -> Section:
    trajectory, around = plan.found.trajectory, plan.robot.surroundings
    if plan.scene is not None:
        around = plan.scene.around
    count = int(min(np.ceil(TIP_RATE * trajectory.duration) + 1, TIP_POINTS))
    time, instants = (np.linspace(0.0, trajectory.duration, k) for k in (count, CHAINS))
    tip = tip_positions(plan.robot, trajectory.sample(time).position)
    chains = chain_points(plan.robot, trajectory.sample(instants).position)
    return Section('Path of the tip', figures=(Figure(
        draw.path(time, tip, chains, around)),), text=(
        f'In the frame {plan.robot.base_link}. Lines join the origins of the joints, not the '
        'bodies: look whether the tip covers the space where the arm works.'))


def _clearance(plan: Plan) -> tuple[Section, ...]:
    clearance, scene = plan.found.clearance, plan.scene
    if clearance is None or scene is None:
        return ()
    bodies = Table((), [
        *(('checked', text) for text in clearance.checked),
        *(Row(('not checked', text), 'fair') for text in clearance.unchecked)],
        'Bodies checked', words=True, folded=True)
    if not scene.pairs:  # what was not checked is in the summary
        return () if not clearance.checked else (Section('Clearance', tables=(bodies,)),)
    distances = scene.distances(plan.motion.position)
    order = np.argsort(np.min(distances - scene.required, axis=0))[:NEAREST]
    nearest = Table(('bodies', 'smallest [mm]', 'kept [mm]', 'at [s]'), ((
        ' and '.join(scene.pairs[i]), number(1e3 * np.min(distances[:, i]), 3),
        number(1e3 * scene.required[i], 3),
        number(plan.time[int(np.argmin(distances[:, i]))], 3)) for i in order), 'Nearest pairs',
        detail=True)
    figure = draw.distances(plan.time, distances[:, order],
                            [' / '.join(scene.pairs[i]) for i in order])
    return (Section('Clearance', tables=(nearest, bodies), figures=(Figure(figure),),
                    text='Distances of the collision shapes. Between the instants drawn the '
                         'clearance is proven by bounds of the motion.'),)


def _stages(plan: Plan) -> tuple[Section, ...]:
    return tabled('Stages', '', Table(('stage', 'swings', 'condition number', 'finds'), (
        (s.name, s.swings, s.condition_number, ', '.join(s.solves))
        for s in plan.found.stages), words=True))


def _session(plan: Plan) -> tuple[Section, ...]:
    """Return the swings of an adaptive sequence, and what they will not reach."""
    session = plan.found.session
    if session is None:
        return ()
    return (Section('Precision after each swing', status=Conclusion(
        'good' if session.met else 'fair', 'Outlook:', session.outlook), tables=(Table(
            ('swing', 'joint', 's', 'missing', 'worst of them', 'deviation [%]'), (
                (i, one.moving, number(one.duration, 3), one.missing, one.least_known,
                 percent(one.largest_deviation) if one.seen else 'not seen')
                for i, one in enumerate(session.swings, start=1))),)),)


def _search(plan: Plan) -> Section:
    rows = plan.found.starts
    if not rows:
        return Section('Search', text='Planned by rules, not optimised.')
    if len(rows) == 1:
        ended = 'converged' if rows[0].converged else 'had not converged when it was stopped'
        return Section('Search', text=f'One start, which {ended}: others may end in a better '
                                      'motion (--starts).', detail=True)
    first, last = (np.array([getattr(row, key) for row in rows]) for key in ('first', 'value'))
    count = sum(row.converged for row in rows)
    spread = percent(float(np.sort(last)[len(last) // 2] - last.min()))
    figure = draw.progress(first, last, 'logarithm of the objective')
    return Section('Search', figures=(Figure(figure),), text=(
        f'{count} of {len(rows)} starts converged, half of them within {spread} % of the best. '
        'Where many ends are alike, a better motion is not to be expected.'))


def element_tables(parts: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    """Return amplitudes and frequencies, speeds or poses of what a trajectory consists of."""
    tables = []
    for one in parts:
        if one['type'] == 'fourier':
            tables.append(Table(
                ('joint', 'offset', *(f'{f:.4g} Hz' for f in one['frequencies'])), (
                    (joint, values['offset'], *values['amplitudes'])
                    for joint, values in one['joints'].items()),
                'amplitudes [rad, m] of the harmonics'))
        elif one['type'] == 'bspline':
            tables.append(Table(
                ('joint', 'lower', 'upper'), ((joint, values['lower'], values['upper'])
                                              for joint, values in one['joints'].items()),
                f'B-spline of {one["points"]} points, a knot every {one["knot_interval"]:.4g} s, '
                'range of the motion [rad, m]'))
    for kind, title, fields in (
        ('sine', 'swings', {'amplitude': 'amplitude [rad, m]', 'frequency': 'frequency [Hz]',
                            'periods': 'periods'}),
        ('sweep', 'sweeps', {'speed': 'speed [rad/s, m/s]', 'travel': 'travel [rad, m]'}),
        ('pose', 'poses at rest', {'seconds': 'for [s]'}),
    ):
        tables.append(Table(('at [s]', 'joint', *fields.values(), 'configuration [rad, m]'), (
            (one['begin'], one.get('joint', 'all'), *(one[field] for field in fields),
             ' '.join(f'{value:.3g}' for value in one['configuration'].values()))
            for one in parts if one['type'] == kind), title))
    return tuple(table for table in tables if table.rows)
