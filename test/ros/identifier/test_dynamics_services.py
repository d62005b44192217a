"""ros/identifier/dynamics_services.py: what its services answer and refuse, in the process of the
test."""

from __future__ import annotations

import array
import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Timer
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from monitored import model_of
from nodes import PATIENCE, Spinner

from robot_dynid.errors import Cancelled, ModelError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.identifier import dynamics_services
from robot_dynid.ros.identifier.dynamics_services import DynamicsServices
from robot_dynid_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeRollout,
)

pytestmark = pytest.mark.ros

ROBOT = 'planar_3r'


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return model_of(load_robot(ROBOT))


def zeros(count: int) -> array.array[float]:
    """Return so many zeros as a message takes them."""
    return array.array('d', bytes(8 * count))


@pytest.fixture
def services(node: Any, model: IdentifiedModel) -> Iterator[DynamicsServices]:
    made = DynamicsServices(node, lambda: model)
    yield made
    made.close()


def test_rollouts_have_a_largest_number_of_states(
    services: DynamicsServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamics_services, 'MAX_NUMBERS', 30)
    request = ComputeRollout.Request(
        position=zeros(3), velocity=zeros(3), effort=zeros(30), dt=1e-3)
    response = ComputeRollout.Response()
    services.rollout(request, response)
    assert len(response.position) == 30
    request.effort = zeros(33)
    with pytest.raises(UsageError, match=r'effort has 33 .* at most 10 states of 3 joints'):
        services.rollout(request, ComputeRollout.Response())


