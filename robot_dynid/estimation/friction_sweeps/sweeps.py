"""Friction from motion there and back at constant speed: tau_f = (tau_there - tau_back) / 2.

At equal positions and opposite speeds gravity is the same and friction opposite; at constant speed
nothing is left of inertia. Source: Actuators 2023, 12, 454, equations 3 to 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from robot_dynid.estimation.quantiles import fisher_tail, student_quantile
from robot_dynid.numbers import BOUNDS, SPEED
from robot_dynid.signals.single_joint_motion import SHORTEST, SingleJointMotion
from robot_dynid.types import FloatArray

#: share by which two speeds may differ and be taken as one
SPEED_TOLERANCE = 0.05
#: rad (m) by which the joints at rest may differ between there and back: what holds them gives
POSE_TOLERANCE = 0.1
#: share of the shorter of two stretches that the other one must cover
LEAST_OVERLAP = 0.5
#: s within which a joint turns back at the end of a sweep
PAUSE = 2.0
#: stretches of time a pair is cut into; within them residuals may be as coloured as they like
BATCHES = 5
#: probability below which pairs at one speed differ by more than their noise
UNLIKE = 1e-3
#: Huber's constant: 95 % efficient for normal residuals
HUBER, PASSES = 1.345, 50


@dataclass(frozen=True)
class SpeedPoint:
    """Friction at one ``speed`` [rad/s, m/s]: ``friction``, its ``std`` [N m, N].

    ``degrees`` of freedom of the deviation; ``pairs`` of stretches; ``even`` is the mean of
    (there + back) / 2: gravity, offset, and friction that does not turn with the speed.
    """

    speed: float = field(metadata={BOUNDS: SPEED})
    friction: float
    std: float
    degrees: int
    pairs: int
    even: float

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return student_quantile(0.975, self.degrees) * self.std


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Friction at the speeds of one joint's sweeps; ``notes`` say what was left out, and why."""

    points: tuple[SpeedPoint, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, eq=False)
class Pair:
    """Half differences and half sums (m,) of torque at equal positions; ``speed`` their mean."""

    speed: float
    difference: FloatArray
    half_sum: FloatArray


def friction_by_joint(
    joints: Sequence[str], motions: Sequence[SingleJointMotion]
) -> dict[str, Sweeps]:
    """Return the friction from the sweeps of every joint; empty where no joint keeps a speed."""
    if not any(motion.steady for motion in motions):
        return {}
    own = {name: [s for s in motions if s.joint == i] for i, name in enumerate(joints)}
    return {name: friction_of_joint(name, some) for name, some in own.items() if some}


def friction_of_joint(name: str, motions: Sequence[SingleJointMotion]) -> Sweeps:
    """Return friction, speed by speed, from the stretches in which joint ``name`` moves alone."""
    jerky = _distinct([abs(s.speed) for s in motions if s.jerky])
    pairs, alone = paired([s for s in motions if s.steady])
    pairs = [p for p in pairs if not _among(p.speed, jerky)]
    points, notes = [], [
        f'{_at(name, speed)} moves in jerks, sticking in between; this speed is left out'
        for speed in jerky]
    for group in _grouped(pairs):
        point, unlike = _point(group)
        points.append(point)
        if unlike:
            notes.append(f'{_at(name, point.speed)} has other friction in other poses (it depends '
                         'on the load?); its band is that of their mean')
    known = [*jerky, *(p.speed for p in points)]
    for speed in _distinct([s.speed for s in alone]):
        if not _among(abs(speed), known):
            notes.append(f'{_at(name, abs(speed))} keeps its speed '
                         f'{"forward" if speed > 0.0 else "backward"} only; friction needs the '
                         'way back over the same positions at the same speed')
    short = [s for s in motions if not s.steady and not s.jerky and s.seconds >= SHORTEST]
    both = [abs(s.speed) for s in short if any(_returns(s, other) for other in short)]
    both = _distinct([speed for speed in both if not _among(speed, known)])
    if both:
        speeds = ', '.join(f'{s:.3g}' for s in both)
        notes.append(f'{name} goes there and back at {speeds} without keeping its speed; at least '
                     '0.4 s of constant speed are needed')
    return Sweeps(tuple(points), tuple(notes))


def paired(motions: Sequence[SingleJointMotion]) -> tuple[list[Pair], list[SingleJointMotion]]:
    """Pair every way there with the next way back over the same positions; return pairs, rest."""
    back = [s for s in motions if s.speed < 0.0]
    pairs, alone = [], []
    for there in (s for s in motions if s.speed > 0.0):
        fitting = [b for b in back if _opposite(there, b)]
        if fitting:
            nearest = min(fitting, key=lambda b: abs(b.start - there.start))
            pairs.append(_pair(there, nearest))
            back.remove(nearest)
        else:
            alone.append(there)
    return pairs, [*alone, *back]


