"""Start the identifier beside a robot that publishes joint states."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

ARGUMENTS = {
    'robot': 'name in config/robots, robot YAML or URDF file; needed to identify',
    'model': 'model file to serve from the start',
    'recordings': 'folder that receives one bag per recording',
}


def generate_launch_description() -> LaunchDescription:
    """Return the description; arguments: robot, model, recordings, joint_states, parameters."""
    parameters = PathJoinSubstitution(
        [FindPackageShare('robot_dynid'), 'config', 'identifier.yaml']
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
        OpaqueFunction(function=identifier),
    ])


def identifier(context: LaunchContext) -> list[Node]:
    """Return the node; only arguments which were given override the parameter file."""
    given = {
        name: ParameterValue(LaunchConfiguration(name), value_type=str)
        for name in ARGUMENTS if LaunchConfiguration(name).perform(context)
    }
    return [Node(
        package='robot_dynid', executable='identifier', name='identifier', output='screen',
        parameters=[LaunchConfiguration('parameters'), given],
        remappings=[('joint_states', LaunchConfiguration('joint_states'))],
    )]
