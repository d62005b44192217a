"""execution/segment.py: names and progress of the stretches of a segment, its times and faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS
from pytest import approx

from robot_dynid.execution.pace import Entry
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Segment, Send, segment_faults

STILL = np.zeros((5, 2))
POINTS = SampledTrajectory(JOINTS, 2.0 * np.arange(5.0), STILL, STILL, STILL)
SEGMENT = Segment('excitation', POINTS, LIMITS, (('warm_up', 2.5), ('slow', 4.0)))


@pytest.mark.parametrize(('time', 'name', 'share'), [
    (-1.0, 'warm_up', 0.0), (0.0, 'warm_up', 0.0), (2.0, 'warm_up', 0.8), (2.5, 'slow', 0.0),
    (3.4, 'slow', 0.6), (4.0, 'excitation', 0.0), (7.0, 'excitation', 0.75),
    (9.0, 'excitation', 1.0)])
def test_a_stretch_has_its_progress_from_the_end_of_the_one_before(
    time: float, name: str, share: float
) -> None:
    assert SEGMENT.part(time) == (name, approx(share))
    late = replace(SEGMENT, begin=1.5)  # the motion was interrupted: 9.5 s of it in all
    assert late.part(2.5 - 1.5)[0] == 'slow'
    assert late.part(4.0) == ('excitation', approx((5.5 - 4.0) / 5.5))


def test_a_segment_that_continues_a_motion_has_less_left_and_begins_in_the_past() -> None:
    assert (SEGMENT.remaining, SEGMENT.along(3.0), SEGMENT.followed) == (8.0, (3.0, 1.0), POINTS)
    assert Send.at(SEGMENT, 100.0).begun is None
    later = replace(SEGMENT, elapsed=0.5, entry=Entry(3.0, 0.5, 0.2, 0.4))
    assert (later.remaining, Send.at(later, 100.0).begun) == (7.5, 99.5)
    assert later.along(3.1) == (approx(3.05), 0.5)


def test_faults_name_the_segment_and_the_longest_motion() -> None:
    assert segment_faults(SEGMENT, 8.0) == ()
    assert segment_faults(SEGMENT, 7.5) == ('excitation: the motion takes 8 s (limit 7.5 s)',)
