"""Torque ripple: waves over the position of joints, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Figure, Section, Table, number, percent
from robot_dynid.effects.effect import LinearTorque
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.effects.shown import ByJoint, FittedModel, Trace
from robot_dynid.figures import Spec, axis, line, points
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.units import length, unit
from robot_dynid.types import FloatArray, Samples, frozen

WAVES_SHOWN = 12  # waves that are shown at once
LEAST_CHANCE = 1e-9  # smaller chances are all shown as this
#: bins of one wave of ripple; share of the RMS speed from which a joint moves
PHASES, MOVING_RMS_SHARE = 36, 0.05
RIPPLE = (
    'Gears and motors cause torque that repeats with every turn. Errors are RMS of the unfiltered '
    'effort on held-out data, without and with the waves; a wave is used only if it reduces them '
    'and if noise of the same spectrum makes one as large with a probability below 1 in 1000. '
    'Delay: by how much the wave comes before the position of its row. Above the top speed of the '
    'recordings no wave is predicted.')
ALIASED = (
    'Not used, because the sampling of the effort makes them look like others (record faster, or '
    'move slowly through the range of the joint):')
STIFFNESS = (
    'Torque twists a gear, and shifts the waves of its motor against the encoder behind it. The '
    'stiffness that this implies, with its 95 % interval, is experimental.')

#: shares of a wave: at any speed, growing with speed, at creeping speed; each has a sine and a
#: cosine
SHARES = 3
#: columns of a wave
WAVE_COLUMNS = 2 * SHARES
#: top speed that amplitudes are fitted to, over that up to which they grow
ABOVE_FAST = 2.0


@dataclass(frozen=True, eq=False)
class TorqueRipple:
    """Waves of torque over the position of one joint, linear in their coefficients.

    tau = sum over waves k of a_k(qd) sin(phi_k) + b_k(qd) cos(phi_k) with the phase phi_k =
    orders_k (q + compliance tau_m + delays_k qd): q as measured at the same instant as the effort,
    tau_m the effort without ripple, which twists the gear if the encoder sits behind it.
    ``orders`` (w,) [1/rad] are waves per radian of the joint; ``delays`` (w,) [s] by which the
    position of a row of measurements is older than its effort, negative if it is newer or the wave
    comes later; ``compliance`` [rad/(N m)]. Amplitudes are a(qd) = a_0 + a_1 min(|qd| / fast, 1) +
    a_2 exp(-|qd| / slow), ``slow`` and ``fast`` in rad/s, up to ABOVE_FAST ``fast``, the top
    recorded speed, and zero beyond. ``coefficients`` (6 w,) [N m] are those of sine and cosine of
    a_0, a_1, a_2, wave by wave. A prismatic joint has m for rad, N for N m. Raises ValueError for
    invalid shapes or numbers.
    """

    orders: FloatArray
    delays: FloatArray
    compliance: float
    slow: float
    fast: float
    coefficients: FloatArray

    def __post_init__(self) -> None:
        shapes = (self.orders.shape, self.delays.shape, self.coefficients.shape)
        count = len(self.orders)
        if shapes != ((count,), (count,), (WAVE_COLUMNS * count,)) or not count:
            raise ValueError(f'torque ripple: arrays of shapes that do not match, {shapes}')
        numbers = np.concatenate([self.orders, self.delays, self.coefficients,
                                  [self.compliance, self.slow, self.fast]])
        if not np.isfinite(numbers).all() or not min(self.slow, self.fast, *self.orders) > 0.0:
            raise ValueError('torque ripple: numbers outside their ranges')

    def columns(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the columns (N, 6 w) of ``coefficients``.

        ``position`` (N,) [rad] as measured in the rows of the effort, ``velocity`` (N,) [rad/s],
        ``effort`` (N,) [N m] without ripple.
        """
        return wave_columns(self.phases(position, velocity, effort).T,
                            amplitudes(velocity, self.slow, self.fast).T)

    def phases(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the phase (N, w) [rad] of every wave; arguments as in `columns`."""
        twisted = position + self.compliance * effort
        return np.asarray(self.orders[:, None] * (twisted + self.delays[:, None] * velocity)).T

    def effort(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N,) [N m] of the ripple; arguments as in `columns`."""
        return np.asarray(self.columns(position, velocity, effort) @ self.coefficients)

    def wave(
        self, order: float, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return phase [rad] and torque [N m] (N,) of the wave nearest to ``order`` [1/rad].

        The other arguments as in `columns`.
        """
        k = int(np.argmin(np.abs(self.orders - order)))
        single = replace(self, orders=self.orders[k:k + 1], delays=self.delays[k:k + 1],
                      coefficients=self.coefficients[WAVE_COLUMNS * k:WAVE_COLUMNS * (k + 1)])
        return (single.phases(position, velocity, effort)[:, 0],
                single.effort(position, velocity, effort))

    def plain(self) -> dict[str, Any]:
        """Return all stored numbers in plain types."""
        content: dict[str, Any] = to_plain(self)
        return content


def amplitudes(
    velocity: FloatArray, slow: float | FloatArray, fast: float | FloatArray
) -> FloatArray:
    """Return the shares (..., 3) of an amplitude at ``velocity`` (...) [rad/s], see TorqueRipple.
"""
    speed = np.abs(velocity)
    shares = np.stack([np.ones_like(speed), np.minimum(speed / fast, 1.0),
                       np.exp(-speed / slow)], axis=-1)
    return np.where((speed <= ABOVE_FAST * fast)[..., None], shares, 0.0)


def wave_columns(phase: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the columns (N, 6 w) of waves of a ``phase`` (w, N) [rad] with ``shares`` (3, N).

    Wave by wave, share by share: sine, then cosine, contiguous in memory.
    """
    waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    return np.asarray((shares[:, None] * waves[:, None]).reshape(
        WAVE_COLUMNS * len(phase), shares.shape[1]).T)


class RippleTorque(LearntEffect):
    """The torque ripple of all joints, prepared for many short calls."""

    def __init__(self, parts: Sequence[TorqueRipple | None]) -> None:
        super().__init__(parts)
        present = [(j, one) for j, one in enumerate(parts) if one is not None]
        self.any = bool(present)
        self._joints = np.array([j for j, one in present for _ in one.orders], dtype=np.int64)
        self._orders, self._delays, self._compliance, self._slow, self._fast = (
            frozen(np.concatenate([np.broadcast_to(getattr(one, name), one.orders.shape)
                                   for _, one in present]) if present else [])
            for name in ('orders', 'delays', 'compliance', 'slow', 'fast'))
        coefficients = [one.coefficients.reshape(-1, SHARES, 2) for _, one in present]
        self._sine, self._cosine = np.ascontiguousarray(np.moveaxis(
            np.concatenate(coefficients) if coefficients else np.empty((0, SHARES, 2)), 0,
            2).swapaxes(0, 1))
        self._firsts = np.flatnonzero(np.diff(self._joints, prepend=-1))
        self._rippling = self._joints[self._firsts]

    def __call__(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, n) [N m] of the ripple.

        ``position``, ``velocity``, ``effort`` (N, n) as in `TorqueRipple.columns`.
        """
        torque = np.zeros(effort.shape)
        if not self.any:
            return torque
        q, qd, tau = (x[:, self._joints] for x in (position, velocity, effort))
        phase = self._orders * (q + self._compliance * tau + self._delays * qd)
        shares = np.moveaxis(amplitudes(qd, self._slow, self._fast), -1, 0)
        sine, cosine = (np.einsum('sw,snw->nw', one, shares) for one in (
            self._sine, self._cosine))
        waves = np.sin(phase) * sine + np.cos(phase) * cosine
        torque[:, self._rippling] = np.add.reduceat(waves, self._firsts, axis=1)
        return torque

    @classmethod
    def sections(cls, model: FittedModel) -> tuple[Section, ...]:
        """Return one section about torque ripple, none where it was not looked for."""
        ripples = model.record.ripple
        if not ripples:
            return ()
        text = f'{RIPPLE} {STIFFNESS}' if any(one.stiffness for one in ripples) else RIPPLE
        silent = ', '.join(one.joint for one in ripples if not one.waves + one.aliased)
        if silent:
            text = f'{text} None beyond chance at {silent}.'
        hidden = '; '.join(f'{number(wave.order)} at {one.joint}, which looks like '
                           f'{", ".join(map(number, wave.aliases))}'
                           for one in ripples for wave in one.aliased)
        if hidden:
            text = f'{text} {ALIASED} {hidden}.'
        count = sum(len(one.waves) for one in ripples)
        errors = Table(('joint', 'without [N m]', 'with [N m]', 'variance explained [%]', 'waves',
                        'stiffness [kN m/rad]'), (
            (one.joint, one.before, one.after, percent(one.gain), len(one.waves),
             _stiffness(one.stiffness)) for one in ripples if one.waves), 'Held-out RMS error')
        waves = Table(('joint', 'waves per turn', 'rms [N m]', 'delay [ms]', 'chance'), (
            (one.joint, wave.order, wave.amplitude,
             f'{1e3 * wave.delay:.2f} ± {1e3 * wave.delay_std:.2f}',
             f'{wave.chance:.0e}' if wave.chance > LEAST_CHANCE else f'< {LEAST_CHANCE:g}')
            for one in ripples for wave in one.waves),
            f'All {count} waves' if count > WAVES_SHOWN else 'Waves', folded=count > WAVES_SHOWN)
        return (Section('Torque ripple', text=text, tables=(errors, waves) if count else ()),)

    @classmethod
    def figures(cls, model: FittedModel, traces: Sequence[Trace]) -> ByJoint:
        """Return the largest wave of every joint with torque ripple, none without."""
        robot, drawn = model.robot, ByJoint()
        for joint in model.record.ripple:
            if not joint.waves or any(t.waves is None or t.velocity is None for t in traces):
                continue
            j, order = robot.joints.index(joint.joint), joint.waves[0].order
            phase, part = np.concatenate(
                [t.waves[:, :, j] for t in traces], axis=1)  # type: ignore[index]
            speed = np.abs(np.concatenate([t.velocity[:, j] for t in traces]))  # type: ignore[index]
            moves = speed > MOVING_RMS_SHARE * np.sqrt(np.mean(speed**2))
            measured = part + np.concatenate(
                    [t.measured[:, j] - t.predicted[:, j] for t in traces])
            drawn[j] = (Figure(
                _wave(phase[moves], (measured[moves], part[moves]), order,
                      (length(robot, j), unit(robot, j))),
                f'Torque ripple over position, {order:.4g} waves per turn',
                'The largest wave of the joint in motion: the points should follow the line.'),)
        return drawn

    @classmethod
    def read(cls, content: Any, where: str = '') -> TorqueRipple:
        """Return the ripple of a joint; raises ValueError or TypeError if damaged."""
        return from_plain(TorqueRipple, content, where)

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, n) [N m], see `of_samples`."""
        return self.of_samples(samples, effort)

    def of_samples(self, samples: Samples, effort: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] at the stamps of the effort.

        ``effort`` (N, n) [N m] is that of the model without ripple. Zero if the samples lack the
        positions as measured.
        """
        if samples.raw_position is None or not self.any:
            return np.zeros_like(effort)
        return self(samples.raw_position, samples.at_stamps(samples.velocity), effort)


def _wave(
    phase: FloatArray, pair: tuple[FloatArray, FloatArray], order: float, units: tuple[str, str],
) -> Spec:
    """Return measured and modelled torque, each (N,), over one wave."""
    edges = np.linspace(0.0, 2.0 * np.pi, PHASES + 1)
    middle, low, data, high = figures.quartiles(np.mod(phase, 2.0 * np.pi), pair[0], edges)
    _, _, law, _ = figures.quartiles(np.mod(phase, 2.0 * np.pi), pair[1], edges)
    scale, name = 1e3 / order, f'm{units[0]}'
    curves = [figures.band(scale * middle, low, high, 'quartiles', figures.CONTROL),
              points(scale * middle, data, 'measured, median', figures.CONTROL),
              line(scale * middle, law, 'model', figures.MODEL, width=2)]
    return figures.figure(curves, axis(f'position within a wave [{name}]'),
                          axis(f'torque [{units[1]}]'),
                          {'height': 300, 'hovermode': 'closest'})


def _stiffness(interval: tuple[float, float, float] | None) -> str:
    if interval is None:
        return ''
    low, value, high = (1e-3 * one for one in interval)
    return f'{number(value, 3)} ({number(low, 3)} to {number(high, 3)})'
