"""Friction, elastic joints, and what effects show of themselves by their contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    DASH,
    Figure,
    Row,
    Section,
    Table,
    number,
    percent,
    tabled,
    with_deviation,
)
from robot_dynid.effects import CHOSEN, LEARNT
from robot_dynid.effects.shown import ByJoint
from robot_dynid.estimation.deflection_fit import Determined
from robot_dynid.estimation.friction_sweeps import CurveSummary
from robot_dynid.figures import FROM_ZERO, Spec, axis, line
from robot_dynid.identification.gears import ATTENUATED
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.units import effort_unit, length, unit
from robot_dynid.validation.validate import Validation

#: laws shown for each axis, those with the least error
LAWS_SHOWN = 6
FAR_DEVIATIONS = 100  # a law that misses by more deviations has nothing to say at that speed
SWEEPS = (
    'One joint there and back at constant speed while the others rest: half the difference of the '
    'torques at equal positions is friction alone, without gravity and inertia. Bars: 95 % '
    'interval of every speed, from stretches of time, so correlated residuals count. Line and '
    'band: the law named and its 95 % band. Held-out speeds: error of a law there, in standard '
    'deviations of the points (plus 1 % of the friction). What friction has in common forward and '
    'backward (an offset) stays with gravity and does not show here.')
PREDICTIONS = (
    'Warm-up: friction follows the power it dissipates, without any measured effort. Adaptive: '
    'coefficients follow the residual before each sample.')
GEARS = (
    'A gear transmits K (theta - q) + D (theta_d - q_d), theta and J those of its motor on the '
    'joint side. The deflection is what both encoders differ by, so their steps and noise decide '
    'what is known of K: the noise share is by how much they draw K down in least squares. The '
    'offset is the motor reading minus the link reading of an unloaded gear. Kinematic '
    'error comes twice per motor turn; hysteresis is half the width of the loop. Both are in the '
    'fit where they lower its error on stretches left out.')
ENCODERS = (
    'The deflection is what the motor encoder reads more than the link encoder, on the joint '
    'side. It is fitted to the torque through the gear (stiffness K, damping D), the velocity '
    '(delay of the link encoder), the reversals of joint and torque (hysteresis), one wave per '
    'turn of the joint (kinematic error; both rms along the motion) and a zero in each recording. '
    'Brackets: 95 % intervals. A value is given only if the motion determines it: its interval '
    'excludes zero, that of K infinity.')
BESIDE = (
    'The same recordings were fitted as if all joints were rigid, with the effort lag that '
    'suits that: errors are root mean squares of the whole effort of each joint cross-'
    'validated in both fits, by weighted least squares. ')


def friction_laws(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with what was tried on each axis, none where nothing was chosen."""
    rows = []
    for choice in model.record.friction:
        tried = {entry.law: entry.error_over_coulomb for entry in choice.tried}
        best = sorted(tried, key=lambda law: tried[law])[:LAWS_SHOWN]
        rows.append((_axis(model, choice.axis), choice.law, tried.get(choice.law),
                     ', '.join(f'{law} {number(tried[law])}' for law in best), choice.note))
    width = None if any(row[-1] for row in rows) else -1  # remarks are few
    columns = ('axis', 'law', "error over Coulomb's", 'best of those tried', 'remark')[:width]
    text = ('Held-out error divided by that of Coulomb friction. A law with more parameters is '
            'used only if it reduces the held-out error by 2 % and on most of the folds. In '
            'brackets: the suffix of its parameters; m marks a motor that turns several joints.')
    return tabled('Friction laws', text, Table(columns, (row[:width] for row in rows), words=True),
                  folded=True)


def _axis(model: IdentifiedModel, axis: str) -> str:
    joint = model.robot.joints[int(axis.removeprefix('m')) - 1]
    return f'{"motor of " if axis.startswith("m") else ""}{joint} ({axis})'


