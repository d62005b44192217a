"""The served model: loading, saving, and its latched description."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from robot_dynid.errors import DynIdError, ModelError, UsageError
from robot_dynid.identified.caution import (
    after_caution,
    require_any_joint,
    require_every_joint,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import source_text
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.ros.common.services import ServiceThread
from robot_dynid.ros.identifier.identification import write_below
from robot_dynid.ros.identifier.messages import model_message
from robot_dynid_interfaces.msg import DynamicModel
from robot_dynid_interfaces.srv import LoadModel, SaveModel

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NO_PATH = 'path is empty: give the path of a model.yaml'


class ModelServices:
    """The served model: ~/load_model, ~/save_model, latched ~/model and ~/robot_description.

    ``robot`` is the robot a model must belong to; None takes models of any robot. ``files`` are
    those that requests may name, with or without it. ``path`` is the model file served from the
    start; empty: none. Raises DynIdError if it is unusable.
    """

    def __init__(self, node: Node, robot: RobotModel | None,
                 files: RequestedFiles | None = None, path: str = '') -> None:
        self._node = node
        self.files = files or RequestedFiles(node.get_logger().warning)
        self._robot = robot
        self.model: IdentifiedModel | None = None
        self._latched = node.create_publisher(DynamicModel, '~/model', LATCHED)
        self._description = RobotDescription(node, robot)
        self._serving = threading.Lock()
        if path:  # before a service could answer that there is no model
            self.load(path)
        self._thread = ServiceThread(node, 'models')  # files may be large, and disks slow
        self._thread.offer(LoadModel, 'load_model', self._load)
        self._thread.offer(SaveModel, 'save_model', self._save)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._thread.close()

    def serve(self, model: IdentifiedModel, text: str) -> DynamicModel:
        """Serve ``model`` from now on and return its description; ``text`` is its file."""
        message = model_message(model, text, self._node.get_clock().now().to_msg())
        zeros = np.zeros(len(model.joints))
        with suppress(ModelError):  # values computed once per model are computed here
            model.forward(zeros, zeros, zeros)
        with self._serving:
            self.model = model
            self._latched.publish(message)
            self._description.describe(model)
        return message

    def load(self, path: str) -> DynamicModel:
        """Load and serve a model file; raises DynIdError and keeps the served model."""
        if not path:
            raise UsageError(NO_PATH)
        model = IdentifiedModel.load(Path(path).expanduser(), self._robot)
        require_any_joint(model)
        return self.serve(model, model.to_yaml())

    def served(self) -> IdentifiedModel:
        """Return the served model; raises ModelError if there is none."""
        if self.model is None:
            raise ModelError('no model is loaded: identify one (action identify) or load one '
                             '(service load_model)')
        return self.model

    def _load(self, request: Any, response: Any) -> str:
        if not request.path:
            raise UsageError(NO_PATH)
        response.model = self.load(str(self.files.file(request.path)))
        return after_caution(
            self.served(), f'{request.path}: serving the model of {response.model.robot}')

    def _save(self, request: Any, response: Any) -> str:
        model = self.served()
        target = self.files.target(request.path)
        return f'saved to {write_below(self.files.directory, str(target), model.save)}'


class RobotDescription:
    """Publishes while the served model is feasible, without refused joints, and its URDF is known.

    The publisher is removed with the model, so that late subscribers do not get the inertials of
    an earlier one.
    """

    def __init__(self, node: Node, robot: RobotModel | None) -> None:
        self._node = node
        self._publisher: Any = None
        self._logged: set[str] = set()
        self._urdf = self._missing = ''
        try:
            if robot is None:
                raise UsageError('the parameter robot is empty, so its URDF is not known')
            self._urdf = source_text(robot)
        except DynIdError as error:
            self._missing = str(error)

    def describe(self, model: IdentifiedModel) -> None:
        """Publish the description of ``model``, or log once why there is none."""
        try:
            if self._missing:
                raise UsageError(self._missing)
            export = model.to_urdf(self._urdf)
            require_every_joint(model)
        except DynIdError as error:
            if self._publisher is not None:
                self._node.destroy_publisher(self._publisher)
                self._publisher = None
            self._log_once(f'no ~/robot_description: {error}')
            return
        if self._publisher is None:
            self._publisher = self._node.create_publisher(String, '~/robot_description', LATCHED)
        self._publisher.publish(String(data=export.text))
        for warning in export.warnings:
            self._log_once(f'~/robot_description: {warning}')

    def _log_once(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            self._node.get_logger().info(text)
