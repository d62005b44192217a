"""Plans of static poses: efforts of gravity with dry friction averaged out.

The poses maximise the determinant of the information about the parameters that act at rest
(D-optimality), chosen among random ones: greedily, then by exchange (Fedorov, Theory of Optimal
Experiments, 1972, section 3.3). Each is held twice, approached once from below and once from above
in every joint: dry friction then has opposite signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import DesignCriteria, Planned, StageRow
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.numbers import NumberRange
from robot_dynid.reduction.numeric import independent_columns
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, Samples

#: random poses to choose from
POSES_DRAWN = 600
#: the cost of choosing poses grows with the square of their number
POSES = NumberRange(1, 200, whole=True)
DWELL = NumberRange(1e-3, 600.0, 's')
#: most rounds of exchange; a handful is enough
EXCHANGE_ROUNDS = 50
#: a pose is approached from this share of half the range below and above it
APPROACH = 0.04
#: a parameter with a new share below this in all candidates together does not act at rest
NEW_SHARE = 1e-3
#: smallest singular value at which chosen poses separate the parameters
SEPARATING_VALUE = 1e-5
#: information assumed before the first pose, as a share of the mean of all candidates
PRIOR = 1e-9


@dataclass(frozen=True)
class StaticPosesOptions:
    """Settings of static poses: ``poses``, each held twice for ``dwell`` s."""

    poses: int = setting(20, POSES)
    dwell: float = setting(1.0, DWELL)

    def __post_init__(self) -> None:
        require_allowed(self, "option '{}'")


def plan_static_poses(
    criteria: DesignCriteria, limits: MotionLimits, options: StaticPosesOptions,
    generator: np.random.Generator,
) -> Planned:
    """Return the poses in an order that shortens the path, joined by slow moves.

    Raises UsageError with the least number of poses if there are too few, DynIdError if effort
    limits or constraints exclude all.
    """
    if criteria.model is None:
        raise UsageError('static poses are chosen for a model: the criteria have none')
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    planner = Planner(criteria, limits)
    pool = _draw_poses(planner, generator)
    choice = GravityChoice.of(criteria.model, pool, limits.effort)
    chosen = _reachable(planner, choice, options.poses)
    order = shortest_tour(choice.positions[chosen], limits.velocity)
    pieces: list[Trajectory] = []
    step = _step(limits)
    for pose in choice.positions[chosen][order]:  # from below, hold, from above, hold
        hold = planner.rest(pose, options.dwell)
        pieces += [*planner.moves(pose - step, pose), hold, *planner.moves(pose, pose + step),
                   *planner.moves(pose + step, pose), hold]
    row = StageRow('gravity', limits.joints, len(chosen), choice.names,
                   choice.condition_number(chosen))
    fewer = () if len(chosen) == options.poses else (
        f'{len(chosen)} poses, not {options.poses}: effort limits and constraints exclude the '
        f'others of {POSES_DRAWN} random ones',)
    return Planned(planner.joined(pieces), (row,), fewer)


@dataclass(frozen=True, eq=False)
class GravityChoice:
    """Candidates and the regressor rows of the parameters that act at rest.

    ``positions`` (K, n) rad (m); ``rows`` (K, n, r) base regressor at rest, rows divided by the
    effort limits, columns of unit length over all candidates; ``names`` of the r columns.
    """

    positions: FloatArray
    rows: FloatArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: TorqueModel, positions: FloatArray, effort: FloatArray) -> GravityChoice:
        """Evaluate ``model`` at rest; the ``effort`` limits (n,) N m (N) scale the noise."""
        still = np.zeros_like(positions)
        samples = Samples(model.robot.joints, np.arange(float(len(positions))), positions, still,
                          still, starts=tuple(range(len(positions))))
        columns = model.columns(samples).transpose(2, 0, 1).copy()
        if np.all(np.isfinite(effort)):
            columns /= effort[None, :, None]
        tall = columns.reshape(-1, columns.shape[2])
        norms = np.linalg.norm(tall, axis=0)
        unit = np.divide(tall, norms, out=np.zeros_like(tall), where=norms > 0.0)
        independent = independent_columns(unit, NEW_SHARE)
        if not len(independent):
            raise DynIdError('no parameter acts at rest, because the robot carries no weight: '
                             'design another type of excitation')
        return cls(positions, unit[:, independent].reshape(*columns.shape[:2], -1),
                   tuple(model.reduction.names[i] for i in independent))

    def best(self, count: int, usable: Sequence[int]) -> list[int]:
        """Return indices of up to ``count`` of the ``usable`` candidates: greedy, then exchange.
