"""robot_dynid_extras/fleet/fleet.py: sessions of arms by day, and judgements step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.information import Batch, Information
from robot_dynid.types import FloatArray
from robot_dynid_extras.fleet.chance import by_chance, discovered, simes
from robot_dynid_extras.fleet.changes import (
    OUTLIER,
    STEP,
    Evidence,
    change,
    level,
    outliers,
    sessions_needed,
)
from robot_dynid_extras.fleet.characteristics import (
    Characteristic,
    Characteristics,
    Reading,
    cause,
)
from robot_dynid_extras.fleet.fleet import DAY, Fleet, ReducedRecording, Session, fleet, judged
from robot_dynid_extras.fleet.scatter import (
    DayToDay,
    Levels,
    Path,
    day_to_day,
    levels,
    without_season,
)

NOTHING: Any = None
ALL = (Characteristic('viscous_1', 'joint_1', 'viscous', 'viscous friction', ''),
       Characteristic('dry_1', 'joint_1', 'dry', 'dry friction', ''),
       Characteristic('dry_2', 'joint_2', 'dry', 'dry friction', ''),
       Characteristic('mx3', 'link_3', 'link', 'mass times x', 'kg m'),
       Characteristic('Ia2', 'joint_2', 'rotor', 'rotor inertia', 'kg m^2'),
       Characteristic('friction_1', 'joint_1', 'friction', 'friction', ''))
OWN = 5
MADE = Characteristics(NOTHING, ALL, np.zeros(7), np.zeros((7, OWN)), np.array([
    [0.3, 0.7, 0.0, 0.0, 0.0]]), np.ones(2), np.ones(2))


def reading(rng: np.random.Generator, values: FloatArray, known: FloatArray) -> Reading:
    """Return a reading with errors."""
    root = rng.normal(0.0, 0.02, (OWN, OWN)) + np.diag([0.03, 0.02, 0.05, 0.04, 0.03])
    combined = np.vstack([np.eye(OWN), MADE.sums])
    return Reading(combined @ values, combined @ root @ root.T @ combined.T,
                   rng.uniform(1.0, 5.0, 6), known > 0.0)


def arms_of(count: int, seed: int) -> dict[str, tuple[Session, ...]]:
    """Return arms of which some change: the friction of one, the load of another, one is off."""
    rng, arms = np.random.default_rng(seed), {}
    spreads = np.array([0.2, 0.15, 0.2, 0.3, 0.1])
    season = 0.3 * np.sin(np.arange(9) / 2.0)
    for r in range(count):
        arm, sessions = spreads * rng.normal(size=OWN), []
        for s in range(6 + r % 3):
            values = arm + 0.05 * rng.normal(size=OWN)
            values[:3] += season[s]
            values[1] += 2.0 * (r == 1 and s >= 4)
            values[3] += 1.5 * (r == 2 and s >= 3)
            values[4] += 2.0 * (r == 3)
            known = (rng.uniform(size=6) < 0.9).astype(float)
            known[0] *= r != 4
            both = [reading(rng, values + 0.01 * rng.normal(size=OWN), known) for _ in range(2)]
            sessions.append(Session(f'arm {r}', DAY * (20000.0 + s + 0.1 * r), ('a.csv',), *both))
        arms[f'arm {r}'] = tuple(sessions)
    return arms


def paths_of(arms: dict[str, tuple[Session, ...]]) -> list[list[Path]]:
    """Return all characteristics of all arms along their sessions."""
    found = []
    for k, one in enumerate(ALL):
        told = [[s for s in sessions if s.reading.known[k]] for sessions in arms.values()]
        paths = [Path(np.array([s.reading.values[k] for s in own]),
                      np.array([s.reading.covariance[k, k] for s in own])) for own in told]
        if one.kind in ('viscous', 'dry', 'friction'):
            paths = without_season(paths, [np.floor(np.array([s.time for s in own]) / DAY)
                                           for own in told])
        found.append(paths)
    return found


def times_of(arms: dict[str, tuple[Session, ...]], k: int) -> list[FloatArray]:
    """Return the times of the sessions of all arms that know a characteristic."""
    return [np.array([s.time for s in sessions if s.reading.known[k]])
            for sessions in arms.values()]


DAILY = [one.kind in ('viscous', 'dry', 'friction') for one in ALL]
Arms = dict[str, tuple[Session, ...]]


def scaled(arms: Arms) -> Arms:
    """Return the arms with covariances widened by the median colour of the sessions that know."""
    scales = {}
    for which in ('reading', 'apart'):
        every = [getattr(s, which) for own in arms.values() for s in own]
        scales[which] = np.sqrt([np.median([one.colour[k] for one in every if one.known[k]])
                                 for k in range(6)])
    return {name: tuple(replace(s, **{which: replace(
        getattr(s, which), covariance=getattr(s, which).covariance * np.outer(scale, scale))
        for which, scale in scales.items()}) for s in own) for name, own in arms.items()}


def usual_of(paths: list[list[Path]]) -> list[DayToDay]:
    """Return the scatter of all characteristics; of few arms both dry ones together."""
    if len(paths[0]) >= 10:
        return [day_to_day(own) for own in paths]
    dry = day_to_day([*paths[1], *paths[2]])
    return [day_to_day(paths[0]), dry, dry, *(day_to_day(own) for own in paths[3:])]


def read_apart(arms: Arms) -> Arms:
    """Return the arms of which those whose links may have changed are read by each session."""
    paths = paths_of(arms)
    usual, found = usual_of(paths), {}
    for r, (name, own) in enumerate(arms.items()):
        told = [change(paths[k][r], times_of(arms, k)[r], usual[k]) for k in (3, 4)]
        chance = simes(np.array([one.probability for one in told if one]))
        found[name] = own if chance > 0.05 else tuple(replace(s, reading=s.apart) for s in own)
    return found


def changes_of(arms: Arms, paths: list[list[Path]]) -> list[list[Evidence | None]]:
    """Return the changes, with chances as the bulk of their kind has them."""
    usual = usual_of(paths)
    changes = [[change(path, time, usual[k], DAILY[k]) for path, time in zip(
        own, times_of(arms, k), strict=True)] for k, own in enumerate(paths)]
    for kind in {one.kind for one in ALL}:
        places = [k for k, one in enumerate(ALL) if one.kind == kind]
        bulk = by_chance(np.array([e.probability for k in places for e in changes[k] if e]))
        for k in places:
            changes[k] = [e and replace(e, probability=bulk.probability(e.probability),
                                        deviation=e.deviation * np.sqrt(bulk.width))
                          for e in changes[k]]
    return changes


def evidence_of(
    arms: Arms, paths: list[list[Path]], usual: list[DayToDay]
) -> tuple[list[dict[int, Evidence]], list[Levels]]:
    """Return the evidence about each arm, the stronger of both tests, and the levels."""
    evidence: list[dict[int, Evidence]] = [{} for _ in arms]
    spread, changes = [], changes_of(arms, paths)
    for k, own in enumerate(paths):
        told = [r for r, path in enumerate(own) if len(path.values)]
        values, variances = np.array([level(own[r], usual[k]) for r in told]).T
        spread.append(levels(values, variances))
        beside = outliers(values, variances, spread[-1]) or [None] * len(told)
        for r, off in zip(told, beside, strict=True):
            tests = [one for one in (changes[k][r], off) if one]
            if tests:
                best = min(tests, key=lambda one: one.probability)
                evidence[r][k] = replace(best, probability=len(tests) * best.probability)
    return evidence, spread


@dataclass
class Expected:
    """What is to be found about arms, from the tests of single characteristics."""

    given: Arms
    rate: float

    def __post_init__(self) -> None:
        self.arms = read_apart(scaled(self.given))
        self.paths = paths_of(self.arms)
        self.usual = usual_of(self.paths)
        self.evidence, self.spread = evidence_of(self.arms, self.paths, self.usual)
        groups = [[[k for k in own if k in said] for own in ([0, 1, 5], [2], [3], [4])
                   if any(k in said for k in own)] for said in self.evidence]
        yes = discovered([[np.array([said[k].probability for k in own]) for own in parts]
                          for said, parts in zip(self.evidence, groups, strict=True)], self.rate)
        self.findings: list[tuple[Any, ...]] = []
        self.since, others = {}, []
        for r, name in enumerate(self.arms):
            mine = []
            for members, (chosen, miss) in zip(groups[r], yes[r], strict=True):
                mine += [self.finding(r, k, miss) for k, is_so in zip(
                    members, chosen, strict=True) if is_so]
                if not chosen.any():
                    chance = self.rate / (len(self.arms) * len(groups[r]) * len(members))
                    others += [(members, self.finding(r, k, 0.05, chance)) for k in members]
            self.findings += sorted(mine, key=lambda one: one[6])
            self.since[name] = max((one[5] for one in mine if one[2] == STEP), default=-np.inf)
        watched: dict[Any, Any] = {}
        for members, one in sorted(others, key=lambda one: one[1][6]):
            if one[6] < 0.05:
                watched.setdefault((one[0], tuple(members)), one)
        self.watched = list(watched.values())[:5]

    def finding(self, r: int, k: int, miss: float, chance: float = 0.0) -> tuple[Any, ...]:
        """Return a finding; of what is watched with the sessions that would do."""
        one, sessions = self.evidence[r][k], None
        since = None if one.pattern == OUTLIER else times_of(self.arms, k)[r][one.session]
        if chance and one.pattern != OUTLIER:
            sessions = sessions_needed(one.size, self.paths[k][r], self.usual[k], DAILY[k], chance)
        return (list(self.arms)[r], ALL[k].name, one.pattern, one.size, one.half_interval(miss),
                since, one.probability, cause(ALL[k].kind, one.size), sessions)


def told(findings: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return findings as tuples."""
    return [(one.arm, one.characteristic.name, one.pattern, one.size, one.half_interval,
             one.since, one.probability, one.cause, one.sessions) for one in findings]


