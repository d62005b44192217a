"""A driver of a robot at rest that does the one thing wrong that its standard input names.

It answers every line of its input with the same line, once it publishes so.
"""

from __future__ import annotations

import array
import sys
import threading
import time

import numpy as np
import rclpy
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.robot.robot_file import load_robot

RATE = 125.0


class Driver:
    """Publishes joint states, with the fault of the moment, until `ended`."""

    def __init__(self, name: str) -> None:
        self.robot = load_robot(name)
        self.node = rclpy.create_node('driver')
        self.fault, self.ended = '', threading.Event()
        self.publisher = self.node.create_publisher(JointState, 'joint_states', 100)
        self.source = self.publisher
        self.noise = np.random.default_rng(0)

    def take(self, fault: str) -> None:
        """Do this wrong from now on."""
        self.fault = fault
        reliability = ReliabilityPolicy.BEST_EFFORT if fault == 'best_effort' else \
            ReliabilityPolicy.RELIABLE
        self.node.destroy_publisher(self.publisher)
        if self.source is not self.publisher:
            self.node.destroy_publisher(self.source)
        self.publisher = self.node.create_publisher(
            JointState, 'joint_states', QoSProfile(depth=100, reliability=reliability))
        self.source = self.node.create_publisher(
            JointState, 'franka/joint_states', 100) if fault == 'copy' else self.publisher
        self.node.set_parameters([Parameter('use_sim_time', value=fault == 'sim_time')])

    def message(self) -> JointState:
        """Return the next message."""
        robot, fault = self.robot, self.fault
        q = 0.5 * np.cos(np.arange(robot.n)) - 0.4
        own = robot.with_gravity(np.array([9.81, 0.0, 0.0])) if fault == 'wall' else robot
        effort = gravity_effort(own, q[None, :])[0] / robot.torque_factors
        effort = effort + self.noise.normal(0.0, 0.01, robot.n)
        effort *= {'milliampere': 1000.0, 'zeros': 0.0}.get(fault, 1.0)
        q = np.degrees(q) if fault == 'degrees' else q
        prefix = 'left_' if fault == 'prefix' else ''
        found = JointState(name=[f'{prefix}{joint}' for joint in robot.joints])
        found.position, found.velocity = array.array('d', q), array.array('d', 0.0 * q)
        if fault != 'no_effort':
            found.effort = array.array('d', effort)
        behind = 3.0 if fault == 'late' else 0.0
        seconds, rest = divmod(time.time_ns() - round(behind * 1e9), 10**9)
        found.header.stamp.sec, found.header.stamp.nanosec = seconds, rest
        return found

    def run(self) -> None:
        """Publish; a copy has every fifth message."""
        count = 0
        while not self.ended.wait(1.0 / RATE):
            message, count = self.message(), count + 1
            self.source.publish(message)
            if self.source is not self.publisher and count % 5 == 0:
                self.publisher.publish(message)


def main() -> None:
    """Read faults until the input ends."""
    rclpy.init()
    driver = Driver(sys.argv[1])
    faults: list[str] = []
    publishing = threading.Thread(target=driver.run)
    answering = threading.Thread(target=rclpy.spin, args=(driver.node,), daemon=True)
    answering.start()
    publishing.start()
    for line in sys.stdin:
        faults.append(line.strip())
        driver.ended.set()
        publishing.join()
        driver.ended.clear()
        driver.take(faults[-1])
        publishing = threading.Thread(target=driver.run)
        publishing.start()
        sys.stdout.write(line)
        sys.stdout.flush()
    driver.ended.set()
    publishing.join()
    rclpy.try_shutdown()
    answering.join(5.0)


if __name__ == '__main__':
    main()
