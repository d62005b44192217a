"""robot_dynid_evaluation/bench/gears.py: the benchmark of gears shows what hysteresis does to
damping, also with less data."""

from __future__ import annotations

import pytest

from robot_dynid_evaluation.bench import gears


def test_damping_is_found_beside_hysteresis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gears, 'SECONDS', 4.0)
    monkeypatch.setattr(gears, 'SEEDS', 1)
    monkeypatch.setattr(gears, 'ARMS', {'hysteresis': gears.ARMS['hysteresis']})
    error, deviation, ratio, outside = gears.measure(lambda *_: None)
    assert error['what'] == 'hysteresis, damping: error'
    assert error['ours'] < 25.0
    assert error['peer'] > 4.0 * error['ours']
    assert 1.0 < deviation['ours'] < 50.0
    assert ratio['peer'] > 3.0 * ratio['ours'] > 0.0
    assert outside['ours'] == 0.0
    assert outside['peer'] > 50.0
