"""Training ranges of a model, and states outside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import axes_of
from robot_dynid.numbers import SECONDS
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.signals.turns import SLACK, TURN
from robot_dynid.types import FloatArray, Samples

#: units of the compared quantities, of revolute and of prismatic joints
UNITS = {'position': ('rad', 'm'), 'velocity': ('rad/s', 'm/s'),
         'acceleration': ('rad/s^2', 'm/s^2'), 'effort': ('N m', 'N'),
         'temperature': ('deg C', 'deg C')}
#: tolerated excess as a share of the range: recordings of one motion differ by as much
RANGE_MARGIN = 0.05


@dataclass(frozen=True, eq=False)
class Extent:
    """Minimum and maximum values in recordings.

    ``quantities`` (n, 2) of the joints by name, keys of UNITS; ``speeds`` (a, 2) of the axes of
    friction, including zero, and ``temperatures`` (a, 2), None if not measured; ``seconds`` of the
    longest recording.
    """

    quantities: dict[str, FloatArray]
    speeds: FloatArray
    temperatures: FloatArray | None
    seconds: float

    @classmethod
    def of(cls, robot: RobotModel, samples: Samples) -> Extent:
        """Return the extent of one recording."""
        axes = axes_of(robot)
        turning = samples.velocity @ axes.matrix.T
        share = np.abs(axes.matrix) / np.abs(axes.matrix).sum(axis=1, keepdims=True)
        warm = samples.temperature
        quantities = {name: _ends(values) for name, values in measured(robot, samples).items()}
        return cls({**quantities, 'velocity': _with_rest(quantities['velocity'])},
                   _with_rest(_ends(turning)), None if warm is None else _ends(warm @ share.T),
                   float(samples.elapsed[-1]))

    @classmethod
    def merged(cls, parts: Sequence[Extent]) -> Extent:
        """Return the extent of several recordings, without quantities that one of them lacks."""
        names = [name for name in parts[0].quantities if all(name in p.quantities for p in parts)]
        warm = [p.temperatures for p in parts if p.temperatures is not None]
        return cls({name: _wider([p.quantities[name] for p in parts]) for name in names},
                   _wider([p.speeds for p in parts]),
                   _wider(warm) if len(warm) == len(parts) else None,
                   max(p.seconds for p in parts))

    def of_axis(self, axis: int) -> dict[str, Any]:
        """Return the ranges of one axis for `FrictionLaw.within`."""
        ranges: dict[str, Any] = {'speeds': tuple(self.speeds[axis].tolist())}
        if self.seconds > 0.0:
            ranges['longest'] = min(self.seconds, SECONDS.high)  # warm long before
        if self.temperatures is not None:
            ranges['temperatures'] = tuple(self.temperatures[axis].tolist())
        return ranges


@dataclass(frozen=True)
class Outside:
    """Samples of one joint outside the training range.

    ``beyond``: the largest excess; ``share`` of the samples; ``trained``: the range.
    """

    joint: str
    quantity: str
    unit: str
    beyond: float
    share: float
    trained: tuple[float, float]

    @property
    def words(self) -> str:
        """The joint and its excess."""
        low, high = self.trained
        return (f'{self.joint} by up to {self.beyond:.3g} {self.unit} in {100.0 * self.share:.3g} '
                f'% of the samples (trained from {low:.3g} to {high:.3g})')


@dataclass(frozen=True, eq=False)
class Trained:
    """Training ranges (n, 2) of the joints of a robot, by name.

    Names are keys of UNITS; unknown quantities are missing and count as inside.
    """

    quantities: Mapping[str, FloatArray] = field(default_factory=dict)

    def outside(self, robot: RobotModel, states: Mapping[str, FloatArray]) -> NDArray[np.bool_]:
        """Return a mask (N, n): one of the ``states`` (N, n), by name, is outside its range."""
        shape = next(iter(states.values())).shape
        mask = np.zeros(shape, dtype=bool)
        for name, values in states.items():
            if name in self.quantities:
                mask |= self._beyond(robot, name, values) > 0.0
        return mask

    def excesses(self, robot: RobotModel, states: Mapping[str, FloatArray]) -> tuple[Outside, ...]:
        """Return the ``states`` (N, n) outside by more than RANGE_MARGIN of the range."""
        excesses = []
        for name, values in states.items():
            if name not in self.quantities or not len(values):
                continue
            ranges = self.quantities[name]
            if (values >= ranges[:, 0]).all() and (values <= ranges[:, 1]).all():
                continue  # shortcut for the usual request of a service
            beyond = self._beyond(robot, name, values)
            largest = beyond.max(axis=0)
            for j in np.flatnonzero(largest > RANGE_MARGIN * np.ptp(ranges, axis=1)):
                low, high = ranges[j].tolist()
                unit = UNITS[name][int(robot.types[j] == PRISMATIC)]
                excesses.append(Outside(robot.joints[j], name, unit, float(largest[j]),
                                    float(np.mean(beyond[:, j] > 0.0)), (low, high)))
        return tuple(excesses)

    def poses(self, robot: RobotModel, count: int) -> FloatArray:
        """Return random poses (count, n) within the ranges, or the limits if unknown."""
        limits, generator = robot.limits, np.random.default_rng(0)
        low, high = self.quantities.get('position', np.stack([
            np.where(np.isfinite(limits.lower), limits.lower, -np.pi),
            np.where(np.isfinite(limits.upper), limits.upper, np.pi)], axis=1)).T
        return generator.uniform(low, high, (count, robot.n))

    def warnings(self, robot: RobotModel, states: Mapping[str, FloatArray]) -> tuple[str, ...]:
        """Return a sentence for every quantity of ``states`` (N, n) outside, see `excesses`."""
        return sentences(self.excesses(robot, states))

    def _beyond(self, robot: RobotModel, name: str, values: FloatArray) -> FloatArray:
        """Return the excess of values (N, n) over the ranges.

        Positions of joints that turn more than once, or were recorded beyond their limits, may
        differ by whole turns, because drivers wrap.
        """
        low, high = self.quantities[name].T
        if name == 'position':
            lower, upper = robot.limits.lower, robot.limits.upper
            inside = (low >= lower - SLACK) & (high <= upper + SLACK)
            wraps = (robot.types != PRISMATIC) & ~(inside & (upper - lower <= TURN))
            turns = np.round((values - 0.5 * (low + high)) / TURN)
            values = values - np.where(wraps, TURN, 0.0) * turns
        return np.asarray(np.maximum(np.maximum(low - values, values - high), 0.0))

    def plain(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Return the ranges in plain types, by joint."""
        return {joint: {name: ends[j].tolist() for name, ends in self.quantities.items()}
                for j, joint in enumerate(joints)}

    @classmethod
    def of(cls, content: Mapping[str, Mapping[str, FloatArray]] | None, joints: tuple[str, ...]
           ) -> Trained:
        """Read the result of `plain`, (2,) by joint and name; raises ValueError."""
        if content is None:
            return cls()
        if set(content) != set(joints) or len({frozenset(content[j]) for j in joints}) > 1 \
                or not set(content[joints[0]]) <= set(UNITS):
            raise ValueError('trained: its joints or quantities are not those of the model')
        for joint, ranges in content.items():
            for name, ends in ranges.items():
                if ends.shape != (2,) or not ends[0] <= ends[1]:
                    raise ValueError(f'trained.{joint}.{name} must be [least, greatest]')
        return cls({name: np.array([content[joint][name] for joint in joints])
                    for name in UNITS if name in content[joints[0]]})


