"""Score of a recording by one fit [nats]: how well the description of the robot explains it.

Links have the nominal inertials, or deviate as descriptions typically do (HYPOTHESES); rotors and
friction are free, offsets small. The residual of the fit counts by its logarithm, as do measured
velocities that differ from the change of position, friction that drives, efforts whose size
differs from that of the links, and values no robot can have.

Source: marginal likelihood of a linear model with Gaussian priors, Bishop, Pattern recognition and
machine learning, 2006, section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.excerpt import COMPARED_SECONDS, Excerpt
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.inertia import symmetric
from robot_dynid.robot.model import STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray

#: rows of smoothed motion per independent one, and the independent rows that suffice: model errors
#: repeat in further ones
ROWS_PER_INDEPENDENT, ENOUGH_ROWS = 8.0, 20.0


class Hypothesis(NamedTuple):
    """Standard deviations of links from their description; loads at ends or ``anywhere``."""

    #: of all parameters of a link, of each parameter, and of the carried mass over the total mass
    factor: float
    each: float
    carried: float
    anywhere: bool = False


#: links are as described, or carry loads at the ends, or are off by factors
HYPOTHESES = (Hypothesis(0.05, 0.03, 0.0), Hypothesis(0.05, 0.03, 0.1),
              Hypothesis(1.1, 0.3, 0.1, True))
#: least mass of a link over the mean mass, its least length [m]; mass [kg] of undescribed links,
#: and effort [N m] of joints with such links
SMALL, SHORTEST_LINK, UNKNOWN_MASS, UNKNOWN_EFFORT = 0.02, 0.05, 5.0, 1e6
#: deviation of an offset over the effort; shares of efforts and of travel below which is noise
OFFSET_DEVIATION, LEAST_EFFORT, LEAST_TRAVEL_SHARE = 0.3, 0.04, 0.03
#: speeds [rad/s, m/s] at which friction may bend: so close, and of such a range, that motion twice
#: or half as fast explains no friction better
RAMPS = 0.005, 0.02, 0.08, 0.3, 1.2
#: friction drives from this share of rms effort times rms speed, and by this many deviations
DRIVING, DEVIATIONS = 0.03, 6.0
#: the size of efforts is known to this factor, and the least size that counts; the size at one
#: joint is determined if at most this share of the power remains
SIZE, LEAST_SIZE, UNEXPLAINED_POWER = 3.0, 0.01, 0.5
#: share of the gravity over random poses from which nominal efforts are informative, and the
#: number of poses
LOADED_SHARE, GRAVITY_POSES = 0.3, 200
#: travel [rad, m] of a moving joint in a block, and the least number of such blocks
BLOCK_TRAVEL, BLOCKS = 2e-3, 8
#: factor beyond position and speed limits, or beyond what any joint can do, rad and rad/s (m and
#: m/s), and factor beyond effort limits, that indicates another unit
BEYOND_LIMITS, REACH, FAST, BEYOND_EFFORT = 3.0, np.pi, 3.0, 10.0
#: typical largest effort over its limit, and the scale of its logarithm, of all joints and of
#: each: Cauchy distributed, so that it decides between units and never proves a fault
USED_EFFORT, USE_VARIES = 0.2, 1.5
#: range of steps [s] of joint states, the usual step, and nats per factor e beyond the range
SHORTEST_STATE_STEP, LONGEST_STATE_STEP, USUAL_STATE_STEP, STAMPS = 1e-4, 0.5, 4e-3, 100.0
#: joints that travel this far [rad, m] reach this share of their speed limits, for steps above the
#: last [s]
FAR_TRAVEL, SPEED_LIMIT_SHARE, RARE = 0.5, 0.01, 0.05
#: dry friction that holds a joint, over the largest gravity on it, and over that on any joint
HELD, HELD_LIGHT = 0.15, 0.06
#: difference between poses, travel of a moving joint, and its change between rows [rad, m] in at
#: least this share of the rows
POSE, MOVED_TRAVEL, ROW_STEP, MOVING_ROWS = 0.2, 0.02, 1e-4, 0.06
#: rounding of a system over its largest number, least relative singular value of non-collinear
#: columns, least divisor
SYSTEM_ROUNDING, COLLINEAR, LEAST_DIVISOR = 1e-10, 1e-6, 1e-12
#: alternations of weights and fit from either start: nominal links, and none; multiples of the
#: angle in the torque of a spring
WEIGHT_FIT_ROUNDS, WAVES = 4, 2


@dataclass(frozen=True, eq=False)
class Score:
    """The score of a recording [nats], less is better, and the shares (n,) it rests on.

    ``left`` is the unexplained share of the efforts, ``off`` the difference of travel by velocity
    and by position over the travel, NaN if not measured; ``size`` is fitted over nominal effort,
    ``weight`` the share of nominal links in the effort, ``taken`` that of friction in effort times
    speed. ``parts`` are the nats of efforts (n,), travel (n,), friction (n,), size (n,), links and
    limits; ``penalty`` is added.
    """

    left: FloatArray
    off: FloatArray
    size: FloatArray
    parts: tuple[FloatArray, ...]
    weight: FloatArray
    taken: FloatArray
    penalty: float = 0.0

    @property
    def total(self) -> float:
        """The score [nats]."""
        return self.penalty + sum(float(part.sum()) for part in self.parts)


class Friction(NamedTuple):
    """Orthonormal basis of friction and rotors of each joint, zero at rest, and their power."""

    #: (n, N, f)
    basis: FloatArray
    #: (n, N): times the efforts, the power that friction takes
    drive: FloatArray


class Explained:
    """An excerpt of a robot, and which joints move, which a change of units does not affect."""

    def __init__(self, robot: RobotModel, rows: Excerpt) -> None:
        self.stated, self.rows, self.sprung = robot, rows, tuple[int, ...]()
        self.moves = np.array([len(q) > 1 and np.ptp(q) > MOVED_TRAVEL and np.mean(
            np.abs(np.diff(q)) > ROW_STEP) > MOVING_ROWS for q in rows.position.T], dtype=bool)
        self.travels = (np.count_nonzero(np.abs(rows.travel) > BLOCK_TRAVEL, axis=0) >= BLOCKS) & (
            np.isfinite(rows.integrated).any(axis=0))
        capacity = _capacity(robot)
        # the effort [N m] of a joint at rest that dry friction takes, in either direction
        self.held = np.maximum(HELD * capacity, HELD_LIGHT * capacity.max()) if (
            self.described and capacity.any()) else np.full(robot.n, UNKNOWN_EFFORT)
        # dry friction holds every pose with another effort
        jumps = np.abs(np.diff(rows.position[:, ~self.moves], axis=0)) > POSE
        self.poses = min(1.0 + float(np.any(jumps, axis=1).sum()), ENOUGH_ROWS)
        self.length = max(len(rows), 1)
        self.count = float(np.clip(self.length / ROWS_PER_INDEPENDENT, 1.0, ENOUGH_ROWS))

    def changed(
        self, robot: RobotModel, rows: Excerpt, order: NDArray[np.int64] | None = None,
        sprung: Sequence[int] = (),
    ) -> Explained:
        """Return another excerpt of this motion, with its joints in ``order`` (n,)."""
        one = copy(self)
        one.stated, one.rows, one.sprung = robot, rows, tuple(sprung)
        if order is not None:
            one.moves, one.travels, one.held = (
                table[order] for table in (self.moves, self.travels, self.held))
        return one

    @property
    def described(self) -> bool:
        """Whether the description has inertials."""
        return bool(self.stated.tree.nominal.any()) and not _misleading(self.stated)

    def friction(self) -> Friction:
        """Return the basis of friction and rotors."""
        n, coupling = self.stated.n, self.stated.drive.coupling
        turns = np.eye(n) if coupling is None else np.asarray(coupling)
        motors = [np.flatnonzero(column) for column in turns.T]
        index = np.full((n, max(len(one) for one in motors)), len(turns))
        for j, one in enumerate(motors):
            index[j, :len(one)] = one
        speed, rate = (np.pad(table @ turns.T, ((0, 0), (0, 1))) for table in (
            self.rows.velocity, self.rows.acceleration))
        columns = np.concatenate([signal[:, index] for signal in (
            *(np.tanh(speed / ramp) for ramp in RAMPS), speed, rate)], axis=2).transpose(1, 0, 2)
        scaled = columns / np.maximum(np.linalg.norm(columns, axis=1), LEAST_DIVISOR)[:, None]
        basis, values, right = np.linalg.svd(scaled, full_matrices=False)
        used = self.moves[:, None] & (values > COLLINEAR * values[:, :1])
        basis = basis * used[:, None]
        power = np.einsum('jrf,rj->jf', scaled, self.rows.velocity) / max(len(self.rows), 1)
        power[:, (len(RAMPS) + 1) * index.shape[1]:] = 0.0
        drive = basis @ ((right @ power[:, :, None])[:, :, 0] / np.where(used, values, 1.0)
                         )[:, :, None]
        return Friction(basis, drive[:, :, 0])

    def travel(self, integrated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return shares (n,) by which travel and ``integrated`` (K, n) differ, and nats (n,)."""
        measured = np.isfinite(self.rows.travel) & np.isfinite(integrated)
        count = measured.sum(axis=0)
        travel, summed, difference = (np.sqrt(np.sum(np.where(measured, table, 0.0)**2, axis=0))
                                      for table in (self.rows.travel, integrated,
                                                    integrated - self.rows.travel))
        with np.errstate(invalid='ignore', divide='ignore'):
            off = difference / np.sqrt(travel * np.maximum(summed, 1e-3 * travel))
        off[~self.travels | (count == 0)] = np.nan
        return off, np.where(np.isfinite(off), np.minimum(count / 2.0, ENOUGH_ROWS) * np.log(
            np.fmax(off, LEAST_TRAVEL_SHARE)), 0.0)

    @cached_property
    def travel_slopes(self) -> FloatArray:
        """Integrated velocity over travel (n,), NaN for joints that do not move."""
        travel = np.where(np.isfinite(self.rows.integrated) & self.travels, self.rows.travel, 0.0)
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray(np.nansum(travel * self.rows.integrated, axis=0)
                              / np.nansum(travel**2, axis=0))

    @property
    def free_sizes(self) -> FloatArray:
        """The size (n,) of efforts over those of nominal links, each alone; NaN if undetermined.
"""
        fits, each = Fits([self]), np.arange(self.stated.n)
        products, power = fits.products[0, each, fits.k + each], fits.nominal_power[0]
        dot, torque = products[:, :fits.links].sum(axis=1), products[each, fits.k + each]
        with np.errstate(divide='ignore', invalid='ignore'):
            shown = self.described & (dot > 0.0) & (
                torque - dot**2 / power < UNEXPLAINED_POWER * torque)
            return np.where(shown, dot / power, np.nan)

    def score(self, rounds: int = WEIGHT_FIT_ROUNDS) -> Score:
        """Return the score of the excerpt as it is."""
        n = self.stated.n
        return Fits([self]).scores([0], np.arange(n)[None], np.ones((1, n)), rounds)[0]

    def limits(self) -> float:
        """Return the nats of positions, speeds and stamps that no robot has."""
        rows, limits, cost = self.rows, self.stated.limits, 0.0
        if np.isfinite(rows.step) and rows.step > 0.0:
            cost += STAMPS * np.log(max(
                rows.step / LONGEST_STATE_STEP, SHORTEST_STATE_STEP / rows.step, 1.0))
            cost += 0.2 * abs(np.log(rows.step / USUAL_STATE_STEP))
        if not len(rows):
            return float(cost)
        reach = np.fmax(np.abs(limits.lower), np.abs(limits.upper))
        far = np.abs(rows.position).max(axis=0) / np.fmax(reach, REACH)
        far[~np.isfinite(reach)] = 0.0
        long = rows.seconds > 0.5 * COMPARED_SECONDS * min(
            1.0, rows.seconds.max(initial=1e-9) / COMPARED_SECONDS)
        speed = np.abs(rows.travel[long] / rows.seconds[long, None]).max(axis=0, initial=0.0)
        fast = speed / np.fmax(limits.velocity, FAST)
        cost += ENOUGH_ROWS * float(np.log(np.maximum(
            np.append(far, fast) / BEYOND_LIMITS, 1.0)).sum())
        wide = np.count_nonzero(np.ptp(rows.position, axis=0) > FAR_TRAVEL) >= min(
            2, self.stated.n)
        limited = limits.velocity > 0.0
        used = np.max(speed[limited] / limits.velocity[limited], initial=0.0)
        if rows.step > RARE and wide and 0.0 < used < SPEED_LIMIT_SHARE:
            cost += ENOUGH_ROWS * np.log(SPEED_LIMIT_SHARE / used)
        return float(cost)


