"""Start the simulated robot: trajectory controller and joint states."""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the description; arguments: robot, parameters, real_time_factor."""
    parameters = PathJoinSubstitution(
        [FindPackageShare('robot_dynid'), 'config', 'simulated_robot.yaml']
    )
    return LaunchDescription([
        DeclareLaunchArgument(
            'robot', default_value='seven_axis',
            description='name in config/robots, robot YAML or URDF file',
        ),
        DeclareLaunchArgument(
            'parameters', default_value=parameters, description='parameter file of the node'
        ),
        DeclareLaunchArgument(
            'real_time_factor', default_value='1.0', description='simulated seconds per second'
        ),
        Node(
            package='robot_dynid', executable='simulated_robot', name='simulated_robot',
            output='screen',
            parameters=[
                LaunchConfiguration('parameters'),
                {
                    'robot': LaunchConfiguration('robot'),
                    'real_time_factor': ParameterValue(
                        LaunchConfiguration('real_time_factor'), value_type=float
                    ),
                },
            ],
        ),
    ])
