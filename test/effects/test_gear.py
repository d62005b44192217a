"""effects/deflection.py: what gears show of the torque that passes through them: fit, ends, file.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.document import Section
from robot_dynid.effects.deflection import (
    LOAD_FEATURES,
    RESIDUALS,
    Deflection,
    GearModel,
    drop_gears,
    residual_from_plain,
)
from robot_dynid.errors import DataError
from robot_dynid.identified.record import DeflectionRecord, FitRecord, JointDeflection
from robot_dynid.types import FloatArray

#: stiffness, damping, two of the ripple, load
SIZE = np.array([9e3, 30.0, 300.0, -200.0, -1.0])


def features(count: int = 2000, seed: int = 0) -> FloatArray:
    """Return the features of a gear that bends under a load of 9 N m and what else there is."""
    rng = np.random.default_rng(seed)
    bent, phase = 1e-3 * (1.0 + 0.5 * rng.standard_normal(count)), rng.uniform(0.0, 6.3, count)
    load = 9e3 * bent + 3.0 * rng.standard_normal(count)
    return np.column_stack([
        bent, 0.02 * rng.standard_normal(count), bent * np.sin(phase), bent * np.cos(phase), load])


@pytest.mark.parametrize('ratio', [False, True])
def test_a_gear_is_found_and_stored(ratio: bool) -> None:
    """Without a gear ratio there is no ripple."""
    own = np.arange(len(SIZE)) if ratio else np.array([0, 1, 4])
    table, size = features()[:, own], SIZE[own]
    residual = 0.5 + table @ size + 1e-3 * np.random.default_rng(1).standard_normal(len(table))
    model = RESIDUALS['gear'].fit(table, residual)
    assert isinstance(model, GearModel)
    np.testing.assert_allclose(model.size, size, rtol=2e-3)
    assert model.size[-LOAD_FEATURES] == -1.0
    assert model.left == pytest.approx(1e-6, rel=0.1)
    again = residual_from_plain(model.plain())
    other = features(seed=2)[:, own]
    np.testing.assert_array_equal(again.mean(other), model.mean(other))
    np.testing.assert_array_equal(again.variance(other), model.variance(other))
    inside = (other[:, 0] > model.lower) & (other[:, 0] < model.upper)
    np.testing.assert_allclose(model.mean(other)[inside], (0.5 + other @ size)[inside],
                               rtol=0.0, atol=0.02)
    for key, value in (('size', []), ('size', [*size[:-1], np.nan]), ('upper', model.lower)):
        with pytest.raises(ValueError, match='gear'):
            residual_from_plain({**model.plain(), key: value})
    other_kind = RESIDUALS['gmr'].fit(table[:, :2], residual)
    assert drop_gears([model, None, other_kind]) == (None, None, other_kind)


def test_a_gear_that_bends_as_it_never_did_tells_nothing() -> None:
    table = features()
    model = RESIDUALS['gear'].fit(table, table @ SIZE)
    far = table[:1].repeat(2, axis=0)
    far[:, 0] = 0.02, -0.02
    np.testing.assert_allclose(model.mean(far), 0.0, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(model.variance(far), np.mean((table @ SIZE)**2))


def test_a_gear_that_does_not_bend_is_refused() -> None:
    table = features()
    table[:, 0] = 1e-3
    with pytest.raises(DataError, match='constant'):
        RESIDUALS['gear'].fit(table, table @ SIZE)


def test_loops_and_errors_are_told_joint_by_joint() -> None:
    joints = (JointDeflection('joint_1', True, '', 3.0, 2.0, 1.5, 'gear'),
              JointDeflection('joint_2', True, 'two encoders', 4.0, 3.0, 2.5),
              JointDeflection('joint_3', False, 'no deflection', 1.0, 0.5, 0.5, 'gmr'))

    def sections(**facts: Any) -> tuple[Section, ...]:
        model: Any = SimpleNamespace(record=FitRecord(**facts))
        return Deflection.sections(model)

    residual = DeflectionRecord('gear', 2, joints, loops='three', seconds={'friction': 1.25})
    (section,) = sections(residual=residual)
    errors, loops = section.tables
    assert section.text.startswith('Friction from sweeps, links and residual were fitted in turn, '
                                   '2 round(s).')
    assert [row.cells for row in errors.rows] == [
        ('joint_1', '3', '2', '1.5', 'gear', ''),
        ('joint_2', '4', '3', '2.5', 'yes', 'two encoders'),
        ('joint_3', '1', '0.5', '0.5', 'no', 'no deflection')]
    assert [row.cells for row in loops.rows] == [('friction', '1.25')]
    (section,) = sections(residual=DeflectionRecord('gear', 1, joints))
    assert section.text.startswith('Friction and links were fitted at once, 1 round(s).')
    assert section.tables[0].title == 'Held-out RMS error [N m]' and len(section.tables) == 1
    assert sections() == ()
