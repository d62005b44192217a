"""ros/identifier/node.py: random requests, goals and messages over real DDS, see node_inputs.py,
and the end of the node in mid-work.

Every request is answered, in one line where it is refused, and leaves the node as it was.
`pytest -m soak` makes the long run.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from fuzzing import mutated
from geometry_msgs.msg import WrenchStamped
from identified_models import feasible_model
from identifier_stage import ACQUAINTANCE, CANCELED, SUCCEEDED, Client, floats
from node_inputs import (
    COUNT,
    ESCALATION,
    RECIPE,
    SEED,
    Parameters,
    Request,
    Requests,
    identify_goal,
    make_traps,
    malformed,
    named,
    one_of,
    require_no_fault,
    require_words,
    snapshot,
)
from nodes import NodeProcess, ended
from rclpy.serialization import serialize_message
from recordings import recording
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from text_inputs import gently, model_texts

from robot_dynid.dynamics.wrist import WristSensor
from robot_dynid.errors import DynIdError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier.identification import Code
from robot_dynid.types import take
from robot_dynid_interfaces.action import Identify

pytestmark = pytest.mark.ros
ROBOT = 'planar_3r'
SECONDS = 4.0  # of the recordings
TOPICS = {'joint_states': JointState, 'motor_states': JointState, 'wrench': WrenchStamped}


class Identifier:
    """The identifier as a process with all its services, and a user; its files are in ``folder``.

    It serves ``model``, and answers the same as at first whatever was asked of it in between.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.robot = folder, load_robot(ROBOT)
        make_traps(folder)
        self.model = feasible_model(self.robot, self.robot.nominal, np.random.default_rng(0))
        self.model.save(folder / 'good.yaml')
        self.sources = ['run.csv', *self._damaged(np.random.default_rng(seed))]
        WristSensor(self.robot.name, self.robot.hash(), self.robot.bodies[-1], np.zeros(10),
                    np.zeros(6), np.eye(3), 1).save(folder.parent / 'sensor.yaml')
        self.before = snapshot(folder)
        self.node = NodeProcess('identifier', {
            'robot': ROBOT, 'files_directory': folder, 'health': True,
            'recording_directory': folder.parent / 'bags', 'model': folder / 'good.yaml',
            'wrist_sensor': folder.parent / 'sensor.yaml'})
        self.client = Client()
        for name in ('update_model', 'zero_wrench'):
            self.client.services[name] = self.client.node.create_client(
                Trigger, f'identifier/{name}')
        self.publishers = [self.client.node.create_publisher(kind, topic, 1000)
                           for topic, kind in TOPICS.items()]
        self.requests = Requests(self.model, self.models)
        self.recording, self.counts = False, Counter[str]()
        self.usual: Any = None

    def _damaged(self, rng: np.random.Generator) -> list[str]:
        """Write recordings and models, most of them damaged; return the names of the former."""
        write_csv(self.folder / 'run.csv', take(recording(self.robot, 0, SECONDS), slice(
            None, None, 2)))
        whole = (self.folder / 'run.csv').read_bytes()
        texts = [*model_texts(unprotected=True)[:2], self.model.to_yaml().encode()]
        self.models = ['good.yaml', 'new\nline.yaml', 'odd.yaml']
        for name in self.models[1:]:
            (self.folder / name).write_bytes(texts[2])
        (self.folder / 'odd.csv').write_bytes(whole)
        for k in range(20):
            self.models.append(f'model_{k}.yaml')
            (self.folder / self.models[-1]).write_bytes(gently(rng, one_of(rng, texts)))
        for k in range(8):
            (self.folder / f'run_{k}.csv').write_bytes(gently(rng, gently(rng, whole)))
        return ['odd.csv', *(f'run_{k}.csv' for k in range(8))]

    def publish(self, rng: np.random.Generator) -> None:
        """Publish a malformed message of every topic."""
        for publisher in self.publishers:
            publisher.publish(malformed(rng, list(self.robot.joints))
                              if publisher.msg_type is JointState else
                              mutated(rng, bytes(serialize_message(WrenchStamped()))))

    def asked(self, request: Request) -> Any:
        """Return the answer to a request."""
        service = self.client.services[request.service]
        message = service.srv_type.Request()
        for name, value in request.fields.items():
            setattr(message, name, floats(value) if isinstance(value, np.ndarray) else value)
        return self.client.answer(service.call_async(message))

    def require_usual(self) -> None:
        """Require the answer to a usual request that was given at first."""
        states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 5, self.robot.n))
        answer = self.asked(Request('forward_dynamics', dict(zip(
            ('position', 'velocity', 'effort'), states, strict=True)) | {'mass_matrix': True}))
        assert answer.success, answer.message
        self.usual = self.usual or answer
        assert answer == self.usual, 'the usual request is answered otherwise than at first'

    def serve_good(self) -> None:
        """Serve the model again that was served first."""
        answer = self.asked(Request('load_model', {'path': 'good.yaml'}))
        assert answer.success, answer.message
        self.require_usual()

    def check(self, request: Request) -> None:
        """Require the right answer to a request."""
        answer = self.asked(request)
        self.counts[f'{request.service} {"done" if answer.success else "refused"}'] += 1
        if not answer.success:
            require_words(answer.message)
            assert not request.sane, f'refused: {answer.message}'
        if request.service in ('start_recording', 'stop_recording'):
            self._check_recording(request.service == 'start_recording', answer)
        elif request.service == 'load_model':
            self._check_load(request.fields['path'], answer)
        elif answer.success:
            getattr(self, f'_check_{request.service}')(request, answer)

    def _check_recording(self, start: bool, answer: Any) -> None:
        impossible = 'already recording' if start else 'nothing is being recorded'
        assert (impossible in answer.message) == (self.recording == start), answer.message
        self.recording = start

    def _check_load(self, path: str, answer: Any) -> None:
        """Require that exactly the models are served that can be loaded here, too."""
        model = None
        path = str(Path(path))  # without a slash at its end
        if path in self.models:
            with suppress(DynIdError):
                model = IdentifiedModel.load(self.folder / path, self.robot)
        assert answer.success == (model is not None and len(model.not_identified) < self.robot.n)
        if answer.success and model is not None:
            assert tuple(answer.model.names) == model.names
            assert len(answer.message.splitlines()) == 1, repr(answer.message)
            self.serve_good()

    def _check_save_model(self, request: Request, answer: Any) -> None:
        assert answer.message.startswith('saved to ') and len(answer.message.splitlines()) == 1
        path = self.folder / request.fields['path'].partition('\0')[0]  # the rest is not sent
        assert path.resolve().is_relative_to(self.folder)
        assert IdentifiedModel.load(path).to_yaml() == self.model.to_yaml()
        path.unlink()

    def _check_update_model(self, request: Request, answer: Any) -> None:
        raise AssertionError(f'a model from nothing: {answer.message}')

    _check_zero_wrench = _check_update_model

    def _check_forward_dynamics(self, request: Request, answer: Any) -> None:
        self._check_computed(request, answer.acceleration, self.model.accelerations)

    def _check_inverse_dynamics(self, request: Request, answer: Any) -> None:
        self._check_computed(request, answer.effort, self.model.inverse)

    def _check_rollout(self, request: Request, answer: Any) -> None:
        position = np.asarray(answer.position)
        assert len(position) == np.size(request.fields['effort']) == len(answer.velocity)
        stopped = np.asarray(answer.stop_step)
        assert np.isfinite(position).all() == (stopped < 0).all(), 'where it stops, and only there'
        if request.sane:
            found, _ = self.model.rollout(*request.states, request.fields['dt'])
            assert np.array_equal(position, found[..., request.order].ravel())

    def _check_computed(self, request: Request, values: Any, compute: Any) -> None:
        """Require finite values, one for each number, and of a sane request the right ones."""
        assert len(values) == np.size(request.fields['position']) and np.isfinite(values).all()
        if request.sane:
            assert np.array_equal(values, compute(*request.states)[..., request.order].ravel())

    def identified(self, goal: dict[str, Any]) -> None:
        """Require the right answer to a goal."""
        status, result = self.client.result(self.client.send(**goal))
        goal = {name: value.partition('\0')[0] if isinstance(value, str) else value
                for name, value in goal.items()}
        self.counts[f'identify {Code(result.code).name}'] += 1
        for sentence in (result.message, *result.verdict, *result.warnings):
            require_words(sentence)
        assert result.code not in (Code.ABORTED, Code.CANCELLED), result.message
        assert result.success == (status == SUCCEEDED)
        for name, written in (('out', result.model_file), ('report', result.report_file)):
            path = self.folder / goal.get(name, '')
            assert not result.success or bool(written) == bool(goal.get(name))
            if written:
                assert path.resolve().is_relative_to(self.folder)
                assert name == 'report' or IdentifiedModel.load(path, self.robot)
                path.unlink()

    def storm(self, rng: np.random.Generator) -> None:
        """Send many goals at once, and cancel them at any time; each is answered as it ended."""
        sent = [self.client.action.send_goal_async(Identify.Goal(
            files=['run.csv'] * int(one_of(rng, (1, 20))), recipe=RECIPE.decode()))
            for _ in range(int(rng.integers(2, 7)))]
        handles = [self.client.answer(one) for one in sent]
        assert all(handle.accepted for handle in handles)
        cancels = []
        for k in rng.permutation(len(handles)):
            self.client.spin(float(rng.exponential(0.1)))
            cancels.append(handles[k].cancel_goal_async())
        for handle in handles:
            status, result = self.client.result(handle)
            require_words(result.message)
            self.counts[f'storm {Code(result.code).name}'] += 1
            assert (status == CANCELED) == (result.code == Code.CANCELLED), result.message
            assert result.success or result.code == Code.CANCELLED or (
                'another identification is running' in result.message), result.message
        for cancel in cancels:
            self.client.answer(cancel)

    def require_well(self) -> None:
        """Require that the node lives, wrote nothing about itself, and changed no other file."""
        assert self.node.process.poll() is None, self.node.output
        require_no_fault(self.node.output)
        assert snapshot(self.folder) == self.before, 'a file of somebody else was changed'

    def children(self) -> list[int]:
        """Return the processes that the node has started."""
        pid = self.node.process.pid
        return [int(word) for word in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]

    def end_in_mid_work(self, rng: np.random.Generator) -> None:
        """End the node while it identifies: soon, with its worker, and no file is cut off."""
        self.client.send(files=['run.csv'] * 20, recipe=RECIPE.decode(), out='out.yaml')
        self.client.wait(lambda: self.client.feedback)
        workers = self.children()
        assert workers, 'there is a worker'
        self.client.spin(float(rng.uniform(0.0, 1.0)))
        self.client.close()
        begin = time.monotonic()
        self.node.process.send_signal(one_of(rng, (signal.SIGTERM, signal.SIGINT)))
        assert self.node.process.wait(ESCALATION) == 0, self.node.output
        sys.stdout.write(f'ended after {time.monotonic() - begin:.2f} s\n')
        assert not any(Path(f'/proc/{pid}').exists() for pid in workers), 'the worker lives'
        if (self.folder / 'out.yaml').exists():
            IdentifiedModel.load(self.folder / 'out.yaml')


