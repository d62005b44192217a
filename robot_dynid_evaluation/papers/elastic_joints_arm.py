"""Simulated arms with elastic joints for the reproduction of 10.1155/2014/843186.

What the text of the paper leaves out is assumed here: gears, rotors, friction, gains, motion. The
stiffness of the planar arm is such that its deflections are those of figure 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.elastic import ElasticDynamics, all_rotors
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.friction import AxisFriction, Coulomb
from robot_dynid.friction.laws import Levelling
from robot_dynid.identification.identify import identify
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.types import FloatArray, Progress, RawLog, frozen

#: samples, and their step [s]
COUNT, STEP = 8900, 1e-3
#: control periods, each one step of the integration, per sample
PERIODS = 4
#: rad of one count of an encoder
COUNTED = 2.0 * np.pi / 1_250_000
#: friction at rest over that in motion (assumed), and the speed [rad/s] where it has built up
STATIC, CREEP = 2.0, 1e-3
#: the last of the control points, a share SLOW, are CALM of the size
SLOW, CALM, SEED = 0.33, 0.15, 0


@dataclass(frozen=True, eq=False)
class ElasticArm:
    """Simulated arm with elastic joints; arrays are (n,).

    ``stiffness`` N m/rad; ``amplitude`` rad of ``knots`` control points; ``gains`` (2, n) N m/rad
    and N m s/rad of the controller; ``truth`` has rotors and friction, which has fallen to that in
    motion at ``fallen`` rad/s; at rest it is ``excess`` times that.
    """

    robot: RobotModel
    truth: Truth
    stiffness: FloatArray
    amplitude: FloatArray
    knots: int
    gains: FloatArray
    fallen: float
    excess: float = STATIC

    @property
    def gears(self) -> Gears:
        """The gears: springs alone, as in the paper."""
        none = np.zeros(self.robot.n)
        return Gears(self.robot.drive.elastic, self.truth.rotor_inertia, self.stiffness, none,
                     none)

    @property
    def static(self) -> FloatArray:
        """Friction (n,) [N m] at which the motors break away."""
        return self.excess * self.truth.coulomb

    @property
    def friction(self) -> AxisFriction:
        """Viscous friction, and dry friction that falls from rest to ``fallen`` (Stribeck)."""
        truth, n = self.truth, self.robot.n
        law = Coulomb(CREEP).added(Levelling(self.fallen))
        values = [truth.viscous, self.static, np.zeros(n), truth.coulomb - self.static]
        return AxisFriction.of(np.eye(n), [law] * n, np.stack(values, axis=1))

    def base(self, model: TorqueModel) -> FloatArray:
        """Return the true base parameters (b,) of a model; offsets and damping are zero."""
        known = {'Ia': self.truth.rotor_inertia, 'K': self.stiffness, 'fv': self.truth.viscous,
                 'fc': self.static, 'fl': self.truth.coulomb - self.static}
        standard = {f'{name}{j + 1}': float(v) for name, values in known.items()
                    for j, v in enumerate(values)}
        names = model.reduction.standard
        values = [standard.get(name, 0.0) for name in names[10 * self.robot.n:]]
        return model.reduction.base(np.concatenate([self.robot.nominal.ravel(), values]))


def planar() -> ElasticArm:
    """Return the arm of figure 2."""
    robot = load_robot('elastic_2r')
    return ElasticArm(robot, load_truth(robot), frozen([2.5e4, 2.2e4]), frozen([0.35, 0.525]),
                      30, frozen([[1e4, 3e3], [300.0, 80.0]]), 0.05)


def puma() -> ElasticArm:
    """Return the PUMA 560 whose joints all have the stiffness of the paper."""
    robot = load_robot('puma560')
    robot = replace(robot, drive=replace(robot.drive, elastic=tuple(range(robot.n))))
    truth = load_truth(robot)
    inertia = truth.rotor_inertia + np.array([2.0, 2.0, 0.5, 0.01, 0.01, 0.01])
    return ElasticArm(robot, truth, frozen(np.full(robot.n, 2000.0)),
                      frozen([0.6, 0.6, 0.6, 0.8, 0.8, 0.8]), 75,
                      frozen([400.0 * inertia, 28.0 * inertia]), 0.15)


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of the arm: ``position``, ``velocity``, ``acceleration`` (N, 2n) of links, then
    motors; ``effort`` (N, n) [N m].
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray

    @property
    def deflection(self) -> FloatArray:
        """Largest deflections (n,) rad."""
        n = self.effort.shape[1]
        return np.asarray(np.abs(self.position[:, n:] - self.position[:, :n]).max(axis=0))

    def seen(self, arm: ElasticArm) -> RawLog:
        """Return the encoder readings on both sides, and the true effort."""
        n = arm.robot.n
        position = np.round(self.position / COUNTED) * COUNTED
        return RawLog(f'simulated {arm.robot.name}', arm.robot.joints, self.time, position[:, :n],
                      effort=self.effort, motor_position=position[:, n:])


def excitation(arm: ElasticArm) -> BSplineTrajectory:
    """Return a quintic B-spline through random poses, swift first and calm at the end."""
    points = np.random.default_rng(SEED).normal(size=(arm.robot.n, arm.knots))
    points[:, -int(SLOW * arm.knots):] *= CALM
    return BSplineTrajectory(arm.robot.joints, COUNT * STEP, arm.amplitude[:, None] * points)


def record(arm: ElasticArm, progress: Progress) -> Motion:
    """Let motors follow the spline: PD on their side, gravity of the reference compensated.

    Motors are sent where the spline wants the links, ahead by what gravity bends the gears there.
    Source: Tomei 1991, IEEE Trans. Automatic Control 36(10), the law of the paper's reference 3.
    """
    n, dt = arm.robot.n, STEP / PERIODS
    wanted = excitation(arm).sample(dt * np.arange(COUNT * PERIODS))
    gravity = rigid_body.gravity_effort(arm.robot, wanted.position)
    ahead = wanted.position + gravity / arm.stiffness
    parameters, rotors = arm.robot.nominal, all_rotors(np.zeros((n, n)), arm.gears)
    step = Integrator(arm.robot, parameters, rotors, arm.friction.on(range(n, 2 * n), 2 * n),
                      arm.gears)
    stiff, damping = arm.gains
    x, v = np.hstack([wanted.position[0], ahead[0]])[None], np.zeros((1, 2 * n))
    before, drives, rows = gravity[0], np.zeros((1, 1, 2 * n)), []
    for i, (place, rate, weight) in enumerate(zip(ahead, wanted.velocity, gravity, strict=True)):
        effort = weight + stiff * (place - x[0, n:]) + damping * (rate - v[0, n:])
        if i % PERIODS == 0:
            rows.append((x[0], v[0], 0.5 * (before + effort)))
        if i % (1000 * PERIODS) == 0:
            progress(f'simulating {arm.robot.name}', i / len(ahead))
        drives[0, 0, n:] = before = effort
        moved = step(x, v, drives, dt)
        x, v = moved.position[:, 0], moved.velocity[:, 0]
    return _motion(arm, *(np.array(column) for column in zip(*rows, strict=True)))


def _motion(
    arm: ElasticArm, position: FloatArray, velocity: FloatArray, effort: FloatArray
) -> Motion:
    """Add the accelerations that the equations of motion give in these states."""
    n = arm.robot.n
    lost = arm.friction.torque(velocity[:, n:])
    solve = ElasticDynamics(arm.robot, arm.robot.nominal, np.zeros((n, n)), arm.gears)
    acceleration, _ = solve(position, velocity, effort - lost)
    return Motion(STEP * np.arange(len(position), dtype=np.float64), position, velocity,
                  acceleration, effort)


#: speeds [rad/s] at which dry friction is looked at, and two between which it no longer changes
SPEEDS = np.geomspace(1e-4, 1.0, 400)
SLIDING = (1.0, 2.0)
#: of the noise
NOISE_SEED = 1

Law = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction of a law in figures that do not depend on its parameters; arrays are (n,).

    ``viscous`` [N m s/rad], its slope in swift motion; ``static`` [N m], the greatest dry friction
    at any speed; ``moving`` [N m], the dry friction in swift motion.
    """

    viscous: FloatArray
    static: FloatArray
    moving: FloatArray

    @classmethod
    def of(cls, law: Law, n: int) -> Friction:
        """Look at ``law``, which gives the friction (K, n) [N m] at velocities (K, n)."""
        def odd(speeds: FloatArray) -> FloatArray:
            velocity = np.tile(speeds[:, None], (1, n))
            return np.asarray(0.5 * (law(velocity) - law(-velocity)))

        slow, fast = odd(np.array(SLIDING))
        viscous = (fast - slow) / (SLIDING[1] - SLIDING[0])
        dry = odd(SPEEDS) - SPEEDS[:, None] * viscous
        return cls(viscous, dry.max(axis=0), slow - SLIDING[0] * viscous)


