"""FIGAROH's optimal trajectories (PyPI figaroh) on our robots, within our limits.

FIGAROH moves from rest to rest through waypoints, on polynomials of fifth order, and leaves the
waypoints to IPOPT: the objective is the condition number of its base regressor, gradients are
forward differences. It limits positions, velocities and efforts; accelerations are added here.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import DynIdError
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import QUINTIC_PEAKS, Motion, clipped
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench.timing import import_pinocchio

NAME = 'FIGAROH'
#: samples per second of its regressor and constraints (it finds waypoints among them by equality,
#: so both are binary fractions); iterations, its default
RATE, ITERATIONS = 16, 200
#: random guesses it may draw until one keeps the limits
GUESSES = 200


def available() -> bool:
    """Return whether FIGAROH and its solver can be imported."""
    try:
        import cyipopt  # noqa: F401
        import figaroh.optimal.base_optimal_trajectory  # noqa: F401
    except ImportError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class PiecewiseMotion:
    """Motion that FIGAROH returns: a piecewise curve of ``ndcurves`` from rest to rest."""

    joints: tuple[str, ...]
    duration: float
    curve: Any

    def sample(self, at: ArrayLike) -> Motion:
        """Return the motion at ``at`` (T,) s."""
        instants = np.clip(clipped(at, self.duration), self.curve.min(), self.curve.max())
        orders = [np.array([self.curve(t) for t in instants])]
        orders += [np.array([self.curve.derivate(t, k) for t in instants]) for k in (1, 2, 3)]
        return Motion(*orders)


@dataclass(frozen=True)
class Task:
    """Design task: ``free`` numbers per joint in ``duration`` s, done in ``budget`` s."""

    limits: MotionLimits
    duration: float
    free: int
    budget: float


def optimise(robot: RobotModel, task: Task, seed: int = 0) -> PiecewiseMotion:
    """Return FIGAROH's trajectory; raises DynIdError when it finds none that keeps the limits."""
    logging.getLogger('figaroh').setLevel(logging.CRITICAL)
    np.random.seed(seed)  # noqa: NPY002 - FIGAROH draws from the global generator
    search = _search(robot, task)
    search.initialize()
    found = search.solve(stack_reps=1)
    if not found['P_F']:
        raise DynIdError(f'{NAME} found no trajectory within the limits')
    return PiecewiseMotion(robot.joints, task.duration, search.CB.pc)


def _search(robot: RobotModel, task: Task) -> Any:
    """Return FIGAROH's search for this robot, set up without its configuration files."""
    from figaroh.optimal.base_optimal_trajectory import BaseOptimalTrajectory

    class Search(BaseOptimalTrajectory):
        """The framework with the problem that its examples use."""

        def __init__(self) -> None:
            self.robot = _figaroh_robot(robot, task.limits)
            self.model, self.active_joints = self.robot.model, list(robot.joints)
            self.logger = logging.getLogger('figaroh')
            self.identif_config = {
                'has_friction': True, 'has_joint_offset': True, 'has_actuator_inertia': False,
                'is_joint_torques': True, 'is_external_wrench': False, 'force_torque': None,
                'act_idxv': list(range(robot.n)), 'act_idxq': list(range(robot.n))}
            self.trajectory_config = {
                'n_wps': task.free + 1, 'freq': RATE, 't_s': task.duration / task.free,
                'soft_lim': 0.0, 'max_attempts': GUESSES, 'max_iterations': ITERATIONS,
                'segment_attempts': 1}
            self.results: dict[str, Any] = {
                'T_F': [], 'P_F': [], 'V_F': [], 'A_F': [], 'iteration_data': [],
                'final_regressor_shape': None}

        def _limit_waypoint_steps(self, wps: FloatArray) -> FloatArray:
            return _slow_enough(wps, task)

        def create_ipopt_problem(self, *arguments: Any) -> Any:
            return _problem(self, arguments, task)

    return Search()


def _problem(search: Any, arguments: tuple[Any, ...], task: Task) -> Any:
    from figaroh.optimal.base_optimal_trajectory import BaseTrajectoryIPOPTProblem

    class Problem(BaseTrajectoryIPOPTProblem):
        """FIGAROH's problem with limits of acceleration, and as many iterations as time allows."""

        def get_constraint_bounds(self) -> Any:
            low, high = super().get_constraint_bounds()
            most = np.tile(task.limits.acceleration, self.Ns).tolist()
            return [*low, *(-a for a in most)], [*high, *most]

        def constraints(self, X: FloatArray) -> FloatArray:
            kept = super().constraints(X)
            return np.concatenate([kept, self.opt_traj.CB.ddq_act.ravel()])

        def solve_with_waypoints(self, wps: FloatArray) -> Any:
            begin, x = time.perf_counter(), wps[:, 1:].T.ravel()
            self.gradient(x)
            self.jacobian(x)
            rounds = int(task.budget / (time.perf_counter() - begin))
            search.trajectory_config['max_iterations'] = max(1, min(ITERATIONS, rounds))
            return super().solve_with_waypoints(wps)

    return Problem(search, *arguments)


def _slow_enough(waypoints: FloatArray, task: Task) -> FloatArray:
    """Return waypoints (n, w) whose steps keep velocity and acceleration (quintic peaks)."""
    span = task.duration / task.free
    longest = 0.95 * np.minimum(task.limits.velocity * span / QUINTIC_PEAKS[0],
                                task.limits.acceleration * span**2 / QUINTIC_PEAKS[1])
    kept = np.array(waypoints, dtype=np.float64)
    for k in range(1, kept.shape[1]):
        step = np.clip(kept[:, k] - kept[:, k - 1], -longest, longest)
        kept[:, k] = kept[:, k - 1] + step
    return kept


def _figaroh_robot(robot: RobotModel, limits: MotionLimits) -> Any:
    """Return Pinocchio's wrapper of the arm with our limits, and no collision geometry."""
    pin = import_pinocchio()
    from pinocchio.robot_wrapper import RobotWrapper

    model = pin.buildModelFromUrdf(robot.source)
    if tuple(model.names)[1:] != robot.joints or model.nq != robot.n:
        raise DynIdError(f'{NAME} cannot take {robot.name}: its joints differ in Pinocchio')
    model.lowerPositionLimit, model.upperPositionLimit = limits.lower, limits.upper
    model.velocityLimit = limits.velocity
    model.effortLimit = np.where(np.isfinite(limits.effort), limits.effort, 1e19)
    model.gravity.linear = np.asarray(robot.gravity)
    wrapped = RobotWrapper(model, pin.GeometryModel(), pin.GeometryModel())
    wrapped.geom_model = wrapped.collision_model
    return wrapped
