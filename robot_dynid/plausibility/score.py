"""Score of a recording by one fit: how well the description of the robot explains it, in nats.

Links have the nominal inertials, or others as far as descriptions are off (HYPOTHESES), rotors and
friction are free, offsets small. What the fit leaves counts by its logarithm, as do measured
velocities that are not the change of position, friction that drives, efforts of another size than
the links give them, and what no robot can do. Source: marginal likelihood of a linear model with
Gaussian priors, Bishop, Pattern recognition and machine learning, 2006, section 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.plausibility.excerpt import BLOCK, Excerpt
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.inertia import symmetric
from robot_dynid.robot.model import STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray

#: rows of smoothed motion per independent one, and so many of these say all there is to say:
#: what no model has in it goes on in further ones
CORRELATED, ENOUGH = 8.0, 20.0
#: relative deviations of the mass of a link by itself and of its ten parameters, and of what it
#: may carry over the mass of all: nothing, something at the ends, something anywhere
HYPOTHESES = ((0.05, 0.03, 0.0), (0.05, 0.03, 0.1), (1.1, 0.3, 0.1))
Hypothesis = tuple[float, float, float]
#: the least mass of a link as a share of the mean one, its least length [m]; the mass [kg] of
#: those of which nothing is known, and the effort [N m] of joints with such
SMALL, SHORT, UNKNOWN_MASS, UNKNOWN_EFFORT = 0.02, 0.05, 5.0, 1e6
#: deviation of an offset over the effort; shares of efforts and of travel below which is noise
OFFSET, LEAST, LEAST_MOTION = 0.3, 0.04, 0.03
#: friction bends at these speeds [rad/s, m/s]
RAMPS = 0.02, 0.2
#: friction drives where it has this share of rms effort times rms speed, and by so many deviations
DRIVING, DEVIATIONS = 0.03, 6.0
#: the size of efforts is known to this factor, and smaller ones count as the least; that of one
#: joint is shown by itself where at most this share of the power is left
SIZE, LEAST_SIZE, EXPLAINED = 3.0, 0.01, 0.5
#: share of what gravity is in any of so many poses from which on nominal efforts say something
LOADED, POSES = 0.3, 200
#: a joint moves in a block by this travel [rad, m], and in so many blocks
TRAVEL, BLOCKS = 2e-3, 8
#: share of the travel that velocities leave which say nothing
SAYS_NOTHING = 0.5
#: positions and speeds are this many times beyond limits, or what any joint can do, rad and rad/s
#: (m and m/s), efforts this many times, before they are another unit
BEYOND, REACH, FAST, BEYOND_EFFORT = 3.0, np.pi, 3.0, 10.0
#: steps [s] at which states come, the usual one, and nats of a step that is e times beyond
SHORTEST, LONGEST, USUAL, STAMPS = 1e-4, 0.5, 4e-3, 100.0
#: joints that travel as far [rad, m] reach this share of their speed limits
FAR, SLOW, RARE = 0.5, 0.01, 0.05
#: dry friction that holds a joint, over the largest weight on it, and over that on any joint
HELD, HELD_LIGHT = 0.15, 0.06
#: what tells poses apart, how far a joint moves, and by how much from row to row [rad, m], in this
#: share of the rows at least
POSE, MOVED, STEP, MOVING = 0.2, 0.02, 1e-4, 0.06
#: least of a well-conditioned system
ROUNDING = 1e-10
#: weights and fit in turn, from either start: nominal links, and none
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Score:
    """The score of a recording [nats], less is better, and shares (n,) that it rests on.

    ``left`` of the efforts is not explained, ``off`` is the difference of travel by velocity and
    by position over the travel; NaN where nothing was measured. ``parts`` are the nats of efforts
    (n,), travel (n,), friction (n,), size (n,), links and limits; ``weight`` (n,) is the share of
    the efforts that nominal links have, ``taken`` (n,) that of effort times speed that friction
    takes.
    """

    total: float
    left: FloatArray
    off: FloatArray
    size: FloatArray
    parts: tuple[FloatArray, ...]
    weight: FloatArray
    taken: FloatArray


class Explained:
    """Scores of an excerpt of a robot; those of changed efforts share the columns of the links."""

    def __init__(
        self, robot: RobotModel, rows: Excerpt, sprung: Sequence[int] = (),
        like: tuple[Explained, NDArray[np.int64]] | None = None,
    ) -> None:
        """Take what tells joints that move from others from one ``like`` it, with the order (n,).

        It does not depend on units, nor on the description.
        """
        self.stated, self.like = robot, like
        if robot.drive.kind == 'gravity_compensated_torque':
            robot = robot.with_gravity(np.zeros(3))
        self.robot = robot
        self.rows: Excerpt = rows
        self.sprung = tuple(sprung)
        self.known = bool(robot.nominal.any()) and not _misleading(robot)

    @cached_property
    def moves(self) -> NDArray[np.bool_]:
        """Whether joints (n,) move."""
        if self.like:
            return self.like[0].moves[self.like[1]]
        return np.array([np.ptp(q) > MOVED and np.mean(np.abs(np.diff(q)) > STEP) > MOVING
                         for q in self.rows.position.T] if len(self.rows) else
                        np.zeros(self.robot.n), dtype=bool)

    @cached_property
    def travels(self) -> NDArray[np.bool_]:
        """Whether joints (n,) move in blocks enough to compare velocity and position."""
        if self.like:
            return self.like[0].travels[self.like[1]]
        return np.array([np.count_nonzero(np.abs(t) > TRAVEL) >= BLOCKS and np.isfinite(v).any()
                         for t, v in zip(self.rows.travel.T, self.rows.integrated.T, strict=True)],
                        dtype=bool)

    @cached_property
    def _columns(self) -> list[FloatArray]:
        """Columns (N, k) of links, offsets and springs of every joint, less what friction can be.
        """
        rows, n = self.rows, self.robot.n
        links = rigid_body.regressor(
            self.robot, (rows.position, rows.velocity, rows.acceleration))
        found = []
        for j, basis in enumerate(self.bases):
            columns = np.zeros((len(rows), len(self._nominal)))
            columns[:, :10 * n] = links[j].T
            columns[:, 10 * n + j] = 1.0
            for place, spring in enumerate(self.sprung):
                if spring == j:
                    columns[:, 11 * n + 4 * place:11 * n + 4 * place + 4] = self._waves(j)
            found.append(columns - basis @ (basis.T @ columns))
        return found

    def _waves(self, j: int) -> FloatArray:
        """Return the columns (N, 4) of a spring at a joint."""
        angle = self.rows.position[:, j:j + 1] * np.array([1.0, 2.0])
        return np.hstack([np.sin(angle), np.cos(angle)])

    @cached_property
    def friction(self) -> list[FloatArray]:
        """Columns (N, f) of friction and rotor of every joint."""
        if self.like and self.like[0].rows.velocity is self.rows.velocity:
            return self.like[0].friction
        return [self._friction(j) for j in range(self.robot.n)]

    @cached_property
    def bases(self) -> list[FloatArray]:
        """Orthonormal bases (N, f) of what friction and rotor of a joint can be; none at rest."""
        if self.like and self.like[0].rows.velocity is self.rows.velocity:
            return self.like[0].bases
        found = []
        for moves, columns in zip(self.moves, self.friction, strict=True):
            sizes = np.linalg.norm(columns, axis=0)
            used = columns[:, sizes > 0.0] / sizes[sizes > 0.0]
            found.append(np.linalg.qr(used)[0] if moves else np.zeros((len(columns), 0)))
        return found

    def _friction(self, j: int) -> FloatArray:
        """Return columns (N, f) of dry and viscous friction, then rotors, of a joint."""
        coupling = self.robot.drive.coupling
        turns = np.eye(self.robot.n) if coupling is None else np.asarray(coupling)
        motors = turns[turns[:, j] != 0.0]
        speed = self.rows.velocity @ motors.T
        return np.hstack([*(np.tanh(speed / ramp) for ramp in RAMPS), speed,
                          self.rows.acceleration @ motors.T])

    @cached_property
    def _gram(self) -> FloatArray:
        return np.stack([c.T @ c for c in self._columns])

    @cached_property
    def _products(self) -> tuple[FloatArray, FloatArray]:
        """Columns of joint j times the torque of joint a: (n, n, k); squares (n, n) likewise."""
        torque = self.rows.torque
        products = np.stack([c.T @ torque for c in self._columns]).transpose(0, 2, 1)
        squares = np.stack([np.sum(torque**2, axis=0) - np.sum((b.T @ torque)**2, axis=0)
                            for b in self.bases])
        return products, squares

    @cached_property
    def _nominal(self) -> FloatArray:
        nominal = self.robot.nominal if self.known else np.zeros((self.robot.n, 10))
        return np.pad(nominal.ravel(), (0, self.robot.n + 4 * len(self.sprung)))

    def _root(self, hypothesis: Hypothesis, torque: FloatArray) -> FloatArray:
        """Return the root (k, k) of the covariance of links, offsets and springs."""
        n = self.robot.n
        found = np.zeros((len(self._nominal),) * 2)
        found[:10 * n, :10 * n] = _links(self.robot, self.known, hypothesis)
        place = np.arange(10 * n, len(found))
        found[place, place] = np.concatenate(
            [np.where(self.moves, OFFSET, 0.0) * torque, np.repeat(torque[list(self.sprung)], 4)])
        return found

    def score(
        self, order: NDArray[np.int64] | None = None, factor: FloatArray | None = None,
        rounds: int = ROUNDS,
    ) -> Score:
        """Return the score with the efforts in another ``order`` (n,), then times ``factor`` (n,).

        After so many ``rounds`` of the fit; with 1 it is a first look.
        """
        n = self.robot.n
        off, travel = self._travel
        limits = self._limits
        order = np.arange(n) if order is None else order
        factor = np.ones(n) if factor is None else factor
        nothing = np.zeros(n)
        if len(self.rows) < 3:
            parts = (nothing, travel, nothing, nothing, np.zeros(1), np.array([limits]))
            return Score(float(travel.sum() + limits), np.full(n, np.nan), off, np.ones(n), parts,
                         nothing, nothing)
        hypotheses: tuple[Hypothesis, ...] = HYPOTHESES if self.known else HYPOTHESES[-1:]
        hypotheses = hypotheses[::2] if rounds == 1 else hypotheses
        efforts, left, links, values = min(
            (self._fit(one, order, factor, rounds) for one in hypotheses),
            key=lambda fit: float(fit[0].sum()) + fit[2])
        torque = self.rows.torque[:, order] * factor
        friction, taken = self._driving(torque, self._torque(values), left)
        power = np.maximum(np.sum(torque**2, axis=0), 1e-300)
        size, cost, weight = self._size(values, power, left)
        most = np.abs(torque).max(axis=0)
        with np.errstate(invalid='ignore'):
            beyond = np.where(self.robot.limits.effort > 0.0, most / (
                BEYOND_EFFORT * self.robot.limits.effort), 0.0)
        limits = limits + float(ENOUGH * np.sum(np.log(np.maximum(beyond, 1.0))))
        parts = (efforts, travel, friction, cost, np.array([links]), np.array([limits]))
        return Score(sum(float(p.sum()) for p in parts), left, off, size, parts, weight, taken)

    def moved_as(self, rows: Excerpt, score: Score) -> Score:
        """Return the ``score`` of this with the measured velocities of other ``rows``."""
        off, travel = Explained(
            self.stated, rows, like=(self, np.arange(self.robot.n)))._travel
        parts = (score.parts[0], travel, *score.parts[2:])
        return replace(score, total=sum(float(p.sum()) for p in parts), off=off, parts=parts)

    @cached_property
    def _count(self) -> float:
        """Independent rows."""
        return float(np.clip(len(self.rows) / CORRELATED, 1.0, ENOUGH))

    @cached_property
    def _held(self) -> FloatArray:
        """The effort (n,) [N m] of joints that are held which dry friction takes, either way."""
        if self.like:
            return self.like[0]._held[self.like[1]]
        capacity = _capacity(self.robot)
        if not (self.known and capacity.any()):
            return np.full(self.robot.n, UNKNOWN_EFFORT)
        return np.asarray(np.maximum(HELD * capacity, HELD_LIGHT * capacity.max()))

    @cached_property
    def _poses(self) -> float:
        """Poses in which joints are held; dry friction holds each with another effort."""
        if self.like:
            return self.like[0]._poses
        jumps = np.abs(np.diff(self.rows.position[:, ~self.moves], axis=0)) > POSE
        return min(1.0 + float(np.any(jumps, axis=1).sum()), ENOUGH)

    def _fit(
        self, hypothesis: Hypothesis, order: NDArray[np.int64], factor: FloatArray, rounds: int,
    ) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        """Return nats of efforts (n,), shares left (n,), nats of links, and parameters (k,)."""
        gram, (products, squares) = self._gram, self._products
        n, count, rows = self.robot.n, self._count, len(self.rows)
        each = np.arange(n)
        from scipy import linalg

        products = products[each, order] * factor[:, None]
        squares = squares[each, order] * factor**2
        power = np.maximum(np.sum(self.rows.torque[:, order]**2, axis=0) * factor**2, 1e-12)
        root = self._root(hypothesis, np.sqrt(power / rows))
        nominal = self._nominal
        shift = products - gram @ nominal
        inner = root.T @ gram @ root
        pull, diagonal = shift @ root, np.diag_indices(len(root))
        moves, held = self.moves, rows * self._held**2
        counts = np.where(moves, count, self._poses)
        least = np.where(moves, LEAST**2 * power, 0.0)
        best = None
        start = squares - 2.0 * products @ nominal + nominal @ gram @ nominal
        size = np.maximum(start, least)
        for number in range(2 * rounds - (rounds == 1)):
            if number == rounds > 1:
                size = np.maximum(squares, least)
            weights = counts / np.where(moves, size, held)
            system = np.tensordot(weights, inner, 1)
            system[diagonal] += 1.0 + ROUNDING * system[diagonal].max()
            factors = linalg.cho_factor(system)
            state = linalg.cho_solve(factors, weights @ pull)
            values = nominal + root @ state
            whole = values @ gram @ values
            rest = np.maximum(squares - 2.0 * products @ values + whole, ROUNDING * whole)
            size = np.maximum(rest, least)
            left = np.sqrt(np.maximum(rest, LEAST**2 * power) / power)
            efforts = counts * (np.where(moves, np.log(left) + 0.5 * np.log(power / rows), 0.5 * (
                np.log(held / rows) + rest / held)) - np.log(np.abs(factor)))
            links = 0.5 * float(state @ state) + float(np.log(np.diag(factors[0])).sum())
            if best is None or efforts.sum() + links < best[0].sum() + best[2]:
                best = efforts, left, links, values
        assert best is not None
        return best

    def _driving(
        self, torque: FloatArray, links: FloatArray, left: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return nats (n,) of friction that drives its joint, and what it takes of the power (n,).

        Beside torque (N, n) of ``links``.
        """
        found, taken = np.zeros((2, self.robot.n))
        for j in np.flatnonzero(self.moves):
            basis, speed = self.friction[j], self.rows.velocity[:, j]
            friction = slice(0, basis.shape[1] // 4 * 3)
            coefficients = np.linalg.lstsq(basis, torque[:, j] - links[:, j], rcond=1e-6)[0]
            power = np.mean(basis[:, friction] * speed[:, None], axis=0)
            lost = float(power @ coefficients[friction])
            taken[j] = lost / max(rms(torque[:, j]) * rms(speed), 1e-300)
            if taken[j] < -DRIVING:
                spread = np.linalg.pinv(basis.T @ basis, rcond=1e-10, hermitian=True)
                deviation = np.sqrt(CORRELATED * float(power @ spread[friction, friction] @ power)
                                    ) * left[j] * rms(torque[:, j])
                found[j] = 0.5 * min(-lost / max(deviation, 1e-300), DEVIATIONS)**2
        return found, taken

    def _torque(self, values: FloatArray) -> FloatArray:
        """Return the torque (N, n) of links, offsets and springs."""
        rows, n = self.rows, self.robot.n
        robot = self.robot.with_nominal(values[:10 * n])
        torque = rigid_body.inverse_dynamics(
            robot, rows.position, rows.velocity, rows.acceleration) + values[10 * n:11 * n]
        for place, spring in enumerate(self.sprung):
            torque[:, spring] += self._waves(spring) @ values[
                11 * n + 4 * place:11 * n + 4 * place + 4]
        return torque

    def _size(
        self, values: FloatArray, power: FloatArray, left: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the size (n,) of fitted over nominal efforts of links, its nats (n,), the weight.

        The latter (n,) is the share of nominal links in efforts of this ``power`` (n,), of which
        the fit has ``left`` a share (n,).
        """
        n = self.robot.n
        size, cost, weight = np.ones(n), np.zeros(n), np.zeros(n)
        for j in np.flatnonzero(self.moves) if self.known else ():
            columns = self._columns[j]
            nominal, fitted = (columns[:, :10 * n] @ x[:10 * n] for x in (self._nominal, values))
            square = float(nominal @ nominal)
            if square > 0.0:
                size[j], weight[j] = float(fitted @ nominal) / square, np.sqrt(square / power[j])
                least = len(nominal) * (LOADED * _capacity(self.robot)[j])**2
                shown = square / (square + left[j]**2 * power[j] + least)
                far = np.log(np.clip(size[j], LEAST_SIZE, 1.0)) / np.log(SIZE)
                cost[j] = 0.5 * shown * far**2
        return size, cost, weight

    @cached_property
    def free_sizes(self) -> FloatArray:
        """The size (n,) of efforts over those of nominal links, each by itself; NaN if not shown.
        """
        found = np.full(self.robot.n, np.nan)
        for j, (column, basis) in enumerate(zip(self._columns, self.bases, strict=True)):
            nominal, torque = column @ self._nominal, self.rows.torque[:, j]
            torque = torque - basis @ (basis.T @ torque)
            power = float(nominal @ nominal)
            if power > 0.0 and self.known:
                size = float(nominal @ torque) / power
                rest = torque - size * nominal
                if size > 0.0 and float(rest @ rest) < EXPLAINED * float(torque @ torque):
                    found[j] = size
        return found

    @cached_property
    def _travel(self) -> tuple[FloatArray, FloatArray]:
        """Shares (n,) by which travel and velocity differ, and their nats (n,)."""
        rows, n = self.rows, self.robot.n
        off, cost = np.full(n, np.nan), np.zeros(n)
        for j in np.flatnonzero(self.travels):
            travel, summed = rows.travel[:, j], rows.integrated[:, j]
            known = np.isfinite(travel) & np.isfinite(summed)
            if not known.any():
                continue
            size = np.sqrt(rms(travel[known]) * max(rms(summed[known]), 1e-3 * rms(travel[known])))
            off[j] = rms(summed[known] - travel[known]) / size
            cost[j] = min(known.sum() / 2.0, ENOUGH) * np.log(max(off[j], LEAST_MOTION))
        return off, cost

    @cached_property
    def _limits(self) -> float:
        """Nats of positions, speeds and stamps that no robot has."""
        rows, limits = self.rows, self.robot.limits
        cost = 0.0
        if np.isfinite(rows.step) and rows.step > 0.0:
            cost += STAMPS * np.log(max(rows.step / LONGEST, SHORTEST / rows.step, 1.0))
            cost += 0.2 * abs(np.log(rows.step / USUAL))
        if not len(rows):
            return float(cost)
        reach = np.fmax(np.abs(limits.lower), np.abs(limits.upper))
        far = np.abs(rows.position).max(axis=0) / np.fmax(reach, REACH)
        far[~np.isfinite(reach)] = 0.0
        long = rows.seconds > 0.5 * BLOCK * min(1.0, rows.seconds.max(initial=1e-9) / BLOCK)
        speed = np.abs(rows.travel[long] / rows.seconds[long, None]).max(axis=0, initial=0.0)
        fast = speed / np.fmax(limits.velocity, FAST)
        cost += ENOUGH * float(np.log(np.maximum(far / BEYOND, 1.0)).sum()
                               + np.log(np.maximum(fast / BEYOND, 1.0)).sum())
        wide = np.ptp(rows.position, axis=0) > FAR
        with np.errstate(invalid='ignore'):
            used = np.nanmax(speed / limits.velocity, initial=0.0)
        if rows.step > RARE and wide.sum() >= min(2, self.robot.n) and 0.0 < used < SLOW:
            cost += ENOUGH * np.log(SLOW / used)
        return float(cost)


def rms(values: FloatArray) -> float:
    """Return the root mean square of ``values`` (N,)."""
    return float(np.sqrt(values @ values / values.size)) if values.size else 0.0


@lru_cache(maxsize=64)
def _misleading(robot: RobotModel) -> bool:
    """Return whether inertials of a robot are in another unit."""
    return any(one.misleading for one in implausible_inertials(robot))


@lru_cache(maxsize=64)
def _capacity(robot: RobotModel) -> FloatArray:
    """Return the gravity (n,) [N m] of the nominal links in any pose, root mean square."""
    generator = np.random.default_rng(0)
    lower, upper = (np.where(np.isfinite(x), x, side * np.pi) for x, side in (
        (robot.limits.lower, -1.0), (robot.limits.upper, 1.0)))
    poses = generator.uniform(lower, upper, (POSES, robot.n))
    weight = rigid_body.gravity_effort(robot.with_gravity(STANDARD_GRAVITY), poses)
    return np.asarray(np.sqrt(np.mean(weight**2, axis=0)))


@lru_cache(maxsize=64)
def _links(robot: RobotModel, known: bool, hypothesis: Hypothesis) -> FloatArray:
    """Return the root (10 n, 10 n) of the covariance of standard parameters."""
    alone, each, carried = hypothesis
    n = robot.n
    nominal = robot.nominal if known else np.zeros((n, 10))
    mass = float(nominal[:, 0].sum()) if known else UNKNOWN_MASS * n
    lengths = np.maximum(np.linalg.norm(robot.translations, axis=1), SHORT)
    ends = robot.carried.sum(axis=1) == 1
    found = np.zeros((10 * n, 10 * n))
    for i, body in enumerate(nominal):
        size = max(float(lengths[i]), float(lengths[robot.parents == i].max(initial=0.0)))
        if body[0] > 0.0:
            size = max(size, float(np.sqrt(max(np.trace(symmetric(body[4:])), 0.0) / body[0])))
        weight = np.hypot(each * (abs(body[0]) + SMALL * mass / n),
                          carried * mass * (ends[i] or alone > 1.0) if known else mass / n)
        scale = weight * np.array([1.0] + 3 * [size] + 6 * [size**2])
        place = slice(10 * i, 10 * i + 10)
        found[place, place] = np.linalg.cholesky(
            np.diag(scale**2) + alone**2 * np.outer(body, body))
    return found
