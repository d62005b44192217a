"""Torque ripple that is locked to the position of joints, in what a model leaves of the effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.ripple import ABOVE_FAST
from robot_dynid.effects.ripple_search import JointResidual, RippleFit, fit_ripple
from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimator
from robot_dynid.identification.gathered import Fit, Gathered
from robot_dynid.identification.recipe import NONE, Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import JointRipple
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.signals.prepare import Repaired, prepare
from robot_dynid.threads import side_by_side
from robot_dynid.types import FloatArray, Samples

#: length [s] of the pieces whose gains are compared
PIECE = 0.2
#: a row this share of a piece before its end is in the next one: rounding decides about none
BORDER = 1e-6
#: rows from which on waves are sought, and about as many as are looked at: evenly spaced pieces
LEAST_ROWS, MOST_ROWS = 1000, 30_000
#: share of the top speed at which creep ends; a joint slower than REST [rad/s, m/s] throughout is
#: at rest
SLOW, REST = 0.05, 0.01


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of all recordings as they were measured, each (N, n), and their folds and pieces (N,).

    ``position`` [rad] in the rows of the effort, ``velocity`` [rad/s], ``effort`` [N m] of the
    model and the ``residual`` [N m] it leaves. ``step`` [s] is the time between two rows.
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
        """Return those of a model without ripple; None where no positions are known."""
        settings = replace(model.preprocessing, decimate=False)
        found: list[tuple[NDArray[Any], ...]] = []
        motion = DistinctMotion()
        rows = sum(len(part.time) for recording in recordings for part in recording.parts)
        every = max(1, -(-rows // MOST_ROWS))
        for recording in recordings:
            try:
                samples = prepare(model.robot, recording, settings)
            except DataError:
                continue  # a part of a longer one that is at rest or too short
            if samples.raw_position is not None:
                found.append(_rows(model, samples, every, motion.add(samples)))
        if not found:
            return None
        source = np.repeat(np.arange(len(found)), [len(rows[-1]) for rows in found])
        q, qd, effort, residual, seconds, cells = (
            np.concatenate(parts) for parts in zip(*found, strict=True))
        held_out = folds(motion.seconds, 0.0)[cells]
        pieces = np.cumsum((np.diff(piece_of(seconds), prepend=-1.0) != 0.0)
                           | (np.diff(source, prepend=-1.0) != 0.0))
        steps = np.diff(seconds)
        return cls(q, qd, effort, residual, held_out, pieces,
                   float(np.median(steps[steps > 0.0])))

    def of_joint(self, j: int) -> JointResidual | None:
        """Return the rows of one joint; None where it rests, or there are too few."""
        top = float(np.abs(self.velocity[:, j]).max())
        if top < REST or len(self.folds) < LEAST_ROWS:
            return None
        return JointResidual(self.position[:, j], self.velocity[:, j], self.effort[:, j],
                             self.residual[:, j], self.folds, self.pieces, SLOW * top,
                             top / ABOVE_FAST, self.step)


def _rows(
    model: IdentifiedModel, samples: Samples, every: int, cells: NDArray[np.int64]
) -> tuple[NDArray[Any], ...]:
    """Return position, velocity, effort, residual (M, n), time since the first [s] and cell (M,).

    One in ``every`` so many pieces of it; ``cells`` (N,) are those of the samples.
    """
    assert samples.measured is not None and samples.raw_position is not None
    effort = model.predicted(samples)
    moved = samples.at_stamps(samples.velocity)
    since = samples.instants - samples.instants[0]
    own = samples.fresh & (piece_of(since) % every == 0.0)
    return (samples.raw_position[own], moved[own], effort[own], (samples.measured - effort)[own],
            since[own], cells[own])


def piece_of(since: FloatArray) -> FloatArray:
    """Return the number (N,) of the piece of rows ``since`` (N,) [s] the first one."""
    return np.floor(since / PIECE + BORDER)


def with_ripple(fit: Fit, gathered: Gathered, estimator: Estimator, recipe: Recipe) -> Fit:
    """Return the fit with the torque ripple that it leaves in the excerpt, and its record.

    Unfiltered efforts at their own stamps count, against positions of the same rows. Nothing is
    added to elastic joints, to joints that are refused, and where the recordings show nothing
    beyond chance; swings of single joints over part of a turn do not tell orders apart.
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

    found = list(side_by_side(ripple_of, range(len(joints))))
    record = tuple(
        JointRipple(joint, one.before, one.after, one.waves, one.compliance, one.compliance_std,
                    one.aliased)
        for joint, one in zip(joints, found, strict=True) if one is not None)
    model = model.with_learnt('ripple', [None if one is None else one.ripple for one in found])
    return replace(fit, model=model).recorded(replace(model.record, ripple=record))
