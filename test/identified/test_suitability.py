"""The verdict on a model as data, in words, and as what people are shown."""

from __future__ import annotations

import json

import pytest

from robot_dynid.document import Action
from robot_dynid.identified.suitability import (
    CONTACT,
    FEED_FORWARD,
    GRAVITY,
    SIMULATION,
    USES,
    JointVerdict,
    UseVerdict,
    Verdict,
)


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
