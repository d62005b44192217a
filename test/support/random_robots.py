"""Random robot descriptions as URDF text, also with collision shapes; Pinocchio's view of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.types import FloatArray

KINDS = ('revolute', 'continuous', 'prismatic', 'fixed')


def text_of(vector: FloatArray) -> str:
    """Return the numbers of a vector as an attribute, without loss."""
    return ' '.join(repr(float(v)) for v in vector)


def random_inertial(rng: np.random.Generator) -> str:
    """Return the <inertial> of a body with positive density in a rotated frame."""
    spread = rng.normal(size=(3, 3)) * 0.2
    second = spread @ spread.T + 1e-3 * np.eye(3)
    mass = rng.uniform(0.2, 8.0)
    i = mass * (np.trace(second) * np.eye(3) - second)
    moments = {'ixx': i[0, 0], 'ixy': i[0, 1], 'ixz': i[0, 2], 'iyy': i[1, 1], 'iyz': i[1, 2],
               'izz': i[2, 2]}
    return (
        f'<inertial><origin xyz="{text_of(rng.normal(size=3) * 0.2)}" '
        f'rpy="{text_of(rng.uniform(-3, 3, 3))}"/><mass value="{mass!r}"/><inertia '
        + ' '.join(f'{key}="{float(value)!r}"' for key, value in moments.items())
        + '/></inertial>'
    )


def random_axis(rng: np.random.Generator) -> FloatArray:
    """Return a coordinate axis, its opposite or any direction of any length."""
    if rng.random() < 0.4:
        return np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    return rng.normal(size=3) * rng.uniform(0.5, 3.0)


def random_joint(rng: np.random.Generator, i: int, parent: str, kind: str) -> str:
    """Return the joint ``j{i}`` between ``parent`` and the link ``l{i}``."""
    limit = '' if kind in ('fixed', 'continuous') else (
        '<limit lower="-2.5" upper="2.0" velocity="3.0" effort="50.0"/>')
    axis = '' if kind == 'fixed' else f'<axis xyz="{text_of(random_axis(rng))}"/>'
    return (
        f'<joint name="j{i}" type="{kind}"><parent link="{parent}"/><child link="l{i}"/>'
        f'<origin xyz="{text_of(rng.normal(size=3) * 0.3)}" '
        f'rpy="{text_of(rng.uniform(-3, 3, 3))}"/>{axis}{limit}</joint>'
    )


def random_urdf(rng: np.random.Generator, moving: int, branching: float) -> str:
    """Return a robot with ``moving`` joints, fixed ones strewn in.

    ``branching`` is the probability that a joint starts at an earlier link (0 for a chain); links
    may be without inertial, also the base link may have one.
    """
    links = ['l0']
    elements = [f'<link name="l0">{random_inertial(rng)}</link>']
    left = moving
    while left:
        i = len(links)
        kind = str(rng.choice(KINDS, p=[0.35, 0.2, 0.25, 0.2]))
        parent = str(rng.choice(links)) if rng.random() < branching else links[-1]
        inertial = random_inertial(rng) if rng.random() < 0.9 or left == 1 else ''
        elements.append(f'<link name="l{i}">{inertial}</link>')
        elements.append(random_joint(rng, i, parent, kind))
        links.append(f'l{i}')
        left -= kind != 'fixed'
    order = rng.permutation(len(elements))
    return '<robot name="random">' + '\n'.join(elements[i] for i in order) + '</robot>'


@dataclass(frozen=True, eq=False)
class Peer:
    """Pinocchio's model of the same description, addressed by the joint names of ours."""

    model: pin.Model
    data: pin.Data
    ids: tuple[int, ...]
    rows: FloatArray

    @classmethod
    def of(cls, model: pin.Model, robot: RobotModel) -> Peer:
        """Pair the joints of ``model`` with those of ``robot`` by name."""
        model.gravity.linear = np.array(robot.gravity)
        ids = tuple(model.getJointId(name) for name in robot.joints)
        assert model.nv == robot.n
        return cls(model, model.createData(), ids,
                   np.array([model.joints[i].idx_v for i in ids], dtype=np.int64))

    def position(self, q: FloatArray) -> FloatArray:
        """Return Pinocchio's configuration; continuous joints are (cos, sin) there."""
        configuration = np.zeros(self.model.nq)
        for value, i in zip(q, self.ids, strict=True):
            joint = self.model.joints[i]
            if joint.nq == 2:
                configuration[joint.idx_q:joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                configuration[joint.idx_q] = value
        return configuration

    def tangent(self, v: FloatArray) -> FloatArray:
        """Return a vector of our joint order in Pinocchio's."""
        vector = np.zeros(self.model.nv)
        vector[self.rows] = v
        return vector

    def inverse_dynamics(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the effort (n,) of one state."""
        return pin.rnea(self.model, self.data, self.position(q), self.tangent(v),
                        self.tangent(a))[self.rows].copy()

    def forward_dynamics(self, q: FloatArray, v: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the acceleration (n,) by the articulated-body algorithm."""
        return pin.aba(self.model, self.data, self.position(q), self.tangent(v),
                       self.tangent(effort))[self.rows].copy()

    def inverse_derivatives(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return those (3, n, n) of the effort by q, v and a."""
        return self._ordered(pin.computeRNEADerivatives(
            self.model, self.data, self.position(q), self.tangent(v), self.tangent(a)))

    def forward_derivatives(self, q: FloatArray, v: FloatArray, effort: FloatArray) -> FloatArray:
        """Return those (3, n, n) of the acceleration by q, v and effort."""
        return self._ordered(pin.computeABADerivatives(
            self.model, self.data, self.position(q), self.tangent(v), self.tangent(effort)))

    def _ordered(self, found: tuple[FloatArray, ...]) -> FloatArray:
        """Return three matrices in our order of the joints; the last comes as upper triangle."""
        shape = (self.model.nv, self.model.nv)
        first, second, third = (np.reshape(part, shape) for part in found)
        whole = np.array([first, second, np.triu(third) + np.triu(third, 1).T])
        return whole[:, self.rows[:, None], self.rows]

    def mass_matrix(self, q: FloatArray) -> FloatArray:
        """Return the mass matrix (n, n)."""
        inertia = pin.crba(self.model, self.data, self.position(q))
        upper = np.triu(inertia.reshape(self.model.nv, -1))
        full = upper + np.triu(upper, 1).T
        return full[np.ix_(self.rows, self.rows)]

    def regressor(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the regressor (n, 10 n), links in our order."""
        full = pin.computeJointTorqueRegressor(
            self.model, self.data, self.position(q), self.tangent(v), self.tangent(a),
        ).reshape(self.model.nv, -1)  # a single row comes flat
        columns = np.concatenate([np.arange(10) + 10 * (i - 1) for i in self.ids])
        return full[self.rows][:, columns].copy()

    def parameters(self) -> FloatArray:
        """Return the standard parameters (n, 10) of the bodies, fixed children lumped."""
        return np.array([self.model.inertias[i].toDynamicParameters() for i in self.ids])


def random_geometry(rng: np.random.Generator) -> str:
    """Return a box, cylinder, capsule or sphere of 4 to 12 cm half length."""
    half = [float(v) for v in rng.uniform(0.04, 0.12, 3)]
    return str(rng.choice([
        f'<box size="{text_of(2.0 * np.array(half))}"/>', f'<sphere radius="{half[0]!r}"/>',
        f'<cylinder radius="{half[0]!r}" length="{2.0 * half[1]!r}"/>',
        f'<capsule radius="{half[0]!r}" length="{2.0 * half[1]!r}"/>']))


def random_collision(rng: np.random.Generator) -> str:
    """Return a <collision> near the origin of its link."""
    return (f'<collision><origin xyz="{text_of(rng.normal(size=3) * 0.08)}" '
            f'rpy="{text_of(rng.uniform(-3, 3, 3))}"/><geometry>{random_geometry(rng)}</geometry>'
            '</collision>')


def colliding_urdf(rng: np.random.Generator, moving: int, branching: float = 0.0) -> str:
    """Return a random robot whose links have one or two shapes each."""
    return re.sub(r'(<link name="l\d+">)',
                  lambda m: m[1] + ''.join(random_collision(rng)
                                           for _ in range(rng.integers(1, 3))),
                  random_urdf(rng, moving, branching))


def colliding_robot(path, rng: np.random.Generator, moving: int, branching: float = 0.0):
    """Return the robot of a random URDF written to ``path``."""
    path.write_text(colliding_urdf(rng, moving, branching))
    return load_robot(path)


def random_motion(
    robot: RobotModel, rng: np.random.Generator, size: float, seconds: float = 4.0
) -> FourierTrajectory:
    """Return a Fourier series about a random pose, amplitudes of ``size`` rad (m)."""
    amplitudes = [size * rng.normal(size=(robot.n, 3)) / np.arange(1.0, 4.0) for _ in range(2)]
    return FourierTrajectory(robot.joints, 1.0 / seconds, rng.uniform(-1.0, 1.0, robot.n),
                             *amplitudes)
