"""C code of a mechanism: one header and one source that need only the C library.

CasADi generates straight-line code for the one robot, without loops over joints and without zero
terms; C functions with names and checks call it. They allocate nothing, and have no state other
than the caller's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.wrist import SIX, WristCompensation
from robot_dynid.errors import ModelError, printable
from robot_dynid.export.equations import (
    Acceleration,
    Equations,
    Number,
    StateKey,
    friction_states,
)
from robot_dynid.export.functions import SparseAlgebra, required_casadi
from robot_dynid.files import atomic_write, check_target, make_folder
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels.friction import DAHL, LOAD, SCALE, SLIDING, WEIGHT
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: first line of both files; other files are not overwritten
MARK = b'/* dynamics identified by robot_dynid'
UNITS = {'position': 'rad, m', 'velocity': 'rad/s, m/s', 'acceleration': 'rad/s^2, m/s^2',
         'effort': 'N m, N', 'temperature': 'deg C'}
#: largest line length of C
LINE_WIDTH = 96
#: arguments of functions, each with an element per joint
ARGUMENTS = ('position', 'velocity', 'acceleration', 'effort', 'motor_position', 'motor_velocity')
#: arguments of the function of a wrist sensor, each with an element per component
READING, COMPENSATED = 'reading', 'wrench'
Q, QD, QDD, EFFORT, THETA, THETA_D = ARGUMENTS
#: helper functions of the code, written only if called; smaller and larger return NaN if ``x`` is
#: NaN
HELPERS = {
    'smaller': 'static double smaller(double x, double y) { return y < x ? y : x; }',
    'larger': 'static double larger(double x, double y) { return y > x ? y : x; }',
    'square': 'static double square(double x) { return x * x; }',
    'sign_of': 'static double sign_of(double x) { return x < 0.0 ? -1.0 : x > 0.0 ? 1.0 : x; }',
    'all_finite': """static int all_finite(const double *values, int count)
{
    for (int i = 0; i < count; ++i) {
        if (!(fabs(values[i]) <= DBL_MAX)) {
            return 0;
        }
    }
    return 1;
}""",
    'all_above_zero': """static int all_above_zero(const double *values, int count)
{
    for (int i = 0; i < count; ++i) {
        if (!(values[i] > 0.0)) {
            return 0;
        }
    }
    return 1;
}""",
    'fill': """static void fill(double *values, double value)
{
    for (int i = 0; i < JOINTS; ++i) {
        values[i] = value;
    }
}""",
}
#: the same by CasADi's names
CASADI_HELPERS = {'fmin': 'smaller', 'fmax': 'larger', 'sq': 'square', 'sign': 'sign_of',
                  'fabs': 'fabs'}


@dataclass(frozen=True, eq=False)
class Provenance:
    """Description of a model for the header of its C code.

    ``digest`` of the model, ``origin`` its method and status; ``trained`` the ranges (n, 2) of the
    joints by name, if known; ``cautions`` sentences that a user must read. The joints ``refused``,
    by number, have no efforts, and with one of them there are no accelerations.
    """

    digest: str = ''
    origin: str = ''
    trained: Mapping[str, FloatArray] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class CCode:
    """The texts of NAME.h and NAME.c; ``warnings`` are the cautions that the header repeats."""

    name: str
    header: str
    source: str
    digest: str = ''
    warnings: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the names of the files, the digest of the model in them, and the compiler.

        Raises ModelError if the compiler refuses them.
        """
        return {'names': [f'{self.name}.h', f'{self.name}.c'], 'digest': self.digest,
                'tool': self._compiler}

    @cached_property
    def _compiler(self) -> str:
        """Path of the C compiler that compiled the code."""
        compiler = shutil.which('cc') or shutil.which('gcc')
        if compiler is None:
            return 'not compiled: there is no C compiler, cc or gcc'
        with TemporaryDirectory() as folder:
            _, source = self._written(Path(folder))
            done = subprocess.run([compiler, '-std=c99', '-fsyntax-only', str(source)],
                                  capture_output=True, text=True, check=False)
        if done.returncode:
            raise ModelError(f'{compiler} refuses the C code: {" ".join(done.stderr.split())}')
        return compiler

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write both files into ``folder``, created if missing; return their paths.

        Raises ModelError as `facts`, UsageError if a path holds another file, DynIdError if they
        cannot be written.
        """
        self.facts()
        make_folder(folder)
        return self._written(Path(folder))

    def _written(self, folder: Path) -> tuple[Path, Path]:
        paths = folder / f'{self.name}.h', folder / f'{self.name}.c'
        for path in paths:
            check_target(path, MARK)
        for path, text in zip(paths, (self.header, self.source), strict=True):
            atomic_write(path, text, MARK)
        return paths


def c_code(
    mechanism: Mechanism, provenance: Provenance | None = None,
    wrist: WristCompensation | None = None,
) -> CCode:
    """Return the C code of a mechanism; names begin with that of the robot.

    With a ``wrist`` sensor it contains the compensation of its readings.

    Raises ModelError for numbers that are not finite, and for unphysical gears, MissingDependency
    without CasADi.
    """
    if mechanism.gears is not None:
        mechanism.gears.require_possible(mechanism.robot.joints)
    friction = mechanism.friction
    for numbers in (mechanism.links, mechanism.rotors.inertia, mechanism.rotors.axes,
                    friction.straight, friction.terms[:, [SCALE, WEIGHT, LOAD]], friction.links):
        if not np.isfinite(numbers).all():
            raise ModelError('a constant of the model is '
                             f'{numbers[~np.isfinite(numbers)][0]}: C code needs finite ones')
    name, origin = c_name(mechanism.robot.name), provenance or Provenance()
    text = _Text(name, mechanism, origin, wrist)
    return CCode(name, text.header(), text.source(), origin.digest, origin.cautions)


def c_name(name: str) -> str:
    """Return the name of a robot as C identifier."""
    plain = re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_').lower()
    return plain if re.match('[a-z]', plain) else f'robot_{plain}'.rstrip('_')


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the C code.

    ``reads`` are arguments; ``writes`` the output arrays with their numbers of dimensions.
    ``results`` are their expressions in order, then those of the states and positions of friction
    with ``state``, or else of the ``checks`` that must be positive. With either the function
    returns 0, or 1 without a result.
    """

    name: str
    about: str
    reads: tuple[str, ...]
    writes: tuple[tuple[str, int], ...]
    results: tuple[Any, ...]
    checks: int = 0
    state: bool = False


