"""Motion of the identified model under given efforts: many trajectories at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.rollout import Rollout
from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray, Progress

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


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
