"""monitoring/noise_levels.py: when external torque is contact: noise levels, hysteresis, friction
that holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitored import model_of, motion

from robot_dynid.dynamics.rigid_body import Momentum
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.model_file import DIGEST
from robot_dynid.identified.noise_levels import QUANTILE, NoiseLevels
from robot_dynid.identified.states import holding_torque
from robot_dynid.monitoring import noise_levels
from robot_dynid.monitoring.monitor import Monitor, MonitorSettings, Reading
from robot_dynid.monitoring.monitor_input import monitor_input
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.monitoring.observer import (
    CONTACT,
    CONTACT_STATES,
    EXTERNAL,
    REST_SPEED,
    THRESHOLD,
    ContactLevels,
    ContactSettings,
    Observer,
    slowest,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog


class Touch:
    """A resting or moving arm without weight, whose middle joint is pushed; see `ContactSettings`.

    The observer follows every torque at once, but slowness is forgotten at 30 1/s only where
    ``gain`` is that.
    """

    def __init__(self, settings: ContactSettings, gain: float = 1e9) -> None:
        robot = load_robot('planar_3r').with_gravity(np.zeros(3))
        levels = NoiseLevels(np.full(3, 1.0), np.full(3, 3.0), np.full(3, 0.01), gain)
        model = model_of(robot)
        model = replace(model, values=model.reduction.base(np.concatenate([
            robot.nominal.ravel(), np.zeros(len(model.reduction.standard) - 30)])),
            noise_levels=levels)
        self._rate = Momentum(robot)
        self.monitor = Monitor(model, MonitorSettings(gain, settings))
        self._time = 0.0

    def __call__(self, torque: float, velocity: tuple[float, float, float], steps: int,
                 step: float = 0.002) -> Reading:
        """Return the last of ``steps`` readings."""
        qd, q, push = np.array(velocity), np.array([0.1, 0.2, 0.3]), np.array([0.0, torque, 0.0])
        rate = self._rate(q[None], qd[None])[1][0]
        for _ in range(steps):
            self._time += step
            reading = self.monitor(self._time, q, qd, -rate - push)
            assert reading is not None
        return reading


def test_contact_has_hysteresis_and_lasts() -> None:
    touch, fast = Touch(ContactSettings(1.5, 0.6, 0.01)), (1.0, 1.0, 1.0)

    def after(torque: float, steps: int) -> bool:
        reading = touch(-torque, fast, steps)
        assert not reading.contact[[0, 2]].any()
        return bool(reading.contact[1])

    assert not after(1.49, 100)
    np.testing.assert_allclose(touch(-1.49, fast, 1).threshold, 1.5)
    assert not after(1.6, 4), 'not for long enough'
    assert not after(1.3, 2)
    assert not after(1.6, 5), 'counts from the beginning; the first is half of 1.3'
    assert after(1.6, 1)
    assert after(0.95, 100), 'above 60 % of the threshold'
    assert after(0.8, 4)
    assert not after(0.8, 1)


def test_contact_lasts_some_states_however_rare() -> None:
    touch, fast = Touch(ContactSettings(1.5, duration=0.0)), (1.0, 1.0, 1.0)
    touch(0.0, fast, 5, 0.05)
    assert not touch(9.0, fast, CONTACT_STATES - 1, 0.05).contact.any()
    assert touch(9.0, fast, 1, 0.05).contact.tolist() == [False, True, False]


def test_slow_joints_need_more_torque_and_are_forgotten_like_the_torque() -> None:
    touch = Touch(ContactSettings(1.5), gain=30.0)
    np.testing.assert_allclose(touch(0.0, (0.0, 0.0, 0.0), 1).threshold, 4.5)
    np.testing.assert_allclose(touch(0.0, (1.0, 0.0, -1.0), 1, 1.0 / 30.0).threshold,
                               [1.5 + 3.0 / np.e, 4.5, 1.5 + 3.0 / np.e])


@pytest.mark.parametrize('law', ['coulomb', 'dahl', 'maxwell'])
def test_friction_may_hold_a_resting_joint_either_way(law: str) -> None:
    robot = load_robot('seven_axis')
    model = model_of(robot, law)
    monitor = Monitor(model, MonitorSettings(contact=ContactSettings(thresholds=(0.2,))))
    dry, offset = holding_torque(model), model.friction(np.zeros((1, 7)), np.zeros((1, 7)))[0]
    speed = np.clip(0.9 * REST_SPEED * (2.0 - 0.002 * np.arange(1500)), 0.0, 0.9 * REST_SPEED)
    place = np.cumsum(0.002 * speed)
    for way in (1.0, -1.0):  # it creeps, then friction holds it along its way or against it
        for k in range(1500):
            at, rests = np.full(7, place[k]), bool(speed[k] == 0.0)
            effort = model.gravity(at) + offset + dry * (way if rests else 1.0)
            reading = monitor(100.0 * way + 0.002 * k, at, np.full(7, speed[k]), effort)
            assert reading is not None
            assert not reading.contact.any()
    assert np.abs(reading.external).max() > 0.5


def test_levels_bound_the_motion_they_are_from() -> None:
    model = model_of(load_robot('seven_axis'))
    log = motion(model.robot)
    levels = learn_noise_levels(model, [monitor_input(model, log)])
    carried = replace(model, noise_levels=levels)
    again = IdentifiedModel.from_yaml(carried.to_yaml())
    monitor = Monitor(again)
    assert monitor.levels is not None
    np.testing.assert_array_equal(monitor.levels.moving, levels.moving)
    above = []
    for k in range(len(log.time)):
        assert log.velocity is not None
        assert log.effort is not None
        reading = monitor(float(log.time[k]), log.position[k], log.velocity[k], log.effort[k])
        assert reading is not None
        bound = reading.threshold - levels.moving  # the threshold has twice the level
        above.append(np.abs(reading.external - reading.claimed) > bound)
    assert np.mean(above, axis=0).max() < 2.0 * (1.0 - QUANTILE)
    assert np.any(above)
    text = carried.to_yaml().rpartition(DIGEST)[0]
    with pytest.raises(ModelError, match=r'noise_levels\.joints\.joint_1 has no going'):
        IdentifiedModel.from_yaml(text.replace('{moving:', '{going:'))


def in_turn(log: RawLog, rest: int) -> RawLog:
    """Return a recording that begins with rest, and whose joints then move one after the other."""
    assert log.velocity is not None
    assert log.effort is not None
    count, n = log.position.shape
    turn = np.arange(count)[:, None] * n // count == np.arange(n)
    time = 0.002 * np.arange(rest + count)
    q = np.concatenate([np.zeros((rest, n)), np.where(turn, log.position, 0.0)])
    qd = np.concatenate([np.zeros((rest, n)), np.where(turn, log.velocity, 0.0)])
    return RawLog('in turn', log.joints, time, q, qd,
                  np.concatenate([np.zeros((rest, n)), log.effort]))


def test_levels_are_those_of_motion_also_after_a_long_rest(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that is started before a motion is designed records rest for a minute."""
    monkeypatch.setattr(noise_levels, 'LEVEL_ROWS', 1500)
    monkeypatch.setattr(noise_levels, 'LEVEL_SECONDS', 0.0)
    model = model_of(load_robot('seven_axis'))
    log = in_turn(motion(model.robot), 6000)
    whole = learn_noise_levels(model, [monitor_input(model, log)])
    found = learn_noise_levels(model, recorded_motions(model, [log]))
    # of a quarter of the rows, some of them with what the observer has when it begins
    np.testing.assert_array_less(0.5 * whole.moving, found.moving)
    np.testing.assert_array_less(found.moving, 2.0 * whole.moving)
    part = monitor_input(model, log).in_motion(1500)
    assert len(part.time) == 1500
    assert np.abs(part.velocity).max(axis=0).min() > 0.0
    assert {0, *(np.flatnonzero(np.diff(part.time) > 0.003) + 1)} <= set(part.starts)
    # the second recording has the motion of joints that rest in the first
    rest = replace(log, time=log.time[:6000], position=log.position[:6000],
                   velocity=log.velocity[:6000], effort=log.effort[:6000])
    both = learn_noise_levels(model, recorded_motions(model, [rest, log]))
    assert np.all(both.moving > 0.5 * whole.moving)


