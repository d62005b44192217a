"""`robot-dynid export`: the model in the forms of simulators and controllers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    OR_PARTIAL,
    add_common,
    check_outputs,
    is_robot,
    load_model,
)
from robot_dynid.document import number
from robot_dynid.errors import DynIdError, ModelError, UsageError
from robot_dynid.files import check_folder

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel

HELP = 'write a model for simulators and controllers: URDF, MJCF, SDF, C'
EXAMPLES = (
    'robot-dynid export M.yaml --urdf my_arm.urdf --out identified.urdf',
    'robot-dynid export M.yaml --mjcf arm.xml --sdf arm.sdf --c code/',
    'robot-dynid export M.yaml --out arm.urdf --samples 10',
    'robot-dynid export puma560 --out puma560.urdf',
)
#: columns of written friction: N m s/rad, N m, the errors N m up to the speed rad/s
FRICTION = ('axis', 'damping', 'friction', 'offset', 'rms', 'most', 'speed')
#: text of the URDF of the robot and its path, empty where none is given
Urdf = tuple[()] | tuple[str, str]


@dataclass(frozen=True)
class Target:
    """A form of file: what its option says, the module with its MARK, and how it is made.

    What ``make`` returns of a model has ``warnings``, ``facts()`` once it has been read back, and
    ``save(path)``. ``sampled``: it is written for posterior samples, too. ``folder``: the path
    is that of a folder, and the names of the files follow from the robot.
    """

    metavar: str
    help: str
    module: str
    make: Callable[[IdentifiedModel, Urdf], Any]
    sampled: bool = True
    folder: bool = False


TARGETS = {
    'out': Target('OUT.urdf', 'URDF with the identified inertials, damping and friction; '
                  'without --urdf from the description in the model',
                  'robot_dynid.export.urdf', lambda model, urdf: model.to_urdf(*urdf)),
    'mjcf': Target('OUT.xml', 'MuJoCo XML, with the shapes of IN.urdf if given',
                   'robot_dynid.export.mjcf', lambda model, urdf: model.to_mjcf(*urdf)),
    'sdf': Target('OUT.sdf', 'SDFormat 1.9, without shapes',
                  'robot_dynid.export.sdf', lambda model, urdf: model.to_sdf()),
    'inverse_dynamics_solver': Target(
        'OUT.yaml', 'parameters of the ROS 2 package inverse_dynamics_solver',
        'robot_dynid.export.solver_parameters', lambda model, urdf: model.to_solver_parameters()),
    'c': Target('DIR', 'folder for C code of dynamics and friction, NAME.h and NAME.c',
                'robot_dynid.export.c_code', lambda model, urdf: model.to_c(), sampled=False,
                folder=True),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('model', metavar='M.yaml',
                        help='model (with physically feasible parameters for all but --c), or a '
                             'robot to export as described: name, robot YAML or URDF')
    parser.add_argument('--urdf', metavar='IN.urdf', help='URDF of the same robot')
    parser.add_argument('--samples', metavar='N', type=int, default=0,
                        help='also write N feasible models drawn from the uncertainty of the '
                             'estimate: OUT_000, OUT_001 ...')
    for name, target in TARGETS.items():
        parser.add_argument(_option(name), metavar=target.metavar,
                            help=target.help)
    parser.add_argument('--wrist-sensor', metavar='SENSOR.yaml',
                        help='with --c: also compensate this sensor (payload --wrench)')
    add_common(parser, '--accept-partial')


def _option(name: str) -> str:
    return f'--{name.replace("_", "-")}'


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and URDF, write what is asked for."""
    from robot_dynid.dynamics.wrist import WristSensor
    from robot_dynid.identified.caution import require_every_joint
    from robot_dynid.robot.urdf import read_urdf_text

    asked = {name: path for name in TARGETS if (path := getattr(arguments, name)) is not None}
    if is_robot(arguments.model):
        return _description(arguments, asked)
    _check(arguments, asked)
    model = load_model(arguments.model, None)
    urdf: Urdf = (read_urdf_text(arguments.urdf), arguments.urdf) if arguments.urdf else ()
    drawn = model.posterior(arguments.samples) if arguments.samples else ((), ())
    sensor = WristSensor.load(arguments.wrist_sensor) if arguments.wrist_sensor else None
    made: dict[str, Any] = {name: model.to_c(sensor) if name == 'c' else
                            TARGETS[name].make(model, urdf) for name in asked}
    if asked.keys() - {'c'}:  # whose functions have no number of a refused joint
        require_every_joint(model, arguments.accept_partial, OR_PARTIAL)
    samples = {name: _numbered(name, path, len(drawn[0])) for name, path in asked.items()}
    unshaped = () if urdf or 'out' not in asked or model.robot.shapes else (
        f"{asked['out']}: made from the description in the model, without shapes: add --urdf "
        'IN.urdf for shapes',)
    files = _saved(made, asked, [
        (TARGETS[name].make(one, urdf), path) for name, paths in samples.items()
        for one, path in zip(drawn[0], paths, strict=False)])
    return {
        'robot': model.robot.name, 'model': arguments.model, 'out': arguments.out,
        'feasible': model.feasible is not None,
        'changed_links': made['out'].changed_links if 'out' in made else [],
        'bodies': _bodies(model), 'files': files, 'samples': {
            'count': len(drawn[0]), 'warnings': drawn[1], 'paths': samples} if drawn[0] else {},
        'warnings': [*(text for one in files for text in one['warnings']),
                     *drawn[1], *unshaped],
    }


