"""The served model: loading, saving, and its latched description."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node

from robot_dynid.errors import ModelError, UsageError
from robot_dynid.identified.caution import caution, require_any_joint
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.convert import model_message
from robot_dynid.ros.common.service_thread import ServiceThread
from robot_dynid.ros.identifier.identification_job import write_below
from robot_dynid.ros.identifier.robot_description import LATCHED, RobotDescription
from robot_dynid_interfaces.msg import DynamicModel
from robot_dynid_interfaces.srv import LoadModel, SaveModel


class ModelServices:
    """The served model: ~/load_model, ~/save_model, latched ~/model and ~/robot_description.

    ``robot`` is the robot a model must belong to; None takes models of any robot. Models are saved
    below the folder ``root``.
    """

    def __init__(self, node: Node, robot: RobotModel | None, root: str = '/') -> None:
        self._node = node
        self.root = root
        self._robot = robot
        self.model: IdentifiedModel | None = None
        self._latched = node.create_publisher(DynamicModel, '~/model', LATCHED)
        self._description = RobotDescription(node, robot)
        self._serving = threading.Lock()
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
        with suppress(ModelError):  # what is computed once per model is computed here
            model.forward(zeros, zeros, zeros)
        with self._serving:
            self.model = model
            self._latched.publish(message)
            self._description.describe(model)
        return message

    def load(self, path: str) -> DynamicModel:
        """Load and serve a model file; raises DynIdError, the served model then stays."""
        if not path:
            raise UsageError('path is empty: give the path of a model.yaml')
        model = IdentifiedModel.load(Path(path).expanduser(), self._robot)
        require_any_joint(model)
        return self.serve(model, model.to_yaml())

    def served(self) -> IdentifiedModel:
        """Return the served model; raises ModelError when there is none."""
        if self.model is None:
            raise ModelError('no model is loaded: identify one (action identify) or load one '
                             '(service load_model)')
        return self.model

    def _load(self, request: Any, response: Any) -> None:
        response.model = self.load(request.path)
        warning = caution(self.served())
        response.message = (f'{warning}; ' if warning else '') + \
            f'{request.path}: serving the model of {response.model.robot}'

    def _save(self, request: Any, response: Any) -> None:
        model = self.served()
        response.message = f'saved to {write_below(self.root, request.path, model.save)}'
