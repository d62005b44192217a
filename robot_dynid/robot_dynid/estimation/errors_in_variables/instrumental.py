"""Instrumental variables: unbiased with encoder noise in the regressor (IDIM-IV).

This holds for links and rotors. Dry friction switches with the sign of a noisy velocity, which is
not linear in the noise: it is biased if that noise exceeds the ramp.

Sources: Janot, Vandanjon, Gautier, IEEE Trans. Control Systems Technology 22(1), 2014; Hausman
1978; Staiger, Stock 1997 and Montiel Olea, Pflueger 2013 (weak instruments).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import Row, Table, number
from robot_dynid.effects import JointFriction
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias, HausmanTest, compare
from robot_dynid.estimation.errors_in_variables.instruments import (
    instrument_samples,
    motion_cutoff,
)
from robot_dynid.estimation.estimate import Details, Estimate, Estimator
from robot_dynid.estimation.experiment import Experiment, Regression
from robot_dynid.estimation.information import Information, merge_batches
from robot_dynid.estimation.least_squares import (
    estimate_of,
    joint_weights,
    solve,
    solve_rows,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import covariance
from robot_dynid.numbers import FREQUENCY
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray, Samples

#: instruments are weak below this first-stage F
WEAK_F = 10.0
LEAST_POWER = 1e-30

#: instruments smoothed to more than this share of the cut-off are as noisy as the regressor
CLEAN = 0.7
#: deviation of a sum of white noise, relative to that from batches that fade in and out linearly:
#: the mean of the squared weights is two thirds of the mean weight
OVERLAP = float(np.sqrt(1.5))


@dataclass(frozen=True, eq=False)
class InstrumentDetails(Details):
    """Source and strength of the `instruments`, and the test of least squares.

    `smallest_correlation` with the regressor and `first_stage_f` of the weakest direction;
    `left_to_least_squares` names the parameters that the instruments do not show; `noisy`
    instruments contain most of the noise of the regressor.
    """

    instruments: str
    smallest_correlation: float
    first_stage_f: float
    left_to_least_squares: tuple[str, ...]
    durbin_wu_hausman: HausmanTest
    bias_of_least_squares: tuple[Bias, ...]
    noisy: bool = False

    def sentence(self, rows: Sequence[str]) -> str:
        """Return one sentence: strength of the instruments, and bias of least squares."""
        test = self.durbin_wu_hausman
        degrees = ', '.join(str(d) for d in test.degrees_of_freedom)
        verdict = 'is biased' if test.least_squares_biased else 'shows no bias'
        return (f'instruments from {self.instruments}; least correlation with the regressor '
                f'{number(self.smallest_correlation)}, first-stage F '
                f'{number(self.first_stage_f)}; Durbin-Wu-Hausman F({degrees}) = '
                f'{number(test.f)}, p = {test.p_value:.2g}: least squares {verdict}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return a table of the bias of least squares in every parameter."""
        rows_of_table = []
        for entry in self.bias_of_least_squares:
            deviations = entry.bias / entry.std if entry.std > 0.0 else 0.0
            rows_of_table.append(Row((entry.name, number(entry.bias), number(entry.std, 2),
                              f'{deviations:+.1f}'), 'fair' if abs(deviations) > 3.0 else ''))
        return (Table(('parameter', 'least squares − instruments', 'std', 'in deviations'),
                      tuple(rows_of_table), 'What least squares is off'),)


