"""Scatter that is not what a test supposes: alike days, rare cold ones, seasons of all arms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gumbel_r

from robot_dynid_extras.fleet.chance import QUANTILES, ByChance, by_chance
from robot_dynid_extras.fleet.changes import PASSING, STEP, TREND, change
from robot_dynid_extras.fleet.scatter import LEAST_UNITS, Path, day_to_day, without_season

SESSIONS, ARMS = 16, 50
DAYS = np.arange(float(SESSIONS))


def alike(rng: np.random.Generator, correlation: float) -> Path:
    """Return a path on which a day resembles the one before by ``correlation``."""
    values = rng.standard_normal(SESSIONS)
    for day in range(1, SESSIONS):
        values[day] *= np.sqrt(1.0 - correlation**2)
        values[day] += correlation * values[day - 1]
    return Path(values, np.zeros(SESSIONS))


def chances(paths: list[Path]) -> np.ndarray:
    """Return the chances of the changes of all paths."""
    usual = day_to_day(paths)
    found = [change(path, DAYS, usual, daily=True) for path in paths]
    return np.array([one.probability for one in found if one])


@pytest.mark.parametrize('correlation', [0.0, 0.6])
def test_chances_hold_where_days_are_alike(correlation: float) -> None:
    """Named by chance, of 20 fleets: without the bulk nearly all where days are alike."""
    rng = np.random.default_rng(0)
    named = {'raw': 0, 'widened': 0}
    for _ in range(20):
        found = chances([alike(rng, correlation) for _ in range(ARMS)])
        usual = by_chance(found)
        widened = np.array([usual.probability(one) for one in found])
        assert (widened >= np.minimum(found, 1.0)).all()
        named['raw'] += bool((found < 0.05 / ARMS).any())
        named['widened'] += bool((widened < 0.05 / ARMS).any())
    assert named['widened'] <= 4  # of 20 with 0.05: more by chance once in 400
    assert named['raw'] >= 15 if correlation else named['raw'] <= 4


def test_a_change_is_still_one_where_days_are_alike() -> None:
    rng = np.random.default_rng(1)
    paths = [alike(rng, 0.5) for _ in range(ARMS)]
    paths[0] = Path(paths[0].values + 6.0 * (DAYS >= 9), paths[0].variances)
    found = chances(paths)
    usual = by_chance(found)
    assert usual.width > 1.2
    assert usual.probability(found[0]) < 0.05 / ARMS


def test_the_bulk_of_gumbels_chances_gives_place_and_width() -> None:
    rng = np.random.default_rng(2)
    heights = 0.7 + 1.5 * rng.gumbel(size=20_000)
    found = by_chance(np.exp(-heights))
    assert found.width == pytest.approx(1.5, rel=0.03)
    assert found.place == pytest.approx(0.7, abs=0.05)
    assert found.probability(np.exp(-(0.7 + 1.5 * QUANTILES[1]))) == pytest.approx(
        0.5, rel=0.03)
    assert by_chance(np.full(LEAST_UNITS - 1, 0.01)) == ByChance(-np.inf, 1.0)
    assert ByChance().probability(0.3) == 0.3 and ByChance().probability(7.0) == 1.0
    assert found.probability(0.0) == 0.0


def test_chances_beside_the_bulk_are_those_of_gumbels_distribution() -> None:
    """Place and width by the quartiles, which thirteen heights have exactly, no narrower."""
    for place, width in ((0.5, 2.0), (-0.3, 1.0), (-1.5, 0.5)):
        heights = place + width * gumbel_r.ppf([0.25, 0.5, 0.75])
        between = np.interp(np.arange(13.0), [3.0, 6.0, 9.0], heights)
        between[:3] -= 1.0
        between[10:] += 1.0
        found = by_chance(np.exp(-between))
        wide = max(width, 1.0)
        middle = heights[1] - wide * gumbel_r.ppf(0.5)
        assert (found.width, found.place) == pytest.approx((wide, middle))
        for chance in (0.5, 0.01, 1e-7):
            assert found.probability(chance) == pytest.approx(
                max(chance, gumbel_r.sf(-np.log(chance), middle, wide)))
    assert by_chance(np.zeros(LEAST_UNITS)).probability(1e-300) > 0.0
    assert by_chance(np.full(LEAST_UNITS, 0.5)).place == pytest.approx(
        np.log(2.0) - gumbel_r.ppf(0.5))


def test_a_cold_day_is_no_change_of_what_differs_from_day_to_day() -> None:
    usual = day_to_day([alike(np.random.default_rng(3), 0.0) for _ in range(ARMS)])
    cold = Path(9.0 * (DAYS == 5), np.zeros(SESSIONS))
    last = Path(9.0 * (DAYS == SESSIONS - 1), np.zeros(SESSIONS))
    for path, pattern in ((cold, PASSING), (last, STEP)):
        of_links, friction = (change(path, DAYS, usual, daily) for daily in (False, True))
        assert of_links is not None and of_links.pattern == pattern
        assert of_links.probability < 1e-6
        assert friction is not None and friction.probability > 1e-3
    few = change(Path(np.array([0.0, 0.1, 9.0, 9.1]), np.zeros(4)), DAYS[:4], usual, daily=True)
    assert few is not None and few.session == 2 and few.pattern in (STEP, TREND)


def test_a_season_of_all_arms_is_taken_off_and_a_change_of_one_is_not() -> None:
    rng = np.random.default_rng(4)
    season = 3.0 * np.sin(DAYS / 5.0)
    plain = [alike(rng, 0.0) for _ in range(ARMS)]
    plain[0] = Path(plain[0].values + 8.0 * (DAYS >= 9), plain[0].variances)
    days = [DAYS[r % 3:] for r in range(ARMS)]  # some began later
    paths = [Path((path.values + season)[r % 3:], path.variances[r % 3:])
             for r, path in enumerate(plain)]
    found = without_season(paths, days)
    off = np.array([one.values[-13:] - path.values[-13:] for one, path in zip(
        found, plain, strict=True)])
    assert np.std(off, axis=1).max() < 0.5  # a median of 50 of them is known to 0.18
    taken = [path.values - one.values for path, one in zip(paths, found, strict=True)]
    assert np.median(np.concatenate(taken)) == pytest.approx(0.0, abs=1e-12), 'levels stay'
    assert without_season(paths[:LEAST_UNITS - 1], days[:LEAST_UNITS - 1])[0] is paths[0]
    single = Path(paths[9].values[:1], paths[9].variances[:1])  # tells no season
    assert without_season([*paths[:9], single], [*days[:9], DAYS[:1]])[0] is paths[0]
    step = np.mean(found[0].values[9:]) - np.mean(found[0].values[:9])
    assert step == pytest.approx(8.0, abs=1.5)
