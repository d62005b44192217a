"""An arm whose torque ripples with its motors' angle and whose friction warms up, of known size.

Written apart from the package: links by Pinocchio, gears as springs between a motor and the link
whose encoder is read, late; the heat of friction flows into each joint and out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench.timing import pinocchio_model

#: clock of the recordings [s]: rows come at multiples of it, five or six apart
TICK = 0.002
#: a day in 2001 [s since 1970]
DAY = 1e9
WIDTH = 0.02  # rad/s, within which dry friction turns


@dataclass(frozen=True)
class Joint:
    """One joint of the arm.

    ``viscous`` [N m s/rad] and ``dry`` [N m] friction when cold, ``rotor`` [kg m^2]. ``waves`` per
    turn of the joint and their sizes [N m]; ``stiffness`` [N m/rad] of the gear. Warm, at the
    ``power`` [W] of friction, viscous and dry friction have fallen by the shares ``falls``;
    ``seconds`` is the time constant. ``noise`` [N m] of the torque.
    """

    viscous: float
    dry: float
    rotor: float
    noise: float
    waves: tuple[tuple[float, float], ...] = ()
    stiffness: float = np.inf
    falls: tuple[float, float] = (0.0, 0.0)
    power: float = 1.0
    seconds: float = 40.0


@dataclass(frozen=True, eq=False)
class Truth:
    """A recording and the shares ``scales`` (N, n, 2) of viscous and dry friction when cold."""

    log: RawLog
    scales: FloatArray


@dataclass(frozen=True)
class WarmingArm:
    """The planar arm of three joints; positions are ``late`` [s]."""

    joints: tuple[Joint, ...]
    late: float = 4e-3
    robot: RobotModel = field(default_factory=lambda: load_robot('planar_3r'))

    def recordings(
        self, rng: np.random.Generator, number: int = 3, seconds: float = 60.0,
        pause: float = 90.0,
    ) -> list[Truth]:
        """Return recordings of various motions, the first one cold, ``pause`` [s] apart."""
        warmth = np.zeros(len(self.joints))
        found = []
        for i in range(number):
            found.append(self._recording(rng, i * (seconds + pause), seconds, warmth))
            warmth *= [np.exp(-pause / joint.seconds) for joint in self.joints]
        return found

    def _recording(
        self, rng: np.random.Generator, begin: float, seconds: float, warmth: FloatArray
    ) -> Truth:
        """Return a recording; ``warmth`` (n,) is carried on."""
        limits = motion_limits(self.robot).scaled(0.5)
        trajectory = random_fourier(limits, FourierOptions(seconds, 12), rng)
        time = TICK * np.cumsum(rng.integers(5, 7, round(seconds / (5.5 * TICK))))
        motion = trajectory.sample(time)
        q, qd, qdd = motion.position, motion.velocity, motion.acceleration
        model, data = pinocchio_model(self.robot)
        effort = np.array([pin.rnea(model, data, *state)
                           for state in zip(q, qd, qdd, strict=True)])
        scales = np.ones((len(time), len(self.joints), 2))
        for j, joint in enumerate(self.joints):
            warm = heated(joint, time, qd[:, j], warmth[j])
            warmth[j] = warm[-1]
            scales[:, j] -= np.outer(warm, joint.falls)
            viscous, dry = scales[:, j].T
            effort[:, j] += joint.rotor * qdd[:, j] + viscous * joint.viscous * qd[:, j] \
                + dry * joint.dry * np.clip(qd[:, j] / WIDTH, -1.0, 1.0)
            motor = q[:, j] + effort[:, j] / joint.stiffness
            for k, (order, size) in enumerate(joint.waves):
                effort[:, j] += size * np.cos(order * motor + 0.7 * k)
            effort[:, j] += joint.noise * rng.standard_normal(len(time))
        shown = trajectory.sample(np.maximum(time - self.late, 0.0)).position
        log = RawLog(f'at {begin:g} s', self.robot.joints, DAY + begin + time, shown,
                     effort=effort, epoch=0.0)
        return Truth(log, scales)


def heated(joint: Joint, time: FloatArray, velocity: FloatArray, begin: float) -> FloatArray:
    """Return the warmth (N,) of a joint that moves at ``velocity`` (N,) [rad/s] from ``begin``."""
    warm, now = np.empty(len(time)), begin
    steps = np.diff(time, prepend=0.0)
    for i, (step, speed) in enumerate(zip(steps.tolist(), np.abs(velocity).tolist())):
        viscous, dry = (1.0 - fall * now for fall in joint.falls)
        heat = viscous * joint.viscous * speed**2 + dry * joint.dry * speed * min(
            speed / WIDTH, 1.0)
        now += step / joint.seconds * (heat / joint.power - now)
        warm[i] = now
    return warm
