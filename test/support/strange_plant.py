"""A plant apart from every law and simulator of the package.

Pinocchio moves the links, which differ from their description. Friction is of no class of the
package: two memories (bristles of different length), a Stribeck curve with an exponent that is
neither 1 nor 2, a power of the speed, directions, position, load and warm-up. Gears ripple and
cables pull. Sensors have steps, noise, lag, late filtered velocities and lost samples.

What identification makes of it: `python test/support/strange_scores.py --help`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.signal import lfilter
from strange_arms import Arm, inverse_dynamics
from strange_motions import Motion

from robot_dynid.types import FloatArray, RawLog

#: the friction of a plant is stepped at least so often [1/s]
STEPS = 500.0
RATES = (50.0, 100.0, 125.0, 250.0, 500.0, 1000.0)
ORDERS = (1.0, 12.0, 36.0, 50.0, 80.0, 101.0, 160.0, 202.0)


def offset(generator: np.random.Generator, shape: Any = None) -> FloatArray:
    """Return factors that differ from one by 15 to 40 %."""
    size = generator.uniform(0.15, 0.4, shape)
    return np.asarray(1.0 + size * generator.choice((-1.0, 1.0), shape))


def other_body(body: Any, generator: np.random.Generator) -> Any:
    """Return another body that can exist: mass, lever and second moments are off."""
    if body.mass <= 0.0:
        return body
    rotation = body.inertia
    second = 0.5 * np.trace(rotation) * np.eye(3) - rotation
    values, axes = np.linalg.eigh(second)
    floor = 1e-3 * max(values.max(), 1e-9)
    values = np.maximum(values, floor) * offset(generator, 3)
    second = axes @ np.diag(values) @ axes.T
    return pin.Inertia(body.mass * float(offset(generator)), body.lever * offset(generator, 3),
                       np.trace(second) * np.eye(3) - second)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording, and its measured effort (T, n) [N m] but for noise and steps of the sensor.

    ``states`` are the position, velocity and acceleration (T, n) in truth.
    """

    log: RawLog
    effort: FloatArray
    states: tuple[FloatArray, FloatArray, FloatArray]


