"""Which trajectories joint_trajectory_controller accepts, and how it interpolates them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robot_dynid.simulation.waypoints import (
    Command,
    Path,
    Waypoint,
    coefficients,
    powers,
    rejection,
)

JOINTS = ('b', 'a', 'c')
REST = (0.0, 0.0, 0.0)
START = np.array([0.1, 0.2, 0.3])


def move(*times: float, joints: tuple[str, ...] = JOINTS, stamp: float = 0.0) -> Command:
    """A trajectory whose joints pass (t, 2 t, 3 t) at the given times."""
    points = tuple(Waypoint(t, (t, 2.0 * t, 3.0 * t)) for t in times)
    return Command(joints, points, stamp)


def last_of(points: tuple[Waypoint, ...], **change: tuple[float, ...]) -> tuple[Waypoint, ...]:
    return (*points[:-1], replace(points[-1], **change))


GOOD = move(1.0, 2.0)
REJECTED = {
    'velocity of the last point is not zero': replace(
        GOOD, points=last_of(GOOD.points, velocity=(0.0, 1.3e-7, 0.0))),
    '2 joints instead of 3': Command(('a', 'b'), (Waypoint(1.0, (0.0, 0.0)),)),
    'this controller does not have joint x': replace(GOOD, joints=('a', 'b', 'x')),
    '4 joints instead of 3': Command(('a', 'b', 'c', 'x'), (Waypoint(1.0, (0.0,) * 4),)),
    'empty joint names on incoming trajectory': replace(GOOD, joints=()),
    'empty trajectory received': replace(GOOD, points=()),
    'time of point 1 is not later than that of point 0': move(2.0, 1.0),
    'time of point 2 is not later than that of point 1': move(0.5, 1.0, 1.0),
    'point 1 has 2 positions for 3 joints': replace(
        GOOD, points=last_of(GOOD.points, position=(0.0, 0.0))),
    'point 1 has 4 velocities for 3 joints': replace(
        GOOD, points=last_of(GOOD.points, velocity=(0.0,) * 4)),
    'point 1 has 1 accelerations for 3 joints': replace(
        GOOD, points=last_of(GOOD.points, acceleration=(0.0,))),
    'point 0 has 0 positions for 3 joints': Command(JOINTS, (Waypoint(1.0, (), REST),)),
    'point 1 has effort values': replace(GOOD, points=last_of(GOOD.points, effort=REST)),
    'trajectory ends 0.125 s in the past': move(1.0, 2.0, stamp=7.875),
}
ACCEPTED = {
    'end velocity of 1.1e-7': replace(GOOD, points=last_of(GOOD.points, velocity=(1.1e-7,) * 3)),
    'ends now': move(1.0, 2.0, stamp=8.0),
    'permuted names': replace(GOOD, joints=('c', 'a', 'b')),
    'first point at zero': move(0.0, 1.0),
    'some velocities': replace(GOOD, points=last_of(GOOD.points, velocity=REST)),
    'end acceleration': replace(GOOD, points=last_of(GOOD.points, acceleration=(1.0,) * 3)),
    '5000 points': move(*np.arange(1, 5001) * 0.01),
    'closer than a period': move(0.001, 0.002, 0.003),
    'far outside limits': Command(JOINTS, (Waypoint(1.0, (100.0, 0.0, 0.0)),)),
    'duplicate name': replace(GOOD, joints=('a', 'a', 'b')),
    'not a number': Command(JOINTS, (Waypoint(1.0, (np.nan, 0.0, 0.0), (np.nan, 0.0, 0.0)),)),
    'infinity': Command(JOINTS, (Waypoint(1.0, (np.inf, 0.0, 0.0)),)),
    'past stamp, end in the future': move(1.0, 2.0, stamp=8.5),
}


@pytest.mark.parametrize('why', REJECTED)
def test_unfit_trajectories_are_rejected_as_by_the_controller(why: str) -> None:
    assert rejection(REJECTED[why], JOINTS, 10.0) == why


@pytest.mark.parametrize('why', ACCEPTED)
def test_fit_trajectories_are_accepted_as_by_the_controller(why: str) -> None:
    assert rejection(ACCEPTED[why], JOINTS, 10.0) is None


@pytest.mark.parametrize('order', [3, 5])
def test_velocities_make_it_cubic_and_accelerations_quintic(order: int) -> None:
    """The interpolation reproduces a polynomial of its own order, and its derivatives."""
    curve = np.polynomial.Polynomial(np.array([0.2, -0.5, 0.7, 0.3, -0.4, 0.1])[: order + 1])
    curves = [curve, curve.deriv(), curve.deriv(2)]
    points = []
    for t in (0.0, 1.0):
        values = [(float(c(t)),) * 3 for c in curves]
        points.append(Waypoint(t, *values[: 2 if order == 3 else 3]))
    path = Path(Command(JOINTS, tuple(points)), JOINTS, (START, np.zeros(3)), 5.0)
    for t in (0.0, 0.3, 0.9):
        expected = np.repeat([[float(c(t))] for c in curves], 3, axis=1)
        np.testing.assert_allclose(path.sample(5.0 + t).motion, expected, rtol=0.0, atol=1e-12)


def test_velocities_on_one_end_of_a_segment_only_stay_linear() -> None:
    points = (Waypoint(0.0, REST), Waypoint(1.0, (1.0, 1.0, 1.0), REST))
    motion = Path(Command(JOINTS, points), JOINTS, (START, np.zeros(3)), 0.0).sample(0.25).motion
    np.testing.assert_allclose(motion, [[0.25] * 3, [1.0] * 3, [0.0] * 3])


A = np.array([0.3, -0.7]), np.array([1.1, 0.4]), np.array([-0.6, 2.0])
SPEED, FIRST = np.array([0.5, -0.2, 0.4]), np.array([-0.1, 0.2, 0.3])
STEP = np.array([1.0, 2.0, 3.0]) - START
B = np.array([0.9, 0.2]), np.array([-0.5, 1.7]), np.array([1.3, -0.8])


@pytest.mark.parametrize('order', [1, 2, 3])
def test_coefficients_meet_both_points_whatever_the_span(order: int) -> None:
    """In position, with velocities of both in velocity, too, and so with accelerations."""
    a, b = ((*point[:order], *[None] * (3 - order)) for point in (A, B))
    table = coefficients(a, b, 0.7)
    for t, point in ((0.0, A), (0.7, B)):
        np.testing.assert_allclose((powers(t) @ table)[:order], point[:order], rtol=1e-12)
    assert not table[2 * order:].any() and table[2 * order - 1].all()
    for less in ((a[0], None, a[2]), (a[0], a[1], None))[:order - 1]:
        first, second = coefficients(less, b, 0.7), coefficients(b, less, 0.7)
        top = 1 if less[1] is None else 3
        assert first[top].all() and not first[top + 1:].any() and not second[top + 1:].any()


def test_derivatives_of_powers_are_those_of_the_monomials() -> None:
    monomials = [np.polynomial.Polynomial.basis(k) for k in range(6)]
    np.testing.assert_allclose(powers(1.7), [
        [one.deriv(m)(1.7) if m else one(1.7) for one in monomials] for m in range(3)])


@pytest.mark.parametrize(('now', 'motion', 'index', 'played'), [
    # from the measured state, without acceleration, to the first point, which has none: a cubic
    (5.0, [START, SPEED, 2.0 * (3.0 * STEP / 0.5 - 2.0 * SPEED - FIRST) / 0.5], 0, False),
    (5.5, [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [0.0] * 3], 1, False),
    (6.0, [[1.5, 2.5, 3.5], [1.0, 1.0, 1.0], [0.0] * 3], 1, False),
    (6.5, [[2.0, 3.0, 4.0], [0.0] * 3, [0.7, 0.8, 0.9]], 1, True),
    (9.0, [[2.0, 3.0, 4.0], [0.0] * 3, [0.7, 0.8, 0.9]], 1, True)])
def test_a_path_goes_from_the_measured_state_and_stays_at_its_last_point(
    now: float, motion: Any, index: int, played: bool
) -> None:
    points = (Waypoint(0.5, (1.0, 2.0, 3.0), FIRST),
              Waypoint(1.5, (2.0, 3.0, 4.0), (), (0.7, 0.8, 0.9)))
    path = Path(Command(JOINTS, points), JOINTS, (START, SPEED), 5.0)
    found = path.sample(now)
    np.testing.assert_allclose(found.motion, motion, rtol=1e-12, atol=1e-12)
    assert (found.index, found.played, path.end) == (index, played, 6.5)
    assert path.elapsed(now) == now - 5.0


def test_a_stamped_path_starts_at_its_stamp() -> None:
    points = (Waypoint(1.0, (1.0, 2.0, 3.0)), Waypoint(3.0, (2.0, 5.0, 7.0), (0.0, 0.0, 1e-8)))
    path = Path(Command(('c', 'b', 'a'), points, 4.0), JOINTS, (START, np.zeros(3)), 2.0)
    assert (path.end, path.elapsed(9.5)) == (7.0, 5.5)
    np.testing.assert_allclose(path.sample(3.0).motion[:2], [
        START + ([2.0, 3.0, 1.0] - START) / 3.0, ([2.0, 3.0, 1.0] - START) / 3.0])
    np.testing.assert_allclose(path.sample(7.0).motion, [
        [5.0, 7.0, 2.0], [0.0, 1e-8, 0.0], [0.0] * 3])
