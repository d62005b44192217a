"""Twenty publishers of joint states as fast as they can, until a line comes in.

Then it prints, as JSON, when each message had been sent [ns]: the first of every publisher, ...
"""

from __future__ import annotations

import json
import sys
import threading
import time

import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

COUNT, DEPTH = 20, 10


def main() -> None:
    """Publish numbered messages."""
    rclpy.init()
    node = rclpy.create_node('burst_publishers', namespace=sys.argv[1])
    publishers = [node.create_publisher(JointState, 'joint_states', QoSProfile(depth=DEPTH))
                  for _ in range(COUNT)]
    while not all(publisher.get_subscription_count() for publisher in publishers):
        time.sleep(0.01)
    sys.stdout.write('ready\n')
    sys.stdout.flush()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    times, number = list[int](), 0
    while not ended.is_set():
        number += 1
        for k, publisher in enumerate(publishers):
            publisher.publish(JointState(name=[str(k)], position=[float(number)]))
            times.append(time.time_ns())
    sys.stdout.write(json.dumps(times) + '\n')
    sys.stdout.flush()
    rclpy.shutdown()


if __name__ == '__main__':
    main()
