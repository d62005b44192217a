"""effects/ripple.py: torque ripple as waves over position: columns, phase, file."""

from __future__ import annotations

import numpy as np
import pytest
import tolerances

from robot_dynid.effects.ripple import RippleTorque, TorqueRipple
from robot_dynid.types import FloatArray, frozen

GENERATOR = np.random.default_rng(3)
STATES = tuple(GENERATOR.normal(size=(3, 40, 3)) * np.array([1.0, 0.8, 30.0])[:, None, None])


def a_ripple(waves: int = 2, seed: int = 1) -> TorqueRipple:
    generator = np.random.default_rng(seed)
    return TorqueRipple(
        frozen(generator.integers(100, 1300, waves)), frozen(generator.uniform(-8e-3, 0.0, waves)),
        2e-5, 0.05, 0.9, frozen(generator.normal(size=6 * waves)))


def by_hand(ripple: TorqueRipple, q: float, qd: float, tau: float) -> float:
    """Return the formula of the docstring, for one state."""
    shares = (1.0, min(abs(qd) / ripple.fast, 1.0), np.exp(-abs(qd) / ripple.slow))
    torque = 0.0
    for k, (order, delay) in enumerate(zip(ripple.orders, ripple.delays, strict=True)):
        phase = order * (q + ripple.compliance * tau + delay * qd)
        for s, share in enumerate(shares):
            a, b = ripple.coefficients[6 * k + 2 * s:6 * k + 2 * s + 2]
            torque += share * (a * np.sin(phase) + b * np.cos(phase))
    return torque


def test_columns_times_coefficients_are_the_formula() -> None:
    ripple = a_ripple()
    q, qd, tau = (x[:, 0] for x in STATES)
    expected = [by_hand(ripple, *state) for state in zip(q, qd, tau, strict=True)]
    np.testing.assert_allclose(ripple.columns(q, qd, tau) @ ripple.coefficients, expected,
                               rtol=0.0, atol=tolerances.SAME_FORMULA)
    np.testing.assert_allclose(ripple.effort(q, qd, tau), expected,
                               rtol=0.0, atol=tolerances.SAME_FORMULA)


def test_ripple_torque_of_all_joints_equals_that_of_each_joint() -> None:
    ripples = (a_ripple(), None, a_ripple(3, seed=2))
    together = RippleTorque(ripples)(*STATES)
    alone: FloatArray = np.stack([
        np.zeros(40) if one is None else one.effort(*(x[:, j] for x in STATES))
        for j, one in enumerate(ripples)], axis=1)
    np.testing.assert_allclose(together, alone, rtol=0.0, atol=tolerances.SAME_FORMULA)
    assert not RippleTorque((None, None, None))(*STATES).any()


def test_waves_of_a_ripple_add_up_to_its_effort() -> None:
    ripple = a_ripple(3)
    states = tuple(x[:, 0] for x in STATES)
    found = [ripple.wave(order + 0.1, *states) for order in ripple.orders]
    np.testing.assert_allclose(sum(torque for _, torque in found), ripple.effort(*states),
                               rtol=0.0, atol=tolerances.SAME_FORMULA)
    np.testing.assert_array_equal(np.stack([phase for phase, _ in found], axis=1),
                                  ripple.phases(*states))


def test_ripple_torque_round_trips_through_plain_types() -> None:
    ripple = a_ripple()
    again = RippleTorque.read(ripple.plain())
    assert again.plain() == ripple.plain()


@pytest.mark.parametrize('change', [
    {'orders': [0.0, 5.0]}, {'delays': [0.0]}, {'slow': 0.0}, {'coefficients': [1.0] * 6},
    {'compliance': float('nan')}, {'orders': [], 'delays': [], 'coefficients': []}])
def test_a_damaged_one_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        RippleTorque.read({**a_ripple().plain(), **change})
