"""Periodic motion: its period, its repetitions, and their mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.numbers import NumberRange
from robot_dynid.robot.model import RobotModel
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals import alignment, periodic
from robot_dynid.signals.alignment import SAME_MOTION
from robot_dynid.signals.encoders import joint_side
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.filters import runs
from robot_dynid.signals.plausible import plausible
from robot_dynid.signals.prepare import Averaging, Repaired, check_usable, grid_step
from robot_dynid.types import FloatArray, RawLog, Samples, take

#: shortest period [s], and least overlap as a share of the period
SHORTEST_PERIOD, PERIOD_OVERLAP = 2.0, 0.1


def period(samples: Samples) -> int:
    """Return after how many samples the motion repeats itself, 0 when it does not.

    The mean squared difference between the motion and itself later, for all delays at once, from
    the autocorrelation; joints are scaled to the same variance.
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
    spectrum = np.abs(np.fft.rfft(q, 2 * count, axis=0))**2  # zeros behind keep the ends apart
    correlation = np.fft.irfft(spectrum.sum(axis=1), 2 * count)[:count]
    delays = np.arange(shortest, longest)
    overlap = count - delays
    # what is compared must itself move, or rest at both ends would count as repetition
    early, late = power[overlap], power[count] - power[delays]
    difference = (early + late - 2.0 * correlation[delays]) / overlap
    moves = np.minimum(early, late) / overlap > 0.2 * q.shape[1]
    difference = np.where(moves, difference / q.shape[1], np.inf)
    best = int(np.argmin(difference))
    return int(delays[best]) if difference[best] < SAME_MOTION else 0


def repeatability(samples: Samples) -> tuple[FloatArray, FloatArray] | None:
    """Return the deviations of repetitions: of the robot, and by noise, (n,) [N m] each.

    Both as deviations of a single repetition: that of the filtered effort without the noise that
    passes the filter, and that of single samples of the effort, taken to be white. Steady effects
    that the filter takes away, such as ripple, are in neither. None when the motion does not
    repeat or no effort was measured.
    """
    delay = period(samples)
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


#: a period is looked for on this many instants at most, of this many seconds at most
PERIOD_INSTANTS, EXCERPT = 4000, 600.0
#: instants on which a given period is checked, per period
INSTANTS_PER_PERIOD = 400
#: mean squared difference in shares of the variance that is let pass on the coarse grid
ROUGH = 0.05
#: share of the longest repetition from which a shorter period is preferred to its multiples
SHORTER_PERIOD_SHARE = 0.6
#: a pause [s] across which positions are not interpolated
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
        """Number of periods it holds; a recording may stop a sample short of the last one."""
        return self.length / self.period + 1.5 / INSTANTS_PER_PERIOD


def extent_text(stretch: Stretch | None) -> str:
    """Return the number of periods in words."""
    return f'{stretch.periods:.3g} periods' if stretch else 'less than a period'


def longest_repetition(
    log: RawLog, period: float, share: float = SAME_MOTION
) -> Stretch | None:
    """Return the part of the recording that repeats after ``period`` s with most motion in it.

    Two positions are the same when their squared difference, each joint by its own variance, is
    below ``share``. None when the motion repeats nowhere.
    """
    step = max(period / INSTANTS_PER_PERIOD, float(np.median(np.diff(log.time))))
    delay = max(1, round(period / step))
    step = period / delay
    time = np.arange(log.time[0], log.time[-1] + 1e-6 * step, step)
    if len(time) <= delay:
        return None
    run = _longest_run(_scaled(log, time), delay, share)
    if run is None:
        return None
    return Stretch(period, float(time[run[0]]), float(time[run[1]] - time[run[0]]) + period)


def shortest_period(log: RawLog) -> Stretch | None:
    """Return the shortest period after which most of the motion repeats, and where; or None."""
    middle = 0.5 * (log.time[0] + log.time[-1])
    half = 0.5 * min(log.time[-1] - log.time[0], EXCERPT)
    step = max(2.0 * half / PERIOD_INSTANTS, float(np.median(np.diff(log.time))))
    rows = _scaled(log, np.arange(middle - half, middle + half, step))
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


