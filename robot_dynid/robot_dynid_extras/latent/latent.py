"""The method latent: motion and parameters at once, where stretches left out do not object.

Friction that falls from rest is chosen along with the motion. Where encoders are noisy, the
cut-off that suits least squares leaves nothing of how friction falls, and a motion that was
estimated with one law fits no other. So motion and parameters are estimated with every law, and
stretches left out in turn say whether one is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dynid.document import Row, Table, number
from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation.elastic import (
    BIASED,
    Deflected,
    DetailsByInstruments,
    ElasticJoints,
    stiffnesses,
    undetermined,
)
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias, beyond_chance
from robot_dynid.estimation.errors_in_variables.instrumental import (
    WEAK_F,
    InstrumentalVariables,
    InstrumentDetails,
)
from robot_dynid.estimation.estimate import Details, Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import Named
from robot_dynid.estimation.information import EXTRA, Batch, Information
from robot_dynid.estimation.least_squares import LeastSquares, estimate_of, solve
from robot_dynid.estimation.uncertainty.between_recordings import covariance, stretches
from robot_dynid.estimation.uncertainty.held_out import surely_lower
from robot_dynid.friction import law_from
from robot_dynid.friction.law import Path
from robot_dynid.types import FloatArray, Progress
from robot_dynid_extras.latent.motion import Condensed, LatentFit, LatentProblem, Searched
from robot_dynid_extras.latent.stretches import Cut, stretches_of

#: law whose dry friction falls from rest, and its setting of the speed over which it does
FALLING: str = 'stribeck'
FALLS_OVER: Path = ('speed',)
#: that speed [rad/s, m/s] to begin with, the least, and the highest; the least in terms of what
#: encoders tell from rest; and that over which dry friction builds up at rest, any below these
SPEED, LEAST, FASTEST, SEEN, BUILT = 0.1, 0.04, 1.0, 2.0, 2e-3
#: errors of equations as the search begins, in terms of those of the fit with another law: where
#: motion and equations hold each other tightly, the motion keeps to the law that it comes from
LOOSER = 30.0
#: a speed that is sought is found where it is so many times away from its bounds
INSIDE = 1.1
#: rounds in which the motion of a stretch left out follows other parameters
FOLLOWING = 5
#: one-sided level at which a misfit has to be lower
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Tried:
    """Laws of friction, and the misfits (groups,) on stretches left out in turn."""

    laws: tuple[Named, ...]
    misfits: FloatArray


def misfits_of(problem: LatentProblem, fit: LatentFit) -> tuple[FloatArray, FloatArray]:
    """Return the misfits (groups,) of groups of stretches with parameters from all others.

    Beside them these parameters (groups, b). Raises LinAlgError where any are not finite.
    """
    misfits, values = [], []
    for group in stretches(len(fit.condensed)):
        without = problem.without(fit.state, group)
        values.append(without.values)
        misfits.append(problem.misfit(without, group, FOLLOWING))
    return finite(np.array(misfits)), finite(np.array(values))


def finite(values: FloatArray) -> FloatArray:
    """Return ``values`` (k,); raises LinAlgError where they are not finite."""
    if not np.all(np.isfinite(values)):
        raise np.linalg.LinAlgError
    return values


def better_laws(
    first: tuple[LatentProblem, LatentFit], chosen: Sequence[Named],
    without: Sequence[Sequence[str]], progress: Progress,
) -> tuple[Named, ...]:
    """Return the laws of all axes, those ``chosen`` or such that fall from rest.

    ``first`` is the fit with those chosen. ``without`` names for every axis the laws and additions
    that are not to be chosen. Raises LinAlgError where the first fit fails.
    """
    misfits, _ = misfits_of(*first)
    progress('choosing friction along the estimated motion', 0.0)
    axes = [i for i, own in enumerate(without) if FALLING not in own]
    try:
        other = _tried(first, chosen, axes)
    except np.linalg.LinAlgError:
        return tuple(chosen)
    if other is None or not surely_lower(other.misfits, misfits, LEVEL):
        return tuple(chosen)
    return other.laws


def with_laws(model: TorqueModel, laws: Sequence[Named]) -> TorqueModel:
    """Return the model with other laws of friction, one of every axis."""
    blocks = tuple(replace(block, laws=tuple(one for _, one in laws))
                   if isinstance(block, JointFriction) else block for block in model.blocks)
    return TorqueModel.of(model.robot, blocks)


def _tried(
    first: tuple[LatentProblem, LatentFit], chosen: Sequence[Named], axes: Sequence[int],
) -> Tried | None:
    """Return the fit with FALLING on ``axes``, from the motion and parameters of the first.

    Where friction falls below what is seen of it, an axis keeps its law.
    """
    problem, fit = first
    if not axes:
        return None
    own = list(chosen)
    for axis in axes:
        own[axis] = (FALLING, law_from(FALLING, {'width': BUILT}).reshaped({FALLS_OVER: SPEED}))
    model = with_laws(problem.model, own)
    known = dict(zip(problem.model.reduction.names, fit.state.values, strict=True))
    low = np.full(len(own), LEAST)
    if len(problem.slowest):
        low = np.maximum(low, SEEN * problem.slowest)
    searched = tuple(Searched((axis,), FALLS_OVER, float(low[axis]), FASTEST) for axis in axes)
    speeds = np.array([max(SPEED, one.low) for one in searched])
    other = LatentProblem(model, problem.stretches,
                          np.ones(len(model.reduction.names), dtype=bool), searched,
                          problem.slowest)
    state = replace(fit.state, shapes=speeds, errors=LOOSER * fit.state.errors, values=np.array(
        [known.get(parameter, 0.0) for parameter in model.reduction.names]))
    found = other.fit(state)
    finite(found.state.values)
    resolved = [axis for axis, speed, one in zip(axes, found.state.shapes, searched, strict=True)
                if INSIDE * one.low < speed < one.high / INSIDE]
    if len(resolved) < len(axes):
        return _tried(first, chosen, resolved)
    for axis, speed in zip(axes, found.state.shapes.tolist(), strict=True):
        own[axis] = (FALLING, own[axis][1].reshaped({FALLS_OVER: speed}))
    return Tried(tuple(own), misfits_of(other, found)[0])


#: said of a fit that is not finite
RAN_AWAY = 'motion and parameters do not come to an agreement'
#: parameters named where a fit is refused
NAMED = 5
#: eigenvalues of equations below this share of the largest are rounding
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class LatentDetails(Details):
    """The method ``start`` gave the first parameters.

    ``stretches`` of about ``seconds`` each and ``rounds`` of the fit; ``position_noise`` (m,)
    [rad, m] of the encoders, joints and then motors, and ``effort_error`` (m,) [N m] of the
    equations of links and of motors. ``gain`` of the logarithm of the likelihood per sample on
    stretches left out in turn, and whether that is ``sure``; ``kept`` says whether the fit was. It
    is not where it leaves stiffnesses ``undetermined``: a motion of the gear is made up for them
    then; nor where instruments have ``contradicted`` it, the clearest difference first.
    """

    start: str
    stretches: int = 0
    seconds: float = 0.0
    rounds: int = 0
    position_noise: FloatArray = field(default_factory=lambda: np.empty(0))
    effort_error: FloatArray = field(default_factory=lambda: np.empty(0))
    gain: float = 0.0
    sure: bool = False
    kept: bool = False
    undetermined: tuple[str, ...] = ()
    contradicted: tuple[Bias, ...] = ()

    @property
    def refusal(self) -> str:
        """Reason for which the fit is not kept, '' where it is."""
        if self.kept:
            return ''
        if self.undetermined:
            return (f'the method latent does not tell {", ".join(self.undetermined)} from '
                    'infinity, so it makes up how that gear bends')
        if self.contradicted:
            return ('instrumental variables contradict the method latent: it finds ' + ', '.join(
                f'{one.name} {one.bias / one.std:+.1f}' for one in self.contradicted[:NAMED])
                + ' of their deviations away')
        return ('the misfit on stretches left out is not surely lower with the method latent than '
                f'with {self.start}')

    def sentence(self, rows: Sequence[str]) -> str:
        """Return the likelihood of stretches left out beside that of the start."""
        if not self.stretches:
            return f'{RAN_AWAY}: the parameters of {self.start} are kept'
        verdict = 'kept' if self.kept else f'the parameters of {self.start} are kept'
        side = 'above' if self.gain >= 0.0 else 'below'
        unknown = f', with {", ".join(self.undetermined)} unknown' if self.undetermined else ''
        if self.contradicted:
            off = ', '.join(one.name for one in self.contradicted[:NAMED])
            unknown += f', with {off} contradicted by instrumental variables'
        return (f'motion and parameters at once on {self.stretches} stretches of '
                f'{number(self.seconds, 3)} s, {self.rounds} rounds from {self.start}; per sample '
                'of stretches left out the logarithm of the likelihood is '
                f'{number(abs(self.gain), 2)} {side} that with {self.start}, '
                f'{"" if self.sure else "not "}surely{unknown}: {verdict}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the noise of every encoder and the error of its equation."""
        if not self.stretches:
            return ()
        cells = tuple(Row((name, number(1e6 * float(noise)), number(float(error))))
                      for name, noise, error in zip(
                          rows, self.position_noise, self.effort_error, strict=False))
        return (Table(('', 'encoder [µrad, µm]', 'equation [N m, N]'), cells,
                      'Noise of the encoders, and errors of the equations of motion'),)


