"""Recursions of a tree of rigid bodies as expressions: effort, mass matrix, rotors, solution.

Everything is in the frames of the links (`c_frames`), velocities and forces about their origins.
With U = [wd]x + [w]x[w]x the acceleration of a point r of a link is a + U r, so mass m, first
moment h and second moment S of a link take the force m a + U h, and about the origin the moment
h x a + the axial vector of U S.
Sources: Luh, Walker, Paul 1980; Khalil, Kleinfinger 1987; Featherstone 2008, sections 6.2, 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.export.c.expressions import Node
from robot_dynid.export.c.frames import Frames
from robot_dynid.kernels.newton_euler import SPRING
from robot_dynid.types import FloatArray

Vector = list[Node]
Matrix = list[list[Node]]


def cross(a: Sequence[Node], b: Sequence[Node]) -> Vector:
    """Return a x b."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    """Return the sum of products."""
    found = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        found = found + x * y
    return found


def plus(a: Sequence[Node], b: Sequence[Node]) -> Vector:
    """Return a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def times(matrix: Sequence[Sequence[Node]], vector: Sequence[Node]) -> Vector:
    """Return a product of matrix and vector."""
    return [dot(row, vector) for row in matrix]


def transposed(matrix: Sequence[Sequence[Node]]) -> Matrix:
    """Return a matrix mirrored."""
    return [list(column) for column in zip(*matrix, strict=True)]


@dataclass(frozen=True, eq=False)
class Motion:
    """Angular velocity w, its rate wd, acceleration a of the origin, and U of one link."""

    w: Vector
    wd: Vector
    a: Vector
    u: Matrix


@dataclass(frozen=True, eq=False)
class Body:
    """Mass, first moment (3) and second moment (3 x 3) of a link; torque of its spring."""

    mass: Node
    first: Vector
    second: Matrix
    spring: Node | None = None


