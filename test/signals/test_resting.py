"""signals/single_joint_motion.py: a joint that rests within a step of its encoder: where it is
between the steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.friction import AxisMotion, law_from
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.filters import derivative, zero_phase_low_pass
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.signals.single_joint_motion import (
    AVERAGE_SECONDS,
    REST_WINDOW,
    RESTS,
    remove_flicker,
    resting,
)
from robot_dynid.types import RawLog

STEP, DT = 1e-4, 0.01
ROBOT = load_robot('planar_3r')


def true_motion(rng: np.random.Generator, seconds: float = 30.0) -> tuple[np.ndarray, np.ndarray]:
    """Return time and true position (N,): swings, then shaken at rest, then swings again."""
    time = np.arange(0.0, seconds, DT)
    swing = np.where((time > 8.0) & (time < 22.0), 1.0, np.cos(np.pi * time / 4.0))
    phases = rng.uniform(0.0, 2.0 * np.pi, 3)
    shaken = sum(np.sin(2.0 * np.pi * f * time + p) for f, p in zip((0.1, 0.23, 0.4), phases))
    return time, 0.5 * swing + STEP * (0.5 + 0.1 * shaken)


def read(position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the readings of an encoder whose noise is a fifth of its step."""
    return STEP * np.round((position + 0.2 * STEP * rng.standard_normal(len(position))) / STEP)


def log_of(time: np.ndarray, readings: np.ndarray) -> RawLog:
    """Return a recording in which the last joint moves."""
    position = np.zeros((len(time), 3))
    position[:, 2] = readings
    velocity = np.gradient(position, DT, axis=0)
    return RawLog('made', ROBOT.joints, time, position, velocity=velocity,
                  effort=np.ones_like(position))


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_the_place_between_the_steps_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time, position = true_motion(rng)
    readings = read(position, rng)
    log = log_of(time, readings)
    found = remove_flicker(log, log.position, DT)
    rows = list(resting(readings, readings, DT))
    inside = np.concatenate([np.arange(r.start, r.stop) for r in rows])
    assert np.sum((time[inside] > 8.0) & (time[inside] < 22.0)) > 0.6 * 14.0 / DT
    error = [np.sqrt(np.mean((q[inside] - position[inside]) ** 2))
             for q in (readings, found.position[:, 2])]
    assert error[1] < 0.4 * error[0] and error[1] < 0.2 * STEP
    moving = np.setdiff1d(np.arange(len(time)), inside)
    np.testing.assert_array_equal(found.position[moving], log.position[moving])
    np.testing.assert_array_equal(found.velocity[moving], log.velocity[moving])
    np.testing.assert_array_equal(found.position[:, :2], log.position[:, :2])
    slopes = derivative(found.position[:, [2]], DT)[:, 0]
    for one in rows:  # without the ends, where averages take over
        inner = slice(one.start + 30, one.stop - 30)
        np.testing.assert_allclose(found.velocity[inner, 2], slopes[inner], rtol=0.0, atol=1e-12)


def test_averages_take_over_little_by_little() -> None:
    rng = np.random.default_rng(0)
    time, position = true_motion(rng)
    log = log_of(time, read(position, rng))
    taken = np.abs(remove_flicker(log, log.position, DT).position - log.position)[:, 2]
    for rows in resting(log.position[:, 2], log.position[:, 2], DT):
        for near in (taken[rows][:4], taken[rows][-4:]):
            assert near.max() < 0.1 * STEP
    assert taken.max() > 0.4 * STEP


def test_coming_to_rest_is_motion_and_a_third_step_ends_the_rest() -> None:
    count = 400
    position = np.concatenate([np.linspace(0.0, 0.1, 200), np.full(count, 0.1)])
    position[200::3] += STEP
    few = AVERAGE_SECONDS / DT
    (rows,) = resting(position, position, DT)
    assert rows.start == pytest.approx(199 + RESTS / DT, abs=few)
    assert rows.stop == len(position)
    position[400] += 2.0 * STEP  # a single reading is noise
    assert list(resting(position, position, DT)) == [rows]
    position[400:408] += 2.0 * STEP
    before, after = resting(position, position, DT)
    assert before.stop == pytest.approx(400 - 0.5 * REST_WINDOW / DT, abs=few)
    assert after.start == pytest.approx(408 + RESTS / DT, abs=few)
    assert not list(resting(position, position + 0.1 * STEP * np.sin(np.arange(600.0)), DT))


