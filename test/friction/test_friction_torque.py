"""friction/axes.py: friction of all axes at once against the law of every axis."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.effects import JointFriction, axes_of
from robot_dynid.friction import AxisFriction, Coulomb, law_from
from robot_dynid.identified.states import FrictionTorque
from robot_dynid.kernels.friction import HOLDS, LOAD, ROW, SCALE, WEIGHT, WIDTH
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


def test_tables_hold_straight_friction_apart_and_equal_terms_once() -> None:
    """Viscous friction and offset of each axis; what acts one way, above a speed or fading is not
    straight."""
    laws = [law_from('coulomb+levelling', {'width': 0.3, 'levelling': {'speed': 0.3}}),
            law_from('asymmetric'), law_from('two-speed'),
            law_from('maxwell', {'lengths': [1e-3, 1e-2], 'width': 0.02}), law_from('none')]
    values = [np.array([2.0, 3.0, 0.5, 0.7]), np.array([1.0, 2.0, 3.0, 4.0]), np.arange(1.0, 9.0),
              np.array([5.0, 6.0, 7.0, 8.0]), np.array([-9.0])]
    axes = np.random.default_rng(0).normal(size=(5, 3))
    found = AxisFriction.of(axes, laws, values)
    assert found.straight.tolist() == [[2.0, 0.5], [0.0, 0.0], [0.0, 0.0], [5.0, 8.0], [0.0, -9.0]]
    by_axis = [found.terms[found.terms[:, ROW] == i] for i in range(5)]
    assert [len(terms) for terms in by_axis] == [2, 4, 12, 2, 0]  # of the first, one holds
    slides = found.sliding
    assert not slides.terms[:, [HOLDS, WIDTH]].any()
    first, last = (slides.terms[slides.terms[:, ROW] == i] for i in (0, 3))
    assert first[:, WEIGHT].tolist() == [3.7] and first[:, SCALE].tolist() == [0.3]
    assert last[:, WEIGHT].tolist() == [13.0] and last[:, SCALE].tolist() == [0.02]
    assert all(not table.flags.writeable for table in found.tables)


def test_friction_without_load_drops_what_depends_on_it() -> None:
    law, values = law_from('coulomb+load'), [np.array([1.0, 2.0, 0.5, 0.3])]
    load = np.array([[0.4, 0.6]]), np.ones((2, 10))
    loaded, dropped = (AxisFriction.of(np.ones((1, 2)), [law], values, one)
                       for one in (load, None))
    assert loaded.needs_load is True and dropped.needs_load is False
    assert loaded.transmission.tolist() == load[0].tolist() and loaded.links.shape == (2, 10)
    assert loaded.terms[:, LOAD].tolist() == [0.0, 0.3] and not dropped.terms[:, LOAD].any()
    assert (dropped.transmission.shape, dropped.links.shape) == ((0, 2), (0, 10))
    plain = AxisFriction.of(np.ones((1, 2)), [Coulomb(0.1)], [np.ones(3)], load)
    assert (plain.transmission.shape, plain.links.shape) == ((0, 2), (0, 10))
    none = AxisFriction.none(3)
    assert (none.axes.shape, none.straight.shape) == ((0, 3), (0, 2))
    turned = loaded.on([2, 0], 4)
    assert turned.axes.tolist() == [[1.0, 0.0, 1.0, 0.0]]
