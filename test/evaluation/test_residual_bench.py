"""robot_dynid_evaluation/bench/residual.py: the table of errors by effect, and what a robot itself
repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.errors import UsageError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import RawLog
from robot_dynid_evaluation.bench import residual

ROBOT = load_robot('planar_3r')
#: kg at the last link, and share of the load that goes into dry friction
LOAD, FRICTION = 0.5, 0.2


def loaded(log: RawLog) -> RawLog:
    """Return the recording with a load whose weight also makes friction."""
    assert log.velocity is not None and log.effort is not None
    links = ROBOT.nominal.copy()
    links[-1, :2] += [LOAD, 0.1 * LOAD]
    still = np.zeros_like(log.position)

    def weight(of: np.ndarray) -> np.ndarray:
        return inverse_dynamics(ROBOT, log.position, still, still, of)

    bare, whole = weight(ROBOT.nominal), weight(links)
    dry = FRICTION * np.tanh(log.velocity / 0.01) * (np.abs(whole) - np.abs(bare))
    return replace(log, source='loaded', effort=log.effort + whole - bare + dry)


def noisy(seed: int) -> RawLog:
    """Return a recording of one motion with noise of its own, alike for a tenth of a second."""
    log = recording(ROBOT, 1)
    assert log.effort is not None
    rng = np.random.default_rng(seed)
    slow = np.repeat(rng.standard_normal((len(log.time) // 20, ROBOT.n)), 20, axis=0)
    return replace(log, source=f'noise {seed}', effort=log.effort + 0.3 * slow)


def test_errors_in_the_band_are_those_of_slow_errors_only() -> None:
    time = np.cumsum(np.random.default_rng(0).choice([0.010, 0.012], 4000))
    error = np.stack([np.sin(2.0 * np.pi * f * time) for f in (1.0, 30.0)], axis=1)
    found = residual.in_band(time, error)
    assert len(found) == pytest.approx((time[-1] - time[0] - 2 * residual.ENDS) / residual.STEP,
                                       abs=2)
    assert np.sqrt(np.mean(found**2, axis=0)) == pytest.approx(
        [np.sqrt(0.5), 0.0], abs=0.03)  # uneven stamps leave 3 % of a fast error


def test_rows_are_root_mean_squares_over_recordings() -> None:
    time = np.arange(0.0, 20.0, 0.01)
    sizes = {name: k + 1.0 for k, name in enumerate(reversed(residual.MODELS))}
    errors = [[(time, np.full((2000, 2), sizes[name])), (time, np.full((2000, 2), 0.0))]
              for name in residual.MODELS]
    found = residual.rows(('a', 'b'), errors, np.array([0.5, 0.25]))
    assert [row['joint'] for row in found] == 3 * ['a'] + 3 * ['b']
    for row, times in zip(found[:3], (1.0, 1.0, 2.0), strict=True):
        for name, size in sizes.items():
            assert row[name] == pytest.approx(times * size / np.sqrt(2.0))
        assert row['adaptive / auto'] == pytest.approx(sizes['adaptive'] / sizes['auto'])
    assert found[4]['robot itself'] == 0.25
    assert residual.rows(('a',), [[(t, e[:, :1]) for t, e in one] for one in errors], None)[-1][
        'error'] == residual.IN_BAND


def test_a_robot_repeats_its_noise_whatever_it_carries() -> None:
    model = replace(nominal_model('planar_3r'), preprocessing=Preprocessing(8.0))
    first, second = noisy(1), noisy(2)
    assert first.effort is not None and second.effort is not None
    true = residual.in_band(first.time, first.effort - second.effort)
    expected = np.sqrt(np.mean(true**2, axis=0) / 2.0)
    assert residual.floor(model, (first, second)) == pytest.approx(expected, rel=0.03)
    # dry friction of the load turns a little faster than the motion below the band
    assert residual.floor(model, (first, loaded(second))) == pytest.approx(expected, rel=0.08)
    with pytest.raises(UsageError, match='two motions'):
        residual.floor(model, (first, recording(ROBOT, 2)))


def test_bench_refuses_missing_data_and_unknown_options_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['bench', 'residual']) == 2
    assert '--data FOLDER' in capsys.readouterr().err
    assert main(['bench', 'residual', '--data', str(tmp_path), '--robot', 'planar_3r']) == 2
    assert 'no recordings' in capsys.readouterr().err
    for option in ('--data', '--again'):
        assert main(['bench', 'start', option, str(tmp_path)]) == 2
        assert f'no option {option}' in capsys.readouterr().err
