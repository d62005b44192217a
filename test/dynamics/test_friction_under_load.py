"""dynamics/rigid_body.py: inverse and forward dynamics with every law, friction under the load of
the acceleration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from friction_formulas import sliding_columns
from identified_models import with_law
from random_robots import random_urdf
from tolerances import REDUCED, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.rigid_body import require_solved
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError
from robot_dynid.friction import ADDITIONS, LAWS, AxisFriction, FrictionLaw, law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.kernels import sliding_friction
from robot_dynid.kernels.forward_dynamics import UNSETTLED
from robot_dynid.kernels.single_state import FEW
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray

#: rounds at most, and when they have settled
ROUNDS, SETTLED = 200, 1e-14


def substituted(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, effort: FloatArray
) -> FloatArray:
    """Return the accelerations (K, n) of a rigid model in states (K, n): repeated substitution.

    Friction is that under the load of the round before; the error shrinks by its share in the
    load in every round. Fails where that does not end.
    """
    robot = model.torque_model.robot.rigid
    solve = rigid_body.ForwardDynamics(robot, model.links.parameters, model.links.rotors)
    found = np.zeros_like(q)
    for _ in range(ROUNDS):
        before = found
        found = solve(q, qd, effort - model.friction(q, qd, before))[0]
        if np.allclose(found, before, rtol=SETTLED, atol=SETTLED):
            return found
    raise AssertionError('repeated substitution does not settle')


NAMES = [*LAWS, *(f'{law}+load' for law in LAWS), *(f'maxwell+load+{a}' for a in ADDITIONS
                                                    if a != 'load'), 'dahl+levelling+load']
COUNT = 40


@dataclass(frozen=True, eq=False)
class Rough:
    """A random tree with random rotors; motors turn random combinations of its joints."""

    robot: RobotModel
    rotors: Rotors
    axes: FloatArray
    names: tuple[str, ...]
    laws: tuple[FrictionLaw, ...]
    values: tuple[FloatArray, ...]
    transmission: FloatArray
    links: FloatArray

    @classmethod
    def random(cls, rng: np.random.Generator, names: tuple[str, ...], grows: float) -> Rough:
        """Return one with ``names`` of laws by axis, and ``grows`` the friction per load."""
        robot = robot_from_urdf(random_urdf(rng, 5, 0.4))
        n, count = robot.n, len(names)
        axes = np.eye(n)[np.arange(count) % n]
        axes[n:, rng.integers(n)] += rng.normal()
        carriers = np.flatnonzero(robot.parents >= 0)[:1].astype(np.int64)
        spun = rng.uniform(0.1, 1.0, (1, n)) * (np.arange(n) > carriers[:, None])
        rotors = Rotors(np.diag(rng.uniform(0.3, 2.0, n)), carriers,
                        0.02 * rng.normal(size=(len(carriers), 3)), spun[:len(carriers)])
        laws = tuple(law_from(name) for name in names)
        values = tuple(np.array([rng.uniform(-0.5, 1.0) * (grows if p == 'fw' else 1.0)
                                 for p in law.parameters]) for law in laws)
        links = robot.nominal * rng.uniform(0.7, 1.3, (n, 1))
        return cls(robot, rotors, axes, names, laws, values, axes * rng.uniform(0.5, 1.5), links)

    @property
    def friction(self) -> AxisFriction:
        """The tables of the kernels."""
        return AxisFriction.of(self.axes, self.laws, self.values, (self.transmission, self.links))

    def effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, n) by the formulas of the laws."""
        found = rigid_body.inverse_dynamics(self.robot, q, qd, qdd) \
            + rigid_body.rotor_effort(self.robot, self.rotors, q, qd, qdd)
        pressed = rigid_body.inverse_dynamics(self.robot, q, qd, qdd, self.links)
        for i, (name, law, values) in enumerate(zip(self.names, self.laws, self.values,
                                                    strict=True)):
            torque = values @ sliding_columns(name, law, qd @ self.axes[i],
                                              pressed @ self.transmission[i])
            found += torque[:, None] * self.axes[i]
        return found

    def states(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return random motion (COUNT, n), some of it at rest."""
        q, qd, qdd = rng.uniform(-1.5, 1.5, (3, COUNT, self.robot.n))
        qd[::7] *= 0.0
        return q, qd, 5.0 * qdd


def agree(found: FloatArray, expected: FloatArray, relative: float) -> None:
    """Compare by the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0.0,
                               atol=relative * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize('seed', range(len(NAMES)))
def test_every_law_on_random_trees_by_its_formula_and_back(seed: int) -> None:
    """Laws by axis in turn; forward dynamics leaves nothing of the effort over."""
    rng = np.random.default_rng(seed)
    names = tuple(NAMES[(seed + i) % len(NAMES)] for i in range(6))
    rough = Rough.random(rng, names, 0.2)
    q, qd, qdd = rough.states(rng)
    inverse = rigid_body.InverseDynamics(rough.robot, None, rough.rotors, rough.friction)
    agree(inverse(q, qd, qdd), rough.effort(q, qd, qdd), SAME_FORMULA)
    effort = 40.0 * rng.normal(size=q.shape)
    forward = rigid_body.ForwardDynamics(rough.robot, None, rough.rotors, rough.friction)
    found, verdicts = forward(q, qd, effort)
    assert (verdicts > 0.0).all()
    agree(rough.effort(q, qd, found), effort, REDUCED)
    for count in (1, FEW):  # state by state: bit for bit
        few = forward(q[:count], qd[:count], effort[:count])
        np.testing.assert_array_equal(few[0], found[:count])
        np.testing.assert_array_equal(few[1], verdicts[:count])
        np.testing.assert_array_equal(inverse(q[:count], qd[:count], qdd[:count]),
                                      inverse(q, qd, qdd)[:count])


@pytest.mark.parametrize('name', ['ur10e', 'tx40'])
@pytest.mark.parametrize('law', ['dahl+load', 'stribeck+load'])
def test_a_model_accelerates_as_by_repeated_substitution(name: str, law: str) -> None:
    model, rng = with_law(name, law), np.random.default_rng(4)
    q, qd = rng.uniform(-1.0, 1.0, (2, COUNT, model.robot.n))
    effort = model.gravity(q) + 20.0 * rng.normal(size=q.shape)
    agree(model.forward(q, qd, effort), substituted(model, q, qd, effort), REDUCED)


def test_a_load_of_zero_and_at_its_change_of_sign() -> None:
    """The friction of a joint has a kink there."""
    model, rng = with_law('ur10e', 'coulomb+load', 1.0), np.random.default_rng(2)
    friction = model.axis_friction
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, COUNT, 6))
    robot = model.torque_model.robot.rigid
    still = rigid_body.inverse_dynamics(robot, q, qd, 0.0 * q, friction.links)
    rigid = rigid_body.mass_matrix(robot, q, friction.links)
    for size in (0.0, 1e-13, -1e-13, 1e-6, -1e-6):
        load = rng.normal(size=q.shape)
        load[:, [1, 3]] = size
        qdd = np.linalg.solve(rigid, (load - still)[:, :, None])[:, :, 0]
        agree(model.forward(q, qd, model.inverse(q, qd, qdd)), qdd, REDUCED * np.abs(qdd).max())


