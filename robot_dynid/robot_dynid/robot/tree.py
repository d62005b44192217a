"""Build the indexed kinematic tree of a RobotModel from a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.document import joints_named
from robot_dynid.errors import UsageError
from robot_dynid.robot.description import (
    CARRIED,
    ERROR,
    FINDINGS,
    LEADS,
    MOVABLE,
    MOVES,
    WARNING,
    Description,
    JointDescription,
)
from robot_dynid.robot.implausible import implausible_inertials
from robot_dynid.robot.inertia import move_parameters
from robot_dynid.robot.linkage import followers_of, linkage_of
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, Limits, Link, RobotModel
from robot_dynid.types import FloatArray, frozen

#: limit of movable joints; matrices of the dynamics grow with its square
MAX_JOINTS = 4000


@dataclass(frozen=True)
class Selection:
    """The part of a description that is the robot; empty means all of it."""

    base_link: str = ''
    tip_link: str = ''
    joints: tuple[str, ...] = ()


def build_robot(description: Description, selection: Selection) -> RobotModel:
    """Build the kinematic tree of the selected part of a description.

    Joints that are not selected are locked at zero, mimic joints where their leader is at zero.
    Raises RobotError if data required by the dynamics cannot be read or a moving joint has an
    unsupported type, UsageError if ``selection`` names an unknown element.
    """
    base = description.base(selection.base_link)
    below = description.path(base, selection.tip_link) if selection.tip_link else (
        description.below(base))
    names = {j.name: j for j in below if j.kind != 'fixed'}
    missing = [j for j in selection.joints if j not in names]
    if missing:
        raise UsageError(f'{description.source}: no movable {joints_named(missing)} below '
                         f'{base!r}; there are {", ".join(names)}')
    moving = {n: j for n, j in names.items() if not selection.joints or n in selection.joints}
    if len(moving) > MAX_JOINTS:
        raise description.error(f'{len(moving)} movable joints below {base!r}, at most '
                                f'{MAX_JOINTS} are read; list those of the robot under "joints"')
    moved, standing, notes = followers_of(
        description, description.below(base), moving, selection.joints)
    moving |= {joint.name: joint for joint in description.below(base) if joint.name in moved}
    for joint in moving.values():
        if joint.kind not in MOVABLE:
            small = joint.kind.lower() in (*MOVABLE, 'fixed')
            raise description.error(
                f'joint {joint.name!r} has type {joint.kind!r}; supported are '
                f'{", ".join(MOVABLE)} and fixed' + ('' if small else '; list the other joints '
                                                     'under "joints" to lock it'))
    if not moving:
        raise description.error(f'no movable joint below link {base!r}; there is nothing to '
                                'identify (is base_link right?)')
    notes += _findings(description, base, moving)
    robot = _index(description, base, moving, standing)
    robot = replace(robot, warnings=(*description.notes, *notes, *(
        f'link {one.link!r}: {one.text}' for one in implausible_inertials(robot))))
    return linkage_of(robot, moved).robot() if moved else robot


def _findings(
    description: Description, base: str, moving: Mapping[str, JointDescription]
) -> list[str]:
    """Return the warnings about elements by their role; raises RobotError for errors."""
    outward, warnings = description.below(base), []
    leading: set[str] = set()
    for joint in reversed(outward):
        if joint.name in moving or joint.child in leading:
            leading |= {joint.child, joint.parent}
    carried: set[str] = set()
    for joint in outward:
        moves = joint.name in moving
        if moves or joint.parent in carried:
            carried.add(joint.child)
        behind = CARRIED if joint.child in carried else ''
        where = LEADS if joint.child in leading else behind
        for element, place in ((joint, MOVES if moves else where),
                               (description.links[joint.child], behind and where)):
            for finding in element.findings:
                severity, assumed = FINDINGS[finding.kind]
                if severity.get(place) == ERROR:
                    raise description.error(finding.text)
                if severity.get(place) == WARNING:
                    warnings.append(f'{finding.text}{assumed}')
    return warnings


def _index(
    description: Description, base: str, moving: Mapping[str, JointDescription],
    standing: Mapping[str, float],
) -> RobotModel:
    order: list[JointDescription] = []
    parents: list[int] = []
    placements: list[FloatArray] = []
    members: list[Link] = []
    stack = [(base, -1, np.eye(4))]
    while stack:
        link, body, placement = stack.pop()
        if body >= 0:
            entry = description.links[link]
            members.append(Link(link, body, frozen(placement), frozen(entry.parameters),
                                entry.has_inertial))
        for joint in reversed(description.children.get(link, [])):
            if joint.name not in moving:
                stack.append((joint.child, body,
                              placement @ joint.at(standing.get(joint.name, 0.0))))
        for joint in description.children.get(link, []):
            if joint.name in moving:
                order.append(joint)
                parents.append(body)
                placements.append(placement @ joint.placement)
                stack.append((joint.child, len(order) - 1, np.eye(4)))
    nominal = np.zeros((len(order), 10))
    for member in members:
        nominal[member.body] += move_parameters(member.parameters, member.placement)
    transforms = np.array(placements)
    types = [PRISMATIC if j.kind == 'prismatic' else REVOLUTE for j in order]
    limits = np.array([j.limits for j in order]).T
    return RobotModel(
        name=description.name,
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
        source=description.source,
    )
