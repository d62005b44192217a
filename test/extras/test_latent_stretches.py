"""robot_dynid_extras/latent/stretches.py: which stretches there are, and the noise in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.signals.unfiltered import AsRecorded, Unfiltered
from robot_dynid.types import FloatArray
from robot_dynid_extras.latent.stretches import Cut, stretches_of


def part(seconds: float, began: float | None = 1.0, noise: float | FloatArray = 1e-4,
         rate: float = 100.0, first: float = 5.0) -> Unfiltered:
    """Return a part of a recording with two encoders, the second of threefold noise."""
    time = first + np.arange(round(seconds * rate) + 1) / rate
    rng = np.random.default_rng(0)
    smooth = np.column_stack([np.sin(time), np.cos(0.8 * time)])
    stamps = time[:-1] + 0.3 / rate
    return Unfiltered(time, smooth + np.reshape(noise, (-1, 1)) * [1.0, 3.0] * rng.standard_normal(
        smooth.shape), stamps, np.column_stack([stamps, -stamps]), began=began)


def cut(*recordings: Sequence[Unfiltered]) -> Cut:
    """Return the stretches of recordings."""
    return stretches_of(AsRecorded(lambda: iter(tuple(one) for one in recordings),
                                   lambda *_: None))


@pytest.mark.parametrize(('seconds', 'count', 'every'), [
    (60.0, 60, 1.0), (61.0, 31, 2.0), (121.0, 41, 3.0)])
def test_of_more_than_sixty_stretches_every_so_many_are_taken(
    seconds: float, count: int, every: float
) -> None:
    found = cut([part(seconds)]).stretches
    assert len(found) == count
    np.testing.assert_allclose([one.time[0] for one in found], 5.0 + every * np.arange(count))
    assert all(one.time[-1] - one.time[0] == pytest.approx(1.0) for one in found)
    assert [one.goes_on for one in found] == [False] + (count - 1) * [every == 1.0]


@pytest.mark.parametrize(('rate', 'length'), [(1000.0, 0.080), (250.0, 0.320), (200.0, 0.400)])
def test_stretches_have_twenty_knots_at_least(rate: float, length: float) -> None:
    """Of 4 ms, or four samples: at 1 kHz 80 ms, at 250 Hz 320 ms."""
    with pytest.raises(DataError, match=f'last {2 * length - 1 / rate:.3g} s together'):
        cut([part(2.0 * length - 1.0 / rate, rate=rate)])
    found = cut([part(2.0 * length, rate=rate)]).stretches
    np.testing.assert_allclose([one.time[-1] - one.time[0] for one in found], 2 * [length])


def test_stretches_with_less_than_twenty_efforts_are_left_out() -> None:
    whole = part(8.0)
    for count, there in ((19, 7), (20, 8)):
        some = (whole.stamps < 6.0) | (whole.stamps > 7.0)
        some[np.flatnonzero(~some)[:count]] = True
        found = cut([replace(whole, stamps=whole.stamps[some], effort=whole.effort[some])])
        assert len(found.stretches) == there
        assert [len(one.stamps) for one in found.stretches if one.time[0] == 6.0] == [count][
            :there - 7]


def test_a_recording_is_told_from_the_next_by_when_it_began() -> None:
    """Where that is not known each is another one; stretches go on within a recording alone."""
    later = part(2.0, first=7.0)
    for other, numbers in ((later, [0, 0, 0, 0]), (replace(later, began=2.0), [0, 0, 1, 1])):
        found = cut([part(2.0)], [other]).stretches
        assert [one.recording for one in found] == numbers
        assert [one.goes_on for one in found] == [False, True, numbers[2] == 0, True]
        assert [one.began for one in found] == [1.0, 1.0, other.began, other.began]
    unknown = cut([part(2.0, began=None)], [replace(later, began=None)]).stretches
    assert [one.recording for one in unknown] == [0, 0, 1, 1]


def test_efforts_and_temperatures_are_those_within_a_stretch() -> None:
    whole = part(3.0)
    warm = replace(whole, temperature=np.column_stack([whole.stamps, 2.0 * whole.stamps]))
    for one in cut([warm]).stretches:
        assert one.temperature is not None
        np.testing.assert_array_equal(one.temperature[:, 0], one.stamps)
        np.testing.assert_array_equal(one.effort[:, 0], one.stamps)
        assert (one.stamps[0] > one.time[0], one.stamps[-1] < one.time[-1]) == (True, True)
        assert len(one.stamps) == 100 and one.channels[0].order == 0
        np.testing.assert_array_equal(one.channels[0].values, whole.position[
            round((one.time[0] - 5.0) * 100):][:101])
    exact = replace(whole, stamps=whole.time, effort=np.column_stack(2 * [whole.time]))
    assert [len(one.stamps) for one in cut([exact]).stretches] == [100, 100, 100]


def test_the_noise_is_that_of_ten_seconds_of_each_part_by_their_samples() -> None:
    """Parts of less than eighty samples say nothing of it."""
    time = np.arange(2001) / 100.0
    grown = part(20.0, noise=np.where(time < 10.0, 1e-4, 1e-3))
    np.testing.assert_allclose(cut([grown]).noise, [1e-4, 3e-4], rtol=0.1)
    early = part(20.0, noise=np.where(time < 9.0, 1e-4, 1e-3))
    assert np.all(cut([early]).noise > [2e-4, 6e-4])
    both = cut([part(9.0), part(3.0, noise=5e-4, first=50.0)]).noise
    squares = [cut([part(seconds, noise=size)]).noise**2 for seconds, size in (
        (9.0, 1e-4), (3.0, 5e-4))]
    np.testing.assert_allclose(both, np.sqrt((901 * squares[0] + 301 * squares[1]) / 1202))
    for seconds, same in ((0.78, True), (0.80, False)):
        short = cut([part(9.0), part(seconds, noise=1e-2, first=50.0)]).noise
        assert np.allclose(short, np.sqrt(squares[0])) is same


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_the_noise_is_without_bias_by_the_freedom_that_the_spline_leaves(rate: float) -> None:
    """With a knot every four samples a quarter of the freedom goes."""
    found = cut([part(9.0, noise=1e-4, rate=rate)]).noise
    np.testing.assert_allclose(found, [1e-4, 3e-4], rtol=0.06)


def test_the_slowest_speed_is_that_of_a_line_over_twenty_milliseconds() -> None:
    found = Cut(cut([part(2.0)]).stretches, np.array([2e-4, 5e-4]))
    axes = np.array([[2.0, 0.0], [-1.0, 3.0]])
    slope = np.sqrt(12.0 * 0.01 / 0.02**3)
    np.testing.assert_allclose(found.slowest(axes), 1.5 * slope * np.array(
        [4e-4, np.hypot(2e-4, 15e-4)]))
