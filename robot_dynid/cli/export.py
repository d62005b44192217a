"""`robot-dynid export`: the identified inertials inside the robot's URDF."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import check_outputs, load_model
from robot_dynid.cli.terminal import number

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.identified.model import IdentifiedModel

HELP = 'write a URDF with the identified inertials, damping and friction'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('model', metavar='M.yaml',
                        help='model with physically feasible parameters')
    parser.add_argument('--urdf', metavar='IN.urdf', required=True, help='URDF of the same robot')
    parser.add_argument('--out', metavar='OUT.urdf', required=True, help='URDF to write')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and URDF, write the URDF anew."""
    from robot_dynid.identified.export import MARK, exported_urdf
    from robot_dynid.robot.urdf import read_urdf_text

    check_outputs((arguments.out, MARK), inputs=(arguments.model, arguments.urdf))
    model = load_model(arguments.model, None)
    export = exported_urdf(model, read_urdf_text(arguments.urdf), arguments.urdf)
    export.save(arguments.out)
    return {
        'robot': model.robot.name, 'model': arguments.model, 'out': arguments.out,
        'feasible': True, 'changed_links': export.changed_links, 'bodies': _bodies(model),
        'warnings': export.warnings,
    }


def _bodies(model: IdentifiedModel) -> list[dict[str, Any]]:
    """Return mass and centre of mass of the identified bodies, links fixed to them included."""
    from robot_dynid.identified.export import physical_links
    from robot_dynid.robot.inertia import com_from_parameters

    found = []
    for link, identified, nominal in zip(
        model.robot.bodies, physical_links(model), model.robot.nominal, strict=True
    ):
        mass, com, _ = com_from_parameters(identified)
        found.append({'link': link, 'mass': mass, 'nominal_mass': float(nominal[0]),
                      'center_of_mass': com.tolist()})
    return found


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the bodies, what was written and what was not."""
    terminal.table('identified bodies', ('link', 'kg', 'nominal kg', 'centre of mass m'), (
        (b['link'], number(b['mass']), number(b['nominal_mass']),
         ' '.join(number(c) for c in b['center_of_mass'])) for b in result['bodies']))
    terminal.facts((
        ('urdf', result['out']),
        ('changed', ', '.join(result['changed_links']) or 'no link'),
    ))
    terminal.warnings(result['warnings'])
