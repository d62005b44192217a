"""The model beside the running robot: predicted effort, external torque, contact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_dynid.identified.caution import without_refused
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.monitoring.deflected_observer import (
    DEFLECTED,
    GEAR,
    GEAR_SPREAD,
    SPREAD,
    DeflectedObserver,
    Levels,
)
from robot_dynid.monitoring.monitor_input import MonitorInputStream
from robot_dynid.monitoring.motor_states import OLDEST, follows_motors, motors_unused
from robot_dynid.monitoring.noise_levels import holding_torque
from robot_dynid.monitoring.observer import (
    CLAIMED,
    CONTACT,
    DRY_SCALE,
    EXTERNAL,
    PREDICTED,
    RESIDUAL,
    THRESHOLD,
    VISCOUS_SCALE,
    ContactSettings,
    Observer,
    contact_levels,
    slowest,
)
from robot_dynid.monitoring.sight import Sight
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals.filters import delay_of
from robot_dynid.types import FloatArray

#: gain times step from which the observer knows less of the time between samples than it claims
COARSE_GAIN_STEP = 0.5
#: delays of the low-pass after which its start is forgotten
LOW_PASS_DELAYS = 4.0


GAIN = NumberRange(1e-3, 1e10, '1/s')


@dataclass(frozen=True)
class MonitorSettings:
    """``gain`` [1/s] of the momentum observer; ``contact`` the thresholds of contact."""

    gain: float = setting(30.0, GAIN)
    contact: ContactSettings = field(default_factory=ContactSettings)

    def __post_init__(self) -> None:
        require_allowed(self, '{} of the observer')


class Reading(NamedTuple):
    """Output of the monitor for the latest joint state, each (n,), N m (N) on the joint side.

    ``predicted`` effort and ``residual``, measured minus predicted, have passed a low-pass and
    are late by ``Monitor.delay``, NaN for refused joints; None until it has settled. ``external``
    torque on the robot, late by 1 / gain; ``claimed`` is what of it comes from friction that the
    law says holds a slow joint, and may not; a contact begins where the rest is larger than
    ``threshold`` [N m].
    Joints that are ``unseen`` have no known external torque, ``blind`` ones no known contact,
    whatever ``external`` and ``contact`` are: see `Monitor.blind`. ``viscous_scale`` and
    ``dry_scale`` are viscous and all other friction now, as shares of what the model has.
    With use for motor states also: the joints whose deflection is in it (``deflected``), the
    deviation (``spread``) of what residual models expect, the torque that each ``gear`` transmits
    and its deviation (``gear_spread``), NaN where there is none.
    """

    predicted: FloatArray | None
    residual: FloatArray | None
    external: FloatArray
    claimed: FloatArray
    threshold: FloatArray
    contact: NDArray[np.bool_]
    blind: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    viscous_scale: FloatArray
    dry_scale: FloatArray
    deflected: NDArray[np.bool_] | None = None
    spread: FloatArray | None = None
    gear: FloatArray | None = None
    gear_spread: FloatArray | None = None

    @property
    def free(self) -> bool:
        """Whether every joint is watched, and none in contact."""
        return not (self.contact.any() or self.blind.any())


class Monitor:
    """Follows the joint states of one robot.

    The effort and the motion pass the same causal low-pass, of the cut-off of the identification,
    and meet in the middle of each step, where the acceleration is a difference of two velocities.
    Friction switches too fast to commute with a filter: it is computed from the unfiltered
    motion and filtered like the effort. Raises UsageError for settings that do not fit.
    """

    def __init__(self, model: IdentifiedModel, settings: MonitorSettings | None = None) -> None:
        self.model = model
        self.settings = settings = settings or MonitorSettings()
        self._stream = MonitorInputStream(model)
        self.levels = model.noise_levels
        self._observer = observer_of(model, settings)
        self._sight = Sight(model, levels_of(model, settings).without.moving, settings.gain)
        self._steps = np.zeros(1)
        self._contact = np.zeros(model.robot.n, dtype=bool)
        self._elapsed = 0.0
        self._unknown = np.zeros(model.robot.n, dtype=bool)

    @property
    def follows_motors(self) -> bool:
        """Whether it has use for motor states."""
        return self._stream.motors is not None

    @property
    def without_motors(self) -> tuple[str, ...]:
        """The joints that lacked motor states at the latest joint state."""
        return tuple(joint for joint, one in zip(self.model.joints, self._unknown, strict=True)
                     if one)

    def take_motors(self, time: float, position: FloatArray, velocity: FloatArray | None) -> None:
        """Take a motor state (n,) at ``time`` [s], NaN for joints it does not have.

        It is used from the next joint state on that is stamped later.
        """
        if self._stream.motors is not None:
            self._stream.motors.take(time, position, velocity)

    @property
    def unusable_motor_states(self) -> int:
        """Number of motor states that came too late, out of order or without a stamp."""
        return 0 if self._stream.motors is None else self._stream.motors.unusable

    @property
    def skipped(self) -> int:
        """Number of unusable joint states: not finite, or stamped like the one before."""
        return self._stream.skipped

    @property
    def restarts(self) -> int:
        """Number of restarts after a pause or a jump of the stamps."""
        return self._stream.restarts

    @property
    def delay(self) -> float:
        """By how much predicted effort and residual are late [s]."""
        step = self._stream.step
        cutoff = self.model.preprocessing.cutoff
        return delay_of(cutoff, step) + 0.5 * step if step > 0.0 else 0.0

    @property
    def contact(self) -> tuple[str, ...]:
        """The joints in contact."""
        return tuple(j for j, on in zip(self.model.joints, self._contact, strict=True)
                     if on)

    @property
    def blind(self) -> dict[str, str]:
        """Reasons of joints that are not watched, by name: their contact is unknown.

        It holds for the latest joint state of use: who calls must know when that is too long ago.
        """
        return self._sight.reasons()

    @property
    def problem(self) -> str:
        """Reason of the last joint state that was of no use."""
        return self._stream.problem

    def advice(self) -> tuple[str, ...]:
        """Return faults of the set-up, and joints outside the trained ranges, with remedies."""
        found = []
        step, gain = self._stream.step, self.settings.gain
        if gain * step > COARSE_GAIN_STEP:
            found.append(f'joint states at {1.0 / step:.3g} Hz are too slow for an observer gain '
                         f'of {gain:g} 1/s: lower it to {COARSE_GAIN_STEP / step:.2g}, or publish '
                         'faster')
        found += [text for text in (motors_unused(self.model),) if text]
        if self.without_motors:
            found.append(f'{", ".join(self.without_motors)}: no motor states of the last '
                         f'{OLDEST:g} s: predicted without the deflection, with the thresholds of '
                         'the model without it; check the topic motor_states, its stamps, and '
                         'that joint states carry velocities')
        outside = [joint for joint, out in zip(
            self.model.joints, self._sight.outside, strict=True) if out]
        if outside:
            found.append(f'{", ".join(outside)}: position or velocity outside what the model was '
                         'trained in, where it may be wrong: identify with recordings that go '
                         'there')
        return tuple(found)

    def __call__(
        self, time: float, q: FloatArray, qd: FloatArray | None, effort: FloatArray
    ) -> Reading | None:
        """Take the joint state (n,) at ``time`` [s]; None where it is of no use.

        ``effort`` in the robot's own unit; ``qd`` None: differences of positions.
        """
        found = self._stream(time, q, qd, effort)
        if found is None:
            return None
        state, step = found
        self._steps[0] = step
        result = self._observer(state[None], self._steps)[0]
        self._contact = result[CONTACT] != 0.0
        self._elapsed = self._elapsed + step if step > 0.0 else 0.0
        missing = self._stream.missing
        self._sight.take(step, state, missing, self._stream.began)
        result[RESIDUAL, missing] = np.nan
        result[[PREDICTED, RESIDUAL]] = without_refused(self.model, result[[PREDICTED, RESIDUAL]])
        settled = self._elapsed > 0.0 and self._elapsed >= LOW_PASS_DELAYS * self.delay
        deflected: tuple[Any, ...] = ()
        if isinstance(self._observer, DeflectedObserver):
            self._unknown = self._observer.joints & ~np.isfinite(state[3:]).all(axis=0)
            deflected = result[DEFLECTED] != 0.0, result[SPREAD], result[GEAR], result[GEAR_SPREAD]
        return Reading(
            result[PREDICTED] if settled else None, result[RESIDUAL] if settled else None,
            result[EXTERNAL], result[CLAIMED], result[THRESHOLD], self._contact,
            self._sight.blind, self._sight.unseen, result[VISCOUS_SCALE], result[DRY_SCALE],
            *deflected)


def observer_of(
    model: IdentifiedModel, settings: MonitorSettings
) -> Observer | DeflectedObserver:
    """Return the observer of a model: with the deflection of gears where it has use for that.

    Raises UsageError for settings that do not fit.
    """
    levels = levels_of(model, settings)
    if follows_motors(model):
        return DeflectedObserver(model, settings.gain, levels)
    return Observer(model, settings.gain, levels.without)


def levels_of(model: IdentifiedModel, settings: MonitorSettings) -> Levels:
    """Return the contact levels of a model; raises UsageError for settings that do not fit.

    Those with the deflection are those without it where none were learnt. Models without noise
    levels have them where ``settings`` say how large the torque must be; at rest it may be as
    large as the friction of the law.
    """
    noise = model.noise_levels or NoiseLevels(
        np.full(model.robot.n, np.inf), holding_torque(model), slowest(model))
    deflected = noise.deflected or noise
    contact, without = (contact_levels(model.robot, one, settings.gain, settings.contact)
                        for one in (deflected, noise))
    return Levels(contact, without, np.zeros(model.robot.n) if deflected.variance is None
                  else deflected.variance)
