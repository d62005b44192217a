"""robot_dynid_extras/health/health.py: judgements by closed forms, and their words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from everyday_arm import known_model
from scipy.stats import chi2, f, norm, t

from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray, frozen
from robot_dynid_extras.health.health import (
    Change,
    Condition,
    GroupHealth,
    Health,
    HealthSettings,
    alarm_level,
    largest_noise,
    normal_deviations,
    whitening,
)
from robot_dynid_extras.health.recursive_identification import Recent, prior_freedom

MODEL = known_model()
SIZE = len(MODEL.names)
FEW = replace(MODEL, std=frozen(MODEL.std * np.where(np.arange(SIZE) == 18, 20.0, 1.0)),
              record=replace(MODEL.record, degrees_of_freedom=6.0, recordings=('one', 'two')))


@pytest.mark.parametrize(('served', 'now', 'std', 'expected', 'words'), [
    (20.0, 23.0, 0.5, 20.4, 'friction 20 to 23 +- 0.98 N m (+15 %)'),
    (20.0, 23.0, 0.5, 20.6, 'friction 20 to 23 +- 0.98 N m (+15 %), 20.6 expected by the other '
     'joints'),
    (-20.0, -17.0, 0.5, -20.6, 'friction -20 to -17 +- 0.98 N m (-15 %), -20.6 expected by the '
     'other joints'),
    (20.0, 23.0, 2.02, 20.0, 'friction 20 to 23 +- 4 N m'),
    (20.0, 23.0, 1.98, 20.0, 'friction 20 to 23 +- 3.9 N m (+15 %)'),
    (200.0, 201.04, 0.5, 200.0, 'friction 200 to 201 +- 0.98 N m (+1 %)'),
    (200.0, 200.96, 0.5, 200.0, 'friction 200 to 201 +- 0.98 N m'),
    (200.0, 198.96, 0.5, 200.0, 'friction 200 to 199 +- 0.98 N m (-1 %)'),
    (0.0, 3.0, 0.5, 0.1, 'friction 0 to 3 +- 0.98 N m')])
def test_a_change_is_told_with_its_interval_share_and_expectation(
    served: float, now: float, std: float, expected: float, words: str
) -> None:
    """The share from 0.5 % on, where the value is ten deviations; what is expected from one on."""
    found = Change('fc1', 'friction', 'N m', served, now, std, expected, 0.3)
    assert found.sentence == words
    assert found.deviations == pytest.approx(abs(now - expected) / std)
    assert replace(found, std=0.0).deviations == 0.0


def group(condition: Condition, changes: tuple[Change, ...]) -> GroupHealth:
    """Return a group with numbers that differ."""
    return GroupHealth('joint_1: friction', condition, 3.5, 2.5, 'joint_2', 0.234, 0.123, 0.345,
                       changes, 87.6)


@pytest.mark.parametrize(('condition', 'begin', 'end'), [
    (Condition.OK, 'as expected: ', ''), (Condition.CHANGED, 'changed: ', ''),
    (Condition.STALE, 'not excited of late: ', '; 88 s of motion ago')])
def test_health_of_a_group_tells_its_largest_change_and_its_torque(
    condition: Condition, begin: str, end: str
) -> None:
    small = Change('fv1', 'viscous friction', 'N m s/rad', 20.0, 26.0, 2.5, 20.0, 9.0)
    large = Change('fc1', 'dry friction', 'N m', 5.0, 3.0, 0.5, 5.0, 1.0)
    for changes in ((small, large), (large, small)):
        found = group(condition, changes)
        assert found.largest is large
        assert found.sentence == (f'{begin}dry friction 5 to 3 +- 0.98 N m, '
                                  f'0.23 N m (0.12 to 0.34) in joint_2{end}')
        assert group(Condition.UNKNOWN, changes).sentence == 'not excited yet'


def test_health_settings_have_their_defaults_and_bounds() -> None:
    assert (HealthSettings().memory, HealthSettings().false_alarms) == (120.0, 0.1)
    HealthSettings(30.0, 1e-6), HealthSettings(1e8, 1e3)
    for settings, words in (({'false_alarms': 0.9e-6}, 'false_alarms of the health'),
                            ({'false_alarms': 1.1e3}, 'false_alarms of the health'),
                            ({'memory': 29.0}, 'memory of the health'),
                            ({'memory': 1.1e8}, 'memory of the health')):
        with pytest.raises(UsageError, match=words):
            HealthSettings(**settings)


def test_largest_noise_is_that_of_a_diffusion_in_steps_up_to_ten_beyond_the_root() -> None:
    for degrees, memories in ((2, 40.0), (5, 0.3)):
        distance, share = largest_noise(degrees, memories)
        np.testing.assert_allclose(distance, np.sqrt(degrees) + 0.05 * np.arange(1.0, 201.0))
        square = distance**2
        more = 1.0 - np.exp(-max(memories, 1.0) * 2.0 * square * chi2.pdf(square, degrees))
        assert share.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(np.cumsum(share[::-1])[::-1][1:], more[:-1], atol=1e-12,
                                   rtol=1e-9)


@pytest.mark.parametrize(('degrees', 'freedom', 'noise', 'memories'), [
    (3, 7.0, 0.3, 50.0), (2, np.inf, 0.6, 1.0)])
def test_an_alarm_level_adds_the_day_to_its_largest_noise(
    degrees: int, freedom: float, noise: float, memories: float
) -> None:
    level = alarm_level(degrees, 0.002, freedom, noise, memories)
    distance, share = largest_noise(degrees, memories)
    rest = np.maximum(np.sqrt(level) - np.sqrt(noise) * distance, 0.0)**2 / (1.0 - noise)
    more = chi2.sf(rest, degrees) if np.isinf(freedom) else f.sf(
        rest * freedom / (freedom - 2.0) / degrees, degrees, freedom)
    assert share @ more == pytest.approx(0.002, rel=1e-6)
    if memories == 1.0:
        assert alarm_level(degrees, 0.002, noise=noise) == pytest.approx(level)


def test_directions_with_less_than_a_millionth_of_the_variance_are_unknown() -> None:
    for share, count in ((1.1e-6, 2), (0.9e-6, 1)):
        found = whitening(np.diag([share, 4.0]))
        assert found.shape == (2, count)
        np.testing.assert_allclose(np.abs(found[:, -1]), [0.0, 0.5])


def test_normal_deviations_have_the_probability_of_the_distance() -> None:
    assert normal_deviations(9.0, 0) == 0.0 == normal_deviations(0.0, 3)
    assert normal_deviations(2500.0, 3) == 50.0  # beyond what doubles can tell
    for square, degrees, freedom in ((6.0, 1, 5.0), (20.0, 4, 9.0), (3.0, 2, np.inf)):
        scaled = square / (1.0 - 2.0 / freedom)
        chance = (2.0 * t.sf(np.sqrt(scaled), freedom) if degrees == 1 else
                  f.sf(scaled / degrees, degrees, freedom) if np.isfinite(freedom) else
                  chi2.sf(scaled, degrees))
        assert 2.0 * norm.sf(normal_deviations(square, degrees, freedom)) == pytest.approx(chance)


def followed_as(values: FloatArray, common: float = 0.0, stays: float = 0.3, **more: object
                ) -> tuple[Health, SimpleNamespace]:
    """Return the health of parameters that were found off by ``values`` (b,), in deviations.

    ``common`` is the covariance of the first friction parameters of all joints; ``stays`` (b,) of
    the variance is left.
    """
    rng = np.random.default_rng(3)
    health, structure = Health(FEW), FEW.torque_model.structure
    scale = rng.uniform(0.2, 0.9, SIZE)
    covariance = np.diag(rng.uniform(0.5, 1.5, SIZE))
    covariance[np.ix_([11, 14, 17], [11, 14, 17])] += common
    factors = tuple(rng.uniform(0.2, 0.7, (2, int(row.sum()) + 3)) for row in structure)
    found = {'model': FEW, 'scale': scale, 'values': FEW.values + scale * values,
             'root': np.diag(rng.uniform(0.01, 0.04, SIZE)), 'seconds': 1000.0, 'memory': 120.0,
             'excited': 900.0 + np.arange(SIZE), 'learning': False,
             'recent': Recent(factors, np.array([40.0, 50.0, 60.0]), np.zeros((2, 3))),
             'left_over': lambda values: np.full(3, 1e-9),
             'followed': SimpleNamespace(values=values, unchanged=covariance,
                                         scatter=0.202 * covariance,
                                         covariance=np.diag(stays * np.linspace(1.0, 1.5, SIZE)))}
    fake = SimpleNamespace(**(found | more))
    health.identification = fake  # type: ignore[assignment]
    return health, fake


def off(*shares: tuple[int, float]) -> FloatArray:
    """Return departures (b,) of which some are large."""
    values = 0.1 * np.random.default_rng(4).uniform(0.5, 1.0, SIZE)
    for k, size in shares:
        values[k] = size
    return values


def named(health: Health) -> dict[str, GroupHealth]:
    """Return the judgements by the words of their groups."""
    return {one.words: one for one in health.judged()}


def test_a_group_is_judged_by_its_levels_deviations_and_torque() -> None:
    """A link and friction by the formulas of the module's heading, with few degrees."""
    health, fake = followed_as(off((4, 1.4), (18, 1.4)))
    own, freedom = [3, 4, 5], prior_freedom(FEW)
    variance = np.diag(fake.followed.unchanged)[own]
    levels = [alarm_level(degrees, health.chance / 4.0, 6.0, 0.205, 720.0) for degrees in (3, 1)]
    squares = fake.followed.values[own]**2 / variance
    link = named(health)['link_2: mass, first moments and inertia']
    ratios = [squares.sum() / levels[0], *(squares / levels[1])]
    assert np.argmax(ratios) == 2
    assert link.deviations == pytest.approx(normal_deviations(squares[1], 1, 6.0))
    assert link.level == pytest.approx(normal_deviations(levels[1], 1, 6.0))
    change = np.zeros(SIZE)
    change[own] = (fake.scale * fake.followed.values)[own]
    structure = FEW.torque_model.structure
    torque = [np.linalg.norm(factor[:, :-3] @ change[row]) / np.sqrt(count) for factor, row, count
              in zip(fake.recent.factors, structure, fake.recent.samples, strict=True)]
    joint = int(np.argmax(torque))
    half = 1.96 * np.sqrt(sum(
        np.sum((fake.recent.factors[joint][:, :-3] @ (
            np.where(np.arange(SIZE) == k, fake.root[k, k], 0.0)[structure[joint]]))**2)
        for k in own) / fake.recent.samples[joint])
    assert (link.joint, link.torque, link.low, link.high) == (
        f'joint_{joint + 1}', *(pytest.approx(x) for x in (
            torque[joint], torque[joint] - half, torque[joint] + half)))
    assert link.idle == 95.0  # the latest of its parameters
    for k, one in zip(own, link.changes, strict=True):
        assert (one.name, one.served) == (FEW.names[k], FEW.values[k])
        assert (one.now, one.expected) == pytest.approx((fake.values[k], FEW.values[k]))
        assert one.std == pytest.approx(
            fake.scale[k] * np.sqrt(fake.followed.covariance[k, k]))
        assert one.seen == pytest.approx(fake.scale[k] * (np.sqrt(levels[1]) + 1.28) * np.sqrt(
            fake.followed.unchanged[k, k]))
    friction = named(health)['joint_3: friction']
    assert len({*freedom[17:]}) > 1 and link.condition is Condition.OK
    least = alarm_level(1, health.chance / 4.0, freedom[17:].min(), 0.205, 720.0)
    assert friction.changes[1].seen == pytest.approx(fake.scale[18] * (
        np.sqrt(least) + 1.28) * np.sqrt(fake.followed.unchanged[18, 18]))
    assert friction.level == pytest.approx(normal_deviations(least, 1, freedom[17:].min()))
    assert friction.deviations == pytest.approx(normal_deviations(
        1.4**2 / fake.followed.unchanged[18, 18], 1, freedom[17:].min()))


