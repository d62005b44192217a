"""Variance components, changes and discoveries: against drawn numbers whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, f, norm, t
from tolerances import SAME_FORMULA, SCATTER_FOUND, SHARE_BY_CHANCE

from robot_dynid_extras.fleet.chance import discovered, rejected, simes
from robot_dynid_extras.fleet.changes import (
    OUTLIER,
    PASSING,
    STEP,
    TREND,
    change,
    level,
    outliers,
    sessions_needed,
)
from robot_dynid_extras.fleet.scatter import MANY, DayToDay, Levels, Path, day_to_day, levels

DAILY, WITHIN = 0.05, 0.03


def drawn(rng: np.random.Generator, sessions: int = 12, unrest: float = 1.0) -> Path:
    """Return a path without changes: daily scatter, and errors within sessions."""
    variances = (WITHIN * rng.uniform(0.5, 2.0, sessions)) ** 2
    return Path(unrest * np.sqrt(DAILY**2 + variances) * rng.standard_normal(sessions), variances)


def test_scatter_from_day_to_day_is_that_of_the_median_arm() -> None:
    rng = np.random.default_rng(0)
    paths = [drawn(rng) for _ in range(60)]
    alike = day_to_day(paths)
    assert alike.spread == pytest.approx(DAILY, rel=SCATTER_FOUND)
    assert alike.freedom > 50.0
    shift = 10.0 * DAILY * (np.arange(12) > 5)
    changed = [Path(p.values + shift, p.variances) for p in paths[:6]] + paths[6:]
    assert day_to_day(changed).spread == pytest.approx(DAILY, rel=1.5 * SCATTER_FOUND)
    unlike = [drawn(rng, unrest=np.sqrt(4.0 / rng.chisquare(4))) for _ in range(200)]
    assert 2.0 < day_to_day(unlike).freedom < 8.0
    assert day_to_day([Path(np.ones(1), np.ones(1))]).spread == np.inf
    assert day_to_day(paths[:1]).freedom == 0.0


def test_levels_of_arms_hold_against_a_few_that_are_off() -> None:
    rng = np.random.default_rng(1)
    variances = rng.uniform(0.01, 0.04, 80) ** 2
    values = 0.5 + np.sqrt(0.1**2 + variances) * rng.standard_normal(80)
    values[:4] += 1.0
    found = levels(values, variances)
    assert found.spread == pytest.approx(0.1, rel=2.0 * SCATTER_FOUND)
    assert abs(found.mean - 0.5) < 0.05
    clean = levels(0.1 * rng.standard_normal(5000), np.zeros(5000))
    assert clean.spread == pytest.approx(0.1, rel=0.04)  # five deviations of so many
    assert levels(np.ones(5), np.ones(5)).spread == 0.0
    assert levels(np.ones(1), np.ones(1)).spread == np.inf


@pytest.mark.parametrize(('variance', 'count'), [
    (0.04, 2), (0.0, 4), (0.04, 4), (0.04, 20), (4.0, 20)])
def test_the_spread_of_levels_is_that_which_bounded_residuals_let_expect(
    variance: float, count: int
) -> None:
    """Of as many at 1 and -1, each 1 / (tau^2 + v) = E[min(z^2, 4)] (R - 1) / R."""
    found = levels(0.7 + np.resize([1.0, -1.0], count), np.full(count, variance))
    expected = quad(lambda z: min(z * z, 4.0) * norm.pdf(z), -12.0, 12.0, points=[-2.0, 2.0])[0]
    total = max(count / (count - 1) / expected, variance)
    assert found.spread == pytest.approx(np.sqrt(total - variance), rel=1e-6)
    assert found.mean == pytest.approx(0.7)
    assert found.error == pytest.approx(np.sqrt(total / count), rel=1e-6)
    assert levels(np.array([3.0]), np.array([0.25])) == Levels(3.0, 0.5, np.inf)


def test_a_level_far_off_pulls_the_mean_by_two_deviations_alone() -> None:
    """Huber's: the sum of all residuals, bounded, is zero."""
    values = np.append(np.random.default_rng(11).standard_normal(11), 50.0)
    found = levels(values, np.full(12, 0.01))
    off = (values - found.mean) / np.sqrt(found.spread**2 + 0.01)
    assert np.sum(np.clip(off, -2.0, 2.0)) == pytest.approx(0.0, abs=0.01)
    assert abs(found.mean - values[:11].mean()) < 0.5 and found.spread < 3.0


