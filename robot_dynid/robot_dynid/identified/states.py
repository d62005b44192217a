"""Check states given by users, and compute efforts, friction and motion of a model from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.elastic import ElasticDynamics, coordinates
from robot_dynid.dynamics.rigid_body import require_solved
from robot_dynid.dynamics.rollout import Integrator, Rollout
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.identified.caution import warn
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Progress, Samples

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


class FrictionTorque:
    """Friction of all ``axes`` of a robot, in steady sliding."""

    def __init__(self, robot: RobotModel, axes: AxisFriction) -> None:
        self._robot, self._axes = robot, axes

    def __call__(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None,
        external: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (K, n) [N m, N] on the joints of states (K, n) [rad, m and per s].

        The acceleration (default zero) and the ``external`` torque (K, n) [N m, N], which the
        gears do not transmit, matter only if friction depends on the load.
        """
        load = None
        if self.loaded:
            borne = rigid_body.inverse_dynamics(
                self._robot, q, qd, np.zeros_like(q) if qdd is None else qdd, self._axes.links)
            load = (borne if external is None else borne - external) @ self._axes.transmission.T
        return self._axes.torque(qd, load)

    @property
    def loaded(self) -> bool:
        """True if friction depends on the load."""
        return self._axes.needs_load

    def relief(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, external: FloatArray
    ) -> FloatArray:
        """Return the reduction (K, n) [N m, N] of friction by ``external`` torque (K, n).

        States as above; zero if friction does not depend on the load.
        """
        if not self.loaded:
            return np.zeros_like(q)
        return np.asarray(self(q, qd, qdd) - self(q, qd, qdd, external))


#: s for which an effort may be held in a rollout: its internal steps are counted beforehand
LONGEST_STEP = 60.0
#: largest number of iterations, and relative change of the acceleration at convergence
STATE_PASSES, ACCELERATION_SETTLED = 100, 1e-12

#: gives accelerations (K, n) of position, velocity, effort, (K, n) each
Accelerations = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def pushed(
    accelerations: Accelerations, friction: FrictionTorque, states: tuple[FloatArray, ...],
    external: FloatArray,
) -> FloatArray:
    """Return the acceleration (K, n) of ``states`` (q, qd, effort; (K, n) each) under torque.

    ``external`` (K, n) [N m, N] acts on the links and not on the gears, so load-dependent friction
    changes with the unknown acceleration. Raises ModelError if the iteration does not converge, or
    as ``accelerations``.
    """
    q, qd, effort = states
    estimate = accelerations(q, qd, effort + external)
    if not friction.loaded:
        return estimate
    for _ in range(STATE_PASSES):
        previous = estimate
        estimate = accelerations(
            q, qd, effort + external + friction.relief(q, qd, previous, external))
        change = np.abs(estimate - previous).max(initial=0.0)
        if change <= ACCELERATION_SETTLED * np.abs(estimate).max(initial=1.0):
            return estimate
    raise ModelError('the load-dependent friction of this model is too large to solve for the '
                     'acceleration; identify it without load dependence')


