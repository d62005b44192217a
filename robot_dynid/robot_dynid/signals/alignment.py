"""Time stamps: repair, gaps, uniform grids, lags between channels, two recordings on one clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import percent
from robot_dynid.errors import DataError
from robot_dynid.signals.filters import derivative, runs
from robot_dynid.signals.turns import TURN
from robot_dynid.types import FloatArray, RawLog, Samples, channels, interpolated, take

#: a motion repeats if the mean squared difference is below this share of its variance
SAME_MOTION = 1e-3
#: least overlap of two recordings, as a share of the shorter one
RECORDING_OVERLAP = 0.5
#: a joint that moves less than this [rad, m] does not contribute to the lag
LEAST_LAG_MOTION = 1e-3
#: share of the average motion that the overlap must contain, because rest matches rest anywhere
OVERLAP_MOTION_SHARE = 0.2
LAG_ROUNDS, LAG_SETTLED = 30, 1e-9


@dataclass(frozen=True, eq=False)
class Pair:
    """The first recording, and the second one interpolated at the same moments of the motion.

    ``lag`` [s]: the second clock minus the first, at the middle; ``drift``: the relative rate by
    which it runs faster; ``difference`` (n,): RMS difference of the positions [rad, m].
    """

    first: Samples
    second: Samples
    lag: float
    drift: float
    difference: FloatArray


def align(first: Samples, second: Samples) -> Pair:
    """Estimate lag and drift between two clocks from the positions, and interpolate.

    The lag is searched over all overlaps by the correlation of the positions, then refined
    together with the drift by Gauss-Newton steps to a fraction of a sample. Drivers that wrap may
    begin whole turns apart. Raises DataError if nothing moves, the overlap is too small or the
    motions differ.
    """
    scale = _scale(first)
    apart = second.position.mean(axis=0) - first.position.mean(axis=0)
    second = replace(second, position=second.position - TURN * np.rint(apart / TURN))
    clock = np.array([_coarse_lag(first, second, scale), 0.0])
    middle = 0.5 * float(first.time[0] + first.time[-1])
    for _ in range(LAG_ROUNDS):
        step = _step(first, second, clock, middle, scale)
        clock = clock + step
        if np.max(np.abs(step)) < LAG_SETTLED:
            break
    rows, other = _resample_pair(first, second, clock, middle)
    error = rows.position - other.position
    share = float(np.mean((error[:, scale > 0.0] / scale[scale > 0.0]) ** 2))
    if not share < SAME_MOTION:
        raise DataError('the motions with and without the payload differ by '
                        f'{percent(float(np.sqrt(share)))} % of their size: record the same '
                        'motion twice')
    return Pair(rows, other, float(clock[0]), float(clock[1]), np.sqrt(np.mean(error**2, axis=0)))


def _scale(samples: Samples) -> FloatArray:
    """Return the standard deviation (n,) of every position, zero for joints at rest."""
    deviation = samples.position.std(axis=0)
    if not np.any(deviation > LEAST_LAG_MOTION):
        raise DataError('no joint moves, so recordings with and without the payload cannot be '
                        'aligned: record the same motion twice')
    return np.where(deviation > LEAST_LAG_MOTION, deviation, 0.0)


def _coarse_lag(first: Samples, second: Samples, scale: FloatArray) -> float:
    """Return the lag [s] with the least difference per sample, among all sufficient overlaps."""
    from scipy import signal

    step = float(np.median(np.diff(first.time)))
    used = scale > 0.0
    mean = first.position[:, used].mean(axis=0)
    a, b = (_interpolate_grid(s, step, used, mean) / scale[used] for s in (first, second))
    power_a, power_b = (np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))]) for x in (a, b))
    product = np.sum([signal.correlate(y, x, method='fft') for x, y in zip(a.T, b.T, strict=True)],
                     axis=0)
    delays = np.arange(1 - len(a), len(b))  # row i of a meets row i + delay of b
    start, stop = np.maximum(0, -delays), np.minimum(len(a), len(b) - delays)
    energy_a = power_a[stop] - power_a[start]
    energy_b = power_b[stop + delays] - power_b[start + delays]
    overlap = stop - start
    enough = overlap >= RECORDING_OVERLAP * min(len(a), len(b))
    enough &= energy_a >= OVERLAP_MOTION_SHARE * overlap * a.shape[1]
    difference = np.full(len(delays), np.inf)
    difference[enough] = ((energy_a + energy_b - 2.0 * product) / overlap)[enough]
    best = int(np.argmin(difference))
    return float(second.time[0] - first.time[0]) + step * float(delays[best])


def _interpolate_grid(
    samples: Samples, step: float, used: NDArray[np.bool_], mean: FloatArray
) -> FloatArray:
    time = np.arange(samples.time[0], samples.time[-1] + 0.5 * step, step)
    return np.stack([np.interp(time, samples.time, column)
                     for column in (samples.position[:, used] - mean).T], axis=1)


def _resample_pair(
    first: Samples, second: Samples, clock: FloatArray, middle: float
) -> tuple[Samples, Samples]:
    """Return the samples of both where they overlap; raises DataError if they hardly do."""
    lag, drift = clock
    times = first.time + lag + drift * (first.time - middle)
    pieces: list[tuple[FloatArray, dict[str, FloatArray]]] = []
    for a in first.segments:
        for b in second.segments:
            stamps = second.time[b]
            inside = (times[a] >= stamps[0]) & (times[a] <= stamps[-1])
            if inside.sum() > 1 and len(stamps) > 3:
                rows = np.arange(a.start, a.stop)[inside]
                pieces.append((rows, _interpolate_channels(second.part(b), times[rows])))
    count = sum(len(rows) for rows, _ in pieces)
    if count < RECORDING_OVERLAP * min(len(first), len(second)):
        raise DataError('less than half of the shorter recording overlaps with the other one: '
                        'record the whole motion both times')
    rows = np.concatenate([r for r, _ in pieces])
    starts = tuple(int(s) for s in np.cumsum([0, *(len(r) for r, _ in pieces[:-1])]))
    chosen: dict[str, Any] = {name: getattr(first, name)[rows] for name in pieces[0][1]}
    second_channels: dict[str, Any] = {
        name: np.concatenate([c[name] for _, c in pieces]) for name in chosen}
    time = first.time[rows]
    return (replace(first, time=time, starts=starts, **chosen),
            replace(second, time=time, starts=starts, **second_channels))


def _interpolate_channels(segment: Samples, time: FloatArray) -> dict[str, FloatArray]:
    """Return the channels at ``time``: smooth ones by cubic splines, raw effort linearly."""
    return {name: interpolated(segment.time, values, time, 1 if name == 'measured' else 3)
            for name in ('position', 'velocity', 'acceleration', 'effort', 'measured')
            if (values := getattr(segment, name)) is not None}


def _step(
    first: Samples, second: Samples, clock: FloatArray, middle: float, scale: FloatArray
) -> FloatArray:
    """Return the Gauss-Newton step (2,) of lag and drift."""
    rows, other = _resample_pair(first, second, clock, middle)
    used = scale > 0.0
    speed = (other.velocity[:, used] / scale[used]).ravel()
    error = ((rows.position - other.position)[:, used] / scale[used]).ravel()
    ahead = np.repeat(rows.time - middle, int(used.sum()))
    correction = np.linalg.lstsq(np.stack([speed, speed * ahead], axis=1), error, rcond=1e-9)[0]
    return np.asarray(correction)


#: a pause longer than this many typical steps, and than this many seconds, splits a recording
GAP_STEPS, GAP_SECONDS = 10.0, 0.1
#: longest recording: a year [s], and this many times its rows at their typical step
YEAR, LONGEST_RECORDING = 3.2e7, 1e3
#: largest stamp in any unit: six times the nanoseconds since 1970
LATEST_STAMP = 1e19
#: a repeated row is stale only if it repeats for at most this long [s]
STALE_SECONDS = 0.1
#: most rows out of order that count as late; a clock that was set back leaves more
LATE_ROWS = 5
#: rows on either side, and deviations, by which a smaller step of the clock shows
SIDE_ROWS, SIDE_DEVIATIONS = 20, 6.0
#: most times that a clock is set back
MAX_CLOCK_STEPS = 100
#: channels that need no values for some joints
OPTIONAL = ('motor_position', 'motor_velocity', 'joint_torque')
#: the topic of the controller may begin and end at other times than that of the joint states
REFERENCE = 'reference_position'
#: channels that come separately from the joint states
SEPARATE_CHANNELS = (REFERENCE, 'external_torque')


def clock_steps(time: FloatArray) -> NDArray[np.int64]:
    """Return the rows (k,) at which the clock of the stamps (N,) [s] was set back.

    Late rows and single stamps that leap do not count: they overlap with a few rows only, and
    leave the others in place.
    """
    rows = np.flatnonzero(np.isfinite(time) & ~_far(time))
    with np.errstate(over='ignore'):
        forward = np.diff(time[rows])
    step = float(np.median(forward[forward > 0.0])) if (forward > 0.0).any() else np.inf
    steps: list[int] = []
    for _ in range(MAX_CLOCK_STEPS):
        begin, leaps = _next_clock_step(time[rows], step)
        if begin:
            steps.append(int(rows[begin]))
            rows = rows[begin:]
        elif len(leaps):
            rows = np.delete(rows, leaps)
        else:
            break
    return np.asarray(steps, dtype=np.int64)


def _next_clock_step(
    stamps: FloatArray, step: float
) -> tuple[int, NDArray[np.int64]]:
    """Return the first row at which the clock was set back (0: none), or rows that leapt ahead.

    ``stamps`` (N,) and their typical ``step`` [s].
    """
    highest = np.maximum.accumulate(stamps)
    for row, stop in (runs(stamps[1:] < highest[:-1]) + 1).tolist():
        near = int(np.searchsorted(highest, stamps[row]))
        ahead = near + np.flatnonzero(stamps[near:row] >= stamps[row])
        few = min(len(ahead), stop - row)
        if few > LATE_ROWS or _set_back(stamps, row, step):
            return row, np.empty(0, dtype=np.int64)
        if len(ahead) < stop - row:
            return 0, ahead
    return 0, np.empty(0, dtype=np.int64)


def _set_back(stamps: FloatArray, row: int, step: float) -> bool:
    """Return True if lines through the stamps before and after a row differ by over a step."""
    count = np.arange(-SIDE_ROWS, SIDE_ROWS) + 0.5
    if row < SIDE_ROWS or row + SIDE_ROWS > len(stamps):
        return False
    near = stamps[row - SIDE_ROWS:row + SIDE_ROWS]
    columns = np.stack([np.ones(len(count)), count, count > 0.0, count * (count > 0.0)], axis=1)
    inverse = np.linalg.pinv(columns)
    values = inverse @ (near - near[0])
    scatter = np.sqrt(np.sum((near - near[0] - columns @ values)**2) / (len(count) - 4))
    deviation = scatter * float(np.linalg.norm(inverse[2]))
    return bool(values[2] < -max(step, SIDE_DEVIATIONS * deviation))


def one_clock(log: RawLog) -> tuple[RawLog, list[str]]:
    """Move rows after a backward clock step behind the rows before it, with notes.

    A pause separates both, see `split_at_gaps`. Efforts with separate stamps cannot be moved:
    those interpolated at ``time`` replace them.
    """
    steps = clock_steps(log.time)
    if not len(steps):
        return log, []
    time = log.time.copy()
    usable = np.isfinite(time) & ~_far(time)
    pause = 2.0 * max(GAP_STEPS * float(np.median(np.abs(np.diff(time[usable])))), GAP_SECONDS)
    for row in steps.tolist():
        time[row:] += float(time[:row][usable[:row]].max()) + pause - time[row]
    back = float(log.time[steps[0] - 1] - log.time[steps[0]])
    return replace(log, time=time, effort_messages=None), [
        f'{log.source}: the clock goes back {len(steps)} time(s), first by {back:.3g} s in row '
        f'{int(steps[0]) + 1}; the rows after it are moved behind those before']


def order_rows(log: RawLog) -> tuple[RawLog, list[str]]:
    """Drop rows whose stamp is not finite, implausible, repeated or backward, with notes.

    If a stamp leaps ahead or back, the smaller group of rows is dropped. Rows after a backward
    clock step are moved instead, see `one_clock`.
    """
    log, moved = one_clock(log)
    log, dropped = _drop_disordered(log)
    return log, [*moved, *dropped]


def _drop_disordered(log: RawLog) -> tuple[RawLog, list[str]]:
    time = log.time
    far = _far(time)
    usable = np.isfinite(time) & ~far
    highest = np.maximum.accumulate(np.where(usable, time, -np.inf))
    lowest = np.minimum.accumulate(np.where(usable, time, np.inf)[::-1])[::-1]
    later = usable & np.concatenate([[True], highest[:-1] < time[1:]])
    earlier = usable & np.concatenate([time[:-1] < lowest[1:], [True]])
    keep = earlier if earlier.sum() > later.sum() else later
    if keep.all():
        return log, []
    notes = []
    if far.any():
        first = int(np.argmax(far))
        notes.append(f'{log.source}: time: {int(far.sum())} stamps more than a year from the '
                     f'others (first {time[first]:.3g} s in row {first + 1}) dropped')
    dropped = len(time) - int(keep.sum()) - int(far.sum())
    if dropped:
        notes.append(f'{log.source}: dropped {dropped} of {len(time)} rows whose stamp repeats, '
                     'goes back or is not a number')
    return take(log, keep), notes


def _far(time: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (N,) of the finite stamps that cannot belong to this recording.

    They are over a year from its middle, and over LONGEST_RECORDING times its length at the
    typical step, so stamps in other units than seconds remain. Stamps beyond LATEST_STAMP never
    belong.
    """
    finite = np.isfinite(time)
    beyond = finite & (np.abs(time) > LATEST_STAMP)
    finite &= ~beyond
    with np.errstate(over='ignore', invalid='ignore'):
        distance = np.abs(time - np.median(time[finite])) if finite.any() else time
        steps = np.abs(np.diff(time[finite]))
    step = float(np.median(steps)) if len(steps) else 0.0
    longest = max(YEAR, LONGEST_RECORDING * len(time) * step)
    return np.asarray(beyond | finite & (distance > longest))


