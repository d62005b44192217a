"""The modelled effort by cause, held against independent dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording

from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, Samples
from robot_dynid.validation.effort_parts import CAUSES, effort_parts
from robot_dynid.validation.validate import validate

MODEL = nominal_model('planar_3r')
STEP = 1e-6


def motion() -> Samples:
    """Return random states of the arm."""
    q, qd, qdd = np.random.default_rng(3).uniform(-1.5, 1.5, (3, 40, 3))
    return Samples(MODEL.joints, np.arange(40.0), q, qd, qdd, starts=tuple(range(40)))


def inertia_by_energy(samples: Samples) -> FloatArray:
    """Return d/dt (M qd) - 1/2 d(qd' M qd)/dq, from differences of the mass matrix alone."""
    q, qd, qdd = samples.position, samples.velocity, samples.acceleration
    slopes = np.stack([(MODEL.mass_matrix(q + STEP * e) - MODEL.mass_matrix(q - STEP * e)) /
                       (2.0 * STEP) for e in np.eye(3)], axis=1)  # (K, by joint, n, n)
    matrix = MODEL.mass_matrix(q)
    rate = np.einsum('kc,kcij,kj->ki', qd, slopes, qd)
    return np.asarray(np.einsum('kij,kj->ki', matrix, qdd) + rate
                      - 0.5 * np.einsum('ki,kcij,kj->kc', qd, slopes, qd))


def test_causes_are_those_of_lagrange() -> None:
    samples = motion()
    effort = MODEL.torque_model.effort(samples, MODEL.values)
    found = effort_parts(MODEL, samples, effort)
    size = np.abs(effort).max()
    assert np.allclose(sum(getattr(found, cause) for cause in CAUSES), effort,
                       rtol=0.0, atol=1e-12 * size)
    assert np.allclose(found.gravity, MODEL.gravity(samples.position), atol=1e-9 * size)
    assert np.allclose(found.inertia, inertia_by_energy(samples), atol=1e-6 * size)
    qd = samples.velocity
    sliding = 2.0 * qd + 1.5 * np.clip(qd / 0.05, -1.0, 1.0)
    assert np.allclose(found.friction, sliding, atol=1e-9 * size)
    assert np.allclose(found.other, 0.0, atol=1e-9 * size)


def test_effort_parts_puts_unexplained_effort_into_other() -> None:
    samples = motion()
    effort = MODEL.torque_model.effort(samples, MODEL.values)
    found = effort_parts(MODEL, samples, effort + np.array([0.0, 3.0, 0.0]))
    assert np.allclose(found.other, [0.0, 3.0, 0.0], atol=1e-9 * np.abs(effort).max())


def test_parts_of_a_recording_add_up_to_its_prediction_at_the_stamps() -> None:
    log = recording(MODEL.robot, 1, 5.0)
    model = replace(MODEL, preprocessing=Preprocessing(10.0, effort_lag=2e-3))
    with pytest.warns(UserWarning, match='joint_3'):
        (trace,) = validate(model, [log]).traces
    assert trace.split is not None
    total = sum(getattr(trace.split, cause) for cause in CAUSES)
    assert np.allclose(total, trace.predicted, rtol=0.0, atol=1e-12 * np.abs(total).max())
    assert total.shape == trace.measured.shape
