"""Health of a robot: by how much its parameters have departed from the served model.

Parameters that belong together are judged together: the friction of a joint, its rotor, its gear,
the inertia of a link; and each of them alone, since that one changed and the others did not is
more easily seen than that any did. Friction of a joint is judged beside that of the others: all
fall while an arm warms up, and what tells a fault is one that does not go with them. Joints of
which a change has been found say nothing about the others.

Where nothing changes but by what is expected, the estimate of d parameters departs from the model
by

    a + e,    a ~ N(0, s (1 - w) C),    e ~ N(0, w C).

The first part, friction and the error of the model, is another on another day, and the same all
day; its scale s is known as well as a few days tell, with nu degrees of freedom (inverse
chi-square). The second, noise, forgets over the memory tau: within n memories its squared distance
u by w C exceeds a high level with the probability

    1 - exp(-n 2 u f(u))

of an Ornstein-Uhlenbeck process that leaves a ball, with the density f of chi-square. The squared
distance by C exceeds x on a day no more often than the root of that of the first part, which is
(1 - w) d (nu - 2) / nu times Fisher's F of d and nu, and the largest noise of that day add up to
the root of x. The levels are those at which the probabilities of all groups, each with the same
share, and within a group of all its tests, add up to the false alarms that were asked for. A robot
that moves for less of the day, and joints that rest, only lower them.

A test of parameters of which only one, i, differs is the generalised likelihood ratio

    (C^-1 x)_i^2 / (C^-1)_ii

of a departure x.

Source: Leadbetter, Lindgren, Rootzen 1983, Extremes, chapter 12 (alpha = 1), for d = 1; the same
for the distance, a diffusion, for d > 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import number
from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia, Springs
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.numbers import NumberRange
from robot_dynid.settings import require_allowed, setting
from robot_dynid.types import FloatArray
from robot_dynid_extras.health.recursive_identification import (
    MEMORY,
    RecursiveIdentification,
    prior_freedom,
)

#: days of a month, the unit of the rate of false alarms; a day [s]
MONTH, DAY = 30.0, 24.0 * 3600.0
#: directions in which estimates have less than this share of the expected variance say nothing
LEAST_KNOWN = 1e-6
#: deviations of a normal distribution that hold 95 %
NORMAL = 1.96
#: deviations from zero beyond which a change is told as a share, too
CLEAR = 10.0
#: a group of which less than this share of the variance was taken off is not known yet
KNOWN = 0.1
#: changes of less than this [N m], as a share of what the model leaves over, raise no alarm
MATTERS = 0.1
#: logarithms of distances between which all levels are
LEVELS = -10.0, 50.0
#: largest noise of a day that is looked at, beyond the root of its degrees, and steps up to it
LARGEST, STEPS = 10.0, 200
#: steps in which the share of noise is told
SHARES = 0.005
#: deviations of a normal distribution beyond which 10 % are: what is seen is so with 90 %
SEEN = 1.28
#: what the groups of blocks are of a part
WORDS = {JointFriction: 'friction', RotorInertia: 'rotor', Springs: 'gear',
         RigidLinks: 'mass, first moments and inertia'}


@dataclass(frozen=True)
class HealthSettings:
    """``memory`` [s] of sliding; ``false_alarms`` per month, of all groups together.

    Of a group on the same day they are one. A robot that moves all day has no more.
    """

    memory: float = setting(120.0, MEMORY)
    false_alarms: float = setting(0.1, NumberRange(1e-6, 1e3))

    def __post_init__(self) -> None:
        require_allowed(self, '{} of the health')


class Condition(Enum):
    """Condition of a group of parameters."""

    OK = 'as expected'
    CHANGED = 'changed'
    STALE = 'not excited of late'
    UNKNOWN = 'not excited yet'


@dataclass(frozen=True)
class Group:
    """Base parameters that belong together, by their numbers, and what they are in words.

    ``shared`` where they are friction, which all joints share some of the change of.
    """

    words: str
    columns: tuple[int, ...]
    shared: bool


@dataclass(frozen=True)
class Change:
    """One parameter ``words``: ``served`` by the model, ``now``, with its deviation ``std``.

    ``expected`` is what friction of other joints lets expect; a change by ``seen``, of it alone,
    would be an alarm with a probability of 90 %.
    """

    name: str
    words: str
    unit: str
    served: float
    now: float
    std: float
    expected: float
    seen: float

    @property
    def deviations(self) -> float:
        """Its size in deviations."""
        return abs(self.now - self.expected) / self.std if self.std > 0.0 else 0.0

    @property
    def sentence(self) -> str:
        """The change, with its interval of 95 %."""
        change = 100.0 * (self.now / self.served - 1.0) if self.served else 0.0
        share = f' ({change:+.0f} %)' if abs(change) >= 0.5 and \
            abs(self.served) > CLEAR * self.std else ''
        beside = f', {number(self.expected)} expected by the other joints' \
            if abs(self.expected - self.served) > self.std else ''
        return (f'{self.words} {number(self.served)} to {number(self.now)} '
                f'+- {number(NORMAL * self.std, 2)} {self.unit}{share}{beside}')


@dataclass(frozen=True)
class GroupHealth:
    """Health of a group of parameters.

    ``deviations`` from what is expected, by the test that shows most: those of a normal
    distribution with the same probability; ``level`` of them that is an alarm; ``torque`` [N m]
    of the change in recent motion, root mean square in the ``joint`` where it is largest, between
    ``low`` and ``high`` (95 %); ``changes`` of its parameters, ``idle`` [s] of motion since it was
    excited.
    """

    words: str
    condition: Condition
    deviations: float
    level: float
    joint: str
    torque: float
    low: float
    high: float
    changes: tuple[Change, ...]
    idle: float

    @property
    def largest(self) -> Change:
        """The change that is largest in its own deviations."""
        return max(self.changes, key=lambda one: one.deviations)

    @property
    def sentence(self) -> str:
        """Condition, largest change and torque in one sentence."""
        if self.condition is Condition.UNKNOWN:
            return str(self.condition.value)
        told = (f'{self.condition.value}: {self.largest.sentence}, {self.torque:.2g} N m '
                f'({self.low:.2g} to {self.high:.2g}) in {self.joint}')
        return told if self.condition is not Condition.STALE else \
            f'{told}; {self.idle:.0f} s of motion ago'


def groups_of(model: IdentifiedModel) -> tuple[Group, ...]:
    """Return the groups of all base parameters of a model, in its order."""
    torque, words = model.torque_model, model.torque_model.words
    found: dict[tuple[str, bool], list[int]] = {}
    column = 0
    for block, kept in zip(torque.blocks, torque.pivots_by_block, strict=True):
        what = next((text for kind, text in WORDS.items() if isinstance(block, kind)), '')
        for name in np.array(block.names, dtype=object)[kept]:
            part = words[name].part
            key = f'{part}: {what}' if part and what else name
            found.setdefault((key, isinstance(block, JointFriction)), []).append(column)
            column += 1
    return tuple(Group(key, tuple(columns), shared)
                 for (key, shared), columns in found.items())


def alarm_level(
    degrees: int, chance: float, freedom: float = np.inf, noise: float = 0.0,
    memories: float = 1.0,
) -> float:
    """Return the level of a squared distance that a day exceeds with a ``chance``.

    Of so many ``degrees``, by a covariance of which the share ``noise`` forgets over so many
    ``memories`` within a day; the rest stays that day, and is known with ``freedom``.
    """
    from scipy.optimize import brentq

    largest, weights = largest_noise(degrees, memories)

    def excess(logarithm: float) -> float:
        left = np.maximum(np.exp(logarithm) - np.sqrt(noise) * largest, 0.0)
        rest = max(1.0 - noise, np.finfo(np.float64).eps)
        return float(weights @ exceeded(left**2 / rest, degrees, freedom)) - chance

    return float(np.exp(2.0 * brentq(excess, *LEVELS)))


def largest_noise(degrees: int, memories: float) -> tuple[FloatArray, FloatArray]:
    """Return distances (m,), and how probable (m,) each is as the largest of a day.

    Of noise of so many ``degrees``, by its own covariance, which forgets so many ``memories``.
    """
    from scipy.special import gammaln

    found = np.sqrt(degrees) + np.linspace(0.0, LARGEST, STEPS + 1)[1:]
    half, square = 0.5 * degrees, found**2
    density = np.exp(half * np.log(0.5 * square) - 0.5 * square - gammaln(half))
    beyond = -np.expm1(-2.0 * max(memories, 1.0) * density)
    return found, -np.diff(np.concatenate([[1.0], beyond[:-1], [0.0]]))


def exceeded(square: FloatArray, degrees: int, freedom: float) -> FloatArray:
    """Return the probability (m,) of a larger ``square`` (m,) of a distance.

    Of so many ``degrees``, by a covariance that is known with ``freedom``.
    """
    from scipy.special import chdtrc, fdtrc

    own = square / (1.0 - 2.0 / freedom)
    return np.asarray(chdtrc(degrees, own) if np.isinf(freedom) else
                      fdtrc(degrees, freedom, own / degrees))


class Health:
    """Judges what a recursive identification has found, group by group."""

    def __init__(self, model: IdentifiedModel, settings: HealthSettings | None = None) -> None:
        self.settings = settings or HealthSettings()
        self.identification = RecursiveIdentification(model, self.settings.memory)
        self.groups = groups_of(model)
        self._words = model.torque_model.words
        self.chance = -float(np.expm1(
            -self.settings.false_alarms / MONTH / len(self.groups)))
        self._freedom = prior_freedom(model)
        self._levels: dict[tuple[int, int, float, float], float] = {}

    def level(self, degrees: int, tests: int, freedom: float, noise: float) -> float:
        """Return the level of a squared distance of so many ``degrees`` that is an alarm.

        It is one of so many ``tests`` of a group; ``freedom`` and share of ``noise`` are those of
        the covariance.
        """
        key = degrees, tests, freedom, min(SHARES * np.ceil(noise / SHARES), 1.0)
        if key not in self._levels:
            self._levels[key] = alarm_level(degrees, self.chance / tests, *key[2:],
                                            DAY / self.settings.memory)
        return self._levels[key]

    @one_blas_thread()
    def judged(self) -> tuple[GroupHealth, ...]:
        """Return the health of all groups now."""
        found = self.identification
        departure = Departure.of(found)
        left = found.left_over(found.values)
        apart: set[int] = set()
        while True:
            every = [self._compared(group, departure, apart) for group in self.groups]
            beyond = [one.excess if group.shared and not apart.issuperset(group.columns) else 0.0
                      for group, one in zip(self.groups, every, strict=True)]
            if max(beyond) <= 1.0:
                break
            apart.update(self.groups[int(np.argmax(beyond))].columns)
        return tuple(self._judged(group, one, left)
                     for group, one in zip(self.groups, every, strict=True))

    def _compared(self, group: Group, departure: Departure, apart: set[int]) -> Compared:
        """Return the departure of a group beside the levels that are alarms.

        Friction is compared with that of the joints that are not ``apart``.
        """
        own = list(group.columns)
        others = sorted({column for one in self.groups if one.shared for column in one.columns}
                        - {*own} - apart) if group.shared else []
        seen = departure.beside(own, others)
        found, freedom = seen.distances(), float(self._freedom[own].min())
        return Compared(seen.values, found, np.array([
            self.level(max(one.degrees, 1), len(found), freedom, one.noise) for one in found]),
            seen.sizes)

    def _judged(
        self, group: Group, compared: Compared, left: FloatArray,
    ) -> GroupHealth:
        found, own = self.identification, list(group.columns)
        scale, departure = found.scale[own], np.zeros(len(found.values))
        test, departure[own] = compared.distances[compared.worst], scale * compared.values
        joint, torque, reach = self._torque(own, found.root, departure)
        stays = np.sqrt(np.diag(found.followed.covariance)[own])
        idle = found.seconds - float(found.excited[own].max())
        if found.learning or np.isinf(idle) or 1.0 - float(stays.min()) ** 2 < KNOWN:
            condition = Condition.UNKNOWN
        elif compared.excess > 1.0 and torque > MATTERS * left[joint]:
            condition = Condition.CHANGED
        else:
            condition = Condition.STALE if idle > found.memory else Condition.OK
        model = found.model
        changes = []
        for k, off, std, seen in zip(own, departure[own], scale * stays, scale * compared.seen,
                                     strict=True):
            words, now = self._words[model.names[k]], float(found.values[k])
            changes.append(Change(
                model.names[k], words.words, words.unit, float(model.values[k]), now,
                float(std), now - float(off), float(seen)))
        owner, freedom = model.torque_model.robot.row_joints[joint], self._freedom[own].min()
        level = float(compared.levels[compared.worst])
        return GroupHealth(
            group.words, condition, normal_deviations(test.square, test.degrees, freedom),
            normal_deviations(level, max(test.degrees, 1), freedom), model.joints[owner], torque,
            max(torque - reach, 0.0), torque + reach, tuple(changes), idle)

    def _torque(self, own: list[int], root: FloatArray, departure: FloatArray
                ) -> tuple[int, float, float]:
        """Return the joint that the change acts on most, its torque and half the interval."""
        recent, structure = self.identification.recent, self.identification.model.torque_model
        if recent is None:
            return 0, 0.0, 0.0
        mask = np.zeros(len(departure))
        mask[own] = 1.0
        size = recent.torque(structure.structure, (mask * departure)[None])
        reach = NORMAL * recent.torque(structure.structure, mask * root)
        joint = int(np.argmax(size))
        return joint, float(size[joint]), float(reach[joint])


@dataclass(frozen=True)
class Distance:
    """A squared distance from what is expected, along so many directions (``degrees``).

    ``noise`` is its share of the covariance.
    """

    square: float
    degrees: int
    noise: float


@dataclass(frozen=True, eq=False)
class Departure:
    """Departure ``values`` (d,) of parameters from what is expected, in its deviations.

    ``covariance`` (d, d) by what is expected, of which ``scatter`` (d, d) is noise.
    """

    values: FloatArray
    covariance: FloatArray
    scatter: FloatArray

    @classmethod
    def of(cls, found: RecursiveIdentification) -> Departure:
        """Return that of all parameters which were followed."""
        return cls(found.followed.values, found.followed.unchanged, found.followed.scatter)

    def beside(self, own: list[int], others: list[int]) -> Departure:
        """Return the departure of ``own`` parameters from what those of ``others`` let expect."""
        white = whitening(self.covariance[np.ix_(others, others)])
        from_all = np.zeros((len(own), len(self.values)))
        from_all[np.arange(len(own)), own] = 1.0
        from_all[:, others] = -self.covariance[np.ix_(own, others)] @ white @ white.T
        return Departure(from_all @ self.values, from_all @ self.covariance @ from_all.T,
                         from_all @ self.scatter @ from_all.T)

    def distances(self) -> tuple[Distance, ...]:
        """Return that of all parameters, then, of several, that of each by itself."""
        white = whitening(self.covariance)
        alone = [white @ row[:, None] / np.linalg.norm(row) if row.any() else white[:, :0]
                 for row in (white if len(white) > 1 else ())]
        return tuple(self._along(one) for one in (white, *alone))

    @property
    def sizes(self) -> FloatArray:
        """Deviations (d,) of each parameter where the others depart by nothing."""
        steep = np.linalg.norm(whitening(self.covariance), axis=1)
        return np.asarray(np.where(steep > 0.0, 1.0 / np.where(steep > 0.0, steep, 1.0), np.inf))

    def _along(self, white: FloatArray) -> Distance:
        """Return the distance along directions ``white`` (d, m) in which the variance is one."""
        degrees = white.shape[1]
        noise = float(np.trace(white.T @ self.scatter @ white)) / max(degrees, 1)
        return Distance(float(np.sum((white.T @ self.values) ** 2)), degrees, min(noise, 1.0))


@dataclass(frozen=True, eq=False)
class Compared:
    """Departure ``values`` (d,) of a group, its ``distances``, and ``levels`` that are alarms.

    ``sizes`` (d,) are the deviations of parameters of which the others are as expected.
    """

    values: FloatArray
    distances: tuple[Distance, ...]
    levels: FloatArray
    sizes: FloatArray

    @property
    def worst(self) -> int:
        """Number of the distance that shows most."""
        return int(np.argmax([one.square for one in self.distances] / self.levels))

    @property
    def excess(self) -> float:
        """The square of this distance, in terms of its level."""
        return self.distances[self.worst].square / float(self.levels[self.worst])

    @property
    def seen(self) -> FloatArray:
        """Changes (d,) of single parameters that are alarms with 90 %."""
        return (np.sqrt(self.levels[-len(self.values):]) + SEEN) * self.sizes


def whitening(covariance: FloatArray) -> FloatArray:
    """Return directions W (d, m) in which the variance is one: W^T C W = 1.

    Of a ``covariance`` C (d, d); directions that nothing is known of yet are left out.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > LEAST_KNOWN
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def normal_deviations(square: float, degrees: int, freedom: float = np.inf) -> float:
    """Return the deviations of a normal distribution as probable as a distance, two-sided.

    ``square`` of the distance of so many ``degrees``, by a covariance known with ``freedom``.
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    if degrees == 0 or square <= 0.0:
        return 0.0
    probability = 0.5 * float(exceeded(np.array(square), degrees, freedom))
    if (np.isinf(freedom) and degrees == 1) or probability == 0.0:
        return float(np.sqrt(square))
    tail, highest = np.log(probability), np.sqrt(square / (1.0 - 2.0 / freedom))
    return float(brentq(lambda z: log_ndtr(-z) - tail, 0.0, highest))
