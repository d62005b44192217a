"""Health: departures are found, what stays raises no alarm more often than stated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from everyday_arm import DAYS, EverydayArm, known_model
from scipy.signal import lfilter
from scipy.stats import chi2, f, norm, poisson
from tolerances import LEAST_SQUARES

from robot_dynid.document import number
from robot_dynid.effects.slow_changes import Adaptation, Warming
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.estimation.information import FILTERED
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Trained
from robot_dynid.types import FloatArray, RawLog, frozen
from robot_dynid_extras.health import health as module
from robot_dynid_extras.health.everyday_motion import EverydayMotion, everyday_motion
from robot_dynid_extras.health.fading_information import Followed
from robot_dynid_extras.health.health import (
    MONTH,
    Compared,
    Condition,
    Departure,
    Distance,
    GroupHealth,
    Health,
    HealthSettings,
    alarm_level,
    groups_of,
    normal_deviations,
)
from robot_dynid_extras.health.recursive_identification import (
    LEARNING,
    LEAST_DEVIATION,
    RecursiveIdentification,
    prior_freedom,
    prior_root,
)

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
    total = model.std[viscous]**2 + (usual + 0.15**2) * model.values[viscous]**2
    assert np.isclose(found[viscous, viscous], (1.0 + LEAST_DEVIATION**2) * total, rtol=1e-9)
    for one, other, share in (('fv2', 'fv3', 0.15), ('fc2', 'fc3', 0.075)):
        pair = [model.names.index(name) for name in (one, other)]
        assert np.isclose(found[tuple(pair)], share**2 * np.prod(model.values[pair]), rtol=1e-9)


@pytest.mark.parametrize(('ranges', 'effort'), [
    ({}, 100.0), ({'effort': np.array([[-30.0, 20.0], [-40.0, 5.0], [-1.0, 1.0]])}, 40.0)])
def test_parameters_that_the_recordings_left_open_make_any_effort(
    ranges: dict[str, FloatArray], effort: float, model: IdentifiedModel
) -> None:
    """In a moderate motion the largest one that was recorded, or 100 N m."""
    std = model.std.copy()
    place = model.names.index('mx3')
    std[place] = np.inf
    left_open = replace(model, std=frozen(std), trained=Trained(ranges))
    found = np.linalg.norm(prior_root(left_open), axis=0)
    most = model.torque_model.moderate_effort[:, place].max()
    assert found[place] == pytest.approx(effort / most, rel=1e-5)
    rest = np.arange(len(std)) != place
    known = np.linalg.norm(prior_root(model), axis=0)
    np.testing.assert_allclose(found[rest], known[rest], rtol=1e-9)


def test_friction_is_expected_to_be_what_it_is_while_it_warms_up(model: IdentifiedModel) -> None:
    """Viscous friction by 0.3, which is more than it rises by, dry friction by a tenth."""
    warming = Warming(np.array([60.0, 600.0]), 5.0, np.array([0.25, -0.1]),
                      np.array([[0.1, -0.2], [0.02, 0.03]]), np.zeros(2), np.zeros((2, 2)),
                      np.zeros(2))
    warm = model.with_learnt('adaptation', (None, Adaptation(warming), Adaptation(None)))
    before, after = (np.sum(prior_root(one)**2, axis=0) for one in (model, warm))
    shares = np.zeros(len(model.names))
    shares[[model.names.index(name) for name in ('fv2', 'fc2', 'f02')]] = [0.3, 0.1, 0.1]
    dry = model.values[model.names.index('fc2')]
    size = np.where(np.array(model.names) == 'f02', dry, model.values)
    np.testing.assert_allclose(
        after - before, (1.0 + LEAST_DEVIATION**2) * (shares * size)**2, rtol=1e-6, atol=1e-12)


def test_few_days_tell_little_of_other_days(model: IdentifiedModel) -> None:
    """A few recordings show too little scatter at times: what is usual counts beside them."""
    none = {'viscous': 0.0}
    for record in (FitRecord(recordings=('one',)), FitRecord()):
        assert record.daily_spread('viscous', 3) == (0.05, 4.0)
    few = FitRecord(recordings=('one', 'two'), friction_spread=none).daily_spread('viscous', 3)
    assert few == (pytest.approx(0.05 * np.sqrt(4.0 / 7.0)), 7.0)
    assert model.record.daily_spread('viscous', 3)[0] == pytest.approx(0.02, rel=0.01)
    own = replace(model, record=FitRecord(recordings=('one', 'two'), friction_spread=none,
                                          degrees_of_freedom=6.0))
    freedom = dict(zip(model.names, prior_freedom(own), strict=True))
    assert freedom['Izz1'] == 6.0
    place = model.names.index('fv2')
    parts = 1.5 * model.std[place]**2, 1.4 * few[0]**2 * model.values[place]**2
    assert np.isclose(freedom['fv2'], min(
        sum(parts)**2 / (parts[0]**2 / 6.0 + parts[1]**2 / 7.0), 7.0))
    exact, vague = (prior_freedom(replace(own, std=frozen(size * own.std)))[place]
                    for size in (1e-3, 1e3))
    assert (exact, vague) == (pytest.approx(7.0, rel=1e-3), pytest.approx(6.0, rel=1e-3))


def test_degrees_of_freedom_are_those_of_the_parts_by_their_shares(model: IdentifiedModel) -> None:
    """Satterthwaite's: (a + b)^2 / (a^2 / m + b^2 / n), no more than m or n, at least three."""
    own = replace(model, std=frozen(10.0 * model.std), record=FitRecord(
        recordings=('one',) * 5, friction_spread={'viscous': 0.1}, degrees_of_freedom=8.0))
    days, freedom = own.record.daily_spread('viscous', 3)
    found = dict(zip(model.names, prior_freedom(own), strict=True))
    variance = dict(zip(model.names, 8.0 / 6.0 * own.std**2, strict=True))
    values = dict(zip(model.names, model.values, strict=True))
    for name in ('fv1', 'fv2', 'fv3'):
        daily = freedom / (freedom - 2.0) * (days * values[name])**2
        assert found[name] == pytest.approx(min(
            (variance[name] + daily)**2 / (variance[name]**2 / 8.0 + daily**2 / freedom),
            max(8.0, freedom)))
        assert 8.0 < found[name] < freedom
    assert found['Izz1'] == pytest.approx(8.0)
    few = replace(own, record=replace(own.record, degrees_of_freedom=2.5))
    assert prior_freedom(few)[model.names.index('Izz1')] == pytest.approx(3.0)
    exact = replace(own, record=replace(own.record, degrees_of_freedom=None))
    assert prior_freedom(exact)[model.names.index('Izz1')] == np.inf
    std = model.std.copy()
    std[model.names.index('fv2')] = np.inf  # left open: only days say how it scatters
    blind = dict(zip(model.names, prior_freedom(replace(own, std=frozen(std))), strict=True))
    assert blind['fv2'] == pytest.approx(freedom)