def _opposite(there: SingleJointMotion, back: SingleJointMotion) -> bool:
    others = np.delete(np.abs(there.pose - back.pose), there.joint)
    low = max(there.position.min(), back.position.min())
    high = min(there.position.max(), back.position.max())
    shorter = min(np.ptp(there.position), np.ptp(back.position))
    return bool(_equal(there.speed, -back.speed) and np.all(others <= POSE_TOLERANCE)
                and high - low >= LEAST_OVERLAP * shorter)


def _returns(there: SingleJointMotion, back: SingleJointMotion) -> bool:
    """Return whether ``back`` comes right after ``there`` and leads back."""
    near = abs(there.path[1] - there.path[0])
    return (0.0 < back.start - there.start <= there.seconds + PAUSE
            and _equal(there.speed, -back.speed) and abs(back.path[1] - there.path[0]) <= near)


def _pair(there: SingleJointMotion, back: SingleJointMotion) -> Pair:
    order = np.argsort(back.position)
    common = ((there.position >= back.position[order[0]])
              & (there.position <= back.position[order[-1]]))
    against = np.interp(there.position[common], back.position[order], back.torque[order])
    own = there.torque[common]
    return Pair(0.5 * (there.speed - back.speed), 0.5 * (own - against), 0.5 * (own + against))


def _point(pairs: Sequence[Pair]) -> tuple[SpeedPoint, bool]:
    """Return the friction of pairs at one speed, and whether they differ beyond their noise."""
    values = np.concatenate([p.difference for p in pairs])
    batch = np.concatenate([k * BATCHES + np.arange(m) * BATCHES // m
                            for k, m in enumerate(len(p.difference) for p in pairs)])
    friction, influence = huber_location(values)
    batches = np.array([influence[batch == b].mean() for b in np.unique(batch)])
    groups = batches.reshape(len(pairs), -1)
    unlike = _differ(groups)
    if unlike:
        batches = groups.mean(axis=1)
    std = float(batches.std(ddof=1) / np.sqrt(len(batches)))
    even = float(np.mean([np.median(p.half_sum) for p in pairs]))
    speed = float(np.mean([p.speed for p in pairs]))
    return SpeedPoint(speed, friction, std, len(batches) - 1, len(pairs), even), unlike


def _differ(groups: FloatArray) -> bool:
    """Return whether the means of rows (p, b) differ, by an analysis of variance."""
    pairs, size = groups.shape
    within = float(groups.var(axis=1, ddof=1).mean())
    if pairs < 2 or within == 0.0:
        return False
    ratio = size * float(groups.mean(axis=1).var(ddof=1)) / within
    return fisher_tail(ratio, (pairs - 1, pairs * (size - 1))) < UNLIKE


def huber_location(values: FloatArray) -> tuple[float, FloatArray]:
    """Return Huber's location of ``values`` (m,) and the influence (m,) of each.

    Outliers pull with bounded force. The mean influence of a stretch of time is how far it alone
    would move the location, so the spread of such means is its deviation. Source: Huber 1981.
    """
    centre = float(np.median(values))
    scale = float(np.median(np.abs(values - centre))) / 0.6745
    if scale == 0.0:
        return centre, values - centre
    for _ in range(PASSES):
        weights = np.minimum(1.0, HUBER * scale / np.maximum(np.abs(values - centre), 1e-300))
        before, centre = centre, float(np.average(values, weights=weights))
        if abs(centre - before) < 1e-10 * scale:
            break
    residual = (values - centre) / scale
    inside = float(np.mean(np.abs(residual) <= HUBER))
    return centre, scale * np.clip(residual, -HUBER, HUBER) / inside


def _grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Return the pairs, slowest first, those of one speed together."""
    groups: list[list[Pair]] = []
    for pair in sorted(pairs, key=lambda p: p.speed):
        if groups and _equal(pair.speed, groups[-1][0].speed):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= SPEED_TOLERANCE * max(abs(a), abs(b))


def _among(speed: float, others: Sequence[float]) -> bool:
    return any(_equal(speed, other) for other in others)


def _distinct(speeds: Sequence[float]) -> list[float]:
    """Return one speed, with its sign, of every group of equal ones, slowest first."""
    found: list[float] = []
    for speed in sorted(speeds, key=abs):
        if not _among(abs(speed), [abs(other) for other in found]):
            found.append(speed)
    return found


def _at(name: str, speed: float) -> str:
    return f'{name} at {speed:.3g}'
