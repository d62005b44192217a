"""The method latent: derivatives, noise, truth within deviations, refusal, files and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from motions import lively, noisy, noisy_log, parameter_errors, torque_model
from scipy.interpolate import make_interp_spline
from tolerances import DIFFERENCE, SAME_FORMULA

from robot_dynid import load_robot
from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import Cancelled, DataError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.estimate import Estimate
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.friction import law_from
from robot_dynid.identification import gathered
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.plain import to_plain
from robot_dynid.reduction.numeric import random_states
from robot_dynid.report.effects import method as method_section
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.signals.unfiltered import AsRecorded, unfiltered
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid_extras.latent import latent
from robot_dynid_extras.latent.coordinate_equations import CoordinateEquations
from robot_dynid_extras.latent.latent import LatentDetails
from robot_dynid_extras.latent.motion import (
    CAUCHY,
    LatentFit,
    LatentProblem,
    LatentState,
)
from robot_dynid_extras.latent.stretches import stretches_of

#: gears [N m/rad], rotors [kg m^2] and friction of the arm below; noise of its encoders [rad],
#: a fifth of the deflection, and of its effort [N m]
STIFF, ROTOR, VISCOUS, DRY = (12000.0, 6000.0), (1.1, 0.35), (20.0, 8.0), (15.0, 6.0)
NOISE, EFFORT_NOISE = 1e-3, 0.5
#: noise of encoders [rad] that leaves instruments strong
QUIET = 2e-4
RATE, SECONDS, WIDTH = 1000.0, 4.0, 0.02


def elastic_model(law: str = 'coulomb', **settings: object) -> TorqueModel:
    """Return the torque model of the planar arm with elastic joints."""
    robot = load_robot('elastic_2r')
    return Structure.uniform(robot, True, law, {'width': WIDTH, **settings}).torque_model(robot)


def true_values(model: TorqueModel) -> FloatArray:
    """Return the base parameters (b,) of the signals below."""
    standard = dict.fromkeys(model.reduction.standard, 0.0)
    standard |= dict(zip(model.reduction.standard, model.robot.nominal.ravel(), strict=False))
    for j in range(2):
        standard |= {f'K{j + 1}': STIFF[j], f'Ia{j + 1}': ROTOR[j], f'fv{j + 1}': VISCOUS[j],
                     f'fc{j + 1}': DRY[j]}
    return model.reduction.base(list(standard.values()))


@cache
def true_log(motion: int = 4) -> RawLog:
    """Return exact signals: the gears bend by the torque of links that move as sums of sines."""
    robot, time = load_robot('elastic_2r'), np.arange(round(SECONDS * RATE)) / RATE
    rng = np.random.default_rng(motion)
    rate, phase = rng.uniform(2.0, 9.0, (6, 2)), rng.uniform(0.0, 6.0, (6, 2))
    size = 0.35 / rate**0.5
    angle = time[:, None, None] * rate + phase
    link = [np.sum(s, axis=1) for s in (size * np.sin(angle), size * rate * np.cos(angle),
                                        -size * rate**2 * np.sin(angle))]
    torque = rigid_body.inverse_dynamics(robot, *link, robot.nominal)
    bend = make_interp_spline(time, torque / np.array(STIFF), k=5)
    motor = [signal + (bend.derivative(k) if k else bend)(time) for k, signal in enumerate(link)]
    friction = np.array(VISCOUS) * motor[1] + np.array(DRY) * np.clip(motor[1] / WIDTH, -1.0, 1.0)
    effort = torque + np.array(ROTOR) * motor[2] + friction
    return RawLog('exact', robot.joints, time, link[0], effort=effort, motor_position=motor[0])


def seen(seed: int, position: float = NOISE, effort: float = EFFORT_NOISE) -> RawLog:
    """Return the signals with white noise."""
    log, rng = true_log(), np.random.default_rng(seed)
    assert log.motor_position is not None and log.effort is not None
    draws = rng.standard_normal((3, *log.position.shape))
    return replace(log, position=log.position + position * draws[0],
                   motor_position=log.motor_position + position * draws[1],
                   effort=log.effort + effort * draws[2])


def experiment(model: TorqueModel, *logs: RawLog, cutoff: float = 20.0) -> Experiment:
    """Return the experiment of recordings, as `identify` makes it."""
    repaired = [repair(model.robot, log) for log in logs]
    samples = [prepare(model.robot, one, Preprocessing(cutoff)) for one in repaired]
    return replace(Experiment.of(model, samples), as_recorded=recorded(model.robot, *logs))


def recorded(robot: RobotModel, *logs: RawLog) -> AsRecorded:
    """Return recordings as they are."""
    repaired = [repair(robot, log) for log in logs]
    return AsRecorded(lambda: iter([unfiltered(robot, one, 0.0) for one in repaired]),
                      lambda stage, share: None)


def problem(model: TorqueModel, log: RawLog) -> LatentProblem:
    """Return the problem of all base parameters."""
    return LatentProblem(model, stretches_of(recorded(model.robot, log)).stretches, np.ones(
        len(model.reduction.names), dtype=bool))


@pytest.mark.parametrize('sensors', [(), (2,)])
def test_slopes_of_the_equations_are_those_of_the_regressor(sensors: tuple[int, ...]) -> None:
    """Rotors that spin on moving links, a rigid joint between, friction, a torque sensor."""
    robot, rng = load_robot('seven_axis'), np.random.default_rng(2)
    drive = replace(robot.drive, elastic=(0, 2, 5), torque_sensors=sensors,
                    gear_ratios=rng.uniform(50.0, 90.0, robot.n),
                    rotor_axes=rng.normal(size=(robot.n, 3)))
    robot = replace(robot, drive=drive)
    model = Structure.uniform(robot, True, 'coulomb+levelling', {'width': 0.02}).torque_model(
        robot)
    equations = CoordinateEquations(model)
    states, values = random_states(robot, 12, rng), rng.normal(size=len(model.reduction.names))
    motion = [states.position, states.velocity, states.acceleration]

    def effort(changed: list[FloatArray]) -> FloatArray:
        moved = Samples(robot.joints, states.time, *changed, starts=states.starts)
        rows = np.tensordot(values, model.columns(moved), (0, 1)).T
        return np.asarray(rows @ equations.rows.T)

    slopes = equations.slopes((motion[0], motion[1], motion[2]), values)
    step = 1e-5
    for order, slope in enumerate(slopes):
        for j in range(robot.coordinates):
            there, back = ([s.copy() for s in motion] for _ in range(2))
            there[order][:, j] += step
            back[order][:, j] -= step
            difference = (effort(there) - effort(back)) / (2.0 * step)
            np.testing.assert_allclose(slope[:, :, j], difference,
                                       rtol=0.0, atol=DIFFERENCE * max(1.0, np.abs(slope).max()))


def test_equations_of_links_have_neither_friction_nor_effort() -> None:
    model = elastic_model()
    equations = CoordinateEquations(model)
    assert not equations.rubbing[:2].any() and equations.rubbing[2:].any(axis=1).all()
    effort = np.array([[3.0, 5.0, 3.0, 5.0]])
    np.testing.assert_array_equal(effort @ equations.rows.T, [[0.0, 0.0, 3.0, 5.0]])


def test_the_gradient_is_that_of_the_misfit_with_its_best_motion() -> None:
    """Motion eliminated: central differences of costs whose motion follows the parameters."""
    model = elastic_model(width=50.0)  # no corner of friction in reach
    whole = problem(model, seen(0))
    short = replace(whole, stretches=whole.stretches[:2])
    state = short.guess(values=ESTIMATORS['wls'].fit(experiment(model, seen(0))).values)
    off = np.where(np.arange(len(state.values)) % 2, 1.002, 0.997)
    state = replace(state, values=off * state.values, speed=-1.0,
                    errors=np.array([20.0, 10.0, 30.0, 20.0]))
    for _ in range(12):
        moved = tuple(c + one.own.reshape(c.shape) for c, one in zip(
            state.coefficients, short.condensed(state), strict=True))
        state = replace(state, coefficients=moved)
    linear = short.condensed(state)
    told, seen_at = (sum(len(getattr(one, name)) for one in short.stretches)
                     for name in ('stamps', 'time'))
    assert told == pytest.approx(seen_at, rel=2e-3)
    right = np.sum([one.right for one in linear], axis=0) / told
    for name in ('Izz2', 'K1', 'Ia2', 'fv1', 'D2'):
        i = model.reduction.names.index(name)
        step = np.zeros(len(state.values))
        step[i] = 1e-4 * max(1.0, abs(state.values[i]))
        there, back = (short.misfit(replace(state, values=state.values + s * step), [0, 1], 6)
                       for s in (1.0, -1.0))
        assert -(there - back) / (2.0 * step[i]) == pytest.approx(right[i], rel=0.01), name


def test_the_motion_is_eliminated_from_the_equations_of_both() -> None:
    """Far from the best motion: one step of both leaves nothing along any parameter or motion."""
    model = elastic_model(width=50.0)
    whole = problem(model, seen(0))
    short = replace(whole, stretches=whole.stretches[:1])
    state = short.guess(values=ESTIMATORS['wls'].fit(experiment(model, seen(0))).values)
    rng = np.random.default_rng(0)
    size = 1e-3 * np.abs(state.coefficients[0]).max()
    state = replace(state, values=1.02 * state.values, speed=-1.0, errors=np.array(
        [20.0, 10.0, 30.0, 20.0]), coefficients=tuple(
            c + rng.normal(0.0, size, c.shape) for c in state.coefficients))
    stretch, coefficients = short.stretches[0], state.coefficients[0]
    values, motions = len(state.values), coefficients.size
    frozen: list[FloatArray] = []

    def left(change: FloatArray) -> FloatArray:
        """Return all residuals over their deviations, for a change of values and motion."""
        here = replace(state, values=state.values + change[:values], coefficients=(
            coefficients + change[values:].reshape(coefficients.shape),))
        [along] = short.along(here, short.motions_of(here))
        misfit, counts = along.misfit(here.values), along.counts
        if not frozen:  # weights are those before the step
            frozen.append(counts / here.errors / np.sqrt(
                1.0 + (misfit / (CAUCHY * here.errors)) ** 2))
        at = stretch.splines[0].motion(here.coefficients[0])
        channels = [(c.values - at[c.order]) / c.deviation for c in stretch.channels]
        return np.concatenate([x.ravel() for x in (misfit * frozen[0], *channels)])

    def along(direction: FloatArray) -> FloatArray:
        few = 1e-4 / np.abs(direction).max()
        return np.asarray((left(few * direction) - left(-few * direction)) / (2.0 * few))

    before = left(np.zeros(values + motions))
    [one] = short.condensed(state)
    step = np.linalg.lstsq(one.normal, one.right, rcond=1e-12)[0]
    after = before + along(np.concatenate([step, one.own - one.response @ step]))
    directions = [*np.eye(values, values + motions),
                  *(np.append(np.zeros(values), d) for d in rng.normal(size=(5, motions)))]
    for direction in directions:
        slope = along(direction)
        rest = abs(slope @ after) / (np.linalg.norm(slope) * np.linalg.norm(before))
        assert rest < 1e-5


@cache
def fits(seeds: int) -> list[tuple[Experiment, object]]:
    """Return the fits to a few noises."""
    model = elastic_model()
    made = [experiment(model, seen(seed)) for seed in range(seeds)]
    return [(one, ESTIMATORS['latent'].fit(one)) for one in made]


@pytest.mark.parametrize('seeds', [1, pytest.param(2, marks=pytest.mark.soak)])
def test_truth_is_within_deviations_and_nearer_than_with_instruments(seeds: int) -> None:
    model = elastic_model()
    true, ours, theirs, inside = true_values(model), [], [], []
    for data, estimate in fits(seeds):
        other = ESTIMATORS['elastic'].fit(data)
        assert estimate.method == 'latent' and estimate.details.kept
        ours.append(estimate.values - true)
        theirs.append(other.values - true)
        low, high = estimate.interval(0.99)
        inside.append((low < true) & (true < high))
    known = [not name.startswith('s') for name in model.reduction.names]  # offsets are removed
    assert np.mean(np.array(inside)[:, known]) > 0.9
    parts = [model.reduction.names.index(name) for name in ('mx1', 'mx2', 'Izz2', 'fv1', 'fv2')]
    rms = [np.sqrt(np.mean(np.square(np.array(one)[:, parts] / true[parts]))) for one in
           (ours, theirs)]
    assert rms[0] < 0.3 * rms[1]


def test_noise_of_encoders_and_errors_of_equations_are_found() -> None:
    for _, estimate in fits(1):
        np.testing.assert_allclose(estimate.details.position_noise, NOISE, rtol=0.05)
        # the motion takes up a quarter of the variance, which is 13 % of the deviation
        np.testing.assert_allclose(estimate.details.effort_error[2:].mean(), EFFORT_NOISE,
                                   rtol=0.1)


def test_latent_keeps_the_elastic_estimate_when_held_out_error_is_higher(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = fits(1)[0]
    monkeypatch.setattr(latent, 'misfits_of_start', lambda *_: -1e6 * np.ones(7))
    found, start = ESTIMATORS['latent'].fit(data), ESTIMATORS['elastic'].fit(data)
    assert np.array_equal(found.values, start.values) and np.array_equal(found.std, start.std)
    assert found.method == 'latent' and not found.details.kept
    expected = 'not surely lower with the method latent than with elastic: the parameters of'
    assert sum(expected in warning for warning in found.warnings) == 1


def test_a_fit_that_does_not_know_a_stiffness_is_refused() -> None:
    """Both encoders of joint 2 see the same but for their noise; beside a wrong stiffness any
    made-up bend of that gear is more likely.
    """
    model, log = elastic_model(), seen(0)
    rng = np.random.default_rng(5)
    motor = np.array(log.motor_position)
    motor[:, 1] = true_log().position[:, 1] + NOISE * rng.standard_normal(len(motor))
    data = experiment(model, replace(log, motor_position=motor))
    found, start = ESTIMATORS['latent'].fit(data), ESTIMATORS['elastic'].fit(data)
    assert isinstance(found.details, LatentDetails)
    assert found.details.undetermined == ('K2',) and not found.details.kept
    assert found.details.sure and found.details.gain > 0.0
    assert np.array_equal(found.values, start.values)
    assert any('does not tell K2 from infinity' in warning for warning in found.warnings)
    assert 'with K2 unknown: the parameters of elastic' in found.details.sentence(())


@cache
def likely() -> tuple[Experiment, Estimate, latent.Fitted]:
    """Return an experiment whose instruments are strong, its start, and its fit."""
    data = experiment(elastic_model(), seen(0, QUIET))
    start = ESTIMATORS['elastic'].fit(data)
    return data, start, latent.Fitted.of(data, start)


def judged(
    monkeypatch: pytest.MonkeyPatch, gains: Sequence[float], moved: dict[str, float],
    spread: float = 2.0, **instruments: object,
) -> tuple[Estimate, FloatArray]:
    """Return what is made of a fit with these ``gains``, and its values.

    They are those of the start, ``moved`` by so many of its deviations; its own deviations are
    ``spread`` times those.
    """
    data, start, found = likely()
    start = replace(start, details=replace(start.details, **instruments))
    values = start.values.copy()
    for name, deviations in moved.items():
        place = start.names.index(name)
        values[place] += deviations * start.std[place]
    other = replace(found, start=start, fit=replace(
        found.fit, state=replace(found.fit.state, values=values)))
    monkeypatch.setattr(latent.Fitted, 'of', lambda *_: other)
    monkeypatch.setattr(latent, 'starting_estimate', lambda *_: start)
    monkeypatch.setattr(latent, 'misfits_of_start', lambda found: np.array(gains))
    monkeypatch.setattr(latent, 'misfits_of', lambda problem, fit: (
        np.zeros(len(gains)), values + spread * start.std * np.outer(
            [1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0], np.ones(len(values))) * np.sqrt(7.0 / 12.0)))
    return ESTIMATORS['latent'].fit(data), values


@pytest.mark.parametrize(('moved', 'instruments', 'named'), [
    ({'Izz1': -12.0, 'Ia1': 9.0}, {}, ('Izz1', 'Ia1')), ({'Izz1': -1.0, 'Ia1': 1.0}, {}, ()),
    ({'fc1': 20.0}, {}, ()), ({'Izz1': -12.0}, {'first_stage_f': 9.0}, ()),
    ({'Izz1': -12.0}, {'noisy': True}, ()), ({'Izz1': -12.0}, {'spread': 0.9}, ()),
])
def test_a_fit_that_instruments_contradict_is_refused(
    moved: dict[str, float], instruments: dict[str, Any], named: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However likely; not in friction, by weak, noisy, or less precise instruments."""
    estimate, values = judged(monkeypatch, 7 * [1.0], moved, **instruments)
    details = estimate.details
    assert isinstance(details, LatentDetails)
    assert tuple(one.name for one in details.contradicted) == named
    assert details.kept is not bool(named)
    assert np.array_equal(estimate.values, values) is not bool(named)
    refused = [warning for warning in estimate.warnings if 'the parameters of' in warning]
    assert bool(refused) is bool(named)
    if named:
        assert 'it finds Izz1 -12.0, Ia1 +9.0 of their deviations away: the p' in refused[0]
        assert 'with Izz1, Ia1 contradicted by instrumental variables' in details.sentence(())


