"""robot_dynid_extras/session/adaptive_swings.py and outlook.py: what is told, known and said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.excitation.planned.sine_sequence import AdaptiveGoal
from robot_dynid.trajectories.single_joint import SineSwing
from robot_dynid.types import FloatArray, Samples
from robot_dynid_extras.session.adaptive_swings import (
    Candidate,
    Choice,
    Goal,
    Known,
    Reach,
    Told,
)
from robot_dynid_extras.session.outlook import Session, SwingRow
from robot_dynid_extras.session.precision import Precision, Resting, covariance_of

JOINTS = ('joint_1', 'joint_2')
#: deviations of noise and of friction, and sizes of three parameters
DENSITY, HELD = np.array([0.5, 0.8]), np.array([0.3, 0.2])
SIZES = np.array([2.0, 3.0, 0.5])
RNG = np.random.default_rng(0)


def gram(*shape: int) -> FloatArray:
    """Return positive definite matrices (..., 3, 3)."""
    root = RNG.normal(size=(*shape, 3, 3))
    return root @ np.swapaxes(root, -1, -2)


def precision(resting: Resting | None = None) -> Precision:
    """Return what two joints have told of three parameters."""
    return Precision(('a', 'b', 'c'), SIZES, DENSITY, HELD, gram(), resting or Resting(
        gram(2, 2), np.array([3.0, 7.0])))


def swing(periods: int = 2, joint: str = 'joint_2', frequency: float = 0.4) -> SineSwing:
    """Return a swing."""
    return SineSwing(JOINTS, joint, np.array([0.3, -0.4]), 0.6, frequency, periods)


def candidate(joint: str = 'joint_2', frequency: float = 0.4) -> Candidate:
    """Return a candidate whose information is any."""
    return Candidate(swing(joint=joint, frequency=frequency), gram(), gram(), gram(2))


def test_what_periods_of_a_swing_tell_is_linear_in_them() -> None:
    """Of two periods each of 2.5 s, with one of rise and one of fall."""
    one = candidate()
    begin = one.swing.duration
    assert begin == pytest.approx(2 * 2.5 + 2 * 2.5) and one.again == pytest.approx(5.0)
    for periods in (2, 3, 8):
        told, seconds = one.told(periods), begin + 2.5 * (periods - 2)
        assert (told.index, told.seconds) == (1, pytest.approx(seconds))
        np.testing.assert_allclose(told.own, one.own + (periods / 2.0 - 1.0) * one.more)
        np.testing.assert_allclose(told.resting, seconds / begin * one.resting)
    longer = one.longer(3)
    assert (longer.index, longer.seconds) == (1, pytest.approx(15.0))
    np.testing.assert_allclose(longer.own, 3.0 * one.more)
    np.testing.assert_allclose(longer.resting, 15.0 / begin * one.resting)


class TwoJoints:
    """A torque model whose columns are simple: position, velocity, acceleration of both."""

    robot = SimpleNamespace(joints=JOINTS, n=2)

    def __init__(self, held: tuple[bool, bool]) -> None:
        self.held, self.lengths = np.array(held), list[int]()

    def columns(self, samples: Samples) -> FloatArray:
        self.lengths.append(len(samples))
        parts = samples.position, samples.velocity, samples.acceleration
        own = np.stack([part[:, 1] for part in parts])
        return np.stack([own[::-1] + 0.3, own])


@pytest.mark.parametrize('held', [(True, True), (False, True), (True, False)])
def test_a_swing_tells_by_its_own_effort_and_by_variations_of_those_held(
    held: tuple[bool, bool]
) -> None:
    """50 instants a period; joints at rest that no friction holds count like the one that moves.
    """
    model: Any = TwoJoints(held)
    known = precision()
    one = swing(3, frequency=0.8)
    found = Candidate.of(model, one, known)
    assert model.lengths == [250, 150]
    step = 1.25 / 50
    for first, last, gram_of in ((0, 250, found.own), (50, 200, found.more)):
        time = step * (np.arange(first, last) + 0.5)
        motion = one.sample(time)
        columns = model.columns(Samples(JOINTS, time, motion.position, motion.velocity,
                                        motion.acceleration)) * SIZES[:, None]
        expected = columns[1] @ columns[1].T / DENSITY[1]**2
        if not held[0]:
            expected = expected + columns[0] @ columns[0].T / DENSITY[0]**2
        np.testing.assert_allclose(gram_of, step * expected, rtol=1e-9, atol=1e-9)
        if first == 0:
            parts = np.split(columns[0], np.arange(40, 250, 40), axis=1)  # of a second each
            varying = np.hstack([part - part.mean(axis=1, keepdims=True) for part in parts])
            np.testing.assert_allclose(found.resting[0],
                                       held[0] * step * varying @ varying.T, rtol=1e-6, atol=1e-9)
    assert not found.resting[1].any()


def test_what_is_known_is_in_terms_of_sizes_and_adds_up() -> None:
    before = precision()
    known = Known.of(before)
    both = np.outer(SIZES, SIZES)
    np.testing.assert_allclose(known.own, both * before.information + 1e-6 * np.eye(3))
    told = [candidate(joint).told(3) for joint in ('joint_1', 'joint_2', 'joint_2')]
    after = known.after(told)
    seconds = np.add(before.resting.seconds, [told[0].seconds, told[1].seconds + told[2].seconds])
    np.testing.assert_allclose(after.resting.seconds, seconds)
    grams = both * before.resting.grams
    total = known.own + sum(one.own for one in told)
    np.testing.assert_allclose(after.own, total)
    for j in range(2):
        for one in told:
            if one.index == j:
                grams[j] = grams[j] + one.resting
        for i in range(2):
            total = total + grams[j, i] / (DENSITY[i]**2 + seconds[j] * HELD[i]**2)
    np.testing.assert_allclose(after.information, total)
    np.testing.assert_allclose(after.deviations, np.sqrt(np.diag(np.linalg.inv(total))))
    np.testing.assert_allclose(known.deviations_after(told),
                               [known.after([one]).deviations for one in told])
    assert known.resting.seconds.tolist() == [3.0, 7.0]  # it stays as it was


def test_a_swing_is_put_at_its_place_or_at_the_end() -> None:
    known, parts = Known.of(precision()), [candidate() for _ in range(3)]
    choice = Choice(known, ((parts[0], 2), (parts[1], 4)))
    assert choice.with_swing(0, parts[2], 6).chosen == ((parts[2], 6), (parts[1], 4))
    assert choice.with_swing(2, parts[2], 6).chosen == (*choice.chosen, (parts[2], 6))
    np.testing.assert_allclose(
        replace(choice, chosen=((parts[0], 0), (parts[1], 4))).known.information,
        known.after([parts[1].told(4)]).information)


def test_the_goal_counts_the_logarithms_of_what_misses_nine_tenths_of_it() -> None:
    nothing: Any = None
    goal = Goal(AdaptiveGoal(0.2, 60.0, 5, 1), np.array([True, False, True]), nothing,
                lambda *_: None)
    off = np.array([[0.36, 9.0, 0.54], [0.17, 9.0, 0.36], [0.17, 9.0, 0.175]])
    np.testing.assert_allclose(goal.missing(off), [np.log(2.0) + np.log(3.0), np.log(2.0), 0.0],
                               rtol=1e-9, atol=1e-9)
    known = Known.of(precision(Resting.none(2, 3)))
    for share, met in ((1.01, False), (0.99, True)):
        size = replace(known, own=np.diag([(share * 0.18)**-2, 1.0, 40.0]))
        assert goal.met(Choice(size)) is met
    assert goal.move(Choice(known), candidate()) == 0.0


def reached(known: Known, parts: list[Candidate], longest: float, shares: FloatArray,
            held: FloatArray) -> FloatArray:
    """Return the deviations where candidates share the time of their joints."""
    total = known.own + sum(one.own + longest / one.again * one.more for one in parts)
    swung = {one.swing.index for one in parts}
    for j in range(2):
        seconds = known.resting.seconds[j] + (longest if j in swung else 0.0)
        weight = 1.0 / (DENSITY**2 + seconds * held**2)
        grams = known.resting.grams[j] + sum(
            (share * longest / one.swing.duration * one.resting
             for share, one in zip(shares, parts, strict=True) if one.swing.index == j),
            np.zeros((2, 3, 3)))
        total = total + np.tensordot(weight, grams, 1)
    return np.asarray(np.sqrt(np.diag(covariance_of(total))))


def test_the_reach_is_that_of_all_candidates_for_the_whole_time() -> None:
    """With friction and without; of two swings of a joint a mixture, of one it alone."""
    known = Known.of(precision())
    parts = [candidate('joint_1', 0.5), candidate('joint_2', 0.4)]
    for count in (0, 1, 2):
        best = reached(known, parts[:count], 30.0, np.ones(count), HELD)
        for accuracy in (0.999 * best.max(), 1.001 * best.max()):
            found = Reach.of(known, parts[:count], accuracy, 30.0)
            np.testing.assert_allclose(found.best, best)
            free = reached(known, parts[:count], 30.0, np.ones(count), 0.0 * HELD)
            np.testing.assert_allclose(
                found.frictionless, free if accuracy < best.max() else best)
            assert (found.accuracy, found.longest) == (accuracy, 30.0)
            np.testing.assert_array_equal(found.missed, best > accuracy)


def test_mixtures_are_drawn_to_what_misses_the_accuracy() -> None:
    """Of two configurations of a joint each shows one parameter, of which one is known."""
    known = replace(Known.of(precision(Resting.none(2, 3))), own=np.diag([1e4, 1e-4, 1e4]))
    parts = [replace(candidate('joint_1'), own=np.zeros((3, 3)), more=np.zeros((3, 3)),
                     resting=np.stack([np.zeros((3, 3)), np.diag(shows)]))
             for shows in ([4.0, 1e-3, 0.0], [0.0, 4.0, 1e-3])]
    found = Reach.of(known, parts, 0.05, 30.0)
    alone = reached(known, parts, 30.0, np.array([0.0, 1.0]), HELD)
    evenly = reached(known, parts, 30.0, np.array([0.5, 0.5]), HELD)
    assert found.best[1] == pytest.approx(alone[1], rel=1e-3) and evenly[1] > 1.2 * alone[1]


def test_words_of_the_reach_name_the_time_that_noise_asks_for() -> None:
    """Unseen from 100 on, a tenth of what is unknown; the worst of those that are late."""
    found = Reach(np.array([0.3, 0.5, 101.0, 0.4, 99.0]), np.array([0.3, 0.5, 101.0, 0.2, 99.0]),
                  0.2, 40.0)
    assert found.words('abcde') == (
        'a, b, e: the noise asks for more than 9801000 s of swings, 40 s are allowed; c: no swing '
        'that limits, time and surroundings allow shows it; d: only the efforts of joints at rest '
        'show it well, of which friction takes a part; a motion of all joints (type fourier) does '
        'better')
    assert replace(found, best=np.full(5, 0.2)).words('abcde') == ''
    assert replace(found, best=np.array([0.3, 0.5, 0.1, 0.4, 0.1])).words('abcde').startswith(
        'a, b: the noise asks for more than 250 s')


def row(**more: Any) -> SwingRow:
    """Return a swing of a session."""
    return SwingRow(**({'moving': 'j2', 'locked': {'j1': 0.256, 'j3': -1.5}, 'centre': 0.304,
                        'amplitude': 0.607, 'frequency': 0.801, 'periods': 3, 'duration': 12.4,
                        'largest_deviation': 0.0456, 'least_known': 'fv1', 'missing': 2} | more))


def test_a_swing_in_words_says_who_moves_and_where_the_others_are() -> None:
    assert row().words == ("'j2' swings 3 times by 0.61 about 0.30 at 0.80 Hz, j1 at 0.26, j3 at "
                           '-1.50')
    assert row(largest_deviation=9.9).seen and not row(largest_deviation=10.1).seen


@pytest.mark.parametrize(('swings', 'later', 'why', 'words'), [
    ((row(missing=0),), (), '', 'the accuracy 0.05 is met then'),
    ((row(missing=9), row()), (), '', '2 parameters miss the accuracy 0.05 then, the worst is '
     'fv1, known to 0.0456'),
    ((row(missing=0), row(largest_deviation=11.0, missing=3)), (row(duration=7.3), row(
        missing=0)), '', '3 parameters miss the accuracy 0.05 then, the worst is fv1, not seen '
     'yet; 2 more swings, 20 s, are expected to meet it'),
    ((row(missing=0),), (row(missing=0), row(least_known='m', largest_deviation=0.0667,
                                             missing=4)), 'x: no swing',
     'the accuracy 0.05 is met then; 2 more swings, 25 s, are expected to leave 4, the worst m to '
     '0.0667; out of reach: x: no swing')])
def test_the_outlook_is_of_the_last_swing_and_of_those_after_it(
    swings: tuple[SwingRow, ...], later: tuple[SwingRow, ...], why: str, words: str
) -> None:
    assert Session(0.05, True, swings, (), why, later).outlook == words


def test_information_at_rest_is_by_the_noise_and_friction_of_the_time_swung() -> None:
    resting = Resting(gram(2, 2), np.array([3.0, 7.0]))
    expected = sum(resting.grams[j, i] / (DENSITY[i]**2 + (3.0, 7.0)[j] * HELD[i]**2)
                   for j in range(2) for i in range(2))
    np.testing.assert_allclose(resting.information(DENSITY, HELD), expected)
    before = precision(resting)
    total = np.outer(SIZES, SIZES) * (before.information + expected) + 1e-6 * np.eye(3)
    np.testing.assert_allclose(before.relative, total)
    deviations = np.sqrt(np.diag(np.linalg.inv(total)))
    np.testing.assert_allclose(before.deviations, deviations)
    assert before.worst == ('abc'[np.argmax(deviations)], pytest.approx(deviations.max()))
    none = Resting.none(2, 3)
    assert none.grams.shape == (2, 2, 3, 3) and not none.grams.any() and not none.seconds.any()


def test_a_told_swing_is_of_its_joint() -> None:
    known = Known.of(precision())
    told = Told(1, np.eye(3), gram(2), 4.0)
    after = known.after([told])
    np.testing.assert_allclose(after.resting.grams[1], known.resting.grams[1] + told.resting)
    np.testing.assert_array_equal(after.resting.grams[0], known.resting.grams[0])
