"""Arms of the strange plant: public URDFs, those of the repository, and a SCARA written here.

example-robot-data and pybullet are looked for in every folder that Python imports from.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from robot_descriptions import PLACES

from robot_dynid import load_robot
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

ROOT = Path(__file__).resolve().parents[2]
SCARA = """<robot name="scara"><link name="base"/>{bodies}</robot>"""
#: joint, type, axis, origin [m], limits (lower, upper, velocity), mass [kg], centre [m]
SCARA_LINKS = (
    ('shoulder', 'revolute', '0 0 1', '0 0 0.4', (-2.2, 2.2, 3.0), 7.0, '0.16 0.01 0.03'),
    ('elbow', 'revolute', '0 0 1', '0.35 0 0', (-2.4, 2.4, 4.0), 4.5, '0.14 -0.01 0.05'),
    ('lift', 'prismatic', '0 0 -1', '0.3 0 0', (0.0, 0.25, 0.6), 1.6, '0.01 0 0.08'),
    ('spindle', 'revolute', '0 0 -1', '0 0 0.1', (-3.0, 3.0, 6.0), 0.6, '0.02 0.01 0.04'),
)
#: largest speed and acceleration of motions: of joints that turn [rad/s, rad/s^2] and slide [m/s,
#: m/s^2]
TURNS, SLIDES = (2.0, 6.0), (0.3, 1.0)
#: largest way from the middle [rad], where the limits allow more
REACH = 1.1


@dataclass(frozen=True)
class ArmFile:
    """A URDF and the joints of the arm in it; no ``joints``: all of them."""

    path: str
    joints: tuple[str, ...] = ()


def _numbered(pattern: str, *numbers: int) -> tuple[str, ...]:
    return tuple(pattern.format(number) for number in numbers)


ARMS = {
    'ur5': ArmFile('ur_description/urdf/ur5_robot.urdf'),
    'ur10': ArmFile('ur_description/urdf/ur10_robot.urdf'),
    'panda': ArmFile('panda_description/urdf/panda.urdf',
                     _numbered('panda_joint{}', *range(1, 8))),
    'jaco': ArmFile('kinova_description/robots/kinova.urdf'),
    'xarm7': ArmFile('xarm_description/urdf/xarm7.urdf'),
    'tiago': ArmFile('tiago_description/robots/tiago_no_hand.urdf', (
        'torso_lift_joint', *_numbered('arm_{}_joint', *range(1, 8)))),
    'talos': ArmFile('talos_data/robots/talos_left_arm.urdf',
                     _numbered('arm_left_{}_joint', *range(2, 8))),
    'z1': ArmFile('z1_description/urdf/z1.urdf', _numbered('joint{}', *range(1, 7))),
    'so101': ArmFile('so_arm_description/urdf/so101.urdf', (
        'shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll')),
    'baxter': ArmFile('baxter_description/urdf/baxter.urdf', tuple(
        f'left_{name}' for name in ('s0', 's1', 'e0', 'e1', 'w0', 'w1', 'w2'))),
    'pendulum': ArmFile('double_pendulum_description/urdf/double_pendulum_continuous.urdf'),
    'iiwa': ArmFile('kuka_iiwa/model.urdf'),
    'xarm6': ArmFile('xarm/xarm6_robot.urdf'),
    'franka': ArmFile('franka_panda/panda.urdf', _numbered('panda_joint{}', *range(1, 8))),
    'scara': ArmFile(''),
    'planar': ArmFile('urdf/planar_3r.urdf'),
    'ur10e': ArmFile('urdf/ur10e.urdf'),
    'puma': ArmFile('urdf/puma560.urdf'),
    'tx40': ArmFile('urdf/tx40.urdf'),
    'stanford': ArmFile('urdf/stanford_arm.urdf'),
}


@dataclass(frozen=True, eq=False)
class Arm:
    """An arm as its description says it is, for robot_dynid and for Pinocchio.

    Motions stay within ``middle`` +- ``half`` (n,), ``speed`` and ``acceleration`` (n,).
    """

    name: str
    robot: RobotModel
    nominal: Any
    middle: FloatArray
    half: FloatArray
    speed: FloatArray
    acceleration: FloatArray

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.middle)

    @property
    def slides(self) -> FloatArray:
        """Whether joints (n,) slide, as 0 or 1."""
        return np.array([kind == PRISMATIC for kind in self.robot.types], dtype=float)


def urdf_of(name: str) -> Path | None:
    """Return the URDF file of an arm, None where its package is not installed."""
    if name == 'scara':
        return _scara()
    file = ARMS[name].path
    folders = [ROOT / 'robot_dynid', *(Path(folder) / place for folder in dict.fromkeys(sys.path)
                       for place in PLACES)]
    return next((folder / file for folder in folders if (folder / file).is_file()), None)


def available() -> tuple[str, ...]:
    """Return the names of all arms whose description is installed."""
    return tuple(name for name in ARMS if urdf_of(name))


@cache
def load_arm(name: str) -> Arm:
    """Return an arm whose joints alone move, all others locked at zero.

    Raises AssertionError where robot_dynid and Pinocchio read two robots from one file.
    """
    path = urdf_of(name)
    assert path, f'the description of {name} is not installed'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f'{name}.yaml'
        joints = f'joints: [{", ".join(ARMS[name].joints)}]\n' if ARMS[name].joints else ''
        file.write_text(f'urdf: {path}\n{joints}effort_kind: torque\n', 'utf-8')
        robot = load_robot(file)
    model = pin.buildModelFromUrdf(str(path))
    locked = [i for i in range(1, model.njoints) if model.names[i] not in robot.joints]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    assert tuple(model.names)[1:] == robot.joints, f'{name}: joints in another order'
    slides = np.array([kind == PRISMATIC for kind in robot.types])
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -np.pi)
    upper = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, np.pi)
    caps = np.where(slides[:, None], SLIDES, TURNS)
    limit = np.where(robot.limits.velocity > 0.0, robot.limits.velocity, np.inf)
    speed = np.fmin(caps[:, 0], 0.6 * limit)
    return Arm(name, robot, model, (lower + upper) / 2.0,
               np.minimum(0.42 * (upper - lower), REACH), speed,
               caps[:, 1] * speed / caps[:, 0])


def configuration(model: Any, q: FloatArray) -> FloatArray:
    """Return joint positions (n,) as Pinocchio wants them: unbounded joints as (cos, sin)."""
    if model.nq == model.nv:
        return q
    parts = []
    for joint, value in zip(model.joints[1:], q, strict=True):
        parts += [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
    return np.array(parts)


def inverse_dynamics(model: Any, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the effort (T, n) [N m] of states (T, n), by Pinocchio."""
    data = model.createData()
    return np.array([pin.rnea(model, data, configuration(model, one), two, three)
                     for one, two, three in zip(q, v, a, strict=True)])


