"""Nodes for ROS 2, from a sourced installation, `make setup` or the extra ``ros``."""

from importlib.util import find_spec

from robot_dynid.errors import MissingDependency

if find_spec('rclpy') is None:
    raise MissingDependency.of(
        'this needs ROS 2 with rclpy; source an installation, or take its wheels', 'ros')
if find_spec('robot_dynid_interfaces') is None:
    raise MissingDependency('this needs the package robot_dynid_interfaces: source the workspace '
                            'that colcon built, or run `make setup` and `. .venv/env.sh`')
