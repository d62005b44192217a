"""Dynamics of the served model, many states per call, answered in a thread of their own.

They belong to a lean node with an executor of its own: the executor of rclpy looks at every entity
of a node after every wake-up, which would take longer than the dynamics; and a long computation,
which runs without the interpreter lock, keeps no joint state waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from robot_dynid.dynamics.rollout import work_of
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.identified.caution import caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.ros.common.answers import answered
from robot_dynid.ros.common.convert import joint_order, like, matrix, numbers, require_finite
from robot_dynid.types import FloatArray
from robot_dynid_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeRollout,
)

LARGEST_ROLLOUT = 1_000_000  # states per call
MOST_STEPS = 5_000_000  # of the integration in one call, about ten seconds


class DynamicsServices:
    """~/forward_dynamics, ~/inverse_dynamics and ~/rollout of ``node``.

    ``served`` returns the model to use or raises ModelError.
    """

    def __init__(self, node: Node, served: Callable[[], IdentifiedModel]) -> None:
        self._served = served
        # Names are resolved by ``node``, so remapping it remaps them; nothing else is offered.
        self._node = Node(
            f'_{node.get_name()}_dynamics', context=node.context,
            namespace=node.get_namespace(), use_global_arguments=False, enable_rosout=False,
            start_parameter_services=False, parameter_overrides=[
                Parameter('start_type_description_service', value=False)])
        for name, kind, handler in (
            ('forward_dynamics', ComputeForwardDynamics, self.forward),
            ('inverse_dynamics', ComputeInverseDynamics, self.inverse),
            ('rollout', ComputeRollout, self.rollout),
        ):
            self._node.create_service(
                kind, node.resolve_service_name(f'~/{name}'),
                answered(handler, node.get_logger()))
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name='dynamics', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(timeout=1.0)
        self._node.destroy_node()

    def _spin(self) -> None:
        try:
            self._executor.spin()
        except ExternalShutdownException:
            return
        except Exception:
            # The context may go at any time on an interrupt; that is no fault then.
            if self._node.context.ok():
                raise

    def forward(self, request: Any, response: Any) -> None:
        """Answer ~/forward_dynamics; raises UsageError for a request that cannot be."""
        model = self._served()
        n = len(model.joints)
        order = joint_order(request.joint_names, model.joints)
        q = matrix('position', request.position, n)
        qd = like('velocity', request.velocity, q)
        effort = like('effort', request.effort, q)
        motors = _motors(request, model, q)
        given = {'position': q, 'velocity': qd, 'effort': effort, **motors}
        states = [a if order is None else a[:, order.to_model] for a in given.values()]
        if motors:
            compute = partial(model.elastic_motion.accelerations, *states)
            qdd, motor = _checked(compute, given, request, model)
            response.motor_acceleration = numbers(motor if order is None else motor[:, order.back])
        else:
            qdd = _checked(partial(model.accelerations, *states), given, request, model)
        _mark(response, model, {'position': states[0], 'velocity': states[1],
                                'effort': states[2], 'acceleration': qdd})
        response.acceleration = numbers(qdd if order is None else qdd[:, order.back])
        if request.mass_matrix:
            inertia = model.mass_matrix(states[0])
            if order is not None:
                inertia = inertia[:, order.back[:, None], order.back]
            response.mass_matrix = numbers(inertia)

    def inverse(self, request: Any, response: Any) -> None:
        """Answer ~/inverse_dynamics; raises UsageError for a request that cannot be."""
        model = self._served()
        n = len(model.joints)
        order = joint_order(request.joint_names, model.joints)
        q = matrix('position', request.position, n)
        qd = like('velocity', request.velocity, q)
        qdd = like('acceleration', request.acceleration, q)
        given = {'position': q, 'velocity': qd, 'acceleration': qdd}
        if order is not None:
            q, qd, qdd = (a[:, order.to_model] for a in (q, qd, qdd))
        effort = _checked(partial(model.inverse, q, qd, qdd), given, request, model)
        _mark(response, model, {'position': q, 'velocity': qd, 'acceleration': qdd})
        response.effort = numbers(effort if order is None else effort[:, order.back])

    def rollout(self, request: Any, response: Any) -> None:
        """Answer ~/rollout; raises UsageError for a request that cannot be, or is too large."""
        model = self._served()
        n = len(model.joints)
        order = joint_order(request.joint_names, model.joints)
        q = matrix('position', request.position, n)
        qd = like('velocity', request.velocity, q)
        effort = _steps(request.effort, q)
        if not (np.isfinite(request.dt) and request.dt > 0.0):
            raise UsageError(f'dt is {request.dt}, it must be finite and above zero')
        if work_of(len(q), effort.shape[1], request.dt) > MOST_STEPS:
            raise UsageError(
                f'{effort.shape[1]} steps of {request.dt:g} s for {len(q)} motions are more than '
                f'the {MOST_STEPS} internal steps allowed in one call: continue from the last '
                'state in another call')
        motors = _motors(request, model, q)
        given = {'position': q, 'velocity': qd, 'effort': effort, **motors}
        q, qd, effort, *both = (a if order is None else a[..., order.to_model]
                                for a in given.values())
        try:
            result = model.rollout(q, qd, effort, request.dt, (both[0], both[1]) if both else None)
        except DynIdError:
            require_finite(given, request.joint_names or model.joints)
            raise
        for name in ('position', 'velocity', 'motor_position', 'motor_velocity'):
            values = getattr(result, name)
            if values is not None:
                setattr(response, name,
                        numbers(values if order is None else values[..., order.back]))
        response.limit_step = result.limit_step.tolist()
        response.limit_joint = [model.joints[j] if j >= 0 else '' for j in result.limit_joint]
        response.stop_step = result.stop_step.tolist()
        response.message = '; '.join(result.warnings)
        _mark(response, model, {name: getattr(result, name).reshape(-1, n)
                                for name in ('position', 'velocity')})


def _checked(
    compute: Callable[[], Any], given: dict[str, FloatArray], request: Any, model: IdentifiedModel
) -> Any:
    """Return ``compute()``; the numbers of the request are looked at only when it is odd."""
    names = request.joint_names or model.joints
    try:
        result = compute()
    except DynIdError:
        require_finite(given, names)
        raise
    parts = result if isinstance(result, tuple) else (result,)
    if not all(np.isfinite(part).all() for part in parts):
        require_finite(given, names)
        raise UsageError('the result is beyond all numbers: are the units of the request right?')
    return result


def _mark(response: Any, model: IdentifiedModel, states: dict[str, FloatArray]) -> None:
    """Say which joints are refused, and what of ``states`` (K, n) is outside of the training."""
    outside = model.trained.warnings(model.robot, states)
    response.message = '; '.join(filter(None, (caution(model), *outside, response.message)))


def _steps(effort: Any, q: FloatArray) -> FloatArray:
    """Return the effort of a rollout as (K, T, n). Raises UsageError for other lengths."""
    if not effort or len(effort) % q.size:
        raise UsageError(
            f'effort has {len(effort)} numbers, expected {q.size}*T: T steps of '
            f'{q.shape[0]} motions of {q.shape[1]} joints (position has {q.size} numbers)')
    if len(effort) > LARGEST_ROLLOUT * q.shape[1]:
        raise UsageError(f'effort asks for {len(effort) // q.shape[1]} states in one call, at '
                         f'most {LARGEST_ROLLOUT} are allowed: split the motions over several '
                         'calls')
    return np.frombuffer(effort).reshape(len(q), -1, q.shape[1])


def _motors(request: Any, model: IdentifiedModel, q: FloatArray) -> dict[str, FloatArray]:
    """Return motor position and velocity (K, n), which elastic models need and others refuse.

    Raises UsageError where they are missing, too many, or of another length.
    """
    elastic = ', '.join(model.elastic_joints)
    found = {}
    for name in ('motor_position', 'motor_velocity'):
        values = getattr(request, name)
        if values and not elastic:
            raise UsageError(f'{name} has {len(values)} numbers, but the joints of this model are '
                             'rigid: leave it empty')
        if elastic and not values:
            raise UsageError(f'{name} is empty, but {elastic} of this model are elastic: give '
                             f'{q.size} numbers as position, on the joint side; those of rigid '
                             'joints are not looked at')
        if elastic:
            found[name] = like(name, values, q)
    return found
