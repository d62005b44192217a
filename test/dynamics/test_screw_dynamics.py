"""dynamics/rigid_body.py: the block-matrix equations of screws against the kernels, and forward
dynamics from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from tolerances import SAME_FORMULA, SOLVED

pin = pytest.importorskip('pinocchio')
import screw_dynamics as screws  # noqa: E402
from random_robots import Peer, random_urdf  # noqa: E402

from robot_dynid.dynamics import rigid_body  # noqa: E402
from robot_dynid.errors import ModelError  # noqa: E402
from robot_dynid.identified.model import IdentifiedModel  # noqa: E402
from robot_dynid.identified.physical import definite, impossible  # noqa: E402
from robot_dynid.identified.structure import Structure  # noqa: E402
from robot_dynid.robot.model import PRISMATIC, RobotModel  # noqa: E402
from robot_dynid.robot.screws import Screw, robot_from_screws  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402
from robot_dynid.signals.prepare import Preprocessing  # noqa: E402
from robot_dynid.types import FloatArray  # noqa: E402

SEEDS = range(40)
WIDTH = 0.05


def random_robot(seed: int) -> tuple[RobotModel, np.random.Generator]:
    """Return a chain of 1 to 7 joints, revolute and prismatic, in any gravity; odd ones a tree."""
    rng = np.random.default_rng(1000 + seed)
    robot = robot_from_urdf(random_urdf(rng, int(rng.integers(1, 8)), 0.5 if seed % 2 else 0.0))
    return robot.with_gravity(5.0 * rng.normal(size=3)), rng


def state(robot: RobotModel, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(-2.0, 2.0, (3, robot.n))


def close(ours: FloatArray, theirs: FloatArray) -> bool:
    return bool(np.abs(ours - theirs).max() <= SAME_FORMULA * np.abs(theirs).max())


def test_random_robots_have_both_kinds_of_joints() -> None:
    types = np.concatenate([random_robot(seed)[0].types for seed in SEEDS])
    assert 0.2 < np.mean(types == PRISMATIC) < 0.5


@pytest.mark.parametrize('seed', SEEDS)
def test_block_matrices_give_the_effort_of_the_kernels(seed: int) -> None:
    robot, rng = random_robot(seed)
    q, qd, qdd = state(robot, rng)
    expected = rigid_body.inverse_dynamics(robot, q[None], qd[None], qdd[None])[0]
    assert close(screws.effort(robot, q, qd, qdd, robot.nominal), expected)


@pytest.mark.parametrize('seed', SEEDS)
def test_kronecker_form_gives_the_regressor_and_the_mass_matrix(seed: int) -> None:
    robot, rng = random_robot(seed)
    q, qd, qdd = state(robot, rng)
    columns = rigid_body.regressor(robot, (q[None], qd[None], qdd[None]))[:, :, 0]
    assert close(screws.regressor(robot, q, qd, qdd), columns)
    # Equation 18 as it stands, with the whole of vec(G), zeros included.
    a, b, c, d = screws.factors(robot, q, qd, qdd)
    whole = np.kron(b[None], a) + np.kron(d[None], c)
    effort = whole @ screws.inertias(robot.nominal).ravel(order='F')
    assert close(effort, rigid_body.inverse_dynamics(robot, q[None], qd[None], qdd[None])[0])
    mass = rigid_body.mass_matrix(robot, q[None])[0]
    found = screws.mass_matrix_regressor(robot, q) @ robot.nominal.ravel()
    assert close(found.reshape(robot.n, robot.n, order='F'), mass)
    # Equation 26 as it stands.
    matrix = np.kron(a, a) @ screws.inertias(robot.nominal).ravel(order='F')
    assert close(matrix, mass.ravel(order='F'))


@pytest.mark.parametrize('seed', range(0, 40, 4))
def test_the_same_as_pinocchio(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 5, 0.0)
    robot = robot_from_urdf(text)
    peer = Peer.of(pin.buildModelFromXML(text), robot)
    q, qd, qdd = state(robot, rng)
    assert close(screws.effort(robot, q, qd, qdd, robot.nominal),
                 peer.inverse_dynamics(q, qd, qdd))
    assert close(screws.regressor(robot, q, qd, qdd), peer.regressor(q, qd, qdd))


def test_selector_holds_zero_and_one_and_minus_one() -> None:
    assert set(np.unique(screws.SELECTOR)) == {-1.0, 0.0, 1.0}
    # Every column of eq. 11 appears: 3 masses, 4 entries per first moment, 1 or 2 per moment.
    assert np.abs(screws.SELECTOR).sum(axis=0).tolist() == [3, 4, 4, 4, 1, 2, 1, 2, 2, 1]


def test_spatial_inertia_of_a_point_mass() -> None:
    """Kinetic energy of 2 kg at (0, 0.5, 0) that turns at 3 rad/s about z and slides along x."""
    point = np.array([2.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5])
    twist = np.array([0.0, 0.0, 3.0, 4.0, 0.0, 0.0])
    speed = 4.0 - 3.0 * 0.5
    assert twist @ screws.spatial_inertia(point) @ twist == pytest.approx(2.0 * speed**2)


def test_robots_made_of_screws_have_the_screws_of_the_paper() -> None:
    robot = robot_from_screws('two', [
        Screw('turn', [1, 2, 0], [0, 0, 1]), Screw('slide', [0, -1, 0], [1, 0, 0], 'prismatic')])
    assert screws.joint_screws(robot).tolist() == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]]


def identified(robot: RobotModel, rng: np.random.Generator) -> IdentifiedModel:
    """Return a model with the nominal links and random friction."""
    structure = Structure.uniform(robot, False, 'coulomb', {'width': WIDTH})
    reduction = structure.torque_model(robot).reduction
    standard = np.concatenate([robot.nominal.ravel(), rng.uniform(0.1, 2.0, 3 * robot.n)])
    values = reduction.base(standard)
    return IdentifiedModel(robot, structure, reduction, values, np.zeros_like(values),
                           np.zeros_like(values), Preprocessing(10.0))


@pytest.mark.parametrize('seed', SEEDS)
def test_served_forward_dynamics_are_those_of_the_minimal_set(seed: int) -> None:
    """Equation 28 with Z_0 and Y_0 against the dependent parameters set to zero."""
    robot, rng = random_robot(seed)
    q, qd, _ = state(robot, rng)
    effort = 20.0 * rng.normal(size=robot.n)
    condition = float(np.linalg.cond(rigid_body.mass_matrix(robot, q[None])[0]))
    if condition > 1e8:
        pytest.skip('the last link has no mass')
    model = identified(robot, rng)
    kept = model.reduction.pivots
    links = kept < 10 * robot.n
    minimal = screws.MinimalDynamics(robot, kept[links], model.values[links])
    values = np.array([model.standard[f'{p}{i + 1}'] for i in range(robot.n)
                       for p in ('fv', 'fc', 'f0')]).reshape(robot.n, 3)
    columns = np.column_stack([qd, np.clip(qd / WIDTH, -1.0, 1.0), np.ones(robot.n)])
    friction = np.sum(columns * values, axis=1)
    expected = minimal.acceleration(q, qd, effort, friction)
    found = model.forward(q, qd, effort)
    bound = SAME_FORMULA + 100.0 * condition * SOLVED
    assert np.abs(found - expected).max() < bound * np.abs(expected).max()
    assert close(model.mass_matrix(q), minimal.mass_matrix(q))
    assert close(model.inverse(q, qd, np.zeros(robot.n)), minimal.bias(q, qd) + friction)


def test_most_of_the_random_robots_have_forward_dynamics() -> None:
    robots = [random_robot(seed)[0] for seed in SEEDS]
    matrices = [rigid_body.mass_matrix(robot, np.zeros((1, robot.n)))[0] for robot in robots]
    assert sum(np.linalg.cond(matrix) < 1e8 for matrix in matrices) > 30


def test_a_mass_matrix_that_is_indefinite_in_part_of_the_range_is_reported() -> None:
    """Too large a first moment of link 2 outweighs its inertia only where the elbow is bent."""
    model = nominal_model('planar_3r')
    names = list(model.names)
    values = np.array(model.values)
    assert impossible(model) == []
    values[names.index('mx2')] *= 8.0
    broken = replace(model, values=values)
    rng = np.random.default_rng(5)
    limits = model.robot.limits
    q = rng.uniform(limits.lower, limits.upper, (400, 3))
    least = np.array([np.linalg.eigvalsh(broken.mass_matrix(row))[0] for row in q])
    assert 0 < np.sum(least <= 0.0) < 400
    warning, = impossible(broken)
    assert 'not positive definite at ' in warning and 'of 1000 random configurations' in warning
    assert 'forward dynamics is refused there' in warning
    good, bad = q[np.argmax(least)], q[np.argmin(least)]
    assert np.all(np.isfinite(broken.forward(good, 0.0 * good, 0.0 * good)))
    with pytest.raises(ModelError, match='not positive definite in state 0'):
        broken.forward(bad, 0.0 * bad, 0.0 * bad)


def test_a_mass_matrix_that_is_indefinite_where_random_poses_miss_it_is_reported() -> None:
    model = nominal_model('planar_3r')
    limits, first = model.robot.limits, list(model.names).index('mx2')
    q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (1000, 3))

    def heavier(factor: float) -> IdentifiedModel:
        values = np.array(model.values)
        values[first] *= factor
        return replace(model, values=values)

    lower, upper = 1.0, 8.0
    for _ in range(40):
        middle = 0.5 * (lower + upper)
        lower, upper = (middle, upper) if definite(heavier(middle), q).all() else (lower, middle)
    warning, = impossible(heavier(lower))  # all of the thousand are good, hardly
    assert 'not positive definite at some configurations, such as ' in warning