def drop_stale_rows(log: RawLog) -> tuple[RawLog, list[str]]:
    """Drop rows that repeat the whole previous row while the robot moves.

    A driver that misses a cycle logs its old state under a new stamp, which looks like a
    standstill followed by a jump. At rest repeated rows are correct and remain. Reference and
    external wrench come from other sources and may continue.
    """
    table = np.hstack([np.nan_to_num(values) for name, values in channels(log).items()
                       if name not in SEPARATE_CHANNELS])
    same = np.concatenate([[False], np.all(table[1:] == table[:-1], axis=1)])
    if not same.any():
        return log, []
    step = float(np.median(np.diff(log.time)))
    stale = np.zeros(len(same), dtype=bool)
    for first, stop in runs(same).tolist():
        short = (stop - first) * step <= STALE_SECONDS
        if short and stop < len(same) and np.any(log.position[stop] != log.position[first]):
            stale[first:stop] = True
    if not stale.any():
        return log, []
    return take(log, ~stale), [f'{log.source}: {int(stale.sum())} stale rows (the whole row '
                               'repeated during motion) replaced by interpolation']


def fill_holes(log: RawLog) -> tuple[RawLog, list[str]]:
    """Fill isolated non-finite cells by interpolation; drop rows at either end.

    A joint without motor states, or without a torque sensor, keeps NaN there. Raises DataError if
    another channel of a joint has no finite value.
    """
    notes: list[str] = []
    filled: dict[str, Any] = {}
    for name, values in channels(log).items():
        bad = ~np.isfinite(values)
        if not bad.any():
            continue
        repaired = values.copy()
        for j in np.flatnonzero(bad.any(axis=0)):
            good = ~bad[:, j]
            if good.sum() < 2 and name in OPTIONAL:
                repaired[:, j] = np.nan
                continue
            if good.sum() < 2:
                raise DataError(f'{log.source}: {name}.{log.joints[j]} holds no finite value: '
                                'record it, or omit the joint from the robot')
            repaired[~good, j] = np.interp(log.time[~good], log.time[good], values[good, j])
            first, last = np.flatnonzero(good)[[0, -1]]
            holes = bad[first:last, j] if name == REFERENCE else bad[:, j]
            if holes.any():
                notes.append(f'{log.source}: {name}.{log.joints[j]}: {int(holes.sum())} values '
                             'that are not finite replaced by interpolation')
        filled[name] = repaired
    return replace(log, **filled), notes


