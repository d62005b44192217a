"""Supervised execution of a plan: decides what to send and when to stop; sends nothing itself.

The caller reports events (joint states, answers of the controller, the passing of time) with the
time of its own steady clock, and carries out the returned commands. It never relies on the answers
of the controller: a killed controller leaves them pending forever.
"""

from __future__ import annotations

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import (
    IMMEDIATE,
    LIMITED,
    PATH,
    STOPS,
    Alarms,
    Code,
    EffortGuard,
    GuardUse,
    JointStates,
    Outcome,
)
from robot_dynid.execution.pieces import RENEWAL, Pieces, in_pieces, shortage
from robot_dynid.execution.segment import (
    UNDER_WAY,
    Cancel,
    Commands,
    Finish,
    Phase,
    Segment,
    Send,
    segment_faults,
)
from robot_dynid.execution.stopping import Slowing, Stopping, decelerating, slowing, way_on
from robot_dynid.execution.watchdog import SUCCEEDED, Rules, Watchdog, explained
from robot_dynid.types import FloatArray

SLOWEST_STOP = 0.2  # speed scaling below which the robot holds at once instead of decelerating


class Execution:
    """Executes the segments of a ``plan`` in order, and stops at the first irregularity.

    ``rules`` are its limits, ``watchdog`` checks them; ``use`` has the used share of the limits of
    the guards.
    """

    def __init__(self, plan: tuple[Segment, ...], rules: Rules, states: JointStates,
                 alarms: Alarms | None = None) -> None:
        self.phase = Phase.READY
        self.outcome: Outcome | None = None
        self.rules = rules
        self.plan = tuple(in_pieces(segment, rules.pacing) for segment in plan)
        self._states = states
        self._alarms = alarms or Alarms(states.joints, rules.settings)
        self.use = GuardUse(states.joints)
        self.watchdog = Watchdog(rules, states, self.use)
        self._alarms.attention, self._alarms.use = self.watchdog.attention, self.use
        self._effort = EffortGuard(states.joints, rules.limits.effort, rules.settings, self.use)
        self._index = -1
        self._current = self.plan[0]  # of the plan, or of its rest after a pause
        self._pieces = Pieces(self._current, rules.pacing)
        self._sent = self._pieces.followed.segment  # of what was sent, the last known to be taken
        self._slowing: Slowing | None = None  # under way, or ended in a pause
        self._pause_asked = False
        self._stopping: Stopping | None = None

    @property
    def segment(self) -> Segment:
        """The segment being executed, or the last one."""
        return self._current

    @property
    def stopped_at(self) -> float | None:
        """Time at which a stop off the path was commanded, or None."""
        return None if self._stopping is None else self._stopping.since

    @property
    def comes_to_rest(self) -> bool:
        """Whether it is decelerating along the path, or paused."""
        return self._slowing is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the motion for its user, one sentence each, on anything unusual."""
        slowest = self.watchdog.path_time.slowest
        if slowest == 1.0:
            return ()
        return (f'speed scaling fell to {slowest:.3g}: the motion was slower than planned and '
                'excited the inertias less; set the speed to 100 % and excite again',)

    def doing(self, now: float) -> tuple[str, float]:
        """Return the name of the current activity and its progress, 0 to 1."""
        name, fraction = self._current.part(self._path_time(now))
        if self._slowing is not None and self._slowing.reason is None:
            name = 'pause'
        elif self._slowing is not None or self.phase is Phase.STOPPING:
            name = 'hold'
        return name, fraction

    def remaining(self, now: float) -> float:
        """Return the time until the end of all segments as planned, s; a pause adds nothing."""
        if self.phase is Phase.DONE:
            return 0.0
        later = sum(segment.points.duration for segment in self.plan[self._index + 1:])
        if self._index < 0:
            return later
        return later + max(self._current.points.duration - self._path_time(now), 0.0)

    def tracking_error(self, now: float) -> FloatArray:
        """Return desired minus measured position (n,) rad (m).

        After a stop, desired is the position when the stop began.
        """
        when = now if self.stopped_at is None else self.stopped_at
        return self.watchdog.error(self._current.points, when)

    def forbidden(self, now: float) -> Outcome | None:
        """Return the reason not to start now, or None."""
        reasons = [fault for segment in self.plan
                   for fault in segment_faults(segment, self.rules.longest)]
        short = [shortage(segment, self.rules.pacing) for segment in self.plan]
        reasons += [fault for fault in short if fault is not None]
        reasons += self._effort.preflight(self._states)
        if self.watchdog.visible(now) and self.watchdog.moving():
            reasons.append('the robot is already moving: wait until it stands still')
        refusal = Outcome(Code.INVALID, '; '.join(reasons)) if reasons else (
            self._alarms.begin(now) or self.watchdog.not_ready(self.plan[0], now))
        return refusal and Outcome(refusal.code, f'{refusal.text}; nothing was sent')

    def start(self, now: float) -> Commands:
        """Check everything and send the first segment, or finish with the reason not to."""
        self.watchdog.begin(now)
        refusal = self.forbidden(now)
        return self._send_next(now) if refusal is None else self._finish(refusal)

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
        trip = self._effort.check(self._states.effort)
        if trip is None and not self.watchdog.unattended(now):
            trip = self.watchdog.tracking(now)
        return self._stop(now, trip) if trip is not None else ()

    def on_controller_state(self, now: float, elapsed: float, reference: FloatArray,
                            measured: float | None = None, scaling: float | None = None) -> bool:
        """Record the controller's state: ``elapsed`` s into a motion, at ``reference`` (n,).

        It arrived ``now`` and was measured at ``measured`` (None: now); ``scaling`` is the time of
        its motions per real time. Returns whether that motion is known to be the one of this
        execution.
        """
        self.watchdog.note_controller(now)
        true = now if measured is None else measured
        return self.watchdog.note_reference(true, elapsed, reference, now - true, scaling)

    def bridge(self, now: float, measured: float, position: FloatArray, velocity: FloatArray
               ) -> Commands:
        """React to the controller's ``measured`` values (n,) while joint states are missing.

        They arrived ``now`` and were measured at ``measured``, s.
        """
        if not self._states.bridge(now, measured, position, velocity) or (
                self.phase not in UNDER_WAY):
            return ()
        trip = self.watchdog.tracking(now)
        return self._stop(now, trip) if trip is not None else ()

    def react(self, now: float) -> Commands:
        """React to the latest state of the controller.

        Stop if it shows another motion, or follows another program's goal. Otherwise send the next
        piece if it is due: the controller's time is never known better.
        """
        if self.phase not in UNDER_WAY or self.phase is Phase.PAUSED:
            return ()
        trip = self.watchdog.taken_over(now)
        if trip is not None:
            return self._stop(now, trip)
        return self._renew(now) if self._following else ()

    def on_goal_of_another(self, now: float) -> None:
        """Record that the controller accepted a goal that is not of this execution.

        Its next state shows which one it follows, and so how to stop, see `react`.
        """
        if self.phase in UNDER_WAY and self.phase is not Phase.PAUSED:
            self.watchdog.foreign_goal = now

    def on_feedback(self, now: float) -> None:
        """Record that the controller sent feedback for the current goal."""
        self.watchdog.feedback = now

    def on_accepted(self, now: float) -> Commands:
        """React to the acceptance of the goal sent last."""
        if self.phase is Phase.STOPPING and self._stopping is not None:
            return self._stopping.accepted(now)
        if self.phase is Phase.DONE:
            return (Cancel(),)
        if self.phase is Phase.RUNNING and self._pieces.unanswered:
            piece = self._pieces.taken()
            self._sent = piece.segment
            if self._slowing is not None:
                self._slowing = Slowing.after(piece, self._slowing.reason)
        elif self.phase is not Phase.SENDING:
            return ()
        self.phase = Phase.RUNNING
        self.watchdog.follow(self._sent, now)
        return ()

    def on_rejected(self, now: float) -> Commands:
        """React to the rejection of the goal sent last; an earlier one continues."""
        if self._stopping is not None:
            return self._finished(self._stopping.confirm(now))
        text = ('the controller rejected the trajectory: see its log (it may be inactive, or have '
                'other joints)')
        self.watchdog.ignored()
        if self.phase is Phase.RUNNING and self._pieces.unanswered:
            self._pieces.refused()
            return self._run_out(now, Outcome(Code.REJECTED, text))
        if self.phase is not Phase.SENDING:
            return ()
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
            ended = explained(status, code, text)
            if ended.code is Code.TAKEN_OVER:
                return self._stop(now, ended)
            return self._finish(self._located(ended))
        blind = self._ending is not None and not self.watchdog.visible(now)
        missed = None if blind else self.watchdog.missed(self._sent.points)
        if missed is not None:
            return self._finish(self._located(missed))
        if self._slowing is None and not self._pieces.complete:
            self._run_out(now, self._not_continued(now))
        return self._send_next(now) if self._slowing is None else self._rest(now)

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
        """Stop on request, with the kind of stop set for the reason."""
        if self.phase is Phase.READY:
            return self._finish(outcome)
        if self.phase is Phase.PAUSED and outcome.code in (Code.CANCELLED, Code.TEMPERATURE):
            located = self._located(outcome)
            return self._finish(Outcome(located.code, f'{located.text}; the robot holds'))
        return self._stop(now, outcome) if self.phase in UNDER_WAY else ()

    def pause(self, now: float) -> Commands:
        """Come to rest along the path, as soon as the limits allow it.

        Raises UsageError if nothing moves, or if it is already coming to rest.
        """
        if self.phase not in (Phase.SENDING, Phase.RUNNING):
            raise UsageError(f'nothing to pause: the execution is {self.phase.value}')
        if self._slowing is not None:
            raise UsageError('the robot is already coming to rest')
        self._pause_asked = True
        return self._slow_down(now, None)

    def resume(self, now: float) -> Commands:
        """Continue along the path from where the robot came to rest.

        Raises UsageError if it is not paused, or if the limits allow no start from there.
        """
        if self._pause_asked and self._slowing is None:
            self._pause_asked = False
            return ()
        if self.phase is not Phase.PAUSED or self._slowing is None:
            raise UsageError('not paused' if self._slowing is None else
                             'the robot is still coming to rest; ask again when it stands still')
        onward = way_on(self._current, self._slowing.rest, self.rules)
        self._slowing = None
        return self._send_next(now) if onward is None else self._send(onward, now)

    def tick(self, now: float, server_ready: bool = True) -> Commands:
        """React to the passing of time; call it about every 10 ms."""
        delayed = self.watchdog.look(now)
        if self._stopping is not None:
            return self._finished(self._stopping.wait(now))
        if self.phase not in UNDER_WAY:
            return ()
        if delayed is not None and self.phase is not Phase.PAUSED:
            return self.cancel(now, delayed)
        trip = self.watchdog.silence(now, server_ready) or self.watchdog.too_fast()
        commands = self._stop(now, trip) if trip is not None else ()
        if commands:
            return commands
        if self.phase is Phase.RUNNING and self._seen_at_end(now):
            return self.on_result(now, SUCCEEDED, 0, '')
        trip = (self.watchdog.abandoned(self._sent.remaining, now)
                if self.phase is Phase.RUNNING else
                self.watchdog.unanswered(now) if self.phase is Phase.SENDING else None)
        if trip is not None and self._ending is not None:
            return self._halt(now, self._ending)  # the controller does not do what stops it
        if trip is not None:
            return self._stop(now, trip)
        return self.on_alarm(now) or self._go_on(now)

    @property
    def _ending(self) -> Outcome | None:
        """Reason why the robot is coming to rest for good."""
        return None if self._slowing is None else self._slowing.reason

    def _seen_at_end(self, now: float) -> bool:
        """Return whether joint states, or time alone, prove the end without an answer.

        A lost answer, as by a delayed node, is sent again seconds later.
        """
        watchdog = self.watchdog
        if self.rules.answers and not (self._slowing is not None and self._slowing.by_itself):
            overdue = watchdog.late(self._sent.remaining, now) > 0.0
            return overdue and watchdog.arrived(self._sent, now)
        if self._ending is not None and not watchdog.visible(now):
            return watchdog.over(self._sent, now)
        return watchdog.arrived(self._sent, now)

    def _go_on(self, now: float) -> Commands:
        """Do the next step if nothing prevents it."""
        slowing, waited = self._slowing, now - self.watchdog.sent
        if self.phase is Phase.SENDING and slowing is not None and slowing.reason is not None:
            late = waited > self.rules.settings.cancel_timeout
            kind = LIMITED if slowing.kind == PATH else IMMEDIATE
            return self._halt(now, slowing.reason, kind) if late else ()
        if not self._following:
            return ()
        braking = self._slow_down(now, None) if self._pause_asked else ()
        if not braking and self._pieces.late(self.watchdog.elapsed(now),
                                             self.watchdog.path_time.pace):
            return self._run_out(now, self._not_continued(now))
        return braking

    @property
    def _following(self) -> bool:
        """Whether the controller follows the motion, and nothing stops it."""
        return self.phase is Phase.RUNNING and self._slowing is None

    def _renew(self, now: float) -> Commands:
        """Send the next piece of the motion if it is due."""
        watchdog, pieces, elapsed = self.watchdog, self._pieces, self.watchdog.elapsed(now)
        path_time = watchdog.path_time
        ready = watchdog.exact(now) and path_time.settled and not pieces.unanswered
        if not ready or pieces.late(elapsed, path_time.pace):
            return ()
        piece = pieces.next(elapsed, watchdog.reported, path_time.pace)
        if piece is None:
            return ()
        watchdog.send(piece.segment, now)
        return (Send.at(piece.segment, now),)

    def _run_out(self, now: float, reason: Outcome | None) -> Commands:
        """Let the robot come to rest by itself at the end of the current piece."""
        if self._slowing is None:
            located = None if reason is None else self._located(reason, now)
            self._slowing = Slowing.after(self._pieces.followed, located)
        return ()

    def _not_continued(self, now: float) -> Outcome:
        """Return the reason why the motion could not be continued in time."""
        watchdog = self.watchdog
        if watchdog.timed and not watchdog.exact(now):
            return Outcome(Code.CONTROLLER_LOST, 'no controller_state for '
                           f'{now - watchdog.controller:.2f} s (longest interval before: '
                           f'{watchdog.longest_silence:.2f} s), so the position in the motion is '
                           'unknown: have the controller publish it at 50 Hz or more '
                           '(state_publish_rate)')
        held_up = max(watchdog.held_up, now - watchdog.last_tick)
        if held_up > RENEWAL * self.rules.pacing.lookahead:
            return Outcome(Code.NODE_DELAYED, f'this node was held up for {held_up:.2f} s, too '
                           'long to continue the motion')
        if self._pieces.unanswered:
            return Outcome(Code.CONTROLLER_LOST, 'the controller did not answer the goal that '
                           f'continues the motion for {now - watchdog.sent:.2f} s')
        if not watchdog.timed and watchdog.lag > 0.0:
            return Outcome(Code.CONTROLLER_LOST, f'the controller runs {watchdog.lag:.2f} s late, '
                           'too late to continue the motion without a step: reduce the load '
                           'on its computer')
        if not watchdog.timed:
            return Outcome(Code.REJECTED, 'controller_state does not state the time in the '
                           'motion, so the motion cannot be continued without a step: use a '
                           'controller that fills reference.time_from_start')
        scaling, settled = watchdog.path_time.scaling, watchdog.path_time.settled
        if scaling != 1.0 or not settled:
            how = f'is {scaling:.3g}, at' if settled else 'changes all the time, with'
            return Outcome(Code.SPEED_SCALING, f'speed scaling {how} which the motion cannot be '
                           'continued within its limits; set the speed to 100 % and excite again')
        return Outcome(Code.NODE_DELAYED, 'this node was too late to continue the motion')

    def _slow_down(self, now: float, reason: Outcome | None) -> Commands:
        """Brake along the path; do nothing if that is impossible now."""
        if self.phase is not Phase.RUNNING:
            return ()
        elapsed, pace = self.watchdog.elapsed(now), self.watchdog.path_time.pace
        left = self._current.points.duration - elapsed
        # too late for any motion but the one that ends by itself
        if self._pieces.late(elapsed, pace) or (
                self._pieces.complete and left <= self.rules.pacing.join * pace):
            self._slowing = Slowing.after(self._pieces.followed, reason)
            return ()
        braking = slowing(self._current, elapsed, self.rules.pacing, self.watchdog.timed, pace)
        if braking is None:
            return ()
        self._slowing = braking.ending(reason)
        return self._transmit(braking.segment, now)

    def _rest(self, now: float) -> Commands:
        """Pause or end, once the robot stands still."""
        assert self._slowing is not None
        reason = self._slowing.reason
        if reason is not None:
            how = ('stopped along the path' if self._slowing.kind == PATH else
                   'decelerated within the limits')
            seen = ('the robot holds' if self.watchdog.visible(now) else
                    'confirmed but not seen: check that it stands')
            return self._finish(Outcome(reason.code, f'{reason.text}; {how}, {seen}'))
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
        """Send a motion that starts at rest, or the first piece of it."""
        self._current, self._pieces = segment, Pieces(segment, self.rules.pacing)
        return self._transmit(self._pieces.followed.segment, now)

    def _transmit(self, segment: Segment, now: float) -> Commands:
        self.phase, self._sent = Phase.SENDING, segment
        self.watchdog.send(segment, now)
        return (Send.at(segment, now),)

    def _stop(self, now: float, outcome: Outcome) -> Commands:
        """Stop as set for the cause, or harder if that is impossible now.

        Do nothing if the robot is already coming to rest at least as hard.
        """
        kind, located = self.rules.settings.stop_for(outcome.code), self._located(outcome, now)
        slowing = self._slowing
        if slowing is not None and self.phase is not Phase.PAUSED:
            if slowing.reason is not None and STOPS.index(kind) <= STOPS.index(slowing.kind):
                return ()
            if kind == PATH:
                self._slowing = slowing.ending(located)
                return ()
            if slowing.reason is not None:
                first = slowing.reason
                located = Outcome(first.code, f'{first.text}; while it stopped: {outcome.text}')
        # a motion that stops it would take long
        crawling = self.watchdog.path_time.scaling < SLOWEST_STOP
        if kind == IMMEDIATE or self.phase is not Phase.RUNNING or crawling:
            return self._halt(now, located)
        if kind == PATH:
            commands = self._slow_down(now, located)
            if self._slowing is not None:
                return commands
        braking = decelerating(self._current, self.watchdog, now, self.rules, located)
        if braking is None:
            return self._halt(now, located, LIMITED)
        self._slowing = braking
        return self._transmit(braking.segment, now)

    def _halt(self, now: float, located: Outcome, kind: str = IMMEDIATE) -> Commands:
        """Stop without a motion of ours: at once, or LIMITED by a hold on the topic."""
        answered = self.rules.answers and self.phase is not Phase.PAUSED
        self.phase, self.outcome = Phase.STOPPING, located
        self._stopping = Stopping(now, located, self.rules, self.watchdog, answered, kind)
        return self._stopping.begin()

    def _path_time(self, now: float) -> float:
        """Return the time of the current segment's points, s, as far as it is known."""
        if self._slowing is not None:
            return self._slowing.rest
        if self.phase is Phase.SENDING:
            return 0.0
        return self.watchdog.elapsed(now if self.stopped_at is None else self.stopped_at)

    def _located(self, outcome: Outcome, now: float | None = None) -> Outcome:
        """Return the outcome with the place where it occurred."""
        if now is None or self.phase is not Phase.RUNNING:
            return Outcome(outcome.code, f'{self._current.name}: {outcome.text}')
        time = self._path_time(now)
        name, at = self._current.part(time)[0], time + self._current.begin
        return Outcome(outcome.code, f'{name} at {at:.3f} s: {outcome.text}')

    def _finished(self, commands: Commands) -> Commands:
        """Use the outcome of a stop, if it has ended."""
        for command in commands:
            if isinstance(command, Finish):
                return self._finish(command.outcome)
        return commands

    def _finish(self, outcome: Outcome) -> Commands:
        self.phase, self.outcome = Phase.DONE, outcome
        return (Finish(outcome),)
