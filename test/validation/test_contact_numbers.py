"""validation/contact_scores.py: alarms, peaks, pushes and stops of results given row by row."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.monitoring.monitor import MonitorSettings
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.observer import CLAIMED, CONTACT, EXTERNAL, THRESHOLD
from robot_dynid.monitoring.watched_joints import BEGUN, WATCHED
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray
from robot_dynid.validation.contact_scores import ContactScore, contact_score

MODULE: Any = importlib.import_module('robot_dynid.validation.contact_scores')
ROBOT = load_robot('planar_3r')
#: rows of 10 ms, in blocks of 0.2 s
ROWS, BLOCK = 400, 20
#: rows that a contact must last
LASTING = max(3, 1 + int(MonitorSettings().contact.duration / 0.01))


class Results:
    """What a monitor gives along a recording: without contact, thresholds of 2, 4 and 8."""

    def __init__(self) -> None:
        self.rows = np.zeros((ROWS, 1 + max(EXTERNAL, CLAIMED, THRESHOLD, CONTACT), 3))
        self.rows[:, THRESHOLD] = [2.0, 4.0, 8.0]
        self.sight = np.full((ROWS, 3), WATCHED)
        self.time = 50.0 + 0.01 * np.arange(ROWS)
        self.velocity = np.tile([1.0, -2.0, 0.5], (ROWS, 1))
        self.effort = np.outer(np.arange(ROWS) - 399.0, [1.0, 2.0, 3.0])

    def score(self, monkeypatch: pytest.MonkeyPatch, **more: Any) -> ContactScore:
        observer = SimpleNamespace(along=lambda motion: self.rows)
        levels = SimpleNamespace(without=SimpleNamespace(moving='moving'))
        monkeypatch.setattr(MODULE, 'observer_of', lambda model, settings: observer)
        monkeypatch.setattr(MODULE, 'levels_of', lambda model, settings: levels)
        monkeypatch.setattr(MODULE, 'blind_codes', lambda model, moving, gain, motion: {
            ('moving', MonitorSettings().gain): self.sight}[moving, gain])
        model: Any = SimpleNamespace(robot=ROBOT)
        return contact_score(model, MonitorInput(
            self.time, np.zeros((ROWS, 3)), self.velocity, self.effort), **more)


def test_alarms_are_beginnings_of_contacts_while_joints_are_watched(monkeypatch) -> None:
    one = Results()
    one.rows[10:30, CONTACT, 0] = one.rows[50:52, CONTACT, 0] = 1.0
    one.rows[0:5, CONTACT, 1] = one.rows[100:120, CONTACT, 2] = 1.0
    one.sight[95:110, 2] = BEGUN  # the contact begins unseen
    one.sight[200:260, 1] = BEGUN
    found = one.score(monkeypatch)
    np.testing.assert_array_equal(found.alarms, [2.0, 1.0, 1.0])
    np.testing.assert_allclose(found.seconds, [3.99, 3.39, 3.84])
    np.testing.assert_allclose(found.effort, np.quantile(
        np.arange(400.0), 0.999) * np.array([1.0, 2.0, 3.0]))
    own = np.arange(ROWS) >= 40
    part = one.score(monkeypatch, rows=own)
    np.testing.assert_array_equal(part.alarms, [1.0, 0.0, 1.0])
    np.testing.assert_allclose(part.seconds, [3.6, 3.0, 3.45])
    one.time[300:] += 5.0  # a pause counts a tenth of a second
    np.testing.assert_allclose(one.score(monkeypatch).seconds, [4.08, 3.48, 3.93])


def test_peaks_are_shares_of_the_threshold_that_last_as_long_as_a_contact(monkeypatch) -> None:
    """External less claimed torque, of either sign, by blocks of 0.2 s."""
    one = Results()
    one.rows[:, EXTERNAL], one.rows[:, CLAIMED] = [0.5, -0.4, 0.8], [0.1, 0.4, -0.8]
    one.rows[105:105 + LASTING, EXTERNAL, 0] = 1.7
    one.rows[145:145 + LASTING - 1, EXTERNAL, 0] = 1.7
    one.rows[165:165 + LASTING, EXTERNAL, 1] = -3.2
    one.sight[300:, 2] = BEGUN
    found = one.score(monkeypatch)
    peaks = np.tile([0.2, 0.2, 0.2], (20, 1))
    peaks[5, 0], peaks[8, 1] = 0.8, 0.9
    peaks[15:, 2] = np.nan
    np.testing.assert_allclose(found.peaks, peaks)
    assert not found.excess.any() and found.levers.shape == (50, 3)
    excess = np.array([1.0, 0.0, 4.0])
    wide = one.score(monkeypatch, excess=excess)
    np.testing.assert_allclose(wide.peaks, peaks * [2.0, 1.0, 2.0])
    np.testing.assert_array_equal(wide.excess, excess)
    np.testing.assert_array_equal(wide.needed, found.needed)


@pytest.mark.parametrize(('rows', 'share'), [(5, 0.5), (6, 0.9)])
def test_peaks_last_five_milliseconds(monkeypatch, rows: int, share: float) -> None:
    """From the first to the last of six states that are a little less than one apart."""
    one = Results()
    one.time = 50.0 + 2.0**-10 * np.arange(ROWS)
    one.rows[:, EXTERNAL, 0] = 1.0
    one.rows[100:100 + rows, EXTERNAL, 0] = 1.8
    assert one.score(monkeypatch).peaks[:, 0].max() == share


def test_pushes_are_what_is_missing_to_the_threshold_while_joints_move(monkeypatch) -> None:
    """In either direction, twice in a block."""
    one = Results()
    one.rows[:, EXTERNAL], one.rows[:, CLAIMED] = [0.5, -0.4, 0.8], [0.1, 0.4, -0.8]
    one.velocity[:, 0] = np.where(np.arange(ROWS) < 100, 0.049, np.where(
        np.arange(ROWS) < 200, 0.051, 1.0))
    one.velocity[:200, 1:] = 0.0
    one.velocity[200:300] = 0.01  # at a hundredth nothing moves
    one.rows[300:320, THRESHOLD, 1] = np.inf
    one.sight[380:] = BEGUN
    found = one.score(monkeypatch)
    chosen = [*range(100, 200), *range(320, 380)][::10]
    assert len(found.needed) == len(chosen)
    np.testing.assert_allclose(found.needed, np.tile(
        [1.6, 4.8, 6.4, 2.4, 3.2, 9.6], (len(chosen), 1)))
    np.testing.assert_allclose(found.push, [2.4, 4.8, 9.6])
    one.velocity[:] = 0.0
    assert np.isnan(Results.score(one, monkeypatch, rows=np.zeros(ROWS, dtype=bool)).push).all()


@pytest.mark.parametrize(('share', 'stops'), [(0.0099, 2), (0.0101, 0)])
def test_joints_stop_that_stay_below_a_hundredth_of_their_speed(
    monkeypatch, share: float, stops: int
) -> None:
    """For a block; at first they rest, which is no stop."""
    one = Results()
    speed = np.full(ROWS, -3.0)
    for first, last in ((0, 40), (100, 140), (200, 219), (301, 379)):
        speed[first:last] = 3.0 * share
    one.velocity[:, 1] = speed
    assert one.score(monkeypatch).stops.tolist() == [0.0, stops, 0.0]


def score_of(peaks: FloatArray, seconds: float, alarms: float = 0.0) -> ContactScore:
    """Return a score of two joints, of which the first has no peaks."""
    both = np.stack([np.full(len(peaks), np.nan), peaks], axis=1)
    return ContactScore(np.array([1.0, seconds]), np.array([7.0, alarms]), both, np.ones((1, 4)),
                        np.ones(2), np.ones((1, 2)), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(('size', 'count'), [(5, 4), (11, 10), (150, 10), (400, 20), (1000, 50)])
def test_rates_follow_from_the_tail_of_squared_peaks(size: int, count: int) -> None:
    """A twentieth of them, ten at least: the mean excess gives the decay to the threshold."""
    squares = np.linspace(0.2, 0.7, size)
    peaks = np.sqrt(np.random.default_rng(0).permutation(squares))
    base = squares[-count - 1]
    expected = count * np.exp((base - 1.0) / np.mean(squares[-count:] - base))
    assert score_of(peaks, 80.0).rate(1) == pytest.approx(45.0 * expected)
    assert score_of(peaks, 80.0, 1e4).rate(1) == pytest.approx(45.0 * 1e4)
    gaps = np.concatenate([peaks, np.full(9, np.nan)])
    assert score_of(gaps, 80.0).rate(1) == pytest.approx(45.0 * expected)
    above = np.sqrt(squares + 1.0)
    assert score_of(above, 80.0).rate(1) == pytest.approx(45.0 * count)
    assert score_of(peaks, 0.0).rate(1) == np.inf
    assert score_of(peaks[:1], 80.0).rate(1) == 0.0
    assert score_of(peaks, 80.0).rate(0) == 3600.0 * 7.0


def test_scores_are_merged_joint_by_joint() -> None:
    one = ContactScore(np.array([10.0, 20.0]), np.array([1.0, 0.0]), np.full((3, 2), 0.1),
                       np.arange(8.0).reshape(2, 4), np.array([5.0, 9.0]),
                       np.array([[0.1, 0.5], [0.3, 0.6], [0.9, 0.7]]), np.array([0.5, 0.25]),
                       np.array([2.0, 3.0]))
    other = ContactScore(np.array([4.0, 3.0]), np.array([2.0, 5.0]), np.full((1, 2), 0.2),
                         np.arange(4.0).reshape(1, 4) + 20.0, np.array([6.0, 8.0]),
                         np.array([[0.2, 0.4]]), np.array([7.0, 7.0]), np.array([1.0, 1.0]))
    found = ContactScore.merged(iter([one, other]))
    assert found is not None
    assert (found.seconds.tolist(), found.alarms.tolist(), found.stops.tolist()) == (
        [14.0, 23.0], [3.0, 5.0], [3.0, 4.0])
    assert found.effort.tolist() == [6.0, 9.0] and found.excess.tolist() == [0.5, 0.25]
    assert found.peaks[:, 0].tolist() == [0.1] * 3 + [0.2]
    np.testing.assert_allclose(found.lever, [0.25, 0.55])
    both = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [20, 21], [22, 23]], dtype=float)
    np.testing.assert_allclose(found.push, np.quantile(both, 0.95, axis=0))
