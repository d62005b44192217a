"""The report: one file that needs nothing else, figures that show what is in the data."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording
from report_pages import unpacked

from robot_dynid.document import (
    Action,
    Chapter,
    Figure,
    Report,
    Section,
    number,
    percent,
    plain_document,
    with_deviation,
)
from robot_dynid.estimation import Status
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identified.suitability import USES, JointVerdict, UseVerdict, Verdict
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.report import curves, errors, html, parameters, thinning, trust
from robot_dynid.report.identification import (
    QUESTIONS,
    identification_report,
    validation_report,
)
from robot_dynid.report.texts import TERMS
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.effort_parts import EffortParts
from robot_dynid.validation.validate import SCORED, Trace, Validation, validate
from robot_dynid.validation.verdict import judged
from robot_dynid_evaluation.demo.truth import truth

LARGEST = 10_000_000  # bytes
#: processor time of writing the largest report over that of compressing as many numbers; it is 1.5
STEPS = 3.0


@pytest.fixture(scope='module')
def log() -> RawLog:
    found = recording(load_robot('planar_3r'), 1)
    return replace(found, source='/data/someone/runs/run.csv', findings=('one gap',))


@pytest.fixture(scope='module')
def result(log: RawLog) -> IdentificationResult:
    return identify(load_robot('planar_3r'), [log])


@pytest.fixture(scope='module')
def report(result: IdentificationResult, log: RawLog) -> Report:
    words = ('robot-dynid', 'identify', log.source, '--robot', 'planar_3r')
    told = replace(result, warnings=(f'{log.source}: something',))
    return identification_report(told, [log], verdict=verdict(result), command=words)


@pytest.fixture(scope='module')
def page(report: Report) -> str:
    return html.render(report)


def verdict(result: IdentificationResult) -> Verdict:
    """Return one with every outcome."""
    uses = tuple(UseVerdict(use, ok, 0.12, 0.1, 'N m', 'because it is so')
                 for use, ok in zip(USES, (True, False, None, True)))
    return Verdict(('Good for some uses.',), tuple(
        JointVerdict(joint, uses, '') for joint in result.model.joints),
        (Action('Record more.', 'robot-dynid design planar_3r --out T.yaml'),
         Action('Tighten a screw.')))


def without_scripts(page: str) -> str:
    return re.sub(r'<script.*?</script>', '', page, flags=re.S)


def test_report_page_loads_nothing_from_outside(page: str) -> None:
    text = without_scripts(page)
    assert not re.search(r'(src|href)\s*=\s*["\'](?!#|data:,")', text)
    assert '@import' not in text
    assert 'url(' not in text
    assert not re.search(r'<script[^>]+src', page)
    assert page.count(html.packed_plotly()) == 1
    assert len(page) < LARGEST


def test_chapters_answer_the_questions_of_a_reader_in_their_order(
    report: Report, page: str, result: IdentificationResult
) -> None:
    assert tuple(chapter.title for chapter in report.chapters) == QUESTIONS
    text = without_scripts(page)
    places = [text.index(f'</span>{title}</h2>') for title in QUESTIONS]
    assert places == sorted(places)
    for name in (*result.model.names, *result.model.joints):
        assert name in text
    assert f'{result.model.preprocessing.cutoff:.4g} Hz' in text


def test_a_report_explains_the_terms_that_it_uses_and_no_others(
    report: Report, page: str
) -> None:
    head, explained = without_scripts(page).split('<h3>Terms</h3>')
    assert [row.cells[0] for row in html.glossary(report).tables[0].rows] == list(TERMS)
    for term, meaning in TERMS.items():
        assert re.search(re.escape(term), head, re.I) and f'>{meaning}<' in explained
    brief = Report('arm', '', (Chapter('Swings', (Section('', text='Condition number 7.'),)),))
    assert [row.cells[0] for row in html.glossary(brief).tables[0].rows] == ['condition number']
    silent = Report('arm', '', (Chapter('Swings', (Section('', text='None.'),)),))
    assert '<h3>Terms</h3>' not in html.render(silent)


def test_the_verdict_leads_and_actions_follow_with_their_commands(report: Report) -> None:
    good_for, next_ = report.chapters[0].sections[:2]
    assert good_for.status is not None and good_for.status.advice == 'Good for some uses.'
    table = good_for.tables[1]
    assert [row.cells[0] for row in good_for.tables[0].rows] == [USES[1], USES[2]]
    assert table.columns[:3] == ('joint', 'held-out error [%]', 'baseline [%]')
    assert 'not shown: neither. The largest useful push is 140 N' in table.title
    first = table.rows[0].cells
    assert [cell.mark for cell in first[3:]] == ['good', 'poor', '', 'good']
    assert [cell.text for cell in first[3:]] == ['good', 'not good', 'not shown', 'good']
    assert first[4].note == '0.12 N m (threshold 0.1)'
    assert [action.command for action in next_.actions] == [
        'robot-dynid design planar_3r --out T.yaml', '']


def test_model_and_baseline_have_errors_on_motion_left_out(result: IdentificationResult) -> None:
    held, training = result.held_out, result.training
    assert held.baseline is not None
    held = replace(held, raw=4.0 * held.raw, baseline=replace(held.baseline, raw=9.0 * held.raw))
    errors = trust.Errors.of(training, 'held-out', held)
    for j, joint in enumerate(training.model['all']):
        score = training.model['all'][joint]
        share = float(np.sqrt(result.held_out.raw[j])) * score.relative_error / score.rmse
        assert [errors.model[joint], errors.baseline[joint]] == pytest.approx(
            [2.0 * share, 3.0 * share])


@pytest.mark.parametrize(('ok', 'value', 'told'), [
    (False, 0.1004, '0.1004 N m (threshold 0.1)'),
    (True, 0.1, '0.1 N m (threshold 0.1)'),
    (False, 0.05, 'nominal inertials do better'),
    (True, 0.12, '0.12 N m (threshold 0.1)'),
    (None, 0.05, '0.05 N m (threshold 0.1)')])
def test_a_cell_says_what_decided_where_the_number_did_not(
    ok: bool | None, value: float, told: str
) -> None:
    use = UseVerdict('simulation', ok, value, 0.1, 'N m', 'why')
    assert use.figure == told


@pytest.mark.parametrize(('oks', 'banner'), [
    ((True, True), 'good'), ((True, None), 'fair'), ((True, False), 'poor'),
    ((None, None), 'fair')])
def test_a_banner_is_as_good_as_its_uses(oks, banner) -> None:
    joints = tuple(JointVerdict(name, (UseVerdict('simulation', ok, None, None, '', ''),) * 4, '')
                   for name, ok in zip(('elbow', 'wrist'), oks, strict=True))
    (found,) = Verdict(('note',), joints).sections()
    assert found.status is not None and found.status.kind == banner


def test_verdict_sections_give_the_motion_for_a_use_not_shown() -> None:
    use = UseVerdict('simulation', None, None, None, '', 'seen once', Action(
        'record more', 'robot-dynid design arm --out T.yaml'))
    (section,) = Verdict(('note',), (JointVerdict('elbow', (use,) * 4, 'words'),)).sections()
    assert section.tables[-1].rows[0].cells[2] == (
        'seen once. Record more: robot-dynid design arm --out T.yaml')


@pytest.mark.parametrize(('value', 'deviation', 'told'), [
    (14.51234, 0.2, '14.51 ± 0.20'), (-5.989e-05, 0.021, '-0.000 ± 0.021'),
    (1234.4, 120.0, '1234 ± 120'), (0.5, 0.0, '0.5 ± 0'), (0.5, np.inf, '0.5 ± ∞'),
    (2e-9, 3e-10, '2e-09 ± 3e-10'), (0.25, None, '0.25'), (0.25, np.nan, '0.25')])
def test_digits_end_where_the_deviation_does(
    value: float, deviation: float | None, told: str
) -> None:
    assert with_deviation(value, deviation) == told


def test_folders_of_files_are_not_told(page: str) -> None:
    assert '/home/someone' not in page
    assert 'run.csv: something' in page
    assert 'run.csv: one gap' in page
    assert 'robot-dynid identify run.csv --robot planar_3r' in page


def test_commands_keep_everything_but_folders() -> None:
    from robot_dynid.report.texts import without_folders

    told = "robot-dynid identify '/a b/run.csv[1:2]' /data/me/x.csv near/y.csv --out=/tmp/m.yaml"
    assert without_folders('cat /data/me/x.csv near/y.csv --out=/tmp/m.yaml a/b') == (
        'cat x.csv near/y.csv --out=m.yaml a/b')
    assert 'near/y.csv' in without_folders(told) and '/data/me' not in without_folders(told)


def test_files_of_the_same_name_are_told_apart() -> None:
    from robot_dynid.report.texts import file_names

    assert list(file_names(['/a/b/run.csv', '/a/c/run.csv', '/a/x.csv']).values()) == [
        'b/run.csv', 'c/run.csv', 'a/x.csv']


def test_json_has_the_same_sections(report: Report) -> None:
    found = json.loads(json.dumps(plain_document(report), allow_nan=False))
    assert [chapter['title'] for chapter in found] == list(QUESTIONS)
    assert [s['title'] for c in found for s in c['sections']] == [
        section.title for section in report.sections]
    figure = found[1]['sections'][1]['figures'][0]
    assert figure['curves'][:3] == ['measured', 'nominal', 'predicted']
    assert figure['axes']['yaxis'] == 'effort [N m]'
    tables = sum(len(s.get('tables', ())) for c in found for s in c['sections'])
    assert tables == sum(len(section.tables) for section in report.sections)


def test_every_axis_has_a_title_and_every_colour_a_name(report: Report) -> None:
    palette = set(re.findall(r'--(\w+):', (html.TEMPLATES / 'report.css').read_text()))
    for section in report.sections:
        for figure in section.figures:
            named = set(re.findall(r'"@(\w+)', json.dumps(figure.spec)))
            assert named <= palette
            colours = re.findall(r'"(#[0-9a-f]{6}|rgba?\([^"]*)"', json.dumps(figure.spec))
            assert not colours, figure.title
            shown = [axis for key, axis in figure.spec['layout'].items()
                     if 'axis' in key and axis.get('visible', True)]
            ticks = [axis for axis in shown if 'title' not in axis]
            # names of joints or parameters need no title
            names = figure.spec['data'][0]['type'] in ('bar', 'heatmap')
            assert names or all(axis == {} for axis in ticks), figure.title


def test_text_from_outside_stays_text(result: IdentificationResult, log: RawLog) -> None:
    evil = replace(log, source='<script>alert(1)</script>', findings=('<b>bold</b>',))
    bad = replace(result, warnings=('<img src=x onerror=alert(1)>',))
    text = without_scripts(html.render(identification_report(bad, [evil])))
    assert '<img' not in text
    assert '<b>' not in text
    assert '&lt;b&gt;bold' in text
    trick = Figure({'data': [{'name': '</script><img src=x>'}], 'layout': {}})
    page = html.render(Report('t', 's', (Chapter('c', (Section('s', figures=(trick,)),)),)))
    assert '<img' not in page


def test_a_fit_that_did_not_settle_is_an_action(result: IdentificationResult) -> None:
    model = replace(result.model, status=Status.NOT_SETTLED.value)
    assert Status.NOT_SETTLED.value in [
        one.words for one in judged(model, result.training, result.held_out).actions]


def test_long_tables_are_folded_so_that_a_page_begins_with_answers(report: Report) -> None:
    sections = [section for chapter in report.chapters for section in chapter.sections]
    open_tables = [(section.title, table.title) for section in sections if not section.folded
                   for table in section.tables if not table.folded and len(table.rows) > 20]
    assert open_tables == []
    assert any(len(table.rows) > 20 for section in sections for table in section.tables)
    assert {'What can be identified', 'Correlation map of the base parameters'} <= {
        section.title for section in sections if section.folded}


def test_a_page_opens_with_answers_and_folds_the_rest(report: Report) -> None:
    """What is open, in words of two columns, and what stands beside what; details for verbose."""
    opened = {chapter.title: [one.title for one in chapter.sections if not one.folded]
              for chapter in report.chapters}
    assert opened == {
        'What it is good for': ['What it is good for', 'Next actions, the most valuable first',
                                'The fit', 'Warnings'],
        'Joint by joint': ['The arm and its effort'],
        'Simulation': ['Error of open-loop simulation over its horizon'],
        'Where is the error?': ['Where the error is largest'],
        'Parameters': ['Identified and nominal parameters'],
        'Data and provenance': ['Data and preprocessing', 'Excitation', 'Provenance']}
    assert {one.title for one in report.sections if one.beside} == {
        'The arm and its effort', 'joint_1', 'joint_2', 'joint_3',
        'Error of open-loop simulation over its horizon',
        'Error by speed, position, load, time and frequency',
        'Autocorrelation and distribution of the residual', 'Identified and nominal parameters',
        'Links'}
    assert [one.title for one in report.sections if one.detail] == ['The fit']
    tables = [table for section in report.sections for table in section.tables]
    assert {one.title for one in tables if one.folded} == {
        'Reasons', 'Error to expect [N m]',
        'Parameter card: where every standard parameter comes from',
        'Preprocessing and model', 'Versions and SHA-256 digests'}
    assert {one.title or one.columns[0] for one in tables if one.words} == {
        'Reasons', 'Parameter card: where every standard parameter comes from', 'parameter',
        'axis', 'Parameters identifiable with other sensor configurations', 'recording',
        'Preprocessing and model', 'Versions and SHA-256 digests'}
    assert [figure.link for section in report.sections for figure in section.figures
            if figure.link] == 6 * ['time'] + ['time', 'frequency']
    heights = [figure.spec['layout'].get('height', 280) for section in report.sections
               for figure in section.figures]
    assert min(heights) >= 200 and max(heights) <= 700


def test_many_warnings_are_folded() -> None:
    assert trust.warnings(()) == ()
    assert not trust.warnings(['a'])[0].folded
    (many,) = trust.warnings(list('abcdef'))
    assert many.folded and many.warnings == tuple('abcdef')


def test_validation_has_its_report(result: IdentificationResult, log: RawLog, tmp_path: Path
                                   ) -> None:
    validation = validate(result.model, [log, log])
    path = tmp_path / 'report.html'
    html.write_report(validation_report(result.model, validation, [log, log]), path)
    assert 'validated on 2 recordings (run.csv), 2 of them used for the fit' in path.read_text()
    unseen = [replace(log, source='unseen.csv')]
    report = validation_report(result.model, validate(result.model, unseen), unseen)
    assert report.subtitle.endswith('validated on 1 recording (unseen.csv), not used for the fit')


def test_hopeless_numbers_are_drawn_too(result: IdentificationResult) -> None:
    """Parameters without deviation, zero values, a joint that is never explained."""
    model = replace(result.model, values=result.model.values * 0.0,
                    std=np.full_like(result.model.std, np.inf), not_identified=('joint_2',))
    assert parameters.base_parameters(model).tables[0].rows[0].cells[4] == '> 1000'
    validation = validate(model, [recording(model.robot, 1)])
    assert 'not identified' in curves.predictions(validation, model)[1][0].title
    assert html.render(validation_report(model, validation, []))


def long_trace(count: int) -> Trace:
    """Return seven joints at 1 kHz with a spike, a gap, and what a model makes of them."""
    rng = np.random.default_rng(0)
    time = np.arange(count) * 1e-3
    time[count // 2:] += 1.0
    velocity = np.cos(time[:, None] * np.linspace(1.0, 2.0, 7))
    measured = 10.0 * velocity + rng.standard_normal((count, 7))
    measured[count // 3] = 1e4
    return Trace('hour.csv', time, measured, 10.0 * velocity, 9.0 * velocity, np.ones(count),
                 None, position=np.sin(time[:, None] * np.linspace(1.0, 2.0, 7)),
                 velocity=velocity, split=of_friction(10.0 * velocity, 5.0 * np.sign(velocity)))


def of_friction(effort: FloatArray, friction: FloatArray) -> EffortParts:
    """Return an effort of which all but the friction is gravity."""
    none = np.zeros_like(effort)
    return EffortParts(effort - friction, none, friction, none)


def test_long_recordings_keep_extremes_gaps_reversals_and_outliers() -> None:
    trace = long_trace(30_000)
    curve = thinning.curve([trace, trace], 3, 3)
    assert len(curve.time) < 1.3 * thinning.JOINT_POINTS
    assert np.nanmax(curve.measured) == 1e4
    inside = np.delete(trace.measured[:, 3], 10_000)
    assert np.nanmin(curve.measured) == inside.min()
    assert np.isnan(curve.time).sum() == 4  # after either recording, and in either gap
    assert np.all(np.diff(curve.time[np.isfinite(curve.time)]) > 0.0)
    assert curve.gaps[0] == pytest.approx((14.999, 16.0))
    assert curve.outliers[0, 0] == pytest.approx(10.0)
    turns = np.arccos(0.0) / 1.5 + np.pi / 1.5 * np.arange(14)  # of cos(1.5 t)
    turns = np.where((turns > 15.0) & (turns < 16.0), 14.999, turns)  # somewhere in the gap
    np.testing.assert_allclose(curve.reversals[:len(turns)], turns[turns < 31.0],
                               rtol=0.0, atol=2e-3)


def processor_time(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def test_an_hour_at_a_kilohertz_stays_small_and_quick(result: IdentificationResult) -> None:
    """Curves, errors, friction: as many samples as are scored of an hour, all seven joints."""
    robot = load_robot('seven_axis')
    trace = long_trace(SCORED)
    model = replace(result.model, robot=robot, not_identified=())
    validation = Validation({}, {}, (trace,), ())

    def write() -> tuple[list[Section], str]:
        figures = [one for of in (curves.predictions, curves.friction_data)
                   for own in of(validation, model).values() for one in own]
        sections = [Section('joints', figures=tuple(figures)),
                    *errors.errors(validation, model), errors.residuals(validation, model)]
        return sections, html.render(Report('hour', '', (Chapter('c', tuple(sections)),)))

    sections, page = write()
    # a step that takes much the same on every processor; sorting does not
    assert processor_time(write) < STEPS * processor_time(
        lambda: zlib.compress(trace.measured.tobytes(), 1))
    assert len(sections[0].figures) == 14
    assert len(page) < LARGEST


def test_friction_of_a_gear_that_gives_is_drawn_once(result: IdentificationResult) -> None:
    robot = load_robot('elastic_2r')  # two joints, and two equations of motors
    speed = np.sin(np.linspace(0.0, 9.0, 400))[:, None] * np.ones(2)
    effort = np.tile(speed, 2)
    trace = replace(long_trace(400), measured=effort, predicted=effort,
                    split=of_friction(effort, effort), velocity=speed)
    found = curves.friction_data(Validation({}, {}, (trace,), ()),
                                 replace(result.model, robot=robot))
    assert {joint: len(drawn) for joint, drawn in found.items()} == {0: 1, 1: 1}


def test_errors_are_found_where_they_are() -> None:
    """An error at slow speed, and one of 5 Hz, are told from one that is everywhere."""
    trace = long_trace(20_000)
    slow = np.abs(trace.velocity[:, 0]) < 0.1
    error = np.where(slow, 4.0, 1.0) * np.random.default_rng(1).standard_normal(len(slow))
    spoilt = replace(trace, measured=trace.predicted + error[:, None])
    found = errors.profiles([spoilt], 0, 0)
    speed = found[errors.SPEED]
    assert speed.edges[speed.worst + 1] < 0.12
    assert speed.error[speed.worst] == pytest.approx(4.0, rel=0.1)
    last = np.abs(trace.velocity[:, 0]) > speed.edges[-2]
    assert speed.error[-1] == pytest.approx(float(np.sqrt(np.mean(error[last]**2))))
    assert speed.share[-1] == pytest.approx(float(np.mean(last)))
    assert speed.whole == pytest.approx(float(np.sqrt(np.mean(error**2))))
    assert speed.error[-1] == pytest.approx(1.0, rel=0.1)
    assert speed.share.sum() == pytest.approx(1.0)
    wave = 3.0 * np.sin(2.0 * np.pi * 5.0 * trace.time)
    frequency, band, _ = errors.spectrum(
        [replace(trace, measured=trace.predicted + wave[:, None])], 0)
    assert frequency[np.argmax(band)] == pytest.approx(5.0, rel=0.15)
    assert np.sqrt(np.sum(band**2)) == pytest.approx(3.0 / np.sqrt(2.0), rel=0.005)


def test_friction_is_drawn_with_its_data() -> None:
    trace = long_trace(20_000)
    spoilt = trace.friction[:, 0] + 2.0  # what the law misses
    spec = curves.friction(trace.velocity[:, 0], spoilt, trace.friction[:, 0], ('rad/s', 'N m'))
    drawn = {curve['name']: curve for curve in spec['data']}
    median, law = (unpacked(drawn[name]['y']) for name in (
        'measured, median and quartiles', 'model'))
    np.testing.assert_allclose(median - law, 2.0, rtol=0.0, atol=1e-5)
    assert spec['layout']['xaxis']['title']['text'] == 'speed [rad/s]'


@pytest.mark.parametrize('offset', [-30.0, 0.0, 30.0])
def test_the_axis_of_friction_holds_the_data_with_a_margin_and_not_its_outliers(
        offset: float) -> None:
    speed = np.linspace(-2.0, 2.0, 4001)
    measured = offset + 3.0 * np.sign(speed) + speed
    measured[2500] += 1000.0
    spec = curves.friction(speed, measured, measured, ('rad/s', 'N m'))
    low, high = spec['layout']['yaxis']['range']
    assert offset - 7.0 < low < offset - 5.0 and offset + 5.0 < high < offset + 7.0


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
    np.testing.assert_allclose(value[1:10], 0.9 ** np.round(lag[1:10] / 0.01), rtol=0.0, atol=0.02)


def test_recordings_of_one_sample_or_another_rate_have_no_autocorrelation() -> None:
    trace = long_trace(400)
    short = replace(trace, time=trace.time[:1], measured=trace.measured[:1],
                    predicted=trace.predicted[:1])
    other = replace(trace, time=2.0 * trace.time, measured=trace.measured[::-1])
    for traces in ([short, trace], [trace, short], [trace, other]):
        for found, alone in zip(thinning.autocorrelation(traces, 0),
                                thinning.autocorrelation([trace], 0), strict=True):
            np.testing.assert_array_equal(found, alone)


def test_recordings_one_after_the_other_are_told_apart_while_they_are_few() -> None:
    """Of 1.4 s each, with pauses of a fiftieth of that; names keep 24 letters at most."""
    names = ('run.csv.gz', 'a_name_of_24_letters_now.mcap', 'a_name_of_25_letters_nowX.db3')
    traces = [replace(long_trace(400), source=f'/data/{name}') for name in names]
    layout = curves.prediction(traces, (0, 0), 'N m')['layout']
    starts = [shape['x0'] for shape in layout['shapes'] if shape['type'] == 'line']
    assert starts == pytest.approx([0.0, 1.02 * 1.399, 2.0 * 1.02 * 1.399])
    assert [shape['x1'] for shape in layout['shapes'] if shape['type'] == 'line'] == starts
    told = [(note['text'], note['x']) for note in layout['annotations']]
    assert told == [('run', starts[0]), ('a_name_of_24_letters_now', starts[1]),
                    ('a_name_of_25_letters_no…', starts[2])]
    for count, notes in ((1, 0), (6, 6), (7, 0)):
        many = [replace(traces[0], source=f'{i}.csv') for i in range(count)]
        layout = curves.prediction(many, (0, 0), 'N m')['layout']
        assert len(layout['annotations']) == notes
        assert sum(shape['type'] == 'line' for shape in layout['shapes']) == count * (count > 1)


def test_truth_section_marks_what_is_outside() -> None:
    told = [
        {'name': 'm1', 'true': 1.0, 'value': 1.1, 'std': 0.1, 'deviations': 1.0,
         'half_interval': 0.2},
        {'name': 'm2', 'true': 1.0, 'value': 2.0, 'std': 0.1, 'deviations': 10.0,
         'half_interval': 0.2},
    ]
    section = truth(told, 0.1, 0.2)
    assert [row.mark for row in section.tables[0].rows] == ['', 'fair']
    assert [curve['x'] for curve in section.figures[0].spec['data']] == [['m1'], ['m2']]


def test_numbers_as_text() -> None:
    assert (number(None), number(np.nan), number(np.inf), number(0.12345)) == (
        '–', '–', '∞', '0.1235')
    assert (percent(None), percent(0.1234)) == ('–', '12.3')


def test_intervals_are_those_of_few_stretches(result: IdentificationResult) -> None:
    half = half_intervals(result.model)
    low, high = result.estimate.interval()
    known = np.isfinite(half)
    np.testing.assert_allclose(half[known], 0.5 * (high - low)[known])
    assert result.estimate.degrees_of_freedom == SCATTER_STRETCHES - 1
    np.testing.assert_allclose(half[known] / result.model.std[known], 2.365, rtol=0.0, atol=1e-3)
