"""robot_dynid_extras/latent/motion.py: motion and parameters at once: the spline's equations,
truth from noisy channels, the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from tolerances import SAME_FORMULA

from robot_dynid.effects import axes_of
from robot_dynid.errors import DataError
from robot_dynid.friction import law_from
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.unfiltered import AsRecorded, Unfiltered
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers import elastic_joints as paper
from robot_dynid_evaluation.papers import elastic_joints_arm as simulated
from robot_dynid_evaluation.papers.elastic_joints_arm import logged
from robot_dynid_evaluation.papers.elastic_joints_arm import simulated as friction_of
from robot_dynid_extras.latent import latent as latent_laws
from robot_dynid_extras.latent.coordinate_equations import CoordinateEquations
from robot_dynid_extras.latent.motion import (
    EXACT,
    Channel,
    Condensed,
    LatentProblem,
    LatentState,
    Stretch,
)
from robot_dynid_extras.latent.motion_spline import DEGREE, MotionSpline
from robot_dynid_extras.latent.stretches import Cut, stretches_of


def silent(stage: str, share: float) -> None:
    """Report nothing."""


def deviations(one: Condensed, chosen: NDArray[np.bool_]) -> FloatArray:
    """Return the deviations (b,) that the likelihood gives, zero where nothing is sought."""
    found = np.zeros(len(chosen))
    scale = np.sqrt(np.diag(one.normal))
    inverse = np.linalg.pinv(one.normal / np.outer(scale, scale), hermitian=True)
    found[chosen] = (np.sqrt(np.diag(inverse)) / scale)[:int(chosen.sum())]
    return found


def test_a_spline_follows_polynomials_with_their_derivatives() -> None:
    time = np.linspace(1.0, 2.0, 201)
    curves = [np.polynomial.Polynomial(c) for c in np.random.default_rng(0).normal(size=(2, 5))]
    spline = MotionSpline(time, 0.05)
    found = spline.motion(spline.fitted(np.stack([c(time) for c in curves], axis=1)))
    for order, values in enumerate(found):
        wanted = [(c.deriv(order) if order else c)(time) for c in curves]
        np.testing.assert_allclose(values, np.stack(wanted, axis=1),
                                   rtol=0.0, atol=1e4 * SAME_FORMULA)


@pytest.mark.parametrize(('spacing', 'intervals'), [(0.03, 33), (0.028, 36), (5.0, 1)])
def test_a_spline_is_that_of_uniform_knots(spacing: float, intervals: int) -> None:
    """About as far apart as asked for; at other instants, and at the last, too."""
    time = np.linspace(1.0, 2.0, 201)
    spline = MotionSpline(time, spacing)
    assert spline.intervals == intervals
    coefficients = np.random.default_rng(0).normal(size=(intervals + DEGREE, 2))
    knots = 1.0 + np.arange(-DEGREE, intervals + DEGREE + 1) / intervals
    curve = BSpline(knots, coefficients, DEGREE)
    for instants in (time, np.array([1.0, 1.01234, 1.98, 2.0])):
        for order, values in enumerate(spline.at(instants).motion(coefficients)):
            exact = (curve.derivative(order) if order else curve)(np.minimum(instants, 2 - 1e-12))
            np.testing.assert_allclose(values, exact, rtol=0.0, atol=1e-6 * np.abs(exact).max())


def test_band_equations_are_those_of_dense_least_squares() -> None:
    """Sums per interval against one dense matrix, for a number of samples that does not divide."""
    time, rng = np.linspace(0.0, 1.0, 103), np.random.default_rng(1)
    spline = MotionSpline(time, 0.1)
    gradients = rng.normal(size=(3, len(time), 4, 2))
    local = sum(spline.local(g, k) for k, g in enumerate(gradients))
    count = 2 * (spline.intervals + 4)
    dense = np.zeros((len(time), 4, count))
    for column, unit in enumerate(np.eye(count)):
        motion = spline.motion(unit.reshape(-1, 2))
        dense[:, :, column] = sum(np.einsum('nrm,nm->nr', g, x)
                                  for g, x in zip(gradients, motion, strict=True))
    dense = dense.reshape(-1, count)
    right = rng.normal(size=(len(time), 4, 3))
    scale = float(np.abs(dense.T @ dense).max())
    band = spline.normal(local)
    for k in range(len(band)):
        np.testing.assert_allclose(band[k, :count - k], np.diagonal(dense.T @ dense, -k),
                                   rtol=0.0, atol=SAME_FORMULA * scale)
    np.testing.assert_allclose(spline.gathered(local, right), dense.T @ right.reshape(-1, 3),
                               rtol=0.0, atol=SAME_FORMULA * scale)


def test_gears_are_told_from_noise_that_drowns_their_deflection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 40 dB least squares loses the gear of joint 2 (attenuation); the joint fit finds it."""
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10)
    motion = simulated.record(arm, silent)
    channels = paper.noisy(motion, 40.0)
    model = paper.falling(arm, paper.FALLEN)
    found = paper.latent_fit(arm, (motion.time, channels, motion.effort))
    values, sure = found.state.values, deviations(found.condensed[0], paper.chosen_of(model))
    theirs = paper.paper_errors(arm, paper.low_passed(motion, channels))
    ours = paper.errors_of(arm, model, values)
    assert theirs['K2'] > 0.2
    for name in ('K1', 'K2', 'Ia1', 'Ia2', 'Izz1', 'Izz2'):
        place = model.reduction.names.index(name)
        true = arm.base(model)[place]
        assert abs(values[place] - true) < 4.0 * sure[place] + 0.01 * true, name
    assert max(ours['K1'], ours['K2']) < 0.1
    for order, deflected in enumerate((motion.position, motion.velocity)):
        noise = (channels[order].values - deflected).std(axis=0)
        assert np.all((found.motion[0][order] - deflected).std(axis=0) < 0.2 * noise)


