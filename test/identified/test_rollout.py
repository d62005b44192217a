"""Motion of the identified model: other integrators, MuJoCo, energy, limits, early ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from identified_models import nominal_model
from random_robots import random_urdf
from scipy.integrate import solve_ivp
from stepped_rollout import stepped_rollout
from tolerances import ENERGY_DRIFT, LATE_ORDER, PLANT_MOTION, ROLLOUT

from robot_dynid.dynamics import rollout
from robot_dynid.errors import Cancelled, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.kernels.rollout import EXPLICIT, IMPLICIT
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.model import Limits
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth, true_base


def true_model(robot, truth):
    """Return the model of ``robot`` with exactly the links, friction and rotors of ``truth``."""
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 0.01})
    reduction = structure.torque_model(robot).reduction
    values = true_base(robot, truth, reduction)
    return IdentifiedModel(robot, structure, reduction, values, values, values,
                           Preprocessing(10.0))


def test_smooth_motion_is_that_of_an_adaptive_integrator():
    model = nominal_model('planar_3r', viscous=0.5, coulomb=0.0)
    dt, count = 0.01, 50
    rng = np.random.default_rng(1)
    q0, qd0 = rng.uniform(-1, 1, (2, 3))
    effort = 3.0 * rng.normal(size=(count, 3))

    q, qd = model.rollout(q0, qd0, effort, dt)
    assert q.shape == qd.shape == (1, count, 3)
    state = np.concatenate([q0, qd0])
    for t in range(count):
        state = solve_ivp(
            lambda _, x, t=t: np.concatenate([x[3:], model.forward(x[:3], x[3:], effort[t])]),
            (0.0, dt), state, rtol=1e-10, atol=1e-12).y[:, -1]
        assert q[0, t] == pytest.approx(state[:3], abs=ROLLOUT)
        assert qd[0, t] == pytest.approx(state[3:], abs=10 * ROLLOUT)


def smooth_effort(model, q0, count, dt, rng):
    """Return efforts (K, count, n) that hold the weight at ``q0`` and swing around that."""
    time = dt * np.arange(count)
    waves = np.sin(2.0 * np.pi * np.outer([0.5, 1.0, 1.7], time) + rng.uniform(0, 6, (3, 1)))
    reach = np.einsum('kii->ki', model.mass_matrix(q0))[:, :, None]
    swing = np.einsum('kjh,ht->ktj', 2.0 * reach * rng.normal(size=(*q0.shape, 3)), waves)
    return model.gravity(q0)[:, None] + swing


def assert_moves_as_in_mujoco(robot, truth, rng):
    """Two seconds of smooth effort; MuJoCo takes four Runge-Kutta steps per step of ours."""
    model, plant = true_model(robot, truth), Plant(robot, truth)
    start = random_states(robot, 3, rng)
    q0, qd0 = 0.5 * start.position, 0.2 * start.velocity
    dt, count = 1e-3, 2000
    effort = smooth_effort(model, q0, count, dt, rng)
    q, qd = model.rollout(q0, qd0, effort, dt)
    assert np.ptp(q, axis=1).max() > 1.0
    assert np.abs(qd).max() > 1.0
    for k in range(len(q0)):
        plant.set_state(q0[k], qd0[k])
        for t in range(count):
            plant.step(effort[k, t])
        position, velocity = plant.state()
        assert np.abs(q[k, -1] - position).max() < PLANT_MOTION
        assert np.abs(qd[k, -1] - velocity).max() < PLANT_MOTION


@pytest.mark.parametrize('name', ['seven_axis', 'stanford_arm', 'tx40'])
def test_two_seconds_end_where_mujoco_ends(name):
    robot = load_robot(name)
    truth = Truth(np.full(robot.n, 2.0), np.zeros(robot.n), np.full(robot.n, 0.1))
    assert_moves_as_in_mujoco(robot, truth, np.random.default_rng(3))


@pytest.mark.parametrize('seed', range(6))
def test_two_seconds_of_random_trees_end_where_mujoco_ends(tmp_path: Path, seed: int):
    rng = np.random.default_rng(seed)
    path = tmp_path / 'random.urdf'
    while True:
        path.write_text(random_urdf(rng, 5, 0.4))
        robot = load_robot(str(path))
        if robot.nominal[:, 0].min() > 0.0:  # MuJoCo refuses moving bodies without mass
            break
    truth = Truth(np.full(robot.n, 3.0), np.zeros(robot.n), np.full(robot.n, 0.1))
    assert_moves_as_in_mujoco(robot, truth, rng)


def test_coefficients_meet_the_conditions_of_their_order():
    weights, explicit, implicit = IMPLICIT[-1], EXPLICIT.sum(axis=1), IMPLICIT.sum(axis=1)
    for product, value in (
        (weights @ np.ones(3), 1.0), (weights @ explicit, 1 / 2), (weights @ implicit, 1 / 2),
        (weights @ explicit**2, 1 / 3), (weights @ EXPLICIT @ explicit, 1 / 6),
        (weights @ (explicit * implicit), 1 / 3), (weights @ IMPLICIT @ explicit, 1 / 6),
    ):
        assert product == pytest.approx(value, abs=1e-14)
    rates = np.logspace(-3, 8, 2000)
    steps = np.array([1.0 - r * weights @ np.linalg.solve(np.eye(3) + r * IMPLICIT, np.ones(3))
                      for r in rates])
    assert steps[0] == pytest.approx(np.exp(-rates[0]), abs=1e-9)
    assert np.all(steps < 1.0)
    assert np.all(steps > -1e-9)  # rounding where the velocity is damped to nothing
    assert abs(steps[-1]) < 1e-6


@pytest.mark.parametrize(('viscous', 'order'), [(0.0, 3.0), (2.0, 2.0)])
def test_rollouts_converge_with_their_order(viscous, order):
    model = nominal_model('planar_3r', rotors=0.05, viscous=viscous, coulomb=0.0)
    q0, qd0 = np.array([0.3, -1.0, 0.7]), np.array([4.0, -6.0, 8.0])

    def end(dt):
        q, qd = model.rollout(q0, qd0, np.zeros((1, round(0.5 / dt), 3)), dt)
        return np.concatenate([q[0, -1], qd[0, -1]])

    best = end(1e-3 / 16)
    errors = [np.abs(end(1e-3 / part) - best).max() for part in (1, 2, 4)]
    for coarse, fine in pairwise(errors):
        assert np.log2(coarse / fine) > order - LATE_ORDER


def potential_energy(robot, q):
    """Return the potential energy (N,) of the nominal arm by Pinocchio."""
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    return np.array([pinocchio.computePotentialEnergy(model, data, row) for row in q])


def test_frictionless_arm_keeps_its_energy():
    robot = load_robot('seven_axis')
    model = true_model(robot, Truth.ideal(robot.n))
    rng = np.random.default_rng(5)
    q0 = rng.uniform(-1.0, 1.0, (4, robot.n))
    q, qd = model.rollout(q0, np.zeros_like(q0), np.zeros((4, 10_000, robot.n)), 1e-3)
    kinetic = np.array([0.5 * np.einsum('ti,tij,tj->t', v[::100], model.mass_matrix(p[::100]),
                                        v[::100]) for p, v in zip(q, qd, strict=True)])
    potential = np.array([potential_energy(robot, p[::100]) for p in q])
    energy = kinetic + potential
    assert kinetic.max() > 50.0
    assert np.abs(energy - energy[:, :1]).max() < ENERGY_DRIFT * kinetic.max()


def test_rollouts_in_tiles_of_any_filling_are_independent():
    model = nominal_model('planar_3r')
    rng = np.random.default_rng(2)
    count = 2 * LANES + 3
    q0, qd0 = rng.uniform(-1, 1, (2, count, 3))
    effort = 10.0 * rng.normal(size=(count, 20, 3))
    q, qd = model.rollout(q0, qd0, effort, 0.005)
    for k in (0, 1, LANES - 1, LANES, count - 1):
        alone = model.rollout(q0[k], qd0[k], effort[k:k + 1], 0.005)
        np.testing.assert_array_equal(q[k], alone.position[0])
        np.testing.assert_array_equal(qd[k], alone.velocity[0])


@pytest.mark.parametrize('piece', [
    LANES, 3 * LANES, 7 * LANES, 5 * 40 * LANES, 2 * 5 * 40 * LANES])
def test_pieces_of_a_rollout_make_up_the_whole(monkeypatch, piece):
    """Pieces of some tiles, of some samples and of some steps of a sample: bit for bit."""
    model = nominal_model('planar_3r')
    narrow = replace(model.robot.limits, lower=np.full(3, -1.1), upper=np.full(3, 1.1))
    model = replace(model, robot=replace(model.robot, limits=narrow))
    rng = np.random.default_rng(4)
    count, dt = 3 * LANES + 2, 0.005
    q0, qd0 = rng.uniform(-1, 1, (2, count, 3))
    effort = 20.0 * rng.normal(size=(count, 40, 3))
    effort[3, 17] = effort[LANES, 0] = 1e300
    monkeypatch.setattr(rollout, 'STEPS_AT_ONCE', 10**9)
    whole = model.rollout(q0, qd0, effort, dt)
    assert (whole.stop_step[[3, LANES]] == [17, 0]).all()
    assert len(set(whole.limit_step)) > 5
    monkeypatch.setattr(rollout, 'STEPS_AT_ONCE', piece)
    told = []
    found = model.rollout(q0, qd0, effort, dt, progress=lambda stage, part: told.append(part))
    for name in ('position', 'velocity', 'limit_step', 'limit_joint', 'stop_step', 'stop_cause'):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), name)
    work = 4 * LANES * 40 * 5
    assert len(told) >= work / piece
    assert (np.diff(told) > 0.0).all() and told[-1] == pytest.approx(1.0)


def test_an_error_of_the_progress_ends_a_rollout(monkeypatch):
    model, zeros = nominal_model('planar_3r'), np.zeros(3)
    monkeypatch.setattr(rollout, 'STEPS_AT_ONCE', 10 * LANES)
    told = []

    def end(stage, part):
        told.append(part)
        if len(told) == 3:
            raise Cancelled('enough')

    with pytest.raises(Cancelled):
        model.rollout(zeros, zeros, np.zeros((1, 1000, 3)), 1e-3, progress=end)
    assert told == pytest.approx([0.01, 0.02, 0.03])


def test_first_excess_of_a_joint_limit_is_named():
    model = nominal_model('planar_3r', coulomb=0.0)
    robot = model.robot
    unknown = np.full(3, np.nan)
    limits = Limits(np.array([-1.0, np.nan, -0.5]), np.array([1.0, np.nan, 0.5]), unknown, unknown,
                    unknown)
    model = replace(model, robot=replace(robot, limits=limits))
    rng = np.random.default_rng(6)
    q0, qd0 = rng.uniform(-0.4, 0.4, (2, 20, 3))
    effort = model.gravity(q0)[:, None] + np.tile(8.0 * rng.normal(size=(20, 1, 3)), (1, 400, 1))
    effort[0] = model.gravity(q0[0])
    qd0[0] = 0.0
    found = model.rollout(q0, qd0, effort, 1e-3)
    outside = (found.position < limits.lower) | (found.position > limits.upper)
    expected = np.where(outside.any(axis=(1, 2)), outside.any(axis=2).argmax(axis=1), -1)
    np.testing.assert_array_equal(found.limit_step, expected)
    assert found.limit_step[0] == found.limit_joint[0] == -1
    left = np.flatnonzero(expected >= 0)
    assert {0, 2} == set(found.limit_joint[left])
    for k in left:
        assert outside[k, expected[k], found.limit_joint[k]]
    assert (found.stop_step == -1).all()
    assert np.isfinite(found.position).all()
    (sentence,) = found.warnings
    first = left[0]
    assert sentence == (
        f'{len(left)} of 20 motions exceed the joint limits, first at '
        f'{model.joints[found.limit_joint[first]]} in motion {first}, sample {expected[first]}')


def indefinite_model():
    """Return a weightless, frictionless arm whose mass matrix is indefinite for small q3."""
    model = nominal_model('planar_3r', rotors=0.0, viscous=0.0, coulomb=0.0)
    values = model.values.copy()
    values[model.names.index('mx3')] *= 2.5
    broken = replace(model, values=values, robot=model.robot.with_gravity(np.zeros(3)))
    least = [np.linalg.eigvalsh(broken.mass_matrix([0.0, 0.0, x])).min() for x in (0.0, np.pi / 2)]
    assert least[0] < 0.0 < least[1]
    return broken


def test_motion_through_an_indefinite_mass_matrix_stops_alone():
    model = indefinite_model()
    q0 = np.array([[0.0, 0.0, np.pi / 2], [0.0, 0.0, 0.0], [0.0, 0.0, np.pi / 2]])
    qd0 = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -4.0]])
    found = model.rollout(q0, qd0, np.zeros((3, 500, 3)), 1e-3)
    assert found.stop_step[:2].tolist() == [-1, 0]
    assert 0 < found.stop_step[2] < 499
    for k, stop in enumerate(found.stop_step):
        end = 500 if stop < 0 else stop
        assert np.isfinite(found.position[k, :end]).all()
        assert np.isnan(found.position[k, end:]).all()
        assert np.isnan(found.velocity[k, end:]).all()
    last = found.position[2, found.stop_step[2] - 1]
    assert np.linalg.eigvalsh(model.mass_matrix(last)).min() < 0.05
    (sentence,) = found.warnings
    assert sentence.startswith(
        '2 of 3 motions stop, the first in motion 1, sample 0: the mass matrix is not')


@pytest.mark.parametrize('rollout', [IdentifiedModel.rollout, stepped_rollout])
def test_motion_beyond_all_numbers_stops_alone(rollout):
    model = nominal_model('planar_3r')
    q0, qd0 = np.zeros((2, 3)), np.zeros((2, 3))
    effort = np.zeros((2, 30, 3))
    effort[1, 4] = 1e300
    found = rollout(model, q0, qd0, effort, 1e-3)
    assert found.stop_step[0] == -1
    assert 4 <= found.stop_step[1] < 8
    assert np.isnan(found.position[1, found.stop_step[1]:]).all()
    alone = rollout(model, q0[:1], qd0[:1], effort[:1], 1e-3)
    np.testing.assert_array_equal(found.position[0], alone.position[0])
    assert found.warnings[-1] == (
        '1 of 2 motions stop, the first in motion 1, sample 4: the state overflows: check the '
        'units of the efforts')


def test_bad_calls_are_named():
    model = nominal_model('planar_3r')
    good = np.zeros((1, 5, 3))
    with pytest.raises(UsageError, match='rollout needs states'):
        model.rollout(np.zeros(3), np.zeros(3), np.zeros((2, 5, 3)), 0.01)
    with pytest.raises(UsageError, match='velocity has shape'):
        model.rollout(np.zeros(3), np.zeros((2, 3)), good, 0.01)
    with pytest.raises(UsageError, match='not finite'):
        model.rollout(np.zeros(3), np.zeros(3), good * np.nan, 0.01)
    for dt in (0.0, -1.0, np.nan, np.inf, 1e308, 60.1):
        with pytest.raises(UsageError, match=r'step .* must be above zero and at most 60 s, is '):
            model.rollout(np.zeros(3), np.zeros(3), good, dt)