class DriveMotion(NamedTuple):
    """Motion of the motors, each (T, n): rad and per s on the joint side; ``effort`` N m."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray


class ElasticMotion:
    """Forward dynamics of the elastic ``model``, prepared for many calls.

    Raises ModelError if an inertia or a stiffness is not positive.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._n = model.robot.n
        self.gears, links = model.gears, model.links
        friction = model.axis_friction.on(
            self.gears.motors(self._n), self._n + len(self.gears.joints))
        self.dynamics = ElasticDynamics(
            links.robot, links.parameters, links.rotors, self.gears, friction)
        self._integrator = Integrator(links.robot, links.parameters, self.dynamics.rotors,
                                      friction, self.gears)

    def accelerations(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray, theta: FloatArray,
        theta_d: FloatArray, external: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations of links and motors, each (K, n), of float states (K, n).

        ``external`` (K, n) [N m, N] is external torque on the links. Raises ModelError if the mass
        matrix is not positive definite.
        """
        x, v = coordinates(q, theta, self.gears), coordinates(qd, theta_d, self.gears)
        result, verdicts = self.dynamics(x, v, effort, external)
        require_solved(verdicts, q)
        return self.dynamics.per_joint(result)

    def inverse(
        self, motion: FloatArray, step: float, external: FloatArray | None = None
    ) -> DriveMotion:
        """Return motors and efforts for links in ``motion`` (3, T, n), ``step`` [s] apart.

        ``external`` (T, n) [N m, N] is external torque on the links.
        """
        motors, effort = self.dynamics.inverse(motion, step, external)
        every = motion.copy()
        every[:, :, list(self.gears.joints)] = motors
        return DriveMotion(every[0], every[1], every[2], effort)

    def rollout(
        self, start: Sequence[FloatArray], effort: FloatArray, dt: float,
        progress: Progress | None = None,
    ) -> Rollout:
        """Return the motions from ``start`` (q, qd, motor position, motor velocity; each (K, n)).

        ``effort`` (K, T, n) is held for ``dt`` [s] each; ``progress`` as of `Integrator`.
        """
        q, qd, theta, theta_d = start
        x, v = coordinates(q, theta, self.gears), coordinates(qd, theta_d, self.gears)
        drives = np.zeros((*effort.shape[:2], x.shape[1]))
        drives[:, :, list(self.gears.motors(self._n))] = effort
        return self._integrator(x, v, drives, dt, progress).of_joints(self.gears.joints)


def checked_states(
    model: IdentifiedModel, arrays: Mapping[str, ArrayLike]
) -> tuple[list[FloatArray], bool]:
    """Return the named arrays as (K, n), and True if they were single states (n,).

    Warns if ``model`` has refused joints. Raises UsageError, by the arrays' names, on wrong shapes
    or numbers that are not finite.
    """
    warn(model)
    rows = [np.ascontiguousarray(a, dtype=np.float64) for a in arrays.values()]
    single, n = rows[0].ndim == 1, len(model.joints)
    if single:
        rows = [row[None] if row.ndim == 1 else row for row in rows]
    shape = rows[0].shape
    for name, row in zip(arrays, rows):
        if row.shape != shape or row.ndim != 2 or shape[1] != n:
            raise UsageError(f'{name} has shape {np.shape(arrays[name])}; expected ({n},) or '
                             f'(K, {n}), the same for all arguments')
        if not np.isfinite(row).all():
            k, j = np.argwhere(~np.isfinite(row))[0]
            raise UsageError(f'{name} of joint {model.joints[j]} in state {k} is {row[k, j]}')
    return rows, single


def holding_torque(model: IdentifiedModel) -> FloatArray:
    """Return the friction (n,) [N m] that may hold each joint at rest."""
    friction = model.structure.friction_of(model.torque_model.robot.rigid)
    values = np.abs([model.standard[name] for name in friction.names])
    return np.asarray(np.atleast_2d(friction.holding) @ values)


def effort_by_parameters(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the derivatives (K, n, b) of `IdentifiedModel.inverse` by the base parameters.

    The regressor of float states (K, n), in steady sliding; motors move with their joints. With a
    torque sensor the row of a joint excludes its motor.
    """
    robot, drive = model.robot, model.robot.drive
    place = [*range(robot.n), *drive.elastic]
    samples = Samples(
        model.joints, np.arange(float(len(q))), q[:, place], qd[:, place], qdd[:, place],
        starts=tuple(range(len(q))))
    rows = model.torque_model.columns(samples)
    joint_rows = rows[:robot.n].copy()
    for joint in drive.torque_sensors:
        joint_rows[joint] += rows[robot.n + drive.elastic.index(joint)]
    return np.ascontiguousarray(joint_rows.transpose(2, 0, 1))


@one_blas_thread()
def rollout(
    model: IdentifiedModel, states: Sequence[FloatArray], effort: FloatArray, dt: float,
    progress: Progress | None = None,
) -> Rollout:
    """Return the motions from ``states`` under efforts (K, T, n) [N m] held for ``dt`` [s].

    ``states`` are position and velocity (K, n), for elastic joints also those of the motors.
    Friction is that of steady sliding, load-dependent friction that of the load without
    acceleration. ``progress`` is called after every piece of the work; its errors end the work.
    Raises UsageError on wrong shapes.
    """
    if effort.ndim != 3 or effort.shape[::2] != states[0].shape:
        raise UsageError(f'rollout needs states (K, n) and efforts (K, T, n); found '
                         f'{states[0].shape}, {effort.shape}')
    if not 0.0 < dt <= LONGEST_STEP:
        raise UsageError('the step of a rollout must be above zero and at most '
                         f'{LONGEST_STEP:g} s, is {dt:g} s')
    if len(states) == 3:
        raise UsageError('rollout needs position and velocity of motors, or neither')
    if len(states) > 2:
        return model.elastic_motion.rollout(states, effort, dt, progress)
    q0, qd0 = states
    return model.integrator(q0, qd0, effort, dt, progress)