@pytest.mark.parametrize(('more', 'condition'), [
    ({}, Condition.CHANGED), ({'learning': True}, Condition.UNKNOWN),
    ({'excited': np.full(SIZE, -np.inf)}, Condition.UNKNOWN),
    ({'seconds': 1025.0}, Condition.CHANGED)])
def test_a_large_departure_is_a_change_where_it_is_known(
    more: dict[str, object], condition: Condition
) -> None:
    assert named(followed_as(off((9, 40.0)), **more)[0])['joint_2: rotor'].condition is condition


@pytest.mark.parametrize(('seconds', 'condition'), [
    (1028.0, Condition.OK), (1030.0, Condition.STALE)])
def test_a_group_is_stale_after_a_memory_without_excitation(
    seconds: float, condition: Condition
) -> None:
    found = named(followed_as(off(), seconds=seconds)[0])['joint_2: rotor']
    assert (found.condition, found.idle) == (condition, seconds - 909.0)


@pytest.mark.parametrize(('stays', 'condition'), [
    (0.89, Condition.OK), (0.91, Condition.UNKNOWN)])
def test_a_group_is_known_from_a_tenth_of_the_variance_on(
    stays: float, condition: Condition
) -> None:
    """Of the parameter that is known best."""
    found = named(followed_as(off(), stays=stays)[0])
    assert found['link_1: mass, first moments and inertia'].condition is condition


