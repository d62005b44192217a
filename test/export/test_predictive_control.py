"""The example of predictive control: it reaches its target, and owes that to friction."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('casadi', reason='optional oracle is not installed: casadi')

from identified_models import with_law

from robot_dynid.export.functions import casadi_functions

EXAMPLE = Path(__file__).resolve().parents[2] / 'examples' / 'predictive_control.py'


def test_the_arm_reaches_its_target_within_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = with_law('planar_3r', 'dahl+load+levelling', 2.0)
    model.save(tmp_path / 'model.yaml')
    monkeypatch.setattr(sys, 'argv', [str(EXAMPLE), str(tmp_path / 'model.yaml')])
    found = runpy.run_path(str(EXAMPLE), run_name='__main__')
    assert 'from the target in the end' in capsys.readouterr().out
    goal, positions = found['goal'], found['positions']
    assert 0.999 < found['shares'].max() <= 1.0  # the limits matter, and hold
    assert np.abs(positions[-1] - goal).max() < 1e-3
    # the compiled motion is the one that was planned, but for a step of 30 ms in place of 1 ms
    assert np.abs(positions - found['predicted']).max() < 5e-4

    mechanism = model.mechanism
    none = replace(mechanism.friction, straight=0.0 * mechanism.friction.straight,
                   terms=mechanism.friction.terms[:0])
    blind = casadi_functions(replace(mechanism, friction=none)).inverse
    stopped, *_ = found['reach'](model, goal, blind)
    assert np.abs(stopped[-1] - goal).max() > 5e-3
