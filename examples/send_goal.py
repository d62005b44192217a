"""Send a goal to a node and wait for its result, where there is no `ros2 action send_goal`.

    python examples/send_goal.py /excitation/excite Excite "{trajectory: fit.yaml}"

Name of the action, its type in robot_dynid_interfaces, and the goal as YAML. Ctrl-C cancels the
goal, so the excitation stops the robot along its path. The exit code is 0 where it succeeded.
"""

import sys

import rclpy
import yaml
from rclpy.action import ActionClient
from rclpy.signals import SignalHandlerOptions

from robot_dynid_interfaces import action

PATIENCE = 20.0  # s


def done(node, future, timeout=None):
    """Wait for a future and return its result, None after the timeout [s]."""
    rclpy.spin_until_future_complete(node, future, timeout_sec=timeout)
    return future.result()


def shown(told):
    """Return what prints every new segment or stage of feedback."""
    def show(message):
        now = message.feedback
        words = getattr(now, 'segment', None) or getattr(now, 'stage', '')
        if words and told[-1:] != [words]:
            told.append(words)
            print(f'... {words}', file=sys.stderr)
    return show


def main(name, kind, text='{}'):
    """Send the goal and print its result."""
    kinds = getattr(action, kind, None)
    if kinds is None:
        sys.exit(f'robot_dynid_interfaces has no action {kind}')
    given = yaml.safe_load(text) or {}
    if unknown := set(given) - set(kinds.Goal.get_fields_and_field_types()):
        sys.exit(f'a goal of {kind} has no {", ".join(sorted(unknown))}')
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C is ours
    node = rclpy.create_node('sending')
    client = ActionClient(node, kinds, name)
    if not client.wait_for_server(PATIENCE):
        sys.exit(f'nobody serves {name}')
    handle = done(node, client.send_goal_async(kinds.Goal(**given), shown([])), PATIENCE)
    if handle is None or not handle.accepted:
        sys.exit(f'{name} did not accept the goal in {PATIENCE:g} s: send it again')
    result = handle.get_result_async()
    try:
        done(node, result)
    except KeyboardInterrupt:
        done(node, handle.cancel_goal_async(), PATIENCE)
        done(node, result)
    found = result.result().result
    for field in found.get_fields_and_field_types():
        print(f'{field}: {getattr(found, field)}')
    node.destroy_node()
    rclpy.shutdown()
    return 0 if found.success else 1


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
