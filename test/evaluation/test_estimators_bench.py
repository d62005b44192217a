"""robot_dynid_evaluation/bench/estimators.py: the benchmark of the estimators shows what each is
for, also with less data."""

from __future__ import annotations

import pytest

from robot_dynid_evaluation.bench import estimators


def test_every_method_is_better_where_its_assumption_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimators, 'SECONDS', 10.0)
    monkeypatch.setattr(estimators, 'SEEDS', 2)
    rows = estimators.measure(lambda *_: None)
    ratios = {r['what']: r['ratio'] for r in rows if r['what'].endswith('links and rotors: error')}
    assert [what.split(', ')[-2] for what in ratios] == [
        'iv', 'trajectory', 'irls huber', 'irls tukey', 'gls']
    # the gain of gls is no larger than the scatter of so few noises; see test_joint_covariance
    for ratio, least in zip(list(ratios.values())[:4], (10.0, 10.0, 10.0, 30.0), strict=True):
        assert ratio > least
