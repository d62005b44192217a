"""Emergency stop and joint temperatures as reasons not to move."""

from __future__ import annotations

import numpy as np

from robot_dynid.execution.guards import Code, GuardSettings, Outcome, named


class Alarms:
    """Latest states of the emergency stop and of the joint temperatures; times in s.

    ``pressed`` is None until a message of the emergency stop was received, ``present`` whether its
    topic has a publisher. ``temperature`` (n,) degrees C, NaN until one was received.
    """

    def __init__(self, joints: tuple[str, ...], settings: GuardSettings) -> None:
        self.pressed: bool | None = None
        self.present = True
        self.temperature = np.full(len(joints), np.nan)
        self._received = np.full(len(joints), -np.inf)
        self._joints, self._settings = joints, settings

    def note_temperature(self, now: float, joint: str, temperature: float) -> None:
        """Note the temperature of a joint in degrees C; other names are not ours."""
        if joint in self._joints:
            i = self._joints.index(joint)
            self.temperature[i], self._received[i] = temperature, now

    def check(self, now: float) -> Outcome | None:
        """Return the reason not to move, None without one."""
        return self._emergency() or self._overheated(now)

    def _emergency(self) -> Outcome | None:
        if self.pressed:
            return Outcome(Code.EMERGENCY_STOP, 'the emergency stop is pressed')
        if not self._settings.emergency_stop_required:
            return None
        if self.pressed is None:
            return Outcome(Code.EMERGENCY_STOP, 'the emergency stop is required, but no message '
                           'of it was received; publish its topic emergency_stop')
        if not self.present:
            return Outcome(Code.EMERGENCY_STOP, 'the emergency stop is required, but its '
                           'publisher went away')
        return None

    def _overheated(self, now: float) -> Outcome | None:
        limit = self._settings.temperature_limit
        if limit <= 0.0:
            return None
        overdue = now - self._received > self._settings.temperature_timeout
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
