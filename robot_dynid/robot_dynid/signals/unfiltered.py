"""Unfiltered recordings, for fits that estimate the motion themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Repaired
from robot_dynid.signals.servo import delayed
from robot_dynid.signals.stacked import efforts_of_equations, require_channels
from robot_dynid.types import FloatArray, Progress, interpolated


@dataclass(frozen=True, eq=False)
class Unfiltered:
    """A contiguous stretch of a recording, repaired, but neither filtered nor decimated.

    ``time`` (N,) [s] is uniform; ``position`` (N, m) [rad, m] of all coordinates, motors on the
    joint side. Efforts were measured at ``stamps`` (M,) [s] on the same clock, without their lag:
    ``effort`` (M, rows) [N m], with known external torque in those of joints, and ``temperature``
    (M, m) [deg C], if measured. ``began`` [s] is the start of the recording; None: the first row.
    """

    time: FloatArray
    position: FloatArray
    stamps: FloatArray
    effort: FloatArray
    temperature: FloatArray | None = None
    began: float | None = None


def unfiltered(robot: RobotModel, repaired: Repaired, lag: float) -> tuple[Unfiltered, ...]:
    """Return the stretches of a repaired recording whose effort is ``lag`` [s] late.

    Raises DataError if an elastic joint lacks a measurement.
    """
    stretches = []
    motors, place = list(robot.drive.elastic), repaired.place
    for number, part in enumerate(repaired.parts):
        require_channels(robot, part, repaired.notes)
        efforts = repaired.measured[number] if repaired.measured else None
        assert part.effort is not None
        stamps = part.time if efforts is None else efforts.time
        part, effort, late = delayed(
            robot, part, stamps, part.effort if efforts is None else efforts.effort, lag)
        stamps = stamps - late
        torque = part.joint_torque if efforts is None else efforts.joint_torque
        position, warm = part.position, part.temperature
        if motors:
            assert part.motor_position is not None, 'checked by require_channels'
            position = np.hstack([position, part.motor_position[:, motors]])
        rows = np.ones(len(part.time), dtype=bool) if place is None else place.own(part.time)
        time = part.time[rows]
        if len(time) < 2:
            continue
        inside = (stamps >= time[0]) & (stamps <= time[-1])
        coordinates = [*range(robot.n), *motors]
        equations = efforts_of_equations(robot, effort * robot.torque_factors, torque)[inside]
        if part.external_torque is not None:
            equations[:, :robot.n] += interpolated(
                part.time, part.external_torque, stamps[inside], degree=1)
        stretches.append(Unfiltered(
            time, position[rows], stamps[inside], equations,
            None if warm is None else interpolated(
                part.time, warm[:, coordinates], stamps[inside], degree=1), repaired.began))
    return tuple(stretches)


@dataclass(frozen=True, eq=False)
class AsRecorded:
    """Unfiltered recordings, read one at a time.

    ``read`` yields them; ``progress`` is called during the work and may end it.
    """

    read: Callable[[], Iterator[tuple[Unfiltered, ...]]]
    progress: Progress