def _scaled(log: RawLog, time: FloatArray) -> FloatArray:
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
    """Return the way (N,) all joints have gone until every instant."""
    steps = np.nan_to_num(np.abs(np.diff(rows, axis=0)))
    return np.concatenate([[0.0], np.cumsum(np.sum(steps, axis=1))])


def _longest_run(rows: FloatArray, delay: int, share: float) -> tuple[int, int] | None:
    """Return first and last index of the run of equal positions along which most is moved."""
    # where a position was not measured it counts as repeated
    same = ~(np.mean((rows[delay:] - rows[:-delay]) ** 2, axis=1) >= share)
    path = _path(rows)
    found = [(path[stop - 1 + delay] - path[first], first, stop - 1)
             for first, stop in runs(same).tolist()]
    if not found or max(found)[0] <= 0.0:
        return None
    return max(found)[1:]


def _repetition(rows: FloatArray, delay: int) -> tuple[float, float]:
    """Return the path that repeats after ``delay``, without the last time, and the difference."""
    run = _longest_run(rows, delay, ROUGH)
    if run is None or run[1] - run[0] < 0.9 * delay:
        return 0.0, np.inf
    part = slice(run[0], run[1] + 1)
    again = rows[delay:][part] - rows[:-delay][part]
    return float(_path(rows[part])[-1]), float(np.nanmean(again**2))


def _misfit(log: RawLog, period: float) -> float:
    """Return the mean squared difference along the run that repeats roughly after ``period``."""
    stretch = longest_repetition(log, period, ROUGH)
    if stretch is None:
        return np.inf
    time = stretch.start + np.arange(0.0, stretch.length - period, period / INSTANTS_PER_PERIOD)
    both = _scaled(log, np.concatenate([time, time + period]))
    return float(np.nanmean((both[:len(time)] - both[len(time):]) ** 2)) if len(time) else np.inf


PERIOD = NumberRange(0.01, 1e5, 's')
WARM_UP = NumberRange(0, 10_000, 'periods', whole=True)
#: least periods a spread is estimated from
LEAST_PERIODS = 2
#: least samples of a period, for derivatives along it
PERIOD_SAMPLES = 20
#: corrections of the period until the clocks agree; smallest one that counts, in steps of the grid
PERIOD_ROUNDS, PERIOD_SETTLED = 5, 1e-4
#: a period that is off by more than this share is another one, not another clock
SAME_PERIOD = 2e-3
#: deviations of the correction of a period from which it is believed
BELIEVED = 4.0


@dataclass(frozen=True)
class Periodic:
    """Settings of the averaging over periods.

    ``period`` [s], None: found from the recorded motion; the first ``warm_up`` periods are
    dropped, since the robot swings in.
    """

    period: float | None = setting(None, PERIOD)
    warm_up: int = setting(1, WARM_UP)

    def __post_init__(self) -> None:
        require_allowed(self, '{}')


def average(
    robot: RobotModel, log: RawLog, settings: Periodic, rate: float | None = None
) -> Repaired:
    """Return the mean period of a recording that holds a motion at least twice.

    What comes before and after the repeated motion (approach, first slow pass, return) is left
    out. Jitter, gaps and values that are not usable are interpolated within a period where they
    are short, and left to the other periods where they are not. Raises DataError when the motion
    does not repeat, or no period has measured some part of it.
    """
    check_usable(robot, log)
    log, notes = plausible(robot, log)
    log, more = alignment.without_stale_rows(log)
    step = grid_step(log, rate)
    if settings.period is not None and settings.period < PERIOD_SAMPLES * step:
        raise DataError(f'{log.source}: a period of {settings.period:g} s is given, which is less '
                        f'than {PERIOD_SAMPLES} samples; give that of the motion, or auto')
    stretch = _repeated(log, settings)
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
        # the sum with the effort repeats, neither part has to
        net = net_torque(robot, log) / robot.torque_factors
        torque, _ = _mean(log, log.external_torque, (grid, periods, _longest(step)))
        _, effort_noise = _mean(log, net, (grid, periods, _longest(step)))
        averaging = replace(averaging, effort_noise=tuple(effort_noise.tolist()))
        mean = replace(mean, external_torque=torque)
    if log.motor_position is not None:
        motors, found = _motors(robot, log, (grid, periods, step))
        mean, corrected = replace(mean, motor_position=motors), [*corrected, *found]
    return Repaired(log.source, (mean,), period / count, (*notes, *more, *corrected), averaging)


