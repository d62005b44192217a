"""dynamics/regressor_columns.py: signals of the motion and of histories, offsets in memory."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics.regressor_columns import Signals, places


def test_histories_are_stacked_and_copied_only_if_there_are_several() -> None:
    motion = np.random.default_rng(0).normal(size=(3, 4, 2))
    none, one, two = np.zeros((0, 4)), np.arange(8.0).reshape(2, 4), np.full((1, 4), 9.0)
    assert Signals.of(motion, (none,)).history.shape == Signals.of(motion).history.shape == (0, 4)
    alone = Signals.of(motion, (none, one))
    assert np.shares_memory(alone.history, one) and alone.history.shape == (2, 4)
    np.testing.assert_array_equal(
        Signals.of(motion, (one, none, two)).history, [*one, *two])
    np.testing.assert_array_equal(alone.motion, motion)


def test_places_are_the_offsets_of_equations_and_columns_in_memory() -> None:
    whole = np.arange(5.0 * 6 * 7).reshape(5, 6, 7)
    part = whole[1:4, 2:6:2]
    np.testing.assert_array_equal(whole.reshape(-1)[part[0, 0, 0].astype(int) + places(part)],
                                  part[:, :, 0])
