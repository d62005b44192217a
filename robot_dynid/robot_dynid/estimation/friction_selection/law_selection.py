"""Friction law selection by held-out error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from robot_dynid.effects.joint_friction import Load
from robot_dynid.errors import UsageError
from robot_dynid.estimation.friction_selection.candidate_columns import Factors
from robot_dynid.estimation.friction_selection.law_request import (
    COULOMB,
    NONE,
    LawRequest,
    requests_of,
)
from robot_dynid.estimation.friction_selection.law_scores import LawScores, noise_of
from robot_dynid.estimation.friction_selection.second_motion import (
    breakaway,
    remove_breakaway,
    validate_breakaway,
)
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.estimation.uncertainty.held_out import falls
from robot_dynid.friction import ADDITIONS, LAWS, FrictionLaw
from robot_dynid.friction.law import Path
from robot_dynid.friction.laws import Breakaway
from robot_dynid.types import FloatArray

#: share by which a law with more parameters must lower the held-out error; also in most folds, and
#: by more than its standard error
LAW_GAIN = 0.02
#: steps of the shape search beyond the grid, as shares of the grid step
NEARER = (0.36, 0.12, 0.04)
#: squared noises by which a shape beyond the grid must reduce the residual
CHANCE = 4.0
#: rounds through the axes, each with the current laws of the others
AXIS_ROUNDS = 2


@dataclass(frozen=True)
class LawScore:
    """A candidate law of an axis: its held-out error relative to Coulomb friction."""

    law: str
    error_over_coulomb: float


@dataclass(frozen=True)
class AxisChoice:
    """The chosen law of one axis, a note, and the candidates."""

    axis: str
    law: str
    note: str = ''
    tried: tuple[LawScore, ...] = ()

    @property
    def error_over_coulomb(self) -> float:
        """Held-out error of the chosen law relative to Coulomb friction."""
        return next(one.error_over_coulomb for one in self.tried if one.law == self.law)


@dataclass(frozen=True, eq=False)
class ScoredLaw:
    """A law with name, held-out errors of the folds, and excitation by the data."""

    name: str
    law: FrictionLaw
    errors: FloatArray
    score: float
    excited: bool

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key of the shapes of a law, best first."""
        return not self.excited, self.score

    @property
    def size(self) -> int:
        """Number of parameters and searched shapes."""
        return len(self.law.parameters) + len(self.law.searched)

    def improves_on(self, other: ScoredLaw, gain: float) -> bool:
        """Return True if the law is excited and lowers the error of the other one by `gain`.

        Also in most folds, and by more than a standard error of the difference.
        """
        return self.excited and self.score < (1.0 - gain) * other.score and falls(
            self.errors**2, other.errors**2)


#: additions by name, with settings that are not searched
Additions = dict[str, dict[str, Any]]
Improve = Callable[[int, LawScores, Named], tuple[Named, list[ScoredLaw]]]


def bases(requested: LawRequest, coulomb: FrictionLaw, alone: bool) -> list[Named]:
    """Return the candidate laws without additions, Coulomb's with its ramp first.

    On axes that share a joint, laws without an offset are excluded: the offsets of two such laws
    would be linearly dependent. So are laws that cannot hold a joint at rest.
    """
    names = [requested.base] if not requested.auto else [
        name for name, kind in LAWS.items() if name not in requested.without and not kind.by_name
        and kind().holding and (alone or 'f0' in kind().parameters)]
    return [*plain(requested, coulomb), *(
        (name, law) for name in names if name != COULOMB for law in LAWS[name].candidates())]


def plain(requested: LawRequest, coulomb: FrictionLaw) -> list[Named]:
    """Return Coulomb's law, the reference of errors, and no friction if that is the simplest."""
    none: list[Named] = [(NONE, LAWS[NONE]())]
    return [(COULOMB, coulomb), *(none if requested.auto and requested.simplest == NONE else [])]


def extend_law(named: Named, added: str, settings: dict[str, Any]) -> list[Named]:
    """Return a law with one more addition, in every shape."""
    name, law = named
    kind = ADDITIONS[added]
    made = [kind(**settings)] if settings else kind.candidates()
    return [(f'{name}+{added}', law.added(a)) for a in made]


