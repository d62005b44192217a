"""Torque ripple of one joint: orders by held-out error and chance, then all of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.ripple.model import SHARES, TorqueRipple, amplitudes
from robot_dynid.ripple.normal_equations import NormalEquations, squares_alone
from robot_dynid.ripple.phase import Fit, Phases, compliance_of_load, refined
from robot_dynid.ripple.scan import RESOLVED, JointResidual, Peak, Spectrum, gear_orders
from robot_dynid.types import FloatArray

MOST_WAVES = 10
#: candidates of a scan that are tried beside the waves there are, before it ends
TRIED = 3
#: a wave must remove this share of the held-out variance, by so many deviations of its gain
LEAST_GAIN, SURE = 2e-3, 2.0
#: all of them together by so many
SURE_TOGETHER = 3.0
#: and each must be this unlikely by chance among all orders and delays
UNLIKELY = 1e-3
#: waves after each of which delays and compliance are fitted, for the scans that follow
SETTLING = 2
#: orders beside that of a scan that are tried then
NEIGHBOURS = (-2.0, -1.0, 0.0, 1.0, 2.0)
#: deviations from zero from which on a compliance is used
TWISTED = 4.0
#: gears twist by less than this [rad, m], the root mean square
MOST_TWIST = 4e-3
#: compliances that the first scan tries, in shares of a turn of the phase of this order
FIRST_TWISTS, TWIST_ORDER = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), 1000.0
#: a joint is loaded, so that a first scan tries them, from a spread [N m] of its effort on
LOADED = 10.0


@dataclass(frozen=True)
class Wave:
    """One wave of torque ripple as it was found.

    ``order`` [1/rad]; ``amplitude`` [N m], its root mean square over the recordings; ``delay``
    [s] and its deviation; ``chance`` that noise alone gives such a wave. ``aliases`` are orders
    [1/rad] that explain the same rows about as well.
    """

    order: float
    amplitude: float
    delay: float
    delay_std: float
    chance: float
    aliases: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class RippleFit:
    """Torque ripple of a joint, or None; ``waves`` as found.

    ``aliased`` waves are there, but the recordings do not show their orders: they are not used.
    ``before`` and ``after`` [N m] are the root mean squares of stretches left out in turn without
    and with it. ``compliance`` [rad/(N m)] and its deviation are those that the load shows, see
    `compliance_of_load`; zero where the phase shows none.
    """

    ripple: TorqueRipple | None
    waves: tuple[Wave, ...]
    before: float
    after: float
    compliance: float = 0.0
    compliance_std: float = 0.0
    aliased: tuple[Wave, ...] = ()


def fit_ripple(data: JointResidual, ratio: float | None = None) -> RippleFit:
    """Return the torque ripple in a residual, None where it shows none beyond chance.

    ``ratio`` of the gear where it is known: its orders are looked at first.
    """
    known = gear_orders(ratio)
    before = float(np.sqrt(np.mean(data.residual**2)))
    phases = _chosen(data, known)
    chances: list[float] = []
    while len(phases.orders):
        phases = _fitted(phases, data)
        fit = Fit.of(phases, data)
        left = Spectrum.of(data, fit.left(), phases.compliance)
        chances = _chances(phases, fit, left, known)
        worst = int(np.argmax(chances))
        if chances[worst] <= UNLIKELY:
            break
        phases = phases.without(worst)
    if not len(phases.orders):
        return RippleFit(None, (), before, before)
    waves = _waves(phases, data, chances, _aliases(phases, fit, left, known))
    for wave in waves:
        if wave.aliases:
            phases = phases.without(int(np.argmin(np.abs(phases.orders - wave.order))))
    aliased = tuple(wave for wave in waves if wave.aliases)
    nothing = RippleFit(None, (), before, before, aliased=aliased)
    if not len(phases.orders):
        return nothing
    errors = NormalEquations.of(data, phases.columns(data)).held_out()
    if not _better(data.residual, errors, data, SURE_TOGETHER):
        return nothing
    after = float(np.sqrt(np.mean(errors**2)))
    twist = compliance_of_load(phases, data) if phases.compliance else (0.0, 0.0)
    return RippleFit(phases.ripple(data), tuple(wave for wave in waves if not wave.aliases),
                     before, after, *twist, aliased)


def _chosen(data: JointResidual, known: FloatArray) -> Phases:
    """Return the waves that lower the held-out error one after the other.

    A wave that only follows the errors of the effort, through the twist of a compliance, stands
    out, too, but lowers nothing; then the scan begins with a stiff gear.
    """
    scans = _first_scans(data)
    first = max(scans, key=lambda c: float(scans[c].power.max()))
    phases = _chosen_from(Phases.none(first), data, known, scans[first])
    if first == 0.0 or len(phases.orders):
        return phases
    return _chosen_from(Phases.none(0.0), data, known, scans[0.0])


def _chosen_from(
    phases: Phases, data: JointResidual, known: FloatArray, spectrum: Spectrum
) -> Phases:
    """Return ``phases`` with waves that lower the error; ``spectrum`` is that of the residual."""
    error = left = data.residual
    equations = NormalEquations.of(data, phases.columns(data))
    while len(phases.orders) < MOST_WAVES:
        if left is not data.residual:
            spectrum = Spectrum.of(data, left, phases.compliance)
        peaks = [p for p in spectrum.peaks(known) if _apart(p.order, phases, known)]
        for peak in _by_error(peaks, phases, data, left)[:TRIED]:
            alone = Phases.none(phases.compliance).with_wave(peak.order, peak.delay)
            more = equations.joined(alone.columns(data))
            now = more.held_out()
            if _better(error, now, data):
                break
        else:
            return phases
        phases, equations, error = phases.with_wave(peak.order, peak.delay), more, now
        if len(phases.orders) <= SETTLING:
            phases = _settled(phases, data, known)
            equations = NormalEquations.of(data, phases.columns(data))
            error = equations.held_out()
        left = equations.left()
    return phases


def _apart(order: float, phases: Phases, known: FloatArray) -> bool:
    """Return whether an order is not one of the waves, nor too near to one to be told from it."""
    distance = np.abs(phases.orders - order)
    return not np.any(distance < (1e-9 if order in known else RESOLVED))


def _by_error(
    peaks: Sequence[Peak], phases: Phases, data: JointResidual, left: FloatArray
) -> list[Peak]:
    """Return the peaks by the held-out error of one wave by itself in what is ``left`` (N,)."""
    orders, delays = (np.array([getattr(p, name) for p in peaks]) for name in ('order', 'delay'))
    each = Phases(orders, delays, phases.compliance, np.zeros(len(peaks)))
    squares = squares_alone(data, left, each.columns(data))
    return [peaks[k] for k in np.argsort(squares, kind='stable')]


def _first_scans(data: JointResidual) -> dict[float, Spectrum]:
    """Return scans by compliance [rad/(N m)]; with the best of them one wave stands out most."""
    spread = float(np.std(data.effort))
    twists = FIRST_TWISTS if spread >= LOADED else (0.0,)
    tried = [twist / (TWIST_ORDER * max(spread, 1e-9)) for twist in twists]
    return {c: Spectrum.of(data, data.residual, c) for c in tried}


def _better(
    before: FloatArray, after: FloatArray, data: JointResidual, sure: float = SURE
) -> bool:
    """Return whether held-out errors (N,) fell by enough, and by ``sure`` deviations of that.

    The latter without the mean error of each block, which is slow: friction and links, of which
    the products with the waves are no gain, but may look like one.
    """
    blocks = data.block
    count = np.bincount(blocks)

    def squares(errors: FloatArray) -> FloatArray:
        mean = np.bincount(blocks, errors) / count
        return np.asarray(np.bincount(blocks, (errors - mean[blocks])**2))

    gains = squares(before) - squares(after)
    total = float(np.sum(before**2) - np.sum(after**2))
    return total > LEAST_GAIN * float(np.sum(data.residual**2)) and \
        float(gains.sum()) > sure * float(np.std(gains)) * np.sqrt(len(gains))


def _fitted(phases: Phases, data: JointResidual) -> Phases:
    """Return the phases of the least squares; the compliance where it is there beyond doubt."""
    twisted = refined(phases, data, twists=True)
    twist = twisted.compliance * float(np.sqrt(np.mean(data.effort**2)))
    if TWISTED * twisted.compliance_std < twisted.compliance and twist < MOST_TWIST:
        return twisted
    return refined(phases, data, twists=False)


def _settled(phases: Phases, data: JointResidual, known: FloatArray) -> Phases:
    """Return fitted phases, the last wave of the order, of those near, that fits best.

    The load of a joint changes with its position, so that a scan with a compliance that is off a
    little sees an order that is off a little.
    """
    order = phases.orders[-1]
    if order in known:
        return _fitted(phases, data)
    tried = [_fitted(replace(phases, orders=np.append(phases.orders[:-1], order + shift)), data)
             for shift in NEIGHBOURS]
    return min(tried, key=lambda one: float(np.sum(Fit.of(one, data).left()**2)))


def _chances(
    phases: Phases, fit: Fit, left: Spectrum, known: FloatArray
) -> list[float]:
    """Return for each wave the probability of its power in what is ``left`` without all."""
    errors, found = fit.left(), []
    for k, (order, delay) in enumerate(zip(phases.orders, phases.delays, strict=True)):
        alone = errors + fit.of_wave(k)
        wave = float(order), float(delay), phases.compliance
        found.append(float(np.exp(-max(0.0, left.surprise_of(fit.data, alone, wave, known)))))
    return found


def _aliases(
    phases: Phases, fit: Fit, left: Spectrum, known: FloatArray
) -> list[tuple[float, ...]]:
    """Return for each wave the orders [1/rad] that explain nearly as much, none where it is told.

    An order that rows hardly show has that of equal samples. Orders of a gear, ``known`` (F,), are
    told from others beforehand.
    """
    data, errors = fit.data, fit.left()
    found: list[tuple[float, ...]] = []
    for k, order in enumerate(phases.orders):
        if order > data.highest_order:
            found.append((data.alias(float(order)),))
            continue
        rivals = np.empty(0)
        if order not in known:
            alone = Spectrum.of(data, errors + fit.of_wave(k), phases.compliance)
            rivals = alone.rivals(float(order), data.resolved, left)
        found.append(tuple(rivals.tolist()))
    return found


def _waves(
    phases: Phases, data: JointResidual, chances: list[float], aliases: list[tuple[float, ...]]
) -> tuple[Wave, ...]:
    """Return the waves as they are reported, the largest first."""
    shares = amplitudes(data.velocity, data.slow, data.fast)
    coefficients = phases.ripple(data).coefficients.reshape(-1, SHARES, 2)
    power = np.mean(np.sum(np.einsum('ns,wsc->nwc', shares, coefficients)**2, axis=2), axis=0)
    found = [Wave(float(order), float(size), float(delay), float(std), chance, same)
             for order, size, delay, std, chance, same in zip(
                 phases.orders, np.sqrt(power), phases.delays, phases.delay_std, chances, aliases,
                 strict=True)]
    return tuple(sorted(found, key=lambda wave: -wave.amplitude))
