"""Recordings for a model: what was accepted when it was identified is accepted again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.plausibility.finding import ACCEPTED, KINDS
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import RawLog

#: end of the sentence about such a finding
THEN = f', accepted when the model was identified{ACCEPTED}'


def recordings_for(
    model: IdentifiedModel | None, robot: RobotModel, logs: Sequence[RawLog],
    accept: Iterable[str] = (),
) -> tuple[Sequence[RawLog], tuple[str, ...]]:
    """Return the recordings without copies, and warnings, as `plausible_recordings` does.

    ``robot`` is that of the ``model``, or of its rigid equivalent; ``accept`` holds further kinds.
    Raises DataError for findings that are not accepted.
    """
    then = () if model is None else tuple(k for k in model.record.accepted if k in KINDS)
    logs, warnings = plausible_recordings(robot, logs, (*then, *accept))
    return logs, tuple(
        text.removesuffix(ACCEPTED) + THEN if text.endswith(ACCEPTED) and any(
            f': {kind}' in text for kind in then) else text for text in warnings)
