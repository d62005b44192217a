"""Arms whose rotors are bodies of their own or whose gears give: Pinocchio's view and ours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio
import pinocchio as pin
from random_robots import random_axis, random_urdf

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.elastic import ElasticDynamics, all_rotors
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.effects import axes_of
from robot_dynid.friction import AxisFriction, Coulomb
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples

#: robots of config/robots
NAMES = ('elastic_2r', 'planar_3r', 'puma560', 'seven_axis', 'stanford_arm', 'tx40', 'ur10e')


@dataclass(frozen=True, eq=False)
class Geared:
    """Pinocchio's arm with a joint more for every rotor, which no coordinate of ours moves alone.

    ``robot`` is ours, the rotors part of the links that carry them; ``inertia`` (a,) those of the
    axes on the joint side; motion of Pinocchio's joints = ``gearing`` (nv, N) @ coordinates.
    ``loose`` (N, N) is the inertia of rotors without a known axis.
    """

    robot: RobotModel
    inertia: FloatArray
    model: pin.Model
    gearing: FloatArray
    loose: FloatArray

    def _position(self, q: FloatArray) -> FloatArray:
        found, turned = np.zeros(self.model.nq), self.gearing @ q
        for joint in self.model.joints[1:]:
            angle = turned[joint.idx_v]
            found[joint.idx_q:joint.idx_q + joint.nq] = (
                (np.cos(angle), np.sin(angle)) if joint.nq == 2 else angle)
        return found

    def effort(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the effort (K, N) of states (K, N), gears and friction left out."""
        data = self.model.createData()
        return np.array([
            self.gearing.T @ pin.rnea(self.model, data, self._position(q[k]), self.gearing @ v[k],
                                      self.gearing @ a[k]) + self.loose @ a[k]
            for k in range(len(q))])

    def mass_matrix(self, q: FloatArray) -> FloatArray:
        """Return the inertia (K, N, N); CRBA there wants joints sorted from root to leaves."""
        still = np.zeros_like(q)
        return np.stack([self.effort(q, still, still + unit) - self.effort(q, still, still)
                         for unit in np.eye(q.shape[1])], axis=2)

    def lagrangian(self, q: FloatArray, v: FloatArray) -> tuple[float, float]:
        """Return kinetic and potential energy of a state (N,)."""
        data, at = self.model.createData(), self._position(q)
        kinetic = pin.computeKineticEnergy(self.model, data, at, self.gearing @ v)
        return (float(kinetic + 0.5 * v @ self.loose @ v),
                float(pin.computePotentialEnergy(self.model, data, at)))


def identified(geared: Geared, law: str = 'coulomb', **friction: float) -> IdentifiedModel:
    """Return the model a perfect identification would give; gears K 5000, D 20, s 0.5."""
    robot = geared.robot
    structure = Structure.uniform(robot, True, law, {})
    reduction = structure.torque_model(robot).reduction
    values = dict(zip((f'Ia{label}' for label in axes_of(robot).labels), geared.inertia,
                      strict=True))
    gear = {'K': 5000.0, 'D': 20.0, 's': 0.5} | friction
    standard = robot.nominal.ravel().tolist() + [
        values.get(name, gear.get(name.rstrip('m0123456789'), 0.0))
        for name in reduction.standard[10 * robot.n:]]
    base = reduction.base(np.array(standard))
    return IdentifiedModel(robot, structure, reduction, base, np.zeros_like(base), base,
                           Preprocessing(10.0))


def samples_of(model: IdentifiedModel, *motion: FloatArray) -> Samples:
    """Return states (K, coordinates) as samples."""
    return Samples(model.joints, np.arange(float(len(motion[0]))), *motion)


def geared_arm(name: str, seed: int = 0, elastic: tuple[int, ...] = ()) -> Geared:
    """Return a robot of config/robots with rotors askew; low ratios, so that they matter."""
    robot = load_robot(name)
    full = pin.buildModelFromUrdf(robot.source)
    locked = [j for j in range(1, full.njoints) if full.names[j] not in robot.joints]
    model = pin.buildReducedModel(full, locked, pin.neutral(full)) if locked else full
    return _geared(robot, model, np.random.default_rng(seed), elastic)


def random_geared(seed: int, gives: bool = False) -> Geared:
    """Return a random chain or tree, in part with a motor that turns with two joints.

    With ``gives`` some joints are elastic.
    """
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(2, 7)), 0.5 * (seed % 2))
    robot, elastic = robot_from_urdf(text), ()
    below = [j for j in range(robot.n) if robot.parents[j] >= 0]
    coupling = np.eye(robot.n)
    if gives:
        elastic = tuple(np.flatnonzero(rng.random(robot.n) < 0.6).tolist()) or (0,)
    elif below:
        last = int(rng.choice(below))
        coupling[last, robot.parents[last]] = rng.uniform(-2.0, 2.0)
    robot = replace(robot, drive=replace(robot.drive, coupling=None if gives else coupling))
    return _geared(robot, pin.buildModelFromXML(text), rng, elastic)


