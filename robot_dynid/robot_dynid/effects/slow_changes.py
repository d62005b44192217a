"""Slow changes of a moving robot: friction that warms up, drifting coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from robot_dynid.document import Section, Table, number, percent, tabled
from robot_dynid.effects.learnt import LearntEffect
from robot_dynid.effects.shown import FittedModel
from robot_dynid.kernels.adaptation import (
    FALLS,
    HEAD,
    POWER,
    RISE,
    follow_coefficients,
    follow_warmth,
)
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.types import FloatArray

SLOW = (
    'Friction falls as a joint is warmed by the power it dissipates, and varies with time of day. '
    'Warm-up: friction follows that power, without any measured effort. Adaptive: coefficients of '
    'friction and ripple follow the residual before each sample. Each is used only if it reduces '
    'the held-out error significantly. ')


@dataclass(frozen=True, eq=False)
class FrictionResidual:
    """Residual effort of a joint with its modelled friction, at the stamps ``time`` (N,) [s].

    ``viscous`` and ``dry`` (N,) [N m] are the modelled friction proportional to speed, and all
    other except the offset; ``power`` (N,) [W] the dissipated power; ``left`` (N,) [N m] measured
    minus modelled effort; ``waves`` (N, m) the columns of a torque ripple. ``gap`` [s] is the time
    since the end of the previous recording, None if the stamps do not show it.
    """

    time: FloatArray
    viscous: FloatArray
    dry: FloatArray
    power: FloatArray
    left: FloatArray
    waves: FloatArray
    gap: float | None = None

    @cached_property
    def steps(self) -> FloatArray:
        """Time (N,) [s] since the previous sample; for the first the gap, zero if unknown."""
        return np.diff(self.time, prepend=self.time[:1] - (self.gap or 0.0))

    @property
    def friction(self) -> FloatArray:
        """Viscous and dry friction (N, 2) [N m]."""
        return np.stack([self.viscous, self.dry], axis=1)

    @cached_property
    def heat(self) -> FloatArray:
        """Shares (N, 2) [W] of viscous and dry friction in the power."""
        whole = self.viscous + self.dry
        viscous = self.power * np.divide(
            self.viscous, whole, out=np.zeros_like(whole), where=whole != 0.0)
        return np.stack([viscous, self.power - viscous], axis=1)

    @cached_property
    def columns(self) -> FloatArray:
        """Torque of all coefficients at one (N, 2 + m) [N m]: viscous, dry, waves."""
        return np.ascontiguousarray(np.hstack([self.friction, self.waves]))


@dataclass(frozen=True, eq=False)
class Warming:
    """Viscous and dry friction of a joint that warms up.

    Each is 1 + rise - sum_i fall_i w_i times its value in the model, where the warmths follow T_i
    dw_i/dt = P / P_0 - w_i: P [W] is the power dissipated by the current friction, P_0 = ``power``
    the mean of that of the model in the recordings of the fit, T_i = ``seconds`` (k,). A cold
    joint has w = 0, one that continues to move as in these recordings tends to P / P_0. ``rise``
    (2,) and ``fall`` (2, k), first viscous, then dry, with deviations ``rise_std`` and
    ``fall_std``; ``seconds_std`` (k,) are those of the time constants. Raises ValueError for
    invalid shapes or numbers.
    """

    seconds: FloatArray
    power: float
    rise: FloatArray
    fall: FloatArray
    rise_std: FloatArray
    fall_std: FloatArray
    seconds_std: FloatArray

    def __post_init__(self) -> None:
        count = len(self.seconds)
        shapes = tuple(x.shape for x in (
            self.rise, self.rise_std, self.fall, self.fall_std, self.seconds_std))
        if shapes != ((2,), (2,), (2, count), (2, count), (count,)) or not count:
            raise ValueError('friction that warms up: arrays of shapes that do not match, '
                             f'{shapes}')
        numbers = np.concatenate([x.ravel() for x in (
            self.rise, self.fall, self.rise_std, self.fall_std, self.seconds,
            self.seconds_std)])
        if not np.isfinite(numbers).all() or not min(self.power, *self.seconds) > 0.0:
            raise ValueError('friction that warms up: numbers outside their ranges')

    def scales(self, warmth: FloatArray) -> FloatArray:
        """Return the factors (N, 2) of viscous and dry friction at ``warmth`` (N, k)."""
        return np.asarray(1.0 + self.rise - warmth @ self.fall.T)

    def torque(self, residual: FrictionResidual, warmth: FloatArray) -> FloatArray:
        """Return the torque (N,) [N m] to add to the model at ``warmth`` (N, k)."""
        return np.asarray(np.sum((self.scales(warmth) - 1.0) * residual.friction, axis=1))

    def warmth(self, residual: FrictionResidual, state: FloatArray) -> FloatArray:
        """Return the warmth (N, k) along a recording; ``state`` (k,) is updated."""
        return warmth_along(residual, self.seconds, self.power, state, self.law)

    @property
    def law(self) -> FloatArray:
        """Rise and falls (2, 1 + k) of viscous and dry friction."""
        return np.hstack([self.rise[:, None], self.fall])


def warmth_along(
    residual: FrictionResidual, seconds: FloatArray, power: float, state: FloatArray,
    law: FloatArray | None = None,
) -> FloatArray:
    """Return the warmth (N, k) along a recording, for time constants ``seconds`` (k,) [s].

    ``power`` [W] is that at which it tends to one; ``state`` (k,), the warmth at the end of the
    previous recording, is updated. It decays during the gap, and is zero if the gap is unknown.
    ``law`` (2, 1 + k), rise and falls of viscous and dry friction, reduces the heat of friction
    that has fallen; None uses the power of the model.
    """
    rates = np.asarray(1.0 / seconds)
    state *= 0.0 if residual.gap is None else np.exp(-rates * residual.gap)
    out = np.empty((len(residual.time), len(seconds)))
    if law is None:
        law = np.zeros((2, 1 + len(seconds)))
    follow_warmth(residual.heat / power, np.ascontiguousarray(law), residual.steps, rates, state,
                  out)
    return out


#: residuals beyond this many deviations are no friction, and not learnt from
GATE_DEVIATIONS = 4.0


@dataclass(frozen=True)
class SlowCoefficients:
    """Drift of the coefficients of one joint: viscous and dry friction, ripple.

    A coefficient deviates from the model by ``viscous`` and ``dry``, shares of the friction, or
    ``waves`` [N m] and returns to it over ``seconds``, those of ripple over ``wave_seconds``: an
    Ornstein-Uhlenbeck process. ``noise`` [(N m)^2 s] is the density of the other residual at low
    frequency. Raises ValueError for invalid numbers.
    """

    viscous: float
    dry: float
    waves: float
    seconds: float
    wave_seconds: float
    noise: float

    def __post_init__(self) -> None:
        numbers = (self.viscous, self.dry, self.waves, self.seconds, self.wave_seconds, self.noise)
        if not np.isfinite(numbers).all() or min(self.seconds, self.wave_seconds, self.noise
                                                 ) <= 0.0 or min(numbers) < 0.0:
            raise ValueError(f'slow coefficients {numbers}')

    def prior(self, waves: int) -> FloatArray:
        """Return deviations and rates [1/s] (2, m) of viscous, dry and ``waves`` columns."""
        ripple = [self.waves] * waves, [1.0 / self.wave_seconds] * waves
        return np.array([[self.viscous, self.dry, *ripple[0]],
                         [1.0 / self.seconds, 1.0 / self.seconds, *ripple[1]]])

    def unknown(self, waves: int) -> FloatArray:
        """Return the state (2 + m, m) of unknown coefficients, m = 2 + waves."""
        deviations = self.prior(waves)[0]
        return np.vstack([np.zeros((2, len(deviations))), np.diag(deviations ** 2)])

    def means(self, residual: FrictionResidual, state: FloatArray) -> FloatArray:
        """Return the coefficients (N, m) along a recording, each predicted before its sample.

        ``state`` (2 + m, m) is updated from recording to recording. It decays during the gap, and
        is reset if the gap is unknown.
        """
        columns = residual.columns
        means = np.empty(columns.shape)
        follow_coefficients(
            columns, np.stack([residual.left, residual.steps]),
            self.prior(columns.shape[1] - 2), np.array([self.noise, GATE_DEVIATIONS]), state,
            means)
        return means

    def torque(self, residuals: Sequence[FrictionResidual]) -> list[FloatArray]:
        """Return the torques (N,) [N m] of the coefficients along recordings in order."""
        state = self.unknown(residuals[0].waves.shape[1])
        return [np.einsum('np,np->n', one.columns, self.means(one, state)) for one in residuals]


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Slow changes of one joint: ``warming`` by friction, and ``slow`` coefficients.

    Either is None if the recordings of the fit showed none.
    """

    warming: Warming | None = None
    slow: SlowCoefficients | None = None

    def plain(self) -> dict[str, Any]:
        """Return all stored numbers in plain types."""
        return {key: value for key, value in to_plain(self).items() if value is not None}


