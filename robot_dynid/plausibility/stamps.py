"""Stamps: their unit, one clock, one publisher."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.plausibility.excerpt import Excerpt, typical_step
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import clock_steps
from robot_dynid.types import FloatArray, RawLog, take

#: steps [s] at which joint states come
SHORTEST, USUAL, LONGEST = 1e-4, 4e-3, 0.5
#: joints that travel as far [rad, m] at this share of their speed limit at most, in states that
#: come no oftener than this [s]
FAR, SLOW, RARE = 0.5, 0.01, 0.05
#: units of time in seconds
UNITS = {'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9, 'minutes': 60.0, 'ks': 1e3}
#: rows that are looked at for more than one publisher
ROWS = 20_000
#: repeated stamps beyond this share are no accident, nor are this many steps back per row
REPEATED, BACK = 0.1, 0.02
#: two publishers take turns where rows so far apart differ by less than this share of what
#: neighbours do, at most so many rows apart
TURNS, LONGEST_TURN = 0.5, 6
#: and differ by more than this [rad, m]
APART = 1e-3


def stamp_findings(robot: RobotModel, log: RawLog, rows: Excerpt) -> list[Finding]:
    """Return findings about the stamps of a recording; ``rows`` is its excerpt."""
    mixed = _publishers(log)
    if any(f.severity is Severity.REFUSE for f in mixed):
        return mixed
    return [*mixed, *_unit(robot, log, rows), *_clock(log)]


def _slow(robot: RobotModel, rows: Excerpt) -> float | None:
    """Return the largest speed over its limit, where joints travel far but slowly."""
    if not len(rows) or not np.isfinite(robot.limits.velocity).any():
        return None
    far = np.ptp(rows.position, axis=0) > FAR
    speed = float(np.nanmax(np.abs(rows.velocity).max(axis=0) / robot.limits.velocity))
    return speed if far.sum() >= min(2, robot.n) and speed < SLOW else None


def _unit(robot: RobotModel, log: RawLog, rows: Excerpt) -> list[Finding]:
    """Return whether stamps are no seconds."""
    step = typical_step(log.time)
    if not step > 0.0:
        return []
    ratio = _velocity_ratio(rows)
    plausible = SHORTEST <= step <= LONGEST
    slow = _slow(robot, rows) if plausible and ratio is None and step > RARE else None
    if slow is not None:
        return [Finding('time_unit', log.source, (), Severity.REFUSE,
                        f'the typical step of the stamps is {step:.4g} s, and the joints travel '
                        f'far at {slow:.2%} of their speed limits at most: they look like ms',
                        'multiply time by 0.001, so that it is in seconds')]
    named = [(name, unit) for name, unit in UNITS.items()
             if (not plausible or unit < 1.0) and SHORTEST <= step * unit <= LONGEST and
             (ratio is None or abs(ratio * unit - 1.0) < 0.3)]
    if plausible and (ratio is None or not named or not _off(ratio)):
        return []
    if not plausible and ratio is not None and not _off(ratio):
        return []  # slow, but velocity and position agree
    evidence = f'the typical step of the stamps is {step:.4g} s'
    if ratio is not None:
        evidence += f', and velocity over it is {ratio:.4g} times the change of position'
    if not named:
        return [Finding('time_unit', log.source, (), Severity.REFUSE,
                        f'{evidence}: they look like another unit than seconds',
                        'convert time to seconds')]
    name, unit = min(named, key=lambda one: abs(np.log(step * one[1] / USUAL)))
    return [Finding('time_unit', log.source, (), Severity.REFUSE,
                    f'{evidence}: they look like {name}', f'multiply time by {unit:g}, so that it '
                    'is in seconds')]


def _off(ratio: float) -> bool:
    return not 0.1 < ratio < 10.0


def _velocity_ratio(rows: Excerpt) -> float | None:
    """Return integrated velocity over travel, if all joints that move agree on it."""
    found = []
    for travel, summed in zip(rows.travel.T, rows.integrated.T, strict=True):
        power = float(travel @ travel)
        if power > 0.0 and np.isfinite(summed).all() and float(summed @ summed) > 0.0:
            product = float(travel @ summed)
            if product**2 > 0.8 * power * float(summed @ summed) and len(travel) > 3:
                found.append(product / power)
    if not found or min(found) <= 0.0 or max(found) > 1.3 * min(found):
        return None
    return float(np.median(found))


def _clock(log: RawLog) -> list[Finding]:
    """Return that the clock was set back."""
    steps = clock_steps(log.time)
    if not len(steps):
        return []
    first = int(steps[0])
    back = float(log.time[first - 1] - log.time[first])
    reset = ', nearly to zero, as when a simulation is reset' if abs(log.time[first]) < 1.0 else ''
    text = f'stamps go back {len(steps)} times (first by {back:.4g} s in row {first + 1}{reset})'
    if log.effort_messages is not None:
        return [Finding(
            'clock', log.source, (), Severity.REFUSE,
            f'{text}, and efforts have stamps of their own, so they cannot be matched',
            'record anew, or cut the recording there')]
    return [Finding(
        'clock', log.source, (), Severity.WARN,
        f'{text}: the clock was set back, the {len(steps) + 1} parts are taken as separate '
        'recordings',
        'record with a monotonic clock')]


def _publishers(log: RawLog) -> list[Finding]:
    """Return whether rows of several publishers are mixed."""
    part = take(log, slice(0, ROWS))
    with np.errstate(invalid='ignore', over='ignore'):
        steps = np.diff(part.time)
    if len(steps) < 20:
        return []
    repeated = float(np.mean(steps == 0.0))
    back = float(np.mean(steps < 0.0))
    turn, share, apart, channel = _turns(part)
    if turn and (repeated > REPEATED or back > BACK or channel == 'position'):
        return [Finding(
            'clock', log.source, (), Severity.REFUSE,
            f'rows of {channel} alternate: {turn} rows apart they differ by {share:.0%} of what '
            f'neighbours do ({apart:.3g}), and {repeated:.0%} of the stamps repeat: several '
            'publishers look mixed in one topic',
            'stop all publishers but one (ros2 topic info -v names them), or give one its own '
            'topic, and record again')]
    if repeated > REPEATED:
        if _copies(part, steps == 0.0):
            text, remedy = 'their rows are the same and count once', 'stop the second publisher'
        else:
            text = f'stamps look rounded to {typical_step(part.time):.3g} s, only the first row ' \
                'of each counts'
            remedy = 'record stamps with full resolution'
        return [Finding('clock', log.source, (), Severity.WARN,
                        f'{repeated:.0%} of the stamps repeat: {text}', remedy)]
    return []


def _copies(log: RawLog, repeated: NDArray[np.bool_]) -> bool:
    """Return whether rows with the stamp of the row before are that row."""
    table = log.position if log.effort is None else np.hstack([log.position, log.effort])
    same = np.all(table[1:] == table[:-1], axis=1)
    return bool(np.mean(same[repeated]) > 0.9)


def _turns(log: RawLog) -> tuple[int, float, float, str]:
    """Return after how many rows another publisher has had its turn, 0 for none.

    With it the change over these rows as a share of that between neighbours, the latter, and the
    channel.
    """
    for name, values in (('position', log.position), ('effort', log.effort)):
        if values is None:
            continue
        values = values[np.isfinite(values).all(axis=1)]
        if len(values) < 20:
            continue
        near = _change(values, 1)
        least = APART if name == 'position' else 1e-6
        for turn in range(2, LONGEST_TURN + 1):
            far = _change(values, turn)
            with np.errstate(divide='ignore', invalid='ignore'):
                share = np.where(near > least, far / near, np.inf)
            j = int(np.argmin(share))
            if share[j] < TURNS:
                return turn, float(share[j]), float(near[j]), name
    return 0, 1.0, 0.0, ''


def _change(values: FloatArray, rows: int) -> FloatArray:
    """Return the mean change (n,) over so many rows."""
    return np.asarray(np.mean(np.abs(values[rows:] - values[:-rows]), axis=0))
