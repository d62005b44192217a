"""`robot-dynid calibrate`: the friction of a session, from a minute of motion."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import READING, add_common, check_outputs, load_logs, load_model
from robot_dynid.cli.files import of_recordings as how
from robot_dynid.document import percent

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'adapt the friction of a model to a minute of motion'
EXAMPLES = ('robot-dynid calibrate M.yaml this_morning.mcap --out today.yaml',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser, 'model')
    parser.add_argument('data', metavar='DATA', nargs='+',
                        help='recordings of the session, in which the joints move both ways')
    add_common(parser, '--robot', *READING)
    parser.add_argument('--out', metavar='M.yaml', required=True, help='file of the new model')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read model and recordings, calibrate, write the model."""
    from robot_dynid.identified.model_file import MARK
    from robot_dynid_extras.health.calibration import calibrate

    check_outputs((arguments.out, MARK), inputs=(
        arguments.model, *arguments.data, arguments.robot))
    model = load_model(arguments.model, arguments.robot)
    with terminal.progress('calibrate') as progress:
        logs = load_logs(arguments.data, how(model.robot, arguments), progress, arguments.accept)
        found = calibrate(model, logs.uncut('calibration'))
    found.model.save(arguments.out)
    return {'robot': model.robot.name, 'seconds': found.seconds, 'out': arguments.out,
            'changes': [vars(one) for one in found.changes], 'findings': logs.findings,
            'warnings': found.warnings}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the changes of friction by axis."""
    terminal.table('friction of this session', ('axis', 'friction', 'change [%]', 'used'), (
        (one['axis'], one['kind'],
         f'{percent(one["share"])} ± {percent(one["half_interval"])}', one['used'])
        for one in result['changes']))
    terminal.warnings(result['warnings'])
    terminal.written((('model', result['out']),))
