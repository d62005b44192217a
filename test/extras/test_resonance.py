"""robot_dynid_extras/resonance/two_masses.py: gears seen by their motors alone, on the simulated
arm and in made-up responses."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from elastic_arms import NOISE, D, K, elastic_arm
from scipy.signal import lfilter
from tolerances import RESONANCE

from robot_dynid import load_robot
from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_extras.resonance import two_masses as module
from robot_dynid_extras.resonance.two_masses import (
    Response,
    TwoMasses,
    motor_resonance,
    response,
    two_mass_response,
    two_masses,
)


class Shaken:
    """One joint turns by 0.4 rad/s, with many sines of 1 to 60 Hz on top; the others rest."""

    duration = 10.0

    def __init__(self, robot: RobotModel, joint: int, seed: int, drift: float) -> None:
        self.joints, self.joint, self.drift = robot.joints, joint, drift
        self.rate = 2.0 * np.pi * np.arange(1.0, 60.0, 0.35)
        self.phase = np.random.default_rng(seed).uniform(0.0, 6.0, len(self.rate))
        self.size = 0.12 / self.rate / np.sqrt(len(self.rate))

    def sample(self, time: FloatArray) -> Motion:
        angle, size, rate = np.outer(time, self.rate) + self.phase, self.size, self.rate
        q, qd, qdd = np.zeros((3, len(time), len(self.joints)))
        q[:, self.joint] = np.sin(angle) @ size + self.drift * (time - 0.5 * self.duration)
        qd[:, self.joint] = np.cos(angle) @ (size * rate) + self.drift
        qdd[:, self.joint] = -np.sin(angle) @ (size * rate**2)
        return Motion(q, qd, qdd, np.zeros_like(q))


@cache
def shaken(joint: int, seed: int = 0, drift: float = 0.4) -> tuple[RobotModel, RawLog]:
    """Return the arm with one elastic joint, and what the encoder of its motor sees."""
    robot, truth = elastic_arm()
    name = robot.joints[joint]
    arm = Arm(robot.rigid, replace(truth, drives={name: truth.drives[name]}))
    log = record(arm, Shaken(robot, joint, seed, drift), 1000.0)
    log = measured(log, robot, NOISE, np.random.default_rng(seed))
    assert log.motor_position is not None
    return robot.rigid, RawLog('shaken', log.joints, log.time, log.motor_position,
                               log.motor_velocity, log.effort)


@pytest.mark.parametrize(('joint', 'seed'), [(0, 1), (2, 2)])
def test_stiffness_is_found_without_an_encoder_on_the_link(joint: int, seed: int) -> None:
    robot, log = shaken(joint, seed)
    found, told = motor_resonance(robot, log, robot.joints[joint])
    carried = mass_matrix(robot, np.zeros((1, 3)), robot.nominal)[0, joint, joint]
    rotor = elastic_arm()[1].rotor_inertia[joint]
    for name, value in (('J', rotor), ('M', carried), ('K', K[joint]), ('D', D[joint])):
        estimate, low, high = found.parameters[name]
        assert low < value < high, name
        assert estimate == pytest.approx(value, rel=RESONANCE[name])
    assert found.antiresonance == pytest.approx(np.sqrt(K[joint] / carried) / 2 / np.pi, rel=0.01)
    assert found.band[1] < 100.0, 'the noise of the encoder is no excitation'
    assert len(told) == 1 and told[0].startswith('experimental')


#: J, M, K, D, f of a motor and a link whose antiresonance is at 6 Hz, resonance at 6 sqrt(3) Hz
TWO = np.array([0.2, 0.4, 0.4 * (12.0 * np.pi)**2, 0.3, 0.3])


def shaken_two_masses(joint: int = 2) -> RawLog:
    """Return what sines of 1 to 40 Hz make of TWO, the motor turning back by 1 rad/s.

    Positions are those of links; the other joints rest under efforts that do not matter.
    """
    time = np.arange(2000) / 250.0
    s = 2j * np.pi * np.arange(1.0, 40.0, 0.31)
    waves = 0.3 * np.exp(np.outer(time, s) + 1j * np.random.default_rng(0).uniform(0, 6, len(s)))
    motor = two_mass_response(TWO, s) / s
    _, carried, stiffness, damping, viscous = TWO
    link = motor * (damping * s + stiffness) / (carried * s**2 + damping * s + stiffness)
    effort = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    effort[:, joint] = waves.imag.sum(axis=1) - viscous - 2.0  # and dry friction
    motors, links = np.zeros((2, len(time), 3))
    motors[:, joint], links[:, joint] = ((waves @ one).imag - time for one in (motor, link))
    return RawLog('shaken', ('joint_1', 'joint_2', 'joint_3'), time, links, effort=effort,
                  motor_position=motors)


@pytest.mark.parametrize('both', [True, False])
def test_known_two_masses_are_found_from_motor_positions(both: bool) -> None:
    """Recorded as such, or as those of a joint whose link has no encoder."""
    log, robot = shaken_two_masses(), load_robot('planar_3r')
    if not both:
        assert log.motor_position is not None
        log = replace(log, position=log.motor_position, motor_position=None)
    found, told = motor_resonance(robot, log, 'joint_3', (3.0, 30.0))
    for (estimate, low, high), value, name in zip(
            found.parameters.values(), TWO, found.parameters, strict=True):
        assert low < value < high, name
        assert name in 'Df' or estimate == pytest.approx(value, rel=RESONANCE[name])
    assert found.antiresonance == pytest.approx(6.0, rel=0.01)
    assert found.resonance == pytest.approx(6.0 * np.sqrt(3.0), rel=0.01)
    assert 3.0 <= found.band[0] < 3.9 and 29.1 < found.band[1] <= 30.0  # Hz, 0.81 apart
    assert told == ['experimental: J, M and K hold for small motions in the pose of the recording,'
                    f' from {"motor_position" if both else "position"} and effort alone']


def test_motor_states_that_cannot_be_used_are_refused_with_the_reason() -> None:
    """Joints of the same reason share a note."""
    log, robot = shaken_two_masses(), load_robot('planar_3r')
    assert log.motor_position is not None
    holes = replace(log, motor_position=np.where([True, False, True], np.nan, log.motor_position))
    for joint in ('joint_1', 'joint_3'):
        with pytest.raises(DataError, match='motor states of joint_1, joint_3: there are none'):
            motor_resonance(robot, holes, joint)
    with pytest.raises(DataError, match='motor states of joint_2: the joint travels over 0 only'):
        motor_resonance(robot, holes, 'joint_2')


def exact_response(values: FloatArray, count: int = 24, deviation: float = 0.01) -> Response:
    """Return the exact response of ``values`` (5,) at 2 to 40 Hz."""
    frequency = np.linspace(2.0, 40.0, count)
    return Response(frequency, two_mass_response(values, 2j * np.pi * frequency),
                    np.full(count, deviation))


def test_the_response_is_that_of_the_equations_of_two_masses() -> None:
    """Of the motor and the link, solved frequency by frequency; its poles and zeros, too."""
    inertia, carried, stiffness, damping, viscous = TWO
    frequency = np.linspace(1.0, 40.0, 50)
    for s, found in zip(2j * np.pi * frequency, two_mass_response(TWO, 2j * np.pi * frequency),
                        strict=True):
        both = damping * s + stiffness
        motor, _ = np.linalg.solve([[inertia * s**2 + viscous * s + both, -both],
                                    [-both, carried * s**2 + both]], [1.0, 0.0])
        assert found == pytest.approx(s * motor, rel=1e-9)


@pytest.mark.parametrize(('low', 'high', 'inside'), [
    (2.0, 12.0, True), (5.9, 40.0, True), (6.1, 40.0, False), (2.0, 10.3, False)])
def test_antiresonance_and_resonance_must_be_inside_the_band(
    low: float, high: float, inside: bool
) -> None:
    frequency = np.linspace(low, high, 24)
    exact = Response(frequency, two_mass_response(TWO, 2j * np.pi * frequency),
                     np.full(24, 0.01))
    if inside:
        found = two_masses(exact)
        assert (found.antiresonance, found.resonance) == pytest.approx((6.0, 6.0 * np.sqrt(3.0)))
        assert found.band == (low, high)
    else:
        with pytest.raises(DataError, match='no antiresonance with its resonance between'):
            two_masses(exact)


def test_exact_responses_give_exact_parameters() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        inertia, link = rng.uniform(0.2, 1.0, 2)
        anti = 2.0 * np.pi * rng.uniform(4.0, 15.0)
        values = np.array([inertia, link, link * anti**2, 0.02 * anti * link, 0.3])
        found = two_masses(exact_response(values))
        np.testing.assert_allclose([v for v, _, _ in found.parameters.values()], values,
                                   rtol=1e-4)


@pytest.mark.parametrize(('deviation', 'noise'), [(0.01, 0.0), (0.03, 0.0), (0.01, 0.02)])
def test_intervals_are_those_of_the_logarithms_of_the_parameters(
    deviation: float, noise: float
) -> None:
    """By Fisher's information in 1.96 deviations, wider where the response errs by more than told.

    Sensors and the drive add 1 % to masses and stiffness, 5 % to what damps.
    """
    exact = exact_response(TWO, deviation=deviation)
    draws = np.random.default_rng(0).normal(size=(2, 24))
    noisy = replace(exact, value=exact.value * np.exp(noise * (draws[0] + 1j * draws[1])))
    found = two_masses(noisy)
    values, low, high = np.array(list(found.parameters.values())).T

    def errors(logarithms: FloatArray) -> FloatArray:
        error = np.log(two_mass_response(np.exp(logarithms), 2j * np.pi * noisy.frequency)
                       / noisy.value) / deviation
        return np.concatenate([error.real, error.imag])

    step = 1e-5 * np.eye(5)
    slopes = np.array([(errors(np.log(values) + one) - errors(np.log(values) - one)) / 2e-5
                       for one in step]).T
    left = errors(np.log(values))
    misfit = np.sqrt(np.mean(left**2))
    assert found.misfit == pytest.approx(misfit, abs=1e-9)
    assert misfit > 1.5 if noise else misfit < 1e-9
    curved = slopes / (1.0 + left**2)[:, None] ** 0.75  # of soft_l1, 2 (sqrt(1 + e^2) - 1)
    spread = np.diag(np.linalg.inv(curved.T @ curved)) * max(misfit, 1.0)**2
    half = 1.96 * np.sqrt(spread + np.array([0.01, 0.01, 0.01, 0.05, 0.05])**2)
    np.testing.assert_allclose(np.log(high / values), half, rtol=1e-3)
    np.testing.assert_allclose(np.log(values / low), half, rtol=1e-3)
    assert found.frequencies == 24 and found.band == (2.0, 40.0)


def test_a_rigid_joint_and_a_motion_without_excitation_are_refused() -> None:
    robot, log = load_robot('planar_3r'), shaken_two_masses()
    with pytest.raises(DataError, match=r'no antiresonance.*take the joint as rigid'):
        motor_resonance(robot, log, 'joint_3', (12.0, 30.0))
    frequency = np.linspace(1.0, 60.0, 200)
    one = 1.0 / (2j * np.pi * frequency * 0.5 + 0.3)
    noisy = one * np.exp(0.01 * np.random.default_rng(0).normal(size=200))
    with pytest.raises(DataError, match='no antiresonance'):
        two_masses(Response(frequency, noisy, np.full(200, 0.01)))
    with pytest.raises(DataError, match=r'coherent at .* too few'):
        noise = np.random.default_rng(0).normal(size=log.position.shape)
        motor_resonance(robot, replace(log, effort=noise), 'joint_3')
    with pytest.raises(UsageError, match='no joint'):
        motor_resonance(robot, log, 'elbow')


def filtered_noise(order: int, noise: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return positions and efforts (26000,): white noise through (1 - 0.9 z^-1)^-order.

    As much ``noise`` is added to what is filtered.
    """
    effort, more = np.random.default_rng(0).normal(size=(2, 26000))
    poles = [np.poly(np.full(order, 0.9))]
    return np.asarray(lfilter([1.0], *poles, effort + noise * more)), np.asarray(effort)


