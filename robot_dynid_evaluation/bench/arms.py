"""Arms of the benchmarks: a UR10e with friction, arms of any number of joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.effects import RigidLinks
from robot_dynid.estimation.experiment import Experiment, Regression, TorqueModel
from robot_dynid.friction import law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.truth import Truth, load_truth
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, Samples
from robot_dynid_evaluation.bench.timing import ROBOT
from robot_dynid_evaluation.papers.planar_3r_model import SignFriction

#: rad/s, width of the Coulomb ramp
RAMP = 0.01
#: inertia [kg m^2] of the rotors of the UR10e on the joint side
ROTORS = (6.4, 5.1, 1.7, 0.48, 0.53, 0.48)
#: joint by joint what `identify` with laws of its own choice makes of the recordings of a UR10e:
#: law, settings, and the values of its parameters
CHOSEN: tuple[tuple[str, dict[str, Any], dict[str, float]], ...] = (
    ('dahl+levelling', {
        'length': 1.22e-4, 'width': 0.01,
        'levelling': {'speed': 0.5343, 'speeds': [-1.435, 1.376]}},
     {'fv': 16.5, 'fc': 14.5, 'f0': 0.06, 'fl': 7.64}),
    ('dahl+load+levelling', {
        'length': 1.422e-4, 'width': 0.01, 'load': {},
        'levelling': {'speed': 0.6331, 'speeds': [-1.574, 1.251]}},
     {'fv': 12.3, 'fc': 11.8, 'f0': -0.17, 'fw': 0.0595, 'fl': 5.68}),
    ('dahl+load+levelling', {
        'length': 1.443e-4, 'width': 0.01, 'load': {},
        'levelling': {'speed': 0.5424, 'speeds': [-1.59, 1.608]}},
     {'fv': 6.82, 'fc': 4.78, 'f0': -0.02, 'fw': 0.0675, 'fl': 2.25}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4], 'width': 0.01},
     {'fv': 3.75, 'fca': 1.2, 'fcb': 0.552, 'fcc': 1.05, 'f0': 0.0}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4, 2e-3], 'width': 0.01},
     {'fv': 2.42, 'fca': 1.05, 'fcb': 1.05, 'fcc': 0.736, 'fcd': 0.483, 'f0': 0.0}),
    ('maxwell', {'lengths': [2e-5, 6e-5, 6e-4, 2e-3], 'width': 0.01},
     {'fv': 3.11, 'fca': 0.854, 'fcb': 0.856, 'fcc': 0.558, 'fcd': 0.353, 'f0': 0.01}),
)
#: the same with Coulomb friction
COULOMB: tuple[tuple[str, dict[str, Any], dict[str, float]], ...] = tuple(
    ('coulomb', {'width': 0.005}, {'fv': viscous, 'fc': dry, 'f0': 0.0})
    for viscous, dry in ((20.5, 16.9), (15.6, 17.6), (8.2, 7.0), (3.75, 2.8), (2.42, 3.3),
                         (3.11, 2.6)))
FRICTION = {'auto': CHOSEN, 'coulomb': COULOMB}


#: viscous [N m s/rad] and dry friction [N m] of a peer that knows no other
VISCOUS, DRY = (tuple(values[p] for _, _, values in COULOMB) for p in ('fv', 'fc'))


def ur10e_model(friction: str) -> IdentifiedModel:
    """Return the model with nominal links and ``friction``, a key of FRICTION."""
    robot, chosen = load_robot('ur10e'), FRICTION[friction]
    structure = Structure.of(
        True, [(name, law_from(name, settings)) for name, settings, _ in chosen], robot.nominal)
    values = {f'{p}{j + 1}': value for j, (_, _, own) in enumerate(chosen)
              for p, value in own.items()}
    return model_with(robot, structure, values | {
        f'Ia{j + 1}': value for j, value in enumerate(ROTORS)})


def true_model(
    robot_name: str = ROBOT, feasible: bool = False, scale: FloatArray | None = None
) -> IdentifiedModel:
    """Return the model of an arm with its true parameters, see `model_with`.

    ``scale`` (n,) is a factor of those of each joint and link.
    """
    robot = load_robot(robot_name)
    factor = np.ones(robot.n) if scale is None else scale
    robot = robot.with_nominal(factor[:, None] * robot.nominal)
    truth = load_truth(robot)
    parts = {'Ia': truth.rotor_inertia, 'fv': truth.viscous, 'fc': truth.coulomb}
    values = {f'{part}{f"m{i + 1}" if i in robot.drive.coupled else i + 1}': float(
        factor[i] * own[i]) for part, own in parts.items() for i in range(robot.n)}
    for joint, drive in truth.drives.items():
        place = robot.index(joint) + 1
        values |= {f'K{place}': drive.stiffness, f'D{place}': drive.damping}
    structure = Structure.uniform(robot, True, 'coulomb', {'width': RAMP})
    return model_with(robot, structure, values, feasible)


def model_with(
    robot: RobotModel, structure: Structure, values: Mapping[str, float], feasible: bool = False
) -> IdentifiedModel:
    """Return the model of nominal links with the standard parameters ``values``, others zero.

    A ``feasible`` one knows its standard parameters, as one of the method feasible does.
    """
    reduction = structure.torque_model(robot).reduction
    standard = np.array([*robot.nominal.ravel(), *(
        values.get(name, 0.0) for name in reduction.standard[10 * robot.n:])])
    base = reduction.base(standard)
    return IdentifiedModel(
        robot, structure, reduction, base, np.full_like(base, feasible), base,
        Preprocessing(cutoff=10.0), status='feasible' if feasible else 'true parameters',
        feasible=standard if feasible else None)


#: s between samples of sines
STEP = 0.01
#: share of the effort's root mean square that is noise
NOISE = 0.02
#: viscous [N m s/rad] and Coulomb friction [N m] of the first joint; the others have less
FIRST_JOINT_FRICTION = (4.0, 3.0)


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
    samples = sines(robot, count, rng)
    share = np.linspace(1.0, 0.3, joints)[:, None]
    truth = np.concatenate([
        (robot.nominal * rng.uniform(0.8, 1.2, (joints, 1))).ravel(),
        (share * FIRST_JOINT_FRICTION).ravel()])
    clean = model.effort(samples, model.reduction.base(truth))
    noise = NOISE * np.sqrt(np.mean(clean**2, axis=0))
    effort = clean + noise * rng.standard_normal(clean.shape)
    return Recorded(model, replace(samples, effort=effort, measured=effort), noise, truth)


def sines(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
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


def effort(robot: RobotModel, truth: Truth, motion: Motion) -> FloatArray:
    """Return the effort (N, n) of the true robot, which must have no coupled motors."""
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    links = inverse_dynamics(robot, q, qd, qdd)
    side = np.clip(qd / RAMP, -1.0, 1.0)
    return links + truth.rotor_inertia * qdd + truth.viscous * qd + truth.coulomb * side
