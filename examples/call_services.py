"""Ask a running identifier for efforts and accelerations, over ROS 2.

    python examples/call_services.py [NODE]

Start the node first, with a model: `ros2 launch robot_dynid identify.launch.py model:=MODEL.yaml`,
or without ros2 `python -m robot_dynid.ros.identifier.node --ros-args -p model:=MODEL.yaml`.
"""

import sys
from array import array

import numpy as np
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile

from robot_dynid_interfaces.msg import DynamicModel
from robot_dynid_interfaces.srv import ComputeForwardDynamics, ComputeInverseDynamics

PATIENCE = 20.0  # s


def latched(node, kind, topic):
    """Return the last message of a latched topic."""
    found = []
    node.create_subscription(kind, topic, found.append, QoSProfile(
        depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    end = node.get_clock().now().nanoseconds + PATIENCE * 1e9
    while not found and node.get_clock().now().nanoseconds < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    return found[0] if found else sys.exit(f'nobody publishes {topic}')


def answer(node, kind, service, **arrays):
    """Call a service with arrays (K, n), and return its response."""
    client = node.create_client(kind, service)
    if not client.wait_for_service(PATIENCE):
        sys.exit(f'nobody serves {service}')
    # float64[] as array.array: lists are ten times as slow
    request = kind.Request(**{name: array('d', values.ravel()) for name, values in arrays.items()})
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)
    response = future.result()
    if response is None or not response.success:
        sys.exit(f'{service}: {response.message if response else "no answer"}')
    return response


def main(identifier='/identifier'):
    """Inverse dynamics of 100 random states, and back."""
    rclpy.init()
    node = rclpy.create_node('asking')
    joints = latched(node, DynamicModel, f'{identifier}/model').joint_names
    q, qd, qdd = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 100, len(joints)))
    effort = np.array(answer(node, ComputeInverseDynamics, f'{identifier}/inverse_dynamics',
                             position=q, velocity=qd, acceleration=qdd).effort).reshape(q.shape)
    again = np.array(answer(node, ComputeForwardDynamics, f'{identifier}/forward_dynamics',
                            position=q, velocity=qd, effort=effort).acceleration)
    for joint, largest in zip(joints, np.abs(effort).max(axis=0)):
        print(f'{joint:>24}: at most {largest:.2f} N m')
    print(f'back to the accelerations within {np.abs(again.reshape(q.shape) - qdd).max():.1e}')
    node.destroy_node()
    rclpy.shutdown()


if __name__ == '__main__':
    main(*sys.argv[1:])
