"""Record a trajectory on the simulated robot, in place of the real one.

    python examples/rehearse.py ROBOT.yaml T.yaml RUN.csv [SEED]

Friction, rotors, gears and the noise of the sensors are those under "simulation" in the robot
YAML. RUN.csv has the columns that a recording of the robot would have.
"""

import sys
from pathlib import Path

import numpy as np

from robot_dynid import DynIdError, load_robot, load_trajectory
from robot_dynid.io.csv import write_csv
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth

RATE = 250.0


def main(robot_file, trajectory_file, run, seed=0):
    """Write the recording."""
    robot = load_robot(robot_file)
    truth = load_truth(robot, robot_file if Path(robot_file).is_file() else None)
    if not (truth.viscous.any() or truth.coulomb.any() or truth.drives):
        print('no friction and noise: state them under "simulation" as in examples/arm.yaml',
              file=sys.stderr)
    trajectory = load_trajectory(trajectory_file)
    print(f'simulating {trajectory.duration:.0f} s of motion', file=sys.stderr)
    log = record(Arm(robot, truth), trajectory, RATE)
    write_csv(run, measured(log, robot, truth.noise, np.random.default_rng(int(seed))))


if __name__ == '__main__':
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except DynIdError as error:
        sys.exit(f'rehearse.py: {error}')
