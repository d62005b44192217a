"""Joint by joint: the arm, where its effort goes, and all about one joint behind its name."""

from __future__ import annotations

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Figure, Section
from robot_dynid.dynamics.rigid_body import chain_points, link_poses
from robot_dynid.figures import FROM_ZERO, Spec, axis, line, points
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import curves, effects, parameters
from robot_dynid.report.trust import Errors
from robot_dynid.types import FloatArray
from robot_dynid.validation.effort_parts import CAUSES
from robot_dynid.validation.validate import Validation

#: direction from which the arm is seen, about z from x, and above the floor [rad]
AZIMUTH, ELEVATION = np.radians((30.0, 25.0))
#: parallel projection: x to the lower left, y to the right, z up
VIEW = np.array([[-np.sin(AZIMUTH), np.cos(AZIMUTH), 0.0],
                 [-np.sin(ELEVATION) * np.cos(AZIMUTH), -np.sin(ELEVATION) * np.sin(AZIMUTH),
                  np.cos(ELEVATION)]])
#: length of the axes of a frame over the size of the arm
FRAME_SHARE = 0.09
#: distance of the names from the arm, and the width they take, over the size of the arm
NAMES_APART, NAMES_WIDE = 0.15, 0.75


def overview(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the arm in its pose, and the size of each cause of effort."""
    drawn = [Figure(arm(model), 'The arm halfway through its range of motion',
                    'Dots: frames of the joints; blue lines: their axes; orange: the tip.')]
    if all(t.split is not None for t in validation.traces):
        drawn.append(Figure(causes(validation, model), 'Where the effort goes',
                            'RMS of each cause, divided by that of the effort: the model must '
                            'know the largest best.'))
    return (Section('The arm and its effort', figures=tuple(drawn), beside=True),)


def causes(validation: Validation, model: IdentifiedModel) -> Spec:
    """Return the root mean squares of the parts of the effort of every joint."""
    n, traces = model.robot.n, validation.traces
    whole = _rms(np.concatenate([t.predicted[:, :n] for t in traces]))
    bars = []
    for i, cause in enumerate(CAUSES):
        share = 100.0 * np.divide(
            _rms(np.concatenate([getattr(t.split, cause)[:, :n] for t in traces])), whole,
            out=np.zeros(n), where=whole > 0.0)
        if share.any():
            bars.append(figures.bars(model.joints, share, cause, figures.series(i)))
    return figures.figure(bars, axis(), axis('RMS over that of the effort [%]', FROM_ZERO))


def _rms(values: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def arm(model: IdentifiedModel) -> Spec:
    """Return the chain of the robot with axes and names of its joints, seen from a corner."""
    robot, q = model.robot, parameters.halfway(model)
    chain, poses, tree = chain_points(robot, q)[0], link_poses(robot, q), robot.tree
    origins = np.vstack([np.zeros(3), poses.origins[0]])  # base first
    previous = origins[1 + np.array(tree.parents)]
    links = np.vstack([_strokes(previous, origins[1:]), chain[-2:]]) @ VIEW.T
    moved = [tree.index(joint) for joint in robot.joints]
    reach = FRAME_SHARE * float(np.ptp(chain, axis=0).max()) * np.einsum(
        'jab,jb->ja', poses.rotations[0, moved], tree.axes[moved])
    places = poses.origins[0, moved]
    strokes, frames = _strokes(places - reach, places + reach) @ VIEW.T, places @ VIEW.T
    seen = np.vstack([links[np.isfinite(links).all(axis=1)], frames])
    drawn = [line(links[:, 0], links[:, 1], 'links', figures.MEASURED, 6.0, {'hoverinfo': 'skip'}),
             line(strokes[:, 0], strokes[:, 1], 'axes of the joints', figures.MODEL, 3.0,
                  {'hoverinfo': 'skip'}),
             points(frames[:, 0], frames[:, 1], 'frames of the joints', figures.INK,
                    {'hoverinfo': 'skip'}),
             points(links[-1:, 0], links[-1:, 1], 'tip', figures.CONTROL)]
    low, high = seen.min(axis=0), seen.max(axis=0)
    size = float((high - low).max())
    order = np.argsort(frames[:, 1], kind='stable')
    height = np.empty(robot.n)  # of the names, in a column beside the arm
    height[order] = np.linspace(low[1], high[1], robot.n)
    names = [{'text': joint, 'x': float(x), 'y': float(y), 'axref': 'x', 'ayref': 'y',
              'ax': float(high[0] + NAMES_APART * size), 'ay': float(up), 'xanchor': 'left',
              'showarrow': True, 'arrowhead': 0, 'arrowcolor': figures.SOFT}
             for joint, (x, y), up in zip(robot.joints, frames, height, strict=True)]
    hidden = {'visible': False, 'title': {'text': 'seen from a corner [m]'}}
    return figures.figure(
        [{**one, 'showlegend': False} for one in drawn],
        axis(more={**hidden, 'range': [float(low[0] - NAMES_APART * size),
                                       float(high[0] + NAMES_WIDE * size)]}),
        axis(more={**hidden, 'scaleanchor': 'x'}),
        {'hovermode': 'closest', 'annotations': names})


def _strokes(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """Return lines (3 k, 3) from ``starts`` to ``ends`` (k, 3), NaN between them."""
    return np.stack([starts, ends, np.full_like(ends, np.nan)], axis=1).reshape(-1, 3)


def by_joint(
    validation: Validation, model: IdentifiedModel, errors: Errors
) -> tuple[Section, ...]:
    """Return a folded section about each joint: curves, and what is known of joint and link."""
    heads, cells = errors.cells
    sheets = parameters.sheets(model)
    drawn = [of(validation, model) for of in (
        curves.predictions, curves.split, curves.simulated, curves.friction_data, curves.scatter,
        effects.pictures)]
    return tuple(Section(
        joint, folded=True, beside=True, sheets=sheets[j],
        brief=', '.join(f'{head.removesuffix(" [%]")} {cell} %'
                        for head, cell in zip(heads, cells.get(joint, ()))),
        figures=tuple(figure for figures_of in drawn for figure in figures_of.get(j, ())))
        for j, joint in enumerate(model.joints))
