"""Publishes joint states at a steady rate, numbered by their stamps; a process of its own."""

from __future__ import annotations

import sys
import time

import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

RATE = 1000.0
QOS = QoSProfile(depth=1000)


def main() -> None:
    """Publish as many messages as the first argument says; report the seconds it took.

    Of seven joints, or as many as the second one says.
    """
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
    for k in range(count):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(k + 1, 1000)
        message.header.stamp.nanosec *= 1_000_000
        message.position[0] = float(k)
        publisher.publish(message)
        delay = begin + (k + 1) / RATE - time.monotonic()
        if delay > 0.0:
            time.sleep(delay)
    sys.stdout.write(f'{time.monotonic() - begin:.3f}\n')
    time.sleep(1.0)  # for the last to be delivered
    rclpy.shutdown()


if __name__ == '__main__':
    main()
