"""The identified arm in MuJoCo: write it as MJCF, let it fall, compare with the model's rollout.

    python examples/simulate_mujoco.py MODEL.yaml ARM.xml

The model needs feasible parameters (identify --method feasible).
"""

import sys
from pathlib import Path

import mujoco
import numpy as np

from robot_dynid import IdentifiedModel

STEPS, STEP = 500, 0.001


def main(model_file, xml):
    """Write the arm, simulate half a second from zero without effort, compare."""
    model = IdentifiedModel.load(model_file)
    written = model.to_mjcf()
    Path(xml).write_text(written.text)
    for warning in written.warnings:
        print('note:', warning)

    arm = mujoco.MjModel.from_xml_path(xml)
    arm.opt.timestep = STEP
    state = mujoco.MjData(arm)
    places = [arm.joint(joint).qposadr[0] for joint in model.joints]
    start = np.full(model.robot.n, 0.3)
    state.qpos[places] = start
    for _ in range(STEPS):
        mujoco.mj_step(arm, state)
    falls = model.rollout(start, 0.0 * start, np.zeros((1, STEPS, model.robot.n)), STEP)
    ours = falls.position[0, -1]
    for j, joint in enumerate(model.joints):
        print(f'{joint:>24}: MuJoCo {state.qpos[places[j]]:.4f}, rollout {ours[j]:.4f} rad')


if __name__ == '__main__':
    main(*sys.argv[1:])
