"""report/: numbers of a report are those of the model, in the units their heads say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.cli.validate import joint_scores
from robot_dynid.document import Section, number
from robot_dynid.identified.parameter_card import parameter_card
from robot_dynid.monitoring.contact_events import Contact, ContactEvents
from robot_dynid.report.contact import contact_report
from robot_dynid.identified.suitability import USES
from robot_dynid.identified.trained import Trained
from robot_dynid.report.errors import rounded, spectra_figure
from robot_dynid.report.parameters import base_parameters
from robot_dynid.report.provenance import cutoffs, data
from robot_dynid.report.trust import scores, warnings
from robot_dynid.signals.prepare import Averaging
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import Validation, joint_score
from robot_dynid_evaluation.demo.truth import truth

MODEL = nominal_model('planar_3r')


def rows(section: Section, table: int = 0) -> list[tuple[Any, ...]]:
    return [tuple(row.cells) for row in section.tables[table].rows]


def test_recordings_and_settings_in_their_units() -> None:
    time = np.arange(401) / 200.0
    log = RawLog('run.csv', MODEL.joints, time, np.zeros((401, 3)))
    found = data([log], MODEL)
    assert rows(found) == [('run.csv', '401', '2', '200', 'position')]
    settings = dict(rows(found, 1))
    assert settings['effort lag'] == '1 ms, removed'  # the model has 0.001 s
    assert settings['low-pass'].startswith('10 Hz')
    told = {MODEL.structure.rotor_inertia: settings['rotor inertia'],
            MODEL.preprocessing.trim_rest: settings['rest at both ends dropped']}
    assert all(text == ('yes' if value else 'no') for value, text in told.items())


def test_errors_of_cut_offs_are_errors_and_not_their_logarithms() -> None:
    spec = cutoffs([(2.0, np.log(1.5)), (8.0, np.log(0.5))], 8.0, 'N m')
    assert unpacked(spec['data'][0]['y']) == pytest.approx([1.5, 0.5])
    assert spec['layout']['yaxis']['title']['text'].endswith('of the joints [N m]')


@pytest.mark.parametrize(('edges', 'told'), [
    ((0.000584, 0.257), ('0.00', '0.26')), ((-0.152, 0.00709), ('-0.15', '0.01')),
    ((-0.00416, 0.153), ('0.00', '0.15')),
    ((13.0, 15.62), ('13.0', '15.6')), ((140.2, 161.0), ('140', '161')),
    ((1.0, 1.0), ('1.000000', '1.000000'))])
def test_bins_have_the_digits_that_their_width_asks_for(
    edges: tuple[float, float], told: tuple[str, str]
) -> None:
    assert rounded(np.array(edges)) == told


def test_frequencies_have_ticks_within_a_decade() -> None:
    known = {'joint': (np.array([0.5, 5.0]), np.array([0.0, 0.3]), np.array([1.0, 1.0]))}
    layout = spectra_figure('N m', known)['layout']
    assert {'0.5', '1', '2', '5'} <= set(layout['xaxis']['ticktext'])
    assert '0.2' in layout['yaxis']['ticktext']


def test_warnings_have_the_sign_that_a_page_can_show() -> None:
    (section,) = warnings(['1.07 +- 0.03 ms later'])
    assert section.warnings == ('1.07 ± 0.03 ms later',)


def test_noise_of_a_mean_falls_with_the_root_of_the_periods() -> None:
    mean = Averaging('run.csv', 8.0, 0.0, 4, (0.2,) * 3, (3.0,) * 3)
    model = replace(MODEL, record=replace(MODEL.record, averaging=(mean,)))
    assert rows(data([], model), 2) == [
        (name, '0.2', '3', '0.1', '1.5') for name in MODEL.joints]


def test_parameters_stand_with_their_relative_deviations() -> None:
    model = replace(MODEL, values=np.full(len(MODEL.values), -2.0),
                    std=np.full(len(MODEL.values), 0.05))
    found = rows(base_parameters(model))
    assert {(*cells[1:3], cells[4]) for cells in found} == {('-2', '0.05', '2.5')}
    told = {cells[0].text: (cells[0].note, cells[3]) for cells in found}
    assert told['fc2'] == ('joint_2: dry (Coulomb) friction', 'N m')


def test_the_share_inside_the_intervals_is_counted() -> None:
    told = [{'name': f'p{i}', 'true': 1.0, 'value': 1.0 + 0.1 * off, 'std': 0.1,
             'half_interval': 0.22, 'deviations': off}
            for i, off in enumerate((0.5, -1.9, 2.5, -3.0))]
    section = truth(told, 0.015, 0.02)
    assert [card.value for card in section.cards] == ['1.5', '2.0', '50.0']
    assert [row.mark for row in section.tables[0].rows] == ['', '', 'fair', 'fair']


def test_the_control_row_of_the_command_line_is_that_of_the_control() -> None:
    measured = np.array([1.0, -1.0, 2.0, -2.0])
    model, control = (joint_score(measured, share * measured) for share in (0.9, 0.5))
    found = joint_scores(Validation({'all': {'a': model}, 'motion': {'a': control}},
                                    {'all': {'a': control}}, (), ()))['a']
    assert found['relative_error'] == pytest.approx(0.1)
    assert found['control']['relative_error'] == pytest.approx(0.5)
    assert found['motion']['relative_error'] == pytest.approx(0.5)


def test_outliers_are_beyond_the_quartiles_by_more_than_1_5_of_their_distance() -> None:
    # quartiles at -1 and 1: the fences are at -4 and 4
    error = np.concatenate([np.linspace(-2.0, 2.0, 1001), [3.5, -3.5, 4.5, -4.5]])
    assert joint_score(error, np.zeros(1005)).outliers == pytest.approx(2.0 / 1005.0)


def test_numbers_that_are_infinite_or_none_are_signs() -> None:
    assert [number(x) for x in (np.inf, -np.inf, np.nan)] == ['∞', '-∞', '–']
    still = joint_score(np.ones(50), np.zeros(50))
    joints = dict.fromkeys(MODEL.joints, still)
    found = scores(MODEL, Validation({'all': joints}, {}, (), ()), 'scores')
    assert [row[found.tables[0].columns.index('R²')] for row in rows(found)] == ['–'] * 3
    unknown = replace(MODEL, std=np.full(len(MODEL.std), np.inf))
    assert '+- inf' not in str(parameter_card(unknown))


def test_the_strongest_contact_is_the_largest_in_size() -> None:
    none = np.zeros((2, 3))
    contacts = (Contact('joint_2', 1.25, 1.5, 3.0), Contact('joint_1', 2.125, 2.25, -5.5),
                Contact('joint_2', 3.0, 3.25, 4.0))
    events = ContactEvents('run.csv', np.array([0.0, 4.0]), none, none, none + 1.0, contacts,
                           none[0], none[0], none[0], ())
    status = contact_report(MODEL, [events]).chapters[0].sections[0].status
    assert status is not None
    assert (status.word, status.advice) == (
        'Contact at joint_2, joint_1:',
        'the strongest at joint_1, 2.125 to 2.25 s, peak -5.5 N m.')
    quiet = contact_report(MODEL, [replace(events, contacts=())]).chapters[0].sections[0].status
    assert quiet is not None and quiet.word == 'No contact:'
EFFORT = np.where(np.arange(40) % 2, 2.0, -2.0)


def scored(*errors: float) -> dict[str, JointScore]:
    """Return the scores of joints whose relative errors are these."""
    return {joint: joint_score(EFFORT, (1.0 - error) * EFFORT)
            for joint, error in zip(MODEL.joints, errors)}


def still(**more: Any) -> Trace:
    return Trace('x', np.arange(2.0), *3 * (np.zeros((2, 3)),), np.zeros(2), **more)


def test_scores_of_a_joint_stand_in_per_cent_with_what_the_robot_does_not_repeat() -> None:
    spread, noise = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.75, 1.5])
    validation = Validation(
        {'all': scored(0.1, 0.2, 0.51), 'motion': scored(0.3), 'rest': scored(0.04, 0.05),
         'near reversals': scored(0.06)}, {'all': scored(0.7, 0.8)},
        (still(repeatability=spread, noise=noise),), ())
    section = scores(MODEL, validation, 'scores')
    (table,) = section.tables
    assert section.folded and table.columns[1:4] == ('RMSE [N m]', 'robot itself [N m]',
                                                     'noise [N m]')
    assert rows(section) == [
        ('joint_1', '0.2', '0.25', '0.5', '10.0', '10.0', '70.0', '30.0', '4.0', '6.0', '0.990',
         '-0.2 / 0 / 0.2', '0.0'),
        ('joint_2', '0.4', '0.5', '0.75', '20.0', '20.0', '80.0', '–', '5.0', '–', '0.960',
         '-0.4 / 0 / 0.4', '0.0'),
        ('joint_3', '1.02', '1', '1.5', '51.0', '51.0', '–', '–', '–', '–', '0.740',
         '-1 / 0 / 1', '0.0')]
    assert [row.mark for row in table.rows] == ['', '', 'poor']
    assert BASELINE in section.text
    assert NO_BASELINE in scores(MODEL, replace(validation, control={}), 'scores').text


def test_errors_beside_a_verdict_are_those_of_model_baseline_and_robot() -> None:
    validation = Validation(
        {'all': scored(0.1, 0.2, 0.3)}, {'all': scored(0.5, 0.6)},
        (still(repeatability=np.array([0.3, 0.3, 0.3]), noise=np.array([0.4, 0.4, 0.4])),), ())
    errors = Errors.of(validation, 'held-out')
    assert errors.cells == (('held-out error [%]', 'baseline [%]'), {
        'joint_1': ('10.0', '50.0'), 'joint_2': ('20.0', '60.0'), 'joint_3': ('30.0', '–')})
    bars = errors.figure.spec['data']
    assert {bar['name']: pytest.approx(unpacked(bar['y'])) for bar in bars} == {
        'identified model, held-out': [10.0, 20.0, 30.0], 'baseline': [50.0, 60.0],
        'robot itself and noise': 3 * [25.0]}  # 0.5 of 2 N m
    assert len({bar['marker']['color'] for bar in bars}) == 3
    assert BASELINE in errors.figure.text
    table = Table(('joint', *USES), [('joint_1', *'abcd'), ('none', *'abcd')])
    other = Table((), ())
    verdict = errors.added_to(Section('uses', tables=(table, other)))
    assert rows(verdict) == [('joint_1', '10.0', '50.0', *'abcd'), ('none', '–', '–', *'abcd')]
    assert verdict.tables[1] is other and len(verdict.figures) == 1
    alone = Errors.of(replace(validation, control={}, traces=()), 'fit')
    assert alone.cells[0] == ('fit error [%]',) and alone.cells[1]['joint_1'] == ('10.0',)
    assert alone.figure.text == NO_BASELINE
    assert [bar['name'] for bar in alone.figure.spec['data']] == ['identified model, fit']
    exact = Errors.of(replace(validation, model={'all': scored(0.0, 0.2, 0.3)}), 'fit')
    assert np.isnan(unpacked(exact.figure.spec['data'][2]['y'])[0])


@pytest.mark.parametrize('count', [0, 5, 6])
def test_more_than_five_warnings_are_folded(count: int) -> None:
    found = warnings([f'warning {i}' for i in range(count)])
    assert [(section.title, section.folded, len(section.warnings)) for section in found] == (
        [('6 warnings', True, 6)] if count == 6 else [('Warnings', False, 5)] if count else [])


def test_simulated_motions_are_in_thousandths_and_those_that_ended_are_counted() -> None:
    def rollout(stopped: int, scale: float) -> RolloutScore:
        return RolloutScore(0.5, 4, stopped, scale * np.array([0.001, 0.002, 0.003]),
                            scale * np.array([0.01, 0.02, 0.03]))

    horizons = (Horizon(0.5, {'model': rollout(1, 1.0), 'control': rollout(4, 2.0),
                              'constant_velocity': rollout(0, 3.0)}),
                Horizon(2.0, {'model': rollout(0, 4.0)}))
    found = ForwardValidation({'all': scored(0.1, 0.2), 'motion': scored(0.3)},
                              {'all': scored(0.5)}, np.array([0.05, np.nan]), horizons, ())
    section = forward_dynamics(MODEL, found)
    assert rows(section) == [
        ('joint_1', '0.2', '0.05', '10.0', '50.0', '30.0', '–', '–', '0.990'),
        ('joint_2', '0.4', '–', '20.0', '–', '–', '–', '–', '0.960')]
    short, longer = section.tables[1:]
    assert short.title.startswith('Simulated motions of 0.5 s')
    assert short.title.endswith(' (1 of 4 ended early)') and 'early' not in longer.title
    assert short.columns == ('joint', 'position [mrad, mm]', 'baseline', 'constant velocity',
                             'velocity [mrad/s, mm/s]', 'baseline', 'constant velocity')
    assert rows(section, 1)[1] == ('joint_2', '2', '–', '6', '20', '–', '60')
    assert rows(section, 2)[2] == ('joint_3', '12', '120')


def test_the_motion_of_the_fit_stands_beside_the_limits() -> None:
    limits = replace(MODEL.robot.limits, lower=np.array([-2.0, -1.0, -np.inf]),
                     upper=np.array([2.0, 3.0, np.inf]), velocity=np.array([2.0, 4.0, 0.0]))
    ranges = {'position': np.array([[-0.5, 0.69], [-0.5, 0.71], [0.0, 1.0]]),
              'velocity': np.array([[-0.61, 0.2], [-0.2, 1.19], [0.0, 1.0]]),
              'effort': np.array([[-12.345, 1.0], [0.0, 2.0], [0.0, 3.0]])}
    model = replace(MODEL, robot=replace(MODEL.robot, limits=limits), trained=Trained(ranges))
    section = excitation(model)
    found = rows(section)
    assert found[0][:5] == ('joint_1', '-0.5 to 0.69 rad', '-0.61 to 0.2 rad/s', '–',
                            '-12.3 to 1 N m')
    told = [[(cell, '') if isinstance(cell, str) else (cell.text, cell.mark)
             for cell in row[5:]] for row in found]
    assert told == [[('29.8', 'fair'), ('30.5', '')], [('30.2', ''), ('29.8', 'fair')],
                    [('–', ''), ('–', '')]]
    assert excitation(MODEL).tables == () and 'Not excited' not in section.text


def test_settings_are_told_in_words_and_units() -> None:
    record = replace(MODEL.record, passbands=(8.0, 9.5, 7.0), accepted=('gaps',),
                     weights_near_reversals=(0.5, 0.25, 1.0),
                     effort_lag=Lag(0.0012345, 0.000123))
    preprocessing = replace(MODEL.preprocessing, rate=250.0, decimate=False,
                            encoder_delays=(0.0, 0.002, 0.0))
    told = dict(rows(data([], replace(MODEL, record=record, preprocessing=preprocessing)), 1))
    assert told['effort lag'] == '1 ms, removed (measured 1.23 ± 0.12 ms)'
    assert told['low-pass of the prediction, by joint [Hz]'] == '8, 9.5, 7'
    assert (told['grid'], told['findings accepted']) == ('250 Hz', 'gaps')
    assert told['delays of link encoders, removed [ms]'] == 'joint_2 2'
    assert told['samples reduced to what the cut-off leaves'] == 'no'
    assert told['rest at both ends dropped'] == 'yes'
    assert told['weights of samples near reversals of velocity'] == '0.5, 0.25, 1'
    plain = dict(rows(data([], MODEL), 1))
    assert (plain['grid'], plain['findings accepted']) == ("the recording's own", 'none')
    assert plain['weights of samples near reversals of velocity'] == 'not known'
    assert 'delays of link encoders, removed [ms]' not in plain


def test_rates_are_those_of_most_samples_and_seconds_those_of_all() -> None:
    time = np.cumsum([0.0] + 100 * [0.004] + [1.0])
    one = np.zeros((102, 3))
    logs = [RawLog('/a/run.csv', MODEL.joints, time, one, velocity=one, effort=one,
                   findings=('a gap',)),
            RawLog('/b/run.csv', MODEL.joints, time[:1], one[:1])]
    section = data(logs, MODEL)
    assert rows(section) == [
        ('a/run.csv', '102', '1.4', '250', 'position, velocity, effort'),
        ('b/run.csv', '1', '0', '–', 'position')]
    assert section.warnings == ('a/run.csv: a gap',)


def test_the_cut_off_that_was_chosen_is_marked_within_a_margin() -> None:
    layout = cutoffs([(2.0, 0.1), (4.0, 0.0), (8.0, 0.2)], 4.0, 'N m')['layout']
    assert layout['xaxis']['range'] == pytest.approx(np.log10([2.0 / 1.2, 8.0 * 1.2]))
    assert layout['xaxis']['ticktext'] == ['2', '4', '8']
    (mark,), (note,) = layout['shapes'], layout['annotations']
    assert [mark[key] for key in ('x0', 'x1', 'y0', 'y1')] == [4.0, 4.0, 0, 1]
    assert note['text'] == 'chosen: 4 Hz' and note['x'] == pytest.approx(np.log10(4.0))


def test_provenance_has_digests_and_the_command_that_repeats_it() -> None:
    record = replace(MODEL.record, recordings=('/a/one.csv', '/a/two.csv'),
                     recording_digests=('12ab', ''), robot_digest='34cd')
    model = replace(MODEL, record=record)
    logs = [RawLog(path, MODEL.joints, np.zeros(1), np.zeros((1, 3)))
            for path in ('/a/two.csv', '/a/new.csv')]
    section = provenance(model, logs)
    told = dict(rows(section))
    assert told['fitted to one.csv, SHA-256'] == '12ab'
    assert told['fitted to two.csv, SHA-256'] == 'not a file'
    assert told['also shown here'] == 'new.csv'
    assert told['robot, SHA-256 of its description'] == '34cd'
    assert told['recipe, SHA-256'] == 'not known'
    assert section.actions[0].command == (
        'robot-dynid identify /a/one.csv /a/two.csv --robot planar_3r --method wls '
        '--out model.yaml')
    assert '--method' not in provenance(replace(model, method=''), []).actions[0].command
    assert provenance(model, [], ('a', 'b c')).actions[0].command == "a 'b c'"
