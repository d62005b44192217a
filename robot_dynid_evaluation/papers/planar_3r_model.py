"""The planar 3R arm of Wang et al. 2025, its truth and motions.

The torque model is Y = [Y_1, Y_2] of eq. 21: the links, whose columns are those of the kernels (a
test holds the block matrices of screws against them), and in every joint viscous and Coulomb
friction. The sign of friction in the source is that of a driving torque (fv,
fc in table 3 are negative); here friction is what the drive must overcome, so the values of
table 3 change their sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import RigidLinks
from robot_dynid.effects.effect import Effect
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.papers import published_arm

ROBOT = 'config/reproduce/planar_3r_2025.yaml'
#: table 2: amplitudes [rad] and w [rad/s], read literally or as 2 pi times too large
AMPLITUDES = np.array([5.0, 6.0, 4.5]) * np.pi / 9.0
FREQUENCIES = np.array([15.0, 15.0, 14.0])
RATE = 1000.0
#: deviation of the effort noise [N m]: the errors of figure 11
NOISE = np.array([23.76, 17.09, 3.55])
#: table 3 by our names; friction with its sign there
TABLE_3 = {
    'mx1': 5.199, 'my1': 0.0469, 'Izz1': 5.888, 'mx2': -1.284, 'my2': 0.0381, 'Izz2': 3.588,
    'mx3': -0.287, 'my3': 0.0016, 'Izz3': 0.111, 'fv1': -157.56, 'fc1': -40.402,
    'fv2': -46.302, 'fc2': -12.837, 'fv3': -9.562, 'fc3': -2.922,
}


@dataclass(frozen=True, eq=False)
class SignFriction(Effect):
    """Y_2 of eq. 21: speed and its sign in every joint; a joint at rest has none."""

    joints: int

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, ..., fc3``."""
        return tuple(f'{p}{i + 1}' for i in range(self.joints) for p in ('fv', 'fc'))

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All of them."""
        return self.names

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the chosen columns of Y_2."""
        speed = samples.velocity.T
        for column, parameter in enumerate(chosen):
            joint, kind = divmod(int(parameter), 2)
            out[joint, column] = np.sign(speed[joint]) if kind else speed[joint]


def load_planar() -> RobotModel:
    """Return the arm of table 1; raises UsageError when its file is not installed."""
    return published_arm(ROBOT)


def torque_model(robot: RobotModel) -> TorqueModel:
    """Return the model of eq. 24, reduced to its minimal set lambda_m."""
    return TorqueModel.of(robot, (RigidLinks(robot), SignFriction(robot.n)))


def as_in_table(name: str, value: float) -> float:
    """Return a parameter of ours with the sign of the table, and back."""
    return -value if name.startswith('f') else value


def true_values(model: TorqueModel) -> FloatArray:
    """Return lambda_m (b,) of table 3 in our sign and order."""
    return np.array([as_in_table(n, TABLE_3[n]) for n in model.reduction.names])


def single_sine(robot: RobotModel, joint: int, frequency: float) -> Samples:
    """Return one cycle at 1 kHz of joint ``joint`` (from zero) at ``frequency`` [rad/s] (eq. 30).

    All others rest at zero.
    """
    time = np.arange(0.0, 2.0 * np.pi / frequency, 1.0 / RATE)
    along = AMPLITUDES[joint] * np.eye(robot.n)[joint]
    wave = np.sin(frequency * time)[:, None] * along
    slope = frequency * np.cos(frequency * time)[:, None] * along
    return Samples(robot.joints, time, wave, slope, -frequency**2 * wave)


def friction(model: TorqueModel, motion: Samples, values: FloatArray) -> FloatArray:
    """Return Y_2 lambda_2 (N, n) of the parameters ``values`` (b,) [N m]."""
    block = model.blocks[1]
    count = len(block.names)
    columns = np.zeros((model.robot.n, count, len(motion)))
    block.fill(motion, block.history(motion), np.arange(count), columns)
    return np.asarray(np.einsum('ikn,k->ni', columns, values[-count:]))


def effort(model: TorqueModel, motion: Samples, values: FloatArray) -> FloatArray:
    """Return the effort (N, n) [N m] of the parameters ``values`` (b,), links by Newton-Euler."""
    links = model.reduction.standard_values(values)[:10 * model.robot.n]
    rigid = rigid_body.inverse_dynamics(
        model.robot, motion.position, motion.velocity, motion.acceleration, links)
    return np.asarray(rigid + friction(model, motion, values))


def simulated(
    model: TorqueModel, motion: Samples, noise: FloatArray, rng: np.random.Generator
) -> Samples:
    """Return ``motion`` with the effort of table 3 plus white noise of deviation ``noise`` (n,).
    """
    exact = effort(model, motion, true_values(model))
    measured = exact + noise * rng.standard_normal(exact.shape)
    return replace(motion, effort=measured, measured=measured)
