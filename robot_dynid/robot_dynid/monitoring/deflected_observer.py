"""Momentum observer that uses the measured deflection of gears.

Elastic joints: the link is driven by the torque of its gear, from both encoders, and the motor has
its own equation, so neither friction nor rotor of the motor are between sensor and contact.
Source: De Luca, Schaeffer, Haddadin, Hirzinger, IROS 2006, 1623-1630, section IV. Residual models:
their prediction is subtracted from the effort; thresholds rise where it is less certain than in
training, at most up to those without it.

Without motor states, and until the observer has settled afterwards, the observer without
deflection is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.elastic import all_rotors
from robot_dynid.dynamics.gears import GearStates
from robot_dynid.dynamics.rotors import Links
from robot_dynid.effects.deflection import drop_gears, feature_count, instant_features
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
from robot_dynid.monitoring.watched_joints import OBSERVER_CONSTANTS
from robot_dynid.robot.model import REVOLUTE, Drive, Limits, RobotModel
from robot_dynid.signals.filters import corner_of
from robot_dynid.types import FloatArray, frozen

#: rows of a result after those of `Follower`: 1 if the deflection is used, standard deviation of
#: the residual models, torque of the gear and its standard deviation [N m]; NaN if absent
DEFLECTED, SPREAD, GEAR, GEAR_SPREAD = range(RESULT_ROWS, RESULT_ROWS + 4)
DEFLECTED_ROWS = RESULT_ROWS + 4
#: noise bound of the difference of two deflections, in standard deviations
NOISE_DEVIATIONS = 6.0
#: standard deviations above the usual one by which thresholds of elastic joints rise
RAISED = 2.0


@dataclass(frozen=True, eq=False)
class Levels:
    """Contact levels of a model; those of ``contact`` hold with the deflection of its gears.

    There ``variance`` (n,) [(N m)^2] is usual. Levels rise where residual models or gear torques
    are less certain, at most to those ``without`` the deflection.
    """

    contact: ContactLevels
    without: ContactLevels
    variance: FloatArray

    @classmethod
    def infinite(cls, n: int) -> Levels:
        """Return levels of ``n`` joints that never report contact."""
        none = ContactLevels.infinite(n)
        return cls(none, none, np.zeros(n))

    @property
    def rise(self) -> tuple[FloatArray, FloatArray]:
        """Largest rise (n,) [N m] of the levels in motion, and of those of holding friction."""
        return (_rise(self.contact.moving, self.without.moving),
                _rise(self.contact.holding, self.without.holding))


class DeflectedObserver:
    """Observer of a model that uses motor states; see the module.

    ``joints`` (n,) masks the joints whose deflection is used. Raises UsageError for an invalid
    gain.
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

        As `Observer`; after the effort follow position and velocity of the motors, and optionally
        the known external torque as a sixth row.
        """
        motion, motors = states[:, :3], states[:, 3:].copy()
        available = np.isfinite(motors[:, :2]).all(axis=1) & self.joints
        for row in range(2):
            motors[:, row][~available] = np.nan
        physics = self._physics(motion, steps)
        results = self._part(motion, motors, steps, physics)
        used = self._settled(available, steps)
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

    def _settled(self, available: NDArray[np.bool_], steps: FloatArray) -> NDArray[np.bool_]:
        """Return the rows (N, n) in which motors have been ``available`` for long enough."""
        used = np.empty_like(available)
        for k, step in enumerate(steps.tolist()):
            self._elapsed = np.where(available[k], self._elapsed + step, 0.0) if step > 0.0 else (
                np.zeros(available.shape[1]))
            used[k] = self._elapsed >= self._settling
        return used


class GearSide:
    """Links driven by the torque of their gears, and their motors as extra bodies."""

    def __init__(self, model: IdentifiedModel, gain: float, levels: Levels) -> None:
        n, gears = model.robot.n, model.gears
        self._n, self._elastic, self._gears = n, list(gears.joints), gears
        self._states = GearStates(gears)
        self._levels = levels
        self._contact = _on_links(levels.contact, len(gears.joints))
        self._encoders, self._covariance = _gear_covariance(model)
        links, e = model.links, len(gears.joints)
        friction = friction_of(model).on(gears.motors(n), n + e)
        if friction.needs_load:
            friction = _with_motors(friction, e)
        self._follow = Follower(
            Links(_add_motor_bodies(links.robot, e), np.pad(links.parameters, ((0, e), (0, 0))),
                  all_rotors(links.rotors, gears)),
            friction, self._contact, (gain, corner_of(model.preprocessing.cutoff)),
            SlowTables.of((), gain, np.zeros(0)))

    def __call__(self, motion: FloatArray, motors: FloatArray, steps: FloatArray,
                 physics: FloatArray) -> FloatArray:
        """Return the results (N, 14, n); ``motion`` (N, 3, n), ``motors`` (N, 2, n) or (N, 3, n).

        Motors without states move with their joints, and their gears transmit the effort. Known
        external torque, the third row, acts on the links.
        """
        n, gears = self._n, self._elastic
        bent = self._gears.deflection(*(rows[:, :2, gears].transpose(1, 0, 2)
                                        for rows in (motors, motion)))
        single, rate, _ = self._encoders
        # the deflection is extrapolated by one step with its rate
        noise = NOISE_DEVIATIONS * np.hypot(single, steps[:, None] * rate)
        loop, doubt, width = self._states.along(bent[0], steps <= 0.0, noise)
        torque = self._gears.torque(bent) + loop
        measured = np.isfinite(torque)
        external = motors[:, 2, gears] if motors.shape[1] > 2 else 0.0
        driving = np.where(measured, torque + external, motion[:, 2, gears])
        states = np.concatenate([motion, np.where(
            measured[:, None], np.stack([motors[:, 0, gears], motors[:, 1, gears], torque], 1),
            motion[:, :, gears])], axis=2)
        slope = self._gears.error(motors[:, 0, gears])[1]
        states[:, 2, n:] = motion[:, 2, gears] - driving - np.where(measured, slope * torque, 0.0)
        states[:, 2, gears] = driving
        spread = self._spread(motion[:, :, gears], motors[:, :, gears], (
            bent, loop, steps))
        # torque is anywhere within the hysteresis loop; a reversal smaller than noise is ambiguous
        spread = np.hypot(spread, np.hypot(width, doubt) / np.sqrt(3.0))
        tracked = self._follow(states, steps, self._raised(spread))
        results = np.full((len(steps), DEFLECTED_ROWS, n), np.nan)
        results[:, :RESULT_ROWS] = tracked[:, :, :n]
        for row in (RESIDUAL, FRICTION):
            results[:, row, gears] += tracked[:, row, n:]
        results[:, PREDICTED] = physics[:, PREDICTED] + physics[:, RESIDUAL] - results[:, RESIDUAL]
        results[:, GEAR, gears] = torque
        results[:, GEAR_SPREAD, gears] = spread
        return results

    def _raised(self, spread: FloatArray) -> FloatArray:
        """Return the levels (N, 2, n + e), raised where gear torques are less certain than usual.
        """
        elastic, (moving, holding) = self._elastic, self._levels.rise
        excess = np.minimum(RAISED * (spread - np.sqrt(self._levels.variance[elastic])),
                            (moving + holding)[elastic])
        levels = np.tile(np.stack([self._contact.moving, self._contact.holding]),
                        (len(spread), 1, 1))
        levels[:, 0, elastic] += np.where(excess > 0.0, excess, 0.0)
        return levels

    def _spread(self, link: FloatArray, motor: FloatArray, along: tuple[FloatArray, ...]
                ) -> FloatArray:
        """Return the standard deviation (N, e) [N m] of the gear torque, without its history.

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
        lever = self._gears.stiffness * steps[:, None] + self._gears.damping
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) + self._gears.stiffness**2 * (
            single**2 + offset**2) + (lever * noise)**2))


