"""identification/learnt.py: torque ripple from recordings to its uses: identify, predict, monitor,
inverse, file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording
from rippling import Gear, with_gear
from tolerances import SAME_FORMULA

from robot_dynid.cli.main import main
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.identification.gathered import Fit, Gathered
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.learnt import learn_ripple, piece_of
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Extent
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.monitoring.monitor_input import MonitorInputStream, monitor_input
from robot_dynid.report.effects import pictures
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
RECIPE = Recipe(cutoff=8.0, friction='coulomb', ramp_width=0.05, effort_lag=0.0)
#: at the middle joint, of half its noise
GEAR = Gear(stiffness=2e4, waves=((10.0, 0.5), (2.0, 0.5)))


@pytest.fixture(scope='module')
def waving() -> IdentificationResult:
    """Return the identification from two recordings with ripple at the second joint."""
    logs = [with_gear(recording(ROBOT, seed), 1, GEAR) for seed in (1, 2)]
    return identify(ROBOT, logs, recipe=RECIPE)


def test_ripple_is_found_where_it_is_and_nowhere_else(waving: IdentificationResult) -> None:
    model = waving.model
    assert [one is not None for one in model.parts_of('ripple')] == [False, True, False]
    found = {one.joint: one for one in model.record.ripple}
    assert {1010.0, 202.0} <= {wave.order for wave in found['joint_2'].waves}
    assert found['joint_2'].gain > 0.5
    assert found['joint_1'].waves == ()
    assert found['joint_1'].gain == 0.0
    stiffness = found['joint_2'].stiffness
    assert stiffness is not None
    assert stiffness[0] < GEAR.stiffness < stiffness[2]


def test_torque_ripple_predicts_other_recordings_better(waving: IdentificationResult) -> None:
    other = with_gear(recording(ROBOT, 3), 1, GEAR)
    with_it = validate(waving.model, [other]).model['all']
    without = validate(waving.model.with_learnt('ripple', ()), [other]).model['all']
    assert with_it['joint_2'].rmse < 0.5 * without['joint_2'].rmse
    assert with_it['joint_1'] == without['joint_1']
    # it says nothing about links, so that the control row has it, too
    control, smooth = (validate(one, [other]).control['all'] for one in (
        waving.model, waving.model.with_learnt('ripple', ())))
    assert control['joint_2'].rmse < 0.9 * smooth['joint_2'].rmse


def test_pictures_draw_the_largest_ripple_wave_over_its_phase(
    waving: IdentificationResult
) -> None:
    found = validate(waving.model, [with_gear(recording(ROBOT, 3), 1, GEAR)])
    drawn, (trace,) = pictures(found, waving.model), found.traces
    assert {joint: [one.title for one in own] for joint, own in drawn.items()} == {
        1: ['Torque ripple over position, 202 waves per turn']}
    assert trace.waves is not None and not trace.waves[:, :, (0, 2)].any()
    phase, torque = trace.waves[:, :, 1]
    left = torque + (trace.measured - trace.predicted)[:, 1]
    wave = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    measured, modelled = (np.hypot(*np.linalg.lstsq(wave, one, rcond=None)[0])
                          for one in (left, torque))
    assert measured == pytest.approx(modelled, rel=0.1)
    assert measured == pytest.approx(GEAR.waves[1][1], rel=0.1)


def test_an_arm_without_ripple_gets_none() -> None:
    model = identify(ROBOT, [recording(ROBOT, seed) for seed in (1, 2)], recipe=RECIPE).model
    assert 'ripple' not in model.learnt
    assert len(model.record.ripple) == 3
    assert all(one.waves == () for one in model.record.ripple)


def test_no_ripple_is_searched_where_none_is_wanted_or_orders_cannot_be_told_apart(
    waving: IdentificationResult
) -> None:
    log = with_gear(recording(ROBOT, 3), 1, GEAR)
    plain = waving.model.with_learnt('ripple', ())
    fit = Fit(replace(plain, record=replace(plain.record, ripple=())), waving.estimate)
    gathered = Gathered(ROBOT, waving.choice, waving.experiment, Extent({}, np.empty((0, 2)), None,
                        0.0), plain.record, (), (), (), [repair(ROBOT, log)])
    wls, staged = ESTIMATORS['wls'], ESTIMATORS['staged']
    found = learn_ripple(fit, gathered, wls, RECIPE).model
    assert [one is not None for one in found.parts_of('ripple')] == [False, True, False]
    assert learn_ripple(fit, gathered, wls, replace(RECIPE, ripple='none')) is fit
    assert learn_ripple(fit, gathered, staged, RECIPE) is fit
    elastic = replace(fit, model=nominal_model('elastic_2r'))
    assert learn_ripple(elastic, gathered, wls, RECIPE) is elastic


def test_rounding_moves_no_row_to_another_piece() -> None:
    rows = np.arange(4000)
    since = 0.01 * rows  # one in twenty at a border
    moved = np.nextafter(since, np.where(rows % 3, np.inf, -np.inf))
    assert np.any(np.floor(moved / 0.2) != np.floor(since / 0.2))
    np.testing.assert_array_equal(piece_of(moved), rows // 20)
    np.testing.assert_array_equal(piece_of(since), rows // 20)


def test_the_recipe_knows_two_words() -> None:
    with pytest.raises(UsageError, match='ripple'):
        Recipe(ripple='some')


def test_inverse_adds_torque_ripple_at_measured_positions_when_asked(
    waving: IdentificationResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log = waving.model, recording(ROBOT, 4)
    q, qd, qdd = log.position[:50], log.velocity[:50], np.zeros((50, 3))
    smooth = model.inverse(q, qd, qdd)
    added = model.inverse(q, qd, qdd, ripple=True) - smooth
    ripple = model.parts_of('ripple')[1]
    assert ripple is not None
    expected = ripple.effort(q[:, 1], qd[:, 1], smooth[:, 1])
    np.testing.assert_allclose(added[:, 1], expected, rtol=0.0, atol=SAME_FORMULA * 100.0)
    assert np.abs(expected).max() > 0.1
    assert not added[:, [0, 2]].any()
    np.testing.assert_array_equal(model.inverse(q[0], qd[0], qdd[0], ripple=True),
                                  model.inverse(q, qd, qdd, ripple=True)[0])
    model.save(tmp_path / 'model.yaml')
    columns = {f'{what}.{joint}': values[:, j]
               for what, values in (('position', q), ('velocity', qd), ('acceleration', qdd))
               for j, joint in enumerate(model.joints)}
    np.savetxt(tmp_path / 'states.csv', np.stack(list(columns.values()), axis=1), delimiter=',',
               header=','.join(columns), comments='', fmt='%.17g')
    words = ['inverse', str(tmp_path / 'model.yaml'), str(tmp_path / 'states.csv'), '--ripple']
    assert main([*words, '--json']) == 0
    np.testing.assert_allclose(json.loads(capsys.readouterr().out)['effort'], smooth + added,
                               rtol=1e-9, atol=1e-9)


def test_positions_are_those_of_the_rows_of_the_effort() -> None:
    log = recording(ROBOT, 5, seconds=4.0)
    for settings in (Preprocessing(8.0), Preprocessing(8.0, effort_lag=0.013)):
        samples = prepare(ROBOT, repair(ROBOT, log), settings)
        assert samples.raw_position is not None
        assert samples.measured is not None
        rows = [int(np.flatnonzero(np.all(log.effort == row, axis=1))[0])
                for row in samples.measured]
        np.testing.assert_array_equal(samples.raw_position, log.position[rows])


def test_without_measured_positions_there_is_none(waving: IdentificationResult) -> None:
    model = waving.model
    samples = prepare(ROBOT, repair(ROBOT, recording(ROBOT, 6, 4.0)), model.preprocessing)
    unknown = replace(samples, raw_position=None, whole=None, rows=None)
    np.testing.assert_array_equal(model.predicted(unknown),
                                  model.with_learnt('ripple', ()).predicted(unknown))


def test_ripple_phase_is_that_of_measured_positions(waving: IdentificationResult) -> None:
    model, ripple = waving.model, waving.model.parts_of('ripple')[1]
    assert ripple is not None
    samples = prepare(ROBOT, repair(ROBOT, recording(ROBOT, 6, 4.0)), model.preprocessing)
    assert samples.raw_position is not None
    moved = replace(samples, raw_position=samples.raw_position + 1e-3, whole=None, rows=None)
    smooth = model.with_learnt('ripple', ()).predicted(moved)
    qd = moved.at_stamps(moved.velocity)
    expected = ripple.effort(samples.raw_position[:, 1] + 1e-3, qd[:, 1], smooth[:, 1])
    np.testing.assert_allclose((model.predicted(moved) - smooth)[:, 1], expected,
                               rtol=0.0, atol=SAME_FORMULA * 100.0)
    assert np.abs(expected).max() > 0.1


@pytest.mark.parametrize('velocity', [True, False])
def test_states_one_by_one_lose_torque_ripple_as_a_recording_does(
    waving: IdentificationResult, velocity: bool
) -> None:
    model = waving.model
    log = with_gear(recording(ROBOT, 7, 4.0), 1, GEAR)
    if not velocity:
        log = replace(log, velocity=None)
    assert log.effort is not None
    stream = MonitorInputStream(model)
    found = []
    for k, (time, q, effort) in enumerate(zip(log.time, log.position, log.effort, strict=True)):
        state = stream(float(time), q, None if log.velocity is None else log.velocity[k], effort)
        if state is not None:
            found.append(state[0])
    whole = monitor_input(model, log)
    np.testing.assert_allclose(
        np.array(found), np.stack([whole.position, whole.velocity, whole.effort], axis=1),
        rtol=0.0, atol=SAME_FORMULA * 100.0)


@pytest.mark.parametrize('velocity', [True, False])
def test_the_monitor_takes_torque_ripple_off_the_effort(
    waving: IdentificationResult, velocity: bool
) -> None:
    model, plain = waving.model, recording(ROBOT, 7)
    log = with_gear(plain, 1, GEAR)
    if not velocity:
        plain, log = replace(plain, velocity=None), replace(log, velocity=None)
    without = model.with_learnt('ripple', ())
    smooth, waves = (monitor_input(without, one).effort for one in (plain, log))
    found = monitor_input(model, log).effort

    def off(effort: np.ndarray) -> np.ndarray:
        return np.sqrt(np.mean((effort - smooth)**2, axis=0))

    assert off(found)[1] < 0.5 * off(waves)[1]
    np.testing.assert_array_equal(found[:, [0, 2]], smooth[:, [0, 2]])


def test_a_push_is_seen_and_ripple_is_none(waving: IdentificationResult) -> None:
    log = with_gear(recording(ROBOT, 9), 1, GEAR)
    (quiet,) = contact_events(waving.model, [log])
    assert quiet.contacts == ()
    assert log.effort is not None
    effort = log.effort.copy()
    pushed = (log.time > 8.0) & (log.time < 9.0)
    assert waving.model.noise_levels is not None
    size = 2.0 * float(waving.model.noise_levels.moving[1] + waving.model.noise_levels.holding[1])
    effort[pushed, 1] -= size
    (found,) = contact_events(waving.model, [replace(log, effort=effort)])
    assert {one.joint for one in found.contacts} == {'joint_2'}
    first = found.contacts[0]
    assert 8.0 < first.start < 8.1
    assert abs(first.peak) > 0.7 * size


def test_levels_of_contact_fall(waving: IdentificationResult) -> None:
    with_it = waving.model.noise_levels
    logs = [with_gear(recording(ROBOT, seed), 1, GEAR) for seed in (1, 2)]
    without = identify(ROBOT, logs, recipe=replace(RECIPE, ripple='none')).model.noise_levels
    assert with_it is not None
    assert without is not None
    assert with_it.moving[1] < 0.9 * without.moving[1]


def test_ripple_round_trips_through_the_model_file(waving: IdentificationResult) -> None:
    model = waving.model
    text = model.to_yaml()
    again = IdentifiedModel.from_yaml(text)
    assert again.to_yaml() == text
    log = with_gear(recording(ROBOT, 8, 4.0), 1, GEAR)
    samples = prepare(ROBOT, repair(ROBOT, log), model.preprocessing)
    np.testing.assert_array_equal(again.predicted(samples), model.predicted(samples))
    body = text[:text.index('digest: ')]
    with pytest.raises(ModelError, match='damaged'):
        IdentifiedModel.from_yaml(body.replace('ripple:\n  joint_2:', 'ripple:\n  joint_9:'))