@dataclass(frozen=True)
class Latent(Estimator):
    """Motion and parameters at once, from those of ``elastic``, of rigid robots from ``wls``.

    Both are compared on stretches left out in turn: the sum of squares of what encoders and
    equations of motion are off, along the motion that makes it least with the parameters given.
    Where that is not surely lower than with the start, this is kept. Deviations are those by
    leaving out stretches.
    """

    name = 'latent'
    summary = 'motion and parameters at once, for noisy encoders'
    details_type = LatentDetails
    estimates_motion = True

    def laws(
        self, experiment: Experiment, chosen: Sequence[Named], without: Sequence[Sequence[str]],
    ) -> Sequence[Named]:
        """Return the laws of friction, those ``chosen`` or such that fall from rest.

        The latter only where the fit with them will be kept: the parameters of the start with laws
        that it would not choose, and that nothing compares, are no answer. ``without`` names for
        every axis laws that are not to be taken. Raises DataError as `fit`.
        """
        try:
            found = Fitted.of(experiment)
            assert experiment.as_recorded is not None
            better = better_laws((found.problem, found.fit), chosen, without,
                                 experiment.as_recorded.progress)
            if better == tuple(chosen):
                return chosen
            other = _with_laws(experiment, better)
            _, verdict = _compared(other, Fitted.of(other))
        except np.linalg.LinAlgError:
            return chosen
        return better if verdict.kept else chosen

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters.

        Raises DataError without the recordings as they were recorded, or where these are too
        short.
        """
        start = starting_estimate(experiment)
        try:
            estimate, details = _compared(experiment, Fitted.of(experiment, start))
        except np.linalg.LinAlgError:
            return _kept(start, LatentDetails(start.method), RAN_AWAY)
        if not details.kept:
            return _kept(start, details, details.refusal)
        return replace(estimate, details=details)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit, the problem it solves, and the stretches that it is about.

    ``begun`` is the fit of the motion alone with the parameters of the ``start``.
    """

    start: Estimate
    problem: LatentProblem
    begun: LatentFit
    fit: LatentFit
    cut: Cut

    @classmethod
    def of(cls, experiment: Experiment, start: Estimate | None = None) -> Fitted:
        """Fit motion and parameters; raises LinAlgError where they run away."""
        recorded, model = experiment.as_recorded, experiment.model
        if recorded is None:
            raise DataError('the method latent needs the recordings as they were recorded; '
                            'samples that passed a filter do not do: use identify()')
        cut = stretches_of(recorded)
        problem = LatentProblem(
            model, cut.stretches, np.ones(len(model.reduction.names), dtype=bool),
            slowest=cut.slowest(axes_of(model.robot).matrix))
        start = start or starting_estimate(experiment)
        begun = problem.with_known_parameters.fit(problem.guess(values=start.values))
        fit = problem.fit(begun.state, recorded.progress)
        if not np.all(np.isfinite(fit.state.values)):
            raise np.linalg.LinAlgError
        return cls(start, problem, begun, fit, cut)


