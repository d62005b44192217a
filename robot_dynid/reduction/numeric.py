"""Minimal parameter sets by full-rank decomposition of the regressor at random states.

H = H_0 K: H_0 are the leftmost independent columns of H, K has full row rank and is the identity
on them. Gram-Schmidt with reorthogonalisation instead of Gaussian elimination, so that a dependent
column leaves no trace in those after it. Where axes are nearly parallel, the leftmost columns may
be independent by next to nothing: such a column gives way to one that shows the same more clearly
(strong rank-revealing QR), so that what was neglected of H is not multiplied by K.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2; Gautier, Numerical calculation
of the base inertial parameters of robots, 1991; Gu, Eisenstat, Efficient algorithms for computing
a strong rank-revealing QR factorization, SIAM J. Sci. Comput. 17(4), 1996, section 3.

Efforts show base parameters. A standard parameter that is one of them alone is measured; one that
enters a base parameter together with others is known in this combination only, and what it is by
itself was assumed; one that enters none is assumed altogether.

What efforts leave open are the directions N (p, d) with K N = 0. Two parameters whose rows of N
are multiples of each other are separated by the same measurement: knowing one gives the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.effects.effect import Assembly, Effect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.errors import RobotError
from robot_dynid.reduction.base import Reduction, check_size
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import PRISMATIC, STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray, Samples


def length_of(robot: RobotModel) -> float:
    """Return the longest distance [m] between the frames of neighbouring joints; 1 without any.

    Where the base frame stands does not matter.
    """
    inner = robot.tree.translations[np.asarray(robot.tree.parents) >= 0]
    return float(np.linalg.norm(inner, axis=1).max(initial=0.0)) or 1.0


def parameter_sizes(links: int, length: float) -> FloatArray:
    """Return the torque (10 links,) of standard parameters of one at one rad/s^2.

    That is ``length^2`` for a mass, ``length`` for a first moment, 1 for a moment of inertia.
    """
    return np.tile([length**2] + [length] * 3 + [1.0] * 6, links)


#: no coefficient of a minimal set is larger, between columns divided by their sizes: of columns
#: that show the same the leftmost is kept, unless another shows so many times more of it
LARGEST_COEFFICIENT = 100.0
#: coefficients between columns of their sizes below this share of the largest of their row are
#: rounding: small pivots enlarge both
ZERO = 1e-9


def independent_columns(tall: FloatArray, tolerance: float) -> NDArray[np.int64]:
    """Return the leftmost independent columns (k,) of (N, p).

    A column is kept when its part outside the span of those kept before it is longer than
    ``tolerance``.
    """
    basis = np.empty((len(tall), 0))
    kept = []
    for c in np.flatnonzero(tall.any(axis=0)):
        column = tall[:, c]
        for _ in range(2):
            column = column - basis @ (basis.T @ column)
        new = np.linalg.norm(column)
        if new > tolerance:
            kept.append(int(c))
            basis = np.column_stack([basis, column / new])
    return np.array(kept, dtype=np.int64)


def combinations(
    tall: FloatArray, kept: NDArray[np.int64], sizes: FloatArray, zero: float = ZERO
) -> FloatArray:
    """Return K (k, p) of the columns (N, p) times their ``sizes`` (p,), identity on ``kept``.

    Least squares; coefficients below ``zero`` of the largest of their row, before the sizes come
    in, are dropped.
    """
    matrix = np.linalg.lstsq(tall[:, kept], tall, rcond=None)[0]
    matrix[np.abs(matrix) < zero * np.abs(matrix).max(axis=1, keepdims=True)] = 0.0
    matrix = matrix / sizes[kept][:, None] * sizes
    matrix[:, kept] = np.eye(len(kept))
    return np.asarray(matrix)


def row_echelon(
    tall: FloatArray, directions: FloatArray, sizes: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return pivots (b,) and K (b, p) such that ``tall * sizes`` is its pivot columns times K.

    ``directions`` (b, p) are orthonormal and span the rows of ``tall`` (N, p), but for what is
    neglected. Pivots are their leftmost columns more than 1 / LARGEST_COEFFICIENT of which is new:
    b of them as long as p < LARGEST_COEFFICIENT^2. Those of which ``tall`` shows too little are
    exchanged.
    """
    with one_blas_thread():
        factor = np.asarray(np.linalg.qr(tall, mode='r'))
        kept = _exchanged(factor, independent_columns(directions, 1.0 / LARGEST_COEFFICIENT))
        return kept, combinations(factor, kept, sizes)