def test_health_raises_fewer_alarms_when_training_covers_few_recordings(
    model: IdentifiedModel
) -> None:
    known = replace(model, record=replace(model.record, recordings=('one', 'two')))
    arm = EverydayArm(model, model.values, noise=0.1).scaled(('fv2',), 1.2)
    assert not changed(fed(Health(known), arm, 10 * MINUTE))
    assert changed(fed(Health(model), arm, 10 * MINUTE))


def test_a_step_in_friction_is_found_and_nothing_else(
    model: IdentifiedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    own = health.identification
    left = own.left_over(own.values)[model.joints.index(found[0].joint)]
    for share, alarms in ((0.99, True), (1.01, False)):  # what matters is more than such a share
        monkeypatch.setattr(module, 'MATTERS', share * found[0].torque / left)
        assert bool(changed(health)) is alarms


VISCOUS, DRY = ('fv1', 'fv2', 'fv3'), ('fc1', 'fc2', 'fc3')


def test_friction_that_falls_in_all_joints_is_no_change_but_in_one_it_is(
    model: IdentifiedModel
) -> None:
    arm = EverydayArm(model, model.values, noise=0.1)
    warm = arm.scaled(VISCOUS, 0.75).scaled(DRY, 0.9)
    health = fed(Health(model), warm, 8 * MINUTE)
    assert not changed(health)
    fed(health, warm.scaled(('fv2', 'fc2'), 1.3), 8 * MINUTE)
    (found,) = changed(health)
    assert found.words == 'joint_2: friction'
    viscous = found.changes[0]
    assert viscous.now / viscous.served == pytest.approx(0.75 * 1.3, abs=0.04)
    assert viscous.expected / viscous.served == pytest.approx(0.75, abs=0.08)
    assert f'{number(viscous.expected)} expected by the other joints' in viscous.sentence


def test_a_joint_that_changed_much_says_nothing_about_the_others(model: IdentifiedModel) -> None:
    arm = EverydayArm(model, model.values, noise=0.1).scaled(('fv2', 'fc2'), 2.0)
    found = changed(fed(Health(model), arm, 8 * MINUTE))
    assert [one.words for one in found if 'friction' in one.words] == ['joint_2: friction']


def test_compared_seen_size_exceeds_the_level_in_nine_of_ten_cases(model: IdentifiedModel) -> None:
    own = Compared(np.zeros(2), (Distance(9.0, 2, 0.0), Distance(9.5, 1, 0.0),
                                 Distance(0.0, 1, 0.0)), np.array([30.0, 16.0, 25.0]),
                   np.array([0.1, 0.2]))
    assert (own.worst, own.excess) == (1, pytest.approx(9.5 / 16.0))
    for seen, size, level in zip(own.seen, (0.1, 0.2), (16.0, 25.0), strict=True):
        assert norm.cdf(seen / size - np.sqrt(level)) == pytest.approx(0.9, abs=1e-3)


def test_health_forgets_the_time_long_before_a_change(model: IdentifiedModel) -> None:
    """After some memories the change is there whole, however long it was not before."""
    arm = EverydayArm(model, model.values, noise=0.1)
    health = fed(Health(model, HealthSettings(memory=60.0)), arm, 20 * MINUTE)
    fed(health, arm.scaled(('fv2', 'fc2'), 1.2), 5 * MINUTE)
    place = model.names.index('fc2')
    found = health.identification.departure[place] / model.values[place]
    assert found == pytest.approx(0.2, rel=0.25)


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
    assert all(np.isclose(one.now, one.expected) for one in names['joint_3: friction'].changes)
    fed(health, EverydayArm(model, model.values), MINUTE)
    assert {one.condition for one in health.judged()} == {Condition.OK}
    kept = health.identification.departure[wrist], health.identification.root[:, wrist]
    fed(health, still, 6 * MINUTE)
    names = {one.words: one for one in health.judged()}
    assert names['joint_3: friction'].condition is Condition.STALE
    spread = np.linalg.norm(kept[1], axis=0)
    assert np.all(np.abs(health.identification.departure[wrist] - kept[0]) < 0.3 * spread)
    now = np.linalg.norm(health.identification.root[:, wrist], axis=0)
    # what joints share is known by the others too, of which one rests as well by now: 1 %
    assert np.all((now < 1.02 * spread) & (now > 0.9 * spread))


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


def test_levels_of_what_stays_the_same_all_day_are_quantiles() -> None:
    assert np.isclose(alarm_level(3, 1e-4), chi2.isf(1e-4, 3), rtol=1e-9)
    assert np.isclose(alarm_level(3, 1e-4, 7.0, memories=300.0),
                      5.0 / 7.0 * 3.0 * f.isf(1e-4, 3, 7), rtol=1e-9)
    assert np.isclose(alarm_level(3, 1e-4, 1e8), alarm_level(3, 1e-4), rtol=1e-5)
    square = 5.0 / 7.0 * 3.0 * f.isf(0.01, 3, 7)
    assert np.isclose(normal_deviations(float(square), 3, 7.0), 2.5758, atol=1e-4)
    assert np.isclose(normal_deviations(9.0, 1), 3.0)
    assert np.isclose(normal_deviations(float(chi2.isf(0.01, 4)), 4), 2.5758, atol=1e-4)


@pytest.mark.parametrize('degrees', [1, 3])
def test_levels_of_noise_are_those_of_a_diffusion(degrees: int) -> None:
    """Rates of Leadbetter, Lindgren, Rootzen 1983 times the memories of a day."""
    x = alarm_level(degrees, 1e-4, noise=1.0, memories=288.0)
    assert np.isclose(288.0 * 2.0 * x * chi2.pdf(x, degrees), 1e-4, rtol=0.2)


def test_groups_share_the_false_alarms_of_a_day(model: IdentifiedModel) -> None:
    health = Health(model, HealthSettings(memory=600.0, false_alarms=3.0))
    chance = -np.expm1(-3.0 / 30.0 / len(health.groups))
    assert np.isclose(health.level(2, 3, np.inf, 0.0), chi2.isf(chance / 3.0, 2), rtol=1e-9)
    assert np.isclose(health.level(2, 1, 9.0, 0.4999), alarm_level(2, chance, 9.0, 0.5, 144.0))


def test_distances_leave_out_what_is_not_known() -> None:
    known = Departure(np.array([2.0, 0.0]), np.diag([4.0, 1e-9]), np.diag([1.0, 0.0]))
    assert known.distances() == (Distance(1.0, 1, 0.25), Distance(1.0, 1, 0.25),
                                 Distance(0.0, 0, 0.0))
    assert np.array_equal(known.sizes, [2.0, np.inf])
    nothing = Departure(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)))
    assert nothing.distances() == (Distance(0.0, 0, 0.0),) * 3


