"""The arm with elastic joints as its monitor sees it: recordings, true gear torques, a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from elastic_truth import ARM, TRUTH, true_model
from motions import Sines

from robot_dynid.identification.gears import motor_encoders
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.robot.model import LINK
from robot_dynid.simulation.arm import Arm, TorqueStep, measured, record
from robot_dynid.types import FloatArray, RawLog

RATE = 500.0


def moved(seed: int, seconds: float, share: float = 0.5) -> Sines:
    """Return a motion within ``share`` of the limits; zero: the arm holds still."""
    path = Sines(ARM, seconds)
    shares = np.random.default_rng(10 + seed).normal(size=path.amplitude.shape)
    path.amplitude = shares / path.rate[:, None]
    motion = path.sample(np.linspace(0.0, seconds, 1000))
    path.amplitude *= share * np.minimum(
        ARM.limits.velocity / np.abs(motion.velocity).max(axis=0),
        ARM.limits.acceleration / np.abs(motion.acceleration).max(axis=0))
    return path


def recorded(path: Sines, seed: int = 0, pushes: Sequence[TorqueStep] = ()) -> RawLog:
    """Return what noisy sensors see of a motion."""
    log = record(Arm(ARM, TRUTH), path, RATE, pushes)
    return measured(log, ARM, TRUTH.noise, np.random.default_rng(seed))


def transmitted(path: Sines) -> FloatArray:
    """Return the true torque (N, n) of the gears, from MuJoCo's inverse dynamics of the links."""
    behind = replace(ARM, drive=replace(ARM.drive, elastic=(), sensor=LINK))
    effort = record(Arm(behind, TRUTH), path, RATE).effort
    assert effort is not None
    return effort


def with_motor_encoders(model: IdentifiedModel, logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the model with the relation of its motor encoders to its joints in its record."""
    return replace(model, record=replace(
        model.record, motor_encoders=motor_encoders(model, logs)))


def watched_model(logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the true model with the encoders and the noise levels of recordings.

    Its parameters are known to half a per cent.
    """
    model = true_model()
    model = replace(model, std=5e-3 * np.abs(model.values))
    known = with_motor_encoders(model, logs)
    return replace(known, noise_levels=learn_noise_levels(known, recorded_motions(known, logs)))