def measured(robot: RobotModel, samples: Samples) -> dict[str, FloatArray]:
    """Return the compared quantities (N, n) of samples by name; efforts are those of the drives.
    """
    quantities = {'position': samples.position, 'velocity': samples.velocity,
                  'acceleration': samples.acceleration, 'temperature': samples.temperature,
                  'effort': None if robot.drive.torque_sensors else samples.effort}
    return {name: values[:, :robot.n] for name, values in quantities.items() if values is not None}


def sentences(excesses: Iterable[Outside]) -> tuple[str, ...]:
    """Return a sentence for each quantity outside its range."""
    by_name: dict[str, list[str]] = {}
    for one in excesses:
        by_name.setdefault(one.quantity, []).append(one.words)
    return tuple(f"{name} exceeds the training range: {'; '.join(words)}"
                 for name, words in by_name.items())


def _ends(values: FloatArray) -> FloatArray:
    """Return minimum and maximum of each column (k, 2)."""
    return np.stack([values.min(axis=0), values.max(axis=0)], axis=1)


def _with_rest(speeds: FloatArray) -> FloatArray:
    """Return ranges (k, 2) of velocities that include rest: the top speed in either direction."""
    return np.stack([np.minimum(speeds[:, 0], 0.0), np.maximum(speeds[:, 1], 0.0)], axis=1)


def _wider(ends: Sequence[FloatArray]) -> FloatArray:
    return np.stack([np.min([e[:, 0] for e in ends], axis=0),
                     np.max([e[:, 1] for e in ends], axis=0)], axis=1)