def test_departure_distance_of_one_parameter_is_a_likelihood_ratio() -> None:
    """By how much the distance is less where one parameter may be anything."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    own = Departure(rng.normal(size=3), root @ root.T, 0.1 * root @ root.T)
    inverse = np.linalg.inv(own.covariance)
    whole, *alone = own.distances()
    assert np.isclose(whole.square, own.values @ inverse @ own.values)
    half = np.linalg.cholesky(inverse).T
    for k, one in enumerate(alone):
        without = np.linalg.lstsq(half[:, [k]], half @ own.values)[1][0]
        assert np.isclose(one.square, whole.square - without)
        assert (one.degrees, one.noise) == (1, pytest.approx(0.1))
        assert np.isclose(own.sizes[k]**-2, inverse[k, k])


def test_departure_beside_subtracts_what_the_joints_share() -> None:
    """By Gaussian conditioning: the departure of one axis beside those of two others."""
    rng = np.random.default_rng(2)
    covariance = 0.03**2 * np.eye(3) + 0.5**2 * np.ones((3, 3))
    drawn = rng.multivariate_normal(np.zeros(3), covariance, size=2000)
    found = [Departure(one, covariance, 1e-6 * np.eye(3)).beside([0], [1, 2]) for one in drawn]
    own = found[0].covariance[0, 0]
    assert own == pytest.approx(0.03**2 * 1.5, rel=0.01)
    assert np.var([one.values[0] for one in found]) == pytest.approx(own, rel=0.15)
    assert found[0].scatter[0, 0] == pytest.approx(1.5e-6, rel=0.01)
    alone = Departure(drawn[0], covariance, 0.0 * covariance).beside([0], [])
    assert (alone.values[0], alone.covariance[0, 0]) == (drawn[0, 0], covariance[0, 0])


@pytest.mark.parametrize('degrees', [1, 3])
@pytest.mark.parametrize(('noise', 'least'), [(0.02, 0.3), (0.3, 0.05), (1.0, 0.3)])
@pytest.mark.parametrize('freedom', [np.inf, 10.0])
def test_days_are_alarms_as_often_as_stated(
    degrees: int, noise: float, least: float, freedom: float
) -> None:
    """What stays a day, of a scale that is not known, and noise that forgets ten times in it.

    Never more, and not far less but where both are alike in size: their largest add up then only
    if they point the same way.
    """
    days, steps, memories, chance = 20_000, 100, 10, 0.01
    rng = np.random.default_rng(degrees)
    scale = 1.0 if np.isinf(freedom) else (freedom - 2.0) / rng.chisquare(freedom, (days, 1, 1))
    keep = 1.0 - memories / steps
    white = np.sqrt(1.0 - keep**2) * rng.normal(size=(days * steps, degrees))
    moved = lfilter([1.0], [1.0, -keep], white, axis=0).reshape(days, steps, degrees)
    stays = np.sqrt(scale) * rng.normal(size=(days, 1, degrees))
    squares = np.sum((np.sqrt(1.0 - noise) * stays + np.sqrt(noise) * moved)**2, axis=2)
    level = alarm_level(degrees, chance, freedom, noise, memories)
    found = int(np.sum(squares.max(axis=1) > level))
    assert least * chance * days <= found <= poisson.isf(1e-4, chance * days)


def false_alarms(batches: int, memory: int, chance: float, seed: int) -> tuple[int, float]:
    """Return days with alarms of two unknowns, another on another day, and how many may have.

    Days are of twenty memories.
    """
    rng, day = np.random.default_rng(seed), 20 * memory
    state, truth, days = Followed.before(np.eye(2), 1), np.zeros(2), set()
    for k in range(batches):
        if k % day == 0:
            truth = rng.normal(size=2)
        rows = 0.3 * rng.normal(size=(8, 2))
        seen = rows @ truth + rng.normal(size=8)
        state = state.updated([np.column_stack([rows, seen])], np.array([1.0 - 1.0 / memory]))
        found = Departure(state.values, state.unchanged, state.scatter).distances()
        if any(one.square > level_of(one.degrees, chance / len(found), round(one.noise, 2))
               for one in found):
            days.add(k // day)
    return len(days), chance * batches / day


@cache
def level_of(degrees: int, chance: float, noise: float) -> float:
    return alarm_level(degrees, chance, np.inf, noise, 20.0)


def test_false_alarms_keep_the_stated_rate() -> None:
    found, stated = false_alarms(2000, 10, 0.1, seed=1)
    assert found <= poisson.isf(1e-4, stated)


@pytest.mark.soak
def test_false_alarms_keep_the_stated_rate_for_long() -> None:
    found, stated = false_alarms(200_000, 10, 0.05, seed=2)
    assert poisson.ppf(1e-4, 0.1 * stated) <= found <= poisson.isf(1e-4, stated)


def null_days(seed: int, hours: float) -> int:
    """Return the alarms of an arm that is, every hour, another one of what is expected."""
    model, rng = known_model(), np.random.default_rng(seed)
    root, found = prior_root(model), 0
    health = Health(model, HealthSettings(false_alarms=0.1))
    for part in range(int(np.ceil(hours))):
        truth = model.values + root.T @ rng.normal(size=len(model.values))
        arm, alarms = EverydayArm(model, truth, seed=1000 * seed + part), 0
        for stretch in range(round(min(hours, 1.0) * 60.0 * MINUTE)):
            health.identification.take(arm.stretch())
            if stretch % MINUTE == 0:
                alarms += bool(changed(health))
        found += bool(alarms)
    return found


def test_an_arm_as_expected_raises_no_alarm() -> None:
    assert null_days(1, 0.25) == 0


@pytest.mark.soak
@pytest.mark.parametrize('seed', range(4))
def test_ten_days_without_change_raise_no_alarm(seed: int) -> None:
    """Stated: one false alarm in ten months, so one in thirty times ten days."""
    assert 0.1 * 10.0 / MONTH < 0.04
    assert null_days(seed, 10.0) == 0


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


def test_equations_of_everyday_motion_are_of_what_values_leave(model: IdentifiedModel) -> None:
    """Squares are the integral of its square; a change along a direction makes its effort."""
    time, rate = np.arange(500)[:, None] * 0.01, np.array([2.0, 3.0, 4.0])
    q, qd, qdd = np.sin(rate * time), rate * np.cos(rate * time), -rate**2 * np.sin(rate * time)
    made = everyday_motion(model, everyday(model, q, qd, model.inverse(q, qd, qdd)))
    assert made is not None
    whole, directions = made.information.total, np.diag(model.values)[:, :2]
    assert made.seconds == pytest.approx(made.step * made.information.samples)
    changed = model.values + directions @ [0.3, -0.2]
    for values in (np.zeros_like(model.values), 1.5 * model.values):
        energy = made.information.residual_energy(values, FILTERED)
        found = made.equations(whole, values, directions)
        assert [np.sum(rows[:, -1]**2) for rows in found] == pytest.approx(made.step * energy)
        assert [rows.shape[1] for rows in found] == [4, 4, 4]
    for there, here in zip(made.equations(whole, changed, directions),
                           made.equations(whole, model.values, directions), strict=True):
        np.testing.assert_allclose(here[:, -1] - there[:, -1], here[:, :2] @ [0.3, -0.2],
                                   rtol=0.0, atol=1e-9)
    ones = [np.sum(rows[:, 2]**2) for rows in made.equations(whole, model.values, directions)]
    assert ones == pytest.approx(3 * [made.seconds])


def test_stretches_in_which_no_joint_slides_for_half_a_second_are_of_no_use(
    model: IdentifiedModel
) -> None:
    """A joint swings once; its ends, and what is slow, do not count."""
    def swung(seconds: float) -> EverydayMotion | None:
        time = np.arange(800) * 0.01
        phase = np.clip((time - 2.0) / seconds, 0.0, 1.0)
        q, qd = np.zeros((2, len(time), 3))
        q[:, 1] = seconds * (phase - np.sin(2.0 * np.pi * phase) / (2.0 * np.pi))
        qd[:, 1] = (1.0 - np.cos(2.0 * np.pi * phase))
        return everyday_motion(model, everyday(model, q, qd, model.inverse(q, qd, 0.0 * q)))

    long, short = swung(4.0), swung(2.0)
    assert long is not None and short is not None
    most, half = (one.sliding.sum(axis=0) for one in (long, short))
    assert not most[[0, 2]].any() and 2.5 < most[1] < 3.5 and 1.0 < half[1] < 2.0

    def lasts(sliding: float) -> float:
        return float(2.0 + 2.0 * (sliding - half[1]) / (most[1] - half[1]))

    assert swung(lasts(0.44)) is None
    enough = swung(lasts(0.56))
    assert enough is not None and enough.sliding.sum() == pytest.approx(0.56, abs=0.05)


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
