"""The verdict binds: every entry refuses what is refused, unless it is accepted by its kind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import recording
from spoiled_recordings import set_back

from robot_dynid.cli.main import main
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.payload import identify_drive_gains, identify_payload
from robot_dynid.identification.recipe import Recipe, recipe_from_dict
from robot_dynid.identified.caution import require_any_joint, usable
from robot_dynid.io.csv import write_csv
from robot_dynid.monitoring.contact_events import contact_events
from robot_dynid.plausibility.finding import KINDS
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import RawLog
from robot_dynid.validation.validate import validate

ROBOT = load_robot('planar_3r')
SETTINGS = {'cutoff': 10.0, 'friction': 'coulomb', 'ramp_width': 0.01, 'effort_lag': 0.0,
            'ripple': 'none'}
RECIPE = recipe_from_dict(SETTINGS)
NEGATED = r'effort_sign.*look negated.*; change the sign of the efforts.*--accept'


@pytest.fixture(scope='module')
def log() -> RawLog:
    return recording(ROBOT, 1)


@pytest.fixture(scope='module')
def negated(log: RawLog) -> RawLog:
    return replace(log, effort=-log.effort, source='negated')


@pytest.fixture(scope='module')
def result(log: RawLog) -> IdentificationResult:
    return identify(ROBOT, [log], recipe=RECIPE)


def test_every_entry_of_the_core_refuses(
    log: RawLog, negated: RawLog, result: IdentificationResult
) -> None:
    model = result.model
    for enter in (
        lambda: identify(ROBOT, [negated], recipe=RECIPE), lambda: validate(model, [negated]),
        lambda: contact_events(model, [negated]),
        lambda: identify_payload(ROBOT, [negated], model=model),
        lambda: identify_payload(ROBOT, [log], [negated]),
    ):
        with pytest.raises(DataError, match=f'(?s){NEGATED}'):
            enter()


def test_accepted_finding_is_a_warning_and_no_refusal(
    negated: RawLog, result: IdentificationResult
) -> None:
    accepting = replace(RECIPE, accept=('effort_sign',))
    found = identify(ROBOT, [negated], recipe=accepting)
    assert any('effort_sign' in text for text in found.warnings)
    assert found.model.warnings == found.warnings
    meant = replace(negated, accepted=('effort_sign',))
    assert 'effort_sign' in validate(result.model, [meant]).warnings[0]
    assert 'effort_sign' in contact_events(result.model, [meant])[0].notes[0]
    with pytest.raises(DataError, match='effort_sign'):
        identify(ROBOT, [negated], recipe=replace(RECIPE, accept=('effort_scale',)))


def test_kinds_are_known() -> None:
    for make in (lambda: Recipe(accept=('signs',)), lambda: recipe_from_dict({'accept': ['a']}),
                 lambda: plausible_recordings(ROBOT, [], ['signs'])):
        with pytest.raises(UsageError, match=f'choose one of {", ".join(KINDS)}'):
            make()
    with pytest.raises(UsageError, match='list of kinds'):
        recipe_from_dict({'accept': {'effort_sign': True}})
    assert recipe_from_dict({'accept': 'clock'}).accept == ('clock',)


def test_plausible_recordings_reports_all_findings_at_once(log: RawLog, negated: RawLog) -> None:
    late = replace(log, time=1e3 * log.time, source='late')
    with pytest.raises(DataError) as told:
        plausible_recordings(ROBOT, [negated, late])
    assert 'negated: effort_sign' in str(told.value) and 'late: time_unit' in str(told.value)
    assert str(told.value).endswith('effort_sign, time_unit')


def test_drive_gains_are_free_in_scale_only(log: RawLog) -> None:
    from robot_dynid.estimation.drive_gains import KnownLoad

    logs = [replace(log, effort=-log.effort)]
    with pytest.raises(DataError, match='effort_sign'):
        identify_drive_gains(ROBOT, logs, [recording(ROBOT, 2)], KnownLoad(1.0))


def test_the_command_line_refuses_and_accepts(
    negated: RawLog, result: IdentificationResult, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_csv(tmp_path / 'n.csv', negated)
    (tmp_path / 'r.yaml').write_text(json.dumps(SETTINGS))
    result.model.save(tmp_path / 'm.yaml')
    data, model = str(tmp_path / 'n.csv'), str(tmp_path / 'm.yaml')
    for words in (
        ['identify', data, '--robot', 'planar_3r', '--recipe', str(tmp_path / 'r.yaml'),
         '--out', str(tmp_path / 'o.yaml')], ['validate', model, data], ['contact', model, data],
        ['compare', model, model, data], ['payload', data, '--model', model],
        ['information', data, '--robot', 'planar_3r', '--recipe', str(tmp_path / 'r.yaml'),
         '--out', str(tmp_path / 'o.info')],
        ['calibrate', model, data, '--out', str(tmp_path / 'c.yaml')],
    ):
        assert main([*words, '--json']) == 1
        assert words[0] != 'identify' or not (tmp_path / 'o.yaml').exists()
        answer = json.loads(capsys.readouterr().out)
        assert answer['kind'] == 'DataError' and 'change the sign' in answer['error']
        if words[0] == 'payload':
            continue  # there is none that could be negative
        partial = ['--accept-partial'] if words[0] == 'identify' else []
        assert main([*words, '--accept', 'effort_sign', *partial, '--json']) == 0
        warnings = json.loads(capsys.readouterr().out)['warnings']
        assert any('effort_sign' in text for text in warnings)
    assert main(['validate', model, data, '--accept', 'signs']) == 2


def test_the_job_of_the_action_refuses_by_code(negated: RawLog) -> None:
    job = pytest.importorskip('robot_dynid.ros.identifier.identification')

    def run(**more: object):
        return job.run(job.Job(ROBOT, (negated,), **more), lambda stage, fraction: None)

    outcome = run(recipe=json.dumps(SETTINGS))
    assert outcome.code is job.Code.NOT_IDENTIFIABLE and 'look negated' in outcome.message
    outcome = run(recipe=json.dumps({**SETTINGS, 'accept': ['effort_sign']}))
    assert outcome.code is job.Code.SUCCESS
    assert any('effort_sign' in text for text in outcome.warnings)


def test_parts_of_several_clocks_are_never_spliced(log: RawLog) -> None:
    _, reset = set_back(None)(ROBOT, log)
    found = identify(ROBOT, [reset], recipe=RECIPE)
    whole = identify(ROBOT, [log], recipe=RECIPE)
    lost = whole.experiment.information.samples - found.experiment.information.samples
    assert 0 <= lost < 0.1 * whole.experiment.information.samples
    assert any('simulation is reset' in w for w in found.warnings)
    assert np.allclose(found.model.values, whole.model.values, rtol=0.05, atol=0.05)


def test_efforts_of_their_own_stamps_and_two_clocks_are_refused(log: RawLog) -> None:
    _, reset = set_back(None)(ROBOT, log)
    reset = replace(reset, effort_messages=(log.time, log.effort))
    with pytest.raises(DataError, match='cannot be matched'):
        plausible_recordings(ROBOT, [reset])


def refused(result: IdentificationResult, joints: int) -> object:
    """Return a model of which so many joints are refused."""
    return replace(result.model, not_identified=ROBOT.joints[:joints])


def test_a_model_is_usable_only_if_it_says_so(result: IdentificationResult) -> None:
    assert usable(result.model) and usable(result.model, partial=True)
    assert not usable(refused(result, 1)) and usable(refused(result, 1), partial=True)
    assert not usable(refused(result, 3), partial=True)
    require_any_joint(refused(result, 2))
    with pytest.raises(ModelError, match='every joint is refused'):
        require_any_joint(refused(result, 3))


@pytest.mark.parametrize(('joints', 'partial', 'code'), [
    (0, False, 0), (1, False, 1), (1, True, 0), (3, False, 1), (3, True, 1)])
def test_exit_codes_of_refused_joints(
    joints: int, partial: bool, code: int, result: IdentificationResult, log: RawLog,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    model, data, states = (str(tmp_path / name) for name in ('m.yaml', 'd.csv', 's.csv'))
    refused(result, joints).save(model)
    write_csv(data, log)
    names = ('position', 'velocity', 'acceleration', 'effort')
    Path(states).write_text(','.join(f'{c}.{j}' for c in names for j in ROBOT.joints) + '\n'
                            + ','.join(['0.1'] * 12) + '\n')
    for words in (['forward', model, states], ['inverse', model, states],
                  ['validate', model, data], ['contact', model, data]):
        given = [*words, '--json', *(['--accept-partial'] if partial else [])]
        assert main(given) == code, words
        shown = json.loads(capsys.readouterr().out)
        assert shown['ok'] is (code == 0)
        if words[0] == 'inverse':
            assert [value is None for value in shown['effort'][0]] == [
                j < joints for j in range(ROBOT.n)]
        if words[0] == 'forward':
            assert (None in shown['acceleration'][0]) is (code == 1)
