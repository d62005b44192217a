"""An arm with two encoders in every joint that follows no law robot_dynid fits.

Links move exactly as prescribed. What the gears have to transmit is the torque of MuJoCo's bare
links less what acts on them from outside; that torque bends the gears, and the motors turn by as
much more. Motors and gears are written here, apart from friction laws, gears and the simulator of
robot_dynid, and of other kinds:

- friction of three Maxwell slip elements, with Gaussian Stribeck fall, shear-thinning grease, a
  tenth of it going round with the motor's output, some of it in proportion to the torque
  transmitted;
- gears that stiffen under torque and lose the way they came (three play operators), whose error
  has four waves;
- on the links, where asked for, cables and a wrench at the tool that changes all the time: no
  state of the robot tells it.

Sources: Lampaert, Al-Bender, Swevers 2003 (Maxwell slip); Bo, Pavelescu 1982 (Gaussian Stribeck);
Kuhnen 2003 (play operators); Tuttle, Seering 1996 (waves of harmonic drives).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.planned.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.export.mujoco import mujoco
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import measured
from robot_dynid.simulation.mujoco_model import build_model
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray, RawLog, frozen
from robot_dynid_evaluation.papers.double_encoder_excitation import PERIOD, limits, trajectory

#: s, step of the computation, and one in so many steps that is recorded
STEP, EVERY = 1e-3, 5
#: travel [rad] after which a Maxwell element slips, and its share of dry friction
LENGTHS, SHARES = np.array([2e-5, 1e-4, 4e-4]), np.array([0.4, 0.35, 0.25])
#: rad/s of the Stribeck fall, and where grease begins to thin; its friction in plain oil's there
STRIBECK, THINNING = 0.06, 0.25
#: shares of dry friction that go round with the output, and of the torque transmitted
ROUND, LOADED = 0.1, 0.02
#: thresholds of the play operators, in hysteresis torques, and the slope of each, in compliances
PLAYS, SLOPE = np.array([1.0, 3.0, 8.0]), 0.1
#: share of the compliance that is lost under much torque, much being this share of the limit
STIFFENING, MUCH = 0.15, 0.3
#: waves of a gear: turns per turn of the motor, and sizes in the first
TURNS, SIZES = np.array([2.0, 4.0, 1.0]), np.array([1.0, 0.4, 0.5])
#: Hz, rms [N, N m] of the wrench at the tool: it changes between these frequencies
BAND, FORCE, MOMENT = (0.05, 2.0), 4.0, 0.3
#: size of the pull of cables, in effort limits of the weaker of the joints they couple
CABLES = 0.012


class BareLinks:
    """MuJoCo's links of a robot, without rotors and friction; ``dof`` (n,) are its joints."""

    def __init__(self, robot: RobotModel) -> None:
        self.model = build_model(robot, Truth.ideal(robot.n))
        self.data = mujoco.MjData(self.model)
        self.dof = np.array([int(self.model.joint(name).dofadr[0]) for name in robot.joints])

    def torques(self, motion: Motion) -> Iterator[FloatArray]:
        """Yield the torques (n,) [N m] of a motion, state by state; ``data`` is in that state."""
        data, own = self.data, self.dof
        for q, qd, qdd in zip(motion.position, motion.velocity, motion.acceleration, strict=True):
            data.qpos[own], data.qvel[own], data.qacc[own] = q, qd, qdd
            mujoco.mj_inverse(self.model, data)
            yield data.qfrc_inverse[own]


