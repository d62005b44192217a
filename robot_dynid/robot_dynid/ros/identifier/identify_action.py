"""The action ~/identify: passes goals to the worker process and its news to the client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.action import CancelResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.io.log import with_wrenches
from robot_dynid.io.recording_names import by_purpose
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.described_robot import RobotFiles
from robot_dynid.ros.common.files_directory import NoSuchFile
from robot_dynid.ros.common.messages import sendable
from robot_dynid.ros.common.services import DeferredActionServer, conclude
from robot_dynid.ros.identifier.identification import Code, Job, Outcome, Recorded
from robot_dynid.ros.identifier.messages import payload_message
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.worker import WorkerProcess
from robot_dynid.ros.recording.session import Recording
from robot_dynid.types import RawLog
from robot_dynid_interfaces.action import Identify

WORKER_LOOK = 0.02  # s between checks of the worker during a goal
DISK_PATIENCE = 2.0  # s to write the messages in memory to the disk
RESULT_LIFETIME = 60  # s for which a result is available


class IdentifyAction:
    """One identification at a time; on success the model is served.

    ``recipe`` reads the YAML text used for goals without a recipe; it and the files of the robot
    are read again for every goal.
    """

    def __init__(self, node: Node, robot_files: RobotFiles | None, recording: Recording,
                 models: ModelServices, recipe: Callable[[], str]) -> None:
        self._node = node
        self._robot_files = robot_files
        self._recording = recording
        self._models = models
        self._recipe = recipe
        self._worker: WorkerProcess | None = None  # before the first goal: many nodes only watch
        self._handle: Any = None
        self._submitted = False
        self._needed = 0  # messages that have to reach the disk first
        self._give_up = 0.0
        self.stage, self._last_feedback = '', ('', 0.0)
        self._timer = node.create_timer(
            WORKER_LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._timer.cancel()
        self._server = DeferredActionServer(
            node, Identify, '~/identify', execute_callback=lambda handle: None,
            handle_accepted_callback=self._accept, cancel_callback=self._cancel,
            result_timeout=RESULT_LIFETIME)

    def close(self) -> None:
        """End the worker process."""
        if self._worker is not None:
            self._worker.close()

    def _accept(self, handle: Any) -> None:
        handle.execute()
        try:
            self._require(handle.request)
        except DynIdError as error:
            no_data = isinstance(error, (DataError, NoSuchFile))
            code = Code.NO_DATA if no_data else Code.INVALID
            self._finish(handle, Outcome(code, str(error)))
            return
        self._worker = self._worker or WorkerProcess()
        self._handle, self._submitted = handle, False
        self.stage, self._last_feedback = 'record', ('', 0.0)
        recorder = self._recording.recorder
        self._needed = recorder.received if recorder is not None else 0
        self._give_up = time.monotonic() + DISK_PATIENCE
        self._timer.reset()

    def _require(self, goal: Identify.Goal) -> None:
        """Raise UsageError or DataError when a goal cannot even be started."""
        if self._handle is not None:
            raise UsageError('another identification is running; wait for it or cancel it')
        if self._robot_files is None:
            raise UsageError("the node's parameter robot is empty: start it with the name of a "
                             'robot, a robot YAML or a URDF')
        if goal.unloaded_files and not goal.payload:
            raise UsageError('unloaded_files are for the goal payload: set it, or omit them')
        if goal.payload and not goal.unloaded_files and self._models.model is None:
            raise UsageError('a payload needs a model of the arm without it (identify or load '
                             'one), or unloaded_files: recordings of the same motion without it')
        self._robot_files.read_again()
        self._sources((*goal.files, *goal.unloaded_files))
        for name in filter(None, (goal.out, goal.report)):
            self._models.files.target(name)
        if not goal.files and (
            self._recording.recorder is None or not self._recording.recorder.received
        ):
            raise DataError('nothing was recorded: call start_recording, move the robot, and '
                            'identify again, or name files in the goal')

    @property
    def _robot(self) -> RobotModel:
        assert self._robot_files is not None
        return self._robot_files.robot

    def _cancel(self, handle: Any) -> CancelResponse:
        if self._handle is None or handle.goal_id != self._handle.goal_id:
            return CancelResponse.REJECT
        if self._submitted and self._worker is not None:
            self._worker.cancel()
        return CancelResponse.ACCEPT

    def _look(self) -> None:
        """Advance the goal by one step."""
        handle = self._handle
        if handle is None:
            self._timer.cancel()
            return
        if not self._submitted:
            self._submit(handle)
            return
        assert self._worker is not None
        latest, outcome = self._worker.news()
        if latest is not None:
            self._give_feedback(handle, *latest)
        if outcome is not None:
            self._finish(handle, outcome)

    def _give_feedback(self, handle: Any, stage: str, fraction: float) -> None:
        self.stage = stage
        if (stage, fraction) != self._last_feedback:
            self._last_feedback = stage, fraction
            handle.publish_feedback(Identify.Feedback(stage=stage, fraction=fraction))

    def _submit(self, handle: Any) -> None:
        """Pass the goal to the worker, once the recording is on the disk."""
        if handle.is_cancel_requested:
            self._finish(handle, Outcome(Code.CANCELLED, 'cancelled before it began'))
            return
        goal = handle.request
        try:
            sources = self._sources(goal.files) or self._buffer()
            job = self.job(goal, sources) if sources else None
        except DynIdError as error:
            self._finish(handle, Outcome(Code.NO_DATA, str(error)))
            return
        if job is not None:
            assert self._worker is not None
            self._worker.submit(job)
            self._submitted = True

    def _sources(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self._models.files.recording, names))

    def job(self, goal: Identify.Goal, sources: tuple[str | Recorded | RawLog, ...]) -> Job:
        """Return the job of the worker: the goal, completed by the node's parameters."""
        recipe = goal.recipe or self._recipe()
        if goal.payload:
            arm = '' if self._models.model is None else self._models.model.to_yaml()
            return Job(self._robot, sources, recipe=recipe, payload=True,
                       unloaded=self._sources(goal.unloaded_files), arm=arm)
        judges: tuple[str, ...] = ()
        if goal.files:
            sources, judges = map(tuple, by_purpose(self._sources(goal.files)))
        return Job(self._robot, sources, goal.method, recipe, goal.out, goal.report,
                   self._models.files.directory, judges)

    def _buffer(self) -> tuple[Recorded | RawLog, ...]:
        """Return the recorded buffer, or None while the disk lags behind.

        The worker reads it from the disk, and from memory only if the disk cannot store it.
        """
        recorder, topics = self._recording.recorder, self._recording.topics()
        assert recorder is not None
        if recorder.storage_file is not None and recorder.saved >= self._needed:
            return (Recorded(recorder.storage_file, topics, recorder.losses),)
        if time.monotonic() < self._give_up:
            return ()
        return (recorder.snapshot(self._robot.joints, with_wrenches(topics, self._robot)),)

    def _finish(self, handle: Any, outcome: Outcome) -> None:
        """Answer a goal, and serve its model if it has one."""
        result = Identify.Result(
            success=outcome.code is Code.SUCCESS, code=int(outcome.code),
            message=sendable(outcome.message), verdict=[*map(sendable, outcome.verdict)],
            model_file=sendable(outcome.model_file), report_file=sendable(outcome.report_file),
            warnings=[*map(sendable, outcome.warnings)])
        if outcome.model is not None:
            self._models.serve(outcome.model, outcome.text)
            result.not_identified = list(outcome.model.not_identified)
        if outcome.payload is not None:
            result.payload = [payload_message(outcome.payload)]
        if handle is self._handle:
            self._handle, self.stage = None, ''
            self._timer.cancel()
        if result.success:
            files = [path for path in (result.model_file, result.report_file) if path]
            self._node.get_logger().info('; '.join(
                [result.message, *result.verdict, *(f'written: {path}' for path in files)]))
        else:  # rclpy wants one severity per place of call
            self._node.get_logger().warning(f'{outcome.code.name}: {result.message}')

        def concluded(goal: Any) -> Identify.Result:
            conclude(goal, result.success,
                     outcome.code is Code.CANCELLED and goal.is_cancel_requested)
            return result

        self._server.finish(handle, concluded)