@pytest.mark.parametrize(('sessions', 'freedom'), [
    ((4, 6, 12), 3.0), ((4, 12), 3.0), ((3, 3, 1), 2.0), ((7,), 0.0), ((2, 2, 2, 9), 1.0)])
def test_few_arms_tell_as_much_as_one_by_itself(
    sessions: tuple[int, ...], freedom: float
) -> None:
    """The median arm scatters as the median of chi-square says."""
    rng = np.random.default_rng(6)
    paths = [Path(rng.standard_normal(count), np.zeros(count)) for count in sessions]
    found = day_to_day(paths)
    ratios = [len(path.values) * np.var(path.values) / chi2.median(len(path.values) - 1)
              for path in paths if len(path.values) > 1]
    assert found.spread == pytest.approx(np.sqrt(np.median(ratios)), rel=1e-6)
    assert found.freedom == freedom


def test_arms_that_scatter_as_chi_square_with_a_common_factor_tell_its_freedom() -> None:
    """The quartiles of their ratios are those of F; alike arms are MANY."""
    for freedom in (1.7, 3.0, 12.0):
        ratios = f.ppf(np.clip(np.arange(41.0) / 40.0, 0.01, 0.99), 6, freedom)
        paths = [Path(np.sqrt(ratio) * np.resize([1.0, -1.0], 7), np.zeros(7)) for ratio in ratios]
        assert day_to_day(paths).freedom == pytest.approx(freedom, rel=1e-6)
    alike = [Path(np.resize([1.0, -1.0], 7), np.zeros(7))] * 12
    assert day_to_day(alike).freedom == MANY


def test_quartiles_of_scatter_by_its_freedom_tell_how_alike_arms_are() -> None:
    """Those of F of the median freedom, where arms have five to nine sessions."""
    rng = np.random.default_rng(12)
    paths = [Path(rng.uniform(0.3, 2.0) * rng.standard_normal(5 + k % 5),
                  rng.uniform(0.01, 0.2, 5 + k % 5)) for k in range(20)]
    found = day_to_day(paths)
    excess = [path.scatter(found.spread) / chi2.median(path.freedom) for path in paths]
    assert np.median(excess) == pytest.approx(1.0, rel=1e-6)
    logarithms = np.log([path.scatter(found.spread) / path.freedom for path in paths])
    low, high = np.quantile(logarithms, [0.25, 0.75])
    between = np.log(f.ppf(0.75, 6, found.freedom) / f.ppf(0.25, 6, found.freedom))
    assert between == pytest.approx(high - low, rel=1e-6) and found.freedom < 50.0


@pytest.mark.parametrize(('count', 'alone'), [(4, True), (12, True), (13, False)])
def test_how_far_an_arm_is_off_counts_all_that_is_unknown(count: int, alone: bool) -> None:
    """Of its level, of the mean of the others, and their spread; by Student's t."""
    rng = np.random.default_rng(9)
    values, variances = rng.standard_normal(count), rng.uniform(0.1, 0.5, count)
    fleet = Levels(0.4, 0.3, 1.2)
    said = outliers(values, variances, fleet)
    assert said is not None and len(said) == count
    for r, one in enumerate(said):
        others = np.arange(count) != r
        rest = levels(values[others], variances[others]) if alone else fleet
        deviation = np.sqrt(rest.spread**2 + rest.error**2 + variances[r])
        assert one.size == pytest.approx(values[r] - rest.mean)
        assert one.deviation == pytest.approx(deviation)
        assert one.probability == pytest.approx(
            2.0 * t.sf(abs(values[r] - rest.mean) / deviation, count - 2))
        assert one.half_interval(0.05) == pytest.approx(t.ppf(0.975, count - 2) * deviation)
    same = outliers(np.ones(5), np.zeros(5), fleet)
    assert same is not None and all(
        (one.probability, one.size) == (1.0, 0.0) for one in same)


