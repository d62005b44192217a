"""effects/joint_friction.py: friction of all axes: its load, temperature, shares and matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import axes_of
from robot_dynid.effects.joint_friction import (
    JointFriction,
    Load,
    filter_columns,
    low_pass_columns,
)
from robot_dynid.friction import Coulomb, law_from
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import TOGETHER, FloatArray, Samples

#: motion of the third motor: no joint by itself
ROW = np.array([0.0, -0.5, 2.0])
COUPLING = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], ROW])


def coupled() -> RobotModel:
    robot = load_robot('planar_3r')
    return replace(robot, drive=replace(robot.drive, coupling=COUPLING))


def block_of(robot: RobotModel, laws: str = 'coulomb', load: Load | None = None) -> JointFriction:
    axes = axes_of(robot)
    return JointFriction(axes, tuple(law_from(laws) for _ in axes.labels), load)


def test_load_is_the_effort_of_links_and_of_coupled_motors() -> None:
    robot = coupled()
    links = np.random.default_rng(1).normal(size=(3, 10))
    load, states = Load(robot, axes_of(robot), links), random_states(
        robot, 5, np.random.default_rng(2))
    motion = states.position, states.velocity, states.acceleration
    effort = rigid_body.inverse_dynamics(robot, *motion, links)
    motor = effort @ np.linalg.inv(COUPLING)  # joint effort = C^T motor effort
    np.testing.assert_allclose(load(*motion), np.column_stack([effort, motor[:, 2]]), rtol=1e-12)
    plain = replace(load, robot=load_robot('planar_3r'))
    np.testing.assert_array_equal(plain.transmitted(effort), effort)


def test_motions_have_load_less_external_torque_and_temperature_by_shares() -> None:
    robot, rng = coupled(), np.random.default_rng(3)
    load = Load(robot, axes_of(robot), rng.normal(size=(3, 10)))
    states = random_states(robot, 5, rng)
    warm, external = 20.0 + rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    states = replace(states, temperature=warm, external=external)
    block = block_of(robot, 'coulomb', load)
    motions = list(block.motions(states))
    bare = load(states.position, states.velocity, states.acceleration)
    expected = bare - load.transmitted(external)
    assert len(motions) == 4
    for i, motion in enumerate(motions):
        np.testing.assert_allclose(motion.load, expected[:, i], rtol=1e-12)
    np.testing.assert_allclose(motions[1].temperature, warm[:, 1], rtol=1e-12)
    np.testing.assert_allclose(motions[3].temperature, 0.2 * warm[:, 1] + 0.8 * warm[:, 2])
    np.testing.assert_allclose(motions[3].velocity, states.velocity @ ROW)
    np.testing.assert_allclose(motions[3].position, states.position @ ROW)
    inside = list(block.motions(replace(states, external=None), (2,)))
    assert len(inside) == 1
    np.testing.assert_allclose(inside[0].load, bare[:, 2], rtol=1e-12)
    plain = next(block_of(robot).motions(replace(states, temperature=None)))
    assert plain.load is None and plain.temperature is None


def test_history_of_some_axes_is_that_part_of_all() -> None:
    robot = coupled()
    block = block_of(robot, 'stribeck')
    samples = motion(robot, 50)
    whole, owners = block.history(samples), np.array(block.owners)
    np.testing.assert_array_equal(block.history(samples, (3, 1)), np.concatenate(
        [whole[owners == 3], whole[owners == 1]]))
    assert block.kinds == tuple(kind for _ in range(4) for kind in law_from('stribeck').kinds)


def test_holding_has_dry_friction_in_the_rows_of_its_axis() -> None:
    block = block_of(coupled())
    names = block.names
    expected = np.zeros((3, len(names)))
    for row in range(3):
        expected[row, names.index(f'fc{row + 1}')] = 1.0
    expected[:, names.index('fcm3')] = np.abs(ROW)
    others = np.array([not name.startswith('f0') for name in names])
    np.testing.assert_array_equal(block.holding[:, others], expected[:, others])


def test_friction_with_a_law_too_few_is_refused() -> None:
    block = block_of(coupled())
    few = replace(block, laws=block.laws[:-1])
    for use in (lambda: few.names, lambda: few.holding,
                lambda: few.with_values(dict.fromkeys(block.names, 1.0))):
        with pytest.raises(ValueError, match='shorter'):
            use()


def motion(robot: RobotModel, count: int, cutoff: float | None = None) -> Samples:
    """Return a smooth motion of ``count`` samples at 100 Hz."""
    time = 0.01 * np.arange(count)
    phase = np.outer(time, 1.0 + 0.3 * np.arange(robot.n))
    return Samples(robot.joints, time, np.sin(phase), np.cos(phase), -np.sin(phase),
                   cutoff=cutoff)


def test_generic_history_replaces_odd_columns_by_noise_and_keeps_the_others() -> None:
    robot = load_robot('planar_3r')
    block, samples = block_of(robot), motion(robot, 400)
    history, generic = block.history(samples), block.generic(samples)
    offsets = np.array([name.startswith('f0') for name in block.names])
    np.testing.assert_array_equal(generic[offsets], history[offsets])
    noise = generic[~offsets]
    assert np.abs(noise).max() < 1.0
    np.testing.assert_allclose(noise @ noise.T / 400.0, np.eye(len(noise)) / 3.0,
                               rtol=0.0, atol=0.06)


def test_separable_history_is_replaced_where_an_axis_slides_steadily() -> None:
    robot = load_robot('planar_3r')
    block, samples = block_of(robot), motion(robot, 60)
    speeds = samples.velocity.copy()
    speeds[:, 0] = np.linspace(-0.5, 0.7, 60)
    speeds[:, 1] = 0.4  # viscous and dry friction are alike, and like the offset
    speeds[:20, 1] = 0.0
    speeds[:, 2] = 0.0
    samples = replace(samples, velocity=speeds)
    history, generic = block.history(samples), block.generic(samples)
    separable, owners = block.separable(samples), np.array(block.owners)
    np.testing.assert_array_equal(separable[owners != 1], history[owners != 1])
    np.testing.assert_array_equal(separable[owners == 1, :20], history[owners == 1, :20])
    np.testing.assert_array_equal(separable[owners == 1, 20:], generic[owners == 1, 20:])
    assert np.any(generic[owners == 1, 20:] != history[owners == 1, 20:])


@pytest.mark.parametrize('sizes', [(1,), (5, 30, 7), (2 * TOGETHER + 3,), (TOGETHER, 1)])
def test_filter_columns_filters_any_groups_like_one(sizes: tuple[int, ...]) -> None:
    robot = load_robot('planar_3r')
    samples = motion(robot, 90, 6.0)
    table = np.random.default_rng(4).normal(size=(sum(sizes), 90))
    parts = np.split(table, np.cumsum(sizes)[:-1])
    expected = zero_phase_low_pass(table.T, 6.0, 0.01).T
    np.testing.assert_allclose(filter_columns(samples, lambda _: parts, len(table)), expected,
                               rtol=1e-12, atol=1e-12)
    inner = samples.inner(np.arange(90) % 90 >= 70)
    np.testing.assert_allclose(filter_columns(inner, lambda _: parts, len(table)),
                               expected[:, 70:], rtol=1e-12, atol=1e-12)


def test_low_pass_columns_filters_segments_apart_with_their_own_steps() -> None:
    robot = load_robot('planar_3r')
    samples = motion(robot, 91, 6.0)
    time = np.concatenate([0.01 * np.arange(40.0), [3.0], 5.0 + 0.02 * np.arange(50.0)])
    samples = replace(samples, time=time, starts=(0, 40, 41))
    table: FloatArray = np.random.default_rng(5).normal(size=(2, 91))
    found = low_pass_columns(table, samples)
    np.testing.assert_allclose(found[:, :40], zero_phase_low_pass(table[:, :40].T, 6.0, 0.01).T)
    np.testing.assert_array_equal(found[:, 40], table[:, 40])
    step = float(time[42] - time[41])
    assert step == pytest.approx(0.02)
    np.testing.assert_allclose(found[:, 41:], zero_phase_low_pass(table[:, 41:].T, 6.0, step).T)
    assert low_pass_columns(table, replace(samples, cutoff=None)) is table


def test_kernel_columns_of_chosen_parameters_act_in_the_rows_of_their_axis() -> None:
    robot = coupled()
    block, samples = block_of(robot), motion(robot, 8)
    history, names = block.history(samples), block.names
    chosen = np.array([names.index('fc2'), names.index('fvm3')])
    out = np.zeros((3, 2, 8))
    block.fill(samples, history, chosen, out)
    np.testing.assert_allclose(out[1, 0], history[chosen[0]])
    assert not out[[0, 2], 0].any()
    np.testing.assert_allclose(out[:, 1], np.outer(ROW, history[chosen[1]]))


def test_with_values_takes_the_parameters_of_every_axis_by_name() -> None:
    block = JointFriction(axes_of(coupled()), tuple(Coulomb(0.05) for _ in range(4)))
    values = {name: 1.0 + i for i, name in enumerate(block.names)}
    velocity = np.array([[0.3, -0.4, 0.5]])
    found = block.with_values(values)
    samples = Samples(('a', 'b', 'c'), np.zeros(1), np.zeros((1, 3)), velocity, np.zeros((1, 3)))
    history = block.history(samples)
    out = np.zeros((3, len(block.names), 1))
    block.fill(samples, history, np.arange(len(block.names)), out)
    expected = np.einsum('rkn,k->nr', out, list(values.values()))
    np.testing.assert_allclose(found.torque(velocity), expected, rtol=1e-12)