def test_the_speed_over_which_friction_falls_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun twice too high, from encoders that count."""
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10)
    found = paper.latent_fit(arm, paper.positions(simulated.record(arm, silent)))
    assert found.state.shapes[0] == pytest.approx(arm.fallen, rel=0.05)


def test_identify_finds_the_parameters_from_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user gets, from a third of the motion.

    Static friction shows in few instants: from 2500 to 6000 samples the mean error goes from 0.004
    to 0.04, up and down, without it from 0.002 to 0.0085.
    """
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10)
    found = logged(arm, simulated.record(arm, silent))
    assert len(found.errors) == 12
    assert paper.mean(found.errors, static=False) < 0.01
    assert paper.mean(found.errors) < 0.5 * paper.PAPER
    assert found.moving.max() < 0.02


def test_friction_laws_are_compared_by_what_they_do() -> None:
    arm = simulated.planar()
    told = friction_of(arm)
    np.testing.assert_allclose(told.viscous, arm.truth.viscous)
    np.testing.assert_allclose(told.moving, arm.truth.coulomb)
    fallen = simulated.CREEP / arm.fallen * (arm.static - arm.truth.coulomb)
    np.testing.assert_allclose(told.static, arm.static - fallen, rtol=1e-3)


def no_motion() -> simulated.Motion:
    """Return ten samples of two joints at rest."""
    return simulated.Motion(*(np.zeros((10, 4)) for _ in range(4)), np.zeros((10, 2)))


def test_channels_with_little_noise_keep_a_deviation() -> None:
    for channel in paper.noisy(no_motion(), np.inf):
        assert isinstance(channel, Channel)
        assert np.all(channel.deviation > 0.0)


