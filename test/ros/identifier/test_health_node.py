"""robot_dynid_extras/health/node_part.py: health over real DDS: everyday motion of a changed
robot, the alarm, the updated model, and that with the friction of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from everyday_arm import known_model
from nodes import Spinner, destroy, made
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dynid.effects import JointFriction
from robot_dynid.errors import UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.ros.identifier.model_services import LATCHED
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.types import FloatArray
from robot_dynid_extras.health.calibration import Calibration, FrictionChange
from robot_dynid_extras.health.health import Health
from robot_dynid_extras.health.node_part import DISTURBED, RESTED, HealthParameters
from robot_dynid_extras.health.recursive_identification import LEARNING

pytestmark = [pytest.mark.ros, pytest.mark.usefixtures('ros_domain')]

ROBOT, RATE, STRETCH = 'planar_3r', 100.0, 5.0
PUSH = np.array([0.0, 0.0, 60.0])


class Robot:
    """A driver that publishes the motion of a robot whose friction in joint 2 has risen."""

    def __init__(self, identifier: Any, model: IdentifiedModel) -> None:
        self.identifier, self.rng = identifier, np.random.default_rng(0)
        self.node = Node('driver')
        self.states = self.node.create_publisher(JointState, 'joint_states', QoSProfile(depth=100))
        self.heard: list[DiagnosticArray] = []
        self.node.create_subscription(
            DiagnosticArray, 'identifier/health', self.heard.append, LATCHED)
        self.spinner = Spinner(self.node)
        values = model.values.copy()
        for name in ('fv2', 'fc2'):
            values[model.names.index(name)] *= 1.4
        self.truth = replace(model, values=values)
        self.time = 1000.0
        self.spinner.wait(lambda: self.states.get_subscription_count() == 1)

    def moving(self, seconds: float) -> tuple[FloatArray, ...]:
        """Return stamps, positions, velocities and efforts of the next motion."""
        time = self.time + np.arange(round(seconds * RATE)) / RATE
        rate, size = np.array([1.3, 2.1, 3.1]), np.array([0.7, 0.6, 0.5])
        angle = np.outer(time, rate) + 0.4 * np.sin(0.3 * time)[:, None]
        speed = rate + 0.12 * np.cos(0.3 * time)[:, None]
        q, qd = size * np.sin(angle), size * speed * np.cos(angle)
        qdd = -size * speed**2 * np.sin(angle) \
            - size * 0.036 * np.sin(0.3 * time)[:, None] * np.cos(angle)
        noise = 0.1 * self.rng.normal(size=q.shape)
        return time, q, qd, self.truth.inverse(q, qd, qdd) + noise

    def publish(self, time: FloatArray, *values: FloatArray) -> None:
        """Publish as fast as they are taken, or left out where the computer is too busy."""
        monitoring = self.identifier.monitoring
        stamps = np.round(1e9 * time).astype(np.int64)
        data = encode_joint_states(self.truth.joints, stamps, values)
        for first in range(0, len(data), 20):
            before, last = monitoring.disturbed, int(stamps[min(first + 20, len(data)) - 1])
            for one in data[first:first + 20]:
                self.states.publish(one)
            self.spinner.wait(lambda: (
                monitoring.stamp == last or monitoring.disturbed > before))  # noqa: B023
        self.time = float(time[-1]) + 1.0 / RATE

    def until(self, words: str, most: float) -> None:
        """Move until a summary says ``words``, for at most so many seconds."""
        end = self.time + most
        while not (self.heard and words in self.heard[-1].status[0].message):
            assert self.time < end, self.heard[-1]
            self.publish(*self.moving(STRETCH))

    def asked(self, service: str) -> Any:
        """Return the answer of a service of the identifier."""
        client = self.node.create_client(Trigger, f'identifier/{service}')
        client.wait_for_service(10.0)
        return self.spinner.answer(client.call_async(Trigger.Request()))

    def said(self, words: str) -> dict[str, DiagnosticStatus]:
        """Wait for a summary that says ``words``; return all statuses by name."""
        self.spinner.wait(lambda: self.heard and words in self.heard[-1].status[0].message)
        return {status.name: status for status in self.heard[-1].status}


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Robot]:
    model = known_model()
    model.save(tmp_path / 'model.yaml')
    with made(Identifier, robot=ROBOT, model=tmp_path / 'model.yaml', health=True,
              contact_thresholds='[50.0]', recording_directory=tmp_path / 'bags') as node:
        spinner = Spinner(node)
        spinner.wait(lambda: node.models.model is not None)
        driver = Robot(node, node.models.model)
        yield driver
        destroy(driver.node)


def test_a_change_is_told_and_served_when_it_is_asked_for(robot: Robot, tmp_path: Path) -> None:
    health, served = robot.identifier.parts['health'], robot.identifier.models.model
    robot.publish(*robot.moving(0.5))  # the observer begins: not watched yet
    time, q, qd, effort = robot.moving(2.0 * STRETCH)
    robot.publish(time, q, qd, effort + PUSH)
    robot.publish(*robot.moving(STRETCH))
    robot.said('no everyday motion')
    assert health.left_out[DISTURBED] >= 1, 'contact is not learnt from'
    assert health.health is None or health.health.identification.seconds == 0.0
    answer = robot.asked('update_model')
    assert not answer.success and 'no everyday motion' in answer.message
    robot.publish(*robot.moving(LEARNING))
    robot.until('changed: joint_2: friction', 40.0 * STRETCH)
    found = robot.said('changed: joint_2: friction')
    friction = found['/identifier: health: joint_2: friction']
    assert friction.level == DiagnosticStatus.WARN
    assert re.search(r'friction 1\.\d+ to 2\.\d+ \+- ', friction.message)
    assert friction.hardware_id == ROBOT
    told = ' '.join(value.value for value in friction.values)
    assert re.search(r'served 1\.\d+, sees changes of 0\.\d+', told)
    assert found['/identifier: health: joint_1: friction'].level == DiagnosticStatus.OK
    values = {value.key: value.value for value in found['/identifier: health'].values}
    assert values[f'stretches left out: {DISTURBED}'] == str(health.left_out[DISTURBED])
    assert robot.identifier.models.model is served, 'never by itself'
    answer = robot.asked('update_model')
    assert answer.success, answer.message
    made_now = robot.identifier.models.model
    place = served.names.index('fv2')
    assert abs(made_now.values[place] / robot.truth.values[place] - 1.0) < 0.05
    (kept,) = (tmp_path / 'bags').glob('*.model.yaml')
    assert str(kept) in answer.message
    assert np.array_equal(IdentifiedModel.load(kept).values, served.values)
    robot.publish(*robot.moving(0.5))
    still = np.full((round(STRETCH * RATE), 3), 0.3)
    effort = robot.truth.inverse(still, 0.0 * still, 0.0 * still)
    for _ in range(20):
        if not health.left_out[RESTED]:
            time = robot.time + np.arange(len(still)) / RATE
            robot.publish(time, still, 0.0 * still, effort)
    assert health.left_out[RESTED] >= 1
    robot.said('no everyday motion')


def test_friction_of_the_session_is_served_when_it_is_asked_for(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = robot.identifier.models.model
    answer = robot.asked('calibrate')
    assert not answer.success and 'no everyday motion' in answer.message
    robot.publish(*robot.moving(3.0 * STRETCH))
    robot.said('no everyday motion')
    for _ in range(20):
        if robot.identifier.parts['health'].health.identification.seconds < 20.0:
            robot.publish(*robot.moving(STRETCH))
    assert robot.identifier.models.model is served, 'never by itself'
    answer = robot.asked('calibrate')
    assert answer.success, answer.message
    assert re.search(r'serving planar_3r friction calibrated by \d+ s of motion: .*'
                     r'joint_2 viscous 3\d\.\d ± \d\.\d %', answer.message)
    made_now, names = robot.identifier.models.model, ('fv2', 'fc2')
    places = [served.names.index(name) for name in names]
    truth = robot.truth.values[places]
    assert np.all(np.abs(made_now.values[places] - truth)
                  < 0.5 * np.abs(served.values[places] - truth))
    links = ~served.torque_model.base_of(JointFriction)
    np.testing.assert_array_equal(made_now.values[links], served.values[links])
    (kept,) = (tmp_path / 'bags').glob('*.model.yaml')
    assert str(kept) in answer.message
    assert np.array_equal(IdentifiedModel.load(kept).values, served.values)
    assert 'no everyday motion of the served' in robot.asked('calibrate').message, 'it is the old'
    health = robot.identifier.parts['health']
    robot.publish(*robot.moving(2.0 * STRETCH))
    robot.spinner.wait(lambda: health.session is not None and health.session.model is made_now)
    answer = robot.asked('calibrate')
    assert not answer.success and 's of motion are too short' in answer.message
    useless = Calibration(served, (FrictionChange('joint_1', 'dry', 0.01, 0.02, False),), 60.0)
    monkeypatch.setattr(health.session, 'calibrated', lambda: useless)
    answer = robot.asked('calibrate')
    assert not answer.success and answer.message == f'{useless.sentence}; the served model stays'
    assert robot.identifier.models.model is made_now


def test_memory_and_false_alarms_reach_the_levels() -> None:
    model = known_model()
    plain = Health(model).level(3, 1, np.inf, 0.5)
    for given in ({'health_memory': 30.0}, {'health_false_alarms': 0.01}):
        settings = HealthParameters(**given).settings()
        assert Health(model, settings).level(3, 1, np.inf, 0.5) > plain + 1.0
        assert Health(model, settings).identification.memory == settings.memory


@pytest.mark.parametrize(('given', 'words'), [
    ({'monitor': False}, 'needs the monitor'), ({'health_memory': 1.0}, 'health_memory')])
def test_parameters_that_cannot_be(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words), made(
            Identifier, robot=ROBOT, health=True, **given):
        pass
    assert not rclpy.ok()
