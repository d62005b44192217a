"""Start the three nodes of `robot-dynid demo`: simulated robot, excitation and identifier.

The same executables and parameter files; what the demo then does is up to you, for example:
ros2 service call /identifier/start_recording std_srvs/srv/Trigger
robot-dynid excite
"""

from launch import LaunchDescription

from robot_dynid.ros.launching import description


def generate_launch_description() -> LaunchDescription:
    """Return the description; `ros2 launch robot_dynid demo.launch.py -s` lists arguments."""
    return description('simulated_robot', 'excitation', 'identifier', robot='seven_axis')
