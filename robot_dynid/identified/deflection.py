"""What the deflection between motor and link tells about effort that the physics left over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.model.robot import RobotModel
from robot_dynid.residual import ResidualModel
from robot_dynid.types import FloatArray, Samples

Models = Sequence[ResidualModel | None]


def deflections(robot: RobotModel, samples: Samples) -> FloatArray | None:
    """Return features (N, n, 2): motor minus link position [rad] and velocity [rad/s].

    NaN for joints without motor states that can be used; None for samples without any.
    """
    motor, speed = samples.motor_position, samples.motor_velocity
    if motor is None or speed is None:
        return None
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    return np.stack([motor - samples.position @ coupling.T,
                     speed - samples.velocity @ coupling.T], axis=2)


def known_joints(features: FloatArray) -> list[int]:
    """Return the joints whose features (N, n, 2) are numbers throughout."""
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
    """Return which joints have a residual model that these samples cannot feed; '' for none."""
    features = deflections(robot, samples)
    known = [] if features is None else known_joints(features)
    lost = [robot.joints[j] for j, m in enumerate(models) if m is not None and j not in known]
    if not lost:
        return ''
    return (f'the model of the deflection of {", ".join(lost)} is not used: there are no motor '
            'states; predicted by physics alone')
