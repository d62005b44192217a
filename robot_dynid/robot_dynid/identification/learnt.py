"""Torque ripple and slow changes, learnt from the residual of the linear model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.ripple import ABOVE_FAST
from robot_dynid.effects.ripple_search import (
    CREEP_SHARE,
    GAIN_PIECE,
    JointResidual,
    RippleFit,
    fit_ripple,
)
from robot_dynid.effects.slow_changes import FrictionResidual, Warming
from robot_dynid.effects.slow_changes_search import (
    AdaptationFit,
    ConstantParameters,
    WarmingFit,
    add_drift,
    fit_warming,
    noise_density,
    refit_warming,
    rescale_warming,
)
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment, Regression, chunks, row_weights
from robot_dynid.identification.gathered import Fit, Gathered
from robot_dynid.identification.recipe import JOINT, NONE, Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import JointRipple, SlowChange
from robot_dynid.identified.uncertainty import correlation_factor
from robot_dynid.monitoring.observer import REST_SPEED
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.threads import side_by_side
from robot_dynid.types import FloatArray, Samples
from robot_dynid.validation.slow_changes import Course, Remainder

#: a row closer than this share of a piece to its end belongs to the next one, so that rounding
#: does not decide
BORDER = 1e-6
#: rows from which waves are sought, and about the most rows used, in evenly spaced pieces
WAVE_ROWS, MAX_ROWS = 1000, 30_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Measured rows of all recordings, each (N, n), and their folds and pieces (N,).

    ``position`` [rad] in the rows of the effort, ``velocity`` [rad/s], ``effort`` [N m] of the
    model and its ``residual`` [N m]. ``step`` [s] is the time between two rows.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    residual: FloatArray
    folds: NDArray[np.int64]
    pieces: NDArray[np.int64]
    step: float

    @classmethod
    def of(cls, model: IdentifiedModel, recordings: Sequence[Repaired]) -> Rows | None:
        """Return the rows of a model without ripple; None without measured positions."""
        settings = replace(model.preprocessing, decimate=False)
        tables: list[tuple[NDArray[Any], ...]] = []
        motion = DistinctMotion()
        rows = sum(len(part.time) for recording in recordings for part in recording.parts)
        every = max(1, -(-rows // MAX_ROWS))
        for recording in recordings:
            try:
                samples = prepare(model.robot, recording, settings)
            except DataError:
                continue  # a part of a longer recording that is at rest or too short
            if samples.raw_position is not None:
                tables.append(_rows(model, samples, every, motion.add(samples)))
        if not tables:
            return None
        source = np.repeat(np.arange(len(tables)), [len(rows[-1]) for rows in tables])
        q, qd, effort, residual, seconds, cells = (
            np.concatenate(parts) for parts in zip(*tables, strict=True))
        held_out = folds(motion.seconds, 0.0)[cells]
        pieces = np.cumsum((np.diff(piece_of(seconds), prepend=-1.0) != 0.0)
                           | (np.diff(source, prepend=-1.0) != 0.0))
        steps = np.diff(seconds)
        return cls(q, qd, effort, residual, held_out, pieces,
                   float(np.median(steps[steps > 0.0])))

    def of_joint(self, j: int) -> JointResidual | None:
        """Return the rows of one joint; None if it rests, or there are too few."""
        top = float(np.abs(self.velocity[:, j]).max())
        if top < REST_SPEED or len(self.folds) < WAVE_ROWS:
            return None
        return JointResidual(self.position[:, j], self.velocity[:, j], self.effort[:, j],
                             self.residual[:, j], self.folds, self.pieces, CREEP_SHARE * top,
                             top / ABOVE_FAST, self.step)


def _rows(
    model: IdentifiedModel, samples: Samples, every: int, cells: NDArray[np.int64]
) -> tuple[NDArray[Any], ...]:
    """Return position, velocity, effort, residual (M, n), time since the first [s] and cell (M,).

    Of every ``every``-th piece; ``cells`` (N,) are those of the samples.
    """
    assert samples.measured is not None and samples.raw_position is not None
    effort = model.predicted(samples)
    moved = samples.at_stamps(samples.velocity)
    since = samples.instants - samples.instants[0]
    mask = samples.fresh & (piece_of(since) % every == 0.0)
    return (samples.raw_position[mask], moved[mask], effort[mask],
            (samples.measured - effort)[mask],
            since[mask], cells[mask])


def piece_of(since: FloatArray) -> FloatArray:
    """Return the index (N,) of the piece of rows ``since`` (N,) [s] the first one."""
    return np.floor(since / GAIN_PIECE + BORDER)


def learn_ripple(fit: Fit, gathered: Gathered, estimator: Estimator, recipe: Recipe) -> Fit:
    """Return the fit with the torque ripple in the residual of the excerpt, and its record.

    Unfiltered efforts at their own stamps count, against positions of the same rows. Nothing is
    added to elastic or refused joints, and where the recordings show nothing beyond chance; swings
    of single joints over part of a turn do not separate orders.
    """
    model = fit.model
    if recipe.ripple == NONE or model.torque_model.gears or estimator.single_joint_motions:
        return fit
    rows = Rows.of(model, gathered.excerpt)
    if rows is None:
        return fit
    ratios, joints = model.robot.drive.gear_ratios, model.joints

    def ripple_of(j: int) -> RippleFit | None:
        data = None if joints[j] in model.record.refused else rows.of_joint(j)
        ratio = None if ratios is None else float(ratios[j])
        return None if data is None else fit_ripple(data, ratio)

    fits = list(side_by_side(ripple_of, range(len(joints))))
    record = tuple(
        JointRipple(joint, one.rms_without, one.rms_with, one.waves, one.compliance,
                    one.compliance_std,
                    one.aliased)
        for joint, one in zip(joints, fits, strict=True) if one is not None)
    model = model.with_learnt('ripple', [None if one is None else one.ripple for one in fits])
    return replace(fit, model=model).recorded(replace(model.record, ripple=record))


#: least density of the noise of a joint, as a share of the largest
LEAST_NOISE_DENSITY = 1e-4


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of the rows in a linear fit: ``joints`` (n,), and ``reversals`` (n,) near these."""

    joints: FloatArray
    reversals: FloatArray | None


