"""test/support/warming_arm.py: the arm whose gears ripple and warm up is what it says it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import SAME_FORMULA
from warming_arm import Joint, WarmingArm, heated

PLAIN = Joint(viscous=2.0, dry=1.0, rotor=0.1, noise=0.0)
#: of the step by step integration, 11 ms in 40 s
INTEGRATED = 1e-3


def arm(first: Joint) -> WarmingArm:
    """Return the arm with a first joint of its own."""
    return WarmingArm((first, PLAIN, PLAIN))


def recorded(first: Joint, seed: int = 0):
    """Return one short recording, the same motion whatever the joint."""
    (found,) = arm(first).recordings(np.random.default_rng(seed), number=1, seconds=20.0)
    return found


def test_a_joint_at_constant_speed_warms_exponentially() -> None:
    joint = replace(PLAIN, power=0.5, seconds=40.0)
    time = np.arange(0.0, 120.0, 0.011) + 0.011
    heat = 2.0 * 0.3**2 + 1.0 * 0.3
    expected = heat / 0.5 * (1.0 - np.exp(-time / 40.0))
    assert heated(joint, time, np.full(len(time), -0.3), 0.0) == pytest.approx(
        expected, abs=INTEGRATED)
    still = heated(joint, time, np.zeros(len(time)), 0.8)
    assert still == pytest.approx(0.8 * np.exp(-time / 40.0), abs=INTEGRATED)


def test_friction_falls_by_the_warmth_that_its_power_makes() -> None:
    falls = recorded(replace(PLAIN, falls=(0.3, 0.1), power=0.1, seconds=20.0)).scales
    assert np.all(falls[:, 1:] == 1.0)
    warmth = (1.0 - falls[:, 0]) / [0.3, 0.1]
    assert warmth[:, 0] == pytest.approx(warmth[:, 1], rel=SAME_FORMULA)
    assert warmth[-1, 0] > 0.05 and np.all(warmth[:, 0] >= 0.0)


def test_pauses_cool_and_the_time_of_day_goes_on() -> None:
    joint = replace(PLAIN, falls=(0.3, 0.1), power=0.1, seconds=20.0)
    first, second = arm(joint).recordings(np.random.default_rng(0), 2, 20.0, pause=10.0)
    cooled = (1.0 - first.scales[-1, 0]) * np.exp(-0.5)
    assert 1.0 - second.scales[0, 0] == pytest.approx(cooled, rel=0.02)
    assert second.log.time[0] - first.log.time[-1] == pytest.approx(10.0, abs=0.1)


def test_ripple_goes_with_the_angle_of_the_motor() -> None:
    plain = recorded(PLAIN)
    waves = recorded(replace(PLAIN, waves=((500.0, 0.4),), stiffness=1e4))
    assert plain.log.effort is not None and waves.log.effort is not None
    link = WarmingArm((PLAIN,) * 3, late=0.0).recordings(
        np.random.default_rng(0), 1, 20.0)[0].log.position[:, 0]
    motor = link + plain.log.effort[:, 0] / 1e4
    expected = plain.log.effort[:, 0] + 0.4 * np.cos(500.0 * motor)
    assert waves.log.effort[:, 0] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_array_equal(waves.log.effort[:, 1:], plain.log.effort[:, 1:])
