"""Node `echo`: answers forward-dynamics requests with the effort, computing nothing.

What a service round trip costs by itself; `echo_bench` holds the identifier against it.
"""

from __future__ import annotations

import sys
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from robot_dynid_interfaces.srv import ComputeForwardDynamics


def answer(request: Any, response: Any) -> Any:
    """Return as many numbers as a forward dynamics would."""
    response.acceleration = request.effort
    response.success = True
    return response


def main(args: list[str] | None = None) -> int:
    """Run the node until it is interrupted."""
    rclpy.init(args=args)
    try:
        node = rclpy.create_node('echo')
        node.create_service(ComputeForwardDynamics, '~/forward_dynamics', answer)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
