"""robot_dynid_evaluation/bench/health.py: the benchmark of health: its motion is one, its counts
are right, a load is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from scipy.stats import chi2

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid_evaluation.bench import health
from robot_dynid_evaluation.bench.fleet import ROBOT
from robot_dynid_evaluation.bench.health import Looked, moves, rows
from robot_dynid_extras.health.health import Group, Health


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
    stated = [rate * health.ARMS * health.UNCHANGED / 30.0 for rate in health.RATES]
    table = list(rows(np.array([2, int(stated[1]), int(2.0 * stated[2])]),
                      {('0.5 kg left on', 0.1): Looked([2.0, 4.0], [0.2, 0.3], [0.9, 0.9])}))
    assert [row['kept'] for row in table] == [False, True, False, None]
    assert float(table[2]['stated']) == pytest.approx(stated[2], rel=0.01)
    assert (table[3]['found'], table[3]['minutes']) == (2, '3')
    assert (table[3]['sees'], table[3]['ideal']) == ('25 %', '90 %')


def test_an_ideal_test_is_that_of_normal_deviates() -> None:
    """By drawing days: one axis is off, all by anything, and the others are compared with it."""
    own = SimpleNamespace(chance=0.04, groups=3 * [Group('', (0, 1, 2), shared=True)])
    rng = np.random.default_rng(0)
    days = 0.05 * rng.standard_normal((2, 40_000, 4, 3))
    off = days[0].mean(axis=1) - days[1, :, 0] - 0.2 * np.array([1.0, 0.0, 0.0])
    off -= rng.standard_normal((len(off), 1))
    ratio = np.abs(off[:, 0] - off[:, 1:].mean(axis=1))
    size = 0.05 * np.sqrt(1.25 * 1.5)
    found = np.mean(ratio > size * np.sqrt(chi2.isf(0.01, 1)))
    assert health.ideal(cast(Health, own), 0.05, 4) == pytest.approx(found, abs=0.01)


def test_a_load_is_found_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (('ARMS', 1), ('UNCHANGED', 1), ('SOON', 0.05), ('DAYS', (1, 2)),
                        ('DAY', 180.0), ('PLANTS', health.PLANTS[1:]), ('RATES', (0.1,))):
        monkeypatch.setattr(health, name, value)
    monkeypatch.setattr(health, 'LOOKED', (0.1,))
    table = {(row['days'], row['what']): row for row in health.measure(lambda *_: None)}
    assert table[2, '0.5 kg left on, 0.1 a month']['found'] == 1
    told = table[2, 'dry friction +20 %, 0.1 a month']
    assert float(told['sees'].split()[0]) > 20.0
    assert told['ideal'] == '71 %'
    assert all(row['found'] == 0 for (_, what), row in table.items() if 'false alarms' in what)
    assert {row['plant'] for row in table.values()} == {'outside the model'}


def test_an_alarm_of_a_day_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three days: it comes and goes on the first, stays over night, is new on the third."""
    monkeypatch.setattr(health, 'DAY', 60.0)
    said = iter(['one', '', 'one', 'one', 'one', '', '', '', '', 'one', '', ''])
    monkeypatch.setattr(health, 'RATES', (0.1,))
    monkeypatch.setattr(health, 'alarms', lambda _: {word} if (word := next(said)) else set())
    monkeypatch.setattr(health, 'followed', lambda *_: ((15.0 * k, ()) for k in range(1, 13)))
    arm = health.EverydayArm(health.PLANTS[0], 1, 0)
    assert health.unchanged(arm)[1] == [2]
