"""estimation/least_squares.py: noise of the effort: told by repetition, or by what a fit leaves
over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linear_data import NAMES, STRUCTURE, Data
from motions import repeated_motion
from tolerances import LEAST_SQUARES

from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.least_squares import residual_noise, solve


def test_noise_of_repeated_recordings_counts_by_their_samples():
    """Known noise is a root mean square over all samples, however they were put together."""
    data, samples = Data(60), repeated_motion(0, 0.6, 1)
    first, second = slice(0, 20), slice(20, 60)

    def added(accumulator, rows, noise):
        accumulator.begin(replace(samples.part(rows), noise=noise))
        accumulator.add(data.columns[:, :, rows], data.effort[rows], data.raw[rows])
        return accumulator

    one = added(Accumulator(NAMES, STRUCTURE, 20), first, (3.0, 1.0))
    other = added(Accumulator(NAMES, STRUCTURE, 40), second, (1.0, 2.0)).information()
    expected = np.sqrt([(20 * 9.0 + 40 * 1.0) / 60, (20 * 1.0 + 40 * 4.0) / 60])
    assert one.information().merge(other).noise == pytest.approx(expected)
    both = added(one, second, (1.0, 2.0))
    assert both.information().noise == pytest.approx(expected)
    unknown = added(both, second, None).information()  # of one recording it is not known
    assert unknown.noise is None
    assert other.merge(unknown).noise is None


def test_noise_is_what_is_left_over_per_degree_of_freedom():
    data = Data(30)
    information = data.accumulated(10)
    values = solve(information, np.ones(2)).values
    for joint, found in enumerate(residual_noise(information, values)):
        left = data.effort[:, joint] - values @ data.columns[joint]
        freedom = 30 - STRUCTURE[joint].sum()
        assert found == pytest.approx(np.sqrt(left @ left / freedom), rel=LEAST_SQUARES)