def starting_estimate(experiment: Experiment) -> Estimate:
    """Return the estimate that the fit begins with, and is compared with."""
    starter = ElasticJoints() if experiment.model.gears else LeastSquares()
    return starter.fit(experiment)


def _kept(start: Estimate, details: LatentDetails, why: str) -> Estimate:
    """Return the start, with the reason."""
    return replace(start, method=Latent.name, details=details, warnings=(
        *start.warnings, f'{why}: the parameters of the method {details.start} are kept'))


def _with_laws(experiment: Experiment, laws: Sequence[Named]) -> Experiment:
    """Return the experiment with other laws of friction."""
    model = with_laws(experiment.model, laws)
    made = Experiment.of(model, experiment.recordings, experiment.reversal_weights)
    return replace(made, as_recorded=experiment.as_recorded)


def _compared(experiment: Experiment, found: Fitted) -> tuple[Estimate, LatentDetails]:
    """Return the estimate of a fit, and the verdict of stretches left out.

    Raises LinAlgError where a misfit is not finite.
    """
    misfits, without = misfits_of(found.problem, found.fit)
    before, fit, cut = misfits_of_start(found), found.fit, found.cut
    first, sure = cut.stretches[0].time, surely_lower(misfits, before, LEVEL)
    estimate = _estimate(experiment, found, covariance(without))
    unknown = undetermined(estimate, stiffnesses(experiment.model))
    off = _contradicted(experiment, found.start, estimate) if sure else ()
    return estimate, LatentDetails(
        found.start.method, len(cut.stretches), float(first[-1] - first[0]), fit.rounds, cut.noise,
        fit.state.errors, float(np.mean(before - misfits)), sure,
        sure and not unknown and not off, unknown, off)


