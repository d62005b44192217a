"""Coupled joints (<mimic> in a URDF) and the reduced robot of the driven joints.

With the positions ``A q + b`` of all joints, velocities are ``A qd`` and efforts of the driven
joints ``A^T tau``, so their inertia is ``A^T M A`` and their regressor ``A^T Y``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import subject
from robot_dynid.errors import RobotError
from robot_dynid.robot.description import Description, JointDescription
from robot_dynid.robot.model import Limits, RobotModel
from robot_dynid.types import FloatArray, frozen

#: names of joints of tools
TOOL = re.compile('gripper|finger|thumb|knuckle|hand_', re.IGNORECASE)


class Follower(NamedTuple):
    """A joint coupled to the ``leader``: ``factor`` times its position plus ``offset``."""

    leader: str
    factor: float
    offset: float


class Uncoupled:
    """Placeholder of per-joint data for coupled joints, described by ``what``.

    Any use raises RobotError: that code supports single joints only.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise RobotError with the supported commands."""
        raise RobotError(f'{self.what}: coupled joints are supported only by '
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
    """A ``tree`` of m joints driven by n of them, at the indices ``driven`` (n,).

    Positions of all are ``matrix`` (m, n) times those of the n plus ``offset`` (m,) [rad, m];
    efforts of the n are ``matrix^T`` times those of all.
    """

    tree: RobotModel
    driven: NDArray[np.int64]
    matrix: FloatArray
    offset: FloatArray

    def motion(self, q: FloatArray, *rates: FloatArray) -> tuple[FloatArray, ...]:
        """Return position and ``rates`` (N, m) of all joints from those (N, n) of the driven ones.
        """
        turned = self.matrix.T
        return (frozen(q @ turned + self.offset), *(frozen(rate @ turned) for rate in rates))

    def robot(self) -> RobotModel:
        """Return the robot of the n joints."""
        moved = [f'{joint} with {" and ".join(self.tree.joints[self.driven[j]] for j in leaders)}'
                 for k, (joint, row) in enumerate(zip(self.tree.joints, self.matrix))
                 if k not in self.driven for leaders in [np.flatnonzero(row)]]
        alone: Any = Uncoupled(f'{self.tree.name}: {", ".join(moved)} (<mimic>)')
        fields = dict.fromkeys(('parents', 'rotations', 'translations', 'axes', 'bodies',
                                'nominal', 'links'), alone)
        return replace(self.tree, **fields, linkage=self, types=self.tree.types[self.driven],
                       joints=tuple(self.tree.joints[j] for j in self.driven),
                       limits=self._limits())

    def _limits(self) -> Limits:
        """Return the limits (n,) that keep all joints of the tree within theirs."""
        every = self.tree.limits
        limits = {key: np.array(values)[self.driven] for key, values in vars(every).items()}
        for j in np.setdiff1d(np.arange(self.tree.n), self.driven):
            for i in np.flatnonzero(self.matrix[j]):
                factor = self.matrix[j, i]
                ends = sorted((np.array([every.lower[j], every.upper[j]]) - self.offset[j])
                              / factor)
                limits['lower'][i] = np.fmax(limits['lower'][i], ends[0])
                limits['upper'][i] = np.fmin(limits['upper'][i], ends[1])
                for key in ('velocity', 'acceleration'):
                    limits[key][i] = np.fmin(limits[key][i], getattr(every, key)[j] / abs(factor))
        return Limits(**{key: frozen(values) for key, values in limits.items()})


def linkage_of(tree: RobotModel, moved: Mapping[str, Follower]) -> Linkage:
    """Return the linkage of a tree whose joints ``moved`` follow others."""
    driven = [j for j, name in enumerate(tree.joints) if name not in moved]
    matrix, offset = np.zeros((tree.n, len(driven))), np.zeros(tree.n)
    matrix[driven, np.arange(len(driven))] = 1.0
    for name, one in moved.items():
        matrix[tree.index(name), driven.index(tree.index(one.leader))] = one.factor
        offset[tree.index(name)] = one.offset
    return Linkage(tree, np.array(driven, dtype=np.int64), frozen(matrix), frozen(offset))


def followers_of(
    description: Description, below: Sequence[JointDescription],
    moving: dict[str, JointDescription], listed: Collection[str],
) -> tuple[dict[str, Follower], dict[str, float], list[str]]:
    """Separate joints that mimic others, and coupled joints of tools, from ``moving``.

    ``below`` are the joints below the base, ``listed`` those listed by the user. Returns the
    followers that move parts of the robot, the positions at which other joints are locked (leaders
    at zero), and notes on both. Raises RobotError if one mimics an unknown joint.
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
            raise description.error(f'{", ".join(group)} mimic {leader!r} and have no motor; '
                                    'remove them from "joints"')
        if leader not in leaders and not listed and not all(map(TOOL.search, group)):
            raise description.error(f'joint {next(iter(group))!r} mimics {leader!r}, which is not '
                                    'an independent joint; correct <mimic>')
        for name in group:
            moving.pop(name, None)
    for leader, group in groups.items():
        if leader in moving and not listed and _is_tool(
                description, [joints[name] for name in (leader, *group)]):
            del moving[leader]
            notes.append(f'{leader}, {", ".join(group)}: joints of a tool, locked with '
                         f'{leader} at zero')
            continue
        parts = {name: one for name, one in group.items()
                 if leader in moving and _carries(description, moving, joints[name])}
        notes += [f'{name} moves with {leader}: {one.factor:g} times its position'
                  + f' plus {one.offset:g}' * (one.offset != 0.0) for name, one in parts.items()]
        locked = [name for name in group if name not in parts]
        if locked:
            notes.append(f'{subject(locked, "mimics", "mimic")} {leader!r}: locked at zero')
        moved |= parts
    return moved, {name: one.offset for group in groups.values()
                   for name, one in group.items()}, notes


def _follower(joints: Mapping[str, JointDescription], joint: JointDescription) -> Follower:
    """Return the leader of a joint, through chains of mimic joints, with factor and offset."""
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
    """Return True if a joint carries mass or a moving joint."""
    behind = description.below(joint.child)
    return any(description.links[link].parameters.any()
               for link in (joint.child, *(one.child for one in behind))) or any(
                   one.name in moving for one in behind)


def _is_tool(description: Description, group: Sequence[JointDescription]) -> bool:
    """Return True if coupled joints, leader first, are those of a tool.

    They carry no independent joint, and the followers have names of tools, or the leader neither
    carries them nor is carried.
    """
    names = {joint.name for joint in group}
    carried = [{other.name for other in description.below(joint.child) if other.kind != 'fixed'}
               for joint in group]
    every = set().union(*carried)
    return every <= names and (all(TOOL.search(joint.name) for joint in group[1:]) or not (
        carried[0] or group[0].name in every))
