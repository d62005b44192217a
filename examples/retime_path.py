"""Give the waypoints of a path times that the identified effort limits allow.

    python examples/retime_path.py ROBOT.yaml PATH.csv TRAJECTORY.csv [NODE]

PATH.csv has a column position.<joint> for each joint (MoveIt: the positions of a planned path);
limits of velocity, acceleration and effort are those of the robot. TOPP-RA (pip install toppra)
finds the fastest motion along the path; the running identifier computes the efforts, and at the
end those of the whole trajectory with friction in one call.
"""

import sys

import numpy as np
import rclpy
import toppra
from call_services import answer
from toppra import algorithm, constraint

from robot_dynid import load_robot
from robot_dynid_interfaces.srv import ComputeInverseDynamics

GRID, RATE = 100, 100.0  # points along the path; points per second of the trajectory
MARGIN = 0.98  # part of the effort limits that is planned with


def both_ways(limit):
    """Return the lower and upper limits (n, 2)."""
    return np.column_stack([-limit, limit])


def main(robot_file, path_file, trajectory_file, identifier='/identifier'):
    """Write the trajectory, and print its duration and the share of the limits that it uses."""
    robot = load_robot(robot_file)
    limits = robot.limits
    table = np.genfromtxt(path_file, delimiter=',', names=True, deletechars='')
    waypoints = np.column_stack([table[f'position.{joint}'] for joint in robot.joints])
    rclpy.init()
    node = rclpy.create_node('retiming')

    def efforts(*states):
        position, velocity, acceleration = map(np.atleast_2d, states)
        return np.array(answer(
            node, ComputeInverseDynamics, f'{identifier}/inverse_dynamics', position=position,
            velocity=velocity, acceleration=acceleration).effort).reshape(position.shape)

    def without_friction(q, qd, qdd):
        # friction is odd in the velocity, all else of the dynamics is even
        return 0.5 * efforts([q, q], [qd, -qd], [qdd, qdd]).sum(axis=0)

    path = toppra.SplineInterpolator(np.linspace(0.0, 1.0, len(waypoints)), waypoints)
    along = path(np.linspace(0.0, 1.0, GRID))
    fast, still = np.tile(limits.velocity, (GRID, 1)), np.zeros((GRID, robot.n))
    friction = 0.5 * np.abs(efforts(along, fast, still) - efforts(along, -fast, still)).max(axis=0)
    allowed = MARGIN * limits.effort - friction
    between = constraint.DiscretizationType.Interpolation
    problem = algorithm.TOPPRA([
        constraint.JointVelocityConstraint(both_ways(limits.velocity)),
        constraint.JointAccelerationConstraint(both_ways(limits.acceleration), between),
        constraint.JointTorqueConstraint(
            without_friction, both_ways(allowed), np.zeros(robot.n), between),
    ], path, np.linspace(0.0, 1.0, GRID), parametrizer='ParametrizeConstAccel')
    motion = problem.compute_trajectory()
    if motion is None:
        sys.exit('no motion along this path keeps the limits: at rest it needs more effort')
    time = np.linspace(0.0, motion.duration, max(2, round(motion.duration * RATE)))
    q, qd, qdd = (motion(time, order) for order in range(3))
    effort = efforts(q, qd, qdd)
    columns = {'time': time[:, None], 'position': q, 'velocity': qd, 'acceleration': qdd,
               'effort': effort}
    names = ['time', *(f'{kind}.{joint}' for kind in list(columns)[1:] for joint in robot.joints)]
    np.savetxt(trajectory_file, np.hstack(list(columns.values())), delimiter=',',
               header=','.join(names), comments='')
    print(f'{motion.duration:.3f} s')
    for name, values, limit in (('velocity', qd, limits.velocity),
                                ('acceleration', qdd, limits.acceleration),
                                ('effort', effort, limits.effort)):
        used = np.abs(values).max(axis=0) / limit
        print(f'{name:>12}: ' + ', '.join(f'{joint} {part:.0%}' for joint, part in zip(
            robot.joints, used)))
    node.destroy_node()
    rclpy.shutdown()


if __name__ == '__main__':
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
