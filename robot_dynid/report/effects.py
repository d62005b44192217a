"""Effects beyond rigid links: friction, torque ripple, slow changes, gears and what they hide."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from robot_dynid.document import (
    DASH,
    Fact,
    Figure,
    Row,
    Section,
    Sheet,
    Table,
    number,
    percent,
    tabled,
    with_deviation,
)
from robot_dynid.effects import CHOSEN, JointFriction
from robot_dynid.estimation.friction_sweeps import CurveSummary
from robot_dynid.identification.gears import ATTENUATED
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import figures
from robot_dynid.report.figures import FROM_ZERO, Spec, axis, line
from robot_dynid.report.texts import effort_unit, length, unit
from robot_dynid.validation.validate import Validation

#: laws shown for each axis, those with the least error
LAWS_SHOWN = 6
WAVES_SHOWN = 12  # waves that are shown at once
LEAST_CHANCE = 1e-9  # chances below this are not told apart
FAR_DEVIATIONS = 100  # a law that misses by more deviations has nothing to say at that speed
SWEEPS = (
    'One joint there and back at constant speed while the others rest: half the difference of the '
    'torques at equal positions is friction alone, without gravity and inertia. Bars: 95 % '
    'interval of every speed, from stretches of time, so coloured residuals count. Line and band: '
    'the law named and its 95 % band. What laws miss at speeds left out of their fit counts in '
    'deviations of the points, 1 % of the friction added. What friction has in common forward and '
    'backward (an offset) stays with gravity and does not show here.')
RIPPLE = (
    'What the model leaves of the unfiltered effort waves with the position of a joint: gears and '
    'motors make torque that repeats with every turn of theirs. Errors are root mean squares on '
    'stretches of the recordings left out in turn, without and with the waves. A wave is there '
    'only where it lowers them, and where noise of the same spectrum gives one so large with a '
    'probability below 1 in 1000. Delay: by how much the wave comes before the position of its '
    'row, negative where it comes later. Above the top speed recorded no wave is predicted.')
ALIASED = (
    'Waves that the recordings do not tell from others, by their speeds and the sampling of the '
    'effort, are not used (record faster, or move slowly through the range of the joint):')
STIFFNESS = (
    'Torque twists a gear, and shifts the waves of its motor against the encoder behind it. The '
    'stiffness that this implies, with its 95 % interval, is experimental; it holds where the '
    'encoder sits behind the gear, and its orders are known.')
SLOW = (
    'Friction falls as a joint is warmed by the power it dissipates, and varies with time of day. '
    'Warm-up: friction follows that power, without any measured effort. Adaptive: coefficients of '
    'friction and ripple follow the residual before each sample. Each is used only if it reduces '
    'the held-out error significantly. ')
GEARS = (
    'A gear transmits K (theta - q) + D (theta_d - q_d), theta and J those of its motor on the '
    'joint side. The deflection is what both encoders differ by, so their steps and noise decide '
    'what is known of K: the noise share is by how much they draw K down in least squares. The '
    'offset is what the motor reads more than the link where nothing bends the gear. Kinematic '
    'error comes twice per motor turn; hysteresis is half the width of the loop. Both are in the '
    'fit where they lower its error on stretches left out.')
BESIDE = (
    'The same recordings were fitted as if all joints were rigid, with the lag of the effort that '
    'suits that: errors are root mean squares of the whole effort of each joint on stretches left '
    'out of both fits in turn, by weighted least squares. ')


def friction_laws(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with what was tried on each axis, none where nothing was chosen."""
    rows = []
    for choice in model.record.friction:
        tried = {entry.law: entry.error_over_coulomb for entry in choice.tried}
        best = sorted(tried, key=lambda law: tried[law])[:LAWS_SHOWN]
        rows.append((_axis(model, choice.axis), choice.law, tried.get(choice.law),
                     ', '.join(f'{law} {number(tried[law])}' for law in best), choice.note))
    width = 5 if any(row[-1] for row in rows) else 4
    columns = ('axis', 'law', "error over Coulomb's", 'best of those tried', 'remark')[:width]
    text = ('Error on stretches of the recordings left out of the fit in turn, divided by that of '
            'Coulomb friction. A law with more parameters is taken only where it lowers the error '
            'by 2 % and in most of the stretches. In brackets: the number in names of parameters; '
            'm marks a motor that turns with several joints.')
    return tabled('Friction laws', text, Table(columns, (row[:width] for row in rows), words=True))


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
    columns = ('joint', 'law', 'parameters', 'shapes', 'missed at speeds left out')
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
                  line(speed, friction, curve.law, figures.MODEL, width=2)]
    curves.append(figures.points(
        [p.speed for p in points], [p.friction for p in points], 'sweeps', figures.CONTROL,
        more={'marker': {'size': 7}, 'error_y': {
            'type': 'data', 'array': figures.packed([p.upper - p.friction for p in points]),
            'color': figures.CONTROL, 'thickness': 1.6, 'width': 4}}))
    ticks = figures.tick_names(points[0].speed, points[-1].speed)
    return figures.figure(curves, axis(f'speed [{units[0]}]', {'type': 'log', **ticks}),
                          axis(f'friction [{units[1]}]', FROM_ZERO), {'height': 320})


