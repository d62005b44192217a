"""Base parameters by full-rank decomposition of the regressor at random states.

H = H_0 K: H_0 are the leftmost independent columns of H, K has full row rank and is the identity
on them. Gram-Schmidt with reorthogonalisation instead of Gaussian elimination, so that a dependent
column leaves no trace in later ones. Where axes are nearly parallel, leftmost columns may be
almost dependent: such a column is exchanged for one that shows the same more clearly (strong
rank-revealing QR), so that K does not amplify what was neglected of H.

Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2; Gautier, Numerical calculation
of the base inertial parameters of robots, 1991; Gu, Eisenstat, Efficient algorithms for computing
a strong rank-revealing QR factorization, SIAM J. Sci. Comput. 17(4), 1996, section 3.

Efforts determine base parameters. A standard parameter that equals a base parameter is measured;
one that enters a base parameter together with others is known only in that combination, and its
value comes from the prior; so does the value of one that enters none.

Efforts leave open the directions N (p, d) with K N = 0. Two parameters whose rows of N are
multiples of each other are separated by the same measurement: knowing one gives the other.
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
    """Return the longest distance [m] between frames of neighbouring joints; 1 if there is none.

    The placement of the base frame does not matter.
    """
    inner = robot.tree.translations[np.asarray(robot.tree.parents) >= 0]
    return float(np.linalg.norm(inner, axis=1).max(initial=0.0)) or 1.0


def parameter_sizes(links: int, length: float) -> FloatArray:
    """Return the torque (10 links,) of standard parameters of one at one rad/s^2.

    This is ``length^2`` for a mass, ``length`` for a first moment, 1 for a moment of inertia.
    """
    return np.tile([length**2] + [length] * 3 + [1.0] * 6, links)


#: largest coefficient of base parameters between columns divided by their sizes: among columns
#: that show the same the leftmost is the pivot, unless another shows this many times more of it
LARGEST_COEFFICIENT = 100.0
#: coefficients between columns of their sizes below this share of the largest of their row are
#: rounding, which small pivots amplify
ZERO = 1e-9


def independent_columns(tall: FloatArray, tolerance: float) -> NDArray[np.int64]:
    """Return the leftmost independent columns (k,) of (N, p).

    A column is independent if its part outside the span of the earlier ones is longer than
    ``tolerance``.
    """
    basis = np.empty((len(tall), 0))
    pivots = []
    for c in np.flatnonzero(tall.any(axis=0)):
        column = tall[:, c]
        for _ in range(2):
            column = column - basis @ (basis.T @ column)
        new = np.linalg.norm(column)
        if new > tolerance:
            pivots.append(int(c))
            basis = np.column_stack([basis, column / new])
    return np.array(pivots, dtype=np.int64)


def combinations(
    tall: FloatArray, pivots: NDArray[np.int64], sizes: FloatArray, zero: float = ZERO
) -> FloatArray:
    """Return K (k, p) of the columns (N, p) times their ``sizes`` (p,), identity on ``pivots``.

    Least squares; coefficients below ``zero`` times the largest of their row, before applying the
    sizes, are dropped.
    """
    matrix = np.linalg.lstsq(tall[:, pivots], tall, rcond=None)[0]
    matrix[np.abs(matrix) < zero * np.abs(matrix).max(axis=1, keepdims=True)] = 0.0
    matrix = matrix / sizes[pivots][:, None] * sizes
    matrix[:, pivots] = np.eye(len(pivots))
    return np.asarray(matrix)


def row_echelon(
    tall: FloatArray, directions: FloatArray, sizes: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return pivots (b,) and K (b, p) such that ``tall * sizes`` is its pivot columns times K.

    ``directions`` (b, p) are orthonormal and span the rows of ``tall`` (N, p) up to what is
    neglected. Pivots are their leftmost columns with a new part above 1 / LARGEST_COEFFICIENT: b
    of them as long as p < LARGEST_COEFFICIENT^2. Pivots that ``tall`` shows too weakly are
    exchanged.
    """
    with one_blas_thread():
        factor = np.asarray(np.linalg.qr(tall, mode='r'))
        pivots = _exchange_pivots(
            factor, independent_columns(directions, 1.0 / LARGEST_COEFFICIENT))
        return pivots, combinations(factor, pivots, sizes)


