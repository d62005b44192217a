"""Online monitor: predicted effort, external torque and contact from joint states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_dynid.identified.caution import without_refused
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.states import holding_torque
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
from robot_dynid.monitoring.watched_joints import JointWatch
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.signals.filters import delay_of
from robot_dynid.types import FloatArray

#: gain times step above which the observer is too coarse for the sample interval
COARSE_GAIN_STEP = 0.5
#: delays of the low-pass after which its initial transient has decayed
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

    ``predicted`` effort and ``residual``, measured minus predicted, are low-passed and delayed by
    ``Monitor.delay``, NaN for refused joints; None until the filter has settled. ``external``
    torque on the robot is delayed by 1 / gain; ``claimed`` is the part of it explained by friction
    that may hold a slow joint; a contact begins where the rest exceeds ``threshold`` [N m]. For
    ``unseen`` joints the external torque is unknown, for ``blind`` ones the contact, whatever
    ``external`` and ``contact`` hold: see `Monitor.blind`. ``viscous_scale`` and ``dry_scale`` are
    the present viscous and other friction relative to the model. Models that use motor states also
    set: the joints whose deflection is used (``deflected``), the standard deviation of the
    residual models (``spread``), the torque of each ``gear`` and its standard deviation
    (``gear_spread``), NaN if absent.
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
        """True if every joint is watched and none is in contact."""
        return not (self.contact.any() or self.blind.any())


class Monitor:
    """Predict effort and detect contact from the joint states of one robot.

    Effort and motion pass the same causal low-pass, with the cut-off of the identification, and
    are compared in the middle of each step, where the acceleration is a difference of two
    velocities. Friction switches too fast to commute with a filter, so it is computed from the
    unfiltered motion and filtered like the effort. Raises UsageError for settings that do not fit
    the model.
    """

    def __init__(self, model: IdentifiedModel, settings: MonitorSettings | None = None) -> None:
        self.model = model
        self.settings = settings = settings or MonitorSettings()
        self._stream = MonitorInputStream(model)
        self.levels = model.noise_levels
        self._observer = observer_of(model, settings)
        self._watch = JointWatch(model, levels_of(model, settings).without.moving, settings.gain)
        self._steps = np.zeros(1)
        self._contact = np.zeros(model.robot.n, dtype=bool)
        self._elapsed = 0.0
        self._unknown = np.zeros(model.robot.n, dtype=bool)

    @property
    def follows_motors(self) -> bool:
        """True if the model uses motor states."""
        return self._stream.motors is not None

    @property
    def without_motors(self) -> tuple[str, ...]:
        """Joints without motor states at the latest joint state."""
        return tuple(joint for joint, one in zip(self.model.joints, self._unknown, strict=True)
                     if one)

    def take_motors(self, time: float, position: FloatArray, velocity: FloatArray | None) -> None:
        """Add a motor state (n,) at ``time`` [s], NaN for joints it does not contain.

        It is used from the next joint state on that has a later stamp.
        """
        if self._stream.motors is not None:
            self._stream.motors.take(time, position, velocity)

    @property
    def unusable_motor_states(self) -> int:
        """Number of motor states that were late, out of order or not stamped."""
        return 0 if self._stream.motors is None else self._stream.motors.unusable

    @property
    def skipped(self) -> int:
        """Number of unusable joint states: not finite, or with a repeated stamp."""
        return self._stream.skipped

    @property
    def restarts(self) -> int:
        """Number of restarts after a pause or a jump of the stamps."""
        return self._stream.restarts

    @property
    def delay(self) -> float:
        """Delay [s] of predicted effort and residual."""
        step = self._stream.step
        cutoff = self.model.preprocessing.cutoff
        return delay_of(cutoff, step) + 0.5 * step if step > 0.0 else 0.0

    @property
    def contact(self) -> tuple[str, ...]:
        """Joints in contact."""
        return tuple(j for j, on in zip(self.model.joints, self._contact, strict=True)
                     if on)

    @property
    def blind(self) -> dict[str, str]:
        """Reasons, by joint, why a joint is not watched: its contact is unknown.

        Valid for the latest usable joint state; the caller must check its age.
        """
        return self._watch.reasons()

    @property
    def problem(self) -> str:
        """Reason why the latest unusable joint state was rejected."""
        return self._stream.problem

    def advice(self) -> tuple[str, ...]:
        """Return warnings with remedies: set-up faults, and joints outside the trained ranges."""
        warnings = []
        step, gain = self._stream.step, self.settings.gain
        if gain * step > COARSE_GAIN_STEP:
            warnings.append(f'joint states at {1.0 / step:.3g} Hz are too slow for an observer '
                            f'gain of {gain:g} 1/s: lower it to {COARSE_GAIN_STEP / step:.2g}, or '
                            'publish faster')
        warnings += [text for text in (motors_unused(self.model),) if text]
        if self.without_motors:
            warnings.append(f'{", ".join(self.without_motors)}: no motor states of the last '
                         f'{OLDEST:g} s, so the deflection is not used; check the topic '
                            'motor_states, its stamps, and that joint states have velocities')
        outside = [joint for joint, out in zip(
            self.model.joints, self._watch.outside, strict=True) if out]
        if outside:
            warnings.append(f'{", ".join(outside)}: position or velocity exceeds the training '
                            'range, where the model may be wrong: add recordings that cover it')
        return tuple(warnings)

    def __call__(
        self, time: float, q: FloatArray, qd: FloatArray | None, effort: FloatArray
    ) -> Reading | None:
        """Process the joint state (n,) at ``time`` [s]; return None if it is unusable.

        ``effort`` in the robot's effort unit; without ``qd`` velocities are differences of
        positions.
        """
        next_state = self._stream(time, q, qd, effort)
        if next_state is None:
            return None
        state, step = next_state
        self._steps[0] = step
        result = self._observer(state[None], self._steps)[0]
        self._contact = result[CONTACT] != 0.0
        self._elapsed = self._elapsed + step if step > 0.0 else 0.0
        missing = self._stream.missing
        self._watch.take(step, state, missing, self._stream.began)
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
            self._watch.blind, self._watch.unseen, result[VISCOUS_SCALE], result[DRY_SCALE],
            *deflected)


def observer_of(
    model: IdentifiedModel, settings: MonitorSettings
) -> Observer | DeflectedObserver:
    """Return the observer of a model, with the deflection of gears if the model uses it.

    Raises UsageError for settings that do not fit the model.
    """
    levels = levels_of(model, settings)
    if follows_motors(model):
        return DeflectedObserver(model, settings.gain, levels)
    return Observer(model, settings.gain, levels.without)


def levels_of(model: IdentifiedModel, settings: MonitorSettings) -> Levels:
    """Return the contact levels of a model; raises UsageError for settings that do not fit.

    Levels with the deflection equal those without it if none were learnt. Models without noise
    levels need thresholds in ``settings``; their level at rest is the friction of the law.
    """
    noise = model.noise_levels or NoiseLevels(
        np.full(model.robot.n, np.inf), holding_torque(model), slowest(model))
    deflected = noise.deflected or noise
    contact, without = (contact_levels(model.robot, one, settings.gain, settings.contact)
                        for one in (deflected, noise))
    return Levels(contact, without, np.zeros(model.robot.n) if deflected.variance is None
                  else deflected.variance)
