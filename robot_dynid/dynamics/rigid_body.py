"""Batched rigid-body dynamics of a RobotModel; the loops are in the kernels.

Positions are rad (m), efforts N m (N) on the joint side. Every function takes arrays (N, n) and
returns new arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robot_dynid.dynamics.regressor_columns import RegressorColumns, Signals
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels import forward_dynamics as forward_kernels
from robot_dynid.kernels import inverse_dynamics as inverse_kernels
from robot_dynid.kernels import newton_euler, single_state
from robot_dynid.kernels import rotors as rotor_kernels
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.kernels.regressor_gradient import rigid_pullback
from robot_dynid.robot.model import RobotModel
from robot_dynid.threads import shared_out
from robot_dynid.types import FloatArray

#: least states [1 us each] that are worth a thread
LEAST_STATES = 8 * LANES


def _constant(array: ArrayLike) -> FloatArray:
    """Return a contiguous read-only view: kernels are compiled once more for writable arrays."""
    view = np.require(array, np.float64, ['C', 'A']).view()
    view.flags.writeable = False
    return view


def _read_only(array: FloatArray) -> FloatArray:
    """Return ``values`` read-only; fast for float arrays."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        return _constant(array)
    view = array.view()
    view.flags.writeable = False
    return view


def _states(robot: RobotModel, *arrays: ArrayLike) -> tuple[FloatArray, ...]:
    """Return contiguous float arrays (N, n); raises UsageError for any other shape."""
    states = tuple(_constant(a) for a in arrays)
    shape = states[0].shape
    if len(shape) != 2 or shape[1] != robot.n or any(s.shape != shape for s in states):
        shapes = ', '.join(str(s.shape) for s in states)
        raise UsageError(f'states of {robot.name} must all be (N, {robot.n}), found {shapes}')
    return states


def _tree(robot: RobotModel) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return the robot's geometry, parents and gravity for the kernels."""
    return robot.geometry, np.array(robot.parents, dtype=np.int64), _constant(robot.gravity)


def _parameters(robot: RobotModel, parameters: ArrayLike | None) -> FloatArray:
    chosen = robot.nominal if parameters is None else parameters
    return _constant(np.reshape(chosen, (robot.n, -1)))


def inverse_dynamics(
    robot: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike,
    parameters: ArrayLike | None = None,
) -> FloatArray:
    """Return the rigid-body effort (N, n) of the motion (recursive Newton-Euler).

    ``parameters`` (n, 10) standard parameters, by default the nominal ones; those of springs are
    behind them, (n, 14), see `counterbalance`. Raises UsageError on wrong shapes.
    Source: Luh, Walker, Paul 1980; Featherstone 2008, section 5.3.
    """
    inputs = _states(robot, q, qd, qdd)
    out = np.empty_like(inputs[0])
    newton_euler.inverse_dynamics(*_tree(robot), _parameters(robot, parameters), inputs, out)
    return out


def gravity_effort(
    robot: RobotModel, q: ArrayLike, parameters: ArrayLike | None = None
) -> FloatArray:
    """Return the effort (N, n) that holds the robot at rest in ``q``."""
    still = np.zeros(np.shape(q))
    return inverse_dynamics(robot, q, still, still, parameters)


def mass_matrix(
    robot: RobotModel, q: ArrayLike, parameters: ArrayLike | None = None,
    rotors: Rotors | None = None,
) -> FloatArray:
    """Return the joint-space inertia (N, n, n) kg m^2 (composite rigid bodies), ``rotors`` added.

    Source: Featherstone 2008, section 6.2.
    """
    (positions,) = _states(robot, q)
    out = np.zeros((len(positions), robot.n, robot.n))
    forward_kernels.mass_matrix(*_tree(robot), _parameters(robot, parameters), positions, out)
    return out if rotors is None else out + rotor_inertia(robot, rotors, positions)


