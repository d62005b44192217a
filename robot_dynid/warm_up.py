"""Compile every kernel once so that no node or command pays for it while it runs."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.derivatives import Derivatives
from robot_dynid.dynamics.gears import Gears, GearStates
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import Momentum, link_poses
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.dynamics.rotors import Links, Rotors
from robot_dynid.effects.slow_changes import (
    Adaptation,
    Following,
    Leftover,
    SlowCoefficients,
    SlowTables,
    Warming,
)
from robot_dynid.estimation.information import Accumulator, merged
from robot_dynid.files import open_lock
from robot_dynid.friction import AxisFriction, AxisMotion, Coulomb
from robot_dynid.friction.terms import table_of
from robot_dynid.kernels import (
    adaptation,
    derivatives,
    forward_dynamics,
    friction,
    gears,
    inverse_dynamics,
    kinematics,
    low_pass,
    monitor,
    newton_euler,
    regressor,
    regressor_gradient,
    rollout,
    rotors,
    shooting,
    single_state,
    spline,
    triangle,
)
from robot_dynid.kernels.compilation import (
    compilation_heard,
    ready_signatures,
    storage_folder,
    storage_problem,
)
from robot_dynid.monitoring.observer import (
    ContactLevels,
    Follower,
)
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import frozen, interpolated

#: every kernel, and for how many signatures `warm_up` calls it
KERNELS: dict[Any, int] = {
    adaptation.follow_coefficients: 1, adaptation.follow_warmth: 1,
    derivatives.inverse_derivatives: 1, derivatives.solved_derivatives: 1,
    forward_dynamics.forward_dynamics: 1, forward_dynamics.mass_matrix: 1,
    friction.fill_columns: 1, friction.fill_sliding: 1, friction.sliding_torque: 1,
    gears.bent_along: 1, gears.hysteresis_along: 1, inverse_dynamics.inverse_dynamics: 1,
    kinematics.link_poses: 1, low_pass.zero_phase: 1, monitor.follow: 1,
    newton_euler.inverse_dynamics: 1, regressor.fill_regressor: 1,
    regressor_gradient.rigid_pullback: 1, rollout.rollout: 2, rotors.rotor_effort: 1,
    rotors.rotor_inertia: 1, shooting.solve_stage: 1, shooting.stage_gradient: 1,
    single_state.forward_dynamics: 1, single_state.inverse_dynamics: 1,
    single_state.momentum: 1, single_state.rollout: 2, spline.cubic_spline: 1,
    triangle.add_equations: 1, triangle.add_rows: 1, triangle.solve_chosen: 1,
}
#: argument with which compiled code that is there stays; nodes and the robot come first then
MISSING, NICENESS = '--missing', 5


def warm_up() -> None:
    """Call each kernel on a robot of two joints; the compiled code is cached on disk."""
    body = parameters_from_com(1.0, [0.0, 0.0, 0.1], np.eye(3))
    robot = RobotModel(
        name='warm_up', joints=('a', 'b'), types=np.zeros(2, np.int8), parents=np.array([-1, 0]),
        rotations=frozen([np.eye(3)] * 2), translations=frozen(np.zeros((2, 3))),
        axes=frozen([[0.0, 1.0, 0.0]] * 2), bodies=('c', 'd'), nominal=frozen([body] * 2),
        limits=Limits.unknown(2),
    )
    state = np.zeros((3, 2))
    rigid_body.inverse_dynamics(robot, state, state, state)
    rigid_body.mass_matrix(robot, state)
    Momentum(robot)(state, state)
    spinning = Rotors(np.eye(2), np.zeros(1, np.int64), np.ones((1, 3)), np.ones((1, 2)))
    rigid_body.rotor_effort(robot, spinning, state, state, state)
    rigid_body.rotor_inertia(robot, spinning, state)
    rigid_body.regressor(robot, (state, state, state))
    rigid_body.regressor_pullback(robot, (state, state, state), np.zeros((2, 20, 3)))
    law, one = Coulomb(), np.zeros(3)
    law.columns(AxisMotion(one, one, one))
    square = np.zeros((3, 3))
    friction.fill_sliding(table_of(law.table), square, square, square.copy())
    dry = AxisFriction.of(np.eye(2), (law, law), np.ones((2, 3)))
    dry.torque(state)
    single = np.ones(1)
    one_gear = Gears((1,), single, single, single, single,
                     states=np.array([[0.0, friction.STOP, 1.0, 1.0]]))
    rigid = Integrator(robot, robot.nominal, np.zeros((2, 2)), dry)
    elastic = Integrator(robot, robot.nominal, np.eye(3), AxisFriction.of(
        np.eye(2, 3), (law, law), np.ones((2, 3))), one_gear)
    Derivatives(Mechanism(robot, robot.nominal, spinning, dry)).forward(state, state, state)
    shoot_no_interval()
    for count in (single_state.FEW, single_state.FEW + 1):
        some = np.zeros((count, 2))
        rigid_body.ForwardDynamics(robot, friction=dry)(some, some, some)
        rigid_body.InverseDynamics(robot, friction=dry)(some, some, some)
        rigid(some, some, np.zeros((count, 1, 2)), 1e-3)
        beside = np.zeros((count, 3))  # with the motor
        elastic(beside, beside, np.zeros((count, 1, 3)), 1e-3)
    one_gear.bent(np.zeros((3, 1)), 1e-3)
    GearStates(one_gear).along(np.zeros((1, 1)), np.ones(1, bool))
    levels = ContactLevels(np.ones(2), np.ones(2), np.ones(2))
    Follower(Links(robot, robot.nominal, spinning), dry, levels, (1.0, 1.0),
             SlowTables.of((None, None), 1.0, np.ones(2)))(
        np.zeros((1, 3, 2)), np.zeros(1))
    link_poses(robot, state)
    equations = Accumulator(('x',), np.ones((1, 1), bool), 3)
    equations.add(np.ones((1, 1, 3)), np.ones((3, 1)), np.ones((3, 1)))
    merged(2 * equations.information().total.factors)
    triangle.solve_chosen(np.ones((1, 2, 2)), np.zeros((1, 1), np.int64), np.ones((1, 1, 1)),
                          np.ones((1, 1)))
    still = Leftover(one, one, one, one, one, np.zeros((3, 1)))
    two, fall = np.ones(2), np.ones((2, 1))
    warming = Warming(two[:1], 1.0, two, fall, two, fall, two[:1])
    Following(Adaptation(warming, SlowCoefficients(0.1, 0.1, 0.1, 1.0, 1.0, 1.0)), 1)(still)
    grid = np.arange(5.0)
    interpolated(grid, zero_phase_low_pass(np.ones((5, 1)), 0.3, 1.0), grid)


def shoot_no_interval() -> None:
    """Call the stages of simulated intervals on none of them."""
    _, one, two, three, four = (np.zeros((0,) * dimensions) for dimensions in range(5))
    places = np.zeros(0, np.int64)
    table, motion = (two, places, two, one), (two, two, two)
    shooting.solve_stage(table, (three, two), motion, 1e-3, (*motion, three))
    shooting.stage_gradient(
        table, motion, (three, three, two, three), (three, four, one),
        (places, places, 0, places), (0, 1e-3), (four, four, four, four))


def uncompiled() -> tuple[str, ...]:
    """Return the names of the kernels that have to be compiled before they run on this machine.

    Nothing is compiled; empty also where the compiler does not tell.
    """
    return tuple(str(kernel.__name__) for kernel, needed in KERNELS.items()
                 if (found := ready_signatures(kernel)) is not None and found < needed)


@contextmanager
def compiling_alone() -> Iterator[None]:
    """Wait until no other process of this user compiles for the same folder: one does for all."""
    folder = Path(gettempdir()) / f'robot_dynid_{os.geteuid()}'
    place = sha256(str(storage_folder(next(iter(KERNELS)))).encode()).hexdigest()[:16]
    with open_lock(folder, f'kernels_{place}') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compile_kernels() -> None:
    """Compile the kernels that have to be; where they are stored, in one process for all."""
    if uncompiled() and storage_problem() is None:
        with compiling_alone():
            warm_up()
    else:
        warm_up()


def forget() -> None:
    """Remove the compiled code of the kernels, also what an older kernel left behind."""
    for folder in {storage_folder(kernel) for kernel in KERNELS} - {None}:
        for path in Path(str(folder)).glob('*.nb[ci]'):
            path.unlink()


def main() -> None:
    """Compile every kernel anew; with MISSING as argument, and quietly, those that have to be.

    Leaves with the exit code 1 where compiled code cannot be stored, and says why.
    """
    if uncompiled() and storage_problem() is not None:
        sys.exit(storage_problem())
    if sys.argv[1:] == [MISSING]:
        os.nice(NICENESS)
        compile_kernels()
        return
    forget()
    with compilation_heard(lambda name: sys.stderr.write(f'compiling {name}\n')):
        compile_kernels()


if __name__ == '__main__':
    main()
