r"""Robot dynamics as block matrices of screws, linear in the parameters by the Kronecker product.

The equations of a state, to be read; the kernels compute the same for many states.

Twists are (angular, linear) in link frames, stacked over the n links to ``V`` (6n,). With
``T_i`` from a link to the one before it, ``Ad_i`` the adjoint of its inverse, ``xi_i`` the
screw of the joint, and the matrices of `block_matrices`::

    V    = Gamma A qd                            eq. 12 (the base rests: V_0 = 0)
    V'   = Gamma (A qdd - [ad_qd_xi] V + W_0 V'_0)
    F    = Gamma^T (G V' - [ad_V]^T G V),  tau = A^T F                               eq. 13
    tau  = A G B + C G D                                                             eq. 17
    tau  = (B^T (x) A + D^T (x) C) vec(G),  vec(G_i) = K lambda_i               eqs. 18, 11
    vec(M) = (A (x) A) vec(G)                                                        eq. 26

A, B, C, D on the right of eq. 17 are those of eq. 16. ``lambda_i`` are the ten standard
parameters in the order of this package. Trees are handled like chains: the block of ``Ad_i``
stands in the column of the link before.

The extracted text of the paper has lost minus signs: in ``[ad_qd_xi]`` of eqs. 8 and 12,
``[ad_V]^T`` of eqs. 9, 13 and 16 (there C = -A^T Gamma^T [ad_V]^T, as eq. 14 demands), the blocks
-Ad_i in the inverse of Gamma, and -m [r_c] in the last row of eq. 10. The row of Z in eq. 27 is
m = n (i - 1) + z, counted from one, not n i + z. A in eqs. 12 to 14 is not A of eqs. 16 and 26.
V'_0 = (0, -g), so that the weight enters as an acceleration of the base.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749; Lynch, Park, Modern Robotics, 2017,
chapter 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.robot.inertia import adjoint, homogeneous, skew
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.screws import exponential, inverse
from robot_dynid.types import FloatArray, frozen


def spatial_inertia(parameters: ArrayLike) -> FloatArray:
    """Return G (6, 6) of standard parameters (10,): [[I, m [r]], [-m [r], m 1]] (eq. 10)."""
    return np.asarray((SELECTOR @ np.asarray(parameters)).reshape(6, 6, order='F'))


def _selector() -> FloatArray:
    """Return K (36, 10) of eq. 11, filled by the position of every parameter in G."""
    selector = np.zeros((6, 6, 10))
    selector[[3, 4, 5], [3, 4, 5], 0] = 1.0
    for k in range(3):
        cross = skew(np.eye(3)[k])
        selector[:3, 3:, 1 + k], selector[3:, :3, 1 + k] = cross, -cross
    for k, (row, column) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        selector[row, column, 4 + k] = selector[column, row, 4 + k] = 1.0
    return frozen(selector.reshape(36, 10, order='F'))


#: K (36, 10) of 0, 1 and -1: the columns of G one below the other are K times the parameters
SELECTOR = _selector()


def lie_bracket(twist: ArrayLike) -> FloatArray:
    """Return ad (6, 6) of a twist (6,): [[[w], 0], [[v], [w]]] (eq. 4)."""
    v = np.asarray(twist, dtype=np.float64)
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = skew(v[:3])
    matrix[3:, :3] = skew(v[3:])
    return matrix


def joint_screws(robot: RobotModel) -> FloatArray:
    """Return xi (n, 6) of every joint in its own link frame.

    (s, 0) or, prismatic, (0, s), where s is the axis: (0, 0, 1) for robots made of screws.
    """
    turning = (np.asarray(robot.types) != PRISMATIC)[:, None]
    return np.hstack([np.where(turning, robot.axes, 0.0), np.where(turning, 0.0, robot.axes)])


def link_transforms(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return T_i (n, 4, 4) = M_i exp([xi_i] q_i), from link i to the link before it (eq. 7)."""
    homes = map(homogeneous, robot.rotations, robot.translations)
    return np.array([home @ exponential(screw, float(position)) for home, screw, position
                     in zip(homes, joint_screws(robot), np.asarray(q), strict=True)])


@dataclass(frozen=True, eq=False)
class BlockMatrices:
    """Block matrices at one configuration.

    ``screws`` A (6n, n), block diagonal; ``gamma`` Gamma (6n, 6n); ``base`` W_0 (6n, 6).
    """

    screws: FloatArray
    gamma: FloatArray
    base: FloatArray

    @property
    def projection(self) -> FloatArray:
        """A of eq. 16 (n, 6n): A^T Gamma^T."""
        return np.asarray((self.gamma @ self.screws).T)


