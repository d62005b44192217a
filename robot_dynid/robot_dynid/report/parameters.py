"""Parameters: the links on the robot, what is known of each, base parameters, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    Card,
    Cell,
    Fact,
    Figure,
    Row,
    Section,
    Sheet,
    Table,
    counted,
    number,
    percent,
    with_deviation,
)
from robot_dynid.dynamics.rigid_body import chain_points, link_poses
from robot_dynid.effects import JointFriction
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.figures import Spec, axis, line
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.parameter_card import NEAR_ZERO, ParameterRow, parameter_card
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.identified.uses import link_table
from robot_dynid.reduction.identifiability import (
    CATEGORIES,
    DEPENDENT,
    INDEPENDENT,
    UNIDENTIFIABLE,
    lifted_by,
    with_advice,
)
from robot_dynid.reduction.numeric import COMBINED, MEASURED, PRIOR, kind_of
from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS
from robot_dynid.robot.inertia import com_from_parameters
from robot_dynid.types import FloatArray

WELL, FAIRLY = 0.1, 0.3  # relative standard deviations
#: units of base parameters that are drawn beside the nominal ones
COMPARED = ('kg', 'kg m', 'kg m^2')
#: longest drawn half of an interval, over the largest value beside it
ERROR_BAR = 2.0
STRONG_CORRELATION, PAIRS = 0.9, 8  # correlations that are named, at most so many
#: points of a drawn outline
OUTLINE_POINTS = 61
AXES = 'xyz'
#: units of standard parameters that are no moments of inertia
UNITS = {'m': 'kg', 'mx': 'kg m', 'my': 'kg m', 'mz': 'kg m'}
#: origin of a parameter that no effort shows, where no prior decided it
UNSEEN = 'not seen'


def links(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return identified beside nominal parameters, the links on the robot, and their card."""
    card = parameter_card(model)
    bodies = model.feasible_links
    active = model.record.details.active_constraints
    if bodies is None:
        text = ('Efforts determine combinations of parameters only. For the mass, centre and '
                'inertia of every link, identify with --method feasible, which adds a prior.')
    else:
        text = ('Every link is a physical body. Ellipsoids have the mass, centre and inertia of '
                'the links. Measured: the efforts determine the parameter; consistent with zero: '
                'its 95 % interval holds zero; combination: determined together with others '
                'only; prior: decided by the nominal robot. The last two may be far off although '
                'the efforts are right. '
                + (f'At a bound: {", ".join(active)}.' if active else ''))
    drawn = () if bodies is None else tuple(
        Figure(on_robot(model, bodies, side), f'Links on the robot, {words}',
               'Filled: identified; dotted (click on the legend): nominal.')
        for words, side in (('from the side', 0), ('from the front', 1)))
    tables = tuple(table for table in (_link_table(model), _card(card, bodies is not None))
                   if table.rows)
    return (*compared(model), Section('Links', text=text, figures=drawn, beside=True,
                                      tables=tables, folded=bodies is None))


