"""Elastic gears with kinematic error and hysteresis.

Between the motor at theta (motor angle over gear ratio) and the link at q a gear transmits

    T = K u + D u' + s + sum_k h_k z_k(u),    u = theta + e(theta) - q,

where e = a sin(w theta) + b cos(w theta) is its kinematic error and z_k, between -1 and 1, are
states of hysteresis driven by u: stop operators or Dahl's. By the balance of power the motor
bears (1 + de/dtheta) T. States need an ordered motion; single states omit them.

Sources: Spong, ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319; Taghirad and Belanger, ASME J.
Dyn. Syst. Meas. Control 1998, 120, 463; Al-Bender, Lampaert, Swevers 2005; Dahl 1968.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import ModelError, UsageError
from robot_dynid.kernels.gears import (
    AMPLITUDE,
    GEAR_COLUMNS,
    OWNER,
    STATE_COLUMNS,
    bent_along,
    hysteresis_along,
)
from robot_dynid.types import FloatArray

#: most Newton steps of the motor position, and the relative residual at which they end
MOTOR_ROUNDS, MOTOR_RESIDUAL = 30, 1e-15


def _without_waves() -> FloatArray:
    return np.zeros((1, 3))


def _without_states() -> FloatArray:
    return np.zeros((0, STATE_COLUMNS))


@dataclass(frozen=True, eq=False)
class Springs:
    """Springs with dampers between coordinates.

    ``axes`` (e, coordinates): the stretch of each is axes @ position; ``stiffness`` (e,) N m/rad,
    ``damping`` (e,) N m s/rad, ``offset`` (e,) N m at no stretch.
    """

    axes: FloatArray
    stiffness: FloatArray
    damping: FloatArray
    offset: FloatArray


@dataclass(frozen=True, eq=False)
class Gears:
    """Motors and gears of e elastic joints, everything on the joint side.

    ``joints`` (e,) their indices; the others (e,): ``inertia`` J of the rotors kg m^2,
    ``stiffness`` K N m/rad, ``damping`` D N m s/rad, ``offset`` s N m, which is K times the offset
    between the encoders. ``waves`` (e, 3), or one row for all, hold w rad/rad and the amplitudes
    a, b rad of the kinematic error; ``states`` (k, 4) of hysteresis: index of the gear, kind of
    friction term (STOP or DAHL), length rad and amplitude h N m.
    """

    joints: tuple[int, ...]
    inertia: FloatArray
    stiffness: FloatArray
    damping: FloatArray
    offset: FloatArray
    waves: FloatArray = field(default_factory=_without_waves)
    states: FloatArray = field(default_factory=_without_states)

    def require_possible(self, names: tuple[str, ...]) -> None:
        """Raise ModelError for an impossible gear, with the joint's name from ``names`` (n,)."""
        for name in ('inertia', 'stiffness', 'damping', 'offset'):
            values = getattr(self, name)
            if np.shape(values) != (len(self.joints),):
                raise UsageError(f'{name} of {len(self.joints)} elastic joints has shape '
                                 f'{np.shape(values)}')
            above = name in ('inertia', 'stiffness')
            for joint, value in zip(self.joints, values, strict=True):
                if not np.isfinite(value) or (above and not value > 0.0):
                    raise ModelError(
                        f'elastic joint {names[joint]}: {name} is {value:g}; it must be '
                        f'{"above zero" if above else "finite"}: identify from a motion that '
                        'excites it, with method feasible, or make the joint rigid')
        rate, *sizes = np.broadcast_to(self.waves, (len(self.joints), 3)).T
        for joint, slope in zip(self.joints, rate * np.hypot(*sizes), strict=True):
            if not slope < 1.0:
                raise ModelError(
                    f'elastic joint {names[joint]}: its kinematic error would reverse the motion '
                    f'of the link (slope {slope:g}, must be below 1): check gear_ratios')

    @property
    def linear(self) -> Gears:
        """The gears without kinematic error and hysteresis."""
        return Gears(self.joints, self.inertia, self.stiffness, self.damping, self.offset)

    @property
    def wavy(self) -> NDArray[np.bool_]:
        """A mask (e,) of the gears with kinematic error."""
        rate, sine, cosine = np.broadcast_to(self.waves, (len(self.joints), 3)).T
        return np.asarray((rate != 0.0) & ((sine != 0.0) | (cosine != 0.0)))

    @property
    def amplitudes(self) -> FloatArray:
        """Sums (e,) [N m] of the hysteresis amplitudes."""
        owner = self.states[:, OWNER] == np.arange(len(self.joints))[:, None]
        return np.asarray(owner @ self.states[:, AMPLITUDE], dtype=np.float64)

    @property
    def hysteretic(self) -> NDArray[np.bool_]:
        """A mask (e,) of the gears with hysteresis."""
        gears = self.states[self.states[:, AMPLITUDE] != 0.0, OWNER].astype(np.int64)
        return np.isin(np.arange(len(self.joints)), gears)

    def error(self, motor: FloatArray) -> FloatArray:
        """Return the kinematic error [rad], its slope and curvature (3, K, e) at motors (K, e)."""
        rate, sine, cosine = self.waves.T
        s, c = np.sin(rate * motor), np.cos(rate * motor)
        error = sine * s + cosine * c
        return np.array([error, rate * (sine * c - cosine * s), -rate**2 * error])

    def deflection(self, motor: FloatArray, link: FloatArray) -> FloatArray:
        """Return the deflection u [rad] and its rate (2, K, e); ``motor`` and ``link`` are (2, K,
        e).
        """
        error, slope, _ = self.error(motor[0])
        return np.array([motor[0] + error - link[0], (1.0 + slope) * motor[1] - link[1]])

    def motor(self, output: FloatArray) -> FloatArray:
        """Return the motor motion of gears whose ``output`` is theta + e(theta) and its rates.

        ``output`` and motors (3, ..., e) are positions [rad], velocities and accelerations, or
        only the first two (2, ..., e). Newton's method; the slope of the error is below one.
        """
        motion = output.copy()
        for _ in range(MOTOR_ROUNDS):
            error, slope, _ = self.error(motion[0])
            off = motion[0] + error - output[0]
            motion[0] -= off / (1.0 + slope)
            if not np.any(np.abs(off) > MOTOR_RESIDUAL * (1.0 + np.abs(output[0]))):
                break
        _, slope, curve = self.error(motion[0])
        motion[1] /= 1.0 + slope
        if len(output) > 2:
            motion[2] = (output[2] - curve * motion[1]**2) / (1.0 + slope)
        return motion

    def torque(self, bent: FloatArray) -> FloatArray:
        """Return the torque (K, e) N m without hysteresis at a `deflection` (2, K, e)."""
        return np.asarray(self.stiffness * bent[0] + self.damping * bent[1] + self.offset)

    def springs(self, n: int) -> Springs:
        """Return springs between the coordinates of a robot of n joints, without error and
        hysteresis.
        """
        axes = np.eye(n + len(self.joints))[n:]
        axes[np.arange(len(self.joints)), list(self.joints)] = -1.0
        return Springs(axes, self.stiffness, self.damping, self.offset)

    def table(self, n: int) -> FloatArray:
        """Return the table (e, 8) of the gears of a robot of n joints for the kernels."""
        e = len(self.joints)
        table = np.column_stack([
            n + np.arange(e), self.joints, self.stiffness, self.damping, self.offset,
            np.broadcast_to(self.waves, (e, 3))])
        return np.require(table.reshape(-1, GEAR_COLUMNS), np.float64, ['C'])

    def bent(self, torque: FloatArray, step: float) -> FloatArray:
        """Return the deflection and its rate (2, N, e) at which gears transmit ``torque`` (N, e).

        Samples are ``step`` [s] apart, starting with relaxed gears at rest; hysteresis is
        included.
        """
        deflection = np.empty((2, *torque.shape))
        bent_along(self.table(0), self.states, np.ascontiguousarray(torque), step, deflection)
        return deflection

    def motors(self, n: int) -> tuple[int, ...]:
        """Return the coordinate (n,) of each joint's motor: the joint itself if rigid."""
        return tuple(n + self.joints.index(j) if j in self.joints else j for j in range(n))