class Tree:
    """The links of a robot in a position, as expressions of a graph.

    ``position`` are the n nodes of the joints; ``gravity`` (3,) m/s^2 in the base frame.
    """

    def __init__(self, frames: Frames, gravity: FloatArray, position: Sequence[Node]) -> None:
        self.frames, self.graph = frames, position[0].graph
        self.count = len(position)
        self._position, self._gravity = position, gravity

    def constants(self, values: FloatArray) -> Vector:
        """Return numbers (k,) as nodes."""
        return [self.graph.node(float(v)) for v in values]

    @cached_property
    def _trigonometry(self) -> list[tuple[Node, Node]]:
        """Cosine and sine of each joint; one and zero where it slides."""
        found = []
        for j, q in enumerate(self._position):
            angle = q + float(self.frames.offsets[j])
            found.append((self.graph.call('cos', angle), self.graph.call('sin', angle))
                         if self.frames.turns(j) else (self.graph.node(1), self.graph.node(0)))
        return found

    @cached_property
    def _fixed(self) -> list[Matrix]:
        return [[self.constants(row) for row in matrix] for matrix in self.frames.rotations]

    @cached_property
    def places(self) -> list[Vector]:
        """Origin of each link in the frame of its parent."""
        return [plus(self.constants(self.frames.translations[j]),
                     [self._position[j] * float(s) for s in self.frames.slides[j]])
                for j in range(self.count)]

    def to_link(self, j: int, vector: Sequence[Node]) -> Vector:
        """Turn a vector from the frame of the parent of link j into that of the link."""
        c, s = self._trigonometry[j]
        x, y, z = times(transposed(self._fixed[j]), vector)
        return [c * x + s * y, c * y - s * x, z]

    def to_parent(self, j: int, vector: Sequence[Node]) -> Vector:
        """Turn a vector from the frame of link j into that of its parent."""
        c, s = self._trigonometry[j]
        x, y, z = vector
        return times(self._fixed[j], [c * x - s * y, s * x + c * y, z])

    def axis(self, j: int) -> tuple[Vector, Vector]:
        """Return the screw of a joint in the frame of its link: rotation, translation."""
        none = self.constants(np.zeros(3))
        if self.frames.turns(j):
            return self.constants(np.array([0.0, 0.0, 1.0])), none
        return none, self.to_link(j, self.constants(self.frames.slides[j]))

    def bodies(self, parameters: FloatArray) -> list[Body]:
        """Return the links with standard parameters (n, 10) in the robot's frames."""
        return [Body(self.graph.node(float(p[3, 3])), self.constants(p[:3, 3]),
                     [self.constants(row) for row in p[:3, :3]], self._spring(j, own[SPRING:]))
                for j, (p, own) in enumerate(zip(
                    self.frames.moments(parameters), parameters, strict=True))]

    def _spring(self, j: int, spring: FloatArray) -> Node | None:
        """Return the torque of a ``spring`` (4,) at a joint; (0,) where there is none."""
        if not spring.any():
            return None
        a, b, x, y = spring.tolist()
        sine, cosine = (self.graph.call(name, self._position[j]) for name in ('sin', 'cos'))
        length: Node = self.graph.call('sqrt', 1.0 + x * x + y * y - 2.0 * (x * cosine - y * sine))
        torque: Node = (a * sine + b * cosine) / length
        return torque

    def motions(self, velocity: Sequence[Node], acceleration: Sequence[Node]) -> list[Motion]:
        """Return the motion of all links, the base accelerated against gravity."""
        none = self.constants(np.zeros(3))
        base = Motion(none, none, self.constants(-self._gravity), [none, none, none])
        found: list[Motion] = []
        for j, parent in enumerate(self.frames.parents):
            before = base if parent < 0 else found[parent]
            found.append(self._moved(j, before, velocity[j], acceleration[j]))
        return found

    def _moved(self, j: int, before: Motion, rate: Node, change: Node) -> Motion:
        """Return the motion of link j beyond that of its parent."""
        w, wd = self.to_link(j, before.w), self.to_link(j, before.wd)
        a = plus(before.a, times(before.u, self.places[j]))
        if self.frames.turns(j):
            wd = plus(wd, [w[1] * rate, -(w[0] * rate), change])
            w = [w[0], w[1], w[2] + rate]
            a = self.to_link(j, a)
        else:
            way = self.axis(j)[1]
            twice = [2.0 * x for x in cross(w, [rate * x for x in way])]
            a = plus(plus(self.to_link(j, a), twice), [change * x for x in way])
        return Motion(w, wd, a, self._u(w, wd))

    @staticmethod
    def _u(w: Vector, wd: Vector) -> Matrix:
        (x, y, z), (dx, dy, dz) = w, wd
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        return [[-(yy + zz), xy - dz, xz + dy],
                [xy + dz, -(xx + zz), yz - dx],
                [xz - dy, yz + dx, -(xx + yy)]]

    @staticmethod
    def wrench(body: Body, motion: Motion) -> tuple[Vector, Vector]:
        """Return force and moment that a body takes."""
        u, s, w = motion.u, body.second, motion.w
        force = plus([body.mass * x for x in motion.a], times(u, body.first))
        xx, yy, zz = (x * x for x in w)
        moment = [
            u[2][0] * s[0][1] - u[1][0] * s[0][2] + u[2][1] * s[1][1] - u[1][2] * s[2][2]
            + (zz - yy) * s[1][2],
            u[0][1] * s[1][2] - u[2][1] * s[0][1] + u[0][2] * s[2][2] - u[2][0] * s[0][0]
            + (xx - zz) * s[0][2],
            u[1][0] * s[0][0] - u[0][1] * s[1][1] + u[1][2] * s[0][2] - u[0][2] * s[1][2]
            + (yy - xx) * s[0][1]]
        return force, plus(moment, cross(body.first, motion.a))

    def moved_wrench(self, j: int, force: Vector, moment: Vector) -> tuple[Vector, Vector]:
        """Return a wrench on link j in the frame of its parent, about the origin there."""
        turned = self.to_parent(j, force)
        return turned, plus(self.to_parent(j, moment), cross(self.places[j], turned))

    def effort(self, bodies: Sequence[Body], motions: Sequence[Motion],
               drags: Sequence[tuple[int, Vector]] = ()) -> Vector:
        """Return the effort of all joints; ``drags`` are moments more that links take."""
        wrenches = [self.wrench(b, m) for b, m in zip(bodies, motions, strict=True)]
        for link, moment in drags:
            force, own = wrenches[link]
            wrenches[link] = force, plus(own, moment)
        efforts: Vector = []
        for j in reversed(range(self.count)):
            rotation, way = self.axis(j)
            force, moment = wrenches[j]
            effort, spring = dot(rotation, moment) + dot(way, force), bodies[j].spring
            efforts.insert(0, effort if spring is None else effort + spring)
            parent = self.frames.parents[j]
            if parent >= 0:
                moved = self.moved_wrench(j, force, moment)
                wrenches[parent] = (plus(wrenches[parent][0], moved[0]),
                                    plus(wrenches[parent][1], moved[1]))
        return efforts

    def mass_matrix(self, bodies: Sequence[Body]) -> Matrix:
        """Return the inertia (n x n) of the joints, by composite bodies."""
        found = [self.constants(np.zeros(self.count)) for _ in range(self.count)]
        composite = list(bodies)
        none = self.constants(np.zeros(3))
        for j in reversed(range(self.count)):
            rotation, way = self.axis(j)
            force, moment = self.wrench(composite[j],
                                        Motion(none, rotation, way, self._u(none, rotation)))
            i = j
            while i >= 0:
                rotation, way = self.axis(i)
                found[i][j] = found[j][i] = dot(rotation, moment) + dot(way, force)
                force, moment = self.moved_wrench(i, force, moment)
                i = self.frames.parents[i]
            parent = self.frames.parents[j]
            if parent >= 0:
                composite[parent] = _joined(composite[parent], self._moved_body(j, composite[j]))
        return found

    def _moved_body(self, j: int, body: Body) -> Body:
        """Return a body of link j in the frame of its parent."""
        c, s = self._trigonometry[j]
        ((xx, xy, xz), (_, yy, yz), (_, _, zz)) = body.second
        turned = s * (xx - yy) + 2.0 * (c * xy)
        xz, yz = c * xz - s * yz, s * xz + c * yz
        mixed = c * turned - xy
        second = [[xx - s * turned, mixed, xz], [mixed, yy + s * turned, yz], [xz, yz, zz]]
        fixed, p = self._fixed[j], self.places[j]
        half = [times(fixed, column) for column in transposed(second)]  # columns of R S
        rows = [times(fixed, row) for row in transposed(half)]
        first = self.to_parent(j, body.first)
        moved = plus(first, [body.mass * x for x in p])
        full = [[rows[min(a, b)][max(a, b)] + (first[a] * p[b] + p[a] * moved[b])
                 for b in range(3)] for a in range(3)]
        for a in range(3):
            for b in range(a):
                full[a][b] = full[b][a]
        return Body(body.mass, moved, full)


