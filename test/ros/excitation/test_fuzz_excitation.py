"""ros/excitation/node.py: random goals, cancels and joint states over real DDS, see
node_inputs.py, while the simulated robot moves.

Every goal is answered; by its own truth the arm keeps within its limits and the speed that was
sent, comes to rest after each goal, and no other motion follows. `pytest -m soak` makes the long
run.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from control_msgs.msg import JointTrajectoryControllerState
from excitation_stage import CANCELED, LONG, ROBOT, SHORT, SUCCEEDED, Stage, seconds
from node_inputs import (
    COUNT,
    ESCALATION,
    SEED,
    Parameters,
    chance,
    excite_goal,
    make_traps,
    malformed,
    named,
    one_of,
    require_no_fault,
    require_words,
    snapshot,
)
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from text_inputs import NAMES, gently, trajectories

from robot_dynid.execution.guards import Code
from robot_dynid.io.trajectory_file import save_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid_interfaces.action import Check, Excite

pytestmark = pytest.mark.ros
DESIGN = 5.0  # s after which a goal that is still designed is cancelled
AT_REST = 0.05  # rad/s
REST = 0.3  # s of the robot's clock for which it must stay at rest
BRAKES = 1.0  # s of the robot's clock in which it must have come to rest after a result
#: of the speed sent, by which the reference may be faster: it is interpolated, and a goal begins
#: where the robot hangs
FASTER, SAG = 1.02, 0.2
TRIGGERS, FACES = ('pause', 'resume'), ('action', 'topic')


class Watch:
    """What the arm, by its own truth, and its controller do; ``faults`` are what must not be."""

    def __init__(self, node: Any) -> None:
        self.limits = motion_limits(load_robot(ROBOT))
        self.truth = JointState()
        self.moved_at = 0.0
        self.fastest = np.zeros(len(self.limits.joints))
        self.faults: list[str] = []
        node.create_subscription(JointState, 'simulated_robot/true_states', self._on_truth,
                                 qos_profile_sensor_data)
        node.create_subscription(
            JointTrajectoryControllerState, 'joint_trajectory_controller/controller_state',
            self._on_reference, qos_profile_sensor_data)

    @property
    def clock(self) -> float:
        """The robot's time [s]."""
        return seconds(self.truth.header.stamp)

    def _on_truth(self, message: JointState) -> None:
        self.truth = message
        if np.abs(message.velocity).max() > AT_REST:
            self.moved_at = self.clock

    def _on_reference(self, message: JointTrajectoryControllerState) -> None:
        position, velocity = message.reference.positions, np.abs(message.reference.velocities)
        self.fastest = np.fmax(self.fastest, velocity)
        if np.any(velocity > FASTER * self.limits.velocity) or np.any(
                position < self.limits.lower - 0.01) or np.any(
                position > self.limits.upper + 0.01):
            self.faults.append(f'the reference is at {position} with {velocity}')


def hostile_states(rng: np.random.Generator, truth: JointState) -> JointState | bytes:
    """Return joint states that are true as far as they go, but not as a driver sends them."""
    message = deepcopy(truth)
    message.effort = [0.0] * len(message.name)
    at = int(rng.integers(len(message.name)))
    match int(rng.integers(7)):
        case 0:  # in another order
            order = [int(j) for j in rng.permutation(len(message.name))]
            for field in ('name', 'position', 'velocity', 'effort'):
                values = list(getattr(message, field))
                setattr(message, field, [values[j] for j in order])
        case 1:
            getattr(message, one_of(rng, ('position', 'velocity', 'effort')))[at] = one_of(
                rng, (np.nan, np.inf, -np.inf))
        case 2:  # a joint is missing
            for field in ('name', 'position', 'velocity', 'effort'):
                values = list(getattr(message, field))
                setattr(message, field, values[:at] + values[at + 1:])
        case 3:
            message.header.stamp.sec = int(one_of(rng, (
                message.header.stamp.sec - 10, 0, -1, 2**31 - 1, message.header.stamp.sec + 5)))
        case 4:  # joints of nobody, or of another robot beside these
            message.name = [*message.name[:at], one_of(rng, NAMES), *message.name[at + 1:]]
        case 5:
            message.position, message.velocity = [], []
        case _:
            return malformed(rng, list(message.name))
    return message


