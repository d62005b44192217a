"""validation/slow_changes.py: residuals of joints along recordings, term by term."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.signals.prepare import Repaired
from robot_dynid.types import Part, Samples
from robot_dynid.validation import slow_changes
from robot_dynid.validation.slow_changes import Course, Remainder, SlowChanges

#: two axes of two joints; viscous friction [N m s/rad] and offset [N m] of each axis
AXES, STRAIGHT = np.array([[1.0, 0.5], [0.25, -2.0]]), np.array([[2.0, 0.3], [5.0, -0.7]])
TIME = 0.5 * np.arange(6.0)
STAMPS = np.array([0.1, 0.6, 0.6, 1.7, 2.1, 2.4])
FRESH = [0, 1, 3, 4, 5]


def model_of(ripple: bool = True, adaptation: tuple[Any, ...] = (None, None)) -> Any:
    """Return a model whose links take 10, 20, 30 times the motion, and ripple a tenth of the rest.
    """
    parts = {'ripple': (None, SimpleNamespace(
        coefficients=(1.0, 2.0, 3.0), columns=lambda *phases: np.stack(phases, axis=1))),
        'adaptation': adaptation}
    return SimpleNamespace(
        axis_friction=SimpleNamespace(axes=AXES, straight=STRAIGHT),
        frictionless_effort=lambda q, qd, qdd: 10.0 * q + 20.0 * qd + 30.0 * qdd,
        ripple_torque=SimpleNamespace(any=ripple, of_samples=lambda samples, effort: 0.1 * effort),
        parts_of=parts.__getitem__)


def samples_of(raw: bool = True, later: float = 0.0) -> Samples:
    """Return constant accelerations, of which the third row repeats the stamp of the second."""
    qdd = np.tile([2.0, -1.0], (6, 1))
    qd = np.array([-1.5, 0.75]) + TIME[:, None] * qdd
    q = np.array([0.2, 0.4]) + TIME[:, None] * [-1.5, 0.75] + 0.5 * TIME[:, None]**2 * qdd
    measured = np.random.default_rng(0).normal(size=(6, 2))
    return Samples(('a', 'b'), later + TIME, q, qd, qdd, measured, measured,
                   stamps=later + STAMPS, raw_position=q + 7.0 if raw else None)


SMOOTH = np.random.default_rng(1).uniform(-60.0, 60.0, (6, 2))


def test_residuals_have_friction_power_and_what_is_left_of_rows_with_a_measurement() -> None:
    samples = samples_of()
    found = Remainder.of(model_of(), samples, SMOOTH, 3.5)
    q, qd, qdd = samples.moved.position, samples.moved.velocity, samples.moved.acceleration
    assert found.gap == 3.5
    np.testing.assert_array_equal(found.rows, FRESH)
    np.testing.assert_array_equal(found.time, STAMPS[FRESH])
    for row, k in enumerate(FRESH):
        speeds = [qd[k, 0] + 0.5 * qd[k, 1], 0.25 * qd[k, 0] - 2.0 * qd[k, 1]]
        viscous = [2.0 * speeds[0] + 0.25 * 5.0 * speeds[1],
                   0.5 * 2.0 * speeds[0] - 2.0 * 5.0 * speeds[1]]
        offset = [0.3 + 0.25 * -0.7, 0.5 * 0.3 - 2.0 * -0.7]
        for j in range(2):
            friction = SMOOTH[k, j] - 10.0 * q[k, j] - 20.0 * qd[k, j] - 30.0 * qdd[k, j]
            assert found.viscous[j, row] == pytest.approx(viscous[j])
            assert found.dry[j, row] == pytest.approx(friction - viscous[j] - offset[j])
            assert found.power[j, row] == pytest.approx(
                max((friction - offset[j]) * qd[k, j], 0.0))
            assert found.left[j, row] == pytest.approx(
                samples.measured[k, j] - 1.1 * SMOOTH[k, j])
    assert 0 < np.count_nonzero(found.power) < found.power.size


def test_residuals_of_a_joint_have_the_columns_of_its_ripple() -> None:
    samples = samples_of()
    found = Remainder.of(model_of(), samples, SMOOTH, None)
    plain, rippled = found.of_joint(0), found.of_joint(1)
    assert plain.waves.shape == found.without_waves(1).waves.shape == (5, 0)
    np.testing.assert_array_equal(rippled.waves, np.stack([
        samples.raw_position[FRESH, 1], samples.at_stamps(samples.velocity)[FRESH, 1],
        SMOOTH[FRESH, 1]], axis=1))
    for name in ('viscous', 'dry', 'power', 'left'):
        np.testing.assert_array_equal(getattr(rippled, name), getattr(found, name)[1])
        np.testing.assert_array_equal(getattr(plain, name), getattr(found, name)[0])
    for model, raw in ((model_of(ripple=False), True), (model_of(), False)):
        without = Remainder.of(model, samples_of(raw), SMOOTH, None)
        assert without.phases is None and without.of_joint(1).waves.shape == (5, 0)


def repaired(epoch: float | None = None, place: Part | None = None) -> Repaired:
    return Repaired('x', (), 0.5, (), place=place, epoch=epoch,
                    began=None if place is None else place.began)


def test_gaps_are_from_the_last_stamp_of_a_recording_to_the_first_of_the_next() -> None:
    course = Course(model_of())
    found = [course(repaired(epoch), samples_of(later=later), SMOOTH).gap for epoch, later in (
        (100.0, 0.0), (110.0, 20.0), (None, 0.0), (200.0, 0.0))]
    assert found == [None, pytest.approx(10.0 + 20.1 - 2.4), None, None]
    parts = Course(model_of())
    place = Part(0.0, 2.5, 0.0, 'x')
    found = [parts(repaired(None, place), samples_of(later=later), SMOOTH).gap
             for later in (0.0, 2.5, 4.8, 4.8)]
    assert found == [None, pytest.approx(0.2), None, None]


def test_slow_changes_follow_the_joints_that_have_any(monkeypatch) -> None:
    """The second of two joints, with the columns of its ripple; the other one is left alone."""
    made: list[Any] = []

    def tracker(one: Any, waves: int) -> Any:
        made.append((one, waves))
        return lambda residual: (residual.left + one, residual.viscous + waves)

    monkeypatch.setattr(slow_changes, 'SlowChangeTracker', tracker)
    assert not SlowChanges(model_of()).any and made == []
    model = model_of(adaptation=(None, 40.0))
    slow = SlowChanges(model)
    assert slow.any and made == [(40.0, 3)]
    warmed, adapted = slow(repaired(), samples_of(), SMOOTH)
    residual = Remainder.of(model, samples_of(), SMOOTH, None)
    np.testing.assert_array_equal(warmed.T, [np.zeros(5), residual.left[1] + 40.0])
    np.testing.assert_array_equal(adapted.T, [np.zeros(5), residual.viscous[1] + 3])
    SlowChanges(model_of(adaptation=(8.0, None)))
    assert made[1:] == [(8.0, 0)]
