"""Watchdog of a motion under way: ages of messages, tracking error, the controller's results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dynid.execution.clocks import PACE_JITTER, PACE_TOLERANCE, Attention, PathTime
from robot_dynid.execution.guards import (
    BRIDGED,
    Code,
    GuardSettings,
    GuardUse,
    JointStates,
    Outcome,
    Tolerances,
)
from robot_dynid.execution.pace import REMEMBERED, Pacing
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Segment
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray

SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # action_msgs/GoalStatus
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5  # FollowJointTrajectory result
LONG_AGO = -np.inf
SAME_REFERENCE = 1e-4  # rad (m) between the controller's reference and ours
EARLY = 0.02  # s by which a motion may seem to have begun before it was sent
# The same for a controller that follows its path: the clock of a simulated robot may lag.
LAGGING = 0.1  # s
FRESH = 0.1  # s: allowed age of the controller's report of its time, for a motion to continue
STANDING_STEP = 1e-6  # rad (m) between two references of a controller that holds
BEHIND = 0.15  # s by which a controller lags that scales the speed without stating its time
REFERENCE_STEP = 0.005  # s between the instants of the path that are checked for that
# s for a holding controller to send the result with the reason
HOLDING_GRACE = 0.15
UNATTENDED = 1.0  # s for which a robot may move while the node is delayed
REFERENCE_PERIOD = 0.009  # s: some controllers publish every millisecond, and a check takes 0.1 ms


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of an execution: limits, guards, tolerances, longest segment in s.

    The effort limits among ``limits`` are in the unit of the joint states' effort. ``answers``:
    whether the controller answers (its action) or not (its topic). ``pacing`` has the settings for
    slowing down and starting again.
    """

    limits: MotionLimits
    settings: GuardSettings
    tolerances: Tolerances
    longest: float = 600.0
    answers: bool = True
    pacing: Pacing = field(default_factory=Pacing)


