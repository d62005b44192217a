"""Residual effort predicted from the deflection between motor and link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.regressor import RigidLinks
from robot_dynid.regressor.friction import low_passed
from robot_dynid.residual import GearModel, ResidualModel
from robot_dynid.residual.gear import BESIDE
from robot_dynid.residual.ripple import LEARNED
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


def gear_load(model: TorqueModel, values: FloatArray) -> FloatArray:
    """Return the base parameters (b,) of ``values`` (b,) that are those of links, others zero.

    Their effort is what the links take of the torque that passes through the gears.
    """
    own = [np.full(len(kept), isinstance(block, RigidLinks))
           for block, kept in zip(model.blocks, model.kept_by_block, strict=True)]
    return np.where(np.concatenate(own), values, 0.0)


def beside_load(features: FloatArray, load: FloatArray) -> FloatArray:
    """Return features (N, n, k + BESIDE) of gears: ``features`` (N, n, k), then the load.

    ``load`` (N, rows) [N m] is the effort of the links of the model at the same stamps.
    """
    return np.concatenate([features, load[:, :features.shape[1], None]], axis=2)


def seen(features: FloatArray, gear: bool) -> FloatArray:
    """Return ``features`` (N, k + BESIDE) of a joint for a model of its gear, (N, k) for others.
    """
    return features if gear else features[:, :-BESIDE]


def _features(robot: RobotModel, samples: Samples) -> FloatArray:
    """Return the features (N, n, k) of samples; the ripple is filtered as the motion.

    It passes the filter as a whole, since what it is made of is no smooth motion.
    """
    motor, speed = samples.motor_position, samples.motor_velocity
    assert motor is not None and speed is not None
    found = instant_features(
        robot, (samples.position, samples.velocity, motor, speed), samples.cutoff)
    waves = found[:, :, LEARNED:].reshape(len(found), -1)
    known = np.isfinite(waves).all(axis=0)
    if known.any():
        waves[:, known] = low_passed(waves[:, known].T, samples).T
        found[:, :, LEARNED:] = waves.reshape(len(found), robot.n, -1)
    return found


def instant_features(
    robot: RobotModel, motion: Sequence[FloatArray], cutoff: float | None
) -> FloatArray:
    """Return the features (N, n, k) of each instant by itself, nothing of them filtered.

    ``motion``: position and velocity of the joints, then of the motors, (N, n) each. Of the
    ripple, what turns too fast for a filter of ``cutoff`` [Hz] is left out.
    """
    q, qd, motor, speed = motion
    coupling = np.eye(robot.n) if robot.drive.coupling is None else robot.drive.coupling
    bent = np.stack([motor - q @ coupling.T, speed - qd @ coupling.T], axis=2)
    if robot.drive.gear_ratios is None:
        return bent
    waves = _ripple(robot.drive.gear_ratios, bent[:, :, 0], (motor, speed), cutoff)
    return np.concatenate([bent, waves], axis=2)


def feature_count(robot: RobotModel) -> int:
    """Return the number of features of a joint."""
    return 2 if robot.drive.gear_ratios is None else 4


def _ripple(
    ratios: FloatArray, deflection: FloatArray, motors: tuple[FloatArray, FloatArray],
    cutoff: float | None,
) -> FloatArray:
    """Return (N, n, 2): the deflection times sine and cosine of twice the turn of every motor.

    Twice per turn the wave generator of a harmonic drive presses its flexspline. What turns too
    fast for the filter is cut off before, or it would come back as an alias.
    """
    rate = 2.0 * np.abs(ratios)
    phase = rate * motors[0]
    size = deflection
    if cutoff is not None:
        turns = rate * np.abs(motors[1]) / (2.0 * np.pi * cutoff)
        size = size * np.clip((GONE - turns) / (GONE - PASSES), 0.0, 1.0)
    return np.stack([size * np.sin(phase), size * np.cos(phase)], axis=2)


def known_joints(features: FloatArray) -> list[int]:
    """Return the joints whose features (N, n, k) are numbers throughout."""
    return [int(j) for j in np.flatnonzero(np.isfinite(features).all(axis=(0, 2)))]


def deflection_effort(
    model: TorqueModel, values: FloatArray, models: Models, samples: Samples
) -> FloatArray:
    """Return the effort (N, rows) [N m] of the residual models; zero without features.

    ``values`` (b,) are the base parameters of the physics.
    """
    robot = model.robot
    effort = np.zeros((len(samples), robot.rows))
    found = deflections(robot, samples) if any(m is not None for m in models) else None
    if found is not None:
        features = beside_load(found, model.effort(samples, gear_load(model, values)))
        for j in known_joints(found):
            one = models[j]
            if one is not None:
                effort[:, j] = one.mean(seen(features[:, j], isinstance(one, GearModel)))
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
