"""A model that has learned what the deflection of a joint tells, and recordings of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from elastic_arms import with_motor_encoders
from monitored import model_of

from robot_dynid.effects.deflection import MixtureRegression, ResidualFit, ResidualModel
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

ROBOT = load_robot('planar_3r')
STEP, SIZE, BEND, NOISE = 0.004, 4.0, 1e-3, 0.05


def learned(bend: FloatArray) -> FloatArray:
    """Return the torque [N m] that only the deflection (N,) [rad] of joint 2 tells."""
    return SIZE * np.tanh(2.0 * bend / BEND)


def recording(seed: int, seconds: float = 12.0, scale: float = 1.0) -> RawLog:
    """Return a motion in which joint 2 deflects by up to ``scale`` times BEND."""
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, STEP)
    rate, model = np.array([0.9, 1.3, 1.9]), model_of(ROBOT)
    phase = np.outer(time, rate)
    q, qd, qdd = np.sin(phase), rate * np.cos(phase), -rate**2 * np.sin(phase)
    turn = 1.7 * time + rng.uniform(0.0, 6.0)
    swell = scale * BEND * (0.55 - 0.45 * np.cos(0.9 * time))
    bend = swell * np.sin(turn)
    effort = model.inverse(q, qd, qdd) + NOISE * rng.standard_normal(q.shape)
    effort[:, 1] += learned(bend)
    motor, speed = q.copy(), qd.copy()
    motor[:, 1] += bend
    speed[:, 1] += 1.7 * swell * np.cos(turn) + 0.405 * scale * BEND * np.sin(
        0.9 * time) * np.sin(turn)
    motor[:, [0, 2]] += 1e-5 * rng.standard_normal((len(time), 2))
    return RawLog(f'made up {seed}', ROBOT.joints, time, q, qd, effort, motor, speed)


def fitted(fit: ResidualFit) -> ResidualModel:
    """Return a residual model of joint 2, from deflections and torques as they are."""
    log = recording(0)
    assert log.motor_position is not None and log.motor_velocity is not None
    assert log.velocity is not None
    bent = np.stack([log.motor_position[:, 1] - log.position[:, 1],
                     log.motor_velocity[:, 1] - log.velocity[:, 1]], axis=1)
    noise = NOISE * np.random.default_rng(1).standard_normal(len(bent))
    return fit.fit(bent, learned(bent[:, 0]) + noise)


@cache
def model_with(fit: ResidualFit) -> IdentifiedModel:
    own = model_of(ROBOT).with_learnt('residual', (None, fitted(fit), None))
    logs = [recording(2), recording(3)]
    known = with_motor_encoders(own, logs)
    return replace(known, noise_levels=learn_noise_levels(known, recorded_motions(known, logs)))


GMR = MixtureRegression()
