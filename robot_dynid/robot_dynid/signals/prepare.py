"""Preprocessing of raw recordings: repair, resample, filter, differentiate, trim, decimate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, UsageError
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.signals import alignment, periodic
from robot_dynid.signals.encoders import convert_to_joint_side
from robot_dynid.signals.external import add_external_torque
from robot_dynid.signals.filters import derivative, fuse_velocity, zero_phase_low_pass
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.signals.servo import command_at_servos, delayed
from robot_dynid.signals.single_joint_motion import remove_flicker
from robot_dynid.signals.stacked import require_channels, stack_coordinates
from robot_dynid.types import FloatArray, Part, RawLog, Samples, concatenate, interpolated

#: a joint moves while its speed is above this share of its peak, and above this speed [rad/s, m/s]
MOVING_SHARE, MOVING_SPEED = 0.02, 1e-3
#: samples per period of the cut-off frequency; more carry no information
OVERSAMPLING = 8.0
#: periods of the cut-off until the filter's step response is within 0.15 % of its end, omitted
#: where a stretch begins or ends in motion; periods of rest at an end for known values outside
FILTER_PERIODS, RESTING = 2.0, 0.5
#: highest cut-off that a recording shows, as a share of its sampling rate, for accurate central
#: differences
CUTOFF_RATE_SHARE = 0.3
#: cut-offs [Hz] tried if none is given
CUTOFFS = (2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0, 33.0, 50.0, 75.0, 110.0)
#: least samples of a stretch to filter
FILTERED_SAMPLES = 5
#: a grid may be this much coarser than the recording
SLOWEST_GRID = 1.5
#: a grid may be this much finer than the recording
FINEST_GRID = 20.0
#: low-pass [Hz] for the comparison of velocity with position; least lag in steps that counts
LAG_CUTOFF, LEAST_LAG_STEPS = 6.0, 0.05


CUTOFF = NumberRange(1e-2, 1e4, 'Hz')
EFFORT_LAG = NumberRange(-10.0, 10.0, 's')
ENCODER_DELAY = NumberRange(-0.1, 0.1, 's')
RATE = NumberRange(1.0, 1e5, 'Hz')
PERIODS = NumberRange(1, 1e9, whole=True)


@dataclass(frozen=True)
class Preprocessing:
    """Settings of `prepare`.

    ``cutoff`` [Hz] of the low-pass; ``rate`` [Hz] of the uniform grid (None: that of the
    recording); ``effort_lag`` [s]: delay of effort behind position, of position servos behind
    their commands; ``decimate``: drop samples far above the cut-off; ``trim_rest``: drop the rest
    before the first and after the last motion; ``encoder_delays`` [s] of the link encoders behind
    those of the motors, by joint, empty for none.
    """

    cutoff: float = field(metadata={BOUNDS: CUTOFF})
    rate: float | None = field(default=None, metadata={BOUNDS: RATE})
    effort_lag: float = field(default=0.0, metadata={BOUNDS: EFFORT_LAG})
    decimate: bool = True
    trim_rest: bool = True
    encoder_delays: tuple[float, ...] = ()

    def limited_to(self, recording: Repaired) -> Preprocessing:
        """Return the settings with the cut-off limited to what the rate of a ``recording`` shows.
