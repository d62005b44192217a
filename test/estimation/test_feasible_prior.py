"""estimation/feasible/prior.py: the nominal robot as a prior: bodies, sizes and their bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import torque_model

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import UsageError
from robot_dynid.estimation.feasible.bounds import Bounds, LinkBounds, limits_of
from robot_dynid.estimation.feasible.conic import matrix_of, vector_of
from robot_dynid.estimation.feasible.prior import (
    link_transform,
    link_transforms,
    nominal_bodies,
    whitening,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction.numeric import length_of, states_at
from robot_dynid.robot.inertia import parameters_from_pseudo_inertia, pseudo_inertia
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

ROBOT = load_robot('planar_3r')
FREE = limits_of(Bounds(), ROBOT, 30)
MASSES = np.array([4.0, 1.0, 2.5])


def arm(**bodies: FloatArray) -> RobotModel:
    """Return the arm with masses of 4, 1 and 2.5 kg, and other pseudo-inertias: of `two`, ..."""
    nominal = ROBOT.nominal * (MASSES / ROBOT.nominal[:, 0])[:, None]
    for name, body in bodies.items():
        nominal[('one', 'two', 'three').index(name)] = parameters_from_pseudo_inertia(body)
    return ROBOT.with_nominal(nominal)


def stock(mass: float) -> FloatArray:
    """Return a hundredth of a mass, its radius of gyration a tenth of the robot's length."""
    square = 0.01 * length_of(ROBOT)**2
    return 0.01 * mass * np.diag([square, square, square, 1.0])


def test_links_without_inertia_get_a_small_body() -> None:
    """By the median of the masses that are stated, or of one kilogram."""
    bodies, warnings = nominal_bodies(arm(two=np.zeros((4, 4))), FREE)
    assert bodies[1] == pytest.approx(stock(3.25), rel=1e-5, abs=1e-9)
    assert bodies[[0, 2]] == pytest.approx(np.array([pseudo_inertia(p) for p in arm().nominal])[
        [0, 2]], rel=1e-12)
    assert warnings == [
        'no nominal inertia is stated for link_2: a small body replaces what the recordings do '
        'not determine; state mass, centre of mass and inertia in the robot description, or '
        'bounds in the recipe']
    nothing = np.zeros((4, 4))
    bodies, warnings = nominal_bodies(arm(one=nothing, two=nothing, three=nothing), FREE)
    assert bodies[2] == pytest.approx(stock(1.0), rel=1e-5, abs=1e-9)
    assert 'is stated for link_1, link_2, link_3: a' in warnings[0] and len(warnings) == 1


@pytest.mark.parametrize(('least', 'real'), [(1.15e-9, True), (0.85e-9, False)])
def test_bodies_are_real_above_a_billionth_of_the_small_one(least: float, real: bool) -> None:
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    root = np.linalg.cholesky(stock(2.5))
    body = root @ (turn * [least, 0.2, 0.3, 0.4]) @ turn.T @ root.T
    robot = arm(two=body)
    assert np.median([4.0, body[3, 3], 2.5]) == 2.5
    expected = body if real else stock(2.5)
    found = link_transforms(robot)[1]
    one = np.linalg.cholesky(matrix_of(vector_of(expected)))
    v = vector_of(np.eye(4) + 0.1)
    assert pseudo_inertia(found @ v) == pytest.approx(
        one @ (np.eye(4) + 0.1) @ one.T, rel=1e-4, abs=1e-12)
    bodies, warnings = nominal_bodies(robot, FREE)
    assert (warnings == []) is real
    if not real:
        assert warnings[0].startswith('nominal inertia of link_2 is not that of a body with '
                                      'density; the nearest one that a body can have (mass ')
        assert np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(
            root, bodies[1]).T))[0] == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize(('mass', 'moved', 'possible'), [
    ((1.0 + 0.85e-9, 9.0), False, True), ((1.0 + 1.15e-9, 9.0), True, True),
    ((0.0, 1.0 - 0.85e-9), False, True), ((0.0, 1.0 - 1.15e-9), True, True),
    ((0.0, 1.1e-3), True, True), ((0.0, 0.9e-3), True, False)])
def test_nominal_bodies_stay_within_bounds_and_keep_a_thousandth(
    mass: tuple[float, float], moved: bool, possible: bool
) -> None:
    limits = limits_of(Bounds((('link_2', LinkBounds(mass)),)), ROBOT, 30)
    if not possible:
        with pytest.raises(UsageError, match='bounds of link_2 contradict each other: no body '
                                             'satisfies least mass of link_2, most mass of '
                                             'link_2'):
            nominal_bodies(arm(), limits)
        return
    bodies, warnings = nominal_bodies(arm(), limits)
    assert bodies[1][3, 3] == pytest.approx(np.clip(1.0, *mass), rel=1e-4)
    assert warnings == ([] if not moved else [
        f'nominal inertia of link_2 is outside its bounds; the nearest one that a body can have '
        f'(mass {np.clip(1.0, *mass):.3g} kg) is the prior instead: correct the robot '
        'description'])


