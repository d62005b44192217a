"""External wrenches in recordings: columns of tables, topics of bags, as torque on the joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError, UsageError, clipped
from robot_dynid.io.cdr import IN_FRAME, WRENCH, IntArray
from robot_dynid.io.joint_states import Topic, sampled
from robot_dynid.io.table import Table, read_table
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray

#: begins the columns of wrenches: ``wrench.<link>.fx``, in axes of another ``<link>@<axes>``
PREFIX = 'wrench.'
CHANNEL = 'external_torque'


@dataclass(frozen=True, eq=False)
class WrenchTopics:
    """The topics with wrenches that the YAML of ``robot`` names, by the link they act on."""

    robot: RobotModel

    def torque(
        self, decoded: Mapping[str, Topic], time: IntArray, position: FloatArray | None,
        found: list[str],
    ) -> FloatArray | None:
        """Return J^T w (N, n) [N m, N] at ``time`` (N,) [ns] and ``position`` (N, n).

        NaN where a topic is silent; None where no topic is named, or there are no positions. Notes
        go to ``found``. Raises DataError for a frame that is not that of the link.
        """
        if not self.robot.wrenches or position is None:
            return None
        total = np.zeros((len(time), self.robot.n))
        for name, link in self.robot.wrenches:
            topic = decoded.get(name)
            if topic is None or not topic.parts:
                return np.full_like(total, np.nan)
            series = topic.series(self._components(topic, link, found), found)
            values = series.values['effort']
            assert values is not None  # every message has it
            total += _torque(self.robot, link, position, sampled(time, series.time, values))
            found.append(f'wrench on {link} taken from topic {name}')
        return total

    def require(self, decoded: Iterable[Topic]) -> None:
        """Raise DataError where a topic has no wrenches."""
        there = {topic.name for topic in decoded if topic.kind == WRENCH}
        for name, link in self.robot.wrenches:
            if name not in there:
                raise DataError(f'no WrenchStamped messages on topic {name}, whose wrenches act '
                                f'on {link}, as the robot YAML says: record it, or leave it out '
                                'of wrenches')

    def _components(self, topic: Topic, link: str, found: list[str]) -> tuple[str, ...]:
        """Return the names of the six components on a topic, whose frame must be ``link``."""
        frames = tuple(dict.fromkeys(name.partition(IN_FRAME)[2] for name in topic.joints))
        if len(frames) > 1:
            raise DataError(f'topic {topic.name} has wrenches in several frames, '
                            f'{clipped(", ".join(frames))}; publish those of one')
        frame = frames[0]
        known = (self.robot.base_link, *(one.name for one in self.robot.links))
        if frame in known and frame != link:
            raise DataError(f'topic {topic.name} has wrenches in the frame {frame}, and the robot '
                            f'YAML says {link}: force and torque must be in the axes and about '
                            f'the origin of the link that wrenches names; name {frame} there')
        if frame not in ('', link):
            found.append(f'topic {topic.name}: the robot has no link {clipped(frame)}, the frame '
                         f'of the wrenches; taken for that of {link}')
        return topic.joints


def unknown_wrench() -> DataError:
    """Return the error to raise where a wrench is never known."""
    return DataError('the wrench has no number at the time of any position: leave it out, or '
                     'correct its stamps')


def is_wrench(column: str) -> bool:
    """Return whether a column of a table is one of a wrench."""
    return column.startswith(PREFIX)


def table_torque(
    table: Table, robot: RobotModel | None, position: FloatArray | None
) -> FloatArray | None:
    """Return J^T w (T, n) [N m, N] of the wrenches in a table, at ``position`` (T, n).

    None where there are none, or no robot to act on. Raises DataError naming the column for an
    unknown link, component or axes, and for a component that is missing.
    """
    heads = dict.fromkeys(c.removeprefix(PREFIX).rpartition('.')[0]
                          for c in table.columns if is_wrench(c))
    if robot is None or position is None or not heads:
        return None
    _require_components(table, heads)
    total = np.zeros((len(table.values), robot.n))
    for head in heads:
        values = np.stack([table.column(f'{PREFIX}{head}.{c}') for c in WRENCH_COMPONENTS], axis=1)
        try:
            total += _torque(robot, head, position, values)
        except UsageError as error:
            raise DataError(f'{table.source}: columns {PREFIX}{head}.*: {error}') from None
    return total


def read_wrenches(path: str | Path, robot: RobotModel, position: FloatArray) -> FloatArray | None:
    """Return J^T w (K, n) [N m, N] of the wrenches in a table of states at ``position`` (K, n).

    None where it has none. Raises DataError as `table_torque`, and for numbers that are not
    finite.
    """
    found = table_torque(read_table(path), robot, position)
    if found is not None and not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0, 0])
        raise DataError(f'{path}: state {row + 1}: the wrench is not finite; every state must be')
    return found


def _require_components(table: Table, heads: Iterable[str]) -> None:
    """Raise DataError unless every wrench has its six components and no other."""
    names = ', '.join(WRENCH_COMPONENTS)
    for column in filter(is_wrench, table.columns):
        if column.rpartition('.')[2] not in WRENCH_COMPONENTS or column.count('.') < 2:
            raise DataError(f'{table.source}: column {clipped(column)}: a wrench has the columns '
                            f'{PREFIX}<link>.<component> with {names} [N, N m]')
    for head in heads:
        missing = [c for c in WRENCH_COMPONENTS if f'{PREFIX}{head}.{c}' not in table.columns]
        if missing:
            raise DataError(f'{table.source}: {PREFIX}{clipped(head)} lacks {", ".join(missing)}: '
                            f'a wrench has {names} [N, N m]; write zero for what is none')


def _torque(
    robot: RobotModel, place: str, position: FloatArray, wrench: FloatArray
) -> FloatArray:
    """Return J^T w (N, n) of wrenches (N, 6) at ``place``: a link, ``<link>@<axes>``.

    NaN for all joints where a component is not finite. Raises UsageError for an unknown link.
    """
    from robot_dynid.dynamics.wrench import ExternalWrench  # late: most recordings have none

    known = np.isfinite(wrench).all(axis=1)
    found = np.full_like(position, np.nan)
    found[known] = ExternalWrench.at(robot, place)(position[known], wrench[known])
    return found
