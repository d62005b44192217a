"""Recordings of a lively motion whose encoders are noisy: what biases least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from motions import lively, truth_of

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import RawLog

RATE = 500.0
#: effort noise relative to the peak; a cut-off [Hz] far above the motion, which ends at 1 Hz
EFFORT_NOISE, WIDE = 0.01, 50.0


def noisy_log(
    model: TorqueModel, seed: int, position_noise: float, seconds: float, lag: float = 0.0
) -> RawLog:
    """Return a recording without velocities whose positions have white noise [rad].

    The drives follow a reference ``lag`` [s] ahead of the motion.
    """
    true = lively(model, round(seconds * RATE), step=1.0 / RATE)
    assert true.effort is not None
    rng = np.random.default_rng(seed)
    position, effort = rng.normal(size=(2, *true.position.shape))
    size = EFFORT_NOISE * np.abs(true.effort).max(axis=0)
    log = RawLog(f'seed {seed}', model.robot.joints, true.time,
                 true.position + position_noise * position, effort=true.effort + size * effort)
    if lag:
        ahead = true.position + lag * true.velocity + 0.5 * lag**2 * true.acceleration
        log = replace(log, reference_position=ahead)
    return log


def noisy(
    model: TorqueModel, seed: int, position_noise: float, seconds: float = 40.0, lag: float = 0.0
) -> Experiment:
    """Return the experiment of one such recording, filtered at the wide cut-off."""
    log = noisy_log(model, seed, position_noise, seconds, lag)
    samples = prepare(model.robot, repair(model.robot, log), Preprocessing(WIDE))
    return Experiment.of(model, [samples])


def errors(model: TorqueModel, values: np.ndarray) -> np.ndarray:
    """Return the deviation (b,) of parameters from the truth."""
    return np.asarray(values - truth_of(model))
