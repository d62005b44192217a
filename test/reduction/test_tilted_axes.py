"""reduction/numeric.py: axes as a calibration finds them, tilted by little: minimal sets hold,
down to the effort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import torque_model
from recordings import recording
from single_joint_recordings import planned, truth_of, with_effort
from tolerances import REPRESENTED

pytest.importorskip('pinocchio')
from chains import random_chain

from robot_dynid.effects import RigidLinks
from robot_dynid.estimation import StagedLeastSquares
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction import reduce_analytic, reduce_numeric
from robot_dynid.reduction.numeric import (
    LARGEST_COEFFICIENT,
    full_regressor,
    length_of,
    parameter_sizes,
    random_states,
    row_echelon,
    row_space,
)
from robot_dynid.robot.inertia import rotation_about
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.validation.validate import validate

#: rad
TILTS = (0.0, *np.logspace(-6.0, -2.0, 13))
FIXED = Recipe(cutoff=20.0, ramp_width=0.01, effort_lag=0.0, friction='coulomb', ripple='none')
#: parameters of links, rotors and Coulomb friction of robots that are not tilted
SIZES = {'planar_3r': 20, 'puma560': 58, 'stanford_arm': 55, 'ur10e': 58, 'tx40': 61,
         'seven_axis': 69}


def tilted(robot, angle, seed, axes=False):
    """Return the robot with every joint's origin, or axis, turned about a random direction."""
    directions = np.random.default_rng(seed).normal(size=(robot.n, 3))
    turns = [rotation_about(d / np.linalg.norm(d), angle) for d in directions]
    if axes:
        return replace(robot, axes=np.einsum('nij,nj->ni', turns, robot.axes))
    return replace(robot, rotations=robot.rotations @ turns)


def blocks_of(robot):
    """Return links, rotors, gears and friction, as they are identified."""
    return Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).blocks(robot)


def plausible(robot, blocks, rng):
    """Return standard parameters: links as described, the others at random."""
    values = rng.uniform(0.1, 1.0, sum(len(block.names) for block in blocks))
    values[:robot.nominal.size] = robot.nominal.ravel()
    return values


def coefficients(robot, reduction):
    """Return K (b, p) in lengths of the robot."""
    sizes = parameter_sizes(robot.n, length_of(robot))
    return reduction.matrix * sizes[reduction.pivots][:, None] / sizes


def lost(robot, blocks, reduction, seed):
    """Return the share of every joint's torque (rows,) that a minimal set loses.

    First by its own base parameters, then after a fit of the kept columns.
    """
    rng = np.random.default_rng(seed)
    columns = full_regressor(robot, blocks, random_states(robot, 150, rng))
    values = plausible(robot, blocks, rng)
    torque = np.einsum('ikn,k->in', columns, values)
    size = np.linalg.norm(torque, axis=1)[:, None]
    kept, torque = columns[:, reduction.pivots] / size[:, None], torque / size
    tall = kept.transpose(0, 2, 1).reshape(torque.size, -1)
    norms = np.linalg.norm(tall, axis=0)
    fit = np.linalg.lstsq(tall / norms, torque.ravel(), rcond=1e-12)[0] / norms
    return tuple(np.linalg.norm(np.einsum('ikn,k->in', kept, found) - torque, axis=1)
                 for found in (reduction.base(values), fit))


def elastic(name, **drive):
    """Return the robot with gears that give in its first and last joint."""
    robot = load_robot(name)
    return replace(robot, drive=replace(robot.drive, elastic=(0, robot.n - 1), **drive))


ASKEW = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 3)))[0]
ROBOTS = {name: load_robot(name) for name in SIZES} | {
    'planar_3r without gravity': load_robot('planar_3r').with_gravity(np.zeros(3)),
    'planar_3r, elastic': elastic('planar_3r'),
    'seven_axis, elastic, rotors askew': elastic(
        'seven_axis', gear_ratios=np.full(7, 80.0),
        rotor_axes=ASKEW / np.linalg.norm(ASKEW, axis=1)[:, None]),
}


@pytest.mark.parametrize('axes', [False, True], ids=['origins', 'axes'])
@pytest.mark.parametrize('name', ROBOTS)
def test_torque_is_represented_at_every_tilt(name, axes):
    """By the numeric set of everything and the analytic one of the links, without large numbers.
    """
    for seed, angle in enumerate(TILTS):
        robot = tilted(ROBOTS[name], angle, seed, axes)
        links, everything = (RigidLinks(robot.rigid),), blocks_of(robot)
        for arm, blocks, reduction in (
                (robot, everything, reduce_numeric(robot, everything)),
                (robot.rigid, links, reduce_analytic(robot.rigid))):
            where = angle, len(blocks)
            assert np.max(lost(arm, blocks, reduction, seed)) < REPRESENTED, where
            assert np.abs(reduction.matrix).max() < 1e3, where
            assert angle or not reduction.warnings


