"""External wrenches in recordings as torque on the joints; their topics in bags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.joint_states import Topic, sampled
from robot_dynid.io.messages.definitions import WRENCH
from robot_dynid.io.messages.fields import IntArray
from robot_dynid.io.messages.kinds import IN_FRAME
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

CHANNEL = 'external_torque'


@dataclass(frozen=True, eq=False)
class WrenchTopics:
    """Topics with wrenches from the YAML of ``robot``, by the link they act on."""

    robot: RobotModel

    def torque(
        self, decoded: Mapping[str, Topic], time: IntArray, position: FloatArray | None,
        notes: list[str],
    ) -> FloatArray | None:
        """Return J^T w (N, n) [N m, N] at ``time`` (N,) [ns] and ``position`` (N, n).

        NaN where a topic has no messages; None without topics or positions. Notes are added to
        ``notes``. Raises DataError for a frame other than that of the link.
        """
        if not self.robot.wrenches or position is None:
            return None
        total = np.zeros((len(time), self.robot.n))
        for name, link in self.robot.wrenches:
            topic = decoded.get(name)
            if topic is None or not topic.parts:
                return np.full_like(total, np.nan)
            series = topic.series(self._components(topic, link, notes), notes)
            total += link_torque(self.robot, link, position, sampled(
                time, series.time, series.values['effort']))
            notes.append(f'wrench on {link} taken from topic {name}')
        return total

    def readings(
        self, decoded: Mapping[str, Topic], time: IntArray, notes: list[str]
    ) -> FloatArray | None:
        """Return the readings (N, 6) of the wrench sensor, None without one."""
        if not self.robot.wrench_sensor:
            return None
        topic = decoded[self.robot.wrench_sensor]
        _frame(topic)  # before its components are mixed
        series = topic.series(topic.joints, notes)
        return sampled(time, series.time, series.values['effort'])

    def frame(self, decoded: Mapping[str, Topic]) -> str:
        """Return the frame of the wrench sensor, '' without one; raises DataError for several."""
        return _frame(decoded[self.robot.wrench_sensor]) if self.robot.wrench_sensor else ''

    def require(self, decoded: Iterable[Topic]) -> None:
        """Raise DataError if a topic has no wrenches."""
        there = {topic.name for topic in decoded if topic.kind == WRENCH}
        sensor = self.robot.wrench_sensor
        if sensor and sensor not in there:
            raise DataError(f'no WrenchStamped messages on topic {sensor}; topics with wrenches: '
                            f'{clipped(", ".join(sorted(there))) or "none"}')
        for name, link in self.robot.wrenches:
            if name not in there:
                raise DataError(f'no WrenchStamped messages on topic {name} of {link} in the '
                                'robot YAML: record it, or remove it from wrenches')

    def _components(self, topic: Topic, link: str, notes: list[str]) -> tuple[str, ...]:
        """Return the six components on a topic, whose frame must be ``link``."""
        frame = _frame(topic)
        links = (self.robot.base_link, *(one.name for one in self.robot.tree.links))
        if frame in links and frame != link:
            raise DataError(f'topic {topic.name} has wrenches in the frame {frame}, and the robot '
                            f'YAML says {link}: force and torque must be in the axes and about '
                            f'the origin of the link that wrenches names; name {frame} there')
        if frame not in ('', link):
            notes.append(f'topic {topic.name}: the robot has no link {clipped(frame)}, the frame '
                         f'of the wrenches; read as that of {link}')
        return topic.joints


def _frame(topic: Topic) -> str:
    """Return the frame of the wrenches on a topic; raises DataError if it changes."""
    frames = tuple(dict.fromkeys(name.partition(IN_FRAME)[2] for name in topic.joints))
    if len(frames) > 1:
        raise DataError(f'topic {topic.name} has wrenches in several frames, '
                        f'{clipped(", ".join(frames))}; publish one frame')
    return frames[0]


def unknown_wrench() -> DataError:
    """Return the error for a wrench without values at the positions."""
    return DataError('the wrench has no value at the time of any position: correct its stamps, or '
                     'remove it')


def link_torque(
    robot: RobotModel, place: str, position: FloatArray, wrench: FloatArray
) -> FloatArray:
    """Return J^T w (N, n) of wrenches (N, 6) at ``place``: a link, ``<link>@<axes>``.

    NaN for all joints where a component is not finite. Raises UsageError for an unknown link.
    """
    from robot_dynid.dynamics.rigid_body import ExternalWrench  # late: most recordings have none

    complete = np.isfinite(wrench).all(axis=1)
    torque = np.full_like(position, np.nan)
    torque[complete] = ExternalWrench.at(robot, place)(position[complete], wrench[complete])
    return torque
