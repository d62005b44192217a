"""The verdict on a model as data."""

from __future__ import annotations

import json

import pytest

from robot_dynid.identified.suitability import (
    USES,
    JointVerdict,
    NextAction,
    UseVerdict,
    Verdict,
)


@pytest.mark.parametrize(('ok', 'word'), [
    (True, 'good'), (False, 'not good'), (None, 'not shown')])
def test_a_verdict_is_plain_data_with_a_word_for_every_use(ok: bool | None, word: str) -> None:
    uses = tuple(UseVerdict(use, ok, 0.1, 0.2, 'N m', 'why') for use in USES)
    verdict = Verdict('all', (JointVerdict('elbow', uses, 'sum'),), (NextAction('look'),))
    plain = json.loads(json.dumps(verdict.plain()))
    assert [use['word'] for use in plain['joints'][0]['uses']] == [word] * len(USES)
    assert [use['use'] for use in plain['joints'][0]['uses']] == list(USES)
    assert plain['actions'] == [{'words': 'look', 'command': ''}]