def _description(arguments: argparse.Namespace, asked: dict[str, str]) -> dict[str, Any]:
    """Write the robot itself, as it is described."""
    from robot_dynid.export.description import MARK, Description
    from robot_dynid.robot.robot_file import load_robot

    other = [_option(name) for name in asked if name not in ('out', 'mjcf', 'sdf')]
    other += [_option(name) for name in ('urdf', 'samples', 'wrist_sensor')
              if getattr(arguments, name)]
    if other or not asked:
        raise UsageError(f'{arguments.model} is a robot, not an identified model: give --out '
                         'OUT.urdf, --mjcf OUT.xml or --sdf OUT.sdf'
                         f'{", and not " if other else ""}{", ".join(other)}')
    robot = load_robot(arguments.model)
    check_outputs(*((path, MARK if name == 'out' else import_module(TARGETS[name].module).MARK)
                    for name, path in asked.items()), inputs=(arguments.model, robot.source))
    description = Description(robot)
    made = {'out': description.to_urdf, 'mjcf': description.to_mjcf, 'sdf': description.to_sdf}
    files = _saved({name: made[name]() for name in asked}, asked)
    return {'robot': robot.name, 'model': arguments.model, 'out': arguments.out,
            'feasible': False, 'changed_links': [], 'bodies': [], 'files': files, 'samples': {},
            'warnings': [text for one in files for text in one['warnings']]}


def _check(arguments: argparse.Namespace, asked: dict[str, str]) -> None:
    """Raise UsageError where nothing, or nothing that could be written, is asked for."""
    if not asked:
        raise UsageError('nothing to write: give one of '
                         f'{", ".join(f"{_option(n)} {t.metavar}" for n, t in TARGETS.items())}')
    if arguments.wrist_sensor and 'c' not in asked:
        raise UsageError('--wrist-sensor is for C code: add --c DIR')
    marks = {name: import_module(TARGETS[name].module).MARK for name in asked
             if not TARGETS[name].folder}
    for name in asked.keys() - marks.keys():
        check_folder(asked[name])
    check_outputs(*((each, mark) for name, mark in marks.items()
                    for each in (asked[name], *_numbered(name, asked[name], arguments.samples))),
                  inputs=(arguments.model, arguments.urdf))


def _numbered(name: str, path: str, count: int) -> list[str]:
    """Return the paths of ``count`` samples of a target."""
    whole = Path(path)
    return [str(whole.with_name(f'{whole.stem}_{k:03d}{whole.suffix}'))
            for k in range(count if TARGETS[name].sampled else 0)]


def _saved(
    made: dict[str, Any], paths: dict[str, str], more: Sequence[tuple[Any, str]] = ()
) -> list[dict[str, Any]]:
    """Write what was ``made`` by target, and ``more``; return the facts about the former.

    Nothing is written unless all can be read back.
    """
    outputs = [*((made[name], path) for name, path in paths.items()), *more]
    for one, path in outputs:
        try:
            one.facts()
        except DynIdError as error:
            raise ModelError(f'{path} is not written: {error}') from error
    for one, path in outputs:
        one.save(path)
    return [{'target': name, 'path': path, 'warnings': made[name].warnings, **made[name].facts()}
            for name, path in paths.items()]


def _bodies(model: IdentifiedModel) -> list[dict[str, Any]]:
    """Return mass and centre of mass of the identified bodies, links fixed to them included.

    None where the model has no physically feasible parameters.
    """
    from robot_dynid.robot.inertia import com_from_parameters

    bodies: list[dict[str, Any]] = []
    if model.feasible is None:
        return bodies
    for link, identified, nominal in zip(
        model.robot.bodies, model.arm.mechanism.bodies, model.robot.nominal, strict=True
    ):
        mass, com, _ = com_from_parameters(identified)
        bodies.append({'link': link, 'mass': mass, 'nominal_mass': float(nominal[0]),
                       'center_of_mass': com.tolist()})
    return bodies


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what was written and what was not."""
    if result['bodies'] and terminal.verbose:
        terminal.table('identified bodies', ('link', 'kg', 'nominal kg', 'centre of mass m'), (
            (b['link'], number(b['mass']), number(b['nominal_mass']),
             ' '.join(number(c) for c in b['center_of_mass'])) for b in result['bodies']))
    for one in result['files']:
        terminal.facts(((one['target'], one['path']), *(
            (key, one[key]) for key in ('error', 'tool', 'digest') if one.get(key) is not None)))
        if result['bodies'] and terminal.verbose:  # a description has no friction
            terminal.table(f'{one["target"]}: friction as written', FRICTION, (
                [row['axis'], *(number(row[key]) for key in FRICTION[1:])]
                for row in one.get('friction', ())))
    if result['samples']:
        terminal.facts((('samples', result['samples']['count']),))
    if result['out']:
        terminal.facts((('changed', ', '.join(result['changed_links']) or 'no link'),))
    terminal.warnings(result['warnings'])