def _contradicted(
    experiment: Experiment, start: Estimate, estimate: Estimate
) -> tuple[Bias, ...]:
    """Return the parameters of an ``estimate`` that instruments contradict, the clearest first.

    Likelihood does not see whether a model that lacks something puts the motion, and parameters
    with it, elsewhere. Where an estimate is unbiased, it is no less precise than instruments, and
    differs from them by their deviation at most (Hausman), at the level BIASED. It is contradicted
    where neither holds: where it is the more precise one, friction may have biased instruments,
    which are noisy there. None is where the start differs from them still more. Instruments that
    are weak in any direction, or noisy, contradict nothing, and friction is not judged.
    """
    other, details = instrumental_estimate(experiment, start)
    if details.noisy or details.first_stage_f <= WEAK_F:
        return ()
    judged = np.flatnonzero(~experiment.model.base_of(JointFriction))
    std = other.std[judged]
    difference, before = ((one.values - other.values)[judged] for one in (estimate, start))
    known = std > 0.0
    if np.sum((before / std)[known]**2) > np.sum((difference / std)[known]**2):
        return ()
    far = beyond_chance(difference, std, other.degrees_of_freedom, BIASED)
    return tuple(Bias(other.names[judged[k]], float(difference[k]), float(std[k]))
                 for k in far if estimate.std[judged[k]] > std[k])


def instrumental_estimate(
    experiment: Experiment, start: Estimate
) -> tuple[Estimate, InstrumentDetails]:
    """Return the estimate by instruments, which the ``start`` of elastic joints may be."""
    if isinstance(start.details, DetailsByInstruments):
        return start, start.details
    motors = Deflected(experiment.model, start.values) if experiment.model.gears else None
    return InstrumentalVariables(motors=motors).fit_and_compare(experiment)


def misfits_of_start(found: Fitted) -> FloatArray:
    """Return the misfits (groups,) with the parameters of the start, which has seen all groups."""
    known, begun = found.problem.with_known_parameters, found.begun
    return finite(np.array([known.misfit(begun.state, group, 0)
                            for group in stretches(len(begun.condensed))]))


def _estimate(
    experiment: Experiment, of: Fitted, spread: tuple[FloatArray, int]
) -> Estimate:
    """Return the estimate of a fit with a covariance (b, b) and its degrees of freedom."""
    names = experiment.model.reduction.names
    information = Information(names, np.ones((1, len(names)), dtype=bool), tuple(
        Batch((_factor(one),), len(stretch.stamps), stretch.recording)
        for one, stretch in zip(of.fit.condensed, of.cut.stretches, strict=True)))
    last = solve(information, np.ones(1))
    return estimate_of(experiment, replace(last, values=of.fit.state.values), spread, Latent.name)


def _factor(one: Condensed) -> FloatArray:
    """Return equations (b, b + 3) with the normal matrix of a stretch, their values left out."""
    scale = np.sqrt(np.maximum(np.diag(one.normal), 1e-300))
    values, vectors = np.linalg.eigh(one.normal / np.outer(scale, scale))
    root = np.sqrt(np.where(values > ROUNDING * values[-1], values, 0.0))
    b = len(scale)
    wide = np.zeros((b, b + EXTRA))
    wide[:, :b] = (root[:, None] * vectors.T) * scale
    return wide


LATENT = Latent()