class _Turns(SparseAlgebra):
    """Algebra with sines and cosines as symbols, computed first by a function.

    Calls of the C library among the products would evict these from the registers.
    """

    def __init__(self, casadi: Any) -> None:
        super().__init__(casadi)
        self._casadi, self.values = casadi, dict[str, tuple[Any, Any]]()
        self.sin, self.cos = partial(self._symbol, casadi.sin), partial(self._symbol, casadi.cos)

    def _symbol(self, function: Any, angle: Any) -> Any:
        value = function(angle)
        if value.is_constant():
            return value
        return self.values.setdefault(str(value), (self._casadi.SX.sym('turn'), value))[0]


class _Functions:
    """The functions of a mechanism as expressions of CasADi."""

    def __init__(self, mechanism: Mechanism, wrist: WristCompensation | None) -> None:
        self.casadi, self._mechanism, self._wrist = required_casadi(), mechanism, wrist
        self.n, self.algebra = mechanism.robot.n, _Turns(self.casadi)
        self.states = friction_states(mechanism.friction)
        #: axes whose friction has history
        self.turned = tuple(sorted({axis for axis, _, _ in self.states}))
        sizes = {**dict.fromkeys(ARGUMENTS, self.n), 'state': len(self.states),
                 'past': len(self.turned), READING: SIX}
        self.symbols = {name: self.casadi.SX.sym(name, size) for name, size in sizes.items()}
        self._stiff = replace(mechanism, gears=None)
        self._bare = Equations(
            replace(self._stiff, friction=AxisFriction.none(self.n)), self.algebra)
        self._whole = Equations(self._stiff, self.algebra)

    def _of(self, *names: str) -> list[list[Number]]:
        return [self.casadi.vertsplit(self.symbols[name]) for name in names]

    def all(self) -> Iterator[Function]:
        """Yield the functions in the order of the header."""
        still, motors = [0.0] * self.n, self._mechanism.gears is not None
        q, qd, qdd, effort = self._of(Q, QD, QDD, EFFORT)
        motion, under = (Q, QD, QDD), (Q, QD, EFFORT)
        efforts, accelerations = (('effort', 1),), (('acceleration', 1),)
        yield Function(
            'inverse_dynamics', 'Effort of links and rotors in a motion; friction is not part of '
            'it.', motion, efforts, (self._bare.inverse(q, qd, qdd),))
        yield Function('gravity', 'Effort that holds the arm at rest: its weight.', (Q,), efforts,
                       (self._bare.inverse(q, still, still),))
        yield Function('mass_matrix', 'Joint-space inertia, rotors included.', (Q,),
                       (('matrix', 2),), (self._bare.mass_matrix(q),))
        yield Function(
            'forward_dynamics', 'Acceleration of links and rotors under an effort from which '
            'friction has been taken.', under, accelerations,
            *self._solution(self._bare.forward(q, qd, effort)))
        yield Function(
            'friction_sliding', 'Friction of a motion by itself, in steady sliding. The '
            'acceleration matters where friction grows with load.',
            (*motion, *((THETA_D,) if motors else ())), (('friction', 1),),
            (self._whole.friction(q, qd, qdd, self._of(THETA_D)[0] if motors else qd),))
        yield from self._along_a_motion(THETA if motors else Q, THETA_D if motors else QD)
        yield Function(
            'inverse_dynamics_with_friction', 'Effort of links, rotors and friction in steady '
            'sliding; motors move with their joints.', motion, efforts,
            (self._whole.inverse(q, qd, qdd),))
        yield Function(
            'forward_dynamics_with_friction', 'Acceleration under an effort, with friction in '
            'steady sliding, under its own load; motors move with their joints.', under,
            accelerations, *self._solution(self._whole.forward(q, qd, effort)))
        if motors:
            yield from self._with_gears()
        if self._wrist is not None:
            yield Function(
                'compensate_wrench', 'What the surroundings exert on the tool: force [N] and '
                f'torque [N m] about the origin of {self._wrist.sensor.link}, in its axes, for a '
                'reading of the wrist sensor. Zero velocity and acceleration: compensates the '
                'weight only.', (*motion, READING), ((COMPENSATED, 1),),
                (self._compensated(self._wrist, q, qd, qdd),))

    def _compensated(self, wrist: WristCompensation, *motion: list[Number]) -> Number:
        """Return the wrench on the tool of a sensor, see `WristCompensation`."""
        sensor, robot, constant = wrist.sensor, wrist.extended, self.algebra.constant
        still = [self.casadi.SX(0.0)] * SIX
        tool = Equations(replace(Mechanism.without_effects(robot), links=robot.nominal),
                         self.algebra)
        return constant(sensor.turn.T) @ (self.symbols[READING] - constant(sensor.bias)) + (
            tool.inverse(*(one + still for one in motion))[-SIX:])

    def _solution(self, solution: Acceleration, rows: Sequence[Sequence[int]] = ()
                  ) -> tuple[tuple[Any, ...], int]:
        """Return accelerations with their checks, and the number of checks.

        ``rows`` are the coordinates of each array, by default the joints of one.
        """
        checks = [*solution.factors.pivots, *(
            () if solution.settled is None else self.casadi.vertsplit(solution.settled))]
        if any(check.is_constant() and not float(check) > 0.0 for check in checks):
            raise ModelError('the mass matrix of the model is nowhere positive definite: identify '
                             'with --method feasible')
        values = [solution.values[list(coordinates)] for coordinates in rows or (range(self.n),)]
        return (*values, self.algebra.vector(checks)), len(checks)

    def _along_a_motion(self, position: str, velocity: str) -> Iterator[Function]:
        """Yield the functions of friction with history, of motors at arguments of these names."""
        casadi, friction = self.casadi, self._mechanism.friction
        places, rates = (self.algebra.constant(friction.axes) @ self.symbols[name]
                         for name in (position, velocity))
        now = self.algebra.vector([places[i] for i in self.turned])
        begun = [self._clipped(rates[axis] / SLIDING) for axis, _, _ in self.states]
        yield Function(
            'friction_begin', 'Begin a motion: states of friction are relaxed at rest, and as '
            'they slide in motion. To be called before friction_step, and after every gap.',
            (position, velocity), (), (self.algebra.vector(begun), now), state=True)
        travel = dict(zip(self.turned, casadi.vertsplit(now - self.symbols['past']), strict=True))
        after = {state: self._moved(state, z, travel[state[0]])
                 for state, z in zip(self.states, self._of('state')[0], strict=True)}
        q, qd, qdd, turning = self._of(Q, QD, QDD, velocity)
        yield Function(
            'friction_step', 'Friction of the next sample of a motion: presliding states follow '
            'the travel since the sample before, whatever time has passed.',
            (Q, QD, QDD, *(() if position == Q else (position, velocity))), (('friction', 1),),
            (self._whole.friction(q, qd, qdd, turning, after),
             self.algebra.vector(list(after.values())), now), state=True)

    def _clipped(self, z: Number) -> Number:
        return self.algebra.fmin(self.algebra.fmax(z, -1.0), 1.0)

    def _moved(self, state: StateKey, z: Number, travel: Number) -> Number:
        """Return a state of friction after a ``travel`` of its axis."""
        _, kind, length = state
        if kind == DAHL:
            left = self.casadi.exp(-self.algebra.fabs(travel) / length)
            return z * left + self.algebra.sign(travel) * (1.0 - left)
        return self._clipped(z + travel / length)

    def _with_gears(self) -> Iterator[Function]:
        """Yield the functions of motors that move separately from their joints."""
        gears, equations = self._mechanism.gears, Equations(self._mechanism, self.algebra)
        assert gears is not None
        q, qd, effort, theta, theta_d = self._of(Q, QD, EFFORT, THETA, THETA_D)
        elastic, motors = list(gears.joints), equations.coordinates.motors
        torque: list[Number] = [0.0] * self.n
        x, v = q + [theta[j] for j in elastic], qd + [theta_d[j] for j in elastic]
        for joint, part in zip(elastic, equations.gear_torque(x, v), strict=True):
            torque[joint] = part
        yield Function('gear_torque', 'Torque that elastic gears transmit to their links; zero '
                       'where a joint is rigid.', (Q, QD, THETA, THETA_D), (('torque', 1),),
                       (self.algebra.vector(torque),))
        drives: list[Number] = [0.0] * len(x)
        for motor, part in zip(motors, effort, strict=True):
            drives[motor] = part
        yield Function(
            'forward_dynamics_elastic', 'Accelerations of links and motors under an effort of '
            'the drives, with the friction of the motors in steady sliding. A motor of a rigid '
            'joint does what the joint does.', (Q, QD, EFFORT, THETA, THETA_D),
            (('acceleration', 1), ('motor_acceleration', 1)),
            *self._solution(equations.forward(x, v, drives), (range(self.n), motors)))

    def statements(self, function: Function) -> list[str]:
        """Return C statements that write results to ``out`` in order."""
        casadi, places = self.casadi, {name: name for name in function.reads}
        if function.state:
            places |= {'state': 'state->state', 'past': 'state->position'}
        given = {place: self.symbols[name] for name, place in places.items()}
        results = casadi.cse(casadi.densify(casadi.vertcat(*map(casadi.vec, function.results))))
        turns = [(symbol, value) for symbol, value in self.algebra.values.values()
                 if casadi.depends_on(results, symbol)]
        if not turns:
            return self._written('out', results, given)
        symbols, values = (casadi.vertcat(*part) for part in zip(*turns, strict=True))
        return [f'double turn[{len(turns)}];', '{',
                *_indented(1, self._written('turn', values, given)), '}',
                *self._written('out', results, {**given, 'turn': symbols})]

    def _written(self, array: str, results: Any, given: Mapping[str, Any]) -> list[str]:
        """Return CasADi's statements that store ``results`` in an array.

        ``given`` are the symbols of the arrays by name.
        """
        code, places = self.casadi.CodeGenerator('code'), list(given)
        code.add(self.casadi.Function('terms', list(given.values()), [results]))
        body = re.search(r'^static int casadi_f0\([^{]*{\n(.*?) *return 0;\n}', code.dump(),
                         re.DOTALL | re.MULTILINE)
        text = body[1] if body else 'arg['
        text = re.sub(r'arg\[(\d+)\]\? arg\[\1\]\[(\d+)\] : 0(?=;)',
                      lambda place: f'{places[int(place[1])]}[{place[2]}]', text)
        text = re.sub(r'if \(res\[0\]!=0\) res\[0\](?=\[\d+\]=)', array, text)
        text = re.sub(r'casadi_(\w+)(?=\()', lambda call: CASADI_HELPERS[call[1]],
                      text.replace('casadi_real', 'double'))
        if 'arg[' in text or 'res[' in text:
            raise ModelError(f'CasADi {self.casadi.__version__} writes C code in another form: '
                             'install one from 3.6 to 3.8')
        return [line.strip() for line in text.splitlines()]


