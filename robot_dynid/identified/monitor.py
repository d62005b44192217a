"""The model beside the running robot: predicted effort, external torque, contact."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dynid.identified.contact import ContactDetector, ContactSettings
from robot_dynid.identified.friction_stream import FrictionStream
from robot_dynid.identified.live import LiveStream, State
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.observer import MomentumObserver
from robot_dynid.identified.quiet import Quiet, quiet_of, uncertain_torque
from robot_dynid.signals.causal import CausalLowPass
from robot_dynid.types import FloatArray, frozen

#: gain times step from which the observer knows less of the time between samples than it claims
COARSE = 0.5
#: delays of the low-pass after which its start is forgotten
SETTLED = 4.0
#: speed [rad/s, m/s] of rest, where no recording says more
REST = 0.01


@dataclass(frozen=True)
class MonitorSettings:
    """``gain`` [1/s] of the momentum observer, and when a joint is in contact."""

    gain: float = 30.0
    contact: ContactSettings = field(default_factory=ContactSettings)


@dataclass(frozen=True, eq=False)
class Reading:
    """What the model says of the latest joint state, each (n,), N m (N) on the joint side.

    ``predicted`` effort and ``residual``, measured minus predicted, have passed a low-pass and
    are late by ``Monitor.delay``; None until it has settled. ``external`` torque on the robot,
    late by 1 / gain; ``threshold`` [N m] at which a contact begins.
    """

    predicted: FloatArray | None
    residual: FloatArray | None
    external: FloatArray
    threshold: FloatArray
    contact: FloatArray


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
        self._stream = LiveStream(model)
        self._friction = FrictionStream(model)
        self._low_pass = CausalLowPass(model.preprocessing.cutoff)
        self._observer = MomentumObserver(settings.gain)
        self.levels = quiet_of(model)
        self._detector = ContactDetector(
            model.robot, self.levels or unknown_levels(model), settings.gain, settings.contact)
        self._smooth = np.zeros((4, model.robot.n))
        self._elapsed = 0.0

    @property
    def skipped(self) -> int:
        """How many joint states were of no use: not finite, or stamped like the one before."""
        return self._stream.skipped

    @property
    def restarts(self) -> int:
        """How often a pause or a jump of the stamps made it begin anew."""
        return self._stream.restarts

    @property
    def delay(self) -> float:
        """By how much predicted effort and residual are late [s]."""
        step = self._stream.step
        return self._low_pass.delay(step) + 0.5 * step if step > 0.0 else 0.0

    @property
    def contact(self) -> tuple[str, ...]:
        """The joints in contact."""
        return tuple(j for j, on in zip(self.model.joints, self._detector.contact, strict=True)
                     if on)

    def advice(self) -> tuple[str, ...]:
        """Return what is wrong with the set-up, and what to do."""
        found = []
        step, gain = self._stream.step, self.settings.gain
        if gain * step > COARSE:
            found.append(f'joint states at {1.0 / step:.3g} Hz are too slow for an observer gain '
                         f'of {gain:g} 1/s: lower it to {COARSE / step:.2g}, or publish faster')
        if self.levels is None and not self.settings.contact.thresholds:
            found.append('the model knows no levels of quiet motion, so no contact is detected: '
                         'give contact_thresholds, or identify again')
        return tuple(found)

    def __call__(
        self, time: float, q: FloatArray, qd: FloatArray | None, effort: FloatArray
    ) -> Reading | None:
        """Take the joint state (n,) at ``time`` [s]; None where it is of no use.

        ``effort`` in the robot's own unit; ``qd`` None: differences of positions.
        """
        state = self._stream(time, q, qd, effort)
        if state is None:
            return None
        if state.fresh:
            self._low_pass.reset()
            self._observer.reset()
            self._detector.reset()
            self._elapsed = 0.0
        friction = self._friction(state.position, state.velocity, state.fresh)
        momentum, rate = self.model.momentum(state.position[None], state.velocity[None])
        external = self._observer(
            momentum[0], state.effort - friction + rate[0], state.step)
        threshold = self._detector(external, state.velocity, state.step) if not state.fresh \
            else self._detector.threshold
        predicted, residual = self._residual(state, friction)
        return Reading(predicted, residual, external, threshold, self._detector.contact)

    def _residual(
        self, state: State, friction: FloatArray
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Return predicted effort and residual (n,) in the middle of the last step."""
        before = self._smooth
        self._smooth = after = self._low_pass(
            np.stack([state.position, state.velocity, state.effort, friction]),
            0.0 if state.fresh else state.step)
        if state.fresh:
            return None, None
        self._elapsed += state.step
        if self._elapsed < SETTLED * self.delay:
            return None, None
        q, qd, effort, friction = 0.5 * (before + after)
        qdd = (after[1] - before[1]) / state.step
        predicted = self.model.frictionless_effort(q[None], qd[None], qdd[None])[0] + friction
        return predicted, effort - predicted


def unknown_levels(model: IdentifiedModel) -> Quiet:
    """Return what holds without recordings: at rest friction may differ from its law."""
    n = model.robot.n
    return Quiet(frozen(np.full(n, np.inf)), frozen(uncertain_torque(model)),
                 frozen(np.full(n, REST)))