def loads(shares: FloatArray, given: FloatArray) -> list[FloatArray]:
    """Return all solutions p (m,) of p + shares |p| = given, sign by sign."""
    found = []
    for signs in product((-1.0, 1.0), repeat=len(given)):
        p = np.linalg.solve(np.eye(len(given)) + shares * signs, given)
        if (p * signs >= 0.0).all():
            found.append(p)
    return found


def settled(shares: FloatArray, given: FloatArray) -> tuple[float, FloatArray]:
    """Return the verdict and the solution of the kernel for one lane."""
    m, p = len(given), given[:, None].copy()
    scratch = np.empty((m, m)), np.empty(m)
    good, own = np.empty(1), np.empty(m)
    sliding_friction.settle(good, shares[:, :, None], p, 0, scratch, own)
    return float(good[0]), own


def test_strong_friction_settles_wherever_one_load_solves_it() -> None:
    """All determinants of I + N S are above zero then; many signs turn on the way."""
    rng, hard, turned = np.random.default_rng(0), 0, 0
    while hard < 300:
        m = int(rng.integers(1, 6))
        shares = rng.normal(size=(m, m)) * rng.choice([0.3, 1.0, 3.0])
        signs = np.array(list(product((-1.0, 1.0), repeat=m)))
        if np.linalg.det(np.eye(m) + shares * signs[:, None]).min() <= 0.0:
            continue
        hard += 1
        given = rng.normal(size=m)
        (expected,) = loads(shares, given)
        turned += int(((expected * given) < 0.0).any())
        good, p = settled(shares, given)
        assert good == 1.0
        np.testing.assert_allclose(p, expected, rtol=1e-8, atol=1e-10)
    assert turned > 50


def test_joints_that_lock_themselves_are_named() -> None:
    good, _ = settled(np.array([[-3.0]]), np.array([1.0]))
    assert good == 0.0
    assert not loads(np.array([[-3.0]]), np.array([1.0]))
    with pytest.raises(ModelError, match='no acceleration solves the dynamics in state 1'):
        require_solved(np.array([1.0, UNSETTLED]), np.zeros((2, 3)))


def test_forward_dynamics_leaves_other_states_when_one_is_unsettled() -> None:
    """A single joint whose friction is more than its load, driven forward and backward."""
    robot = load_robot('planar_3r').with_gravity(np.zeros(3))
    law = law_from('coulomb+load')
    friction = AxisFriction.of(np.eye(3), [law] * 3, [np.array([0.0, 0.0, 0.0, -1.5])] * 3,
                               (np.eye(3), robot.nominal))
    forward = rigid_body.ForwardDynamics(robot, friction=friction)
    q, qd = np.zeros((COUNT, 3)), np.zeros((COUNT, 3))
    effort = np.tile([0.0, 0.0, 1.0], (COUNT, 1))
    smooth = rigid_body.forward_dynamics(robot, (q, qd, effort))[0]
    qd[5] = 1.0
    found, verdicts = forward(q, qd, effort)
    assert np.flatnonzero(verdicts == UNSETTLED).tolist() == [5]
    others = np.arange(COUNT) != 5
    agree(found[others], smooth[others], SAME_FORMULA)
