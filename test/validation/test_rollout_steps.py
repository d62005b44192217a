"""validation/rollout_scores.py: states, commands and times that simulated motions begin with."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.errors import ModelError
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples
from robot_dynid.validation import rollout_scores
from robot_dynid.validation.rollout_scores import (
    INSTANTS,
    MOST_ROLLOUTS,
    OpenLoop,
    OpenLoopMotions,
    RolloutScore,
    Stretches,
    control_model,
    rollouts_along,
)

MODEL = replace(nominal_model('planar_3r'), not_identified=(), warnings=())
ROBOT = MODEL.robot
ELASTIC = load_robot('elastic_2r')


def samples_of(count: int, step: float = 0.01, coordinates: int = 3, **more: Any) -> Samples:
    """Return samples whose numbers differ row by row and column by column."""
    time = 5.0 + step * np.arange(count)
    place = np.arange(count)[:, None] + 0.1 * np.arange(coordinates)
    effort = 7.0 + place[:, :more.pop('rows', coordinates)]
    joints = tuple(f'joint_{j + 1}' for j in range(min(coordinates, 3)))
    return Samples(joints, time, place, 100.0 + place, 200.0 + place, effort, effort, **more)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what simulations are asked: states, effort and step; each adds 0.5 per step."""
    asked: list[Any] = []

    def rollout(model: Any, states: Any, effort: FloatArray, step: float) -> Any:
        asked.append(([one.copy() for one in states], effort.copy(), step))
        if model == 'impossible':
            raise ModelError('the gear is impossible')
        count = np.arange(1.0, effort.shape[1] + 1.0)[:, None]
        return SimpleNamespace(position=states[0][:, None] + 0.5 * count,
                               velocity=states[1][:, None] + 0.25 * count)

    monkeypatch.setattr(rollout_scores, 'rollout', rollout)
    return asked


def test_simulations_begin_at_measured_states_of_joints_and_motors(simulated) -> None:
    stretches = Stretches.along(ROBOT, samples_of(120), 0.5)
    assert stretches is not None and stretches.command is None
    model: Any = SimpleNamespace(elastic_joints=())
    position, velocity = stretches.rollouts(model)
    ((states, effort, step),) = simulated
    first = np.array([[0.0], [50.0]]) + 0.1 * np.arange(3)
    np.testing.assert_allclose(states, [first, 100.0 + first])
    np.testing.assert_array_equal(effort, stretches.effort)
    assert step == pytest.approx(0.01) and len(position) == 2
    np.testing.assert_allclose(position[:, 2], first + 1.5)
    np.testing.assert_allclose(velocity[:, 2], 100.0 + first + 0.75)
    robot = replace(ELASTIC, drive=replace(ELASTIC.drive, elastic=(1,)))
    bent = Stretches.along(robot, samples_of(120, coordinates=3), 0.5)
    assert bent is not None
    for joints, count in ((('joint_2',), 4), ((), 2)):
        simulated.clear()
        elastic: Any = SimpleNamespace(elastic_joints=joints)
        bent.rollouts(elastic)
        ((states, _, _),) = simulated
        motors = first[:, [0, 2]]  # the rigid joint moves its own
        np.testing.assert_allclose(states, [
            first[:, :2], 100.0 + first[:, :2], motors, 100.0 + motors][:count])


@pytest.mark.parametrize(('late', 'step', 'inner'), [
    (None, 0.01, 5), (np.array([0.01, 0.02, 0.03]), 0.01, 5), (None, 0.0041, 3),
    (None, 0.0039, 2), (None, 0.0015, 1)])