class _Text:
    """The texts of the two files."""

    def __init__(self, name: str, mechanism: Mechanism, provenance: Provenance,
                 wrist: WristCompensation | None) -> None:
        self._name, self._mechanism, self._big = name, mechanism, name.upper()
        self._provenance, self._functions = provenance, _Functions(mechanism, wrist)
        self._made = tuple(self._functions.all())

    def header(self) -> str:
        """Return the header."""
        guard, joints = f'{self._big}_H', f'{self._big}_JOINTS'
        sizes = len(self._functions.states), len(self._functions.turned)
        lines = [
            *self._head(), '', f'#ifndef {guard}', f'#define {guard}', '',
            f'#define {joints} {self._functions.n}',
            f'#define {self._big}_DIGEST {quoted(self._provenance.digest)}',
            f'#define {self._big}_SOFTWARE {quoted(f"robot_dynid {VERSION}")}', '',
            '#ifdef __cplusplus', 'extern "C" {', '#endif', '',
            f'extern const char *const {self._name}_joint_names[{joints}];']
        for quantity, _ in self._ranges():
            lines += ['', *comment(f'Range of the {quantity} in the recordings the model was '
                                   f'fitted to [{UNITS[quantity]}].'),
                      f'extern const double {self._name}_trained_{quantity}[{joints}][2];']
        lines += ['', *comment('Presliding states of friction, and the positions of the axes at '
                               'the sample before.'),
                  'typedef struct {', f'    double state[{max(1, sizes[0])}];',
                  f'    double position[{max(1, sizes[1])}];',
                  f'}} {self._name}_friction_state;']
        for function in self._made:
            lines += ['', *comment(function.about), *self._prototype(function, ';')]
        return '\n'.join([*lines, '', '#ifdef __cplusplus', '}', '#endif', '', '#endif', ''])

    def source(self) -> str:
        """Return the source."""
        bodies = [line for function in self._made for line in self._body(function)]
        used = '\n'.join(bodies)
        lines = [f'{MARK.decode()} {VERSION}; see {self._name}.h */', '',
                 f'#include "{self._name}.h"', '', '#include <float.h>', '#include <math.h>', '',
                 f'#define JOINTS {self._big}_JOINTS', '', *self._constants()]
        for name, text in HELPERS.items():
            if re.search(rf'\b{name}\(', used):
                lines += ['', text]
        return '\n'.join([*lines, *bodies, ''])

    def _head(self) -> list[str]:
        """Return the comment that describes the model and its omissions."""
        robot, gears = self._mechanism.robot, self._mechanism.gears
        paragraphs = [f'Dynamics of {robot.name}. Do not edit: export the model again.']
        if self._provenance.digest:
            paragraphs.append(f'Digest of the model: {self._provenance.digest}; '
                        f'{self._provenance.origin}.')
        paragraphs += [
            'Arrays hold an element per joint, in this order: ' + ', '.join(
                f'{joint} [{"m" if kind == PRISMATIC else "rad"}]'
                for joint, kind in zip(robot.joints, robot.types, strict=True)) + '. Units are '
            'SI: rad (m), rad/s, rad/s^2, effort N m (N) on the joint side of the gears.',
            'Results may be stored where an argument was. Functions that return int return 0; '
            '1 where there is no result: a number is not finite, or the mass matrix is not '
            'positive definite, which least squares does not guarantee. Accelerations are NaN '
            'then, friction is zero and its state stays.',
            'Friction is that of warm joints at the temperature of reference.']
        if gears is not None:
            names = ', '.join(robot.joints[j] for j in gears.joints)
            paragraphs.append(
                f'Gears of {names} are elastic. Friction takes the motion of motors, which are on '
                'the joint side; functions without arguments of motors take them to move with '
                'their joints. Left out: the effort that moves a motor ahead of its link, which '
                'needs derivatives of the acceleration.')
        paragraphs += self._provenance.cautions
        lines = [f'{MARK.decode()} {VERSION}', ' *']
        for paragraph in paragraphs:
            lines += [f' * {line}' for line in wrap(_in_comment(paragraph), LINE_WIDTH - 4)]
            lines.append(' *')
        return [*lines[:-1], ' */']

    def _ranges(self) -> Iterator[tuple[str, FloatArray]]:
        return ((name, ends) for name, ends in self._provenance.trained.items() if name in UNITS)

    def _constants(self) -> Iterator[str]:
        """Yield the constants that the header declares."""
        names = ', '.join(quoted(joint) for joint in self._mechanism.robot.joints)
        yield from broken(f'const char *const {self._name}_joint_names[JOINTS] = {{{names}}};')
        for quantity, ends in self._ranges():
            pairs = ', '.join(f'{{{low!r}, {high!r}}}' for low, high in ends.tolist())
            yield from broken(f'const double {self._name}_trained_{quantity}[JOINTS][2] = '
                              f'{{{pairs}}};')

    def _prototype(self, function: Function, end: str) -> list[str]:
        """Return the declaration of a function."""
        joints = f'[{self._big}_JOINTS]'
        sizes = dict.fromkeys((READING, COMPENSATED), f'[{SIX}]')
        arguments = [f'{self._name}_friction_state *state'] if function.state else []
        arguments += [f'const double {name}{sizes.get(name, joints)}' for name in function.reads]
        arguments += [f'double {name}{sizes.get(name, joints) * rank}'
                      for name, rank in function.writes]
        kind = 'int' if function.state or function.checks else 'void'
        return broken(f'{kind} {self._name}_{function.name}({", ".join(arguments)}){end}')

    def _body(self, function: Function) -> list[str]:
        """Return the lines of a function."""
        refused = set(self._provenance.refused)
        fails = [*(f'fill({name}, {"0.0" if function.state else "NAN"});'
                   for name, _ in function.writes), 'return 1;']
        head = ['', *self._prototype(function, ''), '{']
        if function.checks and refused:
            return [*head, *_indented(1, [*_unused(function, ''), *fails]), '}']
        results = list(self._results(function))
        lines = [f'double out[{len(results)}];'] if results else []
        if function.state:
            finite = ' && '.join(f'all_finite({name}, JOINTS)' for name in function.reads)
            lines += [f'if (!({finite})) {{', *_indented(1, fails), '}']
        lines += self._functions.statements(function)
        if function.checks:
            lines.append(f'double checks[{function.checks}];')
        # one by one, so that a compiler holds them in registers until arguments are overwritten
        lines += [f'{place} = {"NAN" if refused.intersection(joints) else f"out[{i}]"};'
                  for i, (place, *joints) in enumerate(results)]
        if function.checks:
            finite = ' && '.join(f'all_finite({name}, JOINTS)' for name, _ in function.writes)
            lines += [f'if (!({finite} && all_above_zero(checks, {function.checks}))) {{',
                      *_indented(1, fails), '}']
        lines += ['return 0;'] if function.state or function.checks else []
        return [*head, *_indented(1, [*_unused(function, '\n'.join(lines)), *lines]), '}']

    def _results(self, function: Function) -> Iterator[tuple[Any, ...]]:
        """Yield the location of each result, and its joints."""
        joints, functions = range(self._functions.n), self._functions
        for name, rank in function.writes:
            if name == COMPENSATED:  # is of no joint
                yield from ((f'{name}[{i}]',) for i in range(SIX))
                continue
            for place in product(joints, repeat=rank):
                yield name + ''.join(f'[{j}]' for j in place), *place
        if function.state:
            yield from ((f'state->state[{i}]',) for i in range(len(functions.states)))
            yield from ((f'state->position[{i}]',) for i in range(len(functions.turned)))
        yield from ((f'checks[{i}]',) for i in range(function.checks))


