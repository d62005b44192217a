"""Motor and link encoders: resolution, noise, gear ratio, sign, sides, offset, slip.

Their difference is the deflection of the gear. It is about 1e-4 rad, so a scaled, swapped or
slipped encoder would hide it. Such a joint loses its motor channels, with a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.filters import derivative, fuse_velocity
from robot_dynid.types import FloatArray, RawLog

#: changes of position that the resolution needs, the most counts of each, and the tolerance of
#: whole counts
CHANGES, COUNTS, WHOLE = 20, 20.0, 0.05
#: below this share of the positions is rounding of numbers
NUMBER_ROUNDING = 1e-11


def resolution(position: FloatArray) -> float:
    """Return the step [rad, m] of the encoder that gave ``position`` (T,), 0 if none shows.

    The smallest change of position is a step if almost all other changes of a few steps are whole
    multiples of it.
    """
    position = position[np.isfinite(position)]
    change = np.abs(np.diff(position))
    change = change[change > NUMBER_ROUNDING * max(float(np.abs(position).max(initial=0.0)), 1.0)]
    step = float(change.min(initial=np.inf))
    few = change[change <= COUNTS * step]
    if len(few) < CHANGES:
        return 0.0
    step = float(few.sum() / np.round(few / step).sum())
    counts = few / step
    whole = np.abs(counts - np.round(counts)) < WHOLE
    return step if np.mean(whole) > 1.0 - WHOLE else 0.0


def noise(position: FloatArray) -> float:
    """Return the standard deviation [rad, m] of single positions (T,) from a smooth motion.

    From fourth differences, and not below that of rounding to the steps of the encoder.
    """
    differences = np.diff(position, 4)
    white = float(np.sqrt(np.mean(differences**2) / 70.0)) if len(differences) else 0.0
    return max(white, resolution(position) / float(np.sqrt(12.0)))


#: rows of a recording checked; least travel [rad, m] that shows a gear ratio
ENCODER_ROWS, GEAR_RATIO_TRAVEL = 20_000, 0.02
#: tolerance of a slope; deviation of a motor from its joint as a share of the travel
SLOPE_ERROR, FOLLOWS = 0.02, 0.02
#: deflections below this share of the travel are rounding: one encoder recorded twice
ENCODER_ROUNDING = 1e-9
#: correlation with the effort below which motor and link sides are swapped
OPPOSED = -0.3
#: a slip is this many times the scatter of windows, of which there are at most so many, each at
#: least so long [s]
SLIP, SLIP_WINDOWS, LEAST_WINDOW = 8.0, 60, 0.5
#: speed [rad/s, m/s] above which a motor slides
MOTOR_SLIDES = 0.01
#: an offset is removed if it exceeds this many deviations; correlation time of the errors [s]
OFFSET_DEVIATIONS, ERROR_CORRELATION_TIME = 5.0, 0.5


@dataclass(frozen=True, eq=False)
class Track:
    """One joint as both encoders measure it: ``time``, ``motor``, ``link``, ``effort`` (N,).

    ``velocity`` (N,) is that of the link.
    """

    time: FloatArray
    motor: FloatArray
    link: FloatArray
    effort: FloatArray
    velocity: FloatArray


@dataclass(frozen=True)
class Encoder:
    """Relation of a motor encoder to its joint: joint side = motor / ``factor`` - ``offset``.

    ``refused`` is the reason why the two encoders cannot be used together, ``note`` what was
    corrected.
    """

    factor: float = 1.0
    offset: float = 0.0
    refused: str = ''
    note: str = ''


def convert_to_joint_side(
    robot: RobotModel, parts: tuple[RawLog, ...], step: float
) -> tuple[tuple[RawLog, ...], list[str]]:
    """Convert the motor channels of the ``parts`` of one recording to the joint side.

    Offsets are removed; joints whose encoders cannot be used together become NaN, with notes.
    """
    if not parts or parts[0].motor_position is None:
        return tuple(replace(p, motor_position=None, motor_velocity=None) for p in parts), []
    tracks = _tracks(robot, parts)
    relations = [encoder(robot, tracks, j) for j in range(robot.n)]
    alike: dict[str, list[str]] = {}
    for joint, one in zip(robot.joints, relations, strict=True):
        if one.refused or one.note:
            alike.setdefault(f'{one.refused}; no deflection is used there' if one.refused
                             else one.note, []).append(joint)
    notes = [f'{parts[0].source}: motor states of {", ".join(joints)}: {text}'
             for text, joints in alike.items()]
    return tuple(_convert_motors(p, relations, step) for p in parts), notes


def encoders_of(robot: RobotModel, log: RawLog) -> tuple[Encoder, ...]:
    """Return the encoders of every joint of a recording without holes, as read.

    Raises DataError without effort or motor positions.
    """
    if log.effort is None or log.motor_position is None:
        raise DataError(f'{log.source}: holds no effort or no motor positions')
    tracks = _tracks(robot, (log,))
    return tuple(encoder(robot, tracks, j) for j in range(robot.n))


def _convert_motors(part: RawLog, relations: Sequence[Encoder], step: float) -> RawLog:
    assert part.motor_position is not None
    factor = np.array([np.nan if one.refused else one.factor for one in relations])
    position = part.motor_position / factor - np.array([one.offset for one in relations])
    velocity = np.full_like(position, np.nan)
    good = np.isfinite(position).all(axis=0)
    if part.motor_velocity is not None:
        measured = part.motor_velocity / factor
        both = good & np.isfinite(measured).all(axis=0)
        if both.any():
            velocity[:, both] = fuse_velocity(position[:, both], measured[:, both], step)
        good &= ~both
    if good.any():
        velocity[:, good] = derivative(position[:, good], step)
    return replace(part, motor_position=position, motor_velocity=velocity)


def _tracks(robot: RobotModel, parts: Sequence[RawLog]) -> list[Track]:
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    stride = max(1, sum(len(p.time) for p in parts) // ENCODER_ROWS)

    def joined(name: str) -> FloatArray:
        return np.concatenate([getattr(p, name) for p in parts])[::stride]

    time, motor = joined('time'), joined('motor_position')
    link = joined('position') @ coupling.T
    passed = np.maximum(np.gradient(time), 1e-6)[:, None]  # stamps may repeat
    velocity = np.gradient(link, axis=0) / passed
    effort = joined('effort') * np.sign(robot.torque_factors)
    return [Track(time, motor[:, j], link[:, j], effort[:, j], velocity[:, j])
            for j in range(robot.n)]


def encoder(robot: RobotModel, tracks: Sequence[Track], joint: int) -> Encoder:
    """Return the encoder of ``joint``; ``tracks`` are those of all joints."""
    track = tracks[joint]
    if not np.isfinite(track.motor).all():
        return Encoder(refused='there are none')
    travel = float(np.ptp(track.link))
    if travel < GEAR_RATIO_TRAVEL:
        return Encoder(refused=f'the joint travels over {travel:.2g} only, too little to show '
                               'whether they belong to it')
    given = robot.drive.gear_ratios
    ratio = None if given is None else float(given[joint])
    slope = _slope(track.link, track.motor)
    rest = track.motor - slope * track.link
    if not _is_recognised(slope, ratio):
        stiff, remainder = _slope_without_deflection(track)
        if _is_recognised(stiff, ratio):
            slope, rest = stiff, remainder
    if _scatter(rest) > FOLLOWS * max(abs(slope), 1e-3) * travel:
        return Encoder(refused=_mismatch_text(robot, tracks, joint))
    factor = _factor(slope, ratio)
    if isinstance(factor, str):
        return Encoder(refused=factor)
    scaled = replace(track, motor=track.motor / factor)
    note = '' if factor == 1.0 else f'divided by the gear ratio {factor:g}'
    if np.ptp(scaled.motor - scaled.link) <= ENCODER_ROUNDING * max(travel, 1.0):
        return Encoder(refused='the deflection is constant: the driver derives one encoder from '
                               'the other')
    if robot.drive.kind == 'gravity_compensated_torque':
        return Encoder(factor, note=note)  # gravity bends it, but is not in the effort
    return _remove_offset(scaled, Encoder(factor, note=note))


def _slope(x: FloatArray, y: FloatArray) -> float:
    """Return the median slope between points half the sorted sample apart (Theil's, thinned)."""
    order = np.argsort(x)
    half = len(order) // 2
    low, high = order[:half], order[-half:]
    run = x[high] - x[low]
    apart = run > 1e-12
    return float(np.median((y[high] - y[low])[apart] / run[apart]))


def _slope_without_deflection(track: Track) -> tuple[float, FloatArray]:
    """Return the slope of the motor over the link, less deflection by effort, and the rest (N,).

    A soft gear deflects by a share of the travel, and gravity deflects it more the farther the
    link reaches out.
    """
    columns = np.column_stack([_columns(track), track.link])
    line, _ = _line(track, track.motor, columns)
    return float(line[-1]), track.motor - columns @ line


def _scatter(values: FloatArray) -> float:
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _mismatch_text(robot: RobotModel, tracks: Sequence[Track], joint: int) -> str:
    """Return the sentence that a motor does not follow its joint, and which one it follows."""
    motor = tracks[joint].motor
    for other, track in enumerate(tracks):
        travel = float(np.ptp(track.link))
        if other == joint or travel < GEAR_RATIO_TRAVEL:
            continue
        slope = _slope(track.link, motor)
        if _scatter(motor - slope * track.link) <= FOLLOWS * max(abs(slope), 1e-3) * travel:
            return (f'they follow joint {robot.joints[other]} instead; correct the order or the '
                    'names of the motor states')
    return ('they do not follow the joint; check that they belong to this robot, and that their '
            'stamps are of the same clock')


def _near(value: float, expected: float) -> bool:
    return abs(value - expected) <= SLOPE_ERROR * abs(expected)


def _is_recognised(slope: float, ratio: float | None) -> bool:
    """Return True if a slope is that of correct encoders, or of a recognised mistake."""
    likely = [1.0] if ratio is None else [1.0, ratio]
    return any(_near(abs(slope), abs(value)) for value in likely) or (
        ratio is not None and _near(slope * ratio, 1.0))


def _factor(slope: float, ratio: float | None) -> float | str:
    """Return the divisor of the motor angle, or the reason why it is unknown."""
    if _near(slope, 1.0):
        return 1.0
    if ratio is not None and _near(slope, ratio):
        return ratio
    measured = f'they turn {slope:.4g} times as far as the joint'
    if _near(slope, -1.0) or (ratio is not None and _near(slope, -ratio)):
        stated = '' if ratio is None else f', the gear ratio is {ratio:g}'
        return f'{measured}{stated}: correct its sign'
    if ratio is None:
        side = '' if abs(slope) > 1.0 else ' (below one: the sides may be swapped)'
        return (f'{measured}{side}, and the gear ratio is missing: put gear_ratios into the '
                'robot YAML, or divide the motor states by the gear ratio')
    if _near(slope * ratio, 1.0):
        return f'{measured}, one over the gear ratio: motor and link side are swapped'
    return f'{measured}, the gear ratio in the robot YAML is {ratio:g}: correct it'


def _remove_offset(track: Track, so_far: Encoder) -> Encoder:
    """Return the encoder with its offset, the deflection without effort; refuse a slip."""
    deflection = track.motor - track.link
    spread = _scatter(deflection)
    columns = _columns(track)
    alone, _ = _line(track, deflection, columns[:, :2])
    slip = _slip(track.time, deflection - columns[:, :2] @ alone)
    if slip is not None and _exceeds_friction(track, deflection, columns, slip):
        return replace(so_far, refused=f'their offset changes by {slip[1]:+.3g} rad near '
                                       f'{slip[0]:.1f} s: an encoder or the gear slipped')
    if _opposed(deflection, track.effort, columns):
        return replace(so_far, refused='the motor lags behind the joint it drives: motor and link '
                                       'side are swapped, or the effort has the wrong sign')
    line, deviation = _line(track, deflection, columns)
    # without ENCODER_ROUNDING, rounding could be an offset
    if abs(line[0]) <= max(OFFSET_DEVIATIONS * deviation, ENCODER_ROUNDING):
        return so_far
    offset = f'offset of {line[0]:+.3g} rad against the joint removed' \
        if abs(line[0]) > spread else ''
    return replace(so_far, offset=float(line[0]),
                   note='; '.join(text for text in (so_far.note, offset) if text))


def _opposed(deflection: FloatArray, effort: FloatArray, columns: FloatArray) -> bool:
    """Return True if the deflection (N,) is against the effort (N,), with and without friction.

    A late encoder moves the deflection with the velocity, as friction does the effort.
    """
    pair = np.stack([deflection, effort])
    friction = columns[:, 2:]
    without = pair - (friction @ np.linalg.lstsq(friction, pair.T, rcond=None)[0]).T
    return all(a @ b < OPPOSED * np.linalg.norm(a) * np.linalg.norm(b)
               for a, b in (one - one.mean(axis=1, keepdims=True) for one in (pair, without)))


def _columns(track: Track) -> FloatArray:
    """Return columns (N, 4): one, effort, and sign and value of the velocity for friction.

    Friction before the gear does not deflect it; omitted, it would look like an offset.
    """
    speed = np.clip(track.velocity / MOTOR_SLIDES, -1.0, 1.0)
    return np.stack([np.ones_like(track.effort), track.effort, speed, track.velocity], axis=1)


def _line(
    track: Track, deflection: FloatArray, columns: FloatArray
) -> tuple[FloatArray, float]:
    """Return the L1 fit of the ``columns``, the first of them one, and the deviation of that.

    Iteratively reweighted, so that a slip of one stretch does not bias the line.
    """
    weights = np.ones(len(deflection))
    for _ in range(30):
        root = np.sqrt(weights)
        line = np.linalg.lstsq(columns * root[:, None], deflection * root, rcond=None)[0]
        error = np.abs(deflection - columns @ line)
        floor = max(1e-3 * float(np.median(error)), 1e-300)
        weights = 1.0 / np.maximum(error, floor)
        weights /= weights.max()
    span = max(float(np.median(np.diff(track.time))), 1e-9)
    independent = max(len(error) * span / ERROR_CORRELATION_TIME, 3.0)
    inverse = np.linalg.pinv(columns.T @ columns / len(error), hermitian=True)
    deviation = _scatter(deflection - columns @ line) * np.sqrt(inverse[0, 0] / independent)
    return np.asarray(line), float(deviation)


def _exceeds_friction(
    track: Track, deflection: FloatArray, columns: FloatArray, slip: tuple[float, float]
) -> bool:
    """Return True if at least half of a ``slip`` remains after a fit of friction.

    A joint that moves one way for long changes the level by its friction.
    """
    after = (track.time >= slip[0]).astype(np.float64)
    line, _ = _line(track, deflection, np.column_stack([columns, after]))
    return bool(line[-1] / slip[1] > 0.5)


def _slip(time: FloatArray, rest: FloatArray) -> tuple[float, float] | None:
    """Return time [s] and size [rad] of a lasting change of the level of ``rest``, or None."""
    count = min(SLIP_WINDOWS, int((time[-1] - time[0]) / LEAST_WINDOW), len(rest) // 10)
    if count < 8:
        return None
    windows = np.array_split(np.arange(len(rest)), count)
    level = np.array([np.median(rest[w]) for w in windows])

    def change(k: int) -> tuple[float, int, float, float]:
        before, after = np.median(level[:k]), np.median(level[k:])
        error = np.abs(level - np.where(np.arange(count) < k, before, after))
        return (float(error.sum()), k, float(after - before),
                float(1.4826 * np.median(error)))

    cost, k, jump, scatter = min(map(change, range(2, count - 1)))
    flat = float(np.abs(level - np.median(level)).sum())
    near = float(np.median(level[k:k + 3]) - np.median(level[max(k - 3, 0):k]))
    clear = abs(jump) > SLIP * scatter and abs(near) > 0.5 * abs(jump) and cost < 0.5 * flat
    return (float(time[windows[k][0]]), jump) if clear else None
