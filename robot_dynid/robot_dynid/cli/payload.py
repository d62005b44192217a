"""`robot-dynid payload`: a payload, drive gains from a weighed one, or a wrist sensor."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import (
    READING,
    add_common,
    check_outputs,
    load_logs,
    load_model,
    of_recordings,
)
from robot_dynid.cli.terminal import named
from robot_dynid.document import listed, number, percent
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identification.payload import GainsResult, PayloadResult
    from robot_dynid.identification.wrist import WristResult

HELP = 'identify a payload, drive gains from a weighed payload, or a wrist force-torque sensor'
EXAMPLES = (
    'robot-dynid payload loaded.csv --unloaded empty.csv --robot ur10e',
    'robot-dynid payload loaded.csv --model M.yaml --link tool0',
    'robot-dynid payload loaded.csv --unloaded any.csv --robot ur10e --known-mass 5',
    'robot-dynid payload poses.mcap --robot ur10e --wrench /ft/wrench --out sensor.yaml',
)
AXES = ('x', 'y', 'z')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('loaded', metavar='LOADED', nargs='+',
                        help='recordings with the payload')
    parser.add_argument('--unloaded', metavar='U', nargs='+', default=[],
                        help='recordings of the same motion without the payload (any motion for '
                             'drive gains)')
    parser.add_argument('--model', metavar='M.yaml', help='model of the arm without the payload')
    parser.add_argument('--robot', help='name, URDF file or robot YAML (default: of the model)')
    parser.add_argument('--link', default='', metavar='NAME',
                        help='link that carries the payload, and frame of the result (default: '
                             'the last one, with --wrench the frame of the wrenches)')
    parser.add_argument('--wrench', default='', metavar='TOPIC',
                        help='topic of a force-torque sensor, or the name in columns '
                             'wrench.NAME.fx: identify the tool behind it, bias and mounting')
    parser.add_argument('--out', metavar='SENSOR.yaml',
                        help='with --wrench: file for the compensation, in the node and in C')
    parser.add_argument('--known-mass', type=float, metavar='KG',
                        help='known mass of the payload: identify drive gains instead; with '
                             '--wrench check the scale of the sensor')
    parser.add_argument('--known-com', type=float, nargs=3, metavar=('X', 'Y', 'Z'),
                        help='known centre of mass [m] in the frame of the link')
    parser.add_argument('--equal-gains', action='append', default=[], metavar='JOINT,JOINT',
                        help='joints with equal drives (repeatable)')
    add_common(parser, *READING)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read the recordings, identify payload or gains."""
    from robot_dynid.dynamics.wrist import MARK
    from robot_dynid.estimation.drive_gains import KnownLoad
    from robot_dynid.identification.payload import identify_drive_gains, identify_payload
    from robot_dynid.identification.wrist import identify_wrist_sensor
    from robot_dynid.robot.robot_file import load_robot

    started = time.perf_counter()
    if arguments.model is None and arguments.robot is None:
        raise UsageError('which robot? Give --robot or --model')
    if arguments.known_mass is None and (arguments.known_com or arguments.equal_gains):
        raise UsageError('--known-com and --equal-gains are for drive gains only: add '
                         '--known-mass')
    if arguments.wrench and (arguments.unloaded or arguments.known_com or arguments.equal_gains):
        raise UsageError('--wrench uses the readings of the sensor alone: omit --unloaded, '
                         '--known-com and --equal-gains')
    if arguments.out and not arguments.wrench:
        raise UsageError('--out is the file of a wrist sensor: add --wrench TOPIC')
    check_outputs((arguments.out, MARK), inputs=(*arguments.loaded, arguments.model))
    model = load_model(arguments.model, arguments.robot) if arguments.model else None
    robot = model.robot if model else load_robot(arguments.robot)
    if arguments.wrench:
        robot = replace(robot, wrench_sensor=arguments.wrench, wrenches=())
    with terminal.progress('payload') as progress:
        loaded, unloaded = (
            load_logs(paths, of_recordings(robot, arguments), progress,
                      arguments.accept).uncut(
                'payload identification') for paths in (arguments.loaded, arguments.unloaded))
        if arguments.wrench:
            result = identify_wrist_sensor(robot, loaded, arguments.link, arguments.known_mass,
                                           progress)
            fields = _sensor_fields(result)
            if arguments.out:
                result.sensor.save(arguments.out)
        elif arguments.known_mass is None:
            fields = _payload_fields(identify_payload(
                robot, loaded, unloaded, model, arguments.link, progress), robot.joints)
        else:
            centre = tuple(arguments.known_com) if arguments.known_com else None
            load = KnownLoad(arguments.known_mass, centre, arguments.link)
            equal = [group.split(',') for group in arguments.equal_gains]
            fields = _gain_fields(load.mass, identify_drive_gains(
                robot, loaded, unloaded, load, model, equal))
    return {'ok': fields['status'] != 'not_converged', **fields,
            'robot': robot.name, 'seconds': time.perf_counter() - started,
            'findings': loaded.findings | unloaded.findings}