@pytest.mark.parametrize(('count', 'seed', 'rate'), [(5, 1, 0.05), (10, 2, 1e-9), (5, 3, 0.2)])
def test_arms_are_judged_by_the_tests_of_their_characteristics(
    count: int, seed: int, rate: float
) -> None:
    arms = arms_of(count, seed)
    right = Expected(arms, rate)
    found: Fleet = judged(MADE, arms, rate)
    assert found.usual == tuple(right.usual) and found.spread == tuple(right.spread)
    assert (found.tests, found.rate) == (sum(map(len, right.evidence)), rate)
    assert told(found.findings) == right.findings and told(found.watched) == right.watched
    assert found.findings if rate > 1e-6 else found.watched
    for arm, (name, sessions) in zip(found.arms, right.arms.items(), strict=True):
        assert arm.name == name
        normal, pull = np.zeros((OWN, OWN)), np.zeros(OWN)
        for one in sessions:
            if one.time >= right.since[name]:
                own = np.flatnonzero(one.reading.known[:OWN])
                inverse = np.linalg.inv(one.reading.covariance[np.ix_(own, own)] + np.diag(
                    [right.usual[k].spread**2 for k in own]))
                normal[np.ix_(own, own)] += inverse
                pull[own] += inverse @ one.reading.values[own]
        there = np.flatnonzero(np.diag(normal))
        alone = np.linalg.inv(normal[np.ix_(there, there)])
        np.testing.assert_allclose(arm.alone[there], alone @ pull[there])
        np.testing.assert_allclose(arm.deviations[there], np.sqrt(np.diag(alone)))
        missing = np.setdiff1d(np.arange(OWN), there)
        assert np.isnan(arm.alone[missing]).all() and np.isinf(arm.deviations[missing]).all()
        prior = np.array([1.0 / (one.spread**2 + one.error**2) for one in right.spread[:OWN]])
        mean = np.array([one.mean for one in right.spread[:OWN]])
        covariance = np.linalg.inv(normal + np.diag(prior))
        np.testing.assert_allclose(arm.covariance, covariance, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(arm.values, covariance @ (pull + prior * mean), rtol=1e-6)


def test_what_neither_an_arm_nor_the_fleet_tells_is_zero_and_unknown() -> None:
    """One arm of one session: nothing says how days differ, so nothing is tested."""
    arm = {'one': arms_of(1, 0)['arm 0'][:1]}
    arm['one'][0].reading.known[:] = [True, True, False, True, True, True]
    found = judged(MADE, arm)
    assert found.spread == (None,) * 6 and not found.findings and not found.watched
    assert found.tests == 0 and found.rate == 0.05
    [only] = found.arms
    assert only.values[2] == 0.0 and np.isinf(only.covariance[2, 2]) and np.isnan(only.alone[2])
    session = arm['one'][0]
    np.testing.assert_allclose(only.values[:2], session.reading.values[:2])
    np.testing.assert_allclose(np.diag(only.covariance)[:2], np.diag(
        session.reading.covariance)[:2] * session.reading.colour[:2])


class Counting:
    """Characteristics that tell of information how many samples there are."""

    own = 2

    def __init__(self) -> None:
        self.links: list[FloatArray] = []

    def reading(self, information: Information) -> Reading:
        count = float(information.samples)
        return Reading(np.array([count, -count, 9.0]), np.eye(3), np.ones(3), np.ones(3) > 0.0)

    def beside(self, information: Information, links: FloatArray, apart: Reading) -> Reading:
        self.links.append(links)
        assert apart.values[0] == information.samples
        return replace(apart, values=2.0 * apart.values)


def recording(arm: str, time: float, samples: int) -> ReducedRecording:
    """Return a recording."""
    factor = np.diag(np.sqrt(samples) * np.arange(1.0, 5.0))
    return ReducedRecording(arm, time, Information(('a',), np.ones((1, 1), dtype=bool), (
        Batch((factor,), samples),)), f'{arm} {samples}')


def test_recordings_of_a_day_are_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order of time, whatever order they come in; arms by name; links from all sessions."""
    counting, merged = Counting(), list[Information]()

    def of(model: object, information: Information) -> Counting:
        merged.append(information)
        return counting

    monkeypatch.setattr(Characteristics, 'of', of)
    monkeypatch.setattr('robot_dynid_extras.fleet.fleet.judged',
                        lambda characteristics, arms, rate: (characteristics, arms, rate))
    recordings = [recording('b', 2.5 * DAY, 7), recording('b', 1.99 * DAY, 11),
                  recording('b', 2.01 * DAY, 13), recording('b', 3.0 * DAY, 17),
                  recording('a', 5.0 * DAY, 19)]
    found: Any = fleet(NOTHING, recordings, 0.3)
    assert found[0] is counting and found[2] == 0.3 and list(found[1]) == ['a', 'b']
    assert [(s.arm, s.time / DAY, s.sources, s.apart.values[0], s.reading.values[0])
            for own in found[1].values() for s in own] == [
        ('a', 5.0, ('a 19',), 19.0, 38.0), ('b', 1.99, ('b 11',), 11.0, 22.0),
        ('b', 2.01, ('b 13', 'b 7'), 20.0, 40.0), ('b', 3.0, ('b 17',), 17.0, 34.0)]
    assert [one.tolist() for one in counting.links] == 3 * [[48.0, -48.0]] + [[19.0, -19.0]]
    [whole] = merged
    assert whole.samples == 67 and len(whole.batches) == 1
    np.testing.assert_allclose(whole.total.factors[0].T @ whole.total.factors[0], np.diag(
        67.0 * np.arange(1.0, 5.0)**2))
    with pytest.raises(UsageError, match=r'^a: its recordings must be given in a row'):
        fleet(NOTHING, [recordings[4], *recordings])
    with pytest.raises(DataError, match='no recording of any robot'):
        fleet(NOTHING, [])


def test_a_level_of_two_sessions_has_the_variance_of_their_scatter() -> None:
    """Where nothing is known of the other arms."""
    path = Path(np.array([1.0, 4.0]), np.array([0.25, 0.5]))
    found = level(path, DayToDay(0.5, 0.0))
    weights = np.array([2.0, 4.0 / 3.0])
    mean = weights @ path.values / weights.sum()
    scatter = weights @ (path.values - mean) ** 2
    assert found == pytest.approx((mean, scatter / weights.sum()), rel=1e-12)
    one = Path(path.values[:1], path.variances[:1])
    assert level(one, DayToDay(0.5, 0.0)) == pytest.approx((1.0, 0.5), rel=1e-12)