def torque_ripple(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about torque ripple, none where it was not looked for."""
    found = model.record.ripple
    if not found:
        return ()
    text = f'{RIPPLE} {STIFFNESS}' if any(one.stiffness for one in found) else RIPPLE
    silent = ', '.join(one.joint for one in found if not one.waves + one.aliased)
    if silent:
        text = f'{text} None beyond chance at {silent}.'
    hidden = '; '.join(f'{number(wave.order)} at {one.joint}, which looks like '
                       f'{", ".join(map(number, wave.aliases))}'
                       for one in found for wave in one.aliased)
    if hidden:
        text = f'{text} {ALIASED} {hidden}.'
    count = sum(len(one.waves) for one in found)
    errors = Table(('joint', 'without [N m]', 'with [N m]', 'variance explained [%]', 'waves',
                    'stiffness [kN m/rad]'), (
        (one.joint, one.before, one.after, percent(one.gain), len(one.waves),
         _stiffness(one.stiffness)) for one in found if one.waves), 'Error that is left')
    waves = Table(('joint', 'waves per turn', 'rms [N m]', 'delay [ms]', 'chance'), (
        (one.joint, wave.order, wave.amplitude,
         f'{1e3 * wave.delay:.2f} ± {1e3 * wave.delay_std:.2f}',
         f'{wave.chance:.0e}' if wave.chance > LEAST_CHANCE else f'< {LEAST_CHANCE:g}')
        for one in found for wave in one.waves),
        f'All {count} waves' if count > WAVES_SHOWN else 'Waves', folded=count > WAVES_SHOWN)
    return (Section('Torque ripple', text=text, tables=(errors, waves) if count else ()),)


def _stiffness(found: tuple[float, float, float] | None) -> str:
    if found is None:
        return ''
    low, value, high = (1e-3 * one for one in found)
    return f'{number(value, 3)} ({number(low, 3)} to {number(high, 3)})'


def slow_changes(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about slow changes, none where they were not looked for."""
    by_joint = dict(zip(model.joints, model.parts_of('adaptation'), strict=True))
    rows, laws, warm = [], [], []
    for one in model.record.slow_changes:
        known = by_joint[one.joint]
        warming, slow = (known.warming, known.slow) if known else (None, None)
        rows.append((
            one.joint, percent(one.warming), number(one.warming_deviations, 2), bool(warming),
            percent(one.slow), number(one.slow_deviations, 2), bool(slow),
            *((slow.viscous, slow.dry, slow.seconds) if slow else (None,) * 3)))
        if warming:
            warm.append(one.joint)
            laws += [(
                one.joint, f'{seconds:.3g} ± {1.96 * float(warming.seconds_std[i]):.2g}',
                number(warming.power, 3),
                *(f'{100.0 * value:.1f} ± {196.0 * std:.1f}' for value, std in zip(
                    warming.fall[:, i].tolist(), warming.fall_std[:, i].tolist())))
                for i, seconds in enumerate(warming.seconds.tolist())]
    text = SLOW + (f'Friction that warms up shows at {", ".join(warm)}.' if warm else
                   'The recordings show no friction that warms up.')
    return tabled('Slow changes', text, Table(
        ('joint', 'warm-up gain [%]', 'in deviations', 'used', 'adaptive gain [%]',
         'in deviations', 'used', 'viscous share', 'dry share', 'over [s]'), rows,
        'Squared error taken off data left out'), Table(
        ('joint', 'time constant [s]', 'at [W]', 'viscous friction falls by [%]',
         'dry friction falls by [%]'), laws, 'Friction that warms up, with 95 % intervals'))


def predictions_beside(model: IdentifiedModel, validation: Validation) -> tuple[Section, ...]:
    """Return one section with static, warm-up and adaptive scores, none for a model without."""
    if not validation.adaptive:
        return ()
    kinds = [scores['all'] for scores in (
        validation.model, validation.warm_up, validation.adaptive)]
    columns = ('joint', *(f'{kind} RMSE [{effort_unit(model.robot)}]' for kind in (
        'static', 'warm-up', 'adaptive')), 'static error [%]', 'warm-up [%]',
               'adaptive [%]', 'RMSE less by [%]')
    return tabled('Static, warm-up and adaptive prediction', SLOW, Table(columns, (
        (joint, *(one[joint].rmse for one in kinds),
         *(percent(one[joint].relative_error) for one in kinds),
         percent(1.0 - kinds[2][joint].rmse / kinds[0][joint].rmse)
         if kinds[0][joint].rmse > 0.0 else DASH) for joint in kinds[0])))


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
        for r in model.record.rigid_beside), 'Rigid beside elastic', words=True)
    matters = ', '.join(r.joint for r in model.record.rigid_beside if r.matters)
    conclusion = f'Elasticity matters at {matters}.' if matters else \
        'The rigid model predicts these efforts as well; only the elastic one predicts where ' \
        'the links are, and accelerations of links and motors.'
    return (Section('Elastic joints', text=f'{GEARS} {BESIDE}{conclusion}',
                    tables=(encoders, stiff)),)


