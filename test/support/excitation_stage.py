"""The stage on which the excitation node acts: the node, the simulated robot and a user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rclpy
from excitation_client import ROBOT, Client
from in_process import destroy
from ros_process import NodeProcess
from sensor_msgs.msg import JointState

# Wide against a loaded machine; the guards themselves are tested to the cycle without ROS.
PARAMETERS = {'robot': ROBOT, 'approach_scale': 0.6, 'controller_wait': 1.5,
              'state_timeout': 1.0, 'controller_timeout': 1.5, 'feedback_timeout': 3.0,
              'acceptance_timeout': 10.0, 'result_timeout': 5.0, 'stop_timeout': 5.0,
              'cancel_timeout': 1.0,  # a stop not answered by then is followed by a harder one
              'tracking_window': 1.0, 'first_pass_scale': 1.0, 'warm_up': 0,
              'return_to_start': False, 'validation': False, 'lookahead': 2.0}
# At the 500 Hz of the default, with which test_stops judges the stops, four tenths of a core more
# go into each motion.
SIMULATION = {'robot': ROBOT, 'effort_noise': 0.0, 'state_rate': 100.0}


class Stage:
    """Robot, node and client of the module; the robot can be lost and replaced.

    Bags go below ``folder``; ``changes`` are parameters of the excitation node.
    """

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.client = Client()
        self.folder, self.changes = folder, changes
        self.start_node()
        self.robot: NodeProcess | None = None

    def start_node(self, **changes: Any) -> None:
        """Start the excitation node anew, with these parameters changed, too."""
        if hasattr(self, 'node'):
            self.kill_node()
        self.changed = changes
        self.node = NodeProcess('excitation', {
            **PARAMETERS, 'recording_directory': self.folder, **self.changes, **changes})

    def reset(self, **changes: Any) -> Stage:
        """End what the test before left behind, passed or failed; where that fails, begin anew.

        ``changes`` are parameters of the node which this test wants.
        """
        try:
            assert self.node.process.poll() is None and self.changed == changes
            self.client.end_goals()
        except AssertionError:
            self.client.goals.clear()
            if self.robot is not None:
                self.kill_robot()
            self.start_node(**changes)
            self.client.spin(0.1)
            self.client.diagnostics.clear()
        return self

    def with_robot(self) -> Client:
        if self.robot is None or self.robot.process.poll() is not None:
            self.robot = NodeProcess('simulated_robot', SIMULATION)
            self.client.wait(self.client.parameters.service_is_ready)
            self.client.state = JointState()
            self.client.diagnostics.clear()
        # a killed node stays in the graph for long, and takes goals that nobody answers
        self.client.wait(self.client.controller_seen)
        self.client.fault('none')
        self.client.wait_for_rest()
        return self.client

    def kill_node(self) -> None:
        """Kill the excitation node, to which nobody publishes then.

        The shared memory that a killed process leaves can hold up who does, for ever: Fast DDS,
        issues 1144 and 6484.
        """
        self.client.say_nothing()
        self.node.process.kill()
        self.node.process.wait()

    def kill_robot(self) -> None:
        assert self.robot is not None
        self.robot.process.kill()
        self.robot.process.wait()

    def close(self) -> None:
        for process in (self.node, self.robot):
            if process is not None:
                process.stop()
        destroy(self.client.node)
        rclpy.shutdown(context=self.client.context)
