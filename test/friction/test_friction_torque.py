"""friction/axes.py: friction of all axes at once against the law of every axis."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.friction import Coulomb
from robot_dynid.identified.states import FrictionTorque
from robot_dynid.robot.robot_file import load_robot


@pytest.mark.parametrize('name', ['seven_axis', 'tx40'])  # tx40: two joints turn one motor
@pytest.mark.parametrize('count', [1, 50])
def test_torque_of_all_axes_is_the_sum_of_their_laws(name: str, count: int) -> None:
    robot = load_robot(name)
    axes = axes_of(robot)
    rng = np.random.default_rng(4)
    laws = [Coulomb(width) for width in rng.uniform(0.01, 0.2, len(axes.labels))]
    values = {f'{p}{label}': rng.normal() for label in axes.labels for p in Coulomb().parameters}
    q, qd = 0.2 * rng.normal(size=(2, count, axes.matrix.shape[1]))
    expected = np.zeros_like(qd)
    for label, row, law in zip(axes.labels, axes.matrix, laws, strict=True):
        speed = qd @ row
        of_axis = (values[f'fv{label}'] * speed + values[f'f0{label}']
                   + values[f'fc{label}'] * np.clip(speed / law.width, -1.0, 1.0))
        expected += of_axis[:, None] * row
    torque = FrictionTorque(robot, JointFriction(axes, tuple(laws)).with_values(values))
    np.testing.assert_allclose(torque(q, qd), expected, rtol=1e-12, atol=1e-14)
