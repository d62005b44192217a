"""robot_dynid_evaluation/bench/plan.py: the plan for many arms: its arithmetic, and that it is
measured."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robot_dynid.cli.main import main
from robot_dynid_evaluation.bench import plan
from robot_dynid_evaluation.trust import ROOT

TRUST: Any = SimpleNamespace(**runpy.run_path(str(ROOT / 'docs' / 'trust_page.py')))

COST = plan.Cost(raw=1e9, information=1e6, reading=1e5, reduce=86.4, read=0.36, judge=0.072,
                 peak=5e8)


def test_plan_rows_multiply_the_costs_of_one_arm_by_the_arms() -> None:
    found = {row['what']: (row['one'], row['all'], row['unit of all']) for row in plan.rows(COST)}
    assert found == {
        'reduce a recording to information': (86.4, pytest.approx(10.0), 'cores, day and night'),
        'memory of a worker': (500.0, pytest.approx(5.0), 'GB, all of them'),
        'raw recording': (1000.0, pytest.approx(10.0), 'TB a day'),
        'network, raw recordings': (1000.0, pytest.approx(1e7 / 86400.0), 'MB/s'),
        'information': (1.0, pytest.approx(10.0), 'GB a day'),
        'network, information': (1.0, pytest.approx(1e4 / 86400.0), 'MB/s'),
        'readings, kept for ever': (100.0, pytest.approx(365.0), 'GB a year'),
        'read 20 sessions of every arm': (0.36, pytest.approx(20.0), 'h of one core'),
        'judge arms of 20 sessions': (0.072, pytest.approx(0.2), 'h of one core'),
        'memory of the comparison, 20 sessions': (4.0, pytest.approx(40.0), 'GB')}


def test_the_page_has_the_figures_of_the_record() -> None:
    [record] = [one for one in TRUST.records() if one['kind'] == 'plan']
    page = (ROOT / 'docs' / 'fleet.md').read_text().partition('## Plan for')[2]
    found = {row['what']: row for row in record['figures']['rows']}
    for row in found.values():
        assert f'{TRUST.number(row["all"])} {row["unit of all"]}' in page, row['what']
    ratio = found['raw recording']['one'] / found['information']['one']
    assert f'{ratio:.1g}' == '3e+02' and 'raw recordings are 300 times as much' in page
    session, rest = (found[what]['all'] for what in (
        'read 20 sessions of every arm', 'judge arms of 20 sessions'))
    assert int(24.0 / (session + rest)) == 4 and 'with four times as many sessions' in page


def test_plan_measured_returns_costs_of_recordings_and_sessions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = iter(({'processor s': 3.0, 'peak MB': 300.0}, {'processor s': 5.0, 'peak MB': 400.0}))

    def used(folder: Path, *words: str) -> dict[str, float]:
        assert main([*words, '--json']) == 0
        capsys.readouterr()
        return next(taken)

    monkeypatch.setattr(plan, 'used', used)
    monkeypatch.setattr(plan, 'LENGTHS', (0.005, 0.01))
    monkeypatch.setattr(plan, 'RATE', 200.0)
    monkeypatch.setattr(plan, 'DRAWN', 12)
    found = plan.measured(lambda *_: None)
    assert found.reduce == pytest.approx(400.0) and found.peak == pytest.approx(4e8)
    assert found.raw > 200.0 * 3600.0 * 22 * 8  # an hour: stamps, three numbers of seven joints
    assert 1e4 < found.reading < 1e6 and found.information > 1e4
    assert found.read > 0.0 and found.judge > 0.0
