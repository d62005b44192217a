"""Models as functions of CasADi and JAX: the same dynamics, and derivatives of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

casadi = pytest.importorskip('casadi', reason='optional oracle is not installed: casadi')

from geared_robots import identified, random_geared  # noqa: E402
from identified_models import counterbalanced, with_law  # noqa: E402
from tolerances import SAME_FORMULA  # noqa: E402

from robot_dynid.dynamics.derivatives import Derivatives  # noqa: E402
from robot_dynid.errors import MissingDependency  # noqa: E402
from robot_dynid.export.equations import Equations, Functions  # noqa: E402
from robot_dynid.export.functions import TracedAlgebra, casadi_functions  # noqa: E402
from robot_dynid.friction import ADDITIONS, LAWS  # noqa: E402
from robot_dynid.identified.model import IdentifiedModel  # noqa: E402
from robot_dynid.kernels.friction import HIGHEST, LOAD, LOWEST  # noqa: E402
from robot_dynid.types import FloatArray  # noqa: E402

Batched = tuple[Callable[..., FloatArray], Callable[..., FloatArray]]
STATES = 1000
#: laws as they are chosen for arms, motors that turn with two joints, motors behind gears, trees
#: with prismatic joints and rotors on moving links
MODELS: dict[str, Callable[[], IdentifiedModel]] = {
    'ur10e': lambda: with_law('ur10e', 'dahl+load+levelling'),
    'tx40': lambda: with_law('tx40', 'stribeck+load+breakaway'),
    'elastic_2r': lambda: with_law('elastic_2r', 'dahl+load'),
    'counterbalanced': lambda: counterbalanced(with_law('ur10e', 'coulomb')),
    'counterbalanced, elastic': lambda: counterbalanced(with_law('elastic_2r', 'coulomb')),
    'tree': lambda: identified(random_geared(1), 'stribeck', fv=1.0, fc=2.0, fs=0.5),
    'elastic tree': lambda: identified(random_geared(7, gives=True), fv=1.0, fc=2.0),
}


def in_casadi(model: IdentifiedModel) -> Batched:
    """Return inverse and forward of states (K, N)."""
    found = model.to_casadi()

    def inverse(*states: FloatArray) -> FloatArray:
        return np.array(found.inverse(*(s.T for s in states))).T

    def forward(*states: FloatArray) -> FloatArray:
        return np.array(found.forward(*(s.T for s in states))).T

    return inverse, forward


def in_jax(model: IdentifiedModel) -> Batched:
    """Return the same, compiled by JAX."""
    jax = pytest.importorskip('jax', reason='JAX is not installed')
    found = model.to_jax()
    inverse, forward = jax.jit(jax.vmap(found.inverse)), jax.jit(jax.vmap(found.forward))
    return (lambda *states: np.asarray(inverse(*states)),
            lambda *states: np.asarray(forward(*states)))


def in_arrays(model: IdentifiedModel) -> Batched:
    """Return the same in arrays of NumPy, by the algebra that JAX takes."""
    equations = Equations(model.mechanism, TracedAlgebra(np))

    def inverse(*states: FloatArray) -> FloatArray:
        return np.array([equations.inverse(*map(list, one)) for one in zip(*states, strict=True)])

    def forward(*states: FloatArray) -> FloatArray:
        return np.array([equations.forward(*map(list, one)).values
                         for one in zip(*states, strict=True)])

    return inverse, forward


def states(model: IdentifiedModel, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return random position, velocity and effort of the drives (count, ..)."""
    size, rng = len(model.mechanism.robot.joints), np.random.default_rng(5)
    total = size + len(model.elastic_joints)
    q, qd = rng.uniform(-1.5, 1.5, (2, count, total))
    qd[::7] *= 1e-3  # within ramps, too
    return q, qd, rng.normal(size=(count, size)) * 20.0


def accelerations(model: IdentifiedModel, q: FloatArray, qd: FloatArray, drives: FloatArray
                  ) -> FloatArray:
    """Return what the model says (K, N)."""
    if not model.elastic_joints:
        return model.forward(q, qd, drives)
    gears, n = model.mechanism.gears, drives.shape[1]
    motors = list(gears.motors(n))
    links, turned = model.forward_elastic(q[:, :n], qd[:, :n], drives, q[:, motors], qd[:, motors])
    return np.hstack([links, turned[:, list(gears.joints)]])