def refit_with_links(
    model: IdentifiedModel, data: tuple[Sequence[Repaired], Sequence[Sequence[FrictionResidual]]],
    warmings: Sequence[Warming | None], weights: RowWeights,
) -> list[WarmingFit | None]:
    """Return the ``warmings`` of the joints fitted together with all base parameters.

    ``data`` are recordings, and the residuals of every joint in each; ``weights`` those of the
    estimate of the base parameters.
    """
    recordings, residuals = data
    rests = [[replace(one, left=left)
              for one, left in zip(by_recording, _rest(by_recording, warming), strict=True)]
             for by_recording, warming in zip(residuals, warmings, strict=True)]
    density = np.array([noise_density(by_recording) for by_recording in rests])
    density = np.maximum(density, LEAST_NOISE_DENSITY * density.max())
    products = _Products(model, density, [one is not None for one in warmings])
    for r, recording in enumerate(recordings):
        products.add(recording, [by_recording[r] for by_recording in rests], weights)
    return [None if warming is None else refit_warming(
        residuals[j], warming, products.of_joint(j)) for j, warming in enumerate(warmings)]


def apply_changes(
    model: IdentifiedModel, estimate: Estimate, fits: Sequence[WarmingFit]
) -> tuple[IdentifiedModel, Estimate]:
    """Return both with the corrections of the base parameters; those not excited stay."""
    excited = np.array([name not in estimate.not_excited for name in estimate.names])
    values, covariance = estimate.values, estimate.covariance
    for one in fits:
        values = values + np.where(excited, one.change, 0.0)
        covariance = covariance + np.where(np.outer(excited, excited), one.covariance, 0.0)
    estimate = replace(estimate, values=values, covariance=covariance)
    return replace(
        model, values=values, std=estimate.std,
        correlation_factor=correlation_factor(covariance, estimate.std)), estimate


def _rest(residuals: Sequence[FrictionResidual], warming: Warming | None) -> list[FloatArray]:
    """Return the residual effort (M,) [N m] of every recording without ``warming``."""
    if warming is None:
        return [one.left for one in residuals]
    state = np.zeros(len(warming.seconds))
    return [one.left - warming.torque(one, warming.warmth(one, state)) for one in residuals]


