"""excitation/request.py: options common to all kinds of design: their values unless told, their
ranges, and the number of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.request import DesignOptions, validation_request


def test_options_of_a_design_are_as_documented_unless_told() -> None:
    assert parse_request('', None).common == DesignOptions(
        seed=0, scale=0.9, starts=8, iterations=300, time_limit=np.inf, objective='condition',
        accuracy=np.inf, limits={}, purpose='fit', validation=True)


@pytest.mark.parametrize(('name', 'allowed', 'refused'), [
    ('seed', 0, -1), ('seed', 2**63 - 1, 2**63), ('scale', 1e-3, 0.9e-3), ('scale', 1.0, 1.01),
    ('starts', 1, 0), ('starts', 1000, 1001), ('iterations', 1, 0),
    ('iterations', 100_000, 100_001), ('time_limit', 0.0, -0.1), ('time_limit', 1e6, 1.1e6),
    ('accuracy', 1e-9, 0.9e-9), ('accuracy', 1e9, 1.1e9)])
def test_options_of_a_design_are_in_their_range(name: str, allowed: Any, refused: Any) -> None:
    assert getattr(parse_request('', {name: allowed}).common, name) == allowed
    with pytest.raises(UsageError, match=f"option '{name}' must be"):
        parse_request('', {name: refused})


def test_a_validation_motion_takes_half_as_long_again_in_one_period_from_one_start() -> None:
    """Each attempt has a seed of its own, from that of the fit motion."""
    options = {'duration': 24.0, 'periods': 3, 'seed': 7, 'scale': 0.5, 'accuracy': 0.1}
    request = parse_request('fourier', options)
    found = [validation_request(request, attempt) for attempt in range(2)]
    for attempt, one in enumerate(found):
        assert one is not None
        assert (one.options.duration, one.options.periods) == (12.0, 1)
        common = one.common
        assert (common.scale, common.starts, common.accuracy, common.purpose) == (
            1.0, 1, np.inf, 'validation')
        assert common.seed == np.random.default_rng((7, attempt)).integers(2**31)
    assert validation_request(request) == found[0]
    spline = validation_request(parse_request('bspline', {'duration': 24.0}))
    assert spline is not None and spline.options.duration == 36.0


def test_segments_are_numbered_from_one_and_at_most_a_hundred() -> None:
    """Their seeds follow from that of the whole; they use all of its share of the limits."""
    one = {'type': 'static-poses'}
    request = parse_request('composite', {'segments': [one] * 100, 'seed': 3})
    generator = np.random.default_rng(3)
    assert [part.common.seed for part in request.options.segments] == [
        generator.integers(2**31) for _ in range(100)]
    assert {part.common.scale for part in request.options.segments} == {1.0}
    with pytest.raises(UsageError) as raised:
        parse_request('composite', {'segments': [one] * 101})
    assert str(raised.value) == "option 'segments' lists 101, more than 100"
    with pytest.raises(UsageError, match="segment 2: must be a mapping with a 'type', got 3"):
        parse_request('composite', {'segments': [one, 3]})
