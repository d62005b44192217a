"""dynamics/rollout.py: motion with dry friction: sticking, creeping, braking, coupled motors,
other laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model, with_law
from scipy.integrate import solve_ivp
from stepped_rollout import stepped_rollout
from tolerances import ROLLOUT, STEPPED

from robot_dynid.friction import ADDITIONS, LAWS


@pytest.mark.parametrize('name', ['planar_3r', 'tx40'])
@pytest.mark.parametrize('dt', [1e-4, 1e-3, 0.01, 0.1])
def test_robot_sticks_under_balanced_weight(name, dt):
    model = nominal_model(name, rotors=0.01, coulomb=3.0)
    q0 = np.full(model.robot.n, 0.4)
    held = np.tile(model.gravity(q0), (1, 20, 1))
    q, qd = model.rollout(q0, np.zeros_like(q0), held, dt)
    assert np.abs(q - q0).max() < 1e-9
    assert np.abs(qd).max() < 1e-9


@pytest.mark.parametrize('width', [1e-5, 1e-3, 0.02])
@pytest.mark.parametrize('dt', [2e-4, 1e-3, 0.01])
@pytest.mark.parametrize('rotors', [1e-3, 0.3])
def test_loaded_joint_creeps_as_the_ramp_says_and_no_more(width, dt, rotors):
    model = nominal_model('planar_3r', rotors=rotors, viscous=0.0, coulomb=3.0, width=width)
    weightless = replace(model, robot=model.robot.with_gravity(np.zeros(3)))
    load = np.array([2.7, -1.5, 0.3])
    count = round(0.2 / dt)
    q, qd = weightless.rollout(np.zeros(3), np.zeros(3), np.tile(load, (1, count, 1)), dt)
    creep = width * load / 3.0
    np.testing.assert_allclose(qd[0, -1], creep, rtol=2e-2, atol=1e-9)
    assert np.all(q * load >= 0.0)
    # never faster than the creep but for the turning of the links by the others
    assert np.all(np.abs(qd) <= 3.0 * width)
    assert np.all(np.abs(q[0, -1]) <= 0.2 * 3.0 * width)


def one_joint(inertia, coulomb, width, viscous=0.0):
    """Return a weightless single axis, the last joint of an arm held by its friction."""
    model = nominal_model('planar_3r', rotors=0.0, viscous=viscous, coulomb=coulomb, width=width)
    values = np.zeros_like(model.values)
    for name, value in (('Izz1', 1e9), ('Izz2', 1e9), ('Izz3', inertia)):
        values[model.names.index(name)] = value
    for i in (1, 2, 3):
        values[model.names.index(f'fv{i}')] = viscous
        values[model.names.index(f'fc{i}')] = coulomb
    return replace(model, values=values, robot=model.robot.with_gravity(np.zeros(3)))


@pytest.mark.parametrize('load', [0.0, 0.5, -0.5, 0.95, -0.95])
def test_table_of_one_axis_braked_from_any_speed(load):
    # speed in units of what friction takes off in a step; the ramp is far steeper than a step
    inertia, coulomb, h = 0.01, 2.0, 1e-3
    model = one_joint(inertia, coulomb, 1e-7)
    unit = h * coulomb / inertia
    start = np.linspace(-3.0, 3.0, 241) * unit
    qd0 = np.zeros((len(start), 3))
    qd0[:, 2] = start
    effort = np.zeros((len(start), 200, 3))
    effort[:, :, 2] = load * coulomb
    _, qd = model.rollout(np.zeros_like(qd0), qd0, effort, h)
    speed = np.abs(np.concatenate([start[:, None], qd[:, :, 2]], axis=1))
    push = unit * abs(load)
    assert np.all(np.diff(speed, axis=1) <= push + 1e-6)
    if load == 0.0:
        assert np.all(np.diff(speed, axis=1) <= 1e-9)
    assert speed[:, -1].max() <= 1.01e-7  # within the ramp


@pytest.mark.parametrize('rotors', [0.001, 0.01, 0.3])
@pytest.mark.parametrize('width', [1e-5, 0.0005, 0.005, 0.05])
@pytest.mark.parametrize('dt', [2.5e-4, 0.001, 0.01])
def test_moving_robot_comes_to_rest_without_chatter(rotors, width, dt):
    model = nominal_model('planar_3r', rotors=rotors, viscous=0.1, coulomb=2.0, width=width)
    rng = np.random.default_rng(3)
    q0, qd0 = np.full((5, 3), 0.2), rng.uniform(-1.0, 1.0, (5, 3))
    count = round(3.0 / dt)
    weightless = replace(model, robot=model.robot.with_gravity(np.zeros(3)))
    q, qd = weightless.rollout(q0, qd0, np.zeros((5, count, 3)), dt)
    speed = np.abs(qd)
    assert speed[:, -1].max() < 1e-3
    assert most_reversals(qd) <= 3
    energy = 0.5 * np.einsum('kti,ktij,ktj->kt', qd, weightless.mass_matrix(
        q.reshape(-1, 3)).reshape(5, count, 3, 3), qd)
    assert np.all(np.diff(energy, axis=1) < 1e-5)


def most_reversals(qd, slow=1e-4):
    """Return the largest number of changes of direction of a joint, slow creeping left out."""
    signs = np.sign(np.where(np.abs(qd) > slow, qd, 0.0))
    most = 0
    for track in signs.transpose(0, 2, 1).reshape(-1, qd.shape[1]):
        moving = track[track != 0.0]
        most = max(most, int(np.sum(moving[1:] != moving[:-1])))
    return most


@pytest.mark.parametrize('name', ['tx40', 'seven_axis', 'stanford_arm'])
def test_light_joints_and_coupled_motors_do_not_chatter(name):
    model = nominal_model(name, rotors=0.001, viscous=0.1, coulomb=6.0, width=0.005)
    weightless = replace(model, robot=model.robot.with_gravity(np.zeros(3)))
    n = model.robot.n
    rng = np.random.default_rng(4)
    q0, qd0 = np.full((16, n), 0.2), rng.uniform(-1.0, 1.0, (16, n))
    found = weightless.rollout(q0, qd0, np.zeros((16, 3000, n)), 1e-3)
    assert np.abs(found.velocity[:, -1]).max() < 1e-3
    assert most_reversals(found.velocity) <= 6


def test_resolved_ramp_and_negative_coefficients_follow_an_adaptive_integrator():
    model = nominal_model('planar_3r', rotors=0.05, viscous=0.3, coulomb=1.0, width=0.5)
    values = model.values.copy()
    values[model.names.index('fc2')] = -0.4
    values[model.names.index('f03')] = 0.7
    model = replace(model, values=values)
    rng = np.random.default_rng(8)
    q0, qd0 = rng.uniform(-1, 1, (2, 3))
    effort = np.tile(model.gravity(q0) + 2.0 * rng.normal(size=3), (1, 400, 1))
    q, qd = model.rollout(q0, qd0, effort, 2.5e-4)
    end = solve_ivp(
        lambda _, x: np.concatenate([x[3:], model.forward(x[:3], x[3:], effort[0, 0])]),
        (0.0, 0.1), np.concatenate([q0, qd0]), rtol=1e-10, atol=1e-12, max_step=1e-4).y[:, -1]
    assert q[0, -1] == pytest.approx(end[:3], abs=10 * ROLLOUT)
    assert qd[0, -1] == pytest.approx(end[3:], abs=100 * ROLLOUT)


NAMES = [*LAWS, *(f'{law}+{added}' for law in LAWS for added in ADDITIONS),
         'maxwell+levelling+load+drift+temperature', 'stribeck+load+breakaway']


@pytest.mark.parametrize(('name', 'law'), [*(('planar_3r', law) for law in NAMES), *(
    ('elastic_2r', law) for law in (*LAWS, *(f'maxwell+{a}' for a in ADDITIONS)))])
def test_every_law_moves_as_step_by_step(name, law):
    model, rng = with_law(name, law), np.random.default_rng(9)
    n = model.robot.n
    q, qd = rng.uniform(-0.5, 0.5, (2, 5, n))
    qd[0] = 0.0
    sway = np.cos(np.arange(8))[None, :, None] * rng.normal(size=(5, 1, n))
    effort = model.gravity(q)[:, None] + 20.0 * sway
    motors = (q, qd) if model.robot.drive.elastic else None
    found = model.rollout(q, qd, effort, 2e-3, motors)
    again = stepped_rollout(model, q, qd, effort, 2e-3, motors)
    turned = found.velocity[:, 1:] * found.velocity[:, :-1] < 0.0
    assert np.any(turned) or name == 'elastic_2r'  # some reverse
    np.testing.assert_allclose(found.position, again.position, rtol=0.0, atol=STEPPED)
    np.testing.assert_allclose(found.velocity, again.velocity, rtol=0.0, atol=100.0 * STEPPED)


@pytest.mark.parametrize('law', ['coulomb', 'stribeck+load', 'maxwell+load'])
def test_motors_that_turn_two_joints_move_as_step_by_step(law):
    model, rng = with_law('tx40', law, 1.0), np.random.default_rng(9)
    q, qd = rng.uniform(-0.5, 0.5, (2, 3, 6))
    effort = model.gravity(q)[:, None] + 3.0 * rng.normal(size=(3, 10, 6))
    found = model.rollout(q, qd, effort, 2e-3)
    again = stepped_rollout(model, q, qd, effort, 2e-3)
    np.testing.assert_allclose(found.position, again.position, rtol=0.0, atol=STEPPED)
    for event in ('limit_step', 'limit_joint', 'stop_step', 'stop_cause'):
        np.testing.assert_array_equal(getattr(found, event), getattr(again, event))
