"""Detect implausible inertials and states beyond limits, such as numbers not in SI units.

A link is judged by the density of the ellipsoid with its mass and inertia: a mass in g exceeds the
density of metals, an inertia in kg mm^2 falls below that of air.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_dynid.robot.inertia import com_from_parameters, pseudo_inertia
from robot_dynid.robot.model import PRISMATIC, Link, RobotModel
from robot_dynid.types import FloatArray

#: densities [kg/m^3] of links: air has 1.2, osmium 22 600. Simplified inertias of public
#: descriptions reach from 0.06 to 24 000; a wrong unit changes them by a factor of 1000 at least
THINNEST, DENSEST = 0.02, 1e5
#: ellipsoids are at least so thick relative to their length: inertias of rods have no thickness
THICKNESS = 0.1
#: lengths of the robot, or metres if it is shorter, that a centre of mass may be from its frame
OUTSIDE, LENGTH = 3.0, 1.0
#: limits of the radius of gyration [robot lengths], and of the mass over the cube of the length
WIDEST, HEAVIEST = 1.5, 1000.0  # , kg/m^3
#: links with less than this share of the robot's mass, and of its mass times length squared, are
#: ignored
SHARE = 1e-3
#: wrong units, with the factors from them to kg and kg m^2
UNITS = {
    'inertia looks like g m^2': (1.0, 1e-3),
    'inertia looks like kg cm^2': (1.0, 1e-4),
    'inertia looks like kg mm^2': (1.0, 1e-6),
    'inertia looks like g cm^2': (1.0, 1e-7),
    'inertia looks like g mm^2': (1.0, 1e-9),
    'mass looks like g': (1e-3, 1.0),
    'mass and inertia look like g and g m^2': (1e-3, 1e-3),
    'mass and inertia look like g and kg mm^2': (1e-3, 1e-6),
    'mass and inertia look like g and g cm^2': (1e-3, 1e-7),
    'mass and inertia look like g and g mm^2': (1e-3, 1e-9),
}
#: usual density [kg/m^3] of links, their radius of gyration over the length of the robot, and
#: their mass over its cube [kg/m^3]
USUAL = np.array([500.0, 0.1, 3.0])
PLACEHOLDER = 'mass or inertia is a placeholder, write those of the link'
#: decades of the density from the usual one, up to which a unit explains it
EXPLAINED = 2.0
#: share of its trace by which an inertia may break the triangle inequality and still have a size
BROKEN = 0.1
#: what a link's inertia is about shows where mass times squared distance of its centre is this
#: share of the trace; so many links must show the same
OFFSET, AGREEING = 0.2, 3
#: rad (m): zeros of encoders, and motion past a soft limit, differ by less from the description
MARGIN = 0.1
#: times the limit: no drive is so much faster than it is said to be; degrees are 57 times radians
FASTER = 10.0
#: by type: unit, the one that is given instead by mistake, and how many of that make one
MISTAKES = (('rad', 'degrees', 180.0 / np.pi), ('m', 'mm', 1000.0))


class ImplausibleInertial(NamedTuple):
    """A link whose inertial is wrong, and the reason as a sentence.

    ``body`` is the index of the joint that moves it. ``misleading``: efforts computed with it must
    not be compared with a recording; otherwise its weight may be right and its inertia of a usual
    size.
    """

    link: str
    text: str
    body: int
    misleading: bool


class _Body(NamedTuple):
    """A moving link with all links fixed to it.

    ``mass`` [kg], ``radius`` of gyration [m], ``density`` [kg/m^3] of its ellipsoid; ``round``:
    equal moments of inertia about all axes, as in placeholders.
    """

    joint: int
    mass: float
    radius: float
    density: float
    round: bool

    def wide(self, length: float) -> bool:
        """Return True if its inertia is too large for its mass, on a robot of ``length`` [m]."""
        return self.density < THINNEST or self.radius > WIDEST * length

    def heavy(self, length: float) -> bool:
        """Return True if its mass is too large, on a robot of ``length`` [m]."""
        return self.density > DENSEST or self.mass > HEAVIEST * length**3


def implausible_inertials(robot: RobotModel) -> tuple[ImplausibleInertial, ...]:
    """Return the moving links with implausible inertials.

    Links fixed to a link are judged together with it, because a camera may have no inertia.
    """
    robot = robot.tree
    length = reach(robot)
    least = max(length, LENGTH)
    far = {link: distance for link in _stated(robot) if (
        distance := float(np.linalg.norm(link.parameters[1:4])) / float(link.parameters[0])
    ) > OUTSIDE * least}
    wrong = [ImplausibleInertial(
        link.name, f'its centre of mass is {distance:.3g} m from its frame, on a robot of '
        f'{length:.2g} m; it looks like mm or cm, write m', link.body, True)
        for link, distance in far.items()]
    bodies = [body for body in _bodies(robot, least)
              if body.joint not in {link.body for link in far}]
    wide = [body for body in bodies if body.wide(least)]
    heavy = [body for body in bodies if not body.wide(least) and body.heavy(least)]
    for group in (wide, heavy):
        # a payload described as a point has too little inertia, in the right unit
        alone = group is heavy and 2 * len(heavy) <= len(bodies) and all(
            body.mass <= HEAVIEST * least**3 for body in heavy)
        unit = '' if alone else _unit(group, least)
        wrong += [ImplausibleInertial(
            _heaviest(robot, body.joint), f'mass of {body.mass:.4g} kg with a radius of gyration '
            f'of {body.radius:.3g} m on a robot of {length:.2g} m; {unit or PLACEHOLDER}',
            body.joint, group is wide or unit != '' or body.mass > HEAVIEST * least**3)
            for body in group]
    return (*wrong, *_impossible(robot), *([] if wrong else _about_frames(robot)))


def described(robot: RobotModel) -> NDArray[np.bool_]:
    """Return a mask (n,) of the joints whose nominal links can be compared with recordings.

    Their links have mass and no misleading inertial, see `ImplausibleInertial`.
    """
    misleading = [one.body for one in implausible_inertials(robot) if one.misleading]
    return np.asarray((robot.moved @ robot.tree.nominal[:, 0] > 0.0)
                      & ~robot.moved[:, misleading].any(axis=1))


def without_inertials(robot: RobotModel) -> tuple[str, ...]:
    """Return a sentence about moving links without mass in the description, if any."""
    tree = robot.tree
    massless = [name for name, mass in zip(tree.bodies, tree.nominal[:, 0]) if not mass > 0.0]
    if not massless:
        return ()
    if len(massless) == tree.n:
        return ('the description of the robot has no inertials: nothing is compared with nominal '
                'links',)
    return (f'no inertial in the description: {", ".join(massless)}; nominal links lack their '
            'mass',)


def reach(robot: RobotModel) -> float:
    """Return the length [m] of the longest chain of links, including prismatic travel."""
    robot = robot.tree
    travel = np.where(robot.types == PRISMATIC, robot.limits.upper - robot.limits.lower, 0.0)
    along = np.linalg.norm(robot.translations, axis=1) + np.nan_to_num(travel, posinf=0.0)
    for j, parent in enumerate(robot.parents):
        along[j] += along[parent] if parent >= 0 else 0.0
    return float(max([*along, *(along[link.body] + np.linalg.norm(link.placement[:3, 3])
                                for link in robot.links)]))


def _bodies(robot: RobotModel, length: float) -> Iterator[_Body]:
    """Yield the moving links that matter on a robot of ``length`` [m] and have a definite size."""
    masses, traces = robot.nominal[:, 0], robot.nominal[:, [4, 6, 9]].sum(axis=1)
    least = SHARE * masses.sum()
    counts = (masses > least) | (traces > least * length**2)
    for j in np.flatnonzero(counts & (masses > 0.0)).tolist():
        mass, _, inertia = com_from_parameters(robot.nominal[j])
        moments = np.linalg.eigvalsh(inertia)
        second = 0.5 * moments.sum() - moments
        if second[2] < -BROKEN * moments.sum():
            continue
        axes = np.sqrt(5.0 / mass * np.maximum(second, 0.0))
        volume = 4.0 / 3.0 * np.pi * float(np.prod(np.maximum(axes, THICKNESS * axes.max())))
        yield _Body(j, mass, float(np.sqrt(max(moments[2], 0.0) / mass)),
                    mass / volume if volume else np.inf,
                    bool(np.ptp(moments) < 1e-6 * moments[2]))


def _heaviest(robot: RobotModel, joint: int) -> str:
    """Return the link with the largest inertia, or mass, of a body."""
    members = [link for link in robot.links if link.body == joint and link.has_inertial]
    return max(members, key=lambda link: (
        float(link.parameters[[4, 6, 9]].sum()), float(link.parameters[0]))).name \
        if members else robot.bodies[joint]


def _unit(bodies: Sequence[_Body], length: float) -> str:
    """Return the unit that explains implausible links, as part of a sentence, or ''."""
    if all(body.round and body.wide(length) for body in bodies):
        return ''
    sizes = [[body.density, body.radius / length, body.mass / length**3] for body in bodies]
    median = np.median(np.log10(np.clip(sizes, 1e-99, 1e99) / USUAL), axis=0)
    off = {name: median + np.log10([mass * (mass / inertia)**1.5, (inertia / mass)**0.5, mass])
           for name, (mass, inertia) in UNITS.items()}
    best = min(off, key=lambda name: float(np.sum(off[name]**2)))
    return f'{best}, write kg and kg m^2' if abs(off[best][0]) < EXPLAINED else ''


def _impossible(robot: RobotModel) -> Iterator[ImplausibleInertial]:
    """Yield the links whose moments of inertia no mass distribution has."""
    for link in _stated(robot):
        least = float(np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0])
        trace = float(np.trace(com_from_parameters(link.parameters)[2]))
        if least < -1e-9 * max(1.0, float(link.parameters[0])):
            yield ImplausibleInertial(
                link.name, 'its inertia is physically impossible (smallest eigenvalue of the '
                f'pseudo-inertia {least:.3g}); correct its moments', link.body,
                least < -BROKEN * trace)


def _about_frames(robot: RobotModel) -> list[ImplausibleInertial]:
    """Return the links whose inertias are probably about their frame, if all agree.

    Subtracting the parallel-axis term once more leaves a valid body, which for other inertias of
    long links happens by chance only.
    """
    links = []
    for link in _stated(robot):
        mass, com, inertia = com_from_parameters(link.parameters)
        trace, square = float(np.trace(inertia)), float(com @ com)
        if mass * square > OFFSET * trace:
            share = mass * (square * np.eye(3) - np.outer(com, com))
            moments = np.linalg.eigvalsh(inertia - share)
            if 0.5 * moments.sum() - moments[2] < -1e-3 * trace:
                return []
            links.append(link)
    return [ImplausibleInertial(
        link.name, 'its inertia looks taken about the frame of the link; write it about the '
        'centre of mass', link.body, False) for link in links] if len(links) >= AGREEING else []


def _stated(robot: RobotModel) -> list[Link]:
    return [link for link in robot.links if link.has_inertial and link.parameters[0] > 0.0]


def beyond_limits(
    robot: RobotModel, position: FloatArray, velocity: FloatArray
) -> tuple[str, ...]:
    """Return sentences on states (K, n) beyond the limits, with remedies.

    Positions beyond by more than MARGIN, velocities more than FASTER times the limit; for the
    first such joint the worst state. States that are not finite are ignored.
    """
    sentences = []
    limits = robot.limits
    fastest = np.where(limits.velocity > 0.0, FASTER * limits.velocity, np.nan)
    for what, per, values, low, high, margin in (
            ('position', '', position, limits.lower, limits.upper, MARGIN),
            ('velocity', '/s', velocity, -fastest, fastest, 0.0)):
        excess = np.fmax(low - values, values - high)
        excess[~np.isfinite(excess)] = 0.0
        joints = np.flatnonzero((excess > margin).any(axis=0))
        if not len(joints):
            continue
        j = int(joints[0])
        state = int(np.argmax(excess[:, j]))
        value, ends = float(values[state, j]), (float(low[j]), float(high[j]))
        unit, other, factor = MISTAKES[int(robot.types[j] == PRISMATIC)]
        limit = ' to '.join(f'{end:.4g}' for end in ends) if what == 'position' else \
            f'{limits.velocity[j]:.4g}'
        converted = value / factor
        remedy = (f'if these are {other}{per}, give {converted:.4g} {unit}{per}'
                  if ends[0] - margin <= converted <= ends[1] + margin else
                  f'give {unit}{per} within the limits')
        names = ', '.join(robot.joints[k] for k in joints[1:])
        others = f' (beyond theirs too: {names})' if names else ''
        sentences.append(f'{what} of {robot.joints[j]} is {value:.4g} {unit}{per} in state '
                         f'{state}, its limit is {limit} {unit}{per}{others}: {remedy}')
    return tuple(sentences)
