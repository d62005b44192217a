"""effects/: exact gradients of regressors in the motion, against central differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_robots import random_urdf
from tolerances import DIFFERENCE

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import (
    RigidLinks,
    RotorInertia,
    SpinningRotors,
    axes_of,
)
from robot_dynid.excitation.search.observation import SlidingFriction
from robot_dynid.friction import LAWS, law_from
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf

STEP = 1e-5
CHANNELS = ('position', 'velocity', 'acceleration')


def slopes_agree(block, samples, rng, rows=None):
    """Compare gradient and difference in random directions, each channel by itself."""
    chosen = np.sort(rng.permutation(len(block.names))[:max(1, len(block.names) * 2 // 3)])
    weights = rng.normal(size=(rows or len(samples.joints), len(chosen), len(samples)))

    def weighted(moved):
        out = np.zeros(weights.shape)
        block.fill(moved, block.history(moved), chosen, out)
        return (weights * out).sum(axis=(0, 1))

    gradients = block.pullback(samples, chosen, weights)
    size = max(np.abs(g).max() for g in gradients)
    for name, gradient in zip(CHANNELS, gradients, strict=True):
        way = rng.normal(size=gradient.shape)
        here = getattr(samples, name)
        ahead, behind = (weighted(replace(samples, **{name: here + sign * STEP * way}))
                         for sign in (1.0, -1.0))
        assert (ahead - behind) / (2.0 * STEP) == pytest.approx(
            np.sum(gradient * way, axis=1), abs=DIFFERENCE * size), name


@pytest.mark.parametrize('seed', range(12))
def test_rigid_gradients_of_random_chains_and_trees(seed):
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, int(rng.integers(1, 9)), 0.5 * (seed % 2)))
    slopes_agree(RigidLinks(robot), random_states(robot, 37, rng), rng)


def test_the_random_robots_slide_and_branch():
    robots = [robot_from_urdf(random_urdf(np.random.default_rng(seed), 8, 0.5))
              for seed in range(5)]
    assert any(np.any(r.types == PRISMATIC) for r in robots)
    assert any(len(set(r.parents)) < r.n for r in robots)


@pytest.mark.parametrize('name', ['tx40', 'stanford_arm'])
def test_gradients_of_rotors_and_friction(name):
    robot = load_robot(name)
    axes, rng = axes_of(robot), np.random.default_rng(3)
    states = random_states(robot, 50, rng)
    count = len(axes.labels)
    laws = [law_from(law) for law in (*LAWS, 'coulomb+breakaway+levelling')]
    for block in (RotorInertia(axes), *(
            SlidingFriction(axes, (law,) * count, np.full(count, 3.0)) for law in laws)):
        assert block.smooth
        slopes_agree(block, states, rng)


@pytest.mark.parametrize(('name', 'elastic'), [('tx40', ()), ('stanford_arm', ()),
                                               ('seven_axis', (1, 4))])
def test_gradients_of_rotors_on_moving_links(name, elastic):
    """Also with a motor that turns with two joints, a prismatic joint, elastic ones."""
    robot, rng = load_robot(name), np.random.default_rng(5)
    drive = replace(robot.drive, elastic=elastic, gear_ratios=rng.uniform(-9.0, -3.0, robot.n),
                    rotor_axes=rng.normal(size=(robot.n, 3)))
    robot = replace(robot, drive=drive)
    block, states = RotorInertia(axes_of(robot), SpinningRotors(robot)), random_states(
        robot, 20, rng)
    moved = block.pullback(states, np.arange(1, 5), rng.normal(size=(robot.rows, 4, 20)))
    assert all(np.abs(gradient).max() > 0.1 for gradient in moved)
    for _ in range(3):
        slopes_agree(block, states, rng, robot.rows)


def test_gradients_of_effort_are_those_of_the_regressor():
    """The derivative of the effort in the acceleration is the mass matrix, symmetric."""
    robot = load_robot('seven_axis')
    rng = np.random.default_rng(4)
    states = random_states(robot, 20, rng)
    motion = (states.position, states.velocity, states.acceleration)
    mass = rigid_body.mass_matrix(robot, states.position)
    pull = rng.normal(size=(20, robot.n))
    weights = np.einsum('si,p->ips', pull, robot.nominal.ravel())
    found = rigid_body.regressor_pullback(robot, motion, weights)[2]
    assert found == pytest.approx(np.einsum('sij,sj->si', mass, pull), rel=1e-9)