def _geared(
    robot: RobotModel, model: pin.Model, rng: np.random.Generator, elastic: tuple[int, ...]
) -> Geared:
    n = robot.n
    axes = np.array([random_axis(rng) for _ in range(n)])
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    axes[rng.random(n) < 0.15 * (n > 2)] = 0.0
    ratios = rng.choice([-1.0, 1.0], n) * rng.uniform(4.0, 20.0, n)
    robot = replace(robot, drive=replace(robot.drive, kind='torque', gains=None, elastic=elastic,
                                         rotor_axes=axes, gear_ratios=ratios))
    motions = axes_of(robot).matrix
    inertia = rng.uniform(0.2, 1.0, len(motions))
    model.gravity.linear = np.array(robot.gravity)
    nominal, loose = robot.nominal.copy(), np.zeros((robot.coordinates,) * 2)
    ids = [model.getJointId(name) for name in robot.joints]
    gearing = np.zeros((n, robot.coordinates))
    gearing[[model.joints[i].idx_v for i in ids]] = np.eye(n, robot.coordinates)
    for motor, first, motion, size in zip(*_motors(robot), motions, inertia, strict=True):
        if motor < 0 or not axes[motor].any():
            loose += size * np.outer(motion, motion)
            continue
        body, carrier = _rotor(rng, axes[motor], size / ratios[motor]**2), robot.parents[first]
        place = pin.SE3(np.eye(3), rng.normal(size=3) * 0.2)
        joint = model.addJoint(ids[carrier] if carrier >= 0 else 0,
                               pin.JointModelRevoluteUnaligned(*axes[motor]), place,
                               f'rotor_{len(gearing)}')
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        gearing = np.vstack([gearing, ratios[motor] * motion])
        if carrier >= 0:
            nominal[carrier] += place.act(body).toDynamicParameters()
    return Geared(robot.with_nominal(nominal), inertia, model, gearing, loose)


def _motors(robot: RobotModel) -> tuple[list[int], list[int]]:
    """Return the motor of each axis, -1 for none, and the first joint that it moves."""
    own, first = list(range(robot.n)), list(range(robot.n))
    for i, row in enumerate(() if robot.drive.coupling is None else robot.drive.coupling):
        if len(moved := np.flatnonzero(row)) > 1:
            own[i] = -1
            own.append(i)
            first.append(int(moved[0]))
    return own, first


def _rotor(rng: np.random.Generator, axis: FloatArray, spin: float) -> pin.Inertia:
    """Return a body that is round about ``axis``, of inertia ``spin`` about it."""
    along = np.outer(axis, axis)
    across = spin * rng.uniform(0.6, 1.5)
    return pin.Inertia(rng.uniform(0.5, 2.0), np.zeros(3),
                       spin * along + across * (np.eye(3) - along))


def gears_of(robot: RobotModel, joints=None, stiffness=2e4, damping=0.0, inertia=0.5) -> Gears:
    """Return the same gear at each of ``joints`` (all)."""
    own = tuple(range(robot.n)) if joints is None else joints
    same = np.ones(len(own))
    return Gears(own, inertia * same, stiffness * same, damping * same, 0.0 * same)


def friction_of(n: int, viscous=0.0, coulomb=0.0, width=0.01) -> AxisFriction:
    """Return the same friction on every joint."""
    values = np.tile([viscous, coulomb, 0.0], (n, 1))
    return AxisFriction.of(np.eye(n), [Coulomb(width)] * n, values)


def integrator_of(robot: RobotModel, gears: Gears, friction: AxisFriction | None = None,
                  rotors: FloatArray | None = None) -> Integrator:
    """Return the compiled integration of the nominal links with ``gears``."""
    rotors = np.zeros((robot.n, robot.n)) if rotors is None else rotors
    own = (friction or friction_of(robot.n)).on(gears.motors(robot.n),
                                                robot.n + len(gears.joints))
    return Integrator(robot, robot.nominal, all_rotors(rotors, gears), own,
                      gears)


def dynamics_of(robot: RobotModel, gears: Gears, rotors: FloatArray | None = None
                ) -> ElasticDynamics:
    """Return the forward dynamics of the nominal links with ``gears``."""
    rotors = np.zeros((robot.n, robot.n)) if rotors is None else rotors
    return ElasticDynamics(robot, robot.nominal, rotors, gears)


def energy(robot: RobotModel, gears: Gears, x: FloatArray, v: FloatArray) -> FloatArray:
    """Return kinetic and potential energy (2, N) of positions and velocities (N, n+e)."""
    n, own = robot.n, list(gears.joints)
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    mass = rigid_body.mass_matrix(robot, x[:, :n])
    kinetic = 0.5 * np.einsum('ti,tij,tj->t', v[:, :n], mass, v[:, :n])
    kinetic += 0.5 * v[:, n:]**2 @ gears.inertia
    weight = [pinocchio.computePotentialEnergy(model, data, q) for q in x[:, :n]]
    return np.array([kinetic, weight + 0.5 * (x[:, n:] - x[:, own])**2 @ gears.stiffness])