def score_laws(scores: LawScores, candidates: Sequence[Named]) -> list[ScoredLaw]:
    """Return each law once, with its best shape: the least error among those the data excites.

    If it excites none, the least error.
    """
    shapes: dict[str, list[tuple[float, FrictionLaw, FloatArray]]] = {}
    for (name, law), errors in zip(candidates, scores.errors([law for _, law in candidates]),
                                   strict=True):
        shapes.setdefault(name, []).append((scores.score(errors), law, errors))
    best = []
    for name, of_law in shapes.items():
        of_law.sort(key=lambda shape: shape[0])
        excited = next((i for i, (_, law, _) in enumerate(of_law) if scores.excited([law])[0]),
                       None)
        score, law, errors = of_law[excited or 0]
        best.append(ScoredLaw(name, law, errors, score, excited is not None))
    return best


def choose_simplest(candidates: Sequence[ScoredLaw], gain: float) -> ScoredLaw:
    """Return the simplest law: one with more parameters must improve on it by `gain`.

    Only no friction, if among the candidates, is simpler than Coulomb's law; the data must excite
    all parameters of any other law.
    """
    ordered = sorted(candidates, key=lambda f: (
        f.name != NONE, f.name != COULOMB, not f.excited, f.size))
    chosen = ordered[0]
    for other in ordered[1:]:
        if other.improves_on(chosen, gain):
            chosen = other
    return chosen


def laws_to_extend(candidates: Sequence[ScoredLaw], chosen: ScoredLaw) -> list[Named]:
    """Return the laws to extend: Coulomb's, the `chosen` one, and the best equivalent one.

    A simple law with an addition may equal a long law, and of two equivalent laws the longer one
    may be better with additions.
    """
    starts = [candidates[0]] if chosen is candidates[0] else [candidates[0], chosen]
    alike = [f for f in candidates if f not in starts and f.excited
             and f.score < (1.0 + LAW_GAIN) * chosen.score]
    if len(starts) > 1 and alike:
        starts.append(min(alike, key=lambda f: f.rank))
    return [(f.name, f.law) for f in starts]


def choose_laws(
    data: FrictionData, requested: str | Sequence[LawRequest], coulomb: Sequence[FrictionLaw],
    load: bool,
) -> tuple[list[Named], tuple[AxisChoice, ...], FloatArray | None]:
    """Return the law of every axis, the choices, and the links (n, 10) that load it.

    `requested` is the request of every axis, or one text for all: 'auto', or a law of which only
    shapes are chosen; `coulomb` are the initial laws; `load` allows friction that grows with the
    transmitted torque.
    """
    search = Search.of(data, requests_of(requested, len(coulomb)), coulomb)
    factors, starts = search.plain_laws()
    links = data.links(factors, search.laws) if load else None
    factors = search.with_additions(starts, links) or factors
    search.keep_breakaway(factors, links)
    on_grid = tuple(search.current)
    search.shape(data.load(links))
    search.keep_excited(on_grid, links)
    return search.current, search.choices(), links


