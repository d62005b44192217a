"""Publishes joint states at a steady rate, numbered by their stamps; a process of its own."""

from __future__ import annotations

import sys
import time

import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

RATE = 1000.0
QOS = QoSProfile(depth=1000)
NAMES = [f'joint_{i}' for i in range(1, 8)]


def main() -> None:
    """Publish as many messages as the first argument says; report the seconds it took."""
    count = int(sys.argv[1])
    rclpy.init()
    node = rclpy.create_node('state_publisher')
    publisher = node.create_publisher(JointState, 'joint_states', QOS)
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    time.sleep(0.2)
    message = JointState(name=NAMES, position=[0.1] * 7, velocity=[0.2] * 7, effort=[0.3] * 7)
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
