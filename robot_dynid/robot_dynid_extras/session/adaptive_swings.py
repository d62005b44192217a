"""Adaptive sequences of swings: each is chosen by what is not yet known accurately enough.

Candidates are swings of every joint, wide and narrow, with the others locked in several
configurations. The effort of the joint that swings counts, the longer the more; those of the
locked ones by their variations, since what friction takes of them does not average out. The next
swing is the one that brings the deviations nearest to the accuracy asked for per second of its
execution. What is out of reach of any session is named, and not planned for: no session can know
more of the effort of a swinging joint than all candidates together, each for the whole time, and
of joints at rest no more than the best mixture of configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.experiment import BATCH_SECONDS, TorqueModel
from robot_dynid.excitation.design import DesignCriteria, Planned, SessionOver
from robot_dynid.excitation.planned.planner import MOVE_SPEEDS, Planner
from robot_dynid.excitation.planned.sine_sequence import (
    CANDIDATES,
    AdaptiveGoal,
    Swings,
    wide_and_narrow,
)
from robot_dynid.trajectories.limits import MotionLimits, quintic_move
from robot_dynid.trajectories.single_joint import RAMP_PERIODS, SineSwing
from robot_dynid.types import FloatArray, Progress, Samples
from robot_dynid_extras.session.outlook import Session, SwingRow
from robot_dynid_extras.session.precision import (
    UNKNOWN,
    Precision,
    Resting,
    covariance_of,
    precision_of,
)

#: instants looked at per period
INSTANTS = 50


@dataclass(frozen=True, eq=False)
class Candidate:
    """A swing and what its efforts tell of parameters in terms of their sizes.

    ``own`` (b, b) the information of the effort that averages out, of the joint that swings and of
    those no friction holds, ``more`` (b, b) that of as many periods at full amplitude again;
    ``resting`` (n, b, b) the integral over time of the variations of the joints at rest.
    """

    swing: SineSwing
    own: FloatArray
    more: FloatArray
    resting: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, swing: SineSwing, precision: Precision) -> Candidate:
        """Look at the efforts of a swing."""
        full = RAMP_PERIODS / swing.frequency
        columns, step = _columns(model, swing, (0.0, swing.duration))
        again, _ = _columns(model, swing, (full, swing.duration - full))
        columns, again = columns * precision.sizes[:, None], again * precision.sizes[:, None]
        held = model.held & (np.arange(model.robot.n) != swing.index)
        weight = np.where(held, 0.0, 1.0 / precision.density**2)
        varying = _varying(columns, step) * held[:, None, None]
        own, more = (step * np.einsum('i,ibk,ick->bc', weight, found, found, optimize=True)
                     for found in (columns, again))
        return cls(swing, own, more, step * varying @ varying.transpose(0, 2, 1))

    @property
    def again(self) -> float:
        """Length of as many periods again, s."""
        return self.swing.periods / self.swing.frequency

    def told(self, periods: int) -> Told:
        """Return the information from so many ``periods``."""
        times = periods / self.swing.periods
        seconds = replace(self.swing, periods=periods).duration
        return Told(self.swing.index, self.own + (times - 1.0) * self.more,
                    seconds / self.swing.duration * self.resting, seconds)

    def longer(self, times: int) -> Told:
        """Return the information from so many times its periods more, once it swings."""
        seconds = times * self.again
        return Told(self.swing.index, times * self.more,
                    seconds / self.swing.duration * self.resting, seconds)


@dataclass(frozen=True, eq=False)
class Told:
    """Information from ``seconds`` of swings of the joint ``index``: ``own`` (b, b), ``resting``
    (n, b, b), see `Candidate`.
    """

    index: int
    own: FloatArray
    resting: FloatArray
    seconds: float


@dataclass(frozen=True, eq=False)
class Known:
    """State of a session in terms of the parameters' sizes, see `Precision`."""

    own: FloatArray
    resting: Resting
    density: FloatArray
    held: FloatArray

    @classmethod
    def of(cls, precision: Precision) -> Known:
        """Return the state after what was measured."""
        sizes = precision.sizes
        both = sizes[:, None] * sizes
        return cls(both * precision.information + np.eye(len(sizes)) / UNKNOWN**2,
                   Resting(both * precision.resting.grams, precision.resting.seconds),
                   precision.density, precision.held)

    def after(self, told: Sequence[Told]) -> Known:
        """Return the state after more swings."""
        own, grams, seconds = (np.array(one) for one in (
            self.own, self.resting.grams, self.resting.seconds))
        for one in told:
            own += one.own
            grams[one.index] += one.resting
            seconds[one.index] += one.seconds
        return replace(self, own=own, resting=Resting(grams, seconds))

    @property
    def information(self) -> FloatArray:
        """Information (b, b)."""
        return self.own + self.resting.information(self.density, self.held)

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard deviations (b,)."""
        return np.asarray(np.sqrt(np.diag(covariance_of(self.information))))

    def deviations_after(self, told: Sequence[Told]) -> FloatArray:
        """Return the standard deviations (K, b) after each of K swings by itself."""
        total = self.own + sum(self._at_rest)
        found = []
        for one in told:
            j = one.index
            now = self._resting(j, self.resting.grams[j] + one.resting, one.seconds)
            found.append(total - self._at_rest[j] + one.own + now)
        return np.sqrt(np.diagonal(covariance_of(np.array(found)), axis1=1, axis2=2))

    @cached_property
    def _at_rest(self) -> list[FloatArray]:
        return [self._resting(j, grams) for j, grams in enumerate(self.resting.grams)]

    def _resting(self, j: int, grams: FloatArray, more: float = 0.0) -> FloatArray:
        variance = self.density**2 + (self.resting.seconds[j] + more) * self.held**2
        return np.asarray(np.tensordot(1.0 / variance, grams, 1))


def _columns(
    model: TorqueModel, swing: SineSwing, span: tuple[float, float]
) -> tuple[FloatArray, float]:
    """Return the base regressor (n, b, N) within ``span`` [s], and the step of its samples [s]."""
    count = int(np.ceil(INSTANTS * (span[1] - span[0]) * swing.frequency))
    step = (span[1] - span[0]) / count
    time: FloatArray = span[0] + step * (np.arange(float(count)) + 0.5)
    motion = swing.sample(time)
    samples = Samples(model.robot.joints, time, motion.position, motion.velocity,
                      motion.acceleration)
    return model.columns(samples), step


def _varying(columns: FloatArray, step: float) -> FloatArray:
    """Return the variation of ``columns`` (n, b, N) within each batch of an estimate."""
    batch = (step * np.arange(columns.shape[2]) / BATCH_SECONDS).astype(int)
    first, length = np.unique(batch, return_index=True, return_counts=True)[1:]
    means = np.add.reduceat(columns, first, axis=2) / length
    return np.asarray(columns - means[:, :, batch])


#: steps of the search for the best mixture
MIXTURE_STEPS = 30
#: what stays above this share of UNKNOWN is not seen at all
UNSEEN = 0.1


@dataclass(frozen=True, eq=False)
class Reach:
    """Deviations (b,) that no session of ``longest`` s of swings falls below: ``best``, and
    ``frictionless`` if no friction held joints at rest; beside the ``accuracy`` asked for.
    """

    best: FloatArray
    frictionless: FloatArray
    accuracy: float
    longest: float

    @classmethod
    def of(
        cls, known: Known, candidates: Sequence[Candidate], accuracy: float, longest: float
    ) -> Reach:
        """Return the reach of ``candidates`` in ``longest`` s; ``accuracy`` is relative."""
        steady = np.array(known.own)
        for one in candidates:
            steady += one.own + longest / one.again * one.more

        def deviations(held: FloatArray) -> FloatArray:
            mixed = _mixed(replace(known, held=held), candidates, steady, accuracy, longest)
            return np.asarray(np.sqrt(np.diag(covariance_of(steady + mixed))))

        best = deviations(known.held)
        missed = bool(np.any(best > accuracy))
        return cls(best, deviations(np.zeros_like(known.held)) if missed else best, accuracy,
                   longest)

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Mask (b,) of the parameters that are out of reach."""
        return np.asarray(self.best > self.accuracy)

    def words(self, names: Sequence[str]) -> str:
        """Return a sentence on the parameters out of reach, and why they are; empty for none."""
        unseen = self.missed & (self.best > UNSEEN * UNKNOWN)
        held = self.missed & ~unseen & (self.frictionless <= self.accuracy)
        late = self.missed & ~unseen & ~held
        least = self.longest * float(np.max(self.best / self.accuracy, where=late, initial=1.0))**2
        found = []
        for mask, reason in (
            (late, f'the noise asks for more than {least:.0f} s of swings, {self.longest:g} s are '
             'allowed'),
            (unseen, 'no swing that limits, time and surroundings allow shows it'),
            (held, 'only the efforts of joints at rest show it well, of which friction takes a '
             'part; a motion of all joints (type fourier) does better'),
        ):
            if np.any(mask):
                some = ', '.join(n for n, there in zip(names, mask, strict=True) if there)
                found.append(f'{some}: {reason}')
        return '; '.join(found)


