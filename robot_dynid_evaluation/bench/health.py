"""Days of everyday motion of simulated arms: false alarms of ~/health, and how soon it finds.

Every arm is identified from recordings of a few days, then moves on others. Joint states pass what
the identifier does with them: five seconds at a time to information, to the parameters, to the
condition of every group. First nothing changes but what days change; then one thing does.

Beside what was found stands what the health says it finds of a parameter with 90 %, in parts of it
(``sees``), and with which probability an ideal test would find the change (``ideal``): one that
knows exactly by how much days differ, and has no noise. All joints may change together by any
amount for both, as they do while an arm warms up.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.cli.terminal import Progress
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits, motion_limits
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench import Row
from robot_dynid_evaluation.bench.fleet import ROBOT, Change, simulated_arm
from robot_dynid_extras.health.everyday_motion import everyday_motion
from robot_dynid_extras.health.health import MONTH, Condition, GroupHealth, Health, HealthSettings

COLUMNS = ('plant', 'days', 'what', 'arms', 'found', 'stated', 'kept', 'minutes', 'sees', 'ideal')
#: arms of every plant; days of each without a change, and hours a change may take to be found
ARMS, UNCHANGED, SOON = 20, 4, 0.5
#: false alarms per month: the default, one in ten days, and one a day, of which days show some
RATES = (0.1, 3.0, 30.0)
#: those with which changes are looked for
LOOKED = RATES[:2]
#: [Hz]; [s] of a stretch, of the motion that an arm repeats during a day, and of motion in a day
RATE, STRETCH, LAP, DAY = 100.0, 5.0, 60.0, 900.0
#: stretches after which groups are judged
JUDGED = 3
#: recordings of the identification, each of another day: few, and more, with which changes are
#: looked for; their length [s], periods and harmonics of their motion
DAYS = (2, 4, 10)
SECONDS, PERIODS, HARMONICS = 30.0, 3, 6
#: white noise of the efforts, coloured noise, in terms of the dry friction, and its time [s]
NOISE, COLOURED, COLOUR = 0.1, 0.05, 0.2
#: noise of position [rad] and velocity [rad/s]
SENSORS = 2e-6, 1e-3
#: share of the limits that moves from point to point use, and longest rest between them [s]
SPEED, REST = 0.6, 0.5
#: hours in which friction has its course of a day
COURSE = 8.0

CHANGES = {'viscous friction +20 %': Change('viscous_2', viscous=1.2, joint=1),
           'dry friction +20 %': Change('dry_2', dry=1.2, joint=1),
           '0.5 kg left on': Change('load_link_3', load=0.5)}
#: parameters in which they show
SHOWS = dict(zip(CHANGES, ('fv2', 'fc2', ''), strict=True))


@dataclass(frozen=True)
class Plant:
    """Behaviour of a simulated arm beside links, rotors, Coulomb and viscous friction.

    Shares of friction: ``daily`` of each axis from day to day, ``warming`` by which viscous
    friction falls within ``warm`` [s] of motion, dry friction by half of it, and ``course`` of
    both over a day; ``loaded`` is friction in parts of the torque that a gear carries [-],
    ``ramp`` [rad/s] that of reversals. ``task``: everyday motion goes from point to point, where
    the recordings were Fourier series.
    """

    name: str
    daily: float = 0.03
    warming: float = 0.0
    warm: float = 600.0
    course: float = 0.0
    loaded: float = 0.0
    ramp: float = 0.02
    task: bool = False


PLANTS = (Plant('inside the model'),
          Plant('outside the model', warming=0.15, course=0.04, loaded=0.02, ramp=0.03, task=True))


@dataclass(frozen=True, eq=False)
class _Day:
    """A day: position, velocity, acceleration (N, n) of a lap, and what friction is like.

    ``daily`` (2, n) times viscous and dry friction; ``warming`` times that of the plant; ``hour``
    [rad] of its course at which it begins. ``links`` has efforts by what was asked for before.
    """

    lap: tuple[FloatArray, FloatArray, FloatArray]
    daily: FloatArray
    warming: float
    hour: float
    links: dict[tuple[int, int, float], FloatArray] = field(default_factory=dict)


class EverydayArm:
    """One arm of a ``plant`` that moves day by day; with a ``change`` from when it is set.

    Its model is that of recordings of so many ``days``.
    """

    def __init__(self, plant: Plant, days: int, seed: int) -> None:
        self.plant, self._days, self.change = plant, days, Change('')
        self._rng = np.random.default_rng(seed)
        self._robot = load_robot(ROBOT)
        self._limits = motion_limits(self._robot)
        self._arm = simulated_arm(self._robot, self._rng)

    @cached_property
    def model(self) -> IdentifiedModel:
        """The model identified from a recording of each day, begun cold."""
        logs = [self._log(self._day(task=False), 0.0, SECONDS) for _ in range(self._days)]
        return identify(self._robot, logs, recipe=Recipe(friction='coulomb')).model

    def stretches(self, hours: float) -> Iterator[RawLog]:
        """Yield the joint states of so many hours of motion, STRETCH at a time."""
        for begin in np.arange(0.0, 3600.0 * hours, STRETCH):
            if begin % DAY == 0.0:
                day = self._day(self.plant.task)
            yield self._log(day, float(begin % DAY), STRETCH)

    def _day(self, task: bool) -> _Day:
        rng, time = self._rng, np.arange(round(LAP * RATE)) / RATE
        if task:
            lap = moves(self._limits, time, rng)
        else:
            motion = random_fourier(self._limits.scaled(0.9), FourierOptions(
                LAP, HARMONICS, PERIODS), rng).sample(time)
            lap = motion.position, motion.velocity, motion.acceleration
        daily = 1.0 + self.plant.daily * rng.standard_normal((2, self._robot.n))
        return _Day(lap, daily, rng.uniform(0.5, 1.5), rng.uniform(0.0, 2.0 * np.pi))

    def _log(self, day: _Day, begin: float, seconds: float) -> RawLog:
        """Return joint states from ``begin`` [s] of a day on."""
        count = round(seconds * RATE)
        rows = (round(begin * RATE) + np.arange(count)) % len(day.lap[0])
        q, qd, qdd = (one[rows] for one in day.lap)
        time = begin + np.arange(count) / RATE
        effort = self._effort(day, time, (q, qd, qdd)) + self._noise(count)
        q, qd = (one + size * self._rng.standard_normal(one.shape)
                 for one, size in zip((q, qd), SENSORS, strict=True))
        return RawLog('everyday motion', self._robot.joints, time, q, qd, effort)

    def _effort(
        self, day: _Day, time: FloatArray, motion: tuple[FloatArray, FloatArray, FloatArray]
    ) -> FloatArray:
        """Return the effort (N, n) of a ``motion`` at ``time`` (N,) s of a day."""
        plant, arm = self.plant, self._arm.on(day.daily, self.change)
        fallen = plant.warming * day.warming * (1.0 - np.exp(-time / plant.warm))
        course = plant.course * np.sin(day.hour + 2.0 * np.pi * time / (3600.0 * COURSE))
        fallen, course = fallen[:, None], course[:, None]
        key = round(time[0] % LAP * RATE), len(time), self.change.load
        if key not in day.links:
            day.links[key] = inverse_dynamics(arm.robot, *motion)
        return arm.effort(
            day.links[key], motion[1:], (1.0 - fallen + course, 1.0 - 0.5 * fallen + course),
            plant.loaded, plant.ramp)

    def _noise(self, count: int) -> FloatArray:
        """Return noise (count, n) of the effort, white and coloured."""
        from scipy.signal import lfilter

        keep = np.exp(-1.0 / (RATE * COLOUR))
        settled = round(5.0 * COLOUR * RATE)
        white = self._rng.standard_normal((2, count + settled, self._robot.n))
        slow = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white[0], axis=0)
        found = NOISE * white[1, settled:] + COLOURED * slow[settled:]
        return np.asarray(self._arm.dry * found)


def moves(
    limits: MotionLimits, time: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return position, velocity, acceleration (N, n) of moves from pose to pose and back.

    Polynomials of fifth degree, as fast as SPEED of the limits allows, with rests between.
    """
    def pose() -> FloatArray:
        return limits.centre + 0.8 * limits.half_range * rng.uniform(-1.0, 1.0, len(limits.lower))

    here = home = pose()
    begin, end = 0.0, float(time[-1])
    found = np.zeros((3, len(time), len(here)))
    found[0] = home
    while begin < end:
        goal = pose()
        takes, back = (_least_time(limits, one) for one in (goal - here, home - goal))
        if begin + takes + back + 2.0 * REST > end:
            goal, takes = home, _least_time(limits, home - here)
        own, way = time >= begin, goal - here
        u = np.clip((time[own] - begin) / takes, 0.0, 1.0)
        found[0][own] = here + np.outer(10.0 * u**3 - 15.0 * u**4 + 6.0 * u**5, way)
        found[1][own] = np.outer(30.0 * u**2 - 60.0 * u**3 + 30.0 * u**4, way) / takes
        found[2][own] = np.outer(60.0 * u - 180.0 * u**2 + 120.0 * u**3, way) / takes**2
        if goal is home:
            break
        here, begin = goal, begin + takes + rng.uniform(0.1, 1.0) * REST
    return found[0], found[1], found[2]


