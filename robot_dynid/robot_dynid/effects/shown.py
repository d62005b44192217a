"""The hook through which effects draw themselves in reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from robot_dynid.document import Figure, Section
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: pictures by the number of the joint they belong to
ByJoint = dict[int, tuple[Figure, ...]]


class FittedModel(Protocol):
    """An identified model, from which effects take what they found."""

    @property
    def robot(self) -> RobotModel:
        """The robot."""

    @property
    def record(self) -> Any:
        """The record of the fit."""

    @property
    def structure(self) -> Any:
        """The structure of the model, with the parts of chosen effects."""

    @property
    def standard(self) -> dict[str, float]:
        """Standard parameters by name."""

    @property
    def trained(self) -> Any:
        """The ranges of the training."""

    def parts_of(self, effect: str) -> tuple[Any | None, ...]:
        """Return the part of each joint of a learnt effect."""


class Trace(Protocol):
    """A recording with what a model makes of it; see `validation.validate.Trace`."""

    @property
    def measured(self) -> FloatArray:
        """Measured effort (N, rows) [N m]."""

    @property
    def predicted(self) -> FloatArray:
        """Modelled effort (N, rows) [N m]."""

    @property
    def velocity(self) -> FloatArray | None:
        """Velocity (N, n) [rad/s, m/s]."""

    @property
    def waves(self) -> FloatArray | None:
        """Phase [rad] and torque [N m] (2, N, n) of the largest wave of torque ripple."""


class Shown:
    """An effect as reports show it; nothing by default."""

    @classmethod
    def sections(cls, model: FittedModel) -> tuple[Section, ...]:
        """Return sections about the effect, none where it was not looked for."""
        return ()

    @classmethod
    def figures(cls, model: FittedModel, traces: Sequence[Trace]) -> ByJoint:
        """Return pictures of the effect at the joints that have it."""
        return {}
