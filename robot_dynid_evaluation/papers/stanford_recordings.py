"""The Stanford arm in MuJoCo: recordings with encoders, estimated by the staged estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.effects import RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.staged.least_squares import fit_stages
from robot_dynid.estimation.staged.procedure import LockedJointsMotion, Stage, names_from
from robot_dynid.reduction.composite_inertia import composite_map
from robot_dynid.robot import locate
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Sensors, Setpoint
from robot_dynid.simulation.truth import Noise
from robot_dynid.types import FloatArray, RawLog, Samples, frozen
from robot_dynid_evaluation.papers.recovery import effort_shares

ROBOT = 'config/reproduce/stanford_arm_1991.yaml'
#: configuration (62) [rad, m]; every motion starts at the displacement of its joint in it
BASE = frozen([0.7, 0.7, 0.0, 0.7, 0.7, 0.7])
#: the response of the moving joint to a step: its size [rad], 1 / time constant [1/s] (eq. 64)
SIZE, SIGMA = np.pi / 6.0, 10.0
#: rows of `composite_map`
MAP_ROWS = ('m', 'kx', 'ky', 'kz', 'U11', 'U12', 'U22', 'U13', 'U23', 'U33')


@dataclass(frozen=True)
class Step:
    """Body ``body`` is estimated while joint ``moving`` turns, both counted from one.

    In each motion joint ``changed`` is locked at one of ``angles`` [rad], all others as in BASE.
    """

    body: int
    moving: int
    changed: int
    angles: tuple[float, ...]

    @property
    def configurations(self) -> list[FloatArray]:
        """Positions (n,) of all joints at the start of each motion."""
        found = []
        for angle in self.angles:
            q = np.array(BASE)
            q[self.changed - 1] = angle
            found.append(q)
        return found


#: Algorithm 2 for this arm: r = 1, s = 2; axis 2 is perpendicular to axis 1, so (U_2)_33 needs a
#: motion of joint 2; m^_3 is found with k_3
STEPS = (
    Step(6, 1, 6, (0.7, -0.6, -0.7)),
    Step(5, 1, 5, (0.7, -0.6, -0.7)),
    Step(4, 1, 4, (0.7, -0.6, -0.7)),
    Step(3, 1, 2, (0.7, -0.7)),
    Step(2, 1, 2, (0.7, -0.6, -0.7)),
    Step(2, 2, 2, (0.7,)),
    Step(1, 1, 1, (0.7,)),
)


def load_arm() -> RobotModel:
    """Return the arm of figure 2; raises UsageError when its file is not installed."""
    path = locate.find(ROBOT)
    if path is None:
        raise UsageError(f'{ROBOT} is not installed; install the package with its config folder')
    return load_robot(path)


def step_response(time: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return travel, rate and acceleration of the moving joint at ``time`` [s] (eqs. 64 to 66).

    Before time zero it rests.
    """
    t = np.maximum(np.asarray(time, dtype=np.float64), 0.0)
    decay = SIZE * np.exp(-SIGMA * t)
    started = np.asarray(time, dtype=np.float64) >= 0.0
    return (SIZE - (1.0 + SIGMA * t) * decay, SIGMA**2 * t * decay,
            np.where(started, (1.0 - SIGMA * t) * SIGMA**2 * decay, 0.0))


def constant_rows(robot: RobotModel) -> dict[tuple[int, str], FloatArray]:
    """Return, by body (counted from one) and name, the combination (10 n,) it is.

    Names are those of `composite_bodies`; products with standard parameters are the constants.
    """
    found: dict[tuple[int, str], FloatArray] = {}
    for body, rows in enumerate(composite_map(robot), start=1):
        named = dict(zip(MAP_ROWS, rows, strict=True))
        named['U11 - U22'] = named['U11'] - named['U22']
        found |= {(body, name): row for name, row in named.items()}
    return found


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