def simulated(arm: ElasticArm) -> Friction:
    """Return the friction of the simulated arm."""
    return Friction.of(arm.friction.torque, arm.robot.n)


def found(model: IdentifiedModel) -> Friction:
    """Return the friction of an identified model."""
    n = model.robot.n
    return Friction.of(lambda v: model.friction(np.zeros_like(v), v), n)


@dataclass(frozen=True, eq=False)
class Logged:
    """Relative ``errors`` by parameter, ``fc`` being static friction; those of dry friction in
    motion, ``moving`` (n,); what was chosen, ``choices``.
    """

    errors: dict[str, float]
    moving: FloatArray
    choices: str


def logged(
    arm: ElasticArm, motion: Motion, ratio: float = np.inf, method: str = 'elastic',
    seed: int = NOISE_SEED,
) -> Logged:
    """Identify the arm from a recording, with a method and the default recipe.

    The parameters are those of the paper: base parameters of links, rotors and gears, and of every
    joint viscous and static friction. Friction laws differ in what their parameters mean, so the
    law found and the simulated one are compared by what they do. Positions have white noise at a
    ``ratio`` [dB] to their deviation, drawn with a ``seed``.
    """
    seen = replace(motion, position=noisy_positions(motion, ratio, seed)).seen(arm)
    model = identify(arm.robot, [seen], method).model
    true = arm.base(model.torque_model)
    errors = {name: float(abs(value / there - 1.0)) for name, value, there in zip(
        model.reduction.names, model.values, true, strict=True)
        if abs(there) > 1e-9 and name[0] not in 'fDs'}
    ours, theirs = found(model), simulated(arm)
    for name, value, there in (('fv', ours.viscous, theirs.viscous),
                               ('fc', ours.static, theirs.static)):
        errors |= {f'{name}{j + 1}': float(e) for j, e in enumerate(np.abs(value / there - 1.0))}
    laws = ', '.join(sorted(set(model.structure.friction)))
    return Logged(errors, np.abs(ours.moving / theirs.moving - 1.0),
                  f'default recipe: {model.preprocessing.cutoff:g} Hz and {laws} chosen by itself')


def noisy_positions(motion: Motion, ratio: float, seed: int) -> FloatArray:
    """Return positions (N, 2n) with white noise at a ``ratio`` [dB] to their deviation."""
    return np.asarray(motion.position + noise_of(motion, ratio) * np.random.default_rng(
        seed).standard_normal(motion.position.shape))


def noise_of(motion: Motion, ratio: float) -> FloatArray:
    """Return the deviation (2n,) [rad] of noise at a ``ratio`` [dB] to that of positions."""
    return np.asarray(motion.position.std(axis=0) * 10.0 ** (-ratio / 20.0))