def test_servos_follow_commands_in_steps_of_two_milliseconds(
    simulated, late, step, inner
) -> None:
    """With the error in the middle of each, which the derivative reduces, up to their limit."""
    gains, limit = np.array([20.0, 30.0, 40.0]), np.array([0.4, 1e3, 1e3])
    robot = replace(ROBOT, drive=Drive('position_error', gains=gains, error_limit=limit,
                                       derivative_time=late))
    command = 3.0 + np.arange(60)[:, None] + np.array([0.0, 0.2, 0.4])
    samples = samples_of(60, step, reference_position=command)
    stretches = Stretches.along(robot, samples, 2.0 * step)
    assert stretches is not None
    np.testing.assert_allclose(stretches.command[0, 0], command[0] + 0.5)
    model: Any = SimpleNamespace(elastic_joints=())
    position, velocity = stretches.rollouts(model)
    assert len(simulated) == 2 * inner and position.shape == stretches.command.shape
    q, qd, h = stretches.position[:, 0], stretches.velocity[:, 0], step / inner
    delay = 0.0 if late is None else late
    for k, ((start, speed), effort, dt) in enumerate(simulated):
        assert dt == pytest.approx(h)
        np.testing.assert_allclose(start, q)
        np.testing.assert_allclose(speed, qd)
        error = stretches.command[:, k // inner] - q - (0.5 * h + delay) * qd
        np.testing.assert_allclose(effort[:, 0], gains * np.clip(error, -limit, limit))
        q, qd = q + 0.5, qd + 0.25
        if k % inner == inner - 1:
            np.testing.assert_allclose(position[:, k // inner], q)
            np.testing.assert_allclose(velocity[:, k // inner], qd)
    plain = Stretches.along(ROBOT, samples, 0.5)
    assert plain is None or plain.command is None


def test_rollouts_are_scored_over_half_a_second_with_those_at_constant_velocity(
    simulated
) -> None:
    samples = samples_of(120)
    model: Any = SimpleNamespace(elastic_joints=(), robot=ROBOT)
    found, steady = rollouts_along(model, samples)
    count = np.arange(1.0, 51.0)
    # samples advance by one a step
    np.testing.assert_allclose(found, np.tile(np.repeat(
        [np.mean((0.5 * count)**2), np.mean((0.75 * count)**2)], 3), (2, 1)))
    speeds = 100.0 + np.array([[0.0], [50.0]]) + 0.1 * np.arange(3)
    off = (0.01 * speeds[:, :, None] - 1.0) * count
    np.testing.assert_allclose(steady, np.hstack([
        np.mean(off**2, axis=2), np.full((2, 3), np.mean(count**2))]), rtol=1e-9,
                               atol=1e-12)
    for elastic, linkage in ((('joint_1',), None), ((), 'linkage')):
        other: Any = SimpleNamespace(elastic_joints=elastic, robot=replace(ROBOT, linkage=linkage))
        assert [one.shape for one in rollouts_along(other, samples)] == [(0, 6), (0, 6)]
    assert [one.shape for one in rollouts_along(model, samples_of(40))] == [(0, 6), (0, 6)]


@pytest.mark.parametrize(('count', 'stretches'), [(52, 1), (101, 2), (51 * 32, 32), (51 * 33, 17)])
def test_stretches_are_thirty_two_at_most(count: int, stretches: int) -> None:
    found = Stretches.along(ROBOT, samples_of(count), 0.5)
    assert (found is not None and len(found.start) == stretches) or count > 1000
    assert found is not None and len(found.start) <= MOST_ROLLOUTS == 32
    two = Stretches.along(ROBOT, samples_of(2), 0.004)  # one step at least
    assert two is not None and two.effort.shape == (1, 1, 3)
    assert Stretches.along(ROBOT, samples_of(1), 0.004) is None


def test_distances_at_instants_are_those_of_the_row_they_fall_on() -> None:
    """A tenth of a second is the second row after the start in steps of 0.06 s."""
    still = np.zeros((1, 31, 3))
    own = Stretches(ROBOT, np.zeros(1), still, still, still[:, 1:], 0.06)
    moved = np.zeros((1, 30, 3))
    moved[0, :, 1] = -1e-3 * np.arange(1.0, 31.0)
    rows = np.round(np.array(INSTANTS) / 0.06)
    assert [rows[0], rows[17]] == [2.0, 30.0] and INSTANTS[17] == pytest.approx(1.8)
    found = own.distances(moved)
    np.testing.assert_allclose(found[0, :18, 1], 1e-3 * rows[:18])
    assert np.isnan(found[0, 18:]).all() and not found[0, :18, [0, 2]].any()
    slow = Stretches(ROBOT, np.zeros(1), still, still, still[:, 1:], 0.3)
    assert slow.distances(moved)[0, 0, 1] == pytest.approx(1e-3)  # not before the first


def test_drawn_motions_begin_where_the_one_before_ends() -> None:
    position = np.arange(5.0)[:, None, None] + np.zeros((5, 5, 3))
    own = Stretches(ROBOT, np.array([0.0, 0.35, 0.4, 0.75, 0.81]), position, position,
                    position[:, 1:], 0.1)
    drawn = OpenLoopMotions.of(own, {'model': (position[:, 1:] + 0.5, position[:, 1:])}, -2.0)
    np.testing.assert_allclose(drawn.time, [
        2.0 + start + 0.1 * np.arange(5.0) for start in (0.0, 0.4, 0.81)])
    assert drawn.measured[:, 0, 0].tolist() == [0.0, 2.0, 4.0]
    assert drawn.positions['model'][1, :, 0].tolist() == [2.0, *[2.5] * 4]


def test_scores_have_half_of_the_columns_each() -> None:
    found = RolloutScore.of([np.array([[1.0, 4.0, 9.0, 16.0, 25.0, 36.0]])])
    assert found is not None and found.seconds == 0.5
    assert (found.position.tolist(), found.velocity.tolist()) == ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])


@pytest.mark.parametrize(('count', 'length'), [(202, 200), (200, 100), (102, 100), (100, 50),
                                               (52, 50), (50, None)])
def test_open_loops_are_as_long_as_recordings_allow(simulated, monkeypatch, count, length) -> None:
    nominal: Any = SimpleNamespace(elastic_joints=(), name='nominal')
    monkeypatch.setattr(rollout_scores, 'control_model', lambda model: (nominal, ''))
    model: Any = SimpleNamespace(elastic_joints=(), robot=ROBOT, not_identified=())
    loop = OpenLoop(model)
    found = loop.along(samples_of(count))
    assert loop.reason == ''
    if length is None:
        assert found is None and simulated == []
        return
    assert found is not None and list(found.distances) == ['model', 'control']
    assert [effort.shape[1] for _, effort, _ in simulated] == [length, length]
    assert found.time.shape[1] == 41
    assert found.time[0, 0] == 0.0 and found.time[0, -1] == pytest.approx(0.01 * length)


def test_open_loops_are_not_simulated_for_a_reason(monkeypatch) -> None:
    monkeypatch.setattr(rollout_scores, 'control_model', lambda model: (None, 'why'))

    def loop(**changes: Any) -> OpenLoop:
        model: Any = SimpleNamespace(**{'elastic_joints': (), 'robot': ROBOT,
                                        'not_identified': (), **changes})
        return OpenLoop(model)

    refused = loop(not_identified=('joint_1', 'joint_3'),
                   robot=replace(ROBOT, linkage='linkage'))
    assert refused.reason == ('a simulation moves all joints at once, and the model refuses '
                              'joint_1, joint_3')
    linked = loop(robot=replace(ROBOT, linkage='linkage'))
    assert linked.reason == 'simulations do not cover joints that move others'
    assert refused.along(samples_of(120)) is None and linked.along(samples_of(120)) is None
    pushed = samples_of(120, external=np.zeros((120, 3)))
    elastic = loop(elastic_joints=('joint_1',))
    assert elastic.along(pushed) is None
    assert elastic.reason == 'simulations of elastic joints take no external wrench'

    def impossible(*_: Any) -> Any:
        raise ModelError('the gear is impossible')

    monkeypatch.setattr(rollout_scores, 'rollout', impossible)
    bad = loop()
    assert bad.reason == '' and bad.along(pushed) is None
    assert bad.reason == 'the gear is impossible'


def test_control_has_nominal_inertials_if_these_can_move(monkeypatch) -> None:
    found, reason = control_model(replace(MODEL, not_identified=ROBOT.joints))
    assert found is not None and reason == '' and found.not_identified == ()
    np.testing.assert_array_equal(found.values, MODEL.control)
    assert found.feasible is None
    for shown in (np.array([False, True, False]), np.zeros(3, dtype=bool)):
        monkeypatch.setattr(rollout_scores, 'described', lambda robot, shown=shown: shown)
        assert (control_model(MODEL)[0] is not None) == shown.any()
    assert control_model(MODEL) == (None, '')
    monkeypatch.undo()
    none, reason = control_model(replace(MODEL, control=-MODEL.values))
    assert none is None
    assert reason.startswith('nominal inertials with fitted friction are not compared: ')
