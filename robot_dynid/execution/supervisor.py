"""Supervised execution of a plan: decides what to send and when to stop; sends nothing itself.

The caller reports events (joint states, answers of the controller, the passing of time) with the
time of its own steady clock, and carries out the commands it gets back. The answers of the
controller are never relied upon: a killed controller leaves them pending for ever.
"""

from __future__ import annotations

from robot_dynid.errors import UsageError
from robot_dynid.execution.alarms import Alarms
from robot_dynid.execution.commands import (
    UNDER_WAY,
    Cancel,
    Commands,
    Finish,
    Phase,
    Send,
)
from robot_dynid.execution.guards import Code, EffortGuard, JointStates, Outcome
from robot_dynid.execution.segment import Segment, segment_faults
from robot_dynid.execution.slowing import GENTLE, Slowing, slowing, way_on
from robot_dynid.execution.stopping import Stopping
from robot_dynid.execution.watchdog import SUCCEEDED, Rules, Watchdog, explained
from robot_dynid.types import FloatArray


class Execution:
    """Runs the segments of a ``plan`` one after the other, and stops at the first irregularity.

    ``rules`` that it keeps, ``watchdog`` that looks after them.
    """

    def __init__(self, plan: tuple[Segment, ...], rules: Rules, states: JointStates,
                 alarms: Alarms | None = None) -> None:
        self.phase = Phase.READY
        self.outcome: Outcome | None = None
        self.rules = rules
        self.plan, self._states = plan, states
        self._alarms = alarms or Alarms(states.joints, rules.settings)
        self.watchdog = Watchdog(rules, states)
        self._effort = EffortGuard(states.joints, rules.limits.effort, rules.settings)
        self._index = -1
        self._current = plan[0]  # of the plan, or what is left of it after a pause
        self._sent = plan[0]
        self._slowing: Slowing | None = None  # under way, or ended in a pause
        self._pause_asked = False
        self._stopping: Stopping | None = None

    @property
    def segment(self) -> Segment:
        """The segment being executed, or the last one."""
        return self._current

    @property
    def stopped_at(self) -> float | None:
        """Time at which a stop off the path was commanded, None without one."""
        return None if self._stopping is None else self._stopping.since

    def doing(self, now: float) -> tuple[str, float]:
        """Return the name of what is being done and how much of it is done, 0 to 1."""
        name, fraction = self._current.part(self._path_time(now))
        if self._slowing is not None and self._slowing.reason is None:
            name = 'pause'
        elif self._slowing is not None or self.phase is Phase.STOPPING:
            name = 'hold'
        return name, fraction

    def tracking_error(self, now: float) -> FloatArray:
        """Return desired minus measured position (n,) rad (m).

        After a stop, what was desired when the stop began.
        """
        when = now if self.stopped_at is None else self.stopped_at
        return self.watchdog.error(self._current.points, when)

    def start(self, now: float) -> Commands:
        """Check everything and send the first segment, or finish with what forbids it."""
        found = [fault for segment in self.plan
                 for fault in segment_faults(segment, self.rules.longest)]
        found += self._effort.preflight(self._states)
        if self.watchdog.visible(now) and self.watchdog.moving():
            found.append('the robot moves already; wait until it stands')
        self.watchdog.last_tick = now
        if found:
            return self._finish(Outcome(Code.INVALID, '; '.join(found) + '; nothing was sent'))
        alarm = self._alarms.check(now)
        if alarm is not None:
            return self._finish(Outcome(alarm.code, f'{alarm.text}; nothing was sent'))
        return self._send_next(now)

    def on_state(self, now: float) -> Commands:
        """React to new joint states, which the caller has put into the JointStates."""
        if self._stopping is not None:
            return self._finished(self._stopping.settle(now))
        if self.phase not in UNDER_WAY:
            return ()
        missing = self._states.missing('position')
        if missing:
            return self._stop(now, Outcome(
                Code.STALE_STATES, f"the position of joint '{missing[0]}' is not finite"))
        trip = self._effort.check(self._states.effort) or self.watchdog.tracking(now)
        return self._stop(now, trip) if trip is not None else ()

    def on_controller_state(self, now: float, elapsed: float, reference: FloatArray) -> None:
        """Note the controller's state: ``elapsed`` s into a motion, at ``reference`` (n,)."""
        self.watchdog.controller = now
        self.watchdog.note_reference(now, elapsed, reference)

    def on_feedback(self, now: float) -> None:
        """Note that the controller sent feedback for the current goal."""
        self.watchdog.feedback = now

    def on_accepted(self, now: float) -> Commands:
        """React to the acceptance of the goal sent last."""
        if self.phase is not Phase.SENDING:
            return (Cancel(),) if self.phase in (Phase.STOPPING, Phase.DONE) else ()
        self.phase = Phase.RUNNING
        self.watchdog.follow(self._sent, now)
        return ()

    def on_rejected(self, now: float) -> Commands:
        """React to the rejection of the goal sent last; one that was under way goes on."""
        if self._stopping is not None:
            return self._finished(self._stopping.confirm(now))
        if self.phase is not Phase.SENDING:
            return ()
        text = 'the controller rejected the trajectory; see its log (inactive? other joints?)'
        if self._slowing is not None:
            located = self._slowing.reason or self._located(Outcome(Code.REJECTED, text), now)
            return self._halt(now, located)
        return self._finish(self._located(Outcome(
            Code.REJECTED, f'{text}; the robot did not move')))

    def on_result(self, now: float, status: int, code: int, text: str) -> Commands:
        """React to the result of the goal sent last (action status, error code, error text)."""
        if self._stopping is not None:
            return self._finished(self._stopping.confirm(now))
        if self.phase not in UNDER_WAY:
            return ()
        if status != SUCCEEDED or code != 0:
            return self._finish(self._located(explained(status, code, text)))
        missed = self.watchdog.missed(self._sent.points)
        if missed is not None:
            return self._finish(self._located(missed))
        return self._send_next(now) if self._slowing is None else self._rest()

    def on_cancel_answer(self, now: float, stopping: bool) -> Commands:
        """React to the answer to a cancel request; ``stopping``: the goal ends or has ended."""
        if self._stopping is None:
            return ()
        if not stopping:
            return self._stopping.hold(now)
        return self._finished(self._stopping.confirm(now))

    def on_alarm(self, now: float) -> Commands:
        """React to news of the emergency stop or of a temperature."""
        alarm = self._alarms.check(now) if self.phase in UNDER_WAY else None
        return self.cancel(now, alarm) if alarm is not None else ()

    def cancel(self, now: float, outcome: Outcome) -> Commands:
        """Stop because somebody asks for it: along the path where the reason leaves time."""
        if self.phase is Phase.READY:
            return self._finish(outcome)
        if self.phase not in UNDER_WAY:
            return ()
        if outcome.code not in GENTLE:
            return self._stop(now, outcome)
        outcome = self._located(outcome, now)
        if self._slowing is None:
            return self._slow_down(now, outcome) or self._halt(now, outcome)
        if self.phase is Phase.PAUSED:
            return self._finish(Outcome(outcome.code, f'{outcome.text}; the robot holds'))
        if self._slowing.reason is None:  # else it brakes for a reason that came first
            self._slowing = self._slowing.ending(outcome)
        return ()

    def pause(self, now: float) -> Commands:
        """Come to rest along the path, as soon as the limits allow it.

        Raises UsageError when nothing moves, or when it comes to rest already.
        """
        if self.phase not in (Phase.SENDING, Phase.RUNNING):
            raise UsageError(f'nothing to pause: the execution is {self.phase.value}')
        if self._slowing is not None:
            raise UsageError('the robot is coming to rest already')
        self._pause_asked = True
        return self._slow_down(now, None)

    def resume(self, now: float) -> Commands:
        """Go on along the path from where the robot came to rest.

        Raises UsageError when it is not paused, or when the limits allow no start from there.
        """
        if self._pause_asked and self._slowing is None:
            self._pause_asked = False
            return ()
        if self.phase is not Phase.PAUSED or self._slowing is None:
            raise UsageError('not paused' if self._slowing is None else
                             'the robot is still coming to rest; ask again when it stands')
        onward = way_on(self._current, self._slowing.rest, self.rules)
        self._slowing = None
        return self._send_next(now) if onward is None else self._send(onward, now)

    def tick(self, now: float, server_ready: bool = True) -> Commands:
        """React to the passing of time; call it every 10 ms or so."""
        delayed = self.watchdog.was_delayed(now)
        if self._stopping is not None:
            return self._finished(self._stopping.wait(now))
        if self.phase not in UNDER_WAY or delayed:
            return ()
        trip = self.watchdog.silence(now, server_ready)
        if trip is None and self.phase is Phase.SENDING:
            trip = self.watchdog.unanswered(now)
        if trip is None and self.phase is Phase.RUNNING:
            trip = self.watchdog.abandoned(self._sent.remaining, now)
        if trip is not None:
            return self._stop(now, trip)
        return self.on_alarm(now) or self._go_on(now)

    def _go_on(self, now: float) -> Commands:
        """Do what was waited for, now that nothing stands against it."""
        slowing, waited = self._slowing, now - self.watchdog.sent
        if self.phase is Phase.SENDING and slowing is not None and slowing.reason is not None:
            late = waited > self.rules.settings.cancel_timeout
            return self._halt(now, slowing.reason) if late else ()
        if self.phase is not Phase.RUNNING:
            return ()
        if not self.rules.answers and self.watchdog.arrived(self._sent, now):
            return self.on_result(now, SUCCEEDED, 0, '')
        return self._slow_down(now, None) if self._pause_asked and slowing is None else ()

    def _slow_down(self, now: float, reason: Outcome | None) -> Commands:
        """Brake along the path; nothing when it cannot be done now."""
        if self.phase is not Phase.RUNNING:
            return ()
        self._slowing = slowing(self._current, self.watchdog, now, self.rules, reason)
        return () if self._slowing is None else self._send(self._slowing.segment, now)

    def _rest(self) -> Commands:
        """Pause or end, now that the robot stands on its path."""
        assert self._slowing is not None
        reason = self._slowing.reason
        if reason is not None:
            return self._finish(Outcome(
                reason.code, f'{reason.text}; stopped along the path, the robot holds'))
        self.phase, self._pause_asked = Phase.PAUSED, False
        return ()

    def _send_next(self, now: float) -> Commands:
        """Send the next segment of the plan, or finish after the last one."""
        self._index += 1
        if self._index == len(self.plan):
            return self._finish(Outcome(Code.SUCCESS, 'done'))
        self._current = self.plan[self._index]
        trip = self.watchdog.not_ready(self._current, now)
        if trip is not None:
            return self._finish(self._located(trip))
        return self._send(self._current, now)

    def _send(self, segment: Segment, now: float) -> Commands:
        self.phase, self._sent = Phase.SENDING, segment
        if segment.reference is None:
            self._current = segment
        self.watchdog.send(segment, now)
        return (Send(segment),)

    def _stop(self, now: float, outcome: Outcome) -> Commands:
        return self._halt(now, self._located(outcome, now))

    def _halt(self, now: float, located: Outcome) -> Commands:
        """Stop at once."""
        answered = self.rules.answers and self.phase is not Phase.PAUSED
        self.phase, self.outcome = Phase.STOPPING, located
        self._stopping = Stopping(now, located, self.rules, self.watchdog, answered)
        return self._stopping.begin()

    def _path_time(self, now: float) -> float:
        """Return the time of the current segment's points, s, as far as it is known."""
        if self._slowing is not None:
            return self._slowing.rest
        if self.phase is Phase.SENDING:
            return 0.0
        return self.watchdog.elapsed(now if self.stopped_at is None else self.stopped_at)

    def _located(self, outcome: Outcome, now: float | None = None) -> Outcome:
        """Return the outcome with the place where it came about."""
        if now is None or self.phase is not Phase.RUNNING:
            return Outcome(outcome.code, f'{self._current.name}: {outcome.text}')
        time = self._path_time(now)
        name, at = self._current.part(time)[0], time + self._current.begin
        return Outcome(outcome.code, f'{name} at {at:.3f} s: {outcome.text}')

    def _finished(self, commands: Commands) -> Commands:
        """Take over how a stop ended, if it has."""
        for command in commands:
            if isinstance(command, Finish):
                return self._finish(command.outcome)
        return commands

    def _finish(self, outcome: Outcome) -> Commands:
        self.phase, self.outcome = Phase.DONE, outcome
        return (Finish(outcome),)
