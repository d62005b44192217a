"""Preprocessing of raw recordings: repair, resample, filter, differentiate, trim, decimate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, UsageError
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals import alignment, periodic
from robot_dynid.signals.encoders import joint_side
from robot_dynid.signals.external import with_external
from robot_dynid.signals.filters import derivative, fused_velocity, zero_phase_low_pass
from robot_dynid.signals.plausible import plausible
from robot_dynid.signals.single_joint_motion import without_flicker
from robot_dynid.signals.stacked import require_channels, stacked
from robot_dynid.types import FloatArray, Part, RawLog, Samples, concatenate, interpolated

#: a joint moves while its speed is above this share of its peak, and above this speed [rad/s, m/s]
MOVING_SHARE, MOVING_SPEED = 0.02, 1e-3
#: samples kept per period of the cut-off frequency; more carry no information
OVERSAMPLING = 8.0
#: periods of the cut-off until the filter's step response is within 0.15 % of its end, left out
#: where a stretch begins or ends in motion; and how long it must rest at an end to be known there
FILTER_PERIODS, RESTING = 2.0, 0.5
#: highest cut-off that a recording shows, as a share of its sampling rate: derivatives by central
#: differences are right so far
CUTOFF_RATE_SHARE = 0.3
#: cut-offs [Hz] that are tried where none is given
CUTOFFS = (2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0, 33.0, 50.0, 75.0, 110.0)
#: least samples of a stretch that is filtered
FILTERED_SAMPLES = 5
#: a grid may be this much coarser than the recording
SLOWEST_GRID = 1.5
#: a grid may be so many times finer than the recording
FINEST_GRID = 20.0
#: low-pass [Hz] for the comparison of velocity with position; the least lag in steps that counts
LAG_CUTOFF, LEAST_LAG_STEPS = 6.0, 0.05


CUTOFF = NumberRange(1e-2, 1e4, 'Hz')
EFFORT_LAG = NumberRange(-10.0, 10.0, 's')
RATE = NumberRange(1.0, 1e5, 'Hz')
PERIODS = NumberRange(1, 1e9, whole=True)


@dataclass(frozen=True)
class Preprocessing:
    """Settings of ``prepare``.

    ``cutoff`` [Hz] of the low-pass; ``rate`` [Hz] of the uniform grid (None: the recording's own);
    ``effort_lag`` [s] by which effort is later than position; ``decimate`` whether to thin out
    samples far above the cut-off; ``trim_rest`` whether to drop the rest before the first and
    after the last motion.
    """

    cutoff: float = field(metadata={BOUNDS: CUTOFF})
    rate: float | None = field(default=None, metadata={BOUNDS: RATE})
    effort_lag: float = field(default=0.0, metadata={BOUNDS: EFFORT_LAG})
    decimate: bool = True
    trim_rest: bool = True

    def shown_by(self, recording: Repaired) -> Preprocessing:
        """Return them with the cut-off limited to what a ``recording`` of another rate shows."""
        return replace(self, cutoff=min(self.cutoff, CUTOFF_RATE_SHARE / recording.step))


@dataclass(frozen=True)
class Averaging:
    """Record of the averaging over periods, and the scatter between them.

    ``period`` [s] on the clock of the recording, the first of ``periods`` beginning at ``start``
    [s]; standard deviations of single samples ``position_noise`` (n,) [rad, m] and
    ``effort_noise`` (n,) [unit of the recorded effort]; those of the mean are smaller by the root
    of ``periods``.
    """

    source: str
    period: float
    start: float
    periods: int = field(metadata={BOUNDS: PERIODS})
    position_noise: tuple[float, ...]
    effort_noise: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Efforts:
    """Efforts at their own ``time`` (M,) s: ``effort``, ``joint_torque`` (M, n) as recorded.

    Beside them ``position`` (M, n) [rad, m] of the same rows; for efforts of other messages that
    between the rows.
    """

    time: FloatArray
    effort: FloatArray
    joint_torque: FloatArray | None
    position: FloatArray


@dataclass(frozen=True, eq=False)
class Repaired:
    """Contiguous, uniformly sampled parts of one recording and what was done to it.

    Their velocity is the best estimate from position and, where it was recorded, velocity. With
    ``averaging`` the one part is the mean period, and its velocity is not used. ``measured`` holds
    for every part the efforts at their own stamps; where it is empty those of ``parts`` are.
    ``place`` is that of the recording where it is a part of a longer one, ``epoch`` its time of
    day as in RawLog; ``began`` [s] when the whole began, None: with the first row.
    """

    source: str
    parts: tuple[RawLog, ...]
    step: float
    notes: tuple[str, ...]
    averaging: Averaging | None = None
    measured: tuple[Efforts, ...] = ()
    place: Part | None = None
    epoch: float | None = None
    began: float | None = None


def repair(robot: RobotModel, log: RawLog, rate: float | None = None) -> Repaired:
    """Order, clean, split and resample a recording; nothing here depends on the cut-off.

    Raises DataError when there is no usable effort or too little data, UsageError when the joints
    are not those of the robot.
    """
    check_usable(robot, log)
    log, notes = plausible(robot, log)
    known = log.time[_effort_known(robot, log)]
    log, more = alignment.without_holes(log)
    notes += more
    log, more = alignment.without_stale_rows(log)
    notes += more
    step = grid_step(log, rate)
    parts, more = alignment.split_at_gaps(log, step)
    notes += more
    uniform = [(part, grid) for part in parts if len(part.time) > 1
               and len((grid := alignment.uniform(part, step)).time)]
    moved, lags = _synchronous([grid for _, grid in uniform], step)
    fused = (without_flicker(_fused(p, step), log.position, step) for p in moved)
    both, found = joint_side(robot, tuple(fused), step)
    own = [_measured(robot, part, known) for part, _ in uniform]
    if not any(len(part.time) for part in own):
        own = [_measured(robot, part, part.time) for part, _ in uniform]
        notes.append(f'{log.source}: no row holds the effort of all joints at once; scored '
                     'against interpolated effort, so errors look smaller than they are')
    return Repaired(log.source, both, step, (*notes, *lags, *found), measured=tuple(own),
                    place=log.part, epoch=log.epoch,
                    began=log.began if log.part is None else log.part.began)


def _effort_known(robot: RobotModel, log: RawLog) -> NDArray[np.bool_]:
    """Return in which rows (T,) all efforts, and torque behind gears or outside, are known."""
    assert log.effort is not None
    known = np.isfinite(log.effort).all(axis=1)
    if log.external_torque is not None:
        known &= np.isfinite(log.external_torque).all(axis=1)
    sensors = list(robot.drive.torque_sensors)
    if sensors and log.joint_torque is not None:
        known &= np.isfinite(log.joint_torque[:, sensors]).all(axis=1)
    return np.asarray(known)


def _measured(robot: RobotModel, part: RawLog, known: FloatArray) -> Efforts:
    """Return the efforts of a part as they were measured, in rows of the stamps ``known``."""
    if part.effort_messages is not None and not robot.drive.torque_sensors:
        time, effort = part.effort_messages
        inside = (time >= part.time[0]) & (time <= part.time[-1])
        inside &= np.isfinite(effort).all(axis=1)
        if part.external_torque is not None:
            inside &= np.interp(time, part.time, np.isin(part.time, known)) == 1.0
        position = interpolated(part.time, part.position, time[inside], degree=1)
        return Efforts(time[inside], effort[inside], None, position)
    assert part.effort is not None
    rows = np.isin(part.time, known)
    torque = None if part.joint_torque is None else part.joint_torque[rows]
    return Efforts(part.time[rows], part.effort[rows], torque, part.position[rows])


def check_usable(robot: RobotModel, log: RawLog) -> None:
    """Raise UsageError when the joints are not those of the robot, DataError without effort."""
    if log.joints != robot.joints:
        raise UsageError(f'{log.source}: joints {log.joints} are not those of {robot.name}: '
                         f'{robot.joints}')
    _require_effort(log)


def grid_step(log: RawLog, rate: float | None) -> float:
    """Return the step [s] of the uniform grid, by default the recording's own.

    Raises UsageError when ``rate`` [Hz] is below that of the recording, or far above.
    """
    own = alignment.typical_step([log])
    step = 1.0 / rate if rate else own
    if step > SLOWEST_GRID * own:
        raise UsageError(f'{log.source}: a grid of {rate:g} Hz is below the rate of the recording '
                         f'({1.0 / own:.4g} Hz) and would fold noise into the signals; leave rate '
                         'out: samples are thinned after the low-pass')
    if step < own / FINEST_GRID:
        raise UsageError(f'{log.source}: a grid of {rate:g} Hz is more than {FINEST_GRID:g} times '
                         f'as fine as the recording ({1.0 / own:.4g} Hz) and tells no more; leave '
                         'rate out')
    return step


def _fused(part: RawLog, step: float) -> RawLog:
    """Return a part whose velocity is the best estimate from position and measured velocity."""
    if part.velocity is None:
        return replace(part, velocity=derivative(part.position, step))
    return replace(part, velocity=fused_velocity(part.position, part.velocity, step))


def _synchronous(parts: list[RawLog], step: float) -> tuple[list[RawLog], list[str]]:
    """Advance measured velocity by its lag behind position, where that is significant.

    Drivers that compute velocity by a backward difference or a filter deliver it late.
    """
    if not parts or parts[0].velocity is None:
        return parts, []
    longest = max(parts, key=lambda p: len(p.time))
    assert longest.velocity is not None
    cutoff = min(LAG_CUTOFF, 0.1 / step)
    lag = alignment.velocity_lag(zero_phase_low_pass(longest.position, cutoff, step),
                                 zero_phase_low_pass(longest.velocity, cutoff, step), step)
    if not lag.significant or abs(lag.seconds) < LEAST_LAG_STEPS * step:
        return parts, []
    shifted = [replace(p, velocity=alignment.shift(p.velocity, lag.seconds, step))
               for p in parts if p.velocity is not None]
    side = 'later' if lag.seconds > 0.0 else 'earlier'
    return shifted, [f'{longest.source}: velocity is {1e3 * abs(lag.seconds):.2f} +- '
                     f'{1e3 * lag.std:.2f} ms {side} than position; corrected']


def _require_effort(log: RawLog) -> None:
    if log.effort is None:
        told = next((one for one in log.findings if one.startswith('effort: ')), '')
        raise DataError(f'{log.source}: holds no effort; record JointState.effort, or name a '
                        f'topic that carries it{told.partition(";")[1]}{told.partition(";")[2]}')
    dead = [j for j, column in zip(log.joints, log.effort.T, strict=True) if not np.any(column)]
    if dead:
        raise DataError(f'{log.source}: effort is zero throughout for {", ".join(dead)}; the '
                        'driver does not report it, or reports it elsewhere')


def prepare(robot: RobotModel, repaired: Repaired, settings: Preprocessing) -> Samples:
    """Filter and differentiate a repaired recording.

    Position, velocity, acceleration and effort pass the same zero-phase filter, so both sides of
    the equation of motion are smoothed alike. Where a stretch begins or ends in motion, the filter
    knows nothing of what lies outside, and samples are left out until that has died away. Samples
    of elastic joints have their motors beside them; known external torque is in their effort.
    Raises DataError when nothing is left, or an
    elastic joint lacks a measurement.
    """
    dt = repaired.step
    for part in repaired.parts:
        require_channels(robot, part, repaired.notes)
    if repaired.averaging is not None:
        mean = _mean_period(robot, repaired.parts[0], repaired.averaging, (dt, settings))
        return _inside(*_between_others(mean, dt), settings, None)
    pieces, kept = [], []
    efforts = repaired.measured or [_measured(robot, p, p.time) for p in repaired.parts]
    for part, own in zip(repaired.parts, efforts, strict=True):
        if len(part.time) < FILTERED_SAMPLES or not len(own.time):
            continue
        piece = _filtered(robot, (part, own), dt, settings)
        pieces.append(piece)
        kept.append(_settled(piece, dt, settings) & (
            True if repaired.place is None else repaired.place.own(piece.time)))
    if not any(k.any() for k in kept):
        raise DataError(f'{repaired.source}: no stretch is longer than '
                        f'{2.0 * FILTER_PERIODS / settings.cutoff:.3g} s, twice the edge the '
                        f'{settings.cutoff:g} Hz filter needs; record longer')
    whole = replace(concatenate(pieces), began=repaired.began)
    return _inside(whole, np.concatenate(kept), settings, repaired.place)


def _settled(piece: Samples, dt: float, settings: Preprocessing) -> NDArray[np.bool_]:
    """Return a mask (N,) of the samples free of the effects of ends and missing efforts."""
    from scipy.ndimage import binary_dilation, binary_opening

    assert piece.stamps is not None
    rest, edge = (share / settings.cutoff for share in (RESTING, FILTER_PERIODS))
    moves = moving(piece) > 0.5
    first, last = piece.time[0], piece.time[-1]
    begin = edge if moves[:1 + int(np.ceil(rest / dt))].any() else rest
    end = edge if moves[-1 - int(np.ceil(rest / dt)):].any() else rest
    inside = (piece.time >= first + begin) & (piece.time <= last - end)
    apart = np.abs(piece.stamps - piece.time) > 1.5 * dt
    pause = round(max(alignment.GAP_STEPS, alignment.GAP_SECONDS / dt))
    missing = binary_opening(apart, np.ones(pause, dtype=bool))
    around = np.ones(2 * int(np.ceil(edge / dt)) + 1, dtype=bool)
    return np.asarray(inside & ~(binary_dilation(missing, around) if missing.any() else missing))


def _inside(
    whole: Samples, kept: NDArray[np.bool_], settings: Preprocessing, place: Part | None
) -> Samples:
    """Return the samples that are ``kept`` (N,), without rest at the ends, thinned.

    What lies outside stays beside them as far as the filter looks. At the ends of a part of a
    recording, ``place``, that are not ends of the recording rest stays.
    """
    chosen = _between_motions(whole, kept, place) if settings.trim_rest else kept
    rows = np.flatnonzero(chosen)
    reach = 2.0 * FILTER_PERIODS / settings.cutoff
    first = int(np.searchsorted(whole.time, whole.time[rows[0]] - reach))
    last = int(np.searchsorted(whole.time, whole.time[rows[-1]] + reach, 'right'))
    near, chosen = whole.part(slice(first, last)), chosen[first:last]
    if settings.decimate:
        near, chosen = _thinned(near, chosen, OVERSAMPLING * settings.cutoff)
    return near.inner(chosen)


def _thinned(
    samples: Samples, chosen: NDArray[np.bool_], rate: float
) -> tuple[Samples, NDArray[np.bool_]]:
    """Return every so many of the samples that ``rate`` [Hz] is left, and which are ``chosen``.

    The first one chosen of every segment is among them.
    """
    stride = max(1, int(1.0 / (rate * float(samples.time[1] - samples.time[0]))))
    if stride == 1:
        return samples, chosen
    every = [np.arange(part.start + int(np.argmax(chosen[part])) % stride, part.stop, stride)
             for part in samples.segments]
    rows = np.concatenate(every)
    starts = tuple(int(s) for s in np.cumsum([0, *(len(e) for e in every[:-1])]))
    return replace(samples, starts=starts, **samples.taken(rows)), chosen[rows]


def _between_motions(
    whole: Samples, chosen: NDArray[np.bool_], place: Part | None
) -> NDArray[np.bool_]:
    """Return a mask (N,) of the ``chosen`` samples but rest before and after all motion.

    A recording wholly at rest stays whole.
    """
    motion = np.concatenate([moving(whole.part(rows)) for rows in whole.segments])
    rows = np.flatnonzero((motion > 0.5) & chosen)
    begins = place is None or np.isinf(place.start)
    ends = place is None or np.isinf(place.stop)
    between = np.zeros(len(whole), dtype=bool)
    between[rows[0] if len(rows) and begins else 0:
            rows[-1] + 1 if len(rows) and ends else None] = True
    return chosen & between


def _mean_period(
    robot: RobotModel, log: RawLog, averaging: Averaging, grid: tuple[float, Preprocessing]
) -> Samples:
    """Return a mean period, filtered and differentiated; ``grid`` is its step and settings."""
    dt, settings = grid
    assert log.effort is not None
    gains = robot.torque_factors
    share = 1.0 / np.sqrt(averaging.periods)
    position, velocity, acceleration = periodic.motion(
        log.position, settings.cutoff, dt, share * np.array(averaging.position_noise))
    measured = periodic.delayed(log.effort * gains, settings.effort_lag, dt)
    noise = share * np.abs(gains) * np.array(averaging.effort_noise)
    samples = Samples(
        joints=log.joints, time=log.time, position=position, velocity=velocity,
        acceleration=acceleration, effort=periodic.low_pass(measured, settings.cutoff, dt),
        measured=measured, cutoff=settings.cutoff, noise=tuple(noise.tolist()))

    def outside(found: Samples) -> Samples:
        return with_external(found, log.external_torque,
                             lambda torque: periodic.low_pass(torque, settings.cutoff, dt))

    if log.motor_position is None:
        return outside(samples)
    # free of what does not stand out of its noise, see `averaging`
    motors = periodic.motion(log.motor_position, settings.cutoff, dt, np.zeros(robot.n))
    samples = replace(samples, motor_position=motors[0], motor_velocity=motors[1])
    return outside(stacked(robot, samples, motors[2], None))


def _between_others(period: Samples, dt: float) -> tuple[Samples, NDArray[np.bool_]]:
    """Return a mean period (N,) between two more, (3 N,), and which samples are its own."""
    count = len(period)
    arrays = period.taken(np.tile(np.arange(count), 3))
    arrays['time'] += np.repeat([-1.0, 0.0, 1.0], count) * count * dt
    own = np.arange(3 * count) // count == 1
    return replace(period, **arrays), own


def _filtered(
    robot: RobotModel, part: tuple[RawLog, Efforts], dt: float, settings: Preprocessing
) -> Samples:
    """Return a part, on a grid of ``dt`` [s] and as its effort was measured, as samples."""

    log, own = part

    def smooth(values: FloatArray) -> FloatArray:
        return zero_phase_low_pass(values, settings.cutoff, dt)

    def smoothed(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else smooth(values)

    nearest = alignment.nearest(own.time - settings.effort_lag, log.time)

    def both(grid: FloatArray | None, measured: FloatArray | None) -> FloatArray:
        """Return a channel, filtered and as it was measured, at the stamps (2, N, n).

        Joints without a sensor keep NaN.
        """
        assert grid is not None and measured is not None
        found = np.stack([measured[nearest]] * 2)
        known = np.isfinite(grid).all(axis=0)
        found[0][:, known] = interpolated(log.time, smooth(grid[:, known]), own.time[nearest])
        return found

    assert log.velocity is not None
    effort, measured = both(log.effort, own.effort) * robot.torque_factors
    velocity, motor_velocity = smooth(log.velocity), smoothed(log.motor_velocity)
    samples = Samples(
        joints=log.joints, time=log.time, position=smooth(log.position), velocity=velocity,
        acceleration=derivative(velocity, dt), effort=effort, measured=measured,
        cutoff=settings.cutoff, temperature=log.temperature,
        reference_position=smoothed(log.reference_position),
        motor_position=smoothed(log.motor_position), motor_velocity=motor_velocity,
        stamps=own.time[nearest] - settings.effort_lag, raw_position=own.position[nearest],
    )
    samples = stacked(
        robot, samples, None if motor_velocity is None else derivative(motor_velocity, dt),
        None if own.joint_torque is None else both(log.joint_torque, own.joint_torque))
    return with_external(samples, log.external_torque, smooth)


def moving(samples: Samples) -> FloatArray:
    """Return (N,) 1 where any joint moves, 0 where the robot rests."""
    speed = np.abs(samples.velocity)
    peak = speed.max(axis=0, initial=0.0)
    threshold = np.maximum(MOVING_SHARE * peak, MOVING_SPEED)
    moves: FloatArray = np.any(speed > threshold, axis=1).astype(np.float64)
    return moves
