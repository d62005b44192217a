"""The method latent: motion and parameters at once, where parts left out do not object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dynid.document import Row, Table, number
from robot_dynid.errors import DataError
from robot_dynid.estimation.elastic import ElasticJoints, stiffnesses, undetermined
from robot_dynid.estimation.errors_in_variables.latent_laws import (
    better_laws,
    finite,
    misfits_of,
    with_laws,
)
from robot_dynid.estimation.errors_in_variables.latent_motion import (
    Condensed,
    LatentFit,
    LatentProblem,
)
from robot_dynid.estimation.errors_in_variables.recorded_stretches import (
    Cut,
    groups_of,
    stretches_of,
)
from robot_dynid.estimation.estimate import Details, Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.selection_data import Named
from robot_dynid.estimation.information import EXTRA, FILTERED, RAW, Batch, Information
from robot_dynid.estimation.least_squares import (
    LeastSquares,
    estimate_of,
    solve,
)
from robot_dynid.estimation.quantiles import student_quantile
from robot_dynid.estimation.uncertainty.jackknife import covariance
from robot_dynid.regressor import axes_of
from robot_dynid.types import FloatArray

#: one-sided level at which a misfit is lower
LEVEL = 0.95
#: eigenvalues of equations below this share of the largest are rounding
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class LatentDetails(Details):
    """The method ``start`` gave the first parameters.

    ``stretches`` of about ``seconds`` each and ``rounds`` of the fit; ``position_noise`` (m,)
    [rad, m] of the encoders, joints and then motors, and ``effort_error`` (m,) [N m] of the
    equations of links and of motors. ``gain`` of the logarithm of the likelihood per sample, on
    parts left out in turn, is sure to ``margin``; ``kept`` says whether the fit was. It is not
    where it leaves stiffnesses ``undetermined``: a motion of the gear is made up for them then.
    """

    start: str
    stretches: int = 0
    seconds: float = 0.0
    rounds: int = 0
    position_noise: FloatArray = field(default_factory=lambda: np.empty(0))
    effort_error: FloatArray = field(default_factory=lambda: np.empty(0))
    gain: float = 0.0
    margin: float = 0.0
    kept: bool = False
    undetermined: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Reason for which the fit is not kept, '' where it is."""
        if self.kept:
            return ''
        if self.undetermined:
            return (f'the method latent does not tell {", ".join(self.undetermined)} from '
                    'infinity, so it makes up how that gear bends')
        return ('the misfit on parts left out is not surely lower with the method latent than '
                f'with {self.start}')

    def sentence(self, rows: Sequence[str]) -> str:
        """Return the likelihood of parts left out beside that of the start."""
        verdict = 'kept' if self.kept else f'the parameters of {self.start} are kept'
        side = 'above' if self.gain >= 0.0 else 'below'
        unknown = f', with {", ".join(self.undetermined)} unknown' if self.undetermined else ''
        return (f'motion and parameters at once on {self.stretches} stretches of '
                f'{number(self.seconds, 3)} s, {self.rounds} rounds from {self.start}; per sample '
                'of parts left out the logarithm of the likelihood is '
                f'{number(abs(self.gain), 2)} {side} that with {self.start}, sure to '
                f'{number(self.margin, 2)}{unknown}: {verdict}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the noise of every encoder and the error of its equation."""
        cells = tuple(Row((name, number(1e6 * float(noise)), number(float(error))))
                      for name, noise, error in zip(
                          rows, self.position_noise, self.effort_error, strict=False))
        return (Table(('', 'encoder [µrad, µm]', 'equation [N m, N]'), cells,
                      'Noise of the encoders, and errors of the equations of motion'),)


@dataclass(frozen=True)
class Latent(Estimator):
    """Motion and parameters at once, from those of ``elastic``, of rigid robots from ``wls``.

    Both are compared on parts left out in turn: the sum of squares of what encoders and
    equations of motion are off, along the motion that makes it least with the parameters given.
    Where that is not surely lower than with the start, this is kept. Deviations are those by
    leaving out parts.
    """

    name = 'latent'
    summary = 'motion and parameters at once: encoders are as noisy as they are'
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
            found = _Fitted.of(experiment)
            assert experiment.as_recorded is not None
            better = better_laws((found.problem, found.fit), chosen, without,
                                 experiment.as_recorded.progress)
            if better == tuple(chosen):
                return chosen
            other = _with_laws(experiment, better)
            _, verdict = _compared(other, _Fitted.of(other))
        except np.linalg.LinAlgError:
            return chosen
        return better if verdict.kept else chosen

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters.

        Raises DataError without the recordings as they were recorded, or where these are too
        short.
        """
        start = _start(experiment)
        try:
            estimate, details = _compared(experiment, _Fitted.of(experiment, start))
        except np.linalg.LinAlgError:
            return _kept(start, LatentDetails(start.method),
                         'motion and parameters do not come to an agreement')
        if not details.kept:
            return _kept(start, details, details.refusal)
        return replace(estimate, details=details)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fit, the problem it solves, and the stretches that it is about.

    ``begun`` is the fit of the motion alone with the parameters of the ``start``.
    """

    start: Estimate
    problem: LatentProblem
    begun: LatentFit
    fit: LatentFit
    cut: Cut

    @classmethod
    def of(cls, experiment: Experiment, start: Estimate | None = None) -> _Fitted:
        """Fit motion and parameters; raises LinAlgError where they run away."""
        recorded, model = experiment.as_recorded, experiment.model
        if recorded is None:
            raise DataError('the method latent needs the recordings as they were recorded; '
                            'samples that passed a filter do not do: use identify()')
        cut = stretches_of(recorded)
        problem = LatentProblem(
            model, cut.stretches, np.ones(len(model.reduction.names), dtype=bool),
            slowest=cut.slowest(axes_of(model.robot).matrix))
        start = start or _start(experiment)
        begun = problem.with_known_parameters.fit(problem.guess(values=start.values))
        fit = problem.fit(begun.state, recorded.progress)
        if not np.all(np.isfinite(fit.state.values)):
            raise np.linalg.LinAlgError
        return cls(start, problem, begun, fit, cut)


def _start(experiment: Experiment) -> Estimate:
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


def _compared(experiment: Experiment, found: _Fitted) -> tuple[Estimate, LatentDetails]:
    """Return the estimate of a fit, and the verdict of parts left out.

    Raises LinAlgError where a misfit is not finite.
    """
    misfits, without = misfits_of(found.problem, found.fit)
    gains, fit, cut = _misfits_of_start(found) - misfits, found.fit, found.cut
    count = len(gains)
    margin = float(student_quantile(LEVEL, count - 1) * np.std(gains, ddof=1) / np.sqrt(count))
    first = cut.stretches[0].time
    gain = float(np.mean(gains))
    estimate = _estimate(experiment, found, covariance(without))
    unknown = undetermined(estimate, stiffnesses(experiment.model))
    return estimate, LatentDetails(
        found.start.method, len(cut.stretches), float(first[-1] - first[0]), fit.rounds, cut.noise,
        fit.state.errors, gain, margin, gain > margin and not unknown, unknown)


def _misfits_of_start(found: _Fitted) -> FloatArray:
    """Return the misfits (groups,) with the parameters of the start, which has seen all groups.

    Raises LinAlgError where one is not finite.
    """
    known, begun = found.problem.with_known_parameters, found.begun
    return finite(np.array([known.misfit(begun.state, group, 0)
                            for group in groups_of(known.stretches)]))


def _estimate(
    experiment: Experiment, of: _Fitted, spread: tuple[FloatArray, int]
) -> Estimate:
    """Return the estimate of a fit with a covariance (b, b) and its degrees of freedom."""
    names = experiment.model.reduction.names
    information = Information(names, np.ones((1, len(names)), dtype=bool), tuple(
        Batch((_factor(one),), len(stretch.stamps), stretch.recording)
        for one, stretch in zip(of.fit.condensed, of.cut.stretches, strict=True)))
    last = solve(information, np.ones(1))
    return estimate_of(experiment, replace(last, values=of.fit.state.values), spread, Latent.name)


def _factor(one: Condensed) -> FloatArray:
    """Return equations (b, b + 3) of the step with the normal equations of a stretch."""
    scale = np.sqrt(np.maximum(np.diag(one.normal), 1e-300))
    values, vectors = np.linalg.eigh(one.normal / np.outer(scale, scale))
    known = values > ROUNDING * values[-1]
    root = np.sqrt(np.where(known, values, 0.0))
    b = len(scale)
    wide = np.zeros((b, b + EXTRA))
    wide[:, :b] = (root[:, None] * vectors.T) * scale
    right = np.divide(vectors.T @ (one.right / scale), root, out=np.zeros(b), where=known)
    wide[:, b + FILTERED] = wide[:, b + RAW] = right
    return wide