def typical_step(logs: list[RawLog]) -> float:
    """Return the median time step [s] over recordings; raises DataError for a single row."""
    steps = [np.diff(log.time) for log in logs if len(log.time) > 1]
    if not steps:
        names = ', '.join(log.source for log in logs)
        raise DataError(f'{names}: fewer than two rows with a usable time stamp')
    return float(np.median(np.concatenate(steps)))


def split_at_gaps(log: RawLog, step: float) -> tuple[list[RawLog], list[str]]:
    """Cut a recording at pauses, because motion must not be invented across a gap."""
    limit = max(GAP_STEPS * step, GAP_SECONDS)
    jumps = np.flatnonzero(np.diff(log.time) > limit)
    if not len(jumps):
        return [log], []
    bounds = [0, *(jumps + 1), len(log.time)]
    parts = [take(log, slice(a, b)) for a, b in pairwise(bounds)]
    longest = float(np.diff(log.time).max())
    return parts, [f'{log.source}: {len(jumps)} gap(s) longer than {limit:.3g} s (longest '
                   f'{longest:.3g} s); treated as {len(parts)} separate recordings']


def resample_uniform(log: RawLog, step: float) -> RawLog:
    """Interpolate a recording without gaps onto a grid of ``step`` [s].

    Positions by a cubic spline (a linear one would put steps into the velocity), the rest
    linearly; columns without numbers remain. A uniform recording is returned unchanged.
    """
    from scipy import interpolate

    count = int(np.floor((log.time[-1] - log.time[0]) / step + 1e-6)) + 1
    grid = log.time[0] + step * np.arange(count)
    if count == len(log.time) and np.max(np.abs(grid - log.time)) < 1e-3 * step:
        return log
    if len(log.time) < 4:
        return take(log, slice(0, 0))
    values: dict[str, Any] = {}
    for name, channel in channels(log).items():
        degree = 3 if name.endswith('position') else 1
        finite = np.isfinite(channel).all(axis=0)
        values[name] = np.full((count, channel.shape[1]), np.nan)
        if finite.any():
            values[name][:, finite] = interpolate.make_interp_spline(
                log.time, channel[:, finite], k=degree)(grid)
    return replace(log, time=grid, **values)