def test_rounds_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of parameters and motion at once, without one of the motion alone, stay at 1.5."""
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10, excess=1.0)
    motion = simulated.record(arm, silent)
    model = paper.model_of(arm, 'coulomb', {'width': 2e-3})
    spread = 1e-3 * motion.position.std(axis=0)
    stretch = Stretch(motion.time, (Channel(0, motion.position, spread),), motion.time,
                      np.hstack([motion.effort, motion.effort]))
    problem = LatentProblem(model, (stretch,), np.ones(len(model.reduction.names), dtype=bool))
    state = LatentState(
        (stretch.splines[0].fitted(motion.position),), arm.base(model), np.zeros(0),
        EXACT * stretch.effort.std(axis=0), 0.04)
    for _ in range(6):
        state = problem.better(state, problem.condensed(state), state.speed)
    [equations] = problem.condensed(state)
    step = problem.step([equations])
    assert step @ equations.normal @ step < 0.5


def test_least_errors_fall_with_the_noise_and_rise_with_what_is_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10, excess=1.0)
    motion = simulated.record(arm, silent)
    own, every = (paper.least_error(arm, motion, 60.0, only) for only in (True, False))
    assert own < every
    # about tenfold: equations err, too, and count beyond a speed that rises with the noise
    assert 5.0 * own < paper.least_error(arm, motion, 40.0, True) < 20.0 * own


def test_the_step_from_the_truth_goes_where_the_fit_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 dB, where what is linear about the truth is all there is; static friction aside."""
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    arm = replace(simulated.planar(), knots=10, excess=1.0)
    motion = simulated.record(arm, silent)
    problem, state = paper.at_truth(arm, motion, 80.0, simulated.noisy_positions(motion, 80.0, 1))
    best = state
    for _ in range(4):  # the motion follows the true parameters
        best = problem.with_known_parameters.with_best_motion(best)
    step = paper.errors_of(
        arm, problem.model, best.values + problem.step(problem.condensed(best)))
    fit = paper.errors_of(arm, problem.model, problem.fit(state).state.values)
    worst = max(step, key=lambda name: step[name])
    assert step[worst] == pytest.approx(fit[worst], rel=0.3)
    least = paper.least_error(arm, motion, 80.0, False)
    assert 0.3 * least < paper.mean(step) < 3.0 * least