def test_levels_of_joints_that_never_moved_are_those_of_friction() -> None:
    model = model_of(load_robot('seven_axis'))
    log = in_turn(motion(model.robot, 10), 500)
    still = replace(log, velocity=np.zeros_like(log.position))
    levels = learn_noise_levels(model, [monitor_input(model, still)])
    np.testing.assert_array_equal(levels.moving, levels.holding)
    assert np.all(levels.holding >= holding_torque(model))
    assert np.all(levels.holding > 0.0)


@pytest.mark.parametrize(('settings', 'words'), [
    ({'margin': 0.5}, 'contact margin must be at least 1'),
    ({'release': 0.0}, 'contact release'),
    ({'duration': -1.0}, 'contact duration'),
    ({'thresholds': (1.0, -2.0)}, 'contact thresholds must be positive'),
])
def test_impossible_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ContactSettings(**settings)


@pytest.mark.parametrize(('kind', 'name', 'low', 'high'), [
    (ContactSettings, 'margin', 1.0, 1e6), (ContactSettings, 'release', 1e-3, 1.0),
    (ContactSettings, 'duration', 0.0, 60.0), (ContactSettings, 'thresholds', 1e-9, 1e9),
    (MonitorSettings, 'gain', 1e-3, 1e10)])
def test_settings_have_ranges(kind: Any, name: str, low: float, high: float) -> None:
    def given(value: float) -> Any:
        return kind(**{name: (value,) if name == 'thresholds' else value})

    for value in (low, high):
        assert given(value) is not None
    for value in (0.9 * low if low else -1e-3, 1.1 * high):
        with pytest.raises(UsageError, match=name):
            given(value)