def _payload_fields(result: PayloadResult, rows: tuple[str, ...]) -> dict[str, Any]:
    """Return a payload from efforts with the names ``rows``; None where not determined."""
    import numpy as np

    from robot_dynid.identification.payload import set_load, set_payload

    payload = result.estimate
    centre, margins = payload.centre_of_mass, payload.margins
    half, reach = margins[0] * payload.mass_std, margins[1:] * payload.centre_of_mass_std
    stated = result.robot.drive
    return {
        'status': payload.status.name.lower(), 'advice': payload.status.value,
        'frame': result.link,
        'mass': payload.mass, 'mass_std': payload.mass_std,
        'centre_of_mass': centre, 'centre_of_mass_std': payload.centre_of_mass_std,
        'inertia': payload.inertia, 'inertia_std': payload.inertia_std,
        'mass_std_gains': payload.mass_std_gains,
        'drive_gains_std': np.broadcast_to(stated.gain_uncertainty, result.robot.n),
        'drive_gains_std_stated': stated.gains_std is not None,
        'interval': {'mass': [payload.mass - half, payload.mass + half],
                     'centre_of_mass': list(zip(centre - reach, centre + reach))},
        'parameters': payload.parameters, 'parameters_std': payload.parameters_std,
        'not_excited': payload.not_excited,
        'directions': payload.directions, 'constrained': payload.constrained,
        'least_eigenvalue': payload.least_eigenvalue,
        'noise': dict(zip(rows, payload.noise.tolist(), strict=True)),
        'samples': result.samples, 'pairs': [vars(match) for match in result.matches],
        'set_payload': set_payload(payload), 'set_load': set_load(payload),
        'warnings': result.warnings,
    }


def _sensor_fields(result: WristResult) -> dict[str, Any]:
    """Return tool, bias and mounting of a sensor."""
    from robot_dynid.robot.inertia import rpy_from_rotation
    from robot_dynid.types import WRENCH_COMPONENTS

    sensor = result.sensor
    return {
        **_payload_fields(result, WRENCH_COMPONENTS),
        'bias': {name: {'value': value, 'half_width': half} for name, value, half in zip(
            WRENCH_COMPONENTS, sensor.bias, result.bias_width, strict=True)},
        'mounting': {  # as the origin of the sensor in a URDF
            'rpy': rpy_from_rotation(sensor.rotation.T), 'half_width': result.rotation_width},
        'reports': 'wrench on the tool' if sensor.sign > 0 else 'reaction of the tool',
        'outliers': result.outliers,
    }


