"""Arms with any number of joints, and what a noisy motion says about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.effects import RigidLinks
from robot_dynid.estimation.experiment import Experiment, Regression, TorqueModel
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.papers.planar_3r_model import SignFriction
from robot_dynid_evaluation.papers.sequential_sdp_arms import motion

#: share of the effort's root mean square that is noise
NOISE = 0.02
#: viscous [N m s/rad] and Coulomb friction [N m] of the first joint; the others have less
FRICTION = (4.0, 3.0)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording of an arm: the model, samples, noise (n,) [N m], true parameters (p,)."""

    model: TorqueModel
    samples: Samples
    noise: FloatArray
    truth: FloatArray

    def experiment(self) -> Experiment:
        """Return the reduced experiment."""
        return Experiment.of(self.model, [self.samples])

    def stacked(self) -> tuple[FloatArray, FloatArray]:
        """Return all weighted equations (N n, b) and their right sides, one below the other."""
        columns = Regression(self.model, self.samples).columns(slice(0, len(self.samples)))
        assert self.samples.effort is not None
        tall = (columns / self.noise[:, None, None]).transpose(2, 0, 1)
        return (tall.reshape(-1, columns.shape[1]),
                (self.samples.effort / self.noise).ravel())


def serial_arm(joints: int) -> RobotModel:
    """Return an arm of ``joints`` axes, vertical and horizontal in turn, lighter outwards."""
    screws = []
    for i in range(joints):
        share = 0.5 + 0.5 * (joints - i) / joints
        com = np.array([0.01, -0.02, 0.08]) * share
        inertia = np.diag([0.012, 0.011, 0.004]) * share
        screws.append(Screw(
            f'joint_{i + 1}', [0.0, 0.0, 1.0] if i % 2 == 0 else [0.0, 1.0, 0.0],
            [0.0, 0.03 * (-1) ** i, 0.2 * (i + 1)],
            parameters=parameters_from_com(5.0 * share, com, inertia)))
    return robot_from_screws(f'arm of {joints} joints', screws)


def recorded(joints: int, count: int, seed: int = 0) -> Recorded:
    """Return ``count`` samples of an arm whose links are not quite the nominal ones."""
    robot, rng = serial_arm(joints), np.random.default_rng(seed)
    model = TorqueModel.of(robot, (RigidLinks(robot), SignFriction(joints)))
    samples = motion(robot, count, rng)
    share = np.linspace(1.0, 0.3, joints)[:, None]
    truth = np.concatenate([
        (robot.nominal * rng.uniform(0.8, 1.2, (joints, 1))).ravel(),
        (share * FRICTION).ravel()])
    clean = model.effort(samples, model.reduction.base(truth))
    noise = NOISE * np.sqrt(np.mean(clean**2, axis=0))
    effort = clean + noise * rng.standard_normal(clean.shape)
    return Recorded(model, replace(samples, effort=effort, measured=effort), noise, truth)

