"""The report: one file that needs nothing else, figures that show what is in the data."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid.document import number, percent
from robot_dynid.estimation.uncertainty.stretches import STRETCHES
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.validate import Trace, validate
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.report import figures, html, sections, thinning
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog

LARGEST = 8_000_000  # bytes
JOINTS = tuple(f'joint_{i + 1}' for i in range(7))


@pytest.fixture(scope='module')
def log() -> RawLog:
    return recording(load_robot('planar_3r'), 1)


@pytest.fixture(scope='module')
def result(log: RawLog) -> IdentificationResult:
    return identify(load_robot('planar_3r'), [log])


@pytest.fixture(scope='module')
def page(result: IdentificationResult, log: RawLog) -> str:
    return html.render(html.identification_report(result, [log]))


def without_scripts(page: str) -> str:
    return re.sub(r'<script.*?</script>', '', page, flags=re.S)


def test_nothing_is_loaded_from_outside(page: str) -> None:
    text = without_scripts(page)
    assert not re.search(r'(src|href)\s*=\s*["\'](?!#)', text)
    assert '@import' not in text
    assert 'url(' not in text
    assert not re.search(r'<script[^>]+src', page)
    assert page.count(figures.script()[:2000]) == 1


def test_everything_promised_is_in_it(page: str, result: IdentificationResult) -> None:
    text = without_scripts(page)
    for title in ('Summary', 'Data and preprocessing', 'Base parameters', 'Residuals',
                  'Measured and predicted effort'):
        assert f'<h2>{title}</h2>' in text
    assert result.estimate.status.value in text
    for name in (*result.model.names, *result.model.joints):
        assert name in text
    assert f'{result.model.preprocessing.cutoff:.4g} Hz' in text
    assert page.count('plotly-graph-div') >= 3 + 4
    assert len(page) < LARGEST


def test_text_from_outside_stays_text(result: IdentificationResult, log: RawLog) -> None:
    evil = replace(log, source='<script>alert(1)</script>', findings=('<b>bold</b>',))
    bad = replace(result, warnings=('<img src=x onerror=alert(1)>',))
    text = without_scripts(html.render(html.identification_report(bad, [evil])))
    assert '<img' not in text
    assert '<b>' not in text
    assert '&lt;b&gt;bold' in text


def test_status_and_warnings_lead(result: IdentificationResult) -> None:
    from robot_dynid.estimation import Status

    estimate = replace(result.estimate, status=Status.NOT_IDENTIFIED)
    section = sections.summary(replace(result, estimate=estimate, warnings=('look here',)))
    assert section.status is not None
    assert section.status.kind == 'poor'
    assert Status.NOT_IDENTIFIED.value in section.status.advice
    assert section.warnings == ('look here',)


def test_validation_has_its_report(result: IdentificationResult, log: RawLog, tmp_path: Path
                                   ) -> None:
    validation = validate(result.model, [log, log])
    path = tmp_path / 'report.html'
    html.write_report(html.validation_report(result.model, validation, [log, log]), path)
    assert '2 recording(s) not used for the fit' in path.read_text()


def test_hopeless_numbers_are_drawn_too(result: IdentificationResult) -> None:
    """Parameters without deviation, zero values, a joint that is never explained."""
    model = replace(result.model, values=result.model.values * 0.0,
                    std=np.full_like(result.model.std, np.inf), not_identified=('joint_2',))
    assert sections.parameters(model).tables[0].rows[0].cells[3] == '∞'
    drawn = sections.predictions(validate(model, [recording(model.robot, 1)]), model)[0].figures
    assert 'not identified' in drawn[1].title


def long_trace(count: int = 300_000) -> Trace:
    rng = np.random.default_rng(0)
    measured = np.cumsum(rng.standard_normal((count, 7)), axis=0)
    measured[count // 3] = 1e5  # a spike in one sample
    return Trace('hour.csv', np.arange(count) * 0.01, measured, measured * 0.9, measured * 0.8,
                 np.ones(count), None)


def test_an_hour_stays_small_and_keeps_its_extremes() -> None:
    trace = long_trace()
    size = 0
    for i in range(7):
        text = figures.as_html(figures.prediction([trace], i, 'N m'))
        size += len(text)
    assert size < LARGEST - len(figures.script()) - 500_000
    curve = thinning.curve([trace, trace], 3)
    assert len(curve.time) < 1.2 * thinning.POINTS
    assert np.nanmax(curve.measured) == 1e5
    assert np.nanmin(curve.measured) == trace.measured[:, 3].min()
    assert np.isnan(curve.time).sum() == 2
    assert np.all(np.diff(curve.time[np.isfinite(curve.time)]) > 0.0)


def test_short_signals_are_drawn_whole() -> None:
    assert list(thinning.extremes((np.arange(5.0),), 10)) == [0, 1, 2, 3, 4]


def test_autocorrelation_of_a_known_process() -> None:
    """First-order noise with factor a has the autocorrelation a^k."""
    rng = np.random.default_rng(1)
    error = np.zeros(200_000)
    for k, value in enumerate(rng.standard_normal(len(error) - 1)):
        error[k + 1] = 0.9 * error[k] + value
    zero = np.zeros((len(error), 1))
    trace = Trace('x', np.arange(len(error)) * 0.01, error[:, None], zero, zero, zero[:, 0],
                  None)
    lag, value = thinning.autocorrelation([trace], 0)
    assert lag[0] == 0.0
    assert value[0] == pytest.approx(1.0)
    np.testing.assert_allclose(value[1:10], 0.9 ** np.round(lag[1:10] / 0.01), atol=0.02)


def test_truth_section_marks_what_is_outside() -> None:
    parameters = [
        {'name': 'm1', 'true': 1.0, 'value': 1.1, 'std': 0.1, 'deviations': 1.0,
         'half_interval': 0.2},
        {'name': 'm2', 'true': 1.0, 'value': 2.0, 'std': 0.1, 'deviations': 10.0,
         'half_interval': 0.2},
    ]
    rows = sections.truth(parameters, 0.1, 0.2).tables[0].rows
    assert [row.mark for row in rows] == ['', 'fair']


def test_numbers_as_text() -> None:
    assert (number(None), number(np.nan), number(np.inf), number(0.12345)) == (
        '–', '–', '∞', '0.1235')
    assert (percent(None), percent(0.1234)) == ('–', '12.3')


def test_intervals_are_those_of_few_stretches(result: IdentificationResult) -> None:
    half = half_intervals(result.model)
    low, high = result.estimate.interval()
    known = np.isfinite(half)
    np.testing.assert_allclose(half[known], 0.5 * (high - low)[known])
    assert result.estimate.degrees_of_freedom == STRETCHES - 1
    np.testing.assert_allclose(half[known] / result.model.std[known], 2.365, atol=1e-3)
