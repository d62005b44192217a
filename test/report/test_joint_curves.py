"""report/curves.py, report/effects.py: curves of joints and tables of effects by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from report_pages import unpacked

from robot_dynid.estimation.deflection_fit import DeflectionFit, Determined
from robot_dynid.estimation.friction_selection.law_selection import AxisChoice, LawScore
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord, GearRecord, RigidComparison
from robot_dynid.report import curves, effects
from robot_dynid.validation.effort_parts import EffortParts
from robot_dynid.validation.rollout_scores import OpenLoopMotions
from robot_dynid.validation.validate import Trace, Validation, joint_score

MODEL = nominal_model('planar_3r')


def trace(count: int = 400, **more: Any) -> Trace:
    """Return a recording whose joints have efforts of 1, 2 and 3 N m, all predicted with 0.9."""
    measured = np.outer(np.where(np.arange(count) % 2, 1.0, -1.0), [1.0, 2.0, 3.0])
    return Trace('/a/run.csv', 0.01 * np.arange(count), measured, 0.9 * measured, 0.5 * measured,
                 np.ones(count), None, **more)


def with_record(**fields: Any) -> IdentifiedModel:
    return replace(MODEL, record=FitRecord(**fields))


def drawn(spec: Any) -> dict[str, dict[str, Any]]:
    return {curve['name']: curve for curve in spec['data']}


def test_measured_predicted_and_residual_stand_above_each_other() -> None:
    speed = np.repeat(np.where(np.arange(400) < 200, 1.0, -1.0)[:, None], 3, axis=1)
    one = trace(velocity=speed)
    one.measured[100, 1] = 100.0
    one = replace(one, time=one.time + np.where(np.arange(400) < 300, 0.0, 5.0))
    spec = curves.prediction([one], (1, 1), 'N m')
    found = drawn(spec)
    assert list(found) == ['measured', 'nominal', 'predicted', 'residual', 'reversal',
                           'far outside']
    whole = {name: unpacked(curve['y']) for name, curve in found.items()}
    rows = np.isfinite(whole['measured'])
    np.testing.assert_allclose(whole['residual'][rows],
                               (whole['measured'] - whole['predicted'])[rows], rtol=0.0, atol=1e-5)
    assert np.abs(whole['predicted'][rows]).max() == pytest.approx(1.8)
    assert np.nanmin(np.abs(whole['nominal'])) == pytest.approx(1.0)
    assert found['nominal']['visible'] == 'legendonly'
    assert [found[name].get('yaxis', 'y') for name in found] == ['y', 'y', 'y', 'y2', 'y3', 'y2']
    assert unpacked(found['reversal']['x']) == pytest.approx([1.99])
    assert not whole['reversal'].any()
    assert unpacked(found['far outside']['x']) == pytest.approx([1.0])
    layout = spec['layout']
    assert layout['xaxis']['range'] == pytest.approx([0.0, 8.99])
    assert [(one['x0'], one['x1']) for one in layout['shapes']] == [
        (pytest.approx(2.99), pytest.approx(8.0))]
    assert layout['yaxis']['domain'][1] == 1.0 and layout['annotations'] == []
    heights = [np.ptp(layout[name]['domain']) for name in ('yaxis', 'yaxis2')]
    assert heights[0] == pytest.approx(2.0 * heights[1])
    assert layout['yaxis3']['range'] == [0, 1] and not layout['yaxis3']['visible']
    titles = [figures[0].title for figures in curves.predictions(
        Validation({}, {}, (one,), ()), replace(MODEL, not_identified=('joint_2',))).values()]
    assert [title.endswith('(not identified)') for title in titles] == [False, True, False]
    quiet = curves.prediction([replace(trace(), control=np.nan * one.control)], (1, 1), 'N m')
    assert list(drawn(quiet)) == ['measured', 'predicted', 'residual']


@pytest.mark.parametrize(('count', 'named'), [(1, False), (2, True), (6, True), (7, False)])
def test_recordings_are_named_where_they_are_few(count: int, named: bool) -> None:
    traces = [replace(trace(101), source=f'/a/{"long" * 6}{k}.csv.gz') for k in range(count)]
    layout = curves.prediction(traces, (0, 0), 'N m')['layout']
    assert len(layout['annotations']) == (count if named else 0)
    assert len(layout['shapes']) == (0 if count == 1 else count)
    if count > 1:
        starts = [shape['x0'] for shape in layout['shapes']]
        assert starts == pytest.approx([1.02 * k for k in range(count)])
        assert all(shape['x1'] == shape['x0'] and (shape['y0'], shape['y1']) == (0, 1)
                   for shape in layout['shapes'])
        assert 'one after the other' in layout['xaxis']['title']['text']
    if named:
        note = layout['annotations'][1]
        assert (note['x'], note['y'], note['text']) == (
            pytest.approx(1.02), 1.0, f'{"long" * 6}'[:23] + '…')
    short = replace(trace(101), source='/a/' + 24 * 'x' + '.mcap')
    layout = curves.prediction([short, replace(short, source='/a/b.db3')], (0, 0), 'N m')['layout']
    assert [one['text'] for one in layout['annotations']] == [24 * 'x', 'b']


def test_parts_of_the_effort_are_drawn_where_they_are_not_zero() -> None:
    one = trace(100)
    none = np.zeros((100, 3))
    split = EffortParts(none + np.array([1.0, 0.0, 2.0]), none,
                        none + np.array([0.5, -3.0, 0.0]), none)
    validation = Validation({}, {}, (replace(one, split=split),), ())
    found = curves.split(validation, MODEL)
    names = {j: {name: np.unique(unpacked(curve['y'])[:-1]).tolist()
                 for name, curve in drawn(figures[0].spec).items()}
             for j, figures in found.items()}
    assert names == {0: {'gravity': [1.0], 'friction': [0.5]}, 1: {'friction': [-3.0]},
                     2: {'gravity': [2.0]}}
    assert {figures[0].link for figures in found.values()} == {'time'}
    assert curves.split(Validation({}, {}, (one,), ()), MODEL) == {}


@pytest.mark.parametrize(('count', 'shown'), [(1500, 1500), (2999, 2999), (3000, 1500)])
def test_predicted_stands_over_measured_effort(count: int, shown: int) -> None:
    found = curves.scatter(Validation({}, {}, (trace(count),), ()), MODEL)
    samples, equal = found[2][0].spec['data']
    assert len(unpacked(samples['x'])) == shown
    np.testing.assert_allclose(unpacked(samples['y']), 0.9 * unpacked(samples['x']), rtol=1e-6)
    assert unpacked(equal['x']).tolist() == unpacked(equal['y']).tolist()
    if shown == count:
        assert unpacked(equal['x']).tolist() == [-3.0, 3.0]
    layout = found[2][0].spec['layout']
    assert layout['xaxis']['title']['text'] == 'measured effort [N m]'
    assert not samples['showlegend'] and not equal['showlegend']


def motions(pieces: int, off: float, control: bool) -> OpenLoopMotions:
    """Return motions whose joints are off by ``off``, twice and thrice that after 0.1 to 0.5 s."""
    time = np.arange(pieces * 6.0).reshape(pieces, 6)
    measured = np.repeat(time[:, :, None], 3, axis=2)
    distances = np.full((pieces, 20, 4), np.nan)
    distances[:, :5] = off * np.array([1.0, 2.0, 3.0, 4.0])
    names = ('model', 'control') if control else ('model',)
    return OpenLoopMotions({name: (1.0 + 9.0 * k) * distances for k, name in enumerate(names)},
                           time, measured, dict.fromkeys(names, measured + off))


def test_simulated_positions_are_those_of_the_longest_recording() -> None:
    traces = tuple(trace(9, open_loop=one) for one in (
        None, motions(2, 0.25, True), motions(3, 0.5, False), motions(1, 1.0, False)))
    found = drawn(curves.simulated(Validation({}, {}, traces, ()), MODEL)[1][0].spec)
    assert list(found) == ['measured', 'identified']
    time, measured, ours = (unpacked(one) for one in (
        found['measured']['x'], found['measured']['y'], found['identified']['y']))
    assert np.flatnonzero(np.isnan(time)).tolist() == [6, 13, 20] and len(time) == 21
    np.testing.assert_allclose(time[:6], np.arange(6.0))
    np.testing.assert_allclose(ours - measured, np.where(np.isnan(time), np.nan, 0.5))
    assert list(drawn(curves.simulated(Validation({}, {}, traces[:2], ()), MODEL)[0][0].spec)) == [
        'measured', 'baseline', 'identified']
    assert curves.simulated(Validation({}, {}, traces[:1], ()), MODEL) == {}


def test_errors_grow_over_the_horizon_in_their_units() -> None:
    validation = Validation({}, {}, (trace(9, open_loop=motions(2, 0.001, True)),
                                     trace(9, open_loop=motions(2, 0.007, True))), ())
    section = curves.horizons(validation, MODEL)
    rms = 0.005  # of 1 and 7
    assert [figure.title for figure in section.figures] == [*MODEL.joints, 'tip']
    for j, (figure, scale) in enumerate(zip(section.figures, (1.0, 1.0, 1.0, 1e3))):
        baseline, ours = figure.spec['data']
        assert unpacked(ours['y'])[:5] == pytest.approx(5 * [scale * rms * (j + 1.0)])
        assert unpacked(baseline['y'])[0] == pytest.approx(10.0 * scale * rms * (j + 1.0))
        assert np.isnan(unpacked(ours['y'])[5:]).all()
        assert unpacked(ours['x'])[[0, 4]] == pytest.approx([0.1, 0.5])
    units = [figure.spec['layout']['yaxis']['title']['text'] for figure in section.figures]
    assert units == 3 * ['RMS error [rad]'] + ['RMS error [mm]']
    (table,) = section.tables
    assert table.title == 'RMS error of simulated motions of 0.5 s [mrad, mm]'
    assert [row.cells for row in table.rows] == [
        ('joint_1', '5', '50'), ('joint_2', '10', '100'), ('joint_3', '15', '150'),
        ('tip', '20', '200')]
    assert section.text.startswith('4 motions from measured states under the measured effort. ')
    ended = motions(2, 0.001, False)
    ended.distances['model'][0] = np.nan
    section = curves.horizons(Validation({}, {}, (trace(9, open_loop=ended),), ()), MODEL)
    assert ', of which 1 stopped. ' in section.text and section.tables[0].columns[1:] == (
        'identified',)
    ended.distances['model'][:] = np.nan
    none = curves.horizons(Validation({}, {}, (trace(9, open_loop=ended),), ()), MODEL)
    assert none.tables == ()
    told = curves.horizons(Validation({}, {}, (trace(9),), (), not_simulated='why'), MODEL)
    assert told.text == 'Nothing was simulated: why.'


def test_friction_is_the_effort_without_all_other_parts() -> None:
    speed = np.linspace(-2.0, 2.0, 3001)
    law = 3.0 * np.sign(speed) + speed
    none = np.zeros((3001, 3))
    friction = none + np.outer(law, [0.0, 1.0, 0.0])
    one = replace(trace(3001), velocity=np.repeat(speed[:, None], 3, axis=1),
                  measured=none + 12.0 + friction, predicted=none + 10.0 + friction,
                  split=EffortParts(none + 10.0, none, friction, none))
    found = curves.friction_data(Validation({}, {}, (one,), ()), MODEL)
    assert list(found) == [1]
    spec = found[1][0].spec
    curve = drawn(spec)
    assert len(unpacked(curve['samples']['x'])) == 1501  # every second
    median, line = (unpacked(curve[name]['y']) for name in (
        'measured, median and quartiles', 'model'))
    np.testing.assert_allclose(median - line, 2.0, rtol=0.0, atol=1e-5)
    middle = unpacked(curve['model']['x'])
    edges = 2.0 * np.linspace(0.0, 1.0, 17)**2  # finer about zero
    centres = 0.5 * (edges[1:] + edges[:-1])
    np.testing.assert_allclose(middle[-8:], centres[-8:], rtol=0.0, atol=2e-3)
    errors = curve['measured, median and quartiles']['error_y']
    half = 0.25 * np.diff(edges)[-8:]
    for name in ('array', 'arrayminus'):
        np.testing.assert_allclose(unpacked(errors[name])[-8:], half, rtol=0.0, atol=2e-3)
    low, high = np.percentile(law + 2.0, (0.5, 99.5))
    margin = 0.1 * (high - low)
    assert spec['layout']['yaxis']['range'] == pytest.approx([low - margin, high + margin])
    assert spec['layout']['xaxis']['title']['text'] == 'speed [rad/s]'
    assert curves.friction_data(Validation({}, {}, (one, replace(one, velocity=None)), ()),
                                MODEL) == {}


def test_laws_that_were_tried_stand_by_their_errors() -> None:
    tried = tuple(LawScore(f'law{k}', 1.0 - 0.1 * k) for k in range(8))
    model = with_record(friction=(AxisChoice('1', 'law6', '', tried), AxisChoice('2', 'stiff')))
    (section,) = effects.friction_laws(model)
    (table,) = section.tables
    assert table.columns == ('axis', 'law', "error over Coulomb's", 'best of those tried')
    assert table.rows[0].cells == (
        'joint_1 (1)', 'law6', '0.4', 'law7 0.3, law6 0.4, law5 0.5, law4 0.6, law3 0.7, law2 0.8')
    assert table.rows[1].cells == ('joint_2 (2)', 'stiff', '–', '')
    assert table.words and section.folded
    noted = with_record(friction=(AxisChoice('1', 'law6', 'why', tried),))
    assert effects.friction_laws(noted)[0].tables[0].columns[-1] == 'remark'


def scored(*errors: float) -> dict[str, Any]:
    signal = np.array([3.0, -3.0])
    return {joint: joint_score(signal, (1.0 - error) * signal)
            for joint, error in zip(MODEL.joints, errors)}


def test_predictions_that_follow_slow_changes_stand_beside_the_static_one() -> None:
    validation = Validation({'all': scored(0.5, 0.0)}, {}, (), (), {'all': scored(0.4, 0.1)},
                            {'all': scored(0.1, 0.2)})
    (section,) = effects.predictions_beside(MODEL, validation)
    (table,) = section.tables
    assert table.columns[1] == 'static RMSE [N m]'
    assert [row.cells for row in table.rows] == [
        ('joint_1', '1.5', '1.2', '0.3', '50.0', '40.0', '10.0', '80.0'),
        ('joint_2', '0', '0.3', '0.6', '0.0', '10.0', '20.0', '–')]
    assert section.folded
    assert effects.predictions_beside(MODEL, replace(validation, adaptive={})) == ()


@pytest.mark.parametrize(('attenuation', 'mark'), [(0.0099, ''), (0.0101, 'poor')])
def test_gears_stand_in_thousandths_and_a_drawn_down_stiffness_is_marked(
    attenuation: float, mark: str
) -> None:
    gear = GearRecord('joint_1', 5000.0, 20.0, 0.00123, 0.00002, 0.0012345, 0.0054321, 1e-5, 0.0,
                      0.0000123, attenuation, 12.0, 0.5, 0.25, 0.01, 0.0004, 0.00003, 1.5, 0.02)
    plain = replace(gear, joint='joint_2', kinematic_error=0.0, hysteresis=0.0)
    beside = (RigidComparison('joint_1', True, 3.0, 2.0, True),
              RigidComparison('joint_2', False, 2.0, 2.0, False))
    (section,) = effects.elastic_joints(with_record(gears=(gear, plain), rigid_beside=beside))
    gears, rigid = section.tables
    assert gears.rows[0].cells == (
        'joint_1', '5000 ± 20', '12.00 ± 0.50', '0.250 ± 0.010', '1.23 ± 0.02', '1.23', '5.43',
        '0.01 / none seen', '0.012', f'{100.0 * attenuation:.2g}', '0.400 ± 0.030',
        '1.500 ± 0.020')
    assert gears.rows[1].cells[-2:] == ('none seen', 'none seen')
    assert [row.mark for row in gears.rows] == [mark, mark]
    assert [row.cells for row in rigid.rows] == [
        ('joint_1', 'elastic', '3', '2', '1.5', 'elasticity matters'),
        ('joint_2', 'rigid', '2', '2', '1', 'no more than 10 % apart')]
    assert section.text.endswith('Elasticity matters at joint_1.')
    (section,) = effects.elastic_joints(with_record(gears=(gear,), rigid_beside=beside[1:]))
    assert 'The rigid model predicts these efforts as well' in section.text
    assert effects.elastic_joints(MODEL) == ()


def test_causes_of_deflections_stand_with_intervals_where_they_are_determined() -> None:
    known, none = (Determined(2e-3, 1e-4, 1.8e-3, 2.2e-3, True),
                   Determined(1e-5, 1e-4, -1e-4, 2e-4, False))
    stiff = Determined(5e3, 1e3, 4e3, np.inf, False)
    fit = DeflectionFit('joint_1', stiff, none, known, none, known, none, 1.2e-4, 3.4567e-5)
    (section,) = effects.encoders(with_record(encoders=(fit,)))
    cells = section.tables[0].rows[0].cells
    assert cells == ('joint_1', '120', '34.6', '2 [1.8, 2.2]', '[4000, ∞]', '[-0.0001, 0.0002]',
                     '[-100, 200]', '2000 [1800, 2200]', '[-100, 200]',
                     'delay, kinematic error', 'stiffness, damping, hysteresis, zero')
    assert effects.encoders(MODEL) == ()
