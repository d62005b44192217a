"""Health: departures are found, what stays raises no alarm more often than stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from everyday_arm import DAYS, EverydayArm, known_model
from scipy.signal import lfilter
from scipy.stats import chi2, f, poisson
from tolerances import LEAST_SQUARES

from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.estimation.directional_forgetting import Followed
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.monitoring.everyday_motion import everyday_motion
from robot_dynid.monitoring.health import (
    MONTH,
    Condition,
    GroupHealth,
    Health,
    HealthSettings,
    alarm_level,
    distance,
    groups_of,
    normal_deviations,
)
from robot_dynid.monitoring.recursive_identification import (
    LEARNING,
    RecursiveIdentification,
    daily_spread,
    prior_freedom,
    prior_root,
)
from robot_dynid.types import FloatArray, RawLog

MINUTE = 12  # stretches of five seconds


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return known_model()


def changed(health: Health) -> list[GroupHealth]:
    return [one for one in health.judged() if one.condition is Condition.CHANGED]


def fed(health: Health, arm: EverydayArm, stretches: int) -> Health:
    for _ in range(stretches):
        health.identification.take(arm.stretch())
    return health


def test_without_forgetting_the_parameters_are_those_of_one_fit(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, 1.1 * model.values)
    found = RecursiveIdentification(model, memory=1e15)
    stretches = [arm.stretch() for _ in range(round(LEARNING / 5.0))]  # one density for all
    for one in stretches:
        found.take(one)
    assert found.density is not None
    normal = np.linalg.inv(found.prior.T @ found.prior)
    right = normal @ model.values
    for one in stretches:
        for j, factor in enumerate(one.information.total.factors):
            own = one.information.structure[j]
            rows = np.zeros((len(factor), len(own)))
            rows[:, own] = factor[:, :-3]
            weight = one.step / found.density[j]
            normal += weight * rows.T @ rows
            right += weight * rows.T @ factor[:, -2]
    assert np.allclose(found.values, np.linalg.solve(normal, right), rtol=LEAST_SQUARES)


def test_the_prior_is_the_covariance_and_friction_of_another_day(model: IdentifiedModel) -> None:
    root = prior_root(model)
    found = root.T @ root
    rigid = [i for i, name in enumerate(model.names) if not name.startswith('f')]
    assert np.allclose(np.diag(found)[rigid], model.std[rigid]**2, rtol=1e-9)
    viscous = model.names.index('fv2')
    freedom = 3.0 * (DAYS - 1)
    usual = (4.0 * 0.05**2 + freedom * 0.02**2) / (freedom + 4.0)
    usual *= (freedom + 4.0) / (freedom + 2.0)
    assert np.isclose(found[viscous, viscous],
                      model.std[viscous]**2 + usual * model.values[viscous]**2, rtol=1e-9)


def test_few_days_tell_little_of_other_days(model: IdentifiedModel) -> None:
    """A few recordings show too little scatter at times: what is usual counts beside them."""
    def told(record: FitRecord) -> tuple[float, float]:
        return daily_spread(replace(model, record=record), 'viscous', 3)

    none = {'viscous': 0.0}
    assert told(FitRecord(recordings=('one',))) == told(FitRecord()) == (0.05, 4.0)
    few = told(FitRecord(recordings=('one', 'two'), friction_spread=none))
    assert few == (pytest.approx(0.05 * np.sqrt(4.0 / 7.0)), 7.0)
    assert told(model.record)[0] == pytest.approx(0.02, rel=0.01)
    own = replace(model, record=FitRecord(recordings=('one', 'two'), friction_spread=none,
                                          degrees_of_freedom=6.0))
    freedom = dict(zip(model.names, prior_freedom(own), strict=True))
    assert (freedom['fv2'], freedom['fc3'], freedom['Izz1']) == (6.0, 4.0, 6.0)


def test_what_few_days_tell_raises_fewer_alarms(model: IdentifiedModel) -> None:
    known = replace(model, record=replace(model.record, recordings=('one', 'two')))
    health = fed(Health(known), EverydayArm(model, model.values).scaled(('fv2',), 1.2),
                 10 * MINUTE)
    assert not changed(health)
    assert changed(fed(Health(model), EverydayArm(model, model.values).scaled(
        ('fv2',), 1.2), 10 * MINUTE))


def test_a_step_in_friction_is_found_and_nothing_else(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, model.values)
    health = fed(Health(model), arm, 5 * MINUTE)
    assert not changed(health)
    fed(health, arm.scaled(('fv2', 'fc2'), 1.2), 15 * MINUTE)
    found = changed(health)
    assert [one.words for one in found] == ['joint_2: friction']
    assert found[0].joint == 'joint_2'
    assert found[0].low < found[0].torque < found[0].high
    viscous = next(one for one in found[0].changes if one.name == 'fv2')
    assert 1.1 < viscous.now / viscous.served < 1.25
    assert 'dry (Coulomb) friction' in found[0].sentence


def test_a_load_left_on_is_found(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, model.values)
    health = fed(fed(Health(model), arm, 2 * MINUTE),
                 arm.carrying(0.5, (0.3, 0.0, 0.0)), 5 * MINUTE)
    assert 'link_3: mass, first moments and inertia' in {one.words for one in changed(health)}


def test_a_heavy_load_does_not_pass_for_noise(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, model.values, noise=0.1)
    health = fed(Health(model), arm, 2 * MINUTE)
    density = health.identification.density
    assert density is not None
    fed(health, arm.carrying(5.0, (0.3, 0.0, 0.0)), 2 * MINUTE)
    assert health.identification.density is not None
    assert np.all(health.identification.density < 1.5 * density)
    assert 'link_3: mass, first moments and inertia' in {one.words for one in changed(health)}


def test_joints_that_rest_are_not_known_and_go_stale(model: IdentifiedModel) -> None:
    still = EverydayArm(model, model.values, moving=(True, False, False))
    health = fed(Health(model), still, 2 * MINUTE)
    names = {one.words: one for one in health.judged()}
    assert names['joint_1: friction'].condition is Condition.OK
    assert names['joint_3: friction'].condition is Condition.UNKNOWN
    wrist = [model.names.index(name) for name in ('fv3', 'fc3', 'f03')]
    assert np.allclose(health.identification.departure[wrist], 0.0, atol=1e-12)
    fed(health, EverydayArm(model, model.values), MINUTE)
    assert {one.condition for one in health.judged()} == {Condition.OK}
    kept = health.identification.departure[wrist], health.identification.root[:, wrist]
    fed(health, still, 6 * MINUTE)
    names = {one.words: one for one in health.judged()}
    assert names['joint_3: friction'].condition is Condition.STALE
    spread = np.linalg.norm(kept[1], axis=0)
    assert np.all(np.abs(health.identification.departure[wrist] - kept[0]) < 0.3 * spread)
    now = np.linalg.norm(health.identification.root[:, wrist], axis=0)
    assert np.all((now < spread + 1e-9) & (now > 0.9 * spread))


def test_the_density_is_that_of_the_noise_at_low_frequency(model: IdentifiedModel) -> None:
    """Noise of variance s^2 and correlation time c has 2 c s^2; a second is not long beside c."""
    health = fed(Health(model), EverydayArm(model, 1.02 * model.values, noise=0.5), 20 * MINUTE)
    density = health.identification.density
    assert density is not None
    assert np.all((density > 0.6 * 2.0 * 0.2 * 0.25) & (density < 1.1 * 2.0 * 0.2 * 0.25))


def test_a_robot_that_changed_before_does_not_pass_for_a_noisy_one(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, model.values, noise=0.1).scaled(('fv2', 'fc2'), 1.4)
    health = fed(Health(model), arm, round(LEARNING / 5.0) + 1)
    density = health.identification.density
    assert density is not None
    assert np.all(density < 2.0 * 2.0 * 0.2 * 0.01)
    assert 'joint_2: friction' in {one.words for one in changed(health)}


def test_before_the_noise_is_known_nothing_is_judged(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, 2.0 * model.values)
    health = fed(Health(model), arm, round(LEARNING / 5.0) - 1)
    assert health.identification.learning
    assert {one.condition for one in health.judged()} == {Condition.UNKNOWN}


def test_prediction_before_each_stretch_scores_both(model: IdentifiedModel) -> None:
    health = fed(Health(model), EverydayArm(model, 1.2 * model.values), 10 * MINUTE)
    recent = health.identification.recent
    assert recent is not None
    assert np.all(recent.errors[1] < recent.errors[0])
    left = health.identification.left_over(health.identification.values)
    assert np.allclose(left, 0.3, rtol=0.1)


def test_every_parameter_is_in_one_group(model: IdentifiedModel) -> None:
    columns = [column for group in groups_of(model) for column in group.columns]
    assert sorted(columns) == list(range(len(model.names)))


def test_a_model_without_covariance_is_refused(model: IdentifiedModel) -> None:
    with pytest.raises(ModelError, match='no covariance'):
        Health(replace(model, correlation_factor=None))


@pytest.mark.parametrize('settings', [{'memory': 1.0}, {'false_alarms': 0.0}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match='health'):
        HealthSettings(**settings)


def test_levels_are_those_of_the_density() -> None:
    x = alarm_level(1, 1e-6)
    assert np.isclose(2.0 * x * chi2.pdf(x, 1), 1e-6, rtol=1e-9)
    assert alarm_level(3, 1e-6) > x
    assert np.isclose(normal_deviations(9.0, 1), 3.0)
    assert np.isclose(normal_deviations(float(chi2.isf(0.01, 4)), 4), 2.5758, atol=1e-4)


@pytest.mark.parametrize(('degrees', 'freedom'), [(1, 7.0), (3, 7.0), (3, 40.0)])
def test_levels_hold_where_the_covariance_is_known_from_few_days(
    degrees: int, freedom: float
) -> None:
    """The rate is the mean of that of known scales, drawn as inverse chi-square."""
    x = alarm_level(degrees, 1e-4, freedom)
    quantiles = (np.arange(200_000) + 0.5) / 200_000
    scale = freedom / chi2.isf(quantiles, freedom) * (freedom - 2.0) / freedom
    own = x / scale
    assert np.isclose(np.mean(2.0 * own * chi2.pdf(own, degrees)), 1e-4, rtol=0.01)
    assert np.isclose(alarm_level(degrees, 1e-4, 1e8), alarm_level(degrees, 1e-4), rtol=1e-5)
    square = (freedom - 2.0) / freedom * degrees * f.isf(0.01, degrees, freedom)
    assert np.isclose(normal_deviations(float(square), degrees, freedom), 2.5758, atol=1e-4)


def test_distances_leave_out_what_is_not_known() -> None:
    square, degrees = distance(np.array([2.0, 0.0]), np.diag([4.0, 0.0]))
    assert (square, degrees) == (1.0, 1)
    assert distance(np.zeros(2), np.zeros((2, 2))) == (0.0, 0)


def excursions(distances: FloatArray, level: float) -> int:
    """Return how often a squared distance exceeds ``level``, once until it is near again."""
    count, out = 0, False
    for square in distances[(distances > level) | (distances < 0.5 * level)]:
        count += bool(square > level) and not out
        out = bool(square > level)
    return count


@pytest.mark.parametrize('degrees', [1, 2, 5])
def test_the_level_keeps_the_stated_rate(degrees: int) -> None:
    """Estimates that forget over 60 stretches: no more alarms than stated, and not idle."""
    memory, rate, count = 60, 0.002, 1_000_000
    rng = np.random.default_rng(degrees)
    keep = 1.0 - 1.0 / memory
    noise = np.sqrt(1.0 - keep**2) * rng.normal(size=(count, degrees))
    process = lfilter([1.0], [1.0, -keep], noise, axis=0)
    found = excursions(np.sum(process**2, axis=1), alarm_level(degrees, rate))
    expected = rate * count / memory
    assert poisson.ppf(1e-4, 0.25 * expected) <= found <= poisson.isf(1e-4, expected)


def false_alarms(batches: int, memory: int, rate: float, seed: int) -> int:
    """Return the alarms of two unknowns that are drawn anew after every memory."""
    rng = np.random.default_rng(seed)
    state, distances, truth = Followed.before(np.eye(2)), np.empty(batches), np.zeros(2)
    for k in range(batches):
        if k % memory == 0:
            truth = rng.normal(size=2)
        rows = 0.3 * rng.normal(size=(8, 2))
        seen = rows @ truth + rng.normal(size=8)
        state = state.forgotten(rows, 1.0 / memory).updated(rows, seen)
        distances[k] = distance(state.values, state.unchanged)[0]
    return excursions(distances, alarm_level(2, rate))


def test_false_alarms_keep_the_stated_rate() -> None:
    assert false_alarms(1500, 10, 0.02, seed=1) <= poisson.isf(1e-4, 0.02 * 150)


@pytest.mark.soak
def test_false_alarms_keep_the_stated_rate_for_long() -> None:
    assert false_alarms(200_000, 20, 0.005, seed=2) <= poisson.isf(1e-4, 0.005 * 10_000)


def null_hours(seed: int, hours: float) -> int:
    """Return the alarms of an arm that is, every hour, another one of what is expected."""
    model, rng = known_model(), np.random.default_rng(seed)
    root, alarms = prior_root(model), 0
    health = Health(model, HealthSettings(false_alarms=0.1))
    for part in range(int(np.ceil(hours))):
        truth = model.values + root.T @ rng.normal(size=len(model.values))
        arm = EverydayArm(model, truth, seed=1000 * seed + part)
        for number in range(round(min(hours, 1.0) * 60.0 * MINUTE)):
            health.identification.take(arm.stretch())
            if number % MINUTE == 0:
                alarms += bool(changed(health))
    return alarms


def test_an_arm_as_expected_raises_no_alarm() -> None:
    assert null_hours(1, 0.25) == 0


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(4))
def test_ten_hours_without_change_raise_no_alarm(seed: int) -> None:
    """Stated: one false alarm in ten months of motion, so none in ten hours."""
    assert 0.1 * 10.0 * 3600.0 / MONTH < 0.002
    assert null_hours(seed, 10.0) == 0


def everyday(model: IdentifiedModel, q: FloatArray, qd: FloatArray, effort: FloatArray) -> RawLog:
    return RawLog('everyday', model.joints, np.arange(len(q)) * 0.01, q, qd, effort)


def test_motion_is_reduced_as_the_identification_does(model: IdentifiedModel) -> None:
    time, rate = np.arange(500)[:, None] * 0.01, np.array([2.0, 3.0, 4.0])
    q, qd, qdd = np.sin(rate * time), rate * np.cos(rate * time), -rate**2 * np.sin(rate * time)
    made = everyday_motion(model, everyday(model, q, qd, model.inverse(q, qd, qdd)))
    assert made is not None
    assert len(made.information.batches) == len(made.sliding) == 5
    assert np.all(made.sliding.sum(axis=0) < made.seconds), 'reversals do not count'
    assert np.all(made.sliding.sum(axis=0) > 0.3 * made.seconds)
    total = made.information.total
    left = made.information.residual_energy(model.values, 1, total)
    count = made.sliding.sum(axis=0) / made.step
    assert np.all(np.sqrt(left / count) < 0.02 * made.information.size())


def test_joints_at_rest_do_not_count(model: IdentifiedModel) -> None:
    rng = np.random.default_rng(0)
    q = np.full((500, 3), 0.3) + 1e-5 * rng.normal(size=(500, 3))
    effort = model.inverse(q, 0.0 * q, 0.0 * q) + rng.normal(size=(500, 3))
    assert everyday_motion(model, everyday(model, q, 0.0 * q, effort)) is None
    moving = np.arange(500) * 0.01
    q[:, 0], qd = np.sin(2.0 * moving), np.zeros_like(q)
    qd[:, 0] = 2.0 * np.cos(2.0 * moving)
    made = everyday_motion(model, everyday(model, q, qd, effort))
    assert made is not None
    assert made.sliding[:, 0].sum() > 2.0
    assert np.all(made.sliding[:, 1:] == 0.0)
    for factor in made.information.total.factors[1:]:
        assert np.all(factor[:, :-3] == 0.0)


def test_stretches_with_gaps_are_refused(model: IdentifiedModel) -> None:
    q = np.sin(np.arange(500)[:, None] * 0.01 * np.ones(3))
    log = everyday(model, q, np.gradient(q, 0.01, axis=0), 1.0 + q)
    log.time[250:] += 0.5
    with pytest.raises(DataError, match='missing'):
        everyday_motion(model, log)
