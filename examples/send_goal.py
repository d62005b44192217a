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


def main(name, kind, text='{}'):
    """Send the goal and print its result."""
    kinds = getattr(action, kind, None)
    if kinds is None:
        sys.exit(f'robot_dynid_interfaces has no action {kind}')
    given = yaml.safe_load(text) or {}
    if unknown := set(given) - set(kinds.Goal.get_fields_and_field_types()):
        sys.exit(f'a goal of {kind} has no {", ".join(sorted(unknown))}')
    stages = ['']

    def show(feedback):
        stage = getattr(feedback, 'segment', None) or getattr(feedback, 'stage', '')
        if stage not in ('', stages[-1]):
            stages.append(stage)
            print(f'... {stage}', file=sys.stderr)

    try:
        with calling(kinds, name, PATIENCE) as caller, stop_request(caller.wake) as stop:
            result = caller.called(kinds.Goal(**given), show, lambda: stop.asked, inf)
    except DynIdError as error:
        sys.exit(str(error))
    for field in result.get_fields_and_field_types():
        print(f'{field}: {getattr(result, field)}')
    return 0 if result.success else 1


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
