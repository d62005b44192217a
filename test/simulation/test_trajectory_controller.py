"""One test per observed fact about joint_trajectory_controller, on the emulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.simulation.trajectory_controller import (
    Code,
    Constraints,
    Finished,
    Goal,
    Status,
    TrajectoryController,
    Update,
)
from robot_dynid.simulation.waypoints import Command, Waypoint

JOINTS = ('b', 'a', 'c')
START = np.array([0.1, 0.2, 0.3])
STILL = np.zeros(3)
AT_START = START, STILL
TOLERANCE = (0.05, 0.0, 0.0)


def controller(constraints: Constraints | None = None) -> TrajectoryController:
    made = TrajectoryController(JOINTS, constraints)
    made.activate(START)
    return made


def move(*times: float, joints: tuple[str, ...] = JOINTS, stamp: float = 0.0) -> Command:
    """A trajectory whose joints pass (t, 2 t, 3 t) at the given times."""
    points = tuple(Waypoint(t, (t, 2.0 * t, 3.0 * t)) for t in times)
    return Command(joints, points, stamp)


def run(robot: TrajectoryController, begin: float, end: float, lag: float = 0.0) -> list[Update]:
    """Cycle at 100 Hz; the measured position trails the output by ``lag`` rad."""
    updates, position = [], START
    for now in np.arange(begin, end + 1e-9, 0.01):
        updates.append(robot.update(float(now), position, STILL))
        position = updates[-1].output[0] - lag
    return updates


def test_rejected_command_disturbs_nothing() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 9.9, AT_START)
    bad = move(2.0, 1.0)
    assert robot.rejection(bad, 10.0)
    assert robot.follow(bad, 10.0, AT_START)
    assert robot.goal == 1
    assert run(robot, 9.9, 11.0)[-1].output[0] == pytest.approx([1.0, 2.0, 3.0])
    assert robot.finished[0].status is Status.SUCCEEDED


def test_inactive_controller_rejects() -> None:
    assert 'not active' in str(TrajectoryController(JOINTS).rejection(move(1.0), 0.0))


def test_permuted_names_are_sorted_into_the_controllers_order() -> None:
    robot = controller()
    robot.start(Goal(Command(('c', 'b', 'a'), (Waypoint(1.0, (3.0, 1.0, 2.0)),))), 0.0, AT_START)
    assert run(robot, 0.0, 1.0)[-1].output[0] == pytest.approx([1.0, 2.0, 3.0])


def test_omitted_joint_of_a_duplicate_name_goes_to_zero() -> None:
    robot = controller()
    robot.start(Goal(Command(('a', 'a', 'b'), (Waypoint(1.0, (5.0, 6.0, 7.0)),))), 0.0, AT_START)
    assert run(robot, 0.0, 1.0)[-1].output[0] == pytest.approx([7.0, 6.0, 0.0])


def test_positions_only_interpolate_linearly() -> None:
    robot = controller()
    robot.start(Goal(move(1.0, 2.0)), 0.0, AT_START)
    updates = run(robot, 0.0, 2.0)
    assert updates[150].reference[0] == pytest.approx([1.5, 3.0, 4.5])
    assert updates[150].reference[1] == pytest.approx([1.0, 2.0, 3.0])
    assert updates[50].reference[0] == pytest.approx(np.add(START, (1.0, 2.0, 3.0)) / 2.0)


def test_single_point_at_zero_is_a_step() -> None:
    robot = controller()
    robot.start(Goal(Command(JOINTS, (Waypoint(0.0, (1.0, 1.0, 1.0)),))), 0.0, AT_START)
    assert robot.update(0.0, START, STILL).output[0] == pytest.approx([1.0, 1.0, 1.0])
    assert robot.finished == [Finished(1, Status.SUCCEEDED, Code.SUCCESSFUL,
                                       'Goal successfully reached!')]


def test_past_stamp_joins_in_the_middle_with_a_step() -> None:
    robot = controller()
    robot.start(Goal(move(1.0, 2.0, stamp=8.5)), 10.0, AT_START)
    assert robot.update(10.0, START, STILL).output[0] == pytest.approx([1.5, 3.0, 4.5])


def test_future_stamp_starts_at_once_stretched_to_the_first_point() -> None:
    robot = controller()
    robot.start(Goal(move(1.0, 2.0, stamp=13.0)), 10.0, AT_START)
    update = robot.update(12.0, START, STILL)
    assert update.output[0] == pytest.approx(np.add(START, (1.0, 2.0, 3.0)) / 2.0)
    assert update.index == 0


def test_index_is_the_point_approached() -> None:
    robot = controller()
    robot.start(Goal(move(1.0, 2.0, 3.0)), 0.0, AT_START)
    assert [robot.update(t, START, STILL).index for t in (0.5, 1.5, 2.5, 3.0)] == [0, 1, 2, 2]


def test_unchecked_tolerances_succeed_wherever_the_joint_is() -> None:
    robot = controller()
    robot.start(Goal(move(0.1)), 0.0, AT_START)
    for now in (0.0, 0.05, 0.1):
        robot.update(now, START, STILL)
    assert robot.finished[0].status is Status.SUCCEEDED


def test_broken_path_tolerance_aborts_and_holds_the_measured_position() -> None:
    robot = controller()
    robot.start(Goal(move(1.0), path_tolerance={'a': TOLERANCE}), 0.0, AT_START)
    robot.update(0.0, START, STILL)
    robot.update(0.5, START, STILL)
    end = robot.finished[0]
    assert (end.status, end.code) == (Status.ABORTED, Code.PATH_TOLERANCE_VIOLATED)
    assert end.text.startswith('Aborted due to path tolerance violation')
    held = robot.update(0.6, START + 1.0, STILL).output
    np.testing.assert_array_equal(held, [START, STILL, STILL])


def test_broken_goal_tolerance_aborts_after_the_goal_time() -> None:
    robot = controller()
    goal = Goal(move(1.0), goal_tolerance={'b': TOLERANCE}, goal_time_tolerance=0.5)
    robot.start(goal, 0.0, AT_START)
    robot.update(1.0, START, STILL)
    robot.update(1.5, START, STILL)
    assert not robot.finished
    robot.update(1.51, START, STILL)
    end = robot.finished[0]
    assert (end.status, end.code) == (Status.ABORTED, Code.GOAL_TOLERANCE_VIOLATED)
    assert robot.update(1.6, START + 1.0, STILL).output[0] == pytest.approx(START)


def test_goal_time_zero_waits_for_ever_for_the_goal_tolerance() -> None:
    robot = controller()
    robot.start(Goal(move(1.0), goal_tolerance={'b': TOLERANCE}), 0.0, AT_START)
    for now in (1.0, 10.0, 1000.0):
        robot.update(now, START, STILL)
    assert robot.goal == 1
    robot.update(1001.0, np.array([1.0, 9.0, 9.0]), STILL)
    assert robot.finished[0].status is Status.SUCCEEDED


def test_goal_time_tolerance_alone_does_nothing() -> None:
    robot = controller()
    robot.start(Goal(move(1.0), goal_time_tolerance=0.1), 0.0, AT_START)
    robot.update(5.0, START, STILL)
    assert robot.finished[0].status is Status.SUCCEEDED


def test_defaults_apply_for_zero_and_minus_one_switches_off() -> None:
    for asked, status in ((0.0, Status.ABORTED), (-1.0, None)):
        robot = controller(Constraints(path=0.05))
        goal = Goal(move(1.0), path_tolerance=dict.fromkeys(JOINTS, (asked, 0.0, 0.0)))
        robot.start(goal, 0.0, AT_START)
        robot.update(0.5, START, STILL)
        assert (robot.finished[0].status if robot.finished else None) is status


def test_new_goal_ends_the_old_one_and_blends_from_the_measured_position() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    run(robot, 0.0, 0.5)
    here = START + 0.4
    assert robot.start(Goal(move(1.0)), 0.5, (here, STILL)) == 2
    assert robot.finished[0].number == 1
    assert (robot.finished[0].status, robot.finished[0].code) == (Status.ABORTED,
                                                                  Code.INVALID_GOAL)
    assert robot.update(0.5, here, STILL).output[0] == pytest.approx(here)


def test_a_goal_in_mid_motion_starts_with_the_measured_velocity() -> None:
    robot = controller()
    speed = np.array([0.5, -0.2, 0.0])
    point = Waypoint(0.5, (0.4, 0.1, 0.3), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0))
    end = Waypoint(1.0, (0.9, 0.1, 0.3), (0.0,) * 3, (0.0,) * 3)
    robot.start(Goal(Command(JOINTS, (point, end))), 0.0, (START, speed))
    first = robot.update(0.0, START, speed).reference
    np.testing.assert_allclose(first, [START, speed, STILL], rtol=0.0, atol=1e-12)


def test_a_goal_stamped_as_the_one_under_way_continues_it_without_a_step() -> None:
    points = tuple(Waypoint(t, (t**3,) * 3, (3 * t**2,) * 3, (6 * t,) * 3)
                   for t in (0.2, 0.6, 1.0))
    command = Command(JOINTS, (*points, Waypoint(2.0, (2.0,) * 3, (0.0,) * 3, (0.0,) * 3)))
    robot = controller()
    robot.start(Goal(command), 7.0, AT_START)
    before = run(robot, 7.0, 7.7, lag=0.05)[-1]
    assert before.elapsed == pytest.approx(0.7)
    behind = before.output[0] - 0.05
    robot.start(Goal(replace(command, stamp=7.0)), 7.7, (behind, STILL))
    after = robot.update(7.7, behind, STILL)
    np.testing.assert_allclose(after.output, before.output, rtol=0.0, atol=1e-9)
    assert after.elapsed == pytest.approx(0.7)


def test_deactivation_aborts_with_invalid_goal() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    robot.deactivate(START)
    assert (robot.finished[0].status, robot.finished[0].code) == (Status.ABORTED,
                                                                  Code.INVALID_GOAL)
    assert robot.rejection(move(1.0), 0.1)


def test_topic_message_takes_over_and_the_goal_succeeds_at_its_end() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    run(robot, 0.0, 0.5)
    other = Command(JOINTS, (Waypoint(2.0, (-1.0, -1.0, -1.0)),))
    assert robot.follow(other, 0.5, AT_START) is None
    run(robot, 0.5, 2.49)
    assert robot.goal == 1
    assert not robot.finished
    assert run(robot, 2.49, 2.51)[-1].output[0] == pytest.approx([-1.0] * 3)
    assert (robot.finished[0].number, robot.finished[0].status) == (1, Status.SUCCEEDED)


def test_empty_message_does_not_stop_the_motion() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    assert robot.follow(Command((), ()), 0.5, AT_START)
    assert run(robot, 0.5, 1.0)[-1].output[0] == pytest.approx([1.0, 2.0, 3.0])


def test_topic_motion_breaking_tolerances_logs_and_holds() -> None:
    robot = controller(Constraints(path=0.05))
    assert robot.follow(move(1.0), 0.0, AT_START) is None
    robot.update(0.5, START, STILL)
    assert not robot.finished
    assert 'path tolerance' in robot.messages[0]
    assert robot.update(0.6, START + 1.0, STILL).output[0] == pytest.approx(START)


def test_cancel_holds_the_measured_position_at_once() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    run(robot, 0.0, 0.5)
    here = START + 0.3
    assert robot.cancel(here)
    assert robot.finished == [Finished(1, Status.CANCELED, Code.SUCCESSFUL, '')]
    np.testing.assert_array_equal(robot.update(0.51, here, STILL).output, [here, STILL, STILL])
    assert not robot.cancel(here), 'nothing left to cancel'


def test_nan_holds_then_jumps_and_the_goal_succeeds() -> None:
    robot = controller()
    points = (Waypoint(0.5, (1.0, 1.0, 1.0)), Waypoint(1.0, (np.nan, 2.0, 2.0)),
              Waypoint(1.5, (np.nan, 3.0, 3.0)), Waypoint(2.0, (4.0, 4.0, 4.0)))
    goal = Goal(Command(JOINTS, points), path_tolerance=dict.fromkeys(JOINTS, TOLERANCE))
    robot.start(goal, 0.0, AT_START)
    updates = run(robot, 0.0, 2.0)
    column = np.array([update.output[0, 0] for update in updates])
    assert np.all(np.isfinite(column))
    assert np.ptp(column[50:200]) < 0.05
    assert column[200] == 4.0
    assert updates[120].output[0, 1] == pytest.approx(2.4)
    assert robot.finished[0].status is Status.SUCCEEDED


def test_infinity_asks_for_full_speed() -> None:
    robot = controller()
    robot.start(Goal(Command(JOINTS, (Waypoint(1.0, (np.inf, 0.0, 0.0)),))), 0.0, AT_START)
    output = run(robot, 0.0, 0.5)[-1].output
    assert output[0, 0] == np.inf
    assert not np.isnan(output).any()


def test_after_success_the_last_point_is_held() -> None:
    robot = controller()
    robot.start(Goal(move(1.0)), 0.0, AT_START)
    updates = run(robot, 0.0, 3.0)
    np.testing.assert_allclose(updates[-1].output, [[1.0, 2.0, 3.0], STILL, STILL])


def test_values_that_are_no_numbers_hold_their_joint_and_leave_others() -> None:
    robot = controller()
    points = (Waypoint(0.5, (1.0, 2.0, 3.0)),
              Waypoint(1.0, (np.nan, 2.5, 3.5), (1e-8, np.nan, -1e-8), (0.3, 0.4, np.nan)))
    robot.start(Goal(Command(JOINTS, points)), 0.0, AT_START)
    halfway, between, end = (robot.update(now, START, STILL).output for now in (0.25, 0.75, 1.0))
    np.testing.assert_allclose(halfway, [[0.55, 1.1, 1.65], [1.8, 3.6, 5.4], STILL])
    np.testing.assert_allclose(between, [[0.55, 2.25, 3.25], [0.0, 1.0, 1.0], STILL])
    np.testing.assert_allclose(end, [[0.55, 2.5, 3.5], [0.0, 0.0, -1e-8], [0.0, 0.4, 0.0]])


@pytest.mark.parametrize(('position', 'velocity', 'broken'), [
    ((1.049, 2.049, 3.049), (0.19, -0.19, 0.19), ''), ((1.0, 1.949, 3.0), (0.0,) * 3, 'a'),
    ((1.0, 2.0, 3.051), (0.0,) * 3, 'c'), ((1.0, 2.0, 3.0), (0.0, 0.0, -0.21), 'c')])
def test_default_goals_are_positions_and_velocities_within_their_tolerance(
    position: tuple[float, ...], velocity: tuple[float, ...], broken: str
) -> None:
    """Of this joint the goal is missed, by the time beyond its tolerance; without one for ever."""
    for seconds in (0.0, 0.25):
        robot = controller(Constraints(
            goal=0.05, stopped_velocity=0.2, **({'goal_time': seconds} if seconds else {})))
        robot.start(Goal(move(1.0)), 0.0, AT_START)
        for now in (1.0, 1.24, 2.5):
            robot.update(now, np.array(position), np.array(velocity))
        texts = [one.text for one in robot.finished]
        assert texts == ([] if broken and not seconds else [
            'Aborted due to goal_time_tolerance exceeding by 1.250000 seconds, '
            f'{broken} outside its goal' if broken else 'Goal successfully reached!'])


def test_scaled_time_runs_from_where_a_trajectory_starts() -> None:
    robot = controller()
    assert robot.update(5.0, START, STILL).elapsed == 0.0
    robot.start(Goal(move(1.0, 2.0)), 7.0, AT_START)
    robot.scaling = 0.25
    elapsed = [robot.update(now, START, STILL).elapsed for now in (7.0, 8.0, 10.0)]
    assert elapsed == [0.0, 0.25, 0.75]
    robot.scaling = 0.5
    assert robot.update(11.0, START, STILL).elapsed == 1.25
    assert robot.update(13.0, START, STILL).reference[0] == pytest.approx([2.0, 4.0, 6.0])
