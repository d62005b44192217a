"""Node `identifier`: records joint states, identifies the dynamics, and serves the model.

It only translates. Identifications run in a separate process, the dynamics services in a thread;
during any other work joint states wait in the queue of their subscription.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.identification.recipe import recipe_from_text
from robot_dynid.numbers import NumberRange
from robot_dynid.registry import Registry
from robot_dynid.ros.common import process
from robot_dynid.ros.common.described_robot import RobotFiles, RobotParameters
from robot_dynid.ros.common.files_directory import FileParameters, RequestedFiles
from robot_dynid.ros.common.messages import Diagnostics
from robot_dynid.ros.common.params import load_parameters
from robot_dynid.ros.identifier.dynamics_services import DynamicsServices
from robot_dynid.ros.identifier.identify_action import IdentifyAction
from robot_dynid.ros.identifier.messages import contact_diagnosis, diagnosis
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.monitoring import Monitoring, MonitorParameters
from robot_dynid.ros.identifier.wrist import WristService
from robot_dynid.ros.recording.session import TOPICS, WRENCH, Recording
from robot_dynid.settings import require_allowed, setting
from robot_dynid.threads import limit_threads

QUEUE_DEPTH = NumberRange(1000, 1_000_000, whole=True)


class _Closable(Protocol):
    def close(self) -> None: ...


Part = TypeVar('Part', bound=_Closable)


class PartOfPackage(Protocol):
    """A part of the node that a package adds by an entry point of PARTS."""

    #: a dataclass with the parameters of the part, see `ros.common.params`
    parameters: type[Any]

    def begin(self, identifier: Identifier, parameters: Any) -> _Closable | None:
        """Return the part, which the node closes; None where it is switched off."""


#: what packages add to the node
PARTS: Registry[PartOfPackage] = Registry('robot_dynid.identifier_parts', {})


@dataclass(frozen=True)
class IdentifierParameters(RobotParameters, FileParameters, MonitorParameters):
    """Parameters of the node; see config/identifier.yaml."""

    model: str = setting('', text='model file to serve from the start; empty: none')
    recording_directory: str = setting(
        'recordings', text='folder that receives one bag per recording')
    recipe: str = setting('', text='recipe file for goals without a recipe; empty: defaults')
    wrist_sensor: str = setting(
        '', text='file of robot-dynid payload --wrench: compensate the sensor on the topic wrench')
    optional_topics: tuple[str, ...] = setting(
        (), TOPICS[1:], 'further topics to expect: motor_states, effort (replaces the effort '
        'field), joint_torques (behind the gears)', kind=str)
    queue_depth: int = setting(10000, QUEUE_DEPTH, 'joint states that may wait')

    def __post_init__(self) -> None:
        require_allowed(self, 'parameter {}')
        self.settings()


class Identifier(Node):
    """See the module."""

    def __init__(self) -> None:
        super().__init__('identifier')
        with ExitStack() as opened:  # threads must not outlive a start that fails
            self._open(load_parameters(self, IdentifierParameters, *(
                part.parameters for part in PARTS.values())), opened)
            self._expand_opening = opened.pop_all()

    def _open(self, loaded: list[Any], opened: ExitStack) -> None:
        """Start all parts with their parameters; ``opened`` closes those that were started."""
        parameters: IdentifierParameters = loaded[0]
        def closing(part: Part) -> Part:
            opened.callback(part.close)
            return part

        files = RobotFiles(self, parameters) if (
            parameters.robot or parameters.robot_description) else None
        robot = None if files is None else files.robot
        recipe = partial(_recipe_text, parameters.recipe)
        recipe()
        self.robot = robot
        self.models = closing(ModelServices(
            self, robot, RequestedFiles.of(self, parameters), parameters.model))
        self.dynamics = closing(DynamicsServices(self, self.models.served))
        self.folder = Path(parameters.recording_directory).expanduser().absolute()
        needed: list[str] = []  # to identify the gears
        if robot is not None and robot.drive.elastic:
            needed.append('motor_states')
        if robot is not None and robot.drive.torque_sensors:
            needed.append('joint_torques')
        self.recording = closing(Recording(
            self, self.folder, robot.name if robot is not None else 'recording',
            (*parameters.optional_topics, *needed), parameters.queue_depth,
            (*(topic for topic, _ in (robot.wrenches if robot else ())),
             *([WRENCH] if parameters.wrist_sensor else ()))))
        self.wrist = closing(WristService(
            self, self.recording, robot, parameters.wrist_sensor
        )) if parameters.wrist_sensor else None
        self.monitoring = closing(Monitoring(
            self, self.recording, self.models, parameters.settings()
        )) if parameters.monitor else None
        begun = ((name, added.begin(self, settings)) for (name, added), settings in zip(
            PARTS.items(), loaded[1:], strict=True))
        self.parts = {name: closing(part) for name, part in begun if part is not None}
        self.action = closing(IdentifyAction(self, files, self.recording, self.models, recipe))
        self._diagnostics = Diagnostics(self, robot.name if robot is not None else '')
        self.create_timer(1.0, self._diagnose, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(self._ready())

    def _ready(self) -> str:
        robot, served, states = self.robot, self.models.model, self.resolve_topic_name(
            'joint_states')
        name = 'none, so it identifies nothing' if robot is None else \
            f'{robot.name} ({", ".join(robot.joints)})'
        waits = 'start_recording, identify' + ('' if served else ', load_model')
        monitor = 'off' if self.monitoring is None else \
            f'waits for {"" if served else "a model and "}{states}'
        return (f'ready: robot {name}; records {states}; serves '
                f'{"no model" if served is None else f"a model of {served.robot.name}"}; monitor '
                f'{monitor}; waits for {waits}')

    def close(self) -> None:
        """End the recording and the worker process."""
        self._expand_opening.close()

    def _diagnose(self) -> None:
        statuses = [diagnosis(
            'identification', self.recording.take_statistics(), self.recording,
            self.models.model, self.action.stage)]
        if self.monitoring is not None:
            statuses.append(contact_diagnosis('contact', *self.monitoring.take_status()))
        self._diagnostics.publish(*statuses)


def _recipe_text(path: str) -> str:
    """Return the text of a recipe file; raises UsageError if it cannot be read."""
    if not path:
        return ''
    try:
        text = read_text(Path(path).expanduser())
    except (UsageError, RuntimeError) as error:  # RuntimeError: no home folder of that name
        raise UsageError(f'parameter recipe: {error}') from None
    recipe_from_text(text)
    return text


def main(args: list[str] | None = None) -> NoReturn:
    """Run the node; see `process.run`."""
    sys.setswitchinterval(process.SWITCH_INTERVAL)
    limit_threads(1)  # the other cores are for the robot and the rest of the node
    process.run('identifier', Identifier, process.spin, args)


if __name__ == '__main__':
    main()
