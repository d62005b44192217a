"""Slow changes of friction and ripple, followed along recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.effects.slow_changes import FrictionResidual, SlowChangeTracker
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.signals.prepare import Repaired
from robot_dynid.signals.windows import file_of
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class Remainder:
    """Effort of all joints, which are rigid, that a model does not explain along a recording.

    ``rows`` (M,) have a measurement; ``time`` (M,) [s], ``viscous``, ``dry``, ``power`` and
    ``left`` (n, M) and ``gap`` as in `FrictionResidual`. ``phases`` (3, n, M) are position,
    velocity and effort for the ``ripples`` of the joints, or None.
    """

    ripples: tuple[TorqueRipple | None, ...]
    phases: FloatArray | None
    gap: float | None
    rows: NDArray[np.int64]
    time: FloatArray
    viscous: FloatArray
    dry: FloatArray
    power: FloatArray
    left: FloatArray

    @classmethod
    def of(
        cls, model: IdentifiedModel, samples: Samples, smooth: FloatArray, gap: float | None
    ) -> Remainder:
        """Return the remainder of samples; ``smooth`` (N, n) [N m] is the model without ripple."""
        assert samples.measured is not None
        measured = np.flatnonzero(samples.fresh)
        moved = samples.moved
        friction = smooth - model.frictionless_effort(
            moved.position, moved.velocity, moved.acceleration)
        axes = model.axis_friction
        viscous = moved.velocity @ axes.axes.T * axes.straight[:, 0] @ axes.axes
        dry = friction - viscous - axes.straight[:, 1] @ axes.axes
        power = np.maximum((viscous + dry) * moved.velocity, 0.0)
        left = samples.measured - smooth - model.ripple_torque.of_samples(samples, smooth)
        phases = None
        if model.ripple_torque.any and samples.raw_position is not None:
            phases = np.stack([x[measured].T for x in (
                samples.raw_position, samples.at_stamps(samples.velocity), smooth)])
        columns = (np.ascontiguousarray(x[measured].T) for x in (viscous, dry, power, left))
        return cls(model.parts_of('ripple'), phases, gap, measured, moved.time[measured], *columns)

    def without_waves(self, j: int) -> FrictionResidual:
        """Return the remainder of one joint without the columns of its torque ripple."""
        return FrictionResidual(self.time, self.viscous[j], self.dry[j], self.power[j],
                                self.left[j],
                        np.zeros((len(self.time), 0)), self.gap)

    def of_joint(self, j: int) -> FrictionResidual:
        """Return the remainder of one joint, including the columns of its torque ripple."""
        ripple, plain = self.ripples[j], self.without_waves(j)
        if ripple is None or self.phases is None:
            return plain
        return replace(plain, waves=ripple.columns(*self.phases[:, j]))


class Course:
    """Sequence of recordings, with the times between them."""

    def __init__(self, model: IdentifiedModel) -> None:
        self._model = model
        self._before: Repaired | None = None
        self._end = 0.0

    def __call__(self, recording: Repaired, samples: Samples, smooth: FloatArray) -> Remainder:
        """Return the remainder of the next recording; arguments as for `Remainder.of`."""
        time = samples.instants
        gap = gap_between(self._before, self._end, recording, float(time[0]))
        self._before = replace(recording, parts=(), measured=())  # no recording stays in memory
        self._end = float(time[-1])
        return Remainder.of(self._model, samples, smooth, gap)


def gap_between(before: Repaired | None, end: float, after: Repaired, begin: float
                ) -> float | None:
    """Return the time [s] from the ``end`` of a recording to the ``begin`` of the next.

    Both on their own clocks; None if unknown, or if they are out of order. Parts and windows of
    one recording share a clock.
    """
    if before is None:
        return None
    if before.epoch is not None and after.epoch is not None:
        gap = after.epoch + begin - before.epoch - end
    elif before.began is not None and (_file(before), before.began) == (_file(after), after.began):
        gap = begin - end
    else:
        return None
    return gap if gap > 0.0 else None


def _file(one: Repaired) -> str:
    """Return the file of a recording, or of a part or window of it."""
    return file_of(one.source if one.place is None else one.place.recording)


class SlowChanges:
    """Tracks the slow changes of all joints from recording to recording."""

    def __init__(self, model: IdentifiedModel) -> None:
        self._course = Course(model)
        self._joints = tuple(
            None if one is None else SlowChangeTracker(one, 0 if ripple is None else len(
                ripple.coefficients)) for one, ripple in zip(
                model.parts_of('adaptation'), model.parts_of('ripple'), strict=True))
        self.any = any(self._joints)

    def __call__(
        self, recording: Repaired, samples: Samples, smooth: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return torques (M, n) [N m] to add to the model: for warm-up, and for all slow changes.

        They are those of the M rows with a measurement; ``smooth`` (N, n) [N m] is the effort of
        the model at all rows, without torque ripple.
        """
        remainder = self._course(recording, samples, smooth)
        warmed, adapted = np.zeros((2, len(remainder.rows), len(self._joints)))
        for j, follow in enumerate(self._joints):
            if follow is not None:
                warmed[:, j], adapted[:, j] = follow(remainder.of_joint(j))
        return warmed, adapted
