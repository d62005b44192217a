"""Recursive identification: base parameters followed along everyday motion.

What is followed is the departure from the served model, each parameter in units of what is known
of it: its covariance, how friction differs from day to day, of each axis and of all together, and
what it does while it warms up.
Rows of a joint weigh by the density of what is left of its effort at low frequency, since
residuals of real robots are coloured: a second of them counts as one measurement. The first
LEARNING seconds say how large that is, and all that follow refine it.

The model is not changed by this; see `robot_dynid_extras.health.updated_model`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.estimation.information import (
    EXTRA,
    FILTERED,
    Batch,
    Information,
    merge_factors,
    triangle,
)
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.friction.law import DRY, VISCOUS
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.numbers import NumberRange
from robot_dynid.types import FloatArray
from robot_dynid_extras.health.everyday_motion import EverydayMotion
from robot_dynid_extras.health.fading_information import Followed

#: times [s] of motion from which the first density of the residuals is taken, and over which it
#: is averaged
LEARNING, STEADY = 60.0, 1800.0
#: time [s] of sliding from which the first density of a joint is trusted; times the density from
#: which a stretch is no noise
SOME, LARGER = 10.0, 4.0
#: fits by which the first density is found, in which departures are so many times as likely: a
#: robot that has changed before must not pass for a noisy one
ROUNDS, FREE = 3, 10.0
#: share by which friction of all axes together is another, by the warmth of the room and of work:
#: viscous friction of a UR10e falls by 16 % (docs/slow_changes.md), dry friction by less. How
#: large it is hardly matters, as long as it is more than that of one axis
TOGETHER = {VISCOUS: 0.15, DRY: 0.075}
#: fewer degrees of freedom count as these: a variance must be known
LEAST_FREEDOM = 3.0
#: deviation of a parameter that the recordings left open, in parts of the effort of a moderate
#: motion where nothing says how large efforts are [N m]
OPEN_EFFORT = 100.0
#: share of its deviation that is left of a parameter where all others are known
LEAST_DEVIATION = 1e-3
#: density [(N m)^2 s] below which there is nothing but rounding, as a share of the squared effort
ROUNDING = 1e-16
#: largest share of what a joint has shown that a stretch replaces
MOST = 0.5
#: time [s] of motion over which the earlier ones are forgotten
MEMORY = NumberRange(30.0, 1e8, 's')


@dataclass(frozen=True, eq=False)
class Recent:
    """Recent motion, in which older one counts less.

    ``factors`` of the joints, ``samples`` (n,) in which they slid; ``errors`` (2, n) [(N m)^2]:
    summed squares of what the served model and the followed parameters, as they were before, left
    of them.
    """

    factors: tuple[FloatArray, ...]
    samples: FloatArray
    errors: FloatArray

    def faded(self, share: float) -> Recent:
        """Return it with less weight."""
        return Recent(tuple(np.sqrt(share) * one for one in self.factors), share * self.samples,
                      share * self.errors)

    def torque(self, active: NDArray[np.bool_], root: FloatArray) -> FloatArray:
        """Return the effort (n,) [N m], root mean square, of changes of the parameters.

        ``root`` (m, b) has changes as rows, which are independent; ``active`` (n, b) is true where
        parameters enter.
        """
        found = np.zeros(len(self.factors))
        for j, factor in enumerate(self.factors):
            own = factor[:, :-EXTRA] @ root[:, active[j]].T
            found[j] = np.sqrt(np.sum(own ** 2) / max(self.samples[j], 1.0))
        return found


class RecursiveIdentification:
    """Follows the base parameters of ``model``.

    What a joint has shown is forgotten over ``memory`` [s] in which it slides. ``scale`` (b,) are
    the deviations expected of the parameters, by which those of ``followed`` are divided.
    Raises ModelError for a model without covariance.
    """

    def __init__(self, model: IdentifiedModel, memory: float) -> None:
        self.model, self.memory = model, memory
        self.prior = prior_root(model)
        self.scale = np.linalg.norm(self.prior, axis=0)
        self.followed = Followed.before(self.prior / self.scale, model.torque_model.robot.rows)
        self.density: FloatArray | None = None
        self.recent: Recent | None = None
        self.seconds = 0.0
        self.excited = np.full(len(self.prior), -np.inf)
        self._waiting: list[EverydayMotion] = []
        self._weight = np.zeros(model.torque_model.robot.rows)

    @property
    def learning(self) -> bool:
        """Whether the size of the residuals is not known yet."""
        return self.density is None

    @property
    def departure(self) -> FloatArray:
        """Departure (b,) of the base parameters from those of the model."""
        return np.asarray(self.scale * self.followed.values)

    @property
    def values(self) -> FloatArray:
        """The base parameters (b,)."""
        return np.asarray(self.model.values + self.departure)

    @property
    def root(self) -> FloatArray:
        """A root F (b, b) of the covariance F^T F of the values."""
        return np.asarray(self.followed.inverse.T * self.scale)

    @one_blas_thread()
    def take(self, motion: EverydayMotion) -> None:
        """Take the next stretch of motion."""
        self.seconds += motion.seconds
        if self.density is None:
            self._waiting.append(motion)
            if sum(one.seconds for one in self._waiting) < LEARNING:
                return
            self._learn()
            return
        self._follow(motion)

    def _learn(self) -> None:
        """Take the stretches that waited, with the density they have about their own fit."""
        changed = np.zeros_like(self.model.values)
        for _ in range(1 + ROUNDS):
            found = [self._scatter(one, changed) for one in self._waiting]
            total, time = (np.sum(part, axis=0) for part in zip(*found, strict=True))
            self.density = self._bounded(total, time)
            changed = self._fitted()
        self._weight = np.where(time > SOME, STEADY, time)
        end, self.seconds = self.seconds, 0.0
        for one in self._waiting:
            self.seconds += one.seconds
            self._follow(one, learn=False)
        self._waiting, self.seconds = [], end

    def _fitted(self) -> FloatArray:
        """Return the departure (b,) of the stretches that waited; it may be FREE times larger."""
        found = Followed.before(FREE * self.followed.prior, len(self._weight))
        for one in self._waiting:
            found = found.updated(self._equations(one), np.ones(len(self._weight)))
        return np.asarray(self.scale * found.values)

    def _bounded(self, total: FloatArray, time: FloatArray) -> FloatArray:
        """Return the density (n,), at least rounding; of joints that rested that of all."""
        size = np.max([one.information.size(FILTERED) for one in self._waiting])
        floor = ROUNDING * size**2 + np.finfo(float).tiny
        moved = time > 0.0
        known = total[moved] / time[moved]
        found = np.full(len(time), known.max())
        found[moved] = known
        return np.maximum(found, floor)

    def _follow(self, motion: EverydayMotion, learn: bool = True) -> None:
        equations = self._equations(motion)
        self._remember(motion)
        forgotten = np.minimum(motion.sliding.sum(axis=0) / self.memory, MOST)
        told = np.sum(np.vstack(equations)[:, :-1] ** 2, axis=0)
        self.excited[told > motion.seconds / self.memory] = self.seconds
        self.followed = self.followed.updated(equations, 1.0 - forgotten)
        if learn:
            self._refine(motion)

    def _refine(self, motion: EverydayMotion) -> None:
        """Bring the density up to date by what the followed parameters leave over.

        What is LARGER than expected counts as that much: it is change, not noise.
        """
        assert self.density is not None
        total, time = self._scatter(motion, self.departure)
        total = np.minimum(total, LARGER * self.density * time)
        self._weight = np.minimum(self._weight + time, STEADY)
        self.density = self.density + (total - self.density * time) / np.maximum(
            self._weight, np.finfo(float).tiny)

    def _scatter(self, motion: EverydayMotion, departure: FloatArray
                 ) -> tuple[FloatArray, FloatArray]:
        """Return sums (n,): time of sliding, and by it the density of what is left over.

        From the sum over each batch, which is short beside all that changes slowly.
        """
        values, nowhere = self.model.values + departure, np.zeros((len(departure), 0))
        sums = [[float(ones @ left) for ones, left in map(
                     np.transpose, motion.equations(batch, values, nowhere))]
                for batch in motion.information.batches]
        return np.sum(np.square(sums), axis=0), motion.sliding.sum(axis=0)

    def _equations(self, motion: EverydayMotion) -> list[FloatArray]:
        """Return equations (m, b + 1) of each joint about the unknowns of `Followed`.

        Of unit noise; the last column has the values.
        """
        assert self.density is not None
        found = motion.equations(
            motion.information.total, self.model.values, np.diag(self.scale))
        return [np.delete(rows, -2, axis=1) / np.sqrt(density)
                for rows, density in zip(found, self.density, strict=True)]

    def _remember(self, motion: EverydayMotion) -> None:
        """Score the motion by the served and by the followed parameters, and keep it."""
        information = motion.information
        errors = np.array([_energy(information, information.total, values)
                           for values in (self.model.values, self.values)])
        samples = motion.sliding.sum(axis=0) / motion.step
        now = Recent(information.total.factors, samples, errors)
        if self.recent is not None:
            old = self.recent.faded(max(1.0 - motion.seconds / self.memory, 0.0))
            now = Recent(tuple(merge_factors([a, b]) for a, b in zip(
                old.factors, now.factors, strict=True)), old.samples + samples,
                old.errors + errors)
        self.recent = now

    def left_over(self, values: FloatArray) -> FloatArray:
        """Return the root mean square (n,) [N m] of what ``values`` (b,) leave of recent motion.

        Of the filtered effort while the joint slides; zero before any motion.
        """
        if self.recent is None:
            return np.zeros(len(self._weight))
        structure = self.model.torque_model.structure
        found = Information(self.model.names, structure, ())
        batch = Batch(self.recent.factors, 0)
        return np.asarray(np.sqrt(_energy(found, batch, values)
                                  / np.maximum(self.recent.samples, 1.0)))


def _energy(information: Information, batch: Batch, values: FloatArray) -> FloatArray:
    return information.residual_energy(values, FILTERED, batch)


def prior_root(model: IdentifiedModel) -> FloatArray:
    """Return a root F (b, b) of what is expected of the base parameters: covariance F^T F.

    That of the estimate, and friction of another day, both by Student's distribution of their
    degrees of freedom; friction of all axes TOGETHER; what warms up; parameters that the
    recordings left open may be anything.
    None is known better than by LEAST_DEVIATION of its deviation from all others.
    Raises ModelError for a model without covariance.
    """
    torque = model.torque_model
    parts = [_student(_estimate_freedom(model)) * model.covariance_factor]
    scales = friction_scales(torque, model.values)
    if scales is not None:
        for direction, kind, axis in zip(
                scales.directions.T, scales.kinds, scales.axes, strict=True):
            spread, freedom = model.record.daily_spread(kind, scales.kinds.count(kind))
            daily = _student(freedom) * spread
            parts.append((np.hypot(daily, _warmed(model, kind, axis)) * direction)[None])
        kinds = np.array(scales.kinds)
        parts += [share * scales.directions[:, kinds == kind].sum(axis=1)[None]
                  for kind, share in TOGETHER.items()]
    unknown = ~np.isfinite(model.std)
    if unknown.any():
        ranges = model.trained.quantities.get('effort')
        effort = OPEN_EFFORT if ranges is None else float(np.abs(ranges).max())
        reach = np.maximum(torque.moderate_effort.max(axis=0), np.finfo(float).tiny)
        parts.append(np.diag(effort / reach)[unknown])
    scale = np.linalg.norm(np.vstack(parts), axis=0)
    least = LEAST_DEVIATION * np.where(scale > 0.0, scale, np.finfo(float).tiny ** 0.25)
    return triangle(np.vstack([*parts, np.diag(least)]))


def prior_freedom(model: IdentifiedModel) -> FloatArray:
    """Return the degrees of freedom (b,) of what is expected of the base parameters.

    Those of the variance of the estimate and of friction from day to day, by their shares; no more
    than either has. Source: Satterthwaite 1946, Biometrics Bulletin 2, 110.
    """
    freedom = np.full(len(model.values), _estimate_freedom(model))
    variance = (_student(freedom[0]) * np.where(np.isfinite(model.std), model.std, 0.0)) ** 2
    squares = variance ** 2 / freedom
    scales = friction_scales(model.torque_model, model.values)
    if scales is not None:
        for direction, kind in zip(scales.directions.T, scales.kinds, strict=True):
            spread, own = model.record.daily_spread(kind, scales.kinds.count(kind))
            daily = (_student(own) * spread * direction) ** 2
            variance, squares = variance + daily, squares + daily ** 2 / own
            freedom[daily > 0.0] = np.maximum(freedom[daily > 0.0], own)
    known = squares > 0.0
    found = np.where(known, variance ** 2 / np.where(known, squares, 1.0), np.inf)
    return np.asarray(np.maximum(np.minimum(found, freedom), LEAST_FREEDOM))


def _estimate_freedom(model: IdentifiedModel) -> float:
    freedom = model.record.degrees_of_freedom
    return np.inf if freedom is None else max(freedom, LEAST_FREEDOM)


def _student(freedom: float) -> float:
    """Return the deviation of Student's distribution in terms of its scale."""
    return float(np.sqrt(1.0 / (1.0 - 2.0 / freedom)))


def _warmed(model: IdentifiedModel, kind: str, axis: int) -> float:
    """Return the share by which friction of an axis changes while it warms up."""
    parts = model.parts_of('adaptation')
    changes = parts[axis] if axis < len(parts) else None
    if changes is None or changes.warming is None:
        return 0.0
    row = 0 if kind == VISCOUS else 1
    return float(max(abs(changes.warming.rise[row]), np.abs(changes.warming.fall[row]).sum()))