class Plant:
    """An arm as it is; all of it is drawn from the ``seed``."""

    def __init__(self, arm: Arm, seed: int) -> None:
        draw = np.random.default_rng((seed, sum(map(ord, arm.name))))
        n = arm.n
        self.arm, self.model = arm, arm.nominal.copy()
        for i in range(1, self.model.njoints):
            self.model.inertias[i] = other_body(arm.nominal.inertias[i], draw)
        self.scale = self._scale(draw)
        self.rotors = draw.uniform(0.02, 0.1, n) * self.scale / arm.acceleration
        self.bits = int(draw.integers(14, 21))
        self.rate = float(draw.choice(RATES))
        #: joints with hardly more than Coulomb and viscous friction are easy to overfit
        much = draw.choice((0.1, 0.5, 1.0), n)
        self.dry = draw.uniform(0.03, 0.1, n) * self.scale
        self.stribeck = much * self.dry * draw.uniform(0.1, 0.6, n)
        self.stribeck_speed = arm.speed * draw.uniform(0.01, 0.06, n)
        self.exponent = draw.choice((0.6, 0.75, 1.35, 1.6), n)
        self.viscous = draw.uniform(0.02, 0.08, n) * self.scale
        self.power = 1.0 - much * draw.uniform(0.1, 0.35, n)
        self.asymmetry = much * draw.uniform(-0.15, 0.15, n)
        self.load = much * draw.uniform(0.0, 0.25, n)
        self.place = much * draw.uniform(0.03, 0.15, n), draw.uniform(0.0, 6.0, n)
        self.lengths = (draw.uniform(1e-4, 6e-4, n) * self.unit,
                        draw.uniform(3e-3, 2e-2, n) * self.unit)
        self.second = much * draw.uniform(0.2, 0.45, n)
        self.warming = much * draw.uniform(0.0, 0.1, n), draw.uniform(60.0, 400.0, n)
        self.offset = draw.normal(size=n) * 0.01 * self.scale
        self.cable = much * draw.uniform(0.0, 0.02, n) * self.scale, draw.uniform(0.0, 6.0, n)
        self.orders = np.where(draw.uniform(size=n) < 0.5, draw.choice(ORDERS, n), 0.0) / self.unit
        self.ripple = draw.uniform(0.006, 0.02, n) * self.scale, draw.uniform(0.0, 6.0, n)
        self.noise = draw.uniform(0.002, 0.008, n) * self.scale
        self.lag = float(draw.uniform(0.0, 0.006))
        self.late = float(draw.uniform(0.002, 0.012)), float(draw.uniform(12.0, 40.0))

    @cached_property
    def unit(self) -> FloatArray:
        """Length [m] of a joint that slides that counts as 1 rad (n,)."""
        return np.where(self.arm.slides > 0.0, 0.1, 1.0)

    def _scale(self, draw: np.random.Generator) -> FloatArray:
        """Return the effort (n,) of links that joints have to do now and then."""
        arm = self.arm
        q, v, a = (draw.uniform(-1.0, 1.0, (300, arm.n)) for _ in range(3))
        effort = np.abs(inverse_dynamics(self.model, arm.middle + q * arm.half, v * arm.speed,
                                         a * arm.acceleration))
        size = np.percentile(effort, 97, axis=0)
        return np.maximum(size, 0.02 * size.max())

    def standard(self) -> dict[str, float]:
        """Return the standard parameters of links, rotors and offsets, as the package has them."""
        values = {}
        for j in range(self.arm.n):
            body = self.model.inertias[j + 1].toDynamicParameters()
            names = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
            values |= {f'{name}{j + 1}': float(value)
                       for name, value in zip(names, body, strict=True)}
            values |= {f'Ia{j + 1}': self.rotors[j], f'f0{j + 1}': self.offset[j]}
        return values

    def weight(self, q: FloatArray) -> FloatArray:
        """Return the effort (K, n) [N m] of the weight alone."""
        rest = np.zeros_like(q)
        return inverse_dynamics(self.model, q, rest, rest)

    def gravity(self, q: FloatArray) -> FloatArray:
        """Return the effort (K, n) [N m] at rest but for friction: weight, cables, offset.

        Ripple of one wave per turn is part of it: over half a turn nothing tells it from these.
        """
        slow = self.orders * self.unit <= 1.0
        return self.weight(q) + self._cables(q) + np.where(slow, self._ripple(q), 0.0)

    def _ripple(self, q: FloatArray) -> FloatArray:
        size, phase = self.ripple
        return np.where(self.orders > 0.0, size * np.sin(self.orders * q + phase), 0.0)

    def _cables(self, q: FloatArray) -> FloatArray:
        size, phase = self.cable
        return self.offset + size * np.tanh(1.5 * np.sin(0.7 * q / self.unit + phase))

    def effort(
        self, time: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
    ) -> FloatArray:
        """Return the effort (T, n) [N m] of a motion that starts at ``time[0]`` [s] of the day."""
        links = inverse_dynamics(self.model, q, v, a) + self._cables(q) + self.rotors * a
        ripple = self._ripple(q)
        speed = np.abs(v)
        curve = self.dry + self.stribeck * np.exp(-(speed / self.stribeck_speed)**self.exponent)
        share, where = self.place
        curve *= 1.0 + share * np.sin(q / self.unit + where)
        curve *= 1.0 + self.load * (np.sqrt(1.0 + 4.0 * (links / self.scale)**2) - 1.0)
        warming, seconds = self.warming
        warm = 1.0 + warming * np.exp(-time[:, None] / seconds)
        viscous = self.viscous * np.sign(v) * (speed / self.arm.speed)**self.power
        first, second = (bristles(q, length) for length in self.lengths)
        state = (1.0 - self.second) * first + self.second * second
        return links + ripple + warm * (curve * state + viscous) * (1.0 + self.asymmetry * first)

    def record(self, motion: Motion, seed: int, start: float = 0.0) -> Recorded:
        """Return the recording of a motion that begins ``start`` [s] after the robot woke up."""
        draw = np.random.default_rng((seed, 5))
        finer = int(np.ceil(STEPS / self.rate))
        step = 1.0 / (self.rate * finer)
        fine = np.arange(0.0, motion.duration, step)
        q, v, a = motion.states(fine)
        effort = self.effort(fine + start, q, v, a)
        own = np.arange(0, len(fine), finer)
        time = fine[own]
        angle = np.where(self.arm.slides > 0.0, 0.3, 2.0 * np.pi) / 2.0**self.bits
        position = np.round(q[own] / angle) * angle
        lagged = np.column_stack([np.interp(time - self.lag, fine, one) for one in effort.T])
        measured = lagged + draw.normal(size=lagged.shape) * self.noise
        steps = self.scale / 2000.0
        measured = np.round(measured / steps) * steps
        rows = self._received(len(time), draw)
        late = time + draw.uniform(-0.02, 0.02, len(time)) / self.rate
        log = RawLog(f'{self.arm.name}_{seed}', self.arm.robot.joints, late[rows],
                     position[rows], self._velocity(position)[rows], measured[rows])
        return Recorded(log, lagged[rows], (q[own][rows], v[own][rows], a[own][rows]))

    def _velocity(self, position: FloatArray) -> FloatArray:
        """Return what drivers take for the velocity (T, n): differences, low-passed, late."""
        delay, cutoff = self.late
        rough = np.diff(position, axis=0, prepend=position[:1]) * self.rate
        pole = np.exp(-2.0 * np.pi * cutoff / self.rate)
        smooth = lfilter([1.0 - pole], [1.0, -pole], rough, axis=0)
        stamps = np.arange(len(smooth)) / self.rate
        return np.column_stack([np.interp(stamps - delay, stamps, one) for one in smooth.T])

    def _received(self, count: int, draw: np.random.Generator) -> FloatArray:
        """Return the rows of samples that are not lost: single ones are, and a burst."""
        lost = draw.uniform(size=count) < 0.003
        burst = int(draw.integers(count // 4, 3 * count // 4))
        lost[burst:burst + max(1, int(0.05 * self.rate))] = True
        return np.flatnonzero(~lost)


def bristles(q: FloatArray, length: FloatArray) -> FloatArray:
    """Return the deflection (T, n), -1 to 1, of bristles that slip after ``length`` (n,) of way.

    Dahl's model, exact for steps that do not turn round.
    """
    way = np.diff(q, axis=0)
    decay, side = np.exp(-np.abs(way) / length), np.sign(way)
    state = np.zeros_like(q)
    for k in range(len(way)):
        state[k + 1] = side[k] + (state[k] - side[k]) * decay[k]
    return state
