"""From a raw recording to samples: repair, resample, filter, differentiate, trim, decimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.errors import DataError, UsageError
from robot_dynid.model.robot import RobotModel
from robot_dynid.signals import alignment, periodic
from robot_dynid.signals.derivatives import derivative, fused_velocity
from robot_dynid.signals.encoders import joint_side
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.stacked import require_channels, stacked
from robot_dynid.types import FloatArray, RawLog, Samples, concatenate

#: a joint moves while its speed is above this share of its peak, and above this speed [rad/s, m/s]
MOVING_SHARE, MOVING_SPEED = 0.02, 1e-3
#: samples kept per period of the cut-off frequency; more carry no information
OVERSAMPLING = 8.0
#: a grid may be this much coarser than the recording
SLOWEST_GRID = 1.5
#: low-pass [Hz] for the comparison of velocity with position; the least lag in steps that counts
LAG_CUTOFF, LEAST_LAG_STEPS = 6.0, 0.05


@dataclass(frozen=True)
class Preprocessing:
    """Settings of ``prepare``.

    ``cutoff`` [Hz] of the low-pass; ``rate`` [Hz] of the uniform grid (None: the recording's own);
    ``effort_lag`` [s] by which effort is later than position; ``decimate`` whether to thin out
    samples far above the cut-off; ``trim_rest`` whether to drop the rest before the first and
    after the last motion.
    """

    cutoff: float
    rate: float | None = None
    effort_lag: float = 0.0
    decimate: bool = True
    trim_rest: bool = True


@dataclass(frozen=True)
class Averaging:
    """What was averaged, and how much one period of it differs from another.

    ``period`` [s] on the clock of the recording, the first of ``periods`` beginning at ``start``
    [s]; standard deviations of single samples ``position_noise`` (n,) [rad, m] and
    ``effort_noise`` (n,) [unit of the recorded effort]; those of the mean are smaller by the root
    of ``periods``.
    """

    source: str
    period: float
    start: float
    periods: int
    position_noise: tuple[float, ...]
    effort_noise: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Repaired:
    """Contiguous, uniformly sampled parts of one recording and what was done to it.

    Their velocity is the best estimate from position and, where it was recorded, velocity. With
    ``averaging`` the one part is the mean period, and its velocity is not used.
    """

    source: str
    parts: tuple[RawLog, ...]
    step: float
    notes: tuple[str, ...]
    averaging: Averaging | None = None


def repair(robot: RobotModel, log: RawLog, rate: float | None = None) -> Repaired:
    """Order, clean, split and resample a recording; nothing here depends on the cut-off.

    Raises DataError when there is no usable effort or too little data, UsageError when the joints
    are not those of the robot.
    """
    check_usable(robot, log)
    log, notes = alignment.ordered(log)
    log, more = alignment.without_holes(log)
    notes += more
    log, more = alignment.without_stale_rows(log)
    notes += more
    step = grid_step(log, rate)
    parts, more = alignment.split_at_gaps(log, step)
    uniform = [alignment.uniform(p, step) for p in parts if len(p.time) > 1]
    uniform, lags = _synchronous([p for p in uniform if len(p.time)], step)
    both, found = joint_side(robot, tuple(_fused(p, step) for p in uniform), step)
    return Repaired(log.source, both, step, (*notes, *more, *lags, *found))


def check_usable(robot: RobotModel, log: RawLog) -> None:
    """Raise UsageError when the joints are not those of the robot, DataError without effort."""
    if log.joints != robot.joints:
        raise UsageError(f'{log.source}: joints {log.joints} are not those of {robot.name}: '
                         f'{robot.joints}')
    _require_effort(log)


def grid_step(log: RawLog, rate: float | None) -> float:
    """Return the step [s] of the uniform grid, by default the recording's own.

    Raises UsageError when ``rate`` [Hz] is below that of the recording.
    """
    own = alignment.typical_step([log])
    step = 1.0 / rate if rate else own
    if step > SLOWEST_GRID * own:
        raise UsageError(f'{log.source}: a grid of {rate:g} Hz is below the rate of the recording '
                         f'({1.0 / own:.4g} Hz) and would fold noise into the signals; leave rate '
                         'out: samples are thinned after the low-pass')
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
        raise DataError(f'{log.source}: holds no effort; record JointState.effort, or name a '
                        'topic that carries it')
    dead = [j for j, column in zip(log.joints, log.effort.T, strict=True) if not np.any(column)]
    if dead:
        raise DataError(f'{log.source}: effort is zero throughout for {", ".join(dead)}; the '
                        'driver does not report it, or reports it elsewhere')


def prepare(robot: RobotModel, repaired: Repaired, settings: Preprocessing) -> Samples:
    """Filter and differentiate a repaired recording.

    Position, velocity, acceleration and effort pass the same zero-phase filter, so both sides of
    the equation of motion are smoothed alike. Samples of elastic joints have their motors beside
    them. Raises DataError when nothing is left, or an elastic joint lacks a measurement.
    """
    dt = repaired.step
    for part in repaired.parts:
        require_channels(robot, part, repaired.notes)
    stride = 1
    if settings.decimate:
        stride = max(1, int(1.0 / (OVERSAMPLING * settings.cutoff * dt)))
    if repaired.averaging is not None:
        mean = _mean_period(robot, repaired.parts[0], repaired.averaging, (dt, settings))
        return concatenate([_thinned(p, stride) for p in _ends_trimmed([mean], settings)])
    edge = int(np.ceil(0.5 / (settings.cutoff * dt)))
    pieces = []
    for part in repaired.parts:
        if len(part.time) > 2 * edge + 4:
            pieces.append(_filtered(robot, part, dt, settings).part(slice(edge, -edge)))
    if not pieces:
        raise DataError(f'{repaired.source}: no stretch is longer than {2 * edge * dt:.3g} s, '
                        f'twice the edge the {settings.cutoff:g} Hz filter needs; record longer')
    return concatenate([_thinned(p, stride) for p in _ends_trimmed(pieces, settings)])


def _ends_trimmed(pieces: list[Samples], settings: Preprocessing) -> list[Samples]:
    return _trimmed(pieces) if settings.trim_rest else pieces


def _mean_period(
    robot: RobotModel, log: RawLog, averaging: Averaging, grid: tuple[float, Preprocessing]
) -> Samples:
    """Return a mean period, filtered and differentiated; ``grid`` is its step and settings."""
    dt, settings = grid
    assert log.effort is not None
    gains = _gains(robot)
    share = 1.0 / np.sqrt(averaging.periods)
    position, velocity, acceleration = periodic.motion(
        log.position, settings.cutoff, dt, share * np.array(averaging.position_noise))
    measured = periodic.delayed(log.effort * gains, settings.effort_lag, dt)
    noise = share * np.abs(gains) * np.array(averaging.effort_noise)
    samples = Samples(
        joints=log.joints, time=log.time, position=position, velocity=velocity,
        acceleration=acceleration, effort=periodic.low_pass(measured, settings.cutoff, dt),
        measured=measured, cutoff=settings.cutoff, noise=tuple(noise.tolist()))
    if log.motor_position is None:
        return samples
    # free of what does not stand out of its noise, see `averaging`
    motors = periodic.motion(log.motor_position, settings.cutoff, dt, np.zeros(robot.n))
    samples = replace(samples, motor_position=motors[0], motor_velocity=motors[1])
    return stacked(robot, samples, motors[2], None)


def _gains(robot: RobotModel) -> FloatArray:
    """Return what (n,) makes torques of recorded efforts."""
    if robot.drive.kind == 'current' and robot.drive.gains is not None:
        return np.asarray(robot.drive.gains)
    return np.ones(robot.n)


def _filtered(robot: RobotModel, log: RawLog, dt: float, settings: Preprocessing) -> Samples:
    def smooth(values: FloatArray) -> FloatArray:
        return zero_phase_low_pass(values, settings.cutoff, dt)

    def smoothed(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else smooth(values)

    assert log.effort is not None and log.velocity is not None
    measured = alignment.shift(log.effort * _gains(robot), settings.effort_lag, dt)
    velocity, motor_velocity = smooth(log.velocity), smoothed(log.motor_velocity)
    samples = Samples(
        joints=log.joints, time=log.time, position=smooth(log.position), velocity=velocity,
        acceleration=derivative(velocity, dt), effort=smooth(measured), measured=measured,
        cutoff=settings.cutoff, temperature=log.temperature,
        reference_position=smoothed(log.reference_position),
        motor_position=smoothed(log.motor_position), motor_velocity=motor_velocity,
    )
    torque = None if log.joint_torque is None else \
        np.stack([smooth(log.joint_torque), log.joint_torque])
    return stacked(robot, samples, None if motor_velocity is None else
                   derivative(motor_velocity, dt), torque)


def moving(samples: Samples) -> FloatArray:
    """Return (N,) 1 where any joint moves, 0 where the robot rests."""
    speed = np.abs(samples.velocity)
    peak = speed.max(axis=0, initial=0.0)
    threshold = np.maximum(MOVING_SHARE * peak, MOVING_SPEED)
    moves: FloatArray = np.any(speed > threshold, axis=1).astype(np.float64)
    return moves


def _trimmed(pieces: list[Samples]) -> list[Samples]:
    """Drop the rest at both ends of a recording; a recording wholly at rest stays whole."""
    motion = [np.flatnonzero(moving(p)) for p in pieces]
    active = [i for i, rows in enumerate(motion) if len(rows)]
    if not active:
        return pieces
    first, last = active[0], active[-1]
    kept = list(pieces[first:last + 1])
    kept[-1] = kept[-1].part(slice(0, int(motion[last][-1]) + 1))
    kept[0] = kept[0].part(slice(int(motion[first][0]), len(kept[0])))
    return kept


def _thinned(samples: Samples, stride: int) -> Samples:
    if stride == 1:
        return samples
    arrays: dict[str, Any] = {name: values[::stride] for name, values in vars(samples).items()
                              if isinstance(values, np.ndarray)}
    return replace(samples, **arrays)
