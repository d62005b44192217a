"""Runner of one excitation at a time: plan, record, execute; commands out, outcomes back.

Everything runs in the node's thread but designs, plans and the opening and closing of bags, which
have their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.execution.alarms import Alarms
from robot_dynid.execution.commands import Cancel, Commands, Hold, Phase, Send
from robot_dynid.execution.guards import Code, GuardSettings, JointStates, Outcome
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.supervisor import Execution
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.waiting import Waits
from robot_dynid.ros.excitation.bag_session import ExcitationBag
from robot_dynid.ros.excitation.controller_client import ControllerClient, goal_message
from robot_dynid.ros.excitation.plan import DryRuns, ExcitationPlan, designed, given
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.warm_up import warm_up
from robot_dynid.yaml_text import load_yaml
from robot_dynid_interfaces.action import Excite

PENDING = 0.02  # s to take in the messages that arrived meanwhile
FIRST_STATES = 1.0  # s until the recording must have received the joints


class Runner:
    """Works on the goals of the excitation node."""

    def __init__(self, node: Node, robot: RobotModel, settings: ExcitationSettings,
                 guards: GuardSettings, group: CallbackGroup) -> None:
        self.robot, self.settings, self.guards = robot, settings, guards
        self.states, self.alarms = JointStates(robot.joints), Alarms(robot.joints, guards)
        self.execution: Execution | None = None
        self.design: tuple[str, float] = ('design', 0.0)
        self.recording = ''
        self.waits = Waits()
        self.stop = threading.Event()
        self.controller = ControllerClient(
            node, (settings.controller, settings.face), self.perform, group)
        self._log = node.get_logger()
        folder = Path(settings.recording_directory).expanduser().absolute()
        self._bag = ExcitationBag(node, (folder, robot.name), settings.controller)
        self.dry_runs = DryRuns(settings.files_directory)
        self._goals: dict[Segment, Any] = {}
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._pool.submit(warm_up)  # compiled kernels before the first goal, not during it

    def close(self) -> None:
        """End the recording, and save what its disk did not take."""
        self._bag.close()

    def begin(self) -> None:
        """Forget the last goal."""
        self.execution, self.design, self.recording = None, ('design', 0.0), ''
        self.stop.clear()

    async def planned(self, request: Excite.Goal) -> ExcitationPlan:
        """Return the checked plan of a goal; design or read it in the background.

        Raises DynIdError where there is none.
        """
        plan: ExcitationPlan = await self._background(lambda: self._plan(request))
        return plan

    def _plan(self, request: Excite.Goal) -> ExcitationPlan:
        robot, settings, progress = self.robot, self.settings, self.report_progress
        if request.trajectory:
            if request.type or request.options:
                raise UsageError('a goal gives either a trajectory, which is executed as it is, '
                                 'or type and options of one to design, not both')
            found = self.dry_runs.find(request.trajectory)
            if isinstance(found, ExcitationPlan):
                return found.checked_again(progress)
            return given(robot, found, settings, progress)
        options = load_yaml(request.options, 'options', UsageError)
        return designed(robot, (request.type, options), settings, progress)

    async def executed(self, plan: ExcitationPlan) -> Outcome:
        """Check who is there, plan from where the robot stands, record, and go."""
        settings, guards = self.settings, self.guards
        if not await self.waits.until(self.controller.ready, settings.controller_wait):
            self._refuse_if_stopped()
            return Outcome(Code.CONTROLLER_LOST, f'no {self.controller.name} after '
                           f'{settings.controller_wait:g} s; is the controller loaded and active, '
                           'and its name the parameter controller?')
        await self.waits.until(self._states_are_fresh, 10.0 * guards.state_timeout)
        self._refuse_if_stopped()
        rules, self._goals = await self._background(lambda: plan.goals(guards, self.states))
        segments = tuple(self._goals)
        try:
            unrecorded = await self._recording(sum(s.points.duration for s in segments))
            self._refuse_if_stopped()
            if unrecorded is not None:
                return unrecorded
            self.execution = Execution(segments, rules, self.states, self.alarms)
            self.perform(self.execution.start(time.monotonic()))
            outcome = await self.ended()
        finally:
            await self.ended()
            whole, report = await self._background(self._bag.finish)
        if outcome.code is Code.SUCCESS:
            outcome = Outcome(Code.SUCCESS, f'executed; {plan.summary}')
            if not whole:
                return Outcome(Code.NOT_RECORDED, f'{outcome.text}; but {report}')
        return Outcome(outcome.code, f'{outcome.text}; {report}')

    async def ended(self) -> Outcome:
        """Wait for the end of the execution, if there is one."""
        execution = self.execution
        if execution is None:
            return Outcome(Code.SUCCESS, 'nothing was executed')
        await self.waits.until(lambda: execution.phase is Phase.DONE)
        assert execution.outcome is not None
        return execution.outcome

    def cancel(self, outcome: Outcome) -> None:
        """Stop whatever is under way."""
        if self.execution is not None:
            self.perform(self.execution.cancel(time.monotonic(), outcome))

    def pause(self) -> str:
        """Come to rest on the path; raises UsageError when nothing moves."""
        execution = self._moving()
        self.perform(execution.pause(time.monotonic()))
        return 'slowing down; goes on at ~/resume'

    def resume(self) -> str:
        """Go on from a pause; raises UsageError when there is none."""
        execution = self._moving()
        self.perform(execution.resume(time.monotonic()))
        return f'going on with {execution.segment.name}'

    def perform(self, commands: Commands) -> None:
        """Carry out what an execution wants: first send, then write down what was sent."""
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
                if segment.reference is not None:
                    self._log.info('slowing down along the path')
                self.controller.send(execution, goal, segment.elapsed > 0.0)
                self._bag.put(execution.doing(time.monotonic())[0], goal.trajectory)
            elif isinstance(command, Cancel):
                self.controller.cancel()
                self._bag.put('cancel', JointTrajectory())
            elif isinstance(command, Hold):
                self._bag.put('hold', self.controller.hold(
                    self.robot.joints, command.position, command.duration))

    def tick(self, now: float) -> None:
        """React to the passing of time."""
        if self.execution is not None and self.execution.phase is not Phase.DONE:
            self.perform(self.execution.tick(now, self.controller.ready()))
        self.waits.check(release=self.stop.is_set() and self.execution is None)

    async def _background(self, work: Callable[[], Any]) -> Any:
        """Return what ``work`` returns, done in the other thread, whoever wants to stop."""
        worker = self._pool.submit(work)
        while not worker.done():
            await self.waits.until(worker.done)
        return worker.result()

    async def _recording(self, seconds: float) -> Outcome | None:
        """Begin the recording; return why there is none."""
        try:
            path = await self._background(lambda: self._bag.begin(seconds))
        except (DynIdError, OSError) as error:
            return Outcome(Code.NOT_RECORDED, f'{error}; nothing was sent')
        self.recording = str(path)
        await self.waits.until(lambda: self._bag.receives_states, FIRST_STATES)
        await self.waits.until(lambda: False, PENDING)
        if not self._bag.receives_states:
            return Outcome(Code.NOT_RECORDED, 'the recording receives no joint states, which must '
                           'be published reliably; nothing was sent')
        return None

    def _moving(self) -> Execution:
        if self.execution is None:
            raise UsageError('nothing is being executed')
        return self.execution

    def _states_are_fresh(self) -> bool:
        return self.states.oldest(time.monotonic())[1] <= self.guards.state_timeout

    def _refuse_if_stopped(self) -> None:
        if self.stop.is_set():
            raise Cancelled('asked to stop')

    def report_progress(self, stage: str, fraction: float) -> None:
        """Note the progress of a design; raises Cancelled when it is asked to stop."""
        self.design = (stage, fraction)
        self._refuse_if_stopped()
