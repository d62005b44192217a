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
    assert layout['xaxis']['tickvals'] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    assert layout['yaxis']['ticktext'] == ['0.1', '0.2', '0.5', '1', '2', '5']


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
