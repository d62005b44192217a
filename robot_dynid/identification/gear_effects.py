"""Effects of elastic gears, kinematic error and hysteresis: choice, and what it leaves unsure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.estimate import Estimate
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information, triangle
from robot_dynid.estimation.joint_covariance import (
    CorrelationDetails,
    GeneralisedLeastSquares,
    whitened,
)
from robot_dynid.estimation.least_squares import joint_weights, solve, weighted_factor
from robot_dynid.estimation.uncertainty.held_out import (
    errors_by_stretch,
    folds,
    held_out,
    surely_lower,
)
from robot_dynid.estimation.uncertainty.random_effects import with_random_effects
from robot_dynid.friction.maxwell import LENGTHS
from robot_dynid.identified.structure import Structure
from robot_dynid.regressor import GearEffects, Springs
from robot_dynid.regressor.elastic import DAMPING, OFFSET, STIFFNESS, Gear
from robot_dynid.regressor.gear_effects import (
    COSINE,
    SINE,
    STATES,
    LoadedHysteresis,
    deflection,
    presses_per_radian,
)
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import FloatArray, Samples

#: share by which the held-out error of the gear's equation must fall for an effect
LESS = 0.01
#: one-sided level of the test that it has fallen, stretch by stretch: many effects are tried, and
#: noise of the encoders makes some of them lower the error of one stretch by a lot
LEVEL = 0.999
#: operators slip where the deflection covers so many of their lengths; shorter ones only are tried
COVERED = 4.0
#: searches of waves and states of hysteresis in turn: without states, waves are found too large
ROUNDS = 2
#: cut-offs beside that of a fit, which show what depends on it
BESIDE = (2.0 / 3.0, 1.5)
#: share of what the other kind of states changes that counts as deviation: it is known to predict
#: worse. Chosen on simulated gears; `bench gears` says what it is worth
KIND = 0.25
#: lengths of the states that stand for hysteresis of another law, and their kind
COUNT, OTHERS = 10, 'maxwell'


def gear_effects(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples],
    before: Sequence[GearEffects] = (),
) -> tuple[GearEffects, ...]:
    """Return the effects of every elastic joint that the data shows; empty where it shows none.

    First the kinematic error, by which the states of hysteresis move then. Every effect must
    lower the error of the gear's own equation on stretches left out of the fit; of the kinds of
    states that which lowers it most is taken. ``before`` are those of other samples of the same
    recordings, to begin with.
    """
    gears = Springs(robot).gears
    none = [GearEffects()] * len(gears)
    plain = _Search.of(robot, structure, samples, none, [one.waves for one in none])
    effects = tuple(
        replace(one, error=one.error or (0.0, 0.0), unbent=unbent)
        if presses_per_radian(robot, gear) else one
        for gear, unbent, one in zip(gears, plain.unbent(), before or none, strict=True))
    lengths = [_lengths(gear, samples) for gear in gears]
    for _ in range(1 if before else ROUNDS):
        found = _Search.of(robot, structure, samples, effects,
                           [e.waves for e in effects]).with_waves()
        kinds = [
            [replace(one, lengths=own, states=states)
             for one, own in zip(found, lengths, strict=True)] for states in STATES]
        effects = _least_error([
            _Search.of(robot, structure, samples, kind, [one.stops for one in kind]).with_stops()
            for kind in kinds])
        if not any(one.stops and one.waves for one in effects):
            break
    return effects if any(one != GearEffects() for one in effects) else ()


def _least_error(
    found: Sequence[tuple[FloatArray, tuple[GearEffects, ...]]]
) -> tuple[GearEffects, ...]:
    """Return of every gear those of the effects found whose error is least."""
    errors, effects = zip(*found, strict=True)
    return tuple(own[best] for best, *own in zip(np.argmin(errors, axis=0), *effects, strict=True))


def _lengths(gear: Gear, samples: Sequence[Samples]) -> tuple[float, ...]:
    """Return the lengths of operators that slip in some recording."""
    covered = _covered(gear, samples)
    return tuple(length for length in LENGTHS if COVERED * length < covered)


def _covered(gear: Gear, samples: Sequence[Samples]) -> float:
    """Return the range of the deflection [rad] in the recording where it is largest."""
    return max(float(np.ptp(deflection(gear, one))) for one in samples)


def with_spread(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate with its changes under other choices as terms of the covariance.

    Hysteresis of a real gear is no sum of the states of the model. What is left is alike in every
    stretch of time, so leaving out stretches does not show it. But parameters that bear it change
    with the kind of states, KIND of which counts, and with the cut-off, of which the mean square
    of one below and one above does. Source: Buckland, Burnham, Augustin 1997 (uncertainty of
    the model).
    """
    robot, model = experiment.model.robot, experiment.model

    def values(model: TorqueModel, share: float = 1.0) -> FloatArray:
        own = replace(settings, cutoff=share * settings.cutoff)
        samples = [prepare(robot, one, own) for one in recordings]
        return GeneralisedLeastSquares().fit(Experiment.of(
            model, samples, experiment.reversal_weights)).values

    best, changes = values(model), []
    for share in BESIDE:
        with suppress(DataError):  # too short for a lower one
            changes.append((values(model, share) - best) / np.sqrt(len(BESIDE)))
    other = replace(structure, gears=tuple(map(_other_states, structure.gears)))
    if other != structure:
        changes.append(KIND * (values(other.torque_model(robot, model.reduction)) - best))
    return replace(estimate, covariance=estimate.covariance + sum(
        np.outer(change, change) for change in changes))