@dataclass(frozen=True)
class InstrumentalVariables(Estimator):
    """Instrumental variables: the instruments are the regressor along a noise-free motion.

    `instrument_cutoff` [Hz] smooths the motion if no reference was recorded; None: chosen from the
    spectrum of the velocities. `motors` computes noise-free motors of elastic joints; friction may
    then be its own instrument.
    """

    instrument_cutoff: float | None = setting(
        None, FREQUENCY, 'cut-off of the motion that gives the instruments [Hz]; chosen from '
        'the data unless given')
    motors: Callable[[Samples], Samples] | None = None
    name = 'iv'
    summary = 'instrumental variables: unbiased with noisy encoders'
    details_type = InstrumentDetails

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError if recordings cannot be read again."""
        estimate, details = self.fit_and_compare(experiment)
        return replace(estimate, details=details)

    def fit_and_compare(self, experiment: Experiment) -> tuple[Estimate, InstrumentDetails]:
        """Return the estimate and its comparison with least squares; raises as `fit`."""
        cutoff = self.instrument_cutoff or motion_cutoff(experiment.recordings)
        doubled, referenced = reduce_with_instruments(experiment, cutoff, self.motors)
        fit = fit_weights(experiment, doubled)
        if self.motors is not None:
            friction_columns = _own_instruments(doubled, experiment.model.base_of(JointFriction))
            fit = _preferred(fit, fit_weights(experiment, friction_columns))
        plain = fit.least_squares
        changes, others = (OVERLAP * f.changes() for f in (fit, plain))
        solution = replace(solve(experiment.information, fit.weights), values=fit.values)
        estimate = estimate_of(experiment, solution, covariance(changes), self.name)
        comparison = compare((plain.values, others), (fit.values, changes),
                             fit.basis[:, fit.strong])
        source = 'the recorded reference' if referenced else f'the motion below {cutoff:.3g} Hz'
        left = [estimate.names[i] for i in fit.left]
        warnings = [] if fit.strong.all() else [
            f'instruments from {source} are weak in {int((~fit.strong).sum())} of '
            f"{len(fit.strong)} directions, mostly {', '.join(left) or 'mixtures of many'}; least "
            'squares decides these: record the reference of the drives as reference_position, or '
            'give a higher instrument_cutoff']
        used = min((s.cutoff for s in experiment.recordings if s.cutoff is not None),
                   default=np.inf)
        noisy = not referenced and cutoff >= CLEAN * used
        if noisy:
            warnings.append(
                f'instruments from {source} contain most of the noise below the cut-off of '
                f'{used:.3g} Hz: the result is close to least squares. Record the reference of '
                'the drives as reference_position, or give a lower instrument_cutoff')
        details = InstrumentDetails(
            source, float(fit.correlations.min(initial=1.0)), float(fit.f.min(initial=np.inf)),
            tuple(left), comparison.test, comparison.biases(estimate.names), noisy)
        return replace(estimate, warnings=(
            *warnings, *comparison.warnings(estimate.names))), details


def reduce_with_instruments(
    experiment: Experiment, cutoff: float, motors: Callable[[Samples], Samples] | None = None,
) -> tuple[Information, bool]:
    """Return the information of [Z, A], instruments and regressor, and True if from references.

    The noise of differentiated positions cancels between neighbouring stretches of time. Stretches
    therefore fade in and out over each other: a batch rises over one stretch and falls over the
    next; together all batches count every sample once.
    """
    information = experiment.information
    names = (*(f'instrument {name}' for name in information.names), *information.names)
    structure = np.hstack([information.structure, information.structure])
    rising, falling = (experiment.accumulator(names, structure) for _ in range(2))
    ends = np.cumsum([batch.samples for batch in information.batches])
    current: tuple[Samples, Regression] | None = None
    referenced, done = True, 0
    for chunk in experiment.equations(rising):
        samples = chunk.regression.samples
        if current is None or current[0] is not samples:
            clean = instrument_samples(samples, cutoff)
            clean = clean if motors is None else motors(clean)
            current = samples, Regression(experiment.model, clean)
            referenced = referenced and samples.reference_position is not None
        columns = current[1].columns(chunk.rows)
        if chunk.weights is not None:
            columns = columns * chunk.weights.T[:, None, :]
        columns = np.concatenate([columns, chunk.columns], axis=1)
        rows = done + np.arange(len(chunk.effort))
        done += len(rows)
        batch = np.searchsorted(ends, rows, 'right')
        size = np.diff(ends, prepend=0)[batch]
        share = 1.0 - (ends[batch] - rows - 0.5) / size
        for accumulator, squared in ((rising, share), (falling, 1.0 - share)):
            weight = np.sqrt(squared)
            accumulator.add(columns * weight, chunk.effort * weight[:, None],
                            chunk.measured * weight[:, None])
    # batches that rise over one stretch and fall over the next, samples counted once
    up, down = (accumulator.information().batches for accumulator in (rising, falling))
    down = tuple(replace(batch, samples=0) for batch in down)
    pairs = [merge_batches(pair) for pair in zip(up[:-1], down[1:], strict=True)]
    return replace(rising.information(), batches=(down[0], *pairs, up[-1])), referenced


def _own_instruments(doubled: Information, replaced: NDArray[np.bool_]) -> Information:
    """Return the information of [Z, A] with the columns `own` (b,) of Z replaced by those of A."""

    def changed(entered: NDArray[np.bool_], factor: FloatArray) -> FloatArray:
        columns = np.flatnonzero(replaced[entered])
        factor = factor.copy()
        factor[:, columns] = factor[:, columns + int(entered.sum())]
        return factor

    structure = doubled.structure[:, :len(replaced)]
    return replace(doubled, batches=tuple(replace(batch, factors=tuple(
        map(changed, structure, batch.factors))) for batch in doubled.batches))


def _preferred(along_motion: Fit, with_friction: Fit) -> Fit:
    """Return the fit with friction as its own instrument if its bias is a tenth of the other's.

    The bias of instruments is about 1 / F of that of least squares; a tenth counts as strong
    (Staiger, Stock 1997). Friction that falls steeply from rest is a weak instrument along a
    smoothed motion. As its own instrument it is strong but contains the encoder noise, so it must
    reduce the bias to a tenth.
    """
    weakest, other = (float(fit.f.min(initial=np.inf)) for fit in (with_friction, along_motion))
    return with_friction if weakest > WEAK_F * max(other, 1.0) else along_motion


def fit_weights(experiment: Experiment, doubled: Information) -> Fit:
    """Return the fit whose joint weights are the inverse deviations of its residuals."""
    return Fit.of(doubled, joint_weights(
        experiment.information, lambda weights: Fit.of(doubled, weights).values))


@dataclass(frozen=True, eq=False)
class Fit:
    """Instruments and regressor with unit noise, in their canonical directions.

    `basis` (b, r) directions of the parameters, orthonormal in the regressor; `correlations` (r,)
    of instruments and regressor in them, decreasing; `f` (r,) first-stage F of each by the scatter
    of the batches, which holds for coloured noise; `strong` (r,) directions with a large F. In the
    other directions the regressor is its own instrument.
    """

    doubled: Information
    weights: FloatArray
    basis: FloatArray
    correlations: FloatArray
    f: FloatArray
    strong: NDArray[np.bool_]

    @classmethod
    def of(cls, doubled: Information, weights: FloatArray) -> Fit:
        """Return the fit with given joint weights (n,)."""
        from scipy.linalg import solve_triangular

        tall = weighted_factor(doubled, weights)
        b = tall.shape[1] // 2
        root = solve_rows(tall[:, b:]).root
        q, r = np.linalg.qr(tall[:, :b] @ root)
        u, correlations, vt = np.linalg.svd(q.T @ (tall[:, b:-1] @ root))
        basis = root @ vt.T
        spread = np.full(len(correlations), LEAST_POWER)
        for batch in doubled.batches:
            part = weighted_factor(doubled, weights, batch)
            shown = solve_triangular(r, (part[:, :b] @ root).T, trans='T').T @ u
            rest = part[:, b:-1] @ basis - correlations * shown
            spread += OVERLAP**2 * np.sum(shown * rest, axis=0) ** 2
        f = correlations**2 / spread
        return cls(doubled, weights, basis, correlations, f, f > WEAK_F)

    @property
    def least_squares(self) -> Fit:
        """The fit with the regressor as its own instrument in all directions."""
        return replace(self, strong=np.zeros_like(self.strong))

    def _instruments(self, tall: FloatArray) -> FloatArray:
        b = len(self.basis)
        return np.where(self.strong, tall[:, :b] @ self.basis, tall[:, b:-1] @ self.basis)

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Triangle of the instruments, their product with the regressor, and the values."""
        tall = weighted_factor(self.doubled, self.weights)
        q, r = np.linalg.qr(self._instruments(tall))
        coupling = q.T @ (tall[:, len(self.basis):-1] @ self.basis)
        return r, coupling, self.basis @ np.linalg.solve(coupling, q.T @ tall[:, -1])

    @property
    def values(self) -> FloatArray:
        """Base parameters (b,)."""
        return self._solved[2]

    @property
    def left(self) -> list[int]:
        """Indices of the parameters that lie mostly in directions left to least squares."""
        size = np.sum(self.basis**2, axis=1)
        share = np.sum(self.basis[:, ~self.strong] ** 2, axis=1) / np.where(size > 0.0, size, 1.0)
        return [int(i) for i in np.flatnonzero(share > 0.5)]

    def changes(self) -> FloatArray:
        """Return the change (batches, b) of the estimate by every batch."""
        from scipy.linalg import solve_triangular

        r, coupling, values = self._solved
        b = len(values)
        changes = np.empty((len(self.doubled.batches), b))
        for i, batch in enumerate(self.doubled.batches):
            tall = weighted_factor(self.doubled, self.weights, batch)
            q = solve_triangular(r, self._instruments(tall).T, trans='T').T
            rest = coupling - q.T @ (tall[:, b:-1] @ self.basis)
            score = q.T @ (tall[:, -1] - tall[:, b:-1] @ values)
            changes[i] = self.basis @ np.linalg.lstsq(rest, score, rcond=1e-6)[0]
        return changes
