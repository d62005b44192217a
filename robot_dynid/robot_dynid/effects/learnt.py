"""Effects of single joints learnt from the residual of the linear effects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dynid.effects.effect import LinearTorque
from robot_dynid.effects.shown import Shown
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples


class LearntEffect(Shown, ABC):
    """One physical cause of torque in the residual of the linear effects, joint by joint.

    ``parts`` holds one per joint, None if the recordings show none; ``plain()`` of a part is its
    content in the model file. A new effect is a file, a line in `LEARNT`, which files, prediction,
    scores, exports and reports iterate over, and the stage of `identify` that fits it.
    """

    def __init__(self, parts: Sequence[Any | None]) -> None:
        self.parts = tuple(parts)

    @classmethod
    @abstractmethod
    def read(cls, content: Any, where: str = '') -> Any:
        """Return the part that ``plain()`` wrote.

        Raises ValueError or TypeError if it is damaged, with its place ``where``.
        """

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, rows) [N m] to add to ``effort`` (N, rows) along samples.

        ``effort`` is that of base parameters ``values`` (b,) of the ``model``, and of the learnt
        effects before this one. Zero for effects that follow measured efforts.
        """
        return np.zeros_like(effort)

    def note(self, robot: RobotModel, samples: Samples) -> str:
        """Return the reason why it has no torque in these samples; '' if it has."""
        return ''

    @property
    def left_out(self) -> str:
        """A sentence about the torque that programs without these samples omit; '' for none."""
        return ''
