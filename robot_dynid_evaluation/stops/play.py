"""Plays events, one motion each, with a witness beside; and motions in which nothing happens."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.execution.guards import Code, GuardSettings
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid_evaluation.stops.account import (
    AT_REST,
    Account,
    Record,
    account,
    faithful,
    fast_times,
    motion,
)
from robot_dynid_evaluation.stops.cell import Bystander, Cell, Load, goal_of_its_own, usual_nodes
from robot_dynid_evaluation.stops.client import Client, Ended, Replaced
from robot_dynid_evaluation.stops.events import Event, Limits, Scene
from robot_dynid_evaluation.stops.witness import Topics, Witness

PLANS = {'long.yaml': 4, 'short.yaml': 1}  # periods
LONG, SHORT = PLANS
SETTLED = 0.3  # s without motion
SILENT = 0.3  # s without a message of the arm: there is none to be seen any more
RESULT = 15.0  # s for the result of a goal
ATTEMPTS = 3  # at a motion for which nobody was ready
NOTHING = 'nothing was sent'  # says the node of those
BEGUN = 0.2  # s of a motion
UNDER_WAY = 5.0  # s after which the move to the start is over, from any pose
GOES_ON = 1.5  # s that a motion is watched which an event shall not end
#: s that four messages, a cycle of the controller and the lag of an arm take, at most
LATENCY = 0.05
#: s a process waits for its turn beside a busy loop per core (a slice of Linux), in four processes
PER_LOOP = 4 * 0.003


@dataclass(frozen=True)
class Run(Account):
    """One motion, with ``told`` s until the client had ``code`` and ``text``, None without."""

    told: float = float('nan')
    code: Code | None = None
    text: str = ''


class Stage:
    """A cell with a witness, a client, and busy loops for when they are wanted."""

    def __init__(self, cell: Cell, robot: str, client: Client, witness: Witness, load: Load
                 ) -> None:
        self.cell, self.client, self.witness, self.load = cell, client, witness, load
        self.robot = load_robot(robot)
        self._last: Any = None  # coming result of the goal that was sent last
        self._rng = np.random.default_rng(0)
        self._plans = {name: motion(self.robot, periods) for name, periods in PLANS.items()}
        for name, plan in self._plans.items():
            save_trajectory(plan, cell.folder / name, robot)

    def ready(self) -> None:
        """Put everything back in order: all processes, no fault, the robot at rest.

        Raises DynIdError where a node does not start.
        """
        cell, client = self.cell, self.client
        cell.thaw()
        missing = cell.missing
        if missing:  # it may wait for a process that was killed, in the memory they share
            cell.end_emergency_stop()
        for name in missing:
            cell.start(name)
        for name in missing:
            client.meet(name, cell.require_alive)
        cell.emergency_stop.tell(False)
        if cell.simulated and 'simulated_robot' not in missing:
            client.fault('none')
        cell.discard_recordings()
        if missing:
            self.settle()

    def play(self, event: Event) -> Run:
        """Play an event in a motion at a random instant; `ready` comes before it.

        Raises Ended when the motion ends before, Replaced where the event was none, DynIdError
        when no end of it is to be seen.
        """
        self.witness.begin()
        scene = Scene(self.cell, self.client, self.robot.joints,
                      self._plans[LONG].offset.tolist())
        try:
            return (self._of_another_client if event.by_other else self._of_ours)(event, scene)
        except DynIdError:
            self.client.cancel_all()
            with suppress(DynIdError):
                self.client.wait(lambda: self._last is None or self._last.done(), RESULT)
            self.settle()
            raise

    def _of_ours(self, event: Event, scene: Scene) -> Run:
        plan, client = self._plans[LONG], self.client
        scene.handle, result = self._begun(LONG)
        ended: list[float] = []
        result.add_done_callback(lambda _: ended.append(time.time()))
        with self.load.on():
            client.moving(result, float(fast_times(plan, self._rng, 1)[0]), plan.duration)
            at = time.time()
            event.act(scene)
            if event.pauses:
                self.settle()
                client.cancel_all()
            if event.codes:
                client.wait(result.done, RESULT, f'the result after: {event.what}')
            self.settle()
        found = self._accounted(at)
        if not event.codes:
            return found
        answer = result.result().result
        if event.replaceable and answer.code == Code.SUCCESS and found.reaction == np.inf:
            raise Replaced(event.what)
        return replace(found, told=ended[0] - at, code=Code(answer.code), text=answer.message)

    def _begun(self, trajectory: str) -> tuple[Any, Any]:
        """Return the handle and the coming result of a goal whose excitation has begun."""
        attempt = 1
        while True:
            handle = self.client.send(trajectory)
            self._last = result = handle.get_result_async()
            try:
                self.client.moving(result, BEGUN, self._plans[trajectory].duration)
            except Ended as error:
                if NOTHING not in str(error):
                    raise
                if attempt == ATTEMPTS:  # the node hears no more; `ready` starts it anew
                    self.cell.signal('excitation', signal.SIGKILL)
                    raise
                attempt += 1
                self.client.spin(SETTLED)  # who was started last is not known to all yet
            else:
                return handle, result

    def healthy(self) -> Run:
        """Play a short motion to its end, under load all the while, as `play` does."""
        self.witness.begin()
        with self.load.on():
            at = time.time()
            _, result = self._begun(SHORT)
            self.client.wait(result.done, what='the end of a motion')
            told, answer = time.time() - at, result.result().result
            self.settle()
        record = self.witness.record()
        off, _ = faithful(record.reference, self._plans[SHORT])
        nothing = dict.fromkeys((field.name for field in fields(Account)), float('nan'))
        return Run(**{**nothing, 'off_path': off}, told=told, code=Code(answer.code),
                   text=answer.message)

    def settle(self) -> None:
        """Wait until the arm stands, or is not to be seen any more."""
        since = time.monotonic()
        while time.monotonic() - since < SETTLED:
            speed, age = self.witness.latest()
            if speed > AT_REST and age < SILENT:
                since = time.monotonic()
            self.client.spin(0.02)

    def _of_another_client(self, event: Event, scene: Scene) -> Run:
        """Play an event that happens to a client: the goal belongs to a process of its own."""
        scene.other = Bystander(
            goal_of_its_own, f'{self.cell.namespace}/excitation/excite', LONG)
        scene.other.ready()
        self.client.wait(lambda: self.witness.latest()[0] > AT_REST, what='the motion')
        self.client.spin(UNDER_WAY)  # between the move and the excitation the arm may rest
        self.client.wait(lambda: self.witness.latest()[0] > AT_REST, RESULT,
                         'the excitation of another client')
        with self.load.on():
            at = time.time()
            event.act(scene)
            self.client.spin(GOES_ON)
        found = self._accounted(at)
        self.client.cancel_all()
        self.settle()
        return found

    def _accounted(self, at: float) -> Run:
        record: Record = self.witness.record()
        return Run(**asdict(account(
            record, self._plans[LONG], at, self.robot.limits.acceleration)))


def latency(load: int) -> float:
    """Return the time [s] that is granted beside a promise, with ``load`` busy loops."""
    return LATENCY + PER_LOOP * load / (os.cpu_count() or 1)


@contextmanager
def stage(robot: str, load: int, changes: Mapping[str, Any] | None = None) -> Iterator[Stage]:
    """Give a stage in the ROS domain of the environment while the block runs.

    ``changes`` are parameters of the excitation node.
    """
    topics = Topics('simulated_robot/true_states', 'joint_trajectory_controller/controller_state',
                    'excitation/sent')
    with ExitStack() as stack:
        def closed(made: Any) -> Any:
            stack.callback(made.close)
            return made

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='robot_dynid_stops_'))
        cell = closed(Cell(Path(folder), usual_nodes(Path(folder), robot, changes)))
        loops = closed(Load(load))
        witness = closed(Witness(topics, load_robot(robot).joints))
        yield Stage(cell, robot, closed(Client()), witness, loops)


def bounds(changes: Mapping[str, Any]) -> Callable[[Event], float]:
    """Return the promise of an event [s] with parameters changed like this."""
    known = {field.name for field in fields(GuardSettings)}
    guards = GuardSettings(**{name: value for name, value in changes.items() if name in known})
    limits = Limits(guards, changes.get('lookahead', ExcitationSettings.lookahead))
    return lambda event: event.bound(limits)
