"""Momentum observer with the deflection of gears, beside the one of the physics alone.

Elastic joints: what drives the link is the torque of its gear, from both encoders, and the motor
has an equation of its own. So neither friction nor rotor of the motor are between the sensor and
a contact. Source: De Luca, Schaeffer, Haddadin, Hirzinger, IROS 2006, 1623-1630, section IV.
Residual models: what they expect is taken off the effort; where they are less sure than in their
training thresholds rise, up to those without them.

Where motors are not known, and until the observer has settled after that, the physics counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.elastic import all_rotors
from robot_dynid.dynamics.gears import GearStates
from robot_dynid.dynamics.rotors import Links
from robot_dynid.effects.deflection import feature_count, instant_features, without_gears
from robot_dynid.effects.gears import DAMPING, OFFSET, STIFFNESS, GearEffects
from robot_dynid.effects.slow_changes import SlowTables
from robot_dynid.friction import AxisFriction
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import MotorEncoder
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.motor_states import used_joints
from robot_dynid.monitoring.observer import (
    FRICTION,
    PREDICTED,
    RESIDUAL,
    RESULT_ROWS,
    ContactLevels,
    Follower,
    Observer,
    friction_of,
)
from robot_dynid.monitoring.sight import OBSERVER_CONSTANTS
from robot_dynid.robot.model import REVOLUTE, Drive, Limits, RobotModel
from robot_dynid.signals.filters import corner_of
from robot_dynid.types import FloatArray, frozen

#: rows of a result behind those of `Follower`: whether the deflection is in it, the deviation of
#: what residual models expect, torque of the gear and its deviation [N m]; NaN where there is none
DEFLECTED, SPREAD, GEAR, GEAR_SPREAD = range(RESULT_ROWS, RESULT_ROWS + 4)
DEFLECTED_ROWS = RESULT_ROWS + 4
#: deviations by which deflections differ by their noise at most, one up and the other down
NOISE_DEVIATIONS = 6.0
#: deviations beyond the usual one by which thresholds of elastic joints rise
RAISED = 2.0


@dataclass(frozen=True, eq=False)
class Levels:
    """Contact levels of a model; those of ``contact`` hold with the deflection of its gears.

    There ``variance`` (n,) [(N m)^2] is usual.

    Where residual models or gear torques are less sure, levels rise, but not above those
    ``without`` the deflection.
    """

    contact: ContactLevels
    without: ContactLevels
    variance: FloatArray

    @classmethod
    def infinite(cls, n: int) -> Levels:
        """Return levels of ``n`` joints that no torque reaches."""
        none = ContactLevels.infinite(n)
        return cls(none, none, np.zeros(n))

    @property
    def rise(self) -> tuple[FloatArray, FloatArray]:
        """By how much levels in motion, and what friction may hold, may rise, (n,) [N m] each."""
        return (_rise(self.contact.moving, self.without.moving),
                _rise(self.contact.holding, self.without.holding))


class DeflectedObserver:
    """The observer of a model that `follows_motors`; see the module.

    ``joints`` (n,) are those whose deflection it uses. Raises UsageError for a bad gain.
    """

    def __init__(self, model: IdentifiedModel, gain: float,
                 levels: Levels | None = None) -> None:
        levels = levels or Levels.infinite(model.robot.n)
        part: GearSide | LearnedSide = (GearSide if model.elastic_joints else LearnedSide)(
            model, gain, levels)
        self.joints = used_joints(model)
        self._physics = Observer(model, gain, levels.without)
        self._part, self._settling = part, OBSERVER_CONSTANTS / gain
        self._elapsed = np.zeros(model.robot.n)

    def __call__(self, states: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the results (N, 14, n) of ``states`` (N, 5, n), ``steps`` (N,) apart.

        As `Observer`; behind the effort stand position and velocity of the motors, and as a sixth
        row, where there is one, what of the effort is known external torque.
        """
        motion, motors = states[:, :3], states[:, 3:].copy()
        known = np.isfinite(motors[:, :2]).all(axis=1) & self.joints
        for row in range(2):
            motors[:, row][~known] = np.nan
        physics = self._physics(motion, steps)
        results = self._part(motion, motors, steps, physics)
        used = self._settled(known, steps)
        results[:, :RESULT_ROWS] = np.where(
            used[:, None], results[:, :RESULT_ROWS], physics)
        results[:, DEFLECTED] = used
        return results

    def along(self, motion: MonitorInput) -> FloatArray:
        """Return the results (N, 14, n) of a recording."""
        motors = motion.motors
        if motors is None:
            motors = np.full((len(motion.time), 2, motion.position.shape[1]), np.nan)
        states = np.stack([motion.position, motion.velocity, motion.effort], axis=1)
        external = [] if motion.external is None else [motion.external[:, None]]
        return self(np.concatenate([states, motors, *external], axis=1), motion.steps)

    def _settled(self, known: NDArray[np.bool_], steps: FloatArray) -> NDArray[np.bool_]:
        """Return in which rows (N, n) motors have been ``known`` for long enough."""
        used = np.empty_like(known)
        for k, step in enumerate(steps.tolist()):
            self._elapsed = np.where(known[k], self._elapsed + step, 0.0) if step > 0.0 else (
                np.zeros(known.shape[1]))
            used[k] = self._elapsed >= self._settling
        return used


