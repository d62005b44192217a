"""validation/passband.py: cut-offs from how predicted efforts change with them, and their rows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.signals.prepare import Efforts, Preprocessing, Repaired
from robot_dynid.types import RawLog
from robot_dynid.validation import passband
from robot_dynid.validation.passband import Passbands, first_rows, settings_for

TIME = np.arange(5.0)


def repaired(step: float = 0.01, rows: int = 5) -> Repaired:
    log = RawLog('x', ('a',), np.arange(float(rows)), np.arange(float(rows))[:, None])
    return Repaired('x', (log,), step, ())


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Preprocessing, list[float]]]:
    """Return a function that chooses by efforts of three joints that change by given steps.

    The third never changes; every other cut-off also moves the rows by one.
    """
    def make(steps: dict[float, tuple[float, float]], fit: Preprocessing, step: float = 0.01,
             short: tuple[float, ...] = ()) -> Any:
        tried: list[float] = []

        def prepare(robot: Any, recording: Any, settings: Any) -> Any:
            assert (settings.decimate, settings.trim_rest) == (False, False)
            assert (settings.effort_lag, robot) == (fit.effort_lag, 'robot')
            tried.append(settings.cutoff)
            if settings.cutoff in short:
                raise DataError('too short')
            late = len(tried) % 2
            return SimpleNamespace(cutoff=settings.cutoff, fresh=np.arange(6) != 2,
                                   instants=np.arange(6.0) + late)

        def predicted(samples: Any) -> Any:
            done = [np.array(one) for cutoff, one in sorted(steps.items())
                    if cutoff <= samples.cutoff]
            level = np.append(np.sum(done, axis=0) if done else np.zeros(2), 7.0)
            alternating = np.where(samples.instants % 2 == 0, 0.1, -0.1)[:, None]
            return level * alternating

        monkeypatch.setattr(passband, 'prepare', prepare)
        model: Any = SimpleNamespace(robot='robot', preprocessing=fit, predicted=predicted)
        return settings_for(model, repaired(step)), tried

    return make


FIT = Preprocessing(4.5, effort_lag=2e-3)
CANDIDATES = [2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0]


@pytest.mark.parametrize(('steps', 'cutoff'), [
    # of geometric means 0.6, 0.2, 0.13, 0.1, 0.4, 0.5
    ({3.0: (9.0, 4.0), 4.5: (1.0, 4.0), 6.5: (1.3, 1.3), 10.0: (2.0, 0.5), 15.0: (8.0, 2.0),
      22.0: (5.0, 5.0)}, 6.5),
    ({3.0: (9.0, 4.0), 4.5: (1.0, 4.0), 6.5: (1.2, 1.2), 10.0: (2.0, 0.5), 15.0: (8.0, 2.0),
      22.0: (5.0, 5.0)}, 4.5),
    ({3.0: (9.0, 4.0), 4.5: (1.0, 4.0), 6.5: (2.6, 0.65), 10.0: (3.2, 0.5), 15.0: (8.0, 2.0),
      22.0: (1.0, 1.0)}, 15.0),
    ({3.0: (0.5, 0.5), 4.5: (1.0, 4.0), 6.5: (2.6, 0.65), 10.0: (3.0, 0.5), 15.0: (8.0, 2.0),
      22.0: (1.0, 1.0)}, 4.5)])
def test_the_lowest_cutoff_is_chosen_above_which_efforts_hardly_change(
    choose, steps, cutoff
) -> None:
    """Within a quarter of the smallest change; not below that of the fit."""
    found, tried = choose(steps, FIT, 0.0125)
    assert tried == CANDIDATES
    assert found == Preprocessing(cutoff, effort_lag=2e-3)


def test_cutoffs_are_those_that_a_recording_resolves(choose) -> None:
    falling = {c: (1.0 / k, 2.0 / k) for k, c in enumerate((*CANDIDATES, 33.0, 50.0), start=1)}
    found, tried = choose(falling, Preprocessing(8.0, decimate=False), 0.0301)
    assert tried == [2.0, 3.0, 4.5, 6.5, 8.0] and found == Preprocessing(8.0, decimate=False)
    found, tried = choose(falling, Preprocessing(33.0), 0.0299)
    assert tried == [2.0, 3.0, 4.5, 6.5, 10.0, 0.3 / 0.0299] and found.cutoff == 0.3 / 0.0299
    found, tried = choose(falling, Preprocessing(2.5), 0.0299, short=(3.0, 6.5))
    assert tried == [2.0, 2.5, 3.0, 4.5, 6.5, 10.0]
    assert found.cutoff == 2.5
    found, _ = choose({}, Preprocessing(3.5), 0.0299)  # nothing changes at all
    assert found.cutoff == 3.5
    found, tried = choose(falling, Preprocessing(8.0), 0.0301, short=(2.0, 3.0, 4.5, 6.5, 8.0))
    assert found.cutoff == 8.0


def test_equations_are_predicted_with_cutoffs_of_their_own(monkeypatch) -> None:
    """Above the common one, as far as the recording resolves them."""
    monkeypatch.setattr(passband, 'settings_for', lambda model, recording: Preprocessing(
        10.0, effort_lag=1e-3))
    monkeypatch.setattr(passband, 'prepare', lambda robot, recording, settings: settings)
    model: Any = SimpleNamespace(robot='robot', record=SimpleNamespace(
        passbands=(10.0, 33.0, 22.0, 6.5, 50.0)))
    found: Any = Passbands.of(model, repaired(0.01))
    assert found.samples == Preprocessing(10.0, effort_lag=1e-3)
    assert [(settings, rows.tolist()) for settings, rows in found.higher] == [
        (Preprocessing(cutoff, effort_lag=1e-3, decimate=False, trim_rest=False), rows)
        for cutoff, rows in ((22.0, [2]), (0.3 / 0.01, [1, 4]))]
    model.record.passbands = ()
    assert Passbands.of(model, repaired(0.01)).higher == ()


def test_efforts_of_higher_cutoffs_replace_those_of_their_equations() -> None:
    """In the rows that both have; the common ones may begin earlier or end later."""
    samples = [SimpleNamespace(instants=np.array(one)) for one in (
        [1.0, 2.0, 3.0, 4.0], [2.0, 2.5, 3.0, 5.0], [0.0, 1.0, 4.0])]
    first: Any = samples[0]
    higher: Any = tuple((one, np.array(rows)) for one, rows in zip(
        samples[1:], ([2], [0, 3]), strict=True))
    common = np.arange(16.0).reshape(4, 4)
    before = common.copy()
    found = Passbands(first, higher).merge(common, lambda of: 100.0 * len(of.instants) + np.arange(
        4.0 * len(of.instants)).reshape(-1, 4))
    expected = before.copy()
    expected[[1, 2], 2] = 402.0, 410.0
    expected[0, [0, 3]], expected[3, [0, 3]] = [304.0, 307.0], [308.0, 311.0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(common, before)


def test_cutoffs_are_chosen_on_the_first_twenty_thousand_rows() -> None:
    short, long = repaired(0.01, 20_000), repaired(0.01, 20_001)
    assert first_rows(short) is short
    time = np.arange(0.5, 30_000.0)
    measured = tuple(Efforts(time, time[:, None] + k, None, time[:, None]) for k in range(2))
    cut = first_rows(Repaired('x', (*long.parts, *short.parts), 0.01, (), measured=measured))
    (part,), (effort,) = cut.parts, cut.measured
    assert part.time[-1] == 19_999.0 and len(part.time) == len(part.position) == 20_000
    assert effort.time[-1] == 19_999.5 and len(effort.effort) == 20_000
    assert effort.effort[0, 0] == 0.5