def test_the_nearest_body_is_nearest_in_units_of_the_nominal_one() -> None:
    """Of P = L V L^T with a mass of 1.5 times: V moves from one along the row of the mass."""
    limits = limits_of(Bounds((('link_1', LinkBounds((6.0, 7.0))),)), ROBOT, 30)
    bodies, _ = nominal_bodies(arm(), limits)
    body = pseudo_inertia(arm().nominal[0])
    row = link_transform(body)[0]
    v = vector_of(np.eye(4)) + row * (6.0 - 4.0) / (row @ row)
    root = np.linalg.cholesky(body)
    assert bodies[0] == pytest.approx(root @ matrix_of(v) @ root.T, rel=1e-5)


def test_other_parameters_of_one_make_the_effort_of_the_nominal_links() -> None:
    """At about 1 rad/s, or that of the recordings where it is less; rows are joints."""
    model = torque_model(ROBOT)
    names = model.reduction.standard
    states = states_at(ROBOT, 1.0)
    effort = np.sqrt(np.mean(rigid_body.inverse_dynamics(
        ROBOT, states.position, states.velocity, states.acceleration)**2, axis=0))
    reach = np.zeros((3, len(names)))
    found = whitening(model, FREE_OF[len(names)], reach)
    sizes = np.diag(found.transform)[30:]
    speed = np.sqrt(np.mean(states.velocity**2, axis=0))
    for joint in range(3):
        for name, column in (('f0', 1.0), ('fv', speed[joint])):
            assert sizes[names.index(f'{name}{joint + 1}') - 30] == pytest.approx(
                effort[joint] / column, rel=1e-6)
    place = names.index('fv2')
    for share, size in ((0.9, sizes[place - 30]), (4.0, sizes[place - 30] / 4.0)):
        reach[1, place] = share / sizes[place - 30]
        again = whitening(model, FREE_OF[len(names)], reach)
        assert again.transform[place, place] == pytest.approx(size)
    assert found.weights.tolist() == 30 * [1.0] + (len(names) - 30) * [0.01]
    assert found.centre.tolist() == [*3 * vector_of(np.eye(4)).tolist(), *(len(names) - 30) * [0]]
    assert [name for name, passive in zip(names, found.nonnegative) if not passive][30:] == [
        'f01', 'f02', 'f03']
    assert found.owners.tolist() == [*np.repeat([0, 1, 2], 10), *(
        int(name[-1]) - 1 for name in names[30:])]
    assert not found.floor.any()
    v = found.centre.copy()
    v[10:20] = vector_of(np.diag([3.0, 0.5, 2.0, 4.0]))
    assert found.least(v) == pytest.approx([1.0, 0.5, 1.0])
    assert found.transform[10:20, 10:20] == pytest.approx(
        link_transform(pseudo_inertia(ROBOT.nominal[1])))


FREE_OF = {count: limits_of(Bounds(), ROBOT, count) for count in range(30, 60)}


def test_rotors_and_gears_of_elastic_joints_are_above_zero() -> None:
    """A spring of one makes the effort of its joint, bent by a thousandth of the distance."""
    robot = replace(ROBOT, drive=replace(ROBOT.drive, elastic=(0, 2)))
    model = Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).torque_model(robot)
    names = model.reduction.standard
    found = whitening(model, limits_of(Bounds(), robot, len(names)), np.zeros((3, len(names))))
    assert {name for name, floor in zip(names, found.floor) if floor == 1e-6} == {
        'Ia1', 'K1', 'D1', 'Ia3', 'K3', 'D3'}
    assert np.count_nonzero(found.floor) == 6
    states = states_at(robot, 1.0)
    bent = 1e-3 * (states.position[:, 3:] - states.position[:, [0, 2]])
    effort = np.sqrt(np.mean(rigid_body.inverse_dynamics(
        robot, states.position[:, :3], states.velocity[:, :3], states.acceleration[:, :3])**2,
        axis=0))[[0, 2]]
    sizes = [found.transform[k, k] for k in (names.index('K1'), names.index('K3'))]
    assert sizes == pytest.approx(effort / np.sqrt(np.mean(bent**2, axis=0)), rel=1e-6)


def test_joints_with_hardly_any_nominal_effort_count_a_thousandth_of_the_largest() -> None:
    light = arm(three=1e-6 * pseudo_inertia(ROBOT.nominal[2]))
    model = torque_model(light)
    names, states = model.reduction.standard, states_at(light, 1.0)
    effort = np.sqrt(np.mean(rigid_body.inverse_dynamics(
        light, states.position, states.velocity, states.acceleration)**2, axis=0))
    found = whitening(model, FREE_OF[len(names)], np.zeros((3, len(names))))
    place = names.index('f03')
    assert found.transform[place, place] == pytest.approx(1e-3 * effort.max(), rel=1e-6)