def _unused(function: Function, text: str) -> list[str]:
    """Return no-op statements for the arguments that do not occur in a text."""
    return [f'(void){name};' for name in (*function.reads, *(('state',) if function.state else ()))
            if not re.search(rf'\b{name}\b', text)]


def _indented(steps: int, lines: Sequence[str]) -> list[str]:
    """Return lines of C indented by ``steps`` of four spaces."""
    return [part for line in lines for part in broken(4 * steps * ' ' + line)]


def broken(line: str) -> list[str]:
    """Break a line of C at commas and ``&&`` to at most LINE_WIDTH."""
    indent = ' ' * (len(line) - len(line.lstrip()))
    together = re.sub(r'(?<!,)(?<!&&) ', '\0', line.lstrip())
    return [part.replace('\0', ' ') for part in wrap(
        together, LINE_WIDTH, initial_indent=indent, subsequent_indent=indent + 8 * ' ',
        break_long_words=False, break_on_hyphens=False)]


def comment(text: str) -> list[str]:
    """Return a text as the lines of a comment."""
    return wrap(f'/* {_in_comment(text)} */', LINE_WIDTH, subsequent_indent='   ',
                break_on_hyphens=False)


def _in_comment(text: str) -> str:
    """Return a text that neither ends nor begins a comment, nor turns the direction of writing."""
    return printable(text).replace('*/', '* /').replace('/*', '/ *')


def quoted(text: str) -> str:
    """Return a text as a literal of C, without blanks at which `broken` breaks lines."""
    plain = ''.join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f'\\{b:03o}'
                    for b in text.encode())
    return re.sub('(?<=[,&]) ', r'\\040', f'"{plain}"')
