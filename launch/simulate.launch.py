"""Start the simulated robot: trajectory controller and joint states."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

ARGUMENTS = {
    'robot': (str, 'name in config/robots, robot YAML or URDF file'),
    'real_time_factor': (float, 'simulated seconds per second'),
}


def generate_launch_description() -> LaunchDescription:
    """Return the description; arguments: robot, real_time_factor, parameters."""
    parameters = PathJoinSubstitution(
        [FindPackageShare('robot_dynid'), 'config', 'simulated_robot.yaml']
    )
    return LaunchDescription([
        *(DeclareLaunchArgument(
            name, default_value='', description=f'{text}; empty: as in the parameter file'
        ) for name, (_, text) in ARGUMENTS.items()),
        DeclareLaunchArgument(
            'parameters', default_value=parameters, description='parameter file of the node'
        ),
        OpaqueFunction(function=simulated_robot),
    ])


def simulated_robot(context: LaunchContext) -> list[Node]:
    """Return the node; only arguments which were given override the parameter file."""
    given = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, (kind, _) in ARGUMENTS.items() if LaunchConfiguration(name).perform(context)
    }
    return [Node(
        package='robot_dynid', executable='simulated_robot', name='simulated_robot',
        output='screen', parameters=[LaunchConfiguration('parameters'), given],
    )]
