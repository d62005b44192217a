"""signals/alignment.py: the effort lag and its deviation, where disturbances are alike for
a while."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import five_sines
from payload_recordings import motion, noisy, recording
from tolerances import COVERAGE_OF_LAGS

from robot_dynid.dynamics import rigid_body
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.selection import (
    between,
    choose,
    effort_lag,
    is_likely,
    is_same,
    is_sure,
    solve_lag,
)
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.alignment import Lag
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog, take

ROBOT = load_robot('planar_3r')
LATE = 0.008
RECIPE = Recipe(cutoff=10.0, ramp_width=0.02, friction='coulomb')
FACTOR = interval_factor(SCATTER_STRETCHES - 1)


def late(seed: int, noise: float) -> RawLog:
    """Return 24 s with effort that is late, and a disturbance that is alike for 0.1 s."""
    log = recording(ROBOT, motion(ROBOT, seed, 24.0), seed=seed)
    delayed = np.stack([np.interp(log.time - LATE, log.time, c) for c in log.effort.T], axis=1)
    return replace(log, effort=noisy(delayed, noise, np.random.default_rng(seed)))


def lag_of(log: RawLog) -> Lag:
    """Return the lag as it is chosen."""
    found = choose(ROBOT, list(Recordings(ROBOT, [log], RECIPE)), RECIPE, lambda *_: None).lag
    assert found is not None
    return found


@pytest.mark.parametrize('seeds', [8, pytest.param(25, marks=pytest.mark.soak)])
def test_the_lag_is_within_its_deviation_over_seeds(seeds: int) -> None:
    found = [lag_of(late(seed, 0.02)) for seed in range(seeds)]
    error = np.array([lag.seconds - LATE for lag in found])
    std = np.array([lag.std for lag in found])
    assert np.mean(np.abs(error) < FACTOR * std) >= COVERAGE_OF_LAGS
    assert np.median(std) < 0.5 * LATE


@pytest.mark.parametrize('seeds', [6, pytest.param(12, marks=pytest.mark.soak)])
def test_halves_of_a_recording_agree_within_their_deviations(seeds: int) -> None:
    apart = []
    for seed in range(seeds):
        log = late(seed, 0.02)
        first, second = (lag_of(take(log, rows)) for rows in (slice(0, 1200), slice(1200, None)))
        apart.append(abs(first.seconds - second.seconds)
                     < FACTOR * np.hypot(first.std, second.std))
    assert np.mean(apart) >= COVERAGE_OF_LAGS


def test_estimates_that_find_a_part_are_completed() -> None:
    asked = []

    def estimate(late: float) -> Lag:
        asked.append(late)
        return Lag(0.4 * (7e-3 - late), 1e-4)

    found = solve_lag(estimate)
    assert found.seconds == pytest.approx(7e-3)
    assert found.std == pytest.approx(2.5e-4)
    assert len(asked) <= 3
    assert not is_likely(Lag(1e-3, 1e-3)) and is_likely(Lag(-1.1e-3, 1e-3))


def test_lags_are_sure_from_five_deviations_and_the_same_within_a_tenth() -> None:
    assert is_sure(Lag(-5.1e-3, 1e-3)) and not is_sure(Lag(5.0, 1.0))
    one = Lag(3e-3, 2e-3)
    assert is_same(one, Lag(3.09e-3, 1e-3)) and not is_same(one, Lag(3.11e-3, 1e-3))
    for unknown in (Lag(1e-3, np.inf), Lag(0.0, 1e-3)):
        assert solve_lag(lambda late, lag=unknown: lag) == unknown  # type: ignore[misc]


@pytest.mark.parametrize(('found', 'lag', 'std', 'estimates'), [
    (1.0, 7e-3, 1e-4, 3),  # a deviation too far, and back
    (0.5, -7e-3, 2e-4, 3), (0.01, 1e-2, 2e-3, 5)])  # at least a twentieth is assumed
def test_deviations_of_a_lag_grow_as_estimates_find_less(
    found: float, lag: float, std: float, estimates: int
) -> None:
    asked = []

    def estimate(late: float) -> Lag:
        asked.append(late)
        return Lag(found * (lag - late), 1e-4)

    solved = solve_lag(estimate)
    assert solved.std == pytest.approx(std) and len(asked) == estimates
    if found >= 0.05:
        assert solved.seconds == pytest.approx(lag)
    assert asked[:2] == [0.0, pytest.approx(found * lag + np.copysign(1e-4, lag))]


def test_progress_of_a_part_is_within_its_range() -> None:
    told = []
    part = between(lambda stage, share: told.append((stage, share)), 0.4, 0.6)
    for share in (0.0, 0.5, 1.0):
        part('fit', share)
    assert told == [('fit', pytest.approx(one)) for one in (0.4, 0.5, 0.6)]


@pytest.mark.parametrize(('change', 'anew'), [(0.003, False), (0.5, True)])
def test_laws_stand_where_the_lag_is_the_same_as_far_as_it_is_known(
    change: float, anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, laws = late(1, 0.3), list[float]()
    recipe = Recipe()

    def lag(part: object, structure: object, settings: Preprocessing, *_: object) -> tuple[
            Preprocessing, Lag]:
        found = Lag(LATE + 1e-3 * change * len(laws), 1e-3)
        return replace(settings, effort_lag=found.seconds), found

    def choose_laws(part: object, structure: Structure, settings: Preprocessing,
                    requests: object) -> tuple[Structure, tuple[AxisChoice, ...]]:
        laws.append(settings.effort_lag)
        return structure, (AxisChoice('1', 'coulomb'),)

    where = 'robot_dynid.identification.selection.'
    monkeypatch.setattr(f'{where}_choose_cutoff', lambda *_: (10.0, (), ()))
    monkeypatch.setattr(f'{where}_choose_lag', lag)
    monkeypatch.setattr(f'{where}_choose_width', lambda part, structure, settings: structure)
    monkeypatch.setattr(f'{where}_choose_laws', choose_laws)
    found = choose(ROBOT, list(Recordings(ROBOT, [log], recipe)), recipe, lambda *_: None)
    assert len(laws) == 1 + anew
    assert found.preprocessing.effort_lag == laws[-1]
    assert found.lag is not None and found.lag.seconds == laws[-1]


def test_the_command_of_a_position_servo_is_late_and_its_position_is_not() -> None:
    """``effort(t) = gain (command(t - LATE) - q(t))``, in closed form; half of the lag removed.

    A driver holds a command until the next, half a step late on average, as this one does not.
    """
    gains, time = np.array([900.0, 700.0, 500.0]), np.arange(0.0, 12.0, 0.01)
    robot = replace(ROBOT, drive=Drive('position_error', gains=gains, error_limit=np.ones(3)))
    structure = Structure.uniform(robot, False, 'coulomb', {'width': 0.02})

    def moved(time: FloatArray) -> FloatArray:
        return five_sines(np.random.default_rng(3), time, robot.n)

    q, qd, qdd = moved(time + LATE)
    torque = rigid_body.inverse_dynamics(ROBOT, q, qd, qdd, ROBOT.nominal) + 4.0 * qd
    command = q + torque / gains
    log = RawLog('servo', robot.joints, time, moved(time)[0], reference_position=command)
    for removed in (0.0, 0.5 * LATE):
        samples = prepare(robot, repair(robot, log), Preprocessing(10.0, effort_lag=removed))
        lag = effort_lag(structure.torque_model(robot), [samples])
        assert lag.seconds == pytest.approx(LATE - removed - 0.005, abs=1e-4)
        assert lag.std < 1e-4
