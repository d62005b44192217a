"""Publishes joint states at a steady rate, numbered by their stamps; a process of its own.

Arguments: how many, 0 for as many as there is time for; of how many joints, else seven.
"""

from __future__ import annotations

import itertools
import sys
import time

import rclpy
from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

RATE = 1000.0
PATIENCE = 60.0  # s for the last to be delivered
QOS = QoSProfile(depth=10_000)  # 10 s: the identifier is judged by what has been delivered


def main() -> None:
    """Publish; report the seconds it took."""
    count, joints = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    names = [f'joint_{i + 1}' for i in range(joints)]
    rclpy.init()
    node = rclpy.create_node('state_publisher')
    publisher = node.create_publisher(JointState, 'joint_states', QOS)
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    time.sleep(0.2)
    message = JointState(name=names, position=[0.1] * joints, velocity=[0.2] * joints,
                         effort=[0.3] * joints)
    begin = time.monotonic()
    for k in range(count) if count else itertools.count():
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(k + 1, 1000)
        message.header.stamp.nanosec *= 1_000_000
        message.position[0] = float(k)
        publisher.publish(message)
        delay = begin + (k + 1) / RATE - time.monotonic()
        if delay > 0.0:
            time.sleep(delay)
    sys.stdout.write(f'{time.monotonic() - begin:.3f}\n')
    publisher.wait_for_all_acked(Duration(seconds=PATIENCE))
    rclpy.shutdown()


if __name__ == '__main__':
    main()
