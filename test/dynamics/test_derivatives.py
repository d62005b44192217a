"""Derivatives of the dynamics: Pinocchio's, and differences of five points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pin = pytest.importorskip('pinocchio')

from geared_robots import Geared, identified, random_geared  # noqa: E402
from identified_models import counterbalanced, with_law  # noqa: E402
from random_robots import Peer, random_urdf  # noqa: E402
from tolerances import FIVE_POINTS, REDUCED, SAME_FORMULA  # noqa: E402

from robot_dynid import load_robot  # noqa: E402
from robot_dynid.dynamics.derivatives import Derivatives  # noqa: E402
from robot_dynid.dynamics.mechanism import Mechanism  # noqa: E402
from robot_dynid.dynamics.rotors import Rotors  # noqa: E402
from robot_dynid.errors import ModelError, UsageError  # noqa: E402
from robot_dynid.friction import AxisFriction  # noqa: E402
from robot_dynid.identified.model import IdentifiedModel  # noqa: E402
from robot_dynid.robot.model import PRISMATIC, RobotModel  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402
from robot_dynid.types import FloatArray  # noqa: E402

Dynamics = Callable[..., FloatArray]
#: step where friction bends: over 0.01 rad/s, with fifth derivatives of 1e11 then
FINE = 1e-4


def slopes(
    dynamics: Dynamics, states: tuple[FloatArray, ...], step: float = 1e-3
) -> list[FloatArray]:
    """Return the derivatives (K, n, N) of ``dynamics`` by each of its states (K, N)."""
    found = []
    for channel, given in enumerate(states):
        columns = []
        for unit in np.eye(given.shape[1]):
            def moved(by: float, unit=unit, channel=channel, given=given) -> FloatArray:
                return dynamics(*states[:channel], given + by * step * unit,
                                *states[channel + 1:])

            columns.append((8.0 * (moved(1.0) - moved(-1.0)) - moved(2.0) + moved(-2.0))
                           / (12.0 * step))
        found.append(np.stack(columns, axis=2))
    return found


def agree(found, expected, relative: float) -> None:
    """Compare matrices, each by its largest number."""
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0,
                                   atol=relative * max(1.0, np.abs(theirs).max()))


def bare(robot: RobotModel) -> Derivatives:
    """Return the derivatives of nominal links alone."""
    return Derivatives(Mechanism(robot, robot.nominal, Rotors.of(np.zeros((robot.n, robot.n))),
                                 AxisFriction.none(robot.n)))


@pytest.mark.parametrize('decade', range(4))
def test_links_alone_agree_with_pinocchio(decade: int) -> None:
    """Even ones are chains, odd ones trees; joints turn and slide; more states than a tile."""
    for seed in range(10 * decade, 10 * decade + 10):
        rng = np.random.default_rng(seed)
        text = random_urdf(rng, int(rng.integers(1, 10)), 0.5 * (seed % 2))
        robot = robot_from_urdf(text).with_gravity(rng.normal(size=3) * 5.0)
        peer = Peer.of(pin.buildModelFromXML(text), robot)
        count = 35 if seed % 10 == 0 else 4
        q, v, a = rng.normal(size=(3, count, robot.n)) * np.array([2.0, 1.0, 3.0])[:, None, None]
        ours = bare(robot)
        expected = np.array([peer.inverse_derivatives(*s) for s in zip(q, v, a, strict=True)])
        agree(ours.inverse(q, v, a), expected.transpose(1, 0, 2, 3), SAME_FORMULA)
        worst = np.linalg.cond(expected[:, 2]).max()
        if worst > 1e8:
            continue  # a last link without inertial has no acceleration
        effort = np.array([peer.inverse_dynamics(*s) for s in zip(q, v, a, strict=True)])
        expected = np.array([peer.forward_derivatives(*s) for s in zip(q, v, effort, strict=True)])
        agree(ours.forward(q, v, effort), expected.transpose(1, 0, 2, 3), SAME_FORMULA * worst)


def test_the_random_robots_slide_and_branch() -> None:
    robots = [robot_from_urdf(random_urdf(np.random.default_rng(seed), 8, 0.5))
              for seed in range(5)]
    assert any(np.any(r.types == PRISMATIC) for r in robots)
    assert any(len(set(r.parents)) < r.n for r in robots)


def with_gears(geared: Geared) -> Dynamics:
    """Return the effort (K, N) of rotors as bodies and of the gears of `identified`."""
    n, own = geared.robot.n, list(geared.robot.drive.elastic)

    def effort(x: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        pull = 5000.0 * (x[:, n:] - x[:, own]) + 20.0 * (v[:, n:] - v[:, own]) + 0.5
        found = geared.effort(x, v, a)
        found[:, n:] += pull
        found[:, own] -= pull
        return found

    return effort


@pytest.mark.parametrize('seed', range(12))
def test_rotors_on_moving_links_and_gears(seed: int) -> None:
    """Against rotors as bodies of Pinocchio; odd ones are trees, the later have elastic joints."""
    geared = random_geared(seed, gives=seed >= 6)
    ours, rng = Derivatives(identified(geared).mechanism), np.random.default_rng(seed)
    states = tuple(rng.normal(size=(3, 3, geared.robot.coordinates)))
    effort = with_gears(geared)
    np.testing.assert_allclose(ours.effort(*states), effort(*states), rtol=0.0,
                               atol=REDUCED * np.abs(effort(*states)).max())
    expected = slopes(effort, states)
    agree(ours.inverse(*states), expected, FIVE_POINTS)
    by_q, by_v, inertia = expected
    inverse = np.linalg.inv(inertia)
    agree(ours.forward(*states[:2], effort(*states)), (-inverse @ by_q, -inverse @ by_v, inverse),
          FIVE_POINTS * np.linalg.cond(inertia).max())


#: laws with every kind of term, and loads that joints and coupled motors transmit
LAWS = ('asymmetric', 'two-speed+levelling', 'stribeck+breakaway', 'dahl+load+levelling',
        'maxwell+drift', 'stribeck+load+breakaway')


def sliding(model: IdentifiedModel, seed: int = 3) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return states (4, n) at speeds off the corners of friction, and one within its ramp."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 4, model.robot.n))
    qd[0] = np.sign(qd[0]) * (0.004 + 0.001 * np.arange(model.robot.n))
    return q, qd, 3.0 * qdd


@pytest.mark.parametrize(('name', 'law'), [
    *(('planar_3r', law) for law in LAWS), ('tx40', 'stribeck+load+breakaway'),
    ('tx40', 'coulomb+load'), ('elastic_2r', 'stribeck+load')])
def test_derivatives_of_friction_agree_with_differences(name: str, law: str) -> None:
    """Ramps, tangents, their tails, directions, loads; motors that turn with two joints."""
    model = counterbalanced(with_law(name, law, 2.0))
    q, qd, qdd = sliding(model)
    agree(model.inverse_derivatives(q, qd, qdd), slopes(model.inverse, (q, qd, qdd), FINE),
          100.0 * FIVE_POINTS)
    effort = model.inverse(q, qd, qdd)
    worst = np.linalg.cond(model.mass_matrix(q)).max()
    agree(model.forward_derivatives(q, qd, effort), slopes(model.forward, (q, qd, effort), FINE),
          100.0 * FIVE_POINTS * worst)


@pytest.mark.parametrize('law', ['coulomb', 'stribeck+load'])
def test_motors_behind_elastic_gears(law: str) -> None:
    """Friction of the motors, at the load of the links, against the model's own accelerations."""
    model = counterbalanced(with_law('elastic_2r', law, 2.0))
    ours, n = Derivatives(model.mechanism), model.robot.n
    rng = np.random.default_rng(4)
    x, v, drives = (rng.uniform(0.1, 1.0, (4, size)) * rng.choice([-1.0, 1.0], (4, size))
                    for size in (ours.count, ours.count, n))

    def forward(at: FloatArray, rate: FloatArray, effort: FloatArray) -> FloatArray:
        links, motors = model.forward_elastic(at[:, :n], rate[:, :n], effort, at[:, ours.motors],
                                              rate[:, ours.motors])
        return np.hstack([links, motors[:, list(model.mechanism.gears.joints)]])

    effort = np.zeros_like(x)
    effort[:, ours.motors] = drives
    expected = forward(x, v, drives)
    scale = np.linalg.cond(ours.inverse(x, v, expected)[2]).max()
    np.testing.assert_allclose(ours.acceleration(x, v, effort), expected, rtol=0.0,
                               atol=REDUCED * scale * np.abs(expected).max())
    by_x, by_v, by_effort = ours.forward(x, v, effort)
    agree((by_x, by_v, by_effort[:, :, ours.motors]), slopes(forward, (x, v, drives), FINE),
          100.0 * FIVE_POINTS * scale)


