"""effects/ripple_search.py: orders that recordings show, aliases of the others, and speeds at
which amplitudes are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from robot_dynid.effects.ripple import ABOVE_FAST, TorqueRipple, amplitudes
from robot_dynid.effects.ripple_search import JointResidual, fit_ripple, remove_trends
from robot_dynid.types import frozen

RATE, SPEED, RAMP, REST = 50.0, 1.0, 0.25, 0.2
#: orders [1/rad] between which waves pass one turn more from row to row at SPEED
TURN = 2.0 * np.pi * RATE / SPEED


def sweeps(
    seed: int, waves: Sequence[tuple[float, float]] = (), starts: int = 40, ramp: float = RAMP,
    noise: float = 0.3, rest: float = 1.0,
) -> JointResidual:
    """Return rows of moves there and back at one speed, with rests between them.

    ``waves`` are orders and sizes [N m]; ``starts`` is how many poses the moves begin in. What a
    model leaves beside them and the ``noise`` is slow in motion, and another in every ``rest``.
    """
    rng = np.random.default_rng(seed)
    poses, parts, here = rng.uniform(-1.0, 1.0, starts), [], 0.0
    for k in range(40):
        way = poses[k % starts] + (1.2 if k % 2 else -1.2) - here
        cruise = abs(way) / SPEED - ramp
        time = np.arange(0.0, cruise + 2.0 * ramp + REST, 1.0 / RATE)
        left = np.clip(np.minimum(time, cruise + 2.0 * ramp - time) / max(ramp, 1e-9), 0.0, 1.0)
        speed = np.sign(way) * SPEED * left
        bow = rng.normal() + np.sin(2.0 * time + rng.uniform(0.0, 6.0))
        parts.append(np.stack([here + np.cumsum(speed) / RATE, speed,
                               np.where(left > 0.0, bow, rest * rng.normal())]))
        here = parts[-1][0, -1]
    q, qd, residual = np.hstack(parts)
    residual += noise * rng.standard_normal(len(q))
    for order, size in waves:
        residual += size * np.sin(order * q)
    rows = np.arange(len(q))
    return JointResidual(q, qd, np.zeros_like(q), residual, rows * 5 // len(q), rows // 10,
                         0.05 * SPEED, SPEED / ABOVE_FAST, 1.0 / RATE)


@pytest.mark.parametrize('seed', [1, 2, 5, 16])
def test_fit_ripple_finds_no_wave_in_slow_residuals_and_rests(seed: int) -> None:
    found = fit_ripple(sweeps(seed, rest=4.0))
    assert found.waves == found.aliased == ()


def test_a_wave_above_the_nyquist_frequency_shows_by_many_moves() -> None:
    data = sweeps(1, [(404.0, 0.6)])
    assert np.pi * RATE < 404.0 * SPEED
    found = fit_ripple(data)
    assert [wave.order for wave in found.waves] == [404.0]
    assert found.aliased == ()


def test_waves_that_moves_do_not_tell_apart_are_named_and_not_used() -> None:
    """All moves begin in the same two poses, and nothing is between rest and full speed."""
    found = fit_ripple(sweeps(1, [(90.0, 1.0)], starts=2, ramp=0.0))
    assert found.ripple is None and found.waves == ()
    assert found.rms_with == found.rms_without
    (wave,) = found.aliased
    same = np.array([wave.order, *wave.aliases])
    assert len(same) > 1 and np.any(np.abs(same - 90.0) < 3.0)
    off = (same - 90.0) / TURN
    back = (same + 90.0) / TURN  # the other way round
    assert np.all(np.minimum(np.abs(off - np.round(off)), np.abs(back - np.round(back))) < 0.02)


def test_an_order_that_no_row_is_slow_enough_for_is_not_used() -> None:
    data = sweeps(1, [(2500.0, 1.0)], noise=0.05)
    assert data.highest_order < 2500.0
    slow = np.quantile(np.abs(data.velocity[data.moving]), 0.05)
    assert data.highest_order == pytest.approx(np.pi * RATE / slow)
    found = fit_ripple(data)
    assert found.ripple is None
    assert [wave.order for wave in found.aliased][:1] == [2500.0]
    assert found.aliased[0].aliases == pytest.approx((abs(2500.0 - 8.0 * TURN),))


def test_lines_are_taken_off_block_by_block() -> None:
    block = np.repeat([3, 4, 7], [4, 1, 10])
    rows = np.arange(15.0)
    lines = np.where(block == 3, 2.0 * rows, 5.0 - 0.3 * rows)
    np.testing.assert_allclose(remove_trends(lines, block), 0.0, rtol=0.0, atol=1e-12)
    wave = np.array([1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(remove_trends(lines[:4] + wave, block[:4]), wave,
                               rtol=0.0, atol=1e-12)


def test_no_amplitude_is_known_above_the_top_speed_recorded() -> None:
    speeds = np.array([-2.0, -1.01, -1.0, 0.0, 1.0, 1.01])
    fast = 0.5  # half of the top speed
    inside = np.abs(speeds) <= 1.0
    assert np.all(amplitudes(speeds, 0.05, fast)[inside, 0] == 1.0)
    assert not amplitudes(speeds, 0.05, fast)[~inside].any()
    ripple = TorqueRipple(frozen([100.0]), frozen([0.0]), 0.0, 0.05, fast, frozen(np.ones(6)))
    torque = ripple.effort(np.full(6, 0.3), speeds, np.zeros(6))
    assert np.all((torque != 0.0) == inside)
