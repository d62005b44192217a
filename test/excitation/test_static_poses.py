"""Static poses: informative, held twice from opposite sides, within limits, around obstacles."""

from itertools import combinations

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
from robot_dynid.types import Samples

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


#: efforts of two joints by two parameters in five poses, of unlike sizes
ROWS = np.array([[[1.0, 0.2], [0.3, 0.1]], [[0.1, 0.9], [0.0, 0.4]], [[-0.6, 0.7], [0.2, 0.2]],
                 [[0.5, 0.5], [0.5, 0.4]], [[0.9, -0.8], [0.1, 0.0]]])
CHOICE = GravityChoice(np.arange(10.0).reshape(5, 2), ROWS, ('a', 'b'))


@pytest.mark.parametrize('count', [1, 2, 3])
def test_the_choice_has_the_largest_determinant_of_all(count):
    """As many as are usable, where there are fewer."""
    def determinant(chosen):
        return np.linalg.det(CHOICE.information(list(chosen)))

    best = max(combinations(range(5), count), key=determinant)
    assert sorted(CHOICE.best(count, range(5))) == list(best)
    assert sorted(CHOICE.best(4, [0, 2, 3])) == [0, 2, 3]
    usable = [0, 2, 3]
    assert sorted(CHOICE.best(2, usable)) == list(max(combinations(usable, 2), key=determinant))


def test_a_choice_has_the_information_and_condition_of_its_rows():
    tall = ROWS[[3, 1]].reshape(4, 2)
    np.testing.assert_allclose(CHOICE.information([3, 1]), tall.T @ tall)
    unit = tall / np.sqrt(np.sum(tall**2, axis=0))
    assert CHOICE.condition_number([3, 1]) == pytest.approx(np.linalg.cond(unit))
    assert CHOICE.rank([3, 1]) == 2
    for small, rank in ((0.8e-5, 1), (1.4e-5, 2)):
        rows = np.array([[[1.0, 0.0], [0.0, small]]])
        assert GravityChoice(np.zeros((1, 2)), rows, ('a', 'b')).rank([0]) == rank


@pytest.mark.parametrize('limits', [[20.0, 5.0, 1.0], [np.nan, 5.0, 1.0]])
def test_rows_are_relative_to_all_effort_limits_where_these_are_known(limits):
    robot = load_robot('planar_3r').with_gravity(np.array([0.0, -9.81, 0.0]))
    model = design_criteria(robot).model
    poses = np.random.default_rng(1).uniform(-2.0, 2.0, (7, 3))
    choice = GravityChoice.of(model, poses, np.array(limits))
    still = np.zeros_like(poses)
    columns = model.columns(Samples(robot.joints, np.arange(7.0), poses, still, still,
                                    starts=tuple(range(7))))
    names = list(model.reduction.names)
    expected = columns[:, [names.index(name) for name in choice.names]].transpose(2, 0, 1)
    if np.isfinite(limits).all():
        expected = expected / np.array(limits)[None, :, None]
    np.testing.assert_allclose(choice.rows, expected / np.linalg.norm(
        expected, axis=(0, 1)), rtol=0.0, atol=1e-12)


def test_poses_are_approached_by_a_twenty_fifth_of_half_the_range():
    robot = load_robot('planar_3r')
    limits = motion_limits(robot)
    found = plan_static_poses(design_criteria(robot), limits, StaticPosesOptions(5, 0.3),
                              np.random.default_rng(2))
    step = 0.04 * limits.half_range
    first, hold, over, back, again = found.trajectory.segments[:5]
    pose = hold.sample(0.0).position[0]
    for move, begin, end in ((first, pose - step, pose), (over, pose, pose + step),
                             (back, pose + step, pose)):
        np.testing.assert_allclose(move.sample([0.0, move.duration]).position, [begin, end])
    assert (hold.duration, again.duration) == (0.3, 0.3)
    (row,) = found.stages
    assert (row.name, row.moving, row.swings) == ('gravity', robot.joints, 5)
    assert found.warnings == ()


def test_the_nearest_next_pose_is_that_the_slowest_joint_reaches_first():
    """In the order with the least time of all starts; the second joint is slow."""
    poses = np.array([[0.0, 0.0], [5.0, 0.1], [1.0, 1.0], [6.0, 0.9]])
    assert shortest_tour(poses, np.array([10.0, 1.0])) in ([0, 1, 3, 2], [2, 3, 1, 0])
    assert shortest_tour(poses, np.array([1.0, 10.0])) in ([0, 2, 1, 3], [3, 1, 2, 0])
    assert shortest_tour(poses[:1], np.ones(2)) == [0]


def test_fewer_poses_than_asked_for_are_reported():
    class Beyond(Post):
        """Joint 1 stays beyond the place."""

        def distance(self, position):
            return position[:, 0] - self.centre[0]

    robot = load_robot('planar_3r')
    edge = motion_limits(robot).upper[0] - 0.15 * motion_limits(robot).half_range[0]
    criteria = DesignCriteria(model=design_criteria(robot).model,
                              constraints=(Beyond((edge, 0.0), 0.0),))
    found = plan_static_poses(criteria, motion_limits(robot), StaticPosesOptions(200, 0.1),
                              np.random.default_rng(2))
    (row,), (warning,) = found.stages, found.warnings
    assert row.swings < 200
    assert warning == (f'{row.swings} poses, not 200: effort limits and constraints exclude the '
                       'others of 600 random ones')