def _other_states(effects: GearEffects) -> GearEffects:
    """Return the effects with states of the other kind, of the same lengths."""
    other = next(states for states in STATES if states != effects.states)
    return replace(effects, states=other) if effects.lengths else effects


def with_other_hysteresis(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate as it is beside hysteresis that the law of the model is not.

    That is taken for states of many lengths, some of them wider under load, whose amplitudes are
    random: their variance, one for each gear, is what the data makes of it, next to none where
    the law is right. Stiffness and damping become what is most likely then, all else is least
    squares beside them. What stays unsure is added to the covariance. An estimate that bounds
    parameters keeps its values, and what would have changed is added, too. Source: Kennedy,
    O'Hagan 2001 (what a model lacks, by its prior).
    """
    samples = [prepare(experiment.model.robot, one, settings) for one in recordings]
    rows, groups, noise = _beside_other_hysteresis(Experiment.of(
        experiment.model, samples, experiment.reversal_weights), structure, settings.cutoff)
    change, unsure, shape = with_random_effects(rows, groups, noise)
    of_gears = {gear.parameter(symbol) for gear in experiment.model.gears
                for symbol in (STIFFNESS, DAMPING)}
    own = [i for i, name in enumerate(estimate.names) if name in of_gears]
    change = shape[:, own] @ np.linalg.pinv(shape[np.ix_(own, own)], hermitian=True) @ change[own]
    if estimate.standard is not None:
        return replace(estimate,
                       covariance=estimate.covariance + unsure + np.outer(change, change))
    return replace(estimate, values=estimate.values + change,
                   covariance=estimate.covariance + unsure)


def _beside_other_hysteresis(
    experiment: Experiment, structure: Structure, cutoff: float
) -> tuple[FloatArray, NDArray[np.int64], float]:
    """Return equations [A, Z, y] with what states explain, their gears, variance of the noise.

    By the low-pass of ``cutoff`` [Hz] the noise of one sample is much that of the next.
    """
    robot, gears = experiment.model.robot, experiment.model.gears
    covered, steps = zip(*(
        ([_covered(gear, [one]) for gear in gears], float(np.median(np.diff(one.time))))
        for one in experiment.recordings), strict=True)
    states = tuple(replace(one, states=OTHERS, lengths=tuple(np.geomspace(
        0.5 * LENGTHS[0], max(LENGTHS[0], most / COVERED), COUNT).tolist()))
        for most, one in zip(np.max(covered, axis=0), structure.gears, strict=True))
    beside = LoadedHysteresis(robot, gears, states)
    model = TorqueModel.of(robot, (*experiment.model.blocks, beside))
    wide = Experiment.of(model, experiment.recordings, experiment.reversal_weights)
    details = GeneralisedLeastSquares().fit(experiment).details
    assert isinstance(details, CorrelationDetails)
    omega = details.omega
    tall = triangle(weighted_factor(whitened(wide, omega), np.ones(len(omega))))
    groups = np.repeat(np.arange(len(gears)), len(beside.names) // len(gears))
    alike = max(1.0, 1.0 / (2.0 * cutoff * min(steps)))
    degrees = max(experiment.information.samples * len(omega) - tall.shape[1] + 1, 1)
    return tall, groups, alike * float(tall[-1, -1]**2) / degrees


@dataclass(frozen=True, eq=False)
class _Search:
    """Information about a model with ``effects``, of which some parameters are ``tried``.

    ``information`` has five parts of ``stretches``.
    """

    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]
    tried: tuple[tuple[str, ...], ...]
    information: Information
    stretches: Information

    @classmethod
    def of(cls, robot: RobotModel, structure: Structure, samples: Sequence[Samples],
           effects: Sequence[GearEffects], tried: Sequence[tuple[str, ...]]) -> _Search:
        """Reduce the samples with all effects; ``tried`` are parameters of each gear."""
        model = replace(structure, gears=tuple(effects)).torque_model(robot)
        information = Experiment.of(model, samples).information
        grouped = information.grouped(folds(len(information.batches)))
        return cls(model.gears, tuple(effects), tuple(tried), grouped, information)

    def unbent(self) -> list[float]:
        """Return the deflection [rad] of every gear where nothing bends it."""
        values = self._values([()] * len(self.gears))
        return [-values[gear.parameter(OFFSET)] / values[gear.parameter(STIFFNESS)]
                for gear in self.gears]

    def with_waves(self) -> tuple[GearEffects, ...]:
        """Return the kinematic errors that the data shows."""
        if not any(self.tried):
            return self.effects
        shown, values = self._fallen(self.tried), self._values(self.tried)
        found = []
        for gear, one, yes in zip(self.gears, self.effects, shown, strict=True):
            if not (yes and one.waves):
                found.append(GearEffects())
                continue
            stiffness = values[gear.parameter(STIFFNESS)]
            found.append(replace(one, error=(values[gear.parameter(SINE)] / stiffness,
                                             values[gear.parameter(COSINE)] / stiffness)))
        return tuple(found)

    def with_stops(self) -> tuple[FloatArray, tuple[GearEffects, ...]]:
        """Return the errors (e,) of the gears' equations, and the effects that are needed.

        Those states to which the data gives no amplitude go, then one after the other that which
        is missed least, as long as the held-out error does not rise.
        """
        stops = self._positive(list(self.tried))
        while any(stops):
            bound, kept = self._errors(stops), stops
            trials = [[own[:i] + own[i + 1:] for own in stops]
                      for i in range(max(map(len, stops)))]
            errors = np.array([self._errors(trial) for trial in trials])
            best = np.argmin(errors, axis=0)
            stops = [trials[i][g] if errors[i, g] <= bound[g] else own
                     for g, (i, own) in enumerate(zip(best, stops, strict=True))]
            if stops == kept:
                break
        shown = self._fallen(stops)
        found = []
        for one, own, yes in zip(self.effects, stops, shown, strict=True):
            lengths = tuple(length for symbol, length in zip(one.stops, one.lengths, strict=True)
                            if yes and symbol in own)
            found.append(replace(one, lengths=lengths,
                                 states=one.states if lengths else GearEffects.states))
        return self._errors(stops), tuple(found)

    def _positive(self, stops: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return ``stops`` without those of no amplitude, the worst of each gear at a time."""
        while True:
            values = self._values(stops)
            amplitudes = [{values[gear.parameter(stop)]: stop for stop in own}
                          for gear, own in zip(self.gears, stops, strict=True)]
            left = [tuple(stop for stop in own if min(known) > 0.0 or stop != known[min(known)])
                    for own, known in zip(stops, amplitudes, strict=True)]
            if left == stops:
                return stops
            stops = left

    def _about(self, kept: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
        """Return the places of these of the parameters that are tried, and of all others."""
        out = {gear.parameter(s) for gear, every, own in zip(
            self.gears, self.tried, kept, strict=True) for s in set(every) - set(own)}
        return np.flatnonzero([name not in out for name in self.information.names])

    def _values(self, kept: Sequence[tuple[str, ...]]) -> dict[str, float]:
        information = self.information.about(self._about(kept))
        values = solve(information, joint_weights(information)).values
        return dict(zip(information.names, values.tolist(), strict=True))

    def _errors(self, kept: Sequence[tuple[str, ...]]) -> FloatArray:
        """Return the mean squared errors (e,) of the gears' equations on data left out."""
        about = self.information.about(self._about(kept))
        return held_out(about).raw[[gear.row for gear in self.gears]]

    def _fallen(self, kept: Sequence[tuple[str, ...]]) -> list[bool]:
        """Return for which gears the error is lower, and surely so, than with none of it."""
        none: list[tuple[str, ...]] = [()] * len(self.gears)
        lower = self._errors(kept) < (1.0 - LESS)**2 * self._errors(none)
        if not lower.any():
            return [False] * len(self.gears)
        own, others = (errors_by_stretch(self.stretches, self._about(k)) for k in (kept, none))
        return [bool(yes) and surely_lower(own[:, gear.row], others[:, gear.row], LEVEL)
                for gear, yes in zip(self.gears, lower, strict=True)]