def test_levels_alone_begin_and_end_contact_at_once() -> None:
    """Without a release, a duration and states of their own; also levels given row by row."""
    robot = load_robot('planar_3r').with_gravity(np.zeros(3))
    model = model_of(robot)
    model = replace(model, values=np.zeros_like(model.values))
    torque = np.array([0.0, 0.0, 2.0, 2.0, 2.0, 0.9, 0.9, 1.2, 1.2])
    states = np.zeros((9, 3, 3))
    states[:, 1], states[:, 2, 1] = 1.0, -torque
    steps = np.append(0.0, np.full(8, 0.01))
    levels = ContactLevels(np.ones(3), np.zeros(3), np.zeros(3))
    external = np.append(0.0, 0.5 * (torque[1:] + torque[:-1]))  # constant within a step
    found = Observer(model, 1e9, levels)(states, steps)
    np.testing.assert_allclose(found[:, EXTERNAL, 1], external, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[:, CONTACT, 1], external > 1.01)
    high = np.repeat([1.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.3], 6).reshape(9, 2, 3)
    high[:, 1] = 0.0
    again = Observer(model, 1e9, levels)(states, steps, high)
    np.testing.assert_array_equal(again[:, THRESHOLD], high[:, 0])
    np.testing.assert_array_equal(again[:, CONTACT, 1], external > 1.01 * high[:, 0, 1])


def test_joints_of_models_without_levels_rest_below_a_hundredth() -> None:
    np.testing.assert_array_equal(slowest(model_of(load_robot('planar_3r'))), np.full(3, 0.01))


def test_thresholds_fit_the_robot() -> None:
    model = model_of(load_robot('seven_axis'))
    with pytest.raises(UsageError, match='2 contact thresholds for 7 joints'):
        Monitor(model, MonitorSettings(contact=ContactSettings(thresholds=(1.0, 2.0))))


def test_levels_of_other_gains_grow_with_the_root_and_never_shrink() -> None:
    levels = NoiseLevels(np.array([1.0, 2.0]), np.full(2, 3.0), np.full(2, 0.01), 30.0)
    for gain, factor in ((120.0, 2.0), (30.0, 1.0), (10.0, 1.0)):
        np.testing.assert_allclose(levels.at_gain(gain), factor * levels.moving, rtol=1e-12)


def test_levels_widen_by_what_a_model_errs_on_other_motion() -> None:
    """The share of samples above the level stays the same with the error added."""
    draw = np.random.default_rng(1).normal(size=(2, 400_000))
    level = np.quantile(np.abs(draw[0]), QUANTILE)
    levels = NoiseLevels(np.full(2, level), np.ones(2), np.ones(2))
    levels = replace(levels, deflected=levels)
    found = levels.widened(np.array([0.0, 2.0]))
    both = np.quantile(np.abs(draw[0] + 2.0 * draw[1]), QUANTILE)
    np.testing.assert_allclose(found.moving, [level, both], rtol=0.03)
    assert found.deflected is not None
    np.testing.assert_array_equal(found.deflected.moving, found.moving)
    np.testing.assert_array_equal(found.holding, levels.holding)
