"""The cut-off for a recording that is scored: that of its motion, whatever its effort says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.signals.prepare import CUTOFF_RATE_SHARE, CUTOFFS, Preprocessing, prepare, repair
from robot_dynid.types import RawLog
from robot_dynid.validation import passband
from robot_dynid.validation.passband import settings_for
from robot_dynid.validation.validate import validate

#: step of the encoders [rad]
ENCODER = 2e-5


@pytest.fixture(scope='module')
def model():
    """Return a model of a planar arm that was fitted to slow motion."""
    return replace(nominal_model('planar_3r'), preprocessing=Preprocessing(2.0),
                   not_identified=())


def recording(model, speed, rate=500.0, seconds=12.0, encoder=ENCODER, effort=0.0):
    """Return rows of a motion ``speed`` times as fast, with noise of the ``effort`` [N m]."""
    rng = np.random.default_rng(3)
    time = np.arange(round(seconds * rate)) / rate
    motion = np.zeros((3, len(time), 3))
    for k in range(1, 5):
        w = 0.3 * k * speed * 2.0 * np.pi
        angle, size = w * time[:, None] + rng.uniform(0.0, 6.0, 3), rng.uniform(0.1, 0.4, 3) / k
        motion += size * np.stack([np.sin(angle), w * np.cos(angle), -w**2 * np.sin(angle)])
    torque = model.inverse(*motion) + effort * rng.normal(size=motion[0].shape)
    position = encoder * np.round(motion[0] / encoder)
    return RawLog('rows.csv', model.joints, time, position, None, torque)


def chosen(model, log):
    return settings_for(model, repair(model.robot, log)).cutoff


def test_faster_motion_passes_a_higher_cutoff(model):
    found = [chosen(model, recording(model, speed)) for speed in (0.25, 0.5, 1.0, 8.0)]
    assert found == sorted(found) and found[-1] > 2.0 * found[0] > 4.0
    assert set(found) <= set(CUTOFFS)


def test_coarser_encoders_pass_a_lower_one(model):
    fine, coarse = (chosen(model, recording(model, 1.0, encoder=step)) for step in (1e-6, 1e-3))
    assert coarse < fine


def test_settings_for_predicts_about_as_well_as_any_cutoff(model):
    for speed in (0.25, 1.0, 4.0):
        log = recording(model, speed)
        repaired, errors = repair(model.robot, log), {}
        for cutoff in CUTOFFS:
            settings = replace(model.preprocessing, cutoff=cutoff, decimate=False)
            samples = prepare(model.robot, repaired, settings)
            middle = (samples.time > 3.0) & (samples.time < 9.0)
            error = model.predicted(samples)[middle] - samples.measured[middle]
            errors[cutoff] = np.exp(np.mean(np.log(error.std(axis=0))))
        assert errors[chosen(model, log)] < 2.0 * min(errors.values())
        assert errors[2.0] > 2.0 * min(errors.values())  # that of the fit takes off the motion


def test_the_effort_does_not_decide_on_it(model):
    quiet, noisy = (recording(model, 2.0, effort=size) for size in (0.0, 5.0))
    assert chosen(model, quiet) == chosen(model, noisy)
    shuffled = replace(quiet, effort=quiet.effort[::-1].copy())
    assert chosen(model, shuffled) == chosen(model, quiet)


def test_settings_for_gives_no_cutoff_below_that_of_the_fit(model):
    fast = replace(model, preprocessing=Preprocessing(33.0))
    assert chosen(fast, recording(model, 0.5)) == 33.0


def test_a_coarse_recording_is_scored_with_what_it_shows(model):
    fast = replace(model, preprocessing=Preprocessing(33.0))
    log = recording(model, 0.5, rate=30.0)
    assert chosen(fast, log) <= CUTOFF_RATE_SHARE * 30.0 + 1e-9
    scores = validate(fast, [log]).model['all'].values()
    assert all(score.relative_error < 0.05 for score in scores)


def test_first_rows_of_a_long_recording_decide(model, monkeypatch):
    log = recording(model, 1.0, seconds=40.0)
    whole = chosen(model, log)
    monkeypatch.setattr(passband, 'PASSBAND_ROWS', 5000)
    assert chosen(model, log) == whole
    repaired = repair(model.robot, log)
    part, = passband.first_rows(repaired).parts
    assert len(part.time) == 5000 and len(part.effort) == 5000
    assert len(repaired.parts[0].time) > 5000
