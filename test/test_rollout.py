"""Motion of the identified model: against an adaptive integrator, and at rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nominal import nominal_model
from scipy.integrate import solve_ivp
from tolerances import ROLLOUT

from robot_dynid.errors import UsageError


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
            (0.0, dt), state, rtol=1e-9, atol=1e-10).y[:, -1]
        assert q[0, t] == pytest.approx(state[:3], abs=ROLLOUT)
        assert qd[0, t] == pytest.approx(state[3:], abs=10 * ROLLOUT)


def test_many_trajectories_are_each_by_itself():
    model = nominal_model('planar_3r')
    rng = np.random.default_rng(2)
    q0, qd0 = rng.uniform(-1, 1, (2, 4, 3))
    effort = rng.normal(size=(4, 20, 3))
    q, qd = model.rollout(q0, qd0, effort, 0.005)
    assert q.shape == (4, 20, 3)
    for k in range(4):
        alone = model.rollout(q0[k], qd0[k], effort[k:k + 1], 0.005)
        assert q[k] == pytest.approx(alone[0][0]) and qd[k] == pytest.approx(alone[1][0])


@pytest.mark.parametrize('name', ['planar_3r', 'tx40'])
def test_robot_sticks_under_balanced_weight(name):
    model = nominal_model(name, rotors=0.01, coulomb=3.0)
    q0 = np.full(model.robot.n, 0.4)
    held = np.tile(model.gravity(q0), (1, 200, 1))
    q, qd = model.rollout(q0, np.zeros_like(q0), held, 0.01)
    assert np.abs(q - q0).max() < 1e-9
    assert np.abs(qd).max() < 1e-9


def test_effort_below_breakaway_only_creeps():
    model = nominal_model('planar_3r', rotors=0.01, coulomb=3.0)
    q0 = np.full(3, 0.4)
    held = np.tile(model.gravity(q0) + np.array([1.5, 0.0, 0.0]), (1, 100, 1))
    _, qd = model.rollout(q0, np.zeros(3), held, 0.01)
    assert 0.0 < qd[0, 20, 0] < 0.05  # half the ramp


@pytest.mark.parametrize('rotors', [0.01, 0.3])
@pytest.mark.parametrize('width', [0.0005, 0.005, 0.05])
@pytest.mark.parametrize('dt', [0.001, 0.01])
def test_moving_robot_comes_to_rest_without_chatter(rotors, width, dt):
    model = nominal_model('planar_3r', rotors=rotors, viscous=0.1, coulomb=2.0, width=width)
    rng = np.random.default_rng(3)
    q0, qd0 = np.full((5, 3), 0.2), rng.uniform(-1.0, 1.0, (5, 3))
    count = round(3.0 / dt)
    weightless = replace(model, robot=model.robot.with_gravity(np.zeros(3)))
    q, qd = weightless.rollout(q0, qd0, np.zeros((5, count, 3)), dt)
    speed = np.abs(qd)
    assert speed[:, -1].max() < 1e-3
    # once slow, no joint reverses again and again
    signs = np.sign(np.where(speed > 1e-4, qd, 0.0))
    reversals = np.sum(np.abs(np.diff(signs, axis=1)) == 2.0, axis=1)
    assert reversals.max() <= 3
    energy = 0.5 * np.einsum('kti,ktij,ktj->kt', qd, weightless.mass_matrix(
        q.reshape(-1, 3)).reshape(5, count, 3, 3), qd)
    assert np.all(np.diff(energy, axis=1) < 1e-3)


def test_bad_calls_are_named():
    model = nominal_model('planar_3r')
    good = np.zeros((1, 5, 3))
    with pytest.raises(UsageError, match='rollout needs states'):
        model.rollout(np.zeros(3), np.zeros(3), np.zeros((2, 5, 3)), 0.01)
    with pytest.raises(UsageError, match='velocity has shape'):
        model.rollout(np.zeros(3), np.zeros((2, 3)), good, 0.01)
    with pytest.raises(UsageError, match='not finite'):
        model.rollout(np.zeros(3), np.zeros(3), good * np.nan, 0.01)
    for dt in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match='step of a rollout'):
            model.rollout(np.zeros(3), np.zeros(3), good, dt)