def test_a_step_of_what_differs_by_day_has_sessions_on_both_sides() -> None:
    """Three of them, of few sessions half; one session by itself is not told of it."""
    usual = DayToDay(1.0, MANY)
    for count, first in ((12, 3), (5, 2), (4, 2), (2, 1)):
        for at in range(1, count):
            path = Path(9.0 * (np.arange(count) >= at), np.zeros(count))
            links, friction = (change(path, np.arange(float(count)), usual, daily)
                               for daily in (False, True))
            assert links is not None and friction is not None
            assert links.session == at and links.pattern in (STEP, PASSING)
            assert first <= friction.session <= count - first or friction.pattern == TREND
            if first <= at <= count - first:
                assert (friction.pattern, friction.session) == (STEP, at)


def test_discovered_pays_for_every_choice_before() -> None:
    """Two of four arms, both parts of the first, and one of two of the second's numbers."""
    none = [np.array([0.9])]
    arms = [[np.array([1e-6]), np.array([1e-5])], [np.array([1e-5, 0.5, 0.6, 0.7])], none, none]
    (first, second), (third,), *_ = discovered(arms, 0.08)
    assert first[0].tolist() == second[0].tolist() == [True]
    assert third[0].tolist() == [True, False, False, False]
    assert (first[1], second[1], third[1]) == pytest.approx((0.04, 0.04, 0.01))
    assert discovered([], 0.05) == [] and discovered([none, []], 0.05)[1] == []


def test_few_arms_show_the_spread_without_bias() -> None:
    rng = np.random.default_rng(7)
    squares = [levels(0.1 * rng.standard_normal(4), np.full(4, 1e-6)).spread**2
               for _ in range(1000)]
    assert np.mean(squares) == pytest.approx(0.1**2, rel=0.13)  # five deviations of so many


def test_the_level_of_an_arm_is_its_mean_with_the_variance_of_both_scatters() -> None:
    """Of equal weights: the variance is that of the arm, and of the fleet with its freedom."""
    values = np.random.default_rng(8).standard_normal(9)
    for freedom in (0.0, 4.0):
        found = level(Path(values, np.ones(9)), DayToDay(0.0, freedom))
        pooled = (freedom + 8.0 * np.var(values, ddof=1)) / (freedom + 8.0)
        assert found == (pytest.approx(np.mean(values)), pytest.approx(pooled / 9.0))


def test_without_changes_probabilities_are_what_they_say() -> None:
    rng = np.random.default_rng(2)
    usual, time = DayToDay(DAILY, MANY), np.arange(12.0)
    chances = np.array([one.probability for _ in range(2000)
                        if (one := change(drawn(rng), time, usual))])
    for bound in (0.05, 0.01):
        assert np.mean(chances < bound) < SHARE_BY_CHANCE * bound
    values, variances = np.array([level(drawn(rng), usual) for _ in range(400)]).T
    values = values + 0.1 * rng.standard_normal(400)
    said = outliers(values, variances, levels(values, variances))
    assert said is not None
    assert np.mean([one.probability < 0.05 for one in said]) < SHARE_BY_CHANCE * 0.05


@pytest.mark.parametrize(('pattern', 'shape', 'first'), [
    (STEP, np.arange(12) >= 7, 7), (PASSING, np.arange(12) == 4, 4),
    (TREND, np.arange(12) / 11.0, 0)])
def test_a_change_is_found_with_its_size_and_session(
    pattern: str, shape: np.ndarray, first: int
) -> None:
    path = drawn(np.random.default_rng(3))
    size = 8.0 * DAILY
    for usual in (DayToDay(DAILY, MANY), DayToDay(DAILY, 0.0)):
        one = change(Path(path.values + size * shape, path.variances), np.arange(12.0), usual)
        assert one is not None
        assert (one.pattern, one.session) == (pattern, first)
        assert one.probability < 1e-3
        assert abs(one.size - size) < one.half_interval(0.01)