def agree(found: FloatArray, expected: FloatArray, relative: float) -> None:
    """Compare by the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0.0,
                               atol=relative * np.abs(expected).max())


@pytest.mark.parametrize(('name', 'package'), [
    *((name, in_casadi) for name in MODELS),
    *((name, package) for package in (in_arrays, in_jax)
      for name in ('ur10e', 'elastic_2r', 'tree'))])
def test_functions_are_the_dynamics_of_the_model(
    name: str, package: Callable[[IdentifiedModel], Batched]
) -> None:
    model = MODELS[name]()
    inverse, forward = package(model)
    q, qd, drives = states(model, 50 if package is in_arrays else STATES)
    qdd = accelerations(model, q, qd, drives)
    effort = np.zeros_like(q)
    effort[:, list(model.to_casadi().motors)] = drives
    agree(forward(q, qd, effort), qdd, SAME_FORMULA)
    scale = np.abs(qdd).max() / np.abs(effort).max()
    agree(inverse(q, qd, qdd), effort, SAME_FORMULA * max(1.0, scale))
    if not model.elastic_joints:
        agree(inverse(q, qd, 0.1 * qdd), model.inverse(q, qd, 0.1 * qdd), SAME_FORMULA)


@pytest.mark.parametrize('law', [*LAWS, *(f'coulomb+{a}' for a in ADDITIONS), 'maxwell+load'])
def test_casadi_functions_agree_with_every_friction_law(law: str) -> None:
    model = with_law('planar_3r', law)
    inverse, forward = in_casadi(model)
    q, qd, effort = states(model, 200)
    qdd = model.forward(q, qd, effort)
    agree(forward(q, qd, effort), qdd, SAME_FORMULA)
    agree(inverse(q, qd, qdd), effort, SAME_FORMULA)


def test_accelerations_say_whether_they_solve_the_equations_under_load() -> None:
    """Friction that grows with load faster than the load itself has no solution everywhere."""
    model = with_law('planar_3r', 'coulomb+load')
    friction = model.mechanism.friction
    terms = friction.terms.copy()
    terms[:, LOAD] *= 300.0
    equations = Equations(replace(model.mechanism, friction=replace(friction, terms=terms)),
                          TracedAlgebra(np))
    settled = []
    for q, qd, effort in zip(*states(model, 40), strict=True):
        found = equations.forward(list(q), list(qd), list(effort))
        back = equations.inverse(list(q), list(qd), list(found.values))
        settled.append(bool(np.all(found.settled)))
        assert settled[-1] == np.allclose(back, effort, rtol=1e-6, atol=1e-6)
    assert 5 < sum(settled) < 35


@pytest.mark.parametrize('law', ['stribeck+load+breakaway', 'two-speed+levelling'])
def test_curved_friction_is_straight_beyond_the_speeds_of_a_fit(law: str) -> None:
    model = with_law('planar_3r', law, 2.0)
    friction = model.mechanism.friction
    terms = friction.terms.copy()
    terms[:, [LOWEST, HIGHEST]] = -0.03, 0.05
    mechanism = replace(model.mechanism, friction=replace(friction, terms=terms))
    q, qd, qdd = states(model, 40)
    expected = Derivatives(mechanism).effort(q, 0.1 * qd, qdd)
    found = casadi_functions(mechanism).inverse(q.T, 0.1 * qd.T, qdd.T)
    agree(np.array(found).T, expected, SAME_FORMULA)
    curved = model.inverse(q, 0.1 * qd, qdd)
    assert np.abs(curved - expected).max() > 0.01


@pytest.mark.parametrize('name', ['tx40', 'tree', 'elastic tree'])
def test_derivatives_of_casadi_functions_are_those_of_the_model(name: str) -> None:
    """Those that CasADi finds in its expressions, and those of the kernels."""
    model = MODELS[name]()
    found, ours = model.to_casadi(), Derivatives(model.mechanism)
    q, qd, drives = states(model, 4)
    qd *= 1.1
    effort = np.zeros_like(q)
    effort[:, list(found.motors)] = drives
    acceleration = ours.acceleration(q, qd, effort)
    for call, slopes, last in ((found.inverse, ours.inverse, acceleration),
                               (found.forward, ours.forward, effort)):
        jacobian = call.jacobian()
        for k, expected in enumerate(zip(*slopes(q, qd, last), strict=True)):
            at = q[k], qd[k], last[k]
            for part, own in zip(jacobian(*at, call(*at)), expected, strict=True):
                agree(np.array(part), own, 10.0 * SAME_FORMULA)


def test_functions_say_what_they_take() -> None:
    found = MODELS['elastic_2r']().to_casadi()
    assert isinstance(found, Functions)
    assert found.coordinates == ('joint_1', 'joint_2', 'motor of joint_1', 'motor of joint_2')
    assert found.motors == (2, 3)
    assert found.inverse.name_in() == ['q', 'qd', 'qdd']
    assert found.forward.name_out() == ['qdd']


@pytest.mark.parametrize(('package', 'call'), [
    ('casadi', 'to_casadi'), ('jax', 'to_jax'), ('casadi', 'to_c')])
def test_exports_name_the_missing_package(
    package: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=f'pip install {package}'):
        getattr(MODELS['elastic_2r'](), call)()
