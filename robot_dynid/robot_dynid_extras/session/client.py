"""An adaptive session over the action of an excitation node: swing after swing until it is over.

Every swing is planned from the recordings of those before it, shown, agreed to, and executed as it
was shown. What was recorded stays with the node, whatever ends the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_dynid.errors import Cancelled
from robot_dynid.excitation.planned.sine_sequence import ADAPTIVE, LONGEST
from robot_dynid.execution.guards import Code
from robot_dynid.ros.common.action_caller import ActionCaller, NotAnswered, calling
from robot_dynid.ros.common.stop_request import StopRequest, stop_request
from robot_dynid.ros.excitation.plan import DATA
from robot_dynid.types import Progress
from robot_dynid.yaml_text import yaml_text
from robot_dynid_interfaces.action import Excite

Asked = Callable[[Excite.Goal], Excite.Result]
#: how a session ends; the accuracy is met in the first case only
MET, OUT_OF_REACH, OUT_OF_TIME = 'met', 'out of reach', 'out of time'
DECLINED, STOPPED, FAILED, SILENT = 'declined', 'stopped', 'failed', 'node silent'


@dataclass(frozen=True)
class Session:
    """Request of a session: ``options`` of an adaptive sequence, ``longest`` [s] of all swings.

    ``recordings`` are those of sessions before, as the node finds them.
    """

    options: Mapping[str, Any]
    longest: float
    recordings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operator:
    """Operator of a session: ``agrees`` to a motion from its dry run, sees ``progress``."""

    agrees: Callable[[Excite.Result], bool]
    progress: Progress


@dataclass
class Swing:
    """One motion: what was shown, what became of it, its bag, and the accuracy expected then."""

    shown: str
    duration: float
    expected: float
    code: str = ''
    message: str = ''
    recording: str = ''


@dataclass
class _Course:
    """A session under way."""

    session: Session
    recordings: list[str]
    swings: list[Swing] = field(default_factory=list)
    deviation: float | None = None
    unreachable: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """Time that is left for swings, s."""
        return self.session.longest - sum(s.duration for s in self.swings if s.recording)

    def goal(self, longest: float) -> Excite.Goal:
        """Return the dry run of the next swing of ``longest`` s of them."""
        options = {**self.session.options, 'procedure': ADAPTIVE, 'longest': longest}
        if self.recordings:
            options[DATA] = self.recordings
        return Excite.Goal(type='sine-sequence', options=yaml_text(options), dry_run=True)


def run_session(
    node: str, session: Session, operator: Operator, timeout: float
) -> dict[str, Any]:
    """Run a session with the excitation ``node``, which may be silent for ``timeout`` s.

    Signals that end a program cancel the motion under way; the robot holds, and its bag is among
    the results. Raises NotAnswered where the node is not there at the beginning.
    """
    course = _Course(session, list(session.recordings))
    with calling(Excite, f'{node}/excite', timeout) as caller, \
            stop_request(caller.wake) as stop:
        try:
            ended, message = _run(caller, course, operator, stop)
        except NotAnswered as error:
            if not course.swings:
                raise
            ended, message = SILENT, (
                f'{error} What was recorded of a motion under way is in its recording_directory')
        except (Cancelled, KeyboardInterrupt):  # before a goal; while the operator was asked
            ended, message = STOPPED, 'stopped before the next motion'
    return {
        'ok': ended == MET, 'ended': ended, 'message': message,
        'largest_deviation': course.deviation, 'out_of_reach': list(course.unreachable),
        'recordings': course.recordings, 'swings': [vars(swing) for swing in course.swings]}


def _run(
    caller: ActionCaller, course: _Course, operator: Operator, stop: StopRequest
) -> tuple[str, str]:
    """Go from swing to swing; return how the session ended, and the words of the node."""
    def stopping() -> bool:
        return stop.asked

    def asked(goal: Excite.Goal) -> Excite.Result:
        result: Excite.Result = caller.called(
            goal, lambda now: operator.progress(now.segment, float(now.fraction)), stopping)
        return result

    while True:
        shown, in_time = _next(course, asked)
        course.unreachable = tuple(shown.out_of_reach)
        if shown.code in (Code.ACCURACY_MET, Code.OUT_OF_REACH):
            course.deviation = float(shown.largest_deviation)
            return (MET if shown.code == Code.ACCURACY_MET else OUT_OF_REACH), shown.message
        if stopping():
            return STOPPED, 'stopped before the next motion'
        if not shown.success:
            return FAILED, shown.message
        if not in_time:
            return OUT_OF_TIME, (f'the {course.session.longest:g} s of swings are used up; next: '
                                 f'{shown.message}')
        with stop.interrupting():
            agreed = operator.agrees(shown)
        if not agreed:
            return DECLINED, 'the next motion was declined; nothing moved since'
        done = _executed(course, shown, asked)
        if not done.success:
            return (STOPPED if stopping() else FAILED), done.message


def _executed(course: _Course, shown: Excite.Result, asked: Asked) -> Excite.Result:
    """Let the node execute what was shown; return its result, with the motion in the course."""
    swing = Swing(shown.message, float(shown.duration), float(shown.largest_deviation))
    course.swings.append(swing)
    done = asked(Excite.Goal(trajectory=shown.plan))
    swing.code, swing.message = Code(done.code).name, done.message
    swing.recording = done.recording
    if done.recording:
        course.recordings.append(done.recording)
    return done


def _next(course: _Course, asked: Asked) -> tuple[Excite.Result, bool]:
    """Return the dry run of the next swing, and whether it is within the time."""
    whole = course.session.longest
    if course.left >= LONGEST.low:
        shown = asked(course.goal(course.left))
        if shown.code != Code.OUT_OF_REACH or course.left >= whole:
            return shown, True
    return asked(course.goal(whole)), False