def _mixed(
    known: Known, candidates: Sequence[Candidate], steady: FloatArray, accuracy: float,
    longest: float,
) -> FloatArray:
    """Return the information (b, b) of joints at rest for the best mixture of configurations.

    Its shares of the time that each joint swings follow from the multiplicative algorithm for the
    sum of the logarithms of the deviations that miss the ``accuracy``; ``steady`` (b, b) is known
    beside. Source: Silvey, Titterington and Torsney, Communications in Statistics A7, 1978.
    """
    index = np.array([one.swing.index for one in candidates], dtype=int)
    swung = np.bincount(index, minlength=len(known.held))
    seconds = known.resting.seconds + np.where(swung > 0, longest, 0.0)
    weight = 1.0 / (known.density**2 + seconds[:, None] * known.held**2)
    before = np.asarray(np.einsum('ji,jibc->bc', weight, known.resting.grams))
    if not candidates:
        return before
    told = np.array([longest / one.swing.duration * np.tensordot(
        weight[one.swing.index], one.resting, 1) for one in candidates])
    shares = 1.0 / swung[index]
    for _ in range(MIXTURE_STEPS):
        covariance = covariance_of(steady + before + np.tensordot(shares, told, 1))
        variance = np.diag(covariance)
        pull = np.where(np.sqrt(variance) > accuracy, 1.0 / variance, 0.0)
        slope = np.tensordot(told, (covariance * pull) @ covariance, 2)
        if not np.any(slope > 0.0):
            break
        wanted = shares * np.sqrt(slope)
        total = np.bincount(index, wanted)[index]
        shares = np.where(total > 0.0, wanted / np.maximum(total, 1e-300), shares)
    return np.asarray(before + np.tensordot(shares, told, 1))