class Excitation:
    """The node, the robot, a user, and the files that goals name."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.folder, self.client = stage, folder, stage.with_robot()
        node = self.client.node
        self.watch, self.counts = Watch(node), Counter[str]()
        self.parameters = Parameters(self.client, 'excitation')
        self.checks = ActionClient(node, Check, 'excitation/check')
        self.states = node.create_publisher(JointState, 'joint_states', 10)
        self.client.wait(lambda: self.watch.clock and self.checks.server_is_ready())
        self.before = snapshot(folder)
        self.plans = sorted(path.name for path in folder.glob('plan_*'))

    @contextmanager
    def hostile_publisher(self, rng: np.random.Generator, handle: Any) -> Iterator[None]:
        """Publish hostile joint states beside those of the robot, before it moves or then."""
        ended, watch, client = handle.get_result_async(), self.watch, self.client
        begun = watch.clock
        if chance(rng, 0.8):
            client.wait(lambda: ended.done() or watch.moved_at > begun)
            client.spin(float(rng.exponential(0.3)))
        timer = client.node.create_timer(float(one_of(rng, (0.03, 0.2, 1.0))), lambda: (
            self.states.publish(hostile_states(rng, watch.truth))))
        try:
            yield
        finally:
            client.node.destroy_timer(timer)
            client.spin(0.1)

    def result(self, handle: Any) -> Excite.Result:
        """Return the result of a goal, whose words are right."""
        answer = self.client.answer(handle.get_result_async())
        result = answer.result
        self.counts[Code(result.code).name] += 1
        for sentence in (result.message, *result.warnings):
            require_words(sentence)
        assert result.code != Code.ABORTED, result.message
        assert result.success == (result.code == 0) == (answer.status == SUCCEEDED)
        assert (answer.status == CANCELED) <= (result.code == Code.CANCELLED), result.message
        return result

    def goal(self, **fields: Any) -> Any:
        """Send a goal and return its handle."""
        self.watch.fastest[:] = 0.0
        return self.client.send(fields.pop('options', ''), **fields)

    def dry(self, goal: dict[str, Any]) -> None:
        """Require that a dry run sends nothing, and a plan it shows keeps within the limits."""
        client, moved_at = self.client, self.watch.moved_at
        client.trajectories.clear()
        handle = self.goal(dry_run=True, **goal)
        ended = handle.get_result_async()
        end = self.watch.clock + DESIGN
        client.wait(lambda: ended.done() or self.watch.clock > end)
        if not ended.done():
            client.answer(handle.cancel_goal_async())
        result = self.result(handle)
        assert not client.sent and self.watch.moved_at == moved_at, 'a dry run moved it'
        if result.success:
            assert result.plan and 0.0 < result.duration <= result.total_duration < np.inf
            client.wait(lambda: client.trajectories)
            for message in client.trajectories:
                self.require_within(message)
            self.plans = [*self.plans[-20:], result.plan]

    def require_within(self, message: Any) -> None:
        """Require that the points of a trajectory keep within the limits of the robot."""
        limits = self.watch.limits
        for point in message.points:
            position = np.array(point.positions)
            assert np.all(position > limits.lower - 0.01) and np.all(
                position < limits.upper + 0.01), f'sent to {position}'
            for values, limit in ((point.velocities, limits.velocity),
                                  (point.accelerations, limits.acceleration)):
                assert np.all(np.abs(values) <= 1.001 * limit), f'sent {values}, limit {limit}'

    def require_rest(self) -> None:
        """Require that the arm comes to rest, nothing more is sent, and nothing was too fast."""
        client, watch = self.client, self.watch
        begin, count = watch.clock, len(client.sent)
        client.wait(lambda: watch.clock - max(watch.moved_at, begin) > REST)
        assert watch.moved_at - begin < BRAKES, 'it still moves'
        assert len(client.sent) == count, 'something was sent after the result'
        assert not watch.faults, watch.faults[:3]
        sent = [point.velocities for message in client.sent for point in message.points]
        planned = np.max(np.abs(sent), axis=0, initial=0.0) if sent else 0.0
        if any(len(message.points) == 1 for message in client.sent):
            planned = watch.limits.velocity  # a hold, perhaps far from the motion that was sent
        assert np.all(watch.fastest <= FASTER * planned + SAG), f'{watch.fastest} of {planned}'
        for message in client.sent:
            self.require_within(message)

    def move(self, rng: np.random.Generator, goal: dict[str, Any], hostile: bool) -> None:
        """Let a goal move the arm, pause and resume it; cancel it at any time."""
        client, handle = self.client, self.goal(**goal)
        with self.hostile_publisher(rng, handle) if hostile else nullcontext():
            for _ in range(int(rng.integers(0, 3))):
                client.spin(float(rng.exponential(0.3)))
                answer = client.answer(client.triggers[one_of(rng, TRIGGERS)].call_async(
                    Trigger.Request()))
                require_words(answer.message)
            client.spin(float(rng.exponential(1.5)))
            cancel = client.answer(handle.cancel_goal_async())
            result = self.result(handle)
        assert result.code != Code.SUCCESS or not cancel.goals_canceling, 'cancelled, and went on'
        self.require_rest()

    def storm(self, rng: np.random.Generator) -> None:
        """Send goals and checks at once, cancel them at any time; one at a time is executed."""
        client, order = self.client, list[int]()
        self.goal(options='{', dry_run=True)  # begins to note anew what is sent
        client.goals.clear()
        sent = [client.action.send_goal_async(
            Excite.Goal(options=one_of(rng, (SHORT, LONG)), dry_run=bool(rng.random() < 0.2)),
            lambda message, k=k: order.append(k)) for k in range(int(rng.integers(2, 7)))]
        checks = [client.answer(self.checks.send_goal_async(Check.Goal()))
                  for _ in range(int(rng.integers(0, 3)))]
        handles = [client.answer(one) for one in sent]
        cancels = []
        for k in rng.permutation(len(handles)):
            client.spin(float(rng.exponential(0.5)))
            cancels.append(handles[k].cancel_goal_async())
            cancels += [check.cancel_goal_async() for check in checks if chance(rng, 0.3)]
        for handle in handles:
            self.result(handle)
        for check in checks:
            answer = client.answer(check.get_result_async())
            require_words(answer.result.message)
            assert not answer.result.success or answer.status == SUCCEEDED
            self.counts[f'check {answer.status}'] += 1
        for cancel in cancels:
            client.answer(cancel)
        turns = [k for k, before in zip(order, [-1, *order], strict=False) if k != before]
        assert len(turns) == len(set(turns)), f'two goals are executed at once: {turns}'
        self.require_rest()

    def require_well(self) -> None:
        """Require that the node lives, wrote nothing about itself, and changed no file."""
        node = self.stage.node
        assert node.process.poll() is None, node.output
        require_no_fault(node.output)
        assert snapshot(self.folder) == self.before, 'a file was changed'

    def sane(self) -> None:
        """Require that a usual goal succeeds."""
        handle = self.goal(options=SHORT)
        result = self.result(handle)
        assert result.code == Code.SUCCESS, result.message
        self.require_rest()

    def end_in_mid_work(self, rng: np.random.Generator) -> None:
        """End the node while the arm moves, or before: it comes to rest, and the node ends."""
        client, handle = self.client, self.goal(options=LONG)
        ended = handle.get_result_async()
        client.spin(float(rng.uniform(0.0, 4.0)))
        process, begun = self.stage.node.process, self.watch.clock
        process.send_signal(one_of(rng, (signal.SIGTERM, signal.SIGINT)))
        client.wait(lambda: process.poll() is not None)
        assert process.poll() == 0 and self.watch.clock - begun < ESCALATION
        client.wait(ended.done, 1.0)
        assert ended.result().result.code == Code.CANCELLED
        self.require_rest()


def write_plans(folder: Path, rng: np.random.Generator) -> None:
    """Write trajectories of every type, and damaged ones, into a folder with traps."""
    make_traps(folder)
    for k, trajectory in enumerate(trajectories(load_robot(ROBOT).joints)):
        save_trajectory(trajectory, folder / f'plan_{k}.yaml')
        data = (folder / f'plan_{k}.yaml').read_bytes()
        for damage in 'ab':
            (folder / f'plan_{k}{damage}.yaml').write_bytes(gently(rng, data))


def fuzz_excitation(folder: Path, seed: int, dry: int, moves: int, storms: int) -> None:
    """Ask the node for whatever a seed says, and end it in mid-motion."""
    write_plans(folder, np.random.default_rng([seed, 0, 9]))
    stage = Stage(folder.parent / 'bags', files_directory=folder, face=FACES[seed % len(FACES)])
    try:
        one = Excitation(stage, folder)
        for kind, count in (('dry run', dry), ('motion', moves), ('hostile', moves),
                            ('storm', storms)):
            for number in range(count):
                rng = np.random.default_rng([seed, number, len(kind)])
                with named(seed, number, 'parameters'):
                    one.parameters.fuzz(rng)
                    one.parameters.restore()
                goal = excite_goal(rng, one.plans)
                if kind == 'hostile' or rng.random() < 0.3:
                    goal = {'options': LONG}
                with named(seed, number, f'{kind} {goal}'):
                    if kind == 'dry run':
                        one.dry(goal)
                    elif kind == 'storm':
                        one.storm(rng)
                    else:
                        one.move(rng, goal, kind == 'hostile')
                    one.require_well()
            one.sane()
        one.end_in_mid_work(np.random.default_rng(seed))
        require_no_fault(stage.node.output)
    except BaseException:
        sys.stderr.write(stage.node.output)
        raise
    finally:
        stage.close()
    counts = one.counts + one.parameters.counts
    sys.stdout.write(f'seed {seed}: {dict(sorted(counts.items()))}\n')


def test_the_robot_is_safe_whatever_is_asked(module_domain: int, tmp_path: Path) -> None:
    fuzz_excitation(tmp_path / 'files', 0, dry=4, moves=1, storms=1)


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(SEED, SEED + 2))
def test_the_robot_is_safe_for_long(seed: int, module_domain: int, tmp_path: Path) -> None:
    fuzz_excitation(tmp_path / 'files', seed, COUNT // 5, COUNT // 25, COUNT // 50)
