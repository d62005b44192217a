"""The C function that compensates a wrist sensor, against the one in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('casadi', reason='CasADi, which makes the C code, is not installed')
pytest.importorskip('mujoco')

from compiled_c import Compiled
from identified_models import nominal_model
from wrist_plant import Plant, arm

from robot_dynid.cli.main import main
from robot_dynid.dynamics.wrist import WristCompensation


@pytest.mark.always
def test_the_function_agrees_with_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant, robot, model = Plant(rpy=(0.9, -0.4, 2.0)), arm(), nominal_model('ur10e')
    sensor = plant.sensor()
    compiled = Compiled(model.to_c(sensor), tmp_path)
    q, qd, qdd = np.random.default_rng(4).uniform(-2.0, 2.0, (3, 20, robot.n))
    reading = np.random.default_rng(5).normal(size=(20, 6)) * 20.0
    expected = WristCompensation(robot, sensor)
    (wrench,) = compiled('compensate_wrench', [(6,)], q, qd, qdd, reading)
    np.testing.assert_allclose(wrench, expected(reading, q, qd, qdd), rtol=0.0, atol=1e-11)
    still = np.zeros_like(q)
    (wrench,) = compiled('compensate_wrench', [(6,)], q, still, still, reading)
    np.testing.assert_allclose(wrench, expected(reading, q), rtol=0.0, atol=1e-11)

    sensor.save(tmp_path / 'sensor.yaml')
    model.save(tmp_path / 'model.yaml')
    words = ['export', str(tmp_path / 'model.yaml'), '--wrist-sensor',
             str(tmp_path / 'sensor.yaml')]
    assert main([*words, '--c', str(tmp_path / 'code')]) == 0
    assert 'compensate_wrench' in (tmp_path / 'code' / 'ur10e.h').read_text()
    capsys.readouterr()
    assert main([*words, '--out', str(tmp_path / 'arm.urdf')]) == 2
    assert '--wrist-sensor is for C code: add --c DIR' in capsys.readouterr().err
    words[1] = 'ur10e'
    assert main([*words, '--out', str(tmp_path / 'arm.urdf')]) == 2
    assert 'is a robot, not an identified model' in (error := capsys.readouterr().err)
    assert error.rstrip().endswith(', and not --wrist-sensor')
