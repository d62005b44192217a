"""Inertia constants of composite bodies: Lemma 1 and Table II of Lin 1991."""

from __future__ import annotations

import numpy as np
import pytest
from chains import stanford_arm
from tolerances import PRINTED, SAME_FORMULA

pytest.importorskip('pinocchio')
from chains import random_chain

from robot_dynid.reduction.composite_inertia import (
    composite_constants,
    composite_map,
    driving_placements,
    driving_rotations,
)
from robot_dynid.robot.inertia import (
    homogeneous,
    move_parameters,
    rotation_about,
    skew,
    symmetric,
)
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.robot.robot_file import load_robot


def test_table_two_of_the_stanford_arm():
    """Every entry to its printed digits, but the four of joint 2 below."""
    masses, k, inertia = composite_constants(stanford_arm())
    difference = inertia[:, 0, 0] - inertia[:, 1, 1]
    assert masses[2] == pytest.approx(6.47, abs=PRINTED)
    assert k[1, 1] == pytest.approx(2.74, abs=PRINTED)
    assert k[2] == pytest.approx([0.0, 0.0, -2.74], abs=PRINTED)
    assert k[3:, :2] == pytest.approx(
        np.array([[0.0099, 0.0058], [0.0, -0.1149], [0.0, 0.0]]), abs=PRINTED)
    assert difference[3:] == pytest.approx([-0.0235, 0.0270, 0.0], abs=PRINTED)
    assert inertia[[0, 1, 3, 4, 5], 2, 2] == pytest.approx(
        [1.0144, 4.4053, 0.0044, 0.0277, 0.0003], abs=PRINTED)
    assert inertia[3, 0, 1] == pytest.approx(-0.00005, abs=PRINTED / 10.0)
    for row, column in ((0, 1), (0, 2), (1, 2)):
        assert inertia[4:, row, column] == pytest.approx([0.0, 0.0], abs=PRINTED)
    assert inertia[[1, 3], 0, 2] == pytest.approx([0.0, 0.0], abs=PRINTED)


def test_entries_of_joint_two_that_the_table_prints_with_its_fit_errors():
    """The table prints -0.00001, 4.3850, 0.00003 and -0.00003, estimates from three samples.

    The data of figure 2 give 0, 4.38486, 0 and 0: all is symmetric in x of frame 2, and along y of
    it (link 3) and z of it (link 2). All four come from one fit of the source.
    """
    _, k, inertia = composite_constants(stanford_arm())
    u_5_22 = 0.003 + 0.0003
    u_5_33 = 0.0004 + 0.63 * 0.0566**2 + 0.013 + 0.51 * 0.1554**2
    u_4_22_less_33 = u_5_33 - 1.08 * 0.0054**2 - u_5_22
    u_3_11_less_33 = 2.51 + 4.25 * 0.6447**2 - 0.006 + u_4_22_less_33
    difference = 0.108 - 0.018 + u_3_11_less_33
    assert f'{difference:.5f}' == '4.38486'
    assert inertia[1, 0, 0] - inertia[1, 1, 1] == pytest.approx(difference, rel=SAME_FORMULA)
    assert [k[1, 0], inertia[1, 0, 1], inertia[1, 1, 2]] == pytest.approx(
        [0.0, 0.0, 0.0], abs=SAME_FORMULA)


def step(robot, j, pose, q):
    """Return the rotation and translation of driving-axis frame j in the one before it."""
    if robot.types[j] == PRISMATIC:
        return pose[:3, :3], pose[:3, 3] + q * pose[:3, 2]
    return pose[:3, :3] @ rotation_about([0.0, 0.0, 1.0], q), pose[:3, 3]


