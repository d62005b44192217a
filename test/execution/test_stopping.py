"""execution/stopping.py: which command follows which answer, when a stop counts as one, and what
is said; how late a stop along the path may come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS, RULES, excitation

from robot_dynid.execution.guards import IMMEDIATE, LIMITED, Code, Outcome
from robot_dynid.execution.pace import Stops
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Cancel, Finish, Hold, Segment
from robot_dynid.execution.stopping import Stopping, slowing, way_on

SINCE, LASTS = 10.0, 0.3
WHY = Outcome(Code.STALE_STATES, 'blind')
TOPIC = replace(RULES, answers=False)
TIMEOUT, PATIENCE = RULES.settings.stop_timeout, RULES.settings.cancel_timeout


@dataclass
class Seen:
    """What is known of robot and controller; a hold from here takes LASTS s."""

    robot: bool = True
    moves: bool = False
    controller: bool = True
    follows: bool = False

    def stopping_point(self, now: float) -> tuple[np.ndarray, float]:
        return np.array([now, 2.0]), LASTS

    def visible(self, now: float) -> bool:
        return self.robot

    def moving(self) -> bool:
        return self.moves

    def silent(self, now: float) -> bool:
        return not self.controller

    def begun_after(self, since: float) -> bool:
        return self.follows and since == SINCE


def stopping(seen: Any, rules: Any = RULES, answered: bool = True, kind: str = IMMEDIATE,
             outcome: Outcome = WHY) -> Stopping:
    return Stopping(SINCE, outcome, rules, seen, answered, kind)


def kinds(commands: Any) -> list[type]:
    return [type(command) for command in commands]


def said(commands: Any) -> tuple[Code, str]:
    (finish,) = commands
    assert isinstance(finish, Finish)
    return finish.outcome.code, finish.outcome.text


@pytest.mark.parametrize(('words', 'commands'), [
    ({}, [Cancel]), ({'outcome': replace(WHY, code=Code.CONTROLLER_LOST)}, [Cancel, Hold]),
    ({'answered': False}, [Cancel, Hold]), ({'rules': TOPIC, 'answered': False}, [Hold]),
    ({'kind': LIMITED}, [Hold]), ({'kind': LIMITED, 'answered': False}, [Cancel, Hold])])
def test_a_stop_begins_with_what_the_controller_may_answer(
    words: dict[str, Any], commands: list[type]
) -> None:
    begun = stopping(Seen(), **words).begin()
    assert kinds(begun) == commands
    holds = [command for command in begun if isinstance(command, Hold)]
    assert all((hold.position[0], hold.duration) == (SINCE, LASTS) for hold in holds)


def test_a_confirmed_stop_ends_once_the_robot_is_seen_at_rest() -> None:
    seen = Seen(moves=True)
    stop = stopping(seen)
    stop.begin()
    assert stop.settle(SINCE + 9.0) == (), 'it is not confirmed'
    assert stop.confirm(SINCE + 0.1) == (), 'it moves'
    seen.moves = False
    assert said(stop.settle(SINCE + 0.1)) == (
        WHY.code, 'blind; motion cancelled, the robot holds')
    seen.robot, seen.moves = False, True
    assert said(stop.settle(SINCE + 0.1))[1] == (
        'blind; motion cancelled, confirmed but not seen: check that it stands')


@pytest.mark.parametrize(('robot', 'text'), [
    (True, 'the robot holds'), (False, 'a hold was sent on its topic but not seen: check that it '
                                       'stands')])
def test_without_an_answer_a_hold_ends_after_its_time(robot: bool, text: str) -> None:
    stop = stopping(Seen(robot=robot), TOPIC, False)
    stop.begin()
    assert stop.wait(SINCE + 0.99 * LASTS) == ()
    assert said(stop.wait(SINCE + 1.01 * LASTS)) == (WHY.code, f'blind; motion cancelled, {text}')


def test_a_silent_controller_without_answers_is_left_to_the_end_of_its_piece() -> None:
    alone = Seen(robot=False, controller=False)
    stop = stopping(alone, TOPIC, False)
    assert stop.begin() == ()
    assert said(stop.wait(SINCE + 1.01 * LASTS))[1] == (
        'blind; the motion ends by itself, the controller is silent, so nothing was sent: check '
        'that it stands')
    for seen, rules in ((replace(alone, robot=True), TOPIC), (replace(alone, controller=True),
                                                             TOPIC),
                        (alone, replace(TOPIC, pacing=replace(TOPIC.pacing, lookahead=0.0))),
                        (alone, RULES)):
        assert Hold in kinds(stopping(seen, rules, False).begin())


def test_a_deceleration_ends_when_it_is_confirmed_and_over() -> None:
    stop = stopping(Seen(), kind=LIMITED)
    stop.begin()
    assert stop.confirm(SINCE + 0.99 * LASTS) == ()
    assert said(stop.wait(SINCE + 1.01 * LASTS))[1] == (
        'blind; decelerated within the limits, the robot holds')
    late = stopping(Seen(), kind=LIMITED)
    late.begin()
    (again,) = late.accepted(SINCE + 0.2)
    assert isinstance(again, Hold) and again.position[0] == SINCE + 0.2
    assert late.confirm(SINCE + 0.2 + 0.99 * LASTS) == (), 'it counts from the acceptance'
    assert kinds(late.settle(SINCE + 0.2 + 1.01 * LASTS)) == [Finish]


def test_what_is_not_confirmed_in_time_is_followed_by_the_next_harder() -> None:
    hard = stopping(Seen())
    hard.begin()
    assert hard.wait(SINCE + 0.99 * PATIENCE) == ()
    assert kinds(hard.wait(SINCE + 1.01 * PATIENCE)) == [Hold]
    assert hard.wait(SINCE + 1.02 * PATIENCE) == (), 'once'
    assert kinds(hard.accepted(SINCE + 0.1)) == [Cancel]
    gentle = stopping(Seen(), kind=LIMITED)
    gentle.begin()
    assert gentle.wait(SINCE + 0.99 * PATIENCE) == ()
    assert kinds(gentle.wait(SINCE + 1.01 * PATIENCE)) == [Cancel]
    assert kinds(gentle.accepted(SINCE + 0.1)) == [Cancel], 'it is a hard one now'
    followed = stopping(Seen(follows=True), kind=LIMITED)
    followed.begin()
    assert followed.wait(SINCE + 1.01 * PATIENCE) == ()
    assert said(followed.wait(SINCE + 1.01 * LASTS))[1].startswith('blind; decelerated')


@pytest.mark.parametrize(('code', 'told'), [
    (Code.STALE_STATES, Code.CONTROLLER_LOST), (Code.CANCELLED, Code.CONTROLLER_LOST),
    (Code.EFFORT_LIMIT, Code.EFFORT_LIMIT)])
def test_a_stop_that_nobody_confirms_is_doubtful_after_the_timeout(code: Code, told: Code) -> None:
    outcome = Outcome(code, 'blind')
    stop = stopping(Seen(moves=True), outcome=outcome)
    stop.begin()
    stop.wait(SINCE + 2.0 * PATIENCE)
    assert stop.wait(SINCE + 0.99 * TIMEOUT) == ()
    assert said(stop.wait(SINCE + 1.01 * TIMEOUT)) == (
        told, 'blind; the controller does not answer the cancel request: a hold was sent on its '
        'topic as well, check that the robot stands')
    stop.confirm(SINCE + 0.5)
    assert said(stop.wait(SINCE + 1.01 * TIMEOUT)) == (
        code, 'blind; the controller confirmed the stop, but the robot still moves: check it')


def test_a_hold_without_an_answer_is_doubtful_after_its_time_and_the_timeout() -> None:
    held = stopping(Seen(moves=True), TOPIC, False)
    held.begin()
    assert held.wait(SINCE + TIMEOUT + 0.99 * LASTS) == ()
    assert said(held.wait(SINCE + TIMEOUT + 1.01 * LASTS)) == (
        Code.CONTROLLER_LOST, 'blind; the controller does not stop at the hold sent on its topic, '
        'check that the robot stands')
    seen = Seen(robot=False, controller=False)
    alone = stopping(seen, TOPIC, False)
    alone.begin()
    seen.robot = seen.moves = True
    assert said(alone.wait(SINCE + TIMEOUT + 1.01 * LASTS))[1] == (
        'blind; the controller was silent, and still moves, check that the robot stands')


@pytest.mark.parametrize(('elapsed', 'end', 'found'), [
    (1.0, 1.0 + 0.1 + 1.0 + 0.049, True), (1.0, 1.0 + 0.1 + 1.0 + 0.051, False),
    (-0.5, 0.1 + 1.0 + 0.049, True), (-0.5, 0.1 + 1.0 + 0.051, False)])
def test_a_stop_along_the_path_ends_within_its_longest_time(
    elapsed: float, end: float, found: bool
) -> None:
    """After the time to switch, 0.1 s; a knot, 0.05 s, is granted."""
    begin = max(elapsed + 0.3, 0.25)
    segment = replace(excitation(0), stops=Stops(np.array([begin]), np.array([end - begin])))
    stop = slowing(segment, elapsed, RULES.pacing)
    assert (stop is not None) is found
    if stop is not None:
        assert stop.rest == pytest.approx(0.5 * (begin + end))
    assert slowing(segment, elapsed, replace(RULES.pacing, longest=0.0)) is None


def test_the_way_on_knows_what_precedes_it() -> None:
    segment = replace(excitation(0, 0.5), begin=2.0)
    onward = way_on(segment, 1.5, RULES)
    assert onward is not None
    assert onward.begin == pytest.approx(2.0 + segment.points.duration - onward.points.duration)
    assert onward.begin > 3.0
    rate = RULES.pacing.rate
    assert way_on(segment, segment.points.duration - 0.99 / rate, RULES) is None
    assert way_on(segment, segment.points.duration - 1.01 / rate, RULES) is not None


def steady(limit: float = 1e3, **more: Any) -> Segment:
    """Return 4 s of motion at constant speed 1 within a limit of acceleration."""
    time = np.arange(0.0, 4.005, 0.02)
    rows = [np.stack([row, 0.0 * row], axis=1) for row in (time, 1.0 + 0.0 * time, 0.0 * time)]
    limits = replace(LIMITS, upper=np.full(2, 9.0), acceleration=np.full(2, limit))
    return Segment('a', SampledTrajectory(JOINTS, time, *rows), limits, **more)


@pytest.mark.parametrize(('needed', 'length'), [
    (0.04, 0.05), (0.34, 0.35), (0.36, 0.4), (0.99, 1.0), (1.01, None)])
def test_a_stop_at_reduced_pace_is_the_shortest_within_the_limits(
    needed: float, length: float | None
) -> None:
    """From pace 0.5 to 0 in T s takes 0.75 / T at speed 1; it begins 0.1 s, 0.05 s on the path."""
    stop = slowing(steady(0.75 / needed), 2.0, RULES.pacing, continued=True, pace=0.5)
    assert (stop is None) is (length is None)
    if stop is None or length is None:
        return
    assert stop.rest == pytest.approx(2.05 + 0.25 * length)
    sent, reference = stop.segment.points, stop.segment.reference
    assert reference is not None and (stop.segment.elapsed, stop.kind) == (2.0, 'path')
    assert [sent.time[0], sent.duration, reference.time[0], reference.duration] == pytest.approx(
        [1.8, 2.1 + length, 1.0, 2.1 + length])
    assert sent.position[-1, 0] == pytest.approx(stop.rest) and not sent.velocity[-1].any()
    assert sent.position[0, 0] == pytest.approx(1.9), 'at half pace'


@pytest.mark.parametrize(('elapsed', 'continued', 'whole', 'first', 'end', 'rest'), [
    (1.995, True, True, 0.98, 2.18, 2.155), (1.995, False, False, 0.105, 0.185, 2.155),
    (0.0, True, False, 0.1, 0.18, 0.155), (3.895, True, True, 2.88, 4.05, 4.0),
    (3.905, True, False, 0.1, 0.15, 4.0)])
def test_a_stop_at_full_pace_continues_a_motion_only_if_it_is_under_way(
    elapsed: float, continued: bool, whole: bool, first: float, end: float, rest: float
) -> None:
    """Else it is sent as one of its own, with the time to switch before its first point."""
    stops = Stops(np.array([0.13, 2.13, 4.0]), np.array([0.05, 0.05, 0.0]))
    stop = slowing(steady(stops=stops), elapsed, RULES.pacing, continued)
    assert stop is not None and stop.rest == pytest.approx(rest)
    sent = stop.segment
    assert sent.elapsed == (elapsed if whole else 0.0)
    assert [sent.points.time[0], sent.points.duration] == pytest.approx([first, end])
    assert sent.reference is not None and sent.reference.duration == pytest.approx(end)
