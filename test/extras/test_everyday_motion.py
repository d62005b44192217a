"""robot_dynid_extras/health/everyday_motion.py: how long joints slide, and from which speed on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from everyday_arm import known_model
from identified_models import nominal_model

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import swift
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Trained
from robot_dynid.monitoring.observer import slowest
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_extras.health.everyday_motion import everyday_motion, slowest_sliding

MODEL = known_model()


def turned(model: IdentifiedModel, seconds: float, rate: FloatArray, size: FloatArray) -> RawLog:
    """Return a motion of sines."""
    time = np.arange(round(seconds * 100.0)) * 0.01
    angle = np.outer(time, rate) + 0.3
    q, qd, qdd = size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)
    return RawLog('everyday', model.joints, time, q, qd, model.inverse(q, qd, qdd))


def test_joints_slide_above_a_share_of_the_fastest_in_training() -> None:
    """Where that is not known of the limits; at least above what is rest."""
    ranges = np.array([[-2.0, 1.0], [-0.5, 30.0], [-1e-9, 1e-9]])
    trained = replace(MODEL, trained=Trained({'velocity': ranges}))
    share = 0.05
    np.testing.assert_allclose(slowest_sliding(trained), [
        max(2.0 * share, slowest(MODEL)[0]), 30.0 * share, slowest(MODEL)[2]])
    limits = replace(MODEL.robot.limits, velocity=np.array([5.0, np.nan, 7.0]))
    free = replace(MODEL, trained=Trained({}), robot=replace(MODEL.robot, limits=limits))
    np.testing.assert_allclose(slowest_sliding(free), np.fmax(
        [5.0 * share, 0.0, 7.0 * share], slowest(free)))
    elastic = nominal_model('elastic_2r')
    limits = replace(elastic.robot.limits, velocity=np.array([50.0, 70.0]))
    both = replace(elastic, robot=replace(elastic.robot, limits=limits))
    np.testing.assert_allclose(slowest_sliding(both), share * np.array([50.0, 70.0, 50.0, 70.0]))


def test_sliding_is_the_time_of_rows_above_that_speed_by_batches_of_a_second() -> None:
    log = turned(MODEL, 6.3, np.array([2.0, 0.7, 3.1]), np.array([0.5, 0.4, 0.2]))
    found = everyday_motion(MODEL, log)
    assert found is not None
    repaired = repair(MODEL.robot, log)
    samples = prepare(MODEL.robot, repaired, MODEL.preprocessing.limited_to(repaired))
    weights = swift(MODEL.robot, samples, slowest_sliding(MODEL))
    assert found.step == pytest.approx(0.01) and 0.2 < weights.mean() < 0.99
    counts = [batch.samples for batch in found.information.batches]
    assert counts[0] == 100 and sum(counts) == len(samples)
    assert found.seconds == pytest.approx(0.01 * len(samples))
    ends = np.cumsum([0, *counts])
    np.testing.assert_allclose(found.sliding, [0.01 * weights[a:b].sum(axis=0)
                                               for a, b in pairwise(ends)])
    columns = MODEL.torque_model.columns(samples)
    assert samples.effort is not None
    for j, there in enumerate(found.information.structure):
        own = columns[j, there] * weights[:, j]
        whole, rest = found.information.total.split(j)
        np.testing.assert_allclose(whole.T @ whole, own @ own.T, rtol=1e-6, atol=1e-6)
        assert np.sum(rest[:, 1]**2) == pytest.approx(
            np.sum((weights[:, j] * samples.effort[:, j])**2), rel=1e-6)


def test_a_stretch_is_of_use_from_half_a_second_of_sliding_on() -> None:
    rate, size = np.array([2.0, 0.7, 3.1]), np.array([0.5, 0.4, 0.2])
    sliding = {False: list[float](), True: list[float]()}
    for seconds in np.arange(1.0, 2.5, 0.05):
        log = turned(MODEL, float(seconds), rate, size)
        repaired = repair(MODEL.robot, log)
        samples = prepare(MODEL.robot, repaired, MODEL.preprocessing.limited_to(repaired))
        weights = swift(MODEL.robot, samples, slowest_sliding(MODEL))
        sliding[everyday_motion(MODEL, log) is not None].append(
            0.01 * weights.sum(axis=0).max(initial=0.0))
    assert 0.4 < max(sliding[False]) < 0.5 <= min(sliding[True]) < 0.6


def test_a_stretch_of_motion_with_a_gap_is_refused() -> None:
    log = turned(MODEL, 6.0, np.array([2.0, 0.7, 3.1]), np.array([0.5, 0.4, 0.2]))
    late = replace(log, time=np.where(log.time > 3.0, log.time + 2.0, log.time))
    with pytest.raises(DataError, match=r'^everyday: joint states are missing in it$'):
        everyday_motion(MODEL, late)
