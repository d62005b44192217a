"""Static poses: informative, held twice from opposite sides, within limits, around obstacles."""

import numpy as np
import pytest
from motion_constraints import Post

from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import DesignCriteria, design, design_within
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.planned.static_poses import (
    GravityChoice,
    StaticPosesOptions,
    plan_static_poses,
    shortest_tour,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.composite import build, describe, dwells
from robot_dynid.trajectories.limits import motion_limits, violations

ROBOTS = ['ur10e', 'tx40', 'seven_axis', 'stanford_arm']


def planned(robot, criteria=None, **options):
    return design(
        robot, parse_request('static-poses', options), criteria or design_criteria(robot)
    )


@pytest.mark.parametrize('name', ROBOTS)
def test_every_pose_is_held_twice_and_reached_from_both_sides(name):
    robot = load_robot(name)
    found = planned(robot, poses=8, dwell=0.7)
    assert not violations(found.trajectory.peaks(), found.limits)
    assert max(v for used in found.used.values() for v in used.values()) <= 0.9
    held = list(dwells(found.trajectory))
    assert len(held) == 16 and all(h.end - h.begin == pytest.approx(0.7) for h in held)
    for first, second in zip(held[::2], held[1::2], strict=True):
        assert np.array_equal(first.position, second.position)
        # what Coulomb friction would add to the effort that holds the pose
        before = found.trajectory.sample([first.begin - 1e-3, second.begin - 1e-3]).velocity
        assert np.all(before[0] > 0.0) and np.all(before[1] < 0.0)
        inside = found.trajectory.sample(np.linspace(first.begin, first.end, 20))
        assert np.allclose(inside.position, first.position, atol=1e-12)
        assert not np.any(inside.velocity)


@pytest.mark.parametrize('name', ROBOTS)
def test_the_choice_beats_random_poses(name):
    robot = load_robot(name)
    criteria, limits = design_criteria(robot), motion_limits(robot).scaled(0.9)
    rng = np.random.default_rng(4)
    poses = rng.uniform(limits.lower, limits.upper, (400, robot.n))
    choice = GravityChoice.of(criteria.model, poses, limits.effort)

    def log_det(chosen):
        return np.linalg.slogdet(choice.information(chosen))[1]

    best = choice.best(12, range(400))
    lucky = max(log_det(list(rng.choice(400, 12, replace=False))) for _ in range(1000))
    assert len(set(best)) == 12 and log_det(best) > lucky
    for place in range(12):  # no single exchange is better
        for other in rng.choice(400, 30, replace=False):
            if other not in best:
                swapped = [*best[:place], int(other), *best[place + 1:]]
                assert log_det(swapped) <= log_det(best) + 1e-9


@pytest.mark.parametrize('name', ['ur10e', 'seven_axis'])
def test_gravity_is_found_from_the_means_of_both_dwells(name):
    """Coulomb friction of a tenth of the effort limits leaves no trace in the means."""
    robot = load_robot(name)
    criteria = design_criteria(robot)
    held = list(dwells(planned(robot, criteria, poses=12).trajectory))[::2]
    q = np.array([h.position for h in held])
    dry = 0.1 * robot.limits.effort
    below, above = gravity_effort(robot, q) + dry, gravity_effort(robot, q) - dry
    choice = GravityChoice.of(criteria.model, q, np.full(robot.n, np.nan))
    tall = choice.rows.reshape(-1, choice.rows.shape[2])
    mean = (0.5 * (below + above)).ravel()
    fitted = np.linalg.lstsq(tall, mean, rcond=None)[0]
    assert np.allclose(tall @ fitted, mean, atol=1e-6 * np.abs(mean).max())
    apart = np.linalg.lstsq(tall, below.ravel(), rcond=None)[0]
    assert np.linalg.norm(apart - fitted) > 0.01 * np.linalg.norm(fitted)


def test_the_order_shortens_the_way():
    rng = np.random.default_rng(0)
    poses, velocity = rng.uniform(-1.0, 1.0, (20, 6)), np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0])

    def length(order):
        return np.sum(np.max(np.abs(np.diff(poses[order], axis=0)) / velocity, axis=1))

    tour = shortest_tour(poses, velocity)
    assert sorted(tour) == list(range(20))
    assert length(tour) < 0.8 * np.mean([length(rng.permutation(20)) for _ in range(50)])


@pytest.mark.parametrize('with_proof', [False, True])
def test_obstacles_are_avoided_on_the_way_and_in_the_poses(with_proof):
    robot, post = load_robot('planar_3r'), Post((1.5, 0.5), 0.7)
    plain = design_criteria(robot)
    assert post.proof(planned(robot, poses=8).trajectory).smallest < 0.0, 'nothing in the way'
    criteria = DesignCriteria(plain.score, plain.inverse, None, plain.model,
                  () if with_proof else (post,), post.proof if with_proof else None)
    found = planned(robot, criteria, poses=8)
    assert post.proof(found.trajectory).smallest > -1e-3
    assert len(list(dwells(found.trajectory))) == 16


class Wall(Post):
    """Joint 1 cannot pass the place."""

    def distance(self, position):
        return np.abs(position[:, 0] - self.centre[0]) - self.radius


def test_a_way_that_does_not_exist_is_named():
    robot = load_robot('planar_3r')
    limits = motion_limits(robot)
    with pytest.raises(DynIdError, match=r'no path found from .* distance from the post'):
        Planner(DesignCriteria(constraints=(Wall((-1.0, 0.0), 0.1),)), limits).moves(
            np.array([-1.7, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]))


@pytest.mark.parametrize(('options', 'words'), [
    ({'poses': 2}, 'poses do not determine the 16 parameters that act at rest: give at least 3'),
    ({'poses': 0}, 'at least 1'), ({'dwell': 0.0}, 'must be positive'),
    ({'periods': 2}, "unknown option 'periods' of static-poses"),
    ({'starts': 2}, "'starts' has no effect")])
def test_static_poses_refuses_impossible_options_with_the_reason(options, words):
    with pytest.raises(UsageError, match=words):
        planned(load_robot('ur10e'), **options)


def test_static_poses_are_refused_where_none_keeps_the_limits():
    robot = load_robot('planar_3r')
    criteria = DesignCriteria(
        model=design_criteria(robot).model, constraints=(Post((0.0, 0.0), 50.0),)
    )
    with pytest.raises(DynIdError, match='none of 600 poses keeps the effort limits'):
        planned(robot, criteria)


def test_a_judge_without_a_model_is_refused():
    limits = motion_limits(load_robot('planar_3r'))
    with pytest.raises(UsageError, match='chosen for a model'):
        design_within(limits, parse_request('static-poses', {}), DesignCriteria())


def test_dwells_are_found_again_in_a_file_and_the_seed_decides():
    robot = load_robot('planar_3r')
    criteria, limits = design_criteria(robot), motion_limits(robot)
    one, two, other = (plan_static_poses(criteria, limits, StaticPosesOptions(6),
                                    np.random.default_rng(seed)).trajectory for seed in (1, 1, 2))
    assert one.parameters() == two.parameters() != other.parameters()
    again = list(dwells(build(describe(one))))
    assert [h.begin for h in again] == [h.begin for h in dwells(one)]
