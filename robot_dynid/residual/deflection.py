"""Residual effort predicted from the deflection between motor and link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.regressor.friction import low_passed
from robot_dynid.residual import ResidualModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: waves are cut off between these multiples of the cut-off, the latter below half the least rate
PASSES, GONE = 2.0, 3.5

Models = Sequence[ResidualModel | None]


def deflections(robot: RobotModel, samples: Samples) -> FloatArray | None:
    """Return features (N, n, k): motor minus link position [rad] and velocity [rad/s]; the ripple.

    The latter, two features, is there with gear ratios only, see `_ripple`. At the stamps of the
    effort. NaN for joints without motor states that can be used; None for samples without any.
    """
    if samples.motor_position is None or samples.motor_velocity is None:
        return None
    count = feature_count(robot)
    flat = samples.at_stamps(samples.with_past(
        lambda known: _features(robot, known).reshape(len(known), -1)))
    return flat.reshape(len(samples), -1, count)


def _features(robot: RobotModel, samples: Samples) -> FloatArray:
    motor, speed = samples.motor_position, samples.motor_velocity
    assert motor is not None and speed is not None
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    bent = np.stack([motor - samples.position @ coupling.T,
                     speed - samples.velocity @ coupling.T], axis=2)
    if robot.drive.gear_ratios is None:
        return bent
    return np.concatenate([bent, _ripple(robot.drive.gear_ratios, bent[:, :, 0], samples)], axis=2)


def feature_count(robot: RobotModel) -> int:
    """Return the number of features of a joint."""
    return 2 if robot.drive.gear_ratios is None else 4


def _ripple(ratios: FloatArray, deflection: FloatArray, samples: Samples) -> FloatArray:
    """Return (N, n, 2): the deflection times sine and cosine of twice the turn of every motor.

    Twice per turn the wave generator of a harmonic drive presses its flexspline. Filtered as the
    motion; what turns too fast for the filter is cut off before, or it would come back as an
    alias.
    """
    assert samples.motor_position is not None and samples.motor_velocity is not None
    rate = 2.0 * np.abs(ratios)
    phase = rate * samples.motor_position
    size = deflection
    if samples.cutoff is not None:
        turns = rate * np.abs(samples.motor_velocity) / (2.0 * np.pi * samples.cutoff)
        size = size * np.clip((GONE - turns) / (GONE - PASSES), 0.0, 1.0)
    waves = np.concatenate([size * np.sin(phase), size * np.cos(phase)], axis=1)
    known = np.isfinite(waves).all(axis=0)
    waves[:, known] = low_passed(waves[:, known].T, samples).T
    return np.asarray(waves.reshape(len(waves), 2, -1).transpose(0, 2, 1))


def known_joints(features: FloatArray) -> list[int]:
    """Return the joints whose features (N, n, k) are numbers throughout."""
    return [int(j) for j in np.flatnonzero(np.isfinite(features).all(axis=(0, 2)))]


def deflection_effort(robot: RobotModel, models: Models, samples: Samples) -> FloatArray:
    """Return the effort (N, rows) [N m] of the residual models; zero without features."""
    effort = np.zeros((len(samples), robot.rows))
    features = deflections(robot, samples) if any(m is not None for m in models) else None
    if features is not None:
        for j in known_joints(features):
            model = models[j]
            if model is not None:
                effort[:, j] = model.mean(features[:, j])
    return effort


def unused(robot: RobotModel, models: Models, samples: Samples) -> str:
    """Return a note on joints whose residual model lacks inputs in these samples; '' for none."""
    features = deflections(robot, samples)
    known = [] if features is None else known_joints(features)
    missing = [robot.joints[j] for j, m in enumerate(models) if m is not None and j not in known]
    if not missing:
        return ''
    return (f'the model of the deflection of {", ".join(missing)} is not used: there are no motor '
            'states; predicted by physics alone')
