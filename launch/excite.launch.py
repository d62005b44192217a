"""Start the excitation node for a robot that ros2_control already runs."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

ARGUMENTS = {
    'robot': 'name in config/robots, robot YAML or URDF file',
    'controller': 'name of the joint_trajectory_controller',
}


def generate_launch_description() -> LaunchDescription:
    """Return the description; arguments: robot, controller, joint_states, parameters."""
    parameters = PathJoinSubstitution(
        [FindPackageShare('robot_dynid'), 'config', 'excitation.yaml']
    )
    return LaunchDescription([
        *(DeclareLaunchArgument(
            name, default_value='', description=f'{text}; empty: as in the parameter file'
        ) for name, text in ARGUMENTS.items()),
        DeclareLaunchArgument(
            'joint_states', default_value='joint_states', description='topic of the joint states'
        ),
        DeclareLaunchArgument(
            'parameters', default_value=parameters, description='parameter file of the node'
        ),
        OpaqueFunction(function=excitation),
    ])


def excitation(context: LaunchContext) -> list[Node]:
    """Return the node; only arguments which were given override the parameter file."""
    given = {
        name: ParameterValue(LaunchConfiguration(name), value_type=str)
        for name in ARGUMENTS if LaunchConfiguration(name).perform(context)
    }
    return [Node(
        package='robot_dynid', executable='excitation', name='excitation', output='screen',
        parameters=[LaunchConfiguration('parameters'), given],
        remappings=[('joint_states', LaunchConfiguration('joint_states'))],
    )]