class SlowChanges(LearntEffect):
    """Slow changes of all joints; parts are Adaptations. They follow measured efforts."""

    @classmethod
    def sections(cls, model: FittedModel) -> tuple[Section, ...]:
        """Return one section about slow changes, none where they were not looked for."""
        by_joint = dict(zip(model.robot.joints, model.parts_of('adaptation'), strict=True))
        rows, laws, warm = [], [], []
        for one in model.record.slow_changes:
            changes = by_joint[one.joint]
            warming, slow = (changes.warming, changes.slow) if changes else (None, None)
            rows.append((
                one.joint, percent(one.warming), number(one.warming_deviations, 2), bool(warming),
                percent(one.slow), number(one.slow_deviations, 2), bool(slow),
                *((slow.viscous, slow.dry, slow.seconds) if slow else (None,) * 3)))
            if warming:
                warm.append(one.joint)
                laws += [(
                    one.joint, f'{seconds:.3g} ± {1.96 * float(warming.seconds_std[i]):.2g}',
                    number(warming.power, 3),
                    *(f'{100.0 * value:.1f} ± {196.0 * std:.1f}' for value, std in zip(
                        warming.fall[:, i].tolist(), warming.fall_std[:, i].tolist())))
                    for i, seconds in enumerate(warming.seconds.tolist())]
        text = SLOW + (f'Friction that warms up shows at {", ".join(warm)}.' if warm else
                       'The recordings show no friction that warms up.')
        return tabled('Slow changes', text, Table(
            ('joint', 'warm-up gain [%]', 'in deviations', 'used', 'adaptive gain [%]',
             'in deviations', 'used', 'viscous share', 'dry share', 'over [s]'), rows,
            'Reduction of the squared held-out error'), Table(
            ('joint', 'time constant [s]', 'at [W]', 'viscous friction falls by [%]',
             'dry friction falls by [%]'), laws, 'Friction that warms up, with 95 % intervals'))

    @classmethod
    def read(cls, content: Any, where: str = '') -> Adaptation:
        """Return the changes of a joint; raises ValueError or TypeError if damaged."""
        return from_plain(Adaptation, content, where)


