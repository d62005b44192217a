"""Periodic motion: its period, its repetitions, and their mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DataError, UsageError
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals import alignment, periodic
from robot_dynid.signals.alignment import SAME_MOTION
from robot_dynid.signals.encoders import convert_to_joint_side
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.filters import runs
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.signals.prepare import Averaging, Repaired, check_usable, grid_step
from robot_dynid.types import FloatArray, RawLog, Samples, take

#: shortest period [s], and least overlap as a share of the period
SHORTEST_PERIOD, PERIOD_OVERLAP = 2.0, 0.1


def find_period(samples: Samples) -> int:
    """Return after how many samples the motion repeats, 0 if it does not.

    From the autocorrelation: the mean squared difference between the motion and its delayed copy,
    for all delays at once; joints are scaled to the same variance.
    """
    if len(samples.starts) > 1 or len(samples) < 10:
        return 0
    step = float(samples.time[1] - samples.time[0])
    q = samples.position - samples.position.mean(axis=0)
    q = q / np.maximum(q.std(axis=0), 1e-6)
    count = len(q)
    shortest = int(SHORTEST_PERIOD / step)
    longest = int(count / (1.0 + PERIOD_OVERLAP))
    if longest <= shortest:
        return 0
    power = np.concatenate([[0.0], np.cumsum(np.sum(q**2, axis=1))])
    spectrum = np.abs(np.fft.rfft(q, 2 * count, axis=0))**2  # zero padding separates the ends
    correlation = np.fft.irfft(spectrum.sum(axis=1), 2 * count)[:count]
    delays = np.arange(shortest, longest)
    overlap = count - delays
    # both compared parts must move, or rest at both ends would count as repetition
    early, late = power[overlap], power[count] - power[delays]
    difference = (early + late - 2.0 * correlation[delays]) / overlap
    moves = np.minimum(early, late) / overlap > 0.2 * q.shape[1]
    difference = np.where(moves, difference / q.shape[1], np.inf)
    best = int(np.argmin(difference))
    return int(delays[best]) if difference[best] < SAME_MOTION else 0


def repeatability(samples: Samples) -> tuple[FloatArray, FloatArray] | None:
    """Return the deviations between repetitions: of the robot, and of noise, (n,) [N m] each.

    Both are those of a single repetition: that of the filtered effort without the noise that
    passes the filter, and that of single effort samples, assumed white. Steady effects that the
    filter removes, such as ripple, are in neither. None if the motion does not repeat or no effort
    was measured.
    """
    delay = find_period(samples)
    if not delay or samples.measured is None or samples.effort is None:
        return None
    smooth = samples.gridded.effort
    assert smooth is not None
    rough = samples.measured - samples.effort
    within, outside = (np.mean((x[delay:] - x[:-delay])**2, axis=0) / 2.0 for x in (smooth, rough))
    step = float(samples.time[1] - samples.time[0])
    passed = 0.0 if samples.cutoff is None else min(2.0 * samples.cutoff * step, 0.5)
    variance = outside / (1.0 - passed)
    return np.sqrt(np.maximum(within - passed * variance, 0.0)), np.sqrt(variance)


#: most instants, and most seconds, on which a period is searched
PERIOD_INSTANTS, EXCERPT = 4000, 600.0
#: instants per period on which a given period is checked
INSTANTS_PER_PERIOD = 400
#: mean squared difference, as a share of the variance, accepted on the coarse grid
ROUGH = 0.05
#: share of the longest repetition from which a shorter period is preferred to its multiples
SHORTER_PERIOD_SHARE = 0.6
#: pause [s] across which positions are not interpolated
HOLE = 0.5
#: refinements of a period, each on a grid this much finer
REFINED, PERIOD_GRID_RATIO = 4, 5


@dataclass(frozen=True)
class Stretch:
    """A part of a recording that repeats after ``period`` s, from ``start`` for ``length`` s."""

    period: float
    start: float
    length: float

    @property
    def periods(self) -> float:
        """Number of periods in it; a recording may stop a sample before the end of the last one.