@dataclass(frozen=True, eq=False)
class Search:
    """Search for the laws of all axes, each with the current laws of the others.

    By axis: `requests`, the initial `coulomb` law, the `reasons` why no law can be chosen, or
    empty; the `current` laws, and the errors of the candidates `tried`, relative to Coulomb's.
    """

    data: FrictionData
    requests: tuple[LawRequest, ...]
    coulomb: Sequence[FrictionLaw]
    reasons: tuple[str, ...]
    current: list[Named]
    tried: list[dict[str, float]]

    @classmethod
    def of(
        cls, data: FrictionData, requests: tuple[LawRequest, ...], coulomb: Sequence[FrictionLaw]
    ) -> Search:
        """Return a search that begins with Coulomb's laws."""
        reasons = tuple(reason if request.searches else ''
                        for reason, request in zip(data.reasons(), requests, strict=True))
        return cls(data, requests, coulomb, reasons, [(COULOMB, law) for law in coulomb],
                   [{} for _ in coulomb])

    @property
    def laws(self) -> list[FrictionLaw]:
        """The current laws."""
        return [law for _, law in self.current]

    def plain_laws(self) -> tuple[Factors, list[list[Named]]]:
        """Choose laws without additions; return the factors, and the laws to extend by axis."""
        first = [plain(request, law) if reason else bases(request, law, alone)
                 for request, law, reason, alone in zip(
                     self.requests, self.coulomb, self.reasons, self.data.alone(), strict=True)]
        starts: list[list[Named]] = [[] for _ in first]

        def best(axis: int, scores: LawScores, previous: Named) -> tuple[Named, list[ScoredLaw]]:
            candidates = score_laws(scores, [(name, scores.settled(law)) for name,
                                             law in first[axis]])
            auto = self.requests[axis].auto
            chosen = choose_simplest(candidates, LAW_GAIN) if auto else candidates[-1]
            starts[axis] = laws_to_extend(candidates, chosen) if auto else [(chosen.name,
                                                                             chosen.law)]
            return (chosen.name, chosen.law), candidates

        factors = self.data.factors(first, None)
        self._rounds(factors, best)
        return factors, starts

    def with_additions(
        self, starts: Sequence[Sequence[Named]], links: FloatArray | None
    ) -> Factors | None:
        """Add to `starts` what lowers the error; return the factors, None without candidates.

        `links` (n, 10) are standard parameters of the links for friction that grows with load.
        """
        additions = [self.data.additions(request, links is not None) for request in self.requests]
        if not any(additions):
            return None
        worth = [{start: _worth(start, added, request.auto) for start in laws}
                 for laws, added, request in zip(starts, additions, self.requests, strict=True)]
        second = [[(COULOMB, law), *laws] if reason else _grown((COULOMB, law), by_start)
                  for laws, law, reason, by_start in zip(
                      starts, self.coulomb, self.reasons, worth, strict=True)]

        def grow(axis: int, scores: LawScores, previous: Named) -> tuple[Named, list[ScoredLaw]]:
            candidates = score_laws(scores, second[axis][:1])
            if self.reasons[axis]:
                return previous, candidates
            grown = [_add(scores, start, added, self.requests[axis].auto, candidates)
                     for start, added in worth[axis].items()]
            chosen = choose_simplest(grown, LAW_GAIN)
            return (chosen.name, chosen.law), candidates

        factors = self.data.factors(second, self.data.load(links))
        self._rounds(factors, grow)
        return factors

    def _rounds(self, factors: Factors, improve: Improve) -> None:
        """Improve the laws of the axes in turn; errors are relative to the first evaluated law."""
        noise = np.ones(len(factors.active))
        for _ in range(AXIS_ROUNDS):
            for _ in range(2):  # the noise of one joint affects the parameters of the others
                noise = noise_of(factors, self.laws, noise)
            for axis, previous in enumerate(self.current):
                scores = LawScores.of(factors, axis, self.laws, noise)
                self.current[axis], candidates = improve(axis, scores, previous)
                reference = next(f.score for f in candidates if f.name == COULOMB)
                self.tried[axis].update({f.name: f.score / reference for f in candidates})

    def keep_breakaway(self, factors: Factors, links: FloatArray | None) -> None:
        """Remove break-away from the laws of which it does not improve another motion.

        `links` (n, 10) as in `with_additions`.
        """
        self.current[:] = validate_breakaway(self.data, self.current, [
            remove_breakaway(named, law) if request.auto and not reason and breakaway(named[1])
            else None for named, request, reason, law in zip(
                self.current, self.requests, self.reasons, self.coulomb, strict=True)], links)
        noise = noise_of(factors, self.laws, np.ones(len(factors.active)))
        for axis, (name, law) in enumerate(self.current):
            if name not in self.tried[axis]:
                scores = LawScores.of(factors, axis, self.laws, noise)
                errors = scores.errors([self.coulomb[axis], law])
                self.tried[axis][name] = scores.score(errors[1]) / scores.score(errors[0])

    def shape(self, load: Load | None) -> None:
        """Search the shapes of the laws near those of the grid, by the residual of all data.

        The other axes have their laws on the grid.
        """
        laws = self.laws
        for share in NEARER:
            tried = [nearby(law, share) for _, law in self.current]
            factors = self.data.factors([
                [(COULOMB, law), *((COULOMB, one) for one in near)]
                for law, near in zip(laws, tried, strict=True)], load)
            noise = noise_of(factors, laws, np.ones(len(factors.active)))
            for axis, near in enumerate(tried):
                if len(near) > 1:
                    scores = LawScores.of(factors, axis, laws, noise)
                    left = np.array([scores.residual(law) for law in near])
                    best = int(np.argmin(left))
                    if left[0] - left[best] > CHANCE:
                        self.current[axis] = self.current[axis][0], near[best]

    def keep_excited(self, on_grid: Sequence[Named], links: FloatArray | None) -> None:
        """Return to laws `on_grid`, or plain ones, if the data does not determine parameters.

        `links` (n, 10) as in `with_additions`.
        """
        self.current[:] = excited_laws(self.data, [
            (current, grid, plain(request, law)[-1]) if request.auto else (current,)
            for request, current, grid, law in zip(
                self.requests, self.current, on_grid, self.coulomb, strict=True)], links)

    def choices(self) -> tuple[AxisChoice, ...]:
        """Return the choice of every axis, and the errors of the candidates."""
        return tuple(
            AxisChoice(label, named[0], reason, tuple(
                LawScore(name, float(ratio)) for name, ratio in seen.items()))
            for label, named, seen, reason in zip(
                self.data.axes.labels, self.current, self.tried, self.reasons, strict=True))