@pytest.mark.parametrize(('order', 'band', 'lowest', 'highest'), [
    (5, None, 0.075, 20.0), (5, (3.0, 8.0), 3.0, 8.0),
    # there its power is 100 times the median beyond 40 Hz: |1 - 0.9 exp(-2 pi j f / 100)|^4 = 1/8
    (2, None, 0.075, 10.0)])
def test_a_response_holds_where_the_motion_stands_out_of_noise(
    order: int, band: tuple[float, float] | None, lowest: float, highest: float
) -> None:
    """From three periods of a stretch up to a fifth of the sampling frequency; exact there."""
    found = response(*filtered_noise(order), 0.01, band)
    assert found.frequency[0] == pytest.approx(lowest, abs=0.005)
    assert lowest + 0.025 * (len(found.frequency) - 1) == pytest.approx(highest, rel=0.03)
    turn = 2j * np.pi * found.frequency
    exact = turn / (1.0 - 0.9 * np.exp(-0.01 * turn))**order
    ratio = found.value / exact
    assert np.abs(ratio - 1.0).max() < 0.05


@pytest.mark.parametrize('noise', [0.1, 0.5])
def test_deviations_of_a_response_are_those_of_its_errors(noise: float) -> None:
    """Over 790 frequencies; a stretch counts as 0.6, of Hann's windows it would be 0.95."""
    found = response(*filtered_noise(5, noise), 0.01)
    turn = 2j * np.pi * found.frequency
    error = np.log(found.value / (turn / (1.0 - 0.9 * np.exp(-0.01 * turn))**5))
    for part in (error.real, error.imag):
        assert np.sqrt(np.mean((part / found.deviation)**2)) == pytest.approx(
            np.sqrt(0.6 / 0.95), rel=0.1)


