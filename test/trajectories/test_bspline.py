"""Quintic B-splines: bounds hold and are tight, the basis is that of the trajectory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motion_constraints import box, random_boxes

from robot_dynid.errors import UsageError
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.search.basis import BSplineBasis
from robot_dynid.trajectories.bspline import BSplineOptions, BSplineTrajectory
from robot_dynid.trajectories.composite import build, describe
from robot_dynid.trajectories.limits import violations

#: bounds of the continuous motion are at most this much wider than the motion
TIGHT = 1.01
SPLINES = st.tuples(st.integers(2, 40), st.floats(0.5, 100.0), st.integers(0, 2**32 - 1))


@settings(max_examples=60)
@given(SPLINES)
def test_bounds_hold_and_are_tight(spline):
    knots, duration, seed = spline
    points = np.random.default_rng(seed).standard_normal((2, knots))
    trajectory = BSplineTrajectory(('a', 'b'), duration, points)
    motion = trajectory.sample(np.linspace(0.0, duration, 300 * (knots + 1) + 1))
    peaks = trajectory.peaks()
    assert np.all((motion.position >= peaks.lower) & (motion.position <= peaks.upper))
    assert np.all(peaks.upper - peaks.lower < TIGHT * np.ptp(motion.position, axis=0))
    for name in ('velocity', 'acceleration', 'jerk'):
        largest, bound = np.abs(getattr(motion, name)).max(axis=0), getattr(peaks, name)
        assert np.all(largest <= bound) and np.all(bound < TIGHT * largest), name


@pytest.mark.parametrize('points', [[-2.0, -1.5, -1.0], [1.0, 1.5, 2.0], [-0.5, 0.0, 0.5]])
def test_bounds_hold_at_the_ends_on_either_side_of_zero(points):
    spline = BSplineTrajectory(('a', 'b'), 3.0, np.array([points, points[::-1]]))
    ends, peaks = spline.sample([0.0, 3.0]).position, spline.peaks()
    assert np.all((peaks.lower <= ends) & (ends <= peaks.upper))
    np.testing.assert_allclose(np.sort(ends, axis=0), [peaks.lower, peaks.upper], rtol=1e-8,
                               atol=1e-8)


@settings(max_examples=60)
@given(random_boxes(), SPLINES)
def test_random_splines_keep_every_limit_and_use_one(limits, spline):
    knots, duration, seed = spline
    basis = BSplineBasis(limits.joints, BSplineOptions(duration, knots))
    trajectory = basis.trajectory(basis.random(limits, np.random.default_rng(seed)))
    peaks = trajectory.peaks()
    assert not violations(peaks, limits)
    ratios = [0.5 * (peaks.upper - peaks.lower) / limits.half_range]
    ratios += [getattr(peaks, name) / getattr(limits, name)
               for name in ('velocity', 'acceleration', 'jerk')]
    assert np.all(np.nanmax(ratios, axis=0) > 0.998)
    ends = trajectory.sample([0.0, duration])
    for name in ('velocity', 'acceleration', 'jerk'):
        assert not np.any(getattr(ends, name))


@settings(max_examples=40)
@given(SPLINES)
def test_the_basis_is_that_of_the_trajectory(spline):
    knots, duration, seed = spline
    basis = BSplineBasis(('a', 'b', 'c'), BSplineOptions(duration, knots))
    coefficients = np.random.default_rng(seed).standard_normal((3, basis.size))
    motion = basis.trajectory(coefficients).sample(basis.grid())
    for matrix, values in zip(basis.matrices(basis.grid()), vars(motion).values(), strict=True):
        assert np.allclose(matrix @ coefficients.T, values, rtol=0.0,
                           atol=1e-12 * np.abs(values).max())


@pytest.mark.parametrize('order', range(4))
def test_the_margin_of_the_grid_covers_what_lies_between(order):
    basis = BSplineBasis(('a',), BSplineOptions(10.0, 9))
    coarse = basis.matrices(basis.grid())[order]
    fine = basis.matrices(np.linspace(0.0, 10.0, 20001))[order]
    points = np.random.default_rng(order).standard_normal((basis.size, 2000))
    between, seen = (np.abs(m @ points).max(axis=0) for m in (fine, coarse))
    assert np.all(basis.margin * between <= seen)


def test_the_first_pose_is_the_first_point():
    points = np.array([[0.3, 1.0, -0.2], [-1.0, 0.0, 2.0]])
    trajectory = BSplineTrajectory(('a', 'b'), 4.0, points)
    assert np.allclose(trajectory.sample([0.0, 4.0]).position, points[:, [0, -1]].T, atol=1e-15)


@pytest.mark.parametrize(('options', 'words'), [
    ({'knots': 1}, 'at least 2'), ({'knots': 3.5}, 'a whole number'),
    ({'duration': 0}, 'positive'),
    ({'harmonics': 5}, "unknown option 'harmonics' of bspline")])
def test_wrong_options_are_explained(options, words):
    with pytest.raises(UsageError, match=words):
        parse_request('bspline', options)


@pytest.mark.parametrize(('change', 'words'), [
    ({'points': [[0.0], [1.0]]}, 'at least two control points'), ({'points': 3}, 'list of rows'),
    ({'points': [[0.0, 1.0], [2.0]]}, "'points' must be 2 lists of 2 finite"),
    ({'points': [[0.0] * 201] * 2}, '201 numbers per row, more than 200'),
    ({'duration': -1.0}, 'must be positive')])
def test_a_wrong_description_is_explained(change, words):
    basis = BSplineBasis(('a', 'b'), BSplineOptions())
    spline = basis.trajectory(basis.random(box(2), np.random.default_rng(0)))
    with pytest.raises(UsageError, match=words):
        build({**describe(spline), **change})
