"""Joints whose position follows that of another joint: <mimic> of a URDF."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from robot_dynid.robot.description import Description, JointDescription
from robot_dynid.robot.linkage import Follower

#: names of joints that move a tool, not the arm
TOOL = re.compile('gripper|finger|thumb|knuckle|hand_', re.IGNORECASE)


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
