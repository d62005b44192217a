"""effects/: the contract of every block and every friction law, and their own physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import (
    CHOSEN,
    Effect,
    GearEffects,
    Hysteresis,
    JointFriction,
    KinematicError,
    RigidLinks,
    RotorInertia,
    Springs,
    axes_of,
)
from robot_dynid.errors import ModelError
from robot_dynid.estimation.experiment import Regression, TorqueModel, chunks
from robot_dynid.friction import AxisMotion, Coulomb
from robot_dynid.identified.structure import Structure
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.types import Samples

ROBOTS = ('planar_3r', 'stanford_arm', 'tx40')
BLOCKS = {'rigid': RigidLinks, 'rotor_inertia': RotorInertia, 'friction': JointFriction,
          'springs': Springs, 'kinematic_error': KinematicError, 'hysteresis': Hysteresis,
          **CHOSEN}


def with_gears(name):
    """Return a robot whose first two joints are elastic, the second with a torque sensor."""
    robot = load_robot(name)
    return replace(robot, drive=replace(robot.drive, elastic=(0, 1), torque_sensors=(1,),
                                        gear_ratios=np.full(robot.n, 100.0)))


def parts_of(kind, robot, taken=()):
    """Return a part of a chosen effect at each of the joints that may have one, but ``taken``."""
    groups = [CHOSEN[kind].candidates(robot, joint) for joint in range(robot.n)
              if joint not in taken]
    return tuple(own[-1][-1] for own in groups if own)


def built(kind, robot):
    """Return a block for a robot."""
    axes = axes_of(robot)
    if kind in CHOSEN:
        return CHOSEN[kind](robot, parts_of(kind, robot))
    if kind in ('rigid', 'springs'):
        return BLOCKS[kind](robot)
    if kind == 'friction':
        return BLOCKS[kind](axes, tuple(Coulomb(0.05) for _ in axes.labels))
    if kind in ('kinematic_error', 'hysteresis'):
        effects = GearEffects((3e-5, 4e-5), (1e-3, 0.1))
        return BLOCKS[kind](robot, Springs(robot).gears, (effects, effects))
    return BLOCKS[kind](axes)


def columns(block, samples, chosen=None, rows=None):
    """Return the columns (rows, k, N) of a block."""
    chosen = np.arange(len(block.names)) if chosen is None else np.asarray(chosen)
    out = np.zeros((rows or len(samples.joints), len(chosen), len(samples)))
    block.fill(samples, block.history(samples), chosen, out)
    return out


def motion(robot, count=1000, cutoff=None):
    """Return a smooth motion of ``count`` samples at 100 Hz."""
    time = np.arange(count) * 0.01
    rate = 1.0 + 0.3 * np.arange(robot.n)
    phase = np.outer(time, rate)
    moved = [*range(robot.n), *robot.drive.elastic]
    return Samples(robot.joints, time, np.sin(phase)[:, moved], (rate * np.cos(phase))[:, moved],
                   (-rate**2 * np.sin(phase))[:, moved], cutoff=cutoff)


@pytest.mark.parametrize('kind', BLOCKS)
@pytest.mark.parametrize('name', ROBOTS)
def test_chosen_columns_are_those_of_all(kind, name):
    robot = with_gears(name)
    block = built(kind, robot)
    states = random_states(robot, 30, np.random.default_rng(1))
    assert len(set(block.names)) == len(block.names)
    full = columns(block, states, rows=robot.rows)
    assert np.isfinite(full).all()
    assert np.any(full) or kind == 'hysteresis' or not block.names  # it has a past
    chosen = np.random.default_rng(2).permutation(len(block.names))[:5]
    chosen = np.sort(chosen)
    assert columns(block, states, chosen, robot.rows) == pytest.approx(full[:, chosen])


@pytest.mark.parametrize('kind', BLOCKS)
def test_chunks_give_what_the_whole_gives(kind):
    robot = with_gears('tx40')
    block = built(kind, robot)
    samples = motion(robot, cutoff=8.0)
    whole, history = columns(block, samples, rows=robot.rows), block.history(samples)
    assert history.shape[1] == len(samples)
    chosen = np.arange(len(block.names))
    for rows in (slice(0, 10), slice(123, 700), slice(999, 1000)):
        part = np.zeros((robot.rows, len(chosen), rows.stop - rows.start))
        block.fill(samples.part(rows), history[:, rows], chosen, part)
        assert part == pytest.approx(whole[:, :, rows], abs=1e-12)


@pytest.mark.parametrize('kind', BLOCKS)
def test_torque_of_resting_robot_in_no_gravity_is_only_the_offset(kind):
    robot = with_gears('planar_3r').with_gravity(np.zeros(3))
    block = built(kind, robot)
    still = Samples(robot.joints, np.arange(5.0), *np.zeros((3, 5, 5)))
    found = columns(block, still, rows=robot.rows)
    for c, parameter in enumerate(() if kind in CHOSEN else block.names):
        assert np.any(found[:, c]) == parameter.startswith(('f0', 's', 'Kc'))


def by_links(structure, robot, samples):
    """Return inverse dynamics of a structure, parameters at one to three, less its links'."""
    model = structure.torque_model(robot)
    names = [name for block in model.blocks[1:] for name in block.names]
    values = {name: 1.0 + i % 3 for i, name in enumerate(names)} | dict(zip(
        model.blocks[0].names, robot.nominal.ravel(), strict=True))
    whole, links = Mechanism.without_effects(robot), Mechanism.without_effects(robot)
    for block in model.blocks:
        whole = block.acting(whole, values)
    links = model.blocks[0].acting(links, values)
    found, bare = (rigid_body.InverseDynamics(robot, one.links, one.rotors, one.friction)(
        samples.position, samples.velocity, samples.acceleration) for one in (whole, links))
    expected = sum(np.einsum('rkn,k->nr', columns(block, samples), [
        values[name] for name in block.names]) for block in model.blocks[1:])
    return found - bare, expected


