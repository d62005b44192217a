"""Recordings of an arm whose link encoders are late, with gears that bend, of known truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sine_motion import Sines

from robot_dynid import RawLog, load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.types import FloatArray

ARM = load_robot('planar_3r')
RATE = 500.0


@dataclass(frozen=True)
class Gear:
    """The same for all joints: ``stiffness``, ``damping``, ``late`` [s]; others beyond these.

    ``slack`` [rad] is the half width of a Dahl loop in the torque, which is not the law of the
    fit; ``waves`` [rad] of kinematic error come ``order`` times per turn; ``noise`` [rad].
    """

    stiffness: float = 60_000.0
    damping: float = 150.0
    late: float = 2e-3
    loop: float = 0.0
    slack: float = 0.0
    eccentric: float = 0.0
    waves: float = 0.0
    order: float = 200.0
    noise: float = 2e-6


def recorded(gear: Gear, seed: int, seconds: float = 20.0, gravity: bool = True) -> RawLog:
    """Return a recording of the arm with this gear at every joint; efforts have no friction."""
    robot = ARM if gravity else ARM.with_gravity(np.zeros(3))
    rng = np.random.default_rng(seed)
    path = Sines(robot, seconds)
    path.amplitude = rng.normal(size=path.amplitude.shape) * np.abs(path.amplitude)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    now, then = path.sample(time), path.sample(np.maximum(time - gear.late, 0.0))
    torque = rigid_body.inverse_dynamics(
        robot, now.position, now.velocity, now.acceleration, robot.nominal)
    bent = _bent(gear, torque) + gear.loop * np.tanh(now.velocity / 1e-3) \
        + gear.eccentric * np.sin(now.position + 0.4)
    bent += _dahl(torque, gear.slack) + gear.waves * np.sin(gear.order * now.position)
    motor = now.position + bent + gear.noise * rng.normal(size=bent.shape)
    return RawLog(f'run{seed}.csv', robot.joints, time, then.position,
                  effort=torque + 1e-3 * rng.normal(size=torque.shape), motor_position=motor)


def _bent(gear: Gear, torque: FloatArray) -> FloatArray:
    """Return the deflection (N, n) of springs and dampers under a torque: D x' + K x = T."""
    bent = np.empty_like(torque)
    bent[0] = torque[0] / gear.stiffness
    fade = np.exp(-gear.stiffness / gear.damping / RATE) if gear.damping else 0.0
    for k in range(1, len(torque)):
        # exact for a torque that is linear between samples
        target = torque[k] / gear.stiffness
        slope = (torque[k] - torque[k - 1]) * RATE * gear.damping / gear.stiffness**2
        bent[k] = target - slope + fade * (bent[k - 1] - torque[k - 1] / gear.stiffness + slope)
    return bent


def _dahl(torque: FloatArray, width: float) -> FloatArray:
    """Return a Dahl loop (N, n) of half ``width``, which turns over with a tenth of the torque."""
    state = np.zeros_like(torque)
    length = 0.1 * np.ptp(torque, axis=0)
    for k in range(1, len(torque)):
        step = (torque[k] - torque[k - 1]) / length
        state[k] = state[k - 1] + step - np.abs(step) * state[k - 1]
    return width * np.clip(state, -1.0, 1.0)


def stiff(gear: Gear) -> Gear:
    """Return the gear without deflection by torque."""
    return replace(gear, stiffness=1e12, damping=0.0)