def nearest(stamps: FloatArray, time: FloatArray) -> NDArray[np.int64]:
    """Return the index of the sorted ``stamps`` (M,) nearest to every instant (N,)."""
    right = np.minimum(np.searchsorted(stamps, time), len(stamps) - 1)
    left = np.maximum(right - 1, 0)
    return np.asarray(np.where(time - stamps[left] <= stamps[right] - time, left, right))


def shift(values: FloatArray, lag: float, dt: float) -> FloatArray:
    """Return values (N, k) advanced by ``lag`` [s], to undo a delay."""
    if lag == 0.0:
        return values
    index = np.arange(len(values), dtype=np.float64)
    source = index + lag / dt
    return np.stack([np.interp(source, index, column) for column in values.T], axis=1)


@dataclass(frozen=True)
class Lag:
    """A delay between two channels [s], positive if the second one is late."""

    seconds: float
    std: float

    @property
    def significant(self) -> bool:
        """Whether the delay differs from zero by more than three standard deviations."""
        return abs(self.seconds) > 3.0 * self.std

    @property
    def words(self) -> str:
        """The delay as '4.21 +- 0.05 ms later', or earlier."""
        side = 'later' if self.seconds > 0.0 else 'earlier'
        return f'{1e3 * abs(self.seconds):.2f} +- {1e3 * self.std:.2f} ms {side}'


def velocity_lag(position: FloatArray, velocity: FloatArray, dt: float) -> Lag:
    """Estimate the delay of measured velocity behind the derivative of position, (N, n) each.

    Least squares on ``velocity - d(position)/dt = -lag * d2(position)/dt2``, both equally smoothed
    by the caller; the deviation assumes residuals correlated over a tenth of a second.
    """
    speed = derivative(position, dt)
    slope = derivative(speed, dt)
    energy = float(np.sum(slope**2))
    if energy == 0.0:
        return Lag(0.0, np.inf)
    difference = velocity - speed
    lag = -float(np.sum(slope * difference)) / energy
    error = difference + lag * slope
    correlated = max(0.1 / dt, 1.0)
    return Lag(lag, float(np.sqrt(np.mean(error**2) * correlated / energy)))