def _joined(a: Body, b: Body) -> Body:
    return Body(a.mass + b.mass, plus(a.first, b.first),
                [plus(x, y) for x, y in zip(a.second, b.second, strict=True)])


class SpinningParts:
    """Rotors of a robot as expressions, on N coordinates; see `dynamics.rotors`."""

    def __init__(self, tree: Tree, rotors: Rotors) -> None:
        self._tree, self._rotors = tree, rotors
        carriers = [int(c) for c in rotors.carriers]
        lines = tree.frames.along(rotors.axes, carriers)
        self._parts = [(link, tree.constants(line), tree.constants(motion))
                       for link, line, motion in zip(carriers, lines, rotors.motions,
                                                     strict=True)]

    def drags(self, motions: Sequence[Motion], velocity: Sequence[Node],
              acceleration: Sequence[Node]) -> list[tuple[int, Vector]]:
        """Return link and moment that each rotor on a moving link takes from it."""
        found = []
        for link, line, motion in self._parts:
            spin, rate = dot(motion, velocity), dot(motion, acceleration)
            turned = cross(motions[link].w, line)
            found.append((link, [rate * x + spin * y for x, y in zip(line, turned, strict=True)]))
        return found

    def efforts(self, motions: Sequence[Motion], acceleration: Sequence[Node]) -> Vector:
        """Return the effort of the coordinates, without what the links take."""
        found = times([self._tree.constants(row) for row in self._rotors.inertia], acceleration)
        for link, line, motion in self._parts:
            back = dot(line, motions[link].wd)
            found = plus(found, [share * back for share in motion])
        return found

    def mass_matrix(self, links: Matrix) -> Matrix:
        """Return the inertia (N x N) of ``links`` (n x n) and rotors."""
        found = [self._tree.constants(row) for row in self._rotors.inertia]
        for i, row in enumerate(links):
            for j, entry in enumerate(row):
                found[i][j] = found[i][j] + entry
        for link, line, motion in self._parts:
            i, moment = link, line
            while i >= 0:
                share = dot(self._tree.axis(i)[0], moment)
                for j, turns in enumerate(motion):
                    found[i][j] = found[i][j] + turns * share
                    found[j][i] = found[j][i] + turns * share
                moment = self._tree.to_parent(i, moment)
                i = self._tree.frames.parents[i]
        return found


class Factors:
    """Factors L^T D L of a symmetric matrix; zeros between branches of a tree stay zeros."""

    def __init__(self, matrix: Matrix) -> None:
        work = [list(row) for row in matrix]
        self.pivots: Vector = [work[k][k] for k in range(len(work))]
        for k in reversed(range(len(work))):
            self.pivots[k] = work[k][k]
            for i in range(k):
                share = work[k][i] / work[k][k]
                for j in range(i + 1):
                    work[i][j] = work[i][j] - share * work[k][j]
                # rows before are read first: row k holds L from here on
                work[i][k] = share
            for i in range(k):
                work[k][i] = work[i][k]
        self._lower = work

    def solved(self, right: Sequence[Node]) -> Vector:
        """Return the solution for one right side."""
        found = list(right)
        count = len(found)
        for k in reversed(range(count)):
            for i in range(k):
                found[i] = found[i] - self._lower[k][i] * found[k]
        for k in range(count):
            found[k] = found[k] / self.pivots[k]
            for i in range(k):
                found[k] = found[k] - self._lower[k][i] * found[i]
        return found