def test_tests_are_those_of_the_textbook() -> None:
    """Of equal weights and no other arms: Student's test of two means, and of a slope."""
    from scipy import stats

    rng = np.random.default_rng(4)
    values, time = rng.standard_normal(9), np.arange(9.0)
    values[5:] += 4.0
    one = change(Path(values, np.ones(9)), time, DayToDay(0.0, 0.0))
    assert one is not None and one.pattern == STEP
    peer = stats.ttest_ind(values[5:], values[:5])
    for unit in (1.0, 0.01):
        scaled = change(Path(unit * values, np.ones(9)), time, DayToDay(0.0, 0.0))
        assert scaled is not None
        assert scaled.size / scaled.deviation == pytest.approx(peer.statistic, rel=SAME_FORMULA)
    assert one.probability == pytest.approx(16 * peer.pvalue, rel=SAME_FORMULA)
    slope = values + 9.0 * time / 8.0
    one = change(Path(slope, np.ones(9)), time, DayToDay(0.0, 0.0))
    assert one is not None and one.pattern == TREND
    assert one.session == 0
    line = stats.linregress(time, slope)
    assert one.size == pytest.approx(8.0 * line.slope, rel=SAME_FORMULA)
    assert one.probability == pytest.approx(16 * line.pvalue, rel=1e-6)


def test_an_arm_is_compared_with_the_others_without_itself() -> None:
    values = np.array([0.0, 0.1, -0.1, 0.05, 3.0])
    said = outliers(values, np.full(5, 1e-4), levels(values, np.full(5, 1e-4)))
    assert said is not None
    assert said[4].probability < 1e-3 < min(one.probability for one in said[:4])
    assert said[4].pattern == OUTLIER
    assert outliers(values[:3], np.ones(3), levels(values[:3], np.ones(3))) is None


