"""report/comparison.py, report/expected.py: differences of models, and errors to expect."""

from __future__ import annotations

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.document import Card, Section
from robot_dynid.identified.comparison import Difference
from robot_dynid.identified.expected_error import ExpectedError
from robot_dynid.report.comparison import comparison_report
from robot_dynid.report.expected import expected_report
from robot_dynid.validation.validate import Validation, joint_score

MODEL = nominal_model('planar_3r')
FOUND = (Difference('joint_1', 'weight', 'N m', 8.0, 0.5, -2.5, 1.25, 0.00234, True),
         Difference('joint_1', 'inertia', 'kg m^2', 2.0, 0.25, 0.3, 0.4, 0.2, False),
         Difference('joint_2', 'weight', 'N m', 3.0, 0.75, 3.0, 2.0, 0.003, True),
         Difference('joint_2', 'friction', 'N m', 3.0, 0.75, 3.0, 0.0, 0.004, True))


def changed(found: tuple[Difference, ...]) -> Section:
    report = comparison_report({'/a/one.yaml': MODEL, '/a/two.yaml': MODEL},
                               {'/a/two.yaml': found}, {})
    assert (report.title, report.subtitle) == ('planar_3r: models compared', 'one.yaml, two.yaml')
    ((section,),) = (chapter.sections for chapter in report.chapters)
    assert section.title == 'two.yaml against one.yaml'
    return section


def test_differences_stand_with_their_intervals_and_those_that_changed_apart() -> None:
    section = changed(FOUND)
    assert section.status is not None
    assert (section.status.kind, section.status.advice) == (
        'fair', 'weight of joint_1 and joint_2; friction of joint_2.')
    apart, everything = section.tables
    assert [row.cells for row in everything.rows][:2] == [
        ('joint_1', 'weight', '8', '0.5', '-2.5 ± 1.2', 'N m', '0.0023'),
        ('joint_1', 'inertia', '2', '0.25', '0.3 ± 0.4', 'kg m²', '0.2')]
    assert [row.mark for row in everything.rows] == ['poor', '', 'poor', 'poor']
    assert apart.rows == tuple(everything.rows[i] for i in (0, 2, 3))
    assert (apart.detail, everything.detail) == (False, True)
    layout, bars = section.figures[0].spec['layout'], section.figures[0].spec['data']
    assert {bar['name']: (bar['x'], unpacked(bar['y']).tolist()) for bar in bars} == {
        'weight': (['joint_1', 'joint_2'], [2.0, 1.5]), 'friction': (['joint_2'], [0.0]),
        'inertia': (['joint_1'], [0.75])}
    (dashed,) = layout['shapes']
    assert [dashed[key] for key in ('x0', 'x1', 'y0', 'y1')] == [0, 1, 1, 1]


def test_models_without_a_change_are_alike() -> None:
    section = changed(FOUND[1:2])
    assert section.status is not None
    assert section.status.kind == 'good' and section.status.word.endswith('nothing changed')
    assert len(section.tables) == 1


def test_models_are_compared_by_their_errors_on_the_same_recordings() -> None:
    measured = np.array([1.0, -1.0])
    scores = {path: Validation({'all': {joint: joint_score(measured, (1.0 - e) * measured)
                                        for joint, e in zip(MODEL.joints, errors)}}, {}, (), ())
              for path, errors in {'a.yaml': (0.1, 0.2, 0.6), 'b.yaml': (0.3, 0.05, 0.04)}.items()}
    report = comparison_report({'a.yaml': MODEL, 'b.yaml': MODEL}, {'b.yaml': FOUND}, scores)
    (section,) = report.chapters[1].sections
    assert section.tables[0].columns == ('joint', 'a.yaml', 'b.yaml')
    assert [row.cells for row in section.tables[0].rows] == [
        ('joint_1', '10.0', '30.0'), ('joint_2', '20.0', '5.0'), ('joint_3', '60.0', '4.0')]
    assert section.tables[0].detail
    assert section.cards == (Card('median error, a.yaml', '20 % of the effort'),
                             Card('median error, b.yaml', '5.0 % of the effort'))
    first, second = section.figures[0].spec['data']
    assert unpacked(first['y']) == pytest.approx([10.0, 20.0, 60.0])
    assert first['marker'] != second['marker']


def test_errors_to_expect_stand_beside_those_that_were_measured() -> None:
    expected = [ExpectedError('joint_1', 0.51234, 0.251234, 1.01234, 4.0),
                ExpectedError('joint_2', 0.5, 0.25, 1.0, 0.0)]
    for measured, more in (({}, ()), ({'joint_1': 0.751234, 'joint_2': 2.0}, ('0.751', '2'))):
        report = expected_report(MODEL, expected, measured, ['careful'])
        (section, warning) = report.chapters[0].sections
        assert section.tables[0].columns == (
            'joint', 'RMSE to expect [N m]', '95 % interval', 'error [%]',
            *(('measured RMSE',) if more else ()))
        assert [row.cells for row in section.tables[0].rows] == [
            ('joint_1', '0.512', '0.251 to 1.01', '12.8', *more[:1]),
            ('joint_2', '0.5', '0.25 to 1', '–', *more[1:])]
        assert warning.warnings == ('careful',)