class Fits:
    """Normal equations of several excerpts (g) of equal length, for all changes of efforts.

    The unknowns (k) are, in order: a factor of each link (m), deviations of its parameters (10 m),
    offsets (n), and the waves of a spring.
    """

    def __init__(self, excerpts: Sequence[Explained]) -> None:
        self.excerpts = excerpts
        self.n = n = excerpts[0].stated.n
        self.rows = len(excerpts[0].rows)
        self.links = m = excerpts[0].stated.tree.n
        self.k = k = 11 * m + n + 2 * WAVES
        by_velocity = {key: one.friction() for key, one in {
            id(one.rows.velocity): one for one in excerpts}.items()}
        self.friction = [by_velocity[id(one.rows.velocity)] for one in excerpts]
        links = np.stack([rigid_body.regressor(
            one.stated if one.stated.drive.kind != 'gravity_compensated_torque'
            else one.stated.with_gravity(np.zeros(3)),
            (one.rows.position, one.rows.velocity, one.rows.acceleration)) for one in excerpts])
        nominal = np.stack([one.stated.tree.nominal * one.described for one in excerpts])
        bodies = np.einsum('gjbpr,gbp->gjbr', links.reshape(*links.shape[:2], m, 10, -1), nominal)
        self.torque = np.stack([one.rows.torque for one in excerpts])
        angle = np.stack([one.rows.position.T for one in excerpts])
        self.sprung = np.array([[j in one.sprung for j in range(n)] for one in excerpts])
        #: products of the columns of a joint and the efforts with another, less the friction part
        self.products = np.zeros((len(excerpts), n, k + n, k + n))
        #: the power that friction takes of them
        self.power = np.zeros((len(excerpts), n, k + n))
        for j, carried in enumerate(excerpts[0].stated.moved):
            bodies_here = np.flatnonzero(carried)
            place = np.concatenate([
                bodies_here, m + (10 * bodies_here[:, None] + np.arange(10)).ravel(),
                [11 * m + j], np.arange(11 * m + n, k + n)])
            waves = angle[:, j, None] * np.arange(1.0, WAVES + 1.0)[:, None]
            sprung = self.sprung[:, j, None, None]
            columns = np.concatenate([
                bodies[:, j, bodies_here], links[:, j, place[len(bodies_here):-1 - n - 2 * WAVES]
                                                 - m], np.ones_like(waves[:, :1]),
                np.sin(waves) * sprung, np.cos(waves) * sprung,
                self.torque.transpose(0, 2, 1)], axis=1)
            taken = columns @ np.stack([one.basis[j] for one in self.friction])
            self.products[:, j, place[:, None], place] = columns @ columns.transpose(
                0, 2, 1) - taken @ taken.transpose(0, 2, 1)
            self.power[:, j, place] = (
                columns @ np.stack([one.drive[j] for one in self.friction])[:, :, None])[:, :, 0]
        self.stated = np.append(np.ones(m), np.zeros(k - m))
        #: products of nominal efforts and columns (g, n, k), and their squares (g, n)
        self.nominal = self.products[:, :, :k, :m].sum(axis=3)
        self.nominal_power = self.nominal[:, :, :m].sum(axis=2)

    def scores(
        self, of: Sequence[int], orders: NDArray[np.int64], factors: FloatArray,
        rounds: int = WEIGHT_FIT_ROUNDS,
    ) -> list[Score]:
        """Return scores of excerpts ``of`` (m,), efforts in ``orders`` times ``factors`` (m, n).

        ``rounds`` of the fit; 1 for a first pass.
        """
        n, k, rows, which = self.n, self.k, self.rows, np.asarray(of)
        travels = [one.travel(one.rows.integrated) for one in self.excerpts]
        limits = np.array([one.limits() for one in self.excerpts])[which]
        if rows < 3:
            zero = np.zeros(n)
            return [Score(zero + np.nan, travels[g][0], zero + 1.0, (
                zero, travels[g][1], zero, zero, np.zeros(1), limits[i:i + 1]), zero, zero)
                    for i, g in enumerate(of)]
        moves, largest = self._each('moves')[which], np.abs(self.torque).max(axis=1)
        power = np.maximum(np.sum(self.torque**2, axis=1)[which[:, None], orders] * factors**2,
                           LEAST_DIVISOR)
        efforts, left, links, values = self._fit(which, orders, factors, power, rounds)
        # friction that drives its joint
        lost = self.power[which[:, None], np.arange(n), k + orders] * factors - (
            self.power[which, :, :k] @ values[:, :, None])[:, :, 0]
        size = np.sqrt(power / rows)
        speed, drive = (np.stack([np.linalg.norm(table, axis=axis) for table in tables])[which]
                        for axis, tables in ((0, [one.rows.velocity for one in self.excerpts]),
                                             (1, [one.drive for one in self.friction])))
        taken = np.where(
            moves, lost / np.maximum(size * speed / np.sqrt(rows), LEAST_DIVISOR), 0.0)
        deviation = drive * left * size * np.sqrt(
            ROWS_PER_INDEPENDENT * rows / self.excerpts[0].length)
        friction = np.where(taken < -DRIVING, 0.5 * np.minimum(
            -lost / np.maximum(deviation, LEAST_DIVISOR), DEVIATIONS)**2, 0.0)
        # size of fitted over nominal link efforts
        shown = moves & (self.nominal_power[which] > 0.0)
        square = np.where(shown, self.nominal_power[which], 1.0)
        fitted = np.where(shown, (self.nominal[which, :, :11 * self.links] @ values[
            :, :11 * self.links, None])[:, :, 0] / square, 1.0)
        weight = np.where(shown, np.sqrt(square / power), 0.0)
        least = rows * (LOADED_SHARE * np.stack(
            [_capacity(one.stated) for one in self.excerpts])[which])**2
        cost = 0.5 * np.where(shown, square / (square + left**2 * power + least), 0.0) * (
            np.log(np.clip(fitted, LEAST_SIZE, 1.0)) / np.log(SIZE))**2
        # efforts of another size than their limits
        limit = np.stack([one.stated.limits.effort for one in self.excerpts])[which]
        peak = largest[which[:, None], orders] * np.abs(factors)
        stated = moves & (limit > 0.0) & np.isfinite(limit) & (peak > 0.0)
        used = np.log(
            np.where(stated, peak, USED_EFFORT) / np.where(stated, limit, 1.0) / USED_EFFORT)
        common = np.median(used, axis=1)[:, None]
        limits = limits + ENOUGH_ROWS * np.maximum(
            used - np.log(BEYOND_EFFORT / USED_EFFORT), 0.0).sum(axis=1) + np.log1p(
                (np.hstack([common, used - common]) / USE_VARIES)**2).sum(axis=1)
        return [Score(left[i], travels[g][0], fitted[i], (
            efforts[i], travels[g][1], friction[i], cost[i], links[i:i + 1], limits[i:i + 1]),
            weight[i], taken[i]) for i, g in enumerate(of)]

    def _each(self, name: str) -> FloatArray:
        return np.stack([getattr(one, name) for one in self.excerpts])

    def _fit(
        self, which: NDArray[np.int64], orders: NDArray[np.int64], factors: FloatArray,
        power: FloatArray, rounds: int,
    ) -> tuple[FloatArray, ...]:
        """Return the fit by the best of the hypotheses and starts.

        Nats of efforts (m, n), residual shares (m, n), nats of links (m,), unknowns (m, k).
        """
        from scipy.linalg.lapack import dposv

        n, k, rows, one = self.n, self.k, self.rows, self.excerpts[0]
        moves, held = self._each('moves')[which], rows * self._each('held')[which]**2
        counts = np.where(moves, one.count, one.poses)
        gram = self.products[:, :, :k, :k]
        efforts_at = which[:, None], np.arange(n), k + orders
        products = self.products[efforts_at][:, :, :k] * factors[:, :, None]
        squares = self.products[(*efforts_at, k + orders)] * factors**2
        size, least = np.sqrt(power / rows), np.where(moves, LEAST_EFFORT**2 * power, 0.0)
        offsets = np.where(moves, OFFSET_DEVIATION, 0.0) * size
        springs = np.repeat(np.sum(self.sprung[which] * size, axis=1)[:, None], 2 * WAVES, axis=1)
        nominal = products[:, :, :self.links].sum(axis=2)
        as_nominal = squares - 2.0 * nominal + self.nominal_power[which]
        shift = products - self.nominal[which]
        hypotheses = HYPOTHESES[-1:] if not one.described else (
            HYPOTHESES[::2] if rounds == 1 else HYPOTHESES)
        fits = []
        for hypothesis, start in product(hypotheses, [as_nominal, squares][:rounds]):
            prior = np.hstack([np.stack([_deviations(one.stated, one.described, hypothesis)
                                         for one in self.excerpts])[which], offsets, springs])
            left, state, volume = start, np.empty((len(which), k)), np.empty(len(which))
            for _ in range(rounds):
                weights = counts / np.where(moves, np.maximum(left, least), held)
                pull = prior * (weights[:, None] @ shift)[:, 0]
                for i, g in enumerate(which):
                    system = (weights[i] @ gram[g].reshape(n, -1)).reshape(k, k)
                    system *= prior[i][:, None] * prior[i]
                    system.flat[::k + 1] += 1.0 + SYSTEM_ROUNDING * system.max()
                    factor, state[i], indefinite = dposv(system, pull[i], lower=1)
                    if indefinite:  # by rounding: nothing is fitted
                        state[i], factor = 0.0, np.eye(k)
                    volume[i] = np.log(factor.diagonal()).sum()
                values = self.stated + prior * state
                whole = np.stack([(gram[g] @ v) @ v for g, v in zip(which, values, strict=True)])
                left = np.maximum(squares - 2.0 * (products @ values[:, :, None])[:, :, 0]
                                  + whole, SYSTEM_ROUNDING * whole)
            share = np.sqrt(np.maximum(left, LEAST_EFFORT**2 * power) / power)
            efforts = counts * (np.where(moves, np.log(share * size), 0.5 * (
                np.log(held / rows) + left / held)) - np.log(np.abs(factors)))
            fits.append((efforts, share, 0.5 * np.sum(state**2, axis=1) + volume, values))
        best = np.argmin([fit[0].sum(axis=1) + fit[2] for fit in fits], axis=0)
        return tuple(np.stack(tables)[best, np.arange(len(which))]
                     for tables in zip(*fits, strict=True))