def varying_parts(robot, q):
    """Return l (n, 3) and V (n, 3, 3) by the recursions of Lemma 1 (eqs. 15, 17 and below)."""
    masses, k, inertia = composite_constants(robot)
    poses = driving_placements(robot)
    shift, v = np.zeros((robot.n, 3)), np.zeros((robot.n, 3, 3))
    for j in range(robot.n - 1, 0, -1):
        r, s = step(robot, j, poses[j], q[j])
        if robot.types[j] == PRISMATIC:
            d = np.array([0.0, 0.0, r[:, 2] @ s])
            b = r.T @ s - d  # in frame j, as in eqs. 27 and 28
            shift[j - 1] = r @ (shift[j] + masses[j] * d)  # eq. 23
            whole, b_, d_ = skew(k[j] + shift[j]), skew(b), skew(d)
            l_ = skew(shift[j])
            inner = (v[j] - masses[j] * (d_ @ d_ + d_ @ b_ + b_ @ d_)  # eq. 25
                     - d_ @ whole - whole @ d_ - b_ @ l_ - l_ @ b_)
            v[j - 1] = r @ inner @ r.T
        else:
            shift[j - 1] = r @ (shift[j] + [k[j, 0], k[j, 1], 0.0])  # eq. 19
            turned = inertia[j].copy()  # eq. 21
            turned[0, 0] -= inertia[j, 1, 1]
            turned[1, 1] = turned[2, 2] = 0.0
            v[j - 1] = (r @ (v[j] + turned) @ r.T - skew(s) @ skew(shift[j - 1])
                        - skew(shift[j - 1]) @ skew(s))
    return shift, v


def composite_bodies(robot, q):
    """Return standard parameters (n, 10) of all composite bodies: direct sums over links."""
    poses = driving_placements(robot)
    own = [move_parameters(p, homogeneous(turn.T, np.zeros(3)))
           for p, turn in zip(robot.nominal, driving_rotations(robot))]
    total = np.zeros((robot.n, 10))
    for m in range(robot.n):
        carried, total[m] = own[m], total[m] + own[m]
        for j in range(m, 0, -1):
            carried = move_parameters(carried, homogeneous(*step(robot, j, poses[j], q[j])))
            total[j - 1] += carried
    return total


@pytest.mark.parametrize('seed', range(20))
def test_lemma_one(seed):
    """Constants plus varying parts are the composite body at any q (eqs. 12, 13)."""
    rng = np.random.default_rng(700 + seed)
    robot = random_chain(rng, int(rng.integers(2, 8)))
    masses, k, inertia = composite_constants(robot)
    for _ in range(5):
        q = rng.uniform(-2.0, 2.0, robot.n)
        whole = composite_bodies(robot, q)
        shift, v = varying_parts(robot, q)
        scale = SAME_FORMULA * np.abs(whole).max()
        assert masses == pytest.approx(whole[:, 0], abs=scale)
        assert k + shift == pytest.approx(whole[:, 1:4], abs=scale)
        true = np.array([symmetric(six) for six in whole[:, 4:]])
        assert inertia + v == pytest.approx(true, abs=scale)


def test_map_is_linear_in_the_parameters_and_upper_triangular():
    robot = random_chain(np.random.default_rng(5), 6)
    constants = composite_map(robot)
    parameters = np.random.default_rng(6).normal(size=(6, 10))
    masses, k, inertia = composite_constants(robot, parameters)
    values = constants @ parameters.ravel()
    assert values[:, 0] == pytest.approx(masses)
    assert values[:, 1:4] == pytest.approx(k)
    assert values[:, 9] == pytest.approx(inertia[:, 2, 2])
    for j in range(6):
        assert not constants[j, :, :10 * j].any()
        assert masses[j] == pytest.approx(parameters[j:, 0].sum())


def test_branches_add_up():
    """Two fingers on a wrist: the wrist's composite body has the mass of all three."""
    robot = load_robot('planar_3r')
    split = type(robot)(**{**vars(robot), 'parents': np.array([-1, 0, 0])})
    constants = composite_map(split)
    assert constants[0, 0, ::10] == pytest.approx([1.0, 1.0, 1.0])
    assert constants[1, 0, ::10] == pytest.approx([0.0, 1.0, 0.0])
