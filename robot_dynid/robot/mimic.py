"""Joints whose position follows that of another joint: <mimic> of a URDF."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from robot_dynid.robot.description import Description, JointDescription

#: names of joints that move a tool, not the arm
TOOL = re.compile('gripper|finger|thumb|knuckle|hand_', re.IGNORECASE)


def lock_mimicking(
    description: Description, below: Sequence[JointDescription],
    moving: dict[str, JointDescription], listed: Collection[str],
) -> tuple[dict[str, float], list[str]]:
    """Take joints that mimic others, and all of a tool of such, out of ``moving``.

    ``below`` are the joints below the base, ``listed`` those that the user lists. Returns the
    positions at which joints stand, that of a leader being zero, and sentences about them. Raises
    RobotError for one that moves an arm, or mimics no joint there is.
    """
    joints = {joint.name: joint for joint in below}
    standing: dict[str, float] = {}
    groups: dict[str, list[str]] = {}
    for joint in below:
        if joint.mimic is not None:
            leader, standing[joint.name] = _leader(joints, joint)
            groups.setdefault(leader, []).append(joint.name)
    notes = []
    for leader, followers in groups.items():
        names = ', '.join(followers)
        if set(followers) & set(listed):
            raise description.error(f'{names} mimic {leader!r}, so no motor of its own moves '
                                    'them; take them out of "joints"')
        if (leader not in joints or joints[leader].mimic is not None) and any(
                name in moving for name in followers):
            raise description.error(f'joint {followers[0]!r} mimics {leader!r}, which is no joint '
                                    'with a position of its own below the base; correct <mimic>')
        note = f'{names}: mimics {leader!r}, stands where that is at zero'
        if leader in moving and not listed:
            group = [joints[name] for name in (leader, *followers)]
            if _is_tool(description, group):
                del moving[leader]
                note = f'{leader}, {names}: move a tool, which is locked where {leader} is at zero'
            else:
                for joint in group[1:]:
                    note += _moved_mass(description, moving, group[0], joint)
        for name in followers:
            moving.pop(name, None)
        notes.append(note)
    return standing, notes


def _leader(
    joints: Mapping[str, JointDescription], joint: JointDescription
) -> tuple[str, float]:
    """Return the joint that one mimics in the end, and its position where that is at zero."""
    position, factor, seen = 0.0, 1.0, set()
    while joint.mimic is not None:
        seen.add(joint.name)
        position += factor * joint.mimic.offset
        factor *= joint.mimic.multiplier
        name = joint.mimic.joint
        if name not in joints or name in seen:
            return name, position
        joint = joints[name]
    return joint.name, position


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


def _moved_mass(
    description: Description, moving: Mapping[str, JointDescription], leader: JointDescription,
    joint: JointDescription,
) -> str:
    """Return what to say about the mass behind a joint that follows one of the arm.

    Raises RobotError where other joints are behind it, or the leader moves nothing else.
    """
    behind = description.below(joint.child)
    mass = sum(float(description.links[link].parameters[0])
               for link in (joint.child, *(one.child for one in behind)))
    others = [one.name for one in description.below(leader.child)
              if one.name in moving and one.mimic is None]
    if any(one.name in moving for one in behind) or (mass > 0.0 and not others):
        raise description.error(
            f'joint {joint.name!r} mimics {leader.name!r} and moves a part of the arm with it: '
            'axes coupled like this are not supported, so this arm cannot be described. Where the '
            f'motion of {joint.name!r} may be neglected, write a robot YAML that lists the other '
            'joints under "joints", which locks it')
    return f'; its {mass:.3g} kg do not move with {leader.name}' if mass > 0.0 else ''