def _least_time(limits: MotionLimits, way: FloatArray) -> float:
    """Return the time [s] that a polynomial of fifth degree takes for a ``way`` (n,)."""
    speed = 1.875 * np.abs(way) / (SPEED * limits.velocity)
    return float(max(speed.max(), np.sqrt(5.7735 * np.abs(way) / (
        SPEED * limits.acceleration)).max()))


def followed(
    health: Health, arm: EverydayArm, hours: float
) -> Iterator[tuple[float, tuple[GroupHealth, ...]]]:
    """Yield seconds of motion and the judgement then, every JUDGED stretches."""
    for number, log in enumerate(arm.stretches(hours), start=1):
        motion = everyday_motion(health.identification.model, log)
        if motion is not None:
            health.identification.take(motion)
        if number % JUDGED == 0:
            yield number * STRETCH, health.judged()


def alarms(judged: tuple[GroupHealth, ...]) -> set[str]:
    """Return the groups that have changed."""
    return {one.words for one in judged if one.condition is Condition.CHANGED}


def measure(progress: Progress) -> Iterator[Row]:
    """Yield false alarms and power of all plants."""
    cases = [(plant, days) for plant in PLANTS for days in DAYS]
    for i, (plant, days) in enumerate(cases):
        counts = np.zeros(len(RATES), dtype=int)
        looked = {(what, rate): Looked() for what in CHANGES for rate in LOOKED
                  if days > DAYS[0]}
        for seed in range(ARMS):
            progress(f'{plant.name}, {days} days: arm {seed + 1}', (i + seed / ARMS) / len(cases))
            arm = EverydayArm(plant, days, seed)
            every, found = unchanged(arm)
            counts += found
            for what in CHANGES if days > DAYS[0] else ():
                minutes = until_found(arm, every, CHANGES[what])
                for rate, one, own in zip(LOOKED, every, minutes, strict=False):
                    looked[what, rate].minutes += own
                    looked[what, rate].add(one, SHOWS[what], (plant.daily, days))
        yield from ({'plant': plant.name, 'days': days, **row} for row in rows(counts, looked))


