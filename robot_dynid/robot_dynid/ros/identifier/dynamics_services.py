"""Dynamics of the served model, many states per call, answered in separate threads.

Rollouts, which may take seconds and have large answers, are separate from forward and inverse
dynamics, whose requests are bounded to a fraction of a second. The computations run without the
interpreter lock: they block neither each other nor the joint states.
"""

from __future__ import annotations

import array
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

from robot_dynid.document import subject
from robot_dynid.dynamics.rigid_body import ExternalWrench
from robot_dynid.errors import Cancelled, UsageError
from robot_dynid.identified.caution import (
    after_caution,
    require_every_joint,
    states_leave_out,
    stiff_leaves_out,
    without_refused,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.implausible import beyond_limits
from robot_dynid.ros.common.messages import doubles
from robot_dynid.ros.common.services import ServiceThread, Turns
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, Progress
from robot_dynid_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeRollout,
)

# Numbers per field of a call, mass matrices included: rclpy reads and writes a message without
# releasing the interpreter; a million block the other threads for some ten milliseconds.
MAX_NUMBERS = 1_000_000
ROLLOUT_TIME = 10.0  # s a rollout may take
HOPELESS = 3.0  # a rollout is cancelled at once if it would take so many times as long
ROLLOUTS_WAITING = 3  # rollouts that may wait for the one being computed


