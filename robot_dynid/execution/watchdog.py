"""Watchdog of a motion under way: ages of messages, tracking error, the controller's results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robot_dynid.execution.guards import (
    Code,
    GuardSettings,
    JointStates,
    Outcome,
    Tolerances,
)
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Segment
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray

SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # action_msgs/GoalStatus
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5  # FollowJointTrajectory result
LONG_AGO = -np.inf
SAME = 1e-4  # rad (m) between the controller's reference and ours
EARLY = 0.02  # s by which a motion may seem to have begun before it was sent
REFERENCE_PERIOD = 0.009  # s: some controllers publish every millisecond, and a check takes 0.1 ms


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of an execution: limits, guards, tolerances, longest segment in s.

    The effort limits among ``limits`` are in the unit of the joint states' effort. ``answers``:
    whether the controller answers (its action) or not (its topic). ``pacing`` is how the
    motion is slowed down and started again.
    """

    limits: MotionLimits
    settings: GuardSettings
    tolerances: Tolerances
    longest: float = 600.0
    answers: bool = True
    pacing: Pacing = field(default_factory=Pacing)


class Watchdog:
    """Times of all messages from the controller, and the timeouts on them.

    All times in s of the caller's steady clock.
    """

    def __init__(self, rules: Rules, states: JointStates) -> None:
        self.sent = self.accepted = self.feedback = LONG_AGO
        self.controller = self.last_tick = LONG_AGO
        self.reference: SampledTrajectory | None = None
        self._begun = (LONG_AGO, LONG_AGO)
        self.timed = self._referenced = False
        self._next_check = LONG_AGO
        self._pending: Segment | None = None
        self.rules, self._states, self._settings = rules, states, rules.settings
        self._delayed = False

    def send(self, segment: Segment, now: float) -> None:
        """Note that a segment is sent, which the controller may follow from now on."""
        self.sent = self.feedback = now
        self._pending = segment

    def follow(self, segment: Segment, now: float) -> None:
        """Note that the controller has accepted the goal sent last, and follows it from now on.

        It began between sending and acceptance.
        """
        self.accepted = self.feedback = now
        latest = now if segment.elapsed == 0.0 else self.sent
        self.reference = segment.followed
        self._begun = (self.sent - segment.elapsed, latest - segment.elapsed)
        self._pending, self._next_check = None, LONG_AGO
        self.timed = self._referenced = False

    def note_reference(self, now: float, elapsed: float, position: FloatArray) -> None:
        """Note that the controller says it is ``elapsed`` s into a motion, at ``position`` (n,).

        Messages come late, not early: of the times since when the motion under way is followed,
        the earliest is the best. ``timed``: the latest message belonged to it.
        """
        if self._pending is not None or self.reference is None or now < self._next_check:
            return
        self._next_check = now + REFERENCE_PERIOD
        begun, (earliest, latest) = now - elapsed, self._begun
        expected = self.reference.sample(elapsed).position[0]
        self.timed = bool(elapsed > self.reference.time[0] and begun > earliest - EARLY
                          and np.all(np.abs(expected - position) <= SAME))
        if self.timed:
            latest = min(begun, latest) if self._referenced else begun
            self._begun, self._referenced = (min(earliest, latest), latest), True

    def elapsed(self, now: float) -> float:
        """Return the time of the motion which the robot follows, s."""
        earliest, latest = self._begun
        return now - (latest if self._referenced else 0.5 * (earliest + latest))

    def visible(self, now: float) -> bool:
        """Return whether the state of every joint is finite and recent."""
        recent = self._states.oldest(now)[1] <= self._settings.state_timeout
        return recent and not self._states.missing('position')

    def moving(self) -> bool:
        """Return whether the latest states say that a joint moves."""
        speed = np.nan_to_num(self._states.speed)
        return bool(np.any(np.abs(speed) > self._settings.rest_velocity))

    def was_delayed(self, now: float) -> bool:
        """Note a tick; True when the guards of age must be excused this time.

        Had the caller itself been held up, messages may wait that it has not taken in yet. That
        is an excuse for one tick, not for two in a row.
        """
        late = now - self.last_tick > 0.5 * self._settings.state_timeout
        self.last_tick = now
        self._delayed = late and not self._delayed
        return self._delayed

    def not_ready(self, segment: Segment, now: float) -> Outcome | None:
        """Return the reason why the segment cannot start here and now."""
        states = self._states
        joint, age = states.oldest(now)
        if age > self._settings.state_timeout:
            return Outcome(Code.STALE_STATES, f"no state of joint '{joint}' {since(age)}; is the "
                           'joint state broadcaster active?')
        missing = states.missing('position')
        if missing:
            return Outcome(
                Code.STALE_STATES, f"the position of joint '{missing[0]}' is not finite")
        away = np.abs(segment.points.position[0] - states.position)
        allowed = self.rules.tolerances.start
        if not np.any(away > allowed):
            return None
        i = int(np.argmax(away - allowed))
        return Outcome(Code.TRACKING_ERROR, f"joint '{states.joints[i]}' is {away[i]:.4g} away "
                       f'from the start, allowed are {allowed[i]:.4g}; not sent, the robot holds')

    def error(self, waiting: SampledTrajectory, now: float) -> FloatArray:
        """Return desired minus measured position (n,) rad (m).

        Before anything is followed, what is desired is the start of the ``waiting`` motion.
        """
        reference, elapsed = self.reference, self.elapsed(now)
        if reference is None:
            reference, elapsed = waiting, 0.0
        return np.asarray(reference.desired(elapsed) - self._states.position)

    def tracking(self, now: float) -> Outcome | None:
        """Return the outcome for a joint off its trajectory, granting it the window in time.

        Until a goal that supersedes another is known to be accepted, both may be followed.
        """
        if self.reference is None:
            return None
        window, measured = self._settings.tracking_window, self._states.position
        low, high = self.reference.span(
            now - self._begun[1] - window, now - self._begun[0] + window)
        if self._pending is not None:
            elapsed = self._pending.elapsed
            least, most = self._pending.followed.span(
                elapsed - window, elapsed + now - self.sent + window)
            low, high = np.minimum(low, least), np.maximum(high, most)
        error = np.maximum(low - measured, measured - high)
        allowed = self.rules.tolerances.tracking
        if not np.any(error > allowed):
            return None
        i = int(np.argmax(error - allowed))
        return Outcome(
            Code.TRACKING_ERROR,
            f"joint '{self._states.joints[i]}' is at {measured[i]:.4g}, {error[i]:.4g} off its "
            f'trajectory, allowed are {allowed[i]:.4g}')

    def silence(self, now: float, server_ready: bool) -> Outcome | None:
        """Return the outcome for a source silent for too long while a goal is sent or running."""
        joint, age = self._states.oldest(now)
        if not server_ready:
            text = ('the action server of the controller went away' if self.rules.answers else
                   'the topic of the controller has no subscriber any more')
            return Outcome(Code.CONTROLLER_LOST, text)
        if age > self._settings.state_timeout:
            return Outcome(Code.STALE_STATES, f"no state of joint '{joint}' {since(age)}, allowed "
                           f'are {self._settings.state_timeout:.3g} s')
        age = now - self.controller
        if self.controller > LONG_AGO and age > self._settings.controller_timeout:
            return Outcome(Code.CONTROLLER_LOST, f'no controller state {since(age)}')
        return None

    def unanswered(self, now: float) -> Outcome | None:
        """Return the trip when a goal just sent stays without answer."""
        age = now - self.sent
        if age <= self._settings.acceptance_timeout:
            return None
        return Outcome(Code.CONTROLLER_LOST,
                       f'the controller did not answer the goal {since(age)}')

    def abandoned(self, remaining: float, now: float) -> Outcome | None:
        """Return the trip when a goal, ``remaining`` s long, has no feedback or no end."""
        age = now - self.feedback
        if self.rules.answers and age > self._settings.feedback_timeout:
            return Outcome(Code.CONTROLLER_LOST, f'no feedback of the controller {since(age)}')
        late = now - self.accepted - remaining - self.rules.tolerances.goal_time
        if late <= self._settings.result_timeout:
            return None
        if self.rules.answers:
            return Outcome(Code.CONTROLLER_LOST, 'the controller sends no result although the '
                           f'motion and its goal time ended {late:.3g} s ago')
        return Outcome(Code.TRACKING_ERROR, 'the robot does not come to rest at the end of the '
                       f'motion, which with its goal time was {late:.3g} s ago')

    def arrived(self, segment: Segment, now: float) -> bool:
        """Return whether the motion is over and the robot stands at its end."""
        over = now - self.accepted > segment.remaining + self._settings.tracking_window
        return over and not self.moving() and self.missed(segment.points) is None

    def missed(self, points: SampledTrajectory) -> Outcome | None:
        """Return the outcome for a joint off the goal although the controller reports success."""
        error = np.abs(points.position[-1] - self._states.position)
        allowed = self.rules.tolerances.goal
        if not np.any(error > allowed):
            return None
        i = int(np.argmax(error - allowed))
        return Outcome(
            Code.TRACKING_ERROR,
            f"the controller reports success, but joint '{self._states.joints[i]}' is "
            f'{error[i]:.4g} away from the end, allowed are {allowed[i]:.4g}; does another '
            'program command it?')

    def stopping_point(self, now: float) -> tuple[FloatArray, float]:
        """Return the pose (n,) rad (m) and the time s of coming to rest within the limits.

        From the measured state; blind, from the trajectory, which was followed while it could be
        seen. A quintic from speed v to rest over v T / 2 decelerates with at most 1.5 v / T.
        """
        limits = self.rules.limits
        position, velocity = self._states.position, np.nan_to_num(self._states.speed)
        if not self.visible(now) and self.reference is not None:
            motion = self.reference.sample(self.elapsed(now))
            position, velocity = motion.position[0], motion.velocity[0]
        duration = max(0.1, float(np.max(1.5 * np.abs(velocity) / limits.acceleration)))
        goal = np.clip(position + 0.5 * duration * velocity, limits.lower, limits.upper)
        return goal, duration


def explained(status: int, code: int, text: str) -> Outcome:
    """Return the meaning of an unsuccessful result of the controller."""
    said = f' ({text})' if text else ''
    if status == ABORTED and code in (PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED):
        kind = 'path' if code == PATH_TOLERANCE_VIOLATED else 'goal'
        return Outcome(Code.TRACKING_ERROR, 'the controller stopped because its '
                       f'{kind} tolerance was broken{said}; it holds')
    if status == ABORTED:
        return Outcome(Code.ABORTED, f'the controller aborted the motion with code {code}{said}; '
                       'was it deactivated, or did another program send a goal?')
    if status == CANCELED:
        return Outcome(Code.ABORTED, 'another program cancelled the motion; the controller holds')
    return Outcome(Code.ABORTED, f'the controller ended the motion with status {status}, code '
                   f'{code}{said}')


def since(age: float) -> str:
    """Return the duration of a silence in words."""
    return f'for {age:.3f} s' if np.isfinite(age) else 'was ever received'