@pytest.mark.parametrize(('steps', 'parts'), [(7.0, 1), (8.0, 2)])
def test_a_reading_is_averaged_over_five_of_a_hundred_per_second(steps: float, parts: int) -> None:
    """A rest stays within one and a half steps, and takes half a second at least."""
    position = np.full(400, 0.3)
    position[200] += steps * STEP
    readings = STEP * (np.arange(60) % 3)
    found = list(resting(position, readings, DT))
    assert len(found) == parts and (found[0].start, found[-1].stop) == (0, 400)
    if parts == 2:  # twelve rows of the window, two of the average, and 0.375 s to come to rest
        assert (found[0].stop, found[1].start) == (200 - 14, 200 + 15 + 38)
    for rows, rests in ((49, 0), (51, 1)):
        assert len(list(resting(position[:rows], readings, DT))) == rests


@pytest.mark.parametrize('dt', [0.01, 0.002])
def test_resting_counts_steps_right_with_noise_in_one_reading_of_five(dt: float) -> None:
    """Noise by one step, all to one side: averages of two readings differ by up to 1.4 steps."""
    rows = np.arange(round(4.0 / dt))
    noise, late = rows % 5 == 0, rows >= len(rows) // 2
    two, three = late + 1.0 * (late & noise), 2.0 * late + np.where(late, -1.0, 1.0) * noise
    (whole,) = resting(STEP * two, STEP * two, dt)  # averages 0, 1.2
    assert (whole.start, whole.stop) == (0, len(rows))
    before, after = resting(STEP * three, STEP * three, dt)  # 0.2, 1.8
    assert before.stop < len(rows) // 2 < after.start


def at_rest(wave: np.ndarray, time: np.ndarray, dt: float, *, rounded: bool) -> np.ndarray:
    """Return what is made of a ``wave`` (N,) [steps] at rest, which a swing shows the steps of."""
    swing = np.where(time < 14.0, 0.0, 1.0 - np.cos(np.pi * (time - 14.0) / 3.0))
    true = swing + STEP * (0.5 + wave)
    readings = STEP * np.round(true / STEP)
    log = log_of(time, readings if rounded else true)
    found = remove_flicker(log, readings[:, None].repeat(3, axis=1), dt).position[:, 2]
    return (found / STEP - 0.5)[(time > 2.0) & (time < 11.0)]


@pytest.mark.parametrize('dt', [0.01, 0.002])
def test_a_wave_at_the_border_of_two_octaves_is_kept_and_steps_just_below_are_not(
        dt: float) -> None:
    time = np.arange(0.0, 20.0, dt)
    inner = (time > 2.0) & (time < 11.0)
    border, slower = (0.45 * np.sin(2.0 * np.pi * f / RESTS * time + 1.0) for f in (2.0, 0.98))
    wave = at_rest(border, time, dt, rounded=False)
    assert wave @ border[inner] > 0.9 * border[inner] @ border[inner]
    steps = at_rest(slower, time, dt, rounded=True)  # of a wave just slower than one in RESTS
    low = zero_phase_low_pass(np.sign(slower)[:, None] / 2.0, 1.0 / RESTS, dt)[inner, 0]
    np.testing.assert_allclose(steps, low, rtol=0.0, atol=0.01)


@pytest.mark.parametrize(('share', 'kept'), [(0.95, False), (1.05, True)])
def test_a_wave_is_kept_from_three_times_the_flicker_in_its_octave(
        share: float, kept: bool) -> None:
    """Of 3 Hz, between low-passes of 2 and 4 Hz; flicker alternates from reading to reading."""
    time = np.arange(0.0, 20.0, DT)
    inner = (time > 2.0) & (time < 11.0)
    wave, flicker = np.sin(6.0 * np.pi * time), 0.2 * (-1.0)**np.arange(len(time))
    low, high = (1.0 / (1.0 + (3.0 / corner)**8) for corner in (2.0, 4.0))
    # half of the power of differences, of which 2 of 50 Hz are in the octave
    size = 0.2 * np.sqrt(share * 3.0 * 2.0 / 50.0 * 2.0 / (0.5 * (high - low)**2))
    found = at_rest(size * wave + flicker, time, DT, rounded=False) @ wave[inner]
    assert found / (size * wave[inner] @ wave[inner]) == pytest.approx(
        high if kept else low, abs=0.03)


