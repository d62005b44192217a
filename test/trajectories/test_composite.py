"""trajectories/composite.py: sequences of trajectories: joints, borders, starts, descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.trajectories.composite import (
    Composite,
    Dwell,
    build,
    describe,
    dwells,
    elementary,
    plateaus,
)
from robot_dynid.trajectories.single_joint import Sweep
from robot_dynid.trajectories.trajectory import Motion, QuinticMove

JOINTS = ('a', 'b')
HOME, AWAY = np.array([0.3, -0.2]), np.array([1.1, 0.7])
GO, REST, BACK = (QuinticMove(JOINTS, HOME, AWAY, 2.0), QuinticMove(JOINTS, AWAY, AWAY, 0.75),
                  QuinticMove(JOINTS, AWAY, HOME, 3.0))
WHOLE = Composite((GO, Composite((REST, BACK))))


def test_a_sequence_is_sampled_from_the_segment_that_owns_the_instant() -> None:
    assert WHOLE.duration == 5.75 and WHOLE.joints == JOINTS
    assert WHOLE.starts.tolist() == [0.0, 2.0]
    motion = WHOLE.sample([-1.0, 0.5, 2.0, 2.3, 3.75, 5.0, 9.0])
    for row, (segment, time) in enumerate((
            (GO, 0.0), (GO, 0.5), (REST, 0.0), (REST, 0.3), (BACK, 1.0), (BACK, 2.25),
            (BACK, 3.0))):
        for name, values in vars(motion).items():
            np.testing.assert_allclose(values[row], getattr(segment.sample(time), name)[0],
                                       rtol=0.0, atol=1e-12)
    # at a border the later one: the jerk of a quintic is largest at its ends, of a rest none
    assert not WHOLE.sample(2.0).jerk.any() and WHOLE.sample(2.75).jerk.any()
    peaks = WHOLE.peaks()
    np.testing.assert_array_equal([peaks.lower, peaks.upper], [HOME, AWAY])
    np.testing.assert_allclose(peaks.velocity, 15.0 / 8.0 * (AWAY - HOME) / 2.0)


def test_elementary_parts_have_starts_of_the_whole() -> None:
    assert [(start, part) for start, part in elementary(WHOLE, 10.0)] == [
        (10.0, GO), (12.0, REST), (12.75, BACK)]
    (rest,) = dwells(WHOLE)
    assert isinstance(rest, Dwell) and (rest.begin, rest.end) == (2.0, 2.75)
    np.testing.assert_array_equal(rest.position, AWAY)


def test_plateaus_of_a_sweep_begin_after_its_ramps() -> None:
    """There after a ramp; back after there, and three ramps."""
    sweep = Sweep(JOINTS, 'b', np.array([1.1, 1.0]), 0.4, 0.5, 1.5)
    begin = sweep.sample(0.0).position[0]
    assert begin[1] == pytest.approx(1.0 - 0.5 * 0.4 * 2.0) and sweep.duration == 5.0
    whole = Composite((QuinticMove(JOINTS, HOME, begin, 2.0), sweep))
    there, back = plateaus(whole)
    assert (there.joint, there.speed, back.speed) == ('b', 0.4, -0.4)
    np.testing.assert_allclose([there.begin, there.end, back.begin, back.end], [
        2.5, 4.0, 5.0, 6.5])
    np.testing.assert_allclose([there.lower, there.upper, back.lower, back.upper], [0.7, 1.3] * 2)
    middle = whole.sample(3.25)
    np.testing.assert_allclose(middle.position, [[1.1, 1.0]])


class Jump:
    """A trajectory that begins with a position, velocity or acceleration of its own."""

    joints, duration = JOINTS, 1.0

    def __init__(self, **off: float) -> None:
        self.off = off

    def sample(self, time: Any) -> Motion:
        rows = {name: np.array([[0.0, self.off.get(name, 0.0)]]) for name in (
            'position', 'velocity', 'acceleration', 'jerk')}
        return Motion(rows['position'] + AWAY, *list(rows.values())[1:])


@pytest.mark.parametrize('name', ['position', 'velocity', 'acceleration'])
@pytest.mark.parametrize('side', [1.0, -1.0])
def test_a_jump_between_segments_is_named(name: str, side: float) -> None:
    follower: Any = Jump(**{name: side * 0.8e-9})
    Composite((GO, follower))
    with pytest.raises(UsageError, match=r'jumps by 1.2e-09'):
        Composite((GO, Jump(**{name: side * 1.2e-9})))  # type: ignore[arg-type]
    follower = Jump(**{name: side * 1.25e-2})
    with pytest.raises(UsageError) as raised:
        Composite((GO, REST, follower))
    assert str(raised.value) == (f"{name} of joint 'b' jumps by 0.0125 between segments 1 and 2: "
                                 'insert a move')


def test_sequences_are_of_one_robot_and_described_as_built() -> None:
    other = QuinticMove(('b', 'a'), AWAY, HOME, 1.0)
    with pytest.raises(UsageError) as raised:
        Composite((GO, other))
    assert str(raised.value) == "segment 1 moves ('b', 'a'), expected ('a', 'b')"
    with pytest.raises(UsageError, match='needs at least one segment'):
        Composite(())
    plain = describe(WHOLE)
    assert [one['type'] for one in plain['segments']] == ['quintic', 'composite']
    assert describe(build(plain)) == plain and WHOLE.element() is None
    for wrong, words in (
            ({'type': 'spiral'}, "unknown trajectory type 'spiral'; choose one of fourier, bspl"),
            ({'type': 3}, 'unknown trajectory type 3'), ([], 'must be a mapping with type and'),
            ({'type': 'composite', 'segments': 'many'}, "'segments' must be a list"),
            ({'type': 'composite', 'segments': [{}] * 20_001}, "'segments' lists 20001, more than "
             '20000')):
        with pytest.raises(UsageError, match=words):
            build(wrong)  # type: ignore[arg-type]
    stranger: Any = Jump()
    with pytest.raises(UsageError, match='Jump is not a registered type of trajectory'):
        describe(stranger)
