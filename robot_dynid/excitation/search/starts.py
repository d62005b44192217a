"""Search for an excitation from several random motions that keep all limits and constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.search.optimise import Problem, minimise
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

#: random motions per start, of which the best is improved
CANDIDATES = 10
#: part of the limits that a start uses, and how often that is halved
FILLED, HALVINGS = 0.8, 12
#: random poses to move about where the middle of the ranges does not keep the constraints
POSES = 300

#: returns whether a start ends, from its number, the iteration and the best value so far
Terminate = Callable[[int, int, float], bool]


@dataclass(frozen=True)
class StartRow:
    """One start: its logarithmic objective at first and in the end."""

    first: float
    value: float
    converged: bool
    iterations: int


@dataclass(frozen=True, eq=False)
class Found:
    """The best coefficients (n, P), the ``start`` (n, P) they came from, and all starts."""

    coefficients: FloatArray
    start: FloatArray
    rows: tuple[StartRow, ...]


@one_blas_thread()
def search(
    problem: Problem, starts: int, generator: np.random.Generator, terminate: Terminate
) -> Found:
    """Improve ``starts`` random motions, each until ``terminate`` ends it; return the best.

    No further start is begun where ``terminate`` ends it before its first iteration. Raises
    DynIdError where no pose keeps the constraints.
    """
    best: tuple[float, FloatArray, FloatArray] | None = None
    rows: list[StartRow] = []
    for index, (first, start) in enumerate(random_starts(problem, starts, generator)):
        known = best[0] if best is not None else float('inf')
        if terminate(index, 0, known) and best is not None:
            break

        def ends(iteration: int, value: float, index: int = index, least: float = known) -> bool:
            return terminate(index, iteration, min(value, least))

        found = minimise(problem, start, ends)
        rows.append(StartRow(first, found.value, found.converged, found.iterations))
        if best is None or found.value < best[0]:
            best = (found.value, found.coefficients, start)
    assert best is not None
    return Found(best[1], best[2], tuple(rows))


def random_starts(
    problem: Problem, count: int, generator: np.random.Generator
) -> Iterator[tuple[float, FloatArray]]:
    """Yield objective and coefficients (n, P) of ``count`` starts that keep everything.

    Each is the best of CANDIDATES random motions, which depend on the generator alone. Raises
    DynIdError where no pose keeps the constraints.
    """
    poses = clear_poses(problem, generator)
    for own in generator.integers(2**63, size=(count, CANDIDATES)):
        yield _best_candidate(problem, poses, own)


def clear_poses(problem: Problem, generator: np.random.Generator) -> FloatArray:
    """Return poses (K, n) that keep the constraints well, to move about; the middle if it does.

    The middle of the ranges leaves most room to the joints. Where it is not at least half as far
    from what is to be kept as the best of some random poses, all that are take its place.
    """
    limits = problem.limits
    spread = generator.uniform(-0.9, 0.9, (POSES, len(limits.joints)))
    poses = limits.centre + np.vstack([np.zeros(len(limits.joints)), spread]) * limits.half_range
    resting = _resting(poses)
    margins = np.min([np.full(len(poses), np.inf), *(
        np.min(constraint.values(resting), axis=1, initial=np.inf)
        for constraint in problem.constraints)], axis=0)
    largest = float(np.max(margins))
    if largest <= 0.0:
        middle = _resting(poses[:1])
        words = ' and '.join(c.worst(middle) for c in problem.constraints
                             if np.any(c.values(middle) <= 0.0))
        raise DynIdError(
            f'no pose of {POSES} random ones keeps the constraints: at the middle of the position '
            f'range {words}; move the range with option '
            "'limits: {joint: {position: [lower, upper]}}'")
    kept = poses[margins >= 0.5 * min(largest, 1.0)]
    return poses[:1] if margins[0] >= 0.5 * min(largest, 1.0) else kept


def _resting(poses: FloatArray) -> Motion:
    still = np.zeros(poses.shape)
    return Motion(poses, still, still, still)


def _best_candidate(
    problem: Problem, poses: FloatArray, seeds: FloatArray
) -> tuple[float, FloatArray]:
    """Return value and coefficients (n, P) of the best of random motions about ``poses``."""
    candidates = []
    for seed in seeds:
        generator = np.random.default_rng(int(seed))
        shape = problem.basis.random(problem.limits, generator)
        start = _inside(problem, poses[generator.integers(len(poses))], shape)
        candidates.append((problem.value(start)[0], start))
    return min(candidates, key=lambda pair: pair[0])


def _inside(problem: Problem, pose: FloatArray, shape: FloatArray) -> FloatArray:
    """Return ``shape`` (n, P) moved to a pose and made small enough to keep everything."""
    position = problem.basis.matrices(problem.basis.grid())[0]
    constant = np.linalg.lstsq(position, np.ones(len(position)), rcond=None)[0]  # at rest at one
    about = np.outer(problem.limits.centre, constant)
    size, rest = FILLED, np.outer(pose, constant)
    for _ in range(HALVINGS):
        start = rest + size * (shape - about)
        if problem.barrier.largest(start) < 0.99 and problem.keeps(start):
            return start
        size *= 0.5
    raise DynIdError('the constraints leave no room for a motion about any pose that keeps them; '
                     "move the range with option 'limits: {joint: {position: [lower, upper]}}'")