@pytest.mark.parametrize(('name', 'law'), [('tx40', 'dahl+load+levelling'),
                                           ('elastic_2r', 'coulomb')])
def test_derivatives_by_parameters_agree_with_differences(name: str, law: str) -> None:
    """The effort is linear in them; accelerations change as differences say."""
    model = with_law(name, law, 2.0)
    q, qd, qdd = sliding(model)
    columns = model.inverse_by_parameters(q, qd, qdd)
    effort = model.inverse(q, qd, qdd)
    agree((columns @ model.values,), (effort,), REDUCED)
    size = np.abs(model.values)

    def forward(shares: FloatArray) -> FloatArray:
        changed = replace(model, values=model.values + size * shares[0])
        return changed.forward(q, qd, effort)

    found = model.forward_by_parameters(q, qd, effort) * size
    expected = slopes(forward, (np.zeros((1, len(size))),))[0]
    agree((found,), (expected,), FIVE_POINTS * np.linalg.cond(model.mass_matrix(q)).max())


def test_derivatives_of_one_state_equal_the_row_of_a_batch() -> None:
    model = with_law('ur10e', 'coulomb')
    q, qd, qdd = sliding(model)
    for ours, expected in ((model.inverse_derivatives, qdd), (model.forward_derivatives, qdd)):
        many, one = ours(q, qd, expected), ours(q[2], qd[2], expected[2])
        for whole, single in zip(many, one, strict=True):
            np.testing.assert_array_equal(whole[2], single)
    assert model.inverse_by_parameters(q[0], qd[0], qdd[0]).shape == (6, len(model.values))
    assert model.forward_by_parameters(q[0], qd[0], qdd[0]).shape == (6, len(model.values))


def test_derivatives_refuse_wrong_shapes_and_indefinite_mass_matrices() -> None:
    model = with_law('planar_3r', 'coulomb')
    with pytest.raises(UsageError, match=r'velocity has shape \(2, 2\)'):
        model.inverse_derivatives(np.zeros((2, 3)), np.zeros((2, 2)), np.zeros((2, 3)))
    robot = load_robot('planar_3r')
    light = Derivatives(replace(model.mechanism, links=-robot.nominal))
    with pytest.raises(ModelError, match='mass matrix is not positive definite in state 0'):
        light.forward(*np.zeros((3, 2, 3)))