class DynamicsServices:
    """~/forward_dynamics, ~/inverse_dynamics and ~/rollout of ``node``.

    ``served`` returns the model to use or raises ModelError.
    """

    def __init__(self, node: Node, served: Callable[[], IdentifiedModel]) -> None:
        self._served = served
        self._turns, self._closing = Turns('rollouts', ROLLOUTS_WAITING), threading.Event()
        # one more thread than waiting and running rollouts: it refuses the rest
        self._threads = ServiceThread(node, 'dynamics'), ServiceThread(
            node, 'rollouts', ROLLOUTS_WAITING + 2, apart=True)
        dynamics, rollouts = self._threads
        dynamics.offer(ComputeForwardDynamics, 'forward_dynamics', self.forward)
        dynamics.offer(ComputeInverseDynamics, 'inverse_dynamics', self.inverse)
        rollouts.offer(ComputeRollout, 'rollout', self.rollout)
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop answering; a rollout under way ends at its next piece."""
        self._closing.set()
        for thread in self._threads:
            thread.close()

    def forward(self, request: Any, response: Any) -> None:
        """Answer ~/forward_dynamics; raises UsageError for an invalid request."""
        model = self._served_whole()
        n = len(model.joints)
        _require_few('position', request.position, n, n if request.mass_matrix else 1)
        asked = _Request(request, model, 'effort')
        q, qd, effort, *motors = asked.states
        external = _external(request, model, q)
        if motors:
            qdd, motor = model.elastic_motion.accelerations(
                q, qd, effort, motors[0], motors[1], external)
            _require_computed(motor)
            response.motor_acceleration = asked.field(motor)
        else:
            qdd = model.accelerations(q, qd, effort) if external is None else (
                model.forward(q, qd, effort, external))
        _require_computed(qdd)
        _mark(response, model, {'position': q, 'velocity': qd, 'effort': effort,
                                'acceleration': qdd},
              (states_leave_out if motors else stiff_leaves_out)(model))
        response.acceleration = asked.field(qdd)
        if request.mass_matrix:
            inertia, back = model.mass_matrix(q), asked.back
            response.mass_matrix = doubles(
                inertia if asked.same else inertia[:, back[:, None], back])

    def inverse(self, request: Any, response: Any) -> None:
        """Answer ~/inverse_dynamics, NaN for refused joints; raises UsageError as `forward`."""
        model = self._served()
        _require_few('position', request.position, len(model.joints))
        asked = _Request(request, model, 'acceleration')
        q, qd, qdd = asked.states
        external = _external(request, model, q)
        effort = model.inverse(q, qd, qdd, external=external)
        _require_computed(effort)
        _mark(response, model, {'position': q, 'velocity': qd, 'acceleration': qdd},
              stiff_leaves_out(model))
        response.effort = asked.field(without_refused(model, effort))

    def rollout(self, request: Any, response: Any) -> None:
        """Answer ~/rollout; they are computed one at a time.

        Raises UsageError for a request that is invalid or too large, or if too many wait.
        """
        model = self._served_whole()
        n = len(model.joints)
        _require_few('effort', request.effort, n)
        if not (np.isfinite(request.dt) and request.dt > 0.0):
            raise UsageError(f'dt is {request.dt}, it must be finite and above zero')
        asked = _Request(request, model, 'effort', _steps)
        q, qd, effort, *motors = asked.states
        with self._turns.turn():
            result = model.rollout(
                q, qd, effort, request.dt, (motors[0], motors[1]) if motors else None,
                self._budget(effort.shape, request.dt))
        for name in ('position', 'velocity', 'motor_position', 'motor_velocity'):
            if getattr(result, name) is not None:
                setattr(response, name, asked.field(getattr(result, name)))
        response.limit_step = result.limit_step.tolist()
        response.limit_joint = [model.joints[j] if j >= 0 else '' for j in result.limit_joint]
        response.stop_step = result.stop_step.tolist()
        response.message = '; '.join(result.warnings)
        _mark(response, model, {name: getattr(result, name).reshape(-1, n)
                                for name in ('position', 'velocity')},
              () if motors else stiff_leaves_out(model))

    def _served_whole(self) -> IdentifiedModel:
        """Return the served model; raises ModelError for one with refused joints."""
        model = self._served()
        require_every_joint(model)
        return model

    def _budget(self, shape: tuple[int, ...], dt: float) -> Progress:
        """Return the progress of a rollout that ends it when it takes too long.

        The cost differs by robot, friction and machine, so it is measured during the rollout: in
        the time of this thread, which other processes do not stretch.
        """
        begin, begun = time.monotonic(), time.thread_time()

        def check(stage: str, part: float) -> None:
            elapsed, worked = time.monotonic() - begin, time.thread_time() - begun
            if self._closing.is_set():
                raise Cancelled('the node is shutting down')
            if part < 1.0 and max(elapsed, worked / part / HOPELESS) > ROLLOUT_TIME:
                raise Cancelled(
                    f'{shape[1]} steps of {dt:g} s for {shape[0]} motions would take about '
                    f'{elapsed / part:.3g} s here (limit {ROLLOUT_TIME:g} s per call): request '
                    'fewer, and continue from the last state in another call')

        return check


class _Request:
    """A request, whose ``states`` are its fields in the order of the model.

    Position and velocity, then ``third``, read by ``read``, and motors if the model has them.
    ``back`` (n,) brings columns of the model into the order of the request, which may be the
    ``same``. Raises UsageError for fields that do not fit, numbers that are not finite, and for
    states beyond the limits unless the request allows them.
    """

    def __init__(self, request: Any, model: IdentifiedModel, third: str,
                 read: Callable[[str, Any, FloatArray], FloatArray] | None = None) -> None:
        names = tuple(request.joint_names) or model.joints
        to_model, self.back = joint_order(names, model.joints)
        q = matrix('position', request.position, len(model.joints))
        fields = {'position': q, 'velocity': like('velocity', request.velocity, q),
                  third: (read or like)(third, getattr(request, third), q)}
        motors = _motors(request, model, q) if third == 'effort' else {}
        elastic = np.isin(names, model.elastic_joints)
        require_finite(fields | {name: np.where(elastic, values, 0.0)
                                 for name, values in motors.items()}, names)
        fields |= motors
        self.same = names == model.joints
        self.states = [values if self.same else values[..., to_model]
                       for values in fields.values()]
        beyond = () if request.beyond_limits else beyond_limits(model.robot, *self.states[:2])
        if beyond:
            raise UsageError('; '.join((
                *beyond, 'set beyond_limits to compute them unchanged')))

    def field(self, values: FloatArray) -> array.array[float]:
        """Return values (..., n) of the model as a field, joints in the order of the request."""
        return doubles(values if self.same else values[..., self.back])


def _mark(response: Any, model: IdentifiedModel, states: dict[str, FloatArray],
          left_out: tuple[str, ...]) -> None:
    """Name refused joints, ``states`` (K, n) outside the training range, effects ``left_out``."""
    outside = model.trained.warnings(model.robot, states)
    response.message = after_caution(model, *outside, *left_out, response.message)


def _require_computed(values: FloatArray) -> None:
    """Raise UsageError for a result that is not finite."""
    if not np.isfinite(values).all():
        raise UsageError('the result overflows: check the units of the request')


def _require_few(name: str, field: Any, joints: int, factor: int = 1) -> None:
    """Raise UsageError when a field, times ``factor``, has more than MAX_NUMBERS."""
    if len(field) * factor > MAX_NUMBERS:
        raise UsageError(
            f'{name} has {len(field)} numbers; in one call at most '
            f'{MAX_NUMBERS // (joints * factor)} states of {joints} joints are computed'
            f'{" with mass matrices" if factor > 1 else ""}: split them over several calls')


def _steps(name: str, effort: Any, q: FloatArray) -> FloatArray:
    """Return the effort of a rollout as (K, T, n). Raises UsageError for other lengths."""
    if not effort or len(effort) % q.size:
        raise UsageError(
            f'{name} has {len(effort)} numbers, expected {q.size}*T: T steps of '
            f'{q.shape[0]} motions of {q.shape[1]} joints (position has {q.size} numbers)')
    return np.frombuffer(effort).reshape(len(q), -1, q.shape[1])


def _external(request: Any, model: IdentifiedModel, q: FloatArray) -> FloatArray | None:
    """Return the torque (K, n) [N m, N] of the wrenches of a request at ``q``, None without any.

    ``q`` (K, n) is in the order of the model. Raises UsageError for links that are unknown or
    named twice, a wrong number of components, and numbers that are not finite.
    """
    links, count = list(request.wrench_links), len(request.wrench)
    if not links:
        if count:
            raise UsageError(f'wrench has {count} numbers, but wrench_links is empty: name the '
                             'links that the wrenches act on')
        return None
    size = len(WRENCH_COMPONENTS)
    expected = len(q) * len(links) * size
    if count != expected:
        raise UsageError(f'wrench has {count} numbers, expected {expected}: {len(q)} states of '
                         f'{len(links)} links with {", ".join(WRENCH_COMPONENTS)}')
    if count > MAX_NUMBERS:
        raise UsageError(f'wrench has {count} numbers; in one call at most {MAX_NUMBERS} are '
                         'taken: split the states over several calls')
    wrench = np.frombuffer(request.wrench).reshape(len(q), len(links), size)
    bad = np.flatnonzero(~np.isfinite(wrench))
    if len(bad):
        state, link, part = np.unravel_index(bad[0], wrench.shape)
        raise UsageError(f'wrench[{bad[0]}] is {wrench.flat[bad[0]]}: {WRENCH_COMPONENTS[part]} '
                         f'on link {links[link]!r} of state {state}; every number must be finite')
    torque = np.zeros_like(q)
    for i, link in enumerate(links):
        if link in links[:i]:
            raise UsageError(f'wrench_links: link {link!r} is named {links.count(link)} times')
        try:
            acting = ExternalWrench.at(model.robot, link)
        except UsageError as error:
            raise UsageError(f'wrench_links: {error}') from None
        torque += acting(q, wrench[:, i])
    return torque


def _motors(request: Any, model: IdentifiedModel, q: FloatArray) -> dict[str, FloatArray]:
    """Return motor position and velocity (K, n), which elastic models need and others refuse.

    Raises UsageError if they are missing, superfluous, or of another length.
    """
    elastic = ', '.join(model.elastic_joints)
    fields = {}
    for name in ('motor_position', 'motor_velocity'):
        values = getattr(request, name)
        if values and not elastic:
            raise UsageError(f'{name} has {len(values)} numbers, but the joints of this model are '
                             'rigid: leave it empty')
        if elastic and not values:
            raise UsageError(f'{name} is empty, but {elastic} of this model are elastic: give '
                             f'{q.size} numbers as position, on the joint side; those of rigid '
                             'joints are ignored')
        if elastic:
            fields[name] = like(name, values, q)
    return fields


def joint_order(names: Sequence[str], joints: tuple[str, ...]
                ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two permutations (n,): ``model = request[:, first]``, ``request = model[:, second]``.

    Raises UsageError naming a joint that is unknown, missing or given twice.
    """
    given, names_of_robot = tuple(names), ', '.join(joints)
    for name in given:
        if name not in joints:
            raise UsageError(f'joint_names: no joint {name!r}; the model has {names_of_robot}')
        if given.count(name) > 1:
            raise UsageError(f'joint_names: joint {name!r} is named {given.count(name)} times')
    missing = [name for name in joints if name not in given]
    if missing:
        raise UsageError(f'joint_names: {subject(missing)} missing; name all of '
                         f'{names_of_robot}, or none for this order')
    return (np.array([given.index(name) for name in joints]),
            np.array([joints.index(name) for name in given]))


