"""Suitability of an identified model: a verdict per joint and use, and the next actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robot_dynid.plain import to_plain

#: uses of a model, in the order they are shown
GRAVITY, FEED_FORWARD, CONTACT, SIMULATION = (
    'gravity compensation', 'feed-forward', 'contact detection', 'simulation')
USES = (GRAVITY, FEED_FORWARD, CONTACT, SIMULATION)
#: most actions that a verdict names
MOST_ACTIONS = 5


@dataclass(frozen=True)
class Criterion:
    """A criterion of a use: ``measure`` in ``unit`` is at most ``threshold``, for a ``reason``."""

    measure: str
    threshold: float
    unit: str
    reason: str


CRITERIA: Mapping[str, Criterion] = {
    GRAVITY: Criterion(
        'error of the static effort with its 95 % interval, divided by the dry friction', 0.5,
        'of the dry friction',
        'A released joint drifts if the error of weight and offset exceeds the dry friction that '
        'holds it, and a warm joint may have half the friction of a cold one.'),
    FEED_FORWARD: Criterion(
        'unpredicted effort in motion that was not fitted, divided by the effort', 0.2,
        'of the effort',
        'Feedback has to supply the rest: with four fifths fed forward, tracking errors are five '
        'times smaller. A model that predicts worse than URDF inertials with fitted friction '
        'has no use.'),
    CONTACT: Criterion(
        'push that is detected in 95 % of the motion, divided by the smaller one of 140 N at the '
        'tip and the largest effort of the joint', 1.0, 'of the largest useful push',
        'ISO/TS 15066 permits 140 N on chest and hands, and a push larger than the effort of the '
        'joint shows without a model. A tip closer to the axis than 0.1 m counts as 0.1 m away.'),
    SIMULATION: Criterion(
        'error of positions simulated for 0.5 s, divided by the error of assuming constant '
        'velocity', 0.5, 'of the error at constant velocity',
        'A simulation must be at least twice as accurate as no model at all. The mass matrix '
        'couples all joints: a refused joint, or a matrix that is not positive definite, makes '
        'all of them unusable.'),
}
#: without dry friction, the error of the static effort over the largest static effort
WITHOUT_FRICTION = Criterion(
    'error of the static effort with its 95 % interval, divided by the largest static effort',
    0.05, 'of the largest static effort',
    'Nothing holds a joint without dry friction: the error makes it sink, and a light touch '
    'balances a twentieth of the weight.')
#: of contact detection, too
FALSE_ALARMS = Criterion(
    'contacts reported although nothing touches the robot', 1.0, 'false alarms per hour',
    'Each alarm stops the robot; with more than one an hour, operators switch detection off.')


@dataclass(frozen=True)
class NextAction:
    """An action to take; ``command`` is one to paste, '' where hardware must be touched."""

    words: str
    command: str = ''


@dataclass(frozen=True)
class UseVerdict:
    """Suitability of one joint of a model for one ``use`` (of USES).

    ``ok`` is True where the recordings show that it is good, False where they show that it is
    not, and None where they show neither; ``value`` is the number it is judged by and
    ``threshold`` the largest that is good, both in ``unit``, None where they are not known;
    ``words`` say what was measured, against what, and why; ``shown_by`` is what would show what
    is not shown, None where no recording does.
    """

    use: str
    ok: bool | None
    value: float | None
    threshold: float | None
    unit: str
    words: str
    shown_by: NextAction | None = None

    @property
    def word(self) -> str:
        """'good', 'not good' or 'not shown'."""
        return 'not shown' if self.ok is None else 'good' if self.ok else 'not good'


@dataclass(frozen=True)
class JointVerdict:
    """The verdicts of one ``joint``, a UseVerdict for each of USES; ``words`` sum them up."""

    joint: str
    uses: tuple[UseVerdict, ...]
    words: str


@dataclass(frozen=True)
class Verdict:
    """Suitability of a model, joint by joint, and the next actions.

    ``words`` sum it up; ``joints`` are in the order of the robot, none where the recordings
    allowed no model; at most MOST_ACTIONS ``actions``, the most valuable first.
    """

    words: str
    joints: tuple[JointVerdict, ...] = ()
    actions: tuple[NextAction, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole in a sentence, then joints that are not good for all uses, and actions."""
        return (self.words, *(f'{one.joint}: {one.words}' for one in self.joints
                              if not all(use.ok for use in one.uses)),
                *(f'next: {one.words}' + (f': {one.command}' if one.command else '')
                  for one in self.actions))

    def plain(self) -> dict[str, Any]:
        """Return it in plain types, for JSON."""
        found: dict[str, Any] = to_plain(self)
        for joint, shown in zip(self.joints, found['joints'], strict=True):
            for use, entry in zip(joint.uses, shown['uses'], strict=True):
                entry['word'] = use.word
        return found