@dataclass
class Looked:
    """Minutes until a change was found, shares of its parameter that are, and ideally are."""

    minutes: list[float] = field(default_factory=list)
    sees: list[float] = field(default_factory=list)
    ideal: list[float] = field(default_factory=list)

    def add(self, health: Health, parameter: str, days: tuple[float, int]) -> None:
        """Add what an arm sees of friction by its ``parameter``, and what an ideal test would.

        ``days`` are the share by which they differ, and those of the model.
        """
        for one in (one for group in health.judged() for one in group.changes):
            if one.name == parameter:
                self.sees.append(one.seen / abs(one.served))
                self.ideal.append(ideal(health, *days))


def ideal(health: Health, daily: float, days: int, change: float = 0.2) -> float:
    """Return the probability with which a ``change`` of friction of one axis can be found.

    By the generalised likelihood ratio without noise, where friction of each axis is known to
    differ by ``daily`` from day to day, and that of all axes together by any amount; a model of so
    many ``days`` is compared, and the false alarms are shared among tests as in `Health`.
    """
    from scipy.stats import chi2, norm

    axes = sum(group.shared for group in health.groups)
    spread = daily * np.sqrt((1.0 + 1.0 / days) * axes / (axes - 1.0))
    tests = next(1 + len(group.columns) for group in health.groups if group.shared)
    level = np.sqrt(chi2.isf(health.chance / tests, 1))
    return float(norm.cdf(change / spread - level))