def test_a_response_that_is_coherent_throughout_keeps_a_deviation() -> None:
    """That of a coherence of 1 - 1e-6, of 12 stretches that count 0.6 each."""
    position, _ = filtered_noise(5)
    found = response(position, position, 0.01)
    np.testing.assert_allclose(found.deviation, np.sqrt(1e-6 / (2.0 * 0.6 * 12)), rtol=1e-3)


def test_a_response_needs_twelve_frequencies() -> None:
    """0.025 Hz apart: twelve stretches and a half overlap in 260 s."""
    found = response(*filtered_noise(5), 0.01, (3.0 - 1e-6, 3.275 + 1e-6))
    np.testing.assert_allclose(found.frequency, 3.0 + 0.025 * np.arange(12))
    with pytest.raises(DataError, match=r'coherent at 11 frequencies of 3 to 3\.25 Hz'):
        response(*filtered_noise(5), 0.01, (3.0 - 1e-6, 3.25 + 1e-6))


@pytest.mark.parametrize(('ratio', 'seen'), [(1.95, False), (2.05, True)])
def test_two_masses_must_explain_the_response_twice_as_well_as_one(
    ratio: float, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of several starts counts; one mass begins with both, and their friction."""
    slopes, starts = np.random.default_rng(0).normal(size=(48, 5)), list[FloatArray]()

    def least_squares(errors: Any, start: FloatArray, **options: object) -> SimpleNamespace:
        starts.append(np.exp(start))
        if len(start) == 2:
            exact = exact_response(TWO)
            one = np.log(1.0 / (1.4j * np.pi * exact.frequency + 0.2) / exact.value) / 0.01
            np.testing.assert_allclose(errors(np.log([0.7, 0.2])), [*one.real, *one.imag])
            return SimpleNamespace(cost=3.0 * ratio)
        best = len(starts) == 3
        return SimpleNamespace(cost=3.0 if best else 4.0, jac=slopes,
                               x=np.log(TWO) if best else start)

    monkeypatch.setattr('scipy.optimize.least_squares', least_squares)
    if not seen:
        with pytest.raises(DataError, match='no antiresonance'):
            two_masses(exact_response(TWO))
        return
    found = two_masses(exact_response(TWO))
    np.testing.assert_allclose(starts[-1], [TWO[0] + TWO[1], TWO[4]])
    assert [len(one) for one in starts] == [5, 5, 5, 5, 5, 5, 2]
    exact, grid = exact_response(TWO), 2.0 * np.pi * np.geomspace(2.0, 40.0, 14)
    off = []
    for inertia, link, stiffness, damping, viscous in starts[:6]:
        anti = np.sqrt(stiffness / link)
        assert np.abs(grid / anti - 1.0).min() < 1e-9
        assert np.abs(1.0 + link / inertia - np.array([1.3, 2.0, 4.0, 10.0, 30.0])).min() < 1e-9
        assert (damping, viscous) == pytest.approx((0.1 * anti * link, 0.1 * link))
        error = np.log(two_mass_response(np.array([inertia, link, stiffness, damping, viscous]),
                                         2j * np.pi * exact.frequency) / exact.value)
        assert np.mean(error.real) == pytest.approx(0.0, abs=1e-9)  # of the right scale
        off.append(sum(np.minimum(np.abs(part) / 0.01, 100.0).sum()
                       for part in (error.real, error.imag)))
    assert off == sorted(off)
    half = np.exp(1.96 * np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) + np.square(
        [0.01, 0.01, 0.01, 0.05, 0.05])))
    np.testing.assert_allclose(list(found.parameters.values()), np.transpose(
        [TWO, TWO / half, TWO * half]))


@pytest.mark.parametrize('ratio', [1.3, 2.0, 4.0, 10.0, 30.0])
def test_the_search_begins_at_the_start_that_fits_best(
    ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the grid of antiresonances and of squared ratios of the resonance to them."""
    anti = 2.0 * np.pi * np.geomspace(2.0, 40.0, 14)[5]
    exact = 0.3 * np.array([1.0 / (ratio - 1.0), 1.0, anti**2, 0.1 * anti, 0.1])

    def least_squares(errors: object, start: FloatArray, **options: object) -> None:
        np.testing.assert_allclose(np.exp(start), exact)
        raise StopIteration

    monkeypatch.setattr('scipy.optimize.least_squares', least_squares)
    with pytest.raises(StopIteration):
        two_masses(exact_response(exact))


def warned(
    monkeypatch: pytest.MonkeyPatch, share: float = 0.0, back: float = 0.0, sign: float = 1.0
) -> list[str]:
    """Return the warnings of joint 3 that turns back so long, joints 1 and 2 move by a share."""
    known = TwoMasses({}, 1.0, 2.0, (1.0, 2.0), 12, 1.0)
    monkeypatch.setattr(module, 'response', lambda *_: None)
    monkeypatch.setattr(module, 'two_masses', lambda _: known)
    time = np.arange(1000) / 100.0
    speed = np.full((1000, 3), sign)
    speed[1000 - round(1000 * back):, 2] *= -1.0
    speed[:, 0] = share * np.where(time < 5.0, 1.0, -1.0)
    speed[:, 1] = 0.5 * speed[:, 0]
    log = RawLog('turning', ('joint_1', 'joint_2', 'joint_3'), time, np.cumsum(speed, axis=0)
                 / 100.0, effort=np.sin(np.outer(time, [1.0, 2.0, 3.0])))
    found, warnings = motor_resonance(load_robot('planar_3r'), log, 'joint_3')
    assert found is known and warnings[0].startswith('experimental')
    return warnings[1:]


@pytest.mark.parametrize(('share', 'moved'), [
    (0.09, ''), (-0.12, 'joint_1'), (0.25, 'joint_1, joint_2')])
def test_joints_that_move_by_a_tenth_of_the_shaken_one_are_named(
    share: float, moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [text.split(' moved, too')[0] for text in warned(monkeypatch, share)] == (
        [moved] if moved else [])


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_a_joint_that_turns_back_for_a_twentieth_of_the_time_is_named(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warned(monkeypatch, back=0.045, sign=sign) == []
    (text,) = warned(monkeypatch, back=0.3, sign=sign)
    assert text.startswith('the joint turns back 30 % of the time')
    assert len(warned(monkeypatch, back=0.055, sign=sign)) == 1


def test_the_command_prints_what_was_found_and_what_spoils_it(tmp_path, capsys) -> None:
    log = shaken_two_masses()
    position = np.array(log.motor_position)
    position[:, 0] = 0.5 * np.sin(3.0 * log.time)
    write_csv(tmp_path / 'log.csv', replace(log, position=position, motor_position=None))
    arguments = ['resonance', str(tmp_path / 'log.csv'), '--robot', 'planar_3r', '--joint',
                 'joint_3', '--band', '3', '30']
    started = perf_counter()
    assert main([*arguments, '--json']) == 0
    passed = perf_counter() - started
    found = json.loads(capsys.readouterr().out)
    assert found['experimental'] is True and found['robot'] == 'planar_3r'
    assert found['joint'] == 'joint_3' and 0.0 < found['seconds'] < passed
    assert list(found['parameters']) == ['J', 'M', 'K', 'D', 'f']
    stiffness = found['parameters']['K']
    assert stiffness['low'] < TWO[2] < stiffness['high']
    assert stiffness['value'] == pytest.approx(TWO[2], rel=RESONANCE['K'])
    assert found['antiresonance'] == pytest.approx(6.0, rel=0.01)
    assert found['resonance'] == pytest.approx(6.0 * np.sqrt(3.0), rel=0.01)
    assert 3.0 <= found['band'][0] < 3.9 and 28 <= found['frequencies'] <= 34
    assert found['warnings'][1].startswith('joint_1 moved, too')
    for missing in ('--robot', '--joint'):
        place = arguments.index(missing)
        assert main([*arguments[:place], *arguments[place + 2:]]) == 2
        assert f'the following arguments are required: {missing}' in capsys.readouterr().err
    assert main(arguments) == 0
    shown = capsys.readouterr()
    for words in ('joint_3: two masses (experimental)', 'N m/rad, stiffness', 'Hz'):
        assert words in shown.out + shown.err