class GearSide:
    """Links driven by the torque of their gears, and motors beside them."""

    def __init__(self, model: IdentifiedModel, gain: float, levels: Levels) -> None:
        n, gears = model.robot.n, model.gears
        self._n, self._own, self._gears = n, list(gears.joints), gears
        self._states = GearStates(gears)
        self._levels = levels
        self._contact = _on_links(levels.contact, len(gears.joints))
        self._encoders, self._covariance = _gear_covariance(model)
        links, e = model.links, len(gears.joints)
        friction = friction_of(model).on(gears.motors(n), n + e)
        if friction.needs_load:
            friction = _with_motors(friction, e)
        self._follow = Follower(
            Links(_beside(links.robot, e), np.pad(links.parameters, ((0, e), (0, 0))),
                  all_rotors(links.rotors, gears)),
            friction, self._contact, (gain, corner_of(model.preprocessing.cutoff)),
            SlowTables.of((), gain, np.zeros(0)))

    def __call__(self, motion: FloatArray, motors: FloatArray, steps: FloatArray,
                 physics: FloatArray) -> FloatArray:
        """Return the results (N, 14, n); ``motion`` (N, 3, n), ``motors`` (N, 2, n) or (N, 3, n).

        Where motors are not known they move with their joints, and the gear passes the effort on.
        Known external torque, the third row, acts on the links.
        """
        n, own = self._n, self._own
        bent = self._gears.deflection(*(rows[:, :2, own].transpose(1, 0, 2)
                                        for rows in (motors, motion)))
        single, rate, _ = self._encoders
        # the deflection was taken a step before, and goes on with its rate
        noise = NOISE_DEVIATIONS * np.hypot(single, np.maximum(steps, 0.0)[:, None] * rate)
        loop, doubt, width = self._states.along(bent[0], steps <= 0.0, noise)
        torque = self._gears.torque(bent) + loop
        known = np.isfinite(torque)
        external = motors[:, 2, own] if motors.shape[1] > 2 else 0.0
        passed = np.where(known, torque + external, motion[:, 2, own])
        states = np.concatenate([motion, np.where(
            known[:, None], np.stack([motors[:, 0, own], motors[:, 1, own], torque], axis=1),
            motion[:, :, own])], axis=2)
        slope = self._gears.error(motors[:, 0, own])[1]
        states[:, 2, n:] = motion[:, 2, own] - passed - np.where(known, slope * torque, 0.0)
        states[:, 2, own] = passed
        spread = self._spread(motion[:, :, own], motors[:, :, own], (
            bent, loop, steps))
        # torque is anywhere in the loop, and a way back of less than noise is one or not
        spread = np.hypot(spread, np.hypot(width, doubt) / np.sqrt(3.0))
        found = self._follow(states, steps, self._raised(spread))
        results = np.full((len(steps), DEFLECTED_ROWS, n), np.nan)
        results[:, :RESULT_ROWS] = found[:, :, :n]
        for row in (RESIDUAL, FRICTION):
            results[:, row, own] += found[:, row, n:]
        results[:, PREDICTED] = physics[:, PREDICTED] + physics[:, RESIDUAL] - results[:, RESIDUAL]
        results[:, GEAR, own] = torque
        results[:, GEAR_SPREAD, own] = spread
        return results

    def _raised(self, spread: FloatArray) -> FloatArray:
        """Return the levels (N, 2, n + e), higher where gears are less sure than usual."""
        own, (moving, holding) = self._own, self._levels.rise
        excess = np.minimum(RAISED * (spread - np.sqrt(self._levels.variance[own])),
                            (moving + holding)[own])
        found = np.tile(np.stack([self._contact.moving, self._contact.holding]),
                        (len(spread), 1, 1))
        found[:, 0, own] += np.where(excess > 0.0, excess, 0.0)
        return found

    def _spread(self, link: FloatArray, motor: FloatArray, along: tuple[FloatArray, ...]
                ) -> FloatArray:
        """Return the deviation (N, e) [N m] of the torque of gears, its past left out.

        ``link`` and ``motor`` (N, 2 or 3, e); ``along``: deflection and rate (2, N, e), torque of
        hysteresis (N, e), steps (N,).
        """
        bent, loop, steps = along
        rate, amplitude = self._gears.waves[:, 0], self._gears.amplitudes
        share = np.divide(loop, amplitude, out=np.zeros_like(loop), where=amplitude != 0.0)
        of = np.stack([motor[:, 0] - link[:, 0], bent[1], np.ones_like(loop),
                       np.sin(rate * motor[:, 0]), np.cos(rate * motor[:, 0]), share], axis=1)
        variance = np.einsum('kae,eab,kbe->ke', of, self._covariance, of)
        single, noise, offset = self._encoders
        lever = self._gears.stiffness * np.maximum(steps, 0.0)[:, None] + self._gears.damping
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) + self._gears.stiffness**2 * (
            single**2 + offset**2) + (lever * noise)**2))


