"""Effects of elastic gears, kinematic error and hysteresis: choice, and what it leaves unsure."""

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
    whitened,
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
from robot_dynid.estimation.uncertainty.random_effects import with_random_effects
from robot_dynid.friction.laws import LENGTHS
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import FloatArray, Samples

#: share by which the held-out error of the gear's equation must fall for an effect
LESS = 0.01
#: one-sided level of the test that it has fallen, stretch by stretch: many effects are tried, and
#: noise of the encoders makes some of them lower the error of one stretch by a lot
FALLEN_LEVEL = 0.999
#: operators slip where the deflection covers so many of their lengths; shorter ones only are tried
SLIP_LENGTHS = 4.0
#: searches of waves and states of hysteresis in turn: without states, waves are found too large
HYSTERESIS_ROUNDS = 2
#: cut-offs beside that of a fit, which show what depends on it
BESIDE = (2.0 / 3.0, 1.5)
#: lengths of the states that stand for hysteresis of another law, of each kind
HYSTERESIS_LENGTHS = 7


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
    for _ in range(1 if before else HYSTERESIS_ROUNDS):
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
    if not any(one != GearEffects() for one in effects):
        return ()
    return _with_error_of_fit(robot, structure, samples, effects)


def _with_error_of_fit(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples],
    effects: tuple[GearEffects, ...],
) -> tuple[GearEffects, ...]:
    """Return the effects, states moved by the kinematic error of a fit with all of them.

    Waves act on motors and links alike, and what is left of both depends on each other: without
    that an amplitude may be a tenth too small, which is half of the damping's error then.
    """
    if not any(one.waves and one.lengths for one in effects):
        return effects
    model = replace(structure, gears=effects).torque_model(robot)
    fit = GeneralisedLeastSquares().fit(Experiment.of(model, samples))
    values = dict(zip(fit.names, fit.values.tolist(), strict=True))
    return tuple(replace(one, error=_error(gear, values)) if one.waves else one
                 for gear, one in zip(model.gears, effects, strict=True))


def _error(gear: Gear, values: Mapping[str, float]) -> tuple[float, float]:
    """Return the kinematic error [rad] of a gear, by the values of its parameters."""
    stiffness = values[gear.parameter(STIFFNESS)]
    return (values[gear.parameter(SINE)] / stiffness, values[gear.parameter(COSINE)] / stiffness)


def effects_left_out(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples], method: str
) -> list[str]:
    """Return a warning of the effects that the data shows and ``method`` leaves out, if any."""
    gears, effects = Springs(robot).gears, gear_effects(robot, structure, samples)
    joints = [robot.joints[gear.joint] for gear, one in zip(gears, effects, strict=False)
              if one != GearEffects()]
    return [f'{", ".join(joints)}: the method {method} leaves out kinematic error and hysteresis '
            'of gears, which this data shows, and takes them for damping; the method elastic has '
            'them'] if joints else []


def _least_error(
    found: Sequence[tuple[FloatArray, tuple[GearEffects, ...]]]
) -> tuple[GearEffects, ...]:
    """Return of every gear those of the effects found whose error is least."""
    errors, effects = zip(*found, strict=True)
    return tuple(own[best] for best, *own in zip(np.argmin(errors, axis=0), *effects, strict=True))


def _lengths(gear: Gear, samples: Sequence[Samples]) -> tuple[float, ...]:
    """Return the lengths of operators that slip in some recording."""
    covered = _covered(gear, samples)
    return tuple(length for length in LENGTHS if SLIP_LENGTHS * length < covered)


def _covered(gear: Gear, samples: Sequence[Samples]) -> float:
    """Return the range of the deflection [rad] in the recording where it is largest."""
    return max(float(np.ptp(deflection(gear, one))) for one in samples)


