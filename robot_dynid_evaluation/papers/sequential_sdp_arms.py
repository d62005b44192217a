"""The two arms of `sequential_sdp`, their motions, and their noisy and disturbed efforts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.effects import RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.robot import locate
from robot_dynid.robot.inertia import parameters_from_pseudo_inertia, pseudo_inertia
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.papers.planar_3r_model import SignFriction

PUMA = 'config/reproduce/puma560_first_three.yaml'
NINE = 'config/reproduce/nine_joint_arm.yaml'
#: the paper states neither: Gaussian noise and A of A sin(100 t), as shares of the effort's root
#: mean square; samples and their distance [s]
NOISE, DISTURBANCE, SAMPLES, STEP = 0.01, 0.02, 3000, 0.01
#: how far the bodies of the prior are from the true ones: scatter of mass and of shape
DISTURBED = 0.1


@dataclass(frozen=True, eq=False)
class Recorded:
    """A motion of an arm: its model, true parameters (p,), exact and measured effort (N, n)."""

    model: TorqueModel
    truth: FloatArray
    samples: Samples
    exact: FloatArray

    @property
    def measured(self) -> FloatArray:
        """Return the noisy, disturbed effort (N, n) [N m]."""
        assert self.samples.effort is not None
        return self.samples.effort


def true_robot(path: str) -> tuple[RobotModel, FloatArray]:
    """Return an arm with its true links, and its friction (2 n,): viscous, Coulomb per joint.

    Raises UsageError when the file of the arm is not installed.
    """
    found = locate.find(path)
    if found is None:
        raise UsageError(f'{path} is not installed; install the package with its config folder')
    robot = load_robot(found)
    if path == PUMA:  # without the wrist, which the file has at rest
        robot = robot.with_nominal(load_robot('puma560').nominal[:robot.n])
    truth = load_truth(robot, found)
    return robot, np.column_stack([truth.viscous, truth.coulomb]).ravel()


def recorded(path: str, rng: np.random.Generator, noisy: bool = True) -> Recorded:
    """Return a recording; the nominal links of its model are disturbed, the true ones made it."""
    robot, friction = true_robot(path)
    truth = np.concatenate([robot.nominal.ravel(), friction])
    guess = robot.with_nominal([_spoiled(body, rng) for body in robot.nominal])
    model = TorqueModel.of(guess, (RigidLinks(guess), SignFriction(robot.n)))
    samples = motion(robot, SAMPLES, rng)
    exact = model.effort(samples, model.reduction.base(truth))
    size = np.sqrt(np.mean(exact**2, axis=0))
    disturbance = DISTURBANCE * np.sin(100.0 * samples.time)[:, None]
    effort = exact + noisy * size * (NOISE * rng.standard_normal(exact.shape) + disturbance)
    return Recorded(model, truth, replace(samples, effort=effort, measured=effort), exact)


def _spoiled(body: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the parameters (10,) of another body, near by."""
    change = np.eye(4) + DISTURBED * rng.standard_normal((4, 4)) * np.array([1.0, 1.0, 1.0, 0.1])
    return parameters_from_pseudo_inertia(change @ pseudo_inertia(body) @ change.T)


def motion(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
    """Return ``count`` samples along sums of five sines per joint."""
    time = np.arange(count, dtype=np.float64) * STEP
    q, qd, qdd = np.zeros((3, count, robot.n))
    for _ in range(5):
        rate, size, phase = (rng.uniform(low, high, robot.n)
                             for low, high in ((0.5, 4.0), (0.1, 0.4), (0.0, 6.0)))
        angle = time[:, None] * rate + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    return Samples(robot.joints, time, q, qd, qdd)
