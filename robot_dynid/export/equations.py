"""The equations of motion of a mechanism as expressions of another package's numbers.

Recursive Newton-Euler and composite rigid bodies in the frames of the links, where the inertias
are constant: what is zero there never enters an expression. Source: Featherstone, Rigid Body
Dynamics Algorithms, 2008, chapters 5 and 6. Vectors are arrays of the package, states and efforts
lists of its numbers. Friction is that of steady sliding; where it grows with the load, forward
dynamics follows the sign of the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from robot_dynid.dynamics.coordinates import Coordinates
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.friction.terms import CONSTANT, POWER, RAMP
from robot_dynid.kernels.friction import (
    ABOVE,
    FADE,
    HIGHEST,
    KIND,
    LOAD,
    LOWEST,
    ROW,
    SCALE,
    SIDE,
    WEIGHT,
)
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.types import FloatArray

#: numbers, vectors and matrices of the package
Number = Any
Vector = Any
Matrix = Any
#: geometry below which a number is what rounding left of zero
ROUNDING = 1e-15
#: signs of the loads that are tried one after the other; 15 000 random states of arms took two
LOAD_ROUNDS = 3


class Algebra(Protocol):
    """The operations of the package, by the names that CasADi and JAX have for them."""

    def sin(self, x: Number) -> Number: ...
    def cos(self, x: Number) -> Number: ...
    def tanh(self, x: Number) -> Number: ...
    def fabs(self, x: Number) -> Number: ...
    def sign(self, x: Number) -> Number: ...
    def fmin(self, x: Number, y: Number) -> Number: ...
    def fmax(self, x: Number, y: Number) -> Number: ...
    def cross(self, a: Vector, b: Vector) -> Vector: ...
    def dot(self, a: Vector, b: Vector) -> Number: ...
    def diag(self, a: Vector) -> Matrix: ...

    def where(self, condition: Any, then: Number, other: Number) -> Number:
        """Choose by a condition."""

    def constant(self, values: FloatArray) -> Any:
        """Return a vector (m,) or a matrix (m, n) of constants."""

    def vector(self, entries: Sequence[Number]) -> Vector:
        """Return a vector of numbers."""

    def matrix(self, rows: Sequence[Sequence[Number]]) -> Matrix:
        """Return a matrix of numbers."""

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Return the solution of linear equations, of a matrix that is nearly a mass matrix."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint at its position: ``rotation`` and ``offset`` to the parent's frame, ``parent``.

    ``angular`` and ``linear``: its screw in the frame of its link, one of them zero; whether it
    ``turns``.
    """

    parent: int
    rotation: Matrix
    offset: Vector
    angular: Vector
    linear: Vector
    turns: bool


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of a link: ``spin``, its ``rate``, acceleration of the ``origin``, in its frame."""

    spin: Vector
    rate: Vector
    origin: Vector


@dataclass(frozen=True, eq=False)
class Body:
    """Constants of a link: mass, first moment, inertia and second moment about its origin."""

    mass: float
    moment: Vector
    inertia: Matrix
    second: Matrix


@dataclass(frozen=True, eq=False)
class Functions:
    """Dynamics of a mechanism of N coordinates as functions of a package.

    ``inverse`` (q, qd, qdd) -> effort and ``forward`` (q, qd, effort) -> acceleration, all (N,).
    ``coordinates`` (N,) are the names of the joints, then those of motors that move apart from
    them; ``motors`` (n,) are those on which the drives of the joints act, the effort of the others
    is zero.
    """

    inverse: Any
    forward: Any
    coordinates: tuple[str, ...]
    motors: tuple[int, ...]


class Equations:
    """Inverse and forward dynamics of a mechanism of N coordinates, see `Coordinates`."""

    def __init__(self, mechanism: Mechanism, algebra: Algebra) -> None:
        self.coordinates = Coordinates.of(mechanism)
        self._robot, self._math = mechanism.robot, algebra
        self._bodies = [self._body(row) for row in mechanism.links]
        self._springs = mechanism.links[:, SPRING:]
        self._zero = algebra.constant(np.zeros(3))

    def inverse(
        self, q: Sequence[Number], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> Vector:
        """Return the effort (N,) of all coordinates [N m, N]."""
        own = self.coordinates
        joints = self._joints(q)
        motion = self._motion(joints, qd, qdd)
        effort = self._effort(joints, motion, self._bodies) + [0.0] * self._beyond
        self._add_rotors(joints, motion, qd, qdd, effort)
        self._add_straight(q, qd, effort)
        free, pressed = self._friction(qd)
        if own.friction.needs_load:
            load = self._loads(self._effort(joints, motion, self._load_bodies))
            free = free + pressed * self._math.fabs(load)
        return self._math.vector(effort) + self._math.constant(own.friction.axes.T) @ free

    def forward(
        self, q: Sequence[Number], qd: Sequence[Number], effort: Sequence[Number]
    ) -> Vector:
        """Return the acceleration (N,) of all coordinates [rad/s^2, m/s^2]."""
        own, still = self.coordinates, [0.0] * len(self.coordinates.names)
        joints = self._joints(q)
        motion = self._motion(joints, qd, still)
        bias = self._effort(joints, motion, self._bodies) + [0.0] * self._beyond
        self._add_rotors(joints, motion, qd, still, bias)
        self._add_straight(q, qd, bias)
        matrix = self._inertia(joints, self._bodies, own.rotors.inertia)
        self._add_rotor_inertia(joints, matrix)
        free, pressed = self._friction(qd)
        inertia = self._math.matrix(matrix)
        right = (self._math.vector(effort) - self._math.vector(bias)
                 - self._math.constant(own.friction.axes.T) @ free)
        found = self._math.solve(inertia, right)
        if own.friction.needs_load:
            found = self._under_load(joints, motion, (inertia, right, pressed), found)
        return found

    def _under_load(
        self, joints: list[Joint], motion: list[Motion], known: tuple[Matrix, Vector, Vector],
        found: Vector,
    ) -> Vector:
        """Return the acceleration with friction that grows with the load.

        For given signs of the loads the equations are linear, and their solution gives the next.
        """
        inertia, right, pressed = known
        n, math = self._robot.n, self._math
        axes = math.constant(self.coordinates.friction.axes.T)
        bias = self._loads(self._effort(joints, motion, self._load_bodies))
        mass = math.matrix(self._inertia(joints, self._load_bodies, np.zeros((n, n))))
        slope = (math.constant(self.coordinates.friction.transmission) @ mass) @ math.constant(
            np.eye(n, len(self.coordinates.names)))
        for _ in range(LOAD_ROUNDS):
            share = pressed * math.sign(bias + slope @ found)
            found = math.solve(inertia + axes @ (math.diag(share) @ slope),
                               right - axes @ (share * bias))
        return found

    @property
    def _beyond(self) -> int:
        """Number of coordinates beyond the joints."""
        return len(self.coordinates.names) - self._robot.n

    @cached_property
    def _load_bodies(self) -> list[Body]:
        return [self._body(row) for row in self.coordinates.friction.links]

    def _body(self, row: FloatArray) -> Body:
        inertia = np.array([[row[4], row[5], row[7]], [row[5], row[6], row[8]],
                            [row[7], row[8], row[9]]])
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        constant = self._math.constant
        return Body(float(row[0]), constant(row[1:4]), constant(inertia), constant(second))

    def _joints(self, q: Sequence[Number]) -> list[Joint]:
        """Return all joints at their positions."""
        found, constant = [], self._math.constant
        for j, own in enumerate(np.where(np.abs(self._robot.geometry) < ROUNDING, 0.0,
                                         self._robot.geometry)):
            turns = bool(own[33:36].any())
            rotation, offset = constant(own[0:9].reshape(3, 3)), constant(own[27:30])
            if turns:
                rotation = (rotation + constant(own[9:18].reshape(3, 3)) * self._math.cos(q[j])
                            + constant(own[18:27].reshape(3, 3)) * self._math.sin(q[j]))
            else:
                offset = offset + constant(own[30:33]) * q[j]
            found.append(Joint(int(self._robot.parents[j]), rotation, offset,
                               constant(own[33:36]), constant(own[36:39]), turns))
        return found

    def _motion(
        self, joints: list[Joint], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> list[Motion]:
        """Return the motion of all links, each in its own frame, accelerated against gravity."""
        cross, found = self._math.cross, list[Motion]()
        base = Motion(self._zero, self._zero, self._math.constant(-np.asarray(
            self._robot.gravity)))
        for j, joint in enumerate(joints):
            parent = base if joint.parent < 0 else found[joint.parent]
            back = joint.rotation.T
            rate, spin = parent.rate, parent.spin
            origin = parent.origin + cross(rate, joint.offset) + cross(
                spin, cross(spin, joint.offset))
            spin, rate, origin = back @ spin, back @ rate, back @ origin
            if joint.turns:
                turn = joint.angular * qd[j]
                rate = rate + joint.angular * qdd[j] + cross(spin, turn)
                spin = spin + turn
            else:
                origin = origin + joint.linear * qdd[j] + 2.0 * cross(spin, joint.linear * qd[j])
            found.append(Motion(spin, rate, origin))
        return found

    def _effort(
        self, joints: list[Joint], motion: list[Motion], bodies: list[Body]
    ) -> list[Number]:
        """Return the effort (n,) of links."""
        cross, wrenches = self._math.cross, []
        for body, own in zip(bodies, motion, strict=True):
            force = (own.origin * body.mass + cross(own.rate, body.moment)
                     + cross(own.spin, cross(own.spin, body.moment)))
            moment = (body.inertia @ own.rate + cross(own.spin, body.inertia @ own.spin)
                      + cross(body.moment, own.origin))
            wrenches.append((force, moment))
        return self._collected(joints, wrenches)

    def _collected(
        self, joints: list[Joint], wrenches: list[tuple[Vector, Vector]]
    ) -> list[Number]:
        """Return the effort (n,) of ``wrenches`` (force, moment) on the links."""
        cross, effort, sums = self._math.cross, [0.0] * len(joints), list(wrenches)
        for j in range(len(joints) - 1, -1, -1):
            joint, (force, moment) = joints[j], sums[j]
            effort[j] = self._power(joint, force, moment)
            if joint.parent >= 0:
                force, moment = joint.rotation @ force, joint.rotation @ moment
                below = sums[joint.parent]
                sums[joint.parent] = (below[0] + force,
                                      below[1] + moment + cross(joint.offset, force))
        return effort

    def _power(self, joint: Joint, force: Vector, moment: Vector) -> Number:
        """Return the power of a wrench along a screw of speed one."""
        if joint.turns:
            return self._math.dot(joint.angular, moment)
        return self._math.dot(joint.linear, force)

    def _inertia(
        self, joints: list[Joint], bodies: list[Body], constant: FloatArray
    ) -> list[list[Number]]:
        """Return the mass matrix of composite bodies, added to a constant one."""
        matrix = [[float(value) for value in row] for row in constant]
        masses = [body.mass for body in bodies]
        moments = [body.moment for body in bodies]
        seconds = [body.second for body in bodies]
        for j in range(len(joints) - 1, -1, -1):
            self._fill(joints, j, (masses[j], moments[j], seconds[j]), matrix)
            joint, parent = joints[j], joints[j].parent
            if parent < 0:
                continue
            turned = joint.rotation @ moments[j]
            across = self._outer(turned + 0.5 * masses[j] * joint.offset, joint.offset)
            seconds[parent] = (seconds[parent] + joint.rotation @ seconds[j] @ joint.rotation.T
                               + across + across.T)
            moments[parent] = moments[parent] + turned + joint.offset * masses[j]
            masses[parent] = masses[parent] + masses[j]
        return matrix

    def _fill(
        self, joints: list[Joint], j: int, body: tuple[float, Vector, Matrix],
        matrix: list[list[Number]],
    ) -> None:
        """Add the row and the column of a joint that moves a composite body."""
        cross, joint, (mass, moment, second) = self._math.cross, joints[j], body
        if joint.turns:
            force = cross(joint.angular, moment)
            trace = second[0, 0] + second[1, 1] + second[2, 2]
            torque = joint.angular * trace - second @ joint.angular
        else:
            force, torque = joint.linear * mass, cross(moment, joint.linear)
        i = j
        while i >= 0:
            own = joints[i]
            entry = self._power(own, force, torque)
            matrix[i][j] = matrix[i][j] + entry
            if i != j:
                matrix[j][i] = matrix[j][i] + entry
            force, torque = own.rotation @ force, own.rotation @ torque
            torque = torque + cross(own.offset, force)
            i = own.parent

    def _outer(self, a: Vector, b: Vector) -> Matrix:
        """Return the matrix (3, 3) of products of two vectors."""
        return a.reshape((3, 1)) @ b.reshape((1, 3))

    def _add_rotors(
        self, joints: list[Joint], motion: list[Motion], qd: Sequence[Number],
        qdd: Sequence[Number], effort: list[Number],
    ) -> None:
        """Add the inertia of rotors, and what those on moving links and the links share."""
        rotors, nothing = self.coordinates.rotors, (self._zero, self._zero)
        for i, row in enumerate(rotors.inertia):
            effort[i] = effort[i] + _along(row, qdd)
        for carrier, line, turns in zip(rotors.carriers, rotors.axes, rotors.motions,
                                        strict=True):
            axis, own = self._math.constant(line), motion[carrier]
            drag = axis * _along(turns, qdd) + self._math.cross(own.spin, axis) * _along(turns, qd)
            wrenches = [nothing] * len(joints)
            wrenches[carrier] = (self._zero, drag)
            for j, value in enumerate(self._collected(joints, wrenches)):
                effort[j] = effort[j] + value
            _add(effort, turns, self._math.dot(axis, own.rate))

    def _add_rotor_inertia(self, joints: list[Joint], matrix: list[list[Number]]) -> None:
        """Add to a mass matrix what rotors on moving links and the links share."""
        rotors = self.coordinates.rotors
        for carrier, line, turns in zip(rotors.carriers, rotors.axes, rotors.motions,
                                        strict=True):
            axis, j = self._math.constant(line), int(carrier)
            while j >= 0:
                along = self._power(joints[j], self._zero, axis)
                for i in np.flatnonzero(turns):
                    matrix[i][j] = matrix[i][j] + float(turns[i]) * along
                    matrix[j][i] = matrix[j][i] + float(turns[i]) * along
                axis, j = joints[j].rotation @ axis, joints[j].parent

    def _loads(self, effort: Sequence[Number]) -> Vector:
        """Return the load (a,) of the axes of friction under the effort of the links."""
        return self._math.constant(self.coordinates.friction.transmission) @ self._math.vector(
            effort)

    def _add_straight(
        self, q: Sequence[Number], qd: Sequence[Number], effort: list[Number]
    ) -> None:
        """Add what is straight in position and velocity, gears and offsets, and springs."""
        stiffness, damping, _ = self.coordinates.straight()
        for i, offset in enumerate(self.coordinates.offset()):
            effort[i] = (effort[i] + float(offset) + _along(stiffness[i], q)
                         + _along(damping[i], qd))
        for i, spring in enumerate(self._springs.tolist()):
            if any(spring):
                a, b, x, y = spring
                sine, cosine = self._math.sin(q[i]), self._math.cos(q[i])
                effort[i] = effort[i] + (a * sine + b * cosine) * (
                    1.0 + x * x + y * y - 2.0 * (x * cosine - y * sine)) ** -0.5

    def _friction(self, qd: Sequence[Number]) -> tuple[Vector, Vector]:
        """Return the curved friction (a,) of all axes, without load and per size of the load."""
        friction = self.coordinates.friction
        free: list[Number] = [0.0] * len(friction.axes)
        pressed: list[Number] = [0.0] * len(friction.axes)
        for term in friction.terms:
            axis = int(term[ROW])
            value = self._term(term, _along(friction.axes[axis], qd))
            for sums, weight in ((free, term[WEIGHT]), (pressed, term[LOAD])):
                if weight != 0.0:
                    sums[axis] = sums[axis] + float(weight) * value
        return self._math.vector(free), self._math.vector(pressed)

    def _term(self, term: FloatArray, velocity: Number) -> Number:
        """Return a term of weight one, as `kernels.friction.tangent` does."""
        math, edge = self._math, velocity
        bounded = np.isfinite(term[[LOWEST, HIGHEST]])
        if bounded[0]:
            edge = math.fmax(edge, float(term[LOWEST]))
        if bounded[1]:
            edge = math.fmin(edge, float(term[HIGHEST]))
        value, slope = self._shape(term, edge)
        if term[FADE] != 0.0:
            steep = math.tanh(math.fabs(edge) / float(term[FADE]))
            falls = math.sign(edge) * (steep**2 - 1.0) / float(term[FADE])
            value, slope = value * (1.0 - steep), slope * (1.0 - steep) + value * falls
        if bounded.any():
            value = value + slope * (velocity - edge)
        if term[SIDE] != 0.0:
            value = math.where(velocity * float(term[SIDE]) < 0.0, 0.0, value)
        if term[ABOVE] != 0.0:
            value = math.where(math.fabs(edge) < float(term[ABOVE]), 0.0, value)
        return value

    def _shape(self, term: FloatArray, velocity: Number) -> tuple[Number, Number]:
        """Return the shape of a term at a velocity, and its slope."""
        math, kind, scale = self._math, term[KIND], float(term[SCALE])
        if kind == CONSTANT:
            return 1.0, 0.0
        if kind == POWER:
            size = math.fabs(velocity)**(scale - 1.0) if scale != 1.0 else 1.0
            return velocity * size, scale * size
        if kind == RAMP:
            inside = math.fabs(velocity) < scale
            return (math.fmin(math.fmax(velocity / scale, -1.0), 1.0),
                    math.where(inside, 1.0 / scale, 0.0))
        steep = math.tanh(velocity / scale)
        return steep, (1.0 - steep**2) / scale


def _along(shares: FloatArray, motion: Sequence[Number]) -> Number:
    """Return ``shares`` (m,) @ ``motion``, without those that are zero."""
    found: Number = 0.0
    for share, own in zip(shares.tolist(), motion, strict=True):
        if share != 0.0:
            found = found + (own if share == 1.0 else share * own)
    return found


def _add(effort: list[Number], shares: FloatArray, torque: Number) -> None:
    """Add a torque to what it acts on."""
    for j, share in enumerate(shares.tolist()):
        if share != 0.0:
            effort[j] = effort[j] + share * torque
