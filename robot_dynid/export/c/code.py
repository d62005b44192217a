"""C code of a mechanism: one header and one source that need nothing but the C library.

The functions are written out for the one robot: no loops over joints, no tables of its geometry,
nothing that is zero. They allocate nothing, and keep no state but what the caller hands over.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.errors import ModelError
from robot_dynid.export.c.expressions import COLUMNS, Writer, wrapped
from robot_dynid.export.c.functions import STATE, Function, Functions
from robot_dynid.export.c.static_functions import ROUNDS, STATIC_FUNCTIONS
from robot_dynid.files import atomic_write, check_target, make_folder
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.version import VERSION

#: first line of both files; no other file is replaced by one
MARK = b'/* dynamics identified by robot_dynid'
UNITS = {'position': 'rad, m', 'velocity': 'rad/s, m/s', 'acceleration': 'rad/s^2, m/s^2',
         'effort': 'N m, N', 'temperature': 'deg C'}


@dataclass(frozen=True, eq=False)
class Provenance:
    """Description of a model for the head of its C code.

    ``digest`` of the model, ``origin`` its method and status; ``trained`` the ranges (n, 2) of the
    joints by name, as far as known; ``cautions`` sentences that a user must read. The joints
    ``refused``, by number, have no efforts, and with one of them there are no accelerations.
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

        Raises ModelError where that refuses them.
        """
        return {'names': [f'{self.name}.h', f'{self.name}.c'], 'digest': self.digest,
                'tool': self._compiler}

    @cached_property
    def _compiler(self) -> str:
        """The path of the C compiler that has read the code."""
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
        """Write both files into ``folder``, which is made where it is missing; return their paths.

        Raises ModelError as `facts`, UsageError where something else is, DynIdError when they
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


def c_code(mechanism: Mechanism, provenance: Provenance | None = None) -> CCode:
    """Return the C code of a mechanism; names begin with that of the robot.

    Raises ModelError for numbers that are not finite, and for gears that cannot be.
    """
    functions = Functions(mechanism)
    name = c_name(mechanism.robot.name)
    made = functions.all()
    known = provenance or Provenance()
    text = _Text(name, mechanism, functions, known)
    return CCode(name, text.header(made), text.source(made), known.digest, known.cautions)


def c_name(name: str) -> str:
    """Return the name of a robot as one of C."""
    found = re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_').lower()
    return found if re.match('[a-z]', found) else f'robot_{found}'.rstrip('_')


