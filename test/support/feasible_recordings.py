"""Recordings of robots whose true links and friction are known, for feasible estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from motions import STEP, five_sines, torque_model, with_effort

from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.robot.inertia import parameters_from_pseudo_inertia, pseudo_inertia
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording: model, true standard parameters (p,), samples with effort."""

    model: TorqueModel
    truth: FloatArray
    samples: Samples

    @property
    def experiment(self) -> Experiment:
        """What an estimator gets."""
        return Experiment.of(self.model, [self.samples])


def moved(body, rng, share):
    """Return the parameters (10,) of a body of other mass and shape; feasible when ``body`` is."""
    change = np.eye(4) + share * rng.normal(size=(4, 4)) * np.array([1.0, 1.0, 1.0, 0.1])
    return parameters_from_pseudo_inertia(change @ pseudo_inertia(body) @ change.T)


def truth_of(model, links, rng):
    """Return standard parameters (p,): ``links`` (n, 10), passive friction, any offset."""
    values = np.concatenate([np.ravel(links), np.zeros(
        len(model.reduction.standard) - 10 * model.robot.n)])
    for i, name in enumerate(model.reduction.standard[10 * model.robot.n:]):
        low = -0.5 if name.startswith('f0') else 0.1
        values[10 * model.robot.n + i] = rng.uniform(low, 0.5)
    return values


def motion(robot, count, rng, moving=None):
    """Return a rich motion; only the joints ``moving`` where they are given."""
    time = np.arange(count) * STEP
    return Samples(robot.joints, time, *five_sines(rng, time, robot.n, 5.0, moving))


def recorded(robot, links, rng, noise=0.0, count=1500, moving=None):
    """Return a recording of ``robot`` with true ``links``; ``noise`` by the size of the effort."""
    model = torque_model(robot)
    truth = truth_of(model, links, rng)
    samples = motion(robot, count, rng, moving)
    clean = model.effort(samples, model.reduction.base(truth))
    size = np.sqrt(np.mean(clean**2, axis=0))
    effort = clean + noise * size * rng.normal(size=clean.shape)
    return Recorded(model, truth, with_effort(samples, effort))


def assert_real(model, estimate, rng, configurations=1000):
    """Fail unless the estimate is that of a robot that can exist."""
    n = model.robot.n
    links = estimate.standard[:10 * n].reshape(n, 10)
    for name, link in zip(model.robot.bodies, links):
        assert np.linalg.eigvalsh(pseudo_inertia(link))[0] > 0.0, name
    passive = {name for block in model.blocks for name in block.nonnegative}
    for name, value in zip(model.reduction.standard, estimate.standard):
        assert value >= 0.0 or name not in passive, name
    q = rng.uniform(-np.pi, np.pi, (configurations, n))
    matrices = mass_matrix(model.robot, q, links)
    scale = np.sqrt(np.einsum('kii->ki', matrices))
    even = matrices / scale[:, :, None] / scale[:, None, :]
    assert np.linalg.eigvalsh(even).min() > 0.0
    assert np.allclose(model.reduction.base(estimate.standard), estimate.values)