def _gain_fields(mass: float, result: GainsResult) -> dict[str, Any]:
    fitted, stated = result.gains, result.robot.drive.gains
    lower, upper = fitted.interval()
    gains = {
        joint: {'value': fitted.values[j], 'relative_std': fitted.relative_std[j],
                'interval': [lower[j], upper[j]], 'determined': bool(fitted.determined[j]),
                'stated': None if stated is None else stated[j]}
        for j, joint in enumerate(result.robot.joints)
    }
    return {
        'status': fitted.status.name.lower(), 'advice': fitted.status.value, 'frame': result.link,
        'known_mass': mass, 'gains': gains, 'centre_of_mass': fitted.centre_of_mass,
        'not_determined': [j for j, gain in gains.items() if not gain['determined']],
        'samples': result.samples, 'warnings': result.warnings,
    }


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the payload or the gains."""
    status = f'{result["status"]}: {result["advice"]}'
    if 'gains' in result:
        terminal.table(
            f'drive gains from {number(result["known_mass"])} kg on {result["frame"]}',
            ('joint', 'gain', '95 % from', 'to', 'std %', 'stated'), (
                (joint, gain['value'], *gain['interval'],
                 percent(float(gain['relative_std'])), gain['stated'])
                for joint, gain in result['gains'].items()))
        terminal.facts((('status', status),))
    else:
        _show_payload(result, status, terminal)
    terminal.warnings((*named(result['findings']), *result['warnings']))


def _show_payload(result: dict[str, Any], status: str, terminal: Terminal) -> None:
    low, high = result['interval']['mass']
    axes, centre, inertia = AXES, result['centre_of_mass'], result['inertia']
    deviation = result['inertia_std']
    half = [(high - low) / 2.0 for low, high in result['interval']['centre_of_mass']]
    terminal.facts((
        ('mass', f'{number(result["mass"])} kg on {result["frame"]}, 95 % from {number(low)} to '
                 f'{number(high)} kg'),
        ('centre of mass', ', '.join(f'{axis} {number(value)} ± {number(width, 2)}' for
                                     axis, value, width in zip(axes, centre, half, strict=True))
         + ' m (95 %)'),
        ('inertia about it', ', '.join(
            f'{axes[i]}{axes[k]} {number(inertia[i][k])} ± {number(deviation[i][k], 2)}'
            for i in range(3) for k in range(i, 3)) + ' kg m² (± std)'),
        ('status', status), *(_sensor_facts(result) if 'bias' in result else (
            ('drive gains', _gains_note(result)),))))
    terminal.warnings((
        *([f'not excited by the motion: {listed(result["not_excited"])}']
          if result['not_excited'] else []),
        *(f'{text}: not determined' for text in result['directions'])))
    if terminal.verbose:
        terminal.facts((f'{pair["loaded"]} less {pair["unloaded"]}',
                        f'clocks {1e3 * abs(pair["lag"]):.2f} ms apart')
                       for pair in result['pairs'] if pair['unloaded'])


def _sensor_facts(result: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return bias and mounting of a sensor."""
    import numpy as np

    bias = [f'{name} {number(one["value"])} ± {number(one["half_width"], 2)}'
            for name, one in result['bias'].items()]
    angles, halves = (', '.join(f'{value:.2f}' for value in np.degrees(result['mounting'][key]))
                      for key in ('rpy', 'half_width'))
    return (('bias', f'{", ".join(bias[:3])} N, {", ".join(bias[3:])} N m (95 %)'),
            ('mounting', f'rpy {angles}° ± {halves}° (95 %); reports the {result["reports"]}'))


def _gains_note(result: dict[str, Any]) -> str:
    """Return a note on the share of the drive gains in the deviations."""
    shares = sorted(set(result['drive_gains_std'].tolist()))
    if not shares[-1]:
        return 'taken as exact; state drive_gains_std in the robot YAML if they are not'
    source = 'stated' if result['drive_gains_std_stated'] else \
        'assumed; state drive_gains_std in the robot YAML'
    width = ' to '.join(dict.fromkeys(percent(share) for share in (shares[0], shares[-1])))
    return (f'uncertain by {width} % ({source}): {number(result["mass_std_gains"], 2)} kg of the '
            f'deviation of the mass, {number(result["mass_std"], 2)} kg')