def friction_curves(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with the friction of every joint that sweeps, none where none does."""
    curves = model.record.friction_curves
    if not curves:
        return ()
    rows = tuple(Row((
        c.joint, c.law or 'none',
        ', '.join(f'{p.name} {number(p.value)} ± {number(p.std, 2)}' for p in c.parameters),
        ', '.join(f'{name} {number(c.settings[name], 3)}' for name in c.shapes) or DASH,
        ', '.join(
            f'{law} {number(error, 2) if error < FAR_DEVIATIONS else f"> {FAR_DEVIATIONS}"}'
            for law, error in sorted(c.errors_at_speeds_left_out.items(), key=itemgetter(1)))))
        for c in curves)
    columns = ('joint', 'law', 'parameters', 'shapes', 'error at held-out speeds')
    units = [(f'{length(model.robot, j)}/s', unit(model.robot, j))
             for j in (model.joints.index(c.joint) for c in curves)]
    drawn = tuple(Figure(curve_figure(c, of), c.joint)
                  for c, of in zip(curves, units, strict=True))
    return (Section('Friction over speed, from sweeps', text=SWEEPS, beside=True, figures=drawn,
                    tables=(Table(columns, rows, words=True),)),)


def curve_figure(curve: CurveSummary, units: tuple[str, str]) -> Spec:
    """Return the points of a curve with their intervals, and the law with its band.

    ``units`` of speed and friction.
    """
    curves, points, law = [], curve.points, curve.curve
    if law is not None:
        speed, friction, low, high = (np.asarray(one) for one in (
            law.speed, law.friction, law.lower, law.upper))
        curves = [figures.band(speed, low, high, '95 % band', figures.MODEL),
                  line(speed, friction, curve.law, figures.MODEL)]
    curves.append(figures.points(
        [p.speed for p in points], [p.friction for p in points], 'sweeps', figures.CONTROL,
        more={'error_y': {
            'type': 'data', 'array': figures.packed([p.upper - p.friction for p in points]),
            'color': figures.CONTROL}}))
    ticks = figures.tick_names(points[0].speed, points[-1].speed)
    return figures.figure(curves, axis(f'speed [{units[0]}]', {'type': 'log', **ticks}),
                          axis(f'friction [{units[1]}]', FROM_ZERO))


def predictions_beside(model: IdentifiedModel, validation: Validation) -> tuple[Section, ...]:
    """Return one section with static, warm-up and adaptive scores, none for a model without."""
    if not validation.adaptive:
        return ()
    kinds = [scores['all'] for scores in (
        validation.model, validation.warm_up, validation.adaptive)]
    columns = ('joint', *(f'{kind} RMSE [{effort_unit(model.robot)}]' for kind in (
        'static', 'warm-up', 'adaptive')), 'static error [%]', 'warm-up [%]',
               'adaptive [%]', 'RMSE less by [%]')
    return tabled('Static, warm-up and adaptive prediction', PREDICTIONS, Table(columns, (
        (joint, *(one[joint].rmse for one in kinds),
         *(percent(one[joint].relative_error) for one in kinds),
         percent(1.0 - kinds[2][joint].rmse / kinds[0][joint].rmse)
         if kinds[0][joint].rmse else DASH) for joint in kinds[0])), folded=True)


def elastic_joints(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about elastic joints, none where all are rigid."""
    gears = model.record.gears
    if not gears:
        return ()
    encoders = Table(
        ('joint', 'K [N m/rad]', 'D [N m s/rad]', 'J [kg m²]', 'offset [mrad]',
         'deflection rms [mrad]', 'peak [mrad]', 'steps link / motor [mrad]', 'noise [mrad]',
         'noise share of K [%]', 'kinematic error [mrad]', 'hysteresis [N m]'),
        (Row((g.joint, with_deviation(g.stiffness, g.stiffness_std),
              with_deviation(g.damping, g.damping_std),
              with_deviation(g.rotor_inertia, g.rotor_inertia_std),
              f'{1e3 * g.offset:.4g} ± {1e3 * g.offset_std:.2g}',
              number(1e3 * g.deflection_rms, 3), number(1e3 * g.deflection_peak, 3),
              ' / '.join(number(1e3 * step, 3) if step else 'none seen'
                         for step in (g.resolution_link, g.resolution_motor)),
              number(1e3 * g.noise, 2), number(100.0 * g.attenuation, 2),
              with_deviation(1e3 * g.kinematic_error, 1e3 * g.kinematic_error_std)
              if g.kinematic_error else 'none seen',
              with_deviation(g.hysteresis, g.hysteresis_std) if g.hysteresis else 'none seen'),
             'poor' if g.attenuation > ATTENUATED else '') for g in gears), 'Gears and encoders')
    columns = ('joint', 'fitted as', 'rigid model [N m]', 'elastic model [N m]', 'ratio', '')
    stiff = Table(columns, (
        (r.joint, 'elastic' if r.elastic else 'rigid', r.rigid_error, r.elastic_error,
         number(r.rigid_error / r.elastic_error, 3),
         'elasticity matters' if r.matters else 'no more than 10 % apart')
        for r in model.record.rigid_beside), 'Rigid compared with elastic', words=True)
    matters = ', '.join(r.joint for r in model.record.rigid_beside if r.matters)
    conclusion = f'Elasticity matters at {matters}.' if matters else \
        'The rigid model predicts these efforts as well; only the elastic one predicts where ' \
        'the links are, and accelerations of links and motors.'
    return (Section('Elastic joints', text=f'{GEARS} {BESIDE}{conclusion}',
                    tables=(encoders, stiff)),)


def encoders(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about the two encoders of joints, none where joints have one."""
    fits = model.record.encoders
    columns = ('joint', 'deflection rms [µrad]', 'unexplained [µrad]', 'delay [ms]',
               'K [N m/rad]', 'D [N m s/rad]', 'hysteresis [µrad]', 'kinematic error [µrad]',
               'zero [µrad]', 'determined', 'open')
    return tabled('Two encoders', ENCODERS, Table(columns, (
        (fit.joint, number(1e6 * fit.rms, 3), number(1e6 * fit.residual, 3),
         _interval(fit.delay, 1e3), _interval(fit.stiffness), _interval(fit.damping),
         *(_interval(one, 1e6) for one in (fit.hysteresis, fit.kinematic_error, fit.zero)),
         _listed(fit.determined), _listed(fit.open)) for fit in fits), words=True))


def _interval(one: Determined, scale: float = 1.0) -> str:
    """Return the value if it is determined, and the 95 % interval."""
    low, high = (number(scale * bound, 3) if np.isfinite(bound) else '∞'
                 for bound in (one.lower, one.upper))
    return f'{f"{number(scale * one.value, 3)} " if one.determined else ""}[{low}, {high}]'


def _listed(names: Sequence[str]) -> str:
    return ', '.join(name.replace('_', ' ') for name in names) or DASH


def shown(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the sections that effects have about themselves, folded."""
    return tuple(replace(section, folded=True) for effect in (*CHOSEN.values(), *LEARNT.values())
                 for section in effect.sections(model))


def pictures(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return the pictures that effects draw of themselves, by joint."""
    charts = ByJoint()
    for effect in (*CHOSEN.values(), *LEARNT.values()):
        for joint, drawn in effect.figures(model, validation.traces).items():
            charts[joint] = (*charts.get(joint, ()), *drawn)
    return charts


def method(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the sections that the method of the fit has of its own."""
    return model.record.details.sections(model.method, model.robot.row_names)
