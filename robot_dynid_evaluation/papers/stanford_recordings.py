"""The Stanford arm in MuJoCo: recordings with encoders, estimated by the staged estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from robot_dynid.effects import RigidLinks
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.staged.least_squares import fit_stages
from robot_dynid.estimation.staged.procedure import LockedJointsMotion, Stage, names_from
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Sensors, Setpoint
from robot_dynid.simulation.truth import Noise
from robot_dynid.types import FloatArray, RawLog, Samples, frozen
from robot_dynid_evaluation.papers.recovery import effort_shares
from robot_dynid_evaluation.papers.stanford_motions import (
    SIZE,
    STEPS,
    Step,
    constant_rows,
    step_response,
)

#: rest before the step and length of a recording [s], encoder step of 16 bit per turn [rad],
#: used for the sliding joint as 0.1 mm [m], and the low-pass [Hz]
REST, DURATION, ENCODER, CUTOFF = 0.2, 1.2, 1e-4, 20.0


@dataclass(frozen=True)
class Found:
    """A constant from recordings: ``value``, ``deviation``, the share of effort a unit makes."""

    value: float
    deviation: float
    effect: float


def estimate_from_recordings(
    robot: RobotModel, keys: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], Found]:
    """Return constants from one recording per motion of every step.

    ``keys`` name body and constant, as many as there are base parameters.
    """
    arm, model = Arm(robot), TorqueModel.of(robot, (RigidLinks(robot),))
    recorded = {motion: recording(arm, *_start(motion)) for step in STEPS
                for motion in _motions(step)}
    stages = [stage(model, step) for step in STEPS]
    experiment = Experiment.of(model, list(recorded.values()))
    information = [
        reduce(Information.merge, (Experiment.of(model, [recorded[motion]]).information
                                   for motion in _motions(step))) for step in STEPS]
    estimate = fit_stages(experiment, stages, information)
    rows = constant_rows(robot)
    combinations = np.array([rows[key] for key in keys])[:, model.reduction.kept]
    values = combinations @ estimate.values
    spread = combinations @ estimate.covariance @ combinations.T
    deviations = np.sqrt(np.maximum(np.diag(spread), 0.0))
    effects = effort_shares(experiment.information, np.linalg.inv(combinations).T)
    return {key: Found(*map(float, found)) for key, *found in zip(
        keys, values, deviations, effects, strict=True)}


def _motions(step: Step) -> list[tuple[float, ...]]:
    """Return the motions of a step: the joint that turns (from zero) and the start (n,)."""
    return [(step.moving - 1, *q) for q in step.configurations]


def _start(motion: tuple[float, ...]) -> tuple[int, FloatArray]:
    return int(motion[0]), np.array(motion[1:])


def stage(model: TorqueModel, step: Step) -> Stage:
    """Return a step of Algorithm 2 as a stage: its motions, and the row of its body."""
    moving, body = step.moving - 1, step.body - 1
    motions = []
    for q in step.configurations:
        q[moving] += 0.5 * SIZE
        motions.append(LockedJointsMotion(moving, q, 0.5 * SIZE))
    name = f'body {step.body}, joint {step.moving} turns'
    return Stage(name, tuple(motions), (body,), names_from(model, body))


def recording(arm: Arm, moving: int, start: FloatArray) -> Samples:
    """Return the samples of joint ``moving`` (from zero) turning while the drives hold the others.

    Encoders are read at 1 kHz, and differentiated; efforts are those of the drives.
    """
    robot = arm.plant.robot
    time = CONTROL_PERIOD * np.arange(round(DURATION / CONTROL_PERIOD))
    travel, rate, acceleration = step_response(time - REST)
    along = np.eye(robot.n)[moving]
    arm.place(start)
    rows = []
    for i in range(len(time)):
        arm.control(Setpoint(start + travel[i] * along, rate[i] * along, acceleration[i] * along))
        rows.append((arm.position, arm.effort()))
        arm.advance()
    position, effort = (np.array(column) for column in zip(*rows, strict=True))
    sensors = Sensors(robot, Noise(position_step=ENCODER), np.random.default_rng(0))
    log = RawLog(f'joint {moving + 1}', robot.joints, frozen(time), sensors.position(position),
                 effort=effort)
    settings = Preprocessing(CUTOFF, trim_rest=False)
    return prepare(robot, repair(robot, log), settings)
