"""Effects of single joints that are learnt from what the linear effects leave."""

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
    """One physical cause of torque that the linear effects leave, joint by joint.

    ``parts`` are one of each joint, None where the recordings show none of it; they write
    themselves by ``plain()``, for the model file. A new one is a file, a line in `LEARNT`, which
    files, prediction, scores, exports and reports go over, and the stage of `identify` that finds
    it.
    """

    def __init__(self, parts: Sequence[Any | None]) -> None:
        self.parts = tuple(parts)

    @classmethod
    @abstractmethod
    def read(cls, content: Any, where: str = '') -> Any:
        """Return the part that ``plain()`` wrote.

        Raises ValueError, TypeError where it is damaged, with the place ``where`` it stands.
        """

    def along(
        self, model: LinearTorque, values: FloatArray, samples: Samples, effort: FloatArray
    ) -> FloatArray:
        """Return the torque (N, rows) [N m] to add to ``effort`` (N, rows) along samples.

        ``effort`` is that of base parameters ``values`` (b,) of the ``model``, and of the learnt
        effects before this one. Zero for what follows measured efforts.
        """
        return np.zeros_like(effort)

    def note(self, robot: RobotModel, samples: Samples) -> str:
        """Return the reason for which it has no torque in these samples; '' where it has."""
        return ''

    @property
    def left_out(self) -> str:
        """A sentence about all of it that programs without these samples lack; '' for none."""
        return ''