@pytest.mark.parametrize('name', ['planar_3r', 'ur10e'])
@pytest.mark.parametrize('keys', [*((key,) for key in CHOSEN), tuple(CHOSEN)], ids='+'.join)
def test_chosen_effects_act_as_their_columns_alone_and_together(keys, name):
    robot, chosen = load_robot(name), {}
    for key in keys:
        taken = [part.joint for parts in chosen.values() for part in parts]
        chosen[key] = parts_of(key, robot, taken)[:1 if len(keys) > 1 else None]
    structure = replace(Structure.uniform(robot, False, 'none', {}), chosen=chosen)
    states = random_states(robot, 40, np.random.default_rng(1))
    states = replace(states, starts=tuple(range(len(states))))  # none of them has a past
    found, expected = by_links(structure, robot, states)
    assert all(chosen.values()) and np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
    assert from_plain(Structure, to_plain(structure)) == structure


@pytest.mark.parametrize('kind', [key for key in CHOSEN if CHOSEN[key].pullback is not
                                  Effect.pullback])
def test_chosen_effects_with_gradients_have_those_of_their_columns(kind):
    robot = load_robot('planar_3r')
    block = built(kind, robot)
    chosen, samples = np.arange(len(block.names)), motion(robot, 20)
    weights = np.random.default_rng(3).normal(size=(robot.n, len(chosen), 20))
    step = 1e-6
    for place, name in enumerate(('position', 'velocity', 'acceleration')):
        ends = [np.sum(weights * columns(block, replace(samples, **{
            name: getattr(samples, name) + sign * step}))) for sign in (-1.0, 1.0)]
        slope = block.pullback(samples, chosen, weights)[place].sum()
        assert (ends[1] - ends[0]) / (2.0 * step) == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_a_joint_has_one_spring():
    mechanism = Mechanism.without_effects(load_robot('planar_3r')).with_springs(
        {1: (1.0, 2.0, 0.0, 0.0)})
    both = mechanism.with_springs({2: (3.0, 0.0, 0.1, 0.1)})
    np.testing.assert_array_equal(both.links[:, 10:], [
        [0.0] * 4, [1.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.1, 0.1]])
    with pytest.raises(ModelError, match='joint joint_2 has two springs'):
        both.with_springs({1: (1.0, 0.0, 0.0, 0.0)})