def block_matrices(robot: RobotModel, q: ArrayLike) -> BlockMatrices:
    """Return the matrices of the appendix at ``q`` (n,) rad (m)."""
    n, own = robot.n, joint_screws(robot)
    screws, steps, base = np.zeros((6 * n, n)), np.eye(6 * n), np.zeros((6 * n, 6))
    for i, transform in enumerate(link_transforms(robot, q)):
        step = adjoint(inverse(transform))
        rows, before = _rows(i), int(robot.parents[i])
        screws[rows, i] = own[i]
        if before < 0:
            base[rows] = step
        else:
            steps[rows, _rows(before)] = -step
    return BlockMatrices(screws, np.asarray(np.linalg.inv(steps), dtype=np.float64), base)


def _rows(i: int) -> slice:
    return slice(6 * i, 6 * i + 6)


def _block_diagonal(matrices: list[FloatArray]) -> FloatArray:
    n = len(matrices)
    whole = np.zeros((6 * n, 6 * n))
    for i, matrix in enumerate(matrices):
        whole[_rows(i), _rows(i)] = matrix
    return whole


def factors(
    robot: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return A, C (n, 6n) and B, D (6n,) of eq. 16 for one state, each of ``q, qd, qdd`` (n,)."""
    speed, n = np.asarray(qd, dtype=np.float64), robot.n
    at, own = block_matrices(robot, q), joint_screws(robot)
    twists = at.gamma @ at.screws @ speed
    ad_joint = _block_diagonal([lie_bracket(speed[i] * own[i]) for i in range(n)])
    ad_link = _block_diagonal([lie_bracket(twists[_rows(i)]) for i in range(n)])
    rest = np.concatenate([np.zeros(3), -np.asarray(robot.gravity)])
    accelerations = at.gamma @ (
        at.screws @ np.asarray(qdd, dtype=np.float64) - ad_joint @ twists + at.base @ rest)
    return at.projection, accelerations, -at.projection @ ad_link.T, twists


def inertias(parameters: ArrayLike) -> FloatArray:
    """Return G (6n, 6n), block diagonal, of the standard parameters (n, 10)."""
    return _block_diagonal([spatial_inertia(p) for p in np.asarray(parameters)])


def effort(
    robot: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, parameters: ArrayLike
) -> FloatArray:
    """Return tau (n,) [N m] = A G B + C G D (eq. 17) of standard ``parameters`` (n, 10)."""
    a, b, c, d = factors(robot, q, qd, qdd)
    g = inertias(parameters)
    return np.asarray(a @ g @ b + c @ g @ d)


def regressor(robot: RobotModel, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> FloatArray:
    """Return Y_1 (n, 10n) of eq. 21: y_ij K with y_ij = B_j^T (x) A_ij + D_j^T (x) C_ij."""
    a, b, c, d = factors(robot, q, qd, qdd)
    n = robot.n
    a, c = a.reshape(n, n, 6), c.reshape(n, n, 6)
    y = (np.einsum('jb,ija->ijba', b.reshape(n, 6), a)
         + np.einsum('jb,ija->ijba', d.reshape(n, 6), c))
    return np.asarray((y.reshape(n, n, 36) @ SELECTOR).reshape(n, 10 * n))


def mass_matrix_regressor(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return Z K (n^2, 10n) with vec(M) = Z K lambda (eqs. 26, 27): Z_mj = A_ij (x) A_zj."""
    n = robot.n
    a = block_matrices(robot, q).projection.reshape(n, n, 6)
    z = np.einsum('ijb,zja->izjba', a, a).reshape(n * n, n, 36)
    return np.asarray((z @ SELECTOR).reshape(n * n, 10 * n))


@dataclass(frozen=True, eq=False)
class MinimalDynamics:
    """Forward dynamics from a minimal set (eq. 28).

    ``kept`` (r,) indices of the pivot columns among the 10n standard parameters, ``values`` (r,)
    the minimal parameters lambda_0.
    """

    robot: RobotModel
    kept: ArrayLike
    values: ArrayLike

    def mass_matrix(self, q: ArrayLike) -> FloatArray:
        """Return M (n, n) from vec(M) = Z_0 lambda_0."""
        columns = mass_matrix_regressor(self.robot, q)[:, np.asarray(self.kept)]
        n = self.robot.n
        return np.asarray((columns @ np.asarray(self.values)).reshape(n, n, order='F'))

    def bias(self, q: ArrayLike, qd: ArrayLike) -> FloatArray:
        """Return Y_0(q, qd, 0) lambda_0 (n,): the effort without acceleration."""
        columns = regressor(self.robot, q, qd, np.zeros(self.robot.n))[:, np.asarray(self.kept)]
        return np.asarray(columns @ np.asarray(self.values))

    def acceleration(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, friction: ArrayLike
    ) -> FloatArray:
        """Return qdd (n,) = M^-1 (tau - Y_0(q, qd, 0) lambda_0 - Y_2 lambda_2).

        ``friction`` (n,) is Y_2 lambda_2 [N m].
        """
        driving = np.asarray(tau) - self.bias(q, qd) - np.asarray(friction)
        return np.asarray(np.linalg.solve(self.mass_matrix(q), driving))