def compared(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return inertial base parameters beside the nominal ones, link by link."""
    words, half, drawn = model.torque_model.words, half_intervals(model), []
    for j, body in enumerate(model.robot.tree.bodies):
        rows = [i for i, name in enumerate(model.names)
                if name in words and words[name].unit in COMPARED and words[name].part in (
                    body, model.robot.joints[min(j, model.robot.n - 1)])]
        if rows:
            drawn.append(Figure(_compared(model, rows, half), body))
    return (Section(
        'Identified and nominal parameters', beside=True, figures=tuple(drawn),
        text='Each base parameter has the name of the first parameter in its combination. Error '
             'bars: 95 % intervals. If an orange bar ends outside the error bar of the blue one, '
             'the URDF is wrong there, or the parameter contains friction.',
        legend=(('identified', 'model'), ('nominal', 'control'))),) if drawn else ()


def _compared(model: IdentifiedModel, rows: Sequence[int], half: FloatArray) -> Spec:
    """Return bars of the base parameters ``rows`` by unit, first moments left of inertias."""
    words, curves, layout = model.torque_model.words, [], {}
    units = [unit for unit in COMPARED if any(
        words[model.names[i]].unit == unit for i in rows)]
    for pane, unit in enumerate(units):
        chosen = [i for i in rows if words[model.names[i]].unit == unit]
        suffix = '' if pane == 0 else str(pane + 1)
        for values, name, colour in ((model.values, 'identified', figures.MODEL),
                                     (model.control, 'nominal', figures.CONTROL)):
            bars = figures.bars([model.names[i] for i in chosen], values[chosen], name, colour)
            curves.append({**bars, 'showlegend': False, 'xaxis': f'x{suffix}',
                           'yaxis': f'y{suffix}', **({} if name == 'nominal' else {'error_y': {
                               'type': 'data',
                               'array': figures.packed(np.minimum(
                                   half[chosen], ERROR_BAR * np.abs(values[chosen]).max())),
                               'color': figures.INK}})})
        share = 1.0 / len(units)
        layout[f'xaxis{suffix}'] = axis(more={
            'domain': [pane * share + (0.09 if pane else 0.0), (pane + 1) * share],
            'anchor': f'y{suffix}', 'tickfont': {'size': 10}})
        layout[f'yaxis{suffix}'] = axis(unit.replace('^2', '²'), {'anchor': f'x{suffix}'})
    return {'data': curves, 'layout': {**layout, **figures.SMALL, 'height': 210,
                                       'hovermode': 'closest'}}


def _link_table(model: IdentifiedModel) -> Table:
    return Table(
        ('link', 'mass [kg]', 'nominal [kg]', 'centre of mass [m]', 'least eigenvalue',
         'decided by the prior', 'only in combination'), (
            (r.link, r.mass, r.nominal_mass, ' '.join(number(c, 3) for c in r.centre),
             number(r.smallest_eigenvalue, 2), ', '.join(r.from_prior) or 'none',
             ', '.join(r.combined) or 'none') for r in link_table(model)),
        'Links beside the nominal ones', words=True, folded=True)


def _card(card: Sequence[ParameterRow], complete: bool) -> Table:
    """Return the parameter card: where every standard parameter comes from.

    Without ``complete`` links no prior decided: values are those of what is measured.
    """
    return Table(
        ('part', 'parameter', 'value', 'origin', 'std', 'decided by the prior',
         'combinations that are determined', 'measurement that would determine it'), (
            (r.part, r.name, r.value if complete or r.deviation is not None else '',
             r.origin if complete or r.origin != PRIOR else UNSEEN,
             '' if r.deviation is None else number(r.deviation, 2),
             '' if r.share is None else f'{percent(r.share)} %',
             '; '.join(r.combinations), r.measurement) for r in card),
        'Parameter card: where every standard parameter comes from', words=True, folded=True)


def sheets(model: IdentifiedModel) -> tuple[tuple[Sheet, ...], ...]:
    """Return the sheets of each joint: its link, and the parameters of its friction."""
    card, words = parameter_card(model), model.torque_model.words
    deviations = dict(zip(model.names, model.std.tolist(), strict=True))
    by_part: dict[str, list[Fact]] = {}
    for block in model.torque_model.blocks:
        for name in block.names if isinstance(block, JointFriction) else ():
            one, std = words[name], deviations.get(name)
            by_part.setdefault(one.part, []).append(Fact(
                one.words, with_deviation(float(model.standard[name]), std),
                one.unit.strip('-'), name))
    tree = model.robot.tree
    bodies = [tree.index(joint) for joint in model.joints]
    return tuple((
        _sheet(model, bodies[j], card),
        *(Sheet(f'friction of {part}' if part == joint else part, tuple(facts),
                'value ± standard deviation')
          for part, facts in by_part.items()
          if part == joint or part.startswith(f'motor of {joint} ')))
        for j, joint in enumerate(model.joints))


def _sheet(model: IdentifiedModel, j: int, card: Sequence[ParameterRow]) -> Sheet:
    """Return mass, centre and inertia of one link with their origins, as far as known."""
    by_kind = {kind_of(row.name): row for row in card
               if kind_of(row.name) and row.part == model.robot.tree.bodies[j]
               and row.name.endswith(str(j + 1))}
    counts = {origin: sum(row.origin == origin for row in by_kind.values())
              for origin in (MEASURED, NEAR_ZERO, COMBINED, PRIOR)}
    bodies = model.feasible_links
    text = ', '.join(f'{count} {words}' for count, words in zip(counts.values(), (
        MEASURED, NEAR_ZERO, COMBINED, UNSEEN if bodies is None else 'from the prior')) if count)
    if bodies is None:
        facts = tuple(Fact(row.name, text, UNITS.get(kind, 'kg m²'), row.origin)
                      for kind, row in by_kind.items() if row.deviation is not None
                      for text in (with_deviation(row.value, row.deviation),))
        return Sheet(model.robot.tree.bodies[j], facts, text)
    mass, centre, inertia = com_from_parameters(bodies[j])
    nominal = float(model.robot.tree.nominal[j, 0])
    origins = [_origin(by_kind, kinds) for kinds in (
        ('m',), ('m', 'mx', 'my', 'mz'),
        ('Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz'))]
    moments = np.sort(np.linalg.eigvalsh(inertia))
    return Sheet(model.robot.tree.bodies[j], (
        Fact('mass', number(mass, 3), 'kg', origins[0],
             f'nominal {number(nominal, 3)} kg' if nominal else 'no mass in the description'),
        Fact('centre of mass', ', '.join(f'{1e3 * c:.0f}' for c in centre), 'mm', origins[1],
             'x, y, z in the frame of the link'),
        Fact('inertia', ', '.join(number(m, 2) for m in moments), 'kg m²', origins[2],
             'principal moments about the centre of mass')), text)


def _origin(own: Mapping[str, ParameterRow], kinds: Sequence[str]) -> str:
    """Return the origin of what several parameters make: that of the least known of them."""
    origins = {row.origin for kind, row in own.items() if kind in kinds}
    return 'prior' if PRIOR in origins else 'combination' if COMBINED in origins else \
        MEASURED if MEASURED in origins else NEAR_ZERO


def halfway(model: IdentifiedModel) -> FloatArray:
    """Return the middle (1, n) of the range of motion, slightly bent where it is not known."""
    ranges = model.trained.quantities.get('position')
    return (np.full(model.robot.n, 0.3) if ranges is None else ranges.mean(axis=1))[None]


def on_robot(model: IdentifiedModel, bodies: FloatArray, side: int) -> Spec:
    """Return the robot halfway through its motion with ellipsoids of ``bodies`` (n, 10).

    Seen along a horizontal axis of the base, so that the axis ``side`` (0: x, 1: y) goes across.
    """
    robot, q = model.robot, halfway(model)
    chain, poses = chain_points(robot, q)[0], link_poses(robot, q)
    seen = [side, 2]
    curves: list[Spec] = []
    for nominal, links in ((True, robot.tree.nominal), (False, bodies)):
        for j in range(robot.tree.n):
            if not links[j, 0] > 0.0:
                continue
            around = outline(links[j], (poses.rotations[0, j], poses.origins[0, j]), seen)
            colour = figures.SOFT if nominal else figures.series(j)
            more: Spec = {'legendgroup': 'nominal', 'visible': 'legendonly',
                          'line': {'dash': 'dot'}, 'showlegend': not curves} if nominal else {
                'fill': 'toself', 'fillcolor': f'{colour}/30'}
            name = 'nominal' if nominal else robot.tree.bodies[j]
            curves.append(line(around[0], around[1], name, colour,
                               more={'hoverinfo': 'name', **more}))
    curves.append(line(chain[:, side], chain[:, 2], 'joints', figures.INK, more={
        'hoverinfo': 'skip', 'mode': 'lines+markers', 'marker': {'color': figures.INK}}))
    return figures.figure(curves, axis(f'{AXES[side]} of the base [m]'),
                          axis('z of the base [m]', {'scaleanchor': 'x'}),
                          {'height': 460, 'hovermode': 'closest'})


def outline(
    link: FloatArray, pose: tuple[FloatArray, FloatArray], seen: Sequence[int]
) -> FloatArray:
    """Return the outline (2, N) of a link (10,) at a ``pose``, on the two axes ``seen``.

    The second moments of a body about its centre are tr(I) / 2 - I, those of an ellipsoid of even
    density m a^2 / 5; its shadow is the ellipse of the two rows and columns that are seen.
    """
    rotation, origin = pose
    mass, centre, inertia = com_from_parameters(link)
    moments = rotation @ (0.5 * np.trace(inertia) * np.eye(3) - inertia) @ rotation.T
    values, vectors = np.linalg.eigh(5.0 * moments[np.ix_(seen, seen)] / mass)
    angle = np.linspace(0.0, 2.0 * np.pi, OUTLINE_POINTS)
    circle = np.sqrt(np.maximum(values, 0.0))[:, None] * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray((origin + rotation @ centre)[list(seen), None] + vectors @ circle)


def base_parameters(model: IdentifiedModel) -> Section:
    """Return every base parameter with its deviation, as a table and as a forest plot."""
    rows, words = [], model.torque_model.words
    with np.errstate(divide='ignore', invalid='ignore'):
        shares = model.std / np.abs(model.values)
    for i, (label, relative) in enumerate(zip(model.labels, shares.tolist())):
        mark = 'poor' if relative > FAIRLY else 'fair' if relative > WELL else ''
        meaning = words.get(model.names[i])
        cells = (Cell(model.names[i], note=meaning.sentence if meaning else ''),
                 float(model.values[i]), number(float(model.std[i]), 2),
                 meaning.unit if meaning else '', percent(relative), label)
        rows.append(Row(cells, mark))
    columns = ('parameter', 'value', 'std', 'unit', 'std / value [%]', 'combination')
    text = ('Combinations of standard parameters that the efforts determine, in SI units. '
            'Standard deviations are computed from stretches of time, so they hold for correlated '
            'residuals. 95 % interval: value ± '
            f'{number(interval_factor(model.record.degrees_of_freedom or np.inf))} std. '
            f'Spread of friction between recordings: {model.record.spread_sentence}.')
    return Section(f'All {len(model.names)} base parameters', text=text, folded=True,
                   tables=(Table(columns, tuple(rows), words=True),))


def correlations(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the correlations of the base parameters, none where they are not known."""
    factor = model.correlation_factor
    if factor is None:
        return ()
    matrix = factor.T @ factor
    sure = np.flatnonzero(np.isfinite(model.std) & (np.diag(matrix) > 0.0))
    names, matrix = [model.names[int(i)] for i in sure], matrix[np.ix_(sure, sure)]
    pairs = [(float(matrix[i, k]), names[i], names[k]) for i, k in zip(
        *np.triu_indices(len(names), 1)) if abs(matrix[i, k]) > STRONG_CORRELATION]
    pairs.sort(key=lambda pair: -abs(pair[0]))
    strongest = ', '.join(f'{a} and {b} ({r:+.2f})' for r, a, b in pairs[:PAIRS])
    text = ('Errors of the two parameters of a dark cell compensate each other; a motion that '
            'excites them differently separates them. '
            + (f'Strongest: {strongest}{" and more" if len(pairs) > PAIRS else ""}.' if pairs else
               f'No pair is correlated by more than {STRONG_CORRELATION:g}.'))
    small = {'showgrid': False, 'dtick': 1}
    spec = {'data': [{
        'type': 'heatmap', 'z': [[round(v, 3) for v in row] for row in matrix.tolist()],
        'x': names, 'y': names, 'zmin': -1, 'zmax': 1, 'hoverongaps': False,
        'colorscale': [[0.0, '@series5'], [0.5, '@paper'], [1.0, '@series0']],
        'colorbar': {**figures.COLOUR_BAR, 'tickvals': [-1, 0, 1]},
        'hovertemplate': '%{x}, %{y}: %{z:.2f}<extra></extra>'}],
        'layout': {'height': 150 + 15 * len(names), 'hovermode': 'closest',
                   'xaxis': axis(more=small),
                   'yaxis': axis(more={**small, 'autorange': 'reversed'})}}
    return (Section('Correlation map of the base parameters', text=text, folded=True,
                    brief=f'{counted(len(pairs), "pair")} above {STRONG_CORRELATION:g}',
                    figures=(Figure(spec),)),)


CATEGORIES_TEXT = (
    'Unidentifiable parameters affect no measured effort. Linearly dependent ones are determined '
    'only as part of base parameters. Independently identifiable ones are determined by '
    'themselves, given a motion that excites them. For other sensor configurations, their '
    'equations were added to those of the robot and reduced again.')


def categories(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with the category of every standard parameter."""
    torque = model.torque_model
    advice = with_advice(torque.robot, torque.blocks, model.reduction)
    found = [one.category for one in advice.values()]
    tables = (
        Table(('parameter', 'category', 'in', 'sensor configuration'), (
            Row((name, one.category, ', '.join(one.combinations), one.advice),
                {UNIDENTIFIABLE: 'poor', DEPENDENT: 'fair'}.get(one.category, ''))
            for name, one in advice.items()), words=True),
        Table(('sensor configuration', 'identifiable alone', 'in combinations'), (
            (SENSOR_CONFIGURATIONS[key].words, ', '.join(lifted[INDEPENDENT]) or 'none',
             ', '.join(lifted[DEPENDENT]) or 'none') for key, lifted in lifted_by(advice).items()),
            'Parameters identifiable with other sensor configurations', words=True))
    cards = tuple(Card(category, str(found.count(category))) for category in CATEGORIES)
    return (Section('What can be identified', text=CATEGORIES_TEXT, cards=cards, tables=tables,
                    folded=True),)