#: a swing is made longer or shorter by about one in so many of its periods at a time
STEPS = 8
#: share of the accuracy that is planned for: what is found scatters about what was predicted
MARGIN = 0.9
#: times that more configurations are drawn while the candidates leave something out of reach
DRAWS = 4


@dataclass(frozen=True, eq=False)
class Choice:
    """Swings with their numbers of periods, in their order; ``before`` them, what is known."""

    before: Known
    chosen: tuple[tuple[Candidate, int], ...] = ()

    @cached_property
    def known(self) -> Known:
        """The state after them."""
        return self.before.after([
            one.told(periods) for one, periods in self.chosen if periods])

    def with_swing(self, place: int, one: Candidate, periods: int) -> Choice:
        """Return the choice with a swing at ``place``, instead of that there; at the end for none.
        """
        found = list(self.chosen)
        found[place:place + 1] = [(one, periods)]
        return replace(self, chosen=tuple(found))


def adaptive_swings(
    criteria: DesignCriteria, limits: MotionLimits, target: AdaptiveGoal, rng: np.random.Generator
) -> Planned:
    """Return the next swings until the accuracy is met as predicted, and how well by then.

    Raises what `precision_of` and `next_swings` raise.
    """
    return next_swings(criteria, precision_of(criteria), limits, target, rng)