def regressor(model: Any, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Return the columns (T, n, 10 n) of the standard parameters of links, by Pinocchio."""
    data = model.createData()
    return np.array([
        pin.computeJointTorqueRegressor(model, data, configuration(model, one), two, three).copy()
        for one, two, three in zip(q, v, a, strict=True)])


@cache
def _scara() -> Path:
    parent, bodies = 'base', ''
    for joint, kind, axis, origin, (lower, upper, speed), mass, centre in SCARA_LINKS:
        bodies += (
            f'<link name="{joint}_link"><inertial><origin xyz="{centre}"/><mass value="{mass}"/>'
            f'<inertia ixx="{0.004 * mass}" iyy="{0.012 * mass}" izz="{0.011 * mass}" ixy="0" '
            f'ixz="0" iyz="0"/></inertial></link><joint name="{joint}" type="{kind}">'
            f'<parent link="{parent}"/><child link="{joint}_link"/><origin xyz="{origin}"/>'
            f'<axis xyz="{axis}"/><limit lower="{lower}" upper="{upper}" velocity="{speed}" '
            'effort="200"/></joint>')
        parent = f'{joint}_link'
    file = Path(tempfile.mkdtemp()) / 'scara.urdf'
    file.write_text(SCARA.format(bodies=bodies), 'utf-8')
    return file
