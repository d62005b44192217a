"""Suitability of an identified model: a verdict per joint and use, and the next actions.

`Verdict.sections` is what page, terminal and JSON show of it, and nothing else judges a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robot_dynid.document import (
    LARGEST_SHARE,
    MOST_DECIMALS,
    Action,
    Card,
    Cell,
    Conclusion,
    Section,
    Table,
    listed,
    number,
    share_of,
)
from robot_dynid.plain import to_plain

#: uses of a model, in the order they are shown
GRAVITY, FEED_FORWARD, CONTACT, SIMULATION = (
    'gravity compensation', 'feed-forward', 'contact detection', 'simulation')
USES = (GRAVITY, FEED_FORWARD, CONTACT, SIMULATION)
#: most actions that a verdict names, and joints of a use in brief
MOST_ACTIONS, MOST_JOINTS = 5, 3
#: words and marks of what is shown to be good, is shown not to be, and is not shown
WORDS: Mapping[bool | None, str] = {True: 'good', False: 'not good', None: 'not shown'}
MARKS: Mapping[bool | None, str] = {True: 'good', False: 'poor', None: ''}
LEGEND = 'Good: the recordings show that the number meets its threshold; not good: that it does ' \
    'not; not shown: neither. The largest useful push is 140 N at the tip, or the largest ' \
    'effort of the joint if that is smaller.'


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
        'Feedback must supply the rest: with four fifths fed forward, tracking errors are five '
        'times smaller. A model that predicts worse than URDF inertials with fitted friction '
        'is of no use.'),
    CONTACT: Criterion(
        'smallest push that is detected during 95 % of the motion, divided by 140 N at the tip or '
        'by the largest effort of the joint, whichever is smaller', 1.0,
        'of the largest useful push',
        'ISO/TS 15066 permits 140 N on chest and hands, and a push larger than the effort of the '
        'joint is noticed without a model. A tip closer to the axis than 0.1 m is taken as 0.1 m '
        'away.'),
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
    'Nothing holds a joint without dry friction, so any error makes it drift; a light touch '
    'balances a twentieth of the weight.')
#: of contact detection, too
FALSE_ALARMS = Criterion(
    'contacts reported although nothing touches the robot', 1.0, 'false alarms per hour',
    'Each alarm stops the robot; with more than one an hour, operators turn detection off.')


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
    shown_by: Action | None = None

    @property
    def word(self) -> str:
        """'good', 'not good' or 'not shown'."""
        return WORDS[self.ok]

    @property
    def figure(self) -> str:
        """The value: '25 % of the effort (threshold 20 %)'; '' without a number.

        It has as many digits as tell it from the threshold. A model that meets it is not good
        where nominal inertials do better.
        """
        if self.value is None or self.threshold is None:
            return ''
        if self.ok is False and self.value <= self.threshold:
            return 'nominal inertials do better'
        share = self.unit.startswith('of ')
        value, most = ((100.0 * one if share else one) for one in (self.value, self.threshold))
        bound, sign = f'{most:g}', ' %' if share else ''
        if share and self.value > LARGEST_SHARE:
            return f'{share_of(self.value, self.unit.removeprefix("of "))} (threshold {bound} %)'
        shown = next((text for digits in range(2, MOST_DECIMALS + 1)
                      if (text := number(value, digits)) != bound), bound)
        return f'{shown}{sign} {self.unit} (threshold {bound}{sign})'


@dataclass(frozen=True)
class JointVerdict:
    """The verdicts of one ``joint``, a UseVerdict for each of USES; ``words`` sum them up."""

    joint: str
    uses: tuple[UseVerdict, ...]
    words: str


@dataclass(frozen=True)
class Verdict:
    """Suitability of a model, joint by joint, and the next actions.

    ``notes`` are sentences about the whole: what it was judged on, and what it adds to the URDF;
    ``joints`` are in the order of the robot, none where the recordings allowed no model; at most
    MOST_ACTIONS ``actions``, the most valuable first; ``errors`` of the effort in brief.
    """

    notes: tuple[str, ...]
    joints: tuple[JointVerdict, ...] = ()
    actions: tuple[Action, ...] = ()
    errors: tuple[Card, ...] = ()

    @property
    def headline(self) -> str:
        """The uses that are good in all joints, in a sentence; '' without a model."""
        good = [use for use in USES if all(one.ok for one in self._of(use))]
        if not self.joints:
            return ''
        return f'Good for {listed(good)} in all joints.' if good else \
            'No use is shown to be good in all joints.'

    @property
    def exceptions(self) -> tuple[tuple[str, str, str], ...]:
        """Use, mark and words of each use that is not good in all joints."""
        rows = []
        for use in USES if self.joints else ():
            parts = {ok: {one.joint: verdict for one, verdict in zip(
                self.joints, self._of(use), strict=True) if verdict.ok is ok} for ok in WORDS}
            if len(parts[True]) < len(self.joints):
                words = '; '.join(_part(parts, ok) for ok in (False, None) if parts[ok])
                rows.append((use, MARKS[False if parts[False] else None], words))
        return tuple(rows)

    @property
    def words(self) -> str:
        """The whole in a few sentences."""
        return ' '.join(filter(None, (
            self.headline, *(f'{use[:1].upper()}{use[1:]}: {words}.'
                             for use, _, words in self.exceptions), *self.notes)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole, then joints that are not good for all uses, and actions."""
        return (self.words, *(f'{one.joint}: {one.words}' for one in self.joints
                              if not all(use.ok for use in one.uses)),
                *(f'next: {one.words}' + (f': {one.command}' if one.command else '')
                  for one in self.actions))

    def sections(self, most: int | None = None) -> tuple[Section, ...]:
        """Return the sections of the verdict and of its first ``most`` next actions.

        A terminal shows the uses that are not good in all joints, a page each joint with its
        numbers, thresholds and reasons, too.
        """
        uses = [(joint.joint, use) for joint in self.joints for use in joint.uses]
        tables = (
            Table((), ((use, Cell(words, mark)) for use, mark, words in self.exceptions)),
            Table(('joint', *USES), ((joint.joint, *(
                Cell(use.word, MARKS[use.ok], use.figure) for use in joint.uses))
                for joint in self.joints), LEGEND, detail=True),
            Table(('joint', 'use', 'because'), (
                (joint, use.use, _because(use)) for joint, use in uses if use.words),
                'Reasons', words=True, folded=True))
        uses_section = Section('What it is good for', cards=self.errors, status=Conclusion(
            self._kind, self.headline, ' '.join(self.notes)),
            tables=tuple(table for table in tables if table.rows))
        actions = tuple(Action(f'{one.words[:1].upper()}{one.words[1:]}', one.command)
                        for one in self.actions[:most])
        return (uses_section, *([Section('Next actions, the most valuable first', actions=actions)]
                                if actions else []))

    @property
    def _kind(self) -> str:
        """'poor' where a joint or a use is not good at all, 'good' where all are."""
        uses = [[use.ok for use in joint.uses] for joint in self.joints]
        if not uses or any(not any(ok is not False for ok in part)
                           for part in (*uses, *zip(*uses, strict=True))):
            return 'poor'
        return 'good' if all(all(joint) for joint in uses) else 'fair'

    def _of(self, use: str) -> Sequence[UseVerdict]:
        return [joint.uses[USES.index(use)] for joint in self.joints]

    def plain(self) -> dict[str, Any]:
        """Return it in plain types, for JSON."""
        fields: dict[str, Any] = {'words': self.words, **to_plain(self)}
        for joint, shown in zip(self.joints, fields['joints'], strict=True):
            for use, entry in zip(joint.uses, shown['uses'], strict=True):
                entry['word'] = use.word
        return fields


def _part(parts: Mapping[bool | None, Mapping[str, UseVerdict]], ok: bool | None) -> str:
    """Return the verdict ``ok`` with its joints, and for what: the largest excess, or a reason."""
    uses = parts[ok]
    whole = len(uses) == sum(map(len, parts.values()))
    where = '' if whole else f' in {listed(uses, MOST_JOINTS)}'
    if ok is None:  # the next actions say why
        return f'{WORDS[ok]}{where}'
    joint, worst = max(uses.items(), key=lambda one: _excess(one[1]))
    why = worst.figure or worst.words
    figures = {use.figure for use in uses.values()}
    of = f'{joint} ' if len(figures) > 1 else ''
    return f'{WORDS[ok]}{where}: {of}{why}'


def _excess(use: UseVerdict) -> float:
    return 0.0 if use.value is None or not use.threshold else use.value / use.threshold


def _because(use: UseVerdict) -> str:
    """Return the reason: what was measured, and the motion that would show what is not shown."""
    motion = use.shown_by
    return use.words if motion is None else \
        f'{use.words}. {motion.words[:1].upper()}{motion.words[1:]}: {motion.command}'