@pytest.mark.parametrize(('share', 'kept'), [(0.95, False), (1.05, True)])
def test_a_wave_is_kept_from_85_hundredths_of_the_power_below_it(share: float, kept: bool) -> None:
    """Which halves from octave to octave: here 5.56 Hz, two above 1 Hz."""
    time = np.arange(0.0, 20.0, DT)
    inner = (time > 2.0) & (time < 11.0)
    slow, wave = np.sin(2.0 * np.pi * time), np.sin(100.0 / 9.0 * np.pi * time)

    def octave(hertz: float, low: float) -> float:
        first, second = (1.0 / (1.0 + (np.tan(np.pi * hertz * DT) / np.tan(
            np.pi * corner * DT))**8) for corner in (low, 2.0 * low))
        return float(second - first)

    passed = octave(50.0 / 9.0, 4.0)
    size = 0.3 * np.sqrt(0.85 * 0.5 * share) / passed
    found = at_rest(0.3 * slow + size * wave, time, DT, rounded=False) @ wave[inner]
    assert found / (size * wave[inner] @ wave[inner]) == pytest.approx(
        passed if kept else 0.0, abs=0.02)
    # the last octave ends below four tenths of the rate
    fast = np.sin(406.0 / 9.0 * np.pi * time)
    found = at_rest(0.3 * fast, time, DT, rounded=False) @ fast[inner]
    assert found / (0.3 * fast[inner] @ fast[inner]) == pytest.approx(
        octave(203.0 / 9.0, 16.0), abs=0.02)


def test_averages_fade_in_over_a_quarter_of_a_second_beside_motion() -> None:
    """Velocities tell their share: here they are one as measured, and nothing by the average."""
    ramp = np.linspace(0.0, 1.0, 200)
    position = np.concatenate([ramp, np.ones(300), 2.0 - ramp[::-1]])[:, None]
    log = RawLog('run', ('a',), DT * np.arange(700), position, np.ones((700, 1)))
    readings = STEP * (np.arange(60)[:, None] % 3)
    (rows,) = resting(position[:, 0], readings[:, 0], DT)
    found = remove_flicker(log, readings, DT).velocity
    assert found is not None
    near = DT * np.minimum(np.arange(700) - rows.start + 1, rows.stop - np.arange(700))
    np.testing.assert_allclose(found[:, 0], 0.5 + 0.5 * np.cos(np.pi * np.clip(
        near / 0.25, 0.0, 1.0)), rtol=0.0, atol=1e-9)
    still = remove_flicker(replace(log, position=np.ones((700, 1))), readings, DT).velocity
    np.testing.assert_allclose(still, 0.0, rtol=0.0, atol=1e-9)
    for dt, velocity in ((0.24, 0.0), (0.26, 1.0)):  # too few samples of what a reading changes in
        slow = remove_flicker(replace(log, position=np.ones((700, 1))), readings, dt).velocity
        np.testing.assert_allclose(slow, velocity, rtol=0.0, atol=1e-9)


def test_recordings_with_motor_states_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    time, position = true_motion(rng)
    log = log_of(time, read(position, rng))
    both = replace(log, motor_position=log.position.copy())
    assert remove_flicker(both, both.position, DT) is both
    slow = replace(log)
    assert remove_flicker(slow, slow.position, 0.3) is slow


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_friction_at_rest_follows_the_joint_and_not_its_rounding(seed: int) -> None:
    """Presliding of three lengths (the true positions) against the prepared readings."""
    rng = np.random.default_rng(seed)
    time, position = true_motion(rng)
    law = law_from('maxwell', {'lengths': [2e-5, 6e-4, 2e-3]})
    value = np.array([0.0, 1.3, 1.0, 0.3, 0.0])

    def friction(q: np.ndarray, t: np.ndarray) -> np.ndarray:
        columns = law.columns(AxisMotion(t, q, np.gradient(q, t)))
        return np.asarray(value @ columns)

    def error(log: RawLog) -> float:
        samples = prepare(ROBOT, repair(ROBOT, log), Preprocessing(20.0, decimate=False))
        at = np.interp(samples.time, time, friction(position, time))
        rest = (samples.time > 9.0) & (samples.time < 21.0)
        found = friction(samples.position[:, 2], samples.time)
        return float(np.sqrt(np.mean((found - at)[rest] ** 2)))

    log = log_of(time, read(position, rng))
    # the same readings on top of a motion too small for friction that no step is seen of
    unseen = log.position + 1e-7 * np.sin(np.arange(len(time)))[:, None]
    assert error(log) < 0.75 * error(replace(log, position=unseen))
