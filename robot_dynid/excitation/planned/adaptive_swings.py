"""Adaptive sequences of swings: each is chosen by what is not yet known well enough.

Candidates are swings of every joint, wide and narrow, with the others locked in several
configurations. The effort of the joint that swings counts, the longer the more; those of the
locked ones by their variations, once, since what friction takes of them does not average out. The
next swing is the one that brings the deviations nearest to the accuracy asked for per second of
its execution. No session can know a parameter better than all candidates would together, each for
the whole time allowed: what misses the accuracy even then is out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DynIdError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import (
    DesignCriteria,
    Planned,
    Session,
    SessionOver,
    SwingRow,
)
from robot_dynid.excitation.planned.planner import MOVE_SPEEDS, Planner
from robot_dynid.excitation.planned.swings import CANDIDATES, Swings, wide_and_narrow
from robot_dynid.excitation.precision import Precision, covariance_of
from robot_dynid.numbers import NumberRange
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.moves import quintic_move
from robot_dynid.trajectories.sine import RAMP, SineSwing
from robot_dynid.types import FloatArray, Progress, Samples

ACCURACY = NumberRange(1e-6, 1e6, note='it is a deviation relative to nominal parameters')
LONGEST = NumberRange(1.0, 36_000.0, 's')
SWINGS = NumberRange(1, 1000, whole=True)
#: instants looked at per period
INSTANTS = 50
#: a swing is made longer or shorter by about one in so many of its periods at a time
STEPS = 8
#: times that more configurations are drawn while the candidates leave something out of reach
DRAWS = 4


@dataclass(frozen=True)
class Wanted:
    """Goal of a session: the relative ``accuracy`` within ``longest`` s of swings.

    ``swings`` is the largest number given at once, the first of those needed; ``periods`` of the
    shortest swing.
    """

    accuracy: float
    longest: float
    swings: int
    periods: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """A swing and what its efforts tell of parameters in terms of their sizes, over their noise.

    ``own`` (r, b) of the joint that swings, ``more`` (r, b) that of as many periods at full
    amplitude again, ``locked`` (r, b) that of all others.
    """

    swing: SineSwing
    own: FloatArray
    more: FloatArray
    locked: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, swing: SineSwing, precision: Precision) -> Candidate:
        """Look at the efforts of a swing."""
        j, full = swing.index, RAMP / swing.frequency
        columns, step = _columns(model, swing, (0.0, swing.duration))
        again, _ = _columns(model, swing, (full, swing.duration - full))
        own = np.sqrt(step) / precision.density[j]
        others = [i for i in range(model.robot.n) if i != j]
        varying = columns - columns.mean(axis=2, keepdims=True)
        spread = np.hypot(precision.density, precision.held * np.sqrt(swing.duration))
        locked = [varying[i].T * np.sqrt(step) / spread[i] for i in others if model.held[i]]
        locked += [columns[i].T * np.sqrt(step) / precision.density[i]
                   for i in others if not model.held[i]]
        return cls(swing, *(_triangle(rows * precision.sizes) for rows in (
            own * columns[j].T, own * again[j].T,
            np.vstack(locked) if locked else np.zeros((0, len(precision.sizes))))))

    @property
    def again(self) -> float:
        """Length of as many periods again, s."""
        return self.swing.periods / self.swing.frequency

    @property
    def rows(self) -> FloatArray:
        """All that the first execution tells (r, b)."""
        return np.vstack([self.own, self.locked])


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


def _triangle(rows: FloatArray) -> FloatArray:
    """Return as few rows (r, b) that hold the same information."""
    active = np.flatnonzero(rows.any(axis=0))
    small = np.linalg.qr(rows[:, active], mode='r')
    found = np.zeros((len(small), rows.shape[1]))
    found[:, active] = small
    return found


@dataclass
class Choice:
    """The swings chosen so far, in their order; relative ``information`` (b, b) after them."""

    information: FloatArray
    chosen: list[tuple[Candidate, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.covariance = covariance_of(self.information)

    def deviations(self, rows: FloatArray | None = None) -> FloatArray:
        """Return the deviations (b,), after ``rows`` (r, b) more."""
        variance = np.diag(self.covariance)
        if rows is not None:
            shadow = rows @ self.covariance
            left = np.linalg.solve(shadow @ rows.T + np.eye(len(rows)), shadow)
            variance = variance - np.sum(shadow * left, axis=0)
        return np.sqrt(np.maximum(variance, 1e-30))

    def told(self, one: Candidate, periods: int) -> FloatArray:
        """Return the rows (r, b) that a swing of so many ``periods`` adds."""
        if not periods:
            return one.own[:0]
        known = any(one is before for before, n in self.chosen if n)
        more = np.sqrt(periods / one.swing.periods - 1.0) * one.more
        return np.vstack([one.own if known else one.rows, more])

    def add(self, rows: FloatArray) -> None:
        """Add ``rows`` (r, b) to what is known."""
        self.information = self.information + rows.T @ rows
        self.covariance = covariance_of(self.information)


def adaptive_swings(
    criteria: DesignCriteria, limits: MotionLimits, wanted: Wanted, rng: np.random.Generator
) -> Planned:
    """Return the next swings until the accuracy is met as predicted, and how well by then.

    Raises DynIdError where there is nothing to compare with, SessionOver where the accuracy is met
    already, and where nothing that misses it is within reach.
    """
    model, precision = criteria.model, criteria.precision
    if model is None or precision is None:
        raise DynIdError("procedure 'adaptive' compares with nominal parameters: the robot has "
                         'none; give the links inertials')
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    if precision.worst[1] <= wanted.accuracy:
        raise SessionOver(
            f'the accuracy {wanted.accuracy:g} is met: {precision.worst[0]} is known worst, to '
            f'{precision.worst[1]:.3g}; nothing more is to be recorded', precision.worst[1])
    planner = Planner(criteria, limits)
    swings = Swings(planner)
    candidates: list[Candidate] = []
    for draw in range(DRAWS):
        places = [swings.home, *swings.somewhere(rng, CANDIDATES - 1)] if draw == 0 else list(
            swings.somewhere(rng, CANDIDATES))
        candidates += _candidates(model, swings, places, precision, wanted)
        unreachable = out_of_reach(precision, candidates, wanted)
        if not np.any(unreachable):
            break
    progress = criteria.progress or (lambda *_: None)
    found = _chosen(precision, candidates, wanted, ~unreachable, limits, progress)
    choice = _shortened(precision, found, wanted, ~unreachable, progress)
    names = tuple(n for n, lost in zip(precision.names, unreachable, strict=True) if lost)
    if not choice.chosen:
        missed = tuple(precision.names[i] for i in np.flatnonzero(
            precision.deviations > wanted.accuracy))
        raise SessionOver(
            f'the accuracy {wanted.accuracy:g} is out of reach for {", ".join(missed)}, whatever '
            f'joint swings within the limits for {wanted.longest:g} s; all else is known as well '
            'as asked for', precision.worst[1], missed)
    choice.chosen = choice.chosen[:wanted.swings]
    trajectory = planner.joined([replace(c.swing, periods=n) for c, n in choice.chosen])
    return Planned(trajectory, session=_session(precision, choice, wanted, names))


def _candidates(
    model: TorqueModel, swings: Swings, places: Sequence[FloatArray], precision: Precision,
    wanted: Wanted,
) -> Iterator[Candidate]:
    """Yield the swings that take no longer than the whole session may."""
    for joint in range(model.robot.n):
        for motion in swings.motions(joint, places):
            for swing in wide_and_narrow(swings.planner, motion, wanted.periods):
                if swing.duration <= wanted.longest:
                    yield Candidate.of(model, swing, precision)


def out_of_reach(
    precision: Precision, candidates: Sequence[Candidate], wanted: Wanted
) -> NDArray[np.bool_]:
    """Return a mask (b,) of the parameters that no session of these candidates knows well enough.

    All of them together, each for the whole time allowed, tell more than any session.
    """
    best = precision.relative
    for one in candidates:
        best = best + (wanted.longest / one.again) * one.more.T @ one.more + one.rows.T @ one.rows
    return np.asarray(np.sqrt(np.diag(covariance_of(best))) > wanted.accuracy)


def _chosen(
    precision: Precision, candidates: Sequence[Candidate], wanted: Wanted,
    counted: NDArray[np.bool_], limits: MotionLimits, progress: Progress,
) -> Choice:
    """Choose swings one by one until all that is ``counted`` (b,) is known well enough.

    A swing may also be made longer, which costs neither a move nor its rise and fall.
    ``progress`` may end it: a fine accuracy takes many steps.
    """
    choice = Choice(precision.relative)
    slow = limits.scaled(1.0, MOVE_SPEEDS[0])
    seconds = 0.0

    def missing(rows: FloatArray | None = None) -> float:
        excess = choice.deviations(rows)[counted] / wanted.accuracy
        return float(np.sum(np.log(np.maximum(excess, 1.0))))

    def move(one: Candidate) -> float:
        if not choice.chosen:
            return 0.0
        ends = choice.chosen[-1][0].swing.position, one.swing.position
        return quintic_move(limits.joints, ends, slow).duration

    begin = left = missing()
    while left > 0.0:
        progress('choosing swings', 1.0 - left / begin)
        options = [(one, np.sqrt(k) * one.more, k * one.again, i)
                   for i, (one, n) in enumerate(choice.chosen) for k in (_steps(one, n),)]
        seen = {id(one) for one, _ in choice.chosen}  # what is held then is held again
        options += [(one, one.own if id(one) in seen else one.rows,
                     one.swing.duration + move(one), -1) for one in candidates]
        options = [option for option in options if seconds + option[2] <= wanted.longest]
        gains = [(left - missing(rows)) / cost for _, rows, cost, _ in options]
        if not max(gains, default=0.0) > 0.0:
            break
        best, rows, cost, place = options[int(np.argmax(gains))]
        choice.add(rows)
        seconds += cost
        if place < 0:
            choice.chosen.append((best, best.swing.periods))
        else:
            before = choice.chosen[place][1]
            choice.chosen[place] = best, before + _steps(best, before) * best.swing.periods
        left = missing()
    return choice


def _shortened(
    precision: Precision, choice: Choice, wanted: Wanted, counted: NDArray[np.bool_],
    progress: Progress,
) -> Choice:
    """Return the choice without the periods and swings that later ones have made superfluous."""
    def of(chosen: list[tuple[Candidate, int]]) -> Choice:
        found = Choice(precision.relative)
        for one, periods in chosen:
            found.add(found.told(one, periods))
            found.chosen.append((one, periods))
        return found

    def enough(one: Choice) -> bool:
        return bool(np.all(one.deviations()[counted] <= wanted.accuracy))

    if not enough(choice):
        return choice
    for place in sorted(range(len(choice.chosen)), reverse=True,
                        key=lambda i: choice.chosen[i][1] / choice.chosen[i][0].swing.frequency):
        while choice.chosen[place][1]:
            progress('shortening swings', 1.0)
            one, periods = choice.chosen[place]
            fewer = list(choice.chosen)
            fewer[place] = one, periods - _steps(one, periods) * one.swing.periods
            shorter = of(fewer)
            if not enough(shorter):
                break
            choice = shorter
    return of([(one, periods) for one, periods in choice.chosen if periods])


def _steps(one: Candidate, periods: int) -> int:
    """Return by how many of its shortest lengths a swing of ``periods`` is changed at a time."""
    return max(1, periods // (one.swing.periods * STEPS))


def _session(
    precision: Precision, choice: Choice, wanted: Wanted, unreachable: tuple[str, ...]
) -> Session:
    """Return the swings of a choice, with the deviation after each of them."""
    known, rows = Choice(precision.relative), list[SwingRow]()
    for one, periods in choice.chosen:
        swing = replace(one.swing, periods=periods)
        known.add(known.told(one, periods))
        known.chosen.append((one, periods))
        deviations = known.deviations()
        worst = int(np.argmax(deviations))
        rows.append(SwingRow(
            swing.moving, {name: float(at) for name, at in zip(
                swing.joints, swing.position, strict=True) if name != swing.moving},
            float(swing.position[swing.index]), float(swing.amplitude), float(swing.frequency),
            periods, swing.duration, float(deviations[worst]), precision.names[worst]))
    met = bool(np.all(known.deviations() <= wanted.accuracy))
    return Session(wanted.accuracy, met, tuple(rows), unreachable)