def matrix(name: str, numbers: array.array[float], joints: int) -> FloatArray:
    """Return a view (K, joints) of the first field of a request, which determines K.

    Raises UsageError if it is empty or K would not be a whole number.
    """
    if not numbers:
        raise UsageError(f'{name} is empty, expected K*{joints} numbers: K states of '
                         f'{joints} joints')
    if len(numbers) % joints:
        raise UsageError(f'{name} has {len(numbers)} numbers, expected a multiple of {joints}: '
                         f'K states of {joints} joints')
    return np.frombuffer(numbers).reshape(-1, joints)


def like(name: str, numbers: array.array[float], first: FloatArray) -> FloatArray:
    """Return a view of another field, which must be as long as ``first`` (K, n).

    Raises UsageError with both lengths otherwise.
    """
    if len(numbers) != first.size:
        raise UsageError(f'{name} has {len(numbers)} numbers, expected {first.size} as position: '
                         f'{first.shape[0]} states of {first.shape[1]} joints')
    return np.frombuffer(numbers).reshape(first.shape)


def require_finite(fields: Mapping[str, FloatArray], names: Sequence[str]) -> None:
    """Raise UsageError naming field, joint and place of the first number that is not finite.

    The arrays are (..., n), their last axis in the order of ``names``.
    """
    for field, values in fields.items():
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            row, column = divmod(int(bad[0]), values.shape[-1])
            raise UsageError(f'{field}[{bad[0]}] is {values.flat[bad[0]]}: joint '
                             f'{names[column]!r} of state {row}; every number must be finite')