def test_a_falling_law_is_found_from_a_motion_that_another_law_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Told that noise is at 60 dB, from a tight fit with Coulomb friction, at twice the speed.

    No noise, so it is the ringing beside reversals that is left; most of it is in joint 2.
    """
    monkeypatch.setattr(simulated, 'COUNT', 3000)
    monkeypatch.setattr(latent_laws, 'FALLING', 'coulomb+levelling')
    monkeypatch.setattr(latent_laws, 'FALLS_OVER', ('levelling', 'speed'))
    monkeypatch.setattr(latent_laws, 'surely_lower', lambda *_: True)
    monkeypatch.setattr(latent_laws, 'misfits_of', lambda problem, fit: (
        np.array([problem.misfit(fit.state, [0], 0)]), fit.state.values))
    arm = replace(simulated.planar(), knots=10)
    motion = simulated.record(arm, silent)
    spread = 1e-3 * motion.position.std(axis=0)
    stretch = Stretch(motion.time, (Channel(0, motion.position, spread),), motion.time,
                      np.hstack([motion.effort, motion.effort]))
    model = paper.model_of(arm, 'coulomb', {'width': 2e-3})
    problem = LatentProblem(model, (stretch,), np.ones(len(model.reduction.names), dtype=bool))
    fit = problem.fit(problem.guess())
    chosen = [('coulomb', law_from('coulomb', {'width': 2e-3}))] * 2
    found = latent_laws.better_laws((problem, fit), chosen, [(), ()], silent)
    speeds = [law.settings()['levelling']['speed'] for _, law in found]
    assert speeds[0] == pytest.approx(arm.fallen, rel=0.02)
    assert speeds[1] == pytest.approx(arm.fallen, rel=0.05)


@pytest.mark.parametrize('name', ['elastic_2r', 'tx40'])
@pytest.mark.parametrize('each', [True, False])
def test_equations_count_while_the_axes_that_rub_in_them_turn(name: str, each: bool) -> None:
    """For so many samples, the middle one counts; motors, or axes that are coupled."""
    model = Structure.uniform(load_robot(name), True, 'coulomb', {}).torque_model(
        load_robot(name))
    equations, axes = CoordinateEquations(model), axes_of(model.robot)
    count, rng = model.robot.coordinates, np.random.default_rng(0)
    size, phase = rng.uniform([[0.2], [0.0]], [[1.0], [6.0]], (2, count))
    velocity = size * np.sin(np.linspace(0.0, 9.0, 60)[:, None] + phase)
    speed = rng.uniform(0.05, 0.3, len(axes.labels)) if each else 0.2
    found = equations.counts(velocity, speed, 5)
    turning = np.abs(velocity @ axes.matrix.T) > speed
    for row in range(count):
        rubbing = np.flatnonzero(axes.effort @ equations.rows[row])
        assert len(rubbing) or name == 'elastic_2r'
        for k in range(60):
            around = turning[max(k - 2, 0):k + 3, rubbing]
            assert found[k, row] == float(around.all())
    assert 0.1 < found.mean() < 0.9


def part(seconds: float, began: float, noise: float = 1e-4, rate: float = 500.0) -> Unfiltered:
    """Return a part of a recording whose two encoders are noisy, the second four times as much."""
    time = 5.0 + np.arange(round(seconds * rate) + 1) / rate
    rng = np.random.default_rng(round(1e3 * began))
    smooth = np.column_stack([np.sin(3.0 * time), np.cos(2.0 * time)])
    stamps = time[:-1] + 0.3 / rate
    return Unfiltered(time, smooth + noise * np.array([1.0, 4.0]) * rng.standard_normal(
        smooth.shape), stamps, np.column_stack([stamps, -stamps]), began=began)


def cut(*recordings: tuple[Unfiltered, ...]) -> Cut:
    """Return the stretches of recordings."""
    return stretches_of(AsRecorded(lambda: iter(recordings), lambda *_: None))


def test_recordings_are_cut_into_stretches_of_a_second_that_share_their_ends() -> None:
    """Those that go on say so; each has the efforts within it, and the noise of all."""
    found = cut((part(3.2, 10.0), part(2.0, 10.0)), (), (part(3.9, 20.0),))
    assert [round(500.0 * (one.time[-1] - one.time[0])) for one in found.stretches] == [
        533, 533, 534, 500, 500, 650, 650, 650]
    assert [one.recording for one in found.stretches] == 5 * [0] + 3 * [1]
    assert [one.began for one in found.stretches] == 5 * [10.0] + 3 * [20.0]
    assert [one.goes_on for one in found.stretches] == [
        False, True, True, False, True, False, True, True]
    for one in found.stretches:
        inside = (one.stamps >= one.time[0]) & (one.stamps < one.time[-1])
        assert inside.all() and len(one.stamps) == len(one.time) - 1
        np.testing.assert_array_equal(one.effort, np.column_stack([one.stamps, -one.stamps]))
        assert one.channels[0].order == 0 and len(one.channels[0].values) == len(one.time)
        assert one.temperature is None
    np.testing.assert_allclose(found.noise, [1e-4, 4e-4], rtol=0.05)
    axes = np.array([[1.0, 0.0], [3.0, 1.0]])
    deviation = found.noise * np.sqrt(12.0 * 0.002 / 0.02**3)  # of a line's slope over 20 ms
    np.testing.assert_allclose(found.slowest(axes), 1.5 * np.array(
        [deviation[0], np.hypot(3.0 * deviation[0], deviation[1])]), rtol=1e-12)


def test_short_recordings_are_cut_into_eighths_and_long_ones_looked_at_evenly() -> None:
    short = cut((part(1.4, 1.0),))  # seven of an eighth or more
    assert [len(one.time) for one in short.stretches] == 7 * [101]
    long = cut((part(150.0, 1.0, rate=100.0),))
    begins = [one.time[0] for one in long.stretches]
    assert len(long.stretches) == 50 and not any(one.goes_on for one in long.stretches)
    np.testing.assert_allclose(np.diff(begins), 3.0, rtol=0.0, atol=0.03)
    with pytest.raises(DataError, match=r'last 0\.12 s together: .* stretches of 0\.08 s or more'):
        cut((part(0.12, 1.0),))
    still = cut((replace(part(2.0, 1.0), position=np.zeros((1001, 2))),))
    np.testing.assert_allclose(still.noise, 1e-10)
