"""Which trajectories joint_trajectory_controller accepts, and how it interpolates them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.simulation.waypoints import Command, Path, Waypoint, rejection

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
    'end velocity': replace(GOOD, points=last_of(GOOD.points, velocity=(0.0, 1e-6, 0.0))),
    'missing joint': Command(('a', 'b'), (Waypoint(1.0, (0.0, 0.0)),)),
    'unknown joint': replace(GOOD, joints=('a', 'b', 'x')),
    'extra joint': Command(('a', 'b', 'c', 'x'), (Waypoint(1.0, (0.0,) * 4),)),
    'no names': replace(GOOD, joints=()),
    'no points': replace(GOOD, points=()),
    'unsorted times': move(2.0, 1.0),
    'equal times': move(1.0, 1.0),
    'positions too short': replace(GOOD, points=last_of(GOOD.points, position=(0.0, 0.0))),
    'velocities too long': replace(GOOD, points=last_of(GOOD.points, velocity=(0.0,) * 4)),
    'accelerations too short': replace(GOOD, points=last_of(GOOD.points, acceleration=(0.0,))),
    'no positions': Command(JOINTS, (Waypoint(1.0, (), REST),)),
    'effort values': replace(GOOD, points=last_of(GOOD.points, effort=REST)),
    'ends in the past': move(1.0, 2.0, stamp=7.9),
}
ACCEPTED = {
    'end velocity of 1e-8': replace(GOOD, points=last_of(GOOD.points, velocity=(1e-8,) * 3)),
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
    assert rejection(REJECTED[why], JOINTS, 10.0)


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
