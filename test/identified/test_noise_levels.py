"""identified/noise_levels.py: levels at other gains, of wider errors, and in files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.identified.noise_levels import NoiseLevels

LEVELS = NoiseLevels(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.05, 0.06]), 20.0)
JOINTS = ('a', 'b')


def test_levels_grow_with_the_square_root_of_a_larger_gain_only() -> None:
    np.testing.assert_allclose(LEVELS.at_gain(45.0), [1.5, 3.0])
    np.testing.assert_allclose(LEVELS.at_gain(22.0), np.sqrt(1.1) * LEVELS.moving)
    np.testing.assert_array_equal(LEVELS.at_gain(5.0), LEVELS.moving)
    assert NoiseLevels(LEVELS.moving, LEVELS.holding, LEVELS.speed).gain == 30.0


def test_levels_widen_by_the_deviate_that_one_in_a_thousand_exceeds() -> None:
    both = replace(LEVELS, deflected=replace(LEVELS, moving=np.array([0.5, 0.7])))
    found = both.widened(np.array([0.2, 1.0]))
    np.testing.assert_allclose(found.moving, [np.hypot(1.0, 0.658), np.hypot(2.0, 3.29)])
    assert found.deflected is not None
    np.testing.assert_allclose(found.deflected.moving, [np.hypot(0.5, 0.658),
                                                        np.hypot(0.7, 3.29)])
    np.testing.assert_array_equal(found.holding, LEVELS.holding)
    assert LEVELS.widened(np.zeros(2)).deflected is None


def test_levels_come_back_from_their_numbers_by_joint() -> None:
    whole = replace(LEVELS, deflected=replace(LEVELS, gain=25.0, variance=np.array([7.0, 8.0])))
    plain = whole.plain(JOINTS)
    rows = {'a': {'moving': 1.0, 'holding': 3.0, 'speed': 0.05},
            'b': {'moving': 2.0, 'holding': 4.0, 'speed': 0.06}}
    assert plain == {'gain': 20.0, 'joints': rows, 'deflected': {'gain': 25.0, 'joints': {
        'a': {**rows['a'], 'variance': 7.0}, 'b': {**rows['b'], 'variance': 8.0}}}}
    assert NoiseLevels.from_plain(plain, JOINTS).plain(JOINTS) == plain
    swapped = NoiseLevels.from_plain(plain, ('b', 'a'))
    assert swapped.moving.tolist() == [2.0, 1.0] and swapped.deflected is not None
    assert swapped.deflected.variance is not None
    assert swapped.deflected.variance.tolist() == [8.0, 7.0]
    with pytest.raises(ValueError, match='not those of the model'):
        NoiseLevels.from_plain(plain, ('a', 'b', 'c'))
    del plain['deflected']['joints']['a']['variance']
    with pytest.raises(ValueError, match='joints without variance among others with it'):
        NoiseLevels.from_plain(plain, JOINTS)