def test_rollouts_end_when_they_take_too_long(
    services: DynamicsServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long steps are made of many internal ones; what cannot end in time is given up at once."""
    request = ComputeRollout.Request(
        position=zeros(3), velocity=zeros(3), effort=zeros(5001), dt=60.0)
    for longest, hopeless in ((1.0, 3.0), (0.05, 1e9)):
        monkeypatch.setattr(dynamics_services, 'ROLLOUT_TIME', longest)
        monkeypatch.setattr(dynamics_services, 'HOPELESS', hopeless)
        begin = time.process_time()
        with pytest.raises(Cancelled, match=rf'would take about .* s here \(limit {longest:g} s'):
            services.rollout(request, ComputeRollout.Response())
        assert time.process_time() - begin < 5.0, 'it would take more than ten'


def test_closing_ends_a_rollout_under_way(services: DynamicsServices) -> None:
    request = ComputeRollout.Request(
        position=zeros(3), velocity=zeros(3), effort=zeros(30000), dt=0.1)
    Timer(0.2, services.close).start()
    with pytest.raises(Cancelled, match='the node is shutting down'):
        services.rollout(request, ComputeRollout.Response())


def test_forward_and_inverse_have_a_largest_number_of_states(
    services: DynamicsServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamics_services, 'MAX_NUMBERS', 18)
    for handler, kind, more in (
        (services.forward, ComputeForwardDynamics, 'effort'),
        (services.inverse, ComputeInverseDynamics, 'acceleration'),
    ):
        for states, mass, largest in ((6, False, 6), (2, True, 2)):
            if mass and kind is ComputeInverseDynamics:
                continue
            for count in (states, states + 1):
                request = kind.Request(**dict.fromkeys(
                    ('position', 'velocity', more), zeros(3 * count)))
                if mass:
                    request.mass_matrix = True
                if count == states:
                    handler(request, kind.Response())
                    continue
                with pytest.raises(UsageError, match=f'at most {largest} states of 3 joints'):
                    handler(request, kind.Response())


@pytest.mark.parametrize(('links', 'numbers', 'said'), [
    ([], 6, 'wrench has 6 numbers, but wrench_links is empty'),
    (['link_3'], 6, 'wrench has 6 numbers, expected 12: 2 states of 1 links with fx, fy, fz, tx'),
    (['link_3'], 0, 'wrench has 0 numbers, expected 12'),
    (['link_3', 'link_3'], 24, "wrench_links: link 'link_3' is named 2 times"),
    (['gripper'], 12, "wrench_links: 'gripper' is no moving link: choose one of link_1"),
    (['link_3@gripper'], 12, "wrench_links: 'gripper' is no moving link"),
    (['link_3'], -12, r"wrench\[7\] is nan: fy on link 'link_3' of state 1; every number must"),
])
def test_wrenches_that_cannot_be_are_refused(
    services: DynamicsServices, links: list[str], numbers: int, said: str
) -> None:
    wrench = zeros(abs(numbers))
    if numbers < 0:
        wrench[7] = float('nan')
    for handler, kind, more in ((services.forward, ComputeForwardDynamics, 'effort'),
                                (services.inverse, ComputeInverseDynamics, 'acceleration')):
        request = kind.Request(**dict.fromkeys(('position', 'velocity', more), zeros(6)),
                               wrench_links=links, wrench=wrench)
        with pytest.raises(UsageError, match=said):
            handler(request, kind.Response())


def test_rollout_service_computes_one_queues_three_refuses_others(
    node: Any, services: DynamicsServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All over the wire; forward dynamics are answered meanwhile."""
    go, running = Event(), []

    def held(self: Any, *given: Any) -> Any:
        running.append(1)
        go.wait(2.0 * PATIENCE)
        assert running.pop() and not running, 'two at a time'
        return rollout(self, *given)

    rollout = IdentifiedModel.rollout
    monkeypatch.setattr(IdentifiedModel, 'rollout', held)
    slow = node.create_client(ComputeRollout, '~/rollout')
    quick = node.create_client(ComputeForwardDynamics, '~/forward_dynamics')
    spinner = Spinner(node)
    spinner.wait(lambda: slow.service_is_ready() and quick.service_is_ready())
    request = ComputeRollout.Request(
        position=zeros(3), velocity=zeros(3), effort=zeros(3), dt=1e-3)
    answers = []
    for count in range(6):
        answers.append(slow.call_async(request))
        if not count:
            spinner.wait(lambda: running)
    spinner.wait(lambda: sum(answer.done() for answer in answers) == 2)
    refused = [answer.result() for answer in answers if answer.done()]
    assert all('a request for rollouts is being computed and 3 are waiting' in r.message
               for r in refused)
    assert not any(r.success for r in refused)
    assert spinner.answer(quick.call_async(ComputeForwardDynamics.Request(
        position=zeros(3), velocity=zeros(3), effort=zeros(3)))).success
    go.set()
    spinner.wait(lambda: all(answer.done() for answer in answers))
    assert sum(answer.result().success for answer in answers) == 4


def test_states_outside_of_the_training_are_named(node: Any, model: IdentifiedModel) -> None:
    slow = replace(model, trained=Trained({'velocity': np.array([[-1.0, 1.0]] * 3)}))
    services = DynamicsServices(node, lambda: slow)
    state = {'position': zeros(3), 'velocity': array.array('d', [4.0, 0.5, 0.5])}
    for handler, kind, more in (
        (services.inverse, ComputeInverseDynamics, {'acceleration': zeros(3)}),
        (services.forward, ComputeForwardDynamics, {'effort': zeros(3)}),
        (services.rollout, ComputeRollout, {'effort': zeros(3), 'dt': 1e-3}),
    ):
        for request, said in (
            (kind.Request(**state, **more),
             'velocity exceeds the training range: joint_1 by up to'),
            (kind.Request(**(state | {'velocity': zeros(3)}), **more), ''),
        ):
            response = kind.Response()
            handler(request, response)
            assert said in response.message
            assert bool(said) == bool(response.message)
    services.close()


DEGREES = ('position of joint_2 is 30 rad in state 0, its limit is -2.3 to 2.3 rad: if these are '
           'degrees, give 0.5236 rad; set beyond_limits to compute them unchanged')


@pytest.mark.parametrize(('q', 'qd', 'said'), [
    ([0.1, 30.0, 0.2], [0.0, 0.0, 0.0], DEGREES),
    ([0.1, 0.2, 0.3 + 8.0 * np.pi], [0.0, 0.0, 0.0], 'position of joint_3 is 25.43 rad'),
    ([0.1, 0.2, 0.3], [0.0, -45.0, 0.0], 'velocity of joint_2 is -45 rad/s in state 0, its limit '
     'is 4 rad/s: if these are degrees/s, give -0.7854 rad/s'),
    ([0.1, -2.39, 0.3], [0.0, 39.0, 0.0], '')], ids=['degrees', 'turns', 'deg/s', 'just beyond'])
def test_states_beyond_the_limits_are_refused_unless_they_are_meant(
    services: DynamicsServices, model: IdentifiedModel, q: list[float], qd: list[float], said: str
) -> None:
    """In whichever order the joints are named."""
    names, order = ['joint_3', 'joint_1', 'joint_2'], [2, 0, 1]
    state = {'position': array.array('d', np.array(q)[order]),
             'velocity': array.array('d', np.array(qd)[order])}
    for handler, kind, more in (
        (services.inverse, ComputeInverseDynamics, {'acceleration': zeros(3)}),
        (services.forward, ComputeForwardDynamics, {'effort': zeros(3)}),
        (services.rollout, ComputeRollout, {'effort': zeros(3), 'dt': 1e-4}),
    ):
        request = kind.Request(joint_names=names, **state, **more)
        if said:
            with pytest.raises(UsageError) as refused:
                handler(request, kind.Response())
            assert str(refused.value).startswith(said)
            request.beyond_limits = True
        handler(request, kind.Response())
    effort = ComputeInverseDynamics.Response()
    services.inverse(ComputeInverseDynamics.Request(
        joint_names=names, **state, acceleration=zeros(3), beyond_limits=True), effort)
    np.testing.assert_allclose(
        effort.effort, model.inverse(*np.array([[q], [qd], [[0.0] * 3]]))[0, order], rtol=1e-12)


def test_results_beyond_all_numbers_are_refused(services: DynamicsServices) -> None:
    state = {'position': zeros(3), 'velocity': array.array('d', [1e200] * 3),
             'beyond_limits': True}
    for handler, kind, more in (
        (services.inverse, ComputeInverseDynamics, {'acceleration': zeros(3)}),
        (services.forward, ComputeForwardDynamics, {'effort': zeros(3)}),
    ):
        with pytest.raises(UsageError, match='the result overflows'):
            handler(kind.Request(**state, **more), kind.Response())


def test_mass_matrix_comes_only_when_asked_and_in_the_order_of_the_request(
    services: DynamicsServices, model: IdentifiedModel
) -> None:
    q = np.array([0.3, -0.7, 1.1])
    names, order = [model.joints[i] for i in (2, 0, 1)], [2, 0, 1]
    request = ComputeForwardDynamics.Request(
        joint_names=names, position=array.array('d', q[order]), velocity=zeros(3),
        effort=zeros(3))
    response = ComputeForwardDynamics.Response()
    services.forward(request, response)
    assert len(response.mass_matrix) == 0
    request.mass_matrix = True
    services.forward(request, response)
    expected = model.mass_matrix(q[None])[0][np.ix_(order, order)]
    np.testing.assert_array_equal(np.reshape(response.mass_matrix, (3, 3)), expected)


def test_inverse_dynamics_answers_in_the_order_of_the_request(
    services: DynamicsServices, model: IdentifiedModel
) -> None:
    motion, order = np.random.default_rng(3).uniform(-1.5, 1.5, (3, 2, 3)), [1, 2, 0]
    names = ('position', 'velocity', 'acceleration')
    request = ComputeInverseDynamics.Request(
        joint_names=[model.joints[i] for i in order],
        **{name: array.array('d', values[:, order].ravel())
           for name, values in zip(names, motion, strict=True)})
    response = ComputeInverseDynamics.Response()
    services.inverse(request, response)
    expected = model.inverse(*motion)[:, order]
    np.testing.assert_allclose(np.reshape(response.effort, (2, 3)), expected, rtol=1e-12)


@pytest.mark.filterwarnings('ignore::robot_dynid.errors.RefusedJointWarning')
def test_a_refused_joint_has_no_effort_and_there_are_no_accelerations(
    node: Any, model: IdentifiedModel
) -> None:
    services = DynamicsServices(node, lambda: replace(model, not_identified=('joint_2',)))
    motion = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 2, 3))
    state = {name: array.array('d', part.ravel()) for name, part in zip(
        ('position', 'velocity', 'acceleration'), motion, strict=True)}
    response = ComputeInverseDynamics.Response()
    services.inverse(ComputeInverseDynamics.Request(
        joint_names=['joint_3', 'joint_1', 'joint_2'], **state), response)
    effort = np.reshape(response.effort, (2, 3))
    assert np.isnan(effort).all(axis=0).tolist() == [False, False, True]
    expected = model.inverse(*motion[:, :, [1, 2, 0]])[:, [2, 0]]
    np.testing.assert_allclose(effort[:, :2], expected, rtol=1e-12)
    assert response.message.startswith('joint joint_2 is refused: ')
    drives = {'effort': state.pop('acceleration')}
    for handler, kind, more in (
        (services.forward, ComputeForwardDynamics, {}),
        (services.forward, ComputeForwardDynamics, {'mass_matrix': True}),
        (services.rollout, ComputeRollout, {'dt': 1e-3}),
    ):
        with pytest.raises(ModelError, match='all joints move together, and joint joint_2'):
            handler(kind.Request(**state, **drives, **more), kind.Response())
    services.close()


def test_rollouts_answer_in_the_order_of_the_request_and_name_the_joint_that_leaves(
    services: DynamicsServices, model: IdentifiedModel
) -> None:
    order, n = [1, 2, 0], 3
    limits = model.robot.limits
    q, qd, effort = np.zeros((n, n)), 4.0 * np.eye(n), np.zeros((n, 20, n))
    np.fill_diagonal(q, limits.upper - 0.01)
    response = ComputeRollout.Response()
    services.rollout(ComputeRollout.Request(
        joint_names=[model.joints[i] for i in order],
        position=array.array('d', q[:, order].ravel()),
        velocity=array.array('d', qd[:, order].ravel()), effort=zeros(effort.size), dt=1e-3),
        response)
    found = model.rollout(q, qd, effort, 1e-3)
    assert response.limit_joint == list(model.joints), 'the joint of each motion left its limits'
    np.testing.assert_array_equal(response.position, found.position[..., order].ravel())
    np.testing.assert_array_equal(response.velocity, found.velocity[..., order].ravel())
