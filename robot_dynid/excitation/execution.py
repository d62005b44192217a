"""Supervised execution of a plan: decides what to send and when to stop; sends nothing itself.

The caller reports events (joint states, answers of the controller, the passing of time) with the
time of its own steady clock, and carries out the commands it gets back. The answers of the
controller are never relied upon: a killed controller leaves them pending for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from robot_dynid.excitation.guards import Code, EffortGuard, JointStates, Outcome
from robot_dynid.excitation.sampled import faults
from robot_dynid.excitation.watch import NEVER, SUCCEEDED, Rules, Segment, Watch, explained
from robot_dynid.types import FloatArray


class Phase(Enum):
    """Where an execution stands."""

    READY = 'ready'
    SENDING = 'sending'
    RUNNING = 'running'
    STOPPING = 'stopping'
    DONE = 'done'


@dataclass(frozen=True, eq=False)
class Send:
    """Send this segment as a goal."""

    segment: Segment


@dataclass(frozen=True)
class Cancel:
    """Cancel the goal sent last, also when its acceptance is not known."""


@dataclass(frozen=True, eq=False)
class Hold:
    """Send a single point on the topic: come to rest at ``position`` (n,) in ``duration`` s."""

    position: FloatArray
    duration: float


@dataclass(frozen=True)
class Finish:
    """The execution is over."""

    outcome: Outcome


Command = Send | Cancel | Hold | Finish
Commands = tuple[Command, ...]
UNDER_WAY = (Phase.SENDING, Phase.RUNNING)


class Execution:
    """Runs the segments of a plan one after the other, and stops at the first irregularity."""

    def __init__(self, plan: tuple[Segment, ...], rules: Rules, states: JointStates) -> None:
        self.phase = Phase.READY
        self.outcome: Outcome | None = None
        self.stopped_at: float | None = None
        self._plan, self._rules, self._states = plan, rules, states
        self._watch = Watch(rules, states)
        self._effort = EffortGuard(states.joints, rules.limits.effort, rules.settings)
        self._index = 0
        self._confirmed = self._held = False

    @property
    def segment(self) -> Segment:
        """The segment being executed, or the last one."""
        return self._plan[min(self._index, len(self._plan) - 1)]

    def fraction(self, now: float) -> float:
        """Return the part of the current segment which is done, 0 to 1."""
        if self.phase is not Phase.RUNNING:
            return 0.0
        elapsed = now - self._watch.accepted
        return float(np.clip(elapsed / self.segment.points.duration, 0.0, 1.0))

    def tracking_error(self, now: float) -> FloatArray:
        """Return desired minus measured position (n,) rad (m).

        After a stop, what was desired when the stop began.
        """
        watch, elapsed = self._watch, 0.0
        if watch.accepted > NEVER and watch.accepted >= watch.sent:
            elapsed = (now if self.stopped_at is None else self.stopped_at) - watch.accepted
        error: FloatArray = self.segment.points.desired(elapsed) - self._states.position
        return error

    def start(self, now: float) -> Commands:
        """Check everything and send the first segment, or finish with INVALID."""
        found = [f'{s.name}: {fault}' for s in self._plan
                 for fault in faults(s.points, s.limits, self._rules.longest)]
        found += self._effort.preflight(self._states)
        if self._watch.visible(now) and self._watch.moving():
            found.append('the robot moves already; wait until it stands')
        self._watch.last_tick = now
        if found:
            return self._finish(Outcome(Code.INVALID, '; '.join(found) + '; nothing was sent'))
        return self._send(now)

    def on_state(self, now: float) -> Commands:
        """React to new joint states, which the caller has put into the JointStates."""
        if self.phase is Phase.STOPPING:
            return self._settle(now)
        if self.phase not in UNDER_WAY:
            return ()
        missing = self._states.missing('position')
        if missing:
            return self._stop(now, Outcome(
                Code.STALE_STATES, f"the position of joint '{missing[0]}' is not finite"))
        trip = self._effort.check(self._states.effort)
        if trip is None and self.phase is Phase.RUNNING:
            trip = self._watch.tracking(self.segment.points, now)
        return self._stop(now, trip) if trip is not None else ()

    def on_controller_state(self, now: float) -> None:
        """Note that the controller published its state."""
        self._watch.controller = now

    def on_feedback(self, now: float) -> None:
        """Note that the controller sent feedback for the current goal."""
        self._watch.feedback = now

    def on_accepted(self, now: float) -> Commands:
        """React to the acceptance of the goal sent last."""
        if self.phase is Phase.SENDING:
            self.phase = Phase.RUNNING
            self._watch.accepted = self._watch.feedback = now
            return ()
        return (Cancel(),) if self.phase in (Phase.STOPPING, Phase.DONE) else ()

    def on_rejected(self, now: float) -> Commands:
        """React to the rejection of the goal sent last."""
        if self.phase is Phase.STOPPING:
            return self._confirm(now)
        if self.phase is not Phase.SENDING:
            return ()
        return self._finish(self._located(Outcome(
            Code.REJECTED, 'the controller rejected the trajectory; its log says why (inactive? '
            'other joints?); the robot did not move')))

    def on_result(self, now: float, status: int, code: int, text: str) -> Commands:
        """React to the result of the current goal (action status, error code, error text)."""
        if self.phase is Phase.STOPPING:
            return self._confirm(now)
        if self.phase not in UNDER_WAY:
            return ()
        if status != SUCCEEDED or code != 0:
            return self._finish(self._located(explained(status, code, text)))
        missed = self._watch.missed(self.segment.points)
        if missed is not None:
            return self._finish(self._located(missed))
        self._index += 1
        if self._index < len(self._plan):
            return self._send(now)
        return self._finish(Outcome(Code.SUCCESS, 'done'))

    def on_cancel_answer(self, now: float, stopping: bool) -> Commands:
        """React to the answer to a cancel request; ``stopping``: the goal ends or has ended."""
        if self.phase is not Phase.STOPPING:
            return ()
        return self._confirm(now) if stopping else self._hold(now)

    def cancel(self, now: float, outcome: Outcome) -> Commands:
        """Stop because somebody asks for it."""
        if self.phase in UNDER_WAY:
            return self._stop(now, outcome)
        return self._finish(outcome) if self.phase is Phase.READY else ()

    def tick(self, now: float, server_ready: bool = True) -> Commands:
        """React to the passing of time; call it every 10 ms or so."""
        excused = self._watch.held_up(now)
        if self.phase is Phase.STOPPING:
            return self._stopping(now)
        if self.phase not in UNDER_WAY or excused:
            return ()
        trip = self._watch.silence(now, server_ready)
        if trip is None and self.phase is Phase.SENDING:
            trip = self._watch.unanswered(now)
        if trip is None and self.phase is Phase.RUNNING:
            trip = self._watch.abandoned(self.segment.points.duration, now)
        return self._stop(now, trip) if trip is not None else ()

    def _send(self, now: float) -> Commands:
        trip = self._watch.not_ready(self.segment, now)
        if trip is not None:
            return self._finish(self._located(trip))
        self.phase = Phase.SENDING
        self._watch.sent = self._watch.feedback = now
        return (Send(self.segment),)

    def _stop(self, now: float, outcome: Outcome) -> Commands:
        self.outcome = self._located(outcome, now)
        self.phase, self.stopped_at = Phase.STOPPING, now
        commands: Commands = (Cancel(),)
        if outcome.code is Code.CONTROLLER_LOST:
            commands += self._hold(now)
        return commands

    def _stopping(self, now: float) -> Commands:
        assert self.stopped_at is not None
        waited = now - self.stopped_at
        if waited > self._rules.settings.stop_timeout:
            return self._finish(self._doubtful())
        if not self._confirmed and waited > self._rules.settings.cancel_timeout:
            return self._hold(now)
        return ()

    def _confirm(self, now: float) -> Commands:
        self._confirmed = True
        return self._settle(now)

    def _settle(self, now: float) -> Commands:
        """Finish once the stop is confirmed and the robot is seen at rest, or cannot be seen."""
        if not self._confirmed or self.outcome is None:
            return ()
        visible = self._watch.visible(now)
        if visible and self._watch.moving():
            return ()
        seen = 'the robot holds' if visible else 'confirmed but not seen: check that it stands'
        return self._finish(Outcome(
            self.outcome.code, f'{self.outcome.text}; motion cancelled, {seen}'))

    def _hold(self, now: float) -> Commands:
        """Bring the robot to rest by a message on the topic, once."""
        if self._held:
            return ()
        self._held = True
        return (Hold(*self._watch.stopping_point(self.segment.points, now)),)

    def _doubtful(self) -> Outcome:
        """Return the outcome of a stop that was not confirmed in time."""
        assert self.outcome is not None
        code, text = self.outcome.code, self.outcome.text
        if self._confirmed:
            return Outcome(code, f'{text}; the controller confirmed the stop, but the robot still '
                           'moves: check it')
        if code in (Code.STALE_STATES, Code.CANCELLED):
            code = Code.CONTROLLER_LOST
        return Outcome(code, f'{text}; the controller does not answer the cancel request: a hold '
                       'was sent on its topic as well, check that the robot stands')

    def _located(self, outcome: Outcome, now: float | None = None) -> Outcome:
        where = self.segment.name
        if now is not None and self.phase is Phase.RUNNING:
            where += f' at {now - self._watch.accepted:.3f} s'
        return Outcome(outcome.code, f'{where}: {outcome.text}')

    def _finish(self, outcome: Outcome) -> Commands:
        self.phase, self.outcome = Phase.DONE, outcome
        return (Finish(outcome),)