class TwoEncoderArm:
    """The arm with friction levels, rotors and gears of ``truth`` and the shapes of this file.

    ``disturbed`` says whether anything acts on the links from outside. ``generator``
    draws what differs from arm to arm: phases, and levels by 15 % or so.
    """

    def __init__(
        self, robot: RobotModel, truth: Truth, disturbed: bool, generator: np.random.Generator
    ) -> None:
        self.robot, self.truth, self.disturbed = robot, truth, disturbed
        self._links = BareLinks(robot)
        self._tool = int(self._links.model.joint(robot.joints[-1]).bodyid[0])
        drives = [truth.drives[joint] for joint in robot.joints]
        level = np.exp(0.15 * generator.standard_normal((5, robot.n)))
        self._coulomb, self._viscous = truth.coulomb * level[0], truth.viscous * level[1]
        self._excess = level[2] * (np.zeros(robot.n) if truth.stribeck is None else truth.stribeck)
        self._rotor = np.asarray(truth.rotor_inertia)
        self._compliance = level[3] / np.array([drive.stiffness for drive in drives])
        self._hysteresis = level[4] * np.array([drive.hysteresis for drive in drives])
        self._error = np.array([drive.kinematic_error for drive in drives])
        self._ratio = np.array([drive.gear_ratio for drive in drives])
        self._much = MUCH * np.asarray(robot.limits.effort)
        self._phases = generator.uniform(0.0, 2.0 * np.pi, (7, robot.n))
        self._cables = generator.uniform(0.5, 1.5, (2, robot.n))

    def recorded(self, trajectory: Trajectory, generator: np.random.Generator) -> RawLog:
        """Return the readings of noisy sensors while the links follow ``trajectory``.

        ``generator`` draws noise and wrench.
        """
        time = np.arange(0.0, trajectory.duration + 0.5 * STEP, STEP)
        motion = trajectory.sample(time)
        torque = self.transmitted(motion, self._wrench(time, generator))
        motor, slope = self._motor(motion.position, torque)
        speed = np.gradient(motor, STEP, axis=0)
        effort = (self._rotor * np.gradient(speed, STEP, axis=0) + (1.0 + slope) * torque
                  + self.friction(motor, speed, torque))
        if self.robot.drive.kind == 'current' and self.robot.drive.gains is not None:
            effort = effort / self.robot.drive.gains
        own = slice(None, None, EVERY)
        log = RawLog(f'{self.robot.name} with two encoders', self.robot.joints, time[own],
                     motion.position[own], motion.velocity[own], effort[own], motor[own],
                     speed[own])
        return measured(log, self.robot, self.truth.noise, generator)

    def _wrench(self, time: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return force and moment (N, 6) at the tool [N, N m], between the frequencies of BAND."""
        frequency = np.fft.rfftfreq(len(time), STEP)
        inside = (frequency >= BAND[0]) & (frequency <= BAND[1])
        drawn = generator.standard_normal((2, len(frequency), 6))
        signal = np.fft.irfft((drawn[0] + 1j * drawn[1]) * inside[:, None], len(time), axis=0)
        size = np.array(3 * [FORCE] + 3 * [MOMENT])
        return np.asarray(size * signal / signal.std(axis=0))

    def transmitted(self, motion: Motion, wrench: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] that the gears have to give to the links."""
        links, torque = self._links, np.empty_like(motion.position)
        jacobian = np.zeros((2, 3, links.model.nv))
        for i, own in enumerate(links.torques(motion)):
            torque[i] = own
            if self.disturbed:
                mujoco.mj_jacBody(links.model, links.data, *jacobian, self._tool)
                torque[i] -= wrench[i] @ jacobian.reshape(6, -1)[:, links.dof]
        return torque + self._pull(motion.position) if self.disturbed else torque

    def _pull(self, position: FloatArray) -> FloatArray:
        """Return the torque (N, n) [N m] of cables, which couple each joint to the next."""
        limit = np.asarray(self.robot.limits.effort)
        size = CABLES * np.minimum(limit, np.roll(limit, -1))
        own, behind = self._cables
        at, beside = position * own - self._phases[4], \
            np.roll(position, -1, axis=1) * behind - self._phases[5]
        stretch = size * (np.sin(at) + np.sin(beside))
        return np.asarray(own * np.cos(at) * stretch
                          + np.roll(behind * np.cos(beside) * stretch, 1, axis=1))

    def _motor(self, link: FloatArray, torque: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return position (N, n) [rad] of the motors and the slope (N, n) of the gears' error."""
        motor = link + self._twist(torque)
        bent = motor.copy()
        for _ in range(4):  # the slope is some 0.01
            error, slope = self._errors(motor)
            motor = bent - error
        return motor, slope

    def _errors(self, motor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the errors (N, n) [rad] of gears and their slopes: waves, and one per turn."""
        error = self._error * np.sin(motor + self._phases[3])
        slope = self._error * np.cos(motor + self._phases[3])
        for turns, size, phase in zip(TURNS, SIZES, self._phases, strict=False):
            rate = turns * self._ratio
            error += size * self._error * np.sin(rate * motor + phase)
            slope += size * self._error * rate * np.cos(rate * motor + phase)
        return error, slope

    def _twist(self, torque: FloatArray) -> FloatArray:
        """Return the twist (N, n) [rad] of gears under ``torque`` (N, n) [N m] and its past."""
        reach = PLAYS[:, None] * self._hysteresis
        play = np.empty((len(torque), *reach.shape))
        last = np.broadcast_to(torque[0], reach.shape)
        for i, own in enumerate(torque):
            play[i] = last = np.minimum(np.maximum(last, own - reach), own + reach)
        firm = 1.0 - SLOPE * len(PLAYS) - STIFFENING * torque**2 / (torque**2 + self._much**2)
        return np.asarray(self._compliance * (firm * torque + SLOPE * play.sum(axis=1)))

    def friction(self, motor: FloatArray, speed: FloatArray, torque: FloatArray) -> FloatArray:
        """Return the friction (N, n) [N m] of motors and wave generators."""
        steps = np.diff(motor, axis=0, prepend=motor[:1])
        bent = np.empty((len(motor), len(LENGTHS), self.robot.n))
        last = np.zeros(bent.shape[1:])
        for i, step in enumerate(steps):
            bent[i] = last = np.minimum(np.maximum(last + step / LENGTHS[:, None], -1.0), 1.0)
        side = np.einsum('ntj,t->nj', bent, SHARES)
        level = self._coulomb + self._excess * np.exp(-(speed / STRIBECK)**2)
        level = level * (1.0 + ROUND * np.sin(motor + self._phases[6])) + LOADED * np.abs(torque)
        return np.asarray(side * level + self._viscous * THINNING * np.arcsinh(speed / THINNING))

    def steady_friction(self, speed: FloatArray) -> FloatArray:
        """Return the friction (K, n) [N m] at constant ``speed`` (K, n) [rad/s].

        It is that of figure 6: the mean over a turn, without torque transmitted.
        """
        level = self._coulomb + self._excess * np.exp(-(speed / STRIBECK)**2)
        return np.asarray(np.sign(speed) * level
                          + self._viscous * THINNING * np.arcsinh(speed / THINNING))


ROBOT, DRIVES = 'ur10e', 'ur10e_drives'
#: speeds of the sweeps as parts of the limits of table 1, and how long they are held [s]
LADDER, PLATEAU = (0.02, 0.05, 0.12, 0.3, 0.6, 0.9), 0.6
#: largest error of the mass of a link in the description
DESCRIBED = 0.2


@dataclass(frozen=True, eq=False)
class Recorded:
    """The simulated ``arm`` of a ``robot`` and its recordings.

    They are the ``motion`` of table 3, a ``held_out`` motion, and ``sweeps``.

    The second is another Fourier series of fifth order within the same limits. Like the first it
    begins and ends at rest, so some joints stand for a part of it.
    """

    robot: RobotModel
    arm: TwoEncoderArm
    motion: RawLog
    held_out: RawLog
    sweeps: RawLog | None = None


def recorded(seed: int, disturbed: bool, sweeps: bool = True) -> Recorded:
    """Return the recordings of an arm, with ``sweeps`` or without; it knows its gear ratios.

    Its description has each link up to DESCRIBED too light or too heavy. Arm, noise, held-out
    motion and, where it is ``disturbed``, what acts on the links are drawn from ``seed``.
    """
    robot = load_robot(ROBOT)
    truth = load_truth(robot, DRIVES)
    ratios = frozen([truth.drives[joint].gear_ratio for joint in robot.joints])
    robot = replace(robot, drive=replace(robot.drive, gear_ratios=ratios))
    generator = np.random.default_rng(seed)
    arm = TwoEncoderArm(robot, truth, disturbed, generator)
    heavier = np.random.default_rng([seed, 1]).uniform(
        1.0 - DESCRIBED, 1.0 + DESCRIBED, (robot.n, 1))
    described = robot.with_nominal(robot.nominal * heavier)
    return Recorded(described, arm, **{name: arm.recorded(path, generator)
                              for name, path in _paths(robot, generator, sweeps)})


def _paths(
    robot: RobotModel, generator: np.random.Generator, sweeps: bool
) -> Iterator[tuple[str, Trajectory]]:
    bounds = limits(robot.joints)
    yield 'motion', trajectory(robot.joints)
    yield 'held_out', random_fourier(bounds, FourierOptions(PERIOD, 5), generator)
    if not sweeps:
        return
    criteria = replace(
        design_criteria(robot), inverse=None, constraints=()
    )  # the paper has no others
    ladder = {joint: [float(part * speed) for part in LADDER]
              for joint, speed in zip(robot.joints, bounds.velocity, strict=True)}
    options = ConstantVelocityOptions(ladder=ladder, plateau=PLATEAU, configurations=1)
    yield 'sweeps', plan_sweeps(criteria, bounds, options, generator).trajectory