def test_rotors_turn_with_their_axes():
    robot = load_robot('tx40')
    block = RotorInertia(axes_of(robot))
    states = random_states(robot, 10, np.random.default_rng(3))
    found = columns(block, states)
    a = states.acceleration
    for i in range(6):
        expected = np.zeros((6, 10))
        expected[i] = a[:, i]
        assert found[:, i] == pytest.approx(expected, rel=SAME_FORMULA)
    coupled = block.names.index('Iam6')
    expected = np.zeros((6, 10))
    expected[4] = expected[5] = a[:, 4] + a[:, 5]
    assert found[:, coupled] == pytest.approx(expected, rel=SAME_FORMULA)


def test_friction_of_a_coupled_motor_acts_on_both_joints():
    robot = load_robot('tx40')
    block = built('friction', robot)
    states = random_states(robot, 10, np.random.default_rng(4))
    found = columns(block, states)
    speed = states.velocity[:, 4] + states.velocity[:, 5]
    for name, value in (('fvm6', speed), ('fcm6', np.clip(speed / 0.05, -1.0, 1.0))):
        column = found[:, block.names.index(name)]
        assert column[4] == pytest.approx(value) and column[5] == pytest.approx(value)
        assert not column[:4].any()


def test_friction_columns_pass_the_filter_of_the_effort():
    robot = load_robot('planar_3r')
    samples = motion(robot, cutoff=5.0)
    block = built('friction', robot)
    found = columns(block, samples)[0, block.names.index('fc1')]
    ramp = np.clip(samples.velocity[:, :1] / 0.05, -1.0, 1.0)
    assert found == pytest.approx(zero_phase_low_pass(ramp, 5.0, 0.01)[:, 0])
    raw = columns(block, motion(robot))[0, block.names.index('fc1')]
    assert raw == pytest.approx(ramp[:, 0])


def test_segments_are_filtered_apart():
    robot = load_robot('planar_3r')
    whole = motion(robot, cutoff=5.0)
    block = built('friction', robot)
    split = Samples(**{**vars(whole), 'starts': (0, 400)})
    found = block.history(split)
    first, second = (block.history(whole.part(s)) for s in split.segments)
    assert found == pytest.approx(np.concatenate([first, second], axis=1))


def test_coulomb_ramp_by_hand():
    found = Coulomb(0.1).columns(AxisMotion(np.arange(5.0), np.zeros(5),
                                            np.array([-2.0, -0.05, 0.0, 0.02, 0.1])))
    assert found == pytest.approx(np.array([
        [-2.0, -0.05, 0.0, 0.02, 0.1], [-1.0, -0.5, 0.0, 0.2, 1.0], [1.0] * 5]))


@pytest.mark.parametrize('name', ROBOTS)
def test_base_regressor_in_chunks_is_the_kept_part_of_the_full_one(name):
    robot = load_robot(name)
    axes = axes_of(robot)
    model = TorqueModel.of(robot, (RigidLinks(robot), RotorInertia(axes), JointFriction(
        axes, tuple(Coulomb(0.05) for _ in axes.labels))))
    samples = motion(robot, 1500, cutoff=8.0)
    full = np.concatenate([columns(b, samples) for b in model.blocks], axis=1)
    kept = full[:, model.reduction.pivots]
    regression = Regression(model, samples)
    for rows in chunks(samples, 700):
        assert regression.columns(rows) == pytest.approx(kept[:, :, rows], abs=1e-9)
    assert not np.any(kept[~model.structure])
    parameters = np.random.default_rng(5).normal(size=len(model.reduction.pivots))
    assert model.effort(samples, parameters) == pytest.approx(
        np.einsum('ikn,k->ni', kept, parameters), abs=1e-9)


def test_a_coupled_motor_acts_by_its_row_of_the_coupling_both_ways():
    """Motor motion = C q, joint effort = C^T motor effort, whatever the factors."""
    row = np.array([0.0, -0.5, 2.0])
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, coupling=np.array(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], row])))
    states = random_states(robot, 20, np.random.default_rng(3))
    axes = axes_of(robot)
    assert axes.labels[-1] == 'm3'
    for block, name, motion in (
            (RotorInertia(axes), 'Iam3', states.acceleration),
            (JointFriction(axes, tuple(Coulomb() for _ in axes.labels)), 'fvm3', states.velocity)):
        out = np.zeros((3, 1, 20))
        block.fill(states, block.history(states), np.array([block.names.index(name)]), out)
        np.testing.assert_allclose(out[:, 0], np.outer(row, motion @ row))
