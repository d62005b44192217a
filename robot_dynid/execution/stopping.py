"""Stop without a motion of ours: cancel, hold, confirm that the robot is at rest."""

from __future__ import annotations

from robot_dynid.execution.commands import Cancel, Commands, Finish, Hold
from robot_dynid.execution.guards import IMMEDIATE, LIMITED, Code, Outcome
from robot_dynid.execution.watchdog import Rules, Watchdog


class Stopping:
    """A stop begun at ``since`` s because of ``outcome``.

    ``answered``: whether a goal is under way whose end the controller will confirm. Where there
    is none (its topic, a pause) a hold is sent at once, and the robot has to be seen at rest.
    ``kind`` IMMEDIATE cancels the goal, LIMITED does only when the controller is not seen to
    follow the hold, a deceleration within the limits; a goal that it accepts only then ends the
    hold, so another one follows. A controller that does not answer, and of
    which nothing is heard nor seen, is sent nothing while it follows a piece of the motion: that
    ends by itself. A frozen one would go to the hold from wherever it wakes up, and beyond it.
    """

    def __init__(self, since: float, outcome: Outcome, rules: Rules, watchdog: Watchdog,
                 answered: bool, kind: str = IMMEDIATE) -> None:
        self.since, self.outcome = since, outcome
        self._gentle, self._begun = kind == LIMITED and answered, since
        self._rules, self._watchdog = rules, watchdog
        self._answered = self._unconfirmed = answered
        self._held: Hold | None = None
        self._left_alone = False

    def begin(self) -> Commands:
        """Return the commands that stop the robot at once."""
        if self._gentle:
            return self.hold(self.since)
        commands: Commands = (Cancel(),) if self._rules.answers else ()
        if not self._answered or self.outcome.code is Code.CONTROLLER_LOST:
            commands += self.hold(self.since)
        return commands

    def hold(self, now: float) -> Commands:
        """Bring the robot to rest by a message on the topic, once, or wait for its own end."""
        if self._held is not None:
            return ()
        watchdog, rules = self._watchdog, self._rules
        self._held = Hold(*watchdog.stopping_point(now))
        self._left_alone = (not rules.answers and rules.pacing.lookahead > 0.0
                            and watchdog.silent(now) and not watchdog.visible(now))
        return () if self._left_alone else (self._held,)

    def accepted(self, now: float) -> Commands:
        """React to the acceptance of a goal that was sent before the stop."""
        if not self._gentle:
            return (Cancel(),)
        self._begun, self._held = now, None
        return self.hold(now)

    def confirm(self, now: float) -> Commands:
        """React to the controller's word that the motion has ended."""
        self._unconfirmed = False
        return self.settle(now)

    def settle(self, now: float) -> Commands:
        """Finish once the stop is confirmed and the robot is seen at rest, or cannot be seen."""
        if self._unconfirmed or now - self._begun < self._span:
            return ()
        visible = self._watchdog.visible(now)
        if visible and self._watchdog.moving():
            return ()
        how = ('the silent controller was sent nothing' if self._left_alone else
               'confirmed but not seen' if self._answered else
               'a hold was sent on its topic but not seen')
        seen = 'the robot holds' if visible else f'{how}: check that it stands'
        done = ('decelerated within the limits' if self._gentle else
                'the motion ends by itself' if self._left_alone else 'motion cancelled')
        return (Finish(Outcome(self.outcome.code, f'{self.outcome.text}; {done}, {seen}')),)

    def wait(self, now: float) -> Commands:
        """React to the passing of time."""
        settings, waited = self._rules.settings, now - self.since
        if waited > settings.stop_timeout + self._span:
            return (Finish(self._doubtful()),)
        if self._unconfirmed and now - self._begun > settings.cancel_timeout:
            if not self._gentle:
                return self.hold(now)
            if self._watchdog.begun_after(self.since):
                return self.confirm(now)
            self._gentle, self._begun, self._held = False, now, None
            return (Cancel(),)
        if self._gentle and not self._unconfirmed:
            return self.settle(now)
        return () if self._answered else self.settle(now)

    @property
    def _span(self) -> float:
        """Length of a hold without confirmation, s."""
        awaited = self._gentle or not self._answered
        return self._held.duration if awaited and self._held is not None else 0.0

    def _doubtful(self) -> Outcome:
        """Return the outcome of a stop that was not confirmed in time."""
        code, text = self.outcome.code, self.outcome.text
        if self._answered and not self._unconfirmed:
            return Outcome(code, f'{text}; the controller confirmed the stop, but the robot still '
                           'moves: check it')
        if code in (Code.STALE_STATES, Code.CANCELLED):
            code = Code.CONTROLLER_LOST
        answer = ('does not answer the cancel request: a hold was sent on its topic as well'
                  if self._answered else 'was silent, and still moves' if self._left_alone else
                  'does not stop at the hold sent on its topic')
        return Outcome(code, f'{text}; the controller {answer}, check that the robot stands')
