"""Start the excitation node for a robot that ros2_control already runs."""

from launch import LaunchDescription

from robot_dynid.ros.launching import description


def generate_launch_description() -> LaunchDescription:
    """Return the description; `ros2 launch robot_dynid excite.launch.py -s` lists arguments."""
    return description('excitation')
