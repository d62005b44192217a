"""Account of a motion after an event, from the messages of a witness; no ROS, no clock.

Accelerations are differences of velocities over their time: exactly the mean over that time, so a
stop between two samples is not missed, only spread over the time between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, frozen

PERIOD = 2.5  # s
SPEED = 0.5  # of the limits of velocity, and of acceleration, at most
REACH = 0.4  # rad (m) about the middle of a joint's range at most
FAST = 0.7  # of the peak speed: when events happen
FIRST, LAST = 0.4, 1.4  # s into the motion


def motion(robot: RobotModel, periods: int) -> FourierTrajectory:
    """Return ``periods`` of a motion of all joints within their limits.

    Joints take turns in being fast: the odd ones move as sin wt - sin 2wt / 2, the even ones as
    cos wt - cos 2wt / 4.
    """
    limits, n = motion_limits(robot), robot.n
    odd = np.arange(n) % 2 == 0
    sine = np.where(odd[:, None], [1.0, -0.5], 0.0)
    cosine = np.where(odd[:, None], 0.0, [1.0, -0.25])
    unit = FourierTrajectory(robot.joints, 1.0 / PERIOD, np.zeros(n), sine, cosine, periods)
    peaks = unit.peaks()
    gain = np.minimum(SPEED * limits.velocity / peaks.velocity,
                      SPEED * limits.acceleration / peaks.acceleration)
    width = np.maximum(peaks.upper, -peaks.lower)
    gain = np.minimum(gain, np.minimum(REACH, limits.half_range) / width)[:, None]
    middle = np.where(np.isfinite(limits.centre), limits.centre, 0.0)
    return FourierTrajectory(robot.joints, 1.0 / PERIOD, frozen(middle), frozen(gain * sine),
                             frozen(gain * cosine), periods)


def fast_times(plan: FourierTrajectory, rng: np.random.Generator, count: int) -> FloatArray:
    """Return ``count`` random times s between FIRST and LAST at which it is fast."""
    time = np.arange(FIRST, LAST, 1e-3)
    motion_ = plan.sample(time)
    share = np.abs(motion_.velocity) / plan.peaks().velocity
    fast = time[share.max(axis=1) > FAST]
    return np.asarray(rng.choice(fast, count))


AT_REST = 0.01  # rad/s: an arm that holds
ON_PATH = 1e-3  # rad between a reference on its plan and the plan
SPAN = 0.01  # s over which accelerations of the arm are taken, a cycle of usual controllers
BEFORE = 0.5  # s before the event in which the reference is matched with the plan
SAME = 1e-6  # rounding of what is periodic
STEP = 1e-3  # s between the points of the plan that are compared


@dataclass(frozen=True, eq=False)
class Track:
    """A motion as it was received.

    ``received`` (T,) s by the clock of the machine, ``stamp`` (T,) s by the robot's;
    ``position`` (T, n) rad (m), ``velocity`` (T, n).
    """

    received: FloatArray
    stamp: FloatArray
    position: FloatArray
    velocity: FloatArray

    def between(self, begin: float, end: float) -> Track:
        """Return the part received from ``begin`` to ``end`` s."""
        rows = (self.received >= begin) & (self.received <= end)
        return Track(self.received[rows], self.stamp[rows], self.position[rows],
                     self.velocity[rows])


@dataclass(frozen=True, eq=False)
class Record:
    """Messages of a witness: the arm, the controller's reference, the commands of the node.

    ``commands`` are pairs of the time of reception s and the name of what was sent.
    """

    arm: Track
    reference: Track
    commands: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Account:
    """Times and peaks of a motion after an event; NaN where it was not to be seen.

    ``reaction`` s from the event until the reference left the plan, infinite where it did not;
    ``rest`` s until the arm stood, infinite while it moves; ``travel`` rad (m) of the joint that
    went furthest in between; ``acceleration`` of the reference and ``arm`` of the arm itself, the
    largest as multiples of the limit; ``off_path`` rad (m) the largest distance of the reference
    from the nearest point of the plan.
    """

    reaction: float
    rest: float
    travel: float
    acceleration: float
    arm: float
    off_path: float


def account(record: Record, plan: Trajectory, event: float, limit: FloatArray) -> Account:
    """Return the account of the ``plan`` after the ``event`` at s by the clock of the machine.

    ``limit`` (n,) rad/s^2 of the acceleration.
    """
    stood = rest_after(record.arm, event)
    over = stood if np.isfinite(stood) else np.inf
    arm = record.arm.between(event, over)
    travel = np.abs(np.diff(arm.position, axis=0)).sum(axis=0).max(initial=0.0)
    led = record.reference.between(event - SPAN, over + BEFORE)
    return Account(
        reaction_to(event, record.reference, plan), stood - event, float(travel),
        peak_acceleration(led, limit, 0.0),
        peak_acceleration(record.arm.between(event - SPAN, over + SPAN), limit, SPAN),
        off_path(record.reference.between(event, over + BEFORE), plan))


def rest_after(arm: Track, event: float) -> float:
    """Return the time [s] from which on the arm stood; infinite when it moved at the end."""
    if not len(arm.received) or arm.received[-1] < event:
        return float('nan')
    moves = np.flatnonzero(np.abs(arm.velocity).max(axis=1) > AT_REST)
    last = int(moves[-1]) if len(moves) else -1
    if last + 1 == len(arm.received):
        return float('inf')
    return max(event, float(arm.received[last + 1]))


def peak_acceleration(track: Track, limit: FloatArray, span: float) -> float:
    """Return the largest mean acceleration over ``span`` s (0: sample to sample) / ``limit``."""
    if len(track.stamp) < 2:
        return float('nan')
    later = np.maximum(np.searchsorted(track.stamp, track.stamp + span - 1e-9),
                       np.arange(len(track.stamp)) + 1)
    first = np.flatnonzero(later < len(track.stamp))
    later = later[first]
    passed = track.stamp[later] - track.stamp[first]
    change = np.abs(track.velocity[later] - track.velocity[first])
    rates = change[passed > 0.0] / passed[passed > 0.0, None]
    return float(np.max(rates / limit, initial=0.0))


def reaction_to(event: float, reference: Track, plan: Trajectory) -> float:
    """Return the time [s] from the event until the reference left the plan's timing.

    Infinite when it never did, NaN when it was not on the plan before the event.
    """
    before = reference.between(event - BEFORE, event)
    begun = begin_of(before, plan)
    after = reference.between(event, np.inf)
    if not np.isfinite(begun) or not len(after.received):
        return float('nan')
    wanted = plan.sample(after.stamp - begun).position
    left = np.flatnonzero(np.abs(wanted - after.position).max(axis=1) > ON_PATH)
    return float(after.received[left[0]]) - event if len(left) else float('inf')


def begin_of(track: Track, plan: Trajectory) -> float:
    """Return the stamp [s] at which the plan began whose motion the track's fastest sample shows.

    NaN when it is none of the plan.
    """
    if not len(track.stamp):
        return float('nan')
    fastest = int(np.argmax(np.abs(track.velocity).max(axis=1)))
    q, qd = track.position[fastest], track.velocity[fastest]
    time = np.arange(0.0, plan.duration, STEP)
    motion = plan.sample(time)
    near = np.abs(motion.position - q).max(axis=1)
    near += 10.0 * STEP * np.abs(motion.velocity - qd).max(axis=1)  # there are crossings
    at = float(time[np.flatnonzero(near <= near.min() + SAME)[0]])  # in the first of its periods
    for _ in range(3):  # onto the plan: the nearest instant of a motion that is nearly straight
        here = plan.sample([at])
        v = here.velocity[0]
        if not v @ v:
            break
        at += float((q - here.position[0]) @ v / (v @ v))
    if np.abs(plan.sample([at]).position[0] - q).max() > ON_PATH:
        return float('nan')
    return float(track.stamp[fastest]) - at


def off_path(track: Track, plan: Trajectory) -> float:
    """Return the largest distance [rad, m] of the track's positions from the plan's path."""
    if not len(track.stamp):
        return float('nan')
    path = plan.sample(np.arange(0.0, plan.duration, STEP))
    largest = 0.0
    for q in track.position:
        nearest = int(np.argmin(np.abs(path.position - q).max(axis=1)))
        d, v = q - path.position[nearest], path.velocity[nearest]
        d -= v * float(d @ v) / max(float(v @ v), 1e-12)  # the way on to the nearest point
        largest = max(largest, float(np.abs(d).max()))
    return largest


def faithful(reference: Track, plan: Trajectory) -> tuple[float, float]:
    """Return the largest distances of the reference from the plan: rad (m), rad/s (m/s).

    In the whole of a plan of one period; NaN where the motion is another.
    """
    begun = begin_of(reference, plan)
    if not np.isfinite(begun):
        return float('nan'), float('nan')
    during = (reference.stamp > begun) & (reference.stamp < begun + plan.duration)
    motion = plan.sample(reference.stamp[during] - begun)
    return (float(np.abs(motion.position - reference.position[during]).max(initial=0.0)),
            float(np.abs(motion.velocity - reference.velocity[during]).max(initial=0.0)))
