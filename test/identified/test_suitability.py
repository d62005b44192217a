"""The verdict on a model as data, in words, and as what people are shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from robot_dynid.document import Action
from robot_dynid.identified.suitability import (
    CONTACT,
    CRITERIA,
    FALSE_ALARMS,
    FEED_FORWARD,
    GRAVITY,
    SIMULATION,
    USES,
    WITHOUT_FRICTION,
    JointVerdict,
    UseVerdict,
    Verdict,
)


def test_thresholds_are_those_that_the_reasons_name() -> None:
    """Half of the friction, a fifth left to feedback, the useful push, twice as accurate."""
    assert {use: one.threshold for use, one in CRITERIA.items()} == {
        GRAVITY: 0.5, FEED_FORWARD: 0.2, CONTACT: 1.0, SIMULATION: 0.5}
    assert (WITHOUT_FRICTION.threshold, FALSE_ALARMS.threshold) == (1.0 / 20.0, 1.0)


@pytest.mark.parametrize(('ok', 'word'), [
    (True, 'good'), (False, 'not good'), (None, 'not shown')])
def test_a_verdict_is_plain_data_with_a_word_for_every_use(ok: bool | None, word: str) -> None:
    uses = tuple(UseVerdict(use, ok, 0.1, 0.2, 'N m', 'why') for use in USES)
    verdict = Verdict(('all',), (JointVerdict('elbow', uses, 'sum'),), (Action('look'),))
    plain = json.loads(json.dumps(verdict.plain()))
    assert [use['word'] for use in plain['joints'][0]['uses']] == [word] * len(USES)
    assert [use['use'] for use in plain['joints'][0]['uses']] == list(USES)
    assert plain['actions'] == [{'words': 'look', 'command': ''}]
    assert plain['words'] == verdict.words and plain['words'].endswith('all')


def joint(name: str, *oks: bool | None, error: float = 0.25) -> JointVerdict:
    """Return a joint with the verdicts of all uses, the numbers those of an effort."""
    return JointVerdict(name, tuple(UseVerdict(
        use, ok, error, 0.2, 'of the effort', 'measured') for use, ok in zip(
            USES, oks, strict=True)), '')


def test_the_headline_names_what_is_good_everywhere_and_the_rest_is_excepted() -> None:
    verdict = Verdict(('Judged.',), (
        joint('elbow', True, False, None, False, error=30.0),
        joint('wrist', True, False, None, True), joint('hand', True, True, None, True)))
    assert verdict.headline == f'Good for {GRAVITY} in all joints.'
    assert verdict.exceptions == (
        (FEED_FORWARD, 'poor',
         'not good in elbow and wrist: elbow more than 10 times the effort (threshold 20 %)'),
        (CONTACT, '', 'not shown'),
        (SIMULATION, 'poor', 'not good in elbow: more than 10 times the effort (threshold 20 %)'))
    assert verdict.words.startswith(f'{verdict.headline} Feed-forward: not good in elbow and')
    assert Verdict(('No model.',)).words == 'No model.'
    assert Verdict((), (joint('elbow', None, None, None, None),)).headline == \
        'No use is shown to be good in all joints.'


def test_many_joints_are_counted() -> None:
    names = [f'joint_{k}' for k in range(6)]
    verdict = Verdict((), (joint('base', *[True] * 4), *(
        joint(name, True, True, None, True) for name in names)))
    assert verdict.exceptions == (
        (CONTACT, '', 'not shown in joint_0, joint_1, joint_2 and 3 more'),)


def test_a_terminal_is_shown_less_than_a_page() -> None:
    found, actions = Verdict(('Judged.',), (joint('elbow', True, False, None, True),), (
        Action('one: do it', 'robot-dynid'), Action('two'))).sections(1)
    assert [(table.detail, table.folded) for table in found.tables] == [
        (False, False), (True, False), (False, True)]
    assert [one.words for one in actions.actions] == ['One: do it']


@pytest.mark.parametrize(('value', 'unit', 'ok', 'figure'), [
    (0.25, 'of the effort', False, '25 % of the effort (threshold 20 %)'),
    (0.1, 'of the effort', True, '10 % of the effort (threshold 20 %)'),
    (0.20004, 'of the effort', False, '20.004 % of the effort (threshold 20 %)'),
    (0.2, 'of the effort', True, '20 % of the effort (threshold 20 %)'),
    (0.2, 'of the effort', False, 'nominal inertials do better'),
    (0.1, 'of the effort', None, '10 % of the effort (threshold 20 %)'),
    (10.0, 'of the effort', None, '1000 % of the effort (threshold 20 %)'),
    (10.1, 'of the effort', None, 'more than 10 times the effort (threshold 20 %)'),
    (30.0, 'false alarms per hour', False, '30 false alarms per hour (threshold 0.2)'),
    (None, 'of the effort', False, '')])
def test_a_figure_has_as_many_digits_as_tell_it_from_its_threshold(
    value: float | None, unit: str, ok: bool | None, figure: str
) -> None:
    assert UseVerdict(GRAVITY, ok, value, 0.2, unit, '').figure == figure
    assert UseVerdict(GRAVITY, ok, value, None, unit, '').figure == ''


GOOD = (True, True, True, True)


@pytest.mark.parametrize(('kind', 'joints'), [
    ('good', [GOOD, GOOD]), ('fair', [GOOD, (True, True, None, True)]),
    ('fair', [GOOD, (False, True, True, True)]),
    ('poor', [(False, True, True, True), (False, True, True, True)]),  # a use of no joint
    ('poor', [GOOD, (False, False, False, False)]),  # a joint of no use
    ('fair', [GOOD, (None, False, False, False)]), ('poor', [])])
def test_a_verdict_is_poor_where_a_joint_or_a_use_is_not_good_at_all(
    kind: str, joints: list[tuple[bool | None, ...]]
) -> None:
    verdict = Verdict((), tuple(joint(f'j{k}', *oks) for k, oks in enumerate(joints)))
    status = verdict.sections()[0].status
    assert status is not None and status.kind == kind


def test_sentences_are_the_whole_then_joints_then_actions() -> None:
    joints = replace(joint('elbow', *GOOD), words='fine'), replace(
        joint('wrist', True, None, True, True), words='open')
    verdict = Verdict((), joints, (Action('look', 'robot-dynid'), Action('wait')))
    assert verdict.sentences == (
        verdict.words, 'wrist: open', 'next: look: robot-dynid', 'next: wait')


def test_reasons_tell_the_motion_that_would_show_what_is_not_shown() -> None:
    uses = [UseVerdict(use, None, None, None, '', 'because') for use in USES]
    uses[1] = replace(uses[1], shown_by=Action('stop more often', 'robot-dynid design'))
    uses[2] = replace(uses[2], words='')
    (found,) = Verdict((), (JointVerdict('elbow', tuple(uses), ''),)).sections()
    assert [row.cells for row in found.tables[-1].rows] == [
        ('elbow', GRAVITY, 'because'),
        ('elbow', FEED_FORWARD, 'because. Stop more often: robot-dynid design'),
        ('elbow', SIMULATION, 'because')]


def test_the_joint_that_exceeds_the_threshold_most_stands_for_all() -> None:
    def verdict(value: float | None, threshold: float | None = 0.2) -> JointVerdict:
        return JointVerdict(f'at {value}', tuple(UseVerdict(
            use, False, value, threshold, 'of the effort', 'no number') for use in USES), '')

    def words(*joints: JointVerdict) -> str:
        return Verdict((), joints).exceptions[0][2]

    assert words(verdict(0.3), verdict(0.5), verdict(None)) == \
        'not good: at 0.5 50 % of the effort (threshold 20 %)'
    assert words(verdict(0.3, 0.1), verdict(0.5, 0.4)) == \
        'not good: at 0.3 30 % of the effort (threshold 10 %)'
    assert words(verdict(None), verdict(None, None)) == 'not good: no number'


def test_thresholds_are_those_that_their_reasons_state() -> None:
    """Half the friction, four fifths fed forward, the largest push, twice as good as none."""
    assert {use: CRITERIA[use].threshold for use in USES} == {
        GRAVITY: 0.5, FEED_FORWARD: 0.2, CONTACT: 1.0, SIMULATION: 0.5}
    assert (WITHOUT_FRICTION.threshold, FALSE_ALARMS.threshold) == (1.0 / 20.0, 1.0)


def test_sections_show_as_many_actions_as_asked_with_capitals() -> None:
    actions = tuple(Action(f'look {k}', f'robot-dynid {k}') for k in range(3))
    verdict = Verdict(('note',), (joint('elbow', *GOOD),), actions)
    whole, few, none = (verdict.sections(most) for most in (None, 2, 0))
    assert [one.words for one in whole[1].actions] == ['Look 0', 'Look 1', 'Look 2']
    assert [one.command for one in few[1].actions] == ['robot-dynid 0', 'robot-dynid 1']
    assert len(none) == 1
    (table,) = [table for table in whole[0].tables if table.detail]
    cell = table.rows[0].cells[1]
    assert table.rows[0].cells[0] == 'elbow'
    assert (cell.text, cell.mark, cell.note) == (
        'good', 'good', '25 % of the effort (threshold 20 %)')
