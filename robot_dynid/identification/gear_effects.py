"""Choice of the effects of elastic gears by held-out error: kinematic error, hysteresis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import folds, held_out
from robot_dynid.friction.maxwell import LENGTHS
from robot_dynid.identified.structure import Structure
from robot_dynid.regressor import GearEffects, Springs
from robot_dynid.regressor.elastic import OFFSET, STIFFNESS, Gear
from robot_dynid.regressor.gear_effects import COSINE, SINE, deflection, presses_per_radian
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: share by which the held-out error of the gear's equation must fall for an effect
LESS = 0.01
#: operators slip where the deflection covers so many of their lengths; shorter ones only are tried
COVERED = 4.0


def gear_effects(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples]
) -> tuple[GearEffects, ...]:
    """Return the effects of every elastic joint that the data shows; empty where it shows none.

    First the kinematic error, by which the operators of hysteresis move then. Every effect must
    lower the error of the gear's own equation on stretches left out of the fit.
    """
    gears = Springs(robot).gears
    plain = _Search.of(robot, structure, samples, [GearEffects()] * len(gears))
    waves = [GearEffects((0.0, 0.0), unbent=unbent) if presses_per_radian(robot, gear)
             else GearEffects() for gear, unbent in zip(gears, plain.unbent(), strict=True)]
    found = _Search.of(robot, structure, samples, waves).with_waves()
    stops = [replace(one, lengths=_lengths(gear, samples))
             for gear, one in zip(gears, found, strict=True)]
    effects = _Search.of(robot, structure, samples, stops).with_stops()
    return effects if any(one != GearEffects() for one in effects) else ()


def _lengths(gear: Gear, samples: Sequence[Samples]) -> tuple[float, ...]:
    """Return the lengths of operators that slip in some recording."""
    covered = max(float(np.ptp(deflection(gear, one))) for one in samples)
    return tuple(length for length in LENGTHS if COVERED * length < covered)


@dataclass(frozen=True, eq=False)
class _Search:
    """Information about a model with all ``effects`` that are tried."""

    gears: tuple[Gear, ...]
    effects: tuple[GearEffects, ...]
    information: Information

    @classmethod
    def of(cls, robot: RobotModel, structure: Structure, samples: Sequence[Samples],
           effects: Sequence[GearEffects]) -> _Search:
        """Reduce the samples with all effects."""
        model = replace(structure, gears=tuple(effects)).torque_model(robot)
        information = Experiment.of(model, samples).information
        grouped = information.grouped(folds(len(information.batches)))
        return cls(model.gears, tuple(effects), grouped)

    def unbent(self) -> list[float]:
        """Return the deflection [rad] of every gear where nothing bends it."""
        values = self._values([()] * len(self.gears))
        return [-values[gear.parameter(OFFSET)] / values[gear.parameter(STIFFNESS)]
                for gear in self.gears]

    def with_waves(self) -> tuple[GearEffects, ...]:
        """Return the kinematic errors that the data shows."""
        own = [one.waves for one in self.effects]
        if not any(own):
            return self.effects
        shown = self._fallen(own, [()] * len(own))
        values = self._values(own)
        found = []
        for gear, one, yes in zip(self.gears, self.effects, shown, strict=True):
            if not (yes and one.waves):
                found.append(GearEffects())
                continue
            stiffness = values[gear.parameter(STIFFNESS)]
            found.append(replace(one, error=(values[gear.parameter(SINE)] / stiffness,
                                             values[gear.parameter(COSINE)] / stiffness)))
        return tuple(found)

    def with_stops(self) -> tuple[GearEffects, ...]:
        """Return the effects with those operators only that the prediction needs.

        Those to which the data gives no amplitude go, then one after the other that which is
        missed least, as long as the held-out error does not rise.
        """
        stops = self._positive([one.stops for one in self.effects])
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
        shown = self._fallen(stops, [()] * len(stops))
        return tuple(replace(one, lengths=tuple(
            length for symbol, length in zip(one.stops, one.lengths, strict=True)
            if yes and symbol in own))
            for one, own, yes in zip(self.effects, stops, shown, strict=True))

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

    def _about(self, stops: Sequence[tuple[str, ...]]) -> Information:
        """Return the information with these of the effects that are tried, all others kept."""
        tried = {gear.parameter(s) for gear, one in zip(self.gears, self.effects, strict=True)
                 for s in (one.stops or one.waves)}
        kept = {gear.parameter(s) for gear, own in zip(self.gears, stops, strict=True)
                for s in own}
        names = self.information.names
        return self.information.about(
            [i for i, name in enumerate(names) if name not in tried or name in kept])

    def _values(self, stops: Sequence[tuple[str, ...]]) -> dict[str, float]:
        information = self._about(stops)
        values = solve(information, joint_weights(information)).values
        return dict(zip(information.names, values.tolist(), strict=True))

    def _errors(self, stops: Sequence[tuple[str, ...]]) -> FloatArray:
        """Return the mean squared errors (e,) of the gears' equations on data left out."""
        return held_out(self._about(stops)).raw[[gear.row for gear in self.gears]]

    def _fallen(self, own: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]
                ) -> list[bool]:
        """Return for which gears the error is surely lower with ``own`` than with ``other``."""
        return list(self._errors(own) < (1.0 - LESS)**2 * self._errors(other))
