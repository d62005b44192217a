"""Noise of the effort: told by repetition, or by what a fit leaves over."""

from __future__ import annotations

import numpy as np
import pytest
from linear_data import NAMES, STRUCTURE, Data
from tolerances import LEAST_SQUARES

from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.least_squares import residual_noise, solve


def test_noise_of_repeated_recordings_counts_by_their_samples():
    """Known noise is a root mean square over all samples, however they were put together."""
    data = Data(60)
    parts = []
    for noise in ((3.0, 1.0), (1.0, 2.0)):
        accumulator = Accumulator(NAMES, STRUCTURE, 20)
        rows = slice(0, 20) if not parts else slice(20, 60)
        accumulator.begin(len(data.effort[rows]), noise)
        accumulator.add(data.columns[:, :, rows], data.effort[rows], data.raw[rows])
        parts.append(accumulator)
    expected = np.sqrt([(20 * 9.0 + 40 * 1.0) / 60, (20 * 1.0 + 40 * 4.0) / 60])
    first, second = (part.information() for part in parts)
    assert first.merge(second).noise == pytest.approx(expected)
    parts[0].begin(40, (1.0, 2.0))
    assert parts[0].information().noise == pytest.approx(expected)
    parts[0].begin(40, None)  # of one recording it is not known
    assert parts[0].information().noise is None
    assert first.merge(parts[0].information()).noise is None


def test_noise_is_what_is_left_over_per_degree_of_freedom():
    data = Data(30)
    information = data.accumulated(10)
    values = solve(information, np.ones(2)).values
    for joint, found in enumerate(residual_noise(information, values)):
        left = data.effort[:, joint] - values @ data.columns[joint]
        freedom = 30 - STRUCTURE[joint].sum()
        assert found == pytest.approx(np.sqrt(left @ left / freedom), rel=LEAST_SQUARES)
