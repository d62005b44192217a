"""Exports loaded in their tools: error of accelerations in 1000 random states, effort left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.dynamics.derivatives import Derivatives
from robot_dynid.errors import DynIdError, MissingDependency
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.robot.urdf_text import generate_urdf
from robot_dynid_evaluation.bench import Row
from robot_dynid_evaluation.bench.arms import RAMP, model_with, true_model

Check = Callable[['IdentifiedModel'], dict[str, Any]]
Accelerations = Callable[['IdentifiedModel'], Callable[..., Any]]
STATES = 1000
COLUMNS = ('what', 'tool', 'error', 'left_out', 'joint')
NAMES = ('ur10e', 'tx40', 'elastic_2r')
#: joints of the tree: their parents, and the kind
TREE = ((-1, 'revolute'), (0, 'revolute'), (1, 'prismatic'), (0, 'revolute'), (3, 'revolute'))
#: viscous [N m s/rad] and dry friction [N m] of the motors of the tree, and their inertia [kg m^2]
FRICTION, DRY, ROTOR = 3.0, 2.0, 0.2


def measure(progress: Progress) -> Iterator[Row]:
    """Yield a row for every form and robot."""
    models = {**{name: true_model(name, feasible=True) for name in NAMES}, 'tree': tree_model()}
    for i, (name, model) in enumerate(models.items()):
        progress(name, i / len(models))
        for form, check in FORMS.items():
            try:
                facts = check(model)
            except MissingDependency as error:
                facts = {'tool': str(error)}
            except DynIdError as error:
                facts = {'tool': f'not for it: {error}'}
            yield _row(f'{form}, {name}', facts)


def _row(what: str, facts: dict[str, Any]) -> Row:
    worst = max(facts.get('missing', ()), key=lambda one: one['rms'], default=None)
    kept = worst is not None and worst['most'] > 1e-9
    return {'what': what, 'tool': facts['tool'], 'error': facts.get('error'),
            'left_out': worst['rms'] if kept and worst else 0.0 if worst else None,
            'joint': worst['joint'] if kept and worst else ''}


def _urdf(model: IdentifiedModel) -> dict[str, Any]:
    return model.to_urdf(generate_urdf(model.robot, model.arm.mechanism.links)).facts()


def _pinocchio(model: IdentifiedModel) -> dict[str, Any]:
    from robot_dynid.export.pinocchio import pinocchio_model

    found = pinocchio_model(model.arm)
    return found.written.facts() | {'error': found.error(), 'tool': f'Pinocchio {version("pin")}'}


def _drake(model: IdentifiedModel) -> dict[str, Any]:
    from robot_dynid.export.sdf import drake_plant

    found = drake_plant(model.arm)
    return found.written.facts() | {'error': found.error(), 'tool': f'Drake {version("drake")}'}


def _functions(package: str, accelerations: Accelerations) -> Check:
    """Return the check of functions of a package, with all that the model knows."""
    def check(model: IdentifiedModel) -> dict[str, Any]:
        whole, rng = Derivatives(model.mechanism), np.random.default_rng(0)
        q, qd = rng.uniform(-1.5, 1.5, (2, STATES, whole.count))
        effort = np.zeros_like(q)
        effort[:, whole.motors] = 20.0 * rng.normal(size=(STATES, len(whole.motors)))
        expected = whole.acceleration(q, qd, effort)
        off = accelerations(model)(q, qd, effort) - expected
        return {'tool': f'{package} {version(package)}',
                'error': float((np.abs(off).max(axis=0) / np.abs(expected).max(axis=0)).max()),
                'missing': [{'joint': '', 'rms': 0.0, 'most': 0.0}]}

    return check


def _in_casadi(model: IdentifiedModel) -> Callable[..., Any]:
    forward = model.to_casadi().forward
    return lambda *states: np.array(forward(*(part.T for part in states))).T


def _in_jax(model: IdentifiedModel) -> Callable[..., Any]:
    forward = model.to_jax().forward
    import jax

    return lambda *states: np.asarray(jax.jit(jax.vmap(forward))(*states))


FORMS: dict[str, Check] = {
    'URDF': _urdf,
    'MJCF': lambda model: model.to_mjcf().facts(),
    'SDF': lambda model: model.to_sdf().facts(),
    'inverse_dynamics_solver': lambda model: model.to_solver_parameters().facts(),
    'to_pinocchio': _pinocchio,
    'to_drake': _drake,
    'to_casadi': _functions('casadi', _in_casadi),
    'to_jax': _functions('jax', _in_jax),
}


def tree_model() -> IdentifiedModel:
    """Return a model of a tree with two branches, one of which slides."""
    rng = np.random.default_rng(0)
    parts = ['<robot name="tree"><link name="base"/>']
    for j, (parent, kind) in enumerate(TREE):
        xyz, rpy, axis = (' '.join(map(repr, rng.uniform(-s, s, 3).tolist()))
                          for s in (0.4, 3.0, 1.0))
        parts.append(
            f'<link name="link_{j}"/><joint name="joint_{j}" type="{kind}"><parent link="'
            f'{"base" if parent < 0 else f"link_{parent}"}"/><child link="link_{j}"/>'
            f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/><limit lower="-2" upper="2" '
            'velocity="2" effort="100"/></joint>')
    robot = robot_from_urdf(''.join([*parts, '</robot>']))
    links = [parameters_from_com(m, c, m * np.diag(d)) for m, c, d in zip(
        rng.uniform(1.0, 8.0, robot.n), rng.uniform(-0.2, 0.2, (robot.n, 3)),
        rng.uniform(0.01, 0.015, (robot.n, 3)), strict=True)]
    values = {f'{name}{i + 1}': value for i in range(robot.n) for name, value in (
        ('Ia', ROTOR), ('fv', FRICTION), ('fc', DRY))}
    robot = robot.with_nominal(links)
    structure = Structure.uniform(robot, True, 'coulomb', {'width': RAMP})
    return model_with(robot, structure, values, feasible=True)
