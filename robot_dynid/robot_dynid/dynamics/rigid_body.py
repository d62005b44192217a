"""Batched rigid-body dynamics of a RobotModel; the loops are in the kernels.

Positions are rad (m), efforts N m (N) on the joint side. Every function takes arrays (N, n) and
returns new arrays.

A wrench is a force f [N] and a torque t [N m] about the origin of a link's frame, in the axes of
that frame unless other axes are named. It does the work ``w . V`` on the link, so it acts on the
joints as ``J^T w``, and the drives have to supply

    torque = regressor @ parameters - J^T w.

Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, eq. 14; Lynch, Park, Modern Robotics, 2017,
section 8.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.regressor_columns import RegressorColumns, Signals
from robot_dynid.dynamics.rollout import FEASIBLE
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels import forward_dynamics as forward_kernels
from robot_dynid.kernels import inverse_dynamics as inverse_kernels
from robot_dynid.kernels import kinematics, newton_euler, single_state
from robot_dynid.kernels import rotors as rotor_kernels
from robot_dynid.kernels.forward_dynamics import UNSETTLED
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.kernels.regressor_gradient import rigid_pullback
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.threads import shared_out
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, contiguous


def require_solved(verdicts: FloatArray, q: FloatArray) -> None:
    """Raise ModelError unless all ``verdicts`` (K,) on accelerations at ``q`` (K, n) are positive.

    Verdicts are those of `rigid_body.ForwardDynamics`.
    """
    if verdicts.min(initial=1.0) > 0.0:
        return
    k = int(np.argmin(verdicts))
    state = f'state {k} (q = {np.round(q[k], 3).tolist()})'
    if verdicts[k] == UNSETTLED:
        raise ModelError(
            f'no acceleration solves the dynamics in {state}: friction grows with load so '
            'much that the joints self-lock; check fw, the friction per load, against the gears')
    raise ModelError(
        f'the identified mass matrix is not positive definite in {state}, which least squares '
        f'does not guarantee; {FEASIBLE}')


#: least number of states [1 us each] per thread
THREAD_STATES = 8 * LANES


def _states(robot: RobotModel, *arrays: ArrayLike) -> tuple[FloatArray, ...]:
    """Return contiguous float arrays (N, n); raises UsageError for any other shape."""
    states = tuple(contiguous(a) for a in arrays)
    shape = states[0].shape
    if len(shape) != 2 or shape[1] != robot.n or any(s.shape != shape for s in states):
        shapes = ', '.join(str(s.shape) for s in states)
        raise UsageError(f'states of {robot.name} must all be (N, {robot.n}), are {shapes}')
    return states


def _tree(robot: RobotModel) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return the robot's geometry, parents and gravity for the kernels."""
    return robot.geometry, np.array(robot.parents, dtype=np.int64), contiguous(robot.gravity)


def _parameters(robot: RobotModel, parameters: ArrayLike | None) -> FloatArray:
    chosen = robot.tree.nominal if parameters is None else parameters
    return contiguous(np.reshape(chosen, (robot.tree.n, -1)))


def inverse_dynamics(
    robot: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
    parameters: ArrayLike | None = None,
) -> FloatArray:
    """Return the rigid-body effort (N, n) of a motion (recursive Newton-Euler).

    ``parameters`` (n, 10) standard parameters, by default the nominal ones; with springs (n, 14),
    see `counterbalance`. Raises UsageError on wrong shapes.

    Source: Luh, Walker, Paul 1980; Featherstone 2008, section 5.3.
    """
    inputs = robot.motion(*_states(robot, q, qd, qdd))
    out = np.empty_like(inputs[0])
    newton_euler.inverse_dynamics(*_tree(robot.tree), _parameters(robot, parameters), inputs, out)
    return robot.projected(out)


def gravity_effort(
    robot: RobotModel, q: ArrayLike, parameters: ArrayLike | None = None
) -> FloatArray:
    """Return the effort (N, n) that holds the robot at rest at ``q`` (N, n)."""
    still = np.zeros(np.shape(q))
    return inverse_dynamics(robot, q, still, still, parameters)


