"""The dynamics against an independent slow reference and against their own properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import slow_dynamics
from robot_descriptions import own_robots
from tolerances import DIFFERENCE, LARGE_ANGLE, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import UsageError
from robot_dynid.kernels import single_state
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

SIZES = (1, 15, 16, 17, 31, 32, 33, 1000)


@pytest.fixture(scope='module')
def arm() -> RobotModel:
    return load_robot('seven_axis')


def motion(robot: RobotModel, count: int, seed: int = 0) -> tuple[FloatArray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(count, robot.n)) * scale for scale in (2.0, 1.0, 3.0))


@pytest.mark.parametrize('name', own_robots())
def test_agrees_with_lagrange_in_plain_numpy(name: str) -> None:
    robot = load_robot(name).with_gravity([1.0, -2.0, -9.0])
    q, v, a = motion(robot, 2)
    expected = np.array([slow_dynamics.inverse_dynamics(robot, *s) for s in zip(q, v, a)])
    found = rigid_body.inverse_dynamics(robot, q, v, a)
    assert np.abs(found - expected).max() < SAME_FORMULA * np.abs(expected).max()
    mass = np.array([slow_dynamics.mass_matrix(robot, s) for s in q])
    assert np.allclose(rigid_body.mass_matrix(robot, q), mass, rtol=0.0, atol=SAME_FORMULA)


@pytest.mark.parametrize('count', SIZES)
def test_result_of_a_sample_does_not_depend_on_the_batch(arm: RobotModel, count: int) -> None:
    q, v, a = motion(arm, count)
    batch = rigid_body.inverse_dynamics(arm, q, v, a)
    mass, columns = rigid_body.mass_matrix(arm, q), rigid_body.regressor(arm, (q, v, a))
    forward, pivots = rigid_body.forward_dynamics(arm, (q, v, a))
    assert np.all(pivots > 0.0)
    for s in {0, count // 2, count - 1}:
        one = (q[s:s + 1], v[s:s + 1], a[s:s + 1])
        assert np.array_equal(rigid_body.inverse_dynamics(arm, *one)[0], batch[s])
        assert np.array_equal(rigid_body.mass_matrix(arm, one[0])[0], mass[s])
        assert np.array_equal(rigid_body.regressor(arm, one)[..., 0], columns[..., s])
        assert np.array_equal(rigid_body.forward_dynamics(arm, one)[0][0], forward[s])


def test_no_samples_give_empty_results(arm: RobotModel) -> None:
    none = np.zeros((0, 7))
    assert rigid_body.inverse_dynamics(arm, none, none, none).shape == (0, 7)
    assert rigid_body.mass_matrix(arm, none).shape == (0, 7, 7)
    assert rigid_body.regressor(arm, (none, none, none)).shape == (7, 70, 0)
    assert rigid_body.forward_dynamics(arm, (none, none, none))[0].shape == (0, 7)


def test_regressor_returns_any_subset_of_columns_in_any_order(arm: RobotModel) -> None:
    state = motion(arm, 33)
    full = rigid_body.regressor(arm, state)
    rng = np.random.default_rng(1)
    for count in (1, 2, 11, 43, 69, 70):
        chosen = rng.permutation(70)[:count]
        assert np.array_equal(rigid_body.regressor(arm, state, chosen), full[:, chosen])
    filled = np.zeros((7, 3, 33))
    assert rigid_body.regressor(arm, state, np.array([5, 0, 69]), filled) is filled
    assert np.array_equal(filled, full[:, [5, 0, 69]])


def test_regressor_leaves_joints_that_do_not_carry_a_link_at_zero(arm: RobotModel) -> None:
    columns = rigid_body.regressor(arm, motion(arm, 5)).reshape(7, 7, 10, 5)
    for i in range(7):
        assert np.any(columns[i, i] != 0.0)
        assert np.all(columns[i, :i] == 0.0)


def test_stacked_is_the_tall_matrix(arm: RobotModel) -> None:
    q, v, a = motion(arm, 6)
    tall = rigid_body.stacked(rigid_body.regressor(arm, (q, v, a)))
    effort = rigid_body.inverse_dynamics(arm, q, v, a)
    assert np.allclose(tall @ arm.nominal.ravel(), effort.ravel(), atol=1e-9)


@pytest.mark.parametrize('name', own_robots())
def test_mass_matrix_is_symmetric_and_definite(name: str) -> None:
    robot = load_robot(name)
    mass = rigid_body.mass_matrix(robot, motion(robot, 50)[0])
    assert np.array_equal(mass, mass.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(mass).min() > 0.0


def test_forward_dynamics_adds_rotor_inertia(arm: RobotModel) -> None:
    q, v, effort = motion(arm, 20)
    rotors = np.diag(np.linspace(0.1, 0.9, 7))
    rotors[2, 4] = rotors[4, 2] = 0.05
    found, _ = rigid_body.forward_dynamics(arm, (q, v, effort), rotors=rotors)
    again = rigid_body.inverse_dynamics(arm, q, v, found) + found @ rotors
    assert np.allclose(again, effort, rtol=0.0, atol=1e-9)


def test_forward_dynamics_reports_an_indefinite_mass_matrix(arm: RobotModel) -> None:
    parameters = arm.nominal.copy()
    parameters[6, 9] = -1.0
    _, pivots = rigid_body.forward_dynamics(arm, motion(arm, 9), parameters)
    assert np.all(pivots < 0.0)


def test_power_is_the_rate_of_the_energy(arm: RobotModel) -> None:
    q, v, a = motion(arm, 8)

    def energy(t: float) -> FloatArray:
        position, velocity = q + v * t + a * t * t / 2.0, v + a * t
        mass = rigid_body.mass_matrix(arm, position)
        kinetic = 0.5 * np.einsum('si,sij,sj->s', velocity, mass, velocity)
        return kinetic + np.array([slow_dynamics.potential(arm, s) for s in position])

    step = 1e-5
    rate = (energy(step) - energy(-step)) / (2.0 * step)
    power = np.einsum('si,si->s', rigid_body.inverse_dynamics(arm, q, v, a), v)
    assert np.allclose(power, rate, rtol=0.0, atol=DIFFERENCE * np.abs(power).max())


def test_gravity_effort_is_the_slope_of_the_potential() -> None:
    robot = load_robot('stanford_arm').with_gravity([3.0, 5.0, -7.0])
    q = motion(robot, 3)[0]
    for j in range(robot.n):
        ahead, back = q.copy(), q.copy()
        ahead[:, j] += 1e-5
        back[:, j] -= 1e-5
        slope = np.array([slow_dynamics.potential(robot, x) - slow_dynamics.potential(robot, y)
                          for x, y in zip(ahead, back)]) / 2e-5
        assert np.allclose(rigid_body.gravity_effort(robot, q)[:, j], slope, rtol=0.0,
                           atol=100.0 * DIFFERENCE)


def test_large_angles_keep_the_accuracy_of_numpy() -> None:
    # A pendulum about y: its gravity effort is -m g c sin q with m c g = 1.
    arm = load_robot('planar_3r')
    single = replace(
        arm, joints=('a',), types=arm.types[:1], parents=arm.parents[:1],
        rotations=np.eye(3)[None], translations=np.zeros((1, 3)), axes=np.array([[0.0, 1.0, 0.0]]),
        bodies=('b',), nominal=np.array([[1.0, 0.0, 0.0, 1.0] + [0.0] * 6]),
        gravity=np.array([0.0, 0.0, -1.0]),
    )
    rng = np.random.default_rng(2)
    exact = np.arange(-40, 41) * np.pi / 4.0
    angles = np.concatenate([exact, rng.uniform(-1e4, 1e4, 20000)])[:, None]
    found = rigid_body.gravity_effort(single, angles)
    assert np.abs(found + np.sin(angles)).max() < LARGE_ANGLE
    sideways = single.with_gravity([1.0, 0.0, 0.0])
    assert np.abs(rigid_body.gravity_effort(sideways, angles) + np.cos(angles)).max() < LARGE_ANGLE


def test_not_a_number_stays_in_its_sample(arm: RobotModel) -> None:
    q, v, a = motion(arm, 20)
    clean = rigid_body.inverse_dynamics(arm, q, v, a)
    q[7, 3] = np.nan
    found = rigid_body.inverse_dynamics(arm, q, v, a)
    assert np.isnan(found[7]).any()
    assert np.array_equal(np.delete(found, 7, axis=0), np.delete(clean, 7, axis=0))


def test_wrong_shapes_are_refused(arm: RobotModel) -> None:
    right = np.zeros((3, 7))
    for wrong in (np.zeros(7), np.zeros((3, 6)), np.zeros((2, 7))):
        with pytest.raises(UsageError, match=r'seven_axis must all be \(N, 7\)'):
            rigid_body.inverse_dynamics(arm, right, right, wrong)


def test_inputs_of_any_layout_give_the_same(arm: RobotModel) -> None:
    q, v, a = motion(arm, 40)
    expected = rigid_body.inverse_dynamics(arm, q, v, a)
    assert np.array_equal(rigid_body.inverse_dynamics(arm, np.asfortranarray(q), v, a), expected)
    assert np.array_equal(rigid_body.inverse_dynamics(arm, q[::2], v[::2], a[::2]), expected[::2])
    single = rigid_body.inverse_dynamics(arm, q.astype(np.float32), v, a)
    assert np.allclose(single, expected, atol=1e-3)


def test_arrays_of_every_kind_give_the_same(arm: RobotModel) -> None:
    """Of any alignment, read-only, with gaps between rows, and parameters as a list."""
    rng, count = np.random.default_rng(3), single_state.FEW + 1
    shifted = np.zeros(8 * 7 * count + 1, np.uint8)[1:].view(np.float64).reshape(count, 7)
    shifted[:] = rng.normal(size=(count, 7))
    read_only = rng.normal(size=(count, 7))
    read_only.flags.writeable = False
    plain = np.array(read_only), np.array(shifted)
    for q in (read_only, shifted, rng.normal(size=(2 * count, 7))[::2]):
        own = np.array(q)
        for parameters in (None, arm.nominal.copy(), list(arm.nominal.ravel())):
            assert np.array_equal(
                rigid_body.inverse_dynamics(arm, q, read_only, shifted, parameters),
                rigid_body.inverse_dynamics(arm, own, *plain))
            assert np.array_equal(rigid_body.mass_matrix(arm, q, parameters),
                                  rigid_body.mass_matrix(arm, own))
            accelerations, _ = rigid_body.forward_dynamics(
                arm, (q, read_only, shifted), parameters, np.eye(7))
            assert np.array_equal(accelerations, rigid_body.forward_dynamics(
                arm, (own, *plain), None, np.eye(7))[0])
        expected = rigid_body.regressor(arm, (own, *plain))
        assert np.array_equal(rigid_body.regressor(arm, (q, read_only, shifted)), expected)
        out = np.zeros((arm.n, 10 * arm.n + 5, count))[:, :-5]
        assert np.array_equal(
            rigid_body.regressor(arm, (q, read_only, shifted), out=out), expected)


def test_hash_depends_on_geometry_and_gravity_only(arm: RobotModel) -> None:
    assert arm.hash() == load_robot('seven_axis').hash()
    assert arm.with_nominal(2.0 * arm.nominal).hash() == arm.hash()
    assert arm.with_gravity([0.0, 0.0, 9.81]).hash() != arm.hash()
    assert load_robot('ur10e').hash() != arm.hash()
