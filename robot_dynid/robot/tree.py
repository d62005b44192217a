"""Kinematic tree of a RobotModel, indexed, from named links and joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import RobotError, UsageError, clipped
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.inertia import move_parameters
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Limits, Link, RobotModel
from robot_dynid.types import FloatArray, frozen

MOVABLE = ('revolute', 'continuous', 'prismatic')
#: movable joints of a robot; matrices of its dynamics grow with the square of them
MOST_JOINTS = 4000


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A link with its parameters (10,) in its own frame; ``doubt``: a warning where it moves."""

    name: str
    parameters: FloatArray
    has_inertial: bool
    doubt: str = ''


@dataclass(frozen=True, eq=False)
class JointDescription:
    """A joint: ``placement`` (4, 4) in the parent link, unit ``axis`` (3,), ``limits`` (4,)."""

    name: str
    kind: str
    parent: str
    child: str
    placement: FloatArray
    axis: FloatArray
    limits: FloatArray
    mimic: bool = False


@dataclass(frozen=True)
class Selection:
    """The part of a description that is the robot; empty means all of it."""

    base_link: str = ''
    tip_link: str = ''
    joints: tuple[str, ...] = ()


def build_robot(
    name: str,
    links: Sequence[LinkDescription],
    joints: Sequence[JointDescription],
    selection: Selection,
    source: str,
) -> RobotModel:
    """Index the tree of ``links`` and ``joints``.

    Raises RobotError when they do not form a tree or a moving joint is of an unsupported kind,
    UsageError when ``selection`` names something that does not exist.
    """
    known = {link.name: link for link in links}
    above = _joint_above(known, joints, source)
    base = _base_link(known, above, selection, source)
    moving = _moving_joints(joints, above, base, selection, source)
    return _index(name, base, moving, _children(joints), known, source)


def _joint_above(
    known: dict[str, LinkDescription], joints: Sequence[JointDescription], source: str
) -> dict[str, JointDescription]:
    above: dict[str, JointDescription] = {}
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in known:
                raise RobotError(f'{source}: joint {joint.name!r} names link {link!r}, which is '
                                 'not defined; add the link or correct the name')
        if joint.child in above:
            raise RobotError(
                f'{source}: link {joint.child!r} has two parents (joints '
                f'{above[joint.child].name!r} and {joint.name!r}): kinematic loops are not '
                'supported; remove one of the joints'
            )
        above[joint.child] = joint
    _refuse_loops(above, source)
    return above


def _refuse_loops(above: dict[str, JointDescription], source: str) -> None:
    """Raise RobotError where joints lead back to where they come from; each link is seen once."""
    chain: dict[str, None]
    seen: set[str] = set()
    for start in above:
        link, chain = start, {}
        while link in above and link not in seen:
            seen.add(link)
            chain[link] = None
            link = above[link].parent
        if link in chain:
            names = list(chain)
            loop = clipped(', '.join(names[names.index(link):]), 400)
            raise RobotError(f'{source}: links {loop} form a loop, which is not supported; every '
                             'joint must lead away from one base link')


def _base_link(
    known: dict[str, LinkDescription], above: dict[str, JointDescription], selection: Selection,
    source: str,
) -> str:
    for link in (selection.base_link, selection.tip_link):
        if link and link not in known:
            raise UsageError(f'{source}: no link {link!r}; there are {", ".join(known)}')
    roots = [link for link in known if link not in above]
    if selection.base_link:
        return selection.base_link
    if not roots:
        raise RobotError(f'{source}: defines no link; a robot needs <link> and <joint> elements')
    if len(roots) > 1:
        raise RobotError(f'{source}: {len(roots)} links without a parent ({", ".join(roots)}): '
                         'connect them, or choose base_link')
    return roots[0]


def _path(link: str, base: str, above: dict[str, JointDescription]) -> list[JointDescription]:
    """Return the joints from ``base`` to ``link``; empty when ``link`` is not below ``base``."""
    path: list[JointDescription] = []
    while link != base:
        if link not in above or len(path) > len(above):
            return []
        path.append(above[link])
        link = above[link].parent
    return path[::-1]