def _common_rows(log: RawLog) -> RawLog:
    """Return a recording whose effort and external torque are known in the same rows."""
    if log.external_torque is None or log.effort is None:
        return log
    both = np.isfinite(log.effort + log.external_torque)
    return replace(log, effort=np.where(both, log.effort, np.nan),
                   external_torque=np.where(both, log.external_torque, np.nan))


def _motors(
    robot: RobotModel, log: RawLog, grid: tuple[FloatArray, int, float]
) -> tuple[FloatArray, list[str]]:
    """Return the mean period of the motor positions (M, n) on the joint side, and what was found.

    ``grid`` is instants, periods and step. Encoders are looked at over all the periods, since a
    slip shows in none of them alone. Harmonics below the noise of the mean are left out.
    """
    instants, periods, step = grid
    longest = _longest(step)
    log = take(log, np.abs(log.time - 0.5 * (instants[0] + instants[-1]))
               <= 0.5 * (instants[-1] - instants[0]) + longest)
    assert log.motor_position is not None
    (part,), notes = joint_side(robot, (alignment.without_holes(log)[0],), step)
    assert part.motor_position is not None
    known = np.isfinite(part.motor_position).all(axis=0)
    measured = np.where(np.isfinite(log.motor_position), part.motor_position, np.nan)
    mean, noise = _mean(part, np.where(known, measured, 0.0), (instants, periods, longest))
    clean = periodic.significant(mean, noise / np.sqrt(periods))
    return np.where(known, clean, np.nan), notes


def _repeated(log: RawLog, settings: Periodic) -> Stretch:
    """Return the repeated stretch; raises DataError with the nearest period there is."""
    if settings.period is None:
        found = shortest_period(log)
        if found is None:
            raise DataError(f'{log.source}: the motion does not repeat; record at least '
                            f'{LEAST_PERIODS + settings.warm_up} periods without a pause, or '
                            'leave period out of the recipe')
        return found
    stretch = longest_repetition(log, settings.period)
    if stretch is not None and stretch.periods >= LEAST_PERIODS:
        return stretch
    raise DataError(f'{log.source}: a period of {settings.period:g} s is given, but the motion '
                    f'repeats after it for {extent_text(stretch)} only; {_nearest(log)}')


def _nearest(log: RawLog) -> str:
    found = shortest_period(log)
    if found is None:
        return 'it repeats after no other time either: record it at least twice without a pause'
    return (f'the nearest period found is {found.period:.5g} s, repeated {found.periods:.3g} '
            'times: give that')


