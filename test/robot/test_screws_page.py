"""docs/screws.md: the walk on it is followed literally, and ends at the truth."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tolerances import PARAMETER_ERROR

from robot_dynid import IdentifiedModel, load_robot
from robot_dynid.cli.main import main
from robot_dynid.dynamics import rigid_body
from robot_dynid.simulation.truth import distance, load_truth, true_base

PAGE = (Path(__file__).resolve().parents[2] / 'docs' / 'screws.md').read_text(encoding='utf-8')


def test_screws_page_identifies_the_true_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for language, text in re.findall(r'^```(\w+)\n(.*?)^```$', PAGE, re.M | re.S):
        if language == 'yaml':
            (tmp_path / 'crane.yaml').write_text(text)
        elif language == 'python':
            exec(compile(text, 'record.py', 'exec'), {})
        else:
            for line in text.splitlines():
                words = [a or b for a, b in re.findall(r"'([^']*)'|(\S+)", line)]
                assert words[0] == 'robot-dynid' and main(words[1:]) == 0, line
    robot, model = load_robot('crane.yaml'), IdentifiedModel.load('crane.model.yaml')
    true = true_base(robot, load_truth(robot, 'crane.yaml'), model.reduction)
    assert distance(model.values, true) < PARAMETER_ERROR
    for name in ('identified.urdf', 'again.urdf'):
        other = load_robot(tmp_path / name)
        q, v, a = np.random.default_rng(0).normal(size=(3, 9, 4))
        found = rigid_body.inverse_dynamics(other, q, v, a)
        expected = rigid_body.inverse_dynamics(robot, q, v, a, model.feasible_links)
        assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
    told = capsys.readouterr()
    assert 'NOT checked' not in told.err + told.out, 'the shapes are there'