@pytest.mark.parametrize('name', SIZES)
def test_sizes_without_tilt(name):
    robot = load_robot(name)
    assert len(reduce_numeric(robot, blocks_of(robot)).pivots) == SIZES[name]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), joints=st.integers(1, 7), size=st.floats(-6.0, -2.0),
       axes=st.booleans())
def test_random_chains_may_be_tilted(seed, joints, size, axes):
    """Where columns are small by chance, too: no coefficient in the robot's lengths is large."""
    robot = tilted(random_chain(np.random.default_rng(seed), joints), 10.0**size, seed, axes)
    blocks = (RigidLinks(robot),)
    for reduction in (reduce_numeric(robot, blocks), reduce_analytic(robot)):
        rng = np.random.default_rng(seed)
        columns = full_regressor(robot, blocks, random_states(robot, 100, rng))
        values = robot.nominal.ravel()
        torque = np.einsum('ikn,k->in', columns, values)
        found = np.einsum('ikn,k->in', columns[:, reduction.pivots], reduction.base(values))
        assert np.linalg.norm(found - torque) < REPRESENTED * np.linalg.norm(torque)
        assert np.abs(coefficients(robot, reduction)).max() < LARGEST_COEFFICIENT * (1.0 + 1e-6)


@pytest.mark.parametrize('share', [1e-6, 1e-3, 0.009, 0.011, 0.5])
def test_leftmost_column_is_kept_unless_another_shows_much_more(share):
    """Columns along a line: the first is kept from 1 / LARGEST_COEFFICIENT of the second on."""
    tall = np.outer(np.arange(1.0, 4.0), [share, 0.0, 1.0])
    _, directions = row_space(tall)
    kept, matrix = row_echelon(tall, directions[:1], np.ones(3))
    first = share * LARGEST_COEFFICIENT > 1.0
    assert kept.tolist() == ([0] if first else [2])
    assert matrix == pytest.approx(np.array([[1.0, 0.0, 1.0 / share] if first
                                             else [share, 0.0, 1.0]]))


def test_row_echelon_takes_no_pivot_that_shows_by_rounding_only():
    """Columns 0 and 1 are independent by 2e-6 alone; only column 2 shows the second direction.
    """
    tall = np.array([[2e-2, 1.0, 0.0], [0.0, 0.0, 6e-4], [-2e-6, 0.0, 9e-5]])
    values, directions = row_space(tall)
    assert values[1] > 1e-4 > 10.0 * values[2]
    kept, matrix = row_echelon(tall, directions[:2], np.ones(3))
    assert kept.tolist() == [1, 2]
    assert tall[:, kept] @ matrix == pytest.approx(tall, abs=2.0 * values[2])


def test_identification_does_not_mind_a_tilt():
    """Joint 3 of the planar arm is predicted as well as that of the arm that is not tilted."""
    errors = []
    for angle in (0.0, 1e-4, 1e-3):
        robot = tilted(load_robot('planar_3r'), angle, 0)
        logs = [recording(robot, seed, 10.0) for seed in (0, 1)]
        model = identify(robot, logs[:1], 'wls', FIXED).model
        errors.append(validate(model, logs[1:]).model['all'][robot.joints[-1]].relative_error)
    assert errors[0] < 0.05
    assert max(errors) < 1.05 * errors[0]


def test_stages_claim_nothing_that_their_recordings_do_not_show():
    """Columns that vanish in a recording, not in the structure of its stage, are named open.

    They keep their nominal values, which are the true ones here: efforts err by the tilt only.
    """
    angle = 1e-2
    model = torque_model(tilted(load_robot('ur10e'), angle, 0))
    samples = with_effort(model, planned(model), truth_of(model))
    estimate = StagedLeastSquares().fit(Experiment.of(model, [samples]))
    stages = estimate.details.stages
    assert stages and all(entry.std > 0.0 for stage in stages for entry in stage.found)
    assert 'Ixx3' in estimate.not_excited
    error = np.linalg.norm(model.effort(samples, estimate.values) - samples.effort, axis=0)
    assert np.all(error < angle * np.linalg.norm(samples.effort, axis=0))
