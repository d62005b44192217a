"""Feed-forward: the efforts of a planned motion, as a table for a controller.

    python examples/feedforward.py MODEL.yaml TRAJECTORY.yaml EFFORTS.csv [RATE]

TRAJECTORY.yaml is a file of `robot-dynid design`; any arrays of position, velocity and
acceleration will do. The C code of `robot-dynid export --c` computes the same in a controller.
"""

import sys

import numpy as np

from robot_dynid import IdentifiedModel, load_trajectory


def main(model_file, trajectory_file, table, rate='250'):
    """Sample the motion, compute its efforts, write both."""
    model, trajectory = IdentifiedModel.load(model_file), load_trajectory(trajectory_file)
    order = [trajectory.joints.index(joint) for joint in model.joints]
    time = np.arange(0.0, trajectory.duration, 1.0 / float(rate))
    motion = trajectory.sample(time)
    q, qd, qdd = (part[:, order] for part in (
        motion.position, motion.velocity, motion.acceleration))
    effort = model.inverse(q, qd, qdd)
    outside = model.outside(q, qd, qdd)
    if outside.any():
        print(f'note: {outside.any(axis=-1).mean():.0%} of the motion is outside of what the '
              'model was trained in')
    links = effort - model.friction(q, qd, qdd)
    for j, joint in enumerate(model.joints):
        print(f'{joint:>24}: at most {np.abs(effort[:, j]).max():.2f} N m, '
              f'{np.abs(links[:, j]).max():.2f} without friction')
    header = ','.join(['time', *(f'{name}.{joint}' for name in ('position', 'effort')
                                 for joint in model.joints)])
    np.savetxt(table, np.column_stack([time, q, effort]), delimiter=',', header=header,
               comments='')


if __name__ == '__main__':
    main(*sys.argv[1:])
