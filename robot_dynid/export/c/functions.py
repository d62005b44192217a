"""Functions of the C code of a mechanism: arguments, comment and statements of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from robot_dynid.dynamics.elastic import all_rotors
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError
from robot_dynid.export.c.expressions import Assignment, Graph, Node, Statement
from robot_dynid.export.c.frames import Frames
from robot_dynid.export.c.friction import (
    AxisTorque,
    begun,
    loaded_axes,
    moved,
    sliding,
    states_of,
    stepped,
)
from robot_dynid.export.c.recursions import (
    Body,
    Factors,
    Matrix,
    Motion,
    SpinningParts,
    Tree,
    Vector,
    dot,
    plus,
    times,
)
from robot_dynid.friction import AxisFriction

STATE = 'state'
#: arguments that functions read, each with an element per joint
READ = ('position', 'velocity', 'acceleration', 'effort', 'motor_position', 'motor_velocity')


@dataclass(frozen=True)
class Function:
    """A function of the C code.

    ``reads`` are arguments of READ, ``writes`` the arrays it fills with their numbers of
    dimensions; ``state``: it changes that of friction. With ``status`` it returns zero, or one
    where there is no result.
    """

    name: str
    about: str
    reads: tuple[str, ...]
    writes: tuple[tuple[str, int], ...]
    statements: tuple[Statement, ...]
    state: bool = False
    status: bool = False


class Scene:
    """The expressions of one function: symbols of its arguments, and links in their position."""

    def __init__(self, mechanism: Mechanism, frames: Frames) -> None:
        self.graph, self.mechanism = Graph(), mechanism
        count = mechanism.robot.n
        (self.q, self.qd, self.qdd, self.effort, self.theta, self.theta_d) = (
            self.graph.symbols(name, count) for name in READ)
        self.still = [self.graph.node(0)] * count
        self.tree = Tree(frames, mechanism.robot.gravity, self.q)
        self.loads = loaded_axes(mechanism.friction)

    @cached_property
    def bodies(self) -> list[Body]:
        """The links."""
        return self.tree.bodies(self.mechanism.links)

    @cached_property
    def pressing(self) -> list[Body]:
        """The links that load the axes."""
        return self.tree.bodies(self.mechanism.friction.links)

    def inverse(self, qd: Vector, qdd: Vector) -> Vector:
        """Return the effort of links and rotors, all of which move with their joints."""
        parts = SpinningParts(self.tree, self.mechanism.rotors)
        motions = self.tree.motions(qd, qdd)
        links = self.tree.effort(self.bodies, motions, parts.drags(motions, qd, qdd))
        return plus(links, parts.efforts(motions, qdd))

    def loaded(self, motions: Sequence[Motion]) -> dict[int, Node]:
        """Return the load of each axis whose friction grows with it."""
        if not self.loads:
            return {}
        effort = self.tree.effort(self.pressing, motions)
        return {i: dot(self.tree.constants(self.mechanism.friction.transmission[i]), effort)
                for i in self.loads}

    def along(self, motion: Sequence[Node]) -> Vector:
        """Return the motion of all axes."""
        return times([self.tree.constants(row) for row in self.mechanism.friction.axes], motion)

    def friction(self, axes: Sequence[AxisTorque], qd: Vector, qdd: Vector) -> Vector:
        """Return the friction of the joints, at the load of a motion of the links."""
        load = self.loaded(self.tree.motions(qd, qdd)) if self.loads else {}
        torques = []
        for i, axis in enumerate(axes):
            torque = axis.plain
            if i in load:
                torque = torque + axis.loaded * self.graph.call('fabs', load[i])
            torques.append(torque)
        rows = [self.tree.constants(row) for row in self.mechanism.friction.axes.T]
        return times(rows, torques)


def stored(array: str, values: Sequence[Node]) -> list[Statement]:
    """Return the assignments of the elements of an array."""
    return [Assignment(f'{array}[{i}]', value) for i, value in enumerate(values)]


def stored_matrix(array: str, rows: Matrix) -> list[Statement]:
    """Return the assignments of the elements of an array of two dimensions."""
    return [Assignment(f'{array}[{i}][{j}]', value)
            for i, row in enumerate(rows) for j, value in enumerate(row)]


class Functions:
    """All functions of a mechanism; raises ModelError for gears that cannot be."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        if mechanism.gears is not None:
            mechanism.gears.require_possible(mechanism.robot.joints)
        self._frames = Frames.of(mechanism.robot)
        self.states = states_of(mechanism.friction)
        self.loaded = loaded_axes(mechanism.friction)

    @property
    def turned(self) -> tuple[int, ...]:
        """The axes whose friction has a past."""
        return tuple(sorted({state.axis for state in self.states}))

    def all(self) -> tuple[Function, ...]:
        """Return the functions in the order in which the header explains them."""
        made: list[Callable[[], Function]] = [
            self.inverse_dynamics, self.gravity, self.mass_matrix, self.forward_dynamics,
            self.friction_sliding, self.friction_begin, self.friction_step,
            self.inverse_dynamics_with_friction, self.forward_dynamics_with_friction]
        if self.mechanism.gears is not None:
            made += [self.gear_torque, self.forward_dynamics_elastic]
        return tuple(make() for make in made)

    def _scene(self) -> Scene:
        return Scene(self.mechanism, self._frames)

    @property
    def _motors(self) -> tuple[str, ...]:
        """Further arguments of friction where motors move apart from their joints."""
        return () if self.mechanism.gears is None else ('motor_velocity',)

    def inverse_dynamics(self) -> Function:
        """Return the effort of a motion without friction."""
        scene = self._scene()
        return Function('inverse_dynamics', 'Effort of links and rotors in a motion; friction is '
                        'not part of it.', READ[:3], (('effort', 1),),
                        tuple(stored('effort', scene.inverse(scene.qd, scene.qdd))))

    def gravity(self) -> Function:
        """Return the effort of the weight."""
        scene = self._scene()
        effort = scene.tree.effort(scene.bodies, scene.tree.motions(scene.still, scene.still))
        return Function('gravity', 'Effort that holds the arm at rest: its weight.', READ[:1],
                        (('effort', 1),), tuple(stored('effort', effort)))

    def mass_matrix(self) -> Function:
        """Return the joint-space inertia."""
        scene = self._scene()
        matrix = SpinningParts(scene.tree, self.mechanism.rotors).mass_matrix(
            scene.tree.mass_matrix(scene.bodies))
        return Function('mass_matrix', 'Joint-space inertia, rotors included.', READ[:1],
                        (('matrix', 2),), tuple(stored_matrix('matrix', matrix)))

    def friction_sliding(self) -> Function:
        """Return the friction of states without a past."""
        scene = self._scene()
        turning = scene.theta_d if self._motors else scene.qd
        axes = sliding(self.mechanism.friction, scene.along(turning))
        torque = scene.friction(axes, scene.qd, scene.qdd)
        return Function(
            'friction_sliding', 'Friction of a motion by itself, in steady sliding. The '
            'acceleration matters where friction grows with load.',
            (*READ[:3], *self._motors), (('friction', 1),), tuple(stored('friction', torque)))

    def _turning(self, scene: Scene) -> tuple[Vector, Vector]:
        """Return position and velocity of the axes."""
        if self._motors:
            return scene.along(scene.theta), scene.along(scene.theta_d)
        return scene.along(scene.q), scene.along(scene.qd)

    def friction_begin(self) -> Function:
        """Return the start of friction with a past."""
        scene = self._scene()
        position, velocity = self._turning(scene)
        begins = [begun(velocity[state.axis]) for state in self.states]
        statements = [*stored(f'{STATE}->state', begins),
                      *stored(f'{STATE}->position', [position[i] for i in self.turned])]
        reads = READ[4:6] if self._motors else READ[:2]
        return Function(
            'friction_begin', 'Begin a motion: states of friction are relaxed at rest, and as '
            'they slide in motion. To be called before friction_step, and after every gap.',
            reads, (), tuple(statements), state=True, status=True)

    def friction_step(self) -> Function:
        """Return the friction of the next sample of a motion."""
        scene = self._scene()
        position, velocity = self._turning(scene)
        before = scene.graph.symbols(f'{STATE}->state', len(self.states))
        places = scene.graph.symbols(f'{STATE}->position', len(self.turned))
        past = dict(zip(self.turned, places, strict=True))
        after = [moved(state, z, position[state.axis] - past[state.axis])
                 for state, z in zip(self.states, before, strict=True)]
        axes = stepped(self.mechanism.friction, velocity,
                       list(zip(self.states, after, strict=True)))
        torque = scene.friction(axes, scene.qd, scene.qdd)
        statements = [*stored('friction', torque), *stored(f'{STATE}->state', after),
                      *stored(f'{STATE}->position', [position[i] for i in self.turned])]
        reads = (*READ[:3], *(READ[4:6] if self._motors else ()))
        return Function(
            'friction_step', 'Friction of the next sample of a motion: presliding states follow '
            'the travel since the sample before, whatever time has passed.',
            reads, (('friction', 1),), tuple(statements), state=True, status=True)

    def inverse_dynamics_with_friction(self) -> Function:
        """Return the effort of a motion, friction of steady sliding included."""
        scene = self._scene()
        axes = sliding(self.mechanism.friction, scene.along(scene.qd))
        effort = plus(scene.inverse(scene.qd, scene.qdd),
                      scene.friction(axes, scene.qd, scene.qdd))
        return Function(
            'inverse_dynamics_with_friction', 'Effort of links, rotors and friction in steady '
            'sliding; motors move with their joints.', READ[:3], (('effort', 1),),
            tuple(stored('effort', effort)))

    def forward_dynamics(self) -> Function:
        """Return the acceleration under an effort, without friction."""
        equations = Equations(self._scene())
        return Function(
            'forward_dynamics', 'Acceleration of links and rotors under an effort from which '
            'friction has been taken.', (*READ[:2], 'effort'), (('acceleration', 1),),
            tuple(equations.solution([('acceleration', range(self.mechanism.robot.n))])),
            status=True)

    def forward_dynamics_with_friction(self) -> Function:
        """Return the acceleration under an effort, with friction of steady sliding."""
        equations = Equations(self._scene())
        return Function(
            'forward_dynamics_with_friction', 'Acceleration under an effort, with friction in '
            'steady sliding, under its own load; motors move with their joints.',
            (*READ[:2], 'effort'), (('acceleration', 1),),
            tuple(equations.solution_with_friction(
                [('acceleration', range(self.mechanism.robot.n))])), status=True)

    def gear_torque(self) -> Function:
        """Return the torque that gears transmit."""
        scene, gears = self._scene(), self.mechanism.gears
        assert gears is not None
        torque = list(scene.still)
        for joint, own in zip(gears.joints, _transmitted(scene, gears), strict=True):
            torque[joint] = own
        return Function('gear_torque', 'Torque that elastic gears transmit to their links; zero '
                        'where a joint is rigid.', (*READ[:2], *READ[4:6]), (('torque', 1),),
                        tuple(stored('torque', torque)))

    def forward_dynamics_elastic(self) -> Function:
        """Return the accelerations of links and motors, with friction of steady sliding."""
        gears, n = self.mechanism.gears, self.mechanism.robot.n
        assert gears is not None
        equations = Equations(self._scene(), gears)
        return Function(
            'forward_dynamics_elastic', 'Accelerations of links and motors under an effort of '
            'the drives, with the friction of the motors in steady sliding. A motor of a rigid '
            'joint does what the joint does.', (*READ[:2], *READ[3:6]),
            (('acceleration', 1), ('motor_acceleration', 1)),
            tuple(equations.solution_with_friction(
                [('acceleration', range(n)), ('motor_acceleration', gears.motors(n))])),
            status=True)


