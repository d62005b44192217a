"""Characteristics of an arm: the numbers that are compared between arms and over time.

Coefficients of a friction law trade with each other, so friction is compared by scales: by which
share the viscous friction of an axis, or its dry friction, is off the values of the fleet, with
its other coefficients in proportion (as the spread between recordings is estimated), and by what
both add up to. Gears of elastic joints are compared by shares, too; links and rotors by their base
parameters, and by the mass on the last link that their changes add up to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia, Springs
from robot_dynid.effects.effect import ParameterWords
from robot_dynid.effects.gears import STIFFNESS
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    solve,
    solve_rows,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import FrictionScales, friction_scales
from robot_dynid.friction.law import DRY, OFFSET, VISCOUS
from robot_dynid.types import FloatArray

FRICTION, LOAD, LINK, ROTOR, GEAR, GEAR_STIFFNESS, OTHER = (
    'friction', 'load', 'link', 'rotor', 'gear', 'stiffness', 'other')
#: kinds that are shares of a value of the fleet, and spread alike on all axes
RELATIVE = (FRICTION, VISCOUS, DRY, OFFSET, GEAR, GEAR_STIFFNESS)
#: a characteristic is determined where one deviation of it is no larger: friction and gears by
#: their own size, others by the effort they make in a motion at 1 rad/s beside what was measured
KNOWN = 1.0
#: part of the row of a pseudo-inverse that the directions must span
SPANNED = 1e-6
#: kinds that are judged together
GROUPS = {VISCOUS: FRICTION, DRY: FRICTION, GEAR_STIFFNESS: GEAR}
WORDS = {FRICTION: 'friction, viscous and dry together', VISCOUS: 'viscous friction',
         DRY: 'dry friction', OFFSET: 'offset, relative to dry friction'}


@dataclass(frozen=True)
class Characteristic:
    """One number of an arm: ``name`` for files, ``part`` it belongs to, in ``words`` and ``unit``.

    ``kind`` is one of friction (viscous, dry, offset), LOAD, LINK, ROTOR, GEAR, GEAR_STIFFNESS,
    OTHER. Those of RELATIVE kinds are shares beyond the value of the fleet, without unit.
    """

    name: str
    part: str
    kind: str
    words: str
    unit: str

    @property
    def relative(self) -> bool:
        """Whether it is a share."""
        return self.kind in RELATIVE

    @property
    def group(self) -> str:
        """The kind it is judged with: friction, gear, or its kind by itself."""
        return GROUPS.get(self.kind, self.kind)


@dataclass(frozen=True, eq=False)
class Reading:
    """The characteristics as one session has them.

    ``values`` (k,) with ``covariance`` (k, k) within the session, if residuals were white;
    ``colour`` (k,) is how many times larger the variances are by stretches of the session left
    out; ``known`` (k,) where the session determines them.
    """

    values: FloatArray
    covariance: FloatArray
    colour: FloatArray
    known: NDArray[np.bool_]


#: values (m,), covariances (m, m) by white residuals and by their scatter, mask (m,) of the known
Fitted = tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Characteristics:
    """The k characteristics of a fleet, and how information is read as such.

    Base parameters are ``reference`` (b,) + ``directions`` (b, p) @ values of the first p; the
    others are ``sums`` (k - p, p) of those. ``weights`` (n,) are those of the joints, the same
    for all readings; ``size`` (n,) [N m] of the measured effort.
    """

    model: TorqueModel
    all: tuple[Characteristic, ...]
    reference: FloatArray
    directions: FloatArray
    sums: FloatArray
    weights: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, fleet: Information) -> Characteristics:
        """Return those about the fit to the information of the whole ``fleet``."""
        weights = joint_weights(fleet)
        reference = solve(fleet, weights).values
        scales = friction_scales(model, reference)
        found = list(_base(model, reference))
        directions = np.array([direction for _, direction in found]).reshape(-1, len(reference)).T
        own = tuple(one for one, _ in found)
        if scales is not None:
            directions = np.hstack([scales.directions, directions])
            own = (*_friction(model, scales), *own)
        own_model = cls(model, own, reference, directions, np.zeros((0, len(own))), weights,
                        fleet.size())
        sums = [*own_model._friction_sums(fleet), *own_model._loads(fleet)]
        return replace(own_model, all=own + tuple(one for one, _ in sums),
                       sums=np.array([row for _, row in sums]).reshape(-1, len(own)))

    @property
    def own(self) -> int:
        """The number of those that are no sums of others."""
        return int(self.directions.shape[1])

    def base(self, values: FloatArray) -> FloatArray:
        """Return the base parameters (b,) of characteristics (p,)."""
        return np.asarray(self.reference + self.directions @ values)

    @cached_property
    def daily(self) -> NDArray[np.bool_]:
        """Mask (k,) of those that differ from day to day by themselves: friction; links do not."""
        return np.array([one.kind in WORDS for one in self.all])

    def reading(self, information: Information) -> Reading:
        """Return the characteristics as the information of a session has them."""
        return self._with_sums(self._fitted(information, np.ones(self.own, dtype=bool)))

    def beside(self, information: Information, links: FloatArray, apart: Reading) -> Reading:
        """Return the reading with friction beside the links (p,) of the arm from all its sessions.

        One short recording by itself, as of ``apart``, hardly tells one from the other.
        """
        daily = self.daily[:self.own]
        own = self._fitted(information, daily, np.where(daily, 0.0, links))
        block = np.ix_(daily, daily)
        values, known = apart.values[:self.own].copy(), apart.known[:self.own].copy()
        values[daily], known[daily] = own[0], own[3]
        scale = np.sqrt(apart.colour[:self.own])
        white = apart.covariance[:self.own, :self.own]
        both = [np.where(daily[:, None] != daily, 0.0, one)
                for one in (white, white * np.outer(scale, scale))]
        both[0][block], both[1][block] = own[1:3]
        return self._with_sums((values, both[0], both[1], known))

    def _with_sums(self, own: Fitted) -> Reading:
        values, *both, known = own
        combined, used = np.vstack([np.eye(self.own), self.sums]), self.sums != 0.0
        white, scatter = (combined @ one @ combined.T for one in both)
        size = np.diag(white)
        return Reading(
            combined @ values, white,
            np.diag(scatter) / np.where(size > 0.0, size, 1.0),
            np.concatenate([known, ~np.any(used & ~known, axis=1)]))

    def _fitted(
        self, information: Information, free: NDArray[np.bool_],
        held: FloatArray | None = None,
    ) -> Fitted:
        """Return the fit of those that are ``free`` (p,)."""
        own = self._projected(information, self.directions[:, free], held)
        solution = solve_rows(weighted_factor(own, self.weights))
        covariance, _ = batch_covariance(own, self.weights, solution)
        deviation = np.sqrt(np.diag(covariance))
        known = np.isfinite(deviation) & (deviation * self._reach[free] <= KNOWN)
        known[list(solution.open_columns)] = False
        return (solution.values, solution.root @ solution.root.T, np.nan_to_num(covariance),
                known)

    def _projected(
        self, information: Information, directions: FloatArray, held: FloatArray | None = None
    ) -> Information:
        known = self.reference if held is None else self.base(held)
        return information.projected(
            range(len(information.structure)), information.structure, directions, known)

    @cached_property
    def _reach(self) -> FloatArray:
        """The inverse (p,) of the deviation above which a characteristic is not known."""
        effort = np.abs(self.model.moderate_effort @ self.directions)
        row = np.argmax(effort, axis=0)
        own = effort.max(axis=0) / np.maximum(self.size[row], np.finfo(np.float64).tiny)
        return np.where([one.relative for one in self.all[:self.own]], 1.0, own)

    def _friction_sums(
        self, fleet: Information
    ) -> Iterator[tuple[Characteristic, FloatArray]]:
        """Yield viscous and dry friction of every axis together, as sums (p,).

        Each counts by its torque in the recordings, root mean square: what one is too high by,
        the other is too low by where a motion does not tell them apart.
        """
        own = self._projected(fleet, self.directions)
        sizes = np.array([np.linalg.norm(own.expanded(j)[:, :self.own], axis=0)
                          for j in range(len(own.structure))]).max(axis=0)
        for part in dict.fromkeys(one.part for one in self.all if one.kind == DRY):
            row = np.array([size if one.part == part and one.kind in (VISCOUS, DRY) else 0.0
                            for one, size in zip(self.all, sizes, strict=True)])
            yield Characteristic(f'friction_{part}', part, FRICTION, WORDS[FRICTION], ''), \
                row / row.sum()

    def _loads(self, fleet: Information) -> Iterator[tuple[Characteristic, FloatArray]]:
        """Yield the masses on the last links, as sums (p,) of the characteristics.

        The mass is one of the ten parameters of a rigid load, found by least squares from the
        changes of the base parameters, which count by their covariance in the data of the fleet.
        """
        robot, matrix = self.model.robot, self.model.reduction.matrix
        own = self._projected(fleet, self.directions)
        root = solve_rows(weighted_factor(own, self.weights))
        links = np.array([one.kind == LINK for one in self.all])
        if root.open_columns or not links.any():
            return
        links = np.flatnonzero(links)
        factor = np.linalg.cholesky((root.root @ root.root.T)[np.ix_(links, links)])
        places = np.argmax(self.directions[:, links] != 0.0, axis=0)
        for body in sorted(set(range(robot.n)) - set(robot.parents.tolist())):
            design = np.linalg.solve(factor, matrix[np.ix_(places, 10 * body + np.arange(10))])
            size = np.linalg.norm(design, axis=0)
            design = design / np.where(size > 0.0, size, 1.0)
            inverse = np.linalg.pinv(design, rcond=SPANNED)
            told = (inverse @ design)[0]
            if abs(told[0] - 1.0) > SPANNED or np.abs(told[1:]).max() > SPANNED:
                continue  # the mass of this link is not told from its other parameters
            row = np.zeros(self.own)
            row[links] = np.linalg.solve(factor.T, inverse[0]) / size[0]
            name = robot.bodies[body]
            yield Characteristic(f'load_{name}', name, LOAD, 'mass it carries', 'kg'), row


def _friction(model: TorqueModel, scales: FrictionScales) -> Iterator[Characteristic]:
    """Yield the characteristics of the scales of friction."""
    words = model.words
    [block] = [block for block in model.blocks if isinstance(block, JointFriction)]
    for kind, axis in zip(scales.kinds, scales.axes, strict=True):
        part = words[block.names[block.owners.index(axis)]].part
        yield Characteristic(f'{kind}_{block.axes.labels[axis]}', part, kind, WORDS[kind], '')


def _base(
    model: TorqueModel, values: FloatArray,
) -> Iterator[tuple[Characteristic, FloatArray]]:
    """Yield the characteristics but those of friction, with their directions (b,)."""
    words, place = model.words, 0
    for block, chosen in zip(model.blocks, model.pivots_by_block, strict=True):
        for parameter in chosen.tolist():
            if not isinstance(block, JointFriction):
                name = block.names[parameter]
                kind = _kind(block, name)
                size = abs(float(values[place])) if kind in RELATIVE else 1.0
                own = words[name]
                direction = np.zeros(len(values))
                direction[place] = size
                yield _described(own, kind), direction
            place += 1


def _described(own: ParameterWords, kind: str) -> Characteristic:
    relative = kind in RELATIVE
    return Characteristic(own.name, own.part, kind, own.words, '' if relative else own.unit)


def _kind(block: object, name: str) -> str:
    if isinstance(block, RigidLinks):
        return LINK
    if isinstance(block, Springs):
        return GEAR_STIFFNESS if name.startswith(STIFFNESS) else GEAR
    return ROTOR if isinstance(block, RotorInertia) else OTHER


#: by kind: what a rise may come from, and what a fall
CAUSES = {
    FRICTION: ('wear, lack of lubrication, or colder than usual',
               'run in, new grease, or warmer than usual'),
    VISCOUS: ('colder than usual, or another, stiffer or too much grease',
              'warmer than usual, thinner or lost grease'),
    DRY: ('wear, worn seals or bearings, lack of lubrication, more preload',
          'run in, new grease, less preload of the gear'),
    OFFSET: ('zero of the torque or current sensor', 'zero of the torque or current sensor'),
    LOAD: ('payload or tool left on', 'tool or payload taken off'),
    LINK: ('load or cables on the arm, another part, or gain of a drive',
           'part taken off, another part, or gain of a drive'),
    ROTOR: ('another drive, or gain of the drive', 'another drive, or gain of the drive'),
    GEAR: ('another gear, or its encoders', 'another gear, or its encoders'),
    GEAR_STIFFNESS: ('another gear, more preload', 'worn or cracked gear, loose coupling'),
    OTHER: ('unknown', 'unknown'),
}


def cause(kind: str, size: float) -> str:
    """Return the causes that a change by ``size`` of a ``kind`` of characteristic may have."""
    rise, fall = CAUSES[kind]
    return rise if size > 0.0 else fall
