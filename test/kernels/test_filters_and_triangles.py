"""kernels/triangle.hpp: compiled filters, splines and triangles against SciPy and LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate, signal
from tolerances import SAME_FORMULA

from robot_dynid.estimation.information import triangle
from robot_dynid.kernels.triangle import ROWS, solve_chosen
from robot_dynid.signals.filters import first_order_zero_phase, zero_phase_low_pass
from robot_dynid.types import interpolated

DT = 0.01


def wandering(rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
    """Return random walks (count, columns), far from rest at either end."""
    return rng.normal(size=(count, columns)).cumsum(axis=0) + 5.0


@pytest.mark.parametrize('columns', [1, 7, 8, 19])
@pytest.mark.parametrize(('count', 'cutoff'), [(3, 10.0), (40, 4.0), (700, 2.0), (700, 33.0)])
def test_low_pass_is_that_of_scipy_with_its_ends(count: int, cutoff: float, columns: int) -> None:
    values = wandering(np.random.default_rng(columns), count, columns)
    sections = signal.butter(4, cutoff, fs=1.0 / DT, output='sos')
    padding = min(count - 1, int(np.ceil(3.0 / (cutoff * DT))))
    expected = signal.sosfiltfilt(sections, values, axis=0, padlen=padding)
    found = zero_phase_low_pass(values, cutoff, DT)
    assert found == pytest.approx(expected, abs=SAME_FORMULA * np.abs(values).max())


def test_first_order_filter_is_that_of_scipy_with_its_ends() -> None:
    values = wandering(np.random.default_rng(3), 300, 2)
    b, a = signal.butter(1, 20.0, fs=2.0 * np.pi / DT)
    expected = signal.filtfilt(b, a, values, axis=0, padlen=25)
    assert first_order_zero_phase(values, 20.0, DT) == pytest.approx(expected, rel=SAME_FORMULA)


@pytest.mark.parametrize('columns', [3, 8, 11])
@pytest.mark.parametrize('count', [2, 3, 4, 5, 6, 200])
def test_splines_are_those_of_scipy_also_beyond_the_ends(count: int, columns: int) -> None:
    rng = np.random.default_rng(count)
    known = np.cumsum(rng.uniform(0.2, 1.8, count)) * DT
    asked = rng.uniform(known[0] - DT, known[-1] + DT, 3 * count)
    values = wandering(rng, count, columns)
    expected = interpolate.make_interp_spline(known, values, k=min(3, count - 1))(asked)
    found = interpolated(known, values, asked)
    assert found == pytest.approx(expected, abs=SAME_FORMULA * np.abs(expected).max())


@pytest.mark.parametrize('rows', [1, 5, ROWS, ROWS + 1, 3 * ROWS + 7])
def test_triangle_is_that_of_lapack_but_for_signs(rows: int) -> None:
    rng = np.random.default_rng(rows)
    table = rng.normal(size=(rows, 9)) * 10.0 ** rng.uniform(-3.0, 3.0, 9)
    table[:, 4] = 0.0
    found, expected = triangle(table), np.linalg.qr(table, mode='r')
    size = np.linalg.norm(table, axis=0)
    assert np.array_equal(found, np.triu(found))
    used = min(rows, 4)  # behind a column of zeros rows may differ by more than their signs
    scale = np.where(size > 0.0, size, 1.0)
    assert np.abs(found[:used]) / scale == pytest.approx(np.abs(expected[:used]) / scale,
                                                         abs=SAME_FORMULA)
    assert found.T @ found / np.outer(scale, scale) == pytest.approx(
        table.T @ table / np.outer(scale, scale), abs=SAME_FORMULA)


def test_chosen_columns_are_solved_as_by_least_squares() -> None:
    rng = np.random.default_rng(2)
    tables = rng.normal(size=(3, 40, 6))  # five columns and the target
    triangles = np.stack([np.linalg.qr(table, mode='r').T for table in tables])
    chosen = np.array([[0, 2, 4], [3, 1, -1], [2, -1, -1]])
    values, apart = np.empty((3, 3, 3)), np.empty((3, 3))
    solve_chosen(np.ascontiguousarray(triangles), chosen, values, apart)
    for c, columns in enumerate(chosen):
        own = columns[columns >= 0]
        for f, table in enumerate(tables):
            expected = np.linalg.lstsq(table[:, own], table[:, -1], rcond=None)[0]
            np.testing.assert_allclose(values[c, f, :len(own)], expected,
                                       rtol=0.0, atol=SAME_FORMULA)
            assert not values[c, f, len(own):].any()
            scaled = table[:, own] / np.linalg.norm(table[:, own], axis=0)
            least = np.linalg.svd(scaled, compute_uv=False)[-1]
            assert 0.2 * least < apart[c, f] < least * (1.0 + SAME_FORMULA)