def _exchange_pivots(tall: FloatArray, pivots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pivots (b,) of (N, p) such that no single exchange changes their volume much.

    An exchange multiplies the volume the pivot columns span by its ``growth``: the root of the sum
    of squares of a coefficient and of the ratio of the new column's residual to what only the old
    one shows. The largest exchange is made while one exceeds LARGEST_COEFFICIENT; volumes are
    bounded, so the loop ends.
    """
    while True:
        basis, factor = np.linalg.qr(tall[:, pivots])
        inverse, inside = np.linalg.inv(factor), basis.T @ tall
        left = np.linalg.norm(tall - basis @ inside, axis=0)
        growth = np.hypot(inverse @ inside, np.outer(np.linalg.norm(inverse, axis=1), left))
        growth[:, pivots] = 0.0
        old, new = np.unravel_index(np.argmax(growth), growth.shape)
        if growth[old, new] <= LARGEST_COEFFICIENT:
            return pivots
        pivots = np.sort(np.append(np.delete(pivots, old), new))


def row_space(tall: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the singular values (p,) of (N, p), largest first, and their directions (p, p)."""
    from scipy.linalg import svd

    with one_blas_thread():
        # QR iteration: divide and conquer, NumPy's choice, may not converge at low rank
        _, values, directions = svd(np.linalg.qr(tall, mode='r'), lapack_driver='gesvd')
    return values, directions


def full_rank(
    tall: FloatArray, tolerance: float, zero: float = ZERO
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return leftmost independent columns (k,) of (N, p), and K (k, p): tall = tall[:, pivots] K.

    A column is dependent if less than ``tolerance`` of its norm is new, or if its norm is less
    than ``tolerance`` times the largest; coefficients between columns of unit norm below ``zero``
    times the largest of their row are dropped.
    """
    norms = np.linalg.norm(tall, axis=0)
    present = norms > tolerance * norms.max(initial=0.0)
    sizes = np.where(present, norms, 1.0)
    unit = np.where(present, tall / sizes, 0.0)
    pivots = independent_columns(unit, tolerance)
    if not len(pivots):
        return pivots, np.zeros((0, tall.shape[1]))
    return pivots, combinations(unit, pivots, sizes, zero)


MEASURED, COMBINED, PRIOR = 'measured', 'only in combination', 'prior'
#: effort of measuring a parameter by itself: masses, first moments, inertias, others
EFFORT = dict(zip((*PARAMETERS, ''), (0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3), strict=True))
#: rows whose cosine is this close to one are multiples of each other
PARALLEL_ROWS = 1e-9


@dataclass(frozen=True)
class Origin:
    """The origin of the standard parameter ``name``: ``kind``, one of the three.

    ``base``: indices of the base parameters it enters. ``separated_by``: the parameter that is
    easiest to measure and would determine it (a weighed mass before a balanced first moment before
    an inertia); empty if it is measured.
    """

    name: str
    kind: str
    base: tuple[int, ...]
    separated_by: str = ''


def origins(reduction: Reduction, unknown: Collection[str] = ()) -> tuple[Origin, ...]:
    """Return the origin of every standard parameter (p,).

    ``unknown``: names that come from the prior in any case, because the data left them open.
    """
    matrix = reduction.matrix
    open_directions = _open_directions(reduction)
    result = []
    for i, name in enumerate(reduction.standard):
        base = tuple(np.flatnonzero(matrix[:, i]).tolist())
        alone = len(base) == 1 and np.count_nonzero(matrix[base[0]]) == 1
        kind = PRIOR if not base or name in unknown else MEASURED if alone else COMBINED
        result.append(Origin(name, kind, base, '' if alone else _easiest_measurement(
            reduction, open_directions, i)))
    return tuple(result)


def _open_directions(reduction: Reduction) -> FloatArray:
    """Return N (p, d), one direction per dependent parameter, which enters it with factor one."""
    count = len(reduction.standard)
    dependent = np.setdiff1d(np.arange(count), reduction.pivots)
    directions = np.zeros((count, len(dependent)))
    directions[dependent, np.arange(len(dependent))] = 1.0
    directions[reduction.pivots] = -reduction.matrix[:, dependent]
    return directions


def _easiest_measurement(reduction: Reduction, directions: FloatArray, i: int) -> str:
    """Return the parameter that is easiest to measure and determines parameter ``i``."""
    length = np.linalg.norm(directions, axis=1) * np.linalg.norm(directions[i])
    cosine = np.abs(directions @ directions[i])
    same = np.flatnonzero((length > 0.0) & (cosine >= (1.0 - PARALLEL_ROWS) * length))
    best = min(same, key=lambda j: (EFFORT[kind_of(reduction.standard[j])], j != i, j))
    return reduction.standard[int(best)]


def kind_of(name: str) -> str:
    """Return the kind of a link parameter, such as ``m`` or ``Ixx``; empty for other parameters.
"""
    stem = name.rstrip('0123456789')
    return stem if stem in PARAMETERS else ''


#: singular values above this count: rounding leaves 1e-13, the smallest of arms in general
#: position is 1e-2; axes 1e-5 rad from parallel (rounding of descriptions) leave 1e-4
LEAST_SINGULAR = 1e-4
#: least ratio between it and any singular value for a certain rank
CLEAR = 30.0
SEED = 20250101


def random_states(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
    """Return ``count`` unrelated random states; every sample is a segment."""
    q, qd, qdd = rng.uniform(-3.0, 3.0, (3, count, robot.coordinates))
    return Samples(joints=robot.joints, time=np.arange(count, dtype=np.float64), position=q,
                   velocity=2.0 * qd, acceleration=4.0 * qdd, starts=tuple(range(count)))


def states_at(robot: RobotModel, speed: float) -> Samples:
    """Return unrelated random states at about ``speed`` [rad/s, m/s] (root mean square)."""
    fast = random_states(robot, 50, np.random.default_rng(0))
    share = speed / float(np.sqrt(np.mean(fast.velocity**2)))
    return replace(fast, velocity=share * fast.velocity, acceleration=share * fast.acceleration)


def full_regressor(robot: RobotModel, blocks: Sequence[Effect], samples: Samples) -> FloatArray:
    """Return the regressor (rows, p, N) of all standard parameters of all blocks."""
    return Assembly.of(blocks).columns_of(samples).array(robot.rows)


def entries(robot: RobotModel, blocks: Sequence[Effect]) -> NDArray[np.bool_]:
    """Return a mask (rows, p): True where a standard parameter enters an equation."""
    states = random_states(robot, 20, np.random.default_rng(0))
    return np.asarray(np.any(generic_regressor(robot, blocks, states) != 0.0, axis=2))


def generic_regressor(
    robot: RobotModel, blocks: Sequence[Effect], samples: Samples
) -> FloatArray:
    """Return the regressor (rows, p, N) at unrelated states, with independent random histories."""
    histories = [block.generic(samples) for block in blocks]
    return Assembly.of(blocks).columns_of(samples, histories).array(robot.rows)


@one_blas_thread()
def reduce_numeric(
    robot: RobotModel, blocks: Sequence[Effect], rng: np.random.Generator | None = None
) -> Reduction:
    """Return the base parameters: leftmost independent columns, and the combinations they form.

    The rank is that of the regressor of a robot scaled to length one, moved at the pace of its
    pendulum, so it depends neither on the size of the robot nor on the random states. ``gap`` is
    the ratio of the singular values around it; if one of them is near the bound LEAST_SINGULAR, or
    the gap below about 1e3, a warning names the doubtful parameters. Pivots come from the row
    space, which does not depend on the states; only where the rank is uncertain the magnitude of a
    column at the states counts (row_echelon).

    Raises RobotError if no parameter affects an effort, and as `check_size`. Source: Wang, Han,
    Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2.
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
    """Return the base parameters of dimensionless ``columns`` (rows, p, N) of all standard
    parameters.

    Raises RobotError if no parameter affects an effort.
    """
    names = tuple(n for block in blocks for n in block.names)
    tall, sizes = _similar_regressor(robot, blocks, columns)
    values, directions = row_space(tall)
    rank = int(np.count_nonzero(values > LEAST_SINGULAR))
    if not rank:
        raise RobotError(f'{robot.name}: no parameter affects a joint effort')
    pivots, matrix = row_echelon(tall, directions[:rank], sizes)
    beyond = values[rank] if rank < len(values) else 0.0
    gap = float(values[rank - 1] / max(beyond, np.finfo(float).eps))
    doubtful = directions[(values > LEAST_SINGULAR / CLEAR) & (values < LEAST_SINGULAR * CLEAR)]
    return Reduction(names, pivots, matrix, gap, _doubts(robot.name, names, doubtful, gap))


def _doubts(
    robot: str, names: tuple[str, ...], directions: FloatArray, gap: float
) -> tuple[str, ...]:
    """Return a warning that names the parameters of ``directions`` (k, p), if any."""
    if not len(directions):
        return ()
    weak = sorted({names[i] for i in np.argmax(np.abs(directions), axis=1)})
    return (f'{robot}: the number of base parameters is uncertain (gap {gap:.1g}), because '
            f'{", ".join(weak)} hardly affect the efforts: give the angles of the description '
            'with all digits (1.570796, not 1.57)',)


def pace_of(robot: RobotModel) -> float:
    """Return the rate [1/s] at which weight and inertia of the robot matter equally."""
    weight = float(np.linalg.norm(robot.gravity)) or float(np.linalg.norm(STANDARD_GRAVITY))
    return float(0.2 * np.sqrt(weight / length_of(robot)))


def paced(robot: RobotModel, states: Samples) -> Samples:
    """Return states with lengths in units of the robot's length and rates in units of its pace."""
    pace = pace_of(robot)
    moved = _slides(robot)[[*range(robot.n), *robot.drive.elastic]]
    return replace(states, position=moved * states.position,
                   velocity=pace * moved * states.velocity,
                   acceleration=pace**2 * moved * states.acceleration)


def similar_columns(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> FloatArray:
    """Return the generic regressor (rows, p, N) with forces turned into torques by the length."""
    columns = generic_regressor(robot, blocks, states)
    return np.asarray(columns * _slides(robot)[[*robot.row_joints], None, None])


def _slides(robot: RobotModel) -> FloatArray:
    return np.where(robot.types == PRISMATIC, length_of(robot), 1.0)


def _similar_regressor(
    robot: RobotModel, blocks: Sequence[Effect], columns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the dimensionless regressor (n N, p), and the sizes its columns were divided by.

    Lengths are in units of the robot's length, time in units at which weight and inertia matter
    equally: robots of the same shape have the same regressor.
    """
    tall = columns.transpose(2, 0, 1).reshape(-1, columns.shape[1]) / np.sqrt(columns[:, 0].size)
    sizes = np.linalg.norm(tall, axis=0)
    sizes[sizes == 0.0] = 1.0
    first = 0
    for block in blocks:
        columns_of_block = slice(first, first + len(block.names))
        if isinstance(block, RigidLinks):
            sizes[columns_of_block] = \
                pace_of(robot)**2 * parameter_sizes(robot.tree.n, length_of(robot))
        first = columns_of_block.stop
    return np.ascontiguousarray(tall / sizes), sizes