def deflection(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about the residual models and the loops, none where there are none."""
    record = model.record.residual
    if record is None:
        return ()
    how = 'Friction from sweeps, links and residual were fitted in turn' \
        if record.loops == 'three' else 'Friction and links were fitted at once'
    text = (f'{how}, {record.rounds} round(s). Root mean squared errors on stretches of '
            'the recordings left out of all fits in turn. A model of the deflection is used only '
            'where it lowers the error by 1 % and by more than chance.')
    errors = Table(('joint', 'friction', '+ links', '+ deflection', 'used', 'remark'), (
        (r.joint, r.friction, r.physics, r.with_residual, (r.kind or 'yes') if r.used else 'no',
         r.note) for r in record.joints), 'Error that is left [N m]', words=True)
    loops = Table(('loop', 'seconds'), (record.seconds or {}).items())
    return (Section('Loops and deflection', text=text, tables=tuple(
        table for table in (errors, loops) if table.rows)),)


def friction(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the friction of every joint, and of motors that turn with several, in words."""
    words = model.torque_model.words
    deviations = dict(zip(model.names, model.std.tolist(), strict=True))
    by_part: dict[str, list[Fact]] = {}
    for block in model.torque_model.blocks:
        for name in block.names if isinstance(block, JointFriction) else ():
            one, std = words[name], deviations.get(name)
            by_part.setdefault(one.part, []).append(Fact(
                one.words, with_deviation(float(model.standard[name]), std),
                one.unit.strip('-'), name))
    sheets = tuple(Sheet(part, tuple(facts)) for part, facts in by_part.items())
    return (Section('Friction of the joints', sheets=sheets, text=(
        'After ±: one standard deviation. Words and names are those of the friction laws, '
        'whose shapes are among the settings in the last chapter.')),) if sheets else ()


def chosen_effects(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section about each effect that errors on distinct motion chose."""
    sections: tuple[Section, ...] = ()
    for key, effect in CHOSEN.items():
        parts = model.structure.chosen.get(key, ())
        rows = [(model.joints[part.joint],
                 model.standard[f'{effect.symbol}{part.joint + 1}'], *effect.shape(part).values())
                for part in parts]
        columns = ('joint', f'{effect.what} [{effect.unit}]', *dict.fromkeys(
            words for part in parts for words in effect.shape(part)))
        sections += tabled(effect.title, effect.about, Table(columns, rows))
    return sections


def method(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the sections that the method of the fit has of its own."""
    return model.record.details.sections(model.method, model.robot.row_names)