@lru_cache(maxsize=64)
def _misleading(robot: RobotModel) -> bool:
    """Return True if the inertials of a robot are in another unit."""
    return any(one.misleading for one in implausible_inertials(robot))


@lru_cache(maxsize=64)
def _capacity(robot: RobotModel) -> FloatArray:
    """Return the gravity effort (n,) [N m] of the nominal links over random poses, RMS."""
    generator = np.random.default_rng(0)
    lower, upper = (np.where(np.isfinite(x), x, side * np.pi) for x, side in (
        (robot.limits.lower, -1.0), (robot.limits.upper, 1.0)))
    poses = generator.uniform(lower, upper, (GRAVITY_POSES, robot.n))
    weight = rigid_body.gravity_effort(robot.with_gravity(STANDARD_GRAVITY), poses)
    return np.asarray(np.sqrt(np.mean(weight**2, axis=0)))


@lru_cache(maxsize=64)
def _deviations(robot: RobotModel, described: bool, hypothesis: Hypothesis) -> FloatArray:
    """Return standard deviations (11 n) of the factors and the parameters of links."""
    robot = robot.tree
    n = robot.n
    nominal = robot.nominal if described else np.zeros((n, 10))
    mass = nominal[:, 0].sum() if described else UNKNOWN_MASS * n
    lengths = np.maximum(np.linalg.norm(robot.translations, axis=1), SHORTEST_LINK)
    ends = robot.carried.sum(axis=1) == 1
    scales = np.zeros((n, 10))
    for i, body in enumerate(nominal):
        size = max(float(lengths[i]), float(lengths[robot.parents == i].max(initial=0.0)))
        if body[0] > 0.0:
            size = max(size, float(np.sqrt(max(np.trace(symmetric(body[4:])), 0.0) / body[0])))
        carried = hypothesis.carried * mass * (ends[i] or hypothesis.anywhere)
        weight = np.hypot(hypothesis.each * (abs(body[0]) + SMALL * mass / n),
                          carried if described else mass / n)
        scales[i] = weight * np.repeat([1.0, size, size**2], [1, 3, 6])
    return np.append(np.full(n, hypothesis.factor), scales.ravel())