class Watchdog:
    """Times of all messages from the controller, and the timeouts on them.

    All times in s of the caller's steady clock. Ages are those of ``attention``, ``use`` records
    the used share of the limits; ``held_up`` is the longest delay of this program since a motion
    was sent last; at ``foreign_goal`` the controller was known to have accepted another program's
    goal.
    """

    def __init__(self, rules: Rules, states: JointStates, use: GuardUse | None = None) -> None:
        self._use = use or GuardUse(states.joints)
        self.sent = self.accepted = self.feedback = LONG_AGO
        self.controller = self.last_tick = LONG_AGO
        self.reference: SampledTrajectory | None = None
        self._begun = (LONG_AGO, LONG_AGO)
        self.timed = False
        self._next_check = self._timed_at = LONG_AGO
        self._segments: list[Segment] = []
        self._pending: list[tuple[Segment, float]] = []
        self._told = LONG_AGO
        self._last = (LONG_AGO, np.full(len(states.joints), np.nan))
        self._foreign: list[tuple[float, FloatArray]] = []
        self.foreign_goal = np.inf
        self.rules, self._states, self._settings = rules, states, rules.settings
        self.attention, self.held_up, self.reported = Attention(), 0.0, 0.0
        self.path_time, self.longest_silence = PathTime(), 0.0
        self._scaling: float | None = None

    def send(self, segment: Segment, now: float) -> None:
        """Record that a segment is sent, which the controller may follow from now on."""
        self.sent = self.feedback = now
        self.held_up = 0.0
        self._pending.append((segment, now))

    def follow(self, segment: Segment, now: float) -> None:
        """Record that the controller has accepted the goal sent last, and follows it from now on.

        It began between sending and acceptance, or long before if it continues a motion.
        """
        self.accepted = self.feedback = now
        self.reference = segment.followed
        self.path_time.restart(now)
        self._pending.clear()
        self._segments = [segment, *self._segments[:1]]
        if segment.elapsed == 0.0 or not self.path_time.located:
            latest = now if segment.elapsed == 0.0 else self.sent
            self._begun = (self.sent - segment.elapsed, latest - segment.elapsed)
            self.path_time.begin(*self._begun)
            self.timed, self._segments = False, [segment]
            self._next_check = LONG_AGO
            self._foreign.clear()

    def note_controller(self, now: float) -> None:
        """Record that a state of the controller arrived."""
        if self.controller > self.accepted:
            self.longest_silence = max(self.longest_silence, now - self.controller)
        self.controller = now

    def too_fast(self) -> Outcome | None:
        """Return the outcome for a controller that is faster than planned."""
        scaling = self.path_time.scaling
        if scaling <= 1.0 + PACE_JITTER or not self.path_time.settled:
            return None
        return Outcome(Code.SPEED_SCALING, f'speed scaling is {scaling:.3g}: the motion is faster '
                       'than planned; set the speed to 100 %')

    def ignored(self) -> None:
        """Record that the controller did not accept what was sent last."""
        self._pending.clear()

    def note_reference(self, now: float, elapsed: float, position: FloatArray, age: float = 0.0,
                       scaling: float | None = None) -> bool:
        """Record that the controller was at ``position`` (n,), ``elapsed`` s into a motion.

        ``now`` is the time of arrival, ``scaling`` the reported time of its motions per real time.
        Messages are late, not early: of the start times implied by messages at full pace, the
        earliest is the most accurate. ``timed``: the latest message belonged to the motion, or to
        its continuation; returns whether this one did, if it was checked. A delayed message
        (``age`` s) does not prove that the controller follows another motion by now.
        """
        self._told = now - elapsed if elapsed > 0.0 else LONG_AGO
        if scaling is not None:
            self.path_time.expect(scaling)
        started = any(segment.elapsed == 0.0 for segment, _ in self._pending)
        changed, self._scaling = scaling != self._scaling, scaling
        if started or self.reference is None or (
                now < self._next_check and not changed):
            return False
        self._next_check = now + REFERENCE_PERIOD
        place = self._place(now, elapsed, position)
        self.timed, self._last = place is not None, (now, position)
        if place is not None:
            self.path_time.note(now, *place, scaling)
            self._timed_at, self.reported = now, place[0]
            self._foreign.clear()
        elif self.path_time.located and age <= FRESH and np.all(np.isfinite(position)) \
                and not self._ended(now, position):
            self._foreign.append((now, position))
        return self.timed

    def _place(self, now: float, elapsed: float, position: FloatArray
               ) -> tuple[float, float] | None:
        """Return the time in the motion, s, and its rate, of a controller that follows it.

        It may not have switched yet to what was sent last.
        """
        if now - elapsed <= self._begun[0] - LAGGING and not self.path_time.located:
            return None
        places = []
        for segment in (*self._segments, *(segment for segment, _ in self._pending)):
            time, rate = segment.along(elapsed)
            away = np.abs(segment.followed.sample(time).position[0] - position)
            if time > segment.followed.time[0] and np.all(away <= SAME_REFERENCE):
                places.append((abs(time - self.elapsed(now)), time, rate))
        return min(places)[1:] if places else None

    def _ended(self, now: float, position: FloatArray) -> bool:
        """Return whether the controller holds ``position`` (n,), the end of what was sent."""
        followed = [self.reference, *(segment.followed for segment, _ in self._pending)]
        return any(
            reference is not None and self.elapsed(now) > reference.duration - EARLY
            and bool(np.all(np.abs(reference.position[-1] - position) <= SAME_REFERENCE))
            for reference in followed)

    def taken_over(self, now: float) -> Outcome | None:
        """Return the outcome for a controller that follows neither of the motions sent to it.

        In two messages in a row, once it was known to follow one. A controller that begins to hold
        may have a reason of its own, which it states in the result of the goal. Also for a
        controller that accepted another program's goal, whichever it follows now.
        """
        if self._last[0] > self.foreign_goal:
            return goal_of_another()
        if self.reference is None or len(self._foreign) < 2:
            return self._scaled_unseen(now)
        (first, _), (at, position) = self._foreign[0], self._foreign[-1]
        stands = bool(np.all(np.abs(position - self._foreign[-2][1]) <= STANDING_STEP))
        if stands and now - first <= HOLDING_GRACE:
            return None
        away = np.abs(position - self.reference.sample(self.elapsed(now)).position[0])
        return self._astray(at, position, away)

    def _astray(self, at: float, position: FloatArray, away: FloatArray) -> Outcome:
        """Return the outcome for a controller that commanded ``position``, ``away`` from ours.

        (n,) each, ``at`` s. It may follow what was sent in a different way, or something else.
        """
        points = self._segments[0].points
        ahead = points.time > self.elapsed(at)
        if np.any(ahead & np.all(np.abs(points.position - position) <= STANDING_STEP, axis=1)):
            return Outcome(Code.REJECTED, 'the controller steps from point to point without '
                           'interpolation; set its parameter interpolation_method to splines')
        i = int(np.argmax(away))
        return Outcome(
            Code.TAKEN_OVER, f"the controller commands joint '{self._states.joints[i]}' "
            f'{away[i]:.3g} off the motion that was sent: another program has taken it over; stop '
            'that program and excite again')

    def _scaled_unseen(self, now: float) -> Outcome | None:
        """Return the outcome for a controller that scales the speed but never stated its time."""
        heard, commanded = self._last
        if self.path_time.located or self.reference is None or now - heard > FRESH:
            return None
        scaling, due = self.path_time.scaling, self.elapsed(heard) - BEHIND
        reported = abs(scaling - 1.0) > PACE_TOLERANCE
        if due < self.reference.time[0] or not (reported or self._behind(due, commanded)):
            return None
        factor = f'is {scaling:.3g}' if reported else 'is below 1'
        return Outcome(Code.SPEED_SCALING, f'speed scaling {factor}, and the controller does not '
                       'state the time in the motion, so it cannot be followed: set the speed to '
                       '100 %')

    def _behind(self, due: float, commanded: FloatArray) -> bool:
        """Return whether ``commanded`` (n,) is on the path before its time ``due``, s."""
        assert self.reference is not None
        times = np.arange(max(due - REMEMBERED, self.reference.time[0]), due, REFERENCE_STEP)
        if len(times) < 2:
            return False
        motion = self.reference.sample(times)
        begin, step = motion.position[:-1], np.diff(motion.position, axis=0)
        square = np.sum(step**2, axis=1)
        moves = square > (self._settings.rest_velocity * REFERENCE_STEP)**2
        part = np.sum((commanded - begin) * step, axis=1) / np.where(moves, square, 1.0)
        nearest = begin + np.clip(part, 0.0, 1.0)[:, None] * step
        return bool(np.any(moves & np.all(np.abs(nearest - commanded) <= SAME_REFERENCE, axis=1)))

    def begun_after(self, time: float) -> bool:
        """Return whether the controller reports a motion begun at ``time`` s or later."""
        return self._told > time - EARLY

    @property
    def lag(self) -> float:
        """Time, s, by which the controller reports the motion to have begun before it was sent.

        0 below `LAGGING`, and without a report.
        """
        lag = self._begun[0] - self._told
        return lag if LAGGING <= lag < np.inf else 0.0

    def exact(self, now: float) -> bool:
        """Return whether the time of the controller in its motion is known exactly."""
        return self.timed and self.attention.age(self._timed_at, now) <= FRESH

    def silent(self, now: float) -> bool:
        """Return whether the controller has been silent for half the time allowed for states."""
        return self.attention.age(self.controller, now) > 0.5 * self._settings.state_timeout

    def elapsed(self, now: float) -> float:
        """Return the time of the motion that the robot follows, s."""
        return self.path_time.elapsed(now)

    def visible(self, now: float) -> bool:
        """Return whether the state of every joint is finite and recent."""
        age = self._oldest(now)[1]
        recent = age <= self._settings.state_timeout or self._bridged(age, now)
        return recent and not self._states.missing('position')

    def _bridged(self, age: float, now: float) -> bool:
        """Return whether the controller's feedback replaces states that are ``age`` s old."""
        timeout, states = self._settings.state_timeout, self._states
        heard = self.attention.age(states.bridged, now)
        return age <= timeout + BRIDGED and heard <= timeout

    def moving(self) -> bool:
        """Return whether the latest states show a moving joint."""
        speed = np.nan_to_num(self._states.speed)
        return bool(np.any(np.abs(speed) > self._settings.rest_velocity))

    def begin(self, now: float) -> None:
        """Record the start of regular checks."""
        self.attention.begin(now)
        self.last_tick = now

    def unattended(self, now: float) -> bool:
        """Return whether the last check is so old that the next one ends the motion."""
        return now - self.last_tick > UNATTENDED

    def look(self, now: float) -> Outcome | None:
        """Record that all messages were processed now; return the outcome of a check far too late.
        """
        gap = self.attention.look(now)
        self.held_up, self.last_tick = max(self.held_up, gap), now
        if gap <= UNATTENDED:
            return None
        return Outcome(Code.NODE_DELAYED, f'this node was held up for {gap:.2f} s, in which '
                       'nobody watched the robot')

    def _oldest(self, now: float) -> tuple[str, float]:
        """Return the joint with the oldest state, and its age, s."""
        joint, age = self._states.oldest(now)
        return joint, self.attention.age(now - age, now)

    def not_ready(self, segment: Segment, now: float) -> Outcome | None:
        """Return the reason why the segment cannot start here and now."""
        states = self._states
        blind = unseen(states, self._settings.state_timeout, self._oldest(now))
        if blind is not None:
            return blind
        start = segment.points.position[0]
        at = states.position if self.reference is None else states.near(start)
        away = np.abs(start - at)
        allowed = self.rules.tolerances.start
        if not np.any(away > allowed):
            return None
        i = int(np.argmax(away - allowed))
        return Outcome(Code.TRACKING_ERROR, f"joint '{states.joints[i]}' is {away[i]:.4g} away "
                       f'from the start (limit {allowed[i]:.4g}): nothing was sent, the robot '
                       'holds')

    def error(self, waiting: SampledTrajectory, now: float) -> FloatArray:
        """Return desired minus measured position (n,) rad (m).

        Before a motion is followed, desired is the start of the ``waiting`` motion.
        """
        reference, elapsed = self.reference, self.elapsed(now)
        if reference is None:
            reference, elapsed = waiting, 0.0
        desired = reference.sample(elapsed).position[0]
        return np.asarray(desired - self._states.near(desired))

    def tracking(self, now: float) -> Outcome | None:
        """Return the outcome for a joint off its trajectory, within the window in time.

        It was there between the time of its stamp and the arrival of its latest state; a stamp
        from before the stored references says nothing about the present.
        """
        if self.reference is None:
            return None
        arrived = min(now, max(float(np.max(self._states.arrival)), self._states.bridged))
        true = min(arrived, self._states.measured)
        if now - true > REMEMBERED:
            return None
        low, high = self._span(true, arrived)
        measured = self._states.near(0.5 * (low + high))
        error = np.maximum(low - measured, measured - high)
        allowed = self.rules.tolerances.tracking
        self._use.note('tracking error', error / allowed)
        if not np.any(error > allowed):
            return None
        heard, commanded = self._last
        low, high = self._span(heard, heard)
        away = np.nan_to_num(np.maximum(low - commanded, commanded - high))
        if now - heard <= FRESH and np.any(away > self.rules.tolerances.start):
            return self._astray(heard, commanded, away)
        i = int(np.argmax(error - allowed))
        return Outcome(
            Code.TRACKING_ERROR,
            f"joint '{self._states.joints[i]}' is at {measured[i]:.4g}, {error[i]:.4g} off its "
            f'trajectory (limit {allowed[i]:.4g})')

    def _span(self, begin: float, end: float) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest position (n,) desired between two instants, s.

        Until a superseding goal is known to be accepted, both goals may be followed.
        """
        assert self.reference is not None
        window = self._settings.tracking_window
        low, high = self.reference.span(
            self.elapsed(begin) - window - (
                0.0 if self.path_time.located else self.path_time.lead),
            self.elapsed(end) + self.path_time.lead + window)
        for pending, sent in self._pending:
            smallest, largest = pending.followed.span(
                pending.elapsed - window, pending.elapsed + max(end - sent, 0.0) + window)
            low, high = np.minimum(low, smallest), np.maximum(high, largest)
        return low, high

    def silence(self, now: float, server_ready: bool) -> Outcome | None:
        """Return the outcome for a source silent for too long while a goal is sent or running."""
        joint, age = self._oldest(now)
        if not server_ready:
            text = ('the action server of the controller is gone' if self.rules.answers else
                   'the topic of the controller has no subscriber any more')
            return Outcome(Code.CONTROLLER_LOST, text)
        self._use.note('age of joint states', age / self._settings.state_timeout)
        if age > self._settings.state_timeout and not self._bridged(age, now):
            return Outcome(Code.STALE_STATES, f"no state of joint '{joint}' {since(age)} (limit "
                           f'{self._settings.state_timeout:.3g} s)')
        age = self.attention.age(self.controller, now)
        if self.controller > LONG_AGO:
            self._use.note('age of controller_state', age / self._settings.controller_timeout)
        if self.controller > LONG_AGO and age > self._settings.controller_timeout:
            return Outcome(Code.CONTROLLER_LOST, f'no controller state {since(age)}')
        return None

    def unanswered(self, now: float) -> Outcome | None:
        """Return the outcome if a goal just sent stays without answer."""
        age = self.attention.age(self.sent, now)
        if age <= self._settings.acceptance_timeout:
            return None
        return Outcome(Code.CONTROLLER_LOST,
                       f'the controller did not answer the goal {since(age)}')

    def abandoned(self, remaining: float, now: float) -> Outcome | None:
        """Return the outcome if a goal, ``remaining`` s long, has no feedback or no end.

        A controller whose state shows that it follows the motion needs no feedback: that of one
        just started may be connected late. There is none after the end.
        """
        age = self.attention.age(self.feedback, now)
        silent = age > self._settings.feedback_timeout and not self.exact(now)
        due = self.accepted + remaining + self.path_time.lost(now)
        if self.rules.answers and silent and now <= due:
            return Outcome(Code.CONTROLLER_LOST, f'no feedback of the controller {since(age)}')
        late = self.late(remaining, now)
        if late <= self._settings.result_timeout:
            return None
        if self.rules.answers:
            return Outcome(Code.CONTROLLER_LOST, 'the controller sends no result although the '
                           f'motion and its goal time ended {late:.3g} s ago')
        return Outcome(Code.TRACKING_ERROR, 'the robot does not come to rest at the end of the '
                       f'motion, which with its goal time was {late:.3g} s ago')

    def late(self, remaining: float, now: float) -> float:
        """Return the time since the end of a goal, ``remaining`` s long, and its goal time, s."""
        due = self.accepted + remaining + self.rules.tolerances.goal_time
        return self.attention.age(due + self.path_time.lost(now), now)

    def over(self, segment: Segment, now: float) -> bool:
        """Return whether the time of the motion is over."""
        gone = now - self.accepted - self.path_time.lost(now)
        return gone > segment.remaining + self._settings.tracking_window

    def arrived(self, segment: Segment, now: float) -> bool:
        """Return whether the motion is over and the robot stands at its end."""
        at_rest = self.over(segment, now) and not self.moving()
        return at_rest and self.missed(segment.points) is None

    def missed(self, points: SampledTrajectory) -> Outcome | None:
        """Return the outcome for a joint off the goal although the controller reports success."""
        error = np.abs(points.position[-1] - self._states.near(points.position[-1]))
        allowed = self.rules.tolerances.goal
        if not np.any(error > allowed):
            return None
        i = int(np.argmax(error - allowed))
        return Outcome(
            Code.TRACKING_ERROR,
            f"the controller reports success, but joint '{self._states.joints[i]}' is "
            f'{error[i]:.4g} away from the end (limit {allowed[i]:.4g}): check that no other '
            'program commands it')

    def stopping_point(self, now: float) -> tuple[FloatArray, float]:
        """Return the pose (n,) rad (m) and the time s of coming to rest within the limits.

        From the measured state; if that is missing or old by its stamps, from the trajectory,
        which was followed while states arrived. A quintic from speed v to rest over v T / 2
        decelerates with at most 1.5 v / T; a measured v beyond its limit is an error of
        measurement, and would take the robot far, for long. Without states and with a motion in
        pieces it is the end of the piece, where the robot comes to rest anyway: this does not make
        a controller jump that was frozen elsewhere.

        The controller goes there from what it commands, not from what was measured, which a push,
        one false state, or a whole turn may have taken far away. A quintic over a distance d that
        remains at rest has a peak speed of 1.875 d / T and a peak acceleration of 5.78 d / T^2;
        beginning at up to the limit of speed it stays below it with the factor here.
        """
        limits, lookahead = self.rules.limits, self.rules.pacing.lookahead
        position, velocity = self._states.position, np.nan_to_num(self._states.speed)
        recent = now - self._states.measured <= self._settings.state_timeout
        motion = None if self.reference is None else self.reference.sample(self.elapsed(now))
        if motion is not None and self.visible(now) and recent:
            position = self._states.near(motion.position[0])
        elif self.reference is not None and motion is not None:
            position, velocity = motion.position[0], motion.velocity[0]
            if lookahead > 0.0:
                left = max(self.reference.duration - self.elapsed(now), 0.5 * lookahead)
                return self.reference.position[-1], left
        velocity = np.clip(velocity, -limits.velocity, limits.velocity)
        duration = max(0.1, float(np.max(1.5 * np.abs(velocity) / limits.acceleration)))
        goal = np.clip(position + 0.5 * duration * velocity, limits.lower, limits.upper)
        if motion is None:
            return goal, duration
        speed = np.minimum(np.abs(motion.velocity[0]), limits.velocity)
        distance = np.abs(goal - motion.position[0] - 0.5 * duration * motion.velocity[0])
        return goal, max(duration, float(np.max(np.maximum(
            2.2 * distance / (limits.velocity - 0.5 * speed),
            np.sqrt(5.78 * distance / limits.acceleration)))))


def goal_of_another(said: str = '') -> Outcome:
    """Return the outcome for a goal that another program sent, with the controller's text."""
    return Outcome(Code.TAKEN_OVER, f'another program sent a goal{said}')


