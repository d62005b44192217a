"""friction/axes.py: friction of all axes at once against the law of every axis."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.friction import AxisFriction, Coulomb, law_from
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


def test_load_dependent_friction_stays_beside_friction_without_load() -> None:
    """In both orders: torques add up, the load of either axis is that of its own."""
    rng = np.random.default_rng(0)
    links, speed = rng.normal(size=(3, 10)), rng.normal(size=(5, 3))
    axes, plain_axes = rng.normal(size=(2, 3)), rng.normal(size=(1, 3))
    law = law_from('coulomb+load')
    values = [rng.uniform(0.5, 2.0, len(law.parameters)) for _ in axes]
    loaded = AxisFriction.of(axes, [law, law], values, (axes, links))
    plain = AxisFriction.of(plain_axes, [Coulomb(0.05)], [np.array([1.0, 2.0, 0.5])])
    load = rng.normal(size=(5, 2))
    expected = loaded.torque(speed, load) + plain.torque(speed)
    for both, order in ((loaded.combine(plain), [0, 1, 2]), (plain.combine(loaded), [2, 0, 1])):
        np.testing.assert_array_equal(both.links, links)
        np.testing.assert_array_equal(
            both.transmission, np.vstack([axes, np.zeros((1, 3))])[order])
        beside = np.column_stack([load, np.full(5, 99.0)])[:, order]
        np.testing.assert_allclose(both.torque(speed, beside), expected, rtol=1e-12, atol=1e-12)
    assert plain.combine(plain).transmission.shape == (0, 3)
