"""Friction law selection by held-out error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.estimation.friction_selection.candidate_columns import Factors
from robot_dynid.estimation.friction_selection.law_scores import LawScores, noise_of
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.estimation.friction_selection.shape_search import refined
from robot_dynid.friction import ADDITIONS, LAWS, FrictionLaw
from robot_dynid.types import FloatArray

#: the choice that the data makes
AUTO = 'auto'
#: a law with more parameters must lower the held-out error by this share, in most folds
GAIN = 0.02
#: rounds through the axes, each with the laws of the others as they are by then
ROUNDS = 2


@dataclass(frozen=True)
class LawScore:
    """A law that was tried on an axis: held-out error over that of Coulomb friction."""

    law: str
    error_over_coulomb: float


@dataclass(frozen=True)
class AxisChoice:
    """The law of one axis, a remark, and what was tried."""

    axis: str
    law: str
    note: str = ''
    tried: tuple[LawScore, ...] = ()

    @property
    def error_over_coulomb(self) -> float:
        """Held-out error of the chosen law over that of Coulomb friction."""
        return next(one.error_over_coulomb for one in self.tried if one.law == self.law)


@dataclass(frozen=True, eq=False)
class ScoredLaw:
    """A law with its name, the held-out errors of the folds, and whether data excites it."""

    name: str
    law: FrictionLaw
    errors: FloatArray
    score: float
    excited: bool

    @property
    def rank(self) -> tuple[bool, float]:
        """Order of preference among the shapes of a law, the least first."""
        return not self.excited, self.score

    @property
    def size(self) -> int:
        """Number of parameters and searched shapes."""
        return len(self.law.parameters) + len(self.law.shapes)

    def improves_on(self, other: ScoredLaw, gain: float) -> bool:
        """Return whether the error is lower by ``gain``, and in most folds, if excited."""
        lower = self.score < (1.0 - gain) * other.score
        return self.excited and lower and float(np.mean(self.errors < other.errors)) > 0.5


Improve = Callable[[int, LawScores, Named], tuple[Named, list[ScoredLaw]]]


def bases(requested: str, coulomb: FrictionLaw, alone: bool) -> list[Named]:
    """Return the laws to try without additions, Coulomb's with its ramp first.

    On axes that share a joint with another one, no law without an offset of its own is tried by
    itself: the offsets of two such laws would be linearly dependent.
    """
    names = [requested.split('+', maxsplit=1)[0]] if requested != AUTO else [
        name for name, kind in LAWS.items() if alone or 'f0' in kind().parameters]
    found: list[Named] = [('coulomb', coulomb)]
    for name in names:
        if name != 'coulomb':
            found += [(name, law) for law in LAWS[name].candidates()]
    return found


def extended(named: Named, added: str, settings: dict[str, Any]) -> list[Named]:
    """Return a law with one more addition, in every shape, and with all it was pruned of."""
    name, law = named
    kind = ADDITIONS[added]
    made = [kind(**settings)] if settings else kind.candidates()
    return [(f'{name}+{added}', law.unpruned().added(a)) for a in made]


def scored(scores: LawScores, candidates: Sequence[Named]) -> list[ScoredLaw]:
    """Return each law once, with its best shape."""
    best: dict[str, ScoredLaw] = {}
    for name, law in candidates:
        settled = scores.settled(law)
        errors = scores.errors(settled)
        found = ScoredLaw(name, settled, errors, scores.score(errors), scores.excited(settled))
        if name not in best or found.rank < best[name].rank:
            best[name] = found
    return list(best.values())


def simplest(found: Sequence[ScoredLaw], gain: float) -> ScoredLaw:
    """Return the simplest law: one with more parameters must improve on it by ``gain``.

    None is simpler than Coulomb's, whose ramp is that of all axes; the data must excite all
    parameters of any other.
    """
    ordered = sorted(found, key=lambda f: (f.name != 'coulomb', not f.excited, f.size))
    chosen = ordered[0]
    for other in ordered[1:]:
        if other.improves_on(chosen, gain):
            chosen = other
    return chosen


def choose_laws(
    data: FrictionData, requested: str, coulomb: Sequence[FrictionLaw], load: bool
) -> tuple[list[Named], tuple[AxisChoice, ...], FloatArray | None]:
    """Return the law of every axis, how it was chosen, and the links (n, 10) that load it.

    ``requested`` is 'auto', or the law of which only the shapes are to be chosen; ``coulomb`` are
    the laws to begin with; ``load`` allows friction that grows with the transmitted torque.
    """
    reasons = data.reasons()
    current: list[Named] = [('coulomb', law) for law in coulomb]
    tried: list[dict[str, float]] = [{} for _ in current]
    first = [[('coulomb', law)] if reason else bases(requested, law, alone)
             for law, reason, alone in zip(coulomb, reasons, data.alone(), strict=True)]

    def base(axis: int, scores: LawScores, before: Named) -> tuple[Named, list[ScoredLaw]]:
        found = scored(scores, first[axis])
        chosen = simplest(found, GAIN) if requested == AUTO else found[-1]
        return (chosen.name, chosen.law), found

    factors = data.factors(first, None)
    _rounds(factors, current, base, tried)
    links = data.links(factors, [law for _, law in current]) if load else None
    additions = data.additions(requested if requested != AUTO else None, links is not None)
    starts = [_starts(('coulomb', law), own, requested == AUTO)
              for own, law in zip(current, coulomb, strict=True)]
    second = [[('coulomb', law), *own] if reason else _grown(('coulomb', law), own, additions)
              for own, law, reason in zip(starts, coulomb, reasons, strict=True)]

    def grow(axis: int, scores: LawScores, before: Named) -> tuple[Named, list[ScoredLaw]]:
        found = scored(scores, second[axis][:1])
        if reasons[axis]:
            return before, found
        grown = [_add(scores, start, additions, requested == AUTO, found)
                 for start in starts[axis]]
        chosen = simplest(grown, GAIN)
        return (chosen.name, chosen.law), found

    if additions:
        factors = data.factors(second, data.load(links))
        _rounds(factors, current, grow, tried)
    noise = noise_of(factors, [law for _, law in current], np.ones(len(factors.active)))
    on_grid = tuple(current)
    for axis in range(len(current)):
        current[axis] = refined(data, factors, axis, on_grid, noise, data.load(links))
    if requested == AUTO:
        simple = [('coulomb', law) for law in coulomb]
        current = excited_laws(data, list(zip(current, on_grid, simple, strict=True)), links)
    choices = tuple(AxisChoice(label, own[0], reason, tuple(
                        LawScore(name, float(ratio)) for name, ratio in seen.items()))
                    for label, own, seen, reason in zip(data.axes.labels, current, tried, reasons,
                                                        strict=True))
    return current, choices, links


def excited_laws(
    data: FrictionData, requested: Sequence[tuple[Named, ...]], links: FloatArray | None
) -> list[Named]:
    """Return the first law ``requested`` on each axis that leaves no parameter open.

    So a fit to the same data reports none of them as not excited, but for those that are open
    with the last law, too, which is taken as it is. ``links`` (n, 10) are standard parameters for
    laws that depend on the load.
    """
    place = [0] * len(requested)
    last = [own[-1] for own in requested]
    unavoidable: set[str] | None = None
    while True:
        current = [own[i] for own, i in zip(requested, place, strict=True)]
        if current == last:
            return current
        if unavoidable is None:
            unavoidable = data.left_open(last, links)
        left_open = data.left_open(current, links) - unavoidable
        back = [i for i, named in enumerate(current)
                if named != last[i] and left_open & data.names(i, named[1])]
        if not back:
            return current
        for i in back:
            place[i] += 1


def _rounds(
    factors: Factors, current: list[Named], improve: Improve, tried: list[dict[str, float]]
) -> None:
    """Improve the laws of the axes in turn; notes errors relative to the first law evaluated."""
    noise = np.ones(len(factors.active))
    for _ in range(ROUNDS):
        for _ in range(2):  # the noise of one joint bears on the parameters of the others
            noise = noise_of(factors, [law for _, law in current], noise)
        for axis, before in enumerate(current):
            scores = LawScores.of(factors, axis, [law for _, law in current], noise)
            current[axis], found = improve(axis, scores, before)
            reference = next(f.score for f in found if f.name == 'coulomb')
            tried[axis].update({f.name: f.score / reference for f in found})


def _starts(coulomb: Named, chosen: Named, auto: bool) -> list[Named]:
    """Return the laws to extend: a simple law with an addition may do as well as a long law."""
    return [coulomb, chosen] if auto and chosen[0] != 'coulomb' else [chosen]


def _grown(
    coulomb: Named, starts: Sequence[Named], additions: dict[str, dict[str, Any]]
) -> list[Named]:
    found = [coulomb, *starts]
    for start in starts:
        for added, settings in additions.items():
            found += extended(start, added, settings)
    return found


def _add(
    scores: LawScores, start: Named, additions: dict[str, dict[str, Any]], auto: bool,
    found: list[ScoredLaw],
) -> ScoredLaw:
    """Add to ``start`` what lowers the error most, until nothing does; or all requested.

    Everything tried is noted in ``found``.
    """
    chosen = scored(scores, [start])[0]
    found.append(chosen)
    left = dict(additions)
    while left:
        tried = [scored(scores, extended((chosen.name, chosen.law), added, settings))[0]
                 for added, settings in left.items()]
        found += tried
        best = min(tried, key=lambda f: f.rank) if auto else tried[0]
        if auto and not best.improves_on(chosen, GAIN):
            break
        chosen = best
        del left[best.name.split('+')[-1]]
    return chosen
