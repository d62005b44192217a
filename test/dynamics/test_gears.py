"""dynamics/gears.py: deflections, torques and tables of elastic gears, against their formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robot_dynid.dynamics.gears import Gears
from robot_dynid.errors import ModelError, UsageError

#: joints 2 and 0 of three; the first gear has an error of slope 0.56, the second none
GEARS = Gears((2, 0), np.array([0.7, 1.3]), np.array([900.0, 1700.0]), np.array([2.5, 4.0]),
              np.array([0.3, -0.8]), np.array([[160.0, 3e-3, -1.8e-3], [200.0, 0.0, 0.0]]),
              np.array([[1.0, 0.0, 2e-4, 1.5], [0.0, 1.0, 3e-4, 2.0], [1.0, 1.0, 5e-4, 0.25]]))
MOTOR = np.array([[0.31, -0.22], [0.7, 0.4]])


def error_of(motor: Any) -> Any:
    """Return the kinematic error [rad] of the first gear."""
    return 3e-3 * np.sin(160.0 * motor) - 1.8e-3 * np.cos(160.0 * motor)


def slope_of(motor: Any) -> Any:
    """Return its slope."""
    return 0.48 * np.cos(160.0 * motor) + 0.288 * np.sin(160.0 * motor)


def test_the_kinematic_error_has_its_derivatives() -> None:
    error, slope, curve = GEARS.error(MOTOR)
    np.testing.assert_allclose(error[:, 0], error_of(MOTOR[:, 0]))
    np.testing.assert_allclose(slope[:, 0], slope_of(MOTOR[:, 0]))
    np.testing.assert_allclose(curve[:, 0], -160.0**2 * error_of(MOTOR[:, 0]))
    assert not np.array([error, slope, curve])[..., 1].any()


def test_deflection_and_torque_are_those_between_motor_and_link() -> None:
    rate, link = np.array([[1.1, -0.6], [0.4, 0.9]]), np.array([MOTOR - 2e-3, MOTOR + 0.5])
    bent = GEARS.deflection(np.array([MOTOR, rate]), link)
    expected = MOTOR - link[0], rate - link[1]
    expected[0][:, 0] += error_of(MOTOR[:, 0])
    expected[1][:, 0] += slope_of(MOTOR[:, 0]) * rate[:, 0]
    np.testing.assert_allclose(bent, expected, rtol=1e-12)
    np.testing.assert_allclose(GEARS.torque(bent), [900.0, 1700.0] * expected[0]
                               + [2.5, 4.0] * expected[1] + [0.3, -0.8])


@pytest.mark.parametrize('orders', [2, 3])
def test_motors_move_so_that_gears_have_their_output(orders: int) -> None:
    rate, push = np.array([[1.1, -0.6], [0.4, 0.9]]), np.array([[3.0, 2.0], [-1.0, 4.0]])
    error, slope, curve = GEARS.error(MOTOR)
    output = np.array([MOTOR + error, (1.0 + slope) * rate,
                       (1.0 + slope) * push + curve * rate**2])[:orders]
    given = output.copy()
    np.testing.assert_allclose(GEARS.motor(output), [MOTOR, rate, push][:orders], rtol=1e-9)
    np.testing.assert_array_equal(output, given)


def test_masks_and_sums_are_by_gear() -> None:
    assert GEARS.wavy.tolist() == [True, False]
    waves = np.array([[0.0, 1e-3, 1e-3], [200.0, 0.0, 1e-3]])
    assert replace(GEARS, waves=waves).wavy.tolist() == [False, True]
    assert replace(GEARS, waves=np.array([[200.0, 1e-3, 0.0]])).wavy.tolist() == [True, True]
    assert GEARS.amplitudes.tolist() == [2.0, 1.75] and GEARS.hysteretic.tolist() == [True, True]
    one = replace(GEARS, states=GEARS.states.copy())
    one.states[1, 3] = 0.0
    assert one.hysteretic.tolist() == [False, True] and one.amplitudes.tolist() == [0.0, 1.75]
    linear = GEARS.linear
    assert not linear.wavy.any() and not linear.hysteretic.any() and linear.joints == (2, 0)
    np.testing.assert_array_equal(
        [linear.inertia, linear.stiffness, linear.damping, linear.offset],
        [GEARS.inertia, GEARS.stiffness, GEARS.damping, GEARS.offset])


def test_coordinates_of_motors_follow_those_of_the_joints() -> None:
    assert GEARS.motors(3) == (4, 1, 3)
    springs = GEARS.springs(3)
    np.testing.assert_array_equal(springs.axes, [[0, 0, -1, 1, 0], [-1, 0, 0, 0, 1]])
    np.testing.assert_array_equal([springs.stiffness, springs.damping, springs.offset],
                                  [[900.0, 1700.0], [2.5, 4.0], [0.3, -0.8]])
    np.testing.assert_array_equal(GEARS.table(3), [
        [3, 2, 900.0, 2.5, 0.3, 160.0, 3e-3, -1.8e-3], [4, 0, 1700.0, 4.0, -0.8, 200.0, 0.0, 0.0]])


@pytest.mark.parametrize(('change', 'message'), [
    ({'inertia': [0.7, 0.0]}, 'elastic joint a: inertia is 0; it must be above zero: identify '
     'from a motion that excites it, with method feasible, or make the joint rigid'),
    ({'stiffness': [-3.0, 5.0]}, 'elastic joint c: stiffness is -3; it must be above zero: '
     'identify from a motion that excites it, with method feasible, or make the joint rigid'),
    ({'damping': [1.0, np.inf]}, 'elastic joint a: damping is inf; it must be finite: identify '
     'from a motion that excites it, with method feasible, or make the joint rigid'),
    ({'waves': [[160.0, 4e-3, 5e-3], [0.0, 9.0, 9.0]]}, 'elastic joint c: its kinematic error '
     'would reverse the motion of the link (slope 1.0245, must be below 1): check gear_ratios'),
    ({'waves': [[160.0, 0.0, 6.25e-3]]}, 'elastic joint c: its kinematic error would reverse the '
     'motion of the link (slope 1, must be below 1): check gear_ratios')])
def test_gears_that_cannot_be_are_named(change: dict[str, Any], message: str) -> None:
    GEARS.require_possible(('a', 'b', 'c'))
    replace(GEARS, damping=np.array([-1.0, 0.0])).require_possible(('a', 'b', 'c'))
    with pytest.raises(ModelError) as caught:
        replace(GEARS, **{name: np.array(values) for name, values in change.items()}
                ).require_possible(('a', 'b', 'c'))
    assert str(caught.value) == message
    with pytest.raises(UsageError) as wrong:
        replace(GEARS, offset=np.zeros(3)).require_possible(('a', 'b', 'c'))
    assert str(wrong.value) == 'offset of 2 elastic joints has shape (3,)'
