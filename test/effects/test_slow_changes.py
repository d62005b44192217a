"""effects/slow_changes.py: friction that warms up and drifts: numbers, tables and the report."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.effects.slow_changes import (
    SLOW,
    Adaptation,
    FrictionResidual,
    SlowChanges,
    SlowChangeTracker,
    SlowCoefficients,
    SlowTables,
    Warming,
    warmth_along,
)
from robot_dynid.identified.record import SlowChange
from robot_dynid.types import FloatArray

WARMING = Warming(np.array([12.0, 300.0]), 5.0, np.array([0.1, -0.02]),
                  np.array([[0.2, 0.05], [0.3, 0.07]]), np.array([0.01, 0.02]),
                  np.array([[0.03, 0.04], [0.05, 0.06]]), np.array([2.0, 50.0]))
SLOW_COEFFICIENTS = SlowCoefficients(0.1, 0.03, 0.2, 30.0, 10.0, 0.5)


def recording(count: int = 40, waves: int = 0, gap: float | None = None) -> FrictionResidual:
    rng = np.random.default_rng(1)
    viscous, dry = rng.normal(size=(2, count))
    viscous[3] = dry[3] = 0.0
    power = np.abs(rng.normal(size=count)) * 4.0
    return FrictionResidual(10.0 + 0.1 * np.arange(count), viscous, dry, power,
                            rng.normal(size=count), rng.normal(size=(count, waves)), gap)


def test_steps_of_a_recording_begin_with_the_gap() -> None:
    for gap, first in ((None, 0.0), (7.5, 7.5)):
        np.testing.assert_allclose(recording(4, gap=gap).steps, [first, 0.1, 0.1, 0.1])


def test_heat_is_shared_as_the_friction_is() -> None:
    one = recording(waves=2)
    heat = one.heat
    np.testing.assert_allclose(heat.sum(axis=1), one.power)
    used = np.arange(40) != 3
    share = one.viscous[used] / (one.viscous + one.dry)[used]
    np.testing.assert_allclose(heat[used, 0], one.power[used] * share)
    assert heat[3].tolist() == [0.0, one.power[3]]
    np.testing.assert_array_equal(one.columns, np.column_stack(
        [one.viscous, one.dry, one.waves]))


@pytest.mark.parametrize(('change', 'says'), [
    ({'rise': np.zeros(3)}, 'shapes that do not match'),
    ({'fall_std': np.zeros((2, 1))}, 'shapes that do not match'),
    ({'seconds_std': np.zeros(1)}, 'shapes that do not match'),
    ({'seconds': np.array([12.0, 0.0])}, 'numbers outside their ranges'),
    ({'power': 0.0}, 'numbers outside their ranges'),
    ({'rise_std': np.array([0.0, np.nan])}, 'numbers outside their ranges')])
def test_damaged_warming_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(WARMING, **change)


def test_small_joints_warm_up_at_any_power_and_in_any_time() -> None:
    small = replace(WARMING, power=1e-3, seconds=np.array([0.5, 0.9]))
    assert small.power == 1e-3


def test_warming_of_no_time_constant_is_refused() -> None:
    none = np.zeros(0)
    with pytest.raises(ValueError, match='shapes'):
        Warming(none, 5.0, np.zeros(2), np.zeros((2, 0)), np.zeros(2), np.zeros((2, 0)), none)


def test_torque_of_warmth_is_rise_less_falls_times_friction() -> None:
    one = recording()
    warmth = np.random.default_rng(2).uniform(size=(40, 2))
    viscous = 0.1 - 0.2 * warmth[:, 0] - 0.05 * warmth[:, 1]
    dry = -0.02 - 0.3 * warmth[:, 0] - 0.07 * warmth[:, 1]
    np.testing.assert_allclose(WARMING.scales(warmth), 1.0 + np.stack([viscous, dry], axis=1))
    np.testing.assert_allclose(WARMING.torque(one, warmth), viscous * one.viscous + dry * one.dry)
    np.testing.assert_array_equal(WARMING.law, [[0.1, 0.2, 0.05], [-0.02, 0.3, 0.07]])


def test_warmth_along_starts_from_the_decayed_state_and_ends_in_it() -> None:
    seconds = np.array([12.0, 300.0])
    state = np.array([0.8, 0.5])
    first = warmth_along(recording(gap=6.0), seconds, 5.0, state)
    np.testing.assert_allclose(first[0], [0.8 * np.exp(-0.5), 0.5 * np.exp(-0.02)])
    np.testing.assert_array_equal(state, first[-1])
    power = np.full(400, 20.0)
    one = FrictionResidual(0.1 * np.arange(400.0), power, power, power, power, np.zeros((400, 0)))
    found = warmth_along(one, seconds, 5.0, np.ones(2))
    np.testing.assert_allclose(found, 4.0 * (1.0 - np.exp(-one.time[:, None] / seconds)))


@pytest.mark.parametrize('at', range(6))
def test_slow_coefficients_below_their_ranges_are_refused(at: int) -> None:
    values = [0.0, 0.0, 0.0, 30.0, 10.0, 0.5]
    SlowCoefficients(*values)
    for wrong in (-1e-9, 0.0, np.nan):
        if wrong == 0.0 and at < 3:
            continue
        changed = [*values[:at], wrong, *values[at + 1:]]
        with pytest.raises(ValueError, match='slow coefficients'):
            SlowCoefficients(*changed)


def test_prior_and_unknown_state_have_the_deviations_of_every_column() -> None:
    np.testing.assert_allclose(SLOW_COEFFICIENTS.prior(2), [
        [0.1, 0.03, 0.2, 0.2], [1.0 / 30.0, 1.0 / 30.0, 0.1, 0.1]])
    np.testing.assert_allclose(SLOW_COEFFICIENTS.unknown(1), [
        [0.0] * 3, [0.0] * 3, [0.01, 0.0, 0.0], [0.0, 0.0009, 0.0], [0.0, 0.0, 0.04]])


def test_tracker_adds_warming_then_the_coefficients_of_what_is_left() -> None:
    parts = [recording(waves=1), recording(waves=1, gap=3.0)]
    track = SlowChangeTracker(Adaptation(WARMING, SLOW_COEFFICIENTS), 1)
    warm, state = np.zeros(2), SLOW_COEFFICIENTS.unknown(1)
    for one in parts:
        warmed, both = track(one)
        expected = WARMING.torque(one, WARMING.warmth(one, warm))
        np.testing.assert_allclose(warmed, expected)
        means = SLOW_COEFFICIENTS.means(replace(one, left=one.left - expected), state)
        np.testing.assert_allclose(both, expected + np.sum(one.columns * means, axis=1))
        assert np.any(both != warmed) and np.any(warmed)
    torques = SLOW_COEFFICIENTS.torque(parts)
    np.testing.assert_array_equal(SLOW_COEFFICIENTS.torque(parts[:1])[0], torques[0])
    alone = SlowChangeTracker(Adaptation(None, SLOW_COEFFICIENTS), 1)
    for one, torque in zip(parts, torques, strict=True):
        warmed, both = alone(one)
        assert not warmed.any()
        np.testing.assert_allclose(both, torque)
    only = SlowChangeTracker(Adaptation(WARMING))(recording())
    np.testing.assert_array_equal(only[0], only[1])


def test_tables_hold_the_laws_and_priors_of_all_joints() -> None:
    short = Warming(np.array([40.0]), 8.0, np.array([0.3, 0.4]), np.array([[0.5], [0.6]]),
                    np.zeros(2), np.zeros((2, 1)), np.zeros(1))
    adaptations = (Adaptation(short), None, Adaptation(WARMING, SLOW_COEFFICIENTS))
    tables = SlowTables.of(adaptations, 25.0, np.array([0.01, 0.02, 0.03, 0.04]))
    np.testing.assert_allclose(tables.rates, [[1 / 40, 1], [1, 1], [1 / 12, 1 / 300]])
    np.testing.assert_allclose(tables.laws, [
        [[8.0, 0.3, 0.5, 0.0], [8.0, 0.4, 0.6, 0.0]], [[1.0, 0.0, 0.0, 0.0]] * 2,
        [[5.0, 0.1, 0.2, 0.05], [5.0, -0.02, 0.3, 0.07]]])
    np.testing.assert_allclose(tables.prior, [
        np.zeros((2, 2)), np.zeros((2, 2)), [[0.1, 0.03], [1 / 30, 1 / 30]]])
    np.testing.assert_allclose(tables.settings, [
        [1.0, 4.0, 0.01, 25.0], [1.0, 4.0, 0.02, 25.0], [0.5, 4.0, 0.03, 25.0]])
    assert 'slow' not in Adaptation(short).plain() and 'warming' in Adaptation(short).plain()
    past, states, scales = tables.memory()
    assert past.shape[0] == 3 and not past.any()
    assert past.shape[1] - SlowTables.of(adaptations[:1], 25.0, np.ones(1)).memory()[0].shape[
        1] == 1, 'one number more for one time constant more'
    expected: FloatArray = np.zeros((3, 4, 2))
    expected[2, 2, 0], expected[2, 3, 1] = 0.01, 0.0009
    np.testing.assert_allclose(states, expected)
    np.testing.assert_array_equal(scales, np.ones((2, 3)))
    empty = SlowTables.of((), 25.0, np.ones(3))
    assert empty.rates.shape == (0, 1) and empty.settings.shape == (0, 4)


def test_sections_tell_gains_and_laws_joint_by_joint() -> None:
    changes = (SlowChange('a', 0.123, 4.56, 0.0789, 7.89), SlowChange('b', 0.01, 1.2, 0.02, 1.3))
    parts = (Adaptation(replace(WARMING, power=5.126), SLOW_COEFFICIENTS), None)

    def sections(record: tuple[SlowChange, ...], parts: tuple[Adaptation | None, ...]) -> Any:
        model: Any = SimpleNamespace(
            robot=SimpleNamespace(joints=('a', 'b')), parts_of=lambda _: parts,
            record=SimpleNamespace(slow_changes=record))
        return SlowChanges.sections(model)

    (section,) = sections(changes, parts)
    assert section.title == 'Slow changes'
    assert section.text == f'{SLOW}Friction that warms up shows at a.'
    gains, laws = section.tables
    assert [row.cells for row in gains.rows] == [
        ('a', '12.3', '4.6', 'yes', '7.9', '7.9', 'yes', '0.1', '0.03', '30'),
        ('b', '1.0', '1.2', 'no', '2.0', '1.3', 'no', '–', '–', '–')]
    assert [row.cells for row in laws.rows] == [
        ('a', '12 ± 3.9', '5.13', '20.0 ± 5.9', '30.0 ± 9.8'),
        ('a', '300 ± 98', '5.13', '5.0 ± 7.8', '7.0 ± 11.8')]
    (section,) = sections(changes[1:], (None, None))
    assert section.text == f'{SLOW}The recordings show no friction that warms up.'
    assert len(section.tables) == 1
    assert sections((), (None, None)) == ()
