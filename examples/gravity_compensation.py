"""Gravity compensation: the effort that holds the arm, and whether it would drift when released.

    python examples/gravity_compensation.py MODEL.yaml RECORDING

Along the poses of a recording: effort of the identified weight, and by how much the links of the
URDF are off it. An arm that is released with wrong efforts stays where dry friction holds it.
"""

import sys

import numpy as np

from robot_dynid import IdentifiedModel, load_log
from robot_dynid.dynamics.rigid_body import inverse_dynamics

SLOW = 0.01  # rad/s


def main(model_file, recording):
    """Print efforts, errors of the URDF, and what friction holds."""
    model = IdentifiedModel.load(model_file)
    q = load_log(recording, model.robot).position[::50]
    rest = np.zeros_like(q)
    weight = model.gravity(q)  # (K, n) N m, to be commanded by a controller of efforts
    nominal = inverse_dynamics(model.robot, q, rest, rest)
    forward, back = (model.friction(q, rest + speed) for speed in (SLOW, -SLOW))
    held = np.abs(forward - back).min(axis=0) / 2.0
    print('joint, largest effort, largest error of the URDF, dry friction [N m]')
    for j, joint in enumerate(model.joints):
        error = np.abs(nominal - weight)[:, j].max()
        told = 'would drift with the URDF' if error > held[j] else 'stays with either'
        print(f'{joint:>24} {np.abs(weight[:, j]).max():8.2f} {error:8.2f} {held[j]:8.2f}  {told}')


if __name__ == '__main__':
    main(*sys.argv[1:])
