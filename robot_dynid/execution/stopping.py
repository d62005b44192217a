"""Immediate stop: cancel, hold, confirm that the robot is at rest."""

from __future__ import annotations

from robot_dynid.execution.commands import Cancel, Commands, Finish, Hold
from robot_dynid.execution.guards import Code, Outcome
from robot_dynid.execution.watchdog import Rules, Watchdog


class Stopping:
    """A stop begun at ``since`` s because of ``outcome``.

    ``answered``: whether a goal is under way whose end the controller will confirm. Where there
    is none (its topic, a pause) a hold is sent at once, and the robot has to be seen at rest.
    """

    def __init__(self, since: float, outcome: Outcome, rules: Rules, watchdog: Watchdog,
                 answered: bool) -> None:
        self.since, self.outcome = since, outcome
        self._rules, self._watchdog = rules, watchdog
        self._answered = self._unconfirmed = answered
        self._held: Hold | None = None

    def begin(self) -> Commands:
        """Return the commands that stop the robot at once."""
        commands: Commands = (Cancel(),) if self._rules.answers else ()
        if not self._answered or self.outcome.code is Code.CONTROLLER_LOST:
            commands += self.hold(self.since)
        return commands

    def hold(self, now: float) -> Commands:
        """Bring the robot to rest by a message on the topic, once."""
        if self._held is not None:
            return ()
        self._held = Hold(*self._watchdog.stopping_point(now))
        return (self._held,)

    def confirm(self, now: float) -> Commands:
        """React to the controller's word that the motion has ended."""
        self._unconfirmed = False
        return self.settle(now)

    def settle(self, now: float) -> Commands:
        """Finish once the stop is confirmed and the robot is seen at rest, or cannot be seen."""
        if self._unconfirmed or now - self.since < self._span:
            return ()
        visible = self._watchdog.visible(now)
        if visible and self._watchdog.moving():
            return ()
        how = 'confirmed' if self._answered else 'a hold was sent on its topic'
        seen = 'the robot holds' if visible else f'{how} but not seen: check that it stands'
        return (Finish(Outcome(
            self.outcome.code, f'{self.outcome.text}; motion cancelled, {seen}')),)

    def wait(self, now: float) -> Commands:
        """React to the passing of time."""
        settings, waited = self._rules.settings, now - self.since
        if waited > settings.stop_timeout + self._span:
            return (Finish(self._doubtful()),)
        if self._unconfirmed and waited > settings.cancel_timeout:
            return self.hold(now)
        return () if self._answered else self.settle(now)

    @property
    def _span(self) -> float:
        """Length of a hold without confirmation, s."""
        return 0.0 if self._answered or self._held is None else self._held.duration

    def _doubtful(self) -> Outcome:
        """Return the outcome of a stop that was not confirmed in time."""
        code, text = self.outcome.code, self.outcome.text
        if self._answered and not self._unconfirmed:
            return Outcome(code, f'{text}; the controller confirmed the stop, but the robot still '
                           'moves: check it')
        if code in (Code.STALE_STATES, Code.CANCELLED):
            code = Code.CONTROLLER_LOST
        answer = ('does not answer the cancel request: a hold was sent on its topic as well'
                  if self._answered else 'does not stop at the hold sent on its topic')
        return Outcome(code, f'{text}; the controller {answer}, check that the robot stands')