def next_swings(
    criteria: DesignCriteria, precision: Precision, limits: MotionLimits, target: AdaptiveGoal,
    rng: np.random.Generator,
) -> Planned:
    """Return the next swings after what is known with a ``precision``.

    Raises SessionOver where the accuracy is met already, and where nothing that misses it is
    within reach.
    """
    model = criteria.model
    assert model is not None
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    if precision.worst[1] <= target.accuracy:
        raise SessionOver(
            f'the accuracy {target.accuracy:g} is met: {precision.worst[0]} is known worst, to '
            f'{precision.worst[1]:.3g}; no further recording is needed', precision.worst)
    planner, known = Planner(criteria, limits), Known.of(precision)
    swings = Swings(planner)
    candidates: list[Candidate] = []
    for draw in range(DRAWS):
        places = [swings.home, *swings.somewhere(rng, CANDIDATES - 1)] if draw == 0 else list(
            swings.somewhere(rng, CANDIDATES))
        candidates += _candidates(model, swings, places, precision, target)
        reach = Reach.of(known, candidates, MARGIN * target.accuracy, target.longest)
        if not np.any(reach.missed):
            break
    goal = Goal(target, ~reach.missed, limits.scaled(1.0, MOVE_SPEEDS[0]),
                criteria.progress or (lambda *_: None))
    choice = _ordered(goal, _shortened(goal, _chosen(goal, known, candidates)))
    why = reach.words(precision.names)
    if not choice.chosen:
        raise _over(precision, target, why)
    trajectory = planner.joined([replace(c.swing, periods=n)
                                 for c, n in choice.chosen[:target.swings]])
    return Planned(trajectory, session=_session(precision, goal, choice, why))


def _candidates(
    model: TorqueModel, swings: Swings, places: Sequence[FloatArray], precision: Precision,
    target: AdaptiveGoal,
) -> Iterator[Candidate]:
    """Yield the swings that take no longer than the whole session may."""
    for joint in range(model.robot.n):
        for motion in swings.motions(joint, places):
            for swing in wide_and_narrow(swings.planner, motion, target.periods):
                if swing.duration <= target.longest:
                    yield Candidate.of(model, swing, precision)


@dataclass(frozen=True, eq=False)
class Goal:
    """Goal of a session: the ``counted`` (b,) parameters known as ``target``.

    ``slow`` limits of the moves; ``progress`` may end the search: it may take many steps.
    """

    target: AdaptiveGoal
    counted: NDArray[np.bool_]
    slow: MotionLimits
    progress: Progress

    def missing(self, deviations: FloatArray) -> FloatArray:
        """Return the distance of deviations (..., b) from those planned for, zero where met."""
        excess = deviations[..., self.counted] / (MARGIN * self.target.accuracy)
        return np.asarray(np.log(np.maximum(excess, 1.0)).sum(axis=-1))

    def met(self, choice: Choice) -> bool:
        """Return whether all that is counted is known well enough."""
        return not self.missing(choice.known.deviations) > 0.0

    def move(self, choice: Choice, one: Candidate) -> float:
        """Return the length of the move from the last swing to another, s."""
        if not choice.chosen:
            return 0.0
        ends = choice.chosen[-1][0].swing.position, one.swing.position
        return quintic_move(self.slow.joints, ends, self.slow).duration


