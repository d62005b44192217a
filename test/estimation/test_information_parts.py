"""Square-root information (`estimation.information`): batches, cells, noise, changed columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from linear_data import NAMES, STRUCTURE, Data
from motions import repeated_motion

from robot_dynid.estimation.information import (
    FILTERED,
    MAX_CELLS,
    Accumulator,
    Batch,
    ByMotion,
    merge_factors,
    triangle,
)
from robot_dynid.types import Samples


def gram(rows):
    return rows.T @ rows


def same(factor, rows):
    """Check that a factor is that of these rows."""
    expected = gram(rows)
    assert gram(factor) == pytest.approx(expected, rel=1e-8, abs=1e-10 * np.abs(expected).max())


def rows_of(data, joint, rows=slice(None)):
    """Return the rows of [A, 1, filtered, raw] of one joint."""
    effort = data.effort[rows, joint]
    return np.column_stack([data.columns[joint][STRUCTURE[joint]][:, rows].T,
                            np.ones(len(effort)), effort, data.raw[rows, joint]])


def recorded(sizes, lengths, data):
    """Return information in batches of `sizes`, of recordings of `lengths`."""
    accumulator = Accumulator(NAMES, STRUCTURE, 1, sizes=sizes)
    ends = np.cumsum([0, *lengths])
    for first, last in pairwise(ends):
        accumulator.begin()
        accumulator.add(data.columns[:, :, first:last], data.effort[first:last],
                        data.raw[first:last])
    return accumulator.information()


@pytest.mark.parametrize(('limit', 'sizes', 'numbers'), [
    (6, [12, 9, 5, 20, 4, 10], [1, 1, 1, 2, 2, 3]), (5, [12, 14, 20, 4, 10], [1, 1, 2, 2, 3]),
    (4, [21, 5, 20, 4, 10], [1, 1, 2, 2, 3]), (3, [21, 5, 20, 4, 10], [1, 1, 2, 2, 3]),
    (2, [46, 14], [1, 2])])
def test_neighbours_merge_until_they_have_their_share_of_the_samples(limit, sizes, numbers):
    data = Data(60)
    whole = recorded((12, 9, 5, 20, 4, 10), (26, 24, 10), data)
    few = whole.condensed(limit)
    assert [b.samples for b in few.batches] == sizes
    assert [b.recording for b in few.batches] == numbers
    last = slice(60 - sizes[-1], 60)
    same(few.batches[-1].factors[1], rows_of(data, 1, last))


def test_batches_are_condensed_beyond_128():
    halves = [Data(65).accumulated(1), Data(63).accumulated(1)]
    whole = halves[0].merge(halves[1])
    assert len(whole.batches) == 128 and whole.condensed() is whole
    assert len(whole.merge(Data(1).accumulated(1)).condensed().batches) < 128


def test_merged_recordings_are_numbered_on_and_their_noise_is_pooled():
    parts = [replace(recorded((4, 3, 6), (7, 6), Data(13)), noise=np.array([0.3, 0.05])),
             replace(recorded((5, 2), (5, 2), Data(7)), noise=np.array([0.1, 0.2]))]
    whole = parts[0].merge(parts[1])
    assert [b.recording for b in whole.batches] == [1, 1, 2, 4, 5]
    assert [b.samples for b in whole.batches] == [4, 3, 6, 5, 2] and whole.samples == 20
    assert whole.noise == pytest.approx(
        np.sqrt((13 * np.array([0.09, 0.0025]) + 7 * np.array([0.01, 0.04])) / 20))
    assert parts[0].merge(replace(parts[1], noise=None)).noise is None
    assert replace(parts[0], noise=None).merge(parts[1]).noise is None
    assert whole.by_motion is None and whole.distinct is whole
    assert whole.seconds.tolist() == [np.inf] * 5
    few = whole.subset([3, 1])
    assert [b.samples for b in few.batches] == [5, 3]
    groups = whole.grouped([[4, 0], [2]])
    assert [(b.samples, b.recording) for b in groups.batches] == [(6, 5), (6, 2)]


@pytest.mark.parametrize(('count', 'sizes'), [
    (9, [9]), (20, [20]), (29, [29]), (30, [20, 10]), (49, [20, 29]), (50, [20, 20, 10])])
def test_a_last_batch_below_half_a_length_joins_the_one_before(count, sizes):
    assert [b.samples for b in Data(count).accumulated(20).batches] == sizes


@pytest.mark.parametrize(('expected', 'length'), [(902, 7), (903, 14), (1805, 14), (1806, 28)])
def test_batches_are_longer_from_the_start_if_too_many_samples_are_expected(expected, length):
    assert Accumulator(NAMES, STRUCTURE, 7, expected=expected).batch_samples == length


def test_information_and_its_sizes_are_those_of_the_raw_effort_unless_told_otherwise():
    data = Data(90)
    information = data.accumulated(20)
    error = data.raw - np.einsum('ikn,k->ni', data.columns, [1.0, -1.8, 0.6, 29.0, 0.02])
    energy = information.residual_energy(np.array([1.0, -1.8, 0.6, 29.0, 0.02]))
    assert energy == pytest.approx(np.sum(error**2, axis=0))
    assert information.size() == pytest.approx(np.sqrt(np.mean(data.raw**2, axis=0)))
    assert information.spread() == pytest.approx(np.std(data.raw, axis=0))
    assert information.spread(FILTERED) == pytest.approx(np.std(data.effort, axis=0))
    columns, extra = information.batches[1].split(1)
    same(np.hstack([columns, extra]), rows_of(data, 1, slice(20, 40)))
    assert columns.shape[1] == 4 and extra.shape[1] == 3
    wide = np.zeros((20, 8))
    wide[:, np.append(STRUCTURE[1], [True] * 3)] = rows_of(data, 1, slice(20, 40))
    same(information.expanded(1, information.batches[1]), wide)


def test_factors_of_different_lengths_merge_like_their_rows():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(m, 3)) for m in (2, 5, 7)]
    same(merge_factors([parts[0], triangle(parts[1]), parts[2]]), np.vstack(parts))
    assert merge_factors(parts[:1]) is parts[0]
    assert merge_factors([triangle(p) for p in parts]).shape == (3, 3)


@pytest.mark.parametrize('centred', [(), (0,), (1,)])
def test_projected_information_is_that_of_changed_columns(centred):
    data, rng = Data(100), np.random.default_rng(3)
    information = replace(data.accumulated(25), noise=np.array([0.4, 0.9]))
    present = STRUCTURE.copy()
    present[1, 2] = False
    directions, offset = rng.normal(size=(5, 3)), rng.normal(size=5)
    directions[[0, 2, 3, 4], 1] = 0.0  # acts on the first joint only, like parameter b
    found = information.projected((1, 0), present, directions, offset, centred)
    assert found.names == ('x1', 'x2', 'x3')
    assert found.structure.tolist() == [[True, False, True], [True, True, True]]
    assert found.noise.tolist() == [0.9, 0.4] and found.by_motion is None
    assert [b.samples for b in found.batches] == [25] * 4
    for place, joint in enumerate((1, 0)):
        for k, batch in enumerate(found.batches):
            rows = slice(25 * k, 25 * k + 25)
            columns = np.where(present[joint][:, None], data.columns[joint][:, rows], 0.0).T
            efforts = np.column_stack([data.effort[rows, joint], data.raw[rows, joint]])
            expected = np.hstack([columns @ directions[:, found.structure[place]],
                                  np.ones((25, 1)), efforts - (columns @ offset)[:, None]])
            if joint in centred:
                expected = expected - expected.mean(axis=0)
            same(batch.factors[place], expected)


def by_cells(seconds=10.0, chunk=300):
    """Return data, information and cells of two parts of one recording."""
    whole = repeated_motion(3, 2.0 * seconds, 1, joints=2)
    data, count = Data(len(whole)), len(whole) // 2
    accumulator = Accumulator(NAMES, STRUCTURE, 100)
    for part in range(2):
        rows = slice(part * count, (part + 1) * count)
        accumulator.begin(Samples(
            whole.joints, whole.time[rows], whole.position[rows], whole.velocity[rows],
            whole.acceleration[rows], noise=(0.1 + 0.2 * part, 0.5)), goes_on=part > 0)
        for first in range(rows.start, rows.stop, chunk):
            some = slice(first, min(first + chunk, rows.stop))
            accumulator.add(data.columns[:, :, some], data.effort[some], data.raw[some])
    return data, accumulator.information()


@pytest.mark.parametrize('seconds', [4.0, 10.0])
def test_cells_hold_the_rows_that_visit_them(seconds):
    """Of 100 cells neighbours merge."""
    data, information = by_cells(seconds)
    cells = information.by_motion.rows
    count = len(information.by_motion.batches)
    assert len(cells) == len(data.effort) and set(cells.tolist()) == set(range(count))
    assert count <= MAX_CELLS < 2 * count + 30 and len(information.seconds) == count
    assert information.seconds.sum() == pytest.approx(2.0 * seconds, rel=0.02)
    for cell, batch in enumerate(information.distinct.batches):
        chosen = cells == cell
        assert batch.samples == chosen.sum()
        for joint in range(2):
            same(batch.factors[joint], rows_of(data, joint, chosen))
    assert {b.recording for b in information.batches} == {1}
    assert information.noise == pytest.approx([np.sqrt(0.5 * (0.01 + 0.09)), 0.5])
    few = information.about([0, 3])
    assert few.names == ('a', 'd')
    for cell, batch in enumerate(few.distinct.batches):
        same(batch.factors[0], rows_of(data, 0, cells == cell)[:, [0, *range(3, 7)]])
    again = Accumulator(NAMES, STRUCTURE, 100, cells=information.by_motion)
    again.begin()
    half = len(cells) // 3
    for rows in (slice(0, half), slice(half, None)):
        again.add(data.columns[:, :, rows], data.effort[rows], data.raw[rows])
    for ours, theirs in zip(again.information().distinct.batches, information.distinct.batches,
                            strict=True):
        same(ours.factors[1], theirs.factors[1])
        assert ours.samples == theirs.samples


def test_noise_is_unknown_if_a_part_has_none():
    samples = repeated_motion(3, 4.0, 1, joints=2)
    data = Data(len(samples))
    accumulator = Accumulator(NAMES, STRUCTURE, 100)
    for noise in ((0.1, 0.2), None):
        accumulator.begin(replace(samples, noise=noise))
        accumulator.add(data.columns, data.effort, data.raw)
    information = accumulator.information()
    assert information.noise is None
    assert sorted({b.recording for b in information.batches}) == [1, 2]


@dataclass
class Cells:
    """Cells of distinct motion whose others are all new."""

    seconds: np.ndarray

    def merge(self, other):
        places = np.arange(len(other.seconds))[::-1] + len(self.seconds)
        return Cells(np.append(self.seconds, other.seconds[::-1])), places

    def coarser(self):
        return Cells(self.seconds.reshape(-1, 2).sum(axis=1))


@pytest.mark.parametrize(('counts', 'merged'), [((64, 64), 128), ((66, 64), 65)])
def test_neighbouring_cells_merge_beyond_128(counts, merged):
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=(c, 2, 3)) for c in counts]
    one, other = (ByMotion(Cells(np.arange(1.0, c + 1)), tuple(
        Batch((triangle(part),), 2) for part in some), np.repeat(np.arange(c), 2).astype(np.int32))
        for c, some in zip(counts, rows, strict=True))
    both = one.merge(other)
    assert len(both.batches) == len(both.motion.seconds) == merged
    expected = np.concatenate([rows[0], rows[1][::-1]]).reshape(merged, -1, 3)
    for batch, part in zip(both.batches, expected, strict=True):
        assert batch.samples == len(part)
        same(batch.factors[0], part)
    cell = np.concatenate([np.repeat(np.arange(counts[0]), 2),
                           np.repeat(sum(counts) - 1 - np.arange(counts[1]), 2)])
    assert both.rows.tolist() == (cell * merged // sum(counts)).tolist()