"""
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
    """Efforts at their ``time`` (M,) s: ``effort``, ``joint_torque`` (M, n) as recorded.

    ``position`` (M, n) [rad, m] is that of the same rows; for separate effort messages it is
    interpolated.
    """

    time: FloatArray
    effort: FloatArray
    joint_torque: FloatArray | None
    position: FloatArray


@dataclass(frozen=True, eq=False)
class Repaired:
    """Contiguous, uniformly sampled parts of one recording, and notes on the repair.

    Their velocity is the best estimate from position and, if recorded, velocity. With
    ``averaging`` the only part is the mean period, and its velocity is not used. ``measured``
    holds the efforts of every part at their own stamps; if empty, those of ``parts`` apply.
    ``place`` locates the recording if it is a part of a longer one, ``epoch`` is its time of day
    as in RawLog; ``began`` [s] is the start of the whole, None: the first row.
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
    """Order, clean, split and resample a recording, independently of the cut-off.

    Raises DataError without usable effort or with too little data, UsageError if the joints are
    not those of the robot.
    """
    check_usable(robot, log)
    log, notes = drop_implausible(robot, log)
    stamps = log.time[_effort_known(robot, log)]
    log, more = alignment.fill_holes(log)
    notes += more
    log, more = alignment.drop_stale_rows(log)
    notes += more
    step = grid_step(log, rate)
    parts, more = alignment.split_at_gaps(log, step)
    notes += more
    uniform = [(part, grid) for part in parts if len(part.time) > 1
               and len((grid := alignment.resample_uniform(part, step)).time)]
    moved, lags = _synchronise_velocity([grid for _, grid in uniform], step)
    fused = (remove_flicker(_estimate_velocity(p, step), log.position, step) for p in moved)
    both, encoder_notes = convert_to_joint_side(robot, tuple(fused), step)
    efforts = [_measured_efforts(robot, part, stamps) for part, _ in uniform]
    if not any(len(part.time) for part in efforts):
        efforts = [_measured_efforts(robot, part, part.time) for part, _ in uniform]
        notes.append(f'{log.source}: no row holds the effort of all joints at once; scored '
                     'against interpolated effort, so errors look smaller than they are')
    return Repaired(log.source, both, step, (*notes, *lags, *encoder_notes),
                    measured=tuple(efforts),
                    place=log.part, epoch=log.epoch,
                    began=log.began if log.part is None else log.part.began)


def _effort_known(robot: RobotModel, log: RawLog) -> NDArray[np.bool_]:
    """Return a mask (T,) of rows with known efforts, torque behind gears and external torque."""
    assert log.effort is not None
    complete = np.isfinite(log.effort).all(axis=1)
    if log.external_torque is not None:
        complete &= np.isfinite(log.external_torque).all(axis=1)
    sensors = list(robot.drive.torque_sensors)
    if sensors and log.joint_torque is not None:
        complete &= np.isfinite(log.joint_torque[:, sensors]).all(axis=1)
    return np.asarray(complete)


def _measured_efforts(robot: RobotModel, part: RawLog, stamps: FloatArray) -> Efforts:
    """Return the measured efforts of a part, in rows with the given ``stamps``."""
    if part.effort_messages is not None and not robot.drive.torque_sensors:
        time, effort = part.effort_messages
        inside = (time >= part.time[0]) & (time <= part.time[-1])
        inside &= np.isfinite(effort).all(axis=1)
        if part.external_torque is not None:
            inside &= np.interp(time, part.time, np.isin(part.time, stamps)) == 1.0
        position = interpolated(part.time, part.position, time[inside], degree=1)
        return Efforts(time[inside], effort[inside], None, position)
    assert part.effort is not None
    rows = np.isin(part.time, stamps)
    torque = None if part.joint_torque is None else part.joint_torque[rows]
    return Efforts(part.time[rows], part.effort[rows], torque, part.position[rows])


def check_usable(robot: RobotModel, log: RawLog) -> None:
    """Raise UsageError if the joints are not those of the robot, DataError without effort."""
    if log.joints != robot.joints:
        raise UsageError(f'{log.source}: joints {log.joints} are not those of {robot.name}: '
                         f'{robot.joints}')
    if robot.drive.kind == POSITION_ERROR:
        _require_commands(log)
    else:
        _require_effort(log)


