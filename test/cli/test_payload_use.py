"""cli/payload.py: payloads: bad input, the verb of the command line, the job of the action."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from identified_models import nominal_model
from payload_recordings import motion, pair, random_payload, recording, torque_robot
from recordings import recording as joint_recording
from tolerances import PAYLOAD_MASS

from robot_dynid.cli.main import main
from robot_dynid.cli.payload import show
from robot_dynid.cli.terminal import Terminal
from robot_dynid.document import DASH
from robot_dynid.errors import DataError, ModelError, UsageError
from robot_dynid.estimation.drive_gains import DriveGains, GainStatus, KnownLoad
from robot_dynid.identification import payload
from robot_dynid.identification.payload import GainsResult, identify_payload
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import WRENCH_COMPONENTS, take

MASS = 2.805
RNG = np.random.default_rng(5)


def refused(error, fragment, robot, loaded, unloaded=(), **others):
    """Check that a payload is refused in one sentence that holds ``fragment``."""
    with pytest.raises(error, match=fragment):
        identify_payload(robot, loaded, unloaded, **others)


def test_bad_input_is_refused_in_one_sentence():
    robot = torque_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(RNG), seconds=10.0)
    other = recording(robot, motion(robot, 99, 10.0))
    still = recording(robot, motion(robot, 1, 10.0, moving=[]))
    refused(UsageError, 'model of the arm', robot, [loaded])
    refused(UsageError, 'no recording with', robot, [], [unloaded])
    refused(DataError, 'the motions with and without the payload differ', robot, [loaded], [other])
    refused(DataError, 'no joint moves', robot, [replace(still, effort=still.effort + 1.0)],
            [unloaded])
    refused(DataError, 'payload is negative', robot, [unloaded], [loaded])
    refused(DataError, 'give two different recordings', robot, [loaded], [loaded])
    refused(DataError, 'record longer', robot, [take(loaded, slice(0, 10))], [unloaded])
    refused(UsageError, 'carries', robot, [loaded], [unloaded], link='base_link')
    refused(UsageError, 'are not those of', robot, [replace(loaded, joints=tuple('abcdef'))],
            [unloaded])
    refused(ModelError, 'was identified for', robot, [loaded], model=nominal_model('puma560'))
    unknown = replace(robot, drive=replace(robot.drive, kind=''))
    refused(UsageError, 'effort_kind', unknown, [loaded], [unloaded])


def test_halves_of_a_motion_do_not_overlap():
    robot = torque_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(RNG), seconds=20.0)
    with pytest.raises(DataError, match=r'the payload differ by|overlaps'):
        identify_payload(robot, [take(loaded, slice(0, 900))],
                         [take(unloaded, slice(1100, None))])


def test_command_line(tmp_path, capsys):
    robot = load_robot('ur10e')
    loaded, unloaded = pair(robot, random_payload(np.random.default_rng(1), MASS), noise=0.01)
    paths = [tmp_path / 'loaded.csv', tmp_path / 'unloaded.csv']
    for path, log in zip(paths, (loaded, unloaded)):
        write_csv(path, log)
    words = ['payload', str(paths[0]), '--unloaded', str(paths[1]), '--robot', 'ur10e']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found['interval']['mass']
    assert low < MASS < high and found['status'] == 'ok' and found['frame'] == 'wrist_3_link'
    assert found['mass_std'] > 0.0 and np.shape(found['inertia']) == (3, 3)
    bounds = np.array([found['interval']['mass'], *found['interval']['centre_of_mass']])
    assert np.all(bounds[:, 0] < bounds[:, 1])
    np.testing.assert_allclose(bounds.mean(axis=1), [found['mass'], *found['centre_of_mass']])
    assert found['drive_gains_std'] == [0.02] * 6  # assumed: docs/payload.md
    assert not found['drive_gains_std_stated']
    assert [pair['loaded'] for pair in found['pairs']] == [str(paths[0])]
    assert found['set_payload']['mass'] == found['mass'] == found['set_load']['mass']
    assert main(words) == 0
    centre, _, _ = ' '.join(capsys.readouterr().out.split()).partition('inertia about it')
    assert centre.partition('centre of mass')[2].count(' ± ') == 3
    assert centre.endswith(' m (95 %) ')
    assert main(['payload', str(paths[0]), '--robot', 'ur10e', '--json']) == 2
    assert main([*words, '--known-com', '0', '0', '0', '--json']) == 2
    assert main(['payload', str(paths[0]), '--json']) == 2


@pytest.mark.parametrize(('words', 'centre'), [
    ((), None), (('--known-com', '0.01', '0', '-0.05'), (0.01, 0.0, -0.05))])
def test_gains_of_drives_are_given_beside_those_that_are_stated(
    words, centre, tmp_path, capsys, monkeypatch
):
    """From a payload of known mass: value, 95 % interval, and joints that it does not tell."""
    robot, asked = load_robot('planar_3r'), []
    robot = replace(robot, drive=replace(robot.drive, gains=np.array([2.0, 3.0, 4.0])))
    gains = DriveGains(np.array([2.2, 3.3, 9.0]), np.array([0.01, 0.02, np.inf]),
                       np.array([True, True, False]), 1000000, np.array([0.1, 0.2, 0.3]),
                       np.zeros(3), GainStatus.NOT_DETERMINED)

    def identify(given, loaded, unloaded, load, model, equal):
        asked.append((load, [log.source for log in loaded], [log.source for log in unloaded],
                      model, equal))
        return GainsResult(gains, robot, 'tip', 123, ('a warning',))

    monkeypatch.setattr(payload, 'identify_drive_gains', identify)
    paths = [str(tmp_path / f'{name}.csv') for name in ('loaded', 'unloaded')]
    for seed, path in enumerate(paths):
        write_csv(path, joint_recording(robot, seed, 1.0))
    line = ['payload', paths[0], '--unloaded', paths[1], '--robot', 'planar_3r', '--known-mass',
            '2.5', '--link', 'tip', '--equal-gains', 'joint_1,joint_2', *words]
    started = perf_counter()
    assert main([*line, '--json']) == 0
    passed = perf_counter() - started
    found = json.loads(capsys.readouterr().out)
    assert asked == [(KnownLoad(2.5, centre, 'tip'), paths[:1], paths[1:], None,
                      [['joint_1', 'joint_2']])]
    assert found['ok'] and found['status'] == 'not_determined' and found['known_mass'] == 2.5
    assert 0.0 <= found['seconds'] < passed
    assert found['not_determined'] == ['joint_3'] and found['frame'] == 'tip'
    assert [one['stated'] for one in found['gains'].values()] == [2.0, 3.0, 4.0]
    first = found['gains']['joint_1']
    assert first['value'] == 2.2 and first['determined']
    assert first['interval'] == pytest.approx([2.2 * np.exp(-0.0195996), 2.2 * np.exp(0.0195996)])
    assert found['gains']['joint_3']['value'] is None
    robot = replace(robot, drive=replace(robot.drive, gains=None))
    gains = replace(gains, status=GainStatus.NOT_CONVERGED)
    assert main([*line, '--json']) == 1
    found = json.loads(capsys.readouterr().out)
    assert found['gains']['joint_2']['stated'] is None


def test_pairs_of_recordings_are_listed_in_detail(capsys):
    result = {
        'status': 'ok', 'advice': 'fine', 'frame': 'tip', 'mass': 2.0, 'inertia': np.eye(3),
        'inertia_std': 0.1 * np.eye(3), 'centre_of_mass': [0.1, 0.2, 0.3],
        'interval': {'mass': [1.9, 2.1], 'centre_of_mass': [[0.09, 0.11]] * 3},
        'not_excited': [], 'directions': [], 'findings': {}, 'warnings': [], 'mass_std': 0.05,
        'mass_std_gains': 0.02, 'drive_gains_std_stated': True, 'drive_gains_std': np.full(3, 0.1),
        'pairs': [{'loaded': 'a.csv', 'unloaded': 'b.csv', 'lag': -0.0125},
                  {'loaded': 'c.csv', 'unloaded': '', 'lag': 0.0}]}
    show(result, Terminal(verbose=True))
    said = ' '.join(capsys.readouterr().out.split())
    assert 'a.csv less b.csv clocks 12.50 ms apart' in said and 'c.csv' not in said
    assert '2 kg on tip, 95 % from 1.9 to 2.1 kg' in said and 'x 0.1 ± 0.01, y 0.2' in said
    show(result, Terminal())
    assert 'clocks' not in capsys.readouterr().out


def test_command_line_with_a_model_and_a_link(tmp_path, capsys):
    """Without the arm alone its model has to say what the arm itself needs."""
    arm = nominal_model('ur10e', rotors=0.0, viscous=4.0, coulomb=3.0, width=0.02)
    arm.save(tmp_path / 'arm.yaml')
    payload = random_payload(np.random.default_rng(1), MASS)
    loaded, unloaded = pair(arm.robot, payload, noise=0.01, link='wrist_1_link')
    for name, log in (('loaded', loaded), ('unloaded', unloaded)):
        write_csv(tmp_path / f'{name}.csv', log)
    words = ['payload', str(tmp_path / 'loaded.csv'), '--model', str(tmp_path / 'arm.yaml'),
             '--link', 'wrist_1_link']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['frame'] == 'wrist_1_link' and found['robot'] == 'ur10e'
    assert found['warnings'][0].startswith('joint wrist_3_joint is refused: ')  # of the arm
    assert found['mass'] == pytest.approx(MASS, rel=PAYLOAD_MASS)
    assert found['centre_of_mass'] == pytest.approx(payload[1:4] / MASS, abs=0.02)
    assert main([*words, '--robot', 'puma560']) == 1
    assert 'puma560' in capsys.readouterr().err


def test_the_job_of_the_action(tmp_path):
    job = pytest.importorskip('robot_dynid.ros.identifier.identification')
    arm = nominal_model('ur10e')
    loaded, unloaded = pair(arm.robot, random_payload(np.random.default_rng(1), MASS), noise=0.01)
    path, loaded_path = tmp_path / 'unloaded.csv', tmp_path / 'loaded.csv'
    write_csv(path, unloaded)
    write_csv(loaded_path, loaded)
    outcome = job.run(job.Job(arm.robot, (loaded,), payload=True, unloaded=(str(path),)),
                      lambda stage, fraction: None)
    assert outcome.code is job.Code.SUCCESS and outcome.model is None, outcome.message
    assert outcome.payload.estimate.mass == pytest.approx(MASS, rel=PAYLOAD_MASS)
    swapped = job.run(job.Job(arm.robot, (unloaded,), payload=True, unloaded=(str(loaded_path),)),
                      lambda stage, fraction: None)
    assert swapped.code is job.Code.NOT_IDENTIFIABLE and 'negative' in swapped.message
    alone = job.run(job.Job(arm.robot, (loaded,), payload=True), lambda stage, fraction: None)
    assert alone.code is job.Code.INVALID
    missing = job.run(job.Job(arm.robot, ('nowhere.csv',), payload=True),
                      lambda stage, fraction: None)
    assert missing.code is job.Code.NO_DATA


def shown(result: dict[str, Any], verbose: bool = False) -> list[str]:
    """Return the words of a line each that `payload` prints."""
    given = {'status': 'ok', 'advice': 'well determined', 'frame': 'tool', 'findings': {},
             'warnings': [], **result}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out, \
            redirect_stderr(out):
        patch.setenv('COLUMNS', '400')
        show(given, Terminal(verbose=verbose))
    return [' '.join(line.split()) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(('gains', 'stated', 'note'), [
    ((0.0, 0.0), True, 'taken as exact; state drive_gains_std in the robot YAML if they are not'),
    ((0.1, 0.1), True, 'uncertain by 10.0 % (stated): 0.03 kg of the deviation of the mass, '
                       '0.04 kg'),
    ((0.2, 0.1), False, 'uncertain by 10.0 to 20.0 % (assumed; state drive_gains_std in the robot '
                        'YAML): 0.03 kg of the deviation of the mass, 0.04 kg')])
def test_a_payload_is_shown_with_its_intervals(
    gains: tuple[float, float], stated: bool, note: str
) -> None:
    """Halves of intervals of 95 % for mass and centre, deviations for moments, in their units."""
    moments = np.array([[0.11, 0.12, 0.13], [0.12, 0.22, 0.23], [0.13, 0.23, 0.33]])
    result = {
        'mass': 2.0, 'mass_std': 0.04, 'mass_std_gains': 0.03, 'centre_of_mass': [0.1, -0.2, 0.3],
        'inertia': moments, 'inertia_std': moments / 100.0, 'drive_gains_std': np.array(gains),
        'drive_gains_std_stated': stated, 'not_excited': ['ixx', 'izz'], 'directions': ['a + b'],
        'interval': {'mass': [1.9, 2.1],
                     'centre_of_mass': [(0.09, 0.11), (-0.22, -0.18), (0.0, 0.6)]},
        'pairs': [{'loaded': 'with.csv', 'unloaded': 'without.csv', 'lag': -0.0125},
                  {'loaded': 'rest.csv', 'unloaded': '', 'lag': 0.0}],
        'findings': {'run.csv': ['two samples dropped']}, 'warnings': ['gravity is stated']}
    lines = [
        'mass 2 kg on tool, 95 % from 1.9 to 2.1 kg',
        'centre of mass x 0.1 ± 0.01, y -0.2 ± 0.02, z 0.3 ± 0.3 m (95 %)',
        'inertia about it xx 0.11 ± 0.0011, xy 0.12 ± 0.0012, xz 0.13 ± 0.0013, yy 0.22 ± 0.0022, '
        'yz 0.23 ± 0.0023, zz 0.33 ± 0.0033 kg m² (± std)',
        'status ok: well determined', f'drive gains {note}',
        '! not excited by the motion: ixx and izz', '! a + b: not determined']
    last = ['! run.csv: two samples dropped', '! gravity is stated']
    assert shown(result) == [*lines, *last]
    assert shown(result, verbose=True) == [
        *lines, 'with.csv less without.csv clocks 12.50 ms apart', *last]
    wrench = {name: {'value': k + 0.5, 'half_width': 0.25}
              for k, name in enumerate(WRENCH_COMPONENTS)}
    sensor = {**result, 'bias': wrench, 'reports': 'wrench on the tool', 'mounting': {
        'rpy': np.radians([10.0, -20.0, 90.0]), 'half_width': np.radians([0.5, 1.0, 2.0])}}
    assert shown(sensor)[4:6] == [
        'bias fx 0.5 ± 0.25, fy 1.5 ± 0.25, fz 2.5 ± 0.25 N, tx 3.5 ± 0.25, ty 4.5 ± 0.25, '
        'tz 5.5 ± 0.25 N m (95 %)',
        'mounting rpy 10.00, -20.00, 90.00° ± 0.50, 1.00, 2.00° (95 %); reports the wrench on '
        'the tool']


def test_gains_are_shown_with_their_intervals() -> None:
    result = {'known_mass': 4.5, 'gains': {
        'joint_1': {'value': 10.0, 'relative_std': 0.02, 'interval': [9.6, 10.4], 'stated': 11.0},
        'joint_2': {'value': 8.0, 'relative_std': 0.5, 'interval': [4.0, 12.0], 'stated': None}}}
    assert shown(result) == [
        'drive gains from 4.5 kg on tool', 'joint gain 95 % from to std % stated',
        'joint_1 10 9.6 10.4 2.0 11', f'joint_2 8 4 12 50.0 {DASH}', 'status ok: well determined']
