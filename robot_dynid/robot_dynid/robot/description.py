"""Links and joints of a robot description by name, and its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robot_dynid.errors import RobotError, UsageError, clipped
from robot_dynid.robot.inertia import homogeneous, rotation_about
from robot_dynid.types import FloatArray

MOVABLE = ('revolute', 'continuous', 'prismatic')
#: role of an element: a moving joint; between the base and one; carried by one; other elements do
#: not affect the dynamics
MOVES, LEADS, CARRIED = 'moves', 'leads', 'carried'
ERROR, WARNING = 'error', 'warning'
#: faults of an element: error or warning by its role, and the assumption made
FINDINGS: dict[str, tuple[dict[str, str], str]] = {
    'axis': ({MOVES: ERROR}, ''),
    'limit': ({MOVES: WARNING}, ''),
    'placement': ({MOVES: ERROR, LEADS: ERROR, CARRIED: WARNING}, '; it is taken as zero'),
    'inertial': ({LEADS: ERROR, CARRIED: WARNING}, '; the link counts as massless'),
    'massless': ({LEADS: WARNING, CARRIED: WARNING}, ''),
}


class Finding(NamedTuple):
    """A fault of a link or joint: its ``kind``, one of FINDINGS, and a sentence about it."""

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A link with its parameters (10,) in its own frame."""

    name: str
    parameters: FloatArray
    has_inertial: bool
    findings: tuple[Finding, ...] = ()


class Mimic(NamedTuple):
    """Position of a joint coupled to another one: ``multiplier`` times it, plus ``offset``."""

    joint: str
    multiplier: float
    offset: float


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
    mimic: Mimic | None = None
    findings: tuple[Finding, ...] = ()

    def at(self, position: float) -> FloatArray:
        """Return the placement (4, 4) of the child link in the parent at a position."""
        if self.kind == 'prismatic':
            return self.placement @ homogeneous(np.eye(3), position * self.axis)
        return self.placement @ homogeneous(rotation_about(self.axis, position), np.zeros(3))


@dataclass(frozen=True, eq=False)
class Description:
    """Links and joints of a file in its order, with ``notes`` on ignored content.

    Raises RobotError if they do not form trees.
    """

    name: str
    links: Mapping[str, LinkDescription]
    joints: Sequence[JointDescription]
    source: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        above: dict[str, JointDescription] = {}
        for joint in self.joints:
            for link in (joint.parent, joint.child):
                if link not in self.links:
                    raise self.error(f'joint {joint.name!r} names link {link!r}, which is not '
                                     f'defined; add <link name="{link}"/> or correct the name')
            if joint.child in above:
                raise self.error(f'link {joint.child!r} has two parents (joints '
                                 f'{above[joint.child].name!r} and {joint.name!r}): kinematic '
                                 'loops are not supported; remove one of the joints')
            above[joint.child] = joint
        self._refuse_loops(above)

    def error(self, text: str) -> RobotError:
        """Return the error that says ``text`` about the file."""
        return RobotError(f'{self.source}: {text}')

    def _refuse_loops(self, above: Mapping[str, JointDescription]) -> None:
        """Raise RobotError if joints form a loop; each link is visited once."""
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
                raise self.error(f'links {loop} form a loop, which is not supported; every joint '
                                 'must lead away from one base link')

    @cached_property
    def above(self) -> dict[str, JointDescription]:
        """The joint that moves each link."""
        return {joint.child: joint for joint in self.joints}

    @cached_property
    def children(self) -> dict[str, list[JointDescription]]:
        """The joints of each link that lead away from the base."""
        children: dict[str, list[JointDescription]] = {}
        for joint in self.joints:
            children.setdefault(joint.parent, []).append(joint)
        return children

    def base(self, chosen: str = '') -> str:
        """Return the base link: ``chosen``, or the only one without a parent.

        Raises UsageError for an unknown one, RobotError if there are several or none.
        """
        if chosen:
            return self.link(chosen)
        roots = [link for link in self.links if link not in self.above]
        if not roots:
            raise self.error('defines no link; a robot needs <link> and <joint> elements')
        if len(roots) > 1:
            raise self.error(f'{len(roots)} links without a parent ({", ".join(roots)}): connect '
                             'them, or choose base_link')
        return roots[0]

    def link(self, name: str) -> str:
        """Return the name if it is that of a link, else raise UsageError with the links."""
        if name not in self.links:
            raise UsageError(f'{self.source}: no link {name!r}; there are '
                             f'{", ".join(self.links)}')
        return name

    def path(self, base: str, tip: str) -> list[JointDescription]:
        """Return the joints from one link to another; raises UsageError if they are not connected.
        """
        path: list[JointDescription] = []
        link = self.link(tip)
        while link != base:
            if link not in self.above:
                raise UsageError(f'{self.source}: tip link {tip!r} is not below base link '
                                 f'{base!r}')
            path.append(self.above[link])
            link = self.above[link].parent
        return path[::-1]

    def below(self, base: str) -> list[JointDescription]:
        """Return the joints below a link, parents first."""
        joints_below, stack = [], [base]
        while stack:
            joints = self.children.get(stack.pop(), [])
            joints_below += joints
            stack += [joint.child for joint in joints]
        return joints_below
