"""Staged least squares: one joint moves at a time, and stages use the results of earlier ones.

Sources: Lin, An identification method for estimating the inertia parameters of a manipulator,
1991, section 3.3; Wang et al., Sensors 2025, 25, 5749, sections 3.2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import Row, Section, Table, number
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, Status
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import residual_noise, unknown_columns
from robot_dynid.estimation.staged.joint_effort import single_joint_data
from robot_dynid.estimation.staged.procedure import (
    PROCEDURES,
    Decomposition,
    LockedJointsMotion,
    Stage,
    advice,
    centred_rows,
    decompose,
    labels,
    moving_joint_stages,
)
from robot_dynid.estimation.staged.stage_fit import Knowledge, StageFit, stage_fit
from robot_dynid.estimation.uncertainty.held_out import explained_share
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: share of a base parameter in open directions above which it is not excited
OPEN_COMBINATION_SHARE = 1e-9
#: a combination is refused if its deviation accounts for more than this share of the effort
REFUSED = 0.1
#: deviations from its nominal value by which a combination contradicts it
CONTRADICTING_DEVIATIONS = 2.0
STAGES = (
    'One joint moves at a time; later stages use the results of earlier ones. Deviations are '
    'those of the stage itself; the table of base parameters adds those of later stages. Locked '
    'rows are the effort of the resting joints. Friction may hold these, so only variations '
    'count, and combinations that would remain too uncertain keep their nominal value.')
#: weight of nominal values without rotor or friction, relative to those of links alone
FAINT = 1e-3


@dataclass(frozen=True)
class Combination:
    """A combination of base parameters solved in a stage, with its deviation."""

    combination: str
    value: float
    std: float


@dataclass(frozen=True)
class StageSummary:
    """Name of a stage, its data, and its results."""

    stage: str
    motions: int
    samples: int
    condition_number: float
    condition_number_raw: float
    found: tuple[Combination, ...]


@dataclass(frozen=True)
class StagedDetails(Details):
    """The stages with results, in order."""

    stages: tuple[StageSummary, ...] = ()

    def sections(self, method: str, rows: Sequence[str]) -> tuple[Section, ...]:
        """Return a section with the results of all stages."""
        cells = tuple(
            Row((stage.stage if first else '', str(stage.motions) if first else '',
                 number(stage.condition_number) if first else '', entry.combination,
                 number(entry.value), number(entry.std, 2)))
            for stage in self.stages
            for first, entry in zip((True, *(False for _ in stage.found[1:])), stage.found,
                                    strict=False))
        if not cells:
            return ()
        columns = ('stage', 'motions', 'condition', 'combination', 'value', 'std')
        return (Section('Stages', text=STAGES, tables=(Table(columns, cells, words=True),)),)


@dataclass(frozen=True, eq=False)
class StagedEstimate(Estimate):
    """An estimate with the `directions` (b, f) that its stages do not determine.

    `shares` are those predicted while each joint moves; None for stages given by the caller.
    """

    directions: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class StagedLeastSquares(Estimator):
    """Least squares stage by stage; ``procedure`` is one of PROCEDURES."""

    procedure: str = setting('distal-to-proximal', tuple(PROCEDURES),
                             f'order of the stages: {" or ".join(PROCEDURES)}')
    name = 'staged'
    summary = 'least squares joint by joint, from recordings in which one joint moves at a time'
    details_type = StagedDetails
    single_joint_motions = True
    open_parameters = 'what no stage determines keeps its nominal value'

    def fit(self, experiment: Experiment) -> StagedEstimate:
        """Find the motions with locked joints in the recordings and estimate stage by stage.

        Raises DataError naming the stage and the joint whose motion is missing.
        """
        model, data = experiment.model, single_joint_data(experiment)
        motions = [motion for motion, _ in data]
        first_stages = moving_joint_stages(model, motions)
        held = model.holding(_solved(model, first_stages,
                                     _of_stages(first_stages, data))[2].values)
        stages = PROCEDURES[self.procedure](model, motions)
        estimate = fit_stages(experiment, stages, _of_stages(stages, data), held)
        remedy = advice(model, motions, estimate.directions) if estimate.not_excited else ''
        return replace(estimate, remedy=remedy,
                       shares=_shares(_of_stages(first_stages, data), estimate.values))


def _shares(stages: Sequence[Information], values: FloatArray) -> FloatArray:
    """Return the predicted share (n,) of variance from stages of moving joints, last first."""
    return np.array([explained_share(information, values)[joint]
                     for joint, information in enumerate(reversed(stages))])


def _of_stages(
    stages: Sequence[Stage], data: Sequence[tuple[LockedJointsMotion, Information]]
) -> list[Information]:
    """Return the information of every stage, merged over its motions."""
    return [reduce(Information.merge, [i for m, i in data if m in stage.motions])
            for stage in stages]


@one_blas_thread()
def fit_stages(
    experiment: Experiment, stages: Sequence[Stage], information: Sequence[Information],
    held: FloatArray | None = None,
) -> StagedEstimate:
    """Solve `stages` in order, each from its `information` about all base parameters.

    `held` (n,) [N m] is the friction that may hold each joint while it is locked. Undetermined
    parameters take their nominal value, and are reported as not excited. The rank does not depend
    on the trembling of the locked joints.
    """
    model = experiment.model
    summaries, degrees, state = _solved(model, stages, information, held)
    values = state.values + state.free.directions @ _nominal(model, state)
    hidden = _hidden(model, state)
    open_rows = np.any(hidden == np.inf, axis=1)
    slight = np.where(open_rows[:, None], 0.0, hidden)
    undetermined = {int(i) for i in np.flatnonzero(open_rows)}
    undetermined |= set(unknown_columns(experiment, np.diag(state.covariance)))
    return StagedEstimate(
        names=model.reduction.names, values=values,
        covariance=state.covariance + slight @ slight.T,
        noise=residual_noise(experiment.information, values),
        condition_raw=max(one.condition_number_raw for one in summaries),
        condition=max(one.condition_number for one in summaries),
        rank=len(values) - state.free.directions.shape[1],
        degrees_of_freedom=degrees,
        method='staged', status=Status.NOT_EXCITED if undetermined else Status.OK,
        not_excited=tuple(model.reduction.names[i] for i in sorted(undetermined)),
        directions=np.where(open_rows[:, None], state.free.directions, 0.0),
        details=StagedDetails(tuple(summaries)),
    )


def _solved(
    model: TorqueModel, stages: Sequence[Stage], information: Sequence[Information],
    held: FloatArray | None = None,
) -> tuple[list[StageSummary], int, Knowledge]:
    """Return the stages with results, least degrees of freedom, and final estimate."""
    sizes = np.max([data.size() for data in information], axis=0)
    state = Knowledge.none(len(model.reduction.names), sizes, held)
    summaries, degrees = [], []
    for stage, data in zip(stages, information, strict=True):
        summary, freedom, state = fit_stage(model, stage, data, state)
        if summary is not None:
            summaries.append(summary)
            degrees.append(freedom)
    return summaries, min(degrees), state


def _hidden(model: TorqueModel, state: Knowledge) -> FloatArray:
    """Return the shifts (b, f) of base parameters along open directions, inf if too large.

    Each direction is scaled to the full effort of a joint at about 1 rad/s. If that changes more
    than the share REFUSED of the effort of a joint, it is too large; smaller shifts belong to the
    deviation. They result from two columns that are nearly dependent while a joint swings.
    """
    sizes, reach = state.sizes[:, None], model.moderate_effort
    share = np.max(reach / np.maximum(sizes, 1e-300), axis=0)  # relative to the effort, per unit
    moved = state.free.directions / np.maximum(share[state.free.owners], 1e-300)
    too_much = (np.abs(moved) * share[:, None] > REFUSED) & (
        np.abs(state.free.directions) > OPEN_COMBINATION_SHARE)
    return np.where(too_much, np.inf, moved)


def _nominal(model: TorqueModel, state: Knowledge) -> FloatArray:
    """Return the free parameters (f,) that bring the base parameters closest to nominal.

    The distance is in effort in a moderate motion. Rotors and friction have no nominal values, so
    base parameters that contain them have little weight.
    """
    matrix = model.reduction.matrix[:, 10 * model.robot.tree.n:]
    reach = model.moderate_effort.max(axis=0)
    weight = reach * np.where(np.any(matrix != 0.0, axis=1), FAINT, 1.0)
    missing = nominal_parameters(model) - state.values
    design = weight[:, None] * state.free.directions
    return np.asarray(np.linalg.lstsq(design, weight * missing, rcond=None)[0])


def nominal_parameters(model: TorqueModel) -> FloatArray:
    """Return the base parameters (b,) of the nominal links without rotors and friction."""
    links = model.robot.nominal.ravel()
    return np.asarray(model.reduction.matrix[:, :len(links)] @ links)


def fit_stage(
    model: TorqueModel, stage: Stage, data: Information, state: Knowledge
) -> tuple[StageSummary | None, int, Knowledge]:
    """Return the result of a stage, its degrees of freedom, and the estimate after it.

    The result is None if it determines nothing. Combinations that the effort leaves too uncertain
    remain free.
    """
    parts = decompose(model, stage, state.free)
    if len(parts.solved):
        fit = stage_fit(model, (stage, parts), data, state)
        refused = _too_uncertain(model, (stage, parts), (state, fit))
        if len(refused):
            parts = parts.without(refused)
            fit = stage_fit(model, (stage, parts), data, state)
    if not len(parts.solved):
        return None, 0, state
    step = state.free.directions[:, parts.solved]
    transfer = np.eye(len(state.values)) - step @ fit.sensitivity
    covariance = transfer @ state.covariance @ transfer.T + step @ fit.covariance @ step.T
    covariance = 0.5 * (covariance + covariance.T)  # rounding
    np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
    after = replace(state, values=state.values + step @ fit.values, covariance=covariance,
                    free=state.free.without(parts))
    combinations = tuple(map(Combination, labels(model, state.free, parts), fit.values.tolist(),
                             np.sqrt(np.diag(fit.covariance)).tolist()))
    summary = StageSummary(
        stage.name, len(stage.motions), data.samples, fit.solution.condition,
        fit.solution.condition_raw, combinations)
    return summary, fit.degrees, after


def _too_uncertain(
    model: TorqueModel, what: tuple[Stage, Decomposition], state: tuple[Knowledge, StageFit],
) -> NDArray[np.int64]:
    """Return the indices of the solved combinations that are too uncertain.

    One standard deviation of them, in a motion at about 1 rad/s, makes more than the share REFUSED
    of the effort of a joint they act on; or the data does not determine them. Combinations in the
    effort of the moving joint, which no friction holds, are accepted if they contradict their
    nominal value.
    """
    (stage, parts), (estimate, fit) = what, state
    reach = model.moderate_effort[:, estimate.free.owners[parts.solved]]
    deviation = np.sqrt(np.diag(fit.covariance))
    refused = np.any(deviation * reach > REFUSED * estimate.sizes[:, None], axis=0)
    if not centred_rows(model, stage):
        nominal = parts.combination @ nominal_parameters(model)[estimate.free.owners]
        refused &= np.abs(fit.values - nominal) < CONTRADICTING_DEVIATIONS * deviation
    undetermined = np.isin(np.arange(len(parts.fitted)), fit.solution.open_columns)
    return np.flatnonzero(refused | undetermined[len(parts.nuisance):])
