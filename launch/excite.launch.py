"""Start the excitation node for a robot that ros2_control already runs."""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Return the description; arguments: robot, controller, joint_states, parameters."""
    parameters = PathJoinSubstitution(
        [FindPackageShare('robot_dynid'), 'config', 'excitation.yaml']
    )
    return LaunchDescription([
        DeclareLaunchArgument(
            'robot', description='name in config/robots, robot YAML or URDF file'
        ),
        DeclareLaunchArgument(
            'controller', default_value='joint_trajectory_controller',
            description='name of the joint_trajectory_controller',
        ),
        DeclareLaunchArgument(
            'joint_states', default_value='joint_states', description='topic of the joint states'
        ),
        DeclareLaunchArgument(
            'parameters', default_value=parameters, description='parameter file of the node'
        ),
        Node(
            package='robot_dynid', executable='excitation', name='excitation', output='screen',
            parameters=[
                LaunchConfiguration('parameters'),
                {
                    'robot': LaunchConfiguration('robot'),
                    'controller': LaunchConfiguration('controller'),
                },
            ],
            remappings=[('joint_states', LaunchConfiguration('joint_states'))],
        ),
    ])
