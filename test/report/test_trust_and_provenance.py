"""report/trust.py, report/provenance.py: scores, the motion of the fit, settings and digests."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.document import Section, Table
from robot_dynid.identified.suitability import USES
from robot_dynid.identified.trained import Trained
from robot_dynid.report.provenance import cutoffs, data, excitation, provenance
from robot_dynid.report.trust import (
    BASELINE,
    NO_BASELINE,
    Errors,
    error_bars,
    forward_dynamics,
    scores,
    summary,
    warnings,
)
from robot_dynid.signals.alignment import Lag
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
from robot_dynid.validation.rollout_scores import RolloutScore
from robot_dynid.validation.validate import JointScore, Trace, Validation, joint_score

MODEL = nominal_model('planar_3r')
EFFORT = np.where(np.arange(40) % 2, 2.0, -2.0)


def rows(section: Section, table: int = 0) -> list[tuple[Any, ...]]:
    return [tuple(row.cells) for row in section.tables[table].rows]


def scored(*errors: float) -> dict[str, JointScore]:
    """Return the scores of joints whose relative errors are these."""
    return {joint: joint_score(EFFORT, (1.0 - error) * EFFORT)
            for joint, error in zip(MODEL.joints, errors)}


def still(**more: Any) -> Trace:
    return Trace('x', np.arange(2.0), *3 * (np.zeros((2, 3)),), np.zeros(2), **more)


def test_bars_of_predictions_have_a_colour_each_and_are_left_out_without_scores() -> None:
    spec = error_bars({'a': {'j': 0.125}, 'b': {}, 'c': {'j': 0.25}, 'd': {'j': 0.5, 'k': 1.0}})
    assert [(bar['name'], bar['marker']['color'], unpacked(bar['y']).tolist())
            for bar in spec['data']] == [
        ('a', '@model', [12.5]), ('c', '@measured', [25.0]), ('d', '@series3', [50.0, 100.0])]


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
    held = SimpleNamespace(raw=np.array([0.36, 0.04, 4.0]), baseline=None)
    unseen = Errors.of(validation, 'held-out', held)  # of 2 N m: 0.6, 0.4 in all samples, 2
    assert unseen.cells[1] == {
        'joint_1': ('30.0', '50.0'), 'joint_2': ('20.0', '60.0'), 'joint_3': ('100.0', '–')}
    assert unseen.figure.text.endswith(f'{BASELINE} Held-out: each on motion left out of its fit.')
    assert errors.figure.text.endswith(BASELINE)
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


@pytest.mark.parametrize('shares', [None, (0.5, 0.5)])
def test_a_summary_has_the_error_to_expect_unless_recordings_were_merged(shares: Any) -> None:
    result: Any = SimpleNamespace(
        estimate=SimpleNamespace(values=np.zeros(7), rank=6, condition=12.3456, shares=shares),
        model=MODEL, held_out=SimpleNamespace(raw=np.array([0.04, 0.09, 0.16]),
                                              promise=np.array([0.5, 0.6, 0.7])),
        experiment=SimpleNamespace(information=SimpleNamespace(samples=4321)))
    section = summary(result)
    assert section.detail and [(card.name, card.value, card.unit) for card in section.cards] == [
        ('base parameters', '7', '6 independent'), ('condition number', '12.3', 'unit columns'),
        ('samples of the fit', '4321', '')]
    assert len(section.tables) == (shares is None)
    for table in section.tables:
        assert table.folded and table.title == 'Error to expect [N m]'
        assert [row.cells for row in table.rows] == [
            ('joint_1', '0.2', '0.5'), ('joint_2', '0.3', '0.6'), ('joint_3', '0.4', '0.7')]


@pytest.mark.parametrize('steady', [True, False])
def test_simulated_motions_of_recordings_stand_beside_constant_velocity(steady: bool) -> None:
    one = RolloutScore(0.5, 4, 0, np.array([1e-3, 2e-3, 3e-3]), np.array([4e-3, 5e-3, 6e-3]))
    found: Any = SimpleNamespace(
        model={'all': scored(0.1, 0.2, 0.3)}, control={}, repeatability=None, noise=None,
        rollout=one, steady=replace(one, position=2.0 * one.position) if steady else None)
    section = scores(MODEL, found, 'scores', folded=False)
    assert not section.folded
    assert rows(section, 1)[1] == (
        ('joint_2', '2', '4', '5', '5') if steady else ('joint_2', '2', '5'))


@pytest.mark.parametrize('count', [1, 2])
def test_the_choice_of_a_cut_off_is_drawn_where_there_was_one(count: int) -> None:
    choice: Any = SimpleNamespace(cutoffs=[(2.0, 0.1), (4.0, 0.0)][:count],
                                  preprocessing=SimpleNamespace(cutoff=4.0))
    section = data([], MODEL, choice)
    assert len(section.figures) == (count > 1)
    assert section.tables[0].words and section.tables[1].words and section.tables[1].folded
    assert not any(curve['showlegend'] for one in section.figures for curve in one.spec['data'])
    assert all(table.words and table.folded for table in provenance(MODEL, []).tables)


def test_slow_joints_have_a_share_of_their_top_speed() -> None:
    limits = replace(MODEL.robot.limits, velocity=np.array([0.5, 0.8, 0.9]))
    ranges = {'velocity': np.array([[-0.25, 0.1], [-0.1, 0.2], [0.0, 0.9]])}
    model = replace(MODEL, robot=replace(MODEL.robot, limits=limits), trained=Trained(ranges))
    told = [getattr(row[-1], 'text', row[-1]) for row in rows(excitation(model))]
    assert told == ['50.0', '25.0', '100.0']
