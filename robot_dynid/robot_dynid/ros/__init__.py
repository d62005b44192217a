"""Nodes for ROS 2, from a sourced installation, `make setup` or the extra ``ros``."""

from importlib.util import find_spec

from robot_dynid.errors import MissingDependency

missing = [name for name in ('rclpy', 'robot_dynid_interfaces') if find_spec(name) is None]
if missing:
    raise MissingDependency(
        f'this needs ROS 2, and {" and ".join(missing)} cannot be imported: source the workspace '
        'that colcon built, or run `make setup` and `. .venv/env.sh` in the sources')
