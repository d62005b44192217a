"""Start the simulated robot: trajectory controller and joint states."""

from launch import LaunchDescription

from robot_dynid.ros.launching import description


def generate_launch_description() -> LaunchDescription:
    """Return the description; `ros2 launch robot_dynid simulate.launch.py -s` lists arguments."""
    return description('simulated_robot')
