"""validation/validate.py, rollout_scores.py, residual_parts.py: scores of signals by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.signals.prepare import Repaired
from robot_dynid.types import Samples
from robot_dynid.validation.residual_parts import ResidualParts, residual_parts
from robot_dynid.validation.rollout_scores import (
    MOST_ROLLOUTS,
    OpenLoopErrors,
    OpenLoopMotions,
    RolloutScore,
    Stretches,
)
from robot_dynid.validation.slow_changes import gap_between
from robot_dynid.validation.validate import Trace, Validation, joint_score, subset_scores

MODEL = nominal_model('planar_3r')
ROBOT = MODEL.robot


def test_a_score_has_the_numbers_of_its_names() -> None:
    # errors 0 to 8, but for one of 15: quartiles 2, 4 and 6, fences at -4 and 12
    error = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 15.0])
    measured = 10.0 + np.array([3.0, -3.0, 3.0, -3.0, 0.0, 3.0, -3.0, 3.0, -3.0])
    found = joint_score(measured, measured - error)
    rmse = np.sqrt(np.mean(error**2))
    assert (found.rmse, found.samples) == (pytest.approx(rmse), 9)
    assert found.quartiles == (2.0, 4.0, 6.0)
    small = joint_score(1e-3 * measured, 1e-3 * (measured - error))
    for name in ('nrmse', 'relative_error', 'r2', 'outliers'):
        assert getattr(small, name) == pytest.approx(getattr(found, name))
    assert found.outliers == pytest.approx(1.0 / 9.0)
    assert found.nrmse == pytest.approx(rmse / np.sqrt(8.0))
    assert found.relative_error == pytest.approx(rmse / np.sqrt(108.0))
    assert found.r2 == pytest.approx(1.0 - rmse**2 / 8.0)
    for first, last, outliers in ((0, 11.9, 0), (1, -3.9, 0), (0, 12.1, 1), (1, -4.1, 1)):
        error = np.array([*range(first, first + 8), last])
        assert round(9 * joint_score(measured, measured - error).outliers) == outliers
    silent = joint_score(np.zeros(3), np.ones(3))
    assert (silent.nrmse, silent.relative_error, silent.r2) == (np.inf, np.inf, -np.inf)


def test_scores_are_apart_in_motion_at_rest_and_near_reversals() -> None:
    measured = np.full((6, 2), 2.0)
    error = np.array([1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    modelled = measured - error[:, None]
    modelled[:, 1] = np.nan
    motion = np.array([True, True, True, True, False, False])
    near = np.zeros((6, 2), dtype=bool)
    near[[2, 4], 0] = True  # that at rest is none of the motion
    found = subset_scores(('a', 'b'), (measured, modelled), motion, near)
    assert {name: {joint: (one.rmse, one.samples) for joint, one in scores.items()}
            for name, scores in found.items()} == {
        'all': {'a': (pytest.approx(np.sqrt(7.0)), 6)}, 'rest': {'a': (4.0, 2)},
        'motion': {'a': (pytest.approx(np.sqrt(2.5)), 4)}, 'near reversals': {'a': (2.0, 1)}}
    found = subset_scores(('a', 'b'), (measured, modelled), np.ones(6, dtype=bool), ~near[:, :])
    assert list(found) == ['all', 'motion', 'near reversals']


def test_deviations_of_recordings_are_pooled_by_their_squares() -> None:
    def trace(**more: Any) -> Trace:
        return Trace('x', np.arange(2.0), *3 * (np.zeros((2, 2)),), np.zeros(2), **more)

    known = trace(repeatability=np.array([3.0, 1.0]), noise=np.array([0.0, 2.0]), remark='late')
    other = trace(repeatability=np.array([5.0, 1.0]), noise=np.array([4.0, 2.0]))
    found = Validation({}, {}, (known, trace(repeatability=None), other, known), ())
    np.testing.assert_allclose(found.repeatability, [np.sqrt(43.0 / 3.0), 1.0])
    np.testing.assert_allclose(found.noise, [np.sqrt(16.0 / 3.0), 2.0])
    assert found.remarks == ('x: late',)
    assert Validation({}, {}, (trace(repeatability=None),), ()).noise is None


def test_rollouts_that_stopped_do_not_count() -> None:
    errors = [np.array([[1.0, 4.0, 9.0, 16.0], [np.nan] * 4]), np.array([[9.0, 4.0, 1.0, 0.0]])]
    found = RolloutScore.of(errors, 0.25)
    assert found is not None and (found.seconds, found.count, found.stopped) == (0.25, 3, 1)
    np.testing.assert_allclose([*found.position, *found.velocity], np.sqrt([5.0, 4.0, 5.0, 8.0]))
    none = RolloutScore.of(errors[:1] and [errors[0][1:]])
    assert none is not None and none.stopped == 1 and np.isinf(none.position).all()
    assert RolloutScore.of([np.empty((0, 4))]) is None


def moving(count: int, step: float = 0.01, starts: tuple[int, ...] = (0,)) -> Samples:
    """Return samples of joints that move at 1, 2 and 3 rad/s, and of their efforts."""
    time = 5.0 + step * np.arange(count)
    position = (time - 5.0)[:, None] * [1.0, 2.0, 3.0]
    speed = np.broadcast_to([1.0, 2.0, 3.0], position.shape).copy()
    effort = 10.0 * position
    return Samples(ROBOT.joints, time, position, speed, 0.0 * speed, effort, effort, starts)


def test_stretches_are_evenly_spaced_within_segments() -> None:
    found = Stretches.along(ROBOT, moving(400, starts=(0, 120)), 0.5)
    assert found is not None and found.step == pytest.approx(0.01)
    np.testing.assert_allclose(found.start - 5.0, [0.0, 0.5, 1.2, 1.7, 2.2, 2.7, 3.2])
    np.testing.assert_allclose(found.position[1, :, 0], np.arange(0.5, 1.005, 0.01))
    # an effort is held from the middle of its step
    np.testing.assert_allclose(found.effort[1, :2, 0], [10.0 * 0.505, 10.0 * 0.515])
    assert found.effort.shape == (7, 50, 3) and found.velocity.shape == (7, 51, 3)
    longer = Stretches.along(ROBOT, moving(400), 2.0)  # these overlap
    assert longer is not None
    np.testing.assert_allclose(longer.start - 5.0, [0.0, 0.5, 1.0, 1.5])
    many = Stretches.along(ROBOT, moving(51 * 66), 0.5)
    assert many is not None and len(many.start) == 23  # every third of 67
    assert np.ptp(np.diff(many.start)) < 1e-9 and len(many.start) <= MOST_ROLLOUTS
    assert Stretches.along(ROBOT, moving(50), 0.5) is None
    assert Stretches.along(ROBOT, moving(52), 0.5) is not None
    assert Stretches.along(ROBOT, moving(1), 0.5) is None
    pushed = Stretches.along(ROBOT, replace(moving(100), external=np.ones((100, 3))), 0.5)
    assert pushed is not None and pushed.effort[0, 0, 0] == pytest.approx(0.05)  # has it


def test_errors_of_motions_are_mean_squares_over_their_time() -> None:
    found = Stretches.along(ROBOT, moving(101), 0.5)
    assert found is not None
    np.testing.assert_allclose(found.errors(found.at_constant_velocity(), 0.5), 0.0,
                               rtol=0.0, atol=1e-20)
    faster = replace(found, velocity=found.velocity + np.array([0.0, 0.5, 0.0]))
    errors = faster.errors(found.at_constant_velocity(), 0.2)
    np.testing.assert_allclose(errors[0], [0.0, 0.0, 0.0, 0.0, 0.25, 0.0], rtol=0.0, atol=1e-12)
    motions = faster.at_constant_velocity()
    late = found.errors(motions, 0.2)  # 0.5 t off at t = 0.01 to 0.2
    np.testing.assert_allclose(late[0, 1], np.mean((0.5 * 0.01 * np.arange(1, 21))**2))
    assert motions[0].shape == motions[1].shape == (len(found.start), 50, 3)


def test_motions_that_do_not_overlap_are_drawn_from_their_first_state() -> None:
    found = Stretches.along(ROBOT, moving(301), 1.0)
    assert found is not None and len(found.start) == 5  # at 0 to 2 s
    motions = found.at_constant_velocity()
    drawn = OpenLoopMotions.of(found, {'model': motions}, 4.0)
    assert drawn.time.shape == (3, 41)
    np.testing.assert_allclose(drawn.time[:, [0, 20, -1]],
                               [[1.0, 1.5, 2.0], [2.0, 2.5, 3.0], [3.0, 3.5, 4.0]])
    np.testing.assert_allclose(drawn.measured[:, [0, -1], 0], [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]],
                               rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(drawn.positions['model'], drawn.measured, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(drawn.distances['model'][:, :10], 0.0, rtol=0.0, atol=1e-9)
    assert np.isnan(drawn.distances['model'][:, 10:]).all()


def test_errors_over_the_horizon_are_root_mean_squares_of_what_ran() -> None:
    def of(model: list[float], control: list[float] | None) -> OpenLoopMotions:
        rows = np.full((1, 3, 1), np.nan)
        distances = {}
        for name, values in (('model', model), ('control', control)):
            if values is not None:
                distances[name] = rows.copy()
                distances[name][0, :len(values), 0] = values
        return OpenLoopMotions(distances, np.empty((0, 1)), np.empty((0, 1, 1)), {})

    found = OpenLoopErrors.of([of([3.0, 1.0], [8.0]), of([5.0], [6.0]), of([], [1.0])])
    assert found is not None and (found.count, found.stopped) == (3, 1)
    np.testing.assert_allclose(found.errors['model'][:, 0], [np.sqrt(17.0), 1.0, np.nan])
    np.testing.assert_allclose(found.errors['control'][0, 0], np.sqrt(101.0 / 3.0))
    alone = OpenLoopErrors.of([of([3.0], [8.0]), of([5.0], None)])
    assert alone is not None and list(alone.errors) == ['model']
    assert OpenLoopErrors.of([]) is None


def states(count: int = 2000) -> Samples:
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, count, 3))
    return Samples(ROBOT.joints, np.arange(float(count)), q, qd, qdd, np.zeros((count, 3)))


def test_the_static_part_of_a_residual_is_that_of_its_weight() -> None:
    """Of weight, friction of the joint itself and acceleration, only the weight is static."""
    samples = states()
    columns = effort_by_parameters(MODEL, samples.position, *2 * (0.0 * samples.position,))
    weight = columns @ np.linspace(0.5, 1.5, columns.shape[2])
    weight -= weight.mean(axis=0)
    moves = np.abs(samples.velocity) > 0.02
    more = 3.0 * np.tanh(samples.velocity / 0.02) + samples.velocity + 0.5 * samples.acceleration
    found = residual_parts(MODEL, replace(samples, effort=weight + more + 7.0),
                           np.full((2000, 3), 7.0))
    assert found is not None and found.rows == 2000
    known = [np.sqrt(np.mean(weight[moves[:, j], j]**2)) for j in range(3)]
    np.testing.assert_allclose(found.static, known, rtol=0.02)


@pytest.mark.parametrize('sign', [0.0, 1.0, -1.0])
def test_friction_of_another_joint_is_told_from_its_inertia(sign: float) -> None:
    samples = states()
    speed = samples.velocity[:, 2] + sign * samples.velocity[:, 0]
    effort = np.random.default_rng(0).normal(0.0, 0.5, (2000, 3))
    noise = np.var(effort[:, 0])
    effort[:, 0] += 2.0 * np.tanh(speed / 0.02) + 30.0 * samples.acceleration[:, 1]
    found = residual_parts(MODEL, replace(samples, effort=effort), 0.0 * effort)
    assert found is not None
    of_others = found.caused[~np.eye(3, dtype=bool)].reshape(3, 2)
    assert (of_others[1:] < 0.05).all() and not np.diag(found.caused).any()
    assert found.caused[0, 1] < 0.05  # inertia is no friction
    effort[:, 0] -= 30.0 * samples.acceleration[:, 1]
    found = residual_parts(MODEL, replace(samples, effort=effort), 0.0 * effort)
    assert found is not None
    of_itself = {0.0: 4.0, 1.0: 4.0 - 1.95, -1.0: 4.0 - 1.95}[sign]  # what its own leaves
    assert found.caused[0, 2] == pytest.approx(of_itself / (of_itself + noise), abs=0.06)


def test_parts_of_recordings_are_weighted_by_their_rows() -> None:
    caused = np.array([[0.0, 0.4], [0.8, 0.0]])
    found = ResidualParts.merged([ResidualParts(np.array([1.0, 2.0]), caused, 300),
                                  ResidualParts(np.array([5.0, 2.0]), 0.0 * caused, 100)])
    assert found is not None and found.rows == 400
    np.testing.assert_allclose(found.static, [np.sqrt(7.0), 2.0])
    np.testing.assert_allclose(found.caused, 0.75 * caused)
    assert ResidualParts.merged([]) is None
    for count, known in ((29, False), (30, True)):  # ten samples of motion per joint
        few = replace(states(), velocity=np.where(np.arange(2000)[:, None] < count, 1.0, 0.0)
                      * np.ones(3))
        few = replace(few, effort=few.position)
        of_few = residual_parts(MODEL, few, np.zeros((2000, 3)))
        assert of_few is not None and of_few.static.any() == known
    for count in (5999, 6000):
        long = residual_parts(MODEL, states(count), np.zeros((count, 3)))
        assert long is not None and long.rows == (3000 if count == 6000 else 5999)
    still = replace(states(), velocity=np.zeros((2000, 3)))
    none = residual_parts(MODEL, replace(still, effort=np.ones((2000, 3))), np.zeros((2000, 3)))
    assert none is not None and not none.static.any()
    assert residual_parts(MODEL, replace(still, effort=None), np.zeros((2000, 3))) is None


@pytest.mark.parametrize(('speed', 'slides'), [(0.021, True), (0.019, False), (-0.021, True)])
def test_residuals_have_parts_while_joints_slide(speed: float, slides: bool) -> None:
    samples = replace(states(), velocity=np.full((2000, 3), speed))
    found = residual_parts(MODEL, replace(samples, effort=samples.position), np.zeros((2000, 3)))
    assert found is not None and (found.static > 0.0).all() == slides


@pytest.mark.parametrize(('count', 'rows'), [(5999, 5999), (6000, 3000), (9001, 3001)])
def test_residuals_of_long_recordings_are_those_of_three_thousand_rows(
    count: int, rows: int
) -> None:
    samples = states(count)
    found = residual_parts(MODEL, samples, np.zeros((count, 3)))
    assert found is not None and found.rows == rows


def test_residuals_of_elastic_joints_have_no_parts() -> None:
    samples = states(40)
    for robot in (replace(ROBOT, drive=replace(ROBOT.drive, elastic=(1,))),
                  replace(ROBOT, drive=replace(
                      ROBOT.drive, elastic=(1,), torque_sensors=(1,)))):
        other: Any = SimpleNamespace(elastic_joints=(), robot=robot)
        assert residual_parts(other, samples, np.zeros((40, 3))) is None
        other = SimpleNamespace(elastic_joints=('joint_2',), robot=ROBOT)
        assert residual_parts(other, samples, np.zeros((40, 3))) is None


def repaired(source: str, epoch: float | None, began: float | None) -> Repaired:
    return Repaired(source, (), (), (), 0.01, epoch=epoch, began=began)


@pytest.mark.parametrize(('before', 'after', 'gap'), [
    (None, ('b', 5.0, None), None), (('a', 100.0, None), ('b', 160.0, None), 58.0),
    (('a', 100.0, None), ('b', 102.0, None), None), (('a', 100.0, None), ('b', None, None), None),
    (('a', None, 1.0), ('a', None, 1.0), None), (('a', None, None), ('a', None, None), None)])
def test_time_between_recordings_is_that_of_their_clocks(
    before: Any, after: Any, gap: float | None
) -> None:
    first = None if before is None else repaired(*before)
    assert gap_between(first, 12.0, repaired(*after), 10.0) == gap
    if gap is None and before is not None and before[2] is not None:
        assert gap_between(first, 12.0, repaired(*after), 15.0) == 3.0
        assert gap_between(first, 12.0, repaired('b', *after[1:]), 15.0) is None
