"""A user of the identifier node, and what there is to identify."""

from __future__ import annotations

import array
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nodes import destroy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robot_dynid.excitation.design import design
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_interfaces.action import Identify
from robot_dynid_interfaces.msg import DynamicModel
from robot_dynid_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeRollout,
    LoadModel,
    SaveModel,
)

ROBOT = 'seven_axis'
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
#: s for a server to find its client: it drops answers to one whose reader it has not found yet
ACQUAINTANCE = 1.0
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
SERVICES = {
    'forward_dynamics': ComputeForwardDynamics, 'inverse_dynamics': ComputeInverseDynamics,
    'rollout': ComputeRollout, 'load_model': LoadModel, 'save_model': SaveModel,
    'start_recording': Trigger, 'stop_recording': Trigger,
}


@cache
def identified() -> tuple[RawLog, IdentifiedModel]:
    """Return the recording of a simulated seven-axis arm and its model: once for all modules."""
    robot = load_robot(ROBOT)
    truth = load_truth(robot)
    request = parse_request('fourier', {'duration': 10.0, 'harmonics': 5, 'starts': 1})
    motion = record(Arm(robot, truth), design(robot, request).trajectory)
    log = measured(motion, robot, truth.noise, np.random.default_rng(0))
    return log, identify(robot, [log]).model


class Data:
    """A simulated recording of the seven-axis arm, and the model identified from it offline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log, self.model = identified()
        self.csv = folder / 'motion.csv'
        write_csv(self.csv, self.log)
        self.model_file = folder / 'model.yaml'
        self.model.save(self.model_file)

    def states(self, count: int) -> tuple[FloatArray, ...]:
        """Return random states (count, 7) and the efforts of random accelerations."""
        q, qd, qdd = np.random.default_rng(count).uniform(-1.0, 1.0, (3, count, 7))
        return q, qd, self.model.inverse(q, qd, qdd), qdd


def floats(values: Any) -> array.array[float]:
    """Return values as a message takes them."""
    return array.array('d', np.ravel(values).tolist())


class Client:
    """What a user does with the node, and what there is to be seen."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('user', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.models: list[DynamicModel] = []
        self.descriptions: list[String] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.feedback: list[tuple[str, float]] = []
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', self.diagnostics.append, 10)
        self.services = {name: self.node.create_client(kind, f'identifier/{name}')
                         for name, kind in SERVICES.items()}
        self.known = False
        self.action = ActionClient(self.node, Identify, 'identifier/identify')
        self.states = self.node.create_publisher(JointState, 'joint_states', 1000)

    def listen_to_model(self) -> None:
        """Subscribe to the latched model."""
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(
            DynamicModel, 'identifier/model', self.models.append, latched)

    def served_model(self) -> DynamicModel:
        """Return what a late subscriber of the latched model gets now."""
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        found: list[DynamicModel] = []
        listener = self.node.create_subscription(
            DynamicModel, 'identifier/model', found.append, latched)
        self.wait(lambda: found)
        self.node.destroy_subscription(listener)
        return found[-1]

    def listen_to_description(self) -> None:
        """Subscribe to the latched URDF."""
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(
            String, 'identifier/robot_description', self.descriptions.append, latched)

    def close(self) -> None:
        """Leave DDS: a participant that stays waits for ports of whoever was killed."""
        destroy(self.node)
        rclpy.shutdown(context=self.context)

    def wait(self, condition: Any, patience: float = PATIENCE) -> None:
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self.executor.spin_once(timeout_sec=0.02)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def answer(self, future: Any) -> Any:
        self.wait(future.done)
        return future.result()

    def call(self, service: str, **fields: Any) -> Any:
        """Call a service; arrays and lists of numbers may be given as they are."""
        client = self.services[service]
        self.wait(client.service_is_ready)
        if not self.known:
            self.spin(ACQUAINTANCE)
            self.known = True
        request = SERVICES[service].Request()
        for name, value in fields.items():
            numeric = isinstance(value, np.ndarray) or name in ('position', 'velocity', 'effort')
            setattr(request, name, floats(value) if numeric else value)
        return self.answer(client.call_async(request))

    def refusal(self, service: str, **fields: Any) -> str:
        """Return the message of a call that must fail."""
        response = self.call(service, **fields)
        assert not response.success
        return response.message

    def send(self, **goal: Any) -> Any:
        self.feedback.clear()
        self.wait(self.action.server_is_ready)
        handle = self.answer(self.action.send_goal_async(
            Identify.Goal(**goal),
            lambda m: self.feedback.append((m.feedback.stage, m.feedback.fraction))))
        assert handle.accepted
        return handle

    def result(self, handle: Any) -> tuple[int, Identify.Result]:
        answer = self.answer(handle.get_result_async())
        assert answer.result.success == (answer.result.code == 0) == (answer.status == SUCCEEDED)
        return answer.status, answer.result

    def identify(self, **goal: Any) -> Identify.Result:
        return self.result(self.send(**goal))[1]

    def publish(self, names: list[str], log: RawLog, columns: list[int]) -> None:
        """Publish a log as joint states with its own stamps, as fast as it goes."""
        assert log.velocity is not None
        assert log.effort is not None
        self.wait(lambda: self.states.get_subscription_count() == 1)
        message = JointState(name=names)
        for k, t in enumerate(log.time):
            message.header.stamp.sec, rest = divmod(round(t * 1e9), 10**9)
            message.header.stamp.sec += 1000
            message.header.stamp.nanosec = rest
            message.position = array.array('d', log.position[k, columns].tolist())
            message.velocity = array.array('d', log.velocity[k, columns].tolist())
            message.effort = array.array('d', log.effort[k, columns].tolist())
            self.states.publish(message)
            if k % 100 == 0:
                time.sleep(0.05)  # never more on the way than the queues hold

    def diagnosis(self) -> dict[str, str]:
        """Return level, message and values of the next diagnostics."""
        self.diagnostics.clear()
        self.wait(lambda: self.diagnostics)
        status = self.diagnostics[-1].status[0]
        level = int.from_bytes(status.level, 'little')
        assert status.name == '/identifier: identification'
        return {'level': str(level), 'message': status.message} | {
            value.key: value.value for value in status.values}