def grid_step(log: RawLog, rate: float | None) -> float:
    """Return the step [s] of the uniform grid, by default that of the recording.

    Raises UsageError if ``rate`` [Hz] is below that of the recording, or far above.
    """
    recorded = alignment.typical_step([log])
    step = 1.0 / rate if rate else recorded
    if step > SLOWEST_GRID * recorded:
        raise UsageError(f'{log.source}: a grid of {rate:g} Hz is below the rate of the recording '
                         f'({1.0 / recorded:.4g} Hz) and would alias noise: omit rate, samples '
                         'are decimated after the low-pass')
    if step < recorded / FINEST_GRID:
        raise UsageError(f'{log.source}: a grid of {rate:g} Hz is more than {FINEST_GRID:g} times '
                         f'as fine as the recording ({1.0 / recorded:.4g} Hz) and adds nothing: '
                         'omit rate')
    return step


def _estimate_velocity(part: RawLog, step: float) -> RawLog:
    """Return a part with the best velocity estimate from position and measured velocity."""
    if part.velocity is None:
        return replace(part, velocity=derivative(part.position, step))
    return replace(part, velocity=fuse_velocity(part.position, part.velocity, step))


def _synchronise_velocity(parts: list[RawLog], step: float) -> tuple[list[RawLog], list[str]]:
    """Advance measured velocity by its lag behind position, if that is significant.

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
    return shifted, [f'{longest.source}: velocity is {lag.words} than position; corrected']


def _require_commands(log: RawLog) -> None:
    commands = log.reference_position
    missing = [joint for j, joint in enumerate(log.joints)
               if commands is None or not np.isfinite(commands[:, j]).any()]
    if missing:
        raise DataError(f'{log.source}: holds no commands of {", ".join(missing)}, of which '
                        f'effort_kind {POSITION_ERROR} is computed; record the columns '
                        'command.<joint>, or the topic controller_state')


def _require_effort(log: RawLog) -> None:
    if log.effort is None:
        finding = next((one for one in log.findings if one.startswith('effort: ')), '')
        _, separator, hint = finding.partition(';')
        raise DataError(f'{log.source}: holds no effort; record JointState.effort, or name a '
                        f'topic that carries it{separator}{hint}')
    dead = [j for j, column in zip(log.joints, log.effort.T, strict=True) if not np.any(column)]
    if dead:
        raise DataError(f'{log.source}: effort is zero throughout for {", ".join(dead)}; the '
                        'driver does not report it, or reports it elsewhere')


def prepare(robot: RobotModel, repaired: Repaired, settings: Preprocessing) -> Samples:
    """Filter and differentiate a repaired recording.

    Position, velocity, acceleration and effort pass the same zero-phase filter, so both sides of
    the equation of motion are equally smoothed. Where a stretch begins or ends in motion, the
    filter lacks data outside, and samples are omitted until its transient has decayed. Samples of
    elastic joints include their motors; known external torque is added to the effort. Raises
    DataError if nothing remains, or an elastic joint lacks a measurement.
    """
    dt = repaired.step
    for part in repaired.parts:
        require_channels(robot, part, repaired.notes)
    if repaired.averaging is not None:
        mean = _mean_period(robot, repaired.parts[0], repaired.averaging, (dt, settings))
        return _select_samples(*_tile_period(mean, dt), settings, None)
    pieces, masks = [], []
    efforts = repaired.measured or [_measured_efforts(robot, p, p.time) for p in repaired.parts]
    for part, effort in zip(repaired.parts, efforts, strict=True):
        if len(part.time) < FILTERED_SAMPLES or not len(effort.time):
            continue
        piece = _filter_part(robot, (part, effort), dt, settings)
        pieces.append(piece)
        masks.append(_settled(piece, dt, settings) & (
            True if repaired.place is None else repaired.place.own(piece.time)))
    if not any(mask.any() for mask in masks):
        raise DataError(f'{repaired.source}: no stretch is longer than '
                        f'{2.0 * FILTER_PERIODS / settings.cutoff:.3g} s, twice the edge the '
                        f'{settings.cutoff:g} Hz filter needs: record longer')
    whole = replace(concatenate(pieces), began=repaired.began)
    return _select_samples(whole, np.concatenate(masks), settings, repaired.place)


def _settled(piece: Samples, dt: float, settings: Preprocessing) -> NDArray[np.bool_]:
    """Return a mask (N,) of the samples free of end transients and missing efforts."""
    from scipy.ndimage import binary_dilation, binary_opening

    assert piece.stamps is not None
    rest, edge = (share / settings.cutoff for share in (RESTING, FILTER_PERIODS))
    moves = moving(piece) > 0.5
    first, last = piece.time[0], piece.time[-1]
    begin = edge if moves[:1 + int(np.ceil(rest / dt))].any() else rest
    end = edge if moves[-1 - int(np.ceil(rest / dt)):].any() else rest
    inside = (piece.time >= first + begin) & (piece.time <= last - end)
    apart = np.abs(piece.stamps - piece.time) > 1.5 * dt
    most = len(apart) + 1  # samples, however small the step
    pause = round(min(max(alignment.GAP_STEPS, alignment.GAP_SECONDS / dt), most))
    missing = binary_opening(apart, np.ones(pause, dtype=bool))
    around = np.ones(2 * int(np.ceil(min(edge / dt, most))) + 1, dtype=bool)
    return np.asarray(inside & ~(binary_dilation(missing, around) if missing.any() else missing))


def _select_samples(
    whole: Samples, mask: NDArray[np.bool_], settings: Preprocessing, place: Part | None
) -> Samples:
    """Return the samples in ``mask`` (N,), without rest at the ends, decimated.

    Samples outside remain as margins as far as the filter reaches. Rest stays at the ends of a
    part, ``place``, that are not ends of the recording.
    """
    chosen = _trim_rest(whole, mask, place) if settings.trim_rest else mask
    rows = np.flatnonzero(chosen)
    reach = 2.0 * FILTER_PERIODS / settings.cutoff
    first = int(np.searchsorted(whole.time, whole.time[rows[0]] - reach))
    last = int(np.searchsorted(whole.time, whole.time[rows[-1]] + reach, 'right'))
    near, chosen = whole.part(slice(first, last)), chosen[first:last]
    if settings.decimate:
        near, chosen = _decimate(near, chosen, OVERSAMPLING * settings.cutoff)
    return near.inner(chosen)


def _decimate(
    samples: Samples, chosen: NDArray[np.bool_], rate: float
) -> tuple[Samples, NDArray[np.bool_]]:
    """Return samples decimated to ``rate`` [Hz], and the mask of those that are ``chosen``.

    The first chosen one of every segment is among them.
    """
    stride = max(1, int(1.0 / (rate * float(samples.time[1] - samples.time[0]))))
    if stride == 1:
        return samples, chosen
    every = [np.arange(part.start + int(np.argmax(chosen[part])) % stride, part.stop, stride)
             for part in samples.segments]
    rows = np.concatenate(every)
    starts = tuple(int(s) for s in np.cumsum([0, *(len(e) for e in every[:-1])]))
    return replace(samples, starts=starts, **samples.taken(rows)), chosen[rows]


def _trim_rest(
    whole: Samples, chosen: NDArray[np.bool_], place: Part | None
) -> NDArray[np.bool_]:
    """Return a mask (N,) of the ``chosen`` samples without rest before and after all motion.

    A recording completely at rest stays whole.
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
    measured = periodic.undo_delay(log.effort * gains, settings.effort_lag, dt)
    noise = share * np.abs(gains) * np.array(averaging.effort_noise)
    samples = Samples(
        joints=log.joints, time=log.time, position=position, velocity=velocity,
        acceleration=acceleration, effort=periodic.low_pass(measured, settings.cutoff, dt),
        measured=measured, cutoff=settings.cutoff, noise=tuple(noise.tolist()))

    def add_external(period: Samples) -> Samples:
        return add_external_torque(
            period, log.external_torque,
            lambda torque: periodic.low_pass(torque, settings.cutoff, dt))

    if log.motor_position is None:
        return add_external(samples)
    # noise was already removed, see `averaging`
    turned = log.motor_position.copy()
    for j, late in late_encoders(settings.encoder_delays):
        turned[:, [j]] = periodic.undo_delay(turned[:, [j]], -late, dt)
    motors = periodic.motion(turned, settings.cutoff, dt, np.zeros(robot.n))
    samples = replace(samples, motor_position=motors[0], motor_velocity=motors[1])
    return add_external(stack_coordinates(robot, samples, motors[2], None))