def mass_matrix(
    robot: RobotModel, q: ArrayLike, parameters: ArrayLike | None = None,
    rotors: Rotors | None = None,
) -> FloatArray:
    """Return the joint-space inertia (N, n, n) kg m^2 (composite rigid bodies), ``rotors``
    included.

    Source: Featherstone 2008, section 6.2.
    """
    (given,) = _states(robot, q)
    (positions,), n = robot.motion(given), robot.tree.n
    out = np.zeros((len(positions), n, n))
    forward_kernels.mass_matrix(*_tree(robot.tree), _parameters(robot, parameters), positions, out)
    if robot.linkage is not None:
        out = robot.projected(robot.projected(out).transpose(0, 2, 1))
    return out if rotors is None else out + rotor_inertia(robot, rotors, given)


def rotor_effort(
    robot: RobotModel, rotors: Rotors, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the effort (K, N) of the rotors alone in float states (K, N), unchecked."""
    if not rotors.coupled:
        return np.asarray(qdd @ rotors.inertia, dtype=np.float64)
    out = np.empty(q.shape)
    inputs = (contiguous(q), contiguous(qd), contiguous(qdd))
    rotor_kernels.rotor_effort(_tree(robot), rotors.tables, inputs, out)
    return out


def rotor_inertia(robot: RobotModel, rotors: Rotors, q: FloatArray) -> FloatArray:
    """Return the inertia (K, N, N) kg m^2 of the rotors alone at float positions (K, N)."""
    out = np.empty((len(q), *rotors.inertia.shape))
    if rotors.coupled:
        rotor_kernels.rotor_inertia(_tree(robot), rotors.tables, contiguous(q), out)
    else:
        out[:] = rotors.inertia
    return out


def forward_dynamics(
    robot: RobotModel, states: tuple[ArrayLike, ArrayLike, ArrayLike],
    parameters: ArrayLike | None = None, rotors: Rotors | FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return accelerations (N, n) rad/s^2 and the least pivot (N,) of each mass matrix.

    ``states`` are q, qd and effort (N, n); ``rotors`` or their inertia (n, n) kg m^2, by default
    none. If the pivot is not positive, the mass matrix is not positive definite and the
    acceleration is meaningless: the caller decides what to do.
    """
    inputs = _states(robot, *states)
    return ForwardDynamics(robot, parameters, rotors)(*inputs)


class ForwardDynamics:
    """Accelerations of one robot, prepared for many calls.

    ``parameters`` and ``rotors`` as in `forward_dynamics`; of the N coordinates of the rotors,
    those beyond the joints move with their rotors only. ``friction``, by default none, acts on all
    of them; load-dependent friction uses the load under these accelerations.
    """

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None,
                 friction: AxisFriction | None = None) -> None:
        spinning = Rotors.of(np.zeros((robot.n, robot.n)) if rotors is None else rotors)
        dry = AxisFriction.none(len(spinning.inertia)) if friction is None else friction
        self._linked = None if robot.linkage is None else _Linked(robot, parameters, spinning, dry)
        self._constants = (
            _tree(robot.tree), (_parameters(robot, parameters), spinning.tables), dry.tables)

    def __call__(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations (K, N) and verdicts (K,) of float states (K, N), unchecked.

        A verdict is the least pivot of the mass matrix. If it is not positive, the mass matrix is
        not positive definite or, at `UNSETTLED`, load-dependent friction allows no acceleration;
        the returned acceleration is then meaningless.
        """
        if self._linked is not None:
            return self._linked.forward(q, qd, effort)
        out, verdicts = np.empty(q.shape), np.empty(len(q))
        kernel = forward_kernels if len(q) > single_state.FEW else single_state

        def compute(part: slice) -> None:
            kernel.forward_dynamics(
                *self._constants, (contiguous(q[part]), contiguous(qd[part]),
                                   contiguous(effort[part])), out[part], verdicts[part])

        shared_out(compute, len(q), LANES, THREAD_STATES)
        return out, verdicts


class InverseDynamics:
    """Efforts of one robot, prepared for many calls; arguments as of `ForwardDynamics`."""

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None,
                 friction: AxisFriction | None = None) -> None:
        spinning = Rotors.of(np.zeros((robot.n, robot.n)) if rotors is None else rotors)
        dry = AxisFriction.none(robot.n) if friction is None else friction
        self._linked = None if robot.linkage is None else _Linked(robot, parameters, spinning, dry)
        self._constants = (
            _tree(robot.tree), (_parameters(robot, parameters), spinning.tables), dry.tables)

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts (K, n) of float states (K, n), unchecked."""
        if self._linked is not None:
            return self._linked.inverse(q, qd, qdd)
        out = np.empty(q.shape)
        kernel = inverse_kernels if len(q) > single_state.FEW else single_state

        def compute(part: slice) -> None:
            kernel.inverse_dynamics(
                *self._constants, (contiguous(q[part]), contiguous(qd[part]),
                                   contiguous(qdd[part])), out[part])

        shared_out(compute, len(q), LANES, THREAD_STATES)
        return out


#: most iterations for accelerations under load-dependent friction, and the relative change at
#: which they end
PASSES, SETTLED = 100, 1e-12


class _Linked:
    """Inverse and forward dynamics of a robot with a linkage; arguments as in `ForwardDynamics`.

    They are those of its tree, projected; the kernels only solve for all joints of a tree.
    """

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None, rotors: Rotors,
                 friction: AxisFriction) -> None:
        self._robot, self._friction, self._rotors = robot, friction, rotors
        self._links = _parameters(robot, parameters)

    def inverse(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts (K, n) of float states (K, n)."""
        smooth = inverse_dynamics(self._robot, q, qd, qdd, self._links)
        return smooth + qdd @ self._rotors.inertia + self._friction_effort(q, qd, qdd)

    def _friction_effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the friction (K, n), under the load of the motion if it depends on load."""
        load = None
        if self._friction.needs_load:
            load = inverse_dynamics(self._robot, q, qd, qdd, self._friction.links
                                    ) @ self._friction.transmission.T
        return self._friction.torque(qd, load)

    def forward(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations and verdicts as `ForwardDynamics` does."""
        matrix = mass_matrix(self._robot, q, self._links, self._rotors)
        verdicts = np.asarray(np.linalg.eigvalsh(matrix)[:, 0], dtype=np.float64)
        safe = np.where((verdicts > 0.0)[:, None, None], matrix, np.eye(self._robot.n))
        still = np.zeros_like(q)
        smooth = effort - inverse_dynamics(self._robot, q, qd, still, self._links)
        acceleration = still
        for _ in range(PASSES if self._friction.needs_load else 1):
            previous = acceleration
            rest = smooth - self._friction_effort(q, qd, previous)
            acceleration = np.asarray(np.linalg.solve(safe, rest[:, :, None])[:, :, 0])
            settled = np.abs(acceleration - previous) \
                <= SETTLED * np.abs(acceleration).max(initial=1.0)
            if settled.all():
                break
        if self._friction.needs_load:
            verdicts = np.where(settled.all(axis=1), verdicts, np.minimum(verdicts, UNSETTLED))
        return acceleration, verdicts


def regressor(
    robot: RobotModel, motion: tuple[ArrayLike, ArrayLike, ArrayLike],
    columns: NDArray[np.int64] | None = None, out: FloatArray | None = None,
) -> FloatArray:
    """Return the rigid-body regressor Y (n, k, N): effort[s, i] = sum_c Y[i, c, s] p[c].

    ``motion`` is q, qd, qdd (N, n); ``columns`` selects standard parameters (indices into the
    flattened (n, 10) array, default all); ``out`` (n, k, N) is filled in place if given, and must
    be zero where a joint does not carry a link. Source: Atkeson, An, Hollerbach 1986, in base
    coordinates.
    """
    inputs = _states(robot, *motion)
    content = RegressorColumns.of_links(robot, _chosen(robot, columns))
    if out is None:
        out = np.zeros((robot.n, content.count, len(inputs[0])))
    content.fill_array(Signals.of(inputs), slice(0, len(inputs[0])), out)
    return out


def regressor_pullback(
    robot: RobotModel, motion: tuple[ArrayLike, ArrayLike, ArrayLike], weights: FloatArray,
    columns: NDArray[np.int64] | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the gradients (N, n) of sum(weights * regressor) in q, qd and qdd.

    ``weights`` (n, k, N), the other arguments as in `regressor`. Exact: reverse mode through the
    recursions, at a few times the cost of the regressor.
    """
    inputs = _states(robot, *motion)
    table = RegressorColumns.of_links(robot, _chosen(robot, columns)).links
    if robot.linkage is not None:
        weights = np.einsum('tr,rks->tks', robot.linkage.matrix, weights)
    moved = robot.motion(*inputs)
    gradients = tuple(np.zeros(moved[0].shape) for _ in range(3))
    rigid_pullback(*_tree(robot.tree), table, moved, (contiguous(weights), *gradients))
    first, second, third = (robot.projected(one) for one in gradients)
    return first, second, third


def _chosen(robot: RobotModel, columns: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the indices of the standard parameters, all by default."""
    return np.arange(10 * robot.tree.n) if columns is None else np.asarray(columns)


def stacked(columns: FloatArray) -> FloatArray:
    """Return a regressor (n, k, N) as a tall matrix (N n, k), sample by sample."""
    n, k, samples = columns.shape
    return np.ascontiguousarray(columns.transpose(2, 0, 1)).reshape(samples * n, k)


class Momentum:
    """Momentum p = M(q) qd and dL/dq = C(q, qd)^T qd - g(q), prepared for many short calls.

    The equation of motion is dp/dt = effort + dL/dq with the Lagrangian L = T - V, because dM/dt =
    C + C^T: neither acceleration nor Coriolis matrix is needed. ``parameters`` (n, 10) standard
    parameters, by default the nominal ones; ``rotors`` or their inertia (n, n) kg m^2, by default
    none. Source: De Luca, Mattone 2003; De Luca, Ferrajoli 2009 (C^T qd by a recursion).
    """

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None) -> None:
        none = np.zeros((robot.n, robot.n))
        self._tree = _tree(robot)
        self._links = (_parameters(robot, parameters),
                       Rotors.of(none if rotors is None else rotors).tables)

    def __call__(self, q: FloatArray, qd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p (N, n) [kg m^2 rad/s] and dL/dq (N, n) [N m] of float states, unchecked."""
        p, rate = np.empty(q.shape), np.empty(q.shape)
        single_state.momentum(
            self._tree, self._links, (contiguous(q), contiguous(qd)), (p, rate))
        return p, rate


class LinkPoses(NamedTuple):
    """Frames of the moving links in the base frame.

    ``rotations`` (N, n, 3, 3) from the link frame to the base frame, ``origins`` (N, n, 3) m.
    """

    rotations: FloatArray
    origins: FloatArray


def link_poses(robot: RobotModel, q: ArrayLike) -> LinkPoses:
    """Return the poses of all links at positions ``q`` (N, n) rad (m).

    Raises UsageError if ``q`` has another shape.
    """
    (positions,) = robot.motion(*_states(robot, q))
    count, n = positions.shape
    poses = LinkPoses(np.empty((count, n, 3, 3)), np.empty((count, n, 3)))
    parents = np.array(robot.tree.parents, dtype=np.int64)
    kinematics.link_poses(parents, robot.tree.geometry, positions, *poses)
    return poses


def chain_points(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return base, joint origins and tip (N, k, 3) m of the longest chain at ``q`` (N, n).

    In the base frame. Raises UsageError if ``q`` has another shape.
    """
    poses, chain = link_poses(robot, q), list(robot.tree.longest_chain)
    base = np.zeros((len(poses.origins), 1, 3))
    tip = poses.origins[:, chain[-1]] + poses.rotations[:, chain[-1]] @ robot.tree.tip
    return np.concatenate([base, poses.origins[:, chain], tip[:, None]], axis=1)


def tip_positions(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return the tip positions (N, 3) m at ``q`` (N, n) rad (m), see `RobotModel.tip`."""
    return chain_points(robot, q)[:, -1]


#: separator of a link and the link whose axes its wrench is given in: ``<link>@<axes>``
IN_AXES = '@'


class ExternalWrench:
    """Wrenches on ``link`` of ``robot``: any moving link of its description, fixed frames
    included.

    ``axes`` is the link whose axes force and torque are given in, by default ``link``; the base
    link is allowed. The torque is about the origin of ``link`` in any case. Raises UsageError,
    with the links there are, for an unknown link or one that does not move.
    """

    def __init__(self, robot: RobotModel, link: str, axes: str = '') -> None:
        self._robot = robot
        self._body, self._place = placed(robot, link)
        self._frame = None if axes == robot.base_link else placed(robot, axes or link)

    @classmethod
    def at(cls, robot: RobotModel, place: str) -> ExternalWrench:
        """Return wrenches at a ``place``, ``<link>`` or ``<link>@<axes>``; raises UsageError."""
        link, _, axes = place.partition(IN_AXES)
        return cls(robot, link, axes)

    def __call__(self, q: FloatArray, wrench: FloatArray) -> FloatArray:
        """Return J^T w (K, n) [N m, N] at ``q`` (K, n) of wrenches (K, 6): WRENCH_COMPONENTS."""
        poses, robot = link_poses(self._robot, q), self._robot
        turn = np.eye(3)[None] if self._frame is None else (
            poses.rotations[:, self._frame[0]] @ self._frame[1][:3, :3])
        force, torque = ((turn @ part[:, :, None])[:, :, 0]
                         for part in (wrench[:, :3], wrench[:, 3:]))
        rotation, tree = poses.rotations[:, self._body], robot.tree
        point = poses.origins[:, self._body] + rotation @ self._place[:3, 3]
        effort = np.zeros((len(q), tree.n))
        for j in np.flatnonzero(tree.carried[:, self._body]):
            axis = poses.rotations[:, j] @ tree.axes[j]
            moment = force if tree.types[j] == PRISMATIC else (
                torque + np.cross(point - poses.origins[:, j], force))
            effort[:, j] = np.einsum('ka,ka->k', axis, moment)
        return robot.projected(effort)


@one_blas_thread()
def external_torque(
    robot: RobotModel, link: str, q: ArrayLike, wrench: ArrayLike, axes: str = ''
) -> FloatArray:
    """Return the joint torque J^T w (K, n) or (n,) [N m, N] of a wrench on ``link``.

    ``q`` (K, n) or (n,) rad (m); ``wrench`` (K, 6) or (6,): force [N] and torque [N m] that the
    surroundings exert on the link, about the origin of its frame, in its axes or those of the link
    ``axes``. Raises UsageError for an unknown link, wrong shapes or non-finite numbers. Source:
    see the module.
    """
    states, wrenches = (np.array(a, dtype=np.float64, ndmin=2) for a in (q, wrench))
    if states.shape[1] != robot.n or wrenches.shape != (len(states), len(WRENCH_COMPONENTS)):
        raise UsageError(f'expected positions (K, {robot.n}) and wrenches (K, 6), got '
                         f'{states.shape} and {wrenches.shape}')
    if not (np.isfinite(states).all() and np.isfinite(wrenches).all()):
        raise UsageError('positions and wrenches must be finite')
    torque = ExternalWrench(robot, link, axes)(states, wrenches)
    return torque[0] if np.ndim(q) == 1 else torque


def placed(robot: RobotModel, link: str) -> tuple[int, FloatArray]:
    """Return the index of the joint that moves ``link``, and the link frame (4, 4) in its body."""
    for one in robot.tree.links:
        if one.name == link:
            return one.body, one.placement
    moved = ', '.join(one.name for one in robot.tree.links)
    why = 'does not move' if link == robot.base_link else 'is no moving link'
    raise UsageError(f'{link!r} {why}: choose one of {moved}')