class SlowChangeTracker:
    """Tracks the slow changes of one joint from recording to recording.

    ``waves`` is the number of columns of its torque ripple.
    """

    def __init__(self, adaptation: Adaptation, waves: int = 0) -> None:
        self._warming, self._slow = adaptation.warming, adaptation.slow
        self._warmth = np.zeros(0 if self._warming is None else len(self._warming.seconds))
        self._state = np.zeros((0, 0)) if self._slow is None else self._slow.unknown(waves)

    def __call__(self, residual: FrictionResidual) -> tuple[FloatArray, FloatArray]:
        """Return torques (N,) [N m] to add to the model: for warming, and for all slow changes.

        Warming uses no measured effort, slow coefficients only that before each sample.
        """
        warmed = np.zeros(len(residual.time))
        if self._warming is not None:
            warmed = self._warming.torque(residual, self._warming.warmth(residual, self._warmth))
        if self._slow is None:
            return warmed, warmed
        means = self._slow.means(replace(residual, left=residual.left - warmed), self._state)
        return warmed, warmed + np.einsum('np,np->n', residual.columns, means)


#: coefficients tracked on line, viscous and dry friction: ripple hardly passes the observer
ONLINE_COUNT = 2


class SlowTables(NamedTuple):
    """Slow changes of n joints, none for n = 0, with up to k time constants of warmth.

    ``rates`` (n, k) [1/s] of the warmth; ``laws`` (n, 2, 2 + k) by kind of friction: mean power,
    rise and falls; ``prior`` (n, 2, m) deviations and rates of the coefficients; ``settings`` (n,
    4): noise, gate, least speed and gain, see `kernels.adaptation`.
    """

    rates: FloatArray
    laws: FloatArray
    prior: FloatArray
    settings: FloatArray

    @classmethod
    def of(cls, adaptations: Sequence[Adaptation | None], gain: float, speed: FloatArray
           ) -> SlowTables:
        """Return the tables for an observer of ``gain`` [1/s]; joints move above ``speed`` (n,).

        Empty tables without ``adaptations``.
        """
        n = len(adaptations)
        warmings = [one.warming for one in adaptations if one and one.warming]
        k = max((len(one.seconds) for one in warmings), default=1)
        tables = cls(np.ones((n, k)), np.zeros((n, 2, FALLS + k)), np.zeros((n, 2, ONLINE_COUNT)),
                    np.ones((n, 4)))
        tables.laws[:, :, POWER] = 1.0
        tables.settings[:, 1:] = np.column_stack(
            np.broadcast_arrays(GATE_DEVIATIONS, speed[:n], gain))
        for j, one in enumerate(adaptations):
            if one and one.warming:
                count = len(one.warming.seconds)
                tables.rates[j, :count] = 1.0 / one.warming.seconds
                tables.laws[j, :, POWER] = one.warming.power
                tables.laws[j, :, RISE] = one.warming.rise
                tables.laws[j, :, FALLS:FALLS + count] = one.warming.fall
            if one and one.slow:
                tables.prior[j] = one.slow.prior(0)
                tables.settings[j, 0] = one.slow.noise
        return tables

    def memory(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the memory before the first state: a cold robot with unknown coefficients.

        Pasts (n, h), states of the coefficients (n, 2 + m, m), and scales (2, n) of viscous and
        dry friction.
        """
        n, k = self.rates.shape
        states = np.zeros((n, 2 + ONLINE_COUNT, ONLINE_COUNT))
        for state, prior in zip(states, self.prior, strict=True):
            state[2:] = np.diag(prior[0] ** 2)
        return np.zeros((n, HEAD + k + 2 * ONLINE_COUNT)), states, np.ones((2, n))