def fuzz_identifier(folder: Path, seed: int, requests: int, goals: int, storms: int) -> None:
    """Ask the identifier for whatever a seed says, and end it in mid-work."""
    one = Identifier(folder, seed)
    rng = np.random.default_rng([seed, 0, 0])
    with ended(one.node):
        one.client.wait(lambda: all(s.service_is_ready() for s in one.client.services.values()))
        one.client.wait(lambda: one.client.action.server_is_ready() and all(
            topic.get_subscription_count() for topic in one.publishers))
        one.client.spin(ACQUAINTANCE)
        one.require_usual()
        parameters = Parameters(one.client, 'identifier')
        for number in range(requests // 4):
            with named(seed, number, 'parameters'):
                parameters.fuzz(np.random.default_rng([seed, number, 4]))
        parameters.restore()
        one.require_usual()
        for number in range(requests):
            request = one.requests.made(seed, number)
            with named(seed, number, request):
                one.publish(np.random.default_rng([seed, number, 1]))
                one.check(request)
                if number % 20 == 19:
                    one.require_usual()
                    one.require_well()
        for number in range(goals):
            goal = identify_goal(np.random.default_rng([seed, number, 2]), one.sources)
            with named(seed, number, f'goal {goal}'):
                one.identified(goal)
                one.serve_good()
                one.require_well()
        for number in range(storms):
            with named(seed, number, 'storm of goals'):
                one.storm(np.random.default_rng([seed, number, 3]))
                one.serve_good()
                one.require_well()
        one.identified({'files': ['run.csv'], 'recipe': RECIPE.decode()})
        assert one.counts['identify SUCCESS'], 'a sane goal succeeds at the end'
        one.end_in_mid_work(rng)
    counts = one.counts + parameters.counts
    sys.stdout.write(f'seed {seed}: {dict(sorted(counts.items()))}\n')


def test_the_identifier_answers_whatever_is_asked(module_domain: int, tmp_path: Path) -> None:
    fuzz_identifier(tmp_path / 'files', 0, requests=120, goals=2, storms=1)


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(SEED, SEED + 2))
def test_the_identifier_answers_very_much(
    seed: int, module_domain: int, tmp_path: Path
) -> None:
    fuzz_identifier(tmp_path / 'files', seed, COUNT, COUNT // 5, COUNT // 30)
