"""The momentum observer against MuJoCo, which applies what the observer has to find."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from monitored import external_torque
from tolerances import OBSERVED, SAME_FORMULA

from robot_dynid.dynamics.rigid_body import Momentum
from robot_dynid.errors import UsageError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.observer import Observer
from robot_dynid.simulation.plant import TIMESTEP, Plant
from robot_dynid.simulation.truth import (
    Truth,
    load_truth,
    true_base,
)
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.bench.arms import true_model

STEP = 4 * TIMESTEP
STEPS = 1000
GAIN = 25.0


def smooth_arm() -> tuple[Plant, IdentifiedModel]:
    """Return the seven-axis arm without dry friction, and its exact model."""
    model = true_model()
    rough = load_truth(model.robot)
    truth = Truth(rough.viscous, np.zeros_like(rough.coulomb), rough.rotor_inertia)
    values = true_base(model.robot, truth, model.reduction)
    return Plant(model.robot, truth), replace(model, values=values)


def swung(plant: Plant, outside: FloatArray, force: FloatArray | None = None
          ) -> tuple[MonitorInput, FloatArray]:
    """Swing the arm under smooth torques; return what was measured, and the external torque.

    ``outside`` (n,) N m acts on the joints, ``force`` (6,) on the last body at its centre of mass,
    both from the first step on.
    """
    model, data = plant.model, plant.data
    n = plant.robot.n
    plant.external = outside
    body = model.nbody - 1
    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    hold = plant.inverse(np.zeros(n), np.zeros(n), np.zeros(n))[0]
    weight = np.linspace(20.0, 1.0, n)
    rows = []
    for k in range(STEPS):
        q, qd = plant.state()
        truth = outside.copy()
        if force is not None:
            data.xfrc_applied[body] = force
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_jacBodyCom(model, data, linear, angular, body)
            truth += linear.T @ force[:3] + angular.T @ force[3:]
        time = k * STEP

        def drive(at: float) -> FloatArray:
            return hold + weight * np.sin(6.0 * at + np.arange(n))

        rows.append((q.copy(), qd.copy(), drive(time), truth))
        plant.step(drive(time + 0.5 * STEP))
    position, velocity, effort, external = (np.array(c) for c in zip(*rows, strict=True))
    return MonitorInput(STEP * np.arange(STEPS), position, velocity, effort), external


def first_order(values: FloatArray) -> FloatArray:
    """Return ``values`` (N, n) through the low-pass of the observer, from zero on."""
    share, out = -np.expm1(-GAIN * STEP), np.zeros_like(values)
    for k in range(1, len(values)):
        middle = 0.5 * (values[k] + values[k - 1])
        out[k] = out[k - 1] + share * (middle - out[k - 1])
    return out


def test_constant_torque_appears_with_the_time_constant_of_the_gain() -> None:
    plant, model = smooth_arm()
    torque = np.array([5.0, -4.0, 3.0, -2.0, 1.0, -0.8, 0.5])
    motion, _ = swung(plant, torque)
    found = external_torque(model, motion, GAIN)
    expected = torque * -np.expm1(-GAIN * motion.time)[:, None]
    assert np.abs(motion.velocity).max() > 1.0
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=OBSERVED)
    at_one = int(np.argmin(np.abs(motion.time - 1.0 / GAIN)))
    np.testing.assert_allclose(found[at_one] / torque, 1.0 - np.exp(-1.0),
                               rtol=0.0, atol=2.0 * OBSERVED)


@pytest.mark.parametrize('seed', range(4))
def test_force_on_a_body_appears_as_its_joint_torque(seed: int) -> None:
    plant, model = smooth_arm()
    rng = np.random.default_rng(seed)
    plant.set_state(rng.uniform(-1.0, 1.0, 7), np.zeros(7))
    force = np.concatenate([rng.normal(size=3) * 10.0, rng.normal(size=3)])
    motion, truth = swung(plant, np.zeros(7), force)
    found = external_torque(model, motion, GAIN)
    np.testing.assert_allclose(found, first_order(truth),
                               rtol=0.0, atol=OBSERVED * np.abs(truth).max())


def test_observer_finds_nothing_where_nothing_is() -> None:
    plant, model = smooth_arm()
    motion, _ = swung(plant, np.zeros(7))
    assert np.abs(external_torque(model, motion, GAIN)).max() < OBSERVED


def still(
    drive: FloatArray, torque: FloatArray, seed: int = 0
) -> tuple[IdentifiedModel, MonitorInput]:
    """Return a motion whose momentum grows by ``drive + torque`` (n,), in steps of any length."""
    rng = np.random.default_rng(seed)
    _, model = smooth_arm()
    time = np.cumsum(rng.uniform(1e-4, 0.1, 200))
    q = np.broadcast_to(rng.normal(size=7), (200, 7)).copy()
    momentum = rng.normal(size=7) + (drive + torque) * (time - time[0])[:, None]
    qd = np.linalg.solve(model.mass_matrix(q[0]), momentum.T).T.copy()
    rate = Momentum(model.links.robot, model.links.parameters)(q, qd)[1]
    return model, MonitorInput(time, q, qd, drive - rate + model.friction(q, qd))


@pytest.mark.parametrize('gain', [1.0, 1e3, 1e6])
def test_observer_is_stable_and_exact_at_any_gain_for_constant_torque(gain: float) -> None:
    drive, torque = np.random.default_rng(1).normal(size=(2, 7))
    model, motion = still(drive, torque)
    exact = torque * -np.expm1(-gain * (motion.time - motion.time[0]))[:, None]
    np.testing.assert_allclose(
        external_torque(model, motion, gain), exact, rtol=0.0, atol=1e4 * SAME_FORMULA)


def test_states_one_by_one_are_the_recording() -> None:
    model, motion = still(*np.random.default_rng(2).normal(size=(2, 7)))
    observer = Observer(model, GAIN)
    states = np.stack([motion.position, motion.velocity, motion.effort], axis=1)
    steps = np.diff(motion.time, prepend=motion.time[:1])
    single = [observer(states[k:k + 1], steps[k:k + 1])[0] for k in range(len(steps))]
    np.testing.assert_array_equal(single, Observer(model, GAIN).along(motion))


@pytest.mark.parametrize('gain', [0.0, -1.0, np.nan, np.inf])
def test_impossible_gains_are_refused(gain: float) -> None:
    model, motion = still(np.zeros(7), np.zeros(7))
    with pytest.raises(UsageError, match='observer gain must be positive'):
        external_torque(model, motion, gain)
