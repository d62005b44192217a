"""Emergency stop and joint temperatures as reasons not to move."""

from __future__ import annotations

import numpy as np

from robot_dynid.execution.attention import Attention
from robot_dynid.execution.guards import Code, GuardSettings, Outcome, named

ADVICE = 'publish it at 10 Hz or more'


class Alarms:
    """Latest states of the emergency stop and of the joint temperatures; times in s.

    ``pressed`` is None until a message of the emergency stop was received, ``present`` whether its
    topic has a publisher. ``temperature`` (n,) degrees C, NaN until one was received. Ages are
    those of ``attention``.
    """

    def __init__(self, joints: tuple[str, ...], settings: GuardSettings) -> None:
        self.pressed: bool | None = None
        self.present = True
        self.attention = Attention()
        self.temperature = np.full(len(joints), np.nan)
        self._received = np.full(len(joints), -np.inf)
        self._joints, self._settings = joints, settings
        self._heard = self._regular_since = -np.inf
        self._watched = settings.emergency_stop_required

    def note_emergency_stop(self, now: float, pressed: bool) -> None:
        """Note a message of the emergency stop."""
        if self._age(now) > self._settings.emergency_stop_timeout:
            self._regular_since = now
        self._heard, self.pressed = now, pressed

    def note_temperature(self, now: float, joint: str, temperature: float) -> None:
        """Note the temperature of a joint in degrees C; other names are not ours."""
        if joint in self._joints:
            i = self._joints.index(joint)
            self.temperature[i], self._received[i] = temperature, now

    def begin(self, now: float) -> Outcome | None:
        """Return the reason not to begin a motion, None without one.

        An emergency stop that has come regularly until now, for no less than its timeout, must
        not fall silent during the motion either, whether it is required or not.
        """
        timeout = self._settings.emergency_stop_timeout
        regular = self._age(now) <= timeout <= self._heard - self._regular_since
        self._watched = self._settings.emergency_stop_required or (timeout > 0.0 and regular)
        return self.check(now)

    def check(self, now: float) -> Outcome | None:
        """Return the reason not to move, None without one."""
        return self._emergency(now) or self._overheated(now)

    def _age(self, now: float) -> float:
        return self.attention.age(self._heard, now)

    def _emergency(self, now: float) -> Outcome | None:
        required, timeout = (
            self._settings.emergency_stop_required, self._settings.emergency_stop_timeout)
        why = 'is required' if required else 'was published regularly when the motion began'
        if self.pressed:
            return Outcome(Code.EMERGENCY_STOP, 'the emergency stop is pressed')
        if not self._watched:
            return None
        if self.pressed is None:
            return Outcome(Code.EMERGENCY_STOP, f'the emergency stop {why}, but no message '
                           f'of it was received; {ADVICE} on the topic emergency_stop')
        if not self.present:
            return Outcome(Code.EMERGENCY_STOP, f'the emergency stop {why}, but its '
                           'publisher went away')
        if 0.0 < timeout < self._age(now):
            return Outcome(
                Code.EMERGENCY_STOP, f'the emergency stop {why}, but no message of it came for '
                f'{self._age(now):.3f} s, allowed are {timeout:g} s; {ADVICE}'
                + (', or set emergency_stop_timeout to 0 for a publisher that publishes changes '
                   'only' if required else ''))
        return None

    def _overheated(self, now: float) -> Outcome | None:
        limit = self._settings.temperature_limit
        if limit <= 0.0:
            return None
        ages = np.array([self.attention.age(at, now) for at in self._received])
        overdue = ages > self._settings.temperature_timeout
        unknown = np.flatnonzero(overdue | ~np.isfinite(self.temperature))
        silent = [self._joints[i] for i in unknown]
        if silent:
            return Outcome(
                Code.TEMPERATURE, f'no temperature of {named(silent)} within the last '
                f'{self._settings.temperature_timeout:g} s; publish it with the name of the joint '
                'as frame_id, or set temperature_limit to 0 to move without this guard')
        if not np.any(self.temperature > limit):
            return None
        i = int(np.argmax(self.temperature))
        return Outcome(
            Code.TEMPERATURE, f"joint '{self._joints[i]}' has {self.temperature[i]:.1f} "
            f'degrees C, allowed are {limit:g}; let it cool down')