class GearStates:
    """The states of hysteresis of ``gears`` along ordered samples.

    A motion begins relaxed. Its past is unknown, so two more motions begin at either end of the
    loop: the true torque lies between them. Noisy deflections would wear the states down, because
    every reversal makes them forget; a reversal therefore counts only if it exceeds the noise.
    """

    def __init__(self, gears: Gears) -> None:
        self._states, count = gears.states, len(gears.states)
        self._begins = [np.full(count, z) for z in (0.0, -1.0, 1.0)]
        still = np.zeros(len(gears.joints))
        self._previous = [(still + np.nan, still.copy(), z.copy()) for z in self._begins]

    def along(self, bent: FloatArray, begins: NDArray[np.bool_],
              noise: FloatArray | None = None) -> FloatArray:
        """Return torque, torque of a reversal smaller than noise, and half its range [N m], (3, N,
        e).

        At deflections ``bent`` (N, e), NaN where unknown; ``begins`` (N,) marks the first samples
        of motions; ``noise`` (N, e) [rad], by default zero, of the deflection.
        """
        threshold = np.zeros(bent.shape) if noise is None else np.ascontiguousarray(noise)
        torque = np.zeros((3, 2, *bent.shape))
        for start, previous, out in zip(self._begins, self._previous, torque, strict=True):
            hysteresis_along(self._states, np.ascontiguousarray(bent), threshold, begins, start,
                             previous, out)
        return np.array([*torque[0], 0.5 * (torque[2, 0] - torque[1, 0])])
