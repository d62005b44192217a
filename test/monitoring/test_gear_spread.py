"""monitoring/deflected_observer.py: what gear torques and thresholds are worth, in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_arms import ARM, LENGTH, true_model, with_effects

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.noise_levels import NoiseLevels
from robot_dynid.identified.record import MotorEncoder
from robot_dynid.monitoring.deflected_observer import (
    DEFLECTED,
    GEAR,
    GEAR_SPREAD,
    SPREAD,
    DeflectedObserver,
)
from robot_dynid.monitoring.monitor import MonitorSettings, observer_of
from robot_dynid.monitoring.observer import EXTERNAL, RESIDUAL, THRESHOLD
from robot_dynid.types import FloatArray

NOISE, RATE_NOISE, OFFSET = np.array([[2e-7, 3e-7], [4e-5, 3e-5], [3e-6, 5e-6]])
STEP, SPEED = 0.002, np.array([0.7, -0.9])


def calibrated(model: IdentifiedModel) -> IdentifiedModel:
    """Return the model with known noise of its motor encoders."""
    encoders = tuple(MotorEncoder(joint, 1.0, 0.0, *each) for joint, *each in zip(
        ARM.joints, OFFSET, NOISE, RATE_NOISE, strict=True))
    return replace(model, record=replace(model.record, motor_encoders=encoders))


def wavy() -> IdentifiedModel:
    """Return a model with kinematic error and hysteresis, whose parameters are correlated."""
    model = with_effects((8e-4, 3e-4))[0]
    size, rng = len(model.names), np.random.default_rng(3)
    factor = np.triu(rng.normal(size=(size, size)))
    values = model.values + np.array([10.0 * (1 + name.endswith('2')) if name.startswith('Kc')
                                      else 0.0 for name in model.names])
    return calibrated(replace(
        model, values=values, std=0.01 * np.abs(model.values) + rng.uniform(0.1, 0.2, size),
        correlation_factor=factor / np.linalg.norm(factor, axis=0)))


def turning(rows: int = 400) -> tuple[FloatArray, FloatArray]:
    """Return states (N, 5, 2) of links at SPEED whose gears bend steadily, and their steps."""
    states, steps = np.zeros((rows, 5, 2)), np.full(rows, STEP)
    steps[0] = 0.0
    states[:, 0] = STEP * SPEED * np.arange(rows)[:, None]
    states[:, 1] = SPEED
    states[:, 3] = states[:, 0] + np.linspace([1e-3, 2e-4], [3e-3, 9e-4], rows)
    states[:, 4] = SPEED + 0.01
    return states, steps


def test_gear_torques_are_as_uncertain_as_parameters_encoders_and_hysteresis() -> None:
    """The torque is linear in K, D, s, the waves and the loop, whose past is known to a width."""
    own = wavy()
    states, steps = turning(40)
    states[:, :2] = 0.0  # the gears bend with their motors
    states[:, 3] = np.linspace([1e-3, 2e-4], [1.4e-3, 9e-4], 40)
    states[:, 4] = 0.03
    found = observer_of(own, MonitorSettings())(states, steps)
    known = own.standard
    covariance = own.correlation_factor.T @ own.correlation_factor * np.outer(own.std, own.std)
    for j in range(2):
        theta, k, d = states[:, 3, j], known[f'K{j + 1}'], known[f'D{j + 1}']
        sine, cosine = np.sin(200.0 * theta), np.cos(200.0 * theta)
        a, b = known[f'Ks{j + 1}'] / k, known[f'Kc{j + 1}'] / k
        bent = theta + a * sine + b * cosine
        rate = 0.03 * (1.0 + 200.0 * (a * cosine - b * sine))
        faded = np.exp(-(bent - bent[0]) / LENGTH)
        by = dict.fromkeys(own.names, np.zeros(40)) | {
            f'K{j + 1}': theta, f'D{j + 1}': rate, f's{j + 1}': np.ones(40),
            f'Ks{j + 1}': sine, f'Kc{j + 1}': cosine, f'ha{j + 1}': 1.0 - faded}
        slopes = np.array([by[name] for name in own.names])
        lever = np.append(0.0, np.full(39, STEP)) * k + d
        spread = np.sqrt(
            np.einsum('in,ij,jn->n', slopes, covariance, slopes)
            + k**2 * (NOISE[j]**2 + OFFSET[j]**2) + (lever * RATE_NOISE[j])**2
            + (known[f'ha{j + 1}'] * faded)**2 / 3.0)
        np.testing.assert_allclose(found[:, GEAR_SPREAD, j], spread, rtol=1e-6)
        np.testing.assert_allclose(found[:, GEAR, j], known[f's{j + 1}'] + k * bent + d * rate
                                   + known[f'ha{j + 1}'] * (1.0 - faded), rtol=1e-6)
    assert found.shape == (40, 14, 2) and np.isnan(found[:, SPREAD]).all()


@pytest.mark.parametrize('variance', [(4.0, 0.25), (0.01, 1e-4), (1e6, 0.0)])
def test_thresholds_in_motion_rise_by_two_deviations_above_the_usual(
    variance: tuple[float, float]
) -> None:
    """At most to those of the effort, which are those of joints of unknown stiffness."""
    plain = calibrated(true_model())
    shares = np.where(np.isin(plain.names, ['K1', 'D2']), 0.04, 1e-6)
    levels = NoiseLevels(np.array([3.0, 1.0]), np.array([2.0, 0.5]), np.full(2, 0.01))
    deflected = NoiseLevels(np.array([0.4, 0.3]), np.array([0.5, 0.2]), np.full(2, 0.01),
                            variance=np.array(variance))
    own = replace(plain, std=shares * np.abs(plain.values),
                  noise_levels=replace(levels, deflected=deflected))
    states, steps = turning()
    rise = np.array([2.0 * 2.6 + 1.5, 2.0 * 0.7 + 0.3])
    for model in (own, replace(own, std=np.where(
            np.isin(own.names, ['K2']), np.inf, own.std))):
        found = observer_of(model, MonitorSettings())(states, steps)[-1]
        excess = np.maximum(2.0 * (found[GEAR_SPREAD] - np.sqrt(variance)), 0.0)
        np.testing.assert_allclose(found[THRESHOLD], np.add([0.8, 0.6], np.minimum(excess, rise)))
        assert np.isfinite(found[GEAR_SPREAD]).tolist() == [True, model is own]


def test_motors_are_used_after_three_time_constants_each_joint_for_itself() -> None:
    """Eight steps of 1/256 s at a gain of 96 1/s, where stamps are exact."""
    own = calibrated(true_model())
    states, steps = turning(24)
    steps[1:] = 2.0**-8
    states[14, 4, 1] = np.nan
    found = DeflectedObserver(own, 96.0)(states, steps)[:, DEFLECTED]
    rows = np.arange(24)
    np.testing.assert_array_equal(found, np.stack([
        rows >= 8, ((rows >= 8) & (rows < 14)) | (rows >= 22)], axis=1))


def test_friction_that_grows_with_the_load_is_that_of_the_links() -> None:
    """On the effort of a steady motion nothing is left over."""
    own = calibrated(true_model(law='coulomb+load'))
    own = replace(own, structure=replace(own.structure, load=ARM.nominal), values=own.values
                  + np.where(np.isin(own.names, ['fw1', 'fw2']), 0.2, 0.0))
    states, steps = turning()
    q, qd = states[:, 0], states[:, 1]
    torque = own.frictionless_effort(q, qd, np.zeros_like(q))
    bent = torque / [own.standard['K1'], own.standard['K2']]
    states[:, 2] = torque + own.friction(q, qd)
    states[:, 3], states[:, 4] = q + bent, qd
    found = observer_of(own, MonitorSettings())(states, steps)[200:]
    grown = 0.2 * np.abs(torque[200:])
    assert (np.abs(found[:, EXTERNAL]) < 1e-6).all()
    assert (np.abs(found[:, RESIDUAL]) < 0.01 * grown).all()
