"""Kinematic error and hysteresis of elastic gears: selection, and remaining uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import GearEffects, Springs
from robot_dynid.effects.gears import (
    COSINE,
    DAMPING,
    OFFSET,
    SINE,
    STATES,
    STIFFNESS,
    Gear,
    LoadedHysteresis,
    deflection,
    presses_per_radian,
)
from robot_dynid.errors import DataError
from robot_dynid.estimation.estimate import Estimate
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information, triangle
from robot_dynid.estimation.joint_covariance import (
    CorrelationDetails,
    GeneralisedLeastSquares,
    whiten_equations,
)
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    solve,
    solve_rows,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.estimation.uncertainty.held_out import (
    errors_by_cell,
    held_out,
    surely_lower,
)
from robot_dynid.estimation.uncertainty.random_effects import fit_random_effects
from robot_dynid.friction.laws import LENGTHS
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import FloatArray, Samples

#: least share by which an effect must lower the held-out error of the gear's equation
LESS = 0.01
#: one-sided level of the test that the error fell, stretch by stretch: many effects are tried, and
#: encoder noise makes some of them lower the error of one stretch by a lot
FALLEN_LEVEL = 0.999
#: operators slip if the deflection covers this many of their lengths; only shorter ones are tried
SLIP_LENGTHS = 4.0
#: alternating searches of waves and hysteresis states: without states, waves come out too large
HYSTERESIS_ROUNDS = 2
#: cut-offs relative to that of a fit that show the dependence on it
CUTOFF_SHARES = (2.0 / 3.0, 1.5)
#: lengths of the states of each kind that represent hysteresis of another law
HYSTERESIS_LENGTHS = 7


def gear_effects(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples],
    previous: Sequence[GearEffects] = (),
) -> tuple[GearEffects, ...]:
    """Return the effects of every elastic joint that the data shows; empty if it shows none.

    First the kinematic error, which then moves the hysteresis states. Every effect must lower the
    held-out error of the gear's equation; of the kinds of states the one that lowers it most is
    taken. ``previous`` are those of other samples of the same recordings, to start from.
    """
    gears = Springs(robot).gears
    none = [GearEffects()] * len(gears)
    plain = Search.of(robot, structure, samples, none, [one.waves for one in none])
    effects = tuple(
        replace(one, error=one.error or (0.0, 0.0), unbent=unbent)
        if presses_per_radian(robot, gear) else one
        for gear, unbent, one in zip(gears, plain.unbent(), previous or none, strict=True))
    lengths = [_lengths(gear, samples) for gear in gears]
    for _ in range(1 if previous else HYSTERESIS_ROUNDS):
        with_error = Search.of(robot, structure, samples, effects,
                               [e.waves for e in effects]).select_waves()
        kinds = [
            [replace(one, lengths=slipping, states=states)
             for one, slipping in zip(with_error, lengths, strict=True)] for states in STATES]
        effects = _least_error([
            Search.of(robot, structure, samples, kind, [one.stops for one in kind]).select_stops()
            for kind in kinds])
        if not any(one.stops and one.waves for one in effects):
            break
    if not any(one != GearEffects() for one in effects):
        return ()
    return _refit_error(robot, structure, samples, effects)


def _refit_error(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples],
    effects: tuple[GearEffects, ...],
) -> tuple[GearEffects, ...]:
    """Return the effects, with states moved by the kinematic error of a fit with all of them.

    Waves act on motors and links, whose residuals depend on each other: without this step an
    amplitude may be a tenth too small, which doubles the error of the damping.
    """
    if not any(one.waves and one.lengths for one in effects):
        return effects
    model = replace(structure, gears=effects).torque_model(robot)
    fit = GeneralisedLeastSquares().fit(Experiment.of(model, samples))
    values = dict(zip(fit.names, fit.values.tolist(), strict=True))
    return tuple(replace(one, error=_error(gear, values)) if one.waves else one
                 for gear, one in zip(model.gears, effects, strict=True))


def _error(gear: Gear, values: Mapping[str, float]) -> tuple[float, float]:
    """Return the kinematic error [rad] of a gear from the values of its parameters."""
    stiffness = values[gear.parameter(STIFFNESS)]
    return (values[gear.parameter(SINE)] / stiffness, values[gear.parameter(COSINE)] / stiffness)


def omitted_effects(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples], method: str
) -> list[str]:
    """Return a warning about effects that the data shows and ``method`` omits, if any."""
    gears, effects = Springs(robot).gears, gear_effects(robot, structure, samples)
    joints = [robot.joints[gear.joint] for gear, one in zip(gears, effects, strict=False)
              if one != GearEffects()]
    return [f'{", ".join(joints)}: the method {method} omits kinematic error and hysteresis of '
            'gears, which this data shows, and treats them as damping: use method elastic'
            ] if joints else []


def _least_error(
    candidates: Sequence[tuple[FloatArray, tuple[GearEffects, ...]]]
) -> tuple[GearEffects, ...]:
    """Return for every gear the candidate effects with the least error."""
    errors, effects = zip(*candidates, strict=True)
    return tuple(options[best] for best, *options in zip(np.argmin(errors, axis=0), *effects,
                                                         strict=True))


def _lengths(gear: Gear, samples: Sequence[Samples]) -> tuple[float, ...]:
    """Return the lengths of operators that slip in some recording."""
    covered = _covered(gear, samples)
    return tuple(length for length in LENGTHS if SLIP_LENGTHS * length < covered)


def _covered(gear: Gear, samples: Sequence[Samples]) -> float:
    """Return the largest range of the deflection [rad] in a recording."""
    return max(float(np.ptp(deflection(gear, one))) for one in samples)


def allow_for_low_pass(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate with its changes under other cut-offs added to the covariance.

    Hysteresis states are no linear function of the deflection, but are driven by the filtered one:
    what the low-pass removed is missing, and the noise it passed is too much, equally in every
    stretch of time. The mean square of the changes for a lower and a higher cut-off is added. This
    error exists also with the right law, which `allow_for_other_hysteresis` does not cover.
    """
    robot, model = experiment.model.robot, experiment.model

    def values(share: float) -> FloatArray:
        other = replace(settings, cutoff=share * settings.cutoff)
        samples = [prepare(robot, one, other) for one in recordings]
        return GeneralisedLeastSquares().fit(Experiment.of(
            model, samples, experiment.reversal_weights)).values

    best, changes = values(1.0), []
    for share in CUTOFF_SHARES:
        with suppress(DataError):  # too short for a lower one
            changes.append((values(share) - best) / np.sqrt(len(CUTOFF_SHARES)))
    return replace(estimate, covariance=estimate.covariance + sum(
        np.outer(change, change) for change in changes))