class _Text:
    """The texts of the two files."""

    def __init__(self, name: str, mechanism: Mechanism, functions: Functions,
                 provenance: Provenance) -> None:
        self._name, self._mechanism, self._functions = name, mechanism, functions
        self._provenance, self._big = provenance, name.upper()

    def header(self, made: Sequence[Function]) -> str:
        """Return the header."""
        guard, joints = f'{self._big}_H', f'{self._big}_JOINTS'
        states, turned = len(self._functions.states), len(self._functions.turned)
        lines = [
            *self._head(), '', f'#ifndef {guard}', f'#define {guard}', '',
            f'#define {joints} {self._mechanism.robot.n}',
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
                  'typedef struct {', f'    double state[{max(1, states)}];',
                  f'    double position[{max(1, turned)}];',
                  f'}} {self._name}_friction_state;']
        for function in made:
            lines += ['', *comment(function.about), *self._prototype(function, ';')]
        return '\n'.join([*lines, '', '#ifdef __cplusplus', '}', '#endif', '', '#endif', ''])

    def source(self, made: Sequence[Function]) -> str:
        """Return the source."""
        bodies = [[*self._prototype(function, ''), '{', *self._body(function), '}']
                  for function in made]
        used = '\n'.join(line for body in bodies for line in body)
        lines = [f'{MARK.decode()} {VERSION}; see {self._name}.h */', '',
                 f'#include "{self._name}.h"', '', '#include <float.h>', '#include <math.h>', '',
                 f'#define JOINTS {self._big}_JOINTS']
        if loads := len(self._functions.loaded):
            lines += [f'#define LOADS {loads}', f'#define ROUNDS {ROUNDS}']
        lines += ['', *self._constants()]
        for name, text in STATIC_FUNCTIONS.items():
            if f'{name}(' in used:
                lines += ['', text]
        for body in bodies:
            lines += ['', *body]
        return '\n'.join([*lines, ''])

    def _head(self) -> list[str]:
        """Return the comment that says what the model is and what it leaves out."""
        robot, gears = self._mechanism.robot, self._mechanism.gears
        said = [f'Dynamics of {robot.name}. Not to be edited: export the model again.']
        if self._provenance.digest:
            said.append(f'Digest of the model: {self._provenance.digest}; '
                        f'{self._provenance.origin}.')
        said += [
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
            said.append(
                f'Gears of {names} are elastic. Friction takes the motion of motors, which are on '
                'the joint side; functions without arguments of motors take them to move with '
                'their joints. Left out: the effort that moves a motor ahead of its link, which '
                'needs derivatives of the acceleration.')
        said += self._provenance.cautions
        lines = [f'{MARK.decode()} {VERSION}', ' *']
        for paragraph in said:
            lines += [f' * {line}' for line in wrap(paragraph.replace('*/', '* /'), COLUMNS - 4)]
            lines.append(' *')
        return [*lines[:-1], ' */']

    def _ranges(self) -> Iterator[tuple[str, FloatArray]]:
        return ((name, ends) for name, ends in self._provenance.trained.items() if name in UNITS)

    def _constants(self) -> Iterator[str]:
        """Yield the constants that the header declares."""
        names = ', '.join(quoted(joint) for joint in self._mechanism.robot.joints)
        yield from wrapped(f'const char *const {self._name}_joint_names[JOINTS] = {{{names}}};')
        for quantity, ends in self._ranges():
            pairs = ', '.join(f'{{{low!r}, {high!r}}}' for low, high in ends.tolist())
            yield from wrapped(f'const double {self._name}_trained_{quantity}[JOINTS][2] = '
                              f'{{{pairs}}};')

    def _prototype(self, function: Function, end: str) -> list[str]:
        """Return the declaration of a function."""
        size = f'[{self._big}_JOINTS]'
        arguments = [f'{self._name}_friction_state *{STATE}'] if function.state else []
        arguments += [f'const double {name}{size}' for name in function.reads]
        arguments += [f'double {name}{size * rank}' for name, rank in function.writes]
        kind = 'int' if function.status else 'void'
        return wrapped(f'{kind} {self._name}_{function.name}({", ".join(arguments)}){end}')

    def _results(self, function: Function) -> list[str]:
        """Return the lines that fill the results of a function, with NaN for refused joints."""
        refused, count = self._provenance.refused, self._mechanism.robot.n
        if refused and function.status and not function.state:  # accelerations
            undone = [f'fill({name}, NAN);' for name, _ in function.writes]
            return Writer((*undone, 'return 1;')).lines()
        lost = [f'{name}[{i}]' if rank == 1 else f'{name}[{i}][{k}]'
                for name, rank in function.writes for i in range(count)
                for k in range(count if rank == 2 else 1)
                if i in refused or (rank == 2 and k in refused)]
        return Writer((*function.statements, *(f'{place} = NAN;' for place in lost))).lines()

    def _body(self, function: Function) -> list[str]:
        """Return the lines of a function."""
        written = self._results(function)
        text = '\n'.join(written)
        lines = []
        if function.state:
            good = ' && '.join(f'all_finite({name}, JOINTS)' for name in function.reads)
            undone = [f'        fill({name}, 0.0);' for name, _ in function.writes]
            lines += [*wrapped(f'    if (!({good})) {{'), *undone, '        return 1;', '    }']
            if f'{STATE}->' not in text:
                lines.append(f'    (void){STATE};')
        else:
            lines += [f'    (void){name};' for name in function.reads if f'{name}[' not in text]
        end = ['    return 0;'] if function.state else []
        return [*lines, *written, *end]


def comment(text: str) -> list[str]:
    """Return a text as the lines of a comment."""
    lines = wrap(text, COLUMNS - 6)
    return [f'/* {lines[0]}' if i == 0 else f'   {line}' for i, line in enumerate(lines[:-1])] + [
        f'{"/* " if len(lines) == 1 else "   "}{lines[-1]} */']


def quoted(text: str) -> str:
    """Return a text as a literal of C."""
    plain = ''.join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f'\\{b:03o}'
                    for b in text.encode())
    return f'"{plain}"'
