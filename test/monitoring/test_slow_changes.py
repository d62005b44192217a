"""The monitor of a robot whose friction changes: a cold one is not touched, a push stays one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from monitored import model_of

from robot_dynid.effects.slow_changes import Adaptation, SlowCoefficients, Warming
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor import Monitor, Reading
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.noise_levels import learn_noise_levels
from robot_dynid.monitoring.observer import EXTERNAL, FRICTION, RESIDUAL, VISCOUS_SCALE, Observer
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

STEP, NOISE = 0.004, 0.1
#: friction of a cold joint over that of the model, more than what contact is told by
COLD = 1.4
DRIFT = SlowCoefficients(0.2, 0.05, 0.0, 60.0, 10.0, 0.02)
#: the friction of the model is about this large
SPEEDS = np.array([0.8, 1.1, 1.4])


class Motion(NamedTuple):
    """A motion and its effort, as the monitor takes them."""

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray

    @property
    def input(self) -> MonitorInput:
        """The motion of a whole recording."""
        return MonitorInput(*self)


def moved(model: IdentifiedModel, scale: FloatArray | float, seconds: float = 20.0,
          push: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Motion:
    """Return a motion with viscous friction of ``scale`` that of the model.

    ``push``: a torque on the second joint, and from when to when.
    """
    time = np.arange(0.0, seconds, STEP)
    q = np.sin(np.outer(time, SPEEDS)) + 0.3
    qd, qdd = SPEEDS * np.cos(np.outer(time, SPEEDS)), -SPEEDS ** 2 * (q - 0.3)
    viscous = model.axis_friction.straight[:, 0] * qd
    effort = model.inverse(q, qd, qdd) + (np.reshape(scale, (-1, 1)) - 1.0) * viscous
    effort += np.random.default_rng(5).normal(0.0, NOISE, effort.shape)
    effort[:, 1] -= push[0] * ((time >= push[1]) & (time < push[2]))
    return Motion(time, q, qd, effort)


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    """Return a model that knows its noise, and friction of 3 N m s/rad beside dry friction."""
    plain = model_of(load_robot('planar_3r'))
    names = plain.reduction.names
    values = plain.values.copy()
    for i, name in enumerate(names):
        values[i] = 3.0 if name.startswith('fv') else values[i]
    plain = replace(plain, values=values)
    known = replace(plain, noise_levels=learn_noise_levels(plain, [moved(plain, 1.0).input]))
    return known.with_learnt('adaptation', (Adaptation(None, DRIFT),) * 3)


def readings(model: IdentifiedModel, motion: Motion) -> list[Reading]:
    """Return what the monitor reads of all states."""
    monitor = Monitor(model)
    found = [monitor(float(t), q, qd, effort) for t, q, qd, effort in zip(*motion, strict=True)]
    return [one for one in found if one is not None]


def test_a_cold_robot_raises_no_false_contact(model: IdentifiedModel) -> None:
    motion = moved(model, COLD)
    without = readings(model.with_learnt('adaptation', ()), motion)
    assert np.any([one.contact for one in without])
    found = readings(model, motion)
    assert not np.any([one.contact for one in found])
    np.testing.assert_allclose(found[-1].viscous_scale, COLD, rtol=0.0, atol=0.03)
    np.testing.assert_allclose(found[-1].dry_scale, 1.0, rtol=0.0, atol=0.03)


@pytest.mark.parametrize('size', [4.0, 8.0])
def test_a_push_is_seen_as_long_as_it_lasts_and_is_not_learnt(
        model: IdentifiedModel, size: float) -> None:
    found = readings(model, moved(model, COLD, 20.0, (size, 12.0, 18.0)))
    time = np.arange(0.0, 20.0, STEP)
    torque = np.array([one.external for one in found])[:, 1]
    contact = np.array([one.contact for one in found])[:, 1]
    pushed = (time >= 12.2) & (time < 17.99)
    assert contact[pushed].all() and not contact[time < 12.0].any()
    assert not contact[time > 18.3].any()
    assert np.mean(torque[pushed]) == pytest.approx(size, rel=0.05)
    more = np.array([one.viscous_scale - 1.0 for one in found])[pushed]
    faded = np.exp(-(np.count_nonzero(pushed) - 1) * STEP / DRIFT.seconds)
    np.testing.assert_allclose(more[-1], more[0] * faded, err_msg='it only fades meanwhile')


def test_friction_and_residual_hold_what_was_learnt(model: IdentifiedModel) -> None:
    motion, late = moved(model, COLD), slice(4000, None)
    results = Observer(model, 30.0).along(motion.input)
    fixed = Observer(model.with_learnt('adaptation', ()), 30.0).along(motion.input)
    viscous = 3.0 * motion.velocity
    more = (results[:, FRICTION] - fixed[:, FRICTION])[late]
    assert np.sqrt(np.mean((more - 0.4 * viscous[late]) ** 2)) < 0.1
    for row in (RESIDUAL, EXTERNAL):
        before, after = (np.sqrt(np.mean(x[late, row] ** 2)) for x in (fixed, results))
        assert after < 0.2 * before


def test_friction_follows_the_power_it_dissipated(model: IdentifiedModel) -> None:
    """Against the warmth from friction that falls as it warms up, by a sum over small steps."""
    warming = Warming(np.array([5.0]), 2.0, np.array([0.1, 0.0]), np.array([[0.3], [0.0]]),
                      np.zeros(2), np.zeros((2, 1)), np.zeros(1))
    motion = moved(model, 1.0)
    warm = model.with_learnt('adaptation', (None, Adaptation(warming), None))
    scales = Observer(warm, 30.0).along(motion.input)[:, VISCOUS_SCALE]
    offset = model.axis_friction.straight[:, 1]
    power = ((model.friction(motion.position, motion.velocity) - offset) * motion.velocity)[:, 1]
    viscous = model.axis_friction.straight[1, 0] * motion.velocity[:, 1]**2
    warmth, expected = 0.0, [1.1]
    for k in range(1, len(power)):
        heat = power - viscous + expected[-1] * viscous
        warmth += STEP / 5.0 * (0.5 * (heat[k - 1] + heat[k]) / 2.0 - warmth)
        expected.append(1.1 - 0.3 * warmth)
    # steps of 4 ms in 5 s: of first order in the oracle
    np.testing.assert_allclose(scales[:, 1], expected, rtol=0.0, atol=1e-3)
    assert np.all(scales[:, [0, 2]] == 1.0)


def test_a_joint_at_rest_teaches_nothing(model: IdentifiedModel) -> None:
    """Friction is whatever holds a joint that creeps; above the speed of rest it is learnt."""
    assert model.noise_levels is not None
    for share, learns in ((0.8, False), (3.0, True)):
        time = np.arange(0.0, 4.0, STEP)
        qd = share * np.tile(model.noise_levels.speed, (len(time), 1))
        q = 0.3 + time[:, None] * qd
        effort = model.inverse(q, qd, 0.0 * qd) + 0.3
        found = readings(model, Motion(time, q, qd, effort))
        assert np.any([one.dry_scale != 1.0 for one in found]) == learns


def test_states_one_by_one_are_the_recording(model: IdentifiedModel) -> None:
    motion = moved(model, COLD, 3.0)
    whole = Observer(model, 30.0).along(motion.input)
    observer = Observer(model, 30.0)
    steps = np.diff(motion.time, prepend=motion.time[0])
    states = np.stack([motion.position, motion.velocity, motion.effort], axis=1)
    single = [observer(states[k:k + 1], steps[k:k + 1])[0] for k in range(len(steps))]
    np.testing.assert_array_equal(single, whole)
