"""States that users give, checked, and what a model makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.rollout import Rollout
from robot_dynid.errors import UsageError
from robot_dynid.identified.caution import warn
from robot_dynid.types import FloatArray, Progress, Samples

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel



def checked_states(
    model: IdentifiedModel, arrays: Mapping[str, ArrayLike]
) -> tuple[list[FloatArray], bool]:
    """Return the named arrays as (K, n) and whether they were single states (n,).

    Warns when ``model`` has refused joints. Raises UsageError on wrong shapes or numbers that are
    not finite, by the arrays' names.
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


def effort_by_parameters(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the derivatives (K, n, b) of `IdentifiedModel.inverse` by the base parameters.

    The regressor of float states (K, n), in steady sliding; motors move with their joints. Behind
    a torque sensor the row of a joint lacks what its motor takes.
    """
    robot, drive = model.robot, model.robot.drive
    place = [*range(robot.n), *drive.elastic]
    samples = Samples(
        model.joints, np.arange(float(len(q))), q[:, place], qd[:, place], qdd[:, place],
        starts=tuple(range(len(q))))
    rows = model.torque_model.columns(samples)
    found = rows[:robot.n].copy()
    for joint in drive.torque_sensors:
        found[joint] += rows[robot.n + drive.elastic.index(joint)]
    return np.ascontiguousarray(found.transpose(2, 0, 1))


@one_blas_thread()
def rollout(
    model: IdentifiedModel, states: Sequence[FloatArray], effort: FloatArray, dt: float,
    progress: Progress | None = None,
) -> Rollout:
    """Return the motions from ``states`` under efforts (K, T, n) [N m] held for ``dt`` [s].

    ``states`` are position and velocity (K, n), with elastic joints also those of the motors.
    Friction is that of steady sliding, under the load without acceleration where it grows with
    load. ``progress`` is called after every piece of the work; an error of its ends the work.
    Raises UsageError on wrong shapes.
    """
    if effort.ndim != 3 or effort.shape[::2] != states[0].shape:
        raise UsageError(f'rollout needs states (K, n) and efforts (K, T, n); found '
                         f'{states[0].shape}, {effort.shape}')
    if not 0.0 < dt < np.inf:
        raise UsageError(f'the step of a rollout must be positive seconds, is {dt}')
    if len(states) == 3:
        raise UsageError('rollout needs the position and the velocity of motors, or none of both')
    if len(states) > 2:
        return model.elastic_motion.rollout(states, effort, dt, progress)
    q0, qd0 = states
    return model.integrator(q0, qd0, effort, dt, progress)
