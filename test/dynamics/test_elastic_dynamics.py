"""Accelerations of links and motors of robots with elastic joints: MuJoCo, closed forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from elastic_models import dynamics_of, gears_of
from random_robots import random_urdf
from tolerances import SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics.elastic import ElasticDynamics, Gears, coordinates
from robot_dynid.dynamics.rigid_body import forward_dynamics
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.simulation.harmonic_drive import HarmonicDrive
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth

ARM = load_robot('elastic_2r')


def mujoco_accelerations(plant, q, qd, theta, thetad, torque):
    """Return MuJoCo's accelerations of links and motors, each (K, n)."""
    found = []
    for row in zip(q, qd, theta, thetad, torque, strict=True):
        data = plant.data
        data.qpos[plant.link_rows], data.qvel[plant.link_rows] = row[0], row[1]
        data.qpos[plant.motor_rows], data.qvel[plant.motor_rows] = row[2], row[3]
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[plant.motor_rows] = row[4]
        mujoco.mj_forward(plant.model, data)
        found.append((data.qacc[plant.link_rows].copy(), data.qacc[plant.motor_rows].copy()))
    return (np.array(side) for side in zip(*found, strict=True))


def random_tree(tmp_path: Path, rng):
    path = tmp_path / 'random.urdf'
    while True:
        path.write_text(random_urdf(rng, 5, 0.4))
        robot = load_robot(str(path))
        if robot.nominal[:, 0].min() > 0.0:  # MuJoCo refuses moving bodies without mass
            return robot


@pytest.mark.parametrize('seed', range(8))
def test_links_and_motors_accelerate_as_in_mujoco(tmp_path: Path, seed: int) -> None:
    """Random trees and the planar arm, some joints rigid, friction viscous."""
    rng = np.random.default_rng(seed)
    robot = ARM if seed == 0 else random_tree(tmp_path, rng)
    n = robot.n
    own = tuple(sorted(rng.choice(n, size=rng.integers(1, n + 1), replace=False).tolist()))
    stiffness, damping = rng.uniform(1e3, 3e4, len(own)), rng.uniform(0.0, 20.0, len(own))
    inertia, viscous = rng.uniform(0.2, 1.5, n), rng.uniform(0.0, 5.0, n)
    drives = {robot.joints[j]: HarmonicDrive(100.0, k, d)
              for j, k, d in zip(own, stiffness, damping, strict=True)}
    plant = Plant(robot, Truth(viscous, np.zeros(n), inertia, drives=drives))
    gears = Gears(own, inertia[list(own)], stiffness, damping, np.zeros(len(own)))
    q, qd, thetad, torque = rng.uniform(-1.5, 1.5, (4, 20, n))
    theta = q + 1e-3 * rng.normal(size=q.shape)
    rigid = np.setdiff1d(np.arange(n), own)
    theta[:, rigid], thetad[:, rigid] = q[:, rigid], qd[:, rigid]
    expected = mujoco_accelerations(plant, q, qd, theta, thetad, 30.0 * torque)
    found, pivots = dynamics_of(robot, gears, np.diag(inertia))(
        coordinates(q, theta, gears), coordinates(qd, thetad, gears),
        30.0 * torque - viscous * thetad)
    assert pivots.min() > 0.0
    both = dynamics_of(robot, gears).per_joint(found)
    for ours, theirs in zip(both, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


def test_links_alone_feel_the_gears_and_motors_the_rest() -> None:
    """By Spong's equations, with the offset between the encoders."""
    gears = replace(gears_of(ARM, damping=7.0), offset=np.array([2.0, -1.0]))
    rng = np.random.default_rng(1)
    x, v = rng.uniform(-1.0, 1.0, (2, 10, 4))
    x[:, 2:] = x[:, :2] + 1e-3 * rng.normal(size=(10, 2))
    effort = rng.normal(size=(10, 2))
    found, _ = dynamics_of(ARM, gears)(x, v, effort)
    torque = 2e4 * (x[:, 2:] - x[:, :2]) + 7.0 * (v[:, 2:] - v[:, :2]) + [2.0, -1.0]
    links, _ = forward_dynamics(ARM, (x[:, :2], v[:, :2], torque))
    np.testing.assert_allclose(found[:, :2], links, rtol=SAME_FORMULA)
    np.testing.assert_allclose(found[:, 2:], (effort - torque) / 0.5, rtol=SAME_FORMULA)


def test_rotors_on_moving_links_enter_both_sides() -> None:
    gears, rng = gears_of(ARM, (1,), damping=3.0), np.random.default_rng(2)
    plain = dynamics_of(ARM, gears)
    rotors = Rotors(np.zeros((2, 2)), np.array([0]), np.array([[0.2, 0.1, 0.3]]),
                    np.array([[0.0, 1.0]]))
    whole = ElasticDynamics(ARM, ARM.nominal, rotors, gears)
    x, v = rng.uniform(-0.01, 0.01, (2, 10, 3))
    effort = rng.normal(size=(10, 2))
    found, least = whole(x, v, effort)
    again, _ = plain(x, v, effort)
    left = np.einsum('kij,kj->ki', whole.mass_matrix(x), found) + whole.bias(x, v)
    right = np.einsum('kij,kj->ki', plain.mass_matrix(x), again) + plain.bias(x, v)
    np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-9)
    assert least.min() > 0.0
    assert np.abs(found - again).max() > 1e-3


@pytest.mark.parametrize(('change', 'message'), [
    ({'inertia': np.array([1.0, -0.2])}, 'elastic joint joint_2: inertia is -0.2; .* above zero'),
    ({'stiffness': np.array([0.0, 1e4])}, 'elastic joint joint_1: stiffness is 0; .* above zero'),
    ({'damping': np.array([0.0, np.nan])}, 'joint_2: damping is nan; it must be finite'),
])
def test_gears_that_cannot_be_are_named(change, message) -> None:
    with pytest.raises(ModelError, match=message):
        dynamics_of(ARM, replace(gears_of(ARM), **change))
    with pytest.raises(UsageError, match=r'offset of 2 elastic joints has shape \(3,\)'):
        dynamics_of(ARM, replace(gears_of(ARM), offset=np.zeros(3)))
