"""robot_dynid_evaluation/bench/c.py: the benchmark of generated C code calls what it says."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from identified_models import AUTO, model_with_laws
from tolerances import WRITTEN_OUT

from robot_dynid.errors import MissingDependency
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_evaluation.bench import c as bench
from robot_dynid_evaluation.bench.timing import random_motion


def test_loops_of_c_compute_what_the_model_does() -> None:
    if shutil.which('cc') is None:
        pytest.skip('no compiler: cc is not installed')
    model = model_with_laws(load_robot('planar_3r'), AUTO)
    samples = random_motion(model.robot, 20)
    q, qd, qdd = samples.position, samples.velocity, samples.acceleration
    effort = model.inverse(q, qd, qdd)
    with bench.written_out(model.to_c()) as code:
        for name, states, expected in (
                ('inverse_dynamics', (q, qd, qdd), model.frictionless_effort(q, qd, qdd)),
                ('inverse_dynamics_with_friction', (q, qd, qdd), effort),
                ('forward_dynamics', (q, qd, effort - model.friction(q, qd, qdd)), qdd),
                ('forward_dynamics_with_friction', (q, qd, effort), qdd)):
            found = code(name, states, 2)
            assert np.abs(found - expected).max() <= 10.0 * WRITTEN_OUT * np.abs(expected).max()


def test_the_c_benchmark_reports_a_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    model = model_with_laws(load_robot('planar_3r'), AUTO)
    with pytest.raises(MissingDependency, match='no C compiler'), bench.written_out(model.to_c()):
        pass
