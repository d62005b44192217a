"""Durbin-Wu-Hausman test (`errors_in_variables.exogeneity`) in closed form, and its words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from robot_dynid.estimation.errors_in_variables.exogeneity import (
    Bias,
    Comparison,
    HausmanTest,
    beyond_chance,
    compare,
)

RNG = np.random.default_rng(8)
NAMES = ('a', 'b', 'c', 'd')


def estimates(bias, batches=21):
    """Return two estimates of four parameters whose difference is `bias`, with their changes."""
    changes = RNG.normal(size=(2, batches, 4)) * [0.1, 2.0, 0.03, 0.5]
    second = np.array([3.0, -20.0, 0.7, 9.0])
    return (second + bias, changes[0]), (second, changes[1])


@pytest.mark.parametrize(('batches', 'tested'), [(4, 1), (7, 1), (8, 2), (12, 3), (40, 3)])
def test_the_difference_is_tested_in_as_many_directions_as_batches_allow(batches, tested):
    first, second = estimates(np.array([0.4, -3.0, 0.05, 1.5]), batches)
    directions = RNG.normal(size=(4, 3))
    found = compare(first, second, directions)
    changes = first[1] - second[1]
    spread = (batches - 1) * np.cov(changes.T, bias=True)
    assert found.bias == pytest.approx([0.4, -3.0, 0.05, 1.5])
    assert found.std == pytest.approx(np.sqrt(np.diag(spread)))
    along = np.linalg.pinv(directions)[3 - tested:]
    squared = along @ found.bias @ np.linalg.inv(along @ spread @ along.T) @ along @ found.bias
    statistic = squared * (batches - tested) / (tested * (batches - 1))
    assert found.test.f == pytest.approx(statistic, rel=1e-6)
    assert found.test.degrees_of_freedom == (tested, batches - tested)
    p_value = stats.f.sf(statistic, tested, batches - tested)
    assert found.test.p_value == pytest.approx(p_value, rel=1e-6)
    assert found.test.least_squares_biased == (p_value < 0.05)


@pytest.mark.parametrize(('p_value', 'biased'), [(0.052, False), (0.048, True)])
def test_least_squares_is_biased_below_five_percent(p_value, biased):
    first, second = estimates(np.zeros(4))
    unit = compare((second[0] + [0.0, 1.0, 0.0, 0.0], first[1]), second, np.eye(4)).test
    size = np.sqrt(stats.f.isf(p_value, *unit.degrees_of_freedom) / unit.f)
    test = compare((second[0] + [0.0, size, 0.0, 0.0], first[1]), second, np.eye(4)).test
    assert test.p_value == pytest.approx(p_value, rel=1e-6)
    assert test.least_squares_biased is biased


def test_few_batches_or_no_directions_test_nothing():
    nothing = HausmanTest(0.0, (0, 0), 1.0, False)
    assert compare(*estimates(np.ones(4), 3), np.eye(4)).test == nothing
    assert compare(*estimates(np.ones(4)), np.zeros((4, 0))).test == nothing


def test_differences_of_rounding_are_no_bias():
    value = np.array([2.0, 5.0])
    for size, biased in ((4e-10, False), (4e-8, True)):
        found = compare((value * (1.0 + size), np.zeros((20, 2))), (value, np.zeros((20, 2))),
                        np.eye(2))
        assert found.test.least_squares_biased is biased


@pytest.mark.parametrize(('count', 'level'), [(1, 0.05), (4, 0.05), (4, 0.01)])
def test_entries_beyond_chance_hold_the_level_for_all_together(count, level):
    bound = stats.t.ppf(1.0 - 0.5 * level / count, 6)
    std = np.linspace(0.1, 0.9, count)
    for factor in (0.98, 1.02):
        difference = np.zeros(count)
        difference[-1] = -factor * bound * std[-1]
        assert beyond_chance(difference, std, 6, level) == ([count - 1] if factor > 1.0 else [])


def test_the_most_significant_entries_come_first_and_unknown_ones_not_at_all():
    difference = np.array([5.0, -30.0, 9.0, 7.0, 0.0])
    std = np.array([1.0, 1.0, 0.5, 0.0, 0.0])
    assert beyond_chance(difference, std, 50, 0.05) == [1, 2, 0]
    assert beyond_chance(np.zeros(0), np.zeros(0), 50, 0.05) == []


def comparison(bias, biased=True, degrees=(2, 19)):
    return Comparison(np.array(bias), np.full(len(bias), 0.5), HausmanTest(
        6.247, degrees, 0.00821, biased))


def test_bias_is_told_with_the_parameters_that_show_it_most():
    names = tuple('abcdefg')
    biases = [0.1, 4.0, -5.0, 3.5, 2.5, -3.0, 6.0]
    found = comparison(biases)
    assert found.significant() == [6, 2, 1, 3, 5, 4]
    end = ('Durbin-Wu-Hausman F(2, 19) = 6.25, p = 0.0082. The cause is encoder noise in the '
           'regressor, or an effect that the model lacks')
    assert list(found.warnings(names)) == [
        'least squares is biased, most clearly in g +6 (+12.0 deviations), c -5 (-10.0 '
        'deviations), b +4 (+8.0 deviations), d +3.5 (+7.0 deviations), f -3 (-6.0 deviations): '
        f'{end}']
    assert list(comparison([0.01, 0.02]).warnings('ab')) == [f'least squares is biased: {end}']
    assert list(comparison(biases, biased=False).warnings(names)) == []
    assert found.biases(names)[1:3] == (Bias('b', 4.0, 0.5), Bias('c', -5.0, 0.5))


@pytest.mark.parametrize(('degrees', 'used'), [((2, 5), 6), ((1, 1), 1), ((0, 0), 1)])
def test_degrees_of_the_bounds_are_the_batches_less_one(degrees, used):
    bound = 0.5 * stats.t.ppf(1.0 - 0.025 / 2, used)
    assert comparison([0.98 * bound, 1.02 * bound], degrees=degrees).significant() == [1]
