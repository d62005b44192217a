"""estimation/estimate.py: intervals from few stretches of time are those of Student, by the table
in any textbook."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import TABULATED

from robot_dynid.errors import DataError
from robot_dynid.estimation import Estimate, Status
from robot_dynid.estimation.drive_gains import DriveGains, GainStatus
from robot_dynid.estimation.elastic import least_squares_biased, mark_undetermined
from robot_dynid.estimation.errors_in_variables.exogeneity import (
    Bias,
    Comparison,
    HausmanTest,
    compare,
)
from robot_dynid.estimation.friction_sweeps import LawFit, SpeedPoint
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.payload import PayloadStatus, fit_payload
from robot_dynid.estimation.uncertainty.between_recordings import covariance
from robot_dynid.friction import law_from
from robot_dynid.robot.inertia import PARAMETERS

#: degrees of freedom: quantiles for two sides of 95 % and of 99 %; the last are those of Gauss
TABLE = {1: (12.706, 63.657), 2: (4.303, 9.925), 4: (2.776, 4.604), 10: (2.228, 3.169),
         10**9: (1.960, 2.576)}


def estimate(degrees: int, value: float = 7.0, std: float = 0.5) -> Estimate:
    """Return an estimate of one stiffness."""
    return Estimate(names=('K1',), values=np.array([value]), covariance=np.array([[std**2]]),
                    noise=np.ones(1), condition_raw=1.0, condition=1.0, rank=1,
                    degrees_of_freedom=degrees, method='wls')


@pytest.mark.parametrize('degrees', TABLE)
def test_half_widths_are_deviations_times_the_quantile(degrees: int) -> None:
    quantile, wide = TABLE[degrees]
    found = estimate(degrees)
    for level, factor in ((0.95, quantile), (0.99, wide)):
        low, high = found.interval(level)
        assert [low[0], high[0]] == pytest.approx([7.0 - 0.5 * factor, 7.0 + 0.5 * factor],
                                                  abs=TABULATED)
    point = SpeedPoint(1.0, 2.0, 0.5, degrees, 1, 0.0)
    assert point.half_width == pytest.approx(0.5 * quantile, abs=TABULATED)
    covariance = np.diag([0.0, 0.25, 0.0])  # of fv, fc, f0: at full speed fc counts once
    law = LawFit(law_from('coulomb'), np.array([0.0, 2.0, 0.0]), covariance, (), degrees)
    assert law.half_width(np.array([1.0])) == pytest.approx([0.5 * quantile], abs=TABULATED)
    gains = DriveGains(np.array([10.0]), np.array([0.01]), np.array([True]), degrees,
                       np.zeros(3), np.zeros(1), GainStatus.OK)
    low, high = gains.interval()
    assert np.log([10.0 / low[0], high[0] / 10.0]) == pytest.approx(
        [0.01 * quantile] * 2, abs=0.01 * TABULATED)


def seen_thrice(mass: float, ratio: float) -> Information:
    """Return three stretches that show ``mass``, their mean ``ratio`` of its deviations."""
    rng = np.random.default_rng(0)
    accumulator = Accumulator(PARAMETERS, np.ones((1, 10), dtype=bool), 200)
    for side in (-1.0, 0.0, 1.0):
        columns = np.linalg.qr(rng.normal(size=(200, 10)))[0]
        effort = mass * (1.0 + side * np.sqrt(3.0) / ratio) * columns[:, :1]
        accumulator.add(columns.T[None], effort, effort)
    return accumulator.information()


def test_a_payload_is_seen_and_refused_by_the_quantile_of_its_stretches() -> None:
    quantile = TABLE[2][0]
    reach = np.full((1, 10), 1e-6)
    for ratio, seen in ((2.5, False), (0.97 * quantile, False), (1.03 * quantile, True)):
        found = fit_payload(seen_thrice(2.0, ratio), reach)
        assert found.mass == pytest.approx(2.0)
        assert found.degrees_of_freedom == pytest.approx(2.0)
        assert found.mass / found.mass_std == pytest.approx(ratio)
        assert (found.status is not PayloadStatus.NO_PAYLOAD) == seen
        assert found.margins[0] == pytest.approx(quantile, abs=TABULATED)
        if seen:
            with pytest.raises(DataError, match='payload is negative'):
                fit_payload(seen_thrice(-2.0, ratio), reach)
        else:
            assert fit_payload(seen_thrice(-2.0, ratio), reach).mass < 1e-3


@pytest.mark.parametrize('degrees', [2, 10])
def test_bias_is_significant_by_the_quantile_of_its_batches(degrees: int) -> None:
    quantile = TABLE[degrees][0]
    for ratio, found in ((0.97 * quantile, []), (1.03 * quantile, [0])):
        told = Comparison(np.array([-0.5 * ratio]), np.array([0.5]),
                          HausmanTest(1.0, (1, degrees), 1.0, False))
        assert told.significant() == found


@pytest.mark.parametrize('degrees', [2, 10])
def test_stiffness_counts_by_the_quantile_of_its_batches(degrees: int) -> None:
    quantile, own = TABLE[degrees][0], {'K1': 'elbow', 'K2': 'wrist'}
    for ratio, beyond in ((0.97 * quantile, False), (1.03 * quantile, True)):
        found = mark_undetermined(
            estimate(degrees, 0.5 * ratio), {'K1': 'elbow'}, [], np.zeros(1))
        assert (found.status is Status.OK) == beyond
        # by instruments it cannot be more precise than by least squares
        beside = mark_undetermined(
            estimate(degrees, 0.5 * ratio), {'K1': 'elbow'}, [], np.ones(1))
        assert beside.status is not Status.OK
        # two gears share a level of 10 %
        rows = [Bias(name, bias, 0.5) for name, bias in (('K1', 0.0), ('K2', -0.5 * ratio))]
        assert least_squares_biased(rows, degrees, own) == beyond


def test_estimates_of_few_batches_are_compared_without_a_test() -> None:
    """A fourth of the batches is what can be tested: of three none, of four one direction."""
    first, second = np.array([1.0, 2.0]), np.array([0.5, 3.0])
    changes = np.random.default_rng(0).normal(size=(4, 2))
    few, more = (compare((first, changes[:count]), (second, 0.0 * changes[:count]), np.eye(2))
                 for count in (3, 4))
    np.testing.assert_array_equal(few.bias, [0.5, -1.0])
    np.testing.assert_allclose(
        few.std, np.sqrt(np.diag(covariance(changes[:3])[0])), rtol=1e-12)
    assert few.test == HausmanTest(0.0, (0, 0), 1.0, False)
    assert more.test.degrees_of_freedom == (1, 3) and more.test.f > 0.0
