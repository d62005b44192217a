"""Many arms of one type: levels pooled over the fleet, arms that are off, arms that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
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
from robot_dynid_extras.fleet.scatter import (
    LEAST_UNITS,
    DayToDay,
    Levels,
    Path,
    day_to_day,
    levels,
    without_season,
)

#: share of false ones among the arms that are named, and among what is said of each
RATE = 0.05
#: probability by chance of the changes of links, below which they may have changed
SUSPECT = 0.05
#: probability by chance, of a test by itself, from which others are shown, and how many at most
WATCHED, MOST_WATCHED = 0.05, 5
DAY = 86400.0


@dataclass(frozen=True, eq=False)
class ReducedRecording:
    """The information of one recording of an ``arm``, at ``time`` [s since 1970]."""

    arm: str
    time: float
    information: Information
    source: str = ''


@dataclass(frozen=True, eq=False)
class Session:
    """The recordings of one arm on one day, read as characteristics; ``time`` of the first.

    ``reading`` has friction beside links that are those of all sessions, ``apart`` both by the
    session alone.
    """

    arm: str
    time: float
    sources: tuple[str, ...]
    reading: Reading
    apart: Reading


@dataclass(frozen=True, eq=False)
class Arm:
    """Knowledge of one arm since its last step that was found.

    ``values`` (p,) of the characteristics with ``covariance`` (p, p), pooled with the fleet;
    ``alone`` (p,) and ``deviations`` (p,) by its own sessions, NaN and infinite where these do
    not tell.
    """

    name: str
    sessions: tuple[Session, ...]
    values: FloatArray
    covariance: FloatArray
    alone: FloatArray
    deviations: FloatArray


@dataclass(frozen=True)
class Finding:
    """Something found about an arm: which characteristic, how, since when, and why perhaps.

    ``size`` with the half of its interval; ``since`` [s since 1970], None of an outlier, which
    the others show; ``probability`` by chance. ``sessions``: of what is only watched, of how many
    sessions, half of them before it, a step as large would be named; None where that is not known.
    """

    arm: str
    characteristic: Characteristic
    pattern: str
    size: float
    half_interval: float
    since: float | None
    probability: float
    cause: str
    sessions: int | None = None


@dataclass(frozen=True, eq=False)
class Fleet:
    """A fleet: ``characteristics``, the ``arms`` in them, and the ``findings``.

    ``usual`` (k,) scatter from day to day, ``spread`` (k,) levels of the fleet, None where no arm
    tells; ``tests`` that were made, at a ``rate`` of false discoveries. ``watched`` is the
    strongest of what is not found, for who looks at an arm anyway: much of it is chance.
    """

    characteristics: Characteristics
    arms: tuple[Arm, ...]
    usual: tuple[DayToDay, ...]
    spread: tuple[Levels | None, ...]
    findings: tuple[Finding, ...]
    watched: tuple[Finding, ...]
    tests: int
    rate: float


@one_blas_thread()
def fleet(
    model: TorqueModel, recordings: Iterable[ReducedRecording], rate: float = RATE,
) -> Fleet:
    """Return the fleet of ``recordings``, whose information is that of ``model``.

    They are gone through twice, those of an arm in a row and in memory together. Raises DataError
    without recordings, UsageError where those of an arm are not in a row.
    """
    characteristics = Characteristics.of(model, _merged(one.information for one in recordings))
    by_arm: dict[str, tuple[Session, ...]] = {}
    for arm, own in groupby(recordings, lambda one: one.arm):
        if arm in by_arm:
            raise UsageError(f'{arm}: its recordings must be given in a row')
        by_arm[arm] = tuple(_sessions(characteristics, arm, list(own)))
    return judged(characteristics, dict(sorted(by_arm.items())), rate)


def _merged(parts: Iterable[Information], batches: int = 1) -> Information:
    """Return the information of all in about so many ``batches``, merged as a tree."""
    trees: list[tuple[int, Information]] = []
    for part in parts:
        height, own = 0, part.condensed(batches)
        while trees and trees[-1][0] == height:
            own = trees.pop()[1].merge(own).condensed(batches)
            height += 1
        trees.append((height, own))
    if not trees:
        raise DataError('no recording of any robot')
    whole = trees.pop()[1]
    while trees:
        whole = trees.pop()[1].merge(whole).condensed(batches)
    return whole


def _sessions(
    characteristics: Characteristics, arm: str, recordings: Sequence[ReducedRecording]
) -> Iterator[Session]:
    """Yield the sessions of an arm: one per day (UTC), in order."""
    links = characteristics.reading(_merged(
        [one.information for one in recordings], SCATTER_STRETCHES)
                                    ).values[:characteristics.own]
    days: dict[int, list[ReducedRecording]] = {}
    for one in sorted(recordings, key=lambda one: one.time):
        days.setdefault(int(one.time // DAY), []).append(one)
    for own in days.values():
        information = own[0].information
        for one in own[1:]:
            information = information.merge(one.information)
        information = information.condensed(SCATTER_STRETCHES)
        apart = characteristics.reading(information)
        yield Session(arm, own[0].time, tuple(one.source for one in own),
                      characteristics.beside(information, links, apart), apart)


@dataclass(frozen=True, eq=False)
class _Path(Path):
    """A path with the ``time`` (S,) of its sessions."""

    time: FloatArray


@one_blas_thread()
def judged(
    characteristics: Characteristics, arms: dict[str, tuple[Session, ...]], rate: float = RATE,
) -> Fleet:
    """Return the fleet of the sessions of ``arms`` by name, each in order of time."""
    arms = _with_fitting_readings(characteristics, _coloured(arms))
    own = _paths(characteristics, arms)
    usual = _usual(characteristics.all, own)
    changes = _changes(characteristics, own, usual)
    evidence: list[dict[int, Evidence]] = [{} for _ in arms]
    spread = [_compared(paths, usual[k], (k, changes[k]), evidence)
              for k, paths in enumerate(own)]
    groups = [_groups(characteristics.all, said) for said in evidence]
    yes = discovered([[np.array([said[k].probability for k in members]) for members in parts]
                      for said, parts in zip(evidence, groups, strict=True)], rate)
    findings: list[Finding] = []
    others: dict[Finding, tuple[int, int, float]] = {}
    pooled = []
    for r, (name, sessions) in enumerate(arms.items()):
        found = [_finding(name, characteristics.all[k], evidence[r][k], own[k][r], miss)
                 for members, (chosen, miss) in zip(groups[r], yes[r], strict=True)
                 for k, is_so in zip(members, chosen, strict=True) if is_so]
        others |= {_finding(name, characteristics.all[k], evidence[r][k], own[k][r], WATCHED):
                   (k, r, rate / (len(arms) * len(groups[r]) * len(members)))
                   for members, (chosen, _) in zip(groups[r], yes[r], strict=True)
                   if not chosen.any() for k in members}
        findings += sorted(found, key=lambda one: one.probability)
        since = max((one.since or -np.inf for one in found if one.pattern == STEP),
                    default=-np.inf)
        pooled.append(_pooled(name, sessions, since, list(zip(usual, spread, strict=True))[
            :characteristics.own]))

    def needed(one: Finding) -> int | None:
        k, r, chance = others[one]
        return None if one.pattern == OUTLIER else sessions_needed(
            one.size, own[k][r], usual[k], bool(characteristics.daily[k]), chance)

    watched = tuple(replace(one, sessions=needed(one)) for one in _watched(others))
    return Fleet(characteristics, tuple(pooled), tuple(usual), tuple(spread), tuple(findings),
                 watched, sum(map(len, evidence)), rate)


def _watched(others: Iterable[Finding]) -> list[Finding]:
    """Return the strongest of what is not found: one of each part of an arm."""
    parts: dict[tuple[str, str, str], Finding] = {}
    for one in sorted(others, key=lambda one: one.probability):
        if one.probability < WATCHED:
            parts.setdefault((one.arm, one.characteristic.part, one.characteristic.group), one)
    return list(parts.values())[:MOST_WATCHED]


def _coloured(arms: dict[str, tuple[Session, ...]]) -> dict[str, tuple[Session, ...]]:
    """Return the sessions of ``arms`` with covariances that hold for coloured residuals.

    How coloured they are is taken from all sessions: a single one of a few stretches is far off,
    at times by much too little, and would be a change by itself.
    """
    def usual(readings: Sequence[Reading]) -> FloatArray:
        colour = np.array([np.where(one.known, one.colour, np.nan) for one in readings])
        told = np.isfinite(colour).any(axis=0)
        return np.sqrt(np.where(told, np.nanmedian(np.where(told, colour, 1.0), axis=0), 1.0))

    def scaled(one: Reading, scale: FloatArray) -> Reading:
        return replace(one, covariance=one.covariance * np.outer(scale, scale))

    every = [session for sessions in arms.values() for session in sessions]
    beside = usual([one.reading for one in every])
    apart = usual([one.apart for one in every])
    return {arm: tuple(replace(one, reading=scaled(one.reading, beside),
                               apart=scaled(one.apart, apart)) for one in sessions)
            for arm, sessions in arms.items()}


def _with_fitting_readings(
    characteristics: Characteristics, arms: dict[str, tuple[Session, ...]]
) -> dict[str, tuple[Session, ...]]:
    """Return the sessions of ``arms``, of those whose links may have changed read apart.

    Beside links of other days, a load would look like friction.
    """
    own = _paths(characteristics, arms)
    usual = _usual(characteristics.all, own)
    found = {}
    for r, (name, sessions) in enumerate(arms.items()):
        links = [change(own[k][r], own[k][r].time, usual[k])
                 for k in np.flatnonzero(~characteristics.daily)]
        chance = simes(np.array([one.probability for one in links if one]))
        found[name] = sessions if chance > SUSPECT else tuple(
            replace(one, reading=one.apart) for one in sessions)
    return found


def _paths(
    characteristics: Characteristics, arms: dict[str, tuple[Session, ...]]
) -> list[list[_Path]]:
    """Return every characteristic of every arm along its sessions, friction without season."""
    found = []
    for k, daily in enumerate(characteristics.daily):
        paths = [_path(sessions, k) for sessions in arms.values()]
        found.append(without_season(paths, [path.time // DAY for path in paths]) if daily
                     else paths)
    return found


def _path(sessions: Sequence[Session], k: int) -> _Path:
    """Return characteristic ``k`` along the sessions that tell it."""
    kept = [one for one in sessions if one.reading.known[k]]
    return _Path(np.array([one.reading.values[k] for one in kept]),
                 np.array([one.reading.covariance[k, k] for one in kept]),
                 np.array([one.time for one in kept]))


def _usual(
    characteristics: Sequence[Characteristic], paths: Sequence[Sequence[Path]]
) -> list[DayToDay]:
    """Return the scatter of every characteristic; of few arms all axes of a kind tell it."""
    if len(paths[0]) >= LEAST_UNITS:
        return [day_to_day(own) for own in paths]
    kinds = {kind: day_to_day([path for one, own in zip(characteristics, paths, strict=True)
                               if one.kind == kind for path in own])
             for kind in {one.kind for one in characteristics if one.relative}}
    return [kinds[one.kind] if one.relative else day_to_day(own)
            for one, own in zip(characteristics, paths, strict=True)]


def _groups(
    characteristics: Sequence[Characteristic], said: Iterable[int]
) -> list[list[int]]:
    """Return the numbers of the characteristics by what they are of."""
    found: dict[tuple[str, str], list[int]] = {}
    for k in said:
        one = characteristics[k]
        found.setdefault((one.part, one.group), []).append(k)
    return list(found.values())


def _changes(
    characteristics: Characteristics, paths: Sequence[Sequence[_Path]],
    usual: Sequence[DayToDay],
) -> list[list[Evidence | None]]:
    """Return the change of every characteristic of every arm, with chances as its kind has them.

    Deviations widen with the scatter of -log of the chances, which goes by their squares.
    """
    found = [[change(path, path.time, usual[k], bool(characteristics.daily[k]))
              for path in own] for k, own in enumerate(paths)]
    kinds = np.array([one.kind for one in characteristics.all])
    for kind in dict.fromkeys(kinds.tolist()):
        places = np.flatnonzero(kinds == kind).tolist()
        usually = by_chance(np.array([
            one.probability for k in places for one in found[k] if one]))
        for k in places:
            found[k] = [one and replace(
                one, probability=usually.probability(one.probability),
                deviation=one.deviation * np.sqrt(usually.width)) for one in found[k]]
    return found


def _compared(
    paths: Sequence[_Path], usual: DayToDay, own: tuple[int, Sequence[Evidence | None]],
    evidence: Sequence[dict[int, Evidence]],
) -> Levels | None:
    """Add the evidence about a characteristic to that of the arms; return its levels.

    ``own`` is its number, and the changes of the arms.

    That an arm changed and that it is off the others are two tests of one claim: the stronger
    counts, at twice its probability.
    """
    told = [r for r, path in enumerate(paths) if len(path.values)]
    if not told or not np.isfinite(usual.spread):
        return None
    values, variances = np.array([level(paths[r], usual) for r in told]).T
    fleet_levels = levels(values, variances)
    beside = outliers(values, variances, fleet_levels)
    k, changes = own
    for place, r in enumerate(told):
        tests = [one for one in (changes[r], beside and beside[place]) if one]
        if tests:
            best = min(tests, key=lambda one: one.probability)
            evidence[r][k] = replace(best, probability=len(tests) * best.probability)
    return fleet_levels


def _finding(
    arm: str, characteristic: Characteristic, one: Evidence, path: _Path, miss: float,
) -> Finding:
    since = None if one.pattern == OUTLIER else float(path.time[one.session])
    return Finding(arm, characteristic, one.pattern, one.size, one.half_interval(miss), since,
                   one.probability, cause(characteristic.kind, one.size))


def _pooled(
    name: str, sessions: tuple[Session, ...], since: float,
    known: Sequence[tuple[DayToDay, Levels | None]],
) -> Arm:
    """Return an arm whose sessions ``since`` then are pooled with the fleet.

    Normal means with a normal prior: precisions add up. What neither the arm nor the fleet tells
    has the value of the fit to all data, zero, and an infinite deviation.
    Source: Lindley, Smith, J. R. Stat. Soc. B 1972, 34, 1; Gelman et al., Bayesian Data Analysis,
    3rd ed., sections 5.4 and 15.
    """
    count = len(known)
    daily = np.array([one.spread**2 if np.isfinite(one.spread) else 0.0 for one, _ in known])
    precision, pull = np.zeros((count, count)), np.zeros(count)
    for one in sessions:
        if one.time >= since:
            told = np.flatnonzero(one.reading.known[:count])
            total = one.reading.covariance[np.ix_(told, told)] + np.diag(daily[told])
            inverse = np.linalg.pinv(total, hermitian=True)
            precision[np.ix_(told, told)] += inverse
            pull[told] += inverse @ one.reading.values[told]
    alone, own = _solved(precision, pull)
    prior = np.array([0.0 if levels is None or not np.isfinite(levels.spread) else
                      1.0 / (levels.spread**2 + levels.error**2) for _, levels in known])
    means = np.array([0.0 if levels is None else levels.mean for _, levels in known])
    values, covariance = _solved(precision + np.diag(prior), pull + prior * means)
    deviations = np.sqrt(np.diag(own))
    return Arm(name, sessions, values, covariance,
               np.where(np.isfinite(deviations), alone, np.nan), deviations)


def _solved(precision: FloatArray, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean (p,) and covariance (p, p), infinite where there is no ``precision`` (p, p)."""
    told = np.flatnonzero(np.diag(precision) > 0.0)
    values, covariance = np.zeros(len(pull)), np.diag(np.full(len(pull), np.inf))
    if len(told):
        scale = 1.0 / np.sqrt(np.diag(precision)[told])
        inverse = np.linalg.pinv(scale[:, None] * precision[np.ix_(told, told)] * scale,
                                 hermitian=True)
        covariance[np.ix_(told, told)] = scale[:, None] * inverse * scale
        values[told] = covariance[np.ix_(told, told)] @ pull[told]
    return values, covariance
