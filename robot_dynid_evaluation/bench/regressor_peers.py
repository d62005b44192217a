"""Peers of the columns of links: iDynTree (PyPI idyntree), and JAX.

JAX has them as the Jacobian of Newton-Euler in the parameters.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

IDYNTREE, JAX = 'iDynTree in a Python loop', 'JAX, jit of vmap of the Jacobian of Newton-Euler'
#: iDynTree's order of the ten parameters of a link, which has xz before yy, in ours
ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
#: samples per call of JAX: the fastest of 64, 256, 1024 and all
BATCH = 1024


def idyntree_loop(robot: RobotModel, samples: Samples) -> Callable[[], FloatArray]:
    """Return the loop; it returns the last regressor (n, 10 n), in our order.

    Raises MissingDependency where iDynTree is not installed.
    """
    try:
        from idyntree import bindings
    except ImportError:
        raise MissingDependency(f'{IDYNTREE}: pip install idyntree') from None
    loader = bindings.ModelLoader()
    loader.loadReducedModelFromFile(robot.source, bindings.StringVector(robot.joints))
    computations = bindings.KinDynComputations()
    computations.loadRobotModel(loader.model())
    model = computations.model()
    chosen = [10 * model.getLinkIndex(name) + k for name in robot.bodies for k in ORDER]
    found = bindings.MatrixDynSize(6 + robot.n, 10 * model.getNrOfLinks())
    still, gravity = np.zeros(6), np.asarray(robot.gravity)

    def loop() -> FloatArray:
        for q, qd, qdd in zip(samples.position, samples.velocity, samples.acceleration,
                              strict=True):
            computations.setRobotState(q, qd, gravity)
            computations.inverseDynamicsInertialParametersRegressor(still, qdd, found)
        return np.asarray(found.toNumPy()[6:, chosen])

    return loop


def jax_columns(robot: RobotModel, samples: Samples) -> Callable[[], FloatArray]:
    """Return the computation of all samples; it returns the first regressor (n, 10 n).

    On one thread, if nothing imported JAX before. Raises MissingDependency where it is not
    installed.
    """
    os.environ.setdefault(
        'XLA_FLAGS', '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
    try:
        import jax
    except ImportError:
        raise MissingDependency(f'{JAX}: pip install jax') from None
    jax.config.update('jax_enable_x64', True)
    jax.config.update('jax_platforms', 'cpu')
    effort = newton_euler(robot, jax.numpy)
    columns = jax.jit(jax.vmap(jax.jacrev(effort), in_axes=(None, 0, 0, 0)))
    whole = len(samples) // BATCH * BATCH
    motion = (samples.position, samples.velocity, samples.acceleration)
    zero = np.zeros((robot.n, 10))

    def compute() -> FloatArray:
        found = [columns(zero, *(signal[first:first + BATCH] for signal in motion))
                 for first in range(0, whole, BATCH)]
        if whole < len(samples):
            found.append(columns(zero, *(signal[whole:] for signal in motion)))
        for part in found:
            part.block_until_ready()
        return np.asarray(found[0][0]).reshape(robot.n, -1)

    return compute


def newton_euler(robot: RobotModel, xp: Any) -> Callable[..., Any]:
    """Return the effort of parameters (n, 10) and q, qd, qdd (n,), written with ``xp``.

    Links are described in their own frames, as in Luh, Walker, Paul 1980.
    """
    n, parents = robot.n, [int(p) for p in robot.parents]
    axes, slides = np.asarray(robot.axes), [t == PRISMATIC for t in robot.types]
    rotations, translations = np.asarray(robot.rotations), np.asarray(robot.translations)
    gravity = -np.asarray(robot.gravity)

    def turned(axis: FloatArray, angle: Any) -> Any:
        cross = np.cross(axis, np.eye(3)).T
        return np.eye(3) + xp.sin(angle) * cross + (1.0 - xp.cos(angle)) * (cross @ cross)

    def effort(parameters: Any, q: Any, qd: Any, qdd: Any) -> Any:
        frames: list[Any] = []
        turning: list[Any] = []
        rate: list[Any] = []
        rising: list[Any] = []
        for j in range(n):
            axis = axes[j]
            rotation = rotations[j] if slides[j] else rotations[j] @ turned(axis, q[j])
            place = translations[j] + (rotations[j] @ axis * q[j] if slides[j] else 0.0)
            p = parents[j]
            w, al, a = (turning[p], rate[p], rising[p]) if p >= 0 else (
                np.zeros(3), np.zeros(3), gravity)
            a = rotation.T @ (a + xp.cross(al, place) + xp.cross(w, xp.cross(w, place)))
            w, al = rotation.T @ w, rotation.T @ al
            if slides[j]:
                a = a + axis * qdd[j] + 2.0 * xp.cross(w, axis) * qd[j]
            else:
                al = al + axis * qdd[j] + xp.cross(w, axis) * qd[j]
                w = w + axis * qd[j]
            frames.append((rotation, place))
            turning.append(w)
            rate.append(al)
            rising.append(a)
        forces: list[Any] = []
        moments: list[Any] = []
        found: list[Any] = [None] * n
        for j in range(n):
            m, h, i = parameters[j, 0], parameters[j, 1:4], parameters[j, 4:]
            inertia = xp.array([[i[0], i[1], i[3]], [i[1], i[2], i[4]], [i[3], i[4], i[5]]])
            w, al, a = turning[j], rate[j], rising[j]
            forces.append(m * a + xp.cross(al, h) + xp.cross(w, xp.cross(w, h)))
            moments.append(inertia @ al + xp.cross(w, inertia @ w) + xp.cross(h, a))
        for j in reversed(range(n)):
            found[j] = axes[j] @ (forces[j] if slides[j] else moments[j])
            if parents[j] >= 0:
                rotation, place = frames[j]
                force = rotation @ forces[j]
                forces[parents[j]] = forces[parents[j]] + force
                moments[parents[j]] = (moments[parents[j]] + rotation @ moments[j]
                                       + xp.cross(place, force))
        return xp.stack(found)

    return effort
