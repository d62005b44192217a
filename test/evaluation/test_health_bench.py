"""The benchmark of health: its motion is one, its counts are right, a load is found."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid_evaluation.bench import health
from robot_dynid_evaluation.bench.fleet import ROBOT
from robot_dynid_evaluation.bench.health import moves, rows


def test_moves_keep_the_limits_and_are_derivatives() -> None:
    limits = motion_limits(load_robot(ROBOT))
    time = np.arange(0.0, 60.0, 1e-3)
    q, qd, qdd = moves(limits, time, np.random.default_rng(0))
    assert np.all((q > limits.lower) & (q < limits.upper))
    assert 0.3 < np.max(np.abs(qd) / limits.velocity) <= health.SPEED + 1e-9
    assert np.max(np.abs(qdd) / limits.acceleration) <= health.SPEED + 1e-9
    assert np.allclose(np.gradient(q, 1e-3, axis=0)[1:-1], qd[1:-1], atol=1e-3)
    assert np.allclose(np.gradient(qd, 1e-3, axis=0)[1:-1], qdd[1:-1], atol=0.5)
    assert np.allclose(q[-1], q[0]), 'a lap ends where it began'


def test_more_alarms_than_stated_are_told() -> None:
    hours = health.ARMS * health.HOURS
    most = health.RATES[1] * hours / health.MONTH_HOURS
    table = list(rows(np.array([1, int(most)]), {'0.5 kg left on': [2.0, 4.0]}))
    assert [row['kept'] for row in table] == [False, True, None]
    assert float(table[1]['stated']) == pytest.approx(most, rel=0.01)
    assert (table[2]['found'], table[2]['minutes']) == (2, '3')


def test_a_load_is_found_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (('ARMS', 1), ('HOURS', 0.05), ('SOON', 0.05), ('DAYS', (2,)),
                        ('PLANTS', health.PLANTS[1:])):
        monkeypatch.setattr(health, name, value)
    table = {row['what']: row for row in health.measure(lambda *_: None)}
    assert table['0.5 kg left on']['found'] == 1
    assert all(row['found'] == 0 for what, row in table.items() if what.startswith('false'))
    assert {row['plant'] for row in table.values()} == {'outside the model'}