def _moving_joints(
    joints: Sequence[JointDescription], above: dict[str, JointDescription], base: str,
    selection: Selection, source: str,
) -> dict[str, JointDescription]:
    reached = _below(base, _children(joints))
    below = [j for j in joints if j.child in reached]
    if selection.tip_link:
        below = _path(selection.tip_link, base, above)
        if not below:
            raise UsageError(f'{source}: tip link {selection.tip_link!r} is not below base link '
                             f'{base!r}')
    names = {j.name: j for j in below if j.kind != 'fixed'}
    chosen = set(selection.joints)
    missing = [j for j in selection.joints if j not in names]
    if missing:
        raise UsageError(f'{source}: no movable joint {", ".join(missing)} below {base!r}; '
                         f'there are {", ".join(names)}')
    moving = {n: j for n, j in names.items() if not chosen or n in chosen}
    if len(moving) > MOST_JOINTS:
        raise RobotError(f'{source}: {len(moving)} movable joints below {base!r}, at most '
                         f'{MOST_JOINTS} are read; list those of the robot under "joints"')
    for joint in moving.values():
        if joint.mimic:
            raise RobotError(f'{source}: joint {joint.name!r} is a mimic joint, which is not '
                             'supported; list the other joints under "joints" of a robot YAML, '
                             'which locks it: `robot-dynid init` writes one from a URDF')
        if joint.kind not in MOVABLE:
            raise RobotError(f'{source}: joint {joint.name!r} has type {joint.kind!r}; supported '
                             f'are {", ".join(MOVABLE)} and fixed; list the other joints under '
                             '"joints" to lock it')
    if not moving:
        raise RobotError(f'{source}: no movable joint below link {base!r}; there is nothing to '
                         'identify (is base_link right?)')
    return moving


def _below(base: str, children: dict[str, list[JointDescription]]) -> set[str]:
    """Return the links below ``base``."""
    found: set[str] = set()
    stack = [base]
    while stack:
        new = [j.child for j in children.get(stack.pop(), ()) if j.child not in found]
        found.update(new)
        stack += new
    return found - {base}


def _children(joints: Sequence[JointDescription]) -> dict[str, list[JointDescription]]:
    children: dict[str, list[JointDescription]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    return children


def _index(
    name: str, base: str, moving: dict[str, JointDescription],
    children: dict[str, list[JointDescription]], known: dict[str, LinkDescription], source: str,
) -> RobotModel:
    order: list[JointDescription] = []
    parents: list[int] = []
    placements: list[FloatArray] = []
    members: list[Link] = []
    stack = [(base, -1, np.eye(4))]
    while stack:
        link, body, placement = stack.pop()
        if body >= 0:
            own = known[link]
            members.append(Link(link, body, frozen(placement), frozen(own.parameters),
                                own.has_inertial))
        for joint in reversed(children.get(link, [])):
            if joint.name not in moving:
                stack.append((joint.child, body, placement @ joint.placement))
        for joint in children.get(link, []):
            if joint.name in moving:
                order.append(joint)
                parents.append(body)
                placements.append(placement @ joint.placement)
                stack.append((joint.child, len(order) - 1, np.eye(4)))
    doubts = [f'link {m.name!r}: {known[m.name].doubt}' for m in members if known[m.name].doubt]
    nominal = np.zeros((len(order), 10))
    for member in members:
        nominal[member.body] += move_parameters(member.parameters, member.placement)
    transforms = np.array(placements)
    types = [PRISMATIC if j.kind == 'prismatic' else REVOLUTE for j in order]
    limits = np.array([j.limits for j in order]).T
    robot = RobotModel(
        name=name,
        joints=tuple(j.name for j in order),
        types=np.array(types, dtype=np.int8),
        parents=np.array(parents, dtype=np.int64),
        rotations=frozen(transforms[:, :3, :3]),
        translations=frozen(transforms[:, :3, 3]),
        axes=frozen([j.axis for j in order]),
        bodies=tuple(j.child for j in order),
        nominal=frozen(nominal),
        limits=Limits(frozen(limits[0]), frozen(limits[1]), frozen(limits[2]),
                      frozen(np.full(len(order), np.nan)), frozen(limits[3])),
        base_link=base,
        links=tuple(members),
        source=source,
    )
    return replace(robot, warnings=(*doubts, *(
        f'link {one.link!r}: {one.text}' for one in implausible_inertials(robot))))
