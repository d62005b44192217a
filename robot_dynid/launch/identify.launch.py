"""Start the identifier beside a robot that publishes joint states."""

from launch import LaunchDescription

from robot_dynid.ros.launching import description


def generate_launch_description() -> LaunchDescription:
    """Return the description; `ros2 launch robot_dynid identify.launch.py -s` lists arguments."""
    return description('identifier')
