"""Start the three nodes of `robot-dynid demo`: simulated robot, excitation and identifier.

The same executables and parameter files; what the demo then does is up to you, for example:
ros2 service call /identifier/start_recording std_srvs/srv/Trigger
ros2 action send_goal /excitation/excite robot_dynid_interfaces/action/Excite
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

NODES = ('simulated_robot', 'excitation', 'identifier')


def generate_launch_description() -> LaunchDescription:
    """Return the description; argument: robot."""
    share = FindPackageShare('robot_dynid')
    return LaunchDescription([
        DeclareLaunchArgument(
            'robot', default_value='seven_axis',
            description='name in config/robots, robot YAML or URDF file',
        ),
        *(Node(
            package='robot_dynid', executable=name, name=name, output='screen',
            parameters=[
                PathJoinSubstitution([share, 'config', f'{name}.yaml']),
                {'robot': ParameterValue(LaunchConfiguration('robot'), value_type=str)},
            ],
        ) for name in NODES),
    ])
