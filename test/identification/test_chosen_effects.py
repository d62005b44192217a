"""identification/chosen_effects.py: springs in closed form, found where they are and help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import five_sines

from robot_dynid.effects.counterbalance import ANGLES, Spring
from robot_dynid.identification.chosen_effects import choose_parts
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples

ROBOT = load_robot('planar_3r')
PLAIN = Structure.uniform(ROBOT, False, 'coulomb', {'width': 0.05})


def structure_of(*parts: Spring) -> Structure:
    return replace(PLAIN, chosen={'counterbalance': parts})


def recordings(part: Spring, torque: float, noise: float) -> list[Samples]:
    """Return three motions of the nominal arm with friction and a spring of a ``torque`` [N m]."""
    model = structure_of(part).torque_model(ROBOT)
    links = dict(zip(model.blocks[0].names, ROBOT.nominal.ravel(), strict=True))
    others = {'fv': 1.5, 'fc': 1.5, 'cb': torque}
    base = model.reduction.base([links.get(name, others.get(name[:2], 0.0))
                                 for name in model.reduction.standard])
    samples = []
    for seed in (1, 2, 3):
        rng, time = np.random.default_rng(seed), 0.02 * np.arange(500)
        one = Samples(ROBOT.joints, time, *five_sines(rng, time, 3))
        effort = model.effort(one, base) + noise * rng.normal(size=one.position.shape)
        samples.append(replace(one, effort=effort, measured=effort))
    return samples


COIL, TENSION = Spring(1, float(ANGLES[5]), 0.0), Spring(1, float(ANGLES[7]), 0.8)


@pytest.mark.parametrize(('part', 'torque', 'noise', 'shown'), [
    (COIL, -20.0, 0.02, True), (COIL, -0.2, 0.1, True), (COIL, -0.02, 0.1, False),
    (TENSION, 20.0, 0.02, True), (TENSION, -20.0, 0.1, False)])
def test_springs_are_chosen_that_relieve_their_joint(
    part: Spring, torque: float, noise: float, shown: bool
) -> None:
    """By more than noise, and by the simpler law unless the other one is better."""
    found = choose_parts('counterbalance', ROBOT, PLAIN, recordings(part, torque, noise))
    assert found == (structure_of(part) if shown else PLAIN)


def test_a_joint_has_one_spring() -> None:
    given = structure_of(COIL)
    assert choose_parts('counterbalance', ROBOT, given, recordings(TENSION, 20.0, 0.02)) == given
