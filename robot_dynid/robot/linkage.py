"""Joints that move others: the tree of all, and the robot of those that have a motor.

With the position of all joints ``A q + b`` their velocity is ``A qd``, and the power of efforts
``tau . A qd`` is that of ``A^T tau`` on the joints with motors. So their inertia is ``A^T M A``,
and their regressor ``A^T Y``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import RobotError
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.types import FloatArray, frozen


class Follower(NamedTuple):
    """A joint that moves with the ``leader``: ``factor`` times its position plus ``offset``."""

    leader: str
    factor: float
    offset: float


class Uncoupled:
    """Stands for what a robot has joint by joint, where ``what`` joints move together.

    Whatever is done with it raises RobotError: code that uses it knows single joints only.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise RobotError that says what is supported."""
        raise RobotError(f'{self.what}: axes that move together are not supported here, but by '
                         'base (numeric), design, identify (ols, wls, irls, feasible), validate, '
                         'inverse and forward')

    __array__ = __getitem__ = __iter__ = __len__ = __eq__ = __contains__ = _refuse
    __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        self._refuse()


@dataclass(frozen=True, eq=False)
class Linkage:
    """A ``tree`` of m joints that n of them move, those at the indices ``own`` (n,).

    Positions of all are ``matrix`` (m, n) times those of the n plus ``offset`` (m,) [rad, m]; so
    the efforts of the n are ``matrix^T`` times those that all would need.
    """

    tree: RobotModel
    own: NDArray[np.int64]
    matrix: FloatArray
    offset: FloatArray

    def motion(self, q: FloatArray, *rates: FloatArray) -> tuple[FloatArray, ...]:
        """Return position and ``rates`` (N, m) of all joints from those (N, n) of the n."""
        turned = self.matrix.T
        return (frozen(q @ turned + self.offset), *(frozen(rate @ turned) for rate in rates))

    def robot(self) -> RobotModel:
        """Return the robot of the n joints."""
        moved = [f'{joint} with {" and ".join(self.tree.joints[self.own[j]] for j in leaders)}'
                 for joint, row, own in zip(self.tree.joints, self.matrix, range(len(self.matrix)))
                 if own not in self.own for leaders in [np.flatnonzero(row)]]
        alone: Any = Uncoupled(f'{self.tree.name}: {", ".join(moved)} (<mimic>)')
        fields = dict.fromkeys(('parents', 'rotations', 'translations', 'axes', 'bodies',
                                'nominal', 'links'), alone)
        return replace(self.tree, **fields, linkage=self, types=self.tree.types[self.own],
                       joints=tuple(self.tree.joints[j] for j in self.own), limits=self._limits())

    def _limits(self) -> Limits:
        """Return the limits (n,) within which no joint of the tree leaves its own."""
        every = self.tree.limits
        found = {key: np.array(values)[self.own] for key, values in vars(every).items()}
        for j in np.setdiff1d(np.arange(self.tree.n), self.own):
            for i in np.flatnonzero(self.matrix[j]):
                factor = self.matrix[j, i]
                ends = sorted((np.array([every.lower[j], every.upper[j]]) - self.offset[j])
                              / factor)
                found['lower'][i] = np.fmax(found['lower'][i], ends[0])
                found['upper'][i] = np.fmin(found['upper'][i], ends[1])
                for key in ('velocity', 'acceleration'):
                    found[key][i] = np.fmin(found[key][i], getattr(every, key)[j] / abs(factor))
        return Limits(**{key: frozen(values) for key, values in found.items()})


def linkage_of(tree: RobotModel, moved: Mapping[str, Follower]) -> Linkage:
    """Return the linkage of a tree whose joints ``moved`` follow others."""
    own = [j for j, name in enumerate(tree.joints) if name not in moved]
    matrix, offset = np.zeros((tree.n, len(own))), np.zeros(tree.n)
    matrix[own, np.arange(len(own))] = 1.0
    for name, one in moved.items():
        matrix[tree.index(name), own.index(tree.index(one.leader))] = one.factor
        offset[tree.index(name)] = one.offset
    return Linkage(tree, np.array(own, dtype=np.int64), frozen(matrix), frozen(offset))
