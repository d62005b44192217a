"""Check of an identified model for physical consistency, with the remedy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import number
from robot_dynid.dynamics.elastic import coordinates
from robot_dynid.dynamics.rollout import FEASIBLE
from robot_dynid.effects import axes_of
from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import REVOLUTE
from robot_dynid.types import FloatArray

#: prefix of the warning about an indefinite mass matrix
INDEFINITE = 'the identified mass matrix is not positive definite'
#: random configurations at which the identified mass matrix is checked
MASS_MATRIX_CHECKS = 1000
#: worst of these around which the search continues, and its radius as a share of the joint ranges
WORST, SEARCH = 50, (0.1, 0.05, 0.02, 0.01)


def impossible(model: IdentifiedModel) -> list[str]:
    """Return warnings about negative rotor inertia and an indefinite mass matrix."""
    return [f'{warning}; {FEASIBLE}' for warning in (*_rotors(model), *_mass_matrix(model))]


def _rotors(model: IdentifiedModel) -> list[str]:
    """Return the rotors with identified negative inertia."""
    robot, negative = model.robot, []
    for label in axes_of(robot).labels:
        name = f'Ia{label}'
        i = model.names.index(name) if name in model.names else -1
        if i < 0 or not model.values[i] < 0.0:
            continue
        joint = int(label.removeprefix('m')) - 1
        owner = ('motor of ' if label.startswith('m') else '') + robot.joints[joint]
        unit = 'kg m^2' if robot.types[joint] == REVOLUTE else 'kg'
        negative.append(f'{owner} ({name}: {model.values[i]:.3g} +- '
                        f'{number(model.std[i], 2)} {unit})')
    return [f'rotor inertia below zero: {", ".join(negative)}'] if negative else []


def _mass_matrix(model: IdentifiedModel) -> list[str]:
    """Locate configurations whose mass matrix is not positive definite."""
    where = indefinite_at(model)
    return [f'{INDEFINITE} {where}; forward dynamics is refused there'] if where else []


def indefinite_at(model: IdentifiedModel) -> str:
    """Describe where the mass matrix is not positive definite; '' if nowhere.

    Checked at random configurations within the joint limits (a full turn without limits) and, if
    all pass, near those closest to singular; for elastic joints separately for links and motors,
    which may fail where their sum does not.
    """
    rng = np.random.default_rng(0)
    limits = model.robot.limits
    lower = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    upper = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    q = rng.uniform(lower, upper, (MASS_MATRIX_CHECKS, model.robot.n))
    least = _definiteness(model, q)
    if bad := int(np.sum(least <= 0.0)):
        return f'at {bad} of {len(q)} random configurations'
    for reach in SEARCH:
        worst = q[np.argsort(least)[:WORST]]
        near = np.repeat(worst, MASS_MATRIX_CHECKS // WORST, axis=0)
        near = near + reach * (upper - lower) * rng.standard_normal(near.shape)
        near = np.clip(near, lower, upper)
        q, least = np.vstack([worst, near]), _definiteness(model, np.vstack([worst, near]))
        if least.min() <= 0.0:
            pose = ', '.join(f'{angle:.3g}' for angle in q[np.argmin(least)])
            return f'at some configurations, such as {pose}'
    return ''


def definite(model: IdentifiedModel, q: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (K,) of the configurations (K, n) whose mass matrix is positive definite."""
    return _definiteness(model, q) > 0.0


def _definiteness(model: IdentifiedModel, q: FloatArray) -> FloatArray:
    """Return the least eigenvalue (K,) of the mass matrix with diagonals of one."""
    matrix = _inertia(model, q)
    scale = np.sqrt(np.abs(np.diagonal(matrix, axis1=1, axis2=2)))
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.asarray(np.linalg.eigvalsh(
        matrix / (scale[:, :, None] * scale[:, None, :]))[:, 0])


def _inertia(model: IdentifiedModel, q: FloatArray) -> FloatArray:
    """Return the mass matrix at ``q`` (K, n) of all independent bodies."""
    if not model.elastic_joints:
        return model.mass_matrix(q)
    try:
        motion = model.elastic_motion
    except ModelError:  # an unphysical gear is reported where it is used
        return model.mass_matrix(q)
    return motion.dynamics.mass_matrix(coordinates(q, q, motion.gears))
