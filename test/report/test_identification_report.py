"""report/identification.py: heads of reports, and the brief one of a terminal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model

from robot_dynid.document import Report, Section
from robot_dynid.report import identification
from robot_dynid.report.identification import (
    brief_report,
    validation_report,
    validation_warnings,
)
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import Validation

MODEL = nominal_model('planar_3r')
VALIDATION = Validation({}, {}, (), ('slow', 'late', 'slow'))


def logs(count: int) -> list[RawLog]:
    return [RawLog(f'/data/{k}.csv', MODEL.joints, np.zeros(1), np.zeros((1, 3)))
            for k in range(count)]


@pytest.mark.parametrize(('count', 'used', 'subtitle'), [
    (1, 0, 'validated on 1 recording (0.csv), not used for the fit'),
    (6, 2, 'validated on 6 recordings (0.csv, 1.csv, 2.csv, 3.csv, 4.csv, 5.csv), 2 of them used '
           'for the fit'),
    (7, 7, 'validated on 7 recordings, 7 of them used for the fit'),
    (0, 0, 'validated on 0 recordings, not used for the fit')])
def test_the_head_of_a_validation_names_few_recordings_and_those_of_the_fit(
    count: int, used: int, subtitle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def made(*given: Any) -> Report:
        seen.extend(given)
        return Report('title', 'subtitle')

    monkeypatch.setattr(identification, 'model_report', made)
    model = replace(MODEL, record=replace(
        MODEL.record, recordings=tuple(log.source for log in logs(used))))
    report = validation_report(model, VALIDATION, logs(count), None, 'verdict', ('a', 'b'))
    assert report.title == 'planar_3r: validation of the identified dynamics'
    assert report.subtitle == f'3 joints, method wls; {subtitle}'
    _, validation, _, extra, verdict, command = seen
    assert (validation.warnings, extra, verdict, command) == (
        ('slow', 'late'), (), 'verdict', ('a', 'b'))
    unknown = validation_report(replace(model, method=''), VALIDATION, [], None, 'verdict')
    assert unknown.subtitle.startswith('3 joints, method unknown; ')


def test_warnings_of_forward_dynamics_come_last_and_once() -> None:
    forward: Any = SimpleNamespace(warnings=('late', 'steep'))
    assert validation_warnings(VALIDATION, forward) == ('slow', 'late', 'steep')
    assert validation_warnings(VALIDATION, None) == ('slow', 'late')


def test_a_brief_report_has_the_verdict_with_three_actions_and_the_warnings() -> None:
    verdict: Any = SimpleNamespace(sections=lambda most: (Section(f'{most} actions'),))
    report = brief_report(MODEL, verdict, ['one', 'two'])
    assert (report.title, report.subtitle) == ('planar_3r: identified dynamics', 'wls')
    (chapter,) = report.chapters
    assert [section.title for section in chapter.sections] == ['3 actions', 'Warnings']
    assert chapter.sections[1].warnings == ('one', 'two')
