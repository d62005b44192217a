"""Joints that move others, <mimic> in a URDF: which do, and the robot of those with motors.

With the position of all joints ``A q + b`` their velocity is ``A qd``, and the power of efforts
``tau . A qd`` is that of ``A^T tau`` on the joints with motors. So their inertia is ``A^T M A``,
and their regressor ``A^T Y``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import RobotError
from robot_dynid.robot.description import Description, JointDescription
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.types import FloatArray, frozen

#: names of joints that move a tool, not the arm
TOOL = re.compile('gripper|finger|thumb|knuckle|hand_', re.IGNORECASE)


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


def followers_of(
    description: Description, below: Sequence[JointDescription],
    moving: dict[str, JointDescription], listed: Collection[str],
) -> tuple[dict[str, Follower], dict[str, float], list[str]]:
    """Take joints that mimic others, and all of a tool of such, out of ``moving``.

    ``below`` are the joints below the base, ``listed`` those that the user lists. Returns the
    joints that move parts of the robot with others, the positions at which joints stand, that of
    a leader being zero, and sentences about both. Raises RobotError where one mimics no joint
    there is.
    """
    joints = {joint.name: joint for joint in below}
    leaders = {joint.name for joint in description.joints if joint.mimic is None}
    groups: dict[str, dict[str, Follower]] = {}
    for joint in below:
        if joint.mimic is not None:
            follower = _follower(joints, joint)
            groups.setdefault(follower.leader, {})[joint.name] = follower
    moved: dict[str, Follower] = {}
    notes = []
    for leader, group in groups.items():
        if set(group) & set(listed):
            raise description.error(f'{", ".join(group)} mimic {leader!r}, so no motor of its own '
                                    'moves them; take them out of "joints"')
        if leader not in leaders and not listed and not all(map(TOOL.search, group)):
            raise description.error(f'joint {next(iter(group))!r} mimics {leader!r}, which is no '
                                    'joint with a position of its own; correct <mimic>')
        for name in group:
            moving.pop(name, None)
    for leader, group in groups.items():
        if leader in moving and not listed and _is_tool(
                description, [joints[name] for name in (leader, *group)]):
            del moving[leader]
            notes.append(f'{leader}, {", ".join(group)}: move a tool, which is locked where '
                         f'{leader} is at zero')
            continue
        own = {name: one for name, one in group.items()
               if leader in moving and _carries(description, moving, joints[name])}
        notes += [f'{name} moves with {leader}: {one.factor:g} times its position'
                  + f' plus {one.offset:g}' * (one.offset != 0.0) for name, one in own.items()]
        locked = [name for name in group if name not in own]
        if locked:
            notes.append(f'{", ".join(locked)}: mimics {leader!r}, stands where that is at zero')
        moved |= own
    return moved, {name: one.offset for group in groups.values()
                   for name, one in group.items()}, notes


def _follower(joints: Mapping[str, JointDescription], joint: JointDescription) -> Follower:
    """Return the joint that leads a joint, through others that mimic, and how."""
    factor, offset, seen = 1.0, 0.0, set()
    while joint.mimic is not None:
        seen.add(joint.name)
        offset += factor * joint.mimic.offset
        factor *= joint.mimic.multiplier
        name = joint.mimic.joint
        if name not in joints or name in seen:
            return Follower(name, factor, offset)
        joint = joints[name]
    return Follower(joint.name, factor, offset)


def _carries(
    description: Description, moving: Mapping[str, JointDescription], joint: JointDescription
) -> bool:
    """Return whether there is mass, or a joint that moves, behind a joint."""
    behind = description.below(joint.child)
    return any(description.links[link].parameters.any()
               for link in (joint.child, *(one.child for one in behind))) or any(
                   one.name in moving for one in behind)


def _is_tool(description: Description, group: Sequence[JointDescription]) -> bool:
    """Return whether joints that move together, the leader first, are those of a tool.

    They carry no joint that moves by itself, and the followers have names of tools, or the leader
    carries none of them, nor is carried.
    """
    names = {joint.name for joint in group}
    carried = [{other.name for other in description.below(joint.child) if other.kind != 'fixed'}
               for joint in group]
    every = set().union(*carried)
    return every <= names and (all(TOOL.search(joint.name) for joint in group[1:]) or not (
        carried[0] or group[0].name in every))