def explained(status: int, code: int, text: str) -> Outcome:
    """Return the meaning of an unsuccessful result of the controller."""
    note = f' ({text})' if text else ''
    if status == ABORTED and code in (PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED):
        kind = 'path' if code == PATH_TOLERANCE_VIOLATED else 'goal'
        return Outcome(Code.TRACKING_ERROR, f'the controller stopped because its {kind} tolerance '
                       f'was exceeded{note}; it holds')
    if status == ABORTED and 'incoming action' in text:
        return goal_of_another(note)
    if status == ABORTED:
        return Outcome(Code.ABORTED, f'the controller aborted the motion with code {code}{note}; '
                       'was it deactivated, or did another program send a goal?')
    if status == CANCELED:
        return Outcome(Code.ABORTED, 'another program cancelled the motion; the controller holds')
    return Outcome(Code.ABORTED, f'the controller ended the motion with status {status}, code '
                   f'{code}{note}')


def unseen(states: JointStates, timeout: float, oldest: tuple[str, float]) -> Outcome | None:
    """Return the outcome for states older than ``timeout`` s or not finite, else None.

    ``oldest`` are the joint whose state is the oldest, and its age in s. A motion does not begin
    without.
    """
    joint, age = oldest
    if age > timeout:
        return Outcome(Code.STALE_STATES, f"no state of joint '{joint}' {since(age)}: activate "
                       'the joint state broadcaster')
    missing = states.missing('position')
    if missing:
        return Outcome(Code.STALE_STATES, f"the position of joint '{missing[0]}' is not finite")
    return None


def since(age: float) -> str:
    """Return the duration of a silence in words."""
    return f'for {age:.3f} s' if np.isfinite(age) else 'was ever received'
