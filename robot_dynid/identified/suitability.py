"""Suitability of an identified model: a verdict per joint and use, and the next actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robot_dynid.plain import to_plain

#: uses of a model, in the order they are shown
GRAVITY, FEED_FORWARD, CONTACT, SIMULATION = (
    'gravity compensation', 'feed-forward', 'contact detection', 'simulation')
USES = (GRAVITY, FEED_FORWARD, CONTACT, SIMULATION)
#: most actions that a verdict names
ACTIONS = 5


@dataclass(frozen=True)
class UseVerdict:
    """Suitability of one joint of a model for one ``use`` (of USES).

    ``ok`` is None where it cannot be judged; ``value`` is the number it is judged by and
    ``threshold`` the largest that is good, both in ``unit``, None where they are not known;
    ``words`` say what was measured, against what, and why.
    """

    use: str
    ok: bool | None
    value: float | None
    threshold: float | None
    unit: str
    words: str

    @property
    def word(self) -> str:
        """'good', 'not' or 'not judged'."""
        return 'not judged' if self.ok is None else 'good' if self.ok else 'not'


@dataclass(frozen=True)
class JointVerdict:
    """The verdicts of one ``joint``, a UseVerdict for each of USES; ``words`` sum them up."""

    joint: str
    uses: tuple[UseVerdict, ...]
    words: str


@dataclass(frozen=True)
class NextAction:
    """An action to take; ``command`` is one to paste, '' where hardware must be touched."""

    words: str
    command: str = ''


@dataclass(frozen=True)
class Verdict:
    """Suitability of a model, joint by joint, and the next actions.

    ``words`` sum it up; ``joints`` are in the order of the robot, none where the recordings
    allowed no model; at most ACTIONS ``actions``, the most valuable first.
    """

    words: str
    joints: tuple[JointVerdict, ...] = ()
    actions: tuple[NextAction, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return it in plain types, for JSON."""
        found: dict[str, Any] = to_plain(self)
        for joint, shown in zip(self.joints, found['joints'], strict=True):
            for use, entry in zip(joint.uses, shown['uses'], strict=True):
                entry['word'] = use.word
        return found