def _exchanged(tall: FloatArray, kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return as many columns (b,) of (N, p), such that no exchange of one makes much of a change.

    An exchange multiplies the volume the kept columns span by its ``growth``, the root of the sum
    of squares of a coefficient and of what is left of the new column over what only the old one
    shows. While one exceeds LARGEST_COEFFICIENT the greatest is made; a volume cannot grow for
    ever.
    """
    while True:
        basis, factor = np.linalg.qr(tall[:, kept])
        inverse, inside = np.linalg.inv(factor), basis.T @ tall
        left = np.linalg.norm(tall - basis @ inside, axis=0)
        growth = np.hypot(inverse @ inside, np.outer(np.linalg.norm(inverse, axis=1), left))
        growth[:, kept] = 0.0
        old, new = np.unravel_index(np.argmax(growth), growth.shape)
        if growth[old, new] <= LARGEST_COEFFICIENT:
            return kept
        kept = np.sort(np.append(np.delete(kept, old), new))


def row_space(tall: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the singular values (p,) of (N, p) from the largest, and their directions (p, p)."""
    from scipy.linalg import svd

    with one_blas_thread():
        # by QR iteration: divide and conquer, which is NumPy's, may not converge at low rank
        _, values, directions = svd(np.linalg.qr(tall, mode='r'), lapack_driver='gesvd')
    return values, directions


def full_rank(
    tall: FloatArray, tolerance: float, zero: float = ZERO
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return leftmost independent columns (k,) of (N, p), and K (k, p): tall = tall[:, kept] K.

    A column is dependent when less than ``tolerance`` of its norm is new, or when its norm is
    less than that of the largest; coefficients between columns of unit norm below ``zero`` of the
    largest of their row are dropped.
    """
    norms = np.linalg.norm(tall, axis=0)
    present = norms > tolerance * norms.max(initial=0.0)
    sizes = np.where(present, norms, 1.0)
    unit = np.where(present, tall / sizes, 0.0)
    kept = independent_columns(unit, tolerance)
    if not len(kept):
        return kept, np.zeros((0, tall.shape[1]))
    return kept, combinations(unit, kept, sizes, zero)


MEASURED, COMBINED, PRIOR = 'measured', 'only in combination', 'prior'
#: how much it takes to measure a parameter by itself: masses, first moments, inertias, others
EFFORT = dict(zip((*PARAMETERS, ''), (0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3), strict=True))
#: rows of unit length whose cosine is this near to one are multiples of each other
PARALLEL_ROWS = 1e-9


@dataclass(frozen=True)
class Origin:
    """The origin of the standard parameter ``name``: ``kind``, one of the three.

    ``base`` are the indices of the base parameters it enters. ``separated_by`` is the parameter
    whose measurement would give it, the easiest there is (a weighed mass before a balanced first
    moment before an inertia); empty where it is measured.
    """

    name: str
    kind: str
    base: tuple[int, ...]
    separated_by: str = ''


def origins(reduction: Reduction, unknown: Collection[str] = ()) -> tuple[Origin, ...]:
    """Return the origin of every standard parameter (p,).

    ``unknown`` are names that come from the prior whatever they enter: the data left them open.
    """
    matrix = reduction.matrix
    open_directions = _open_directions(reduction)
    found = []
    for i, name in enumerate(reduction.standard):
        base = tuple(np.flatnonzero(matrix[:, i]).tolist())
        alone = len(base) == 1 and np.count_nonzero(matrix[base[0]]) == 1
        kind = PRIOR if not base or name in unknown else MEASURED if alone else COMBINED
        found.append(Origin(name, kind, base, '' if alone else _easiest(
            reduction, open_directions, i)))
    return tuple(found)


def _open_directions(reduction: Reduction) -> FloatArray:
    """Return N (p, d), one direction per dependent parameter, which it has with factor one."""
    count = len(reduction.standard)
    dependent = np.setdiff1d(np.arange(count), reduction.kept)
    directions = np.zeros((count, len(dependent)))
    directions[dependent, np.arange(len(dependent))] = 1.0
    directions[reduction.kept] = -reduction.matrix[:, dependent]
    return directions


def _easiest(reduction: Reduction, directions: FloatArray, i: int) -> str:
    """Return the parameter that is measured most easily and gives parameter ``i``."""
    length = np.linalg.norm(directions, axis=1) * np.linalg.norm(directions[i])
    cosine = np.abs(directions @ directions[i])
    same = np.flatnonzero((length > 0.0) & (cosine >= (1.0 - PARALLEL_ROWS) * length))
    best = min(same, key=lambda j: (EFFORT[kind_of(reduction.standard[j])], j != i, j))
    return reduction.standard[int(best)]


def kind_of(name: str) -> str:
    """Return ``m``, ``mx``, ``Ixx`` ... of a parameter of a link, an empty text of others."""
    stem = name.rstrip('0123456789')
    return stem if stem in PARAMETERS else ''


#: singular values above this count; rounding leaves 1e-13, and the smallest of arms in general
#: position is 1e-2. Axes 1e-5 rad from parallel, the rounding of descriptions, leave 1e-4
LEAST_SINGULAR = 1e-4
#: the least factor between it and any singular value that leaves no doubt
CLEAR = 30.0
SEED = 20250101


def random_states(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
    """Return ``count`` unrelated states; every sample is a segment of its own."""
    q, qd, qdd = rng.uniform(-3.0, 3.0, (3, count, robot.coordinates))
    return Samples(joints=robot.joints, time=np.arange(count, dtype=np.float64), position=q,
                   velocity=2.0 * qd, acceleration=4.0 * qdd, starts=tuple(range(count)))


def states_at(robot: RobotModel, speed: float) -> Samples:
    """Return unrelated states at about ``speed`` [rad/s, m/s], root mean square."""
    fast = random_states(robot, 50, np.random.default_rng(0))
    share = speed / float(np.sqrt(np.mean(fast.velocity**2)))
    return replace(fast, velocity=share * fast.velocity, acceleration=share * fast.acceleration)


def full_regressor(robot: RobotModel, blocks: Sequence[Effect], samples: Samples) -> FloatArray:
    """Return the regressor (rows, p, N) of all standard parameters of all blocks."""
    return Assembly.of(blocks).columns_of(samples).array(robot.rows)


def entries(robot: RobotModel, blocks: Sequence[Effect]) -> NDArray[np.bool_]:
    """Return the matrix (rows, p): true where a standard parameter enters an equation."""
    states = random_states(robot, 20, np.random.default_rng(0))
    return np.asarray(np.any(generic_regressor(robot, blocks, states) != 0.0, axis=2))


def generic_regressor(
    robot: RobotModel, blocks: Sequence[Effect], samples: Samples
) -> FloatArray:
    """Return the regressor (rows, p, N) at unrelated states, those with a past independent."""
    histories = [block.generic(samples) for block in blocks]
    return Assembly.of(blocks).columns_of(samples, histories).array(robot.rows)


@one_blas_thread()
def reduce_numeric(
    robot: RobotModel, blocks: Sequence[Effect], rng: np.random.Generator | None = None
) -> Reduction:
    """Return the minimal set: leftmost independent columns, and how the others combine into them.

    The rank is that of the regressor of a robot whose length is one, moved at the pace of its
    pendulum, so it depends neither on the size of the robot nor on the random states. ``gap`` is
    the ratio of the singular values on both sides of it; where one of them is near the bound
    between them (LEAST_SINGULAR), or the gap below about 1e3, a warning names the doubtful
    parameters.
    Pivots come from the row space, which does not depend on the states at all; only where the
    rank is in doubt, what the states show of a column counts (row_echelon).
    Raises RobotError when no column moves the robot at all, and as `check_size`.
    Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2.
    """
    check_size(robot)
    names = tuple(n for block in blocks for n in block.names)
    generator = rng or np.random.default_rng(SEED)
    count = 20 + 3 * len(names) // robot.rows
    states = paced(robot, random_states(robot, count, generator))
    return reduce_columns(robot, blocks, similar_columns(robot, blocks, states))


@one_blas_thread()
def reduce_columns(
    robot: RobotModel, blocks: Sequence[Effect], columns: FloatArray
) -> Reduction:
    """Return the minimal set of dimensionless ``columns`` (rows, p, N) of all standard parameters.

    Raises RobotError when no column moves the robot at all.
    """
    names = tuple(n for block in blocks for n in block.names)
    tall, sizes = _similar_regressor(robot, blocks, columns)
    values, directions = row_space(tall)
    rank = int(np.count_nonzero(values > LEAST_SINGULAR))
    if not rank:
        raise RobotError(f'{robot.name}: no parameter influences any joint effort')
    kept, matrix = row_echelon(tall, directions[:rank], sizes)
    beyond = values[rank] if rank < len(values) else 0.0
    gap = float(values[rank - 1] / max(beyond, np.finfo(float).eps))
    doubtful = directions[(values > LEAST_SINGULAR / CLEAR) & (values < LEAST_SINGULAR * CLEAR)]
    return Reduction(names, kept, matrix, gap, _doubts(robot.name, names, doubtful, gap))


def _doubts(
    robot: str, names: tuple[str, ...], directions: FloatArray, gap: float
) -> tuple[str, ...]:
    """Return a warning that names the parameters of ``directions`` (k, p), if any."""
    if not len(directions):
        return ()
    found = sorted({names[i] for i in np.argmax(np.abs(directions), axis=1)})
    return (f'{robot}: the number of base parameters is in doubt (gap {gap:.1g}): '
            f'{", ".join(found)} act on the efforts, but hardly; are axes nearly parallel, or '
            'angles of the description rounded (1.57 for pi/2)?',)


def pace_of(robot: RobotModel) -> float:
    """Return the rate [1/s] at which the robot's weight and its inertia matter alike."""
    weight = float(np.linalg.norm(robot.gravity)) or float(np.linalg.norm(STANDARD_GRAVITY))
    return float(0.2 * np.sqrt(weight / length_of(robot)))


def paced(robot: RobotModel, states: Samples) -> Samples:
    """Return states whose lengths count in lengths of the robot, their rates in its pace."""
    pace = pace_of(robot)
    moved = _slides(robot)[[*range(robot.n), *robot.drive.elastic]]
    return replace(states, position=moved * states.position,
                   velocity=pace * moved * states.velocity,
                   acceleration=pace**2 * moved * states.acceleration)


def similar_columns(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> FloatArray:
    """Return the generic regressor (rows, p, N) with forces turned to torques by the length."""
    columns = generic_regressor(robot, blocks, states)
    return np.asarray(columns * _slides(robot)[[*robot.row_joints], None, None])


def _slides(robot: RobotModel) -> FloatArray:
    return np.where(robot.types == PRISMATIC, length_of(robot), 1.0)


def _similar_regressor(
    robot: RobotModel, blocks: Sequence[Effect], columns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the dimensionless regressor (n N, p), and the sizes its columns were divided by.

    Lengths count in lengths of the robot, time in such units that its weight and its inertia
    matter alike: robots of the same shape have the same regressor.
    """
    tall = columns.transpose(2, 0, 1).reshape(-1, columns.shape[1]) / np.sqrt(columns[:, 0].size)
    sizes = np.linalg.norm(tall, axis=0)
    sizes[sizes == 0.0] = 1.0
    first = 0
    for block in blocks:
        own = slice(first, first + len(block.names))
        if isinstance(block, RigidLinks):
            sizes[own] = pace_of(robot)**2 * parameter_sizes(robot.tree.n, length_of(robot))
        first = own.stop
    return np.ascontiguousarray(tall / sizes), sizes
