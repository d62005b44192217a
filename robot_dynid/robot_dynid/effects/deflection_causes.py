"""Causes of the angle between motor and link encoder of a joint.

With T the torque that the gear transmits, the motor at theta and the link at q, both on the joint
side, the measured deflection is

    theta - q = T/K - (D/K^2) dT/dt + t dq/dt + h y + g z + a sin(q - m) + b (1 - cos(q - m)) + c:

stiffness K, damping D, delay t of the link encoder behind that of the motor, hysteresis with the
states y and z, which turn over with the joint and with the torque, the kinematic error of one wave
per turn (an encoder that is not centred, a gear ratio that is rounded) and the zero.
The noise is in the deflection, not in the torque, so the deflection is what is fitted: a fit of
the torque instead would make gears too soft.

A delay multiplies the velocity, damping the rate of the torque: in slow motion about one pose, and
in a single sine, the two are proportional; weight and inertia together, or several frequencies,
separate them. Hysteresis needs reversals, the stiffness a torque that is no function of q alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_dynid.friction.law import AxisMotion, columns_of
from robot_dynid.friction.terms import STOP, Parameter, Term
from robot_dynid.types import FloatArray, Samples

#: travel and change of torque in which hysteresis turns over, as shares of their ranges
TURNS_OVER, TURNS_OVER_TORQUE = 0.001, 0.1


@dataclass(frozen=True, eq=False)
class Deflected:
    """A joint of one recording: ``samples``, its number, ``motor`` position (N,) on its side.

    ``torque`` (N,) [N m] passes through its gear.
    ``late`` [s] is the delay of the link encoder so far, about which the causes are linear;
    ``middle`` [rad] and ``travel`` [rad] are those of the joint in all recordings.
    """

    samples: Samples
    joint: int
    motor: FloatArray
    torque: FloatArray
    late: float
    middle: float
    travel: float

    @property
    def measured(self) -> FloatArray:
        """Measured deflection (N,) [rad], less the part of second order in the delay."""
        return np.asarray(self.motor - self.position
                          + 0.5 * self.late**2 * self.samples.acceleration[:, self.joint])

    @property
    def position(self) -> FloatArray:
        """Measured position (N,) of the link."""
        return np.asarray(self.samples.position[:, self.joint])

    def rate(self, signal: FloatArray) -> FloatArray:
        """Return the derivative (..., N) of a signal along the segments."""
        rate = np.zeros_like(signal)
        for rows in self.samples.segments:
            time = self.samples.time[rows]
            if len(time) > 1:
                rate[..., rows] = np.gradient(signal[..., rows], time, axis=-1)
        return rate

    def at_motor(self, signal: FloatArray) -> FloatArray:
        """Return a ``signal`` (..., N) of the link's motion at the time of the motor encoder."""
        return np.asarray(signal + self.late * self.rate(signal))


class Cause(ABC):
    """One cause of deflection, linear in its coefficients; a cause is a class and a line below."""

    #: symbols of its coefficients
    symbols: tuple[str, ...]

    @abstractmethod
    def columns(self, motion: Deflected) -> FloatArray:
        """Return the deflection (k, N) [rad] of each coefficient at one."""


class Compliance(Cause):
    """Deflection by the torque: coefficient 1/K [rad/(N m)]."""

    symbols = ('1/K',)

    def columns(self, motion: Deflected) -> FloatArray:
        """Return the torque (1, N)."""
        return motion.at_motor(motion.torque)[None]


class Damping(Cause):
    """Delay of the deflection behind the torque: coefficient -D/K^2."""

    symbols = ('-D/K^2',)

    def columns(self, motion: Deflected) -> FloatArray:
        """Return the rate of the torque (1, N)."""
        return motion.rate(motion.torque)[None]


class Delay(Cause):
    """Time [s] by which the link encoder is late."""

    symbols = ('t',)

    def columns(self, motion: Deflected) -> FloatArray:
        """Return the velocity (1, N) of the link at the time of the motor encoder."""
        samples, j = motion.samples, motion.joint
        return (samples.velocity[:, j] + motion.late * samples.acceleration[:, j])[None]


class Hysteresis(Cause):
    """Two loops [rad]: one turns over when the joint reverses, one when its torque does.

    Friction behind the gear makes the first, lost motion and friction in the gear the second.
    """

    symbols = ('h', 'g')

    def columns(self, motion: Deflected) -> FloatArray:
        """Return springs (2, N) that slip, over travel and torque of the joint."""
        torque = motion.at_motor(motion.torque)
        load = TURNS_OVER_TORQUE * float(np.ptp(torque)) or 1.0
        return np.concatenate([_slipping(motion.samples, *one) for one in (
            (motion.position, TURNS_OVER * motion.travel), (torque, load))])


def _slipping(samples: Samples, signal: FloatArray, length: float) -> FloatArray:
    """Return the state (1, N) of a spring that slips after ``length`` of a ``signal`` (N,)."""
    state = Parameter('h', (Term(STOP, length),))
    return columns_of([state], AxisMotion(
        samples.time, signal, np.zeros(len(samples)), samples.starts))


class KinematicError(Cause):
    """One wave per turn of the joint [rad], about the middle of its range."""

    symbols = ('a', 'b')

    def columns(self, motion: Deflected) -> FloatArray:
        """Return sine and one minus cosine (2, N) of the position from the middle."""
        angle = motion.position - motion.middle
        return np.array([np.sin(angle), 1.0 - np.cos(angle)])


#: causes of deflection by the name that the record has for them, apart from the zero
CAUSES: Mapping[str, Cause] = {
    'stiffness': Compliance(), 'damping': Damping(), 'delay': Delay(),
    'hysteresis': Hysteresis(), 'kinematic_error': KinematicError()}