"""
        prior = PRIOR / self.rows.shape[2] * np.eye(self.rows.shape[2])
        chosen: list[int] = []
        while len(chosen) < min(count, len(usable)):
            chosen.append(self._next(chosen, usable, prior))
        for _ in range(EXCHANGE_ROUNDS):
            previous = list(chosen)
            for place in range(len(chosen)):
                others = chosen[:place] + chosen[place + 1:]
                chosen[place] = self._next(others, usable, prior)
            if chosen == previous:
                break
        return chosen

    def _next(self, chosen: list[int], usable: Sequence[int], prior: FloatArray) -> int:
        """Return the candidate with the largest gain log det(I + Y M^-1 Y^T)."""
        left = np.setdiff1d(usable, chosen)
        factor = np.linalg.cholesky(prior + self.information(chosen))
        solved = np.linalg.solve(factor, self.rows[left].transpose(0, 2, 1))
        gram = np.eye(self.rows.shape[1]) + solved.transpose(0, 2, 1) @ solved
        return int(left[np.argmax(np.linalg.slogdet(gram)[1])])

    def information(self, chosen: Sequence[int]) -> FloatArray:
        """Return M (r, r) of the candidates ``chosen``."""
        tall = self._tall(chosen)
        return np.asarray(tall.T @ tall)

    def rank(self, chosen: Sequence[int]) -> int:
        """Return the number of parameters that the candidates ``chosen`` separate."""
        return int(np.linalg.matrix_rank(self._tall(chosen), tol=SEPARATING_VALUE))

    def condition_number(self, chosen: Sequence[int]) -> float:
        """Return the condition number of the columns, scaled to unit length."""
        tall = self._tall(chosen)
        return float(np.linalg.cond(tall / np.linalg.norm(tall, axis=0)))

    def _tall(self, chosen: Sequence[int]) -> FloatArray:
        return np.asarray(self.rows[list(chosen)].reshape(-1, self.rows.shape[2]))


def shortest_tour(positions: FloatArray, velocity: FloatArray) -> list[int]:
    """Return an order of the poses (K, n): always the nearest next, from the best start.

    Distance is the time the slowest joint takes at ``velocity`` (n,).
    """
    distance = np.max(np.abs(positions[:, None] - positions[None]) / velocity, axis=2)
    tours = []
    for first in range(len(positions)):
        tour, length = [first], 0.0
        while len(tour) < len(positions):
            left = np.setdiff1d(np.arange(len(positions)), tour)
            nearest = int(left[np.argmin(distance[tour[-1], left])])
            length += float(distance[tour[-1], nearest])
            tour.append(nearest)
        tours.append((length, tour))
    return min(tours)[1]


def _step(limits: MotionLimits) -> FloatArray:
    return np.asarray(APPROACH * limits.half_range)


def _draw_poses(planner: Planner, generator: np.random.Generator) -> FloatArray:
    """Return the random poses (K, n) that may be held and approached from both sides."""
    limits = planner.limits
    step = _step(limits)
    poses = generator.uniform(limits.lower + step, limits.upper - step,
                              (POSES_DRAWN, len(limits.joints)))
    good = np.all([planner.allowed(poses + side * step) for side in (-1.0, 0.0, 1.0)], axis=0)
    if not np.any(good):
        raise DynIdError(
            f'none of {POSES_DRAWN} poses keeps the effort limits and constraints; change the '
            "positions with option 'limits: {joint: {position: [lower, upper]}}'")
    return np.asarray(poses[good])


def _reachable(planner: Planner, choice: GravityChoice, count: int) -> list[int]:
    """Return the best candidates whose short approaches are also allowed."""
    usable, accepted = list(range(len(choice.positions))), set[int]()
    while True:
        chosen = choice.best(count, usable)
        _check_rank(choice, chosen, usable, count)
        refused = []
        for c in (c for c in chosen if c not in accepted):
            pose, step = choice.positions[c], _step(planner.limits)
            ways = ((pose - step, pose), (pose, pose + step), (pose + step, pose))
            if not planner.reachable(pose) or any(
                    planner.straight(*way)[0] is None for way in ways):
                refused.append(c)
        if not refused:
            return chosen
        accepted.update(c for c in chosen if c not in refused)
        usable = [c for c in usable if c not in refused]


def _check_rank(
    choice: GravityChoice, chosen: list[int], usable: list[int], count: int
) -> None:
    needed = len(choice.names)
    if choice.rank(chosen) == needed:
        return
    if not usable or choice.rank(usable) < needed:
        raise DynIdError('the poses that effort limits and constraints allow do not separate '
                         f'{", ".join(choice.names)}')
    least = next(k for k in range(1, len(usable) + 1)
                 if choice.rank(choice.best(k, usable)) == needed)
    raise UsageError(f"option 'poses': {count} poses do not determine the {needed} parameters "
                     f'that act at rest: give at least {least}')
