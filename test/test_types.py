"""types.py, document.py, plain.py: records of samples, and how values are written, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from robot_dynid.document import (
    DASH,
    Cell,
    Row,
    Section,
    Table,
    counted,
    joints_named,
    listed,
    number,
    percent,
    share_of,
    subject,
    tabled,
    with_deviation,
)
from robot_dynid.errors import DataError, UsageError
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.types import (
    Part,
    RawLog,
    Samples,
    channels,
    concatenate,
    contiguous,
    epoch_of,
    frozen,
    interpolated,
    take,
)


def samples(count: int = 6, **given: Any) -> Samples:
    """Return samples of two joints whose values name row and channel."""
    rows = np.arange(float(count))[:, None]
    motion = {name: rows * 10.0 ** k + np.array([1.0, 2.0]) for k, name in enumerate(
        ('position', 'velocity', 'acceleration', 'effort', 'measured'))}
    return Samples(('a', 'b'), 0.1 * np.arange(count), **{**motion, **given})


def test_frozen_is_a_copy_that_cannot_be_written() -> None:
    source = np.array([1, 2])
    copy = frozen(source)
    source[0] = 9
    assert copy.dtype == np.float64 and copy.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match='read-only'):
        copy[0] = 3.0


def test_contiguous_copies_only_what_kernels_cannot_read() -> None:
    whole = np.arange(12.0).reshape(3, 4)
    assert contiguous(whole) is whole
    for other in (whole.T, whole[:, ::2], whole.astype(np.float32), whole.tolist()):
        found = contiguous(other)
        assert found.flags.c_contiguous and found.dtype == np.float64
        np.testing.assert_array_equal(found, np.asarray(other))


@pytest.mark.parametrize(('first', 'epoch'), [
    (1e8, None), (float(np.nextafter(1e8, np.inf)), 5.0)])
def test_stamps_since_1973_are_times_of_day(first: float, epoch: float | None) -> None:
    assert epoch_of(first, 5.0) == epoch
    assert epoch_of(2e8) == 0.0


def test_rows_of_a_part_begin_at_its_start_and_end_before_its_stop() -> None:
    assert Part(1.0, 2.0, 0.0).own(np.array([0.9, 1.0, 1.9, 2.0])).tolist() == [
        False, True, True, False]


def test_take_takes_the_rows_of_all_that_was_recorded() -> None:
    time = np.arange(4.0)
    log = RawLog('run', ('a',), time, 10.0 * time[:, None], effort=20.0 * time[:, None],
                 wrench=30.0 * time[:, None] + np.arange(6.0))
    assert list(channels(log)) == ['position', 'effort']
    found = take(log, np.array([3, 1]))
    assert found.time.tolist() == [3.0, 1.0] and found.velocity is None
    assert found.effort is not None and found.effort.ravel().tolist() == [60.0, 20.0]
    assert found.wrench is not None and found.wrench[:, 5].tolist() == [95.0, 35.0]
    with pytest.raises(DataError, match=r'run: effort has shape \(3, 1\), expected \(4, 1\) '
                                        r'\(4 stamps, 1 joints\)'):
        replace(log, effort=np.zeros((3, 1)))


def test_a_part_of_samples_keeps_the_boundaries_inside_it() -> None:
    whole = samples(8, starts=(0, 3, 5, 7), began=-1.0)
    found = whole.part(slice(3, 7))
    assert found.starts == (0, 2) and len(found) == 4
    np.testing.assert_array_equal(found.velocity, whole.velocity[3:7])
    assert [(rows.start, rows.stop) for rows in whole.segments] == [(0, 3), (3, 5), (5, 7), (7, 8)]
    np.testing.assert_allclose(found.elapsed, 1.3 + 0.1 * np.arange(4), rtol=1e-12)
    np.testing.assert_allclose(samples(3).part(slice(1, 3)).elapsed, [0.0, 0.1], rtol=1e-12)


def test_motion_moves_to_the_stamps_of_the_effort_and_effort_to_the_motion() -> None:
    """Cubic splines give back a cubic, measured efforts a straight line."""
    time = 0.1 * np.arange(9)
    later = time + 0.03
    cubic = (time**3)[:, None] * [1.0, -2.0]
    given = samples(9, position=cubic, stamps=later, external=2.0 * cubic,
                    effort=(later**3)[:, None] * [3.0, 1.0], measured=later[:, None] * [5.0, -1.0])
    moved, gridded = given.moved, given.gridded
    np.testing.assert_allclose(moved.position, (later**3)[:, None] * [1.0, -2.0], atol=1e-9,
                               rtol=1e-9)
    assert moved.external is not None and moved.stamps is None
    np.testing.assert_allclose(moved.external, 2.0 * moved.position, rtol=1e-9)
    np.testing.assert_array_equal(moved.time, later)
    np.testing.assert_array_equal(moved.instants, given.instants)
    np.testing.assert_allclose(moved.acceleration[:-1], given.acceleration[:-1] + 30.0, rtol=1e-9)
    assert gridded.effort is not None and gridded.measured is not None
    np.testing.assert_allclose(gridded.effort, (time**3)[:, None] * [3.0, 1.0], atol=1e-9,
                               rtol=1e-9)
    np.testing.assert_allclose(gridded.measured, time[:, None] * [5.0, -1.0], atol=1e-9, rtol=1e-9)


def test_values_that_are_unknown_stay_unknown_at_the_stamps() -> None:
    given = samples(6, stamps=0.1 * np.arange(6) + 0.02)
    values = np.column_stack([np.arange(6.0), np.full(6, np.nan)])
    found = given.at_stamps(values)
    np.testing.assert_allclose(found[:, 0], np.arange(6.0) + 0.2, rtol=1e-9)
    assert np.isnan(found[:, 1]).all()


@pytest.mark.parametrize(('count', 'degree'), [(1, 0), (2, 1), (3, 2), (4, 3), (6, 3)])
def test_few_samples_are_interpolated_by_the_polynomial_through_them(
    count: int, degree: int
) -> None:
    asked, at = np.array([0.3, 1.7, 2.9]), np.arange(float(count))
    found = interpolated(at, np.column_stack([at**degree, 2.0 - at**degree]), asked)
    np.testing.assert_allclose(found, np.column_stack([asked**degree, 2.0 - asked**degree]),
                               rtol=1e-12)


def test_a_measurement_that_is_carried_on_is_fresh_once() -> None:
    assert samples(4).fresh.tolist() == [True] * 4
    held = samples(4, stamps=np.array([0.0, 0.1, 0.1, 0.2]))
    assert held.fresh.tolist() == [True, True, False, True]


def test_signals_with_a_past_are_computed_over_the_whole_recording() -> None:
    whole = samples(6)
    kept = whole.inner(np.array([False, True, True, False, True, True]))
    assert kept.starts == (0, 2)
    turned = kept.with_motion(lambda one: replace(one, position=np.cumsum(one.position, axis=0)))
    np.testing.assert_array_equal(
        turned.position, np.cumsum(whole.position, axis=0)[[1, 2, 4, 5]])
    np.testing.assert_array_equal(turned.velocity, whole.velocity[[1, 2, 4, 5]])


def test_recordings_are_joined_with_their_segments_and_what_all_have() -> None:
    first = samples(5, starts=(0, 2), cutoff=10.0, began=-3.0, temperature=np.ones((5, 2)))
    second = samples(4, starts=(0, 3))
    found = concatenate([first, second, first])
    assert found.starts == (0, 2, 5, 8, 9, 11) and len(found) == 14
    assert (found.temperature, found.cutoff, found.began) == (None, 10.0, -3.0)
    np.testing.assert_array_equal(found.velocity[5:9], second.velocity)
    assert found.noise is None
    known, other = replace(first, noise=(3.0, 1.0)), replace(second, noise=(0.0, 4.0))
    assert concatenate([known, other]).noise == pytest.approx((np.sqrt(5.0), np.sqrt(23.0 / 3.0)))
    alone = concatenate([known.inner(np.array([True, True, False, True, True]))])
    assert (alone.whole, alone.rows, alone.starts, alone.noise) == (None, None, (0, 2), (3.0, 1.0))


@pytest.mark.parametrize(('value', 'text'), [
    (None, DASH), (float('nan'), DASH), (float('inf'), '∞'), (float('-inf'), '-∞'),
    (1234.56, '1235'), (0.000123456, '0.0001235'), (99_999.6, '100000'), (999_999.4, '999999'),
    (1e6, '1e+06'), (1.5e6, '1.5e+06'), (-99_999.6, '-100000')])
def test_numbers_have_four_digits_or_all_before_the_point(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(('share', 'text'), [
    (None, DASH), (float('nan'), DASH), (0.1234, '12.3'), (10.0, '1000.0'), (10.01, '> 1000'),
    (-10.01, '< -1000')])
def test_shares_beyond_ten_times_are_not_counted(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(('share', 'text'), [
    (0.0994, '9.9 % of it'), (0.0996, '10 % of it'), (0.5, '50 % of it'), (10.0, '1000 % of it'),
    (10.1, 'more than 10 times it')])
def test_a_share_of_something_has_no_digits_from_a_tenth_on(share: float, text: str) -> None:
    assert share_of(share, 'it') == text


@pytest.mark.parametrize(('names', 'most', 'text'), [
    ('', None, ''), ('a', None, 'a'), ('ab', None, 'a and b'), ('abc', None, 'a, b and c'),
    ('abcd', 3, 'a, b, c and d'), ('abcde', 3, 'a, b, c and 2 more')])
def test_lists_of_names_end_with_and(names: str, most: int | None, text: str) -> None:
    assert listed(names, most) == text


def test_nouns_and_verbs_agree_with_the_number_of_things() -> None:
    assert [joints_named(names) for names in ('a', 'ab')] == ['joint a', 'joints a and b']
    assert [subject(names) for names in ('a', 'ab')] == ['a is', 'a and b are']
    assert [counted(count, 'day') for count in (0, 1, 2)] == ['0 days', '1 day', '2 days']


@pytest.mark.parametrize(('value', 'deviation', 'text'), [
    (12.3456, 0.0234, '12.346 ± 0.023'), (12.3456, 2.34, '12.3 ± 2.3'), (1234.5, 234.0,
                                                                       '1234 ± 234'),
    (12.3456, None, '12.3'), (12.3456, float('nan'), '12.3'), (12.3456, 0.0, '12.3 ± 0'),
    (12.3456, 2.3e-5, '12.345600 ± 0.000023'), (12.3456, 2.3e-6, '12.3 ± 2.3e-06'),
    (12.3456, float('inf'), '12.3 ± ∞')])
def test_a_value_has_the_digits_of_its_deviation(
    value: float, deviation: float | None, text: str
) -> None:
    assert with_deviation(value, deviation) == text


def test_cells_are_written_by_their_kind() -> None:
    marked = Cell('x', 'good')
    assert Row((True, np.False_, 3, np.int64(123456789), 1234.56, None, 'text', marked)).cells == (
        'yes', 'no', '3', '123456789', '1235', DASH, 'text', marked)


def test_tables_without_rows_make_no_section() -> None:
    full, empty = Table(('a',), [(1,)]), Table(('a',), [])
    assert tabled('title', 'text', empty) == ()
    assert tabled('title', 'text', empty, full, folded=True) == (
        Section('title', text='text', tables=(full,), folded=True),)


@dataclass(frozen=True)
class Inner:
    share: float = field(metadata={BOUNDS: NumberRange(0.0, 1.0)})


@dataclass(frozen=True)
class Outer:
    name: str
    count: int
    on: bool
    values: NDArray[np.float64]
    inner: Inner
    pair: tuple[int, float]
    more: tuple[str, ...] = ()
    table: dict[str, float] = field(default_factory=dict)
    maybe: float | None = None


GIVEN = {'name': 'x', 'count': 3, 'on': True, 'values': [[1.0, 2.0]], 'inner': {'share': 0.5},
         'pair': [1, 2.5], 'more': ['a'], 'table': {'k': 2}, 'maybe': None}


def test_a_dataclass_comes_back_from_plain_types() -> None:
    found = from_plain(Outer, GIVEN)
    assert to_plain(found) == GIVEN
    assert (found.inner, found.pair, found.more, found.table) == (
        Inner(0.5), (1, 2.5), ('a',), {'k': 2.0})
    assert not found.values.flags.writeable
    with pytest.raises(TypeError, match='object is no plain type'):
        to_plain(object())


@pytest.mark.parametrize(('change', 'words'), [
    ({'name': 3}, 'name must be text, is 3'), ({'count': True}, 'count must be a whole number'),
    ({'count': 1.5}, 'count must be a whole number, is 1.5'), ({'on': 1}, 'on must be true or'),
    ({'values': [['a']]}, r'values must be lists of numbers up to 1e\+100'),
    ({'values': [1.1e100]}, 'values must be lists'), ({'inner': {'share': 1.1}},
                                                     'inner.share must be at most 1, is 1.1'),
    ({'inner': {'share': -1.1e100}}, r'inner.share must be a number up to 1e\+100'),
    ({'inner': {}}, 'inner lacks share'), ({'inner': []}, r'inner must be a mapping, is \[\]'),
    ({'pair': [1]}, r'pair must be a list of 2, is \[1\]'), ({'pair': 3}, 'pair must be a list,'),
    ({'pair': [1, 'b']}, r'pair\[1\] must be a number'), ({'more': ['a', 2]}, r'more\[1\] must'),
    ({'table': [1]}, 'table must be a mapping'), ({'table': {'k': 'v'}}, 'table.k must be a numb'),
    ({'zeta': 1, 'eta': 2}, 'Outer has no eta, zeta')])
def test_what_does_not_fit_a_field_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, UsageError), match=words):
        from_plain(Outer, GIVEN | change)


@pytest.mark.parametrize('value', [1e100, float('inf'), float('-inf')])
def test_numbers_up_to_1e100_and_infinity_are_read(value: float) -> None:
    found = from_plain(Outer, GIVEN | {'maybe': value, 'values': [value]})
    assert (found.maybe, found.values[0]) == (value, value)