def with_low_pass(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate with its changes under other cut-offs as terms of the covariance.

    States of hysteresis are no linear function of the deflection, but move by one that has passed
    the low-pass already: what that took off is missing, what noise it let through is too much, in
    every stretch of time alike. The mean square of the changes by a cut-off below and one above
    counts. It is there with the right law, too, which `with_other_hysteresis` does not doubt then.
    """
    robot, model = experiment.model.robot, experiment.model

    def values(share: float) -> FloatArray:
        own = replace(settings, cutoff=share * settings.cutoff)
        samples = [prepare(robot, one, own) for one in recordings]
        return GeneralisedLeastSquares().fit(Experiment.of(
            model, samples, experiment.reversal_weights)).values

    best, changes = values(1.0), []
    for share in BESIDE:
        with suppress(DataError):  # too short for a lower one
            changes.append((values(share) - best) / np.sqrt(len(BESIDE)))
    return replace(estimate, covariance=estimate.covariance + sum(
        np.outer(change, change) for change in changes))


def with_other_hysteresis(
    estimate: Estimate, experiment: Experiment, recordings: Sequence[Repaired],
    structure: Structure, settings: Preprocessing,
) -> Estimate:
    """Return the estimate as it is beside hysteresis that the law of the model is not.

    That is taken for states of all kinds and many lengths, also such that are wider under load or
    on one side, whose amplitudes are random: their variance, one for each gear, is what the data
    makes of it, next to none where the law is right. Stiffness and damping become what is most
    likely then, with the covariance that they have beside these amplitudes; all else is least
    squares with this stiffness and damping. An estimate that bounds parameters keeps its values,
    and what would have changed is added to its covariance. A state beside is moved by the same
    deflection as one of the model, so what the low-pass takes off is none of this:
    `with_low_pass`. Source: Kennedy, O'Hagan 2001 (what a model lacks, by its prior).
    """
    samples = [prepare(experiment.model.robot, one, settings) for one in recordings]
    found = _beside_other_hysteresis(Experiment.of(
        experiment.model, samples, experiment.reversal_weights), structure, settings.cutoff)
    of_gears = {gear.parameter(symbol) for gear in experiment.model.gears
                for symbol in (STIFFNESS, DAMPING)}
    own = [i for i, name in enumerate(estimate.names) if name in of_gears]
    follow = found.shape[:, own] @ np.linalg.pinv(
        found.shape[np.ix_(own, own)], hermitian=True)
    rest = np.eye(len(estimate.names))
    rest[:, own] -= follow
    change = follow @ found.change[own]
    covariance = (rest @ estimate.covariance @ rest.T
                  + follow @ found.covariance[np.ix_(own, own)] @ follow.T)
    if estimate.standard is not None:
        return replace(estimate, covariance=covariance + np.outer(change, change))
    return replace(estimate, values=estimate.values + change, covariance=covariance)


@dataclass(frozen=True, eq=False)
class _Beside:
    """Parameters beside random effects: ``change`` (b,) from least squares, ``covariance`` (b, b).

    ``shape`` (b, b) is the covariance of least squares by noise of variance one.
    """

    change: FloatArray
    covariance: FloatArray
    shape: FloatArray


def _beside_other_hysteresis(
    experiment: Experiment, structure: Structure, cutoff: float
) -> _Beside:
    """Return the parameters beside amplitudes of states, of one variance for each gear.

    Their covariance is by leaving out stretches of time, as that of least squares, and by what the
    amplitudes may be. By the low-pass of ``cutoff`` [Hz] the noise of one sample is much that of
    the next.
    """
    robot, gears = experiment.model.robot, experiment.model.gears
    samples = list(experiment.recordings)
    states = tuple(replace(one, lengths=tuple(np.geomspace(
        0.5 * LENGTHS[0], max(LENGTHS[0], _covered(gear, samples)), HYSTERESIS_LENGTHS).tolist()))
        for gear, one in zip(gears, structure.gears, strict=True))
    beside = LoadedHysteresis(robot, gears, states)
    model = TorqueModel.of(robot, (*experiment.model.blocks, beside))
    wide = Experiment.of(model, samples, experiment.reversal_weights)
    details = GeneralisedLeastSquares().fit(experiment).details
    assert isinstance(details, CorrelationDetails)
    white, ones = whitened(wide, details.omega), np.ones(len(details.omega))
    tall = triangle(weighted_factor(white, ones))
    alike = max(1.0, 1.0 / (2.0 * cutoff * min(
        float(np.median(np.diff(one.time))) for one in samples)))
    degrees = max(wide.information.samples * len(ones) - tall.shape[1] + 1, 1)
    count = len(beside.names)
    solution, pulled = with_random_effects(
        tall, np.repeat(np.arange(len(gears)), count // len(gears)),
        alike * float(tall[-1, -1]**2) / degrees)
    scatter, _ = batch_covariance(
        white, ones, solution, friction_scales(model, solution.values))
    plain = solve_rows(np.delete(tall, np.s_[-count - 1:-1], axis=1))
    own = slice(tall.shape[1] - 1 - count)
    return _Beside(solution.values[own] - plain.values, (scatter + pulled)[own, own],
                   plain.root @ plain.root.T)


@dataclass(frozen=True, eq=False)
class _Search:
    """Information about a model with ``effects``, of which some parameters are ``tried``.

    ``information`` has five parts of ``stretches``.
    """

    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]
    tried: tuple[tuple[str, ...], ...]
    information: Information

    @classmethod
    def of(cls, robot: RobotModel, structure: Structure, samples: Sequence[Samples],
           effects: Sequence[GearEffects], tried: Sequence[tuple[str, ...]]) -> _Search:
        """Reduce the samples with all effects; ``tried`` are parameters of each gear."""
        model = replace(structure, gears=tuple(effects)).torque_model(robot)
        information = Experiment.of(model, samples).information
        return cls(model.gears, tuple(effects), tuple(tried), information)

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
            found.append(replace(one, error=_error(gear, values)))
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
        own, others = (errors_by_cell(self.information, self._about(k)) for k in (kept, none))
        return [bool(yes) and surely_lower(own[:, gear.row], others[:, gear.row], FALLEN_LEVEL)
                for gear, yes in zip(self.gears, lower, strict=True)]