def _corrected_period(
    log: RawLog, stretch: Stretch, settings: Periodic, step: float
) -> tuple[float, list[str]]:
    """Return the period as the clock of the recording shows it, and what was corrected.

    The lag of every period behind their mean, by least squares on the positions, grows linearly
    where the clocks of controller and recorder differ.
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
        raise DataError(f'{log.source}: a period of {given:g} s is given, the motion repeats '
                        f'after {period:.6g} s; give that')
    if abs(period - given) < max(BELIEVED * deviation, PERIOD_SETTLED * step):
        return given, []
    return period, [f'{log.source}: the motion repeats after {period:.7g} +- {deviation:.1g} s '
                    f'on the clock of the recording, not {given:g} s; corrected']


def _clock_error(log: RawLog, stretch: Stretch, step: float) -> tuple[float, float]:
    """Return the correction of the period [s], and its deviation."""
    whole = int(stretch.periods)
    count = round(stretch.period / step)
    grid = stretch.start + stretch.period / count * np.arange(count * whole, dtype=np.float64)
    rows = _rows(log.time, log.position, (grid, whole, _longest(step)))
    known = np.isfinite(rows)
    mean = np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    error = np.where(known, mean - rows, 0.0)
    slope = known * np.gradient(mean, stretch.period / count, axis=0)
    weight = slope / np.maximum(error.std(axis=(0, 1)), 1e-9) ** 2
    lags = np.sum(error * weight, axis=(1, 2)) / np.sum(slope * weight, axis=(1, 2))
    index = np.arange(whole) - 0.5 * (whole - 1)
    energy = float(index @ index)
    change = float(index @ lags) / energy
    left = lags - lags.mean() - change * index
    spread = np.sqrt(float(left @ left) / max(whole - 2, 1)) if whole > 2 else step
    return change, spread / np.sqrt(energy)


def _whole_periods(log: RawLog, stretch: Stretch, settings: Periodic) -> tuple[float, int]:
    """Return start [s] and number of the periods that are averaged.

    A robot at rest before the first and after the last period looks like their ends; so the
    whole periods lie in the middle of what repeats.
    """
    whole = int(stretch.periods)
    used = whole - settings.warm_up
    if used < LEAST_PERIODS:
        raise DataError(
            f'{log.source}: holds {extent_text(stretch)} of {stretch.period:.5g} s, of which the '
            f'first {settings.warm_up} are dropped (warm_up); {LEAST_PERIODS} are needed after '
            'that: record more of them, or set warm_up: 0 when the robot has swung in')
    spare = max(0.0, stretch.length - whole * stretch.period)
    start = stretch.start + 0.5 * spare + settings.warm_up * stretch.period
    # on a stamp, so that evenly sampled recordings are not interpolated
    return float(log.time[np.argmin(np.abs(log.time - start))]), used


def _mean(
    log: RawLog, values: FloatArray, grid: tuple[FloatArray, int, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the mean period (M, n) of a channel and the deviation (n,) of single samples."""
    rows = _rows(log.time, values, grid)
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    if np.any(count == 0):
        phase, joint = (int(i) for i in np.argwhere(count == 0)[0])
        step = grid[0][1] - grid[0][0]
        raise DataError(
            f'{log.source}: no period has measured joint {log.joints[joint]} {phase * step:.3g} s '
            f'into the motion ({int(np.sum(np.any(count == 0, axis=1))) * step:.3g} s of '
            f'{rows.shape[1] * step:.4g} s are missing in all {grid[1]}); record more periods')
    mean = np.where(known, rows, 0.0).sum(axis=0) / count
    squares = np.where(known, rows - mean, 0.0) ** 2
    freedom = np.maximum((count - 1).sum(axis=0), 1)
    return mean, np.sqrt(squares.sum(axis=(0, 1)) / freedom)


def _longest(step: float) -> float:
    """Return the pause [s] across which a signal is interpolated within a period."""
    return max(alignment.GAP_STEPS * step, alignment.GAP_SECONDS)


def _rows(
    time: FloatArray, values: FloatArray, grid: tuple[FloatArray, int, float]
) -> FloatArray:
    """Return a channel (T, n) cut into periods, (P, M, n); ``grid`` is instants, P, pause."""
    instants, periods, longest = grid
    rows = np.stack([on_grid(time, column, instants, longest) for column in values.T], axis=1)
    return rows.reshape(periods, -1, values.shape[1])


def on_grid(
    time: FloatArray, values: FloatArray, grid: FloatArray, longest: float
) -> FloatArray:
    """Return one signal (N,) at the instants of ``grid`` by a cubic spline, NaN where unknown.

    Unknown is what lies outside, or between two finite values further apart than ``longest`` s.
    """
    from scipy import interpolate

    good = np.isfinite(values)
    out = np.full(len(grid), np.nan)
    if good.sum() < 4:
        return out
    t, v = time[good], values[good]
    room = 1e-6 * (t[-1] - t[0]) / len(t)  # rounding of the grid
    after = np.clip(np.searchsorted(t, grid), 1, len(t) - 1)
    inside = (grid >= t[0] - room) & (grid <= t[-1] + room) & (t[after] - t[after - 1] <= longest)
    out[inside] = interpolate.make_interp_spline(t, v, k=3)(grid[inside])
    return out
