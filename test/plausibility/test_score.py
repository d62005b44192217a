"""plausibility/score.py: what a recording costs, against closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.plausibility.excerpt import Excerpt
from robot_dynid.plausibility.explanations import gravity_direction
from robot_dynid.plausibility.score import Explained, Fits
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

UNLIMITED = load_robot('planar_3r')
ROBOT = replace(UNLIMITED, limits=replace(
    UNLIMITED.limits, lower=np.array([-2.0, -7.0, np.nan]), upper=np.array([1.0, 4.0, np.nan]),
    velocity=np.array([2.0, 5.0, np.nan])))


def excerpt_of(position: FloatArray, **tables: Any) -> Excerpt:
    """Return an excerpt of positions (N, n) with still joints, 20 blocks and no effort."""
    none, still = np.zeros_like(position), np.zeros((20, position.shape[1]))
    return Excerpt(**{'position': position, 'velocity': none, 'acceleration': none, 'torque': none,
                      'travel': still, 'integrated': still, 'seconds': np.full(20, 0.2),
                      'step': 4e-3, **tables})


def poses(largest: FloatArray) -> FloatArray:
    """Return 40 rows that reach these positions on one side."""
    return np.outer(np.linspace(0.0, -1.0, 40), largest)


def travels(speed: FloatArray, seconds: FloatArray) -> dict[str, FloatArray]:
    """Return blocks (20, n) of which the first has a speed, the others half of it."""
    return {'travel': np.outer([1.0, *[0.5] * 19], speed) * seconds[:, None], 'seconds': seconds}


@pytest.mark.parametrize(('step', 'nats'), [
    (4e-3, 0.0), (4e-2, 0.2 * np.log(10.0)), (4e-4, 0.2 * np.log(10.0)),
    (0.49, 0.2 * np.log(0.49 / 4e-3)), (1.5, 100.0 * np.log(3.0) + 0.2 * np.log(1.5 / 4e-3)),
    (2e-5, 100.0 * np.log(5.0) + 0.2 * np.log(200.0)), (np.nan, 0.0), (0.0, 0.0)])
def test_steps_of_no_robot_cost(step: float, nats: float) -> None:
    for position in (poses(np.ones(3)), np.zeros((0, 3))):
        assert Explained(ROBOT, excerpt_of(position, step=step)).limits() == pytest.approx(nats)


@pytest.mark.parametrize(('largest', 'nats'), [
    # three times the limit of a joint, or pi if that is more; of unlimited ones nothing
    ((9.3, 20.8, 1e6), 0.0), ((3.0 * np.pi * 2.0, 21.0 * 3.0, 0.0), 20.0 * np.log(6.0)),
    ((-6.0 * np.pi, 1.0, 1.0), 20.0 * np.log(2.0))])
def test_positions_far_beyond_their_limits_cost(
    largest: tuple[float, ...], nats: float
) -> None:
    rows = excerpt_of(poses(np.array(largest)))
    assert Explained(ROBOT, rows).limits() == pytest.approx(nats)


LONG, SHORT = np.full(20, 0.2), np.full(20, 0.02)


@pytest.mark.parametrize(('speed', 'seconds', 'nats'), [
    # three times the limit, at least 3 rad/s
    ((8.9, 14.9, -8.9), LONG, 0.0), ((18.0, 45.0, -9.0), LONG, 20.0 * np.log(6.0)),
    # blocks shorter than half of the longest, or of a fifth of a second, do not count
    ((18.0, 0.0, 0.0), np.append(0.09, LONG[1:]), 0.0),
    ((18.0, 0.0, 0.0), np.append(0.11, LONG[1:]), 20.0 * np.log(2.0)),
    ((18.0, 0.0, 0.0), np.append(0.6, 9.0 * LONG[1:]), 20.0 * np.log(2.0)),
    ((18.0, 0.0, 0.0), np.append(0.009, SHORT[1:]), 0.0),
    ((18.0, 0.0, 0.0), np.append(0.011, SHORT[1:]), 20.0 * np.log(2.0)),
])
def test_speeds_far_beyond_their_limits_cost(
    speed: tuple[float, ...], seconds: FloatArray, nats: float
) -> None:
    rows = excerpt_of(poses(np.ones(3)), **travels(np.array(speed), seconds))
    assert Explained(ROBOT, rows).limits() == pytest.approx(nats)


@pytest.mark.parametrize(('step', 'travel', 'used', 'slow'), [
    (0.051, 0.51, 0.005, 2.0), (0.051, 0.51, 0.0099, 1.01), (0.051, 0.51, 0.0101, 1.0),
    (0.051, 0.51, 0.0, 1.0), (0.049, 0.51, 0.005, 1.0), (0.051, 0.49, 0.005, 1.0)])
def test_rare_states_of_far_but_slow_travel_cost(
    step: float, travel: float, used: float, slow: float
) -> None:
    """From half a radian of two joints on, below a hundredth of the speed of the fastest one."""
    rows = excerpt_of(poses(np.array([0.0, 0.51, travel])), step=step,
                      **travels(used * np.array([1.0, 5.0, 0.0]), LONG))
    nats = Explained(ROBOT, rows).limits() - 0.2 * np.log(step / 4e-3)
    assert nats == pytest.approx(20.0 * np.log(slow), abs=0.02)


@pytest.mark.parametrize(('blocks', 'size', 'factor', 'nats'), [
    (20, 0.1, 4.0, 10.0 * np.log(1.5)), (20, 0.1, -1.0, 10.0 * np.log(2.0)),
    (20, 0.1, 1.02, 10.0 * np.log(0.03)), (60, 0.1, 4.0, 20.0 * np.log(1.5)),
    (20, 0.1, 1e-4, 10.0 * np.log((1.0 - 1e-4) / np.sqrt(1e-3))),
    (8, 2.1e-3, 4.0, 4.0 * np.log(1.5)),
    # seven blocks, or less than 2 mrad in each, are no motion
    (7, 0.1, 4.0, None), (20, 1.9e-3, 4.0, None)])
def test_velocities_that_differ_from_the_change_of_position_cost(
    blocks: int, size: float, factor: float, nats: float | None
) -> None:
    """By their difference over the geometric mean of both."""
    travel = np.full((blocks, 3), size) * (-1.0)**np.arange(blocks)[:, None]
    integrated = factor * travel
    integrated[:, 2] = np.nan
    stated = Explained(ROBOT, excerpt_of(
        poses(np.ones(3)), travel=travel, integrated=integrated, seconds=np.full(blocks, 0.2)))
    off, cost = stated.travel(integrated)
    assert stated.travels.tolist() == [nats is not None] * 2 + [False]
    np.testing.assert_allclose(cost, [0.0 if nats is None else nats] * 2 + [0.0])
    np.testing.assert_allclose(stated.travel_slopes, [
        np.nan if nats is None else factor] * 2 + [np.nan])
    np.testing.assert_allclose(off[:2], np.nan if nats is None else abs(factor - 1.0) / np.sqrt(
        max(abs(factor), 1e-3)))
    assert np.isnan(off[2])


def test_joints_move_by_two_hundredths_in_some_of_the_rows() -> None:
    """By more than 0.1 mrad in 6 % of them; poses at rest count once each, rows by eights."""
    position = np.zeros((101, 3))
    position[:, 0], position[:6, 1], position[50:, 2] = 0.021, np.linspace(0.0, 0.03, 6), 0.21
    position[:8, 0] = np.linspace(0.0, 0.021, 8)
    stated = Explained(ROBOT, excerpt_of(position))
    assert stated.moves.tolist() == [True, False, False]
    assert (stated.poses, stated.count, stated.length) == (2.0, 101 / 8.0, 101)
    assert not Explained(ROBOT, excerpt_of(0.9 * position)).moves.any()
    many = Explained(ROBOT, excerpt_of(np.tile(poses(np.ones(3)), (5, 1))))
    assert many.moves.all() and many.count == 20.0 and many.poses == 1.0
    slow = np.outer(np.arange(300.0), [0.9e-4, 1.1e-4, 0.0])
    assert Explained(ROBOT, excerpt_of(slow)).moves.tolist() == [False, True, False]
    steps = np.repeat(np.arange(30.0), 40)
    jumps = Explained(ROBOT, excerpt_of(np.outer(steps, [0.21, 0.0, 0.0])))
    assert not jumps.moves.any() and jumps.poses == 20.0
    assert Explained(ROBOT, excerpt_of(np.zeros((0, 3)))).count == 1.0


PUMA = load_robot('puma560')
PHASES = np.outer(np.arange(300) / 16.0, [0.7, 1.1, 1.9, 0.9, 1.3, 2.3]) + np.arange(6.0)
RATES = np.array([0.7, 1.1, 1.9, 0.9, 1.3, 2.3])


def puma_rows(gravity: FloatArray, friction: float = 0.0) -> Excerpt:
    """Return sines of six joints under gravity, with friction and rotors."""
    q, qd, qdd = np.sin(PHASES), RATES * np.cos(PHASES), -RATES**2 * np.sin(PHASES)
    torque = inverse_dynamics(PUMA.with_gravity(gravity), q, qd, qdd)
    torque += friction * (np.tanh(qd / 0.02) + 0.3 * qd + 0.2 * qdd)
    return excerpt_of(q, velocity=qd, acceleration=qdd, torque=torque)


@pytest.mark.parametrize('friction', [0.0, 4.0])
@pytest.mark.parametrize('direction', [(0.0, 0.0, -1.0), (0.6, 0.0, 0.8), (-0.48, 0.6, 0.64)])
def test_the_direction_of_gravity_follows_from_efforts(
    direction: tuple[float, ...], friction: float
) -> None:
    gravity = 9.81 * np.array(direction)
    found = gravity_direction(Explained(PUMA, puma_rows(gravity, friction)))
    np.testing.assert_allclose(found, gravity, rtol=0.0, atol=1e-6)


def test_no_direction_of_gravity_shows_in_a_pose_or_in_no_effort() -> None:
    rows = puma_rows(PUMA.gravity)
    assert gravity_direction(Explained(PUMA, excerpt_of(np.zeros((300, 6))))) is None
    still = replace(rows, torque=inverse_dynamics(
        PUMA.with_gravity(np.zeros(3)), rows.position, rows.velocity, rows.acceleration))
    weightless = gravity_direction(Explained(PUMA, replace(still, torque=0.0 * still.torque)))
    assert weightless is None or np.isfinite(weightless).all()


def test_efforts_of_a_share_of_their_limit_are_usual_and_ten_times_it_is_not() -> None:
    """Cauchy about a fifth of the limit, common to all joints and of each."""
    rows = puma_rows(PUMA.gravity)
    peaks = np.abs(rows.torque).max(axis=0)
    shares = np.array([0.2, 0.4, 20.0, 0.1, 0.2, 0.05])
    robot = replace(PUMA, limits=replace(PUMA.limits, effort=peaks / shares))
    unstated = replace(PUMA, limits=replace(PUMA.limits, effort=np.full(6, np.nan)))
    cost, free = (float(Fits([Explained(one, rows)]).scores(
        [0], np.arange(6)[None], np.ones((1, 6)), 1)[0].parts[5].sum()) for one in (
            robot, unstated))
    used = np.log(shares / 0.2)
    common = np.median(used)
    usual = np.log1p((common / 1.5)**2) + np.log1p(((used - common) / 1.5)**2).sum()
    assert cost - free == pytest.approx(usual + 20.0 * np.log(2.0))


def test_friction_takes_a_share_of_effort_times_speed() -> None:
    """All of it if efforts are proportional to speed; if they drive, it costs."""
    rows = puma_rows(PUMA.gravity)
    for sign in (1.0, -1.0):
        torque = rows.torque.copy()
        torque[:, 5] = sign * 0.5 * rows.velocity[:, 5]
        score = Explained(PUMA, replace(rows, torque=torque)).score(1)
        assert score.taken[5] == pytest.approx(sign, abs=0.05)
        # six deviations at most
        np.testing.assert_allclose(score.parts[2], [0.0] * 5 + [18.0 * (sign < 0.0)])
        assert score.total == pytest.approx(sum(part.sum() for part in score.parts))
        assert replace(score, penalty=3.0).total == pytest.approx(score.total + 3.0)


def test_the_size_and_weight_of_links_in_the_effort() -> None:
    """Sizes are those of the efforts; friction is no part of the weight."""
    for friction in (0.0, 9.0):
        score = Explained(PUMA, puma_rows(PUMA.gravity, friction)).score(1)
        np.testing.assert_allclose(score.size, 1.0, rtol=0.0, atol=0.02)
        assert (score.left < 0.042).all()
        assert (score.weight[1] > 0.85) and (score.weight[5] < 0.1 if friction else True)
    half = Explained(PUMA, replace(puma_rows(PUMA.gravity), torque=0.5 * puma_rows(
        PUMA.gravity).torque)).free_sizes
    np.testing.assert_allclose(half[[1, 2]], 0.5, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('rows', [0, 2, 3])
def test_less_than_three_rows_show_nothing_of_efforts(rows: int) -> None:
    """Their positions and stamps count."""
    position = 6.0 * np.pi * poses(np.ones(6))[-rows:] if rows else np.zeros((0, 6))
    score = Explained(PUMA, excerpt_of(position, step=1.5)).score()
    nothing = rows < 3
    assert np.isnan(score.left).all() == nothing and not score.taken.any()
    if nothing:
        assert score.size.tolist() == [1.0] * 6 and not any(part.any() for part in score.parts[:5])
        assert score.total == pytest.approx(Explained(
            PUMA, excerpt_of(position, step=1.5)).limits())


def test_compensated_efforts_are_compared_with_links_without_weight() -> None:
    rows = puma_rows(np.zeros(3), 2.0)
    floating = replace(PUMA, drive=replace(PUMA.drive, kind='gravity_compensated_torque'))
    stated, compensated = (Explained(one, rows).score(1) for one in (PUMA, floating))
    assert (compensated.left[:3] < 0.042).all() and stated.left[1] > 0.2
    assert compensated.total < stated.total - 10.0


def test_inertials_in_another_unit_describe_nothing() -> None:
    rows = puma_rows(PUMA.gravity)
    bare, wrong = (PUMA.with_tree(replace(PUMA.tree, nominal=factor * PUMA.tree.nominal))
                   for factor in (0.0, 1e6))
    assert Explained(PUMA, rows).described
    for one in (bare, wrong):
        stated = Explained(one, rows)
        assert not stated.described and np.isnan(stated.free_sizes).all()
        assert (stated.held == 1e6).all() and not stated.score(1).weight.any()
