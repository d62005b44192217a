"""Two processes with a node each, one of which must receive from the other: does DDS work?

They are separate processes because a wrong setting of DDS may kill one, and because two nodes of
one process need no DDS. `talk` starts both, each a call of `main`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence

from robot_dynid.setting_up.middleware import Talk

#: s within which a message must arrive, and within which both processes must have ended
TALK_PATIENCE, END = 5.0, 20.0
TOPIC = 'robot_dynid_doctor'
HEAR, SPEAK = 'hear', 'speak'


def talk() -> Talk:
    """Let one process send and the other receive; both have ended on return."""
    command = [sys.executable, '-m', 'robot_dynid.ros.doctor.talk']
    speaker = subprocess.Popen([*command, SPEAK], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        heard = subprocess.run([*command, HEAR], capture_output=True, text=True, timeout=END,
                               check=False)
    except subprocess.TimeoutExpired:
        return Talk(False, error='a process with a node does not end')
    finally:
        speaker.kill()
        speaker.wait()
    lines = heard.stdout.strip().splitlines()
    try:
        return Talk(**json.loads(lines[-1]))
    except (IndexError, ValueError, TypeError):
        output = (heard.stderr.strip() or heard.stdout.strip()).splitlines()
        return Talk(False, error=output[-1] if output else f'a node ends with {heard.returncode}')


def main(words: Sequence[str]) -> Talk | None:
    """Send until killed, or receive and return the outcome."""
    try:
        import rclpy
        from rclpy.utilities import get_rmw_implementation_identifier
        from std_msgs.msg import String

        rclpy.init()
        node = rclpy.create_node(f'doctor_{words[0]}', enable_rosout=False,
                                 start_parameter_services=False)
    except Exception as error:  # wrong settings raise errors of many types
        return Talk(False, error=' '.join(str(error).split()))
    begun = time.monotonic()
    if words[0] == SPEAK:
        publisher = node.create_publisher(String, TOPIC, 1)
        while time.monotonic() < begun + END:
            publisher.publish(String(data=TOPIC))
            time.sleep(0.05)
        return None
    heard: list[String] = []
    node.create_subscription(String, TOPIC, heard.append, 1)
    while not heard and time.monotonic() < begun + TALK_PATIENCE:
        rclpy.spin_once(node, timeout_sec=0.1)
    return Talk(bool(heard), time.monotonic() - begun,
                middleware=str(get_rmw_implementation_identifier()))


if __name__ == '__main__':
    found = main(sys.argv[1:])
    if found is not None:
        sys.stdout.write(json.dumps(vars(found)) + '\n')