"""
        return self.length / self.period + 1.5 / INSTANTS_PER_PERIOD


def extent_text(stretch: Stretch | None) -> str:
    """Return the number of periods in words."""
    return f'{stretch.periods:.3g} periods' if stretch else 'less than a period'


def longest_repetition(
    log: RawLog, period: float, share: float = SAME_MOTION
) -> Stretch | None:
    """Return the part of the recording with the most motion that repeats after ``period`` s.

    Two positions are equal if their squared difference, each joint scaled by its variance, is
    below ``share``. None if the motion does not repeat.
    """
    step = max(period / INSTANTS_PER_PERIOD, float(np.median(np.diff(log.time))))
    delay = max(1, round(period / step))
    step = period / delay
    time = np.arange(log.time[0], log.time[-1] + 1e-6 * step, step)
    if len(time) <= delay:
        return None
    run = _longest_run(_scaled_positions(log, time), delay, share)
    if run is None:
        return None
    return Stretch(period, float(time[run[0]]), float(time[run[1]] - time[run[0]]) + period)


def shortest_period(log: RawLog) -> Stretch | None:
    """Return the shortest period after which most of the motion repeats, and where; or None."""
    middle = 0.5 * (log.time[0] + log.time[-1])
    half = 0.5 * min(log.time[-1] - log.time[0], EXCERPT)
    step = max(2.0 * half / PERIOD_INSTANTS, float(np.median(np.diff(log.time))))
    rows = _scaled_positions(log, np.arange(middle - half, middle + half, step))
    delays = np.arange(max(1, int(SHORTEST_PERIOD / step)), len(rows) // 2 + 1)
    if not len(delays):
        return None
    moved, difference = np.array([_repetition(rows, int(delay)) for delay in delays]).T
    if not moved.max() > 0.0:
        return None
    good = np.flatnonzero(moved >= SHORTER_PERIOD_SHARE * moved.max())
    last = good[0] + np.argmax(np.diff(np.append(good, len(delays) + 1)) > 1)
    period = float(step * delays[good[0] + np.argmin(difference[good[0]:last + 1])])
    for _ in range(REFINED):
        step /= PERIOD_GRID_RATIO
        tried = period + step * np.arange(-2 * PERIOD_GRID_RATIO, 2 * PERIOD_GRID_RATIO + 1)
        period = min(tried.tolist(), key=lambda t: _misfit(log, t))
    stretch = longest_repetition(log, period)
    return stretch if stretch is not None and stretch.periods >= 2.0 else None


def _scaled_positions(log: RawLog, time: FloatArray) -> FloatArray:
    """Return the positions (N, n) at ``time``, each joint by its deviation; NaN in gaps."""
    columns = []
    for column in log.position.T:
        good = np.isfinite(column)
        if good.sum() < 2:
            columns.append(np.zeros_like(time))
            continue
        t = log.time[good]
        values = np.interp(time, t, column[good])
        after = np.clip(np.searchsorted(t, time), 1, len(t) - 1)
        values[t[after] - t[after - 1] > HOLE] = np.nan
        columns.append((values - np.nanmean(values)) / max(float(np.nanstd(values)), 1e-6))
    return np.stack(columns, axis=1)


def _path(rows: FloatArray) -> FloatArray:
    """Return the path length (N,) of all joints up to every instant."""
    steps = np.nan_to_num(np.abs(np.diff(rows, axis=0)))
    return np.concatenate([[0.0], np.cumsum(np.sum(steps, axis=1))])


def _longest_run(rows: FloatArray, delay: int, share: float) -> tuple[int, int] | None:
    """Return first and last index of the run of equal positions with the longest path."""
    # unmeasured positions count as repeated
    same = ~(np.mean((rows[delay:] - rows[:-delay]) ** 2, axis=1) >= share)
    path = _path(rows)
    candidates = [(path[stop - 1 + delay] - path[first], first, stop - 1)
             for first, stop in runs(same).tolist()]
    if not candidates or max(candidates)[0] <= 0.0:
        return None
    return max(candidates)[1:]


def _repetition(rows: FloatArray, delay: int) -> tuple[float, float]:
    """Return the path that repeats after ``delay``, except the last time, and the difference."""
    run = _longest_run(rows, delay, ROUGH)
    if run is None or run[1] - run[0] < 0.9 * delay:
        return 0.0, np.inf
    part = slice(run[0], run[1] + 1)
    again = rows[delay:][part] - rows[:-delay][part]
    return float(_path(rows[part])[-1]), float(np.nanmean(again**2))


def _misfit(log: RawLog, period: float) -> float:
    """Return the mean squared difference along the run that roughly repeats after ``period``."""
    stretch = longest_repetition(log, period, ROUGH)
    if stretch is None:
        return np.inf
    time = stretch.start + np.arange(0.0, stretch.length - period, period / INSTANTS_PER_PERIOD)
    both = _scaled_positions(log, np.concatenate([time, time + period]))
    return float(np.nanmean((both[:len(time)] - both[len(time):]) ** 2)) if len(time) else np.inf


PERIOD = NumberRange(0.01, 1e5, 's')
WARM_UP = NumberRange(0, 10_000, 'periods', whole=True)
#: least number of periods for an estimate of their spread
LEAST_PERIODS = 2
#: least samples of a period, for derivatives along it
PERIOD_SAMPLES = 20
#: most corrections of the period; smallest one that counts, in steps of the grid
PERIOD_ROUNDS, PERIOD_SETTLED = 5, 1e-4
#: a period off by more than this share is another period, not another clock
SAME_PERIOD = 2e-3
#: deviations from which the correction of a period is significant
SIGNIFICANT_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Periodic:
    """Settings of the averaging over periods.

    ``period`` [s], None: estimated from the recorded motion; the first ``warm_up`` periods, in
    which the robot settles, are dropped.
    """

    period: float | None = setting(None, PERIOD)
    warm_up: int = setting(1, WARM_UP)

    def __post_init__(self) -> None:
        require_allowed(self, '{}')


def average(
    robot: RobotModel, log: RawLog, settings: Periodic, rate: float | None = None
) -> Repaired:
    """Return the mean period of a recording that contains a motion at least twice.

    Motion before and after the repeated part (approach, slow first pass, return) is omitted.
    Jitter, gaps and unusable values are interpolated within a period if short, and left to the
    other periods if not. Raises DataError if the motion does not repeat, or some part of it was
    measured in no period.
    """
    check_usable(robot, log)
    if robot.drive.kind == POSITION_ERROR:
        raise UsageError(f'period: averages of effort_kind {POSITION_ERROR} are not supported: '
                         'omit period')
    log, notes = drop_implausible(robot, log)
    log, more = alignment.drop_stale_rows(log)
    step = grid_step(log, rate)
    if settings.period is not None and settings.period < PERIOD_SAMPLES * step:
        raise DataError(f'{log.source}: the given period of {settings.period:g} s is less than '
                        f'{PERIOD_SAMPLES} samples: give that of the motion, or auto')
    stretch = _repeated_stretch(log, settings)
    period, corrected = _corrected_period(log, stretch, settings, step)
    start, periods = _whole_periods(log, replace(stretch, period=period), settings)
    count = round(period / step)
    grid = start + period / count * np.arange(count * periods, dtype=np.float64)
    log = _common_rows(log)
    assert log.effort is not None
    position, position_noise = _mean(log, log.position, (grid, periods, _longest(step)))
    effort, effort_noise = _mean(log, log.effort, (grid, periods, _longest(step)))
    averaging = Averaging(log.source, period, start, periods,
                          tuple(position_noise.tolist()), tuple(effort_noise.tolist()))
    mean = RawLog(log.source, log.joints, grid[:count] - start, position, effort=effort)
    if log.external_torque is not None:
        # the sum with the effort repeats, each part need not
        net = net_torque(robot, log) / robot.torque_factors
        torque, _ = _mean(log, log.external_torque, (grid, periods, _longest(step)))
        _, effort_noise = _mean(log, net, (grid, periods, _longest(step)))
        averaging = replace(averaging, effort_noise=tuple(effort_noise.tolist()))
        mean = replace(mean, external_torque=torque)
    if log.motor_position is not None:
        motors, encoder_notes = _average_motors(robot, log, (grid, periods, step))
        mean, corrected = replace(mean, motor_position=motors), [*corrected, *encoder_notes]
    return Repaired(log.source, (mean,), period / count, (*notes, *more, *corrected), averaging)


def _common_rows(log: RawLog) -> RawLog:
    """Return a recording whose effort and external torque are known in the same rows."""
    if log.external_torque is None or log.effort is None:
        return log
    both = np.isfinite(log.effort + log.external_torque)
    return replace(log, effort=np.where(both, log.effort, np.nan),
                   external_torque=np.where(both, log.external_torque, np.nan))


def _average_motors(
    robot: RobotModel, log: RawLog, grid: tuple[FloatArray, int, float]
) -> tuple[FloatArray, list[str]]:
    """Return the mean period of the motor positions (M, n) on the joint side, and notes.

    ``grid`` is instants, periods and step. Encoders are checked over all periods, because a slip
    shows in no single one. Harmonics below the noise of the mean are omitted.
    """
    instants, periods, step = grid
    longest = _longest(step)
    log = take(log, np.abs(log.time - 0.5 * (instants[0] + instants[-1]))
               <= 0.5 * (instants[-1] - instants[0]) + longest)
    assert log.motor_position is not None
    (part,), notes = convert_to_joint_side(robot, (alignment.fill_holes(log)[0],), step)
    assert part.motor_position is not None
    has_motor = np.isfinite(part.motor_position).all(axis=0)
    measured = np.where(np.isfinite(log.motor_position), part.motor_position, np.nan)
    mean, noise = _mean(part, np.where(has_motor, measured, 0.0), (instants, periods, longest))
    clean = periodic.drop_noise(mean, noise / np.sqrt(periods))
    return np.where(has_motor, clean, np.nan), notes


def _repeated_stretch(log: RawLog, settings: Periodic) -> Stretch:
    """Return the repeated stretch; raises DataError with the nearest period there is."""
    if settings.period is None:
        repetition = shortest_period(log)
        if repetition is None:
            raise DataError(f'{log.source}: the motion does not repeat: record at least '
                            f'{LEAST_PERIODS + settings.warm_up} periods without a pause, or '
                            'omit period from the recipe')
        return repetition
    stretch = longest_repetition(log, settings.period)
    if stretch is not None and stretch.periods >= LEAST_PERIODS:
        return stretch
    raise DataError(f'{log.source}: the motion repeats after the given period of '
                    f'{settings.period:g} s for {extent_text(stretch)} only; '
                    f'{_nearest_period(log)}')


def _nearest_period(log: RawLog) -> str:
    repetition = shortest_period(log)
    if repetition is None:
        return 'it has no other period: record it at least twice without a pause'
    return (f'the nearest period is {repetition.period:.5g} s, repeated '
            f'{repetition.periods:.3g} times: give that')


def _corrected_period(
    log: RawLog, stretch: Stretch, settings: Periodic, step: float
) -> tuple[float, list[str]]:
    """Return the period on the clock of the recording, and notes on the correction.

    The lag of every period behind their mean, by least squares on the positions, grows linearly if
    the clocks of controller and recorder differ.
    """
    period, deviation = stretch.period, 0.0
    for _ in range(PERIOD_ROUNDS):
        change, deviation = _clock_error(log, replace(stretch, period=period), step)
        period += change
        if abs(change) < PERIOD_SETTLED * step:
            break
    given = settings.period
    if given is None:
        return period, [f'{log.source}: the motion repeats after {period:.6g} +- '
                        f'{deviation:.1g} s']
    if abs(period - given) > SAME_PERIOD * given:
        raise DataError(f'{log.source}: the motion does not repeat after the given {given:g} s: '
                        f'give {period:.6g} s')
    if abs(period - given) < max(SIGNIFICANT_DEVIATIONS * deviation, PERIOD_SETTLED * step):
        return given, []
    return period, [f'{log.source}: the motion repeats after {period:.7g} +- {deviation:.1g} s '
                    f'on the clock of the recording, not {given:g} s; corrected']


def _clock_error(log: RawLog, stretch: Stretch, step: float) -> tuple[float, float]:
    """Return the correction of the period [s], and its deviation."""
    whole = int(stretch.periods)
    count = round(stretch.period / step)
    grid = stretch.start + stretch.period / count * np.arange(count * whole, dtype=np.float64)
    rows = _rows(log.time, log.position, (grid, whole, _longest(step)))
    measured = np.isfinite(rows)
    mean = np.where(measured, rows, 0.0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    error = np.where(measured, mean - rows, 0.0)
    slope = measured * np.gradient(mean, stretch.period / count, axis=0)
    weight = slope / np.maximum(error.std(axis=(0, 1)), 1e-9) ** 2
    lags = np.sum(error * weight, axis=(1, 2)) / np.sum(slope * weight, axis=(1, 2))
    index = np.arange(whole) - 0.5 * (whole - 1)
    energy = float(index @ index)
    change = float(index @ lags) / energy
    left = lags - lags.mean() - change * index
    spread = np.sqrt(float(left @ left) / (whole - 2)) if whole > 2 else step
    return change, spread / np.sqrt(energy)


def _whole_periods(log: RawLog, stretch: Stretch, settings: Periodic) -> tuple[float, int]:
    """Return the start [s] and number of the periods to average.

    A robot at rest before the first and after the last period looks like their ends, so the whole
    periods lie in the middle of the repeated stretch.
    """
    whole = int(stretch.periods)
    used = whole - settings.warm_up
    if used < LEAST_PERIODS:
        raise DataError(
            f'{log.source}: holds {extent_text(stretch)} of {stretch.period:.5g} s, of which the '
            f'first {settings.warm_up} are dropped (warm_up); {LEAST_PERIODS} more are needed: '
            'record more of them, or set warm_up: 0 if the robot has settled')
    spare = max(0.0, stretch.length - whole * stretch.period)
    start = stretch.start + 0.5 * spare + settings.warm_up * stretch.period
    # on a stamp, so that evenly sampled recordings are not interpolated
    return float(log.time[np.argmin(np.abs(log.time - start))]), used


def _mean(
    log: RawLog, values: FloatArray, grid: tuple[FloatArray, int, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the mean period (M, n) of a channel and the deviation (n,) of single samples."""
    rows = _rows(log.time, values, grid)
    measured = np.isfinite(rows)
    count = measured.sum(axis=0)
    if np.any(count == 0):
        phase, joint = (int(i) for i in np.argwhere(count == 0)[0])
        step = grid[0][1] - grid[0][0]
        raise DataError(
            f'{log.source}: no period has measured joint {log.joints[joint]} {phase * step:.3g} s '
            f'into the motion ({int(np.sum(np.any(count == 0, axis=1))) * step:.3g} s of '
            f'{rows.shape[1] * step:.4g} s are missing in all {grid[1]}): record more periods')
    mean = np.where(measured, rows, 0.0).sum(axis=0) / count
    squares = np.where(measured, rows - mean, 0.0) ** 2
    freedom = np.maximum((count - 1).sum(axis=0), 1)
    return mean, np.sqrt(squares.sum(axis=(0, 1)) / freedom)