def _chosen(goal: Goal, known: Known, candidates: Sequence[Candidate]) -> Choice:
    """Choose swings one by one until all that is counted is known well enough.

    A swing may also be made longer, which costs neither a move nor its rise and fall.
    """
    choice, seconds = Choice(known), 0.0
    shortest = [one.told(one.swing.periods) for one in candidates]
    begin = left = float(goal.missing(known.deviations))
    while left > 0.0:
        goal.progress('choosing swings', 1.0 - left / begin)
        longer = [(one.longer(_steps(one, n)), 0.0, one, n + _steps(one, n) * one.swing.periods)
                  for one, n in choice.chosen]
        fresh = [(told, goal.move(choice, one), one, one.swing.periods)
                 for told, one in zip(shortest, candidates, strict=True)]
        options = [(*option, min(place, len(longer)))
                   for place, option in enumerate([*longer, *fresh])
                   if seconds + option[0].seconds + option[1] <= goal.target.longest]
        if not options:
            break
        cost = np.array([told.seconds + move for told, move, *_ in options])
        after = goal.missing(choice.known.deviations_after([told for told, *_ in options]))
        best = int(np.argmax((left - after) / cost))
        if not after[best] < left:
            break
        _, _, one, periods, place = options[best]
        choice = choice.with_swing(place, one, periods)
        seconds, left = seconds + cost[best], float(goal.missing(choice.known.deviations))
    return choice


def _shortened(goal: Goal, choice: Choice) -> Choice:
    """Return the choice without the periods and swings that later ones have made superfluous."""
    if not goal.met(choice):
        return choice
    for place in sorted(range(len(choice.chosen)), reverse=True,
                        key=lambda i: choice.chosen[i][1] / choice.chosen[i][0].swing.frequency):
        while choice.chosen[place][1]:
            goal.progress('shortening swings', 1.0)
            one, periods = choice.chosen[place]
            shorter = choice.with_swing(
                place, one, periods - _steps(one, periods) * one.swing.periods)
            if not goal.met(shorter):
                break
            choice = shorter
    return replace(choice, chosen=tuple(swing for swing in choice.chosen if swing[1]))


def _ordered(goal: Goal, choice: Choice) -> Choice:
    """Return the swings in the order in which each tells most per second after those before it.

    Who executes only the first of them, and plans again, is to have the best.
    """
    left, found, seconds = list(choice.chosen), replace(choice, chosen=()), 0.0
    while left:
        told = [one.told(periods) for one, periods in left]
        after = goal.missing(found.known.deviations_after(told))
        cost = [t.seconds + goal.move(found, one) for t, (one, _) in zip(told, left, strict=True)]
        gain = (goal.missing(found.known.deviations) - after) / np.array(cost)
        best = int(np.argmax(gain))
        if seconds + cost[best] <= goal.target.longest:  # in another order moves may take longer
            found = replace(found, chosen=(*found.chosen, left[best]))
            seconds += cost[best]
        del left[best]
    return found


def _steps(one: Candidate, periods: int) -> int:
    """Return by how many of its shortest lengths a swing of ``periods`` is changed at a time."""
    return max(1, periods // (one.swing.periods * STEPS))


def _over(precision: Precision, target: AdaptiveGoal, why: str) -> SessionOver:
    """Return the end of a session after which no swing brings what is missing any nearer."""
    missed = tuple(precision.names[i] for i in np.flatnonzero(
        precision.deviations > target.accuracy))
    return SessionOver(
        f'the accuracy {target.accuracy:g} is out of reach for {why}; all else is known as well '
        'as asked for', precision.worst, missed)


def _session(precision: Precision, goal: Goal, choice: Choice, why: str) -> Session:
    """Return the swings of a choice, with the deviation after each of them."""
    target, rows, known = goal.target, list[SwingRow](), choice.before
    for one, periods in choice.chosen:
        swing = replace(one.swing, periods=periods)
        known = known.after([one.told(periods)])
        deviations = np.where(goal.counted, known.deviations, 0.0)
        worst = int(np.argmax(deviations))
        rows.append(SwingRow(
            swing.moving, {name: float(at) for name, at in zip(
                swing.joints, swing.position, strict=True) if name != swing.moving},
            float(swing.position[swing.index]), float(swing.amplitude), float(swing.frequency),
            periods, swing.duration, float(deviations[worst]), precision.names[worst],
            int(np.sum(deviations > target.accuracy))))
    given = tuple(rows[:target.swings])
    names = tuple(np.array(precision.names)[~goal.counted].tolist())
    return Session(target.accuracy, not given[-1].missing and not names, given, names, why,
                   tuple(rows[target.swings:]))
