"""Send a goal to a node and wait for its result, where there is no `ros2 action send_goal`.

    python examples/send_goal.py /identifier/identify Identify "{files: [run.csv]}"

Name of the action, its type in robot_dynid_interfaces, and the goal as YAML. Ctrl-C cancels the
goal. The exit code is 0 where it succeeded. `robot-dynid excite` does this for motions.
"""

import sys
from math import inf

import yaml

from robot_dynid.errors import DynIdError
from robot_dynid.ros.common.action_caller import calling
from robot_dynid.ros.common.stop_request import stop_request
from robot_dynid_interfaces import action

PATIENCE = 20.0  # s
LINES = {'verdict': 4, 'warnings': 2, 'payload': 1}  # of the lists in a result
START_OF_LINE = '\r\033[K'  # clears the line of a terminal


def show(feedback):
    """Show segment or stage in one line, which the next one replaces; nothing in a pipe."""
    stage = getattr(feedback, 'segment', None) or getattr(feedback, 'stage', '')
    if sys.stderr.isatty():
        print(f'{START_OF_LINE}{stage}', end='', file=sys.stderr, flush=True)


def report(result):
    """Print the message of a result, its files, and the first lines of its lists."""
    if sys.stderr.isatty():
        print(START_OF_LINE, end='', file=sys.stderr, flush=True)
    print(result.message)
    for field in result.get_fields_and_field_types():
        value = getattr(result, field)
        if isinstance(value, str) and value and field != 'message':
            print(f'{field}: {value}')
        for text in value[:LINES[field]] if field in LINES else ():
            print(f'{field}: {text}')


def main(name, kind, text='{}'):
    """Send the goal and print its result."""
    kinds = getattr(action, kind, None)
    if kinds is None:
        sys.exit(f'robot_dynid_interfaces has no action {kind}')
    given = yaml.safe_load(text) or {}
    if unknown := set(given) - set(kinds.Goal.get_fields_and_field_types()):
        sys.exit(f'a goal of {kind} has no {", ".join(sorted(unknown))}')
    try:
        with calling(kinds, name, PATIENCE) as caller, stop_request(caller.wake) as stop:
            result = caller.called(kinds.Goal(**given), show, lambda: stop.asked, inf)
    except DynIdError as error:
        sys.exit(str(error))
    report(result)
    return 0 if result.success else 1


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
