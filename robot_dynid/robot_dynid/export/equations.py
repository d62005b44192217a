"""The equations of motion of a mechanism as expressions of another package's numbers.

Recursive Newton-Euler and composite bodies in the frames of `frames.Frames`. The acceleration of a
point r of a link is a + U r with U = [wd]x + [w]x[w]x, so a link of mass m, first moment h and
second moment S takes the force m a + U h, and about its origin the moment h x a plus the axial
vector of U S. What is zero never enters an expression. Vectors are arrays of the package, states
and efforts lists of its numbers.
Sources: Luh, Walker, Paul 1980; Khalil, Kleinfinger 1987; Featherstone 2008, sections 6.2, 6.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robot_dynid.dynamics.coordinates import Coordinates
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.export.frames import Frames
from robot_dynid.friction import AxisFriction
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
    STOP,
    WEIGHT,
    fill_sliding,
)
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.types import FloatArray

#: numbers, vectors and matrices of the package
Number = Any
Vector = Any
Matrix = Any
#: iterations of the load signs; 15 000 random states of arms took at most two
LOAD_ROUNDS = 3
#: constant, cosine and sine part of a rotation about z
ALONG, ACROSS = np.diag([0.0, 0.0, 1.0]), np.diag([1.0, 1.0, 0.0])
QUARTER = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


class Algebra(Protocol):
    """Operations of the package, by the names in CasADi and JAX."""

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
        """Choose by a condition, number by number."""

    def constant(self, values: FloatArray) -> Any:
        """Return a vector (m,) or a matrix (m, n) of constants."""

    def vector(self, entries: Sequence[Number]) -> Vector:
        """Return a vector of numbers."""

    def matrix(self, rows: Sequence[Sequence[Number]]) -> Matrix:
        """Return a matrix of numbers."""

    def mirrored(self, matrix: Matrix) -> Matrix:
        """Return a symmetric matrix (3, 3) from its upper triangle."""

    def factorised(self, matrix: Matrix) -> Any:
        """Return a mass matrix as a function that solves for right sides (N,) or (N, k)."""

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Solve linear equations whose matrix has no zero on its diagonal."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint at its position: ``turn`` about z, then ``fixed`` and ``offset`` to the ``parent``.

    Two successive rotations take fewer products than their product. ``angular`` and ``linear``:
    its screw in the frame of its link, one of them zero.
    """

    parent: int
    turn: Matrix
    fixed: Matrix
    offset: Vector
    angular: Vector
    linear: Vector
    turns: bool

    def to_parent(self, vector: Vector) -> Vector:
        """Return a vector of the link in the axes of the parent."""
        return self.fixed @ (self.turn @ vector)

    def from_parent(self, vector: Vector) -> Vector:
        """Return a vector of the parent in the axes of the link."""
        return self.turn.T @ (self.fixed.T @ vector)


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of a link: ``spin``, its ``rate``, acceleration of the ``origin``, and U."""

    spin: Vector
    rate: Vector
    origin: Vector
    bend: Matrix


@dataclass(frozen=True, eq=False)
class Body:
    """Mass, first and second moment of a link about its origin."""

    mass: Number
    first: Vector
    second: Matrix


@dataclass(frozen=True, eq=False)
class Functions:
    """Dynamics of a mechanism of N coordinates as functions of a package.

    ``inverse`` (q, qd, qdd) -> effort and ``forward`` (q, qd, effort) -> acceleration, all (N,).
    ``coordinates`` (N,) are the names of the joints, then those of separate motors; ``motors``
    (n,) are driven, the effort of the other coordinates is zero.
    """

    inverse: Any
    forward: Any
    coordinates: tuple[str, ...]
    motors: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Acceleration:
    """Accelerations (N,), and the factorised mass matrix.

    ``settled`` are ones for consistent load signs of friction, zeros for others.
    """

    values: Vector
    factors: Any
    settled: Vector | None = None


#: axis, kind and length of a state of friction; terms that agree in these share it
StateKey = tuple[int, float, float]


def friction_states(friction: AxisFriction) -> tuple[StateKey, ...]:
    """Return the states of friction with history, by axis."""
    return tuple(dict.fromkeys(map(_state_key, friction.terms[friction.terms[:, KIND] >= STOP])))


def _state_key(term: FloatArray) -> StateKey:
    return int(term[ROW]), float(term[KIND]), float(term[SCALE])


class Equations:
    """Inverse and forward dynamics of a mechanism of N coordinates, see `Coordinates`.

    Friction is that of steady sliding; if it depends on the load, forward dynamics iterates the
    sign of the load.
    """

    def __init__(self, mechanism: Mechanism, algebra: Algebra) -> None:
        self.coordinates, self._math = Coordinates.of(mechanism), algebra
        self._mechanism, self._n = mechanism, mechanism.robot.n
        self._frames = Frames.of(mechanism.robot)
        self._bodies = self._moments(mechanism.links)
        self._loads = self._moments(mechanism.friction.links) \
            if mechanism.friction.needs_load else []
        self._zero = algebra.constant(np.zeros(3))

    def inverse(
        self, q: Sequence[Number], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> Vector:
        """Return the effort (N,) of all coordinates [N m, N]."""
        friction, joints = self.coordinates.friction, self._joints(q)
        motion = self._motion(joints, qd, qdd)
        torque = self._axis_friction(friction, joints, motion, _products(friction.axes, qd))
        return self._smooth_effort(joints, motion, q, qd, qdd) + self._math.constant(
            friction.axes.T) @ torque

    def friction(
        self, q: Sequence[Number], qd: Sequence[Number], qdd: Sequence[Number],
        turning: Sequence[Number], states: Mapping[StateKey, Number] | None = None,
    ) -> Vector:
        """Return the friction (n,) of motors that move at ``turning`` (n,).

        Without its ``states`` friction is that of steady sliding.
        """
        friction = self._mechanism.friction
        law = friction.sliding if states is None else friction
        joints = self._joints(q)
        motion = self._motion(joints, qd, qdd) if law.needs_load else []
        return self._math.constant(law.axes.T) @ self._axis_friction(
            law, joints, motion, _products(law.axes, turning), states)

    def forward(
        self, q: Sequence[Number], qd: Sequence[Number], effort: Sequence[Number]
    ) -> Acceleration:
        """Return the acceleration of all coordinates [rad/s^2, m/s^2]."""
        friction, math = self.coordinates.friction, self._math
        joints, still = self._joints(q), [0.0] * len(self.coordinates.names)
        motion = self._motion(joints, qd, still)
        free, pressed = self._terms(friction, _products(friction.axes, qd))
        factors = math.factorised(self._inertia(joints))
        unloaded = factors(
            math.vector(effort) - self._smooth_effort(joints, motion, q, qd, still)
            - math.constant(friction.axes.T) @ math.vector(free))
        return self._under_load(joints, motion, pressed, Acceleration(unloaded, factors))

    def mass_matrix(self, q: Sequence[Number]) -> Matrix:
        """Return the inertia (N, N) of all coordinates."""
        return self._inertia(self._joints(q))

    def gear_torque(self, q: Sequence[Number], qd: Sequence[Number]) -> list[Number]:
        """Return the torque [N m, N] of every spring between the coordinates."""
        springs = self.coordinates.springs
        stretch, rate = _products(springs.axes, q), _products(springs.axes, qd)
        return [float(springs.stiffness[i]) * stretch[i] + float(springs.damping[i]) * rate[i]
                + float(springs.offset[i]) for i in range(len(stretch))]

    def _under_load(self, joints: list[Joint], motion: list[Motion], pressed: list[Number],
                    free: Acceleration) -> Acceleration:
        """Return the acceleration with load-dependent friction.

        The load of an axis is start - coupling |load| (of all axes): linear for given signs of the
        loads, and the solution gives the next signs.
        """
        math, friction = self._math, self.coordinates.friction
        rows = np.unique(friction.terms[friction.terms[:, LOAD] != 0.0, ROW].astype(np.int64))
        if not len(rows):
            return free
        transmission, share = friction.transmission[rows], math.vector([pressed[i] for i in rows])
        inertia = math.matrix(self._composite_inertia(joints, self._loads))
        slope = math.constant(transmission) @ inertia @ math.constant(
            np.eye(self._n, len(self.coordinates.names)))
        ways = free.factors(math.constant(friction.axes[rows].T)) @ math.diag(share)
        coupling = slope @ ways
        load = start = math.constant(transmission) @ math.vector(
            self._effort(joints, motion, self._loads)) + slope @ free.values
        for _ in range(LOAD_ROUNDS):
            signs = math.where(load < 0.0, -1.0, 1.0)
            load = math.solve(math.constant(np.eye(len(rows))) + coupling @ math.diag(signs),
                              start)
        return Acceleration(free.values - ways @ math.fabs(load), free.factors,
                            math.where(load * signs < 0.0, 0.0, 1.0))

    def _moments(self, parameters: FloatArray) -> list[Body]:
        """Return bodies with the same motion as links with ``parameters`` (n, 10)."""
        constant = self._math.constant
        return [Body(float(p[3, 3]), constant(p[:3, 3]), constant(p[:3, :3]))
                for p in self._frames.moments(parameters[:, :SPRING])]

    def _joints(self, q: Sequence[Number]) -> list[Joint]:
        """Return all joints at their positions."""
        joints, frames, math = [], self._frames, self._math
        for j, (fixed, offset, slide) in enumerate(zip(
                frames.rotations, frames.translations, frames.slides, strict=True)):
            turn, place, turns = math.constant(np.eye(3)), math.constant(offset), frames.turns(j)
            if turns:
                angle = q[j] + float(frames.offsets[j])
                turn = math.constant(ALONG) + math.constant(ACROSS) * math.cos(
                    angle) + math.constant(QUARTER) * math.sin(angle)
            else:
                place = place + math.constant(slide) * q[j]
            joints.append(Joint(
                int(frames.parents[j]), turn, math.constant(fixed), place,
                math.constant(np.array([0.0, 0.0, float(turns)])),
                math.constant(fixed.T @ slide), turns))
        return joints

    def _motion(
        self, joints: list[Joint], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> list[Motion]:
        """Return the motion of all links, each in its own frame, accelerated against gravity."""
        cross, motions = self._math.cross, list[Motion]()
        base = self._moving(self._zero, self._zero, self._math.constant(
            -np.asarray(self._mechanism.robot.gravity)))
        for j, joint in enumerate(joints):
            parent = base if joint.parent < 0 else motions[joint.parent]
            spin, rate = joint.from_parent(parent.spin), joint.from_parent(parent.rate)
            origin = joint.from_parent(parent.origin + parent.bend @ joint.offset)
            if joint.turns:
                turn = joint.angular * qd[j]
                rate = rate + joint.angular * qdd[j] + cross(spin, turn)
                spin = spin + turn
            else:
                origin = origin + joint.linear * qdd[j] + 2.0 * cross(spin, joint.linear * qd[j])
            motions.append(self._moving(spin, rate, origin))
        return motions

    def _moving(self, spin: Vector, rate: Vector, origin: Vector) -> Motion:
        (x, y, z), (dx, dy, dz) = ([v[0], v[1], v[2]] for v in (spin, rate))
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        return Motion(spin, rate, origin, self._math.matrix([
            [-(yy + zz), xy - dz, xz + dy],
            [xy + dz, -(xx + zz), yz - dx],
            [xz - dy, yz + dx, -(xx + yy)]]))

    def _wrench(self, body: Body, motion: Motion) -> tuple[Vector, Vector]:
        """Return the force and the moment about its origin that a body requires."""
        u, s = motion.bend, body.second
        axial = self._math.vector([  # of U S, each moment in one product
            s[b, b] * u[c, b] - s[c, c] * u[b, c] + s[b, c] * (u[c, c] - u[b, b])
            + s[a, b] * u[c, a] - s[a, c] * u[b, a]
            for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1))])
        return (motion.origin * body.mass + motion.bend @ body.first,
                axial + self._math.cross(body.first, motion.origin))

    def _effort(self, joints: list[Joint], motion: list[Motion], bodies: list[Body],
                drags: Sequence[tuple[int, Vector]] = ()) -> list[Number]:
        """Return the effort (n,) of links; ``drags``: additional moments on links."""
        effort: list[Number] = [0.0] * len(joints)
        wrenches = [self._wrench(*pair) for pair in zip(bodies, motion, strict=True)]
        for link, drag in drags:
            wrenches[link] = wrenches[link][0], wrenches[link][1] + drag
        for j in reversed(range(len(joints))):
            effort[j] = self._power(joints[j], *wrenches[j])
            if (parent := joints[j].parent) >= 0:
                force, moment = self._moved(joints[j], *wrenches[j])
                wrenches[parent] = wrenches[parent][0] + force, wrenches[parent][1] + moment
        return effort

    def _power(self, joint: Joint, force: Vector, moment: Vector) -> Number:
        """Return the power of a wrench along a screw of speed one."""
        if joint.turns:
            return self._math.dot(joint.angular, moment)
        return self._math.dot(joint.linear, force)

    def _moved(self, joint: Joint, force: Vector, moment: Vector) -> tuple[Vector, Vector]:
        """Return a wrench on the link of a joint in the frame, and about the origin, before it."""
        force = joint.to_parent(force)
        return force, joint.to_parent(moment) + self._math.cross(joint.offset, force)

    def _smooth_effort(self, joints: list[Joint], motion: list[Motion], q: Sequence[Number],
                       qd: Sequence[Number], qdd: Sequence[Number]) -> Vector:
        """Return the effort (N,) of links, counterbalances, rotors and gears."""
        math, rotors, springs = self._math, self.coordinates.rotors, self.coordinates.springs
        spinning = [(link, math.constant(line), turns) for link, line, turns in zip(
            rotors.carriers.tolist(), self._frames.along(rotors.axes, rotors.carriers.tolist()),
            rotors.motions, strict=True)]
        effort = self._effort(joints, motion, self._bodies, [
            (link, line * _along(turns, qdd)
             + math.cross(motion[link].spin, line) * _along(turns, qd))
            for link, line, turns in spinning])
        for i, spring in enumerate(self._mechanism.links[:, SPRING:].tolist()):
            if any(spring):
                a, b, x, y = spring
                sine, cosine = math.sin(q[i]), math.cos(q[i])
                effort[i] = effort[i] + (a * sine + b * cosine) * (
                    1.0 + x * x + y * y - 2.0 * (x * cosine - y * sine)) ** -0.5
        effort += [0.0] * (len(qd) - len(joints))
        effort = [a + b for a, b in zip(effort, _products(rotors.inertia, qdd),
                                                  strict=True)]
        for link, line, turns in spinning:
            _add(effort, turns, math.dot(line, motion[link].rate))
        for axis, torque in zip(springs.axes, self.gear_torque(q, qd), strict=True):
            _add(effort, axis, torque)
        return math.vector(effort)

    def _inertia(self, joints: list[Joint]) -> Matrix:
        """Return the mass matrix (N, N) of links and rotors."""
        rotors, math = self.coordinates.rotors, self._math
        matrix: list[list[Number]] = rotors.inertia.tolist()
        for row, links in zip(matrix, self._composite_inertia(joints, self._bodies), strict=False):
            row[:len(links)] = [a + b for a, b in zip(row, links, strict=False)]
        carriers = rotors.carriers.tolist()
        for j, line, turns in zip(carriers, self._frames.along(rotors.axes, carriers),
                                  rotors.motions, strict=True):
            axis = math.constant(line)
            while j >= 0:
                share = self._power(joints[j], self._zero, axis)
                _add(matrix[j], turns, share)
                for row, turn in zip(matrix, turns.tolist(), strict=True):
                    if turn != 0.0:
                        row[j] = row[j] + turn * share
                axis, j = joints[j].to_parent(axis), joints[j].parent
        return math.matrix(matrix)

    def _composite_inertia(self, joints: list[Joint], bodies: list[Body]) -> list[list[Number]]:
        """Return the mass matrix (n, n) of bodies, by composite bodies."""
        matrix: list[list[Number]] = [[0.0] * len(joints) for _ in joints]
        composite = list(bodies)
        for j in reversed(range(len(joints))):
            joint, body = joints[j], composite[j]
            wrench = self._wrench(body, self._moving(self._zero, joint.angular, joint.linear))
            i = j
            while i >= 0:
                matrix[i][j] = matrix[j][i] = self._power(joints[i], *wrench)
                wrench, i = self._moved(joints[i], *wrench), joints[i].parent
            if joint.parent >= 0:
                composite[joint.parent] = self._joined(composite[joint.parent], joint, body)
        return matrix

    def _joined(self, parent: Body, joint: Joint, body: Body) -> Body:
        """Combine a body with that of a joint attached to it."""
        turned = joint.to_parent(body.first)
        first = turned + joint.offset * body.mass
        second = joint.fixed @ self._math.mirrored(
            joint.turn @ body.second @ joint.turn.T) @ joint.fixed.T + self._outer(
            turned, joint.offset) + self._outer(joint.offset, first)
        return Body(parent.mass + body.mass, parent.first + first,
                    parent.second + self._math.mirrored(second))

    def _outer(self, a: Vector, b: Vector) -> Matrix:
        return a.reshape((3, 1)) @ b.reshape((1, 3))

    def _axis_friction(
        self, friction: AxisFriction, joints: list[Joint], motion: list[Motion],
        speeds: list[Number], states: Mapping[StateKey, Number] | None = None,
    ) -> Vector:
        """Return the friction (a,) of axes at their ``speeds``, under the load of a motion."""
        math, (free, pressed) = self._math, self._terms(friction, speeds, states)
        if not friction.needs_load:
            return math.vector(free)
        load = math.constant(friction.transmission) @ math.vector(
            self._effort(joints, motion, self._loads))
        return math.vector(free) + math.vector(pressed) * math.fabs(load)

    def _terms(
        self, friction: AxisFriction, speeds: list[Number],
        states: Mapping[StateKey, Number] | None = None,
    ) -> tuple[list[Number], list[Number]]:
        """Return the friction (a,) of all axes without load, and per size of the load."""
        free: list[Number] = [float(viscous) * speed + float(offset) for (viscous, offset), speed
                              in zip(friction.straight, speeds, strict=True)]
        pressed: list[Number] = [0.0] * len(free)
        for term in friction.terms:
            axis = int(term[ROW])
            value = self._term(term, speeds[axis]) if term[KIND] < STOP or states is None \
                else states[_state_key(term)] * self._share(term, speeds[axis])
            for sums, weight in ((free, term[WEIGHT]), (pressed, term[LOAD])):
                if weight != 0.0:
                    sums[axis] = sums[axis] + float(weight) * value
        return free, pressed

    def _share(self, term: FloatArray, velocity: Number) -> Number:
        """Return the remaining share of a state at a velocity."""
        fading = term.copy()
        fading[[KIND, SIDE, ABOVE]] = CONSTANT, 0.0, 0.0
        return self._term(fading, velocity)

    def _term(self, term: FloatArray, velocity: Number) -> Number:
        """Return a term of weight one, as `kernels.friction.tangent` does."""
        math, inside, beyond = self._math, velocity, 0.0
        for end, bound in ((float(term[LOWEST]), math.fmax), (float(term[HIGHEST]), math.fmin)):
            if np.isfinite(end):  # linear beyond it
                inside = bound(inside, end)
                beyond = beyond + _slope(term, end) * (velocity - bound(velocity, end))
        value = self._shape(term, inside)
        if term[FADE] != 0.0:
            value = value * (1.0 - math.tanh(math.fabs(inside) / float(term[FADE])))
        value = value + beyond
        if term[SIDE] != 0.0:
            value = math.where(velocity * float(term[SIDE]) < 0.0, 0.0, value)
        if term[ABOVE] != 0.0:
            value = math.where(math.fabs(inside) < float(term[ABOVE]), 0.0, value)
        return value

    def _shape(self, term: FloatArray, velocity: Number) -> Number:
        """Return the shape of a term."""
        math, kind, scale = self._math, term[KIND], float(term[SCALE])
        if kind == CONSTANT:
            return 1.0
        if kind == POWER:
            return velocity * (math.fabs(velocity)**(scale - 1.0) if scale != 1.0 else 1.0)
        if kind == RAMP:
            return math.fmin(math.fmax(velocity / scale, -1.0), 1.0)
        return math.tanh(velocity / scale)


def _slope(term: FloatArray, velocity: float) -> float:
    """Return the slope of a term of weight one at a velocity."""
    row, (value, slope) = term.copy(), np.zeros((2, 1, 1))
    row[[ROW, WEIGHT, SIDE, ABOVE]] = 0.0, 1.0, 0.0, 0.0
    fill_sliding(row[None], np.array([[velocity]]), value, slope)
    return float(slope[0, 0])


def _along(shares: FloatArray, motion: Sequence[Number]) -> Number:
    """Return ``shares`` (m,) @ ``motion``, without zero terms."""
    total: Number = 0.0
    for share, part in zip(shares.tolist(), motion, strict=True):
        if share != 0.0:
            total = total + (part if share == 1.0 else share * part)
    return total


def _products(rows: FloatArray, motion: Sequence[Number]) -> list[Number]:
    """Return ``rows`` (k, m) @ ``motion``."""
    return [_along(row, motion) for row in rows]


def _add(effort: list[Number], shares: FloatArray, torque: Number) -> None:
    """Add a torque to the coordinates it acts on."""
    for j, share in enumerate(shares.tolist()):
        if share != 0.0:
            effort[j] = effort[j] + share * torque