def _tile_period(period: Samples, dt: float) -> tuple[Samples, NDArray[np.bool_]]:
    """Return a mean period (N,) between two copies, (3 N,), and a mask of the middle one."""
    count = len(period)
    arrays = period.taken(np.tile(np.arange(count), 3))
    arrays['time'] += np.repeat([-1.0, 0.0, 1.0], count) * count * dt
    return replace(period, **arrays), np.arange(3 * count) // count == 1


def _filter_part(
    robot: RobotModel, part: tuple[RawLog, Efforts], dt: float, settings: Preprocessing
) -> Samples:
    """Return a part, on a grid of ``dt`` [s] and with its measured effort, as samples."""

    log, efforts = part
    log, late, lag = delayed(robot, log, efforts.time, efforts.effort, settings.effort_lag)
    efforts = replace(efforts, effort=late)

    def smooth(values: FloatArray) -> FloatArray:
        return zero_phase_low_pass(values, settings.cutoff, dt)

    def smoothed(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else smooth(values)

    nearest = alignment.nearest(efforts.time - lag, log.time)

    def filtered_and_measured(
        grid: FloatArray | None, measured: FloatArray | None
    ) -> FloatArray:
        """Return a channel at the stamps (2, N, n), filtered and as measured.

        Joints without a sensor keep NaN.
        """
        assert grid is not None and measured is not None
        channels = np.stack([measured[nearest]] * 2)
        finite = np.isfinite(grid).all(axis=0)
        channels[0][:, finite] = interpolated(
            log.time, smooth(grid[:, finite]), efforts.time[nearest])
        return channels

    def at_links(motors: FloatArray | None) -> FloatArray | None:
        """Return a channel of the motors at the times that the link encoders show."""
        if motors is not None:
            for j, late in late_encoders(settings.encoder_delays):
                motors[:, [j]] = interpolated(log.time, motors[:, [j]], log.time - late)
        return motors

    assert log.velocity is not None
    effort, measured = filtered_and_measured(log.effort, efforts.effort) * robot.torque_factors
    velocity, motor_velocity = smooth(log.velocity), at_links(smoothed(log.motor_velocity))
    samples = Samples(
        joints=log.joints, time=log.time, position=smooth(log.position), velocity=velocity,
        acceleration=derivative(velocity, dt), effort=effort, measured=measured,
        cutoff=settings.cutoff, temperature=log.temperature,
        reference_position=command_at_servos(
            robot, log, smoothed(log.reference_position), settings.effort_lag),
        motor_position=at_links(smoothed(log.motor_position)), motor_velocity=motor_velocity,
        stamps=efforts.time[nearest] - lag,
        raw_position=efforts.position[nearest],
    )
    samples = stack_coordinates(
        robot, samples, None if motor_velocity is None else derivative(motor_velocity, dt),
        None if efforts.joint_torque is None else
        filtered_and_measured(log.joint_torque, efforts.joint_torque))
    return add_external_torque(samples, log.external_torque, smooth)


def late_encoders(delays: tuple[float, ...]) -> list[tuple[int, float]]:
    """Return the joints whose link encoders are behind those of the motors, and by how long."""
    return [(j, late) for j, late in enumerate(delays) if late]


def moving(samples: Samples) -> FloatArray:
    """Return (N,) 1 where any joint moves, 0 where the robot rests."""
    speed = np.abs(samples.velocity)
    peak = speed.max(axis=0, initial=0.0)
    threshold = np.maximum(MOVING_SHARE * peak, MOVING_SPEED)
    moves: FloatArray = np.any(speed > threshold, axis=1).astype(np.float64)
    return moves