def allow_for_other_hysteresis(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate for hysteresis that differs from the law of the model.

    The difference is represented by states of all kinds and many lengths, including load-dependent
    and one-sided ones, with random amplitudes: their variance, one per gear, comes from the data,
    nearly zero if the law is right. Stiffness and damping take their most likely values given
    these amplitudes, with the corresponding covariance; everything else is least squares with this
    stiffness and damping. An estimate with bounded parameters keeps its values, and the change is
    added to its covariance. The random states are driven by the same deflection as those of the
    model, so the effect of the low-pass is not included: `allow_for_low_pass`. Source: Kennedy,
    O'Hagan 2001 (model inadequacy by a prior).
    """
    samples = [prepare(experiment.model.robot, one, settings) for one in recordings]
    random = random_hysteresis(Experiment.of(
        experiment.model, samples, experiment.reversal_weights), structure, settings.cutoff)
    of_gears = {gear.parameter(symbol) for gear in experiment.model.gears
                for symbol in (STIFFNESS, DAMPING)}
    gear_rows = [i for i, name in enumerate(estimate.names) if name in of_gears]
    follow = random.shape[:, gear_rows] @ np.linalg.pinv(
        random.shape[np.ix_(gear_rows, gear_rows)], hermitian=True)
    rest = np.eye(len(estimate.names))
    rest[:, gear_rows] -= follow
    change = follow @ random.change[gear_rows]
    covariance = (rest @ estimate.covariance @ rest.T
                  + follow @ random.covariance[np.ix_(gear_rows, gear_rows)] @ follow.T)
    if estimate.standard is not None:
        return replace(estimate, covariance=covariance + np.outer(change, change))
    return replace(estimate, values=estimate.values + change, covariance=covariance)


@dataclass(frozen=True, eq=False)
class RandomHysteresis:
    """Parameters with random effects: ``change`` (b,) from least squares, ``covariance`` (b, b).

    ``shape`` (b, b) is the covariance of least squares for noise of variance one.
    """

    change: FloatArray
    covariance: FloatArray
    shape: FloatArray


def random_hysteresis(
    experiment: Experiment, structure: Structure, cutoff: float
) -> RandomHysteresis:
    """Return the parameters with random amplitudes of states, of one variance per gear.

    Their covariance combines the scatter between stretches of time, as for least squares, with
    that of the amplitudes. The low-pass of ``cutoff`` [Hz] correlates the noise of neighbouring
    samples.
    """
    robot, gears = experiment.model.robot, experiment.model.gears
    samples = list(experiment.recordings)
    states = tuple(replace(one, lengths=tuple(np.geomspace(
        0.5 * LENGTHS[0], max(LENGTHS[0], _covered(gear, samples)), HYSTERESIS_LENGTHS).tolist()))
        for gear, one in zip(gears, structure.gears, strict=True))
    amplitudes = LoadedHysteresis(robot, gears, states)
    model = TorqueModel.of(robot, (*experiment.model.blocks, amplitudes))
    wide = Experiment.of(model, samples, experiment.reversal_weights)
    details = GeneralisedLeastSquares().fit(experiment).details
    assert isinstance(details, CorrelationDetails)
    white, ones = whiten_equations(wide, details.omega), np.ones(len(details.omega))
    tall = triangle(weighted_factor(white, ones))
    alike = max(1.0, 1.0 / (2.0 * cutoff * min(
        float(np.median(np.diff(one.time))) for one in samples)))
    degrees = max(wide.information.samples * len(ones) - tall.shape[1] + 1, 1)
    count = len(amplitudes.names)
    solution, pulled = fit_random_effects(
        tall, np.repeat(np.arange(len(gears)), count // len(gears)),
        alike * float(tall[-1, -1]**2) / degrees)
    scatter, _ = batch_covariance(
        white, ones, solution, friction_scales(model, solution.values))
    plain = solve_rows(np.delete(tall, np.s_[-count - 1:-1], axis=1))
    fixed = slice(tall.shape[1] - 1 - count)
    return RandomHysteresis(solution.values[fixed] - plain.values,
                             (scatter + pulled)[fixed, fixed],
                   plain.root @ plain.root.T)


@dataclass(frozen=True, eq=False)
class Search:
    """Information about a model with ``effects``, of which ``tried`` parameters are in question.

    ``information`` has five parts of ``stretches``.
    """

    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]
    tried: tuple[tuple[str, ...], ...]
    information: Information

    @classmethod
    def of(cls, robot: RobotModel, structure: Structure, samples: Sequence[Samples],
           effects: Sequence[GearEffects], tried: Sequence[tuple[str, ...]]) -> Search:
        """Reduce the samples with all effects; ``tried`` are parameters of each gear."""
        model = replace(structure, gears=tuple(effects)).torque_model(robot)
        information = Experiment.of(model, samples).information
        return cls(model.gears, tuple(effects), tuple(tried), information)

    def unbent(self) -> list[float]:
        """Return the deflection [rad] of every unloaded gear."""
        values = self._values([()] * len(self.gears))
        return [-values[gear.parameter(OFFSET)] / values[gear.parameter(STIFFNESS)]
                for gear in self.gears]

    def select_waves(self) -> tuple[GearEffects, ...]:
        """Return the kinematic errors that the data shows."""
        if not any(self.tried):
            return self.effects
        shown, values = self._lowers_error(self.tried), self._values(self.tried)
        effects = []
        for gear, one, yes in zip(self.gears, self.effects, shown, strict=True):
            if not (yes and one.waves):
                effects.append(GearEffects())
                continue
            effects.append(replace(one, error=_error(gear, values)))
        return tuple(effects)

    def select_stops(self) -> tuple[FloatArray, tuple[GearEffects, ...]]:
        """Return the errors (e,) of the gears' equations, and the required effects.

        States without amplitude are dropped first, then one by one the least important, as long as
        the held-out error does not rise.
        """
        stops = self._positive(list(self.tried))
        while any(stops):
            bound, previous = self._errors(stops), stops
            trials = [[symbols[:i] + symbols[i + 1:] for symbols in stops]
                      for i in range(max(map(len, stops)))]
            errors = np.array([self._errors(trial) for trial in trials])
            best = np.argmin(errors, axis=0)
            stops = [trials[i][g] if errors[i, g] <= bound[g] else symbols
                     for g, (i, symbols) in enumerate(zip(best, stops, strict=True))]
            if stops == previous:
                break
        shown = self._lowers_error(stops)
        effects = []
        for one, symbols, yes in zip(self.effects, stops, shown, strict=True):
            lengths = tuple(length for symbol, length in zip(one.stops, one.lengths, strict=True)
                            if yes and symbol in symbols)
            effects.append(replace(one, lengths=lengths,
                                   states=one.states if lengths else GearEffects.states))
        return self._errors(stops), tuple(effects)

    def _positive(self, stops: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return ``stops`` without those of no amplitude, dropping the worst of each gear in turn.
"""
        while True:
            values = self._values(stops)
            amplitudes = [{values[gear.parameter(stop)]: stop for stop in symbols}
                          for gear, symbols in zip(self.gears, stops, strict=True)]
            left = [tuple(stop for stop in symbols
                          if min(sizes) > 0.0 or stop != sizes[min(sizes)])
                    for symbols, sizes in zip(stops, amplitudes, strict=True)]
            if left == stops:
                return stops
            stops = left

    def _about(self, selected: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
        """Return the indices of the selected tried parameters and of all untried ones."""
        out = {gear.parameter(s) for gear, every, symbols in zip(
            self.gears, self.tried, selected, strict=True) for s in set(every) - set(symbols)}
        return np.flatnonzero([name not in out for name in self.information.names])

    def _values(self, selected: Sequence[tuple[str, ...]]) -> dict[str, float]:
        information = self.information.about(self._about(selected))
        values = solve(information, joint_weights(information)).values
        return dict(zip(information.names, values.tolist(), strict=True))

    def _errors(self, selected: Sequence[tuple[str, ...]]) -> FloatArray:
        """Return the held-out mean squared errors (e,) of the gears' equations."""
        about = self.information.about(self._about(selected))
        return held_out(about).raw[[gear.row for gear in self.gears]]

    def _lowers_error(self, selected: Sequence[tuple[str, ...]]) -> list[bool]:
        """Return for each gear whether the parameters significantly lower its error."""
        none: list[tuple[str, ...]] = [()] * len(self.gears)
        lower = self._errors(selected) < (1.0 - LESS)**2 * self._errors(none)
        if not lower.any():
            return [False] * len(self.gears)
        with_effects, others = (errors_by_cell(self.information, self._about(k))
                                for k in (selected, none))
        return [bool(yes) and surely_lower(with_effects[:, gear.row], others[:, gear.row],
                                           FALLEN_LEVEL)
                for gear, yes in zip(self.gears, lower, strict=True)]
