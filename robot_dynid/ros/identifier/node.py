"""Node `identifier`: records joint states, identifies the dynamics, and serves the model.

It only translates. Identifications run in a process of their own, the dynamics services in a
thread; whatever else takes time leaves the joint states in the queue of their subscription.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.logging import get_logger
from rclpy.node import Node

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.files import read_text
from robot_dynid.identification.recipe import recipe_from_text
from robot_dynid.numbers import NumberRange, check_ranges
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common import interrupts
from robot_dynid.ros.common.params import load_parameters, parameter
from robot_dynid.ros.identifier.diagnostics import contact_diagnosis, diagnosis
from robot_dynid.ros.identifier.dynamics_services import DynamicsServices
from robot_dynid.ros.identifier.identify_action import IdentifyAction
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.monitoring import Monitoring, MonitorParameters
from robot_dynid.ros.identifier.recording import TOPICS, Recording
from robot_dynid.warm_up import warm_up

QUEUE_DEPTH = NumberRange(1000, 1_000_000, whole=True)
SWITCH_INTERVAL = 5e-4  # s a thread may keep the interpreter from the others


@dataclass(frozen=True)
class IdentifierParameters(MonitorParameters):
    """Parameters of the node; see config/identifier.yaml."""

    robot: str = parameter('', 'robot name, robot YAML or URDF file; needed to identify')
    model: str = parameter('', 'model file to serve from the start; empty: none')
    recordings: str = parameter('recordings', 'folder that receives one bag per recording')
    files_directory: str = parameter(
        '/', 'folder below which models and reports are written, as requests say')
    recipe: str = parameter('', 'recipe file for goals that bring no recipe; empty: defaults')
    optional_topics: tuple[str, ...] = parameter(
        (), 'further topics to record: motor_states, effort (replaces the effort field), '
        'joint_torques (behind the gears)',
        element=str)
    queue_depth: int = parameter(10000, 'joint states that may wait',
                                 allowed=QUEUE_DEPTH)

    def __post_init__(self) -> None:
        unknown = [name for name in self.optional_topics if name not in TOPICS[1:]]
        if unknown:
            raise UsageError(f'parameter optional_topics: {unknown[0]!r}; choose among '
                             f'{", ".join(TOPICS[1:])}')
        check_ranges(self, 'parameter {}')
        self.settings()


class Identifier(Node):
    """See the module."""

    def __init__(self) -> None:
        super().__init__('identifier')
        parameters = load_parameters(self, IdentifierParameters)
        robot = load_robot(parameters.robot) if parameters.robot else None
        recipe = _recipe_text(parameters.recipe)
        warm_up()
        self.models = ModelServices(self, robot, parameters.files_directory)
        if parameters.model:
            self.models.load(parameters.model)
        self.dynamics = DynamicsServices(self, self.models.served)
        self.recording = Recording(
            self, Path(parameters.recordings).expanduser().absolute(),
            robot.name if robot is not None else 'recording',
            (*parameters.optional_topics, *_needed_topics(robot)), parameters.queue_depth)
        self.monitoring = Monitoring(
            self, self.recording, self.models, parameters.settings()
        ) if parameters.monitor else None
        self.action = IdentifyAction(self, robot, self.recording, self.models, recipe)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.create_timer(1.0, self._diagnose, clock=Clock(clock_type=ClockType.STEADY_TIME))
        served = self.models.model
        self.get_logger().info(
            f'robot {robot.name if robot is not None else "not given"}, '
            f'serving {"no model" if served is None else f"a model of {served.robot.name}"}')

    def close(self) -> None:
        """End the recording and the worker process."""
        self.dynamics.close()
        self.models.close()
        if self.monitoring is not None:
            self.monitoring.close()
        self.recording.close()
        self.action.close()

    def _diagnose(self) -> None:
        message = DiagnosticArray(status=[diagnosis(
            self.get_name(), self.recording.take_statistics(), self.recording,
            self.models.model, self.action.stage)])
        if self.monitoring is not None:
            message.status = [*message.status, contact_diagnosis(
                self.get_name(), *self.monitoring.take_status())]
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)


def _needed_topics(robot: RobotModel | None) -> tuple[str, ...]:
    """Return the topics needed to identify the gears of a robot."""
    if robot is None:
        return ()
    return (*(('motor_states',) if robot.drive.elastic else ()),
            *(('joint_torques',) if robot.drive.torque_sensors else ()))


def _recipe_text(path: str) -> str:
    """Return the text of a recipe file that can be read; raises UsageError when it cannot."""
    if not path:
        return ''
    try:
        text = read_text(Path(path).expanduser())
    except (UsageError, RuntimeError) as error:  # RuntimeError: no home folder of that name
        raise UsageError(f'parameter recipe: {error}') from None
    recipe_from_text(text)
    return text


def main(args: list[str] | None = None) -> int:
    """Run the node; returns 0 after an interrupt, 1 for a model or robot that is unusable."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    stop = interrupts.init(args)
    node: Identifier | None = None
    try:
        node = Identifier()
        log = node.get_logger()
        interrupts.spin(node, stop, lambda e: log.error(f'unexpected {type(e).__name__}: {e}'))
    except DynIdError as error:
        get_logger('identifier').fatal(str(error))
        return 2 if isinstance(error, UsageError) else 1
    finally:
        if node is not None:
            node.close()
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