def rotor_effort(
    robot: RobotModel, rotors: Rotors, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the effort (K, N) of the rotors alone in float states (K, N), unchecked."""
    if not rotors.coupled:
        return np.asarray(qdd @ rotors.inertia, dtype=np.float64)
    out = np.empty(q.shape)
    inputs = (_read_only(q), _read_only(qd), _read_only(qdd))
    rotor_kernels.rotor_effort(_tree(robot), rotors.tables, inputs, out)
    return out


def rotor_inertia(robot: RobotModel, rotors: Rotors, q: FloatArray) -> FloatArray:
    """Return the inertia (K, N, N) kg m^2 of the rotors alone at float positions (K, N)."""
    out = np.empty((len(q), *rotors.inertia.shape))
    if rotors.coupled:
        rotor_kernels.rotor_inertia(_tree(robot), rotors.tables, _read_only(q), out)
    else:
        out[:] = rotors.inertia
    return out


def forward_dynamics(
    robot: RobotModel, states: tuple[ArrayLike, ArrayLike, ArrayLike],
    parameters: ArrayLike | None = None, rotors: Rotors | FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return accelerations (N, n) rad/s^2 and the least pivot (N,) of each mass matrix.

    ``states`` are q, qd and effort (N, n); ``rotors`` or their inertia (n, n) kg m^2, by default
    none. Where the pivot is not positive the mass matrix is not definite and the acceleration
    meaningless: the caller decides what to say.
    """
    inputs = _states(robot, *states)
    return ForwardDynamics(robot, parameters, rotors)(*inputs)


class ForwardDynamics:
    """Accelerations of one robot, prepared for many calls.

    ``parameters`` and ``rotors`` as of `forward_dynamics`; of the N coordinates that rotors have
    those beyond the joints move by their rotors alone. ``friction``, by default none, acts on all
    of them; where it grows with load, that is the load under these accelerations.
    """

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None,
                 friction: AxisFriction | None = None) -> None:
        own = Rotors.of(np.zeros((robot.n, robot.n)) if rotors is None else rotors)
        rough = AxisFriction.none(len(own.inertia)) if friction is None else friction
        self._constants = (
            _tree(robot), (_parameters(robot, parameters), own.tables), rough.tables)

    def __call__(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations (K, N) and verdicts (K,) of float states (K, N), unchecked.

        A verdict is the least pivot of the mass matrix. Where it is not positive that is not
        definite, or, at `UNSETTLED`, friction under load leaves no acceleration: what is returned
        means nothing there.
        """
        out, verdicts = np.empty(q.shape), np.empty(len(q))
        kernel = forward_kernels if len(q) > single_state.FEW else single_state

        def compute(part: slice) -> None:
            kernel.forward_dynamics(
                *self._constants, (_read_only(q[part]), _read_only(qd[part]),
                                   _read_only(effort[part])), out[part], verdicts[part])

        shared_out(compute, len(q), LANES, LEAST_STATES)
        return out, verdicts


class InverseDynamics:
    """Efforts of one robot, prepared for many calls; arguments as of `ForwardDynamics`."""

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None,
                 friction: AxisFriction | None = None) -> None:
        own = Rotors.of(np.zeros((robot.n, robot.n)) if rotors is None else rotors)
        rough = AxisFriction.none(robot.n) if friction is None else friction
        self._constants = (
            _tree(robot), (_parameters(robot, parameters), own.tables), rough.tables)

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts (K, n) of float states (K, n), unchecked."""
        out = np.empty(q.shape)
        kernel = inverse_kernels if len(q) > single_state.FEW else single_state

        def compute(part: slice) -> None:
            kernel.inverse_dynamics(
                *self._constants, (_read_only(q[part]), _read_only(qd[part]),
                                   _read_only(qdd[part])), out[part])

        shared_out(compute, len(q), LANES, LEAST_STATES)
        return out


def regressor(
    robot: RobotModel, motion: tuple[ArrayLike, ArrayLike, ArrayLike],
    columns: NDArray[np.int64] | None = None, out: FloatArray | None = None,
) -> FloatArray:
    """Return the rigid-body regressor Y (n, k, N): effort[s, i] = sum_c Y[i, c, s] p[c].

    ``motion`` is q, qd, qdd (N, n); ``columns`` chooses standard parameters (indices into the
    flattened (n, 10) array, default all); ``out`` (n, k, N) is filled in place when given, and
    must be zero where a joint does not carry a link.
    Source: Atkeson, An, Hollerbach 1986, in base coordinates.
    """
    inputs = _states(robot, *motion)
    known = RegressorColumns.of_links(robot, _chosen(robot, columns))
    if out is None:
        out = np.zeros((robot.n, known.count, len(inputs[0])))
    known.fill_array(Signals.of(inputs), slice(0, len(inputs[0])), out)
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
    gradients = (np.zeros(inputs[0].shape), np.zeros(inputs[0].shape), np.zeros(inputs[0].shape))
    rigid_pullback(*_tree(robot), table, inputs, (_constant(weights), *gradients))
    return gradients


def _chosen(robot: RobotModel, columns: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the indices of standard parameters, by default of all."""
    return np.arange(10 * robot.n) if columns is None else np.asarray(columns)


def stacked(columns: FloatArray) -> FloatArray:
    """Return a regressor (n, k, N) as the textbook's tall matrix (N n, k), sample by sample."""
    n, k, samples = columns.shape
    return np.ascontiguousarray(columns.transpose(2, 0, 1)).reshape(samples * n, k)
