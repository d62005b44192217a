"""robot_dynid_extras/session/adaptive_swings.py: the choice of swings, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.excitation.design import Planned, SessionOver
from robot_dynid.excitation.planned.sine_sequence import AdaptiveGoal
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.single_joint import SineSwing
from robot_dynid.types import FloatArray
from robot_dynid_extras.session import adaptive_swings
from robot_dynid_extras.session.adaptive_swings import Candidate, Known, Told, next_swings
from robot_dynid_extras.session.precision import Precision, Resting

JOINTS = ('joint_1', 'joint_2')
NOT = np.full(2, np.nan)
LIMITS = MotionLimits(JOINTS, np.array([-2.0, -1.0]), np.array([2.0, 3.0]), np.array([1.0, 2.0]),
                      np.array([3.0, 4.0]), NOT, NOT)
#: the limits of moves between swings: half the speed, a quarter of the acceleration
SLOW = replace(LIMITS, velocity=0.5 * LIMITS.velocity, acceleration=0.25 * LIMITS.acceleration)
NAMES = ('a', 'b', 'c', 'd')
GOAL = {'accuracy': 0.2, 'longest': 900.0, 'swings': 99, 'periods': 2}


Table = dict[tuple[int, int], Candidate]


def candidates_of(seed: int, count: int = 8) -> Table:
    """Return candidates by joint and place; each shows two of four parameters well."""
    rng, found = np.random.default_rng(seed), {}
    for place in range(count):
        for joint in range(2):
            swing = SineSwing(JOINTS, JOINTS[joint], rng.uniform(-1.0, 2.0, 2),
                              rng.uniform(0.2, 0.6), rng.uniform(0.3, 0.8), 2)
            shown = rng.permutation(4)[:2]
            root = np.zeros((4, 3))
            root[shown] = np.sqrt(10.0) * rng.normal(size=(2, 3))
            resting = 0.3 * rng.normal(size=(2, 4, 2))
            found[joint, place] = Candidate(swing, root @ root.T, 0.8 * root @ root.T,
                                            resting @ resting.transpose(0, 2, 1))
    return found


class Stage:
    """Planner and swings that know the candidates, and keep what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
        self.draws, self.executed, self.stages = list[int](), list[SineSwing](), list[Any]()
        self.places, by_swing = 0, {id(one.swing): one for one in table.values()}

        def wide_and_narrow(planner: object, motion: tuple[int, int], periods: int
                            ) -> list[SineSwing]:
            assert planner is self and periods == 2
            return [table[motion].swing] if motion in table else []

        monkeypatch.setattr(adaptive_swings, 'Planner', lambda criteria, limits: self)
        monkeypatch.setattr(adaptive_swings, 'Swings', lambda planner: self)
        monkeypatch.setattr(adaptive_swings, 'wide_and_narrow', wide_and_narrow)
        monkeypatch.setattr(Candidate, 'of', lambda model, swing, precision: by_swing[id(swing)])
        self.planner, self.home = self, 0

    def somewhere(self, rng: object, count: int) -> Iterator[int]:
        self.draws.append(count)
        first = max(self.places, 1)
        self.places = first + count
        return iter(range(first, self.places))

    def motions(self, joint: int, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        return ((joint, place) for place in places)

    def joined(self, swings: list[SineSwing]) -> str:
        self.executed = swings
        return 'a trajectory'

    def next(self, precision: Precision, **goal: Any) -> Planned:
        """Return the next swings."""
        target = AdaptiveGoal(**(GOAL | goal))
        criteria: Any = SimpleNamespace(model=SimpleNamespace(robot=SimpleNamespace(n=2)),
                                        progress=lambda *stage: self.stages.append(stage))
        return next_swings(criteria, precision, LIMITS, target, np.random.default_rng(0))


def unknown() -> Precision:
    """Return a precision of which nothing is known."""
    return Precision(NAMES, np.ones(4), np.array([0.5, 0.8]), np.array([0.3, 0.2]),
                     np.zeros((4, 4)), Resting.none(2, 4))


Chosen = list[tuple[Candidate, int]]


@dataclass
class Reference:
    """The same choice, one option after the other."""

    known: Known
    accuracy: float
    longest: float
    counted: FloatArray

    def missing(self, told: Sequence[Told]) -> float:
        """Return how far what is known after swings is from what is planned for."""
        off = self.known.after(told).deviations[self.counted] / (0.9 * self.accuracy)
        return float(np.log(np.maximum(off, 1.0)).sum())

    def told(self, chosen: Chosen) -> list[Told]:
        """Return what swings tell."""
        return [one.told(periods) for one, periods in chosen]

    def move(self, chosen: Chosen, one: Candidate) -> float:
        """Return the seconds to a swing after the last one."""
        return quintic_move(JOINTS, (chosen[-1][0].swing.position, one.swing.position),
                            SLOW).duration if chosen else 0.0

    def step(self, periods: int) -> int:
        """Return the periods that a swing of two or more is changed by."""
        return 2 * max(1, periods // 16)

    def options(self, chosen: Chosen, every: Sequence[Candidate]) -> Iterator[tuple[Any, ...]]:
        """Yield cost, what is told, and the choice then."""
        for place, (one, periods) in enumerate(chosen):
            told = one.longer(self.step(periods) // 2)
            longer = list(chosen)
            longer[place] = one, periods + self.step(periods)
            yield told.seconds, told, longer
        for one in every:
            told = one.told(2)
            yield told.seconds + self.move(chosen, one), told, [*chosen, (one, 2)]

    def greedy(self, every: Sequence[Candidate]) -> Chosen:
        """Return swings until all that is counted is known well enough, or no more fit."""
        chosen: Chosen = []
        seconds = 0.0
        while (left := self.missing(self.told(chosen))) > 0.0:
            rated = [((left - self.missing([*self.told(chosen), told])) / cost, -i, cost, then)
                     for i, (cost, told, then) in enumerate(self.options(chosen, every))
                     if seconds + cost <= self.longest]
            if not rated or max(rated, key=lambda one: one[:2])[0] <= 0.0:
                break
            _, _, cost, chosen = max(rated, key=lambda one: one[:2])
            seconds += cost
        return chosen

    def shortened(self, chosen: Chosen) -> Chosen:
        """Return the choice without what is superfluous, the longest swings first."""
        if self.missing(self.told(chosen)) > 0.0:
            return chosen
        found = list(chosen)
        for place in sorted(range(len(found)), key=lambda i: -found[i][1] / found[
                i][0].swing.frequency):
            while found[place][1]:
                one, periods = found[place]
                shorter = list(found)
                shorter[place] = one, periods - self.step(periods)
                if self.missing(self.told([pair for pair in shorter if pair[1]])) > 0.0:
                    break
                found = shorter
        return [pair for pair in found if pair[1]]

    def ordered(self, chosen: Chosen) -> Chosen:
        """Return the swings, that which tells most per second first."""
        left, found, seconds = list(chosen), list[Any](), 0.0
        while left:
            before = self.missing(self.told(found))
            rated = []
            for i, (one, periods) in enumerate(left):
                told = one.told(periods)
                cost = told.seconds + self.move(found, one)
                rated.append(((before - self.missing([*self.told(found), told])) / cost, -i, cost))
            _, i, cost = max(rated)
            if seconds + cost <= self.longest:
                found.append(left[-i])
                seconds += cost
            del left[-i]
        return found


@pytest.mark.parametrize(('seed', 'goal'), [
    (0, {}), (1, {'accuracy': 0.1}), (2, {'longest': 40.0, 'accuracy': 0.05}),
    (3, {'swings': 2}), (20, {'accuracy': 0.1}), (32, {'accuracy': 0.1}),
    (42, {'accuracy': 0.1}), (45, {})])
def test_the_next_swings_are_those_that_tell_most_per_second(
    seed: int, goal: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of fresh swings and longer ones; superfluous periods go, the best one is the first."""
    table = candidates_of(seed)
    stage, precision = Stage(monkeypatch, table), unknown()
    found = stage.next(precision, **goal)
    goal = GOAL | goal
    every = [table[joint, place] for joint in range(2) for place in range(8)]
    known = Known.of(precision)
    right = Reference(known, goal['accuracy'], goal['longest'], np.array([
        name not in found.session.unreachable for name in NAMES]))
    chosen = right.ordered(right.shortened(right.greedy(every)))
    assert [(one.amplitude, one.frequency, one.periods) for one in stage.executed] == [
        (one.swing.amplitude, one.swing.frequency, periods)
        for one, periods in chosen[:goal['swings']]]
    assert found.trajectory == 'a trajectory' and len(chosen) > 1
    session, told = found.session, list[Told]()
    for row, (one, periods) in zip((*session.swings, *session.later), chosen, strict=True):
        told.append(one.told(periods))
        deviations = known.after(told).deviations * right.counted
        assert (row.moving, row.periods, row.centre) == (
            one.swing.moving, periods, one.swing.position[one.swing.index])
        other = JOINTS[1 - one.swing.index]
        assert row.locked == {other: one.swing.position[1 - one.swing.index]}
        assert (row.amplitude, row.frequency) == (one.swing.amplitude, one.swing.frequency)
        assert row.duration == pytest.approx(told[-1].seconds)
        assert row.largest_deviation == pytest.approx(deviations.max())
        assert row.least_known == NAMES[np.argmax(deviations)]
        assert row.missing == np.sum(deviations > goal['accuracy'])
    assert len(session.swings) == min(len(chosen), goal['swings'])
    assert session.met is (not session.swings[-1].missing and not session.unreachable)
    assert session.accuracy == goal['accuracy']
    assert stage.draws[0] == 7 and len(stage.draws) == (4 if session.unreachable else 1)
    shares = [share for name, share in stage.stages if name == 'choosing swings']
    assert shares[0] == 0.0 and shares == sorted(shares) and shares[-1] < 1.0


def test_more_configurations_are_drawn_where_something_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight more up to three times; swings longer than the session are none."""
    table = candidates_of(5, 1)
    wide = {key: replace(one, own=np.diag([9.0, 9.0, 0.0, 0.0]), more=np.diag(
        [9.0, 9.0, 0.0, 0.0]), resting=np.zeros((2, 4, 4))) for key, one in table.items()}
    late = replace(table[0, 0], own=np.diag([0.0, 0.0, 9.0, 9.0]), more=np.diag(
        [0.0, 0.0, 9.0, 9.0]), resting=np.zeros((2, 4, 4)))
    for place, draws in ((3, [7]), (9, [7, 8]), (24, [7, 8, 8, 8]), (99, [7, 8, 8, 8])):
        again = replace(late, swing=replace(late.swing, amplitude=0.1 + 1e-3 * place))
        stage = Stage(monkeypatch, {**wide, (1, place): again})
        found = stage.next(unknown())
        assert stage.draws == draws
        assert found.session.unreachable == (('c', 'd') if place > 31 else ())
        last = (*found.session.swings, *found.session.later)[-1]
        assert last.largest_deviation < 0.18 and last.missing == 0  # of what is within reach
    slow = replace(late, own=100.0 * late.own, swing=replace(late.swing, frequency=0.05))
    for share, unreachable in ((0.99, ('c', 'd')), (1.01, ())):
        stage = Stage(monkeypatch, {**wide, (1, 3): slow})
        session = stage.next(unknown(), longest=share * slow.swing.duration).session
        assert session.unreachable == unreachable


def test_a_session_that_is_known_well_enough_or_gains_nothing_is_over(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(monkeypatch, {})
    known = replace(unknown(), information=np.diag([400.0, 100.0, 25.0, 400.0]))
    with pytest.raises(SessionOver, match=r'0\.21 is met: c is known worst, to 0\.2;'):
        stage.next(known, accuracy=0.21)
    with pytest.raises(SessionOver, match=r'0\.19 is out of reach for c: the noise asks for '
                                          r'more than 1231 s') as caught:
        stage.next(known, accuracy=0.19)
    assert caught.value.unreachable == ('c',) and caught.value.worst[0] == 'c'