class LearnedSide:
    """Links driven by the effort minus the prediction of residual models."""

    def __init__(self, model: IdentifiedModel, gain: float, levels: Levels) -> None:
        robot = model.robot
        self._robot, self._cutoff, self._levels = robot, model.preprocessing.cutoff, levels
        self._models = {j: one for j, one in enumerate(
            drop_gears(model.parts_of('residual'))) if one is not None}
        self._corner = corner_of(self._cutoff)
        self._past = np.full((2, robot.n, feature_count(robot)), np.nan)
        self._observer = Observer(model, gain, levels.contact)

    def __call__(self, motion: FloatArray, motors: FloatArray, steps: FloatArray,
                 physics: FloatArray) -> FloatArray:
        """Return the results (N, 14, n); ``motion`` (N, 3, n), ``motors`` (N, 2, n).

        ``physics`` (N, 10, n) are the results of the rigid model alone.
        """
        features = self._low_passed(instant_features(self._robot, (
            motion[:, 0], motion[:, 1], motors[:, 0], motors[:, 1]), self._cutoff), steps)
        count, n = len(steps), motion.shape[2]
        mean = np.zeros((count, n))
        variance, blank = np.full((count, n), np.nan), np.full(n, np.nan)
        for j, model in self._models.items():
            available = np.isfinite(features[:, j]).all(axis=1)
            blank[j] = model.blank
            variance[~available, j] = model.blank
            if available.any():
                mean[available, j], variance[available, j] = model.moments(features[available, j])
        corrected = motion.copy()
        corrected[:, 2] -= mean
        results = np.full((count, DEFLECTED_ROWS, n), np.nan)
        results[:, :RESULT_ROWS] = self._observer(
            corrected, steps, self._raised(variance, blank))
        # features are filtered, so the learned part is subtracted from the filtered effort
        results[:, PREDICTED] = physics[:, PREDICTED] + mean
        results[:, RESIDUAL] = physics[:, RESIDUAL] - mean
        results[:, SPREAD] = np.sqrt(variance)
        return results

    def _low_passed(self, features: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the features (N, n, k) after the low-pass of the effort, in place."""
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
        """Return the levels (N, 2, n), raised where residual models are uncertain."""
        usual, base = self._levels.variance, self._levels.contact
        with np.errstate(divide='ignore', invalid='ignore'):
            share = np.sqrt(np.clip((variance - usual) / (blank - usual), 0.0, 1.0))
        share = np.where(np.isfinite(share), share, 0.0)
        return np.stack([low + share * rise for low, rise in zip(
            (base.moving, base.holding), self._levels.rise)], axis=1)


def _rise(low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(invalid='ignore'):  # levels may be infinite
        return np.where(low < high, high - low, 0.0)


def _add_motor_bodies(robot: RobotModel, count: int) -> RobotModel:
    """Return the robot with ``count`` massless bodies added to its base, one per motor."""
    return replace(
        robot, joints=(*robot.joints, *(f'motor {k}' for k in range(count))),
        types=np.append(robot.types, np.full(count, REVOLUTE, robot.types.dtype)),
        parents=np.append(robot.parents, np.full(count, -1, robot.parents.dtype)),
        rotations=frozen(np.concatenate([robot.rotations, [np.eye(3)] * count])),
        translations=frozen(np.concatenate([robot.translations, np.zeros((count, 3))])),
        axes=frozen(np.concatenate([robot.axes, robot.axes[:count]])),  # any, without mass
        bodies=(*robot.bodies, *(f'motor {k}' for k in range(count))),
        nominal=frozen(np.concatenate([robot.nominal, np.zeros((count, 10))])),
        limits=Limits.unknown(robot.n + count), drive=Drive(), links=())


def _with_motors(friction: AxisFriction, count: int) -> AxisFriction:
    """Return friction whose load is that of the links, with ``count`` motors added."""
    return replace(friction, transmission=np.pad(friction.transmission, ((0, 0), (0, count))),
                   links=np.pad(friction.links, ((0, count), (0, 0))))


def _on_links(contact: ContactLevels, motors: int) -> ContactLevels:
    """Return the levels of the links, and infinite ones for the motors, which nothing touches."""
    still = np.zeros(motors)
    return replace(contact, moving=np.append(contact.moving, np.full(motors, np.inf)),
                   holding=np.append(contact.holding, still),
                   speed=np.append(contact.speed, still))


def _gear_covariance(model: IdentifiedModel) -> tuple[FloatArray, FloatArray]:
    """Return noise, rate noise and offset (3, e) of the encoders and the parameter covariance.

    The covariance (e, 6, 6) is that of K, D, s, sine and cosine of the waves times stiffness, and
    the sum of the hysteresis amplitudes; infinite for parameters that were not estimated.
    """
    encoder_of = {one.joint: one for one in model.record.motor_encoders}
    encoders = [encoder_of.get(joint, MotorEncoder(joint)) for joint in model.elastic_joints]
    covariances = []
    gears = model.torque_model.gears
    effects = model.structure.gears or (GearEffects(),) * len(gears)
    for gear, gear_effect in zip(gears, effects, strict=True):
        names = (STIFFNESS, DAMPING, OFFSET, *gear_effect.waves[:2], *gear_effect.stops)
        rows = [0, 1, 2, *(3, 4)[:len(gear_effect.waves)], *(5,) * len(gear_effect.stops)]
        places = [model.names.index(gear.parameter(p)) for p in names]
        into = np.zeros((6, len(places)))
        into[rows, range(len(places))] = 1.0
        if not np.isfinite(model.std[places]).all():
            # set through s, whose column is one: zero times infinity is NaN
            unknown = np.zeros((6, 6))
            unknown[2, 2] = np.inf
            covariances.append(unknown)
            continue
        factor = np.diag(model.std[places]) if model.correlation_factor is None else (
            model.covariance_factor[:, places])
        covariances.append(into @ (factor.T @ factor) @ into.T)
    return (np.array([[one.noise, one.rate_noise, one.offset_std] for one in encoders]).T,
            np.array(covariances))
