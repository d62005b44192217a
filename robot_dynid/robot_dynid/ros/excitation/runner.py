"""Runner of one excitation at a time: plan, record, execute; sends commands, reports outcomes.

Everything runs under the lock of the node's listener, in its thread or the executor's, except
designs, plans and the opening and closing of bags, which have a separate thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.execution import checklist
from robot_dynid.execution.checklist import Item, unguarded
from robot_dynid.execution.guards import Alarms, Code, GuardSettings, JointStates, Outcome
from robot_dynid.execution.plan import announcement, total_duration
from robot_dynid.execution.segment import Cancel, Commands, Hold, Phase, Segment, Send
from robot_dynid.execution.supervisor import Execution
from robot_dynid.execution.watchdog import unseen
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.ros.common import real_time
from robot_dynid.ros.common.described_robot import RobotFiles, differences
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.excitation.bag_session import ExcitationBag
from robot_dynid.ros.excitation.checklist import Checklist, Tap
from robot_dynid.ros.excitation.controller_client import ControllerClient, goal_message
from robot_dynid.ros.excitation.plan import (
    DryRuns,
    ExcitationPlan,
    Refused,
    designed,
    given,
    refusal,
    with_files,
)
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.ros.excitation.waiting import Waits, require_real_time
from robot_dynid.ros.recording.channel import TopicStatistics
from robot_dynid.yaml_text import load_yaml
from robot_dynid_interfaces.action import Excite

COMPUTING = 'design'  # name of the thread that computes for long
LISTENING = 1.0  # shortest time to listen for the checklist, s
LONGEST_LISTENING = 2.0  # longest wait for a message of every topic, s
PENDING = 0.02  # s to take the messages that arrived meanwhile
TO_JUDGE = '; validation: '  # between the texts of two motions
FIRST_STATES = 1.0  # s within which the recording, or a dry run, must have received all joints


class Runner:
    """Executes the goals of the excitation node."""

    def __init__(self, node: Node, robot_files: RobotFiles, settings: ExcitationSettings,
                 guards: GuardSettings, group: CallbackGroup, listener: Listener) -> None:
        robot = robot_files.robot
        self._robot_files, self.settings, self.guards = robot_files, settings, guards
        self.states = JointStates(robot.joints, robot.types != PRISMATIC)
        self.alarms = Alarms(robot.joints, guards)
        self.execution: Execution | None = None
        self.design: tuple[str, float] = ('design', 0.0)
        self.recording = ''
        self.total_duration = self.later = 0.0
        self._notes: tuple[str, ...] = ()
        self.waits = Waits()
        self.stop, self.leaving = threading.Event(), False
        self.controller = ControllerClient(
            node, (settings.controller, settings.face), self.perform, group, listener)
        self._log, self._clock = node.get_logger(), node.get_clock()
        folder = Path(settings.recording_directory).expanduser().absolute()
        self._bag = ExcitationBag(
            node, (folder, robot.name), settings.controller,
            (topic for topic, _ in robot.wrenches))
        self._checklist = Checklist(node, robot, settings, guards, self.controller)
        self._checked = False
        self.files = RequestedFiles.of(node, settings)
        self.dry_runs = DryRuns(self.files)
        self._goals: Mapping[Segment, Any] = {}
        self._pool = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=COMPUTING, initializer=real_time.exempt_thread)
        self._files = ThreadPoolExecutor(max_workers=1)

    def close(self) -> None:
        """End the recording, and save what its disk did not take."""
        self._bag.close()

    @property
    def robot(self) -> RobotModel:
        """The robot as its files described it at the last reading."""
        return self._robot_files.robot

    def _read_robot(self) -> RobotModel:
        """Read the files of the robot; repeat the first check if they changed.

        Raises DynIdError.
        """
        previous, robot = self.robot, self._robot_files.read_again()
        if differences(previous, robot):
            self._checklist, self._checked = replace(self._checklist, robot=robot), False
        return robot

    def begin(self) -> None:
        """Discard the state of the last goal."""
        self.execution, self.design, self.recording = None, ('design', 0.0), ''
        self.total_duration, self.later, self._notes = 0.0, 0.0, ()
        self.stop.clear()

    async def planned(self, request: Excite.Goal) -> ExcitationPlan:
        """Return the checked plan of a goal; design or read it in the background.

        Raises DynIdError if there is none.
        """
        plan: ExcitationPlan = await self._background(lambda: self._plan(request))
        return plan

    def _plan(self, request: Excite.Goal) -> ExcitationPlan:
        robot, settings, progress = self._read_robot(), self.settings, self.report_progress
        if request.trajectory:
            if request.type or request.options:
                raise UsageError('a goal has either a trajectory, which is executed unchanged, or '
                                 'type and options of one to design: omit one of them')
            planned = self.dry_runs.find(request.trajectory)
            if isinstance(planned, ExcitationPlan):
                return planned.checked_again(robot, settings, progress)
            trajectory, purpose = planned
            return given(robot, trajectory, settings, progress, purpose)
        options = load_yaml(request.options, 'options', UsageError)
        return designed(robot, (request.type, with_files(options, self.files)), settings, progress)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about missing guards, and about unknown properties of the motion."""
        return (*self._notes, *unguarded(
            self.guards, self.alarms.pressed is not None, self.settings.lookahead))

    async def shown(self, plan: ExcitationPlan) -> Outcome:
        """Return the outcome of a dry run: the duration of all moves from the current pose."""
        await self._until(lambda: self._unseen() is None, FIRST_STATES)
        blind = self._unseen()
        segments = [motion.segments for motion in plan.motions]
        if blind is not None:
            self._notes = (f'the total time lacks the moves to the start and back: {blind.text}',)
        else:
            try:
                segments = await self._background(
                    lambda: [motion.with_moves(self.states) for motion in plan.motions])
            except DynIdError as error:
                self._notes = (f'from the current pose this would be refused: {error}',)
        text = TO_JUDGE.join(
            f'{announcement(motion.duration, parts)}; {motion.summary}'
            for motion, parts in zip(plan.motions, segments))
        self.total_duration = sum(map(total_duration, segments))
        return Outcome(Code.SUCCESS, f'dry run, nothing was sent; {text}')

    async def executed(self, plan: ExcitationPlan) -> Outcome:
        """Execute the motions of a plan in order, each with its own check and recording.

        The robot is at rest in between. If the first does not succeed, no other follows. Raises
        DynIdError for what prevents the first before anything was sent.
        """
        judge = plan.validation
        self.later = 0.0 if judge is None else total_duration(judge.segments)
        fit = await self._executed(plan)
        recording, seconds = self.recording, self.total_duration
        if judge is None or fit.code is not Code.SUCCESS:
            return fit
        self.execution, self.design = None, ('check', 0.0)
        self.total_duration = self.later = 0.0
        try:
            outcome = await self._executed(judge, Path(recording))
        except Cancelled:
            outcome = Outcome(Code.CANCELLED, 'cancelled before it was sent')
        except DynIdError as error:
            outcome = Outcome(refusal(error), f'{error}; it was not sent')
        self.recording, self.total_duration = recording, seconds + self.total_duration
        return Outcome(outcome.code, f'{fit.text}{TO_JUDGE}{outcome.text}')

    async def _executed(self, plan: ExcitationPlan, fitted: Path | None = None) -> Outcome:
        """Check the controller, plan from the current pose, record, and execute.

        ``fitted`` is the recording of the previous motion, which this one validates.
        """
        settings, guards = self.settings, self.guards
        if not await self._until(self.controller.ready, settings.controller_wait):
            raise Refused(Code.CONTROLLER_LOST, f'no {self.controller.name} after '
                          f'{settings.controller_wait:g} s: load and activate the controller, or '
                          'correct the parameter controller')
        await require_real_time(self._clock, self.waits)
        await self._require_states(10.0 * guards.state_timeout)
        waited = max(settings.controller_wait, 10.0 * guards.controller_timeout)
        if settings.lookahead > 0.0 and not await self._until(
                lambda: self.controller.tells_its_state, waited):
            raise Refused(Code.CONTROLLER_LOST, 'no message of '
                          f'{settings.controller}/controller_state after {waited:g} s, which a '
                          'motion sent in pieces needs: check that the controller is active and '
                          'publishes its state')
        if not self._checked:  # later motions are not held up
            fault = checklist.refusal(await self.checked(thorough=False))
            self._refuse_if_stopped()
            if fault is not None:
                raise Refused(fault.code, fault.text)
            self._checked = True
        rules, self._goals = await self._background(lambda: plan.goals(guards, self.states))
        segments = tuple(self._goals)
        text = announcement(plan.duration, segments)
        self.total_duration = total_duration(segments)
        execution = Execution(segments, rules, self.states, self.alarms)
        await self.waits.until(lambda: self._unseen() is None, FIRST_STATES)
        forbidden = execution.forbidden(time.monotonic())
        if forbidden is not None:
            return forbidden
        try:
            await self._record(plan, fitted)
            self._log.info(text)
            real_time.shorten_collections()
            await self.waits.until(lambda: self._unseen() is None, FIRST_STATES)
            self.execution = execution
            self.perform(self.execution.start(time.monotonic()))
            outcome = await self.ended()
            self._notes += execution.notes
        finally:
            await self.ended()
            whole, report = await self._background(self._bag.finish, self._files)
            self.recording = self.recording if report else ''
        if outcome.code is Code.SUCCESS:
            outcome = Outcome(Code.SUCCESS, f'executed; {text}; {plan.summary}')
            if not whole:
                return Outcome(Code.NOT_RECORDED, f'{outcome.text}; but {report}')
            self._notes += self._bag.losses
        return Outcome(outcome.code, '; '.join(filter(None, (outcome.text, report))))

    async def checked(self, thorough: bool = True) -> tuple[Item, ...]:
        """Return the checklist after a second of listening; quick items need a moment."""
        tap, begun = Tap(self._bag, self.settings.controller), time.monotonic()
        least = LISTENING if thorough else 0.0
        try:
            await self.waits.until(
                lambda: time.monotonic() - begun >= least
                and tap.enough(self._checklist.controller_publishes), LONGEST_LISTENING)
        finally:
            tap.end()
        if thorough:
            await self._background(self._read_robot)
        alarm, heard = self.alarms.check(time.monotonic()), self.alarms.pressed is not None
        items: tuple[Item, ...] = await self._background(lambda: self._checklist.items(
            tap, self._unseen() is None, alarm, heard, thorough))
        return items

    async def ended(self) -> Outcome:
        """Wait for the end of the execution, if there is one."""
        execution = self.execution
        if execution is None:
            return Outcome(Code.SUCCESS, 'nothing was executed')
        await self.waits.until(lambda: execution.phase is Phase.DONE)
        assert execution.outcome is not None
        return execution.outcome

    def cancel(self, outcome: Outcome) -> None:
        """Stop the motion under way."""
        if self.execution is not None:
            self.perform(self.execution.cancel(time.monotonic(), outcome))

    def pause(self) -> str:
        """Come to rest on the path; raises UsageError if nothing moves."""
        execution = self._moving()
        self.perform(execution.pause(time.monotonic()))
        return 'slowing down; call ~/resume to continue'

    def resume(self) -> str:
        """Continue after a pause; raises UsageError if there is none."""
        execution = self._moving()
        self.perform(execution.resume(time.monotonic()))
        return f'continuing {execution.segment.name}'

    def perform(self, commands: Commands) -> None:
        """Carry out the commands of an execution: first send, then record what was sent."""
        if any(isinstance(command, (Cancel, Hold)) for command in commands):
            assert self.execution is not None
            stopping = self.execution.outcome
            self._log.warning(f'stopping: {stopping.text if stopping is not None else ""}')
        for command in commands:
            if isinstance(command, Send):
                execution, segment = self.execution, command.segment
                assert execution is not None
                goal = self._goals.get(segment)
                if goal is None:
                    goal = goal_message(segment.points, execution.rules.tolerances)
                if execution.comes_to_rest:
                    self._log.info('slowing down along the path')
                self.controller.send(execution, goal, command.begun)
                self._bag.put(execution.doing(time.monotonic())[0], goal.trajectory)
            elif isinstance(command, Cancel):
                self.controller.cancel()
                self._bag.put('cancel', JointTrajectory())
            elif isinstance(command, Hold):
                self._bag.put('hold', self.controller.hold(
                    self.robot.joints, command.position, command.duration))

    def take_statistics(self) -> tuple[TopicStatistics, ...]:
        """Return the statistics of what is recorded, since the last call."""
        return self._bag.take_statistics()

    def watch(self, now: float) -> None:
        """Let an execution react to the passing of time."""
        if self.execution is not None and self.execution.phase is not Phase.DONE:
            self.perform(self.execution.tick(now, self.controller.ready()))

    async def _background(self, work: Callable[[], Any], pool: ThreadPoolExecutor | None = None
                          ) -> Any:
        """Return the result of ``work``, done in another thread, also if a stop is requested.

        A node that ends waits for files, but not for computations: raises Cancelled.
        """
        worker = (pool or self._pool).submit(work)
        while not worker.done():
            if self.leaving and pool is None:
                raise Cancelled('asked to stop')
            await self.waits.until(worker.done)
        return worker.result()

    async def _record(self, plan: ExcitationPlan, fitted: Path | None) -> None:
        """Begin the recording; raises Refused if that fails."""
        seconds = self.total_duration
        try:
            path = await self._background(
                lambda: self._bag.begin(seconds, plan.purpose, fitted), self._files)
        except (DynIdError, OSError) as error:
            raise Refused(Code.NOT_RECORDED, str(error)) from error
        self.recording = str(path)
        await self.waits.until(lambda: self._bag.receives_states, FIRST_STATES)
        await self._until(lambda: False, PENDING)
        if not self._bag.receives_states:
            await self._require_states(0.0)
            raise Refused(Code.NOT_RECORDED, 'the recording receives no joint states, although '
                          'they are published; send the goal again')

    async def _until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Return whether the condition holds, after ``timeout`` s at the latest.

        Raises Cancelled when asked to stop.
        """
        holds = await self.waits.until(condition, timeout)
        self._refuse_if_stopped()
        return holds

    async def _require_states(self, timeout: float) -> None:
        """Raise Refused unless the states of all joints are received within ``timeout`` s."""
        await self._until(lambda: self._unseen() is None, timeout)
        fault = self._unseen()
        if fault is not None:
            raise Refused(fault.code, fault.text)

    def _moving(self) -> Execution:
        if self.execution is None:
            raise UsageError('nothing is being executed')
        return self.execution

    def _unseen(self) -> Outcome | None:
        return unseen(self.states, self.guards.state_timeout,
                      self.states.oldest(time.monotonic()))

    def _refuse_if_stopped(self) -> None:
        if self.stop.is_set():
            raise Cancelled('asked to stop')

    def report_progress(self, stage: str, fraction: float) -> None:
        """Note the progress of a design; raises Cancelled if a stop is requested."""
        self.design = (stage, fraction)
        self._refuse_if_stopped()
