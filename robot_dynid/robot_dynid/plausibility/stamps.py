"""Checks of time stamps: one clock, one publisher."""

from __future__ import annotations

import numpy as np

from robot_dynid.plausibility.excerpt import typical_step
from robot_dynid.plausibility.finding import Finding, Severity
from robot_dynid.signals.alignment import clock_steps
from robot_dynid.types import RawLog, take

#: rows checked for more than one publisher
STAMP_ROWS = 20_000
#: share of repeated stamps, and steps back per row, beyond which they are no accident; least share
#: of copies among rows with repeated stamps
REPEATED, STEPS_BACK, COPIED = 0.1, 0.02, 0.9
#: two publishers alternate if rows some steps apart differ by less than this share of what
#: neighbours do, at most so many steps apart, and neighbours by more than this [rad, m]
TURNS, LONGEST_TURN, NEIGHBOUR_STEP = 0.5, 6, 1e-3


def stamp_findings(log: RawLog) -> list[Finding]:
    """Return findings about the stamps of a recording, except for their unit."""
    mixed = _publishers(log)
    steps = clock_steps(log.time)
    if not len(steps) or any(f.severity is Severity.REFUSE for f in mixed):
        return mixed
    first = int(steps[0])
    back = float(log.time[first - 1] - log.time[first])
    reset = ', nearly to zero, as when a simulation is reset' if abs(log.time[first]) < 1.0 else ''
    text = f'stamps go back {len(steps)} times (first by {back:.4g} s in row {first + 1}{reset})'
    severity, meaning, remedy = (
        Severity.REFUSE, ', and efforts have separate stamps, so they cannot be matched',
        'record again, or cut the recording there') if log.effort_messages is not None else (
        Severity.WARN, f': the clock was set back, the {len(steps) + 1} parts are treated as '
        'separate recordings', 'record with a monotonic clock')
    return [*mixed, Finding('clock', log.source, (), severity, f'{text}{meaning}', remedy)]


def _publishers(log: RawLog) -> list[Finding]:
    """Return findings about mixed rows of several publishers."""
    part = take(log, slice(0, STAMP_ROWS))
    with np.errstate(invalid='ignore', over='ignore'):
        steps = np.diff(part.time)
    if len(steps) < 20:
        return []
    repeated, back = float(np.mean(steps == 0.0)), float(np.mean(steps < 0.0))
    turn, share, apart, channel = _turns(part)
    if turn and (repeated > REPEATED or back > STEPS_BACK or channel == 'position'):
        return [Finding(
            'clock', log.source, (), Severity.REFUSE,
            f'rows of {channel} alternate: {turn} rows apart they differ by {share:.0%} of what '
            f'neighbours do ({apart:.3g}), and {repeated:.0%} of the stamps repeat: several '
            'publishers look mixed in one topic',
            'stop all publishers but one (ros2 topic info -v names them), or give one another '
            'topic, and record again')]
    if repeated <= REPEATED:
        return []
    table = part.position if part.effort is None else np.hstack([part.position, part.effort])
    same = np.all(table[1:] == table[:-1], axis=1)
    text, remedy = ('their rows are the same and count once', 'stop the second publisher') \
        if np.mean(same[steps == 0.0]) > COPIED else (
            f'stamps look rounded to {typical_step(part.time):.3g} s, only the first row of each '
            'counts', 'record stamps with full resolution')
    return [Finding('clock', log.source, (), Severity.WARN,
                    f'{repeated:.0%} of the stamps repeat: {text}', remedy)]


def _turns(log: RawLog) -> tuple[int, float, float, str]:
    """Return after how many rows publishers alternate, 0 if they do not.

    Also the change over these rows relative to that between neighbours, the latter, and the
    channel.
    """
    for name, values in (('position', log.position), ('effort', log.effort)):
        if values is None:
            continue
        values = values[np.isfinite(values).all(axis=1)]
        if len(values) < 20:
            continue
        least = NEIGHBOUR_STEP if name == 'position' else 1e-6
        for turn in range(2, LONGEST_TURN + 1):
            with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
                near = np.mean(np.abs(np.diff(values, axis=0)), axis=0)
                far = np.mean(np.abs(values[turn:] - values[:-turn]), axis=0)
                share = np.where(near > least, far / near, np.inf)
            j = int(np.argmin(share))
            if share[j] < TURNS:
                return turn, float(share[j]), float(near[j]), name
    return 0, 1.0, 0.0, ''