def _transmitted(scene: Scene, gears: Gears) -> Vector:
    """Return the torque of each elastic gear."""
    return [(scene.theta[j] - scene.q[j]) * float(k) + (scene.theta_d[j] - scene.qd[j]) * float(d)
            + float(s) for j, k, d, s in zip(gears.joints, gears.stiffness, gears.damping,
                                             gears.offset, strict=True)]


class Equations:
    """Equations of motion of a scene; with ``gears`` motors move apart from elastic joints.

    The coordinates are those of the joints, then those of the motors of elastic joints.
    """

    def __init__(self, scene: Scene, gears: Gears | None = None) -> None:
        self._scene, self._count = scene, scene.mechanism.robot.n
        self._friction: AxisFriction = scene.mechanism.friction
        rotors: Rotors = scene.mechanism.rotors
        self._velocity, effort = list(scene.qd), list(scene.effort)
        if gears is not None:
            rotors = all_rotors(rotors, gears)
            self._friction = self._friction.on(gears.motors(self._count), len(rotors.inertia))
            for joint, own in zip(gears.joints, _transmitted(scene, gears), strict=True):
                effort.append(effort[joint] - own)
                effort[joint] = own
                self._velocity.append(scene.theta_d[joint])
        parts, still = SpinningParts(scene.tree, rotors), [scene.graph.node(0)] * len(effort)
        self._motions = scene.tree.motions(scene.qd, scene.still)
        drags = parts.drags(self._motions, self._velocity, still)
        bias = parts.efforts(self._motions, still)
        bias[:self._count] = plus(bias[:self._count],
                                  scene.tree.effort(scene.bodies, self._motions, drags))
        self._right = [own - b for own, b in zip(effort, bias, strict=True)]
        self._factors = Factors(parts.mass_matrix(scene.tree.mass_matrix(scene.bodies)))

    def solution(self, places: Sequence[tuple[str, Sequence[int]]]) -> list[Statement]:
        """Return the statements that store accelerations of coordinates in ``places``."""
        return self._stored(self._factors.solved(self._right), places)

    def solution_with_friction(
        self, places: Sequence[tuple[str, Sequence[int]]]
    ) -> list[Statement]:
        """Return the statements of `solution` with friction in steady sliding.

        The load of an axis is start - coupling |load| (of all axes): linear where signs are known.
        """
        scene, own = self._scene, self._friction
        rows = [scene.tree.constants(row) for row in own.axes]
        axes = sliding(own, times(rows, self._velocity))
        plain = times([list(column) for column in zip(*rows, strict=True)],
                      [axis.plain for axis in axes])
        found = self._factors.solved([a - b for a, b in zip(self._right, plain, strict=True)])
        if not scene.loads:
            return self._stored(found, places)
        ways = [[axes[i].loaded * x for x in self._factors.solved(rows[i])] for i in scene.loads]
        pressed = scene.tree.mass_matrix(scene.pressing)
        bias = scene.loaded(self._motions)
        transmission = [times(pressed, scene.tree.constants(own.transmission[i]))
                        for i in scene.loads]
        start = [bias[i] + dot(row, found[:self._count])
                 for i, row in zip(scene.loads, transmission, strict=True)]
        coupling = [[dot(row, way[:self._count]) for way in ways] for row in transmission]
        statements: list[Statement] = [
            'double start[LOADS], coupling[LOADS][LOADS], load[LOADS];',
            *stored('start', start), *stored_matrix('coupling', coupling),
            'const int settled = settle_loads(start, coupling, load);']
        for k, way in enumerate(ways):
            size = scene.graph.call('fabs', scene.graph.symbol(f'load[{k}]'))
            found = [a - size * x for a, x in zip(found, way, strict=True)]
        return statements + self._stored(found, places, 'settled && ')

    def _stored(self, found: Vector, places: Sequence[tuple[str, Sequence[int]]],
                condition: str = '') -> list[Statement]:
        """Return the statements that store a solution, and check it."""
        pivots = [p for p in self._factors.pivots if not p.is_number]
        if any(p.is_number and not p.value > 0.0 for p in self._factors.pivots):
            raise ModelError('the mass matrix of the model is nowhere positive definite: identify '
                             'with --method feasible')
        statements: list[Statement] = []
        if pivots:
            statements += [f'double pivots[{len(pivots)}];', *stored('pivots', pivots)]
            condition += f'all_above_zero(pivots, {len(pivots)}) && '
        for array, chosen in places:
            statements += stored(array, [found[i] for i in chosen])
        good = ' && '.join(f'all_finite({array}, JOINTS)' for array, _ in places)
        undone = ' '.join(f'fill({array}, NAN);' for array, _ in places)
        return [*statements, f'if ({condition}{good}) {{', '    return 0;', '}', undone,
                'return 1;']
