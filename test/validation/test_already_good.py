"""validation/verdict.py: the headline says where the URDF was as good as what was identified."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.validation.verdict import AS_GOOD_RATIO, already_good

JOINTS = ('a', 'b', 'c')


def said(ours: list[float], nominal: list[float], refused: tuple[str, ...] = ()) -> str:
    """Return the sentence for relative errors in motion."""
    scores = [{'motion': {joint: SimpleNamespace(relative_error=error) for joint, error in zip(
        JOINTS, errors, strict=False)}} for errors in (ours, nominal)]
    model: Any = SimpleNamespace(joints=JOINTS, not_identified=refused)
    validation: Any = SimpleNamespace(model=scores[0], control=scores[1])
    return already_good(model, validation)


@pytest.mark.parametrize(('nominal', 'where'), [
    ([0.2, 0.3, 0.1], 'a and c ('), ([0.2, 0.1, 0.1], 'all joints ('), ([0.3, 0.3, 0.3], None)])
def test_joints_whose_urdf_leaves_as_little(nominal: list[float], where: str | None) -> None:
    text = said([0.2, 0.1, 0.1], nominal)
    assert f'are as good in {where}' in text if where else text == ''


@pytest.mark.parametrize(('factor', 'good'), [(0.99, True), (1.01, False)])
def test_as_good_is_within_a_tenth(factor: float, good: bool) -> None:
    assert (' b' in said([0.1] * 3, [0.3, factor * AS_GOOD_RATIO * 0.1, 0.3])) is good


def test_refused_joints_and_those_without_motion_are_left_out() -> None:
    assert ' in b (' in said([0.1, 0.1], [0.1, 0.1, 0.1], refused=('a',))
