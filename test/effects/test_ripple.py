"""The ripple of harmonic drives: its features, its fit, its file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.effects.deflection import (
    RESIDUALS,
    RippleModel,
    deflections,
    feature_count,
    residual_from_plain,
)
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples, frozen

ROBOT = load_robot('planar_3r')
RATIO = 100.0
GEARED = replace(ROBOT, drive=replace(ROBOT.drive, gear_ratios=frozen(np.full(3, RATIO))))


def features(count: int = 2000, seed: int = 0) -> FloatArray:
    """Return deflections, rates, and deflections times sine and cosine of a phase."""
    rng = np.random.default_rng(seed)
    bent, phase = 1e-3 * (1.0 + 0.5 * rng.standard_normal(count)), rng.uniform(0.0, 6.3, count)
    return np.column_stack([bent, 0.02 * rng.standard_normal(count), bent * np.sin(phase),
                            bent * np.cos(phase)])


def states(speed: float, cutoff: float | None) -> Samples:
    """Return 10 s at one speed, the third joint without a motor encoder."""
    time = 0.02 * np.arange(500)
    q = np.repeat((speed * time)[:, None], 3, axis=1)
    motor = q + 1e-3
    motor[:, 2] = np.nan
    v = np.full_like(q, speed)
    return Samples(ROBOT.joints, time, q, v, np.zeros_like(q), cutoff=cutoff, motor_position=motor,
                   motor_velocity=v.copy())


@pytest.mark.parametrize('kind', ['gmr', 'rbf'])
def test_a_ripple_is_found_and_stored(kind: str) -> None:
    size = np.array([300.0, -200.0])
    table = features()
    residual = table[:, 2:] @ size + 1e-4 * np.random.default_rng(1).standard_normal(len(table))
    model = RESIDUALS[kind].fit(table, residual)
    assert isinstance(model, RippleModel)
    np.testing.assert_allclose(model.size, size, rtol=1e-3)
    again = residual_from_plain(model.plain())
    other = features(seed=2)
    np.testing.assert_array_equal(again.mean(other), model.mean(other))
    np.testing.assert_array_equal(again.variance(other), model.variance(other))
    np.testing.assert_allclose(model.mean(other), other[:, 2:] @ size, rtol=0.0, atol=2e-3)
    with pytest.raises(ValueError, match='ripple'):
        residual_from_plain({**model.plain(), 'ripple': []})


def test_without_gear_ratios_there_is_the_deflection_alone() -> None:
    found = deflections(ROBOT, states(0.1, None))
    assert found is not None
    assert found.shape == (500, 3, 2)
    assert feature_count(ROBOT) == 2
    assert not isinstance(RESIDUALS['gmr'].fit(features()[:, :2], features()[:, 0]), RippleModel)


def test_the_waves_turn_twice_per_motor_turn() -> None:
    samples = states(0.1, None)
    found = deflections(GEARED, samples)
    assert found is not None
    assert found.shape == (500, 3, feature_count(GEARED))
    assert samples.motor_position is not None
    phase = 2.0 * RATIO * samples.motor_position[:, :2]
    for column, wave in ((2, np.sin(phase)), (3, np.cos(phase))):
        np.testing.assert_allclose(found[:, :2, column], 1e-3 * wave, rtol=0.0, atol=1e-12)
    assert np.isnan(found[:, 2, [0, 2, 3]]).all()


@pytest.mark.parametrize(('speed', 'passes'), [(0.05, True), (1.0, False), (1.55, False)])
def test_waves_beyond_the_filter_do_not_come_back_as_aliases(speed: float, passes: bool) -> None:
    """At 50 samples per second waves of 49.3 Hz would look like waves of 0.7 Hz."""
    found = deflections(GEARED, states(speed, 5.0))
    assert found is not None
    size = np.abs(found[50:-50, :2, 2:]).max()
    assert size == pytest.approx(1e-3, rel=0.05) if passes else size < 1e-6