class LearnedSide:
    """Links driven by the effort less the part that residual models expect of it."""

    def __init__(self, model: IdentifiedModel, gain: float, levels: Levels) -> None:
        robot = model.robot
        self._robot, self._cutoff, self._levels = robot, model.preprocessing.cutoff, levels
        self._models = {j: one for j, one in enumerate(
            without_gears(model.parts_of('residual'))) if one is not None}
        self._corner = corner_of(self._cutoff)
        self._past = np.full((2, robot.n, feature_count(robot)), np.nan)
        self._observer = Observer(model, gain, levels.contact)

    def __call__(self, motion: FloatArray, motors: FloatArray, steps: FloatArray,
                 physics: FloatArray) -> FloatArray:
        """Return the results (N, 14, n); ``motion`` (N, 3, n), ``motors`` (N, 2, n).

        ``physics`` (N, 10, n) are those of the physics alone.
        """
        features = self._low_passed(instant_features(self._robot, (
            motion[:, 0], motion[:, 1], motors[:, 0], motors[:, 1]), self._cutoff), steps)
        count, n = len(steps), motion.shape[2]
        mean = np.zeros((count, n))
        variance, blank = np.full((count, n), np.nan), np.full(n, np.nan)
        for j, model in self._models.items():
            known = np.isfinite(features[:, j]).all(axis=1)
            blank[j] = model.blank
            variance[~known, j] = model.blank
            if known.any():
                mean[known, j], variance[known, j] = model.moments(features[known, j])
        corrected = motion.copy()
        corrected[:, 2] -= mean
        results = np.full((count, DEFLECTED_ROWS, n), np.nan)
        results[:, :RESULT_ROWS] = self._observer(
            corrected, steps, self._raised(variance, blank))
        # the features are filtered: what is learned from them goes with the filtered effort
        results[:, PREDICTED] = physics[:, PREDICTED] + mean
        results[:, RESIDUAL] = physics[:, RESIDUAL] - mean
        results[:, SPREAD] = np.sqrt(variance)
        return results

    def _low_passed(self, features: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the features (N, n, k) behind the low-pass of the effort, in place."""
        first, second = self._past
        shares = -np.expm1(-self._corner * steps)
        for k in range(len(steps)):
            now = features[k]
            begins = np.isnan(first) | np.isnan(now) if steps[k] > 0.0 else np.full(
                now.shape, True)
            first = np.where(begins, now, first + shares[k] * (now - first))
            second = np.where(begins, now, second + shares[k] * (first - second))
            features[k] = second
        self._past = np.stack([first, second])
        return features

    def _raised(self, variance: FloatArray, blank: FloatArray) -> FloatArray:
        """Return the levels (N, 2, n), higher where the models are less sure than usual."""
        usual, base = self._levels.variance, self._levels.contact
        with np.errstate(divide='ignore', invalid='ignore'):
            share = np.sqrt(np.clip((variance - usual) / (blank - usual), 0.0, 1.0))
        share = np.where(np.isfinite(share), share, 0.0)
        return np.stack([low + share * rise for low, rise in zip(
            (base.moving, base.holding), self._levels.rise)], axis=1)


def _rise(low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(invalid='ignore'):  # levels may be infinite
        return np.where(low < high, high - low, 0.0)


def _beside(robot: RobotModel, count: int) -> RobotModel:
    """Return the robot with so many massless bodies on its base, one for each motor."""
    return replace(
        robot, joints=(*robot.joints, *(f'motor {k}' for k in range(count))),
        types=np.append(robot.types, np.full(count, REVOLUTE, robot.types.dtype)),
        parents=np.append(robot.parents, np.full(count, -1, robot.parents.dtype)),
        rotations=frozen(np.concatenate([robot.rotations, [np.eye(3)] * count])),
        translations=frozen(np.concatenate([robot.translations, np.zeros((count, 3))])),
        axes=frozen(np.concatenate([robot.axes, [[0.0, 0.0, 1.0]] * count])),
        bodies=(*robot.bodies, *(f'motor {k}' for k in range(count))),
        nominal=frozen(np.concatenate([robot.nominal, np.zeros((count, 10))])),
        limits=Limits.unknown(robot.n + count), drive=Drive(), links=())


def _with_motors(friction: AxisFriction, count: int) -> AxisFriction:
    """Return friction whose load is that of the links, with so many motors beside them."""
    return replace(friction, transmission=np.pad(friction.transmission, ((0, 0), (0, count))),
                   links=np.pad(friction.links, ((0, count), (0, 0))))


def _on_links(contact: ContactLevels, motors: int) -> ContactLevels:
    """Return the levels of the links, and infinite ones of the motors: nobody touches them."""
    still = np.zeros(motors)
    return replace(contact, moving=np.append(contact.moving, np.full(motors, np.inf)),
                   holding=np.append(contact.holding, still),
                   speed=np.append(contact.speed, still))


def _gear_covariance(model: IdentifiedModel) -> tuple[FloatArray, FloatArray]:
    """Return noise, rate noise and offset (3, e) of the encoders, covariance of K, D, s, .. .

    The covariance (e, 6, 6) is that of K, D, s, sine and cosine of the waves times stiffness, and
    the sum of the amplitudes of hysteresis; infinite where a parameter is not known.
    """
    known = {one.joint: one for one in model.record.motor_encoders}
    encoders = [known.get(joint, MotorEncoder(joint)) for joint in model.elastic_joints]
    covariances = []
    gears = model.torque_model.gears
    effects = model.structure.gears or (GearEffects(),) * len(gears)
    for gear, own in zip(gears, effects, strict=True):
        names = (STIFFNESS, DAMPING, OFFSET, *own.waves[:2], *own.stops)
        rows = [0, 1, 2, *(3, 4)[:len(own.waves)], *(5,) * len(own.stops)]
        places = [model.names.index(gear.parameter(p)) for p in names]
        into = np.zeros((6, len(places)))
        into[rows, range(len(places))] = 1.0
        if not np.isfinite(model.std[places]).all():
            # by s, whose column is one: zero times infinity would be no number
            covariances.append(np.diag([0.0, 0.0, np.inf, 0.0, 0.0, 0.0]))
            continue
        factor = np.diag(model.std[places]) if model.correlation_factor is None else (
            model.covariance_factor[:, places])
        covariances.append(into @ (factor.T @ factor) @ into.T)
    return (np.array([[one.noise, one.rate_noise, one.offset_std] for one in encoders]).T,
            np.array(covariances))