class _Products:
    """Products of the regressors of all joints, and those of the joints that warm up."""

    def __init__(
        self, model: IdentifiedModel, density: FloatArray, warms: Sequence[bool]
    ) -> None:
        b = len(model.values)
        self._model, self._density = model, density
        self._grams = np.zeros((len(warms), b + 1, b + 1))
        self._normal = np.zeros((b, b))
        self._columns = {j: list[FloatArray]() for j, yes in enumerate(warms) if yes}
        self._squares = {j: list[FloatArray]() for j in self._columns}

    def add(
        self, recording: Repaired, rests: Sequence[FrictionResidual], weights: RowWeights
    ) -> None:
        """Add a recording; ``rests`` are the residuals of its joints."""
        model = self._model.torque_model
        samples = prepare(self._model.robot, recording, self._model.preprocessing)
        used = row_weights(model.robot, samples, weights.reversals)
        squares = np.square((np.ones((len(samples), len(rests))) if used is None else used)
                            * weights.joints)
        regression, first, warming = Regression(model, samples), 0, list[FloatArray]()
        step = float(np.median(np.diff(rests[0].time)))
        for rows in chunks(samples, model.chunk):
            fresh = samples.fresh[rows]
            columns, square = regression.columns(rows)[:, :, fresh], squares[rows][fresh]
            stop = first + columns.shape[2]
            warming.append(columns[list(self._columns)])
            for i, active in enumerate(model.structure):
                place = np.flatnonzero(np.append(active, True))
                tall = np.vstack([columns[i, active], rests[i].left[first:stop]])
                self._grams[i][np.ix_(place, place)] += step / self._density[i] * (tall @ tall.T)
                self._normal[np.ix_(active, active)] += (
                    tall[:-1] * square[:, i]) @ tall[:-1].T
            first = stop
        for j, mine in zip(self._columns, np.concatenate(warming, axis=2), strict=True):
            self._columns[j].append(np.ascontiguousarray(mine.T))
            self._squares[j].append(squares[samples.fresh, j])

    def of_joint(self, j: int) -> ConstantParameters:
        """Return the constant parameters for joint ``j``."""
        others = self._grams.sum(axis=0) - self._grams[j]
        return ConstantParameters(tuple(self._columns[j]), others, tuple(self._squares[j]),
                                  self._normal)


#: least samples of a recording that may show slow changes
LEAST_SLOW_SAMPLES = 3


def learn_slow_changes(
    fit: Fit, gathered: Gathered, estimator: Estimator, recipe: Recipe
) -> Fit:
    """Return the fit with the slow changes that the excerpt shows beyond chance.

    If the fit is linear, friction that warms up and the base parameters are fitted together: these
    and their covariance change. Nothing is searched if joints deflect, rest in turn, or were
    averaged over periods.
    """
    model, estimate, recordings = fit.model, fit.estimate, gathered.excerpt
    if recipe.adaptation == NONE or model.elastic_joints or estimator.single_joint_motions or any(
            one.averaging is not None for one in recordings):
        return fit
    used, remainders = _remainders(model, recordings)
    if not used:
        return fit
    residuals = _residuals(model, remainders)
    warmings = [fit_warming(by_recording) for by_recording in residuals]
    weights = _weights(model, estimator, recipe, gathered.experiment)
    if weights is not None and any(one for one, _ in warmings):
        refitted = refit_with_links(
            model, (used, residuals), [one for one, _ in warmings], weights)
        model, estimate = apply_changes(model, estimate, [one for one in refitted if one])
        used, remainders = _remainders(model, used)
        warmings = [(None if one is None else rescale_warming(one.warming, old, new), gained)
                    for one, (_, gained), old, new in zip(
                        refitted, warmings, residuals, _residuals(model, remainders), strict=True)]
    fits = [add_drift([one.of_joint(j) for one in remainders], *warming)
            for j, warming in enumerate(warmings)]
    model = model.with_learnt('adaptation', [
        None if joint in model.record.refused else one.used
        for joint, one in zip(model.joints, fits, strict=True)])
    record = replace(model.record, slow_changes=tuple(
        _record(joint, one) for joint, one in zip(model.joints, fits, strict=True)))
    return Fit(model, estimate, fit.notes).recorded(record)


def _remainders(
    model: IdentifiedModel, recordings: Sequence[Repaired]
) -> tuple[list[Repaired], list[Remainder]]:
    """Return the usable recordings, and the residual of the model in each."""
    used, remainders, course = list[Repaired](), list[Remainder](), Course(model)
    for recording in recordings:
        try:
            samples = prepare(model.robot, recording, model.preprocessing)
        except DataError:
            continue  # a part of a longer recording that is at rest or too short
        one = course(recording, samples, model.without_ripple(samples))
        if len(one.rows) >= LEAST_SLOW_SAMPLES:
            used.append(recording)
            remainders.append(one)
    return used, remainders


def _residuals(model: IdentifiedModel,
               remainders: Sequence[Remainder]) -> list[list[FrictionResidual]]:
    """Return the residuals of every joint in every recording, without columns of ripple."""
    return [[one.without_waves(j) for one in remainders] for j in range(model.robot.n)]


def _weights(
    model: IdentifiedModel, estimator: Estimator, recipe: Recipe, experiment: Experiment
) -> RowWeights | None:
    """Return the weights of the rows in one linear fit; None if the fit is not linear."""
    if not estimator.linear or recipe.loops != JOINT or 'residual' in model.learnt:
        return None
    return RowWeights(estimator.joint_weights(experiment), experiment.reversal_weights)


def _record(joint: str, fit: AdaptationFit) -> SlowChange:
    return SlowChange(joint, fit.warming.share, fit.warming.deviations, fit.slow.share,
                      fit.slow.deviations)