@pytest.mark.parametrize(('away', 'kept'), [(30.0, True), (-10.0, False)])
def test_a_start_that_instruments_contradict_more_is_no_refuge(
    away: float, kept: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Least squares by which a rigid robot starts may be biased more than the fit is."""
    _, start, _ = likely()
    place = start.names.index('Izz1')
    shift = away * start.std[place] * np.eye(len(start.values))[place]
    monkeypatch.setattr(latent, 'instrumental_estimate', lambda *_: (
        replace(start, values=start.values + shift), start.details))
    estimate, _ = judged(monkeypatch, 7 * [1.0], {'Izz1': 12.0})
    assert estimate.details.kept is kept


@pytest.mark.parametrize(('gains', 'kept'), [
    ((0.84, 0.6, 0.03, 0.1, 0.06, 0.04, -0.02), True),
    ((9.0, -0.1, -0.2, -0.1, -0.1, 0.1, -0.1), False),
])
def test_one_stretch_alone_does_not_decide_for_the_latent_fit(
    gains: tuple[float, ...], kept: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two stretches gain more than all others, which gain too; one gains, the others lose."""
    estimate, _ = judged(monkeypatch, gains, {})
    assert estimate.details.kept is estimate.details.sure is kept


@pytest.mark.parametrize('gain', [1e6, -1e6])
def test_laws_are_taken_only_where_the_fit_with_them_is_kept(
    gain: float, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the parameters of the start would be those of laws that it would not choose."""
    data, _ = fits(1)[0]
    chosen = [('coulomb', law_from('coulomb', {'width': WIDTH}))] * 2
    falling = [('coulomb+levelling', law_from('coulomb+levelling', {'width': WIDTH}))] * 2
    monkeypatch.setattr(latent, 'better_laws', lambda *_: tuple(falling))
    monkeypatch.setattr(latent, 'misfits_of_start', lambda found: np.full(
        len(found.cut.stretches), gain if 'fl1' in found.problem.model.reduction.names else 0.0))
    monkeypatch.setattr(latent, 'misfits_of', lambda problem, fit: (
        np.zeros(len(fit.condensed)), np.zeros((len(fit.condensed), len(fit.state.values)))))
    taken = ESTIMATORS['latent'].laws(data, chosen, [(), ()])
    assert list(taken) == (falling if gain > 0.0 else chosen)


def falling(
    monkeypatch: pytest.MonkeyPatch, ends: Sequence[Sequence[float]], after: float = 0.5,
    without: Sequence[Sequence[str]] = ((), ()), values: float = 1.0,
) -> tuple[list[tuple[str, float, float]], list[tuple[LatentProblem, LatentState]]]:
    """Return name, width and speed of the laws chosen where fits find the speeds ``ends``.

    Beside them what each fit began with. The misfits of stretches left out go from 1 to ``after``;
    below 0.1 rad/s encoders do not tell joint 2 from rest.
    """
    model, begun = elastic_model(), []
    state = LatentState((), np.arange(1.0, 1.0 + len(model.reduction.names)), np.zeros(0),
                        np.array([1.0, 2.0, 3.0, 4.0]), 0.05)
    first = LatentProblem(model, (), np.ones(len(state.values), dtype=bool),
                          slowest=np.array([0.005, 0.1]))

    def fit(of: LatentProblem, state: LatentState) -> LatentFit:
        begun.append((of, state))
        return LatentFit(replace(state, shapes=np.array(ends[len(begun) - 1]),
                                 values=values * state.values), (), 1, ())

    monkeypatch.setattr(LatentProblem, 'fit', fit)
    monkeypatch.setattr(latent, 'misfits_of', lambda of, _: (
        np.full(7, after if of.searched else 1.0), np.zeros((7, 1))))
    stages: list[tuple[str, float]] = []
    found = latent.better_laws(
        (first, LatentFit(state, (), 1, ())), [('coulomb', law_from('coulomb', {'width': WIDTH}))]
        * 2, without, lambda stage, share: stages.append((stage, share)))
    assert stages == [('choosing friction along the estimated motion', 0.0)]
    told = [(name, law.settings()) for name, law in found]
    return [(name, own['width'], own.get('speed', 0.0)) for name, own in told], begun


def test_the_search_for_falling_friction_begins_with_the_fit_of_other_laws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 0.1 rad/s or twice the speed that encoders tell from rest; errors are 30 times those."""
    laws, [(sought, state)] = falling(monkeypatch, [(0.07, 0.9)])
    assert laws == [('stribeck', 2e-3, 0.07), ('stribeck', 2e-3, 0.9)]
    assert [(one.axes, one.path, one.low, one.high) for one in sought.searched] == [
        ((0,), ('speed',), 0.04, 1.0), ((1,), ('speed',), 0.2, 1.0)]
    assert state.shapes.tolist() == [0.1, 0.2]
    assert state.errors.tolist() == [30.0, 60.0, 90.0, 120.0]
    assert sought.slowest.tolist() == [0.005, 0.1] and sought.chosen.all()
    names, before = sought.model.reduction.names, elastic_model().reduction.names
    assert set(names) - set(before) == {'fs1', 'fs2'}
    assert dict(zip(names, state.values.tolist(), strict=True)) == {
        **{name: 1.0 + i for i, name in enumerate(before)}, 'fs1': 0.0, 'fs2': 0.0}


@pytest.mark.parametrize(('ends', 'axes', 'speeds'), [
    ([(0.0439, 0.5), (0.3,)], [(0, 1), (1,)], (0.0, 0.3)),
    ([(0.0441, 0.5)], [(0, 1)], (0.0441, 0.5)),
    ([(0.5, 0.91), (0.3,)], [(0, 1), (0,)], (0.3, 0.0)),
    ([(0.5, 0.908)], [(0, 1)], (0.5, 0.908)),
    ([(0.5, 0.21), (0.95,)], [(0, 1), (0,)], (0.0, 0.0)),
])
def test_an_axis_whose_speed_ends_at_a_bound_keeps_its_law(
    ends: list[tuple[float, ...]], axes: list[tuple[int, ...]], speeds: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within a tenth of 0.04, of 0.2 or of 1 rad/s; all others are sought once more."""
    laws, begun = falling(monkeypatch, ends)
    assert [tuple(axis for one in of.searched for axis in one.axes) for of, _ in begun] == axes
    assert laws == [('stribeck', 2e-3, speed) if speed else ('coulomb', WIDTH, 0.0)
                    for speed in speeds]


@pytest.mark.parametrize(('setting', 'changed'), [
    ({'after': 1.0}, []), ({'values': np.nan}, []), ({'without': [('stribeck',)] * 2}, []),
    ({'without': [('levelling',), ('load', 'stribeck')]}, [0]),
    ({'without': [('stribeck',), ()]}, [1])])
def test_falling_friction_is_taken_where_it_is_allowed_finite_and_surely_better(
    setting: dict[str, Any], changed: list[int], monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws, _ = falling(monkeypatch, [(0.5,) * max(1, len(changed))] if changed else [(0.5, 0.5)],
                      **setting)
    assert [i for i, (name, *_) in enumerate(laws) if name == 'stribeck'] == changed


@pytest.mark.parametrize(('details', 'words'), [
    (LatentDetails('wls', 7, 0.5, 4, gain=0.25, sure=True, kept=True),
     '4 rounds from wls; per sample of stretches left out the logarithm of the likelihood is '
     '0.25 above that with wls, surely: kept'),
    (LatentDetails('elastic', 9, 1.0, 12, gain=-0.5),
     '12 rounds from elastic; per sample of stretches left out the logarithm of the likelihood is '
     '0.5 below that with elastic, not surely: the parameters of elastic are kept'),
    (LatentDetails('elastic', 2, 1.0, 3, sure=True, undetermined=('K1', 'K2')),
     '3 rounds from elastic; per sample of stretches left out the logarithm of the likelihood is '
     '0 above that with elastic, surely, with K1, K2 unknown: the parameters of elastic are kept'),
])
def test_the_sentence_of_a_latent_fit_says_why_it_was_kept(
    details: LatentDetails, words: str
) -> None:
    assert details.sentence(()) == (
        f'motion and parameters at once on {details.stretches} stretches of '
        f'{details.seconds:g} s, {words}')


def test_at_most_five_contradicted_parameters_are_named() -> None:
    off = tuple(latent.Bias(f'p{i}', 2.0 * i, 0.5) for i in range(1, 8))
    details = LatentDetails('wls', 7, 0.5, 4, sure=True, contradicted=off)
    assert details.refusal == (
        'instrumental variables contradict the method latent: it finds p1 +4.0, p2 +8.0, p3 '
        '+12.0, p4 +16.0, p5 +20.0 of their deviations away')
    assert details.sentence(()).endswith(
        'surely, with p1, p2, p3, p4, p5 contradicted by instrumental variables: the parameters '
        'of wls are kept')
    assert replace(details, contradicted=()).refusal == (
        'the misfit on stretches left out is not surely lower with the method latent than with '
        'wls')
    assert replace(details, undetermined=('K1', 'K2')).refusal.startswith(
        'the method latent does not tell K1, K2 from infinity')
    assert replace(details, kept=True).refusal == ''


def test_the_table_of_a_latent_fit_shows_microradians_and_newton_metres() -> None:
    details = LatentDetails('elastic', 2, position_noise=np.array([1e-3, 2.5e-5]),
                            effort_error=np.array([4.0, 0.5]))
    (table,) = details.tables(('joint_1', 'joint_2', 'unused'))
    assert [row.cells for row in table.rows] == [
        ('joint_1', '1000', '4'), ('joint_2', '25', '0.5')]
    assert table.columns == ('', 'encoder [µrad, µm]', 'equation [N m, N]')


def test_a_fit_that_runs_away_leaves_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_away(*_: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(latent.Fitted, 'of', run_away)
    model = torque_model('planar_3r')
    data = Experiment.of(model, [lively(model, 300, noise=0.02)])
    found, start = ESTIMATORS['latent'].fit(data), ESTIMATORS['wls'].fit(data)
    assert np.array_equal(found.values, start.values) and found.method == 'latent'
    said = 'motion and parameters do not come to an agreement: the parameters of '
    assert found.warnings == (*start.warnings, f'{said}the method wls are kept')
    assert found.details.sentence(model.robot.joints) == f'{said}wls are kept'
    assert found.details.tables(model.robot.joints) == ()
    begun, *rest = vars(found.details).values()
    assert begun == 'wls' and not any(np.any(value) for value in rest)


def beyond(log: RawLog) -> FloatArray:
    """Return friction (N, n) [N m] that falls from rest, and grows with the load of the gear."""
    assert log.motor_position is not None
    velocity = np.gradient(log.motor_position, 1.0 / RATE, axis=0)
    load = np.array(STIFF) * (log.motor_position - log.position)
    return np.asarray(np.sign(velocity) * (
        0.3 * np.array(DRY) * np.exp(-(velocity / 0.1)**2) + 0.01 * np.abs(load)))


def test_the_latent_fit_outside_its_class_predicts_like_its_start_or_is_refused() -> None:
    """Of friction the law knows Coulomb's alone; errors along another motion without noise."""
    model, log, other = elastic_model(), seen(0), true_log(6)
    assert log.effort is not None and other.effort is not None
    assert log.motor_position is not None and other.motor_position is not None
    spoilt = replace(log, effort=log.effort + beyond(true_log()))
    ours, theirs = (ESTIMATORS[name].fit(experiment(model, spoilt))
                    for name in ('latent', 'elastic'))
    assert isinstance(ours.details, LatentDetails)
    known = repair(model.robot, log).parts[0].motor_position
    assert known is not None
    offset = (log.motor_position - known).mean(axis=0)
    motion = [np.hstack([other.position, other.motor_position - offset])]
    for _ in range(2):
        motion.append(np.gradient(motion[-1], 1.0 / RATE, axis=0))
    samples = Samples(model.robot.joints, other.time, *motion)
    effort = np.tile(other.effort + beyond(other), 2)
    rms = [np.sqrt(np.mean((model.effort(samples, one.values) - effort)**2))
           for one in (ours, theirs)]
    assert rms[0] < 1.02 * rms[1] or not ours.details.kept


def test_latent_refuses_short_and_preprocessed_recordings() -> None:
    model = elastic_model()
    data, _ = fits(1)[0]
    with pytest.raises(DataError, match='needs the recordings as they were recorded'):
        ESTIMATORS['latent'].fit(replace(data, as_recorded=None))
    (part,), = recorded(model.robot, seen(0)).read()
    short = replace(part, time=part.time[:100], position=part.position[:100])
    few = AsRecorded(lambda: iter([(short,)]), lambda stage, share: None)
    with pytest.raises(DataError, match='two contiguous stretches'):
        ESTIMATORS['latent'].fit(replace(data, as_recorded=few))


def test_known_external_torque_is_in_the_equations_of_joints() -> None:
    """As in filtered samples: motors do not feel it."""
    robot, log = load_robot('elastic_2r'), true_log()
    torque = np.tile([2.0, -1.0], (len(log.time), 1))
    plain, pushed = (unfiltered(robot, repair(robot, one), 0.0)[0] for one in (
        log, replace(log, external_torque=torque)))
    np.testing.assert_allclose(pushed.effort - plain.effort, np.tile(
        [2.0, -1.0, 0.0, 0.0], (len(plain.effort), 1)), rtol=0.0, atol=SAME_FORMULA)


def test_from_recording_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = gathered.omitted_effects
    monkeypatch.setattr(gathered, 'omitted_effects', lambda *args: [*left_out(*args), 'sought'])
    recipe = Recipe(
        cutoff=20.0, friction='coulomb', ramp_width=WIDTH, effort_lag=0.0, ripple='none')
    stages: list[tuple[str, float]] = []
    result = identify(load_robot('elastic_2r'), [seen(0)], 'latent', recipe,
                      lambda stage, share: stages.append((stage, share)))
    details = result.estimate.details
    assert isinstance(details, LatentDetails) and details.kept
    assert [warning for warning in result.warnings
            if 'leaves out' in warning or warning == 'sought'] == ['sought']
    shares = [share for _, share in stages]
    assert shares == sorted(shares)
    again = IdentifiedModel.from_yaml(result.model.to_yaml())
    assert to_plain(again.record.details) == to_plain(details)
    (section,) = method_section(again)
    assert 'Motion and parameters at once on' in section.text and 'kept' in section.text

    def stop(stage: str, share: float) -> None:
        if 'motion and parameters' in stage:
            raise Cancelled(stage)

    with pytest.raises(Cancelled):
        identify(load_robot('elastic_2r'), [seen(0)], 'latent', recipe, stop)


def test_rigid_robots_with_noisy_encoders() -> None:
    """Least squares finds inertias too small at a wide cut-off; the joint fit does not."""
    model = torque_model('planar_3r')
    robot, found = model.robot, []
    for seed in range(1):
        data = noisy(model, seed, 1e-4, 8.0)
        log = noisy_log(model, seed, 1e-4, 8.0)
        estimate = ESTIMATORS['latent'].fit(replace(data, as_recorded=recorded(robot, log)))
        assert isinstance(estimate.details, LatentDetails)
        assert estimate.details.kept and estimate.details.start == 'wls'
        plain = ESTIMATORS['wls'].fit(data)
        found.append([np.abs(parameter_errors(model, one.values)) for one in (estimate, plain)])
    links = [i for i, name in enumerate(model.reduction.names)
             if name[:2] not in ('fv', 'fc', 'f0')]
    ours, theirs = np.array(found)[:, :, links].mean(axis=(0, 2))
    assert ours < 0.2 * theirs