def _longest(step: float) -> float:
    """Return the longest pause [s] across which a signal is interpolated within a period."""
    return max(alignment.GAP_STEPS * step, alignment.GAP_SECONDS)


def _rows(
    time: FloatArray, values: FloatArray, grid: tuple[FloatArray, int, float]
) -> FloatArray:
    """Return a channel (T, n) cut into periods (P, M, n); ``grid`` is instants, P, pause."""
    instants, periods, longest = grid
    rows = np.stack([on_grid(time, column, instants, longest) for column in values.T], axis=1)
    return rows.reshape(periods, -1, values.shape[1])


def on_grid(
    time: FloatArray, values: FloatArray, grid: FloatArray, longest: float
) -> FloatArray:
    """Return one signal (N,) at the instants of ``grid`` by a cubic spline, NaN where unknown.

    Unknown are instants outside, or between two finite values further apart than ``longest`` s.
    """
    from scipy import interpolate

    good = np.isfinite(values)
    out = np.full(len(grid), np.nan)
    if good.sum() < 4:
        return out
    t, v = time[good], values[good]
    tolerance = 1e-6 * (t[-1] - t[0]) / len(t)  # rounding of the grid
    right = np.clip(np.searchsorted(t, grid), 1, len(t) - 1)
    inside = (grid >= t[0] - tolerance) & (grid <= t[-1] + tolerance) & (t[right] - t[right - 1]
                                                                         <= longest)
    out[inside] = interpolate.make_interp_spline(t, v, k=3)(grid[inside])
    return out