def unchanged(arm: EverydayArm) -> tuple[list[Health], list[int]]:
    """Return the health of an arm after days without a change, and alarms, by each of RATES.

    A group that alarms again on the same day, or still does the next, alarms once.
    """
    every = [Health(arm.model, HealthSettings(false_alarms=rate)) for rate in RATES]
    counts = [0] * len(every)
    now, told = [set[str]()] * len(every), [set[str]()] * len(every)
    today = 0
    for one in every:
        one.identification = every[0].identification
    for seconds, judged in followed(every[0], arm, UNCHANGED * DAY / 3600.0):
        day = int((seconds - STRETCH) // DAY)
        for k, one in enumerate(every):
            before = told[k] if day == today else now[k]
            now[k] = alarms(one.judged() if k else judged)
            counts[k] += len(now[k] - before)
            told[k] = before | now[k]
        today = day
    return every, counts


def until_found(arm: EverydayArm, every: list[Health], change: Change) -> list[list[float]]:
    """Return the minutes until a ``change`` raised an alarm about its part, by each of LOOKED.

    None if not SOON.
    """
    own = copy.deepcopy(every[:len(LOOKED)], {id(arm.model): arm.model})
    part = f'joint_{change.joint + 1}: friction' if not change.load else 'link_'
    found: list[list[float]] = [[] for _ in own]
    arm.change = change
    for seconds, judged in followed(own[0], arm, SOON):
        for k, one in enumerate(own):
            now = alarms(one.judged() if k else judged)
            if not found[k] and any(words.startswith(part) for words in now):
                found[k] = [seconds / 60.0]
        if all(found):
            break
    arm.change = Change('')
    return found


def rows(
    counts: NDArray[np.int64], looked: dict[tuple[str, float], Looked]
) -> Iterator[Row]:
    """Yield the table of false alarms by RATES (k,), and of changes that were ``looked`` for.

    False alarms are to be no more than stated and two deviations of so few.
    """
    for rate, count in zip(RATES, counts.tolist(), strict=True):
        stated = rate * ARMS * UNCHANGED / MONTH
        yield {'what': f'{ARMS * UNCHANGED} days, {rate:g} false alarms a month', 'arms': ARMS,
               'found': count, 'stated': f'{stated:.2g}',
               'kept': bool(count <= stated + 2.0 * np.sqrt(stated)), 'minutes': '-', 'sees': '-',
               'ideal': '-'}
    for (what, rate), one in looked.items():
        minutes, sees, best = (
            f'{scale * np.median(found):.2g}{unit}' if found else '-' for found, scale, unit in (
                (one.minutes, 1.0, ''), (one.sees, 100.0, ' %'), (one.ideal, 100.0, ' %')))
        yield {'what': f'{what}, {rate:g} a month', 'arms': ARMS, 'found': len(one.minutes),
               'stated': '-', 'kept': None, 'minutes': minutes, 'sees': sees, 'ideal': best}
