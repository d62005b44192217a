"""identified/states.py: states that users give are checked; load-dependent friction is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import axes_of
from robot_dynid.effects.joint_friction import JointFriction, Load
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.friction import law_from
from robot_dynid.identified.states import (
    FrictionTorque,
    checked_states,
    holding_torque,
    pushed,
    rollout,
)
from robot_dynid.types import FloatArray

MODEL = nominal_model('planar_3r')
pytestmark = pytest.mark.filterwarnings('ignore::robot_dynid.errors.RefusedJointWarning')


def test_checked_states_are_rows_and_know_single_ones() -> None:
    rows, single = checked_states(MODEL, {'q': [1, 2, 3], 'qd': [4.0, 5.0, 6.0]})
    assert single and [row.tolist() for row in rows] == [[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]
    rows, single = checked_states(MODEL, {'q': np.zeros((2, 3))})
    assert not single and rows[0].shape == (2, 3)


@pytest.mark.parametrize(('arrays', 'says'), [
    ({'q': np.zeros((2, 3)), 'qd': np.zeros((3, 3))},
     'qd has shape (3, 3); expected (3,) or (K, 3), the same for all arguments'),
    ({'q': np.zeros(4)}, 'q has shape (4,); expected (3,) or (K, 3), the same for all arguments'),
    ({'q': np.zeros((1, 2, 3))},
     'q has shape (1, 2, 3); expected (3,) or (K, 3), the same for all arguments'),
    ({'q': np.zeros((2, 3)), 'qd': np.array([[1.0, 2.0, 3.0], [1.0, np.inf, np.nan]])},
     'qd of joint joint_2 in state 1 is inf')])
def test_checked_states_name_what_is_wrong(arrays: dict[str, FloatArray], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_states(MODEL, arrays)
    assert str(refused.value) == says


@pytest.mark.parametrize(('states', 'effort', 'dt', 'says'), [
    (2, (2, 5, 4), 0.1, 'rollout needs states (K, n) and efforts (K, T, n); found (2, 3), '
     '(2, 5, 4)'),
    (2, (2, 3), 0.1, 'rollout needs states (K, n) and efforts (K, T, n); found (2, 3), (2, 3)'),
    (2, (2, 5, 3), 0.0, 'the step of a rollout must be above zero and at most 60 s, is 0 s'),
    (2, (2, 5, 3), 60.5, 'the step of a rollout must be above zero and at most 60 s, is 60.5 s'),
    (3, (2, 5, 3), 60.0, 'rollout needs position and velocity of motors, or neither')])
def test_rollout_says_what_it_needs(
    states: int, effort: tuple[int, ...], dt: float, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        rollout(MODEL, [np.zeros((2, 3))] * states, np.zeros(effort), dt)
    assert str(refused.value) == says


class Relief:
    """Friction that falls by a share of the acceleration."""

    def __init__(self, share: float, loaded: bool = True) -> None:
        self.share, self.loaded = share, loaded

    def relief(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, external: FloatArray
    ) -> FloatArray:
        return self.share * qdd


def test_acceleration_under_external_torque_solves_for_the_friction() -> None:
    def accelerations(q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        return 2.0 * effort

    states, external = (np.zeros((1, 2)),) * 2 + (np.array([[3.0, -1.0]]),), np.array([[0.5, 2.0]])

    def found(share: float, loaded: bool = True) -> FloatArray:
        friction: Any = Relief(share, loaded)
        return pushed(accelerations, friction, states, external)

    np.testing.assert_allclose(found(0.2, False), [[7.0, 2.0]])
    np.testing.assert_allclose(found(0.2), np.array([[7.0, 2.0]]) / (1.0 - 0.4), rtol=1e-11)
    np.testing.assert_allclose(found(-0.3), np.array([[7.0, 2.0]]) / (1.0 + 0.6), rtol=1e-11)
    np.testing.assert_allclose(found(0.375), np.array([[28.0, 8.0]]), rtol=1e-10)
    with pytest.raises(ModelError, match='identify it without load dependence'):
        found(0.4)


def test_friction_depends_on_the_load_that_gears_transmit() -> None:
    robot, rng = MODEL.robot, np.random.default_rng(1)
    links, (q, qd, qdd, external) = rng.normal(size=(3, 10)), rng.normal(size=(4, 5, 3))
    axes = axes_of(robot)
    block = JointFriction(axes, tuple(law_from('coulomb+load') for _ in axes.labels),
                          Load(robot, axes, links))
    friction = block.with_values({name: 0.1 + 0.07 * i for i, name in enumerate(block.names)})
    torque = FrictionTorque(robot, friction)
    assert torque.loaded
    borne = rigid_body.inverse_dynamics(robot, q, qd, qdd, links)
    still = rigid_body.inverse_dynamics(robot, q, qd, np.zeros_like(q), links)
    np.testing.assert_allclose(torque(q, qd, qdd), friction.torque(qd, borne))
    np.testing.assert_allclose(torque(q, qd), friction.torque(qd, still))
    pressed = friction.torque(qd, borne - external)
    np.testing.assert_allclose(torque(q, qd, qdd, external), pressed)
    relief = torque.relief(q, qd, qdd, external)
    np.testing.assert_allclose(relief, friction.torque(qd, borne) - pressed)
    assert np.abs(relief).max() > 0.01
    plain = JointFriction(axes, tuple(law_from('coulomb') for _ in axes.labels))
    unloaded = FrictionTorque(robot, plain.with_values(dict.fromkeys(plain.names, 1.0)))
    assert not unloaded.loaded and not unloaded.relief(q, qd, qdd, external).any()


def test_holding_torque_is_the_dry_friction_of_each_joint() -> None:
    model = nominal_model('planar_3r', viscous=2.0, coulomb=1.5)
    np.testing.assert_allclose(holding_torque(model), 1.5 * np.ones(3))
