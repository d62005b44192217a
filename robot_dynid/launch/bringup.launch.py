"""Start ros2_control with its real controllers on a simulated arm, and the nodes of the package.

controller_manager, joint_state_broadcaster, joint_trajectory_controller, robot_state_publisher,
excitation and identifier, as on a real arm; hardware:=mock (mock_components; the drives and the
arm behind them are simulated by the node simulated_robot) or mujoco (mujoco_ros2_control). Then:
robot-dynid design seven_axis --out T.yaml && robot-dynid excite T.yaml
"""

from launch import LaunchDescription

from robot_dynid.ros.bringup import bringup


def generate_launch_description() -> LaunchDescription:
    """Return the description; `ros2 launch robot_dynid bringup.launch.py -s` lists arguments."""
    return bringup(robot='seven_axis')
