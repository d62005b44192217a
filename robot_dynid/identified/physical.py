"""Check of an identified model for physical consistency, with the remedy."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics.elastic import coordinates
from robot_dynid.dynamics.rollout import FEASIBLE, SENSORS
from robot_dynid.errors import ModelError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.regressor import axes_of
from robot_dynid.robot.model import REVOLUTE
from robot_dynid.types import FloatArray

#: beginning of the warning about a mass matrix that no robot has
INDEFINITE = 'the identified mass matrix is not positive definite'
#: random configurations at which the identified mass matrix is checked
MASS_MATRIX_CHECKS = 1000


def impossible(model: IdentifiedModel) -> list[str]:
    """Return warnings about rotors with inertia below zero, and an indefinite mass matrix."""
    rotors = model.structure.rotor_inertia and not model.elastic_joints
    remedy = f'{SENSORS}; otherwise {FEASIBLE}' if rotors else FEASIBLE
    return [f'{warning}; {remedy}' for warning in (*_rotors(model), *_mass_matrix(model))]


def _rotors(model: IdentifiedModel) -> list[str]:
    """Name the rotors whose inertia was identified by itself, and is below zero."""
    robot, found = model.robot, []
    for label in axes_of(robot).labels:
        name = f'Ia{label}'
        i = model.names.index(name) if name in model.names else -1
        if i < 0 or not model.values[i] < 0.0:
            continue
        joint = int(label.removeprefix('m')) - 1
        owner = ('motor of ' if label.startswith('m') else '') + robot.joints[joint]
        unit = 'kg m^2' if robot.types[joint] == REVOLUTE else 'kg'
        found.append(f'{owner} ({name}: {model.values[i]:.3g} +- {model.std[i]:.2g} {unit})')
    return [f'rotor inertia below zero: {", ".join(found)}'] if found else []


def _mass_matrix(model: IdentifiedModel) -> list[str]:
    """Say where the mass matrix is not positive definite.

    Checked at random configurations within the joint limits (a full turn where there are none);
    of elastic joints that of links and motors apart, which may fail where their sum does not.
    """
    rng = np.random.default_rng(0)
    limits = model.robot.limits
    lower = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    upper = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    q = rng.uniform(lower, upper, (MASS_MATRIX_CHECKS, model.robot.n))
    smallest = np.linalg.eigvalsh(_inertia(model, q))[:, 0]
    bad = int(np.sum(smallest <= 0.0))
    if not bad:
        return []
    return [f'{INDEFINITE} at {bad} of {len(q)} random '
            'configurations; forward dynamics is refused there']


def _inertia(model: IdentifiedModel, q: FloatArray) -> FloatArray:
    """Return the mass matrix at ``q`` (K, n) of all that moves by itself."""
    if not model.elastic_joints:
        return model.mass_matrix(q)
    try:
        motion = model.elastic_motion
    except ModelError:  # a gear that cannot be is named where it is used
        return model.mass_matrix(q)
    return motion.dynamics.mass_matrix(coordinates(q, q, motion.gears))