@pytest.mark.parametrize(('tenths', 'condition'), [
    (10.4, Condition.OK), (9.6, Condition.CHANGED)])
def test_a_change_matters_from_a_tenth_of_the_residual_on(
    tenths: float, condition: Condition
) -> None:
    health, fake = followed_as(off((10, 40.0)))
    torque = named(health)['joint_3: rotor'].torque
    fake.left_over = lambda values: np.full(3, tenths * torque)
    assert named(health)['joint_3: rotor'].condition is condition


@pytest.mark.parametrize('ratio', [0.9, 1.1])
def test_a_joint_beyond_its_level_says_nothing_about_the_others(ratio: float) -> None:
    """What is expected of the others then comes from the rest alone."""
    values = off()

    def health_of(size: float) -> tuple[Health, SimpleNamespace]:
        return followed_as(off((14, size)), common=2.0)

    health, fake = health_of(0.0)
    joint, others = [14, 15, 16], [11, 12, 13, 17, 18, 19]
    covariance = fake.followed.unchanged

    def beside(own: list[int], others: list[int], values: FloatArray
               ) -> tuple[FloatArray, FloatArray]:
        gain = covariance[np.ix_(own, others)] @ np.linalg.inv(covariance[np.ix_(others, others)])
        return (values[own] - gain @ values[others],
                covariance[np.ix_(own, own)] - gain @ covariance[np.ix_(others, own)])

    left, variance = beside(joint, others, values)
    level = alarm_level(1, health.chance / 4.0, prior_freedom(FEW)[joint].min(), 0.205, 720.0)
    size = values[14] - left[0] + np.sqrt(ratio * level * variance[0, 0])
    health, fake = health_of(float(size))
    found = named(health)
    last = [17, 18, 19]
    rest = [11, 12, 13] if ratio > 1.0 else [11, 12, 13, 14, 15, 16]
    expected = fake.values[last] - fake.scale[last] * beside(last, rest, fake.followed.values)[0]
    assert [one.expected for one in found['joint_3: friction'].changes] == pytest.approx(expected)
    assert (found['joint_2: friction'].condition is Condition.CHANGED) == (ratio > 1.0)


def test_a_group_of_which_nothing_is_known_has_the_level_of_one_degree() -> None:
    health, fake = followed_as(off())
    fake.followed.unchanged[9, 9] = fake.followed.scatter[9, 9] = 0.0
    fake.recent = None
    found = named(health)['joint_2: rotor']
    assert (found.deviations, found.torque, found.low, found.high) == (0.0, 0.0, 0.0, 0.0)
    assert found.level == pytest.approx(normal_deviations(
        alarm_level(1, health.chance, 6.0, 0.0, 720.0), 1, 6.0))
    assert found.joint == 'joint_1' and np.isinf(found.changes[0].seen)