@pytest.mark.parametrize('daily', [True, False])
def test_as_many_sessions_as_are_asked_for_would_tell(daily: bool) -> None:
    """A step as large is told by so many sessions, half of them before it, and not by fewer."""
    usual = DayToDay(0.05, 1e9)
    known = Path(np.zeros(5), np.full(5, 0.03**2))
    needed = sessions_needed(0.12, known, usual, daily, 1e-4)
    assert needed is not None and needed > 6

    def chance(count: int) -> float:
        step = 0.12 * (np.arange(count) >= count // 2)
        found = change(Path(step, np.full(count, 0.03**2)), np.arange(float(count)), usual, daily)
        assert found is not None and found.session == count // 2
        return found.probability

    assert chance(needed) <= 1e-4 < chance(needed - 2)
    assert sessions_needed(1.0, known, usual, daily, 1e-4) == 6
    assert sessions_needed(0.001, known, usual, daily, 1e-4) is None


@pytest.mark.parametrize('daily', [True, False])
@pytest.mark.parametrize('freedom', [2.0, 30.0])
def test_sessions_needed_are_by_students_t_of_two_means(daily: bool, freedom: float) -> None:
    """Times the steps, of links also the single sessions, and the trend that are tested."""
    known = Path(np.zeros(3), np.array([0.01, 0.02, 0.06]))
    variance = 0.1**2 + 0.03

    def chance(size: float, half: int) -> float:
        tests = 2 * half - 4 if daily else 4 * half - 2
        ratio = size / np.sqrt(2.0 * variance / half)
        return float(tests * 2.0 * t.sf(ratio, freedom + 2 * half - 2))

    def needed(size: float) -> int | None:
        return sessions_needed(size, known, DayToDay(0.1, freedom), daily, 1e-3)

    for size in (0.2, -0.3, 0.5, 2.0):
        half = next(half for half in range(3, 200) if chance(abs(size), half) <= 1e-3)
        assert needed(size) == (2 * half if half <= 100 else None)
    last = brentq(lambda size: chance(size, 100) - 1e-3, 0.01, 1.0)
    assert needed(1.001 * last) == 200 and needed(0.999 * last) is None


def test_too_few_sessions_say_nothing() -> None:
    one = Path(np.array([0.0, 9.0]), np.ones(2))
    assert change(one, np.arange(2.0), DayToDay(1.0, 0.0)) is None
    assert change(Path(np.ones(1), np.ones(1)), np.zeros(1), DayToDay(1.0, MANY)) is None
    assert change(one, np.arange(2.0), DayToDay(np.inf, MANY)) is None
    assert change(one, np.arange(2.0), DayToDay(1.0, 0.9)) is None
    told = change(one, np.arange(2.0), DayToDay(1.0, 1.1))  # freedom of others and its own
    assert told is not None and told.freedom == 1.1


def test_rates_are_those_of_the_papers() -> None:
    """The example of Benjamini and Hochberg 1995, section 3.1: 4 of 15 are rejected."""
    chances = np.array([.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240,
                        .4262, .5719, .6528, .7590, 1.0])
    assert rejected(chances, 0.05).sum() == 4
    assert not rejected(np.array([]), 0.05).any()
    assert simes(chances) == pytest.approx(15 * 0.0001, rel=SAME_FORMULA)
    assert simes(np.array([])) == 1.0
    assert rejected(np.array([0.04]), 0.05).all()


def test_discovered_divides_the_level_by_the_choice_of_arm_and_part() -> None:
    """One of four arms, one of its two parts, one of the two numbers of this."""
    none = [np.array([0.9])]
    arms = [[np.array([1e-6, 0.01]), np.array([0.02])], none, none, none]
    [(numbers, miss), (other, usual)], *_ = discovered(arms, 0.05)
    assert numbers.tolist() == [True, False] and not other.any()
    assert (miss, usual) == (pytest.approx(0.05 / 4.0 / 2.0 / 2.0), 0.05)


def test_of_arms_by_chance_no_more_are_named_than_the_rate_says() -> None:
    rng = np.random.default_rng(5)
    wrong = []
    for _ in range(300):
        families = [[rng.uniform(size=3) for _ in range(6)] for _ in range(20)]
        for arm in families[:3]:  # two parts that changed in all they have
            arm[:2] = [1e-6 * part for part in arm[:2]]
        named = np.array([any(one.any() for one, _ in arm)
                          for arm in discovered(families, 0.1)])
        assert named[:3].all()
        wrong.append(named[3:].sum() / named.sum())
    assert np.mean(wrong) < SHARE_BY_CHANCE * 0.1


def test_changes_do_not_depend_on_when_time_begins_or_its_unit() -> None:
    """Three sessions tell a trend; a step of two is no trend."""
    values, time = np.array([0.0, 0.9, 2.1]), np.array([0.0, 1.0, 2.3])
    path, usual = Path(values, np.full(3, 0.01)), DayToDay(0.05, 8.0)
    plain = change(path, time, usual, True)
    later = change(path, 1.7e9 + 86400.0 * time, usual, True)
    assert plain is not None and later is not None
    assert (later.pattern, later.session) == (plain.pattern, plain.session) == (TREND, 0)
    assert (later.size, later.probability) == pytest.approx((plain.size, plain.probability))
    assert plain.freedom == 9.0
    steep = Path(np.array([0.0, 1.0]), np.full(2, 0.01))
    two = change(steep, 5.0 + time[:2], usual, True)
    assert two is not None and (two.pattern, two.session) == (STEP, 1)
    ratio = 1.0 / np.sqrt(2.0 * (0.05**2 + 0.01))
    assert two.probability == pytest.approx(2.0 * t.sf(ratio, 8.0))


def test_the_level_of_one_session_has_its_variance_and_that_of_days() -> None:
    for freedom in (0.0, 5.0):
        assert level(Path(np.array([2.0]), np.array([0.25])), DayToDay(0.3, freedom)) == (
            2.0, pytest.approx(0.34))