def nearby(law: FrictionLaw, share: float) -> list[FrictionLaw]:
    """Return `law`, and its variants with shapes a `share` of the grid step away."""
    laws = [law]
    for moves in product((-1, 0, 1), repeat=len(law.searched)):
        values: dict[Path, float] = {}
        for move, (path, shape) in zip(moves, law.searched, strict=True):
            value: Any = law.settings()
            for key in path:
                value = value[key]
            step = (shape.high / shape.low) ** (share / max(shape.count - 1, 1))
            values[path] = float(f'{np.clip(value * step**move, shape.low, shape.high):.4g}')
        with suppress(UsageError):  # the two speeds of a law in the wrong order
            laws.append(law.reshaped(values))
    return list(dict.fromkeys(laws))


def excited_laws(
    data: FrictionData, requested: Sequence[tuple[Named, ...]], links: FloatArray | None
) -> list[Named]:
    """Return the first of the `requested` laws of each axis whose parameters are all determined.

    Then a fit to the same data reports none as not excited, except those that are open with the
    last law, too, which is always accepted. `links` (n, 10) are standard parameters for laws that
    depend on the load.
    """
    place = [0] * len(requested)  # an axis whose law is named has only one
    last = [candidates[-1] for candidates in requested]
    unavoidable: set[str] | None = None
    while True:
        current = [candidates[i] for candidates, i in zip(requested, place, strict=True)]
        if current == last:
            return current
        left_open = data.left_open(current, links)
        if left_open and unavoidable is None:
            unavoidable = data.left_open(last, links)
        left_open -= unavoidable or set()
        back = [i for i, named in enumerate(current)
                if named != last[i] and left_open & data.names(i, named[1])]
        if not back:
            return current
        for i in back:
            place[i] += 1


def _worth(start: Named, additions: Additions, auto: bool) -> Additions:
    """Return the additions to try with a law.

    Coulomb's with break-away is Stribeck's, which is tried. A law that already falls from rest
    gets no break-away: the data cannot separate two such falls.
    """
    falls = start[0] == COULOMB or bool(breakaway(start[1]))
    return {added: settings for added, settings in additions.items()
            if not (auto and falls and added == Breakaway.name)}


def _grown(coulomb: Named, starts: Mapping[Named, Additions]) -> list[Named]:
    whole = [((name, law.unpruned()), additions) for (name, law), additions in starts.items()]
    return [coulomb, *(start for start, _ in whole), *(
        named for start, additions in whole for added, settings in additions.items()
        for named in extend_law(start, added, settings))]


def _with(
    scores: LawScores, start: ScoredLaw, added: str, settings: dict[str, Any]
) -> ScoredLaw:
    """Return a law with one more addition, of the best shape, pruned again."""
    best = score_laws(scores, extend_law((start.name, start.law), added, settings))[0]
    if not best.law.prunable:
        return best
    pruned = score_laws(scores, [(best.name, scores.settled(best.law.unpruned()))])[0]
    return min(best, pruned, key=lambda f: f.rank)


def _add(
    scores: LawScores, start: Named, additions: Additions, auto: bool,
    candidates: list[ScoredLaw],
) -> ScoredLaw:
    """Add to `start` the best addition until none lowers the error; or all requested ones.

    All candidates are appended to `found`.
    """
    chosen = score_laws(scores, [(start[0], scores.settled(start[1]))])[0]
    candidates.append(chosen)
    left = dict(additions)
    while left:
        tried = [_with(scores, chosen, added, settings) for added, settings in left.items()]
        candidates += tried
        best = min(tried, key=lambda f: f.rank) if auto else tried[0]
        if auto and not best.improves_on(chosen, LAW_GAIN):
            break
        chosen = best
        del left[best.name.split('+')[-1]]
    return chosen
